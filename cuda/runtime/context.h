/*
 * Contexts of CUDA: where work is sent, and whether a device has one.
 *
 * A context costs a device hundreds of megabytes and the process tenths of a second, so questions
 * make none.  cudaSetDevice() makes one on the device that it is given, also if that is only to be
 * the current one again.  So a call pushes the context of its device on the thread's stack and pops
 * it at its end, by the driver: the thread has then the same current device, with a context or
 * without one, as before.
 */
#ifndef TSVDI_CUDA_RUNTIME_CONTEXT_H
#define TSVDI_CUDA_RUNTIME_CONTEXT_H

#include <cuda_runtime.h>
#include <stdint.h>

/* The device's primary context, which libraries share; made if there is none.  The reference is
   kept to the end of the process: the runtime has none of its own to a context that it did not
   make. */
cudaError_t tsvdi_cuda_context_keep(int index, void **context);

/* push() makes a context the thread's current one, pop() makes the former one current again. */
cudaError_t tsvdi_cuda_context_push(void *context);
void tsvdi_cuda_context_pop(void);

/* The device whose memory holds an address. */
cudaError_t tsvdi_cuda_context_of(const void *data, int *device);

/* A part of a device's multiprocessors (a "green context"). */
struct cuda_share {
    void *context;
    cudaStream_t stream; /* its work runs on these alone; NULL: no share could be made */
};

/* Makes a share that leaves out `least` multiprocessors or a few more, with room for the largest
   cluster of blocks if the driver finds such.  None is made if it would have less than three
   quarters of the multiprocessors.  The primary context must be current. */
void tsvdi_cuda_context_share(int index, int least, struct cuda_share *share);
void tsvdi_cuda_context_end_share(struct cuda_share *share);

/* Bytes that a device has free; 0 if it has no context to ask in. */
uint64_t tsvdi_cuda_context_memory_free(int index);

#endif
