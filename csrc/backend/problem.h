/*
 * The calls of the public functions as the core sees them: their arguments, checked and put
 * together by api/problem.c.  A bidiagonal, a dense and an inverse problem each have the arguments
 * that all calls have, a batch, and matrices of their own kind.
 */
#ifndef TSVDI_PROBLEM_H
#define TSVDI_PROBLEM_H

#include <stddef.h>

#include "backend/handle.h"

struct host_environment; /* host/environment.h */
struct method;           /* backend/method.h */

/* The arguments that all calls have. */
struct call_args {
    tsvd_handle *handle;
    const tsvd_options *options;
    struct host_environment *outer; /* the caller's floating-point environment, which
                                       options->check() runs in */
    tsvd_space to;                  /* where the results lie */
};

/* A batch of matrices of one shape. */
struct batch {
    int ndim;                           /* leading dimensions */
    int64_t shape[TSVD_MAX_BATCH_DIMS]; /* [ndim] */
    int64_t matrices;                   /* in the whole batch */
    int64_t all;   /* the same of the call that this one is a part of: methods go by it */
    int too_large; /* 1: the sizes cannot be addressed.  `matrices` is then not known, and only a
                      plan can be made */
};

/* Bytes from the first matrix of a batch to matrix `index`. */
static inline ptrdiff_t
batch_offset(const struct batch *batch, const ptrdiff_t *strides, int64_t index)
{
    ptrdiff_t offset = 0;

    for (int i = batch->ndim - 1; i >= 0; i--) {
        offset += (ptrdiff_t)(index % batch->shape[i]) * strides[i];
        index /= batch->shape[i];
    }
    return offset;
}

/* Where d, or e, of each matrix of a batch lies.  It has n entries, and e n - 1 + extra. */
struct svd_input {
    const void *data;                             /* the first entry of the first matrix */
    ptrdiff_t stride;                             /* bytes between entries */
    ptrdiff_t batch_strides[TSVD_MAX_BATCH_DIMS]; /* bytes between matrices; 0 broadcasts */
};

/* The SVD of bidiagonal matrices, B = L diag(s) R. */
struct svd_problem {
    struct call_args call;
    struct batch batch;
    const struct method *method; /* that is asked for; NULL: AUTO */
    tsvd_dtype dtype;            /* of d, e and the results */
    tsvd_space from;             /* where d and e lie */
    struct svd_input d, e;
    int64_t rows, columns; /* of every matrix: n, but n + 1 on the side that `extra` adds to */
    int64_t n;             /* entries of d, and values */
    int extra;             /* 1: e has n entries, not n - 1: the matrices are n x (n+1), or lower
                              ones (n+1) x n */
    int64_t first, k;      /* wanted of each matrix: the values of index first .. first + k - 1 */
    int64_t whole_first, whole_k; /* the same of the call that this one is a part of; or first, k */
    int vectors;                  /* 1: the vectors of these values are wanted too */
    int full;                     /* 1: and the null vector of the side with n + 1 entries */
    void *s, *L, *R;              /* results; L and R are NULL without vectors */
    int64_t left_stride; /* numbers from one row of L to the next: left_vectors(), or more where
                              the back end sends the rows of a single matrix to the host */
};

/* Entries of e; of order 0 there are none. */
static inline int64_t
entries_of_e(const struct svd_problem *p)
{
    return p->n > 0 ? p->n - 1 + p->extra : 0;
}

/* Columns of L, and rows of R. */
static inline int64_t
left_vectors(const struct svd_problem *p)
{
    return p->full ? p->rows : p->k;
}

static inline int64_t
right_vectors(const struct svd_problem *p)
{
    return p->full ? p->columns : p->k;
}

/* Dense matrices, where the caller has them. */
struct dense_matrices {
    struct batch batch;
    tsvd_dtype dtype;
    tsvd_space space;
    int64_t rows, columns;                        /* of every matrix */
    const void *data;                             /* the first entry of the first matrix */
    ptrdiff_t row_stride, column_stride;          /* bytes between rows, and between columns */
    ptrdiff_t batch_strides[TSVD_MAX_BATCH_DIMS]; /* bytes between matrices; 0 broadcasts */
};

/* The SVD of dense matrices, A = U diag(S) Vh, or their reduction to bidiagonal form. */
struct dense_problem {
    struct call_args call;
    struct dense_matrices a;
    const struct method *method; /* as in struct svd_problem */
    int64_t n;                   /* values of every matrix: the smaller of rows and columns */
    int64_t first, k, whole_first, whole_k; /* as in struct svd_problem */
    int vectors;
    int full;            /* 1: U is rows x rows, Vh columns x columns */
    void *U, *S, *Vh;    /* results; U and Vh are NULL without vectors */
    int64_t left_stride; /* as in struct svd_problem */
};

/* The inverses of dense matrices, which are square. */
struct inverse_problem {
    struct call_args call;
    struct dense_matrices a;
    int refine; /* 1: with a step of Newton's iteration */
    void *X;    /* results */
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

/* Results of matrices that lie by columns. */
struct column_results {
    tsvd_handle *handle;
    tsvd_space space; /* where they lie */
    int64_t matrices, rows, columns;
    int64_t k;                           /* values of each matrix */
    int64_t left_vectors, right_vectors; /* columns of U, and rows of Vh */
    void *left;                          /* U, [matrices][left_vectors][rows] */
    void *right;                         /* Vh, [matrices][columns][right_vectors] */
};

#endif
