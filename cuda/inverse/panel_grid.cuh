/*
 * A panel by all multiprocessors, which have an equal share of the rows each, in shared memory.
 *
 * In a step each block offers the best row that it has: its entry in the column, and the row
 * itself, as messages (matrix/mail.h) to all others.  So a step takes one trip from block
 * to block.  A block offers its row of the next step before it changes its other rows.
 */
#ifndef TSVDI_CUDA_INVERSE_PANEL_GRID_H
#define TSVDI_CUDA_INVERSE_PANEL_GRID_H

#include <algorithm>

#include "inverse/panel.h"
#include "matrix/mail.h"

enum {
    GRID_THREADS = 256,
    GRID_STATIC = 1024, /* bytes of static shared memory of the kernel, at most */
    GRID_SENDERS = 8    /* blocks that a lane of a warp waits for, at most */
};

/* A block's shared memory. */
struct grid_memory {
    scalar *a;            /* [width][rows] */
    scalar *row, *factor; /* [width] the pivot's row; the same with 1 in the step's column */
    scalar *other;        /* [rows] the column of the step divided by the pivot */
    int *step;            /* [rows] */
};

static size_t
grid_bytes(int64_t width, int64_t rows)
{
    return (size_t)(width * rows + 2 * width + rows) * sizeof(scalar) + (size_t)rows * sizeof(int);
}

static __device__ __forceinline__ struct grid_memory
cut_grid(char *base, int width, int rows)
{
    struct grid_memory m;

    m.a = (scalar *)base;
    m.row = m.a + width * rows;
    m.factor = m.row + width;
    m.other = m.factor + width;
    m.step = (int *)(m.other + rows);
    return m;
}

static __device__ __forceinline__ struct message *
offer_of(const struct inverse_panel &q, int block, int step)
{
    return q.mail + ((step & 1) * q.blocks + block) * (INVERSE_GRID_WIDTH + 1);
}

/* The number of a step in messages: no other step of the matrix has it. */
static __device__ __forceinline__ unsigned
tag_of(const struct inverse_panel &q, int step)
{
    return (unsigned)(q.begin + step + 1);
}

/* Entry (i, j) after the step whose column is `own`, of a row that is not the pivot's. */
static __device__ __forceinline__ scalar
changed(const struct grid_memory &m, int rows, int own, int i, int j)
{
    return (j == own ? REAL(0) : m.a[j * rows + i]) - n_mul(m.other[i], m.factor[j]);
}

/* x / divisor, which is not zero. */
static __device__ __forceinline__ scalar
quotient(scalar x, scalar divisor)
{
#if TSVD_COMPLEX
    return pivot_factor(x, divisor);
#else
    return x / divisor;
#endif
}

/* The block's best row for a step, by one warp.  The array does not have the changes of step - 1
   yet: they are computed here.  taken: the row that step - 1 takes; -1: it is in another block. */
