/*
 * CPU back end: the operations of divide and conquer (dc.h).
 *
 * On the lower levels each thread merges nodes of its own; higher up the threads share the roots of
 * a node.  The two n x n arrays of the results serve as room for gathered vectors until the last
 * step.
 */
#include "cpu_dc.h"

/* Roots, poles or rows of a task. */
enum { TASK_ROWS = 16 };

/* Nodes up to this order are merged by one thread each; the threads share larger ones. */
enum { SMALL_NODE = 128 };

/* Matrices below this order are not worth a second thread. */
enum { SERIAL_ORDER = 100 };

static void
set_level(struct dc_run *run, int level)
{
    run->level = level;
    run->nodes = (int64_t)1 << level;
    run->node = run->job->tree.node + (run->nodes - 1);
}

static tsvd_status
for_each(struct dc_run *run, int64_t count, tsvd_task task)
{
    return tsvdi_host_for_each(run->job->n < SERIAL_ORDER ? 1 : run->ctx->threads, count, task,
                               run);
}

void
tsvdi_cpu_dc_end(struct tsvd_context *ctx, struct dc_job *job)
{
    struct dc_run *run = job->held;

    (void)ctx;
    if (run) {
        tsvdi_host_free(run->x[RIGHT]);
        tsvdi_host_free(run->slot.low);
        tsvdi_host_free(run->merge);
        tsvdi_host_free(run->tasks);
        tsvdi_host_free(run);
        job->held = NULL;
    }
}

/* One piece for all arrays by slots. */
static tsvd_status
slots_alloc(struct tsvd_context *ctx, int64_t n, struct dc_slots *slot)
{
    int64_t **const integers[] = {&slot->low,    &slot->high, &slot->order,
                                  &slot->list,   &slot->head, &slot->place,
                                  &slot->source, &slot->from, &slot->to};
    real **const reals[] = {&slot->value, &slot->z,   &slot->pole,        &slot->square,
                            &slot->base,  &slot->tau, &slot->placed_pole, &slot->placed_weight};
    const int64_t kinds = sizeof integers / sizeof *integers, others = sizeof reals / sizeof *reals;
    tsvd_status ret = TSVD_OK;
    char *p;

    TSVD_TRY(tsvdi_host_alloc(
        (size_t)n * ((size_t)kinds * sizeof(int64_t) + 1 + (size_t)(others + 2) * sizeof(real)),
        ctx->error, (void **)&p));
    for (int64_t i = 0; i < kinds; i++, p += (size_t)n * sizeof(int64_t)) {
        *integers[i] = (int64_t *)p;
    }
    for (int64_t i = 0; i < others; i++, p += (size_t)n * sizeof(real)) {
        *reals[i] = (real *)p;
    }
    slot->turn = (struct rotation *)p;
    slot->deflated = p + (size_t)n * sizeof(struct rotation);
out:
    return ret;
}

tsvd_status
tsvdi_cpu_dc_begin(struct tsvd_context *ctx, struct dc_job *job)
{
    const size_t leaves = (size_t)1 << job->tree.levels;
    struct dc_run *run = NULL;
    size_t array;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(sizeof *run, ctx->error, (void **)&run));
    memset(run, 0, sizeof *run);
    job->held = run;
    run->ctx = ctx;
    run->job = job;
    /* rows begin on cache lines, and not all in the same cache set */
    run->stride = (job->n + 7) / 8 * 8;
    run->stride += run->stride % 256 == 0 ? 8 : 0;
    array = (size_t)job->n * (size_t)run->stride;
    TSVD_TRY(tsvdi_host_alloc(4 * array * sizeof(real), ctx->error, (void **)&run->x[RIGHT]));
    run->x[LEFT] = run->x[RIGHT] + array;
    run->q[RIGHT] = run->x[LEFT] + array;
    run->q[LEFT] = run->q[RIGHT] + array;
    run->gathered[RIGHT] = job->right.x;
    run->gathered[LEFT] = job->left.x;
    TSVD_TRY(slots_alloc(ctx, job->n, &run->slot));
    TSVD_TRY(tsvdi_host_alloc(leaves * sizeof *run->merge, ctx->error, (void **)&run->merge));
    TSVD_TRY(tsvdi_host_alloc((leaves + 1) * sizeof *run->tasks, ctx->error, (void **)&run->tasks));
