/*
 * Matrix products by cuBLAS (blas.h).
 *
 * Which cuBLAS: the major version of CUDA that tsvd is compiled with, and no other.  Streams are
 * objects of the driver, and cuBLAS carries a CUDA runtime of its own, so that another major
 * version may well work; but NVIDIA promises compatibility only within one, and the functions'
 * signatures may change between two.  Both can be in one process: their symbols carry versions.
 *
 * The few functions that are used are declared here, since the toolkit's header comes with the
 * library, which is not needed to build tsvd.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/blas.h"

extern "C" {
#include "host/library.h"
}

enum { CUDA_MAJOR = CUDART_VERSION / 1000 };

/* cublasStatus_t and cublasOperation_t. */
enum { STATUS_SUCCESS = 0, STATUS_ALLOC_FAILED = 3, NOT_TRANSPOSED = 0 };

template <typename number>
using gemm_function = int(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                          const number *alpha, const number *a, int lda, long long stride_a,
                          const number *b, int ldb, long long stride_b, const number *beta,
                          number *c, int ldc, long long stride_c, int count);

static struct {
    void *library; /* NULL: not open yet */
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    const char *(*text)(int status);
    gemm_function<double> *dgemm;
    gemm_function<float> *sgemm;
} cublas;

/* A handle of cuBLAS.  Each serves one stream at a time: shared by two that are active at once,
   cuBLAS would choose its workspace, and with it the bits, by what else is under way. */
struct cuda_blas {
    void *handle;
    int device;
    cudaStream_t stream;
    struct cuda_blas *next;
};

/* Handles that are not in use are kept: making one takes time, and keeping it device memory. */
enum { BLAS_KEPT = 8 };

static pthread_mutex_t blas_lock = PTHREAD_MUTEX_INITIALIZER; /* of `cublas` and of these two */
static struct cuda_blas *blas_kept;
static int blas_kept_count;

/* Opens cuBLAS of a major version; text[size] as in tsvd_cuda_blas(). */
static tsvd_status
find(int major, void **library, char *text, size_t size)
{
    char soname[32], needed[32], found[sizeof(((tsvd_error *)0)->text)];

    snprintf(soname, sizeof(soname), "libcublas.so.%d", major);
    snprintf(needed, sizeof(needed), "libcublasLt.so.%d", major);
    *library = tsvdi_library_open(soname, needed, found, sizeof(found));
    if (*library != NULL) {
        snprintf(text, size, "%s", found);
        return TSVD_OK;
    }
    snprintf(text, size,
             "cuBLAS of CUDA %d was not found: install it with pip install \"tsvd[cu%d]\"; "
             "tried %s",
             major, major, found);
    return TSVD_ERR_LIBRARY;
}

tsvd_status
tsvd_cuda_blas(int major, char *text, size_t size)
{
    void *library;

    return find(major > 0 ? major : (int)CUDA_MAJOR, &library, text, size);
}

/* Opens cuBLAS, if it is not yet; blas_lock is held. */
static tsvd_status
open_cublas(tsvd_error *error)
{
    const struct {
        const char *name;
        void *pointer;
    } symbol[] = {
        {"cublasCreate_v2", &cublas.create},          {"cublasDestroy_v2", &cublas.destroy},
        {"cublasSetStream_v2", &cublas.set_stream},   {"cublasGetStatusString", &cublas.text},
        {"cublasDgemmStridedBatched", &cublas.dgemm}, {"cublasSgemmStridedBatched", &cublas.sgemm},
    };
    void *library;
    tsvd_status ret = TSVD_OK;

    if (cublas.library != NULL) {
        goto out;
    }
    TSVD_TRY(find(CUDA_MAJOR, &library, error->text, sizeof(error->text)));
    for (size_t i = 0; i < sizeof(symbol) / sizeof(*symbol); i++) {
        void *address = dlsym(library, symbol[i].name);

        if (address == NULL) {
            TSVD_TRY(tsvdi_fail(error, TSVD_ERR_LIBRARY, "the cuBLAS that was found has no %s: %s",
                                symbol[i].name, dlerror()));
        }
        memcpy(symbol[i].pointer, &address, sizeof(address));
    }
    cublas.library = library;
out:
    return ret;
}

static tsvd_status
blas_failed(struct cuda_call *call, int status, const char *function)
{
    size_t memory_free = 0, memory_total = 0;

    if (status != STATUS_ALLOC_FAILED) {
        return tsvdi_fail(call->error, TSVD_ERR_CUDA, "%s failed on CUDA device %d: %s (code %d)",
                          function, call->device, cublas.text(status), status);
    }
    if (cudaMemGetInfo(&memory_free, &memory_total) != cudaSuccess) {
        (void)cudaGetLastError(); /* else the check after a later launch would find it */
    }
    call->error->available = memory_free;
    return tsvdi_fail(call->error, TSVD_ERR_MEMORY,
                      "out of memory on CUDA device %d: %s failed: %s (code %d), %llu bytes free",
                      call->device, function, cublas.text(status), status,
                      (unsigned long long)memory_free);
}

/* Takes a handle out of those kept, NULL: there is none for the device; blas_lock is held. */
static struct cuda_blas *
take_kept(int device)
{
    struct cuda_blas **at = &blas_kept, *blas;

    while (*at != NULL && (*at)->device != device) {
        at = &(*at)->next;
    }
    blas = *at;
    if (blas != NULL) {
        *at = blas->next;
        blas_kept_count--;
    }
    return blas;
}

