/*
 * tsvd: the singular value decomposition of bidiagonal matrices, and with it that of dense ones;
 * the inverse of dense matrices.
 *
 *     B = diag(d) + diag(e, 1) = L diag(s) R,   L, R orthogonal, s descending, s >= 0
 *     A = U diag(S) Vh
 *     A X = I
 *
 * A handle stands for a device and keeps what calls share: a stream, a BLAS, cached memory.
 * Arrays say where numbers lie.  A plan tells beforehand what a call will do, and how many bytes
 * it will take; a prepared call keeps it, and runs again and again.
 *
 *     tsvd_handle *handle = NULL;
 *     int64_t n = 3, off = 2;
 *     double d[] = {1, 2, 3}, e[] = {1, 1}, s[3];
 *     tsvd_array d_array = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT64, 1, &n);
 *     tsvd_array e_array = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT64, 1, &off);
 *     tsvd_array s_array = tsvd_array_of(s, TSVD_HOST, TSVD_FLOAT64, 1, &n);
 *     tsvd_error error;
 *
 *     if (tsvd_create(NULL, &handle, &error) != TSVD_OK ||
 *         tsvd_svd(handle, &d_array, &e_array, NULL, NULL, &s_array, NULL, NULL, &error) !=
 *             TSVD_OK) {
 *         puts(error.text);
 *     }
 *     tsvd_destroy(handle);
 *
 * Threads.  Functions that take a handle may be called from many threads, but not at the same time
 * with the same handle.  The other functions may be called from any thread at any time.
 *
 * NULL.  A function that is given a handle of NULL returns TSVD_ERR_ARGUMENT, unless its comment
 * allows it.  Every `error` may be NULL.
 *
 * Strides.  Arrays may have any strides, results too, as long as the entries of results do not
 * overlap.  C-contiguous results take the least time and memory.  If both sides of the vectors lie
 * by columns, as Fortran has arrays, the transposes are decomposed into them, and nothing is
 * copied; the same holds for an inverse by columns, and for L and U on the host whose rows are
 * contiguous but lie apart.  With other strides a call takes as much memory more as those results,
 * where they lie; no plan counts it.
 *
 * Floating point.  tsvd_svd(), tsvd_select() and the functions for dense matrices compute in the
 * default environment, in each of its threads: it rounds to nearest, flushes nothing to zero, and
 * traps nothing.  The caller's environment and exception flags come back at the end, and are there
 * while options.check or part.sum runs; a BLAS and allocators of the caller's are called in the
 * default one.
 *
 * Structures.  Those that later versions may add fields to begin with their size, as the program
 * was compiled with it: tsvd_config_init() and tsvd_options_init() set it, and TSVD_BLAS_INIT,
 * TSVD_PLAN_INIT, TSVD_INFO_INIT and TSVD_INVERSE_INFO_INIT.  New fields come at the end, and zero
 * is their default.  So a program runs with versions of the library that are older or newer than
 * its header, from 0.1 on:
 *
 *     what is read     Fields that the program's header lacks have their defaults.  Those that the
 *                      library lacks must be zero, or the program asks for what the library does
 *                      not have: TSVD_ERR_ARGUMENT.
 *     what is filled   The library fills what both know, and zeroes the rest of `size` bytes.
 *                      `size` stays as it is.
 *
 * A size below that of version 0.1, or above 4096, is of a structure that was not initialised:
 * TSVD_ERR_ARGUMENT.  tsvd_array, tsvd_allocator, tsvd_error, tsvd_part, tsvd_cuda_device and
 * tsvd_cuda_crossover have no size, and never change.  Nor does the number of an enumerator, but
 * for those that count the others.
 *
 * Memory.  Results overlap neither the input nor each other, or the call is refused with
 * TSVD_ERR_ARGUMENT, and writes nothing.  What counts is the memory from the first to the last byte
 * of an array, with what is between its entries.  Arrays without entries overlap nothing, and
 * arrays of the input may share memory.  Addresses, and strides of more than one entry, are
 * multiples of the size of a number: on the host of that of a real one, on a CUDA device of that of
 * an entry.
 */
#ifndef TSVD_TSVD_H
#define TSVD_TSVD_H

#include <stddef.h>
#include <stdint.h>

#include "tsvd/export.h"
#include "tsvd/version.h"

/* The value that a structure which begins with its size has at first: that size, and zeros.  For
   initialisers; in C also as a compound literal, (tsvd_info)TSVD_INFO_INIT, and in C++ anywhere. */
