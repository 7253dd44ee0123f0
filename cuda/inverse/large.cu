/*
 * Elimination of large matrices.
 *
 * What eliminated columns do to other columns is one product: with N the eliminated columns, and R
 * the pivots' rows of the other columns as they were before, these rows become zero and N R is
 * added to the other columns.
 *
 * The matrix is eliminated by blocks of columns.  A block is applied to the next one first, on a
 * stream of high priority.  On that stream the next block is eliminated, while another stream
 * applies the first block to all other columns.  So most of the work is in large products, and few
 * multiprocessors search for pivots concurrently.  The search takes many short kernels, and each
 * would wait until a product leaves a multiprocessor: so large products leave some free.
 *
 * Within a block the columns are halved until they are a panel, which one kernel eliminates
 * (inverse/panel.h).  The left half is applied to the right one, and that to the left one.
 *
 * Where tensor cores are many times as fast as float32, numbers of float32 are cut in two of 11
 * bits each, x = x1 + x2.  Of N R they sum N1 R1 + N1 R2 + N2 R1.  What is left out is some 2^-22
 * of a term (Markidis et al., "NVIDIA Tensor Core Programmability, Performance & Precision", 2018).
 */
#include <algorithm>

#include "inverse/panel_cluster.cuh"
#include "inverse/panel_grid.cuh"

enum {
    GATHER_THREADS = 256,
    ASK_COLUMNS = 256 /* columns between two questions to the caller, or a block if it is wider */
};

/* Columns of a matrix: the first ones, and those after a gap. */
struct column_set {
    int64_t count, before, gap; /* number c is column c if c < before, else c + gap */
};

/* A number of float32 in two parts of 11 bits (Dekker, "A floating-point technique for extending
   the available precision", 1971). */
struct parts {
    scalar first, second;
};

/* x to 11 bits. */
static __device__ __forceinline__ real
leading(real x)
{
    const real down = r_abs(x) < REAL(0x1p100) ? REAL(1) : REAL(0x1p-100); /* far is finite */
    const real far = x * down * ((1 << 13) + 1);

    return (far - (far - x * down)) / down;
}

static __device__ __forceinline__ struct parts
cut_in_two(scalar x)
{
    const real first = leading(n_real(x));

    return {first, leading(n_real(x) - first)}; /* only real numbers are cut */
}

/* Moves the pivots' rows of columns begin .. begin + width - 1 from the columns of `set` to r, and
   leaves zeros.  r has `width` numbers for each column, or, if `cut`, `width` second parts and then
   as many first parts.  A thread has a row, so that neighbours in a column are read together.  Rows
   that the next block takes meanwhile have later steps. */
static __global__ void
__launch_bounds__(GATHER_THREADS)
    gather_kernel(const __grid_constant__ struct inverse_panel q, const struct column_set set,
                  const bool cut, scalar *r)
{
    const int64_t i = (int64_t)blockIdx.x * GATHER_THREADS + threadIdx.x, matrix = blockIdx.z;
    const int64_t first = (int64_t)blockIdx.y * INVERSE_GATHER_COLUMNS;
    const int64_t k = i < q.n ? q.step[matrix * q.n + i] - q.begin : -1;
    scalar *const row = q.w + matrix * q.n * q.n + i;
    const int64_t stride = cut ? 2 * q.width : q.width;
    scalar *const to = r + (matrix * set.count + first) * stride + k;
    scalar x[INVERSE_GATHER_COLUMNS], *from[INVERSE_GATHER_COLUMNS];

    if (k < 0 || k >= q.width) {
        return;
    }
    /* All loads are in flight before the first store. */
#pragma unroll
    for (int j = 0; j < INVERSE_GATHER_COLUMNS; j++) {
        const int64_t c = first + j;

        from[j] = row + (c < set.before ? c : c + set.gap) * q.n;
        x[j] = c < set.count ? *from[j] : REAL(0);
    }
#pragma unroll
    for (int j = 0; j < INVERSE_GATHER_COLUMNS; j++) {
        if (first + j < set.count) {
            const struct parts part = cut_in_two(x[j]);

            to[j * stride] = cut ? part.second : x[j];
            if (cut) {
                to[j * stride + q.width] = part.first;
            }
            *from[j] = 0;
        }
    }
}

/* Cuts the numbers of columns begin .. begin + width - 1: to parts, their columns of first parts
   and then those of second ones. */
