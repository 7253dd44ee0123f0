/*
 * Device memory for results that outlives its handle, and the order of streams, through the C
 * interface.  Leaves with SKIPPED where there is no GPU.
 */
#include <cuda_runtime.h>
#include <future>
#include <string.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "check.h"
#include "defaults.h"
#include "tsvd/tsvd.h"

enum { SKIPPED = 77, BYTES = 1 << 20 };

/* Clock ticks that a stream is kept busy for: about a tenth of a second. */
static const long long BUSY = 200000000;

static __global__ void
wait_kernel(long long ticks)
{
    const long long begin = clock64();

    while (clock64() - begin < ticks) {
    }
}

static tsvd_handle *
make_handle(const tsvd_allocator *allocator)
{
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    config.device = 0;
    config.device_allocator = allocator;
    if (tsvd_create(&config, &handle, &error) != TSVD_OK) {
        printf("%s\n", error.text);
        exit(EXIT_FAILURE);
    }
    return handle;
}

static tsvd_memory *
take(tsvd_handle *handle, size_t bytes)
{
    tsvd_memory *memory = NULL;
    tsvd_error error;

    CHECK(tsvd_memory_take(handle, bytes, &memory, &error) == TSVD_OK && memory != NULL, "%s",
          error.text);
    return memory;
}

/* Whether `bytes` bytes of device memory hold the same byte. */
static int
holds(const void *d_from, int byte, size_t bytes)
{
    unsigned char *copy = (unsigned char *)malloc(bytes);
    int same = cudaMemcpy(copy, d_from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;

    for (size_t i = 0; i < bytes && same; i++) {
        same = copy[i] == byte;
    }
    free(copy);
    return same;
}

/* The memory outlives the handle, and any thread may release it later. */
static void
test_lifetime(void)
{
    tsvd_handle *handle = make_handle(NULL);
    tsvd_memory *memory = take(handle, BYTES), *none = take(handle, 0);
    void *own = tsvd_handle_stream(handle);
    tsvd_error error;

    CHECK(tsvd_memory_stream(memory) == own && own != NULL, "the handle's own stream");
    CHECK(tsvd_memory_data(memory) != NULL && tsvd_memory_data(none) != NULL, "data");
    CHECK((uintptr_t)tsvd_memory_data(memory) % 256 == 0, "aligned");
    CHECK(cudaMemsetAsync(tsvd_memory_data(memory), 7, BYTES, (cudaStream_t)own) == cudaSuccess,
          "on the stream");
    CHECK(tsvd_trim(handle, &error) == TSVD_OK, "%s", error.text);
    tsvd_destroy(handle);
    CHECK(tsvd_memory_wait(memory, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK(holds(tsvd_memory_data(memory), 7, BYTES), "without its handle");
    tsvd_memory_release(none);
    std::thread([memory] { tsvd_memory_release(memory); }).join();
    tsvd_memory_release(NULL);
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "after");
}

/* Released memory is free for others once its stream has passed the release, not before. */
static void
test_order(void)
{
    tsvd_handle *handle = make_handle(NULL);
    cudaStream_t stream, other;
    tsvd_memory *memory, *later;
    tsvd_error error;

    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream");
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess, "a stream");
    CHECK(tsvd_set_stream(handle, stream, &error) == TSVD_OK, "%s", error.text);
    CHECK(tsvd_handle_stream(handle) == stream, "the stream that was set");
    memory = take(handle, BYTES);
    wait_kernel<<<1, 1, 0, stream>>>(BUSY);
    CHECK(cudaMemsetAsync(tsvd_memory_data(memory), 3, BYTES, stream) == cudaSuccess, "busy");

    CHECK(tsvd_memory_wait(memory, stream, &error) == TSVD_OK, "itself: %s", error.text);
    CHECK(cudaStreamQuery(other) == cudaSuccess, "another stream is not busy");
    CHECK(tsvd_memory_wait(memory, other, &error) == TSVD_OK, "%s", error.text);
    CHECK(cudaStreamQuery(other) == cudaErrorNotReady, "it waits, and the host does not");
    CHECK(cudaStreamSynchronize(other) == cudaSuccess, "other");
    CHECK(holds(tsvd_memory_data(memory), 3, BYTES), "the work is done");

    wait_kernel<<<1, 1, 0, stream>>>(BUSY);
    CHECK(cudaMemsetAsync(tsvd_memory_data(memory), 4, BYTES, stream) == cudaSuccess, "busy");
    tsvd_memory_release(memory);
    CHECK(tsvd_set_stream(handle, other, &error) == TSVD_OK, "%s", error.text);
    later = take(handle, BYTES);
    CHECK(cudaMemsetAsync(tsvd_memory_data(later), 5, BYTES, other) == cudaSuccess, "later");
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "both");
    CHECK(holds(tsvd_memory_data(later), 5, BYTES), "not written to by what came before");

    wait_kernel<<<1, 1, 0, stream>>>(BUSY);
    CHECK(tsvd_wait_for(handle, stream, &error) == TSVD_OK, "%s", error.text);
    CHECK(cudaStreamQuery(other) == cudaErrorNotReady, "the handle's stream waits");
    CHECK(tsvd_wait_for(handle, NULL, &error) == TSVD_OK, "%s", error.text);
    CHECK(tsvd_synchronize(handle, &error) == TSVD_OK, "%s", error.text);
    CHECK(cudaStreamQuery(other) == cudaSuccess, "the host has waited");
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "both");
    tsvd_memory_release(later);
    tsvd_destroy(handle);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaStreamDestroy(other) == cudaSuccess,
          "the end");
}

