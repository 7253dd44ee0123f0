/*
 * Inverses by elimination with complete pivoting: slow, and right where other ways fail.
 *
 * Each step takes the largest number that is left, of all rows and columns: S = P^T L D R Q^T with
 * D diagonal and unit triangles L and R, whose entries are at most 1.  Complex numbers are compared
 * by the larger of their parts, and those entries are at most sqrt(2).  Numbers hardly grow
 * (Wilkinson, "Error analysis of direct methods of matrix inversion", J. ACM 8 (1961)), and what is
 * zero in S stays so: a triangle is inverted as by substitution.  Column j of Y is Q x with
 * R x = D^-1 z, L z = P e_j.
 *
 * Rows and columns do not move.  All is computed in float64, also for float32.  Where pivots or
 * solutions leave the range of float64 it is done once more with numbers that have an exponent of
 * their own.
 */
#include "inverse/inverse_run.h"
#include "inverse/wide.h"

enum {
    COLUMN_THREADS = 256, /* of the block of a column */
    CHOICE_THREADS = 1024,
    ASK_STEPS = 64,    /* between two questions to the caller */
    LEAST_POWER = -128 /* a term is left out if it is smaller than the other by this power */
};

/* ---- numbers ---- */

#if TSVD_COMPLEX

/* The larger part's magnitude. */
static __device__ __forceinline__ double
size_of(scalar_double x)
{
    return fmax(fabs(x.re), fabs(x.im));
}

/* x 2^power. */
static __device__ __forceinline__ scalar_double
scaled(scalar_double x, int power)
{
    return {ldexp(x.re, power), ldexp(x.im, power)};
}

/* |x| 2^power, for x near 1. */
static __device__ __forceinline__ double
scaled_modulus(scalar_double x, int power)
{
    return ldexp(sqrt(fma(x.re, x.re, x.im * x.im)), power);
}

/* x = m 2^*e with 1/2 <= size_of(m) < 1, or zero. */
static __device__ __forceinline__ scalar_double
split(scalar_double x, int *e)
{
    (void)frexp(size_of(x), e);
    return scaled(x, -*e);
}

static __device__ __forceinline__ scalar
rounded(scalar_double x)
{
    return {(real)x.re, (real)x.im};
}

/* a b + c. */
static __device__ __forceinline__ scalar_double
multiply_add(scalar_double a, scalar_double b, scalar_double c)
{
    return {fma(-a.im, b.im, fma(a.re, b.re, c.re)), fma(a.im, b.re, fma(a.re, b.im, c.im))};
}

/* a conj(b) / |b|^2, as pivot_factor(): 1 if they are equal. */
static __device__ __forceinline__ scalar_double
quotient(scalar_double a, scalar_double b)
{
    int e;

    b = split(b, &e);
    a = scaled(a, -e);
    return scalar_double(a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im) /
           (b.re * b.re + b.im * b.im);
}

#else

static __device__ __forceinline__ double
size_of(double x)
{
    return fabs(x);
}

static __device__ __forceinline__ double
scaled(double x, int power)
{
    return ldexp(x, power);
}

static __device__ __forceinline__ double
scaled_modulus(double x, int power)
{
    return fabs(ldexp(x, power));
}

static __device__ __forceinline__ double
split(double x, int *e)
{
    return frexp(x, e);
}

static __device__ __forceinline__ scalar
rounded(double x)
{
    return (scalar)x;
}

static __device__ __forceinline__ double
multiply_add(double a, double b, double c)
{
    return fma(a, b, c);
}

static __device__ __forceinline__ double
quotient(double a, double b)
{
    return a / b;
}

#endif

/* m 2^e with 1/2 <= size_of(m) < 1, or zero. */
struct extended_number {
    scalar_double m;
    int e;
};

static __device__ __forceinline__ struct extended_number
normal(scalar_double x, int e)
{
    struct extended_number y;

    y.m = split(x, &y.e);
    y.e += e;
    return y;
}

template <typename T> static __device__ __forceinline__ T number_of(scalar_double x);

template <>
__device__ __forceinline__ scalar_double
number_of<scalar_double>(scalar_double x)
{
    return x;
}

template <>
__device__ __forceinline__ struct extended_number
number_of<struct extended_number>(scalar_double x) {
    return normal(x, 0);
}

static __device__ __forceinline__ bool
is_zero(scalar_double x)
{
    return x == 0;
}

