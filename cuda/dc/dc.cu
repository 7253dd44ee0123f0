/*
 * Divide and conquer on the device: the operations of the seam, and the finished vectors and
 * values.  Mirrors csrc/cpu/dc/dc.c.
 */
#include "dc/dc_run.h"

#include "runtime/blas.h"

/* Threads of a block, where each slot or each value has a thread. */
enum { THREADS = 256 };

/* The state of a run, on the host. */
struct cuda_dc {
    struct dc_device device;
    void *d_arrays;         /* all device arrays but x, q and g, one allocation */
    real *d_workspace[2];   /* on the device, for d and e if they are on the host, */
    real_int *d_exponent;   /* and for the exponents */
    struct dc_merge *merge; /* [merges] downloaded */
    int64_t *from;          /* [k] the slots of a single matrix's wanted values, downloaded */
    int64_t nodes;          /* of the tree */
    int64_t merges;         /* of the forest */
    cudaEvent_t begin, end; /* of the device's work */
};

static struct cuda_dc *
run_of(struct dc_job *job)
{
    return (struct cuda_dc *)job->state;
}

static struct dc_level
level_of(const struct dc_job *job, int depth)
{
    struct dc_level l = {depth, job->count << depth, 0};

    for (int64_t i = 0; i < (int64_t)1 << depth; i++) {
        const int64_t columns = dc_node_at(job->tree.node, job->n, depth, i).columns;

        l.columns = columns > l.columns ? columns : l.columns;
    }
    return l;
}

static void
dc_end(struct tsvd_context *ctx, struct dc_job *job)
{
    struct cuda_dc *run = run_of(job);

    if (run != NULL) {
        if (run->from != NULL) { /* vectors in q, after x, may be in flight */
            tsvdi_cuda_free_after_downloads(cuda_of(ctx), run->device.x);
        } else {
            tsvdi_cuda_free(cuda_of(ctx), run->device.x);
        }
        tsvdi_cuda_free_after_downloads(cuda_of(ctx), run->d_arrays);
        tsvdi_free(ctx, run->merge);
        tsvdi_free(ctx, run->from);
        if (run->begin != NULL) {
            (void)cudaEventDestroy(run->begin);
        }
        if (run->end != NULL) {
            (void)cudaEventDestroy(run->end);
        }
        tsvdi_free(ctx, run);
        job->state = NULL;
    }
}

/* Lays the arrays out from `base` on.  Returns their bytes. */
static size_t
lay_out(struct cuda_dc *run, char *base)
{
    struct dc_device *r = &run->device;
    size_t at = (dc_lay_out(&r->slot, r->slots, base) + 255) / 256 * 256;

    run->d_workspace[0] = carve<real>(base, &at, r->slots);
    run->d_workspace[1] = carve<real>(base, &at, r->slots);
    r->scaled_d = carve<real>(base, &at, r->slots);
    r->scaled_e = carve<real>(base, &at, r->slots);
    r->eps = carve<real>(base, &at, r->batch);
    run->d_exponent = carve<real_int>(base, &at, r->batch);
    r->tree = carve<struct dc_node>(base, &at, run->nodes);
    r->merge = carve<struct dc_merge>(base, &at, run->merges);
    r->failed = carve<unsigned long long>(base, &at, 1);
    return at;
}

static __global__ void
scale_kernel(struct dc_device run, int64_t merges, real eps)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i == 0) {
        *run.failed = ~0ULL;
    }
    /* padding included: the structures are downloaded as a whole */
    for (int64_t k = i; k < merges * (int64_t)(sizeof(*run.merge) / sizeof(uint32_t));
         k += (int64_t)gridDim.x * blockDim.x) {
        ((uint32_t *)run.merge)[k] = 0;
    }
    if (i < run.slots) {
        r_scale(&run.d[i], 1, run.exponent[i / run.n], &run.scaled_d[i]);
        r_scale(&run.e[i], 1, run.exponent[i / run.n], &run.scaled_e[i]);
    }
    if (i < run.batch) {
        r_scale(&eps, 1, run.exponent[i], &run.eps[i]);
    }
}

/* Uploads the matrices of the chunk, if they are not on the device. */
static tsvd_status
give_matrices(struct cuda_call *call, const struct chunk *chunk, struct cuda_dc *run)
{
    struct dc_device *r = &run->device;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(cuda_entries(call, chunk, r->slots, run->d_workspace, &r->d, &r->e));
    r->exponent = chunk->d_exponent;
    if (chunk->d_d == NULL) {
        r->exponent = run->d_exponent;
        TSVD_TRY(tsvdi_cuda_upload(call, run->d_exponent, chunk->exponent,
                                   (size_t)r->batch * sizeof(real_int)));
    }
out:
    return ret;
}

