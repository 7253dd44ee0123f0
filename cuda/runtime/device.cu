/*
 * What a handle holds of a CUDA device (device.h): made, entered, left and ended; its memory.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "cluster.h"
#include "runtime/blas.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/failure.h"
#include "runtime/memory.h"
#include "runtime/sender.h"
#include "runtime/transfer.h"
#include "runtime/usable.h"

extern "C" {
#include "host/bytes.h"
#include "host/library.h"
}

static tsvd_status
out_of_memory(struct cuda_call *call, uint64_t available)
{
    call->error->device = call->device->number;
    call->error->wanted = call->wanted;
    call->error->available = available;
    return tsvdi_fail(call->error, TSVD_ERR_MEMORY,
                      "out of memory on CUDA device %d: %llu bytes wanted, %llu bytes free",
                      call->device->number, (unsigned long long)call->wanted,
                      (unsigned long long)available);
}

tsvd_status
tsvdi_cuda_fail(struct cuda_call *call, cudaError_t code, const char *text, const char *file,
                int line)
{
    tsvd_status status = tsvdi_cuda_failed(code, text, file, line, call->error);

    call->error->device = call->device->number;
    if (status == TSVD_ERR_MEMORY && call->wanted > 0) {
        return out_of_memory(call, tsvdi_cuda_context_memory_free(call->device->number));
    }
    return status;
}

/* ---- what a handle holds ---- */

/* A pool of the handle's own: freed memory stays in it for the next call, as far as bound_pool()
   lets it.  During a call all of it stays: the pool would else lose it at each synchronization. */
