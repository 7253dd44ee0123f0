/*
 * Sturm counts on the Golub-Kahan form.
 *
 * The symmetric tridiagonal matrix of order 2n with zero diagonal and
 * off-diagonals b = d1, e1, d2, e2, ..., dn has the eigenvalues +-s_i.  For
 * sigma > 0 the leading minors of sigma I - T obey
 *
 *     r_0 = 1,  r_1 = sigma,  r_{k+1} = sigma r_k - b_k^2 r_{k-1},
 *
 * and the changes of sign along r count the singular values >= sigma.  Rounding here does no more
 * than small relative changes of the b_k, and these change each s_i by as small a relative amount
 * (Demmel & Kahan 1990, section 4; Fernando, SIAM J. Matrix Anal. Appl. 20 (1998)).  So every value
 * is found alone, to full relative accuracy.  Where a b_k is zero, the matrix falls into parts, and
 * the recurrence starts again.
 *
 * The recurrence has three forms:
 *   plain    as above on scaled squares, without a division.  The pair (r_k, r_{k-1}) is brought
 *            back to size one at the end of each chunk of entries.  It is for sigma and b within a
 *            limited range of exponents.
 *   twofold  the same in twice the digits.  It takes four times as long.
 *   extended y_k = r_k / (sigma r_{k-1}) = 1 - (b/sigma)^2 / y_{k-1} in twice the digits, with
 *            mantissas and exponents kept apart.  It is right for every finite input, however
 *            graded, and takes about ten times as long.
 *
 * The recurrences are written over the type `num` of num.h.
 */
#ifndef TSVDI_STURM_H
#define TSVDI_STURM_H

#include "math/num.h"

/* One chunk of consecutive non-zero entries. */
struct sturm_chunk {
    int64_t end; /* one past its last entry */
    int restart; /* 1: the next entry is zero, and the recurrence starts again; 0: the pair is
                    rescaled */
};

/* The matrix, prepared for counting; made by tsvdi_sturm_prepare(). */
struct sturm {
    int64_t n;       /* order of B */
    int64_t entries; /* non-zero b_k */
    int64_t chunks;
    const struct sturm_chunk *chunk;
    const real *square;            /* [entries] (b_k 2^-scale)^2, for the plain and twofold forms */
    const real *square_rest;       /* [entries] what the rounding of `square` left */
    const real *extended_square;   /* [entries] square of the mantissa of b_k, in [1, 4) */
    const real *extended_rest;     /* [entries] what the rounding of `extended_square` left */
    const real *extended_inverse;  /* [entries] 1 / extended_square */
    const real_int *extended_twos; /* [entries] twice the exponent of b_k */
    real scale_down[2];            /* their product is 2^-scale, which brings the largest |b_k| into
                                  [1, 2) */
    real plain_from; /* the plain form is right for sigma >= this; infinity: for none */
    real_int top;    /* bits above those of every singular value */
};

/* A chunk of the plain form may lose or gain this many powers of two.  sigma and b^2 may be that
   small.  Three times this stays within the exponents of real. */
#define STURM_BUDGET (TSVD_SINGLE ? 32 : 320)

/* From this |exponent| on, one of the two terms of the extended form is negligible. */
#define STURM_CLAMP (TSVD_SINGLE ? 60 : 120)

/* The magnitude of entry k of the off-diagonal d1, e1, d2, ..., dn; 0 from 2n - 1 on. */
TSVD_HD real
sturm_entry(int64_t n, const real *d, const real *e, int64_t k)
{
    return k >= 2 * n - 1 ? REAL(0) : r_abs(k % 2 == 0 ? d[k / 2] : e[k / 2]);
}

/* Bits above those of every singular value.  bound: the largest sum of two neighbouring entries
   (Gershgorin's theorem); what is added exceeds its rounding.  Where a value may be infinity, the
   result lies above infinity's bits. */
TSVD_HD real_int
sturm_top(real bound)
{
    const real_int at = r_bits(bound);

    return at + 4 < R_INFINITY_BITS ? at + 4 : R_INFINITY_BITS + 1;
}

/* Whether r is an exact zero at the end of a part that must be counted: it is an eigenvalue at
   sigma itself, and counts as a change of sign where its own sign bit made none. */
TSVD_HD num_small
sturm_zero_counts(num r, num r_before)
{
    num_small zero = num_sign_bit((num_bits(r) & ~(real_int)R_SIGN_BIT) - 1);
    num_small same = 1 - num_sign_bit(num_bits(r) ^ num_bits(r_before));

    return zero & same;
}

