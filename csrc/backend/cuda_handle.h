/*
 * What the functions in api/ ask of CUDA.  The answers are in cuda/runtime/device.cu.  In a build
 * without nvcc cuda_library.c passes the questions on to the device library.
 */
#ifndef TSVDI_CUDA_HANDLE_H
#define TSVDI_CUDA_HANDLE_H

#include "tsvd/tsvd.h"

struct cuda_device;

/* Makes the device state of a handle: a stream, memory, libraries. */
tsvd_status tsvdi_cuda_create(const tsvd_config *config, const tsvd_allocator *host,
                              struct cuda_device **made, tsvd_error *error);
void tsvdi_cuda_destroy(struct cuda_device *device);

/* As tsvd_cuda_blas(). */
tsvd_status tsvdi_cuda_find_blas(const tsvd_config *config, int major, char *file, size_t size,
                                 tsvd_error *error);

/* Sets the stream of later calls; NULL: the handle's own. */
void tsvdi_cuda_set_stream(struct cuda_device *device, void *stream);

/* The stream of later calls. */
void *tsvdi_cuda_stream(const struct cuda_device *device);

/* As tsvd_wait_for(), tsvd_synchronize() and tsvd_memory_take(). */
tsvd_status tsvdi_cuda_wait_for(struct cuda_device *device, void *stream, tsvd_error *error);
tsvd_status tsvdi_cuda_synchronize(struct cuda_device *device, tsvd_error *error);
tsvd_status tsvdi_cuda_memory_take(struct cuda_device *device, size_t bytes, tsvd_memory **memory,
                                   tsvd_error *error);

/* Copies C-contiguous numbers to `to`, an array of the device with any strides, whose last `own`
   dimensions are those of one result.  Within a call. */
tsvd_status tsvdi_cuda_copy_out(struct cuda_device *device, const void *d_from,
                                const tsvd_array *to, int own);

/* Gives cached memory back. */
tsvd_status tsvdi_cuda_trim(struct cuda_device *device, tsvd_error *error);

/* enter() begins a call of the library: it makes the device the thread's current one, and sends
   errors to `error`.  leave() is due also after a failure.  It makes the device current that was
   current before; `status` is that of the call. */
tsvd_status tsvdi_cuda_enter(struct cuda_device *device, tsvd_error *error);
void tsvdi_cuda_leave(struct cuda_device *device, tsvd_status status);

#endif
