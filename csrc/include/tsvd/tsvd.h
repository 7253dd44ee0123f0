/*
 * tsvd: the singular value decomposition of bidiagonal matrices.
 *
 *     B = diag(d) + diag(e, 1) = L diag(s) R,   L, R orthogonal, s descending, s >= 0
 *
 * A handle stands for a device and keeps what calls share: a stream, a BLAS, cached memory.
 * Arrays say where numbers lie.  A plan tells beforehand what a call will do, and how many bytes
 * it will take.
 *
 *     tsvd_config config = tsvd_config_default();
 *     tsvd_handle *handle = NULL;
 *     int64_t n = 3, off = 2;
 *     double d[] = {1, 2, 3}, e[] = {1, 1}, s[3];
 *     tsvd_array d_array = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT64, 1, &n);
 *     tsvd_array e_array = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT64, 1, &off);
 *     tsvd_array s_array = tsvd_array_of(s, TSVD_HOST, TSVD_FLOAT64, 1, &n);
 *     tsvd_error error;
 *
 *     if (tsvd_create(&config, &handle, &error) != TSVD_OK ||
 *         tsvd_svd(handle, &d_array, &e_array, NULL, NULL, &s_array, NULL, NULL, &error) !=
 *             TSVD_OK) {
 *         puts(error.text);
 *     }
 *     tsvd_destroy(handle);
 *
 * Threads.  Functions that take a handle may be called from many threads, but not at the same time
 * with the same handle.  The other functions may be called from any thread at any time.
 *
 * NULL.  A handle that is NULL is TSVD_ERR_ARGUMENT, but where its function allows it.  Every
 * `error` may be NULL.
 *
 * Structures.  tsvd_config and tsvd_options begin with their size, which their default functions
 * set; an array has a space and a dtype that are not zero.  A structure that is zero, or that
 * belongs to another version of this header, is TSVD_ERR_ARGUMENT.
 */
#ifndef TSVD_TSVD_H
#define TSVD_TSVD_H

#include <stddef.h>
#include <stdint.h>

#include "tsvd/export.h"
#include "tsvd/version.h"

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
    TSVD_ERR_INTERRUPTED,    /* options.check asked to stop */
    TSVD_ERR_NO_DEVICE,      /* the requested device cannot be used */
    TSVD_ERR_UNSUPPORTED,    /* the device does not offer the method */
    TSVD_ERR_CUDA,           /* a CUDA call failed */
    TSVD_ERR_LIBRARY,        /* a library that the work needs was not found */
    TSVD_STATUS_COUNT
} tsvd_status;

/* Filled on every status but TSVD_OK, where a function is given one that is not NULL. */
typedef struct tsvd_error {
    tsvd_status status;
    int64_t matrix;     /* index of the matrix within the batch, C order; -1: no matrix's */
    int64_t sweeps;     /* NO_CONVERGENCE: sweeps made; else 0 */
    uint64_t wanted;    /* MEMORY: bytes asked for; 0: unknown */
    uint64_t available; /* MEMORY: bytes free; 0: unknown */
    char text[1024];    /* what happened, one sentence without a full stop */
    char advice[256];   /* what helps, in the words of this header; may be empty */
} tsvd_error;

/* One sentence, never NULL, also for numbers that are no status. */
TSVD_API const char *tsvd_strstatus(tsvd_status status);

/* The version of the library: TSVD_VERSION of the headers that it was built with. */
TSVD_API const char *tsvd_version(void);

/* ---- arrays ---- */

/* Where an array lies. */
typedef enum tsvd_space {
    TSVD_HOST = 1, /* memory that the processor reads */
    TSVD_CUDA = 2  /* memory of the handle's CUDA device */
} tsvd_space;

typedef enum tsvd_dtype { TSVD_FLOAT64 = 1, TSVD_FLOAT32 = 2 } tsvd_dtype;

enum { TSVD_MAX_BATCH_DIMS = 32, TSVD_MAX_DIMS = TSVD_MAX_BATCH_DIMS + 2 };

/* An array of numbers, which belongs to the caller. */
typedef struct tsvd_array {
    void *data;       /* the first entry; input is never written.  NULL only if there is none */
    tsvd_space space; /* where data points to */
    tsvd_dtype dtype;
    int ndim;                       /* 1 to TSVD_MAX_DIMS */
    int64_t shape[TSVD_MAX_DIMS];   /* entries along each dimension, >= 0 */
    int64_t strides[TSVD_MAX_DIMS]; /* bytes between entries; input's may be negative or 0 */
} tsvd_array;

/* A C-contiguous array: the last index runs fastest.  ndim is cut to 0 .. TSVD_MAX_DIMS; shape may
   be NULL if it is 0. */
TSVD_API tsvd_array tsvd_array_of(const void *data, tsvd_space space, tsvd_dtype dtype, int ndim,
                                  const int64_t *shape);

