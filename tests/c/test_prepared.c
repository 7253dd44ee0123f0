/*
 * Prepared calls: they give the results of the functions that they stand for, bit by bit, as often
 * as they run, with other data; and they refuse what these refuse.
 */
#include <string.h>

#include "counting.h"
#include "dense.h"
#include "inverse.h"
#include "plain_blas.h"

enum { RUNS = 3 };

static void
fill(tsvd_dtype dtype, void *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        set(dtype, x, i, random_scaled(-3, 0));
    }
}

static void
check_same(const void *x, const void *y, int64_t count, tsvd_dtype dtype, const char *name)
{
    CHECK(memcmp(x, y, (size_t)count * size_of(dtype)) == 0, "%s has other bits", name);
}

/* Bidiagonal matrices, of which the values first .. first + k - 1 are wanted. */
static void
compare_bidiagonal(tsvd_dtype dtype, int64_t n, int64_t matrices, int vectors, int64_t k,
                   tsvd_method method)
{
    struct work w = make_work(dtype, n, matrices), other = make_work(dtype, n, matrices);
    const int64_t off = n > 0 ? n - 1 : 0;
    tsvd_options options = default_options();
    tsvd_prepared *prepared = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT, expected = TSVD_PLAN_INIT;
    struct arrays a;
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error error;

    w.vectors = vectors;
    w.k = k;
    a = arrays_of(&w);
    options.count = k;
    options.method = method;
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, &options, vectors, TSVD_HOST, &plan, &prepared, &error) ==
              TSVD_OK,
          "%s", error.text);
    CHECK(tsvd_make_plan(cpu(), &a.d, &a.e, &options, vectors, &expected, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(plan.method == expected.method && plan.chunk == expected.chunk &&
              plan.host_bytes == expected.host_bytes && plan.result_bytes == expected.result_bytes,
          "another plan");
    for (int run = 0; run < RUNS && prepared != NULL; run++) {
        fill(dtype, w.d, matrices * n);
        fill(dtype, w.e, matrices * off);
        CHECK(solve(&w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
        CHECK(tsvd_execute(prepared, w.d, w.e, other.L, other.s, other.R, &info, &error) == TSVD_OK,
              "%s", error.text);
        CHECK(info.seconds_total > 0, "no time");
        check_same(w.s, other.s, matrices * k, dtype, "s");
        check_same(w.L, other.L, vectors ? matrices * n * k : 0, dtype, "L");
        check_same(w.R, other.R, vectors ? matrices * n * k : 0, dtype, "R");
    }
    tsvd_prepared_destroy(prepared);
    free_work(&w);
    free_work(&other);
}

static void
test_bidiagonal(void)
{
    for (int t = 0; t < DTYPES; t++) {
        compare_bidiagonal(dtypes[t], 8, 1, 1, 8, TSVD_METHOD_AUTO);
        compare_bidiagonal(dtypes[t], 8, 1, 0, 8, TSVD_METHOD_AUTO);
        compare_bidiagonal(dtypes[t], 33, 50, 1, 33, TSVD_METHOD_DC);
        compare_bidiagonal(dtypes[t], 33, 50, 0, 5, TSVD_METHOD_AUTO);
        compare_bidiagonal(dtypes[t], 100, 3, 1, 7, TSVD_METHOD_AUTO);
        compare_bidiagonal(dtypes[t], 70, 1, 1, 70, TSVD_METHOD_QR);
        compare_bidiagonal(dtypes[t], 60, 2, 1, 60, TSVD_METHOD_GIVENS);
        compare_bidiagonal(dtypes[t], 1, 4, 1, 1, TSVD_METHOD_AUTO);
        compare_bidiagonal(dtypes[t], 0, 4, 1, 0, TSVD_METHOD_AUTO);
        compare_bidiagonal(dtypes[t], 5, 0, 1, 5, TSVD_METHOD_AUTO);
    }
}

static void
compare_dense(tsvd_handle *handle, tsvd_dtype dtype, int64_t m, int64_t n, int64_t matrices,
              int full, tsvd_method method)
{
    struct dense w = make_dense(dtype, m, n, matrices, full);
    struct dense other = make_dense(dtype, m, n, matrices, full);
    tsvd_options options = default_options();
    tsvd_prepared *prepared = NULL;
    tsvd_error error;

    options.method = method;
    CHECK(tsvd_dense_prepare(handle, &w.a_array, &options, full ? 2 : 1, TSVD_HOST, NULL, &prepared,
                             &error) == TSVD_OK,
          "%s", error.text);
    for (int run = 0; run < RUNS && prepared != NULL; run++) {
        fill(dtype, w.a, matrices * m * n);
        CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
        CHECK(tsvd_dense_execute(prepared, w.a, other.U, other.S, other.Vh, NULL, &error) ==
                  TSVD_OK,
              "%s", error.text);
        check_same(w.S, other.S, matrices * w.k, dtype, "S");
        check_same(w.U, other.U, matrices * m * (full ? m : w.k), dtype, "U");
        check_same(w.Vh, other.Vh, matrices * n * (full ? n : w.k), dtype, "Vh");
    }
    tsvd_prepared_destroy(prepared);
    free_dense(&w);
    free_dense(&other);
}

static void
test_dense(tsvd_handle *handle)
{
    for (int t = 0; t < DTYPES; t++) {
        compare_dense(handle, dtypes[t], 8, 8, 1, 0, TSVD_METHOD_AUTO);
        compare_dense(handle, dtypes[t], 20, 6, 300, 0, TSVD_METHOD_AUTO);
        compare_dense(handle, dtypes[t], 6, 20, 2, 1, TSVD_METHOD_AUTO);
        compare_dense(handle, dtypes[t], 130, 130, 1, 0, TSVD_METHOD_JACOBI);
        compare_dense(handle, dtypes[t], 9, 5, 7, 1, TSVD_METHOD_JACOBI);
        compare_dense(handle, dtypes[t], 5, 0, 2, 1, TSVD_METHOD_AUTO);
        compare_dense(handle, dtypes[t], 0, 0, 2, 0, TSVD_METHOD_AUTO);
    }
}

static void
test_inverse(tsvd_handle *handle)
{
    for (int t = 0; t < DTYPES; t++) {
        for (int refine = 0; refine < 2; refine++) {
            const int64_t n = 9, matrices = 5;
            struct inverses w = make_inverses(dtypes[t], n, matrices, refine);
            struct inverses other = make_inverses(dtypes[t], n, matrices, refine);
            tsvd_prepared *prepared = NULL;
            tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT, other_info = TSVD_INVERSE_INFO_INIT;
            tsvd_error error;

            CHECK(tsvd_inverse_prepare(handle, &w.a_array, NULL, refine, TSVD_HOST, NULL, &prepared,
                                       &error) == TSVD_OK,
                  "%s", error.text);
            for (int run = 0; run < RUNS && prepared != NULL; run++) {
                fill(dtypes[t], w.a, matrices * n * n);
                CHECK(invert_on(handle, &w, NULL, &info, &error) == TSVD_OK, "%s", error.text);
                CHECK(tsvd_inverse_execute(prepared, w.a, other.X, &other_info, &error) == TSVD_OK,
                      "%s", error.text);
                check_same(w.X, other.X, matrices * n * n, dtypes[t], "X");
                CHECK(info.rcond == other_info.rcond && info.matrix == other_info.matrix,
                      "other findings");
            }
            memset(w.a, 0, (size_t)(n * n) * size_of(dtypes[t]));
            CHECK(tsvd_inverse_execute(prepared, w.a, other.X, NULL, &error) == TSVD_ERR_SINGULAR &&
                      error.matrix == 0,
                  "%s", error.text);
            tsvd_prepared_destroy(prepared);
            free_inverses(&w);
            free_inverses(&other);
        }
    }
}

/* Several at once of one handle, destroyed in another order. */
static void
test_several(void)
{
    struct work w = make_work(TSVD_FLOAT64, 12, 1);
    const struct arrays a = arrays_of(&w);
    tsvd_prepared *prepared[4] = {NULL};
    tsvd_error error;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, i % 2, TSVD_HOST, NULL, &prepared[i],
                               &error) == TSVD_OK,
                  "%s", error.text);
        }
        for (int i = 3; i >= 0; i -= 1) {
            CHECK(tsvd_execute(prepared[i], w.d, w.e, i % 2 ? w.L : NULL, w.s, i % 2 ? w.R : NULL,
                               NULL, &error) == TSVD_OK,
                  "%s", error.text);
            tsvd_prepared_destroy(prepared[(i + round) % 4]);
            prepared[(i + round) % 4] = NULL;
            for (int j = 0; j < i; j++) {
                if (prepared[j] == NULL) {
                    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, j % 2, TSVD_HOST, NULL,
                                       &prepared[j], &error) == TSVD_OK,
                          "%s", error.text);
                }
            }
        }
        for (int i = 0; i < 4; i++) {
            tsvd_prepared_destroy(prepared[i]);
        }
    }
    free_work(&w);
}

