/*
 * CUDA back end: singular vectors.  Mirrors csrc/cpu/rotations/rotations.c.
 *
 * Rotations are applied in waves.  A thread owns one entry of every vector (a column of the array).
 * It walks down the rows and holds WAVE_SWEEPS + 1 of them in registers, so that each row is loaded
 * and stored once for WAVE_SWEEPS rotations.  The coefficients are the same for all threads.  They
 * are staged in shared memory, a tile of steps at a time.
 */
#include "kernels.h"

static __global__ void
identity_kernel(int64_t n, real *x)
{
    int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (int64_t row = blockIdx.y; row < n && column < n; row += gridDim.y) {
        x[row * n + column] = row == column ? REAL(1) : REAL(0);
    }
}

static tsvd_status
identity(struct tsvd_context *ctx, struct vectors vectors)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = vectors.n;
    const dim3 grid(blocks_for(n, 256), (unsigned)(n < 4096 ? n : 4096));
    tsvd_status ret = TSVD_OK;

    identity_kernel<<<grid, 256, 0, call->stream>>>(n, vectors.x);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* One side's arguments of the wave kernel. */
struct wave_side {
    const struct device_wave *wave;
    const struct rotation *log;
    const int64_t *begin; /* [groups + 1] */
    real *x;
};

/* Each thread fetches some of the coefficients of steps tile .. tile + WAVE_TILE - 1. */
static __device__ __forceinline__ void
fetch(const struct device_wave *w, const struct rotation *log, int64_t tile,
      struct rotation *fetched)
{
    const int each = WAVE_TILE * WAVE_SWEEPS / WAVE_THREADS;

#pragma unroll
    for (int i = 0; i < each; i++) {
        int at = i * WAVE_THREADS + (int)threadIdx.x, k = at / WAVE_TILE;
        int64_t j = tile + at % WAVE_TILE - k - w->begin[k];
        bool active = k < w->sweeps && j >= 0 && j < w->count[k];

        fetched[i].c = active ? log[w->offset[k] + j].c : REAL(1);
        fetched[i].s = active ? log[w->offset[k] + j].s : REAL(0);
        fetched[i] = rotation_unit(fetched[i]);
    }
}

static __global__ void
__launch_bounds__(WAVE_THREADS)
    wave_kernel(int64_t n, struct wave_side right, struct wave_side left)
{
    const int each = WAVE_TILE * WAVE_SWEEPS / WAVE_THREADS;
    const struct wave_side side = blockIdx.y == 0 ? right : left;
    const int64_t column = (int64_t)blockIdx.x * WAVE_THREADS + threadIdx.x;
    const bool inside = column < n;
    __shared__ struct rotation staged[WAVE_TILE][WAVE_SWEEPS];

    for (int64_t i = side.begin[blockIdx.z]; i < side.begin[blockIdx.z + 1]; i++) {
        const struct device_wave *w = &side.wave[i];
        const int64_t step = w->up ? -n : n, last = w->steps - WAVE_SWEEPS + 1; /* row */
        real *row = side.x + w->first * n + (inside ? column : 0); /* the wave's row 0 */
        real a[WAVE_SWEEPS] = {0};
        struct rotation fetched[each];

        a[0] = inside ? row[0] : REAL(0);
        fetch(w, side.log, 0, fetched);
        for (int64_t tile = 0; tile < w->steps; tile += WAVE_TILE) {
            real top[WAVE_TILE];

            __syncthreads();
#pragma unroll
            for (int k = 0; k < each; k++) {
                int at = k * WAVE_THREADS + (int)threadIdx.x;

                staged[at % WAVE_TILE][at / WAVE_TILE] = fetched[k];
            }
            __syncthreads();
#pragma unroll
            for (int t = 0; t < WAVE_TILE; t++) { /* rows tile + 1 .. tile + WAVE_TILE */
                top[t] = inside && tile + t < last ? row[(tile + t + 1) * step] : REAL(0);
            }
            if (tile + WAVE_TILE < w->steps) {
                fetch(w, side.log, tile + WAVE_TILE, fetched);
            }
#pragma unroll
            for (int t = 0; t < WAVE_TILE; t++) {
                int64_t done = tile + t + 1 - WAVE_SWEEPS; /* the row that is finished */
                real x = top[t];

#pragma unroll
                for (int k = 0; k < WAVE_SWEEPS; k++) {
                    const struct rotation q = staged[t][k];
                    real below = r_fma(q.c, x, -(q.s * a[k]));

                    x = r_fma(q.c, a[k], q.s * x);
                    a[k] = below;
                }
                if (inside && done >= 0 && done <= last) {
                    row[done * step] = x;
                }
            }
        }
        /* Steps past the end of the wave are identity rotations: they shift the last row through
           a[] and store it.  If the wave ends with a tile there are none. */
        if (inside && w->steps % WAVE_TILE == 0) {
            row[last * step] = a[WAVE_SWEEPS - 1];
        }
    }
}

