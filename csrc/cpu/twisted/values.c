/*
 * Twisted factorisations on the CPU: the search for values.  It starts from one bracket of all
 * values, in doubles for either precision, and goes as far as the corrections need.
 */
#include <string.h>

#include "cpu/twisted/twisted_run.h"

/* A bracket of values. */
struct interval {
    double low, high;
    int64_t above_low, above_high; /* how many values are above the ends */
    double low_minor, high_minor; /* the minor of order 2n there, times powers of two; 0: unknown */
    int64_t low_twos, high_twos;
    int side;     /* the end that was moved last: -1 low, 1 high */
    int steps;    /* of the secant */
    double width; /* of the first bracket with one value; 0: there are more */
};

/* The brackets of a task, and the counts at a shift in each. */
struct search {
    struct interval open[CPU_TWISTED_TASK_VALUES];
    double shift[CPU_TWISTED_TASK_VALUES], minor[CPU_TWISTED_TASK_VALUES];
    int64_t above[CPU_TWISTED_TASK_VALUES], twos[CPU_TWISTED_TASK_VALUES];
};

/* The widths of a bracket that end a search: relative to the value, and to the bracket in which the
   value was first alone.  A secant in such a bracket finds the value to rounding. */
#define NARROW_BESIDE_VALUE 0x1p-36
#define NARROW_BESIDE_BRACKET 0x1p-16

/* More steps than any secant takes: what is left is bisected. */
enum { SECANT_STEPS = 40 };

