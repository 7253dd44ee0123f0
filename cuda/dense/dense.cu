/*
 * Dense matrices on the device: the operations of the seam, and their memory.  Mirrors
 * csrc/cpu/dense.
 */
#include <algorithm>

#include "bidiagonalize/band.h"
#include "bidiagonalize/bidiagonalize.h"
#include "dense/other_side.h"
#include "qr/qr.h"

enum { ENTRY_THREADS = 256 };

static struct cuda_dense *
run_of(const struct dense_job *job)
{
    return (struct cuda_dense *)job->state;
}

/* ---- memory ---- */

/* Whether a band comes between W and B.  It takes products where the reduction in one stage reads
   memory: a loss where float64 is scarce. */
static bool
two_stages(const struct cuda_device *device, const struct dense_problem *p, int keep)
{
    const int asked = p->call.options->dense_stages;
    const double share = keep == KEEP_ALL ? 1 : (double)p->whole_k / (double)p->n;
    const double with_vectors =
        DENSE_BAND_FEW_FROM + share * (DENSE_BAND_ALL_FROM - DENSE_BAND_FEW_FROM);
    const double from = keep == KEEP_VALUES ? DENSE_BAND_VALUES_FROM : with_vectors;
    /* what is not on the device does not get one side from the other */
    const double side = keep != KEEP_VALUES && p->a.space != TSVD_CUDA ? 1.15 : 1;
    const double slower = side * (1 + 0.3 * TSVD_SINGLE) * (1 - 0.15 * TSVD_COMPLEX);
    int ratio = 1;

    if (!tsvdi_cuda_dense_band_fits(device)) {
        return false;
    }
    if (asked != 0 || (double)p->n < slower * from) {
        return asked == 2;
    }
    return TSVD_SINGLE ||
           (cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio,
                                   device->number) == cudaSuccess &&
            ratio <= 2);
}

/* The state of a job for `count` matrices, without its arrays. */
static struct cuda_dense
shape_run(const struct cuda_device *device, const struct dense_problem *p, int64_t count, int keep)
{
    struct cuda_dense run = {};
    struct cuda_matrices *in = &run.in;
    struct stage_run *own = run.stage;

    in->transposed = p->a.rows < p->a.columns;
    in->r = in->transposed ? p->a.columns : p->a.rows;
    in->c = in->transposed ? p->a.rows : p->a.columns;
    in->count = count;
    run.device = device;
    run.keep = keep;
    if (p->call.options->dense_stages != 2 && tsvdi_cuda_dense_small_fits(device, in->r, in->c) &&
        (in->c <= DENSE_SMALL_ORDER ||
         p->a.batch.all * DENSE_SMALL_SHARE >= device->multiprocessors)) {
        own++->listed = &tsvdi_cuda_dense_small_stage;
    } else {
        if (in->c > 0 && (double)in->r >= DENSE_QR_RATIO * (double)in->c) {
            /* Cholesky's Q has c columns, which serve vectors of B only */
            own++->listed = keep != KEEP_ALL && !p->full ? &tsvdi_cuda_dense_cholesky_stage
                                                         : &tsvdi_cuda_dense_qr_stage;
        }
        if (in->c > 0 && two_stages(device, p, keep)) {
            own++->listed = &tsvdi_cuda_dense_band_stage;
            own++->listed = &tsvdi_cuda_dense_chase_stage;
        } else {
            own++->listed = &tsvdi_cuda_dense_bidiagonalize_stage;
        }
    }
    run.stages = (int)(own - run.stage);
    for (int s = 0; s < run.stages; s++) {
        own = &run.stage[s];
        own->stage = own->listed;
        own->r = s == 0 ? in->r : in->c; /* what a stage leaves is square */
        own->c = in->c;
        own->count = count;
        own->numbers = own->listed->numbers(own->r, own->c, keep);
    }
    return run;
}

