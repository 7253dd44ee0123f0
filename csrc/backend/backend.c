/*
 * Which back end computes for a handle, and what computes on the host in any case.
 */
#include "backend/ops.h"

const struct backend *
tsvdi_backend_of(const tsvd_handle *handle)
{
    return handle->device != TSVD_DEVICE_CPU ? tsvdi_cuda() : &tsvdi_cpu;
}

const struct values_ops *
tsvdi_host_values(void)
{
    return &tsvdi_cpu_values;
}
