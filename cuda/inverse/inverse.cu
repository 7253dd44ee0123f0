/*
 * Inverses on the device: the operations of the seam, and their memory.  Mirrors csrc/cpu/inverse.
 */
#include <algorithm>
#include <climits>

#include "inverse/tiny.cuh"

static struct cuda_inverse *
run_of(const struct inverse_job *job)
{
    return (struct cuda_inverse *)job->state;
}

/* ---- memory ---- */

/* Workspace of a chunk; NULL where it is not needed. */
struct workspace {
    scalar *s; /* [count][n][n] S, for refine() */
    char *scale;
    int *p; /* [count][n] */
    char *large, *refine;
};

/* How a chunk is worked on. */
struct inverse_shape {
    int64_t n, count;
    bool small; /* small.cu eliminates, or tiny.cuh */
    bool refine, on_host, staged;
    bool direct; /* one kernel makes M's inverse, without a workspace */
    bool tiny;   /* it is that of tiny.cuh */
    bool loaded; /* by load(); else M is read where the caller has it */
};

/* Whether the caller's matrices lie as load() would write them. */
static bool
is_ready(const struct dense_matrices *a)
{
    int64_t stride = a->rows * (int64_t)sizeof(scalar);
    bool ready = a->space == TSVD_CUDA && a->column_stride == (int64_t)sizeof(scalar) &&
                 a->row_stride == stride && (uintptr_t)a->data % alignof(scalar) == 0;

    stride *= a->rows;
    for (int i = a->batch.ndim - 1; i >= 0; i--) {
        ready = ready && a->batch_strides[i] == stride;
        stride *= a->batch.shape[i];
    }
    return ready;
}

static struct inverse_shape
shape_of(const struct inverse_problem *p, int64_t count)
{
    struct inverse_shape shape = {};

    shape.n = p->a.rows;
    shape.count = count;
    shape.small = tsvdi_cuda_inverse_small_fits(shape.n);
    shape.refine = p->refine != 0;
    shape.on_host = p->call.to == TSVD_HOST;
    shape.staged = p->a.space == TSVD_HOST;
    shape.direct = shape.small && !p->refine;
    shape.tiny = shape.direct && shape.n <= TINY_ORDER;
    shape.loaded = !shape.direct || !is_ready(&p->a);
    return shape;
}

/* What lives as long as the job.  If small.cu or tiny.cuh eliminates, M is loaded to where the
   results are made. */
static size_t
lay_out(const struct inverse_shape &shape, struct cuda_inverse *run, char *base)
{
    const int64_t n = shape.n, count = shape.count, numbers = count * n * n;
    size_t at = 0;

    run->in.w = carve<scalar>(base, &at, shape.small ? 0 : numbers);
    run->in.largest = carve<unsigned long long>(base, &at, shape.loaded ? count : 0);
    run->in.exponent = carve<real_int>(base, &at, shape.loaded ? count : 0);
    run->in.kind = shape.loaded ? carve<char>(base, &at, count) : NULL;
    run->grown = carve<char>(base, &at, shape.tiny ? 0 : 2 * count);
    run->singular = run->grown + count;
    run->norms = carve<double>(base, &at, shape.direct ? 0 : 4 * count);
    run->x_norms = run->norms + count;
    run->off = run->x_norms + count;
    run->size = run->off + count;
    run->z = carve<scalar_double>(base, &at, shape.direct ? 0 : count * n);
    run->row = carve<int>(base, &at, shape.direct ? 0 : 2 * count * n);
    run->column = run->row + count * n;
    run->marks = carve<struct inverse_marks>(base, &at, shape.tiny ? 0 : 1);
    return at;
}

/* Workspace of a chunk.  The staging memory of load() is an alias of it, as it is used before. */
static size_t
lay_out_work(struct cuda_call *call, const struct inverse_shape &shape, char *base,
             struct workspace *work)
{
    const int64_t n = shape.n, count = shape.count, numbers = count * n * n;
    size_t at = 0;

    work->s = carve<scalar>(base, &at, shape.refine ? numbers : 0);
    work->scale = carve<char>(base, &at,
                              shape.direct ? 0 : (int64_t)tsvdi_cuda_inverse_scale_bytes(n, count));
    work->p = carve<int>(base, &at, shape.small ? 0 : count * n);
    work->large = carve<char>(
        base, &at, shape.small ? 0 : (int64_t)tsvdi_cuda_inverse_large_bytes(call, n, count));
    work->refine = carve<char>(
        base, &at, shape.refine ? (int64_t)tsvdi_cuda_inverse_refine_bytes(n, count) : 0);
    return std::max(at, shape.staged ? (size_t)numbers * sizeof(scalar) : (size_t)0);
}

