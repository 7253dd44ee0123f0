/*
 * Inverses of batches of small matrices.
 *
 * Up to order 32 a group of lanes has a matrix, a row each, in registers.  The pivots' row goes to
 * the other lanes by shuffles.  Above that a block has a matrix in its shared memory.
 */
#include "inverse/run.h"

enum {
    REGISTER_ORDER = 32, /* the largest one in registers */
    REGISTER_THREADS = 128,
    BLOCK_ORDER = 128, /* the largest one in shared memory; above, large.cu is as fast */
    BLOCK_THREADS = 256
};

/* What the kernels read and write. */
struct small_inverses {
    int64_t count;
    int n;
    bool only; /* as in run.h */
    const real *w;
    real *x;
    const real_int *exponent;
    const char *kind;
    char *singular;
    struct inverse_marks *marks;
};

static __device__ __forceinline__ real
not_a_number(void)
{
    return r_from_bits(R_INFINITY_BITS | 1);
}

/* ---- registers ---- */

/* The same of sums; NaN is above all others. */
static __device__ __forceinline__ double
largest_of_lanes(double x, int group)
{
    for (int lanes = group / 2; lanes > 0; lanes /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, x, lanes);

        x = other > x || other != other ? other : x;
    }
    return x;
}

/* Scales the lane's row, and its entry of each column.  *column: of the column with the lane's
   number. */
template <int N>
static __device__ __forceinline__ void
balance_registers(real (&a)[N], int lane, int *row, int *column)
{
    int largest = BALANCE_NOTHING;

#pragma unroll
    for (int j = 0; j < N; j++) {
        const int exponent = balance_exponent(a[j]);

        largest = exponent > largest ? exponent : largest;
    }
    *row = balance_power(largest);
    *column = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int power = balance_power(largest_of_lanes(balance_exponent(a[j]) - *row, N));

        a[j] = balance_scale(a[j], -*row - power);
        *column = j == lane ? power : *column;
    }
}

/* Eliminates: *step is the one that takes the lane's row, *pivot the lane whose row the step with
   this lane's number takes.  Returns whether a pivot is zero. */
template <int N>
static __device__ __forceinline__ bool
eliminate_registers(real (&a)[N], int n, int lane, int *step, int *pivot)
{
    bool singular = false;

    *step = *pivot = lane;
    for (int k = 0, open = lane < n; k < n; k++) {
        struct inverse_best best = {-1, lane};
        real own = 0, inverse, factor;

#pragma unroll
        for (int j = 0; j < N; j++) {
            own = j == k ? a[j] : own;
        }
        best.size = open ? pivot_size(own) : REAL(-1);
        best = best_of_lanes(best, N);
        inverse = __shfl_sync(0xffffffffu, own, best.at, N);
        singular = singular || inverse == 0;
        inverse = inverse == 0 ? REAL(1) : inverse;
        factor =
            own / inverse; /* 1 for a row that is equal to the pivot's, so that zeros are left */
        inverse = 1 / inverse;
#pragma unroll
        for (int j = 0; j < N; j++) {
            const real other = __shfl_sync(0xffffffffu, a[j], best.at, N);
            const real x = j == k ? REAL(1) : other;

            a[j] = lane == best.at ? x * inverse : (j == k ? REAL(0) : a[j]) - factor * x;
        }
        *step = lane == best.at ? k : *step;
        *pivot = lane == k ? best.at : *pivot;
        open = open && lane != best.at;
    }
    return singular;
}

