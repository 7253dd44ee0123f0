/*
 * Elimination of one matrix after another, in panels of columns.
 *
 * A panel is eliminated by all multiprocessors, which have an equal share of the rows each, in
 * shared memory.  In a step each block offers the best row that it has: its entry in the column,
 * and the row itself, as messages (dense/resident_mail.h) to all others.  So a step takes one way
 * from block to block.  A block offers its row of the next step before it changes its other rows.
 *
 * What a panel does to the other columns is one product: with N the panel as it is afterwards, and
 * R the pivots' rows of the other columns as they were before, those rows become zero and N R is
 * added to all of the columns.  Wide panels, for large matrices, consist of several narrow ones, of
 * which each is applied to the wide one's other columns first.
 */
#include <algorithm>

#include "dense/resident_mail.h"
#include "inverse/run.h"

enum {
    PANEL_THREADS = 256,
    PANEL_WIDTH = 128,   /* most columns of a narrow panel */
    PANEL_ROWS = 32,     /* rows of a block, at least */
    PANEL_STATIC = 1024, /* bytes of shared memory that the kernel has besides, at most */
    PANEL_SENDERS = 8,   /* a warp's lanes wait for so many blocks each, at most */
    WIDE_PANELS = 2,     /* narrow panels of a wide one, */
    WIDE_ORDER = 4096,   /* above this order.  Not measured */
    GATHER_THREADS = 256
};

struct inverse_panel {
    int64_t n, begin;
    int width, rows, blocks; /* columns; rows of a block, the last has the rest; blocks */
    real *w;                 /* [n][n] */
    int *p, *open;           /* [n] pivots; 1: no step had the row yet */
    char *singular;
    struct message *mail; /* [2][blocks][PANEL_WIDTH + 1] by turns: an offer, its size first */
};

/* A block's shared memory. */
struct panel_memory {
    real *a;            /* [width][rows] */
    real *row, *factor; /* [width] the pivot's row; the same with 1 in the step's column */
    real *other;        /* [rows] the column of the step over the pivot */
    int *open;          /* [rows] */
};

static size_t
panel_bytes(int64_t width, int64_t rows)
{
    return (size_t)(width * rows + 2 * width + rows) * sizeof(real) + (size_t)rows * sizeof(int);
}

static __device__ __forceinline__ struct panel_memory
cut_panel(char *base, int width, int rows)
{
    struct panel_memory m;

    m.a = (real *)base;
    m.row = m.a + width * rows;
    m.factor = m.row + width;
    m.other = m.factor + width;
    m.open = (int *)(m.other + rows);
    return m;
}

static __device__ __forceinline__ struct message *
offer_of(const struct inverse_panel &q, int block, int step)
{
    return q.mail + ((step & 1) * q.blocks + block) * (PANEL_WIDTH + 1);
}

/* The number of a step in messages: no other step of the matrix has it. */
static __device__ __forceinline__ unsigned
tag_of(const struct inverse_panel &q, int step)
{
    return (unsigned)(q.begin + step + 1);
}

/* Entry (i, j) after the step whose column is `own`, of a row that is not the pivot's. */
static __device__ __forceinline__ real
changed(const struct panel_memory &m, int rows, int own, int i, int j)
{
    return (j == own ? REAL(0) : m.a[j * rows + i]) - m.other[i] * m.factor[j];
}

/* The block's best row for a step, as its rows will be after the step before it; by one warp.
   taken: the pivot's row of that step, -1: not here. */
static __device__ __forceinline__ struct inverse_best
find_best(const struct panel_memory &m, int rows, int step, int taken)
{
    struct inverse_best best = {-1, INT32_MAX};

    for (int i = (int)threadIdx.x; i < rows; i += WARP) {
        if (m.open[i] && i != taken) {
            struct inverse_best own = {0, i};

            own.size =
                pivot_size(step > 0 ? changed(m, rows, step - 1, i, step) : m.a[step * rows + i]);
            best = better(best, own);
        }
    }
    return best_of_lanes(best, WARP);
}

/* Offers row best.at for a step. */
static __device__ __forceinline__ void
offer(const struct inverse_panel &q, const struct panel_memory &m, int rows, int step,
      struct inverse_best best)
{
    struct message *const to = offer_of(q, (int)blockIdx.x, step);

    if (threadIdx.x == 0) {
        send(to, best.size, tag_of(q, step));
    }
    for (int j = (int)threadIdx.x; j < q.width && best.size >= 0; j += PANEL_THREADS) {
        const real x = step > 0 ? changed(m, rows, step - 1, best.at, j) : m.a[j * rows + best.at];

        send(to + 1 + j, x, tag_of(q, step));
    }
}

