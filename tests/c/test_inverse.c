/*
 * Inverses on the CPU: results, what is found of the matrices, arguments, plans, refused memory.
 */
#include <string.h>

#include "counting.h"
#include "plain_blas.h"
#include "tsvd/tsvd.h"

/* A batch of square matrices, and room for their inverses. */
struct inverses {
    int64_t n, count;
    tsvd_dtype dtype;
    void *a, *x;
    tsvd_array a_array, x_array;
};

static size_t
bytes_of_all(const struct inverses *w)
{
    const size_t size = w->dtype == TSVD_FLOAT32 ? sizeof(float) : sizeof(double);

    return (size_t)(w->count * w->n * w->n) * size;
}

static void
set(struct inverses *w, int64_t at, double x)
{
    if (w->dtype == TSVD_FLOAT32) {
        ((float *)w->a)[at] = (float)x;
    } else {
        ((double *)w->a)[at] = x;
    }
}

static double
get(const struct inverses *w, const void *of, int64_t at)
{
    return w->dtype == TSVD_FLOAT32 ? (double)((const float *)of)[at] : ((const double *)of)[at];
}

static struct inverses
make(tsvd_dtype dtype, int64_t n, int64_t count)
{
    const int64_t shape[] = {count, n, n};
    struct inverses w = {.n = n, .count = count, .dtype = dtype};

    w.a = allocate(bytes_of_all(&w));
    w.x = allocate(bytes_of_all(&w));
    w.a_array = tsvd_array_of(w.a, TSVD_HOST, dtype, 3, shape);
    w.x_array = tsvd_array_of(w.x, TSVD_HOST, dtype, 3, shape);
    for (int64_t i = 0; i < count * n * n; i++) {
        set(&w, i, random_scaled(-3, 0));
    }
    return w;
}

static void
release(struct inverses *w)
{
    free(w->a);
    free(w->x);
}

/* The largest entry of A X - I and of X A - I, whichever is smaller, over n eps |A| |X|. */
static double
residual(const struct inverses *w, int64_t matrix)
{
    const int64_t n = w->n, first = matrix * n * n;
    const double eps = w->dtype == TSVD_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
    long double off[2] = {0, 0}, norm_a = 0, norm_x = 0;

    for (int64_t i = 0; i < n * n; i++) {
        norm_a += powl(get(w, w->a, first + i), 2);
        norm_x += powl(get(w, w->x, first + i), 2);
    }
    for (int64_t i = 0; i < n * n; i++) {
        long double sum[2] = {i % (n + 1) == 0 ? -1 : 0, i % (n + 1) == 0 ? -1 : 0};

        for (int64_t k = 0; k < n; k++) {
            const int64_t left = first + i / n * n + k, right = first + k * n + i % n;

            sum[0] += (long double)get(w, w->a, left) * get(w, w->x, right);
            sum[1] += (long double)get(w, w->x, left) * get(w, w->a, right);
        }
        off[0] = fmaxl(off[0], fabsl(sum[0]));
        off[1] = fmaxl(off[1], fabsl(sum[1]));
    }
    return (double)(fminl(off[0], off[1]) / ((long double)n * eps * sqrtl(norm_a * norm_x)));
}

static void
test_results(void)
{
    const int64_t orders[] = {1, 2, 3, 9, 40, 130}, counts[] = {1, 7};
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    for (int kind = 0; kind < 48; kind++) {
        const int refine = kind & 1;
        struct inverses w =
            make(kind & 2 ? TSVD_FLOAT32 : TSVD_FLOAT64, orders[kind >> 3], counts[kind >> 2 & 1]);
        tsvd_inverse_info info;
        tsvd_error error;

        use_blas(handle, kind % 3 == 0 ? 4 : 8);
        CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, refine, &w.x_array, &info, &error) ==
                  TSVD_OK,
              "%s", error.text);
        for (int64_t i = 0; i < w.count; i++) {
            CHECK(residual(&w, i) <= (refine ? 2 : 10), "n %lld: %g", (long long)w.n,
                  residual(&w, i));
        }
        CHECK(info.rcond > 0 && info.rcond <= 1 + 1e-6 && info.matrix >= 0 && info.matrix < w.count,
              "%g of %lld", info.rcond, (long long)info.matrix);
        release(&w);
    }
    tsvd_destroy(handle);
}

static void
test_found(void)
{
    struct inverses w = make(TSVD_FLOAT64, 3, 4);
    tsvd_options options = tsvd_options_default();
    tsvd_handle *handle = NULL;
    tsvd_inverse_info info;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    use_blas(handle, 4);
    for (int64_t j = 0; j < 3; j++) {
        set(&w, 2 * 9 + j, 0); /* a row of matrix 2 */
    }
    CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, &w.x_array, &info, &error) ==
                  TSVD_ERR_SINGULAR &&
              error.matrix == 2,
          "matrix %lld: %s", (long long)error.matrix, error.text);
    set(&w, 3 * 9 + 5, NAN);
    CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, &w.x_array, &info, &error) ==
                  TSVD_ERR_NONFINITE &&
              error.matrix == 3,
          "matrix %lld: %s", (long long)error.matrix, error.text);
    for (int64_t j = 0; j < 3; j++) {
        set(&w, 2 * 9 + j, j == 0);
    }
    options.check_finite = 0;
    CHECK(tsvd_dense_inverse(handle, &w.a_array, &options, 0, &w.x_array, &info, &error) == TSVD_OK,
          "%s", error.text);
    CHECK(isnan(get(&w, w.x, 3 * 9)) && !isnan(get(&w, w.x, 2 * 9)) && info.rcond > 0 &&
              info.matrix >= 0 && info.matrix != 3,
          "NaN where there is none, or none");
    tsvd_destroy(handle);
    release(&w);
}