static __global__ void
__launch_bounds__(GATHER_THREADS)
    cut_kernel(const __grid_constant__ struct inverse_panel q, scalar *parts)
{
    const int64_t i = (int64_t)blockIdx.x * GATHER_THREADS + threadIdx.x, matrix = blockIdx.z;
    const int64_t column = blockIdx.y, last = q.width * q.n;
    scalar *const to = parts + 2 * matrix * last + column * q.n + i;

    if (i < q.n) {
        const struct parts part = cut_in_two(q.w[(matrix * q.n + q.begin + column) * q.n + i]);

        to[0] = part.first;
        to[last] = part.second;
    }
}

/* ---- on the host ---- */

static struct panel_sharing
share_out(struct cuda_call *call, int64_t n)
{
    struct panel_sharing s = {};

    return share_cluster(call, n, &s) ? s : share_grid(call->device, n);
}

/* Matrices that are eliminated together. */
struct elimination {
    struct panel_sharing sharing;
    struct inverse_panel panel; /* of them: all but begin and width */
    int matrices;
    int64_t block;              /* columns of a block; the last one may have fewer */
    cudaStream_t near, far;     /* where blocks are eliminated, and where other columns change */
    cudaEvent_t ready, changed; /* a block and the next one; the other columns */
    bool cut;                   /* numbers are cut in two: r_near to n_far have twice the size */
    scalar *r_near, *r_far;     /* rows of pivots: [matrices][block][block], [matrices][n][block] */
    scalar *n_near, *n_far;     /* cut columns, of a half and of a block: [matrices][.][n] */
    double done, part;          /* shares of all matrices: those done before, and these */
};

/* Columns of a block.  With more, it takes longer to eliminate one than to apply it; with fewer,
   their products with others are slow.  [measured: H200]  n / 32 up to 2048, n / 16 up to 8192,
   then 3 n / 32. */
static int64_t
choose_block(int64_t n)
{
    const int64_t columns = n <= 2048 ? n / 32 : n <= 8192 ? n / 16 : n / 32 * 3;

    return std::min((columns + WARP - 1) / WARP * WARP, n);
}

/* How many of `columns` columns are the left half. */
static int64_t
left_half(const struct panel_sharing &s, int64_t columns)
{
    int64_t left = s.width;

    while (2 * left < columns) {
        left *= 2;
    }
    return left;
}

/* Whether the numbers of a matrix are cut in two: the three products of tensor cores must be faster
   than one without.  They are where float64 has half of float32's speed, and not where float64 is
   scarce. */
static bool
cuts(const struct cuda_device *device, int64_t n)
{
    enum { TENSOR_CORES = 8 }; /* the first major version that has them for 11 bits */
    int major = 0, ratio = 0;

    return TSVD_SINGLE && !TSVD_COMPLEX && n >= INVERSE_CUT_ORDER &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->number) ==
               cudaSuccess &&
           cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio,
                                  device->number) == cudaSuccess &&
           major >= TENSOR_CORES && ratio <= 2;
}

/* Workspace of the elimination. */
static size_t
lay_out(const struct cuda_device *device, const struct panel_sharing &s, int64_t n, int64_t count,
        char *base, struct elimination *to)
{
    const int64_t matrices = std::min<int64_t>(s.matrices, count);
    int64_t copies;
    size_t at = 0;

    to->sharing = s;
    to->cut = cuts(device, n);
    to->block = choose_block(n);
    to->panel.step = carve<int>(base, &at, matrices * n);
    to->panel.mail = carve<struct message>(base, &at, s.clusters ? 0 : grid_messages(s));
    copies = matrices * (to->cut ? 2 : 1);
    to->r_near = carve<scalar>(base, &at, copies * to->block * to->block);
    to->r_far = carve<scalar>(base, &at, copies * n * to->block);
    to->n_near = carve<scalar>(base, &at, to->cut ? copies * n * left_half(s, to->block) : 0);
    to->n_far = carve<scalar>(base, &at, to->cut ? copies * n * to->block : 0);
    return at;
}

uint64_t
tsvdi_cuda_inverse_large_bytes(struct cuda_call *call, int64_t n, int64_t count)
{
    struct elimination work = {};

    return lay_out(call->device, share_out(call, n), n, count, NULL, &work);
}

/* Whether `width` columns are cut before their products. */
static bool
is_cut(const struct elimination &work, int64_t width)
{
    return work.cut && width >= INVERSE_CUT_WIDTH;
}

