/*
 * Divide and conquer on the device: the secular equations, the vectors of M, and the products with
 * them.  A warp works on a root: its lanes add up the terms, and then all take the same step.
 */
#include "dc/dc_run.h"

extern "C" {
#include "math/secular.h"
}

/* WARPS: warps of a block, each with a root or a survivor. */
enum { WARPS = 4, GATHER_THREADS = 256 };

/* The product over a warp, in every lane; as warp_sum(). */
static __device__ __forceinline__ real
warp_product(real x)
{
    for (int lane = WARP / 2; lane > 0; lane /= 2) {
        x *= __shfl_xor_sync(0xffffffffu, x, lane);
    }
    return x;
}

static __device__ struct secular_sums
evaluate(struct secular_root &r, int64_t k, const real *pole, const real *square)
{
    struct secular_sums sums = {0, 0, 0, 0};

    secular_split(&r, pole);
    for (int64_t j = threadIdx.x; j < secular_summed(&r, k); j += WARP) {
        secular_add(pole[j], square[j], r.base, r.tau, r.below, r.above, &sums);
    }
    sums.psi = warp_sum(sums.psi);
    sums.psi_slope = warp_sum(sums.psi_slope);
    sums.phi = warp_sum(sums.phi);
    sums.phi_slope = warp_sum(sums.phi_slope);
    secular_add_last(&r, square, &sums);
    return sums;
}

static __global__ void
__launch_bounds__(WARP *WARPS) roots_kernel(struct dc_device run, int depth)
{
    const int64_t first = node_at(run, depth, blockIdx.y).first;
    const int64_t k = merge_at(run, depth, blockIdx.y)->count.survivors;
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.y;
    const real *pole = run.slot.pole + first, *square = run.slot.square + first;
    struct secular_root r;

    if (i >= k) {
        return;
    }
    if (k == 1) {
        r.base = 0;
        r.tau = r_sqrt(square[0]);
    } else {
        real norm = 0;

        for (int64_t j = threadIdx.x; j < k && i == k - 1; j += WARP) {
            norm += square[j];
        }
        r = secular_start(k, i, pole, warp_sum(norm));
        secular_place(&r, pole, square, evaluate(r, k, pole, square));
        while (!secular_step(&r, pole, evaluate(r, k, pole, square))) {
        }
    }
    if (threadIdx.x == 0) {
        run.slot.base[first + i] = r.base;
        run.slot.tau[first + i] = r.tau;
    }
}

/* Recomputes z from the roots.  A warp has an entry of z. */
static __global__ void
__launch_bounds__(WARP *WARPS) weights_kernel(struct dc_device run, int depth)
{
    const int64_t first = node_at(run, depth, blockIdx.y).first;
    const int64_t k = merge_at(run, depth, blockIdx.y)->count.survivors;
    const int64_t j = (int64_t)blockIdx.x * WARPS + threadIdx.y;
    const real *pole = run.slot.pole + first;
    const real *base = run.slot.base + first, *tau = run.slot.tau + first;
    real d, square = 1;

    if (j >= k || k == 1) {
        return;
    }
    d = pole[j];
    for (int64_t i = threadIdx.x; i < k - 1; i += WARP) {
        square *= secular_ratio(d, pole[i < j ? i : i + 1], base[i], tau[i]);
    }
    square = warp_product(square);
    if (threadIdx.x == 0) {
        real *weight = &run.slot.placed_weight[first + run.slot.place[first + j]];

        square *= secular_root_difference(d, base[k - 1], tau[k - 1]);
        *weight = r_copysign(r_sqrt(square), *weight);
    }
}

/* The grid of kernels that take a survivor a warp. */
static dim3
survivors_grid(struct dc_level level)
{
    return dim3(blocks_for(level.columns, WARPS), (unsigned)level.nodes);
}

