/*
 * Inverses on the device: the operations of the seam, their memory, and scaling.  Mirrors
 * csrc/cpu/inverse.
 */
#include <algorithm>
#include <climits>

#include "inverse/tiny.h"

/* Most bytes of the results of a chunk. */
static const uint64_t CHUNK_BYTES = (uint64_t)8 << 30;

enum {
    SCALE_THREADS = 256, /* rows of a block */
    SCALE_COLUMNS = 64   /* and its columns */
};

static struct cuda_inverse *
run_of(const struct inverse_job *job)
{
    return (struct cuda_inverse *)job->held;
}

/* ---- scaling ---- */

/* How matrices are cut into blocks of SCALE_THREADS rows and SCALE_COLUMNS columns. */
struct cutting {
    int64_t n, down, across;
};

static struct cutting
cut_matrix(int64_t n)
{
    const struct cutting c = {n, blocks_for(n, SCALE_THREADS), blocks_for(n, SCALE_COLUMNS)};

    return c;
}

/* The thread's row, the block's first column, and its matrix. */
static __device__ __forceinline__ int64_t
find_place(const struct cutting &c, int64_t *row, int64_t *across)
{
    const int64_t place = blockIdx.x % (c.down * c.across);

    *row = place % c.down * SCALE_THREADS + threadIdx.x;
    *across = place / c.down;
    return blockIdx.x / (c.down * c.across);
}

/* Of each row and SCALE_COLUMNS columns of M: the sum of magnitudes, of 2^-exponent M, and the
   largest exponent. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    survey_kernel(const struct cutting c, const real *m, const real_int *exponents, double *sums,
                  int *largest)
{
    int64_t i, part, matrix = find_place(c, &i, &part);
    const int64_t end = part * SCALE_COLUMNS + SCALE_COLUMNS;
    double sum = 0;
    int most = BALANCE_NOTHING;

    if (i < c.n) {
        m += matrix * c.n * c.n;
        for (int64_t j = part * SCALE_COLUMNS; j < end && j < c.n; j++) {
            const real x = m[j * c.n + i];
            const int exponent = balance_exponent(x);

            sum += fabs((double)balance_scale(x, -(int)exponents[matrix]));
            most = exponent > most ? exponent : most;
        }
        sums[(matrix * c.across + part) * c.n + i] = sum;
        largest[(matrix * c.across + part) * c.n + i] = most;
    }
}

/* The largest of the rows' sums of each matrix, as `norms`, which begin with zeros; and, unless
   `row` is NULL, the exponents of the rows. */
static __global__ void
__launch_bounds__(SCALE_THREADS) rows_kernel(const struct cutting c, const double *sums,
                                             const int *largest, double *norms, int *row)
{
    const int64_t matrix = blockIdx.x / c.down;
    const int64_t i = blockIdx.x % c.down * SCALE_THREADS + threadIdx.x;
    double sum = 0;
    int most = BALANCE_NOTHING;

    if (i < c.n) {
        for (int64_t part = 0; part < c.across; part++) {
            sum += sums[(matrix * c.across + part) * c.n + i];
            if (row != NULL) {
                const int other = largest[(matrix * c.across + part) * c.n + i];

                most = other > most ? other : most;
            }
        }
        if (row != NULL) {
            row[matrix * c.n + i] = balance_power(most);
        }
        /* the bits of a number >= 0 are ordered as numbers are; NaN is above all */
        atomicMax((unsigned long long *)norms + matrix,
                  (unsigned long long)__double_as_longlong(fabs(sum)));
    }
}

