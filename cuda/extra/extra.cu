/*
 * The extra column of n x (n+1) matrices on the device, and the extra row of lower ones
 * (math/extra_column.h).  Mirrors csrc/cpu/extra/extra.c.
 *
 * The square matrices' results always lie on the device.  Those that the caller wants on the host
 * go there when the vectors have the entries of the extra column.
 */
#include <cuda_pipeline_primitives.h>

#include "kernels.h"

enum {
    THREADS = 256,
    LINES = THREADS / (int)TILE, /* rows of a tile that are loaded at once */
    FETCHED = (int)TILE / LINES, /* numbers of a tile that a thread loads */
    DROP_THREADS = 64,
    COLUMN_THREADS = 32,
    TOGETHER = 16,              /* entries of a column that are loaded together */
    IN_FLIGHT = 6,              /* times that, while others are turned */
    SIGNED = 64,                /* rows of a column whose sign a thread changes */
    WARPS = THREADS / (int)WARP /* rows whose signs a block changes */
};

/* ---- the square matrices ---- */

struct device_drop {
    int64_t n, count;
    double eps;            /* of the options */
    real *d, *e;           /* [count n] */
    real_int *exponent;    /* [count] */
    const char *kind;      /* [count] */
    struct rotation *turn; /* [count n] out */
    int *power;            /* [count] out */
};

/* A thread has a matrix. */
static __global__ void
__launch_bounds__(DROP_THREADS) drop_kernel(const __grid_constant__ struct device_drop q)
{
    const int64_t index = (int64_t)blockIdx.x * DROP_THREADS + threadIdx.x, n = q.n;
    real *const d = q.d + index * n, *const e = q.e + index * n;
    struct rotation *const turn = q.turn + index * n;
    int power = 0;

    if (index >= q.count) {
        return;
    }
    if (q.kind[index] == ORDINARY) {
        power = extra_column_make_square(n, q.eps, d, e, &q.exponent[index], turn);
    } else {
        const struct rotation none = extra_column_none(q.kind[index] == NONFINITE);

        for (int64_t i = 0; i < n; i++) {
            turn[i] = none;
        }
    }
    q.power[index] = power;
}

/* What a worker keeps on the device. */
struct device_extra {
    struct rotation *turn; /* [chunk n] */
    int *power;            /* [chunk] */
    char *kind;            /* [chunk] */
};

static size_t
lay_out(int64_t n, int64_t count, struct device_extra *own, char *base)
{
    size_t at = 0;

    own->turn = carve<struct rotation>(base, &at, count * n);
    own->power = carve<int>(base, &at, count);
    own->kind = carve<char>(base, &at, count);
    return at;
}

static struct device_extra
device_extra_of(const struct tsvd_context *ctx, const struct extra_column *extra)
{
    struct device_extra own;

    (void)lay_out(ctx->problem->n, ctx->plan->reported.chunk, &own, (char *)extra->device);
    return own;
}

/* Makes the matrices square where they are: on the device, where a thread has a matrix. */
static tsvd_status
drop_on_device(struct tsvd_context *ctx, struct chunk *chunk, const struct device_extra *own,
               const struct extra_column *extra)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = ctx->problem->n;
    const size_t count = (size_t)chunk->count, entries = count * (size_t)n * sizeof(real);
    const struct device_drop q = {n,          chunk->count, ctx->options->eps,
                                  chunk->d_d, chunk->d_e,   chunk->d_exponent,
                                  own->kind,  own->turn,    own->power};
    const struct cuda_piece piece[] = {
        {chunk->exponent, chunk->d_exponent, count * sizeof(real_int)},
        {extra->power, own->power, count * sizeof(int)},
        {chunk->d, chunk->d_d, entries},
        {chunk->e, chunk->d_e, entries}};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_upload(call, own->kind, chunk->kind, count));
    drop_kernel<<<blocks_for(chunk->count, DROP_THREADS), DROP_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_download_all(call, piece, ctx->plan->host_entries ? 4 : 2));
out:
    return ret;
}

