/*
 * The log of a leaf's sweeps, and how a warp plays it to the leaf's vectors.
 *
 * The turns of a log are the half tangents of the rotations (rotation.h) of all its sweeps, in the
 * order in which they were made.  Where a leaf has a column more than rows, the log begins with the
 * `rows` right turns that dropped the column (extra_column_step()).
 *
 * The warp holds the vectors of both sides in registers.  A lane has one or two columns of one
 * side.
 */
#ifndef TSVDI_CUDA_DC_LEAF_LOG_H
#define TSVDI_CUDA_DC_LEAF_LOG_H

/* This must come before all that includes math/qr_sweep.h. */
#include "dc/half_tangents.h"

#include "dc/dc_run.h"

enum { SHORT_BITS = 5 };

static_assert((int)DC_LEAF_COLUMNS <= (int)WARP && (int)DC_LEAF_COLUMNS <= 1 << SHORT_BITS,
              "a lane settles a slot of a leaf, masks of rows have 32 bits, and a logged sweep has "
              "SHORT_BITS bits for a row: DC_LEAF_COLUMNS must be at most 32");

struct leaf {
    int64_t slot;   /* its first slot, first entry of d and e, and number of its first column */
    int64_t column; /* place of that column in rows of vectors */
    int64_t matrix; /* whose leaf it is */
    int rows, columns;
};

/* A leaf that has sweeps left when its log is full.  Its d and e are in slot.value and slot.z. */
struct straggler {
    int64_t leaf; /* number on the level of leaves */
    struct qr_state q;
};

/* What is in the log of a leaf. */
struct leaf_end {
    int sweeps, turns; /* logged */
    int done;          /* whether the leaf's values are in slot.value, with signs */
    unsigned negative; /* bit i: the leaf is done, and value i is negative */
};

/* The logs of some leaves. */
struct leaf_log {
    int width;                   /* columns of the widest leaf */
    int turns, sweeps;           /* capacity of the log of a leaf */
    struct half_tangents *turn;  /* [leaves][turns] */
    uint16_t *sweep;             /* [leaves][sweeps]: first, count, up; packed */
    struct leaf_end *end;        /* [leaves] */
    struct straggler *straggler; /* [leaves of the level] those whose log was full */
    unsigned *stragglers;        /* their number */
};

static __device__ __forceinline__ struct leaf
leaf_of(const struct dc_device &run, int64_t i)
{
    const struct dc_node node = node_at(run, run.levels, i);
    const struct leaf leaf = {node.first, node.first - node.base, node.matrix, (int)node.rows,
                              (int)node.columns};

    return leaf;
}

/* A logged sweep, as in struct qr_sweep. */
struct short_sweep {
    int first, count, up;
};

static __device__ __forceinline__ uint16_t
pack(struct qr_sweep s)
{
    return (uint16_t)((unsigned)s.first | (unsigned)s.count << SHORT_BITS |
                      (unsigned)s.up << 2 * SHORT_BITS);
}

static __device__ __forceinline__ struct short_sweep
unpack(unsigned packed)
{
    const unsigned mask = (1u << SHORT_BITS) - 1;
    const struct short_sweep s = {(int)(packed & mask), (int)(packed >> SHORT_BITS & mask),
                                  (int)(packed >> 2 * SHORT_BITS)};

    return s;
}

/* ---- vectors ---- */

/* How a warp holds the vectors of a leaf: LANES of its lanes have one side, and each of them has
   COLUMNS columns, LANES apart. */
template <int WIDTH> struct part {
    static constexpr int MOST = (int)WARP / (int)SIDES;
    static constexpr int LANES = WIDTH < MOST ? WIDTH : MOST;
    static constexpr int COLUMNS = WIDTH / LANES;
};

/* A ring buffer of the log's turns, which a warp takes WARP at a time.  Turn t is in place
   t % (2 WARP).  If that is below WARP, the turn is also 2 WARP places later, so that the turns of
   a sweep are contiguous.  LEAF_GROUP places of padding before and after are read, but not used. */
struct ring {
    struct lifting turn[SIDES][(int)LEAF_GROUP + 3 * (int)WARP + (int)LEAF_GROUP];
};

/* How far a warp has read the turns of a log. */
struct reader {
    const struct half_tangents *turn; /* [turns] the log */
    int turns;                        /* logged */
    int ready;                        /* turns that have come to the ring */
    struct half_tangents next;        /* prefetched: the lane's turn of the next WARP turns */
};

