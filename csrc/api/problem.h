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

/* Sets where the results go. */
tsvd_status tsvdi_problem_output(const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
                                 struct svd_problem *problem, tsvd_error *error);

#endif