/* Whether a square matrix has another factor than 1. */
static bool
is_scaled(const struct extra_column *extra, int64_t count)
{
    bool scaled = false;

    for (int64_t i = 0; i < count; i++) {
        scaled = scaled || extra->power[i] != 0;
    }
    return scaled;
}

/* The same on the host, which is faster for few matrices: each is one chain of operations. */
static tsvd_status
drop_on_host(struct tsvd_context *ctx, struct chunk *chunk, const struct device_extra *own,
             struct extra_column *extra)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = ctx->problem->n;
    const size_t count = (size_t)chunk->count, entries = count * (size_t)n * sizeof(real);
    const struct cuda_piece piece[] = {{chunk->d, chunk->d_d, entries},
                                       {chunk->e, chunk->d_e, entries}};
    tsvd_status ret = TSVD_OK;

    if (chunk->d_d != NULL && !ctx->plan->host_entries) {
        TSVD_TRY(tsvdi_cuda_download_all(call, piece, 2));
    }
    tsvdi_host_drop_extra(n, ctx->options->eps, chunk, extra);
    if (ctx->problem->vectors) {
        TSVD_TRY(tsvdi_cuda_upload(call, own->turn, extra->turn,
                                   count * (size_t)n * sizeof(*extra->turn)));
    }
    if (is_scaled(extra, chunk->count)) {
        TSVD_TRY(tsvdi_cuda_upload(call, own->power, extra->power, count * sizeof(*extra->power)));
    }
    if (chunk->d_d != NULL) {
        TSVD_TRY(tsvdi_cuda_upload(call, chunk->d_d, chunk->d, entries));
        TSVD_TRY(tsvdi_cuda_upload(call, chunk->d_e, chunk->e, entries));
        TSVD_TRY(
            tsvdi_cuda_upload(call, chunk->d_exponent, chunk->exponent, count * sizeof(real_int)));
    }
out:
    return ret;
}

/* ---- the vectors ---- */

/* The vectors of a chunk: `vectors` of each square matrix, of n entries, and `made` of B, of
   n + 1. */
struct device_restore {
    int64_t n, vectors, made, tiles;
    const struct rotation *turn; /* [count n] */
    const real *from;
    real *to;
    char *flip; /* [count made] out, of columns: 1 if the largest entry is negative */
};

/* Tile `column` of the rows from `row` on, of those of a matrix, to a thread's registers. */
static __device__ __forceinline__ void
fetch_rows(const struct device_restore &q, const real *from, int64_t row, int64_t column,
           real next[FETCHED])
{
    const int64_t j = column + threadIdx.x;

#pragma unroll
    for (int k = 0; k < FETCHED; k++) {
        const int64_t i = row + threadIdx.y + k * LINES;

        next[k] = i < q.vectors && j < q.n ? from[i * q.n + j] : REAL(0);
    }
}

/* R.  A block has a tile of rows, and goes through their columns tile by tile; its first warp
   makes the turns while the next tile is fetched. */
static __global__ void
__launch_bounds__(THREADS) rows_kernel(const __grid_constant__ struct device_restore q)
{
    __shared__ real tile[TILE][TILE + 1];
    __shared__ struct rotation turn[TILE];
    const int64_t matrix = blockIdx.x / q.tiles, row = blockIdx.x % q.tiles * TILE, n = q.n;
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    const real *const from = q.from + matrix * q.vectors * n;
    real *const to = q.to + matrix * q.made * (n + 1);
    const struct rotation none = extra_column_none(0);
    real last = REAL(row + x >= q.vectors), next[FETCHED];

    fetch_rows(q, from, row, 0, next);
    for (int64_t column = 0; column < n; column += TILE) {
#pragma unroll
        for (int k = 0; k < FETCHED; k++) {
            tile[y + k * LINES][x] = next[k];
        }
        if (y == 0) { /* beyond the last column no turn changes `last` */
            turn[x] = column + x < n ? q.turn[matrix * n + column + x] : none;
        }
        __syncthreads();
        fetch_rows(q, from, row, column + TILE, next);
        if (y == 0) {
#pragma unroll
            for (int j = 0; j < TILE; j++) {
                tile[x][j] = extra_column_restored(turn[j], tile[x][j], &last);
            }
        }
        __syncthreads();
        for (int i = y; i < TILE; i += LINES) {
            if (row + i < q.made && column + x < n) {
                to[(row + i) * (n + 1) + column + x] = tile[i][x];
            }
        }
        __syncthreads();
    }
    if (y == 0 && row + x < q.made) {
        to[(row + x) * (n + 1) + n] = last;
    }
}

