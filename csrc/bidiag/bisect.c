/*
 * Values alone, by bisection with Sturm counts (math/sturm.h): each is found by itself, to full
 * relative accuracy.
 */
#include "backend/method.h"
#include "bidiag/parts.h"

tsvd_status
tsvdi_find_values(struct tsvd_context *ctx, const struct chunk *chunk, const real *hint, real eps,
                  real *s, tsvd_info *info)
{
    const struct svd_problem *p = ctx->problem;
    const struct svd_plan *plan = ctx->plan;
    struct values_job job = {.n = p->n,
                             .count = chunk->count,
                             .first = p->first,
                             .last = p->first + p->k,
                             .chunk = chunk,
                             .hint = hint,
                             .eps = eps,
                             .s = s};
    const double clock = tsvdi_host_seconds();
    /* the CPU finds values on the host: for results in device memory they are copied afterwards */
    const int through_host = plan->values != plan->backend->values && p->call.to != TSVD_HOST;
    const int64_t count = p->k * chunk->count;
    real *found = NULL;
    tsvd_status ret = TSVD_OK;

    if (through_host) {
        TSVD_TRY(tsvdi_alloc(ctx, bytes_of(count, sizeof *found), (void **)&found));
        job.s = found;
    }
    TSVD_TRY(plan->values->find(ctx, &job));
    if (through_host) {
        TSVD_TRY(plan->backend->put_values(ctx, found, count, s));
    }
    info->seconds_values += tsvdi_host_seconds() - clock;
    info->iterations += info->method == TSVD_METHOD_BISECT ? job.counts : 0;
out:
    tsvdi_free(ctx, found);
    return ret;
}

static tsvd_status
run(struct tsvd_context *ctx, const struct chunk *chunk, struct results to, tsvd_info *info)
{
    return tsvdi_find_values(ctx, chunk, NULL, tsvdi_eps(ctx), to.s, info);
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    struct bytes found = {bytes_of(plan->reported.chunk * plan->reported.count, sizeof(real)), 0};

    return bytes_sum(found, plan->values->bytes(plan));
}

const struct method tsvdi_method_bisect = {
    .number = TSVD_METHOD_BISECT,
    .name = "bisect",
    .faster_on_device = FASTER_VALUES,
    .without_vectors = 1,
    .batches = 1,
    .needs = NEEDS_VALUES,
    .run = run,
    .bytes = bytes,
};
