/*
 * Whether the results of a call share memory with its input or with each other.
 */
#ifndef TSVDI_API_OVERLAP_H
#define TSVDI_API_OVERLAP_H

#include "backend/problem.h"

/* Refuse a problem whose arrays, all of which are set, overlap. */
tsvd_status tsvdi_check_apart(const struct svd_problem *problem, tsvd_error *error);
tsvd_status tsvdi_dense_check_apart(const struct dense_problem *problem, tsvd_error *error);
tsvd_status tsvdi_inverse_check_apart(const struct inverse_problem *problem, tsvd_error *error);

/* Refuses results of dense matrices that overlap each other, where the matrices are not read. */
tsvd_status tsvdi_dense_check_results_apart(const struct dense_problem *problem, tsvd_error *error);

/* Refuses two results that overlap. */
tsvd_status tsvdi_check_two_apart(const tsvd_array *a, const char *a_name, const tsvd_array *b,
                                  const char *b_name, tsvd_error *error);

#endif
