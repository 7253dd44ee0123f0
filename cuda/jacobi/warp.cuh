/*
 * One-sided Jacobi on the device: matrices of up to 32 x 32, or of complex128 of up to 16 x 16.
 * Those of more than PAIR_LANES rows come here if pairs.cuh refuses them.
 *
 * G threads of a warp have a matrix.  A thread has a row of X and one of J in its registers, so
 * that rotations of columns need nothing of other threads.  What is known of a column as a whole,
 * its norm and scale, is with the thread of the column's number.
 *
 * The G columns stand in two rows of G / 2 places.  In each round the two columns one above the
 * other meet, and then all but the first go on by one place in a ring: along the top, and back
 * along the bottom (Brent & Luk, SIAM J. Sci. Stat. Comput. 6 (1985)).  After G - 1 rounds each
 * pair has met, and the columns are back.  A place is a register, so the loop over the rounds need
 * not be unrolled, and a move costs nothing: results are written to the registers of the next
 * places.
 *
 * A rotation is applied as three shears, one fused operation an entry each: for the upper column a
 * and the lower one b, whatever the sign or phase of s,
 *
 *     a' = c a + s b,   b' = c b - conj(s) a:
 *     a += h b,   b -= conj(s) a,   a += h b,   h = s / (1 + c),
 *
 * for c = 1 - h conj(s).  Small angles take no 1 - c that would be rounded.  With 2^shift the scale
 * of b over that of a, h and s become h 2^shift and s / 2^shift in X: with forward and back of
 * math/jacobi.h, h 2^shift = forward / (1 + c) if a is the longer column, and else, as the roles
 * change, -back / (1 + c).  No factor overflows, as back is at most about the quotient of kept
 * norms.  Where forward underflows, its shears do nothing.  A pair that is not turned has zeros.
 */
#ifndef TSVDI_CUDA_JACOBI_WARP_H
#define TSVDI_CUDA_JACOBI_WARP_H

#include "jacobi/jacobi_run.h"

enum {
    JACOBI_WARP_THREADS = 64,
    /* Columns have scales 2^(JACOBI_STEP i).  So most pairs have equal scales, and X takes the same
       shears as J: in float64 all pairs of a matrix that is not badly graded. */
    JACOBI_STEP = TSVD_SINGLE ? 12 : 192,
    /* Norms are kept between 2^-JACOBI_FAR and 2^JACOBI_FAR: scaling brings the largest entry, or
       the norm, to 2^(JACOBI_STEP / 2) from 1 at most.  A norm is at most sqrt(32) times the
       largest entry, sqrt(64) times its size if it is complex, and that is at most twice its power
       of two. */
    JACOBI_FAR = JACOBI_STEP / 2 + 4
};

/* Blocks of a multiprocessor with 65536 registers, for threads that hold `numbers` entries.  A
   thread gets 168, 128 or 96 registers, which just suffice for the entries and all else. */
static constexpr int
jacobi_warp_blocks(int numbers)
{
    return numbers * (int)sizeof(scalar) >= 512 ? 6 : numbers * (int)sizeof(scalar) >= 256 ? 8 : 10;
}

/* A thread's row of X, or of J, by places. */
template <int G> struct jacobi_row {
    scalar top[G / 2], bottom[G / 2];
};

/* What a thread knows of the column of its number. */
struct jacobi_column {
    real norm, most_norm; /* now, and the largest at the beginning of a sweep */
    int exponent;         /* X's column is its entries times 2^exponent */
    bool lost;            /* the norm has to be found from the entries */
};

/* Where a column stands in a round. */
struct jacobi_place {
    int along; /* in the ring: 1 .. G - 1, of column 0: 0 */
    int meets; /* the column that it meets; its own number means column 0 */
};

/* The shears of a pair, of the upper column a and the lower one b. */
struct __align__(2 * sizeof(scalar)) jacobi_shears
{
    scalar half, whole; /* a += half b, b += whole a, a += half b */
};

/* What a warp shares. */
template <int G> struct jacobi_warp {
    struct jacobi_shears j[G / 2][WARP / G]; /* of J, by pairs; of each matrix */
    struct jacobi_shears x[G / 2][WARP / G]; /* the same of X */
    real factor[WARP];                       /* of columns, by places; one matrix after another */
};

/* ---- a row ---- */

