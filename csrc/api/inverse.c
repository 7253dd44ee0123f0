/*
 * The entry points for inverses.  They check their arguments, and hand them to the code of their
 * precision, as those of tsvd.c do.
 */
#include <string.h>

#include "api/api_call.h"
#include "api/problem.h"
#include "backend/precision.h"
#include "host/environment.h"
#include "host/host.h"

/* The matrices, which must be square. */
static tsvd_status
take_input(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int data,
           struct dense_problem *problem, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_dense_input(handle, a, options, data, problem, error));
    if (problem->rows != problem->columns) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "a is %lld x %lld and must be square",
                          (long long)problem->rows, (long long)problem->columns);
    }
    if (problem->b.k != problem->b.n) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "an inverse has no part of the values");
    }
    problem->b.vectors = 1;
out:
    return ret;
}

tsvd_status
tsvd_inverse_plan(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int refine,
                  tsvd_plan *plan, tsvd_error *error)
{
    struct dense_problem problem;
    tsvd_options own_options;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    options = tsvdi_options_or_default(options, &own_options);
    tsvdi_error_clear(error);
    if (plan == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "plan must not be NULL");
    }
    memset(plan, 0, sizeof *plan);
    TSVD_TRY(take_input(handle, a, options, 0, &problem, error));
    TSVD_CALL(
        handle, error,
        tsvdi_precision_of(problem.b.dtype)->inverse_plan(&problem, refine != 0, plan, error));
out:
    return tsvdi_call_finish(ret, error);
}

/* tsvd_dense_inverse(), in the default floating-point environment.  outer: the caller's. */
static __attribute__((noinline)) tsvd_status
dense_inverse(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int refine,
              const tsvd_array *X, struct host_environment *outer, tsvd_inverse_info *info,
              tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct dense_problem problem;
    tsvd_options own_options;
    tsvd_inverse_info own_info;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    info = info != NULL ? info : &own_info;
    options = tsvdi_options_or_default(options, &own_options);
    tsvdi_error_clear(error);
    memset(info, 0, sizeof *info);
    info->matrix = -1;
    TSVD_TRY(take_input(handle, a, options, 1, &problem, error));
    if (X == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "X must not be NULL");
    }
    TSVD_TRY(tsvdi_dense_array(&problem, X, "X", problem.rows, problem.columns, error));
    problem.b.L = X->data;
    problem.b.to = X->space;
    problem.b.outer = outer;
    TSVD_CALL(handle, error,
              tsvdi_precision_of(problem.b.dtype)->inverse(&problem, refine != 0, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_dense_inverse(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
                   int refine, const tsvd_array *X, tsvd_inverse_info *info, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_status ret;

    tsvdi_environment_enter(&outer);
    ret = dense_inverse(handle, a, options, refine, X, &outer, info, error);
    tsvdi_environment_leave(&outer);
    return ret;
}
