/*
 * CUDA back end: singular values by Sturm counts; values.h says which file does what.  Mirrors
 * csrc/cpu/values/values.c.
 */
#include "values/values.h"

/* Warps of a block that has many matrices, one a warp; or a single large one. */
enum {
    UNCROSS_WARPS = 4,
    UNCROSS_MORE_WARPS = 32,
    UNCROSS_THREADS = UNCROSS_MORE_WARPS * (int)WARP
};

/* The least x of the lanes before, infinity in the first one.  *all: the least of all lanes up to
   this one. */
static __device__ __forceinline__ real
least_before(real x, int lane, real *all)
{
    real before;

    for (int step = 1; step < WARP; step *= 2) {
        before = __shfl_up_sync(~0U, x, (unsigned)step);
        x = lane >= step ? r_min(x, before) : x;
    }
    *all = x;
    before = __shfl_up_sync(~0U, x, 1);
    return lane > 0 ? before : r_from_bits(R_INFINITY_BITS);
}

/* Counts are monotone only up to rounding: neighbours may have crossed by an ulp.  Each value
   becomes the least of those up to it.  A matrix has WARPS warps of a block. */
template <int WARPS>
static __global__ void
__launch_bounds__(UNCROSS_THREADS) uncross_kernel(int64_t batch, int64_t values, real *d_s)
{
    const int64_t index = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const int thread = (int)threadIdx.x, lane = thread % WARP;
    const int64_t part = (values + WARPS * WARP - 1) / (WARPS * WARP);
    const int64_t begin = bracket_min(thread * part, values);
    const int64_t end = bracket_min(begin + part, values);
    real *s = d_s + index * values, least = r_from_bits(R_INFINITY_BITS), all;
    __shared__ real of_warp[WARPS];

    if (index >= batch) {
        return;
    }
#pragma unroll 8
    for (int64_t i = begin; i < end; i++) {
        least = r_min(least, s[i]);
    }
    least = least_before(least, lane, &all);
    if (WARPS > 1) {
        if (lane == WARP - 1) {
            of_warp[thread / WARP] = all;
        }
        __syncthreads();
        for (int i = 0; i < thread / WARP; i++) {
            least = r_min(least, of_warp[i]);
        }
    }
#pragma unroll 8
    for (int64_t i = begin; i < end; i++) {
        least = r_min(least, s[i]);
        s[i] = least;
    }
}

static tsvd_status
uncross(struct cuda_call *call, int64_t batch, int64_t values, real *d_s)
{
    tsvd_status ret = TSVD_OK;

    if (values <= UNCROSS_THREADS) {
        uncross_kernel<1>
            <<<blocks_for(batch, UNCROSS_WARPS), dim3(WARP, UNCROSS_WARPS), 0, call->stream>>>(
                batch, values, d_s);
    } else {
        uncross_kernel<UNCROSS_MORE_WARPS>
            <<<(unsigned)batch, UNCROSS_THREADS, 0, call->stream>>>(batch, values, d_s);
    }
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_values_on_device(struct tsvd_context *ctx, int64_t n, int64_t batch, const real *d_d,
                            const real *d_e, int64_t first, int64_t last, const real *d_hint,
                            real eps, real *d_s, int64_t *counts)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t values = last - first;
    const double begin = ctx->done;
    struct values_device v = {n, batch, first, last, d_d, d_e, d_hint, eps, d_s};
    tsvd_status ret = TSVD_OK;

    if (batch == 0 || values == 0) {
        return TSVD_OK;
    }
    /* by the size of the whole batch, so that no bit depends on how it was cut */
    if (n <= (ctx->total > 1 ? (int64_t)VALUES_BATCH_ORDER : (int64_t)VALUES_SINGLE_ORDER) &&
        tsvdi_cuda_values_fit(call->device, v)) {
        TSVD_TRY(tsvdi_cuda_values_batch(ctx, v, counts));
    } else {
        v.count = 1;
        for (int64_t i = 0; i < batch; i++) {
            v.d_d = d_d + i * n;
            v.d_e = d_e + i * n;
            v.d_hint = d_hint != NULL ? d_hint + i * values : NULL;
            v.d_s = d_s + i * values;
            TSVD_TRY(tsvdi_cuda_values_search(
                ctx, v, begin + (1 - begin) * (double)(i + 1) / (double)batch, counts));
        }
    }
    TSVD_TRY(uncross(call, batch, values, d_s));
out:
    return ret;
}

static tsvd_status
find(struct tsvd_context *ctx, struct values_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct chunk *chunk = job->chunk;
    struct values_device v = {job->n, job->count, job->first, job->last, NULL,
                              NULL,   NULL,       job->eps,   NULL};
    const int64_t entries = job->n * job->count, values = (job->last - job->first) * job->count;
    const size_t matrix = (size_t)entries * sizeof(real), result = (size_t)values * sizeof(real);
    const real *d_d, *d_e;
    real *d_workspace = NULL, *space[2], *d_s, *d_hint = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, 2 * matrix + 2 * result, (void **)&d_workspace));
    d_s = d_workspace + 2 * entries;
    space[0] = d_workspace;
    space[1] = d_workspace + entries;
    TSVD_TRY(cuda_entries(call, chunk, entries, space, &d_d, &d_e));
    if (job->hint != NULL) {
        d_hint = d_s + values;
        TSVD_TRY(tsvdi_cuda_upload(call, d_hint, job->hint, result));
    } else if (tsvdi_cuda_values_hinted(ctx, v)) {
        d_hint = d_s + values;
        v.d_d = d_d;
        v.d_e = d_e;
        TSVD_TRY(tsvdi_cuda_values_hints(call, v, d_hint));
    }
    TSVD_TRY(tsvdi_cuda_values_on_device(ctx, job->n, job->count, d_d, d_e, job->first, job->last,
                                         d_hint, job->eps, d_s, &job->counts));
    TSVD_TRY(cuda_deliver(ctx, job->s, d_s, result));
out:
    tsvdi_cuda_free_after_downloads(call, d_workspace);
    return ret;
}

static struct bytes
values_bytes(const struct svd_plan *plan)
{
    const int64_t entries = plan->reported.n * plan->reported.chunk;
    const int64_t values = plan->reported.count * plan->reported.chunk;
    struct bytes bytes = {0, 0};

    /* the values of a chunk may be in flight to the host while those of the next are found */
    bytes.device = bytes_of(2 * entries + 2 * values, sizeof(real));
    bytes.device = bytes_of(plan->reported.chunk < plan->reported.matrices ? 2 : 1, bytes.device);
    bytes.device = bytes_add(bytes.device, tsvdi_cuda_values_search_bytes(plan));
    return bytes;
}

const struct values_ops tsvdi_cuda_values = {
    .find = find,
    .count = NULL,
    .bytes = values_bytes,
};
