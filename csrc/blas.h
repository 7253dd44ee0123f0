/*
 * Matrix products on the CPU; see tsvd_set_blas() in tsvd.h.
 */
#ifndef TSVDI_BLAS_H
#define TSVDI_BLAS_H

#include "tsvd.h"

/* 1 if there is a BLAS. */
int tsvdi_blas_ready(void);

/* Whether "auto" computes vectors of order n by divide and conquer. */
int tsvdi_prefers_dc(const tsvd_options *options, int64_t n);

/* Rows and columns of a product, at most.  OpenBLAS makes products of up to 2^18 multiplications in
   the calling thread; larger ones it would share with threads of its own, which would take the
   processors from ours and go on spinning when they are done.  64 x 64 x 64 runs at 0.8 of the
   rate of large products (Xeon with AVX-512, 2.6 GHz). */
enum { BLAS_TILE = 64 };

/* C = A B, row by row: A is rows x terms with lda numbers between rows, B terms x columns, C
   rows x columns; float32 if `single`.  rows, columns <= BLAS_TILE; terms = 0 gives C = 0; all
   numbers are below 2^31.  Made in the calling thread. */
void tsvdi_blas_tile(int single, int64_t rows, int64_t columns, int64_t terms, const void *a,
                     int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc);

#endif
