/*
 * The host machine; see host.h.  Its threads are in threads.c.
 */
#define _GNU_SOURCE
#include "host/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "host/bytes.h"

/* Requests from this size on are compared with the memory that is free: the system would grant
   more, and end the process when the memory is touched. */
#define MEMORY_CHECK_BYTES ((size_t)256 << 20)

/* Pieces from this size on ask for large pages: the C library keeps none of them for the next call.
 */
#define LARGE_BYTES ((size_t)32 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

/* Names the instruction set of the kernels, for tests. */
#define KERNELS_VARIABLE "TSVD_CPU_KERNELS"

static const char *const isa_name[] = {"generic", "avx2", "avx512"};
enum { ISAS = sizeof isa_name / sizeof *isa_name };

/* What the environment asks for, and the instruction set of the kernels.  Written before main(). */
static enum { KERNELS_FREE, KERNELS_NAMED, KERNELS_UNKNOWN, KERNELS_LACKING } kernels_asked;
static enum host_isa kernels_isa;

/* The best instruction set that the processor runs and that kernels exist for. */
static enum host_isa
best_isa(void)
{
#if TSVD_X86_KERNELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
        return HOST_AVX512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return HOST_AVX2;
    }
#endif
    return HOST_GENERIC;
}

/* The environment is read once, while a library is loaded: it may change later, in any thread.  The
   priority puts this before the constructors of programs, which may call the library. */
__attribute__((constructor(101))) static void
choose_kernels(void)
{
    const char *asked = getenv(KERNELS_VARIABLE);
    int isa = 0;

    kernels_isa = best_isa();
    if (asked == NULL || asked[0] == '\0') {
        return;
    }
    while (isa < ISAS && strcmp(asked, isa_name[isa]) != 0) {
        isa++;
    }
    if (isa == ISAS) {
        kernels_asked = KERNELS_UNKNOWN;
    } else if (isa > (int)kernels_isa) {
        kernels_asked = KERNELS_LACKING;
    } else {
        kernels_asked = KERNELS_NAMED;
        kernels_isa = (enum host_isa)isa;
    }
}

enum host_isa
tsvdi_host_isa(void)
{
    return kernels_isa;
}

tsvd_status
tsvdi_host_check_isa(tsvd_error *error)
{
    if (kernels_asked == KERNELS_UNKNOWN) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the environment variable " KERNELS_VARIABLE
                          " must be generic, avx2 or avx512, or not be set");
    }
    if (kernels_asked == KERNELS_LACKING) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the environment variable " KERNELS_VARIABLE
                          " names kernels that this processor does not run: the best here are %s",
                          isa_name[kernels_isa]);
    }
    return TSVD_OK;
}

const char *
tsvd_cpu_kernels(void)
{
    return isa_name[kernels_isa];
}

/* The number in a file that holds one; 0 if there is none, as in "max". */
static uint64_t
read_number(const char *path)
{
    FILE *f = fopen(path, "r");
    unsigned long long number = 0;

    if (f) {
        if (fscanf(f, "%llu", &number) != 1) {
            number = 0;
        }
        (void)fclose(f);
    }
    return number;
}

