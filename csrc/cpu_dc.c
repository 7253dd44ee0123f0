/*
 * CPU back end: the operations of divide and conquer (dc.h).
 *
 * Each operation is one or a few rounds of tasks for the threads: nodes where the work of a node is
 * of its order, else some roots or rows of a node.  The two n x n arrays of the results serve
 * as room for gathered vectors until the last step.
 */
#include "blas.h"
#include "cpu_kernels.h"
#include "host.h"
#include "secular.h"

/* Roots, poles or rows of a task. */
enum { TASK_ROWS = 16 };

/* Products of nodes up to this order are made by one thread each, of larger ones by BLAS with its
   own threads. */
enum { SMALL_PRODUCT = 128 };

/* Levels of fewer rows times columns than this are not worth a second thread. */
enum { SERIAL_ENTRIES = 1 << 13 };

/* Rows of a leaf's vectors, padded for the widest vector of reals. */
enum { LEAF_WIDTH = (DC_LEAF_COLUMNS + 15) / 16 * 16 };

enum { RIGHT, LEFT, SIDES };

/* What a run holds. */
struct dc_run {
    struct tsvd_context *ctx;
    struct dc_job *job;
    int64_t stride;             /* between rows of x and q */
    real *x[SIDES];             /* vectors, by slots */
    real *q[SIDES];             /* of a merge's M: row first + i, column first + place */
    real *gathered[SIDES];      /* by places, n numbers a row */
    struct dc_slots slot;       /* one piece of memory, from slot.low on */
    const struct dc_node *node; /* of the level under work: its nodes, */
    int64_t nodes;
    struct dc_merge *merge; /* [nodes] their merges, */
    int64_t *tasks;         /* [nodes + 1] and where their tasks begin */
    int exhausted;          /* a leaf whose QR did not converge */
};

static void
set_level(struct dc_run *run, int level)
{
    run->nodes = (int64_t)1 << level;
    run->node = run->job->tree.node + (run->nodes - 1);
}

/* Threads for work of so many rows of a level. */
static int
workers_for(const struct dc_run *run, int64_t columns)
{
    return run->job->n * columns < SERIAL_ENTRIES ? 1 : run->ctx->threads;
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

/* The matrix of a leaf and its vectors as rows. */
struct leaf {
    _Alignas(64) real x[SIDES][DC_LEAF_COLUMNS * LEAF_WIDTH];
    real d[DC_LEAF_COLUMNS], e[DC_LEAF_COLUMNS];
    struct rotation turn[SIDES][DC_LEAF_COLUMNS];
};

/* Puts the slots first .. first + rows - 1 in ascending order of their values; few. */
static void
sort_slots(const struct dc_slots *slot, int64_t first, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t k = first + i;

        for (; k > first && slot->value[slot->order[k - 1]] > slot->value[first + i]; k--) {
            slot->order[k] = slot->order[k - 1];
        }
        slot->order[k] = first + i;
    }
}

