/*
 * The SVD of dense matrices by one-sided Jacobi, chunk by chunk: the driver around the jacobi_ops
 * of a back end.
 */
#include <string.h>

#include "backend/method.h"
#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"
#include "math/jacobi.h"

/* Refuses what the method or the handle does not offer. */
static tsvd_status
check_call(const struct dense_problem *p, int *needs_blas, tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);

    if (p->call.options->eps >= 0) {
        return tsvdi_fail(
            error, TSVD_ERR_ARGUMENT,
            "eps belongs to bidiagonal matrices, of which method \"jacobi\" has none");
    }
    if (backend->jacobi == NULL) {
        return tsvdi_fail(error, TSVD_ERR_UNSUPPORTED,
                          "method \"jacobi\" is not available on the %s", backend->name);
    }
    return tsvdi_dense_allowed(p->call.handle, &p->a, needs_blas, error);
}

/* The SVD that a job begins with, as a problem of its own. */
static struct dense_problem
problem_of(const struct dense_problem *p, const struct jacobi_start *start,
           const tsvd_options *options)
{
    const int64_t n = start->n;
    struct dense_problem own;

    memset(&own, 0, sizeof own);
    own.call = p->call;
    own.call.options = options;
    own.call.to = own.a.space = tsvdi_backend_of(p->call.handle)->jacobi->space;
    own.a.batch.matrices = own.a.batch.all = 1;
    own.a.dtype = p->a.dtype;
    own.a.rows = own.a.columns = own.n = own.k = own.whole_k = own.left_stride = n;
    own.a.data = start->w;
    own.a.row_stride = sizeof(scalar);
    own.a.column_stride = (ptrdiff_t)(n * (int64_t)sizeof(scalar));
    own.vectors = 1;
    own.S = start->S;
    own.U = start->U;
    own.Vh = start->Vh;
    return own;
}

/* The options of that SVD: the caller's, but without a bound on sweeps. */
static tsvd_options
start_options(const struct dense_problem *p)
{
    tsvd_options options = *p->call.options;

    options.part = NULL; /* its matrix is another one */
    options.max_sweeps = 0;
    options.check_finite = 0;
    return options;
}

/* Adds the workspace of that SVD to the plan. */
static tsvd_status
plan_start(const struct dense_problem *p, int64_t n, tsvd_plan *reported, tsvd_error *error)
{
    const struct jacobi_start start = {.n = n};
    const tsvd_options options = start_options(p);
    const struct dense_problem own = problem_of(p, &start, &options);
    struct dense_plan plan;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_dense_plan_call(&own, KEEP_VECTORS, &plan, error));
    reported->needs_blas |= plan.reported.needs_blas;
    reported->host_bytes = bytes_add(reported->host_bytes, plan.reported.host_bytes);
    reported->device_bytes = bytes_add(reported->device_bytes, plan.reported.device_bytes);
out:
    return ret;
}

static tsvd_status
plan(const struct dense_problem *p, tsvd_plan *reported, tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);
    struct bytes bytes;
    int64_t most, order;
    tsvd_status ret = TSVD_OK;

    memset(reported, 0, sizeof *reported);
    reported->method = tsvdi_method_jacobi.number;
    reported->direct = 1;
    reported->n = p->n;
    reported->count = p->k;
    reported->matrices = p->a.batch.matrices;
    TSVD_TRY(check_call(p, &reported->needs_blas, error));
    if (p->a.batch.too_large) {
        plan_too_large(backend, reported);
        goto out;
    }
    reported->result_bytes = tsvdi_dense_result_bytes(p);
    if (p->a.batch.matrices > 0) { /* an empty one may have any shape */
        most = backend->jacobi->chunk_most(p);
        reported->chunk = most < p->a.batch.matrices ? most : p->a.batch.matrices;
    }
    reported->threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    reported->workers = 1;
    if (reported->chunk > 0) {
        bytes = backend->jacobi->bytes(p, reported->chunk);
        reported->host_bytes =
            bytes_add(bytes.host, bytes_of(reported->chunk, sizeof(struct jacobi_outcome)));
        reported->device_bytes = bytes.device;
        order = backend->jacobi->start_order(p);
        if (order > 0) {
            TSVD_TRY(plan_start(p, order, reported, error));
        }
    }
out:
    return ret;
}

