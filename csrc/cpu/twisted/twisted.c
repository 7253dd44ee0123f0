/*
 * Twisted factorisations on the CPU: the operations of the seam, and the vectors, in threads and in
 * the lanes of vectors.
 */
#include <string.h>

#include "cpu/tuning.h"
#include "cpu/twisted/twisted_run.h"

/* ---- begin and end ---- */

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Numbers of the arrays of a run. */
static int64_t
numbers_of(int64_t n, int64_t k)
{
    return 3 * (2 * n) + 3 * (k + 2) + (3 * n + 2 * k) * PROBES + TWISTED_CACHE_LINE;
}

/* Fills in the matrix.  Returns 0 if it falls into parts, or the sizes of its entries are too far
   apart. */
static int
prepare(struct cpu_twisted *run, const real *d, const real *e, real_int exponent, double *b)
{
    const int64_t n = run->job->n, entries = 2 * n - 1;
    double *square = b + 2 * n, *rest = square + 2 * n;
    double least = 2, before = 0;

    run->top = 0;
    for (int64_t k = 0; k < entries; k++) {
        const double x = ldexp((double)(k % 2 == 0 ? d[k / 2] : e[k / 2]), (int)-exponent);

        b[k] = twisted_entry(x, &square[k], &rest[k]);
        least = fmin(least, fabs(x));
        run->top = fmax(run->top, fabs(x) + before); /* Gershgorin's theorem */
        before = fabs(x);
    }
    if (least < ldexp(1, -TWISTED_RANGE)) {
        return 0;
    }
    run->top *= 1 + 0x1p-50;
    run->least = TWISTED_LEAST;
    run->matrix = (struct twisted_matrix){n, b, square, rest, twisted_stride(least)};
    return 1;
}

static tsvd_status
begin(struct tsvd_context *ctx, struct twisted_job *job)
{
    const int64_t n = job->n, k = job->k;
    const int workers = 2 * n * k < CPU_TWISTED_SERIAL_STEPS ? 1 : ctx->threads;
    struct cpu_twisted *run = NULL;
    double *numbers = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *run, (void **)&run));
    memset(run, 0, sizeof *run);
    job->state = run;
    run->ctx = ctx;
    run->job = job;
    run->workers = workers;
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(numbers_of(n, k), sizeof *numbers), &run->memory));
    numbers = run->memory;
    if (!prepare(run, job->chunk->d, job->chunk->e, job->chunk->exponent[0], numbers)) {
        job->refused = k;
        goto out;
    }
    run->from = job->first > 0 ? job->first - 1 : 0;
    run->to = job->first + k < n ? job->first + k + 1 : n;
    run->shift = numbers + 3 * (2 * n);
    run->gap = run->shift + k + 2;
    run->value = run->gap + k + 2;
    run->x = numbers + (run->value + k + 2 - numbers + TWISTED_CACHE_LINE - 1) /
                           TWISTED_CACHE_LINE * TWISTED_CACHE_LINE;
    run->scaled = run->x + k * PROBES;
    run->sums[0] = run->scaled + k * PROBES;
    run->sums[1] = run->sums[0] + n * PROBES;
    run->image = run->sums[1] + n * PROBES;
    run->workspace =
        most(tsvdi_kernels()->twist_workspace(&run->matrix), tsvdi_cpu_twisted_search_workspace());
    run->workspace =
        (run->workspace + TWISTED_CACHE_LINE - 1) / TWISTED_CACHE_LINE * TWISTED_CACHE_LINE;
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(workers * run->workspace, sizeof *run->work),
                         (void **)&run->work));
out:
    return ret;
}

static void
end(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cpu_twisted *run = job->state;

    if (run != NULL) {
        tsvdi_free(ctx, run->memory);
        tsvdi_free(ctx, run->work);
    }
    tsvdi_free(ctx, run);
    job->state = NULL;
}

/* ---- vectors ---- */

