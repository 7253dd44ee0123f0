/*
 * What the numerical core of a precision offers to the entry points.
 */
#include "bidiag/call.h"
#include "bidiag/methods.h"

static const char *
name_of(tsvd_method method)
{
    const struct svd_method *row = tsvdi_method_of(method);

    return row != NULL ? row->name : method == TSVD_METHOD_AUTO ? "auto" : NULL;
}

static tsvd_status
tell_plan(const struct svd_problem *problem, tsvd_plan *told, tsvd_error *error)
{
    struct svd_plan plan;
    tsvd_status ret = tsvdi_plan_call(problem, &plan, error);

    *told = plan.told;
    return ret;
}

const struct precision tsvdi_precision = {
    .plan = tell_plan,
    .svd = tsvdi_svd,
    .select = tsvdi_select,
    .method_name = name_of,
};
