/*
 * The functions of cuBLAS that cuda/runtime/blas.cu uses, on host memory, under cuBLAS's own name:
 * so that what is passed to them is tested on a machine without a GPU.  Plain column-major BLAS.
 */
#include "fake_cublas.h"

#include <complex.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SUCCESS = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7 };

struct handle {
    const void *stream;
};

EXPORTED struct fake_cublas fake_cublas;

EXPORTED int cublasCreate_v2(void **handle);
EXPORTED int cublasDestroy_v2(void *handle);
EXPORTED int cublasSetStream_v2(void *handle, void *stream);
EXPORTED const char *cublasGetStatusString(int status);

int
cublasCreate_v2(void **handle)
{
    *handle = NULL;
    if (fake_cublas.create_status == SUCCESS) {
        *handle = calloc(1, sizeof(struct handle));
        fake_cublas.created++;
    }
    return fake_cublas.create_status;
}

int
cublasDestroy_v2(void *handle)
{
    free(handle);
    fake_cublas.destroyed++;
    return SUCCESS;
}

int
cublasSetStream_v2(void *handle, void *stream)
{
    ((struct handle *)handle)->stream = stream;
    return SUCCESS;
}

const char *
cublasGetStatusString(int status)
{
    return status == ALLOC_FAILED ? "the fake has no memory" : "the fake fails";
}

/* An entry of a factor, stored as cublasOperation_t says: itself, its transpose, or its adjoint. */
#define ENTRY(conjugate, x, transpose, ld, i, j)                                                   \
    ((transpose) == 0   ? (x)[(j) * (ld) + (i)]                                                    \
     : (transpose) == 1 ? (x)[(i) * (ld) + (j)]                                                    \
                        : conjugate((x)[(i) * (ld) + (j)]))

#define GEMM(name, number, conjugate)                                                              \
    EXPORTED int name(void *handle, int transpose_a, int transpose_b, int m, int n, int k,         \
                      const number *alpha, const number *a, int lda, long long stride_a,           \
                      const number *b, int ldb, long long stride_b, const number *beta, number *c, \
                      int ldc, long long stride_c, int count);                                     \
    int name(void *handle, int transpose_a, int transpose_b, int m, int n, int k,                  \
             const number *alpha, const number *a, int lda, long long stride_a, const number *b,   \
             int ldb, long long stride_b, const number *beta, number *c, int ldc,                  \
             long long stride_c, int count)                                                        \
    {                                                                                              \
        if (m < 1 || n < 1 || k < 1 || lda < (transpose_a ? k : m) ||                              \
            ldb < (transpose_b ? n : k) || ldc < m) {                                              \
            return INVALID_VALUE;                                                                  \
        }                                                                                          \
        fake_cublas.stream = ((struct handle *)handle)->stream;                                    \
        for (long long at = 0; at < (fake_cublas.status == SUCCESS ? count : 0); at++) {           \
            for (long long j = 0; j < n; j++) {                                                    \
                for (long long i = 0; i < m; i++) {                                                \
                    number sum = 0, *to = &c[at * stride_c + j * ldc + i];                         \
                                                                                                   \
                    for (long long t = 0; t < k; t++) {                                            \
                        sum += ENTRY(conjugate, a + at * stride_a, transpose_a, lda, i, t) *       \
                               ENTRY(conjugate, b + at * stride_b, transpose_b, ldb, t, j);        \
                    }                                                                              \
                    *to = *alpha * sum + (*beta != 0 ? *beta * *to : 0);                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return fake_cublas.status;                                                                 \
    }

GEMM(cublasDgemmStridedBatched, double, )
GEMM(cublasSgemmStridedBatched, float, )
GEMM(cublasZgemmStridedBatched, double _Complex, conj)
GEMM(cublasCgemmStridedBatched, float _Complex, conjf)

EXPORTED int
cublasGemmStridedBatchedEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                           const void *alpha, const void *a, int type_a, int lda,
                           long long stride_a, const void *b, int type_b, int ldb,
                           long long stride_b, const void *beta, void *c, int type_c, int ldc,
                           long long stride_c, int count, int compute, int algorithm)
{
    (void)type_a, (void)type_b, (void)type_c, (void)compute, (void)algorithm; /* all float32 */
    return cublasSgemmStridedBatched(handle, transpose_a, transpose_b, m, n, k, alpha, a, lda,
                                     stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, count);
}