static tsvd_status
solve_leaf(void *arg, int worker, int64_t index)
{
    struct dc_run *run = arg;
    const struct dc_node *node = &run->node[index];
    const struct dc_slots *slot = &run->slot;
    const int64_t first = node->first, rows = node->rows, columns = node->columns;
    struct leaf leaf;
    struct qr_state q;
    struct qr_sweep sweep;

    (void)worker;
    memset(leaf.x, 0, sizeof leaf.x);
    for (int64_t i = 0; i < columns; i++) {
        leaf.x[RIGHT][i * LEAF_WIDTH + i] = 1;
        leaf.x[LEFT][i * LEAF_WIDTH + i] = 1;
    }
    memcpy(leaf.d, run->job->d + first, (size_t)rows * sizeof *leaf.d);
    memcpy(leaf.e, run->job->e + first, (size_t)(columns - 1) * sizeof *leaf.e);
    if (columns > rows) {
        dc_drop_last_column(rows, leaf.d, leaf.e, leaf.turn[RIGHT]);
        for (int64_t i = rows - 1; i >= 0; i--) {
            tsvdi_kernels()->turn(columns, leaf.turn[RIGHT][i], leaf.x[RIGHT] + i * LEAF_WIDTH,
                                  leaf.x[RIGHT] + rows * LEAF_WIDTH);
        }
    }
    qr_start(&q, rows, run->job->eps, 0);
    while ((sweep = qr_advance(&q, leaf.d, leaf.e, leaf.turn[RIGHT], leaf.turn[LEFT])).count > 0) {
        for (int side = 0; side < SIDES; side++) {
            tsvdi_kernels()->sweep(leaf.x[side], LEAF_WIDTH, sweep, leaf.turn[side]);
        }
    }
    run->exhausted |= q.exhausted;
    for (int64_t i = 0; i < columns; i++) {
        real *right = run->x[RIGHT] + (first + i) * run->stride + first;

        for (int64_t j = 0; j < columns; j++) {
            right[j] = leaf.x[RIGHT][i * LEAF_WIDTH + j];
        }
        if (i < rows) {
            real *left = run->x[LEFT] + (first + i) * run->stride + first;
            real sign = leaf.d[i] < 0 ? R(-1) : R(1);

            for (int64_t j = 0; j < columns; j++) {
                left[j] = sign * leaf.x[LEFT][i * LEAF_WIDTH + j];
            }
            slot->value[first + i] = r_abs(leaf.d[i]);
            slot->low[first + i] = first;
            slot->high[first + i] = first + columns;
        }
    }
    sort_slots(slot, first, rows);
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_dc_leaves(struct tsvd_context *ctx, struct dc_job *job)
{
    struct dc_run *run = job->held;
    tsvd_status ret = TSVD_OK;

    set_level(run, job->tree.levels);
    TSVD_TRY(tsvdi_host_for_each(workers_for(run, DC_LEAF_COLUMNS), run->nodes, solve_leaf, run));
    if (run->exhausted) {
        TSVD_TRY(tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                            "dc: the QR iteration of a leaf did not converge"));
    }
out:
    return ret;
}

/* ---- deflation ---- */

/* z, scaled; returns the limits in the same unit. */
static struct dc_limits
find_z(const struct dc_run *run, const struct dc_node *node, struct dc_merge *merge)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = node->first, center = first + node->left, end = first + node->rows;
    const int has_null = node->columns > node->rows;
    const real *x = run->x[RIGHT];
    real alpha = run->job->d[center], beta = run->job->e[center], largest, down;
    int exponent;

    largest = r_max(r_abs(alpha), r_abs(beta));
    for (int64_t j = first; j < end; j++) {
        largest = j != center ? r_max(largest, slot->value[j]) : largest;
    }
    exponent = dc_exponent(largest);
    merge->unit = r_pow2(exponent);
    down = r_pow2(-exponent);
    alpha *= down;
    beta *= down;
    for (int64_t j = first; j < center; j++) {
        slot->z[j] = slot->high[j] > center ? alpha * x[j * run->stride + center] : 0;
    }
    for (int64_t j = center + 1; j < end; j++) {
        slot->z[j] = slot->low[j] <= center + 1 ? beta * x[j * run->stride + center + 1] : 0;
    }
    merge->null_turn =
        rotation_make(alpha * x[center * run->stride + center],
                      has_null ? beta * x[end * run->stride + center + 1] : 0, &slot->z[center]);
    return dc_limits_for(run->job->eps * down, run->job->tree.levels);
}

/* The threshold on |z|. */
static real
find_threshold(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit)
{
    const int64_t center = node->first + node->left;
    real dropped[DC_THRESHOLDS] = {0};

    for (int64_t j = node->first; j < node->first + node->rows; j++) {
        real z = r_abs(slot->z[j]), part = z / limit.z;

        for (int c = 0; c < DC_THRESHOLDS && j != center && z <= dc_candidate(limit, c); c++) {
            dropped[c] += part * part;
        }
    }
    return dc_threshold(limit, dropped);
}

