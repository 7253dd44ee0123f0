/*
 * Arrays in device memory, streams, and workspace on the device, through the C interface.  Leaves
 * with SKIPPED where there is no GPU.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "problem.h"

enum { SKIPPED = 77 };

/* Device memory from the caller, counted. */
static struct {
    long long bytes, peak;
    size_t size[4096];
    void *place[4096];
} counted;

static void *
counted_allocate(void *arg, size_t bytes, void *stream)
{
    void *p = NULL;
    int i = 0;

    (void)arg;
    if (cudaMallocAsync(&p, bytes, (cudaStream_t)stream) != cudaSuccess) {
        return NULL;
    }
    while (counted.place[i] != NULL) {
        i++;
    }
    counted.place[i] = p;
    counted.size[i] = bytes;
    counted.bytes += (long long)bytes;
    counted.peak = counted.bytes > counted.peak ? counted.bytes : counted.peak;
    return p;
}

static void
counted_release(void *arg, void *p, void *stream)
{
    int i = 0;

    (void)arg;
    while (counted.place[i] != p) {
        i++;
    }
    counted.place[i] = NULL;
    counted.bytes -= (long long)counted.size[i];
    CHECK(cudaFreeAsync(p, (cudaStream_t)stream) == cudaSuccess, "not ours");
}

static tsvd_handle *
make_handle(void *stream, const tsvd_allocator *allocator)
{
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    config.device = 0;
    config.stream = stream;
    config.device_allocator = allocator;
    if (tsvd_create(&config, &handle, &error) != TSVD_OK) {
        printf("%s\n", error.text);
        exit(EXIT_FAILURE);
    }
    return handle;
}

/* A copy of a host array on the device; not filled if `from` is NULL. */
static void *
on_device(const void *from, size_t bytes)
{
    void *p = NULL;

    CHECK(cudaMalloc(&p, bytes > 0 ? bytes : 1) == cudaSuccess, "%zu bytes", bytes);
    CHECK(from == NULL || cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess, "up");
    CHECK(from != NULL || cudaMemset(p, 0xff, bytes) == cudaSuccess, "poisoned");
    return p;
}

/* Bytes of the arrays of a work. */
struct sizes {
    size_t d, e, L, s;
};

static struct sizes
sizes_of(const struct work *w)
{
    const size_t size = size_of(w->dtype), batch = (size_t)w->matrices;
    const struct sizes sizes = {batch * (size_t)w->n * size,
                                batch * (size_t)(w->n > 0 ? w->n - 1 : 0) * size,
                                batch * (size_t)(w->n * w->k) * size, batch * (size_t)w->k * size};

    return sizes;
}

/* The call with input in `from` and results in `to`; results are copied back to L, s and R. */
static tsvd_status
solve_in(tsvd_handle *handle, const struct work *w, tsvd_options options, tsvd_space from,
         tsvd_space to, tsvd_info *info, tsvd_error *error)
{
    const struct sizes bytes = sizes_of(w);
    struct arrays a = arrays_of(w);
    void *L = NULL, *s = NULL, *R = NULL;
    tsvd_status status;

    options.first = w->first;
    options.count = w->k;
    if (from == TSVD_CUDA) {
        a.d.space = a.e.space = TSVD_CUDA;
        a.d.data = on_device(w->d, bytes.d);
        a.e.data = on_device(w->e, bytes.e);
    }
    if (to == TSVD_CUDA) {
        a.L.space = a.s.space = a.R.space = TSVD_CUDA;
        a.L.data = L = on_device(NULL, bytes.L);
        a.s.data = s = on_device(NULL, bytes.s);
        a.R.data = R = on_device(NULL, bytes.L);
    }
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "before");
    status = tsvd_svd(handle, &a.d, &a.e, &options, w->vectors ? &a.L : NULL, &a.s,
                      w->vectors ? &a.R : NULL, info, error);
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "after");
    if (to == TSVD_CUDA) {
        CHECK(cudaMemcpy(w->s, s, bytes.s, cudaMemcpyDeviceToHost) == cudaSuccess, "s");
        if (w->vectors) {
            CHECK(cudaMemcpy(w->L, L, bytes.L, cudaMemcpyDeviceToHost) == cudaSuccess, "L");
            CHECK(cudaMemcpy(w->R, R, bytes.L, cudaMemcpyDeviceToHost) == cudaSuccess, "R");
        }
        (void)cudaFree(L);
        (void)cudaFree(s);
        (void)cudaFree(R);
    }
    if (from == TSVD_CUDA) {
        (void)cudaFree(a.d.data);
        (void)cudaFree(a.e.data);
    }
    return status;
}

