/*
 * Inverses of batches of the smallest matrices: a thread has one, in its registers.
 *
 * A warp brings WARP matrices through shared memory, so that what it reads and writes at once lies
 * side by side.  It needs no workspace: what is found goes straight to the host.
 *
 * In TINY_ORDER columns real numbers grow by 2^(TINY_ORDER - 1) at most, and residuals stay below a
 * tenth of their bound.  Complex numbers may grow more, since two of the same size can have a
 * quotient of sqrt(2); the worst residuals that a search found are a fifth of their bound.  So no
 * probe is needed.  But where S is near singular numbers may overflow, or a pivot underflow: then
 * the inverse is not finite.
 */
#ifndef TSVDI_CUDA_INVERSE_TINY_H
#define TSVDI_CUDA_INVERSE_TINY_H

#include <algorithm>

#include "inverse/registers.cuh"

enum {
    TINY_ORDER = sizeof(scalar) > 8 ? 5 : 8, /* the largest order */
    FOUND_THREADS = 128,
    COPIES = 16
};

/* What the kernel reads and writes. */
struct tiny_inverses {
    int64_t count;
    const scalar *w;
    scalar *x;                   /* may be w */
    const char *kind;            /* [count] of load(); NULL: w is what the caller has */
    struct inverse_marks *found; /* [blocks] pinned memory */
};

/* A block.  Its matrices lie in shared memory, each with padding after it, so that the numbers that
   threads read at once are in different banks. */
template <int N> struct tile {
    enum {
        THREADS = N > 4                ? 64
                  : sizeof(scalar) > 8 ? 128
                                       : 256,
        BLOCKS = N <= 4 ? 3 : 24 / (int)sizeof(scalar), /* whose registers a multiprocessor has */
        NUMBERS = N * N,
        SPACED = NUMBERS | 1
    };
};

/* How a matrix is scaled, by powers of two. */
template <int N> struct scaling {
    int up;                /* the exponent of its largest entry */
    int row[N], column[N]; /* as in math/balance.h */
    bool near;             /* all of them are */
};

/* The largest sum of magnitudes of a row, of 2^-up times the matrix. */
template <bool NEAR, int N>
static __device__ __forceinline__ double
find_norm(const scalar (&a)[N][N], int up)
{
    double norm = 0;

#pragma unroll
    for (int i = 0; i < N; i++) {
        double sum = 0;

#pragma unroll
        for (int j = 0; j < N; j++) {
            sum += modulus(scale_entry<NEAR>(a[j][i], -up));
        }
        norm = larger_sum(norm, sum);
    }
    return norm;
}

template <typename T>
static __device__ __forceinline__ void
exchange_if(bool wanted, T &x, T &y)
{
    const T other = x;

    x = wanted ? y : x;
    y = wanted ? other : y;
}

/* The exponents of rows, and that of the matrix.  Returns whether it is finite; it is zero else. */
template <int N>
static __device__ __forceinline__ bool
find_rows(scalar (&a)[N][N], struct scaling<N> &s)
{
    int most = BALANCE_NOTHING;

    find_exponents<N, N>(a, ~0u, s.row);
#pragma unroll
    for (int i = 0; i < N; i++) {
        most = s.row[i] > most ? s.row[i] : most;
    }
    if (most > R_BIAS) {
        clear<N, N>(a, s.row);
    }
    s.up = most > R_BIAS ? 0 : balance_power(most);
    s.near = is_near(s.up);
#pragma unroll
    for (int i = 0; i < N; i++) {
        s.row[i] = balance_power(s.row[i]);
        s.near = s.near && is_near(s.row[i]);
    }
    return most <= R_BIAS;
}

/* The exponents of columns, if those of rows are near.  Zero and what is not normal are far below
   what is near, so that their exponents do not matter. */
template <int N>
static __device__ __forceinline__ void
find_near_columns(const scalar (&a)[N][N], struct scaling<N> &s)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        int power = INT_MIN;

#pragma unroll
        for (int i = 0; i < N; i++) {
            const int scaled = upper_half(a[j][i]) - (s.row[i] << UPPER_DIGITS);

            power = scaled > power ? scaled : power;
        }
        s.column[j] = (power >> UPPER_DIGITS) - R_BIAS;
        s.near = s.near && is_near(s.column[j]);
    }
}

template <int N>
static __device__ __forceinline__ void
find_columns(const scalar (&a)[N][N], struct scaling<N> &s)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        int exponent = BALANCE_NOTHING;

#pragma unroll
        for (int i = 0; i < N; i++) {
            const int own = entry_exponent(a[j][i]) - s.row[i];

            exponent = own > exponent ? own : exponent;
        }
        s.column[j] = balance_power(exponent);
    }
}

/* S in place of M. */
template <bool NEAR, int N>
static __device__ __forceinline__ void
scale_matrix(scalar (&a)[N][N], const struct scaling<N> &s)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            a[j][i] = scale_entry<NEAR>(a[j][i], -s.row[i] - s.column[j]);
        }
    }
}

