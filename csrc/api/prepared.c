/*
 * Prepared calls: arguments that are checked once, with their plan, and run as often as one likes.
 */
#include <string.h>

#include "api/api_call.h"
#include "api/overlap.h"
#include "api/problem.h"
#include "backend/plan.h"
#include "backend/precision.h"
#include "host/blas.h"
#include "host/dtype.h"
#include "host/environment.h"
#include "host/host.h"

/* The problem and its plan, of one of three kinds.  The plan points to the problem, and that to the
   options. */
struct tsvd_prepared {
    enum { PREPARED_SVD, PREPARED_DENSE, PREPARED_INVERSE } kind;
    int takes_blas; /* 1: the plan goes by the BLAS that the handle had */
    tsvd_options options;
    union {
        struct {
            struct svd_problem problem;
            struct svd_plan plan;
        } svd;
        struct {
            struct dense_problem problem;
            struct dense_plan plan;
        } dense;
        struct {
            struct inverse_problem problem;
            tsvd_plan plan;
        } inverse;
    } of;
};

static tsvd_handle *
handle_of(const tsvd_prepared *prepared)
{
    switch (prepared->kind) {
    case PREPARED_SVD:
        return prepared->of.svd.problem.call.handle;
    case PREPARED_DENSE:
        return prepared->of.dense.problem.call.handle;
    default:
        return prepared->of.inverse.problem.call.handle;
    }
}

/* Whether it is of complex matrices. */
static int
is_complex(const tsvd_prepared *prepared)
{
    switch (prepared->kind) {
    case PREPARED_SVD:
        return 0;
    case PREPARED_DENSE:
        return dtype_is_complex(prepared->of.dense.problem.a.dtype);
    default:
        return dtype_is_complex(prepared->of.inverse.problem.a.dtype);
    }
}

/* What tsvd_make_plan() and its like report. */
static const tsvd_plan *
reported_of(const tsvd_prepared *prepared)
{
    switch (prepared->kind) {
    case PREPARED_SVD:
        return &prepared->of.svd.plan.reported;
    case PREPARED_DENSE:
        return &prepared->of.dense.plan.reported;
    default:
        return &prepared->of.inverse.plan;
    }
}

/* Keeps the memory of a prepared call for the next one. */
static void
give_back(tsvd_handle *handle, tsvd_prepared *made)
{
    if (handle->spare == NULL) {
        handle->spare = made;
    } else {
        tsvdi_host_free(&handle->host, made);
    }
}

/* Begins a prepared call: *made, with options alone in it. */
static tsvd_status
begin(tsvd_handle *handle, const tsvd_options *options, tsvd_space to, tsvd_plan *plan,
      tsvd_prepared **prepared, tsvd_prepared **made, tsvd_error *error)
{
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_status ret = TSVD_OK;

    *made = NULL;
    if (prepared != NULL) {
        *prepared = NULL;
    }
    TSVD_TRY(tsvdi_begin_plan(plan, error));
    if (handle == NULL || prepared == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "handle and prepared must not be NULL");
    }
    if (to != TSVD_HOST && (to != TSVD_CUDA || handle->device == TSVD_DEVICE_CPU)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the results have no space %d of this handle to lie in", (int)to);
    }
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    *made = handle->spare; /* to take it anew would cost small matrices time */
    handle->spare = NULL;
    if (*made == NULL) {
        TSVD_TRY(tsvdi_host_alloc(&handle->host, sizeof **made, error, (void **)made));
    }
    (*made)->options = *taken;
out:
    return ret;
}

/* Ends it: *prepared is `made`, or NULL after a failure.  *plan, if wanted, is filled also then,
   with what is known. */
static tsvd_status
finish(tsvd_status status, tsvd_handle *handle, tsvd_plan *plan, tsvd_prepared **prepared,
       tsvd_prepared *made, tsvd_error *error)
{
    if (made != NULL) {
        tsvdi_end_plan(plan, reported_of(made));
    }
    if (status == TSVD_OK) {
        made->takes_blas =
            reported_of(made)->needs_blas && tsvdi_blas_ready(&handle->blas, is_complex(made));
        *prepared = made;
    } else if (made != NULL) {
        give_back(handle, made);
    }
    return tsvdi_call_finish(status, error);
}

