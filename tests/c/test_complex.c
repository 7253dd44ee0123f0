/*
 * Complex dense matrices: results, and arguments that are refused.
 */
#include <complex.h>
#include <string.h>

#include "check.h"
#include "defaults.h"
#include "plain_blas.h"

/* C = alpha op(A) op(B) + beta C of complex numbers, by columns.  "C" is the conjugate transpose; ~
   is the conjugate, in GNU C. */
#define COMPLEX_GEMM(name, real, integer)                                                          \
    static void name(const char *transa, const char *transb, const integer *m, const integer *n,   \
                     const integer *k, const real *alpha, const real *a, const integer *lda,       \
                     const real *b, const integer *ldb, const real *beta, real *c,                 \
                     const integer *ldc)                                                           \
    {                                                                                              \
        const int turn_a = *transa == 'C', turn_b = *transb == 'C';                                \
        const real _Complex *x = (const real _Complex *)a, *y = (const real _Complex *)b;          \
        real _Complex *to = (real _Complex *)c;                                                    \
                                                                                                   \
        check_product(turn_a ? 'T' : *transa, turn_b ? 'T' : *transb, *m, *n, *k, *lda, *ldb,      \
                      *ldc);                                                                       \
        CHECK(alpha[1] == 0 && beta[1] == 0, "real factors");                                      \
        for (int64_t j = 0; j < *n; j++) {                                                         \
            for (int64_t i = 0; i < *m; i++) {                                                     \
                real _Complex sum = 0, *entry = to + j * *ldc + i;                                 \
                                                                                                   \
                for (int64_t l = 0; l < *k; l++) {                                                 \
                    const real _Complex left = turn_a ? ~x[i * *lda + l] : x[l * *lda + i];        \
                    const real _Complex right = turn_b ? ~y[l * *ldb + j] : y[j * *ldb + l];       \
                                                                                                   \
                    sum += left * right;                                                           \
                }                                                                                  \
                *entry = alpha[0] * sum + (beta[0] == 0 ? 0 : beta[0] * *entry);                   \
            }                                                                                      \
        }                                                                                          \
    }

COMPLEX_GEMM(zgemm_32, double, int32_t)
COMPLEX_GEMM(cgemm_32, float, int32_t)
COMPLEX_GEMM(zgemm_64, double, int64_t)
COMPLEX_GEMM(cgemm_64, float, int64_t)

static tsvd_handle *
handle_with(int integer_bytes)
{
    tsvd_blas blas = plain_blas(integer_bytes);
    tsvd_handle *handle = NULL;

    if (integer_bytes == 4) {
        blas.zgemm32 = zgemm_32;
        blas.cgemm32 = cgemm_32;
    } else {
        blas.zgemm64 = zgemm_64;
        blas.cgemm64 = cgemm_64;
    }
    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    CHECK(tsvd_set_blas(handle, &blas, NULL) == TSVD_OK, "a BLAS");
    return handle;
}

/* Entry i of an array of complex numbers, or of reals. */
static double complex
get_complex(tsvd_dtype dtype, const void *x, int64_t i)
{
    switch (dtype) {
    case TSVD_COMPLEX128:
        return ((const double complex *)x)[i];
    case TSVD_COMPLEX64:
        return ((const float complex *)x)[i];
    case TSVD_FLOAT64:
        return ((const double *)x)[i];
    default:
        return (double)((const float *)x)[i];
    }
}

static void
set_complex(tsvd_dtype dtype, void *x, int64_t i, double complex z)
{
    if (dtype == TSVD_COMPLEX128) {
        ((double complex *)x)[i] = z;
    } else {
        ((float complex *)x)[i] = (float complex)z;
    }
}

static void *
random_numbers(tsvd_dtype dtype, int64_t count)
{
    void *x = allocate((size_t)count * tsvd_dtype_size(dtype));

    for (int64_t i = 0; i < count; i++) {
        set_complex(dtype, x, i, random_scaled(-3, 0) + I * random_scaled(-3, 0));
    }
    return x;
}

static tsvd_array
array_of(const void *x, tsvd_dtype dtype, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};

    return tsvd_array_of(x, TSVD_HOST, dtype, columns < 0 ? 1 : 2, shape);
}

/* A = U diag(S) Vh, with U's entries of largest magnitude real and positive. */
static void
test_svd(tsvd_handle *handle, tsvd_dtype dtype, int64_t m, int64_t n, tsvd_method method)
{
    const tsvd_dtype real = tsvd_dtype_of_values(dtype);
    const double eps = real == TSVD_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    const int64_t k = m < n ? m : n;
    void *a = random_numbers(dtype, m * n), *U = random_numbers(dtype, m * k);
    void *Vh = random_numbers(dtype, k * n), *S = allocate((size_t)k * tsvd_dtype_size(real));
    const tsvd_array a_array = array_of(a, dtype, m, n), S_array = array_of(S, real, k, -1);
    const tsvd_array U_array = array_of(U, dtype, m, k), Vh_array = array_of(Vh, dtype, k, n);
    tsvd_options options = default_options();
    double norm = 0, rest = 0;
    tsvd_error error;

    options.method = method;
    CHECK(tsvd_dense_svd(handle, &a_array, &options, &U_array, &S_array, &Vh_array, NULL, &error) ==
              TSVD_OK,
          "%s", error.text);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double complex sum = get_complex(dtype, a, i * n + j);

            norm = hypot(norm, cabs(sum));
            for (int64_t l = 0; l < k; l++) {
                sum -= get_complex(dtype, U, i * k + l) * get_complex(real, S, l) *
                       get_complex(dtype, Vh, l * n + j);
            }
            rest = hypot(rest, cabs(sum));
        }
    }
    CHECK(rest <= 10 * (double)((m > n ? m : n) + 8) * eps * norm, "%lld x %lld: %g of %g",
          (long long)m, (long long)n, rest, norm);
    for (int64_t l = 0; l < k; l++) {
        double complex largest = 0;

        for (int64_t i = 0; i < m; i++) {
            const double complex here = get_complex(dtype, U, i * k + l);

            largest = cabs(here) > cabs(largest) * (1 + 4 * eps) ? here : largest;
        }
        CHECK(cimag(largest) == 0 && creal(largest) > 0, "%lld x %lld, column %lld: %g %g i",
              (long long)m, (long long)n, (long long)l, creal(largest), cimag(largest));
    }
    free(a);
    free(U);
    free(S);
    free(Vh);
}

