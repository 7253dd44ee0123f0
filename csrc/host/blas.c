/*
 * Matrix products on the CPU; see blas.h.  Compiled once for both precisions.
 */
#include "host/blas.h"

#include <string.h>

#if TSVD_LINKED_BLAS
#if TSVD_BLAS_ILP64
tsvd_dgemm64 dgemm_;
tsvd_sgemm64 sgemm_;
#else
tsvd_dgemm32 dgemm_;
tsvd_sgemm32 sgemm_;
#endif
#endif

tsvd_blas
tsvdi_blas_linked(void)
{
    tsvd_blas blas = {NULL, NULL, NULL, NULL};

#if TSVD_LINKED_BLAS && TSVD_BLAS_ILP64
    blas.dgemm64 = dgemm_;
    blas.sgemm64 = sgemm_;
#elif TSVD_LINKED_BLAS
    blas.dgemm32 = dgemm_;
    blas.sgemm32 = sgemm_;
#endif
    return blas;
}

int
tsvd_has_blas(void)
{
    const tsvd_blas blas = tsvdi_blas_linked();

    return tsvdi_blas_ready(&blas);
}

int
tsvdi_blas_ready(const tsvd_blas *blas)
{
    return (blas->dgemm32 != NULL && blas->sgemm32 != NULL) ||
           (blas->dgemm64 != NULL && blas->sgemm64 != NULL);
}

/* Orders of one product.  OpenBLAS makes products of up to 2^18 multiplications in the calling
   thread.  Larger ones it would share with threads of its own, which would take the processors from
   ours and go on spinning when they are done.  64 x 64 x 64 runs at 0.8 of the rate of large
   products (Xeon with AVX-512, 2.6 GHz). */
enum { TILE = 64 };

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One product of row-major matrices, and whether it is added to C. */
struct tile {
    int64_t rows, columns, terms;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    int add;
};

/* BLAS sees matrices by columns: to it the arrays are the transposes, C^T = B^T A^T. */
static void
multiply_tile32(const tsvd_blas *blas, int single, const struct tile *t)
{
    const int32_t m = (int32_t)t->columns, n = (int32_t)t->rows, k = (int32_t)t->terms;
    const int32_t lda = (int32_t)t->lda, ldb = (int32_t)t->ldb, ldc = (int32_t)t->ldc;

    if (single) {
        const float one = 1, factor = t->add ? 1.f : 0.f;

        blas->sgemm32("N", "N", &m, &n, &k, &one, t->b, &ldb, t->a, &lda, &factor, t->c, &ldc);
    } else {
        const double one = 1, factor = t->add ? 1. : 0.;

        blas->dgemm32("N", "N", &m, &n, &k, &one, t->b, &ldb, t->a, &lda, &factor, t->c, &ldc);
    }
}

static void
multiply_tile64(const tsvd_blas *blas, int single, const struct tile *t)
{
    if (single) {
        const float one = 1, factor = t->add ? 1.f : 0.f;

        blas->sgemm64("N", "N", &t->columns, &t->rows, &t->terms, &one, t->b, &t->ldb, t->a,
                      &t->lda, &factor, t->c, &t->ldc);
    } else {
        const double one = 1, factor = t->add ? 1. : 0.;

        blas->dgemm64("N", "N", &t->columns, &t->rows, &t->terms, &one, t->b, &t->ldb, t->a,
                      &t->lda, &factor, t->c, &t->ldc);
    }
}

void
tsvdi_blas_multiply(const tsvd_blas *blas, int single, int64_t rows, int64_t columns, int64_t terms,
                    const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    const int64_t size = single ? sizeof(float) : sizeof(double);
    int64_t k = 0;

    do { /* the first product overwrites C, the others are added to it */
        for (int64_t i = 0; i < rows; i += TILE) {
            for (int64_t j = 0; j < columns; j += TILE) {
                const struct tile tile = {
                    .rows = least(rows - i, TILE),
                    .columns = least(columns - j, TILE),
                    .terms = least(terms - k, TILE),
                    .a = (const char *)a + (i * lda + k) * size,
                    .b = (const char *)b + (k * ldb + j) * size,
                    .c = (char *)c + (i * ldc + j) * size,
                    .lda = lda,
                    .ldb = ldb,
                    .ldc = ldc,
                    .add = k > 0,
                };

                if (blas->dgemm32 != NULL) {
                    multiply_tile32(blas, single, &tile);
                } else {
                    multiply_tile64(blas, single, &tile);
                }
            }
        }
        k += TILE;
    } while (k < terms);
}
