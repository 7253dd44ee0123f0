/*
 * Batches of small dense matrices: a group of 4, 8, 16 or 32 threads of a warp for each matrix.
 *
 * The reduction keeps a matrix in shared memory, column-major.  For left reflectors a thread has a
 * column, for right ones a row: so its sums stay in a register.  Columns are an odd number of
 * entries apart, and both ways are free of bank conflicts.
 *
 * apply_warps_kernel() keeps the vectors in registers, one for each thread, and reads the
 * reflectors from shared memory.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_SMALL_WARP_H
#define TSVDI_CUDA_BIDIAGONALIZE_SMALL_WARP_H

#include "bidiagonalize/small_run.h"

/* LOADS: loads that a thread has in flight when it copies a matrix. */
enum { WARPS_THREADS = 128, APPLY_THREADS = 64, LOADS = 4 };

/* ---- reduction ---- */

/* Numbers between columns in shared memory. */
static __host__ __device__ __forceinline__ int
warp_stride(int r)
{
    return r | 1;
}

/* Numbers of shared memory for each matrix of a block: the matrix and z.  Modulo WARP the matrices
   of a warp are `group` numbers apart, so that the groups read columns from different banks. */
static __host__ __device__ __forceinline__ int
warp_numbers(int r, int c, int group)
{
    return (warp_stride(r) * c + r + WARP - 1) / WARP * WARP + group % WARP;
}

/* The position of an entry that walks through a matrix, `GROUP` entries at a time. */
struct matrix_walk {
    int row, at; /* at: where it is in shared memory */
};

template <int GROUP>
static __device__ __forceinline__ void
walk_on(struct matrix_walk *walk, int r)
{
    walk->row += GROUP;
    walk->at += GROUP;
    while (walk->row >= r) {
        walk->row -= r;
        walk->at += warp_stride(r) - r;
    }
}

template <int GROUP>
static __device__ __forceinline__ struct matrix_walk
walk_from(int lane, int r)
{
    struct matrix_walk walk = {lane - GROUP, lane - GROUP};

    walk_on<GROUP>(&walk, r);
    return walk;
}

template <int GROUP>
static __device__ __forceinline__ void
load_matrix(const scalar *w, bool present, int r, int c, int lane, scalar *a)
{
    struct matrix_walk walk = walk_from<GROUP>(lane, r);

    for (int from = lane; from < r * c; from += LOADS * GROUP) {
        scalar x[LOADS];

#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            x[i] = present && from + i * GROUP < r * c ? w[from + i * GROUP] : REAL(0);
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            if (from + i * GROUP < r * c) {
                a[walk.at] = x[i];
                walk_on<GROUP>(&walk, r);
            }
        }
    }
}

template <int GROUP>
static __device__ __forceinline__ void
store_matrix(scalar *w, int r, int c, int lane, const scalar *a)
{
    struct matrix_walk walk = walk_from<GROUP>(lane, r);

    for (int to = lane; to < r * c; to += GROUP) {
        w[to] = a[walk.at];
        walk_on<GROUP>(&walk, r);
    }
}

/* What a thread knows of its matrix. */
struct warp_matrix {
    int r, c, lane;
    scalar *a;   /* shared, the columns */
    scalar *z;   /* shared, z of the deferred update */
    scalar y, u; /* the entries of that update for column `lane`, of u the conjugate */
};

static __device__ __forceinline__ scalar *
column_of(const struct warp_matrix &m, int j)
{
    return m.a + j * warp_stride(m.r);
}

/* Updates column i and makes the left reflector from it.  The group leaves beta and v there. */
template <int GROUP>
static __device__ __forceinline__ struct reflector
reflect_column(const struct warp_matrix &m, int i)
{
    scalar *v = column_of(m, i);
    const scalar *old = column_of(m, i > 0 ? i - 1 : 0); /* the v of the update; before it y = 0 */
    const scalar y = __shfl_sync(0xffffffffu, m.y, i, GROUP);
    struct reflector h;
    real square = 0, up;
    scalar top = 0;

    for (int k = i + m.lane; k < m.r; k += GROUP) {
        const scalar x = n_fma(-old[k], y, v[k]) - m.z[k];

        v[k] = x;
        if (k == i) {
            top = x;
        } else {
            square = n_add_abs2(x, square);
        }
    }
    top = __shfl_sync(0xffffffffu, top, 0, GROUP);
    square = group_sum<GROUP>(square);
    up = reflector_up(top, square);
    if (__any_sync(0xffffffffu, up != 1)) { /* a matrix of the warp has such a column */
        square = 0;
        for (int k = i + m.lane; k < m.r; k += GROUP) {
            const scalar x = k == i ? REAL(0) : n_scale(up, v[k]);

            square = n_add_abs2(x, square);
        }
        square = group_sum<GROUP>(square);
    }
    h = reflector_make(top, square, up);
    for (int k = i + m.lane; k < m.r; k += GROUP) {
        v[k] = k == i ? scalar(h.beta) : reflector_entry(h, v[k]);
    }
    return h;
}

