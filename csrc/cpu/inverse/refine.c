/*
 * The step of Newton's iteration on the CPU, Y := Y + Y (I - S Y).  Mirrors cuda/inverse/refine.cu.
 *
 * I - S Y is what is left when nearly equal numbers are subtracted: it needs more digits than S and
 * Y have.  float32 makes it in float64.  In float64, S = S1 + S2 and Y = Y1 + Y2, where S1 and Y1
 * have the leading bits, so few that I - S1 Y1 is exact (Ozaki, Ogita, Oishi & Rump, Numerical
 * Algorithms 59 (2012)).  S1 Y2 and S2 Y are smaller by some 2^20, and so are their rounding
 * errors.
 */
#include <string.h>

#include "cpu/inverse/inverse_run.h"
#include "cpu/tuning.h"
#include "math/newton.h"

#define DOUBLE_DIGITS 52

/* Multiplications between two calls of tsvdi_check(): some 0.1 s of one thread. */
#define PIECE (INT64_C(1) << 31)

enum {
    ARRAYS = TSVD_SINGLE ? 3 : 4, /* of scalar_double */
    PRODUCTS = TSVD_SINGLE ? 2 : 4
};

struct refinement {
    struct dense_run *run;
    int64_t n;
    scalar *y;
    const int *row, *column;        /* [n] as balance.c found them */
    int exponent;                   /* of the largest entry of M */
    struct newton_sums *sums;       /* [n] of each column */
    scalar_double *s, *rest, *part; /* [n][n] S, then S2; I - S Y; Y1, then Y2 (float32: Y) */
    scalar_double *high;            /* [n][n] S1, in float64 alone */
    scalar *small, *old;            /* [n][n] I - S Y and Y, in the memory of `s` or `rest`, and
                                      of `part` */
    struct inverse_share products;  /* of one product */
};

uint64_t
tsvdi_cpu_inverse_refine_bytes(int64_t n)
{
    return bytes_add(bytes_of(n, bytes_of(n, ARRAYS * sizeof(scalar_double))),
                     bytes_of(n, sizeof(struct newton_sums)));
}

/* ---- products ---- */

/* How many of `whole` rows or columns are made at once: a multiple of CPU_PRODUCT_SHARE, no more
   than `most` unless that is below CPU_PRODUCT_SHARE, or all of them. */
static int64_t
cut(int64_t whole, int64_t most)
{
    const int64_t part = most / CPU_PRODUCT_SHARE * CPU_PRODUCT_SHARE;

    return part < CPU_PRODUCT_SHARE ? CPU_PRODUCT_SHARE : part < whole ? part : whole;
}

/* C += factor A B, all [n][n], in pieces. */
static tsvd_status
multiply(struct refinement *r, struct blas_product p)
{
    const int64_t n = r->n,
                  size = p.in_double ? (int64_t)sizeof(scalar_double) : (int64_t)sizeof(scalar);
    const int64_t columns = cut(n, PIECE / (n * n)), rows = cut(n, PIECE / (n * columns));
    const struct blas_product whole = p;
    tsvd_status ret = TSVD_OK;

    p.k = p.lda = p.ldb = p.ldc = n;
    for (int64_t j = 0; j < n; j += columns) {
        for (int64_t i = 0; i < n; i += rows) {
            p.m = n - i < rows ? n - i : rows;
            p.n = n - j < columns ? n - j : columns;
            p.a = (const char *)whole.a + i * size;
            p.b = (const char *)whole.b + j * n * size;
            p.c = (char *)whole.c + (j * n + i) * size;
            TSVD_TRY(inverse_check(r->run, 0, n,
                                   r->products.from + r->products.part * (double)j / (double)n));
            tsvdi_cpu_dense_product(r->run, &p);
        }
    }
    r->products.from += r->products.part;
out:
    return ret;
}

/* rest -= A B */
static tsvd_status
subtract(struct refinement *r, const scalar_double *a, const scalar_double *b)
{
    return multiply(
        r, (struct blas_product){.in_double = 1, .factor = -1, .a = a, .b = b, .c = r->rest});
}

/* ---- column by column ---- */

/* Calls a task for each strip of columns. */
static tsvd_status
for_strips(struct refinement *r, tsvd_task task)
{
    return tsvdi_host_for_each(inverse_threads(r->run, 4 * r->n * r->n),
                               (r->n + CPU_REFINE_STRIP - 1) / CPU_REFINE_STRIP, task, r);
}

static int64_t
end_of(const struct refinement *r, int64_t strip)
{
    return (strip + 1) * CPU_REFINE_STRIP < r->n ? (strip + 1) * CPU_REFINE_STRIP : r->n;
}

static tsvd_status
check(struct refinement *r, int worker)
{
    return inverse_check(r->run, worker, r->n, r->products.from);
}

#if !TSVD_SINGLE
/* Bits of S1 and Y1, so few that the sums of I - S1 Y1 have 53 at most. */
static int
leading_bits(int64_t n)
{
    int order;

    (void)frexp((double)(N_PARTS * n), &order); /* the terms of the sums */
    return (DOUBLE_DIGITS - 1 - order) / 2;
}

