/*
 * Device memory that outlives the handle which it was taken from: struct tsvd_memory of tsvd.h.
 *
 * It is given back on the stream in whose order it was taken, to the pool that it came from.  Both
 * may be the handle's own.  So they belong to a home, which the handle and each memory of it share,
 * and which ends with the last of them.
 */
#ifndef TSVDI_CUDA_RUNTIME_MEMORY_H
#define TSVDI_CUDA_RUNTIME_MEMORY_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "tsvd/tsvd.h"

struct cuda_home {
    int device;         /* number of the device */
    void *context;      /* its primary context (context.h) */
    cudaStream_t own;   /* the handle's own stream; NULL: not made yet */
    cudaMemPool_t pool; /* NULL: not made yet, or the caller's allocator is used */
    uint64_t kept;      /* bytes that the pool may hold between two calls, besides results */
    uint64_t results;   /* bytes of the pool in memories, atomic */
    int lowered;        /* atomic; 1: the pool gives back what is beyond its bound, 0: keeps all */
    int owners;         /* the handle and its memories, atomic */
    unsigned forks;     /* tsvdi_host_forks() where CUDA was initialised: a child has no CUDA */
};

/* A home with one owner. */
tsvd_status tsvdi_cuda_home_make(int device, void *context, tsvd_error *error,
                                 struct cuda_home **made);

/* Takes one owner away.  The context of the device must be the current one, unless the process was
   forked. */
void tsvdi_cuda_home_leave(struct cuda_home *home);

/* Lets the pool keep all that it has, as a call wants it. */
void tsvdi_cuda_home_keep_all(struct cuda_home *home);

/* The bytes that the pool may hold now. */
uint64_t tsvdi_cuda_home_bound(const struct cuda_home *home);

#endif
