/*
 * The host machine: memory, processors, threads.  Knows no numerics and is compiled
 * once for both precisions.
 */
#ifndef TSVDI_HOST_H
#define TSVDI_HOST_H

#include <pthread.h>

#include "tsvd/tsvd.h"

/* Assigns the status of a call and leaves through `out:` unless it is TSVD_OK. */
#define TSVD_TRY(call)                                                                             \
    do {                                                                                           \
        ret = (call);                                                                              \
        if (ret != TSVD_OK) {                                                                      \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

enum host_isa { HOST_GENERIC, HOST_AVX2, HOST_AVX512 };

/* The instruction set of the kernels: the best that the processor runs, unless the environment
   variable TSVD_CPU_KERNELS names another. */
enum host_isa tsvdi_host_isa(void);

/* TSVD_ERR_ARGUMENT if the variable names none, or one that the processor lacks. */
tsvd_status tsvdi_host_check_isa(tsvd_error *error);

/* Threads of a call that asked for `asked` (0: the default) and has work for `useful`. */
int tsvdi_host_threads_for(int asked, int64_t useful);

/* Forks between the process that loaded the library and this one.  A call that finds another number
   than at its start runs in a child that was forked meanwhile. */
unsigned tsvdi_host_forks(void);

/* The allocator of handles that are given none: the C library's. */
extern const tsvd_allocator tsvdi_host_allocator;

/* Memory on a cache line's boundary, *p = NULL for 0 bytes.  On TSVD_ERR_MEMORY the error names
   the bytes. */
tsvd_status tsvdi_host_alloc(const tsvd_allocator *allocator, size_t bytes, tsvd_error *error,
                             void **p);
void tsvdi_host_free(const tsvd_allocator *allocator, void *p);

/* TSVD_ERR_MEMORY for arrays or workspace, `what`, of more bytes than can be addressed. */
tsvd_status tsvdi_host_too_large(tsvd_error *error, const char *what, int64_t n);

typedef tsvd_status (*tsvd_task)(void *arg, int worker, int64_t index);

/* Calls task(arg, worker, i) for 0 <= i < count, in at most `workers` threads.  Worker 0 is the
   calling thread.  It stops early on a failure, and returns the status of the least index that
   failed, but TSVD_ERR_INTERRUPTED if any task returned that.  If a task forks the process while
   several threads work, the loop returns TSVD_ERR_INTERRUPTED in the child. */
tsvd_status tsvdi_host_for_each(int workers, int64_t count, tsvd_task task, void *arg);

/* Lowers *least to x, if x is less.  Threads may call this at once. */
void tsvdi_host_note_least(int64_t *least, int64_t x);

/* Starts a thread outside the pool, which the caller joins.  Like the pool's threads it gets no
   signals of the program.  Returns 0, or the error of pthread_create(). */
int tsvdi_host_start_thread(pthread_t *thread, void *(*run)(void *), void *arg);

/* Seconds of a clock that never goes back. */
double tsvdi_host_seconds(void);

/* ---- errors; of all functions `error` may be NULL ---- */

/* Nothing has failed, and no matrix is named. */
void tsvdi_error_clear(tsvd_error *error);

/* The error of a part of a call that stops for that reason, with TSVD_ERR_INTERRUPTED. */
#define TSVDI_OTHER_FAILED "another part of the call has failed"

/* What happened: writes status and text, and leaves the rest as it is; returns the status. */
tsvd_status tsvdi_fail(tsvd_error *error, tsvd_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What helps, in the words of tsvd.h. */
void tsvdi_advise(tsvd_error *error, const char *advice);

#endif
