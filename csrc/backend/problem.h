/*
 * One call of tsvd_svd() as the core sees it: the arguments, checked and put together by
 * api/problem.c.
 */
#ifndef TSVDI_PROBLEM_H
#define TSVDI_PROBLEM_H

#include <stddef.h>

#include "backend/handle.h"

/* d or e of a batch: where each matrix's lies. */
struct svd_input {
    const void *data;
    ptrdiff_t stride;                             /* bytes between entries */
    ptrdiff_t batch_strides[TSVD_MAX_BATCH_DIMS]; /* bytes; 0 broadcasts */
};

struct svd_problem {
    tsvd_handle *handle;
    const tsvd_options *options;
    tsvd_dtype dtype;
    int64_t n;        /* order of every matrix */
    int64_t first, k; /* wanted of each matrix: the values of index first .. first + k - 1 */
    int vectors;      /* and their vectors */
    int batch_ndim;
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS];
    int64_t matrices; /* of the whole batch */
    int too_large;    /* 1: the sizes cannot be addressed, and `matrices` is not known; a plan alone
                         is then made */
    tsvd_space from;  /* where d and e lie */
    tsvd_space to;    /* where the results lie */
    struct svd_input d, e;
    void *s, *L, *R; /* results; L and R are NULL without vectors */
};

#endif
