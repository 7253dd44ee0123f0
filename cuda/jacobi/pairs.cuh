/*
 * One-sided Jacobi on the device: matrices of 17 to 32 rows, after two QR decompositions.  Of
 * complex128 these are matrices of 9 to 16 rows, as many as fit into registers.
 *
 * W, r x c, is replaced by a lower triangle that is nearly diagonal (Drmac & Veselic, SIAM J.
 * Matrix Anal. Appl. 29 (2008), I), Householder's QR with column pivoting and one without:
 *
 *     W P = Q R,   R^T = Q2 L^T,   L J = Y S,
 *
 * so that W = (Q Y) S (P Z)^H with R Z = Y S, Z = conj(Q2) J.  Only the columns of L are rotated.
 * J and Q2 are not made, and Z comes from the triangle R.  The errors of Z are eps times
 * | |R^-1| |R| |, the condition number of Skeel.  It does not change with the lengths of R's rows,
 * and with pivoting it is mostly near 1, even if R is singular to working precision.  It can be
 * large all the same, so Z is tested: see is_orthogonal().
 *
 * Values keep their relative accuracy for W = B D, D diagonal: errors of QR are small in each
 * column of W, and then in each row of R.  W is scaled by one power of two, and columns have no
 * exponents of their own.  So a matrix is refused if a row of R is too short, as where rank is
 * lacking, if the sweeps do not end, if Z is not orthogonal, or if W's transpose is to be taken.  A
 * refused matrix stays as it is, for warp.cuh.  The results of all others are placed by this
 * kernel, with signs and scale, if all vectors that are wanted belong to values.
 *
 * PAIR_LANES threads have a matrix, and each has two columns in its registers, a and b, that meet
 * there: products and rotations need nothing of other threads.  In a sweep, groups of m = 1, 2, 4,
 * ... threads let each of their a meet each of their b, as the b go round.  Then two groups join:
 * the columns of the first become the a of all 2 m threads, and those of the second the b.  At the
 * end of the sweep the columns go back to where they were.
 *
 * A sweep is the last one if it turned no pair, or if what it left must be orthogonal: a column y
 * that is turned by g, of math/jacobi.h, changes its cosines by g times those of the other column,
 * so with h the largest cosine of a sweep and G the sum of all g, no cosine of a pair grows by more
 * than h G / (1 - G).
 */
#ifndef TSVDI_CUDA_JACOBI_PAIRS_H
#define TSVDI_CUDA_JACOBI_PAIRS_H

#include "jacobi/place.cuh"
#include "jacobi/warp.cuh"
#include "math/reflector.h"

enum {
    PAIR_THREADS = 64,
    PAIR_STEPS = PAIR_ORDER / 4, /* steps of QR that use the same number of registers */
    /* The norms of R's rows are above 2^-PAIR_SPAN, and so, but for the condition of R with rows at
       norm 1, are the values.  Products of two norms, and squares, are then far from underflow. */
    PAIR_SPAN = TSVD_SINGLE ? 44 : 400,
    /* Blocks of a multiprocessor with 65536 registers.  A thread gets 96 (float32), 168, or 255
       (complex128, of which shared memory has room for no more than 5 blocks). */
    PAIR_BLOCKS = sizeof(scalar) > 8   ? 4
                  : sizeof(scalar) > 4 ? 6
                                       : 10
};

/* The two columns of a thread: those of numbers lane and lane + PAIR_LANES in QR. */
struct jacobi_pair {
    scalar a[PAIR_ORDER], b[PAIR_ORDER];
    real norm_a, norm_b; /* during QR, their squares */
};

/* What the threads of a matrix share. */
struct jacobi_shared {
    /* padding: solve() reads up to PAIR_STEPS - 1 entries before r[0], and uses none of these */
    scalar before[PAIR_STEPS];
    /* r[j][i]: row i of R, in the column that is column j of W.  After them, entry j >= i of column
       i of L at r[column[i]][j + 1].  Later r[i] is row i of P Z.  The padding keeps columns in
       different banks. */
    scalar r[PAIR_ORDER][PAIR_ORDER + 1];
    /* a column, or a reflector; later by ranks, of complex vectors: the largest entries */
    scalar __align__(16) vector[PAIR_ORDER];
    /* of R's diagonal; zeros after it.  Later by ranks: what vectors are multiplied by, 1 or -1 if
       they are real */
    scalar inverse[PAIR_ORDER];
    int column[PAIR_ORDER]; /* column i of W P is column[i] of W */
};

/* ---- QR ---- */

/* A number that is larger for larger squares, with the column's number. */
static __device__ __forceinline__ int
pivot_key(real square, int column)
{
    return ((int)(r_bits(square) >> (R_BITS - 32)) & ~(PAIR_ORDER - 1)) | (PAIR_ORDER - 1 - column);
}

