/*
 * One-sided Jacobi on the device: from the columns of X and J to the results.
 */
#ifndef TSVDI_CUDA_JACOBI_PLACE_H
#define TSVDI_CUDA_JACOBI_PLACE_H

#include "jacobi/jacobi_run.h"

enum {
    PLACE_THREADS = 256,
    PLACE_WARPS = sizeof(scalar) > 8 ? 2 : 4, /* of a block, one for each small matrix */
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

/* Vector j of c entries, a column of conj(J). */
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

/* What a left vector with this largest entry is multiplied by. */
static __device__ __forceinline__ scalar
turn_of(scalar most)
{
#if TSVD_COMPLEX
    return turns(most) ? n_conj(most) / r_sqrt(n_abs2(most)) : scalar(1);
#else
    return most < 0 ? REAL(-1) : REAL(1);
#endif
}

/* An entry of that vector, of which the largest one becomes real, exactly.  by: turn_of(most) */
static __device__ __forceinline__ scalar
turned_entry(scalar x, scalar by, scalar most)
{
    const scalar turned = n_mul(by, x);

    return x == most ? scalar(n_real(turned)) : turned;
}

/* How vectors are turned, by ranks. */
struct place_turns {
    const scalar *by, *most; /* as in turned_entry() */
};

/* Writes `count` vectors of n entries from rank `first` on to [count][n] if `rows`, or [n][count].
   Entry i of the vector of rank j is from[j vector + i entry], turned; conjugated: the conjugate of
   that.  LANES threads do that; there are at most MOST vectors, and at most MOST entries. */
template <int LANES, int MOST>
static __device__ __forceinline__ void
write_vectors(const scalar *from, const struct place_turns &turns, int vector, int entry, int first,
              int count, int n, bool rows, bool conjugated, int lane, scalar *to)
{
    const int inner = rows ? n : count, outer = rows ? count : n;

#pragma unroll 4
    for (int j = 0; j < outer; j++) {
#pragma unroll
        for (int half = 0; half < MOST; half += LANES) {
            const int i = lane + half, rank = first + (rows ? j : i);

            if (i < inner) {
                const scalar by = turns.by[rank], most = turns.most[rank];
                const scalar x =
                    turned_entry(from[rank * vector + (rows ? i : j) * entry], by, most);

                to[j * inner + i] = conjugated ? n_conj(x) : x;
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

/* How the vectors of a warp are turned, of which lane j has number j: by what the lanes know, and
   by what they know of number j; an entry of this lane's left vector, and one of row j of Vh. */
#if TSVD_COMPLEX
typedef scalar lane_turns;

static __device__ __forceinline__ lane_turns
turn_lanes(scalar most)
{
    return turn_of(most);
}

static __device__ __forceinline__ scalar
turned_in_lane(lane_turns by, scalar most, scalar x)
{
    return turned_entry(x, by, most);
}

static __device__ __forceinline__ lane_turns
turns_of_row(lane_turns by, int j)
{
    return n_conj(__shfl_sync(0xffffffffu, by, j));
}

static __device__ __forceinline__ scalar
turned_in_row(lane_turns of_row, int, scalar x)
{
    return n_mul(of_row, x);
}
#else
typedef unsigned lane_turns; /* bit j: number j is negated */

static __device__ __forceinline__ lane_turns
turn_lanes(scalar most)
{
    return __ballot_sync(0xffffffffu, most < 0);
}

static __device__ __forceinline__ scalar
turned_in_lane(lane_turns, scalar most, scalar x)
{
    return most < 0 ? -x : x;
}

static __device__ __forceinline__ lane_turns
turns_of_row(lane_turns negative, int)
{
    return negative;
}

static __device__ __forceinline__ scalar
turned_in_row(lane_turns negative, int j, scalar x)
{
    return negative >> j & 1 ? -x : x;
}
#endif

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
    lane_turns by;
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
    by = turn_lanes(most);
#pragma unroll 8
    for (int i = 0; i < (lane < columns ? rows : 0); i++) {
        const scalar entry = turned_in_lane(by, most, tile[lane][i]);

        u[i * columns + lane] = lost ? lost_entry() : entry;
    }
    for (int j = 0; j < v_rows; j += PLACE_ONCE) {
        read_vectors(q, extra, transposed, matrix, j, to.first, v_rows, v_columns, x);
#pragma unroll
        for (int l = 0; l < PLACE_ONCE; l++) {
            const lane_turns of_row = turns_of_row(by, j + l);

            if (j + l < v_rows && lane < v_columns) {
                const scalar entry = turned_in_row(of_row, j + l, x[l]);

                vh[(j + l) * v_columns + lane] = lost ? lost_entry() : entry;
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
