/*
 * What a call for dense matrices does: how many matrices at once, whether QR comes first, and the
 * workspace.
 */
#include <string.h>

#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"
#include "host/blas.h"

tsvd_status
tsvdi_dense_allowed(const struct dense_problem *p, int *needs_blas, tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->b.handle);
    const tsvd_blas *blas = &p->b.handle->blas;

    if (backend->dense == NULL || backend->inverse == NULL) {
        return tsvdi_fail(error, TSVD_ERR_UNSUPPORTED, "dense matrices are not available on the %s",
                          backend->name);
    }
    *needs_blas = backend->takes_blas;
    if (backend->takes_blas && !tsvdi_blas_ready(blas)) {
        tsvdi_advise(error, "set config.blas, call tsvd_set_blas(), or build tsvd with TSVD_BLAS");
        return tsvdi_fail(error, TSVD_ERR_LIBRARY, "dense matrices need a BLAS on the CPU");
    }
    if (backend->takes_blas && p->b.n > 0 && p->b.matrices > 0 &&
        (p->rows > INT32_MAX || p->columns > INT32_MAX)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "a matrix of %lld x %lld is too large for a BLAS", (long long)p->rows,
                          (long long)p->columns);
    }
    return TSVD_OK;
}

uint64_t
tsvdi_dense_result_bytes(const struct dense_problem *p)
{
    const int64_t left = p->full ? p->rows : p->b.k, right = p->full ? p->columns : p->b.k;
    uint64_t bytes = bytes_of(p->b.k, sizeof(real));

    if (p->b.vectors) {
        bytes = bytes_add(bytes, bytes_of(p->rows, bytes_of(left, sizeof(real))));
        bytes = bytes_add(bytes, bytes_of(right, bytes_of(p->columns, sizeof(real))));
    }
    return bytes_of(p->b.matrices, bytes);
}

tsvd_status
tsvdi_dense_plan_call(const struct dense_problem *p, int all, struct dense_plan *plan,
                      tsvd_error *error)
{
    const int64_t longer = p->rows > p->columns ? p->rows : p->columns;
    struct svd_problem chunk = p->b;
    struct svd_plan inner;
    struct bytes own = {0, 0};
    int64_t most;
    tsvd_status ret = TSVD_OK;

    memset(plan, 0, sizeof *plan);
    plan->problem = p;
    plan->keep = all ? KEEP_ALL : p->b.vectors ? KEEP_VECTORS : KEEP_VALUES;
    memset(&inner, 0, sizeof inner);
    TSVD_TRY(tsvdi_dense_allowed(p, &plan->reported.needs_blas, error));
    plan->ops = tsvdi_backend_of(p->b.handle)->dense;
    if (p->b.too_large) {
        plan->reported.result_bytes = plan->reported.host_bytes = plan->reported.device_bytes =
            BYTES_TOO_MANY;
        goto out;
    }
    plan->qr_first = p->b.n > 0 && (double)longer >= plan->ops->qr_ratio * (double)p->b.n;
    most = all || p->b.n == 0 || p->b.matrices == 0
               ? p->b.matrices
               : plan->ops->chunk_most(p, plan->qr_first, plan->keep);
    most = most < p->b.matrices ? most : p->b.matrices;
    /* with eps the bidiagonal matrices of a chunk are solved one by one */
    chunk.matrices = most > 1 && p->b.options->eps > 0 ? 1 : most;
    chunk.batch_ndim = 1;
    chunk.batch_shape[0] = chunk.matrices;
    TSVD_TRY(tsvdi_plan_call(&chunk, &inner, error));
    inner.reported.needs_blas |= plan->reported.needs_blas;
    plan->reported = inner.reported;
    plan->reported.chunk = most;
    plan->reported.matrices = p->b.matrices;
    plan->reported.result_bytes = tsvdi_dense_result_bytes(p);
    if (most > 0) {
        own = plan->ops->bytes(p, most, plan->qr_first, plan->keep);
    }
    plan->reported.host_bytes = bytes_add(plan->reported.host_bytes, own.host);
    plan->reported.device_bytes = bytes_add(plan->reported.device_bytes, own.device);
out:
    return ret;
}