tsvd_status
tsvdi_cuda_rotations_rotate(struct tsvd_context *ctx, const struct device_wave *const d_wave[2],
                            const struct rotation *const d_log[2], const int64_t *const d_begin[2],
                            int64_t groups, const struct vectors vectors[2])
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = vectors[0].n;
    const dim3 grid(blocks_for(n, WAVE_THREADS), 2, (unsigned)groups);
    struct wave_side side[2];
    tsvd_status ret = TSVD_OK;

    for (int i = 0; i < 2; i++) {
        side[i].wave = d_wave[i];
        side[i].log = d_log[i];
        side[i].begin = d_begin[i];
        side[i].x = vectors[i].x;
    }
    wave_kernel<<<grid, WAVE_THREADS, 0, call->stream>>>(n, side[0], side[1]);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Makes the waves of a log, on the host.  Returns their number. */
static int64_t
make_waves(const struct rotation_log *log, struct device_wave *wave)
{
    int64_t waves = 0, offset = 0;

    for (int64_t begin = 0; begin < log->sweeps;) {
        const struct sweep_group g = log_next_group(log, begin, WAVE_SWEEPS);
        struct device_wave *w = &wave[waves++];

        memset(w, 0, sizeof(*w));
        w->up = log->sweep[begin].up;
        w->first = w->up ? g.high : g.low;
        w->steps = g.high - g.low + WAVE_SWEEPS - 1;
        w->sweeps = (int)(g.end - begin);
        for (int k = 0; k < w->sweeps; k++) {
            const struct qr_sweep *s = &log->sweep[begin + k];

            w->begin[k] = w->up ? g.high - (s->first + s->count) : s->first - g.low;
            w->count[k] = s->count;
            w->offset[k] = offset;
            offset += s->count;
        }
        begin = g.end;
    }
    return waves;
}

static tsvd_status
rotate(struct tsvd_context *ctx, const struct rotation_log *right, const struct rotation_log *left,
       struct vectors right_vectors, struct vectors left_vectors, int fresh)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct rotation_log *log[2] = {right, left};
    const struct vectors vectors[2] = {right_vectors, left_vectors};
    struct device_wave *wave = NULL, *d_wave[2] = {NULL, NULL};
    struct rotation *d_log[2] = {NULL, NULL};
    int64_t *d_begin[2] = {NULL, NULL}, begin[2] = {0, 0};
    int64_t most = right->sweeps > left->sweeps ? right->sweeps : left->sweeps;
    tsvd_status ret = TSVD_OK;

    if (fresh) {
        TSVD_TRY(identity(ctx, right_vectors));
        TSVD_TRY(identity(ctx, left_vectors));
    }
    if (most == 0) {
        goto out;
    }
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)most * sizeof(*wave), (void **)&wave));
    for (int i = 0; i < 2; i++) {
        size_t bytes = (size_t)log[i]->rotations * sizeof(struct rotation);

        begin[1] = make_waves(log[i], wave);
        TSVD_TRY(tsvdi_cuda_alloc(call, bytes, (void **)&d_log[i]));
        TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)begin[1] * sizeof(*wave), (void **)&d_wave[i]));
        TSVD_TRY(tsvdi_cuda_alloc(call, sizeof(begin), (void **)&d_begin[i]));
        TSVD_TRY(tsvdi_cuda_upload(call, d_log[i], log[i]->rotation, bytes));
        TSVD_TRY(tsvdi_cuda_upload(call, d_wave[i], wave, (size_t)begin[1] * sizeof(*wave)));
        TSVD_TRY(tsvdi_cuda_upload(call, d_begin[i], begin, sizeof(begin)));
    }
    TSVD_TRY(tsvdi_cuda_rotations_rotate(ctx, d_wave, d_log, d_begin, 1, vectors));
out:
    for (int i = 0; i < 2; i++) {
        tsvdi_cuda_free(call, d_log[i]);
        tsvdi_cuda_free(call, d_wave[i]);
        tsvdi_cuda_free(call, d_begin[i]);
    }
    tsvdi_free(ctx, wave);
    return ret;
}

/* ---- order and signs ---- */

static const unsigned ROW_THREADS = 256;

