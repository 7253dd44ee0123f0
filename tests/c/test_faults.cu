/*
 * Every call of CUDA, of cuBLAS and for host memory fails: one at a time, and all from one on.  The
 * error says which it was, nothing is leaked, and the next call is right.  The same holds after an
 * interruption at each call of options.check.  Leaves with SKIPPED where there is no GPU, after a
 * check that calls are wrapped at all.
 */
#include <limits.h>

#include "calls.h"
#include "faults.h"
#include "runtime/device.h"

extern "C" {
#include "backend/handle.h"
}

enum { SKIPPED = 77 };

static tsvd_status
create(tsvd_handle **handle, tsvd_error *error)
{
    const tsvd_allocator allocator = {faults_allocate, faults_release, NULL};
    tsvd_config config = default_config();

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
                       : is("cudaLaunchKernelExC") ? "cudaLaunchKernelEx"
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
    struct call call;
    int live;             /* what the handle holds between two calls */
    long long host_bytes; /* host memory that the handle holds between two calls */
};

/* Of the entries of B - L S R, in eps. */
static const double ROUNDING = 4500;

/* The results of the first call up to rounding: a batch may have been cut into other chunks. */
static void
check_close(const struct test *t, const char *when)
{
    const struct call *c = &t->call;

    for (int64_t i = 0; c->shape.of == OF_BIDIAGONAL && i < c->shape.matrices * c->shape.n; i++) {
        const double s = get(c->dtype, c->result[0], i);

        CHECK(fabs(s - get(c->dtype, c->expected[0], i)) <= ROUNDING * eps_of(c->dtype),
              "%s: s[%lld]", when, (long long)i);
    }
    for (int64_t i = 0; i < c->shape.matrices; i++) {
        check_matrix(c, i, ROUNDING);
    }
}

static void
check_nothing_left(const struct test *t, const char *after)
{
    uint64_t used = 1;

    CHECK(cudaStreamSynchronize(t->handle->cuda->own_stream) == cudaSuccess, "after %s", after);
    CHECK(cudaMemPoolGetAttribute(t->handle->cuda->pool, cudaMemPoolAttrUsedMemCurrent, &used) ==
                  cudaSuccess &&
              used == 0,
          "after %s: %llu bytes of device memory are in use", after, (unsigned long long)used);
    CHECK(shim.live <= t->live, "after %s: %d things, not %d", after, shim.live, t->live);
    CHECK(shim.host_bytes <= t->host_bytes, "after %s: %lld bytes of host memory, not %lld", after,
          shim.host_bytes, t->host_bytes);
}

/* Whether the failed call only asks if a dense matrix fits a cluster of blocks: if not, other
   kernels are used.  JACOBI asks only for large square matrices, which start with an SVD. */
static int
is_question(const struct test *t)
{
    const struct call_shape *s = &t->call.shape;
    const int by_auto = s->method != TSVD_METHOD_JACOBI || (s->m == s->n && s->n > 128);

    return s->of == OF_DENSE && by_auto &&
           (is("cudaDeviceGetAttribute") || is("cudaFuncGetAttributes") ||
            is("cudaFuncSetAttribute"));
}

/* Whether the failed call makes a share of the device: without one the call's own stream does all
   the work. */
static int
is_share(void)
{
    return is("cuGreenCtxCreate") || is("cuGreenCtxStreamCreate");
}

