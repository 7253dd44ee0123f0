/*
 * The inverses of dense matrices, chunk by chunk.
 */
#include <string.h>

#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"

tsvd_status
tsvdi_inverse_plan_call(const struct inverse_problem *p, tsvd_plan *plan, tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);
    const int64_t n = p->a.rows;
    const uint64_t size = bytes_of(n, bytes_of(n, sizeof(scalar)));
    struct bytes own = {0, 0};
    int64_t most;
    tsvd_status ret = TSVD_OK;

    memset(plan, 0, sizeof *plan);
    TSVD_TRY(tsvdi_dense_allowed(p->call.handle, &p->a, &plan->needs_blas, error));
    if (backend->inverse == NULL) {
        TSVD_TRY(tsvdi_fail(error, TSVD_ERR_UNSUPPORTED, "inverses are not available on the %s",
                            backend->name));
    }
    plan->n = n;
    plan->workers = 1;
    plan->threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    if (p->a.batch.too_large) {
        plan_too_large(backend, plan);
        goto out;
    }
    plan->matrices = p->a.batch.matrices;
    plan->result_bytes = bytes_of(p->a.batch.matrices, size);
    if (n > 0 && p->a.batch.matrices > 0) {
        most = backend->inverse->chunk_most(p);
        plan->chunk = most < p->a.batch.matrices ? most : p->a.batch.matrices;
        own = backend->inverse->bytes(p, plan->chunk);
    }
    plan->host_bytes = bytes_add(own.host, (uint64_t)plan->chunk);
    plan->device_bytes = own.device;
out:
    return ret;
}

/* Fails if a matrix is singular, or is not finite and check_finite is set. */
static tsvd_status
fail_if_singular(const struct tsvd_context *ctx, const struct inverse_findings *found)
{
    if (found->nonfinite < INT64_MAX && ctx->options->check_finite) {
        return tsvdi_dense_nonfinite(ctx, found->nonfinite);
    }
    if (found->singular == INT64_MAX) {
        return TSVD_OK;
    }
    tsvdi_blame(ctx, found->singular);
    return tsvdi_fail(ctx->error, TSVD_ERR_SINGULAR, "Singular matrix");
}

/* The inverses of a chunk. */
static tsvd_status
invert(struct tsvd_context *ctx, struct inverse_job *job)
{
    const struct inverse_ops *ops = tsvdi_backend_of(ctx->call->handle)->inverse;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(ops->invert(ctx, job));
    for (int64_t i = job->first_grown; i < job->count; i++) {
        if (job->grown[i]) {
            TSVD_TRY(ops->rescue(ctx, job, i));
        }
    }
out:
    return ret;
}

tsvd_status
tsvdi_inverse(const struct inverse_problem *p, const tsvd_plan *plan, tsvd_inverse_info *info,
              tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);
    struct tsvd_context ctx = tsvdi_dense_context(&p->call, p->a.batch.matrices, error);
    struct inverse_findings found = {INT64_MAX, INT64_MAX, INFINITY, -1};
    struct inverse_job job;
    tsvd_status ret = TSVD_OK;

    memset(&job, 0, sizeof job);
    if (plan->chunk > 0) {
        if (plan_is_too_large(plan)) {
            TSVD_TRY(tsvdi_host_too_large(error, "the arrays of the workspace", p->a.rows));
        }
        job.problem = p;
        job.count = plan->chunk;
        job.found = &found;
        TSVD_TRY(tsvdi_alloc(&ctx, (size_t)plan->chunk, (void **)&job.grown));
        TSVD_TRY(backend->inverse->begin(&ctx, &job));
    }
    for (int64_t begin = 0; begin < p->a.batch.matrices && plan->chunk > 0; begin += plan->chunk) {
        job.begin = begin;
        job.count =
            p->a.batch.matrices - begin < plan->chunk ? p->a.batch.matrices - begin : plan->chunk;
        ctx.index = begin;
        ctx.count = job.count;
        TSVD_TRY(invert(&ctx, &job));
        TSVD_TRY(fail_if_singular(&ctx, &found));
        TSVD_TRY(tsvdi_check(&ctx, 1));
    }
    TSVD_TRY(backend->finish_downloads != NULL ? backend->finish_downloads(&ctx) : TSVD_OK);
    info->rcond = found.rcond;
    info->matrix = found.matrix;
    if (found.matrix < 0 && found.nonfinite < INT64_MAX) {
        info->rcond = NAN;
        info->matrix = found.nonfinite;
    }
out:
    if (job.problem != NULL) {
        backend->inverse->end(&ctx, &job);
    }
    tsvdi_free(&ctx, job.grown);
    return ret;
}
