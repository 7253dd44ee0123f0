/*
 * Dense matrices through the C interface, with a plain BLAS: shapes around the sizes of blocks,
 * layouts, ranges, full bases, kept reductions; plans and arguments.  calls.h says which tests make
 * calls fail.  tests/test_linalg_accuracy.py has the hard families.
 */
#include <string.h>

#include "counting.h"
#include "dense.h"
#include "plain_blas.h"

/* ---- shapes, layouts, ranges ---- */

/* stages: of the reduction; 0: chosen. */
static void
check_stages(tsvd_handle *handle, tsvd_dtype dtype, int64_t m, int64_t n, int64_t matrices,
             int full, int stages)
{
    tsvd_options options = default_options();
    struct dense w = make_dense(dtype, m, n, matrices, full);
    void *values = allocate((size_t)(matrices * w.k) * size_of(dtype));
    tsvd_error error;

    options.dense_stages = stages;
    if (w.full && m == n) {
        w.full = 0;
    }
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%lld x %lld: %s",
          (long long)m, (long long)n, error.text);
    for (int64_t i = 0; i < matrices; i++) {
        check_dense(&w, i);
    }
    memcpy(values, w.S, (size_t)(matrices * w.k) * size_of(dtype));
    w.vectors = 0;
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
    for (int64_t i = 0; i < matrices * w.k; i++) {
        const int64_t first = i / w.k * w.k;

        CHECK(fabs(get(dtype, values, i) - get(dtype, w.S, i)) <=
                  (8 + (double)w.k / 8) * eps_of(dtype) * get(dtype, values, first),
              "%lld x %lld: value %lld", (long long)m, (long long)n, (long long)i);
    }
    free(values);
    free_dense(&w);
}

static void
check_shape(tsvd_handle *handle, tsvd_dtype dtype, int64_t m, int64_t n, int64_t matrices, int full)
{
    check_stages(handle, dtype, m, n, matrices, full, 0);
}

/* Panels begin at 128 columns, and QR at 1.7 times as many rows. */
static void
test_shapes(void)
{
    const int64_t sizes[] = {1, 2, 3, 7, 17, 33};
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    for (int kind = 0; kind < 4; kind++) {
        const tsvd_dtype dtype = dtypes[kind & 1];

        use_blas(handle, kind & 2 ? 8 : 4);
        for (int i = 0; i < 6; i++) {
            for (int j = 0; j < 6; j++) {
                check_shape(handle, dtype, sizes[i], sizes[j], 1 + (i + j) % 3, kind >> 1);
            }
        }
        check_shape(handle, dtype, 127 + kind, 129, 1, 0);
        check_shape(handle, dtype, 161, 130, 1, kind & 1);
        check_shape(handle, dtype, 129, 230, 1, !(kind & 1));
    }
    tsvd_destroy(handle);
}

/* Through a band of 32 superdiagonals; of 660 columns several threads chase, and updates
   are deferred. */
static void
test_two_stages(void)
{
    const int64_t sizes[] = {1, 2, 31, 33, 65, 100};
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    config.threads = 4;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 4);
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < 6; i++) {
            for (int j = 0; j < 6; j++) {
                check_stages(handle, dtypes[kind], sizes[i], sizes[j], 1 + (i + j) % 3, kind, 2);
            }
        }
        check_stages(handle, dtypes[kind], 661, 660, 1, 0, 2);
    }
    tsvd_destroy(handle);
}

