/*
 * Plans compared with what calls do: the method, the workspace, and that all of it comes from the
 * handle's allocator and goes back there.
 */
#include <string.h>

#include "backend/tuning.h"
#include "counting.h"
#include "problem.h"

static struct counting counting;

/* One call: it does what the plan says, and the planned bytes bound its peak from above and, within
   reason, from below. */
static void
check_call(tsvd_handle *handle, const struct work *w, const tsvd_options *options)
{
    const struct arrays a = arrays_of(w);
    const long long before = atomic_load(&counting.bytes);
    const char *name = tsvd_method_name(options->method);
    tsvd_options own = *options;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error error;
    long long peak;

    own.first = w->first;
    own.count = w->k;
    CHECK(tsvd_make_plan(handle, &a.d, &a.e, &own, w->vectors, &plan, &error) == TSVD_OK, "%s",
          error.text);
    atomic_store(&counting.peak, before);
    CHECK(solve_on(handle, w, options, &info, &error) == TSVD_OK, "%s: %s", name, error.text);
    peak = atomic_load(&counting.peak) - before;
    CHECK(atomic_load(&counting.bytes) == before, "%s: %lld bytes are left", name,
          atomic_load(&counting.bytes) - before);
    CHECK(info.method == plan.method ||
              (plan.method == TSVD_METHOD_BISECT && info.method == TSVD_METHOD_QR) ||
              (plan.method == TSVD_METHOD_TWISTED && info.method == TSVD_METHOD_DC),
          "%s: %s ran, not %s", name, tsvd_method_name(info.method), tsvd_method_name(plan.method));
    CHECK((uint64_t)peak <= plan.host_bytes,
          "%s, n = %lld, %lld matrices, k = %lld, vectors %d: %lld bytes of %llu", name,
          (long long)w->n, (long long)w->matrices, (long long)w->k, w->vectors, peak,
          (unsigned long long)plan.host_bytes);
    /* a single worker may have done all the work */
    CHECK(plan.host_bytes <= (uint64_t)plan.workers * (16 * (uint64_t)peak + ((uint64_t)8 << 20)),
          "%s, n = %lld, %lld matrices, k = %lld, vectors %d: %lld bytes, the plan tells %llu",
          name, (long long)w->n, (long long)w->matrices, (long long)w->k, w->vectors, peak,
          (unsigned long long)plan.host_bytes);
    CHECK(plan.device_bytes == 0, "%s: device memory on the CPU", name);
    CHECK(plan.result_bytes == (uint64_t)w->matrices * (uint64_t)w->k * size_of(w->dtype) *
                                   (w->vectors ? 2 * (uint64_t)w->n + 1 : 1),
          "%s: %llu bytes of results", name, (unsigned long long)plan.result_bytes);
}

static void
test_workspace(void)
{
    const int64_t orders[] = {1, 2, 8, 9, 32, 33, 64, 65, 100, BATCH_ORDER_MAX + 1};
    const int64_t batches[] = {1, 3, 40};
    const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_QR, TSVD_METHOD_GIVENS,
                                   TSVD_METHOD_BISECT, TSVD_METHOD_TWISTED};
    const int64_t givens_most = 100; /* it takes n sweeps */

    for (int threads = 1; threads <= 3; threads += 2) {
        tsvd_handle *handle = counting_handle(&counting, threads);

        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
            for (int b = 0; b < (orders[o] > 65 ? 1 : orders[o] > 33 ? 2 : 3); b++) {
                for (int m = 0; m < 5; m++) {
                    for (int vectors = 0; vectors < 2; vectors++) {
                        struct work w;
                        tsvd_options options = default_options();

                        options.method = methods[m];
                        if (methods[m] == TSVD_METHOD_GIVENS && orders[o] > givens_most) {
                            continue;
                        }
                        w = make_work(dtypes[m % 2], orders[o], batches[b]);
                        w.vectors = vectors && methods[m] != TSVD_METHOD_BISECT;
                        check_call(handle, &w, &options);
                        if (!w.vectors) {
                            w.first = w.n / 3;
                            w.k = (w.n + 2) / 3;
                            check_call(handle, &w, &options);
                        }
                        free_work(&w);
                    }
                }
            }
        }
        tsvd_destroy(handle);
        CHECK(atomic_load(&counting.bytes) == 0, "the handle leaves %lld bytes",
              atomic_load(&counting.bytes));
    }
}

