/*
 * Twisted factorisations: the vectors of each value by themselves, in O(n) operations each; the
 * mathematics is in math/twisted.h.  The results pass gates and probes.  A matrix with a value that
 * does not pass goes to divide and conquer as a whole: values that are hard for the one method,
 * those close together, are the ones that deflate in the other.
 */
#include "backend/method.h"
#include "bidiag/parts.h"

/* Values, vectors, probes, as long as nothing is refused.  *pays: 0 if divide and conquer is likely
   to be faster for AUTO; nothing is computed then.  The parts of a larger call go the same way. */
static tsvd_status
attempt(struct tsvd_context *ctx, struct twisted_job *job, int *pays, tsvd_info *info)
{
    const struct twisted_ops *ops = ctx->plan->backend->twisted;
    double clock = tsvdi_host_seconds(), now;
    int64_t against;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(ops->begin(ctx, job));
    if (job->refused == 0 && ctx->problem->method == NULL) {
        TSVD_TRY(ops->pays(ctx, job, pays));
        against = !*pays;
        TSVD_TRY(tsvdi_agree(ctx, &against));
        *pays = against == 0;
    }
    if (job->refused == 0 && *pays) {
        TSVD_TRY(ops->values(ctx, job));
    }
    now = tsvdi_host_seconds();
    info->seconds_values += now - clock;
    if (*pays) {
        TSVD_TRY(tsvdi_agree(ctx, &job->refused));
    }
    if (job->refused == 0 && *pays) {
        TSVD_TRY(ops->vectors(ctx, job));
        TSVD_TRY(tsvdi_agree(ctx, &job->refused));
    }
    if (job->refused == 0 && *pays) {
        TSVD_TRY(ops->probe(ctx, job));
        TSVD_TRY(tsvdi_agree(ctx, &job->refused));
    }
    info->seconds_vectors += tsvdi_host_seconds() - now;
    info->seconds_device += job->seconds_device;
out:
    ops->end(ctx, job);
    return ret;
}

/* Refuses divide and conquer if its O(n^2) bytes are not free.  The plan has counted the O(n) bytes
   of twisted only, and the system may grant memory that it does not have. */
static tsvd_status
check_memory(struct tsvd_context *ctx)
{
    const uint64_t wanted = tsvdi_method_dc.bytes(ctx->plan).host;
    const uint64_t available = tsvd_host_memory_available();

    if (available == 0 || wanted <= available) {
        return TSVD_OK;
    }
    ctx->error->wanted = wanted;
    ctx->error->available = available;
    return tsvdi_fail(
        ctx->error, TSVD_ERR_MEMORY,
        "divide and conquer, which a matrix goes to that twisted factorisations do not "
        "suit, needs %llu bytes, and %llu are free",
        (unsigned long long)wanted, (unsigned long long)available);
}

static tsvd_status
run(struct tsvd_context *ctx, const struct chunk *chunk, struct results to, tsvd_info *info)
{
    const struct svd_problem *p = ctx->problem;
    struct twisted_job job = {.n = p->n,
                              .first = p->first,
                              .k = p->k,
                              .chunk = chunk,
                              .lower = ctx->options->lower,
                              .to = to};
    int pays = 1;
    tsvd_status ret = TSVD_OK;

    if (ctx->plan->backend->twisted != NULL) {
        TSVD_TRY(attempt(ctx, &job, &pays, info));
        if (job.refused == 0 && pays) {
            goto out;
        }
        info->refused += job.refused;
        if (!ctx->options->fallback && ctx->problem->method != NULL) {
            tsvdi_blame(ctx, ctx->index);
            tsvdi_advise(ctx->error, "leave options.fallback at 1, or use TSVD_METHOD_DC");
            TSVD_TRY(tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                                "twisted refused %lld of %lld values", (long long)job.refused,
                                (long long)p->whole_k));
        }
    }
    info->method = tsvdi_method_dc.number;
    TSVD_TRY(check_memory(ctx));
    TSVD_TRY(tsvdi_method_dc.run(ctx, chunk, to, info));
out:
    return ret;
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    const struct twisted_ops *ops = plan->backend->twisted;

    return ops == NULL ? tsvdi_method_dc.bytes(plan) : ops->bytes(plan);
}

const struct method tsvdi_method_twisted = {
    .number = TSVD_METHOD_TWISTED,
    .name = "twisted",
    .with_vectors = 1,
    .part_vectors = 1,
    .needs = NEEDS_DC | NEEDS_VECTORS,
    .run = run,
    .bytes = bytes,
};
