/*
 * Problems for the C interface, filled at random, and the check of their results.
 */
#ifndef TSVD_TESTS_PROBLEM_H
#define TSVD_TESTS_PROBLEM_H

#include "check.h"
#include "defaults.h"
#include "tsvd/tsvd.h"

static const tsvd_dtype dtypes[] = {TSVD_FLOAT64, TSVD_FLOAT32};
enum { DTYPES = 2 };

static size_t
size_of(tsvd_dtype dtype)
{
    return dtype == TSVD_FLOAT64 ? sizeof(double) : sizeof(float);
}

static double
eps_of(tsvd_dtype dtype)
{
    return dtype == TSVD_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
}

static double
get(tsvd_dtype dtype, const void *array, int64_t i)
{
    return dtype == TSVD_FLOAT64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void
set(tsvd_dtype dtype, void *array, int64_t i, double x)
{
    if (dtype == TSVD_FLOAT64) {
        ((double *)array)[i] = x;
    } else {
        ((float *)array)[i] = (float)x;
    }
}

/* The handle that all tests of the CPU share. */
static tsvd_handle *
cpu(void)
{
    static tsvd_handle *handle;
    tsvd_error error;

    if (handle == NULL && tsvd_create(NULL, &handle, &error) != TSVD_OK) {
        printf("%s\n", error.text);
        exit(EXIT_FAILURE);
    }
    return handle;
}

/* One matrix or a batch with room for its results; contiguous and filled at random. */
struct work {
    tsvd_dtype dtype;
    int64_t n, matrices;
    int batch;        /* 0: one matrix, without a batch dimension */
    int vectors;      /* L and R are wanted */
    int64_t first, k; /* of the values */
    void *d, *e, *s, *L, *R;
};

UNUSED static struct work
make_work(tsvd_dtype dtype, int64_t n, int64_t matrices)
{
    struct work w = {dtype, n, matrices, 1, 1, 0, n, NULL, NULL, NULL, NULL, NULL};
    size_t size = size_of(dtype);
    int64_t off = n > 0 ? n - 1 : 0;

    w.d = allocate((size_t)(matrices * n) * size);
    w.e = allocate((size_t)(matrices * off) * size);
    w.s = allocate((size_t)(matrices * n) * size);
    w.L = allocate((size_t)(matrices * n * n) * size);
    w.R = allocate((size_t)(matrices * n * n) * size);
    for (int64_t i = 0; i < matrices * n; i++) {
        set(dtype, w.d, i, random_scaled(-2, 0));
    }
    for (int64_t i = 0; i < matrices * off; i++) {
        set(dtype, w.e, i, random_scaled(-2, 0));
    }
    return w;
}

/* The arrays of a call, as tsvd_svd() takes them. */
struct arrays {
    tsvd_array d, e, L, s, R;
};

/* An array of `rows` x `columns` (-1: none) for each matrix. */
static tsvd_array
array_of(const struct work *w, const void *data, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {w->matrices, rows, columns};

    return tsvd_array_of(data, TSVD_HOST, w->dtype, w->batch + (columns < 0 ? 1 : 2),
                         w->batch ? shape : shape + 1);
}

static struct arrays
arrays_of(const struct work *w)
{
    struct arrays a;

    a.d = array_of(w, w->d, w->n, -1);
    a.e = array_of(w, w->e, w->n > 0 ? w->n - 1 : 0, -1);
    a.L = array_of(w, w->L, w->n, w->k);
    a.s = array_of(w, w->s, w->k, -1);
    a.R = array_of(w, w->R, w->k, w->n);
    return a;
}

/* tsvd_svd() of the work, with its range; options NULL: the defaults. */
UNUSED static tsvd_status
solve_on(tsvd_handle *handle, const struct work *w, const tsvd_options *options, tsvd_info *info,
         tsvd_error *error)
{
    const struct arrays a = arrays_of(w);
    tsvd_options own = options != NULL ? *options : default_options();

    own.first = w->first;
    own.count = w->k;
    return tsvd_svd(handle, &a.d, &a.e, &own, w->vectors ? &a.L : NULL, &a.s,
                    w->vectors ? &a.R : NULL, info, error);
}

UNUSED static tsvd_status
solve(const struct work *w, const tsvd_options *options, tsvd_info *info, tsvd_error *error)
{
    return solve_on(cpu(), w, options, info, error);
}

UNUSED static void
free_work(struct work *w)
{
    free(w->d);
    free(w->e);
    free(w->s);
    free(w->L);
    free(w->R);
}

/* Entry (i, j) of a matrix. */
static double
entry_of(const struct work *w, int64_t matrix, int lower, int64_t i, int64_t j)
{
    const int64_t n = w->n;

    if (i == j) {
        return get(w->dtype, w->d, matrix * n + i);
    }
    return j == (lower ? i - 1 : i + 1) ? get(w->dtype, w->e, matrix * (n - 1) + (lower ? j : i))
                                        : 0;
}

/* `count` vectors of length n, one after the other: entry i of vector j is
   array[at + j * next + i * step].  They are read far more often than copied. */
static double *
vectors_of(tsvd_dtype dtype, const void *array, int64_t at, int64_t n, int64_t count, int64_t step,
           int64_t next)
{
    double *vectors = (double *)allocate((size_t)(n * count) * sizeof *vectors);

    for (int64_t j = 0; j < count; j++) {
        for (int64_t i = 0; i < n; i++) {
            vectors[j * n + i] = get(dtype, array, at + j * next + i * step);
        }
    }
    return vectors;
}

static double
dot_of(int64_t n, const double *x, const double *y)
{
    double sum = 0;

    for (int64_t l = 0; l < n; l++) {
        sum += x[l] * y[l];
    }
    return sum;
}

/* B R^T = L diag(s) within `tolerance`, columns of L and rows of R orthonormal, s sorted, signs by
   the rule; of all values or a part of them. */
UNUSED static void
check_result(const struct work *w, int64_t matrix, int lower, double tolerance)
{
    tsvd_dtype dtype = w->dtype;
    int64_t n = w->n, k = w->k, at = matrix * n * k;
    double orthogonal = 3 * (double)(n + 8) * eps_of(dtype);
    double *L = vectors_of(dtype, w->L, at, n, k, k, 1);
    double *R = vectors_of(dtype, w->R, at, n, k, 1, n);

    for (int64_t i = 0; i < k; i++) {
        const double *l = L + i * n, *r = R + i * n;
        double s = get(dtype, w->s, matrix * k + i), largest = 0;

        CHECK(s >= 0, "s[%lld]", (long long)i);
        CHECK(i == 0 || s <= get(dtype, w->s, matrix * k + i - 1), "s[%lld] is out of order",
              (long long)i);
        for (int64_t j = 0; j <= i; j++) {
            double columns = dot_of(n, l, L + j * n), rows = dot_of(n, r, R + j * n);

            CHECK(fabs(columns - (i == j)) <= orthogonal, "L[:, %lld] L[:, %lld] = %g",
                  (long long)i, (long long)j, columns);
            CHECK(fabs(rows - (i == j)) <= orthogonal, "R[%lld] R[%lld] = %g", (long long)i,
                  (long long)j, rows);
        }
        for (int64_t j = 0; j < n; j++) {
            double difference = -s * l[j];

            for (int64_t m = j > 0 ? j - 1 : 0; m < n && m <= j + 1; m++) {
                difference += entry_of(w, matrix, lower, j, m) * r[m];
            }
            CHECK(fabs(difference) <= tolerance, "matrix %lld, n = %lld: (B R^T - L S)[%lld, %lld]",
                  (long long)matrix, (long long)n, (long long)j, (long long)i);
            largest = fabs(l[j]) > fabs(largest) ? l[j] : largest;
        }
        CHECK(largest > 0, "the sign of column %lld of L", (long long)i);
    }
    free(L);
    free(R);
}

#endif
