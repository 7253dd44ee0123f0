/*
 * A plain BLAS for tests, which checks its arguments as the reference BLAS does.
 */
#ifndef TSVD_TESTS_PLAIN_BLAS_H
#define TSVD_TESTS_PLAIN_BLAS_H

#include "check.h"
#include "tsvd/tsvd.h"

static int64_t products; /* made so far */

static int64_t
at_least_one(int64_t x)
{
    return x > 1 ? x : 1;
}

static void
check_product(char transa, char transb, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
              int64_t ldc)
{
#pragma omp atomic
    products++;
#pragma omp critical(tsvd_test_blas)
    CHECK((transa == 'N' || transa == 'T') && (transb == 'N' || transb == 'T') && m >= 0 &&
              n >= 0 && k >= 0 && lda >= at_least_one(transa == 'T' ? k : m) &&
              ldb >= at_least_one(transb == 'T' ? n : k) && ldc >= at_least_one(m),
          "m %lld, n %lld, k %lld, strides %lld, %lld, %lld", (long long)m, (long long)n,
          (long long)k, (long long)lda, (long long)ldb, (long long)ldc);
}

/* C = alpha A B + beta C by columns; with beta = 0 nothing of C is read. */
#define GEMM(name, type, integer)                                                                  \
    static void name(const char *transa, const char *transb, const integer *m, const integer *n,   \
                     const integer *k, const type *alpha, const type *a, const integer *lda,       \
                     const type *b, const integer *ldb, const type *beta, type *c,                 \
                     const integer *ldc)                                                           \
    {                                                                                              \
        const int64_t rows = *m, depth = *k;                                                       \
        const int64_t down_a = *transa == 'T' ? *lda : 1, along_a = *transa == 'T' ? 1 : *lda;     \
        const int64_t down_b = *transb == 'T' ? *ldb : 1, along_b = *transb == 'T' ? 1 : *ldb;     \
                                                                                                   \
        check_product(*transa, *transb, *m, *n, *k, *lda, *ldb, *ldc);                             \
        for (int64_t j = 0; j < *n; j++) {                                                         \
            type *column = c + j * *ldc;                                                           \
                                                                                                   \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                column[i] = *beta == 0 ? 0 : *beta * column[i];                                    \
            }                                                                                      \
            for (int64_t l = 0; l < depth; l++) {                                                  \
                const type weight = *alpha * b[l * down_b + j * along_b];                          \
                                                                                                   \
                for (int64_t i = 0; i < rows; i++) {                                               \
                    column[i] += weight * a[i * down_a + l * along_a];                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

GEMM(dgemm_32, double, int32_t)
GEMM(sgemm_32, float, int32_t)
GEMM(dgemm_64, double, int64_t)
GEMM(sgemm_64, float, int64_t)

/* The plain BLAS with integers of `integer_bytes` bytes. */
static tsvd_blas
plain_blas(int integer_bytes)
{
    const tsvd_blas narrow = {.size = sizeof(tsvd_blas), .dgemm32 = dgemm_32, .sgemm32 = sgemm_32};
    const tsvd_blas wide = {.size = sizeof(tsvd_blas), .dgemm64 = dgemm_64, .sgemm64 = sgemm_64};

    return integer_bytes == 4 ? narrow : wide;
}

/* Gives the plain BLAS to a handle. */
UNUSED static void
use_blas(tsvd_handle *handle, int integer_bytes)
{
    const tsvd_blas blas = plain_blas(integer_bytes);

    CHECK(tsvd_set_blas(handle, &blas, NULL) == TSVD_OK, "a BLAS");
}

#endif
