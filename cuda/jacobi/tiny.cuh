/*
 * One-sided Jacobi for the smallest matrices: a thread has one, in its registers.
 *
 * W, r x c with r >= c, is filled up to r x r by columns of zeros.  A warp brings WARP matrices
 * through shared memory, so that what it reads and writes at once lies side by side.  In the end
 * X = W J has orthogonal columns s_j x_j, and Y = J has the other vectors.
 *
 * Columns a and b, with p = |a|^2, q = |b|^2 and cosine z = a^H b / (|a| |b|), are turned by
 *
 *     a' = cos(t) a + sin(t) w b,   b' = cos(t) b - sin(t) conj(w) a,   w = conj(z) / |z|,
 *     tan(2 t) = 2 |a^H b| / (p - q),   |t| <= pi / 4.
 *
 * It takes three shears: a += h b, b -= g a, a += h b with h = tan(t / 2) w.  They are unitary for
 * any h, however rough, if g = 2 conj(h) / (1 + |h|^2).  So only g is found to full precision.  A
 * rough h leaves a part of z, about 2^-20, to the next sweep.
 *
 * The shorter one of two parallel columns becomes the rounding error of the longer one.  This would
 * be turned again and again, as noise often is parallel too.  So what is below its own rounding
 * error becomes zero.  That changes a column by little beside its length, as rounding does.
 */
#ifndef TSVDI_CUDA_JACOBI_TINY_CUH
#define TSVDI_CUDA_JACOBI_TINY_CUH

#include <climits>

#include "matrix/panel.h"
#include "matrix/source.h"

enum {
    TINY_ORDER = sizeof(scalar) > 8 ? 4
                 : TSVD_COMPLEX     ? 7
                                    : 8, /* the largest order */
    TINY_SWEEPS = 60, /* at most; constant matrices take 15, others of 8 columns up to 28 */
    TINY_FINE = 3,    /* sweeps that turn columns if their cosines are above 2 eps */
    TINY_THREADS = 64,
    TINY_COPIES = 8 /* numbers that a lane has in flight */
};

/* Columns with a larger cosine are turned.  The rounding errors of a turn leave about eps.  What
   they add up to is often above 2 eps, so that later sweeps must stop at more.  With 7 eps from the
   first sweep on, nearly orthogonal matrices of equal values were left as they are: 28 cosines of
   less than 7 eps moved a value by 9.4 eps. */
template <int N>
static __device__ __forceinline__ real
tiny_tolerance(int sweep)
{
    return (sweep < TINY_FINE ? REAL(2) : 3 + REAL(N) / 2) * R_EPS;
}

/* Columns with a cosine nearer to 1 than this are turned at once again. */
#define TINY_PARALLEL (1 - r_pow2(-10))

/* What is left of a column counts as zero below this part of its length.  Its rounding errors are
   below 2 eps in nearly all cases; a value of the size of this part is lost. */
#define TINY_NOISE (4 * R_EPS)

/* The squares of larger quotients are not formed. */
#define TINY_LARGE r_pow2(TSVD_SINGLE ? 40 : 200)

/* The largest value over the least that is found again from W. */
#define TINY_REFINED REAL(16)

/* What a kernel has found.  A matrix; ULLONG_MAX: none. */
struct tiny_marks {
    unsigned long long nonfinite, unfinished;
    unsigned long long sweeps; /* of all matrices */
};

/* What the kernel reads and writes. */
struct tiny_svds {
    struct dense_source from;
    int64_t count;
    int columns;     /* of W: c */
    bool by_row;     /* lies_by_row() */
    bool transposed; /* W = A^H, and `from` has A^T; else W = A */
    unsigned needed; /* a bit for each column of X whose vector is wanted */
    int first, k;    /* the ranks first .. first + k - 1 */
    struct dense_shape shape;
    real *s;                  /* [count][k] */
    scalar *u, *vh;           /* [count][u_rows][u_columns], [count][v_rows][v_columns] */
    struct tiny_marks *marks; /* [blocks] pinned memory */
};

/* A warp's matrices lie in shared memory, each with padding after it, so that the numbers that
   threads read at once are in different banks. */
template <int N, bool VECTORS> struct tiny_tile {
    enum {
        NUMBERS = N * N,
        SPACED = NUMBERS | 1,
        OWNED = NUMBERS * (VECTORS ? 2 : 1) * (int)sizeof(scalar) / 4, /* registers of a matrix */

        /* of a multiprocessor: threads have 255, 168, 128 or 96 registers */
        BLOCKS = OWNED > 70   ? 4
                 : OWNED > 44 ? 6
                 : OWNED > 16 ? 8
                              : 10
    };
};