/* The default stream of a thread is not that of another thread, which still releases in order. */
static void
test_default_streams(void)
{
    tsvd_handle *handle = make_handle(NULL);
    void *const streams[] = {cudaStreamLegacy, cudaStreamPerThread};
    tsvd_error error;

    for (void *stream : streams) {
        tsvd_memory *memory = NULL, *later;
        std::promise<void> busy, done;
        std::thread other;

        CHECK(tsvd_set_stream(handle, stream, &error) == TSVD_OK, "%s", error.text);
        other = std::thread([&] {
            memory = take(handle, BYTES);
            wait_kernel<<<1, 1, 0, (cudaStream_t)stream>>>(BUSY);
            CHECK(cudaMemsetAsync(tsvd_memory_data(memory), 8, BYTES, (cudaStream_t)stream) ==
                      cudaSuccess,
                  "busy");
            busy.set_value();
            done.get_future().wait(); /* this thread's default stream ends with the thread */
        });
        busy.get_future().wait();
        CHECK(tsvd_memory_wait(memory, stream, &error) == TSVD_OK, "%s", error.text);
        tsvd_memory_release(memory);
        later = take(handle, BYTES);
        CHECK(cudaMemsetAsync(tsvd_memory_data(later), 9, BYTES, (cudaStream_t)stream) ==
                  cudaSuccess,
              "later");
        CHECK(cudaDeviceSynchronize() == cudaSuccess, "both");
        CHECK(holds(tsvd_memory_data(later), 9, BYTES), "not written to by what came before");
        tsvd_memory_release(later);
        done.set_value();
        other.join();
    }
    tsvd_destroy(handle);
}

static int allocations;

static void *
allocate(void *arg, size_t bytes, void *stream)
{
    void *p = NULL;

    (void)arg;
    allocations++;
    return cudaMallocAsync(&p, bytes, (cudaStream_t)stream) == cudaSuccess ? p : NULL;
}

static void
release(void *arg, void *p, void *stream)
{
    (void)arg;
    allocations--;
    CHECK(cudaFreeAsync(p, (cudaStream_t)stream) == cudaSuccess, "not ours");
}

static void
test_allocator(void)
{
    const tsvd_allocator allocator = {allocate, release, NULL};
    tsvd_handle *handle = make_handle(&allocator);
    tsvd_memory *memory = take(handle, BYTES);

    CHECK(allocations == 1, "from the caller's allocator");
    tsvd_destroy(handle);
    tsvd_memory_release(memory);
    CHECK(allocations == 0, "back to the caller's allocator");
}

/* Numbers that lie between the multiples of their size, of a call and of a prepared one. */
static void
test_addresses(void)
{
    const int64_t shape[] = {2, 2};
    tsvd_handle *handle = make_handle(NULL);
    tsvd_memory *memory = take(handle, BYTES);
    char *const at = (char *)tsvd_memory_data(memory), *const odd = at + 1024 + 8;
    tsvd_array a = tsvd_array_of(at, TSVD_CUDA, TSVD_COMPLEX128, 2, shape), b = a;
    tsvd_array x = tsvd_array_of(odd, TSVD_CUDA, TSVD_COMPLEX128, 2, shape), none = x;
    tsvd_prepared *prepared = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;

    CHECK(cudaMemset(at, 0, 1024) == cudaSuccess, "zeros");
    CHECK(tsvd_dense_inverse(handle, &a, NULL, 0, &x, NULL, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "X lies at") != NULL &&
              strstr(error.text, "no multiple of the 16 bytes") != NULL,
          "%s", error.text);
    CHECK(tsvd_dense_inverse(handle, &x, NULL, 0, &a, NULL, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "a lies at") != NULL,
          "%s", error.text);
    CHECK(tsvd_dense_plan(handle, &x, NULL, 1, &plan, &error) == TSVD_OK, "not read: %s",
          error.text);
    CHECK(tsvd_dense_prepare(handle, &x, NULL, 0, TSVD_CUDA, NULL, &prepared, &error) == TSVD_OK,
          "not read: %s", error.text);
    tsvd_prepared_destroy(prepared);
    b.strides[0] += 8;
    CHECK(tsvd_dense_inverse(handle, &b, NULL, 0, &a, NULL, &error) == TSVD_ERR_ARGUMENT, "%s",
          error.text);
    none.shape[0] = none.shape[1] = 0;
    CHECK(tsvd_dense_inverse(handle, &none, NULL, 0, &none, NULL, &error) == TSVD_OK, "empty: %s",
          error.text);
    prepared = NULL;
    CHECK(tsvd_inverse_prepare(handle, &a, NULL, 0, TSVD_CUDA, NULL, &prepared, &error) == TSVD_OK,
          "%s", error.text);
    CHECK(tsvd_inverse_execute(prepared, at, odd, NULL, &error) == TSVD_ERR_ARGUMENT, "%s",
          error.text);
    CHECK(tsvd_inverse_execute(prepared, odd, at, NULL, &error) == TSVD_ERR_ARGUMENT, "%s",
          error.text);
    tsvd_prepared_destroy(prepared);
    prepared = NULL;
    CHECK(tsvd_dense_prepare(handle, &a, NULL, 0, TSVD_CUDA, NULL, &prepared, &error) == TSVD_OK,
          "%s", error.text);
    CHECK(tsvd_dense_execute(prepared, at, odd, at + 2048, odd, NULL, &error) == TSVD_OK,
          "vectors that are not wanted: %s", error.text);
    CHECK(tsvd_dense_execute(prepared, at, NULL, at + 2048 + 4, NULL, NULL, &error) ==
              TSVD_ERR_ARGUMENT,
          "%s", error.text);
    tsvd_prepared_destroy(prepared);
    tsvd_memory_release(memory);
    tsvd_destroy(handle);
}

