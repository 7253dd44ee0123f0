/*
 * Barriers in shared memory that count the bytes of what is copied or sent there; from Hopper on.
 */
#ifndef TSVDI_CUDA_BARRIER_H
#define TSVDI_CUDA_BARRIER_H

#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

static __device__ __forceinline__ unsigned
shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Makes a barrier for which one thread tells the bytes.  A fence must follow, for those that are to
   see it. */
static __device__ __forceinline__ void
barrier_make(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier))
                 : "memory");
}

/* Says how many bytes are to arrive, by one thread. */
static __device__ __forceinline__ void
barrier_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

#endif

#endif
