/*
 * Implicit QR: sweeps (qr_sweep.h) until the matrix is diagonal.  Rotations are logged and
 * applied to the vectors in windows of many sweeps.
 */
#include "backend/backend.h"
#include "host/host.h"

/* Rotations of one side in a window: enough that loading and storing the vectors for
   each window is cheap beside the rotations, few enough to stay in cache. */
enum { WINDOW_ROTATIONS = 1 << 18, WINDOW_SWEEPS_MIN = 32 };

/* Sweeps that a small matrix needs in all, for a log of one window. */
enum { SMALL_SWEEPS_PER_ROW = 4 };

tsvd_status
tsvdi_log_alloc(struct tsvd_context *ctx, int64_t sweeps, int64_t rotations,
                struct rotation_log *log)
{
    tsvd_status ret = TSVD_OK;

    log->sweeps = log->rotations = 0;
    log->sweeps_max = sweeps;
    log->rotations_max = rotations;
    TSVD_TRY(
        tsvdi_host_alloc((size_t)sweeps * sizeof *log->sweep, ctx->error, (void **)&log->sweep));
    TSVD_TRY(tsvdi_host_alloc((size_t)rotations * sizeof *log->rotation, ctx->error,
                              (void **)&log->rotation));
out:
    return ret;
}

void
tsvdi_log_free(struct rotation_log *log)
{
    tsvdi_host_free(log->sweep);
    tsvdi_host_free(log->rotation);
}

static void
log_push(struct rotation_log *log, struct qr_sweep sweep)
{
    log->sweep[log->sweeps++] = sweep;
    log->rotations += sweep.count;
}

/* Sweeps until the log is full (without vectors: until it was once) or B is diagonal;
   returns whether it is. */
static int
fill_window(struct qr_state *q, real *d, real *e, int keep, struct rotation_log *right,
            struct rotation_log *left)
{
    int64_t budget = keep ? right->rotations_max : WINDOW_ROTATIONS + q->n;

    right->sweeps = right->rotations = left->sweeps = left->rotations = 0;
    while (budget >= q->n - 1 && right->sweeps < right->sweeps_max) {
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

tsvd_status
tsvdi_qr(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps, struct vectors right,
         struct vectors left, tsvd_info *info)
{
    const tsvd_options *options = ctx->options;
    struct rotation_log log[2] = {{0}, {0}};
    int64_t sweeps = WINDOW_ROTATIONS / n;
    struct qr_state q;
    double clock, now, left_over;
    int done = 0, fresh = 1;
    tsvd_status ret = TSVD_OK;

    sweeps = sweeps > SMALL_SWEEPS_PER_ROW * n + 4 ? SMALL_SWEEPS_PER_ROW * n + 4 : sweeps;
    sweeps = sweeps < WINDOW_SWEEPS_MIN ? WINDOW_SWEEPS_MIN : sweeps;
    for (int i = 0; i < 2; i++) {
        /* short sweeps, as of blocks of order two, outnumber the long ones; without vectors
           there is room for one sweep, which each overwrites */
        TSVD_TRY(tsvdi_log_alloc(ctx, right.x ? sweeps + n : 1, right.x ? sweeps * n : n, &log[i]));
    }
    qr_start(&q, n, eps, options->max_sweeps);
    while (!done) {
        clock = tsvdi_host_seconds();
        done = fill_window(&q, d, e, right.x != NULL, &log[0], &log[1]);
        now = tsvdi_host_seconds();
        info->seconds_iterate += now - clock;
        if (right.x && (fresh || log[0].sweeps > 0)) {
            TSVD_TRY(ctx->backend->rotate(ctx, &log[0], &log[1], right, left, fresh));
            info->seconds_vectors += tsvdi_host_seconds() - now;
            fresh = 0;
        }
        if (q.exhausted) {
            ctx->error->sweeps = q.sweeps;
            TSVD_TRY(tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                                "qr did not converge within %lld sweeps; raise max_sweeps or eps",
                                (long long)q.sweeps));
        }
        /* the block that is left shrinks, and with it the work, quadratically */
        left_over = (double)(q.high + 1) / (double)n;
        TSVD_TRY(tsvdi_check(ctx, 1 - left_over * left_over));
    }
    info->sweeps += q.sweeps;
    info->iterations += q.rotations;
    info->rotations += 2 * q.rotations;
    info->deflated += q.deflated;
out:
    tsvdi_log_free(&log[0]);
    tsvdi_log_free(&log[1]);
    return ret;
}
