/*
 * One call as an algorithm sees it: what was asked, what is planned, and where errors go.
 */
#ifndef TSVDI_CONTEXT_H
#define TSVDI_CONTEXT_H

#include "backend/plan.h"
#include "backend/precision.h"
#include "host/bytes.h"
#include "host/host.h"

/* What the functions of a worker are given.  In a call for dense matrices there is no `problem` and
   no `plan`: the SVD of B within it has a context of its own. */
struct tsvd_context {
    const struct call_args *call;      /* the arguments that all calls have */
    const tsvd_options *options;       /* call->options, but for the eps of an extra column */
    const struct svd_problem *problem; /* the bidiagonal matrices; or NULL */
    const struct svd_plan *plan;       /* what is done with them; or NULL */
    tsvd_error *error;                 /* never NULL */
    int threads;                       /* threads that an operation may use */
    int is_caller;                     /* 1: its thread is the one that made the call */
    int64_t index, count, total;       /* first matrix under work, their number, batch size */
    double done;       /* progress within the matrices under work, as last given to tsvdi_check() */
    double progress;   /* of the whole call, as last given to options->check(); it never falls */
    const int *failed; /* not 0 there: another part of the call has failed; NULL: never */
    void
        *worker_state; /* what the back end keeps of a worker, from open() to close(); at first NULL
                         */
};

/* check.c: tells the caller that the share `done` of the matrices under work is done.  The
   status is TSVD_ERR_INTERRUPTED if the caller asks to stop.  Every loop that may run for long
   calls this now and then. */
tsvd_status tsvdi_check(struct tsvd_context *ctx, double done);

/* check.c: if the call is a part of a larger one, adds x [count] up over all parts.  The threads
   that made the calls of the parts come here in the same order.  Else x stays as it is. */
tsvd_status tsvdi_sum_over_parts(const struct tsvd_context *ctx, int64_t count, double *x);

/* Makes a decision of all parts alike: *reasons, how many there are against something, becomes
   those of all parts. */
static inline tsvd_status
tsvdi_agree(const struct tsvd_context *ctx, int64_t *reasons)
{
    double x = (double)*reasons;
    const tsvd_status status = tsvdi_sum_over_parts(ctx, 1, &x);

    *reasons = (int64_t)x;
    return status;
}

/* The error is that of a matrix of the call. */
static inline void
tsvdi_blame(const struct tsvd_context *ctx, int64_t matrix)
{
    ctx->error->matrix = matrix;
}

/* Takes workspace on the host from the handle's allocator, as tsvdi_host_alloc() does. */
static inline tsvd_status
tsvdi_alloc(const struct tsvd_context *ctx, size_t bytes, void **p)
{
    return tsvdi_host_alloc(&ctx->call->handle->host, bytes, ctx->error, p);
}

static inline void
tsvdi_free(const struct tsvd_context *ctx, void *p)
{
    tsvdi_host_free(&ctx->call->handle->host, p);
}

#endif