/* The block with the best offer; by one warp. */
static __device__ __forceinline__ int
find_winner(const struct inverse_panel &q, int step)
{
    const int lane = (int)threadIdx.x;
    struct inverse_best best = {-1, INT32_MAX};
    real x[PANEL_SENDERS];

    receive(x, tag_of(q, step), [&](int k) {
        const int block = lane + k * WARP;

        return block < q.blocks ? offer_of(q, block, step) : (struct message *)NULL;
    });
#pragma unroll
    for (int k = 0; k < PANEL_SENDERS; k++) {
        const struct inverse_best own = {lane + k * WARP < q.blocks ? x[k] : REAL(-2),
                                         lane + k * WARP};

        best = better(best, own);
    }
    best = best_of_lanes(best, WARP);
    return best.at < q.blocks ? best.at : 0;
}

static __global__ void
__launch_bounds__(PANEL_THREADS) panel_kernel(const __grid_constant__ struct inverse_panel q)
{
    extern __shared__ char shared[] __align__(16);
    __shared__ struct inverse_best best;
    __shared__ int winner;
    const int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP, width = q.width;
    const int64_t low = (int64_t)blockIdx.x * q.rows;
    const int rows = (int)(q.n - low < q.rows ? q.n - low : q.rows);
    const struct panel_memory m = cut_panel(shared, width, rows);
    real *const w = q.w + q.begin * q.n + low;

    for (int j = warp; j < width; j += PANEL_THREADS / WARP) {
        for (int i = lane; i < rows; i += WARP) {
            m.a[j * rows + i] = w[j * q.n + i];
        }
    }
    for (int i = t; i < rows; i += PANEL_THREADS) {
        m.open[i] = q.open[low + i];
    }
    __syncthreads();
    if (warp == 0) {
        const struct inverse_best first = find_best(m, rows, 0, -1);

        if (lane == 0) {
            best = first;
        }
    }
    __syncthreads();
    offer(q, m, rows, 0, best);
    for (int step = 0; step < width; step++) {
        int taken;
        real pivot, divisor, inverse;

        if (warp == 0) {
            const int found = find_winner(q, step);

            if (lane == 0) {
                winner = found;
            }
        }
        __syncthreads();
        taken = winner == (int)blockIdx.x ? best.at : -1;
        for (int j = t; j < width; j += PANEL_THREADS) {
            const struct message *const from = offer_of(q, winner, step) + 1 + j;
            real x[1];

            receive(x, tag_of(q, step), [&](int) { return from; });
            m.row[j] = x[0];
        }
        __syncthreads();
        pivot = m.row[step];
        divisor = pivot == 0 ? REAL(1) : pivot;
        inverse = 1 / divisor;
        for (int j = t; j < width; j += PANEL_THREADS) {
            m.factor[j] = j == step ? REAL(1) : m.row[j];
        }
        for (int i = t; i < rows; i += PANEL_THREADS) {
            /* 1 for a row that is equal to the pivot's, so that zeros are left of it */
            m.other[i] = m.a[step * rows + i] / divisor;
        }
        if (taken >= 0 && t == 0) {
            q.p[q.begin + step] = (int)(low + taken);
            m.open[taken] = 0;
            if (pivot == 0) {
                *q.singular = 1;
            }
        }
        __syncthreads();
        if (step + 1 < width) {
            if (warp == 0) {
                const struct inverse_best next = find_best(m, rows, step + 1, taken);

                if (lane == 0) {
                    best = next;
                }
            }
            __syncthreads();
            offer(q, m, rows, step + 1, best);
            __syncthreads();
        }
        for (int j = warp; j < width; j += PANEL_THREADS / WARP) {
            const real entry = m.factor[j] * inverse;

            for (int i = lane; i < rows; i += WARP) {
                m.a[j * rows + i] = i == taken ? entry : changed(m, rows, step, i, j);
            }
        }
        __syncthreads();
    }
    for (int j = warp; j < width; j += PANEL_THREADS / WARP) {
        for (int i = lane; i < rows; i += WARP) {
            w[j * q.n + i] = m.a[j * rows + i];
        }
    }
    for (int i = t; i < rows; i += PANEL_THREADS) {
        q.open[low + i] = m.open[i];
    }
}

/* Takes the pivots' rows out of columns first .. last - 1, but those of the panel: to r, `width`
   numbers for each column of the matrix, and leaves zeros. */
static __global__ void
__launch_bounds__(GATHER_THREADS) gather_kernel(int64_t n, int64_t begin, int width, int64_t first,
                                                int64_t last, const int *p, real *w, real *r)
{
    const int64_t at = (int64_t)blockIdx.x * GATHER_THREADS + threadIdx.x;
    const int64_t k = at % width, j = first + at / width;

    if (j < last && (j < begin || j >= begin + width)) {
        real *const from = w + j * n + p[begin + k];

        r[j * width + k] = *from;
        *from = 0;
    }
}

/* No step had a row yet. */
static __global__ void
__launch_bounds__(GATHER_THREADS) open_kernel(int64_t n, int *open)
{
    const int64_t i = (int64_t)blockIdx.x * GATHER_THREADS + threadIdx.x;

    if (i < n) {
        open[i] = 1;
    }
}

/* ---- on the host ---- */