/* Rows and columns in any order in memory. */
static void
test_layouts(void)
{
    const int64_t m = 9, n = 6, size = sizeof(double);
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 4);
    for (int layout = 0; layout < 4; layout++) {
        struct dense w = make_dense(TSVD_FLOAT64, m, n, 2, 0);

        if (layout & 1) { /* by columns */
            w.a_array.strides[1] = size;
            w.a_array.strides[2] = m * size;
        }
        if (layout & 2) { /* backwards, and the same matrix twice */
            w.a_array.data = (double *)w.a + m * n - 1;
            w.a_array.strides[0] = 0;
            w.a_array.strides[1] *= -1;
            w.a_array.strides[2] *= -1;
        }
        CHECK(solve_dense(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
        check_dense(&w, 0);
        check_dense(&w, 1);
        free_dense(&w);
    }
    tsvd_destroy(handle);
}

static void
test_ranges(void)
{
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 8);
    for (int64_t first = 0; first < 5; first += 2) {
        for (int64_t count = 0; count <= 2; count++) {
            struct dense w = make_dense(TSVD_FLOAT64, first == 2 ? 20 : 8, 7, 3, 0);

            w.first = first;
            w.k = count;
            CHECK(solve_dense(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
            for (int64_t i = 0; i < w.matrices; i++) {
                check_dense(&w, i);
            }
            free_dense(&w);
        }
    }
    tsvd_destroy(handle);
}

/* Zero, NaN and the largest numbers. */
static void
test_kinds(void)
{
    struct dense w = make_dense(TSVD_FLOAT64, 5, 4, 3, 0);
    tsvd_options options = default_options();
    tsvd_handle *handle = NULL;
    double *a = w.a;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 4);
    for (int i = 0; i < 20; i++) {
        a[i] = 0;
        a[40 + i] *= DBL_MAX / 64;
    }
    a[27] = NAN;
    CHECK(solve_dense(handle, &w, NULL, NULL, &error) == TSVD_ERR_NONFINITE && error.matrix == 1,
          "matrix %lld: %s", (long long)error.matrix, error.text);
    options.check_finite = 0;
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
    check_dense(&w, 0);
    for (int i = 0; i < 4; i++) {
        CHECK(isnan(((double *)w.S)[4 + i]) && isnan(((double *)w.Vh)[16 + 4 * i]), "NaN");
        a[40 + i] = a[40 + i] < 0 ? -DBL_MAX : DBL_MAX;
    }
    for (int i = 0; i < 20; i++) { /* numbers that the check can square */
        a[40 + i] *= 0x1p-512;
    }
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
    check_dense(&w, 2);
    tsvd_destroy(handle);
    free_dense(&w);
}

/* A reduction restored from the state of another one, which is destroyed. */
static tsvd_reduction *
restore_saved(tsvd_handle *handle, const tsvd_array *a, tsvd_reduction *reduction)
{
    const uint64_t bytes = tsvd_reduction_state_bytes(reduction);
    const tsvd_array shape = tsvd_array_of(NULL, a->space, a->dtype, a->ndim, a->shape);
    char *state = allocate((size_t)bytes);
    tsvd_reduction *restored = NULL;
    tsvd_error error;

    CHECK(tsvd_reduction_save(reduction, state, &error) == TSVD_OK, "%s", error.text);
    tsvd_reduction_destroy(reduction);
    CHECK(tsvd_reduction_restore(handle, &shape, state, bytes - 1, &restored, &error) ==
                  TSVD_ERR_ARGUMENT &&
              restored == NULL,
          "%s", error.text);
    CHECK(tsvd_reduction_restore(handle, &shape, state, bytes, &restored, &error) == TSVD_OK, "%s",
          error.text);
    free(state);
    return restored;
}

/* ---- reductions that are kept ---- */

static void
check_reduction(tsvd_handle *handle, int64_t m, int64_t n, tsvd_dtype dtype)
{
    const int64_t p = m < n ? m : n, matrices = 2;
    struct dense w = make_dense(dtype, m, n, matrices, 0);
    const size_t size = size_of(dtype);
    const double bound = 8 * (double)(m + n + 8) * eps_of(dtype);
    char *d = allocate((size_t)(matrices * p) * size), *e = allocate((size_t)(matrices * p) * size);
    char *x = allocate((size_t)(matrices * m * n) * size);
    const tsvd_array d_array = array_for(&w, d, p, -1), e_array = array_for(&w, e, p - 1, -1);
    const int64_t transposed[] = {matrices, n, m};
    const tsvd_array x_array = tsvd_array_of(x, TSVD_HOST, dtype, 3, w.a_array.shape);
    const tsvd_array y_array = tsvd_array_of(x, TSVD_HOST, dtype, 3, transposed);
    tsvd_reduction *reduction = NULL;
    tsvd_error error;

    CHECK(tsvd_dense_reduce(handle, &w.a_array, NULL, &reduction, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(tsvd_reduction_entries(reduction, &d_array, p > 1 ? &e_array : NULL, &error) == TSVD_OK,
          "%s", error.text);
    /* Q^T A, then P^T (Q^T A)^T, is B^T */
    memcpy(x, w.a, (size_t)(matrices * m * n) * size);
    CHECK(tsvd_reduction_apply(reduction, TSVD_LEFT, 1, &x_array, NULL, &error) == TSVD_OK, "%s",
          error.text);
    for (int64_t t = 0; t < matrices; t++) {
        char *copy = allocate((size_t)(m * n) * size), *to = x + (size_t)(t * m * n) * size;

        memcpy(copy, to, (size_t)(m * n) * size);
        for (int64_t i = 0; i < m * n; i++) {
            set(dtype, to, i % n * m + i / n, get(dtype, copy, i));
        }
        free(copy);
    }
    CHECK(tsvd_reduction_apply(reduction, TSVD_RIGHT, 1, &y_array, NULL, &error) == TSVD_OK, "%s",
          error.text);
    for (int64_t i = 0; i < matrices * m * n; i++) {
        const int64_t t = i / (m * n), row = i % (m * n) % m, column = i % (m * n) / m;
        double b = row == column ? get(dtype, d, t * p + row) : 0;

        b = m >= n && column == row + 1 ? get(dtype, e, t * (p - 1) + row) : b;
        b = m < n && row == column + 1 ? get(dtype, e, t * (p - 1) + column) : b;
        CHECK(fabs(get(dtype, x, i) - b) <= bound, "%lld x %lld, B[%lld, %lld]: %g, not %g",
              (long long)m, (long long)n, (long long)row, (long long)column, get(dtype, x, i), b);
    }
    set_results(&w);
    for (int twice = 0; twice < 2; twice++) {
        reduction = twice ? restore_saved(handle, &w.a_array, reduction) : reduction;
        CHECK(tsvd_reduction_svd(reduction, NULL, &w.U_array, &w.S_array, &w.Vh_array, NULL,
                                 &error) == TSVD_OK,
              "%s", error.text);
        check_dense(&w, 0);
        check_dense(&w, 1);
    }
    tsvd_reduction_destroy(reduction);
    free(d);
    free(e);
    free(x);
    free_dense(&w);
}

/* Intervals of the values of scale A, also where values overflow. */
static void
check_select(tsvd_handle *handle, int64_t m, int64_t n, double scale)
{
    struct dense w = make_dense(TSVD_FLOAT64, m, n, 1, 0);
    const tsvd_array a = tsvd_array_of(w.a, TSVD_HOST, w.dtype, 2, w.a_array.shape + 1);
    tsvd_reduction *reduction = NULL;
    double *values = w.S;
    int64_t first, count;
    tsvd_error error;

    CHECK(solve_dense(handle, &w, NULL, NULL, &error) == TSVD_OK, "%s", error.text);
    for (int64_t i = 0; i < m * n; i++) {
        ((double *)w.a)[i] *= scale;
    }
    CHECK(tsvd_dense_reduce(handle, &a, NULL, &reduction, &error) == TSVD_OK, "%s", error.text);
    for (int64_t i = 0; i + 1 < w.k; i++) {
        const double high = (values[i] + values[i + 1]) / 2 * scale;

        CHECK(tsvd_reduction_select(reduction, 0, high, &first, &count, &error) == TSVD_OK, "%s",
              error.text);
        CHECK(!(high <= DBL_MAX) || (first == i + 1 && count == w.k - 1 - i), "%lld from %lld",
              (long long)count, (long long)first);
    }
    CHECK(tsvd_reduction_select(reduction, 1, 1, &first, &count, &error) == TSVD_ERR_ARGUMENT,
          "an empty interval");
    tsvd_reduction_destroy(reduction);
    free_dense(&w);
}

static void
test_reductions(void)
{
    const int64_t shapes[][2] = {{1, 1}, {1, 5}, {4, 1}, {6, 6}, {7, 5}, {5, 8}, {20, 6}, {6, 20}};
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 4);
    for (int i = 0; i < 8; i++) {
        check_reduction(handle, shapes[i][0], shapes[i][1], dtypes[i % 2]);
    }
    check_select(handle, 9, 6, 1);
    check_select(handle, 6, 30, 0x1p-1030);
    check_select(handle, 40, 8, DBL_MAX / 2);
    CHECK(tsvd_reduction_entries(NULL, NULL, NULL, &error) == TSVD_ERR_ARGUMENT, "no reduction");
    CHECK(tsvd_reduction_state_bytes(NULL) == 0, "no reduction");
    CHECK(tsvd_reduction_save(NULL, &error, NULL) == TSVD_ERR_ARGUMENT, "no reduction");
    tsvd_reduction_destroy(NULL);
    tsvd_destroy(handle);
}

/* ---- progress ---- */

struct telling {
    double last;
    int same, most_same; /* how often the last share was repeated, and the most for any share */
};

static int
hear(void *arg, double done)
{
    struct telling *telling = arg;

    CHECK(done >= telling->last && done <= 1, "%g behind %g", done, telling->last);
    telling->same = done == telling->last ? telling->same + 1 : 0;
    telling->most_same = telling->same > telling->most_same ? telling->same : telling->most_same;
    telling->last = done;
    return 0;
}

/* Jacobi of a large square matrix starts with an SVD.  Progress grows during that, and after it. */
static void
test_progress(void)
{
    struct dense w = make_dense(TSVD_FLOAT64, 300, 300, 2, 0);
    struct telling telling = {0, 0, 0};
    tsvd_options options = default_options();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    use_blas(handle, 4);
    options.method = TSVD_METHOD_JACOBI;
    options.check = hear;
    options.check_arg = &telling;
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK(telling.last == 1 && telling.most_same <= 4, "%g, and one share %d times again",
          telling.last, telling.most_same);
    tsvd_destroy(handle);
    free_dense(&w);
}

/* ---- arguments ---- */

/* A call takes no more memory than its plan says. */
static void
check_plan(tsvd_method method, int64_t m, int64_t n, int64_t matrices, int threads)
{
    struct counting counting = {.refuse = 0};
    tsvd_options options = default_options();
    tsvd_handle *handle = counting_handle(&counting, threads);
    struct dense w = make_dense(TSVD_FLOAT64, m, n, matrices, 0);
    const long long before = atomic_load(&counting.bytes);
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    options.method = method;
    use_blas(handle, 4);
    CHECK(tsvd_dense_plan(handle, &w.a_array, &options, 1, &plan, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(plan.n == (m < n ? m : n) && plan.count == plan.n && plan.matrices == matrices &&
              plan.needs_blas == (!plan.direct || method == TSVD_METHOD_JACOBI),
          "the plan");
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK((uint64_t)(atomic_load(&counting.peak) - before) <= plan.host_bytes,
          "%lld x %lld: %lld bytes, planned %llu", (long long)m, (long long)n,
          (long long)(atomic_load(&counting.peak) - before), (unsigned long long)plan.host_bytes);
    tsvd_destroy(handle);
    free_dense(&w);
}

static void
test_plans(void)
{
    const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_JACOBI};

    for (int i = 0; i < 2; i++) {
        check_plan(methods[i], 9, 9, 1, 1);
        check_plan(methods[i], 30, 7, 20, 2);
        check_plan(methods[i], 7, 11, 6, 6);
        check_plan(methods[i], 150, 140, 1, 2);
        check_plan(methods[i], 140, 140, 1, 2);
        check_plan(methods[i], 129, 129, 3, 6);
    }
}

static void
test_arguments(void)
{
    struct dense w = make_dense(TSVD_FLOAT64, 4, 3, 1, 0);
    tsvd_options options = default_options();
    tsvd_handle *handle = NULL;
    tsvd_reduction *reduction = NULL;
    tsvd_array bad;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    CHECK(tsvd_create(NULL, &handle, &error) == TSVD_OK, "%s", error.text);
    if (!tsvd_has_blas()) {
        CHECK(solve_dense(handle, &w, NULL, NULL, &error) == TSVD_OK, "a small matrix: %s",
              error.text);
        options.method = TSVD_METHOD_DC;
        CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_ERR_LIBRARY &&
                  strstr(error.advice, "tsvd_set_blas") != NULL,
              "%s", error.text);
        CHECK(tsvd_dense_plan(handle, &w.a_array, &options, 1, &plan, &error) == TSVD_ERR_LIBRARY &&
                  plan.needs_blas,
              "%s", error.text);
        options.method = TSVD_METHOD_AUTO;
    }
    use_blas(handle, 4);
    CHECK(tsvd_dense_svd(handle, NULL, NULL, NULL, NULL, NULL, NULL, &error) == TSVD_ERR_ARGUMENT,
          "no a");
    CHECK(tsvd_dense_svd(NULL, &w.a_array, NULL, NULL, NULL, NULL, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "no handle");
    CHECK(tsvd_dense_reduce(NULL, &w.a_array, NULL, &reduction, &error) == TSVD_ERR_ARGUMENT,
          "no handle");
    set_results(&w);
    bad = w.U_array;
    bad.shape[2] = 2;
    CHECK(tsvd_dense_svd(handle, &w.a_array, NULL, &bad, &w.S_array, &w.Vh_array, NULL, &error) ==
                  TSVD_ERR_ARGUMENT &&
              error.text[0] == 'U',
          "%s", error.text);
    CHECK(tsvd_dense_svd(handle, &w.a_array, NULL, &w.U_array, &w.S_array, NULL, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "U without Vh");
    bad = w.a_array;
    bad.ndim = 1;
    CHECK(tsvd_dense_svd(handle, &bad, NULL, NULL, &w.S_array, NULL, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "one dimension");
    bad = w.a_array;
    bad.shape[1] = INT64_C(1) << 40;
    bad.shape[2] = INT64_C(1) << 40;
    CHECK(tsvd_dense_svd(handle, &bad, NULL, NULL, &w.S_array, NULL, NULL, &error) ==
              TSVD_ERR_MEMORY,
          "%s", error.text);
    options.lower = 1;
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_ERR_ARGUMENT, "lower");
    options = default_options();
    options.method = TSVD_METHOD_JACOBI;
    options.eps = 1;
    CHECK(solve_dense(handle, &w, &options, NULL, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "eps") != NULL,
          "%s", error.text);
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_JACOBI), "jacobi") == 0, "the name");
    options.eps = -1;
    CHECK(tsvd_dense_reduce(handle, &w.a_array, &options, &reduction, &error) ==
                  TSVD_ERR_ARGUMENT &&
              strstr(error.text, "dense") != NULL,
          "%s", error.text);
    tsvd_destroy(handle);
    free_dense(&w);
}

int
main(void)
{
    test_shapes();
    test_two_stages();
    test_layouts();
    test_ranges();
    test_kinds();
    test_reductions();
    test_plans();
    test_progress();
    test_arguments();
    return report();
}