/* A zero matrix, one with NaN, and one with an entry of each extreme, where the batch has them. */
static void
spoil(const struct work *w)
{
    for (int64_t i = 0; i < w->n && w->matrices > 2; i++) {
        set(w->dtype, w->d, i, 0);
        if (i + 1 < w->n) {
            set(w->dtype, w->e, i, 0);
        }
    }
    if (w->matrices > 2 && w->n > 0) {
        set(w->dtype, w->d, 2 * w->n - 1, (double)NAN);
        set(w->dtype, w->d, 2 * w->n, w->dtype == TSVD_FLOAT64 ? 1e-300 : 1e-38);
    }
}

/* The results have the same bits wherever the arrays lie. */
static void
test_spaces(tsvd_handle *handle)
{
    const int64_t orders[] = {0, 1, 2, 8, 32, 33, 100, 257, 700};
    const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_QR, TSVD_METHOD_GIVENS,
                                   TSVD_METHOD_BISECT};

    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        for (int m = 0; m < 4; m++) {
            for (int i = 0; i < 8; i++) {
                const int vectors = i & 1 && methods[m] != TSVD_METHOD_BISECT, part = i >> 1 & 1;
                struct work w = make_work(dtypes[i >> 2], orders[o], i % 3 == 0 ? 1 : 5);
                tsvd_options options = default_options();
                struct sizes bytes;
                void *L, *s, *R;
                tsvd_error error;

                options.method = methods[m];
                options.eps = methods[m] == TSVD_METHOD_GIVENS ? 1e-2 : -1;
                options.check_finite = 0;
                options.lower = m & 1;
                w.vectors = vectors;
                if (part && (!vectors || m == 0)) {
                    w.first = w.n / 4;
                    w.k = w.n / 2;
                }
                spoil(&w);
                bytes = sizes_of(&w);
                L = allocate(bytes.L);
                s = allocate(bytes.s);
                R = allocate(bytes.L);
                CHECK(solve_in(handle, &w, options, TSVD_HOST, TSVD_HOST, NULL, &error) == TSVD_OK,
                      "%s", error.text);
                memcpy(L, w.L, bytes.L);
                memcpy(s, w.s, bytes.s);
                memcpy(R, w.R, bytes.L);
                for (int spaces = 1; spaces < 4; spaces++) {
                    memset(w.s, 0, bytes.s);
                    memset(w.L, 0, bytes.L);
                    memset(w.R, 0, bytes.L);
                    CHECK(solve_in(handle, &w, options, spaces & 1 ? TSVD_CUDA : TSVD_HOST,
                                   spaces & 2 ? TSVD_CUDA : TSVD_HOST, NULL, &error) == TSVD_OK,
                          "%s", error.text);
                    CHECK(memcmp(w.s, s, bytes.s) == 0 &&
                              (!vectors ||
                               (memcmp(w.L, L, bytes.L) == 0 && memcmp(w.R, R, bytes.L) == 0)),
                          "%s, n = %lld, %lld matrices, vectors %d, spaces %d",
                          tsvd_method_name(methods[m]), (long long)w.n, (long long)w.matrices,
                          vectors, spaces);
                }
                free(L);
                free(s);
                free(R);
                free_work(&w);
            }
        }
    }
}

