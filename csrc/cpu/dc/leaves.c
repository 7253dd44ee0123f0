/*
 * Divide and conquer on the CPU: the SVDs of leaves by QR.  As many leaves are solved side by side
 * as the vector kernels have lanes (cpu/kernels/qr_lanes.h).
 *
 * Each lane walks its leaf as qr_advance() does.  It takes the next unreduced block from the bottom
 * into its chain, and sweeps over it until it shrinks away or falls apart.  What is finished goes
 * back to the leaf's own d and e.  The rotations of LEAF_WAVE sweeps at a time are applied to the
 * vectors.
 */
#include "cpu/dc/dc_run.h"

static_assert((int)DC_LEAF_COLUMNS <= (int)R_BITS,
              "look_after() shifts 1 by a leaf's rotations in a real_uint: DC_LEAF_COLUMNS must be "
              "at most the bits of a real");

/* Numbers of a row of a leaf's vectors, padded for the widest vector of reals. */
enum { LEAF_WIDTH = (DC_LEAF_COLUMNS + 15) / 16 * 16 };

/* One leaf under work. */
struct lane {
    struct qr_state state;
    struct dc_node leaf;
    real_int exponent; /* 2^-exponent scaled it, if values alone are wanted */
    real d[DC_LEAF_COLUMNS], e[DC_LEAF_COLUMNS];
    int64_t count;  /* rotations of a sweep over the block under work; 0: the leaf is done */
    int64_t first;  /* the row that its chain begins with */
    int64_t sweeps; /* sweeps that are not yet applied to the vectors */
    int64_t begin;  /* index in the wave of the first of those sweeps */
    int64_t widest; /* the rotations of sweep `begin`, which is the longest */
    alignas(64) real x[SIDES][DC_LEAF_COLUMNS * LEAF_WIDTH]; /* vectors as rows */
};

/* Leaves that one thread solves together. */
struct leaf_group {
    struct qr_lanes chain; /* the blocks under work */
    int64_t lanes;         /* of the chains */
    int64_t width;         /* numbers of a row of vectors; 0: values alone are wanted */
    alignas(64) real rotation[LEAF_WAVE][LANE_SWEEP]; /* the rotations of a wave's sweeps */
    struct lane lane[QR_LANES_MAX];
};

int64_t
tsvdi_cpu_dc_leaf_group_size(void)
{
    return QR_VECTORS * tsvdi_kernels()->lanes;
}

tsvd_status
tsvdi_cpu_dc_leaves_begin(struct tsvd_context *ctx)
{
    return ctx->worker_state != NULL
               ? TSVD_OK
               : tsvdi_alloc(ctx, (size_t)ctx->threads * sizeof(struct leaf_group),
                             &ctx->worker_state);
}

size_t
tsvdi_cpu_dc_leaf_bytes(void)
{
    return sizeof(struct leaf_group);
}

/* Row i of a leaf's vectors. */
static real *
vector(struct leaf_group *g, struct lane *lane, int side, int64_t i)
{
    return lane->x[side] + i * g->width;
}

/* Starts the iteration on lane->d, lane->e. */
static void
start_lane(struct leaf_group *g, struct lane *lane, int64_t rows, real eps)
{
    qr_start(&lane->state, rows, eps, 0);
    g->chain.negligible[lane - g->lane] = lane->state.negligible;
    lane->sweeps = 0;
}

/* Starts a leaf: identity vectors, and a square matrix. */
static void
start_leaf(struct leaf_group *g, const struct cpu_dc *run, struct lane *lane)
{
    const int64_t rows = lane->leaf.rows, columns = lane->leaf.columns;

    for (int side = 0; side < SIDES; side++) {
        memset(lane->x[side], 0, (size_t)(columns * g->width) * sizeof(real));
        for (int64_t i = 0; i < columns; i++) {
            vector(g, lane, side, i)[i] = 1;
        }
    }
    memcpy(lane->d, run->d + lane->leaf.first, (size_t)rows * sizeof *lane->d);
    memcpy(lane->e, run->e + lane->leaf.first, (size_t)(columns - 1) * sizeof *lane->e);
    if (columns > rows) {
        real extra = lane->e[rows - 1];

        for (int64_t i = rows - 1; i >= 0; i--) {
            tsvdi_kernels()->turn(columns, extra_column_step(i, lane->d, lane->e, &extra),
                                  vector(g, lane, RIGHT, i), vector(g, lane, RIGHT, rows));
        }
    }
    start_lane(g, lane, rows, run->eps[lane->leaf.matrix]);
}