static __device__ __forceinline__ bool
is_zero(const struct extended_number &x)
{
    return x.m == 0;
}

/* c - a b. */
static __device__ __forceinline__ scalar_double
subtract_product(scalar_double c, scalar_double a, scalar_double b)
{
    return multiply_add(-a, b, c);
}

static __device__ __forceinline__ struct extended_number
subtract_product(const struct extended_number &c, const struct extended_number &a,
                 const struct extended_number &b)
{
    const int e = a.e + b.e, low = c.e - e;

    if (is_zero(a) || is_zero(b) || (!is_zero(c) && -low < LEAST_POWER)) {
        return c;
    }
    if (is_zero(c) || low < LEAST_POWER) {
        return normal(product(-a.m, b.m), e);
    }
    return normal(multiply_add(-a.m, b.m, scaled(c.m, low)), e);
}

static __device__ __forceinline__ struct extended_number
quotient(const struct extended_number &a, const struct extended_number &b)
{
    return normal(quotient(a.m, b.m), is_zero(a) ? 0 : a.e - b.e);
}

/* A magnitude, and where it is. */
struct largest_number {
    double m; /* below 0: none */
    int e;    /* INT_MIN: zero, or none */
    int at;
};

static __device__ __forceinline__ struct largest_number
magnitude(scalar_double x, int at)
{
    return {size_of(x), x == 0 ? INT_MIN : 0, at};
}

static __device__ __forceinline__ struct largest_number
magnitude(const struct extended_number &x, int at)
{
    return {size_of(x.m), x.m == 0 ? INT_MIN : x.e, at};
}

static __device__ __forceinline__ struct largest_number
no_number(void)
{
    return {-1, INT_MIN, INT32_MAX};
}

/* On a tie the one with the lower place. */
static __device__ __forceinline__ struct largest_number
larger(const struct largest_number &a, const struct largest_number &b)
{
    const bool second = b.e != a.e ? b.e > a.e : b.m != a.m ? b.m > a.m : b.at < a.at;

    return second ? b : a;
}

/* The largest of a block, in each thread. */
static __device__ __forceinline__ struct largest_number
largest_of_block(struct largest_number own)
{
    __shared__ struct largest_number part[WARP];
    const int t = (int)threadIdx.x, warps = (int)blockDim.x / WARP;

    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        struct largest_number other;

        other.m = __shfl_xor_sync(0xffffffffu, own.m, lanes);
        other.e = __shfl_xor_sync(0xffffffffu, own.e, lanes);
        other.at = __shfl_xor_sync(0xffffffffu, own.at, lanes);
        own = larger(own, other);
    }
    if (t % WARP == 0) {
        part[t / WARP] = own;
    }
    __syncthreads();
    for (int k = 0; k < warps; k++) {
        own = larger(own, part[k]);
    }
    return own;
}

/* All arrays are device memory. */
template <typename T> struct complete_lu {
    int64_t n;
    T *a;                        /* [n][n] by columns: S, then L and D R, or L and R */
    T *y;                        /* [n][n] by columns: solutions, entry k at row row_of[k] */
    T *pivot;                    /* [n] D, by steps */
    struct largest_number *most; /* [n] largest open entry of a column, and its row */
    int *row_step, *column_step; /* [n] the step that took it; below 0: none yet */
    int *row_of, *column_of;     /* [n] the row and the column that a step took */
    char *singular;              /* [1] */
};

template <typename T>
static size_t
lay_out(int64_t n, char *base, struct complete_lu<T> *to)
{
    size_t at = 0;

    to->n = n;
    to->a = carve<T>(base, &at, n * n);
    to->y = carve<T>(base, &at, n * n);
    to->pivot = carve<T>(base, &at, n);
    to->most = carve<struct largest_number>(base, &at, n);
    to->row_step = carve<int>(base, &at, 2 * n);
    to->column_step = to->row_step + n;
    to->row_of = carve<int>(base, &at, n);
    to->column_of = carve<int>(base, &at, n);
    return at;
}

/* ---- elimination ---- */

/* k < 0: S as `a`; else step k of elimination in a column that is open.  Then the largest open
   entry of the column. */
