/*
 * CPU back end: singular values by bisection.
 *
 * Intervals are halved between the bits of their ends, which for numbers >= 0
 * are ordered as the numbers are: an interval over many powers of two is halved
 * in exponent first.  Every value follows its own path from the root
 * [0, top), so it does not depend on how the values are shared out.
 */
#include "cpu_kernels.h"

/* Values that one task finds together, sharing the intervals near the root. */
enum { VALUES_PER_TASK = 256, VALUES_PER_TASK_MIN = 32 };

/* Half the width, in ulps, of the bracket that is tried first around a hint. */
enum { HINT_ULPS = 32 };

/* Work below this many entries times values is not worth a second thread. */
enum { SERIAL_STEPS = 1 << 15 };

/* Values first .. last - 1, counted from the largest, lie in [low, high), given as bits. */
struct interval {
    real_int low, high;
    int64_t first, last;
};

struct values_job {
    struct tsvd_context *ctx;
    const struct sturm *matrix;
    const real *hint;
    real eps;
    real *s;
    int64_t per_task, tasks;
    double done;     /* before the values */
    int64_t *counts; /* [workers] Sturm counts made */
};

struct worker_arrays {
    struct interval interval[VALUES_PER_TASK];
    real sigma[2 * VALUES_PER_TASK];
    int64_t above[2 * VALUES_PER_TASK];
};

/* Starts one interval for each value, around its hint where the counts confirm that. */
static int64_t
start_from_hints(const struct values_job *job, int64_t first, int64_t last, struct worker_arrays *a)
{
    const struct sturm *m = job->matrix;
    int64_t values = last - first;

    for (int64_t i = 0; i < values; i++) {
        real_int bits = r_bits(job->hint[first + i]);
        real_int low = bits - HINT_ULPS, high = bits + HINT_ULPS;

        low = low < 1 ? 1 : low > m->top - 2 ? m->top - 2 : low;
        high = high <= low ? low + 1 : high >= m->top ? m->top - 1 : high;
        a->interval[i] = (struct interval){low, high, first + i, first + i + 1};
        a->sigma[2 * i] = r_from_bits(low);
        a->sigma[2 * i + 1] = r_from_bits(high);
    }
    tsvdi_kernels()->count(m, 2 * values, a->sigma, a->above);
    for (int64_t i = 0; i < values; i++) {
        if (a->above[2 * i] <= first + i) { /* below the bracket */
            a->interval[i].high = a->interval[i].low;
            a->interval[i].low = 0;
        } else if (a->above[2 * i + 1] > first + i) { /* above it */
            a->interval[i].low = a->interval[i].high;
            a->interval[i].high = m->top;
        }
    }
    return values;
}

static int
is_narrow(struct interval v, real eps)
{
    return v.high - v.low <= 1 || r_from_bits(v.high) - r_from_bits(v.low) <= eps;
}

/* The value that stands for a narrow interval. */
static real
settle(struct interval v)
{
    return r_from_bits(v.high == R_INFINITY_BITS ? v.high : v.low);
}

static tsvd_status
find_values(void *arg, int worker, int64_t index)
{
    const struct values_job *job = arg;
    const int64_t n = job->matrix->n, first = index * job->per_task;
    const int64_t last = first + job->per_task < n ? first + job->per_task : n;
    struct worker_arrays a;
    int64_t open = 1;

    if (job->hint) {
        open = start_from_hints(job, first, last, &a);
        job->counts[worker] += 2 * open;
    } else {
        a.interval[0] = (struct interval){0, job->matrix->top, first, last};
    }
    while (open > 0) {
        int64_t kept = 0, halved = 0;

        for (int64_t i = 0; i < open; i++) {
            struct interval v = a.interval[i];

            if (is_narrow(v, job->eps)) {
                for (int64_t k = v.first; k < v.last; k++) {
                    job->s[k] = settle(v);
                }
                continue;
            }
            a.interval[kept] = v;
            a.sigma[kept++] = r_from_bits(v.low + (v.high - v.low) / 2);
        }
        open = kept;
        if (open == 0) {
            break;
        }
        tsvdi_kernels()->count(job->matrix, open, a.sigma, a.above);
        job->counts[worker] += open;
        /* An interval with values in both halves becomes two; there are never more
           intervals than values, so the new ones fit behind the old. */
        for (int64_t i = 0; i < open; i++) {
            struct interval v = a.interval[i], upper = v;
            int64_t cut = a.above[i] < v.first  ? v.first
                          : a.above[i] > v.last ? v.last
                                                : a.above[i];

            upper.low = v.high = r_bits(a.sigma[i]);
            upper.last = v.first = cut;
            if (upper.first == upper.last) {
                a.interval[i] = v;
            } else {
                a.interval[i] = upper;
                if (v.first < v.last) {
                    a.interval[open + halved++] = v;
                }
            }
        }
        open += halved;
    }
    if (worker > 0) {
        return TSVD_OK;
    }
    return tsvdi_check(job->ctx, job->done + (1 - job->done) * (double)index / (double)job->tasks);
}

tsvd_status
tsvdi_cpu_values(struct tsvd_context *ctx, const struct sturm *matrix, const real *hint, real eps,
                 real *s, int64_t *counts)
{
    const struct tsvd_backend *backend = ctx->backend;
    const int64_t n = matrix->n;
    const int workers = matrix->entries * n < SERIAL_STEPS ? 1 : ctx->threads;
    int64_t per_task = n / (4 * workers) + 1, *worker_counts = NULL;
    struct values_job job = {ctx, matrix, hint, eps, s, 0, 0, ctx->done, NULL};
    tsvd_status ret = TSVD_OK;

    per_task = (per_task + VALUES_PER_TASK_MIN - 1) / VALUES_PER_TASK_MIN * VALUES_PER_TASK_MIN;
    job.per_task = per_task < VALUES_PER_TASK ? per_task : VALUES_PER_TASK;
    TSVD_TRY(backend->alloc(ctx, (size_t)workers * sizeof *worker_counts, (void **)&worker_counts));
    memset(worker_counts, 0, (size_t)workers * sizeof *worker_counts);
    job.counts = worker_counts;
    job.tasks = (n + job.per_task - 1) / job.per_task;
    TSVD_TRY(backend->for_each(workers, job.tasks, find_values, &job));
    /* Counts are monotone but for rounding: neighbours may have crossed by an ulp. */
    for (int64_t i = 1; i < n; i++) {
        s[i] = r_min(s[i], s[i - 1]);
    }
    for (int i = 0; i < workers; i++) {
        *counts += worker_counts[i];
    }
out:
    backend->free(worker_counts);
    return ret;
}
