/*
 * QR of matrices with many more rows than columns by Cholesky factors: CholeskyQR2 (Yamamoto,
 * Nakatsukasa, Yanagisawa & Fukaya, ETNA 44 (2015)).  Nearly all of its work is products, but it
 * cannot do every matrix.
 *
 *     W^H W = L L^H,  W1 = W L^-H,  W1^H W1 = I + E
 *
 * Let T be the upper triangle of E with half of its diagonal.  Then I + E = (I + T)^H (I + T) but
 * for squares of E, and W = Q R with Q = W1 (I - T) and R = (I + T) L^H.  Memory keeps W1 and
 * I - T: what Q multiplies is small, and is multiplied by I - T first.
 *
 * Nothing is assumed of W.  The rows of W1 come from substitution, so that W1 L^H = W holds but for
 * rounding, whatever L is; and E is computed from W1, with an error of r eps at most.  So E alone
 * tells whether Q and R are good.  Columns of very different lengths do no harm: the errors of
 * W^H W and of L are relative to the lengths.
 *
 * If the columns of the triangle of E are shorter than sqrt(eps / 8), then Q R = W1 (I - T^2) L^H
 * differs from W by less than c eps / 8 times its norm, and an entry of Q^H Q from that of I by
 * less than sqrt(c) eps.  If they are longer, but ||E|| <= 1/2, W1 is well-conditioned, and a
 * second pass with W1 in W's place succeeds.  That serves condition numbers up to about 1e7, or 1e3
 * in float32, of W with columns of equal lengths.
 */
#include "matrix/panel.h"
#include "matrix/split_sums.h"
#include "qr/qr.h"

enum {
    BLOCK = sizeof(scalar) > 8 ? WARP / 2 : WARP, /* columns of a block of L */
    THREADS = 128,                                /* of a block; each has a row */
    SUM_SHARES = 8,                               /* threads that share a sum over parts */
    CHECK_THREADS = 256,
    PASSES = 2,    /* most Cholesky factors */
    GEMM_TILE = 64 /* assumed order of a tile of a product */
};

/* The Gram matrix of a block of columns is made of tiles of SIDE x SIDE entries: the columns
   a + LANES i and b + LANES j, for a >= b. */
enum {
    SIDE = 4,
    LANES = BLOCK / SIDE,
    PACK = 16 / (int)sizeof(scalar), /* numbers of a 16-byte load */
    STRIDE = THREADS + PACK,         /* of the columns of `tile`: loads of a warp use all banks */
    TILES = LANES * (LANES + 1) / 2,
    GROUPS = THREADS / TILES
};

struct alignas(16) pack {
    scalar x[PACK];
};

/* A block of L, column by column, with ones on the diagonal beyond its width, and 1 / its diagonal.
 */
struct triangle {
    alignas(16) scalar l[BLOCK * BLOCK];
    real inverse[BLOCK];
};

/* x := x L^-H.  Quotients are corrected by their remainders. */
static __device__ __forceinline__ void
solve_row(const struct triangle &t, scalar (&x)[BLOCK])
{
#pragma unroll
    for (int k = 0; k < BLOCK; k++) {
        const scalar quotient = n_scale(t.inverse[k], x[k]);

        x[k] = n_fma_real(t.inverse[k], n_fma_real(-n_real(t.l[k * BLOCK + k]), quotient, x[k]),
                          quotient);
#pragma unroll
        for (int j = k + 1; j < BLOCK; j++) {
            x[j] = n_fma(-x[k], n_conj(t.l[k * BLOCK + j]), x[j]);
        }
    }
}

/* `width` columns of each of several matrices. */
struct rows {
    int64_t r, c; /* numbers between columns of w, and of lower */
    int width;
    int64_t blocks;      /* of a matrix */
    scalar *w;           /* the first of the columns; matrices are r c apart */
    const scalar *lower; /* the block of L on the diagonal; matrices are c^2 apart */
    scalar *parts;       /* [count][blocks][width][width] out: parts of the Gram matrix */
};

