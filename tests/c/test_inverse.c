/*
 * Inverses on the CPU: results, findings about the matrices, arguments, plans.  calls.h says which
 * tests make calls fail.
 */
#include <string.h>

#include "counting.h"
#include "inverse.h"
#include "plain_blas.h"

static void
test_results(void)
{
    const int64_t orders[] = {1, 2, 3, 9, 40, 130}, counts[] = {1, 7};
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    for (int kind = 0; kind < 48; kind++) {
        struct inverses w = make_inverses(dtypes[kind >> 1 & 1], orders[kind >> 3],
                                          counts[kind >> 2 & 1], kind & 1);
        tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
        tsvd_error error;

        use_blas(handle, kind % 3 == 0 ? 4 : 8);
        CHECK(invert_on(handle, &w, NULL, &info, &error) == TSVD_OK, "%s", error.text);
        for (int64_t i = 0; i < w.matrices; i++) {
            check_inverse(&w, i);
        }
        CHECK(info.rcond > 0 && info.rcond <= 1 + 1e-6 && info.matrix >= 0 &&
                  info.matrix < w.matrices,
              "%g of %lld", info.rcond, (long long)info.matrix);
        free_inverses(&w);
    }
    tsvd_destroy(handle);
}

static void
test_found(void)
{
    struct inverses w = make_inverses(TSVD_FLOAT64, 3, 4, 0);
    tsvd_options options = default_options();
    tsvd_handle *handle = NULL;
    tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    use_blas(handle, 4);
    for (int64_t j = 0; j < 3; j++) {
        set(w.dtype, w.a, 2 * 9 + j, 0); /* a row of matrix 2 */
    }
    CHECK(invert_on(handle, &w, NULL, &info, &error) == TSVD_ERR_SINGULAR && error.matrix == 2,
          "matrix %lld: %s", (long long)error.matrix, error.text);
    set(w.dtype, w.a, 3 * 9 + 5, NAN);
    CHECK(invert_on(handle, &w, NULL, &info, &error) == TSVD_ERR_NONFINITE && error.matrix == 3,
          "matrix %lld: %s", (long long)error.matrix, error.text);
    for (int64_t j = 0; j < 3; j++) {
        set(w.dtype, w.a, 2 * 9 + j, j == 0);
    }
    options.check_finite = 0;
    CHECK(invert_on(handle, &w, &options, &info, &error) == TSVD_OK, "%s", error.text);
    CHECK(isnan(get(w.dtype, w.X, 3 * 9)) && !isnan(get(w.dtype, w.X, 2 * 9)) && info.rcond > 0 &&
              info.matrix >= 0 && info.matrix != 3,
          "NaN where there is none, or none");
    tsvd_destroy(handle);
    free_inverses(&w);
}

