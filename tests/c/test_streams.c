/*
 * Device memory and the order of streams, where there is no device: every function says so, and
 * touches nothing.  test_results.cu tests them on a GPU.
 */
#include <stdlib.h>

#include "check.h"
#include "tsvd/tsvd.h"

int
main(void)
{
    int here = 0, device = 7;
    tsvd_memory *memory = (tsvd_memory *)(void *)&here;
    tsvd_handle *cpu = NULL;
    tsvd_error error;
    tsvd_status status;

    if (tsvd_create(NULL, &cpu, &error) != TSVD_OK) {
        printf("%s\n", error.text);
        return EXIT_FAILURE;
    }
    CHECK(tsvd_handle_stream(NULL) == NULL && tsvd_handle_stream(cpu) == NULL, "no stream");
    CHECK(tsvd_wait_for(NULL, NULL, NULL) == TSVD_ERR_ARGUMENT, "no handle");
    CHECK(tsvd_wait_for(cpu, &here, &error) == TSVD_ERR_ARGUMENT && error.text[0] != '\0', "%s",
          error.text);
    CHECK(tsvd_synchronize(NULL, NULL) == TSVD_ERR_ARGUMENT, "no handle");
    CHECK(tsvd_synchronize(cpu, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(tsvd_memory_take(NULL, 1, &memory, NULL) == TSVD_ERR_ARGUMENT && memory == NULL,
          "no handle");
    memory = (tsvd_memory *)(void *)&here;
    CHECK(tsvd_memory_take(cpu, 1, &memory, &error) == TSVD_ERR_ARGUMENT && memory == NULL, "%s",
          error.text);
    CHECK(tsvd_memory_take(cpu, 1, NULL, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(tsvd_memory_data(NULL) == NULL && tsvd_memory_stream(NULL) == NULL, "no memory");
    status = tsvd_memory_wait(NULL, NULL, &error);
    CHECK(status == (tsvd_cuda_compiled() ? TSVD_ERR_ARGUMENT : TSVD_ERR_NO_DEVICE), "%s",
          error.text);
    tsvd_memory_release(NULL);
    status = tsvd_cuda_device_of(&here, &device, &error);
    CHECK(status == TSVD_ERR_NO_DEVICE || (status == TSVD_ERR_ARGUMENT && device == -1), "%s",
          error.text);
    tsvd_destroy(cpu);
    return report();
}
