/*
 * One-sided Jacobi on the device: matrices of up to 32 x 32.
 *
 * G threads of a warp have a matrix.  A thread has a row of X and one of J in its registers, so
 * that rotations of columns need nothing of other threads.  What is known of a column as a whole,
 * its norm and scale, is with the thread of the column's number.
 *
 * The G columns stand in two rows of G / 2 places.  In each round the two columns one above the
 * other meet, and then all but the first go on by one place in a ring: along the top, and back
 * along the bottom (Brent & Luk, SIAM J. Sci. Stat. Comput. 6 (1985)).  After G - 1 rounds each
 * pair has met, and the columns are back.  A place is a register, so the loop over the rounds need
 * not be unrolled, and a move is no more than where a result is written.
 *
 * A rotation is applied as three shears, one fused operation an entry each: for the upper column a
 * and the lower one b, whatever the sign of s,
 *
 *     a' = c a + s b,   b' = c b - s a:   a += h b,   b -= s a,   a += h b,   h = s / (1 + c),
 *
 * for c = 1 - h s.  Small angles take no 1 - c that would be rounded.  With 2^shift the scale of b
 * over that of a, h and s become h 2^shift and s / 2^shift in X: with forward and back of
 * math/jacobi.h, h 2^shift = forward / (1 + c) if a is the longer column, and else, as the roles
 * change, -back / (1 + c).  No factor overflows, as back is at most about the quotient of kept
 * norms; where forward underflows, its shears do nothing.
 */
#ifndef TSVDI_CUDA_DENSE_JACOBI_WARP_H
#define TSVDI_CUDA_DENSE_JACOBI_WARP_H

#include "dense/jacobi_run.h"

enum { JACOBI_WARP_THREADS = 64 };

/* Blocks of a multiprocessor with 65536 registers, by those that the rows of a thread take. */
static constexpr int
jacobi_warp_blocks(int numbers)
{
    return numbers * (int)sizeof(real) >= 512 ? 6 : numbers * (int)sizeof(real) >= 256 ? 8 : 10;
}

/* A thread's row of X, or of J, by places. */
template <int G> struct jacobi_row {
    real top[G / 2], bottom[G / 2];
};

/* What a thread knows of the column of its number. */
struct jacobi_column {
    real norm, most_norm; /* now, and the largest at the beginning of a sweep */
    int exponent;         /* X's column is its entries times 2^exponent */
    bool lost;            /* the norm has to be found from the entries */
};

/* Where a column stands in a round. */
struct jacobi_place {
    int place; /* of the top row: 0 .. G / 2 - 1, of the bottom row: G / 2 .. G - 1 */
    int other; /* the column that it meets */
};

/* The shears of a pair. */
struct __align__(2 * sizeof(real)) jacobi_shears
{
    real half, whole; /* a += half b, b += whole a, a += half b */
};

/* What a warp shares. */
template <int G> struct jacobi_warp {
    struct jacobi_shears j[G / 2][WARP / G], x[G / 2][WARP / G];
    real factor[WARP]; /* by places, for each matrix */
};

/* ---- short arithmetic ----
 *
 * Divisions and roots that branch would keep a thread from working on several operands at once.
 * These take an approximation of 20 bits or more and a step of third order, for normal numbers
 * whose reciprocal is one.  Of other numbers NaN may come. */

static __device__ __forceinline__ real
short_reciprocal(real x)
{
    real y, rest;

#if TSVD_SINGLE
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#endif
    rest = r_fma(-x, y, 1);
    return r_fma(y, r_fma(rest, rest, rest), y);
}

/* 1 / sqrt(x) */
static __device__ __forceinline__ real
short_inverse_root(real x)
{
    real y, rest;

#if TSVD_SINGLE
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#endif
    rest = r_fma(-(x * y), y, 1);
    return r_fma(y * rest, r_fma(REAL(0.375), rest, REAL(0.5)), y);
}

/* ---- a row ---- */

