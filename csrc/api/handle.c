/*
 * Handles: how they are created, changed and destroyed; device memory that is taken from them.
 */
#include <string.h>

#include "api/growing.h"
#include "backend/cuda_handle.h"
#include "backend/handle.h"
#include "host/blas.h"
#include "host/host.h"

/* Refuses a wrong configuration, as far as that shows without asking the device. */
static tsvd_status
check_config(const tsvd_config *c, tsvd_error *error)
{
    if (c->device < TSVD_DEVICE_CPU) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "config.device is %d: it must be TSVD_DEVICE_CPU or the number of a CUDA "
                          "device",
                          c->device);
    }
    if (c->threads < 0) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "config.threads must not be negative");
    }
    if (c->device == TSVD_DEVICE_CPU && (c->stream != NULL || c->device_allocator != NULL)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "config.stream and config.device_allocator need a CUDA device");
    }
    if ((c->host_allocator != NULL &&
         (c->host_allocator->allocate == NULL || c->host_allocator->release == NULL)) ||
        (c->device_allocator != NULL &&
         (c->device_allocator->allocate == NULL || c->device_allocator->release == NULL))) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "an allocator must have both its functions");
    }
    if (c->library_path_count < 0 || (c->library_path_count > 0 && c->library_paths == NULL)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "config.library_paths must hold config.library_path_count directories");
    }
    return TSVD_OK;
}

/* Sets *to to the BLAS that is given, or that the library is linked with. */
static tsvd_status
take_blas(const tsvd_blas *blas, tsvd_blas *to, tsvd_error *error)
{
    const tsvd_blas *taken;
    tsvd_blas own;
    tsvd_status ret = TSVD_OK;

    if (blas == NULL) {
        *to = tsvdi_blas_linked();
        return TSVD_OK;
    }
    TSVD_TRY(tsvdi_take_blas(blas, &own, &taken, error));
    if (!tsvdi_blas_ready(taken, 0)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "a BLAS must have both functions of one integer size");
    }
    *to = *taken;
out:
    return ret;
}

tsvd_status
tsvd_create(const tsvd_config *given, tsvd_handle **handle, tsvd_error *error)
{
    const tsvd_allocator *allocator = &tsvdi_host_allocator;
    const tsvd_config *config;
    tsvd_config own;
    tsvd_blas blas;
    tsvd_handle *made = NULL;
    tsvd_status ret = TSVD_OK;

    tsvdi_error_clear(error);
    if (handle == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "handle must not be NULL");
    }
    *handle = NULL;
    TSVD_TRY(tsvdi_take_config(given, &own, &config, error));
    TSVD_TRY(check_config(config, error));
    TSVD_TRY(take_blas(config->blas, &blas, error));
    TSVD_TRY(tsvdi_host_check_isa(error));
    allocator = config->host_allocator != NULL ? config->host_allocator : allocator;
    TSVD_TRY(tsvdi_host_alloc(allocator, sizeof *made, error, (void **)&made));
    memset(made, 0, sizeof *made);
    made->device = config->device;
    made->threads = config->threads;
    made->host = *allocator;
    made->blas = blas;
    if (config->device != TSVD_DEVICE_CPU) {
        TSVD_TRY(tsvdi_cuda_create(config, &made->host, &made->cuda, error));
    }
    *handle = made;
    made = NULL;
out:
    tsvd_destroy(made);
    return ret;
}

void
tsvd_destroy(tsvd_handle *handle)
{
    if (handle != NULL) {
        const tsvd_allocator allocator = handle->host;

        if (handle->cuda != NULL) {
            tsvdi_cuda_destroy(handle->cuda);
        }
        tsvdi_host_free(&allocator, handle->spare);
        tsvdi_host_free(&allocator, handle);
    }
}

int
tsvd_handle_device(const tsvd_handle *handle)
{
    return handle != NULL ? handle->device : TSVD_DEVICE_CPU;
}

tsvd_status
tsvd_set_threads(tsvd_handle *handle, int threads, tsvd_error *error)
{
    tsvdi_error_clear(error);
    if (handle == NULL || threads < 0) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the handle must not be NULL, nor threads negative");
    }
    handle->threads = threads;
    return TSVD_OK;
}

/* Refuses a handle that is not of a CUDA device. */
static tsvd_status
check_cuda(const tsvd_handle *handle, tsvd_error *error)
{
    tsvdi_error_clear(error);
    return handle != NULL && handle->cuda != NULL
               ? TSVD_OK
               : tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                            "only a handle of a CUDA device has streams and device memory");
}

tsvd_status
tsvd_set_stream(tsvd_handle *handle, void *stream, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_cuda(handle, error));
    tsvdi_cuda_set_stream(handle->cuda, stream);
out:
    return ret;
}

void *
tsvd_handle_stream(const tsvd_handle *handle)
{
    return handle != NULL && handle->cuda != NULL ? tsvdi_cuda_stream(handle->cuda) : NULL;
}

tsvd_status
tsvd_wait_for(tsvd_handle *handle, void *stream, tsvd_error *error)
{
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own;
    TSVD_TRY(check_cuda(handle, error));
    TSVD_TRY(tsvdi_cuda_wait_for(handle->cuda, stream, error));
out:
    return ret;
}

tsvd_status
tsvd_synchronize(tsvd_handle *handle, tsvd_error *error)
{
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own;
    TSVD_TRY(check_cuda(handle, error));
    TSVD_TRY(tsvdi_cuda_synchronize(handle->cuda, error));
out:
    return ret;
}

tsvd_status
tsvd_memory_take(tsvd_handle *handle, size_t bytes, tsvd_memory **memory, tsvd_error *error)
{
    tsvd_error own;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own;
    tsvdi_error_clear(error);
    if (memory == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "memory must not be NULL");
    }
    *memory = NULL;
    TSVD_TRY(check_cuda(handle, error));
    TSVD_TRY(tsvdi_cuda_memory_take(handle->cuda, bytes, memory, error));
out:
    return ret;
}

tsvd_status
tsvd_set_blas(tsvd_handle *handle, const tsvd_blas *blas, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    tsvdi_error_clear(error);
    if (handle == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the handle must not be NULL");
    }
    TSVD_TRY(take_blas(blas, &handle->blas, error));
out:
    return ret;
}

tsvd_status
tsvd_cuda_blas(const tsvd_config *config, int major, char *file, size_t size, tsvd_error *error)
{
    const tsvd_config *taken;
    tsvd_config own;
    tsvd_status ret = TSVD_OK;

    tsvdi_error_clear(error);
    TSVD_TRY(tsvdi_take_config(config, &own, &taken, error));
    TSVD_TRY(tsvdi_cuda_find_blas(taken, major, file, size, error));
out:
    return ret;
}

tsvd_status
tsvd_trim(tsvd_handle *handle, tsvd_error *error)
{
    tsvdi_error_clear(error);
    if (handle == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the handle must not be NULL");
    }
    tsvdi_host_free(&handle->host, handle->spare);
    handle->spare = NULL;
    return handle->cuda != NULL ? tsvdi_cuda_trim(handle->cuda, error) : TSVD_OK;
}
