/*
 * Every call of CUDA, of cuBLAS and for host memory fails: one at a time, and all from one on.  The
 * error says which it was, nothing is left behind, and the next call is right.  Leaves with SKIPPED
 * where there is no GPU, after a look at whether calls are wrapped at all.
 */
#include <limits.h>

#include "faults.h"
#include "problem.h"
#include "runtime/device.h"

extern "C" {
#include "backend/handle.h"
}

enum { SKIPPED = 77 };

static tsvd_status
create(tsvd_handle **handle, tsvd_error *error)
{
    const tsvd_allocator allocator = {faults_allocate, faults_release, NULL};
    tsvd_config config = tsvd_config_default();

    config.device = 0;
    config.threads = 1; /* the calls come in the same order each time */
    config.host_allocator = &allocator;
    return tsvd_create(&config, handle, error);
}

static int
is(const char *name)
{
    return shim.name != NULL && strcmp(shim.name, name) == 0;
}

/* The status and the text of a call in which one call of CUDA failed, shim.name. */
static void
check_error(tsvd_status status, const tsvd_error *error)
{
    const char *name = is("__cudaLaunchKernel") || is("cudaLaunchKernel") ? "the launch of a kernel"
                       : is("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
                           ? "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
                           : shim.name;

    if (is("allocate")) {
        CHECK(status == TSVD_ERR_MEMORY && error->device == TSVD_DEVICE_CPU && error->wanted > 0 &&
                  strstr(error->text, "bytes of host memory") != NULL,
              "status %d: %s", (int)status, error->text);
        return;
    }
    CHECK(error->status == status && error->device == 0, "%s: status %d, device %d: %s", name,
          (int)error->status, error->device, error->text);
    if (is("cudaMallocFromPoolAsync") || is("cudaHostAlloc")) {
        CHECK(status == TSVD_ERR_MEMORY && error->wanted > 0 &&
                  strstr(error->text, "out of memory on CUDA device 0") != NULL,
              "%s: status %d: %s", name, (int)status, error->text);
    } else if (is("cublasCreate")) {
        CHECK(status == TSVD_ERR_MEMORY && strstr(error->text, name) != NULL, "%s: status %d: %s",
              name, (int)status, error->text);
    } else {
        CHECK(status == TSVD_ERR_CUDA || (status == TSVD_ERR_NO_DEVICE && is("cudaGetDeviceCount")),
              "%s: status %d: %s", name, (int)status, error->text);
        CHECK(strstr(error->text, name) != NULL, "%s: %s", name, error->text);
    }
}

/* ---- making a handle ---- */

static void
test_create(void)
{
    tsvd_handle *handle = NULL;
    tsvd_status status = TSVD_ERR_CUDA;
    long long calls = 0;
    tsvd_error error;

    for (long long k = 1; status != TSVD_OK && k < 1000; k++) {
        begin_faults(NULL, k, k);
        status = create(&handle, &error);
        CHECK((status == TSVD_OK) == (shim.name == NULL) && (status == TSVD_OK) == (handle != NULL),
              "call %lld, %s: status %d", k, shim.name, (int)status);
        if (status != TSVD_OK) {
            check_error(status, &error);
            CHECK(shim.live == 0 && shim.host_bytes == 0, "%s: %d, %lld bytes are left", shim.name,
                  shim.live, shim.host_bytes);
        }
        calls = end_faults();
    }
    CHECK(status == TSVD_OK, "no handle can be made: %s", error.text);
    tsvd_destroy(handle);
    CHECK(shim.live == 0 && shim.host_bytes == 0, "%d, %lld bytes are left", shim.live,
          shim.host_bytes);
    for (long long k = 1; k <= calls; k++) {
        begin_faults(NULL, k, LLONG_MAX);
        CHECK(create(&handle, &error) != TSVD_OK && handle == NULL, "all from %lld on", k);
        (void)end_faults();
        CHECK(shim.live == 0 && shim.host_bytes == 0, "%d, %lld bytes are left", shim.live,
              shim.host_bytes);
    }
}

/* ---- calls ---- */

struct test {
    tsvd_handle *handle;
    struct work w;
    tsvd_options options;
    int live;             /* what the handle holds between two calls */
    long long host_bytes; /* the same of host memory */
    void *results[3];     /* those of a call without failures */
    size_t bytes[3];
};

static void **
result_of(struct work *w, int i)
{
    return i == 0 ? &w->s : i == 1 ? &w->L : &w->R;
}

static tsvd_status
call(struct test *t, tsvd_error *error)
{
    for (int i = 0; i < 3; i++) {
        memset(*result_of(&t->w, i), 0xff, t->bytes[i]);
    }
    return solve_on(t->handle, &t->w, &t->options, NULL, error);
}

static void
check_results(struct test *t, const char *when)
{
    for (int i = 0; i < (t->w.vectors ? 3 : 1); i++) {
        CHECK(memcmp(*result_of(&t->w, i), t->results[i], t->bytes[i]) == 0, "%s: result %d", when,
              i);
    }
}

/* The same up to rounding: a batch may have been cut into other chunks. */
static void
check_close(struct test *t, const char *when)
{
    const double tolerance = 4500 * eps_of(t->w.dtype);

    for (int64_t i = 0; i < t->w.matrices * t->w.n; i++) {
        const double s = get(t->w.dtype, t->w.s, i);

        CHECK(fabs(s - get(t->w.dtype, t->results[0], i)) <= tolerance, "%s: s[%lld]", when,
              (long long)i);
    }
    for (int64_t i = 0; i < t->w.matrices && t->w.vectors; i++) {
        check_result(&t->w, i, 0, tolerance + (t->options.eps > 0 ? 4 * t->options.eps : 0));
    }
}

/* A call without failures that gives the bits of the first one. */
static void
check_next(struct test *t, const char *after)
{
    tsvd_error error;

    CHECK(call(t, &error) == TSVD_OK, "after %s: %s", after, error.text);
    check_results(t, after);
}

static void
check_nothing_left(const struct test *t, const char *after)
{
    uint64_t used = 1;

    CHECK(cudaStreamSynchronize(t->handle->cuda->own) == cudaSuccess, "after %s", after);
    CHECK(cudaMemPoolGetAttribute(t->handle->cuda->pool, cudaMemPoolAttrUsedMemCurrent, &used) ==
                  cudaSuccess &&
              used == 0,
          "after %s: %llu bytes of device memory are in use", after, (unsigned long long)used);
    CHECK(shim.live <= t->live, "after %s: %d things, not %d", after, shim.live, t->live);
    CHECK(shim.host_bytes <= t->host_bytes, "after %s: %lld bytes of host memory, not %lld", after,
          shim.host_bytes, t->host_bytes);
}

/* Call number `first` fails (FAIL_ONE), with all behind it (FAIL_ALL), or with the requests for
   device memory behind it, which alone are counted (NO_MEMORY).  Returns whether a call failed. */
enum { FAIL_ONE, FAIL_ALL, NO_MEMORY };

static int
check_fault(struct test *t, long long first, int kind)
{
    const char *name;
    tsvd_status status;
    tsvd_error error;
    int did;

    begin_faults(kind == NO_MEMORY ? "cudaMallocFromPoolAsync" : NULL, first,
                 kind == FAIL_ONE ? first : LLONG_MAX);
    status = call(t, &error);
    did = shim.name != NULL;
    name = did ? shim.name : "no failure";
    if (status == TSVD_OK) {
        /* memory is asked for a second time, chunks may be small, the bound on what is kept waits
         */
        CHECK(!did || (kind != NO_MEMORY && is("cudaMallocFromPoolAsync")) ||
                  is("cudaMemPoolGetAttribute") || is("cudaMemGetInfo"),
              "the failure of %s, call %lld, went unnoticed", name, first);
        if (t->w.matrices == 1) {
            check_results(t, name);
        } else {
            check_close(t, name);
        }
    } else if (kind == FAIL_ALL) {
        CHECK(status == TSVD_ERR_MEMORY || status == TSVD_ERR_CUDA, "%s: status %d", name,
              (int)status);
        CHECK(strlen(error.text) > 10, "%s: \"%s\"", name, error.text);
    } else {
        check_error(status, &error);
    }
    (void)end_faults();
    check_nothing_left(t, name);
    check_next(t, name);
    return did;
}

/* The calls that come only while a handle has no buffers and no cuBLAS yet. */
static void
check_cold(struct test *t)
{
    const char *const cold[] = {"cudaHostAlloc", "cublasCreate", "cublasSetStream"};
    static const char *listed[CALLS_LISTED];
    long long calls;
    tsvd_error error;

    CHECK(tsvd_trim(t->handle, &error) == TSVD_OK, "%s", error.text);
    begin_faults(NULL, 0, 0);
    CHECK(call(t, &error) == TSVD_OK, "%s", error.text);
    memcpy(listed, shim.listed, sizeof(listed));
    calls = end_faults();
    for (long long k = 1; k <= calls && k < CALLS_LISTED; k++) {
        for (int i = 0; i < 3; i++) {
            if (strcmp(listed[k], cold[i]) == 0) {
                CHECK(tsvd_trim(t->handle, &error) == TSVD_OK, "%s", error.text);
                (void)check_fault(t, k, FAIL_ONE);
            }
        }
    }
}

/* Free device memory once the handle keeps nothing. */
static size_t
trimmed(struct test *t)
{
    size_t available = 0, total;
    tsvd_error error;

    CHECK(tsvd_trim(t->handle, &error) == TSVD_OK, "%s", error.text);
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "after trim");
    CHECK(cudaMemGetInfo(&available, &total) == cudaSuccess, "free memory");
    return available;
}