/* The exponent of a column, and S in place of M. */
static __global__ void
__launch_bounds__(SCALE_THREADS) columns_kernel(int64_t n, real *m, const int *row, int *column)
{
    __shared__ int part[SCALE_THREADS / WARP];
    const int t = (int)threadIdx.x;
    const int64_t matrix = blockIdx.x / n;
    int most = BALANCE_NOTHING;

    m += blockIdx.x * n;
    row += matrix * n;
    for (int64_t i = t; i < n; i += SCALE_THREADS) {
        const int exponent = balance_exponent(m[i]) - row[i];

        most = exponent > most ? exponent : most;
    }
    most = largest_of_lanes(most, WARP);
    if (t % WARP == 0) {
        part[t / WARP] = most;
    }
    __syncthreads();
    for (int i = 0; i < SCALE_THREADS / WARP; i++) {
        most = part[i] > most ? part[i] : most;
    }
    most = balance_power(most);
    for (int64_t i = t; i < n; i += SCALE_THREADS) {
        m[i] = balance_scale(m[i], -row[i] - most);
    }
    if (t == 0) {
        column[blockIdx.x] = most;
    }
}

/* What the last steps read and write. */
struct finishing {
    struct cutting c;
    const int *p; /* [count][n] pivots; NULL: `from` is in order */
    const int *row, *column;
    const real_int *exponent;
    const char *kind;
    const real *from;
    real *to;     /* may be `from` if that is in order */
    double *sums; /* [count][across][n] of magnitudes of rows of 2^exponent times M's
                     inverse; NULL: Y is only brought
                     into order */
};

static __global__ void
__launch_bounds__(SCALE_THREADS) finish_kernel(const __grid_constant__ struct finishing q)
{
    int64_t s, part, matrix = find_place(q.c, &s, &part);
    const int64_t n = q.c.n, end = part * SCALE_COLUMNS + SCALE_COLUMNS, rows = matrix * n;
    double sum = 0;
    int64_t i;

    if (s >= n) {
        return;
    }
    i = q.p != NULL ? q.p[rows + s] : s;
    for (int64_t j = part * SCALE_COLUMNS; j < end && j < n; j++) {
        const int64_t to = q.p != NULL ? q.p[rows + j] : j;
        real x = q.from[(rows + j) * n + i];

        if (q.sums != NULL) {
            const int power = -q.column[rows + s] - q.row[rows + to];

            sum += fabs((double)balance_scale(x, power + (int)q.exponent[matrix]));
            x = balance_scale(x, power);
            x = q.kind[matrix] == NONFINITE ? r_from_bits(R_INFINITY_BITS | 1) : x;
        }
        q.to[(rows + to) * n + s] = x;
    }
    if (q.sums != NULL) {
        q.sums[(matrix * q.c.across + part) * n + s] = sum;
    }
}

/* Tells what the matrices are found to be. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    mark_kernel(int64_t count, const char *kind, const char *singular, const double *norms,
                const double *x_norms, struct inverse_marks *marks)
{
    const int64_t matrix = (int64_t)blockIdx.x * SCALE_THREADS + threadIdx.x;

    if (matrix < count) {
        add_marks(marks, marks_of(matrix, kind[matrix] != NONFINITE, singular[matrix] != 0,
                                  norms[matrix] * x_norms[matrix]));
    }
}

/* ---- memory ---- */

/* What a chunk is worked on in, besides what it holds; NULL where it is not needed. */
struct workspace {
    real *s;      /* [count][n][n] S, for refine() */
    double *sums; /* [count][across][n] */
    int *largest; /* the same */
    int *p;       /* [count][n] */
    char *large, *refine;
};

/* How a chunk is worked on. */
struct inverse_shape {
    int64_t n, count;
    bool small; /* small.cu eliminates, or tiny.h */
    bool refine, on_host, staged;
    bool direct; /* one kernel makes M's inverse, without a workspace */
    bool tiny;   /* it is that of tiny.h */
    bool loaded; /* by load(); else M is read where the caller has it */
};

/* Whether the caller's matrices lie as load() would write them. */
static bool
is_ready(const struct dense_problem *p)
{
    int64_t stride = p->b.n * (int64_t)sizeof(real);
    bool ready = p->b.from == TSVD_CUDA && p->column_stride == (int64_t)sizeof(real) &&
                 p->row_stride == stride;

    stride *= p->b.n;
    for (int i = p->b.batch_ndim - 1; i >= 0; i--) {
        ready = ready && p->batch_strides[i] == stride;
        stride *= p->b.batch_shape[i];
    }
    return ready;
}

