/*
 * Questions about CUDA and its devices, and what failed calls of the runtime are turned into.
 * In a build without nvcc csrc/backend/cuda_library.c passes the questions on.
 */
#include <ctype.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/context.h"
#include "runtime/failure.h"
#include "runtime/usable.h"

extern "C" {
#include "host/host.h"
}

/* Runs a CUDA call; on failure writes call, code, text and place into `error` and leaves through
   `out:`. */
#define QUESTION_TRY(call)                                                                         \
    do {                                                                                           \
        cudaError_t code_ = (call);                                                                \
        if (code_ != cudaSuccess) {                                                                \
            ret = tsvdi_cuda_failed(code_, #call, __FILE__, __LINE__, error);                      \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

void
tsvdi_cuda_forget(void)
{
    (void)cudaGetLastError();
}

tsvd_status
tsvdi_cuda_failed(cudaError_t code, const char *call, const char *file, int line, tsvd_error *error)
{
    const char *slash = strrchr(file, '/');

    tsvdi_cuda_forget();
    return tsvdi_fail(error, code == cudaErrorMemoryAllocation ? TSVD_ERR_MEMORY : TSVD_ERR_CUDA,
                      "%s failed at %s:%d: %s (%s, code %d)", call,
                      slash != NULL ? slash + 1 : file, line, cudaGetErrorString(code),
                      cudaGetErrorName(code), (int)code);
}

int
tsvd_cuda_compiled(void)
{
    return 1;
}

tsvd_status
tsvd_cuda_load(const char *file, tsvd_error *error)
{
    tsvdi_error_clear(error);
    return file != NULL ? TSVD_OK : tsvdi_fail(error, TSVD_ERR_ARGUMENT, "file must not be NULL");
}

const char *
tsvd_cuda_architectures(void)
{
#ifdef TSVD_CUDA_ARCHITECTURES
    return TSVD_CUDA_ARCHITECTURES;
#else
    return "";
#endif
}

void
tsvd_cuda_versions(int *runtime, int *driver)
{
    *runtime = CUDART_VERSION;
    if (cudaDriverGetVersion(driver) != cudaSuccess) {
        *driver = 0;
    }
}

tsvd_status
tsvd_cuda_device_count(int *count, tsvd_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cudaError_t code;
    int runtime, driver;

    tsvdi_error_clear(error);
    if (count == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "count must not be NULL");
    }
    code = cudaGetDeviceCount(count);
    if (code == cudaSuccess && *count > 0) {
        return TSVD_OK;
    }
    *count = 0;
    tsvdi_cuda_forget();
    tsvd_cuda_versions(&runtime, &driver);
    if (driver == 0) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "CUDA finds no NVIDIA driver (a container must be given access to it)");
    }
    if (code == cudaErrorInsufficientDriver) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "the NVIDIA driver knows CUDA up to %d.%d and tsvd was built with CUDA "
                          "%d.%d: update the driver, or take a tsvd for an older CUDA, such as "
                          "pip install \"tsvd[cu12]\"",
                          driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    }
    if ((code == cudaSuccess || code == cudaErrorNoDevice) && visible != NULL) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "CUDA finds no GPU while CUDA_VISIBLE_DEVICES is \"%s\"", visible);
    }
    if (code == cudaSuccess || code == cudaErrorNoDevice) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE, "CUDA finds no GPU");
    }
    (void)tsvdi_cuda_failed(code, "cudaGetDeviceCount", __FILE__, __LINE__, error);
    if (error != NULL) {
        error->status = TSVD_ERR_NO_DEVICE;
    }
    return TSVD_ERR_NO_DEVICE;
}

tsvd_status
tsvd_cuda_device_of(const void *data, int *device, tsvd_error *error)
{
    cudaError_t code;

    tsvdi_error_clear(error);
    if (device == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "device must not be NULL");
    }
    *device = TSVD_DEVICE_CPU;
    code = tsvdi_cuda_context_of(data, device);
    if (code == cudaErrorInsufficientDriver) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE, "there is no CUDA driver");
    }
    if (code != cudaSuccess) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "no CUDA device has memory at address %p",
                          data);
    }
    return TSVD_OK;
}

/* ---- usable or not ---- */

/* One architecture of the list, up to the next comma. */
static enum cuda_code
code_of(const char *architecture, int major, int minor)
{
    char *end;
    const long number = strtol(architecture, &end, 10), asked = 10 * major + minor;
    const char kind = isalpha((unsigned char)*end) ? *end++ : ' ';
    const int real = strncmp(end, "-virtual", 8) != 0, ptx = strncmp(end, "-real", 5) != 0;
    const int same = number / 10 == major, older = number <= asked;
    const int runs = kind == 'a' ? number == asked : same && older;

    if (real && runs) {
        return CODE_MACHINE;
    }
    return ptx && (kind == ' ' ? older : runs) ? CODE_PTX : CODE_NONE;
}

enum cuda_code
tsvdi_cuda_code(const char *architectures, int major, int minor)
{
    enum cuda_code best = CODE_NONE;

    for (const char *at = architectures; at != NULL && *at != '\0';
         at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        const enum cuda_code code = code_of(at, major, minor);

        best = code > best ? code : best;
    }
    return best;
}

