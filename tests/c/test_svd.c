/*
 * tsvd_svd through the C interface: small orders, strides, batches, refusals, early ends.
 */
#include <string.h>

#include "problem.h"

enum { MAX_ORDER = 6 };

static const tsvd_method vector_methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_QR, TSVD_METHOD_GIVENS};

enum { VECTOR_METHODS = 3 };

static void
test_small_orders(void)
{
    for (int t = 0; t < DTYPES; t++) {
        for (int m = 0; m < VECTOR_METHODS; m++) {
            for (int64_t n = 0; n < MAX_ORDER; n++) {
                for (int lower = 0; lower < 2; lower++) {
                    struct work w = make_work(dtypes[t], n, 20);
                    tsvd_options options = tsvd_options_default();
                    tsvd_info info;
                    tsvd_error error;
                    tsvd_status status;
                    double tolerance = 4 * (double)(n + 8) * eps_of(dtypes[t]);

                    options.method = vector_methods[m];
                    options.lower = lower;
                    if (options.method == TSVD_METHOD_GIVENS) {
                        options.eps = 1e-4;
                        tolerance += 4 * options.eps;
                    }
                    status = tsvd_svd(&w.problem, &options, &info, &error);
                    CHECK(status == TSVD_OK, "%s, n = %lld: %s", tsvd_method_name(options.method),
                          (long long)n, error.text);
                    CHECK(info.method != TSVD_METHOD_AUTO, "the method that ran");
                    for (int64_t i = 0; i < w.matrices; i++) {
                        check_result(&w, i, lower, tolerance);
                    }
                    free_work(&w);
                }
            }
        }
    }
}

/* Values of every method against Sturm counts in long double. */
static void
test_values(void)
{
    const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_QR, TSVD_METHOD_BISECT};

    for (int t = 0; t < DTYPES; t++) {
        for (int m = 0; m < 3; m++) {
            for (int64_t n = 1; n < 40; n = n < MAX_ORDER ? n + 1 : 2 * n) {
                struct work w = make_work(dtypes[t], n, 1);
                tsvd_options options = tsvd_options_default();
                long double d[40], e[40];
                long double slack = (4 + (long double)n / 64) * eps_of(dtypes[t]);

                options.method = methods[m];
                if (methods[m] != TSVD_METHOD_BISECT) {
                    slack = (8 + (long double)n / 8) * eps_of(dtypes[t]);
                }
                for (int64_t i = 0; i < n; i++) {
                    double x = i % 3 == 0 ? 0x1p-90 : 1; /* values of very different sizes */

                    set(dtypes[t], w.d, i, x * get(dtypes[t], w.d, i));
                    d[i] = get(dtypes[t], w.d, i);
                    e[i] = i < n - 1 ? get(dtypes[t], w.e, i) : 0;
                }
                w.problem.L = w.problem.R = NULL;
                CHECK(tsvd_svd(&w.problem, &options, NULL, NULL) == TSVD_OK, "n = %lld",
                      (long long)n);
                for (int64_t i = 0; i < n; i++) {
                    long double s = get(dtypes[t], w.s, i);

                    if (s < (dtypes[t] == TSVD_FLOAT64 ? DBL_MIN : FLT_MIN)) {
                        s = dtypes[t] == TSVD_FLOAT64 ? DBL_MIN : FLT_MIN;
                    } else {
                        CHECK(count_above(n, d, e, s * (1 - slack)) > i, "%s, n = %lld: s[%lld]",
                              tsvd_method_name(methods[m]), (long long)n, (long long)i);
                    }
                    CHECK(count_above(n, d, e, s * (1 + slack)) <= i, "%s, n = %lld: s[%lld]",
                          tsvd_method_name(methods[m]), (long long)n, (long long)i);
                }
                free_work(&w);
            }
        }
    }
}

