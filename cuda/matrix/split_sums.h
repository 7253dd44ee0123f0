/*
 * Products over many terms, of which a few are summed at a time.
 *
 * Rounding errors of equal terms have the same sign and add up, to about eps / 5 a term.  In a sum
 * of partial sums only the error of the longest one remains.
 */
#ifndef TSVDI_CUDA_MATRIX_SPLIT_SUMS_H
#define TSVDI_CUDA_MATRIX_SPLIT_SUMS_H

#include "kernels.h"
#include "runtime/blas.h"

/* Parts of a sum, at most. */
enum { SUM_PARTS = 32 };

/* C = A B, rows x columns, of each of `count` matrices.  step_a and step_b: numbers between a term
   of A, or of B, and the next.  shortest: terms of a part, at least. */
static inline tsvd_status
multiply_split(struct cuda_call *call, int64_t rows, int64_t columns, int64_t terms,
               struct cuda_factor a, int64_t step_a, struct cuda_factor b, int64_t step_b,
               int64_t shortest, scalar *d_c, int64_t count)
{
    const int64_t part = (terms + SUM_PARTS - 1) / SUM_PARTS,
                  each = part > shortest ? part : shortest;
    tsvd_status ret = TSVD_OK;

    for (int64_t at = 0; at < terms; at += each) {
        const int64_t some = terms - at < each ? terms - at : each;

        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, rows, columns, some, 1, a, b, at > 0,
                                         d_c, columns, rows * columns, count));
        a.d = (const scalar *)a.d + some * step_a;
        b.d = (const scalar *)b.d + some * step_b;
    }
out:
    return ret;
}

#endif