/* ---- handle ---- */

/* Fortran's dgemm and sgemm, all arguments by reference, without hidden lengths; with integers of
   32 bits (LP64) or 64 (ILP64). */
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

/* A BLAS for divide and conquer on the CPU: both functions of one integer size, the others NULL.
   They are called from several threads at once. */
typedef struct tsvd_blas {
    tsvd_dgemm32 *dgemm32;
    tsvd_sgemm32 *sgemm32;
    tsvd_dgemm64 *dgemm64;
    tsvd_sgemm64 *sgemm64;
} tsvd_blas;

/* Workspace from the caller. */
typedef struct tsvd_allocator {
    /* So many bytes > 0, or NULL: there are none.  On the host aligned to 64 bytes, `stream` is
       NULL, and calls come from several threads at once; on a device aligned to 256 bytes, and to
       be used in the order of the cudaStream_t `stream`. */
    void *(*allocate)(void *arg, size_t bytes, void *stream);
    /* Gives back what allocate() returned, in the same order. */
    void (*release)(void *arg, void *p, void *stream);
    void *arg;
} tsvd_allocator;

enum { TSVD_DEVICE_CPU = -1 };

/* What a handle is made of.  Start from tsvd_config_default(). */
typedef struct tsvd_config {
    size_t size;           /* sizeof(tsvd_config) */
    int device;            /* TSVD_DEVICE_CPU, or a CUDA device's number >= 0.  Default: the CPU */
    int threads;           /* host threads; 0, the default: as many as OpenMP uses */
    void *stream;          /* cudaStream_t to work on; NULL, the default: one of the handle's own */
    const tsvd_blas *blas; /* copied; NULL, the default: the BLAS that the library is linked with,
                              if it is */
    const tsvd_allocator *host_allocator;   /* copied; NULL, the default: the C library's */
    const tsvd_allocator *device_allocator; /* copied; NULL, the default: a memory pool of the
                                               handle's own */
    const char *const *library_paths; /* copied: directories where cuBLAS is looked for before the
                                         system's, in this order; NULL, the default: none */
    int64_t library_path_count;
} tsvd_config;

TSVD_API tsvd_config tsvd_config_default(void);

typedef struct tsvd_handle tsvd_handle;

/*
 * Makes a handle.
 *
 * config    NULL: the default
 * handle    out; NULL on failure
 * error     filled if not NULL
 *
 * A handle of a CUDA device makes CUDA's context there if there is none.  Memory that calls free
 * stays with the handle for the next call, until tsvd_trim() or tsvd_destroy().
 */
TSVD_API tsvd_status tsvd_create(const tsvd_config *config, tsvd_handle **handle,
                                 tsvd_error *error);

/* Ends a handle and all that it holds; NULL is allowed.  No call is under way with it. */
TSVD_API void tsvd_destroy(tsvd_handle *handle);

/* TSVD_DEVICE_CPU or the number of the handle's CUDA device; NULL: TSVD_DEVICE_CPU. */
TSVD_API int tsvd_handle_device(const tsvd_handle *handle);

/* Host threads of later calls; 0: as many as OpenMP uses. */
TSVD_API tsvd_status tsvd_set_threads(tsvd_handle *handle, int threads, tsvd_error *error);

/* The cudaStream_t of later calls, NULL: the handle's own.  TSVD_ERR_ARGUMENT for the CPU. */
TSVD_API tsvd_status tsvd_set_stream(tsvd_handle *handle, void *stream, tsvd_error *error);

/* The BLAS of later calls; copied.  NULL: the BLAS that the library is linked with, if it is. */
TSVD_API tsvd_status tsvd_set_blas(tsvd_handle *handle, const tsvd_blas *blas, tsvd_error *error);

/* Returns cached memory, of the host and of the device, to the system. */
TSVD_API tsvd_status tsvd_trim(tsvd_handle *handle, tsvd_error *error);

/* ---- options ---- */

typedef enum tsvd_method {
    TSVD_METHOD_AUTO = 0, /* the fastest method that meets the accuracy bounds */
    TSVD_METHOD_DC,       /* divide and conquer (Gu & Eisenstat 1995); values alone: as AUTO */
    TSVD_METHOD_QR,       /* implicit-shift QR (Demmel & Kahan 1990) */
    TSVD_METHOD_GIVENS,   /* pipelined zero-shift Givens sweeps (Semylitko & Malaschonok 2021) */
    TSVD_METHOD_BISECT,   /* Sturm counts on the Golub-Kahan form; values only */
    TSVD_METHOD_COUNT
} tsvd_method;

/* "auto", "dc", ...; NULL for a number that is no method. */
TSVD_API const char *tsvd_method_name(tsvd_method method);