/* Two ascending lists of slots become one. */
static void
merge_orders(const real *value, const int64_t *a, int64_t count_a, const int64_t *b,
             int64_t count_b, int64_t *merged)
{
    while (count_a > 0 || count_b > 0) {
        if (count_b == 0 || (count_a > 0 && value[*a] <= value[*b])) {
            *merged++ = *a++;
            count_a--;
        } else {
            *merged++ = *b++;
            count_b--;
        }
    }
}

/* The list, and which of its entries absorb which; every slot's `deflated`. */
static void
find_deflated(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit,
              real threshold, struct dc_merge *merge)
{
    const int64_t first = node->first, center = first + node->left;
    int64_t *ascending = slot->from + first, *list = slot->list + first;
    int64_t *head = slot->head + first, last = 0;
    const real down = 1 / merge->unit;

    merge_orders(slot->value, slot->order + first, node->left, slot->order + center + 1,
                 node->rows - node->left - 1, ascending);
    slot->value[center] = 0;
    slot->deflated[center] = 0;
    list[0] = center;
    head[0] = 0;
    merge->listed = 1;
    merge->absorbed = 0;
    for (int64_t i = 0; i < node->rows - 1; i++) {
        int64_t j = ascending[i], at = merge->listed;

        slot->order[first + i] = j;
        slot->deflated[j] = r_abs(slot->z[j]) <= threshold;
        if (slot->deflated[j]) {
            continue;
        }
        list[at] = j;
        head[at] = at;
        if (dc_absorb(limit, slot->value[list[last]] * down, slot->value[j] * down,
                      &slot->z[list[last]], &slot->z[j], &slot->turn[first + at])) {
            head[at] = last;
            slot->deflated[j] = 1;
            merge->absorbed++;
        } else {
            last = at;
        }
        merge->listed++;
    }
}

/* Both vectors of slot j get zeros up to columns low .. high - 1; those of the center only on
   the right. */
static void
widen(const struct dc_run *run, int64_t j, int64_t low, int64_t high, int64_t center)
{
    const struct dc_slots *slot = &run->slot;

    for (int side = 0; side < (j == center ? LEFT : SIDES); side++) {
        real *x = run->x[side] + j * run->stride;

        for (int64_t i = low; i < slot->low[j]; i++) {
            x[i] = 0;
        }
        for (int64_t i = slot->high[j]; i < high; i++) {
            x[i] = 0;
        }
    }
    slot->low[j] = low;
    slot->high[j] = high;
}

/* The center's slot, and the vectors of what was absorbed. */
static void
turn_vectors(const struct dc_run *run, const struct dc_node *node, const struct dc_merge *merge)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = node->first, center = first + node->left, end = first + node->columns;
    const int64_t null = first + node->rows;

    slot->low[center] = first;
    slot->high[center] = center + 1;
    if (null < end) { /* the right child's null vector has no entry of its own in slot->low */
        real *x = run->x[RIGHT] + null * run->stride;

        widen(run, center, first, end, center);
        for (int64_t i = first; i <= center; i++) {
            x[i] = 0;
        }
        tsvdi_kernels()->turn(end - first, merge->null_turn,
                              run->x[RIGHT] + center * run->stride + first, x + first);
    }
    for (int64_t i = 1; i < merge->listed && merge->absorbed > 0; i++) {
        const int64_t a = slot->list[first + slot->head[first + i]], b = slot->list[first + i];
        const int64_t low = slot->low[a] < slot->low[b] ? slot->low[a] : slot->low[b];
        const int64_t high = slot->high[a] > slot->high[b] ? slot->high[a] : slot->high[b];

        if (a == b) {
            continue;
        }
        widen(run, a, low, high, center);
        widen(run, b, low, high, center);
        for (int side = 0; side < (a == center ? LEFT : SIDES); side++) {
            tsvdi_kernels()->turn(high - low, slot->turn[first + i],
                                  run->x[side] + a * run->stride + low,
                                  run->x[side] + b * run->stride + low);
        }
    }
}