/* The entry of column j at the beginning of a sweep, and at its end. */
template <int G>
static __device__ __forceinline__ scalar &
entry(struct jacobi_row<G> &row, int j)
{
    return j < G / 2 ? row.top[j] : row.bottom[G - 1 - j];
}

static __device__ __forceinline__ void
shear(const struct jacobi_shears &turn, scalar *a, scalar *b)
{
    *a = n_fma(turn.half, *b, *a);
    *b = n_fma(turn.whole, *a, *b);
    *a = n_fma(turn.half, *b, *a);
}

/* ---- the ring ---- */

/* Before the first round. */
template <int G>
static __device__ __forceinline__ struct jacobi_place
begin_place(int column)
{
    return {column, column < G - 1 ? G - 1 - column : G - 1};
}

/* Columns a and b, both > 0, meet in round m if a + b + 2 m is a multiple of G - 1. */
template <int G>
static __device__ __forceinline__ void
move_on(struct jacobi_place *is, int column)
{
    is->along += column > 0;
    is->along = is->along < G ? is->along : 1;
    is->meets -= column > 0 ? 2 : 1;
    is->meets += is->meets > 0 ? 0 : G - 1;
}

template <int G>
static __device__ __forceinline__ bool
on_top(const struct jacobi_place &is)
{
    return is.along < G / 2;
}

template <int G>
static __device__ __forceinline__ int
pair_of(const struct jacobi_place &is)
{
    return on_top<G>(is) ? is.along : G - 1 - is.along;
}

/* The top row's places come first. */
template <int G>
static __device__ __forceinline__ int
place_of(const struct jacobi_place &is)
{
    return pair_of<G>(is) + (on_top<G>(is) ? 0 : G / 2);
}

/* ---- over the rows ---- */

/* What is gathered: a sum, but for LARGEST. */
enum jacobi_gather {
    DOTS,    /* of pair i: its product a^H b */
    SQUARES, /* of place i: the square of the norm */
    LARGEST  /* of place i: the largest magnitude */
};

/* Of COUNT numbers from number FIRST on, a lane gets number FIRST + lane % COUNT, combined over the
   lanes that differ from it in these bits of `lane`.  For DOTS lane / 2 stands for lane.  In each
   step a lane sends the half of its numbers that it does not need to a lane that does, so that half
   as many are left. */
template <int G, enum jacobi_gather WHAT, int FIRST, int COUNT>
static __device__ __forceinline__ auto
gather(const struct jacobi_row<G> &x, int lane)
{
    if constexpr (COUNT == 1) {
        const scalar own = FIRST < G / 2 ? x.top[FIRST % (G / 2)] : x.bottom[FIRST % (G / 2)];

        if constexpr (WHAT == DOTS) {
            return n_mul(n_conj(own), x.bottom[FIRST % (G / 2)]);
        } else {
            return WHAT == SQUARES ? n_abs2(own) : n_size(own);
        }
    } else {
        constexpr int half = COUNT / 2, mask = half * (WHAT == DOTS ? 2 : 1);
        const auto low = gather<G, WHAT, FIRST, half>(x, lane);
        const auto high = gather<G, WHAT, FIRST + half, half>(x, lane);
        const bool upper = (lane & mask) > 0;
        const auto own = upper ? high : low;
        const auto got = __shfl_xor_sync(0xffffffffu, upper ? low : high, mask);

        if constexpr (WHAT == LARGEST) {
            return r_max(own, got);
        } else {
            return own + got;
        }
    }
}

/* The product of the two columns of pair lane / 2. */
template <int G>
static __device__ __forceinline__ scalar
gather_dots(const struct jacobi_row<G> &x, int lane)
{
    const scalar sum = gather<G, DOTS, 0, G / 2>(x, lane);

    return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
}

/* ---- columns ---- */

/* Multiplies columns by factors; a thread has that of the column of its number.  of: shared scratch
   for the factors of this matrix. */
template <int G>
static __device__ __forceinline__ void
scale_columns(struct jacobi_row<G> *x, real *of, int place, real factor)
{
    __syncwarp();
    of[place] = factor;
    __syncwarp();
#pragma unroll
    for (int p = 0; p < G / 2; p++) {
        x->top[p] = n_scale(of[p], x->top[p]);
        x->bottom[p] = n_scale(of[G / 2 + p], x->bottom[p]);
    }
}