/* Any strides, and a batch of two dimensions, give the bits of contiguous single calls. */
static void
test_strides_and_batches(void)
{
    enum { N = 5, ROWS = 3, COLUMNS = 2 };

    for (int t = 0; t < DTYPES; t++) {
        tsvd_dtype dtype = dtypes[t];
        ptrdiff_t size = (ptrdiff_t)size_of(dtype);
        struct work w = make_work(dtype, N, ROWS * COLUMNS), one = make_work(dtype, N, 1);
        char *d = allocate((size_t)(3 * N * ROWS * size)), *e = allocate((size_t)(2 * N * size));

        /* d: every third entry, backwards, one matrix for each row of the batch;
           e: one for each column, entries of both interleaved. */
        for (int64_t i = 0; i < N * ROWS; i++) {
            set(dtype, d, 3 * i, random_scaled(-2, 0));
        }
        for (int64_t i = 0; i < 2 * N; i++) {
            set(dtype, e, i, random_scaled(-2, 0));
        }
        w.problem.batch_ndim = 2;
        w.problem.batch_shape[0] = ROWS;
        w.problem.batch_shape[1] = COLUMNS;
        w.problem.d = d + 3 * (N - 1) * size;
        w.problem.d_stride = -3 * size;
        w.problem.d_batch_strides[0] = 3 * N * size;
        w.problem.d_batch_strides[1] = 0;
        w.problem.e = e;
        w.problem.e_stride = 2 * size;
        w.problem.e_batch_strides[0] = 0;
        w.problem.e_batch_strides[1] = size;
        CHECK(tsvd_svd(&w.problem, NULL, NULL, NULL) == TSVD_OK, "strided");

        for (int64_t row = 0; row < ROWS; row++) {
            for (int64_t column = 0; column < COLUMNS; column++) {
                int64_t matrix = row * COLUMNS + column;
                size_t bytes = N * N * (size_t)size;

                for (int64_t i = 0; i < N; i++) {
                    set(dtype, one.d, i, get(dtype, d, 3 * (row * N + N - 1 - i)));
                    if (i < N - 1) {
                        set(dtype, one.e, i, get(dtype, e, 2 * i + column));
                    }
                }
                one.problem.batch_ndim = 0;
                CHECK(tsvd_svd(&one.problem, NULL, NULL, NULL) == TSVD_OK, "alone");
                CHECK(memcmp((char *)w.L + (size_t)matrix * bytes, one.L, bytes) == 0 &&
                          memcmp((char *)w.R + (size_t)matrix * bytes, one.R, bytes) == 0 &&
                          memcmp((char *)w.s + matrix * N * size, one.s, N * (size_t)size) == 0,
                      "matrix %lld differs", (long long)matrix);
            }
        }
        w.problem.d_stride = 0; /* one number for all of d */
        w.problem.d_batch_strides[0] = 0;
        CHECK(tsvd_svd(&w.problem, NULL, NULL, NULL) == TSVD_OK, "stride 0");
        free(d);
        free(e);
        free_work(&w);
        free_work(&one);
    }
}

static void
test_nothing_to_do(void)
{
    tsvd_problem problem = {.dtype = TSVD_FLOAT64};
    double x = 1;

    CHECK(tsvd_svd(&problem, NULL, NULL, NULL) == TSVD_OK, "n = 0, all NULL");
    problem.n = problem.k = 1; /* e may be NULL */
    problem.d = &x;
    problem.d_stride = sizeof x;
    problem.s = &x;
    CHECK(tsvd_svd(&problem, NULL, NULL, NULL) == TSVD_OK && x == 1, "n = 1");
    problem.n = problem.k = 1000;
    problem.batch_ndim = 2;
    problem.batch_shape[0] = 3;
    problem.batch_shape[1] = 0;
    problem.d = NULL;
    problem.s = NULL;
    CHECK(tsvd_svd(&problem, NULL, NULL, NULL) == TSVD_OK, "an empty batch");
}

