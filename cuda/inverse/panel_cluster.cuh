/*
 * A panel by a cluster of blocks.
 *
 * A thread has a row of the panel in its registers.  The entries move on by one register in each
 * step, so that the step's column is always the first: the loop over steps need not be unrolled.
 *
 * In a step each block offers the best row that it has, and sends it to the shared memory of all
 * blocks.  There a barrier counts the bytes, so that a step takes one trip from block to block.  To
 * choose its offer a block needs no more than the next column; the other rows change while the
 * offers are in flight.  Offers and barriers have CLUSTER_TURNS places, by turns: a block that
 * sends for step k + 3 has all offers of step k + 2, and each block sent that one when all of its
 * threads were done with step k.  A block that exits has received all that is sent to it.
 *
 * A pivot's row is divided by the pivot after the last step.
 *
 * A row is chosen by the first 16 bits of its entry's size, or so: a pivot may be smaller than the
 * largest entry, by a part in 2^15 of normal numbers.  So one instruction finds the largest of a
 * warp, and whose it is.
 */
#ifndef TSVDI_CUDA_INVERSE_PANEL_CLUSTER_H
#define TSVDI_CUDA_INVERSE_PANEL_CLUSTER_H

#include "barrier.h"
#include "cluster.h"
#include "inverse/panel.h"

enum {
    CLUSTER_TURNS = 3,
    CLUSTER_NUMBERS = 16384 * 8 / (int)sizeof(scalar), /* in the registers of a block */
    CLUSTER_MOST_THREADS = 1024,
    CLUSTER_ONCE = 16 / (int)sizeof(scalar) /* numbers of 16 bytes, sent or read at once */
};

/* Threads of a block, at most. */
static constexpr int
cluster_threads(int width)
{
    return CLUSTER_NUMBERS / width < CLUSTER_MOST_THREADS ? CLUSTER_NUMBERS / width
                                                          : CLUSTER_MOST_THREADS;
}

struct __align__(16) cluster_once
{
    scalar at[CLUSTER_ONCE];
};

    /* ---- messages ---- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

/* The same place in the shared memory of another block of the cluster. */
static __device__ __forceinline__ unsigned
address_there(unsigned address, int block)
{
    unsigned there;

    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
    return there;
}

/* Waits for what other blocks of the cluster send. */
static __device__ __forceinline__ void
wait_for_bytes(uint64_t *barrier, unsigned parity)
{
    unsigned done;

    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    } while (!done);
}

/* Sends 16 bytes to `to`, to be counted by `barrier`; both are addresses in another block. */
static __device__ __forceinline__ void
send_once(unsigned to, struct cluster_once x, unsigned barrier)
{
    unsigned long long word[2];

    memcpy(word, x.at, sizeof(word));
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(
            to),
        "l"(word[0]), "l"(word[1]), "r"(barrier)
        : "memory");
}

/* ---- the kernel ---- */

/* What a block without open rows offers, as a real part: arithmetic makes no such NaN. */
static __device__ __forceinline__ real
no_row(void)
{
    return r_from_bits(R_INFINITY_BITS | 1);
}

/* The order of entries as pivots, in the bits above those of a number below WARP: 0 for no_row(),
   then zero and NaN, of what overflows, then the others. */
static __device__ __forceinline__ unsigned
pivot_order(scalar x)
{
    const unsigned upper = (unsigned)upper_half(x);
    const bool is_zero = n_size_bits(x) == 0;
    const bool is_nan = upper > (unsigned)(R_INFINITY_BITS >> (R_BITS - 32));

    return (r_bits(n_real(x)) == r_bits(no_row()) ? 0
            : is_zero || is_nan                   ? 1
                                                  : upper / WARP + 2) *
           WARP;
}

/* The first lane with the largest order; *most: that order, and the lane's complement below it. */
static __device__ __forceinline__ int
first_of_largest(unsigned order, unsigned *most)
{
    *most = __reduce_max_sync(0xffffffffu, order | (WARP - 1 - threadIdx.x % WARP));
    return WARP - 1 - (int)(*most % WARP);
}

/* What a block has in shared memory. */
template <int WIDTH> struct cluster_memory {
    enum { PIECES = WIDTH / CLUSTER_ONCE };

    /* of the blocks, by turns, one piece apart so that first pieces lie in different banks */
    struct cluster_once offer[CLUSTER_TURNS][CLUSTER_MOST][PIECES + 1];
    struct cluster_once best[PIECES]; /* the block's next offer */
    unsigned order[CLUSTER_TURNS]
                  [CLUSTER_MOST_THREADS / WARP]; /* how good the rows of the warps are */
    uint64_t arrived[CLUSTER_TURNS];
};

/* A thread's row: the step's column, and the others that follow it. */
template <int WIDTH> struct cluster_row {
    scalar a[WIDTH];
    int step;     /* the step in which it was the pivot's; below 0: none yet */
    scalar pivot; /* of that step if it is one of the panel; else 1 */
};

/* Takes a multiple of the pivot's row away, and moves on to the next column.  The row that is the
   pivot's itself has the factor 0. */