/* Call number `first` fails: alone (FAIL_ONE), or with all calls after it (FAIL_ALL).  NO_MEMORY is
   FAIL_ALL with only requests for device memory counted.  Returns whether a call failed. */
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
    status = run_call(t->handle, &t->call, &error);
    did = shim.name != NULL;
    name = did ? shim.name : "no failure";
    if (status == TSVD_OK) {
        /* these failures are overcome: memory is requested a second time, chunks may be smaller,
           the bound on kept memory is set later */
        CHECK(!did || (kind != NO_MEMORY && is("cudaMallocFromPoolAsync")) ||
                  is("cudaMemPoolGetAttribute") || is("cudaMemGetInfo") || is_question(t) ||
                  is_share(),
              "the failure of %s, call %lld, went unnoticed", name, first);
        if (t->call.shape.matrices == 1 && t->call.shape.of == OF_BIDIAGONAL) {
            check_same(&t->call, name);
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
    check_again(t->handle, &t->call, name);
    return did;
}

/* The calls that come only while a handle has no buffers and no cuBLAS yet. */
static void
check_cold(struct test *t)
{
    const char *const cold[] = {"cudaHostAlloc", "cublasCreate", "cublasSetStream",
                                "cuGreenCtxCreate", "cuGreenCtxStreamCreate"};
    static const char *listed[CALLS_LISTED];
    long long calls;
    tsvd_error error;

    CHECK(tsvd_trim(t->handle, &error) == TSVD_OK, "%s", error.text);
    begin_faults(NULL, 0, 0);
    CHECK(run_call(t->handle, &t->call, &error) == TSVD_OK, "%s", error.text);
    memcpy(listed, shim.listed, sizeof(listed));
    calls = end_faults();
    for (long long k = 1; k <= calls && k < CALLS_LISTED; k++) {
        for (size_t i = 0; i < sizeof(cold) / sizeof(*cold); i++) {
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

/* Stops the call at the first call of options.check, the second, ... */
static void
check_interruptions(struct test *t)
{
    int stopped = 1;

    for (int stop_at = 1; stopped && stop_at < 10000; stop_at++) {
        stopped = stop_call(t->handle, &t->call, stop_at);
        check_nothing_left(t, "an interruption");
        check_again(t->handle, &t->call, "an interruption");
    }
    CHECK(!stopped, "%s: always stopped", t->call.name);
}

static void
test_call(tsvd_dtype dtype, struct call_shape shape)
{
    enum { RUNS = 400, RUNS_ALL = 40 };
    const size_t slack = (size_t)64 << 20; /* CUDA loads code when it is first needed */
    struct test t;
    size_t before;
    long long calls;
    tsvd_error error;

    memset(&t, 0, sizeof(t));
    CHECK(create(&t.handle, &error) == TSVD_OK, "%s", error.text);
    t.call = make_call(dtype, shape);
    t.call.options = default_options();
    t.call.options.method = shape.method;
    t.call.options.dense_stages = shape.stages;
    t.call.options.eps = shape.method == TSVD_METHOD_GIVENS ? 0.1 : -1;
    CHECK(run_call(t.handle, &t.call, &error) == TSVD_OK, "%s", error.text); /* loads kernels */
    before = trimmed(&t);
    begin_call(t.handle, &t.call, ROUNDING);
    t.live = shim.live;
    t.host_bytes = shim.host_bytes;
    begin_faults(NULL, 0, 0);
    check_again(t.handle, &t.call, "nothing");
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
    check_interruptions(&t);
    check_cold(&t);
    CHECK(trimmed(&t) + slack >= before, "device memory is lost");
    printf("%s, vectors %d: %lld calls\n", t.call.name, shape.vectors, calls);
    tsvd_destroy(t.handle);
    CHECK(shim.live == 0 && shim.host_bytes == 0, "%d, %lld bytes are left", shim.live,
          shim.host_bytes);
    free_call(&t.call);
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
    const struct call_shape shapes[] = {
        BIDIAGONAL(DC, 100, 1, 1),
        BIDIAGONAL(DC, 700, 1, 1),
        BIDIAGONAL(DC, 40, 20, 1),
        BIDIAGONAL(BISECT, 100, 1, 0),
        BIDIAGONAL(BISECT, 3000, 1, 0),
        BIDIAGONAL(BISECT, 300, 9, 0),
        BIDIAGONAL(QR, 150, 1, 1),
        BIDIAGONAL(GIVENS, 150, 1, 1),
        DENSE(AUTO, 12, 8, 30, 1),
        DENSE(AUTO, 150, 140, 1, 1),
        DENSE_TWO_STAGES(330, 270, 1, 1),
        DENSE_TWO_STAGES(200, 200, 2, 0),
        DENSE(JACOBI, 30, 12, 20, 1), /* a warp per matrix, */
        DENSE(JACOBI, 50, 90, 3, 1),  /* or a block */
        DENSE(JACOBI, 40, 40, 5, 0),
        DENSE(JACOBI, 150, 150, 1, 1), /* all blocks on one matrix: starts with another SVD, */
        DENSE(JACOBI, 200, 140, 1, 1), /* or with QR */
        INVERSE(7, 30, 0),             /* in registers, */
        INVERSE(60, 5, 0),             /* in shared memory, */
        INVERSE(20, 9, 1),             /* with a step of Newton's iteration, */
        INVERSE(300, 2, 0),            /* in panels */
        INVERSE(300, 1, 1),
    };
    const struct call_shape large = BIDIAGONAL(DC, 1500, 1, 1); /* its vectors are sent in blocks */
    tsvd_error error;
    int count;

    test_wrapped();
    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return failures > 0 ? report() : (int)SKIPPED;
    }
    test_create();
    for (int t = 0; t < DTYPES; t++) {
        for (const struct call_shape &shape : shapes) {
            test_call(dtypes[t], shape);
        }
    }
    test_call(TSVD_FLOAT64, large);
    return report();
}
