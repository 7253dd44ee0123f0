/*
 * Arrays between host and device at once; see transfer.h.
 */
#include <stdint.h>
#include <string.h>

#include "runtime/transfer.h"

/* What one thread gathers at a time. */
#define GATHER_BYTES ((size_t)256 << 10)

/* ---- at once ---- */

tsvd_status
tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes)
{
    tsvd_status ret = TSVD_OK;

    /* From pageable memory this returns when the source may be changed. */
    CUDA_TRY(call, cudaMemcpyAsync(d_to, from, bytes, cudaMemcpyHostToDevice, call->stream));
    if (call->host->allocate != tsvdi_host_allocator.allocate) { /* the caller's may be pinned */
        CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    }
out:
    return ret;
}

/* Writes to pinned memory. */
static __global__ void
land_kernel(char *to, const char *from, size_t bytes)
{
    const size_t words = bytes / sizeof(uint32_t);
    const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (size_t i = first; i < words; i += (size_t)gridDim.x * blockDim.x) {
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
    }
    if (first < bytes % sizeof(uint32_t)) {
        to[words * sizeof(uint32_t) + first] = from[words * sizeof(uint32_t) + first];
    }
}

/* A kernel copies: the copy engine may have megabytes of the sender's to do first. */
tsvd_status
tsvdi_cuda_land(struct cuda_call *call, void *to, const void *d_from, size_t bytes)
{
    enum { THREADS = 256, BLOCKS = 64 };
    tsvd_status ret = TSVD_OK;

    for (size_t at = 0; at < bytes; at += LANDING_BYTES) {
        const size_t left = bytes - at, count = left < LANDING_BYTES ? left : LANDING_BYTES;
        const size_t blocks = count / sizeof(uint32_t) / THREADS + 1;

        land_kernel<<<(unsigned)(blocks < BLOCKS ? blocks : (size_t)BLOCKS), THREADS, 0,
                      call->stream>>>((char *)call->landing, (const char *)d_from + at, count);
        CUDA_LAUNCHED(call);
        CUDA_TRY(call, cudaStreamSynchronize(call->stream));
        memcpy((char *)to + at, call->landing, count);
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_make_pinned(struct cuda_call *call, void *pinned[2], size_t bytes)
{
    tsvd_status ret = TSVD_OK;

    for (int i = 0; i < 2; i++) {
        if (pinned[i] == NULL) {
            call->wanted = bytes;
            CUDA_TRY(call, cudaHostAlloc(&pinned[i], bytes, cudaHostAllocPortable));
            call->wanted = 0;
        }
    }
out:
    return ret;
}

void
tsvdi_cuda_drop_pinned(struct cuda_call *call)
{
    void **const buffers[] = {&call->pinned[0], &call->pinned[1], &call->stage[0], &call->stage[1],
                              &call->landing};

    for (void **buffer : buffers) {
        (void)cudaFreeHost(*buffer);
        *buffer = NULL;
    }
}

/* ---- large input ---- */

struct gather_job {
    cuda_source *source;
    const void *arg;
    size_t begin, bytes, part; /* of the whole; of a part */
    char *to;
};

static tsvd_status
gather_part(void *arg, int worker, int64_t index)
{
    const struct gather_job *job = (const struct gather_job *)arg;
    const size_t at = (size_t)index * job->part, left = job->bytes - at;

    (void)worker;
    job->source(job->arg, job->begin + at, left < job->part ? left : job->part, job->to + at);
    return TSVD_OK;
}

tsvd_status
tsvdi_cuda_stage(struct cuda_call *call, void *d_to, size_t bytes, size_t unit, cuda_source *source,
                 const void *arg)
{
    const size_t part = unit < GATHER_BYTES ? GATHER_BYTES / unit * unit : unit;
    const size_t piece = part < STAGE_BYTES ? STAGE_BYTES / part * part : unit;
    const int threads = tsvdi_host_threads_for(call->threads, (int64_t)(bytes / part));
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_make_pinned(call, call->stage, STAGE_BYTES));
    for (size_t begin = 0, turn = 0; begin < bytes; begin += piece, turn = 1 - turn) {
        struct gather_job job = {source,        arg,  begin,
                                 bytes - begin, part, (char *)call->stage[turn]};

        job.bytes = job.bytes < piece ? job.bytes : piece;
        CUDA_TRY(call, cudaEventSynchronize(call->staged[turn])); /* the buffer's last copy */
        TSVD_TRY(tsvdi_host_for_each(threads, (int64_t)((job.bytes + part - 1) / part), gather_part,
                                     &job));
        CUDA_TRY(call, cudaMemcpyAsync((char *)d_to + begin, call->stage[turn], job.bytes,
                                       cudaMemcpyHostToDevice, call->stream));
        CUDA_TRY(call, cudaEventRecord(call->staged[turn], call->stream));
    }
out:
    return ret;
}