template <int WIDTH>
static __device__ __forceinline__ void
change_row(struct cluster_row<WIDTH> *row, scalar factor, bool is_pivots,
           const struct cluster_once *pivots)
{
#pragma unroll
    for (int k = 0; k < WIDTH / CLUSTER_ONCE; k++) {
        const struct cluster_once x = pivots[k];

#pragma unroll
        for (int l = 0; l < CLUSTER_ONCE; l++) {
            const int j = k * CLUSTER_ONCE + l;

            if (j > 0) {
                row->a[j - 1] = n_fma(-factor, x.at[l], row->a[j]);
            }
        }
    }
    row->a[WIDTH - 1] = is_pivots ? REAL(1) : -factor;
}

/* Column j of the panel of the block's matrix. */
static __device__ __forceinline__ scalar *
panel_column(const struct inverse_panel &q, int j)
{
    return q.w + (blockIdx.y * q.n + q.begin + j) * q.n;
}

/* The warp whose row is the block's best, and the lane of this warp's best; *any: the block has an
   open row.  entry: of the thread's row in the column to come. */
template <int WIDTH>
static __device__ __forceinline__ int
find_offer(struct cluster_memory<WIDTH> *m, int turn, bool open, scalar entry, int *lane_with,
           bool *any)
{
    const int t = (int)threadIdx.x, lane = t % WARP, warps = (int)blockDim.x / WARP;
    unsigned most;
    int warp_with;

    *lane_with = first_of_largest(open ? pivot_order(entry) : 0, &most);
    if (lane == 0) {
        m->order[turn][t / WARP] = most / WARP * WARP;
    }
    __syncthreads();
    warp_with = first_of_largest(lane < warps ? m->order[turn][lane] : 0, &most);
    *any = most >= WARP;
    return warp_with;
}

/* Sends the row of a lane to all blocks of the cluster, or no_row(); by the lane's warp. */
template <int WIDTH>
static __device__ __forceinline__ void
send_row(struct cluster_memory<WIDTH> *m, int turn, const struct cluster_row<WIDTH> &row,
         bool is_row, bool any)
{
    enum { PIECES = WIDTH / CLUSTER_ONCE };
    const int lane = (int)threadIdx.x % WARP, piece = lane % PIECES;
    const unsigned barrier = shared_address(&m->arrived[turn]);
    const unsigned to = shared_address(&m->offer[turn][blockIdx.x][piece]);
    struct cluster_once own;

    if (is_row) {
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            struct cluster_once x;

#pragma unroll
            for (int l = 0; l < CLUSTER_ONCE; l++) {
                x.at[l] = row.a[k * CLUSTER_ONCE + l];
            }
            m->best[k] = x;
        }
    }
    __syncwarp();
    own = m->best[piece];
    if (!any) {
        own.at[0] = no_row();
    }
    for (int block = lane / PIECES; block < (int)gridDim.x; block += WARP / PIECES) {
        send_once(address_there(to, block), own, address_there(barrier, block));
    }
}

/* The pivot's row of a step, once all offers are there; *block: whose it is. */
template <int WIDTH>
static __device__ __forceinline__ const struct cluster_once *
receive_pivot(struct cluster_memory<WIDTH> *m, int step, int *block)
{
    const int turn = step % CLUSTER_TURNS, lane = (int)threadIdx.x % WARP;
    unsigned most;

    wait_for_bytes(&m->arrived[turn], (unsigned)(step / CLUSTER_TURNS % 2));
    *block = first_of_largest(
        lane < (int)gridDim.x ? pivot_order(m->offer[turn][lane][0].at[0]) : 0, &most);
    return m->offer[turn][*block];
}

#endif

