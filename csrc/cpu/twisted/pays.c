/*
 * Twisted factorisations on the CPU: whether AUTO takes them.
 *
 * A sample of the wanted values, with their vectors, tells two things in a small part of the time
 * of either method.  Values that do not stand apart would be refused.  And where only few vectors
 * are not negligible at a row, the merge of divide and conquer that cuts the matrix there has few
 * survivors: the others deflate, which makes it the faster method.  A merge of order m that K
 * vectors cross takes the time of m min(m, K)^2 multiplications, and beside that there is work in
 * proportion to n^2.
 */
#include "cpu/tuning.h"
#include "cpu/twisted/twisted_run.h"

/* Values of the sample, and of a task of it: the lanes of one of the widest vectors.  Matrices
   below CPU_SAMPLE_ORDER have one task. */
enum { SAMPLE = 16, SAMPLE_TASK = 8 };

/* Entries of z that are no larger than this, relative to the largest value, deflate in divide and
   conquer. */
#define SAMPLE_NEGLIGIBLE (32 * (double)R_EPS)

static int64_t
sample_size(const struct twisted_job *job)
{
    const int64_t most = job->n < CPU_SAMPLE_ORDER ? SAMPLE_TASK : SAMPLE;

    return job->k < most ? job->k : most;
}

/* How many of the sample's vectors survive a merge of the rows begin .. end - 1, by their entries
   in the row where it is cut. */
static int64_t
count_survivors(const struct cpu_twisted *run, int64_t count, int64_t begin, int64_t row,
                int64_t end)
{
    const struct twisted_job *job = run->job;
    const double *b = run->matrix.b;
    double largest = 0;
    int64_t survivors = 0;

    for (int64_t k = 2 * begin; k < 2 * end - 1; k++) {
        largest = fmax(largest, fabs(b[k]));
    }
    for (int64_t i = 0; i < count; i++) {
        const double u = (double)r_abs(job->to.L[row * job->k + i]);
        const double v = (double)r_abs(job->to.R[i * job->n + row]);
        const double link = fmax(fabs(b[2 * row]), fabs(b[2 * row - 1]));

        survivors += fmax(u, v) * link > SAMPLE_NEGLIGIBLE * largest;
    }
    return survivors;
}

/* The time of the merges, as a share of n^3. */
static double
predict_merges(const struct cpu_twisted *run, int64_t count)
{
    const int64_t n = run->job->n;
    /* the last merge makes the wanted vectors alone */
    const double wanted = (double)run->ctx->problem->whole_k / (double)n;
    double sum = 0;

    for (int level = 0; level < CPU_SAMPLE_LEVELS; level++) {
        const double order = ldexp(1, -level);

        for (int64_t part = 0; part < 1 << level; part++) {
            const int64_t survivors =
                count_survivors(run, count, part * n >> level, (2 * part + 1) * n >> (level + 1),
                                (part + 1) * n >> level);
            const double share = fmin(order, (double)survivors / (double)count);

            sum += order * share * share * (level == 0 ? wanted : 1);
        }
    }
    return sum;
}

/* A part of the sample; it goes to the first rows of R and columns of L. */
static tsvd_status
take_sample(void *arg, int worker, int64_t index)
{
    struct cpu_twisted *run = arg;
    const struct twisted_job *job = run->job;
    const int64_t k = job->k, all = sample_size(job), begin = index * SAMPLE_TASK;
    const int64_t count = all - begin < SAMPLE_TASK ? all - begin : SAMPLE_TASK;
    int64_t want[SAMPLE_TASK] = {0};
    double shift[SAMPLE_TASK], width[SAMPLE_TASK], angle[SAMPLE_TASK], balance[SAMPLE_TASK];
    double high[SAMPLE_TASK], low[SAMPLE_TASK];
    const struct twisted_lanes lanes = {.count = count,
                                        .shift = shift,
                                        .gap = width,
                                        .high = high,
                                        .low = low,
                                        .angle_square = angle,
                                        .balance = balance,
                                        .column_rows = !job->lower,
                                        .columns = job->to.L + begin,
                                        .stride = k,
                                        .rows = job->to.R + begin * job->n,
                                        .work = run->work + worker * run->workspace};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_twisted_check(run, worker, index));
    for (int64_t i = 0; i < count; i++) { /* spread over all, the last one among them */
        want[i] = job->first + (begin + i + 1) * k / all - 1;
    }
    tsvdi_cpu_twisted_search(run, worker, count, want, shift, width);
    for (int64_t i = 0; i < count; i++) {
        if (!tsvdi_cpu_twisted_stands_apart(run, want[i], shift[i], width[i])) {
            atomic_store(&run->refused, 1);
            goto out;
        }
    }
    tsvdi_kernels()->twist(&run->matrix, &lanes);
out:
    return ret;
}

tsvd_status
tsvdi_cpu_twisted_pays(struct tsvd_context *ctx, struct twisted_job *job, int *answer)
{
    struct cpu_twisted *run = job->state;
    const int64_t count = sample_size(job);
    const double n = (double)job->n, share = (double)ctx->problem->whole_k / n;
    double merges;
    tsvd_status ret = TSVD_OK;

    if (few_wanted(job->n, ctx->problem->whole_k)) {
        return TSVD_OK;
    }
    *answer = 0;
    atomic_store(&run->refused, 0);
    TSVD_TRY(tsvdi_cpu_twisted_for_each(run, 0, 0, (count + SAMPLE_TASK - 1) / SAMPLE_TASK,
                                        take_sample));
    if (atomic_load(&run->refused) == 0) {
        merges = predict_merges(run, count);
        *answer = CPU_DC_BESIDE + CPU_DC_LEAVES / n + CPU_DC_MERGES * n * merges >
                  CPU_TWISTED_MARGIN * share * (CPU_LOCAL_VECTORS - CPU_LOCAL_MERGES * merges);
    }
out:
    return ret;
}
