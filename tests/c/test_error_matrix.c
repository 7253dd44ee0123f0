/*
 * error.matrix is the index of the matrix that failed, 0 of a single one, and -1 if none failed: of
 * every function, for one matrix, a batch of one, and each place in a batch.
 */
#include <string.h>

#include "defaults.h"
#include "plain_blas.h"

enum { BATCH = 4, ORDER = 20 };

static const tsvd_method methods[] = {TSVD_METHOD_AUTO,   TSVD_METHOD_DC,      TSVD_METHOD_QR,
                                      TSVD_METHOD_GIVENS, TSVD_METHOD_TWISTED, TSVD_METHOD_BISECT,
                                      TSVD_METHOD_JACOBI};

/* Of `matrices` matrices, -1: one without a batch, the one that is bad. */
struct batch {
    int64_t matrices;
    int64_t bad;
};

static const struct batch batches[] = {{-1, 0}, {1, 0}, {2, 1}, {BATCH, 0}, {BATCH, 2}};

static double d[BATCH * ORDER], e[BATCH * ORDER], s[BATCH * ORDER];
static double a[BATCH * ORDER * ORDER], left[BATCH * ORDER * ORDER], right[BATCH * ORDER * ORDER];

/* An array of rows x columns (-1: none) for each matrix. */
static tsvd_array
array_of(const double *data, struct batch batch, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {batch.matrices, rows, columns};
    const int alone = batch.matrices < 0;

    return tsvd_array_of(data, TSVD_HOST, TSVD_FLOAT64, (columns < 0 ? 2 : 3) - alone,
                         shape + alone);
}

static void
check_error(const char *what, struct batch batch, tsvd_status status, tsvd_status expected,
            const tsvd_error *error)
{
    CHECK(status == expected && error->status == expected, "%s: status %d, not %d", what,
          (int)status, (int)expected);
    CHECK(error->matrix == batch.bad, "%s, batch of %lld: matrix %lld, not %lld", what,
          (long long)batch.matrices, (long long)error->matrix, (long long)batch.bad);
    for (size_t i = 0; i < sizeof error->reserved / sizeof *error->reserved; i++) {
        CHECK(error->reserved[i] == 0, "%s: what is reserved is not zero", what);
    }
}

/* An error that nobody has initialised. */
static tsvd_error
any_error(void)
{
    tsvd_error error;

    memset(&error, 0xa5, sizeof error);
    return error;
}

static void
fill(double *x, int64_t numbers)
{
    for (int64_t i = 0; i < numbers; i++) {
        x[i] = random_unit();
    }
}

/* ---- bidiagonal matrices ---- */

static void
test_bidiagonal(tsvd_handle *handle, struct batch batch, tsvd_method method, int vectors)
{
    const tsvd_array of_d = array_of(d, batch, ORDER, -1), of_e = array_of(e, batch, ORDER - 1, -1);
    const tsvd_array of_s = array_of(s, batch, ORDER, -1), L = array_of(left, batch, ORDER, ORDER);
    const tsvd_array R = array_of(right, batch, ORDER, ORDER);
    const int sweeps = method == TSVD_METHOD_QR || method == TSVD_METHOD_GIVENS;
    tsvd_options options = default_options();
    tsvd_prepared *prepared = NULL;
    tsvd_error error = any_error();
    tsvd_status status;

    options.method = method;
    options.max_sweeps = sweeps;
    fill(d, BATCH * ORDER);
    memset(e, 0, sizeof e);
    if (sweeps) { /* one sweep is too few for one matrix alone */
        fill(e + (batch.matrices > 0 ? batch.bad * (ORDER - 1) : 0), ORDER - 1);
        status = tsvd_svd(handle, &of_d, &of_e, &options, vectors ? &L : NULL, &of_s,
                          vectors ? &R : NULL, NULL, &error);
        check_error(tsvd_method_name(method), batch, status, TSVD_ERR_NO_CONVERGENCE, &error);
    }
    error = any_error();
    d[batch.bad * ORDER + 7] = NAN;
    status = tsvd_svd(handle, &of_d, &of_e, &options, vectors ? &L : NULL, &of_s,
                      vectors ? &R : NULL, NULL, &error);
    check_error(tsvd_method_name(method), batch, status, TSVD_ERR_NONFINITE, &error);
    error = any_error();
    CHECK(tsvd_prepare(handle, &of_d, &of_e, &options, vectors, TSVD_HOST, NULL, &prepared,
                       &error) == TSVD_OK,
          "%s", error.text);
    status = tsvd_execute(prepared, d, e, left, s, right, NULL, &error);
    check_error(tsvd_method_name(method), batch, status, TSVD_ERR_NONFINITE, &error);
    tsvd_prepared_destroy(prepared);
    if (batch.matrices < 0) {
        int64_t first, count;

        error = any_error();
        status = tsvd_select(handle, &of_d, &of_e, NULL, 0, 1, &first, &count, &error);
        check_error("select", batch, status, TSVD_ERR_NONFINITE, &error);
    }
}

/* ---- dense matrices ---- */