/* A column's entries on their way: each thread reads what it has loaded itself. */
struct columns_memory {
    real x[IN_FLIGHT][TOGETHER][COLUMN_THREADS];
};

/* Entries begin .. begin + TOGETHER - 1 of a column, or those up to `end`. */
static __device__ __forceinline__ void
fetch_column(const real *from, int64_t begin, int64_t end, int64_t stride,
             struct columns_memory *memory)
{
    real(*const x)[COLUMN_THREADS] = memory->x[begin / TOGETHER % IN_FLIGHT];

#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        if (begin + i < end) {
            __pipeline_memcpy_async(&x[i][threadIdx.x], from + (begin + i) * stride, sizeof(real));
        }
    }
    __pipeline_commit();
}

/* L.  A thread has a column.  There are few columns beside what the device can do at once, so that
   many entries of each have to be on their way. */
static __global__ void
__launch_bounds__(COLUMN_THREADS) columns_kernel(const __grid_constant__ struct device_restore q)
{
    __shared__ struct columns_memory memory;
    const int64_t matrix = blockIdx.x / q.tiles, n = q.n;
    const int64_t j = blockIdx.x % q.tiles * COLUMN_THREADS + threadIdx.x;
    const struct rotation *const turn = q.turn + matrix * n;
    const real *const from = q.from + matrix * n * q.vectors + j;
    real *const to = q.to + matrix * (n + 1) * q.made + j;
    const int64_t there = j < q.vectors ? n : 0; /* the null vector has no entries yet */
    real last = REAL(j >= q.vectors), largest = 0;

    if (j >= q.made) {
        return;
    }
    for (int64_t begin = 0; begin < (IN_FLIGHT - 1) * TOGETHER; begin += TOGETHER) {
        fetch_column(from, begin, there, q.vectors, &memory);
    }
    for (int64_t begin = 0; begin < n; begin += TOGETHER) {
        const real(*const x)[COLUMN_THREADS] = memory.x[begin / TOGETHER % IN_FLIGHT];
        struct rotation now[TOGETHER];

#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            now[i] = turn[begin + i < n ? begin + i : n - 1];
        }
        __pipeline_wait_prior(IN_FLIGHT - 2);
        fetch_column(from, begin + (IN_FLIGHT - 1) * TOGETHER, there, q.vectors, &memory);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            if (begin + i < n) {
                const real given = begin + i < there ? x[i][threadIdx.x] : REAL(0);
                const real restored = extra_column_restored(now[i], given, &last);

                largest = r_abs(restored) > r_abs(largest) ? restored : largest;
                to[(begin + i) * q.made] = restored;
            }
        }
    }
    to[n * q.made] = last;
    largest = r_abs(last) > r_abs(largest) ? last : largest;
    q.flip[matrix * q.made + j] = j < q.vectors && largest < 0;
}

/* Changes the signs of the columns of x [count][rows][made] that flip [count][made] tells.  A
   thread has some rows of a column. */
static __global__ void
__launch_bounds__(THREADS)
    flip_columns_kernel(int64_t rows, int64_t made, int64_t tiles, const char *flip, real *x)
{
    const int64_t matrix = blockIdx.x / tiles, j = blockIdx.x % tiles * THREADS + threadIdx.x;
    const int64_t first = (int64_t)blockIdx.y * SIGNED;
    real *const column = x + matrix * rows * made + j;

    if (j >= made || !flip[matrix * made + j]) {
        return;
    }
    for (int64_t i = first; i < first + SIGNED && i < rows; i++) {
        column[i * made] = -column[i * made];
    }
}

