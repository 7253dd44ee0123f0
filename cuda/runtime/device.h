/*
 * What a handle holds of a CUDA device: a stream, a memory pool, two pinned buffers and cuBLAS.
 * It also knows where the call under way writes its errors.  Device memory is taken in the order
 * of the stream.  There are no numerics here: the file is compiled once for both precisions.
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

/* A handle's pool keeps this part of the device's memory between two calls, at most: what a matrix
   of order 18,000 takes on a device with 140 GB.  Other libraries cannot have it meanwhile. */
#define KEPT_PART 8

struct cuda_blas; /* blas.cu */
struct cublas;    /* blas.cu */
struct cuda_home; /* memory.h */

/* What a handle holds, as long as it lives; it outlasts the calls. */
struct cuda_call {
    int device;          /* number of the device */
    void *context;       /* its primary context (context.h); NULL: not made yet */
    int current;         /* 1: the context is the calling thread's current one */
    int multiprocessors; /* of the device */
    int shared_most;     /* bytes of shared memory that a block can have */
    cudaStream_t stream; /* the stream of the call under way: the handle's own, or the caller's */
    struct cuda_home *home; /* who has the next two, which results may outlive the handle with */
    cudaStream_t own;       /* the handle's own stream */
    cudaMemPool_t pool;     /* device memory, which a call leaves to the next; NULL: `allocator` */
    tsvd_allocator
        allocator; /* the caller's, of device memory in the pool's place; functions NULL: none */
    const tsvd_allocator *host; /* the handle's, of memory on the host */
    void *pinned[2];            /* buffers for downloads; made by the first call */
    cudaEvent_t copied[2];      /* the buffer is filled */
    char *directories;          /* where cuBLAS is looked for, see host/library.h */
    struct cublas *cublas;      /* its functions; NULL before the first product */
    struct cuda_blas *blas;     /* handles of cuBLAS, a list; NULL before the first product */
    uint64_t wanted;            /* bytes of the request for memory under way; 0: none */
    int entered;                /* 1: the call under way may have work on the stream */
    tsvd_error *error;          /* where the call under way writes its error */
};

/* Runs a CUDA call; on failure writes call, code, text and place into the error and
   leaves through `out:`. */
#define CUDA_TRY(held, expression) CUDA_TRY_AS(held, expression, #expression)

/* After a launch: did it start? */
#define CUDA_LAUNCHED(held) CUDA_TRY_AS(held, cudaGetLastError(), "the launch of a kernel")

#define CUDA_TRY_AS(held, expression, text)                                                        \
    do {                                                                                           \
        cudaError_t code_ = (expression);                                                          \
        if (code_ != cudaSuccess) {                                                                \
            ret = tsvdi_cuda_fail(held, code_, text, __FILE__, __LINE__);                          \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

tsvd_status tsvdi_cuda_fail(struct cuda_call *call, cudaError_t code, const char *text,
                            const char *file, int line);

/* Bytes that the device and its pool have free. */
tsvd_status tsvdi_cuda_memory_free(struct cuda_call *call, uint64_t *bytes);

/* Take and give back device memory, in the order of the stream. */
tsvd_status tsvdi_cuda_alloc(struct cuda_call *call, size_t bytes, void **p);
void tsvdi_cuda_free(struct cuda_call *call, void *p);

/* upload() copies a small array of the host to the device; the array may be changed on return.
   download() copies an array of any size to the host, and returns when it has arrived.  `threads`
   host threads copy it out of pinned memory. */
tsvd_status tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes);
tsvd_status tsvdi_cuda_download(struct cuda_call *call, int threads, void *to, const void *d_from,
                                size_t bytes);

#endif
