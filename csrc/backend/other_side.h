/*
 * Vectors of one side of a dense matrix from those of the other: U = A V S^-1, V^H = S^-1 U^H A.
 * Which vectors are made so; the back ends multiply.
 */
#ifndef TSVDI_OTHER_SIDE_H
#define TSVDI_OTHER_SIDE_H

#include "backend/ops.h"

/* The least share of s_1 that is large: 1 / 16.  Residuals are then 16 times as large in U^H U. */
enum { OTHER_SIDE_SHARE = 16 };

/* *large: how many of the wanted vectors of a matrix have large values: s [k] as the SVD of B left
   them, d and e [n] are B.  0 if they are not the majority: then it does not pay. */
static inline tsvd_status
large_values(const struct tsvd_context *ctx, const struct dense_problem *p, const real *s,
             const real *d, const real *e, int64_t *large)
{
    real most = 0;
    int64_t count = 0, all;
    tsvd_status ret = TSVD_OK;

    for (int64_t j = 0; j < p->n; j++) { /* s_1^2 <= the largest sum of a row times of a column */
        const real row = r_abs(d[j]) + (j + 1 < p->n ? r_abs(e[j]) : 0);
        const real column = r_abs(d[j]) + (j > 0 ? r_abs(e[j - 1]) : 0);

        most = r_max(most, r_max(row, column));
    }
    if (p->whole_first == 0 && (p->first > 0 || p->k > 0)) {
        double first =
            p->first == 0 ? (double)s[0] : 0; /* the part that has s_1 tells the others */

        TSVD_TRY(tsvdi_sum_over_parts(ctx, 1, &first));
        most = first > 0 ? (real)first : most;
    }
    while (count < p->k && s[count] > 0 && s[count] >= most / REAL(OTHER_SIDE_SHARE)) {
        count++;
    }
    all = count;
    TSVD_TRY(tsvdi_agree(ctx, &all));
    *large = 2 * all > p->whole_k ? count : 0;
out:
    return ret;
}

#endif
