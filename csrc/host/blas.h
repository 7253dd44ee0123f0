/*
 * Matrix products on the CPU; see tsvd_set_blas() in tsvd.h.
 */
#ifndef TSVDI_BLAS_H
#define TSVDI_BLAS_H

#include "tsvd/tsvd.h"

/* 1 if there is a BLAS. */
int tsvdi_blas_ready(void);

/*
 * C = A B, row by row: A is rows x terms with lda numbers between rows, B terms x columns, C
 * rows x columns; float32 if `single`.  terms = 0 gives C = 0; all numbers are below 2^31.  Made in
 * the calling thread, whatever threads the BLAS has; for blocks that fit in the L2 cache.
 */
void tsvdi_blas_multiply(int single, int64_t rows, int64_t columns, int64_t terms, const void *a,
                         int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc);

#endif
