/*
 * Matrix products on the device, by cuBLAS.  No other part of tsvd needs it: it is opened when
 * the first product is asked for.
 */
#ifndef TSVDI_CUDA_RUNTIME_BLAS_H
#define TSVDI_CUDA_RUNTIME_BLAS_H

#include "runtime/device.h"

/* The numbers of a product.  TSVD_SINGLE is one of the first two. */
enum {
    TSVDI_FLOAT64 = 0,
    TSVDI_FLOAT32 = 1, /* computed as such */
    TSVDI_LEADING = 2, /* float32, of which the leading 11 bits are multiplied and the products are
                          summed in float32, where the device has TF32; else as float32 */
    TSVDI_COMPLEX128 = 3,
    TSVDI_COMPLEX64 = 4,
};

/* What a factor of a product is, of what is stored: the matrix itself, its transpose, or its
   conjugate transpose, which of a real matrix is the transpose. */
enum { TSVDI_AS_STORED = 0, TSVDI_TRANSPOSED = 1, TSVDI_ADJOINT = 2 };

/*
 * C = A B for `count` triples of row-major (C-ordered) matrices at equal distances, all on the
 * call's device.
 *
 * kind              of the numbers
 * rows, columns     of C; if one is 0 nothing is done
 * terms             columns of A and rows of B; 0: C becomes zero
 * lda, ldb, ldc     leading dimensions of A, B and C: numbers between rows.  They and the sizes
 *                   are below 2^31
 * stride_a, ...     numbers between consecutive A, B and C
 * count             triples
 * stream            the stream to work on; NULL: that of the call.  Another one belongs to the
 *                   caller, who synchronizes it before tsvdi_cuda_blas_close().
 *
 * The bits are the same from run to run.  The status is TSVD_ERR_LIBRARY if cuBLAS is not found;
 * the error then says what to install.  It is TSVD_ERR_MEMORY if cuBLAS finds no device memory,
 * and TSVD_ERR_CUDA if a call of cuBLAS fails.
 */
tsvd_status tsvdi_cuda_multiply(struct cuda_call *call, int kind, int64_t rows, int64_t columns,
                                int64_t terms, const void *d_a, int64_t lda, const void *d_b,
                                int64_t ldb, void *d_c, int64_t ldc, int64_t stride_a,
                                int64_t stride_b, int64_t stride_c, int count,
                                cudaStream_t stream = NULL);

/* A factor of a product: row-major, with `ld` numbers between rows and `stride` numbers between
   consecutive factors. */
struct cuda_factor {
    const void *d;
    int64_t ld, stride;
    int form; /* TSVDI_AS_STORED, ...; ld is of what is stored */
};

/* C = alpha A B + beta C; else as above, but if terms = 0 nothing is done.  alpha and beta are
   exact in float32 too. */
tsvd_status tsvdi_cuda_multiply_add(struct cuda_call *call, int kind, int64_t rows, int64_t columns,
                                    int64_t terms, double alpha, struct cuda_factor a,
                                    struct cuda_factor b, double beta, void *d_c, int64_t ldc,
                                    int64_t stride_c, int64_t count, cudaStream_t stream = NULL);

/* At the end of a call: later products of another call wait for those that are under way on the
   call's stream, if they use the same workspace. */
void tsvdi_cuda_blas_leave(struct cuda_call *call);

/* Gives back what multiply took for the call. */
void tsvdi_cuda_blas_close(struct cuda_call *call);

#endif