static struct inverse_shape
shape_of(const struct dense_problem *p, int64_t count, int refine)
{
    struct inverse_shape shape = {};

    shape.n = p->b.n;
    shape.count = count;
    shape.small = tsvdi_cuda_inverse_small_fits(p->b.n);
    shape.refine = refine != 0;
    shape.on_host = p->b.to == TSVD_HOST;
    shape.staged = p->b.from == TSVD_HOST;
    shape.direct = shape.small && !refine;
    shape.tiny = shape.direct && p->b.n <= TINY_ORDER;
    shape.loaded = !shape.direct || !is_ready(p);
    return shape;
}

/* What lives as long as the job.  M is loaded to where the results are made, if the elimination is
   done in place. */
static size_t
lay_out(const struct inverse_shape &shape, struct cuda_inverse *run, char *base)
{
    const int64_t n = shape.n, count = shape.count, numbers = count * n * n;
    size_t at = 0;

    run->in.w = cut<real>(base, &at, shape.small ? 0 : numbers);
    run->in.largest = cut<unsigned long long>(base, &at, shape.loaded ? count : 0);
    run->in.exponent = cut<real_int>(base, &at, shape.loaded ? count : 0);
    run->in.kind = shape.loaded ? cut<char>(base, &at, count) : NULL;
    run->singular = cut<char>(base, &at, shape.direct ? 0 : count);
    run->norms = cut<double>(base, &at, shape.direct ? 0 : 2 * count);
    run->x_norms = run->norms + count;
    run->row = cut<int>(base, &at, shape.direct ? 0 : 2 * count * n);
    run->column = run->row + count * n;
    run->marks = cut<struct inverse_marks>(base, &at, shape.tiny ? 0 : 1);
    return at;
}

/* One chunk's; the stage of load() lies where the rest will be. */
static size_t
lay_work(struct cuda_call *call, const struct inverse_shape &shape, char *base,
         struct workspace *work)
{
    const int64_t n = shape.n, count = shape.count, numbers = count * n * n;
    const int64_t parts = count * cut_matrix(n).across * n;
    size_t at = 0;

    work->s = cut<real>(base, &at, shape.refine ? numbers : 0);
    work->sums = cut<double>(base, &at, shape.direct ? 0 : parts);
    work->largest = cut<int>(base, &at, shape.direct ? 0 : parts);
    work->p = cut<int>(base, &at, shape.small ? 0 : count * n);
    work->large = cut<char>(
        base, &at, shape.small ? 0 : (int64_t)tsvdi_cuda_inverse_large_bytes(call, n, count));
    work->refine =
        cut<char>(base, &at, shape.refine ? (int64_t)tsvdi_cuda_inverse_refine_bytes(n, count) : 0);
    return std::max(at, shape.staged ? (size_t)numbers * sizeof(real) : (size_t)0);
}

/* Bytes of the results, if they are made for the host. */
static size_t
room_bytes(const struct inverse_shape &shape)
{
    return shape.on_host ? (size_t)(shape.count * shape.n * shape.n) * sizeof(real) : 0;
}

static struct bytes
inverse_bytes(const struct dense_problem *p, int64_t count, int refine)
{
    const struct inverse_shape shape = shape_of(p, count, refine);
    struct bytes bytes = {sizeof(struct cuda_inverse), 0};
    struct cuda_inverse run = {};
    struct workspace work;

    bytes.device =
        bytes_add(lay_out(shape, &run, NULL), lay_work(p->b.handle->cuda, shape, NULL, &work));
    bytes.device = bytes_add(bytes.device, room_bytes(shape));
    return bytes;
}