/* ---- rotations ---- */

/* The shears of columns a and b: a += half b, b -= whole a, a += half b. */
struct tiny_turn {
    scalar half, whole;
    real square; /* of the cosine; 0: the columns are not turned */
};

template <int N>
static __device__ __forceinline__ struct tiny_turn
tiny_turn_of(const scalar (&a)[N], const scalar (&b)[N], real tolerance, real *p, real *q)
{
    struct tiny_turn turn = {};
    scalar dot = 0, cosine;
    real inverse, quotient, size, root, tangent;

    *p = *q = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        *p = n_add_abs2(a[i], *p);
        *q = n_add_abs2(b[i], *q);
        dot = n_fma(n_conj(a[i]), b[i], dot);
    }
    if (!(r_min(*p, *q) >= DENSE_NOTHING)) {
        return turn;
    }
    inverse = r_rough_rsqrt(*p);
    size = r_rough_rsqrt(*q);
    cosine = n_scale(size, n_scale(inverse, dot));
    quotient = (*p - *q) * inverse * size;
    turn.square = n_abs2(cosine);
    if (!(turn.square > tolerance * tolerance)) {
        turn.square = 0;
        return turn;
    }
    inverse = r_rough_rsqrt(turn.square);
    size = r_abs(quotient) / 2 * inverse; /* 1 / tan(2 t) */
    root = r_fma(size, size, 1);
    root = size > TINY_LARGE ? size : root * r_rough_rsqrt(root);
    tangent = r_rough_reciprocal(size + root);
    root = r_fma(tangent, tangent, 1);
    tangent *= r_rough_reciprocal(r_fma(root, r_rough_rsqrt(root), 1));
    turn.half = n_scale(r_copysign(tangent, quotient) * inverse, n_conj(cosine));
    turn.whole = n_scale(2 * r_reciprocal(n_add_abs2(turn.half, 1)), n_conj(turn.half));
    return turn;
}

template <int N>
static __device__ __forceinline__ void
tiny_shear(const struct tiny_turn &turn, scalar (&a)[N], scalar (&b)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const scalar middle = n_fma(turn.half, b[i], a[i]);

        b[i] = n_fma(-turn.whole, middle, b[i]);
        a[i] = n_fma(turn.half, b[i], middle);
    }
}

/* Zeros in the column that is left of a parallel one.  least: the square of its length before. */
template <int N>
static __device__ __forceinline__ bool
tiny_drop(scalar (&x)[N], real least)
{
    real square = 0;

#pragma unroll
    for (int i = 0; i < N; i++) {
        square = n_add_abs2(x[i], square);
    }
    if (square > TINY_NOISE * TINY_NOISE * least) {
        return false;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        x[i] = 0;
    }
    return true;
}

/* Makes columns a and b of X orthogonal, and turns c and d of Y with them.  Returns whether they
   were turned. */
template <int N, bool VECTORS>
static __device__ __forceinline__ bool
tiny_rotate(scalar (&a)[N], scalar (&b)[N], scalar (&c)[N], scalar (&d)[N], real tolerance)
{
    real least = 0, p, q;
    struct tiny_turn turn = tiny_turn_of<N>(a, b, tolerance, &p, &q);
    const bool turned = turn.square > 0;

    while (turn.square > 0) {
        least = least > 0 ? least : r_min(p, q);
        tiny_shear<N>(turn, a, b);
        if (VECTORS) {
            tiny_shear<N>(turn, c, d);
        }
        if (!(turn.square > TINY_PARALLEL) ||
            (p < q ? tiny_drop<N>(a, least) : tiny_drop<N>(b, least))) {
            break;
        }
        turn = tiny_turn_of<N>(a, b, tolerance, &p, &q);
    }
    return turned;
}

/* X = W J and Y = J, in place of W and I.  Returns the sweeps that it took; 0: they were not
   enough. */
template <int N, int M>
static __device__ __forceinline__ int
tiny_diagonalize(scalar (&x)[N][N], scalar (&y)[M][N])
{
    int sweeps = 0;
    bool turned;

    do {
        const real tolerance = tiny_tolerance<N>(sweeps);

        turned = false;
#pragma unroll
        for (int a = 0; a < N; a++) {
#pragma unroll
            for (int b = a + 1; b < N; b++) {
                turned =
                    tiny_rotate<N, (M > 1)>(x[a], x[b], y[a % M], y[b % M], tolerance) || turned;
            }
        }
        sweeps++;
    } while (turned && sweeps < TINY_SWEEPS);
    return turned ? 0 : sweeps;
}

