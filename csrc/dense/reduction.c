/*
 * A reduction to bidiagonal form that is kept, and the calls on it.
 *
 * Its state, which is saved and restored, is a piece of host memory:
 *
 *     struct state_head, the exponents [count], the kinds [count], zeros up to a multiple of 8
 *     bytes, and the back end's own part
 */
#include <math.h>
#include <string.h>

#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"

/* Begins a call on a reduction that is kept. */
static struct tsvd_context *
begin_call(struct dense_call *call, struct host_environment *outer, tsvd_error *error)
{
    struct tsvd_context *ctx = &call->ctx;

    call->problem.call.outer = outer;
    ctx->error = error;
    ctx->done = ctx->progress = 0;
    return ctx;
}

/* Makes the dense_call that a reduction keeps, with its workspace. */
static tsvd_status
make_call(const struct dense_problem *problem, struct dense_call **made, tsvd_error *error)
{
    const tsvd_allocator *allocator = &problem->call.handle->host;
    struct dense_plan plan;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_dense_plan_call(problem, KEEP_ALL, &plan, error));
    TSVD_TRY(tsvdi_host_alloc(allocator, sizeof **made, error, (void **)made));
    TSVD_TRY(tsvdi_dense_begin(&plan, *made, error));
out:
    return ret;
}

tsvd_status
tsvdi_reduction_begin(const struct dense_problem *problem, struct dense_call **made,
                      tsvd_error *error)
{
    tsvd_info info;
    tsvd_status ret = TSVD_OK;

    memset(&info, 0, sizeof info);
    TSVD_TRY(make_call(problem, made, error));
    if (problem->a.batch.matrices > 0) {
        TSVD_TRY(tsvdi_dense_reduce(*made, &info));
    }
    (*made)->options.check = NULL; /* check() belongs to this call, not to later ones */
out:
    return ret;
}

/* ---- the state ---- */

/* To be increased whenever the state of the same matrices changes its form. */
enum { STATE_FORM = 2 };

struct state_head {
    uint64_t form; /* STATE_FORM, then the back end, the precision and the back end's layout */
    int64_t rows, columns, matrices;
};

/* Where the parts of a state lie, in bytes. */
struct state_parts {
    struct state_head head;
    uint64_t exponents, kinds, own, all;
};

static struct state_parts
parts_of(const struct dense_call *call)
{
    const struct dense_job *job = &call->job;
    const struct dense_problem *p = &call->problem;
    const int64_t count = p->n > 0 ? job->count : 0;
    const unsigned backend = tsvdi_backend_of(p->call.handle)->number;
    struct state_parts at;
    unsigned layout = 0;
    uint64_t own = count > 0 ? call->plan.ops->state_bytes(job, &layout) : 0;

    at.head.form = (uint64_t)STATE_FORM << 16 | (uint64_t)TSVD_COMPLEX << 15 |
                   (uint64_t)backend << 9 | (uint64_t)TSVD_SINGLE << 8 | layout;
    at.head.rows = p->a.rows;
    at.head.columns = p->a.columns;
    at.head.matrices = p->a.batch.matrices;
    at.exponents = sizeof at.head;
    at.kinds = at.exponents + bytes_of(count, sizeof *job->exponent);
    at.own = (at.kinds + bytes_of(count, sizeof *job->kind) + 7) / 8 * 8;
    at.all = at.own + own;
    return at;
}

uint64_t
tsvdi_reduction_state_bytes(const struct dense_call *call)
{
    return parts_of(call).all;
}

tsvd_status
tsvdi_reduction_save(struct dense_call *call, void *state, tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, NULL, error);
    const struct state_parts at = parts_of(call);
    char *to = state;
    tsvd_status ret = TSVD_OK;

    memset(to, 0, at.own);
    memcpy(to, &at.head, sizeof at.head);
    if (at.own > at.exponents) {
        memcpy(to + at.exponents, call->job.exponent, at.kinds - at.exponents);
        memcpy(to + at.kinds, call->job.kind, (size_t)call->job.count);
    }
    if (at.all > at.own) {
        TSVD_TRY(call->plan.ops->save(ctx, &call->job, to + at.own));
    }
out:
    return ret;
}

/* As options.dense_stages was when the state was saved, or chosen. */
static int
stages_of(const char *state, uint64_t bytes)
{
    struct state_head head = {0};

    if (bytes >= sizeof head) {
        memcpy(&head, state, sizeof head);
    }
    return head.form & LAYOUT_BAND ? 2 : 1;
}

tsvd_status
tsvdi_reduction_restore(const struct dense_problem *problem, const void *state, uint64_t bytes,
                        struct dense_call **made, tsvd_error *error)
{
    const char *from = state;
    tsvd_options options = *problem->call.options;
    struct dense_problem own = *problem;
    struct dense_call *call;
    struct state_parts at;
    tsvd_status ret = TSVD_OK;

    options.dense_stages = stages_of(state, bytes);
    own.call.options = &options;
    TSVD_TRY(make_call(&own, made, error));
    call = *made;
    at = parts_of(call);
    if (bytes != at.all || memcmp(from, &at.head, sizeof at.head) != 0) {
        TSVD_TRY(tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                            "the state is none that this version of tsvd saves of such matrices on "
                            "this %s",
                            tsvdi_backend_of(problem->call.handle)->name));
    }
    if (at.own > at.exponents) {
        memcpy(call->job.exponent, from + at.exponents, at.kinds - at.exponents);
        memcpy(call->job.kind, from + at.kinds, (size_t)call->job.count);
    }
    if (at.all > at.own) {
        TSVD_TRY(call->plan.ops->restore(&call->ctx, &call->job, from + at.own));
    }
    call->options.check = NULL;