static void
test_arguments(void)
{
    struct inverses w = make_inverses(TSVD_FLOAT64, 4, 2, 1);
    tsvd_handle *handle = NULL;
    tsvd_array bad = w.a_array;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    if (!tsvd_has_blas()) {
        CHECK(tsvd_inverse_plan(handle, &w.a_array, NULL, 0, &plan, &error) == TSVD_ERR_LIBRARY &&
                  plan.needs_blas,
              "%s", error.text);
    }
    use_blas(handle, 8);
    CHECK(tsvd_inverse_plan(handle, &w.a_array, NULL, 1, &plan, &error) == TSVD_OK && plan.n == 4 &&
              plan.matrices == 2 && plan.chunk == 2 &&
              plan.result_bytes == 2 * 16 * sizeof(double) && plan.host_bytes > 0 &&
              plan.device_bytes == 0,
          "%s", error.text);
    CHECK(tsvd_inverse_plan(handle, &w.a_array, NULL, 1, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no plan");
    CHECK(invert_on(NULL, &w, NULL, NULL, &error) == TSVD_ERR_ARGUMENT, "no handle");
    CHECK(tsvd_dense_inverse(handle, NULL, NULL, 0, &w.X_array, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no a");
    CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, NULL, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no X");
    bad.shape[2] = 3;
    CHECK(tsvd_dense_inverse(handle, &bad, NULL, 0, &w.X_array, NULL, &error) ==
                  TSVD_ERR_ARGUMENT &&
              strstr(error.text, "square") != NULL,
          "%s", error.text);
    CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, &bad, NULL, &error) == TSVD_ERR_ARGUMENT,
          "another shape of X");
    bad = w.a_array;
    bad.shape[1] = bad.shape[2] = INT64_C(1) << 40;
    CHECK(tsvd_dense_inverse(handle, &bad, NULL, 0, &w.X_array, NULL, &error) == TSVD_ERR_MEMORY,
          "%s", error.text);
    tsvd_destroy(handle);
    free_inverses(&w);
}

/* A call takes no more memory than its plan says. */
static void
check_plan(tsvd_dtype dtype, int64_t n, int64_t matrices, int refine, int threads)
{
    struct counting counting = {.refuse = 0};
    tsvd_handle *handle = counting_handle(&counting, threads);
    struct inverses w = make_inverses(dtype, n, matrices, refine);
    const long long before = atomic_load(&counting.bytes);
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    use_blas(handle, 8);
    CHECK(tsvd_inverse_plan(handle, &w.a_array, NULL, refine, &plan, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(invert_on(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK((uint64_t)(atomic_load(&counting.peak) - before) <= plan.host_bytes,
          "n %lld: %lld bytes, planned %llu", (long long)n,
          (long long)(atomic_load(&counting.peak) - before), (unsigned long long)plan.host_bytes);
    tsvd_destroy(handle);
    free_inverses(&w);
}

/* Makes a matrix the transpose of Wilkinson's, with 0.9 instead of 1: elimination by columns of the
   transpose lets the last column grow by 1.9^n. */
static void
fill_growing(const struct inverses *w, int64_t matrix)
{
    for (int64_t i = 0; i < w->n; i++) {
        for (int64_t j = 0; j < w->n; j++) {
            const double entry = i == j || j == w->n - 1 ? 1 : i > j ? -0.9 : 0;

            set(w->dtype, w->a, (matrix * w->n + j) * w->n + i, entry);
        }
    }
}

static void
test_growth(void)
{
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    use_blas(handle, 4);
    for (int kind = 0; kind < 12; kind++) {
        struct inverses w = make_inverses(
            dtypes[kind & 1], (const int64_t[]){40, 100, 150}[kind >> 2], 3, kind >> 1 & 1);
        tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
        tsvd_error error;

        fill_growing(&w, 0);
        fill_growing(&w, 2);
        CHECK(invert_on(handle, &w, NULL, &info, &error) == TSVD_OK, "%s", error.text);
        for (int64_t i = 0; i < w.matrices; i++) {
            check_inverse(&w, i);
        }
        CHECK(info.rcond > 1e-5 && info.rcond < 1, "%g", info.rcond);
        free_inverses(&w);
    }
    tsvd_destroy(handle);
}

/* The inverse of the matrix with ones on the diagonal and -2^step above it has 2^(step (j - i)). */
static void
test_range(tsvd_dtype dtype, int64_t n, int step, int most)
{
    struct inverses w = make_inverses(dtype, n, 1, 1);
    tsvd_handle *handle = NULL;
    tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    use_blas(handle, 8);
    memset(w.a, 0, (size_t)(n * n) * size_of(dtype));
    for (int64_t i = 0; i < n; i++) {
        set(dtype, w.a, i * n + i, 1);
        if (i < n - 1) {
            set(dtype, w.a, i * n + i + 1, -ldexp(1, step));
        }
    }
    CHECK(invert_on(handle, &w, NULL, &info, &error) == TSVD_OK, "%s", error.text);
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t power = step * (i % n - i / n);
        const double x = get(dtype, w.X, i);

        CHECK(power < 0      ? x == 0
              : power > most ? isinf(x) && x > 0
                             : x == ldexp(1, (int)power),
              "2^%lld is %g", (long long)power, x);
    }
    tsvd_destroy(handle);
    free_inverses(&w);
}

int
main(void)
{
    test_results();
    test_found();
    test_arguments();
    test_growth();
    test_range(TSVD_FLOAT32, 40, 4, 127);
    test_range(TSVD_FLOAT64, 140, 16, 1023);
    check_plan(TSVD_FLOAT64, 5, 20, 0, 2);
    check_plan(TSVD_FLOAT32, 5, 20, 1, 6);
    check_plan(TSVD_FLOAT64, 140, 1, 1, 2);
    return report();
}
