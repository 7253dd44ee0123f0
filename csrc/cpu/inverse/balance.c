/*
 * The scaling of a matrix on the CPU (math/balance.h), and that of its inverse.
 *
 * Matrices are stored by columns.  Rows are looked at in strips, and a strip is a task: so no sum
 * and no maximum of a row depends on the threads.  Nearly always the powers of two are in the range
 * of real, and then one product scales an entry.
 */
#include <stdatomic.h>
#include <string.h>

#include "cpu/inverse/inverse_run.h"
#include "cpu/tuning.h"
#include "math/balance.h"

enum { LANES = 8 }; /* maxima that are sought side by side */

struct scaling {
    struct dense_run *run;
    int64_t n;
    int exponent;
    scalar *m;
    const struct inverse_workspace *workspace;
    double done;   /* what tsvdi_check() is told */
    int low, high; /* the least and the largest power of the rows, or of the columns */
    atomic_int infinite;
};

/* Calls a task for each strip. */
static tsvd_status
for_strips(struct scaling *s, tsvd_task task)
{
    return tsvdi_host_for_each(inverse_threads(s->run, 4 * s->n * s->n),
                               (s->n + CPU_BALANCE_STRIP - 1) / CPU_BALANCE_STRIP, task, s);
}

static int64_t
end_of(const struct scaling *s, int64_t strip)
{
    return (strip + 1) * CPU_BALANCE_STRIP < s->n ? (strip + 1) * CPU_BALANCE_STRIP : s->n;
}

/* Whether 2^low .. 2^high are normal numbers. */
static int
are_numbers(int low, int high)
{
    return low > -R_BIAS && high <= R_BIAS;
}

static void
find_range(struct scaling *s, const int *powers)
{
    s->low = s->high = powers[0];
    for (int64_t i = 1; i < s->n; i++) {
        s->low = powers[i] < s->low ? powers[i] : s->low;
        s->high = powers[i] > s->high ? powers[i] : s->high;
    }
}

double
tsvdi_cpu_inverse_norm(int64_t n, const double *sums)
{
    double largest = 0;

    for (int64_t i = 0; i < n; i++) {
        largest = sums[i] <= largest || largest != largest ? largest : sums[i];
    }
    return largest;
}

/* ---- S from M ---- */

/* The sums of magnitudes of a strip of rows of 2^-exponent M, and the exponents of the rows. */
static tsvd_status
survey(void *arg, int worker, int64_t strip)
{
    struct scaling *s = arg;
    const int64_t begin = strip * CPU_BALANCE_STRIP, count = end_of(s, strip) - begin;
    const int plain = are_numbers(-s->exponent, -s->exponent);
    const real factor = plain ? r_pow2(-s->exponent) : 0;
    double *sums = s->workspace->sums + begin;
    real most[CPU_BALANCE_STRIP] = {0};

    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t j = 0; j < s->n; j++) {
        const scalar *column = s->m + j * s->n + begin;

        for (int64_t i = 0; i < count; i++) {
            const real x = n_size(column[i]);

            most[i] = x > most[i] ? x : most[i];
            sums[i] += (double)n_abs(n_scale(factor, column[i]));
        }
        for (int64_t i = 0; i < count && !plain; i++) {
            sums[i] += (double)n_abs(balance_scale(column[i], -s->exponent));
        }
    }
    for (int64_t i = 0; i < count; i++) {
        s->workspace->row[begin + i] = balance_power(balance_exponent(most[i]));
    }
    return inverse_check(s->run, worker, s->n, s->done);
}

/* The exponent of a column of diag(2^-row) M. */
static int
column_power(const struct scaling *s, const scalar *column)
{
    const int *row = s->workspace->row;
    const int plain = are_numbers(-s->high, -s->low);
    real most[LANES] = {0}, largest = 0;
    int power = BALANCE_NOTHING;
    int64_t i = 0;

    for (; i + LANES <= s->n && plain; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            const real x = n_size(column[i + lane]) * r_pow2(-row[i + lane]);

            most[lane] = x > most[lane] ? x : most[lane];
        }
    }
    for (; i < s->n && plain; i++) {
        most[0] = r_max(most[0], n_size(column[i]) * r_pow2(-row[i]));
    }
    for (int lane = 0; lane < LANES; lane++) {
        largest = r_max(largest, most[lane]);
    }
    if (largest > r_pow2(-R_BIAS / 2)) { /* then no digits were lost */
        return balance_power(balance_exponent(largest));
    }
    for (i = 0; i < s->n; i++) {
        const int exponent = balance_exponent(n_size(column[i])) - row[i];

        power = exponent > power ? exponent : power;
    }
    return balance_power(power);
}

