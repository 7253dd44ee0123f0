/*
 * CPU back end: the operations of divide and conquer (dc.h).
 *
 * On the lower levels each thread merges nodes of its own.  Higher up the threads share each step
 * of a node's merge.  The two n x n arrays of the results serve as workspace for the gathered
 * vectors until the last step.
 */
#include "cpu/dc/dc_run.h"
#include "cpu/tuning.h"
#include "host/blas.h"

/* From this order on tsvdi_check() is also called within steps that are not products. */
enum { LONG_ORDER = 2048 };

static tsvd_status
ask(const struct cpu_dc *run, int worker)
{
    return worker == 0 && run->job->n >= LONG_ORDER ? tsvdi_check(run->ctx, run->ctx->done)
                                                    : TSVD_OK;
}

static void
set_level(struct cpu_dc *run, int level)
{
    run->level = level;
    run->nodes = run->job->count << level;
    run->merge = run->merges == NULL /* each matrix is one leaf */
                     ? NULL
                     : run->merges + run->job->count * dc_nodes_above(level);
}

static int
threads_of(const struct cpu_dc *run)
{
    return run->job->n < CPU_DC_SERIAL_ORDER ? 1 : run->ctx->threads;
}

static tsvd_status
for_each(struct cpu_dc *run, int64_t count, tsvd_task task)
{
    return tsvdi_host_for_each(threads_of(run), count, task, run);
}

/* As for_each(), for a task that makes products. */
static tsvd_status
multiply_each(struct cpu_dc *run, int64_t count, tsvd_task task)
{
    int granted = 0;
    tsvd_status ret = TSVD_OK;

    if (run->job->n <= BLAS_ORDER) {
        return for_each(run, count, task);
    }
    TSVD_TRY(tsvdi_blas_enter(&run->ctx->call->handle->blas, threads_of(run), run->ctx->error,
                              &granted));
    ret = tsvdi_host_for_each(granted, count, task, run);
out:
    tsvdi_blas_leave(granted);
    return ret;
}

static void
dc_end(struct tsvd_context *ctx, struct dc_job *job)
{
    struct cpu_dc *run = job->state;

    (void)ctx;
    if (run != NULL) {
        tsvdi_free(ctx, run->memory);
        tsvdi_free(ctx, run->arrays);
        tsvdi_free(ctx, run->merges);
        tsvdi_free(ctx, run->tasks);
        tsvdi_free(ctx, run->panels);
        tsvdi_free(ctx, run);
        job->state = NULL;
    }
}

/* The stride of the rows: a multiple of 8 numbers, which is a cache line of doubles, but not one
   that puts the beginnings of all rows in the same cache set. */
static int64_t
row_stride(int64_t n)
{
    const int64_t stride = (n + 7) / 8 * 8;

    return stride + (stride % 256 == 0 ? 8 : 0);
}

/* Bytes of the arrays for vectors of one matrix. */
static size_t
vectors_bytes(int64_t n, int64_t k)
{
    const int arrays = n <= DC_LEAF_COLUMNS ? 2 : k < n ? 6 : 4;

    return (size_t)arrays * (size_t)n * (size_t)row_stride(n) * sizeof(real);
}

/* Takes the arrays for vectors: x, and where there are merges also q and `gathered`.  The arrays of
   the results serve as `gathered` if they are large enough. */
static tsvd_status
vectors_alloc(struct cpu_dc *run)
{
    const struct dc_job *job = run->job;
    const int64_t slots = job->n * job->count;
    const int merges = job->tree.levels > 0, own = merges && job->k < job->n;
    size_t array, gathered = (size_t)slots * (size_t)job->n;
    real *p;
    tsvd_status ret = TSVD_OK;

    run->stride = row_stride(job->n);
    array = (size_t)slots * (size_t)run->stride;
    TSVD_TRY(
        tsvdi_alloc(run->ctx, (size_t)job->count * vectors_bytes(job->n, job->k), &run->memory));
    p = run->memory;
    for (int side = 0; side < SIDES; side++, p += array) {
        run->x[side] = p;
    }
    for (int side = 0; side < SIDES && merges; side++, p += array) {
        run->q[side] = p;
    }
    for (int side = 0; side < SIDES; side++, p += gathered) {
        run->gathered[side] = own ? p : side == RIGHT ? job->right.x : job->left.x;
    }
out:
    return ret;
}

