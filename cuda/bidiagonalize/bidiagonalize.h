/*
 * The reduction to bidiagonal form on the device, W = Q B P^T.
 *
 *   bidiagonalize/reduce.cu    panel by panel; its kernel is in reduce_panel.cuh, the phases of the
 *                              rows, and in reduce_visit.cuh, those of the columns
 *   bidiagonalize/resident.cu  of what fits the shared memory of all multiprocessors
 *   bidiagonalize/small.cu     batches of small matrices, and their reflectors on vectors
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BIDIAGONALIZE_H
#define TSVDI_CUDA_BIDIAGONALIZE_BIDIAGONALIZE_H

#include "matrix/matrix.h"

/* Matrices that are reduced to bidiagonal form.  All arrays are device memory. */
struct dense_reduction {
    int64_t r, c, count;
    real *w;             /* [count][c][r] in: the matrices; out: the reflectors, as those of
                            tsvdi_cuda_dense_small_reduce() */
    real *tau_q, *tau_p; /* [count][c] out */
    real *d, *e;         /* [count][c] out; e has a zero after the c - 1 of each matrix */
};

/* reduce.cu: the reduction; workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_dense_reduce_bytes(const struct cuda_call *call, int64_t r, int64_t c,
                                       int64_t count);
tsvd_status tsvdi_cuda_dense_reduce(struct tsvd_context *ctx, const struct dense_reduction *to,
                                    char *d_work);

/* resident.cu: the reduction from column `begin` on, if that part fits the shared memory of all
   multiprocessors; workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_dense_resident_bytes(const struct cuda_call *call, int64_t r, int64_t count);
bool tsvdi_cuda_dense_resident_fits(const struct cuda_call *call, const struct dense_reduction *to,
                                    int64_t begin);
tsvd_status tsvdi_cuda_dense_resident(struct cuda_call *call, const struct dense_reduction *to,
                                      int64_t begin, char *d_work);

/* ---- small.cu: batches of small matrices, with a warp or a block for each; all work is on the
   call's stream, and nothing waits for it ---- */

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

/* Replaces every vector x by Q x (right = 0; r entries) or P x (right = 1; c entries), or by the
   transpose times x. */
tsvd_status tsvdi_cuda_dense_small_apply(struct cuda_call *call, int64_t r, int64_t c,
                                         int64_t count, const real *d_w, const real *d_tau,
                                         int right, int transposed, struct dense_block vectors);

#endif
