/*
 * One call of tsvd_svd(), or of tsvd_dense_svd(), as the core sees it: the arguments, checked and
 * put together by api/problem.c.
 */
#ifndef TSVDI_PROBLEM_H
#define TSVDI_PROBLEM_H

#include <stddef.h>

#include "backend/handle.h"

struct host_environment; /* host/environment.h */
struct method;           /* backend/method.h */

/* Where d, or e, of each matrix of a batch lies. */
struct svd_input {
    const void *data;                             /* the first entry of the first matrix */
    ptrdiff_t stride;                             /* bytes between entries */
    ptrdiff_t batch_strides[TSVD_MAX_BATCH_DIMS]; /* bytes between matrices; 0 broadcasts */
};

/* The arguments of a call. */
struct svd_problem {
    tsvd_handle *handle;
    const tsvd_options *options;
    const struct method *method; /* that is asked for; NULL: AUTO */
    tsvd_dtype dtype;            /* of d, e and the results */
    int64_t n;                   /* order of every matrix */
    int64_t first, k; /* wanted of each matrix: the values of index first .. first + k - 1 */
    int vectors;      /* 1: the vectors of these values are wanted too */
    int batch_ndim;   /* leading dimensions of the batch */
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS]; /* [batch_ndim] */
    int64_t matrices;                         /* matrices in the whole batch */
    int too_large;   /* 1: the sizes cannot be addressed.  `matrices` is then not known, and only a
                        plan can be made */
    tsvd_space from; /* where d and e lie */
    tsvd_space to;   /* where the results lie */
    struct svd_input d, e;
    void *s, *L, *R;                /* results; L and R are NULL without vectors */
    struct host_environment *outer; /* the caller's floating-point environment, which
                                       options->check() runs in */
};

/* The arguments of a call for dense matrices. */
struct dense_problem {
    /* What is wanted of the bidiagonal matrices: n is the smaller of the two orders, and L, s and R
       are U, S and Vh.  d and e are not used. */
    struct svd_problem b;
    int64_t rows, columns;                        /* of every matrix */
    int full;                                     /* 1: U is rows x rows, Vh columns x columns */
    const void *a;                                /* the first entry of the first matrix */
    ptrdiff_t row_stride, column_stride;          /* bytes between rows, and between columns */
    ptrdiff_t batch_strides[TSVD_MAX_BATCH_DIMS]; /* bytes between matrices; 0 broadcasts */
};

/* Vectors that Q or P is applied to: for each matrix the columns of a C-contiguous array
   [rows of A][columns] for Q, or [columns of A][columns] for P. */
struct dense_vectors {
    void *x;          /* the arrays of all matrices, one after another */
    tsvd_space space; /* where it lies */
    int64_t columns;
    int right;      /* 1: P, 0: Q */
    int transposed; /* 1: its transpose */
};

#endif
