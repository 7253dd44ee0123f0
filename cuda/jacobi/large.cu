/*
 * One-sided Jacobi on the device, of matrices with many rows or columns: what comes before the
 * sweeps, and after them.  One matrix is worked on at a time.
 */
#include <algorithm>

#include "jacobi/large.h"
#include "qr/qr.h"

enum {
    THREADS = 256,
    TILE_LINES = 8,
    NOTHING_BYTE = 0xc0, /* of sizes that are not found yet: an int of four is below NOTHING */
    NOTHING = -(1 << 29) /* the size of a row of zeros */
};

/* ---- what W is like ---- */

/* The sizes of the rows of x.  Its column j counts as multiplied by 2^scale[order[j]]; order NULL:
   by 2^scale[j]; scale NULL: by 1.  row [rows]: no size is found yet. */
static __global__ void
__launch_bounds__(THREADS) row_sizes_kernel(int64_t rows, int64_t columns, const scalar *x,
                                            const int *scale, const int *order, int *row)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int most = NOTHING;

    if (i >= rows) {
        return;
    }
    for (int64_t j = blockIdx.y; j < columns; j += JACOBI_ROW_GROUPS) {
        const real *const part = (const real *)&x[j * rows + i];

#pragma unroll
        for (int k = 0; k < N_PARTS; k++) {
            real_int power;

            if (r_split(part[k], &power) != 0) {
                const int up = scale == NULL ? 0 : scale[order == NULL ? j : order[j]];

                most = power + up > most ? (int)power + up : most;
            }
        }
    }
    atomicMax(&row[i], most);
}

static tsvd_status
find_row_sizes(struct cuda_call *call, int64_t rows, int64_t columns, const scalar *d_x,
               const int *d_scale, const int *d_order, int *d_row)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call,
             cudaMemsetAsync(d_row, NOTHING_BYTE, (size_t)rows * sizeof(*d_row), call->stream));
    row_sizes_kernel<<<dim3(blocks_for(rows, THREADS), JACOBI_ROW_GROUPS), THREADS, 0,
                       call->stream>>>(rows, columns, d_x, d_scale, d_order, d_row);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The sum, or the largest, of `own` over the threads of the block, in each of them. */
static __device__ __forceinline__ long long
combine(long long own, bool largest, long long *part)
{
    const int me = (int)threadIdx.x;
    long long all;

    part[me] = own;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half) {
            const long long other = part[me + half];

            part[me] = !largest ? part[me] + other : other > part[me] ? other : part[me];
        }
        __syncthreads();
    }
    all = part[0];
    __syncthreads();
    return all;
}

/* One block makes *view.  row NULL: W is not square, and its rows do not matter. */
static __global__ void
__launch_bounds__(THREADS) view_kernel(int n, const int *row, const int *column, const real *norm,
                                       struct jacobi_view *view)
{
    __shared__ long long part[THREADS];
    long long count = 0, sum = 0, high = NOTHING, down = NOTHING;

    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        high = column[i] > high ? column[i] : high;
        down = -column[i] > down ? -column[i] : down;
        if (row != NULL) {
            const bool there = row[i] > NOTHING, crossed = norm[i] > 0;

            count += there - crossed;
            sum += (there ? row[i] : 0) - (crossed ? column[i] : 0);
        }
    }
    high = combine(high, true, part);
    down = combine(down, true, part);
    count = combine(count, false, part);
    sum = combine(sum, false, part);
    if (threadIdx.x == 0) {
        view->high = (int)high;
        view->low = (int)-down;
        view->more = {count, sum};
    }
}

/* Loads W, with large->sorted as staging memory, and finds its view and kind. */
static tsvd_status
load(struct tsvd_context *ctx, struct jacobi_large *large, const struct jacobi_job *job,
     struct jacobi_view *view, char *kind)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct cuda_matrices *w = large->in;
    const bool square = w->r == w->c;
    const struct cuda_piece piece[] = {{view, large->view, sizeof(*view)}, {kind, w->kind, 1}};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_dense_load(ctx, &job->problem->a, job->begin, w, 0, large->sorted));
    TSVD_TRY(tsvdi_cuda_jacobi_measure(call, w->r, w->c, w->w, large->columns.norm,
                                       large->columns.exponent, false));
    if (square) {
        TSVD_TRY(find_row_sizes(call, w->r, w->c, w->w, NULL, NULL, large->row));
    }
    view_kernel<<<1, THREADS, 0, call->stream>>>((int)w->c, square ? large->row : NULL,
                                                 large->columns.exponent, large->columns.norm,
                                                 large->view);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_download_all(call, piece, 2));