/* ---- results ---- */

/* Brings a column to norm 1, and returns its norm.  Squares of small entries would underflow.
   lost: it is zero, or so short that it may not have been turned. */
template <int N>
static __device__ __forceinline__ real
tiny_normalize(scalar (&x)[N], bool *lost)
{
    real most = 0, square = 0, norm, inverse;
    real_int exponent;

#pragma unroll
    for (int i = 0; i < N; i++) {
        most = r_max(n_size(x[i]), most);
    }
    (void)r_split(most, &exponent);
#pragma unroll
    for (int i = 0; i < N; i++) {
        x[i] = scaled_entry(x[i], exponent);
        square = n_add_abs2(x[i], square);
    }
    norm = most > 0 ? reflector_norm(square, &inverse) : REAL(0);
    norm = n_real(scaled_entry(norm, -exponent));
    *lost = !(norm * norm >= 4 * DENSE_NOTHING);
    if (most > 0) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] = n_scale(inverse, x[i]);
        }
    }
    return norm;
}

/* A step of Newton's method towards norm 1. */
template <int N>
static __device__ __forceinline__ void
tiny_correct(scalar (&x)[N])
{
    real square = 0;

#pragma unroll
    for (int i = 0; i < N; i++) {
        square = n_add_abs2(x[i], square);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        x[i] = n_fma_real((1 - square) / 2, x[i], x[i]);
    }
}

/* |W^H x|: of a large value, more precise than the length of a column that has been turned so many
   times.  w: [N][N] W column by column. */
template <int N>
static __device__ __forceinline__ real
tiny_value(const scalar *w, const scalar (&x)[N])
{
    real square = 0, inverse;

#pragma unroll
    for (int j = 0; j < N; j++) {
        scalar sum = 0;

#pragma unroll
        for (int i = 0; i < N; i++) {
            sum = n_fma(n_conj(w[j * N + i]), x[i], sum);
        }
        square = n_add_abs2(sum, square);
    }
    return reflector_norm(square, &inverse);
}

/* Puts unit vectors, made orthogonal to all others, in the place of the columns that are lost.
   lost: a bit for each column. */
template <int N>
static __device__ __forceinline__ void
tiny_complete(scalar (&x)[N][N], unsigned lost)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        int row = 0;
        real least = 2;

        if ((lost >> j & 1) == 0) {
            continue;
        }
#pragma unroll
        for (int i = 0; i < N; i++) { /* the row that the others have least of */
            real square = 0;

#pragma unroll
            for (int l = 0; l < N; l++) {
                square = (lost >> l & 1) == 0 ? n_add_abs2(x[l][i], square) : square;
            }
            row = square < least ? i : row;
            least = r_min(square, least);
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[j][i] = REAL(i == row);
        }
#pragma unroll
        for (int pass = 0; pass < 2; pass++) {
            bool nothing;

#pragma unroll
            for (int l = 0; l < N; l++) {
                scalar sum = 0;

#pragma unroll
                for (int i = 0; i < N; i++) {
                    sum = n_fma(n_conj(x[l][i]), x[j][i], sum);
                }
                sum = (lost >> l & 1) == 0 ? sum : scalar(REAL(0));
#pragma unroll
                for (int i = 0; i < N; i++) {
                    x[j][i] = n_fma(-sum, x[l][i], x[j][i]);
                }
            }
            (void)tiny_normalize<N>(x[j], &nothing);
        }
        lost &= ~(1u << j);
    }
}

/* The place of each column by its value; of equal ones, by its number. */
template <int N>
static __device__ __forceinline__ void
tiny_rank(const real (&s)[N], int (&rank)[N])
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        rank[j] = 0;
#pragma unroll
        for (int l = 0; l < N; l++) {
            rank[j] += l < j ? s[l] >= s[j] : s[l] > s[j];
        }
    }
}

/* ---- between memory and registers ---- */