/* Updates the other columns, each by a thread, and applies the left reflector to row i.  Returns
   the entry of row i, and leaves the new y. */
static __device__ __forceinline__ scalar
sweep_columns(struct warp_matrix *m, int i, scalar tau)
{
    const scalar *old = column_of(*m, i > 0 ? i - 1 : 0), *v = column_of(*m, i);
    scalar *a = column_of(*m, m->lane);
    scalar top, sum;

    if (m->lane <= i || m->lane >= m->c) {
        return 0;
    }
    top = n_fma(-m->z[i], m->u, n_fma(-old[i], m->y, a[i]));
    sum = top;
#pragma unroll 4
    for (int k = i + 1; k < m->r; k++) {
        const scalar x = n_fma(-m->z[k], m->u, n_fma(-old[k], m->y, a[k]));

        a[k] = x;
        sum = n_fma(n_conj(v[k]), x, sum);
    }
    m->y = n_mul(n_conj(tau), sum);
    return top - m->y;
}

/* Makes the right reflector from row i, whose entries the threads have.  Leaves beta and u in the
   row, and the conjugate of the new u. */
template <int GROUP>
static __device__ __forceinline__ struct reflector
reflect_row(struct warp_matrix *m, int i, scalar row)
{
    const scalar top = n_conj(__shfl_sync(0xffffffffu, row, i + 1, GROUP));
    const scalar x = m->lane > i + 1 ? n_conj(row) : REAL(0);
    struct reflector h;
    real square = group_sum<GROUP>(n_abs2(x));
    scalar u;
    const real up = reflector_up(top, square);

    if (__any_sync(0xffffffffu, up != 1)) {
        square = group_sum<GROUP>(n_abs2(n_scale(up, x)));
    }
    h = reflector_make(top, square, up);
    u = m->lane == i + 1 ? scalar(1) : reflector_entry(h, x);
    m->u = n_conj(u);
    if (m->lane > i && m->lane < m->c) {
        column_of(*m, m->lane)[i] = m->lane == i + 1 ? scalar(h.beta) : u;
    }
    return h;
}

/* The new z, each entry from a row by a thread. */
template <int GROUP>
static __device__ __forceinline__ void
sweep_rows(const struct warp_matrix &m, int i, scalar tau)
{
    const int stride = warp_stride(m.r);
    const scalar *v = column_of(m, i);
    const scalar inner =
        group_sum<GROUP>(m.lane > i && m.lane < m.c ? n_mul(m.y, n_conj(m.u)) : scalar(0));

    for (int k = i + 1 + m.lane; k < m.r; k += GROUP) {
        const scalar *a = m.a + k, *u = m.a + i;
        scalar sum = a[(i + 1) * stride];

#pragma unroll 4
        for (int j = i + 2; j < m.c; j++) {
            sum = n_fma(a[j * stride], u[j * stride], sum);
        }
        m.z[k] = n_mul(tau, n_fma(-v[k], inner, sum));
    }
}

template <int GROUP>
static __global__ void
__launch_bounds__(WARPS_THREADS) reduce_warps_kernel(struct small_batch q)
{
    extern __shared__ char shared[] __align__(16);
    const int slot = (int)threadIdx.x / GROUP, lane = (int)threadIdx.x % GROUP;
    const int64_t matrix = (int64_t)blockIdx.x * ((int)blockDim.x / GROUP) + slot;
    const bool present = matrix < q.count;
    scalar *w = q.w + (present ? matrix : 0) * q.r * q.c;
    scalar *a = (scalar *)shared + slot * warp_numbers(q.r, q.c, GROUP);
    struct warp_matrix m = {q.r, q.c, lane, a, a + warp_stride(q.r) * q.c, 0, 0};
    real d = 0, e = 0;
    scalar tau_q = 0, tau_p = 0; /* those of step `lane` */

    load_matrix<GROUP>(w, present, m.r, m.c, lane, m.a);
    for (int k = lane; k < m.r; k += GROUP) {
        m.z[k] = 0;
    }
    __syncwarp();
    for (int i = 0; i < m.c; i++) {
        struct reflector h = reflect_column<GROUP>(m, i);
        scalar row;

        if (lane == i) {
            d = h.beta;
            tau_q = h.tau;
        }
        __syncwarp();
        row = sweep_columns(&m, i, h.tau);
        if (i + 1 < m.c) {
            h = reflect_row<GROUP>(&m, i, row);
            if (lane == i) {
                e = h.beta;
                tau_p = h.tau;
            }
            __syncwarp();
            sweep_rows<GROUP>(m, i, h.tau);
        }
        __syncwarp();
    }
    if (present) {
        store_matrix<GROUP>(w, m.r, m.c, lane, m.a);
        if (lane < m.c) {
            q.d[matrix * m.c + lane] = d;
            q.e[matrix * m.c + lane] = e;
            q.tau_q[matrix * m.c + lane] = tau_q;
            q.tau_p[matrix * m.c + lane] = tau_p;
        }
    }
}