/* Puts the pivot's row in place k, with its exponent and its number. */
template <int N>
static __device__ __forceinline__ void
take_pivot(scalar (&a)[N][N], int k, struct scaling<N> &s, int (&number)[N])
{
    int p = k, most = pivot_key(a[k][k]);

#pragma unroll
    for (int i = k + 1; i < N; i++) {
        const int key = pivot_key(a[k][i]);

        p = key > most ? i : p;
        most = key > most ? key : most;
    }
#pragma unroll
    for (int i = k + 1; i < N; i++) {
        const bool chosen = p == i;

#pragma unroll
        for (int j = 0; j < N; j++) {
            exchange_if(chosen, a[j][k], a[j][i]);
        }
        exchange_if(chosen, s.row[k], s.row[i]);
        exchange_if(chosen, number[k], number[i]);
    }
}

/* Elimination.  Here rows move: entry (s, j) of the array is entry (s, number[j]) of the inverse in
   the end. */
template <int N>
static __device__ __forceinline__ void
eliminate(scalar (&a)[N][N], struct scaling<N> &s, int (&number)[N], scalar (&pivot)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        number[i] = i;
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        take_pivot<N>(a, k, s, number);
        pivot[k] = a[k][k];
#pragma unroll
        for (int i = 0; i < N; i++) {
            const scalar factor = pivot_factor(a[k][i], pivot[k]);

#pragma unroll
            for (int j = 0; j < N && i != k; j++) {
                a[j][i] = j == k ? -factor : a[j][i] - n_mul(factor, a[j][k]);
            }
        }
        a[k][k] = 1;
    }
}

/* Writes the inverse of M, and returns the largest sum of magnitudes of a row of 2^up times it. */
template <bool NEAR, int N>
static __device__ __forceinline__ double
write_inverse(const scalar (&a)[N][N], const struct scaling<N> &s, const int (&number)[N],
              const scalar (&pivot)[N], bool finite, scalar *x)
{
    double norm = 0;

#pragma unroll
    for (int i = 0; i < N; i++) {
        const scalar inverse = finite ? n_divide(1, n_divisor_of(pivot[i]))
                                      : no_inverse(); /* not finite if singular */
        double sum = 0;

#pragma unroll
        for (int j = 0; j < N; j++) {
            const int power = -s.column[i] - s.row[j];
            const scalar y = n_mul(a[j][i], inverse);

            sum += modulus(scale_entry<NEAR>(y, power + s.up));
            x[number[j] * N + i] = scale_entry<NEAR>(y, power);
        }
        norm = larger_sum(norm, sum);
    }
    return norm;
}

/* The inverse of M, in its place, and what is found.  index: its number.  finite: false if load()
   says so. */
template <int N>
static __device__ __forceinline__ struct inverse_marks
invert_matrix(scalar *x, int64_t index, bool finite)
{
    struct scaling<N> s;
    int number[N];
    double norms;
    scalar a[N][N], pivot[N];
    bool grown = false;

#pragma unroll
    for (int j = 0; j < N; j++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            a[j][i] = x[j * N + i];
        }
    }
    finite = find_rows<N>(a, s) && finite;
    norms = is_near(s.up) ? find_norm<true, N>(a, s.up) : find_norm<false, N>(a, s.up);
    find_near_columns<N>(a, s);
    if (s.near) {
        scale_matrix<true, N>(a, s);
    } else {
        find_columns<N>(a, s);
        scale_matrix<false, N>(a, s);
    }
    eliminate<N>(a, s, number, pivot);
    norms *= s.near ? write_inverse<true, N>(a, s, number, pivot, finite, x)
                    : write_inverse<false, N>(a, s, number, pivot, finite, x);
    if (!(norms < (double)INFINITY)) { /* also of an inverse that is finite */
        for (int k = 0; k < N_PARTS * N * N; k++) {
            grown = grown || !r_isfinite(((const real *)x)[k]);
        }
    }
    return marks_of(index, finite, false, grown, norms);
}

/* Where number `at` of a warp's matrices is in shared memory. */
template <int N>
static __device__ __forceinline__ unsigned
spaced(unsigned at)
{
    return at + at / tile<N>::NUMBERS * (tile<N>::SPACED - tile<N>::NUMBERS);
}

/* Has a warp copy its matrices to shared memory, or back.  A lane has COPIES numbers in flight. */
template <int N, bool BACK>
static __device__ __forceinline__ void
copy_matrices(const scalar *from, scalar *to, unsigned numbers, unsigned lane)
{
#pragma unroll
    for (unsigned first = 0; first < tile<N>::NUMBERS; first += COPIES) {
        scalar x[COPIES];

#pragma unroll
        for (unsigned k = 0; k < COPIES && first + k < tile<N>::NUMBERS; k++) {
            const unsigned at = (first + k) * WARP + lane;

            x[k] = at < numbers ? from[BACK ? spaced<N>(at) : at] : REAL(0);
        }
#pragma unroll
        for (unsigned k = 0; k < COPIES && first + k < tile<N>::NUMBERS; k++) {
            const unsigned at = (first + k) * WARP + lane;

            if (at < numbers) {
                to[BACK ? at : spaced<N>(at)] = x[k];
            }
        }
    }
}

