/*
 * The CUDA functions of tsvd.h and cuda_handle.h, and the CUDA back end, in a build without nvcc:
 * those of the device library, once tsvd_cuda_load() has opened it (cuda_library.h).  Without it
 * each fails and says what to do.  In a build with nvcc they are in cuda/runtime/.
 */
#include "backend/cuda_library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tsvd/version.h"

/* Set once: the library stays open, since handles and memory point into it. */
static _Atomic(const struct cuda_library *) opened;

static const struct cuda_library *
library(void)
{
    return atomic_load_explicit(&opened, memory_order_acquire);
}

static tsvd_status
not_there(tsvd_error *error)
{
    tsvdi_error_clear(error);
    return tsvdi_fail(error, TSVD_ERR_NO_DEVICE,
                      "tsvd was built without CUDA, and its device library is not installed: "
                      "pip install \"tsvd[cu13]\" brings it (\"tsvd[cu12]\" for a driver before "
                      "580). Or build tsvd from its sources beside the CUDA Toolkit: "
                      "pip install . --config-settings cmake.define.TSVD_CUDA=ON");
}

/* ---- opening ---- */

/* A patch may differ on both sides: it changes no structure that they share. */
static tsvd_status
check_version(const char *file, const char *version, tsvd_error *error)
{
    int major = -1, minor = -1;

    (void)sscanf(version, "%d.%d", &major, &minor);
    if (major == TSVD_VERSION_MAJOR && minor == TSVD_VERSION_MINOR) {
        return TSVD_OK;
    }
    return tsvdi_fail(error, TSVD_ERR_LIBRARY,
                      "%s is of tsvd %s, and this is tsvd %s: both must have the same major and "
                      "minor version; pip install --upgrade \"tsvd[cu13]\" (or cu12) brings a pair",
                      file, version, TSVD_VERSION);
}

tsvd_status
tsvd_cuda_load(const char *file, tsvd_error *error)
{
    static const struct core_services core = {
        .threads_for = tsvdi_host_threads_for,
        .forks = tsvdi_host_forks,
        .for_each = tsvdi_host_for_each,
        .start_thread = tsvdi_host_start_thread,
    };
    const struct cuda_library *table;
    tsvd_cuda_library_function *function;
    void *handle, *symbol;
    tsvd_status ret = TSVD_OK;

    tsvdi_error_clear(error);
    if (file == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "file must not be NULL");
    }
    if (library() != NULL) {
        return TSVD_OK;
    }
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return tsvdi_fail(error, TSVD_ERR_LIBRARY, "the device library cannot be opened: %s",
                          dlerror());
    }
    symbol = dlsym(handle, TSVD_CUDA_LIBRARY_FUNCTION);
    if (symbol == NULL) {
        (void)dlclose(handle);
        return tsvdi_fail(error, TSVD_ERR_LIBRARY, "%s is no device library of tsvd", file);
    }
    memcpy(&function, &symbol, sizeof function);
    table = function(&core);
    TSVD_TRY(check_version(file, table->version, error));
    atomic_store_explicit(&opened, table, memory_order_release);
out:
    if (ret != TSVD_OK) {
        (void)dlclose(handle);
    }
    return ret;
}

int
tsvd_cuda_compiled(void)
{
    return library() != NULL;
}

/* ---- questions ---- */

void
tsvd_cuda_versions(int *runtime, int *driver)
{
    *runtime = 0;
    *driver = 0;
    if (library() != NULL) {
        library()->versions(runtime, driver);
    }
}

const char *
tsvd_cuda_architectures(void)
{
    return library() != NULL ? library()->architectures() : "";
}

tsvd_status
tsvd_cuda_device_count(int *count, tsvd_error *error)
{
    if (library() != NULL) {
        return library()->device_count(count, error);
    }
    if (count != NULL) {
        *count = 0;
    }
    return not_there(error);
}

tsvd_status
tsvd_cuda_device_usable(int index, tsvd_error *error)
{
    if (library() != NULL) {
        return library()->device_usable(index, error);
    }
    return not_there(error);
}