tsvd_status
tsvd_prepare(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
             const tsvd_options *options, int vectors, tsvd_space to, tsvd_plan *plan,
             tsvd_prepared **prepared, tsvd_error *error)
{
    tsvd_prepared *made;
    struct svd_problem *problem;
    struct svd_plan *whole;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(begin(handle, options, to, plan, prepared, &made, error));
    made->kind = PREPARED_SVD;
    problem = &made->of.svd.problem;
    whole = &made->of.svd.plan;
    memset(whole, 0, sizeof *whole);
    TSVD_TRY(tsvdi_problem_input(handle, d, e, &made->options, 0, problem, error));
    tsvdi_problem_wants(problem, vectors);
    problem->call.to = to;
    TSVD_CALL(handle, error, tsvdi_precision_of(problem->dtype)->plan(problem, whole, error));
out:
    return finish(ret, handle, plan, prepared, made, error);
}

tsvd_status
tsvd_dense_prepare(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
                   int vectors, tsvd_space to, tsvd_plan *plan, tsvd_prepared **prepared,
                   tsvd_error *error)
{
    tsvd_prepared *made;
    struct dense_problem *problem;
    struct dense_plan *whole;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(begin(handle, options, to, plan, prepared, &made, error));
    made->kind = PREPARED_DENSE;
    problem = &made->of.dense.problem;
    whole = &made->of.dense.plan;
    memset(whole, 0, sizeof *whole);
    TSVD_TRY(tsvdi_dense_input(handle, a, &made->options, 0, problem, error));
    tsvdi_dense_wants(problem, vectors);
    problem->call.to = to;
    TSVD_CALL(handle, error,
              tsvdi_precision_of(problem->a.dtype)->dense_plan(problem, whole, error));
out:
    return finish(ret, handle, plan, prepared, made, error);
}

tsvd_status
tsvd_inverse_prepare(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
                     int refine, tsvd_space to, tsvd_plan *plan, tsvd_prepared **prepared,
                     tsvd_error *error)
{
    tsvd_prepared *made;
    struct inverse_problem *problem;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(begin(handle, options, to, plan, prepared, &made, error));
    made->kind = PREPARED_INVERSE;
    problem = &made->of.inverse.problem;
    memset(&made->of.inverse.plan, 0, sizeof made->of.inverse.plan);
    TSVD_TRY(tsvdi_inverse_input(handle, a, &made->options, 0, refine, problem, error));
    problem->call.to = to;
    TSVD_CALL(
        handle, error,
        tsvdi_precision_of(problem->a.dtype)->inverse_plan(problem, &made->of.inverse.plan, error));
out:
    return finish(ret, handle, plan, prepared, made, error);
}

void
tsvd_prepared_destroy(tsvd_prepared *prepared)
{
    if (prepared != NULL) {
        give_back(handle_of(prepared), prepared);
    }
}

void
tsvd_prepared_set_check(tsvd_prepared *prepared, int (*check)(void *check_arg, double done),
                        void *check_arg)
{
    if (prepared != NULL) {
        prepared->options.check = check;
        prepared->options.check_arg = check_arg;
    }
}

/* ---- execution ---- */

/* Refuses what was prepared for another function. */
static tsvd_status
check_kind(const tsvd_prepared *prepared, int kind, tsvd_error *error)
{
    static const char *const name[] = {"tsvd_prepare()", "tsvd_dense_prepare()",
                                       "tsvd_inverse_prepare()"};

    tsvdi_error_clear(error);
    return prepared != NULL && (int)prepared->kind == kind
               ? TSVD_OK
               : tsvdi_fail(error, TSVD_ERR_ARGUMENT, "prepared must come from %s", name[kind]);
}

/* The same as tsvdi_check_data(), if there are any numbers. */
static tsvd_status
check_data(tsvd_space space, tsvd_dtype dtype, const void *data, int64_t numbers, const char *name,
           tsvd_error *error)
{
    return numbers == 0 ? TSVD_OK : tsvdi_check_data(space, dtype, data, name, error);
}

/* Refuses a batch whose arrays cannot be addressed, and a BLAS that was taken from the handle. */
static tsvd_status
check_runnable(const tsvd_prepared *prepared, const struct batch *batch, int64_t n,
               tsvd_error *error)
{
    if (batch->too_large) {
        return tsvdi_host_too_large(error, "the arrays", n);
    }
    if (prepared->takes_blas &&
        !tsvdi_blas_ready(&handle_of(prepared)->blas, is_complex(prepared))) {
        tsvdi_advise(error, "call tsvd_set_blas() with a BLAS, or prepare the call anew");
        return tsvdi_fail(error, TSVD_ERR_LIBRARY,
                          "the call was prepared with a BLAS, which the handle has no longer");
    }
    return TSVD_OK;
}

