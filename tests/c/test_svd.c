/*
 * tsvd_svd through the C interface: small orders, strides, batches, refusals, early ends.
 */
#include <stddef.h>
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
                    tsvd_options options = default_options();
                    tsvd_info info = TSVD_INFO_INIT;
                    tsvd_error error;
                    tsvd_status status;
                    double tolerance = 4 * (double)(n + 8) * eps_of(dtypes[t]);

                    options.method = vector_methods[m];
                    options.lower = lower;
                    if (options.method == TSVD_METHOD_GIVENS) {
                        options.eps = 1e-4;
                        tolerance += 4 * options.eps;
                    }
                    status = solve(&w, &options, &info, &error);
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
                tsvd_options options = default_options();
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
                w.vectors = 0;
                CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "n = %lld", (long long)n);
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

        const int64_t d_shape[] = {ROWS, 1, N}, e_shape[] = {COLUMNS, N - 1};
        const int64_t shape[] = {ROWS, COLUMNS, N, N};
        struct arrays a;

        /* d: every third entry, backwards, one matrix for each row of the batch;
           e: one for each column, entries of both interleaved. */
        for (int64_t i = 0; i < N * ROWS; i++) {
            set(dtype, d, 3 * i, random_scaled(-2, 0));
        }
        for (int64_t i = 0; i < 2 * N; i++) {
            set(dtype, e, i, random_scaled(-2, 0));
        }
        a = arrays_of(&w);
        a.d = tsvd_array_of(d + 3 * (N - 1) * size, TSVD_HOST, dtype, 3, d_shape);
        a.d.strides[0] = 3 * N * size;
        a.d.strides[1] = size; /* of one entry: it does not matter */
        a.d.strides[2] = -3 * size;
        a.e = tsvd_array_of(e, TSVD_HOST, dtype, 2, e_shape);
        a.e.strides[0] = size;
        a.e.strides[1] = 2 * size;
        a.L = tsvd_array_of(w.L, TSVD_HOST, dtype, 4, shape);
        a.s = tsvd_array_of(w.s, TSVD_HOST, dtype, 3, shape);
        a.R = tsvd_array_of(w.R, TSVD_HOST, dtype, 4, shape);
        CHECK(tsvd_svd(cpu(), &a.d, &a.e, NULL, &a.L, &a.s, &a.R, NULL, NULL) == TSVD_OK,
              "strided");

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
                one.batch = 0;
                CHECK(solve(&one, NULL, NULL, NULL) == TSVD_OK, "alone");
                CHECK(memcmp((char *)w.L + (size_t)matrix * bytes, one.L, bytes) == 0 &&
                          memcmp((char *)w.R + (size_t)matrix * bytes, one.R, bytes) == 0 &&
                          memcmp((char *)w.s + matrix * N * size, one.s, N * (size_t)size) == 0,
                      "matrix %lld differs", (long long)matrix);
            }
        }
        a.d.strides[2] = a.d.strides[0] = 0; /* one number for all of d */
        CHECK(tsvd_svd(cpu(), &a.d, &a.e, NULL, &a.L, &a.s, &a.R, NULL, NULL) == TSVD_OK,
              "stride 0");
        free(d);
        free(e);
        free_work(&w);
        free_work(&one);
    }
}

/* A 3 x 4 matrix and its transpose, with the null vector and without it, as a call and prepared;
   and results of other shapes. */
