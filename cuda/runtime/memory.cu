/*
 * Device memory that outlives its handle (memory.h), and the order of streams: the functions
 * tsvd_memory_*() and tsvd_wait_for() of tsvd.h.
 *
 * Memory may be given back by any thread, long after the call: nothing here uses the handle.
 */
#include <string.h>

#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/failure.h"
#include "runtime/memory.h"

struct tsvd_memory {
    struct cuda_home *home;   /* one of its owners is this memory */
    void *data;               /* on the device */
    size_t bytes;             /* of data */
    cudaStream_t stream;      /* the memory is used in its order */
    tsvd_allocator allocator; /* the caller's, which it is from; functions NULL: the home's pool */
};

/* ---- the home ---- */

tsvd_status
tsvdi_cuda_home_make(int device, void *context, tsvd_error *error, struct cuda_home **made)
{
    struct cuda_home *home = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(&tsvdi_host_allocator, sizeof(*home), error, (void **)&home));
    memset(home, 0, sizeof(*home));
    home->device = device;
    home->context = context;
    home->owners = 1;
    home->forks = tsvdi_host_forks();
    *made = home;
out:
    return ret;
}

void
tsvdi_cuda_home_leave(struct cuda_home *home)
{
    if (home == NULL || __atomic_sub_fetch(&home->owners, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    if (home->forks == tsvdi_host_forks()) {
        if (home->own != NULL) {
            (void)cudaStreamDestroy(home->own);
        }
        if (home->pool != NULL) {
            (void)cudaMemPoolDestroy(home->pool);
        }
        tsvdi_cuda_forget();
    }
    tsvdi_host_free(&tsvdi_host_allocator, home);
}

uint64_t
tsvdi_cuda_home_bound(const struct cuda_home *home)
{
    return home->kept + __atomic_load_n(&home->results, __ATOMIC_RELAXED);
}

void
tsvdi_cuda_home_keep_all(struct cuda_home *home)
{
    uint64_t keep = UINT64_MAX;

    if (home->pool != NULL && __atomic_exchange_n(&home->lowered, 0, __ATOMIC_RELAXED) != 0) {
        (void)cudaMemPoolSetAttribute(home->pool, cudaMemPoolAttrReleaseThreshold, &keep);
    }
}

/* Lets the pool give back what it holds beyond its bound, at the next synchronization of anyone:
   there may be no further call of the handle to do so. */
static void
bound_idle_pool(struct cuda_home *home)
{
    uint64_t reserved = 0, bound = tsvdi_cuda_home_bound(home);

    if (cudaMemPoolGetAttribute(home->pool, cudaMemPoolAttrReservedMemCurrent, &reserved) ==
            cudaSuccess &&
        reserved > bound &&
        cudaMemPoolSetAttribute(home->pool, cudaMemPoolAttrReleaseThreshold, &bound) ==
            cudaSuccess) {
        __atomic_store_n(&home->lowered, 1, __ATOMIC_RELAXED);
    }
}

/* ---- the order of streams ---- */

/* What a thread must use in the place of `stream`, which another thread may have given.
   cudaStreamPerThread is another stream in each thread, but the legacy default stream waits for all
   of them. */
static cudaStream_t
for_every_thread(cudaStream_t stream)
{
    return stream == cudaStreamPerThread || stream == NULL ? cudaStreamLegacy : stream;
}

/* Makes one stream wait for what is in another now. */
static cudaError_t
wait_for(cudaStream_t waiting, cudaStream_t first)
{
    cudaEvent_t event = NULL;
    cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);

    if (code == cudaSuccess) {
        code = cudaEventRecord(event, first);
    }
    if (code == cudaSuccess) {
        code = cudaStreamWaitEvent(waiting, event, 0);
    }
    if (event != NULL) {
        (void)cudaEventDestroy(event); /* it lasts until it completes */
    }
    return code;
}

tsvd_status
tsvdi_cuda_wait_for(struct cuda_device *device, void *stream, tsvd_error *error)
{
    struct cuda_call *call = &device->call;
    cudaStream_t first = (cudaStream_t)stream;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_enter(device, error));
    first = first == NULL ? cudaStreamLegacy : first;
    if (first != call->stream) {
        CUDA_TRY(call, wait_for(call->stream, first));
    }
out:
    tsvdi_cuda_leave(device, ret);
    return ret;
}

