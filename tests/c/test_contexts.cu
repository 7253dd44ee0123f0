/*
 * Contexts: questions make none, a call makes one on its device alone, and the calling thread's
 * current device stays as it was.  And what a handle keeps between calls.  Leaves with SKIPPED
 * where there is no GPU.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string.h>

#include "problem.h"
#include "runtime/device.h"
#include "runtime/memory.h"

extern "C" {
#include "backend/handle.h"
}

enum { SKIPPED = 77 };

/* Whether the process has a context on a device, by the driver. */
static int
has_context(int device)
{
    typedef int (*state_function)(int, unsigned *, int *);
    typedef int (*get_function)(int *, int);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    const state_function state = (state_function)dlsym(driver, "cuDevicePrimaryCtxGetState");
    const get_function get = (get_function)dlsym(driver, "cuDeviceGet");
    unsigned flags;
    int handle, active = -1;

    CHECK(get(&handle, device) == 0 && state(handle, &flags, &active) == 0, "device %d", device);
    return active;
}

static int
current_device(void)
{
    int device = -1;

    CHECK(cudaGetDevice(&device) == cudaSuccess, "the current device");
    return device;
}

static tsvd_handle *
make_handle(int device)
{
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    config.device = device;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    return handle;
}

/* A process that has no context yet; calls on the last device. */
static void
test_contexts(int count)
{
    const int last = count - 1;
    struct work w = make_work(TSVD_FLOAT64, 300, 1);
    tsvd_handle *handle;
    tsvd_cuda_device device;
    tsvd_error error;

    for (int i = 0; i < count; i++) {
        CHECK(tsvd_cuda_device_usable(i, &error) == TSVD_OK, "%s", error.text);
        CHECK(tsvd_cuda_device_facts(i, &device, &error) == TSVD_OK, "%s", error.text);
        CHECK(device.memory_free == 0 && device.memory_total > 0, "%llu bytes free",
              (unsigned long long)device.memory_free);
        CHECK(device.clock_khz > 0 && device.single_to_double > 0 && device.memory_pools == 1,
              "%d kHz, %d", device.clock_khz, device.single_to_double);
    }
    for (int i = 0; i < count; i++) {
        CHECK(has_context(i) == 0, "questions made a context on device %d", i);
    }
    handle = make_handle(last);
    CHECK(solve_on(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
    check_result(&w, 0, 0, 1e-12);
    CHECK(tsvd_trim(handle, &error) == TSVD_OK, "%s", error.text);
    for (int i = 0; i < count; i++) {
        CHECK(has_context(i) == (i == last), "device %d of %d", i, count);
        CHECK(tsvd_cuda_device_facts(i, &device, &error) == TSVD_OK, "%s", error.text);
        CHECK((device.memory_free > 0) == (i == last) && device.memory_free <= device.memory_total,
              "%llu bytes free", (unsigned long long)device.memory_free);
    }
    for (int i = 0; i < last; i++) {
        CHECK(has_context(i) == 0, "a question made a context on device %d", i);
    }
    CHECK(current_device() == 0, "device %d is current", current_device());
    tsvd_destroy(handle);
    handle = make_handle(last); /* the context is still there, and so is the runtime's code */
    CHECK(solve_on(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
    check_result(&w, 0, 0, 1e-12);
    tsvd_destroy(handle);
    free_work(&w);
}

/* The caller uses the runtime itself, on another device or on the same. */
static void
test_current_device(int count)
{
    struct work w = make_work(TSVD_FLOAT32, 100, 3);
    tsvd_error error;

    for (int own = 0; own < count; own++) {
        for (int device = 0; device < count; device++) {
            tsvd_handle *handle;
            void *p = NULL;

            CHECK(cudaSetDevice(own) == cudaSuccess && cudaMalloc(&p, 1000) == cudaSuccess, "own");
            handle = make_handle(device);
            CHECK(current_device() == own, "after create");
            CHECK(solve_on(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
            CHECK(current_device() == own, "after a call");
            tsvd_destroy(handle);
            CHECK(current_device() == own, "after destroy");
            CHECK(cudaMemset(p, 1, 1000) == cudaSuccess && cudaFree(p) == cudaSuccess, "own");
        }
    }
    free_work(&w);
}

static uint64_t
of_pool(cudaMemPool_t pool, cudaMemPoolAttr attribute)
{
    uint64_t bytes = 0;

    CHECK(cudaMemPoolGetAttribute(pool, attribute, &bytes) == cudaSuccess, "a pool");
    return bytes;
}

/* The handle's pool keeps memory that calls give back, up to its bound; CUDA's own pool is left as
   it was. */
static void
test_kept_memory(void)
{
    tsvd_handle *handle = make_handle(0);
    struct cuda_device *device = handle->cuda;
    struct cuda_call *call = &device->call;
    struct work w = make_work(TSVD_FLOAT64, 500, 1);
    const size_t step = (size_t)256 << 20;
    cudaMemPool_t shared;
    size_t available, total, taken = 0;
    void *p[2];
    tsvd_error error;

    CHECK(cudaMemGetInfo(&available, &total) == cudaSuccess, "free memory");
    CHECK(device->home->kept == total / KEPT_PART, "%llu", (unsigned long long)device->home->kept);
    CHECK(solve_on(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK(of_pool(device->pool, cudaMemPoolAttrReservedMemCurrent) > 0, "nothing is kept");
    CHECK(of_pool(device->pool, cudaMemPoolAttrUsedMemCurrent) == 0, "memory is in use");

    CHECK(tsvd_trim(handle, &error) == TSVD_OK, "%s", error.text);
    device->home->kept = 3 * step; /* as of a smaller device, so that the test is fast */
    for (int i = 0; i < 2; i++) {
        const size_t bytes = i == 0 ? 2 * step : 4 * step;

        CHECK(tsvdi_cuda_enter(device, &error) == TSVD_OK, "%s", error.text);
        CHECK(tsvdi_cuda_alloc(call, bytes / 2, &p[0]) == TSVD_OK, "%s", error.text);
        CHECK(tsvdi_cuda_alloc(call, bytes / 2, &p[1]) == TSVD_OK, "%s", error.text);
        tsvdi_cuda_free(call, p[0]);
        tsvdi_cuda_free(call, p[1]);
        tsvdi_cuda_leave(device, TSVD_OK);
        taken = of_pool(device->pool, cudaMemPoolAttrReservedMemCurrent);
        CHECK(taken <= device->home->kept, "%zu bytes are kept", taken);
        CHECK(i == 1 || taken >= bytes, "%zu bytes are kept", taken);
    }
    CHECK(tsvd_trim(handle, &error) == TSVD_OK, "%s", error.text);
    CHECK(of_pool(device->pool, cudaMemPoolAttrReservedMemCurrent) == 0, "trim keeps memory");
    CHECK(device->pinned_results == NULL && device->blas == NULL, "trim keeps buffers");
    CHECK(cudaDeviceGetDefaultMemPool(&shared, 0) == cudaSuccess, "CUDA's pool");
    CHECK(of_pool(shared, cudaMemPoolAttrReleaseThreshold) == 0, "the process's pool was changed");
    tsvd_destroy(handle);
    free_work(&w);
}

int
main(void)
{
    tsvd_error error;
    int count;

    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return SKIPPED;
    }
    test_contexts(count); /* first: it needs a process without contexts */
    test_current_device(count);
    test_kept_memory();
    return report();
}