template <int WIDTH>
static __global__ void
__launch_bounds__(cluster_threads(WIDTH))
    cluster_kernel(const __grid_constant__ struct inverse_panel q)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __shared__ struct cluster_memory<WIDTH> m;
    const int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP;
    const int skipped = WIDTH - q.width;
    const unsigned bytes = gridDim.x * WIDTH * (unsigned)sizeof(scalar);
    const int64_t matrix = blockIdx.y, i = (int64_t)blockIdx.x * q.rows + t;
    const bool present = t < q.rows && i < q.n;
    struct cluster_row<WIDTH> row;
    int lane_with, warp_with;
    scalar inverse;
    bool any;

    row.step = present ? q.step[matrix * q.n + i] : 0;
    row.pivot = 1;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        row.a[j] = present && j < q.width ? panel_column(q, j)[i] : REAL(0);
    }
    if (t < CLUSTER_TURNS) {
        barrier_make(&m.arrived[t]);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_barrier();
    warp_with = find_offer<WIDTH>(&m, 0, row.step < 0, row.a[0], &lane_with, &any);
    if (t == 0) {
        barrier_expect(&m.arrived[0], bytes);
    }
    if (warp == warp_with) {
        send_row<WIDTH>(&m, 0, row, lane == lane_with, any);
    }
    for (int step = 0; step < q.width; step++) {
        int block;
        const struct cluster_once *const pivots = receive_pivot<WIDTH>(&m, step, &block);
        const scalar pivot = pivots[0].at[0];
        scalar factor = pivot_factor(row.a[0], pivot);
        const bool is_pivots =
            any && block == (int)blockIdx.x && warp == warp_with && lane == lane_with;
        bool changed = false;

        if (is_pivots) {
            q.p[matrix * q.n + q.begin + step] = (int)i;
            row.step = (int)q.begin + step;
            row.pivot = pivot == 0 ? REAL(1) : pivot;
            factor = 0;
            if (pivot == 0) {
                q.singular[matrix] = 1;
            }
        }
        if (step + 1 < q.width) {
            const int turn = (step + 1) % CLUSTER_TURNS;
            const scalar entry =
                n_fma(-factor, pivots[1 / CLUSTER_ONCE].at[1 % CLUSTER_ONCE], row.a[1]);

            warp_with = find_offer<WIDTH>(&m, turn, row.step < 0, entry, &lane_with, &any);
            if (t == 0) {
                barrier_expect(&m.arrived[turn], bytes);
            }
            if (warp == warp_with) {
                change_row<WIDTH>(&row, factor, is_pivots, pivots);
                send_row<WIDTH>(&m, turn, row, lane == lane_with, any);
                changed = true;
            }
        }
        if (!changed) {
            change_row<WIDTH>(&row, factor, is_pivots, pivots);
        }
    }
    inverse = pivot_factor(1, row.pivot);
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        if (present && j >= skipped) {
            panel_column(q, j - skipped)[i] = n_mul(row.a[j], inverse);
        }
    }
    if (present) {
        q.step[matrix * q.n + i] = row.step;
        if (growth_is_large(n_size(row.pivot), q.n)) {
            q.grown[matrix] = 1;
        }
    }
#else
    (void)q;
#endif
}

/* ---- on the host ---- */

typedef void (*cluster_function)(const struct inverse_panel);

/* The kernel for the widest panels, *width, of blocks with `rows` rows.  NULL: there is none. */
static cluster_function
choose_cluster(int64_t rows, int *width)
{
    *width = 32;
    if (rows <= cluster_threads(32)) {
        return cluster_kernel<32>;
    }
#if !TSVD_SINGLE || TSVD_COMPLEX
    *width = 16;
    if (rows <= cluster_threads(16)) {
        return cluster_kernel<16>;
    }
#endif
#if !TSVD_SINGLE && TSVD_COMPLEX
    *width = 8;
    if (rows <= cluster_threads(8)) {
        return cluster_kernel<8>;
    }
#endif
    return NULL;
}

/* attribute: of the configuration. */
static cudaLaunchConfig_t
configure_cluster(const struct panel_sharing &s, int matrices, cudaStream_t stream,
                  cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};

    *attribute = cluster_attribute(s.blocks);
    config.gridDim = dim3((unsigned)s.blocks, (unsigned)matrices);
    config.blockDim = dim3((unsigned)s.rows);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

/* Blocks of the largest cluster that the device can run, below 0: it has none. */
static int
find_cluster_most(const struct cuda_device *device)
{
    cudaLaunchAttribute attribute = {};
    struct panel_sharing s = {};

    s.rows = cluster_threads(32);
    for (s.blocks = CLUSTER_MOST; s.blocks > 0; s.blocks /= 2) {
        if (cluster_runs(device, cluster_kernel<32>, configure_cluster(s, 1, NULL, &attribute))) {
            return s.blocks;
        }
    }
    return -1;
}

/* How matrices of order n are shared out; false: the device has no clusters for them. */
static bool
share_cluster(struct cuda_call *call, int64_t n, struct panel_sharing *s)
{
    int64_t rows;

    if (call->device->cluster_most == 0) {
        call->device->cluster_most = find_cluster_most(call->device);
    }
    s->clusters = true;
    s->matrices = INVERSE_CLUSTER_MATRICES;
    for (s->blocks = call->device->cluster_most; s->blocks / 2 * INVERSE_CLUSTER_ROWS >= n;) {
        s->blocks /= 2;
    }
    rows = s->blocks > 0 ? ((n + s->blocks - 1) / s->blocks + WARP - 1) / WARP * WARP : n;
    s->rows = (int)rows;
    return s->blocks > 0 && choose_cluster(rows, &s->width) != NULL;
}

static tsvd_status
launch_cluster(struct cuda_call *call, const struct panel_sharing &s, const struct inverse_panel &q,
               int matrices, cudaStream_t stream)
{
    cudaLaunchAttribute attribute = {};
    const cudaLaunchConfig_t config = configure_cluster(s, matrices, stream, &attribute);
    int width;
    const cluster_function kernel = choose_cluster(s.rows, &width);
    tsvd_status ret = TSVD_OK;

    if (q.begin == 0) {
        CUDA_TRY(call,
                 cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    }
    CUDA_TRY(call, cudaLaunchKernelEx(&config, kernel, q));
out:
    return ret;
}

#endif