/* The column with the largest square. */
static __device__ __forceinline__ int
pick_pivot(const struct jacobi_pair &x, int lane)
{
    int best = max(pivot_key(x.norm_a, lane), pivot_key(x.norm_b, lane + PAIR_LANES));

#pragma unroll
    for (int half = PAIR_LANES / 2; half > 0; half /= 2) {
        best = max(best, __shfl_xor_sync(0xffffffffu, best, half));
    }
    return PAIR_ORDER - 1 - best % PAIR_ORDER;
}

/* A step of QR. */
struct qr_step {
    int pick;    /* the column that becomes a multiple of a unit vector */
    scalar head; /* the reflector is I - twice v v^H, v = (head, vector[1], ...) */
    real twice;
    scalar diagonal; /* that multiple */
};

/* A number of this size > 0 with the sign of x; for complex x with its phase, or with any phase if
   |x| is below the rounding errors of numbers of 2^-PAIR_SPAN. */
static __device__ __forceinline__ scalar
with_phase_of(real size, scalar x)
{
#if TSVD_COMPLEX
    const scalar up = n_scale(r_pow2(PAIR_SPAN), x);
    const real square = n_abs2(up);

    return square < R_EPS * R_EPS / 16 ? scalar(size) : n_scale(size * r_rsqrt(square), up);
#else
    return r_copysign(size, x);
#endif
}

/* Half the square of the norm of v, v = (first - diagonal, ...), if `square` is that of (first,
   ...), and `norm` its root. */
static __device__ __forceinline__ real
half_square(scalar first, scalar diagonal, real norm, real square)
{
#if TSVD_COMPLEX
    (void)norm;
    return n_real(n_fma(-n_conj(diagonal), first, square));
#else
    (void)diagonal; /* its size is the norm */
    return r_fma(r_abs(first), norm, square);
#endif
}

/* Entry i of a vector in shared memory, loaded once more where it has been read before: registers
   are scarce. */
static __device__ __forceinline__ scalar
load_again(const scalar *vector, int i)
{
#if TSVD_COMPLEX
    uint64_t bits[sizeof(scalar) / sizeof(uint64_t)];
    scalar x;

#pragma unroll
    for (int k = 0; k < (int)(sizeof(x) / sizeof(*bits)); k++) {
        bits[k] = ((const volatile uint64_t *)&vector[i])[k];
    }
    memcpy(&x, bits, sizeof(x));
    return x;
#else
    return ((const volatile scalar *)vector)[i];
#endif
}

/* Reflects the columns.  Their first entries go to first_a and first_b, and all others move up by
   one register.  norm_a and norm_b become the squares of the norms of what has moved. */
template <int ROWS>
static __device__ __forceinline__ void
reflect(struct jacobi_pair *x, const scalar *vector, const struct qr_step &step, scalar *first_a,
        scalar *first_b)
{
    scalar a[2] = {n_mul(n_conj(step.head), x->a[0]), 0};
    scalar b[2] = {n_mul(n_conj(step.head), x->b[0]), 0}, dot_a, dot_b;
    real square_a[2] = {}, square_b[2] = {};

#pragma unroll
    for (int i = 1; i < ROWS; i++) {
        a[i % 2] = n_fma(n_conj(vector[i]), x->a[i], a[i % 2]);
        b[i % 2] = n_fma(n_conj(vector[i]), x->b[i], b[i % 2]);
    }
    dot_a = -n_scale(step.twice, a[0] + a[1]);
    dot_b = -n_scale(step.twice, b[0] + b[1]);
    *first_a = n_fma(dot_a, step.head, x->a[0]);
    *first_b = n_fma(dot_b, step.head, x->b[0]);
#pragma unroll
    for (int i = 1; i < ROWS; i++) {
        const scalar y = load_again(vector, i);

        x->a[i - 1] = n_fma(dot_a, y, x->a[i]);
        x->b[i - 1] = n_fma(dot_b, y, x->b[i]);
        square_a[i % 2] = n_add_abs2(x->a[i - 1], square_a[i % 2]);
        square_b[i % 2] = n_add_abs2(x->b[i - 1], square_b[i % 2]);
    }
    x->a[ROWS - 1] = x->b[ROWS - 1] = 0;
    x->norm_a = square_a[0] + square_a[1];
    x->norm_b = square_b[0] + square_b[1];
}

/* Up to PAIR_STEPS steps of a QR decomposition, from step FIRST on.  pivots: it is the first of the
   two; done: bits of this thread's columns that have been picked; reflectors [c][PAIR_ORDER]: those
   of the first one, as I - v v^H; NULL: not wanted.  Returns whether all pivots are large
   enough. */
