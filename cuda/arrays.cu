/*
 * Reads matrices from arrays in device memory, and fills results there.  Mirrors
 * csrc/backend/host_arrays.c, which does so for arrays in host memory.
 */
#include "kernels.h"

enum { LOAD_THREADS = 256 };

/* An input as the kernel sees it. */
struct device_input {
    const char *data;
    int64_t stride;
    int64_t batch_strides[TSVD_MAX_BATCH_DIMS];
};

/* What a chunk is read from, and to. */
struct device_load {
    int64_t n, begin, count;
    int batch_ndim;
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS];
    struct device_input d, e;
    real *d_d, *d_e;      /* [count n] */
    real_int *d_exponent; /* [count] */
    char *d_kind;         /* [count] */
};

static __device__ const char *
locate(const struct device_load &q, const struct device_input &input, int64_t index)
{
    const char *at = input.data;

    for (int k = q.batch_ndim - 1; k >= 0; k--) {
        at += index % q.batch_shape[k] * input.batch_strides[k];
        index /= q.batch_shape[k];
    }
    return at;
}

/* The bits of a magnitude, infinity's where it is NaN: they are ordered as the numbers are. */
static __device__ real_int
size_bits(real x)
{
    const real_int bits = r_bits(x) & ~(real_int)R_SIGN_BIT;

    return bits < R_INFINITY_BITS ? bits : R_INFINITY_BITS;
}

/* A block reads a matrix: gathers it, finds its largest entry, and makes it zero if it is not
   ordinary. */
static __global__ void
__launch_bounds__(LOAD_THREADS) load_kernel(const struct device_load *load)
{
    const struct device_load &q = *load;
    const int64_t n = q.n, index = blockIdx.x;
    const char *d = locate(q, q.d, q.begin + index), *e = locate(q, q.e, q.begin + index);
    real *to_d = q.d_d + index * n, *to_e = q.d_e + index * n;
    __shared__ real_int largest[LOAD_THREADS / WARP];
    real_int most = 0, exponent = 0;
    bool ordinary;

    for (int64_t i = threadIdx.x; i < n; i += LOAD_THREADS) {
        const real x = *(const real *)(d + i * q.d.stride);
        const real y = i + 1 < n ? *(const real *)(e + i * q.e.stride) : REAL(0);

        to_d[i] = x;
        to_e[i] = y;
        most = size_bits(x) > most ? size_bits(x) : most;
        most = size_bits(y) > most ? size_bits(y) : most;
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const real_int other = __shfl_xor_sync(0xffffffffu, most, lanes);

        most = other > most ? other : most;
    }
    if (threadIdx.x % WARP == 0) {
        largest[threadIdx.x / WARP] = most;
    }
    __syncthreads();
    for (int i = 0; i < LOAD_THREADS / WARP; i++) {
        most = largest[i] > most ? largest[i] : most;
    }
    ordinary = most > 0 && most < R_INFINITY_BITS;
    for (int64_t i = threadIdx.x; i < n && !ordinary; i += LOAD_THREADS) {
        to_d[i] = to_e[i] = 0;
    }
    if (threadIdx.x == 0) {
        if (ordinary) {
            (void)r_split(r_from_bits(most), &exponent);
        }
        q.d_exponent[index] = exponent;
        q.d_kind[index] = (char)(ordinary ? ORDINARY : most == 0 ? ZERO : NONFINITE);
    }
}

static struct device_input
input_of(const struct svd_input *input, int batch_ndim)
{
    struct device_input to = {(const char *)input->data, input->stride, {0}};

    for (int i = 0; i < batch_ndim; i++) {
        to.batch_strides[i] = input->batch_strides[i];
    }
    return to;
}

/* Room for a chunk on the device, which the worker keeps: the matrices, then what is known of
   them, and the kernel's argument. */
static tsvd_status
take_room(struct tsvd_context *ctx, struct chunk *chunk, struct device_load *load,
          struct device_load **d_load)
{
    const int64_t n = ctx->problem->n, most = ctx->plan->told.chunk;
    const int64_t numbers = n * most; /* no more than in the input */
    uint64_t bytes = bytes_add(bytes_of(most, 2 * sizeof(real)), sizeof(struct device_load));
    tsvd_status ret = TSVD_OK;

