/*
 * Products through cuda/runtime/blas.cu: against sums on the host, in parts of larger arrays, in
 * batches, on two streams, and their failures.
 *
 * Built with TSVD_FAKE_CUBLAS it is linked to libraries/fake_cublas.c, which cuda/runtime/blas.cu
 * then finds in the process, and "device" memory is the host's: what needs no GPU is tested without
 * one.  Built without it, it leaves with SKIPPED where there is no GPU.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "defaults.h"
#include "runtime/blas.h"
#include "runtime/transfer.h"

#if TSVD_FAKE_CUBLAS
extern "C" {
#include "libraries/fake_cublas.h"
}
#endif

enum { SKIPPED = 77 };

/* Memory that products read and write, filled from the host's. */
static void *
device_copy(struct cuda_call *call, const void *from, size_t bytes)
{
#if TSVD_FAKE_CUBLAS
    (void)call;
    return memcpy(allocate(bytes), from, bytes);
#else
    void *p = NULL;

    CHECK(tsvdi_cuda_alloc(call, bytes, &p) == TSVD_OK, "%s", call->error->text);
    CHECK(tsvdi_cuda_upload(call, p, from, bytes) == TSVD_OK, "%s", call->error->text);
    return p;
#endif
}

/* Back to the host, after all work of the call. */
static void
device_end(struct cuda_call *call, void *p, void *to, size_t bytes)
{
#if TSVD_FAKE_CUBLAS
    (void)call;
    memcpy(to, p, bytes);
    free(p);
#else
    for (size_t at = 0; at < bytes; at += PINNED_RESULT_BYTES) {
        const size_t left = bytes - at;

        CHECK(tsvdi_cuda_download(call, (char *)to + at, (char *)p + at,
                                  left < PINNED_RESULT_BYTES ? left : PINNED_RESULT_BYTES) ==
                  TSVD_OK,
              "%s", call->error->text);
    }
    tsvdi_cuda_free(call, p);
#endif
}

/* A call on device 0. */
static struct cuda_call *
open_call(tsvd_error *error)
{
    struct cuda_device *device = NULL;

    memset(error, 0, sizeof(*error));
#if TSVD_FAKE_CUBLAS
    device = (struct cuda_device *)allocate(sizeof(*device));
    device->host = &tsvdi_host_allocator;
    device->call.device = device;
    device->call.error = error;
    device->call.stream = (cudaStream_t)device; /* never used */
#else
    tsvd_config config = default_config();

    config.device = 0;
    if (tsvdi_cuda_create(&config, &tsvdi_host_allocator, &device, error) != TSVD_OK ||
        tsvdi_cuda_enter(device, error) != TSVD_OK) {
        printf("%s\n", error->text);
        exit(EXIT_FAILURE);
    }
#endif
    return &device->call;
}

static void
close_call(struct cuda_call *call)
{
#if TSVD_FAKE_CUBLAS
    tsvdi_cuda_blas_close(call);
    tsvdi_host_free(call->device->host, call->device->cublas);
    free(call->device);
#else
    tsvdi_cuda_leave(call->device, TSVD_OK);
    tsvdi_cuda_destroy(call->device);
#endif
}