template <int N>
static __global__ void
__launch_bounds__(REGISTER_THREADS) register_kernel(const __grid_constant__ struct small_inverses q)
{
    const int lane = (int)threadIdx.x % N, n = q.n;
    const int64_t matrix = (int64_t)blockIdx.x * (REGISTER_THREADS / N) + (int)threadIdx.x / N;
    const bool present = matrix < q.count;
    const int64_t first = matrix * n * n;
    const char kind = present ? q.kind[matrix] : (char)ZERO;
    const int up = present && !q.only ? (int)q.exponent[matrix] : 0;
    int row = 0, column = 0, step, pivot;
    double sum = 0, norms;
    bool singular;
    real a[N];

#pragma unroll
    for (int j = 0; j < N; j++) {
        a[j] = present && j < n && lane < n ? q.w[first + j * n + lane] : REAL(0);
        sum += fabs((double)balance_scale(a[j], -up));
    }
    norms = largest_of_lanes(sum, N);
    if (!q.only) {
        balance_registers(a, lane, &row, &column);
    }
    singular = eliminate_registers(a, n, lane, &step, &pivot);
    column = __shfl_sync(0xffffffffu, column, step, N);
    sum = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int to = __shfl_sync(0xffffffffu, pivot, j, N);
        const int power = -column - __shfl_sync(0xffffffffu, row, to, N);

        if (j < n && lane < n) {
            sum += fabs((double)balance_scale(a[j], power + up));
        }
        if (present && j < n && lane < n) {
            q.x[first + to * n + step] =
                kind == NONFINITE ? not_a_number() : balance_scale(a[j], power);
        }
    }
    norms *= largest_of_lanes(sum, N);
    if (present && lane == 0) {
        if (q.only) {
            q.singular[matrix] = (char)singular;
        } else {
            mark_matrix(q.marks, matrix, kind, singular, norms);
        }
    }
}

/* ---- shared memory ---- */

/* A block's shared memory. */
struct shared_matrix {
    real *a;           /* [n][ld] */
    double *sums;      /* [n] */
    real *row, *other; /* [n] the pivot's row, with 1 in the step's column; that column over the
                          pivot */
    int *rows, *columns, *pivot, *open; /* [n] exponents, pivots, 1: no step had the row yet */
};

static __host__ __device__ __forceinline__ int
leading(int n)
{
    return n | 1;
}

static size_t
shared_bytes(int64_t n)
{
    return (size_t)(n * leading((int)n) + 2 * n) * sizeof(real) + 8 +
           (size_t)n * (sizeof(double) + 4 * sizeof(int));
}

static __device__ __forceinline__ struct shared_matrix
cut_shared(char *base, int n)
{
    struct shared_matrix m;

    m.sums = (double *)base;
    m.a = (real *)(m.sums + n);
    m.row = m.a + n * leading(n);
    m.other = m.row + n;
    m.rows = (int *)(m.other + n);
    m.columns = m.rows + n;
    m.pivot = m.columns + n;
    m.open = m.pivot + n;
    return m;
}

/* The largest of the n sums, in each thread. */
static __device__ double
largest_sum(const struct shared_matrix &m, int n)
{
    double largest = 0;

    __syncthreads();
    for (int i = 0; i < n; i++) {
        largest = m.sums[i] > largest || m.sums[i] != m.sums[i] ? m.sums[i] : largest;
    }
    __syncthreads();
    return largest;
}

/* M to shared memory, and its exponents, unless `only`; returns the largest sum of a row
   of 2^-up M. */
static __device__ double
read_shared(const struct small_inverses &q, const real *from, int up, const struct shared_matrix &m)
{
    const int t = (int)threadIdx.x, n = q.n, ld = leading(n);
    const int lane = t % WARP, warp = t / WARP;

    for (int j = warp; j < n; j += BLOCK_THREADS / WARP) {
        for (int i = lane; i < n; i += WARP) {
            m.a[j * ld + i] = from[j * n + i];
        }
    }
    __syncthreads();
    if (t < n) {
        int largest = BALANCE_NOTHING;
        double sum = 0;

        for (int j = 0; j < n; j++) {
            const int exponent = balance_exponent(m.a[j * ld + t]);

            sum += fabs((double)balance_scale(m.a[j * ld + t], -up));
            largest = exponent > largest ? exponent : largest;
        }
        m.sums[t] = sum;
        m.rows[t] = q.only ? 0 : balance_power(largest);
        m.open[t] = 1;
    }
    __syncthreads();
    for (int j = warp; j < n; j += BLOCK_THREADS / WARP) {
        int largest = BALANCE_NOTHING;

        for (int i = lane; i < n; i += WARP) {
            const int exponent = balance_exponent(m.a[j * ld + i]) - m.rows[i];

            largest = exponent > largest ? exponent : largest;
        }
        largest = q.only ? 0 : balance_power(largest_of_lanes(largest, WARP));
        for (int i = lane; i < n; i += WARP) {
            m.a[j * ld + i] = balance_scale(m.a[j * ld + i], -m.rows[i] - largest);
        }
        if (lane == 0) {
            m.columns[j] = largest;
        }
    }
    return largest_sum(m, n);
}