template <typename T>
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    column_kernel(const __grid_constant__ struct complete_lu<T> q, const scalar *s, int k)
{
    const int64_t column = blockIdx.x * q.n;
    struct largest_number best = no_number();
    const T *factor = NULL;
    T top = number_of<T>(0);

    if (q.column_step[blockIdx.x] >= 0) {
        return;
    }
    if (k >= 0) {
        factor = q.a + q.column_of[k] * q.n;
        top = q.a[column + q.row_of[k]];
    }
    for (int i = (int)threadIdx.x; i < q.n; i += COLUMN_THREADS) {
        if (q.row_step[i] < 0) {
            const T x = k < 0 ? number_of<T>(widened(s[column + i]))
                              : subtract_product(q.a[column + i], factor[i], top);

            q.a[column + i] = x;
            best = larger(best, magnitude(x, i));
        }
    }
    best = largest_of_block(best);
    if (threadIdx.x == 0) {
        q.most[blockIdx.x] = best;
    }
}

/* The pivot of step k, and the column of L. */
template <typename T>
static __global__ void
__launch_bounds__(CHOICE_THREADS)
    choose_kernel(const __grid_constant__ struct complete_lu<T> q, int k)
{
    const int t = (int)threadIdx.x;
    struct largest_number best = no_number();
    T pivot, *column;
    bool singular;
    int row;

    for (int j = t; j < q.n; j += CHOICE_THREADS) {
        if (q.column_step[j] < 0) {
            struct largest_number own = q.most[j];

            own.at = j;
            best = larger(best, own);
        }
    }
    best = largest_of_block(best);
    row = q.most[best.at].at;
    column = q.a + best.at * q.n;
    pivot = column[row];
    singular = is_zero(pivot);
    if (singular) {
        pivot = number_of<T>(1);
    }
    for (int i = t; i < q.n; i += CHOICE_THREADS) {
        if (q.row_step[i] < 0 && i != row) {
            column[i] = quotient(column[i], pivot);
        }
    }
    __syncthreads();
    if (t == 0) {
        if (singular) {
            *q.singular = 1;
        }
        q.pivot[k] = pivot;
        q.row_of[k] = row;
        q.column_of[k] = best.at;
        q.row_step[row] = k;
        q.column_step[best.at] = k;
    }
}

/* R from D R. */
template <typename T>
static __global__ void
__launch_bounds__(COLUMN_THREADS) divide_kernel(const __grid_constant__ struct complete_lu<T> q)
{
    const int step = q.column_step[blockIdx.x];
    T *const column = q.a + blockIdx.x * q.n;

    for (int i = (int)threadIdx.x; i < q.n; i += COLUMN_THREADS) {
        if (q.row_step[i] < step) {
            column[i] = quotient(column[i], q.pivot[q.row_step[i]]);
        }
    }
}

/* ---- solutions ---- */

/* Eliminates the entry of step k from those of later steps (way = 1) or earlier ones (-1). */
template <typename T>
static __device__ __forceinline__ void
substitute(const struct complete_lu<T> &q, int k, int way, T *value, T *z)
{
    const int row = q.row_of[k];
    const T *factor = q.a + q.column_of[k] * q.n;
    T x;

    if (row % COLUMN_THREADS == (int)threadIdx.x) {
        value[k % 2] = z[row];
    }
    __syncthreads(); /* two values by turns: all have read the one before the last */
    x = value[k % 2];
    for (int i = (int)threadIdx.x; i < q.n && !is_zero(x); i += COLUMN_THREADS) {
        if (way * (q.row_step[i] - k) > 0) {
            z[i] = subtract_product(z[i], factor[i], x);
        }
    }
}

/* Columns of Y from `first` on, a block each.  A thread has every COLUMN_THREADS-th row. */
template <typename T>
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    solve_kernel(const __grid_constant__ struct complete_lu<T> q, int64_t first)
{
    __shared__ alignas(T) double shared[2 * sizeof(T) / sizeof(double)];
    T *const value = (T *)shared;
    const int64_t j = first + blockIdx.x;
    const int n = (int)q.n, begin = q.row_step[j];
    T *const z = q.y + j * q.n;

    for (int i = (int)threadIdx.x; i < n; i += COLUMN_THREADS) {
        z[i] = number_of<T>(i == j ? 1 : 0);
    }
    for (int k = begin; k < n; k++) {
        substitute(q, k, 1, value, z);
    }
    for (int i = (int)threadIdx.x; i < n; i += COLUMN_THREADS) {
        z[i] = quotient(z[i], q.pivot[q.row_step[i]]);
    }
    __syncthreads(); /* the last value has been read */
    for (int k = n - 1; k >= 0; k--) {
        substitute(q, k, -1, value, z);
    }
}

/* ---- results ---- */