static tsvd_status
dc_begin(struct tsvd_context *ctx, struct dc_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const int own_g = ctx->call->to == TSVD_CUDA; /* the caller's arrays have unaligned rows */
    const int parts = job->tree.levels == 0 ? 1 : 2 + own_g;
    struct cuda_dc *run = NULL;
    struct dc_device *r;
    size_t array;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof(*run), (void **)&run));
    memset(run, 0, sizeof(*run));
    job->state = run;
    r = &run->device;
    r->n = job->n;
    r->batch = job->count;
    r->slots = job->n * job->count;
    r->first = job->first;
    r->k = job->k;
    r->stride = device_stride(job->n);
    r->levels = job->tree.levels;
    run->nodes = dc_nodes_above(job->tree.levels + 1);
    run->merges = job->count * dc_nodes_above(job->tree.levels);
    array = (size_t)SIDES * (size_t)r->slots * (size_t)r->stride;
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)parts * array * sizeof(real), (void **)&r->x));
    r->q = r->x + array;
    r->lower = ctx->options->lower;
    r->right = job->right.x;
    r->left = job->left.x;
    /* else g borrows the memory of both results, one allocation which begins with this one */
    r->g = own_g ? r->q + array : r->lower ? r->right : r->left;
    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(run, NULL), &run->d_arrays));
    (void)lay_out(run, (char *)run->d_arrays);
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)run->merges * sizeof(*run->merge), (void **)&run->merge));
    TSVD_TRY(give_matrices(call, job->chunk, run));
    TSVD_TRY(
        tsvdi_cuda_upload(call, r->tree, job->tree.node, (size_t)run->nodes * sizeof(*r->tree)));
    CUDA_TRY(call, cudaEventCreate(&run->begin));
    CUDA_TRY(call, cudaEventCreate(&run->end));
    CUDA_TRY(call, cudaEventRecord(run->begin, call->stream));
    scale_kernel<<<blocks_for(r->slots, THREADS), THREADS, 0, call->stream>>>(*r, run->merges,
                                                                              job->eps);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
dc_leaves(struct tsvd_context *ctx, struct dc_job *job)
{
    return tsvdi_cuda_dc_leaves(ctx, job, &run_of(job)->device, level_of(job, job->tree.levels));
}

/* ---- merges ---- */

/* Whether cuBLAS may make the products of a level, one node after the other. */
static bool
is_large(struct dc_level level)
{
    return level.columns > PRODUCT_COLUMNS;
}

/* Whether so few values survive in a node that one launch for many nodes makes its products sooner
   than cuBLAS. */
static bool
few_survive(struct dc_count count)
{
    return count.survivors <= PRODUCT_SURVIVORS;
}

/* The products of those nodes of a large level in which few values survive. */
static tsvd_status
multiply_few(struct cuda_call *call, const struct dc_device *r, struct dc_level level,
             const struct dc_merge *merge)
{
    int64_t rows = 0;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < level.nodes; i++) {
        const struct dc_count count = merge[i].count;

        if (few_survive(count) && count.end - count.begin > rows) {
            rows = count.end - count.begin;
        }
    }
    if (rows > 0) {
        TSVD_TRY(tsvdi_cuda_dc_products(call, r, level, PRODUCT_SURVIVORS, rows));
    }
out:
    return ret;
}

/* Rows count.begin .. count.end - 1 of x = q g for one large node: both sides at once, first left
   of the cut, then right of it. */
static tsvd_status
multiply(struct cuda_call *call, const struct dc_device *r, struct dc_node node,
         struct dc_count count)
{
    const int64_t side = r->slots * r->stride, cut = node.left + 1, top = count.top;
    const int64_t corner = node.first * r->stride + (node.first - node.base);
    const real *q = r->q + corner + count.begin * r->stride, *g = r->g + corner;
    real *x = r->x + corner + count.begin * r->stride;
    tsvd_status ret = TSVD_OK;

    if (count.begin == count.end) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_multiply(call, TSVD_SINGLE, count.end - count.begin, cut, top + count.dense,
                                 q, r->stride, g, r->stride, x, r->stride, side, side, side,
                                 SIDES));
    TSVD_TRY(tsvdi_cuda_multiply(call, TSVD_SINGLE, count.end - count.begin, node.columns - cut,
                                 count.survivors - top, q + top, r->stride,
                                 g + top * r->stride + cut, r->stride, x + cut, r->stride, side,
                                 side, side, SIDES));
out:
    return ret;
}

/* ---- the last products of a single matrix, whose vectors go to the host block by block ---- */

