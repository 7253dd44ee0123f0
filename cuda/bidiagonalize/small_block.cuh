/*
 * Batches of small dense matrices: a block for each matrix.
 *
 * The reduction keeps the matrix in shared memory.  If it is too large, the first steps work on it
 * in place, mostly in the L2 cache, until what is left fits.
 *
 * Reflectors are applied PANEL at a time.  All inner products of their vectors with one vector x
 * come from one pass over x.  Those after the first reflector are corrected by the Gram matrix of
 * the panel: the factor s_i of v_i in the sum that is taken off x is
 *
 *     s_i = tau_i (v_i^H x - sum over j before i of (v_i^H v_j) s_j).
 *
 * That is the compact WY representation (Schreiber & Van Loan, SIAM J. Sci. Stat. Comput. 10
 * (1989)) with the triangular factor by its inverse (Joffrain et al., ACM TOMS 32 (2006)).
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_SMALL_BLOCK_H
#define TSVDI_CUDA_BIDIAGONALIZE_SMALL_BLOCK_H

#include "bidiagonalize/small_run.h"

/* ---- reduction ---- */

enum {
    BLOCK_THREADS = 512, /* at most */

    /* In a pass along rows: rows that a warp works on at once, and lanes that share a row. */
    ROW_LANES = 8,
    ROW_PARTS = (int)WARP / (int)ROW_LANES,

    BANKS = 128 / (int)sizeof(scalar)
};

/* Numbers between columns in shared memory: neither a pass along columns nor one along rows has
   bank conflicts. */
static __host__ __device__ __forceinline__ int
block_stride(int rows)
{
    const int over = rows > ROW_LANES ? rows - ROW_LANES : 0;

    return (over + BANKS - 1) / BANKS * BANKS + ROW_LANES;
}

/* Numbers of shared memory besides the matrix: the vectors and tau. */
static __host__ __device__ __forceinline__ int
block_vectors(int r, int c)
{
    return 3 * r + 2 * c + 1;
}

/* What a block knows of its matrix.  Entry k of column j of what is left, both counted from the
   corner of the whole matrix, is a[(j - origin) stride + k - origin]. */
struct block_matrix {
    int r, c;
    int64_t index;   /* of the matrix */
    scalar *w;       /* the matrix, where it lies */
    scalar *v, *old; /* shared, [r] the left reflector of this step and of the last one */
    scalar *z;       /* shared, [r] z of the deferred update */
    scalar *y, *row; /* shared, [c] y and `row` of that update */
    scalar *tau;     /* shared, [1] of the left reflector */
    scalar scale;    /* u^H = (1, row scale) */
};

/* Warp 0 updates column i and makes the left reflector from it. */
static __device__ __forceinline__ void
make_left(const struct small_batch &q, const struct block_matrix &m, const scalar *column, int i)
{
    const int lane = small_lane();
    const scalar y = m.y[i];
    real square = 0, up;
    scalar top = 0;
    struct reflector h;

#pragma unroll 4
    for (int k = i + lane; k < m.r; k += WARP) {
        const scalar x = n_fma(-m.old[k], y, column[k - i]) - m.z[k];

        m.v[k] = x;
        if (k == i) {
            top = x;
        } else {
            square = n_add_abs2(x, square);
        }
    }
    top = __shfl_sync(0xffffffffu, top, 0);
    square = group_sum<WARP>(square);
    up = reflector_up(top, square);
    if (up != 1) {
        square = 0;
        for (int k = i + lane; k < m.r; k += WARP) {
            const scalar x = k == i ? REAL(0) : n_scale(up, m.v[k]);

            square = n_add_abs2(x, square);
        }
        square = group_sum<WARP>(square);
    }
    h = reflector_make(top, square, up);
    for (int k = i + lane; k < m.r; k += WARP) {
        const scalar v = k == i ? scalar(1) : reflector_entry(h, m.v[k]);

        m.v[k] = v;
        m.w[(int64_t)i * m.r + k] = k == i ? scalar(h.beta) : v;
    }
    if (lane == 0) {
        *m.tau = h.tau;
        q.d[m.index * m.c + i] = h.beta;
        q.tau_q[m.index * m.c + i] = h.tau;
    }
}

