/*
 * Diamonds on vectors by strided products, a wave of them at a time: the way `products` of
 * diamonds.cu.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_WAVES_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_WAVES_CUH

#include "bidiagonalize/diamonds_factors.cuh"

/* Bytes of V and V T of the waves that are prepared together, but for what a wave takes at least;
   and what the level-2 cache keeps. */
#define FACTOR_BYTES (INT64_C(1) << 29)
#define CACHE_BYTES (INT64_C(32) << 20)

/* Columns of a product, if there are so many.  Fewer take longer, even where their part of the slab
   would stay in the cache from one wave to the next: on an H200, for n = 4096 in float32, 512
   take 39.7 ms, 1024 19.3 ms and 2048 13.5 ms. */
enum { PIECE_LEAST = 4096 };

/* On an H200: microseconds of a product without its flops, and flops of products in a
   microsecond. */
#define PRODUCT_TIME 5.0
#define PRODUCT_RATE (TSVD_SINGLE && !TSVD_COMPLEX ? 1.5e7 : 3e7)

static int64_t
waves_of(int64_t n)
{
    return chase_groups(n, 0) + chase_steps(n) - 1;
}

/* k - g of a wave. */
static __host__ __device__ __forceinline__ int64_t
wave_number(int64_t n, int adjoint, int64_t wave)
{
    return adjoint ? chase_steps(n) - 1 - wave : wave + 1 - chase_groups(n, 0);
}

/* The first k of a wave, and the diamonds that it has. */
static __host__ __device__ __forceinline__ int64_t
wave_begin(int64_t number)
{
    return number > 0 ? number : 0;
}

static __host__ __device__ __forceinline__ int64_t
wave_count(int64_t n, int64_t number)
{
    return (n - 1 + CHASE_SWEEPS * number + DIAMOND_ROWS - 1) / DIAMOND_ROWS - wave_begin(number);
}

/* Diamonds of the largest wave. */
static int64_t
wave_most(int64_t n)
{
    return wave_count(n, 0);
}

/* Waves that are prepared together. */
static int64_t
waves_at_once(int64_t n)
{
    const int64_t each = 2 * wave_most(n) * DIAMOND_NUMBERS * (int64_t)sizeof(scalar);

    return std::min<int64_t>(std::min<int64_t>(waves_of(n), GRID_MOST),
                             std::max<int64_t>(FACTOR_BYTES / each, 1));
}

/* Columns of a product: as many as the cache keeps, and PIECE_LEAST at least. */
static int64_t
piece_of(int64_t n)
{
    const int64_t columns = CACHE_BYTES / (n * (int64_t)sizeof(scalar));

    return std::max<int64_t>(columns / PIECE_LEAST, 1) * PIECE_LEAST;
}

/* Microseconds of all waves on so many vectors. */
static double
waves_time(int64_t n, int64_t vectors)
{
    const double diamonds = (double)diamonds_before(n, chase_steps(n));

    return (double)waves_of(n) * 2 * PRODUCT_TIME +
           diamonds * (double)vectors * (4 * DIAMOND_NUMBERS * N_PARTS * N_PARTS) / PRODUCT_RATE;
}

/* V and V T of the diamonds of gridDim.y waves, from `first` on: [wave][gridDim.x][DIAMOND_ROWS]
   [CHASE_SWEEPS]. */