static size_t
lay_out(struct cuda_dense *run, char *base)
{
    const int64_t c = run->in.c, count = c > 0 ? run->in.count : 0;
    size_t at = 0;

    for (int s = 0; s < run->stages; s++) {
        struct stage_run *own = &run->stage[s];

        own->m = carve<scalar>(base, &at, count * own->numbers);
        own->correction = carve<scalar>(base, &at, own->listed->expand != NULL ? count * c * c : 0);
        own->tau_q = carve<scalar>(base, &at, count * c);
        own->tau_p = carve<scalar>(base, &at, own->listed->right ? count * c : 0);
    }
    run->in.w = run->stage[0].m;
    run->d = carve<real>(base, &at, count * c);
    run->e = carve<real>(base, &at, count * c);
    run->in.largest = carve<unsigned long long>(base, &at, count);
    run->in.exponent = carve<real_int>(base, &at, count);
    run->in.kind = carve<char>(base, &at, count);
    return at;
}

/* Workspace of reduce(): its steps use the same memory one after another. */
static uint64_t
reduce_bytes(const struct cuda_device *device, const struct cuda_dense *run, bool staged)
{
    uint64_t most = !staged ? 0
                    : run->team != NULL
                        ? SHARED_BYTES(run->in.r)
                        : bytes_of(run->in.count * run->in.r, bytes_of(run->in.c, sizeof(scalar)));

    for (int s = 0; s < run->stages; s++) {
        const struct stage_run *own = &run->stage[s];

        for (const struct stage *one = own->listed; one != NULL; one = one->otherwise) {
            most = std::max(most, one->factor_bytes(device, own));
        }
    }
    return most;
}

/* Workspace of the stages on `vectors` vectors of each matrix. */
static uint64_t
apply_bytes(const struct cuda_dense *run, int64_t vectors)
{
    uint64_t most = 0;

    for (int s = 0; s < run->stages; s++) {
        most =
            std::max(most, run->stage[s].stage->apply_bytes(run->device, &run->stage[s], vectors));
    }
    return most;
}

/* Whether U = Q L, or Vh = R Q^T if W is the transpose, is a product that writes another array. */
static bool
left_expands(const struct cuda_dense *run)
{
    return run->stage[0].stage->expand != NULL && !run->in.transposed;
}

static bool
right_expands(const struct cuda_dense *run)
{
    return run->stage[0].stage->expand != NULL && run->in.transposed;
}

/* Whether L, or R, has the layout of U, or of Vh, so that it can be made there.  They are real. */
static bool
left_in_place(const struct cuda_dense *run, const struct dense_problem *p)
{
    return !TSVD_COMPLEX && dense_shape_of(p).u_columns == p->k &&
           (p->a.rows == p->n || run->in.count == 1) && !left_expands(run);
}

static bool
right_in_place(const struct dense_problem *p)
{
    return !TSVD_COMPLEX && p->a.columns == p->n; /* then Vh has k rows, also if it is full */
}

/* Memory that reserve() takes, and back() works in.  The results come first. */
struct workspace {
    real *s;
    scalar *u, *vh;
    real *left, *right; /* L and R, where they are not made in place */
    scalar *inner;      /* L or R, made complex, of what expands */
    char *work;
};

static size_t
lay_out_workspace(const struct cuda_dense *run, const struct dense_problem *p, bool on_host,
                  char *base, struct workspace *workspace)
{
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t count = run->in.count, n = p->n, k = p->k;
    const int64_t most =
        shape.u_columns > shape.v_rows ? shape.u_columns : shape.v_rows; /* vectors of a side */
    const uint64_t finish = tsvdi_cuda_dense_finish_bytes(count, shape);
    const uint64_t side = tsvdi_cuda_dense_side_bytes(run, p);
    const uint64_t work =
        std::max(std::max(finish, side), p->vectors ? apply_bytes(run, most) : (uint64_t)0);
    size_t at = 0;

    workspace->s = carve<real>(base, &at, on_host ? count * k : 0);
    workspace->u = workspace->vh = workspace->inner = NULL;
    workspace->left = workspace->right = NULL;
    if (p->vectors) {
        workspace->u =
            carve<scalar>(base, &at, on_host ? count * shape.u_rows * shape.u_columns : 0);
        workspace->vh =
            carve<scalar>(base, &at, on_host ? count * shape.v_rows * shape.v_columns : 0);
        workspace->left = carve<real>(base, &at, left_in_place(run, p) ? 0 : count * n * k);
        workspace->right = carve<real>(base, &at, right_in_place(p) ? 0 : count * n * k);
        workspace->inner = carve<scalar>(
            base, &at,
            TSVD_COMPLEX && (left_expands(run) || right_expands(run)) ? count * n * k : 0);
    }
    workspace->work = carve<char>(base, &at, (int64_t)work);
    return at;
}

