/*
 * Batches of small dense matrices: the reduction, and its reflectors on vectors, with a warp or a
 * block for each matrix.  Compiled for each precision.
 *
 * A matrix W is r x c, r >= c, column-major, its columns contiguous; the matrices of a batch follow
 * one another.  All arrays are device memory, all work is on the call's stream, and nothing waits
 * for it.
 */
#ifndef TSVDI_CUDA_DENSE_SMALL_H
#define TSVDI_CUDA_DENSE_SMALL_H

#include "kernels.h"

/* Whether these functions take matrices of this shape: 1 <= c <= r, c is not large, and a block's
   shared memory holds vectors of r entries.  It need not hold the matrix: its first steps then work
   in the L2 cache, which is slow for a single one. */
bool tsvdi_cuda_dense_small_fits(const struct cuda_call *call, int64_t r, int64_t c);

/* Workspace of reduce(), and of apply() for `columns` vectors; 0 if none is needed. */
uint64_t tsvdi_cuda_dense_small_bytes(int64_t r, int64_t c, int64_t count, int64_t columns);

/*
 * Reduces each of `count` matrices: W = Q B P^T, B upper bidiagonal.
 *
 * d_w      [count][c][r]
 *          in: finite, each with its largest entry in [1, 2), or zero
 *          out: v_i below the diagonal in column i, with an implicit 1 on it; u_i right of the
 *          superdiagonal in row i, with an implicit 1 on it.  All other entries have no meaning
 * d_tau_q  [count][c] out: Q is the product of I - tau_q[i] v_i v_i^T, i ascending
 * d_tau_p  [count][c] out: P likewise; the last two are 0
 * d_d      [count][c] out: the diagonal of B
 * d_e      [count][c] out: the superdiagonal of B, and one zero after it
 */
tsvd_status tsvdi_cuda_dense_small_reduce(struct cuda_call *call, int64_t r, int64_t c,
                                          int64_t count, real *d_w, real *d_tau_q, real *d_tau_p,
                                          real *d_d, real *d_e);

/* Vectors that apply() changes, of each matrix. */
struct dense_small_vectors {
    real *d_x; /* those of the first matrix; those of the next are `next` numbers further on */
    int64_t next;
    int64_t count;  /* vectors of a matrix */
    int64_t stride; /* numbers between the rows of the array that holds a matrix's vectors */
    int rows;       /* 0: vector j is column j of that array, X := Q X; 1: it is row j,
                       X := X Q^T.  Either way every vector x becomes Q x */
};

/* Replaces every vector x by Q x (right = 0; r entries) or P x (right = 1; c entries), or by the
   transpose times x. */
tsvd_status tsvdi_cuda_dense_small_apply(struct cuda_call *call, int64_t r, int64_t c,
                                         int64_t count, const real *d_w, const real *d_tau,
                                         int right, int transposed,
                                         struct dense_small_vectors vectors);

#endif
