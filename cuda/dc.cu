/*
 * Divide and conquer on the device: the operations of the seam.  Mirrors csrc/cpu_dc.c.
 */
#include "dc.h"

#include "blas.h"

/* What a run holds: on the host, but for where `device` points to. */
struct dc_run {
    struct dc_device device;
    void *d_arrays;         /* all of the device's arrays but x, q and g, in one piece */
    struct dc_merge *merge; /* [nodes] downloaded */
    int64_t nodes;
    cudaEvent_t begin, end;
};

static struct dc_run *
run_of(struct dc_job *job)
{
    return (struct dc_run *)job->held;
}

static struct dc_level
level_of(const struct dc_job *job, int level)
{
    struct dc_level l = {((int64_t)1 << level) - 1, (int64_t)1 << level, 0};

    for (int64_t i = l.begin; i < l.begin + l.nodes; i++) {
        const int64_t columns = job->tree.node[i].columns;

        l.columns = columns > l.columns ? columns : l.columns;
    }
    return l;
}

extern "C" void
tsvdi_cuda_dc_end(struct tsvd_context *ctx, struct dc_job *job)
{
    struct dc_run *run = run_of(job);

    if (run != NULL) {
        tsvdi_cuda_free(cuda_of(ctx), run->device.x);
        tsvdi_cuda_free(cuda_of(ctx), run->d_arrays);
        tsvdi_host_free(run->merge);
        if (run->begin != NULL) {
            (void)cudaEventDestroy(run->begin);
        }
        if (run->end != NULL) {
            (void)cudaEventDestroy(run->end);
        }
        tsvdi_host_free(run);
        job->held = NULL;
    }
}

/* Lays the arrays out from `base` on; returns their bytes. */
static size_t
lay_out(struct dc_run *run, char *base)
{
    struct dc_device *r = &run->device;
    struct dc_slots *slot = &r->slot;
    const int64_t n = r->n;
    int64_t **const integers[] = {&slot->low,    &slot->high, &slot->order,
                                  &slot->list,   &slot->head, &slot->place,
                                  &slot->source, &slot->from, &slot->to};
    real **const reals[] = {&slot->value, &slot->z,   &slot->pole,        &slot->square,
                            &slot->base,  &slot->tau, &slot->placed_pole, &slot->placed_weight};
    size_t at = 0;

    for (int64_t **array : integers) {
        *array = cut<int64_t>(base, &at, n);
    }
    for (real **array : reals) {
        *array = cut<real>(base, &at, n);
    }
    slot->turn = cut<struct rotation>(base, &at, n);
    slot->deflated = cut<char>(base, &at, n);
    r->d = cut<real>(base, &at, n);
    r->e = cut<real>(base, &at, n);
    r->node = cut<struct dc_node>(base, &at, run->nodes);
    r->merge = cut<struct dc_merge>(base, &at, run->nodes);
    r->exhausted = cut<int>(base, &at, 1);
    return at;
}

extern "C" tsvd_status
tsvdi_cuda_dc_begin(struct tsvd_context *ctx, struct dc_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct dc_run *run = NULL;
    struct dc_device *r;
    size_t array;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(sizeof(*run), ctx->error, (void **)&run));
    memset(run, 0, sizeof(*run));
    job->held = run;
    r = &run->device;
    r->n = job->n;
    r->stride = device_stride(job->n);
    r->eps = job->eps;
    r->levels = job->tree.levels;
    run->nodes = ((int64_t)2 << job->tree.levels) - 1;
    array = (size_t)SIDES * (size_t)r->n * (size_t)r->stride;
    TSVD_TRY(tsvdi_cuda_alloc(call, 2 * array * sizeof(real), (void **)&r->x));
    r->q = r->x + array;
    r->g = ctx->options->lower ? job->right.x : job->left.x; /* both of the results' arrays */
    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(run, NULL), &run->d_arrays));
    (void)lay_out(run, (char *)run->d_arrays);
    TSVD_TRY(tsvdi_host_alloc((size_t)run->nodes * sizeof(*run->merge), ctx->error,
                              (void **)&run->merge));
    TSVD_TRY(tsvdi_cuda_upload(call, (void *)r->d, job->d, (size_t)r->n * sizeof(real)));
    TSVD_TRY(tsvdi_cuda_upload(call, (void *)r->e, job->e, (size_t)(r->n - 1) * sizeof(real)));
    TSVD_TRY(tsvdi_cuda_upload(call, (void *)r->node, job->tree.node,
                               (size_t)run->nodes * sizeof(*r->node)));
    TSVD_CUDA(call, cudaMemsetAsync(r->exhausted, 0, sizeof(int), call->stream));
    TSVD_CUDA(call, cudaEventCreate(&run->begin));
    TSVD_CUDA(call, cudaEventCreate(&run->end));
    TSVD_CUDA(call, cudaEventRecord(run->begin, call->stream));
out:
    return ret;
}

extern "C" tsvd_status
tsvdi_cuda_dc_leaves(struct tsvd_context *ctx, struct dc_job *job)
{
    return tsvdi_launch_leaves(cuda_of(ctx), &run_of(job)->device, level_of(job, job->tree.levels));
}

/* ---- merges ---- */

