/*
 * What the numerical core of a precision offers to the entry points.
 */
#include "bidiag/bidiag_call.h"
#include "dense/dense_call.h"
#include "dense/methods.h"

/* Whether AUTO takes one-sided Jacobi. */
static int
jacobi_serves(const struct dense_problem *p)
{
    const struct jacobi_ops *jacobi = tsvdi_backend_of(p->call.handle)->jacobi;

    return jacobi != NULL && jacobi->pays != NULL && jacobi->pays(p);
}

/* The method that decomposes A without a reduction; NULL: A is reduced. */
static const struct method *
direct_method(const struct dense_problem *p)
{
    const tsvd_options *o = p->call.options;

    if (p->method != NULL) {
        return p->method->dense_plan != NULL ? p->method : NULL;
    }
    if (o->eps >= 0 || o->max_sweeps != 0 || o->dense_stages != 0) {
        return NULL; /* these are of a reduction and the SVD of B */
    }
    return tsvdi_small_serves(p) ? &tsvdi_method_small
           : jacobi_serves(p)    ? &tsvdi_method_jacobi
                                 : NULL;
}

static tsvd_status
dense_plan(const struct dense_problem *problem, struct dense_plan *plan, tsvd_error *error)
{
    const struct method *direct = direct_method(problem);
    tsvd_status ret = TSVD_OK;

    ret = direct != NULL ? direct->dense_plan(problem, &plan->reported, error)
                         : tsvdi_dense_plan_call(problem, KEEP_VECTORS, plan, error);
    plan->problem = problem;
    plan->direct = direct;
    return ret;
}

static tsvd_status
dense_svd(const struct dense_plan *plan, tsvd_info *info, tsvd_error *error)
{
    return plan->direct != NULL
               ? plan->direct->dense_svd(plan->problem, &plan->reported, info, error)
               : tsvdi_dense_svd(plan, info, error);
}

const struct precision tsvdi_precision = {
    .plan = tsvdi_plan_call,
    .svd = tsvdi_svd,
    .select = tsvdi_select,
    .dense_plan = dense_plan,
    .dense_svd = dense_svd,
    .reduce_begin = tsvdi_reduction_begin,
    .reduce_restore = tsvdi_reduction_restore,
    .reduce_end = tsvdi_reduction_end,
    .reduce_entries = tsvdi_reduction_entries,
    .reduce_select = tsvdi_reduction_select,
    .reduce_apply = tsvdi_reduction_apply,
    .reduce_svd = tsvdi_reduction_svd,
    .reduce_state_bytes = tsvdi_reduction_state_bytes,
    .reduce_save = tsvdi_reduction_save,
    .inverse_plan = tsvdi_inverse_plan_call,
    .inverse = tsvdi_inverse,
    .orient_by_column = tsvdi_dense_orient_by_column,
    .method_of = tsvdi_method_of,
};
