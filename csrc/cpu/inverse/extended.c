/*
 * Inverses on the CPU beyond the range of numbers.
 *
 * Y = S^-1 may have entries above the largest number though those of 2^-(c + r) Y, or most of them,
 * are in range; and where they are not, infinity - infinity would be among the sums.  The exponents
 * of long double have 15 bits: it holds what n < 16384 doublings make.  With it the inverse is made
 * anew, by LU decomposition with partial pivoting, each row of Y U^-1 L^-1 P^T by substitution, and
 * rounded at the end.  This is for few matrices, all of them close to singular ones: it is simple,
 * and 70 to 180 times as slow as the inverse in blocks.
 */
#include <string.h>

#include "cpu/inverse/inverse_run.h"

#if TSVD_COMPLEX
typedef long double _Complex extended;
#define size_of(x) fmaxl(fabsl(__real__(x)), fabsl(__imag__(x)))
#else
typedef long double extended;
#define size_of(x) fabsl(x)
#endif

struct extended_inverse {
    struct dense_run *run;
    int64_t n, step;
    extended *a;    /* [n][n] L and U */
    extended *rows; /* [threads][n] */
    scalar *y;      /* [n][n] */
    int *pivot;     /* [n] the row that takes row i's place, in step i */
    double *sums;   /* [n] */
    double done;    /* what tsvdi_check() is told */
    int exponent;
    const int *row, *column;
};

uint64_t
tsvdi_cpu_inverse_extended_bytes(int64_t n, int threads)
{
    return bytes_of(n, bytes_of(n + threads, sizeof(extended)));
}

static void
swap(extended *x, extended *y)
{
    const extended kept = *x;

    *x = *y;
    *y = kept;
}

/* Applies a step to a column after it. */
static tsvd_status
update(void *arg, int worker, int64_t index)
{
    struct extended_inverse *w = arg;
    const int64_t n = w->n, k = w->step;
    const extended *pivot = w->a + k * n;
    extended *column = w->a + (k + 1 + index) * n;

    swap(column + k, column + w->pivot[k]);
    for (int64_t i = k + 1; i < n; i++) {
        column[i] -= pivot[i] * column[k];
    }
    return index % 64 == 0 ? inverse_check(w->run, worker, n, w->done) : TSVD_OK;
}

static tsvd_status
decompose(struct extended_inverse *w, int *outcome)
{
    const int64_t n = w->n;
    tsvd_status ret = TSVD_OK;

    *outcome = INVERSE_FOUND;
    for (int64_t k = 0; k < n; k++) {
        extended *column = w->a + k * n;
        int64_t p = k;

        for (int64_t i = k + 1; i < n; i++) {
            p = size_of(column[i]) > size_of(column[p]) ? i : p;
        }
        w->step = k;
        w->pivot[k] = (int)p;
        if (column[p] == 0) {
            *outcome = INVERSE_SINGULAR;
            goto out;
        }
        swap(column + k, column + p);
        for (int64_t j = 0; j < k; j++) {
            swap(w->a + j * n + k, w->a + j * n + p);
        }
        for (int64_t i = k + 1; i < n; i++) {
            column[i] /= column[k];
        }
        TSVD_TRY(tsvdi_host_for_each(inverse_threads(w->run, 16 * (n - k) * (n - k)), n - 1 - k,
                                     update, w));
    }
out:
    return ret;
}

/* Rounds 2^power x to *to; returns the magnitude of 2^shifted x. */
static double
round_to(extended x, int power, int shifted, scalar *to)
{
#if TSVD_COMPLEX
    const long double re = __real__ x, im = __imag__ x;

    *to = n_make((real)ldexpl(re, power), (real)ldexpl(im, power));
    return (double)ldexpl(hypotl(re, im), shifted);
#else
    *to = (scalar)ldexpl(x, power);
    return (double)fabsl(ldexpl(x, shifted));
#endif
}

/* A row of the inverse of M: z U = e_i, y L = z, and the columns in their order. */
static tsvd_status
invert_row(void *arg, int worker, int64_t i)
{
    struct extended_inverse *w = arg;
    const int64_t n = w->n;
    extended *y = w->rows + worker * n;
    double sum = 0;

    for (int64_t j = 0; j < n; j++) {
        const extended *u = w->a + j * n;
        extended x = i == j ? 1 : 0;

        for (int64_t k = i; k < j; k++) {
            x -= y[k] * u[k];
        }
        y[j] = j < i ? 0 : x / u[j];
    }
    for (int64_t j = n - 2; j >= 0; j--) {
        const extended *l = w->a + j * n;

        for (int64_t k = j + 1; k < n; k++) {
            y[j] -= y[k] * l[k];
        }
    }
    for (int64_t j = n - 1; j >= 0; j--) {
        swap(y + j, y + w->pivot[j]);
    }
    for (int64_t j = 0; j < n; j++) {
        const int power = -w->column[i] - w->row[j];

        sum += round_to(y[j], power, power + w->exponent, &w->y[j * n + i]);
    }
    w->sums[i] = sum;
    return inverse_check(w->run, worker, n, w->done);
}

tsvd_status
tsvdi_cpu_inverse_extended(struct dense_run *run, int64_t n, int exponent, scalar *s,
                           const struct inverse_workspace *workspace, void *memory, double done,
                           double *norm, int *outcome)
{
    struct extended_inverse w = {.run = run,
                                 .n = n,
                                 .a = memory,
                                 .y = s,
                                 .pivot = workspace->pivot,
                                 .sums = workspace->sums,
                                 .done = done,
                                 .exponent = exponent,
                                 .row = workspace->row,
                                 .column = workspace->column};
    tsvd_status ret = TSVD_OK;

    w.rows = w.a + n * n;
    for (int64_t i = 0; i < n * n; i++) {
        w.a[i] = s[i];
    }
    TSVD_TRY(decompose(&w, outcome));
    if (*outcome == INVERSE_FOUND) {
        TSVD_TRY(tsvdi_host_for_each(inverse_threads(run, n * n * n), n, invert_row, &w));
        *norm = tsvdi_cpu_inverse_norm(n, workspace->sums);
    }
out:
    return ret;
}
