/*
 * Vectors of reals for the CPU kernels, as wide as the instruction set that the file is compiled
 * for.  GCC's and Clang's vector types have the arithmetic.  What they lack is named after its
 * instruction, SIMD_NATIVE(operation), where there is one.
 */
#ifndef TSVDI_CPU_KERNELS_SIMD_H
#define TSVDI_CPU_KERNELS_SIMD_H

#include "math/real.h"

/* Some processors have FMA without the integers of AVX2: they take the vectors of 16 bytes. */
#if defined(__AVX2__) && defined(__FMA__)
#define SIMD_AVX2 1
#endif

#if defined(__AVX512F__) || defined(SIMD_AVX2)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define SIMD_BYTES 64
#elif defined(__AVX2__)
#define SIMD_BYTES 32
#else
#define SIMD_BYTES 16
#endif

enum { SIMD_LANES = SIMD_BYTES / (int)sizeof(real) };

typedef real simd __attribute__((vector_size(SIMD_BYTES), may_alias));
typedef real_int simd_int __attribute__((vector_size(SIMD_BYTES), may_alias));
typedef real_uint simd_uint __attribute__((vector_size(SIMD_BYTES), may_alias));
typedef real simd_unaligned
    __attribute__((vector_size(SIMD_BYTES), may_alias, aligned(sizeof(real))));

#if defined(__AVX512F__) && TSVD_SINGLE
typedef __m512 simd_native;
typedef __mmask16 num_mask; /* a bit for each lane */
#define SIMD_NATIVE(operation) _mm512_##operation##_ps
#elif defined(__AVX512F__)
typedef __m512d simd_native;
typedef __mmask8 num_mask;
#define SIMD_NATIVE(operation) _mm512_##operation##_pd
#else
typedef simd_int num_mask; /* lanes of ones or zeros */
#if defined(SIMD_AVX2) && TSVD_SINGLE
typedef __m256 simd_native;
#define SIMD_NATIVE(operation) _mm256_##operation##_ps
#elif defined(SIMD_AVX2)
typedef __m256d simd_native;
#define SIMD_NATIVE(operation) _mm256_##operation##_pd
#endif
#endif

TSVD_HD simd
simd_splat(real x)
{
#ifdef SIMD_NATIVE
    return (simd)SIMD_NATIVE(set1)(x);
#else
    simd y;

    for (int i = 0; i < SIMD_LANES; i++) {
        y[i] = x;
    }
    return y;
#endif
}

TSVD_HD simd
simd_fma(simd a, simd b, simd c)
{
#ifdef SIMD_NATIVE
    return (simd)SIMD_NATIVE(fmadd)((simd_native)a, (simd_native)b, (simd_native)c);
#else
    simd y;

    for (int i = 0; i < SIMD_LANES; i++) {
        y[i] = r_fma(a[i], b[i], c[i]);
    }
    return y;
#endif
}

/* a b + c, fused where the processor can: without such an instruction r_fma() calls a function. */
TSVD_HD simd
simd_multiply_add(simd a, simd b, simd c)
{
#ifdef SIMD_NATIVE
    return simd_fma(a, b, c);
#else
    return a * b + c;
#endif
}

TSVD_HD simd
simd_sqrt(simd x)
{
#ifdef SIMD_NATIVE
    return (simd)SIMD_NATIVE(sqrt)((simd_native)x);
#else
    simd y;

    for (int i = 0; i < SIMD_LANES; i++) {
        y[i] = r_sqrt(x[i]);
    }
    return y;
#endif
}

/* 1 / sqrt(x) to about an ulp, for normal x.  Avoids the divider, which takes 40 cycles for a
   vector's root and quotient with AVX-512.  An estimate y of 14 bits (12 with AVX) is corrected by
   its error e = 1 - x y^2 through the series of (1 - e)^(-1/2). */
TSVD_HD simd
simd_inverse_sqrt(simd x)
{
#if defined(__AVX512F__) && !TSVD_SINGLE
    simd y = (simd)_mm512_rsqrt14_pd((__m512d)x);
    simd e = simd_fma(-(x * y), y, simd_splat(1));
    simd high = simd_fma(simd_splat(REAL(35) / 128), e, simd_splat(REAL(5) / 16));
    simd low = simd_fma(simd_splat(REAL(3) / 8), e, simd_splat(REAL(1) / 2));

    return simd_fma(y * e, simd_fma(e * e, high, low), y);
#elif defined(SIMD_NATIVE) && TSVD_SINGLE
#ifdef __AVX512F__
    simd y = (simd)_mm512_rsqrt14_ps((__m512)x);
#else
    simd y = (simd)_mm256_rsqrt_ps((__m256)x);
#endif
    simd e = simd_fma(-(x * y), y, simd_splat(1));

    return simd_fma(y * e, simd_fma(simd_splat(REAL(3) / 8), e, simd_splat(REAL(1) / 2)), y);
#else
    return 1 / simd_sqrt(x);
#endif
}

/* a / b for |a| up to 2 and b from 1 to 4.  With AVX-512 it avoids the divider too: an estimate of
   14 bits, for double precision a step of third order, and the quotient corrected by its exact
   remainder, as in r_quotient(). */
TSVD_HD simd
simd_quotient(simd a, simd b)
{
#ifdef __AVX512F__
    simd inverse = (simd)SIMD_NATIVE(rcp14)((simd_native)b), quotient;

    if (!TSVD_SINGLE) {
        const simd rest = simd_fma(-b, inverse, simd_splat(1));

        inverse = simd_fma(inverse, simd_fma(rest, rest, rest), inverse);
    }
    quotient = a * inverse;
    return simd_fma(simd_fma(-quotient, b, a), inverse, quotient);
#else
    return a / b;
#endif
}

