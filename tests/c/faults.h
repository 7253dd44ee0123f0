/*
 * Failures on demand of the calls that tsvd makes to CUDA, to cuBLAS and to the allocator of host
 * memory.
 *
 * The runtime is linked statically, so no preloaded library can replace its functions.  The linker
 * does, by the option --wrap of CMakeLists.txt: a call of X elsewhere comes to __wrap_X here, and
 * __real_X is the function of the runtime.  cuBLAS and the driver come by dlsym(), which is wrapped
 * too.
 *
 * Calls are counted from 1.  A call that fails is not made, except for waits: after a wait the
 * caller takes memory back.  Calls that give something back never fail; they are wrapped to count
 * what has not been given back.
 */
#ifndef TSVD_TESTS_FAULTS_H
#define TSVD_TESTS_FAULTS_H

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_LISTED = 1 << 16 };

static struct {
    long long calls;                  /* since begin_faults() */
    long long first, last;            /* the calls that fail; first = 0: none */
    const char *only;                 /* calls of this name alone are counted; NULL: all */
    const char *name;                 /* of the first that failed; NULL: none did */
    int live;                         /* streams, events, buffers, pools, handles not given back */
    long long host_bytes;             /* host memory not given back */
    const char *listed[CALLS_LISTED]; /* the names of the first calls, from number 1 on */
} shim;

/* What cudaGetLastError() tells of a failure: each thread has its own, as with CUDA. */
static thread_local cudaError_t pending;

/* From here on the calls first .. last of a name (NULL: of any) fail; 0: none. */
static void
begin_faults(const char *only, long long first, long long last)
{
    shim.only = only;
    shim.calls = 0;
    shim.first = first;
    shim.last = last;
    shim.name = NULL;
    pending = cudaSuccess;
}

/* Returns how many calls there were. */
static long long
end_faults(void)
{
    const long long calls = shim.calls;

    begin_faults(NULL, 0, 0);
    return calls;
}

/* Counts a call; whether it fails. */
static int
fails(const char *name)
{
    long long number;

    if (shim.only != NULL && strcmp(shim.only, name) != 0) {
        return 0;
    }
    number = __atomic_add_fetch(&shim.calls, 1, __ATOMIC_SEQ_CST);
    if (number < CALLS_LISTED) {
        shim.listed[number] = name;
    }
    if (shim.first == 0 || number < shim.first || number > shim.last) {
        return 0;
    }
    shim.name = shim.name != NULL ? shim.name : name;
    return 1;
}

static cudaError_t
failed(cudaError_t code)
{
    pending = code;
    return code;
}

/* ---- the runtime ---- */

#define WRAPPED(name, parameters)                                                                  \
    extern "C" cudaError_t __real_##name parameters;                                               \
    extern "C" cudaError_t __wrap_##name parameters;                                               \
    extern "C" cudaError_t __wrap_##name parameters