static __device__ __forceinline__ unsigned long long
least_of_warp(unsigned long long x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, x, lanes);

        x = other < x ? other : x;
    }
    return x;
}

template <int N>
static __global__ void
__launch_bounds__(tile<N>::THREADS, tile<N>::BLOCKS)
    tiny_kernel(const __grid_constant__ struct tiny_inverses q)
{
    enum { THREADS = tile<N>::THREADS, NUMBERS = tile<N>::NUMBERS, SPACED = tile<N>::SPACED };
    __shared__ scalar tiles[THREADS * SPACED];
    __shared__ struct inverse_marks block;
    const unsigned lane = threadIdx.x % WARP, before = threadIdx.x - lane;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    unsigned long long worst = ULLONG_MAX;
    scalar *const own = tiles + before * SPACED;

    if (threadIdx.x == 0) {
        block = no_marks();
    }
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * THREADS + before; first < q.count; first += step) {
        const unsigned present = (unsigned)(q.count - first < WARP ? q.count - first : WARP);

        copy_matrices<N, false>(q.w + first * NUMBERS, own, present * NUMBERS, lane);
        __syncwarp();
        if (lane < present) {
            const bool finite = q.kind == NULL || q.kind[first + lane] != NONFINITE;
            const struct inverse_marks found =
                invert_matrix<N>(own + lane * SPACED, first + lane, finite);

            worst = found.worst < worst ? found.worst : worst;
            if (found.worst == ULLONG_MAX) {
                atomicMin(&block.nonfinite, found.nonfinite);
                atomicMin(&block.grown, found.grown);
            }
        }
        __syncwarp();
        copy_matrices<N, true>(own, q.x + first * NUMBERS, present * NUMBERS, lane);
        __syncwarp();
    }
    worst = least_of_warp(worst);
    if (lane == 0) {
        atomicMin(&block.worst, worst);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        q.found[blockIdx.x] = block;
    }
}

/* Which matrices are finite, and their inverses are not.  A thread has one, of `numbers` reals. */
static __global__ void
__launch_bounds__(FOUND_THREADS)
    grown_kernel(const __grid_constant__ struct tiny_inverses q, int numbers, char *grown)
{
    const int64_t matrix = (int64_t)blockIdx.x * FOUND_THREADS + threadIdx.x;
    const real *w = (const real *)q.w, *x = (const real *)q.x;
    bool finite, made = true;

    if (matrix >= q.count) {
        return;
    }
    finite = q.kind == NULL || q.kind[matrix] != NONFINITE;
    for (int k = 0; k < numbers; k++) {
        finite = finite && (q.kind != NULL || r_isfinite(w[matrix * numbers + k]));
        made = made && r_isfinite(x[matrix * numbers + k]);
    }
    grown[matrix] = finite && !made;
}

/* ---- on the host ---- */

template <int N>
static tsvd_status
launch_tiny(struct cuda_call *call, const struct tiny_inverses &q, unsigned *blocks)
{
    tsvd_status ret = TSVD_OK;

    *blocks = std::min(blocks_for(q.count, tile<N>::THREADS), (unsigned)INVERSE_TINY_BLOCKS);
    tiny_kernel<N><<<*blocks, tile<N>::THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Which matrices invert_tiny() failed for, [count]. */
static tsvd_status
find_grown(struct cuda_call *call, const struct cuda_inverse *run, char *d_grown)
{
    const struct tiny_inverses q = {run->in.count, run->in.w, run->x, run->in.kind, NULL};
    tsvd_status ret = TSVD_OK;

    grown_kernel<<<blocks_for(q.count, FOUND_THREADS), FOUND_THREADS, 0, call->stream>>>(
        q, (int)(N_PARTS * run->in.c * run->in.c), d_grown);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The inverses of M, in run->in.w, to run->x; the two may be one array.  run->in.kind is NULL if M
   was not loaded.  Returns when they are made, with what is found. */
static tsvd_status
invert_tiny(struct cuda_call *call, const struct cuda_inverse *run, struct inverse_marks *found)
{
    static tsvd_status (*const launch[])(struct cuda_call *, const struct tiny_inverses &,
                                         unsigned *) = {
        launch_tiny<1>,
        launch_tiny<2>,
        launch_tiny<3>,
        launch_tiny<4>,
        launch_tiny<5>,
#if !TSVD_COMPLEX || TSVD_SINGLE
        launch_tiny<6>,
        launch_tiny<7>,
        launch_tiny<8>,
#endif
    };
    struct inverse_marks *const downloaded = (struct inverse_marks *)call->device->pinned_results;
    const struct tiny_inverses q = {run->in.count, run->in.w, run->x, run->in.kind, downloaded};
    unsigned blocks = 0;
    tsvd_status ret = TSVD_OK;

    static_assert(INVERSE_TINY_BLOCKS * sizeof(*downloaded) <= PINNED_RESULT_BYTES,
                  "all of them land");
    TSVD_TRY(launch[run->in.c - 1](call, q, &blocks));
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    *found = no_marks();
    for (unsigned i = 0; i < blocks; i++) {
        *found = least_marks(*found, downloaded[i]);
    }
out:
    return ret;
}

#endif