/* d: every third number, backwards; one e for all matrices. */
static void
test_strides(tsvd_handle *handle)
{
    const int64_t n = 40, matrices = 7, spaced = 3 * n * matrices;
    struct work w = make_work(TSVD_FLOAT64, n, matrices);
    struct arrays a = arrays_of(&w);
    double *d = (double *)allocate((size_t)spaced * sizeof *d);
    const size_t bytes = (size_t)(n * n * matrices) * sizeof *d;
    void *L = allocate(bytes);
    tsvd_error error;

    for (int64_t i = 0; i < spaced; i++) {
        d[i] = random_scaled(-2, 0);
    }
    for (int space = 0; space < 2; space++) {
        char *data = (char *)d;

        if (space == 1) {
            data = (char *)on_device(d, (size_t)spaced * sizeof *d);
            a.e.data = on_device(w.e, (size_t)(n - 1) * sizeof *d);
            a.d.space = a.e.space = TSVD_CUDA;
        }
        a.d.data = data + (spaced - 3) * (int64_t)sizeof *d;
        a.d.strides[0] = -3 * n * (int64_t)sizeof *d;
        a.d.strides[1] = -3 * (int64_t)sizeof *d;
        a.e.shape[0] = 1;
        CHECK(tsvd_svd(handle, &a.d, &a.e, NULL, &a.L, &a.s, &a.R, NULL, &error) == TSVD_OK, "%s",
              error.text);
        CHECK(space == 0 || memcmp(L, w.L, bytes) == 0, "strided arrays on the device");
        memcpy(L, w.L, bytes);
        if (space == 1) {
            (void)cudaFree(data);
            (void)cudaFree(a.e.data);
        }
    }
    free(d);
    free(L);
    free_work(&w);
}

/* The plan bounds what a call takes of the device, and a call gives all of it back. */
static void
test_workspace(void)
{
    const int64_t orders[] = {1, 8, 32, 33, 64, 100, 300, 1000, 1537};
    const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_DC, TSVD_METHOD_BISECT,
                                   TSVD_METHOD_QR, TSVD_METHOD_GIVENS};
    const tsvd_allocator allocator = {counted_allocate, counted_release, NULL};
    tsvd_handle *handle = make_handle(NULL, &allocator);

    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        const int count = orders[o] > 1000 ? 3 : 5; /* the last two take long */

        for (int m = 0; m < count; m++) {
            for (int i = 0; i < 4; i++) {
                struct work w = make_work(dtypes[i & 1], orders[o], i & 2 ? 9 : 1);
                struct arrays a = arrays_of(&w);
                tsvd_options options = default_options();
                tsvd_plan plan = TSVD_PLAN_INIT;
                tsvd_error error;

                options.method = methods[m];
                options.eps = methods[m] == TSVD_METHOD_GIVENS ? 1e-2 : -1;
                w.vectors = methods[m] != TSVD_METHOD_BISECT && (i & 1) == 0;
                a.d.space = a.e.space = TSVD_CUDA;
                CHECK(tsvd_make_plan(handle, &a.d, &a.e, &options, w.vectors, &plan, &error) ==
                          TSVD_OK,
                      "%s", error.text);
                counted.peak = 0;
                CHECK(solve_in(handle, &w, options, TSVD_CUDA, TSVD_HOST, NULL, &error) == TSVD_OK,
                      "%s", error.text);
                CHECK(counted.bytes == 0, "%lld bytes are left", counted.bytes);
                CHECK((uint64_t)counted.peak <= plan.device_bytes,
                      "%s, n = %lld, %lld matrices, vectors %d: %lld bytes of %llu",
                      tsvd_method_name(methods[m]), (long long)w.n, (long long)w.matrices,
                      w.vectors, counted.peak, (unsigned long long)plan.device_bytes);
                CHECK(plan.device_bytes <= 16 * (uint64_t)counted.peak + ((uint64_t)256 << 20),
                      "%s, n = %lld, %lld matrices, vectors %d: %lld bytes, the plan tells %llu",
                      tsvd_method_name(methods[m]), (long long)w.n, (long long)w.matrices,
                      w.vectors, counted.peak, (unsigned long long)plan.device_bytes);
                free_work(&w);
            }
        }
    }
    tsvd_destroy(handle);
}

static __global__ void
wait_kernel(long long cycles)
{
    const long long begin = clock64();

    while (clock64() - begin < cycles) {
    }
}

/* Work goes in the order of the caller's stream: after a copy that is late, and before one that
   reads the results. */
