/*
 * Dense matrices on the CPU: memory, results and signs.
 *
 * The SVD of B is made in the caller's arrays: L in U and R in Vh, each at the beginning, as reals.
 * They are then spread to their places, and multiplied there.
 */
#include <string.h>

#include "cpu/dense/other_side.h"
#include "cpu/kernels/kernels.h"
#include "cpu/matrix/stages.h"
#include "cpu/tuning.h"

enum {
    /* tsvdi_check() is called again after moving this many numbers. */
    NUMBERS_PER_CHECK = 1 << 22
};

/* All dense matrices need a BLAS, whose sizes may be ints. */
static tsvd_status
accepts(const tsvd_handle *handle, const struct dense_matrices *a, int *needs_blas,
        tsvd_error *error)
{
    *needs_blas = 1;
    if (!tsvdi_blas_ready(&handle->blas, TSVD_COMPLEX)) {
        tsvdi_advise(error, "set config.blas, call tsvd_set_blas(), or build tsvd with TSVD_BLAS");
        return tsvdi_fail(error, TSVD_ERR_LIBRARY, "%s matrices need a BLAS on the CPU%s",
                          TSVD_COMPLEX ? "complex" : "dense",
                          TSVD_COMPLEX ? ", with zgemm and cgemm" : "");
    }
    if (a->rows > 0 && a->columns > 0 && a->batch.matrices > 0 &&
        (a->rows > INT32_MAX || a->columns > INT32_MAX)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "a matrix of %lld x %lld is too large for a BLAS", (long long)a->rows,
                          (long long)a->columns);
    }
    return TSVD_OK;
}

static int64_t
chunk_most(const struct dense_problem *p, int keep)
{
    const int64_t bytes = longer_of(&p->a) * p->n * (int64_t)sizeof(scalar);
    const int64_t most = CPU_CHUNK_BYTES / (bytes > 0 ? bytes : 1);

    (void)keep; /* W holds the reflectors, but those of a chase, whose matrices are large */
    return most > 1 ? most : 1;
}

/* ---- begin and end ---- */

/* Whether a band comes between W and B. */
static int
two_stages(const struct dense_problem *p, int keep)
{
    const int asked = p->call.options->dense_stages;
    const double share = keep == KEEP_ALL ? 1 : (double)p->whole_k / (double)p->n;
    const double with_vectors = CPU_BAND_FEW_FROM + share * (CPU_BAND_ALL_FROM - CPU_BAND_FEW_FROM);
    const double from = keep == KEEP_VALUES ? CPU_BAND_VALUES_FROM : with_vectors;
    const double slower = 1 + 0.5 * TSVD_SINGLE + 0.4 * TSVD_COMPLEX;

    return asked == 0 ? (double)p->n >= slower * from : asked == 2;
}

static void
add_stage(struct cpu_dense *state, const struct stage *stage)
{
    state->stage[state->stages++].stage = stage;
}

/* Lists the stages of a job of `count` matrices, and cuts `base` for what they keep.  Returns its
   numbers; base: NULL to count them. */
static uint64_t
list_stages(struct cpu_dense *state, const struct dense_problem *p, int64_t count, int keep,
            scalar *base)
{
    const int64_t rows = longer_of(&p->a), columns = p->n;
    double work = 0, done = 0;
    uint64_t numbers = 0;

    state->stages = 0;
    if (columns > 0 && (double)rows >= CPU_QR_RATIO * (double)columns) {
        add_stage(state, &tsvdi_cpu_dense_qr_stage);
    }
    if (columns > 0 && two_stages(p, keep)) {
        add_stage(state, &tsvdi_cpu_dense_band_stage);
        add_stage(state, &tsvdi_cpu_dense_chase_stage);
    } else {
        add_stage(state, &tsvdi_cpu_dense_bidiagonalize_stage);
    }
    for (int s = 0; s < state->stages; s++) {
        work += state->stage[s].stage->work;
    }
    for (int s = 0; s < state->stages; s++) {
        struct stage_run *own = &state->stage[s];
        const struct stage *stage = own->stage;

        own->rows = s == 0 ? rows : columns; /* what a stage leaves is square */
        own->columns = columns;
        own->numbers = stage->numbers(own->rows, columns, keep);
        own->keep = keep;
        own->done = done;
        own->share = DENSE_REDUCED * stage->work / work;
        done += own->share;
        if (base != NULL) {
            own->m = base + numbers;
            own->tau_q = own->m + count * own->numbers;
            own->tau_p = own->tau_q + count * columns;
        }
        numbers = bytes_add(numbers, bytes_of(count, (uint64_t)own->numbers));
        numbers = bytes_add(numbers, bytes_of(count, bytes_of(stage->sides, (uint64_t)columns)));
    }
    return numbers;
}

