/*
 * Numbers of more than the digits of a result: what twisted.h computes in.
 *
 *   wide   a double in either precision, or a vector of doubles in a source that defines
 *          TSVD_VECTOR.  Such a source first includes cpu/kernels/wide.h, which has the names below
 *          for vectors.
 *   pair   the unevaluated sum of two doubles, the second one at most half a unit in the last place
 *          of the first (Dekker, Numerische Mathematik 18 (1971); Knuth, TAOCP 2, 4.2.2).
 *
 * The arithmetic of a pair keeps 2^-102 or so of its terms.  Every operation is an IEEE 754 one,
 * and a fused one where wide_fma() is written, so that host and device give the same bits.
 */
#ifndef TSVDI_PAIR_H
#define TSVDI_PAIR_H

#include "math/real.h"

#ifndef TSVD_VECTOR
typedef double wide;
typedef int64_t wide_int;
typedef int wide_mask; /* a condition */
#define WIDE_SPLAT(x) (x)
#define WIDE_INT_SPLAT(x) (x)
#define wide_fma fma
#define wide_abs fabs
#define wide_equal(a, b) ((a) == (b))
#define wide_less(a, b) ((a) < (b))
#define wide_int_less(a, b) ((a) < (b))

/* 1 / x, correctly rounded, for normal x and 1 / x. */
TSVD_HD wide
wide_inverse(wide x)
{
#ifdef __CUDA_ARCH__
    /* the steps of __drcp_rn() without its branch for subnormal and infinite numbers; the lower
       bits of the start make the last one round right where every bit of x is 1 */
    wide y, error;

    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = __hiloint2double(__double2hiint(y), __double2hiint(x) + 0x300402);
    error = fma(-x, y, 1.0);
    y = fma(y, fma(error, error, error), y);
    error = fma(-x, y, 1.0);
    return fma(y, error, y);
#else
    return 1 / x;
#endif
}

/* a where the condition holds, else b. */
TSVD_HD wide
wide_select(wide_mask mask, wide a, wide b)
{
    return mask ? a : b;
}

TSVD_HD wide_int
wide_int_select(wide_mask mask, wide_int a, wide_int b)
{
    return mask ? a : b;
}

TSVD_HD wide_int
wide_bits(wide x)
{
    wide_int bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TSVD_HD wide
wide_from_bits(wide_int bits)
{
    wide x;

    memcpy(&x, &bits, sizeof x);
    return x;
}
#endif

enum { WIDE_DIGITS = 52, WIDE_BIAS = 1023 };

#define WIDE_EXPONENT_MASK ((int64_t)0x7ff << WIDE_DIGITS)

/* 2^k for normal results. */
TSVD_HD double
wide_power(int k)
{
    const int64_t bits = (int64_t)(k + WIDE_BIAS) << WIDE_DIGITS;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a + b = the result + *rest, exactly. */
TSVD_HD wide
wide_two_sum(wide a, wide b, wide *rest)
{
    const wide sum = a + b;
#ifdef __CUDA_ARCH__ /* the same number in fewer steps, where a choice is cheap (Dekker) */
    const wide_mask swap = wide_less(wide_abs(a), wide_abs(b));
    const wide large = wide_select(swap, b, a), small = wide_select(swap, a, b);

    *rest = small - (sum - large);
#else
    const wide part = sum - a;

    *rest = (a - (sum - part)) + (b - part);
#endif
    return sum;
}

typedef struct pair {
    wide high, low;
} pair;

/* A share that a sum of pairs may lose without harm, and one that long chains of them may. */
#define PAIR_TINY 0x1p-110
#define PAIR_NOISE 0x1p-88

/* high + low, |low| at most |high|. */
TSVD_HD pair
pair_of(wide high, wide low)
{
    pair x;

    x.high = high + low;
    x.low = low - (x.high - high);
    return x;
}

TSVD_HD wide
pair_high(pair x)
{
    return x.high;
}

TSVD_HD wide
pair_low(pair x)
{
    return x.low;
}

/* x + y. */
TSVD_HD pair
pair_add(pair x, wide y)
{
    wide rest;
    const wide sum = wide_two_sum(x.high, y, &rest);

    return pair_of(sum, rest + x.low);
}

/* x + y - z, of which much may cancel. */
TSVD_HD wide
pair_excess(pair x, pair y, pair z)
{
    wide rest, more;
    const wide sum = wide_two_sum(x.high, y.high, &rest);
    const wide all = wide_two_sum(sum, -z.high, &more);

    return all + ((more + rest) + ((x.low + y.low) - z.low));
}

/* x - (square + rest) / y, where inverse = 1 / y. */
TSVD_HD pair
pair_minus_quotient(pair x, wide square, wide rest, pair y, wide inverse)
{
    const wide quotient = square * inverse;
    const wide left = wide_fma(-quotient, y.high, square); /* exact but for 2^-53 of itself */
    /* squares of float32 numbers leave no rest */
    const wide off = TSVD_SINGLE ? wide_fma(-quotient, y.low, left)
                                 : (wide)(left + wide_fma(-quotient, y.low, rest));
    const wide more = off * inverse;
    wide error;
    const wide sum = wide_two_sum(x.high, -quotient, &error);

    return pair_of(sum, (error + x.low) - more);
}

#endif