/* What to compute and how.  Start from tsvd_options_default(). */
typedef struct tsvd_options {
    size_t size; /* sizeof(tsvd_options) */
    tsvd_method method;
    int lower;          /* non-zero: e is the sub-diagonal, B = diag(d) + diag(e, -1) */
    int64_t first;      /* index of the first value that is wanted; 0, the default: the largest */
    int64_t count;      /* how many are wanted from there on; -1, the default: all the rest; other
                           negative numbers are TSVD_ERR_ARGUMENT */
    double eps;         /* what is of this size or less counts as zero, in the units of B;
                           negative, the default: full accuracy of the dtype */
    int64_t max_sweeps; /* qr, givens: bound on sweeps for each matrix; 0, the default: their own */
    int check_finite;   /* non-zero, the default: NaN or infinity is TSVD_ERR_NONFINITE; zero: a
                           matrix that holds one gives results filled with NaN */
    int64_t givens_blocks;  /* givens: blocks that the matrix is cut into; 0, the default: chosen */
    int64_t givens_threads; /* givens: sweeps in flight; 0, the default: n / 2 */
    int givens_split;       /* givens: non-zero, the default: the matrix is split where it falls
                               apart; zero: it stays whole to the end, with the same results */
    /* Called now and then from the calling thread with the share of work done in [0, 1]; a
       non-zero answer stops the call with TSVD_ERR_INTERRUPTED.  May be NULL, the default.  The
       share does not decrease.  No exception and no longjmp() may leave the function. */
    int (*check)(void *check_arg, double done);
    void *check_arg;
} tsvd_options;

TSVD_API tsvd_options tsvd_options_default(void);

/* ---- plan ---- */

/* What a call will do and take. */
typedef struct tsvd_plan {
    tsvd_method method;    /* the method that runs, never AUTO.  Where AUTO chooses between QR and
                              BISECT by the entries of each matrix, BISECT */
    int64_t n;             /* order of every matrix */
    int64_t count;         /* values of each */
    int64_t matrices;      /* in the batch */
    int64_t chunk;         /* matrices that are worked on at once, by each worker */
    int workers;           /* chunks that are worked on at once */
    int threads;           /* host threads of each worker */
    int needs_blas;        /* 1: the call takes a BLAS on the CPU if the handle has one; method DC,
                              and vectors of a part of the values, ask for it */
    uint64_t result_bytes; /* of L, s and R together; UINT64_MAX: cannot be addressed */
    uint64_t host_bytes;   /* workspace on the host, at most; UINT64_MAX: cannot be addressed */
    uint64_t device_bytes; /* workspace on the device, at most; the same */
} tsvd_plan;

/*
 * What tsvd_svd() would do with these arguments.
 *
 * d, e      as for tsvd_svd(); data is not read and may be NULL
 * vectors   non-zero: L and R are wanted
 * plan      out.  Sizes that cannot be addressed give bytes of UINT64_MAX; with TSVD_ERR_LIBRARY
 *           needs_blas is filled
 *
 * On a CUDA device `chunk` depends on the device memory that is free now.
 */
TSVD_API tsvd_status tsvd_make_plan(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                                    const tsvd_options *options, int vectors, tsvd_plan *plan,
                                    tsvd_error *error);

/* ---- the decomposition ---- */

/* What was done, summed over the batch. */
typedef struct tsvd_info {
    tsvd_method method;       /* the method that ran */
    int64_t sweeps;           /* passes over (a part of) the matrix; givens: half sweeps */
    int64_t iterations;       /* givens: loop steps of all threads of the pipeline, empty ones
                                 included; qr: steps of all sweeps; bisect: Sturm counts */
    int64_t iterations_saved; /* givens: of these, empty ones that splitting left out */
    int64_t rotations;        /* Givens rotations made, right and left together */
    int64_t deflated;         /* off-diagonal entries set to zero because they were negligible; dc:
                                 values that merges found ready, over all merges */
    double seconds_iterate;   /* scalar work on d and e; dc: leaves, deflation, secular equations */
    double seconds_vectors;   /* rotations or products applied to L and R, order and signs */
    double seconds_values;    /* bisection of s */
    double seconds_device;    /* dc on CUDA: from d and e on the device to all results there */
    double seconds_total;
} tsvd_info;