/* Eliminates; returns whether a pivot is zero. */
static __device__ bool
eliminate_shared(int n, const struct shared_matrix &m)
{
    const int t = (int)threadIdx.x, ld = leading(n), lane = t % WARP, warp = t / WARP;
    bool singular = false;

    for (int k = 0; k < n; k++) {
        if (warp == 0) {
            struct inverse_best best = {-1, n};

            for (int i = lane; i < n; i += WARP) {
                const struct inverse_best own = {m.open[i] ? pivot_size(m.a[k * ld + i]) : REAL(-1),
                                                 i};

                best = better(best, own);
            }
            best = best_of_lanes(best, WARP);
            if (lane == 0) {
                m.pivot[k] = best.at;
                m.open[best.at] = 0;
            }
        }
        __syncthreads();
        {
            const int p = m.pivot[k];
            const real pivot = m.a[k * ld + p], divisor = pivot == 0 ? REAL(1) : pivot;
            const real inverse = 1 / divisor;

            singular = singular || pivot == 0;
            if (t < n) {
                m.row[t] = t == k ? REAL(1) : m.a[t * ld + p];
                m.other[t] = m.a[k * ld + t] / divisor;
            }
            __syncthreads();
            for (int j = warp; j < n; j += BLOCK_THREADS / WARP) {
                const real entry = m.row[j];

                for (int i = lane; i < n; i += WARP) {
                    const real x = j == k ? REAL(0) : m.a[j * ld + i];

                    m.a[j * ld + i] = i == p ? entry * inverse : x - m.other[i] * entry;
                }
            }
        }
        __syncthreads();
    }
    return singular;
}

static __global__ void
__launch_bounds__(BLOCK_THREADS) block_kernel(const __grid_constant__ struct small_inverses q)
{
    extern __shared__ char shared[] __align__(16);
    const struct shared_matrix m = cut_shared(shared, q.n);
    const int t = (int)threadIdx.x, n = q.n, ld = leading(n);
    const int64_t matrix = blockIdx.x, first = matrix * n * n;
    const char kind = q.kind[matrix];
    const int up = q.only ? 0 : (int)q.exponent[matrix];
    double norms = read_shared(q, q.w + first, up, m);
    const bool singular = eliminate_shared(n, m);

    if (t < n) {
        const int from = m.pivot[t];
        double sum = 0;

        for (int j = 0; j < n; j++) {
            const int to = m.pivot[j], power = -m.columns[t] - m.rows[to];
            const real x = m.a[j * ld + from];

            sum += fabs((double)balance_scale(x, power + up));
            q.x[first + (int64_t)to * n + t] =
                kind == NONFINITE ? not_a_number() : balance_scale(x, power);
        }
        m.sums[t] = sum;
    }
    norms *= largest_sum(m, n);
    if (t == 0) {
        if (q.only) {
            q.singular[matrix] = (char)singular;
        } else {
            mark_matrix(q.marks, matrix, kind, singular, norms);
        }
    }
}

/* ---- on the host ---- */

bool
tsvdi_cuda_inverse_small_fits(const struct cuda_call *call, int64_t n)
{
    return n <= REGISTER_ORDER ||
           (n <= BLOCK_ORDER && shared_bytes(n) <= (size_t)call->shared_most);
}

template <int N>
static tsvd_status
launch_registers(struct cuda_call *call, const struct small_inverses &q)
{
    tsvd_status ret = TSVD_OK;

    register_kernel<N>
        <<<blocks_for(q.count, REGISTER_THREADS / N), REGISTER_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_small(struct cuda_call *call, const struct cuda_inverse *run, bool only)
{
    const int64_t n = run->in.c;
    const struct small_inverses q = {run->in.count, (int)n,        only,
                                     run->in.w,     run->x,        run->in.exponent,
                                     run->in.kind,  run->singular, run->marks};
    tsvd_status ret = TSVD_OK;

    if (n <= 4) {
        return launch_registers<4>(call, q);
    }
    if (n <= 8) {
        return launch_registers<8>(call, q);
    }
    if (n <= 16) {
        return launch_registers<16>(call, q);
    }
    if (n <= REGISTER_ORDER) {
        return launch_registers<32>(call, q);
    }
    CUDA_TRY(call, cudaFuncSetAttribute(block_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)shared_bytes(n)));
    block_kernel<<<(unsigned)q.count, BLOCK_THREADS, shared_bytes(n), call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