tsvd_status
tsvdi_cuda_dc_roots(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    tsvd_status ret = TSVD_OK;

    roots_kernel<<<survivors_grid(level), dim3(WARP, WARPS), 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dc_weights(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    tsvd_status ret = TSVD_OK;

    weights_kernel<<<survivors_grid(level), dim3(WARP, WARPS), 0, call->stream>>>(*run,
                                                                                  level.depth);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The vectors of M for one root, as rows of q. */
static __global__ void
__launch_bounds__(WARP *WARPS) coefficients_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.y);
    const int64_t first = node.first;
    const int64_t k = merge_at(run, depth, blockIdx.y)->count.survivors;
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.y;
    const real *pole = run.slot.placed_pole + first, *weight = run.slot.placed_weight + first;
    const int64_t row = (first + i) * run.stride + first, center = run.slot.place[first];
    real *right = columns_of(run.q, run, RIGHT, node) + row;
    real *left = columns_of(run.q, run, LEFT, node) + row;
    real base, tau, right_square = 0, left_square = 0;

    if (i >= k) {
        return;
    }
    if (k == 1) { /* M = (z_0), which may be zero */
        if (threadIdx.x == 0) {
            *right = r_copysign(1, weight[0]);
            *left = 1;
        }
        return;
    }
    base = run.slot.base[first + i];
    tau = run.slot.tau[first + i];
    for (int64_t p = threadIdx.x; p < k; p += WARP) {
        real d = pole[p], v = weight[p] / secular_difference(d, base, tau), u = d * v;

        right_square = r_fma(v, v, right_square);
        left_square = r_fma(u, u, left_square);
    }
    right_square = 1 / r_sqrt(warp_sum(right_square));
    left_square = 1 / r_sqrt(warp_sum(left_square) + 1);
    for (int64_t p = threadIdx.x; p < k; p += WARP) {
        real d = pole[p], v = weight[p] / secular_difference(d, base, tau);

        right[p] = v * right_square;
        left[p] = (p == center ? REAL(-1) : d * v) * left_square;
    }
}

/* Row p of g: the vector at place p, without the half in which it is zero. */
static __global__ void
__launch_bounds__(GATHER_THREADS) gather_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.y);
    const struct dc_count count = merge_at(run, depth, blockIdx.y)->count;
    const int64_t first = node.first, center = first + node.left, p = blockIdx.x;
    const int side = (int)blockIdx.z;
    int64_t j, low, high, from, to;
    const real *x;
    real *g;

    if (p >= count.survivors) {
        return;
    }
    j = run.slot.source[first + p];
    low = run.slot.low[j];
    high = run.slot.high[j];
    x = columns_of(run.x, run, side, node) + j * run.stride;
    g = columns_of(run.g, run, side, node) + (first + p) * run.stride;
    from = p < count.top + count.dense ? first : center + 1;
    to = p < count.top ? center + 1 : first + node.columns;
    for (int64_t i = from + threadIdx.x; i < to; i += GATHER_THREADS) {
        if (side == LEFT && j == center) {
            g[i] = i == center ? REAL(1) : REAL(0);
        } else {
            g[i] = i >= low && i < high ? x[i] : REAL(0);
        }
    }
}

/* Moves deflated vectors to their new slots.  settle_kernel, which follows, moves their ranges. */
static __global__ void
__launch_bounds__(GATHER_THREADS) move_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.y);
    const int64_t first = node.first;
    const int64_t moves = merge_at(run, depth, blockIdx.y)->moves;
    real *x = columns_of(run.x, run, (int)blockIdx.z, node);

    for (int64_t i = blockIdx.x; i < moves; i += gridDim.x) {
        const int64_t from = run.slot.from[first + i], to = run.slot.to[first + i];

        for (int64_t c = run.slot.low[from] + threadIdx.x; c < run.slot.high[from];
             c += GATHER_THREADS) {
            x[to * run.stride + c] = x[from * run.stride + c];
        }
    }
}

