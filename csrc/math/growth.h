/*
 * Growth in elimination.
 *
 * Partial pivoting gives S + E = P L U, where E is a small multiple of u max|U| (Wilkinson, "Error
 * analysis of direct methods of matrix inversion", 1961).  So the inverse is as good as the growth
 * max|U| / max|S| is small.  That of n x n matrices can be 2^(n-1), and is so for some that come
 * from boundary value problems (Wright, "A collection of problems for which Gaussian elimination
 * with partial pivoting is unstable", 1993) and from integral equations (Foster, "Gaussian
 * elimination with partial pivoting can fail in practice", 1994).  Random matrices have n^(2/3)
 * (Trefethen & Schreiber 1990), scaled orthogonal ones up to n: Hadamard's have n, those of sines
 * and cosines n / 2.  At 4 n Wright's have residuals below a hundredth of the bound.
 */
#ifndef TSVDI_GROWTH_H
#define TSVDI_GROWTH_H

#include "math/real.h"

/* Whether the pivots of a matrix of order n grew too much for its inverse to be of use; also for
   NaN. */
TSVD_HD int
growth_is_large(double growth, int64_t n)
{
    return !(growth <= 4 * (double)n);
}

#endif