static tsvd_status
make_vectors(void *arg, int worker, int64_t index)
{
    struct cpu_twisted *run = arg;
    const struct twisted_job *job = run->job;
    const int64_t n = job->n, k = job->k, begin = index * CPU_TWISTED_TASK_VALUES;
    const int64_t left = k - run->has_null - begin,
                  count = left < CPU_TWISTED_TASK_VALUES ? left : CPU_TWISTED_TASK_VALUES;
    double low[CPU_TWISTED_TASK_VALUES], angle[CPU_TWISTED_TASK_VALUES],
        balance[CPU_TWISTED_TASK_VALUES];
    const struct twisted_lanes lanes = {.count = count,
                                        .shift = run->shift + job->first - run->from + begin,
                                        .gap = run->gap + begin,
                                        .high = run->value + begin,
                                        .low = low,
                                        .angle_square = angle,
                                        .balance = balance,
                                        .column_rows = !job->lower,
                                        .columns = job->to.L + begin,
                                        .stride = k,
                                        .rows = job->to.R + begin * n,
                                        .work = run->work + worker * run->workspace};
    long long refused = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_twisted_check(run, worker, index));
    tsvdi_kernels()->twist(&run->matrix, &lanes);
    for (int64_t i = 0; i < count; i++) {
        const double x = run->value[begin + i];

        refused += !twisted_accepts(n, angle[i], balance[i], lanes.shift[i], x, lanes.gap[i]);
        job->to.s[begin + i] = twisted_value(x, low[i], job->chunk->exponent[0]);
    }
    atomic_fetch_add(&run->refused, refused);
out:
    return ret;
}

/* The last value, which is as good as 0, and its vectors. */
static tsvd_status
make_null(struct tsvd_context *ctx, struct cpu_twisted *run)
{
    const struct twisted_job *job = run->job;
    const int64_t n = job->n, k = job->k;
    struct values_job last = {
        .n = n, .count = 1, .first = n - 1, .last = n, .chunk = job->chunk, .s = job->to.s + k - 1};
    double *column = run->work, *row = run->work + n;
    int64_t largest = 0;
    double sign;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_values.find(ctx, &last));
    run->value[k - 1] = 0;
    twisted_null(&run->matrix, job->lower ? column : row, job->lower ? row : column);
    for (int64_t i = 1; i < n; i++) {
        largest = fabs((double)(real)column[i]) > fabs((double)(real)column[largest]) ? i : largest;
    }
    sign = column[largest] < 0 ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        job->to.L[i * k + k - 1] = (real)(sign * column[i]);
        job->to.R[(k - 1) * n + i] = (real)(sign * row[i]);
    }
out:
    return ret;
}

static tsvd_status
vectors(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cpu_twisted *run = job->state;
    const int64_t tasks =
        (job->k - run->has_null + CPU_TWISTED_TASK_VALUES - 1) / CPU_TWISTED_TASK_VALUES;
    tsvd_status ret = TSVD_OK;

    atomic_init(&run->refused, 0);
    TSVD_TRY(tsvdi_cpu_twisted_for_each(run, 0.5, 0.4, tasks, make_vectors));
    job->refused += atomic_load(&run->refused);
    if (run->has_null) {
        TSVD_TRY(make_null(ctx, run));
    }
out:
    return ret;
}

static struct bytes
twisted_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n;
    /* at most two slots for a row, of as many lanes as there are in two of the widest vectors */
    const int64_t lanes = 4 * n * (2 * TWISTED_CACHE_LINE);
    const int64_t workspace =
        most(lanes, tsvdi_cpu_twisted_search_workspace()) + TWISTED_CACHE_LINE;
    struct bytes bytes = {bytes_of(numbers_of(n, plan->reported.count), sizeof(double)), 0};

    bytes.host =
        bytes_add(bytes.host, bytes_of(plan->reported.threads * workspace, sizeof(double)));
    bytes.host = bytes_add(bytes.host, sizeof(struct cpu_twisted));
    return bytes_sum(bytes, tsvdi_cpu_values.bytes(plan));
}

const struct twisted_ops tsvdi_cpu_twisted = {
    .begin = begin,
    .end = end,
    .pays = tsvdi_cpu_twisted_pays,
    .values = tsvdi_cpu_twisted_values,
    .vectors = vectors,
    .probe = tsvdi_cpu_twisted_probe,
    .bytes = twisted_bytes,
};
