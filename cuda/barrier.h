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

/* Makes a barrier with one arrival a phase: barrier_expect() by one thread.  A fence must follow
   before other threads, other blocks or copies use it. */
static __device__ __forceinline__ void
barrier_make(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier))
                 : "memory");
}

/* One thread arrives, and says how many bytes are to arrive in this phase. */
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