out:
    return ret;
}

/* ---- leaves ---- */

/* Consecutive leaves, as many as are solved together. */
static tsvd_status
task_leaves(void *arg, int worker, int64_t index)
{
    struct dc_run *run = arg;
    const int64_t begin = index * run->group_leaves;
    struct cpu_leaf leaf[QR_LANES_MAX];
    int64_t count = 0;

    for (; count < run->group_leaves && begin + count < run->nodes; count++) {
        const struct dc_node *node = &run->node[begin + count];

        leaf[count] = (struct cpu_leaf){node->first, node->first, node->rows, node->columns};
    }
    return tsvdi_cpu_solve_leaves(
        run, (struct leaf_group *)(run->groups + (size_t)worker * tsvdi_cpu_leaf_group_bytes()),
        count, leaf);
}

tsvd_status
tsvdi_cpu_dc_leaves(struct tsvd_context *ctx, struct dc_job *job)
{
    struct dc_run *run = job->held;
    const int64_t most = tsvdi_cpu_leaf_group_size();
    tsvd_status ret = TSVD_OK;

    set_level(run, job->tree.levels);
    run->group_leaves = (run->nodes + ctx->threads - 1) / ctx->threads;
    run->group_leaves = run->group_leaves < most ? run->group_leaves : most;
    TSVD_TRY(tsvdi_host_alloc((size_t)ctx->threads * tsvdi_cpu_leaf_group_bytes(), ctx->error,
                              (void **)&run->groups));
    TSVD_TRY(for_each(run, (run->nodes + run->group_leaves - 1) / run->group_leaves, task_leaves));
out:
    tsvdi_host_free(run->groups);
    run->groups = NULL;
    return ret;
}

/* ---- merges ---- */

/* All of a node's. */
static struct part
whole_of(const struct dc_run *run, int64_t index)
{
    return (struct part){&run->node[index], &run->merge[index], 0,
                         run->merge[index].count.survivors};
}

/* The node that a task belongs to: the last with tasks[node] <= task. */
static int64_t
node_of(const struct dc_run *run, int64_t task)
{
    int64_t low = 0, high = run->nodes;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        *(run->tasks[middle] <= task ? &low : &high) = middle;
    }
    return low;
}

/* Those of one task. */
static struct part
part_of(const struct dc_run *run, int64_t task)
{
    const int64_t index = node_of(run, task);
    struct part part = whole_of(run, index);

    part.begin = (task - run->tasks[index]) * TASK_ROWS;
    part.end = part.begin + TASK_ROWS < part.end ? part.begin + TASK_ROWS : part.end;
    return part;
}

static tsvd_status
task_deflate(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;

    (void)worker;
    tsvdi_cpu_deflate(run, &run->node[index], &run->merge[index]);
    return TSVD_OK;
}

static tsvd_status
task_roots(void *arg, int worker, int64_t index)
{
    (void)worker;
    tsvdi_cpu_solve_roots(arg, part_of(arg, index));
    return TSVD_OK;
}

static tsvd_status
task_weights(void *arg, int worker, int64_t index)
{
    (void)worker;
    tsvdi_cpu_find_weights(arg, part_of(arg, index));
    return TSVD_OK;
}

static tsvd_status
task_factors(void *arg, int worker, int64_t index)
{
    (void)worker;
    tsvdi_cpu_fill_factors(arg, part_of(arg, index));
    return TSVD_OK;
}

