/*
 * Twisted factorisations on the device: probes of orthogonality and of the residual.  Mirrors
 * csrc/cpu/twisted/probe.c.
 *
 * All products are of a row-major matrix of vectors with a few columns of doubles.  Sums are made
 * in an order that depends on sizes alone.
 */
#include "twisted/twisted_run.h"

enum { THREADS = 256, TILE_ROWS = 64, TILE_INNER = 32 };

/* X, and S X in the PROBES columns after it. */
static __global__ void
__launch_bounds__(THREADS) fill_kernel(struct twisted_device run)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, j = i / PROBES;

    if (j < run.k && run.facts->refused == 0) {
        const int column = (int)(i % PROBES);
        const double x = probe_entry(run.first - run.whole_first + j, column);

        run.probe[j * PROBE_COLUMNS + column] = x;
        run.probe[j * PROBE_COLUMNS + PROBES + column] = run.value[j] * x;
    }
}

/* parts[slice][row] = the sum of matrix[row][i] x[i] over i in a slice, for x[inner][COLUMNS].  A
   block has TILE_ROWS rows; a thread one of them, and some of the columns.  Tiles of TILE_INNER
   columns of the matrix come to shared memory.  The next tile is prefetched to registers while the
   products of one are made. */
template <int COLUMNS>
static __global__ void
__launch_bounds__(THREADS) rows_kernel(int64_t rows, int64_t inner, int64_t each,
                                       const real *matrix, const double *x, double *parts)
{
    enum {
        GROUPS = THREADS / (int)TILE_ROWS,
        OWN = COLUMNS / (int)GROUPS,
        LOADS = (int)TILE_ROWS * (int)TILE_INNER / THREADS,
        OTHERS = (COLUMNS * (int)TILE_INNER + THREADS - 1) / THREADS
    };
    const int thread = (int)threadIdx.x, own = thread % TILE_ROWS, group = thread / TILE_ROWS;
    const int64_t begin = (int64_t)blockIdx.x * TILE_ROWS;
    const int64_t from = (int64_t)blockIdx.y * each, to = inner - from < each ? inner : from + each;
    __shared__ double tile[TILE_ROWS][TILE_INNER + 1], other[TILE_INNER * COLUMNS];
    double sum[OWN] = {}, entry[LOADS], number[OTHERS];

    for (int64_t i = from - TILE_INNER; i < to; i += TILE_INNER) {
        const int64_t next = i + TILE_INNER;

#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const int place = thread + j * THREADS;
            const int64_t row = begin + place / TILE_INNER, column = next + place % TILE_INNER;

            entry[j] = row < rows && column < to ? (double)matrix[row * inner + column] : 0;
        }
#pragma unroll
        for (int j = 0; j < OTHERS; j++) {
            const int64_t place = thread + j * THREADS;

            number[j] = next + place / COLUMNS < to ? __ldg(&x[next * COLUMNS + place]) : 0;
        }
        if (i >= from) {
#pragma unroll 8
            for (int k = 0; k < TILE_INNER; k++) {
                const double left = tile[own][k];

#pragma unroll
                for (int c = 0; c < OWN; c++) {
                    sum[c] = fma(left, other[k * COLUMNS + group * OWN + c], sum[c]);
                }
            }
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const int place = thread + j * THREADS;

            tile[place / TILE_INNER][place % TILE_INNER] = entry[j];
        }
#pragma unroll
        for (int j = 0; j < OTHERS; j++) {
            const int place = thread + j * THREADS;

            if (place < TILE_INNER * COLUMNS) {
                other[place] = number[j];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int c = 0; c < OWN && begin + own < rows; c++) {
        parts[((int64_t)blockIdx.y * rows + begin + own) * COLUMNS + group * OWN + c] = sum[c];
    }
}

/* parts[slice][column] = the sum of matrix[row][column] x[row] over the rows of a slice, for
   x[rows][stride], of which PROBES columns are used. */
static __global__ void
__launch_bounds__(THREADS)
    columns_kernel(int64_t rows, int64_t columns, int64_t each, const real *matrix, const double *x,
                   int64_t stride, double *parts)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t begin = (int64_t)blockIdx.y * each;
    const int64_t end = rows - begin < each ? rows : begin + each;
    double sum[PROBES] = {};

    if (column >= columns) {
        return;
    }
#pragma unroll 8
    for (int64_t row = begin; row < end; row++) {
        const double entry = (double)matrix[row * columns + column];

#pragma unroll
        for (int c = 0; c < PROBES; c++) {
            sum[c] = fma(entry, __ldg(&x[row * stride + c]), sum[c]);
        }
    }
#pragma unroll
    for (int c = 0; c < PROBES; c++) {
        parts[((int64_t)blockIdx.y * columns + column) * PROBES + c] = sum[c];
    }
}

