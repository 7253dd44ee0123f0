/*
 * Which back end computes for a handle.  Complex matrices are not offered on CUDA devices yet, and
 * a handle of one does not get here with them.
 */
#include "backend/ops.h"

const struct backend *
tsvdi_backend_of(const tsvd_handle *handle)
{
    return !TSVD_COMPLEX && handle->device != TSVD_DEVICE_CPU ? tsvdi_cuda() : &tsvdi_cpu;
}
