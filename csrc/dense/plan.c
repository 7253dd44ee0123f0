/*
 * What a call for dense matrices does: how many matrices at once, and the workspace.
 */
#include <string.h>

#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"

tsvd_status
tsvdi_dense_allowed(const tsvd_handle *handle, const struct dense_matrices *a, int *needs_blas,
                    tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(handle);

    if (backend->dense == NULL) {
        return tsvdi_fail(error, TSVD_ERR_UNSUPPORTED, "dense matrices are not available on the %s",
                          backend->name);
    }
    *needs_blas = 0;
    return backend->dense->accepts == NULL ? TSVD_OK
                                           : backend->dense->accepts(handle, a, needs_blas, error);
}

uint64_t
tsvdi_dense_result_bytes(const struct dense_problem *p)
{
    const int64_t left = p->full ? p->a.rows : p->k, right = p->full ? p->a.columns : p->k;
    uint64_t bytes = bytes_of(p->k, sizeof(real));

    if (p->vectors) {
        bytes = bytes_add(bytes, bytes_of(p->a.rows, bytes_of(left, sizeof(scalar))));
        bytes = bytes_add(bytes, bytes_of(right, bytes_of(p->a.columns, sizeof(scalar))));
    }
    return bytes_of(p->a.batch.matrices, bytes);
}

tsvd_status
tsvdi_dense_plan_call(const struct dense_problem *p, int keep, struct dense_plan *plan,
                      tsvd_error *error)
{
    struct svd_problem chunk;
    struct bytes own = {0, 0};
    int64_t most, all;
    int needs_blas;
    tsvd_status ret = TSVD_OK;

    memset(plan, 0, sizeof *plan);
    plan->problem = p;
    plan->keep = keep == KEEP_VECTORS && !p->vectors ? KEEP_VALUES : keep;
    TSVD_TRY(tsvdi_dense_allowed(p->call.handle, &p->a, &plan->reported.needs_blas, error));
    plan->ops = tsvdi_backend_of(p->call.handle)->dense;
    if (p->a.batch.too_large) {
        plan_too_large(tsvdi_backend_of(p->call.handle), &plan->reported);
        goto out;
    }
    most = keep == KEEP_ALL || p->n == 0 || p->a.batch.matrices == 0
               ? p->a.batch.matrices
               : plan->ops->chunk_most(p, plan->keep);
    all = most < p->a.batch.all ? most : p->a.batch.all;
    most = most < p->a.batch.matrices ? most : p->a.batch.matrices;
    /* with eps the bidiagonal matrices of a chunk are solved one by one */
    chunk =
        tsvdi_dense_bidiagonal(p, p->call.options, most > 1 && p->call.options->eps > 0 ? 1 : most);
    chunk.batch.all = p->call.options->eps > 0 ? 1 : all;
    TSVD_TRY(tsvdi_plan_call(&chunk, &plan->inner, error));
    plan->inner.problem = NULL;
    plan->inner_count = chunk.batch.matrices;
    needs_blas = plan->reported.needs_blas;
    plan->reported = plan->inner.reported;
    plan->reported.needs_blas |= needs_blas;
    plan->reported.chunk = most;
    plan->reported.matrices = p->a.batch.matrices;
    plan->reported.result_bytes = tsvdi_dense_result_bytes(p);
    if (most > 0) {
        own = plan->ops->bytes(p, most, plan->keep);
    }
    plan->reported.host_bytes = bytes_add(plan->reported.host_bytes, own.host);
    plan->reported.device_bytes = bytes_add(plan->reported.device_bytes, own.device);
out:
    return ret;
}
