/*
 * The question whether to go on, which algorithms and back ends ask of the caller.
 */
#include <math.h>

#include "backend/context.h"
#include "host/environment.h"

tsvd_status
tsvdi_check(struct tsvd_context *ctx, double done)
{
    const tsvd_options *o = ctx->options;
    const unsigned forks = tsvdi_host_forks();
    struct host_environment own;
    int stop;

    ctx->done = done;
    if (o->check == NULL || !ctx->is_caller) {
        return TSVD_OK;
    }
    /* progress never falls: where twisted gives up and dc starts over, the old share stays until dc
       has passed it */
    ctx->progress =
        fmax(ctx->progress, ((double)ctx->index + done * (double)ctx->count) / (double)ctx->total);
    /* check() runs in the caller's floating-point environment, and may change it.  ctx->progress is
       in memory, so it is computed before the switch; a number in a register might be computed
       after it. */
    tsvdi_environment_enter(&own);
    tsvdi_environment_leave(ctx->call->outer);
    stop = o->check(o->check_arg, ctx->progress);
    tsvdi_environment_enter(ctx->call->outer);
    tsvdi_environment_leave(&own);
    /* a child that check() has forked lacks the threads that may work on this call */
    return stop || tsvdi_host_forks() != forks ? TSVD_ERR_INTERRUPTED : TSVD_OK;
}
