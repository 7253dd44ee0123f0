/*
 * What one call of tsvd holds of a CUDA device: a stream, two pinned buffers, and the
 * place where errors are written.  Device memory comes from the device's pool, in
 * the order of the stream.  Knows no numerics; compiled once for both precisions.
 */
#ifndef TSVDI_DEVICE_H
#define TSVDI_DEVICE_H

#include <cuda_runtime.h>

#include "tsvd/tsvd.h"

extern "C" {
#include "host/host.h"
}

/* Bytes of a pinned buffer: long enough to reach the rate of the bus. */
#define PINNED_BYTES ((size_t)32 << 20)

struct cuda_blas; /* blas.cu */

struct cuda_call {
    int device;
    int before; /* the thread's current device, which close() restores */
    int multiprocessors;
    int shared_most; /* bytes of shared memory that a block can have */
    cudaStream_t stream;
    void *pinned[2];
    cudaEvent_t copied[2];
    struct cuda_blas *blas; /* handles of cuBLAS, a list; NULL before the first product */
    uint64_t wanted;        /* bytes of the latest request for memory */
    tsvd_error *error;
};

/* Runs a CUDA call; on failure writes call, code, text and place into the error and
   leaves through `out:`. */
#define CUDA_TRY(held, expression)                                                                 \
    do {                                                                                           \
        cudaError_t code_ = (expression);                                                          \
        if (code_ != cudaSuccess) {                                                                \
            ret = tsvdi_cuda_fail(held, code_, #expression, __FILE_NAME__, __LINE__);              \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* After a launch: did it start? */
#define CUDA_LAUNCHED(held) CUDA_TRY(held, cudaGetLastError())

tsvd_status tsvdi_cuda_fail(struct cuda_call *call, cudaError_t code, const char *text,
                            const char *file, int line);

/* close() is due also after open() failed. */
tsvd_status tsvdi_cuda_open(int device, tsvd_error *error, struct cuda_call *call);
void tsvdi_cuda_close(struct cuda_call *call);

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