/* How a matrix is shared out. */
struct sharing {
    int64_t rows, blocks, width, wide;
};

static struct sharing
share_out(const struct cuda_call *call, int64_t n)
{
    const int64_t most = std::min<int64_t>(call->multiprocessors, (int64_t)PANEL_SENDERS * WARP);
    struct sharing s;

    s.rows = std::max<int64_t>((n + most - 1) / most, PANEL_ROWS);
    s.blocks = (n + s.rows - 1) / s.rows;
    s.width = PANEL_WIDTH;
    while (s.width > 1 && panel_bytes(s.width, s.rows) + PANEL_STATIC > (size_t)call->shared_most) {
        s.width /= 2;
    }
    s.wide = n > WIDE_ORDER ? WIDE_PANELS * s.width : s.width;
    return s;
}

/* What it works in. */
struct workspace {
    int *open;            /* [n] */
    struct message *mail; /* of a panel */
    real *r;              /* [n][wide] */
};

static size_t
lay_out(const struct sharing &s, int64_t n, char *base, struct workspace *to)
{
    size_t at = 0;

    to->open = cut<int>(base, &at, n);
    to->mail = cut<struct message>(base, &at, 2 * s.blocks * (PANEL_WIDTH + 1));
    to->r = cut<real>(base, &at, n * s.wide);
    return at;
}

uint64_t
tsvdi_cuda_inverse_large_bytes(const struct cuda_call *call, int64_t n)
{
    struct workspace work;

    return lay_out(share_out(call, n), n, NULL, &work);
}

/* Applies columns begin .. end - 1, which are eliminated, to columns first .. last - 1. */
static tsvd_status
apply(struct cuda_call *call, int64_t n, int64_t begin, int64_t end, int64_t first, int64_t last,
      const int *p, real *w, real *r)
{
    const int64_t width = end - begin;
    const int64_t from[] = {first, end}, to[] = {begin, last};
    const struct cuda_factor panel = {w + begin * n, n, 0, 0};
    tsvd_status ret = TSVD_OK;

    if (first == begin && last == end) {
        goto out;
    }
    gather_kernel<<<blocks_for((last - first) * width, GATHER_THREADS), GATHER_THREADS, 0,
                    call->stream>>>(n, begin, (int)width, first, last, p, w, r);
    CUDA_LAUNCHED(call);
    for (int side = 0; side < 2; side++) {
        const struct cuda_factor rows = {r + from[side] * width, width, 0, 0};

        if (from[side] < to[side]) {
            TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, to[side] - from[side], n, width, 1,
                                             rows, panel, 1, w + from[side] * n, n, 0, 1));
        }
    }
out:
    return ret;
}

static tsvd_status
eliminate(struct tsvd_context *ctx, const struct sharing &s, struct inverse_panel q, real *r,
          double done, double part)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = q.n;
    tsvd_status ret = TSVD_OK;

    q.rows = (int)s.rows;
    q.blocks = (int)s.blocks;
    CUDA_TRY(call, cudaMemsetAsync(q.mail, 0,
                                   (size_t)(2 * s.blocks * (PANEL_WIDTH + 1)) * sizeof(*q.mail),
                                   call->stream));
    open_kernel<<<blocks_for(n, GATHER_THREADS), GATHER_THREADS, 0, call->stream>>>(n, q.open);
    CUDA_LAUNCHED(call);
    for (int64_t first = 0, last; first < n; first = last) {
        last = std::min(first + s.wide, n);
        TSVD_TRY(tsvdi_check(ctx, done + part * (double)first / (double)n));
        for (int64_t begin = first, end; begin < last; begin = end) {
            void *args[] = {&q};

            end = std::min(begin + s.width, last);
            q.begin = begin;
            q.width = (int)(end - begin);
            CUDA_TRY(call, cudaLaunchCooperativeKernel(panel_kernel, dim3((unsigned)s.blocks),
                                                       dim3(PANEL_THREADS), args,
                                                       panel_bytes(q.width, s.rows), call->stream));
            TSVD_TRY(apply(call, n, begin, end, first, last, q.p, q.w, r));
        }
        TSVD_TRY(apply(call, n, first, last, 0, n, q.p, q.w, r));
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
    const struct sharing s = share_out(call, n);
    struct workspace work;
    struct inverse_panel q = {};
    tsvd_status ret = TSVD_OK;

    (void)lay_out(s, n, d_work, &work);
    CUDA_TRY(call, cudaFuncSetAttribute(panel_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)panel_bytes(s.width, s.rows)));
    CUDA_TRY(call, cudaMemsetAsync(run->singular, 0, (size_t)count, call->stream));
    q.n = n;
    q.open = work.open;
    q.mail = work.mail;
    for (int64_t i = 0; i < count; i++) {
        q.w = run->in.w + i * n * n;
        q.p = d_p + i * n;
        q.singular = run->singular + i;
        TSVD_TRY(eliminate(ctx, s, q, work.r, (double)i / (double)count, 1 / (double)count));
    }
out:
    return ret;
}