/* One refused call: its status, and a sentence that says why. */
static void
check_refused(const char *what, const tsvd_problem *problem, const tsvd_options *options,
              tsvd_status expected)
{
    tsvd_error error = {.text = ""};
    tsvd_status status = tsvd_svd(problem, options, NULL, &error);

    CHECK(status == expected, "%s: status %d", what, (int)status);
    CHECK(strlen(error.text) > 10 && memchr(error.text, 0, sizeof error.text) != NULL, "%s: \"%s\"",
          what, error.text);
    CHECK(tsvd_svd(problem, options, NULL, NULL) == expected, "%s, error = NULL", what);
}

static void
test_bad_arguments(void)
{
    struct work w = make_work(TSVD_FLOAT64, 4, 3);
    tsvd_options options = tsvd_options_default();
    tsvd_problem bad;

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        bad = w.problem;                                                                           \
        options = tsvd_options_default();                                                          \
        change;                                                                                    \
        check_refused(#change, &bad, &options, TSVD_ERR_ARGUMENT);                                 \
    } while (0)

    REFUSED(bad.n = -1);
    REFUSED(bad.first = -1);
    REFUSED(bad.first = 1);
    REFUSED(bad.first = INT64_MAX);
    REFUSED(bad.k = -1);
    REFUSED(bad.k = 5);
    REFUSED(bad.k = INT64_MAX);
    REFUSED((bad.k = 3, options.method = TSVD_METHOD_QR));
    REFUSED((bad.k = 3, options.method = TSVD_METHOD_GIVENS));
    REFUSED(bad.d = NULL);
    REFUSED(bad.e = NULL);
    REFUSED(bad.s = NULL);
    REFUSED(bad.L = NULL);
    REFUSED(bad.R = NULL);
    REFUSED(bad.dtype = (tsvd_dtype)7);
    REFUSED(bad.dtype = (tsvd_dtype)-1);
    REFUSED(bad.batch_ndim = -1);
    REFUSED(bad.batch_ndim = TSVD_MAX_BATCH_DIMS + 1);
    REFUSED(bad.batch_shape[0] = -2);
    REFUSED(options.method = TSVD_METHOD_COUNT);
    REFUSED(options.method = (tsvd_method)-1);
    REFUSED(options.method = TSVD_METHOD_BISECT); /* has no vectors */
    REFUSED(options.eps = (double)NAN);
    REFUSED(options.eps = (double)INFINITY);
    REFUSED(options.max_sweeps = -1);
    REFUSED(options.threads = -1);
    REFUSED(options.blocks = -1);
    REFUSED(options.block_threads = -1);
#undef REFUSED
    free_work(&w);
}

static void
test_nonfinite(void)
{
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

    for (int t = 0; t < DTYPES; t++) {
        for (int i = 0; i < 3; i++) {
            for (int in_e = 0; in_e < 2; in_e++) {
                struct work w = make_work(dtypes[t], 4, 3);
                tsvd_options options = tsvd_options_default();
                tsvd_error error;

                set(dtypes[t], in_e ? w.e : w.d, in_e ? 1 * 3 + 2 : 1 * 4 + 3, bad[i]);
                check_refused("not finite", &w.problem, NULL, TSVD_ERR_NONFINITE);
                (void)tsvd_svd(&w.problem, NULL, NULL, &error);
                CHECK(error.matrix == 1, "matrix %lld", (long long)error.matrix);

                options.check_finite = 0;
                CHECK(tsvd_svd(&w.problem, &options, NULL, NULL) == TSVD_OK, "not checked");
                for (int64_t k = 0; k < 4; k++) {
                    CHECK(isnan(get(dtypes[t], w.s, 4 + k)), "s[1, %lld]", (long long)k);
                    CHECK(isnan(get(dtypes[t], w.L, 16 + 5 * k)), "L[1, %lld]", (long long)k);
                    CHECK(isnan(get(dtypes[t], w.R, 16 + 5 * k)), "R[1, %lld]", (long long)k);
                }
                check_result(&w, 0, 0, 48 * eps_of(dtypes[t]));
                check_result(&w, 2, 0, 48 * eps_of(dtypes[t]));
                free_work(&w);
            }
        }
    }
}