/* Bytes that a job of `count` matrices holds, without the workspace of the workers: what the stages
   keep, d and e. */
static uint64_t
kept_bytes(const struct dense_problem *p, int64_t count, int keep)
{
    struct cpu_dense state;
    const uint64_t kept = list_stages(&state, p, count, keep, NULL);

    return bytes_add(bytes_of((int64_t)kept, sizeof(scalar)),
                     bytes_of(count, bytes_of(2 * p->n, sizeof(real))));
}

/* Numbers of a worker's workspace: the most that one of its steps takes, as they run one by one. */
static int64_t
workspace_of(const struct dense_problem *p, int keep, int threads)
{
    const int64_t multiply = tsvdi_cpu_dense_multiply_workspace(longer_of(&p->a), threads);
    struct cpu_dense state;
    int64_t most = p->n == 0 ? 0 : multiply;

    if (tsvdi_cpu_dense_can_make_side(p, keep) && most < p->a.rows * p->a.columns) {
        most = p->a.rows * p->a.columns;
    }
    (void)list_stages(&state, p, 1, keep, NULL);
    for (int s = 0; s < state.stages && p->n > 0; s++) {
        const struct stage_run *own = &state.stage[s];
        const int64_t factor = own->stage->workspace(own->rows, own->columns, threads);

        most = factor > most ? factor : most;
    }
    return (most + CPU_REFLECTORS_BLOCK - 1) / CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
}

int
tsvdi_cpu_dense_workers(const struct dense_matrices *a, int64_t count, int threads)
{
    const int64_t most = a->rows * a->columns <= CPU_SHARED_ENTRIES ? threads : 1;

    return (int)(count < most ? count < 1 ? 1 : count : most);
}

static tsvd_status
begin(struct tsvd_context *ctx, struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const int64_t count = job->count, columns = p->n;
    struct cpu_dense *state = NULL;
    struct dense_run *run;
    scalar *kept = NULL;
    uint64_t numbers;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *state, (void **)&state));
    memset(state, 0, sizeof *state);
    job->state = state;
    state->job = job;
    run = &state->run;
    run->ctx = ctx;
    run->a = &p->a;
    run->rows = longer_of(&p->a);
    run->columns = columns;
    run->transposed = p->a.rows < p->a.columns;
    run->conjugate = 1;
    run->kind = job->kind;
    run->exponent = job->exponent;
    run->workers = tsvdi_cpu_dense_workers(&p->a, count, ctx->threads);
    run->threads = run->workers > 1 ? 1 : ctx->threads;
    run->slabs = 1;
    run->workspace = workspace_of(p, job->keep, run->threads);
    state->bytes = kept_bytes(p, count, job->keep);
    TSVD_TRY(tsvdi_alloc(ctx, state->bytes, (void **)&kept));
    numbers = list_stages(state, p, count, job->keep, kept);
    run->w = kept;
    if (kept != NULL) { /* else no matrix has an entry */
        job->d = (real *)(kept + numbers);
        job->e = job->d + count * columns;
    }
    for (int s = 0; s < state->stages && numbers > 0; s++) {
        /* not all entries are written later, and a saved state has to have the same bytes each
           time */
        const struct stage *stage = state->stage[s].stage;

        memset(state->stage[s].tau_q, 0, (size_t)(stage->sides * count * columns) * sizeof *kept);
    }
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(run->workers * run->workspace, sizeof(scalar)),
                         (void **)&run->work));
out:
    return ret;
}

static void
end(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cpu_dense *state = job->state;

    if (state != NULL) {
        tsvdi_free(ctx, state->run.work);
        tsvdi_free(ctx, state->run.w);
    }
    tsvdi_free(ctx, state);
    job->state = NULL;
}