static void
free_workspace(struct tsvd_context *ctx, const struct dense_job *job, struct cuda_dense *run)
{
    if (job->problem->call.to == TSVD_HOST) { /* results may still be in flight */
        tsvdi_cuda_free_after_downloads(cuda_of(ctx), run->d_workspace);
    } else {
        tsvdi_cuda_free(cuda_of(ctx), run->d_workspace);
    }
    run->d_workspace = NULL;
}

static void
dense_end(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_dense *run = run_of(job);

    if (run == NULL) {
        return;
    }
    ctx->failed = NULL;
    tsvdi_cuda_team_leave(run->team);
    tsvdi_cuda_free(cuda_of(ctx), run->d_reducing);
    free_workspace(ctx, job, run);
    tsvdi_cuda_free(cuda_of(ctx), run->d_arrays);
    tsvdi_host_free(&job->problem->call.handle->host, run);
    job->state = NULL;
}

/* ---- several devices ---- */

static tsvd_status
ask_check(void *ctx)
{
    struct tsvd_context *own = (struct tsvd_context *)ctx;

    return tsvdi_check(own, own->done);
}

static tsvd_status
ask_sum(void *ctx, int64_t count, double *numbers)
{
    return tsvdi_sum_over_parts((const struct tsvd_context *)ctx, count, numbers);
}

/* A stage of a member: its share of W, or of what comes after W. */
static void
share_stage(const struct cuda_dense *run, struct stage_run *own, struct cuda_team *team)
{
    own->team = team;
    if (own == run->stage) {
        own->numbers = own->r * columns_before(shares_of(own), team->self, own->c);
    } else {
        own->numbers =
            own->listed->numbers(own->r, own->c, team->self == 0 ? run->keep : (int)KEEP_VALUES);
    }
}

/* The devices of all parts of a call share a large matrix out, if they can: its columns, and the
   work of making a band.  The first of them makes B. */
static tsvd_status
join_team(struct tsvd_context *ctx, const struct dense_job *job, struct cuda_dense *run)
{
    const struct dense_problem *p = job->problem;
    const tsvd_part *part = p->call.options->part;
    const bool willing = run->stages == 2 && run->stage[0].listed == &tsvdi_cuda_dense_band_stage;
    const double form[TEAM_FORM] = {(double)p->a.rows, (double)p->a.columns,
                                    (double)(8 * run->keep + 2 * TSVD_COMPLEX + TSVD_SINGLE)};
    tsvd_status ret = TSVD_OK;

    if (part == NULL || part->sum == NULL || run->keep == KEEP_ALL ||
        (p->n < DENSE_TEAM_FROM && p->call.options->dense_stages != 2)) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_team_join(cuda_of(ctx), {ctx, ask_check, ask_sum}, willing, p->first, form,
                                  &run->team));
    ctx->failed = run->team != NULL ? tsvdi_cuda_team_failed(run->team) : NULL;
    for (int s = 0; s < run->stages && run->team != NULL; s++) {
        share_stage(run, &run->stage[s], run->team);
    }
out:
    return ret;
}

static tsvd_status
dense_begin(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_dense *run = NULL;
    size_t bytes;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(&job->problem->call.handle->host, sizeof(*run), ctx->error,
                              (void **)&run));
    *run = shape_run(call->device, job->problem, job->count, job->keep);
    job->state = run;
    TSVD_TRY(join_team(ctx, job, run));
    bytes = lay_out(run, NULL);
    TSVD_TRY(tsvdi_cuda_alloc(call, bytes, (void **)&run->d_arrays));
    (void)lay_out(run, run->d_arrays);
    if (job->keep == KEEP_ALL && bytes > 0) {
        /* not all entries are written, but a saved state must have the same bytes each time */
        CUDA_TRY(call, cudaMemsetAsync(run->d_arrays, 0, bytes, call->stream));
    }
    job->d = run->d;
    job->e = run->e;