/* The lanes below `count`: a mask for the two functions that follow. */
#if defined(__AVX512F__)
#define SIMD_PART(count) ((num_mask)((1u << (count)) - 1))
#define SIMD_LOAD_PART(from, part) (simd) SIMD_NATIVE(maskz_loadu)(part, from)
#define SIMD_STORE_PART(to, part, x) SIMD_NATIVE(mask_storeu)(to, part, (simd_native)(x))
#elif defined(SIMD_NATIVE)
#define SIMD_PART(count) ((__m256i)(simd_first_lanes(count)))
#define SIMD_LOAD_PART(from, part) (simd) SIMD_NATIVE(maskload)(from, part)
#define SIMD_STORE_PART(to, part, x) SIMD_NATIVE(maskstore)(to, part, (simd_native)(x))

TSVD_HD simd_int
simd_first_lanes(int64_t count)
{
    simd_int lane;

    for (int i = 0; i < SIMD_LANES; i++) {
        lane[i] = i;
    }
    return lane < (real_int)count;
}
#endif

/* The first `count` entries of x, and 0 in the other lanes; 0 <= count <= SIMD_LANES. */
TSVD_HD simd
simd_load_part(const real *x, int64_t count)
{
#ifdef SIMD_PART
    return SIMD_LOAD_PART(x, SIMD_PART(count));
#else
    simd y = {0};

    for (int i = 0; i < count; i++) {
        y[i] = x[i];
    }
    return y;
#endif
}

/* Stores the first `count` lanes of x. */
TSVD_HD void
simd_store_part(real *y, int64_t count, simd x)
{
#ifdef SIMD_PART
    SIMD_STORE_PART(y, SIMD_PART(count), x);
#else
    for (int i = 0; i < count; i++) {
        y[i] = x[i];
    }
#endif
}

/* The names of num.h. */
typedef simd num;
typedef simd_int num_int;
#define num_fma simd_fma
#define num_sqrt simd_sqrt
#define num_inverse_sqrt simd_inverse_sqrt
#define num_bits(x) ((simd_int)(x))
#define num_from_bits(x) ((simd)(x))
#define num_sign_bit(x) ((simd_int)((simd_uint)(x) >> (R_BITS - 1)))
#define NUM_SPLAT(x) simd_splat(x)

TSVD_HD simd_int
num_int_max(simd_int a, simd_int b)
{
    simd_int larger = a > b;

    return (a & larger) | (b & ~larger);
}

TSVD_HD simd_int
num_int_clamp(simd_int x, real_int low, real_int high)
{
    simd_int below = x < low;
    simd_int above = x > high;

    return (x & ~below & ~above) | (below & low) | (above & high);
}

/* ---- conditions, one for each lane ---- */

#if defined(__AVX512F__)

#if TSVD_SINGLE
#define SIMD_COMPARE(a, b, how) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), how)
#else
#define SIMD_COMPARE(a, b, how) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), how)
#endif
#define num_less(a, b) SIMD_COMPARE(a, b, _CMP_LT_OQ)
#define num_less_equal(a, b) SIMD_COMPARE(a, b, _CMP_LE_OQ)
#define num_equal(a, b) SIMD_COMPARE(a, b, _CMP_EQ_OQ)
#define num_any(mask) ((mask) != 0)

TSVD_HD simd
num_select(num_mask mask, simd a, simd b)
{
    return (simd)SIMD_NATIVE(mask_blend)(mask, (simd_native)b, (simd_native)a);
}

TSVD_HD simd_int
num_flags(num_mask mask, real_int flags)
{
#if TSVD_SINGLE
    return (simd_int)_mm512_maskz_set1_epi32(mask, flags);
#else
    return (simd_int)_mm512_maskz_set1_epi64(mask, flags);
#endif
}

#else

#define num_less(a, b) ((a) < (b))
#define num_less_equal(a, b) ((a) <= (b))
#define num_equal(a, b) ((a) == (b))

TSVD_HD simd_int
num_flags(num_mask mask, real_int flags)
{
    return mask & flags;
}

TSVD_HD simd
num_select(num_mask mask, simd a, simd b)
{
    return (simd)(((simd_int)a & mask) | ((simd_int)b & ~mask));
}

TSVD_HD int
num_any(num_mask mask)
{
    real_int any = 0;

    for (int lane = 0; lane < SIMD_LANES; lane++) {
        any |= mask[lane];
    }
    return any != 0;
}

#endif

TSVD_HD simd
num_max(simd a, simd b)
{
#ifdef SIMD_NATIVE
    return (simd)SIMD_NATIVE(max)((simd_native)a, (simd_native)b);
#else
    return num_select(num_less(b, a), a, b);
#endif
}

TSVD_HD simd
num_min(simd a, simd b)
{
#ifdef SIMD_NATIVE
    return (simd)SIMD_NATIVE(min)((simd_native)a, (simd_native)b);
#else
    return num_select(num_less(a, b), a, b);
#endif
}

#define num_abs(x) num_from_bits(num_bits(x) & ~(real_int)R_SIGN_BIT)
#define num_copysign(magnitude, sign)                                                              \
    num_from_bits(num_bits(num_abs(magnitude)) | (num_bits(sign) & (real_int)R_SIGN_BIT))

#endif
