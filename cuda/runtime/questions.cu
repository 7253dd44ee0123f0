/*
 * Questions about CUDA and its devices, and what failed calls of the runtime are turned into.
 * csrc/backend/nocuda.c answers in a build without nvcc.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/failure.h"

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
                          "%d.%d: update the driver",
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

/* The current device belongs to the calling thread, and so to other libraries too: makes it
   `before` again, after work on `index` that ended with `ret`. */
static tsvd_status
restore_device(int before, int index, tsvd_status ret, tsvd_error *error)
{
    cudaError_t code = before == index ? cudaSuccess : cudaSetDevice(before);

    if (code != cudaSuccess && ret == TSVD_OK) {
        ret = tsvdi_cuda_failed(code, "cudaSetDevice(before)", __FILE__, __LINE__, error);
    }
    return ret;
}

/* Every source is compiled for the same architectures: what holds for this kernel holds for all. */
static __global__ void
empty_kernel(void)
{
}

/* The runtime has no code for device `index`, or could not ask for it. */
static tsvd_status
no_code(cudaError_t code, int index, tsvd_error *error)
{
    int major = 0, minor = 0, runtime, driver;

    tsvdi_cuda_forget();
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess) {
        tsvdi_cuda_forget();
    }
    tsvd_cuda_versions(&runtime, &driver);
    switch (code) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "tsvd holds no code for CUDA device %d, whose compute capability is "
                          "%d.%d: reinstall it with -C cmake.define.CMAKE_CUDA_ARCHITECTURES=%d%d "
                          "and a CUDA Toolkit that knows this GPU",
                          index, major, minor, major, minor);
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "tsvd holds for CUDA device %d only PTX of CUDA %d.%d, which the driver "
                          "(CUDA up to %d.%d) does not compile (%s): update the driver, or "
                          "reinstall tsvd with -C cmake.define.CMAKE_CUDA_ARCHITECTURES=%d%d",
                          index, runtime / 1000, runtime % 1000 / 10, driver / 1000,
                          driver % 1000 / 10, cudaGetErrorString(code), major, minor);
    default:
        return tsvdi_cuda_failed(code, "cudaFuncGetAttributes", __FILE__, __LINE__, error);
    }
}

/* Asks the runtime, which knows what compute capabilities do not tell: whether the build has PTX,
   and whether this driver compiles it. */
tsvd_status
tsvdi_cuda_usable(int index, tsvd_error *error)
{
    cudaFuncAttributes attributes;
    const cudaError_t code = cudaFuncGetAttributes(&attributes, empty_kernel);

    return code == cudaSuccess ? TSVD_OK : no_code(code, index, error);
}

tsvd_status
tsvd_cuda_device_usable(int index, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;
    int before = index;

    tsvdi_error_clear(error);
    QUESTION_TRY(cudaGetDevice(&before));
    QUESTION_TRY(cudaSetDevice(index));
    TSVD_TRY(tsvdi_cuda_usable(index, error));
out:
    return restore_device(before, index, ret, error);
}

tsvd_status
tsvd_cuda_device_facts(int index, tsvd_cuda_device *device, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;
    cudaDeviceProp properties;
    size_t memory_free, memory_total;
    int before = index;

    tsvdi_error_clear(error);
    if (device == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "device must not be NULL");
    }
    QUESTION_TRY(cudaGetDeviceProperties(&properties, index));
    QUESTION_TRY(cudaGetDevice(&before));
    QUESTION_TRY(cudaSetDevice(index));
    QUESTION_TRY(cudaMemGetInfo(&memory_free, &memory_total));
    (void)snprintf(device->name, sizeof(device->name), "%s", properties.name);
    device->memory_total = memory_total;
    device->memory_free = memory_free;
    device->major = properties.major;
    device->minor = properties.minor;
    device->multiprocessors = properties.multiProcessorCount;
out:
    return restore_device(before, index, ret, error);
}
