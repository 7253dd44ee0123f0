/*
 * CUDA devices: questions about them, and what one call of tsvd holds of one (device.h).
 * csrc/backend/nocuda.c answers the questions in a build without nvcc.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/blas.h"
#include "runtime/device.h"

/* Runs a CUDA call; on failure writes call, code, text and place into why[size]
   and leaves through `out:`. */
#define TRY_WHY(call)                                                                              \
    do {                                                                                           \
        cudaError_t code_ = (call);                                                                \
        if (code_ != cudaSuccess) {                                                                \
            ret = cuda_failed(code_, #call, __FILE_NAME__, __LINE__, why, size);                   \
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
cuda_failed(cudaError_t code, const char *call, const char *file, int line, char *why, size_t size)
{
    forget_failure();
    snprintf(why, size, "%s failed at cuda/%s:%d: %s (%s, code %d)", call, file, line,
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
        (void)cuda_failed(code, "cudaGetDeviceCount", __FILE_NAME__, __LINE__, why, size);
    }
    return TSVD_ERR_NO_DEVICE;
}

/* The current device belongs to the calling thread, and so to other libraries too: makes it
   `before` again, after work on `index` that ended with `ret`. */
static tsvd_status
restore_device(int before, int index, tsvd_status ret, char *why, size_t size)
{
    cudaError_t code = before == index ? cudaSuccess : cudaSetDevice(before);

    if (code != cudaSuccess && ret == TSVD_OK) {
        ret = cuda_failed(code, "cudaSetDevice(before)", __FILE_NAME__, __LINE__, why, size);
    }
    return ret;
}

/* Every source is compiled for the same architectures: what holds for this kernel holds for all. */
static __global__ void
empty_kernel(void)
{
}

/* Why the runtime has no code for device `index`; no other failure is of this kind. */
static bool
no_code(cudaError_t code, int index, char *why, size_t size)
{
    int major = 0, minor = 0, runtime, driver;

    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess) {
        forget_failure();
    }
    tsvd_cuda_versions(&runtime, &driver);
    switch (code) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
        snprintf(why, size,
                 "tsvd holds no code for CUDA device %d, whose compute capability is %d.%d: "
                 "reinstall it with -C cmake.define.CMAKE_CUDA_ARCHITECTURES=%d%d and a CUDA "
                 "Toolkit that knows this GPU",
                 index, major, minor, major, minor);
        return true;
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
        snprintf(why, size,
                 "tsvd holds for CUDA device %d only PTX of CUDA %d.%d, which the driver (CUDA up "
                 "to %d.%d) does not compile (%s): update the driver, or reinstall tsvd with -C "
                 "cmake.define.CMAKE_CUDA_ARCHITECTURES=%d%d",
                 index, runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10,
                 cudaGetErrorString(code), major, minor);
        return true;
    default:
        return false;
    }
}

/* Asks the runtime, which knows what compute capabilities do not tell: whether the build has PTX,
   and whether this driver compiles it. */
tsvd_status
tsvd_cuda_device_usable(int index, char *why, size_t size)
{
    tsvd_status ret = TSVD_OK;
    cudaFuncAttributes attributes;
    cudaError_t code;
    int before = index;

    TRY_WHY(cudaGetDevice(&before));
    TRY_WHY(cudaSetDevice(index));
    code = cudaFuncGetAttributes(&attributes, empty_kernel);
    if (code != cudaSuccess) {
        forget_failure();
        ret = no_code(code, index, why, size)
                  ? TSVD_ERR_NO_DEVICE
                  : cuda_failed(code, "cudaFuncGetAttributes", __FILE_NAME__, __LINE__, why, size);
    }
out:
    return restore_device(before, index, ret, why, size);
}

tsvd_status
tsvd_cuda_device(int index, tsvd_device *device, char *why, size_t size)
{
    tsvd_status ret = TSVD_OK;
    cudaDeviceProp properties;
    size_t memory_free, memory_total;
    int before = index;

    TRY_WHY(cudaGetDeviceProperties(&properties, index));
    TRY_WHY(cudaGetDevice(&before));
    TRY_WHY(cudaSetDevice(index));
    TRY_WHY(cudaMemGetInfo(&memory_free, &memory_total));
    snprintf(device->name, sizeof(device->name), "%s", properties.name);
    device->memory_total = memory_total;
    device->memory_free = memory_free;
    device->major = properties.major;
    device->minor = properties.minor;
    device->multiprocessors = properties.multiProcessorCount;
out:
    return restore_device(before, index, ret, why, size);
}

static tsvd_status
out_of_memory(struct cuda_call *call, uint64_t available)
{
    call->error->wanted = call->wanted;
    call->error->available = available;
    return tsvdi_fail(call->error, TSVD_ERR_MEMORY,
                      "out of memory on CUDA device %d: %llu bytes wanted, %llu bytes free",
                      call->device, (unsigned long long)call->wanted,
                      (unsigned long long)available);
}

tsvd_status
tsvdi_cuda_fail(struct cuda_call *call, cudaError_t code, const char *text, const char *file,
                int line)
{
    tsvd_error *error = call->error;
    tsvd_status status = cuda_failed(code, text, file, line, error->text, sizeof(error->text));

    if (status == TSVD_ERR_MEMORY) {
        size_t available = 0, total = 0;

        if (cudaMemGetInfo(&available, &total) != cudaSuccess) {
            forget_failure();
        }
        return out_of_memory(call, available);
    }
    return status;
}

/* ---- pinned buffers: making them takes milliseconds, so they are kept ---- */

enum { PINNED_KEPT = 8 };

static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;
static void *pinned_kept[PINNED_KEPT];
static int pinned_count;

static tsvd_status
take_pinned(struct cuda_call *call, void **p)
{
    tsvd_status ret = TSVD_OK;

    *p = NULL;
    pthread_mutex_lock(&pinned_lock);
    if (pinned_count > 0) {
        *p = pinned_kept[--pinned_count];
    }
    pthread_mutex_unlock(&pinned_lock);
    if (*p == NULL) {
        call->wanted = PINNED_BYTES;
        CUDA_TRY(call, cudaHostAlloc(p, PINNED_BYTES, cudaHostAllocPortable));
    }
out:
    return ret;
}

static void
give_pinned(void *p)
{
    if (p == NULL) {
        return;
    }
    pthread_mutex_lock(&pinned_lock);
    if (pinned_count < PINNED_KEPT) {
        pinned_kept[pinned_count++] = p;
        p = NULL;
    }
    pthread_mutex_unlock(&pinned_lock);
    if (p != NULL) {
        (void)cudaFreeHost(p);
    }
}

tsvd_status
tsvdi_cuda_open(int device, tsvd_error *error, struct cuda_call *call)
{
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    tsvd_status ret = TSVD_OK;

    memset(call, 0, sizeof(*call));
    call->device = call->before = device;
    call->error = error;
    CUDA_TRY(call, cudaGetDevice(&call->before));
    CUDA_TRY(call, cudaSetDevice(device));
    TSVD_TRY(tsvd_cuda_device_usable(device, error->text, sizeof(error->text)));
    CUDA_TRY(call, cudaDeviceGetAttribute(&call->multiprocessors, cudaDevAttrMultiProcessorCount,
                                          device));
    CUDA_TRY(call, cudaDeviceGetAttribute(&call->shared_most,
                                          cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    /* Freed memory stays in the pool for the next call. */
    CUDA_TRY(call, cudaDeviceGetDefaultMemPool(&pool, device));
    CUDA_TRY(call, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CUDA_TRY(call, cudaStreamCreateWithFlags(&call->stream, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        CUDA_TRY(call, cudaEventCreateWithFlags(&call->copied[i], cudaEventDisableTiming));
        TSVD_TRY(take_pinned(call, &call->pinned[i]));
    }
out:
    return ret;
}

void
tsvdi_cuda_close(struct cuda_call *call)
{
    if (call->stream != NULL) {
        /* after a failure work may still be under way that uses the pinned buffers */
        (void)cudaStreamSynchronize(call->stream);
        tsvdi_cuda_blas_close(call);
        (void)cudaStreamDestroy(call->stream);
    }
    for (int i = 0; i < 2; i++) {
        give_pinned(call->pinned[i]);
        if (call->copied[i] != NULL) {
            (void)cudaEventDestroy(call->copied[i]);
        }
    }
    /* the current device belongs to the calling thread, and so to other libraries too */
    if (call->before != call->device) {
        (void)cudaSetDevice(call->before);
    }
    forget_failure();
}

/* Requests beyond this are held against what is free before the driver tries, and takes, all. */
#define CHECKED_BYTES ((size_t)256 << 20)

tsvd_status
tsvdi_cuda_memory_free(struct cuda_call *call, uint64_t *bytes)
{
    size_t outside = 0, total = 0;
    uint64_t reserved = 0, used = 0;
    cudaMemPool_t pool;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaDeviceGetDefaultMemPool(&pool, call->device));
    CUDA_TRY(call, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    CUDA_TRY(call, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CUDA_TRY(call, cudaMemGetInfo(&outside, &total));
    *bytes = outside + (reserved - used);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_alloc(struct cuda_call *call, size_t bytes, void **p)
{
    cudaMemPool_t pool;
    cudaError_t code;
    uint64_t available = 0;
    tsvd_status ret = TSVD_OK;

    *p = NULL;
    call->wanted = bytes;
    if (bytes > CHECKED_BYTES) {
        TSVD_TRY(tsvdi_cuda_memory_free(call, &available));
        if (bytes > available) {
            return out_of_memory(call, available);
        }
    }
    code = cudaMallocAsync(p, bytes > 0 ? bytes : 1, call->stream);
    if (code == cudaErrorMemoryAllocation) {
        /* what earlier calls left in the pool may lie in pieces that are too small */
        forget_failure();
        CUDA_TRY(call, cudaStreamSynchronize(call->stream));
        CUDA_TRY(call, cudaDeviceGetDefaultMemPool(&pool, call->device));
        CUDA_TRY(call, cudaMemPoolTrimTo(pool, 0));
        CUDA_TRY(call, cudaMallocAsync(p, bytes, call->stream));
    } else if (code != cudaSuccess) {
        ret = tsvdi_cuda_fail(call, code, "cudaMallocAsync", __FILE_NAME__, __LINE__);
    }
out:
    if (ret != TSVD_OK) {
        *p = NULL;
    }
    return ret;
}

void
tsvdi_cuda_free(struct cuda_call *call, void *p)
{
    if (p != NULL && cudaFreeAsync(p, call->stream) != cudaSuccess) {
        forget_failure();
    }
}

tsvd_status
tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes)
{
    tsvd_status ret = TSVD_OK;

    /* from pageable memory: returns when the source may be changed */
    CUDA_TRY(call, cudaMemcpyAsync(d_to, from, bytes, cudaMemcpyHostToDevice, call->stream));
out:
    return ret;
}

/* ---- download: through two pinned buffers, one filled while the other is emptied ---- */

/* What one thread copies at a time out of a pinned buffer. */
#define COPY_BYTES ((size_t)1 << 20)

struct copy_job {
    char *to;
    const char *from;
    size_t bytes;
};

static tsvd_status
copy_part(void *arg, int worker, int64_t index)
{
    const struct copy_job *job = (const struct copy_job *)arg;
    size_t begin = (size_t)index * COPY_BYTES, rest = job->bytes - begin;

    (void)worker;
    memcpy(job->to + begin, job->from + begin, rest < COPY_BYTES ? rest : COPY_BYTES);
    return TSVD_OK;
}

tsvd_status
tsvdi_cuda_download(struct cuda_call *call, int threads, void *to, const void *d_from, size_t bytes)
{
    const int64_t pieces = (int64_t)((bytes + PINNED_BYTES - 1) / PINNED_BYTES);
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i <= pieces; i++) {
        if (i < pieces) {
            size_t begin = (size_t)i * PINNED_BYTES, rest = bytes - begin;

            CUDA_TRY(call, cudaMemcpyAsync(call->pinned[i % 2], (const char *)d_from + begin,
                                           rest < PINNED_BYTES ? rest : PINNED_BYTES,
                                           cudaMemcpyDeviceToHost, call->stream));
            CUDA_TRY(call, cudaEventRecord(call->copied[i % 2], call->stream));
        }
        if (i > 0) {
            size_t begin = (size_t)(i - 1) * PINNED_BYTES, rest = bytes - begin;
            struct copy_job job = {(char *)to + begin, (const char *)call->pinned[(i - 1) % 2],
                                   rest < PINNED_BYTES ? rest : PINNED_BYTES};

            CUDA_TRY(call, cudaEventSynchronize(call->copied[(i - 1) % 2]));
            TSVD_TRY(tsvdi_host_for_each(
                threads, (int64_t)((job.bytes + COPY_BYTES - 1) / COPY_BYTES), copy_part, &job));
        }
    }
out:
    return ret;
}
