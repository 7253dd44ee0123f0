/*
 * Dense matrices from where the caller has them to W: gathered, and scaled by a power of two, which
 * the largest entry of each decides.
 */
#include "matrix/source.h"

enum {
    LOAD_ROWS = 8,
    SMALL_THREADS = sizeof(scalar) > 8 ? 64 : 128,
    SMALL_GROUP = 4, /* threads of a small matrix, at least */
    SMALL_LOADS = 8, /* loads that a thread has in flight */
    SCALE_THREADS = 256,
    SCALE_BLOCKS = 8 /* of a multiprocessor */
};

/* What a matrix with this largest magnitude counts as, and its scale. */
static __device__ char
judge(real_int most, real_int *exponent)
{
    *exponent = 0;
    if (most == 0 || most == R_INFINITY_BITS) {
        return (char)(most == 0 ? ZERO : NONFINITE);
    }
    (void)r_split(r_from_bits(most), exponent);
    return (char)ORDINARY;
}

/* How the matrices are cut into tiles: a block has one.  by_row: in the source, neighbours in a row
   of W are closer to each other than neighbours in a column. */
struct tiling {
    int64_t r, c, down, across;
    int by_row;
};

/* The first row and column of the block's tile, and its matrix. */
static __device__ __forceinline__ int64_t
find_tile(const struct tiling &q, int64_t *row, int64_t *column)
{
    const int64_t place = blockIdx.x % (q.down * q.across);

    *row = place % q.down * TILE;
    *column = place / q.down * TILE;
    return blockIdx.x / (q.down * q.across);
}

/* Finds the bits of the largest magnitude of each matrix. */
static __global__ void
largest_kernel(const __grid_constant__ struct dense_source from, const struct tiling q,
               unsigned long long *largest)
{
    __shared__ real_int part[LOAD_ROWS];
    int64_t row, column, matrix = find_tile(q, &row, &column);
    const char *a = source_matrix(from, from.begin + matrix);
    real_int most = 0;

    for (int k = (int)threadIdx.y; k < TILE; k += LOAD_ROWS) {
        const int i = q.by_row ? k : (int)threadIdx.x, j = q.by_row ? (int)threadIdx.x : k;

        if (row + i < q.r && column + j < q.c) {
            const real_int bits =
                size_bits(read_entry(a + (row + i) * from.row + (column + j) * from.column));

            most = bits > most ? bits : most;
        }
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const real_int other = __shfl_xor_sync(0xffffffffu, most, lanes);

        most = other > most ? other : most;
    }
    if (threadIdx.x == 0) {
        part[threadIdx.y] = most;
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        for (int k = 1; k < LOAD_ROWS; k++) {
            most = part[k] > most ? part[k] : most;
        }
        if ((unsigned long long)most > *(volatile unsigned long long *)&largest[matrix]) {
            atomicMax(&largest[matrix], (unsigned long long)most); /* few get here */
        }
    }
}

/* Gathers and scales each matrix, and makes it zero if it is not ordinary. */
static __global__ void
load_kernel(const __grid_constant__ struct dense_source from, const struct tiling q, int scaled,
            const unsigned long long *largest, scalar *w, real_int *exponents, char *kinds)
{
    __shared__ scalar tile[TILE][TILE + 1];
    int64_t row, column, matrix = find_tile(q, &row, &column);
    const char *a = source_matrix(from, from.begin + matrix);
    real_int exponent;
    const char kind = judge((real_int)largest[matrix], &exponent);
    const bool ordinary = kind == ORDINARY;

    if (row == 0 && column == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
        exponents[matrix] = exponent;
        kinds[matrix] = kind;
    }
    w += matrix * q.r * q.c;
    for (int k = (int)threadIdx.y; k < TILE; k += LOAD_ROWS) {
        const int i = q.by_row ? k : (int)threadIdx.x, j = q.by_row ? (int)threadIdx.x : k;

        if (row + i < q.r && column + j < q.c) {
            const scalar x = read_entry(a + (row + i) * from.row + (column + j) * from.column);

            tile[j][i] = ordinary ? scaled_entry(x, scaled ? exponent : 0) : REAL(0);
        }
    }
    __syncthreads();
    for (int j = (int)threadIdx.y; j < TILE; j += LOAD_ROWS) {
        if (row + threadIdx.x < q.r && column + j < q.c) {
            w[(column + j) * q.r + row + threadIdx.x] = tile[j][threadIdx.x];
        }
    }
}

