/*
 * One call as an algorithm sees it: what was asked, what is planned, and where errors go.
 */
#ifndef TSVDI_CONTEXT_H
#define TSVDI_CONTEXT_H

#include "backend/precision.h"
#include "host/bytes.h"
#include "host/host.h"

struct backend;
struct values_ops;
struct svd_method;
struct leaf_group; /* cpu/dc/leaves.c */

/* What a call does, decided once (bidiag/plan.c). */
struct svd_plan {
    const struct svd_problem *problem;
    tsvd_plan told; /* as the caller hears of it */
    const struct svd_method *method;
    int by_matrix;    /* values alone: each matrix decides between bisection and QR */
    int side_by_side; /* small matrices of a batch are bisected together */
    const struct backend *backend;
    const struct values_ops *values; /* where values are found */
};

/* One worker's share of a call. */
struct tsvd_context {
    const struct svd_problem *problem;
    const struct svd_plan *plan;
    const tsvd_options *options; /* the problem's */
    tsvd_error *error;           /* never NULL */
    int threads;                 /* that an operation may use */
    int is_caller;               /* runs in the thread that called tsvd_svd */
    int64_t index, count, total; /* the first matrix under work, how many, and the batch */
    double done;                 /* share of the former, as last told to tsvdi_check */
    struct leaf_group *leaves;   /* CPU: workspace of leaves, [threads]; NULL before it is needed */
    struct cuda_call *cuda;      /* CUDA: the handle's; NULL: the CPU */
};

/* Tells the caller that the share `done` of the matrices under work is done; TSVD_ERR_INTERRUPTED
   if it asks to stop.  Every loop that may run for long calls this now and then. */
tsvd_status tsvdi_check(struct tsvd_context *ctx, double done);

/* Workspace on the host, from the handle's allocator; as tsvdi_host_alloc(). */
static inline tsvd_status
tsvdi_alloc(const struct tsvd_context *ctx, size_t bytes, void **p)
{
    return tsvdi_host_alloc(&ctx->problem->handle->host, bytes, ctx->error, p);
}

static inline void
tsvdi_free(const struct tsvd_context *ctx, void *p)
{
    tsvdi_host_free(&ctx->problem->handle->host, p);
}

#endif
