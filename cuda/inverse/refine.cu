/*
 * The step of Newton's iteration on the device, Y := Y + Y (I - S Y).  Mirrors csrc/cpu/inverse,
 * where refine.c says how I - S Y is made.
 *
 * Most kernels take complex numbers as N_PARTS reals each: what they do is done to each part.
 */
#include <algorithm>

#include "inverse/inverse_run.h"
#include "math/newton.h"

enum {
    STEP_THREADS = 256,
    DOUBLE_DIGITS = 52,
    DOUBLE_KIND = TSVD_COMPLEX ? TSVDI_COMPLEX128 : TSVDI_FLOAT64 /* of scalar_double */
};

/* Where a block's share begins; a matrix has `shares` of them. */
static __device__ __forceinline__ int64_t
share_begin(int64_t shares)
{
    return (int64_t)(blockIdx.x % shares) * INVERSE_STEP_SHARE;
}

/* The identity. */
static __global__ void
__launch_bounds__(STEP_THREADS) identity_kernel(int64_t n, int64_t shares, scalar_double *to)
{
    const int64_t begin = share_begin(shares), numbers = n * n;

    to += blockIdx.x / shares * numbers;
    for (int64_t k = threadIdx.x; k < INVERSE_STEP_SHARE && begin + k < numbers;
         k += STEP_THREADS) {
        to[begin + k] = (begin + k) % (n + 1) == 0 ? 1 : 0;
    }
}

#if TSVD_SINGLE

/* The same numbers in float64, or back. */
template <typename From, typename To>
static __global__ void
__launch_bounds__(STEP_THREADS) convert_kernel(int64_t reals, const From *from, To *to)
{
    const int64_t begin = (int64_t)blockIdx.x * INVERSE_STEP_SHARE;

    for (int64_t k = threadIdx.x; k < INVERSE_STEP_SHARE && begin + k < reals; k += STEP_THREADS) {
        to[begin + k] = (To)from[begin + k];
    }
}

#else

/* x rounded to a multiple of 2^grid. */
static __device__ __forceinline__ double
lead(double x, int grid)
{
    const double shift = ldexp(1.5, DOUBLE_DIGITS + grid);

    return x + shift - shift;
}

/* S to S1 in `high` and S2 in s. */
static __global__ void
__launch_bounds__(STEP_THREADS) split_kernel(int64_t reals, int bits, double *s, double *high)
{
    const int64_t begin = (int64_t)blockIdx.x * INVERSE_STEP_SHARE;

    for (int64_t k = threadIdx.x; k < INVERSE_STEP_SHARE && begin + k < reals; k += STEP_THREADS) {
        const double x = s[begin + k], upper = lead(x, 1 - bits);

        high[begin + k] = upper;
        s[begin + k] = x - upper;
    }
}

/* Y1, column by column, a block each; a column has `reals` reals. */
static __global__ void
__launch_bounds__(STEP_THREADS) lead_kernel(int64_t reals, int bits, const double *y, double *high)
{
    __shared__ double part[STEP_THREADS / WARP];
    const int t = (int)threadIdx.x;
    const double *from = y + (int64_t)blockIdx.x * reals;
    double largest = 0;
    int exponent;

    for (int64_t i = t; i < reals; i += STEP_THREADS) {
        largest = fmax(largest, fabs(from[i]));
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    }
    if (t % WARP == 0) {
        part[t / WARP] = largest;
    }
    __syncthreads();
    for (int i = 0; i < STEP_THREADS / WARP; i++) {
        largest = fmax(largest, part[i]);
    }
    (void)frexp(largest, &exponent);
    for (int64_t i = t; i < reals; i += STEP_THREADS) {
        high[(int64_t)blockIdx.x * reals + i] = lead(from[i], exponent - bits);
    }
}

/* part = Y - part. */
static __global__ void
__launch_bounds__(STEP_THREADS) rest_kernel(int64_t reals, const double *y, double *part)
{
    const int64_t begin = (int64_t)blockIdx.x * INVERSE_STEP_SHARE;

    for (int64_t k = threadIdx.x; k < INVERSE_STEP_SHARE && begin + k < reals; k += STEP_THREADS) {
        part[begin + k] = y[begin + k] - part[begin + k];
    }
}

#endif

static __device__ __forceinline__ void
add_sums(struct newton_sums *to, const struct newton_sums &more)
{
    to->rest += more.rest;
    to->own_rest += more.own_rest;
    to->inverse += more.inverse;
}

/* The sums of the shares of each matrix. */
static __global__ void
__launch_bounds__(STEP_THREADS)
    square_kernel(const __grid_constant__ struct cuda_inverse run, int64_t shares,
                  const scalar *rest, struct newton_sums *to)
{
    __shared__ struct newton_sums part[STEP_THREADS];
    const int64_t n = run.in.c, begin = share_begin(shares), numbers = n * n;
    const int64_t matrix = blockIdx.x / shares, first = matrix * numbers;
    const int *const row = run.row + matrix * n, *const column = run.column + matrix * n;
    struct newton_sums sums = {0, 0, 0};

    for (int64_t k = threadIdx.x; k < INVERSE_STEP_SHARE && begin + k < numbers;
         k += STEP_THREADS) {
        const int64_t at = begin + k, i = at % n, j = at / n;
        const real *const r = (const real *)(rest + first + at);
        const real *const y = (const real *)(run.x + first + at);

        for (int p = 0; p < N_PARTS; p++) {
            newton_add(&sums, (double)r[p], (double)y[p], row[i], row[j], column[i],
                       (int)run.in.exponent[matrix]);
        }
    }
    part[threadIdx.x] = sums;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < STEP_THREADS; k++) {
            add_sums(&sums, part[k]);
        }
        to[blockIdx.x] = sums;
    }
}