static __device__ __forceinline__ struct inverse_best
find_best(const struct grid_memory &m, int rows, int step, int taken)
{
    struct inverse_best best = {-1, INT32_MAX};

    for (int i = (int)threadIdx.x; i < rows; i += WARP) {
        if (m.step[i] < 0 && i != taken) {
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
offer(const struct inverse_panel &q, const struct grid_memory &m, int rows, int step,
      struct inverse_best best)
{
    struct message *const to = offer_of(q, (int)blockIdx.x, step);

    if (threadIdx.x == 0) {
        send(to, best.size, tag_of(q, step));
    }
    for (int j = (int)threadIdx.x; j < q.width && best.size >= 0; j += GRID_THREADS) {
        const scalar x =
            step > 0 ? changed(m, rows, step - 1, best.at, j) : m.a[j * rows + best.at];

        send(to + 1 + j, x, tag_of(q, step));
    }
}

/* The block with the best offer; by one warp. */
static __device__ __forceinline__ int
find_winner(const struct inverse_panel &q, int step)
{
    const int lane = (int)threadIdx.x;
    struct inverse_best best = {-1, INT32_MAX};
    scalar x[GRID_SENDERS];

    receive(x, tag_of(q, step), [&](int k) {
        const int block = lane + k * WARP;

        return block < q.blocks ? offer_of(q, block, step) : (struct message *)NULL;
    });
#pragma unroll
    for (int k = 0; k < GRID_SENDERS; k++) {
        const struct inverse_best own = {lane + k * WARP < q.blocks ? n_real(x[k]) : REAL(-2),
                                         lane + k * WARP};

        best = better(best, own);
    }
    best = best_of_lanes(best, WARP);
    return best.at < q.blocks ? best.at : 0;
}

static __global__ void
__launch_bounds__(GRID_THREADS) grid_kernel(const __grid_constant__ struct inverse_panel q)
{
    extern __shared__ char shared[] __align__(16);
    __shared__ struct inverse_best best;
    __shared__ int winner;
    const int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP, width = q.width;
    const int64_t low = (int64_t)blockIdx.x * q.rows;
    const int rows = (int)(q.n - low < q.rows ? q.n - low : q.rows);
    const struct grid_memory m = cut_grid(shared, width, rows);
    scalar *const w = q.w + q.begin * q.n + low;

    for (int j = warp; j < width; j += GRID_THREADS / WARP) {
        for (int i = lane; i < rows; i += WARP) {
            m.a[j * rows + i] = w[j * q.n + i];
        }
    }
    for (int i = t; i < rows; i += GRID_THREADS) {
        m.step[i] = q.step[low + i];
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
        scalar pivot, divisor, inverse;

        if (warp == 0) {
            const int found = find_winner(q, step);

            if (lane == 0) {
                winner = found;
            }
        }
        __syncthreads();
        taken = winner == (int)blockIdx.x ? best.at : -1;
        for (int j = t; j < width; j += GRID_THREADS) {
            const struct message *const from = offer_of(q, winner, step) + 1 + j;
            scalar x[1];

            receive(x, tag_of(q, step), [&](int) { return from; });
            m.row[j] = x[0];
        }
        __syncthreads();
        pivot = m.row[step];
        divisor = pivot == 0 ? REAL(1) : pivot;
        inverse = quotient(1, divisor);
        for (int j = t; j < width; j += GRID_THREADS) {
            m.factor[j] = j == step ? REAL(1) : m.row[j];
        }
        for (int i = t; i < rows; i += GRID_THREADS) {
            /* 1 for a row that is equal to the pivot's, so that zeros are left of it */
            m.other[i] = quotient(m.a[step * rows + i], divisor);
        }
        if (taken >= 0 && t == 0) {
            q.p[q.begin + step] = (int)(low + taken);
            m.step[taken] = (int)q.begin + step;
            if (pivot == 0) {
                *q.singular = 1;
            }
            if (growth_is_large(n_size(pivot), q.n)) {
                *q.grown = 1;
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
        for (int j = warp; j < width; j += GRID_THREADS / WARP) {
            const scalar entry = n_mul(m.factor[j], inverse);

            for (int i = lane; i < rows; i += WARP) {
                m.a[j * rows + i] = i == taken ? entry : changed(m, rows, step, i, j);
            }
        }
        __syncthreads();
    }
    for (int j = warp; j < width; j += GRID_THREADS / WARP) {
        for (int i = lane; i < rows; i += WARP) {
            w[j * q.n + i] = m.a[j * rows + i];
        }
    }
    for (int i = t; i < rows; i += GRID_THREADS) {
        q.step[low + i] = m.step[i];
    }
}

/* ---- on the host ---- */

static struct panel_sharing
share_grid(const struct cuda_device *device, int64_t n)
{
    const int64_t most = std::min<int64_t>(device->multiprocessors, (int64_t)GRID_SENDERS * WARP);
    const int64_t rows = std::max<int64_t>((n + most - 1) / most, INVERSE_GRID_ROWS);
    struct panel_sharing s = {};

    s.rows = (int)rows;
    s.blocks = (int)((n + rows - 1) / rows);
    s.matrices = 1;
    s.width = INVERSE_GRID_WIDTH;
    while (s.width > 1 && grid_bytes(s.width, rows) + GRID_STATIC > (size_t)device->shared_most) {
        s.width /= 2;
    }
    return s;
}

/* Messages of the offers; zeros before a matrix begins. */
static int64_t
grid_messages(const struct panel_sharing &s)
{
    return (int64_t)2 * s.blocks * (INVERSE_GRID_WIDTH + 1);
}

static tsvd_status
launch_grid(struct cuda_call *call, const struct panel_sharing &s, struct inverse_panel q,
            cudaStream_t stream)
{
    void *args[] = {&q};
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaFuncSetAttribute(grid_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)grid_bytes(s.width, s.rows)));
    CUDA_TRY(call, cudaLaunchCooperativeKernel((void *)grid_kernel, dim3((unsigned)s.blocks),
                                               dim3(GRID_THREADS), args,
                                               grid_bytes(q.width, s.rows), stream));
out:
    return ret;
}

#endif