tsvd_status
tsvd_cuda_device_facts(int index, tsvd_cuda_device *device, tsvd_error *error)
{
    if (library() != NULL) {
        return library()->device_facts(index, device, error);
    }
    return not_there(error);
}

tsvd_status
tsvd_cuda_device_of(const void *data, int *device, tsvd_error *error)
{
    if (library() != NULL) {
        return library()->device_of(data, device, error);
    }
    return not_there(error);
}

/* ---- device memory ----
   There is no tsvd_memory without the library: it is not NULL only where that is open. */

void *
tsvd_memory_data(const tsvd_memory *memory)
{
    return memory != NULL ? library()->memory_data(memory) : NULL;
}

void *
tsvd_memory_stream(const tsvd_memory *memory)
{
    return memory != NULL ? library()->memory_stream(memory) : NULL;
}

tsvd_status
tsvd_memory_wait(const tsvd_memory *memory, void *stream, tsvd_error *error)
{
    if (library() != NULL) {
        return library()->memory_wait(memory, stream, error);
    }
    return not_there(error);
}

void
tsvd_memory_release(tsvd_memory *memory)
{
    if (memory != NULL) {
        library()->memory_release(memory);
    }
}

/* ---- the device of a handle ---- */

tsvd_status
tsvdi_cuda_create(const tsvd_config *config, const tsvd_allocator *host, struct cuda_device **made,
                  tsvd_error *error)
{
    if (library() != NULL) {
        return library()->create(config, host, made, error);
    }
    *made = NULL;
    (void)not_there(error);
    if (error != NULL) {
        error->device = config->device;
    }
    return TSVD_ERR_NO_DEVICE;
}

tsvd_status
tsvdi_cuda_find_blas(const tsvd_config *config, int major, char *file, size_t size,
                     tsvd_error *error)
{
    if (library() != NULL) {
        return library()->find_blas(config, major, file, size, error);
    }
    return not_there(error);
}

/* The functions below get what create() has made: the library is open. */

void
tsvdi_cuda_destroy(struct cuda_device *device)
{
    library()->destroy(device);
}

void
tsvdi_cuda_set_stream(struct cuda_device *device, void *stream)
{
    library()->set_stream(device, stream);
}

void *
tsvdi_cuda_stream(const struct cuda_device *device)
{
    return library()->stream(device);
}

tsvd_status
tsvdi_cuda_wait_for(struct cuda_device *device, void *stream, tsvd_error *error)
{
    return library()->wait_for(device, stream, error);
}

tsvd_status
tsvdi_cuda_synchronize(struct cuda_device *device, tsvd_error *error)
{
    return library()->synchronize(device, error);
}

tsvd_status
tsvdi_cuda_memory_take(struct cuda_device *device, size_t bytes, tsvd_memory **memory,
                       tsvd_error *error)
{
    return library()->memory_take(device, bytes, memory, error);
}

tsvd_status
tsvdi_cuda_copy_out(struct cuda_device *device, const void *d_from, const tsvd_array *to, int own)
{
    return library()->copy_out(device, d_from, to, own);
}

tsvd_status
tsvdi_cuda_trim(struct cuda_device *device, tsvd_error *error)
{
    return library()->trim(device, error);
}

tsvd_status
tsvdi_cuda_enter(struct cuda_device *device, tsvd_error *error)
{
    return library()->enter(device, error);
}

void
tsvdi_cuda_leave(struct cuda_device *device, tsvd_status status)
{
    library()->leave(device, status);
}

/* ---- the back end ---- */

const struct backend *
tsvdi_cuda_f64(void)
{
    return library()->backend_f64();
}

const struct backend *
tsvdi_cuda_f32(void)
{
    return library()->backend_f32();
}

const struct backend *
tsvdi_cuda_c128(void)
{
    return library()->backend_c128();
}

const struct backend *
tsvdi_cuda_c64(void)
{
    return library()->backend_c64();
}