/* A matrix so graded that its values are found by QR. */
static void
test_graded(void)
{
    tsvd_handle *handle = counting_handle(&counting, 1);
    struct work w = make_work(TSVD_FLOAT64, 150, 1);
    const tsvd_options options = default_options();
    tsvd_info info = TSVD_INFO_INIT;

    for (int64_t i = 0; i < w.n; i++) {
        set(w.dtype, w.d, i, ldexp(get(w.dtype, w.d, i), (int)(-6 * i)));
    }
    w.vectors = 0;
    check_call(handle, &w, &options);
    CHECK(solve_on(handle, &w, &options, &info, NULL) == TSVD_OK && info.method == TSVD_METHOD_QR,
          "by %s", tsvd_method_name(info.method));
    free_work(&w);
    tsvd_destroy(handle);
}

static void
no_dgemm(const char *a, const char *b, const int32_t *m, const int32_t *n, const int32_t *k,
         const double *alpha, const double *x, const int32_t *ldx, const double *y,
         const int32_t *ldy, const double *beta, double *z, const int32_t *ldz)
{
    (void)a, (void)b, (void)m, (void)n, (void)k, (void)alpha, (void)x, (void)ldx, (void)y;
    (void)ldy, (void)beta, (void)z, (void)ldz;
}

static void
no_sgemm(const char *a, const char *b, const int32_t *m, const int32_t *n, const int32_t *k,
         const float *alpha, const float *x, const int32_t *ldx, const float *y, const int32_t *ldy,
         const float *beta, float *z, const int32_t *ldz)
{
    (void)a, (void)b, (void)m, (void)n, (void)k, (void)alpha, (void)x, (void)ldx, (void)y;
    (void)ldy, (void)beta, (void)z, (void)ldz;
}

/* One vector of a matrix of zero strides, whose n x n workspace has more bytes than there are. */
static void
test_too_large_workspace(void)
{
    const tsvd_blas blas = {.size = sizeof(tsvd_blas), .dgemm32 = no_dgemm, .sgemm32 = no_sgemm};
    const int64_t n = (int64_t)1 << 32, off = n - 1, one = 1, left[] = {n, 1}, right[] = {1, n};
    double x[3] = {1, 1, 1};
    /* nobody writes there */
    const void *far = (const void *)((uintptr_t)&x[2] + (uintptr_t)n * sizeof *x);
    tsvd_array d = tsvd_array_of(x, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    tsvd_array e = tsvd_array_of(x, TSVD_HOST, TSVD_FLOAT64, 1, &off);
    const tsvd_array s = tsvd_array_of(x + 1, TSVD_HOST, TSVD_FLOAT64, 1, &one);
    const tsvd_array L = tsvd_array_of(x + 2, TSVD_HOST, TSVD_FLOAT64, 2, left);
    const tsvd_array R = tsvd_array_of(far, TSVD_HOST, TSVD_FLOAT64, 2, right);
    tsvd_options options = default_options();
    tsvd_handle *handle = counting_handle(&counting, 1);
    tsvd_error error;

    CHECK(tsvd_set_blas(handle, &blas, &error) == TSVD_OK, "%s", error.text);
    d.strides[0] = e.strides[0] = 0;
    options.count = 1;
    CHECK(tsvd_svd(handle, &d, &e, &options, &L, &s, &R, NULL, &error) == TSVD_ERR_MEMORY,
          "status %d", (int)error.status);
    CHECK(error.wanted == UINT64_MAX, "%s", error.text);
    tsvd_destroy(handle);
}

/* Matrices of zero strides, of any order up to 2^62: no size wraps, and the error has the bytes. */
static void
test_zero_strides(void)
{
    const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_QR, TSVD_METHOD_GIVENS,
                                   TSVD_METHOD_BISECT};
    double x[3] = {1, 1, 1};
    tsvd_error error;

    for (int power = 40; power <= 62; power++) {
        for (int64_t part = 1; part <= 57; part += 56) { /* 57 n + 9 bytes wrapped once */
            const int64_t n = ((int64_t)1 << power) / part, off = n - 1;
            tsvd_array d = tsvd_array_of(x, TSVD_HOST, TSVD_FLOAT64, 1, &n);
            tsvd_array e = tsvd_array_of(x, TSVD_HOST, TSVD_FLOAT64, 1, &off);
            tsvd_array s = tsvd_array_of(x + 1, TSVD_HOST, TSVD_FLOAT64, 1, &n);
            int64_t first, count;

            d.strides[0] = e.strides[0] = 0;
            for (int m = 0; m < 4; m++) {
                for (int k = 0; k < 2; k++) { /* all values, or one */
                    const int64_t one = 1;
                    tsvd_options options = default_options();

                    options.method = methods[m];
                    options.count = k == 0 ? -1 : 1;
                    s.shape[0] = k == 0 ? n : one;
                    CHECK(tsvd_svd(cpu(), &d, &e, &options, NULL, &s, NULL, NULL, &error) ==
                              TSVD_ERR_MEMORY,
                          "n = %lld: %s", (long long)n, error.text);
                    CHECK(error.wanted > (uint64_t)n && error.available > 0, "%s", error.text);
                    CHECK(strstr(error.text, "bytes") != NULL, "%s", error.text);
                }
            }
            CHECK(tsvd_select(cpu(), &d, &e, NULL, 0, 1, &first, &count, &error) == TSVD_ERR_MEMORY,
                  "n = %lld: %s", (long long)n, error.text);
            CHECK(error.wanted > (uint64_t)n && error.available > 0, "%s", error.text);
        }
    }
}