out:
    return ret;
}

/* ---- QR ---- */

static __global__ void
__launch_bounds__(THREADS)
    sort_columns_kernel(int64_t rows, const int *order, const scalar *from, scalar *to)
{
    from += order[blockIdx.x] * rows;
    to += blockIdx.x * rows;
    for (int64_t i = threadIdx.x; i < rows; i += THREADS) {
        to[i] = from[i];
    }
}

/* Column i of X is row i of R, whose column j is multiplied by 2^scale[order[j]], times
   2^-size[i]. */
static __global__ void
take_rows_kernel(int64_t n, const scalar *r, const int *scale, const int *order, const int *size,
                 scalar *x)
{
    __shared__ scalar tile[TILE][TILE + 1];
    const int64_t row = (int64_t)blockIdx.x * TILE, column = (int64_t)blockIdx.y * TILE;

    for (int k = (int)threadIdx.y; k < TILE; k += TILE_LINES) {
        const int64_t i = row + threadIdx.x, j = column + k;

        if (i < n && j < n) {
            const int64_t shift = i <= j ? (int64_t)scale[order[j]] - size[i] : 0;

            tile[k][threadIdx.x] =
                i <= j ? jacobi_shifted_entry(jacobi_shifted_entry(r[j * n + i], shift / 2),
                                              shift - shift / 2)
                       : scalar(0);
        }
    }
    __syncthreads();
    for (int k = (int)threadIdx.y; k < TILE; k += TILE_LINES) {
        const int64_t i = row + k, j = column + threadIdx.x;

        if (i < n && j < n) {
            x[i * n + j] = tile[threadIdx.x][k];
        }
    }
}

/* `count` columns of n entries: column j is unit vector number first + j. */
static __global__ void
__launch_bounds__(THREADS) units_kernel(int64_t n, int64_t count, int64_t first, scalar *x)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (at < n * count) {
        x[at] = REAL(at % n == first + at / n);
    }
}

static tsvd_status
make_units(struct cuda_call *call, int64_t n, int64_t count, int64_t first, scalar *d_x)
{
    tsvd_status ret = TSVD_OK;

    if (n * count > 0) {
        units_kernel<<<blocks_for(n * count, THREADS), THREADS, 0, call->stream>>>(n, count, first,
                                                                                   d_x);
        CUDA_LAUNCHED(call);
    }
out:
    return ret;
}

/* x 2^-power */
static __global__ void
__launch_bounds__(THREADS) scale_kernel(int64_t count, int power, real *x)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (at < count) {
        r_scale(x + at, 1, power, x + at);
    }
}

/* Scales columns of `rows` entries, whose exponents begin with zero. */
static tsvd_status
scale_columns(struct cuda_call *call, const struct jacobi_columns *q, int64_t rows, scalar *d_x)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaMemsetAsync(q->exponent, 0, (size_t)q->n * sizeof(int), call->stream));
    TSVD_TRY(tsvdi_cuda_jacobi_measure(call, rows, q->n, d_x, q->norm, q->exponent, true));
out:
    return ret;
}

/* X by QR of W, in W's memory; J begins as I. */
static tsvd_status
factor(struct tsvd_context *ctx, struct jacobi_large *large, bool vectors, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct jacobi_columns *q = &large->columns;
    scalar *const w = large->in->w;
    const int64_t r = large->in->r, c = large->in->c;
    const struct cuda_qr qr = {r, c, 1, large->sorted, large->tau, large->other};
    const dim3 tiles(blocks_for(c, TILE), blocks_for(c, TILE));
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(scale_columns(call, q, r, w));
    TSVD_TRY(tsvdi_cuda_jacobi_rank(call, q, large->column, NULL, large->rank));
    sort_columns_kernel<<<(unsigned)c, THREADS, 0, call->stream>>>(r, large->column, w,
                                                                   large->sorted);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_dense_qr(ctx, &qr, d_work));
    TSVD_TRY(find_row_sizes(call, c, c, large->other, q->exponent, large->column, large->row));
    q->x = w;
    take_rows_kernel<<<tiles, dim3(TILE, TILE_LINES), 0, call->stream>>>(
        c, large->other, q->exponent, large->column, large->row, q->x);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call, cudaMemcpyAsync(q->exponent, large->row, (size_t)c * sizeof(int),
                                   cudaMemcpyDeviceToDevice, call->stream));
    if (vectors) {
        TSVD_TRY(make_units(call, c, c, 0, q->v));
    }
