/*
 * Matrix products on the CPU, through the BLAS of a handle.
 */
#ifndef TSVDI_BLAS_H
#define TSVDI_BLAS_H

#include "tsvd/tsvd.h"

/* 1 if both products of one integer size are there, and those of complex numbers if asked for. */
int tsvdi_blas_ready(const tsvd_blas *blas, int with_complex);

/* The BLAS that the library is linked with; empty if it is linked with none. */
tsvd_blas tsvdi_blas_linked(void);

/*
 * enter() is due before threads make products, and leave() with *granted after them.  OpenBLAS maps
 * a buffer for each thread that makes a product at the same time as others, and retries for ever if
 * it gets none: a call would neither end nor fail.  *granted is how many of the `wanted` threads
 * the address space has buffers for.  TSVD_ERR_MEMORY: it has none, and nothing is granted.
 */
tsvd_status tsvdi_blas_enter(const tsvd_blas *blas, int wanted, tsvd_error *error, int *granted);
void tsvdi_blas_leave(int granted);

/*
 * C = A B in C order: A is rows x terms, B terms x columns, C rows x columns, with leading
 * dimensions (numbers from one row to the next) lda, ldb and ldc.  terms = 0 gives C = 0; all
 * sizes are below 2^31.  Made in the calling thread, whatever threads the BLAS has; for blocks that
 * fit in the L2 cache.
 */
void tsvdi_blas_multiply(const tsvd_blas *blas, tsvd_dtype dtype, int64_t rows, int64_t columns,
                         int64_t terms, const void *a, int64_t lda, const void *b, int64_t ldb,
                         void *c, int64_t ldc);

/* C (m x n) = C + factor A B (k terms), of matrices that are stored by columns with leading
   dimensions lda, ldb and ldc.  A or B is stored as its conjugate transpose if its flag is set. */
struct blas_product {
    int64_t m, n, k;
    int a_transposed, b_transposed;
    int overwrite; /* 1: C is not read, and becomes the product */
    int in_double; /* 1: of scalar_double, whatever the caller computes in, as
                      tsvdi_cpu_dense_product() does */
    double factor;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
};

/* Made in the calling thread, whatever threads the BLAS has. */
void tsvdi_blas_product(const tsvd_blas *blas, tsvd_dtype dtype, const struct blas_product *p);

#endif