tsvd_status
tsvdi_cuda_synchronize(struct cuda_device *device, tsvd_error *error)
{
    struct cuda_call *call = &device->call;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_enter(device, error));
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
out:
    tsvdi_cuda_leave(device, ret);
    return ret;
}

void *
tsvdi_cuda_stream(const struct cuda_device *device)
{
    return device->call.stream;
}

/* ---- memory ---- */

tsvd_status
tsvdi_cuda_memory_take(struct cuda_device *device, size_t bytes, tsvd_memory **made,
                       tsvd_error *error)
{
    struct cuda_call *call = &device->call;
    struct tsvd_memory *memory = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_enter(device, error));
    TSVD_TRY(tsvdi_host_alloc(&tsvdi_host_allocator, sizeof(*memory), error, (void **)&memory));
    memset(memory, 0, sizeof(*memory));
    TSVD_TRY(tsvdi_cuda_alloc(call, bytes, &memory->data));
    memory->home = device->home;
    memory->bytes = bytes;
    memory->stream = call->stream;
    memory->allocator = device->allocator;
    (void)__atomic_add_fetch(&device->home->owners, 1, __ATOMIC_RELAXED);
    if (device->pool != NULL) {
        (void)__atomic_add_fetch(&device->home->results, bytes, __ATOMIC_RELAXED);
    }
    *made = memory;
    memory = NULL;
out:
    tsvdi_host_free(&tsvdi_host_allocator, memory);
    tsvdi_cuda_leave(device, ret);
    return ret;
}

void *
tsvd_memory_data(const tsvd_memory *memory)
{
    return memory != NULL ? memory->data : NULL;
}

void *
tsvd_memory_stream(const tsvd_memory *memory)
{
    return memory != NULL ? memory->stream : NULL;
}

tsvd_status
tsvd_memory_wait(const tsvd_memory *memory, void *stream, tsvd_error *error)
{
    cudaStream_t waiting = (cudaStream_t)stream;
    cudaError_t code;
    tsvd_status ret = TSVD_OK;

    tsvdi_error_clear(error);
    if (memory == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the memory must not be NULL");
    }
    if (memory->home->forks != tsvdi_host_forks()) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                          "a forked child cannot use the CUDA devices of its parent");
    }
    waiting = waiting == NULL ? cudaStreamLegacy : waiting;
    if (waiting == memory->stream && waiting != cudaStreamPerThread) {
        return TSVD_OK;
    }
    code = tsvdi_cuda_context_push(memory->home->context);
    if (code == cudaSuccess) {
        code = wait_for(waiting, for_every_thread(memory->stream));
        tsvdi_cuda_context_pop();
    }
    if (code != cudaSuccess) {
        ret = tsvdi_cuda_failed(code, "the wait for another stream", __FILE__, __LINE__, error);
        if (error != NULL) {
            error->device = memory->home->device;
        }
    }
    return ret;
}

/* Gives the data back; the context is the current one. */
static void
give_back(struct tsvd_memory *memory)
{
    struct cuda_home *home = memory->home;
    cudaStream_t stream = for_every_thread(memory->stream);

    if (memory->allocator.release != NULL) {
        memory->allocator.release(memory->allocator.arg, memory->data, stream);
        return;
    }
    (void)cudaFreeAsync(memory->data, stream);
    (void)__atomic_sub_fetch(&home->results, memory->bytes, __ATOMIC_RELAXED);
    bound_idle_pool(home);
    tsvdi_cuda_forget();
}

void
tsvd_memory_release(tsvd_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    if (memory->home->forks != tsvdi_host_forks()) {
        tsvdi_cuda_home_leave(memory->home);
    } else if (tsvdi_cuda_context_push(memory->home->context) == cudaSuccess) {
        give_back(memory);
        tsvdi_cuda_home_leave(memory->home);
        tsvdi_cuda_context_pop();
    } /* else CUDA has ended, and all its memory with it */
    tsvdi_host_free(&tsvdi_host_allocator, memory);
}
