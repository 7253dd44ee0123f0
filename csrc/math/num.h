/*
 * The type `num` that recurrences and sums are written over.  It is a real, or a vector of reals in
 * a source that defines TSVD_VECTOR.  Such a source first includes cpu/kernels/simd.h, which has
 * the names below for vectors.  `num_int` is the integer of the same size; `num_small` is an
 * integer for exponents and counts.
 */
#ifndef TSVDI_NUM_H
#define TSVDI_NUM_H

#include "math/real.h"

#ifdef TSVD_VECTOR
typedef num_int num_small;
#define NUM_SMALL(x) (x)
#define num_small_clamp num_int_clamp
#define num_small_max num_int_max
#define num_pow2(k) num_from_bits(((k) + R_BIAS) << R_DIGITS)
#define num_quotient(a, b) ((a) / (b))
#else
typedef real num;
typedef real_int num_int;
typedef int32_t num_small; /* 64 bits would cost a GPU twice the work */
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
#define num_quotient r_quotient
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

#define NUM_SPLAT(x) (x)
#endif

/* a where x is below zero, else b. */
TSVD_HD num
num_if_negative(num x, num a, num b)
{
    return num_select(num_less(x, NUM_SPLAT(REAL(0))), a, b);
}

#endif
