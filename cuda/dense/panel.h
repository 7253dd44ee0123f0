/*
 * What the kernels share that make reflectors: groups of blocks that work on a matrix together,
 * sums over them in a fixed order, and the numbers of a reflector.
 *
 * A kernel has several groups of equally many blocks, all resident at once (cooperative launch).  A
 * block waits only for others of its group, which are under way too.
 */
#ifndef TSVDI_CUDA_DENSE_PANEL_H
#define TSVDI_CUDA_DENSE_PANEL_H

#include "kernels.h"

/* A column, or row, whose entries but the first have a smaller sum of squares counts as one with
   zeros there.  The largest entry of a matrix is 1 or more, so that this changes it by far less
   than rounding does; and above it no sum of squares has lost anything to underflow. */
#if TSVD_SINGLE
#define DENSE_NOTHING REAL(0x1p-100)
#else
#define DENSE_NOTHING REAL(0x1p-960)
#endif

/* H = I - tau v v^T with H a = beta e_1, for a = (first, rest): v = (1, inverse rest). */
struct reflector {
    real beta, tau, inverse;
};

/* From the first entry and the sum of the squares of the others. */
static __device__ __forceinline__ struct reflector
reflector_of(real first, real squares)
{
    struct reflector h = {first, 0, 0};

    if (squares >= DENSE_NOTHING) {
        h.beta = -r_copysign(r_sqrt(r_fma(first, first, squares)), first);
        h.tau = (h.beta - first) / h.beta;
        h.inverse = 1 / (first - h.beta);
    }
    return h;
}

/* Blocks that work together, as one of them sees it. */
struct block_group {
    int blocks, index; /* how many, and which of them this one is */
    unsigned *arrived; /* how many have arrived at all barriers so far */
    unsigned awaited;  /* how many will have at the last one */
};

static __device__ __forceinline__ unsigned
load_acquire(const unsigned *p)
{
    unsigned x;

    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

/* Waits for all blocks of the group.  What a thread of one wrote before is seen by all after. */
static __device__ __forceinline__ void
group_barrier(struct block_group *group)
{
    __syncthreads();
    if (group->blocks == 1) {
        return;
    }
    group->awaited += (unsigned)group->blocks;
    if (threadIdx.x == 0) {
        __threadfence();
        (void)atomicAdd(group->arrived, 1u);
        while (load_acquire(group->arrived) < group->awaited) {
        }
        __threadfence();
    }
    __syncthreads();
}

/* The sum over a warp's lanes, in all of them. */
static __device__ __forceinline__ real
warp_sum(real x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    }
    return x;
}

/* sum[i] = sum over the blocks first, first + 1, ... (`active` of them, around the group) of
   part[block][i], for i < width <= blockDim.x.  All threads take part; scratch has blockDim.x
   numbers. */
static __device__ __forceinline__ void
sum_parts(const real *part, int width, int blocks, int first, int active, real *scratch, real *sum)
{
    const int t = (int)threadIdx.x, shares = (int)blockDim.x / width, share = t / width;
    real x = 0;

    if (share < shares) {
        for (int i = share; i < active; i += shares) {
            x += part[(int64_t)((first + i) % blocks) * width + t % width];
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
   copies_wait() waits until all but the latest `pending` < 4 batches of this thread are there. */
static __device__ __forceinline__ void
copy_start(real *to, const real *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from),
                 "n"((int)sizeof(real))
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
    default:
        asm volatile("cp.async.wait_group 3;" ::: "memory");
    }
#else
    (void)pending;
#endif
}

#endif
