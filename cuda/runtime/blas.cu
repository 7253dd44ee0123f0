/*
 * Matrix products by cuBLAS (blas.h).
 *
 * tsvd uses the cuBLAS of the major version of CUDA that it is compiled with, and no other.
 * Another version may well work: streams are objects of the driver, and cuBLAS carries a CUDA
 * runtime of its own.  But NVIDIA promises compatibility only within a major version, and
 * signatures may change between two.  Two versions can be in one process, since their symbols
 * carry versions.
 *
 * The few functions that are used are declared here, since the toolkit's header comes with the
 * library, which is not needed to build tsvd.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/blas.h"
#include "runtime/context.h"

extern "C" {
#include "host/library.h"
}

enum { CUDA_MAJOR = CUDART_VERSION / 1000 };

/* cublasStatus_t.  The values of cublasOperation_t are those of struct cuda_factor's form. */
enum { STATUS_SUCCESS = 0, STATUS_ALLOC_FAILED = 3 };

/* cudaDataType_t, cublasComputeType_t and cublasGemmAlgo_t. */
enum { REAL_32F = 0, COMPUTE_32F_FAST_TF32 = 77, GEMM_DEFAULT = -1 };

template <typename number>
using gemm_function = int(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                          const number *alpha, const number *a, int lda, long long stride_a,
                          const number *b, int ldb, long long stride_b, const number *beta,
                          number *c, int ldc, long long stride_c, int count);

using gemm_ex_function = int(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                             const void *alpha, const void *a, int type_a, int lda,
                             long long stride_a, const void *b, int type_b, int ldb,
                             long long stride_b, const void *beta, void *c, int type_c, int ldc,
                             long long stride_c, int count, int compute, int algorithm);

struct complex128 {
    double re, im;
};

struct complex64 {
    float re, im;
};

/* The functions of cuBLAS that are used. */
struct cublas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    const char *(*text)(int status);
    gemm_function<double> *dgemm;
    gemm_function<float> *sgemm;
    gemm_function<struct complex128> *zgemm;
    gemm_function<struct complex64> *cgemm;
    gemm_ex_function *gemm_ex;
};

/* A handle of cuBLAS.  Each serves one stream at a time: for two streams that are active at once
   cuBLAS would choose its workspace, and with it the bits, by what else is in flight. */
struct cuda_blas {
    void *handle;
    cudaStream_t stream;
    int used;         /* 1: the call under way has used it */
    cudaEvent_t left; /* end of the last call on a stream of the caller's; NULL: not made yet */
    int waits;        /* 1: the next product waits for `left` */
    struct cuda_blas *next;
};

/* Opens cuBLAS of a major version; file[size] gets its path. */
static tsvd_status
find(const char *directories, int major, void **library, char *file, size_t size, tsvd_error *error)
{
    char soname[32], needed[32], package[32] = "-cu12", found[sizeof(((tsvd_error *)0)->text)];

    (void)snprintf(soname, sizeof(soname), "libcublas.so.%d", major);
    (void)snprintf(needed, sizeof(needed), "libcublasLt.so.%d", major);
    if (major > 12) { /* no longer in the name of the package */
        (void)snprintf(package, sizeof(package), "==%d.*", major);
    }
    *library = tsvdi_library_open(directories, soname, needed, found, sizeof(found));
    if (*library != NULL) {
        (void)snprintf(file, size, "%s", found);
        return TSVD_OK;
    }
    return tsvdi_fail(error, TSVD_ERR_LIBRARY,
                      "cuBLAS of CUDA %d was not found: install it with pip install "
                      "nvidia-cublas%s; tried %s",
                      major, package, found);
}

tsvd_status
tsvdi_cuda_find_blas(const tsvd_config *config, int major, char *file, size_t size,
                     tsvd_error *error)
{
    char *directories = NULL;
    void *library;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_library_directories(config->library_paths, config->library_path_count,
                                       &tsvdi_host_allocator, error, &directories));
    TSVD_TRY(find(directories, major > 0 ? major : (int)CUDA_MAJOR, &library, file, size, error));
out:
    tsvdi_host_free(&tsvdi_host_allocator, directories);
    return ret;
}