static void
test_dense(tsvd_handle *handle, struct batch batch, int64_t n, tsvd_method method)
{
    const tsvd_array A = array_of(a, batch, n, n), S = array_of(s, batch, n, -1);
    const tsvd_array U = array_of(left, batch, n, n), Vh = array_of(right, batch, n, n);
    tsvd_reduction *reduction = NULL;
    tsvd_options options = default_options();
    tsvd_error error = any_error();
    tsvd_status status;

    options.method = method;
    options.max_sweeps = method == TSVD_METHOD_JACOBI || method == TSVD_METHOD_QR;
    fill(a, batch.matrices < 0 ? n * n : batch.matrices * n * n);
    if (options.max_sweeps) { /* the other matrices are diagonal */
        for (int64_t i = 0; i < (batch.matrices < 0 ? 1 : batch.matrices) * n * n; i++) {
            a[i] = i / (n * n) == batch.bad || i % (n * n) % (n + 1) == 0 ? a[i] : 0;
        }
        status = tsvd_dense_svd(handle, &A, &options, &U, &S, &Vh, NULL, &error);
        check_error(tsvd_method_name(method), batch, status, TSVD_ERR_NO_CONVERGENCE, &error);
        if (method == TSVD_METHOD_QR) { /* with eps each B has a call of its own */
            options.eps = 1e-9;
            status = tsvd_dense_svd(handle, &A, &options, &U, &S, &Vh, NULL, &error);
            check_error("dense, eps", batch, status, TSVD_ERR_NO_CONVERGENCE, &error);
            options.eps = -1;
            CHECK(tsvd_dense_reduce(handle, &A, NULL, &reduction, &error) == TSVD_OK, "%s",
                  error.text);
            status = tsvd_reduction_svd(reduction, &options, &U, &S, &Vh, NULL, &error);
            check_error("reduction_svd", batch, status, TSVD_ERR_NO_CONVERGENCE, &error);
            tsvd_reduction_destroy(reduction);
            reduction = NULL;
        }
    }
    error = any_error();
    a[batch.bad * n * n + 1] = INFINITY;
    status = tsvd_dense_svd(handle, &A, &options, &U, &S, &Vh, NULL, &error);
    check_error(tsvd_method_name(method), batch, status, TSVD_ERR_NONFINITE, &error);
    error = any_error();
    status = tsvd_dense_reduce(handle, &A, NULL, &reduction, &error);
    check_error("reduce", batch, status, TSVD_ERR_NONFINITE, &error);
}

static void
test_inverse(tsvd_handle *handle, struct batch batch, int64_t n)
{
    const tsvd_array A = array_of(a, batch, n, n), X = array_of(left, batch, n, n);
    tsvd_prepared *prepared = NULL;
    tsvd_error error = any_error();
    tsvd_status status;

    fill(a, BATCH * n * n);
    memset(a + batch.bad * n * n, 0, (size_t)(n * n) * sizeof *a);
    status = tsvd_dense_inverse(handle, &A, NULL, 0, &X, NULL, &error);
    check_error("inverse", batch, status, TSVD_ERR_SINGULAR, &error);
    error = any_error();
    CHECK(tsvd_inverse_prepare(handle, &A, NULL, 0, TSVD_HOST, NULL, &prepared, &error) == TSVD_OK,
          "%s", error.text);
    status = tsvd_inverse_execute(prepared, a, left, NULL, &error);
    check_error("inverse_execute", batch, status, TSVD_ERR_SINGULAR, &error);
    tsvd_prepared_destroy(prepared);
    error = any_error();
    a[batch.bad * n * n] = NAN;
    status = tsvd_dense_inverse(handle, &A, NULL, 1, &X, NULL, &error);
    check_error("inverse", batch, status, TSVD_ERR_NONFINITE, &error);
}

/* No matrix failed, but an argument is wrong. */
static void
test_no_matrix(tsvd_handle *handle)
{
    const struct batch alone = {-1, -1};
    const tsvd_array A = array_of(a, alone, 3, 3);
    tsvd_error error = any_error();
    tsvd_status status = tsvd_dense_inverse(handle, &A, NULL, 0, &A, NULL, &error);

    check_error("an argument", alone, status, TSVD_ERR_ARGUMENT, &error);
}

int
main(void)
{
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "no handle");
    use_blas(handle, 4);
    for (int i = 0; i < (int)(sizeof batches / sizeof *batches); i++) {
        for (int m = 0; m < 6; m++) {
            test_bidiagonal(handle, batches[i], methods[m], methods[m] != TSVD_METHOD_BISECT);
        }
        for (int64_t n = 2; n <= ORDER; n += ORDER - 2) { /* small ones have kernels of their own */
            test_dense(handle, batches[i], n, TSVD_METHOD_AUTO);
            test_inverse(handle, batches[i], n);
        }
        test_dense(handle, batches[i], ORDER, TSVD_METHOD_QR);
        test_dense(handle, batches[i], ORDER, TSVD_METHOD_JACOBI);
    }
    test_no_matrix(handle);
    tsvd_destroy(handle);
    return report();
}