/* Fills d, e and eps. */
static void
scale_matrices(struct cpu_dc *run)
{
    const struct dc_job *job = run->job;

    for (int64_t m = 0; m < job->count; m++) {
        const int64_t base = m * job->n;

        r_scale(job->chunk->d + base, job->n, job->chunk->exponent[m], run->d + base);
        r_scale(job->chunk->e + base, job->n, job->chunk->exponent[m], run->e + base);
        r_scale(&job->eps, 1, job->chunk->exponent[m], &run->eps[m]);
    }
}

static tsvd_status
dc_begin(struct tsvd_context *ctx, struct dc_job *job)
{
    const int64_t slots = job->n * job->count, most = job->count << job->tree.levels;
    struct cpu_dc *run = NULL;
    size_t bytes;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *run, (void **)&run));
    memset(run, 0, sizeof *run);
    job->state = run;
    run->ctx = ctx;
    run->job = job;
    TSVD_TRY(vectors_alloc(run));
    bytes = dc_lay_out(&run->slot, slots, NULL);
    TSVD_TRY(
        tsvdi_alloc(ctx, bytes + (size_t)(2 * slots + job->count) * sizeof(real), &run->arrays));
    (void)dc_lay_out(&run->slot, slots, run->arrays);
    run->d = (real *)((char *)run->arrays + bytes);
    run->e = run->d + slots;
    run->eps = run->e + slots;
    TSVD_TRY(tsvdi_alloc(
        ctx, (size_t)(job->count * dc_nodes_above(job->tree.levels)) * sizeof *run->merges,
        (void **)&run->merges));
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)(most + 1) * sizeof *run->tasks, (void **)&run->tasks));
    if (job->tree.levels > 0) {
        TSVD_TRY(tsvdi_alloc(ctx, (size_t)ctx->threads * PANEL * sizeof *run->panels,
                             (void **)&run->panels));
    }
    scale_matrices(run);
out:
    return ret;
}

/* ---- leaves ---- */

/* Group `index` of consecutive leaves, which are solved together. */
static tsvd_status
task_leaves(void *arg, int worker, int64_t index)
{
    struct cpu_dc *run = arg;
    const int64_t begin = index * run->group_leaves, left = run->nodes - begin;

    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_dc_solve_leaves(run, worker, begin,
                                       left < run->group_leaves ? left : run->group_leaves));
    TSVD_TRY(ask(run, worker));
out:
    return ret;
}

static tsvd_status
dc_leaves(struct tsvd_context *ctx, struct dc_job *job)
{
    struct cpu_dc *run = job->state;
    const int64_t most = tsvdi_cpu_dc_leaf_group_size();
    tsvd_status ret = TSVD_OK;

    set_level(run, job->tree.levels);
    run->group_leaves = (run->nodes + ctx->threads - 1) / ctx->threads;
    run->group_leaves = run->group_leaves < most ? run->group_leaves : most;
    TSVD_TRY(tsvdi_cpu_dc_leaves_begin(ctx));
    job->failed = INT64_MAX;
    TSVD_TRY(for_each(run, (run->nodes + run->group_leaves - 1) / run->group_leaves, task_leaves));
out:
    return ret;
}

/* ---- merges ---- */

/* All that a step has to do for a node: its survivors, or the blocks of its products.  DC_DEFLATE
   and DC_SETTLE are one piece of work. */
static struct part
whole_of(const struct cpu_dc *run, enum dc_step step, int64_t index)
{
    struct part part = {node_at(run, index), &run->merge[index], 0, 1};

    if (step == DC_MULTIPLY) {
        part.end = tsvdi_cpu_dc_count_blocks(&part.node, part.merge->count);
    } else if (step != DC_DEFLATE && step != DC_SETTLE) {
        part.end = part.merge->count.survivors;
    }
    return part;
}