template <int FIRST>
static __device__ __forceinline__ bool
factor(struct jacobi_pair *x, struct jacobi_shared &of, int c, int lane, bool pivots, int *done,
       scalar *reflectors)
{
    constexpr int rows = PAIR_ORDER - FIRST;
    const int last = c < FIRST + PAIR_STEPS ? c : FIRST + PAIR_STEPS;
    bool good = true;

#pragma unroll 1
    for (int k = FIRST; k < last; k++) {
        struct qr_step step = {};
        real square, inverse, norm, scale;
        scalar first_a, first_b;
        bool picked_a, picked_b;

        step.pick = pivots ? pick_pivot(*x, lane) : k;
        picked_a = step.pick == lane;
        picked_b = step.pick == lane + PAIR_LANES;
        square = __shfl_sync(0xffffffffu, step.pick < PAIR_LANES ? x->norm_a : x->norm_b,
                             step.pick % PAIR_LANES, PAIR_LANES);
        __syncwarp(); /* all have read the vector before */
        if (picked_a) {
#pragma unroll
            for (int i = 0; i < rows; i++) {
                of.vector[i] = x->a[i];
            }
        }
        if (picked_b) {
#pragma unroll
            for (int i = 0; i < rows; i++) {
                of.vector[i] = x->b[i];
            }
        }
        __syncwarp();
        norm = reflector_norm(square, &inverse); /* 1 if |x| is 1 */
        step.diagonal = with_phase_of(norm, -of.vector[0]);
        step.head = of.vector[0] - step.diagonal;
        scale = r_rsqrt(half_square(of.vector[0], step.diagonal, norm, square));
        step.twice = scale * scale;
        reflect<rows>(x, of.vector, step, &first_a, &first_b);
        if (picked_a) {
            first_a = step.diagonal;
        }
        if (picked_b) {
            first_b = step.diagonal;
        }
        if (pivots) {
            good = good && norm >= r_pow2(-PAIR_SPAN);
            of.r[lane][k] = *done & 1 ? scalar(0) : first_a;
            of.r[lane + PAIR_LANES][k] = *done & 2 ? scalar(0) : first_b;
            *done |= picked_a + 2 * picked_b;
            x->norm_a = *done & 1 ? REAL(0) : x->norm_a;
            x->norm_b = *done & 2 ? REAL(0) : x->norm_b;
            if (lane == 0) {
                of.column[k] = step.pick;
                of.inverse[k] = with_phase_of(inverse, n_conj(step.diagonal));
            }
            for (int i = lane; reflectors != NULL && i < PAIR_ORDER; i += PAIR_LANES) {
                const scalar y = i < k ? scalar(0) : i == k ? step.head : of.vector[i - k];

                reflectors[k * PAIR_ORDER + i] = n_scale(scale, y);
            }
        } else {
            scalar *const column = of.r[of.column[k]] + 1;

            if (lane >= k) {
                column[lane] = first_a;
            }
            if (lane + PAIR_LANES >= k) {
                column[lane + PAIR_LANES] = first_b;
            }
        }
    }
    return good;
}

static __device__ __forceinline__ real
square_of(const scalar *x)
{
    real even = 0, odd = 0;

#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i += 2) {
        even = n_add_abs2(x[i], even);
        odd = n_add_abs2(x[i + 1], odd);
    }
    return even + odd;
}

/* Moves a column of W to this thread's registers, and leaves zeros. */
static __device__ __forceinline__ void
take_column(scalar *x, scalar *from)
{
#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i++) {
        x[i] = from[i];
        from[i] = 0;
    }
}

/* Column i of L, or zeros. */
static __device__ __forceinline__ void
take_triangle(scalar *x, const struct jacobi_shared &of, int i, bool exists)
{
    const scalar *const column = of.r[of.column[exists ? i : 0]] + 1;

#pragma unroll
    for (int j = 0; j < PAIR_ORDER; j++) {
        x[j] = exists && j >= i ? column[j] : scalar(0);
    }
}

/* Whether W, r x r, is to be replaced by its transpose.  The size of a line is here the exponent of
   its norm.  Squares that underflow belong to matrices that are refused in any case. */
static __device__ __forceinline__ bool
pairs_go_by_rows(const struct jacobi_shared &of, int lane)
{
    int count = 0, sum = 0;

#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i += PAIR_LANES) {
        real row = 0, column = 0;
        real_int row_size, column_size;

#pragma unroll 8
        for (int j = 0; j < PAIR_ORDER; j++) {
            row = n_add_abs2(of.r[j][lane + i], row);
            column = n_add_abs2(of.r[lane + i][j], column);
        }
        (void)r_split(row, &row_size);
        (void)r_split(column, &column_size); /* 0 of zeros */
        count += (row > 0) - (column > 0);
        sum += (int)(row_size - column_size);
    }