static tsvd_status
make_pool(struct cuda_call *call)
{
    cudaMemPoolProps properties;
    uint64_t keep = UINT64_MAX;
    size_t available, total;
    tsvd_status ret = TSVD_OK;

    memset(&properties, 0, sizeof(properties));
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = call->device->number;
    CUDA_TRY(call, cudaMemPoolCreate(&call->device->home->pool, &properties));
    call->device->pool = call->device->home->pool;
    CUDA_TRY(call,
             cudaMemPoolSetAttribute(call->device->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CUDA_TRY(call, cudaMemGetInfo(&available, &total));
    call->device->home->kept = total / KEPT_PART;
out:
    return ret;
}

/* Gives back what the pool holds beyond its bound. */
static void
bound_pool(struct cuda_call *call)
{
    const uint64_t bound = tsvdi_cuda_home_bound(call->device->home);
    uint64_t reserved = 0;

    if (call->device->pool != NULL &&
        cudaMemPoolGetAttribute(call->device->pool, cudaMemPoolAttrReservedMemCurrent, &reserved) ==
            cudaSuccess &&
        reserved > bound) {
        (void)cudaStreamSynchronize(call->stream); /* what is in use cannot be given back */
        (void)cudaMemPoolTrimTo(call->device->pool, bound);
    }
}

/* Fills in what create() makes; the device is the current one. */
static tsvd_status
fill(struct cuda_call *call, const tsvd_config *config)
{
    const int device = call->device->number;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_loads(device, call->error));
    TSVD_TRY(tsvdi_cuda_home_make(device, call->device->context, call->error, &call->device->home));
    CUDA_TRY(call, cudaDeviceGetAttribute(&call->device->multiprocessors,
                                          cudaDevAttrMultiProcessorCount, device));
    CUDA_TRY(call, cudaDeviceGetAttribute(&call->device->shared_most,
                                          cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (config->device_allocator != NULL) {
        call->device->allocator = *config->device_allocator;
    } else {
        TSVD_TRY(make_pool(call));
    }
    CUDA_TRY(call, cudaStreamCreateWithFlags(&call->device->home->own, cudaStreamNonBlocking));
    call->device->own_stream = call->device->home->own;
    call->stream = config->stream != NULL ? (cudaStream_t)config->stream : call->device->own_stream;
    for (int i = 0; i < 2; i++) {
        CUDA_TRY(call, cudaEventCreateWithFlags(&call->device->copied[i], cudaEventDisableTiming));
        CUDA_TRY(call, cudaEventCreateWithFlags(&call->device->staged[i], cudaEventDisableTiming));
    }
    TSVD_TRY(tsvdi_library_directories(config->library_paths, config->library_path_count,
                                       call->device->host, call->error,
                                       &call->device->directories));
out:
    return ret;
}

/* Makes the device the current one; errors go to `error`.  leave() is due also after a failure. */
static tsvd_status
make_current(struct cuda_call *call, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    call->error = error;
    call->entered = call->current = 0;
    call->wanted = 0;
    tsvdi_cuda_forget(); /* what failed before, elsewhere, is not this call's failure */
    CUDA_TRY(call, tsvdi_cuda_context_push(call->device->context));
    call->current = 1;
out:
    return ret;
}

tsvd_status
tsvdi_cuda_create(const tsvd_config *config, const tsvd_allocator *host, struct cuda_device **made,
                  tsvd_error *error)
{
    struct cuda_device *device = NULL;
    struct cuda_call *call;
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    *made = NULL;
    error = error != NULL ? error : &own;
    TSVD_TRY(tsvdi_cuda_may_use(config->device, config->device_allocator == NULL, error));
    TSVD_TRY(tsvdi_host_alloc(host, sizeof(*device), error, (void **)&device));
    memset(device, 0, sizeof(*device));
    device->number = config->device;
    device->host = host;
    call = &device->call;
    call->device = device;
    call->error = error;
    CUDA_TRY(call, tsvdi_cuda_context_keep(device->number, &device->context));
    TSVD_TRY(make_current(call, error));
    TSVD_TRY(fill(call, config));
    tsvdi_cuda_leave(device, TSVD_OK);
    call->error = NULL;
    *made = device;
    device = NULL;
out:
    if (device != NULL) {
        tsvdi_cuda_leave(device, TSVD_OK);
        tsvdi_cuda_destroy(device);
    }
    return ret;
}

/* What trim() and destroy() give back; the device is the current one. */
static void
drop_caches(struct cuda_call *call)
{
    (void)cudaStreamSynchronize(call->stream);
    tsvdi_cuda_blas_close(call);
    tsvdi_cuda_drop_pinned(call);
    tsvdi_cuda_context_end_share(&call->device->share);
    call->device->share_asked = 0;
}

static void
end_event(cudaEvent_t event)
{
    if (event != NULL) {
        (void)cudaEventDestroy(event);
    }
}

static void
end_stream(cudaStream_t stream)
{
    if (stream != NULL) {
        (void)cudaStreamSynchronize(stream);
        (void)cudaStreamDestroy(stream);
    }
}

void
tsvdi_cuda_destroy(struct cuda_device *device)
{
    struct cuda_call *call = &device->call;
    tsvd_error error;

    if (device->context != NULL && make_current(call, &error) == TSVD_OK) {
        drop_caches(call);
        for (int i = 0; i < 2; i++) {
            end_event(device->copied[i]);
            end_event(device->staged[i]);
        }
        for (cudaEvent_t event : device->mark) {
            end_event(event);
        }
        end_stream(device->sending);
        end_stream(device->urgent);
        if (device->own_stream != NULL) {
            (void)cudaStreamSynchronize(device->own_stream);
        }
        tsvdi_cuda_home_leave(device->home);
    }
    tsvdi_cuda_leave(device, TSVD_OK);
    tsvdi_host_free(device->host, device->cublas);
    tsvdi_host_free(device->host, device->directories);
    tsvdi_host_free(device->host, call);
}

void
tsvdi_cuda_set_stream(struct cuda_device *device, void *stream)
{
    device->call.stream = stream != NULL ? (cudaStream_t)stream : device->own_stream;
}

tsvd_status
tsvdi_cuda_trim(struct cuda_device *device, tsvd_error *error)
{
    struct cuda_call *call = &device->call;
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(make_current(call, error != NULL ? error : &own));
    drop_caches(call);
    if (device->pool != NULL) {
        CUDA_TRY(call, cudaMemPoolTrimTo(device->pool, 0));
    }
out:
    tsvdi_cuda_leave(device, ret);
    return ret;
}

/* Refuses a stream of the caller's that is being captured into a graph, which the host's part of a
   call would break. */
static tsvd_status
refuse_capture(struct cuda_call *call)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    tsvd_status ret = TSVD_OK;

    if (call->stream != call->device->own_stream) {
        CUDA_TRY(call, cudaStreamIsCapturing(call->stream, &capture));
        if (capture != cudaStreamCaptureStatusNone) {
            ret = tsvdi_fail(call->error, TSVD_ERR_ARGUMENT,
                             "the stream is being captured into a graph: tsvd waits for results on "
                             "the host and cannot be captured");
        }
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_enter(struct cuda_device *device, tsvd_error *error)
{
    struct cuda_call *call = &device->call;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(make_current(call, error));
    TSVD_TRY(refuse_capture(call));
    call->entered = 1;
    tsvdi_cuda_home_keep_all(device->home);
    if (device->pinned_results == NULL) {
        call->wanted = PINNED_RESULT_BYTES;
        CUDA_TRY(call, cudaHostAlloc(&device->pinned_results, PINNED_RESULT_BYTES,
                                     cudaHostAllocPortable));
        call->wanted = 0;
    }
out:
    return ret;
}

void
tsvdi_cuda_leave(struct cuda_device *device, tsvd_status status)
{
    struct cuda_call *call = &device->call;
    tsvdi_cuda_end_sender(call);
    if (status != TSVD_OK && call->entered) {
        /* work may still be under way that uses the pinned buffers */
        (void)cudaStreamSynchronize(call->stream);
    }
    if (call->entered) {
        tsvdi_cuda_blas_leave(call);
        bound_pool(call);
    }
    tsvdi_cuda_forget();
    if (call->current) {
        tsvdi_cuda_context_pop();
    }
    call->entered = call->current = 0;
}

tsvd_status
tsvdi_cuda_make_marks(struct cuda_call *call)
{
    tsvd_status ret = TSVD_OK;

    for (cudaEvent_t &event : call->device->mark) {
        if (event == NULL) {
            CUDA_TRY(call, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        }
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_make_urgent(struct cuda_call *call)
{
    int least, greatest;
    tsvd_status ret = TSVD_OK;

    if (call->device->urgent == NULL) {
        CUDA_TRY(call, cudaDeviceGetStreamPriorityRange(&least, &greatest));
        CUDA_TRY(call, cudaStreamCreateWithPriority(&call->device->urgent, cudaStreamNonBlocking,
                                                    greatest));
    }
    TSVD_TRY(tsvdi_cuda_make_marks(call));
out:
    return ret;
}

cudaStream_t
tsvdi_cuda_shared_stream(struct cuda_call *call)
{
    if (!call->device->share_asked) {
        /* the multiprocessors that the share leaves out have room for a cluster of blocks */
        tsvdi_cuda_context_share(call->device->number, CLUSTER_MOST, &call->device->share);
        call->device->share_asked = 1;
        /* drivers may refuse events of another context */
        if (call->device->share.stream != NULL &&
            (cudaEventRecord(call->device->mark[0], call->device->share.stream) != cudaSuccess ||
             cudaStreamWaitEvent(call->stream, call->device->mark[0], 0) != cudaSuccess)) {
            tsvdi_cuda_forget();
            tsvdi_cuda_context_end_share(&call->device->share);
        }
    }
    return call->device->share.stream != NULL ? call->device->share.stream : call->stream;
}

/* ---- device memory ---- */

/* A request for more bytes than this is refused if less is free: the driver would try, and take all
   memory that there is. */
#define CHECKED_BYTES ((size_t)256 << 20)

/* This many are free, except on a full device. */
#define FEW_BYTES ((size_t)32 << 20)

/* Bytes that the pool holds and nobody uses.  To ask what the device has free takes longer. */
static tsvd_status
idle_bytes(struct cuda_call *call, uint64_t *bytes)
{
    uint64_t reserved = 0, used = 0;
    tsvd_status ret = TSVD_OK;

    if (call->device->pool != NULL) {
        CUDA_TRY(call, cudaMemPoolGetAttribute(call->device->pool,
                                               cudaMemPoolAttrReservedMemCurrent, &reserved));
        CUDA_TRY(call,
                 cudaMemPoolGetAttribute(call->device->pool, cudaMemPoolAttrUsedMemCurrent, &used));
    }
    /* the driver may take memory back between the questions */
    *bytes = reserved > used ? reserved - used : 0;
out:
    return ret;
}

tsvd_status
tsvdi_cuda_memory_free(struct cuda_call *call, uint64_t *bytes)
{
    size_t outside = 0, total = 0;
    uint64_t idle = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(idle_bytes(call, &idle));
    CUDA_TRY(call, cudaMemGetInfo(&outside, &total));
    *bytes = bytes_add(outside, idle);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_memory_for(struct cuda_call *call, uint64_t wanted, uint64_t *bytes)
{
    uint64_t idle = 0;
    tsvd_status ret = TSVD_OK;

    *bytes = wanted;
    if (wanted > FEW_BYTES) {
        TSVD_TRY(idle_bytes(call, &idle));
        if (wanted > idle) {
            TSVD_TRY(tsvdi_cuda_memory_free(call, bytes));
            *bytes /= 2;
        }
    }
out:
    return ret;
}

/* Takes device memory from the caller's allocator. */
static tsvd_status
alloc_outside(struct cuda_call *call, size_t bytes, void **p)
{
    *p = call->device->allocator.allocate(call->device->allocator.arg, bytes, call->stream);
    if (*p == NULL) {
        call->error->device = call->device->number;
        call->error->wanted = bytes;
        return tsvdi_fail(call->error, TSVD_ERR_MEMORY,
                          "the caller's allocator has no %zu bytes of memory on CUDA device %d",
                          bytes, call->device->number);
    }
    return TSVD_OK;
}

tsvd_status
tsvdi_cuda_alloc(struct cuda_call *call, size_t bytes, void **p)
{
    cudaError_t code;
    uint64_t available = 0, idle = 0;
    tsvd_status ret = TSVD_OK;

    *p = NULL;
    bytes = bytes > 0 ? bytes : 1;
    call->wanted = bytes;
    if (call->device->allocator.allocate != NULL) {
        TSVD_TRY(alloc_outside(call, bytes, p));
        goto out;
    }
    if (bytes > CHECKED_BYTES) {
        TSVD_TRY(idle_bytes(call, &idle));
    }
    if (bytes > CHECKED_BYTES && bytes > idle) {
        TSVD_TRY(tsvdi_cuda_memory_free(call, &available));
        if (bytes > available && call->sender != NULL) {
            tsvdi_cuda_drain(call);
            TSVD_TRY(tsvdi_cuda_memory_free(call, &available));
        }
        if (bytes > available) {
            TSVD_TRY(out_of_memory(call, available));
        }
    }
    code = cudaMallocFromPoolAsync(p, bytes, call->device->pool, call->stream);
    if (code == cudaErrorMemoryAllocation) {
        /* what earlier calls left in the pool may lie in pieces that are too small */
        tsvdi_cuda_forget();
        tsvdi_cuda_drain(call);
        CUDA_TRY(call, cudaStreamSynchronize(call->stream));
        CUDA_TRY(call, cudaMemPoolTrimTo(call->device->pool, 0));
        CUDA_TRY(call, cudaMallocFromPoolAsync(p, bytes, call->device->pool, call->stream));
    } else if (code != cudaSuccess) {
        ret = tsvdi_cuda_fail(call, code, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
    }
out:
    if (ret != TSVD_OK) {
        *p = NULL;
    }
    call->wanted = 0; /* what fails later fails for another reason */
    return ret;
}

void
tsvdi_cuda_free(struct cuda_call *call, void *d_p)
{
    if (d_p == NULL) {
        return;
    }
    if (call->device->allocator.release != NULL) {
        call->device->allocator.release(call->device->allocator.arg, d_p, call->stream);
    } else if (cudaFreeAsync(d_p, call->stream) != cudaSuccess) {
        tsvdi_cuda_forget();
    }
}
