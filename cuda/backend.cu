/*
 * The CUDA back end: questions about devices.  csrc/nocuda.c answers them in a
 * build without nvcc.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>

#include "tsvd.h"

/* Runs a CUDA call; on failure writes call, code, text and place into why[size]
   and leaves through `out:`. */
#define TSVD_CUDA(call)                                                                            \
    do {                                                                                           \
        cudaError_t code_ = (call);                                                                \
        if (code_ != cudaSuccess) {                                                                \
            ret = cuda_failed(code_, #call, __LINE__, why, size);                                  \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* The runtime keeps the code of a failed call until it is read; the check after
   some later launch must not find it. */
static void
forget_failure(void)
{
    (void)cudaGetLastError();
}

static tsvd_status
cuda_failed(cudaError_t code, const char *call, int line, char *why, size_t size)
{
    forget_failure();
    snprintf(why, size, "%s failed at cuda/backend.cu:%d: %s (%s, code %d)", call, line,
             cudaGetErrorString(code), cudaGetErrorName(code), (int)code);
    return code == cudaErrorMemoryAllocation ? TSVD_ERR_MEMORY : TSVD_ERR_CUDA;
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
tsvd_cuda_device_count(int *count, char *why, size_t size)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cudaError_t code = cudaGetDeviceCount(count);
    int runtime, driver;

    if (code == cudaSuccess && *count > 0) {
        return TSVD_OK;
    }
    *count = 0;
    forget_failure();
    tsvd_cuda_versions(&runtime, &driver);
    if (driver == 0) {
        snprintf(why, size, "CUDA finds no NVIDIA driver (a container must be given access to it)");
    } else if (code == cudaErrorInsufficientDriver) {
        snprintf(why, size,
                 "the NVIDIA driver knows CUDA up to %d.%d and tsvd was built with CUDA %d.%d: "
                 "update the driver",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    } else if ((code == cudaSuccess || code == cudaErrorNoDevice) && visible != NULL) {
        snprintf(why, size, "CUDA finds no GPU while CUDA_VISIBLE_DEVICES is \"%s\"", visible);
    } else if (code == cudaSuccess || code == cudaErrorNoDevice) {
        snprintf(why, size, "CUDA finds no GPU");
    } else {
        (void)cuda_failed(code, "cudaGetDeviceCount", __LINE__, why, size);
    }
    return TSVD_ERR_NO_DEVICE;
}

tsvd_status
tsvd_cuda_device(int index, tsvd_device *device, char *why, size_t size)
{
    tsvd_status ret = TSVD_OK;
    cudaDeviceProp properties;
    size_t memory_free, memory_total;
    int current = index;

    TSVD_CUDA(cudaGetDeviceProperties(&properties, index));
    TSVD_CUDA(cudaGetDevice(&current));
    TSVD_CUDA(cudaSetDevice(index));
    TSVD_CUDA(cudaMemGetInfo(&memory_free, &memory_total));
    snprintf(device->name, sizeof(device->name), "%s", properties.name);
    device->memory_total = memory_total;
    device->memory_free = memory_free;
    device->major = properties.major;
    device->minor = properties.minor;
    device->multiprocessors = properties.multiProcessorCount;
out:
    /* The current device belongs to the calling thread, and so to other libraries too. */
    if (current != index) {
        cudaError_t code = cudaSetDevice(current);

        if (code != cudaSuccess && ret == TSVD_OK) {
            ret = cuda_failed(code, "cudaSetDevice(current)", __LINE__, why, size);
        }
    }
    return ret;
}