/* Cuts columns begin .. end - 1, if they are cut. */
static tsvd_status
cut_columns(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end,
            scalar *parts)
{
    struct inverse_panel q = work.panel;
    const dim3 grid(blocks_for(q.n, GATHER_THREADS), (unsigned)(end - begin),
                    (unsigned)work.matrices);
    tsvd_status ret = TSVD_OK;

    q.begin = begin;
    q.width = (int)(end - begin);
    if (is_cut(work, q.width)) {
        cut_kernel<<<grid, GATHER_THREADS, 0, work.near>>>(q, parts);
        CUDA_LAUNCHED(call);
    }
out:
    return ret;
}

/* C += N R: N has `terms` columns, and row j of r is column j of R, like C and its column j. */
static tsvd_status
add_product(struct cuda_call *call, int kind, int64_t n, int64_t columns, int64_t terms,
            const scalar *N, const scalar *r, int64_t ld, scalar *c, cudaStream_t stream)
{
    const struct cuda_factor rows = {r, ld, 0, TSVDI_AS_STORED};
    const struct cuda_factor panel = {N, n, 0, TSVDI_AS_STORED};

    return tsvdi_cuda_multiply_add(call, kind, columns, n, terms, 1, rows, panel, 1, c, n, 0, 1,
                                   stream);
}

/* Adds N R to columns first .. first + columns - 1: N are columns begin .. begin + width - 1, and
   R, `stride` numbers a matrix, has rows for these columns in order.  parts: N's, if it is cut. */
static tsvd_status
add_products(struct cuda_call *call, const struct elimination &work, const struct inverse_panel &q,
             int64_t first, int64_t columns, const scalar *r, int64_t stride, const scalar *parts,
             cudaStream_t stream)
{
    const int64_t n = q.n, width = q.width;
    tsvd_status ret = TSVD_OK;

    /* one by one: together they would have other bits */
    for (int64_t i = 0; i < work.matrices; i++) {
        scalar *const w = q.w + i * n * n, *const c = w + first * n;
        const scalar *const row = r + i * stride, *const part = parts + 2 * i * width * n;

        if (is_cut(work, width)) { /* the smaller terms, of a first and a second part, come first */
            TSVD_TRY(add_product(call, TSVDI_LEADING, n, columns, 2 * width, part, row, 2 * width,
                                 c, stream));
            TSVD_TRY(add_product(call, TSVDI_LEADING, n, columns, width, part, row + width,
                                 2 * width, c, stream));
        } else {
            TSVD_TRY(add_product(call, SCALAR_KIND, n, columns, width, w + q.begin * n, row, width,
                                 c, stream));
        }
    }
out:
    return ret;
}

/* Applies the eliminated columns begin .. end - 1 to the columns of `to`.  parts: theirs, if
   they are cut. */
static tsvd_status
apply(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end,
      const struct column_set &to, scalar *r, const scalar *parts, cudaStream_t stream)
{
    const bool cut = is_cut(work, end - begin);
    const int64_t each = (cut ? 2 : 1) * (end - begin), stride = to.count * each;
    struct inverse_panel q = work.panel;
    const dim3 grid(blocks_for(q.n, GATHER_THREADS), blocks_for(to.count, INVERSE_GATHER_COLUMNS),
                    (unsigned)work.matrices);
    tsvd_status ret = TSVD_OK;

    if (to.count == 0) {
        return ret;
    }
    q.begin = begin;
    q.width = (int)(end - begin);
    gather_kernel<<<grid, GATHER_THREADS, 0, stream>>>(q, to, cut, r);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_products(call, work, q, 0, to.before, r, stride, parts, stream));
    TSVD_TRY(add_products(call, work, q, to.before + to.gap, to.count - to.before,
                          r + to.before * each, stride, parts, stream));
out:
    return ret;
}

/* The same, to columns first .. last - 1, which are of the block or the next one. */
static tsvd_status
apply_near(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end,
           int64_t first, int64_t last, const scalar *parts)
{
    const struct column_set to = {last - first, 0, first};

    return apply(call, work, begin, end, to, work.r_near, parts, work.near);
}

