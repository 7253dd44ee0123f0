/*
 * Twisted factorisations on the device: the row of the twist.
 *
 * Two warps have 32 values, a lane of each the same one.  One walks the matrix from the top, the
 * other from the bottom.  The minors of the first half of a walk are stored, and the two lanes of a
 * value exchange them.
 *
 * In the end the values of a warp are sorted by their twists.  So in any row the lanes whose chains
 * go up are neighbours, and so are the lanes whose chains go down: their stores are coalesced.
 */
#ifndef TSVDI_CUDA_TWISTED_TWIST_H
#define TSVDI_CUDA_TWISTED_TWIST_H

#include "twisted/blocks.h"

/* A walk over minors from one end, by tiles of WARP rows.  Position j of a tile is its j-th row in
   the direction of the walk.  Minors are rescaled after stretches of STRIDE rows, which divides
   WARP. */
struct walk {
    int end;
    int64_t rows, width;
    const double *square; /* of T's entries */
    double *z;            /* the lane's column */
    int *power;           /* the same: [rows / STRIDE][width] */
    wide shift;
    struct twisted_minors p;
    wide_int twos; /* powers of two that were taken out of p */

    /* where the chain enters its next segment, unless it was the last one */
    const struct twisted_segments *segments;
    int segment;
    int64_t entrance; /* number of a tile */
    int64_t column;
};

/* Rows of a tile: from `begin` on, `count` of them. */
struct rows {
    int64_t begin;
    int count;
};

static __device__ __forceinline__ struct rows
rows_of(const struct walk &w, int64_t tile)
{
    const int64_t begin = tile * WARP, left = w.rows - begin;

    return {begin, left < WARP ? (int)left : (int)WARP};
}

/* Place of position j in the tile. */
static __device__ __forceinline__ int
place_in(const struct walk &w, struct rows r, int j)
{
    return w.end == TOP ? j : r.count - 1 - j;
}

/* The square of the entry that leads from the row of position `lane` to the next one.  There is
   none before the first row; the one after the last row is zero. */
static __device__ __forceinline__ double
read_square(const struct walk &w, struct rows r, int lane)
{
    const int64_t row = r.begin + place_in(w, r, lane < r.count ? lane : 0);
    const int64_t entry = w.end == TOP ? row : row - 1;

    return entry >= 0 ? __ldg(&w.square[entry]) : 0;
}

/* A tile as the other end has stored it. */
template <int STRIDE> struct stored {
    double minor[WARP];       /* by position */
    int power[WARP / STRIDE]; /* by place */
};

template <int STRIDE, bool FULL>
static __device__ __forceinline__ void
read_stored(const struct walk &w, struct rows r, struct stored<STRIDE> *s)
{
    const int64_t pitch = w.end == TOP ? w.width : -w.width;
    const double *z = w.z + (r.begin + place_in(w, r, 0)) * w.width;
    const int *power = w.power + r.begin / STRIDE * w.width;

#pragma unroll
    for (int j = 0; j < WARP; j++) {
        if (FULL || j < r.count) {
            s->minor[j] = *z;
            z += pitch;
        }
        if (j % STRIDE == 0 && (FULL || j < r.count)) {
            s->power[j / STRIDE] = *power;
            power += w.width;
        }
    }
}

template <int STRIDE>
static __device__ __forceinline__ void
read_tile(const struct walk &w, struct rows r, struct stored<STRIDE> *s)
{
    if (r.count == WARP) {
        read_stored<STRIDE, true>(w, r, s);
    } else {
        read_stored<STRIDE, false>(w, r, s);
    }
}

/* The power of the stretch that has a place. */
template <int STRIDE>
static __device__ __forceinline__ int
power_at(const struct stored<STRIDE> &s, int place)
{
    int power = 0;

#pragma unroll
    for (int i = 0; i < (int)WARP / STRIDE; i++) {
        power = place / STRIDE == i ? s.power[i] : power;
    }
    return power;
}

/* The best row so far, by twisted_key(). */
struct best {
    wide_int key;
    int64_t row;
};

/* A tile.  In the first half of the walk its minors are stored for the other end, in the second
   half they meet those of the other end. */
template <int STRIDE, bool COMPARED, bool FULL>
static __device__ __forceinline__ void
pass_rows(struct walk *w, struct rows r, const double (&square)[WARP],
          const struct stored<STRIDE> &other, struct best *best)
{
    const bool top = w->end == TOP;
    const int64_t pitch = top ? w->width : -w->width;
    double *z = w->z + (r.begin + place_in(*w, r, 0)) * w->width;
    wide most = -1;
    int at = 0;

#pragma unroll
    for (int j = 0; j < WARP; j++) {
        if (FULL || j < r.count) {
            const int place = place_in(*w, r, j), before = top ? place : place + 1;
            const int after = top ? place + 1 : place;

            if (FULL ? j % STRIDE == 0 : j == 0 || before % STRIDE == 0) {
                w->twos += twisted_minors_rescale(&w->p);
                if (!COMPARED) {
                    w->power[(r.begin + place) / STRIDE * w->width] = (int)w->twos;
                }
            }
            if (COMPARED) {
                const wide product = wide_abs(other.minor[j] * w->p.before);

                at = most < product ? place : at;
                most = most < product ? product : most;
            } else {
                *z = w->p.before;
                z += pitch;
            }
            twisted_minors_step(w->shift, square[j], &w->p);
            if (COMPARED &&
                (FULL ? (j + 1) % STRIDE == 0 : j == r.count - 1 || after % STRIDE == 0)) {
                const int from_top = other.power[j / STRIDE];
                const int from_bottom = other.power[WARP / STRIDE - 1 - j / STRIDE];
                const int full = top ? from_top : from_bottom;
                const int power = FULL ? full : power_at<STRIDE>(other, place);
                const wide_int key = twisted_key(
                    most * twisted_weight(w->rows / 2, r.begin + place), w->twos + power);

                if (best->key < key) {
                    best->key = key;
                    best->row = r.begin + at;
                }
                most = -1;
            }
        }
    }
}