/* The scale that is nearest to 2^power. */
static __device__ __forceinline__ int
nearest_step(real_int power)
{
    return (int)(power + (power < 0 ? -JACOBI_STEP / 2 : JACOBI_STEP / 2)) / JACOBI_STEP *
           JACOBI_STEP;
}

/* The largest magnitude of this thread's column. */
template <int G>
static __device__ __forceinline__ real
largest_of_column(const struct jacobi_row<G> &x, int lane)
{
    const real most = gather<G, LARGEST, 0, G>(x, lane);

    return __shfl_sync(0xffffffffu, most, place_of<G>(begin_place<G>(lane)), G);
}

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

/* Whether a square matrix is to be replaced by its transpose.  most: the largest magnitude of this
   thread's column. */
template <int G>
static __device__ __forceinline__ bool
goes_by_rows(struct jacobi_row<G> &x, real most)
{
    real_int row_size, column_size;
    real row_most = 0;
    int count, sum;

#pragma unroll
    for (int k = 0; k < G; k++) {
        row_most = r_max(row_most, n_size(entry<G>(x, k)));
    }
    (void)r_split(row_most, &row_size);
    (void)r_split(most, &column_size); /* 0 of zeros */
    count = group_count<G>((row_most > 0) - (most > 0));
    sum = group_count<G>((int)(row_size - column_size));
    return jacobi_by_rows({count, sum}) != 0;
}

/* Scales the columns so that their squares neither overflow nor underflow.  most: the largest
   magnitude of this thread's column. */
template <int G>
static __device__ __forceinline__ void
begin_columns(struct jacobi_row<G> *x, struct jacobi_column *own, real *of, int lane, real most)
{
    const int place = place_of<G>(begin_place<G>(lane));
    real_int power;

    (void)r_split(most, &power);
    *own = {};
    own->exponent = nearest_step(power);
    /* twice one half: one power may be out of range */
    scale_columns<G>(x, of, place, r_pow2(-own->exponent / 2));
    scale_columns<G>(x, of, place, r_pow2(-own->exponent / 2));
}

