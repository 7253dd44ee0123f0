/*
 * A call: its plan and its run.
 */
#ifndef TSVDI_CALL_H
#define TSVDI_CALL_H

#include "backend/ops.h"

/* plan.c: what a call does.  On TSVD_ERR_LIBRARY reported.needs_blas is filled all the same. */
tsvd_status tsvdi_plan_call(const struct svd_problem *problem, struct svd_plan *plan,
                            tsvd_error *error);

/* svd.c and select.c, see struct precision. */
tsvd_status tsvdi_svd(const struct svd_plan *plan, tsvd_info *info, tsvd_error *error);
tsvd_status tsvdi_select(const struct svd_problem *problem, double low, double high, int64_t *first,
                         int64_t *count, tsvd_error *error);

/* svd.c: host memory for the matrices of a chunk, in one piece; to be freed as chunk->d. */
tsvd_status tsvdi_chunk_alloc(struct tsvd_context *ctx, struct chunk *chunk);

#endif