/* Applies a lane's pending sweeps to its vectors. */
static void
apply_sweeps(struct leaf_group *g, struct lane *lane)
{
    const int64_t l = lane - g->lane;
    struct leaf_wave wave;

    for (int side = 0; side < SIDES && lane->sweeps > 0 && g->width > 0; side++) {
        const int second = (side == RIGHT) == lane->state.up;

        wave.row = vector(g, lane, side, lane->first);
        wave.step = lane->state.up ? -g->width : g->width;
        wave.width = g->width;
        wave.count = lane->widest;
        wave.lanes = g->lanes;
        wave.sweeps = (int)lane->sweeps;
        for (int64_t k = 0; k < lane->sweeps; k++) {
            wave.turn[k] = g->rotation[lane->begin + k] + 2 * second * g->lanes + l;
        }
        tsvdi_kernels()->leaf_wave(&wave);
    }
    lane->sweeps = 0;
}

/* Gives the kernel what the next shift depends on. */
static void
set_corner(struct leaf_group *g, struct lane *lane, real smallest, real largest)
{
    struct qr_lanes *q = &g->chain;
    const int64_t l = lane - g->lane, last = lane->count * g->lanes + l;

    q->length[l] = REAL(lane->count + 1);
    q->corner[0][l] = q->d[last - g->lanes];
    q->corner[1][l] = q->e[last];
    q->corner[2][l] = q->d[last];
    q->least[l] = smallest;
    q->most[l] = largest;
}

/* Takes the next block into the chain, whose rows are all zero. */
static void
take_block(struct leaf_group *g, struct lane *lane)
{
    const int64_t l = lane - g->lane, lanes = g->lanes;
    struct qr_state *state = &lane->state;
    struct rotation right, left;
    struct qr_block block;
    int found;

    while ((found = qr_next(state, lane->d, lane->e, &block)) && block.chain.length == 2) {
        qr_finish_pair(lane->d, lane->e, state->low, &right, &left);
        tsvdi_kernels()->turn(g->width, right, vector(g, lane, RIGHT, state->low),
                              vector(g, lane, RIGHT, state->high));
        tsvdi_kernels()->turn(g->width, left, vector(g, lane, LEFT, state->low),
                              vector(g, lane, LEFT, state->high));
    }
    g->chain.length[l] = 0;
    lane->count = 0;
    if (!found) {
        return;
    }
    lane->count = block.chain.length - 1;
    lane->first = state->up ? state->high : state->low;
    for (int64_t k = 0; k <= lane->count; k++) {
        const int64_t at = k * block.chain.step;

        g->chain.d[k * lanes + l] = block.chain.d[at];
        g->chain.e[k * lanes + l] = k > 0 ? block.chain.e[at - block.chain.step] : REAL(0);
    }
    set_corner(g, lane, block.smallest, block.largest);
}

/* Moves the last rows of the chain, from row k on, back to the leaf. */
static void
put_back(struct leaf_group *g, struct lane *lane, int64_t k)
{
    struct qr_lanes *q = &g->chain;
    const int64_t l = lane - g->lane;
    struct chain c = qr_chain(lane->d, lane->e, lane->state.low, lane->state.high, lane->state.up);

    for (; k <= lane->count; k++) {
        c.d[k * c.step] = q->d[k * g->lanes + l];
        q->d[k * g->lanes + l] = 0;
        if (k > 0) {
            c.e[(k - 1) * c.step] = q->e[k * g->lanes + l];
            q->e[k * g->lanes + l] = 0;
        }
    }
}

/* After sweep `index` of the wave: shrinks the lane's block from its end, or takes the next block
   where this one fell apart or is finished. */
static void
look_after(struct leaf_group *g, struct lane *lane, int64_t index)
{
    struct qr_lanes *q = &g->chain;
    const int64_t l = lane - g->lane, lanes = g->lanes;
    int64_t count = lane->count;
    real_uint dropped = (real_uint)q->dropped[l] & (((real_uint)1 << count) - 1);

    if (lane->sweeps == 0) {
        lane->begin = index;
        lane->widest = count;
    }
    lane->sweeps++;
    lane->state.sweeps++;
    /* a value is usually finished when the last entry of e has become negligible */
    while (count > 0) {
        const real e = r_abs(q->e[count * lanes + l]);

        if (e > lane->state.negligible && e > QR_TOLERANCE * r_abs(q->d[count * lanes + l])) {
            break;
        }
        q->e[count * lanes + l] = 0;
        count--;
    }
    dropped &= ((real_uint)1 << count) - 1;
    lane->state.idle = count < lane->count ? 0 : lane->state.idle + 1;
    if (dropped || count < 2 || lane->state.sweeps >= lane->state.max_sweeps ||
        lane->state.idle > QR_PATIENCE * (count + 1)) {
        apply_sweeps(g, lane);
        put_back(g, lane, 0);
        take_block(g, lane);
        return;
    }
    if (count < lane->count) {
        put_back(g, lane, count + 1);
        lane->count = count;
    }
    set_corner(g, lane, 1 / q->inverse[count * lanes + l], q->largest[count * lanes + l]);
    /* the sweeps of a wave have about the same length, and the first has at least as many rotations
       as the wave has sweeps */
    if (lane->widest - count > LEAF_WAVE || lane->widest == lane->sweeps) {
        apply_sweeps(g, lane);
    }
}

