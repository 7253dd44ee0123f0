/*
 * Dense matrices on the device: the operations of the seam, and their memory.  Mirrors
 * csrc/cpu/dense.
 */
#include "bidiagonalize/bidiagonalize.h"
#include "qr/qr.h"

enum { ENTRY_THREADS = 256 };

static struct cuda_dense *
run_of(const struct dense_job *job)
{
    return (struct cuda_dense *)job->state;
}

/* ---- memory ---- */

/* The state of a job for `count` matrices, without its arrays. */
static struct cuda_dense
shape_run(const struct cuda_call *call, const struct dense_problem *p, int64_t count, int qr_first,
          int keep)
{
    struct cuda_dense run = {};

    run.transposed = p->rows < p->columns;
    run.r = run.transposed ? p->columns : p->rows;
    run.c = run.transposed ? p->rows : p->columns;
    run.count = count;
    run.small = tsvdi_cuda_dense_small_fits(call, run.r, run.c) &&
                (run.c <= DENSE_SMALL_ORDER || count * DENSE_SMALL_SHARE >= call->multiprocessors);
    run.qr_first = qr_first && !run.small;
    run.cholesky = run.qr_first && keep != KEEP_ALL && !p->full;
    return run;
}

static size_t
lay_out(struct cuda_dense *run, char *base)
{
    const int64_t r = run->r, c = run->c, count = c > 0 ? run->count : 0;
    size_t at = 0;

    run->w = carve<real>(base, &at, count * r * c);
    run->r_factor = run->qr_first ? carve<real>(base, &at, count * c * c) : run->w;
    run->correction = carve<real>(base, &at, run->cholesky ? count * c * c : 0);
    run->tau = carve<real>(base, &at, run->qr_first ? count * c : 0);
    run->tau_q = carve<real>(base, &at, count * c);
    run->tau_p = carve<real>(base, &at, count * c);
    run->d = carve<real>(base, &at, count * c);
    run->e = carve<real>(base, &at, count * c);
    run->largest = carve<unsigned long long>(base, &at, count);
    run->exponent = carve<real_int>(base, &at, count);
    run->kind = carve<char>(base, &at, count);
    return at;
}

/* Workspace of reduce(): its steps use the same memory one after another. */
static uint64_t
reduce_work(const struct cuda_call *call, const struct cuda_dense *run, bool staged)
{
    const int64_t r = run->r, c = run->c, count = run->count, top = run->qr_first ? c : r;
    uint64_t most = staged ? bytes_of(count * r, bytes_of(c, sizeof(real))) : 0, other;

    if (run->qr_first) {
        other = tsvdi_cuda_dense_qr_bytes(call, r, c, count);
        most = other > most ? other : most;
    }
    if (run->cholesky) {
        other = tsvdi_cuda_dense_cholesky_bytes(call, r, c, count);
        most = other > most ? other : most;
    }
    other = run->small ? tsvdi_cuda_dense_small_bytes(r, c, count, 0)
                       : tsvdi_cuda_dense_reduce_bytes(call, top, c, count);
    return other > most ? other : most;
}

/* Workspace of reflectors on `vectors` vectors of each matrix. */
static uint64_t
reflect_work(const struct cuda_dense *run, int64_t vectors)
{
    return run->small ? tsvdi_cuda_dense_small_bytes(run->r, run->c, run->count, vectors)
                      : tsvdi_cuda_dense_reflect_bytes(run->orthonormal ? run->c : run->r, run->c,
                                                       run->count, vectors);
}

/* Whether U = Q L, or Vh = R Q^T if W is the transpose, is a product that writes another array. */
static bool
left_expands(const struct cuda_dense *run)
{
    return run->orthonormal && !run->transposed;
}

static bool
right_expands(const struct cuda_dense *run)
{
    return run->orthonormal && run->transposed;
}

/* Whether L, or R, has the layout of U, or of Vh, so that it can be made there. */
static bool
left_in_place(const struct cuda_dense *run, const struct dense_problem *p)
{
    return dense_shape_of(p).u_columns == p->b.k && (p->rows == p->b.n || run->count == 1) &&
           !left_expands(run);
}

static bool
right_in_place(const struct dense_problem *p)
{
    return p->columns == p->b.n; /* then Vh has k rows, also if it is full */
}

/* Memory that reserve() takes, and back() works in.  The results come first. */
struct workspace {
    real *s, *u, *vh, *left, *right;
    char *work;
};