/* The slots and the values of the wanted ranks of each matrix, the largest first. */
static __global__ void
rank_kernel(struct dc_device run, int64_t *from, real *values)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, matrix = i / run.k;

    if (matrix < run.batch) {
        const int64_t rank = run.first + (i - matrix * run.k);

        from[i] = run.slot.order[(matrix + 1) * run.n - 1 - rank];
        r_scale(&run.slot.value[from[i]], 1, -run.exponent[matrix], &values[i]);
    }
}

/* Where the values go: slot.z, which is not needed any more. */
static real *
values_of(const struct dc_device *r)
{
    return r->slot.z;
}

static tsvd_status
launch_ranks(struct cuda_call *call, const struct dc_device *r)
{
    tsvd_status ret = TSVD_OK;

    rank_kernel<<<blocks_for(r->k * r->batch, THREADS), THREADS, 0, call->stream>>>(
        *r, r->slot.from, values_of(r));
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The vectors as they are in x. */
static void
find_rows(const struct dc_device *r, struct device_rows *columns, struct device_rows *rows)
{
    columns->x = r->x + (r->lower ? RIGHT : LEFT) * r->slots * r->stride;
    rows->x = r->x + (r->lower ? LEFT : RIGHT) * r->slots * r->stride;
    columns->n = rows->n = r->n;
    columns->stride = rows->stride = r->stride;
    columns->low = rows->low = r->slot.low;
    columns->high = rows->high = r->slot.high;
}

/* Orders the vectors of ranks begin .. end - 1 into rows n - end .. n - begin - 1 of q, and sends
   them.  Rows of q from n - end on are not needed any more. */
static tsvd_status
send_ranks(const struct tsvd_context *ctx, const struct dc_device *r, struct results to,
           int64_t begin, int64_t end)
{
    const int64_t n = r->n, ranks = end - begin;
    const size_t width = (size_t)ranks * sizeof(real), row = (size_t)n * sizeof(real);
    real *d_columns = side_of(r->q, *r, LEFT) + (n - end) * r->stride;
    real *d_rows = side_of(r->q, *r, RIGHT) + (n - end) * r->stride;
    const struct cuda_transfer left = {(char *)(to.L + begin), (const char *)d_columns, width,
                                       (size_t)n, (size_t)ctx->problem->left_stride * sizeof(real)};
    const struct cuda_transfer right = {(char *)(to.R + begin * n), (const char *)d_rows,
                                        (size_t)ranks * row, 1, 0};
    struct cuda_call *call = cuda_of(ctx);
    struct device_rows columns, rows;
    tsvd_status ret = TSVD_OK;

    if (ranks == 0) {
        goto out;
    }
    find_rows(r, &columns, &rows);
    TSVD_TRY(tsvdi_cuda_rotations_order(call, columns, rows, ranks, 1, r->slot.from + begin, NULL,
                                        r->slot.deflated, d_columns, d_rows));
    TSVD_TRY(tsvdi_cuda_download_async(call, right));
    TSVD_TRY(tsvdi_cuda_download_async(call, left));
out:
    return ret;
}

/*
 * Makes the products of the root by blocks of rows, the vectors of the largest values first.  Each
 * block is sent to the host while the next one is computed.
 *
 * Root i of the secular equation has slot i, and the roots ascend.  So the rows of a block are one
 * range of slots.  The next ranks can be sent as long as their slots are at or above the block's
 * first one, or hold a deflated value.
 */
static tsvd_status
multiply_and_send(struct tsvd_context *ctx, struct cuda_dc *run, struct dc_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dc_device *r = &run->device;
    const struct dc_node node = dc_node_at(job->tree.node, job->n, 0, 0);
    const struct dc_count all = run->merge[0].count;
    const int64_t part = (all.end - all.begin + SEND_PARTS - 1) / SEND_PARTS;
    const int64_t each = part > SEND_ROWS ? part : (int64_t)SEND_ROWS;
    struct dc_count block = all;
    int64_t rank = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(multiply_few(call, r, level_of(job, 0), run->merge));
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)r->k * sizeof(*run->from), (void **)&run->from));
    TSVD_TRY(launch_ranks(call, r));
    TSVD_TRY(tsvdi_cuda_download(call, run->from, r->slot.from, (size_t)r->k * sizeof(*run->from)));
    for (block.begin = all.end; rank < r->k;) {
        const int64_t before = rank;

        block.end = block.begin;
        block.begin -= block.end == all.end ? (each + 3) / 4 : each; /* sending starts early */
        block.begin = block.begin > all.begin ? block.begin : all.begin;
        if (!few_survive(all)) {
            TSVD_TRY(multiply(call, r, node, block));
        }
        while (rank < r->k && (run->from[rank] >= block.begin || run->from[rank] >= all.survivors ||
                               block.begin == all.begin)) {
            rank++;
        }
        TSVD_TRY(send_ranks(ctx, r, job->to, before, rank));
    }
    job->delivered = 1;