/* Numbers survivors by value and by place. */
static void
number_survivors(const struct dc_slots *slot, const struct dc_node *node, struct dc_limits limit,
                 struct dc_merge *merge)
{
    const int64_t first = node->first, center = first + node->left;
    const real down = 1 / merge->unit;
    int64_t survivors = 0, place[3] = {0, 0, 0};

    for (int64_t i = 0; i < merge->listed; i++) {
        const int64_t j = slot->list[first + i];

        if (slot->head[first + i] == i) {
            place[dc_group(slot->low[j], slot->high[j], center, j)]++;
            survivors++;
        }
    }
    merge->count = (struct dc_count){survivors, place[0], place[1]};
    if (survivors > 1 && r_abs(slot->z[center]) < limit.floor) {
        slot->z[center] = r_copysign(limit.floor, slot->z[center]);
    }
    place[2] = place[0] + place[1];
    place[1] = place[0];
    place[0] = 0;
    survivors = 0;
    for (int64_t i = 0; i < merge->listed; i++) {
        const int64_t j = slot->list[first + i];

        if (slot->head[first + i] == i) {
            int64_t p = place[dc_group(slot->low[j], slot->high[j], center, j)]++;

            slot->pole[first + survivors] = slot->value[j] * down;
            slot->square[first + survivors] = slot->z[j] * slot->z[j];
            slot->place[first + survivors++] = p;
            slot->source[first + p] = j;
            slot->placed_pole[first + p] = slot->value[j] * down;
            slot->placed_weight[first + p] = slot->z[j];
        }
    }
}

/* The new vectors take the node's first slots; deflated ones there make room. */
static void
find_moves(const struct dc_slots *slot, const struct dc_node *node, struct dc_merge *merge)
{
    const int64_t first = node->first, boundary = first + merge->count.survivors;
    int64_t to = boundary;

    merge->moves = 0;
    for (int64_t j = first; j < boundary; j++) {
        if (slot->deflated[j]) {
            while (slot->deflated[to]) {
                to++;
            }
            slot->from[first + merge->moves] = j;
            slot->to[first + merge->moves++] = to++;
        }
    }
}

static tsvd_status
deflate_node(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_node *node = &run->node[index];
    struct dc_merge *merge = &run->merge[index];
    const struct dc_limits limit = find_z(run, node, merge);

    (void)worker;
    find_deflated(&run->slot, node, limit, find_threshold(&run->slot, node, limit), merge);
    turn_vectors(run, node, merge);
    number_survivors(&run->slot, node, limit, merge);
    find_moves(&run->slot, node, merge);
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_dc_deflate(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info)
{
    struct dc_run *run = job->held;
    tsvd_status ret = TSVD_OK;

    (void)ctx;
    set_level(run, level);
    TSVD_TRY(
        tsvdi_host_for_each(workers_for(run, run->node->columns), run->nodes, deflate_node, run));
    run->tasks[0] = 0;
    for (int64_t i = 0; i < run->nodes; i++) {
        const int64_t survivors = run->merge[i].count.survivors;

        run->tasks[i + 1] = run->tasks[i] + (survivors + TASK_ROWS - 1) / TASK_ROWS;
        info->deflated += run->node[i].rows - survivors;
    }
out:
    return ret;
}

/* ---- roots ---- */

/* The survivors of one task. */
struct part {
    const struct dc_node *node;
    const struct dc_merge *merge;
    int64_t begin, end;
};

static struct part
part_of(const struct dc_run *run, int64_t task)
{
    int64_t low = 0, high = run->nodes; /* the last node with tasks[low] <= task */
    struct part part;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        *(run->tasks[middle] <= task ? &low : &high) = middle;
    }
    part.node = &run->node[low];
    part.merge = &run->merge[low];
    part.begin = (task - run->tasks[low]) * TASK_ROWS;
    part.end = part.begin + TASK_ROWS;
    part.end = part.end < part.merge->count.survivors ? part.end : part.merge->count.survivors;
    return part;
}