#ifdef __cplusplus
template <class structure>
inline structure
tsvd_sized()
{
    structure s = structure();

    s.size = sizeof s;
    return s;
}
#define TSVD_SIZED(structure) tsvd_sized<structure>()
#else
#define TSVD_SIZED(structure)                                                                      \
    {                                                                                              \
        .size = sizeof(structure)                                                                  \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status and errors ---- */

/* What a call returns.  tsvd_strstatus() has one sentence for each. */
typedef enum tsvd_status {
    TSVD_OK = 0,
    TSVD_ERR_ARGUMENT,       /* an argument is outside its documented range */
    TSVD_ERR_NONFINITE,      /* d or e holds NaN or infinity */
    TSVD_ERR_MEMORY,         /* host or device memory is exhausted */
    TSVD_ERR_NO_CONVERGENCE, /* the bound on sweeps was reached */
    TSVD_ERR_INTERRUPTED,    /* options.check or part.sum asked to stop, another part of the call
                                has failed, or check forked: in the child */
    TSVD_ERR_NO_DEVICE,      /* the requested device cannot be used */
    TSVD_ERR_UNSUPPORTED,    /* the device does not offer the method */
    TSVD_ERR_CUDA,           /* a CUDA call failed */
    TSVD_ERR_LIBRARY,        /* a library that the work needs was not found */
    TSVD_ERR_SINGULAR,       /* a matrix has no inverse */
    TSVD_STATUS_COUNT
} tsvd_status;

/* What failed.  A function that is given one, not NULL, fills it on every status but TSVD_OK.  It
   need not be initialised. */
typedef struct tsvd_error {
    tsvd_status status;   /* what the function returned */
    int64_t matrix;       /* index of the matrix that failed, in the batch in C order: 0 of a single
                           matrix; -1: no matrix failed */
    int device;           /* number of the CUDA device that failed, or whose memory is exhausted;
                           TSVD_DEVICE_CPU: none */
    int64_t sweeps;       /* NO_CONVERGENCE, but not of DC: sweeps made; else 0 */
    uint64_t wanted;      /* MEMORY: bytes asked for; 0: unknown */
    uint64_t available;   /* MEMORY: bytes free; 0: unknown */
    char text[1024];      /* what happened, one sentence without a full stop */
    char advice[256];     /* what helps, in the words of this header; may be empty */
    uint64_t reserved[8]; /* 0; for what later versions have to say */
} tsvd_error;

/* What a status means, in one sentence.  It is not NULL, not even for a number that is no
   status. */
TSVD_API const char *tsvd_strstatus(tsvd_status status);

/* The version of the library: TSVD_VERSION of the headers that it was built with. */
TSVD_API const char *tsvd_version(void);

/* ---- arrays ---- */

/* Where an array lies. */
typedef enum tsvd_space {
    TSVD_HOST = 1, /* memory that the processor reads */
    TSVD_CUDA = 2  /* memory of the handle's CUDA device */
} tsvd_space;

/* The type of an array's entries.  A complex number is its real part and then its imaginary part,
   of float64 or float32: C's double _Complex and float _Complex, std::complex<double> and
   <float>. */
typedef enum tsvd_dtype {
    TSVD_FLOAT64 = 1,
    TSVD_FLOAT32 = 2,
    TSVD_COMPLEX128 = 3, /* dense matrices only, as is the next */
    TSVD_COMPLEX64 = 4
} tsvd_dtype;

/* Bytes of an entry; 0 for a number that is no dtype. */
TSVD_API size_t tsvd_dtype_size(tsvd_dtype dtype);

/* The dtype of the values of matrices, and of d and e: float64 for complex128, float32 for
   complex64, and else the dtype itself. */
TSVD_API tsvd_dtype tsvd_dtype_of_values(tsvd_dtype dtype);

/* Most leading dimensions of d and e, and most dimensions of an array. */
enum { TSVD_MAX_BATCH_DIMS = 32, TSVD_MAX_DIMS = TSVD_MAX_BATCH_DIMS + 2 };

/* An array of numbers, which belongs to the caller. */
typedef struct tsvd_array {
    void *data;       /* the first entry; NULL only if there is none.  Input is never written */
    tsvd_space space; /* where data points to */
    tsvd_dtype dtype; /* type of the entries */
    int ndim;         /* dimensions, 1 to TSVD_MAX_DIMS */
    int64_t shape[TSVD_MAX_DIMS];   /* entries along each dimension, >= 0 */
    int64_t strides[TSVD_MAX_DIMS]; /* bytes between entries; may be negative, and of input 0 */
} tsvd_array;

/* A C-contiguous array: the last index runs fastest.  On a CUDA device numbers lie at multiples of
   their size.  An ndim outside 0 .. TSVD_MAX_DIMS becomes the nearer of the two.  shape may be NULL
   if ndim is 0. */
TSVD_API tsvd_array tsvd_array_of(const void *data, tsvd_space space, tsvd_dtype dtype, int ndim,
                                  const int64_t *shape);

/* 1 if the memory of two arrays overlaps: from the first to the last byte of each, with what is
   between their entries. */
TSVD_API int tsvd_arrays_overlap(const tsvd_array *a, const tsvd_array *b);

/* ---- handle ---- */

/* Fortran's dgemm and sgemm.  All arguments are passed by reference, without hidden lengths.
   Integers have 32 bits (LP64) or 64 (ILP64). */
typedef void tsvd_dgemm32(const char *, const char *, const int32_t *, const int32_t *,
                          const int32_t *, const double *, const double *, const int32_t *,
                          const double *, const int32_t *, const double *, double *,
                          const int32_t *);
typedef void tsvd_sgemm32(const char *, const char *, const int32_t *, const int32_t *,
                          const int32_t *, const float *, const float *, const int32_t *,
                          const float *, const int32_t *, const float *, float *, const int32_t *);
typedef void tsvd_dgemm64(const char *, const char *, const int64_t *, const int64_t *,
                          const int64_t *, const double *, const double *, const int64_t *,
                          const double *, const int64_t *, const double *, double *,
                          const int64_t *);
typedef void tsvd_sgemm64(const char *, const char *, const int64_t *, const int64_t *,
                          const int64_t *, const float *, const float *, const int64_t *,
                          const float *, const int64_t *, const float *, float *, const int64_t *);

/* zgemm and cgemm, in the same way; their numbers are pairs of a real and an imaginary part. */
typedef tsvd_dgemm32 tsvd_zgemm32;
typedef tsvd_sgemm32 tsvd_cgemm32;
typedef tsvd_dgemm64 tsvd_zgemm64;
typedef tsvd_sgemm64 tsvd_cgemm64;

/* The same for LAPACK: dgetrf and sgetrf, dgetri and sgetri. */
typedef void tsvd_dgetrf32(const int32_t *, const int32_t *, double *, const int32_t *, int32_t *,
                           int32_t *);
typedef void tsvd_sgetrf32(const int32_t *, const int32_t *, float *, const int32_t *, int32_t *,
                           int32_t *);
typedef void tsvd_dgetrf64(const int64_t *, const int64_t *, double *, const int64_t *, int64_t *,
                           int64_t *);
typedef void tsvd_sgetrf64(const int64_t *, const int64_t *, float *, const int64_t *, int64_t *,
                           int64_t *);
typedef void tsvd_dgetri32(const int32_t *, double *, const int32_t *, const int32_t *, double *,
                           const int32_t *, int32_t *);
typedef void tsvd_sgetri32(const int32_t *, float *, const int32_t *, const int32_t *, float *,
                           const int32_t *, int32_t *);
typedef void tsvd_dgetri64(const int64_t *, double *, const int64_t *, const int64_t *, double *,
                           const int64_t *, int64_t *);
typedef void tsvd_sgetri64(const int64_t *, float *, const int64_t *, const int64_t *, float *,
                           const int64_t *, int64_t *);

/* A BLAS for divide and conquer of large matrices, n > 512, and for dense matrices, on the CPU.  It
   has both products of one integer size; the products of the other size are NULL.  Complex matrices
   need zgemm and cgemm of the same integer size too.  They are called from several threads at once,
   and may not fork the process.  The functions of LAPACK are not called, and may be NULL.  Start
   from TSVD_BLAS_INIT. */
typedef struct tsvd_blas {
    size_t size; /* sizeof(tsvd_blas) */
    tsvd_dgemm32 *dgemm32;
    tsvd_sgemm32 *sgemm32;
    tsvd_dgemm64 *dgemm64;
    tsvd_sgemm64 *sgemm64;
    tsvd_dgetrf32 *dgetrf32;
    tsvd_sgetrf32 *sgetrf32;
    tsvd_dgetrf64 *dgetrf64;
    tsvd_sgetrf64 *sgetrf64;
    tsvd_dgetri32 *dgetri32;
    tsvd_sgetri32 *sgetri32;
    tsvd_dgetri64 *dgetri64;
    tsvd_sgetri64 *sgetri64;
    tsvd_zgemm32 *zgemm32;
    tsvd_cgemm32 *cgemm32;
    tsvd_zgemm64 *zgemm64;
    tsvd_cgemm64 *cgemm64;
} tsvd_blas;

/* A tsvd_blas without functions. */
#define TSVD_BLAS_INIT TSVD_SIZED(tsvd_blas)

/* Workspace from the caller. */
typedef struct tsvd_allocator {
    /* Returns `bytes` > 0 bytes, or NULL if there are none.  Host memory is aligned to 64 bytes;
       `stream` is NULL, and calls come from several threads at once.  It may be pinned.  Device
       memory is aligned to 256 bytes, and is used in the order of the cudaStream_t `stream`. */
    void *(*allocate)(void *arg, size_t bytes, void *stream);

    /* Takes back what allocate() returned.  Device memory may still be used by work that is in
       `stream` by then. */
    void (*release)(void *arg, void *p, void *stream);

    void *arg; /* handed to both functions */
} tsvd_allocator;

/* The number that stands for the CPU where a device is asked for. */
enum { TSVD_DEVICE_CPU = -1 };

/* What a handle is made of.  Start from tsvd_config_init(). */
typedef struct tsvd_config {
    size_t size;           /* sizeof(tsvd_config) */
    int device;            /* TSVD_DEVICE_CPU, or a CUDA device's number >= 0.  Default: the CPU */
    int threads;           /* host threads; 0, the default: as many as OpenMP uses, 1 in a parallel
                              region; never more than 4 for each processor */
    void *stream;          /* cudaStream_t to work on, which outlives the handle or the next
                              tsvd_set_stream(); NULL, the default: one of the handle's own */
    const tsvd_blas *blas; /* copied; NULL, the default: the BLAS that the library is linked with,
                              if there is one */
    const tsvd_allocator *host_allocator;   /* copied; NULL, the default: the C library's */
    const tsvd_allocator *device_allocator; /* copied; NULL, the default: a memory pool of the
                                               handle's own */
    const char *const *library_paths; /* copied: directories where cuBLAS is looked for before the
                                         system's, in this order; NULL, the default: none */
    int64_t library_path_count;       /* number of directories; 0, the default */
} tsvd_config;

/* Makes a configuration with the default of every field.  size: sizeof(tsvd_config); no more bytes
   are written.  NULL: does nothing. */
TSVD_API void tsvd_config_init(tsvd_config *config, size_t size);

/* A device and what calls on it share. */
typedef struct tsvd_handle tsvd_handle;

/*
 * Makes a handle.
 *
 * config    NULL: the default
 * handle    out; NULL on failure
 * error     filled if not NULL
 *
 * A handle of a CUDA device makes CUDA's context there if there is none, and on no other device.
 * Until tsvd_trim() or tsvd_destroy() it keeps for the next call
 *
 *     device memory in a pool of its own, at most an eighth of the device's; a call that took more
 *     waits for its stream at the end and gives back the rest
 *     pinned memory on the host, which no plan counts: 2 MiB, 64 MiB more after a call with results
 *     of more than 2 MiB on the host, and 16 MiB more after one with a large batch there
 *     up to four handles of cuBLAS with cuBLAS's workspace, some 32 MiB of device memory each
 */
TSVD_API tsvd_status tsvd_create(const tsvd_config *config, tsvd_handle **handle,
                                 tsvd_error *error);

/* Ends a handle and all that it holds; NULL is allowed.  No call may be under way with it. */
TSVD_API void tsvd_destroy(tsvd_handle *handle);

/* The number of the handle's CUDA device, or TSVD_DEVICE_CPU.  A handle of NULL is allowed, and
   gives TSVD_DEVICE_CPU. */
TSVD_API int tsvd_handle_device(const tsvd_handle *handle);

/* Sets the host threads of later calls; 0: as many as OpenMP uses. */
TSVD_API tsvd_status tsvd_set_threads(tsvd_handle *handle, int threads, tsvd_error *error);

/* Sets the cudaStream_t of later calls; it must live as long as it is set.  NULL: the handle's own.
   TSVD_ERR_ARGUMENT if the handle is of the CPU. */
TSVD_API tsvd_status tsvd_set_stream(tsvd_handle *handle, void *stream, tsvd_error *error);

/* The cudaStream_t of later calls: the one that was set, or the handle's own.  NULL if the handle
   is of the CPU, or NULL. */
TSVD_API void *tsvd_handle_stream(const tsvd_handle *handle);

/* Makes the stream of later calls wait for the work that is now in `stream`.  The host does not
   wait.  stream: a cudaStream_t of the handle's device; NULL: the legacy default stream.
   TSVD_ERR_ARGUMENT if the handle is of the CPU, or its stream is being captured. */
TSVD_API tsvd_status tsvd_wait_for(tsvd_handle *handle, void *stream, tsvd_error *error);

/* Waits on the host for the work that is in the stream of later calls.  TSVD_ERR_ARGUMENT if the
   handle is of the CPU. */
TSVD_API tsvd_status tsvd_synchronize(tsvd_handle *handle, tsvd_error *error);

/* Sets the BLAS of later calls, which is copied.  NULL: the BLAS that the library is linked with,
   if there is one. */
TSVD_API tsvd_status tsvd_set_blas(tsvd_handle *handle, const tsvd_blas *blas, tsvd_error *error);

/* Returns cached memory, of the host and of the device, to the system. */
TSVD_API tsvd_status tsvd_trim(tsvd_handle *handle, tsvd_error *error);

/* ---- device memory for results ---- */

/* Memory of a CUDA device that may outlive the handle that it was taken from. */
typedef struct tsvd_memory tsvd_memory;

/*
 * Takes device memory where the handle takes its workspace: from its pool, or from
 * config.device_allocator, which must then live as long as the memory.
 *
 * bytes     0 counts as 1
 * memory    out; NULL on failure
 * error     filled if not NULL
 *
 * The memory is taken in the order of the handle's stream, and released in the order of that same
 * stream.  A stream that tsvd_set_stream() set must live until then.  The handle need not live so
 * long, and its stream may have been replaced by then.  TSVD_ERR_ARGUMENT if the handle is of the
 * CPU, or its stream is being captured; TSVD_ERR_MEMORY if the device has not that many bytes.
 */
TSVD_API tsvd_status tsvd_memory_take(tsvd_handle *handle, size_t bytes, tsvd_memory **memory,
                                      tsvd_error *error);

/* The first byte, on the device, aligned to 256 bytes. */
TSVD_API void *tsvd_memory_data(const tsvd_memory *memory);

/* The cudaStream_t in whose order the memory was taken. */
TSVD_API void *tsvd_memory_stream(const tsvd_memory *memory);

/* Makes `stream` wait for the work that is now in the memory's stream.  The host does not wait.
   stream: a cudaStream_t of the device; NULL: the legacy default stream.  From any thread.
   TSVD_ERR_NO_DEVICE in a child that was forked after the memory was taken. */
TSVD_API tsvd_status tsvd_memory_wait(const tsvd_memory *memory, void *stream, tsvd_error *error);

/* Gives memory back; NULL is allowed.  Work that is in its stream by then may still use it; work in
   other streams must be over, or ordered before work in that stream.  From any thread, before or
   after the end of the handle.  In a child that was forked meanwhile it leaves the device alone. */
TSVD_API void tsvd_memory_release(tsvd_memory *memory);

/* ---- options ---- */

/* How the values and vectors are found. */
typedef enum tsvd_method {
    TSVD_METHOD_AUTO = 0, /* the fastest method that meets the accuracy bounds */
    TSVD_METHOD_DC,       /* divide and conquer (Gu & Eisenstat 1995); values alone: as AUTO */
    TSVD_METHOD_QR,       /* implicit-shift QR (Demmel & Kahan 1990) */
    TSVD_METHOD_GIVENS,   /* pipelined zero-shift Givens sweeps (Semylitko & Malaschonok 2021) */
    TSVD_METHOD_BISECT,   /* Sturm counts on the Golub-Kahan form; values only */
    TSVD_METHOD_TWISTED,  /* twisted factorisations in twice the digits, each vector by itself
                             (Parlett & Dhillon; Willems & Lang 2012); DC for matrices where they do
                             not reach the accuracy; values alone: as AUTO */
    TSVD_METHOD_JACOBI,   /* dense matrices only: one-sided Jacobi, tiny values of A = B D to high
                             relative accuracy (Demmel & Veselic 1992) */
    TSVD_METHOD_COUNT
} tsvd_method;

/* The name of a method: "auto", "dc", ...; NULL for a number that is no method. */
TSVD_API const char *tsvd_method_name(tsvd_method method);

/* A call that makes some of the results of a larger one.  Several devices or processes share out
   the matrices of a batch so, or the values of a matrix, each with its first and count in
   tsvd_options.  All take the road that the larger call would, but for AUTO on the CPU, which asks
   each part whether TWISTED pays: with sum() they go one way, without it name the method.

   With sum() parts of a large dense matrix on several CUDA devices of one process, each on its own,
   share it out, if they want the same results, it is reduced in two stages (dense_stages), and the
   devices can read each other's memory.  Each has some of its columns then, or rows if those are
   fewer, and reads those alone of `a` on the host.  A plan counts the whole.  A part ends when all
   do. */
typedef struct tsvd_part {
    int64_t matrices;     /* in the batch of the larger call; not a batch: 1 */
    int64_t first, count; /* the values of the larger call, those of this one among them */
    /* For a single matrix; NULL: each part decides by itself where values turn out to be hard.  Or
       a function that adds x [count] up over all parts, entry by entry, and waits for them.  The
       calling threads of all parts call it in the same order, with the same count.  So each part
       must have a value, and all parts of a dense matrix the same kind of device.  An answer other
       than 0 stops the call with TSVD_ERR_INTERRUPTED, due where another part has failed. */
    int (*sum)(void *sum_arg, double *x, int64_t count);
    void *sum_arg; /* handed to sum() */
} tsvd_part;

/* What to compute and how.  Start from tsvd_options_init(). */
typedef struct tsvd_options {
    size_t size;        /* sizeof(tsvd_options) */
    tsvd_method method; /* AUTO, the default, or the one to use */
    int lower;     /* non-zero: e is the sub-diagonal, B = diag(d) + diag(e, -1).  Default: 0 */
    int64_t first; /* index of the first value that is wanted; 0, the default: the largest */
    int64_t count; /* how many are wanted from there on; -1, the default: all the rest; other
                      negative numbers are TSVD_ERR_ARGUMENT */
    double eps;    /* entries of this size or less count as zero, in the units of B; negative,
                      the default: full accuracy of the dtype */
    int64_t max_sweeps;     /* qr, jacobi: bound on the sweeps of each matrix; givens: on its half
                               sweeps, where a sweep of the QR that may finish it counts as two; 0,
                               the default: the method's own bound */
    int check_finite;       /* non-zero, the default: NaN or infinity is TSVD_ERR_NONFINITE; zero: a
                               matrix that holds one gives results filled with NaN */
    int64_t givens_blocks;  /* givens: blocks that the matrix is cut into; 0, the default: chosen */
    int64_t givens_threads; /* givens: half sweeps that run at once; 0, the default: n / 2 */
    int givens_split;       /* givens: non-zero, the default: the matrix is split where it falls
                               apart; zero: it stays whole to the end, with the same results */
    int fallback;           /* twisted: non-zero, the default: a matrix that it refuses goes to DC;
                               zero: such a matrix is TSVD_ERR_NO_CONVERGENCE */
    int dense_stages;       /* dense: stages of the reduction to bidiagonal form, 1: directly, or 2:
                               through a band; 0, the default: chosen */
    /* NULL, the default, or a function that the calling thread calls now and then, between pieces
       of work that it takes itself.  `done` is the share of the work that is done, in [0, 1].  It
       does not decrease.  An answer other than 0 stops the call with TSVD_ERR_INTERRUPTED.  If the
       function forks the process, the call ends with that status in the child, where later calls
       start threads anew.  No exception and no longjmp() may leave the function. */
    int (*check)(void *check_arg, double done);
    void *check_arg;       /* handed to check() */
    const tsvd_part *part; /* NULL, the default: the call is whole.  It must live as long as what is
                              prepared with it */
} tsvd_options;

/* Makes options with the default of every field.  size: sizeof(tsvd_options); no more bytes are
   written.  NULL: does nothing. */
TSVD_API void tsvd_options_init(tsvd_options *options, size_t size);

/* ---- plan ---- */

/* What a call will do and take.  Start from TSVD_PLAN_INIT. */
typedef struct tsvd_plan {
    size_t size;        /* sizeof(tsvd_plan) */
    tsvd_method method; /* the method that runs, never AUTO; BISECT if each matrix decides between
                           QR and BISECT by its entries, TWISTED if it decides between TWISTED and
                           DC */
    int64_t n;          /* order of every matrix */
    int64_t count;      /* values that are wanted of each matrix */
    int64_t matrices;   /* matrices in the batch */
    int64_t chunk;      /* matrices that each worker works on at once */
    int workers;        /* chunks that are worked on at once */
    int threads;        /* host threads of each worker */
    int needs_blas;     /* 1: the call uses a BLAS on the CPU if the handle has one.  Without a
                           BLAS methods DC and TWISTED, and vectors of a part of the values, fail */
    int direct;         /* 1: dense matrices are decomposed without being brought to bidiagonal form
                           as tsvd_dense_reduce() does it, by JACOBI, or by AUTO on the CPU where
                           they are small: then the bits are not those of a reduction */
    uint64_t
        result_bytes;    /* bytes of L, s and R, or of U, S and Vh, or of X; UINT64_MAX: too many to
                              address */
    uint64_t host_bytes; /* most bytes of workspace on the host; UINT64_MAX: too many to address.
                              For TWISTED: of a matrix that does not go to DC */
    uint64_t device_bytes; /* most bytes of workspace on the device; UINT64_MAX: too many to
                              address.  Where AUTO finds few of the values, and by TWISTED, a matrix
                              that goes to DC takes more */
} tsvd_plan;

/* A tsvd_plan with nothing in it. */
#define TSVD_PLAN_INIT TSVD_SIZED(tsvd_plan)

/*
 * What tsvd_svd() would do with these arguments.
 *
 * d, e      as for tsvd_svd(); data is not read and may be NULL
 * vectors   non-zero: L and R are wanted; 2: with the null vector, see there
 * plan      out.  Sizes that cannot be addressed give bytes of UINT64_MAX.  On TSVD_ERR_LIBRARY
 *           needs_blas is filled all the same
 *
 * On a CUDA device `chunk` depends on the device memory that is free now.
 */
TSVD_API tsvd_status tsvd_make_plan(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                                    const tsvd_options *options, int vectors, tsvd_plan *plan,
                                    tsvd_error *error);

/* ---- the decomposition ---- */

/* What was done, summed over the batch.  Start from TSVD_INFO_INIT. */
typedef struct tsvd_info {
    size_t size;              /* sizeof(tsvd_info) */
    tsvd_method method;       /* the method that ran */
    int64_t sweeps;           /* passes over (a part of) the matrix; givens: half sweeps, two
                                 for each sweep of the QR that finishes a matrix */
    int64_t iterations;       /* givens: loop steps of all threads of the pipeline, including empty
                                 steps and the rotations of QR; qr: steps of all sweeps; bisect:
                                 Sturm counts */
    int64_t iterations_saved; /* givens: empty steps among the iterations, left out by splitting */
    int64_t rotations;        /* Givens rotations made, right and left together */
    int64_t deflated;         /* off-diagonal entries set to zero because they were negligible; dc:
                                 deflated values, over all merges */
    int64_t refused;          /* twisted: values that failed a check; DC took their matrix */
    double seconds_iterate;   /* scalar work on d and e; dc: leaves, deflation, secular equations */
    double seconds_vectors;   /* rotations or products applied to L and R, order and signs */
    double seconds_values;    /* bisection of s */
    double seconds_device;    /* dc on CUDA: from d and e on the device to all results there */
    double seconds_reduce;    /* dense: from the matrix to bidiagonal form */
    double seconds_band;      /* dense, of that: to a band, if it takes two stages */
    double seconds_chase;     /* dense, of that: from the band to bidiagonal form */
    double seconds_back;      /* dense: from the vectors of that form to those of the matrix */
    double seconds_total;     /* the whole call */
} tsvd_info;

/* A tsvd_info with nothing in it. */
#define TSVD_INFO_INIT TSVD_SIZED(tsvd_info)

/*
 * The SVD of every matrix of a batch, or the part of it that belongs to a range of values.
 *
 * handle    where to compute
 * d, e      the diagonals, (batch..., n) and (batch..., n-1), of one dtype and in one space, with
 *           any strides; the batch dimensions broadcast.  For n <= 1 e is empty, or NULL.  With n
 *           entries of e, n > 0, matrices have a column more than rows, n x (n+1), or with
 *           options.lower a row more than columns
 * options   NULL: the defaults
 * L, s, R   out, (batch..., rows, k), (batch..., k), (batch..., k, columns) for the k wanted
 *           values: of the dtype of d, and all in one space.  That may be another
 *           than the space of d and e.  They overlap neither the input nor each other.  L and R are
 *           NULL if values alone are wanted.  If all values are wanted, R of n x (n+1) matrices may
 *           have n + 1 rows, and L of (n+1) x n matrices n + 1 columns: the last one is the null
 *           vector
 * info      filled if not NULL
 * error     filled if not NULL and the status is not TSVD_OK
 *
 * Arrays of a CUDA device need a handle of that device.  They are read and written in the order
 * of its stream.  The call returns when results on the host are there.  It may return before
 * results on the device are.  On error the contents of s, L and R are unspecified.
 *
 * Vectors of a part, k < n, are computed by AUTO, DC and TWISTED; QR and GIVENS refuse them.
 *
 * Accuracy  s to a few ulps each (all methods), or with an extra row or column to a small multiple
 *           of n u, relative to itself; below the smallest normal number the nearest
 *           number; infinity only from the next power of two above the largest number on.
 *           B - L S R and orthogonality to a small multiple of n u.
 * Signs     the entry of largest magnitude in each column of L is positive; if several are equal,
 *           the first of them.
 * Work      O(n k) for s by AUTO and BISECT, and for vectors by TWISTED; O(n^3) for vectors by the
 *           other methods.  dc makes at most 8/3 n^3 multiplications and additions in matrix
 *           products, and of those of its last level only the share k / n.
 * Memory    the results, and the workspace that tsvd_make_plan() tells.
 * Stops     options->check() is asked at least once for each level (dc), window of sweeps (qr),
 *           round (givens) and matrix (bisect).
 */
TSVD_API tsvd_status tsvd_svd(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                              const tsvd_options *options, const tsvd_array *L, const tsvd_array *s,
                              const tsvd_array *R, tsvd_info *info, tsvd_error *error);

/*
 * Which values of one matrix lie in (low, high]: the range for tsvd_options.
 *
 * d, e          (n) and (n-1) or (n), as for tsvd_svd()
 * options       NULL: the defaults; only check_finite is read
 * low, high     the bounds, in the units of B and of any sign.  An infinite one bounds nothing.
 *               TSVD_ERR_ARGUMENT unless low < high
 * first, count  out: the values first .. first + count - 1 lie in the interval.  count is 0 if none
 *               does, or if d or e holds NaN or infinity and check_finite is 0; first is then any
 *               number up to n
 *
 * Accuracy  exact for values that numbers of the dtype represent; else within one ulp of a bound.
 *           Below the smallest normal number a value counts as the nearest number; from the next
 *           power of two above the largest number on it counts as infinity.
 * Work      two Sturm counts, O(n), on the host; O(n) memory.
 */
TSVD_API tsvd_status tsvd_select(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                                 const tsvd_options *options, double low, double high,
                                 int64_t *first, int64_t *count, tsvd_error *error);

/* ---- dense matrices ---- */

/*
 * The SVD of every matrix of a batch, A = U diag(S) Vh, or the part of it that belongs to a range
 * of values; A is m x n, and p the smaller of the two.
 *
 * handle    where to compute
 * a         the matrices, (batch..., m, n), with any strides; never written
 * options   NULL: the defaults.  Those of givens, eps and max_sweeps hold for the bidiagonal
 *           matrix; lower must be 0
 * U, S, Vh  out, (batch..., m, k), (batch..., k), (batch..., k, n) for the k wanted values:
 *           of the dtype of a, all in one space, which may be another than that of
 *           a.  If all values are wanted U may be (batch..., m, m) and Vh (batch..., n, n): then
 *           their further columns and rows complete the bases.  They overlap neither a nor each
 *           other.  U and Vh are NULL if values alone are wanted
 * info      filled if not NULL
 * error     filled if not NULL and the status is not TSVD_OK
 *
 * What tsvd_svd() says of devices, streams, errors, progress and the floating-point environment
 * holds here too.  On the CPU the handle needs a BLAS, else the status is TSVD_ERR_LIBRARY.
 *
 * Method    Householder's reduction to a bidiagonal matrix (Golub & Kahan 1965), after QR of a
 *           matrix with many more rows than columns, or columns than rows (Chan 1982); the SVD of
 *           that; the reflectors on its vectors.  The matrix is scaled by a power of two.  JACOBI:
 *           one-sided Jacobi on the matrix itself (Demmel & Veselic 1992), which may come after QR
 *           (Drmac & Veselic 2008) or after AUTO; eps is refused.
 * Accuracy  A - U S Vh and orthogonality to a small multiple of max(m, n) u; each value to a small
 *           multiple of p u, relative to the largest; by JACOBI of A = B D, D diagonal, to a small
 *           multiple of p cond(B) u, relative to itself.
 * Signs     as for tsvd_svd(): the entry of largest magnitude in each of the first k columns of U
 *           is positive.
 * Work      O(m n p); 8/3 p^3 multiplications and additions, and as many as that for each of U and
 *           Vh, if m = n.
 */
TSVD_API tsvd_status tsvd_dense_svd(tsvd_handle *handle, const tsvd_array *a,
                                    const tsvd_options *options, const tsvd_array *U,
                                    const tsvd_array *S, const tsvd_array *Vh, tsvd_info *info,
                                    tsvd_error *error);

/* What tsvd_dense_svd() would do.  a: data is not read and may be NULL.  vectors: 0: values alone;
   1: U and Vh are wanted; 2: with all columns of U and all rows of Vh.  plan: of the bidiagonal
   matrices, or of JACOBI, with the bytes of the whole call; on TSVD_ERR_LIBRARY needs_blas is
   filled. */
TSVD_API tsvd_status tsvd_dense_plan(tsvd_handle *handle, const tsvd_array *a,
                                     const tsvd_options *options, int vectors, tsvd_plan *plan,
                                     tsvd_error *error);

/* Dense matrices in bidiagonal form, A = Q B P^T, with what products by Q and P need. */
typedef struct tsvd_reduction tsvd_reduction;

/* Q and P of a reduction. */
typedef enum tsvd_side { TSVD_LEFT = 1, TSVD_RIGHT = 2 } tsvd_side;

/*
 * Reduces every matrix of a batch to bidiagonal form.  Of one that holds NaN or infinity, which
 * check_finite refuses, B and all products with Q and P are NaN.
 *
 * a          as for tsvd_dense_svd().  It may still be read after the call, until a later call
 *            returns results on the host, or the handle's stream has passed this work
 * options    NULL: the defaults; check_finite, check and check_arg are read
 * reduction  out; NULL on failure.  It uses the handle until tsvd_reduction_destroy()
 * error      filled if not NULL
 */
TSVD_API tsvd_status tsvd_dense_reduce(tsvd_handle *handle, const tsvd_array *a,
                                       const tsvd_options *options, tsvd_reduction **reduction,
                                       tsvd_error *error);

/* Ends a reduction; NULL is allowed. */
TSVD_API void tsvd_reduction_destroy(tsvd_reduction *reduction);

/* B: d (batch..., p) and e (batch..., p-1), out, C-contiguous, of the dtype of a.  For p <= 1 e is
   not written and may be NULL.  e is above the diagonal if m >= n, and below it if m < n. */
TSVD_API tsvd_status tsvd_reduction_entries(const tsvd_reduction *reduction, const tsvd_array *d,
                                            const tsvd_array *e, tsvd_error *error);

/* Which values of the one matrix of a reduction lie in (low, high]: as tsvd_select() for a
   bidiagonal one.  The bounds are compared with the values as tsvd_reduction_svd() gives them at
   full accuracy, also subnormal ones and infinity.  NaN or infinity in A gives a count of 0. */
TSVD_API tsvd_status tsvd_reduction_select(tsvd_reduction *reduction, double low, double high,
                                           int64_t *first, int64_t *count, tsvd_error *error);

/* Replaces X by Q X, or Q^T X if `transposed`, or the same for P.  x: (batch..., m, c) for Q and
   (batch..., n, c) for P, any c, C-contiguous, of the dtype of a, in and out.  options: NULL: the
   defaults; check and check_arg are read. */
TSVD_API tsvd_status tsvd_reduction_apply(tsvd_reduction *reduction, tsvd_side side, int transposed,
                                          const tsvd_array *x, const tsvd_options *options,
                                          tsvd_error *error);

/* The rest of tsvd_dense_svd(), with the same arguments.  May be called several times. */
TSVD_API tsvd_status tsvd_reduction_svd(tsvd_reduction *reduction, const tsvd_options *options,
                                        const tsvd_array *U, const tsvd_array *S,
                                        const tsvd_array *Vh, tsvd_info *info, tsvd_error *error);

/* A reduction as bytes in host memory: save() fills state_bytes() of them, 0 for NULL.  restore()
   makes a reduction of them that gives the same bits, for a handle of a device of the same kind, in
   this version of tsvd; those of another shape, dtype, kind of device or version are
   TSVD_ERR_ARGUMENT.  a: of the shape and the dtype of the matrices; its data is not read and may
   be NULL. */
TSVD_API uint64_t tsvd_reduction_state_bytes(const tsvd_reduction *reduction);
TSVD_API tsvd_status tsvd_reduction_save(const tsvd_reduction *reduction, void *state,
                                         tsvd_error *error);
TSVD_API tsvd_status tsvd_reduction_restore(tsvd_handle *handle, const tsvd_array *a,
                                            const void *state, uint64_t bytes,
                                            tsvd_reduction **reduction, tsvd_error *error);

/* ---- the inverse ---- */

/* Facts about the inverses of a batch.  Start from TSVD_INVERSE_INFO_INIT. */
typedef struct tsvd_inverse_info {
    size_t size;          /* sizeof(tsvd_inverse_info) */
    double rcond;         /* the smallest reciprocal condition, 1 / (|A|_1 |X|_1), of the matrices
                             that are finite, to six digits; with the infinity norm where X lies by
                             columns, as the transposes are inverted; NaN if no matrix is finite,
                             infinity if there is no entry */
    int64_t matrix;       /* the matrix that has it, or the first one; -1: there is no entry */
    double seconds_total; /* the whole call */
} tsvd_inverse_info;

/* A tsvd_inverse_info with nothing in it. */
#define TSVD_INVERSE_INFO_INIT TSVD_SIZED(tsvd_inverse_info)

/*
 * The inverse of every matrix of a batch.
 *
 * handle    where to compute
 * a         the matrices, (batch..., n, n), with any strides; never written
 * options   NULL: the defaults; check_finite, check and check_arg are read.  With check_finite = 0
 *           a matrix that holds NaN or infinity gives NaN
 * refine    non-zero: one step of Newton's iteration where it converges
 * X         out, the inverses: of the shape and the dtype of a, in any space.  It
 *           overlaps a nowhere
 * info      filled if not NULL
 * error     filled if not NULL and the status is not TSVD_OK
 *
 * TSVD_ERR_SINGULAR names the first matrix of which a pivot is exactly zero.  What tsvd_svd() says
 * of devices, streams, errors, progress and the floating-point environment holds here too.  On the
 * CPU the handle needs a BLAS, else the status is TSVD_ERR_LIBRARY.
 *
 * Method    LU decomposition with partial pivoting on the CPU, Gauss-Jordan elimination with
 *           partial pivoting on CUDA devices.  Where pivots grow beyond 4 n times the largest
 *           entry, QR by Householder reflectors takes their place.  Rows and columns are scaled by
 *           powers of two; what underflows then is zero.  Entries of X above the largest number are
 *           infinite.
 *
 * Accuracy  the smaller of A X - I and X A - I to a small multiple of n u |A| |X|, also without
 *           refine.  With refine the relative error of X is squared, unless A is close to a
 *           singular matrix.
 *
 * Work      2 n^3 multiplications and additions; 4 to 8 n^3 more with refine.
 */
TSVD_API tsvd_status tsvd_dense_inverse(tsvd_handle *handle, const tsvd_array *a,
                                        const tsvd_options *options, int refine,
                                        const tsvd_array *X, tsvd_inverse_info *info,
                                        tsvd_error *error);

/* What tsvd_dense_inverse() would take, for results where a is: n, matrices, chunk, needs_blas and
   the bytes are filled.  A matrix whose inverse needs numbers beyond the range, or whose pivots
   grow on a CUDA device, takes more workspace at its turn.  a: data is not read and may be NULL. */
TSVD_API tsvd_status tsvd_inverse_plan(tsvd_handle *handle, const tsvd_array *a,
                                       const tsvd_options *options, int refine, tsvd_plan *plan,
                                       tsvd_error *error);

/* ---- prepared calls ---- */

/* A call whose arguments are checked and whose plan is made, for arrays of the same shapes and
   strides again and again.  It uses its handle, and is used by one thread at a time with it.  To be
   destroyed before the handle. */
typedef struct tsvd_prepared tsvd_prepared;

/*
 * Prepares tsvd_svd(), tsvd_dense_svd() and tsvd_dense_inverse().
 *
 * d, e, a   as for these functions; data is not read and may be NULL
 * options   NULL: the defaults.  They are copied
 * vectors   as for tsvd_make_plan() and tsvd_dense_plan()
 * refine    as for tsvd_dense_inverse()
 * to        where the results will lie: TSVD_HOST, or TSVD_CUDA with a handle of a CUDA device
 * plan      filled if not NULL, as tsvd_make_plan() does
 * prepared  out; NULL on failure
 *
 * What is prepared goes by the handle as it is now: its threads, its BLAS, its allocator.  On a
 * CUDA device it goes by the memory that is free now: where there is less later, execution may fail
 * with TSVD_ERR_MEMORY.  Where the plan says needs_blas, and the handle's BLAS is taken away later,
 * execution fails with TSVD_ERR_LIBRARY; another BLAS may take its place.
 */
TSVD_API tsvd_status tsvd_prepare(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                                  const tsvd_options *options, int vectors, tsvd_space to,
                                  tsvd_plan *plan, tsvd_prepared **prepared, tsvd_error *error);
TSVD_API tsvd_status tsvd_dense_prepare(tsvd_handle *handle, const tsvd_array *a,
                                        const tsvd_options *options, int vectors, tsvd_space to,
                                        tsvd_plan *plan, tsvd_prepared **prepared,
                                        tsvd_error *error);
TSVD_API tsvd_status tsvd_inverse_prepare(tsvd_handle *handle, const tsvd_array *a,
                                          const tsvd_options *options, int refine, tsvd_space to,
                                          tsvd_plan *plan, tsvd_prepared **prepared,
                                          tsvd_error *error);
TSVD_API void tsvd_prepared_destroy(tsvd_prepared *prepared); /* NULL: does nothing */

/* Sets options.check and check_arg of later executions.  prepared: NULL: does nothing. */
TSVD_API void tsvd_prepared_set_check(tsvd_prepared *prepared,
                                      int (*check)(void *check_arg, double done), void *check_arg);

/*
 * Does what tsvd_svd(), tsvd_dense_svd() and tsvd_dense_inverse() do, with the same results, bit by
 * bit, and the same errors.
 *
 * d, e, a   the data of the input: of the dtype, the shape, the strides and the space that the
 *           prepared arrays had
 * L, s, R   out, the data of the results of tsvd_execute(): C-contiguous, in the shapes of
 *           tsvd_svd(), in the space `to`.  L and R are not used if no vectors are wanted
 * U, S, Vh  out, likewise of tsvd_dense_execute()
 * X         out, likewise of tsvd_inverse_execute()
 * info      filled if not NULL
 * error     filled if not NULL and the status is not TSVD_OK
 */
TSVD_API tsvd_status tsvd_execute(tsvd_prepared *prepared, const void *d, const void *e, void *L,
                                  void *s, void *R, tsvd_info *info, tsvd_error *error);
TSVD_API tsvd_status tsvd_dense_execute(tsvd_prepared *prepared, const void *a, void *U, void *S,
                                        void *Vh, tsvd_info *info, tsvd_error *error);
TSVD_API tsvd_status tsvd_inverse_execute(tsvd_prepared *prepared, const void *a, void *X,
                                          tsvd_inverse_info *info, tsvd_error *error);

/* ---- the machine ---- */

/* Bytes of host memory that can be taken without swapping; 0 if unknown. */
TSVD_API uint64_t tsvd_host_memory_available(void);

/* Threads that a handle with threads = 0 uses at most; a call takes fewer if it has work for
   fewer. */
TSVD_API int tsvd_host_threads(void);

/* The instruction set of the CPU kernels: "avx512", "avx2" or "generic", the best that the
   processor runs.  For tests, the environment variable TSVD_CPU_KERNELS names one of them.  It is
   read once, when the library is loaded.  With any other name, or one that the processor lacks,
   tsvd_create() fails with TSVD_ERR_ARGUMENT. */
TSVD_API const char *tsvd_cpu_kernels(void);

/* 1 if the library is linked with a BLAS. */
TSVD_API int tsvd_has_blas(void);

/* 1 if the CUDA back end is compiled in, or was opened by tsvd_cuda_load().  If not, the functions
   below say so in their error. */
TSVD_API int tsvd_cuda_compiled(void);

/* Opens the device library in a build without CUDA.  Does nothing if one is open, or if the back
   end is compiled in.  file: its path, such as that of libtsvd_cuda13.so in the wheel tsvd-cuda13.
   It stays open until the process ends.  TSVD_ERR_LIBRARY if it cannot be opened, or is of another
   minor version of tsvd.  From any thread, before the first other question about CUDA. */
TSVD_API tsvd_status tsvd_cuda_load(const char *file, tsvd_error *error);

/* The compute capabilities that the back end holds code for, as CMAKE_CUDA_ARCHITECTURES lists them
   with commas: "75-real,90".  "" if they are unknown, or there is no back end. */
TSVD_API const char *tsvd_cuda_architectures(void);

/* Versions of CUDA as 1000 major + 10 minor; 0: none.  *runtime is the one that the back end was
   compiled with, *driver the newest that the driver knows. */
TSVD_API void tsvd_cuda_versions(int *runtime, int *driver);

/* Facts about a CUDA device. */
typedef struct tsvd_cuda_device {
    char name[256];        /* the model */
    uint64_t memory_total; /* bytes */
    uint64_t memory_free;  /* bytes; 0: unknown, since the process has no context on the device */
    int major, minor;      /* compute capability */
    int multiprocessors;   /* number of streaming multiprocessors */
    int clock_khz;         /* their highest clock */
    int single_to_double;  /* operations in float32 for one in float64, in the same time */
    int memory_pools;      /* 1: has the stream-ordered memory pools that tsvd needs */
    uint64_t reserved[8];  /* 0; for facts that later versions tell */
} tsvd_cuda_device;

/* *count: the number of devices that CUDA shows.  If there is none, the status is
   TSVD_ERR_NO_DEVICE, and the error says why. */
TSVD_API tsvd_status tsvd_cuda_device_count(int *count, tsvd_error *error);

/* TSVD_OK if this build can compute on device 0 <= index < count; TSVD_ERR_NO_DEVICE, with the
   reason, if it holds no code for it, or the device has no memory pools.  Makes no context on the
   device.  What shows only there, such as a driver that compiles no PTX, makes tsvd_create() fail.
 */
TSVD_API tsvd_status tsvd_cuda_device_usable(int index, tsvd_error *error);

/* Fills *device with the facts about device 0 <= index < count.  Makes no context there.  It takes
   CUDA some milliseconds. */
TSVD_API tsvd_status tsvd_cuda_device_facts(int index, tsvd_cuda_device *device, tsvd_error *error);

/* *device: the number of the CUDA device whose memory holds the address.  Makes no context.
   TSVD_ERR_ARGUMENT if no device's does, TSVD_ERR_NO_DEVICE if there is no driver. */
TSVD_API tsvd_status tsvd_cuda_device_of(const void *data, int *device, tsvd_error *error);

/* Sizes from which on a CUDA device is the faster place for arrays in host memory. */
typedef struct tsvd_cuda_crossover {
    int64_t order;        /* of a matrix; INT64_MAX: the CPU is always faster */
    int64_t batch_values; /* values that a batch has in all; INT64_MAX: the same */
} tsvd_cuda_crossover;

/* The crossover of a device with these facts; vectors: 0: values alone.  Measured on one H200
   against 16 cores, and scaled by the rates of the device: the head of csrc/api/crossover.c has the
   model.  NULL: the least crossover of all devices. */
TSVD_API tsvd_cuda_crossover tsvd_cuda_crossover_of(const tsvd_cuda_device *device,
                                                    tsvd_dtype dtype, int vectors);

/* 1 if the device is the faster place for `matrices` matrices of order n in host memory: it offers
   the method, and they are beyond the crossover. */
TSVD_API int tsvd_cuda_pays(const tsvd_cuda_device *device, tsvd_dtype dtype, tsvd_method method,
                            int64_t n, int64_t matrices, int vectors);

/* The same for dense matrices, by tsvd_dense_svd(). */
TSVD_API int tsvd_cuda_pays_dense(const tsvd_cuda_device *device, tsvd_dtype dtype,
                                  tsvd_method method, int64_t rows, int64_t columns,
                                  int64_t matrices, int vectors);

/* Opens cuBLAS of a major version of CUDA.  0 stands for the version that tsvd was compiled with,
   the only one that it computes with.  config (NULL: the default) says where to look; file[size]
   gets the path.  On TSVD_ERR_LIBRARY the error says what to install and every place tried. */
TSVD_API tsvd_status tsvd_cuda_blas(const tsvd_config *config, int major, char *file, size_t size,
                                    tsvd_error *error);

#ifdef __cplusplus
}
#endif
#endif