/* What a lane has of a leaf's vectors. */
template <int WIDTH> struct vectors_part {
    int side, column;                    /* of the first of its columns */
    bool present[part<WIDTH>::COLUMNS];  /* whether the leaf has the column */
    real x[part<WIDTH>::COLUMNS][WIDTH]; /* entry i of each is of vector i */
};

static __device__ __forceinline__ void
rotate(struct lifting q, real *x, real *y)
{
    *x = r_fma(q.t, *y, *x);
    *y = r_fma(-q.s, *x, *y);
    *x = r_fma(q.t, *y, *x);
}

/* Prefetches the next WARP turns, one in each lane. */
static __device__ __forceinline__ void
read_ahead(struct reader *r)
{
    const int turn = r->ready + (int)threadIdx.x % WARP;

    if (turn < r->turns) {
        r->next = r->turn[turn];
    }
}

/* Puts the prefetched turns into the ring, and prefetches the next ones. */
static __device__ __forceinline__ void
take_turns(struct reader *r, struct ring *ring)
{
    const struct lifting turn[SIDES] = {rotation_lift(r->next.right), rotation_lift(r->next.left)};
    const int at = r->ready % (2 * WARP), place = LEAF_GROUP + at + (int)threadIdx.x % WARP;

    __syncwarp(); /* all lanes have used the turns that were there */
#pragma unroll
    for (int side = 0; side < SIDES; side++) {
        ring->turn[side][place] = turn[side];
        if (at == 0) {
            ring->turn[side][place + 2 * WARP] = turn[side];
        }
    }
    __syncwarp();
    r->ready += WARP;
    read_ahead(r);
}

/* Applies the turns of a sweep to columns of the vectors. */
template <int WIDTH, int COLUMNS>
static __device__ __forceinline__ void
apply(struct short_sweep s, const struct lifting *turn, real (&x)[COLUMNS][WIDTH])
{
    const unsigned group = (1u << LEAF_GROUP) - 1, rows = ((1u << s.count) - 1) << s.first;

    if (s.up) {
#pragma unroll
        for (int i = WIDTH - LEAF_GROUP; i >= 0; i -= LEAF_GROUP) {
            if ((rows & group << i) != 0) {
                struct lifting q[LEAF_GROUP];

#pragma unroll
                for (int k = 0; k < LEAF_GROUP; k++) {
                    q[k] = turn[s.first + s.count - 1 - (i + k)];
                }
#pragma unroll
                for (int k = i + LEAF_GROUP - 1; k >= i; k--) {
                    if (k < WIDTH - 1 && (rows & 1u << k) != 0) {
#pragma unroll
                        for (int c = 0; c < COLUMNS; c++) {
                            rotate(q[k - i], &x[c][k + 1], &x[c][k]);
                        }
                    }
                }
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; i += LEAF_GROUP) {
            if ((rows & group << i) != 0) {
                struct lifting q[LEAF_GROUP];

#pragma unroll
                for (int k = 0; k < LEAF_GROUP; k++) {
                    q[k] = turn[i + k - s.first];
                }
#pragma unroll
                for (int k = i; k < i + LEAF_GROUP; k++) {
                    if (k < WIDTH - 1 && (rows & 1u << k) != 0) {
#pragma unroll
                        for (int c = 0; c < COLUMNS; c++) {
                            rotate(q[k - i], &x[c][k], &x[c][k + 1]);
                        }
                    }
                }
            }
        }
    }
}

/* How many of the `count` first lanes come before this one, by ascending values, at a tie by
   lanes. */
static __device__ __forceinline__ int
rank_of(real value, int count)
{
    const int lane = (int)threadIdx.x % WARP;
    int rank = 0;

    for (int i = 0; i < count; i++) {
        const real other = __shfl_sync(0xffffffffu, value, i);

        rank += other < value || (other == value && i < lane);
    }
    return rank;
}

/* A warp writes values, ranges and order of a leaf's slots. */
static __device__ __forceinline__ void
settle(const struct dc_device &run, const struct leaf &leaf)
{
    const int lane = (int)threadIdx.x % WARP;
    const int64_t j = leaf.slot + lane;
    const real value = lane < leaf.rows ? r_abs(run.slot.value[j]) : REAL(0);
    const int rank = rank_of(value, leaf.rows);

    if (lane < leaf.rows) {
        run.slot.value[j] = value;
        run.slot.low[j] = leaf.slot;
        run.slot.high[j] = leaf.slot + leaf.columns;
        run.slot.order[leaf.slot + rank] = j;
    }
}

/* Bit i: the entry of largest magnitude (the first at a tie) of vector i on side `side` is
   negative. */
template <int WIDTH>
static __device__ __forceinline__ unsigned
find_flips(const struct vectors_part<WIDTH> &v, int rows, int side)
{
    constexpr int LANES = part<WIDTH>::LANES, COLUMNS = part<WIDTH>::COLUMNS;
    const unsigned group = ((1u << LANES) - 1) << (side * LANES);
    unsigned flips = 0;

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < rows) {
            real most = REAL(-1);
            bool flip = false;

#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                most = v.present[c] ? r_max(most, r_abs(v.x[c][i])) : most;
            }
#pragma unroll
            for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
                most = r_max(most, __shfl_xor_sync(0xffffffffu, most, lanes));
            }