static int64_t
bits_of(double x)
{
    int64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Halfway in exponent and mantissa alike. */
static double
middle_of(double low, double high)
{
    const int64_t at = bits_of(low) + (bits_of(high) - bits_of(low)) / 2;
    double x;

    memcpy(&x, &at, sizeof x);
    return x;
}

/* Where the line through both ends crosses zero. */
static double
secant_of(const struct interval *v)
{
    const int64_t twos = v->low_twos - v->high_twos;
    const int power = twos < -500 ? -500 : twos > 500 ? 500 : (int)twos;

    return v->high - (v->high - v->low) / (1 - ldexp(v->low_minor / v->high_minor, power));
}

/* The next shift of an interval; 0 if it is narrow enough, and *value is what it holds. */
static double
next_shift(struct interval *v, double *value)
{
    const double middle = middle_of(v->low, v->high);
    double x, apart;

    *value = middle;
    if (bits_of(v->high) - bits_of(v->low) <= 2) {
        return 0;
    }
    if (v->above_low - v->above_high > 1) {
        return middle;
    }
    v->width = v->width > 0 ? v->width : v->high - v->low;
    if (v->high > 2 * v->low || v->low_minor == 0 || v->high_minor == 0 ||
        v->steps++ >= SECANT_STEPS) {
        return middle;
    }
    x = secant_of(v);
    if (!(x > v->low && x < v->high)) {
        return middle;
    }
    apart = fmin(NARROW_BESIDE_VALUE * x, NARROW_BESIDE_BRACKET * v->width);
    if (v->high - v->low <= 2 * apart) {
        *value = x;
        return 0;
    }
    /* not too close to an end: so both ends move in time, and the bracket becomes narrow */
    return fmin(fmax(x, v->low + apart), v->high - apart);
}

/* The halves of an interval that is cut at x, with the minor there.  Where an end stays twice in a
   row, its minor is reduced, so that the secant moves this end too (Anderson & Bjorck, BIT 13
   (1973)). */
static void
cut_interval(const struct interval *v, double x, int64_t above, double minor, int64_t twos,
             struct interval *lower, struct interval *upper)
{
    const int64_t cut = above < v->above_high  ? v->above_high
                        : above > v->above_low ? v->above_low
                                               : above;
    double share;

    *lower = *upper = *v;
    lower->high = upper->low = x;
    lower->above_high = upper->above_low = cut;
    lower->high_minor = upper->low_minor = minor;
    lower->high_twos = upper->low_twos = twos;
    lower->side = 1;
    upper->side = -1;
    if (v->side == 1 && twos - v->high_twos > -500 && twos - v->high_twos < 500) {
        share = 1 - ldexp(minor / v->high_minor, (int)(twos - v->high_twos));
        lower->low_minor *= share > 0 ? share : 0.5;
    }
    if (v->side == -1 && twos - v->low_twos > -500 && twos - v->low_twos < 500) {
        share = 1 - ldexp(minor / v->low_minor, (int)(twos - v->low_twos));
        upper->high_minor *= share > 0 ? share : 0.5;
    }
}

/* Whether any of the wanted values is in a bracket. */
static int
is_wanted(const struct interval *v, int64_t count, const int64_t *want)
{
    int64_t begin = 0, end = count;

    while (begin < end) { /* the first that is not above the bracket */
        const int64_t middle = (begin + end) / 2;

        if (want[middle] < v->above_high) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < count && want[begin] < v->above_low;
}

int64_t
tsvdi_cpu_twisted_search_workspace(void)
{
    return (int64_t)(sizeof(struct search) / sizeof(double));
}

/* An interval is halved in exponent and mantissa alike until it holds one value; then the secant of
   the minor of order 2n takes over, within the interval.  What is done with a value depends on the
   interval alone, and so not on what else is wanted. */
void
tsvdi_cpu_twisted_search(const struct cpu_twisted *run, int worker, int64_t count,
                         const int64_t *want, double *found, double *width)
{
    struct search *search = (struct search *)(run->work + worker * run->workspace);
    struct interval *open = search->open;
    double *shift = search->shift, *minor = search->minor;
    int64_t *above = search->above, *twos = search->twos, intervals = 1;

    open[0] = (struct interval){
        .low = run->least, .high = run->top, .above_low = run->job->n, .above_high = 0};
    while (intervals > 0) {
        int64_t kept = 0;

        for (int64_t i = 0; i < intervals; i++) {
            struct interval v = open[i];
            double value, x = next_shift(&v, &value);

            if (x > 0) {
                open[kept] = v;
                shift[kept++] = x;
            }
            for (int64_t j = 0; x == 0 && j < count; j++) {
                if (want[j] >= v.above_high && want[j] < v.above_low) {
                    found[j] = value;
                    if (width != NULL) {
                        width[j] = v.width;
                    }
                }
            }
        }
        tsvdi_kernels()->twisted_count(&run->matrix, kept, shift, above, minor, twos);
        intervals = kept;
        for (int64_t i = 0; i < kept; i++) {
            struct interval lower, upper;
            int in_lower, in_upper;

            cut_interval(&open[i], shift[i], above[i], minor[i], twos[i], &lower, &upper);
            in_lower = is_wanted(&lower, count, want);
            in_upper = is_wanted(&upper, count, want);
            open[i] = in_upper ? upper : lower;
            if (in_lower && in_upper) {
                open[intervals++] = lower;
            }
        }
    }
}

static tsvd_status
find_values(void *arg, int worker, int64_t index)
{
    struct cpu_twisted *run = arg;
    const int64_t begin = run->from + index * CPU_TWISTED_TASK_VALUES;
    const int64_t count =
        run->to - begin < CPU_TWISTED_TASK_VALUES ? run->to - begin : CPU_TWISTED_TASK_VALUES;
    int64_t want[CPU_TWISTED_TASK_VALUES];
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_twisted_check(run, worker, index));
    for (int64_t i = 0; i < count; i++) {
        want[i] = begin + i;
    }
    tsvdi_cpu_twisted_search(run, worker, count, want, run->shift + (begin - run->from), NULL);
out:
    return ret;
}

/* The distance of a value to the nearest other eigenvalue of T.  next, last: the values above and
   below it; 0: there is none. */
static double
gap_of(double next, double x, double last)
{
    /* -x, the mirror image of the last value, is an eigenvalue too */
    const double below = last > 0 ? x - last : 2 * x;

    return next > 0 ? fmin(below, next - x) : below;
}

/* Whether a value is as good as 0: the last one, so small that shifts do not reach it.  Counts have
   found at most one value there. */
static int
is_null(const struct cpu_twisted *run, int64_t index, double x)
{
    return index == run->job->n - 1 && x <= 2 * run->least;
}

int
tsvdi_cpu_twisted_stands_apart(const struct cpu_twisted *run, int64_t index, double x, double gap)
{
    return is_null(run, index, x) ? gap >= TWISTED_NULL_GAP
                                  : gap >= TWISTED_RELGAP * x && x > 2 * run->least;
}

tsvd_status
tsvdi_cpu_twisted_values(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cpu_twisted *run = job->state;
    const int64_t count = run->to - run->from;
    tsvd_status ret = TSVD_OK;

    (void)ctx;
    TSVD_TRY(tsvdi_cpu_twisted_for_each(
        run, 0, 0.5, (count + CPU_TWISTED_TASK_VALUES - 1) / CPU_TWISTED_TASK_VALUES, find_values));
    for (int64_t i = 0; i < job->k; i++) {
        const int64_t j = job->first + i - run->from;
        const double *x = run->shift + j;

        run->gap[i] = gap_of(j > 0 ? x[-1] : 0, x[0], j + 1 < count ? x[1] : 0);
        if (is_null(run, job->first + i, x[0])) {
            run->has_null = 1;
            run->gap[i] = j > 0 ? x[-1] - x[0] : 0; /* its mirror image does not matter */
        }
        job->refused += !tsvdi_cpu_twisted_stands_apart(run, job->first + i, x[0], run->gap[i]);
    }
out:
    return ret;
}