/* The order of k vectors of each of `batch` matrices. */
struct ordered {
    int64_t k, batch;
    const int64_t *from; /* [batch k] the rows of the vectors */
    char *flip;          /* [batch k] whether their sign changes */
};

/* Entry `column` of row j, of a matrix whose columns are numbered from `base` on. */
static __device__ __forceinline__ real
entry_of(const struct device_rows &rows, int64_t j, int64_t base, int64_t column)
{
    return rows.low == NULL || (base + column >= rows.low[j] && base + column < rows.high[j])
               ? rows.x[j * rows.stride + column]
               : REAL(0);
}

/* Finds whether the entry of largest magnitude (the first at a tie) is negative.  A warp has a
   vector. */
static __global__ void
sign_kernel(struct device_rows rows, struct ordered order)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    real most = -1;
    int64_t j, base, low, high, at;

    if (i >= order.k * order.batch) {
        return;
    }
    j = order.from[i];
    base = i / order.k * rows.n;
    low = rows.low != NULL ? rows.low[j] - base : 0;
    at = high = rows.high != NULL ? rows.high[j] - base : rows.n;
    for (int64_t c = low + threadIdx.x; c < high; c += TILE) {
        const real size = r_abs(rows.x[j * rows.stride + c]);

        if (size > most) {
            most = size;
            at = c;
        }
    }
    for (int lane = TILE / 2; lane > 0; lane /= 2) {
        const real other = __shfl_xor_sync(0xffffffffu, most, lane);
        const int64_t there = __shfl_xor_sync(0xffffffffu, at, lane);

        if (other > most || (other == most && there < at)) {
            most = other;
            at = there;
        }
    }
    if (threadIdx.x == 0) {
        order.flip[i] = most > 0 && rows.x[j * rows.stride + at] < 0;
    }
}

/* Brings n vectors of n numbers to norm 1.  A warp has a vector. */
static __global__ void
normalize_kernel(int64_t n, real *x)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    real square = 0, change;

    if (i >= n) {
        return;
    }
    for (int64_t c = threadIdx.x; c < n; c += TILE) {
        square = r_fma(x[i * n + c], x[i * n + c], square);
    }
    for (int lane = TILE / 2; lane > 0; lane /= 2) {
        square += __shfl_xor_sync(0xffffffffu, square, lane);
    }
    change = unit_change(square);
    for (int64_t c = threadIdx.x; c < n; c += TILE) {
        x[i * n + c] = r_fma(change, x[i * n + c], x[i * n + c]);
    }
}

/* to[c][i] = sign x[from[i]][c] for each matrix: the vectors become columns.  A block has a tile.
 */
static __global__ void
order_columns_kernel(struct device_rows rows, struct ordered order, int64_t across, int64_t down,
                     real *to)
{
    __shared__ real tile[TILE][TILE + 1];
    const int64_t matrix = blockIdx.x / (across * down), place = blockIdx.x % (across * down);
    const int64_t i0 = place % across * TILE, c0 = place / across * TILE, n = rows.n, k = order.k;
    const int64_t *from = order.from + matrix * k;
    const char *flip = order.flip + matrix * k;

    to += matrix * n * k;
    for (int r = (int)threadIdx.y; r < TILE; r += (int)blockDim.y) {
        const int64_t i = i0 + r, c = c0 + threadIdx.x;

        if (i < k && c < n) {
            const real value = entry_of(rows, from[i], matrix * n, c);

            tile[r][threadIdx.x] = flip[i] ? -value : value;
        }
    }
    __syncthreads();
    for (int r = (int)threadIdx.y; r < TILE; r += (int)blockDim.y) {
        const int64_t c = c0 + r, i = i0 + threadIdx.x;

        if (i < k && c < n) {
            to[c * k + i] = tile[threadIdx.x][r];
        }
    }
}

/* to[i] = sign x[from[i]]: the vectors become rows.  threadIdx.y counts vectors. */
static __global__ void
order_rows_kernel(struct device_rows rows, struct ordered order, const char *negative, real *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    int64_t source, base;
    bool turn;

    if (i >= order.k * order.batch) {
        return;
    }
    source = order.from[i];
    base = i / order.k * rows.n;
    turn = order.flip[i] != (negative != NULL ? negative[source] : 0);
    for (int64_t c = threadIdx.x; c < rows.n; c += blockDim.x) {
        const real value = entry_of(rows, source, base, c);

        to[i * rows.n + c] = turn ? -value : value;
    }
}