out:
    return ret;
}

/* Whether multiply_and_send() is used: it pays where the transfer to the host takes long. */
static bool
sends_blocks(const struct tsvd_context *ctx, const struct dc_job *job)
{
    const uint64_t bytes = bytes_of(2 * job->n, bytes_of(job->k, sizeof(real)));

    return ctx->call->to == TSVD_HOST && job->count == 1 && bytes > SEND_BLOCKS_BYTES;
}

/* ---- the products of a level ---- */

static tsvd_status
multiply_level(struct tsvd_context *ctx, struct cuda_dc *run, struct dc_job *job,
               struct dc_level level)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t at = job->count * dc_nodes_above(level.depth);
    tsvd_status ret = TSVD_OK;

    if (!is_large(level)) {
        return tsvdi_cuda_dc_products(call, &run->device, level, INT64_MAX, level.columns);
    }
    TSVD_TRY(tsvdi_cuda_download(call, run->merge + at, run->device.merge + at,
                                 (size_t)level.nodes * sizeof(*run->merge)));
    if (level.depth == 0 && sends_blocks(ctx, job)) {
        TSVD_TRY(multiply_and_send(ctx, run, job));
        goto out;
    }
    TSVD_TRY(multiply_few(call, &run->device, level, run->merge + at));
    for (int64_t i = 0; i < level.nodes; i++) {
        const struct dc_count count = run->merge[at + i].count;

        if (!few_survive(count)) {
            TSVD_TRY(multiply(call, &run->device,
                              dc_node_at(job->tree.node, job->n, level.depth, i), count));
        }
    }
out:
    return ret;
}

/* One step of all merges of a level. */
static tsvd_status
make_step(struct tsvd_context *ctx, struct cuda_dc *run, struct dc_job *job, enum dc_step step,
          struct dc_level level)
{
    struct cuda_call *call = cuda_of(ctx);

    switch (step) {
    case DC_DEFLATE:
        return tsvdi_cuda_dc_deflate(call, &run->device, level);
    case DC_ROOTS:
        return tsvdi_cuda_dc_roots(call, &run->device, level);
    case DC_WEIGHTS:
        return tsvdi_cuda_dc_weights(call, &run->device, level);
    case DC_FACTORS:
        return tsvdi_cuda_dc_factors(call, &run->device, level);
    case DC_SETTLE:
        return tsvdi_cuda_dc_settle(call, &run->device, level);
    case DC_MULTIPLY:
        return multiply_level(ctx, run, job, level);
    case DC_STEPS:
        break;
    }
    return TSVD_OK;
}

static tsvd_status
merge_level(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info)
{
    const struct dc_level nodes = level_of(job, level);
    tsvd_status ret = TSVD_OK;

    (void)info;
    for (int step = 0; step < DC_STEPS; step++) {
        TSVD_TRY(make_step(ctx, run_of(job), job, (enum dc_step)step, nodes));
    }
out:
    return ret;
}

/* ---- results ---- */

/* Copies the vectors in their order to the results.  Where there are no merges the leaves have done
   so. */
static tsvd_status
finish_vectors(struct cuda_call *call, const struct dc_device *r)
{
    struct device_rows columns, rows;

    if (r->levels == 0) {
        return TSVD_OK;
    }
    find_rows(r, &columns, &rows);
    return tsvdi_cuda_rotations_order(call, columns, rows, r->k, r->batch, r->slot.from, NULL,
                                      r->slot.deflated, r->lower ? r->right : r->left,
                                      r->lower ? r->left : r->right);
}

/* Refines the values by bisection: all of them if eps = 0; else those of matrices whose values may
   have overflowed to infinity by rounding. */
static tsvd_status
refine_values(struct tsvd_context *ctx, struct dc_job *job, const real *d_hint, real *d_s,
              int64_t *counts)
{
    const struct dc_device *r = &run_of(job)->device;
    const int64_t last = r->first + r->k;
    tsvd_status ret = TSVD_OK;

    if (job->eps == 0) {
        return tsvdi_cuda_values_on_device(ctx, r->n, r->batch, r->d, r->e, r->first, last, d_hint,
                                           0, d_s, counts);
    }
    for (int64_t m = 0; m < r->batch; m++) {
        if (chunk_may_overflow(job->chunk, m)) {
            TSVD_TRY(tsvdi_cuda_values_on_device(ctx, r->n, 1, r->d + m * r->n, r->e + m * r->n,
                                                 r->first, last, d_hint + m * r->k, 0,
                                                 d_s + m * r->k, counts));
        }
    }
out:
    return ret;
}

