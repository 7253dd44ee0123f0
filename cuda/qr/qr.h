/*
 * QR of matrices on the device.
 *
 *   qr/qr.cu        by Householder reflectors, of matrices with many more rows than columns
 *   qr/cholesky.cu  by Cholesky decompositions: far faster, of those that it can do; a stage of
 *                   reductions alone
 */
#ifndef TSVDI_CUDA_QR_QR_H
#define TSVDI_CUDA_QR_QR_H

#include "matrix/stages.h"

/* Matrices whose QR is made.  All arrays are device memory. */
struct cuda_qr {
    int64_t r, c, count;
    scalar *w;        /* [count][c][r] in: the matrices; out: the reflectors */
    scalar *tau;      /* [count][c] out */
    scalar *r_factor; /* [count][c][c] out: R, with zeros below its diagonal */
};

/* qr.cu: workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_dense_qr_bytes(const struct cuda_device *device, int64_t r, int64_t c,
                                   int64_t count);
tsvd_status tsvdi_cuda_dense_qr(struct tsvd_context *ctx, const struct cuda_qr *qr, char *d_work);

#endif