/* Replaces the columns by their product with L^-H, and makes their Gram matrix. */
template <bool SOLVE, bool GRAM>
static __global__ void
__launch_bounds__(THREADS, CHOLESKY_FILL) rows_kernel(const struct rows q)
{
    __shared__ struct triangle triangle;
    __shared__ alignas(16) scalar tile[BLOCK * STRIDE];
    const int t = (int)threadIdx.x, group = t / TILES;
    const int64_t matrix = blockIdx.x / q.blocks, block = blockIdx.x % q.blocks;
    scalar *const w = q.w + matrix * q.r * q.c;
    scalar sum[SIDE][SIDE] = {}, x[BLOCK];
    int a = 0, b = t % TILES;

    while (b > a) {
        b -= ++a;
    }
    if (SOLVE) {
        for (int k = t; k < BLOCK * BLOCK; k += THREADS) {
            const int i = k % BLOCK, j = k / BLOCK;

            triangle.l[k] = i < q.width && j < q.width ? q.lower[matrix * q.c * q.c + j * q.c + i]
                                                       : REAL(i == j);
        }
        __syncthreads();
        if (t < BLOCK) {
            triangle.inverse[t] = 1 / n_real(triangle.l[t * (BLOCK + 1)]);
        }
    }
    for (int64_t first = block * THREADS; first < q.r; first += q.blocks * THREADS) {
        const int width = first + t < q.r ? q.width : 0;
        scalar *at = w + first + t;

        /* `triangle` is there, and `tile` has been read.  Also, the compiler must load L again for
           each row, rather than fill the registers with it. */
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BLOCK; k++, at += q.r) {
            x[k] = k < width ? *at : REAL(0);
        }
        if (SOLVE) {
            solve_row(triangle, x);
        }
#pragma unroll
        for (int k = 0; k < BLOCK; k++) {
            tile[k * STRIDE + t] = x[k];
        }
        if (SOLVE) {
            at = w + first + t;
#pragma unroll 1 /* unrolled, it would keep the loads' addresses in registers */
            for (int k = 0; k < width; k++, at += q.r) {
                *at = tile[k * STRIDE + t];
            }
        }
        if (GRAM) {
            __syncthreads();
            for (int step = group; group < GROUPS && step < THREADS / PACK; step += GROUPS) {
                struct pack left[SIDE], right[SIDE];

#pragma unroll
                for (int i = 0; i < SIDE; i++) {
                    left[i] = *(const struct pack *)&tile[(a + LANES * i) * STRIDE + step * PACK];
                    right[i] = *(const struct pack *)&tile[(b + LANES * i) * STRIDE + step * PACK];
                }
#pragma unroll
                for (int k = 0; k < SIDE * SIDE * PACK; k++) {
                    const int i = k / PACK / SIDE, j = k / PACK % SIDE;

                    sum[i][j] = n_fma(n_conj(left[i].x[k % PACK]), right[j].x[k % PACK], sum[i][j]);
                }
            }
        }
    }
    if (GRAM) {
        scalar *const part = q.parts + (matrix * q.blocks + block) * q.width * q.width;

        __syncthreads();
#pragma unroll
        for (int k = 0; k < SIDE * SIDE; k++) {
            if (group < GROUPS) {
                tile[t * SIDE * SIDE + k] = sum[k / SIDE][k % SIDE];
            }
        }
        __syncthreads();
        for (int k = 0; k < SIDE * SIDE && group == 0; k++) {
            const int i = a + LANES * (k / SIDE), j = b + LANES * (k % SIDE);
            scalar all = 0;

            for (int g = 0; g < GROUPS; g++) {
                all += tile[(g * TILES + t) * SIDE * SIDE + k];
            }
            if (i < q.width && j < q.width) {
                part[i * q.width + j] = n_conj(all);
                part[j * q.width + i] = all;
            }
        }
    }
}

/* to[i] = the sum of part[p][i] over p, for each matrix. */
static __global__ void
sum_kernel(const scalar *part, int64_t parts, int64_t size, int64_t across, scalar *to)
{
    __shared__ scalar share[SUM_SHARES][WARP];
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    const int64_t matrix = blockIdx.x / across, i = blockIdx.x % across * WARP + x;
    scalar sum = 0;

    part += matrix * parts * size;
    for (int64_t p = y; p < parts && i < size; p += SUM_SHARES) {
        sum += part[p * size + i];
    }
    share[y][x] = sum;
    __syncthreads();
    if (y == 0 && i < size) {
        for (int k = 1; k < SUM_SHARES; k++) {
            sum += share[k][x];
        }
        to[matrix * size + i] = sum;
    }
}

static __global__ void
__launch_bounds__(CHECK_THREADS)
    diagonal_kernel(int64_t c, int64_t count, const scalar *gram, real *diagonal)
{
    const int64_t at = (int64_t)blockIdx.x * CHECK_THREADS + threadIdx.x;

    if (at < c * count) {
        diagonal[at] = n_real(gram[at * c + at % c]);
    }
}