/* Y in order. */
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    order_kernel(const __grid_constant__ struct complete_lu<scalar_double> q, scalar *to)
{
    const int64_t column = blockIdx.x * q.n;

    for (int s = (int)threadIdx.x; s < q.n; s += COLUMN_THREADS) {
        to[column + s] = rounded(q.y[column + q.row_of[q.column_step[s]]]);
    }
}

/* M's inverse, infinite where it is beyond the range of numbers; and the largest sum of magnitudes
   of a row of 2^exponent times it. */
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    result_kernel(const __grid_constant__ struct complete_lu<struct extended_number> q,
                  const __grid_constant__ struct cuda_inverse run)
{
    const int64_t s = (int64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x;
    double sum = 0;
    int row, column;

    if (s >= q.n) {
        return;
    }
    row = q.row_of[q.column_step[s]];
    column = run.column[s];
    for (int64_t j = 0; j < q.n; j++) {
        const struct extended_number y = q.y[j * q.n + row];
        const int power = y.e - column - run.row[j];

        sum += scaled_modulus(y.m, power + (int)*run.in.exponent);
        run.x[j * q.n + s] = rounded(scaled(y.m, power));
    }
    atomicMax((unsigned long long *)run.x_norms, (unsigned long long)__double_as_longlong(sum));
}

/* ---- on the host ---- */

/* L, R and all solutions; lay_out() tells the size of d_work. */
template <typename T>
static tsvd_status
solve(struct tsvd_context *ctx, const struct cuda_inverse *run, char *d_work,
      struct complete_lu<T> *lu)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = run->in.c;
    const unsigned blocks = (unsigned)n;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, d_work, lu);
    lu->singular = run->singular;
    CUDA_TRY(call, cudaMemsetAsync(run->singular, 0, 1, call->stream));
    CUDA_TRY(call,
             cudaMemsetAsync(lu->row_step, 0xff, (size_t)(2 * n) * sizeof(int), call->stream));
    column_kernel<T><<<blocks, COLUMN_THREADS, 0, call->stream>>>(*lu, run->in.w, -1);
    CUDA_LAUNCHED(call);
    for (int k = 0; k < (int)n; k++) {
        choose_kernel<T><<<1, CHOICE_THREADS, 0, call->stream>>>(*lu, k);
        CUDA_LAUNCHED(call);
        column_kernel<T><<<blocks, COLUMN_THREADS, 0, call->stream>>>(*lu, NULL, k);
        CUDA_LAUNCHED(call);
        if (k % ASK_STEPS == 0) {
            TSVD_TRY(tsvdi_check(ctx, 0));
        }
    }
    divide_kernel<T><<<blocks, COLUMN_THREADS, 0, call->stream>>>(*lu);
    CUDA_LAUNCHED(call);
    for (int64_t first = 0; first < n; first += INVERSE_SOLVE_COLUMNS) {
        const int64_t some =
            n - first < INVERSE_SOLVE_COLUMNS ? n - first : (int64_t)INVERSE_SOLVE_COLUMNS;

        solve_kernel<T><<<(unsigned)some, COLUMN_THREADS, 0, call->stream>>>(*lu, first);
        CUDA_LAUNCHED(call);
        if (first > 0) { /* large matrices take long */
            CUDA_TRY(call, cudaStreamSynchronize(call->stream));
            TSVD_TRY(tsvdi_check(ctx, 0));
        }
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_complete(struct tsvd_context *ctx, const struct cuda_inverse *run)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = run->in.c;
    struct complete_lu<scalar_double> lu;
    char *d_work = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(n, NULL, &lu), (void **)&d_work));
    TSVD_TRY(solve(ctx, run, d_work, &lu));
    order_kernel<<<(unsigned)n, COLUMN_THREADS, 0, call->stream>>>(lu, run->x);
    CUDA_LAUNCHED(call);
out:
    tsvdi_cuda_free(call, d_work);
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_complete_extended(struct tsvd_context *ctx, const struct cuda_inverse *run)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = run->in.c;
    struct complete_lu<struct extended_number> lu;
    char *d_work = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(n, NULL, &lu), (void **)&d_work));
    TSVD_TRY(solve(ctx, run, d_work, &lu));
    result_kernel<<<blocks_for(n, COLUMN_THREADS), COLUMN_THREADS, 0, call->stream>>>(lu, *run);
    CUDA_LAUNCHED(call);
out:
    tsvdi_cuda_free(call, d_work);
    return ret;
}