/* The sums over a warp of COLUMNS numbers of each lane.  Lanes of the same lane / (WARP / COLUMNS)
   get the same one, in the order of the columns. */
template <int COLUMNS>
static __device__ __forceinline__ scalar
column_sums(const scalar (&sum)[COLUMNS])
{
    const bool upper = small_lane() & 16, odd = small_lane() & 8;
    scalar x = sum[0];

    if constexpr (COLUMNS == 4) {
        scalar low = upper ? sum[2] : sum[0], high = upper ? sum[3] : sum[1];

        low += __shfl_xor_sync(0xffffffffu, upper ? sum[0] : sum[2], 16);
        high += __shfl_xor_sync(0xffffffffu, upper ? sum[1] : sum[3], 16);
        x = odd ? high : low;
        x += __shfl_xor_sync(0xffffffffu, odd ? low : high, 8);
    } else if constexpr (COLUMNS == 2) {
        x = upper ? sum[1] : sum[0];
        x += __shfl_xor_sync(0xffffffffu, upper ? sum[0] : sum[1], 16);
    }
    return group_sum<WARP / COLUMNS>(x);
}

/* Updates the columns i + 1 .. and makes their y and row; a warp does COLUMNS of them at once. */
template <int COLUMNS>
static __device__ __forceinline__ void
sweep_block_columns(const struct block_matrix &m, scalar *a, int stride, int origin, int i,
                    scalar tau, int j)
{
    const int lane = small_lane();
    const int mine = j + lane / (WARP / COLUMNS); /* the column whose sum the lane gets */
    scalar y[COLUMNS], u[COLUMNS], sum[COLUMNS], total;

#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        const bool here = j + n < m.c;

        y[n] = here ? m.y[j + n] : REAL(0);
        u[n] = here ? n_mul(m.row[j + n], m.scale) : REAL(0);
        sum[n] = 0;
    }
    a += (j - origin) * stride - origin;
#pragma unroll 2
    for (int k = i + lane; k < m.r; k += WARP) {
        const scalar v = m.v[k], old = m.old[k], z = m.z[k];
        scalar x[COLUMNS];

#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            x[n] = j + n < m.c ? a[n * stride + k] : REAL(0);
        }
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            x[n] = n_fma(-z, u[n], n_fma(-old, y[n], x[n]));
            sum[n] = n_fma(n_conj(v), x[n], sum[n]);
            if (j + n < m.c) {
                a[n * stride + k] = x[n];
            }
        }
    }
    total = n_mul(n_conj(tau), column_sums(sum));
    __syncwarp();
    if (lane % (WARP / COLUMNS) == 0 && mine < m.c) {
        m.y[mine] = total;
        m.row[mine] = a[(mine - j) * stride + i] - total;
    }
}

/* All columns of the step. */
static __device__ __forceinline__ void
sweep_block(const struct block_matrix &m, scalar *a, int stride, int origin, int i, scalar tau)
{
    const int warps = (int)blockDim.x / WARP, warp = (int)threadIdx.x / WARP;
    const int left = m.c - i - 1;

    if (left > 2 * warps) {
        for (int j = i + 1 + 4 * warp; j < m.c; j += 4 * warps) {
            sweep_block_columns<4>(m, a, stride, origin, i, tau, j);
        }
    } else if (left > warps) {
        sweep_block_columns<2>(m, a, stride, origin, i, tau, i + 1 + 2 * warp);
    } else if (warp < left) {
        sweep_block_columns<1>(m, a, stride, origin, i, tau, i + 1 + warp);
    }
}

/* |up row|^2 and y row^H, beyond the entry of the superdiagonal; every warp gets the same bits. */
static __device__ __forceinline__ void
row_sums(const struct block_matrix &m, int i, real *square, scalar *inner)
{
    real s = 0;
    scalar t = 0;

    for (int j = i + 2 + small_lane(); j < m.c; j += WARP) {
        const scalar x = m.row[j];

        s = n_add_abs2(x, s);
        t = n_fma(m.y[j], n_conj(x), t);
    }
    *square = group_sum<WARP>(s);
    *inner = group_sum<WARP>(t);
}

