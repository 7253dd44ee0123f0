/*
 * Dense matrices on the CPU: memory, results and signs.
 *
 * The SVD of B is made in the caller's arrays: L in U and R in Vh, each at the beginning.  They are
 * then spread to their places, and multiplied there.
 */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/matrix/matrix.h"
#include "cpu/tuning.h"

enum {
    /* tsvdi_check() is called again after moving this many numbers. */
    NUMBERS_PER_CHECK = 1 << 22
};

static int64_t
chunk_most(const struct dense_problem *p, int qr_first, int keep)
{
    const int64_t bytes = longer_of(p) * p->b.n * (int64_t)sizeof(scalar);
    const int64_t most = CPU_CHUNK_BYTES / (bytes > 0 ? bytes : 1);

    (void)qr_first, (void)keep;
    return most > 1 ? most : 1;
}

/* ---- begin and end ---- */

/* Bytes that a job of `count` matrices holds, without the workspace of the workers. */
static uint64_t
state_bytes_of(const struct dense_problem *p, int64_t count, int qr_first)
{
    const int64_t columns = p->b.n;
    uint64_t bytes = bytes_of(longer_of(p), bytes_of(columns, sizeof(scalar)));

    bytes = bytes_add(bytes, qr_first ? bytes_of(columns, bytes_of(columns, sizeof(scalar))) : 0);
    bytes = bytes_add(bytes, bytes_of(3 * columns, sizeof(scalar))); /* tau */
    bytes = bytes_add(bytes, bytes_of(2 * columns, sizeof(real)));   /* d and e */
    return bytes_of(count, bytes);
}

/* Numbers of a worker's workspace: the most that one of its steps takes, as they run one by one. */
static int64_t
workspace_of(const struct dense_problem *p)
{
    const int64_t reduce = tsvdi_cpu_dense_bidiagonalize_workspace(longer_of(p), p->b.n);
    const int64_t multiply = tsvdi_cpu_dense_multiply_workspace(longer_of(p));
    const int64_t most = p->b.n == 0 ? 0 : reduce > multiply ? reduce : multiply;

    return (most + CPU_REFLECTORS_BLOCK - 1) / CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
}

int
tsvdi_cpu_dense_workers(const struct dense_problem *p, int64_t count, int threads)
{
    const int64_t most = longer_of(p) * p->b.n <= CPU_SHARED_ENTRIES ? threads : 1;

    return (int)(count < most ? count < 1 ? 1 : count : most);
}

static tsvd_status
begin(struct tsvd_context *ctx, struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const int64_t rows = longer_of(p), columns = p->b.n, count = job->count;
    const int64_t order = job->qr_first ? columns : 0;
    struct dense_run *run = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *run, (void **)&run));
    memset(run, 0, sizeof *run);
    job->state = run;
    run->ctx = ctx;
    run->job = job;
    run->rows = rows;
    run->columns = columns;
    run->transposed = p->rows < p->columns;
    run->workers = tsvdi_cpu_dense_workers(p, count, ctx->threads);
    run->threads = run->workers > 1 ? 1 : ctx->threads;
    run->workspace = workspace_of(p);
    TSVD_TRY(tsvdi_alloc(ctx, state_bytes_of(p, count, job->qr_first), (void **)&run->w));
    run->r_factor = run->w + count * rows * columns;
    run->tau_q = run->r_factor + count * order * columns;
    run->tau_p = run->tau_q + count * columns;
    run->tau = run->tau_p + count * columns;
    job->d = (real *)(run->tau + count * columns);
    job->e = job->d + count * columns;
    /* not all entries are written later, and a saved state has to have the same bytes each time */
    memset(run->tau_q, 0, (size_t)(3 * count * columns) * sizeof *run->tau_q);
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(run->workers * run->workspace, sizeof(scalar)),
                         (void **)&run->work));
out:
    return ret;
}

static void
end(struct tsvd_context *ctx, struct dense_job *job)
{
    struct dense_run *run = job->state;

    if (run != NULL) {
        tsvdi_free(ctx, run->work);
        tsvdi_free(ctx, run->w);
    }
    tsvdi_free(ctx, run);
    job->state = NULL;
}