/* The same of rows of x [count][k][n].  A warp has a row. */
static __global__ void
__launch_bounds__(THREADS)
    flip_rows_kernel(int64_t k, int64_t n, int64_t count, int64_t made, const char *flip, real *x)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;

    if (row >= k * count || !flip[row / k * made + row % k]) {
        return;
    }
    for (int64_t j = threadIdx.x % WARP; j < n; j += WARP) {
        x[row * n + j] = -x[row * n + j];
    }
}

/* s 2^power */
static __global__ void
__launch_bounds__(THREADS) scale_kernel(int64_t k, int64_t count, const int *power, real *s)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (at < k * count) {
        r_scale(s + at, 1, -power[at / k], s + at);
    }
}

/* ---- memory of a chunk ---- */

/* Results of the square matrices, and those of the caller's that have to lie on the device before
   they go to the host. */
struct chunk_memory {
    struct results square; /* what the methods fill */
    struct results made;   /* s, L and R of B, on the device */
    char *flip;            /* [count made] */
};

/* base NULL: counts the bytes.  to: where the caller's results go, and whether that is the host. */
static size_t
lay_out_chunk(const struct svd_problem *asked, int64_t count, bool host, struct results to,
              struct chunk_memory *memory, char *base)
{
    const int64_t n = asked->n, k = asked->k, made = k + asked->full;
    const bool lower = asked->rows > asked->columns;
    size_t at = 0;

    memory->made = to;
    if (host) {
        memory->made.s = carve<real>(base, &at, count * k);
    }
    memory->square = memory->made;
    memory->flip = NULL;
    if (asked->vectors) {
        real *const own = carve<real>(base, &at, count * n * k);

        if (host) {
            memory->made.L = carve<real>(base, &at, count * asked->rows * (lower ? made : k));
            memory->made.R = carve<real>(base, &at, count * asked->columns * (lower ? k : made));
        }
        memory->square.L = lower ? own : memory->made.L;
        memory->square.R = lower ? memory->made.R : own;
        memory->flip = carve<char>(base, &at, lower ? count * made : 0);
    }
    return at;
}

static struct chunk_memory
chunk_memory_of(const struct svd_problem *asked, int64_t count, struct results to,
                const struct extra_column *extra)
{
    struct chunk_memory memory;

    (void)lay_out_chunk(asked, count, asked->call.to == TSVD_HOST, to, &memory,
                        (char *)extra->vectors);
    return memory;
}

/* ---- the seam ---- */

static tsvd_status
begin(struct tsvd_context *ctx, const struct svd_problem *asked, struct extra_column *extra)
{
    struct device_extra own;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(cuda_prefault_results(ctx, asked));
    TSVD_TRY(tsvdi_cuda_alloc(
        cuda_of(ctx), lay_out(asked->n, ctx->plan->reported.chunk, &own, NULL), &extra->device));
out:
    return ret;
}

static void
end(struct tsvd_context *ctx, struct extra_column *extra)
{
    tsvdi_cuda_free(cuda_of(ctx), extra->device);
    tsvdi_cuda_free_after_downloads(cuda_of(ctx), extra->vectors);
    extra->vectors = NULL;
}

static tsvd_status
drop(struct tsvd_context *ctx, struct chunk *chunk, const struct svd_problem *asked,
     struct results to, struct extra_column *extra)
{
    const struct device_extra own = device_extra_of(ctx, extra);
    struct chunk_memory memory;
    const size_t bytes =
        lay_out_chunk(asked, chunk->count, asked->call.to == TSVD_HOST, to, &memory, NULL);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), bytes, (void **)&extra->vectors));
    extra->square = chunk_memory_of(asked, chunk->count, to, extra).square;
    TSVD_TRY(chunk->d_d != NULL && chunk->count >= EXTRA_BATCH
                 ? drop_on_device(ctx, chunk, &own, extra)
                 : drop_on_host(ctx, chunk, &own, extra));
out:
    return ret;
}

