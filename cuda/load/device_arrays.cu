/*
 * Reads matrices from arrays in device memory, and fills results there.  Mirrors
 * csrc/backend/host_arrays.c, which does so for arrays in host memory.  Large batches in host
 * memory are brought to the device first, and read there.
 */
#include "kernels.h"

enum { LOAD_THREADS = 1024 };

/* An input as the kernel sees it. */
struct device_input {
    const char *data;
    int64_t stride;
    int64_t batch_strides[TSVD_MAX_BATCH_DIMS];
};

/* Where a chunk is read from, and where it goes. */
struct device_load {
    int64_t n, off, begin, count; /* off: entries of e */
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
    return locate_matrix(input.data, q.batch_ndim, q.batch_shape, input.batch_strides, index);
}

/* A block reads a matrix: gathers it, finds its largest entry, and makes it zero if it is not
   ordinary. */
static __global__ void
__launch_bounds__(LOAD_THREADS) load_kernel(const __grid_constant__ struct device_load q)
{
    const int64_t n = q.n, index = blockIdx.x;
    const char *d = locate(q, q.d, q.begin + index), *e = locate(q, q.e, q.begin + index);
    real *to_d = q.d_d + index * n, *to_e = q.d_e + index * n;
    __shared__ real_int largest[LOAD_THREADS / WARP];
    const int threads = (int)blockDim.x;
    real_int most = 0, exponent = 0;
    bool ordinary;

    for (int64_t i = threadIdx.x; i < n; i += threads) {
        const real x = *(const real *)(d + i * q.d.stride);
        const real y = i < q.off ? *(const real *)(e + i * q.e.stride) : REAL(0);

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
    for (int i = 0; i < threads / WARP; i++) {
        most = largest[i] > most ? largest[i] : most;
    }
    ordinary = most > 0 && most < R_INFINITY_BITS;
    for (int64_t i = threadIdx.x; i < n && !ordinary; i += threads) {
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

/* No more warps of a block than a matrix has work for. */
static unsigned
load_threads(int64_t n)
{
    return n < LOAD_THREADS ? blocks_for(n, WARP) * WARP : (unsigned)LOAD_THREADS;
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

/* Takes device memory for a chunk, which the worker keeps: d and e, then the exponents and kinds of
   the matrices. */
static tsvd_status
take_workspace(struct tsvd_context *ctx, struct chunk *chunk, struct device_load *load)
{
    const int64_t n = ctx->problem->n, most = ctx->plan->reported.chunk;
    const int64_t numbers = n * most; /* no overflow: no more than in the input */
    uint64_t bytes = bytes_of(most, 2 * sizeof(real));
    tsvd_status ret = TSVD_OK;

    if (chunk->d_d == NULL) {
        bytes = bytes_add(bytes, bytes_of(numbers, 2 * sizeof(real)));
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), bytes, (void **)&chunk->d_d));
        chunk->d_e = chunk->d_d + numbers;
        chunk->d_exponent = (real_int *)(chunk->d_e + numbers);
    }
    load->d_d = chunk->d_d;
    load->d_e = chunk->d_e;
    load->d_exponent = chunk->d_exponent;
    load->d_kind = (char *)(load->d_exponent + most);
out:
    return ret;
}

bool
tsvdi_cuda_load_needs_staging(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n, count = plan->reported.chunk;

    return plan->problem->from == TSVD_HOST && !plan->host_entries && count > 1 &&
           count * n >= STAGED_ENTRIES && (size_t)n * sizeof(real) <= STAGE_BYTES;
}

/* The matrices of a chunk, as a source of bytes. */
struct staged {
    const struct svd_problem *problem;
    const struct svd_input *input;
    int64_t begin;  /* the chunk's first matrix */
    int64_t filled; /* entries of a matrix; zeros follow up to n */
};

static void
gather_rows(const void *arg, size_t begin, size_t count, char *to)
{
    const struct staged *staged = (const struct staged *)arg;
    const size_t row = (size_t)staged->problem->n * sizeof(real);

    tsvdi_host_gather(staged->problem, staged->input, staged->begin + (int64_t)(begin / row),
                      (int64_t)(count / row), staged->filled, (real *)to);
}

/* Brings the chunk's entries to the device. */
static tsvd_status
stage(struct tsvd_context *ctx, const struct chunk *chunk)
{
    const struct svd_problem *p = ctx->problem;
    const size_t row = (size_t)p->n * sizeof(real), bytes = (size_t)chunk->count * row;
    const struct staged d = {p, &p->d, chunk->begin, p->n};
    const struct staged e = {p, &p->e, chunk->begin, entries_of_e(p)};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_upload_blocks(cuda_of(ctx), chunk->d_d, bytes, row, gather_rows, &d));
    TSVD_TRY(tsvdi_cuda_upload_blocks(cuda_of(ctx), chunk->d_e, bytes, row, gather_rows, &e));
out:
    return ret;
}

