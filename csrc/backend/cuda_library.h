/*
 * The device library: the CUDA back end as a shared library of its own, which a build without CUDA
 * opens at run time (tsvd_cuda_load()).  So the wheel for the CPU stays small, and one device
 * library serves all Pythons.
 *
 * The library exports one function, of type tsvd_cuda_library.  It takes the services of the core
 * and returns its table.  cuda/library/library.c fills the table, cuda_library.c calls through it.
 * Both sides must come from the same minor version: they share the structures of backend/ops.h.
 */
#ifndef TSVDI_CUDA_LIBRARY_H
#define TSVDI_CUDA_LIBRARY_H

#include <pthread.h>

#include "backend/cuda_handle.h"
#include "host/host.h"
#include "tsvd/tsvd.h"

/* Services of the core: one pool of threads serves both. */
struct core_services {
    int (*threads_for)(int asked, int64_t useful);
    unsigned (*forks)(void);
    tsvd_status (*for_each)(int workers, int64_t count, tsvd_task task, void *arg);
    int (*start_thread)(pthread_t *thread, void *(*run)(void *), void *arg);
};

struct backend;

/* The functions of the device library, by their names without tsvd_ or tsvdi_cuda_. */
struct cuda_library {
    const char *version; /* TSVD_VERSION of its build; the first field in all versions */

    /* questions of tsvd.h */
    void (*versions)(int *runtime, int *driver);
    const char *(*architectures)(void);
    tsvd_status (*device_count)(int *count, tsvd_error *error);
    tsvd_status (*device_usable)(int index, tsvd_error *error);
    tsvd_status (*device_facts)(int index, tsvd_cuda_device *device, tsvd_error *error);
    tsvd_status (*device_of)(const void *data, int *device, tsvd_error *error);

    /* device memory, of tsvd.h */
    void *(*memory_data)(const tsvd_memory *memory);
    void *(*memory_stream)(const tsvd_memory *memory);
    tsvd_status (*memory_wait)(const tsvd_memory *memory, void *stream, tsvd_error *error);
    void (*memory_release)(tsvd_memory *memory);

    /* cuda_handle.h */
    tsvd_status (*create)(const tsvd_config *config, const tsvd_allocator *host,
                          struct cuda_device **made, tsvd_error *error);
    void (*destroy)(struct cuda_device *device);
    tsvd_status (*find_blas)(const tsvd_config *config, int major, char *file, size_t size,
                             tsvd_error *error);
    void (*set_stream)(struct cuda_device *device, void *stream);
    void *(*stream)(const struct cuda_device *device);
    tsvd_status (*wait_for)(struct cuda_device *device, void *stream, tsvd_error *error);
    tsvd_status (*synchronize)(struct cuda_device *device, tsvd_error *error);
    tsvd_status (*memory_take)(struct cuda_device *device, size_t bytes, tsvd_memory **memory,
                               tsvd_error *error);
    tsvd_status (*copy_out)(struct cuda_device *device, const void *d_from, const tsvd_array *to,
                            int own);
    tsvd_status (*trim)(struct cuda_device *device, tsvd_error *error);
    tsvd_status (*enter)(struct cuda_device *device, tsvd_error *error);
    void (*leave)(struct cuda_device *device, tsvd_status status);

    /* tsvdi_cuda() of each type */
    const struct backend *(*backend_f64)(void);
    const struct backend *(*backend_f32)(void);
    const struct backend *(*backend_c128)(void);
    const struct backend *(*backend_c64)(void);
};

/* tsvdi_cuda() of ops.h by its full names, for code that belongs to no precision. */
const struct backend *tsvdi_cuda_f64(void);
const struct backend *tsvdi_cuda_f32(void);
const struct backend *tsvdi_cuda_c128(void);
const struct backend *tsvdi_cuda_c64(void);

#define TSVD_CUDA_LIBRARY_FUNCTION "tsvd_cuda_library"
typedef const struct cuda_library *tsvd_cuda_library_function(const struct core_services *core);

#endif
