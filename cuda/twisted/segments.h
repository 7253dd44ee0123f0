/*
 * Twisted factorisations on the device: corrections and vectors with the chains in segments, for
 * matrices of many rows.
 *
 * A step of a chain waits for the one before.  So the rows are cut into segments, and a warp walks
 * through one for 32 values, from a guess of E where the chain enters it: multiple shooting
 * (Morrison, Riley & Zancanaro, Comm. ACM 5 (1962)).  Segments above row r belong to the chain from
 * the top, those below it to the chain from the bottom, and r's own has the end of both.  So each
 * is about the same work.  The first guess is the quotient of two minors, which the search for the
 * twist has there.
 *
 * A step E' = x - b^2 / E is a Moebius map.  If E becomes E + delta, E' becomes E' + q^2 delta /
 * (1 + delta / E), with q = b / E.  So what leaves a segment becomes larger by exactly
 *
 *     P^2 delta / (1 + C delta),    P = the product of the q,    C = the sum of P_k^2 / E_k,
 *
 * where P_k is the product of the q before E_k.  With that the segments are joined from the ends
 * to r by one thread for each chain, and the next pass begins with entrances that are right but for
 * rounding.  The correction of x moves them by the derivative of E, which is 1 + N.
 *
 * A pass is good if the E that a segment leaves is the one that the next segment entered.  If that
 * is larger by delta_s in row s, (T - x I) z = -g e_r + sum of delta_s z_s e_s: so the mismatches
 * join g in the angle by which z is off.  One that is only as large as what long chains may lose by
 * rounding is the same as a small relative change of b, and counts as none.  Such a one is not
 * passed on either.  Where E would be zero without rounding the next E depends on nothing but
 * rounding, and the segments fit only if a pass repeats the bits of the one before: each pass then
 * makes one more segment fit.
 *
 * Values whose chains do not join in PASSES go to twisted/chains.h.
 */
#ifndef TSVDI_CUDA_TWISTED_SEGMENTS_H
#define TSVDI_CUDA_TWISTED_SEGMENTS_H

#include "twisted/blocks.h"

enum {
    /* Passes, at most.  Two are enough for nearly all values (one in float32), three for crowded
       ones.  Those with pivots that are zero but for rounding take more: one of Toeplitz of order
       4096 takes 5, one of order 3001 more. */
    PASSES = 8,

    /* Mismatches, squared, may have this part (1 / MISMATCH_SHARE) of twisted_angle_limit(), which
       is a square. */
    MISMATCH_SHARE = 64
};

/* What counts as no mismatch, as a share of the larger term of E = x - b^2 / E_before. */
static const double MISMATCH_NOISE = PAIR_NOISE / 8;

/* ---- through a segment ---- */

/* A lane in a segment.  In the segment of row r it follows the chain from the top, then the one
   from the bottom. */
struct walker {
    int end;  /* of the chain that it follows; ENDS: there is none left */
    int left; /* steps of it */
    int row;  /* that the next step leads away from */
    struct twisted_chain chain;
    wide product, curve;
};

/* Rows of a segment. */
struct range {
    int begin, end;
};

static __device__ __forceinline__ struct range
range_of(const struct twisted_device &run, const struct twisted_segments &segments, int segment)
{
    const int begin = segment * segments.rows, left = 2 * (int)run.n - begin;

    return {begin, begin + (left < segments.rows ? left : segments.rows)};
}

/* Begins with the chain from an end.  r: the row of the twist, if it is in the segment, else -1. */
static __device__ __forceinline__ void
enter(const struct twisted_device &run, const struct twisted_block &block, int64_t column,
      int segment, int r, int end, struct walker *w)
{
    const struct twisted_value state = block.segments.state[column];
    const struct range rows = range_of(run, block.segments, segment);
    const bool first = segment == (end == TOP ? 0 : block.segments.count - 1);
    const int row = end == TOP ? rows.begin : rows.end - 1;
    double slope = 0;
    pair e = state.x;

    if (!first) {
        const double *part = chain_at(block.segments, end, segment, block.width, column);

        slope = part[SLOPE * block.width];
        e = pair_of(part[ENTER_HIGH * block.width], part[ENTER_LOW * block.width]);
        e = pair_add(e, slope * state.moved);
        if (pair_high(e) == 0) { /* as in a step */
            e = pair_of(pair_high(state.x) * PAIR_TINY, 0.0);
        }
    }
    write_entrance(block.segments, end, segment, block.width, column, e, slope);
    w->end = end;
    w->left = r < 0 ? rows.end - rows.begin : end == TOP ? r - row : row - r;
    w->row = row;
    w->chain = twisted_chain_begin(e);
    w->product = 1;
    w->curve = 0;
}