/* Makes the right reflector from `row`.  Leaves its factor in m->scale; *inner is y u. */
static __device__ __forceinline__ scalar
make_right(const struct small_batch &q, struct block_matrix *m, int i, scalar *inner)
{
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x;
    const scalar top = n_conj(m->row[i + 1]);
    struct reflector h;
    real square, up;

    row_sums(*m, i, &square, inner);
    up = reflector_up(top, square);
    if (up != 1) { /* the same branch in all threads */
        __syncthreads();
        for (int j = i + 2 + thread; j < m->c; j += threads) {
            m->row[j] = n_scale(up, m->row[j]);
        }
        __syncthreads();
        row_sums(*m, i, &square, inner);
    }
    h = reflector_make(top, square, up);
    m->scale = n_conj(h.scale);
    *inner = n_fma(*inner, h.scale, m->y[i + 1]);
    for (int j = i + 1 + thread; j < m->c; j += threads) {
        m->w[(int64_t)j * m->r + i] =
            j == i + 1 ? scalar(h.beta) : n_mul(n_conj(m->row[j]), h.scale);
    }
    if (thread == 0) {
        q.e[m->index * m->c + i] = h.beta;
        q.tau_p[m->index * m->c + i] = h.tau;
    }
    return h.tau;
}

/* The new z. */
static __device__ __forceinline__ void
sweep_block_rows(const struct block_matrix &m, const scalar *a, int stride, int origin, int i,
                 scalar tau, scalar inner)
{
    const int warps = (int)blockDim.x / WARP, warp = (int)threadIdx.x / WARP;
    const int lane = small_lane(), part = lane / ROW_LANES;

    a += (i + 1 - origin) * stride - origin;
    for (int first = i + 1 + ROW_LANES * warp; first < m.r; first += ROW_LANES * warps) {
        const int k = first + lane % ROW_LANES;
        scalar sum = 0;

        if (k < m.r) {
#pragma unroll 8
            for (int j = i + 2 + part; j < m.c; j += ROW_PARTS) {
                sum = n_fma(a[(j - i - 1) * stride + k], n_conj(m.row[j]), sum);
            }
        }
#pragma unroll
        for (int half = ROW_LANES; half < WARP; half *= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, half);
        }
        if (part == 0 && k < m.r) {
            m.z[k] = n_mul(tau, n_fma(-m.v[k], inner, n_fma(sum, n_conj(m.scale), a[k])));
        }
    }
}

/* Steps begin .. end - 1. */
static __device__ __forceinline__ void
reduce_steps(const struct small_batch &q, struct block_matrix *m, scalar *a, int stride, int origin,
             int begin, int end)
{
    for (int i = begin; i < end; i++) {
        scalar *swapped = m->old;
        scalar inner, tau;

        if (threadIdx.x < WARP) {
            make_left(q, *m, a + (i - origin) * stride + i - origin, i);
        }
        __syncthreads();
        tau = *m->tau;
        if (i + 1 < m->c) {
            sweep_block(*m, a, stride, origin, i, tau);
            __syncthreads();
            tau = make_right(q, m, i, &inner);
            sweep_block_rows(*m, a, stride, origin, i, tau, inner);
        } else if (threadIdx.x == 0) {
            q.e[m->index * m->c + i] = 0;
            q.tau_p[m->index * m->c + i] = 0;
        }
        __syncthreads();
        m->old = m->v;
        m->v = swapped;
    }
}

/* From step `inside` on the matrix is in shared memory. */
static __global__ void
__launch_bounds__(BLOCK_THREADS) reduce_blocks_kernel(struct small_batch q, int inside)
{
    extern __shared__ char shared[] __align__(16);
    const int r = q.r, c = q.c, thread = (int)threadIdx.x, threads = (int)blockDim.x;
    const int stride = block_stride(r - inside);
    scalar *v = (scalar *)shared, *a = v + block_vectors(r, c);
    scalar *w = q.w + (int64_t)blockIdx.x * r * c;
    struct block_matrix m = {
        r, c, blockIdx.x, w, v, v + r, v + 2 * r, v + 3 * r, v + 3 * r + c, v + 3 * r + 2 * c, 0};

    for (int k = thread; k < block_vectors(r, c); k += threads) {
        v[k] = 0;
    }
    __syncthreads();
    reduce_steps(q, &m, w, r, 0, 0, inside);
    for (int j = inside + thread / WARP; j < c; j += threads / WARP) {
        for (int k = inside + small_lane(); k < r; k += WARP) {
            a[(j - inside) * stride + k - inside] = w[(int64_t)j * r + k];
        }
    }
    __syncthreads();
    reduce_steps(q, &m, a, stride, inside, inside, c);
}