static void
test_inverse(tsvd_handle *handle, tsvd_dtype dtype, int64_t n, int refine)
{
    void *a = random_numbers(dtype, n * n), *X = random_numbers(dtype, n * n);
    const tsvd_array a_array = array_of(a, dtype, n, n), X_array = array_of(X, dtype, n, n);
    const double eps = dtype == TSVD_COMPLEX128 ? DBL_EPSILON : FLT_EPSILON;
    tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
    tsvd_error error;
    double off = 0;

    for (int64_t i = 0; i < n; i++) {
        set_complex(dtype, a, i * (n + 1), 2 * (double)n * I);
    }
    CHECK(tsvd_dense_inverse(handle, &a_array, NULL, refine, &X_array, &info, &error) == TSVD_OK,
          "%s", error.text);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double complex sum = -(i == j);

            for (int64_t l = 0; l < n; l++) {
                sum += get_complex(dtype, a, i * n + l) * get_complex(dtype, X, l * n + j);
            }
            off = hypot(off, cabs(sum));
        }
    }
    CHECK(off <= 10 * (double)n * eps && info.rcond > 0.1, "n = %lld: %g, rcond %g", (long long)n,
          off, info.rcond);
    free(a);
    free(X);
}

static void
test_refused(void)
{
    double complex a[6] = {1, I, 2, 3, 4 * I, 5}, U[4], Vh[6];
    double S[2];
    tsvd_options options = default_options();
    const int64_t two = 2, one = 1;
    const tsvd_array a_array = array_of(a, TSVD_COMPLEX128, 2, 3);
    const tsvd_array U_array = array_of(U, TSVD_COMPLEX128, 2, 2);
    const tsvd_array Vh_array = array_of(Vh, TSVD_COMPLEX128, 2, 3);
    const tsvd_array S_array = array_of(S, TSVD_FLOAT64, 2, -1);
    const tsvd_array complex_S = array_of(U, TSVD_COMPLEX128, 2, -1);
    const tsvd_array d = tsvd_array_of(a, TSVD_HOST, TSVD_COMPLEX128, 1, &two);
    const tsvd_array e = tsvd_array_of(a, TSVD_HOST, TSVD_COMPLEX128, 1, &one);
    const tsvd_blas real_alone = plain_blas(4);
    tsvd_handle *handle = handle_with(4);
    tsvd_error error;

    CHECK(tsvd_dense_svd(handle, &a_array, NULL, &U_array, &complex_S, &Vh_array, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "%s", error.text);
    CHECK(tsvd_svd(handle, &d, &e, NULL, NULL, &S_array, NULL, NULL, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "real"),
          "%s", error.text);
    a[3] = NAN * I;
    CHECK(tsvd_dense_svd(handle, &a_array, NULL, NULL, &S_array, NULL, NULL, &error) ==
              TSVD_ERR_NONFINITE,
          "%s", error.text);
    CHECK(tsvd_set_blas(handle, &real_alone, NULL) == TSVD_OK, "a BLAS");
    options.method = TSVD_METHOD_DC; /* AUTO needs none for a small matrix */
    CHECK(tsvd_dense_svd(handle, &a_array, &options, NULL, &S_array, NULL, NULL, &error) ==
                  TSVD_ERR_LIBRARY &&
              strstr(error.text, "zgemm"),
          "%s", error.text);
    tsvd_destroy(handle);
    CHECK(tsvd_dtype_size(TSVD_COMPLEX128) == 16 && tsvd_dtype_size(TSVD_COMPLEX64) == 8 &&
              tsvd_dtype_size((tsvd_dtype)9) == 0 &&
              tsvd_dtype_of_values(TSVD_COMPLEX64) == TSVD_FLOAT32 &&
              tsvd_dtype_of_values(TSVD_FLOAT64) == TSVD_FLOAT64,
          "sizes of dtypes");
}

int
main(void)
{
    const int64_t orders[][2] = {{1, 1}, {2, 3}, {7, 4}, {16, 16}, {40, 33}, {33, 70}, {300, 20}};

    for (int kind = 0; kind < 4; kind++) {
        const tsvd_dtype dtype = kind & 1 ? TSVD_COMPLEX128 : TSVD_COMPLEX64;
        tsvd_handle *handle = handle_with(kind & 2 ? 4 : 8);

        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
            test_svd(handle, dtype, orders[i][0], orders[i][1], TSVD_METHOD_AUTO);
            test_svd(handle, dtype, orders[i][0], orders[i][1], TSVD_METHOD_JACOBI);
            test_inverse(handle, dtype, orders[i][0], kind & 2);
        }
        tsvd_destroy(handle);
    }
    test_refused();
    return report();
}
