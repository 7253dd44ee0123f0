/*
 * Elimination of large matrices.
 *
 * What columns do to others, when they are eliminated, is one product: with N these columns, and R
 * the pivots' rows of the others as they were before, those rows become zero and N R is added to
 * all of the others.
 *
 * The matrix is eliminated by blocks of columns.  A block is applied to the next one first, on a
 * stream of high priority.  There that one is eliminated in its turn, while the former is applied
 * to all other columns.  So most of the work is in large products, and few multiprocessors look for
 * pivots beside them.  Many short kernels do that, and each would wait until a product leaves a
 * multiprocessor: so large products leave some free.
 *
 * Within a block the columns are halved until they are a panel, which one kernel eliminates
 * (inverse/panel.h).  The left half is applied to the right one, and that to the left one.
 */
#include <algorithm>

#include "inverse/panel_cluster.h"
#include "inverse/panel_grid.h"

enum {
    GATHER_THREADS = 256,
    GATHER_COLUMNS = 8, /* of a block */
    ASK_COLUMNS = 256   /* so many columns pass between two questions to the caller, or a block */
};

/* Columns of a matrix: the first ones, and those behind a gap. */
struct column_set {
    int64_t count, before, gap; /* number c is column c if c < before, else c + gap */
};

/* Takes the pivots' rows of columns begin .. begin + width - 1 out of others: to r, `width` numbers
   for each of these, and leaves zeros.  A thread has a row, so that neighbours in a column are read
   together.  Rows that the next block takes meanwhile have later steps. */
static __global__ void
__launch_bounds__(GATHER_THREADS) gather_kernel(const __grid_constant__ struct inverse_panel q,
                                                const struct column_set set, real *r)
{
    const int64_t i = (int64_t)blockIdx.x * GATHER_THREADS + threadIdx.x, matrix = blockIdx.z;
    const int64_t first = (int64_t)blockIdx.y * GATHER_COLUMNS;
    const int64_t k = i < q.n ? q.step[matrix * q.n + i] - q.begin : -1;
    real *const row = q.w + matrix * q.n * q.n + i;
    real *const to = r + (matrix * set.count + first) * q.width + k;
    real x[GATHER_COLUMNS], *from[GATHER_COLUMNS];

    if (k < 0 || k >= q.width) {
        return;
    }
#pragma unroll
    for (int j = 0; j < GATHER_COLUMNS; j++) { /* all reads are on their way before a write */
        const int64_t c = first + j;

        from[j] = row + (c < set.before ? c : c + set.gap) * q.n;
        x[j] = c < set.count ? *from[j] : REAL(0);
    }
#pragma unroll
    for (int j = 0; j < GATHER_COLUMNS; j++) {
        if (first + j < set.count) {
            to[j * q.width] = x[j];
            *from[j] = 0;
        }
    }
}

/* ---- on the host ---- */

static struct panel_sharing
share_out(struct cuda_call *call, int64_t n)
{
    struct panel_sharing s = {};

    return share_cluster(call, n, &s) ? s : share_grid(call, n);
}

/* Matrices under way. */
struct elimination {
    struct panel_sharing sharing;
    struct inverse_panel panel; /* of them: all but begin and width */
    int matrices;
    int64_t block;              /* columns of a block; the last one may have fewer */
    cudaStream_t near, far;     /* where blocks are eliminated, and where others change */
    cudaEvent_t ready, changed; /* a block and the next one; the others */
    real *r_near, *r_far;       /* rows of pivots: [matrices][block][block], [matrices][n][block] */
    double done, part;          /* of all matrices: before these, and these */
};

/* Columns of a block.  With more, it takes longer to eliminate one than to apply it; with fewer,
   their products with others are slow.  The best are by measurement. */
static int64_t
choose_block(int64_t n)
{
    const int64_t columns = n <= 2048 ? n / 32 : n <= 8192 ? n / 16 : n / 32 * 3;

    return std::min((columns + WARP - 1) / WARP * WARP, n);
}

/* What it works in. */
static size_t
lay_out(const struct panel_sharing &s, int64_t n, int64_t count, char *base, struct elimination *to)
{
    const int64_t matrices = std::min<int64_t>(s.matrices, count);
    size_t at = 0;

    to->sharing = s;
    to->block = choose_block(n);
    to->panel.step = cut<int>(base, &at, matrices * n);
    to->panel.mail = cut<struct message>(base, &at, s.clusters ? 0 : grid_messages(s));
    to->r_near = cut<real>(base, &at, matrices * to->block * to->block);
    to->r_far = cut<real>(base, &at, matrices * n * to->block);
    return at;
}

