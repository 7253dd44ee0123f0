/*
 * Elementary reflectors (Householder).
 *
 * H = I - tau v v^H, v = (1, x w).  H^H maps the vector (alpha, x) to (beta, 0), where
 *
 *     beta = -sign(Re alpha) |(alpha, x)|,   tau = (beta - alpha) / beta,   w = 1 / (alpha - beta).
 *
 * beta is real also for complex vectors, tau and w then are complex.  H = I, tau = 0, if x is zero
 * and alpha real.  The conventions are those of LAPACK (larfg).
 *
 * Source: Golub & Van Loan, Matrix Computations, 4th edition, section 5.1.
 */
#ifndef TSVDI_REFLECTOR_H
#define TSVDI_REFLECTOR_H

#include "math/scalar.h"

/* If alpha^2 + |x|^2 is less than this, squares may have underflowed.  Then the squares of
   REFLECTOR_UP x are added up.  Those neither overflow nor underflow, even if x is denormal. */
#define REFLECTOR_SMALL r_pow2(-R_BIAS / 2)
#define REFLECTOR_UP r_pow2(R_BIAS / 2 + R_DIGITS)
#define REFLECTOR_DOWN r_pow2(-R_BIAS / 2 - R_DIGITS)

struct reflector {
    real beta;
    scalar tau;
    real up;
    scalar scale; /* v = (1, up x scale); up scale alone may overflow */
};

/* What x is multiplied by before its squares are added up; `square` is the sum without. */
TSVD_HD real
reflector_up(scalar alpha, real square)
{
#if TSVD_COMPLEX
    return n_abs2(alpha) + square < REFLECTOR_SMALL ? REFLECTOR_UP : REAL(1);
#else
    return r_fma(alpha, alpha, square) < REFLECTOR_SMALL ? REFLECTOR_UP : REAL(1);
#endif
}

/* The sum of the squares of REFLECTOR_UP x, of the `count` reals of x.  Beside one large square
   many small ones that are equal would lose an eps each.  So what each addition loses is summed up
   too, and added at the end. */
TSVD_HD real
reflector_square_up(int64_t count, const real *x)
{
    real sum = 0, rest = 0; /* rest: what the sum has lost by rounding */

    for (int64_t i = 0; i < count; i++) {
        const real term = REFLECTOR_UP * x[i] * (REFLECTOR_UP * x[i]), next = sum + term;

        rest += sum > term ? sum - next + term : term - next + sum;
        sum = next;
    }
    return sum + rest;
}

/* The norm of a vector from its square, and the norm's reciprocal.  square is in the range of
   normal numbers, and so is its reciprocal.  As rotation_normalize(), one chain of operations on a
   GPU. */
TSVD_HD real
reflector_norm(real square, real *reciprocal)
{
#ifdef __CUDA_ARCH__
    const real inverse = r_rsqrt(square), norm = square * inverse;

    *reciprocal = inverse;
    return r_fma(r_fma(-norm, norm, square), inverse / 2, norm);
#else
    const real norm = r_sqrt(square);

    *reciprocal = 1 / norm;
    return norm;
#endif
}

/*
 * The reflector of (alpha, x); `square` is |up x|^2, with `up` from reflector_up().  alpha and x
 * are finite, and their squares do not overflow.
 *
 * If alpha^2 is above REFLECTOR_SMALL, all squares of x may vanish though x does not.  Then x is
 * below the rounding of alpha by far, and counts as zero: tau = 0.  So does an imaginary part of
 * alpha, whose square counts with those of x.
 */
#if TSVD_COMPLEX
TSVD_HD struct reflector
reflector_make(scalar alpha, real square, real up)
{
    struct reflector h = {n_real(alpha), 0, 1, 0};
    const real above = up * r_abs(n_real(alpha)), aside = up * n_imag(alpha);
    const real others = r_fma(aside, aside, square);
    real norm, reciprocal, rest;

    if (others == 0) {
        return h;
    }
    norm = reflector_norm(r_fma(above, above, others), &reciprocal);
    h.beta = r_copysign(up == 1 ? norm : norm * REFLECTOR_DOWN, -n_real(alpha));
    h.tau = n_make(r_fma(above, reciprocal, 1), aside * r_copysign(reciprocal, n_real(alpha)));
    h.up = up;
    rest = r_reciprocal(r_fma(above + norm, above + norm, aside * aside));
    h.scale = n_make(r_copysign((above + norm) * rest, n_real(alpha)), -aside * rest);
    return h;
}
#else
TSVD_HD struct reflector
reflector_make(scalar alpha, real square, real up)
{
    struct reflector h = {alpha, 0, 1, 0};
    const real above = up * r_abs(alpha);
    real norm, reciprocal;

    if (square == 0) {
        return h;
    }
    norm = reflector_norm(r_fma(above, above, square), &reciprocal);
    h.beta = r_copysign(up == 1 ? norm : norm * REFLECTOR_DOWN, -alpha);
    h.tau = r_fma(above, reciprocal, 1);
    h.up = up;
    h.scale = r_copysign(r_reciprocal(above + norm), alpha);
    return h;
}
#endif

/* An entry of v from that of x. */
TSVD_HD scalar
reflector_entry(struct reflector h, scalar x)
{
    return n_mul(n_scale(h.up, x), h.scale);
}

#endif
