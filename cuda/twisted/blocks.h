/*
 * Twisted factorisations on the device: what twists and chains of a block of values share.
 *
 * A lane has a value, and walks over rows of T from the top or from the bottom.  Each row of
 * block->z holds a ratio: that of the entry of z there to the one next to it towards row r.  To
 * write all entries in the place of the ratios would take as long as to make the ratios.  So only
 * every RUN-th row and row r get their entries, and read_run() makes all other entries from them.
 *
 * Two rows of a value are contiguous, and are read and written at once: half as many lanes share a
 * sector of memory, 32 bytes.  If lanes that share a sector walk in opposite directions each writes
 * only a part of it, which memory has to read, change and write back.
 */
#ifndef TSVDI_CUDA_TWISTED_BLOCKS_H
#define TSVDI_CUDA_TWISTED_BLOCKS_H

#include "twisted/twisted_run.h"

/* Threads of a block that has two warps for 32 values, one for each end. */
enum { CHAIN_THREADS = ENDS * (int)WARP };

/* Entries of z that a lane loads at once: a step takes far less than the latency of a load. */
enum { AHEAD = 16 };

/* Rows of z from one that has its entry to the next. */
enum { RUN = WARP };

/* A value's column of block->z. */
struct column {
    double *first; /* the place of row 0 */
    int64_t pitch; /* from there to row 2 */
};

static __device__ __forceinline__ struct column
column_of(const struct twisted_block &block, int64_t column)
{
    return {block.z + 2 * column, 2 * block.width};
}

static __device__ __forceinline__ double *
place_of(const struct column &z, int row)
{
    return z.first + (unsigned)row / 2 * z.pitch + (unsigned)row % 2;
}

/* Rows `row` and row + 1; `row` is even. */
static __device__ __forceinline__ double2 *
places_of(const struct column &z, int row)
{
    return (double2 *)place_of(z, row);
}

/* Writes the ratios of two steps, the first of which leads away from `row`: that is even on the way
   from the top, and odd on the way from the bottom. */
static __device__ __forceinline__ void
write_ratios(const struct column &z, int end, int row, double first, double second)
{
    *places_of(z, end == TOP ? row : row - 1) =
        end == TOP ? double2{first, second} : double2{second, first};
}

/* The place of a thread: its end of the matrix, and its value. */
struct place {
    int end, lane;
    int64_t column; /* of the block's arrays */
    int64_t value;  /* of the k wanted ones */
    bool repeats;   /* padding: it repeats the last value */
};

static __device__ __forceinline__ void
give_value(const struct twisted_block &block, int64_t i, struct place *p)
{
    p->repeats = i >= block.count;
    p->value = block.begin + (p->repeats ? block.count - 1 : i);
}

static __device__ __forceinline__ struct place
place_in_group(const struct twisted_block &block, int64_t group)
{
    struct place p;

    p.end = (int)threadIdx.x / WARP;
    p.lane = (int)threadIdx.x % WARP;
    p.column = group * WARP + p.lane;
    give_value(block, p.column, &p);
    return p;
}

/* The same when the lanes of a warp are in the order of their twists. */
static __device__ __forceinline__ struct place
sorted_place(const struct twisted_block &block, int64_t group)
{
    struct place p = place_in_group(block, group);

    give_value(block, block.value[p.column], &p);
    return p;
}

static __device__ __forceinline__ double
shift_at(const struct twisted_device &run, struct place at)
{
    return found_at(run, at.value);
}

static __device__ __forceinline__ struct twisted_value
first_state(double shift)
{
    return {pair_of(shift, 0.0), 0, {0, 0}, TWISTED_AT_ONCE ? SETTLED : OPEN};
}

/* Whether segments.h has joined the chains of all values of a warp. */
static __device__ __forceinline__ bool
all_joined(const struct twisted_block &block, struct place at)
{
    return block.segments.count > 1 &&
           __all_sync(0xffffffffu, block.segments.state[at.column].progress == JOINED);
}

/* Part 0 of a chain; the next one is `width` numbers further. */
static __device__ __forceinline__ double *
chain_at(const struct twisted_segments &segments, int end, int segment, int64_t width,
         int64_t column)
{
    return segments.chain + ((int64_t)end * segments.count + segment) * CHAIN_PARTS * width +
           column;
}

static __device__ __forceinline__ void
write_entrance(const struct twisted_segments &segments, int end, int segment, int64_t width,
               int64_t column, pair e, double slope)
{
    double *part = chain_at(segments, end, segment, width, column);

    part[ENTER_HIGH * width] = pair_high(e);
    part[ENTER_LOW * width] = pair_low(e);
    part[SLOPE * width] = slope;
}

/* The largest number of a warp, in all lanes. */
static __device__ __forceinline__ int
warp_most(int x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const int other = __shfl_xor_sync(0xffffffffu, x, lanes);

        x = other > x ? other : x;
    }
    return x;
}

/* Which rows of z become columns of L: 0 the even ones, 1 the odd ones. */
static __device__ __forceinline__ int
side_of_left(const struct twisted_device &run)
{
    return run.lower ? 0 : 1;
}

/* A summary of rows of z: the sums of the squares of even and of odd rows, and the largest and the
   least entry of L among them, or 0. */
struct summary {
    double sum[2], largest, least;
};

static __device__ __forceinline__ void
summary_add(struct summary *all, const struct summary &part)
{
    all->sum[0] += part.sum[0];
    all->sum[1] += part.sum[1];
    all->largest = fmax(all->largest, part.largest);
    all->least = fmin(all->least, part.least);
}

