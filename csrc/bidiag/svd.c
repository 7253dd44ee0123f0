/*
 * The driver: reads the matrices of a problem chunk by chunk, runs the method that the plan names,
 * and fills in the results of matrices that are zero or not finite.
 *
 * Matrices with an extra column become square first: methods know no others.  They see a problem of
 * their own then, with results where the back end can work on them (extra_ops).
 *
 * A step on d and e before the SVD goes into load_chunk(), by which check_finite() reads chunks
 * too; a step on the results goes into solve_chunk(), after run().  sum_bytes() of plan.c counts
 * the workspace of both.  (The reduction of dense matrices is in dense/.)
 */
#include <math.h>
#include <string.h>

#include "backend/method.h"
#include "backend/tuning.h"
#include "bidiag/bidiag_call.h"

/* One worker, with the sums of what it did. */
struct worker {
    struct tsvd_context ctx;   /* what its functions are given */
    struct chunk chunk;        /* the matrices under work */
    struct extra_column extra; /* theirs, if they have one */
    tsvd_options options;      /* the caller's, with an eps for these matrices */
    tsvd_error error;          /* what failed in chunk `failed` */
    tsvd_info info;            /* sums over its chunks */
    int64_t failed;            /* the chunk that the error belongs to */
};

/* What solve_chunk() is given. */
struct job {
    const struct svd_plan *plan;
    const struct svd_problem *asked; /* plan->problem; with an extra column that of the caller */
    struct worker *worker;           /* [plan->reported.workers] */
};

/* The square matrices of a problem whose matrices have an extra column. */
struct square {
    struct svd_problem problem;
    struct svd_plan plan;
};

tsvd_status
tsvdi_chunk_alloc(struct tsvd_context *ctx, struct chunk *chunk)
{
    const tsvd_plan *reported = &ctx->plan->reported;
    const int64_t numbers = reported->chunk * reported->n; /* no more than in the input */
    uint64_t bytes = bytes_of(reported->chunk, sizeof(real) + 1);
    tsvd_status ret = TSVD_OK;

    /* one piece, the widest types first */
    bytes = bytes_add(bytes, bytes_of(numbers, 2 * sizeof(real)));
    TSVD_TRY(tsvdi_alloc(ctx, bytes, (void **)&chunk->d));
    chunk->e = chunk->d + numbers;
    chunk->exponent = (real_int *)(chunk->e + numbers);
    chunk->kind = (char *)(chunk->exponent + reported->chunk);
out:
    return ret;
}

/* Reads chunk `index`.  Refuses NaN and infinity if options.check_finite says so. */
static tsvd_status
load_chunk(struct worker *own, int64_t index)
{
    const struct svd_plan *plan = own->ctx.plan;
    const int64_t left = plan->reported.matrices - index * plan->reported.chunk;
    struct chunk *chunk = &own->chunk;
    tsvd_status ret = TSVD_OK;

    chunk->begin = index * plan->reported.chunk;
    chunk->count = left < plan->reported.chunk ? left : plan->reported.chunk;
    TSVD_TRY(plan->backend->load(&own->ctx, chunk));
    for (int64_t i = 0; own->ctx.options->check_finite && i < chunk->count; i++) {
        if (chunk->kind[i] == NONFINITE) {
            tsvdi_blame(&own->ctx, chunk->begin + i);
            TSVD_TRY(tsvdi_fail(&own->error, TSVD_ERR_NONFINITE, "%s",
                                tsvd_strstatus(TSVD_ERR_NONFINITE)));
        }
    }
out:
    return ret;
}

/* Makes the matrices of a chunk square.  eps gets their units, at most: those whose entries might
   overflow are multiplied by a power of two. */
static tsvd_status
drop_extra(struct worker *own, const struct svd_problem *asked, struct results to)
{
    int power = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(own->ctx.plan->backend->extra->drop(&own->ctx, &own->chunk, asked, to, &own->extra));
    for (int64_t i = 0; i < own->chunk.count; i++) {
        power = own->extra.power[i] > power ? own->extra.power[i] : power;
    }
    own->options = *own->ctx.call->options;
    own->options.eps = ldexp(own->options.eps, -power);
    own->ctx.options = &own->options;
out:
    return ret;
}

/* The method that decomposes a chunk: the planned one, unless each matrix decides (by_matrix).
   Then it is bisection where the fast form of the counts applies.  For a very small or very graded
   matrix QR is faster; counts then only confirm its values. */