/* Zero matrices and, as the last of the batch, d = e = 1: zero-shift sweeps on it do not
   come to an end in time. */
static struct work
slow_work(int64_t n, int64_t matrices)
{
    struct work w = make_work(TSVD_FLOAT64, n, matrices);

    for (int64_t i = 0; i < matrices * n; i++) {
        set(TSVD_FLOAT64, w.d, i, i >= (matrices - 1) * n);
    }
    for (int64_t i = 0; i < matrices * (n - 1); i++) {
        set(TSVD_FLOAT64, w.e, i, i >= (matrices - 1) * (n - 1));
    }
    return w;
}

static void
test_no_convergence(void)
{
    const tsvd_method methods[] = {TSVD_METHOD_QR, TSVD_METHOD_GIVENS};

    for (int m = 0; m < 2; m++) {
        struct work w = slow_work(200, 2);
        tsvd_options options = tsvd_options_default();
        tsvd_error error = {.text = ""};

        options.method = methods[m];
        options.eps = methods[m] == TSVD_METHOD_GIVENS ? 1e-8 : -1;
        options.max_sweeps = 1;
        CHECK(tsvd_svd(&w.problem, &options, NULL, &error) == TSVD_ERR_NO_CONVERGENCE, "%s",
              tsvd_method_name(methods[m]));
        CHECK(error.sweeps >= 1 && error.matrix == 1, "%lld sweeps, matrix %lld",
              (long long)error.sweeps, (long long)error.matrix);
        CHECK(methods[m] != TSVD_METHOD_GIVENS || strstr(error.text, "auto") != NULL, "\"%s\"",
              error.text);
        free_work(&w);
    }
}

struct asked {
    int calls, stop_at;
    double last;
    int in_range, rising;
};

static int
ask(void *arg, double done)
{
    struct asked *asked = arg;

    asked->in_range &= done >= 0 && done <= 1;
    asked->rising &= done >= asked->last;
    asked->last = done;
    return ++asked->calls == asked->stop_at;
}

static void
test_interruption(void)
{
    const tsvd_method methods[] = {TSVD_METHOD_QR, TSVD_METHOD_GIVENS, TSVD_METHOD_BISECT};
    const int64_t n = 400;

    for (int m = 0; m < 3; m++) {
        struct work w = slow_work(n, 1);
        tsvd_options options = tsvd_options_default();
        struct asked asked = {.stop_at = 2, .in_range = 1, .rising = 1};
        tsvd_status status;

        options.method = methods[m];
        options.max_sweeps = methods[m] == TSVD_METHOD_GIVENS ? 1000000 : 0;
        /* the caller alone is asked, and another thread may be quicker with all the values */
        options.threads = methods[m] == TSVD_METHOD_BISECT ? 1 : 0;
        options.eps = methods[m] == TSVD_METHOD_GIVENS ? 1e-300 : -1;
        options.check = ask;
        options.check_arg = &asked;
        if (methods[m] == TSVD_METHOD_BISECT) {
            w.problem.L = w.problem.R = NULL;
        }
        status = tsvd_svd(&w.problem, &options, NULL, NULL);
        CHECK(status == TSVD_ERR_INTERRUPTED, "%s: status %d after %d questions",
              tsvd_method_name(methods[m]), (int)status, asked.calls);
        CHECK(asked.calls == 2, "%s: %d questions", tsvd_method_name(methods[m]), asked.calls);

        options.check = NULL; /* the next call works */
        options.method = TSVD_METHOD_AUTO;
        options.max_sweeps = 0;
        options.eps = -1;
        CHECK(tsvd_svd(&w.problem, &options, NULL, NULL) == TSVD_OK, "after an interruption");

        asked = (struct asked){.stop_at = -1, .in_range = 1, .rising = 1};
        options.check = ask;
        CHECK(tsvd_svd(&w.problem, &options, NULL, NULL) == TSVD_OK, "never stopped");
        CHECK(asked.calls > 0 && asked.in_range && asked.rising, "%d questions", asked.calls);
        free_work(&w);
    }
}

