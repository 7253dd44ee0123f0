/*
 * Inverses by elimination with complete pivoting: slow, and right where other ways fail.
 *
 * Each step takes the largest number that is left, of all rows and columns: S = P^T L D R Q^T with
 * D diagonal and unit triangles L and R, whose entries are at most 1.  Numbers hardly grow
 * (Wilkinson, "Error analysis of direct methods of matrix inversion", J. ACM 8 (1961)), and what is
 * zero in S stays so: a triangle is inverted as by substitution.
 *
 * Column j of Y is Q x with R x = D^-1 z, L z = P e_j.  As L and R have no entries above 1, a step
 * of substitution doubles the largest number at most.  So it suffices to look at them every
 * SOLVE_STEPS steps, and to scale them by a power of two, one for each column: Y may be beyond the
 * range of numbers, as long as M's inverse is not (as in LAPACK's xLATRS, Anderson, LAPACK Working
 * Note 36 (1991)).
 *
 * Rows and columns do not move.  All is computed in float64, also for float32.
 */
#include "inverse/run.h"

enum {
    COLUMN_THREADS = 256, /* of the block of a column */
    CHOICE_THREADS = 1024,
    SOLVE_STEPS = 64,
    SOLVE_COLUMNS = 1024, /* whose blocks are launched at once */
    ASK_STEPS = 64,       /* between two questions to the caller */
    HIGH_POWER = 900,     /* numbers above 2 to this power are scaled down ... */
    DOWN_POWER = 200,     /* ... by this one */
    LEVEL_POWER = 800     /* the largest of D^-1 z is scaled if it is beyond this power, or below
                             its reciprocal */
};

/* All arrays are device memory. */
struct complete_lu {
    int64_t n;
    double *a;                   /* [n][n] by columns: S, then L and D R, or L and R */
    double *y;                   /* [n][n] by columns: solutions, entry k at row row_of[k] */
    double *pivot;               /* [n] D, by steps */
    double *most;                /* [n] largest open entry of a column */
    int *most_row;               /* [n] and its row */
    int *row_step, *column_step; /* [n] the step that took it; below 0: none yet */
    int *row_of, *column_of;     /* [n] the row and the column that a step took */
    int *exponent;               /* [n] a column of Y is 2^exponent times what y has */
    char *singular;              /* [1] */
};

static size_t
lay_out(int64_t n, char *base, struct complete_lu *to)
{
    size_t at = 0;

    to->n = n;
    to->a = cut<double>(base, &at, n * n);
    to->y = cut<double>(base, &at, n * n);
    to->pivot = cut<double>(base, &at, n);
    to->most = cut<double>(base, &at, n);
    to->most_row = cut<int>(base, &at, n);
    to->row_step = cut<int>(base, &at, 2 * n);
    to->column_step = to->row_step + n;
    to->row_of = cut<int>(base, &at, n);
    to->column_of = cut<int>(base, &at, n);
    to->exponent = cut<int>(base, &at, n);
    return at;
}

uint64_t
tsvdi_cuda_inverse_complete_bytes(int64_t n)
{
    struct complete_lu lu;

    return lay_out(n, NULL, &lu);
}

/* ---- what a block finds ---- */

struct largest_entry {
    double size; /* below 0: none */
    int at;
};

/* Of equals that with the lower number. */
static __device__ __forceinline__ struct largest_entry
larger(struct largest_entry a, struct largest_entry b)
{
    return b.size > a.size || (b.size == a.size && b.at < a.at) ? b : a;
}

/* The largest of a block, in each thread. */
static __device__ __forceinline__ struct largest_entry
largest_of_block(struct largest_entry own)
{
    __shared__ struct largest_entry part[WARP];
    const int t = (int)threadIdx.x, warps = (int)blockDim.x / WARP;

    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        struct largest_entry other;

        other.size = __shfl_xor_sync(0xffffffffu, own.size, lanes);
        other.at = __shfl_xor_sync(0xffffffffu, own.at, lanes);
        own = larger(own, other);
    }
    __syncthreads(); /* the parts before these have been read */
    if (t % WARP == 0) {
        part[t / WARP] = own;
    }
    __syncthreads();
    for (int k = 0; k < warps; k++) {
        own = larger(own, part[k]);
    }
    return own;
}

/* ---- elimination ---- */

/* S as `a`, or step k of elimination in a column that is open, and its largest open entry. */
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    column_kernel(const __grid_constant__ struct complete_lu q, const real *s, int k)
{
    const int64_t column = blockIdx.x * q.n;
    struct largest_entry best = {-1, INT32_MAX};
    const double *factor = NULL;
    double top = 0;

    if (q.column_step[blockIdx.x] >= 0) {
        return;
    }
    if (k >= 0) {
        factor = q.a + q.column_of[k] * q.n;
        top = q.a[column + q.row_of[k]];
    }
    for (int i = (int)threadIdx.x; i < q.n; i += COLUMN_THREADS) {
        if (q.row_step[i] < 0) {
            const double x = k < 0 ? (double)s[column + i] : fma(-factor[i], top, q.a[column + i]);
            const struct largest_entry own = {fabs(x), i};

            q.a[column + i] = x;
            best = larger(best, own);
        }
    }
    best = largest_of_block(best);
    if (threadIdx.x == 0) {
        q.most[blockIdx.x] = best.size;
        q.most_row[blockIdx.x] = best.at;
    }
}