/* Both in one kernel, for small matrices.  `group` threads of a warp have a matrix. */
static __global__ void
__launch_bounds__(SMALL_THREADS)
    load_small_kernel(const __grid_constant__ struct dense_source from, int64_t count, int r, int c,
                      int by_row, int group, int scaled, scalar *w, real_int *exponents,
                      char *kinds)
{
    extern __shared__ char shared[] __align__(16);
    const int slot = (int)threadIdx.x / group, lane = (int)threadIdx.x % group, stride = r | 1;
    const int64_t matrix = (int64_t)blockIdx.x * (SMALL_THREADS / group) + slot;
    const bool present = matrix < count;
    const int entries = r * c, length = by_row ? c : r; /* of a line of the source */
    const int64_t inner = by_row ? from.column : from.row, outer = by_row ? from.row : from.column;
    const char *a = present ? source_matrix(from, from.begin + matrix) : NULL;
    scalar *const tile = (scalar *)shared + slot * stride * c;
    int line = lane / length, place = lane % length;
    real_int most = 0, exponent;
    char kind;

    for (int at = lane; at < entries; at += SMALL_LOADS * group) {
        scalar x[SMALL_LOADS];
        int to[SMALL_LOADS];

#pragma unroll
        for (int k = 0; k < SMALL_LOADS; k++) {
            x[k] = 0;
            to[k] = by_row ? place * stride + line : line * stride + place;
            if (present && at + k * group < entries) {
                x[k] = read_entry(a + line * outer + place * inner);
            }
            for (place += group; place >= length; place -= length) {
                line++;
            }
        }
#pragma unroll
        for (int k = 0; k < SMALL_LOADS; k++) {
            if (at + k * group < entries) {
                tile[to[k]] = x[k];
            }
            most = size_bits(x[k]) > most ? size_bits(x[k]) : most;
        }
    }
    for (int lanes = group / 2; lanes > 0; lanes /= 2) {
        const real_int other = __shfl_xor_sync(0xffffffffu, most, lanes);

        most = other > most ? other : most;
    }
    __syncwarp();
    if (!present) {
        return;
    }
    kind = judge(most, &exponent);
    if (lane == 0) {
        exponents[matrix] = exponent;
        kinds[matrix] = kind;
    }
    line = lane / r;
    place = lane % r;
    for (int at = lane; at < entries; at += group) {
        const scalar x = tile[line * stride + place];

        w[matrix * entries + at] =
            kind == ORDINARY ? scaled_entry(x, scaled ? exponent : 0) : REAL(0);
        for (place += group; place >= r; place -= r) {
            line++;
        }
    }
}

static tsvd_status
load_small(struct cuda_call *call, const struct cuda_matrices *to, const struct dense_source *from,
           int scaled, int by_row)
{
    const int r = (int)to->r, c = (int)to->c;
    int group = SMALL_GROUP, matrices;
    tsvd_status ret = TSVD_OK;

    while (group < WARP && group * SMALL_LOADS < r * c) {
        group *= 2;
    }
    matrices = SMALL_THREADS / group;
    load_small_kernel<<<blocks_for(to->count, matrices), SMALL_THREADS,
                        (size_t)(matrices * (r | 1) * c) * sizeof(scalar), call->stream>>>(
        *from, to->count, r, c, by_row, group, scaled, to->w, to->exponent, to->kind);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- from the host ---- */

/* The matrices of a job as a stream of bytes: of each, `outer` lines of `inner` entries, with their
   strides in bytes. */
struct gathered {
    const struct dense_source *from;
    int64_t inner, outer;
    int64_t inner_stride, outer_stride;
};

static void
gather(const void *arg, size_t begin, size_t bytes, char *to)
{
    const struct gathered *g = (const struct gathered *)arg;
    int64_t at = (int64_t)(begin / sizeof(scalar)), left = (int64_t)(bytes / sizeof(scalar));

    while (left > 0) {
        const int64_t line = at / g->inner, first = at % g->inner;
        const int64_t some = g->inner - first < left ? g->inner - first : left;
        const char *a = source_matrix(*g->from, g->from->begin + line / g->outer) +
                        line % g->outer * g->outer_stride + first * g->inner_stride;

        if (g->inner_stride == (int64_t)sizeof(scalar)) {
            memcpy(to, a, (size_t)some * sizeof(scalar));
        } else {
            for (int64_t i = 0; i < some; i++) {
                memcpy(to + (size_t)i * sizeof(scalar), a + i * g->inner_stride, sizeof(scalar));
            }
        }
        to += (size_t)some * sizeof(scalar);
        at += some;
        left -= some;
    }
}

tsvd_status
tsvdi_cuda_dense_upload(struct cuda_call *call, int64_t r, int64_t c, int64_t count, scalar *d_to,
                        struct dense_source *from)
{
    const bool by_row = lies_by_row(from);
    const struct gathered g = {from, by_row ? c : r, by_row ? r : c,
                               by_row ? from->column : from->row,
                               by_row ? from->row : from->column};
    const size_t bytes = (size_t)count * (size_t)(r * c) * sizeof(scalar);
    const int64_t size = (int64_t)sizeof(scalar);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_upload_blocks(call, d_to, bytes, sizeof(scalar), gather, &g));
    from->a = (const char *)d_to;
    from->row = by_row ? c * size : size;
    from->column = by_row ? size : r * size;
    from->begin = 0;
    from->batch_ndim = 1;
    from->batch_shape[0] = count;
    from->batch_strides[0] = r * c * size;
out:
    return ret;
}