out:
    return ret;
}

/* ---- reduction ---- */

/* Factors the M of a stage. */
static tsvd_status
factor(struct tsvd_context *ctx, const struct dense_job *job, struct cuda_dense *run,
       struct stage_run *own, char *d_work)
{
    enum stage_outcome outcome;
    tsvd_status ret = TSVD_OK;

    own->count = run->in.count;
    own->stage = own->listed;
    TSVD_TRY(own->stage->factor(ctx, run, own, d_work, &outcome));
    if (outcome == STAGE_SPOILED) {
        TSVD_TRY(tsvdi_cuda_dense_load(ctx, &job->problem->a, job->begin, &run->in, 1,
                                       (scalar *)d_work));
    }
    if (outcome != STAGE_MADE) {
        own->stage = own->listed->otherwise;
        TSVD_TRY(own->stage->factor(ctx, run, own, d_work, &outcome));
    }
out:
    return ret;
}

/* When the stages of a reduction begin, and when the last one ends. */
struct stage_clock {
    cudaEvent_t at[STAGES_MOST + 1];
};

static void
end_clock(const struct stage_clock *clock)
{
    for (cudaEvent_t event : clock->at) {
        if (event != NULL) {
            (void)cudaEventDestroy(event);
        }
    }
}

static tsvd_status
note_time(struct cuda_call *call, cudaEvent_t *event)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaEventCreate(event));
    CUDA_TRY(call, cudaEventRecord(*event, call->stream));
out:
    return ret;
}

/* The seconds of a band and of its chase, once all is done. */
static tsvd_status
read_clock(struct cuda_call *call, const struct cuda_dense *run, const struct stage_clock *clock,
           struct dense_job *job)
{
    float milliseconds = 0;
    tsvd_status ret = TSVD_OK;

    for (int s = 0; s < run->stages; s++) {
        const struct stage *stage = run->stage[s].stage;
        double *const to = stage == &tsvdi_cuda_dense_band_stage    ? &job->band
                           : stage == &tsvdi_cuda_dense_chase_stage ? &job->chase
                                                                    : NULL;

        if (to != NULL) {
            CUDA_TRY(call, cudaEventElapsedTime(&milliseconds, clock->at[s], clock->at[s + 1]));
            *to += 1e-3 * (double)milliseconds;
        }
    }
out:
    return ret;
}

/* W, of all columns or of the own ones. */
static tsvd_status
load(struct tsvd_context *ctx, const struct dense_job *job, struct cuda_dense *run,
     scalar *d_staging)
{
    const struct dense_matrices *a = &job->problem->a;
    const struct column_shares shares = shares_of(run->stage);
    unsigned long long *largest[TEAM_MOST];
    tsvd_status ret = TSVD_OK;

    if (run->team == NULL) {
        return tsvdi_cuda_dense_load(ctx, a, job->begin, &run->in, 1, d_staging);
    }
    TSVD_TRY(tsvdi_cuda_dense_load_share(ctx, a, &run->in, &shares, d_staging));
    TSVD_TRY(tsvdi_cuda_team_tell(run->team, &run->in.largest, sizeof run->in.largest, largest));
    TSVD_TRY(tsvdi_cuda_dense_scale_share(ctx, &run->in, &shares, largest));
    for (int s = 0; s < run->stages; s++) {
        struct stage_run *own = &run->stage[s];

        TSVD_TRY(tsvdi_cuda_team_tell(run->team, &own->m, sizeof own->m, own->m_of));
    }
out:
    return ret;
}

