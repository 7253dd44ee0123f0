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

typedef void (*gemm32)(char *, char *, int *, int *, int *, const void *, const void *, int *,
                       const void *, int *, const void *, void *, int *);
typedef void (*gemm64)(char *, char *, int64_t *, int64_t *, const int64_t *, const void *,
                       const void *, int64_t *, const void *, int64_t *, const void *, void *,
                       int64_t *);

void
tsvdi_blas_tile(int single, int64_t rows, int64_t columns, int64_t terms, const void *a,
                int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    const void *alpha = single ? (const void *)&one_f : &one;
    const int64_t size = single ? sizeof(float) : sizeof(double);
    void *gemm = single ? blas.sgemm : blas.dgemm;
    char no = 'N';
    int64_t k = 0;

    do { /* the first product overwrites C, the others are added to it */
        const int64_t step = terms - k < BLAS_TILE ? terms - k : BLAS_TILE;
        const char *a_k = (const char *)a + k * size, *b_k = (const char *)b + k * ldb * size;
        const void *beta = k > 0 ? alpha : single ? (const void *)&zero_f : &zero;

        /* seen by columns, as BLAS does, the arrays are the transposes: C^T = B^T A^T */
        if (blas.integer_bytes == sizeof(int)) {
            int m = (int)columns, n = (int)rows, t = (int)step;
            int stride_a = (int)lda, stride_b = (int)ldb, stride_c = (int)ldc;

            ((gemm32)gemm)(&no, &no, &m, &n, &t, alpha, b_k, &stride_b, a_k, &stride_a, beta, c,
                           &stride_c);
        } else {
            ((gemm64)gemm)(&no, &no, &columns, &rows, &step, alpha, b_k, &ldb, a_k, &lda, beta, c,
                           &ldc);
        }
        k += step;
    } while (k < terms);
}
