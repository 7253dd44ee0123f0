/*
 * One-sided Jacobi on the device: from the columns of X and J to the results.
 */
#ifndef TSVDI_CUDA_JACOBI_PLACE_H
#define TSVDI_CUDA_JACOBI_PLACE_H

#include "jacobi/jacobi_run.h"

enum {
    PLACE_THREADS = 256,
    PLACE_WARPS = 4, /* of a block, one for each small matrix */
    PLACE_SMALL_THREADS = PLACE_WARPS * (int)WARP,
    PLACE_ONCE = 8 /* vectors that are read at once */
};

/* Vector j of r entries: the first c in the order of the values, later ones from `extra`. */
static __device__ __forceinline__ scalar *
basis_vector(const struct jacobi_batch &q, scalar *extra, int64_t matrix, int j)
{
    return j < q.c ? q.w + (matrix * q.c + q.order[matrix * q.c + j]) * q.r
                   : extra + (matrix * (q.r - q.c) + j - q.c) * q.r;
}

/* Vector j of c entries. */
static __device__ __forceinline__ const scalar *
other_vector(const struct jacobi_batch &q, int64_t matrix, int j)
{
    return q.v + (matrix * q.c + q.order[matrix * q.c + j]) * q.c;
}

/* ---- any matrices ---- */

/* `count` vectors from rank `first` on, [n][count] or, if `rows`, [count][n]: those of r entries,
   or, if `v`, those of c; the other way round for a transposed matrix, which is square. */
static __global__ void
__launch_bounds__(PLACE_THREADS)
    place_vectors_kernel(struct jacobi_batch q, scalar *extra, int v, int first, int count,
                         int rows, unsigned parts, scalar *to)
{
    const int64_t matrix = blockIdx.x / parts;
    const int n = v ? q.c : q.r, at = (int)(blockIdx.x % parts * PLACE_THREADS + threadIdx.x);
    const int i = rows ? at % n : at / count, j = rows ? at / n : at % count;

    if (at < n * count) {
        to[matrix * n * count + at] = (v != 0) != q.transposed[matrix]
                                          ? other_vector(q, matrix, first + j)[i]
                                          : basis_vector(q, extra, matrix, first + j)[i];
    }
}

static __global__ void
__launch_bounds__(PLACE_THREADS)
    place_values_kernel(struct jacobi_batch q, int64_t first, int64_t k, real *to)
{
    const int64_t at = (int64_t)blockIdx.x * PLACE_THREADS + threadIdx.x;

    if (at < q.count * k) {
        to[at] = q.s[at / k * q.c + first + at % k];
    }
}

