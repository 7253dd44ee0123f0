/*
 * What a handle holds of a CUDA device: streams, a memory pool, pinned buffers and cuBLAS.
 * And the call under way on it, with its stream and its error.  Device memory is taken in the order
 * of the stream.  There are no numerics here: the file is compiled once for both precisions.
 */
#ifndef TSVDI_CUDA_RUNTIME_DEVICE_H
#define TSVDI_CUDA_RUNTIME_DEVICE_H

#include <cuda_runtime.h>

#include "runtime/context.h"
#include "tsvd/tsvd.h"

extern "C" {
#include "backend/cuda_handle.h"
#include "host/host.h"
}

/* A handle's pool keeps this part of the device's memory between two calls, at most: what a matrix
   of order 18,000 takes on a device with 140 GB.  Other libraries cannot have it meanwhile. */
#define KEPT_PART 8

struct cuda_blas;   /* blas.cu */
struct cublas;      /* blas.cu */
struct cuda_home;   /* memory.h */
struct cuda_sender; /* sender.cu */

enum { MARKS = 5 };

struct cuda_device;

/* The call under way on a device. */
struct cuda_call {
    struct cuda_device *device; /* where it computes */
    cudaStream_t stream;        /* the device's own stream, or the caller's */
    int threads;                /* host threads that it was given; 0: the default */
    int current;                /* 1: the device's context is the calling thread's current one */
    int entered;                /* 1: it may have work on the stream */
    struct cuda_sender *sender; /* NULL: there is none */
    uint64_t wanted;            /* bytes of the request for memory under way; 0: none */
    tsvd_error *error;          /* where it writes its error */
};

/* A device of a handle, from tsvd_create() to tsvd_destroy(): it outlasts the calls. */
struct cuda_device {
    struct cuda_call call; /* the one under way, and the stream of later ones */
    int number;            /* as CUDA counts them */
    void *context;         /* its primary context (context.h); NULL: not made yet */
    int multiprocessors;
    int shared_most;         /* bytes of shared memory that a block can have */
    int cluster_most;        /* blocks of a cluster; 0: not asked yet; below 0: it has none */
    struct cuda_home *home;  /* owner of `own` and `pool`; results may keep it after the handle */
    cudaStream_t own_stream; /* the handle's own stream */
    cudaMemPool_t pool;      /* device memory, which a call leaves to the next; NULL: `allocator` */
    tsvd_allocator
        allocator; /* the caller's, of device memory in the pool's place; functions NULL: none */
    const tsvd_allocator *host; /* the handle's, of memory on the host */
    void *pinned_results;       /* pinned, for small results; made by the first call */
    void *pinned[2];            /* the sender's buffers (sender.h), made when it first starts */
    cudaEvent_t copied[2];      /* the buffer is filled */
    void *staging[2];           /* pinned buffers for large input, made when it first comes */
    cudaEvent_t staged[2];      /* the buffer is read */
    cudaStream_t sending;       /* the sender's copies; made when it first starts */
    cudaStream_t urgent;        /* of high priority; it and `mark` are made when first needed */
    cudaEvent_t mark[MARKS];    /* for the order of call.stream, `urgent` and that of `share` */
    struct cuda_share share;    /* most multiprocessors, so that urgent work finds some free */
    int share_asked;            /* 1: `share` is made, if it can be */
    char *directories;          /* where to look for cuBLAS, see host/library.h */
    struct cublas *cublas;      /* its functions; NULL before the first product */
    struct cuda_blas *blas;     /* handles of cuBLAS, a list; NULL before the first product */
};

/* Runs a CUDA call; on failure writes call, code, text and place into the error and
   leaves through `out:`. */
#define CUDA_TRY(owner, expression) CUDA_TRY_AS(owner, expression, #expression)

/* After a launch: did it start? */
#define CUDA_LAUNCHED(owner) CUDA_TRY_AS(owner, cudaGetLastError(), "the launch of a kernel")

#define CUDA_TRY_AS(owner, expression, text)                                                       \
    do {                                                                                           \
        cudaError_t code_ = (expression);                                                          \
        if (code_ != cudaSuccess) {                                                                \
            ret = tsvdi_cuda_fail(owner, code_, text, __FILE__, __LINE__);                         \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

tsvd_status tsvdi_cuda_fail(struct cuda_call *call, cudaError_t code, const char *text,
                            const char *file, int line);

/* Bytes that the device and its pool have free. */
tsvd_status tsvdi_cuda_memory_free(struct cuda_call *call, uint64_t *bytes);

/* *bytes: how many bytes work may take that could use `wanted`: those if they are few or the pool
   has them, else half of what is free.  To ask what is free takes as long as a small call. */
tsvd_status tsvdi_cuda_memory_for(struct cuda_call *call, uint64_t wanted, uint64_t *bytes);

/* Make call->device->mark, and with it call->device->urgent. */
tsvd_status tsvdi_cuda_make_marks(struct cuda_call *call);
tsvd_status tsvdi_cuda_make_urgent(struct cuda_call *call);

/* The stream of call->device->share, or call->stream if no share can be made.  call->device->mark
   must be made. */
cudaStream_t tsvdi_cuda_shared_stream(struct cuda_call *call);

/* Take and give back device memory, in the order of the stream. */
tsvd_status tsvdi_cuda_alloc(struct cuda_call *call, size_t bytes, void **p);
void tsvdi_cuda_free(struct cuda_call *call, void *d_p);

#endif
