/*
 * Matrix products on the CPU, through the BLAS that tsvd_set_blas() was given.  Compiled once for
 * both precisions.
 */
#include "blas.h"

#include <limits.h>

#include "crossover.h"

static struct tsvd_blas blas;

void
tsvd_set_blas(const tsvd_blas *given)
{
    blas = *given;
}

int
tsvdi_blas_ready(void)
{
    return blas.dgemm != NULL && blas.sgemm != NULL;
}

int
tsvdi_prefers_dc(const tsvd_options *options, int64_t n)
{
    return options->device >= 0 || (n >= DC_ORDER && tsvdi_blas_ready());
}

int
tsvd_uses_blas(const tsvd_problem *problem, const tsvd_options *options)
{
    return options->device < 0 && problem->L != NULL &&
           (options->method == TSVD_METHOD_DC ||
            (options->method == TSVD_METHOD_AUTO && problem->n >= DC_ORDER));
}

typedef void (*gemm32)(char *, char *, int *, int *, int *, void *, const void *, int *,
                       const void *, int *, void *, void *, int *);
typedef void (*gemm64)(char *, char *, int64_t *, int64_t *, int64_t *, void *, const void *,
                       int64_t *, const void *, int64_t *, void *, void *, int64_t *);

void
tsvdi_blas_multiply(int single, int64_t rows, int64_t columns, int64_t terms, const void *a,
                    int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    double one = 1, zero = 0;
    float one_f = 1, zero_f = 0;
    void *alpha = single ? (void *)&one_f : &one, *beta = single ? (void *)&zero_f : &zero;
    void *gemm = single ? blas.sgemm : blas.dgemm;
    char no = 'N';

    /* seen by columns, as BLAS does, the arrays are the transposes: C^T = B^T A^T */
    if (blas.integer_bytes == sizeof(int)) {
        int m = (int)columns, n = (int)rows, k = (int)terms;
        int stride_a = (int)lda, stride_b = (int)ldb, stride_c = (int)ldc;

        ((gemm32)gemm)(&no, &no, &m, &n, &k, alpha, b, &stride_b, a, &stride_a, beta, c, &stride_c);
    } else {
        ((gemm64)gemm)(&no, &no, &columns, &rows, &terms, alpha, b, &ldb, a, &lda, beta, c, &ldc);
    }
}
