/*
 * Dense matrices for the C interface, filled at random, and the check of their results.
 */
#ifndef TSVD_TESTS_DENSE_H
#define TSVD_TESTS_DENSE_H

#include <string.h>

#include "problem.h"

/* A batch of matrices and room for their results. */
struct dense {
    tsvd_dtype dtype;
    int64_t m, n, matrices, first, k;
    int full, vectors;
    void *a, *U, *S, *Vh;
    tsvd_array a_array, U_array, S_array, Vh_array;
};

static tsvd_array
array_for(const struct dense *w, const void *data, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {w->matrices, rows, columns};

    return tsvd_array_of(data, TSVD_HOST, w->dtype, columns < 0 ? 2 : 3, shape);
}

UNUSED static struct dense
make_dense(tsvd_dtype dtype, int64_t m, int64_t n, int64_t matrices, int full)
{
    const int64_t p = m < n ? m : n;
    const size_t size = size_of(dtype), count = (size_t)matrices;
    struct dense w;

    memset(&w, 0, sizeof(w));
    w.dtype = dtype;
    w.m = m;
    w.n = n;
    w.matrices = matrices;
    w.k = p;
    w.full = full;
    w.vectors = 1;
    w.a = allocate(count * (size_t)(m * n) * size);
    w.U = allocate(count * (size_t)(m * (m > n ? m : n)) * size);
    w.S = allocate(count * (size_t)p * size);
    w.Vh = allocate(count * (size_t)(n * (m > n ? m : n)) * size);
    for (int64_t i = 0; i < matrices * m * n; i++) {
        set(dtype, w.a, i, random_scaled(-3, 0));
    }
    w.a_array = array_for(&w, w.a, m, n);
    return w;
}

UNUSED static void
free_dense(struct dense *w)
{
    free(w->a);
    free(w->U);
    free(w->S);
    free(w->Vh);
}

/* Sets the arrays of the results for the wanted range. */
static void
set_results(struct dense *w)
{
    w->U_array = array_for(w, w->U, w->m, w->full ? w->m : w->k);
    w->S_array = array_for(w, w->S, w->k, -1);
    w->Vh_array = array_for(w, w->Vh, w->full ? w->n : w->k, w->n);
}

UNUSED static tsvd_status
solve_dense(tsvd_handle *handle, struct dense *w, const tsvd_options *options, tsvd_info *info,
            tsvd_error *error)
{
    tsvd_options own = options != NULL ? *options : default_options();

    own.first = w->first;
    own.count = w->k;
    set_results(w);
    return tsvd_dense_svd(handle, &w->a_array, &own, w->vectors ? &w->U_array : NULL, &w->S_array,
                          w->vectors ? &w->Vh_array : NULL, info, error);
}

/* Entry (i, j) of A, wherever it lies. */
static double
a_entry(const struct dense *w, int64_t matrix, int64_t i, int64_t j)
{
    const tsvd_array *a = &w->a_array;
    const char *at =
        (const char *)a->data + matrix * a->strides[0] + i * a->strides[1] + j * a->strides[2];

    return get(w->dtype, at, 0);
}

/* Rows (by_columns = 0) or columns of a matrix are orthonormal. */
static void
check_orthonormal(const struct dense *w, const void *x, int64_t rows, int64_t columns,
                  int by_columns)
{
    const int64_t count = by_columns ? columns : rows, length = by_columns ? rows : columns;
    const int64_t along = by_columns ? columns : 1, across = by_columns ? 1 : columns;
    const double bound = 3 * (double)((w->m > w->n ? w->m : w->n) + 8) * eps_of(w->dtype);

    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;

            for (int64_t l = 0; l < length; l++) {
                sum += get(w->dtype, x, i * across + l * along) *
                       get(w->dtype, x, j * across + l * along);
            }
            CHECK(fabs(sum - (i == j)) <= bound, "%lld x %lld, vectors %lld and %lld: %g",
                  (long long)w->m, (long long)w->n, (long long)i, (long long)j, sum);
        }
    }
}

/* A V = U S for the wanted values; U and Vh orthonormal; signs and order. */
UNUSED static void
check_dense(const struct dense *w, int64_t matrix)
{
    const int64_t m = w->m, n = w->n, k = w->k, columns = w->full ? m : k, rows = w->full ? n : k;
    const size_t size = size_of(w->dtype);
    const char *U = (const char *)w->U + (size_t)(matrix * m * columns) * size;
    const char *Vh = (const char *)w->Vh + (size_t)(matrix * rows * n) * size;
    const char *S = (const char *)w->S + (size_t)(matrix * k) * size;
    double norm = 0;

    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            norm = hypot(norm, a_entry(w, matrix, i, j));
        }
    }
    check_orthonormal(w, U, m, columns, 1);
    check_orthonormal(w, Vh, rows, n, 0);
    for (int64_t j = 0; j < k; j++) {
        double largest = 0, rest = 0;

        CHECK(get(w->dtype, S, j) >= 0 &&
                  (j == 0 || get(w->dtype, S, j) <= get(w->dtype, S, j - 1)),
              "value %lld", (long long)j);
        for (int64_t i = 0; i < m; i++) {
            const double u = get(w->dtype, U, i * columns + j);
            double sum = -u * get(w->dtype, S, j);

            for (int64_t l = 0; l < n; l++) {
                sum += a_entry(w, matrix, i, l) * get(w->dtype, Vh, j * n + l);
            }
            rest = hypot(rest, sum);
            largest = fabs(u) > fabs(largest) ? u : largest;
        }
        CHECK(rest <= 2 * (double)((m > n ? m : n) + 8) * eps_of(w->dtype) * norm,
              "%lld x %lld, value %lld: residual %g of %g", (long long)m, (long long)n,
              (long long)j, rest, norm);
        CHECK(largest > 0, "%lld x %lld: the sign of column %lld", (long long)m, (long long)n,
              (long long)j);
    }
}

#endif