static tsvd_status
dc_finish(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_dc *run = run_of(job);
    const struct dc_device *r = &run->device;
    const int64_t values = r->k * r->batch;
    real *const d_values = values_of(r);
    real *const d_refined = ctx->call->to == TSVD_CUDA ? job->s : r->slot.tau;
    real *const d_s = job->eps > 0 ? d_values : d_refined;
    unsigned long long failed = 0;
    const struct cuda_piece piece[] = {
        {run->merge, r->merge, (size_t)run->merges * sizeof(*run->merge)},
        {&failed, r->failed, sizeof(failed)},
    };
    int64_t counts = 0;
    float milliseconds = 0;
    double clock = tsvdi_host_seconds(), now;
    tsvd_status ret = TSVD_OK;

    if (!job->delivered || r->levels == 0) {
        TSVD_TRY(launch_ranks(call, r));
        TSVD_TRY(finish_vectors(call, r));
    }
    TSVD_TRY(tsvdi_cuda_download_all(call, piece, 2));
    if (failed != ~0ULL) {
        job->failed = (int64_t)failed;
        return TSVD_ERR_NO_CONVERGENCE;
    }
    info->deflated += dc_deflated(&job->tree, job->count, run->merge);
    now = tsvdi_host_seconds();
    info->seconds_vectors += now - clock;
    TSVD_TRY(refine_values(ctx, job, d_values, d_s, &counts));
    CUDA_TRY(call, cudaEventRecord(run->end, call->stream));
    if (d_s != job->s) {
        TSVD_TRY(cuda_deliver(ctx, job->s, d_s, (size_t)values * sizeof(real)));
    }
    CUDA_TRY(call, cudaEventSynchronize(run->end));
    CUDA_TRY(call, cudaEventElapsedTime(&milliseconds, run->begin, run->end));
    info->seconds_device += 1e-3 * (double)milliseconds;
    info->seconds_values += tsvdi_host_seconds() - now;
out:
    return ret;
}

/* The sweeps of a leaf are a chain of dependent steps.  With half the columns they take a quarter
   of the time, which saves more than one more level of merges costs.  In a batch of small matrices
   other leaves hide that latency. */
static int64_t
leaf_columns(int64_t n)
{
    return n > SMALL_LEAVES_ORDER ? (int64_t)DC_SMALL_LEAF_COLUMNS : (int64_t)DC_LEAF_COLUMNS;
}

/* Workspace of dc_begin() and of the leaves.  Where dc_begin() takes g too, vectors_ops.begin()
   takes nothing. */
static struct bytes
dc_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n, batch = plan->reported.chunk;
    struct bytes bytes = {sizeof(struct cuda_dc), 0};
    struct cuda_dc run;
    int levels = dc_halvings(n, leaf_columns(n));

    memset(&run, 0, sizeof(run));
    levels += levels > 0; /* for the one level more that rounding may ask for */
    run.device.slots = n * batch;
    run.device.batch = batch;
    run.nodes = dc_nodes_above(levels + 1);
    run.merges = batch * dc_nodes_above(levels);
    bytes.host = bytes_add(bytes.host, bytes_of(run.merges, sizeof(struct dc_merge)));
    bytes.host = bytes_add(bytes.host, bytes_of(plan->reported.count, sizeof(int64_t)));
    /* What is in flight to the host keeps its memory while the next chunk is computed: the values,
       and where a chunk is one matrix the vectors in q. */
    bytes.device = bytes_of((levels == 0 ? 1 : 2) * (int64_t)SIDES,
                            bytes_of(run.device.slots, (uint64_t)device_stride(n) * sizeof(real)));
    bytes.device = bytes_of(batch == 1 && plan->reported.matrices > 1 ? 2 : 1, bytes.device);
    bytes.device = bytes_add(
        bytes.device, bytes_of(batch < plan->reported.matrices ? 2 : 1, lay_out(&run, NULL)));
    bytes.device = bytes_add(bytes.device, tsvdi_cuda_dc_leaf_bytes(batch << levels));
    return bytes;
}

const struct dc_ops tsvdi_cuda_dc = {
    .leaf_columns = leaf_columns,
    .begin = dc_begin,
    .end = dc_end,
    .leaves = dc_leaves,
    .merge = merge_level,
    .finish = dc_finish,
    .bytes = dc_bytes,
};