/* One entry of the plain form; *above counts changes of sign.  The device counts with another
   function, plain_step() of sturm_polynomial.h: that one is in double for either precision, and
   rounds the other of the two products, so its results differ in their last bits. */
TSVD_HD void
sturm_plain_step(num sigma, real square, num *r, num *r_before, num_small *above)
{
    num next = num_fma(NUM_SPLAT(-square), *r_before, sigma * *r);

    *above += num_sign_bit(num_bits(next) ^ num_bits(*r));
    *r_before = *r;
    *r = next;
}

/* The power of two that brings the larger of |r|, |r_before| into [1, 2). */
TSVD_HD num
sturm_plain_power(num r, num r_before)
{
    num_int larger = num_int_max(num_bits(r) & ~(real_int)R_SIGN_BIT,
                                 num_bits(r_before) & ~(real_int)R_SIGN_BIT) &
                     (real_int)R_EXPONENT_MASK;

    return num_from_bits(((real_int)(2 * R_BIAS) << R_DIGITS) - larger);
}

TSVD_HD void
sturm_plain_rescale(num *r, num *r_before)
{
    num down = sturm_plain_power(*r, *r_before);

    *r *= down;
    *r_before *= down;
}

TSVD_HD void
sturm_plain_restart(num sigma, num *r, num *r_before, num_small *above)
{
    *above += sturm_zero_counts(*r, *r_before);
    *r_before = NUM_SPLAT(REAL(1));
    *r = sigma;
}

/* The shift that counts as x (r_shift()), scaled as the entries are. */
TSVD_HD real
sturm_scaled_shift(real x, const real scale_down[2])
{
    int twice;
    const real shift = r_shift(x, &twice) * scale_down[0] * scale_down[1];

    return shift * r_pow2(twice);
}

/* r and r_before of the twofold form.  Each is an unevaluated sum; the rest lies below the last
   place of the first part. */
struct sturm_twofold {
    num r, r_rest, before, before_rest;
};

/* The beginning of a part.  size: a power of two that r_0 starts from.  The CPU takes one.  The
   device takes 2^TWOFOLD_SIZE (sturm_polynomial.h), so that it rescales less often. */
TSVD_HD struct sturm_twofold
sturm_twofold_start(num sigma, real size)
{
    const num zero = NUM_SPLAT(REAL(0)), before = NUM_SPLAT(size);
    const struct sturm_twofold y = {sigma * before, zero, before, zero};

    return y;
}

/* One entry of the twofold form, square + rest.  A rounding error is relative to one of the two
   terms, so it does not matter how much of them cancels. */
TSVD_HD void
sturm_twofold_step(num sigma, real square, real rest, struct sturm_twofold *y, num_small *above)
{
    const num p = sigma * y->r, q = NUM_SPLAT(square) * y->before;
    const num p_rest = num_fma(sigma, y->r_rest, num_fma(sigma, y->r, -p));
    const num q_rest = num_fma(
        NUM_SPLAT(rest), y->before,
        num_fma(NUM_SPLAT(square), y->before_rest, num_fma(NUM_SPLAT(square), y->before, -q)));
    /* p - q, by Knuth's exact sum, then the larger part in front again */
    const num sum = p - q, part = sum - p;
    const num sum_rest = ((p - (sum - part)) - (q + part)) + (p_rest - q_rest);
    const num next = sum + sum_rest;

    *above += num_sign_bit(num_bits(next) ^ num_bits(y->r));
    y->before = y->r;
    y->before_rest = y->r_rest;
    y->r = next;
    y->r_rest = (sum - next) + sum_rest;
}

/* Brings the larger of the pair into [size, 2 size). */
TSVD_HD void
sturm_twofold_rescale(real size, struct sturm_twofold *y)
{
    const num factor = sturm_plain_power(y->r, y->before) * NUM_SPLAT(size);

    y->r *= factor;
    y->r_rest *= factor;
    y->before *= factor;
    y->before_rest *= factor;
}

TSVD_HD void
sturm_twofold_restart(num sigma, real size, struct sturm_twofold *y, num_small *above)
{
    *above += sturm_zero_counts(y->r, y->before);
    *y = sturm_twofold_start(sigma, size);
}