static struct bytes
dense_bytes(const struct dense_problem *p, int64_t count, int keep)
{
    const int threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    const int workers = tsvdi_cpu_dense_workers(&p->a, count, threads);
    const int64_t workspace = workspace_of(p, keep, workers > 1 ? 1 : threads);
    struct bytes bytes = {kept_bytes(p, count, keep), 0};

    bytes.host = bytes_add(bytes.host, bytes_of(workers, bytes_of(workspace, sizeof(scalar))));
    return bytes;
}

/* Threads that multiply at once.  A small matrix by itself stays in the calling thread, which has
   its BLAS buffer since the first call: to ask the system for buffers would take a part of its
   time. */
static int
multiplying_threads(const struct dense_run *run)
{
    const int small =
        run->rows < CPU_DENSE_SHARED_NUMBERS && run->rows * run->columns < CPU_DENSE_SHARED_NUMBERS;

    return run->workers > 1 ? run->workers : small ? 1 : run->threads;
}

tsvd_status
tsvdi_cpu_dense_for_each(struct dense_run *run, tsvd_task task, void *arg)
{
    const int threads = run->threads, workers = run->workers;
    int granted = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_blas_enter(&run->ctx->call->handle->blas, multiplying_threads(run),
                              run->ctx->error, &granted));
    run->threads = granted < threads ? granted : threads;
    ret = tsvdi_host_for_each(granted < workers ? granted : workers, run->count, task, arg);
out:
    run->threads = threads;
    tsvdi_blas_leave(granted);
    return ret;
}

/* ---- reduction ---- */

/* Begins an operation of a job, whose chunk may be another one than before. */
static struct cpu_dense *
enter(struct tsvd_context *ctx, const struct dense_job *job)
{
    struct cpu_dense *state = job->state;

    state->run.ctx = ctx;
    state->run.begin = job->begin;
    state->run.count = job->count;
    return state;
}

static tsvd_status
reduce_one(void *arg, int worker, int64_t i)
{
    struct cpu_dense *state = arg;
    const struct dense_run *run = &state->run;
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && run->workers > 1) {
        TSVD_TRY(tsvdi_check(run->ctx, DENSE_REDUCED * (double)i / (double)run->count));
    }
    TSVD_TRY(tsvdi_cpu_dense_load(run, worker, i, 1));
    for (int s = 0; s < state->stages; s++) {
        TSVD_TRY(state->stage[s].stage->factor(state, worker, &state->stage[s], i));
    }
out:
    return ret;
}

static tsvd_status
reduce(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cpu_dense *state = enter(ctx, job);

    return tsvdi_cpu_dense_for_each(&state->run, reduce_one, state);
}

static tsvd_status
entries(struct tsvd_context *ctx, struct dense_job *job, int scaled, tsvd_space space, real *d,
        real *e)
{
    const int64_t n = job->problem->n;

    (void)ctx, (void)space; /* a handle of the CPU has arrays on the host only */
    for (int64_t i = 0; i < job->count; i++) {
        const real_int exponent = scaled ? 0 : -job->exponent[i];

        r_scale(job->d + i * n, n, exponent, d + i * n);
        if (n > 1) {
            r_scale(job->e + i * n, n - 1, exponent, e + i * (n - 1));
        }
    }
    return TSVD_OK;
}

/* Bytes of the state: W and the arrays after it.  The stages name its layout: how many there are,
   and whether a band is among them. */
static uint64_t
state_bytes(const struct dense_job *job, unsigned *layout)
{
    const struct cpu_dense *state = job->state;

    *layout = (unsigned)state->stages;
    for (int s = 0; s < state->stages; s++) {
        *layout |= state->stage[s].stage == &tsvdi_cpu_dense_band_stage ? LAYOUT_BAND : 0;
    }
    return state->bytes;
}

static tsvd_status
save(struct tsvd_context *ctx, const struct dense_job *job, void *to)
{
    const struct cpu_dense *state = job->state;
    unsigned layout;

    (void)ctx;
    memcpy(to, state->run.w, (size_t)state_bytes(job, &layout));
    return TSVD_OK;
}

static tsvd_status
restore(struct tsvd_context *ctx, struct dense_job *job, const void *from)
{
    const struct cpu_dense *state = job->state;
    unsigned layout;

    (void)ctx;
    memcpy(state->run.w, from, (size_t)state_bytes(job, &layout));
    return TSVD_OK;
}

