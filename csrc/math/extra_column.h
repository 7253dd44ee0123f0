/*
 * Upper bidiagonal matrices with one column more than rows, n x (n+1).
 *
 * Rotations of column i with the last one, for i = n-1, ..., 0, turn the last column into zero, and
 * leave B' square and bidiagonal:
 *
 *     B G_{n-1} ... G_0 = [B' 0],   B = L S [R' 0] G_0^T ... G_{n-1}^T.
 *
 * No number is subtracted from another, so B' is that of entries of B with small relative errors,
 * and tiny values keep their digits (Demmel & Kahan 1990).  Where B has values that are zero, B'
 * has them too, and the null vector that the last column makes is none of theirs.  LAPACK's dlasdq
 * begins in the same way; divide and conquer needs it for its leaves.
 *
 * A lower matrix, (n+1) x n, is the transpose.
 */
#ifndef TSVDI_EXTRA_COLUMN_H
#define TSVDI_EXTRA_COLUMN_H

#include <math.h>

#include "math/rotation.h"

/* part e of a rotation with part = x / norm.  Between entries far apart `part` may be below the
   numbers, and the product among them. */
TSVD_HD real
extra_column_product(real part, real x, real norm, real e)
{
    real_int power_x, power_norm, power_e, down;
    real product;

    if (r_abs(part) >= r_pow2(-R_BIAS + 1) || x == 0) {
        return part * e;
    }
    product = r_split(x, &power_x) * r_split(e, &power_e) / r_split(norm, &power_norm);
    down = power_norm - power_x - power_e; /* the product is 0 long before r_scale() ends */
    r_scale(&product, 1, down < 2 * R_BIAS - 2 ? down : 2 * R_BIAS - 2, &product);
    return product;
}

/* The step for column i of G_{n-1} ... G_0.  *extra: the entry of the last column in row i, first
   e[n-1]; out: that in row i - 1.  Returns G_i, which maps (column i, last column). */
TSVD_HD struct rotation
extra_column_step(int64_t i, real *d, real *e, real *extra)
{
    const real f = d[i], g = *extra;
    const struct rotation turn = rotation_make(f, g, &d[i]);

    if (i > 0) {
        *extra = -extra_column_product(turn.s, g, d[i], e[i - 1]);
        e[i - 1] = extra_column_product(turn.c, f, d[i], e[i - 1]);
    }
    return turn;
}

/* The exponent of the largest entry of B', with e [n]. */
TSVD_HD real_int
extra_column_exponent(int64_t n, const real *d, const real *e)
{
    real largest = 0;
    real_int exponent;

    for (int64_t i = 0; i < n; i++) {
        largest = r_max(largest, r_max(r_abs(d[i]), r_abs(e[i])));
    }
    (void)r_split(largest, &exponent);
    return exponent;
}

/* The rotations of a matrix that is not ordinary: none, or NaN, which makes vectors NaN. */
TSVD_HD struct rotation
extra_column_none(int nonfinite)
{
    const struct rotation none = {1, 0}, lost = {REAL(NAN), REAL(NAN)};

    return nonfinite ? lost : none;
}

/* All steps: d [n] and e [n] become those of B', with e[n-1] = 0.  turn [n]: G_i. */
TSVD_HD void
extra_column_drop(int64_t n, real *d, real *e, struct rotation *turn)
{
    real extra = e[n - 1];

    e[n - 1] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        turn[i] =
            extra != 0 ? rotation_unit(extra_column_step(i, d, e, &extra)) : extra_column_none(0);
    }
}

/* Entry i of a right vector of B from that of B'.  *last: the entry of the last column, which
   begins as 0, and as 1 for the null vector, all of whose x are 0. */
TSVD_HD real
extra_column_restored(struct rotation turn, real x, real *last)
{
    const real restored = turn.c * x - turn.s * *last;

    *last = turn.s * x + turn.c * *last;
    return restored;
}

/* B is multiplied by 2^-power before.  Else entries of B' may overflow, or rounding errors of tiny
   ones may be large beside the largest one; exponent: that of the largest entry.  Small matrices
   stay small if an eps is given, which has the units of B. */
TSVD_HD int
extra_column_power(real_int exponent, double eps)
{
    return exponent >= R_BIAS - 1 ? 2 : exponent < -R_BIAS / 2 && !(eps > 0) ? (int)exponent : 0;
}

/* Makes a matrix square: its d, e [n] and the exponent of its largest entry, and turn [n].  Returns
   the power that it is multiplied by before. */
TSVD_HD int
extra_column_make_square(int64_t n, double eps, real *d, real *e, real_int *exponent,
                         struct rotation *turn)
{
    const int power = extra_column_power(*exponent, eps);

    if (power != 0) {
        r_scale(d, n, power, d);
        r_scale(e, n, power, e);
    }
    extra_column_drop(n, d, e, turn);
    *exponent = extra_column_exponent(n, d, e);
    return power;
}

#endif
