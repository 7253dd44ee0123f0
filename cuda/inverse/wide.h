/*
 * Entries in the precision of double: what the probe (probe.h) and complete pivoting (complete.cu)
 * share.
 */
#ifndef TSVDI_CUDA_INVERSE_WIDE_H
#define TSVDI_CUDA_INVERSE_WIDE_H

#include "kernels.h"

static __device__ __forceinline__ scalar_double
widened(scalar x)
{
#if TSVD_COMPLEX
    return {(double)x.re, (double)x.im};
#else
    return (double)x;
#endif
}

static __device__ __forceinline__ scalar_double
product(scalar_double a, scalar_double b)
{
#if TSVD_COMPLEX
    return {fma(-a.im, b.im, a.re * b.re), fma(a.im, b.re, a.re * b.im)};
#else
    return a * b;
#endif
}

#endif
