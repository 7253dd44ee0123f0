/*
 * Copies of arrays between host and device; see transfer.h.
 */
#include <stdint.h>
#include <string.h>

#include "runtime/transfer.h"

/* ---- small arrays ---- */

tsvd_status
tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes)
{
    tsvd_status ret = TSVD_OK;

    /* From pageable memory this returns when the source may be changed. */
    CUDA_TRY(call, cudaMemcpyAsync(d_to, from, bytes, cudaMemcpyHostToDevice, call->stream));
    if (call->device->host->allocate !=
        tsvdi_host_allocator.allocate) { /* the caller's may be pinned */
        CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    }
out:
    return ret;
}

/* Pieces that are downloaded together, one after another in the pinned buffer. */
struct download {
    struct cuda_piece piece[DOWNLOAD_PIECES];
    int count;
    size_t most, bytes; /* of the largest piece; of all, each in whole words */
};

static void
add(struct download *l, struct cuda_piece piece)
{
    l->piece[l->count++] = piece;
    l->most = piece.bytes > l->most ? piece.bytes : l->most;
    l->bytes += (piece.bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t) * sizeof(uint32_t);
}

/* Writes to pinned memory.  The blocks of a row of the grid copy a piece. */
static __global__ void
download_kernel(char *to, const struct download l)
{
    const struct cuda_piece piece = l.piece[blockIdx.y];
    const size_t words = piece.bytes / sizeof(uint32_t);
    const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const char *from = (const char *)piece.d_from;

    for (unsigned i = 0; i < blockIdx.y; i++) {
        to += (l.piece[i].bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t) * sizeof(uint32_t);
    }
    for (size_t i = first; i < words; i += (size_t)gridDim.x * blockDim.x) {
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
    }
    if (first < piece.bytes % sizeof(uint32_t)) {
        to[words * sizeof(uint32_t) + first] = from[words * sizeof(uint32_t) + first];
    }
}

/* A kernel copies: in the copy engine's queue there may be megabytes of the sender's. */
static tsvd_status
run_download(struct cuda_call *call, const struct download *l)
{
    enum { THREADS = 256, BLOCKS = 64 };
    const size_t blocks = l->most / sizeof(uint32_t) / THREADS + 1;
    const dim3 grid((unsigned)(blocks < BLOCKS ? blocks : (size_t)BLOCKS), (unsigned)l->count);
    const char *from = (const char *)call->device->pinned_results;
    tsvd_status ret = TSVD_OK;

    download_kernel<<<grid, THREADS, 0, call->stream>>>((char *)call->device->pinned_results, *l);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    for (int i = 0; i < l->count; i++) {
        const size_t bytes = l->piece[i].bytes;

        memcpy(l->piece[i].to, from, bytes);
        from += (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t) * sizeof(uint32_t);
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_download(struct cuda_call *call, void *to, const void *d_from, size_t bytes)
{
    const struct cuda_piece piece = {to, d_from, bytes};

    return tsvdi_cuda_download_all(call, &piece, 1);
}

tsvd_status
tsvdi_cuda_download_all(struct cuda_call *call, const struct cuda_piece *piece, int count)
{
    struct download l = {};
    tsvd_status ret = TSVD_OK;

    for (int i = 0; i < count; i++) {
        for (size_t at = 0, part; at < piece[i].bytes; at += part) {
            const size_t left = piece[i].bytes - at;

            if (l.count == DOWNLOAD_PIECES || l.bytes == PINNED_RESULT_BYTES) {
                TSVD_TRY(run_download(call, &l));
                l = {};
            }
            part = left < PINNED_RESULT_BYTES - l.bytes ? left : PINNED_RESULT_BYTES - l.bytes;
            add(&l, {(char *)piece[i].to + at, (const char *)piece[i].d_from + at, part});
        }
    }
    if (l.count > 0) {
        TSVD_TRY(run_download(call, &l));
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
    void **const buffers[] = {&call->device->pinned[0], &call->device->pinned[1],
                              &call->device->staging[0], &call->device->staging[1],
                              &call->device->pinned_results};

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
tsvdi_cuda_upload_blocks(struct cuda_call *call, void *d_to, size_t bytes, size_t unit,
                         cuda_source *source, const void *arg)
{
    const size_t part = unit < GATHER_BYTES ? GATHER_BYTES / unit * unit : unit;
    const size_t piece = part < STAGE_BYTES ? STAGE_BYTES / part * part : unit;
    const int threads = tsvdi_host_threads_for(call->threads, (int64_t)(bytes / part));
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_make_pinned(call, call->device->staging, STAGE_BYTES));
    for (size_t begin = 0, turn = 0; begin < bytes; begin += piece, turn = 1 - turn) {
        struct gather_job job = {source,        arg,  begin,
                                 bytes - begin, part, (char *)call->device->staging[turn]};

        job.bytes = job.bytes < piece ? job.bytes : piece;
        CUDA_TRY(call,
                 cudaEventSynchronize(call->device->staged[turn])); /* the buffer's last copy */
        TSVD_TRY(tsvdi_host_for_each(threads, (int64_t)((job.bytes + part - 1) / part), gather_part,
                                     &job));
        CUDA_TRY(call, cudaMemcpyAsync((char *)d_to + begin, call->device->staging[turn], job.bytes,
                                       cudaMemcpyHostToDevice, call->stream));
        CUDA_TRY(call, cudaEventRecord(call->device->staged[turn], call->stream));
    }
out:
    return ret;
}
