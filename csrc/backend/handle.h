/*
 * What a handle holds.  api/handle.c creates and destroys it.
 */
#ifndef TSVDI_HANDLE_H
#define TSVDI_HANDLE_H

#include "tsvd/tsvd.h"

struct cuda_device; /* cuda/runtime/device.h */

struct tsvd_handle {
    int device;               /* TSVD_DEVICE_CPU or a CUDA device's number */
    int threads;              /* as asked for; 0: OpenMP's default */
    tsvd_blas blas;           /* for the CPU; all NULL: none */
    tsvd_allocator host;      /* allocator of all workspace on the host */
    void *spare;              /* memory of the prepared call that was destroyed last, for the next
                               one; NULL: none */
    struct cuda_device *cuda; /* stream, memory and libraries of the device; NULL: the CPU */
};

#endif
