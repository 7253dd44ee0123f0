/*
 * The reduction to bidiagonal form on the device, W = Q B P^H, B real, in one stage.  Of that
 * in two stages band.h has more.
 *
 *   bidiagonalize/reduce.cu    panel by panel; its kernel is in reduce_panel.cuh, the phases of the
 *                              rows, and in reduce_visit.cuh, those of the columns
 *   bidiagonalize/resident.cu  of what fits the shared memory of all multiprocessors
 *   bidiagonalize/small.cu     batches of small matrices, and their reflectors on vectors
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BIDIAGONALIZE_H
#define TSVDI_CUDA_BIDIAGONALIZE_BIDIAGONALIZE_H

#include "matrix/stages.h"

/* Matrices that are reduced to bidiagonal form.  All arrays are device memory. */
struct dense_reduction {
    int64_t r, c, count;
    scalar *w; /* [count][c][r] in: finite, each with its largest entry in [1, 2), or zero;
                              out: v_i below the diagonal in column i, with an implicit 1 on it; u_i
                              right of the superdiagonal in row i, with an implicit 1 on it.  All
                              other entries have no meaning */
    scalar *tau_q, *tau_p; /* [count][c] out: Q is the product of I - tau_q[i] v_i v_i^H, i
                              ascending; P likewise, its last two are 0 */
    real *d, *e;           /* [count][c] out; e has a zero after the c - 1 of each matrix */
};

/* What a stage reduces. */
static inline struct dense_reduction
dense_reduction_of(const struct cuda_dense *run, const struct stage_run *own)
{
    return {own->r, own->c, own->count, own->m, own->tau_q, own->tau_p, run->d, run->e};
}

/* resident.cu: the reduction from column `begin` on, if that part fits the shared memory of all
   multiprocessors; workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_dense_resident_bytes(const struct cuda_device *device, int64_t r,
                                         int64_t count);
bool tsvdi_cuda_dense_resident_fits(const struct cuda_device *device,
                                    const struct dense_reduction *to, int64_t begin);
tsvd_status tsvdi_cuda_dense_resident(struct cuda_call *call, const struct dense_reduction *to,
                                      int64_t begin, char *d_work);

/* small.cu: whether it takes matrices of this shape: 1 <= c <= r, c is not large, and a block's
   shared memory holds vectors of r entries.  It need not hold the matrix: the first steps then work
   in the L2 cache, which is slow for a single one. */
bool tsvdi_cuda_dense_small_fits(const struct cuda_device *device, int64_t r, int64_t c);

#endif
