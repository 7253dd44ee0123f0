/*
 * Matrix products on the CPU, through the BLAS that tsvd_set_blas() was given.  Compiled once for
 * both precisions.
 */
#include "host/blas.h"

#include <stdatomic.h>

static struct tsvd_blas blas;
static atomic_bool ready; /* what `blas` holds may be used */

void
tsvd_set_blas(const tsvd_blas *given)
{
    blas = *given;
    atomic_store_explicit(&ready, blas.dgemm != NULL && blas.sgemm != NULL, memory_order_release);
}

int
tsvdi_blas_ready(void)
{
    return atomic_load_explicit(&ready, memory_order_acquire);
}

typedef void (*gemm32)(char *, char *, int *, int *, int *, const void *, const void *, int *,
                       const void *, int *, const void *, void *, int *);
typedef void (*gemm64)(char *, char *, int64_t *, int64_t *, const int64_t *, const void *,
                       const void *, int64_t *, const void *, int64_t *, const void *, void *,
                       int64_t *);

/* Orders of one product.  OpenBLAS makes products of up to 2^18 multiplications in the calling
   thread; larger ones it would share with threads of its own, which would take the processors from
   ours and go on spinning when they are done.  64 x 64 x 64 runs at 0.8 of the rate of large
   products (Xeon with AVX-512, 2.6 GHz). */
enum { TILE = 64 };

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* C = A B or, if `add`, C += A B for a tile. */
static void
multiply_tile(int single, int add, int64_t rows, int64_t columns, int64_t terms, const void *a,
              int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    const void *alpha = single ? (const void *)&one_f : &one;
    const void *beta = add ? alpha : single ? (const void *)&zero_f : &zero;
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

void
tsvdi_blas_multiply(int single, int64_t rows, int64_t columns, int64_t terms, const void *a,
                    int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    const int64_t size = single ? sizeof(float) : sizeof(double);
    int64_t k = 0;

    do { /* the first product overwrites C, the others are added to it */
        const int64_t step = least(terms - k, TILE);

        for (int64_t i = 0; i < rows; i += TILE) {
            for (int64_t j = 0; j < columns; j += TILE) {
                multiply_tile(single, k > 0, least(rows - i, TILE), least(columns - j, TILE), step,
                              (const char *)a + (i * lda + k) * size, lda,
                              (const char *)b + (k * ldb + j) * size, ldb,
                              (char *)c + (i * ldc + j) * size, ldc);
            }
        }
        k += step;
    } while (k < terms);
}
