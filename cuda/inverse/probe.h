/*
 * Whether Y is the inverse of S, by one vector.
 *
 * Partial pivoting bounds the multipliers, but not the numbers that are left: they can double with
 * each column, and Y has that many wrong digits (math/growth.h).  A bound on the growth would need
 * to look at all numbers after each column, and would also refuse what happens to be right.  So Y
 * itself is checked (Freivalds, "Probabilistic machines can use less running time", 1977): with v
 * of signs, z = S v is kept, and
 *
 *     off = Y z - v = (Y S - I) v
 *
 * has the expected square |Y S - I|_F^2 if signs are random.  It is compared with the numbers that
 * it is summed from, size = |Y| |z|.  All sums are float64, or complex numbers of float64.
 *
 * Y S - I is the residual that stays small where S is near singular: row operations turn S into I,
 * and Y is what they make of I.  max|off| was up to 2 sqrt(n) eps max(size) in a million random
 * matrices of order 9 to 32, and up to 0.6 of that unit in those of order 302, of any condition,
 * but for singular ones of whole numbers whose pivots are not zero.  At PROBE_UNITS sqrt(n) eps the
 * residual of Wright's matrices is below a tenth of the bound for inverses.
 */
#ifndef TSVDI_CUDA_INVERSE_PROBE_H
#define TSVDI_CUDA_INVERSE_PROBE_H

#include "inverse/wide.h"
#include "math/growth.h"

enum { PROBE_UNITS = 16 };

/* Entry j of v. */
static __device__ __forceinline__ double
probe_sign(int j)
{
    unsigned bits = (unsigned)j * 0x9e3779b9u;

    bits = (bits ^ bits >> 15) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u; /* as in MurmurHash3's last step */
    return (int)bits < 0 ? -1. : 1.;
}

/* sum + sign x. */
static __device__ __forceinline__ scalar_double
add_signed(scalar_double sum, double sign, scalar x)
{
#if TSVD_COMPLEX
    return {sum.re + sign * (double)x.re, sum.im + sign * (double)x.im};
#else
    return sum + sign * (double)x;
#endif
}

/* What off and size are measured by: |x|, or |re x| + |im x|. */
static __device__ __forceinline__ double
probe_size(double x)
{
    return fabs(x);
}

#if TSVD_COMPLEX
static __device__ __forceinline__ double
probe_size(scalar_double x)
{
    return fabs(x.re) + fabs(x.im);
}
#endif

/* Whether Y is too far from the inverse.  off and size: the largest of a matrix; NaN is above all.
   Infinity, of what overflows, is too far. */
static __device__ __forceinline__ bool
probe_fails(double off, double size, int64_t n)
{
    const double limit = PROBE_UNITS * sqrt((double)n) * (double)R_EPS;

    return !(off <= limit * size && size < (double)INFINITY);
}

#endif