static double
get(int single, const void *array, int64_t i)
{
    return single ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static void
set(int single, void *array, int64_t i, double x)
{
    if (single) {
        ((float *)array)[i] = (float)x;
    } else {
        ((double *)array)[i] = x;
    }
}

struct shape {
    int64_t rows, columns, terms;
    int64_t pad; /* numbers between the rows, and between the matrices */
    int count;
};

/* An array of count * (rows * (columns + pad) + pad) numbers. */
static size_t
numbers(struct shape s, int64_t rows, int64_t columns)
{
    return (size_t)(s.count * (rows * (columns + s.pad) + s.pad));
}

/* One set of products; the bits of C, padding included, go to `bits` if it is not NULL. */
static void
check_products(struct cuda_call *call, int single, struct shape s, cudaStream_t stream, void *bits)
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    const size_t a_size = numbers(s, s.rows, s.terms) * size;
    const size_t b_size = numbers(s, s.terms, s.columns) * size;
    const size_t c_size = numbers(s, s.rows, s.columns) * size;
    const int64_t lda = s.terms + s.pad, ldb = s.columns + s.pad, ldc = s.columns + s.pad;
    const int64_t stride_a = s.rows * lda + s.pad, stride_b = s.terms * ldb + s.pad;
    const int64_t stride_c = s.rows * ldc + s.pad;
    const double unit = single ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    void *a = allocate(a_size), *b = allocate(b_size), *c = allocate(c_size);
    void *d_a, *d_b, *d_c;
    tsvd_status status;

    for (int64_t i = 0; i < (int64_t)(a_size / size); i++) {
        set(single, a, i, random_scaled(-2, 0));
    }
    for (int64_t i = 0; i < (int64_t)(b_size / size); i++) {
        set(single, b, i, random_scaled(-2, 0));
    }
    memset(c, 0xff, c_size); /* NaN: what was there counts for nothing */
    d_a = device_copy(call, a, a_size);
    d_b = device_copy(call, b, b_size);
    d_c = device_copy(call, c, c_size);
#if !TSVD_FAKE_CUBLAS
    CHECK(cudaStreamSynchronize(call->stream) == cudaSuccess, "before another stream");
#endif
    status = tsvdi_cuda_multiply(call, single, s.rows, s.columns, s.terms, d_a, lda, d_b, ldb, d_c,
                                 ldc, stride_a, stride_b, stride_c, s.count, stream);
    CHECK(status == TSVD_OK, "%s", call->error->text);
#if !TSVD_FAKE_CUBLAS
    CHECK(stream == NULL || cudaStreamSynchronize(stream) == cudaSuccess, "another stream");
#endif
    device_end(call, d_a, a, a_size);
    device_end(call, d_b, b, b_size);
    device_end(call, d_c, c, c_size);
    if (bits != NULL) {
        memcpy(bits, c, c_size);
    }
    for (int64_t at = 0; at < (int64_t)(c_size / size); at++) {
        int64_t m = at / stride_c, i = at % stride_c / ldc, j = at % stride_c % ldc;
        double sum = 0, bound = 0, x = get(single, c, at);

        if (i >= s.rows || j >= s.columns) {
            CHECK(isnan(x), "padding [%lld, %lld] became %g", (long long)i, (long long)j, x);
            continue;
        }
        for (int64_t t = 0; t < s.terms; t++) {
            double term = get(single, a, m * stride_a + i * lda + t) *
                          get(single, b, m * stride_b + t * ldb + j);

            sum += term;
            bound += fabs(term);
        }
        CHECK(fabs(x - sum) <= (double)(s.terms + 1) * (unit + DBL_EPSILON) * bound,
              "[%lld, %lld] of matrix %lld is %g, not %g", (long long)i, (long long)j, (long long)m,
              x, sum);
    }
    free(a);
    free(b);
    free(c);
}

static void
test_shapes(void)
{
    static const struct shape shapes[] = {
        {1, 1, 1, 0, 1}, {1, 7, 3, 0, 1},    {7, 1, 3, 2, 1},       {3, 5, 1, 1, 4},
        {3, 5, 7, 0, 3}, {33, 65, 17, 3, 5}, {200, 100, 300, 1, 2}, {0, 5, 7, 1, 2},
        {5, 0, 7, 1, 2}, {5, 7, 3, 1, 0},
    };
    struct cuda_call *call;
    tsvd_error error;

    call = open_call(&error);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        for (int single = 0; single < 2; single++) {
            check_products(call, single, shapes[i], NULL, NULL);
        }
    }
    close_call(call);
}

/* A complex number; of a real array the imaginary part is 0. */
struct number {
    double re, im;
};

static bool
is_complex(int kind)
{
    return kind == TSVDI_COMPLEX128 || kind == TSVDI_COMPLEX64;
}

static bool
is_single(int kind)
{
    return kind == TSVDI_FLOAT32 || kind == TSVDI_COMPLEX64;
}

static struct number
number_at(int kind, const void *array, int64_t i)
{
    if (is_complex(kind)) {
        return {get(is_single(kind), array, 2 * i), get(is_single(kind), array, 2 * i + 1)};
    }
    return {get(is_single(kind), array, i), 0};
}

/* Entry (i, j) of a factor that is stored with `ld` numbers in a row. */
static struct number
entry_of(int kind, int form, const void *array, int64_t ld, int64_t i, int64_t j)
{
    struct number x = number_at(kind, array, form == TSVDI_AS_STORED ? i * ld + j : j * ld + i);

    x.im = form == TSVDI_ADJOINT ? -x.im : x.im;
    return x;
}

