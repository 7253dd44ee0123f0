/*
 * Results in arrays of the device that are not C-contiguous: see tsvdi_cuda_copy_out().
 */
#include "runtime/device.h"

enum {
    TILE = 32,       /* rows and columns that a block turns */
    TILE_LINES = 8,  /* rows of a tile that it has at once */
    THREADS = 256,   /* of a block that turns none */
    COPY_MOST = 1024 /* entries of a matrix that is too small for tiles */
};

/* Matrices of any strides. */
struct strided {
    char *data;
    int batch_ndim;
    int64_t shape[TSVD_MAX_DIMS], strides[TSVD_MAX_DIMS]; /* of the batch; strides in bytes */
    int64_t matrices, rows, columns, down, along;         /* down, along: bytes between entries */
};

static __device__ __forceinline__ char *
locate(const struct strided &to, int64_t matrix)
{
    char *at = to.data;

    for (int i = to.batch_ndim - 1; i >= 0; i--) {
        at += matrix % to.shape[i] * to.strides[i];
        matrix /= to.shape[i];
    }
    return at;
}

template <typename number>
static __global__ void
__launch_bounds__(THREADS)
    copy_kernel(const number *from, const __grid_constant__ struct strided to)
{
    const int64_t entries = to.rows * to.columns, step = (int64_t)gridDim.x * THREADS;

    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < to.matrices * entries;
         at += step) {
        const int64_t matrix = at / entries, i = at % entries / to.columns, j = at % to.columns;

        *(number *)(locate(to, matrix) + i * to.down + j * to.along) = from[at];
    }
}

/* Reads rows and writes columns, both coalesced. */
template <typename number>
static __global__ void
__launch_bounds__(TILE *TILE_LINES)
    turn_kernel(const number *from, const __grid_constant__ struct strided to, int64_t down_tiles,
                int64_t across_tiles)
{
    __shared__ number tile[TILE][TILE + 1];
    const int64_t matrix = blockIdx.x / (down_tiles * across_tiles);
    const int64_t top = blockIdx.x / across_tiles % down_tiles * TILE;
    const int64_t left = blockIdx.x % across_tiles * TILE;
    const int x = (int)threadIdx.x;
    char *const at = locate(to, matrix);

    from += matrix * to.rows * to.columns;
    for (int y = (int)threadIdx.y; y < TILE; y += TILE_LINES) {
        if (top + y < to.rows && left + x < to.columns) {
            tile[y][x] = from[(top + y) * to.columns + left + x];
        }
    }
    __syncthreads();
    for (int y = (int)threadIdx.y; y < TILE; y += TILE_LINES) {
        if (top + x < to.rows && left + y < to.columns) {
            *(number *)(at + (top + x) * to.down + (left + y) * to.along) = tile[x][y];
        }
    }
}

template <typename number>
static tsvd_status
copy_out(struct cuda_call *call, const void *d_from, const struct strided &to)
{
    const int64_t down_tiles = (to.rows + TILE - 1) / TILE;
    const int64_t across_tiles = (to.columns + TILE - 1) / TILE;
    const int64_t tiles = to.matrices * down_tiles * across_tiles;
    const int64_t blocks = (to.matrices * to.rows * to.columns + THREADS - 1) / THREADS;
    tsvd_status ret = TSVD_OK;

    if (llabs(to.down) < llabs(to.along) && to.rows * to.columns > COPY_MOST &&
        tiles <= INT32_MAX) {
        turn_kernel<<<(unsigned)tiles, dim3(TILE, TILE_LINES), 0, call->stream>>>(
            (const number *)d_from, to, down_tiles, across_tiles);
    } else if (blocks > 0) {
        copy_kernel<<<(unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), THREADS, 0,
                      call->stream>>>((const number *)d_from, to);
    }
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_copy_out(struct cuda_device *device, const void *d_from, const tsvd_array *to, int own)
{
    const int last = to->ndim - 1;
    struct strided matrices;

    matrices.data = (char *)to->data;
    matrices.batch_ndim = to->ndim - own;
    matrices.matrices = 1;
    for (int i = 0; i < matrices.batch_ndim; i++) {
        matrices.shape[i] = to->shape[i];
        matrices.strides[i] = to->strides[i];
        matrices.matrices *= to->shape[i];
    }
    matrices.rows = own == 2 ? to->shape[last - 1] : 1;
    matrices.down = own == 2 ? to->strides[last - 1] : 0;
    matrices.columns = to->shape[last];
    matrices.along = to->strides[last];
    switch (tsvd_dtype_size(to->dtype)) {
    case sizeof(float):
        return copy_out<float>(&device->call, d_from, matrices);
    case sizeof(double):
        return copy_out<double>(&device->call, d_from, matrices);
    default:
        return copy_out<double2>(&device->call, d_from, matrices);
    }
}
