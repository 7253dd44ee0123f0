/*
 * The way of arrays between the memories of host and device.
 *
 * Small arrays go at once.  Large results are sent: a thread of its own, the sender, brings them to
 * the host while the device computes what follows, and while it waits it touches the pages that
 * they will lie in.  Its copies have a stream of their own.  It lives as long as a call.
 */
#ifndef TSVDI_TRANSFER_H
#define TSVDI_TRANSFER_H

#include "runtime/device.h"

/* Bytes of a pinned buffer of the sender: long enough to reach the rate of the bus. */
#define PINNED_BYTES ((size_t)32 << 20)

/* Bytes of a pinned buffer for large input. */
#define STAGE_BYTES ((size_t)8 << 20)

/* Results up to so many bytes are not sent: a thread takes longer to start than their way does. */
#define LANDING_BYTES ((size_t)2 << 20)

/* upload() copies a small array of the host to the device; the array may be changed on return.
   land() copies one, aligned to 4 bytes on the device, to the host, and returns when it has
   arrived. */
tsvd_status tsvdi_cuda_upload(struct cuda_call *call, void *d_to, const void *from, size_t bytes);
tsvd_status tsvdi_cuda_land(struct cuda_call *call, void *to, const void *d_from, size_t bytes);

/* Fills `bytes` of device memory from a source of bytes on the host, which may be called from
   several threads at once: it writes bytes begin .. begin + count - 1 to `to`.  The bounds are
   multiples of `unit`, a divisor of `bytes`.  Returns when the source is not needed any more. */
typedef void cuda_source(const void *arg, size_t begin, size_t count, char *to);
tsvd_status tsvdi_cuda_stage(struct cuda_call *call, void *d_to, size_t bytes, size_t unit,
                             cuda_source *source, const void *arg);

/* Bytes that lie side by side on the device, and rows that they become on the host. */
struct cuda_parcel {
    char *to;
    const char *d_from;
    size_t width, rows; /* bytes of a row, and how many rows */
    size_t to_pitch;    /* bytes between rows on the host; not read if there is one row */
};

/* send() has a parcel brought to the host when the device has done what is on the stream so far,
   and returns at once.  arrive() waits until all that was sent has arrived.  expect() says that
   such bytes of the host will be sent to.  A parcel of one row in pinned memory is written by
   the device's copy engine itself; with several rows that takes it longer than a way through our
   own pinned memory does. */
tsvd_status tsvdi_cuda_send(struct cuda_call *call, struct cuda_parcel parcel);
tsvd_status tsvdi_cuda_expect(struct cuda_call *call, void *to, size_t bytes);
tsvd_status tsvdi_cuda_arrive(struct cuda_call *call);

/* Gives device memory back when what was sent so far has left it. */
void tsvdi_cuda_free_sent(struct cuda_call *call, void *p);

/* Waits until what had been sent at the last call of this function has arrived: so that no more
   than two chunks of a batch are in memory. */
void tsvdi_cuda_follow(struct cuda_call *call);

/* Ends the sender, if there is one, also after a failure: what it has not sent it drops. */
void tsvdi_cuda_end_sender(struct cuda_call *call);

/* Gives the pinned buffers back. */
void tsvdi_cuda_drop_pinned(struct cuda_call *call);

#endif