/* A handle for the call's device, a kept one or a new one. */
static tsvd_status
take(struct cuda_call *call, struct cuda_blas **taken)
{
    struct cuda_blas *blas = NULL;
    int status;
    tsvd_status ret = TSVD_OK;

    pthread_mutex_lock(&blas_lock);
    ret = open_cublas(call->error);
    blas = take_kept(call->device);
    pthread_mutex_unlock(&blas_lock);
    TSVD_TRY(ret);
    if (blas == NULL) {
        TSVD_TRY(tsvdi_host_alloc(sizeof(*blas), call->error, (void **)&blas));
        memset(blas, 0, sizeof(*blas));
        blas->device = call->device;
        /* a new handle's mode is CUBLAS_DEFAULT_MATH: float32 is never computed in TF32 */
        status = cublas.create(&blas->handle);
        if (status != STATUS_SUCCESS) {
            tsvdi_host_free(blas);
            TSVD_TRY(blas_failed(call, status, "cublasCreate"));
        }
    }
    *taken = blas;
out:
    return ret;
}

/* Keeps a handle for later calls; or ends it, if it is not well or enough are kept.  The call's
   device is the current one. */
static void
give(struct cuda_blas *blas)
{
    /* its stream may be gone when the handle is next used */
    bool keep = cublas.set_stream(blas->handle, NULL) == STATUS_SUCCESS;

    pthread_mutex_lock(&blas_lock);
    keep = keep && blas_kept_count < BLAS_KEPT;
    if (keep) {
        blas->next = blas_kept;
        blas_kept = blas;
        blas_kept_count++;
    }
    pthread_mutex_unlock(&blas_lock);
    if (!keep) {
        (void)cublas.destroy(blas->handle);
        tsvdi_host_free(blas);
    }
}

void
tsvdi_cuda_blas_close(struct cuda_call *call)
{
    while (call->blas != NULL) {
        struct cuda_blas *blas = call->blas;

        call->blas = blas->next;
        give(blas);
    }
}

/* The call's handle for a stream. */
static tsvd_status
handle_for(struct cuda_call *call, cudaStream_t stream, void **handle)
{
    struct cuda_blas *blas = call->blas;
    int status;
    tsvd_status ret = TSVD_OK;

    while (blas != NULL && blas->stream != stream) {
        blas = blas->next;
    }
    if (blas == NULL) {
        TSVD_TRY(take(call, &blas));
        status = cublas.set_stream(blas->handle, stream);
        if (status != STATUS_SUCCESS) {
            give(blas);
            TSVD_TRY(blas_failed(call, status, "cublasSetStream"));
        }
        blas->stream = stream;
        blas->next = call->blas;
        call->blas = blas;
    }
    *handle = blas->handle;
out:
    return ret;
}

/* What cuBLAS takes as an int. */
static bool
fits(int64_t least, int64_t number)
{
    return least <= number && number <= INT_MAX;
}

tsvd_status
tsvdi_cuda_multiply(struct cuda_call *call, int single, int64_t rows, int64_t columns,
                    int64_t terms, const void *d_a, int64_t lda, const void *d_b, int64_t ldb,
                    void *d_c, int64_t ldc, int64_t stride_a, int64_t stride_b, int64_t stride_c,
                    int count, cudaStream_t stream)
{
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    const size_t size = single ? sizeof(float) : sizeof(double);
    void *handle;
    int status;
    tsvd_status ret = TSVD_OK;

    stream = stream != NULL ? stream : call->stream;
    if (rows == 0 || columns == 0 || count == 0) {
        goto out;
    }
    if (!fits(1, rows) || !fits(1, columns) || !fits(0, terms) || !fits(terms, lda) ||
        !fits(columns, ldb) || !fits(columns, ldc) || count < 0) {
        TSVD_TRY(tsvdi_fail(call->error, TSVD_ERR_ARGUMENT,
                            "cuBLAS cannot multiply %lld x %lld by %lld x %lld numbers in rows of "
                            "%lld, %lld and %lld",
                            (long long)rows, (long long)terms, (long long)terms, (long long)columns,
                            (long long)lda, (long long)ldb, (long long)ldc));
    }
    for (int i = 0; i < count && terms == 0; i++) {
        CUDA_TRY(call,
                 cudaMemset2DAsync((char *)d_c + (size_t)(i * stride_c) * size, (size_t)ldc * size,
                                   0, (size_t)columns * size, (size_t)rows, stream));
    }
    if (terms == 0) {
        goto out;
    }
    TSVD_TRY(handle_for(call, stream, &handle));
    /* row-major matrices are, to cuBLAS, their transposes: C^T = B^T A^T */
    if (single) {
        status = cublas.sgemm(handle, NOT_TRANSPOSED, NOT_TRANSPOSED, (int)columns, (int)rows,
                              (int)terms, &one_f, (const float *)d_b, (int)ldb, stride_b,
                              (const float *)d_a, (int)lda, stride_a, &zero_f, (float *)d_c,
                              (int)ldc, stride_c, count);
    } else {
        status = cublas.dgemm(handle, NOT_TRANSPOSED, NOT_TRANSPOSED, (int)columns, (int)rows,
                              (int)terms, &one, (const double *)d_b, (int)ldb, stride_b,
                              (const double *)d_a, (int)lda, stride_a, &zero, (double *)d_c,
                              (int)ldc, stride_c, count);
    }
    if (status != STATUS_SUCCESS) {
        TSVD_TRY(blas_failed(call, status,
                             single ? "cublasSgemmStridedBatched" : "cublasDgemmStridedBatched"));
    }
out:
    return ret;
}
