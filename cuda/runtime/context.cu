/*
 * Contexts of CUDA (context.h), through the driver.
 *
 * Its library comes with the driver and not with the toolkit: it is opened here, as the runtime
 * itself does.  The functions are those of CUDA 11 and later under the names that the library has
 * for them; a CUresult is a cudaError_t of the same meaning.  Shares need CUDA 12.5.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

#include "runtime/context.h"

typedef int (*device_get_function)(int *device, int index);
typedef int (*primary_state_function)(int device, unsigned *flags, int *active);
typedef int (*primary_retain_function)(void **context, int device);
typedef int (*primary_release_function)(int device);
typedef int (*push_function)(void *context);
typedef int (*pop_function)(void **context);
typedef int (*memory_function)(size_t *available, size_t *total);
typedef int (*pointer_function)(void *value, int attribute, unsigned long long pointer);

/* A function of the driver; NULL: there is no driver, or an old one. */
template <typename function>
static function
driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* it stays in the process */

    return library != NULL ? (function)dlsym(library, name) : NULL;
}

cudaError_t
tsvdi_cuda_context_keep(int index, void **context)
{
    static const device_get_function get = driver<device_get_function>("cuDeviceGet");
    static const primary_retain_function retain =
        driver<primary_retain_function>("cuDevicePrimaryCtxRetain");
    int device, code;

    if (get == NULL || retain == NULL) {
        return cudaErrorInsufficientDriver;
    }
    code = get(&device, index);
    return (cudaError_t)(code != 0 ? code : retain(context, device));
}

cudaError_t
tsvdi_cuda_context_push(void *context)
{
    static const push_function push = driver<push_function>("cuCtxPushCurrent_v2");

    return push == NULL ? cudaErrorInsufficientDriver : (cudaError_t)push(context);
}

void
tsvdi_cuda_context_pop(void)
{
    static const pop_function pop = driver<pop_function>("cuCtxPopCurrent_v2");
    void *context;

    if (pop != NULL) {
        (void)pop(&context);
    }
}

uint64_t
tsvdi_cuda_context_memory_free(int index)
{
    static const device_get_function get = driver<device_get_function>("cuDeviceGet");
    static const primary_state_function state =
        driver<primary_state_function>("cuDevicePrimaryCtxGetState");
    static const primary_retain_function retain =
        driver<primary_retain_function>("cuDevicePrimaryCtxRetain");
    static const primary_release_function release =
        driver<primary_release_function>("cuDevicePrimaryCtxRelease_v2");
    static const memory_function memory = driver<memory_function>("cuMemGetInfo_v2");
    void *context = NULL;
    unsigned flags;
    int device, active = 0;
    size_t available = 0, total;

    if (get == NULL || state == NULL || retain == NULL || release == NULL || memory == NULL ||
        get(&device, index) != 0 || state(device, &flags, &active) != 0 || !active ||
        retain(&context, device) != 0) {
        return 0;
    }
    if (tsvdi_cuda_context_push(context) == cudaSuccess) {
        if (memory(&available, &total) != 0) {
            available = 0;
        }
        tsvdi_cuda_context_pop();
    }
    (void)release(device);
    return available;
}

cudaError_t
tsvdi_cuda_context_of(const void *data, int *device)
{
    enum { DEVICE_ORDINAL = 9 }; /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
    static const pointer_function ask = driver<pointer_function>("cuPointerGetAttribute");

    return ask == NULL ? cudaErrorInsufficientDriver
                       : (cudaError_t)ask(device, DEVICE_ORDINAL, (unsigned long long)data);
}

#if CUDA_VERSION >= 12050

/* A function under the name that cuda.h has for it. */
#define DRIVER_NAME(function) #function
#define DRIVER(function) driver<decltype(&function)>(DRIVER_NAME(function))

void
tsvdi_cuda_context_share(int index, int least, struct cuda_share *share)
{
    static const device_get_function get = driver<device_get_function>("cuDeviceGet");
    static const auto resource = DRIVER(cuDeviceGetDevResource);
    static const auto split = DRIVER(cuDevSmResourceSplitByCount);
    static const auto describe = DRIVER(cuDevResourceGenerateDesc);
    static const auto make = DRIVER(cuGreenCtxCreate);
    static const auto make_stream = DRIVER(cuGreenCtxStreamCreate);
    CUdevResource all, reserved, rest;
    CUdevResourceDesc description;
    CUgreenCtx context = NULL;
    CUstream stream = NULL;
    unsigned groups = 1;
    int device;

    if (get == NULL || resource == NULL || split == NULL || describe == NULL || make == NULL ||
        make_stream == NULL || get(&device, index) != 0 ||
        resource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
        split(&reserved, &groups, &all, &rest, CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
              (unsigned)least) != CUDA_SUCCESS ||
        groups != 1 || 4 * rest.sm.smCount < 3 * all.sm.smCount ||
        describe(&description, &rest, 1) != CUDA_SUCCESS ||
        make(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS) {
        return;
    }
    share->context = context;
    if (make_stream(&stream, context, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS) {
        share->stream = stream;
    }
}

void
tsvdi_cuda_context_end_share(struct cuda_share *share)
{
    static const auto end = DRIVER(cuGreenCtxDestroy);

    if (share->stream != NULL) {
        (void)cudaStreamSynchronize(share->stream);
        (void)cudaStreamDestroy(share->stream);
    }
    if (share->context != NULL && end != NULL) {
        (void)end((CUgreenCtx)share->context);
    }
    memset(share, 0, sizeof(*share));
}

#else

void
tsvdi_cuda_context_share(int, int, struct cuda_share *)
{
}

void
tsvdi_cuda_context_end_share(struct cuda_share *)
{
}

#endif
