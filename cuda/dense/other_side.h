/*
 * Vectors of one side from those of the other, see other_side.cu.
 */
#ifndef TSVDI_CUDA_DENSE_OTHER_SIDE_H
#define TSVDI_CUDA_DENSE_OTHER_SIDE_H

#include "matrix/stages.h"

extern "C" {
#include "backend/other_side.h"
}

/* Workspace of a job that may do it; 0: it may not. */
uint64_t tsvdi_cuda_dense_side_bytes(const struct cuda_dense *run, const struct dense_problem *p);

/* The first `count` rows of Vh (right) from columns of U, or columns of U from rows of Vh, of the
   only matrix of the chunk, as out->u and out->vh have them. */
tsvd_status tsvdi_cuda_dense_make_side(struct tsvd_context *ctx, const struct dense_job *job,
                                       const struct cuda_dense *run, int64_t count, bool right,
                                       char *d_work);

#endif
