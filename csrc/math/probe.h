/*
 * Probes: whether vectors are orthogonal and belong to their values, in O(n k) operations.
 *
 * V holds k vectors of n entries as rows, and X has PROBES columns of k independent random numbers
 * of mean 0 and variance 1.  The expected square of a row of V (V^T X) - X, over PROBES, is that of
 * the norm of the row of V V^T - I, which is no less than its largest entry.  Each side has a sum
 *
 *     W = V^T X, of n x PROBES, then the rows of V W - X,
 *
 * and B (R^T X) - L (S X) shows by its norm that of B R^T - L S.
 *
 * The numbers of X are sums of four numbers of 16 bits each, whose distribution is close to normal.
 * They are made of integers alone from their place in X, so they are the same everywhere.
 */
#ifndef TSVDI_PROBE_H
#define TSVDI_PROBE_H

#include "math/real.h"

/* Columns of X.  A row of the norm of ten times the limit is missed with a chance of 1e-7. */
enum { PROBES = 8 };

/* Entry (j, column) of X. */
TSVD_HD double
probe_entry(int64_t j, int column)
{
    uint64_t bits = (uint64_t)j * PROBES + (uint64_t)column + 1;
    int64_t sum;

    /* the mixing of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) */
    bits *= UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    bits ^= bits >> 31;
    sum = (int64_t)(bits & 0xffff) + (int64_t)(bits >> 16 & 0xffff) +
          (int64_t)(bits >> 32 & 0xffff) + (int64_t)(bits >> 48);
    /* the variance of one of them is (2^32 - 1) / 12 */
    return (double)(sum - 2 * 65535) * (1.7320508075688772 / 65536);
}

/* The most that the squares of a row of V (V^T X) - X may add up to: half of the bound of a result,
   3 eps (n + 8), for the root of their mean.  A row at the bound passes with a chance of 0.02, and
   each entry of V V^T - I is in two. */
TSVD_HD double
probe_limit(int64_t n)
{
    const double limit = 1.5 * (double)R_EPS * (double)(n + 8);

    return limit * limit * (double)PROBES;
}

/* The same for the squares of B (R^T X) - L (S X), over those of B's entries: half of
   2 eps (n + 8). */
TSVD_HD double
probe_residual_limit(int64_t n)
{
    const double limit = (double)R_EPS * (double)(n + 8);

    return limit * limit * (double)PROBES;
}

#endif
