/*
 * Vectors of reals for the CPU kernels: as wide as the instruction set that the
 * file is compiled for.  GCC's and Clang's vector types carry the arithmetic;
 * only the fused multiply-add and the broadcast need a name for each instruction set.
 */
#ifndef TSVDI_SIMD_H
#define TSVDI_SIMD_H

#include "real.h"

#if defined(__AVX512F__) || defined(__FMA__)
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

TSVD_HD simd
simd_splat(real x)
{
#if defined(__AVX512F__) && TSVD_SINGLE
    return (simd)_mm512_set1_ps(x);
#elif defined(__AVX512F__)
    return (simd)_mm512_set1_pd(x);
#elif defined(__AVX2__) && TSVD_SINGLE
    return (simd)_mm256_set1_ps(x);
#elif defined(__AVX2__)
    return (simd)_mm256_set1_pd(x);
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
#if defined(__AVX512F__) && TSVD_SINGLE
    return (simd)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX512F__)
    return (simd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && TSVD_SINGLE
    return (simd)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__FMA__)
    return (simd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    simd y;

    for (int i = 0; i < SIMD_LANES; i++) {
        y[i] = r_fma(a[i], b[i], c[i]);
    }
    return y;
#endif
}

/* The names of num.h. */
typedef simd num;
typedef simd_int num_int;
#define num_fma simd_fma
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

TSVD_HD simd
num_if_negative(simd x, simd a, simd b)
{
    simd_int below = x < 0;

    return (simd)(((simd_int)a & below) | ((simd_int)b & ~below));
}

#endif