/* C = alpha A B + beta C of two pairs of matrices, with factors of these forms. */
static void
check_forms(struct cuda_call *call, int kind, int form_a, int form_b, double beta)
{
    enum { ROWS = 3, COLUMNS = 4, TERMS = 5, LD = 7, STRIDE = LD * LD, COUNT = 2 };
    const double alpha = -2, unit = is_single(kind) ? FLT_EPSILON : DBL_EPSILON;
    const int64_t parts = is_complex(kind) ? 2 : 1, all = parts * COUNT * STRIDE;
    const size_t bytes = (size_t)all * (is_single(kind) ? sizeof(float) : sizeof(double));
    void *x[3], *d_x[3], *before = allocate(bytes);

    for (int k = 0; k < 3; k++) {
        x[k] = allocate(bytes);
        for (int64_t i = 0; i < all; i++) {
            set(is_single(kind), x[k], i, random_scaled(-2, 0));
        }
        d_x[k] = device_copy(call, x[k], bytes);
    }
    memcpy(before, x[2], bytes);
    CHECK(tsvdi_cuda_multiply_add(call, kind, ROWS, COLUMNS, TERMS, alpha,
                                  {d_x[0], LD, STRIDE, form_a}, {d_x[1], LD, STRIDE, form_b}, beta,
                                  d_x[2], LD, STRIDE, COUNT) == TSVD_OK,
          "%s", call->error->text);
    for (int k = 0; k < 3; k++) {
        device_end(call, d_x[k], x[k], bytes);
    }
    for (int64_t at = 0; at < COUNT * STRIDE; at++) {
        const int64_t matrix = at / STRIDE, i = at % STRIDE / LD, j = at % LD;
        const struct number found = number_at(kind, x[2], at), old = number_at(kind, before, at);
        struct number sum = {beta * old.re, beta * old.im};

        if (i >= ROWS || j >= COLUMNS) {
            CHECK(found.re == old.re && found.im == old.im, "[%lld] has changed", (long long)at);
            continue;
        }
        for (int64_t t = 0; t < TERMS; t++) {
            const int64_t skipped = matrix * STRIDE * parts * (is_single(kind) ? 4 : 8);
            const struct number a = entry_of(kind, form_a, (const char *)x[0] + skipped, LD, i, t);
            const struct number b = entry_of(kind, form_b, (const char *)x[1] + skipped, LD, t, j);

            sum.re += alpha * (a.re * b.re - a.im * b.im);
            sum.im += alpha * (a.re * b.im + a.im * b.re);
        }
        CHECK(fabs(found.re - sum.re) + fabs(found.im - sum.im) <= 100 * unit,
              "kind %d, forms %d and %d: [%lld, %lld] is (%g, %g), not (%g, %g)", kind, form_a,
              form_b, (long long)i, (long long)j, found.re, found.im, sum.re, sum.im);
    }
    for (int k = 0; k < 3; k++) {
        free(x[k]);
    }
    free(before);
}

static void
test_forms(void)
{
    static const int kinds[] = {TSVDI_FLOAT64, TSVDI_FLOAT32, TSVDI_COMPLEX128, TSVDI_COMPLEX64};
    struct cuda_call *call;
    tsvd_error error;

    call = open_call(&error);
    for (int kind : kinds) {
        for (int forms = 0; forms < 9; forms++) {
            check_forms(call, kind, forms / 3, forms % 3, 0);
            check_forms(call, kind, forms / 3, forms % 3, 0.5);
        }
    }
    close_call(call);
}

/* Sizes that cuBLAS's int cannot hold, and leading dimensions that are too small. */
static void
test_bad_sizes(void)
{
    static const int64_t bad[][6] = {
        /* rows, columns, terms, lda, ldb, ldc */
        {(int64_t)INT_MAX + 1, 2, 2, 2, 2, 2},
        {2, 2, 2, (int64_t)INT_MAX + 1, 2, 2},
        {2, 2, -1, 2, 2, 2},
        {2, 2, 2, 1, 2, 2},
        {2, 2, 2, 2, 1, 2},
        {2, 2, 2, 2, 2, 1},
    };
    struct cuda_call *call;
    tsvd_error error;
    double none = 7;

    call = open_call(&error);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const int64_t *b = bad[i];
        tsvd_status status = tsvdi_cuda_multiply(call, 0, b[0], b[1], b[2], &none, b[3], &none,
                                                 b[4], &none, b[5], 0, 0, 0, 1);

        CHECK(status == TSVD_ERR_ARGUMENT && strlen(error.text) > 0, "line %zu: %d", i,
              (int)status);
    }
    CHECK(none == 7 && call->device->blas == NULL, "something was done");
    close_call(call);
}

#if TSVD_FAKE_CUBLAS

/* One handle for each stream, made once and kept as long as the call's own handle lives. */
static void
test_handles(void)
{
    const struct shape s = {2, 3, 4, 0, 1};
    const cudaStream_t other = (cudaStream_t)&s;
    tsvd_error error, second_error;
    struct cuda_call *call = open_call(&error), *second = open_call(&second_error);

    for (int i = 0; i < 3; i++) {
        check_products(call, 0, s, NULL, NULL);
        CHECK(fake_cublas.stream == call->stream, "the call's stream");
        check_products(call, 1, s, other, NULL);
        CHECK(fake_cublas.stream == other, "another stream");
        check_products(second, 0, s, NULL, NULL);
        CHECK(fake_cublas.stream == second->stream, "the second call's stream");
        check_products(call, 0, s, NULL, NULL);
        CHECK(fake_cublas.stream == call->stream, "the call's stream again");
        CHECK(fake_cublas.created == 3, "%d handles", fake_cublas.created);
    }
    CHECK(fake_cublas.destroyed == 0, "%d handles are gone", fake_cublas.destroyed);
    close_call(call);
    CHECK(fake_cublas.destroyed == 2, "%d handles are gone", fake_cublas.destroyed);
    close_call(second);
    CHECK(fake_cublas.destroyed == 3, "%d handles are gone", fake_cublas.destroyed);
}