static __global__ void
__launch_bounds__(PREPARE_THREADS) wave_kernel(int64_t n, const scalar *reflectors, int adjoint,
                                               int64_t first, scalar *v, scalar *w)
{
    extern __shared__ __align__(16) char shared[];
    struct shared_diamond *const d = (struct shared_diamond *)shared;
    const int lane = (int)threadIdx.x % WARP, column = (int)threadIdx.x / WARP * SHARE;
    const int64_t number = wave_number(n, adjoint, first + blockIdx.y);
    const int64_t k = wave_begin(number) + blockIdx.x;
    const int64_t place = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    scalar vt[ROWS_OF_LANE][SHARE];

    if (blockIdx.x >= wave_count(n, number)) {
        return;
    }
    make_diamond(d, reflectors + (diamonds_before(n, k) + k - number) * CHASE_SWEEPS * BAND, vt);
    v += place * DIAMOND_NUMBERS;
    w += place * DIAMOND_NUMBERS;
    for (int i = (int)threadIdx.x; i < DIAMOND_NUMBERS; i += PREPARE_THREADS) {
        v[i] = entry_of(d, i / CHASE_SWEEPS, i % CHASE_SWEEPS);
    }
#pragma unroll
    for (int b = 0; b < ROWS_OF_LANE; b++) {
#pragma unroll
        for (int m = 0; m < SHARE; m++) {
            w[(lane + b * WARP) * CHASE_SWEEPS + column + m] = vt[b][m];
        }
    }
}

/* V and V T of some waves, and V^H X of a wave, or (V T)^H X. */
struct wave_arrays {
    scalar *v, *w, *y;
};

/* A wave on `columns` columns of the slab, from d_x on.  d_v and d_w: its V and V T. */
static tsvd_status
apply_wave(struct cuda_call *call, int64_t n, int64_t number, int adjoint, const scalar *d_v,
           const scalar *d_w, scalar *d_x, int64_t ld, int64_t columns, scalar *d_y)
{
    const int64_t first =
        CHASE_SWEEPS * (wave_begin(number) - number) + 1 + BAND * wave_begin(number);
    const int64_t count = wave_count(n, number);
    const struct cuda_factor left = {adjoint ? d_w : d_v, CHASE_SWEEPS, DIAMOND_NUMBERS,
                                     TSVDI_ADJOINT};
    const struct cuda_factor right = {adjoint ? d_v : d_w, CHASE_SWEEPS, DIAMOND_NUMBERS,
                                      TSVDI_AS_STORED};
    const struct cuda_factor x = {d_x + first * ld, ld, DIAMOND_ROWS * ld, TSVDI_AS_STORED};
    const struct cuda_factor y = {d_y, columns, CHASE_SWEEPS * columns, TSVDI_AS_STORED};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, CHASE_SWEEPS, columns, DIAMOND_ROWS, 1,
                                     left, x, 0, d_y, columns, y.stride, count));
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, DIAMOND_ROWS, columns, CHASE_SWEEPS, -1,
                                     right, y, 1, d_x + first * ld, ld, x.stride, count));
out:
    return ret;
}

/* All waves on the slab, by products. */
static tsvd_status
apply_waves(struct tsvd_context *ctx, int64_t n, const scalar *d_reflectors, int adjoint,
            scalar *d_slab, int64_t columns, int64_t piece, const struct wave_arrays *arrays)
{
    const int64_t waves = waves_of(n), places = wave_most(n), at_once = waves_at_once(n);
    const int shared = (int)sizeof(struct shared_diamond);
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaFuncSetAttribute(wave_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        shared));
    for (int64_t begin = 0; begin < waves; begin += at_once) {
        const int64_t count = std::min<int64_t>(at_once, waves - begin);

        wave_kernel<<<dim3((unsigned)places, (unsigned)count), PREPARE_THREADS, shared,
                      call->stream>>>(n, d_reflectors, adjoint, begin, arrays->v, arrays->w);
        CUDA_LAUNCHED(call);
        for (int64_t column = 0; column < columns; column += piece) {
            for (int64_t i = 0; i < count; i++) {
                const int64_t at = i * places * DIAMOND_NUMBERS;

                TSVD_TRY(apply_wave(call, n, wave_number(n, adjoint, begin + i), adjoint,
                                    arrays->v + at, arrays->w + at, d_slab + column, columns,
                                    std::min<int64_t>(piece, columns - column), arrays->y));
                TSVD_TRY(tsvdi_check(ctx, 0));
            }
        }
    }
out:
    return ret;
}

#endif
