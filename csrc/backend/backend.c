/* Which back end computes for a handle. */
#include "backend/ops.h"

const struct backend *
tsvdi_backend_of(const tsvd_handle *handle)
{
    return handle->device != TSVD_DEVICE_CPU ? tsvdi_cuda() : &tsvdi_cpu;
}
