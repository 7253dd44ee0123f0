/*
 * The seed's method: rounds of pipelined half sweeps (givens_sweep.h) until one half
 * sweep makes no rotation.
 *
 * The loop of a thread of the seed walks n steps, the last of which has nothing
 * to rotate; thread k makes half sweeps k, k + T, k + 2T, ... of T threads, and is
 * finished when one makes no rotation.  So if half sweep F is the first that makes
 * none, the next T - 1 make none either, and the count of iterations is n (F + T).
 */
#include "backend.h"
#include "host.h"

/* Rotations of one side that a round may log. */
enum { ROUND_ROTATIONS = 1 << 18 };

/* Bound on half sweeps.  They are as many as the nearest coupled values ask for, whatever
   n is: the seed's published means, n = 20 to 10000, reach 810,000 (n = 500, eps = 1e-8). */
enum { SWEEPS_MAX = 1000000 };

/* A slow case repeats nearly the same rotations, and their rounding errors add up: after
   more half sweeps than this the vectors are brought back to orthogonality. */
enum { DRIFT_SWEEPS = 100 };

/* Identities between rotations that are cheaper to apply than a wave of their own. */
enum { LOG_GAP = 16 };

/* Cuts the band into blocks of about equal length. */
static void
pack(struct givens_band *band, int64_t *start, const real *d, const real *e)
{
    const int64_t last = band->n - 1;

    for (int64_t b = 0; b <= band->blocks; b++) {
        start[b] = last / band->blocks * b + (b < last % band->blocks ? b : last % band->blocks);
    }
    for (int64_t b = 0; b < band->blocks; b++) {
        for (int64_t i = start[b]; i <= start[b + 1]; i++) {
            real *p = band->packed + 3 * (i + b);

            p[0] = d[i];
            p[1] = 0;
            p[2] = i < last ? e[i] : R(0);
        }
    }
    band->start = start;
}

static void
unpack(const struct givens_band *band, real *d, real *e)
{
    for (int64_t b = 0; b < band->blocks; b++) {
        for (int64_t i = band->start[b]; i <= band->start[b + 1]; i++) {
            d[i] = band->packed[3 * (i + b)];
        }
    }
    memset(e, 0, (size_t)(band->n - 1) * sizeof *e);
}

/* Turns the rows of a round's log into sweeps, leaving out long runs of identities. */
static void
compress(struct rotation_log *log, int64_t half_sweeps, int64_t steps)
{
    log->sweeps = log->rotations = 0;
    for (int64_t k = 0; k < half_sweeps; k++) {
        const struct rotation *row = log->rotation + k * steps;
        int64_t end = 0;

        for (int64_t i = 0; i < steps; i++) {
            struct qr_sweep *last;

            if (row[i].c == 1 && row[i].s == 0) {
                continue;
            }
            last = log->sweeps > 0 ? &log->sweep[log->sweeps - 1] : NULL;
            if (end == 0 || i - end > LOG_GAP) {
                last = &log->sweep[log->sweeps++];
                *last = (struct qr_sweep){i, 0, 0};
                end = i;
            }
            for (; end <= i; end++) {
                log->rotation[log->rotations++] = row[end];
                last->count++;
            }
        }
    }
}

tsvd_status
tsvdi_givens(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps, struct vectors right,
             struct vectors left, tsvd_info *info)
{
    const struct tsvd_backend *backend = ctx->backend;
    const tsvd_options *options = ctx->options;
    const int64_t steps = n - 1, bound = options->max_sweeps > 0 ? options->max_sweeps : SWEEPS_MAX;
    int64_t threads = options->block_threads > 0 ? options->block_threads : n / 2;
    int64_t round = ROUND_ROTATIONS / n * 2, last = -1, *start = NULL, *made = NULL;
    struct rotation_log log[2] = {{0}, {0}};
    struct givens_band band = {.n = n, .eps = eps};
    double clock;
    int fresh = 1;
    tsvd_status ret = TSVD_OK;

    threads = threads < 2 ? 2 : threads / 2 * 2; /* a thread keeps to one side */
    round = round < 2 ? 2 : round > threads ? threads : round;
    band.blocks = options->blocks < 1 ? 1 : options->blocks > steps ? steps : options->blocks;
    TSVD_TRY(backend->alloc(ctx, (size_t)(band.blocks + 1) * sizeof *start, (void **)&start));
    TSVD_TRY(
        backend->alloc(ctx, (size_t)(3 * (n + band.blocks)) * sizeof(real), (void **)&band.packed));
    TSVD_TRY(backend->alloc(ctx, (size_t)round * sizeof *made, (void **)&made));
    if (right.x) {
        /* runs of a row are LOG_GAP apart */
        int64_t runs = round / 2 * (steps / (LOG_GAP + 1) + 1);

        TSVD_TRY(tsvdi_log_alloc(ctx, runs, round / 2 * steps, &log[0]));
        TSVD_TRY(tsvdi_log_alloc(ctx, runs, round / 2 * steps, &log[1]));
    }
    pack(&band, start, d, e);
    do {
        round = bound - band.next < round ? bound - band.next : round;
        clock = tsvdi_host_seconds();
        TSVD_TRY(backend->givens_round(ctx, &band, round, right.x ? &log[0] : NULL,
                                       right.x ? &log[1] : NULL, made));
        for (int64_t k = 0; k < round && last < 0; k++) {
            info->rotations += made[k];
            last = made[k] == 0 ? band.next - round + k : -1;
        }
        info->seconds_iterate += tsvdi_host_seconds() - clock;
        clock = tsvdi_host_seconds();
        if (right.x) {
            compress(&log[0], (round + 1) / 2, steps);
            compress(&log[1], round / 2, steps);
            TSVD_TRY(backend->rotate(ctx, &log[0], &log[1], right, left, fresh));
        }
        fresh = 0;
        info->seconds_vectors += tsvdi_host_seconds() - clock;
        if (last < 0 && band.next >= bound) {
            ctx->error->sweeps = band.next;
            TSVD_TRY(tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                                "givens did not converge within %lld half sweeps: the zero-shift "
                                "method is slow where singular values are close; use "
                                "method=\"auto\", a larger eps, or a larger max_sweeps",
                                (long long)band.next));
        }
        TSVD_TRY(tsvdi_check(ctx, (double)band.next / (double)(bound + 2)));
    } while (last < 0);
    unpack(&band, d, e);
    if (right.x && last > DRIFT_SWEEPS) {
        clock = tsvdi_host_seconds();
        TSVD_TRY(backend->orthonormalize(ctx, right));
        TSVD_TRY(backend->orthonormalize(ctx, left));
        info->seconds_vectors += tsvdi_host_seconds() - clock;
    }
    info->sweeps += last + 1;
    info->iterations += n * (last + threads);
    info->deflated += band.deflated;
out:
    backend->free(start);
    backend->free(band.packed);
    backend->free(made);
    tsvdi_log_free(ctx, &log[0]);
    tsvdi_log_free(ctx, &log[1]);
    return ret;
}
