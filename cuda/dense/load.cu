/*
 * Dense matrices from where the caller has them to W: gathered, with the largest entry of each, and
 * scaled by a power of two.
 */
#include "dense/run.h"

enum { LOAD_ROWS = 8, SCALE_THREADS = 256, SCALE_ENTRIES = 16 };

/* What W is read from. */
struct dense_source {
    const char *a;
    int64_t row, column; /* bytes between rows, and between columns, of W */
    int64_t begin;       /* the first matrix, as one of the batch */
    int batch_ndim;
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS], batch_strides[TSVD_MAX_BATCH_DIMS];
};

static __host__ __device__ const char *
locate(const struct dense_source &from, int64_t index)
{
    const char *at = from.a;

    for (int k = from.batch_ndim - 1; k >= 0; k--) {
        at += index % from.batch_shape[k] * from.batch_strides[k];
        index /= from.batch_shape[k];
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

/* Gathers tiles, and finds the bits of the largest magnitude of each matrix.  by_row: neighbours in
   a row of W are close to each other in the source, and else those in a column. */
static __global__ void
load_kernel(const __grid_constant__ struct dense_source from, int64_t r, int64_t c, int64_t down,
            int64_t across, int by_row, real *w, unsigned long long *largest)
{
    __shared__ real tile[TILE][TILE + 1];
    const int64_t matrix = blockIdx.x / (down * across), place = blockIdx.x % (down * across);
    const int64_t row = place % down * TILE, column = place / down * TILE;
    const char *a = locate(from, from.begin + matrix);
    real_int most = 0;

    w += matrix * r * c;
    for (int k = (int)threadIdx.y; k < TILE; k += LOAD_ROWS) {
        const int i = by_row ? k : (int)threadIdx.x, j = by_row ? (int)threadIdx.x : k;

        if (row + i < r && column + j < c) {
            const real x = *(const real *)(a + (row + i) * from.row + (column + j) * from.column);

            tile[j][i] = x;
            most = size_bits(x) > most ? size_bits(x) : most;
        }
    }
    __syncthreads();
    for (int j = (int)threadIdx.y; j < TILE; j += LOAD_ROWS) {
        if (row + threadIdx.x < r && column + j < c) {
            w[(column + j) * r + row + threadIdx.x] = tile[j][threadIdx.x];
        }
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const real_int other = __shfl_xor_sync(0xffffffffu, most, lanes);

        most = other > most ? other : most;
    }
    if (threadIdx.x == 0 && most > 0) {
        atomicMax(&largest[matrix], (unsigned long long)most);
    }
}

/* Scales each matrix, and makes it zero if it is not ordinary. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    scale_kernel(int64_t entries, int64_t parts, const unsigned long long *largest, real *w,
                 real_int *exponents, char *kinds)
{
    const int64_t matrix = blockIdx.x / parts, part = blockIdx.x % parts;
    const real_int most = (real_int)largest[matrix];
    const bool ordinary = most > 0 && most < R_INFINITY_BITS;
    const int64_t begin = part * SCALE_THREADS * SCALE_ENTRIES + threadIdx.x;
    real_int exponent = 0;

    if (ordinary) {
        (void)r_split(r_from_bits(most), &exponent);
    }
    if (part == 0 && threadIdx.x == 0) {
        exponents[matrix] = exponent;
        kinds[matrix] = (char)(ordinary ? ORDINARY : most == 0 ? ZERO : NONFINITE);
    }
    for (int k = 0; k < SCALE_ENTRIES && !(ordinary && exponent == 0); k++) {
        const int64_t i = begin + k * SCALE_THREADS;

        if (i < entries) {
            real *x = w + matrix * entries + i;

            if (ordinary) {
                r_scale(x, 1, exponent, x);
            } else {
                *x = 0;
            }
        }
    }
}

/* ---- from the host ---- */

/* The matrices of a job as a source of bytes: `inner` entries at a distance, `outer` times. */
struct gathered {
    const struct dense_source *from;
    int64_t inner, outer;
    int64_t inner_stride, outer_stride;
};

static void
gather(const void *arg, size_t begin, size_t bytes, char *to)
{
    const struct gathered *g = (const struct gathered *)arg;
    int64_t at = (int64_t)(begin / sizeof(real)), left = (int64_t)(bytes / sizeof(real));

    while (left > 0) {
        const int64_t line = at / g->inner, first = at % g->inner;
        const int64_t some = g->inner - first < left ? g->inner - first : left;
        const char *a = locate(*g->from, g->from->begin + line / g->outer) +
                        line % g->outer * g->outer_stride + first * g->inner_stride;

        if (g->inner_stride == (int64_t)sizeof(real)) {
            memcpy(to, a, (size_t)some * sizeof(real));
        } else {
            for (int64_t i = 0; i < some; i++) {
                memcpy(to + (size_t)i * sizeof(real), a + i * g->inner_stride, sizeof(real));
            }
        }
        to += (size_t)some * sizeof(real);
        at += some;
        left -= some;
    }
}

/* Whether neighbours in a row of W are closer to each other in memory than those in a column. */
static bool
lies_by_row(const struct dense_source *from)
{
    return (from->column < 0 ? -from->column : from->column) <
           (from->row < 0 ? -from->row : from->row);
}

/* Brings the matrices to the device as they lie, row by row to d_stage or column by column to W,
   and tells where they are then. */
static tsvd_status
stage(struct cuda_call *call, const struct cuda_dense *run, real *d_stage,
      struct dense_source *from)
{
    const int64_t r = run->r, c = run->c;
    const bool by_row = lies_by_row(from);
    const struct gathered g = {from, by_row ? c : r, by_row ? r : c,
                               by_row ? from->column : from->row,
                               by_row ? from->row : from->column};
    real *const to = by_row ? d_stage : run->w;
    const size_t bytes = (size_t)run->count * (size_t)(r * c) * sizeof(real);
    const int64_t size = (int64_t)sizeof(real);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_stage(call, to, bytes, sizeof(real), gather, &g));
    from->a = (const char *)to;
    from->row = by_row ? c * size : size;
    from->column = by_row ? size : r * size;
    from->begin = 0;
    from->batch_ndim = 1;
    from->batch_shape[0] = run->count;
    from->batch_strides[0] = r * c * size;
out:
    return ret;
}

static struct dense_source
source_of(const struct dense_job *job, const struct cuda_dense *run)
{
    const struct dense_problem *p = job->problem;
    struct dense_source from = {};

    from.a = (const char *)p->a;
    from.row = run->wide ? p->column_stride : p->row_stride;
    from.column = run->wide ? p->row_stride : p->column_stride;
    from.begin = job->begin;
    from.batch_ndim = p->b.batch_ndim;
    for (int i = 0; i < p->b.batch_ndim; i++) {
        from.batch_shape[i] = p->b.batch_shape[i];
        from.batch_strides[i] = p->batch_strides[i];
    }
    return from;
}

bool
tsvdi_cuda_dense_stages(const struct dense_problem *p)
{
    const struct dense_source from = {NULL,
                                      p->rows < p->columns ? p->column_stride : p->row_stride,
                                      p->rows < p->columns ? p->row_stride : p->column_stride,
                                      0,
                                      0,
                                      {0},
                                      {0}};

    return p->b.from == TSVD_HOST && lies_by_row(&from);
}

tsvd_status
tsvdi_cuda_dense_load(struct tsvd_context *ctx, const struct dense_job *job,
                      const struct cuda_dense *run, real *d_stage)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t r = run->r, c = run->c, down = blocks_for(r, TILE), across = blocks_for(c, TILE);
    const int64_t parts = blocks_for(r * c, (int64_t)SCALE_THREADS * SCALE_ENTRIES);
    struct dense_source from = source_of(job, run);
    tsvd_status ret = TSVD_OK;

    if (job->problem->b.from == TSVD_HOST) {
        TSVD_TRY(stage(call, run, d_stage, &from));
    }
    CUDA_TRY(call, cudaMemsetAsync(run->largest, 0, (size_t)run->count * sizeof(*run->largest),
                                   call->stream));
    load_kernel<<<(unsigned)(down * across * run->count), dim3(TILE, LOAD_ROWS), 0, call->stream>>>(
        from, r, c, down, across, lies_by_row(&from), run->w, run->largest);
    CUDA_LAUNCHED(call);
    scale_kernel<<<(unsigned)(parts * run->count), SCALE_THREADS, 0, call->stream>>>(
        r * c, parts, run->largest, run->w, run->exponent, run->kind);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