/* Opens cuBLAS for the handle, if it is not yet. */
static tsvd_status
open_cublas(struct cuda_call *call)
{
    struct cublas made;
    const struct {
        const char *name;
        void *pointer;
    } symbol[] = {
        {"cublasCreate_v2", &made.create},
        {"cublasDestroy_v2", &made.destroy},
        {"cublasSetStream_v2", &made.set_stream},
        {"cublasGetStatusString", &made.text},
        {"cublasDgemmStridedBatched", &made.dgemm},
        {"cublasSgemmStridedBatched", &made.sgemm},
        {"cublasZgemmStridedBatched", &made.zgemm},
        {"cublasCgemmStridedBatched", &made.cgemm},
        {"cublasGemmStridedBatchedEx", &made.gemm_ex},
    };
    char file[sizeof(((tsvd_error *)0)->text)];
    void *library;
    tsvd_status ret = TSVD_OK;

    if (call->device->cublas != NULL) {
        return TSVD_OK;
    }
    TSVD_TRY(
        find(call->device->directories, CUDA_MAJOR, &library, file, sizeof(file), call->error));
    for (size_t i = 0; i < sizeof(symbol) / sizeof(*symbol); i++) {
        void *address = dlsym(library, symbol[i].name);

        if (address == NULL) {
            TSVD_TRY(tsvdi_fail(call->error, TSVD_ERR_LIBRARY,
                                "the cuBLAS that was found has no %s: %s", symbol[i].name,
                                dlerror()));
        }
        memcpy(symbol[i].pointer, &address, sizeof(address));
    }
    TSVD_TRY(tsvdi_host_alloc(call->device->host, sizeof(made), call->error,
                              (void **)&call->device->cublas));
    *call->device->cublas = made;
out:
    return ret;
}

static tsvd_status
blas_failed(struct cuda_call *call, int status, const char *function)
{
    uint64_t memory_free;

    call->error->device = call->device->number;
    if (status != STATUS_ALLOC_FAILED) {
        return tsvdi_fail(call->error, TSVD_ERR_CUDA, "%s failed on CUDA device %d: %s (code %d)",
                          function, call->device->number, call->device->cublas->text(status),
                          status);
    }
    memory_free = tsvdi_cuda_context_memory_free(call->device->number);
    call->error->available = memory_free;
    return tsvdi_fail(call->error, TSVD_ERR_MEMORY,
                      "out of memory on CUDA device %d: %s failed: %s (code %d), %llu bytes free",
                      call->device->number, function, call->device->cublas->text(status), status,
                      (unsigned long long)memory_free);
}

/* Ends a handle. */
static void
end(struct cuda_call *call, struct cuda_blas *blas)
{
    (void)call->device->cublas->set_stream(blas->handle, NULL); /* its own may be gone */
    (void)call->device->cublas->destroy(blas->handle);
    if (blas->left != NULL) {
        (void)cudaEventDestroy(blas->left);
    }
    tsvdi_host_free(call->device->host, blas);
}

void
tsvdi_cuda_blas_close(struct cuda_call *call)
{
    while (call->device->blas != NULL) {
        struct cuda_blas *blas = call->device->blas;

        call->device->blas = blas->next;
        end(call, blas);
    }
}

/* In the next call the same cudaStream_t may stand for another stream of the caller's: the default
   stream of another thread, or a new stream at the address of a destroyed one.  Its products must
   not use cuBLAS's workspace while the last ones of the former stream are in flight. */
void
tsvdi_cuda_blas_leave(struct cuda_call *call)
{
    for (struct cuda_blas *blas = call->device->blas; blas != NULL; blas = blas->next) {
        if (!blas->used || blas->stream != call->stream ||
            call->stream == call->device->own_stream) {
            continue;
        }
        blas->used = 0;
        if (blas->left == NULL) {
            (void)cudaEventCreateWithFlags(&blas->left, cudaEventDisableTiming);
        }
        blas->waits =
            blas->left != NULL && cudaEventRecord(blas->left, call->stream) == cudaSuccess;
        if (!blas->waits) {
            (void)cudaStreamSynchronize(call->stream);
        }
    }
}