static __device__ __forceinline__ void
leave(const struct twisted_block &block, int64_t column, int segment, const struct walker &w)
{
    double *part = chain_at(block.segments, w.end, segment, block.width, column);

    part[LEAVE_HIGH * block.width] = pair_high(w.chain.e);
    part[LEAVE_LOW * block.width] = pair_low(w.chain.e);
    part[PRODUCT * block.width] = w.product;
    part[CURVE * block.width] = w.curve;
    part[NORM * block.width] = w.chain.norm;
}

/* Returns the ratio. */
static __device__ __forceinline__ double
walk_step(const struct twisted_matrix &m, pair x, struct walker *w)
{
    const int entry = w->end == TOP ? w->row : w->row - 1;
    const double b = __ldg(&m.b[entry]), square = __ldg(&m.square[entry]);
    const double rest = __ldg(&m.rest[entry]);
    const wide inverse = wide_inverse(pair_high(w->chain.e));
    wide ratio;

    w->curve = fma(w->product * w->product, inverse, w->curve);
    ratio = twisted_chain_step(x, b, square, rest, &w->chain);
    w->product *= ratio;
    w->row += w->end == TOP ? 1 : -1;
    w->left--;
    return ratio;
}

/* Makes 2 `count` steps. */
template <bool STORED>
static __device__ __forceinline__ void
walk_on(const struct twisted_matrix &m, pair x, const struct column &z, int count, struct walker *w)
{
#pragma unroll 2
    for (int j = 0; j < count; j++) {
        const int row = w->row;
        const double first = walk_step(m, x, w), second = walk_step(m, x, w);

        if (STORED) {
            write_ratios(z, w->end, row, first, second);
        }
    }
}

/* The last step of a chain. */
template <bool STORED>
static __device__ __forceinline__ void
walk_once(const struct twisted_matrix &m, pair x, const struct column &z, struct walker *w)
{
    const int row = w->row;
    const double ratio = walk_step(m, x, w);

    if (STORED) {
        *place_of(z, row) = ratio;
    }
}

/* A warp takes 32 values through a segment.  STORED: the ratios are stored in the rows that they
   lead away from. */
template <bool STORED>
static __global__ void
__launch_bounds__(WARP) segment_kernel(struct twisted_device run, struct twisted_block block)
{
    const struct place at = place_in_group(block, blockIdx.y);
    const int segment = (int)blockIdx.x;
    const struct column z = column_of(block, at.column);
    struct walker w = {};
    struct twisted_matrix m;
    int r, own, after;
    pair x;

    if (!twisted_takes(run) || all_joined(block, at)) {
        return;
    }
    m = matrix_of(run);
    x = block.segments.state[at.column].x;
    r = (int)block.twist[at.column];
    own = r / block.segments.rows;
    r = segment == own ? r : -1;
    w.end = segment <= own ? TOP : BOTTOM;
    after = segment >= own ? ENDS : BOTTOM;
    if (block.segments.state[at.column].progress == JOINED) { /* this lane is idle */
        w.end = after;
    } else {
        enter(run, block, at.column, segment, r, w.end, &w);
    }
    for (;;) {
        int count;

        while (w.end < after && w.left == 0) {
            leave(block, at.column, segment, w);
            w.end++;
            if (w.end < after) {
                enter(run, block, at.column, segment, r, w.end, &w);
            }
        }
        /* steps until the first lane ends a chain: the least w.left of the warp */
        count = -warp_most(w.end < after ? -w.left : INT_MIN + 1);
        if (count == INT_MAX) {
            return;
        }
        if (w.end < after && w.left == 1) {
            walk_once<STORED>(m, x, z, &w);
        } else if (w.end < after) {
            walk_on<STORED>(m, x, z, count > 1 ? count / 2 : 1, &w);
        }
    }
}

/* ---- the segments are joined ---- */

/* A chain at row r, and its mismatches on the way: the sum of the squares of delta_s z_s / z_r. */
struct joined {
    struct twisted_chain chain;
    double mismatch;
};

/* A chain in a segment, as a thread reads it. */
struct chain_segment {
    pair enter, leave;
    double product, curve, norm;
};

