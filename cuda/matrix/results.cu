/*
 * From the SVD of B to that of A: what the reflectors start from, and, after them, signs and
 * scale.
 */
#include <algorithm>

#include "matrix/matrix.h"

enum {
    THREADS = 256,
    SIGN_LINES = 8,
    TURN_ENTRIES = 8,
    ROW_PART = 4096, /* entries of a row that a warp looks through */
    SMALL_GROUP = 4  /* threads of a small matrix, at least */
};

/* ---- before the reflectors ---- */

static __global__ void
__launch_bounds__(THREADS) place_kernel(const real *from, int64_t rows, int64_t columns, scalar *to,
                                        int64_t to_rows, int64_t to_columns, int64_t parts)
{
    const int64_t matrix = blockIdx.x / parts;
    const int64_t at = (int64_t)(blockIdx.x % parts) * THREADS + threadIdx.x;

    if (at < to_rows * to_columns) {
        const int64_t i = at / to_columns, j = at % to_columns;

        to[matrix * to_rows * to_columns + at] = i < rows && j < columns
                                                     ? from[(matrix * rows + i) * columns + j]
                                                     : REAL(i >= rows && i - rows == j - columns);
    }
}

tsvd_status
tsvdi_cuda_dense_place(struct cuda_call *call, int64_t count, const real *d_from, int64_t rows,
                       int64_t columns, scalar *d_to, int64_t to_rows, int64_t to_columns)
{
    const int64_t parts = blocks_for(to_rows * to_columns, THREADS);
    tsvd_status ret = TSVD_OK;

    if (parts == 0) {
        goto out;
    }
    place_kernel<<<(unsigned)(parts * count), THREADS, 0, call->stream>>>(
        d_from, rows, columns, d_to, to_rows, to_columns, parts);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- after the reflectors ---- */

/* The largest of the entries that `lanes` threads of a warp have, of equals that of the first
   place. */
static __device__ __forceinline__ scalar
largest_of_lanes(int lanes, scalar most, int64_t place)
{
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
        const scalar other = __shfl_xor_sync(0xffffffffu, most, apart);
        const int64_t there = __shfl_xor_sync(0xffffffffu, place, apart);

        if (entry_size(other) > entry_size(most) ||
            (entry_size(other) == entry_size(most) && there < place)) {
            most = other;
            place = there;
        }
    }
    return most;
}

/* Of DENSE_SIGN_ROWS rows of U, the entry of largest magnitude in each column; on a tie the first.
   A block has a tile of columns. */
static __global__ void
largest_kernel(const scalar *u, struct dense_shape shape, int64_t parts, int64_t across,
               scalar *largest)
{
    __shared__ scalar value[SIGN_LINES][TILE];
    __shared__ int place[SIGN_LINES][TILE];
    const int64_t matrix = blockIdx.x / (parts * across), part = blockIdx.x / across % parts;
    const int64_t j = blockIdx.x % across * TILE + threadIdx.x, first = part * DENSE_SIGN_ROWS;
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    scalar most = 0;
    int at = y;

    u += matrix * shape.u_rows * shape.u_columns;
    for (int i = y; i < DENSE_SIGN_ROWS && first + i < shape.u_rows && j < shape.k;
         i += SIGN_LINES) {
        const scalar entry = u[(first + i) * shape.u_columns + j];

        if (entry_size(entry) > entry_size(most)) {
            most = entry;
            at = i;
        }
    }
    value[y][x] = most;
    place[y][x] = at;
    __syncthreads();
    if (y == 0 && j < shape.k) {
        for (int line = 1; line < SIGN_LINES; line++) {
            const scalar other = value[line][x];

            if (entry_size(other) > entry_size(most) ||
                (entry_size(other) == entry_size(most) && place[line][x] < at)) {
                most = other;
                at = place[line][x];
            }
        }
        largest[(matrix * parts + part) * shape.k + j] = most;
    }
}

/* Of ROW_PART entries of the first k rows of each matrix, the one of largest magnitude; on a tie
   the first.  A warp has a part of a row. */