/* A guess of the chain where it enters a segment with this tile, see twisted/segments.h. */
static __device__ __forceinline__ void
guess_entrance(struct walk *w)
{
    const int way = w->end == TOP ? 1 : -1;
    const double e = w->p.now / (w->p.before == 0 ? PAIR_TINY : w->p.before);

    w->segment += way;
    w->entrance += way * (w->segments->rows / WARP);
    write_entrance(*w->segments, w->end, w->segment, w->width, w->column, pair_of(e, 0.0), 0);
}

/* Walks over `count` tiles from number `tile` on.  square: scratch of the warp in shared memory. */
template <int STRIDE, bool COMPARED>
static __device__ __forceinline__ void
walk_tiles(struct walk *w, int64_t tile, int64_t count, double (&square)[WARP], struct best *best)
{
    const int lane = (int)threadIdx.x % WARP, way = w->end == TOP ? 1 : -1;
    struct stored<STRIDE> now, ahead;
    double next = count > 0 ? read_square(*w, rows_of(*w, tile), lane) : 0;

    if (COMPARED && count > 0) {
        read_tile(*w, rows_of(*w, tile), &ahead);
    }
    for (; count > 0; count--, tile += way) {
        const struct rows r = rows_of(*w, tile);

        now = ahead;
        __syncwarp();
        square[lane] = next;
        __syncwarp();
        if (count > 1) {
            next = read_square(*w, rows_of(*w, tile + way), lane);
            if (COMPARED) {
                read_tile(*w, rows_of(*w, tile + way), &ahead);
            }
        }
        if (tile == w->entrance) {
            guess_entrance(w);
        }
        if (r.count == WARP) {
            pass_rows<STRIDE, COMPARED, true>(w, r, square, now, best);
        } else {
            pass_rows<STRIDE, COMPARED, false>(w, r, square, now, best);
        }
    }
}

/* Finds the row with the largest entry, as far as this end compares; both warps call it. */
template <int STRIDE>
static __device__ __forceinline__ struct best
find_twist(struct walk *w, double (&square)[WARP])
{
    const int64_t tiles = (w->rows + WARP - 1) / WARP, middle = tiles / 2;
    const bool top = w->end == TOP;
    struct best best = {INT64_MIN, 0};

    walk_tiles<STRIDE, false>(w, top ? 0 : tiles - 1, top ? middle : tiles - middle, square, &best);
    __syncthreads();
    walk_tiles<STRIDE, true>(w, top ? middle : middle - 1, top ? tiles - middle : middle, square,
                             &best);
    return best;
}

/* The lane that a value moves to: how many twists of the warp come before its own. */
static __device__ __forceinline__ int
sorted_lane(const int64_t (&twist)[WARP], int lane)
{
    int before = 0;

#pragma unroll
    for (int i = 0; i < WARP; i++) {
        before += twist[i] < twist[lane] || (twist[i] == twist[lane] && i < lane);
    }
    return before;
}

/* Moves the guesses of an end's entrances to the sorted columns. */
static __device__ __forceinline__ void
move_entrances(const struct twisted_block &block, struct place at, int64_t column)
{
    const struct twisted_segments &segments = block.segments;

    for (int i = 1; i < segments.count; i++) {
        const int segment = at.end == TOP ? i : segments.count - 1 - i;
        double *part = chain_at(segments, at.end, segment, block.width, 0);
        const double e = part[ENTER_HIGH * block.width + at.column];

        __syncwarp();
        part[ENTER_HIGH * block.width + column] = e; /* ENTER_LOW and SLOPE are 0 */
    }
}

static __global__ void
__launch_bounds__(CHAIN_THREADS) twist_kernel(struct twisted_device run, struct twisted_block block)
{
    const struct place at = place_in_group(block, blockIdx.x);
    __shared__ double square[ENDS][WARP];
    __shared__ struct best other[WARP];
    __shared__ int64_t twist[WARP];
    struct walk w = {};
    struct best best;
    int64_t stride, column;

    if (!twisted_takes(run)) {
        return;
    }
    stride = matrix_of(run).stride;
    w.end = at.end;
    w.rows = 2 * run.n;
    w.width = block.width;
    w.square = run.square;
    w.z = block.z + at.column;
    w.power = block.power + at.column;
    w.shift = shift_at(run, at);
    w.p = twisted_minors_begin(w.shift);
    w.segments = &block.segments;
    w.segment = at.end == TOP ? 0 : block.segments.count - 1;
    w.entrance = (w.segment + 1 - at.end) * (block.segments.rows / WARP) - at.end;
    w.column = at.column;
    best = stride >= WARP          ? find_twist<WARP>(&w, square[at.end])
           : stride >= SOME_STRIDE ? find_twist<SOME_STRIDE>(&w, square[at.end])
                                   : find_twist<LEAST_STRIDE>(&w, square[at.end]);
    if (at.end == BOTTOM) {
        other[at.lane] = best;
    }
    __syncthreads();
    if (at.end == TOP) {
        twist[at.lane] = best.key >= other[at.lane].key ? best.row : other[at.lane].row;
    }
    __syncthreads();
    column = at.column - at.lane + sorted_lane(twist, at.lane);
    move_entrances(block, at, column);
    if (at.end == TOP) {
        if (block.segments.count > 1) {
            block.segments.state[column] = first_state(w.shift);
        }
        block.value[column] = (int)at.column;
        block.twist[column] = twist[at.lane];
    }
}

#endif