static tsvd_status
dense_reduce(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_dense *run = run_of(job);
    const struct dense_matrices *a = &job->problem->a;
    const size_t count = (size_t)job->count;
    const struct cuda_piece piece[] = {{job->kind, run->in.kind, count},
                                       {job->exponent, run->in.exponent, count * sizeof(real_int)}};
    const bool timed =
        run->stages > 1 && run->stage[run->stages - 1].listed == &tsvdi_cuda_dense_chase_stage;
    struct stage_clock clock = {};
    char *d_work = NULL;
    tsvd_status ret = TSVD_OK;

    free_workspace(ctx, job, run); /* of the chunk before this one */
    run->in.count = job->count;    /* the last chunk may be shorter than the first */
    TSVD_TRY(tsvdi_cuda_alloc(call,
                              reduce_bytes(call->device, run, tsvdi_cuda_dense_needs_staging(a)),
                              (void **)&run->d_reducing));
    d_work = run->d_reducing;
    TSVD_TRY(tsvdi_cuda_team_begin(run->team));
    TSVD_TRY(load(ctx, job, run, (scalar *)d_work));
    for (int s = 0; s < run->stages; s++) {
        if (timed) {
            TSVD_TRY(note_time(call, &clock.at[s]));
        }
        TSVD_TRY(factor(ctx, job, run, &run->stage[s], d_work));
    }
    if (timed) {
        TSVD_TRY(note_time(call, &clock.at[run->stages]));
    }
    TSVD_TRY(tsvdi_cuda_download_all(call, piece, dense_tells_exponents(job) ? 2 : 1));
    if (timed) {
        TSVD_TRY(read_clock(call, run, &clock, job));
    }
    TSVD_TRY(tsvdi_cuda_team_end(run->team));
    tsvdi_cuda_free(call, run->d_reducing);
    run->d_reducing = NULL;
out:
    end_clock(&clock);
    return ret;
}

/* ---- the way back ---- */

/* Replaces vectors x by Q x or P x of W, or the adjoint times x; without the Q of a stage that
   expands.  nonzero: only the first `nonzero` vectors are not zero in the first c entries, where
   the Q of stages after the first act. */
static tsvd_status
apply_stages(struct tsvd_context *ctx, const struct cuda_dense *run, int right, int transposed,
             struct dense_block x, int64_t nonzero, char *d_work)
{
    tsvd_status ret = TSVD_OK;

    for (int i = 0; i < run->stages; i++) {
        const int s = transposed ? i : run->stages - 1 - i;
        const struct stage_run *own = &run->stage[s];
        struct dense_block some = x;

        some.count = s > 0 && !right ? nonzero : x.count;
        if (own->stage->apply != NULL && (!right || own->stage->right)) {
            TSVD_TRY(own->stage->apply(ctx, own, right, transposed, some, d_work));
        }
    }
out:
    return ret;
}

static tsvd_status
dense_reserve(struct tsvd_context *ctx, struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const struct dense_shape shape = dense_shape_of(p);
    const bool on_host = p->call.to == TSVD_HOST;
    struct cuda_dense *run = run_of(job);
    struct workspace workspace;
    tsvd_status ret = TSVD_OK;

    free_workspace(ctx, job, run); /* of earlier results */
    TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), lay_out_workspace(run, p, on_host, NULL, &workspace),
                              (void **)&run->d_workspace));
    (void)lay_out_workspace(run, p, on_host, run->d_workspace, &workspace);
    if (!on_host) {
        workspace.s = (real *)p->S + job->begin * shape.k;
        if (p->vectors) {
            workspace.u = (scalar *)p->U + job->begin * shape.u_rows * shape.u_columns;
            workspace.vh = (scalar *)p->Vh + job->begin * shape.v_rows * shape.v_columns;
        }
    }
    run->out = {workspace.s, workspace.u, workspace.vh};
    job->b.s = workspace.s;
    job->b.L = p->vectors && left_in_place(run, p) ? (real *)workspace.u : workspace.left;
    job->b.R = p->vectors && right_in_place(p) ? (real *)workspace.vh : workspace.right;
out:
    return ret;
}

/* Makes U or Vh from L or R, [rows][columns], by a stage that expands. */
static tsvd_status
expand(struct tsvd_context *ctx, const struct cuda_dense *run, const real *d_from, int64_t rows,
       int64_t columns, struct dense_block x, scalar *d_to, const struct workspace *workspace)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

#if TSVD_COMPLEX
    x.d_x = workspace->inner;
    TSVD_TRY(
        tsvdi_cuda_dense_place(call, run->in.count, d_from, rows, columns, x.d_x, rows, columns));
#else
    x.d_x = (scalar *)d_from;
    (void)rows, (void)columns;
#endif
    TSVD_TRY(apply_stages(ctx, run, 0, 0, x, x.count, workspace->work));
    TSVD_TRY(run->stage[0].stage->expand(call, run->stage, x.count, x.rows, x.d_x, d_to,
                                         workspace->work));
