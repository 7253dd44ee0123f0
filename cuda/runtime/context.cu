/*
 * Contexts of CUDA (context.h), through the driver.
 *
 * Its library comes with the driver and not with the toolkit: it is opened here, as the runtime
 * itself does.  The functions are those of CUDA 11 and later under the names that the library has
 * for them; a CUresult is a cudaError_t of the same meaning.
 */
#include <dlfcn.h>

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