/* ---- reflectors on vectors ---- */

enum {
    PANEL = 8, /* reflectors that are applied at once; a warp has one while they are loaded */
    PANEL_THREADS = PANEL * (int)WARP,

    /* Numbers between rows of a panel, which are read 16 bytes at once. */
    PANEL_STRIDE = PANEL + 16 / (int)sizeof(scalar)
};

/* A row of a panel. */
struct alignas(16) panel_row {
    scalar x[PANEL];
};

/* Shared memory of a block that has `slab` vectors of n entries: the panel, the parts of the inner
   products, the Gram matrix, tau and the vectors. */
struct panel_memory {
    scalar *v;    /* [n][PANEL_STRIDE] */
    scalar *part; /* [PANEL_THREADS / slab][PANEL][slab] */
    scalar *gram; /* [PANEL][PANEL] */
    scalar *tau;  /* [PANEL] */
    scalar *x;    /* [n][slab + 1] */
};

static __host__ __device__ __forceinline__ int
panel_numbers(int n, int slab)
{
    return n * PANEL_STRIDE + (PANEL_THREADS + PANEL + 1) * PANEL + n * (slab + 1);
}

static __device__ __forceinline__ struct panel_memory
panel_memory_of(scalar *base, int n)
{
    struct panel_memory at;

    at.v = base;
    at.part = at.v + n * PANEL_STRIDE;
    at.gram = at.part + PANEL_THREADS * PANEL;
    at.tau = at.gram + PANEL * PANEL;
    at.x = at.tau + PANEL;
    return at;
}

/* Vectors of a matrix that a block has. */
struct slab {
    scalar *x;     /* those of the matrix */
    int64_t first; /* the first of the block's */
    int here;      /* how many */
};

/* Entry `at` of the slab in the order in which it lies in memory: its vector and its entry. */
static __device__ __forceinline__ void
place_in_slab(const struct small_job &job, const struct slab &s, int at, int *k, int *t)
{
    *k = job.x.rows ? at % job.n : at / s.here;
    *t = job.x.rows ? at / job.n : at % s.here;
}

/* Reads reflectors begin .. begin + count - 1 and makes their Gram matrix.  Rows before `top` are
   zero in all of them, and not stored. */