/* Step of the factorisation: `width` columns of L from column `first` on.  Each block factors the
   diagonal block, and then each of its threads solves for one row below that.  L is not made in
   place, so that no block changes what another one reads. */
static __global__ void
__launch_bounds__(THREADS)
    factor_kernel(int64_t c, int64_t first, int width, int64_t blocks, const scalar *gram,
                  const real *diagonal, scalar *lower, real *loss)
{
    __shared__ struct triangle triangle;
    __shared__ real root[BLOCK];
    const int t = (int)threadIdx.x, lane = t % BLOCK, part = t / BLOCK;
    const int64_t matrix = blockIdx.x / blocks, block = blockIdx.x % blocks;
    const int64_t row = first + width + block * THREADS + t;
    scalar *const l = triangle.l;
    scalar x[BLOCK];

    gram += matrix * c * c + first * c;
    lower += matrix * c * c + first * c;
#pragma unroll
    for (int k = 0; k < BLOCK; k++) {
        x[k] = row < c && k < width ? gram[k * c + row] : REAL(0);
    }
    for (int k = part; k < BLOCK; k += THREADS / BLOCK) {
        l[k * BLOCK + lane] =
            lane < width && k < width ? gram[k * c + first + lane] : REAL(lane == k);
    }
    for (int k = 0; k < width; k++) {
        scalar factor;

        __syncthreads();
        factor = -l[k * BLOCK + lane] / n_real(l[k * BLOCK + k]);
        for (int j = k + 1 + part; j < width; j += THREADS / BLOCK) {
            l[j * BLOCK + lane] = n_fma(factor, n_conj(l[k * BLOCK + j]), l[j * BLOCK + lane]);
        }
    }
    __syncthreads();
    if (t < BLOCK) {
        root[t] = r_sqrt(n_real(l[t * BLOCK + t]));
        triangle.inverse[t] = 1 / root[t];
    }
    __syncthreads();
    for (int k = part; k < BLOCK; k += THREADS / BLOCK) {
        l[k * BLOCK + lane] = lane > k ? l[k * BLOCK + lane] / root[k] : scalar(root[k]);
        if (block == 0 && lane >= k && lane < width) {
            lower[k * c + first + lane] = l[k * BLOCK + lane];
        }
    }
    __syncthreads();
    if (block == 0 && t < width) {
        const int64_t column = matrix * c + first + t;

        loss[column] = diagonal[column] / (root[t] * root[t]);
    }
    if (row < c) {
        solve_row(triangle, x);
#pragma unroll
        for (int k = 0; k < BLOCK; k++) {
            if (k < width) {
                lower[k * c + row] = x[k];
            }
        }
    }
}

/* I - T and I + T from I + E, and the square of the length of each column of the triangle of E.  A
   block has a column. */
static __global__ void
__launch_bounds__(CHECK_THREADS)
    correct_kernel(int64_t c, const scalar *gram, scalar *correction, scalar *factor, real *squares)
{
    __shared__ real part[CHECK_THREADS / WARP];
    const int t = (int)threadIdx.x;
    const int64_t column = blockIdx.x, j = column % c;
    real sum = 0;

    for (int64_t i = t; i < c; i += CHECK_THREADS) {
        const real one = REAL(i == j);
        const scalar e = i <= j ? gram[column * c + i] - one : REAL(0);
        const scalar entry = i == j ? e / 2 : e; /* of T */

        sum = n_add_abs2(e, sum);
        correction[column * c + i] = one - entry;
        factor[column * c + i] = one + entry;
    }
    sum = warp_sum(sum);
    if (t % WARP == 0) {
        part[t / WARP] = sum;
    }
    __syncthreads();
    if (t == 0) {
        for (int k = 1; k < CHECK_THREADS / WARP; k++) {
            sum += part[k];
        }
        squares[column] = sum;
    }
}

/* The largest of numbers that should not be negative; infinity if one is, or is NaN.  One block. */
static __global__ void
__launch_bounds__(CHECK_THREADS) largest_kernel(int64_t numbers, const real *x, real *largest)
{
    __shared__ real part[CHECK_THREADS];
    const int t = (int)threadIdx.x;
    real most = 0;

    for (int64_t i = t; i < numbers; i += CHECK_THREADS) {
        most = r_max(x[i] >= 0 ? x[i] : REAL(INFINITY), most);
    }
    part[t] = most;
    __syncthreads();
    for (int half = CHECK_THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            part[t] = r_max(part[t], part[t + half]);
        }
        __syncthreads();
    }
    if (t == 0) {
        *largest = part[0];
    }
}