/* Bytes of the results, if they are made for the host. */
static size_t
result_bytes(const struct inverse_shape &shape)
{
    return shape.on_host ? (size_t)(shape.count * shape.n * shape.n) * sizeof(scalar) : 0;
}

static struct bytes
inverse_bytes(const struct inverse_problem *p, int64_t count)
{
    const struct inverse_shape shape = shape_of(p, count);
    struct bytes bytes = {sizeof(struct cuda_inverse), 0};
    struct cuda_inverse run = {};
    struct workspace work;

    bytes.device = bytes_add(lay_out(shape, &run, NULL),
                             lay_out_work(&p->call.handle->cuda->call, shape, NULL, &work));
    bytes.device = bytes_add(bytes.device, result_bytes(shape));
    return bytes;
}

/* Limited by memory, and by the blocks of a grid. */
static int64_t
chunk_most(const struct inverse_problem *p)
{
    const int64_t n = p->a.rows;
    const uint64_t result = bytes_of(n, bytes_of(n, sizeof(scalar)));
    const uint64_t tiles = bytes_of(blocks_for(n, TILE), blocks_for(n, TILE));
    const uint64_t blocks = INT32_MAX / (tiles + (uint64_t)n);
    uint64_t most = std::min({(uint64_t)p->a.batch.matrices, CUDA_CHUNK_BYTES / result, blocks});
    uint64_t wanted, available = 0;

    most = std::max(most, (uint64_t)1);
    wanted = inverse_bytes(p, (int64_t)most).device;
    if (tsvdi_cuda_memory_for(&p->call.handle->cuda->call, wanted, &available) != TSVD_OK) {
        return 1;
    }
    if (available < wanted) {
        most = std::min(most, available / inverse_bytes(p, 1).device);
    }
    return most > 1 ? (int64_t)most : 1;
}

static void
inverse_end(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cuda_inverse *run = run_of(job);

    if (run != NULL) {
        tsvdi_cuda_free(cuda_of(ctx), run->d_arrays);
    }
    tsvdi_free(ctx, run);
    job->state = NULL;
}

static tsvd_status
inverse_begin(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct inverse_problem *p = job->problem;
    const struct inverse_shape shape = shape_of(p, job->count);
    struct cuda_inverse *run = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof(*run), (void **)&run));
    memset(run, 0, sizeof(*run));
    job->state = run;
    TSVD_TRY(cuda_take(call, lay_out(shape, run, NULL), &run->d_arrays));
    (void)lay_out(shape, run, run->d_arrays);
    run->in.r = run->in.c = p->a.rows;
    run->in.transposed = 1;
out:
    return ret;
}

/* ---- the inverses ---- */

/* The inverses of M, and what is found. */
static tsvd_status
make_inverses(struct tsvd_context *ctx, const struct inverse_shape &shape,
              const struct cuda_inverse *run, const struct workspace *work)
{
    struct cuda_call *call = cuda_of(ctx);
    const size_t bytes = (size_t)(shape.count * shape.n * shape.n) * sizeof(scalar);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaMemsetAsync(run->marks, 0xff, sizeof(*run->marks), call->stream));
    if (shape.direct) {
        return tsvdi_cuda_inverse_small(call, run, false);
    }
    TSVD_TRY(tsvdi_cuda_inverse_balance(call, run, work->scale));
    if (shape.refine) {
        CUDA_TRY(call, cudaMemcpyAsync(work->s, run->in.w, bytes, cudaMemcpyDeviceToDevice,
                                       call->stream));
    }
    if (shape.small) {
        TSVD_TRY(tsvdi_cuda_inverse_small(call, run, true));
    } else {
        TSVD_TRY(tsvdi_cuda_inverse_large(ctx, run, work->p, work->large));
    }
    if (!shape.refine) {
        TSVD_TRY(tsvdi_cuda_inverse_finish(call, run, work->p, run->in.w, work->scale));
        goto out;
    }
    if (!shape.small) {
        TSVD_TRY(tsvdi_cuda_inverse_arrange(call, run, work->p));
    }
    TSVD_TRY(tsvdi_cuda_inverse_refine(call, run, work->s, work->refine));
    TSVD_TRY(tsvdi_cuda_inverse_finish(call, run, NULL, run->x, work->scale));
out:
    return ret;
}

void
tsvdi_cuda_inverse_note(const struct inverse_marks *marks, int64_t begin,
                        struct inverse_findings *found)
{
    unsigned long long bits;
    double rcond;