static void
make_step(const struct cpu_dc *run, int worker, enum dc_step step, struct part part)
{
    switch (step) {
    case DC_DEFLATE:
        tsvdi_cpu_dc_deflate(run, &part.node, part.merge);
        break;
    case DC_ROOTS:
        tsvdi_cpu_dc_solve_roots(run, part);
        break;
    case DC_WEIGHTS:
        tsvdi_cpu_dc_find_weights(run, part);
        break;
    case DC_FACTORS:
        tsvdi_cpu_dc_fill_factors(run, part);
        break;
    case DC_SETTLE:
        tsvdi_cpu_dc_settle(run, &part.node, part.merge);
        break;
    case DC_MULTIPLY:
        for (int64_t i = part.begin; i < part.end; i++) {
            tsvdi_cpu_dc_multiply_block(run, &part.node, part.merge->count, i,
                                        run->panels + (int64_t)worker * PANEL);
        }
        break;
    case DC_STEPS:
        break;
    }
}

/* A small node, all at once. */
static tsvd_status
task_merge(void *arg, int worker, int64_t index)
{
    const struct cpu_dc *run = arg;

    for (int step = 0; step < DC_STEPS; step++) {
        make_step(run, worker, (enum dc_step)step, whole_of(run, (enum dc_step)step, index));
    }
    return ask(run, worker);
}

/* Items of a task, where the threads share a node. */
static int64_t
items_of_task(enum dc_step step)
{
    return step == DC_MULTIPLY ? 1 : CPU_DC_TASK_ROWS;
}

/* The node that a task belongs to: the last with tasks[node] <= task. */
static int64_t
node_of(const struct cpu_dc *run, int64_t task)
{
    int64_t low = 0, high = run->nodes;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        *(run->tasks[middle] <= task ? &low : &high) = middle;
    }
    return low;
}

/* One task of the step under work. */
static tsvd_status
task_step(void *arg, int worker, int64_t task)
{
    const struct cpu_dc *run = arg;
    const int64_t index = node_of(run, task), items = items_of_task(run->step);
    struct part part = whole_of(run, run->step, index);
    double done = dc_done(run->level);

    part.begin = (task - run->tasks[index]) * items;
    part.end = part.begin + items < part.end ? part.begin + items : part.end;
    make_step(run, worker, run->step, part);
    if (run->step == DC_MULTIPLY) { /* most of the work */
        done += (dc_done(run->level - 1) - done) * (double)task / (double)run->tasks[run->nodes];
    }
    return worker == 0 && (run->step == DC_MULTIPLY || run->job->n >= LONG_ORDER)
               ? tsvdi_check(run->ctx, done)
               : TSVD_OK;
}

/* Large nodes: the threads share each step. */
static tsvd_status
merge_large(struct cpu_dc *run, tsvd_info *info)
{
    double clock = tsvdi_host_seconds(), now;
    tsvd_status ret = TSVD_OK;

    for (int step = 0; step < DC_STEPS; step++) {
        const int64_t items = items_of_task((enum dc_step)step);

        run->step = (enum dc_step)step;
        run->tasks[0] = 0;
        for (int64_t i = 0; i < run->nodes; i++) {
            run->tasks[i + 1] =
                run->tasks[i] + (whole_of(run, run->step, i).end + items - 1) / items;
        }
        TSVD_TRY((run->step == DC_MULTIPLY ? multiply_each : for_each)(run, run->tasks[run->nodes],
                                                                       task_step));
        now = tsvdi_host_seconds();
        *(step < DC_FACTORS ? &info->seconds_iterate : &info->seconds_vectors) += now - clock;
        clock = now;
    }
out:
    return ret;
}

static tsvd_status
merge_level(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info)
{
    struct cpu_dc *run = job->state;
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    set_level(run, level);
    if (node_at(run, 0).columns >
        (run->nodes >= ctx->threads ? CPU_DC_OWN_NODE : CPU_DC_SMALL_NODE)) {
        TSVD_TRY(merge_large(run, info));
    } else {
        TSVD_TRY(for_each(run, run->nodes, task_merge));
        info->seconds_iterate += tsvdi_host_seconds() - clock;
    }
out:
    return ret;
}

/* ---- results ---- */