static __global__ void
__launch_bounds__(THREADS)
    largest_in_row_kernel(const scalar *x, int64_t rows, int64_t columns, int64_t k, int64_t count,
                          int64_t parts, scalar *largest)
{
    const int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;
    const int64_t matrix = at / (parts * k), part = at / k % parts, j = at % k;
    const int64_t first = part * ROW_PART;
    const int64_t end = first + ROW_PART < columns ? first + ROW_PART : columns;
    int64_t place = columns;
    scalar most = 0;

    if (matrix >= count) {
        return;
    }
    x += (matrix * rows + j) * columns;
    for (int64_t i = first + threadIdx.x % WARP; i < end; i += WARP) {
        if (entry_size(x[i]) > entry_size(most)) {
            most = x[i];
            place = i;
        }
    }
    most = largest_of_lanes(WARP, most, place);
    if (threadIdx.x % WARP == 0) {
        largest[at] = most;
    }
}

/* The largest entry of each left vector, to `turn`; and the values with the scale of A (exponent
   NULL: they have it), or NaN for a matrix that is not finite; s NULL: no values.  `lanes` threads
   of a warp look through the parts of a vector. */
static __global__ void
__launch_bounds__(THREADS)
    finish_kernel(int64_t k, int64_t count, int64_t parts, int lanes, const scalar *largest,
                  const char *kind, const real_int *exponent, real *s, scalar *turn)
{
    const int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / lanes, matrix = at / k;
    const int64_t lane = threadIdx.x % (unsigned)lanes;
    int64_t place = parts;
    scalar most = 0;

    for (int64_t part = lane; part < parts && at < k * count; part += lanes) {
        const scalar other = largest[(matrix * parts + part) * k + at % k];

        if (entry_size(other) > entry_size(most)) {
            most = other;
            place = part;
        }
    }
    most = largest_of_lanes(lanes, most, place);
    if (at >= k * count || lane > 0) {
        return;
    }
    if (s != NULL) {
        s[at] =
            scaled_value(s[at], exponent == NULL ? 0 : exponent[matrix], kind[matrix] == NONFINITE);
    }
    if (turn != NULL) {
        turn[at] = most;
    }
}

/* Turns the first k columns, or, by_row, rows, by the largest entries of the left vectors: as left
   ones or as right ones.  Fills what belongs to a matrix that is not finite with NaN (kind NULL:
   nothing). */
static __global__ void
__launch_bounds__(THREADS)
    turn_kernel(int64_t rows, int64_t columns, int by_row, int right, int64_t k, int64_t parts,
                const scalar *turn, const char *kind, scalar *x)
{
    const int64_t matrix = blockIdx.x / parts;
    const int64_t begin = (int64_t)(blockIdx.x % parts) * THREADS * TURN_ENTRIES + threadIdx.x;
    const bool lost = kind != NULL && kind[matrix] == NONFINITE;

    x += matrix * rows * columns;
    for (int i = 0; i < TURN_ENTRIES; i++) {
        const int64_t at = begin + i * THREADS;

        if (at < rows * columns) {
            const int64_t vector = by_row ? at / columns : at % columns;

            if (lost) {
                x[at] = lost_entry();
            } else if (vector < k && turns(turn[matrix * k + vector])) {
                x[at] = right ? turned_right(x[at], turn[matrix * k + vector])
                              : turned_left(x[at], turn[matrix * k + vector]);
            }
        }
    }
}

/* All of that in one kernel, for small matrices with up to WARP values.  `group` threads of a warp
   have a matrix. */
static __global__ void
__launch_bounds__(THREADS)
    finish_small_kernel(struct dense_shape shape, int64_t count, int group, const char *kind,
                        const real_int *exponent, real *s, scalar *u, scalar *vh)
{
    const int64_t matrix = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / group;
    const int lane = (int)threadIdx.x % group;
    const int k = (int)shape.k, rows = (int)shape.u_rows, columns = (int)shape.u_columns;
    const bool present = matrix < count, lost = present && kind[matrix] == NONFINITE;

    u += matrix * rows * columns;
    vh += matrix * shape.v_rows * shape.v_columns;
    for (int first = 0; first < k; first += group) {
        const int j = first + lane, some = k - first < group ? k - first : group;
        scalar most = 0;

#pragma unroll 4
        for (int i = 0; i < (present && j < k ? rows : 0); i++) {
            most = larger_entry(most, u[i * columns + j]);
        }
        for (int i = 0; i < (!lost && turns(most) ? rows : 0); i++) {
            u[i * columns + j] = turned_left(u[i * columns + j], most);
        }
        for (int i = 0; i < some; i++) {
            const scalar by = __shfl_sync(0xffffffffu, most, i, group);
            scalar *const row = vh + (first + i) * shape.v_columns;

            for (int at = lane; at < (present && !lost && turns(by) ? shape.v_columns : 0);
                 at += group) {
                row[at] = turned_right(row[at], by);
            }
        }
    }
    if (!present) {
        return;
    }
    for (int j = lane; j < k; j += group) {
        real *const value = s + matrix * k + j;

        *value = scaled_value(*value, exponent == NULL ? 0 : exponent[matrix], lost);
    }
    for (int at = lane; at < (lost ? rows * columns : 0); at += group) {
        u[at] = lost_entry();
    }
    for (int at = lane; at < (lost ? shape.v_rows * shape.v_columns : 0); at += group) {
        vh[at] = lost_entry();
    }
}

