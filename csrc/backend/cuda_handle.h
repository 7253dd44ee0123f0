/*
 * What a handle asks of the CUDA runtime; cuda/runtime/device.cu answers, or nocuda.c in a build
 * without nvcc.
 */
#ifndef TSVDI_CUDA_HANDLE_H
#define TSVDI_CUDA_HANDLE_H

#include "tsvd/tsvd.h"

struct cuda_call;

/* Takes what a handle holds of its device: a stream, memory, libraries. */
tsvd_status tsvdi_cuda_create(const tsvd_config *config, const tsvd_allocator *host,
                              struct cuda_call **made, tsvd_error *error);
void tsvdi_cuda_destroy(struct cuda_call *call);

/* The stream of later calls; NULL: the handle's own. */
void tsvdi_cuda_set_stream(struct cuda_call *call, void *stream);

/* Gives cached memory back. */
tsvd_status tsvdi_cuda_trim(struct cuda_call *call, tsvd_error *error);

/* A call of the library begins: the device becomes the thread's current one, and errors go to
   `error`.  leave(), due also after a failure, makes the device current that was so before;
   `status` is that of the call. */
tsvd_status tsvdi_cuda_enter(struct cuda_call *call, tsvd_error *error);
void tsvdi_cuda_leave(struct cuda_call *call, tsvd_status status);

#endif