static tsvd_status
task_store(void *arg, int worker, int64_t index)
{
    const struct cpu_dc *run = arg;
    const int64_t k = run->job->k, tasks = (k + CPU_STORE_RANKS - 1) / CPU_STORE_RANKS;
    const int64_t begin = index % tasks * CPU_STORE_RANKS;
    const int64_t end = begin + CPU_STORE_RANKS < k ? begin + CPU_STORE_RANKS : k;

    tsvdi_cpu_dc_store(run, index / tasks, begin, end);
    return ask(run, worker);
}

/* The values of the wanted slots.  Bisection refines them where full accuracy is asked, and where
   rounding might make a value infinity. */
static tsvd_status
find_values(const struct cpu_dc *run, tsvd_info *info)
{
    const struct dc_job *job = run->job;
    struct values_job values = {.n = job->n,
                                .count = job->count,
                                .first = job->first,
                                .last = job->first + job->k,
                                .chunk = job->chunk,
                                .hint = run->slot.z,
                                .s = job->s};
    struct chunk one = {.count = 1};
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    for (int64_t m = 0; m < job->count; m++) {
        real *s = job->s + m * job->k;

        for (int64_t i = 0; i < job->k; i++) {
            s[i] = run->slot.value[slot_of(run, m, i)];
        }
        r_scale(s, job->k, -job->chunk->exponent[m], s);
    }
    memcpy(run->slot.z, job->s, (size_t)(job->count * job->k) * sizeof *job->s);
    if (job->eps == 0) {
        TSVD_TRY(tsvdi_cpu_values.find(run->ctx, &values));
    }
    values.count = 1;
    values.chunk = &one;
    for (int64_t m = 0; m < job->count && job->eps > 0; m++) {
        if (chunk_may_overflow(job->chunk, m)) {
            one.d = job->chunk->d + m * job->n;
            one.e = job->chunk->e + m * job->n;
            values.hint = run->slot.z + m * job->k;
            values.s = job->s + m * job->k;
            TSVD_TRY(tsvdi_cpu_values.find(run->ctx, &values));
        }
    }
    info->seconds_values += tsvdi_host_seconds() - clock;
out:
    return ret;
}

static tsvd_status
dc_finish(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    struct cpu_dc *run = job->state;
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    (void)ctx;
    TSVD_TRY(
        for_each(run, job->count * ((job->k + CPU_STORE_RANKS - 1) / CPU_STORE_RANKS), task_store));
    info->seconds_vectors += tsvdi_host_seconds() - clock;
    info->deflated += dc_deflated(&job->tree, job->count, run->merges);
    TSVD_TRY(find_values(run, info));
out:
    return ret;
}

static int64_t
leaf_columns(int64_t n)
{
    (void)n;
    return DC_LEAF_COLUMNS;
}

/* The workspace that dc_begin() and dc_leaves() take for a chunk. */
static struct bytes
dc_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n, slots = n * plan->reported.chunk;
    struct dc_slots slot;
    struct bytes bytes = {0, 0};
    /* each node has a merge and an entry of tasks, and is at least half a leaf wide */
    const int64_t nodes = 2 * plan->reported.chunk * (n / (DC_LEAF_COLUMNS / 2 - DC_ALIGN) + 2);

    bytes.host = bytes_of(plan->reported.chunk, vectors_bytes(n, plan->reported.count));
    bytes.host = bytes_add(bytes.host, dc_lay_out(&slot, slots, NULL));
    bytes.host = bytes_add(bytes.host, bytes_of(3 * slots, sizeof(real)));
    bytes.host = bytes_add(bytes.host, bytes_of(nodes, sizeof(struct dc_merge) + sizeof(int64_t)));
    bytes.host = bytes_add(bytes.host, bytes_of(plan->reported.threads, tsvdi_cpu_dc_leaf_bytes()));
    bytes.host = bytes_add(bytes.host, bytes_of(plan->reported.threads, PANEL * sizeof(real)));
    bytes.host = bytes_add(bytes.host, sizeof(struct cpu_dc));
    return bytes;
}

const struct dc_ops tsvdi_cpu_dc = {
    .leaf_columns = leaf_columns,
    .begin = dc_begin,
    .end = dc_end,
    .leaves = dc_leaves,
    .merge = merge_level,
    .finish = dc_finish,
    .bytes = dc_bytes,
};