static void
test_streams(void)
{
    const int64_t n = 300;
    struct work w = make_work(TSVD_FLOAT64, n, 1);
    const struct sizes bytes = sizes_of(&w);
    void *s = allocate(bytes.s);
    cudaStream_t stream;
    tsvd_handle *own = make_handle(NULL, NULL), *handle;
    cudaGraph_t graph = NULL;
    struct arrays a;
    tsvd_error error;
    void *d, *e, *results;

    w.batch = 0;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream");
    handle = make_handle(stream, NULL);
    a = arrays_of(&w);
    CHECK(tsvd_svd(own, &a.d, &a.e, NULL, NULL, &a.s, NULL, NULL, &error) == TSVD_OK, "%s",
          error.text);
    memcpy(s, w.s, bytes.s);
    a.d.data = d = on_device(NULL, bytes.d);
    a.e.data = e = on_device(w.e, bytes.e);
    a.s.data = results = on_device(NULL, bytes.s);
    a.d.space = a.e.space = a.s.space = TSVD_CUDA;
    memset(w.s, 0, bytes.s);
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "before");
    wait_kernel<<<1, 1, 0, stream>>>(200000000); /* a tenth of a second */
    CHECK(cudaMemcpyAsync(d, w.d, bytes.d, cudaMemcpyHostToDevice, stream) == cudaSuccess, "d");
    CHECK(tsvd_svd(handle, &a.d, &a.e, NULL, NULL, &a.s, NULL, NULL, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(cudaMemcpyAsync(w.s, results, bytes.s, cudaMemcpyDeviceToHost, stream) == cudaSuccess,
          "s");
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess, "after");
    CHECK(memcmp(w.s, s, bytes.s) == 0, "values in the order of a stream");

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess, "capture");
    CHECK(tsvd_svd(handle, &a.d, &a.e, NULL, NULL, &a.s, NULL, NULL, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "graph") != NULL,
          "%s", error.text);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture is as it was");
    CHECK(graph != NULL && cudaGraphDestroy(graph) == cudaSuccess, "a graph");
    CHECK(tsvd_set_stream(handle, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK(tsvd_svd(handle, &a.d, &a.e, NULL, NULL, &a.s, NULL, NULL, &error) == TSVD_OK, "%s",
          error.text);
    CHECK(tsvd_trim(handle, &error) == TSVD_OK, "%s", error.text);
    CHECK(solve_on(handle, &w, NULL, NULL, &error) == TSVD_OK, "after trim: %s", error.text);
    check_result(&w, 0, 0, 1e-12);
    tsvd_destroy(handle);
    tsvd_destroy(own);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess, "the stream is the caller's");
    (void)cudaFree(d);
    (void)cudaFree(e);
    (void)cudaFree(results);
    free(s);
    free_work(&w);
}

static void
test_refusals(tsvd_handle *handle)
{
    struct work w = make_work(TSVD_FLOAT64, 5, 1);
    struct arrays a = arrays_of(&w);
    void *d = on_device(w.d, sizes_of(&w).d), *e = on_device(w.e, sizes_of(&w).e);
    tsvd_options options = default_options();
    int64_t first, count;
    tsvd_error error;

    a.d.space = TSVD_CUDA;
    a.d.data = d;
    CHECK(tsvd_svd(handle, &a.d, &a.e, NULL, NULL, &a.s, NULL, NULL, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "d lies on the device, e on the host") != NULL,
          "%s", error.text);
    a.e.space = TSVD_CUDA;
    a.e.data = e;
    a.L.space = TSVD_CUDA;
    CHECK(tsvd_svd(handle, &a.d, &a.e, NULL, &a.L, &a.s, &a.R, NULL, &error) == TSVD_ERR_ARGUMENT,
          "%s", error.text);
    CHECK(tsvd_svd(cpu(), &a.d, &a.e, NULL, NULL, &a.s, NULL, NULL, &error) == TSVD_ERR_ARGUMENT,
          "%s", error.text);
    w.batch = 0;
    a.d.ndim = a.e.ndim = 1;
    a.d.shape[0] = 5;
    a.e.shape[0] = 4;
    a.d.strides[0] = a.e.strides[0] = sizeof(double);
    CHECK(tsvd_select(handle, &a.d, &a.e, &options, -1, 1e9, &first, &count, &error) == TSVD_OK &&
              first == 0 && count == 5,
          "%s", error.text);
    (void)cudaFree(d);
    (void)cudaFree(e);
    free_work(&w);
}

int
main(void)
{
    tsvd_handle *handle;
    tsvd_error error;
    int count;

    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return SKIPPED;
    }
    handle = make_handle(NULL, NULL);
    test_spaces(handle);
    test_strides(handle);
    test_refusals(handle);
    tsvd_destroy(handle);
    test_workspace();
    test_streams();
    return report();
}
