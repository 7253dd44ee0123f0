/*
 * The givens method: the published pipeline of Givens rotations (Semylitko & Malaschonok 2021), in
 * rounds of pipelined half sweeps (math/givens_sweep.h) until no entry off the diagonal is left.
 *
 * After each round the matrix is split where both off-diagonals are zero: without that most steps
 * are empty.  A large segment goes on in rounds.  A small one is finished in one piece, since in
 * the end there are many, some with hundreds of thousands of half sweeps to go.  Rotations in
 * different segments commute, so d, e, L and R are those of the published order.
 *
 * The half sweeps converge linearly, and their rounding errors add up.  Before the errors could
 * reach the bounds of docs/accuracy.md, implicit QR takes over.  It also takes over at the bounds
 * MAX_SWEEPS and SMALL_SWEEPS_MAX below; at options.max_sweeps the method fails instead.
 *
 * info->iterations counts as the publication does.  A half sweep counts n steps, although the last
 * has nothing to rotate.  Thread k of T makes the half sweeps k, k + T, k + 2T, ..., and ends when
 * one makes no rotation.  If half sweep F is the first without a rotation, the next T - 1 make none
 * either.  So there are n (F + T) iterations.  A sweep of QR counts as two half sweeps, and each of
 * its rotations as an iteration.
 */
#include "backend/method.h"
#include "bidiag/parts.h"

/*
 * Half sweeps that the bounds on rounding errors allow: n + 8, and with eps given
 * EPS_SHARE eps / (ROUNDING u b) more, where u = R_EPS / 2 and b is the largest entry of B.
 *
 * A half sweep changes the entries of B, and those of L and R, by a few u relative to their size.
 * Where values are close, half sweeps repeat nearly the same rotations with the same errors, which
 * add up.  On 50,000 matrices of nearly equal entries, n = 2 to 100, a half sweep added at most
 * 3.0 u b to an entry of B - L S R, and 1.7 u ||B||_F to its norm; an evolutionary search climbed
 * to 2.2 u ||B||_F.  So the half sweeps use up little more than half of the residual's bound, and 2
 * of the 4 eps; the rest is for entries that are dropped, and for QR.
 */
enum { EPS_SHARE = 2, ROUNDING = 3 };

/* Bounds on half sweeps: MAX_SWEEPS while a large segment is left, SMALL_SWEEPS_MAX in all.  How
   many are needed depends on the nearest coupled values, not on n: the published means, n = 20 to
   10000, reach 810,000 (n = 500, eps = 1e-8).  Most matrices that take long come down to small
   segments, in which a half sweep costs a tenth of a microsecond. */
enum { MAX_SWEEPS = 1000000, SMALL_SWEEPS_MAX = 10000000 };

/* Half sweeps of small segments between two calls of tsvdi_check(), an even number: a tenth of
   a second on a GPU. */
enum { SLICE_SWEEPS = 1 << 19 };

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Half sweeps that the bounds on rounding errors allow, an even number. */
static int64_t
sweeps_allowed(int64_t n, const real *d, const real *e, real eps)
{
    real largest = r_abs(d[n - 1]);
    double allowed;

    for (int64_t i = 0; i + 1 < n; i++) {
        largest = r_max(largest, r_max(r_abs(d[i]), r_abs(e[i])));
    }
    allowed =
        (double)n + 8 +
        (double)EPS_SHARE * (double)eps / ((double)ROUNDING * (double)R_EPS / 2 * (double)largest);
    return allowed < (double)SMALL_SWEEPS_MAX ? (int64_t)allowed / 2 * 2 : SMALL_SWEEPS_MAX;
}

/* How the matrix is cut into segments. */
struct cut {
    struct givens_segment *large;  /* the segments of this round */
    struct givens_segment *next;   /* the segments of the next round */
    struct givens_segment *small;  /* segments set aside, to be finished in one piece */
    int64_t *since;                /* [smalls] half sweeps that each has been through */
    int64_t larges, nexts, smalls; /* number of segments in large, next and small */
    int64_t limit;                 /* most rows of a small segment */
    int whole;                     /* 1: the matrix stays whole */
};

/* Splits a segment where e is zero into large ones, for the next round, and small ones. */
static void
split(struct cut *cut, const real *e, struct givens_segment whole, int64_t made)
{
    const int64_t end = whole.first + whole.rows - 1;

    for (int64_t i = whole.first; i <= end; i++) {
        struct givens_segment part = {i, 1};

        while (i < end && e[i] != 0) {
            i++;
        }
        part.rows = i - part.first + 1;
        if (part.rows > cut->limit && part.rows > 1) {
            cut->next[cut->nexts++] = part;
        } else if (part.rows > 1) {
            cut->small[cut->smalls] = part;
            cut->since[cut->smalls++] = made;
        }
    }
}

static tsvd_status
fail(struct tsvd_context *ctx, int64_t half_sweeps)
{
    ctx->error->sweeps = half_sweeps;
    tsvdi_blame(ctx, ctx->index);
    tsvdi_advise(ctx->error,
                 "use TSVD_METHOD_AUTO, a larger options.eps or a larger options.max_sweeps");
    return tsvdi_fail(ctx->error, TSVD_ERR_NO_CONVERGENCE,
                      "givens did not converge within %lld half sweeps: the zero-shift method is "
                      "slow where singular values are close",
                      (long long)half_sweeps);
}

