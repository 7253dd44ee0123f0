/*
 * The real type of a numerical source file.
 *
 * Every numerical source is compiled twice, with TSVD_SINGLE 0 (float64) and 1
 * (float32).  TSVD_T(name) gives its external names a suffix for the precision.
 * Sources over the entries of dense matrices are compiled for complex ones too (math/scalar.h).
 * Inline functions marked TSVD_HD are compiled by gcc for the host, and by nvcc for
 * host and device.  Both build with contraction off, and sources write r_fma() where they
 * want a fused operation, so that both produce the same bits.
 */
#ifndef TSVDI_REAL_H
#define TSVDI_REAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TSVD_HD static __forceinline__ __host__ __device__
#else
#define TSVD_HD static inline __attribute__((always_inline, unused))
#endif

#ifndef TSVD_SINGLE
#error "compile with -DTSVD_SINGLE=0 (float64) or -DTSVD_SINGLE=1 (float32)"
#endif

/* Twofold arithmetic, NaN and infinity need the rules of IEEE 754, in the type's own precision. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    defined(__NO_SIGNED_ZEROS__) || defined(__USE_FAST_MATH__)
#error                                                                                             \
    "tsvd cannot be compiled with -Ofast, -ffast-math or a part of it: its results would be wrong"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "tsvd cannot be compiled with -ffinite-math-only: its results would be wrong"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "tsvd cannot be compiled for x87 arithmetic (-mfpmath=387): its results would be wrong"
#endif

#if TSVD_SINGLE
typedef float real;
typedef int32_t real_int; /* signed integer as wide as real */
typedef uint32_t real_uint;
#define TSVD_T(name) name##_f32
enum { R_DIGITS = 23, R_BIAS = 127, R_BITS = 32 };
#else
typedef double real;
typedef int64_t real_int;
typedef uint64_t real_uint;
#define TSVD_T(name) name##_f64
enum { R_DIGITS = 52, R_BIAS = 1023, R_BITS = 64 };
#endif

#define REAL(x) ((real)(x))
#define R_EPS (REAL(1) / REAL(INT64_C(1) << R_DIGITS)) /* distance from 1 to the next real */
#define R_LARGEST r_from_bits(R_INFINITY_BITS - 1)
#define R_SIGN_BIT ((real_uint)1 << (R_BITS - 1))
#define R_EXPONENT_MASK ((((real_uint)1 << (R_BITS - 1 - R_DIGITS)) - 1) << R_DIGITS)
#define R_INFINITY_BITS ((real_int)R_EXPONENT_MASK)
#define R_NORMAL_BITS ((real_int)1 << R_DIGITS) /* of the smallest normal number */

TSVD_HD real
r_abs(real x)
{
    return REAL(fabs(x));
}

#if TSVD_SINGLE
TSVD_HD real
r_sqrt(real x)
{
    return sqrtf(x);
}

TSVD_HD real
r_fma(real a, real b, real c)
{
    return fmaf(a, b, c);
}
#else
TSVD_HD real
r_sqrt(real x)
{
    return sqrt(x);
}

TSVD_HD real
r_fma(real a, real b, real c)
{
    return fma(a, b, c);
}
#endif

/*
 * A GPU's divisions and roots branch to care for all operands, and a thread does not work on
 * several operands at once across a branch.  Those below take approximations of 20 bits or more and
 * a step of third order, to the last place.  They are for normal numbers whose reciprocals are
 * normal too; of others the result may be NaN.
 */
#ifdef __CUDACC__
static __device__ __forceinline__ real
r_rough_rsqrt(real x)
{
    real y;

#if TSVD_SINGLE
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#endif
    return y;
}

static __device__ __forceinline__ real
r_rough_reciprocal(real x)
{
    real y;

#if TSVD_SINGLE
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#endif
    return y;
}

/* 1 / sqrt(x) */
static __device__ __forceinline__ real
r_rsqrt(real x)
{
    const real y = r_rough_rsqrt(x), rest = r_fma(-(x * y), y, 1);

    return r_fma(y * rest, r_fma(rest, REAL(0.375), REAL(0.5)), y);
}
#endif