static __device__ __forceinline__ struct chain_segment
read_segment(const struct twisted_block &block, int end, int segment, int64_t column)
{
    const double *part = chain_at(block.segments, end, segment, block.width, column);
    const int64_t width = block.width;

    return {pair_of(part[ENTER_HIGH * width], part[ENTER_LOW * width]),
            pair_of(part[LEAVE_HIGH * width], part[LEAVE_LOW * width]), part[PRODUCT * width],
            part[CURVE * width], part[NORM * width]};
}

/* Joins a chain from its end to row r, and writes better entrances. */
static __device__ __forceinline__ struct joined
join(const struct twisted_block &block, struct place at, int own, double x)
{
    const int way = at.end == TOP ? 1 : -1;
    struct joined j = {twisted_chain_begin(pair_of(0.0, 0.0)), 0};
    struct chain_segment ahead[SEGMENTS_AHEAD] = {};
    double change = 0; /* of the entrance */
    int segment = at.end == TOP ? 0 : block.segments.count - 1;

#pragma unroll
    for (int i = 0; i < SEGMENTS_AHEAD; i++) {
        if (i <= (own - segment) * way) {
            ahead[i] = read_segment(block, at.end, segment + i * way, at.column);
        }
    }
    for (;;) {
#pragma unroll
        for (int i = 0; i < SEGMENTS_AHEAD; i++, segment += way) {
            const struct chain_segment now = ahead[i];
            const double product = now.product * now.product;
            pair entered = ahead[(i + 1) % SEGMENTS_AHEAD].enter; /* the next segment */
            double off, size;

            if (SEGMENTS_AHEAD <= (own - segment) * way) {
                ahead[i] = read_segment(block, at.end, segment + SEGMENTS_AHEAD * way, at.column);
            }
            change = product * change / fma(now.curve, change, 1.0);
            j.chain.e = pair_add(now.leave, change);
            j.chain.norm = fma(product, j.chain.norm, now.norm);
            j.mismatch *= product;
            if (segment == own) { /* the vectors are made with the E without this change */
                j.mismatch += change * change;
                return j;
            }
            off = pair_excess(now.leave, pair_of(0.0, 0.0), entered);
            size = fmax(fabs(pair_high(j.chain.e)), fabs(x - pair_high(j.chain.e)));
            if (fabs(off) <= MISMATCH_NOISE * size) {
                entered = pair_add(entered, change);
            } else {
                entered = j.chain.e;
                j.mismatch += off * off;
                change += off;
            }
            write_entrance(block.segments, at.end, segment + way, block.width, at.column, entered,
                           1 + j.chain.norm);
        }
    }
}

/* Judges a value by its two chains. */
static __device__ __forceinline__ void
judge(const struct twisted_device &run, struct place at, const struct joined &top,
      const struct joined &bottom, struct twisted_value *state)
{
    const double gap = gap_of(run, at.value), limit = twisted_angle_limit(run.n);
    const double mismatch = top.mismatch + bottom.mismatch;
    double angle, moved;
    bool accurate;

    state->met.g = twisted_meet(state->x, top.chain, bottom.chain, &state->met.square_norm);
    state->moved = 0;
    angle = twisted_angle_square(state->met.g, state->met.square_norm, gap);
    moved = -state->met.g / state->met.square_norm;
    accurate = twisted_is_accurate(run.n, angle, moved, pair_high(state->x));
    if (state->progress == SETTLED && accurate &&
        mismatch / (gap * gap) / state->met.square_norm <= limit / MISMATCH_SHARE) {
        state->progress = JOINED;
    } else if (state->progress == OPEN || !accurate) {
        /* an angle that is infinite or NaN will not get better */
        state->progress =
            !(angle < (double)INFINITY) || twisted_settles(angle, limit) ? SETTLED : OPEN;
        state->x = twisted_correct(state->x, state->met.g, state->met.square_norm);
        state->moved = moved;
    }
}

static __global__ void
__launch_bounds__(CHAIN_THREADS) join_kernel(struct twisted_device run, struct twisted_block block)
{
    struct place at = place_in_group(block, blockIdx.x);
    __shared__ struct joined other[WARP];
    struct twisted_value state;
    struct joined joined = {};

    if (!twisted_takes(run) || all_joined(block, at)) {
        return;
    }
    at = sorted_place(block, blockIdx.x);
    state = block.segments.state[at.column];
    if (state.progress != JOINED) {
        joined =
            join(block, at, (int)block.twist[at.column] / block.segments.rows, pair_high(state.x));
    }
    if (at.end == BOTTOM) {
        other[at.lane] = joined;
    }
    __syncthreads();
    if (at.end == TOP && state.progress != JOINED) {
        judge(run, at, joined, other[at.lane], &state);
        block.segments.state[at.column] = state;
    }
}