static struct bytes
dense_bytes(const struct dense_problem *p, int64_t count, int qr_first, int keep)
{
    const int threads = tsvdi_host_threads_for(p->b.handle->threads, INT64_MAX);
    const int64_t workspace = workspace_of(p);
    struct bytes bytes = {state_bytes_of(p, count, qr_first), 0};

    (void)keep; /* W holds the reflectors in any case */
    bytes.host = bytes_add(bytes.host, bytes_of(tsvdi_cpu_dense_workers(p, count, threads),
                                                bytes_of(workspace, sizeof(scalar))));
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

    TSVD_TRY(tsvdi_blas_enter(&run->ctx->problem->handle->blas, multiplying_threads(run),
                              run->ctx->error, &granted));
    run->threads = granted < threads ? granted : threads;
    ret = tsvdi_host_for_each(granted < workers ? granted : workers, run->job->count, task, arg);
out:
    run->threads = threads;
    tsvdi_blas_leave(granted);
    return ret;
}

/* ---- reduction ---- */

/* R of matrix i, with zeros below its diagonal. */
static void
copy_triangle(const struct dense_run *run, int64_t i, scalar *to)
{
    const scalar *w = run->w + i * run->rows * run->columns;
    const int64_t columns = run->columns;

    for (int64_t j = 0; j < columns; j++) {
        memcpy(to + j * columns, w + j * run->rows, (size_t)(j + 1) * sizeof *to);
        memset(to + j * columns + j + 1, 0, (size_t)(columns - j - 1) * sizeof *to);
    }
}

static tsvd_status
reduce_one(void *arg, int worker, int64_t i)
{
    struct dense_run *run = arg;
    const int64_t first = i * run->columns;
    const struct dense_bidiagonal b = {run->job->d + first, run->job->e + first, run->tau_q + first,
                                       run->tau_p + first};
    struct dense_matrix m = {run->w + first * run->rows, run->rows, run->columns, run->rows};
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && run->workers > 1) {
        TSVD_TRY(tsvdi_check(run->ctx, DENSE_REDUCED * (double)i / (double)run->job->count));
    }
    TSVD_TRY(tsvdi_cpu_dense_load(run, worker, i));
    if (run->job->qr_first) {
        TSVD_TRY(tsvdi_cpu_dense_qr(run, worker, m, run->tau + first));
        m.a = run->r_factor + first * run->columns;
        m.rows = m.stride = run->columns;
        copy_triangle(run, i, m.a);
    }
    TSVD_TRY(tsvdi_cpu_dense_bidiagonalize(run, worker, m, b));
out:
    return ret;
}

static tsvd_status
reduce(struct tsvd_context *ctx, struct dense_job *job)
{
    struct dense_run *run = job->state;

    run->ctx = ctx;
    return tsvdi_cpu_dense_for_each(run, reduce_one, run);
}