static __global__ void
__launch_bounds__(THREADS) add_kernel(int64_t numbers, int slices, const double *parts, double *to)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    double sum = 0;

    if (i >= numbers) {
        return;
    }
#pragma unroll 16
    for (int s = 0; s < slices; s++) {
        sum += parts[s * numbers + i];
    }
    to[i] = sum;
}

/* Counts the rows of seen - X that are over the limit. */
static __global__ void
__launch_bounds__(THREADS) judge_kernel(struct twisted_device run)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned over = 0;

    for (int side = 0; side < 2 && j < run.k; side++) {
        double sum = 0;

        for (int c = 0; c < PROBES; c++) {
            const double off = run.seen[side][j * PROBES + c] - run.probe[j * PROBE_COLUMNS + c];

            sum += off * off;
        }
        over += !(sum <= probe_limit(run.n));
    }
    if (over > 0) {
        atomicAdd(&run.facts->refused, (unsigned long long)over);
    }
}

/* The sum of x over the threads of a block, in every thread. */
static __device__ double
block_sum(double x)
{
    __shared__ double part[THREADS];

    __syncthreads();
    part[threadIdx.x] = x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
    }
    __syncthreads();
    return part[0];
}

/* Judges whether the residual B (R^T X) - L (S X) is within its bound.  sum: the square of its
   norm; norm: that of B's. */
static __device__ __forceinline__ void
judge_residual(const struct twisted_device &run, double sum, double norm)
{
    if (threadIdx.x == 0 && !(sum <= probe_residual_limit(run.n) * norm)) {
        atomicAdd(&run.facts->refused, (unsigned long long)run.k);
    }
}

/* The residual.  A block has a part of the rows.  A single block judges at once, the sums of
   several go to run.parts. */
static __global__ void
__launch_bounds__(THREADS) residual_kernel(struct twisted_device run)
{
    const double *right = run.sums[1], *left = run.sums[0] + PROBES;
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    double sum = 0, norm = 0;

    for (int64_t i = first; i < run.n; i += (int64_t)gridDim.x * THREADS) {
        const int64_t beside = run.lower ? i - 1 : i + 1;
        const double d = run.b[2 * i];
        const double e =
            beside < 0 || beside == run.n ? 0 : run.b[run.lower ? 2 * i - 1 : 2 * i + 1];

        norm += d * d + e * e;
        for (int c = 0; c < PROBES; c++) {
            double x = d * right[i * PROBES + c] - left[i * PROBE_COLUMNS + c];

            x += beside < 0 || beside == run.n ? 0 : e * right[beside * PROBES + c];
            sum += x * x;
        }
    }
    sum = block_sum(sum);
    norm = block_sum(norm);
    if (gridDim.x == 1) {
        judge_residual(run, sum, norm);
    } else if (threadIdx.x == 0) {
        run.parts[2 * blockIdx.x] = sum;
        run.parts[2 * blockIdx.x + 1] = norm;
    }
}

/* Judges the sums of the `blocks` blocks of residual_kernel, at most THREADS.  One block. */
static __global__ void
__launch_bounds__(THREADS) residual_sum_kernel(struct twisted_device run, unsigned blocks)
{
    const double sum = threadIdx.x < blocks ? run.parts[2 * threadIdx.x] : 0;
    const double norm = threadIdx.x < blocks ? run.parts[2 * threadIdx.x + 1] : 0;

    judge_residual(run, block_sum(sum), block_sum(norm));
}