#pragma unroll
    for (int half = PAIR_LANES / 2; half > 0; half /= 2) {
        count += __shfl_xor_sync(0xffffffffu, count, half);
        sum += __shfl_xor_sync(0xffffffffu, sum, half);
    }
    return jacobi_by_rows({count, sum / 2}) != 0;
}

/* W, from `of`, becomes L, of which a thread has the columns 2 lane and 2 lane + 1: neighbours,
   whose lengths are close, meet first, which saves sweeps.  Returns whether all pivots are large
   enough, and W is not to be replaced by its transpose. */
static __device__ __forceinline__ bool
begin_pairs(struct jacobi_pair *x, struct jacobi_shared &of, int r, int c, int lane,
            scalar *reflectors)
{
    bool good = !(r == c && pairs_go_by_rows(of, lane));

    __syncwarp();

    take_column(x->a, of.r[lane]);
    take_column(x->b, of.r[lane + PAIR_LANES]);
    for (int k = lane; k < PAIR_ORDER; k += PAIR_LANES) {
        of.column[k] = k;
        of.inverse[k] = 0;
    }
    __syncwarp();
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        const bool pivots = pass == 0;
        int done = 0;

        x->norm_a = square_of(x->a);
        x->norm_b = square_of(x->b);
        good = factor<0>(x, of, c, lane, pivots, &done, reflectors) && good;
        good = factor<PAIR_STEPS>(x, of, c, lane, pivots, &done, reflectors) && good;
        good = factor<2 * PAIR_STEPS>(x, of, c, lane, pivots, &done, reflectors) && good;
        good = factor<3 * PAIR_STEPS>(x, of, c, lane, pivots, &done, reflectors) && good;
        __syncwarp();
        if (pivots) {
#pragma unroll
            for (int i = 0; i < PAIR_ORDER; i++) {
                x->a[i] = of.r[i][lane];
                x->b[i] = of.r[i][lane + PAIR_LANES];
            }
            __syncwarp();
        }
    }
    take_triangle(x->a, of, 2 * lane, 2 * lane < c);
    take_triangle(x->b, of, 2 * lane + 1, 2 * lane + 1 < c);
    return good;
}

/* ---- rotations ---- */

/* What a sweep did: first of this thread, in the end of the matrix. */
struct jacobi_sweep {
    int made;
    real cosine, turn; /* the largest |h|, and the sum of all |g| */
};

/* |x|, if its square is in the range of normal numbers. */
static __device__ __forceinline__ real
short_abs(scalar x)
{
#if TSVD_COMPLEX
    const real square = n_abs2(x);

    return square * r_rsqrt(square);
#else
    return r_abs(x);
#endif
}

/* Lets the columns a and b meet.  active: they may be turned.  As in meet_columns() x is the longer
   column, and h, g and s have the phase of a^H b, and the other sign if that is a.  The angle comes
   from twice the angle, whose cosine is apart / sqrt(apart^2 + cross^2): that shortens the chain of
   dependent operations. */
static __device__ __forceinline__ void
meet_pair(struct jacobi_pair *x, bool active, real tolerance, struct jacobi_sweep *sweep)
{
    const real product = x->norm_a * x->norm_b, inverse = r_reciprocal(product);
    const bool a_longer = x->norm_a >= x->norm_b;
    const real shorter = a_longer ? x->norm_b : x->norm_a;
    const real r = at_most_one(shorter * inverse * shorter), apart = (1 - r) * (1 + r);
    scalar dot[4] = {}, h;
    bool turns;

#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i++) {
        dot[i % 4] = n_fma(n_conj(x->a[i]), x->b[i], dot[i % 4]);
    }
    h = n_scale(inverse, signed_as(a_longer, (dot[0] + dot[1]) + (dot[2] + dot[3])));
    turns = active && product > 0 && entry_size(h) > bound_of_size(tolerance);
    if (__any_sync(0xffffffffu, turns)) {
        const scalar cross = n_scale(2 * r, h);
        const real root = r_rsqrt(r_fma(apart, apart, n_abs2(cross))); /* 1 / the root */
        const real c_square = r_fma(apart / 2, root, REAL(0.5));
        const real secant = r_rsqrt(c_square), c = c_square * secant;
        const scalar s = n_scale(secant, n_scale(root, cross / 2)), part = n_scale(root, h);
        const scalar g = n_scale(secant * secant, part);
        const scalar half = n_scale(r_reciprocal(1 + c), -n_conj(s));
        const struct jacobi_shears turn = {turns ? half : scalar(0), turns ? s : scalar(0)};
        const real longer_grows = one_and_product(n_scale(r, n_scale(secant, s)), h);
        const real shorter_grows = one_and_product(-g, h);
        const real grows_a = a_longer ? longer_grows : shorter_grows;
        const real grows_b = a_longer ? shorter_grows : longer_grows;

#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i++) {
            shear(turn, &x->a[i], &x->b[i]);
        }
        if (turns) {
            x->norm_a *= grows_a * r_rsqrt(grows_a);
            x->norm_b *= grows_b * r_rsqrt(grows_b);
            sweep->made++;
            sweep->cosine = r_max(sweep->cosine, short_abs(h));
            sweep->turn += short_abs(g);
        }
        if (__any_sync(0xffffffffu, turns && shorter_grows < JACOBI_CANCELS)) {
            const real square_a = square_of(x->a), square_b = square_of(x->b);

            if (turns && shorter_grows < JACOBI_CANCELS) {
                x->norm_a = r_sqrt(square_a);
                x->norm_b = r_sqrt(square_b);
            }
        }
    }
}

