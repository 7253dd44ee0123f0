/*
 * One-sided Jacobi: the rotation of two columns.
 *
 * Columns x and y, |x| >= |y| > 0, with r = |y| / |x| and h = x^H y / (|x| |y|), the cosine of the
 * angle between them, are replaced by
 *
 *     x' = c x + s y,   y' = c y - s x,   s = c t,   c = 1 / sqrt(1 + t^2),
 *     t = r g,   g = 2 h / (1 - r^2 + sqrt((1 - r^2)^2 + 4 r^2 h^2)),
 *
 * which are orthogonal; the angle of the rotation is at most 45 degrees.  Their norms are
 *
 *     |x'| = |x| sqrt(1 + t r h),   |y'| = |y| sqrt(1 - g h).
 *
 * For complex columns h = |h| z, |z| = 1.  The columns x and conj(z) y have the cosine |h|, so with
 * t and g from |h| the rotation is x' = c x + s conj(z) y, y' = c y - s z x.
 *
 * Rotations go on until |h| <= jacobi_tolerance() for every pair.  The columns are then s_j u_j,
 * and the rotations together are the other vectors.  The criterion is relative to both columns, so
 * tiny columns become as orthogonal as large ones.  That gives the values of A = B D, D diagonal,
 * to an error of the order of the condition of B, whatever D is.
 *
 * Columns that depend on others hold little but rounding errors, as do small columns beside large
 * ones.  If many entries are equal, so are their errors, and then the computed cosine is not known
 * to jacobi_tolerance().  Such pairs would be rotated without end.  So a second criterion ends the
 * sweeps: a rotation changes the cosines of y by g times those of x, and all others by less.  With
 * H the largest |h| of a sweep and G the sum of its |g|, no cosine grows by more than about H G,
 * and if that is no more than the tolerance, another sweep would find rounding errors alone.
 * (LAPACK's gesvj ends when the product of the largest cosine, the largest sine and n is that
 * small.)
 *
 * Lines are rows or columns.  Those of zeros have no part in the values.  If A has p rows and q
 * columns that are not zero, the columns can be independent only if q <= p, and the rows if p <= q.
 * For p = q, with B the columns at norm 1, or C the rows, |det A| = |det B| prod |a_j| = |det C|
 * prod |a_i|, and the one with the larger determinant is the one that is farther from singular.
 *
 * A column is kept as its entries times a power of two of its own, 2^f, so that no square and no
 * product of a pair overflows or underflows, whatever range the columns have together.  In kept
 * entries, with 2^shift the scale of y over that of x,
 *
 *     x' = c x + (s 2^shift) y,   y' = c y - (s / 2^shift) x,
 *
 * (the first factor times conj(z), the second times z), and s / 2^shift = c g |y| / |x| by the kept
 * norms.  The first factor may underflow.  What it adds is then nothing beside x.  For c stands
 * 1 - c, in x' = x + (s y - (1 - c) x): rounded to 1, c would make every column longer by up to
 * eps / 4, which adds up over thousands of rotations.
 *
 * Sources: Demmel & Veselic, SIAM J. Matrix Anal. Appl. 13 (1992); Drmac, SIAM J. Sci. Comput. 18
 * (1997), for the scaled rotations; Drmac & Veselic, SIAM J. Matrix Anal. Appl. 29 (2008), I and
 * II.
 */
#ifndef TSVDI_JACOBI_H
#define TSVDI_JACOBI_H

#include "math/scalar.h"

enum {
    /* The most sweeps if the caller sets no bound.  Up to 16 were seen, for the matrix min(i, j),
       n = 1400. */
    JACOBI_SWEEPS = 60,
    /* A shift beyond this counts as this: the factors are then zero, or the roles change. */
    JACOBI_SHIFT = R_BIAS - 1,
    /* Rows count as better conditioned than an equal number of columns if the product of their
       sizes is smaller by more than this many bits: fewer may be chance. */
    JACOBI_GRADED_BITS = 8,
    /* Columns whose largest entries differ by no more than this many powers of two have nearly the
       same size. */
    JACOBI_EVEN_BITS = 2
};

struct jacobi_turn {
    real less; /* 1 - c */
    scalar s;  /* the accumulated vectors take it for `forward`, and conj(s) for `back` */
    scalar forward, back; /* x' = c x + forward y, y' = c y - back x */
    real g;
    real x_grows;  /* |x'| / |x| */
    real y_square; /* |y'|^2 / |y|^2, up to rounding errors that may make it negative */
};