/* Eliminates columns begin .. end - 1 among themselves. */
static tsvd_status
eliminate(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end)
{
    const struct panel_sharing &s = work.sharing;
    struct inverse_panel q = work.panel;
    int64_t middle;
    tsvd_status ret = TSVD_OK;

    if (end - begin > s.width) {
        middle = begin + left_half(s, end - begin);
        TSVD_TRY(eliminate(call, work, begin, middle));
        TSVD_TRY(cut_columns(call, work, begin, middle, work.n_near));
        TSVD_TRY(apply_near(call, work, begin, middle, middle, end, work.n_near));
        TSVD_TRY(eliminate(call, work, middle, end));
        TSVD_TRY(cut_columns(call, work, middle, end, work.n_near));
        TSVD_TRY(apply_near(call, work, middle, end, begin, middle, work.n_near));
        goto out;
    }
    q.begin = begin;
    q.width = (int)(end - begin);
    TSVD_TRY(s.clusters ? launch_cluster(call, s, q, work.matrices, work.near)
                        : launch_grid(call, s, q, work.near));
out:
    return ret;
}

static tsvd_status
open_streams(struct cuda_call *call, const struct panel_sharing &s, struct elimination *work)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_make_urgent(call));
    work->near = call->device->urgent;
    work->far = s.clusters ? tsvdi_cuda_shared_stream(call) : call->stream;
    work->ready = call->device->mark[0];
    work->changed = call->device->mark[1];
out:
    return ret;
}

/* All columns.  The host enqueues the work in such an order that no stream waits for the host. */
static tsvd_status
eliminate_blocks(struct tsvd_context *ctx, const struct elimination &work)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = work.panel.n;
    int64_t asked = 0;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaEventRecord(work.changed, call->stream));
    CUDA_TRY(call, cudaStreamWaitEvent(work.near, work.changed, 0));
    TSVD_TRY(eliminate(call, work, 0, work.block));
    for (int64_t begin = 0; begin < n; begin += work.block) {
        const int64_t end = std::min(begin + work.block, n), next = std::min(end + work.block, n);
        const struct column_set far = {n - (next - begin), begin, next - begin};
        cudaStream_t stream;

        if (begin >= asked) {
            TSVD_TRY(tsvdi_check(ctx, work.done + work.part * (double)begin / (double)n));
            asked = begin + ASK_COLUMNS;
        }
        TSVD_TRY(cut_columns(call, work, begin, end, work.n_far));
        TSVD_TRY(apply_near(call, work, begin, end, end, next, work.n_far));
        CUDA_TRY(call, cudaEventRecord(work.ready, work.near));
        if (end < n) {
            TSVD_TRY(eliminate(call, work, end, next));
        }
        /* nothing runs concurrently with the last block */
        stream = end < n ? work.far : call->stream;
        CUDA_TRY(call, cudaStreamWaitEvent(stream, work.changed, 0));
        CUDA_TRY(call, cudaStreamWaitEvent(stream, work.ready, 0));
        TSVD_TRY(apply(call, work, begin, end, far, work.r_far, work.n_far, stream));
        CUDA_TRY(call, cudaEventRecord(work.changed, stream));
        CUDA_TRY(call, cudaStreamWaitEvent(work.near, work.changed, 0));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_large(struct tsvd_context *ctx, const struct cuda_inverse *run, int *d_p,
                         char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = run->in.c, count = run->in.count;
    const struct panel_sharing s = share_out(call, n);
    struct elimination work = {};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(open_streams(call, s, &work));
    (void)lay_out(call->device, s, n, count, d_work, &work);
    work.panel.n = n;
    work.panel.rows = s.rows;
    work.panel.blocks = s.blocks;
    CUDA_TRY(call, cudaMemsetAsync(run->singular, 0, (size_t)count, call->stream));
    CUDA_TRY(call, cudaMemsetAsync(run->grown, 0, (size_t)count, call->stream));
    for (int64_t i = 0; i < count; i += work.matrices) {
        work.matrices = (int)std::min<int64_t>(s.matrices, count - i);
        work.panel.w = run->in.w + i * n * n;
        work.panel.p = d_p + i * n;
        work.panel.singular = run->singular + i;
        work.panel.grown = run->grown + i;
        work.done = (double)i / (double)count;
        work.part = (double)work.matrices / (double)count;
        if (!s.clusters) {
            CUDA_TRY(call, cudaMemsetAsync(work.panel.mail, 0,
                                           (size_t)grid_messages(s) * sizeof(struct message),
                                           call->stream));
        }
        CUDA_TRY(call, cudaMemsetAsync(work.panel.step, 0xff,
                                       (size_t)(work.matrices * n) * sizeof(int), call->stream));
        TSVD_TRY(eliminate_blocks(ctx, work));
    }
out:
    if (ret != TSVD_OK && work.near != NULL) {
        (void)cudaStreamSynchronize(work.near); /* their kernels may still use the memory */
        (void)cudaStreamSynchronize(work.far);
    }
    return ret;
}