out:
    return ret;
}

/* ---- before the sweeps ---- */

tsvd_status
tsvdi_cuda_jacobi_prepare(struct tsvd_context *ctx, struct jacobi_large *large,
                          struct jacobi_job *job, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_matrices *w = large->in;
    const int64_t n = w->c;
    struct jacobi_view view;
    char kind;
    tsvd_status ret = TSVD_OK;

    large->started = false;
    large->columns.base = 0;
    w->transposed = job->problem->a.rows < job->problem->a.columns;
    TSVD_TRY(load(ctx, large, job, &view, &kind));
    if (jacobi_by_rows(view.more)) {
        w->transposed = 1;
        TSVD_TRY(load(ctx, large, job, &view, &kind));
    }
    large->started = kind == ORDINARY && w->r == n && view.high - view.low <= JACOBI_EVEN_BITS;
    if (!large->started) {
        TSVD_TRY(factor(ctx, large, job->problem->vectors, d_work));
        goto out;
    }
    large->columns.base = view.high; /* so that W V neither overflows nor underflows */
    scale_kernel<<<blocks_for(N_PARTS * n * n, THREADS), THREADS, 0, call->stream>>>(
        N_PARTS * n * n, view.high, (real *)w->w);
    CUDA_LAUNCHED(call);
    job->start = {n, w->w, large->s, large->other, large->columns.v};
out:
    return ret;
}

#if TSVD_COMPLEX
static __global__ void
__launch_bounds__(THREADS) conjugate_kernel(int64_t count, const scalar *from, scalar *to)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (at < count) {
        to[at] = n_conj(from[at]);
    }
}
#endif

/* X = W V to large->other, which held the left vectors of the start.  conj(V) came as the rows of
   Vh, and is what q->v is to begin with.  If V is of no use, X comes from QR instead. */
static tsvd_status
continue_start(struct tsvd_context *ctx, struct jacobi_large *large, bool vectors, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct jacobi_columns *q = &large->columns;
    const int64_t n = q->n;
    const scalar *v = q->v;
    real most, least;
    const struct cuda_piece piece[] = {{&most, large->s, sizeof(most)},
                                       {&least, large->s + n - 1, sizeof(least)}};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_download_all(call, piece, 2));
    if (least < JACOBI_USELESS * most) {
        large->started = false;
        return factor(ctx, large, vectors, d_work);
    }
    large->in->transposed = !large->in->transposed;
    q->x = large->other;
#if TSVD_COMPLEX
    conjugate_kernel<<<blocks_for(n * n, THREADS), THREADS, 0, call->stream>>>(n * n, q->v,
                                                                               large->sorted);
    CUDA_LAUNCHED(call);
    v = large->sorted;
#endif
    TSVD_TRY(tsvdi_cuda_multiply(call, SCALAR_KIND, n, n, n, v, n, large->in->w, n, q->x, n, 0, 0,
                                 0, 1));
    TSVD_TRY(scale_columns(call, q, n, q->x));
out:
    return ret;
}

/* ---- after the sweeps ---- */

/* Vectors of n entries in the order of the values: `rank` columns of x, divided by their norms if
   `norm` is not NULL, and then those of `more`. */
struct jacobi_vectors {
    int64_t n;
    const scalar *x;
    const real *norm;
    const int *order;
    int64_t rank;
    const scalar *more;
    const int *place; /* entry i becomes entry place[i]; NULL: i */
};

static __device__ __forceinline__ scalar
entry_of(const struct jacobi_vectors &v, int64_t i, int64_t j)
{
    const int64_t column = j < v.rank ? v.order[j] : 0;

    if (j >= v.rank) {
        return v.more[(j - v.rank) * v.n + i];
    }
    return v.norm == NULL ? v.x[column * v.n + i] : v.x[column * v.n + i] / v.norm[column];
}

