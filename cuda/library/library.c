/*
 * The device library (csrc/backend/cuda_library.h): the table that it exports, and in the place of
 * csrc/host/threads.c the threads of the core that has opened it.
 */
#include "backend/cuda_library.h"
#include "tsvd/export.h"
#include "tsvd/version.h"

/* Set by the core, before anything else is called. */
static const struct core_services *services;

int
tsvdi_host_threads_for(int asked, int64_t useful)
{
    return services->threads_for(asked, useful);
}

unsigned
tsvdi_host_forks(void)
{
    return services->forks();
}

tsvd_status
tsvdi_host_for_each(int workers, int64_t count, tsvd_task task, void *arg)
{
    return services->for_each(workers, count, task, arg);
}

int
tsvdi_host_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    return services->start_thread(thread, run, arg);
}

TSVD_API tsvd_cuda_library_function tsvd_cuda_library;

const struct cuda_library *
tsvd_cuda_library(const struct core_services *core)
{
    static const struct cuda_library table = {
        .version = TSVD_VERSION,
        .versions = tsvd_cuda_versions,
        .architectures = tsvd_cuda_architectures,
        .device_count = tsvd_cuda_device_count,
        .device_usable = tsvd_cuda_device_usable,
        .device_facts = tsvd_cuda_device_facts,
        .device_of = tsvd_cuda_device_of,
        .memory_data = tsvd_memory_data,
        .memory_stream = tsvd_memory_stream,
        .memory_wait = tsvd_memory_wait,
        .memory_release = tsvd_memory_release,
        .create = tsvdi_cuda_create,
        .destroy = tsvdi_cuda_destroy,
        .find_blas = tsvdi_cuda_find_blas,
        .set_stream = tsvdi_cuda_set_stream,
        .stream = tsvdi_cuda_stream,
        .wait_for = tsvdi_cuda_wait_for,
        .synchronize = tsvdi_cuda_synchronize,
        .memory_take = tsvdi_cuda_memory_take,
        .copy_out = tsvdi_cuda_copy_out,
        .trim = tsvdi_cuda_trim,
        .enter = tsvdi_cuda_enter,
        .leave = tsvdi_cuda_leave,
        .backend_f64 = tsvdi_cuda_f64,
        .backend_f32 = tsvdi_cuda_f32,
        .backend_c128 = tsvdi_cuda_c128,
        .backend_c64 = tsvdi_cuda_c64,
    };

    services = core;
    return &table;
}
