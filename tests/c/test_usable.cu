/*
 * Which devices can be used: by the architectures of a build, and by facts of made-up devices.
 * Needs no GPU.
 */
#include <string.h>

#include "check.h"
#include "defaults.h"
#include "runtime/usable.h"

static void
test_code(void)
{
    const struct {
        const char *architectures;
        int major, minor;
        enum cuda_code code;
    } row[] = {
        {"90", 9, 0, CODE_MACHINE},
        {"90", 8, 9, CODE_NONE},
        {"90", 10, 0, CODE_PTX}, /* "100" is larger as a number, not as a text */
        {"90", 12, 1, CODE_PTX},
        {"80", 8, 6, CODE_MACHINE}, /* code runs on a larger minor version */
        {"86", 8, 0, CODE_NONE},
        {"86", 9, 0, CODE_PTX},
        {"90-real", 9, 0, CODE_MACHINE},
        {"90-real", 10, 0, CODE_NONE},
        {"90-virtual", 9, 0, CODE_PTX},
        {"90-virtual", 12, 0, CODE_PTX},
        {"90-virtual", 8, 0, CODE_NONE},
        {"90a", 9, 0, CODE_MACHINE},
        {"90a", 10, 0, CODE_NONE},
        {"90a-virtual", 9, 0, CODE_PTX},
        {"90a-virtual", 10, 0, CODE_NONE},
        {"100f", 10, 3, CODE_MACHINE},
        {"100f", 12, 0, CODE_NONE},
        {"100f-real", 9, 0, CODE_NONE},
        {"75-real,80-real,90-real,100-real,110-real,120", 7, 5, CODE_MACHINE},
        {"75-real,80-real,90-real,100-real,110-real,120", 7, 0, CODE_NONE},
        {"75-real,80-real,90-real,100-real,110-real,120", 8, 9, CODE_MACHINE},
        {"75-real,80-real,90-real,100-real,110-real,120", 12, 1, CODE_MACHINE},
        {"75-real,80-real,90-real,100-real,110-real,120", 13, 0, CODE_PTX},
        {"50-virtual,90-real", 9, 0, CODE_MACHINE}, /* the best of all */
        {"90-real,50-virtual", 6, 1, CODE_PTX},
        {"", 9, 0, CODE_NONE},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const enum cuda_code code =
            tsvdi_cuda_code(row[i].architectures, row[i].major, row[i].minor);

        CHECK(code == row[i].code, "\"%s\" on %d.%d: %d", row[i].architectures, row[i].major,
              row[i].minor, (int)code);
    }
}

static void
test_judgements(void)
{
    const int runtime = 13000, old = 12080;
    tsvd_cuda_device device;
    tsvd_error error;

    memset(&device, 0, sizeof(device));
    device.major = 9;
    device.memory_pools = 1;
    CHECK(tsvdi_cuda_judge(3, &device, 1, "90", runtime, runtime, &error) == TSVD_OK, "-");
    CHECK(tsvdi_cuda_judge(3, &device, 1, "90", runtime, old, &error) == TSVD_OK, "minor versions");
    CHECK(tsvdi_cuda_judge(3, &device, 1, "", runtime, old, &error) == TSVD_OK, "unknown");
    CHECK(tsvdi_cuda_judge(3, &device, 1, "100", runtime, runtime, &error) == TSVD_ERR_NO_DEVICE &&
              strstr(error.text, "no code for CUDA device 3") != NULL &&
              strstr(error.text, "CMAKE_CUDA_ARCHITECTURES=90") != NULL,
          "%s", error.text);
    CHECK(tsvdi_cuda_judge(3, &device, 1, "80", runtime, runtime, &error) == TSVD_OK, "PTX");
    CHECK(tsvdi_cuda_judge(3, &device, 1, "80", runtime, old, &error) == TSVD_ERR_NO_DEVICE &&
              strstr(error.text, "only PTX of CUDA 13.0") != NULL &&
              strstr(error.text, "CUDA up to 12.8") != NULL,
          "%s", error.text);
    device.memory_pools = 0;
    CHECK(tsvdi_cuda_judge(3, &device, 1, "90", runtime, runtime, &error) == TSVD_ERR_NO_DEVICE &&
              strstr(error.text, "device 3 has no stream-ordered memory pools") != NULL,
          "%s", error.text);
    CHECK(tsvdi_cuda_judge(3, &device, 0, "90", runtime, runtime, &error) == TSVD_OK,
          "the caller brings memory");
    CHECK(tsvdi_cuda_judge(3, &device, 1, "100", runtime, runtime, NULL) == TSVD_ERR_NO_DEVICE,
          "no place for an error");
}

/* A device that does not exist. */
static void
test_beyond(void)
{
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_cuda_device device;
    tsvd_error error;
    int count;

    (void)tsvd_cuda_device_count(&count, &error);
    for (int index = -1; index <= count; index += count + 1) {
        CHECK(tsvd_cuda_device_usable(index, &error) == TSVD_ERR_NO_DEVICE && error.device == index,
              "%d: %s", error.device, error.text);
        CHECK(tsvd_cuda_device_facts(index, &device, &error) == TSVD_ERR_NO_DEVICE, "%s",
              error.text);
    }
    config.device = count;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_ERR_NO_DEVICE && handle == NULL &&
              error.device == count && strlen(error.text) > 10,
          "%d: %s", error.device, error.text);
    CHECK(tsvd_create(&config, &handle, NULL) == TSVD_ERR_NO_DEVICE, "no place for an error");
    CHECK(tsvd_create(NULL, NULL, &error) == TSVD_ERR_ARGUMENT && error.device == TSVD_DEVICE_CPU,
          "%d", error.device);
}

int
main(void)
{
    test_code();
    test_judgements();
    test_beyond();
    return report();
}