/* The pivot of step k, and the column of L. */
static __global__ void
__launch_bounds__(CHOICE_THREADS) choose_kernel(const __grid_constant__ struct complete_lu q, int k)
{
    const int t = (int)threadIdx.x;
    struct largest_entry best = {-1, INT32_MAX};
    double pivot, *column;
    int row;

    for (int j = t; j < q.n; j += CHOICE_THREADS) {
        if (q.column_step[j] < 0) {
            const struct largest_entry own = {q.most[j], j};

            best = larger(best, own);
        }
    }
    best = largest_of_block(best);
    row = q.most_row[best.at];
    column = q.a + best.at * q.n;
    pivot = column[row] == 0 ? 1 : column[row];
    for (int i = t; i < q.n; i += CHOICE_THREADS) {
        if (q.row_step[i] < 0 && i != row) {
            column[i] /= pivot;
        }
    }
    __syncthreads();
    if (t == 0) {
        if (column[row] == 0) {
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
static __global__ void
__launch_bounds__(COLUMN_THREADS) divide_kernel(const __grid_constant__ struct complete_lu q)
{
    const int step = q.column_step[blockIdx.x];

    for (int i = (int)threadIdx.x; i < q.n; i += COLUMN_THREADS) {
        if (q.row_step[i] < step) {
            q.a[blockIdx.x * q.n + i] /= q.pivot[q.row_step[i]];
        }
    }
}

/* ---- solutions ---- */

/* Scales z down if it is large; returns by which power. */
static __device__ __forceinline__ int
scale_down(int64_t n, double *z)
{
    struct largest_entry most = {0, 0};

    for (int i = (int)threadIdx.x; i < n; i += COLUMN_THREADS) {
        const struct largest_entry own = {fabs(z[i]), 0};

        most = larger(most, own);
    }
    most = largest_of_block(most);
    if (most.size <= ldexp(1., HIGH_POWER)) {
        return 0;
    }
    for (int i = (int)threadIdx.x; i < n; i += COLUMN_THREADS) {
        z[i] = ldexp(z[i], -DOWN_POWER);
    }
    return DOWN_POWER;
}

/* Has the entry of step k taken away from those of later steps (way = 1) or earlier ones (-1). */
static __device__ __forceinline__ void
substitute(const struct complete_lu &q, int k, int way, double *value, double *z)
{
    const int row = q.row_of[k];
    const double *factor = q.a + q.column_of[k] * q.n;
    double x;

    if (row % COLUMN_THREADS == (int)threadIdx.x) {
        value[k % 2] = z[row];
    }
    __syncthreads(); /* two values in turn: nobody still reads that before the last one */
    x = value[k % 2];
    for (int i = (int)threadIdx.x; i < q.n && x != 0; i += COLUMN_THREADS) {
        if (way * (q.row_step[i] - k) > 0) {
            z[i] = fma(-factor[i], x, z[i]);
        }
    }
}

/* D^-1 z in place of z, times 2^shift so that it is in range; returns the shift. */
static __device__ __forceinline__ int
divide(const struct complete_lu &q, double *z)
{
    struct largest_entry most = {-1, 0};
    int shift = 0, above;

    for (int i = (int)threadIdx.x; i < q.n; i += COLUMN_THREADS) {
        if (z[i] != 0) {
            /* larger() takes the lower of equals, and so this is the largest exponent */
            const struct largest_entry own = {1, ilogb(q.pivot[q.row_step[i]]) - ilogb(z[i])};

            most = larger(most, own);
        }
    }
    above = -largest_of_block(most).at;
    if (above > LEVEL_POWER || above < -LEVEL_POWER) {
        shift = -above;
    }
    for (int i = (int)threadIdx.x; i < q.n; i += COLUMN_THREADS) {
        int up, down;
        const double x = frexp(z[i], &up), y = frexp(q.pivot[q.row_step[i]], &down);

        z[i] = ldexp(x / y, up - down + shift);
    }
    return shift;
}

/* Columns of Y from `first` on, a block each.  A thread has every COLUMN_THREADS-th row. */
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    solve_kernel(const __grid_constant__ struct complete_lu q, int64_t first)
{
    __shared__ double value[2];
    const int64_t j = first + blockIdx.x;
    const int n = (int)q.n, begin = q.row_step[j];
    double *const z = q.y + j * q.n;
    int exponent = 0;

    for (int i = (int)threadIdx.x; i < n; i += COLUMN_THREADS) {
        z[i] = i == j ? 1 : 0;
    }
    for (int k = begin; k < n; k++) {
        substitute(q, k, 1, value, z);
        if (k % SOLVE_STEPS == 0) {
            exponent += scale_down(n, z);
        }
    }
    exponent -= divide(q, z);
    for (int k = n - 1; k >= 0; k--) {
        substitute(q, k, -1, value, z);
        if (k % SOLVE_STEPS == 0) {
            exponent += scale_down(n, z);
        }
    }
    if (threadIdx.x == 0) {
        q.exponent[j] = exponent;
    }
}

/* ---- results ---- */

/* x 2^power rounded once, but for what is below the range of normal numbers. */
static __device__ __forceinline__ real
scaled(double x, int power)
{
    return (real)ldexp(x, power);
}

/* Y in order, as numbers of its type: infinite if beyond their range. */
static __global__ void
__launch_bounds__(COLUMN_THREADS)
    order_kernel(const __grid_constant__ struct complete_lu q, real *to)
{
    const int64_t column = blockIdx.x * q.n;

    for (int s = (int)threadIdx.x; s < q.n; s += COLUMN_THREADS) {
        to[column + s] = scaled(q.y[column + q.row_of[q.column_step[s]]], q.exponent[blockIdx.x]);
    }
}

/* M's inverse, and the largest sum of magnitudes of a row of 2^exponent times it. */
static __global__ void
__launch_bounds__(COLUMN_THREADS) result_kernel(const __grid_constant__ struct complete_lu q,
                                                const __grid_constant__ struct cuda_inverse run)
{
    const int64_t s = (int64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x;
    const bool finite = *run.in.kind != NONFINITE;
    double sum = 0;
    int row, column;

    if (s >= q.n) {
        return;
    }
    row = q.row_of[q.column_step[s]];
    column = run.column[s];
    for (int64_t j = 0; j < q.n; j++) {
        const double y = q.y[j * q.n + row];
        const int power = q.exponent[j] - column - run.row[j];

        sum += fabs(ldexp(y, power + (int)*run.in.exponent));
        run.x[j * q.n + s] = finite ? scaled(y, power) : r_from_bits(R_INFINITY_BITS | 1);
    }
    atomicMax((unsigned long long *)run.x_norms, (unsigned long long)__double_as_longlong(sum));
}

/* ---- on the host ---- */

tsvd_status
tsvdi_cuda_inverse_complete(struct tsvd_context *ctx, const struct cuda_inverse *run, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = run->in.c;
    const unsigned blocks = (unsigned)n;
    struct complete_lu lu;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, d_work, &lu);
    lu.singular = run->singular;
    CUDA_TRY(call, cudaMemsetAsync(run->grown, 0, 2, call->stream));
    CUDA_TRY(call, cudaMemsetAsync(lu.row_step, 0xff, (size_t)(2 * n) * sizeof(int), call->stream));
    column_kernel<<<blocks, COLUMN_THREADS, 0, call->stream>>>(lu, run->in.w, -1);
    CUDA_LAUNCHED(call);
    for (int k = 0; k < (int)n; k++) {
        choose_kernel<<<1, CHOICE_THREADS, 0, call->stream>>>(lu, k);
        CUDA_LAUNCHED(call);
        column_kernel<<<blocks, COLUMN_THREADS, 0, call->stream>>>(lu, NULL, k);
        CUDA_LAUNCHED(call);
        if (k % ASK_STEPS == 0) {
            TSVD_TRY(tsvdi_check(ctx, 0));
        }
    }
    divide_kernel<<<blocks, COLUMN_THREADS, 0, call->stream>>>(lu);
    CUDA_LAUNCHED(call);
    for (int64_t first = 0; first < n; first += SOLVE_COLUMNS) {
        const int64_t some = n - first < SOLVE_COLUMNS ? n - first : (int64_t)SOLVE_COLUMNS;

        solve_kernel<<<(unsigned)some, COLUMN_THREADS, 0, call->stream>>>(lu, first);
        CUDA_LAUNCHED(call);
        if (first > 0) { /* what follows takes long */
            CUDA_TRY(call, cudaStreamSynchronize(call->stream));
            TSVD_TRY(tsvdi_check(ctx, 0));
        }
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_complete_order(struct cuda_call *call, const struct cuda_inverse *run,
                                  char *d_work)
{
    const int64_t n = run->in.c;
    struct complete_lu lu;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, d_work, &lu);
    order_kernel<<<(unsigned)n, COLUMN_THREADS, 0, call->stream>>>(lu, run->x);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_complete_finish(struct cuda_call *call, const struct cuda_inverse *run,
                                   char *d_work)
{
    const int64_t n = run->in.c;
    struct complete_lu lu;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, d_work, &lu);
    /* nothing is off, as in no probe */
    CUDA_TRY(call, cudaMemsetAsync(run->x_norms, 0, 3 * sizeof(double), call->stream));
    result_kernel<<<blocks_for(n, COLUMN_THREADS), COLUMN_THREADS, 0, call->stream>>>(lu, *run);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_inverse_mark(call, run));
out:
    return ret;
}