static void
test_threads_change_no_bit(void)
{
    const int64_t n = 150;
    const size_t bytes = (size_t)(n * n) * sizeof(double);
    struct work w = make_work(TSVD_FLOAT64, n, 2);
    tsvd_options options = tsvd_options_default();
    void *L = allocate(2 * bytes), *R = allocate(2 * bytes);

    for (int threads = 1; threads <= 3; threads++) {
        options.threads = threads;
        CHECK(tsvd_svd(&w.problem, &options, NULL, NULL) == TSVD_OK, "%d threads", threads);
        if (threads == 1) {
            memcpy(L, w.L, 2 * bytes);
            memcpy(R, w.R, 2 * bytes);
        }
        CHECK(memcmp(L, w.L, 2 * bytes) == 0 && memcmp(R, w.R, 2 * bytes) == 0, "%d threads",
              threads);
    }
    free(L);
    free(R);
    free_work(&w);
}

static void
test_names(void)
{
    for (int i = -2; i < TSVD_STATUS_COUNT + 2; i++) {
        const char *text = tsvd_strstatus((tsvd_status)i);

        CHECK(text != NULL && strlen(text) > 1, "status %d", i);
        for (int j = 0; j < i && i < TSVD_STATUS_COUNT; j++) {
            CHECK(strcmp(text, tsvd_strstatus((tsvd_status)j)) != 0, "%d and %d", i, j);
        }
    }
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_AUTO), "auto") == 0, "auto");
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_DC), "dc") == 0, "dc");
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_QR), "qr") == 0, "qr");
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_GIVENS), "givens") == 0, "givens");
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_BISECT), "bisect") == 0, "bisect");
    CHECK(tsvd_method_name(TSVD_METHOD_COUNT) == NULL, "one too many");
    CHECK(tsvd_method_name((tsvd_method)-1) == NULL, "one too few");
    CHECK(tsvd_host_threads() >= 1, "%d threads", tsvd_host_threads());
    CHECK(strlen(tsvd_cpu_kernels()) > 0, "kernels");
}

static void
test_devices(void)
{
    char why[200] = "";
    int count = -1, runtime = -1, driver = -1;
    tsvd_status status = tsvd_cuda_device_count(&count, why, sizeof why);

    tsvd_cuda_versions(&runtime, &driver);
    CHECK(runtime >= 0 && driver >= 0, "%d, %d", runtime, driver);
    CHECK((runtime > 0) == tsvd_cuda_compiled(), "runtime %d", runtime);
    if (count > 0) {
        tsvd_device device;

        CHECK(status == TSVD_OK, "status %d", (int)status);
        CHECK(tsvd_cuda_device(0, &device, why, sizeof why) == TSVD_OK, "%s", why);
        CHECK(strlen(device.name) > 0 && device.memory_total > 0, "device 0");
        CHECK(tsvd_cuda_device_usable(0, why, sizeof why) == TSVD_OK, "%s", why);
    } else {
        CHECK(status == TSVD_ERR_NO_DEVICE && count == 0 && strlen(why) > 0, "%d devices: \"%s\"",
              count, why);
        CHECK(tsvd_cuda_device_usable(0, why, sizeof why) != TSVD_OK, "no device is usable");
    }
}

int
main(void)
{
    test_small_orders();
    test_values();
    test_strides_and_batches();
    test_nothing_to_do();
    test_bad_arguments();
    test_nonfinite();
    test_no_convergence();
    test_interruption();
    test_threads_change_no_bit();
    test_names();
    test_devices();
    return report();
}
