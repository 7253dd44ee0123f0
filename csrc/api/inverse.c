/*
 * The entry points for inverses.  They check their arguments, and hand them to the code of their
 * precision, as those of tsvd.c do.
 */
#include <string.h>

#include "api/api_call.h"
#include "api/overlap.h"
#include "api/problem.h"
#include "backend/precision.h"
#include "host/environment.h"
#include "host/host.h"

tsvd_status
tsvd_inverse_plan(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int refine,
                  tsvd_plan *plan, tsvd_error *error)
{
    struct inverse_problem problem;
    tsvd_plan whole;
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
    TSVD_TRY(tsvdi_inverse_input(handle, a, taken, 0, refine, &problem, error));
    TSVD_CALL(handle, error,
              tsvdi_precision_of(problem.a.dtype)->inverse_plan(&problem, &whole, error));
    tsvdi_end_plan(plan, &whole);
out:
    return tsvdi_call_finish(ret, error);
}

static tsvd_status
plan_and_run(const struct inverse_problem *problem, tsvd_inverse_info *info, tsvd_error *error)
{
    const struct precision *precision = tsvdi_precision_of(problem->a.dtype);
    tsvd_plan plan;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(precision->inverse_plan(problem, &plan, error));
    TSVD_TRY(precision->inverse(problem, &plan, info, error));
out:
    return ret;
}

/* tsvd_dense_inverse(), in the default floating-point environment.  outer: the caller's. */
static __attribute__((noinline)) tsvd_status
dense_inverse(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int refine,
              const tsvd_array *X, struct host_environment *outer, tsvd_inverse_info *info,
              tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct inverse_problem problem;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_inverse_input(handle, a, taken, 1, refine, &problem, error));
    TSVD_TRY(tsvdi_inverse_output(X, &problem, error));
    TSVD_TRY(tsvdi_inverse_check_apart(&problem, error));
    problem.call.outer = outer;
    TSVD_CALL(handle, error, plan_and_run(&problem, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_dense_inverse(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options,
                   int refine, const tsvd_array *X, tsvd_inverse_info *info, tsvd_error *error)
{
    struct host_environment outer;
    tsvd_inverse_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_inverse_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = dense_inverse(handle, a, options, refine, X, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_inverse_info(info, filled);
out:
    return ret;
}