/* tsvd_execute(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
execute(tsvd_prepared *prepared, const void *d, const void *e, void *L, void *s, void *R,
        struct host_environment *outer, tsvd_info *info, tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct svd_problem *p;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_kind(prepared, PREPARED_SVD, error));
    p = &prepared->of.svd.problem;
    TSVD_TRY(check_runnable(prepared, &p->batch, p->n, error));
    if (p->batch.matrices > 0) {
        TSVD_TRY(check_data(p->from, p->dtype, d, p->n, "d", error));
        TSVD_TRY(check_data(p->from, p->dtype, e, entries_of_e(p), "e", error));
        TSVD_TRY(check_data(p->call.to, p->dtype, s, p->k, "s", error));
        TSVD_TRY(check_data(p->call.to, p->dtype, L, p->vectors ? p->k : 0, "L", error));
        TSVD_TRY(check_data(p->call.to, p->dtype, R, p->vectors ? p->k : 0, "R", error));
    }
    p->d.data = d;
    p->e.data = e;
    p->s = s;
    p->L = p->vectors ? L : NULL;
    p->R = p->vectors ? R : NULL;
    p->call.outer = outer;
    TSVD_TRY(tsvdi_check_apart(p, error));
    TSVD_CALL(p->call.handle, error,
              tsvdi_precision_of(p->dtype)->svd(&prepared->of.svd.plan, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_execute(tsvd_prepared *prepared, const void *d, const void *e, void *L, void *s, void *R,
             tsvd_info *info, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = execute(prepared, d, e, L, s, R, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_info(info, filled);
out:
    return ret;
}

/* tsvd_dense_execute(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
dense_execute(tsvd_prepared *prepared, const void *a, void *U, void *S, void *Vh,
              struct host_environment *outer, tsvd_info *info, tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct dense_problem *p;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_kind(prepared, PREPARED_DENSE, error));
    p = &prepared->of.dense.problem;
    TSVD_TRY(check_runnable(prepared, &p->a.batch, p->n, error));
    if (p->a.batch.matrices > 0) {
        TSVD_TRY(check_data(p->a.space, p->a.dtype, a, p->n, "a", error));
        TSVD_TRY(check_data(p->call.to, dtype_of_reals(p->a.dtype), S, p->k, "S", error));
        TSVD_TRY(check_data(p->call.to, p->a.dtype, U,
                            p->vectors ? (p->full ? p->a.rows : p->k) : 0, "U", error));
        TSVD_TRY(check_data(p->call.to, p->a.dtype, Vh,
                            p->vectors ? (p->full ? p->a.columns : p->k) : 0, "Vh", error));
    }
    p->a.data = a;
    p->S = S;
    p->U = p->vectors ? U : NULL;
    p->Vh = p->vectors ? Vh : NULL;
    p->call.outer = outer;
    TSVD_TRY(tsvdi_dense_check_apart(p, error));
    TSVD_CALL(p->call.handle, error,
              tsvdi_precision_of(p->a.dtype)->dense_svd(&prepared->of.dense.plan, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_dense_execute(tsvd_prepared *prepared, const void *a, void *U, void *S, void *Vh,
                   tsvd_info *info, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = dense_execute(prepared, a, U, S, Vh, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_info(info, filled);
out:
    return ret;
}

/* tsvd_inverse_execute(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
inverse_execute(tsvd_prepared *prepared, const void *a, void *X, struct host_environment *outer,
                tsvd_inverse_info *info, tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct inverse_problem *p;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_kind(prepared, PREPARED_INVERSE, error));
    p = &prepared->of.inverse.problem;
    TSVD_TRY(check_runnable(prepared, &p->a.batch, p->a.rows, error));
    if (p->a.batch.matrices > 0) {
        TSVD_TRY(check_data(p->a.space, p->a.dtype, a, p->a.rows, "a", error));
        TSVD_TRY(check_data(p->call.to, p->a.dtype, X, p->a.rows, "X", error));
    }
    p->a.data = a;
    p->X = X;
    p->call.outer = outer;
    TSVD_TRY(tsvdi_inverse_check_apart(p, error));
    TSVD_CALL(p->call.handle, error,
              tsvdi_precision_of(p->a.dtype)->inverse(p, &prepared->of.inverse.plan, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_inverse_execute(tsvd_prepared *prepared, const void *a, void *X, tsvd_inverse_info *info,
                     tsvd_error *error)
{
    struct host_environment outer;
    tsvd_inverse_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_inverse_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = inverse_execute(prepared, a, X, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_inverse_info(info, filled);
out:
    return ret;
}