/* The entry of column j at the beginning of a sweep, and at its end. */
template <int G>
static __device__ __forceinline__ real &
entry(struct jacobi_row<G> &row, int j)
{
    return j < G / 2 ? row.top[j] : row.bottom[G - 1 - j];
}

static __device__ __forceinline__ void
shear(const struct jacobi_shears &turn, real *a, real *b)
{
    *a = r_fma(turn.half, *b, *a);
    *b = r_fma(turn.whole, *a, *b);
    *a = r_fma(turn.half, *b, *a);
}

/* ---- the ring ---- */

template <int G>
static __device__ __forceinline__ struct jacobi_place
place_of(int column, int round)
{
    const int circle = G - 1;
    struct jacobi_place is = {0, circle - round}; /* of column 0 */
    int along = column - 1 + round, other;

    along -= along < circle ? 0 : circle;
    other = G - 3 - along - round;
    other += other < 0 ? circle : 0;
    if (column > 0) {
        is.place = along < G / 2 - 1 ? along + 1 : G / 2 + G - 2 - along;
        is.other = along == G - 2 ? 0 : 1 + other;
    }
    return is;
}

/* ---- over the rows ---- */

/* What is gathered: a sum, but for LARGEST. */
enum jacobi_gather {
    DOTS,    /* of pair i: its product */
    SQUARES, /* of place i: the square of the norm */
    LARGEST  /* of place i: the largest magnitude */
};

/* Of `COUNT` numbers from `FIRST` on: number i over the threads, in each thread lane with lane /
   STEP % COUNT == i.  The halves that a thread does not need go to one that does, so that in each
   step half as many numbers are left. */
template <int G, enum jacobi_gather WHAT, int FIRST, int COUNT>
static __device__ __forceinline__ real
gather(const struct jacobi_row<G> &x, int lane)
{
    if constexpr (COUNT == 1) {
        const real own = FIRST < G / 2 ? x.top[FIRST % (G / 2)] : x.bottom[FIRST % (G / 2)];

        return WHAT == DOTS      ? own * x.bottom[FIRST % (G / 2)]
               : WHAT == SQUARES ? own * own
                                 : r_abs(own);
    } else {
        constexpr int half = COUNT / 2, mask = half * (WHAT == DOTS ? 2 : 1);
        const real low = gather<G, WHAT, FIRST, half>(x, lane);
        const real high = gather<G, WHAT, FIRST + half, half>(x, lane);
        const bool upper = (lane & mask) > 0;
        const real own = upper ? high : low;
        const real got = __shfl_xor_sync(0xffffffffu, upper ? low : high, mask);

        return WHAT == LARGEST ? r_max(own, got) : own + got;
    }
}

/* The product of the two columns at place lane / 2. */
template <int G>
static __device__ __forceinline__ real
gather_dots(const struct jacobi_row<G> &x, int lane)
{
    const real sum = gather<G, DOTS, 0, G / 2>(x, lane);

    return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
}

/* ---- columns ---- */

/* Multiplies columns by factors of which the threads have those of their columns.  of: the factors
   of this matrix, shared. */
template <int G>
static __device__ __forceinline__ void
scale_columns(struct jacobi_row<G> *x, real *of, int place, real factor)
{
    __syncwarp();
    of[place] = factor;
    __syncwarp();
#pragma unroll
    for (int p = 0; p < G / 2; p++) {
        x->top[p] *= of[p];
        x->bottom[p] *= of[G / 2 + p];
    }
}

/* Brings the columns to where their squares neither overflow nor underflow. */
template <int G>
static __device__ __forceinline__ void
begin_columns(struct jacobi_row<G> *x, struct jacobi_column *own, real *of, int lane)
{
    const int place = place_of<G>(lane, 0).place;
    const real most = gather<G, LARGEST, 0, G>(*x, lane);
    real_int power;

    (void)r_split(__shfl_sync(0xffffffffu, most, place, G), &power);
    *own = {};
    own->exponent = (int)power;
    /* two steps: one power may be out of range */
    scale_columns<G>(x, of, place, r_pow2((int)-(power / 2)));
    scale_columns<G>(x, of, place, r_pow2((int)-(power - power / 2)));
}

