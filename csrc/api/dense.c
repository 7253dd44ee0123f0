/*
 * The entry points for dense matrices.  Each checks its arguments, and hands them to the code of
 * their precision, as those of tsvd.c do.
 */
#include <string.h>

#include "api/api_call.h"
#include "api/overlap.h"
#include "api/problem.h"
#include "backend/precision.h"
#include "host/environment.h"
#include "host/host.h"

struct tsvd_reduction {
    struct dense_problem problem; /* as it was when the reduction was made; `a` is not read again */
    struct dense_call *call;
};

static const struct precision *
precision_of(const struct dense_problem *problem)
{
    return tsvdi_precision_of(problem->a.dtype);
}

tsvd_status
tsvd_dense_plan(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int vectors,
                tsvd_plan *plan, tsvd_error *error)
{
    struct dense_problem problem;
    struct dense_plan whole;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    tsvdi_error_clear(error);
    if (plan == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "plan must not be NULL");
    }
    memset(&whole, 0, sizeof whole);
    TSVD_TRY(tsvdi_begin_plan(plan, error));
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_dense_input(handle, a, taken, 0, &problem, error));
    tsvdi_dense_wants(&problem, vectors);
    TSVD_CALL(handle, error, precision_of(&problem)->dense_plan(&problem, &whole, error));
    tsvdi_end_plan(plan, &whole.reported);
out:
    return tsvdi_call_finish(ret, error);
}

static tsvd_status
plan_and_run(const struct dense_problem *problem, tsvd_info *info, tsvd_error *error)
{
    struct dense_plan plan;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(precision_of(problem)->dense_plan(problem, &plan, error));
    TSVD_TRY(precision_of(problem)->dense_svd(&plan, info, error));
out:
    return ret;
}

/* tsvd_dense_svd(), in the default floating-point environment.  outer: the caller's. */
static __attribute__((noinline)) tsvd_status
dense_svd(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
          const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh,
          struct host_environment *outer, tsvd_info *info, tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct dense_problem problem;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_dense_input(handle, a, taken, 1, &problem, error));
    TSVD_TRY(tsvdi_dense_output(U, S, Vh, &problem, error));
    TSVD_TRY(tsvdi_dense_check_apart(&problem, error));
    problem.call.outer = outer;
    TSVD_CALL(handle, error, plan_and_run(&problem, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_dense_svd(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
               const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh, tsvd_info *info,
               tsvd_error *error)
{
    struct host_environment outer;
    tsvd_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = dense_svd(handle, a, options, U, S, Vh, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_info(info, filled);
out:
    return ret;
}

/* ---- reductions that are kept ---- */

/* A saved state; NULL: there is none, and the matrices are reduced. */
struct saved {
    const void *state;
    uint64_t bytes;
};

/* tsvd_dense_reduce() and tsvd_reduction_restore(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
make_reduction(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
               struct saved saved, struct host_environment *outer, tsvd_reduction **reduction,
               tsvd_error *error)
{
    const struct precision *precision;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_reduction *made = NULL;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    tsvdi_error_clear(error);
    if (handle == NULL || reduction == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "handle and reduction must not be NULL");
    }
    *reduction = NULL;
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_host_alloc(&handle->host, sizeof *made, error, (void **)&made));
    made->call = NULL;
    made->problem.call.handle = handle;
    TSVD_TRY(tsvdi_dense_input(handle, a, taken, saved.state == NULL, &made->problem, error));
    made->problem.call.outer = outer;
    precision = precision_of(&made->problem);
    if (saved.state == NULL) {
        TSVD_CALL(handle, error, precision->reduce_begin(&made->problem, &made->call, error));
    } else {
        TSVD_CALL(handle, error,
                  precision->reduce_restore(&made->problem, saved.state, saved.bytes, &made->call,
                                            error));
    }
    if (ret == TSVD_OK) {
        *reduction = made;
        made = NULL;
    }
out:
    if (made != NULL && made->call != NULL) {
        tsvd_reduction_destroy(made);
    } else if (made != NULL) {
        tsvdi_host_free(&handle->host, made);
    }
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_dense_reduce(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
                  tsvd_reduction **reduction, tsvd_error *error)
{
    const struct saved none = {NULL, 0};
    struct host_environment outer;
    tsvd_status ret;

    tsvdi_environment_enter(&outer);
    ret = make_reduction(handle, a, options, none, &outer, reduction, error);
    tsvdi_environment_leave(&outer);
    return ret;
}

tsvd_status
tsvd_reduction_restore(tsvd_handle *handle, const tsvd_array *a, const void *state, uint64_t bytes,
                       tsvd_reduction **reduction, tsvd_error *error)
{
    const struct saved saved = {state, bytes};
    struct host_environment outer;
    tsvd_error own;
    tsvd_status ret;

    if (state == NULL) {
        error = error != NULL ? error : &own;
        tsvdi_error_clear(error);
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "state must not be NULL");
    }
    tsvdi_environment_enter(&outer);
    ret = make_reduction(handle, a, NULL, saved, &outer, reduction, error);
    tsvdi_environment_leave(&outer);
    return ret;
}

void
tsvd_reduction_destroy(tsvd_reduction *reduction)
{
    if (reduction != NULL) {
        tsvd_handle *handle = reduction->problem.call.handle;
        tsvd_error error;
        const tsvd_status entered = tsvdi_call_enter(handle, &error);

        precision_of(&reduction->problem)->reduce_end(reduction->call);
        tsvdi_call_leave(handle, entered);
        tsvdi_host_free(&handle->host, reduction);
    }
}

/* Begins a call on a reduction. */
static tsvd_status
check_reduction(const tsvd_reduction *reduction, tsvd_error *error)
{
    tsvdi_error_clear(error);
    return reduction != NULL ? TSVD_OK
                             : tsvdi_fail(error, TSVD_ERR_ARGUMENT, "reduction must not be NULL");
}

tsvd_status
tsvd_reduction_entries(const tsvd_reduction *reduction, const tsvd_array *d, const tsvd_array *e,
                       tsvd_error *error)
{
    const struct dense_problem *p;
    struct host_environment outer;
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own;
    TSVD_TRY(check_reduction(reduction, error));
    p = &reduction->problem;
    if (d == NULL || (e == NULL && p->n > 1)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "d and e must not be NULL");
    }
    TSVD_TRY(tsvdi_dense_array(p, d, "d", p->n, -1, error));
    if (e != NULL) {
        TSVD_TRY(tsvdi_dense_array(p, e, "e", p->n > 0 ? p->n - 1 : 0, -1, error));
        if (d->space != e->space) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "d and e must lie in one space");
        }
        TSVD_TRY(tsvdi_check_two_apart(d, "d", e, "e", error));
    }
    tsvdi_environment_enter(&outer);
    TSVD_CALL(p->call.handle, error,
              precision_of(p)->reduce_entries(reduction->call, d->space, d->data,
                                              e != NULL ? e->data : NULL, error));
    tsvdi_environment_leave(&outer);
out:
    return tsvdi_call_finish(ret, error);
}

