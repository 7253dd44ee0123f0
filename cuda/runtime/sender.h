/*
 * Asynchronous transfer of large results to the host: a thread of its own, the sender, copies them
 * while the device computes what follows.  While it waits it touches the host pages of the results.
 * Its copies have a stream of their own.  It starts when it is first needed, and ends with the
 * call.
 */
#ifndef TSVDI_SENDER_H
#define TSVDI_SENDER_H

#include "runtime/device.h"

/* Bytes of a pinned buffer of the sender: long enough to reach the rate of the bus. */
#define PINNED_BYTES ((size_t)32 << 20)

/* Bytes on the host that the sender takes from the handle's allocator, at most. */
#define SENDER_BYTES ((size_t)16 << 10)

/* Results of up to this many bytes are not sent: copying them takes less than starting a thread. */
#define SENT_BYTES ((size_t)2 << 20)

/* Contiguous bytes on the device that become rows on the host.  If there are several rows, each has
   at most PINNED_BYTES. */
struct cuda_parcel {
    char *to;
    const char *d_from;
    size_t width, rows; /* bytes of a row, and how many rows */
    size_t to_pitch;    /* bytes between rows on the host; not read if there is one row */
};

/* send() has a parcel copied to the host when the device has done what is on the stream so far, and
   returns at once.  arrive() waits until all that was sent has arrived.  expect() says that results
   will be sent to these bytes of the host.  A parcel of one row for pinned memory is written there
   by the device's copy engine itself; for several rows that would take longer than the way through
   our own pinned buffers does. */
tsvd_status tsvdi_cuda_send(struct cuda_call *call, struct cuda_parcel parcel);
tsvd_status tsvdi_cuda_expect(struct cuda_call *call, void *to, size_t bytes);
tsvd_status tsvdi_cuda_arrive(struct cuda_call *call);

/* Gives device memory back when what was sent so far has left it, and the device has done what is
   on the stream so far.  A failure is returned by arrive(). */
void tsvdi_cuda_free_sent(struct cuda_call *call, void *p);

/* Waits until the sender has done the releases that were given to it before the last call of this
   function: so that no more than two chunks of a batch are in flight. */
void tsvdi_cuda_follow(struct cuda_call *call);

/* Waits until nothing is in flight: all memory that was given back is free then. */
void tsvdi_cuda_drain(struct cuda_call *call);

/* Ends the sender, if there is one, also after a failure: what it has not sent it drops. */
void tsvdi_cuda_end_sender(struct cuda_call *call);

#endif
