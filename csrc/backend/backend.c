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
    (void)handle; /* without CUDA tsvd_create() makes handles of the CPU only */
#endif
    return &tsvdi_cpu;
}
