/*
 * Inverses on the CPU: what a job holds.
 *
 *     inverse.c   the operations of the seam, memory, scaling
 *     refine.c    the step of Newton's iteration
 */
#ifndef TSVDI_CPU_INVERSE_RUN_H
#define TSVDI_CPU_INVERSE_RUN_H

#include "cpu/dense/run.h"

/* All matrices are stored by columns.  What is inverted is the transpose of A: read by columns, the
   rows of the results are its inverse. */
struct inverse_run {
    struct dense_run dense; /* w: the results; work: the room of the workers */
    struct inverse_job *job;
    double *rcond; /* [count] of each matrix; SINGULAR: a pivot is zero */
    int64_t room;  /* bytes of a worker's room, a multiple of a cache line's */
};

/* refine.c: a step on Y [n][n], the inverse of S [n][n] as it was found.  It leaves Y as it is
   where I - S Y is too large for the step to pay.  room: of so many bytes; S is its first part. */
uint64_t tsvdi_cpu_inverse_refine_room(int64_t n);
void tsvdi_cpu_inverse_refine(const struct dense_run *run, int64_t n, double *room, real *y);

#endif