    if (chunk->d_d == NULL) {
        bytes = bytes_add(bytes, bytes_of(numbers, 2 * sizeof(real)));
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), bytes, (void **)&chunk->d_d));
        chunk->d_e = chunk->d_d + numbers;
    }
    load->d_d = chunk->d_d;
    load->d_e = chunk->d_e;
    *d_load = (struct device_load *)(chunk->d_e + numbers);
    load->d_exponent = (real_int *)(*d_load + 1);
    load->d_kind = (char *)(load->d_exponent + most);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_device_load(struct tsvd_context *ctx, int host_entries, struct chunk *chunk)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct svd_problem *p = ctx->problem;
    const size_t count = (size_t)chunk->count, bytes = count * (size_t)p->n * sizeof(real);
    struct device_load load = {}, *d_load = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(take_room(ctx, chunk, &load, &d_load));
    load.n = p->n;
    load.begin = chunk->begin;
    load.count = chunk->count;
    load.batch_ndim = p->batch_ndim;
    for (int i = 0; i < p->batch_ndim; i++) {
        load.batch_shape[i] = p->batch_shape[i];
    }
    load.d = input_of(&p->d, p->batch_ndim);
    load.e = input_of(&p->e, p->batch_ndim);
    TSVD_TRY(tsvdi_cuda_upload(call, d_load, &load, sizeof(load)));
    load_kernel<<<(unsigned)chunk->count, LOAD_THREADS, 0, call->stream>>>(d_load);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call, cudaMemcpyAsync(chunk->exponent, load.d_exponent, count * sizeof(real_int),
                                   cudaMemcpyDeviceToHost, call->stream));
    CUDA_TRY(call, cudaMemcpyAsync(chunk->kind, load.d_kind, count, cudaMemcpyDeviceToHost,
                                   call->stream));
    if (host_entries) {
        CUDA_TRY(call, cudaMemcpyAsync(chunk->d, chunk->d_d, bytes, cudaMemcpyDeviceToHost,
                                       call->stream));
        CUDA_TRY(call, cudaMemcpyAsync(chunk->e, chunk->d_e, bytes, cudaMemcpyDeviceToHost,
                                       call->stream));
    }
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    chunk->ordinary = 0;
    for (int64_t i = 0; i < chunk->count; i++) {
        chunk->ordinary += chunk->kind[i] == ORDINARY;
    }
out:
    return ret;
}

/* Fills one result of a matrix that is not ordinary: with NaN; or with zeros, and with ones where
   column - row = `ones`. */
static __global__ void
__launch_bounds__(LOAD_THREADS)
    fill_kernel(int64_t rows, int64_t columns, int kind, int64_t ones, real *to)
{
    const int64_t i = (int64_t)blockIdx.x * LOAD_THREADS + threadIdx.x;

    if (i < rows * columns) {
        to[i] = kind == NONFINITE ? REAL(NAN) : REAL(i % columns - i / columns == ones);
    }
}

static tsvd_status
fill_array(struct cuda_call *call, int64_t rows, int64_t columns, int kind, int64_t ones, real *to)
{
    tsvd_status ret = TSVD_OK;

    fill_kernel<<<(unsigned)((rows * columns + LOAD_THREADS - 1) / LOAD_THREADS), LOAD_THREADS, 0,
                  call->stream>>>(rows, columns, kind, ones, to);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_device_fill(struct tsvd_context *ctx, int64_t i, int kind, struct results to)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct svd_problem *p = ctx->problem;
    const int64_t n = p->n, k = p->k;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(fill_array(call, 1, k, kind, k, to.s + i * k)); /* no ones */
    if (to.L != NULL) {
        TSVD_TRY(fill_array(call, n, k, kind, -p->first, to.L + i * n * k));
        TSVD_TRY(fill_array(call, k, n, kind, p->first, to.R + i * n * k));
    }
out:
    return ret;
}