/* Whether the products of a level are made by cuBLAS, one node after the other. */
static bool
is_large(struct dc_level level)
{
    return level.columns > PRODUCT_COLUMNS;
}

/* x = q g for one large node, both sides at once, left and right of the cut. */
static tsvd_status
multiply(struct cuda_call *call, const struct dc_device *r, const struct dc_node *node,
         struct dc_count count)
{
    const int64_t corner = node->first * r->stride + node->first, side = r->n * r->stride;
    const int64_t cut = node->left + 1, top = count.top;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_multiply(call, TSVD_SINGLE, count.survivors, cut, top + count.dense,
                                 r->q + corner, r->stride, r->g + corner, r->stride, r->x + corner,
                                 r->stride, side, side, side, SIDES));
    TSVD_TRY(tsvdi_cuda_multiply(call, TSVD_SINGLE, count.survivors, node->columns - cut,
                                 count.survivors - top, r->q + corner + top, r->stride,
                                 r->g + corner + top * r->stride + cut, r->stride,
                                 r->x + corner + cut, r->stride, side, side, side, SIDES));
out:
    return ret;
}

extern "C" tsvd_status
tsvdi_cuda_dc_merge(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info)
{
    struct cuda_call *call = cuda_of(ctx);
    struct dc_run *run = run_of(job);
    const struct dc_level l = level_of(job, level);
    tsvd_status ret = TSVD_OK;

    (void)info;
    TSVD_TRY(tsvdi_launch_deflate(call, &run->device, l));
    if (is_large(l)) { /* the sizes of its products */
        TSVD_CUDA(call, cudaMemcpyAsync(run->merge + l.begin, run->device.merge + l.begin,
                                        (size_t)l.nodes * sizeof(*run->merge),
                                        cudaMemcpyDeviceToHost, call->stream));
        TSVD_CUDA(call, cudaStreamSynchronize(call->stream));
    }
    TSVD_TRY(tsvdi_launch_roots(call, &run->device, l));
    TSVD_TRY(tsvdi_launch_factors(call, &run->device, l));
    if (is_large(l)) {
        for (int64_t i = l.begin; i < l.begin + l.nodes; i++) {
            TSVD_TRY(multiply(call, &run->device, &job->tree.node[i], run->merge[i].count));
        }
    } else {
        TSVD_TRY(tsvdi_launch_products(call, &run->device, l));
    }
    TSVD_TRY(tsvdi_launch_settle(call, &run->device, l));
out:
    return ret;
}

/* ---- results ---- */

/* Slots and values by rank, the largest first. */
static __global__ void
rank_kernel(struct dc_device run, int64_t *from, real *values)
{
    const int64_t rank = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (rank < run.n) {
        from[rank] = run.slot.order[run.n - 1 - rank];
        values[rank] = run.slot.value[from[rank]];
    }
}

extern "C" tsvd_status
tsvdi_cuda_dc_finish(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    struct cuda_call *call = cuda_of(ctx);
    struct dc_run *run = run_of(job);
    const struct dc_device *r = &run->device;
    const int lower = ctx->options->lower; /* then L holds the right vectors */
    const int64_t inner = ((int64_t)1 << job->tree.levels) - 1;
    struct device_rows columns, rows;
    int exhausted = 0;
    float milliseconds = 0;
    tsvd_status ret = TSVD_OK;

    columns.x = r->x + (lower ? RIGHT : LEFT) * r->n * r->stride;
    rows.x = r->x + (lower ? LEFT : RIGHT) * r->n * r->stride;
    columns.n = rows.n = r->n;
    columns.stride = rows.stride = r->stride;
    columns.low = rows.low = r->slot.low;
    columns.high = rows.high = r->slot.high;
    rank_kernel<<<(unsigned)((r->n + 255) / 256), 256, 0, call->stream>>>(*r, r->slot.from,
                                                                          r->slot.z);
    TSVD_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_order_rows(call, columns, rows, r->slot.from, NULL, r->slot.deflated,
                                   lower ? job->right.x : job->left.x,
                                   lower ? job->left.x : job->right.x));
    TSVD_CUDA(call, cudaEventRecord(run->end, call->stream));
    TSVD_CUDA(call, cudaMemcpyAsync(run->merge, r->merge, (size_t)inner * sizeof(*run->merge),
                                    cudaMemcpyDeviceToHost, call->stream));
    TSVD_CUDA(call, cudaMemcpyAsync(&exhausted, r->exhausted, sizeof(exhausted),
                                    cudaMemcpyDeviceToHost, call->stream));
    TSVD_CUDA(call, cudaMemcpyAsync(job->d, r->slot.z, (size_t)r->n * sizeof(real),
                                    cudaMemcpyDeviceToHost, call->stream));
    TSVD_CUDA(call, cudaStreamSynchronize(call->stream));
    TSVD_CUDA(call, cudaEventElapsedTime(&milliseconds, run->begin, run->end));
    info->seconds_device += 1e-3 * (double)milliseconds;
    for (int64_t i = 0; i < inner; i++) {
        info->deflated += job->tree.node[i].rows - run->merge[i].count.survivors;
    }
    ret = exhausted ? TSVD_ERR_NO_CONVERGENCE : TSVD_OK;
out:
    return ret;
}
