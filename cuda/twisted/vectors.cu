/*
 * Twisted factorisations on the device: the vectors of a block of values, and their signs.
 */
#include "twisted/chains.h"
#include "twisted/segments.h"
#include "twisted/twist.h"

/* A run has a row of each side for every two of its rows. */
enum {
    RUN_ROWS = RUN / 2,
    TILE_THREADS = 8,
    WRITE_TILE = 2 * (int)WARP,
    WRITE_THREADS = WRITE_TILE / RUN_ROWS
};

static __device__ __forceinline__ void
keep_larger(struct twisted_largest x, struct twisted_largest *best)
{
    if (r_abs(x.entry) > r_abs(best->entry) ||
        (r_abs(x.entry) == r_abs(best->entry) && x.row < best->row)) {
        *best = x;
    }
}

/* Gives both factors of a value the sign that makes an entry positive. */
static __device__ __forceinline__ void
turn(const struct twisted_block &block, int64_t column, struct twisted_largest largest)
{
    if (largest.entry < 0) {
        block.factor[0][column] = -block.factor[0][column];
        block.factor[1][column] = -block.factor[1][column];
    }
}

/* Where the largest entries of L's column tie with both signs, as they will be rounded (see
   conclude()), makes the first of them positive.  With several slices of the rows it only finds the
   largest entry of each slice, for turn_kernel. */
static __global__ void
__launch_bounds__(WARP *TILE_THREADS)
    sign_kernel(struct twisted_device run, struct twisted_block block)
{
    const int lane = (int)threadIdx.x, thread = (int)threadIdx.y, side = side_of_left(run);
    const int64_t column = (int64_t)blockIdx.x * WARP + lane;
    const int64_t runs = (run.n + RUN_ROWS - 1) / RUN_ROWS;
    const int64_t each = (runs + gridDim.y - 1) / gridDim.y * RUN_ROWS, begin = blockIdx.y * each;
    int64_t end = begin + each < run.n ? begin + each : run.n;
    __shared__ struct twisted_largest found[TILE_THREADS][WARP];
    struct twisted_largest largest = {0, begin};
    double factor;
    bool tied;

    if (run.facts->refused > 0) {
        return;
    }
    tied = block.tied[column] != 0;
    if (!__syncthreads_or(tied)) {
        return;
    }
    factor = side == 0 ? block.factor[0][column] : block.factor[1][column];
    end = tied ? end : begin;
    for (int64_t i = begin + thread * RUN_ROWS; i < end; i += TILE_THREADS * RUN_ROWS) {
        double z[RUN];

        read_run(run, block, column, 2 * (int)i, z);
#pragma unroll
        for (int j = 0; j < RUN_ROWS; j++) {
            const real x = (real)((side == 0 ? z[2 * j] : z[2 * j + 1]) * factor);

            if (i + j < end && r_abs(x) > r_abs(largest.entry)) {
                largest = {x, i + j};
            }
        }
    }
    found[thread][lane] = largest;
    __syncthreads();
    if (thread > 0 || !tied) {
        return;
    }
    for (int i = 1; i < TILE_THREADS; i++) {
        keep_larger(found[i][lane], &largest);
    }
    if (gridDim.y == 1) {
        turn(block, column, largest);
    } else {
        block.largest[blockIdx.y * block.width + column] = largest;
    }
}

static __global__ void
__launch_bounds__(WARP) turn_kernel(struct twisted_device run, struct twisted_block block)
{
    const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;
    struct twisted_largest largest;

    if (run.facts->refused > 0 || block.tied[column] == 0) {
        return;
    }
    largest = block.largest[column];
#pragma unroll 8
    for (int i = 1; i < block.slices; i++) {
        keep_larger(block.largest[i * block.width + column], &largest);
    }
    turn(block, column, largest);
}

/* Writes tiles of both sides: L's as they are, R's transposed.  The rows of a tile are longer than
   a warp is wide, for longer contiguous stores. */
static __global__ void
__launch_bounds__(WRITE_TILE *WRITE_THREADS)
    write_kernel(struct twisted_device run, struct twisted_block block)
{
    const int by_columns = side_of_left(run);
    const int64_t column = (int64_t)blockIdx.x * WRITE_TILE + threadIdx.x;
    const int64_t step = (int64_t)gridDim.y * WRITE_TILE;
    int64_t value;
    double factor = 0, other = 0;
    __shared__ real tile[WRITE_TILE][WRITE_TILE + 1];

    if (run.facts->refused > 0) {
        return;
    }
    value = column < block.width ? block.value[column] : block.count;
    if (value < block.count) {
        factor = by_columns == 0 ? block.factor[0][column] : block.factor[1][column];
        other = by_columns == 0 ? block.factor[1][column] : block.factor[0][column];
    }
    for (int64_t begin = (int64_t)blockIdx.y * WRITE_TILE; begin < run.n; begin += step) {
        const int first = (int)threadIdx.y * RUN_ROWS;

        __syncthreads(); /* the tile before has been written */
        if (value < block.count && begin + first < run.n) {
            double z[RUN];

            read_run(run, block, column, 2 * (int)(begin + first), z);
#pragma unroll
            for (int j = 0; j < RUN_ROWS; j++) {
                const int64_t i = begin + first + j;

                if (i < run.n) {
                    run.columns[i * run.k + block.begin + value] =
                        (real)((by_columns == 0 ? z[2 * j] : z[2 * j + 1]) * factor);
                    tile[first + j][value % WRITE_TILE] =
                        (real)((by_columns == 0 ? z[2 * j + 1] : z[2 * j]) * other);
                }
            }
        }
        __syncthreads();
#pragma unroll 4
        for (int j = (int)threadIdx.y; j < WRITE_TILE; j += WRITE_THREADS) {
            const int64_t row = (int64_t)blockIdx.x * WRITE_TILE + j, i = begin + threadIdx.x;

            if (row < block.count && i < run.n) {
                run.rows[(block.begin + row) * run.n + i] = tile[threadIdx.x][j];
            }
        }
    }
}

tsvd_status
tsvdi_cuda_twisted_make(struct cuda_call *call, const struct twisted_device *run,
                        const struct twisted_block *block)
{
    const unsigned warps = (unsigned)(block->width / WARP);
    const unsigned rows = blocks_for(run->n, WRITE_TILE);
    const dim3 tiles(blocks_for(block->width, WRITE_TILE),
                     rows < GRID_MOST ? rows : (unsigned)GRID_MOST);
    const dim3 slices(warps, (unsigned)block->slices), threads(WARP, TILE_THREADS);
    tsvd_status ret = TSVD_OK;

    twist_kernel<<<warps, CHAIN_THREADS, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    if (block->segments.count > 1) {
        TSVD_TRY(twist_by_segments(call, run, block));
    }
    chain_kernel<<<warps, CHAIN_THREADS, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    sign_kernel<<<slices, threads, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    if (block->slices > 1) {
        turn_kernel<<<warps, WARP, 0, call->stream>>>(*run, *block);
        CUDA_LAUNCHED(call);
    }
    write_kernel<<<tiles, dim3(WRITE_TILE, WRITE_THREADS), 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
