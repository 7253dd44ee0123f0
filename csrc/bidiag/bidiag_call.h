/*
 * A call for bidiagonal matrices: its plan and its run, and what calls for dense ones share with
 * it.
 */
#ifndef TSVDI_BIDIAG_CALL_H
#define TSVDI_BIDIAG_CALL_H

#include "backend/ops.h"

/* plan.c: what a call does.  On TSVD_ERR_LIBRARY reported.needs_blas is filled all the same. */
tsvd_status tsvdi_plan_call(const struct svd_problem *problem, struct svd_plan *plan,
                            tsvd_error *error);

/* svd.c and select.c, see struct precision. */
tsvd_status tsvdi_svd(const struct svd_plan *plan, tsvd_info *info, tsvd_error *error);
tsvd_status tsvdi_select(const struct svd_problem *problem, double low, double high, int64_t *first,
                         int64_t *count, tsvd_error *error);

/* svd.c: adds what a part of a call did to what the call did. */
void tsvdi_add_info(const tsvd_info *part, tsvd_info *info);

/* A plan of arrays that cannot be addressed. */
static inline void
plan_too_large(const struct backend *backend, tsvd_plan *reported)
{
    reported->result_bytes = reported->host_bytes = BYTES_TOO_MANY;
    reported->device_bytes = backend->has_memory ? BYTES_TOO_MANY : 0;
}

static inline int
plan_is_too_large(const tsvd_plan *reported)
{
    return reported->host_bytes == BYTES_TOO_MANY || reported->device_bytes == BYTES_TOO_MANY;
}

/* Bytes of the rotations and powers of `count` matrices with an extra column. */
static inline uint64_t
extra_bytes(int64_t count, int64_t n)
{
    return bytes_add(bytes_of(count, bytes_of(n, sizeof(struct rotation))),
                     bytes_of(count, sizeof(int)));
}

/* svd.c: host memory for the matrices of a chunk, in one piece; to be freed as chunk->d. */
tsvd_status tsvdi_chunk_alloc(struct tsvd_context *ctx, struct chunk *chunk);

#endif