static tsvd_status
fail_no_code(int index, int major, int minor, tsvd_error *error)
{
    return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                      "tsvd holds no code for CUDA device %d, whose compute capability is "
                      "%d.%d: build it from its sources with pip install . "
                      "--config-settings cmake.define.CMAKE_CUDA_ARCHITECTURES=%d%d and a CUDA "
                      "Toolkit that knows this GPU",
                      index, major, minor, major, minor);
}

static tsvd_status
fail_ptx(int index, int major, int minor, int runtime, int driver, const char *why,
         tsvd_error *error)
{
    return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                      "tsvd holds for CUDA device %d only PTX of CUDA %d.%d, which the driver "
                      "(CUDA up to %d.%d) does not compile (%s): update the driver, or "
                      "build tsvd from its sources with pip install . "
                      "--config-settings cmake.define.CMAKE_CUDA_ARCHITECTURES=%d%d",
                      index, runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10,
                      why, major, minor);
}

tsvd_status
tsvdi_cuda_judge(int index, const tsvd_cuda_device *device, int pools, const char *architectures,
                 int runtime, int driver, tsvd_error *error)
{
    const enum cuda_code code = architectures[0] == '\0'
                                    ? CODE_MACHINE
                                    : tsvdi_cuda_code(architectures, device->major, device->minor);

    if (code == CODE_NONE) {
        return fail_no_code(index, device->major, device->minor, error);
    }
    if (code == CODE_PTX && driver < runtime) {
        return fail_ptx(index, device->major, device->minor, runtime, driver,
                        "the PTX is of a newer CUDA", error);
    }
    if (pools && !device->memory_pools) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "CUDA device %d has no stream-ordered memory pools, which tsvd takes its "
                          "memory from: a virtual GPU may leave them out",
                          index);
    }
    return TSVD_OK;
}

/* The facts that cost no time. */
static tsvd_status
ask_attributes(int index, tsvd_cuda_device *device, tsvd_error *error)
{
    const struct {
        cudaDeviceAttr attribute;
        int *to;
    } question[] = {
        {cudaDevAttrComputeCapabilityMajor, &device->major},
        {cudaDevAttrComputeCapabilityMinor, &device->minor},
        {cudaDevAttrMultiProcessorCount, &device->multiprocessors},
        {cudaDevAttrClockRate, &device->clock_khz},
        {cudaDevAttrSingleToDoublePrecisionPerfRatio, &device->single_to_double},
        {cudaDevAttrMemoryPoolsSupported, &device->memory_pools},
    };
    tsvd_status ret = TSVD_OK;

    for (size_t i = 0; i < sizeof(question) / sizeof(*question); i++) {
        QUESTION_TRY(cudaDeviceGetAttribute(question[i].to, question[i].attribute, index));
    }
out:
    return ret;
}

/* Refuses a device that does not exist, with the reason. */
static tsvd_status
check_index(int index, tsvd_error *error)
{
    int count;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvd_cuda_device_count(&count, error));
    if (index < 0 || index >= count) {
        ret =
            tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                       "CUDA device %d does not exist: the devices are 0 to %d", index, count - 1);
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_may_use(int index, int pools, tsvd_error *error)
{
    const char *architectures = tsvd_cuda_architectures();
    tsvd_cuda_device device;
    int runtime, driver;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_index(index, error));
    TSVD_TRY(ask_attributes(index, &device, error));
    tsvd_cuda_versions(&runtime, &driver);
    TSVD_TRY(tsvdi_cuda_judge(index, &device, pools, architectures, runtime, driver, error));
out:
    if (ret != TSVD_OK && error != NULL) {
        error->device = index;
    }
    return ret;
}

tsvd_status
tsvd_cuda_device_usable(int index, tsvd_error *error)
{
    tsvdi_error_clear(error);
    return tsvdi_cuda_may_use(index, 1, error);
}

/* Every source is compiled for the same architectures: what holds for this kernel holds for all. */
static __global__ void
empty_kernel(void)
{
}

tsvd_status
tsvdi_cuda_loads(int index, tsvd_error *error)
{
    cudaFuncAttributes attributes;
    const cudaError_t code = cudaFuncGetAttributes(&attributes, empty_kernel);
    tsvd_cuda_device device;
    int runtime, driver;
    tsvd_status ret = TSVD_OK;

    if (code == cudaSuccess) {
        return TSVD_OK;
    }
    tsvdi_cuda_forget();
    TSVD_TRY(ask_attributes(index, &device, error));
    tsvd_cuda_versions(&runtime, &driver);
    switch (code) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
        ret = fail_no_code(index, device.major, device.minor, error);
        break;
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
        ret = fail_ptx(index, device.major, device.minor, runtime, driver, cudaGetErrorString(code),
                       error);
        break;
    default:
        ret = tsvdi_cuda_failed(code, "cudaFuncGetAttributes", __FILE__, __LINE__, error);
    }
out:
    if (error != NULL) {
        error->device = index;
    }
    return ret;
}

tsvd_status
tsvd_cuda_device_facts(int index, tsvd_cuda_device *device, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;
    cudaDeviceProp properties;

    tsvdi_error_clear(error);
    if (device == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "device must not be NULL");
    }
    memset(device, 0, sizeof(*device));
    TSVD_TRY(check_index(index, error));
    TSVD_TRY(ask_attributes(index, device, error));
    QUESTION_TRY(cudaGetDeviceProperties(&properties, index));
    (void)snprintf(device->name, sizeof(device->name), "%s", properties.name);
    device->memory_total = properties.totalGlobalMem;
    device->memory_free = tsvdi_cuda_context_memory_free(index);
out:
    return ret;
}