/* Finds the norms of columns, and brings them close to 1.  A column that is no more than rounding
   errors becomes zero.  wanted: this thread's column is one of them; begins: so does a sweep. */
template <int G>
static __device__ __forceinline__ void
measure_columns(struct jacobi_row<G> *x, struct jacobi_column *own, real *of, int lane, int place,
                int r, bool wanted, bool begins)
{
    const real square = __shfl_sync(0xffffffffu, gather<G, SQUARES, 0, G>(*x, lane), place, G);
    real factor = 1;

    if (wanted) {
        const real norm = r_sqrt(square);

        own->norm = norm;
        own->lost = false;
        if (norm > 0 && (norm < JACOBI_NORM_LEAST || norm > JACOBI_NORM_MOST)) {
            real_int power;

            own->norm = r_split(norm, &power);
            factor = r_pow2((int)-power);
            own->exponent += (int)power;
            own->most_norm *= factor;
        }
        if (norm > 0 && own->norm <= jacobi_noise(r) * own->most_norm) {
            own->norm = factor = 0;
        }
        own->most_norm = begins ? r_max(own->most_norm, own->norm) : own->most_norm;
    }
    if (__any_sync(0xffffffffu, factor != 1)) {
        scale_columns<G>(x, of, place, factor);
    }
}

/* ---- rotations ---- */

/* What this thread's column and the one that it meets do to each other. */
struct jacobi_meeting_of_rows {
    bool turns; /* they are not orthogonal */
    bool even;  /* they have the same scale, so X takes the shears of J */
    struct jacobi_shears x, j;
};

/* The rotation of this thread's column and the other one, by their product; the norm goes along.
   active: they may turn.  top: this thread's is the upper one; norm, exponent: of the other one.
   The formulas are those of math/jacobi.h, in which x is the longer column. */
static __device__ __forceinline__ struct jacobi_meeting_of_rows
meet_columns(struct jacobi_column *own, bool active, bool top, real dot, real norm, int exponent,
             real tolerance)
{
    const bool there = active && own->norm > 0 && norm > 0;
    const int shift_top = top ? exponent - own->exponent : own->exponent - exponent;
    const real norm_top = top ? own->norm : norm, norm_bottom = top ? norm : own->norm;
    const bool top_longer = !jacobi_is_less(norm_top, norm_bottom, shift_top);
    const bool longer = top == top_longer; /* this thread's column */
    const int shift = top_longer ? shift_top : -shift_top;
    const real x = top_longer ? norm_top : norm_bottom, y = top_longer ? norm_bottom : norm_top;
    const real inverse = short_reciprocal(x * y);
    const real h = dot * inverse, ratio = y * inverse * y;
    const real r = r_min(jacobi_shifted(ratio, shift), 1);
    const real apart = (1 - r) * (1 + r), cross = 2 * r * h;
    const real square = r_fma(apart, apart, cross * cross);
    const real g = 2 * h * short_reciprocal(r_fma(square, short_inverse_root(square), apart));
    const real t = r * g, c = short_inverse_root(r_fma(t, t, 1));
    const real s = t * c, half = short_reciprocal(1 + c);
    const real forward = shift == 0 ? s : jacobi_shifted(s, shift);
    const real back = shift == 0 ? s : g * c * ratio;
    const real grows = r_fma(longer ? t * r : -g, h, 1); /* the square of the norm */
    struct jacobi_meeting_of_rows meeting = {};

    meeting.turns = there && r_abs(h) > tolerance;
    meeting.even = !meeting.turns || shift == 0;
    if (meeting.turns) {
        meeting.j.whole = top_longer ? -s : s;
        meeting.j.half = -meeting.j.whole * half;
        meeting.x.whole = top_longer ? -back : forward;
        meeting.x.half = (top_longer ? forward : -back) * half;
        if (longer || grows >= JACOBI_CANCELS) {
            own->norm *= grows * short_inverse_root(grows);
        } else {
            own->lost = true;
        }
    }
    return meeting;
}