/* x of the thread `from` of this matrix. */
static __device__ __forceinline__ real
of_thread(real x, int from)
{
    constexpr int segments = (WARP - PAIR_LANES) << 8 | (WARP - 1);

#if TSVD_SINGLE
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, %2, 0xffffffff;"
                 : "+f"(x)
                 : "r"(from), "n"(segments));
#else
    asm volatile("{\n\t"
                 ".reg .b32 low, high;\n\t"
                 "mov.b64 {low, high}, %0;\n\t"
                 "shfl.sync.idx.b32 low, low, %1, %2, 0xffffffff;\n\t"
                 "shfl.sync.idx.b32 high, high, %1, %2, 0xffffffff;\n\t"
                 "mov.b64 %0, {low, high};\n\t"
                 "}"
                 : "+d"(x)
                 : "r"(from), "n"(segments));
#endif
    return x;
}

#if TSVD_COMPLEX
static __device__ __forceinline__ scalar
of_thread(scalar x, int from)
{
    return {of_thread(x.re, from), of_thread(x.im, from)};
}
#endif

/* b becomes b of the thread `from` of this matrix. */
static __device__ __forceinline__ void
pass_on(struct jacobi_pair *x, int from)
{
#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i++) {
        x->b[i] = of_thread(x->b[i], from);
    }
    x->norm_b = of_thread(x->norm_b, from);
}

static __device__ __forceinline__ void
swap_if(struct jacobi_pair *x, bool swaps)
{
    const real norm = x->norm_a;

#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i++) {
        const scalar a = x->a[i];

        x->a[i] = swaps ? x->b[i] : a;
        x->b[i] = swaps ? a : x->b[i];
    }
    x->norm_a = swaps ? x->norm_b : norm;
    x->norm_b = swaps ? norm : x->norm_b;
}

/* Brings the columns back to where they were before a sweep.

   The place of a column is the number of its thread, with bits l_i, and s, which is 1 for b.
   Joining groups of m = 2^i threads makes l_i' = l_i ^ s and s' = l_i.  All joins of a sweep make
   l_i' = l_i ^ l_(i-1) and l_0' = l_0 ^ s, and s' the highest l_i: s ^ the parity of all l_i'.  So
   a swap where that parity is odd restores s, and then a thread l fetches its columns from l'. */
static __device__ __forceinline__ void
send_back(struct jacobi_pair *x, int lane, int lanes)
{
    const int others = lane & -lanes, from = (lane ^ (lane << 1)) & (lanes - 1);

    swap_if(x, __popc(lane & (lanes - 1)) % 2 > 0);
#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i++) {
        x->a[i] = of_thread(x->a[i], others | from);
        x->b[i] = of_thread(x->b[i], others | ((from ^ 1) & (lanes - 1)));
    }
}

/* Lets all pairs of the columns of `lanes` threads meet once. */
static __device__ __forceinline__ struct jacobi_sweep
sweep_pairs(struct jacobi_pair *x, int lane, int lanes, bool active, real tolerance)
{
    struct jacobi_sweep sweep = {};

    x->norm_a = r_sqrt(square_of(x->a));
    x->norm_b = r_sqrt(square_of(x->b));
#pragma unroll 1
    for (int group = 1; group <= lanes; group *= 2) {
        const bool joins = group < lanes;

#pragma unroll 1
        for (int i = 0; i < group; i++) {
            /* after the last meeting b goes round to where it began, and then to the other group; a
               thread of the second group will have it as a */
            const int to = joins && i == group - 1 ? lane ^ group : lane;

            meet_pair(x, active, tolerance, &sweep);
            pass_on(x, (to & -group) | ((to + 1) & (group - 1)));
        }
        if (joins) {
            swap_if(x, (lane & group) > 0);
        }
    }
    send_back(x, lane, lanes);
#pragma unroll
    for (int half = PAIR_LANES / 2; half > 0; half /= 2) {
        sweep.made += __shfl_xor_sync(0xffffffffu, sweep.made, half);
        sweep.cosine = r_max(sweep.cosine, __shfl_xor_sync(0xffffffffu, sweep.cosine, half));
        sweep.turn += __shfl_xor_sync(0xffffffffu, sweep.turn, half);
    }
    return sweep;
}