static int
stop(void *asked, double done)
{
    (void)done;
    ++*(int *)asked;
    return 1;
}

static void
test_check(void)
{
    struct work w = make_work(TSVD_FLOAT64, 200, 1);
    const struct arrays a = arrays_of(&w);
    tsvd_prepared *prepared = NULL;
    tsvd_error error;
    int asked = 0;

    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, 1, TSVD_HOST, NULL, &prepared, &error) == TSVD_OK,
          "%s", error.text);
    tsvd_prepared_set_check(prepared, stop, &asked);
    CHECK(tsvd_execute(prepared, w.d, w.e, w.L, w.s, w.R, NULL, &error) == TSVD_ERR_INTERRUPTED,
          "not stopped");
    CHECK(asked == 1, "asked %d times", asked);
    tsvd_prepared_set_check(prepared, NULL, NULL);
    CHECK(tsvd_execute(prepared, w.d, w.e, w.L, w.s, w.R, NULL, &error) == TSVD_OK, "%s",
          error.text);
    tsvd_prepared_destroy(prepared);
    free_work(&w);
}

static void
test_errors(tsvd_handle *handle)
{
    struct work w = make_work(TSVD_FLOAT64, 6, 1);
    struct dense m = make_dense(TSVD_FLOAT64, 6, 4, 1, 0);
    const struct arrays a = arrays_of(&w);
    tsvd_options options = default_options();
    tsvd_prepared *prepared = NULL, *dense = NULL, *none = NULL;
    size_t *small = allocate(sizeof *small);
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    none = (tsvd_prepared *)(void *)&w;
    CHECK(tsvd_prepare(NULL, &a.d, &a.e, NULL, 1, TSVD_HOST, NULL, &none, &error) ==
                  TSVD_ERR_ARGUMENT &&
              none == NULL,
          "no handle");
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, 1, TSVD_HOST, NULL, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "no place");
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, 1, TSVD_CUDA, NULL, &none, &error) ==
                  TSVD_ERR_ARGUMENT &&
              none == NULL,
          "results on a device");
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, 1, (tsvd_space)0, NULL, &none, NULL) ==
              TSVD_ERR_ARGUMENT,
          "no space");
    CHECK(tsvd_prepare(cpu(), &a.d, NULL, NULL, 1, TSVD_HOST, NULL, &none, &error) ==
              TSVD_ERR_ARGUMENT,
          "no e");
    *small = 8; /* of an older header: nothing but the size may be read */
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, (const tsvd_options *)(const void *)small, 1, TSVD_HOST,
                       NULL, &none, &error) == TSVD_ERR_ARGUMENT,
          "other options");
    free(small);
    options.count = 7;
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, &options, 1, TSVD_HOST, NULL, &none, &error) ==
              TSVD_ERR_ARGUMENT,
          "too many values");
    options = default_options();
    options.method = TSVD_METHOD_BISECT;
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, &options, 1, TSVD_HOST, NULL, &none, &error) ==
                  TSVD_ERR_ARGUMENT &&
              none == NULL,
          "vectors by bisection");
    CHECK(tsvd_prepare(cpu(), &a.d, &a.e, NULL, 1, TSVD_HOST, NULL, &prepared, &error) == TSVD_OK,
          "%s", error.text);
    CHECK(tsvd_execute(prepared, NULL, w.e, w.L, w.s, w.R, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no d");
    CHECK(tsvd_execute(prepared, w.d, NULL, w.L, w.s, w.R, NULL, NULL) == TSVD_ERR_ARGUMENT,
          "no e");
    CHECK(tsvd_execute(prepared, w.d, w.e, NULL, w.s, w.R, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no L");
    CHECK(tsvd_execute(prepared, w.d, w.e, w.L, NULL, w.R, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no s");
    CHECK(tsvd_execute(NULL, w.d, w.e, w.L, w.s, w.R, NULL, &error) == TSVD_ERR_ARGUMENT,
          "nothing prepared");
    CHECK(tsvd_dense_execute(prepared, m.a, m.U, m.S, m.Vh, NULL, &error) == TSVD_ERR_ARGUMENT,
          "prepared for bidiagonal matrices");
    CHECK(tsvd_inverse_execute(prepared, m.a, m.U, NULL, &error) == TSVD_ERR_ARGUMENT,
          "prepared for bidiagonal matrices");
    set(TSVD_FLOAT64, w.d, 2, NAN);
    CHECK(tsvd_execute(prepared, w.d, w.e, w.L, w.s, w.R, NULL, &error) == TSVD_ERR_NONFINITE,
          "NaN");
    CHECK(tsvd_inverse_prepare(handle, &m.a_array, NULL, 0, TSVD_HOST, NULL, &none, &error) ==
                  TSVD_ERR_ARGUMENT &&
              none == NULL,
          "6 x 4");
    tsvd_set_blas(handle, NULL, NULL);
    if (!tsvd_has_blas()) {
        options.method = TSVD_METHOD_DC;
        CHECK(tsvd_dense_prepare(handle, &m.a_array, &options, 1, TSVD_HOST, &plan, &dense,
                                 &error) == TSVD_ERR_LIBRARY &&
                  plan.needs_blas && dense == NULL,
              "no BLAS");
    }
    tsvd_prepared_destroy(NULL);
    tsvd_prepared_set_check(NULL, NULL, NULL);
    tsvd_prepared_destroy(prepared);
    free_work(&w);
    free_dense(&m);
}

/* A BLAS that is taken from the handle, and one that takes its place. */
static void
test_other_blas(tsvd_handle *handle)
{
    struct work w = make_work(TSVD_FLOAT64, 600, 1);
    struct dense m = make_dense(TSVD_FLOAT64, 100, 100, 1, 0);
    const struct arrays a = arrays_of(&w);
    tsvd_prepared *svd = NULL, *dense = NULL, *inverse = NULL;
    tsvd_error error;

    fill(TSVD_FLOAT64, w.d, 600);
    fill(TSVD_FLOAT64, w.e, 599);
    fill(TSVD_FLOAT64, m.a, (int64_t)100 * 100);
    CHECK(tsvd_prepare(handle, &a.d, &a.e, NULL, 1, TSVD_HOST, NULL, &svd, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(tsvd_dense_prepare(handle, &m.a_array, NULL, 1, TSVD_HOST, NULL, &dense, &error) ==
              TSVD_OK,
          "%s", error.text);
    CHECK(tsvd_inverse_prepare(handle, &m.a_array, NULL, 1, TSVD_HOST, NULL, &inverse, &error) ==
              TSVD_OK,
          "%s", error.text);
    for (int blas = 0; blas <= 8; blas += 4) { /* the bytes of its integers, or none */
        const int works = blas > 0 || tsvd_has_blas();
        const tsvd_status expected = works ? TSVD_OK : TSVD_ERR_LIBRARY;

        tsvd_set_blas(handle, NULL, NULL);
        if (blas > 0) {
            use_blas(handle, blas);
        }
        CHECK(tsvd_execute(svd, w.d, w.e, w.L, w.s, w.R, NULL, &error) == expected, "BLAS %d: %s",
              blas, error.text);
        CHECK(tsvd_dense_execute(dense, m.a, m.U, m.S, m.Vh, NULL, &error) == expected,
              "BLAS %d: %s", blas, error.text);
        CHECK(tsvd_inverse_execute(inverse, m.a, m.U, NULL, &error) == expected, "BLAS %d: %s",
              blas, error.text);
    }
    tsvd_prepared_destroy(svd);
    tsvd_prepared_destroy(dense);
    tsvd_prepared_destroy(inverse);
    free_work(&w);
    free_dense(&m);
}

/* Results that cannot be addressed, of matrices that can: all of them are one number in memory. */
static void
test_too_large(tsvd_handle *handle)
{
    static const int64_t orders[][3] = {
        {INT64_C(1) << 53, 8, 1}, {INT64_C(1) << 55, 5, 0}, {1, INT64_C(1) << 30, 1}};
    const int64_t d_shape[] = {INT64_C(1) << 55, 2}, e_shape[] = {INT64_C(1) << 55, 1};
    double x = 1;
    tsvd_array d = tsvd_array_of(&x, TSVD_HOST, TSVD_FLOAT64, 2, d_shape);
    tsvd_array e = tsvd_array_of(&x, TSVD_HOST, TSVD_FLOAT64, 2, e_shape);
    tsvd_prepared *prepared = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    memset(d.strides, 0, sizeof d.strides);
    memset(e.strides, 0, sizeof e.strides);
    CHECK(tsvd_prepare(handle, &d, &e, NULL, 1, TSVD_HOST, &plan, &prepared, &error) == TSVD_OK,
          "%s", error.text);
    CHECK(plan.result_bytes == UINT64_MAX, "bytes that cannot be");
    CHECK(tsvd_execute(prepared, &x, &x, &x, &x, &x, NULL, &error) == TSVD_ERR_MEMORY &&
              strstr(error.text, "the arrays") != NULL,
          "%s", error.text);
    tsvd_prepared_destroy(prepared);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        for (int method = 0; method < 2; method++) {
            tsvd_array a = tsvd_array_of(&x, TSVD_HOST, TSVD_FLOAT64, 3, orders[i]);
            tsvd_options options = default_options();

            options.method = method ? TSVD_METHOD_JACOBI : TSVD_METHOD_AUTO;
            memset(a.strides, 0, sizeof a.strides);
            CHECK(tsvd_dense_prepare(handle, &a, &options, 2, TSVD_HOST, &plan, &prepared,
                                     &error) == TSVD_OK,
                  "%s", error.text);
            CHECK(plan.result_bytes == UINT64_MAX, "bytes that cannot be");
            CHECK(tsvd_dense_execute(prepared, &x, &x, &x, &x, NULL, &error) == TSVD_ERR_MEMORY &&
                      strstr(error.text, "the arrays") != NULL,
                  "%s", error.text);
            tsvd_prepared_destroy(prepared);
        }
    }
}

/* Matrices without entries, which have no memory: their strides mean nothing. */
static void
test_no_memory(tsvd_handle *handle)
{
    static const int64_t shapes[][3] = {{2, 3, 0}, {2, 0, 3}, {2, 0, 0}};
    double s, vectors[2][2 * 3 * 3];
    tsvd_error error;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int method = 0; method < 2; method++) {
            tsvd_array a = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 3, shapes[i]);
            tsvd_options options = default_options();
            tsvd_prepared *prepared = NULL;

            options.method = method ? TSVD_METHOD_JACOBI : TSVD_METHOD_AUTO;
            a.strides[0] = -24;
            CHECK(tsvd_dense_prepare(handle, &a, &options, 2, TSVD_HOST, NULL, &prepared, &error) ==
                      TSVD_OK,
                  "%s", error.text);
            CHECK(tsvd_dense_execute(prepared, NULL, vectors[0], &s, vectors[1], NULL, &error) ==
                      TSVD_OK,
                  "%s", error.text);
            if (shapes[i][1] + shapes[i][2] > 0) {
                const double *identity = vectors[shapes[i][1] > 0 ? 0 : 1];

                for (int entry = 0; entry < 2 * 3 * 3; entry++) {
                    CHECK(identity[entry] == (entry % 9 % 4 == 0), "entry %d of I", entry);
                }
            }
            tsvd_prepared_destroy(prepared);
        }
    }
}

/* tsvd_trim() returns what a prepared call left for the next one. */
static void
test_trim(void)
{
    struct dense m = make_dense(TSVD_FLOAT64, 8, 8, 1, 0);
    struct counting counting = {0};
    tsvd_allocator allocator = counting_allocator(&counting);
    tsvd_config config = default_config();
    tsvd_prepared *prepared = NULL;
    tsvd_handle *handle = NULL;
    tsvd_error error;
    long long before;

    config.host_allocator = &allocator;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    before = counting.bytes;
    CHECK(tsvd_inverse_prepare(handle, &m.a_array, NULL, 0, TSVD_HOST, NULL, &prepared, &error) ==
              (tsvd_has_blas() ? TSVD_OK : TSVD_ERR_LIBRARY),
          "%s", error.text);
    tsvd_prepared_destroy(prepared);
    CHECK(tsvd_trim(handle, &error) == TSVD_OK && counting.bytes == before, "%lld bytes are left",
          (long long)counting.bytes - before);
    tsvd_destroy(handle);
    free_dense(&m);
}

int
main(void)
{
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 8);
    test_bidiagonal();
    test_dense(handle);
    test_inverse(handle);
    test_several();
    test_check();
    test_other_blas(handle);
    test_too_large(handle);
    test_no_memory(handle);
    test_trim();
    test_errors(handle);
    tsvd_destroy(handle);
    return report();
}