/* Limited by memory, and by the blocks of a grid. */
static int64_t
chunk_most(const struct dense_problem *p, int refine)
{
    const uint64_t result = bytes_of(p->b.n, bytes_of(p->b.n, sizeof(real)));
    const uint64_t tiles = bytes_of(blocks_for(p->b.n, TILE), blocks_for(p->b.n, TILE));
    const uint64_t blocks = INT32_MAX / (tiles + (uint64_t)p->b.n);
    uint64_t most = std::min({(uint64_t)p->b.matrices, CHUNK_BYTES / result, blocks});
    uint64_t wanted, room = 0;

    most = std::max(most, (uint64_t)1);
    wanted = inverse_bytes(p, (int64_t)most, refine).device;
    if (tsvdi_cuda_memory_for(p->b.handle->cuda, wanted, &room) != TSVD_OK) {
        return 1;
    }
    if (room < wanted) {
        most = std::min(most, room / inverse_bytes(p, 1, refine).device);
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
    job->held = NULL;
}

/* Takes device memory, if any is needed. */
static tsvd_status
take(struct cuda_call *call, size_t bytes, char **d_memory)
{
    return bytes > 0 ? tsvdi_cuda_alloc(call, bytes, (void **)d_memory) : TSVD_OK;
}

static tsvd_status
inverse_begin(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->load.problem;
    const struct inverse_shape shape = shape_of(p, job->load.count, job->refine);
    struct cuda_inverse *run = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof(*run), (void **)&run));
    memset(run, 0, sizeof(*run));
    job->held = run;
    TSVD_TRY(take(call, lay_out(shape, run, NULL), &run->d_arrays));
    (void)lay_out(shape, run, run->d_arrays);
    run->in.r = run->in.c = p->b.n;
    run->in.wide = 1;
    run->in.plain = 1;
out:
    return ret;
}

/* ---- the inverses ---- */

/* S in place of M, with the exponents and the norms. */
static tsvd_status
balance(struct cuda_call *call, const struct cuda_inverse *run, const struct workspace *work)
{
    const int64_t n = run->in.c, count = run->in.count;
    const struct cutting c = cut_matrix(n);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call,
             cudaMemsetAsync(run->norms, 0, (size_t)count * sizeof(*run->norms), call->stream));
    CUDA_TRY(call,
             cudaMemsetAsync(run->x_norms, 0, (size_t)count * sizeof(*run->x_norms), call->stream));
    survey_kernel<<<(unsigned)(count * c.down * c.across), SCALE_THREADS, 0, call->stream>>>(
        c, run->in.w, run->in.exponent, work->sums, work->largest);
    CUDA_LAUNCHED(call);
    rows_kernel<<<(unsigned)(count * c.down), SCALE_THREADS, 0, call->stream>>>(
        c, work->sums, work->largest, run->norms, run->row);
    CUDA_LAUNCHED(call);
    columns_kernel<<<(unsigned)(count * n), SCALE_THREADS, 0, call->stream>>>(
        n, run->in.w, run->row, run->column);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The inverses of M from Y, to run->x, and what is found. */
static tsvd_status
finish(struct cuda_call *call, const struct cuda_inverse *run, const struct workspace *work,
       const int *d_p, const real *d_from)
{
    const int64_t count = run->in.count;
    const struct cutting c = cut_matrix(run->in.c);
    const struct finishing q = {
        c, d_p, run->row, run->column, run->in.exponent, run->in.kind, d_from, run->x, work->sums};
    tsvd_status ret = TSVD_OK;

    finish_kernel<<<(unsigned)(count * c.down * c.across), SCALE_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
    rows_kernel<<<(unsigned)(count * c.down), SCALE_THREADS, 0, call->stream>>>(c, work->sums, NULL,
                                                                                run->x_norms, NULL);
    CUDA_LAUNCHED(call);
    mark_kernel<<<blocks_for(count, SCALE_THREADS), SCALE_THREADS, 0, call->stream>>>(
        count, run->in.kind, run->singular, run->norms, run->x_norms, run->marks);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Y of a chunk in order, to run->x. */
static tsvd_status
arrange(struct cuda_call *call, const struct cuda_inverse *run, const int *d_p)
{
    const struct cutting c = cut_matrix(run->in.c);
    const struct finishing q = {c, d_p, NULL, NULL, NULL, NULL, run->in.w, run->x, NULL};
    tsvd_status ret = TSVD_OK;

    finish_kernel<<<(unsigned)(run->in.count * c.down * c.across), SCALE_THREADS, 0,
                    call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The inverses of M, and what is found. */
static tsvd_status
make_inverses(struct tsvd_context *ctx, const struct inverse_shape &shape,
              const struct cuda_inverse *run, const struct workspace *work)
{
    struct cuda_call *call = cuda_of(ctx);
    const size_t bytes = (size_t)(shape.count * shape.n * shape.n) * sizeof(real);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaMemsetAsync(run->marks, 0xff, sizeof(*run->marks), call->stream));
    if (shape.direct) {
        return tsvdi_cuda_inverse_small(call, run, false);
    }
    TSVD_TRY(balance(call, run, work));
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
        TSVD_TRY(finish(call, run, work, work->p, run->in.w));
        goto out;
    }
    if (!shape.small) {
        TSVD_TRY(arrange(call, run, work->p));
    }
    TSVD_TRY(tsvdi_cuda_inverse_refine(call, run, work->s, work->refine));
    TSVD_TRY(finish(call, run, work, NULL, run->x));
out:
    return ret;
}