/* Applies the rotations of a round, of this matrix of the warp. */
template <int G>
static __device__ __forceinline__ void
turn_columns(struct jacobi_row<G> *row, const struct jacobi_shears *of)
{
#pragma unroll
    for (int p = 0; p < G / 2; p++) {
        shear(of[p * (WARP / G)], &row->top[p], &row->bottom[p]);
    }
}

/* The first shear of a pair. */
template <int G>
static __device__ __forceinline__ real
begin_turn(const struct jacobi_row<G> &row, const struct jacobi_shears &turn, int p)
{
    return r_fma(turn.half, row.bottom[p], row.top[p]);
}

/* The others, to where the columns go.  The first shear of the next pair has been made. */
template <int G>
static __device__ __forceinline__ void
end_turn(struct jacobi_row<G> *row, const struct jacobi_shears &turn, int p, real first)
{
    const real second = r_fma(turn.whole, first, row->bottom[p]);
    const real third = r_fma(turn.half, second, first);

    (p > 0 ? row->bottom[p - 1] : row->top[1]) = second;
    (p == 0 ? row->top[0] : p + 1 < G / 2 ? row->top[p + 1] : row->bottom[p]) = third;
}

/* Applies the same rotations to X and J, and the columns go on. */
template <int G, bool VECTORS>
static __device__ __forceinline__ void
turn_and_move(struct jacobi_row<G> *x, struct jacobi_row<G> *j, const struct jacobi_shears *of)
{
    struct jacobi_shears turn = of[0];
    real x_first = begin_turn<G>(*x, turn, 0), j_first = begin_turn<G>(*j, turn, 0);

#pragma unroll
    for (int p = 0; p < G / 2; p++) {
        const struct jacobi_shears next = of[(p + 1 < G / 2 ? p + 1 : p) * (WARP / G)];
        const real x_next = begin_turn<G>(*x, next, p + 1 < G / 2 ? p + 1 : p);
        const real j_next = begin_turn<G>(*j, next, p + 1 < G / 2 ? p + 1 : p);

        end_turn<G>(x, turn, p, x_first);
        if (VECTORS) {
            end_turn<G>(j, turn, p, j_first);
        }
        turn = next;
        x_first = x_next;
        j_first = j_next;
    }
}

/* ---- matrices ---- */

/* The sum over the threads of a matrix. */
template <int G>
static __device__ __forceinline__ int
group_count(int x)
{
#pragma unroll
    for (int half = G / 2; half > 0; half /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, half);
    }
    return x;
}

/* The rank of this thread's column, and its value. */
template <int G>
static __device__ __forceinline__ int
rank_column(const struct jacobi_column &own, int lane, real *value)
{
    real_int power;
    const real mantissa = r_split(own.norm, &power);
    const int exponent = own.norm > 0 ? own.exponent + (int)power : INT_MIN;
    int rank = 0;

    for (int k = 0; k < G; k++) {
        const real other = __shfl_sync(0xffffffffu, mantissa, k, G);
        const int higher = __shfl_sync(0xffffffffu, exponent, k, G);
        const bool more = higher > exponent || (higher == exponent && other > mantissa);
        const bool equal = higher == exponent && other == mantissa;

        rank += more || (equal && k < lane);
    }
    *value = own.norm > 0 ? jacobi_value(mantissa, exponent) : REAL(0);
    return rank;
}