/* ---- the vectors ---- */

/* The ranks of this thread's columns among PAIR_ORDER; those that are zero come last. */
static __device__ __forceinline__ void
rank_pair(const struct jacobi_pair &x, int lane, int *rank_a, int *rank_b)
{
    *rank_a = *rank_b = 0;
    for (int k = 0; k < PAIR_LANES; k++) {
        const real a = __shfl_sync(0xffffffffu, x.norm_a, k, PAIR_LANES);
        const real b = __shfl_sync(0xffffffffu, x.norm_b, k, PAIR_LANES);

        *rank_a += (a > x.norm_a || (a == x.norm_a && k < lane)) + (b > x.norm_a);
        *rank_b += (a >= x.norm_b) + (b > x.norm_b || (b == x.norm_b && k < lane));
    }
}

/* Solves R Z = X for rows k = ROWS - 1 down to ROWS - PAIR_STEPS of Z.  At step k row k of X is in
   the last register, and the rows before it are in the registers before that.  Row k of Z takes the
   place of column k of R. */
template <int ROWS>
static __device__ __forceinline__ void
solve(struct jacobi_pair *x, struct jacobi_shared &of, int rank_a, int rank_b)
{
#pragma unroll 1
    for (int k = ROWS - 1; k >= ROWS - PAIR_STEPS; k--) {
        scalar *const column = of.r[of.column[k]];
        const scalar *const rows = column + k - (PAIR_ORDER - 1);
        const scalar a = n_mul(x->a[PAIR_ORDER - 1], of.inverse[k]);
        const scalar b = n_mul(x->b[PAIR_ORDER - 1], of.inverse[k]);

#pragma unroll
        for (int i = PAIR_ORDER - 2; i >= PAIR_ORDER - ROWS; i--) {
            const scalar y = rows[i];

            x->a[i + 1] = n_fma(-a, y, x->a[i]);
            x->b[i + 1] = n_fma(-b, y, x->b[i]);
        }
        __syncwarp(); /* all have read the column */
        column[rank_a] = a;
        column[rank_b] = b;
        __syncwarp();
    }
}

/* Whether all entries of Z^H Z are close to those of I.  If one value is by far the largest, the
   whole error of Z goes into the residual, so half of the bound on orthogonality is allowed.

   A thread multiplies its columns by those of the thread that is d places further in a ring of
   PAIR_LANES.  Since a product of two columns is needed only once, half of the ring is enough.
   Columns and rows from c on are zero, or the matrix is refused already.  NaN is not close. */
static __device__ __forceinline__ bool
is_orthogonal(struct jacobi_pair *x, const struct jacobi_shared &of, int r, int c, int lane)
{
    const real limit = bound_of_size(R_EPS * (r + 8) * REAL(1.5));
    const int first = (int)threadIdx.x % WARP - lane; /* of the matrix's lanes */
    bool good = true;
    unsigned votes;

#pragma unroll
    for (int i = 0; i < PAIR_ORDER; i++) {
        x->a[i] = of.r[i][lane];
        x->b[i] = of.r[i][lane + PAIR_LANES];
    }
#pragma unroll 1
    for (int d = 0; d <= PAIR_LANES / 2; d++) {
        const int near = (lane + d) % PAIR_LANES, far = near + PAIR_LANES;
        scalar aa = -REAL(d == 0 && lane < c), bb = -REAL(d == 0 && lane + PAIR_LANES < c);
        scalar ab = 0, ba = 0;

#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i++) {
            const scalar y = of.r[i][near], z = of.r[i][far];

            aa = n_fma(n_conj(x->a[i]), y, aa);
            ab = n_fma(n_conj(x->a[i]), z, ab);
            ba = n_fma(n_conj(x->b[i]), y, ba);
            bb = n_fma(n_conj(x->b[i]), z, bb);
        }
        good = good && entry_size(aa) <= limit && entry_size(ab) <= limit &&
               entry_size(ba) <= limit && entry_size(bb) <= limit;
    }
    votes = __ballot_sync(0xffffffffu, good) >> first;
    return (votes & ((1u << PAIR_LANES) - 1)) == (1u << PAIR_LANES) - 1;
}