/* ---- vectors ---- */

/* z in the row that a segment's last step leads to: the product of the ratios from there to r. */
static __device__ __forceinline__ double
begin_of(const struct twisted_block &block, int64_t column, int own, int segment)
{
    const int end = segment < own ? TOP : BOTTOM, way = segment < own ? -1 : 1;
    const double *part = chain_at(block.segments, end, own, block.width, column);
    double x = 1;

    part += PRODUCT * block.width;
#pragma unroll 8
    for (int i = own; i != segment; i += way) {
        x *= *part;
        part += way * CHAIN_PARTS * block.width;
    }
    return x;
}

/* A warp makes z from the ratios of a segment. */
static __global__ void
__launch_bounds__(WARP) unfold_kernel(struct twisted_device run, struct twisted_block block)
{
    const struct place at = place_in_group(block, blockIdx.y);
    const int segment = (int)blockIdx.x;
    const struct range rows = range_of(run, block.segments, segment);
    double *part = block.segments.summary + (int64_t)segment * SUMMARY_PARTS * block.width;
    struct summary all = {};
    double x;
    int r, own;

    if (!twisted_takes(run) || !all_joined(block, at)) {
        return;
    }
    r = (int)block.twist[at.column];
    own = r / block.segments.rows;
    x = begin_of(block, at.column, own, segment);
    for (int end = TOP; end < ENDS; end++) {
        const int row = end == TOP ? rows.begin : rows.end - 1;
        const bool whole = end == TOP ? segment < own : segment > own;
        struct way way = {};

        way.end = end;
        way.side = side_of_left(run);
        way.steps = whole            ? rows.end - rows.begin
                    : segment != own ? 0
                    : end == TOP     ? r - row
                                     : row - r;
        way.most = warp_most(way.steps);
        way.row = row;
        way.z = column_of(block, at.column);
        if (end == TOP && way.steps > 0) {
            /* read_run() of the segment above goes on from z in this row: it must have the bits of
               that segment's begin_of() */
            way.goes_on = true;
            way.outer = x * chain_at(block.segments, TOP, segment, block.width,
                                     at.column)[PRODUCT * block.width];
        }
        summary_add(&all, unfold(way, x));
    }
    part += at.column;
    part[SUM_EVEN * block.width] = all.sum[0];
    part[SUM_ODD * block.width] = all.sum[1];
    part[LARGEST * block.width] = all.largest;
    part[LEAST * block.width] = all.least;
}

static __global__ void
__launch_bounds__(WARP) conclude_kernel(struct twisted_device run, struct twisted_block block)
{
    struct place at = place_in_group(block, blockIdx.x);
    const double *part = block.segments.summary + at.column;
    struct summary all = {};
    struct twisted_value state;

    if (!twisted_takes(run) || !all_joined(block, at)) {
        return;
    }
    at = sorted_place(block, blockIdx.x);
#pragma unroll 8
    for (int i = 0; i < block.segments.count; i++) {
        summary_add(&all, {{part[SUM_EVEN * block.width], part[SUM_ODD * block.width]},
                           part[LARGEST * block.width],
                           part[LEAST * block.width]});
        part += SUMMARY_PARTS * block.width;
    }
    state = block.segments.state[at.column];
    conclude(run, block, at, state.x, state.met, all);
}

/* ---- host ---- */

/* Finds the vectors of all values whose chains join. */
static tsvd_status
twist_by_segments(struct cuda_call *call, const struct twisted_device *run,
                  const struct twisted_block *block)
{
    const unsigned groups = (unsigned)(block->width / WARP);
    const dim3 grid((unsigned)block->segments.count, groups);
    tsvd_status ret = TSVD_OK;

    for (int pass = 0; pass < PASSES; pass++) {
        if (pass == 0 && !TWISTED_AT_ONCE) { /* no value joins in it: ratios are not needed */
            segment_kernel<false><<<grid, WARP, 0, call->stream>>>(*run, *block);
        } else {
            segment_kernel<true><<<grid, WARP, 0, call->stream>>>(*run, *block);
        }
        CUDA_LAUNCHED(call);
        join_kernel<<<groups, CHAIN_THREADS, 0, call->stream>>>(*run, *block);
        CUDA_LAUNCHED(call);
    }
    unfold_kernel<<<grid, WARP, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    conclude_kernel<<<groups, WARP, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

#endif