static tsvd_status
restore_vectors(struct tsvd_context *ctx, int64_t count, const struct svd_problem *asked,
                const struct device_extra *own, const struct chunk_memory *memory)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = asked->n, k = asked->k, made = k + asked->full;
    const bool lower = asked->rows > asked->columns;
    const struct device_restore q = {
        n,
        k,
        made,
        blocks_for(made, lower ? (int64_t)COLUMN_THREADS : (int64_t)TILE),
        own->turn,
        lower ? memory->square.L : memory->square.R,
        lower ? memory->made.L : memory->made.R,
        memory->flip};
    const unsigned blocks = (unsigned)(q.tiles * count), wide = blocks_for(made, THREADS);
    tsvd_status ret = TSVD_OK;

    if (!lower) {
        rows_kernel<<<blocks, dim3(TILE, LINES), 0, call->stream>>>(q);
        CUDA_LAUNCHED(call);
        goto out;
    }
    columns_kernel<<<blocks, COLUMN_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
    flip_columns_kernel<<<dim3(wide * (unsigned)count, blocks_for(n + 1, SIGNED)), THREADS, 0,
                          call->stream>>>(n + 1, made, wide, memory->flip, memory->made.L);
    CUDA_LAUNCHED(call);
    flip_rows_kernel<<<blocks_for(k * count, WARPS), THREADS, 0, call->stream>>>(
        k, n, count, made, memory->flip, memory->made.R);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Sends the results to the host, if they are wanted there. */
static tsvd_status
deliver(struct tsvd_context *ctx, int64_t count, const struct svd_problem *asked,
        const struct results *made, struct results to)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t left = left_vectors(asked), right = right_vectors(asked);
    const size_t number = (size_t)count * sizeof(real);
    tsvd_status ret = TSVD_OK;

    if (asked->call.to == TSVD_CUDA) {
        goto out;
    }
    TSVD_TRY(cuda_send(call, to.s, made->s, (size_t)asked->k * number));
    if (to.L != NULL) {
        TSVD_TRY(cuda_send(call, to.L, made->L, (size_t)(asked->rows * left) * number));
        TSVD_TRY(cuda_send(call, to.R, made->R, (size_t)(right * asked->columns) * number));
    }
out:
    return ret;
}

static tsvd_status
restore(struct tsvd_context *ctx, const struct chunk *chunk, const struct svd_problem *asked,
        struct extra_column *extra, struct results to)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct device_extra own = device_extra_of(ctx, extra);
    const struct chunk_memory memory = chunk_memory_of(asked, chunk->count, to, extra);
    tsvd_status ret = TSVD_OK;

    if (is_scaled(extra, chunk->count)) {
        scale_kernel<<<blocks_for(asked->k * chunk->count, THREADS), THREADS, 0, call->stream>>>(
            asked->k, chunk->count, own.power, memory.made.s);
        CUDA_LAUNCHED(call);
    }
    if (asked->vectors) {
        TSVD_TRY(restore_vectors(ctx, chunk->count, asked, &own, &memory));
    }
    TSVD_TRY(deliver(ctx, chunk->count, asked, &memory.made, to));
    tsvdi_cuda_free_after_downloads(call, extra->vectors);
    extra->vectors = NULL;
out:
    return ret;
}

static struct bytes
extra_bytes_of(const struct svd_plan *plan)
{
    const int64_t chunk = plan->reported.chunk;
    const struct results none = {NULL, NULL, NULL};
    struct chunk_memory memory;
    struct device_extra own;
    struct bytes sum = {0, 0};

    /* where the results will lie is not known; those of one chunk may be in flight while the next
       are made */
    sum.device = lay_out_chunk(plan->problem, chunk, true, none, &memory, NULL);
    sum.device = bytes_of(chunk < plan->reported.matrices ? 2 : 1, sum.device);
    sum.device = bytes_add(sum.device, lay_out(plan->problem->n, chunk, &own, NULL));
    return sum;
}

extern const struct extra_ops tsvdi_cuda_extra = {
    .space = TSVD_CUDA,
    .begin = begin,
    .end = end,
    .drop = drop,
    .restore = restore,
    .bytes = extra_bytes_of,
};