/* The same with more bytes than any machine has: the error names the bytes wanted and free. */
static void
test_more_than_the_memory(void)
{
    const tsvd_blas blas = {.size = sizeof(tsvd_blas), .dgemm32 = no_dgemm, .sgemm32 = no_sgemm};
    const int64_t n = (int64_t)1 << 19, off = n - 1, one = 1, left[] = {n, 1}, right[] = {1, n};
    double x = 1, *vectors = allocate(2 * (size_t)n * sizeof *vectors);
    tsvd_array d = tsvd_array_of(&x, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    tsvd_array e = tsvd_array_of(&x, TSVD_HOST, TSVD_FLOAT64, 1, &off);
    double value = 0;
    const tsvd_array s = tsvd_array_of(&value, TSVD_HOST, TSVD_FLOAT64, 1, &one);
    const tsvd_array L = tsvd_array_of(vectors, TSVD_HOST, TSVD_FLOAT64, 2, left);
    const tsvd_array R = tsvd_array_of(vectors + n, TSVD_HOST, TSVD_FLOAT64, 2, right);
    tsvd_options options = default_options();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    CHECK(tsvd_set_blas(handle, &blas, &error) == TSVD_OK, "%s", error.text);
    d.strides[0] = e.strides[0] = 0;
    options.count = 1;
    options.method = TSVD_METHOD_DC;
    CHECK(tsvd_svd(handle, &d, &e, &options, &L, &s, &R, NULL, &error) == TSVD_ERR_MEMORY,
          "status %d", (int)error.status);
    CHECK(error.wanted >= (uint64_t)n * (uint64_t)n && error.available > 0 &&
              error.available < error.wanted && error.matrix == -1,
          "%s", error.text);
    tsvd_destroy(handle);
    free(vectors);
}

/* Sizes that no machine can hold, and refusals. */
static void
test_extremes(void)
{
    const int64_t sizes[][2] = {{INT64_MAX, 1}, {INT64_MAX / 2, 7}, {1, INT64_MAX}, {1 << 30, 1}};
    tsvd_options options = default_options();
    tsvd_array d, e;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    for (int i = 0; i < 4; i++) {
        const int64_t shape[] = {sizes[i][1], sizes[i][0]}, off[] = {sizes[i][1], sizes[i][0] - 1};

        d = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 2, shape);
        e = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 2, off);
        CHECK(tsvd_make_plan(cpu(), &d, &e, &options, 1, &plan, &error) == TSVD_OK, "%s",
              error.text);
        CHECK(plan.result_bytes >= (uint64_t)1 << 60 && plan.host_bytes == UINT64_MAX,
              "line %d: %llu, %llu", i, (unsigned long long)plan.result_bytes,
              (unsigned long long)plan.host_bytes);
    }
    test_too_large_workspace();
    test_more_than_the_memory();
    options.method = TSVD_METHOD_BISECT;
    CHECK(tsvd_make_plan(cpu(), &d, &e, &options, 1, &plan, &error) == TSVD_ERR_ARGUMENT,
          "vectors by bisect");
    CHECK(tsvd_make_plan(cpu(), &d, &e, &options, 0, NULL, &error) == TSVD_ERR_ARGUMENT, "no plan");
    CHECK(tsvd_make_plan(NULL, &d, &e, &options, 0, &plan, NULL) == TSVD_ERR_ARGUMENT, "no handle");
    memset(&options, 0, sizeof options);
    CHECK(tsvd_make_plan(cpu(), &d, &e, &options, 0, &plan, &error) == TSVD_ERR_ARGUMENT, "zero");
}

int
main(void)
{
    test_workspace();
    test_graded();
    test_extremes();
    test_zero_strides();
    return report();
}