static __device__ __forceinline__ void
load_panel(const struct small_job &job, const struct panel_memory &at, int64_t matrix, int begin,
           int count, int top)
{
    const scalar *w = job.w + matrix * job.r * job.c;
    const int thread = (int)threadIdx.x, lane = small_lane(), warp = thread / WARP;
    const int step = job.right ? PANEL_THREADS / PANEL : (int)WARP;
    const int i = job.right ? thread % PANEL : warp;

    for (int k = top + (job.right ? thread / PANEL : lane); k < job.n; k += step) {
        at.v[k * PANEL_STRIDE + i] = i < count ? reflector_at(job, w, begin + i, k) : REAL(0);
    }
    if (thread < PANEL) {
        at.tau[thread] =
            thread < count ? factor_of(job, job.tau[matrix * job.c + begin + thread]) : REAL(0);
    }
    __syncthreads();
    {
        scalar sum[PANEL] = {};

        for (int k = top + lane; k < job.n; k += WARP) {
            const struct panel_row row = *(const struct panel_row *)(at.v + k * PANEL_STRIDE);
            const scalar mine = at.v[k * PANEL_STRIDE + warp];

#pragma unroll
            for (int j = 0; j < PANEL; j++) {
                sum[j] = n_fma(n_conj(mine), row.x[j], sum[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < PANEL; j++) {
            sum[j] = group_sum<WARP>(sum[j]);
            if (lane == j) {
                at.gram[warp * PANEL + j] = sum[j];
            }
        }
    }
}

/* The factors of the panel's reflectors for a vector, from the inner products. */
static __device__ __forceinline__ void
panel_factors(const struct panel_memory &at, bool ascending, scalar (&s)[PANEL])
{
#pragma unroll
    for (int step = 0; step < PANEL; step++) {
        if (ascending) {
#pragma unroll
            for (int j = 0; j < step; j++) {
                s[step] = n_fma(-at.gram[step * PANEL + j], s[j], s[step]);
            }
            s[step] = n_mul(s[step], at.tau[step]);
        } else {
            const int i = PANEL - 1 - step;

#pragma unroll
            for (int j = PANEL - 1; j > i; j--) {
                s[i] = n_fma(-at.gram[i * PANEL + j], s[j], s[i]);
            }
            s[i] = n_mul(s[i], at.tau[i]);
        }
    }
}

/* Applies the panel to the slab.  A thread has the entries `group`, `group` + groups, ... of a
   vector, in every panel the same. */
static __device__ __forceinline__ void
apply_panel(const struct small_job &job, const struct panel_memory &at, int width, int top)
{
    const int thread = (int)threadIdx.x, t = thread % width, group = thread / width;
    const int groups = PANEL_THREADS / width;
    const int first = group + (top - group + groups - 1) / groups * groups;
    scalar s[PANEL] = {};

#pragma unroll 4
    for (int k = first; k < job.n; k += groups) {
        const struct panel_row row = *(const struct panel_row *)(at.v + k * PANEL_STRIDE);
        const scalar x = at.x[k * (width + 1) + t];

#pragma unroll
        for (int i = 0; i < PANEL; i++) {
            s[i] = n_fma(n_conj(row.x[i]), x, s[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < PANEL; i++) {
        at.part[(group * PANEL + i) * width + t] = s[i];
    }
    __syncthreads();
    if (thread < PANEL * width) { /* the part of the first group gets the sum */
        scalar sum = at.part[thread];

#pragma unroll 4
        for (int other = 1; other < groups; other++) {
            sum += at.part[other * PANEL * width + thread];
        }
        at.part[thread] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PANEL; i++) {
        s[i] = at.part[i * width + t];
    }
    panel_factors(at, job.ascending, s);
#pragma unroll 4
    for (int k = first; k < job.n; k += groups) {
        const struct panel_row row = *(const struct panel_row *)(at.v + k * PANEL_STRIDE);
        scalar x = at.x[k * (width + 1) + t];

#pragma unroll
        for (int i = 0; i < PANEL; i++) {
            x = n_fma(-row.x[i], s[i], x);
        }
        at.x[k * (width + 1) + t] = x;
    }
    __syncthreads(); /* the next panel takes the place of this one */
}

/* A block has `width` vectors of a matrix, and a matrix has `slabs` blocks. */
static __global__ void
__launch_bounds__(PANEL_THREADS) apply_blocks_kernel(struct small_job job, int width, int slabs)
{
    extern __shared__ char shared[] __align__(16);
    const struct panel_memory at = panel_memory_of((scalar *)shared, job.n);
    const int64_t matrix = blockIdx.x / (unsigned)slabs;
    const int thread = (int)threadIdx.x;
    const int panels = (job.reflectors + PANEL - 1) / PANEL;
    struct slab s;

    s.x = job.x.d_x + matrix * job.x.next;
    s.first = (int64_t)(blockIdx.x % (unsigned)slabs) * width;
    s.here = (int)(job.x.count - s.first < width ? job.x.count - s.first : width);
    for (int i = thread; i < job.n * (width + 1); i += PANEL_THREADS) {
        at.x[i] = 0;
    }
    __syncthreads();
    for (int i = thread; i < job.n * s.here; i += PANEL_THREADS) {
        int k, t;

        place_in_slab(job, s, i, &k, &t);
        at.x[k * (width + 1) + t] = s.x[vector_entry(job.x, k, s.first + t)];
    }
    for (int step = 0; step < panels; step++) {
        const int panel = job.ascending ? step : panels - 1 - step, begin = panel * PANEL;
        const int count = job.reflectors - begin < PANEL ? job.reflectors - begin : (int)PANEL;
        const int top = reflector_first(job, begin);

        load_panel(job, at, matrix, begin, count, top);
        apply_panel(job, at, width, top);
    }
    for (int i = thread; i < job.n * s.here; i += PANEL_THREADS) {
        int k, t;

        place_in_slab(job, s, i, &k, &t);
        s.x[vector_entry(job.x, k, s.first + t)] = at.x[k * (width + 1) + t];
    }
}

#endif
