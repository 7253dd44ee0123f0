/*
 * A reduction to bidiagonal form that is kept, and what is asked of it.
 */
#include <string.h>

#include "bidiag/call.h"
#include "dense/call.h"

/* Begins a call on a reduction that is kept. */
static struct tsvd_context *
begin_call(struct dense_call *call, struct host_environment *outer, tsvd_error *error)
{
    struct tsvd_context *ctx = &call->ctx;

    call->problem.b.outer = outer;
    ctx->error = error;
    ctx->done = ctx->told = 0;
    return ctx;
}

tsvd_status
tsvdi_reduction_begin(const struct dense_problem *problem, struct dense_call **made,
                      tsvd_error *error)
{
    const tsvd_allocator *allocator = &problem->b.handle->host;
    struct dense_call *call = NULL;
    tsvd_info info;
    tsvd_status ret = TSVD_OK;

    memset(&info, 0, sizeof info);
    TSVD_TRY(tsvdi_host_alloc(allocator, sizeof *call, error, (void **)&call));
    *made = call;
    TSVD_TRY(tsvdi_dense_begin(problem, 1, call, error));
    if (problem->b.matrices > 0) {
        TSVD_TRY(tsvdi_dense_reduce(call, &info));
    }
    call->options.check = NULL; /* it was this call's */
out:
    return ret;
}

void
tsvdi_reduction_end(struct dense_call *call)
{
    if (call != NULL) {
        const tsvd_allocator allocator = call->problem.b.handle->host;

        tsvdi_dense_end(call);
        tsvdi_host_free(&allocator, call);
    }
}

/* Fills x, `each` numbers of every matrix, with NaN where the matrix is not finite: it counts as
   zero in the reduction. */
static tsvd_status
fill_nonfinite(struct dense_call *call, tsvd_space space, int64_t each, real *x)
{
    const struct dense_job *job = &call->job;
    const struct backend *backend = tsvdi_backend_of(call->problem.b.handle);
    const struct results to = {.s = x};
    struct tsvd_context *ctx = &call->ctx;
    struct svd_problem problem = call->problem.b;
    tsvd_status ret = TSVD_OK;

    problem.to = space;
    problem.k = each;
    ctx->problem = &problem;
    for (int64_t i = 0; each > 0 && i < job->count; i++) {
        if (job->kind[i] == NONFINITE) {
            TSVD_TRY(backend->fill(ctx, i, NONFINITE, to));
        }
    }
out:
    ctx->problem = &call->problem.b;
    return ret;
}

tsvd_status
tsvdi_reduction_entries(struct dense_call *call, tsvd_space space, void *d, void *e,
                        tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, NULL, error);
    const int64_t n = call->problem.b.n;
    tsvd_status ret = TSVD_OK;

    if (n == 0 || call->problem.b.matrices == 0) {
        goto out;
    }
    TSVD_TRY(call->plan.ops->entries(ctx, &call->job, 0, space, d, e));
    TSVD_TRY(fill_nonfinite(call, space, n, d));
    TSVD_TRY(fill_nonfinite(call, space, n - 1, e));
out:
    return ret;
}

/* The interval is scaled, not B: values of a matrix of large numbers may exceed the largest. */
tsvd_status
tsvdi_reduction_select(struct dense_call *call, double low, double high, int64_t *first,
                       int64_t *count, tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, NULL, error);
    const struct dense_job *job = &call->job;
    const int64_t n = call->problem.b.n;
    struct svd_problem b = call->problem.b;
    real *d = NULL;
    tsvd_status ret = TSVD_OK;

    *first = *count = 0;
    if (n == 0 || job->kind[0] == NONFINITE) {
        goto out;
    }
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(2 * n, sizeof *d), (void **)&d));
    TSVD_TRY(call->plan.ops->entries(ctx, &call->job, 1, TSVD_HOST, d, d + n));
    b.batch_ndim = 0;
    b.from = TSVD_HOST;
    b.d = (struct svd_input){.data = d, .stride = sizeof *d};
    b.e = (struct svd_input){.data = d + n, .stride = sizeof *d};
    /* a bound below zero may not become zero, which a value may be */
    TSVD_TRY(tsvdi_select(&b, low < 0 ? -1 : ldexp(low, (int)-job->exponent[0]),
                          ldexp(high, (int)-job->exponent[0]), first, count, error));
out:
    tsvdi_free(ctx, d);
    return ret;
}

tsvd_status
tsvdi_reduction_apply(struct dense_call *call, const struct dense_vectors *vectors,
                      tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, NULL, error);
    const struct dense_problem *p = &call->problem;
    const int64_t rows = vectors->right ? p->columns : p->rows;
    tsvd_status ret = TSVD_OK;

    if (p->b.n == 0 || p->b.matrices == 0 || vectors->columns == 0) {
        goto out;
    }
    TSVD_TRY(call->plan.ops->apply(ctx, &call->job, vectors));
    TSVD_TRY(fill_nonfinite(call, vectors->space, rows * vectors->columns, vectors->x));
out:
    return ret;
}

tsvd_status
tsvdi_reduction_svd(struct dense_call *call, const struct dense_problem *problem, tsvd_info *info,
                    tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, problem->b.outer, error);
    tsvd_status ret = TSVD_OK;

    call->options = *problem->b.options;
    call->problem = *problem;
    call->problem.b.options = &call->options;
    ctx->problem = &call->problem.b;
    if (problem->b.matrices > 0 && (problem->b.k > 0 || problem->full)) {
        TSVD_TRY(tsvdi_dense_solve(call, info));
    }
    TSVD_TRY(tsvdi_dense_arrive(call));
out:
    call->options.check = NULL; /* it was this call's */
    return ret;
}