/* ---- the steps ---- */

/* The QR under way; all arrays but w and correction are workspace. */
struct cholesky {
    int64_t r, c, count;
    int64_t blocks;         /* of rows_kernel, for a matrix */
    int64_t parts;          /* of W^H W: products over `each` rows, and one more over the rest; */
    int64_t each;           /* parts = 0: it is not cut */
    scalar *w, *correction; /* M, then W1; and I - T */
    scalar *gram;           /* [count][c][c] */
    scalar *lower;          /* [count][c][c] L, column by column: row by row it is its transpose */
    scalar *triangle;       /* [count][c][c] R but for T, row by row */
    scalar *factor;         /* [count][c][c] I + T, column by column */
    real *diagonal;         /* [count][c] of the Gram matrix */
    real *measure; /* [count][c] loss of factor_kernel(), then squares of correct_kernel() */
    real *largest; /* [1] of `measure` */
    scalar *sum;   /* parts of the Gram matrix */
};

static size_t
lay_out(const struct cuda_device *device, struct cholesky *q, char *base)
{
    const int64_t size = q->count * q->c * q->c,
                  fill = CHOLESKY_FILL * (int64_t)device->multiprocessors;
    const int64_t chunks = blocks_for(q->r, THREADS), tiles = blocks_for(q->c, GEMM_TILE);
    const int64_t share = fill / q->count > 1 ? fill / q->count : 1;
    size_t at = 0;

    q->blocks = chunks < share ? chunks : share;
    q->parts = fill / (q->count * tiles * tiles);
    q->parts = q->parts < q->r / CHOLESKY_PART_TERMS ? q->parts : q->r / CHOLESKY_PART_TERMS;
    if (q->c <= BLOCK || q->count > 1 || q->parts < 2) {
        q->parts = 0;
    } else {
        q->each = (q->r / q->parts + WARP - 1) / WARP * WARP; /* the parts begin aligned */
        q->parts = q->r / q->each;
    }
    q->gram = carve<scalar>(base, &at, size);
    q->lower = carve<scalar>(base, &at, size);
    q->triangle = carve<scalar>(base, &at, size);
    q->factor = carve<scalar>(base, &at, size);
    q->diagonal = carve<real>(base, &at, q->count * q->c);
    q->measure = carve<real>(base, &at, q->count * q->c);
    q->largest = carve<real>(base, &at, 1);
    q->sum = carve<scalar>(base, &at,
                           q->c <= BLOCK  ? q->blocks * size
                           : q->parts > 0 ? (q->parts + 1) * size
                                          : 0);
    return at;
}

static uint64_t
factor_bytes(const struct cuda_device *device, const struct stage_run *own)
{
    struct cholesky q = {};

    q.r = own->r;
    q.c = own->c;
    q.count = own->count;
    return lay_out(device, &q, NULL);
}

static tsvd_status
add_parts(struct cuda_call *call, const struct cholesky *q, int64_t parts)
{
    const int64_t size = q->c * q->c, across = blocks_for(size, WARP);
    tsvd_status ret = TSVD_OK;

    sum_kernel<<<(unsigned)(across * q->count), dim3(WARP, SUM_SHARES), 0, call->stream>>>(
        q->sum, parts, size, across, q->gram);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* W := W L^-H in columns first .. end - 1, from which those before `first` have been subtracted. */
static tsvd_status
solve(struct cuda_call *call, const struct cholesky *q, int64_t first, int64_t end)
{
    const int64_t r = q->r, c = q->c, blocks = blocks_for(end - first, BLOCK);
    const int64_t middle = first + (blocks + 1) / 2 * BLOCK;
    const struct cuda_factor l = {q->lower + first * c + middle, c, c * c, TSVDI_ADJOINT};
    const struct cuda_factor w = {q->w + first * r, r, r * c, 0};
    tsvd_status ret = TSVD_OK;

    if (blocks == 1) {
        const struct rows rows = {
            r,   c, (int)(end - first), q->blocks, q->w + first * r, q->lower + first * (c + 1),
            NULL};

        rows_kernel<true, false>
            <<<(unsigned)(q->blocks * q->count), THREADS, 0, call->stream>>>(rows);
        CUDA_LAUNCHED(call);
        goto out;
    }
    TSVD_TRY(solve(call, q, first, middle));
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, end - middle, r, middle - first, -1, l, w,
                                     1, q->w + middle * r, r, r * c, q->count));
    TSVD_TRY(solve(call, q, middle, end));