/* Applies the reflectors from number FIRST + PAIR_STEPS - 1 down to FIRST; NULL: there are none. */
template <int FIRST>
static __device__ __forceinline__ void
unfactor(struct jacobi_pair *x, struct jacobi_shared &of, int c, int lane, const scalar *reflectors)
{
    const int last = (c < FIRST + PAIR_STEPS ? c : FIRST + PAIR_STEPS) - 1;
    scalar first = 0, second = 0; /* entries of the next reflector, prefetched */

    if (reflectors != NULL && last >= FIRST) {
        first = reflectors[last * PAIR_ORDER + lane];
        second = reflectors[last * PAIR_ORDER + lane + PAIR_LANES];
    }
#pragma unroll 1
    for (int k = last; k >= FIRST; k--) {
        scalar dot_a[2] = {}, dot_b[2] = {};

        __syncwarp(); /* all have read the vector before */
        of.vector[lane] = first;
        of.vector[lane + PAIR_LANES] = second;
        __syncwarp();
        if (reflectors != NULL && k > FIRST) {
            first = reflectors[(k - 1) * PAIR_ORDER + lane];
            second = reflectors[(k - 1) * PAIR_ORDER + lane + PAIR_LANES];
        }
#pragma unroll
        for (int i = FIRST; i < PAIR_ORDER; i++) {
            dot_a[i % 2] = n_fma(n_conj(of.vector[i]), x->a[i], dot_a[i % 2]);
            dot_b[i % 2] = n_fma(n_conj(of.vector[i]), x->b[i], dot_b[i % 2]);
        }
        dot_a[0] += dot_a[1];
        dot_b[0] += dot_b[1];
#pragma unroll
        for (int i = FIRST; i < PAIR_ORDER; i++) {
            const scalar y = load_again(of.vector, i); /* as in reflect() */

            x->a[i] = n_fma(-dot_a[0], y, x->a[i]);
            x->b[i] = n_fma(-dot_b[0], y, x->b[i]);
        }
    }
}

/* Finds how vectors are turned, by the left vectors of A: those of this thread, or, if W is A's
   transpose, the conjugates of those of Z of the same ranks.  These make the same turn as those of
   Z themselves.  Not `placed`: none is turned. */
static __device__ __forceinline__ void
find_signs(const struct jacobi_pair &x, struct jacobi_shared &of, bool placed, bool transposed,
           int rank_a, int rank_b)
{
    scalar most_a = 0, most_b = 0;

    if (placed) {
#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i++) {
            most_a = larger_entry(most_a, transposed ? of.r[i][rank_a] : x.a[i]);
            most_b = larger_entry(most_b, transposed ? of.r[i][rank_b] : x.b[i]);
        }
    }
    of.inverse[rank_a] = turn_of(most_a);
    of.inverse[rank_b] = turn_of(most_b);
    if (TSVD_COMPLEX) {
        __syncwarp(); /* all have read the vector */
        of.vector[rank_a] = most_a;
        of.vector[rank_b] = most_b;
    }
}

/* ---- matrices ---- */

