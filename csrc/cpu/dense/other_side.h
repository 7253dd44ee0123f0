/*
 * Vectors of one side from those of the other, see other_side.c.
 */
#ifndef TSVDI_CPU_DENSE_OTHER_SIDE_H
#define TSVDI_CPU_DENSE_OTHER_SIDE_H

#include "cpu/matrix/stages.h"

/* Whether a job may do it.  A worker's workspace then holds A. */
int tsvdi_cpu_dense_can_make_side(const struct dense_problem *p, int keep);

/* How many of the wanted vectors of matrix i have large values, s as the SVD of B left them.  0 if
   they are not the majority: then it does not pay. */
tsvd_status tsvdi_cpu_dense_large_values(const struct tsvd_context *ctx,
                                         const struct dense_job *job, int64_t i, int64_t *large);

/* The first `count` rows of Vh (right) from columns of U, or columns of U from rows of Vh, of
   matrix i.  s [count]: their values, of the scaled matrix.  tsvdi_check() is told `done`. */
tsvd_status tsvdi_cpu_dense_make_side(const struct dense_run *run, int worker, int64_t i,
                                      int64_t count, const real *s, int right,
                                      struct dense_array left, struct dense_array right_rows,
                                      double done);

#endif