/* All probes of a small matrix, in one block. */
static __global__ void
__launch_bounds__(THREADS) small_kernel(struct twisted_device run)
{
    const int n = (int)run.n, k = (int)run.k, thread = (int)threadIdx.x;
    __shared__ double x[PROBE_SMALL_ORDER][PROBES], scaled[PROBE_SMALL_ORDER][PROBES];
    __shared__ double left[PROBE_SMALL_ORDER][PROBES], right[PROBE_SMALL_ORDER][PROBES];
    double sum = 0, norm = 0;
    unsigned over = 0;

    if (run.facts->refused > 0) {
        return;
    }
    for (int i = thread; i < k * PROBES; i += THREADS) {
        const int j = i / PROBES, c = i % PROBES;

        x[j][c] = probe_entry(j, c);
        scaled[j][c] = run.value[j] * x[j][c];
    }
    __syncthreads();
    for (int i = thread; i < n * PROBES; i += THREADS) {
        const int row = i / PROBES, c = i % PROBES;
        double part[2] = {0, 0};

        for (int j = 0; j < k; j++) {
            part[0] = fma((double)run.columns[row * k + j], x[j][c], part[0]);
            part[1] = fma((double)run.rows[j * n + row], x[j][c], part[1]);
        }
        left[row][c] = part[0];
        right[row][c] = part[1];
    }
    __syncthreads();
    for (int i = thread; i < n * PROBES; i += THREADS) {
        const int row = i / PROBES, c = i % PROBES, beside = run.lower ? row - 1 : row + 1;
        const double d = run.b[2 * row];
        const double e =
            beside < 0 || beside == n ? 0 : run.b[run.lower ? 2 * row - 1 : 2 * row + 1];
        double off = d * right[row][c] + (e != 0 ? e * right[beside][c] : 0);

        for (int j = 0; j < k; j++) {
            off = fma((double)-run.columns[row * k + j], scaled[j][c], off);
        }
        sum += off * off;
        norm += c == 0 ? d * d + e * e : 0;
    }
    for (int i = thread; i - thread < k * PROBES; i += THREADS) {
        const int j = i / PROBES, c = i % PROBES;
        double off[2] = {0, 0};

        for (int row = 0; row < n && j < k; row++) {
            off[0] = fma((double)run.columns[row * k + j], left[row][c], off[0]);
            off[1] = fma((double)run.rows[j * n + row], right[row][c], off[1]);
        }
        for (int side = 0; side < 2; side++) {
            double square = j < k ? off[side] - x[j][c] : 0;

            square *= square;
            for (int lanes = PROBES / 2; lanes > 0; lanes /= 2) {
                square += __shfl_xor_sync(0xffffffffu, square, lanes);
            }
            over += c == 0 && !(square <= probe_limit(n));
        }
    }
    sum = block_sum(sum);
    norm = block_sum(norm);
    over += thread == 0 && !(sum <= probe_residual_limit(n) * norm) ? (unsigned)k : 0;
    if (over > 0) {
        atomicAdd(&run.facts->refused, (unsigned long long)over);
    }
}

/* Judges whether the residual is within its bound. */
static tsvd_status
find_residual(struct cuda_call *call, const struct twisted_device *run)
{
    const unsigned most = blocks_for(run->n, RESIDUAL_ROWS);
    const unsigned blocks = most < THREADS ? most : (unsigned)THREADS;
    tsvd_status ret = TSVD_OK;

    residual_kernel<<<blocks, THREADS, 0, call->stream>>>(*run);
    CUDA_LAUNCHED(call);
    if (blocks > 1) {
        residual_sum_kernel<<<1, THREADS, 0, call->stream>>>(*run, blocks);
        CUDA_LAUNCHED(call);
    }
out:
    return ret;
}

/* to = the sum of `slices` parts. */
static tsvd_status
add_parts(struct cuda_call *call, int64_t numbers, unsigned slices, const double *parts, double *to)
{
    tsvd_status ret = TSVD_OK;

    add_kernel<<<blocks_for(numbers, THREADS), THREADS, 0, call->stream>>>(numbers, (int)slices,
                                                                           parts, to);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* to = matrix^T x. */
static tsvd_status
multiply_columns(struct cuda_call *call, int64_t rows, int64_t columns, const real *matrix,
                 const double *x, int64_t stride, double *parts, double *to)
{
    const int64_t each = probe_slice(rows, columns);
    const dim3 grid(blocks_for(columns, THREADS), blocks_for(rows, each));
    tsvd_status ret = TSVD_OK;

    columns_kernel<<<grid, THREADS, 0, call->stream>>>(rows, columns, each, matrix, x, stride,
                                                       parts);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_parts(call, columns * PROBES, grid.y, parts, to));
out:
    return ret;
}