/* A new handle for a stream. */
static tsvd_status
make(struct cuda_call *call, cudaStream_t stream, struct cuda_blas **made)
{
    struct cuda_blas *blas = NULL;
    int status;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(open_cublas(call));
    TSVD_TRY(tsvdi_host_alloc(call->device->host, sizeof(*blas), call->error, (void **)&blas));
    memset(blas, 0, sizeof(*blas));
    /* a new handle's mode is CUBLAS_DEFAULT_MATH: no float32 is computed in TF32 unasked */
    status = call->device->cublas->create(&blas->handle);
    if (status != STATUS_SUCCESS) {
        tsvdi_host_free(call->device->host, blas);
        TSVD_TRY(blas_failed(call, status, "cublasCreate"));
    }
    status = call->device->cublas->set_stream(blas->handle, stream);
    if (status != STATUS_SUCCESS) {
        end(call, blas);
        TSVD_TRY(blas_failed(call, status, "cublasSetStream"));
    }
    blas->stream = stream;
    *made = blas;
out:
    return ret;
}

/* The call's handle for a stream, the latest first in the list.  Few are kept: making one takes
   time, and keeping it device memory. */
static tsvd_status
handle_for(struct cuda_call *call, cudaStream_t stream, void **handle)
{
    enum { BLAS_KEPT = 4 };
    struct cuda_blas **at = &call->device->blas, *blas;
    int kept = 0;
    tsvd_status ret = TSVD_OK;

    while (*at != NULL && (*at)->stream != stream && kept < BLAS_KEPT - 1) {
        at = &(*at)->next;
        kept++;
    }
    blas = *at;
    if (blas != NULL) {
        *at = blas->next;
        if (blas->stream != stream) { /* the oldest is replaced */
            end(call, blas);
            blas = NULL;
        }
    }
    if (blas == NULL) {
        TSVD_TRY(make(call, stream, &blas));
    }
    blas->next = call->device->blas;
    call->device->blas = blas;
    blas->used = 1;
    if (blas->waits) {
        CUDA_TRY(call, cudaStreamWaitEvent(stream, blas->left, 0));
        blas->waits = 0;
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

/* A product as cuBLAS takes it: row-major matrices are, to cuBLAS, their transposes, so that
   C^T = B^T A^T. */
struct product {
    void *handle;
    int rows, columns, terms;
    struct cuda_factor a, b;
    void *c;
    int ldc, count;
    long long stride_c;
};

template <typename number>
static int
multiply_as(gemm_function<number> *gemm, const struct product &p, number alpha, number beta)
{
    return gemm(p.handle, p.b.form, p.a.form, p.columns, p.rows, p.terms, &alpha,
                (const number *)p.b.d, (int)p.b.ld, p.b.stride, (const number *)p.a.d, (int)p.a.ld,
                p.a.stride, &beta, (number *)p.c, p.ldc, p.stride_c, p.count);
}

static int
multiply_leading(gemm_ex_function *gemm, const struct product &p, float alpha, float beta)
{
    return gemm(p.handle, p.b.form, p.a.form, p.columns, p.rows, p.terms, &alpha, p.b.d, REAL_32F,
                (int)p.b.ld, p.b.stride, p.a.d, REAL_32F, (int)p.a.ld, p.a.stride, &beta, p.c,
                REAL_32F, p.ldc, p.stride_c, p.count, COMPUTE_32F_FAST_TF32, GEMM_DEFAULT);
}

/* C = alpha A B + beta C with terms > 0. */
static tsvd_status
multiply(struct cuda_call *call, int kind, int64_t rows, int64_t columns, int64_t terms,
         double alpha, struct cuda_factor a, struct cuda_factor b, double beta, void *d_c,
         int64_t ldc, int64_t stride_c, int64_t count, cudaStream_t stream)
{
    const float alpha_f = (float)alpha, beta_f = (float)beta;
    const struct cublas *cublas;
    const char *function;
    struct product p;
    int status;
    tsvd_status ret = TSVD_OK;

    if (!fits(1, rows) || !fits(1, columns) || !fits(0, terms) ||
        !fits(a.form != TSVDI_AS_STORED ? rows : terms, a.ld) ||
        !fits(b.form != TSVDI_AS_STORED ? terms : columns, b.ld) || !fits(columns, ldc) ||
        !fits(0, count)) {
        TSVD_TRY(tsvdi_fail(call->error, TSVD_ERR_ARGUMENT,
                            "cuBLAS cannot multiply %lld x %lld by %lld x %lld numbers in rows of "
                            "%lld, %lld and %lld",
                            (long long)rows, (long long)terms, (long long)terms, (long long)columns,
                            (long long)a.ld, (long long)b.ld, (long long)ldc));
    }
    if (kind != TSVDI_COMPLEX128 && kind != TSVDI_COMPLEX64) {
        a.form = a.form != TSVDI_AS_STORED;
        b.form = b.form != TSVDI_AS_STORED;
    }
    p = {NULL, (int)rows, (int)columns, (int)terms, a, b, d_c, (int)ldc, (int)count, stride_c};
    TSVD_TRY(handle_for(call, stream, &p.handle));
    cublas = call->device->cublas;
    switch (kind) {
    case TSVDI_LEADING:
        function = "cublasGemmStridedBatchedEx";
        status = multiply_leading(cublas->gemm_ex, p, alpha_f, beta_f);
        break;
    case TSVDI_FLOAT32:
        function = "cublasSgemmStridedBatched";
        status = multiply_as(cublas->sgemm, p, alpha_f, beta_f);
        break;
    case TSVDI_COMPLEX128:
        function = "cublasZgemmStridedBatched";
        status = multiply_as<struct complex128>(cublas->zgemm, p, {alpha, 0}, {beta, 0});
        break;
    case TSVDI_COMPLEX64:
        function = "cublasCgemmStridedBatched";
        status = multiply_as<struct complex64>(cublas->cgemm, p, {alpha_f, 0}, {beta_f, 0});
        break;
    default:
        function = "cublasDgemmStridedBatched";
        status = multiply_as(cublas->dgemm, p, alpha, beta);
    }
    if (status != STATUS_SUCCESS) {
        TSVD_TRY(blas_failed(call, status, function));
    }
out:
    return ret;
}

/* Bytes of a number. */
static size_t
size_of(int kind)
{
    return kind == TSVDI_COMPLEX128                           ? sizeof(struct complex128)
           : kind == TSVDI_FLOAT64 || kind == TSVDI_COMPLEX64 ? sizeof(double)
                                                              : sizeof(float);
}

tsvd_status
tsvdi_cuda_multiply(struct cuda_call *call, int kind, int64_t rows, int64_t columns, int64_t terms,
                    const void *d_a, int64_t lda, const void *d_b, int64_t ldb, void *d_c,
                    int64_t ldc, int64_t stride_a, int64_t stride_b, int64_t stride_c, int count,
                    cudaStream_t stream)
{
    const struct cuda_factor a = {d_a, lda, stride_a, 0}, b = {d_b, ldb, stride_b, 0};
    const size_t size = size_of(kind);
    tsvd_status ret = TSVD_OK;

    stream = stream != NULL ? stream : call->stream;
    if (rows == 0 || columns == 0 || count == 0) {
        goto out;
    }
    for (int i = 0; i < count && terms == 0; i++) {
        CUDA_TRY(call,
                 cudaMemset2DAsync((char *)d_c + (size_t)(i * stride_c) * size, (size_t)ldc * size,
                                   0, (size_t)columns * size, (size_t)rows, stream));
    }
    if (terms != 0) {
        TSVD_TRY(multiply(call, kind, rows, columns, terms, 1, a, b, 0, d_c, ldc, stride_c, count,
                          stream));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_multiply_add(struct cuda_call *call, int kind, int64_t rows, int64_t columns,
                        int64_t terms, double alpha, struct cuda_factor a, struct cuda_factor b,
                        double beta, void *d_c, int64_t ldc, int64_t stride_c, int64_t count,
                        cudaStream_t stream)
{
    if (rows == 0 || columns == 0 || terms == 0 || count == 0) {
        return TSVD_OK;
    }
    return multiply(call, kind, rows, columns, terms, alpha, a, b, beta, d_c, ldc, stride_c, count,
                    stream != NULL ? stream : call->stream);
}