static void
test_extra_column(void)
{
    enum { N = 3, M = N + 1 };
    const double d[N] = {3, 2, 1}, e[N] = {1, 1, 2};
    const int64_t order[] = {N};
    const tsvd_array d_array = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT64, 1, order);
    const tsvd_array e_array = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT64, 1, order);

    for (int lower = 0; lower < 2; lower++) {
        for (int full = 0; full < 2; full++) {
            double left[M * M], right[M * M], s[N], again[M * M];
            const int64_t l_shape[] = {N + lower, N + (lower && full)};
            const int64_t r_shape[] = {N + (!lower && full), N + !lower};
            const tsvd_array L = tsvd_array_of(left, TSVD_HOST, TSVD_FLOAT64, 2, l_shape);
            const tsvd_array R = tsvd_array_of(right, TSVD_HOST, TSVD_FLOAT64, 2, r_shape);
            const tsvd_array values = tsvd_array_of(s, TSVD_HOST, TSVD_FLOAT64, 1, order);
            const tsvd_array wrong = tsvd_array_of(right, TSVD_HOST, TSVD_FLOAT64, 2, l_shape);
            tsvd_options options = default_options();
            tsvd_prepared *prepared = NULL;
            tsvd_plan plan = TSVD_PLAN_INIT;
            tsvd_error error;

            options.lower = lower;
            CHECK(tsvd_svd(cpu(), &d_array, &e_array, &options, &L, &values, &R, NULL, &error) ==
                      TSVD_OK,
                  "%s", error.text);
            for (int64_t i = 0; i < l_shape[0]; i++) {
                for (int64_t j = 0; j < r_shape[1]; j++) {
                    const int64_t row = lower ? j : i, column = lower ? i : j;
                    double b = row == column ? d[row] : column == row + 1 ? e[row] : 0;

                    for (int64_t k = 0; k < N; k++) {
                        b -= left[i * l_shape[1] + k] * s[k] * right[k * r_shape[1] + j];
                    }
                    CHECK(fabs(b) < 1e-14, "entry %lld, %lld: %g", (long long)i, (long long)j, b);
                }
            }
            for (int64_t i = 0; full && i < N; i++) {
                const double *null = lower ? left + N : right + (ptrdiff_t)N * M;
                const int64_t stride = lower ? M : 1;
                const double zero = d[i] * null[i * stride] + e[i] * null[(i + 1) * stride];

                CHECK(fabs(zero) < 1e-14, "row %lld of the null vector: %g", (long long)i, zero);
            }
            CHECK(tsvd_make_plan(cpu(), &d_array, &e_array, &options, 1 + full, &plan, NULL) ==
                      TSVD_OK,
                  "a plan");
            CHECK(plan.result_bytes == sizeof(double) * (uint64_t)(l_shape[0] * l_shape[1] + N +
                                                                   r_shape[0] * r_shape[1]),
                  "%llu bytes", (unsigned long long)plan.result_bytes);
            CHECK(tsvd_prepare(cpu(), &d_array, &e_array, &options, 1 + full, TSVD_HOST, NULL,
                               &prepared, NULL) == TSVD_OK,
                  "a prepared call");
            memcpy(again, lower ? left : right, sizeof again);
            CHECK(tsvd_execute(prepared, d, e, left, s, right, NULL, NULL) == TSVD_OK, "executed");
            CHECK(memcmp(again, lower ? left : right,
                         (size_t)(lower ? l_shape[0] * l_shape[1] : r_shape[0] * r_shape[1]) *
                             sizeof(double)) == 0,
                  "the same bits");
            tsvd_prepared_destroy(prepared);
            options.lower = !lower;
            CHECK(tsvd_svd(cpu(), &d_array, &e_array, &options, &L, &values, &R, NULL, &error) ==
                      TSVD_ERR_ARGUMENT,
                  "results of the transpose");
            options.lower = lower;
            CHECK(tsvd_svd(cpu(), &d_array, &e_array, &options, &L, &values, &wrong, NULL, NULL) ==
                      TSVD_ERR_ARGUMENT,
                  "R of the shape of L");
        }
    }
}

static void
test_nothing_to_do(void)
{
    const int64_t none = 0, one = 1, empty[] = {3, 0, 1000}, off[] = {3, 0, 999};
    double x = 1, value = 0;
    tsvd_array d = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 1, &none), s = d, e;

    CHECK(tsvd_svd(cpu(), &d, NULL, NULL, NULL, &s, NULL, NULL, NULL) == TSVD_OK, "n = 0");
    CHECK(tsvd_svd(cpu(), &d, &d, NULL, NULL, &s, NULL, NULL, NULL) == TSVD_OK, "n = 0, with e");
    d = tsvd_array_of(&x, TSVD_HOST, TSVD_FLOAT64, 1, &one);
    s = tsvd_array_of(&value, TSVD_HOST, TSVD_FLOAT64, 1, &one);
    CHECK(tsvd_svd(cpu(), &d, NULL, NULL, NULL, &s, NULL, NULL, NULL) == TSVD_OK && value == 1,
          "n = 1, e is NULL");
    d = s = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 3, empty);
    e = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 3, off);
    CHECK(tsvd_svd(cpu(), &d, &e, NULL, NULL, &s, NULL, NULL, NULL) == TSVD_OK, "an empty batch");
}

/* One call, which may be changed before it is made. */
struct call {
    tsvd_handle *handle;
    struct arrays a;
    const tsvd_array *d, *e, *L, *s, *R;
    tsvd_options options;
};

