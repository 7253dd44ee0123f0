/*
 * The type `num` that recurrences and sums are written over: a real, or, in a source
 * that defines TSVD_VECTOR, a vector of reals (simd.h).  `num_int` is its integer twin.
 */
#ifndef TSVDI_NUM_H
#define TSVDI_NUM_H

#include "real.h"

#ifdef TSVD_VECTOR
#include "simd.h"
#else
typedef real num;
typedef real_int num_int;
#define num_fma r_fma
#define num_bits r_bits
#define num_from_bits r_from_bits
#define NUM_SPLAT(x) (x)

TSVD_HD num_int
num_int_clamp(num_int x, real_int low, real_int high)
{
    return x < low ? low : x > high ? high : x;
}

TSVD_HD num_int
num_int_max(num_int a, num_int b)
{
    return a > b ? a : b;
}

/* 1 where x is negative or minus zero, else 0. */
TSVD_HD num_int
num_sign_bit(num_int x)
{
    return (num_int)((real_uint)x >> (R_BITS - 1));
}

/* a where x is below zero, else b. */
TSVD_HD num
num_if_negative(num x, num a, num b)
{
    return x < 0 ? a : b;
}
#endif

#endif