static tsvd_status
task_multiply(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const int64_t node = node_of(run, index);

    tsvdi_cpu_multiply_block(run, &run->node[node], run->merge[node].count,
                             index - run->tasks[node]);
    return worker == 0
               ? tsvdi_check(run->ctx, dc_done(run->level) +
                                           (dc_done(run->level - 1) - dc_done(run->level)) *
                                               (double)index / (double)run->tasks[run->nodes])
               : TSVD_OK;
}

static tsvd_status
task_settle(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;

    (void)worker;
    tsvdi_cpu_settle(run, &run->node[index], &run->merge[index]);
    return TSVD_OK;
}

/* A small node, all at once. */
static tsvd_status
task_merge(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    struct part part;

    (void)task_deflate(arg, worker, index);
    part = whole_of(run, index);
    tsvdi_cpu_solve_roots(run, part);
    tsvdi_cpu_find_weights(run, part);
    tsvdi_cpu_fill_factors(run, part);
    tsvdi_cpu_settle(run, part.node, part.merge);
    for (int64_t i = 0; i < tsvdi_cpu_count_blocks(part.node, part.merge->count); i++) {
        tsvdi_cpu_multiply_block(run, part.node, part.merge->count, i);
    }
    return TSVD_OK;
}

/* Large nodes: the threads share the roots of all. */
static tsvd_status
merge_large(struct dc_run *run, tsvd_info *info)
{
    double clock = tsvdi_host_seconds(), now;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(for_each(run, run->nodes, task_deflate));
    run->tasks[0] = 0;
    for (int64_t i = 0; i < run->nodes; i++) {
        run->tasks[i + 1] =
            run->tasks[i] + (run->merge[i].count.survivors + TASK_ROWS - 1) / TASK_ROWS;
    }
    TSVD_TRY(for_each(run, run->tasks[run->nodes], task_roots));
    TSVD_TRY(for_each(run, run->tasks[run->nodes], task_weights));
    now = tsvdi_host_seconds();
    info->seconds_iterate += now - clock;
    TSVD_TRY(for_each(run, run->tasks[run->nodes], task_factors));
    TSVD_TRY(for_each(run, run->nodes, task_settle));
    for (int64_t i = 0; i < run->nodes; i++) {
        run->tasks[i + 1] =
            run->tasks[i] + tsvdi_cpu_count_blocks(&run->node[i], run->merge[i].count);
    }
    TSVD_TRY(for_each(run, run->tasks[run->nodes], task_multiply));
    info->seconds_vectors += tsvdi_host_seconds() - now;
out:
    return ret;
}

tsvd_status
tsvdi_cpu_dc_merge(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info)
{
    struct dc_run *run = job->held;
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    (void)ctx;
    set_level(run, level);
    if (run->node->columns > SMALL_NODE) {
        TSVD_TRY(merge_large(run, info));
    } else {
        TSVD_TRY(for_each(run, run->nodes, task_merge));
        info->seconds_iterate += tsvdi_host_seconds() - clock;
    }
    for (int64_t i = 0; i < run->nodes; i++) {
        info->deflated += run->node[i].rows - run->merge[i].count.survivors;
    }
out:
    return ret;
}

/* ---- results ---- */

static tsvd_status
task_store(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const int64_t n = run->job->n, begin = index * CPU_STORE_RANKS;
    const int64_t end = begin + CPU_STORE_RANKS < n ? begin + CPU_STORE_RANKS : n;

    (void)worker;
    tsvdi_cpu_store(run, run->job->right, run->job->left, run->slot.order, begin, end);
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_dc_finish(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    struct dc_run *run = job->held;
    const int64_t n = job->n;

    (void)ctx;
    (void)info;
    for (int64_t i = 0; i < n; i++) {
        job->d[i] = run->slot.value[run->slot.order[n - 1 - i]];
    }
    return for_each(run, (n + CPU_STORE_RANKS - 1) / CPU_STORE_RANKS, task_store);
}