static struct call
call_of(const struct work *w)
{
    struct call c = {.handle = cpu(), .a = arrays_of(w), .options = default_options()};

    return c;
}

static tsvd_status
make_call(struct call *c, tsvd_error *error)
{
    return tsvd_svd(c->handle, c->d, c->e, &c->options, c->L, c->s, c->R, NULL, error);
}

/* One refused call: its status, and a sentence that says why; no matrix is blamed. */
static void
check_refused(const char *what, struct call *c, tsvd_status expected)
{
    tsvd_error error = {.text = ""};
    tsvd_status status = make_call(c, &error);

    CHECK(status == expected && error.status == expected, "%s: status %d", what, (int)status);
    CHECK(strlen(error.text) > 10 && memchr(error.text, 0, sizeof error.text) != NULL, "%s: \"%s\"",
          what, error.text);
    CHECK(expected != TSVD_ERR_ARGUMENT || error.matrix == -1, "%s: matrix %lld", what,
          (long long)error.matrix);
    CHECK(make_call(c, NULL) == expected, "%s, error = NULL", what);
}

static void
test_bad_arguments(void)
{
    struct work w = make_work(TSVD_FLOAT64, 4, 3);
    struct call c;

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        c = call_of(&w);                                                                           \
        c.d = &c.a.d, c.e = &c.a.e, c.L = &c.a.L, c.s = &c.a.s, c.R = &c.a.R;                      \
        change;                                                                                    \
        check_refused(#change, &c, TSVD_ERR_ARGUMENT);                                             \
    } while (0)

    REFUSED(c.handle = NULL);
    REFUSED(c.d = NULL);
    REFUSED(c.e = NULL);
    REFUSED(c.L = NULL);
    REFUSED(c.s = NULL);
    REFUSED(c.R = NULL);
    REFUSED(c.a.d.data = NULL);
    REFUSED(c.a.e.data = NULL);
    REFUSED(c.a.L.data = NULL);
    REFUSED(c.a.s.data = NULL);
    REFUSED(c.a.R.data = NULL);
    /* structures of zeros */
    REFUSED(memset(&c.options, 0, sizeof c.options));
    REFUSED(memset(&c.a.d, 0, sizeof c.a.d));
    REFUSED(memset(&c.a.e, 0, sizeof c.a.e));
    REFUSED(memset(&c.a.L, 0, sizeof c.a.L));
    REFUSED(memset(&c.a.s, 0, sizeof c.a.s));
    REFUSED(memset(&c.a.R, 0, sizeof c.a.R));
    REFUSED(c.options.size = offsetof(tsvd_options, part) - 1); /* shorter than ever */
    /* arrays */
    REFUSED(c.a.d.dtype = (tsvd_dtype)7);
    REFUSED(c.a.d.dtype = TSVD_FLOAT32);
    REFUSED(c.a.s.dtype = TSVD_FLOAT32);
    REFUSED(c.a.d.space = (tsvd_space)7);
    REFUSED(c.a.d.space = TSVD_CUDA); /* the handle is the CPU's */
    REFUSED(c.a.L.space = TSVD_CUDA);
    REFUSED(c.a.d.ndim = -1);
    REFUSED(c.a.d.ndim = TSVD_MAX_DIMS + 1);
    REFUSED(c.a.d.ndim = 1); /* then L, s and R have a dimension too many */
    REFUSED(c.a.d.shape[1] = -1);
    REFUSED(c.a.d.shape[1] = 5);
    REFUSED(c.a.d.shape[0] = 2);
    REFUSED(c.a.d.shape[0] = -2);
    c = call_of(&w);
    c.d = &c.a.d, c.e = &c.a.e, c.L = &c.a.L, c.s = &c.a.s, c.R = &c.a.R;
    c.a.d.shape[1] = INT64_MAX, c.a.e.shape[1] = INT64_MAX - 1;
    check_refused("sizes that cannot be addressed", &c, TSVD_ERR_MEMORY);
    REFUSED(c.a.s.shape[1] = 5);
    REFUSED(c.a.L.shape[2] = 3);
    REFUSED(c.a.R.shape[0] = 4);
    REFUSED(c.a.s.strides[1] *= 2);
    REFUSED(c.a.L.strides[1] += 8);
    REFUSED(c.a.R.strides[2] = 0);
    /* options */
    REFUSED(c.options.first = -1);
    REFUSED(c.options.first = 1);
    REFUSED(c.options.first = INT64_MAX);
    REFUSED(c.options.count = -2);
    REFUSED(c.options.count = 5);
    REFUSED(c.options.count = INT64_MAX);
    REFUSED(c.options.method = TSVD_METHOD_COUNT);
    REFUSED(c.options.method = (tsvd_method)-1);
    REFUSED(c.options.method = TSVD_METHOD_BISECT); /* has no vectors */
    REFUSED(c.options.eps = (double)NAN);
    REFUSED(c.options.eps = (double)INFINITY);
    REFUSED(c.options.max_sweeps = -1);
    REFUSED(c.options.givens_blocks = -1);
    REFUSED(c.options.givens_threads = -1);
    REFUSED(c.options.dense_stages = -1);
    REFUSED(c.options.dense_stages = 3);
    w.k = 3; /* vectors of a part */
    REFUSED((c.options.count = 3, c.options.method = TSVD_METHOD_QR));
    REFUSED((c.options.count = 3, c.options.method = TSVD_METHOD_GIVENS));
#undef REFUSED
    free_work(&w);
}