static tsvd_status
place_vectors(struct cuda_call *call, const struct jacobi_batch &q, scalar *extra, int v,
              int64_t first, int64_t count, int rows, scalar *d_to)
{
    const int64_t n = v ? q.c : q.r;
    const unsigned parts = blocks_for(n * count, PLACE_THREADS);
    tsvd_status ret = TSVD_OK;

    if (parts == 0) {
        goto out;
    }
    place_vectors_kernel<<<(unsigned)(parts * q.count), PLACE_THREADS, 0, call->stream>>>(
        q, extra, v, (int)first, (int)count, rows, parts, d_to);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- by the threads of pairs.cuh, in its kernel ---- */

/* Writes the value of that rank, if it is wanted. */
static __device__ __forceinline__ void
write_value(const struct jacobi_batch &q, const struct jacobi_results &to, int64_t matrix,
            bool placed, int rank, real value)
{
    if (placed && rank >= to.first && rank < to.first + to.k) {
        to.s[matrix * to.k + rank - to.first] = value;
    }
    if (!placed && rank < q.c) {
        q.s[matrix * q.c + rank] = value;
    }
}

/* Writes `count` vectors of n entries from rank `first` on to [count][n] if `rows`, or [n][count].
   Entry i of the vector of rank j is sign[j] from[j vector + i entry].  LANES threads do that;
   there are at most MOST vectors, and at most MOST entries. */
template <int LANES, int MOST>
static __device__ __forceinline__ void
write_vectors(const scalar *from, const scalar *sign, int vector, int entry, int first, int count,
              int n, bool rows, int lane, scalar *to)
{
    const int inner = rows ? n : count, outer = rows ? count : n;

#pragma unroll 4
    for (int j = 0; j < outer; j++) {
#pragma unroll
        for (int half = 0; half < MOST; half += LANES) {
            const int i = lane + half, rank = first + (rows ? j : i);

            if (i < inner) {
                to[j * inner + i] = sign[rank] * from[rank * vector + (rows ? i : j) * entry];
            }
        }
    }
}

/* ---- matrices up to WARP x WARP ---- */

/* Entry `lane` of vectors j to j + PLACE_ONCE - 1, those of r entries if `longer`; zeros beyond
   `count` vectors of `size` entries.  All loads are in flight before the first result is used. */
static __device__ __forceinline__ void
read_vectors(const struct jacobi_batch &q, scalar *extra, bool longer, int64_t matrix, int j,
             int first, int count, int size, scalar x[PLACE_ONCE])
{
    const int lane = (int)threadIdx.x % WARP;

#pragma unroll
    for (int l = 0; l < PLACE_ONCE; l++) {
        x[l] = 0;
        if (j + l < count && lane < size) {
            x[l] = longer ? basis_vector(q, extra, matrix, first + j + l)[lane]
                          : other_vector(q, matrix, first + j + l)[lane];
        }
    }
}

/* All results in one pass, with the signs that tsvdi_cuda_dense_finish() gives to larger matrices.
   refused: only matrices that pairs.cuh refused. */
static __global__ void
__launch_bounds__(PLACE_SMALL_THREADS)
    place_small_kernel(struct jacobi_batch q, scalar *extra, struct dense_shape shape,
                       struct jacobi_results to, bool refused)
{
    __shared__ scalar tiles[PLACE_WARPS][WARP][WARP + 1]; /* [j] vector j on the left */
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int64_t matrix = (int64_t)blockIdx.x * PLACE_WARPS + warp;
    const int rows = (int)shape.u_rows, columns = (int)shape.u_columns;
    const int v_rows = (int)shape.v_rows, v_columns = (int)shape.v_columns;
    scalar(*const tile)[WARP + 1] = tiles[warp];
    scalar x[PLACE_ONCE], most = 0, *u, *vh;
    unsigned negative;
    bool lost, transposed;

    if (matrix >= q.count || (refused && !q.refused[matrix])) {
        return;
    }
    lost = q.kind[matrix] == NONFINITE;
    transposed = (to.transposed != 0) != q.transposed[matrix];
    u = to.u + matrix * rows * columns;
    vh = to.vh + matrix * v_rows * v_columns;
    for (int j = 0; j < columns; j += PLACE_ONCE) {
        read_vectors(q, extra, !transposed, matrix, j, to.first, columns, rows, x);
#pragma unroll
        for (int l = 0; l < PLACE_ONCE; l++) {
            tile[j + l][lane] = x[l];
        }
    }
    __syncwarp();
    for (int i = 0; i < (lane < to.k ? rows : 0); i++) {
        most = larger_entry(most, tile[lane][i]);
    }
    negative = __ballot_sync(0xffffffffu, most < 0);
#pragma unroll 8
    for (int i = 0; i < (lane < columns ? rows : 0); i++) {
        const scalar entry = most < 0 ? -tile[lane][i] : tile[lane][i];

        u[i * columns + lane] = lost ? REAL(NAN) : entry;
    }
    for (int j = 0; j < v_rows; j += PLACE_ONCE) {
        read_vectors(q, extra, transposed, matrix, j, to.first, v_rows, v_columns, x);
#pragma unroll
        for (int l = 0; l < PLACE_ONCE; l++) {
            if (j + l < v_rows && lane < v_columns) {
                const scalar entry = negative >> (j + l) & 1 ? -x[l] : x[l];

                vh[(j + l) * v_columns + lane] = lost ? REAL(NAN) : entry;
            }
        }
    }
    if (lane < to.k) {
        to.s[matrix * to.k + lane] = lost ? REAL(NAN) : q.s[matrix * q.c + to.first + lane];
    }
}

static tsvd_status
place_small(struct cuda_call *call, const struct jacobi_batch &q, scalar *extra,
            const struct dense_shape &shape, const struct jacobi_results &to, bool refused)
{
    tsvd_status ret = TSVD_OK;

    place_small_kernel<<<blocks_for(q.count, PLACE_WARPS), PLACE_SMALL_THREADS, 0, call->stream>>>(
        q, extra, shape, to, refused);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

#endif
