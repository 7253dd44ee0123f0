/*
 * Scaling of rows and columns by powers of two.
 *
 * M = diag(2^r) S diag(2^c): r_i is the exponent of the largest entry of row i, and c_j that of the
 * largest entry of column j after that.  So the entries of S are below 2, and the largest of each
 * column is 1 or more.  The inverse of M has the entry 2^-(c_i + r_j) y_ij, with Y the inverse of
 * S.  All of this is exact, but for entries of S that underflow.  It keeps the sizes of rows and of
 * columns out of the pivots, but small entries of a graded matrix may be what its inverse is made
 * of; then it can also cost digits.
 */
#ifndef TSVDI_BALANCE_H
#define TSVDI_BALANCE_H

#include "math/scalar.h"

/* The exponent of zero: below that of every number, by more than any exponent is. */
enum { BALANCE_NOTHING = -8 * (R_BIAS + 1) };

/* The exponent of x. */
TSVD_HD int
balance_exponent(real x)
{
    real_int exponent;

    (void)r_split(x, &exponent);
    return x == 0 ? BALANCE_NOTHING : (int)exponent;
}

/* The exponent to scale a row or column by whose largest one this is. */
TSVD_HD int
balance_power(int largest)
{
    return largest > BALANCE_NOTHING / 2 ? largest : 0;
}

/* x 2^power, by four factors, since one may be out of range.  Those of a negative power, above
   -2 R_BIAS, are so large that only the last one underflows.  A power beyond what four factors
   reach gives infinity, or zero for zero. */
TSVD_HD scalar
balance_scale(scalar x, int power)
{
    const int most = 4 * (R_BIAS - 1), part = (power < most ? power : most) / 4;
    const real factor = r_pow2(part);

    return n_scale(r_pow2((power < most ? power : most) - 3 * part),
                   n_scale(factor, n_scale(factor, n_scale(factor, x))));
}

#endif
