/*
 * The arguments of a call, checked and put together.
 */
#ifndef TSVDI_API_PROBLEM_H
#define TSVDI_API_PROBLEM_H

#include "backend/problem.h"

/* Sets the matrices, and what is wanted of them.  data: 1 if the arrays of d and e must have
   data. */
tsvd_status tsvdi_problem_input(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                                const tsvd_options *options, int data, struct svd_problem *problem,
                                tsvd_error *error);

/* Sets where the results go, and finds by the shapes whether the null vector is wanted.  Whether
   they overlap, overlap.h tells. */
tsvd_status tsvdi_problem_output(const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
                                 struct svd_problem *problem, tsvd_error *error);

/* Refuses the data of an array that has numbers: NULL, or an address that is no multiple of their
   size. */
tsvd_status tsvdi_check_data(tsvd_space space, tsvd_dtype dtype, const void *data, const char *name,
                             tsvd_error *error);

/* Refuses an interval of values that is empty, or asked of a batch. */
tsvd_status tsvdi_check_interval(const struct batch *batch, double low, double high,
                                 tsvd_error *error);

/* The same for dense matrices.  output() finds by the shapes whether `full` bases are wanted. */
tsvd_status tsvdi_dense_input(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
                              int data, struct dense_problem *problem, tsvd_error *error);
tsvd_status tsvdi_dense_output(const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh,
                               struct dense_problem *problem, tsvd_error *error);

/* Set which vectors are wanted, and whether the sizes of those can be addressed.  0: none; 1: those
   of the wanted values; 2: if all are wanted, with the further vectors of the longer side.  For a
   call without arrays for the results; else output() does it. */
void tsvdi_problem_wants(struct svd_problem *problem, int vectors);
void tsvdi_dense_wants(struct dense_problem *problem, int vectors);

/* Sets what is wanted of a problem whose matrices are known. */
tsvd_status tsvdi_dense_options(const tsvd_options *options, struct dense_problem *problem,
                                tsvd_error *error);

/* Refuses an array unless it is C-contiguous, has the dtype of the matrices, and the shape
   (batch..., rows, columns); columns < 0: (batch..., rows). */
tsvd_status tsvdi_dense_array(const struct dense_problem *problem, const tsvd_array *x,
                              const char *name, int64_t rows, int64_t columns, tsvd_error *error);

/* The same for inverses. */
tsvd_status tsvdi_inverse_input(tsvd_handle *handle, const tsvd_array *a,
                                const tsvd_options *options, int data, int refine,
                                struct inverse_problem *problem, tsvd_error *error);
tsvd_status tsvdi_inverse_output(const tsvd_array *X, struct inverse_problem *problem,
                                 tsvd_error *error);

#endif