template <bool VECTORS>
static __global__ void
__launch_bounds__(PAIR_THREADS, PAIR_BLOCKS)
    jacobi_pairs_kernel(struct jacobi_batch q, struct jacobi_results to)
{
    __shared__ struct jacobi_shared matrices[PAIR_THREADS / PAIR_LANES];
    const int lane = (int)threadIdx.x % PAIR_LANES;
    const int64_t at = ((int64_t)blockIdx.x * PAIR_THREADS + threadIdx.x) / PAIR_LANES;
    const bool present = at < q.count;
    const int64_t matrix = present ? at : 0;
    const int r = q.r, c = q.c, lanes = c > 16 ? 16 : c > 8 ? 8 : c > 4 ? 4 : c > 2 ? 2 : 1;
    const bool placed = VECTORS && to.u != NULL; /* else the results go to w, v and s */
    const int first = placed ? to.first : 0, count = placed ? to.k : c;
    const real tolerance = jacobi_tolerance(r);
    scalar *const w = q.w + matrix * c * r, *const v = VECTORS ? q.v + matrix * c * c : NULL;
    scalar *const reflectors = VECTORS ? q.reflectors + matrix * c * PAIR_ORDER : NULL;
    struct jacobi_shared &of = matrices[threadIdx.x / PAIR_LANES];
    struct jacobi_pair x;
    const real_int power = q.exponent[matrix];
    const real scale = r_pow2((int)-(power / 2)), rest = r_pow2((int)-(power - power / 2));
    int sweeps = 0, rotations = 0, rank_a, rank_b;
    bool good, active, turned = true;

#pragma unroll 8
    for (int j = 0; j < PAIR_ORDER; j++) {
#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i += PAIR_LANES) {
            const bool exists = present && lane + i < r && j < c;

            of.r[j][lane + i] =
                exists ? n_scale(rest, n_scale(scale, w[j * r + lane + i])) : scalar(0);
        }
    }
    __syncwarp();
    good = begin_pairs(&x, of, r, c, lane, present ? reflectors : NULL) && present;
    active = good && q.max_sweeps > 0;
    while (__any_sync(0xffffffffu, active)) {
        const struct jacobi_sweep sweep = sweep_pairs(&x, lane, lanes, active, tolerance);

        if (active) {
            turned = sweep.made > 0 && !jacobi_settles(sweep.cosine, sweep.turn, tolerance);
            rotations += sweep.made;
            sweeps++;
        }
        active = active && turned && sweeps < q.max_sweeps;
    }
    /* NaN, of a matrix that will be refused, counts as 0: no two columns may have the same rank */
    x.norm_a = r_max(r_sqrt(square_of(x.a)), REAL(0));
    x.norm_b = r_max(r_sqrt(square_of(x.b)), REAL(0));
    rank_pair(x, lane, &rank_a, &rank_b);
    good = good && !turned;
    if (good) {
        const real_int exponent = q.exponent[matrix];

        write_value(q, to, matrix, placed, rank_a, scaled_value(x.norm_a, exponent, false));
        write_value(q, to, matrix, placed, rank_b, scaled_value(x.norm_b, exponent, false));
    }
    if (VECTORS) {
        const real inverse_a = 1 / x.norm_a, inverse_b = 1 / x.norm_b;

#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i++) {
            if (good && i < c && rank_a < c) {
                v[i * c + rank_a] = n_scale(inverse_a, x.a[i]);
            }
            if (good && i < c && rank_b < c) {
                v[i * c + rank_b] = n_scale(inverse_b, x.b[i]);
            }
        }
    }
    solve<PAIR_ORDER>(&x, of, rank_a, rank_b);
    solve<PAIR_ORDER - PAIR_STEPS>(&x, of, rank_a, rank_b);
    solve<PAIR_ORDER - 2 * PAIR_STEPS>(&x, of, rank_a, rank_b);
    solve<PAIR_ORDER - 3 * PAIR_STEPS>(&x, of, rank_a, rank_b);
    good = is_orthogonal(&x, of, r, c, lane) && good;
    if (VECTORS) {
        const struct place_turns turns = {of.inverse, of.vector};

#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i++) {
            x.a[i] = good && i < c && rank_a < c ? v[i * c + rank_a] : scalar(0);
            x.b[i] = good && i < c && rank_b < c ? v[i * c + rank_b] : scalar(0);
        }
        __syncwarp(); /* what is in v has been read */
        unfactor<3 * PAIR_STEPS>(&x, of, c, lane, good ? reflectors : NULL);
        unfactor<2 * PAIR_STEPS>(&x, of, c, lane, good ? reflectors : NULL);
        unfactor<PAIR_STEPS>(&x, of, c, lane, good ? reflectors : NULL);
        unfactor<0>(&x, of, c, lane, good ? reflectors : NULL);
        find_signs(x, of, placed, to.transposed, rank_a, rank_b);
        __syncwarp();
        if (good) {
            write_vectors<PAIR_LANES, PAIR_ORDER>(&of.r[0][0], turns, 1, PAIR_ORDER + 1, first,
                                                  count, c, !placed || !to.transposed, true, lane,
                                                  !placed         ? v
                                                  : to.transposed ? to.u + matrix * c * count
                                                                  : to.vh + matrix * count * c);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < PAIR_ORDER; i++) {
            of.r[rank_a][i] = x.a[i];
            of.r[rank_b][i] = x.b[i];
        }
        __syncwarp();
        if (good) {
            write_vectors<PAIR_LANES, PAIR_ORDER>(&of.r[0][0], turns, PAIR_ORDER + 1, 1, first,
                                                  count, r, !placed || to.transposed, false, lane,
                                                  !placed         ? w
                                                  : to.transposed ? to.vh + matrix * count * r
                                                                  : to.u + matrix * r * count);
        }
    }
    for (int j = lane; good && j < c; j += PAIR_LANES) {
        q.order[matrix * c + j] = j;
    }
    if (present && lane == 0) {
        q.refused[matrix] = !good;
        if (good) {
            q.rank[matrix] = c;
            q.transposed[matrix] = false;
            write_made(q, matrix, rotations, sweeps, false);
        }
    }
}

#endif