/* Adds what was found of a chunk to what was found before. */
static void
note(const struct inverse_job *job, const struct inverse_marks &marks)
{
    const int64_t begin = job->load.begin;
    struct inverse_findings *found = job->found;
    unsigned long long bits;
    double rcond;

    if (marks.nonfinite != ULLONG_MAX) {
        found->nonfinite = std::min(found->nonfinite, begin + (int64_t)marks.nonfinite);
    }
    if (marks.singular != ULLONG_MAX) {
        found->singular = std::min(found->singular, begin + (int64_t)marks.singular);
    }
    bits = marks.worst >> 32 << 32;
    memcpy(&rcond, &bits, sizeof(rcond));
    if (marks.worst != ULLONG_MAX && rcond < found->rcond) {
        found->rcond = rcond;
        found->matrix = begin + (int64_t)(uint32_t)marks.worst;
    }
}

/* Has the results of a chunk brought to the host; large ones arrive later. */
static tsvd_status
deliver(struct tsvd_context *ctx, const struct inverse_job *job, const struct cuda_inverse *run)
{
    const int64_t numbers = job->load.problem->b.n * job->load.problem->b.n;
    real *to = (real *)job->load.problem->b.L + job->load.begin * numbers;

    return cuda_deliver(ctx, to, run->x, (size_t)(job->load.count * numbers) * sizeof(real));
}

/* Has M lie at run->in.w. */
static tsvd_status
read_matrices(struct tsvd_context *ctx, const struct inverse_job *job,
              const struct inverse_shape &shape, struct cuda_inverse *run, char *d_stage)
{
    if (!shape.loaded) {
        run->in.w = (real *)job->load.problem->a + job->load.begin * shape.n * shape.n;
        return TSVD_OK; /* it is only read */
    }
    if (shape.small) {
        run->in.w = run->x;
    }
    return tsvdi_cuda_dense_load(ctx, &job->load, &run->in, (real *)d_stage);
}

static tsvd_status
invert(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->load.problem;
    const struct inverse_shape shape = shape_of(p, job->load.count, job->refine);
    struct cuda_inverse *run = run_of(job);
    struct workspace work;
    struct inverse_marks marks;
    char *d_work = NULL, *d_room = NULL;
    tsvd_status ret = TSVD_OK;

    tsvdi_cuda_follow(call);
    run->in.count = job->load.count;
    TSVD_TRY(take(call, lay_work(call, shape, NULL, &work), &d_work));
    (void)lay_work(call, shape, d_work, &work);
    TSVD_TRY(take(call, room_bytes(shape), &d_room));
    run->x = shape.on_host ? (real *)d_room : (real *)p->b.L + job->load.begin * shape.n * shape.n;
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
        TSVD_TRY(tsvdi_cuda_land(call, &marks, run->marks, sizeof(marks)));
    }
    note(job, marks);
out:
    tsvdi_cuda_free(call, d_work);
    tsvdi_cuda_free_sent(call, d_room);
    return ret;
}

const struct inverse_ops tsvdi_cuda_inverse = {
    .chunk_most = chunk_most,
    .begin = inverse_begin,
    .end = inverse_end,
    .invert = invert,
    .bytes = inverse_bytes,
};
