/*
 * tsvd: the singular value decomposition of bidiagonal matrices.
 *
 *     B = diag(d) + diag(e, 1) = L diag(s) R,   L, R orthogonal, s descending, s >= 0
 *
 * This is the whole public interface of the C core.  It knows neither Python
 * nor CUDA; every function may be called from many threads at once.
 */
#ifndef TSVD_H
#define TSVD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns.  tsvd_strstatus() has one sentence for each. */
typedef enum tsvd_status {
    TSVD_OK = 0,
    TSVD_ERR_ARGUMENT,       /* an argument is outside its documented range */
    TSVD_ERR_NONFINITE,      /* d or e holds NaN or infinity */
    TSVD_ERR_MEMORY,         /* host or device memory exhausted */
    TSVD_ERR_NO_CONVERGENCE, /* the bound on sweeps was reached */
    TSVD_ERR_INTERRUPTED,    /* the caller's check() asked to stop */
    TSVD_ERR_NO_DEVICE,      /* the requested device cannot be used */
    TSVD_ERR_UNSUPPORTED,    /* this back end does not offer the method */
    TSVD_ERR_CUDA,           /* a CUDA call failed */
    TSVD_ERR_LIBRARY,        /* a library that the work needs was not found */
    TSVD_STATUS_COUNT
} tsvd_status;

typedef enum tsvd_dtype { TSVD_FLOAT64 = 0, TSVD_FLOAT32 = 1 } tsvd_dtype;

typedef enum tsvd_method {
    TSVD_METHOD_AUTO = 0, /* the fastest method that meets the accuracy bounds */
    TSVD_METHOD_DC,       /* divide and conquer (Gu & Eisenstat 1995); values alone: as AUTO */
    TSVD_METHOD_QR,       /* implicit-shift QR (Demmel & Kahan 1990) */
    TSVD_METHOD_GIVENS,   /* pipelined zero-shift Givens sweeps (Semylitko & Malaschonok 2021) */
    TSVD_METHOD_BISECT,   /* Sturm counts on the Golub-Kahan form; values only */
    TSVD_METHOD_COUNT
} tsvd_method;

enum { TSVD_MAX_BATCH_DIMS = 32 };

/* What to compute and how.  Start from tsvd_options_default(). */
typedef struct tsvd_options {
    tsvd_method method;
    int device;         /* -1: the CPU; k >= 0: CUDA device k */
    int lower;          /* e is the sub-diagonal: B = diag(d) + diag(e, -1) */
    double eps;         /* what is of this size or less counts as zero, in the units of B;
                           negative: full accuracy of the dtype */
    int64_t max_sweeps; /* qr, givens: bound on sweeps for each matrix; 0: the default */
    int check_finite;   /* non-zero: NaN or infinity is TSVD_ERR_NONFINITE; zero: a matrix
                           that holds one gives results filled with NaN */
    int threads;        /* host threads; 0: OpenMP's default */
    int blocks;         /* givens: blocks the matrix is cut into; 0: chosen */
    int block_threads;  /* givens: sweeps in flight (the seed's threads); 0: n/2 */
    int split;          /* givens, non-zero: the matrix is split where it falls apart; zero:
                           the seed's way, whole to the end, with the same results */
    /* Called now and then from the calling thread with the share of work done in [0, 1];
       a non-zero answer stops the computation with TSVD_ERR_INTERRUPTED.  May be NULL. */
    int (*check)(void *check_arg, double done);
    void *check_arg;
} tsvd_options;

/* What was done, summed over the batch. */
typedef struct tsvd_info {
    tsvd_method method;       /* the method that ran */
    int64_t sweeps;           /* passes over (a part of) the matrix; givens: half sweeps */
    int64_t iterations;       /* givens: the seed's count, loop steps of all threads, empty ones
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

/* Filled on every status but TSVD_OK. */
typedef struct tsvd_error {
    int64_t matrix;     /* index of the matrix within the batch, C order; -1: none */
    int64_t sweeps;     /* NO_CONVERGENCE: sweeps made */
    uint64_t wanted;    /* MEMORY: bytes asked for */
    uint64_t available; /* MEMORY: bytes free, 0 if unknown */
    char text[1024];    /* one English sentence: what happened and what to do */
} tsvd_error;

/* The input and the output of one call.  All pointers are host pointers. */
typedef struct tsvd_problem {
    tsvd_dtype dtype; /* of d, e, s, L and R */
    int64_t n;        /* order of every matrix, >= 0 */
    int64_t first, k; /* wanted of each matrix are the k values of index first .. first + k - 1, 0
                         being the largest, and their vectors; all: 0 and n */
    int batch_ndim;   /* number of batch dimensions, 0 for one matrix */
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS];
    const void *d; /* (batch..., n), never written; NULL only if n == 0 or the batch is empty */
    const void *e; /* (batch..., n-1), never written; may be NULL if n <= 1 */
    ptrdiff_t d_stride, e_stride; /* bytes between entries; may be negative or 0 */
    ptrdiff_t d_batch_strides[TSVD_MAX_BATCH_DIMS]; /* bytes; 0 broadcasts */
    ptrdiff_t e_batch_strides[TSVD_MAX_BATCH_DIMS];
    void *s; /* (batch..., k) contiguous; NULL only if it holds nothing */
    void *L; /* (batch..., n, k) C-contiguous; NULL: values only */
    void *R; /* (batch..., k, n) C-contiguous; NULL exactly when L is */
} tsvd_problem;