out:
    return ret;
}

/* W^H W of up to BLOCK columns, in one pass.  solved: W L^-H replaces W first. */
static tsvd_status
few_columns(struct cuda_call *call, const struct cholesky *q, bool solved)
{
    const struct rows rows = {q->r, q->c, (int)q->c, q->blocks, q->w, q->lower, q->sum};
    const unsigned blocks = (unsigned)(q->blocks * q->count);
    tsvd_status ret = TSVD_OK;

    if (solved) {
        rows_kernel<true, true><<<blocks, THREADS, 0, call->stream>>>(rows);
    } else {
        rows_kernel<false, true><<<blocks, THREADS, 0, call->stream>>>(rows);
    }
    CUDA_LAUNCHED(call);
    TSVD_TRY(add_parts(call, q, q->blocks));
out:
    return ret;
}

/* The same for any number of columns. */
static tsvd_status
make_gram(struct cuda_call *call, const struct cholesky *q, bool solved)
{
    const int64_t r = q->r, c = q->c, done = q->parts * q->each;
    const bool parts = q->parts > 0;
    struct cuda_factor w = {q->w, r, parts ? q->each : r * c, 0}, adjoint = w;
    tsvd_status ret = TSVD_OK;

    if (c <= BLOCK) {
        return few_columns(call, q, solved);
    }
    if (solved) {
        TSVD_TRY(solve(call, q, 0, c));
    }
    adjoint.form = TSVDI_ADJOINT;
    if (parts) {
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, c, c, q->each, 1, w, adjoint, 0, q->sum,
                                         c, c * c, q->parts));
        w.d = adjoint.d = q->w + done;
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, c, c, r - done, 1, w, adjoint, 0,
                                         q->sum + q->parts * c * c, c, c * c, 1));
        TSVD_TRY(add_parts(call, q, q->parts + (done < r)));
    } else {
        TSVD_TRY(multiply_split(call, c, c, r, w, 1, adjoint, 1, CHOLESKY_PART_TERMS, q->gram,
                                q->count));
    }
out:
    return ret;
}

/* L of the Gram matrix.  q->measure becomes the square of each column of W, divided by what is left
   of it when the columns before it are subtracted. */
static tsvd_status
factor(struct cuda_call *call, const struct cholesky *q)
{
    const int64_t c = q->c;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaMemsetAsync(q->lower, 0, (size_t)(q->count * c * c) * sizeof(*q->lower),
                                   call->stream));
    diagonal_kernel<<<blocks_for(q->count * c, CHECK_THREADS), CHECK_THREADS, 0, call->stream>>>(
        c, q->count, q->gram, q->diagonal);
    CUDA_LAUNCHED(call);
    for (int64_t first = 0; first < c; first += BLOCK) {
        const int64_t width = c - first < BLOCK ? c - first : (int64_t)BLOCK;
        const int64_t next = first + width, rest = c - next;
        const int64_t blocks = rest > 0 ? blocks_for(rest, THREADS) : 1u;
        const struct cuda_factor l = {q->lower + first * c + next, c, c * c, TSVDI_ADJOINT};
        const struct cuda_factor turned = {q->lower + first * c + next, c, c * c, 0};

        factor_kernel<<<(unsigned)(blocks * q->count), THREADS, 0, call->stream>>>(
            c, first, (int)width, blocks, q->gram, q->diagonal, q->lower, q->measure);
        CUDA_LAUNCHED(call);
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, rest, rest, width, -1, l, turned, 1,
                                         q->gram + next * (c + 1), c, c * c, q->count));
    }
out:
    return ret;
}

/* Makes I - T and I + T.  q->measure becomes the squares of the columns of E's triangle. */
static tsvd_status
correct(struct cuda_call *call, const struct cholesky *q)
{
    tsvd_status ret = TSVD_OK;

    correct_kernel<<<(unsigned)(q->c * q->count), CHECK_THREADS, 0, call->stream>>>(
        q->c, q->gram, q->correction, q->factor, q->measure);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Brings the largest number of q->measure to the host. */
static tsvd_status
measured(struct cuda_call *call, const struct cholesky *q, real *largest)
{
    tsvd_status ret = TSVD_OK;

    largest_kernel<<<1, CHECK_THREADS, 0, call->stream>>>(q->count * q->c, q->measure, q->largest);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_download(call, largest, q->largest, sizeof(*largest)));
out:
    return ret;
}

