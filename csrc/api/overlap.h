/*
 * Whether the results of a call share memory with its input or with each other.
 */
#ifndef TSVDI_API_OVERLAP_H
#define TSVDI_API_OVERLAP_H

#include "backend/problem.h"

/* Refuse a problem whose arrays, all of which are set, overlap; results are C-contiguous. */
tsvd_status tsvdi_check_apart(const struct svd_problem *problem, tsvd_error *error);
tsvd_status tsvdi_dense_check_apart(const struct dense_problem *problem, tsvd_error *error);
tsvd_status tsvdi_inverse_check_apart(const struct inverse_problem *problem, tsvd_error *error);

/* An array as errors call it; NULL: there is none. */
struct named_array {
    const char *name;
    const tsvd_array *array;
};

/* Refuses results among `count` arrays, those from `inputs` on, that overlap any of the others. */
tsvd_status tsvdi_check_arrays_apart(const struct named_array *arrays, int inputs, int count,
                                     tsvd_error *error);

#endif
