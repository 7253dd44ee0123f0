/*
 * Reflectors on vectors: those of a block are gathered in I - V T V^T (Schreiber & Van Loan, SIAM
 * J. Sci. Stat. Comput. 10 (1989)), and products apply it.
 *
 * Of a block of b reflectors, b <= DENSE_BLOCK, memory holds V^T, [b][entries], and V^T V and T,
 * [b][b], T upper triangular: T[i][j] = -tau_j sum over l = i .. j-1 of T[i][l] (v_l^T v_j).
 */
#include "dense/panel.h"
#include "dense/run.h"

enum { COPY_ROWS = 8, TRIANGLE_THREADS = 1024, SUM_THREADS = 256 };

/* Into how many parts of so many terms a product over `terms` terms is cut that becomes DENSE_BLOCK
   x n; 0: it is not.  Else few multiprocessors would have work. */
static int64_t
parts_of(int64_t terms, int64_t n, int64_t count)
{
    const int64_t parts = terms / DENSE_PART_TERMS;

    if (count > 1 || parts < 2 || terms < 8 * n) {
        return 0;
    }
    return parts < DENSE_PARTS ? parts : (int64_t)DENSE_PARTS;
}

/* The workspace. */
struct reflect_room {
    real *v, *gram, *t, *y, *ty;
    real *parts; /* of one product over many terms */
};

static size_t
lay_out(int64_t rows, int64_t count, int64_t vectors, char *base, struct reflect_room *room)
{
    const int64_t parts = parts_of(rows, 1, count);
    int64_t most;
    size_t at = 0;

    room->v = cut<real>(base, &at, count * DENSE_BLOCK * rows);
    room->gram = cut<real>(base, &at, count * DENSE_BLOCK * DENSE_BLOCK);
    room->t = cut<real>(base, &at, count * DENSE_BLOCK * DENSE_BLOCK);
    room->y = cut<real>(base, &at, count * DENSE_BLOCK * vectors);
    room->ty = cut<real>(base, &at, count * DENSE_BLOCK * vectors);
    most = vectors > DENSE_BLOCK ? vectors : (int64_t)DENSE_BLOCK;
    room->parts = cut<real>(base, &at, parts > 0 ? (parts + 1) * DENSE_BLOCK * most : 0);
    return at;
}

uint64_t
tsvdi_cuda_dense_reflect_bytes(int64_t rows, int64_t count, int64_t vectors)
{
    struct reflect_room room;

    return lay_out(rows, count, vectors, NULL, &room);
}

/* V^T of reflectors begin .. begin + b - 1, from the first entry that is not zero in all of them:
   ones on the diagonal and zeros before it.  A block copies a tile. */
static __global__ void
copy_kernel(struct dense_factor f, int64_t begin, int b, real *v)
{
    __shared__ real tile[TILE][TILE + 1];
    const int64_t matrix = blockIdx.z, down = blockIdx.y, entries = f.rows - begin - f.right;
    const int64_t first = (int64_t)blockIdx.x * TILE, x = threadIdx.x;
    const real *w = f.w + matrix * f.next;

    for (int64_t y = threadIdx.y; y < TILE; y += COPY_ROWS) {
        const int64_t j = down * TILE + (f.right ? x : y), i = first + (f.right ? y : x);

        if (j < b && i < entries) {
            const int64_t entry = begin + f.right + i, reflector = begin + j;

            tile[f.right ? x : y][f.right ? y : x] =
                i < j    ? REAL(0)
                : i == j ? REAL(1)
                         : w[f.right ? entry * f.ld + reflector : reflector * f.ld + entry];
        }
    }
    __syncthreads();
    for (int64_t y = threadIdx.y; y < TILE; y += COPY_ROWS) {
        const int64_t j = down * TILE + y, i = first + x;

        if (j < b && i < entries) {
            v[(matrix * b + j) * entries + i] = tile[y][x];
        }
    }
}

/* T of a block of reflectors.  A thread block has a matrix, a warp a row of T. */
static __global__ void
__launch_bounds__(TRIANGLE_THREADS)
    triangle_kernel(int b, const real *grams, const real *tau, int64_t next, real *ts)
{
    __shared__ real gram[DENSE_BLOCK][DENSE_BLOCK + 1];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int64_t matrix = blockIdx.x;

    tau += matrix * next;
    for (int k = (int)threadIdx.x; k < b * b; k += (int)blockDim.x) {
        gram[k / b][k % b] = grams[matrix * b * b + k];
    }
    __syncthreads();
    for (int i = warp; i < b; i += (int)blockDim.x / WARP) {
        real row[(DENSE_BLOCK + WARP - 1) / WARP]; /* T[i][lane + WARP k] */

#pragma unroll
        for (int k = 0; k * WARP < DENSE_BLOCK; k++) {
            row[k] = lane + k * WARP == i ? tau[i] : REAL(0);
        }
        for (int j = i + 1; j < b; j++) {
            real sum = 0;

#pragma unroll
            for (int k = 0; k * WARP < DENSE_BLOCK; k++) {
                const int l = lane + k * WARP;

                sum = l < j ? r_fma(row[k], gram[l][j], sum) : sum;
            }
            sum = -tau[j] * warp_sum(sum);
#pragma unroll
            for (int k = 0; k * WARP < DENSE_BLOCK; k++) {
                row[k] = lane + k * WARP == j ? sum : row[k];
            }
        }
#pragma unroll
        for (int k = 0; k * WARP < DENSE_BLOCK; k++) {
            if (lane + k * WARP < b) {
                ts[matrix * b * b + i * b + lane + k * WARP] = row[k];
            }
        }
    }
}

