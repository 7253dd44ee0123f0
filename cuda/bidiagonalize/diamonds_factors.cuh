/*
 * V and V T of a diamond, which all ways of diamonds.cu begin with.  A block makes those of one
 * diamond, in shared memory and in registers.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_FACTORS_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_FACTORS_CUH

#include <algorithm>

#include "bidiagonalize/band.h"

enum {
    DIAMOND_ROWS = BAND + CHASE_SWEEPS, /* the last one is zero: it only makes the number even */
    DIAMOND_NUMBERS = DIAMOND_ROWS * CHASE_SWEEPS,
    V_PITCH = DIAMOND_ROWS - 1, /* numbers between the columns of V in shared memory; odd */
    T_PITCH = CHASE_SWEEPS + 1,
    V_NUMBERS = CHASE_SWEEPS * V_PITCH,
    T_NUMBERS = CHASE_SWEEPS * T_PITCH,
    PREPARE_WARPS = 4,
    PREPARE_THREADS = PREPARE_WARPS * WARP,
    SHARE = CHASE_SWEEPS / PREPARE_WARPS, /* columns of V T of a warp */
    ROWS_OF_LANE = DIAMOND_ROWS / WARP,
    WARPS_MOST = 8 /* of a block that takes step after step */
};

static_assert((int)CHASE_SWEEPS == (int)WARP, "a lane has a row of T");

static int64_t
aligned(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* The device's major compute capability; 0 if it does not have the kernel.  Where the library was
   compiled for older devices than `least`, and the driver compiles it again for this one, the
   kernel is empty. */
static int
capability_for(const struct cuda_device *device, const void *kernel, int least)
{
    struct cudaFuncAttributes attributes;
    int major = 0;

    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->number) !=
            cudaSuccess ||
        cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return attributes.ptxVersion >= least ? major : 0;
}

/* V of a diamond in shared memory, by columns, and T, by rows, first with V^H V above its
   diagonal. */
struct shared_diamond {
    scalar v[V_NUMBERS];
    scalar t[T_NUMBERS];
};

static __device__ __forceinline__ scalar
entry_of(const struct shared_diamond *d, int row, int column)
{
    return row < V_PITCH ? d->v[column * V_PITCH + row] : REAL(0);
}

/* V and the diagonal of T, from a diamond's reflectors. */
static __device__ __forceinline__ void
read_diamond(struct shared_diamond *d, const scalar *reflectors)
{
    for (int i = (int)threadIdx.x; i < V_NUMBERS; i += PREPARE_THREADS) {
        const int column = i / V_PITCH, at = i % V_PITCH - column;

        if (at < 0 || at >= BAND) {
            d->v[i] = 0;
        }
    }
    for (int i = (int)threadIdx.x; i < CHASE_SWEEPS * BAND; i += PREPARE_THREADS) {
        const int column = i / BAND, at = i % BAND;
        const scalar x = reflectors[i];

        d->v[column * V_PITCH + column + at] = at == 0 ? scalar(1) : x;
        if (at == 0) {
            d->t[column * T_PITCH + column] = x;
        }
    }
}

/* V^H V above the diagonal of T, and zeros below.  A lane has a row, a warp SHARE columns. */
static __device__ __forceinline__ void
make_gram(struct shared_diamond *d)
{
    const int i = (int)threadIdx.x % WARP, first = (int)threadIdx.x / WARP * SHARE;
    scalar sum[SHARE];

#pragma unroll
    for (int m = 0; m < SHARE; m++) {
        sum[m] = 0;
    }
#pragma unroll 2
    for (int row = first; row < first + SHARE - 1 + BAND; row++) {
        const scalar entry = n_conj(d->v[i * V_PITCH + row]);

#pragma unroll
        for (int m = 0; m < SHARE; m++) {
            sum[m] = n_fma(entry, d->v[(first + m) * V_PITCH + row], sum[m]);
        }
    }
#pragma unroll
    for (int m = 0; m < SHARE; m++) {
        if (i != first + m) {
            d->t[i * T_PITCH + first + m] = i < first + m ? sum[m] : scalar(0);
        }
    }
}

/* T in the place of V^H V, by one warp.  A lane has a row. */
static __device__ __forceinline__ void
make_triangle(struct shared_diamond *d)
{
    const int i = (int)threadIdx.x;
    const scalar *const row = d->t + i * T_PITCH;

    for (int j = 1; j < CHASE_SWEEPS; j++) {
        scalar sum = 0;

#pragma unroll 4
        for (int l = 0; l < j; l++) {
            sum = n_fma(row[l], d->t[l * T_PITCH + j], sum);
        }
        __syncwarp();
        if (i < j) {
            d->t[i * T_PITCH + j] = -n_mul(d->t[j * T_PITCH + j], sum);
        }
        __syncwarp();
    }
}

/* V T.  A lane has every WARP-th row of it, and a warp SHARE columns. */
static __device__ __forceinline__ void
multiply_triangle(const struct shared_diamond *d, scalar (&vt)[ROWS_OF_LANE][SHARE])
{
    const int lane = (int)threadIdx.x % WARP, first = (int)threadIdx.x / WARP * SHARE;

#pragma unroll
    for (int b = 0; b < ROWS_OF_LANE; b++) {
#pragma unroll
        for (int m = 0; m < SHARE; m++) {
            vt[b][m] = 0;
        }
    }
    for (int l = 0; l < first + SHARE; l++) {
        scalar entry[ROWS_OF_LANE];

#pragma unroll
        for (int b = 0; b < ROWS_OF_LANE; b++) {
            entry[b] = entry_of(d, lane + b * WARP, l);
        }
#pragma unroll
        for (int m = 0; m < SHARE; m++) {
            const scalar factor = d->t[l * T_PITCH + first + m];

#pragma unroll
            for (int b = 0; b < ROWS_OF_LANE; b++) {
                vt[b][m] = n_fma(entry[b], factor, vt[b][m]);
            }
        }
    }
}

static __device__ __forceinline__ void
make_diamond(struct shared_diamond *d, const scalar *reflectors, scalar (&vt)[ROWS_OF_LANE][SHARE])
{
    read_diamond(d, reflectors);
    __syncthreads();
    make_gram(d);
    __syncthreads();
    if (threadIdx.x < WARP) {
        make_triangle(d);
    }
    __syncthreads();
    multiply_triangle(d, vt);
}

#endif