static tsvd_status
for_each_part(struct dc_run *run, tsvd_task task)
{
    return tsvdi_host_for_each(workers_for(run, run->node->columns), run->tasks[run->nodes], task,
                               run);
}

static struct secular_sums
evaluate(const struct secular_root *r, int64_t k, const real *pole, const real *square)
{
    const real below = secular_difference(pole[r->split - 1], r->base, r->tau);
    const real above = secular_difference(pole[r->split], r->base, r->tau);
    struct cpu_sums lanes =
        tsvdi_kernels()->secular(secular_summed(r, k), pole, square, r->base, r->tau, below, above);
    struct secular_sums sums = {lanes.psi, lanes.psi_slope, lanes.phi, lanes.phi_slope};

    secular_add_last(r, pole, square, &sums);
    return sums;
}

static tsvd_status
solve_roots(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_slots *slot = &run->slot;
    const struct part part = part_of(run, index);
    const int64_t first = part.node->first, k = part.merge->count.survivors;
    const real *pole = slot->pole + first, *square = slot->square + first;
    real norm = 0;

    (void)worker;
    for (int64_t j = 0; j < k && part.end == k; j++) {
        norm += square[j];
    }
    for (int64_t i = part.begin; i < part.end; i++) {
        struct secular_root r = {0};

        if (k == 1) {
            r.tau = r_sqrt(norm);
        } else {
            r = secular_start(k, i, pole, norm);
            secular_place(&r, pole, square, evaluate(&r, k, pole, square));
            while (!secular_step(&r, pole, evaluate(&r, k, pole, square))) {
            }
        }
        slot->base[first + i] = r.base;
        slot->tau[first + i] = r.tau;
    }
    return TSVD_OK;
}

