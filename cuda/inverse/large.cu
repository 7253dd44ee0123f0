/*
 * Elimination of large matrices.
 *
 * The columns are halved until they are a panel, which one kernel eliminates (inverse/panel.h).
 * What columns do to others, when they are eliminated, is one product: with N these columns, and R
 * the pivots' rows of the others as they were before, those rows become zero and N R is added to
 * all of the others.  The left half is applied to the right one, and that to the left one.  So most
 * of the work is in products of large matrices.
 */
#include <algorithm>

#include "inverse/panel_cluster.h"
#include "inverse/panel_grid.h"

enum {
    GATHER_THREADS = 256,
    GATHER_COLUMNS = 8, /* of a block */
    ASK_COLUMNS = 256   /* so many columns pass between two questions to the caller */
};

/* Takes the pivots' rows of columns begin .. begin + width - 1 out of columns first .. last - 1: to
   r, `width` numbers for each of these, and leaves zeros.  A thread has a row, so that neighbours
   in a column are read together. */
static __global__ void
__launch_bounds__(GATHER_THREADS) gather_kernel(const __grid_constant__ struct inverse_panel q,
                                                int64_t first, int64_t last, real *r)
{
    const int64_t i = (int64_t)blockIdx.x * GATHER_THREADS + threadIdx.x, matrix = blockIdx.z;
    const int64_t columns = last - first, begin = (int64_t)blockIdx.y * GATHER_COLUMNS;
    const int64_t k = i < q.n ? q.step[matrix * q.n + i] - q.begin : -1;
    real *const from = q.w + (matrix * q.n + first + begin) * q.n + i;
    real *const to = r + (matrix * columns + begin) * q.width + k;
    real x[GATHER_COLUMNS];

    if (k < 0 || k >= q.width) {
        return;
    }
#pragma unroll
    for (int j = 0; j < GATHER_COLUMNS; j++) { /* all reads are on their way before a write */
        x[j] = begin + j < columns ? from[j * q.n] : REAL(0);
    }
#pragma unroll
    for (int j = 0; j < GATHER_COLUMNS; j++) {
        if (begin + j < columns) {
            to[j * q.width] = x[j];
            from[j * q.n] = 0;
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
    real *r;           /* [matrices][] rows of pivots */
    double done, part; /* of all matrices: before these, and these */
};

/* The columns of the left part, of so many. */
static int64_t
left_part(const struct panel_sharing &s, int64_t columns)
{
    int64_t left = s.width;

    while (2 * left < columns) {
        left *= 2;
    }
    return left;
}

/* What it works in. */
static size_t
lay_out(const struct panel_sharing &s, int64_t n, int64_t count, char *base, struct elimination *to)
{
    const int64_t matrices = std::min<int64_t>(s.matrices, count);
    const int64_t left = std::min<int64_t>(left_part(s, n), n);
    size_t at = 0;

    to->sharing = s;
    to->panel.step = cut<int>(base, &at, matrices * n);
    to->panel.mail = cut<struct message>(base, &at, s.clusters ? 0 : grid_messages(s));
    /* of all parts that are applied to others, the largest are those of the whole or its left part
     */
    to->r = cut<real>(base, &at, matrices * left * std::max(n - left, left / 2));
    return at;
}

uint64_t
tsvdi_cuda_inverse_large_bytes(struct cuda_call *call, int64_t n, int64_t count)
{
    struct elimination work = {};

    return lay_out(share_out(call, n), n, count, NULL, &work);
}

/* Columns begin .. end - 1 are eliminated: applies them to columns first .. last - 1. */
static tsvd_status
apply(struct cuda_call *call, const struct elimination &work, int64_t begin, int64_t end,
      int64_t first, int64_t last)
{
    struct inverse_panel q = work.panel;
    const int64_t n = q.n, width = end - begin, columns = last - first;
    const dim3 grid(blocks_for(n, GATHER_THREADS), blocks_for(columns, GATHER_COLUMNS),
                    (unsigned)work.matrices);
    tsvd_status ret = TSVD_OK;

    q.begin = begin;
    q.width = (int)width;
    gather_kernel<<<grid, GATHER_THREADS, 0, call->stream>>>(q, first, last, work.r);
    CUDA_LAUNCHED(call);
    /* one by one: together they would have other bits */
    for (int64_t i = 0; i < work.matrices; i++) {
        real *const w = q.w + i * n * n;
        const struct cuda_factor rows = {work.r + i * columns * width, width, 0, 0};
        const struct cuda_factor panel = {w + begin * n, n, 0, 0};

        TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, columns, n, width, 1, rows, panel, 1,
                                         w + first * n, n, 0, 1));
    }
out:
    return ret;
}

/* Columns begin .. end - 1, as far as they depend on themselves. */
static tsvd_status
eliminate(struct tsvd_context *ctx, const struct elimination &work, int64_t begin, int64_t end)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct panel_sharing &s = work.sharing;
    struct inverse_panel q = work.panel;
    int64_t middle;
    tsvd_status ret = TSVD_OK;

    if (end - begin > s.width) {
        middle = begin + left_part(s, end - begin);
        TSVD_TRY(eliminate(ctx, work, begin, middle));
        TSVD_TRY(apply(call, work, begin, middle, middle, end));
        TSVD_TRY(eliminate(ctx, work, middle, end));
        TSVD_TRY(apply(call, work, middle, end, begin, middle));
        goto out;
    }
    if (begin % ASK_COLUMNS == 0) {
        TSVD_TRY(tsvdi_check(ctx, work.done + work.part * (double)begin / (double)q.n));
    }
    q.begin = begin;
    q.width = (int)(end - begin);
    TSVD_TRY(s.clusters ? launch_cluster(call, s, q, work.matrices) : launch_grid(call, s, q));
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
        TSVD_TRY(eliminate(ctx, work, 0, n));
    }
out:
    return ret;
}