/* Fills in what the kernel reads: the caller's arrays, or the staged chunk->d_d and d_e. */
static void
describe(const struct svd_problem *p, const struct chunk *chunk, struct device_load *load)
{
    const ptrdiff_t row = p->n * (ptrdiff_t)sizeof(real);

    load->n = p->n;
    load->off = entries_of_e(p);
    load->count = chunk->count;
    if (p->from == TSVD_HOST) {
        load->batch_ndim = 1;
        load->batch_shape[0] = chunk->count;
        load->d = {(const char *)chunk->d_d, (int64_t)sizeof(real), {row}};
        load->e = {(const char *)chunk->d_e, (int64_t)sizeof(real), {row}};
        return;
    }
    load->begin = chunk->begin;
    load->batch_ndim = p->batch.ndim;
    for (int i = 0; i < p->batch.ndim; i++) {
        load->batch_shape[i] = p->batch.shape[i];
    }
    load->d = input_of(&p->d, p->batch.ndim);
    load->e = input_of(&p->e, p->batch.ndim);
}

/* Downloads exponents and kinds of the matrices, and their entries if the plan says so. */
static tsvd_status
download_chunk(struct tsvd_context *ctx, const struct chunk *chunk, const struct device_load *load)
{
    const size_t count = (size_t)chunk->count;
    const size_t entries = count * (size_t)ctx->problem->n * sizeof(real);
    const struct cuda_piece piece[] = {
        {chunk->exponent, load->d_exponent, count * sizeof(real_int)},
        {chunk->kind, load->d_kind, count},
        {chunk->d, chunk->d_d, entries},
        {chunk->e, chunk->d_e, entries},
    };

    return tsvdi_cuda_download_all(cuda_of(ctx), piece, ctx->plan->host_entries ? 4 : 2);
}

tsvd_status
tsvdi_cuda_load_chunk(struct tsvd_context *ctx, struct chunk *chunk)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct svd_problem *p = ctx->problem;
    struct device_load load = {};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(take_workspace(ctx, chunk, &load));
    describe(p, chunk, &load);
    if (p->from == TSVD_HOST) {
        TSVD_TRY(stage(ctx, chunk));
    }
    load_kernel<<<(unsigned)chunk->count, load_threads(ctx->problem->n), 0, call->stream>>>(load);
    CUDA_LAUNCHED(call);
    TSVD_TRY(download_chunk(ctx, chunk, &load));
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
tsvdi_cuda_load_fill(struct tsvd_context *ctx, int64_t i, int kind, struct results to)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct svd_problem *p = ctx->problem;
    const int64_t rows = p->rows, columns = p->columns, k = p->k;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(fill_array(call, 1, k, kind, k, to.s + i * k)); /* no ones */
    if (to.L != NULL) {
        TSVD_TRY(fill_array(call, rows, k, kind, -p->first, to.L + i * rows * k));
        TSVD_TRY(fill_array(call, k, columns, kind, p->first, to.R + i * k * columns));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_load_fill_nan(struct tsvd_context *ctx, int64_t count, real *d_x)
{
    return fill_array(cuda_of(ctx), 1, count, NONFINITE, 0, d_x);
}
