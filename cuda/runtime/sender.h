/*
 * Asynchronous transfer of large results to the host: a thread of its own, the sender, copies them
 * while the device computes what follows.  While it waits it touches the host pages of the results.
 * Its copies have a stream of their own.  It starts when it is first needed, and ends with the
 * call.
 */
#ifndef TSVDI_CUDA_RUNTIME_SENDER_H
#define TSVDI_CUDA_RUNTIME_SENDER_H

#include "runtime/device.h"
#include "tuning.h"

/* Bytes on the host that the sender takes from the handle's allocator, at most. */
#define SENDER_BYTES ((size_t)16 << 10)

/* Contiguous bytes on the device that become rows on the host.  If there are several rows, each has
   at most PINNED_BYTES. */
struct cuda_transfer {
    char *to;
    const char *d_from;
    size_t width, rows; /* bytes of a row, and how many rows */
    size_t to_pitch;    /* bytes between rows on the host; not read if there is one row */
};

/* download_async() has a transfer made when the device has done what is on the stream so far, and
   returns at once.  finish_downloads() waits until all of them have arrived.  prefault() says that
   results will go to these bytes of the host, whose pages the sender touches meanwhile.  A transfer
   of one row to pinned memory is made by the device's copy engine itself; for several rows that
   would take longer than the way through our own pinned buffers does. */
tsvd_status tsvdi_cuda_download_async(struct cuda_call *call, struct cuda_transfer transfer);
tsvd_status tsvdi_cuda_prefault(struct cuda_call *call, void *to, size_t bytes);
tsvd_status tsvdi_cuda_finish_downloads(struct cuda_call *call);

/* Gives device memory back when all downloads so far have left it, and the device has done what is
   on the stream so far.  A failure is returned by finish_downloads(). */
void tsvdi_cuda_free_after_downloads(struct cuda_call *call, void *d_p);

/* Waits until the sender has done the releases that were given to it before the last call of this
   function: so that no more than two chunks of a batch are in flight. */
void tsvdi_cuda_wait_releases(struct cuda_call *call);

/* Waits until nothing is in flight: all memory that was given back is free then. */
void tsvdi_cuda_drain(struct cuda_call *call);

/* Ends the sender, if there is one, also after a failure: it drops what it has not downloaded. */
void tsvdi_cuda_end_sender(struct cuda_call *call);

#endif