/* 1 / x */
TSVD_HD real
r_reciprocal(real x)
{
#ifdef __CUDA_ARCH__
    const real inverse = r_rough_reciprocal(x), rest = r_fma(-x, inverse, 1);

    return r_fma(inverse, r_fma(rest, rest, rest), inverse);
#else
    return 1 / x;
#endif
}

/* a / b for |a| up to 16 and |b| from 1 to 16.  The quotient is corrected by its exact remainder
   (Markstein, IBM J. Res. Dev. 34 (1990)).  The result is that of the CPU, but for what rounding
   may do where the remainder is within 2^-50 of half a unit. */
TSVD_HD real
r_quotient(real a, real b)
{
#ifdef __CUDA_ARCH__
    const real inverse = r_reciprocal(b), quotient = a * inverse;

    return r_fma(r_fma(-quotient, b, a), inverse, quotient);
#else
    return a / b;
#endif
}

TSVD_HD real
r_max(real a, real b)
{
    return a > b ? a : b;
}

TSVD_HD real
r_min(real a, real b)
{
    return a < b ? a : b;
}

TSVD_HD real
r_copysign(real magnitude, real sign)
{
#if TSVD_SINGLE
    return copysignf(magnitude, sign);
#else
    return copysign(magnitude, sign);
#endif
}

/* The bits of x.  For x >= 0 they are ordered as the numbers are, so that bisection can halve an
   interval in exponent and mantissa alike. */
TSVD_HD real_int
r_bits(real x)
{
    real_int i;

    memcpy(&i, &x, sizeof i);
    return i;
}

TSVD_HD real
r_from_bits(real_int i)
{
    real x;

    memcpy(&x, &i, sizeof x);
    return x;
}

TSVD_HD int
r_isfinite(real x)
{
    return ((real_uint)r_bits(x) & R_EXPONENT_MASK) != R_EXPONENT_MASK;
}

/* 2^k for normal results, -R_BIAS < k <= R_BIAS. */
TSVD_HD real
r_pow2(int k)
{
    return r_from_bits((real_int)(k + R_BIAS) << R_DIGITS);
}

/* The shift at which a count decides whether a value is given as x > 0 or more: *twice is 1, -1 or
   0, and the shift is the result times 2^*twice.

   That is x itself, so a value is given as the largest number that is not above it.  There are two
   exceptions.  Up to the smallest normal number the shift lies half a step below x, so such values
   are rounded to the nearest number.  (In steps of the smallest number, entries are whole numbers
   and the values are algebraic integers, so none is exactly half a step from a number.)  Infinity
   stands for the values from the next power of two on, so no value that a number can hold becomes
   infinity. */
TSVD_HD real
r_shift(real x, int *twice)
{
    const real_int bits = r_bits(x);

    *twice = bits <= R_NORMAL_BITS ? -1 : bits == R_INFINITY_BITS;
    return *twice < 0 ? r_from_bits(2 * bits - 1) : *twice > 0 ? r_pow2(R_BIAS) : x;
}

/* y = x 2^-exponent, in two steps, since one power may be out of range. */
TSVD_HD void
r_scale(const real *x, int64_t count, real_int exponent, real *y)
{
    const real_int one = exponent / 2, other = exponent - one;
    const real factor = r_pow2((int)-one), rest = r_pow2((int)-other);

    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * factor * rest;
    }
}

/* x = m 2^*exponent with 1 <= |m| < 2, also for denormal x; m = 0 for x = 0. */
TSVD_HD real
r_split(real x, real_int *exponent)
{
    real_int field = (real_int)(((real_uint)r_bits(x) & R_EXPONENT_MASK) >> R_DIGITS);
    real_int below = 0;

    if (field == 0) {
        if (x == 0) {
            *exponent = 0;
            return 0;
        }
        x *= r_pow2(R_DIGITS + 1);
        below = R_DIGITS + 1;
        field = (real_int)(((real_uint)r_bits(x) & R_EXPONENT_MASK) >> R_DIGITS);
    }
    *exponent = field - R_BIAS - below;
    return r_from_bits(
        (real_int)(((real_uint)r_bits(x) & ~R_EXPONENT_MASK) | ((real_uint)R_BIAS << R_DIGITS)));
}

#endif