/* ---- reflectors on vectors ---- */

/* What a thread reads from shared memory at once. */
enum { PACK = 16 / (int)sizeof(scalar) };

struct alignas(16) pack {
    scalar x[PACK];
};

/* Numbers of shared memory for each matrix of a block: R reflectors of R entries, their tau, and if
   vectors are rows, a tile to transpose them.  Matrices begin in different banks. */
static __host__ __device__ __forceinline__ int
apply_numbers(int order, int group, bool rows)
{
    const int tile = rows ? group * (order + 1) : 0;

    return order * order + order + (tile + PACK - 1) / PACK * PACK + PACK;
}

/* x := (I - tau v v^H) x */
template <int R>
static __device__ __forceinline__ void
reflect_vector(const scalar *v, scalar tau, scalar (&x)[R])
{
    const struct pack *packs = (const struct pack *)v;
    scalar sum[PACK] = {};
    scalar factor = 0;

#pragma unroll
    for (int k = 0; k < R / PACK; k++) {
        const struct pack part = packs[k];

#pragma unroll
        for (int i = 0; i < PACK; i++) {
            sum[i] = n_fma(n_conj(part.x[i]), x[k * PACK + i], sum[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        factor += sum[i];
    }
    factor = n_mul(factor, -tau);
#pragma unroll
    for (int k = 0; k < R / PACK; k++) {
        const struct pack part = packs[k];

#pragma unroll
        for (int i = 0; i < PACK; i++) {
            x[k * PACK + i] = n_fma(part.x[i], factor, x[k * PACK + i]);
        }
    }
}

/* Vectors of up to R entries; `group` threads have those of a matrix. */
template <int R>
static __global__ void
__launch_bounds__(APPLY_THREADS) apply_warps_kernel(struct small_job job, int group)
{
    extern __shared__ char shared[] __align__(16);
    const int slot = (int)threadIdx.x / group, lane = (int)threadIdx.x % group;
    const int64_t matrix = (int64_t)blockIdx.x * ((int)blockDim.x / group) + slot;
    const bool present = matrix < job.count;
    const int64_t index = present ? matrix : 0;
    const scalar *w = job.w + index * job.r * job.c, *from = job.tau + index * job.c;
    scalar *v = (scalar *)shared + slot * apply_numbers(R, group, job.x.rows);
    scalar *tau = v + R * R, *tile = tau + R, *vectors = job.x.d_x + index * job.x.next;

    for (int at = lane; at < R * R; at += group) {
        /* neighbours in w are neighbours here */
        const int i = job.right ? at % R : at / R, k = job.right ? at / R : at % R;
        const bool used = i < job.reflectors && k < job.n;

        v[i * R + k] = used ? reflector_at(job, w, i, k) : REAL(0);
    }
    for (int i = lane; i < job.reflectors; i += group) {
        tau[i] = factor_of(job, from[i]);
    }
    __syncwarp();
    for (int64_t first = 0; first < job.x.count; first += group) {
        const bool active = present && first + lane < job.x.count;
        const int here = (int)(job.x.count - first < group ? job.x.count - first : group);
        scalar x[R];

        if (job.x.rows) {
            for (int j = 0; j < here && present; j++) {
                for (int k = lane; k < job.n; k += group) {
                    tile[j * (R + 1) + k] = vectors[vector_entry(job.x, k, first + j)];
                }
            }
            __syncwarp();
        }
#pragma unroll
        for (int k = 0; k < R; k++) {
            x[k] = !active || k >= job.n ? REAL(0)
                   : job.x.rows          ? tile[lane * (R + 1) + k]
                                         : vectors[vector_entry(job.x, k, first + lane)];
        }
        for (int step = 0; step < job.reflectors; step++) {
            const int i = job.ascending ? step : job.reflectors - 1 - step;

            reflect_vector<R>(v + i * R, tau[i], x);
        }
#pragma unroll
        for (int k = 0; k < R; k++) {
            if (active && k < job.n) {
                if (job.x.rows) {
                    tile[lane * (R + 1) + k] = x[k];
                } else {
                    vectors[vector_entry(job.x, k, first + lane)] = x[k];
                }
            }
        }
        if (job.x.rows) {
            __syncwarp();
            for (int j = 0; j < here && present; j++) {
                for (int k = lane; k < job.n; k += group) {
                    vectors[vector_entry(job.x, k, first + j)] = tile[j * (R + 1) + k];
                }
            }
            __syncwarp();
        }
    }
}

#endif
