/*
 * A plain BLAS for tests, which checks its arguments as the reference BLAS does, and what tsvd
 * calls of LAPACK.
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

/* LU decomposition with partial pivoting, of n x n, and the inverse from that: that of U in place,
   then X L = U^-1 from the last column on, and the columns in their order. */
#define LAPACK(type, integer, factor_name, invert_name)                                            \
    static void factor_name(const integer *m, const integer *n, type *a, const integer *lda,       \
                            integer *pivots, integer *info)                                        \
    {                                                                                              \
        CHECK(*m == *n && *lda >= at_least_one(*n), "LU of %lld", (long long)*n);                  \
        *info = 0;                                                                                 \
        for (int64_t k = 0; k < *n; k++) {                                                         \
            int64_t p = k;                                                                         \
                                                                                                   \
            for (int64_t i = k; i < *n; i++) {                                                     \
                p = fabs((double)a[i + k * *lda]) > fabs((double)a[p + k * *lda]) ? i : p;         \
            }                                                                                      \
            pivots[k] = (integer)(p + 1);                                                          \
            for (int64_t j = 0; j < *n; j++) {                                                     \
                const type x = a[k + j * *lda];                                                    \
                                                                                                   \
                a[k + j * *lda] = a[p + j * *lda];                                                 \
                a[p + j * *lda] = x;                                                               \
            }                                                                                      \
            if (a[k + k * *lda] == 0) {                                                            \
                *info = *info == 0 ? (integer)(k + 1) : *info;                                     \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t i = k + 1; i < *n; i++) {                                                 \
                a[i + k * *lda] /= a[k + k * *lda];                                                \
                for (int64_t j = k + 1; j < *n; j++) {                                             \
                    a[i + j * *lda] -= a[i + k * *lda] * a[k + j * *lda];                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void invert_name(const integer *n, type *a, const integer *lda, const integer *pivots,  \
                            type *work, const integer *lwork, integer *info)                       \
    {                                                                                              \
        CHECK(*lwork >= at_least_one(*n), "%lld numbers for %lld", (long long)*lwork,              \
              (long long)*n);                                                                      \
        *info = 0;                                                                                 \
        for (int64_t j = 0; j < *n; j++) {                                                         \
            a[j + j * *lda] = 1 / a[j + j * *lda];                                                 \
            for (int64_t i = 0; i < j; i++) {                                                      \
                type sum = 0;                                                                      \
                                                                                                   \
                for (int64_t k = i; k < j; k++) {                                                  \
                    sum += a[i + k * *lda] * a[k + j * *lda];                                      \
                }                                                                                  \
                a[i + j * *lda] = -sum * a[j + j * *lda];                                          \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = *n - 1; j >= 0; j--) {                                                    \
            for (int64_t i = j + 1; i < *n; i++) {                                                 \
                work[i] = a[i + j * *lda];                                                         \
                a[i + j * *lda] = 0;                                                               \
            }                                                                                      \
            for (int64_t k = j + 1; k < *n; k++) {                                                 \
                for (int64_t i = 0; i < *n; i++) {                                                 \
                    a[i + j * *lda] -= a[i + k * *lda] * work[k];                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = *n - 1; j >= 0; j--) {                                                    \
            for (int64_t i = 0; i < *n && pivots[j] != j + 1; i++) {                               \
                const type x = a[i + j * *lda];                                                    \
                                                                                                   \
                a[i + j * *lda] = a[i + (pivots[j] - 1) * *lda];                                   \
                a[i + (pivots[j] - 1) * *lda] = x;                                                 \
            }                                                                                      \
        }                                                                                          \
    }

LAPACK(double, int32_t, dgetrf_32, dgetri_32)
LAPACK(float, int32_t, sgetrf_32, sgetri_32)
LAPACK(double, int64_t, dgetrf_64, dgetri_64)
LAPACK(float, int64_t, sgetrf_64, sgetri_64)

/* It, with integers of so many bytes. */
static tsvd_blas
plain_blas(int integer_bytes)
{
    const tsvd_blas narrow = {.dgemm32 = dgemm_32,
                              .sgemm32 = sgemm_32,
                              .dgetrf32 = dgetrf_32,
                              .sgetrf32 = sgetrf_32,
                              .dgetri32 = dgetri_32,
                              .sgetri32 = sgetri_32};
    const tsvd_blas wide = {.dgemm64 = dgemm_64,
                            .sgemm64 = sgemm_64,
                            .dgetrf64 = dgetrf_64,
                            .sgetrf64 = sgetrf_64,
                            .dgetri64 = dgetri_64,
                            .sgetri64 = sgetri_64};

    return integer_bytes == 4 ? narrow : wide;
}

/* Gives it to a handle. */
UNUSED static void
use_blas(tsvd_handle *handle, int integer_bytes)
{
    const tsvd_blas blas = plain_blas(integer_bytes);

    CHECK(tsvd_set_blas(handle, &blas, NULL) == TSVD_OK, "a BLAS");
}

#endif