static size_t
lay_out_workspace(const struct cuda_dense *run, const struct dense_problem *p, bool on_host,
                  char *base, struct workspace *workspace)
{
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t count = run->count, n = p->b.n, k = p->b.k;
    const int64_t most =
        shape.u_columns > shape.v_rows ? shape.u_columns : shape.v_rows; /* vectors of a side */
    const uint64_t finish = tsvdi_cuda_dense_finish_bytes(count, shape);
    const uint64_t expand = run->orthonormal ? bytes_of(count * n, bytes_of(k, sizeof(real))) : 0;
    uint64_t work = p->b.vectors ? reflect_work(run, most) : 0;
    size_t at = 0;

    workspace->s = carve<real>(base, &at, on_host ? count * k : 0);
    workspace->u = workspace->vh = workspace->left = workspace->right = NULL;
    if (p->b.vectors) {
        workspace->u = carve<real>(base, &at, on_host ? count * shape.u_rows * shape.u_columns : 0);
        workspace->vh =
            carve<real>(base, &at, on_host ? count * shape.v_rows * shape.v_columns : 0);
        workspace->left = carve<real>(base, &at, left_in_place(run, p) ? 0 : count * n * k);
        workspace->right = carve<real>(base, &at, right_in_place(p) ? 0 : count * n * k);
    }
    work = finish > work ? finish : work;
    work = expand > work ? expand : work;
    workspace->work = carve<char>(base, &at, (int64_t)work);
    return at;
}

static void
free_workspace(struct tsvd_context *ctx, const struct dense_job *job, struct cuda_dense *run)
{
    if (job->problem->b.to == TSVD_HOST) { /* results may still be in flight */
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
    free_workspace(ctx, job, run);
    tsvdi_cuda_free(cuda_of(ctx), run->d_arrays);
    tsvdi_host_free(&job->problem->b.handle->host, run);
    job->state = NULL;
}

static tsvd_status
dense_begin(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_dense *run = NULL;
    size_t bytes;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(
        tsvdi_host_alloc(&job->problem->b.handle->host, sizeof(*run), ctx->error, (void **)&run));
    *run = shape_run(call, job->problem, job->count, job->qr_first, job->keep);
    job->state = run;
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

/* QR of what was loaded. */
static tsvd_status
factor_tall(struct tsvd_context *ctx, const struct dense_job *job, struct cuda_dense *run,
            char *d_work)
{
    enum cholesky_outcome outcome = CHOLESKY_REFUSED;
    tsvd_status ret = TSVD_OK;

    if (run->cholesky) {
        TSVD_TRY(tsvdi_cuda_dense_cholesky(ctx, run, d_work, &outcome));
    }
    run->orthonormal = outcome == CHOLESKY_MADE;
    if (outcome == CHOLESKY_SPOILED) {
        TSVD_TRY(tsvdi_cuda_dense_load(ctx, job, run, (real *)d_work));
    }
    if (outcome != CHOLESKY_MADE) {
        TSVD_TRY(tsvdi_cuda_dense_qr(ctx, run, d_work));
    }
out:
    return ret;
}

static tsvd_status
dense_reduce(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_dense *run = run_of(job);
    const size_t count = (size_t)job->count;
    const struct dense_reduction to = {run->qr_first ? run->c : run->r,
                                       run->c,
                                       job->count,
                                       run->r_factor,
                                       run->tau_q,
                                       run->tau_p,
                                       job->d,
                                       job->e};
    const struct cuda_piece piece[] = {{job->kind, run->kind, count},
                                       {job->exponent, run->exponent, count * sizeof(real_int)}};
    char *d_work = NULL;
    tsvd_status ret = TSVD_OK;

    free_workspace(ctx, job, run); /* of the chunk before this one */
    run->count = job->count;       /* the last chunk may be shorter than the first */
    TSVD_TRY(tsvdi_cuda_alloc(call, reduce_work(call, run, tsvdi_cuda_dense_stages(job->problem)),
                              (void **)&d_work));
    TSVD_TRY(tsvdi_cuda_dense_load(ctx, job, run, (real *)d_work));
    if (run->qr_first) {
        TSVD_TRY(factor_tall(ctx, job, run, d_work));
    }
    if (run->small) {
        TSVD_TRY(tsvdi_cuda_dense_small_reduce(call, to.r, to.c, to.count, to.w, to.tau_q, to.tau_p,
                                               to.d, to.e));
    } else {
        TSVD_TRY(tsvdi_cuda_dense_reduce(ctx, &to, d_work));
    }
    TSVD_TRY(tsvdi_cuda_download_all(call, piece, dense_tells_exponents(job) ? 2 : 1));
out:
    tsvdi_cuda_free(call, d_work);
    return ret;
}

/* ---- the way back ---- */

/* Replaces vectors x by Q x or P x of W, or the transpose times x; without the Q of QR if that is
   `orthonormal`.  own: after a QR only the first `own` vectors are not zero in the first c entries,
   where the reflectors of its triangle act. */
static tsvd_status
reflect(struct tsvd_context *ctx, const struct cuda_dense *run, int right, int transposed,
        struct dense_block x, int64_t own, char *d_work)
{
    const int64_t r = run->r, c = run->c, count = run->count, top = run->qr_first ? c : r;
    const struct dense_factor inner = {right ? c : top,
                                       count,
                                       right,
                                       run->r_factor,
                                       top,
                                       top * c,
                                       right ? run->tau_p : run->tau_q,
                                       c,
                                       0};
    const struct dense_factor outer = {r, count, 0, run->w, r, r * c, run->tau, c, 0};
    const bool both = run->qr_first && !right && !run->orthonormal;
    struct dense_block some = x;
    tsvd_status ret = TSVD_OK;

    if (run->small) {
        TSVD_TRY(tsvdi_cuda_dense_small_apply(cuda_of(ctx), r, c, count, run->w, inner.tau, right,
                                              transposed, x));
        goto out;
    }
    if (both) {
        some.count = own;
        if (transposed) {
            TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &outer, 0, c, x, 1, d_work));
        }
    }
    TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &inner, 0, right ? c - 1 : c, some, transposed, d_work));
    if (both && !transposed) {
        TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &outer, 0, c, x, 0, d_work));
    }