/* z again, from the roots. */
static tsvd_status
find_weights(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_slots *slot = &run->slot;
    const struct part part = part_of(run, index);
    const int64_t first = part.node->first, k = part.merge->count.survivors;
    const real *pole = slot->pole + first, *base = slot->base + first, *tau = slot->tau + first;

    (void)worker;
    for (int64_t j = part.begin; j < part.end && k > 1; j++) {
        real *weight = &slot->placed_weight[first + slot->place[first + j]];
        real square =
            ((base[k - 1] - pole[j]) + tau[k - 1]) * ((base[k - 1] + pole[j]) + tau[k - 1]);

        square *= tsvdi_kernels()->ratios(j, pole[j], pole, base, tau);
        square *= tsvdi_kernels()->ratios(k - 1 - j, pole[j], pole + j + 1, base + j, tau + j);
        *weight = r_copysign(r_sqrt(square), *weight);
    }
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_dc_roots(struct tsvd_context *ctx, struct dc_job *job, int level)
{
    struct dc_run *run = job->held;
    tsvd_status ret = TSVD_OK;

    (void)ctx;
    (void)level;
    TSVD_TRY(for_each_part(run, solve_roots));
    TSVD_TRY(for_each_part(run, find_weights));
out:
    return ret;
}

/* ---- vectors ---- */

/* Columns begin .. end - 1 of the vector in slot j, zero outside of its range. */
static void
gather(const struct dc_run *run, int side, int64_t j, int64_t begin, int64_t end, real *to)
{
    const real *x = run->x[side] + j * run->stride;
    const int64_t low = run->slot.low[j], high = run->slot.high[j];

    for (int64_t i = begin; i < end; i++) {
        to[i] = 0;
    }
    begin = begin < low ? low : begin;
    end = end > high ? high : end;
    if (begin < end) {
        memcpy(to + begin, x + begin, (size_t)(end - begin) * sizeof *to);
    }
}

/* Rows of the factors: vectors of M, and the vectors that they are to be multiplied with. */
static tsvd_status
fill_factors(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_slots *slot = &run->slot;
    const struct part part = part_of(run, index);
    const struct dc_count count = part.merge->count;
    const int64_t first = part.node->first, center = first + part.node->left;
    const int64_t end = first + part.node->columns;

    (void)worker;
    for (int64_t i = part.begin; i < part.end; i++) {
        const int64_t j = slot->source[first + i], row = (first + i) * run->stride + first;

        if (count.survivors == 1) { /* M = (z_0), which may be zero */
            run->q[RIGHT][row] = r_copysign(1, slot->placed_weight[first]);
            run->q[LEFT][row] = 1;
        } else {
            tsvdi_kernels()->coefficients(count.survivors, slot->place[first],
                                          slot->placed_pole + first, slot->placed_weight + first,
                                          slot->base[first + i], slot->tau[first + i],
                                          run->q[RIGHT] + row, run->q[LEFT] + row);
        }
        for (int side = 0; side < SIDES; side++) {
            real *to = run->gathered[side] + (first + i) * run->job->n;
            const int64_t cut = center + 1;

            if (side == LEFT && j == center) {
                memset(to + first, 0, (size_t)(end - first) * sizeof *to);
                to[center] = 1;
                continue;
            }
            gather(run, side, j, i < count.top + count.dense ? first : cut,
                   i < count.top ? cut : end, to);
        }
    }
    return TSVD_OK;
}

static tsvd_status
move_deflated(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_slots *slot = &run->slot;
    const struct dc_node *node = &run->node[index];

    (void)worker;
    for (int64_t i = 0; i < run->merge[index].moves; i++) {
        const int64_t from = slot->from[node->first + i], to = slot->to[node->first + i];
        const int64_t low = slot->low[from], count = slot->high[from] - low;

        for (int side = 0; side < SIDES; side++) {
            memcpy(run->x[side] + to * run->stride + low, run->x[side] + from * run->stride + low,
                   (size_t)count * sizeof(real));
        }
    }
    return TSVD_OK;
}

static tsvd_status
multiply(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_node *node = &run->node[index];
    const struct dc_count count = run->merge[index].count;
    const int64_t first = node->first, n = run->job->n, cut = node->left + 1;
    const int64_t at = first * run->stride + first, from = first * n + first;

    (void)worker;
    for (int side = 0; side < SIDES; side++) {
        tsvdi_blas_multiply(TSVD_SINGLE, count.survivors, cut, count.top + count.dense,
                            run->q[side] + at, run->stride, run->gathered[side] + from, n,
                            run->x[side] + at, run->stride);
        tsvdi_blas_multiply(TSVD_SINGLE, count.survivors, node->columns - cut,
                            count.survivors - count.top, run->q[side] + at + count.top, run->stride,
                            run->gathered[side] + from + count.top * n + cut, n,
                            run->x[side] + at + cut, run->stride);
    }
    return TSVD_OK;
}

/* Values, ranges and order of the node's slots after its merge. */
static tsvd_status
settle_node(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_slots *slot = &run->slot;
    const struct dc_node *node = &run->node[index];
    const struct dc_merge *merge = &run->merge[index];
    const int64_t first = node->first, survivors = merge->count.survivors;
    int64_t *ascending = slot->list + first, *fresh = slot->source + first, others = 0;

    (void)worker;
    for (int64_t i = 0; i < merge->moves; i++) {
        const int64_t from = slot->from[first + i], to = slot->to[first + i];

        slot->value[to] = slot->value[from];
        slot->low[to] = slot->low[from];
        slot->high[to] = slot->high[from];
        slot->place[from] = to; /* where it went */
    }
    for (int64_t i = 0; i < node->rows - 1; i++) {
        int64_t j = slot->order[first + i];

        if (slot->deflated[j]) {
            ascending[others++] = j < first + survivors ? slot->place[j] : j;
        }
    }
    for (int64_t i = 0; i < survivors; i++) {
        fresh[i] = first + i;
        slot->value[first + i] = (slot->base[first + i] + slot->tau[first + i]) * merge->unit;
        slot->low[first + i] = first;
        slot->high[first + i] = first + node->columns;
    }
    merge_orders(slot->value, fresh, survivors, ascending, others, slot->order + first);
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_dc_vectors(struct tsvd_context *ctx, struct dc_job *job, int level)
{
    struct dc_run *run = job->held;
    const int small = run->node->columns <= SMALL_PRODUCT;
    tsvd_status ret = TSVD_OK;

    (void)ctx;
    (void)level;
    TSVD_TRY(for_each_part(run, fill_factors));
    TSVD_TRY(
        tsvdi_host_for_each(workers_for(run, run->node->columns), run->nodes, move_deflated, run));
    TSVD_TRY(tsvdi_host_for_each(small ? workers_for(run, run->node->columns) : 1, run->nodes,
                                 multiply, run));
    TSVD_TRY(
        tsvdi_host_for_each(workers_for(run, run->node->columns), run->nodes, settle_node, run));
out:
    return ret;
}

/* ---- results ---- */

/* The vectors of ranks begin .. end - 1 on one side, the larger first, to the results. */
static void
store(const struct dc_run *run, int side, int64_t begin, int64_t end, const real *sign)
{
    const struct dc_slots *slot = &run->slot;
    const struct vectors to = side == RIGHT ? run->job->right : run->job->left;
    const int64_t n = to.n;

    for (int64_t rank = begin; rank < end; rank++) {
        const int64_t j = slot->order[n - 1 - rank];
        const real *x = run->x[side] + j * run->stride;
        real *row = to.x + rank * n, turn = sign[rank - begin];

        if (to.columns) {
            continue;
        }
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t i = slot->low[j]; i < slot->high[j]; i++) {
            row[i] = turn * x[i];
        }
    }
    for (int64_t i = 0; i < n && to.columns; i++) {
        for (int64_t rank = begin; rank < end; rank++) {
            const int64_t j = slot->order[n - 1 - rank];
            const int inside = i >= slot->low[j] && i < slot->high[j];

            to.x[i * n + rank] =
                inside ? sign[rank - begin] * run->x[side][j * run->stride + i] : 0;
        }
    }
}

static tsvd_status
store_vectors(void *arg, int worker, int64_t index)
{
    const struct dc_run *run = arg;
    const struct dc_slots *slot = &run->slot;
    const int64_t n = run->job->n, begin = index * TASK_ROWS;
    const int64_t end = begin + TASK_ROWS < n ? begin + TASK_ROWS : n;
    real sign[TASK_ROWS];

    (void)worker;
    for (int64_t rank = begin; rank < end; rank++) {
        const int64_t j = slot->order[n - 1 - rank];
        const real *x = run->x[run->ctx->options->lower ? RIGHT : LEFT] + j * run->stride;
        real largest = 0;

        sign[rank - begin] = 1;
        for (int64_t i = slot->low[j]; i < slot->high[j]; i++) {
            if (r_abs(x[i]) > largest) {
                largest = r_abs(x[i]);
                sign[rank - begin] = x[i] < 0 ? R(-1) : R(1);
            }
        }
    }
    store(run, RIGHT, begin, end, sign);
    store(run, LEFT, begin, end, sign);
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_dc_finish(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info)
{
    struct dc_run *run = job->held;
    const int64_t n = job->n;

    (void)info;
    for (int64_t i = 0; i < n; i++) {
        job->d[i] = run->slot.value[run->slot.order[n - 1 - i]];
    }
    return tsvdi_host_for_each(8 * n * n < SERIAL_ENTRIES ? 1 : ctx->threads,
                               (n + TASK_ROWS - 1) / TASK_ROWS, store_vectors, run);
}