/* The exponents of a strip of columns, and S in place of M. */
static tsvd_status
scale_columns(void *arg, int worker, int64_t strip)
{
    struct scaling *s = arg;
    const int *row = s->workspace->row;

    for (int64_t j = strip * CPU_BALANCE_STRIP; j < end_of(s, strip); j++) {
        scalar *column = s->m + j * s->n;
        const int power = column_power(s, column);

        s->workspace->column[j] = power;
        if (are_numbers(-s->high - power, -s->low - power)) {
            for (int64_t i = 0; i < s->n; i++) {
                column[i] = n_scale(r_pow2(-row[i] - power), column[i]);
            }
        } else {
            for (int64_t i = 0; i < s->n; i++) {
                column[i] = balance_scale(column[i], -row[i] - power);
            }
        }
    }
    return inverse_check(s->run, worker, s->n, s->done);
}

tsvd_status
tsvdi_cpu_inverse_balance(struct dense_run *run, int64_t n, int exponent, scalar *m,
                          const struct inverse_workspace *workspace, double done, double *norm)
{
    struct scaling s = {
        .run = run, .n = n, .exponent = exponent, .m = m, .workspace = workspace, .done = done};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(for_strips(&s, survey));
    *norm = tsvdi_cpu_inverse_norm(n, workspace->sums);
    find_range(&s, workspace->row);
    TSVD_TRY(for_strips(&s, scale_columns));
out:
    return ret;
}

/* ---- the inverse of M from that of S ---- */

/* Infinite, or NaN. */
static int
is_infinite(scalar x)
{
#if TSVD_COMPLEX
    return n_size_bits(x) >= R_INFINITY_BITS;
#else
    return !(r_abs(x) <= R_LARGEST);
#endif
}

static tsvd_status
scale_rows(void *arg, int worker, int64_t strip)
{
    struct scaling *s = arg;
    const int64_t begin = strip * CPU_BALANCE_STRIP, count = end_of(s, strip) - begin;
    const int *column = s->workspace->column + begin;
    double *sums = s->workspace->sums + begin;
    int infinite = 0;

    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t j = 0; j < s->n; j++) {
        const int offset = -s->workspace->row[j], shifted = offset + s->exponent;
        scalar *y = s->m + j * s->n + begin;

        if (are_numbers(offset - s->high, offset - s->low) &&
            are_numbers(shifted - s->high, shifted - s->low)) {
            for (int64_t i = 0; i < count; i++) {
                const scalar x = y[i];

                infinite |= is_infinite(x);
                sums[i] += (double)n_abs(n_scale(r_pow2(shifted - column[i]), x));
                y[i] = n_scale(r_pow2(offset - column[i]), x);
            }
        } else {
            for (int64_t i = 0; i < count; i++) {
                const scalar x = y[i];

                infinite |= is_infinite(x);
                sums[i] += (double)n_abs(balance_scale(x, shifted - column[i]));
                y[i] = balance_scale(x, offset - column[i]);
            }
        }
    }
    if (infinite) {
        atomic_store(&s->infinite, 1);
    }
    return inverse_check(s->run, worker, s->n, s->done);
}

tsvd_status
tsvdi_cpu_inverse_unbalance(struct dense_run *run, int64_t n, int exponent, scalar *y,
                            const struct inverse_workspace *workspace, double done, double *norm,
                            int *finite)
{
    struct scaling s = {
        .run = run, .n = n, .exponent = exponent, .m = y, .workspace = workspace, .done = done};
    tsvd_status ret = TSVD_OK;

    find_range(&s, workspace->column);
    TSVD_TRY(for_strips(&s, scale_rows));
    *norm = tsvdi_cpu_inverse_norm(n, workspace->sums);
    *finite = !atomic_load(&s.infinite);
out:
    return ret;
}