static tsvd_status
finish_small(struct cuda_call *call, const struct cuda_matrices *in, const real_int *d_exponent,
             const struct cuda_results *out, struct dense_shape shape)
{
    const int64_t longest = shape.u_columns > shape.v_columns ? shape.u_columns : shape.v_columns;
    int group = SMALL_GROUP;
    tsvd_status ret = TSVD_OK;

    while (group < WARP && group < longest) {
        group *= 2;
    }
    finish_small_kernel<<<blocks_for(in->count * group, THREADS), THREADS, 0, call->stream>>>(
        shape, in->count, group, in->kind, d_exponent, out->s, out->u, out->vh);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static int64_t
sign_parts(struct dense_shape shape)
{
    return blocks_for(shape.u_rows, DENSE_SIGN_ROWS);
}

uint64_t
tsvdi_cuda_dense_finish_bytes(int64_t count, struct dense_shape shape)
{
    return bytes_of(count * shape.k, (uint64_t)(sign_parts(shape) + 1) * sizeof(scalar));
}

/* Left vectors are columns, and right ones rows; by_column: of the transposes. */
static tsvd_status
turn(struct cuda_call *call, int64_t count, const char *d_kind, int64_t rows, int64_t columns,
     int right, int by_column, int64_t k, const scalar *d_turn, scalar *d_x)
{
    const int64_t parts = blocks_for(rows * columns, (int64_t)THREADS * TURN_ENTRIES);
    tsvd_status ret = TSVD_OK;

    turn_kernel<<<(unsigned)(parts * count), THREADS, 0, call->stream>>>(
        rows, columns, right != by_column, right, k, parts, d_turn, d_kind, d_x);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dense_finish(struct cuda_call *call, const struct cuda_matrices *in,
                        const real_int *d_exponent, const struct cuda_results *out,
                        struct dense_shape shape, char *d_work)
{
    const int64_t k = shape.k, count = in->count, parts = out->u != NULL ? sign_parts(shape) : 0;
    const int64_t across = blocks_for(k, TILE);
    const int lanes = parts < WARP ? 1 : (int)WARP;
    scalar *const d_turn = (scalar *)d_work, *const d_largest = d_turn + count * k;
    tsvd_status ret = TSVD_OK;

    if (out->u != NULL && k <= WARP && shape.u_rows * shape.u_columns <= DENSE_WARP_ENTRIES &&
        shape.v_rows * shape.v_columns <= DENSE_WARP_ENTRIES) {
        return finish_small(call, in, d_exponent, out, shape);
    }
    if (out->u != NULL) {
        largest_kernel<<<(unsigned)(across * parts * count), dim3(TILE, SIGN_LINES), 0,
                         call->stream>>>(out->u, shape, parts, across, d_largest);
        CUDA_LAUNCHED(call);
    }
    finish_kernel<<<blocks_for(k * count * lanes, THREADS), THREADS, 0, call->stream>>>(
        k, count, parts, lanes, d_largest, in->kind, d_exponent, out->s,
        out->u != NULL ? d_turn : NULL);
    CUDA_LAUNCHED(call);
    if (out->u != NULL) {
        TSVD_TRY(
            turn(call, count, in->kind, shape.u_rows, shape.u_columns, 0, 0, k, d_turn, out->u));
        TSVD_TRY(
            turn(call, count, in->kind, shape.v_rows, shape.v_columns, 1, 0, k, d_turn, out->vh));
    }
out:
    return ret;
}

/* ---- results by columns ---- */

/* All of it for small matrices: `group` threads have a matrix, each some of its vectors. */
static __global__ void
__launch_bounds__(THREADS)
    orient_small_kernel(int64_t count, int group, int k, int rows, int left_vectors, int columns,
                        int right_vectors, scalar *left, scalar *right)
{
    const int64_t matrix = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / group;

    left += matrix * left_vectors * rows;
    right += matrix * columns * right_vectors;
    for (int j = (int)threadIdx.x % group; j < (matrix < count ? k : 0); j += group) {
        scalar *const vector = left + j * rows;
        scalar most = 0;

        for (int i = 0; i < rows; i++) {
            most = larger_entry(most, vector[i]);
        }
        for (int i = 0; i < (turns(most) ? rows : 0); i++) {
            vector[i] = turned_left(vector[i], most);
        }
        for (int i = 0; i < (turns(most) ? columns : 0); i++) {
            right[i * right_vectors + j] = turned_right(right[i * right_vectors + j], most);
        }
    }
}

static tsvd_status
orient_small(struct cuda_call *call, const struct column_results *x)
{
    int group = SMALL_GROUP;
    tsvd_status ret = TSVD_OK;

    while (group < WARP && group < x->k) {
        group *= 2;
    }
    orient_small_kernel<<<blocks_for(x->matrices * group, THREADS), THREADS, 0, call->stream>>>(
        x->matrices, group, (int)x->k, (int)x->rows, (int)x->left_vectors, (int)x->columns,
        (int)x->right_vectors, (scalar *)x->left, (scalar *)x->right);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* That of `count` matrices, as many as a grid can have. */
static tsvd_status
orient(struct cuda_call *call, const struct column_results *x, int64_t begin, int64_t count,
       int64_t parts, scalar *d_largest)
{
    const int64_t k = x->k, warps = k * parts * count, vectors = k * count;
    const int lanes = parts < WARP ? 1 : (int)WARP;
    scalar *const left = (scalar *)x->left + begin * x->left_vectors * x->rows;
    scalar *const right = (scalar *)x->right + begin * x->columns * x->right_vectors;
    scalar *const d_turn = parts > 1 ? d_largest + warps : d_largest;
    tsvd_status ret = TSVD_OK;

    largest_in_row_kernel<<<blocks_for(warps * WARP, THREADS), THREADS, 0, call->stream>>>(
        left, x->left_vectors, x->rows, k, count, parts, d_largest);
    CUDA_LAUNCHED(call);
    if (parts > 1) {
        finish_kernel<<<blocks_for(vectors * lanes, THREADS), THREADS, 0, call->stream>>>(
            k, count, parts, lanes, d_largest, NULL, NULL, NULL, d_turn);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(turn(call, count, NULL, x->left_vectors, x->rows, 0, 1, k, d_turn, left));
    TSVD_TRY(turn(call, count, NULL, x->columns, x->right_vectors, 1, 1, k, d_turn, right));
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dense_orient_by_column(const struct column_results *x)
{
    struct cuda_call *call = &x->handle->cuda->call;
    const int64_t parts = blocks_for(x->rows, ROW_PART);
    const int64_t left = x->left_vectors * x->rows, right = x->columns * x->right_vectors;
    const int64_t most = std::max<int64_t>(INT32_MAX / std::max<int64_t>({left, right, 1}), 1);
    scalar *d_largest = NULL;
    tsvd_status ret = TSVD_OK;

    if (x->k == 0 || x->matrices == 0) {
        goto out;
    }
    if (x->k <= WARP && left <= DENSE_WARP_ENTRIES && right <= DENSE_WARP_ENTRIES) {
        return orient_small(call, x);
    }
    TSVD_TRY(tsvdi_cuda_alloc(
        call, bytes_of(std::min(most, x->matrices) * x->k, (uint64_t)(parts + 1) * sizeof(scalar)),
        (void **)&d_largest));
    for (int64_t begin = 0; begin < x->matrices; begin += most) {
        TSVD_TRY(orient(call, x, begin, std::min(most, x->matrices - begin), parts, d_largest));
    }
out:
    tsvdi_cuda_free(call, d_largest);
    return ret;
}