/*
 * The SVD of every matrix of a batch, or the part of it that belongs to a range of values.
 *
 * handle    where to compute
 * d, e      the diagonals, (batch..., n) and (batch..., n-1), of one dtype and in one space, with
 *           any strides; the batch dimensions broadcast.  For n <= 1 e is empty, or NULL
 * options   NULL: the defaults
 * L, s, R   out, (batch..., n, k), (batch..., k), (batch..., k, n) for the k wanted values:
 *           C-contiguous, of the dtype of d, and all in one space, which may be another than that
 *           of d and e.  They overlap neither d, e nor each other.  L and R NULL: values only
 * info      filled if not NULL
 * error     filled if not NULL and the status is not TSVD_OK
 *
 * Arrays of a CUDA device need a handle of that device.  They are read and written in the order of
 * its stream; the call returns when host results are there, and may return before device results
 * are.  On error the contents of s, L and R are unspecified.
 *
 * Vectors of a part, k < n, are computed by AUTO and DC alone; QR and GIVENS refuse them.
 *
 * Accuracy  s to a few ulps each (dc, qr, bisect); B - L S R and orthogonality to a small multiple
 *           of n u.
 * Signs     the entry of largest magnitude in each column of L is positive, of equals the first.
 * Work      O(n k) for s by AUTO and BISECT, O(n^3) with vectors; dc: at most 8/3 n^3
 *           multiplications and additions in matrix products, and of its last level only the share
 *           k / n.
 * Memory    beside the results as tsvd_make_plan() tells.
 * Stops     options->check() is asked at least once a level (dc), window (qr) or round.
 */
TSVD_API tsvd_status tsvd_svd(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                              const tsvd_options *options, const tsvd_array *L, const tsvd_array *s,
                              const tsvd_array *R, tsvd_info *info, tsvd_error *error);

/*
 * Which values of one matrix lie in (low, high]: the range for tsvd_options.
 *
 * d, e      (n) and (n-1), as for tsvd_svd()
 * options   NULL: the defaults; only check_finite is read
 * low, high the bounds, in the units of B and of any sign; infinite ones are no bounds.
 *           TSVD_ERR_ARGUMENT unless low < high
 * first, count  out: values first .. first + count - 1; count = 0, with any first <= n: none does,
 *           or d or e holds NaN or infinity and check_finite is off
 *
 * Accuracy  exact for values that numbers of the dtype represent; else within one ulp of a bound.
 *           A value above the largest number counts as infinity.
 * Work      two Sturm counts, O(n), on the host; O(n) memory.
 */
TSVD_API tsvd_status tsvd_select(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                                 const tsvd_options *options, double low, double high,
                                 int64_t *first, int64_t *count, tsvd_error *error);

/* ---- the machine ---- */

/* Bytes of host memory that can be taken without swapping; 0 if unknown. */
TSVD_API uint64_t tsvd_host_memory_available(void);

/* Threads that a handle with threads = 0 uses. */
TSVD_API int tsvd_host_threads(void);

/* The instruction set that the CPU kernels were selected for: "avx512", "avx2", "generic". */
TSVD_API const char *tsvd_cpu_kernels(void);

/* 1 if the library is linked with a BLAS. */
TSVD_API int tsvd_has_blas(void);

/* 1 if the CUDA back end is compiled in; without it the functions below answer so. */
TSVD_API int tsvd_cuda_compiled(void);

/* CUDA's versions, 1000 major + 10 minor: that the back end was compiled with, and the driver's;
   0: none. */
TSVD_API void tsvd_cuda_versions(int *runtime, int *driver);

typedef struct tsvd_cuda_device {
    char name[256];
    uint64_t memory_total, memory_free; /* bytes */
    int major, minor;                   /* compute capability */
    int multiprocessors;
} tsvd_cuda_device;

/* Number of devices that CUDA shows.  If there is none, *count is 0, the status is
   TSVD_ERR_NO_DEVICE and the error says why. */
TSVD_API tsvd_status tsvd_cuda_device_count(int *count, tsvd_error *error);

/* TSVD_OK if this build can compute on device 0 <= index < count; TSVD_ERR_NO_DEVICE, with the
   reason, if it holds no code for it.  The first question about a device makes CUDA's context
   there, which takes time and device memory, as any use of it does. */
TSVD_API tsvd_status tsvd_cuda_device_usable(int index, tsvd_error *error);

/* Facts about device 0 <= index < count. */
TSVD_API tsvd_status tsvd_cuda_device_facts(int index, tsvd_cuda_device *device, tsvd_error *error);

/* Where a CUDA device is the faster place for arrays in host memory: for one matrix of this order
   or more, with vectors or for values alone, and for batches that have so many values or more in
   all. Measured on one H200 against 16 cores. */
typedef struct tsvd_cuda_crossover {
    int64_t vectors_order, values_order, batch_values;
} tsvd_cuda_crossover;

TSVD_API tsvd_cuda_crossover tsvd_cuda_pays(void);

/* Opens cuBLAS of a major version of CUDA, 0: the one compiled with, which alone is used.
   config (NULL: the default) says where it is looked for; file[size] gets its path, and with
   TSVD_ERR_LIBRARY the error says what to install and every place tried. */
TSVD_API tsvd_status tsvd_cuda_blas(const tsvd_config *config, int major, char *file, size_t size,
                                    tsvd_error *error);

#ifdef __cplusplus
}
#endif
#endif