#pragma unroll
            for (int c = COLUMNS - 1; c >= 0; c--) {
                unsigned first =
                    __ballot_sync(0xffffffffu, v.present[c] && r_abs(v.x[c][i]) == most) & group;
                const unsigned negative = __ballot_sync(0xffffffffu, v.x[c][i] < 0);

                first &= 0u - first;
                flip = first != 0 ? (negative & first) != 0 : flip;
            }
            flips |= (unsigned)flip << i;
        }
    }
    return flips;
}

/* Writes the vectors of a matrix that is all one leaf to the results, in the order of the values,
   with their signs fixed. */
template <int WIDTH>
static __device__ __forceinline__ void
store(const struct dc_device &run, const struct leaf &leaf, const struct vectors_part<WIDTH> &v)
{
    const int lane = (int)threadIdx.x % WARP, by_columns = run.lower ? RIGHT : LEFT;
    const real value = lane < leaf.rows ? r_abs(run.slot.value[leaf.slot + lane]) : REAL(0);
    const unsigned flips = find_flips<WIDTH>(v, leaf.rows, by_columns);
    real *to = (v.side == LEFT ? run.left : run.right) + leaf.matrix * run.n * run.k;
    /* the rank of vector `lane` among the wanted ones; the largest value is first */
    const int rank = leaf.rows - 1 - rank_of(value, leaf.rows) - (int)run.first;

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < leaf.rows) {
            const int64_t r = __shfl_sync(0xffffffffu, rank, i);

#pragma unroll
            for (int c = 0; c < part<WIDTH>::COLUMNS; c++) {
                const int64_t column = v.column + c * part<WIDTH>::LANES;

                if (v.present[c] && r >= 0 && r < run.k) {
                    to[v.side == by_columns ? column * run.k + r : r * run.n + column] =
                        flips >> i & 1 ? -v.x[c][i] : v.x[c][i];
                }
            }
        }
    }
}

/* Plays the turns that dropped a column.  null: the lane's columns of the null vector.  Returns the
   number of turns. */
template <int WIDTH>
static __device__ __forceinline__ int
play_drop(const struct leaf &leaf, struct reader &reader, struct ring *ring,
          struct vectors_part<WIDTH> &v, real (&null)[part<WIDTH>::COLUMNS])
{
    take_turns(&reader, ring);
#pragma unroll
    for (int i = WIDTH - 1; i >= 0; i--) {
        if (i < leaf.rows) {
#pragma unroll
            for (int c = 0; c < part<WIDTH>::COLUMNS; c++) {
                rotate(ring->turn[v.side][LEAF_GROUP + i], &v.x[c][i], &null[c]);
            }
        }
    }
    return leaf.rows;
}

/* The unit_change() of a vector, of which a lane has the columns x. */
template <int WIDTH>
static __device__ __forceinline__ real
change_of(const real (&x)[part<WIDTH>::COLUMNS])
{
    real square = 0;

#pragma unroll
    for (int c = 0; c < part<WIDTH>::COLUMNS; c++) {
        square = r_fma(x[c], x[c], square);
    }
#pragma unroll
    for (int lanes = part<WIDTH>::LANES / 2; lanes > 0; lanes /= 2) {
        square += __shfl_xor_sync(0xffffffffu, square, lanes);
    }
    return unit_change(square);
}