static const struct method *
method_for(const struct svd_plan *plan, const struct chunk *chunk)
{
    return plan->by_matrix && (plan->reported.n <= VALUES_QR_ORDER ||
                               !tsvdi_sturm_is_plain(plan->reported.n, chunk->d, chunk->e))
               ? &tsvdi_method_qr
               : plan->method;
}

/* Where the results of the chunk go. */
static struct results
results_of(const struct svd_problem *p, const struct chunk *chunk)
{
    const int64_t left = left_vectors(p), right = right_vectors(p);
    struct results to = {(real *)p->s + chunk->begin * p->k, NULL, NULL};

    if (p->vectors) {
        to.L = (real *)p->L + chunk->begin * p->rows * left;
        to.R = (real *)p->R + chunk->begin * right * p->columns;
    }
    return to;
}

static tsvd_status
solve_chunk(void *arg, int worker, int64_t index)
{
    const struct job *job = arg;
    const struct svd_plan *plan = job->plan;
    const struct svd_problem *asked = job->asked;
    const struct extra_ops *extra = asked->extra ? plan->backend->extra : NULL;
    struct worker *own = &job->worker[worker];
    struct chunk *chunk = &own->chunk;
    struct results to, final;
    tsvd_status ret = TSVD_OK;

    own->ctx.done = 0;
    TSVD_TRY(load_chunk(own, index));
    own->ctx.index = chunk->begin;
    own->ctx.count = chunk->count;
    to = final = results_of(asked, chunk);
    if (extra != NULL) {
        TSVD_TRY(drop_extra(own, asked, final));
        to = own->extra.square;
    }
    if (chunk->ordinary > 0) {
        const struct method *method = method_for(plan, chunk);
        const tsvd_method before = own->info.method;

        own->info.method = method->number;
        TSVD_TRY(method->run(&own->ctx, chunk, to, &own->info));
        own->info.method = method_of_both(before, own->info.method);
    }
    for (int64_t i = 0; i < chunk->count && chunk->ordinary < chunk->count; i++) {
        if (chunk->kind[i] != ORDINARY) {
            TSVD_TRY(plan->backend->fill(&own->ctx, i, chunk->kind[i], to));
        }
    }
    if (extra != NULL) {
        TSVD_TRY(extra->restore(&own->ctx, chunk, asked, &own->extra, final));
    }
    TSVD_TRY(tsvdi_check(&own->ctx, 1));
out:
    if (ret != TSVD_OK) {
        own->error.status = ret;
        own->failed = index;
    }
    return ret;
}

/* Refuses NaN and infinity in a batch of more than one chunk, before any other work on it. */
static tsvd_status
check_finite(struct worker *own, int64_t chunks)
{
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < chunks; i++) {
        TSVD_TRY(load_chunk(own, i));
    }
out:
    own->error.status = ret;
    return ret;
}

/* Waits for the results of a worker. */
static tsvd_status
finish_worker(struct worker *own)
{
    const tsvd_status ret = own->ctx.plan->backend->finish_downloads(&own->ctx);

    own->error.status = ret;
    return ret;
}

void
tsvdi_add_info(const tsvd_info *part, tsvd_info *info)
{
    info->method = method_of_both(info->method, part->method);
    info->sweeps += part->sweeps;
    info->iterations += part->iterations;
    info->iterations_saved += part->iterations_saved;
    info->rotations += part->rotations;
    info->deflated += part->deflated;
    info->refused += part->refused;
    info->seconds_iterate += part->seconds_iterate;
    info->seconds_vectors += part->seconds_vectors;
    info->seconds_values += part->seconds_values;
    info->seconds_device += part->seconds_device;
}

/* Adds up what the workers did.  The error is that of the first chunk that failed with the status
   that the call returns. */
static void
collect(const struct worker *worker, int workers, tsvd_status status, tsvd_info *info,
        tsvd_error *error)
{
    int64_t failed = INT64_MAX;

    for (int i = 0; i < workers; i++) {
        tsvdi_add_info(&worker[i].info, info);
        if (status != TSVD_OK && worker[i].error.status == status && worker[i].failed < failed) {
            failed = worker[i].failed;
            *error = worker[i].error;
        }
    }
}

