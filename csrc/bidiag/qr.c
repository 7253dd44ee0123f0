/*
 * Implicit QR: sweeps (qr_sweep.h) until the matrix is diagonal.  Rotations are logged and
 * applied to the vectors in windows of many sweeps.
 */
#include "backend/method.h"
#include "backend/tuning.h"
#include "bidiag/parts.h"

/* Sweeps per row that a small matrix needs in all: its log holds them in one window. */
enum { SMALL_SWEEPS_PER_ROW = 4 };

static void
log_push(struct rotation_log *log, struct qr_sweep sweep)
{
    log->sweep[log->sweeps++] = sweep;
    log->rotations += sweep.count;
}

/* Sweeps until the log is full (without vectors: after about WINDOW_ROTATIONS rotations) or B is
   diagonal; returns whether it is. */
static int
fill_window(struct qr_state *q, real *d, real *e, int keep, struct rotation_log *right,
            struct rotation_log *left)
{
    int64_t budget = keep ? right->rotations_max : WINDOW_ROTATIONS + q->n;

    right->sweeps = right->rotations = left->sweeps = left->rotations = 0;
    while (budget >= q->n - 1 && right->sweeps < right->max_sweeps) {
        const struct qr_turns to = {right->rotation + right->rotations,
                                    left->rotation + left->rotations};
        const struct qr_sweep sweep = qr_advance(q, d, e, to);

        if (sweep.count == 0) {
            return !q->exhausted;
        }
        budget -= sweep.count;
        if (keep) {
            log_push(right, sweep);
            log_push(left, sweep);
        }
    }
    return 0;
}

/* Capacity of a log: n sweeps more than *rotations / n, since short sweeps, as of blocks of order
   two, outnumber the long ones.  Without vectors it holds one sweep: each sweep overwrites the one
   before. */
static void
log_capacity(int64_t n, int vectors, int64_t *sweeps, int64_t *rotations)
{
    int64_t window = n > 0 ? WINDOW_ROTATIONS / n : 0;

    window = window > SMALL_SWEEPS_PER_ROW * n + 4 ? SMALL_SWEEPS_PER_ROW * n + 4 : window;
    window = window < WINDOW_SWEEPS_MIN ? WINDOW_SWEEPS_MIN : window;
    *sweeps = vectors ? window + n : 1;
    *rotations = vectors ? window * n : n;
}

tsvd_status
tsvdi_qr_sweeps(struct tsvd_context *ctx, struct qr_state *q, real *d, real *e,
                struct vectors right, struct vectors left, int fresh, tsvd_info *info)
{
    const struct vectors_ops *ops = ctx->plan->backend->vectors;
    const int vectors = right.x != NULL;
    const double before = ctx->done;
    struct rotation_log log[2] = {{0}, {0}};
    int64_t sweeps, rotations;
    double clock, now, left_over;
    int done = 0;
    tsvd_status ret = TSVD_OK;

    log_capacity(q->n, vectors, &sweeps, &rotations);
    for (int i = 0; i < 2; i++) {
        TSVD_TRY(tsvdi_log_alloc(ctx, sweeps, rotations, &log[i]));
    }
    while (!done && !q->exhausted) {
        clock = tsvdi_host_seconds();
        done = fill_window(q, d, e, vectors, &log[0], &log[1]);
        now = tsvdi_host_seconds();
        info->seconds_iterate += now - clock;
        if (vectors && (fresh || log[0].sweeps > 0)) {
            TSVD_TRY(ops->rotate(ctx, &log[0], &log[1], right, left, fresh));
            info->seconds_vectors += tsvdi_host_seconds() - now;
            fresh = 0;
        }
        /* the remaining work is quadratic in the order of the block that is not diagonal yet */
        left_over = (double)(q->high + 1) / (double)q->n;
        TSVD_TRY(tsvdi_check(ctx, before + (1 - before) * (1 - left_over * left_over)));
    }
    info->rotations += 2 * q->rotations;
    info->deflated += q->deflated;
out:
    tsvdi_log_free(ctx, &log[0]);
    tsvdi_log_free(ctx, &log[1]);
    return ret;
}

static tsvd_status
iterate(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps, struct vectors right,
        struct vectors left, tsvd_info *info)
{
    struct qr_state q;
    tsvd_status ret = TSVD_OK;

    qr_start(&q, n, eps, ctx->options->max_sweeps);
    TSVD_TRY(tsvdi_qr_sweeps(ctx, &q, d, e, right, left, 1, info));
    if (q.exhausted) {
        ctx->error->sweeps = q.sweeps;
        tsvdi_blame(ctx, ctx->index);
        tsvdi_advise(ctx->error, "raise options.max_sweeps or options.eps");
        TSVD_TRY(tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                            "qr did not converge within %lld sweeps", (long long)q.sweeps));
    }
    info->sweeps += q.sweeps;
    info->iterations += q.rotations;
out:
    return ret;
}

static tsvd_status
run(struct tsvd_context *ctx, const struct chunk *chunk, struct results to, tsvd_info *info)
{
    return tsvdi_rotations(ctx, chunk, to, iterate, info);
}

struct bytes
tsvdi_qr_sweeps_bytes(const struct svd_plan *plan)
{
    const int vectors = plan->problem->vectors;
    struct bytes phase = {0, 0};
    int64_t sweeps, rotations;

    log_capacity(plan->reported.n, vectors, &sweeps, &rotations);
    phase.host = bytes_of(2 * sweeps, sizeof(struct qr_sweep));
    phase.host = bytes_add(phase.host, bytes_of(2 * rotations, sizeof(struct rotation)));
    if (vectors) {
        phase = bytes_sum(phase, plan->backend->vectors->rotate_bytes(plan, sweeps, rotations));
    }
    return phase;
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    return bytes_sum(tsvdi_rotations_bytes(plan),
                     bytes_most(tsvdi_qr_sweeps_bytes(plan), plan->values->bytes(plan)));
}

const struct method tsvdi_method_qr = {
    .number = TSVD_METHOD_QR,
    .name = "qr",
    .with_vectors = 1,
    .without_vectors = 1,
    .host_entries = 1,
    .needs = NEEDS_VALUES,
    .needs_for_vectors = NEEDS_VECTORS,
    .run = run,
    .bytes = bytes,
};