template <int G, bool VECTORS>
static __global__ void
__launch_bounds__(JACOBI_WARP_THREADS, jacobi_warp_blocks(VECTORS ? 2 * G : G))
    jacobi_warp_kernel(struct jacobi_batch q)
{
    __shared__ struct jacobi_warp<G> warps[JACOBI_WARP_THREADS / WARP];
    const int lane = (int)threadIdx.x % G, slot = (int)threadIdx.x % WARP / G;
    const int64_t matrix = ((int64_t)blockIdx.x * JACOBI_WARP_THREADS + threadIdx.x) / G;
    const bool present = matrix < q.count;
    const real tolerance = jacobi_tolerance(q.r);
    real *const w = q.w + (present ? matrix : 0) * q.c * q.r + lane;
    struct jacobi_warp<G> &warp = warps[threadIdx.x / WARP];
    real *const of = warp.factor + slot * G;
    struct jacobi_row<G> x, j;
    struct jacobi_column own;
    int sweeps = 0, rotations = 0, rank, values;
    bool active = present && q.most_sweeps > 0, turned = present;
    real value;

#pragma unroll
    for (int k = 0; k < G; k++) {
        entry<G>(x, k) = present && lane < q.r && k < q.c ? w[k * q.r] : REAL(0);
        entry<G>(j, k) = REAL(k == lane);
    }
    begin_columns<G>(&x, &own, of, lane);
    while (__any_sync(0xffffffffu, active)) {
        int made = 0;

#pragma unroll 1
        for (int round = 0; round < G - 1; round++) {
            const struct jacobi_place is = place_of<G>(lane, round);
            const int pair = is.place % (G / 2);
            struct jacobi_meeting_of_rows meeting;
            real dot, norm;
            int exponent;

            if (round == 0 || __any_sync(0xffffffffu, own.lost)) {
                measure_columns<G>(&x, &own, of, lane, is.place, q.r,
                                   round == 0 ? active : own.lost, round == 0);
            }
            dot = __shfl_sync(0xffffffffu, gather_dots<G>(x, lane), 2 * pair, G);
            norm = __shfl_sync(0xffffffffu, own.norm, is.other, G);
            exponent = __shfl_sync(0xffffffffu, own.exponent, is.other, G);
            meeting = meet_columns(&own, active, is.place < G / 2, dot, norm, exponent, tolerance);
            made += meeting.turns;
            __syncwarp(); /* all have read the shears of the round before */
            if (is.place < G / 2) {
                warp.x[pair][slot] = meeting.x;
                warp.j[pair][slot] = meeting.j;
            }
            __syncwarp();
            if (!__all_sync(0xffffffffu, meeting.even)) {
                turn_columns<G>(&x, &warp.x[0][slot]);
                if (VECTORS) {
                    turn_columns<G>(&j, &warp.j[0][slot]);
                }
                __syncwarp();
                warp.x[pair][slot] = {};
                __syncwarp();
            }
            turn_and_move<G, VECTORS>(&x, &j, &warp.x[0][slot]);
        }
        rotations += made;
        made = group_count<G>(made);
        turned = active ? made > 0 : turned;
        sweeps += active;
        active = turned && sweeps < q.most_sweeps;
    }
    rank = rank_column<G>(own, lane, &value);
    values = group_count<G>(own.norm > 0);
    rotations = group_count<G>(rotations) / 2; /* both columns have counted */
    if (VECTORS) {
        const real inverse = own.norm > 0 ? 1 / own.norm : REAL(0);
        real *const v = q.v + (present ? matrix : 0) * q.c * q.c + lane;

#pragma unroll
        for (int k = 0; k < G; k++) {
            const real factor = __shfl_sync(0xffffffffu, inverse, k, G);

            if (present && k < q.c && lane < q.r) {
                w[k * q.r] = entry<G>(x, k) * factor;
            }
            if (present && k < q.c && lane < q.c) {
                v[k * q.c] = entry<G>(j, k);
            }
        }
    }
    if (!present || lane >= q.c) {
        return;
    }
    q.s[matrix * q.c + rank] = value;
    q.order[matrix * q.c + rank] = lane;
    if (lane == 0) {
        q.rank[matrix] = values;
        q.made[matrix].rotations = rotations;
        q.made[matrix].sweeps = sweeps;
        q.made[matrix].kind = q.kind[matrix];
        q.made[matrix].unfinished = turned;
    }
}

#endif