out:
    return ret;
}

static tsvd_status
dense_reserve(struct tsvd_context *ctx, struct dense_job *job)
{
    const struct dense_problem *p = job->problem;
    const struct dense_shape shape = dense_shape_of(p);
    const bool on_host = p->b.to == TSVD_HOST;
    struct cuda_dense *run = run_of(job);
    struct workspace workspace;
    tsvd_status ret = TSVD_OK;

    free_workspace(ctx, job, run); /* of earlier results */
    TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), lay_out_workspace(run, p, on_host, NULL, &workspace),
                              (void **)&run->d_workspace));
    (void)lay_out_workspace(run, p, on_host, run->d_workspace, &workspace);
    if (!on_host) {
        workspace.s = (real *)p->b.s + job->begin * shape.k;
        if (p->b.vectors) {
            workspace.u = (real *)p->b.L + job->begin * shape.u_rows * shape.u_columns;
            workspace.vh = (real *)p->b.R + job->begin * shape.v_rows * shape.v_columns;
        }
    }
    run->s = workspace.s;
    run->u = workspace.u;
    run->vh = workspace.vh;
    job->b.s = workspace.s;
    job->b.L = p->b.vectors && left_in_place(run, p) ? workspace.u : workspace.left;
    job->b.R = p->b.vectors && right_in_place(p) ? workspace.vh : workspace.right;
out:
    return ret;
}

/* U = Q L, or P L if W is the transpose. */
static tsvd_status
make_left(struct tsvd_context *ctx, const struct dense_job *job, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t n = p->b.n, k = p->b.k;
    const struct dense_block l = {job->b.L, n * k, k, k, 0};
    const struct dense_block u = {run->u, shape.u_rows * shape.u_columns, shape.u_columns,
                                  shape.u_columns, 0};
    tsvd_status ret = TSVD_OK;

    if (left_expands(run)) {
        TSVD_TRY(reflect(ctx, run, 0, 0, l, k, d_work));
        TSVD_TRY(tsvdi_cuda_dense_expand(call, run, k, 0, job->b.L, run->u, d_work));
        goto out;
    }
    if (!left_in_place(run, p)) {
        TSVD_TRY(tsvdi_cuda_dense_place(call, run->count, job->b.L, n, k, run->u, shape.u_rows,
                                        shape.u_columns));
    } else if (shape.u_rows > n) {
        CUDA_TRY(call,
                 cudaMemsetAsync(run->u + n * k, 0, (size_t)((shape.u_rows - n) * k) * sizeof(real),
                                 call->stream));
    }
    if (n > 0) {
        TSVD_TRY(reflect(ctx, run, run->transposed, 0, u, k, d_work));
    }
out:
    return ret;
}

/* Vh = R P^T, or R Q^T if W is the transpose. */
static tsvd_status
make_right(struct tsvd_context *ctx, const struct dense_job *job, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t n = p->b.n, k = p->b.k;
    const struct dense_block r = {job->b.R, n * k, k, n, 1};
    const struct dense_block vh = {run->vh, shape.v_rows * shape.v_columns, shape.v_rows,
                                   shape.v_columns, 1};
    tsvd_status ret = TSVD_OK;

    if (right_expands(run)) {
        TSVD_TRY(reflect(ctx, run, 0, 0, r, k, d_work));
        TSVD_TRY(tsvdi_cuda_dense_expand(call, run, k, 1, job->b.R, run->vh, d_work));
        goto out;
    }
    if (!right_in_place(p)) {
        TSVD_TRY(tsvdi_cuda_dense_place(call, run->count, job->b.R, k, n, run->vh, shape.v_rows,
                                        shape.v_columns));
    }
    if (n > 0) {
        TSVD_TRY(reflect(ctx, run, !run->transposed, 0, vh, k, d_work));
    }
out:
    return ret;
}

