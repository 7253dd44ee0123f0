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

#include "cpu/inverse/run.h"
#include "math/balance.h"

#define DOUBLE_DIGITS 52

/* C -= A B, all [n][n]. */
static void
subtract_product(const struct dense_run *run, int64_t n, const double *a, const double *b,
                 double *c)
{
    tsvdi_cpu_dense_product(run, &(struct blas_product){.m = n,
                                                        .n = n,
                                                        .k = n,
                                                        .wide = 1,
                                                        .factor = -1,
                                                        .a = a,
                                                        .b = b,
                                                        .c = c,
                                                        .lda = n,
                                                        .ldb = n,
                                                        .ldc = n});
}

#if !TSVD_SINGLE
/* high = x rounded to a multiple of 2^grid. */
static void
lead(int64_t count, int grid, const double *x, double *high)
{
    const double shift = 1.5 * ldexp(1, DOUBLE_DIGITS + grid);

    for (int64_t i = 0; i < count; i++) {
        high[i] = x[i] + shift - shift;
    }
}

/* The same of each column, to so many bits from its largest entry on. */
static void
lead_columns(int64_t n, int bits, const double *x, double *high)
{
    for (int64_t j = 0; j < n; j++) {
        double largest = 0;
        int exponent;

        for (int64_t i = 0; i < n; i++) {
            largest = fmax(largest, fabs(x[j * n + i]));
        }
        (void)frexp(largest, &exponent);
        lead(n, exponent - bits, x + j * n, high + j * n);
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

/* rest -= S Y. */
static void
subtract_all(const struct dense_run *run, int64_t n, double *s, const double *y, double *rest,
             double *part, double *high)
{
    int bits, order;

    (void)frexp((double)n, &order);
    bits = (DOUBLE_DIGITS - 1 - order) / 2; /* then all sums of S1 Y1 have no more than 53 */
    lead(n * n, 1 - bits, s, high);
    take_away(n * n, s, high, s);
    lead_columns(n, bits, y, part);
    subtract_product(run, n, high, part, rest);
    take_away(n * n, y, part, part);
    subtract_product(run, n, high, part, rest);
    subtract_product(run, n, s, y, rest);
}
#endif

/* Arrays of doubles that the step takes, S included. */
enum { ARRAYS = TSVD_SINGLE ? 3 : 4 };

uint64_t
tsvdi_cpu_inverse_refine_room(int64_t n)
{
    return bytes_of(n, bytes_of(n, ARRAYS * sizeof(double)));
}

void
tsvdi_cpu_inverse_refine(const struct dense_run *run, int64_t n, double *room, real *y)
{
    const int64_t count = n * n;
    double *s = room, *rest = s + count, *other = rest + count, sum = 0;
    const real *small = (const real *)(const void *)rest, *old = (const real *)(const void *)other;

    memset(rest, 0, (size_t)count * sizeof *rest);
    for (int64_t i = 0; i < n; i++) {
        rest[i * n + i] = 1;
    }
#if TSVD_SINGLE
    for (int64_t i = 0; i < count; i++) {
        other[i] = y[i];
    }
    subtract_product(run, n, s, other, rest);
    for (int64_t i = 0; i < count; i++) {
        ((real *)(void *)rest)[i] = REAL(rest[i]);
    }
#else
    subtract_all(run, n, s, y, rest, other, other + count);
#endif
    for (int64_t i = 0; i < count; i++) {
        sum += (double)small[i] * (double)small[i];
    }
    if (!(sum <= 0.25)) { /* also for NaN */
        return;
    }
    memcpy(other, y, (size_t)count * sizeof *y);
    tsvdi_cpu_dense_product(run, &(struct blas_product){.m = n,
                                                        .n = n,
                                                        .k = n,
                                                        .factor = 1,
                                                        .a = old,
                                                        .b = small,
                                                        .c = y,
                                                        .lda = n,
                                                        .ldb = n,
                                                        .ldc = n});
}