out:
    return ret;
}

/* U = Q L, or conj(P) L if W is the transpose, from column `from` on. */
static tsvd_status
make_left(struct tsvd_context *ctx, const struct dense_job *job, const struct workspace *workspace,
          int64_t from)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t n = p->n, k = p->k;
    const int transposed = run->in.transposed;
    const struct dense_block l = {NULL, n * k, k, k, 0, transposed};
    const struct dense_block u = {run->out.u + from,
                                  shape.u_rows * shape.u_columns,
                                  shape.u_columns - from,
                                  shape.u_columns,
                                  0,
                                  transposed};
    tsvd_status ret = TSVD_OK;

    if (left_expands(run)) {
        return expand(ctx, run, job->b.L, n, k, l, run->out.u, workspace);
    }
    if (!left_in_place(run, p)) {
        TSVD_TRY(tsvdi_cuda_dense_place(call, run->in.count, job->b.L, n, k, run->out.u,
                                        shape.u_rows, shape.u_columns));
    } else if (shape.u_rows > n) {
        CUDA_TRY(call,
                 cudaMemsetAsync(run->out.u + n * k, 0,
                                 (size_t)((shape.u_rows - n) * k) * sizeof(scalar), call->stream));
    }
    if (n > 0) {
        TSVD_TRY(apply_stages(ctx, run, transposed, 0, u, k - from, workspace->work));
    }
out:
    return ret;
}

/* Vh = R P^H, or R Q^T if W is the transpose, from row `from` on. */
static tsvd_status
make_right(struct tsvd_context *ctx, const struct dense_job *job, const struct workspace *workspace,
           int64_t from)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t n = p->n, k = p->k;
    const int transposed = run->in.transposed;
    const struct dense_block r = {NULL, n * k, k, n, 1, !transposed};
    const struct dense_block vh = {run->out.vh + from * shape.v_columns,
                                   shape.v_rows * shape.v_columns,
                                   shape.v_rows - from,
                                   shape.v_columns,
                                   1,
                                   !transposed};
    tsvd_status ret = TSVD_OK;

    if (right_expands(run)) {
        return expand(ctx, run, job->b.R, k, n, r, run->out.vh, workspace);
    }
    if (!right_in_place(p)) {
        TSVD_TRY(tsvdi_cuda_dense_place(call, run->in.count, job->b.R, k, n, run->out.vh,
                                        shape.v_rows, shape.v_columns));
    }
    if (n > 0) {
        TSVD_TRY(apply_stages(ctx, run, !transposed, 0, vh, k - from, workspace->work));
    }
out:
    return ret;
}

/* How many vectors of one side are made from those of the other.  numbers: [k + 2 n] host. */
static tsvd_status
count_large(const struct tsvd_context *ctx, const struct dense_job *job, real *numbers,
            int64_t *count)
{
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const size_t n = (size_t)p->n, k = (size_t)p->k;
    const struct cuda_piece piece[] = {{numbers, job->b.s, k * sizeof(real)},
                                       {numbers + k, run->d, n * sizeof(real)},
                                       {numbers + k + n, run->e, n * sizeof(real)}};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_download_all(cuda_of(ctx), piece, 3));
    TSVD_TRY(large_values(ctx, p, numbers, numbers + k, numbers + k + n, count));
out:
    return ret;
}

/* U and Vh. */
static tsvd_status
make_sides(struct tsvd_context *ctx, const struct dense_job *job, const struct workspace *workspace)
{
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const bool right = p->a.rows < p->a.columns; /* the longer vectors take more work */
    real *numbers = NULL;
    int64_t large = 0;
    tsvd_status ret = TSVD_OK;

    if (tsvdi_cuda_dense_side_bytes(run, p) > 0) {
        TSVD_TRY(tsvdi_alloc(ctx, bytes_of(p->k + 2 * p->n, sizeof(real)), (void **)&numbers));
        TSVD_TRY(count_large(ctx, job, numbers, &large));
    }
    TSVD_TRY(tsvdi_cuda_team_begin(run->team));
    TSVD_TRY(make_left(ctx, job, workspace, right ? 0 : large));
    TSVD_TRY(make_right(ctx, job, workspace, right ? large : 0));
    TSVD_TRY(tsvdi_cuda_team_end(run->team));
    if (large > 0) {
        TSVD_TRY(tsvdi_cuda_dense_make_side(ctx, job, run, large, right, workspace->work));
    }
out:
    tsvdi_free(ctx, numbers);
    return ret;
}

