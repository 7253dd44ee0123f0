/*
 * What the functions in api/ ask of CUDA.  The answers are in cuda/runtime/device.cu, and in
 * nocuda.c in a build without nvcc.
 */
#ifndef TSVDI_CUDA_HANDLE_H
#define TSVDI_CUDA_HANDLE_H

#include "tsvd/tsvd.h"

struct cuda_call;

/* Takes what a handle holds of its device: a stream, memory, libraries. */
tsvd_status tsvdi_cuda_create(const tsvd_config *config, const tsvd_allocator *host,
                              struct cuda_call **made, tsvd_error *error);
void tsvdi_cuda_destroy(struct cuda_call *call);

/* Sets the stream of later calls; NULL: the handle's own. */
void tsvdi_cuda_set_stream(struct cuda_call *call, void *stream);

/* Gives cached memory back. */
tsvd_status tsvdi_cuda_trim(struct cuda_call *call, tsvd_error *error);

/* enter() begins a call of the library: it makes the device the thread's current one, and sends
   errors to `error`.  leave() is due also after a failure.  It makes the device current that was
   current before; `status` is that of the call. */
tsvd_status tsvdi_cuda_enter(struct cuda_call *call, tsvd_error *error);
void tsvdi_cuda_leave(struct cuda_call *call, tsvd_status status);

#endif