/* to[i] = the sum of part[p][i] over p. */
static __global__ void
__launch_bounds__(SUM_THREADS) sum_kernel(const real *part, int64_t parts, int64_t size, real *to)
{
    const int64_t i = (int64_t)blockIdx.x * SUM_THREADS + threadIdx.x;
    real sum = 0;

    for (int64_t p = 0; p < parts && i < size; p++) {
        sum += part[p * size + i];
    }
    if (i < size) {
        to[i] = sum;
    }
}

/* C = A B, rows x columns, over many terms.  step_a and step_b: numbers between a term of A, or of
   B, and the next. */
static tsvd_status
multiply_long(struct cuda_call *call, int64_t rows, int64_t columns, int64_t terms,
              struct cuda_factor a, int64_t step_a, struct cuda_factor b, int64_t step_b,
              real *d_parts, real *d_c, int64_t count)
{
    const int64_t size = rows * columns;
    const int64_t parts = parts_of(terms, rows > columns ? rows : columns, count);
    const int64_t each = parts > 0 ? terms / parts : 0, rest = terms - parts * each;
    tsvd_status ret = TSVD_OK;

    if (parts == 0) {
        return tsvdi_cuda_multiply_add(call, TSVD_SINGLE, rows, columns, terms, 1, a, b, 0, d_c,
                                       columns, size, count);
    }
    a.stride = each * step_a;
    b.stride = each * step_b;
    TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, rows, columns, each, 1, a, b, 0, d_parts,
                                     columns, size, parts));
    a.d = (const real *)a.d + parts * a.stride;
    b.d = (const real *)b.d + parts * b.stride;
    TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, rows, columns, rest, 1, a, b, 0,
                                     d_parts + parts * size, columns, size, 1));
    sum_kernel<<<blocks_for(size, SUM_THREADS), SUM_THREADS, 0, call->stream>>>(
        d_parts, parts + (rest > 0), size, d_c);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* V^T and T of reflectors begin .. begin + b - 1. */
static tsvd_status
gather_block(struct cuda_call *call, const struct dense_factor *f, int64_t begin, int b,
             const struct reflect_room *room)
{
    const int64_t entries = f->rows - begin - f->right, across = blocks_for(entries, TILE);
    const struct cuda_factor v = {room->v, entries, b * entries, 0};
    const struct cuda_factor turned = {room->v, entries, b * entries, 1};
    tsvd_status ret = TSVD_OK;

    for (int64_t at = 0; at < f->count; at += GRID_MOST) {
        const int64_t some = f->count - at < GRID_MOST ? f->count - at : (int64_t)GRID_MOST;
        struct dense_factor part = *f;

        part.w += at * f->next;
        copy_kernel<<<dim3((unsigned)across, blocks_for(b, TILE), (unsigned)some),
                      dim3(TILE, COPY_ROWS), 0, call->stream>>>(part, begin, b,
                                                                room->v + at * b * entries);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(
        multiply_long(call, b, b, entries, v, 1, turned, 1, room->parts, room->gram, f->count));
    triangle_kernel<<<(unsigned)f->count, TRIANGLE_THREADS, 0, call->stream>>>(
        b, room->gram, f->tau + begin, f->tau_next, room->t);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Applies a block to vectors, from their entry begin + right on. */
static tsvd_status
apply_block(struct cuda_call *call, const struct dense_factor *f, int64_t begin, int b,
            struct dense_small_vectors x, int transposed, const struct reflect_room *room)
{
    const int64_t first = begin + f->right, entries = f->rows - first, n = x.count;
    const struct cuda_factor v = {room->v, entries, b * entries, 0};
    const struct cuda_factor v_turned = {room->v, entries, b * entries, 1};
    const struct cuda_factor t = {room->t, b, b * b, x.rows ? !transposed : transposed};
    const struct cuda_factor y = {room->y, x.rows ? b : n, b * n, 0};
    const struct cuda_factor ty = {room->ty, x.rows ? b : n, b * n, 0};
    real *const d_x = x.d_x + (x.rows ? first : first * x.stride);
    const struct cuda_factor to = {d_x, x.stride, x.next, 0};
    tsvd_status ret = TSVD_OK;

    if (x.rows) { /* X -= X V T^T V^T */
        TSVD_TRY(
            multiply_long(call, n, b, entries, to, 1, v_turned, 1, room->parts, room->y, f->count));
        TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, n, b, b, 1, y, t, 0, room->ty, b, b * n,
                                         f->count));
        TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, n, entries, b, -1, ty, v, 1, d_x,
                                         x.stride, x.next, f->count));
    } else { /* X -= V T V^T X */
        TSVD_TRY(
            multiply_long(call, b, n, entries, v, 1, to, x.stride, room->parts, room->y, f->count));
        TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, b, n, b, 1, t, y, 0, room->ty, n, b * n,
                                         f->count));
        TSVD_TRY(tsvdi_cuda_multiply_add(call, TSVD_SINGLE, entries, n, b, -1, v_turned, ty, 1, d_x,
                                         x.stride, x.next, f->count));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dense_reflect(struct tsvd_context *ctx, const struct dense_factor *f, int64_t begin,
                         int64_t end, struct dense_small_vectors x, int transposed, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t blocks = blocks_for(end - begin, DENSE_BLOCK);
    struct reflect_room room;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(f->rows, f->count, x.count, d_work, &room);
    for (int64_t k = 0; k < blocks && x.count > 0; k++) {
        const int64_t at = begin + (transposed ? k : blocks - 1 - k) * DENSE_BLOCK;
        const int b = (int)(end - at < DENSE_BLOCK ? end - at : (int64_t)DENSE_BLOCK);

        TSVD_TRY(gather_block(call, f, at, b, &room));
        TSVD_TRY(apply_block(call, f, at, b, x, transposed, &room));
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}
