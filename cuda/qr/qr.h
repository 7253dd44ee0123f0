/*
 * QR of matrices on the device.
 *
 *   qr/qr.cu        by Householder reflectors, of matrices with many more rows than columns
 *   qr/cholesky.cu  by Cholesky decompositions: far faster, of those that it can do
 */
#ifndef TSVDI_CUDA_QR_QR_H
#define TSVDI_CUDA_QR_QR_H

#include "matrix/matrix.h"

/* qr.cu: QR of w, r x c: R to `r_factor`, c x c, the reflectors to w and tau. */
uint64_t tsvdi_cuda_dense_qr_bytes(const struct cuda_call *call, int64_t r, int64_t c,
                                   int64_t count);
tsvd_status tsvdi_cuda_dense_qr(struct tsvd_context *ctx, const struct cuda_dense *run,
                                char *d_work);

/* cholesky.cu: the same, with W1 to w and I - T to `correction`, if all of the matrices are conditioned
   well enough.  Returns when that is known. */
enum cholesky_outcome {
    CHOLESKY_MADE,
    CHOLESKY_REFUSED, /* w is as it was */
    CHOLESKY_SPOILED  /* not made either, but w has changed */
};
uint64_t tsvdi_cuda_dense_cholesky_bytes(const struct cuda_call *call, int64_t r, int64_t c,
                                         int64_t count);
tsvd_status tsvdi_cuda_dense_cholesky(struct tsvd_context *ctx, const struct cuda_dense *run,
                                      char *d_work, enum cholesky_outcome *outcome);

/* cholesky.cu: Q X of each matrix, which is `orthonormal`; k vectors are the columns of X, [c][k],
   and of the result, [r][k]; or the rows, [k][c] and [k][r].  d_work: count c k numbers. */
tsvd_status tsvdi_cuda_dense_expand(struct cuda_call *call, const struct cuda_dense *run, int64_t k,
                                    int rows, const real *d_x, real *d_to, char *d_work);

#endif
