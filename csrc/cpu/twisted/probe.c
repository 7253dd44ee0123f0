/*
 * Twisted factorisations on the CPU: probes of the results (math/probe.h).
 */
#include <stdalign.h>

#include "cpu/tuning.h"
#include "cpu/twisted/twisted_run.h"

/* A task's rows of V^T X for both sides, and of L (S X). */
static tsvd_status
sum_rows(void *arg, int worker, int64_t index)
{
    struct cpu_twisted *run = arg;
    const struct twisted_job *job = run->job;
    const int64_t n = job->n, k = job->k, begin = index * CPU_PROBE_TASK_ROWS;
    const int64_t count = n - begin < CPU_PROBE_TASK_ROWS ? n - begin : CPU_PROBE_TASK_ROWS;
    const struct cpu_kernels *kernels = tsvdi_kernels();
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_twisted_check(run, worker, index));
    kernels->probe(count, k, job->to.R + begin, 1, n, run->x, run->sums[1] + begin * PROBES);
    /* a few rows at a time: they are in the cache for the second product */
    for (int64_t i = begin; i < begin + count; i += CPU_PROBE_CACHED_ROWS) {
        const int64_t rows =
            begin + count - i < CPU_PROBE_CACHED_ROWS ? begin + count - i : CPU_PROBE_CACHED_ROWS;

        kernels->probe(rows, k, job->to.L + i * k, k, 1, run->x, run->sums[0] + i * PROBES);
        kernels->probe(rows, k, job->to.L + i * k, k, 1, run->scaled, run->image + i * PROBES);
    }
out:
    return ret;
}

/* How many rows of y - x are over the limit. */
static int64_t
count_over(int64_t rows, const double *y, const double *x, double limit)
{
    int64_t over = 0;

    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;

        for (int64_t j = i * PROBES; j < (i + 1) * PROBES; j++) {
            sum += (y[j] - x[j]) * (y[j] - x[j]);
        }
        over += !(sum <= limit);
    }
    return over;
}

/* Rows of V (V^T X) - X for both sides. */
static tsvd_status
check_rows(void *arg, int worker, int64_t index)
{
    struct cpu_twisted *run = arg;
    const struct twisted_job *job = run->job;
    const int64_t n = job->n, k = job->k, begin = index * CPU_PROBE_TASK_ROWS;
    const int64_t count = k - begin < CPU_PROBE_TASK_ROWS ? k - begin : CPU_PROBE_TASK_ROWS;
    const double *x = run->x + begin * PROBES;
    alignas(64) double y[CPU_PROBE_TASK_ROWS * PROBES];
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_twisted_check(run, worker, index));
    tsvdi_kernels()->probe(count, n, job->to.L + begin, 1, k, run->sums[0], y);
    atomic_fetch_add(&run->refused, count_over(count, y, x, probe_limit(n)));
    tsvdi_kernels()->probe(count, n, job->to.R + begin * n, n, 1, run->sums[1], y);
    atomic_fetch_add(&run->refused, count_over(count, y, x, probe_limit(n)));
out:
    return ret;
}

/* Whether B (R^T X) - L (S X) is within the bound of the residual. */
static int
is_right(const struct cpu_twisted *run)
{
    const int64_t n = run->job->n;
    const double *b = run->matrix.b, *right = run->sums[1];
    const int lower = run->job->lower;
    double sum = 0, norm = 0;

    for (int64_t i = 0; i < n; i++) {
        const int64_t beside = lower ? i - 1 : i + 1;
        const double e = beside < 0 || beside == n ? 0 : b[lower ? 2 * i - 1 : 2 * i + 1];

        norm += b[2 * i] * b[2 * i] + e * e;
        for (int j = 0; j < PROBES; j++) {
            double x = b[2 * i] * right[i * PROBES + j] - run->image[i * PROBES + j];

            x += e != 0 ? e * right[beside * PROBES + j] : 0;
            sum += x * x;
        }
    }
    return sum <= probe_residual_limit(n) * norm;
}

tsvd_status
tsvdi_cpu_twisted_probe(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cpu_twisted *run = job->state;
    const int64_t n = job->n, k = job->k, before = job->first - ctx->problem->whole_first;
    tsvd_status ret = TSVD_OK;

    for (int64_t j = 0; j < k; j++) {
        for (int column = 0; column < PROBES; column++) {
            const double x = probe_entry(before + j, column);

            run->x[j * PROBES + column] = x;
            run->scaled[j * PROBES + column] = run->value[j] * x;
        }
    }
    atomic_store(&run->refused, 0);
    TSVD_TRY(tsvdi_cpu_twisted_for_each(
        run, 0.9, 0.05, (n + CPU_PROBE_TASK_ROWS - 1) / CPU_PROBE_TASK_ROWS, sum_rows));
    /* the sums of all parts belong to all vectors: so those of the other parts are probed with
       these, and the residual is that of B */
    TSVD_TRY(tsvdi_sum_over_parts(ctx, 3 * n * PROBES, run->sums[0]));
    TSVD_TRY(tsvdi_cpu_twisted_for_each(
        run, 0.95, 0.05, (k + CPU_PROBE_TASK_ROWS - 1) / CPU_PROBE_TASK_ROWS, check_rows));
    job->refused += atomic_load(&run->refused);
    if (job->refused == 0 && !is_right(run)) {
        job->refused = k;
    }
out:
    return ret;
}
