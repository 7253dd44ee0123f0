/*
 * Vectors of doubles for kernels that compute in doubles for either precision: the names of
 * math/pair.h.  Built like simd.h, which comes first.
 */
#ifndef TSVDI_CPU_KERNELS_WIDE_H
#define TSVDI_CPU_KERNELS_WIDE_H

#include "cpu/kernels/simd.h"

enum { WIDE_LANES = SIMD_BYTES / (int)sizeof(double) };

typedef double wide __attribute__((vector_size(SIMD_BYTES), may_alias));
typedef int64_t wide_int __attribute__((vector_size(SIMD_BYTES), may_alias));
typedef double wide_unaligned
    __attribute__((vector_size(SIMD_BYTES), may_alias, aligned(sizeof(double))));

/* What a wide is rounded to, and back. */
#if TSVD_SINGLE
typedef float wide_rounded __attribute__((vector_size(SIMD_BYTES / 2), may_alias));
#define wide_round(x) __builtin_convertvector(x, wide_rounded)
#define wide_widen(x) __builtin_convertvector(x, wide)
#else
typedef wide wide_rounded;
#define wide_round(x) (x)
#define wide_widen(x) (x)
#endif

#define wide_bits(x) ((wide_int)(x))
#define wide_from_bits(x) ((wide)(x))
#define wide_abs(x) ((wide)((wide_int)(x)&INT64_MAX))

TSVD_HD wide
wide_splat(double x)
{
#if defined(__AVX512F__)
    return (wide)_mm512_set1_pd(x);
#elif defined(SIMD_AVX2)
    return (wide)_mm256_set1_pd(x);
#else
    return (wide){x, x};
#endif
}

TSVD_HD wide_int
wide_int_splat(int64_t x)
{
#if defined(__AVX512F__)
    return (wide_int)_mm512_set1_epi64(x);
#elif defined(SIMD_AVX2)
    return (wide_int)_mm256_set1_epi64x(x);
#else
    return (wide_int){x, x};
#endif
}

#define WIDE_SPLAT(x) wide_splat(x)
#define WIDE_INT_SPLAT(x) wide_int_splat(x)

TSVD_HD wide
wide_fma(wide a, wide b, wide c)
{
#if defined(__AVX512F__)
    return (wide)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(SIMD_AVX2)
    return (wide)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    wide y;

    for (int i = 0; i < WIDE_LANES; i++) {
        y[i] = fma(a[i], b[i], c[i]);
    }
    return y;
#endif
}

TSVD_HD wide
wide_inverse(wide x)
{
    return 1 / x;
}

#if defined(__AVX512F__)

typedef __mmask8 wide_mask;
#define wide_equal(a, b) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_EQ_OQ)
#define wide_less(a, b) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_LT_OQ)
#define wide_int_equal(a, b) _mm512_cmpeq_epi64_mask((__m512i)(a), (__m512i)(b))
#define wide_int_less(a, b) _mm512_cmplt_epi64_mask((__m512i)(a), (__m512i)(b))

TSVD_HD wide
wide_select(wide_mask mask, wide a, wide b)
{
    return (wide)_mm512_mask_blend_pd(mask, (__m512d)b, (__m512d)a);
}

TSVD_HD wide_int
wide_int_select(wide_mask mask, wide_int a, wide_int b)
{
    return (wide_int)_mm512_mask_blend_epi64(mask, (__m512i)b, (__m512i)a);
}

#else

typedef wide_int wide_mask;
#define wide_equal(a, b) ((a) == (b))
#define wide_less(a, b) ((a) < (b))
#define wide_int_equal(a, b) ((a) == (b))
#define wide_int_less(a, b) ((a) < (b))

TSVD_HD wide_int
wide_int_select(wide_mask mask, wide_int a, wide_int b)
{
    return (a & mask) | (b & ~mask);
}

TSVD_HD wide
wide_select(wide_mask mask, wide a, wide b)
{
    return (wide)wide_int_select(mask, (wide_int)a, (wide_int)b);
}

#endif
#endif