/* Of the lines that are not zero: rows less columns. */
struct jacobi_lines {
    int64_t count;
    int64_t sum; /* of their sizes.  A size is the exponent of the largest entry, as A has it */
};

/* Whether Jacobi is to work on the rows, as columns of the transpose. */
TSVD_HD int
jacobi_by_rows(struct jacobi_lines more)
{
    return more.count != 0 ? more.count < 0 : more.sum < -JACOBI_GRADED_BITS;
}

/* If y_square is below this, |y'| has to be found from the entries. */
#define JACOBI_CANCELS REAL(0.1)

/* Two columns of n entries count as orthogonal up to this cosine.  It is above the rounding errors
   of a computed one, and not much: in a cluster of many values these cosines add up. */
TSVD_HD real
jacobi_tolerance(int64_t n)
{
    return R_EPS * (2 + r_sqrt((real)n) / 32);
}

/* A pair is turned from this part of the tolerance on, and a sweep in which none was above the
   tolerance is the last one.  Cosines just below the tolerance would come back above it, as later
   rotations mix the columns. */
#define JACOBI_WORTH REAL(0.25)

/* Whether a sweep with that largest |h|, and that sum of |g|, is the last one. */
TSVD_HD int
jacobi_settles(real cosine, real turn, real tolerance)
{
    return cosine * turn <= tolerance;
}

/* Vectors of another method are no good start if the smallest value that came with them is below
   this part of the largest one.  Columns of W V are then little but rounding errors, and it takes
   many sweeps to sort these out. */
#define JACOBI_USELESS (8 * R_EPS)

/* An entry of x' or y': x' = jacobi_mixed(x, y, less, forward), y' = jacobi_mixed(y, x, less,
 * -back).
 */
TSVD_HD scalar
jacobi_mixed(scalar x, scalar y, real less, scalar factor)
{
    return x + n_fma(factor, y, -n_scale(less, x));
}

/* A column of n entries that has become shorter than this part of its greatest length holds nothing
   but rounding errors.  It counts as zero, which changes it no more than these errors did.  Without
   that, columns that depend on others would become shorter by some factor in each sweep, without
   end. */
TSVD_HD real
jacobi_noise(int64_t n)
{
    return R_EPS * (4 + r_sqrt((real)n));
}

/* 2^shift x, of which zero and infinity may become. */
TSVD_HD real
jacobi_shifted(real x, int64_t shift)
{
    const int64_t most = JACOBI_SHIFT;

    return x * r_pow2((int)(shift > most ? most : shift < -most ? -most : shift));
}

/* Whether the norm x is below y 2^shift. */
TSVD_HD int
jacobi_is_less(real x, real y, int64_t shift)
{
    return x < jacobi_shifted(y, shift);
}

/* The rotation of kept columns of norms x and y, x >= y 2^shift, whose cosine is `cosine`. */
TSVD_HD struct jacobi_turn
jacobi_turn_of(scalar cosine, real x, real y, int64_t shift)
{
#if TSVD_COMPLEX
    const real h = n_abs(cosine);
#else
    const real h = cosine;
#endif
    const real ratio = y / x;
    const real r = r_min(jacobi_shifted(ratio, shift), 1);
    const real apart = (1 - r) * (1 + r);
    const real cross = 2 * r * h;
    const real g = 2 * h / (apart + r_sqrt(r_fma(apart, apart, cross * cross)));
    const real t = r * g;
    const real root = r_sqrt(r_fma(t, t, 1));
    const real s = t / root, forward = jacobi_shifted(s, shift), back = g / root * ratio;
    struct jacobi_turn turn;

    turn.less = t * t / (root * (1 + root));
#if TSVD_COMPLEX
    {
        const scalar z = n_make(n_real(cosine) / h, n_imag(cosine) / h);

        turn.s = n_scale(s, n_conj(z));
        turn.forward = n_scale(forward, n_conj(z));
        turn.back = n_scale(back, z);
    }
#else
    turn.s = s;
    turn.forward = forward;
    turn.back = back;
#endif
    turn.g = g;
    turn.x_grows = r_sqrt(r_fma(t * r, h, 1));
    turn.y_square = r_fma(-g, h, 1);
    return turn;
}

#endif