/* A lane's way over rows from one end towards row r.  Each step leads away from a row. */
struct way {
    int end;
    int side; /* side_of_left() */
    int steps;
    int most; /* steps of any lane of the warp */
    int row;  /* that step 0 leads away from: even from the top, odd from the bottom */
    struct column z;
    bool goes_on; /* whether z in the row of step 0 is `outer`, where another way begins */
    double outer;
};

/* The row that a step leads away from. */
static __device__ __forceinline__ int
row_of(const struct way &way, int step)
{
    return way.end == TOP ? way.row + step : way.row - step;
}

/* The ratios of AHEAD steps from step `begin` on, an even one. */
static __device__ __forceinline__ void
read_ratios(const struct way &way, int begin, double (&ratio)[AHEAD])
{
#pragma unroll
    for (int j = 0; j < AHEAD; j += 2) {
        double2 two = {0, 0};

        if (begin >= 0 && begin + j < way.steps) {
            two = *places_of(way.z, row_of(way, begin + j) - (way.end == TOP ? 0 : 1));
        }
        ratio[j] = way.end == TOP ? two.x : two.y;
        ratio[j + 1] = way.end == TOP ? two.y : two.x;
    }
}

/* Makes z from the ratios.  Each RUN-th entry is written in the place of its ratio.  x: z in the
   row that the last step leads to, which is left out of the summary. */
static __device__ __forceinline__ struct summary
unfold(const struct way &way, double x)
{
    const int last = (way.most + AHEAD - 1) / AHEAD * AHEAD - AHEAD;
    /* step 0 leads away from an even row, or from the bottom from an odd one */
    const bool left_first = way.side == (way.end == TOP ? 0 : 1); /* whether L has step 0 */
    struct summary all = {};
    double part[2] = {0, 0}, ratio[AHEAD], next[AHEAD];

    read_ratios(way, last, ratio);
    for (int begin = last; begin >= 0; begin -= AHEAD) {
        read_ratios(way, begin - AHEAD, next);
#pragma unroll
        for (int j = AHEAD - 1; j >= 0; j--) {
            if (begin + j < way.steps) {
                const int step = begin + j, row = row_of(way, step);

                x = step == 0 && way.goes_on ? way.outer : ratio[j] * x;
                if (row % RUN == 0) {
                    *place_of(way.z, row) = x;
                }
                part[j % 2] = fma(x, x, part[j % 2]);
                if ((j % 2 == 0) == left_first) {
                    all.largest = fmax(all.largest, x);
                    all.least = fmin(all.least, x);
                }
            }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            ratio[j] = next[j];
        }
    }
    all.sum[0] = part[way.end == TOP ? 0 : 1];
    all.sum[1] = part[way.end == TOP ? 1 : 0];
    return all;
}

/* Entries of z from row `begin` on, a multiple of RUN.  Rows past the last one are not read. */
static __device__ __forceinline__ void
read_run(const struct twisted_device &run, const struct twisted_block &block, int64_t column,
         int begin, double (&z)[RUN])
{
    const struct column from = column_of(block, column);
    const int r = (int)block.twist[column] - begin, rows = 2 * (int)run.n - begin;
    double x = r >= RUN ? *place_of(from, begin + RUN) : 1;

#pragma unroll
    for (int i = 0; i < RUN; i += 2) {
        const double2 two = i < rows ? *places_of(from, begin + i) : double2{0, 0};

        z[i] = two.x;
        z[i + 1] = two.y;
    }
#pragma unroll
    for (int i = RUN - 1; i > 0; i--) { /* above row r */
        x = i < r ? z[i] * x : x;
        z[i] = i < r ? x : z[i];
    }
#pragma unroll
    for (int i = 1; i < RUN; i++) { /* below row r */
        z[i] = i > r ? z[i] * z[i - 1] : z[i];
    }
}

/* Writes the last numbers of a value: row r of z, the factors of its rows and the value itself.
   Counts it in `refused` if it does not pass the gates.  x: the shift of its vector.  all: the
   summary of z without row r.

   The factors make the largest entry of L's column positive, as entries will be rounded.  Where the
   largest and the least then tie in magnitude, the first of them decides: vectors.cu looks for
   it. */
static __device__ __forceinline__ void
conclude(const struct twisted_device &run, const struct twisted_block &block, struct place at,
         pair x, struct met met, struct summary all)
{
    const int64_t value = at.value, r = block.twist[at.column];
    const int side = side_of_left(run);
    const double gap = gap_of(run, value), shift = shift_at(run, at);
    const double angle = twisted_angle_square(met.g, met.square_norm, gap);
    const struct summary twist = {
        {r % 2 == 0 ? 1. : 0., r % 2 == 0 ? 0. : 1.}, r % 2 == side ? 1. : 0., 0};
    double factor[2], left;
    real largest, least;

    *place_of(column_of(block, at.column), (int)r) = 1;
    summary_add(&all, twist);
    factor[0] = 1 / sqrt(all.sum[0]);
    factor[1] = 1 / sqrt(all.sum[1]);
    left = side == 0 ? factor[0] : factor[1];
    largest = (real)(all.largest * left);
    least = (real)(all.least * left);
    block.factor[0][at.column] = -least > largest ? -factor[0] : factor[0];
    block.factor[1][at.column] = -least > largest ? -factor[1] : factor[1];
    block.tied[at.column] = -least == largest;
    if (at.repeats) {
        return;
    }
    x = twisted_correct(x, met.g, met.square_norm);
    run.value[value] = pair_high(x);
    run.s[value] = twisted_value(pair_high(x), pair_low(x), run.exponent);
    if (!(twisted_parts(shift, gap) &&
          twisted_accepts(run.n, angle, all.sum[0] / all.sum[1], shift, pair_high(x), gap))) {
        atomicAdd(&run.facts->refused, 1ULL);
    }
}

#endif
