/*
 * Plane rotations and the 2 x 2 triangular singular value problem.
 *
 * A rotation (c, s) maps a pair (x, y) to (c x + s y, c y - s x).
 *
 * Sources: Bindel, Demmel, Kahan, Marques, On computing Givens rotations
 * reliably and efficiently, ACM TOMS 28 (2002); Demmel & Kahan, SIAM J. Sci.
 * Stat. Comput. 11 (1990), section 2 (2 x 2 block).
 */
#ifndef TSVDI_ROTATION_H
#define TSVDI_ROTATION_H

#include <stdalign.h>

#include "math/real.h"

/* Aligned so that a GPU moves it in one piece. */
struct rotation {
    alignas(2 * sizeof(real)) real c;
    real s;
};

/* If the root of f^2 + g^2 lies between these, the sum has not overflowed, and its smaller term has
   lost no digits that matter. */
#define ROTATION_SAFE_MIN r_pow2(-R_BIAS / 2 + R_DIGITS + 2)
#define ROTATION_SAFE_MAX r_pow2(R_BIAS / 2 - 2)

/*
 * *norm = the root of `square` = f^2 + g^2, with the given sign.  The rotation is (f, g) / *norm.
 *
 * A root and two divisions cost a GPU three chains of dependent operations, and three branches to
 * care for operands that do not occur here.  So all three come from one reciprocal root, and each
 * result is corrected by its exact remainder (Markstein, IBM J. Res. Dev. 34 (1990)).  The results
 * are those of the CPU, but for what rounding may do where the remainder is within 2^-50 of half a
 * unit.
 */
TSVD_HD struct rotation
rotation_normalize(real f, real g, real square, real sign, real *norm)
{
    struct rotation q;
#ifdef __CUDA_ARCH__
    const real y = r_copysign(r_rsqrt(square), sign);

    *norm = square * y;
    *norm = r_fma(r_fma(-*norm, *norm, square), y / 2, *norm);
    q.c = f * y;
    q.c = r_fma(r_fma(-q.c, *norm, f), y, q.c);
    q.s = g * y;
    q.s = r_fma(r_fma(-q.s, *norm, g), y, q.s);
#else
    *norm = r_copysign(r_sqrt(square), sign);
    q.c = f / *norm;
    q.s = g / *norm;
#endif
    return q;
}

/* The rotation that maps (f, g) to (*r, 0).  c >= 0, and *r has the sign of f (of g if f = 0).  f
   and g may be any finite numbers whose hypotenuse is finite. */
TSVD_HD struct rotation
rotation_make(real f, real g, real *r)
{
    struct rotation q = {1, 0};
    real square = f * f + g * g, sign = f != 0 ? f : g;
    real up = 1;

    if (!(square >= ROTATION_SAFE_MIN * ROTATION_SAFE_MIN &&
          square <= ROTATION_SAFE_MAX * ROTATION_SAFE_MAX)) {
        real size = r_max(r_abs(f), r_abs(g)), down;
        real_int exponent;

        if (size == 0) {
            *r = f;
            return q;
        }
        (void)r_split(size, &exponent);
        exponent = exponent >= R_BIAS ? R_BIAS - 1 : exponent <= -R_BIAS ? -R_BIAS + 1 : exponent;
        down = r_pow2((int)-exponent);
        up = r_pow2((int)exponent);
        f *= down;
        g *= down;
        square = f * f + g * g;
    }
    q = rotation_normalize(f, g, square, sign, r);
    *r *= up;
    return q;
}

/*
 * The rotation with c^2 + s^2 brought to 1, but for the rounding of c and s.
 *
 * c and s of rotation_make() have errors in common, those of the root.  They stretch what is
 * turned, by up to 2 eps.  An iteration that has nearly settled makes the same rotation over and
 * over, so that what it stretches adds up instead of cancelling.
 *
 * So what turns vectors turns them by this.  The recurrences of d and e take the rotation as it was
 * made: the correction would lengthen their chain of dependent operations.  There the stretch of a
 * row or column changes each value by that share at most, as the rounding of *r does anyway.
 */