/* high = x rounded to a multiple of 2^grid. */
static void
lead(int64_t count, int grid, const double *x, double *high)
{
    const double shift = 1.5 * ldexp(1, DOUBLE_DIGITS + grid);

    for (int64_t i = 0; i < count; i++) {
        high[i] = x[i] + shift - shift;
    }
}

/* low = x - high. */
static void
take_away(int64_t count, const double *x, const double *high, double *low)
{
    for (int64_t i = 0; i < count; i++) {
        low[i] = x[i] - high[i];
    }
}
#endif

/* rest = I.  In float64: high = S1, part = Y1, and S2 in place of S.  In float32: part = Y. */
static tsvd_status
prepare(void *arg, int worker, int64_t strip)
{
    struct refinement *r = arg;
    const int64_t n = r->n;

    for (int64_t j = strip * CPU_REFINE_STRIP; j < end_of(r, strip); j++) {
        scalar_double *rest = r->rest + j * n, *part = r->part + j * n;
        const scalar *y = r->y + j * n;

        memset(rest, 0, (size_t)n * sizeof *rest);
        rest[j] = 1;
#if TSVD_SINGLE
        for (int64_t i = 0; i < n; i++) {
            part[i] = y[i];
        }
#else
        const int64_t reals = N_PARTS * n;
        double *s = (double *)(r->s + j * n), *high = (double *)(r->high + j * n), largest = 0;
        const double *parts = (const double *)y;
        int exponent;

        for (int64_t i = 0; i < reals; i++) {
            largest = fmax(largest, fabs(parts[i]));
        }
        (void)frexp(largest, &exponent);
        lead(reals, exponent - leading_bits(n), parts, (double *)part);
        lead(reals, 1 - leading_bits(n), s, high);
        take_away(reals, s, high, s);
#endif
    }
    return check(r, worker);
}

#if !TSVD_SINGLE
/* Y2 in place of Y1. */
static tsvd_status
take_rest(void *arg, int worker, int64_t strip)
{
    struct refinement *r = arg;

    for (int64_t j = strip * CPU_REFINE_STRIP; j < end_of(r, strip); j++) {
        double *part = (double *)(r->part + j * r->n);

        take_away(N_PARTS * r->n, (const double *)(r->y + j * r->n), part, part);
    }
    return check(r, worker);
}
#endif

/* small = I - S Y, rounded to the digits of Y; old = Y; and the sums that newton_pays() takes. */
static tsvd_status
finish(void *arg, int worker, int64_t strip)
{
    struct refinement *r = arg;
    const int64_t n = r->n;

    for (int64_t j = strip * CPU_REFINE_STRIP; j < end_of(r, strip); j++) {
        const double *rest = (const double *)(r->rest + j * n);
        const scalar *y = r->y + j * n;
        const real *parts = (const real *)y;
        real *small = (real *)(r->small + j * n);
        struct newton_sums sums = {0, 0, 0};

        for (int64_t i = 0; i < N_PARTS * n; i++) {
            const int64_t row = i / N_PARTS;
            const real x = REAL(rest[i]);

            small[i] = x;
            newton_add(&sums, (double)x, (double)parts[i], r->row[row], r->row[j], r->column[row],
                       r->exponent);
        }
        r->sums[j] = sums;
        memcpy(r->old + j * n, y, (size_t)n * sizeof *r->old);
    }
    return check(r, worker);
}

tsvd_status
tsvdi_cpu_inverse_refine(struct dense_run *run, int64_t n,
                         const struct inverse_workspace *workspace, scalar *y, int exponent,
                         double norm, struct inverse_share share)
{
    const int64_t count = n * n;
    struct refinement r = {.run = run,
                           .n = n,
                           .y = y,
                           .row = workspace->row,
                           .column = workspace->column,
                           .exponent = exponent};
    struct newton_sums all = {0, 0, 0};
    tsvd_status ret = TSVD_OK;

    r.s = workspace->s;
    r.rest = r.s + count;
    r.part = r.rest + count;
    r.high = r.part + count;
    r.sums = (struct newton_sums *)(void *)(r.s + ARRAYS * count);
    r.small = (scalar *)(void *)(TSVD_SINGLE ? r.s : r.rest);
    r.old = (scalar *)(void *)r.part;
    r.products.from = share.from;
    r.products.part = share.part / (double)PRODUCTS;
    TSVD_TRY(for_strips(&r, prepare));
#if TSVD_SINGLE
    TSVD_TRY(subtract(&r, r.s, r.part));
#else
    TSVD_TRY(subtract(&r, r.high, r.part));
    TSVD_TRY(for_strips(&r, take_rest));
    TSVD_TRY(subtract(&r, r.high, r.part));
    TSVD_TRY(subtract(&r, r.s, y));
#endif
    TSVD_TRY(for_strips(&r, finish));
    for (int64_t j = 0; j < n; j++) {
        all.rest += r.sums[j].rest;
        all.own_rest += r.sums[j].own_rest;
        all.inverse += r.sums[j].inverse;
    }
    if (newton_pays(all, norm, n)) {
        TSVD_TRY(
            multiply(&r, (struct blas_product){.factor = 1, .a = r.old, .b = r.small, .c = y}));
    }
out:
    return ret;
}
