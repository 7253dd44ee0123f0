/*
 * Batches of small dense matrices: what the kernels of small_warp.cuh and small_block.cuh share.
 *
 * Step i of the reduction annihilates column i below the diagonal, by a reflector from the left,
 * and row i right of the superdiagonal, by one from the right:
 *
 *     y = conj(tau_q) v^H A,   row = row i of A - v y,   z = tau_p (A u - v (y u)),
 *     A := A - v y - z u^H,
 *
 * where A is what is left of the matrix, rows i.. and columns i + 1.., v the left reflector, and u
 * the right one, made from the conjugate of `row`; y and `row` are rows.  The update is deferred to
 * step i + 1, which reads A for its own y anyway.  Only the next column is updated before that, for
 * the next v.  So a step reads A twice and writes it once.
 *
 * Every sum has a fixed order.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_SMALL_RUN_H
#define TSVDI_CUDA_BIDIAGONALIZE_SMALL_RUN_H

#include "bidiagonalize/bidiagonalize.h"
#include "math/reflector.h"

/* A batch that is reduced, as in struct dense_reduction. */
struct small_batch {
    int r, c;
    int64_t count;
    scalar *w, *tau_q, *tau_p;
    real *d, *e;
};

/* Reflectors that are applied to the vectors of a batch. */
struct small_job {
    int r, c; /* of the matrices */
    int64_t count;
    const scalar *w, *tau;
    int right;      /* 1: P, 0: Q */
    int ascending;  /* 1: the adjoints of the reflectors, of which the first is applied first */
    int n;          /* entries of a vector: r, or c for P */
    int reflectors; /* those that are not the identity */
    struct dense_block x;
};

static __device__ __forceinline__ int
small_lane(void)
{
    return (int)threadIdx.x % WARP;
}

/* The sum over groups of WIDTH neighbours of a warp, the same bits in each. */
template <int WIDTH, typename number>
static __device__ __forceinline__ number
group_sum(number x)
{
#pragma unroll
    for (int half = WIDTH / 2; half > 0; half /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, half);
    }
    return x;
}

/* The column (row, for P) in which reflector i has its 1. */
static __device__ __forceinline__ int
reflector_first(const struct small_job &job, int i)
{
    return i + job.right;
}

/* Entry k of reflector i, 0 <= k < n, from what the reduction left in w; its conjugate if the
   vectors are conjugates. */
static __device__ __forceinline__ scalar
reflector_at(const struct small_job &job, const scalar *w, int i, int k)
{
    const int first = reflector_first(job, i);
    const scalar entry = k < first ? REAL(0)
                         : k == first
                             ? REAL(1)
                             : w[job.right ? (int64_t)k * job.r + i : (int64_t)i * job.r + k];

    return job.x.conjugated ? n_conj(entry) : entry;
}

/* The factor of a reflector as it is applied: of H, or of its adjoint, and for vectors that are
   conjugates the conjugate of that. */
static __device__ __forceinline__ scalar
factor_of(const struct small_job &job, scalar tau)
{
    return job.ascending != job.x.conjugated ? n_conj(tau) : tau;
}

/* Where entry k of vector j is among those of a matrix. */
static __device__ __forceinline__ int64_t
vector_entry(const struct dense_block &x, int k, int64_t j)
{
    return x.rows ? j * x.stride + k : (int64_t)k * x.stride + j;
}

#endif
