/*
 * What a handle holds of a CUDA device: a stream, a memory pool, two pinned buffers, cuBLAS; and
 * the place where a call writes its errors.  Device memory is taken in the order of the stream.
 * Knows no numerics; compiled once for both precisions.
 */
#ifndef TSVDI_DEVICE_H
#define TSVDI_DEVICE_H

#include <cuda_runtime.h>

#include "tsvd/tsvd.h"

extern "C" {
#include "backend/cuda_handle.h"
#include "host/host.h"
}

/* Bytes of a pinned buffer: long enough to reach the rate of the bus. */
#define PINNED_BYTES ((size_t)32 << 20)

struct cuda_blas; /* blas.cu */
struct cublas;    /* blas.cu */

struct cuda_call {
    int device;
    int before; /* the thread's current device, which leave() restores */
    int multiprocessors;
    int shared_most;     /* bytes of shared memory that a block can have */
    cudaStream_t stream; /* of the call under way: the handle's own, or the caller's */
    cudaStream_t own;
    cudaMemPool_t pool; /* of device memory, which calls leave to the next */
    tsvd_allocator
        allocator; /* of device memory in the pool's place; its functions are NULL: none */
    const tsvd_allocator *host;
    void *pinned[2]; /* made by the first call */
    cudaEvent_t copied[2];
    char *directories;      /* where cuBLAS is looked for, see host/library.h */
    struct cublas *cublas;  /* its functions; NULL before the first product */
    struct cuda_blas *blas; /* handles of cuBLAS, a list; NULL before the first product */
    uint64_t wanted;        /* bytes of the latest request for memory */
    int entered;            /* 1: the call under way may have work on the stream */
    tsvd_error *error;
};

/* Runs a CUDA call; on failure writes call, code, text and place into the error and
   leaves through `out:`. */
#define CUDA_TRY(held, expression)                                                                 \
    do {                                                                                           \
        cudaError_t code_ = (expression);                                                          \
        if (code_ != cudaSuccess) {                                                                \
            ret = tsvdi_cuda_fail(held, code_, #expression, __FILE__, __LINE__);                   \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* After a launch: did it start? */
#define CUDA_LAUNCHED(held) CUDA_TRY(held, cudaGetLastError())

tsvd_status tsvdi_cuda_fail(struct cuda_call *call, cudaError_t code, const char *text,
                            const char *file, int line);

/* Bytes that the device and its pool have free. */
tsvd_status tsvdi_cuda_memory_free(struct cuda_call *call, uint64_t *bytes);

/* Device memory, in the order of the stream. */
tsvd_status tsvdi_cuda_alloc(struct cuda_call *call, size_t bytes, void **p);
void tsvdi_cuda_free(struct cuda_call *call, void *p);

/* Small host arrays to the device; download() any size from it, with `threads` host threads
   for the copy out of pinned memory; it returns when the data have arrived. */
tsvd_status tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes);
tsvd_status tsvdi_cuda_download(struct cuda_call *call, int threads, void *to, const void *d_from,
                                size_t bytes);

#endif