/* Makes the vectors orthonormal again: rounding errors of many rotations add up. */
static tsvd_status
orthonormalize(struct tsvd_context *ctx, const struct givens_job *job)
{
    const struct vectors_ops *ops = ctx->plan->backend->vectors;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(ops->orthonormalize(ctx, job->right));
    TSVD_TRY(ops->orthonormalize(ctx, job->left));
out:
    return ret;
}

/* Makes rounds until no large segment is left, or `bound` half sweeps are made.  *last: half sweeps
   up to the last one that made a rotation. */
static tsvd_status
make_rounds(struct tsvd_context *ctx, const struct givens_job *job, struct cut *cut, int64_t bound,
            int64_t *last, struct givens_counts *counts)
{
    int64_t made = 0, orthogonal = 0; /* half sweeps; `made` at the last orthonormalize() */
    tsvd_status ret = TSVD_OK;

    while (cut->larges > 0 && made < bound) {
        struct givens_segment *swap = cut->large;
        int64_t sweeps = ctx->plan->backend->givens->round_sweeps(job, cut->large, cut->larges);
        int64_t active = 0;

        sweeps = least(least(sweeps, DRIFT_SWEEPS_MAX), bound - made);
        TSVD_TRY(ctx->plan->backend->givens->round(ctx, job, cut->large, cut->larges, sweeps,
                                                   &active, counts));
        made += sweeps;
        if (active == sweeps && made == ctx->options->max_sweeps) {
            TSVD_TRY(fail(ctx, made));
        }
        *last = active > 0 ? made - sweeps + active : *last;
        if (cut->whole) {
            cut->larges = active == sweeps;
        } else {
            cut->nexts = 0;
            for (int64_t i = 0; i < cut->larges; i++) {
                split(cut, job->e, cut->large[i], made);
            }
            cut->large = cut->next;
            cut->next = swap;
            cut->larges = cut->nexts;
        }
        if (job->right.x != NULL && made - orthogonal >= DRIFT_SWEEPS_MAX) {
            TSVD_TRY(orthonormalize(ctx, job));
            orthogonal = made;
        }
        /* rounds are at most half of the progress: QR may follow */
        TSVD_TRY(tsvdi_check(ctx, (double)made / (2 * ((double)bound + 1))));
    }
    if (job->right.x != NULL && made - orthogonal > DRIFT_SWEEPS_PER_ROW * job->n) {
        TSVD_TRY(orthonormalize(ctx, job));
    }
out:
    return ret;
}

/* Makes up to SLICE_SWEEPS half sweeps of each small segment.  Segments that are neither done nor
   at `bound` stay in cut->small. */
static tsvd_status
finish_slice(struct tsvd_context *ctx, const struct givens_job *job, struct cut *cut, int64_t bound,
             int64_t *half_sweeps, int64_t *last, struct givens_counts *counts)
{
    int64_t left = 0;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < cut->smalls; i++) {
        half_sweeps[i] = least(bound - cut->since[i], SLICE_SWEEPS);
    }
    TSVD_TRY(
        ctx->plan->backend->givens->finish(ctx, job, cut->small, cut->smalls, half_sweeps, counts));
    for (int64_t i = 0; i < cut->smalls; i++) {
        const int more = half_sweeps[i] < 0;
        int64_t end =
            cut->since[i] + (more ? least(bound - cut->since[i], SLICE_SWEEPS) : half_sweeps[i]);

        *last = half_sweeps[i] != 0 && end > *last ? end : *last;
        if (more && end == ctx->options->max_sweeps) {
            TSVD_TRY(fail(ctx, end));
        }
        if (more && end < bound) {
            cut->small[left] = cut->small[i];
            cut->since[left++] = end;
        }
    }
    cut->smalls = left;
out:
    return ret;
}

/* Brings each small segment to its end, or to `bound` half sweeps. */
static tsvd_status
finish(struct tsvd_context *ctx, const struct givens_job *job, struct cut *cut, int64_t bound,
       int64_t *last, struct givens_counts *counts)
{
    int64_t *half_sweeps = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(cut->smalls, sizeof *half_sweeps), (void **)&half_sweeps));
    while (cut->smalls > 0) {
        TSVD_TRY(finish_slice(ctx, job, cut, bound, half_sweeps, last, counts));
        TSVD_TRY(tsvdi_check(ctx, ctx->done));
    }
out:
    tsvdi_free(ctx, half_sweeps);
    return ret;
}

