/*
 * Results in arrays that are not C-contiguous.
 *
 * Vectors by columns, as Fortran has arrays, are those of the transpose by rows: A^T = Vh^T S U^T.
 * So if both sides lie by columns the transposes are decomposed, into the arrays of the other side,
 * and nothing is copied.  With other strides the core fills C-contiguous arrays of the call's own.
 */
#ifndef TSVDI_API_LAYOUT_H
#define TSVDI_API_LAYOUT_H

#include "backend/problem.h"

/* Most results of a call. */
enum { MOST_RESULTS = 3 };

/* What becomes of the results of a call. */
struct layout {
    tsvd_handle *handle;
    tsvd_error *error;
    tsvd_options options;             /* for the transposes */
    tsvd_dtype dtype;                 /* of the vectors */
    int by_column;                    /* 1: the transposes are decomposed */
    struct column_results by_columns; /* their results */
    int count;                        /* arrays of the call's own: */
    struct {
        const tsvd_array *to;
        void *made;
        tsvd_memory *memory; /* that holds it on a CUDA device; NULL: it is on the host */
        int own;             /* dimensions of a result of one matrix */
    } staged[MOST_RESULTS];
};

int tsvdi_layout_is_contiguous(const tsvd_array *x);

/* Sets where the core puts the results of a problem.  To be ended, unless it fails.  may_transpose:
   0 if the matrices are reduced already. */
tsvd_status tsvdi_layout_begin(const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
                               struct svd_problem *problem, struct layout *layout,
                               tsvd_error *error);
tsvd_status tsvdi_layout_begin_dense(const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh,
                                     int may_transpose, struct dense_problem *problem,
                                     struct layout *layout, tsvd_error *error);
tsvd_status tsvdi_layout_begin_inverse(const tsvd_array *X, struct inverse_problem *problem,
                                       struct layout *layout, tsvd_error *error);

/* Brings the results of a call that ended with `status` to their places; returns the status. */
tsvd_status tsvdi_layout_end(struct layout *layout, tsvd_status status);

#endif