/* `count` vectors of `length` entries, as columns [length][count] or, by_row, as rows.  The first k
   are those of v from `first` on, with zeros after their n entries; the rest are unit vectors. */
static __global__ void
place_kernel(const __grid_constant__ struct jacobi_vectors v, int64_t first, int64_t k,
             int64_t length, int64_t count, int by_row, scalar *to)
{
    __shared__ scalar tile[TILE][TILE + 1];
    const int64_t row = (int64_t)blockIdx.x * TILE, column = (int64_t)blockIdx.y * TILE;

    for (int l = (int)threadIdx.y; l < TILE; l += TILE_LINES) {
        const int64_t i = row + threadIdx.x, j = column + l;

        if (i < length && j < count) {
            tile[l][threadIdx.x] = j >= k     ? scalar(i == j)
                                   : i >= v.n ? scalar(0)
                                              : entry_of(v, i, first + j);
        }
    }
    __syncthreads();
    for (int l = (int)threadIdx.y; l < TILE; l += TILE_LINES) {
        const int64_t i = row + (by_row ? (int)threadIdx.x : l);
        const int64_t j = column + (by_row ? l : (int)threadIdx.x);

        if (i < length && j < count) {
            const int64_t place = v.place != NULL && i < v.n ? v.place[i] : i;

            to[by_row ? j * length + place : place * count + j] = tile[j - column][i - row];
        }
    }
}

static tsvd_status
place(struct cuda_call *call, const struct jacobi_vectors &v, int64_t first, int64_t k,
      int64_t length, int64_t count, bool by_row, scalar *d_to)
{
    const dim3 tiles(blocks_for(length, TILE), blocks_for(count, TILE));
    tsvd_status ret = TSVD_OK;

    if (length * count > 0) {
        place_kernel<<<tiles, dim3(TILE, TILE_LINES), 0, call->stream>>>(v, first, k, length, count,
                                                                         by_row, d_to);
        CUDA_LAUNCHED(call);
    }
out:
    return ret;
}

/* Completes the vectors of X to a basis: with Q R those vectors, by the columns of Q after the
   first `rank`. */
static tsvd_status
complete(struct tsvd_context *ctx, const struct jacobi_large *large, struct jacobi_vectors *v,
         char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = v->n, rank = v->rank;
    struct cuda_qr known = {};
    const struct dense_block x = {NULL, 0, n - rank, n, 1, 0};
    struct dense_block more = x;
    tsvd_status ret = TSVD_OK;

    known.r = n;
    known.c = rank;
    known.count = 1;
    known.w = v->x == large->other ? large->in->w : large->other;
    known.r_factor = large->columns.v; /* J's vectors are in their places already */
    known.tau = large->tau;
    more.d_x = known.w + rank * n;
    TSVD_TRY(make_units(call, n, n - rank, rank, more.d_x));
    if (rank > 0) {
        const struct dense_factor q = {n, 1, 0, known.w, n, n * rank, known.tau, rank, 1, NULL};

        TSVD_TRY(place(call, *v, 0, rank, n, rank, true, known.w));
        TSVD_TRY(tsvdi_cuda_dense_qr(ctx, &known, d_work));
        TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &q, 0, rank, more, 0, d_work));
    }
    v->more = more.d_x;
out:
    return ret;
}

/* The vectors of both sides; `vectors` of them are wanted on the longer side. */
static tsvd_status
make_vectors(struct tsvd_context *ctx, struct jacobi_large *large, const struct dense_problem *p,
             int64_t vectors, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct cuda_matrices *w = large->in;
    const struct jacobi_columns *q = &large->columns;
    const int64_t r = w->r, c = w->c, first = p->first, k = p->k;
    const bool transposed = w->transposed;
    const struct dense_factor f = {r, 1, 0, large->sorted, r, r * c, large->tau, c, 0, NULL};
    const struct dense_block left = {transposed ? large->out->vh : large->out->u,
                                     0,
                                     vectors,
                                     transposed ? r : vectors,
                                     transposed,
                                     0};
    struct jacobi_vectors v = {c, q->v, NULL, large->order, c, NULL, NULL};
    int rank = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(place(call, v, first, k, r, vectors, transposed, left.d_x));
    if (!large->started && c > 0) {
        TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &f, 0, c, left, 0, d_work));
    }
    if (k == 0) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_download(call, &rank, large->rank, sizeof(rank)));
    v.x = q->x;
    v.norm = q->norm;
    v.rank = rank;
    if (rank < first + k) {
        TSVD_TRY(complete(ctx, large, &v, d_work));
    }
    v.place = large->started ? NULL : large->column;
    TSVD_TRY(
        place(call, v, first, k, c, k, !transposed, transposed ? large->out->u : large->out->vh));