/* Finds the norms of columns, and scales those whose norms are out of bounds.  A column that is no
   more than rounding errors becomes zero.  wanted: this thread's column is one of them; begins: a
   sweep begins. */
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
        if (norm > 0 && (norm < r_pow2(-JACOBI_FAR) || norm > r_pow2(JACOBI_FAR))) {
            real_int power;
            int step;

            (void)r_split(norm, &power);
            step = nearest_step(power);
            factor = r_pow2(-step);
            own->norm *= factor;
            own->exponent += step;
            own->most_norm *= factor;
        }
        if (own->most_norm > 0 && own->norm <= jacobi_noise(r) * own->most_norm) {
            own->norm = own->most_norm = factor = 0; /* it does not change again */
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

/* A shift beyond JACOBI_SHIFT counts as that. */
static __device__ __forceinline__ int
near_shift(int shift)
{
    return min(max(shift, -(int)JACOBI_SHIFT), (int)JACOBI_SHIFT);
}

/* The smaller of x >= 0 and 1, by their bits. */
static __device__ __forceinline__ real
at_most_one(real x)
{
    return r_bits(x) < r_bits(1) ? x : REAL(1);
}

/* -x, or x. */
static __device__ __forceinline__ real
signed_as(bool minus, real x)
{
    return r_from_bits((real_int)((real_uint)r_bits(x) ^ (minus ? R_SIGN_BIT : 0)));
}

#if TSVD_COMPLEX
static __device__ __forceinline__ scalar
signed_as(bool minus, scalar x)
{
    return {signed_as(minus, x.re), signed_as(minus, x.im)};
}
#endif

/* 1 + x y, if x has the phase of y. */
static __device__ __forceinline__ real
one_and_product(scalar x, scalar y)
{
    return n_real(n_fma(x, n_conj(y), 1));
}

/* The rotation of this thread's column and the other one, by their product; updates own->norm.
   active: they may turn.  top: this thread's is the upper one; norm, exponent: of the other one.
   Both threads compute the same.  The formulas are those of math/jacobi.h, in which x is the longer
   column, but h, g, t and s have the phase of `dot`, and the other sign if x is the upper column: s
   is what the lower column takes of the upper one, which takes -conj(s) of the lower one. */
static __device__ __forceinline__ struct jacobi_meeting_of_rows
meet_columns(struct jacobi_column *own, bool active, bool top, scalar dot, real norm, int exponent,
             real tolerance)
{
    const int shift_top = near_shift(top ? exponent - own->exponent : own->exponent - exponent);
    const real norm_top = top ? own->norm : norm, norm_bottom = top ? norm : own->norm;
    const bool top_longer = norm_top >= norm_bottom * r_pow2(shift_top);
    const bool longer = top == top_longer; /* this thread's column */
    const real x = top_longer ? norm_top : norm_bottom, y = top_longer ? norm_bottom : norm_top;
    const real scale = r_pow2(top_longer ? shift_top : -shift_top);
    const real product = x * y, inverse = r_reciprocal(product);
    const real ratio = y * inverse * y;
    const real r = at_most_one(ratio * scale);
    const scalar h = n_scale(inverse, signed_as(top_longer, dot));
    const real apart = (1 - r) * (1 + r);
    const scalar cross = n_scale(2 * r, h), twice = n_scale(2, h);
    const real square = r_fma(apart, apart, n_abs2(cross));
    const real sum = r_fma(square, r_rsqrt(square), apart);
    const scalar g = n_scale(r_reciprocal(sum), twice);
    const scalar t = n_scale(r, g);
    const real c = r_rsqrt(n_add_abs2(t, 1));
    const scalar s = n_scale(c, t);
    const real half = -r_reciprocal(1 + c);
    const scalar forward = n_scale(scale, s);
    const scalar back = shift_top == 0 ? s : n_scale(ratio, n_scale(c, g));
    const real grows = one_and_product(longer ? n_scale(r, t) : -g, h); /* of the norm's square */
    struct jacobi_meeting_of_rows meeting = {};

    meeting.turns = active && product > 0 && entry_size(h) > bound_of_size(tolerance);
    meeting.even = !meeting.turns || shift_top == 0;
    if (meeting.turns) {
        meeting.j.whole = s;
        meeting.j.half = n_scale(half, n_conj(s));
        meeting.x.whole = top_longer ? back : forward;
        meeting.x.half = n_scale(half, n_conj(top_longer ? forward : back));
        if (longer || grows >= JACOBI_CANCELS) {
            own->norm *= grows * r_rsqrt(grows);
        } else {
            own->lost = true;
        }
    }
    return meeting;
}

/* Applies the rotations of a round.  of: those of this matrix. */
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
static __device__ __forceinline__ scalar
begin_turn(const struct jacobi_row<G> &row, const struct jacobi_shears &turn, int p)
{
    return n_fma(turn.half, row.bottom[p], row.top[p]);
}

/* The other two shears, with results to the registers of the next places.  The first shear of the
   next pair has been made, as its top[p + 1] is overwritten. */
template <int G>
static __device__ __forceinline__ void
end_turn(struct jacobi_row<G> *row, const struct jacobi_shears &turn, int p, scalar first)
{
    const scalar second = n_fma(turn.whole, first, row->bottom[p]);
    const scalar third = n_fma(turn.half, second, first);

    (p > 0 ? row->bottom[p - 1] : row->top[1]) = second;
    (p == 0 ? row->top[0] : p + 1 < G / 2 ? row->top[p + 1] : row->bottom[p]) = third;
}

/* Applies the same rotations to X and J, and the columns go on.  In this order each result goes to
   a register that has just become free. */
template <int G, bool VECTORS>
static __device__ __forceinline__ void
turn_and_move(struct jacobi_row<G> *x, struct jacobi_row<G> *j, const struct jacobi_shears *of)
{
    struct jacobi_shears turn = of[0];
    scalar x_first = begin_turn<G>(*x, turn, 0), j_first = begin_turn<G>(*j, turn, 0);

#pragma unroll
    for (int p = 0; p < G / 2; p++) {
        const struct jacobi_shears next = of[(p + 1 < G / 2 ? p + 1 : p) * (WARP / G)];
        const scalar x_next = begin_turn<G>(*x, next, p + 1 < G / 2 ? p + 1 : p);
        const scalar j_next = begin_turn<G>(*j, next, p + 1 < G / 2 ? p + 1 : p);

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
    const bool present = matrix < q.count && (G != PAIR_ORDER || q.refused[matrix]);
    const real tolerance = jacobi_tolerance(q.r);
    scalar *const from = q.w + (present ? matrix : 0) * q.c * q.r, *const w = from + lane;
    struct jacobi_warp<G> &warp = warps[threadIdx.x / WARP];
    real *const of = warp.factor + slot * G;
    struct jacobi_row<G> x, j;
    struct jacobi_column own;
    struct jacobi_place is = begin_place<G>(lane);
    int sweeps = 0, rotations = 0, rank, values;
    bool active = present && q.max_sweeps > 0, turned = present, transposed = false;
    real value, most;

    if (G == WARP && !present) { /* the warp has no other matrix */
        return;
    }
#pragma unroll
    for (int k = 0; k < G; k++) {
        entry<G>(x, k) = present && lane < q.r && k < q.c ? w[k * q.r] : REAL(0);
        entry<G>(j, k) = REAL(k == lane);
    }
    most = largest_of_column<G>(x, lane);
    if (q.r == q.c) {
        transposed = goes_by_rows<G>(x, most);
        if (__any_sync(0xffffffffu, transposed)) {
#pragma unroll
            for (int k = 0; k < G; k++) {
                if (transposed && present && lane < q.r && k < q.c) {
                    entry<G>(x, k) = from[lane * q.r + k];
                }
            }
            most = largest_of_column<G>(x, lane);
        }
    }
    begin_columns<G>(&x, &own, of, lane, most);
    while (__any_sync(0xffffffffu, active)) {
        int made = 0;

#pragma unroll 1
        for (int round = 0; round < G - 1; round++) {
            const int other = is.meets == lane ? 0 : is.meets, pair = pair_of<G>(is);
            struct jacobi_meeting_of_rows meeting;
            scalar dot;
            real norm;
            int exponent;

            if (round == 0 || __any_sync(0xffffffffu, own.lost)) {
                measure_columns<G>(&x, &own, of, lane, place_of<G>(is), q.r,
                                   round == 0 ? active : own.lost, round == 0);
            }
            dot = __shfl_sync(0xffffffffu, gather_dots<G>(x, lane), 2 * pair, G);
            norm = __shfl_sync(0xffffffffu, own.norm, other, G);
            exponent = __shfl_sync(0xffffffffu, own.exponent, other, G);
            meeting = meet_columns(&own, active, on_top<G>(is), dot, norm, exponent, tolerance);
            made += meeting.turns;
            __syncwarp(); /* all have read the shears of the last round */
            if (on_top<G>(is)) {
                warp.x[pair][slot] = meeting.x;
            }
            if (!__all_sync(0xffffffffu, meeting.even)) {
                if (on_top<G>(is)) {
                    warp.j[pair][slot] = meeting.j;
                }
                __syncwarp();
                turn_columns<G>(&x, &warp.x[0][slot]);
                if (VECTORS) {
                    turn_columns<G>(&j, &warp.j[0][slot]);
                }
                __syncwarp();
                warp.x[pair][slot] = {};
            }
            __syncwarp();
            turn_and_move<G, VECTORS>(&x, &j, &warp.x[0][slot]);
            move_on<G>(&is, lane);
        }
        rotations += made;
        made = group_count<G>(made);
        turned = active ? made > 0 : turned;
        sweeps += active;
        active = turned && sweeps < q.max_sweeps;
    }
    rank = rank_column<G>(own, lane, &value);
    values = group_count<G>(own.norm > 0);
    rotations = group_count<G>(rotations) / 2; /* both columns have counted */
    if (VECTORS) {
        const real inverse = own.norm > 0 ? 1 / own.norm : REAL(0);
        scalar *const v = q.v + (present ? matrix : 0) * q.c * q.c + lane;

#pragma unroll
        for (int k = 0; k < G; k++) {
            const real factor = __shfl_sync(0xffffffffu, inverse, k, G);

            if (present && k < q.c && lane < q.r) {
                w[k * q.r] = n_scale(factor, entry<G>(x, k));
            }
            if (present && k < q.c && lane < q.c) {
                v[k * q.c] = n_conj(entry<G>(j, k));
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
        q.transposed[matrix] = transposed;
        write_made(q, matrix, rotations, sweeps, turned);
    }
}

#endif