/* Streams that come and go leave few handles. */
static void
test_many_handles(void)
{
    const struct shape s = {1, 1, 1, 0, 1};
    const int before = fake_cublas.created - fake_cublas.destroyed;
    char place[40];
    tsvd_error error;
    struct cuda_call *call = open_call(&error);

    for (int i = 0; i < 40; i++) {
        check_products(call, 0, s, (cudaStream_t)&place[i], NULL);
        CHECK(fake_cublas.created - fake_cublas.destroyed <= before + 4, "%d are kept",
              fake_cublas.created - fake_cublas.destroyed - before);
    }
    close_call(call);
    CHECK(fake_cublas.created - fake_cublas.destroyed == before, "some are left");
}

static void
test_failures(void)
{
    const double x = 1;
    double y = 0;
    struct cuda_call *call;
    tsvd_error error;

    call = open_call(&error);
    fake_cublas.status = 13;
    CHECK(tsvdi_cuda_multiply(call, 0, 1, 1, 1, &x, 1, &x, 1, &y, 1, 0, 0, 0, 1) == TSVD_ERR_CUDA,
          "%s", error.text);
    CHECK(strstr(error.text, "cublasDgemmStridedBatched") && strstr(error.text, "code 13") &&
              strstr(error.text, "the fake fails"),
          "%s", error.text);
    fake_cublas.status = 3;
    CHECK(tsvdi_cuda_multiply(call, 1, 1, 1, 1, &x, 1, &x, 1, &y, 1, 0, 0, 0, 1) == TSVD_ERR_MEMORY,
          "%s", error.text);
    CHECK(strstr(error.text, "the fake has no memory"), "%s", error.text);
    fake_cublas.status = 0;
    fake_cublas.create_status = 1;
    call->stream = (cudaStream_t)&x;
    CHECK(tsvdi_cuda_multiply(call, 0, 1, 1, 1, &x, 1, &x, 1, &y, 1, 0, 0, 0, 1) == TSVD_ERR_CUDA,
          "%s", error.text);
    CHECK(strstr(error.text, "cublasCreate"), "%s", error.text);
    fake_cublas.create_status = 0;
    CHECK(tsvdi_cuda_multiply(call, 0, 1, 1, 1, &x, 1, &x, 1, &y, 1, 0, 0, 0, 1) == TSVD_OK, "%s",
          error.text);
    CHECK(y == 1, "%g", y);
    close_call(call);
}

#else

static void
test_no_terms(void)
{
    struct cuda_call *call;
    tsvd_error error;

    call = open_call(&error);
    for (int single = 0; single < 2; single++) {
        check_products(call, single, (struct shape){3, 5, 0, 0, 1}, NULL, NULL);
        check_products(call, single, (struct shape){3, 5, 0, 2, 4}, NULL, NULL);
    }
    CHECK(call->device->blas == NULL, "a handle was taken for nothing");
    close_call(call);
}

/* The same bits in every call, on whichever stream. */
static void
test_same_bits(void)
{
    const struct shape s = {500, 300, 700, 1, 2};
    struct cuda_call *call;
    tsvd_error error;
    cudaStream_t other;

    for (int single = 0; single < 2; single++) {
        const size_t bytes = numbers(s, s.rows, s.columns) * (single ? sizeof(float) : 8);
        void *first = allocate(bytes), *again = allocate(bytes);

        for (int i = 0; i < 6; i++) {
            random_state = 5;
            call = open_call(&error);
            CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess, "-");
            check_products(call, single, s, i % 2 ? other : NULL, i == 0 ? first : again);
            CHECK(i == 0 || memcmp(first, again, bytes) == 0, "run %d differs", i);
            CHECK(cudaStreamDestroy(other) == cudaSuccess, "-");
            close_call(call);
        }
        free(first);
        free(again);
    }
}

#endif

int
main(void)
{
#if TSVD_FAKE_CUBLAS
    test_handles(); /* first: it counts them */
    test_failures();
    test_many_handles();
#else
    char file[1024] = "";
    tsvd_error error;
    int count;

    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return SKIPPED;
    }
    CHECK(tsvd_cuda_blas(NULL, 0, file, sizeof(file), &error) == TSVD_OK, "%s", error.text);
    test_no_terms();
    test_same_bits();
#endif
    test_shapes();
    test_forms();
    test_bad_sizes();
    return report();
}
