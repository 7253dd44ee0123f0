/*
 * The CUDA functions of tsvd.h, and those of cuda_handle.h, in a build without nvcc.  In a build
 * with nvcc they are in cuda/runtime/.
 */
#include <stddef.h>

#include "backend/cuda_handle.h"
#include "host/host.h"

static tsvd_status
not_compiled(tsvd_error *error)
{
    return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                      "tsvd was built without CUDA: install the CUDA Toolkit (nvcc) and build tsvd "
                      "again with TSVD_CUDA=ON");
}

int
tsvd_cuda_compiled(void)
{
    return 0;
}

void
tsvd_cuda_versions(int *runtime, int *driver)
{
    *runtime = 0;
    *driver = 0;
}

tsvd_status
tsvd_cuda_device_count(int *count, tsvd_error *error)
{
    tsvdi_error_clear(error);
    if (count != NULL) {
        *count = 0;
    }
    return not_compiled(error);
}

tsvd_status
tsvd_cuda_device_usable(int index, tsvd_error *error)
{
    (void)index;
    tsvdi_error_clear(error);
    return not_compiled(error);
}

tsvd_status
tsvd_cuda_device_facts(int index, tsvd_cuda_device *device, tsvd_error *error)
{
    (void)index, (void)device;
    tsvdi_error_clear(error);
    return not_compiled(error);
}

tsvd_status
tsvd_cuda_blas(const tsvd_config *config, int major, char *file, size_t size, tsvd_error *error)
{
    (void)config, (void)major, (void)file, (void)size;
    tsvdi_error_clear(error);
    return not_compiled(error);
}

tsvd_status
tsvd_cuda_device_of(const void *data, int *device, tsvd_error *error)
{
    (void)data, (void)device;
    tsvdi_error_clear(error);
    return not_compiled(error);
}

/* Without CUDA there is no tsvd_memory, so the functions below are given NULL. */

void *
tsvd_memory_data(const tsvd_memory *memory)
{
    (void)memory;
    return NULL;
}

void *
tsvd_memory_stream(const tsvd_memory *memory)
{
    (void)memory;
    return NULL;
}

tsvd_status
tsvd_memory_wait(const tsvd_memory *memory, void *stream, tsvd_error *error)
{
    (void)memory, (void)stream;
    tsvdi_error_clear(error);
    return not_compiled(error);
}

void
tsvd_memory_release(tsvd_memory *memory)
{
    (void)memory;
}

tsvd_status
tsvdi_cuda_create(const tsvd_config *config, const tsvd_allocator *host, struct cuda_device **made,
                  tsvd_error *error)
{
    (void)host;
    *made = NULL;
    if (error != NULL) {
        error->device = config->device;
    }
    return not_compiled(error);
}

void
tsvdi_cuda_destroy(struct cuda_device *device)
{
    (void)device;
}

void
tsvdi_cuda_set_stream(struct cuda_device *device, void *stream)
{
    (void)device, (void)stream;
}

void *
tsvdi_cuda_stream(const struct cuda_device *device)
{
    (void)device;
    return NULL;
}

tsvd_status
tsvdi_cuda_wait_for(struct cuda_device *device, void *stream, tsvd_error *error)
{
    (void)device, (void)stream;
    return not_compiled(error);
}

tsvd_status
tsvdi_cuda_synchronize(struct cuda_device *device, tsvd_error *error)
{
    (void)device;
    return not_compiled(error);
}

tsvd_status
tsvdi_cuda_memory_take(struct cuda_device *device, size_t bytes, tsvd_memory **memory,
                       tsvd_error *error)
{
    (void)device, (void)bytes, (void)memory;
    return not_compiled(error);
}

tsvd_status
tsvdi_cuda_trim(struct cuda_device *device, tsvd_error *error)
{
    (void)device;
    return not_compiled(error);
}

tsvd_status
tsvdi_cuda_enter(struct cuda_device *device, tsvd_error *error)
{
    (void)device;
    return not_compiled(error);
}

void
tsvdi_cuda_leave(struct cuda_device *device, tsvd_status status)
{
    (void)device, (void)status;
}