/* Handles that cannot be made, and NULL where a handle is asked for. */
static void
test_handles(void)
{
    const tsvd_blas half = TSVD_BLAS_INIT;
    const tsvd_allocator none = {NULL, NULL, NULL};
    tsvd_handle *handle = cpu();
    tsvd_config config;
    tsvd_error error;

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        config = default_config();                                                                 \
        change;                                                                                    \
        CHECK(tsvd_create(&config, &handle, &error) == TSVD_ERR_ARGUMENT, #change);                \
        CHECK(handle == NULL && strlen(error.text) > 10, "%s: \"%s\"", #change, error.text);       \
        CHECK(tsvd_create(&config, &handle, NULL) == TSVD_ERR_ARGUMENT, #change);                  \
    } while (0)

    REFUSED(memset(&config, 0, sizeof config));
    REFUSED(config.size--);
    REFUSED(config.device = -5);
    REFUSED(config.threads = -1);
    REFUSED(config.stream = &config);
    REFUSED(config.device_allocator = &none);
    REFUSED(config.host_allocator = &none);
    REFUSED(config.blas = &half);
    REFUSED(config.library_path_count = 1);
    REFUSED(config.library_path_count = -1);
#undef REFUSED
    CHECK(tsvd_create(NULL, NULL, &error) == TSVD_ERR_ARGUMENT, "no place for the handle");
    CHECK(tsvd_set_threads(NULL, 1, &error) == TSVD_ERR_ARGUMENT, "NULL");
    CHECK(tsvd_set_threads(cpu(), -1, NULL) == TSVD_ERR_ARGUMENT, "-1 threads");
    CHECK(tsvd_set_blas(NULL, NULL, &error) == TSVD_ERR_ARGUMENT, "NULL");
    CHECK(tsvd_set_blas(cpu(), &half, &error) == TSVD_ERR_ARGUMENT, "half a BLAS");
    CHECK(tsvd_set_stream(cpu(), NULL, &error) == TSVD_ERR_ARGUMENT, "the CPU has no streams");
    CHECK(tsvd_trim(NULL, &error) == TSVD_ERR_ARGUMENT, "NULL");
    CHECK(tsvd_trim(cpu(), &error) == TSVD_OK, "trim");
    tsvd_destroy(NULL);
    CHECK(strcmp(tsvd_version(), TSVD_VERSION) == 0, "%s", tsvd_version());
}

static void
test_nonfinite(void)
{
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

    for (int t = 0; t < DTYPES; t++) {
        for (int i = 0; i < 3; i++) {
            for (int in_e = 0; in_e < 2; in_e++) {
                struct work w = make_work(dtypes[t], 4, 3);
                tsvd_options options = default_options();
                struct call c;
                tsvd_error error;

                set(dtypes[t], in_e ? w.e : w.d, in_e ? 1 * 3 + 2 : 1 * 4 + 3, bad[i]);
                c = call_of(&w);
                c.d = &c.a.d, c.e = &c.a.e, c.s = &c.a.s;
                check_refused("not finite", &c, TSVD_ERR_NONFINITE);
                (void)solve(&w, NULL, NULL, &error);
                CHECK(error.matrix == 1, "matrix %lld", (long long)error.matrix);

                options.check_finite = 0;
                CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "not checked");
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
        tsvd_options options = default_options();
        tsvd_error error = {.text = ""};

        options.method = methods[m];
        options.eps = methods[m] == TSVD_METHOD_GIVENS ? 1e-8 : -1;
        options.max_sweeps = 1;
        CHECK(solve(&w, &options, NULL, &error) == TSVD_ERR_NO_CONVERGENCE, "%s",
              tsvd_method_name(methods[m]));
        CHECK(error.sweeps >= 1 && error.matrix == 1, "%lld sweeps, matrix %lld",
              (long long)error.sweeps, (long long)error.matrix);
        CHECK(methods[m] != TSVD_METHOD_GIVENS || strstr(error.advice, "AUTO") != NULL, "\"%s\"",
              error.advice);
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
        tsvd_options options = default_options();
        struct asked asked = {.stop_at = 2, .in_range = 1, .rising = 1};
        tsvd_status status;

        options.method = methods[m];
        options.max_sweeps = methods[m] == TSVD_METHOD_GIVENS ? 1000000 : 0;
        /* the caller alone is asked, and another thread may be quicker with all the values */
        CHECK(tsvd_set_threads(cpu(), methods[m] == TSVD_METHOD_BISECT ? 1 : 0, NULL) == TSVD_OK,
              "threads");
        options.eps = methods[m] == TSVD_METHOD_GIVENS ? 1e-300 : -1;
        options.check = ask;
        options.check_arg = &asked;
        if (methods[m] == TSVD_METHOD_BISECT) {
            w.vectors = 0;
        }
        status = solve(&w, &options, NULL, NULL);
        CHECK(status == TSVD_ERR_INTERRUPTED, "%s: status %d after %d questions",
              tsvd_method_name(methods[m]), (int)status, asked.calls);
        CHECK(asked.calls == 2, "%s: %d questions", tsvd_method_name(methods[m]), asked.calls);

        options.check = NULL; /* the next call works */
        options.method = TSVD_METHOD_AUTO;
        options.max_sweeps = 0;
        options.eps = -1;
        CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "after an interruption");

        asked = (struct asked){.stop_at = -1, .in_range = 1, .rising = 1};
        options.check = ask;
        CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "never stopped");
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
    tsvd_options options = default_options();
    void *L = allocate(2 * bytes), *R = allocate(2 * bytes);

    for (int threads = 1; threads <= 3; threads++) {
        CHECK(tsvd_set_threads(cpu(), threads, NULL) == TSVD_OK, "threads");
        CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "%d threads", threads);
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
    CHECK(tsvd_host_memory_available() > 0, "memory");
    CHECK(tsvd_handle_device(cpu()) == TSVD_DEVICE_CPU, "device %d", tsvd_handle_device(cpu()));
    CHECK(tsvd_handle_device(NULL) == TSVD_DEVICE_CPU, "NULL");
}

static void
test_devices(void)
{
    tsvd_error error;
    int count = -1, runtime = -1, driver = -1;
    tsvd_status status = tsvd_cuda_device_count(&count, &error);

    CHECK(tsvd_cuda_device_count(NULL, &error) != TSVD_OK, "nowhere to count");
    CHECK(tsvd_cuda_device_facts(0, NULL, &error) != TSVD_OK, "nowhere for facts");
    tsvd_cuda_versions(&runtime, &driver);
    CHECK(runtime >= 0 && driver >= 0, "%d, %d", runtime, driver);
    CHECK((runtime > 0) == tsvd_cuda_compiled(), "runtime %d", runtime);
    if (count > 0) {
        tsvd_cuda_device device;

        CHECK(status == TSVD_OK, "status %d", (int)status);
        CHECK(tsvd_cuda_device_facts(0, &device, &error) == TSVD_OK, "%s", error.text);
        CHECK(strlen(device.name) > 0 && device.memory_total > 0, "device 0");
        CHECK(tsvd_cuda_device_usable(0, &error) == TSVD_OK, "%s", error.text);
    } else {
        CHECK(status == TSVD_ERR_NO_DEVICE && count == 0 && strlen(error.text) > 0,
              "%d devices: \"%s\"", count, error.text);
        CHECK(tsvd_cuda_device_usable(0, &error) != TSVD_OK, "no device is usable");
    }
}

int
main(void)
{
    test_small_orders();
    test_values();
    test_strides_and_batches();
    test_extra_column();
    test_nothing_to_do();
    test_handles();
    test_bad_arguments();
    test_nonfinite();
    test_no_convergence();
    test_interruption();
    test_threads_change_no_bit();
    test_names();
    test_devices();
    return report();
}
