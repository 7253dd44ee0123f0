/*
 * Which back end computes for a handle.
 */
#include "backend/ops.h"

const struct backend *
tsvdi_backend_of(const tsvd_handle *handle)
{
#if TSVD_WITH_CUDA
    if (handle->device != TSVD_DEVICE_CPU) {
        return tsvdi_cuda();
    }
#else
    (void)handle; /* tsvd_create() makes none of a CUDA device */
#endif
    return &tsvdi_cpu;
}