/* to = matrix x. */
template <int COLUMNS>
static tsvd_status
multiply_rows(struct cuda_call *call, int64_t rows, int64_t inner, const real *matrix,
              const double *x, double *parts, double *to)
{
    const int64_t each = probe_slice(inner, rows);
    const dim3 grid(blocks_for(rows, TILE_ROWS), blocks_for(inner, each));
    tsvd_status ret = TSVD_OK;

    rows_kernel<COLUMNS><<<grid, THREADS, 0, call->stream>>>(rows, inner, each, matrix, x, parts);
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_parts(call, rows * COLUMNS, grid.y, parts, to));
out:
    return ret;
}

/* Copies L X and R^T X to shared[n][2][PROBES], or back. */
static __global__ void
__launch_bounds__(THREADS) share_kernel(struct twisted_device run, int back, double *shared)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = i / PROBE_COLUMNS, column = i % PROBE_COLUMNS;

    if (row < run.n) {
        double *const sum =
            column < PROBES ? &run.sums[0][i] : &run.sums[1][row * PROBES + column - PROBES];

        if (back) {
            *sum = shared[i];
        } else {
            shared[i] = *sum;
        }
    }
}

/* Adds L X and R^T X up over the parts of a larger call: they belong to all vectors then, so that
   the vectors of the other parts are probed with these. */
static tsvd_status
sum_over_parts(const struct tsvd_context *ctx, const struct twisted_device *run)
{
    const int64_t numbers = run->n * PROBE_COLUMNS;
    const size_t bytes = (size_t)numbers * sizeof(double);
    const unsigned blocks = blocks_for(numbers, THREADS);
    struct cuda_call *call = cuda_of(ctx);
    double *sums = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, bytes, (void **)&sums));
    share_kernel<<<blocks, THREADS, 0, call->stream>>>(*run, 0, run->parts);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_download(call, sums, run->parts, bytes));
    TSVD_TRY(tsvdi_sum_over_parts(ctx, numbers, sums));
    TSVD_TRY(tsvdi_cuda_upload(call, run->parts, sums, bytes));
    share_kernel<<<blocks, THREADS, 0, call->stream>>>(*run, 1, run->parts);
    CUDA_LAUNCHED(call);
out:
    tsvdi_free(ctx, sums);
    return ret;
}

tsvd_status
tsvdi_cuda_twisted_probe(const struct tsvd_context *ctx, const struct twisted_device *run)
{
    const tsvd_part *part = ctx->options->part;
    const int64_t n = run->n, k = run->k;
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    if (n <= PROBE_SMALL_ORDER) {
        small_kernel<<<1, THREADS, 0, call->stream>>>(*run);
        CUDA_LAUNCHED(call);
        goto out;
    }
    fill_kernel<<<blocks_for(k * PROBES, THREADS), THREADS, 0, call->stream>>>(*run);
    CUDA_LAUNCHED(call);
    /* L [X, S X], and R^T X */
    TSVD_TRY(multiply_rows<PROBE_COLUMNS>(call, n, k, run->columns, run->probe, run->parts,
                                          run->sums[0]));
    TSVD_TRY(multiply_columns(call, k, n, run->rows, run->probe, PROBE_COLUMNS, run->parts,
                              run->sums[1]));
    TSVD_TRY(find_residual(call, run));
    if (part != NULL && part->sum != NULL) {
        TSVD_TRY(sum_over_parts(ctx, run));
    }
    /* L^T (L X), and R (R^T X) */
    TSVD_TRY(multiply_columns(call, n, k, run->columns, run->sums[0], PROBE_COLUMNS, run->parts,
                              run->seen[0]));
    TSVD_TRY(multiply_rows<PROBES>(call, k, n, run->rows, run->sums[1], run->parts, run->seen[1]));
    judge_kernel<<<blocks_for(k, THREADS), THREADS, 0, call->stream>>>(*run);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