    if (marks->nonfinite != ULLONG_MAX) {
        found->nonfinite = std::min(found->nonfinite, begin + (int64_t)marks->nonfinite);
    }
    if (marks->singular != ULLONG_MAX) {
        found->singular = std::min(found->singular, begin + (int64_t)marks->singular);
    }
    bits = marks->worst >> 32 << 32;
    memcpy(&rcond, &bits, sizeof(rcond));
    if (marks->worst != ULLONG_MAX && rcond < found->rcond) {
        found->rcond = rcond;
        found->matrix = begin + (int64_t)(uint32_t)marks->worst;
    }
}

/* Delivers the results of a chunk to the host; large ones arrive later. */
static tsvd_status
deliver(struct tsvd_context *ctx, const struct inverse_job *job, const struct cuda_inverse *run)
{
    const int64_t numbers = run->in.r * run->in.c;
    scalar *to = (scalar *)job->problem->X + job->begin * numbers;

    return cuda_deliver(ctx, to, run->x, (size_t)(job->count * numbers) * sizeof(scalar));
}

/* Makes run->in.w point to M, which is loaded if it must be. */
static tsvd_status
read_matrices(struct tsvd_context *ctx, const struct inverse_job *job,
              const struct inverse_shape &shape, struct cuda_inverse *run, char *d_staging)
{
    const struct dense_matrices *a = &job->problem->a;

    if (!shape.loaded) {
        run->in.w = (scalar *)a->data + job->begin * shape.n * shape.n;
        return TSVD_OK; /* it is only read */
    }
    if (shape.small) {
        run->in.w = run->x;
    }
    return tsvdi_cuda_dense_load(ctx, a, job->begin, &run->in, 0, (scalar *)d_staging);
}

/* Tells the job which matrices of a chunk grew. */
static tsvd_status
tell_grown(struct cuda_call *call, const struct inverse_job *job, const struct inverse_shape &shape,
           const struct cuda_inverse *run)
{
    const size_t bytes = (size_t)shape.count;
    char *d_grown = NULL;
    tsvd_status ret = TSVD_OK;

    if (!shape.tiny) {
        return tsvdi_cuda_download(call, job->grown, run->grown, bytes);
    }
    TSVD_TRY(tsvdi_cuda_alloc(call, bytes, (void **)&d_grown));
    TSVD_TRY(find_grown(call, run, d_grown));
    TSVD_TRY(tsvdi_cuda_download(call, job->grown, d_grown, bytes));
out:
    tsvdi_cuda_free(call, d_grown);
    return ret;
}

static tsvd_status
invert(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct inverse_problem *p = job->problem;
    const struct inverse_shape shape = shape_of(p, job->count);
    struct cuda_inverse *run = run_of(job);
    struct workspace work;
    struct inverse_marks marks;
    char *d_work = NULL, *d_workspace = NULL;
    tsvd_status ret = TSVD_OK;

    tsvdi_cuda_wait_releases(call);
    run->in.count = job->count;
    TSVD_TRY(cuda_take(call, lay_out_work(call, shape, NULL, &work), &d_work));
    (void)lay_out_work(call, shape, d_work, &work);
    TSVD_TRY(cuda_take(call, result_bytes(shape), &d_workspace));
    run->x =
        shape.on_host ? (scalar *)d_workspace : (scalar *)p->X + job->begin * shape.n * shape.n;
    TSVD_TRY(read_matrices(ctx, job, shape, run, d_work));
    if (shape.tiny) {
        TSVD_TRY(invert_tiny(call, run, &marks));
    } else {
        TSVD_TRY(make_inverses(ctx, shape, run, &work));
    }
    if (shape.on_host) {
        TSVD_TRY(deliver(ctx, job, run));
    }
    if (!shape.tiny) {
        TSVD_TRY(tsvdi_cuda_download(call, &marks, run->marks, sizeof(marks)));
    }
    tsvdi_cuda_inverse_note(&marks, job->begin, job->found);
    job->first_grown = job->count;
    if (marks.grown != ULLONG_MAX) {
        job->first_grown = (int64_t)marks.grown;
        TSVD_TRY(tell_grown(call, job, shape, run));
    }
out:
    tsvdi_cuda_free(call, d_work);
    tsvdi_cuda_free_after_downloads(call, d_workspace);
    return ret;
}

const struct inverse_ops tsvdi_cuda_inverse = {
    .chunk_most = chunk_most,
    .begin = inverse_begin,
    .end = inverse_end,
    .invert = invert,
    .rescue = tsvdi_cuda_inverse_rescue,
    .bytes = inverse_bytes,
};