static void
exchange(scalar **a, scalar **b)
{
    scalar *const other = *a;

    *a = *b;
    *b = other;
}

/* W1 to M and I - T to `correction`, if all of the matrices are conditioned well enough.  Returns
   when that is known. */
static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t c = own->c, size = c * c, count = own->count;
    const real good = R_EPS / 8, fair = 1 / REAL(8 * c);
    const real most = 1 / (8 * REAL(c + 8) * R_EPS); /* above it ||E|| > 1/2 nearly always */
    struct cholesky q = {};
    real measure;
    tsvd_status ret = TSVD_OK;

    (void)run;
    *outcome = STAGE_REFUSED;
    q.r = own->r;
    q.c = c;
    q.count = count;
    (void)lay_out(call->device, &q, d_work);
    q.w = own->m;
    q.correction = own->correction;
    TSVD_TRY(make_gram(call, &q, false));
    for (int pass = 0; pass < PASSES && *outcome != STAGE_MADE; pass++) {
        TSVD_TRY(tsvdi_check(ctx, 0));
        TSVD_TRY(factor(call, &q));
        TSVD_TRY(measured(call, &q, &measure));
        if (!(measure <= most)) {
            goto out;
        }
        *outcome = STAGE_SPOILED;
        TSVD_TRY(make_gram(call, &q, true));
        if (pass == 0) {
            exchange(&q.lower, &q.triangle);
        } else {
            TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, c, c, c, 1, {q.lower, c, size, 0},
                                             {q.triangle, c, size, 0}, 0, q.factor, c, size,
                                             count));
            exchange(&q.factor, &q.triangle);
        }
        TSVD_TRY(correct(call, &q));
        TSVD_TRY(measured(call, &q, &measure));
        if (measure <= good) {
            *outcome = STAGE_MADE;
        } else if (!(measure <= fair)) {
            goto out;
        }
    }
    if (*outcome == STAGE_MADE) { /* R^T = conj(L) (I + T)^T, row by row, is R column by column */
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, c, c, c, 1,
                                         {q.triangle, c, size, TSVDI_ADJOINT},
                                         {q.factor, c, size, 0}, 0, own[1].m, c, size, count));
    }
out:
    return ret;
}

static uint64_t
apply_bytes(const struct cuda_device *device, const struct stage_run *own, int64_t vectors)
{
    (void)device;
    return bytes_of(own->count * own->c, bytes_of(vectors, sizeof(scalar)));
}

/* Q X = W1 ((I - T) X). */
static tsvd_status
expand(struct cuda_call *call, const struct stage_run *own, int64_t k, int rows, const scalar *d_x,
       scalar *d_to, char *d_work)
{
    const int64_t r = own->r, c = own->c, count = own->count;
    const int form = rows ? TSVDI_AS_STORED : TSVDI_TRANSPOSED;
    const struct cuda_factor x = {d_x, rows ? c : k, c * k, 0};
    const struct cuda_factor y = {d_work, rows ? c : k, c * k, 0};
    const struct cuda_factor correction = {own->correction, c, c * c, form};
    const struct cuda_factor q = {own->m, r, r * c, form};
    scalar *const d_y = (scalar *)d_work;
    tsvd_status ret = TSVD_OK;

    if (rows) {
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, k, c, c, 1, x, correction, 0, d_y, c,
                                         c * k, count));
        TSVD_TRY(
            tsvdi_cuda_multiply_add(call, SCALAR_KIND, k, r, c, 1, y, q, 0, d_to, r, r * k, count));
    } else {
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, c, k, c, 1, correction, x, 0, d_y, k,
                                         c * k, count));
        TSVD_TRY(
            tsvdi_cuda_multiply_add(call, SCALAR_KIND, r, k, c, 1, q, y, 0, d_to, k, r * k, count));
    }
out:
    return ret;
}

const struct stage tsvdi_cuda_dense_cholesky_stage = {
    .number = 0,
    .right = false,
    .superdiagonals = 0,
    .otherwise = &tsvdi_cuda_dense_qr_stage,
    .numbers = tsvdi_cuda_dense_stage_numbers,
    .factor_bytes = factor_bytes,
    .apply_bytes = apply_bytes,
    .factor = factor_stage,
    .apply = NULL,
    .expand = expand,
};
