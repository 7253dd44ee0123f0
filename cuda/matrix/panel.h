/*
 * What the kernels that make reflectors share: groups of blocks that work on a matrix together,
 * sums over them in a fixed order, and the scalars of a reflector.
 *
 * A kernel has several groups of equally many blocks, all resident at once (cooperative launch).  A
 * block waits only for others of its group, which are resident too.
 */
#ifndef TSVDI_CUDA_MATRIX_PANEL_H
#define TSVDI_CUDA_MATRIX_PANEL_H

#include "kernels.h"
#include "math/reflector.h"

/* A column, or row, whose entries but the first have a smaller sum of squares counts as one with
   zeros there, and so does an imaginary part of the first, whose square counts with them.  The
   largest entry of a matrix is 1 or more, so that this changes it by far less than rounding does;
   and above it no sum of squares has lost anything to underflow, so that reflectors need no
   scaling: v = (1, scale x). */
#if TSVD_SINGLE
#define DENSE_NOTHING REAL(0x1p-100)
#else
#define DENSE_NOTHING REAL(0x1p-960)
#endif

/* The reflector of a vector, from its first entry and the sum of the squares of the others. */
static __device__ __forceinline__ struct reflector
reflector_of(scalar first, real squares)
{
#if TSVD_COMPLEX
    return n_imag(first) * n_imag(first) + squares >= DENSE_NOTHING
               ? reflector_make(first, squares, 1)
               : reflector_make(n_real(first), 0, 1);
#else
    return reflector_make(first, squares >= DENSE_NOTHING ? squares : REAL(0), 1);
#endif
}

/* Blocks that work together, as one of them sees it. */
struct block_group {
    int blocks, index; /* how many, and which of them this one is */
    unsigned *arrived; /* counts the arrivals at all barriers so far */
    unsigned awaited;  /* its value once all have come to the last barrier */
};

static __device__ __forceinline__ void
add_release(unsigned *p)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}

static __device__ __forceinline__ unsigned
load_acquire(const unsigned *p)
{
    unsigned x;

    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

/* Says that this block has come to the next barrier.  What its threads wrote before is seen by all
   that have waited there. */
static __device__ __forceinline__ void
group_arrive(struct block_group *group)
{
    group->awaited += (unsigned)group->blocks;
    __syncthreads();
    if (group->blocks > 1 && threadIdx.x == 0) {
        add_release(group->arrived);
    }
}

/* Waits for all blocks of the group to arrive. */
static __device__ __forceinline__ void
group_wait(const struct block_group *group)
{
    if (group->blocks > 1) {
        if (threadIdx.x == 0) {
            while (load_acquire(group->arrived) < group->awaited) {
            }
        }
        __syncthreads();
    }
}

static __device__ __forceinline__ void
group_barrier(struct block_group *group)
{
    group_arrive(group);
    group_wait(group);
}

/* The sums over a warp's lanes of N numbers, a power of two; changes x.  A lane gets the number
   lane / (WARP / N).  Each exchange halves how many numbers a lane adds up, so that N sums take
   little more than one. */
template <int N>
static __device__ __forceinline__ scalar
warp_sums(scalar (&x)[N])
{
    const int lane = (int)threadIdx.x % WARP;

#pragma unroll
    for (int half = N / 2; half > 0; half /= 2) {
        const int lanes = WARP * half / N;

#pragma unroll
        for (int k = 0; k < half; k++) {
            const bool upper = (lane & lanes) != 0;
            const scalar mine = upper ? x[k + half] : x[k], other = upper ? x[k] : x[k + half];

            x[k] = mine + __shfl_xor_sync(0xffffffffu, other, lanes);
        }
    }
#pragma unroll
    for (int lanes = WARP / N / 2; lanes > 0; lanes /= 2) {
        x[0] += __shfl_xor_sync(0xffffffffu, x[0], lanes);
    }
    return x[0];
}

/* sum[i] = sum over the blocks of part[block][i], for i < width <= blockDim.x.  All threads take
   part; scratch has blockDim.x numbers. */
static __device__ __forceinline__ void
sum_parts(const scalar *part, int width, int blocks, scalar *scratch, scalar *sum)
{
    const int t = (int)threadIdx.x, shares = (int)blockDim.x / width, share = t / width;
    scalar x = 0;

    if (share < shares) {
#pragma unroll 8
        for (int block = share; block < blocks; block += shares) {
            x += part[block * width + t % width];
        }
        scratch[t] = x;
    }
    __syncthreads();
    if (t < width) {
        x = 0;
        for (int i = 0; i < shares; i++) {
            x += scratch[i * width + t];
        }
        sum[t] = x;
    }
    __syncthreads();
}

/* Starts a copy of one number to shared memory; copies_commit() ends a batch of copies, and
   copies_wait() waits until all but the latest `pending` < 6 batches of this thread are there. */
static __device__ __forceinline__ void
copy_start(scalar *to, const scalar *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from),
                 "n"((int)sizeof(scalar))
                 : "memory");
#else
    *to = *from;
#endif
}

static __device__ __forceinline__ void
copies_commit(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

static __device__ __forceinline__ void
copies_wait(int pending)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    switch (pending) {
    case 0:
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        break;
    case 1:
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        break;
    case 2:
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        break;
    case 3:
        asm volatile("cp.async.wait_group 3;" ::: "memory");
        break;
    case 4:
        asm volatile("cp.async.wait_group 4;" ::: "memory");
        break;
    default:
        asm volatile("cp.async.wait_group 5;" ::: "memory");
    }
#else
    (void)pending;
#endif
}

#endif