static tsvd_status
entries(struct tsvd_context *ctx, struct dense_job *job, int scaled, tsvd_space space, real *d,
        real *e)
{
    const int64_t n = job->problem->b.n;

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

/* Bytes of the state: W and the arrays after it. */
static uint64_t
state_bytes(const struct dense_job *job, unsigned *layout)
{
    *layout = (unsigned)job->qr_first;
    return state_bytes_of(job->problem, job->count, job->qr_first);
}

static tsvd_status
save(struct tsvd_context *ctx, const struct dense_job *job, void *to)
{
    const struct dense_run *run = job->state;
    unsigned layout;

    (void)ctx;
    memcpy(to, run->w, (size_t)state_bytes(job, &layout));
    return TSVD_OK;
}

static tsvd_status
restore(struct tsvd_context *ctx, struct dense_job *job, const void *from)
{
    const struct dense_run *run = job->state;
    unsigned layout;

    (void)ctx;
    memcpy(run->w, from, (size_t)state_bytes(job, &layout));
    return TSVD_OK;
}

/* ---- results ---- */

/* U and Vh of the chunk. */
static struct dense_piece
left_of(const struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const int64_t columns = p->full ? p->rows : p->b.k;
    const struct dense_piece left = {(scalar *)p->b.L + job->begin * p->rows * columns, p->rows,
                                     columns};

    return left;
}

static struct dense_piece
right_of(const struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const int64_t rows = p->full ? p->columns : p->b.k;
    const struct dense_piece right = {(scalar *)p->b.R + job->begin * rows * p->columns, rows,
                                      p->columns};

    return right;
}

static tsvd_status
reserve(struct tsvd_context *ctx, struct dense_job *job)
{
    (void)ctx;
    job->b.s = (real *)job->problem->b.s + job->begin * job->problem->b.k;
    job->b.L = job->b.R = NULL;
    if (job->problem->b.vectors) {
        job->b.L = left_of(job).x;
        job->b.R = right_of(job).x;
    }
    return TSVD_OK;
}

/* Moves `count` matrices of rows x columns from the beginning of an array to their places in it,
   and completes each by a part of the identity.  No number moves towards the beginning, so the last
   one moves first. */
static tsvd_status
spread(struct tsvd_context *ctx, struct dense_piece to, int64_t rows, int64_t columns,
       int64_t count)
{
    int64_t moved = 0;
    tsvd_status ret = TSVD_OK;

    if (to.rows == rows && to.columns == columns) {
        goto out;
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        for (int64_t j = to.rows - 1; j >= 0; j--) {
            scalar *row = to.x + (i * to.rows + j) * to.columns;
            const int64_t kept = j < rows ? columns : 0;

            memmove(row, to.x + (i * rows + (kept ? j : 0)) * columns, (size_t)kept * sizeof *row);
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

void
tsvdi_cpu_dense_fix_signs(int64_t k, struct dense_piece left, struct dense_piece right)
{
    for (int64_t first = 0; first < k; first += CPU_SIGNS_TOGETHER) {
        const int64_t count = k - first < CPU_SIGNS_TOGETHER ? k - first : CPU_SIGNS_TOGETHER;
        real sign[CPU_SIGNS_TOGETHER];

        tsvdi_kernels()->orient(count, left.rows, left.x + first, left.columns, sign);
        for (int64_t j = 0; j < count; j++) {
            scalar *row = right.x + (first + j) * right.columns;

            for (int64_t i = 0; i < right.columns && sign[j] < 0; i++) {
                row[i] = -row[i];
            }
        }
    }
}

static tsvd_status
finish_one(void *arg, int worker, int64_t i)
{
    struct dense_run *run = arg;
    const struct dense_job *job = run->job;
    const struct dense_problem *p = job->problem;
    const int nan = p->b.n > 0 && job->kind[i] == NONFINITE;
    real *s = job->b.s + i * p->b.k;
    struct dense_piece left, right;
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && run->workers > 1) {
        const double done = (double)i / (double)job->count;

        TSVD_TRY(tsvdi_check(run->ctx, DENSE_SOLVED + (1 - DENSE_SOLVED) * done));
    }
    r_scale(s, p->b.k, p->b.n > 0 ? -job->exponent[i] : 0, s);
    if (nan) {
        tsvdi_host_fill_nan(p->b.k, s);
    }
    if (!p->b.vectors) {
        goto out;
    }
    left = left_of(job);
    right = right_of(job);
    left.x += i * left.rows * left.columns;
    right.x += i * right.rows * right.columns;
    if (nan) {
        tsvdi_host_fill_nan(left.rows * left.columns, left.x);
        tsvdi_host_fill_nan(right.rows * right.columns, right.x);
    } else if (p->b.n > 0) {
        const struct dense_block columns = {left.x, left.rows, left.columns, left.columns, 0};
        const struct dense_block rows = {right.x, right.columns, right.rows, right.columns, 1};
        const double part = (1 - DENSE_SOLVED) / 2;

        TSVD_TRY(tsvdi_cpu_dense_apply(run, worker, i, 0, 0, columns, DENSE_SOLVED, part));
        TSVD_TRY(tsvdi_cpu_dense_apply(run, worker, i, 1, 0, rows, DENSE_SOLVED + part, part));
        tsvdi_cpu_dense_fix_signs(p->b.k, left, right);
    }
out:
    return ret;
}

static tsvd_status
back(struct tsvd_context *ctx, struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    struct dense_run *run = job->state;
    tsvd_status ret = TSVD_OK;

    run->ctx = ctx;
    if (p->b.vectors) {
        TSVD_TRY(spread(ctx, left_of(job), p->b.n, p->b.k, job->count));
        TSVD_TRY(spread(ctx, right_of(job), p->b.k, p->b.n, job->count));
    }
    TSVD_TRY(tsvdi_cpu_dense_for_each(run, finish_one, run));
out:
    return ret;
}

/* ---- products with kept reflectors ---- */

static tsvd_status
apply_one(void *arg, int worker, int64_t i)
{
    struct dense_run *run = arg;
    const struct dense_vectors *v = run->vectors;
    const struct dense_problem *p = run->job->problem;
    const int64_t length = v->right ? p->columns : p->rows;
    const struct dense_block block = {(scalar *)v->x + i * length * v->columns, length, v->columns,
                                      v->columns, 0};

    return tsvdi_cpu_dense_apply(run, worker, i, v->right, v->transposed, block, 0, 1);
}

static tsvd_status
apply(struct tsvd_context *ctx, struct dense_job *job, const struct dense_vectors *vectors)
{
    struct dense_run *run = job->state;

    run->ctx = ctx;
    run->vectors = vectors;
    return tsvdi_cpu_dense_for_each(run, apply_one, run);
}

const struct dense_ops tsvdi_cpu_dense = {
    .space = TSVD_HOST,
    .qr_ratio = CPU_QR_RATIO,
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
