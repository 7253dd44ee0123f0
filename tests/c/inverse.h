/*
 * Square matrices for the C interface, filled at random, and the check of their inverses.
 */
#ifndef TSVD_TESTS_INVERSE_H
#define TSVD_TESTS_INVERSE_H

#include <string.h>

#include "problem.h"

/* A batch of matrices and room for their inverses. */
struct inverses {
    tsvd_dtype dtype;
    int64_t n, matrices;
    int refine;
    void *a, *X;
    tsvd_array a_array, X_array;
};

UNUSED static struct inverses
make_inverses(tsvd_dtype dtype, int64_t n, int64_t matrices, int refine)
{
    const int64_t shape[] = {matrices, n, n};
    const size_t bytes = (size_t)(matrices * n * n) * size_of(dtype);
    struct inverses w;

    memset(&w, 0, sizeof(w));
    w.dtype = dtype;
    w.n = n;
    w.matrices = matrices;
    w.refine = refine;
    w.a = allocate(bytes);
    w.X = allocate(bytes);
    w.a_array = tsvd_array_of(w.a, TSVD_HOST, dtype, 3, shape);
    w.X_array = tsvd_array_of(w.X, TSVD_HOST, dtype, 3, shape);
    for (int64_t i = 0; i < matrices * n * n; i++) {
        set(dtype, w.a, i, random_scaled(-3, 0));
    }
    return w;
}

UNUSED static void
free_inverses(struct inverses *w)
{
    free(w->a);
    free(w->X);
}

/* tsvd_dense_inverse() of the matrices; options NULL: the defaults. */
UNUSED static tsvd_status
invert_on(tsvd_handle *handle, const struct inverses *w, const tsvd_options *options,
          tsvd_inverse_info *info, tsvd_error *error)
{
    return tsvd_dense_inverse(handle, &w->a_array, options, w->refine, &w->X_array, info, error);
}

/* The largest entry of A X - I or of X A - I, whichever is smaller, is a small multiple of
   n eps |A| |X|. */
UNUSED static void
check_inverse(const struct inverses *w, int64_t matrix)
{
    const int64_t n = w->n, first = matrix * n * n;
    long double off[2] = {0, 0}, norm_a = 0, norm_x = 0;
    double measure;

    for (int64_t i = first; i < first + n * n; i++) {
        norm_a += powl(get(w->dtype, w->a, i), 2);
        norm_x += powl(get(w->dtype, w->X, i), 2);
    }
    for (int64_t i = 0; i < n * n; i++) {
        const long double one = i % (n + 1) == 0 ? 1 : 0;
        long double sum[2] = {-one, -one};

        for (int64_t k = 0; k < n; k++) {
            const int64_t left = first + i / n * n + k, right = first + k * n + i % n;

            sum[0] += (long double)get(w->dtype, w->a, left) * get(w->dtype, w->X, right);
            sum[1] += (long double)get(w->dtype, w->X, left) * get(w->dtype, w->a, right);
        }
        off[0] = fmaxl(off[0], fabsl(sum[0]));
        off[1] = fmaxl(off[1], fabsl(sum[1]));
    }
    /* NaN in X makes its norm NaN, and the check fails */
    measure = (double)(fminl(off[0], off[1]) /
                       ((long double)n * eps_of(w->dtype) * sqrtl(norm_a * norm_x)));
    CHECK(measure <= (w->refine ? 2 : 10), "matrix %lld, n = %lld: %g", (long long)matrix,
          (long long)n, measure);
}

#endif