/* Has a warp bring its matrices to shared memory, W column by column. */
template <int N, bool WHOLE>
static __device__ __forceinline__ void
tiny_read(const struct tiny_svds &q, int64_t begin, unsigned present, scalar *tiles)
{
    const unsigned columns = WHOLE ? N : (unsigned)q.columns, numbers = N * columns;
    const unsigned line = q.by_row ? columns : (unsigned)N, lane = threadIdx.x % WARP;
    const int64_t inner = q.by_row ? q.from.column : q.from.row;
    const int64_t outer = q.by_row ? q.from.row : q.from.column;

    for (unsigned first = lane; first < present * numbers; first += TINY_COPIES * WARP) {
        scalar x[TINY_COPIES];
        unsigned to[TINY_COPIES];

#pragma unroll
        for (unsigned k = 0; k < TINY_COPIES; k++) {
            const unsigned at = first + k * WARP, matrix = at / numbers, entry = at % numbers;
            const unsigned along = entry % line, across = entry / line;

            to[k] = matrix * (unsigned)tiny_tile<N, true>::SPACED +
                    (q.by_row ? along * N + across : across * N + along);
            if (at < present * numbers) {
                x[k] = read_entry(source_matrix(q.from, q.from.begin + begin + matrix) +
                                  along * inner + across * outer);
            }
        }
#pragma unroll
        for (unsigned k = 0; k < TINY_COPIES; k++) {
            if (first + k * WARP < present * numbers) {
                tiles[to[k]] = q.transposed ? n_conj(x[k]) : x[k];
            }
        }
    }
    __syncwarp();
}

/* Has a warp write `numbers` results of each of its matrices. */
template <int N, bool WHOLE>
static __device__ __forceinline__ void
tiny_write(const scalar *tiles, unsigned present, int64_t numbers, scalar *to)
{
    const unsigned each = WHOLE ? N * N : (unsigned)numbers, lane = threadIdx.x % WARP;

    __syncwarp();
    for (unsigned at = lane; at < present * each; at += WARP) {
        to[at] = tiles[at / each * tiny_tile<N, true>::SPACED + at % each];
    }
    __syncwarp();
}

/* The matrix of a thread, scaled, from shared memory and back.  Returns what it counts as. */
template <int N, bool WHOLE>
static __device__ __forceinline__ char
tiny_take(int columns, scalar *w, scalar (&x)[N][N], real_int *exponent)
{
    real_int most = 0;

#pragma unroll
    for (int j = 0; j < N; j++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[j][i] = WHOLE || j < columns ? w[j * N + i] : scalar(REAL(0));
            most = size_bits(x[j][i]) > most ? size_bits(x[j][i]) : most;
        }
    }
    *exponent = 0;
    (void)r_split(r_from_bits(most < R_INFINITY_BITS ? most : 0), exponent);
#pragma unroll
    for (int j = 0; j < N; j++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[j][i] = most < R_INFINITY_BITS ? scaled_entry(x[j][i], *exponent) : scalar(REAL(0));
            w[j * N + i] = x[j][i];
        }
    }
    return (char)(most == 0 ? ZERO : most < R_INFINITY_BITS ? ORDINARY : NONFINITE);
}

/* Puts vectors to the places of their ranks, as columns of U.  turn: out: their largest entries,
   which become real and positive. */
template <int N>
static __device__ __forceinline__ void
tiny_put_left(const struct tiny_svds &q, const scalar (&x)[N][N], const int (&rank)[N], bool lost,
              scalar (&turn)[N], scalar *to)
{
    const int rows = (int)q.shape.u_rows, columns = (int)q.shape.u_columns;

#pragma unroll
    for (int j = 0; j < N; j++) {
        const int place = rank[j] - q.first;

        turn[j] = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            turn[j] = place < q.k && i < rows ? larger_entry(turn[j], x[j][i]) : turn[j];
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (place >= 0 && place < columns && i < rows) {
                to[i * columns + place] = lost             ? lost_entry()
                                          : turns(turn[j]) ? turned_left(x[j][i], turn[j])
                                                           : x[j][i];
            }
        }
    }
}

/* The same of the other vectors, whose conjugates become rows of Vh. */
template <int N>
static __device__ __forceinline__ void
tiny_put_right(const struct tiny_svds &q, const scalar (&x)[N][N], const int (&rank)[N], bool lost,
               const scalar (&turn)[N], scalar *to)
{
    const int rows = (int)q.shape.v_rows, columns = (int)q.shape.v_columns;

#pragma unroll
    for (int j = 0; j < N; j++) {
        const int place = rank[j] - q.first;

#pragma unroll
        for (int i = 0; i < N; i++) {
            const scalar entry = n_conj(x[j][i]);

            if (place >= 0 && place < rows && i < columns) {
                to[place * columns + i] = lost             ? lost_entry()
                                          : turns(turn[j]) ? turned_right(entry, turn[j])
                                                           : entry;
            }
        }
    }
}

template <int N>
static __device__ __forceinline__ void
tiny_exchange(scalar (&x)[N][N], scalar (&y)[N][N])
{
#pragma unroll
    for (int j = 0; j < N; j++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const scalar other = x[j][i];

            x[j][i] = y[j][i];
            y[j][i] = other;
        }
    }
}

/* ---- the kernel ---- */

