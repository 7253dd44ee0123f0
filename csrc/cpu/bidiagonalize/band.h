/*
 * The band between a dense matrix and its bidiagonal form: upper, with CPU_BAND superdiagonals.
 *
 * The chase (chase.c) fills in blocks on both sides of it.  So a row has places from CPU_BAND - 1
 * before its diagonal entry to 2 CPU_BAND - 1 after it.
 */
#ifndef TSVDI_CPU_BIDIAGONALIZE_BAND_H
#define TSVDI_CPU_BIDIAGONALIZE_BAND_H

#include "cpu/matrix/matrix.h"
#include "cpu/tuning.h"

/* Numbers from an entry to that below it. */
enum { BAND_DOWN = 3 * CPU_BAND };

/* Numbers of a band of order n. */
static inline int64_t
band_numbers(int64_t n)
{
    return n * (BAND_DOWN + 1);
}

/* Entry (row, column).  Entries of a row lie side by side. */
static inline scalar *
band_at(scalar *band, int64_t row, int64_t column)
{
    return band + row * BAND_DOWN + column + CPU_BAND - 1;
}

#endif