tsvd_status
tsvdi_cuda_dc_factors(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    const dim3 rows((unsigned)level.columns, (unsigned)level.nodes, SIDES);
    tsvd_status ret = TSVD_OK;

    coefficients_kernel<<<survivors_grid(level), dim3(WARP, WARPS), 0, call->stream>>>(*run,
                                                                                       level.depth);
    CUDA_LAUNCHED(call);
    gather_kernel<<<rows, GATHER_THREADS, 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dc_moves(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    const unsigned nodes = (unsigned)level.nodes, columns = (unsigned)level.columns;
    const dim3 moves(columns < MOVE_BLOCKS ? columns : (unsigned)MOVE_BLOCKS, nodes, SIDES);
    tsvd_status ret = TSVD_OK;

    move_kernel<<<moves, GATHER_THREADS, 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- products of small nodes, or of few survivors, of many nodes at once ---- */

enum { PRODUCT_DEPTH = 16, PRODUCT_EACH = PRODUCT_TILE / 16 };

/* One tile of x = q g, for nodes with up to `most` survivors.  blockIdx.z: 2 side + half, where the
   cut separates the halves of the columns. */
static __global__ void __launch_bounds__(256)
    product_kernel(struct dc_device run, int depth, int64_t most, int tiles_across)
{
    const struct dc_node node = node_at(run, depth, blockIdx.y);
    const struct dc_count count = merge_at(run, depth, blockIdx.y)->count;
    const int side = (int)blockIdx.z / 2, half = (int)blockIdx.z % 2;
    const int64_t cut = node.left + 1;
    const int64_t term = half ? count.top : 0; /* first term and number of them */
    const int64_t terms = half ? count.survivors - count.top : count.top + count.dense;
    const int64_t column = half ? cut : 0, columns = half ? node.columns - cut : cut;
    const int64_t row0 =
        count.begin + (int64_t)(blockIdx.x / (unsigned)tiles_across) * PRODUCT_TILE;
    const int64_t column0 = (int64_t)(blockIdx.x % (unsigned)tiles_across) * PRODUCT_TILE;
    const int64_t corner = node.first * run.stride + node.first;
    const real *q = columns_of(run.q, run, side, node) + corner + term;
    const real *g = columns_of(run.g, run, side, node) + corner + term * run.stride + column;
    real *x = columns_of(run.x, run, side, node) + corner + column;
    const int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    __shared__ real a[PRODUCT_DEPTH][PRODUCT_TILE + 1], b[PRODUCT_DEPTH][PRODUCT_TILE + 1];
    real sum[PRODUCT_EACH][PRODUCT_EACH] = {{0}};

    if (count.survivors > most || row0 >= count.end || column0 >= columns) {
        return;
    }
    for (int64_t k0 = 0; k0 < terms; k0 += PRODUCT_DEPTH) {
        for (int at = (int)threadIdx.x; at < PRODUCT_DEPTH * PRODUCT_TILE; at += 256) {
            const int64_t ka = k0 + at % PRODUCT_DEPTH, row = row0 + at / PRODUCT_DEPTH;
            const int64_t kb = k0 + at / PRODUCT_TILE, across = column0 + at % PRODUCT_TILE;

            a[at % PRODUCT_DEPTH][at / PRODUCT_DEPTH] =
                ka < terms && row < count.end ? q[row * run.stride + ka] : REAL(0);
            b[at / PRODUCT_TILE][at % PRODUCT_TILE] =
                kb < terms && across < columns ? g[kb * run.stride + across] : REAL(0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PRODUCT_DEPTH; k++) {
            real above[PRODUCT_EACH], beside[PRODUCT_EACH];

#pragma unroll
            for (int i = 0; i < PRODUCT_EACH; i++) {
                beside[i] = a[k][ty + 16 * i];
                above[i] = b[k][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < PRODUCT_EACH; i++) {
#pragma unroll
                for (int j = 0; j < PRODUCT_EACH; j++) {
                    sum[i][j] = r_fma(beside[i], above[j], sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < PRODUCT_EACH; i++) {
#pragma unroll
        for (int j = 0; j < PRODUCT_EACH; j++) {
            const int64_t row = row0 + ty + 16 * i, across = column0 + tx + 16 * j;

            if (row < count.end && across < columns) {
                x[row * run.stride + across] = sum[i][j];
            }
        }
    }
}

tsvd_status
tsvdi_cuda_dc_products(struct cuda_call *call, const struct dc_device *run, struct dc_level level,
                       int64_t most, int64_t rows)
{
    const unsigned down = blocks_for(rows, PRODUCT_TILE);
    /* the widths of the two halves differ by DC_ALIGN columns at most */
    const int64_t half = level.columns / 2 + DC_ALIGN;
    const unsigned across = blocks_for(half, PRODUCT_TILE);
    const dim3 grid(down * across, (unsigned)level.nodes, 2 * SIDES);
    tsvd_status ret = TSVD_OK;

    product_kernel<<<grid, 256, 0, call->stream>>>(*run, level.depth, most, (int)across);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