/* ---- results ---- */

/* U and Vh of the chunk. */
static struct dense_array
left_of(const struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const int64_t columns = p->full ? p->a.rows : p->k;
    const struct dense_array left = {(scalar *)p->U + job->begin * p->a.rows * columns, p->a.rows,
                                     columns};

    return left;
}

static struct dense_array
right_of(const struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const int64_t rows = p->full ? p->a.columns : p->k;
    const struct dense_array right = {(scalar *)p->Vh + job->begin * rows * p->a.columns, rows,
                                      p->a.columns};

    return right;
}

static tsvd_status
reserve(struct tsvd_context *ctx, struct dense_job *job)
{
    (void)ctx;
    job->b.s = (real *)job->problem->S + job->begin * job->problem->k;
    job->b.L = job->b.R = NULL;
    if (job->problem->vectors) {
        job->b.L = (real *)left_of(job).x;
        job->b.R = (real *)right_of(job).x;
    }
    return TSVD_OK;
}

/* Moves reals to a place that does not begin before theirs, as scalars. */
static void
widen(int64_t count, const real *from, scalar *to)
{
#if TSVD_COMPLEX
    for (int64_t i = count - 1; i >= 0; i--) {
        const real here = from[i]; /* before it is overwritten */

        to[i] = here;
    }
#else
    memmove(to, from, (size_t)count * sizeof *to);
#endif
}

/* Moves `count` matrices of rows x columns reals from the beginning of an array to their places in
   it, and completes each by a part of the identity.  No number moves towards the beginning, so the
   last one moves first. */
static tsvd_status
spread(struct tsvd_context *ctx, struct dense_array to, int64_t rows, int64_t columns,
       int64_t count)
{
    int64_t moved = 0;
    tsvd_status ret = TSVD_OK;

    if (!TSVD_COMPLEX && to.rows == rows && to.columns == columns) {
        goto out;
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        for (int64_t j = to.rows - 1; j >= 0; j--) {
            scalar *row = to.x + (i * to.rows + j) * to.columns;
            const int64_t kept = j < rows ? columns : 0;

            widen(kept, (const real *)to.x + (i * rows + (kept ? j : 0)) * columns, row);
            memset(row + kept, 0, (size_t)(to.columns - kept) * sizeof *row);
            if (j >= rows && j < to.columns) {
                row[j] = 1;
            }
            moved += to.columns;
            if (moved >= NUMBERS_PER_CHECK) {
                TSVD_TRY(tsvdi_check(ctx, DENSE_SOLVED));
                moved = 0;
            }
        }
    }
out:
    return ret;
}

/* Multiplies a row by what orient() divided its column by. */
static void
turn_back(int64_t count, scalar sign, scalar *row)
{
#if TSVD_COMPLEX
    for (int64_t i = 0; i < count && sign != 1; i++) {
        row[i] = n_mul(sign, row[i]);
    }
#else
    for (int64_t i = 0; i < count && sign < 0; i++) {
        row[i] = -row[i];
    }
#endif
}

void
tsvdi_cpu_dense_fix_signs(int64_t k, struct dense_array left, struct dense_array right)
{
    for (int64_t first = 0; first < k; first += CPU_SIGNS_TOGETHER) {
        const int64_t count = k - first < CPU_SIGNS_TOGETHER ? k - first : CPU_SIGNS_TOGETHER;
        scalar sign[CPU_SIGNS_TOGETHER];

        tsvdi_kernels()->orient(count, left.rows, left.x + first, left.columns, sign);
        for (int64_t j = 0; j < count; j++) {
            scalar *row = right.x + (first + j) * right.columns;

            turn_back(right.columns, sign[j], row);
        }
    }
}

/* U and Vh of a matrix from the vectors of its B: s [k] as they are there. */
static tsvd_status
multiply_vectors(struct cpu_dense *state, int worker, int64_t i, const real *s,
                 struct dense_array left, struct dense_array right)
{
    const struct dense_job *job = state->job;
    const struct dense_problem *p = job->problem;
    const struct dense_block columns = {left.x, left.rows, left.columns, left.columns, 0, 0};
    const struct dense_block rows = {right.x, right.columns, right.rows, right.columns, 1, 1};
    const double part = (1 - DENSE_SOLVED) / 2;
    const int make_right = p->a.rows <= p->a.columns; /* of equal sides it is the slower one */
    struct dense_block made = make_right ? rows : columns;
    int64_t large = 0;
    tsvd_status ret = TSVD_OK;