/* Takes the workspace of an extra column. */
static tsvd_status
begin_extra(struct tsvd_context *ctx, const struct svd_problem *asked, struct extra_column *extra)
{
    const int64_t most = ctx->plan->reported.chunk, numbers = most * ctx->plan->reported.n;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, extra_bytes(most, ctx->plan->reported.n), (void **)&extra->turn));
    extra->power = (int *)(extra->turn + numbers);
    TSVD_TRY(ctx->plan->backend->extra->begin(ctx, asked, extra));
out:
    return ret;
}

static void
worker_end(struct worker *own)
{
    if (own->ctx.problem->extra) {
        own->ctx.plan->backend->extra->end(&own->ctx, &own->extra);
    }
    own->ctx.plan->backend->close(&own->ctx, &own->chunk);
    tsvdi_free(&own->ctx, own->chunk.d);
    tsvdi_free(&own->ctx, own->extra.turn);
}

static tsvd_status
worker_begin(struct worker *own, const struct job *job, int is_caller)
{
    struct tsvd_context *ctx = &own->ctx;
    const struct svd_plan *plan = job->plan;
    tsvd_status ret = TSVD_OK;

    memset(ctx, 0, sizeof *ctx);
    memset(&own->chunk, 0, sizeof own->chunk);
    memset(&own->extra, 0, sizeof own->extra);
    memset(&own->info, 0, sizeof own->info);
    tsvdi_error_clear(&own->error);
    own->failed = 0;
    ctx->call = &plan->problem->call;
    ctx->options = ctx->call->options;
    ctx->problem = plan->problem;
    ctx->plan = plan;
    ctx->error = &own->error;
    ctx->threads = plan->reported.threads;
    ctx->is_caller = is_caller;
    ctx->total = plan->reported.matrices;
    TSVD_TRY(plan->backend->open(ctx));
    TSVD_TRY(tsvdi_chunk_alloc(ctx, &own->chunk));
    TSVD_TRY(job->asked->extra ? begin_extra(ctx, job->asked, &own->extra) : TSVD_OK);
out:
    own->error.status = ret;
    return ret;
}

/* The plan for the square matrices: read in the same way, with results of their own. */
static const struct svd_plan *
plan_square(const struct svd_plan *plan, struct square *square)
{
    struct svd_problem *own = &square->problem;

    square->plan = *plan;
    square->plan.problem = own;
    *own = *plan->problem;
    own->rows = own->columns = own->n;
    own->full = 0;
    own->left_stride = own->k;
    own->call.to = plan->backend->extra->space;
    return &square->plan;
}

tsvd_status
tsvdi_svd(const struct svd_plan *plan, tsvd_info *info, tsvd_error *error)
{
    struct worker only; /* a single worker needs no allocation */
    struct square square;
    const struct svd_problem *problem = plan->problem;
    struct job job = {problem->extra ? plan_square(plan, &square) : plan, problem, &only};
    const tsvd_allocator *allocator = &problem->call.handle->host;
    int64_t chunks;
    int workers, ready = 0;
    tsvd_status ret = TSVD_OK;

    info->method = plan->reported.method;
    if (plan_is_too_large(&plan->reported)) {
        return tsvdi_host_too_large(error, "the arrays of the workspace", problem->n);
    }
    if (problem->n == 0 || problem->batch.matrices == 0) {
        goto out;
    }
    workers = plan->reported.workers;
    chunks = (problem->batch.matrices + plan->reported.chunk - 1) / plan->reported.chunk;
    if (workers > 1) {
        job.worker = NULL;
        TSVD_TRY(tsvdi_host_alloc(allocator, bytes_of(workers, sizeof only), error,
                                  (void **)&job.worker));
    }
    while (ready < workers && ret == TSVD_OK) {
        ret = worker_begin(&job.worker[ready], &job, ready == 0);
        ready++;
    }
    if (ret == TSVD_OK && problem->call.options->check_finite && (chunks > 1 || problem->k == 0)) {
        ret = check_finite(&job.worker[0], chunks);
    }
    if (ret == TSVD_OK && problem->k > 0) {
        ret = tsvdi_host_for_each(workers, chunks, solve_chunk, &job);
    }
    for (int i = 0; i < workers && ret == TSVD_OK && plan->backend->finish_downloads != NULL; i++) {
        ret = finish_worker(&job.worker[i]);
    }
    collect(job.worker, ready, ret, info, error);
out:
    for (int i = 0; i < ready; i++) {
        worker_end(&job.worker[i]);
    }
    if (job.worker != &only) {
        tsvdi_host_free(allocator, job.worker);
    }
    return ret;
}