static tsvd_status
dense_back(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const struct dense_shape shape = dense_shape_of(p);
    const bool on_host = p->call.to == TSVD_HOST;
    struct workspace workspace;
    tsvd_status ret = TSVD_OK;

    (void)lay_out_workspace(run, p, on_host, run->d_workspace, &workspace);
    if (p->vectors) {
        TSVD_TRY(make_sides(ctx, job, &workspace));
    }
    if (p->n > 0) {
        TSVD_TRY(tsvdi_cuda_dense_finish(call, &run->in, run->in.exponent, &run->out, shape,
                                         workspace.work));
    }
    if (on_host) {
        TSVD_TRY(cuda_dense_deliver(ctx, p, &run->out, job->begin, run->in.count));
    }
    TSVD_TRY(tsvdi_cuda_team_finish(run->team));
out:
    return ret;
}

static __global__ void
__launch_bounds__(ENTRY_THREADS)
    entries_kernel(int64_t c, int64_t count, const real *from_d, const real *from_e,
                   const real_int *exponent, real *d, real *e)
{
    const int64_t at = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x, matrix = at / c;

    if (at < c * count) {
        const int up = exponent != NULL ? (int)exponent[matrix] : 0;

        d[at] = REAL(ldexp(from_d[at], up));
        if (at % c < c - 1) {
            e[at - matrix] = REAL(ldexp(from_e[at], up));
        }
    }
}

/* B, d [count][c] and e [count][c - 1], with the scale of A unless `scaled`. */
static tsvd_status
copy_entries(struct cuda_call *call, const struct cuda_dense *run, int scaled, real *d_d, real *d_e)
{
    tsvd_status ret = TSVD_OK;

    entries_kernel<<<blocks_for(run->in.count * run->in.c, ENTRY_THREADS), ENTRY_THREADS, 0,
                     call->stream>>>(run->in.c, run->in.count, run->d, run->e,
                                     scaled ? NULL : run->in.exponent, d_d, d_e);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
dense_entries(struct tsvd_context *ctx, struct dense_job *job, int scaled, tsvd_space space,
              real *d, real *e)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct cuda_dense *run = run_of(job);
    const int64_t numbers = run->in.count * run->in.c, others = numbers - run->in.count;
    real *d_both = NULL;
    tsvd_status ret = TSVD_OK;

    if (space == TSVD_CUDA) {
        return copy_entries(call, run, scaled, d, e);
    }
    TSVD_TRY(tsvdi_cuda_alloc(call, bytes_of(numbers + others, sizeof(real)), (void **)&d_both));
    TSVD_TRY(copy_entries(call, run, scaled, d_both, d_both + numbers));
    TSVD_TRY(tsvdi_cuda_download(call, d, d_both, (size_t)numbers * sizeof(real)));
    if (others > 0) {
        TSVD_TRY(tsvdi_cuda_download(call, e, d_both + numbers, (size_t)others * sizeof(real)));
    }
out:
    tsvdi_cuda_free(call, d_both);
    return ret;
}

static tsvd_status
dense_apply(struct tsvd_context *ctx, struct dense_job *job, const struct dense_vectors *vectors)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct cuda_dense *run = run_of(job);
    const int64_t columns = vectors->columns;
    const int64_t rows = vectors->right ? job->problem->a.columns : job->problem->a.rows;
    const size_t bytes = (size_t)(run->in.count * rows * columns) * sizeof(scalar);
    const bool on_host = vectors->space == TSVD_HOST;
    struct dense_block x = {(scalar *)vectors->x, rows * columns, columns, columns, 0,
                            run->in.transposed};
    char *d_work = NULL;
    scalar *d_x = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, apply_bytes(run, columns), (void **)&d_work));
    if (on_host) {
        TSVD_TRY(tsvdi_cuda_alloc(call, bytes, (void **)&d_x));
        TSVD_TRY(tsvdi_cuda_upload(call, d_x, vectors->x, bytes));
        x.d_x = d_x;
    }
    TSVD_TRY(apply_stages(ctx, run, vectors->right != run->in.transposed, vectors->transposed, x,
                          columns, d_work));
    if (on_host) {
        TSVD_TRY(tsvdi_cuda_download(call, vectors->x, d_x, bytes));
    }