/* Puts Y back, as it was before the step, where that does not pay. */
static __global__ void
__launch_bounds__(STEP_THREADS)
    judge_kernel(int64_t n, int64_t shares, const struct newton_sums *sums, const double *norms,
                 const scalar *before, scalar *y)
{
    const int64_t begin = share_begin(shares), numbers = n * n, matrix = blockIdx.x / shares;
    struct newton_sums all = {0, 0, 0};

    for (int64_t k = 0; k < shares; k++) {
        add_sums(&all, sums[matrix * shares + k]);
    }
    if (newton_pays(all, norms[matrix], n)) {
        return;
    }
    for (int64_t k = threadIdx.x; k < INVERSE_STEP_SHARE && begin + k < numbers;
         k += STEP_THREADS) {
        y[matrix * numbers + begin + k] = before[matrix * numbers + begin + k];
    }
}

/* ---- on the host ---- */

/* Workspace, without S. */
struct step_arrays {
    scalar_double *rest, *other, *high; /* [count][n][n] */
    struct newton_sums *sums;           /* [count] of each share */
};

static size_t
lay_out(int64_t n, int64_t count, char *base, struct step_arrays *to)
{
    const int64_t numbers = count * n * n;
    size_t at = 0;

    to->rest = carve<scalar_double>(base, &at, numbers);
    to->other = carve<scalar_double>(base, &at, numbers);
    to->high = carve<scalar_double>(base, &at, numbers);
    to->sums = carve<struct newton_sums>(base, &at, count * blocks_for(n * n, INVERSE_STEP_SHARE));
    return at;
}

uint64_t
tsvdi_cuda_inverse_refine_bytes(int64_t n, int64_t count)
{
    struct step_arrays arrays;

    return lay_out(n, count, NULL, &arrays);
}

/* C := C + factor A B of each matrix.  tsvdi_cuda_multiply_add() takes matrices as row-major, so it
   sees the transposes, and gets the factors in the other order. */
static tsvd_status
add_product(struct cuda_call *call, int kind, int64_t n, int64_t count, double factor,
            const void *a, const void *b, void *c)
{
    const struct cuda_factor first = {b, n, n * n, TSVDI_AS_STORED};
    const struct cuda_factor second = {a, n, n * n, TSVDI_AS_STORED};

    return tsvdi_cuda_multiply_add(call, kind, n, n, n, factor, first, second, 1, c, n, n * n,
                                   count);
}

/* rest -= S Y. */
static tsvd_status
subtract_product(struct cuda_call *call, const struct cuda_inverse *run, scalar *d_s,
                 const struct step_arrays &to)
{
    const int64_t n = run->in.c, count = run->in.count, reals = N_PARTS * count * n * n;
    const unsigned blocks = blocks_for(reals, INVERSE_STEP_SHARE);
    real *const s = (real *)d_s, *const y = (real *)run->x;
    double *const high = (double *)to.high, *const other = (double *)to.other;
    tsvd_status ret = TSVD_OK;

#if TSVD_SINGLE
    convert_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(reals, s, high);
    CUDA_LAUNCHED(call);
    convert_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(reals, y, other);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_product(call, DOUBLE_KIND, n, count, -1, to.high, to.other, to.rest));
#else
    int order;

    (void)frexp((double)(N_PARTS * n), &order); /* the terms of the sums */
    const int bits = (DOUBLE_DIGITS - 1 - order) / 2;

    split_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(reals, bits, s, high);
    CUDA_LAUNCHED(call);
    lead_kernel<<<(unsigned)(n * count), STEP_THREADS, 0, call->stream>>>(N_PARTS * n, bits, y,
                                                                          other);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_product(call, DOUBLE_KIND, n, count, -1, to.high, to.other, to.rest));
    rest_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(reals, y, other);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_product(call, DOUBLE_KIND, n, count, -1, to.high, to.other, to.rest));
    TSVD_TRY(add_product(call, DOUBLE_KIND, n, count, -1, d_s, run->x, to.rest));
#endif
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_refine(struct cuda_call *call, const struct cuda_inverse *run, scalar *d_s,
                          char *d_work)
{
    const int64_t n = run->in.c, count = run->in.count, numbers = count * n * n;
    const int64_t shares = blocks_for(n * n, INVERSE_STEP_SHARE);
    const unsigned blocks = (unsigned)(shares * count);
    struct step_arrays to;
    scalar *d_rest;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, count, d_work, &to);
    d_rest = (scalar *)to.rest;
    identity_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(n, shares, to.rest);
    CUDA_LAUNCHED(call);
    TSVD_TRY(subtract_product(call, run, d_s, to));
#if TSVD_SINGLE
    d_rest = (scalar *)to.high;
    convert_kernel<<<blocks_for(N_PARTS * numbers, INVERSE_STEP_SHARE), STEP_THREADS, 0,
                     call->stream>>>(N_PARTS * numbers, (const double *)to.rest, (real *)d_rest);
    CUDA_LAUNCHED(call);
#endif
    square_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(*run, shares, d_rest, to.sums);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call, cudaMemcpyAsync(to.other, run->x, (size_t)numbers * sizeof(scalar),
                                   cudaMemcpyDeviceToDevice, call->stream));
    TSVD_TRY(add_product(call, SCALAR_KIND, n, count, 1, to.other, d_rest, run->x));
    judge_kernel<<<blocks, STEP_THREADS, 0, call->stream>>>(n, shares, to.sums, run->norms,
                                                            (const scalar *)to.other, run->x);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