/* Makes all half sweeps. */
static tsvd_status
sweep(struct tsvd_context *ctx, const struct givens_job *job, int64_t allowed, int64_t *last,
      struct givens_counts *counts)
{
    const int64_t n = job->n, asked = ctx->options->max_sweeps;
    struct givens_segment *segment = NULL;
    struct cut cut = {0};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(
        tsvdi_alloc(ctx, bytes_of(n, 3 * sizeof *segment + sizeof *cut.since), (void **)&segment));
    cut.large = segment;
    cut.next = cut.large + n;
    cut.small = cut.next + n;
    cut.since = (int64_t *)(cut.small + n);
    cut.whole = !ctx->options->givens_split;
    cut.limit = cut.whole ? 0 : ctx->plan->backend->givens->small_rows;
    if (cut.whole) {
        cut.large[0] = (struct givens_segment){0, n};
        cut.larges = n > 1;
    } else {
        split(&cut, job->e, (struct givens_segment){0, n}, 0);
        cut.large = cut.next;
        cut.larges = cut.nexts;
        cut.next = segment;
    }
    TSVD_TRY(
        make_rounds(ctx, job, &cut, least(allowed, asked > 0 ? asked : MAX_SWEEPS), last, counts));
    TSVD_TRY(
        finish(ctx, job, &cut, least(allowed, asked > 0 ? asked : SMALL_SWEEPS_MAX), last, counts));
out:
    tsvdi_free(ctx, segment);
    return ret;
}

/* Brings the matrix to diagonal form by implicit QR after `made` half sweeps. */
static tsvd_status
take_rest(struct tsvd_context *ctx, const struct givens_job *job, real eps, int64_t made,
          tsvd_info *info)
{
    const int64_t asked = ctx->options->max_sweeps, most = (asked - made) / 2;
    struct qr_state q;
    tsvd_status ret = TSVD_OK;

    qr_start(&q, job->n, eps, most);
    q.exhausted = asked > 0 && most == 0;
    TSVD_TRY(tsvdi_qr_sweeps(ctx, &q, job->d, job->e, job->right, job->left, 0, info));
    if (q.exhausted) {
        TSVD_TRY(fail(ctx, asked > 0 ? asked : made + 2 * q.sweeps));
    }
    if (job->right.x != NULL) { /* errors of half sweeps and QR together can be half the bound */
        TSVD_TRY(orthonormalize(ctx, job));
    }
    info->sweeps += 2 * q.sweeps;
    info->iterations += 2 * q.rotations;
out:
    return ret;
}

static tsvd_status
iterate(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps, struct vectors right,
        struct vectors left, tsvd_info *info)
{
    const tsvd_options *options = ctx->options;
    int64_t threads = options->givens_threads > 0 ? options->givens_threads : n / 2, last = 0,
            saved, rest = 0;
    struct givens_job job = {n, d, e, r_max(eps, R_EPS), 0, options->givens_blocks, right, left};
    struct givens_counts counts = {0};
    double clock = tsvdi_host_seconds();
    tsvd_status ret = TSVD_OK;

    threads = threads < 2 ? 2 : threads / 2 * 2; /* even: a thread rotates one side only */
    job.in_flight = threads;
    if (right.x != NULL) {
        TSVD_TRY(ctx->plan->backend->vectors->identity(ctx, right));
        TSVD_TRY(ctx->plan->backend->vectors->identity(ctx, left));
    }
    TSVD_TRY(sweep(ctx, &job, sweeps_allowed(n, d, e, eps), &last, &counts));
    info->iterations += n * (last + threads);
    saved = n * (last + threads) - counts.steps;
    info->iterations_saved += saved > 0 ? saved : 0;
    info->rotations += counts.rotations;
    info->deflated += counts.deflated;
    info->seconds_iterate += tsvdi_host_seconds() - clock - counts.seconds_vectors;
    info->seconds_vectors += counts.seconds_vectors;
    for (int64_t i = 0; i + 1 < n; i++) {
        rest += e[i] != 0;
    }
    info->sweeps += rest > 0 ? last : last + 1; /* + 1: the half sweep that makes no rotation */
    if (rest > 0) {
        TSVD_TRY(take_rest(ctx, &job, eps, last, info));
    }
out:
    return ret;
}

static tsvd_status
run(struct tsvd_context *ctx, const struct chunk *chunk, struct results to, tsvd_info *info)
{
    return tsvdi_rotations(ctx, chunk, to, iterate, info);
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    const int vectors = plan->problem->vectors;
    struct bytes own = tsvdi_rotations_bytes(plan), phase = plan->backend->givens->bytes(plan);

    own.host = bytes_add(own.host, bytes_of(plan->reported.n, 3 * sizeof(struct givens_segment) +
                                                                  2 * sizeof(int64_t)));
    if (vectors) {
        phase = bytes_most(phase, plan->backend->vectors->orthonormalize_bytes(plan));
        phase = bytes_most(phase, plan->backend->vectors->rotate_bytes(plan, 0, 0));
    }
    phase = bytes_most(phase, tsvdi_qr_sweeps_bytes(plan));
    phase = bytes_most(phase, plan->values->bytes(plan));
    return bytes_sum(own, phase);
}

const struct method tsvdi_method_givens = {
    .number = TSVD_METHOD_GIVENS,
    .name = "givens",
    .with_vectors = 1,
    .without_vectors = 1,
    .host_entries = 1,
    .needs = NEEDS_GIVENS | NEEDS_VALUES,
    .needs_for_vectors = NEEDS_VECTORS,
    .run = run,
    .bytes = bytes,
};