TSVD_HD struct rotation
rotation_unit(struct rotation q)
{
    const real excess = r_fma(q.s, q.s, r_fma(q.c, q.c, -1));
    const struct rotation unit = {r_fma(REAL(-0.5) * q.c, excess, q.c),
                                  r_fma(REAL(-0.5) * q.s, excess, q.s)};

    return unit;
}

/*
 * By what share a vector changes that gets the norm 1; `square` is that of its norm, and near 1.
 *
 * Many rotations by the same small angle round the large entries of a vector the same way each
 * time. So its norm drifts, though each rotation has the norm 1 (rotation_unit()).
 */
TSVD_HD real
unit_change(real square)
{
    return (1 - square) / 2;
}

/*
 * A rotation with c >= 0 is given by one number, the tangent t = s / (1 + c) of half its angle;
 * |t| <= 1 but for rounding.  It is applied in three lifting steps, each a fused operation,
 *
 *     x += t y,   y -= s x,   x += t y
 *
 * (Daubechies & Sweldens, Factoring wavelet transforms into lifting steps, J. Fourier Anal. Appl. 4
 * (1998)).
 */
struct lifting {
    alignas(2 * sizeof(real)) real t;
    real s;
};

TSVD_HD real
rotation_half_tangent(struct rotation q)
{
    return r_quotient(q.s, 1 + q.c);
}

TSVD_HD struct lifting
rotation_lift(real half_tangent)
{
    const struct lifting q = {half_tangent,
                              r_quotient(2 * half_tangent, r_fma(half_tangent, half_tangent, 1))};

    return q;
}

/*
 * The singular value decomposition of the triangle [f g; 0 h]: rotations with
 *
 *     [ cl sl] [f g] [cr -sr]   [*large    0  ]
 *     [-sl cl] [0 h] [sr  cr] = [   0   *small],   *large >= |*small|,
 *
 * *small has the sign of f h.  Let a >= b be the absolute values of the diagonal.  Then
 * large + |small| and large - |small| are the square roots of (a +- b)^2 + g^2.  The tangent of
 * the right rotation is (large^2 - a^2) / (a g), where large - a is computed from the two roots
 * without cancellation.
 */
TSVD_HD void
triangle_svd(real f, real g, real h, struct rotation *right, struct rotation *left, real *large,
             real *small)
{
    int swapped = r_abs(h) > r_abs(f);
    real a = r_max(r_abs(f), r_abs(h)), b = r_min(r_abs(f), r_abs(h));
    real size = r_max(a, r_abs(g));
    real sign_f = r_copysign(1, f), sign_h = r_copysign(1, h);
    real sum, difference, top, tangent, root, cv, sv, cu, su;

    if (a == 0) { /* [0 g; 0 0]: the right rotation moves g to the corner */
        right->c = g == 0;
        right->s = g == 0 ? REAL(0) : REAL(1);
        left->c = g == 0 ? REAL(1) : r_copysign(1, g);
        left->s = 0;
        *large = r_abs(g);
        *small = 0;
        return;
    }
    /* The triangle of absolute values is decomposed; g takes the sign of its row.  If h is the
       larger, that triangle is reflected at the anti-diagonal. */
    g = g / size * sign_f;
    a /= size;
    b /= size;
    sum = r_sqrt(r_fma(a + b, a + b, g * g));
    difference = r_sqrt(r_fma(a - b, a - b, g * g));
    top = (sum + difference) / 2;
    if (g == 0) {
        tangent = 0;
    } else {
        tangent = (g / (sum + (a + b)) + g / (difference + (a - b))) * ((top + a) / (2 * a));
    }
    if (r_abs(tangent) > 1) {
        root = 1 / tangent;
        sv = r_copysign(1, tangent) / r_sqrt(r_fma(root, root, 1));
        cv = sv * root;
    } else {
        cv = 1 / r_sqrt(r_fma(tangent, tangent, 1));
        sv = cv * tangent;
    }
    cu = (a * cv + g * sv) / top;
    su = b * sv / top;
    if (swapped) {
        right->c = su;
        right->s = cu;
        left->c = sv * sign_f;
        left->s = cv * sign_h;
    } else {
        right->c = cv;
        right->s = sv;
        left->c = cu * sign_f;
        left->s = su * sign_h;
    }
    *large = top * size;
    *small = r_min(r_abs(f), r_abs(h)) * (a / top) * sign_f * sign_h;
}

#endif