out:
    return ret;
}

/* ---- the end, and calls on a reduction ---- */

void
tsvdi_reduction_end(struct dense_call *call)
{
    if (call != NULL) {
        const tsvd_allocator allocator = call->problem.call.handle->host;

        tsvdi_dense_end(call);
        tsvdi_host_free(&allocator, call);
    }
}

/* Fills x, `each` numbers of every matrix, with NaN where the matrix is not finite: the reduction
   has zeros there. */
static tsvd_status
fill_nonfinite(struct dense_call *call, tsvd_space space, int64_t each, real *x)
{
    const struct dense_job *job = &call->job;
    const struct backend *backend = tsvdi_backend_of(call->problem.call.handle);
    struct tsvd_context *ctx = &call->ctx;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; each > 0 && i < job->count; i++) {
        if (job->kind[i] == NONFINITE) {
            TSVD_TRY(backend->fill_nan(ctx, space, each, x + i * each));
        }
    }
out:
    return ret;
}

tsvd_status
tsvdi_reduction_entries(struct dense_call *call, tsvd_space space, void *d, void *e,
                        tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, NULL, error);
    const int64_t n = call->problem.n;
    tsvd_status ret = TSVD_OK;

    if (n == 0 || call->problem.a.batch.matrices == 0) {
        goto out;
    }
    TSVD_TRY(call->plan.ops->entries(ctx, &call->job, 0, space, d, e));
    TSVD_TRY(fill_nonfinite(call, space, n, d));
    TSVD_TRY(fill_nonfinite(call, space, n - 1, e));
out:
    return ret;
}

/* The largest number x such that x 2^exponent, rounded to a number, is not above `bound`.  Scaling
   the bound would not do: a value that is subnormal in the units of A is rounded there, but not in
   the units of B. */
static double
scaled_bound(double bound, real_int exponent)
{
    real_int low = 0, high = R_INFINITY_BITS;

    if (bound < 0 || isinf(bound)) {
        return bound;
    }
    while (high - low > 1) {
        const real_int middle = low + (high - low) / 2;
        real x = r_from_bits(middle);

        r_scale(&x, 1, -exponent, &x);
        if ((double)x <= bound) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (double)r_from_bits(low);
}

/* The bounds are scaled to B, not B to the units of A, where large numbers may overflow. */
tsvd_status
tsvdi_reduction_select(struct dense_call *call, double low, double high, int64_t *first,
                       int64_t *count, tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, NULL, error);
    const struct dense_job *job = &call->job;
    const int64_t n = call->problem.n;
    struct svd_problem b = tsvdi_dense_bidiagonal(&call->problem, &call->options, 1);
    real *d = NULL;
    tsvd_status ret = TSVD_OK;

    *first = *count = 0;
    if (n == 0 || job->kind[0] == NONFINITE) {
        goto out;
    }
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(2 * n, sizeof *d), (void **)&d));
    TSVD_TRY(call->plan.ops->entries(ctx, &call->job, 1, TSVD_HOST, d, d + n));
    b.from = TSVD_HOST;
    b.d = (struct svd_input){.data = d, .stride = sizeof *d};
    b.e = (struct svd_input){.data = d + n, .stride = sizeof *d};
    TSVD_TRY(tsvdi_select(&b, scaled_bound(low, job->exponent[0]),
                          scaled_bound(high, job->exponent[0]), first, count, error));
out:
    tsvdi_free(ctx, d);
    return ret;
}

tsvd_status
tsvdi_reduction_apply(struct dense_call *call, const struct dense_problem *problem,
                      const struct dense_vectors *vectors, tsvd_error *error)
{
    struct tsvd_context *ctx = begin_call(call, problem->call.outer, error);
    const struct dense_problem *p = &call->problem;
    const int64_t rows = vectors->right ? p->a.columns : p->a.rows;
    tsvd_status ret = TSVD_OK;

    call->options = *problem->call.options;
    if (p->n == 0 || p->a.batch.matrices == 0 || vectors->columns == 0) {
        goto out;
    }
    TSVD_TRY(call->plan.ops->apply(ctx, &call->job, vectors));
    TSVD_TRY(fill_nonfinite(call, vectors->space, N_PARTS * rows * vectors->columns, vectors->x));
out:
    call->options.check = NULL; /* it was this call's */
    return ret;
}

tsvd_status
tsvdi_reduction_svd(struct dense_call *call, const struct dense_problem *problem, tsvd_info *info,
                    tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    (void)begin_call(call, problem->call.outer, error);
    call->options = *problem->call.options;
    call->problem = *problem;
    call->problem.call.options = &call->options;
    call->plan.inner_count = 0; /* it was of another call */
    if (problem->a.batch.matrices > 0 && (problem->k > 0 || problem->full)) {
        TSVD_TRY(tsvdi_dense_solve(call, info));
    }
    TSVD_TRY(tsvdi_dense_finish_downloads(call));
out:
    call->options.check = NULL; /* they were this call's */
    call->options.part = NULL;
    return ret;
}
