/*
 * Copies of arrays between the memories of host and device.  Large results go by
 * the sender instead (sender.h).
 */
#ifndef TSVDI_CUDA_RUNTIME_TRANSFER_H
#define TSVDI_CUDA_RUNTIME_TRANSFER_H

#include "runtime/device.h"
#include "tuning.h"

/* Bytes of the pinned buffer for small results. */
#define PINNED_RESULT_BYTES ((size_t)2 << 20)

/* Most pieces of small results that one launch downloads. */
enum { DOWNLOAD_PIECES = 4 };

/* upload() copies a small array of the host to the device; the array may be changed on return.
   download() copies one, aligned to 4 bytes on the device, to the host, and returns when it has
   arrived.  download_all() copies several, and waits once. */
tsvd_status tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes);
tsvd_status tsvdi_cuda_download(struct cuda_call *call, void *to, const void *d_from, size_t bytes);

struct cuda_piece {
    void *to;
    const void *d_from;
    size_t bytes;
};

tsvd_status tsvdi_cuda_download_all(struct cuda_call *call, const struct cuda_piece *piece,
                                    int count);

/* Fills `bytes` of device memory from a source of bytes on the host, which may be called from
   several threads at once: it writes bytes begin .. begin + count - 1 to `to`.  The bounds are
   multiples of `unit`, a divisor of `bytes`.  Returns when the source is not needed any more. */
typedef void cuda_source(const void *arg, size_t begin, size_t count, char *to);
tsvd_status tsvdi_cuda_upload_blocks(struct cuda_call *call, void *d_to, size_t bytes, size_t unit,
                                     cuda_source *source, const void *arg);

/* make_pinned() makes the two buffers of a pair, unless they are there; drop_pinned() gives all
   pinned buffers back. */
tsvd_status tsvdi_cuda_make_pinned(struct cuda_call *call, void *pinned[2], size_t bytes);
void tsvdi_cuda_drop_pinned(struct cuda_call *call);

#endif