static void
test_call(tsvd_dtype dtype, tsvd_method method, int64_t n, int64_t matrices, int vectors)
{
    enum { RUNS = 400, RUNS_ALL = 40 };
    const size_t slack = (size_t)64 << 20; /* CUDA loads code when it is first needed */
    struct test t;
    size_t before;
    long long calls;
    tsvd_error error;

    memset(&t, 0, sizeof(t));
    CHECK(create(&t.handle, &error) == TSVD_OK, "%s", error.text);
    t.w = make_work(dtype, n, matrices);
    t.w.vectors = vectors;
    t.options = tsvd_options_default();
    t.options.method = method;
    t.options.eps = method == TSVD_METHOD_GIVENS ? 0.1 : -1;
    t.bytes[0] = (size_t)(matrices * n) * size_of(dtype);
    t.bytes[1] = t.bytes[2] = (size_t)(matrices * n * n) * size_of(dtype);
    CHECK(call(&t, &error) == TSVD_OK, "%s", error.text); /* CUDA loads the kernels */
    before = trimmed(&t);
    CHECK(call(&t, &error) == TSVD_OK, "%s", error.text);
    for (int i = 0; i < 3; i++) {
        t.results[i] = allocate(t.bytes[i]);
        memcpy(t.results[i], *result_of(&t.w, i), t.bytes[i]);
    }
    check_close(&t, "no failure");
    t.live = shim.live;
    t.host_bytes = shim.host_bytes;
    begin_faults(NULL, 0, 0);
    check_next(&t, "nothing");
    calls = end_faults();
    CHECK(calls > 1, "%lld calls", calls);

    for (long long k = 1; k <= calls; k += 1 + calls / RUNS) {
        (void)check_fault(&t, k, FAIL_ONE);
    }
    for (long long k = 1; k <= calls; k += 1 + calls / RUNS_ALL) {
        (void)check_fault(&t, k, FAIL_ALL);
    }
    for (long long k = 1; check_fault(&t, k, NO_MEMORY); k++) {
    }
    check_cold(&t);
    CHECK(trimmed(&t) + slack >= before, "device memory is lost");
    printf("float%d, %s, n = %lld, %lld matrices, vectors %d: %lld calls\n",
           8 * (int)size_of(dtype), tsvd_method_name(method), (long long)n, (long long)matrices,
           vectors, calls);
    tsvd_destroy(t.handle);
    CHECK(shim.live == 0 && shim.host_bytes == 0, "%d, %lld bytes are left", shim.live,
          shim.host_bytes);
    for (int i = 0; i < 3; i++) {
        free(t.results[i]);
    }
    free_work(&t.w);
}