    if (tsvdi_cpu_dense_can_make_side(p, job->keep)) {
        TSVD_TRY(tsvdi_cpu_dense_large_values(state->run.ctx, job, i, &large));
    }
    TSVD_TRY(tsvdi_cpu_dense_apply(state, worker, i, !make_right, 0, make_right ? columns : rows,
                                   DENSE_SOLVED, part));
    made.x += large * (make_right ? right.columns : 1);
    made.count -= large;
    TSVD_TRY(tsvdi_cpu_dense_apply(state, worker, i, make_right, 0, made, DENSE_SOLVED + part,
                                   large > 0 ? 0 : part));
    if (large > 0) {
        TSVD_TRY(tsvdi_cpu_dense_make_side(&state->run, worker, i, large, s, make_right, left,
                                           right, DENSE_SOLVED + part));
    }
    tsvdi_cpu_dense_fix_signs(p->k, left, right);
out:
    return ret;
}

static tsvd_status
finish_one(void *arg, int worker, int64_t i)
{
    struct cpu_dense *state = arg;
    const struct dense_run *run = &state->run;
    const struct dense_job *job = state->job;
    const struct dense_problem *p = job->problem;
    const int nan = p->n > 0 && job->kind[i] == NONFINITE;
    real *s = job->b.s + i * p->k;
    struct dense_array left, right;
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && run->workers > 1) {
        const double done = (double)i / (double)job->count;

        TSVD_TRY(tsvdi_check(run->ctx, DENSE_SOLVED + (1 - DENSE_SOLVED) * done));
    }
    if (p->vectors) {
        left = left_of(job);
        right = right_of(job);
        left.x += i * left.rows * left.columns;
        right.x += i * right.rows * right.columns;
        if (nan) {
            tsvdi_host_fill_nan(N_PARTS * left.rows * left.columns, (real *)left.x);
            tsvdi_host_fill_nan(N_PARTS * right.rows * right.columns, (real *)right.x);
        } else if (p->n > 0) {
            TSVD_TRY(multiply_vectors(state, worker, i, s, left, right));
        }
    }
    r_scale(s, p->k, p->n > 0 ? -job->exponent[i] : 0, s);
    if (nan) {
        tsvdi_host_fill_nan(p->k, s);
    }
out:
    return ret;
}

static tsvd_status
back(struct tsvd_context *ctx, struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    struct cpu_dense *state = enter(ctx, job);
    tsvd_status ret = TSVD_OK;

    if (p->vectors) {
        TSVD_TRY(spread(ctx, left_of(job), p->n, p->k, job->count));
        TSVD_TRY(spread(ctx, right_of(job), p->k, p->n, job->count));
    }
    TSVD_TRY(tsvdi_cpu_dense_for_each(&state->run, finish_one, state));
out:
    return ret;
}

/* ---- products with kept reflectors ---- */

static tsvd_status
apply_one(void *arg, int worker, int64_t i)
{
    struct cpu_dense *state = arg;
    const struct dense_vectors *v = state->vectors;
    const int64_t length = v->right ? state->run.a->columns : state->run.a->rows;
    const struct dense_block block = {
        (scalar *)v->x + i * length * v->columns, length, v->columns, v->columns, 0, 0};

    return tsvdi_cpu_dense_apply(state, worker, i, v->right, v->transposed, block, 0, 1);
}

static tsvd_status
apply(struct tsvd_context *ctx, struct dense_job *job, const struct dense_vectors *vectors)
{
    struct cpu_dense *state = enter(ctx, job);

    state->vectors = vectors;
    return tsvdi_cpu_dense_for_each(&state->run, apply_one, state);
}

const struct dense_ops tsvdi_cpu_dense = {
    .space = TSVD_HOST,
    .accepts = accepts,
    .chunk_most = chunk_most,
    .begin = begin,
    .end = end,
    .reduce = reduce,
    .reserve = reserve,
    .back = back,
    .entries = entries,
    .apply = apply,
    .state_bytes = state_bytes,
    .save = save,
    .restore = restore,
    .bytes = dense_bytes,
};