/* The SVD of a thread's matrix but for its vectors' places.  w: in shared memory.  needed: a bit
   for each column of X that must be there. */
template <int N, int M>
static __device__ __forceinline__ int
tiny_solve(const scalar *w, unsigned needed, scalar (&x)[N][N], scalar (&y)[M][N], real (&s)[N])
{
    unsigned lost = 0;
    real largest = 0;
    int sweeps;

#pragma unroll
    for (int j = 0; j < M; j++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[j][i] = REAL(i == j);
        }
    }
    sweeps = tiny_diagonalize<N, M>(x, y);
#pragma unroll
    for (int j = 0; j < N; j++) {
        bool nothing;

        s[j] = tiny_normalize<N>(x[j], &nothing);
        largest = r_max(s[j], largest);
        lost |= (unsigned)nothing << j;
    }
#pragma unroll
    for (int j = 0; j < N; j++) {
        if (TINY_REFINED * s[j] > largest) {
            tiny_correct<N>(x[j]);
            s[j] = tiny_value<N>(w, x[j]);
        }
    }
    if (M > 1) {
#pragma unroll
        for (int j = 0; j < M; j++) {
            tiny_correct<N>(y[j]);
        }
    }
    if (M == N && (lost & needed) != 0) {
        tiny_complete<N>(x, lost & needed);
    }
    return sweeps;
}

static __device__ __forceinline__ struct tiny_marks
no_tiny_marks(void)
{
    return {ULLONG_MAX, ULLONG_MAX, 0};
}

/* WHOLE: W is square, and all vectors are wanted. */
template <int N, bool VECTORS, bool WHOLE>
static __global__ void
__launch_bounds__(TINY_THREADS, tiny_tile<N, VECTORS>::BLOCKS)
    tiny_kernel(const __grid_constant__ struct tiny_svds q)
{
    enum { SPACED = tiny_tile<N, VECTORS>::SPACED, M = VECTORS ? N : 1 };
    __shared__ scalar tiles[TINY_THREADS * SPACED];
    __shared__ struct tiny_marks block;
    const unsigned lane = threadIdx.x % WARP, before = threadIdx.x - lane;
    const int64_t step = (int64_t)gridDim.x * TINY_THREADS;
    scalar *const warps = tiles + before * SPACED, *const own = warps + lane * SPACED;
    unsigned made = 0;

    if (threadIdx.x == 0) {
        block = no_tiny_marks();
    }
    __syncthreads();
    for (int64_t begin = (int64_t)blockIdx.x * TINY_THREADS + before; begin < q.count;
         begin += step) {
        const unsigned present = (unsigned)(q.count - begin < WARP ? q.count - begin : WARP);
        scalar x[N][N], y[M][N], turn[N];
        real s[N];
        real_int exponent;
        int rank[N], sweeps;
        bool lost;

        tiny_read<N, WHOLE>(q, begin, present, warps);
        if (lane < present) {
            lost = tiny_take<N, WHOLE>(q.columns, own, x, &exponent) == NONFINITE;
            sweeps = tiny_solve<N, M>(own, q.needed, x, y, s);
            tiny_rank<N>(s, rank);
            made += (unsigned)sweeps;
            if (lost) {
                atomicMin(&block.nonfinite, (unsigned long long)begin + lane);
            } else if (sweeps == 0) {
                atomicMin(&block.unfinished, (unsigned long long)begin + lane);
            }
#pragma unroll
            for (int j = 0; j < N; j++) {
                const int place = rank[j] - q.first;

                if (place >= 0 && place < q.k) {
                    q.s[(begin + lane) * q.k + place] = scaled_value(s[j], exponent, lost);
                }
            }
        }
        if constexpr (VECTORS) {
            if (!WHOLE && q.transposed) { /* as registers, arrays cannot be chosen by an address */
                tiny_exchange<N>(x, y);
            }
            if (lane < present) {
                tiny_put_left<N>(q, x, rank, lost, turn, own);
            }
            tiny_write<N, WHOLE>(warps, present, q.shape.u_rows * q.shape.u_columns,
                                 q.u + begin * q.shape.u_rows * q.shape.u_columns);
            if (lane < present) {
                tiny_put_right<N>(q, y, rank, lost, turn, own);
            }
            tiny_write<N, WHOLE>(warps, present, q.shape.v_rows * q.shape.v_columns,
                                 q.vh + begin * q.shape.v_rows * q.shape.v_columns);
        } else {
            __syncwarp();
        }
    }
    if (made > 0) {
        atomicAdd(&block.sweeps, (unsigned long long)made);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        q.marks[blockIdx.x] = block;
    }
}

#endif