/* The number after `name` in a file of lines "name number"; 0 if it is not there. */
static uint64_t
read_line(const char *path, const char *name)
{
    FILE *f = fopen(path, "r");
    char line[128], key[64];
    unsigned long long number = 0, found = 0;

    while (f && found == 0 && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63s %llu", key, &number) == 2 && strcmp(key, name) == 0) {
            found = number;
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return found;
}

/* Bytes that a container's limit leaves, including the file cache that it would give up; UINT64_MAX
   without a limit. */
static uint64_t
container_memory(void)
{
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current");
    uint64_t cache = read_line("/sys/fs/cgroup/memory.stat", "inactive_file");

    used -= cache < used ? cache : used;
    return limit == 0 ? UINT64_MAX : limit > used ? limit - used : 1;
}

uint64_t
tsvd_host_memory_available(void)
{
    const uint64_t container = container_memory();
    const uint64_t kib = read_line("/proc/meminfo", "MemAvailable:");
    long pages, size;

    if (kib > 0) {
        return kib * 1024 < container ? kib * 1024 : container;
    }
    pages = sysconf(_SC_PHYS_PAGES);
    size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

void
tsvdi_error_clear(tsvd_error *error)
{
    if (error != NULL) { /* field by field: the texts are long, and calls may be short */
        error->status = TSVD_OK;
        error->matrix = -1;
        error->device = TSVD_DEVICE_CPU;
        error->sweeps = 0;
        error->wanted = error->available = 0;
        error->text[0] = error->advice[0] = '\0';
        memset(error->reserved, 0, sizeof error->reserved);
    }
}

tsvd_status
tsvdi_fail(tsvd_error *error, tsvd_status status, const char *format, ...)
{
    va_list args;

    if (error != NULL) {
        error->status = status;
        va_start(args, format);
        (void)vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

void
tsvdi_advise(tsvd_error *error, const char *advice)
{
    if (error != NULL) {
        (void)snprintf(error->advice, sizeof error->advice, "%s", advice);
    }
}

/* The C library maps a piece of LARGE_BYTES or more anew at each call, and the system clears its
   pages when they are first touched.  Pages of the usual size then cost more than the work: divide
   and conquer of order 900 took 1.8 times as long as of order 875.  So large pages are asked for,
   as NumPy does. */
static void *
allocate(void *arg, size_t bytes, void *stream)
{
    const size_t line = bytes < LARGE_BYTES ? 64 : LARGE_PAGE;
    void *p;

    (void)arg, (void)stream;
    if (bytes > SIZE_MAX - line) {
        return NULL;
    }
    bytes = (bytes + line - 1) / line * line;
    p = aligned_alloc(line, bytes);
#ifdef MADV_HUGEPAGE
    if (p != NULL && line == LARGE_PAGE) {
        (void)madvise(p, bytes, MADV_HUGEPAGE); /* a hint: a failure costs only time */
    }
#endif
    return p;
}

static void
release(void *arg, void *p, void *stream)
{
    (void)arg, (void)stream;
    free(p);
}

const tsvd_allocator tsvdi_host_allocator = {allocate, release, NULL};

tsvd_status
tsvdi_host_alloc(const tsvd_allocator *allocator, size_t bytes, tsvd_error *error, void **p)
{
    /* what is free does not bound an allocator of the caller's */
    const int own = allocator->allocate == allocate;
    uint64_t available = !own || bytes < MEMORY_CHECK_BYTES ? 0 : tsvd_host_memory_available();

    *p = NULL;
    if (bytes > 0 && bytes < BYTES_TOO_MANY && (available == 0 || bytes <= available)) {
        *p = allocator->allocate(allocator->arg, bytes, NULL);
    }
    if (bytes == 0 || *p != NULL) {
        return TSVD_OK;
    }
    available = available > 0 || !own ? available : tsvd_host_memory_available();
    if (error != NULL) {
        error->device = TSVD_DEVICE_CPU; /* an earlier failure that was overcome may have set it */
        error->wanted = bytes;
        error->available = available;
    }
    return own ? tsvdi_fail(error, TSVD_ERR_MEMORY,
                            "out of host memory: %zu bytes of workspace wanted, %llu bytes free",
                            bytes, (unsigned long long)available)
               : tsvdi_fail(error, TSVD_ERR_MEMORY,
                            "the caller's allocator has no %zu bytes of host memory", bytes);
}

tsvd_status
tsvdi_host_too_large(tsvd_error *error, const char *what, int64_t n)
{
    const uint64_t available = tsvd_host_memory_available();

    if (error != NULL) {
        error->wanted = BYTES_TOO_MANY;
        error->available = available;
    }
    return tsvdi_fail(error, TSVD_ERR_MEMORY,
                      "%s for n = %lld want more than %llu bytes, which cannot be addressed; %llu "
                      "bytes are free",
                      what, (long long)n, (unsigned long long)BYTES_TOO_MANY,
                      (unsigned long long)available);
}

void
tsvdi_host_free(const tsvd_allocator *allocator, void *p)
{
    if (p != NULL) {
        allocator->release(allocator->arg, p, NULL);
    }
}

double
tsvdi_host_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
