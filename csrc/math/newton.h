/*
 * Newton's iteration for the inverse: whether its step pays.
 *
 * Of M = diag(2^r) S diag(2^c) and Y, close to the inverse of S, the step Y + Y R with R = I - S Y
 * leaves R^2 in place of R (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section
 * 14.5).  That is little in the scale of S if |R| is below 1/2.  In the scale of M it is the square
 * of diag(2^r) R diag(2^-r), which may be any number of times as large.  It must not be more than
 * rounding errors of the product of M and its inverse, or the step would spoil an inverse whose
 * other residual, Y S - I, is good.
 */
#ifndef TSVDI_NEWTON_H
#define TSVDI_NEWTON_H

#include <float.h>

#include "math/real.h"

/* Sums of squares, of all entries: of R, of diag(2^r) R diag(2^-r), and of 2^exponent times M's
   inverse. */
struct newton_sums {
    double rest, own_rest, inverse;
};

/* Adds entry (i, j) of R and of Y; row, column: r and c, exponent: that of M's largest entry. */
TSVD_HD void
newton_add(struct newton_sums *sums, double rest, double y, int row_i, int row_j, int column_i,
           int exponent)
{
    const double own = ldexp(rest, row_i - row_j);
    const double x = ldexp(y, exponent - column_i - row_j);

    sums->rest += rest * rest;
    sums->own_rest += own * own;
    sums->inverse += x * x;
}

/* norm: the largest sum of magnitudes of a row of 2^-exponent M, at most sqrt(n) |M|_F.  No for
   NaN, and for sums of R that overflow; that of the inverse counts as the largest number then. */
TSVD_HD int
newton_pays(struct newton_sums sums, double norm, int64_t n)
{
    return sums.rest <= 0.25 && sums.own_rest <= (double)R_EPS * sqrt((double)n) * norm *
                                                     sqrt(fmin(sums.inverse, DBL_MAX));
}

#endif