tsvd_status
tsvdi_cuda_rotations_order(struct cuda_call *call, struct device_rows columns,
                           struct device_rows rows, int64_t k, int64_t batch, const int64_t *d_from,
                           const char *d_negative, char *d_flip, real *to_columns, real *to_rows)
{
    const struct ordered order = {k, batch, d_from, d_flip};
    const int64_t n = columns.n, across = blocks_for(k, TILE), down = blocks_for(n, TILE);
    const dim3 warps(TILE, ROW_THREADS / TILE);
    /* a warp has a short row, the whole block a long one */
    const dim3 threads = n > 16 * TILE ? dim3(ROW_THREADS, 1) : warps;
    tsvd_status ret = TSVD_OK;

    sign_kernel<<<blocks_for(k * batch, warps.y), warps, 0, call->stream>>>(columns, order);
    CUDA_LAUNCHED(call);
    order_columns_kernel<<<(unsigned)(across * down * batch), dim3(TILE, 8), 0, call->stream>>>(
        columns, order, across, down, to_columns);
    CUDA_LAUNCHED(call);
    order_rows_kernel<<<blocks_for(k * batch, threads.y), threads, 0, call->stream>>>(
        rows, order, d_negative, to_rows);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
order(struct tsvd_context *ctx, const int64_t *from, const char *negative,
      struct vectors left_vectors, struct vectors right_vectors)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = left_vectors.n;
    const size_t matrix = (size_t)n * (size_t)n * sizeof(real);
    const struct device_rows left = {left_vectors.x, n, n, NULL, NULL};
    const struct device_rows right = {right_vectors.x, n, n, NULL, NULL};
    const dim3 warps(TILE, ROW_THREADS / TILE);
    real *d_left = NULL, *d_right;
    int64_t *d_from = NULL;
    char *d_flip = NULL, *d_negative = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, 2 * matrix, (void **)&d_left));
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)n * sizeof(*d_from), (void **)&d_from));
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)n, (void **)&d_flip));
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)n, (void **)&d_negative));
    TSVD_TRY(tsvdi_cuda_upload(call, d_from, from, (size_t)n * sizeof(*d_from)));
    TSVD_TRY(tsvdi_cuda_upload(call, d_negative, negative, (size_t)n));
    d_right = d_left + n * n;
    for (int side = 0; side < 2; side++) {
        normalize_kernel<<<blocks_for(n, warps.y), warps, 0, call->stream>>>(
            n, side == 0 ? left_vectors.x : right_vectors.x);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(tsvdi_cuda_rotations_order(call, left, right, n, 1, d_from, d_negative, d_flip, d_left,
                                        d_right));
    CUDA_TRY(call, cudaMemcpyAsync(left_vectors.x, d_left, matrix, cudaMemcpyDeviceToDevice,
                                   call->stream));
    CUDA_TRY(call, cudaMemcpyAsync(right_vectors.x, d_right, matrix, cudaMemcpyDeviceToDevice,
                                   call->stream));
out:
    tsvdi_cuda_free(call, d_left);
    tsvdi_cuda_free(call, d_from);
    tsvdi_cuda_free(call, d_flip);
    tsvdi_cuda_free(call, d_negative);
    return ret;
}

/* ---- back to orthogonality ---- */

/* defect: to = (I - X X^T) / 2, with y = x; else to = X + Y X.  A block has a tile. */
static __global__ void
product_kernel(int64_t n, const real *y, const real *x, int defect, real *to)
{
    __shared__ real a[TILE][TILE + 1], b[TILE][TILE + 1];
    const int64_t i = (int64_t)blockIdx.y * TILE + threadIdx.y;
    const int64_t j = (int64_t)blockIdx.x * TILE + threadIdx.x;
    real sum = 0;

    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        int64_t k = k0 + threadIdx.x, row = k0 + threadIdx.y;
        int64_t other = (int64_t)blockIdx.x * TILE + threadIdx.y;

        a[threadIdx.y][threadIdx.x] = i < n && k < n ? y[i * n + k] : REAL(0);
        if (defect) {
            b[threadIdx.x][threadIdx.y] = other < n && k < n ? x[other * n + k] : REAL(0);
        } else {
            b[threadIdx.y][threadIdx.x] = row < n && j < n ? x[row * n + j] : REAL(0);
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < TILE; t++) {
            sum = r_fma(a[threadIdx.y][t], b[t][threadIdx.x], sum);
        }
        __syncthreads();
    }
    if (i < n && j < n) {
        to[i * n + j] = defect ? (REAL(i == j) - sum) / 2 : x[i * n + j] + sum;
    }
}