static void
test_refusals(void)
{
    tsvd_handle *handle = make_handle(NULL), *cpu = NULL;
    tsvd_memory *memory = (tsvd_memory *)handle;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    tsvd_error error;
    int host, device = 7;
    void *d_here = NULL;

    CHECK(tsvd_memory_take(handle, (size_t)1 << 46, &memory, &error) == TSVD_ERR_MEMORY, "%s",
          error.text);
    CHECK(memory == NULL && error.wanted == (uint64_t)1 << 46 && error.device == 0, "%s",
          error.text);
    CHECK(tsvd_memory_take(handle, 1, NULL, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream");
    CHECK(tsvd_set_stream(handle, stream, &error) == TSVD_OK, "%s", error.text);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess, "capture");
    CHECK(tsvd_memory_take(handle, 1, &memory, &error) == TSVD_ERR_ARGUMENT &&
              strstr(error.text, "graph") != NULL,
          "%s", error.text);
    CHECK(tsvd_wait_for(handle, NULL, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture is as it was");
    CHECK(cudaGraphDestroy(graph) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess,
          "the end");
    CHECK(tsvd_set_stream(handle, NULL, &error) == TSVD_OK, "%s", error.text);
    tsvd_destroy(handle);

    CHECK(tsvd_create(NULL, &cpu, &error) == TSVD_OK, "%s", error.text);
    CHECK(tsvd_memory_take(cpu, 1, &memory, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(tsvd_wait_for(cpu, NULL, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(tsvd_handle_stream(cpu) == NULL && tsvd_handle_stream(NULL) == NULL, "none");
    tsvd_destroy(cpu);

    CHECK(tsvd_memory_wait(NULL, NULL, &error) == TSVD_ERR_ARGUMENT, "%s", error.text);
    CHECK(tsvd_memory_data(NULL) == NULL && tsvd_memory_stream(NULL) == NULL, "none");
    CHECK(cudaMalloc(&d_here, 100) == cudaSuccess, "the end");
    CHECK(tsvd_cuda_device_of((char *)d_here + 50, &device, &error) == TSVD_OK && device == 0, "%s",
          error.text);
    CHECK(tsvd_cuda_device_of(&host, &device, &error) == TSVD_ERR_ARGUMENT && device == -1, "%s",
          error.text);
    CHECK(cudaFree(d_here) == cudaSuccess, "the end");
}

/* A child of the process leaves the device alone. */
static void
test_forked_child(void)
{
    tsvd_handle *handle = make_handle(NULL);
    tsvd_memory *memory = take(handle, BYTES);
    tsvd_error error;
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        tsvd_status waited = tsvd_memory_wait(memory, NULL, &error);

        tsvd_memory_release(memory);
        _exit(waited == TSVD_ERR_NO_DEVICE ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "status %d", status);
    CHECK(cudaMemset(tsvd_memory_data(memory), 1, BYTES) == cudaSuccess, "the parent's");
    tsvd_memory_release(memory);
    tsvd_destroy(handle);
}

int
main(void)
{
    const struct {
        const char *name;
        void (*test)(void);
    } parts[] = {
        {"lifetime", test_lifetime},
        {"order", test_order},
        {"default streams", test_default_streams},
        {"allocator", test_allocator},
        {"addresses", test_addresses},
        {"refusals", test_refusals},
        {"forked child", test_forked_child},
    };
    tsvd_error error;
    int count;

    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return SKIPPED;
    }
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    for (const auto &part : parts) {
        (void)alarm(30); /* of a part that hangs the name is the last line of the output */
        printf("%s\n", part.name);
        part.test();
    }
    return report();
}
