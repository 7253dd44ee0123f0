/*
 * The SVD of dense matrices: a chunk of them is reduced to bidiagonal form, A = Q B P^H, with B
 * real; B is decomposed as tsvd_svd() would, B = L S R; then A = (Q L) S (R P^H).
 */
#include <math.h>
#include <string.h>

#include "backend/method.h"
#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"

/* Runs in the caller's floating-point environment, as every options.check does. */
int
tsvdi_dense_check_inner(void *arg, double done)
{
    const struct inner_check *inner = arg;
    struct tsvd_context *ctx = inner->ctx;
    const double share = inner->from + (inner->to - inner->from) * done;
    const double progress = ((double)ctx->index + share * (double)ctx->count) / (double)ctx->total;

    ctx->progress = progress > ctx->progress ? progress : ctx->progress;
    return inner->options->check(inner->options->check_arg, ctx->progress);
}

struct tsvd_context
tsvdi_dense_context(const struct call_args *call, int64_t matrices, tsvd_error *error)
{
    struct tsvd_context ctx;

    memset(&ctx, 0, sizeof ctx);
    ctx.call = call;
    ctx.options = call->options;
    ctx.error = error;
    ctx.threads = tsvdi_host_threads_for(call->handle->threads, INT64_MAX);
    ctx.is_caller = 1;
    ctx.total = matrices;
    return ctx;
}

tsvd_status
tsvdi_dense_nonfinite(const struct tsvd_context *ctx, int64_t matrix)
{
    tsvdi_blame(ctx, matrix);
    return tsvdi_fail(ctx->error, TSVD_ERR_NONFINITE, "a must not hold NaN or infinity");
}

struct svd_problem
tsvdi_dense_bidiagonal(const struct dense_problem *p, const tsvd_options *options, int64_t count)
{
    struct svd_problem b;

    memset(&b, 0, sizeof b);
    b.call = p->call;
    b.call.options = options;
    b.call.to = b.from = tsvdi_backend_of(p->call.handle)->dense->space;
    b.batch.ndim = 1;
    b.batch.shape[0] = b.batch.matrices = b.batch.all = count;
    b.method = p->method;
    b.dtype = REAL_DTYPE;
    b.rows = b.columns = b.n = p->n;
    b.first = p->first;
    b.k = b.left_stride = p->k;
    b.whole_first = p->whole_first;
    b.whole_k = p->whole_k;
    b.vectors = p->vectors;
    return b;
}

tsvd_status
tsvdi_dense_begin(const struct dense_plan *plan, struct dense_call *call, tsvd_error *error)
{
    const struct dense_problem *problem = plan->problem;
    struct tsvd_context *ctx = &call->ctx;
    struct dense_job *job = &call->job;
    uint64_t bytes;
    tsvd_status ret = TSVD_OK;

    memset(job, 0, sizeof *job);
    call->plan = *plan;
    call->plan.problem = &call->problem;
    call->problem = *problem;
    call->options = *problem->call.options;
    call->problem.call.options = &call->options;
    *ctx = tsvdi_dense_context(&call->problem.call, problem->a.batch.matrices, error);
    if (plan_is_too_large(&plan->reported)) {
        TSVD_TRY(tsvdi_host_too_large(error, "the arrays of the workspace", problem->n));
    }
    job->problem = &call->problem;
    job->count = call->plan.reported.chunk;
    job->keep = call->plan.keep;
    if (job->count == 0) {
        goto out;
    }
    if (problem->n > 0) {
        bytes = bytes_of(job->count, sizeof *job->exponent + sizeof *job->kind);
        TSVD_TRY(tsvdi_alloc(ctx, bytes, (void **)&job->exponent));
        job->kind = (char *)(job->exponent + job->count);
    }
    TSVD_TRY(call->plan.ops->begin(ctx, job));
out:
    return ret;
}

void
tsvdi_dense_end(struct dense_call *call)
{
    if (call->job.problem != NULL) {
        call->plan.ops->end(&call->ctx, &call->job);
    }
    tsvdi_free(&call->ctx, call->job.exponent);
}

tsvd_status
tsvdi_dense_reduce(struct dense_call *call, tsvd_info *info)
{
    const double clock = tsvdi_host_seconds();
    struct tsvd_context *ctx = &call->ctx;
    const struct dense_job *job = &call->job;
    tsvd_status ret = TSVD_OK;

    ctx->index = job->begin;
    ctx->count = job->count;
    call->job.band = call->job.chase = 0;
    if (job->problem->n > 0) {
        TSVD_TRY(call->plan.ops->reduce(ctx, &call->job));
    }
    for (int64_t i = 0; call->options.check_finite && job->problem->n > 0 && i < job->count; i++) {
        if (job->kind[i] == NONFINITE) {
            TSVD_TRY(tsvdi_dense_nonfinite(ctx, job->begin + i));
        }
    }
    TSVD_TRY(tsvdi_check(ctx, DENSE_REDUCED));
    info->seconds_reduce += tsvdi_host_seconds() - clock;
    info->seconds_band += job->band;
    info->seconds_chase += job->chase;
out:
    return ret;
}