/*
 * The SVD of every matrix of a problem, or the part of it that belongs to a range of values.
 *
 * problem   in: d, e, sizes, the range; out: s, L, R
 * options   NULL: the defaults
 * info      filled if not NULL
 * error     filled if not NULL and the status is not TSVD_OK
 *
 * Vectors of a part, k < n, are computed by AUTO and DC alone; QR and GIVENS refuse them.
 * On error the contents of s, L and R are unspecified.
 * Accuracy  s to a few ulps each (dc, qr, bisect); B - L S R and orthogonality to
 *           a small multiple of n u (see README, "Accuracy").
 * Signs     the entry of largest magnitude in each column of L is positive, of
 *           equals the first.
 * Work      O(n k) for s by AUTO and BISECT, O(n^3) with vectors; dc: at most 8/3 n^3
 *           multiplications and additions in matrix products, and of its last level only the
 *           share k / n.
 * Memory    beside the results: dc as tsvd_memory() tells; the others O(n) and a bounded log of
 *           rotations, givens perhaps another n x n array.
 * Stops     options->check() is asked at least once a level (dc), window (qr) or round.
 */
tsvd_status tsvd_svd(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
                     tsvd_error *error);

/*
 * Which values of one matrix lie in (low, high]: the range for tsvd_svd().
 *
 * problem   dtype, n, batch_ndim = 0, d and e with their strides; the rest is not read
 * options   NULL: the defaults; only check_finite is read
 * low, high the bounds, in the units of B and of any sign; infinite ones are no bounds.
 *           TSVD_ERR_ARGUMENT unless low < high
 * first, k  out: values first .. first + k - 1; k = 0, with any first <= n: none does, or d or e
 *           holds NaN or infinity and check_finite is off
 * error     filled if not NULL and the status is not TSVD_OK
 *
 * Accuracy  by exact counts at numbers of the dtype: of a value that is such a number it is told
 *           exactly, of others to an ulp, as s has them, on which side of a bound they lie.  One
 *           above the largest number counts as infinity.
 * Work      two Sturm counts, O(n), on the host; O(n) memory.
 */
tsvd_status tsvd_select(const tsvd_problem *problem, const tsvd_options *options, double low,
                        double high, int64_t *first, int64_t *k, tsvd_error *error);

tsvd_options tsvd_options_default(void);

/* One sentence, never NULL, also for numbers that are no status. */
const char *tsvd_strstatus(tsvd_status status);

/* "auto", "dc", ...; NULL for a number that is no method. */
const char *tsvd_method_name(tsvd_method method);

/* Bytes of host memory that can be taken without swapping; 0 if unknown. */
uint64_t tsvd_host_memory_available(void);

/* A BLAS for divide and conquer on the CPU: Fortran's dgemm and sgemm, all arguments by reference,
   without hidden lengths.  integer_bytes: 4 or 8. */
typedef struct tsvd_blas {
    void *dgemm, *sgemm;
    int integer_bytes;
} tsvd_blas;

/* 1 if tsvd_svd() would use a BLAS, if it has one, for the vectors of a matrix of order n. */
int tsvd_uses_blas(const tsvd_options *options, int64_t n);

/* Bytes of host memory for a problem: *results of s and, if `vectors`, of L and R, which need not
   be there yet; *work of the n x n arrays that tsvd_svd() takes beside them for one matrix, which
   it has for several at once only where they are small.  UINT64_MAX: more than can be addressed. */
void tsvd_memory(const tsvd_problem *problem, const tsvd_options *options, int vectors,
                 uint64_t *results, uint64_t *work);

/* Not while another thread computes.  Without a BLAS "auto" does not use divide and conquer on the
   CPU, and to ask for it, or for the vectors of a part of the values, is TSVD_ERR_LIBRARY. */
void tsvd_set_blas(const tsvd_blas *blas);

/* Threads that a call with options.threads == 0 uses. */
int tsvd_host_threads(void);

/* The instruction set that the CPU kernels were selected for: "avx512", "avx2", "generic". */
const char *tsvd_cpu_kernels(void);

/* ---- CUDA; answered in cuda/, or by csrc/backend/nocuda.c where nvcc was absent ---- */

typedef struct tsvd_device {
    char name[256];
    uint64_t memory_total, memory_free; /* bytes */
    int major, minor;                   /* compute capability */
    int multiprocessors;
} tsvd_device;

/* 1 if the CUDA back end was compiled in. */
int tsvd_cuda_compiled(void);

/* cudart's version the back end was compiled with and the driver's, 1000 major + 10 minor; 0: none.
 */
void tsvd_cuda_versions(int *runtime, int *driver);

/* Number of devices that CUDA shows.  If there is none, *count is 0, the status is
   TSVD_ERR_NO_DEVICE and why[size] says the reason. */
tsvd_status tsvd_cuda_device_count(int *count, char *why, size_t size);

/* TSVD_OK if this build can compute on device 0 <= index < count; TSVD_ERR_NO_DEVICE, with the
   reason in why[size], if it holds no code for it.  The first question about a device makes
   CUDA's context there, which takes time and device memory, as any use of it does. */
tsvd_status tsvd_cuda_device_usable(int index, char *why, size_t size);

/* Facts about device 0 <= index < count. */
tsvd_status tsvd_cuda_device(int index, tsvd_device *device, char *why, size_t size);

/* Directories where cuBLAS is looked for before the system's, in this order; they replace those
   told before.  Methods that multiply open it at the first product; until then a call to this
   counts. */
tsvd_status tsvd_cuda_library_paths(const char *const *directory, int64_t count);

/* Opens cuBLAS of a major version of CUDA, 0: the one compiled with, which alone is used.
   text[size] gets its file; with TSVD_ERR_LIBRARY what to install and every place tried. */
tsvd_status tsvd_cuda_blas(int major, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