/* A function that fails with a code, or is called. */
#define FAILING(name, code, parameters, arguments)                                                 \
    WRAPPED(name, parameters)                                                                      \
    {                                                                                              \
        return fails(#name) ? failed(code) : __real_##name arguments;                              \
    }

/* A function that is called in any case, and may tell that it failed. */
#define TELLING(name, code, parameters, arguments)                                                 \
    WRAPPED(name, parameters)                                                                      \
    {                                                                                              \
        const cudaError_t made = __real_##name arguments;                                          \
                                                                                                   \
        return fails(#name) ? failed(code) : made;                                                 \
    }

/* A function that makes something, and one that gives it back. */
#define MAKING(name, code, parameters, arguments)                                                  \
    WRAPPED(name, parameters)                                                                      \
    {                                                                                              \
        const cudaError_t made = fails(#name) ? failed(code) : __real_##name arguments;            \
                                                                                                   \
        shim.live += made == cudaSuccess;                                                          \
        return made;                                                                               \
    }
#define ENDING(name, type)                                                                         \
    WRAPPED(name, (type what))                                                                     \
    {                                                                                              \
        shim.live -= what != NULL;                                                                 \
        return __real_##name(what);                                                                \
    }

WRAPPED(cudaGetLastError, (void))
{
    const cudaError_t code = pending;

    pending = cudaSuccess;
    return code != cudaSuccess ? code : __real_cudaGetLastError();
}

#define MEMORY cudaErrorMemoryAllocation
#define OTHER cudaErrorUnknown

FAILING(cudaGetDeviceCount, OTHER, (int *count), (count))
FAILING(cudaDeviceGetAttribute, OTHER, (int *value, cudaDeviceAttr attribute, int device),
        (value, attribute, device))
FAILING(cudaFuncGetAttributes, OTHER, (cudaFuncAttributes * attributes, const void *kernel),
        (attributes, kernel))
FAILING(cudaFuncSetAttribute, OTHER, (const void *kernel, cudaFuncAttribute attribute, int value),
        (kernel, attribute, value))
FAILING(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, OTHER,
        (int *blocks, const void *kernel, int threads, size_t shared, unsigned flags),
        (blocks, kernel, threads, shared, flags))
FAILING(cudaDeviceGetStreamPriorityRange, OTHER, (int *least, int *greatest), (least, greatest))
FAILING(cudaMemGetInfo, OTHER, (size_t * available, size_t *total), (available, total))
FAILING(cudaMemPoolSetAttribute, OTHER, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *to),
        (pool, attribute, to))
FAILING(cudaMemPoolGetAttribute, OTHER,
        (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value), (pool, attribute, value))
FAILING(cudaMemPoolTrimTo, OTHER, (cudaMemPool_t pool, size_t bytes), (pool, bytes))
FAILING(cudaMallocFromPoolAsync, MEMORY,
        (void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), (p, bytes, pool, stream))
FAILING(cudaMemcpyAsync, OTHER,
        (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
        (to, from, bytes, kind, stream))
FAILING(cudaMemsetAsync, OTHER, (void *to, int value, size_t bytes, cudaStream_t stream),
        (to, value, bytes, stream))
FAILING(cudaMemset2DAsync, OTHER,
        (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
        (to, pitch, value, width, height, stream))
FAILING(cudaEventRecord, OTHER, (cudaEvent_t event, cudaStream_t stream), (event, stream))
FAILING(cudaEventElapsedTime, OTHER, (float *time, cudaEvent_t begin, cudaEvent_t end),
        (time, begin, end))
FAILING(cudaStreamWaitEvent, OTHER, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
        (stream, event, flags))
FAILING(cudaLaunchCooperativeKernel, cudaErrorLaunchOutOfResources,
        (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
         cudaStream_t stream),
        (kernel, grid, block, arguments, shared, stream))
FAILING(cudaLaunchKernelExC, cudaErrorLaunchOutOfResources,
        (const cudaLaunchConfig_t *config, const void *kernel, void **arguments),
        (config, kernel, arguments))
#if CUDART_VERSION >= 13000 /* what a launch with <<<>>> calls */
FAILING(__cudaLaunchKernel, cudaErrorLaunchOutOfResources,
        (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
         cudaStream_t stream),
        (kernel, grid, block, arguments, shared, stream))
#else
FAILING(cudaLaunchKernel, cudaErrorLaunchOutOfResources,
        (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
         cudaStream_t stream),
        (kernel, grid, block, arguments, shared, stream))
#endif

TELLING(cudaStreamSynchronize, OTHER, (cudaStream_t stream), (stream))
TELLING(cudaEventSynchronize, OTHER, (cudaEvent_t event), (event))

MAKING(cudaStreamCreateWithFlags, OTHER, (cudaStream_t * stream, unsigned flags), (stream, flags))
MAKING(cudaStreamCreateWithPriority, OTHER, (cudaStream_t * stream, unsigned flags, int priority),
       (stream, flags, priority))
ENDING(cudaStreamDestroy, cudaStream_t)
MAKING(cudaEventCreate, OTHER, (cudaEvent_t * event), (event))
MAKING(cudaEventCreateWithFlags, OTHER, (cudaEvent_t * event, unsigned flags), (event, flags))
ENDING(cudaEventDestroy, cudaEvent_t)
MAKING(cudaMemPoolCreate, OTHER, (cudaMemPool_t * pool, const cudaMemPoolProps *properties),
       (pool, properties))
ENDING(cudaMemPoolDestroy, cudaMemPool_t)
MAKING(cudaHostAlloc, MEMORY, (void **p, size_t bytes, unsigned flags), (p, bytes, flags))
ENDING(cudaFreeHost, void *)

/* ---- cuBLAS and the driver ---- */

enum { CUBLAS_NO_MEMORY = 3, CUBLAS_FAILED = 13 };

/* A function that is looked up in a library: name_behind is the library's, name_shim ours. */
#define BEHIND(name, parameters, arguments, code)                                                  \
    static int(*name##_behind) parameters;                                                         \
    static int name##_shim parameters                                                              \
    {                                                                                              \
        return fails(#name) ? code : name##_behind arguments;                                      \
    }

BEHIND(cublasSetStream, (void *handle, cudaStream_t stream), (handle, stream), CUBLAS_FAILED)
#define BEHIND_PRODUCT(name, real)                                                                 \
    BEHIND(name,                                                                                   \
           (void *handle, int transpose_a, int transpose_b, int m, int n, int k,                   \
            const real *alpha, const real *a, int lda, long long stride_a, const real *b, int ldb, \
            long long stride_b, const real *beta, real *c, int ldc, long long stride_c,            \
            int count),                                                                            \
           (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b,  \
            beta, c, ldc, stride_c, count),                                                        \
           CUBLAS_FAILED)
BEHIND_PRODUCT(cublasDgemmStridedBatched, double)
BEHIND_PRODUCT(cublasSgemmStridedBatched, float)

static int (*cuCtxPushCurrent_behind)(void *context);

/* It fails at most once, since it is also needed to give back what a handle holds. */
static int
cuCtxPushCurrent_shim(void *context)
{
    const int first = shim.name == NULL;

    return fails("tsvdi_cuda_context_push") && first ? (int)OTHER /* the name in errors */
                                                     : cuCtxPushCurrent_behind(context);
}

/* A share of the device's multiprocessors: asked for once; calls do without it if that fails. */
static int (*cuGreenCtxCreate_behind)(void **context, void *description, int device,
                                      unsigned flags);
static int (*cuGreenCtxStreamCreate_behind)(void **stream, void *context, unsigned flags,
                                            int priority);
static int (*cuGreenCtxDestroy_behind)(void *context);

static int
cuGreenCtxCreate_shim(void **context, void *description, int device, unsigned flags)
{
    const int status = fails("cuGreenCtxCreate")
                           ? (int)OTHER
                           : cuGreenCtxCreate_behind(context, description, device, flags);

    shim.live += status == 0;
    return status;
}

/* The stream is ended by cudaStreamDestroy(). */
static int
cuGreenCtxStreamCreate_shim(void **stream, void *context, unsigned flags, int priority)
{
    const int status = fails("cuGreenCtxStreamCreate")
                           ? (int)OTHER
                           : cuGreenCtxStreamCreate_behind(stream, context, flags, priority);

    shim.live += status == 0;
    return status;
}

static int
cuGreenCtxDestroy_shim(void *context)
{
    shim.live--;
    return cuGreenCtxDestroy_behind(context);
}

static int (*cublasCreate_behind)(void **handle);
static int (*cublasDestroy_behind)(void *handle);

static int
cublasCreate_shim(void **handle)
{
    const int status = fails("cublasCreate") ? (int)CUBLAS_NO_MEMORY : cublasCreate_behind(handle);

    shim.live += status == 0;
    return status;
}

static int
cublasDestroy_shim(void *handle)
{
    shim.live--;
    return cublasDestroy_behind(handle);
}

extern "C" void *__real_dlsym(void *library, const char *name);
extern "C" void *__wrap_dlsym(void *library, const char *name);

extern "C" void *
__wrap_dlsym(void *library, const char *name)
{
    const struct {
        const char *name;
        void *behind, *wrapped;
    } wrapped[] = {
        {"cublasCreate_v2", &cublasCreate_behind, (void *)cublasCreate_shim},
        {"cublasDestroy_v2", &cublasDestroy_behind, (void *)cublasDestroy_shim},
        {"cublasSetStream_v2", &cublasSetStream_behind, (void *)cublasSetStream_shim},
        {"cublasDgemmStridedBatched", &cublasDgemmStridedBatched_behind,
         (void *)cublasDgemmStridedBatched_shim},
        {"cublasSgemmStridedBatched", &cublasSgemmStridedBatched_behind,
         (void *)cublasSgemmStridedBatched_shim},
        {"cuCtxPushCurrent_v2", &cuCtxPushCurrent_behind, (void *)cuCtxPushCurrent_shim},
        {"cuGreenCtxCreate", &cuGreenCtxCreate_behind, (void *)cuGreenCtxCreate_shim},
        {"cuGreenCtxStreamCreate", &cuGreenCtxStreamCreate_behind,
         (void *)cuGreenCtxStreamCreate_shim},
        {"cuGreenCtxDestroy", &cuGreenCtxDestroy_behind, (void *)cuGreenCtxDestroy_shim},
    };
    void *found = __real_dlsym(library, name);

    for (size_t i = 0; i < sizeof(wrapped) / sizeof(*wrapped) && found != NULL; i++) {
        if (strcmp(name, wrapped[i].name) == 0) {
            memcpy(wrapped[i].behind, &found, sizeof(found));
            return wrapped[i].wrapped;
        }
    }
    return found;
}

/* ---- host memory ---- */

/* A block is preceded by a cache line that holds its size. */
enum { FAULTS_LINE = 64 };

static void *
faults_allocate(void *arg, size_t bytes, void *stream)
{
    char *p;

    (void)arg, (void)stream;
    if (fails("allocate")) {
        return NULL;
    }
    p = (char *)aligned_alloc(FAULTS_LINE,
                              (bytes + 2 * FAULTS_LINE - 1) / FAULTS_LINE * FAULTS_LINE);
    if (p == NULL) {
        return NULL;
    }
    *(size_t *)(void *)p = bytes;
    (void)__atomic_add_fetch(&shim.host_bytes, (long long)bytes, __ATOMIC_SEQ_CST);
    return p + FAULTS_LINE;
}

static void
faults_release(void *arg, void *p, void *stream)
{
    char *block = (char *)p - FAULTS_LINE;

    (void)arg, (void)stream;
    (void)__atomic_sub_fetch(&shim.host_bytes, (long long)*(size_t *)(void *)block,
                             __ATOMIC_SEQ_CST);
    free(block);
}

#endif