out:
    return ret;
}

tsvd_status
tsvdi_cuda_jacobi_solve(struct tsvd_context *ctx, struct jacobi_large *large,
                        const struct jacobi_job *job, int64_t vectors, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    struct jacobi_columns columns;
    tsvd_status ret = TSVD_OK;

    memset(job->made, 0, sizeof(*job->made));
    if (large->columns.n > 0) {
        if (large->started) {
            TSVD_TRY(continue_start(ctx, large, p->vectors, d_work));
        }
        columns = large->columns;
        columns.v = p->vectors ? columns.v : NULL;
        TSVD_TRY(tsvdi_cuda_jacobi_sweep(ctx, &columns, job->max_sweeps, job->made, d_work));
        TSVD_TRY(tsvdi_cuda_jacobi_rank(call, &columns, large->order, large->s, large->rank));
        TSVD_TRY(tsvdi_cuda_download(call, &job->made->kind, large->in->kind, 1));
    }
    if (p->k > 0) {
        CUDA_TRY(call,
                 cudaMemcpyAsync(large->out->s, large->s + p->first, (size_t)p->k * sizeof(real),
                                 cudaMemcpyDeviceToDevice, call->stream));
    }
    if (p->vectors) {
        TSVD_TRY(make_vectors(ctx, large, p, vectors, d_work));
    }
out:
    return ret;
}

/* ---- memory ---- */

size_t
tsvdi_cuda_jacobi_lay_out(struct jacobi_large *large, bool vectors, char *base)
{
    struct cuda_matrices *w = large->in;
    struct jacobi_columns *q = &large->columns;
    const int64_t r = w->r, c = w->c;
    size_t at = 0;

    w->w = carve<scalar>(base, &at, r * c);
    large->sorted = carve<scalar>(base, &at, r * c);
    large->other = carve<scalar>(base, &at, c * c);
    q->n = c;
    q->v = carve<scalar>(base, &at, vectors || r == c ? c * c : 0);
    q->norm = carve<real>(base, &at, c);
    q->most = carve<real>(base, &at, c);
    q->exponent = carve<int>(base, &at, c);
    large->tau = carve<scalar>(base, &at, c);
    large->s = carve<real>(base, &at, c);
    large->row = carve<int>(base, &at, c);
    large->order = carve<int>(base, &at, c);
    large->column = carve<int>(base, &at, c);
    large->rank = carve<int>(base, &at, 1);
    large->view = carve<struct jacobi_view>(base, &at, 1);
    w->largest = carve<unsigned long long>(base, &at, 1);
    w->exponent = carve<real_int>(base, &at, 1);
    w->kind = carve<char>(base, &at, 1);
    return at;
}

uint64_t
tsvdi_cuda_jacobi_work_bytes(const struct cuda_device *device, const struct dense_problem *p,
                             int64_t vectors)
{
    const int64_t r = p->a.rows > p->a.columns ? p->a.rows : p->a.columns, c = p->n;
    const uint64_t finish = tsvdi_cuda_dense_finish_bytes(1, dense_shape_of(p));

    return c == 0 ? finish
                  : std::max({finish, tsvdi_cuda_dense_qr_bytes(device, r, c, 1),
                              tsvdi_cuda_dense_reflect_bytes(r, c, 1, vectors),
                              tsvdi_cuda_dense_qr_bytes(device, c, c, 1),
                              tsvdi_cuda_dense_reflect_bytes(c, c, 1, c),
                              tsvdi_cuda_jacobi_sweep_bytes(device, c)});
}