/* Puts the slots of a leaf in ascending order of their values, by insertion, since they are few. */
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

static void
store_leaf(struct leaf_group *g, const struct cpu_dc *run, struct lane *lane)
{
    const struct dc_slots *slot = &run->slot;
    const struct dc_node leaf = lane->leaf;

    for (int64_t i = 0; i < leaf.columns; i++) {
        const int64_t j = leaf.first + i;

        tsvdi_kernels()->normalize(leaf.columns, 1, vector(g, lane, RIGHT, i),
                                   row_of(run, RIGHT, &leaf, j) + leaf.first);
        if (i < leaf.rows) {
            tsvdi_kernels()->normalize(leaf.columns, lane->d[i] < 0 ? REAL(-1) : REAL(1),
                                       vector(g, lane, LEFT, i),
                                       row_of(run, LEFT, &leaf, j) + leaf.first);
            slot->value[j] = r_abs(lane->d[i]);
            slot->low[j] = leaf.first;
            slot->high[j] = leaf.first + leaf.columns;
        }
    }
    sort_slots(slot, leaf.first, leaf.rows);
}

/* Makes sweeps in all lanes until each is done, or has used up its sweeps. */
static void
sweep_leaves(struct leaf_group *g, int64_t count)
{
    for (int64_t l = 0; l < count; l++) {
        take_block(g, &g->lane[l]);
    }
    for (int64_t index = 0;; index = (index + 1) % LEAF_WAVE) {
        g->chain.steps = 0;
        for (int64_t l = 0; l < count; l++) {
            if (index == 0) {
                apply_sweeps(g, &g->lane[l]);
            }
            if (g->lane[l].count > g->chain.steps) {
                g->chain.steps = g->lane[l].count;
            }
        }
        if (g->chain.steps == 0) {
            return;
        }
        tsvdi_kernels()->qr_lanes(&g->chain, (int)(g->lanes / tsvdi_kernels()->lanes),
                                  g->width > 0 ? g->rotation[index] : NULL);
        for (int64_t l = 0; l < count; l++) {
            if (g->lane[l].count > 0) {
                look_after(g, &g->lane[l], index);
            }
        }
    }
}

/* Empties the group for `count` leaves. */
static void
clear_group(struct leaf_group *g, int64_t count)
{
    const int64_t lanes = tsvdi_kernels()->lanes;

    memset(&g->chain, 0, sizeof g->chain);
    g->lanes = count > lanes ? QR_VECTORS * lanes : lanes;
    g->width = 0;
}

tsvd_status
tsvdi_cpu_dc_solve_leaves(const struct cpu_dc *run, int worker, int64_t begin, int64_t count)
{
    struct leaf_group *g = (struct leaf_group *)run->ctx->worker_state + worker;
    const int64_t lanes = tsvdi_kernels()->lanes;

    clear_group(g, count);
    for (int64_t l = 0; l < count; l++) {
        g->lane[l].leaf = node_at(run, begin + l);
        g->width = g->lane[l].leaf.columns > g->width ? g->lane[l].leaf.columns : g->width;
    }
    g->width = (g->width + lanes - 1) / lanes * lanes;
    for (int64_t l = 0; l < count; l++) {
        start_leaf(g, run, &g->lane[l]);
    }
    sweep_leaves(g, count);
    for (int64_t l = 0; l < count; l++) {
        if (g->lane[l].state.exhausted) {
            tsvdi_host_note_least(&run->job->failed, g->lane[l].leaf.matrix);
            return TSVD_ERR_NO_CONVERGENCE;
        }
        store_leaf(g, run, &g->lane[l]);
    }
    return TSVD_OK;
}

void
tsvdi_cpu_dc_leaf_values(struct tsvd_context *ctx, int64_t n, int64_t count, const real *d,
                         const real *e, real *s)
{
    struct leaf_group *g = ctx->worker_state;

    clear_group(g, count);
    for (int64_t l = 0; l < count; l++) {
        struct lane *lane = &g->lane[l];
        real largest = 0;

        for (int64_t i = 0; i < n; i++) {
            largest = r_max(largest, r_max(r_abs(d[l * n + i]), r_abs(e[l * n + i])));
        }
        (void)r_split(largest, &lane->exponent);
        r_scale(d + l * n, n, lane->exponent, lane->d);
        r_scale(e + l * n, n, lane->exponent, lane->e);
        start_lane(g, lane, n, 0);
    }
    sweep_leaves(g, count);
    for (int64_t l = 0; l < count; l++, s += n) {
        for (int64_t i = 0; i < n; i++) {
            const real value = r_abs(g->lane[l].d[i]);
            int64_t k = i;

            for (; k > 0 && s[k - 1] < value; k--) {
                s[k] = s[k - 1];
            }
            s[k] = value;
        }
        r_scale(s, n, -g->lane[l].exponent, s);
    }
}
