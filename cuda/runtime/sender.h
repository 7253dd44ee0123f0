/*
 * Large results on their way to the host: a thread of its own, the sender, brings them there while
 * the device computes what follows.  While it waits it touches the pages that they will lie in. Its
 * copies have a stream of their own.  It starts when it is first needed, and ends with the call.
 */
#ifndef TSVDI_SENDER_H
#define TSVDI_SENDER_H

#include "runtime/device.h"

/* Bytes of a pinned buffer of the sender: long enough to reach the rate of the bus. */
#define PINNED_BYTES ((size_t)32 << 20)

/* Bytes on the host that the sender takes from the handle's allocator, at most. */
#define SENDER_BYTES ((size_t)16 << 10)

/* Results up to so many bytes are not sent: a thread takes longer to start than their way does. */
#define SENT_BYTES ((size_t)2 << 20)

/* Bytes that lie side by side on the device, and rows that they become on the host.  A row of
   several has at most PINNED_BYTES. */
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

/* Gives device memory back when what was sent so far has left it, and the device has done what is
   on the stream so far.  A failure is told by arrive(). */
void tsvdi_cuda_free_sent(struct cuda_call *call, void *p);

/* Waits until the memory has left that was given back before the last call of this function: so
   that no more than two chunks of a batch are in memory. */
void tsvdi_cuda_follow(struct cuda_call *call);

/* Waits until nothing is on its way: what was to be given back is free. */
void tsvdi_cuda_drain(struct cuda_call *call);

/* Ends the sender, if there is one, also after a failure: what it has not sent it drops. */
void tsvdi_cuda_end_sender(struct cuda_call *call);

#endif