static tsvd_status
dense_back(struct tsvd_context *ctx, struct dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct cuda_dense *run = run_of(job);
    const struct dense_shape shape = dense_shape_of(p);
    const bool on_host = p->b.to == TSVD_HOST;
    struct workspace workspace;
    tsvd_status ret = TSVD_OK;

    (void)lay_out_workspace(run, p, on_host, run->d_workspace, &workspace);
    if (p->b.vectors) {
        TSVD_TRY(make_left(ctx, job, workspace.work));
        TSVD_TRY(make_right(ctx, job, workspace.work));
    }
    if (p->b.n > 0) {
        TSVD_TRY(tsvdi_cuda_dense_finish(call, run, shape, workspace.work));
    }
    if (on_host) {
        TSVD_TRY(cuda_dense_deliver(ctx, p, run, job->begin));
    }
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

    entries_kernel<<<blocks_for(run->count * run->c, ENTRY_THREADS), ENTRY_THREADS, 0,
                     call->stream>>>(run->c, run->count, run->d, run->e,
                                     scaled ? NULL : run->exponent, d_d, d_e);
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
    const int64_t numbers = run->count * run->c, others = numbers - run->count;
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
    const int64_t rows = vectors->right ? job->problem->columns : job->problem->rows;
    const size_t bytes = (size_t)(run->count * rows * columns) * sizeof(real);
    const bool on_host = vectors->space == TSVD_HOST;
    struct dense_block x = {(real *)vectors->x, rows * columns, columns, columns, 0};
    char *d_work = NULL;
    real *d_x = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, reflect_work(run, columns), (void **)&d_work));
    if (on_host) {
        TSVD_TRY(tsvdi_cuda_alloc(call, bytes, (void **)&d_x));
        TSVD_TRY(tsvdi_cuda_upload(call, d_x, vectors->x, bytes));
        x.d_x = d_x;
    }
    TSVD_TRY(reflect(ctx, run, vectors->right != run->transposed, vectors->transposed, x, columns,
                     d_work));
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

    *layout = (run.small ? 2u : 0u) | (run.qr_first ? 1u : 0u);
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
dense_bytes(const struct dense_problem *p, int64_t count, int qr_first, int keep)
{
    const struct cuda_call *call = p->b.handle->cuda;
    struct cuda_dense run = shape_run(call, p, count, qr_first, keep);
    struct bytes bytes = {sizeof(run), 0};
    uint64_t reduce, back, other;
    struct workspace workspace;

    reduce = reduce_work(call, &run, tsvdi_cuda_dense_stages(p));
    back = lay_out_workspace(&run, p, true, NULL, &workspace);
    run.orthonormal = run.cholesky;
    other = lay_out_workspace(&run, p, true, NULL, &workspace);
    back = other > back ? other : back;
    bytes.device = bytes_add(lay_out(&run, NULL), reduce > back ? reduce : back);
    return bytes;
}

/* Limited by memory, and by the blocks of a grid. */
static int64_t
dense_chunk_most(const struct dense_problem *p, int qr_first, int keep)
{
    const struct bytes one = dense_bytes(p, 1, 0, keep);
    const uint64_t tiles =
        bytes_of(blocks_for(p->rows, TILE) + (int64_t)1, blocks_for(p->columns, TILE) + 1u);
    uint64_t available = 0, most, all;

    if (tsvdi_cuda_memory_free(p->b.handle->cuda, &available) != TSVD_OK) {
        return 1;
    }
    available = available / 2 < CUDA_CHUNK_BYTES ? available / 2 : CUDA_CHUNK_BYTES;
    most = one.device > 0 ? available / one.device : UINT64_MAX;
    most = most < INT32_MAX / (4 * tiles) ? most : INT32_MAX / (4 * tiles);
    most = most > 1 ? most : 1;
    all = dense_bytes(p, (int64_t)most, qr_first, keep).device;
    if (all > available) {
        most = (uint64_t)((double)most * ((double)available / (double)all));
    }
    return most > 1 ? (int64_t)most : 1;
}

const struct dense_ops tsvdi_cuda_dense = {
    .space = TSVD_CUDA,
    .qr_ratio = DENSE_QR_RATIO,
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