/* Calls are wrapped, also where there is no GPU. */
static void
test_wrapped(void)
{
    tsvd_handle *handle = NULL;
    tsvd_error error;

    begin_faults(NULL, 1, 1);
    CHECK(create(&handle, &error) == TSVD_ERR_MEMORY && handle == NULL && is("allocate"), "%s: %s",
          shim.name, error.text);
    begin_faults(NULL, 2, 2);
    CHECK(create(&handle, &error) == TSVD_ERR_NO_DEVICE && handle == NULL &&
              is("cudaGetDeviceCount"),
          "%s: %s", shim.name, error.text);
    CHECK(pending == cudaSuccess, "the failure was not forgotten");
    (void)end_faults();
    CHECK(shim.live == 0 && shim.host_bytes == 0, "%d, %lld bytes are left", shim.live,
          shim.host_bytes);
}

int
main(void)
{
    tsvd_error error;
    int count;

    test_wrapped();
    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return failures > 0 ? report() : (int)SKIPPED;
    }
    test_create();
    for (int t = 0; t < DTYPES; t++) {
        test_call(dtypes[t], TSVD_METHOD_DC, 100, 1, 1);
        test_call(dtypes[t], TSVD_METHOD_DC, 700, 1, 1);
        test_call(dtypes[t], TSVD_METHOD_DC, 40, 20, 1);
        test_call(dtypes[t], TSVD_METHOD_BISECT, 100, 1, 0);
        test_call(dtypes[t], TSVD_METHOD_BISECT, 3000, 1, 0);
        test_call(dtypes[t], TSVD_METHOD_BISECT, 300, 9, 0);
        test_call(dtypes[t], TSVD_METHOD_QR, 150, 1, 1);
        test_call(dtypes[t], TSVD_METHOD_GIVENS, 150, 1, 1);
    }
    test_call(TSVD_FLOAT64, TSVD_METHOD_DC, 1500, 1, 1); /* its vectors are sent in blocks */
    return report();
}