static tsvd_status
orthonormalize(struct tsvd_context *ctx, struct vectors vectors)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = vectors.n;
    const size_t matrix = (size_t)n * (size_t)n * sizeof(real);
    const dim3 grid(blocks_for(n, TILE), blocks_for(n, TILE)), block(TILE, TILE);
    real *d_defect = NULL, *d_to = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, matrix, (void **)&d_defect));
    TSVD_TRY(tsvdi_cuda_alloc(call, matrix, (void **)&d_to));
    product_kernel<<<grid, block, 0, call->stream>>>(n, vectors.x, vectors.x, 1, d_defect);
    CUDA_LAUNCHED(call);
    product_kernel<<<grid, block, 0, call->stream>>>(n, d_defect, vectors.x, 0, d_to);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call,
             cudaMemcpyAsync(vectors.x, d_to, matrix, cudaMemcpyDeviceToDevice, call->stream));
out:
    tsvdi_cuda_free(call, d_defect);
    tsvdi_cuda_free(call, d_to);
    return ret;
}

/* ---- where the vectors are made ---- */

/* Results for the host are made in one allocation for both sides.  It is large enough for aligned
   rows (device_stride()), in which divide and conquer works. */
static tsvd_status
begin(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t batch, struct results to,
      struct vectors *left, struct vectors *right)
{
    const size_t side = (size_t)batch * (size_t)n * (size_t)device_stride(n);
    tsvd_status ret = TSVD_OK;

    *left = *right = {NULL, n, k, batch, 0};
    if (ctx->call->to == TSVD_CUDA) { /* in the results' own memory */
        left->x = to.L;
        right->x = to.R;
    } else if (to.L != NULL) {
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), 2 * side * sizeof(real), (void **)&left->x));
        right->x = left->x + side;
    }
out:
    return ret;
}

static tsvd_status
end(struct tsvd_context *ctx, struct vectors left, struct vectors right, struct results to)
{
    const size_t bytes = (size_t)left.count * (size_t)left.n * (size_t)left.k * sizeof(real);
    tsvd_status ret = TSVD_OK;

    if (to.L != NULL && ctx->call->to == TSVD_HOST) {
        TSVD_TRY(cuda_deliver_left(ctx, to.L, ctx->problem->left_stride, left.x,
                                   left.count * left.n, left.k, sizeof(real)));
        TSVD_TRY(cuda_deliver(ctx, to.R, right.x, bytes));
    }
out:
    return ret;
}

static void
free_vectors(struct tsvd_context *ctx, struct vectors *left, struct vectors *right)
{
    if (ctx->call->to == TSVD_HOST) {
        tsvdi_cuda_free_after_downloads(cuda_of(ctx), left->x);
    }
    left->x = right->x = NULL;
}

static struct bytes
begin_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n;
    struct bytes bytes = {0, 0};

    /* Results for the device take none, but the plan does not know where they will lie.  The
       vectors of a chunk may be in flight to the host while those of the next are made. */
    bytes.device =
        bytes_of(2 * plan->reported.chunk * n, (uint64_t)device_stride(n) * sizeof(real));
    bytes.device = bytes_of(plan->reported.chunk < plan->reported.matrices ? 2 : 1, bytes.device);
    return bytes;
}

/* Workspace of rotate(): the logs, and their waves; or of order() afterwards, if that is more: both
   sides once more. */
static struct bytes
rotate_bytes(const struct svd_plan *plan, int64_t sweeps, int64_t rotations)
{
    const int64_t n = plan->reported.n;
    struct bytes turn = {0, 0}, put = {0, 0};

    turn.host = bytes_of(sweeps, sizeof(struct device_wave));
    turn.device = bytes_of(2 * rotations, sizeof(struct rotation));
    turn.device = bytes_add(turn.device, bytes_of(2 * sweeps, sizeof(struct device_wave)));
    turn.device = bytes_add(turn.device, 4 * sizeof(int64_t));
    put.device =
        bytes_add(bytes_of(2 * n, (uint64_t)n * sizeof(real)), bytes_of(n, sizeof(int64_t) + 2));
    return bytes_most(turn, put);
}

static struct bytes
orthonormalize_bytes(const struct svd_plan *plan)
{
    struct bytes bytes = {0, 0};

    bytes.device = bytes_of(2 * plan->reported.n, (uint64_t)plan->reported.n * sizeof(real));
    return bytes;
}

const struct vectors_ops tsvdi_cuda_vectors = {
    .begin = begin,
    .end = end,
    .free = free_vectors,
    .identity = identity,
    .rotate = rotate,
    .order = order,
    .orthonormalize = orthonormalize,
    .begin_bytes = begin_bytes,
    .rotate_bytes = rotate_bytes,
    .orthonormalize_bytes = orthonormalize_bytes,
};
