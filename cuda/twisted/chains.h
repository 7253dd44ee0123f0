/*
 * Twisted factorisations on the device: corrections and vectors by whole chains.
 *
 * Two warps have 32 values, a lane of each the same one.  One walks the matrix from the top, the
 * other from the bottom.  A value takes a chain of thousands of dependent steps, and few values
 * share a multiprocessor: so both ends are walked at once.  Larger matrices are cut further, see
 * twisted/segments.h, and only values whose chains do not join there come here.
 */
#ifndef TSVDI_CUDA_TWISTED_CHAINS_H
#define TSVDI_CUDA_TWISTED_CHAINS_H

#include "twisted/blocks.h"

/* What a step needs of an entry, for WARP steps. */
struct entries {
    double b[WARP], square[WARP], rest[WARP];
};

/* One of them, as a lane reads it. */
struct entry {
    double b, square, rest;
};

static __device__ __forceinline__ struct entry
read_entry(const struct twisted_matrix &m, const struct way &way, int i)
{
    const int last = 2 * (int)m.n - 2, step = i < last ? i : last > 0 ? last : 0;
    const int k = way.end == TOP ? step : last - step;

    return {__ldg(&m.b[k]), __ldg(&m.square[k]), __ldg(&m.rest[k])};
}

/* The chain from an end of the matrix to row r: step i crosses entry i from the top, and 2n - 2 - i
   from the bottom.  STORED: the ratios are stored in the places of the rows that they lead away
   from. */
template <bool STORED>
static __device__ __forceinline__ struct twisted_chain
walk_chain(const struct twisted_matrix &m, const struct way &way, pair x, struct entries *entries)
{
    const int lane = (int)threadIdx.x % WARP;
    struct twisted_chain chain = twisted_chain_begin(x);
    struct entry own = read_entry(m, way, lane);

    for (int begin = 0; begin < way.most; begin += WARP) {
        const int count = way.most - begin < WARP ? way.most - begin : (int)WARP;

        __syncwarp();
        entries->b[lane] = own.b;
        entries->square[lane] = own.square;
        entries->rest[lane] = own.rest;
        __syncwarp();
        own = read_entry(m, way, begin + WARP + lane);
#pragma unroll 4
        for (int j = 0; j < count; j += 2) {
            wide ratio[2];

#pragma unroll
            for (int i = 0; i < 2; i++) {
                struct twisted_chain next = chain;

                ratio[i] = twisted_chain_step(x, entries->b[j + i], entries->square[j + i],
                                              entries->rest[j + i], &next);
                chain = begin + j + i < way.steps ? next : chain;
            }
            if (STORED && begin + j < way.steps) { /* maybe row r too: conclude() overwrites it */
                write_ratios(way.z, way.end, row_of(way, begin + j), ratio[0], ratio[1]);
            }
        }
    }
    return chain;
}

/* Both chains of each value. */
struct meeting {
    struct entries entries[ENDS];
    struct twisted_chain chain[ENDS][WARP];
};

/* All threads of the block call this. */
template <bool STORED>
static __device__ __forceinline__ struct met
meet(const struct twisted_matrix &m, const struct way &way, pair x, struct meeting *meeting)
{
    const int lane = (int)threadIdx.x % WARP;
    struct met met;

    const struct twisted_chain chain = walk_chain<STORED>(m, way, x, &meeting->entries[way.end]);

    __syncthreads(); /* the chains of the last meeting have been read */
    meeting->chain[way.end][lane] = chain;
    __syncthreads();
    met.g =
        twisted_meet(x, meeting->chain[TOP][lane], meeting->chain[BOTTOM][lane], &met.square_norm);
    return met;
}

/* Corrects a value until it is settled. */
static __device__ __forceinline__ pair
correct(const struct twisted_matrix &m, const struct way &way, pair x, double gap, bool settled,
        struct meeting *meeting)
{
    const double limit = twisted_angle_limit(m.n);

    for (int i = 0; i < TWISTED_CORRECTIONS; i++) {
        const struct met met = meet<false>(m, way, x, meeting);

        if (!settled) {
            const double angle = twisted_angle_square(met.g, met.square_norm, gap);

            /* an angle that is infinite or NaN will not get better */
            settled = !(angle < (double)INFINITY) || twisted_settles(angle, limit);
            x = twisted_correct(x, met.g, met.square_norm);
        }
        if (__syncthreads_and(settled)) {
            break;
        }
    }
    return x;
}

/* *x: the shift where corrections begin.  Returns whether it may need none.  segments.h may have
   settled the value even if its chains did not join. */
static __device__ __forceinline__ bool
first_shift(const struct twisted_device &run, const struct twisted_block &block, struct place at,
            double gap, pair *x)
{
    const double shift = shift_at(run, at);
    struct twisted_value state = first_state(shift);

    if (block.segments.count > 1 && block.segments.state[at.column].progress != OPEN &&
        fabs(pair_high(block.segments.state[at.column].x) - shift) <= gap / 4) {
        state = block.segments.state[at.column];
    }
    *x = state.x;
    return state.progress != OPEN;
}

static __global__ void
__launch_bounds__(CHAIN_THREADS) chain_kernel(struct twisted_device run, struct twisted_block block)
{
    const int last = 2 * (int)run.n - 1;
    struct place at = place_in_group(block, blockIdx.x);
    struct twisted_matrix m;
    __shared__ struct meeting meeting;
    __shared__ struct summary below[WARP];
    struct way way = {};
    struct met met;
    struct summary all;
    double gap;
    bool settled;
    int r;
    pair x;

    if (!twisted_takes(run)) {
        if (at.end == TOP && !at.repeats) {
            atomicAdd(&run.facts->refused, 1ULL);
        }
        return;
    }
    if (all_joined(block, at)) {
        return;
    }
    at = sorted_place(block, blockIdx.x);
    m = matrix_of(run);
    r = (int)block.twist[at.column];
    way.end = at.end;
    way.side = side_of_left(run);
    way.steps = at.end == TOP ? r : last - r;
    way.most = warp_most(way.steps);
    way.row = at.end == TOP ? 0 : last;
    way.z = column_of(block, at.column);
    gap = gap_of(run, at.value);
    settled = first_shift(run, block, at, gap, &x);
    if (__syncthreads_or(settled)) {
        met = meet<true>(m, way, x, &meeting);
        settled =
            settled && twisted_is_accurate(run.n, twisted_angle_square(met.g, met.square_norm, gap),
                                           met.g / met.square_norm, pair_high(x));
    }
    if (!__syncthreads_and(settled)) {
        x = correct(m, way, x, gap, settled, &meeting);
        met = meet<true>(m, way, x, &meeting);
    }
    all = unfold(way, 1);
    if (at.end == BOTTOM) {
        below[at.lane] = all;
    }
    __syncthreads();
    if (at.end == TOP) {
        summary_add(&all, below[at.lane]);
        conclude(run, block, at, x, met, all);
    }
}

#endif