bool
tsvdi_cuda_dense_needs_staging(const struct dense_matrices *a)
{
    const struct dense_source from = source_of(a, 0, a->rows < a->columns);

    return a->space == TSVD_HOST && lies_by_row(&from);
}

/* Finds the largest magnitudes, which are to->largest or more, and gathers. */
static tsvd_status
load_tiles(struct cuda_call *call, const struct cuda_matrices *to, const struct dense_source *from,
           int scaled)
{
    const int64_t down = blocks_for(to->r, TILE), across = blocks_for(to->c, TILE);
    const unsigned blocks = (unsigned)(down * across * to->count);
    const struct tiling tiling = {to->r, to->c, down, across, lies_by_row(from)};
    tsvd_status ret = TSVD_OK;

    largest_kernel<<<blocks, dim3(TILE, LOAD_ROWS), 0, call->stream>>>(*from, tiling, to->largest);
    CUDA_LAUNCHED(call);
    load_kernel<<<blocks, dim3(TILE, LOAD_ROWS), 0, call->stream>>>(
        *from, tiling, scaled, to->largest, to->w, to->exponent, to->kind);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dense_load(struct tsvd_context *ctx, const struct dense_matrices *a, int64_t begin,
                      const struct cuda_matrices *to, int scaled, scalar *d_staging)
{
    struct cuda_call *call = cuda_of(ctx);
    struct dense_source from = source_of(a, begin, to->transposed);
    tsvd_status ret = TSVD_OK;

    if (a->space == TSVD_HOST) {
        scalar *const d_copy = lies_by_row(&from) ? d_staging : to->w;

        TSVD_TRY(tsvdi_cuda_dense_upload(call, to->r, to->c, to->count, d_copy, &from));
    }
    if (to->r * to->c <= DENSE_WARP_ENTRIES) {
        return load_small(call, to, &from, scaled, lies_by_row(&from));
    }
    CUDA_TRY(call, cudaMemsetAsync(to->largest, 0, (size_t)to->count * sizeof(*to->largest),
                                   call->stream));
    TSVD_TRY(load_tiles(call, to, &from, scaled));
out:
    return ret;
}

/* ---- of a matrix that is shared out ---- */

tsvd_status
tsvdi_cuda_dense_load_share(struct tsvd_context *ctx, const struct dense_matrices *a,
                            const struct cuda_matrices *to, const struct column_shares *shares,
                            scalar *d_staging)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_source whole = source_of(a, 0, to->transposed);
    const int64_t own = columns_before(*shares, shares->self, to->c);
    int64_t width;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaMemsetAsync(to->largest, 0, sizeof(*to->largest), call->stream));
    for (int64_t at = 0; at < own; at += width) {
        const int64_t first = column_at(*shares, shares->self, at);
        struct dense_source from = whole;
        struct cuda_matrices some = *to;

        width = turn_end(*shares, first) - first;
        from.a += first * from.column;
        some.c = width;
        some.w += at * to->r;
        if (a->space == TSVD_HOST) {
            TSVD_TRY(tsvdi_cuda_dense_upload(call, to->r, width, 1,
                                             lies_by_row(&from) ? d_staging : some.w, &from));
        }
        TSVD_TRY(load_tiles(call, &some, &from, 0));
    }
out:
    return ret;
}

/* The largest magnitudes of the members' columns, as bits. */
struct shared_largest {
    int members;
    const unsigned long long *of[TEAM_MOST];
};

/* Scales the own columns, and makes them zero if the matrix is not ordinary. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    scale_kernel(const __grid_constant__ struct shared_largest largest, int64_t numbers, scalar *w,
                 real_int *exponents, char *kinds)
{
    const int64_t first = (int64_t)blockIdx.x * SCALE_THREADS + threadIdx.x;
    unsigned long long most = 0;
    real_int exponent;
    char kind;

    for (int i = 0; i < largest.members; i++) {
        most = *largest.of[i] > most ? *largest.of[i] : most;
    }
    kind = judge((real_int)most, &exponent);
    if (first == 0) {
        exponents[0] = exponent;
        kinds[0] = kind;
    }
    for (int64_t i = first; i < numbers; i += (int64_t)gridDim.x * SCALE_THREADS) {
        w[i] = kind == ORDINARY ? scaled_entry(w[i], exponent) : scalar(REAL(0));
    }
}

tsvd_status
tsvdi_cuda_dense_scale_share(struct tsvd_context *ctx, const struct cuda_matrices *to,
                             const struct column_shares *shares, unsigned long long *const *largest)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t numbers = columns_before(*shares, shares->self, to->c) * to->r;
    struct shared_largest all = {shares->members, {}};
    tsvd_status ret = TSVD_OK;

    for (int i = 0; i < shares->members; i++) {
        all.of[i] = largest[i];
    }
    scale_kernel<<<SCALE_BLOCKS *(unsigned)call->device->multiprocessors, SCALE_THREADS, 0,
                   call->stream>>>(all, numbers, to->w, to->exponent, to->kind);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