/* tsvd_reduction_select(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
reduction_select(tsvd_reduction *reduction, double low, double high, int64_t *first, int64_t *count,
                 tsvd_error *error)
{
    const struct dense_problem *p;
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own;
    TSVD_TRY(check_reduction(reduction, error));
    if (first == NULL || count == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "first and count must not be NULL");
    }
    p = &reduction->problem;
    TSVD_TRY(tsvdi_check_interval(&p->a.batch, low, high, error));
    TSVD_CALL(p->call.handle, error,
              precision_of(p)->reduce_select(reduction->call, low, high, first, count, error));
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_reduction_select(tsvd_reduction *reduction, double low, double high, int64_t *first,
                      int64_t *count, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_status ret;

    tsvdi_environment_enter(&outer);
    ret = reduction_select(reduction, low, high, first, count, error);
    tsvdi_environment_leave(&outer);
    return ret;
}

/* tsvd_reduction_apply(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
reduction_apply(tsvd_reduction *reduction, tsvd_side side, int transposed, const tsvd_array *x,
                const tsvd_options *options, struct host_environment *outer, tsvd_error *error)
{
    struct dense_problem problem;
    const struct dense_problem *p = &problem;
    struct dense_vectors vectors;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(check_reduction(reduction, error));
    problem = reduction->problem;
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_dense_options(taken, &problem, error));
    problem.call.outer = outer;
    if (x == NULL || (side != TSVD_LEFT && side != TSVD_RIGHT)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "x must not be NULL, and side TSVD_LEFT or TSVD_RIGHT");
    }
    if (x->ndim != p->a.batch.ndim + 2) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "x has %d dimensions, not %d", x->ndim,
                          p->a.batch.ndim + 2);
    }
    vectors.columns = x->shape[x->ndim - 1];
    TSVD_TRY(tsvdi_dense_array(p, x, "x", side == TSVD_RIGHT ? p->a.columns : p->a.rows,
                               vectors.columns, error));
    vectors.x = x->data;
    vectors.space = x->space;
    vectors.right = side == TSVD_RIGHT;
    vectors.transposed = transposed != 0;
    TSVD_CALL(p->call.handle, error,
              precision_of(p)->reduce_apply(reduction->call, p, &vectors, error));
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_reduction_apply(tsvd_reduction *reduction, tsvd_side side, int transposed, const tsvd_array *x,
                     const tsvd_options *options, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_status ret;

    tsvdi_environment_enter(&outer);
    ret = reduction_apply(reduction, side, transposed, x, options, &outer, error);
    tsvdi_environment_leave(&outer);
    return ret;
}

/* tsvd_reduction_svd(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
reduction_svd(tsvd_reduction *reduction, const tsvd_options *options, const tsvd_array *U,
              const tsvd_array *S, const tsvd_array *Vh, struct host_environment *outer,
              tsvd_info *info, tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct dense_problem problem;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_reduction(reduction, error));
    problem = reduction->problem;
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_dense_options(taken, &problem, error));
    TSVD_TRY(tsvdi_dense_output(U, S, Vh, &problem, error));
    TSVD_TRY(tsvdi_dense_check_results_apart(&problem, error));
    problem.call.outer = outer;
    TSVD_CALL(problem.call.handle, error,
              precision_of(&problem)->reduce_svd(reduction->call, &problem, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_reduction_svd(tsvd_reduction *reduction, const tsvd_options *options, const tsvd_array *U,
                   const tsvd_array *S, const tsvd_array *Vh, tsvd_info *info, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = reduction_svd(reduction, options, U, S, Vh, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_info(info, filled);
out:
    return ret;
}

uint64_t
tsvd_reduction_state_bytes(const tsvd_reduction *reduction)
{
    return reduction == NULL
               ? 0
               : precision_of(&reduction->problem)->reduce_state_bytes(reduction->call);
}

tsvd_status
tsvd_reduction_save(const tsvd_reduction *reduction, void *state, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own;
    TSVD_TRY(check_reduction(reduction, error));
    if (state == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "state must not be NULL");
    }
    tsvdi_environment_enter(&outer);
    TSVD_CALL(reduction->problem.call.handle, error,
              precision_of(&reduction->problem)->reduce_save(reduction->call, state, error));
    tsvdi_environment_leave(&outer);
out:
    return tsvdi_call_finish(ret, error);
}