/* y of the extended form, (mantissa + rest) 2^exponent. */
struct sturm_extended {
    num mantissa, rest; /* |mantissa| in [1, 2); the rest lies below its last place */
    num_small exponent;
    num sigma_square, sigma_rest; /* the square of sigma's mantissa, in two parts */
    num_small sigma_twos;         /* twice sigma's exponent */
};

/* A number as the extended form takes it: returns the square of its mantissa, in [1, 4).  *rest:
   what the rounding of that left; *twos: twice the exponent. */
TSVD_HD real
sturm_extended_square(real b, real *rest, real_int *twos)
{
    real_int exponent;
    const real mantissa = r_split(b, &exponent), square = mantissa * mantissa;

    *rest = r_fma(mantissa, mantissa, -square);
    *twos = 2 * exponent;
    return square;
}

/* The shift that counts as x (r_shift()), as sturm_extended_square() gives numbers. */
TSVD_HD real
sturm_extended_shift(real x, real *rest, real_int *twos)
{
    int twice;
    const real square = sturm_extended_square(r_shift(x, &twice), rest, twos);

    *twos += 2 * twice;
    return square;
}

/*
 * One entry of the extended form.  The arithmetic carries twice the digits of real.  In single
 * digits the rounding errors of repeated entries would add up instead of averaging out.  A zero y
 * stands for a tiny positive one: an eigenvalue at sigma itself then counts at the entry that
 * follows, or at the end of the part.
 */
TSVD_HD void
sturm_extended_step(real square, real rest, real inverse, real_int twos, struct sturm_extended *y,
                    num_small *above)
{
    num_small power = NUM_SMALL(twos) - y->sigma_twos - y->exponent;
    num scale = num_pow2(num_small_clamp(power, -STURM_CLAMP, STURM_CLAMP));
    /* p = sigma^2 y, t = b^2 / p */
    num p = y->sigma_square * y->mantissa;
    num p_rest = num_fma(y->sigma_square, y->mantissa, -p) +
                 num_fma(y->sigma_square, y->rest, y->sigma_rest * y->mantissa);
    num t = num_quotient(NUM_SPLAT(square), p);
    num t_rest = (num_fma(-t, p_rest, num_fma(-t, p, NUM_SPLAT(square)) + NUM_SPLAT(rest))) * t *
                 NUM_SPLAT(inverse);
    /* 1 - t, by Knuth's exact sum, then the larger part in front again */
    num sum = num_fma(-t, scale, NUM_SPLAT(REAL(1))), part = sum - 1;
    num sum_rest = num_fma(-t_rest, scale, (1 - (sum - part)) - num_fma(t, scale, part));
    num next = sum + sum_rest, next_rest = (sum - next) + sum_rest;
    num_int bits = num_bits(next), field = bits & R_INFINITY_BITS;

    *above += num_sign_bit(bits);
    y->exponent =
        NUM_SMALL(field >> R_DIGITS) - R_BIAS + num_small_max(power - STURM_CLAMP, power & 0);
    y->mantissa = num_from_bits((bits & ~R_INFINITY_BITS) | ((real_int)R_BIAS << R_DIGITS));
    y->rest = next_rest * num_from_bits(((real_int)(2 * R_BIAS) << R_DIGITS) - field);
}

/* Starts a part: y = 1.  A zero that the part before left counts. */
TSVD_HD void
sturm_extended_restart(struct sturm_extended *y, num_small *above)
{
    *above += num_sign_bit(y->exponent + (R_BIAS - 1));
    y->exponent = y->exponent & 0;
    y->mantissa = NUM_SPLAT(REAL(1));
    y->rest = NUM_SPLAT(REAL(0));
}

/* ---- sturm.c ---- */

#define tsvdi_sturm_bytes TSVD_T(tsvdi_sturm_bytes)
#define tsvdi_sturm_is_plain TSVD_T(tsvdi_sturm_is_plain)
#define tsvdi_sturm_prepare TSVD_T(tsvdi_sturm_prepare)

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares B for counts on the host.  work holds tsvdi_sturm_bytes(n) bytes (SIZE_MAX: too many to
   address) and outlives the matrix; d [n] and e [n-1] are not scaled, not all zero, and finite. */
size_t tsvdi_sturm_bytes(int64_t n);
void tsvdi_sturm_prepare(int64_t n, const real *d, const real *e, void *work, struct sturm *matrix);

/* Whether the plain form of the counts serves for it. */
int tsvdi_sturm_is_plain(int64_t n, const real *d, const real *e);

#ifdef __cplusplus
}
#endif

#endif