out:
    tsvdi_cuda_free(call, d_x);
    tsvdi_cuda_free(call, d_work);
    return ret;
}

/* ---- the state ---- */

static uint64_t
dense_state_bytes(const struct dense_job *job, unsigned *layout)
{
    struct cuda_dense run = *run_of(job);

    *layout = 0;
    for (int s = 0; s < run.stages; s++) {
        *layout |= run.stage[s].stage->number << 4 * s;
        *layout |= run.stage[s].stage == &tsvdi_cuda_dense_band_stage ? LAYOUT_BAND : 0;
    }
    return lay_out(&run, NULL);
}

static tsvd_status
dense_save(struct tsvd_context *ctx, const struct dense_job *job, void *to)
{
    unsigned layout;

    return tsvdi_cuda_download(cuda_of(ctx), to, run_of(job)->d_arrays,
                               (size_t)dense_state_bytes(job, &layout));
}

static tsvd_status
dense_restore(struct tsvd_context *ctx, struct dense_job *job, const void *from)
{
    unsigned layout;

    return tsvdi_cuda_upload(cuda_of(ctx), run_of(job)->d_arrays, from,
                             (size_t)dense_state_bytes(job, &layout));
}

/* ---- sizes ---- */

static struct bytes
dense_bytes(const struct dense_problem *p, int64_t count, int keep)
{
    const struct cuda_device *device = p->call.handle->cuda;
    struct cuda_dense run = shape_run(device, p, count, keep);
    struct bytes bytes = {sizeof(run), 0};
    uint64_t reduce, back;
    struct workspace workspace;

    reduce = reduce_bytes(device, &run, tsvdi_cuda_dense_needs_staging(&p->a));
    back = lay_out_workspace(&run, p, true, NULL, &workspace);
    if (run.stage[0].listed->otherwise != NULL) {
        run.stage[0].stage = run.stage[0].listed->otherwise;
        back = std::max(back, (uint64_t)lay_out_workspace(&run, p, true, NULL, &workspace));
    }
    bytes.device = bytes_add(lay_out(&run, NULL), std::max(reduce, back));
    return bytes;
}

/* Limited by memory, and by the blocks of a grid. */
static int64_t
dense_chunk_most(const struct dense_problem *p, int keep)
{
    const struct bytes one = dense_bytes(p, 1, keep);
    const uint64_t tiles =
        bytes_of(blocks_for(p->a.rows, TILE) + (int64_t)1, blocks_for(p->a.columns, TILE) + 1u);
    uint64_t available = 0, most, all;

    if (tsvdi_cuda_memory_free(&p->call.handle->cuda->call, &available) != TSVD_OK) {
        return 1;
    }
    available = available / 2 < CUDA_CHUNK_BYTES ? available / 2 : CUDA_CHUNK_BYTES;
    most = one.device > 0 ? available / one.device : UINT64_MAX;
    most = most < INT32_MAX / (4 * tiles) ? most : INT32_MAX / (4 * tiles);
    most = most > 1 ? most : 1;
    all = dense_bytes(p, (int64_t)most, keep).device;
    if (all > available) {
        most = (uint64_t)((double)most * ((double)available / (double)all));
    }
    return most > 1 ? (int64_t)most : 1;
}

const struct dense_ops tsvdi_cuda_dense = {
    .space = TSVD_CUDA,
    .accepts = NULL,
    .chunk_most = dense_chunk_most,
    .begin = dense_begin,
    .end = dense_end,
    .reduce = dense_reduce,
    .reserve = dense_reserve,
    .back = dense_back,
    .entries = dense_entries,
    .apply = dense_apply,
    .state_bytes = dense_state_bytes,
    .save = dense_save,
    .restore = dense_restore,
    .bytes = dense_bytes,
};