/* Adds what a chunk took to info, and fails with its first matrix that failed. */
static tsvd_status
sum_outcomes(struct tsvd_context *ctx, const struct jacobi_job *job, tsvd_info *info)
{
    for (int64_t i = 0; i < job->count; i++) {
        const struct jacobi_outcome *made = &job->made[i];

        info->sweeps += made->sweeps;
        info->rotations += made->rotations;
        if (ctx->options->check_finite && made->kind == NONFINITE) {
            return tsvdi_dense_nonfinite(ctx, job->begin + i);
        }
        if (made->unfinished) {
            tsvdi_blame(ctx, job->begin + i);
            ctx->error->sweeps = made->sweeps;
            tsvdi_advise(ctx->error, "raise options.max_sweeps");
            return tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                              "jacobi did not converge within %lld sweeps",
                              (long long)made->sweeps);
        }
    }
    return TSVD_OK;
}

/* Makes the SVD that a job begins with. */
static tsvd_status
solve_start(struct tsvd_context *ctx, const struct jacobi_job *job)
{
    struct inner_check inner = {ctx, ctx->options, 0, JACOBI_STARTED};
    tsvd_options options = start_options(job->problem);
    const struct dense_problem own = problem_of(job->problem, &job->start, &options);
    struct dense_plan plan;
    tsvd_info info;
    tsvd_status ret = TSVD_OK;

    memset(&info, 0, sizeof info);
    options.check = ctx->options->check == NULL ? NULL : tsvdi_dense_check_inner;
    options.check_arg = &inner;
    TSVD_TRY(tsvdi_dense_plan_call(&own, KEEP_VECTORS, &plan, ctx->error));
    TSVD_TRY(tsvdi_dense_svd(&plan, &info, ctx->error));
out:
    if (ret != TSVD_OK && ctx->error->matrix >= 0) { /* the only one of the inner call */
        tsvdi_blame(ctx, job->begin);
    }
    return ret;
}

static tsvd_status
svd(const struct dense_problem *problem, const tsvd_plan *reported, tsvd_info *info,
    tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(problem->call.handle);
    const int64_t matrices = problem->a.batch.matrices;
    const double clock = tsvdi_host_seconds();
    struct tsvd_context ctx = tsvdi_dense_context(&problem->call, problem->a.batch.matrices, error);
    struct jacobi_job job;
    tsvd_status ret = TSVD_OK;

    memset(&job, 0, sizeof job);
    info->method = tsvdi_method_jacobi.number;
    if (plan_is_too_large(reported)) {
        TSVD_TRY(tsvdi_host_too_large(error, "the arrays of the workspace", problem->n));
    }
    if (reported->chunk == 0) {
        goto out;
    }
    job.problem = problem;
    job.count = reported->chunk;
    job.max_sweeps = ctx.options->max_sweeps > 0 ? ctx.options->max_sweeps : JACOBI_SWEEPS;
    TSVD_TRY(tsvdi_alloc(&ctx, bytes_of(reported->chunk, sizeof *job.made), (void **)&job.made));
    TSVD_TRY(backend->jacobi->begin(&ctx, &job));
    for (int64_t begin = 0; begin < matrices; begin += reported->chunk) {
        job.begin = ctx.index = begin;
        job.count = ctx.count =
            matrices - begin < reported->chunk ? matrices - begin : reported->chunk;
        TSVD_TRY(tsvdi_check(&ctx, 0));
        job.start.n = 0;
        TSVD_TRY(backend->jacobi->prepare(&ctx, &job));
        if (job.start.n > 0) {
            TSVD_TRY(solve_start(&ctx, &job));
        }
        TSVD_TRY(backend->jacobi->run(&ctx, &job));
        TSVD_TRY(sum_outcomes(&ctx, &job, info));
        TSVD_TRY(tsvdi_check(&ctx, 1));
    }
    TSVD_TRY(backend->finish_downloads != NULL ? backend->finish_downloads(&ctx) : TSVD_OK);
    info->seconds_iterate = tsvdi_host_seconds() - clock;
out:
    if (job.made != NULL) {
        backend->jacobi->end(&ctx, &job);
    }
    tsvdi_free(&ctx, job.made);
    return ret;
}

const struct method tsvdi_method_jacobi = {
    .number = TSVD_METHOD_JACOBI,
    .name = "jacobi",
    .dense_plan = plan,
    .dense_svd = svd,
};
