/*
 * The type `num` that recurrences and sums are written over: a real, or, in a source
 * that defines TSVD_VECTOR, a vector of reals (simd.h).  `num_int` is its integer twin, `num_small`
 * one for exponents and counts.
 */
#ifndef TSVDI_NUM_H
#define TSVDI_NUM_H

#include "math/real.h"

#ifdef TSVD_VECTOR
#include "cpu/kernels/simd.h"
typedef num_int num_small;
#define NUM_SMALL(x) (x)
#define num_small_clamp num_int_clamp
#define num_small_max num_int_max
#define num_pow2(k) num_from_bits(((k) + R_BIAS) << R_DIGITS)
#define num_quotient(a, b) ((a) / (b))
#else
typedef real num;
typedef real_int num_int;
typedef int32_t num_small; /* an exponent or a count: 64 bits cost a GPU twice the work */
#define NUM_SMALL(x) ((num_small)(x))
#define num_fma r_fma
#define num_sqrt r_sqrt
#define num_abs r_abs
#define num_max r_max
#define num_min r_min
#define num_copysign r_copysign
#define num_bits r_bits
#define num_from_bits r_from_bits
#define num_pow2 r_pow2
TSVD_HD num_small
num_small_clamp(num_small x, num_small low, num_small high)
{
    return x < low ? low : x > high ? high : x;
}
TSVD_HD num_small
num_small_max(num_small a, num_small b)
{
    return a > b ? a : b;
}
TSVD_HD num_int
num_int_max(num_int a, num_int b)
{
    return a > b ? a : b;
}
/* 1 where x is negative or minus zero, else 0. */
TSVD_HD num_small
num_sign_bit(num_int x)
{
    return (num_small)((real_uint)x >> (R_BITS - 1));
}

typedef int num_mask; /* a condition */
#define num_less(a, b) ((a) < (b))
#define num_less_equal(a, b) ((a) <= (b))
#define num_equal(a, b) ((a) == (b))
#define num_any(mask) (mask)
TSVD_HD num
num_select(num_mask mask, num a, num b)
{
    return mask ? a : b;
}

/*
 * a / b for |a| and |b| from 1 to 16, or a = 0.  A GPU's division branches to care for other
 * operands, and a thread does not work on several shifts at once across a branch.  This one is a
 * reciprocal of 20 bits or more, by Newton's iteration to its last place, and the quotient
 * corrected by its exact remainder (Markstein, IBM J. Res. Dev. 34 (1990)): as a / b, but for
 * what rounding may do where the remainder is within 2^-50 of half a unit.
 */
TSVD_HD real
num_quotient(real a, real b)
{
#ifdef __CUDA_ARCH__
    real x, rest, q;

#if TSVD_SINGLE
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(b));
    rest = r_fma(-b, x, 1);
    x = r_fma(x, rest, x);
    q = a * x;
    q = r_fma(x, r_fma(-b, q, a), q);
#else
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(x) : "d"(b));
    rest = r_fma(-b, x, 1);
    rest = r_fma(rest, rest, rest);
    x = r_fma(x, rest, x);
    q = a * x;
#endif
    return r_fma(x, r_fma(-b, q, a), q);
#else
    return a / b;
#endif
}
#define NUM_SPLAT(x) (x)
#endif

/* a where x is below zero, else b. */
TSVD_HD num
num_if_negative(num x, num a, num b)
{
    return num_select(num_less(x, NUM_SPLAT(REAL(0))), a, b);
}

#endif