static void
test_arguments(void)
{
    struct inverses w = make(TSVD_FLOAT64, 4, 2);
    tsvd_handle *handle = NULL;
    tsvd_array bad = w.a_array;
    tsvd_plan plan;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    if (!tsvd_has_blas()) {
        CHECK(tsvd_inverse_plan(handle, &w.a_array, NULL, 0, &plan, &error) == TSVD_ERR_LIBRARY &&
                  plan.needs_blas,
              "%s", error.text);
    }
    {
        const tsvd_blas without = {.dgemm32 = dgemm_32, .sgemm32 = sgemm_32};

        CHECK(tsvd_set_blas(handle, &without, NULL) == TSVD_OK, "a BLAS");
        CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, &w.x_array, NULL, &error) ==
                      TSVD_ERR_LIBRARY &&
                  strstr(error.text, "LAPACK") != NULL,
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
    CHECK(tsvd_dense_inverse(NULL, &w.a_array, NULL, 0, &w.x_array, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "no handle");
    CHECK(tsvd_dense_inverse(handle, NULL, NULL, 0, &w.x_array, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no a");
    CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, NULL, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no X");
    bad.shape[2] = 3;
    CHECK(tsvd_dense_inverse(handle, &bad, NULL, 0, &w.x_array, NULL, &error) ==
                  TSVD_ERR_ARGUMENT &&
              strstr(error.text, "square") != NULL,
          "%s", error.text);
    CHECK(tsvd_dense_inverse(handle, &w.a_array, NULL, 0, &bad, NULL, &error) == TSVD_ERR_ARGUMENT,
          "another shape of X");
    bad = w.a_array;
    bad.shape[1] = bad.shape[2] = INT64_C(1) << 40;
    CHECK(tsvd_dense_inverse(handle, &bad, NULL, 0, &w.x_array, NULL, &error) == TSVD_ERR_MEMORY,
          "%s", error.text);
    tsvd_destroy(handle);
    release(&w);
}

static int
stop_late(void *arg, double done)
{
    int *asked = arg;

    CHECK(done >= 0 && done <= 1, "done %g", done);
    return --*asked < 0;
}

/* Refuses each request of a call in its turn, and stops it at each question. */
static void
test_failures(tsvd_dtype dtype, int64_t n, int64_t count, int refine, int threads)
{
    struct counting counting;
    const tsvd_allocator allocator = counting_allocator(&counting);
    struct inverses w = make(dtype, n, count);
    tsvd_config config = tsvd_config_default();
    tsvd_options options = tsvd_options_default();
    tsvd_handle *handle = NULL;
    tsvd_status status = TSVD_ERR_MEMORY;
    long long before;
    tsvd_error error;

    memset(&counting, 0, sizeof counting);
    config.threads = threads;
    config.host_allocator = &allocator;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 4);
    before = atomic_load(&counting.bytes);
    for (int k = 1; status != TSVD_OK && k < 100; k++) {
        atomic_store(&counting.calls, 0);
        counting.refuse = k;
        status = tsvd_dense_inverse(handle, &w.a_array, NULL, refine, &w.x_array, NULL, &error);
        CHECK(status == TSVD_OK || status == TSVD_ERR_MEMORY, "%s", error.text);
        CHECK(atomic_load(&counting.bytes) == before, "request %d: bytes are left", k);
    }
    counting.refuse = 0;
    CHECK(status == TSVD_OK && residual(&w, count - 1) <= 10, "%s", error.text);
    options.check = stop_late;
    status = TSVD_ERR_INTERRUPTED;
    for (int k = 0; status != TSVD_OK && k < 1000; k++) {
        int left = k;

        options.check_arg = &left;
        status = tsvd_dense_inverse(handle, &w.a_array, &options, refine, &w.x_array, NULL, &error);
        CHECK(status == TSVD_OK || status == TSVD_ERR_INTERRUPTED, "%s", error.text);
        CHECK(atomic_load(&counting.bytes) == before, "question %d: bytes are left", k);
    }
    CHECK(status == TSVD_OK, "it always stops");
    tsvd_destroy(handle);
    CHECK(atomic_load(&counting.bytes) == 0, "the handle leaves bytes");
    release(&w);
}

int
main(void)
{
    test_results();
    test_found();
    test_arguments();
    test_failures(TSVD_FLOAT64, 5, 20, 0, 2);
    test_failures(TSVD_FLOAT32, 5, 20, 1, 6);
    test_failures(TSVD_FLOAT64, 140, 1, 1, 2);
    return report();
}
