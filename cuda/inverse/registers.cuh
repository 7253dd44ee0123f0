/*
 * Scaling and pivots of matrices in registers, for small.cu and tiny.cuh.
 *
 * A thread has R rows of N columns.  Registers cannot be indexed, so that all loops over them are
 * unrolled.
 */
#ifndef TSVDI_CUDA_INVERSE_REGISTERS_H
#define TSVDI_CUDA_INVERSE_REGISTERS_H

#include "inverse/inverse_run.h"

/* Powers of two for rows, columns and a matrix that are so small that three of them together are
   in range. */
enum { NEAR_POWER = R_BIAS / 3 - 1 };

static __device__ __forceinline__ bool
is_near(int power)
{
    return power >= -NEAR_POWER && power <= NEAR_POWER;
}

/* x 2^power.  NEAR: |power| is below R_BIAS for certain; the result is the same. */
template <bool NEAR>
static __device__ __forceinline__ scalar
scale_entry(scalar x, int power)
{
    return NEAR || (power > -R_BIAS && power < R_BIAS) ? n_scale(r_pow2(power), x)
                                                       : balance_scale(x, power);
}

/* The larger of two sums; NaN is above all others. */
static __device__ __forceinline__ double
larger_sum(double x, double y)
{
    return y > x || y != y ? y : x;
}

/* The exponent of the largest entry of each of the thread's rows, BALANCE_NOTHING for zeros, and
   above R_BIAS if the row is not finite.  Bit i of `rows`: row i is one of the matrix. */
template <int R, int N>
static __device__ __forceinline__ void
find_exponents(const scalar (&a)[N][R], unsigned rows, int (&exponent)[R])
{
    const int normal = 1 << UPPER_DIGITS;
    int upper[R] = {};
    bool tiny = false;

#pragma unroll
    for (int i = 0; i < R; i++) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int other = upper_half(a[j][i]);

            upper[i] = other > upper[i] ? other : upper[i];
        }
        tiny = tiny || (rows >> i & 1 && upper[i] < normal);
        exponent[i] =
            upper[i] < normal ? (int)BALANCE_NOTHING : (upper[i] >> UPPER_DIGITS) - R_BIAS;
    }
    if (!tiny) {
        return;
    }
#pragma unroll
    for (int i = 0; i < R; i++) {
        real largest = 0;

#pragma unroll
        for (int j = 0; j < N; j++) {
            largest = r_max(n_size(a[j][i]), largest);
        }
        exponent[i] = upper[i] < normal ? balance_exponent(largest) : exponent[i];
    }
}

/* Zeros in place of a matrix that is not finite, and of the exponents of its rows. */
template <int R, int N>
static __device__ __forceinline__ void
clear(scalar (&a)[N][R], int (&row)[R])
{
#pragma unroll
    for (int i = 0; i < R; i++) {
        row[i] = 0;
#pragma unroll
        for (int j = 0; j < N; j++) {
            a[j][i] = 0;
        }
    }
}

/* Orders entries as pivots by the upper 32 bits of their sizes.  Zero is below all others, and
   NaN, of what overflows, is no better. */
static __device__ __forceinline__ int
pivot_key(scalar x)
{
    const int upper = upper_half(x), key = upper == 0 && !(x == 0) ? 1 : upper;

    return upper > (int)(R_INFINITY_BITS >> (R_BITS - 32)) ? 0 : key;
}

#endif
