/*
 * The table of methods.
 */
#include "bidiag/methods.h"

static const struct svd_method methods[TSVD_METHOD_COUNT] = {
    [TSVD_METHOD_DC] = {.name = "dc",
                        .with_vectors = 1,
                        .part_vectors = 1,
                        .batches = 1,
                        .needs = NEEDS_DC | NEEDS_VECTORS,
                        .run = tsvdi_dc,
                        .bytes = tsvdi_dc_bytes},
    [TSVD_METHOD_QR] = {.name = "qr",
                        .with_vectors = 1,
                        .without_vectors = 1,
                        .host_entries = 1,
                        .needs = NEEDS_VALUES,
                        .needs_for_vectors = NEEDS_VECTORS,
                        .run = tsvdi_qr,
                        .bytes = tsvdi_qr_bytes},
    [TSVD_METHOD_GIVENS] = {.name = "givens",
                            .with_vectors = 1,
                            .without_vectors = 1,
                            .host_entries = 1,
                            .needs = NEEDS_GIVENS,
                            .needs_for_vectors = NEEDS_VECTORS,
                            .run = tsvdi_givens,
                            .bytes = tsvdi_givens_bytes},
    [TSVD_METHOD_BISECT] = {.name = "bisect",
                            .without_vectors = 1,
                            .batches = 1,
                            .needs = NEEDS_VALUES,
                            .run = tsvdi_bisect,
                            .bytes = tsvdi_bisect_bytes},
};

const struct svd_method *
tsvdi_method_of(tsvd_method method)
{
    return method > TSVD_METHOD_AUTO && method < TSVD_METHOD_COUNT ? &methods[method] : NULL;
}

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
