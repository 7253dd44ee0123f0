/*
 * What a call does: decided once, before it runs.  A plan may run several times, with other arrays
 * of the same shapes in its problem.
 */
#ifndef TSVDI_PLAN_H
#define TSVDI_PLAN_H

#include "backend/problem.h"

struct backend; /* backend/ops.h */
struct dense_ops;
struct values_ops;

/* Of bidiagonal matrices (bidiag/plan.c). */
struct svd_plan {
    const struct svd_problem *problem; /* what was asked */
    tsvd_plan reported;                /* the public plan, as tsvd_make_plan() returns it */
    const struct method *method;       /* the one that runs, reported.method */
    int by_matrix;    /* 1: values alone, and each matrix decides between bisection and QR */
    int side_by_side; /* 1: small matrices of a batch are bisected together */
    const struct backend *backend;   /* the back end that computes */
    const struct values_ops *values; /* finds the values: of `backend`, or of the CPU */
    int host_entries;                /* 1: d and e are needed on the host */
};

/* Of dense matrices (dense/plan.c); a method with a dense_plan() of its own fills `problem` and
   `reported` alone. */
struct dense_plan {
    const struct dense_problem *problem;
    tsvd_plan reported; /* the public plan of the SVD of B; `chunk`, `matrices` and the bytes are
                            those of the dense call */
    const struct method *direct; /* decomposes A without a reduction; NULL: A is reduced */
    int keep;                    /* as in struct dense_job */
    int64_t inner_count;         /* matrices of `inner`; 0: there is no plan of the SVD of B */
    struct svd_plan inner;       /* of the SVD of B of a whole chunk, without a problem */
    const struct dense_ops *ops;
};

#endif