/* The SVD of the B of the matrices first .. first + count - 1 of the chunk to job->b. */
static tsvd_status
solve_part(struct dense_call *call, int64_t first, int64_t count, double eps, tsvd_info *info)
{
    const struct dense_job *job = &call->job;
    const struct dense_problem *p = &call->problem;
    const double share = (DENSE_SOLVED - DENSE_REDUCED) / (double)job->count;
    struct inner_check inner = {&call->ctx, &call->options, DENSE_REDUCED + share * (double)first,
                                DENSE_REDUCED + share * (double)(first + count)};
    tsvd_options options = call->options;
    struct svd_problem b;
    struct svd_plan plan;
    const int64_t vectors = p->n * p->k;
    tsvd_info own;
    tsvd_status ret = TSVD_OK;

    memset(&own, 0, sizeof own);
    options.lower = p->a.rows < p->a.columns;
    options.check_finite = 0;
    options.check = call->options.check == NULL ? NULL : tsvdi_dense_check_inner;
    options.check_arg = &inner;
    options.eps = eps;
    b = tsvdi_dense_bidiagonal(p, &options, count);
    b.d = (struct svd_input){.data = job->d + first * b.n, .stride = sizeof(real)};
    b.e = (struct svd_input){.data = job->e + first * b.n, .stride = sizeof(real)};
    b.d.batch_strides[0] = b.e.batch_strides[0] = (ptrdiff_t)(b.n * (int64_t)sizeof(real));
    b.s = (real *)job->b.s + first * b.k;
    if (b.vectors) {
        b.L = (real *)job->b.L + first * vectors;
        b.R = (real *)job->b.R + first * vectors;
    }
    if (count == call->plan.inner_count && (eps > 0) == (call->options.eps > 0)) {
        plan = call->plan.inner;
        plan.problem = &b;
    } else {
        b.batch.all = call->plan.reported.chunk; /* the last matrices go as those before them */
        ret = tsvdi_plan_call(&b, &plan, call->ctx.error);
    }
    if (ret == TSVD_OK) {
        ret = tsvdi_svd(&plan, &own, call->ctx.error);
    }
    if (ret != TSVD_OK && call->ctx.error->matrix >= 0) { /* among those of the inner call */
        call->ctx.error->matrix += job->begin + first;
    }
    tsvdi_add_info(&own, info);
    return ret;
}

/* eps is in the units of A, and each B is scaled by its own power of two.  So with eps > 0 each B
   has a call of its own. */
static tsvd_status
solve_bidiagonal(struct dense_call *call, tsvd_info *info)
{
    const struct dense_job *job = &call->job;
    const double eps = call->options.eps;
    tsvd_status ret = TSVD_OK;

    if (!(eps > 0)) {
        return solve_part(call, 0, job->count, eps, info);
    }
    for (int64_t i = 0; i < job->count; i++) {
        TSVD_TRY(solve_part(call, i, 1, ldexp(eps, (int)-job->exponent[i]), info));
    }
out:
    return ret;
}

tsvd_status
tsvdi_dense_solve(struct dense_call *call, tsvd_info *info)
{
    struct tsvd_context *ctx = &call->ctx;
    tsvd_status ret = TSVD_OK;
    double clock;

    TSVD_TRY(call->plan.ops->reserve(ctx, &call->job));
    if (call->problem.k > 0) {
        TSVD_TRY(solve_bidiagonal(call, info));
    }
    TSVD_TRY(tsvdi_check(ctx, DENSE_SOLVED));
    clock = tsvdi_host_seconds();
    TSVD_TRY(call->plan.ops->back(ctx, &call->job));
    info->seconds_back += tsvdi_host_seconds() - clock;
    TSVD_TRY(tsvdi_check(ctx, 1));
out:
    return ret;
}

tsvd_status
tsvdi_dense_finish_downloads(struct dense_call *call)
{
    const struct backend *backend = tsvdi_backend_of(call->problem.call.handle);

    return backend->finish_downloads != NULL ? backend->finish_downloads(&call->ctx) : TSVD_OK;
}

tsvd_status
tsvdi_dense_svd(const struct dense_plan *plan, tsvd_info *info, tsvd_error *error)
{
    const struct dense_problem *problem = plan->problem;
    struct dense_call call;
    int64_t chunk, matrices = problem->a.batch.matrices;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_dense_begin(plan, &call, error));
    info->method = call.plan.reported.method;
    chunk = call.plan.reported.chunk;
    for (int64_t begin = 0; begin < matrices; begin += chunk) {
        call.job.begin = begin;
        call.job.count = matrices - begin < chunk ? matrices - begin : chunk;
        TSVD_TRY(tsvdi_dense_reduce(&call, info));
        if (problem->k > 0 || problem->full) {
            TSVD_TRY(tsvdi_dense_solve(&call, info));
        }
    }
    TSVD_TRY(tsvdi_dense_finish_downloads(&call));
out:
    tsvdi_dense_end(&call);
    return ret;
}