/* Brings the vectors of a leaf to norm 1. */
template <int WIDTH>
static __device__ __forceinline__ void
normalize(const struct leaf &leaf, struct vectors_part<WIDTH> &v,
          real (&null)[part<WIDTH>::COLUMNS])
{
    constexpr int COLUMNS = part<WIDTH>::COLUMNS;

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < leaf.rows) {
            real x[COLUMNS], change;

#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                x[c] = v.x[c][i];
            }
            change = change_of<WIDTH>(x);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                v.x[c][i] = r_fma(change, x[c], x[c]);
            }
        }
    }
    if (leaf.columns > leaf.rows) {
        const real change = change_of<WIDTH>(null);

#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            null[c] = r_fma(change, null[c], null[c]);
        }
    }
}

/* Plays `sweeps` sweeps, whose turns begin with turn `begin` of the log. */
template <int WIDTH>
static __device__ __forceinline__ void
play_sweeps(const uint16_t *sweep, int sweeps, int begin, struct reader &reader, struct ring *ring,
            struct vectors_part<WIDTH> &v)
{
    const int lane = (int)threadIdx.x % WARP;
    int packed = 0; /* the lane's sweep of WARP sweeps */

    for (int i = 0; i < sweeps; i++) {
        struct short_sweep s;

        if (i % WARP == 0) {
            packed = i + lane < sweeps ? sweep[i + lane] : 0;
        }
        s = unpack((unsigned)__shfl_sync(0xffffffffu, packed, i % WARP));
        if (begin + s.count > reader.ready) {
            take_turns(&reader, ring);
        }
        apply<WIDTH>(s, &ring->turn[v.side][LEAF_GROUP + begin % (2 * WARP)], v.x);
        begin += s.count;
    }
}

/*
 * Plays log `at` to the vectors of a leaf: to the identity if `fresh`, else to those in run.x.  The
 * vectors go to run.x, or to the results if the leaf is done and is its whole matrix.
 */
template <int WIDTH>
static __device__ __forceinline__ void
play(const struct dc_device &run, const struct leaf &leaf, const struct leaf_log &log, int64_t at,
     bool fresh, struct ring *ring)
{
    constexpr int LANES = part<WIDTH>::LANES, COLUMNS = part<WIDTH>::COLUMNS;
    const int lane = (int)threadIdx.x % WARP, sides_lane = lane / LANES;
    const struct leaf_end end = log.end[at];
    const uint16_t *sweep = log.sweep + at * log.sweeps;
    struct vectors_part<WIDTH> v;
    struct reader reader = {log.turn + at * log.turns, end.turns, 0, {0, 0}};
    int begin = 0; /* the first turn of the sweeps */
    real *to, null[COLUMNS];
    bool has_null;

    read_ahead(&reader);                        /* in flight while the vectors are set up */
    v.side = sides_lane == LEFT ? LEFT : RIGHT; /* a lane of neither side has no columns */
    v.column = lane % LANES;
    has_null = v.side == RIGHT && leaf.columns > leaf.rows;
    to = side_of(run.x, run, v.side) + leaf.slot * run.stride + leaf.column + v.column;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        const int column = v.column + c * LANES;

        v.present[c] = sides_lane < SIDES && column < leaf.columns;
        null[c] = column == leaf.rows ? REAL(1) : REAL(0);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            v.x[c][i] = i == column ? REAL(1) : REAL(0);
            if (!fresh && v.present[c] && i < leaf.rows) {
                v.x[c][i] = to[i * run.stride + c * LANES];
            }
        }
        if (!fresh && v.present[c] && has_null) {
            null[c] = to[leaf.rows * run.stride + c * LANES];
        }
    }
    if (fresh && leaf.columns > leaf.rows) {
        begin = play_drop<WIDTH>(leaf, reader, ring, v, null);
    }
    play_sweeps<WIDTH>(sweep, end.sweeps, begin, reader, ring, v);
    if (end.done) {
        normalize<WIDTH>(leaf, v, null);
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            v.x[c][i] = v.side == LEFT && (end.negative >> i & 1) ? -v.x[c][i] : v.x[c][i];
        }
    }
    if (end.done && run.levels == 0) {
        store<WIDTH>(run, leaf, v);
    } else {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                if (v.present[c] && i < leaf.rows) {
                    to[i * run.stride + c * LANES] = v.x[c][i];
                }
            }
            if (v.present[c] && has_null) {
                to[leaf.rows * run.stride + c * LANES] = null[c];
            }
        }
    }
    if (end.done) {
        settle(run, leaf);
    }
}

#endif
