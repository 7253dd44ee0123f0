/*
 * What algorithms and back ends ask of the caller: whether to go on, and what the other parts of a
 * larger call have found.
 */
#include <math.h>

#include "backend/context.h"
#include "host/environment.h"

/* A function of the caller's runs in the caller's floating-point environment, and may change it.
   So it is between these two. */
static void
leave_for_caller(const struct tsvd_context *ctx, struct host_environment *own)
{
    tsvdi_environment_enter(own);
    tsvdi_environment_leave(ctx->call->outer);
}

static void
return_from_caller(const struct tsvd_context *ctx, const struct host_environment *own)
{
    tsvdi_environment_enter(ctx->call->outer);
    tsvdi_environment_leave(own);
}

tsvd_status
tsvdi_check(struct tsvd_context *ctx, double done)
{
    const tsvd_options *o = ctx->options;
    const unsigned forks = tsvdi_host_forks();
    struct host_environment own;
    int stop;

    ctx->done = done;
    if (ctx->failed != NULL && __atomic_load_n(ctx->failed, __ATOMIC_RELAXED) > 0) {
        return tsvdi_fail(ctx->error, TSVD_ERR_INTERRUPTED, TSVDI_OTHER_FAILED);
    }
    if (o->check == NULL || !ctx->is_caller) {
        return TSVD_OK;
    }
    /* progress never falls: where twisted gives up and dc starts over, the old share stays until dc
       has passed it.  ctx->progress is in memory, so it is computed before the environment changes;
       a number in a register might be computed after it. */
    ctx->progress =
        fmax(ctx->progress, ((double)ctx->index + done * (double)ctx->count) / (double)ctx->total);
    leave_for_caller(ctx, &own);
    stop = o->check(o->check_arg, ctx->progress);
    return_from_caller(ctx, &own);
    /* a child that check() has forked lacks the threads that may work on this call */
    return stop || tsvdi_host_forks() != forks ? TSVD_ERR_INTERRUPTED : TSVD_OK;
}

tsvd_status
tsvdi_sum_over_parts(const struct tsvd_context *ctx, int64_t count, double *x)
{
    const tsvd_part *part = ctx->options->part;
    struct host_environment own;
    int stop;

    if (part == NULL || part->sum == NULL) {
        return TSVD_OK;
    }
    leave_for_caller(ctx, &own);
    stop = part->sum(part->sum_arg, x, count);
    return_from_caller(ctx, &own);
    return stop ? TSVD_ERR_INTERRUPTED : TSVD_OK;
}
