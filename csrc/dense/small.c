/*
 * Small dense matrices, where a back end decomposes them at once: the driver around its table of
 * operations, small_dense_ops.  AUTO takes this way where it is offered.
 */
#include <string.h>

#include "backend/method.h"
#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"
#include "dense/methods.h"

int
tsvdi_small_serves(const struct dense_problem *p)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);

    return backend->small != NULL && !p->a.batch.too_large && p->a.batch.matrices > 0 &&
           backend->small->serves(p);
}

static tsvd_status
plan(const struct dense_problem *p, tsvd_plan *reported, tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);
    struct bytes bytes;

    (void)error;
    memset(reported, 0, sizeof *reported);
    reported->method = backend->small->method;
    reported->direct = 1;
    reported->n = p->n;
    reported->count = p->k;
    reported->matrices = reported->chunk = p->a.batch.matrices;
    reported->result_bytes = tsvdi_dense_result_bytes(p);
    reported->threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    reported->workers = 1;
    bytes = backend->small->bytes(p);
    reported->host_bytes = bytes.host;
    reported->device_bytes = bytes.device;
    return TSVD_OK;
}

static tsvd_status
svd(const struct dense_problem *problem, const tsvd_plan *reported, tsvd_info *info,
    tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(problem->call.handle);
    const int64_t matrices = problem->a.batch.matrices;
    const double clock = tsvdi_host_seconds();
    struct tsvd_context ctx = tsvdi_dense_context(&problem->call, matrices, error);
    struct small_dense_job job = {.problem = problem};
    tsvd_status ret = TSVD_OK;

    (void)reported;
    info->method = backend->small->method;
    ctx.count = matrices;
    TSVD_TRY(backend->small->solve(&ctx, &job));
    info->sweeps = job.sweeps;
    if (ctx.options->check_finite && job.nonfinite < matrices) {
        TSVD_TRY(tsvdi_dense_nonfinite(&ctx, job.nonfinite));
    }
    if (job.unfinished < matrices) {
        tsvdi_blame(&ctx, job.unfinished);
        TSVD_TRY(tsvdi_fail(error, TSVD_ERR_NO_CONVERGENCE, "%s did not converge",
                            tsvdi_method_of(info->method)->name));
    }
    TSVD_TRY(tsvdi_check(&ctx, 1));
    info->seconds_iterate = tsvdi_host_seconds() - clock;
out:
    return ret;
}

const struct method tsvdi_method_small = {
    .dense_plan = plan,
    .dense_svd = svd,
};