uint64_t
tsvdi_cuda_inverse_large_bytes(struct cuda_call *call, int64_t n, int64_t count)
{
    struct elimination work = {};

    return lay_out(share_out(call, n), n, count, NULL, &work);
}

/* Adds N R to columns first .. first + columns - 1: N are columns begin .. begin + width - 1, and
   R, `stride` numbers a matrix, has rows for these columns in turn. */
static tsvd_status
add_product(struct cuda_call *call, const struct elimination &work, const struct inverse_panel &q,
            int64_t first, int64_t columns, const real *r, int64_t stride, cudaStream_t stream)
{
    tsvd_status ret = TSVD_OK;

    /* one by one: together they would have other bits */
    for (int64_t i = 0; i < work.matrices; i++) {
        real *const w = q.w + i * q.n * q.n;
        const struct cuda_factor rows = {r + i * stride, q.width, 0, 0};
        const struct cuda_factor panel = {w + q.begin * q.n, q.n, 0, 0};

        TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, columns, q.n, q.width, 1, rows, panel,
                                         1, w + first * q.n, q.n, 0, 1, stream));
    }
out:
    return ret;
}

/* Columns begin .. end - 1 are eliminated: applies them to others. */
static tsvd_status
apply(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end,
      const struct column_set &to, real *r, cudaStream_t stream)
{
    const int64_t stride = to.count * (end - begin);
    struct inverse_panel q = work.panel;
    const dim3 grid(blocks_for(q.n, GATHER_THREADS), blocks_for(to.count, GATHER_COLUMNS),
                    (unsigned)work.matrices);
    tsvd_status ret = TSVD_OK;

    if (to.count == 0) {
        return ret;
    }
    q.begin = begin;
    q.width = (int)(end - begin);
    gather_kernel<<<grid, GATHER_THREADS, 0, stream>>>(q, to, r);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_product(call, work, q, 0, to.before, r, stride, stream));
    TSVD_TRY(add_product(call, work, q, to.before + to.gap, to.count - to.before,
                         r + to.before * q.width, stride, stream));
out:
    return ret;
}

/* The same, to columns first .. last - 1, which are of the block or the next one. */
static tsvd_status
apply_near(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end,
           int64_t first, int64_t last)
{
    const struct column_set to = {last - first, 0, first};

    return apply(call, work, begin, end, to, work.r_near, work.near);
}

/* Columns of the left one of two halves, so many in all. */
static int64_t
left_half(const struct panel_sharing &s, int64_t columns)
{
    int64_t left = s.width;

    while (2 * left < columns) {
        left *= 2;
    }
    return left;
}

/* Columns begin .. end - 1, as far as they depend on themselves. */
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
        TSVD_TRY(apply_near(call, work, begin, middle, middle, end));
        TSVD_TRY(eliminate(call, work, middle, end));
        TSVD_TRY(apply_near(call, work, middle, end, begin, middle));
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
    work->near = call->urgent;
    work->far = s.clusters ? tsvdi_cuda_shared_stream(call) : call->stream;
    work->ready = call->mark[0];
    work->changed = call->mark[1];
out:
    return ret;
}

/* All columns.  What the host enqueues is in an order in which no stream waits for it. */
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
        TSVD_TRY(apply_near(call, work, begin, end, end, next));
        CUDA_TRY(call, cudaEventRecord(work.ready, work.near));
        if (end < n) {
            TSVD_TRY(eliminate(call, work, end, next));
        }
        /* nothing is beside the last block */
        stream = end < n ? work.far : call->stream;
        CUDA_TRY(call, cudaStreamWaitEvent(stream, work.changed, 0));
        CUDA_TRY(call, cudaStreamWaitEvent(stream, work.ready, 0));
        TSVD_TRY(apply(call, work, begin, end, far, work.r_far, stream));
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
    (void)lay_out(s, n, count, d_work, &work);
    work.panel.n = n;
    work.panel.rows = s.rows;
    work.panel.blocks = s.blocks;
    CUDA_TRY(call, cudaMemsetAsync(run->singular, 0, (size_t)count, call->stream));
    for (int64_t i = 0; i < count; i += work.matrices) {
        work.matrices = (int)std::min<int64_t>(s.matrices, count - i);
        work.panel.w = run->in.w + i * n * n;
        work.panel.p = d_p + i * n;
        work.panel.singular = run->singular + i;
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
        (void)cudaStreamSynchronize(work.near); /* they may be at work in the memory */
        (void)cudaStreamSynchronize(work.far);
    }
    return ret;
}
