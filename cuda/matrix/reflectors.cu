/*
 * Reflectors on vectors, by matrix products.
 *
 * A block of b reflectors is H_0 ... H_(b-1) = I - V T V^H, where V has the vectors v_i as columns
 * and T is upper triangular (Schreiber & Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989)).  A single
 * reflector has T = tau, and two neighbouring blocks together have V = (V_1, V_2) and
 *
 *     T = ( T_1  -T_1 (V_1^H V_2) T_2 )
 *         (            T_2            ).
 *
 * So T follows from the Gram matrix V^H V by doubling.  It has a zero row and column where tau is
 * zero, so that a block is filled up with reflectors that are zero.
 *
 * With W = V T, formed from the scaled vectors, a block takes two products:
 *
 *                  H x                      H^H x
 *     columns      X -= W (V^H X)           X -= V (W^H X)
 *     rows         X -= (X V) W^H           X -= (X W) V^H
 *
 * Rows are those of X^H: the array holds the conjugates of the vectors.  Where it holds the vectors
 * themselves, or columns are conjugates, V and T are those of conj(H), the conjugates of H's.
 *
 * If the vectors are much fewer than their entries, W would be more work than the blocks save, and
 * T is applied to V^H X, or X V, instead.
 *
 * Several blocks are a group.  What belongs to a group is made at once, by few launches: V and W,
 * [matrix][block][entries][b], V^H V and T, [matrix][block][b][b].  The entries of all blocks of a
 * group are those from its first reflector on; the products with X leave out what is zero in a
 * whole block.
 */
#include <algorithm>

#include "matrix/matrix.h"
#include "matrix/panel.h"
#include "matrix/split_sums.h"
#include "matrix/stages.h"

enum {
    COPY_ROWS = 8,
    TRIANGLE = sizeof(scalar) > 8 ? DENSE_BLOCK / 2 : DENSE_BLOCK, /* reflectors that a thread block
                                                                      finds T of */
    TRIANGLE_THREADS = 256,
    TRIANGLE_LINES = 8, /* rows of a product that threads have at once */
    SUM_LINES = 8,
    SPLIT_TERMS = 16,  /* of a partial sum, at least, where sums are split: 64 were too many */
    ALIGNED = 8,       /* the length of V's rows is a multiple of this */
    PART_TILE = 64,    /* rows and columns of a product for one multiprocessor, as an estimate */
    ROUNDING = 8 * 256 /* bytes: carve() rounds the sizes of eight arrays up */
};

static_assert((DENSE_BLOCK & (DENSE_BLOCK - 1)) == 0 && DENSE_BLOCK >= 16 && DENSE_BLOCK <= 64,
              "one thread block finds T of these reflectors, or of half of them");
static_assert(DENSE_GROUP >= DENSE_BLOCK_MOST, "a group has a block at least");

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t
aligned(int64_t n)
{
    return (n + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* How many parts the terms of `count` products, rows x columns each, are cut into.  Uncut, few
   products over many terms would keep few multiprocessors busy. */
static int64_t
parts_of(int64_t rows, int64_t columns, int64_t terms, int64_t count)
{
    const int64_t tiles = count * blocks_for(rows, PART_TILE) * blocks_for(columns, PART_TILE);
    const int64_t parts = least(DENSE_TILES / tiles, terms / DENSE_PART_TERMS);

    return parts > 1 && terms >= DENSE_LONG * most(rows, columns) ? parts : 1;
}

/* ---- workspace ---- */

/* Numbers of workspace for the parts of a product over so many terms, or fewer. */
static int64_t
parts_numbers(int64_t terms)
{
    return terms >= 2 * DENSE_PART_TERMS ? 2 * DENSE_TILES * PART_TILE * PART_TILE : 0;
}

struct reflect_workspace {
    scalar *v, *w, *gram, *t, *half;
    scalar *y, *ty; /* V^H X and T V^H X, or X V and X V T */
    scalar *parts;  /* of products over many terms */
};

/* How much is worked on at once, and numbers of workspace.  More rows, reflectors, matrices or
   vectors never take fewer numbers, leaving aside vectors that count as few. */
struct reflect_size {
    int64_t width;      /* reflectors of a block, at most */
    int64_t reflectors; /* of all matrices that are worked on at once; `width` or more */
    int64_t matrices;   /* that are worked on at once, at most */
    int64_t factors, y, parts;
};

static struct reflect_size
size_of(int64_t rows, int64_t reflectors, int64_t count, int64_t vectors)
{
    const bool few =
        count == 1 && vectors <= rows / DENSE_FEW_SHARE && reflectors >= DENSE_BLOCK_MOST;
    struct reflect_size size;
    int64_t each, wanted, one;

    /* more reflectors make larger products with the vectors, but V^H V and T take more work for
       each of them; with few vectors the number of launches counts */
    size.width = few ? (int64_t)DENSE_BLOCK_MOST
                     : most(least(vectors / DENSE_BLOCK_SHARE, DENSE_BLOCK_MOST) / DENSE_BLOCK, 1) *
                           DENSE_BLOCK;
    /* a reflector in V, W, V^H V, T and half */
    each = rows + rows / DENSE_PART_TERMS + 1 + least(rows, 2 * vectors) + 5 * size.width / 2;
    wanted = most(DENSE_GROUP_LEAST, few ? least(DENSE_GROUP, reflectors) * each
                                         : count * (vectors + size.width) * each);
    wanted = least(least(wanted, DENSE_GROUP_MOST),
                   count * least(DENSE_GROUP, rows + size.width) * each);
    size.factors = most(wanted, size.width * each);
    size.reflectors = size.factors / each;
    one = 2 * size.width * vectors;
    size.matrices = least(least(count, GRID_MOST), most(DENSE_GROUP_MOST / one, 1));
    size.y = most(least(count * one, DENSE_GROUP_MOST), one);
    size.parts = parts_numbers(rows);
    return size;
}

static void
lay_out(const struct reflect_size *size, int64_t rows, int64_t vectors, char *base,
        struct reflect_workspace *workspace)
{
    const int64_t n = size->reflectors, width = size->width;
    size_t at = 0;

    workspace->v = carve<scalar>(base, &at, n * (rows + rows / DENSE_PART_TERMS + 1));
    workspace->w = carve<scalar>(base, &at, n * least(rows, 2 * vectors));
    workspace->gram = carve<scalar>(base, &at, n * width);
    workspace->t = carve<scalar>(base, &at, n * width);
    workspace->half = carve<scalar>(base, &at, n * width / 4);
    workspace->y = carve<scalar>(base, &at, size->matrices * width * vectors);
    workspace->ty = carve<scalar>(base, &at, size->matrices * width * vectors);
    workspace->parts = carve<scalar>(base, &at, size->parts);
}

uint64_t
tsvdi_cuda_dense_reflect_bytes(int64_t rows, int64_t reflectors, int64_t count, int64_t vectors)
{
    const struct reflect_size sizes[] = {
        size_of(rows, 0, count, most(vectors, 1)), /* none count as few */
        size_of(rows, reflectors, 1, most(least(vectors, rows / DENSE_FEW_SHARE), 1)),
    };
    int64_t numbers = 0;

    for (const struct reflect_size &size : sizes) {
        numbers = most(numbers, size.factors + size.y + size.parts);
    }
    return (uint64_t)numbers * sizeof(scalar) + ROUNDING;
}

/* ---- the blocks of a group ---- */

/* Of each of f.count matrices. */
struct reflect_group {
    struct dense_factor f;
    int64_t begin, end;    /* the reflectors */
    int64_t width, blocks; /* reflectors of a block, and blocks */
    int64_t entries;       /* of a vector, from `begin` on */
    int64_t parts, each;   /* V^H V is a sum of `parts` products over `each` entries; V is
                              padded with zeros after its entries.  1 if f.split */
    int uses_w;            /* 0: T is applied to V^H X, or X V, instead */
    int conjugated;        /* 1: V and T are the conjugates of the reflectors' */

    struct shared_matrix shared; /* as *f.shared, if there is one */
};

/* Column j of a matrix. */
static __device__ __forceinline__ const scalar *
column_of(const struct reflect_group &g, int64_t matrix, int64_t j)
{
    if (g.f.shared != NULL) {
        const int member = member_of(g.shared.shares, j);

        return g.shared.w[member] + columns_before(g.shared.shares, member, j) * g.f.ld;
    }
    return g.f.w + matrix * g.f.next + j * g.f.ld;
}

/* V.  A block copies a tile. */
static __global__ void
gather_kernel(const __grid_constant__ struct reflect_group g, scalar *v)
{
    __shared__ scalar tile[TILE][TILE + 1];
    const int64_t matrix = blockIdx.z, first = (int64_t)blockIdx.x * TILE;
    const int64_t lines = g.parts * g.each;
    const int x = (int)threadIdx.x, left = (int)blockIdx.y * TILE, right = g.f.right;
    const int width = (int)g.width, reflectors = (int)(g.blocks * g.width);

    /* neighbours in memory are entries of one v, but of neighbouring u */
    for (int y = (int)threadIdx.y; y < TILE; y += COPY_ROWS) {
        const int64_t j = g.begin + left + (right ? x : y), i = g.begin + first + (right ? y : x);
        const bool there = j < g.end && i < g.f.rows;

        const scalar entry = there && i > j + right
                                 ? column_of(g, matrix, right ? i : j)[right ? j : i]
                                 : REAL(there && i == j + right);

        tile[right ? y : x][right ? x : y] = g.conjugated ? n_conj(entry) : entry;
    }
    __syncthreads();
    v += matrix * reflectors * lines;
    for (int y = (int)threadIdx.y; y < TILE; y += COPY_ROWS) {
        const int j = left + x, block = j / width;

        if (j < reflectors && first + y < lines) {
            v[(block * lines + first + y) * width + j % width] = tile[y][x];
        }
    }
}

/* Doubles the diagonal blocks of t, from HALF reflectors each, until there is one.  In t, T of each
   block is on the diagonal, and V^H V above.  A thread has a column of the new corner, and every
   TRIANGLE_LINES-th row. */
template <int HALF>
static __device__ __forceinline__ void
double_blocks(scalar (*t)[TRIANGLE + 1], scalar *product)
{
    constexpr int LINES = HALF < TRIANGLE_LINES ? HALF : (int)TRIANGLE_LINES, EACH = HALF / LINES;
    const int j = (int)threadIdx.x % HALF, line = (int)threadIdx.x / HALF % LINES;
    const int pair = (int)threadIdx.x / (HALF * LINES), at = 2 * HALF * pair;
    const bool active = at < TRIANGLE;
    scalar sum[EACH];

    if (active) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            sum[k] = 0;
        }
#pragma unroll 8
        for (int l = 0; l < HALF; l++) {
            const scalar factor = t[at + HALF + l][at + HALF + j];

#pragma unroll
            for (int k = 0; k < EACH; k++) {
                sum[k] = n_fma(t[at + line + k * LINES][at + HALF + l], factor, sum[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            product[(pair * HALF + line + k * LINES) * HALF + j] = sum[k];
        }
    }
    __syncthreads();
    if (active) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            sum[k] = 0;
        }
#pragma unroll 8
        for (int l = 0; l < HALF; l++) {
            const scalar factor = product[(pair * HALF + l) * HALF + j];

#pragma unroll
            for (int k = 0; k < EACH; k++) {
                sum[k] = n_fma(t[at + line + k * LINES][at + l], factor, sum[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            t[at + line + k * LINES][at + HALF + j] = -sum[k];
        }
    }
    __syncthreads();
    if constexpr (2 * HALF < TRIANGLE) {
        double_blocks<2 * HALF>(t, product);
    }
}

/* T of TRIANGLE neighbouring reflectors: a piece of a block's T, with zeros left of it. */
static __global__ void
__launch_bounds__(TRIANGLE_THREADS)
    triangle_kernel(const __grid_constant__ struct reflect_group g, const scalar *grams, scalar *ts)
{
    __shared__ scalar t[TRIANGLE][TRIANGLE + 1];
    __shared__ scalar product[TRIANGLE / 2 * TRIANGLE / 2];
    const int64_t matrix = blockIdx.x / g.blocks, block = blockIdx.x % g.blocks;
    const int width = (int)g.width, first = (int)blockIdx.y * TRIANGLE;
    const int size = width - first < TRIANGLE ? width - first : (int)TRIANGLE;
    const int64_t begin = g.begin + block * width + first;
    const int64_t corner = (int64_t)blockIdx.x * width * width + (int64_t)first * width;
    const scalar *tau = g.f.tau + matrix * g.f.tau_next;

    for (int k = (int)threadIdx.x; k < TRIANGLE * TRIANGLE; k += TRIANGLE_THREADS) {
        const int i = k / TRIANGLE, j = k % TRIANGLE;

        if (i <= j && j < size && begin + j < g.end) {
            copy_start(&t[i][j], i == j ? tau + begin + j : grams + corner + i * width + first + j);
        } else {
            t[i][j] = 0;
        }
    }
    copies_commit();
    copies_wait(0);
    __syncthreads();
    if (TSVD_COMPLEX && g.conjugated) {
        if (threadIdx.x < TRIANGLE) {
            t[threadIdx.x][threadIdx.x] = n_conj(t[threadIdx.x][threadIdx.x]);
        }
        __syncthreads();
    }
    double_blocks<1>(t, product);
    for (int i = (int)threadIdx.x / WARP; i < size; i += TRIANGLE_THREADS / WARP) {
        for (int j = (int)threadIdx.x % WARP; j < first + size; j += WARP) {
            ts[corner + i * width + j] = j < first ? REAL(0) : t[i][j - first];
        }
    }
}

/* to[i] = the sum of part[p][i] over p, of each of gridDim.y sums. */
static __global__ void
sum_kernel(const scalar *part, int64_t parts, int64_t size, scalar *to)
{
    __shared__ scalar share[SUM_LINES][TILE];
    const int64_t i = (int64_t)blockIdx.x * TILE + threadIdx.x;
    scalar sum = 0;

    part += (int64_t)blockIdx.y * parts * size;
    for (int64_t p = threadIdx.y; p < parts && i < size; p += SUM_LINES) {
        sum += part[p * size + i];
    }
    share[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < size) {
        for (int line = 1; line < SUM_LINES; line++) {
            sum += share[line][threadIdx.x];
        }
        to[(int64_t)blockIdx.y * size + i] = sum;
    }
}

static tsvd_status
sum_parts_of(struct cuda_call *call, const scalar *d_part, int64_t parts, int64_t size,
             scalar *d_to, int64_t count)
{
    tsvd_status ret = TSVD_OK;

    sum_kernel<<<dim3(blocks_for(size, TILE), (unsigned)count), dim3(TILE, SUM_LINES), 0,
                 call->stream>>>(d_part, parts, size, d_to);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Parts of a product over many terms, so that the errors of equal terms stay small. */
static int64_t
split_parts(int64_t terms)
{
    return most(least(SUM_PARTS, terms / SPLIT_TERMS), 1);
}

/* Whether the workspace holds the parts of a product, and one more over what is left. */
static bool
parts_fit(int64_t terms, int64_t parts, int64_t size)
{
    return parts_numbers(terms) >= (parts + 1) * size;
}

/* C = A B, rows x columns, over many terms.  step_a and step_b: numbers between a term of A, or of
   B, and the next.  split: as in struct dense_factor. */
static tsvd_status
multiply_long(struct cuda_call *call, int split, int64_t rows, int64_t columns, int64_t terms,
              struct cuda_factor a, int64_t step_a, struct cuda_factor b, int64_t step_b,
              scalar *d_parts, scalar *d_c, int64_t count)
{
    const int64_t size = rows * columns, wanted = split ? split_parts(terms) : 1;
    const int64_t busy = count == 1 ? parts_of(rows, columns, terms, 1) : 1;
    const bool at_once = busy >= wanted || (count == 1 && parts_fit(terms, wanted, size));
    const int64_t parts = most(busy, wanted), each = terms / parts, rest = terms - parts * each;
    tsvd_status ret = TSVD_OK;

    if (!at_once) {
        return multiply_split(call, rows, columns, terms, a, step_a, b, step_b, SPLIT_TERMS, d_c,
                              count);
    }
    if (parts == 1) {
        return tsvdi_cuda_multiply_add(call, SCALAR_KIND, rows, columns, terms, 1, a, b, 0, d_c,
                                       columns, size, count);
    }
    a.stride = each * step_a;
    b.stride = each * step_b;
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, rows, columns, each, 1, a, b, 0, d_parts,
                                     columns, size, parts));
    a.d = (const scalar *)a.d + parts * a.stride;
    b.d = (const scalar *)b.d + parts * b.stride;
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, rows, columns, rest, 1, a, b, 0,
                                     d_parts + parts * size, columns, size, 1));
    TSVD_TRY(sum_parts_of(call, d_parts, parts + (rest > 0), size, d_c, 1));
out:
    return ret;
}

/* T of each block, from V^H V and what triangle_kernel made of it: by doubling. */
static tsvd_status
double_triangles(struct cuda_call *call, const struct reflect_group *g,
                 const struct reflect_workspace *workspace)
{
    const int64_t width = g->width, size = width * width, count = g->f.count * g->blocks;
    tsvd_status ret = TSVD_OK;

    for (int64_t half = TRIANGLE; half < width; half *= 2) {
        for (int64_t at = 0; at + half < width; at += 2 * half) {
            const int64_t other = least(half, width - at - half), corner = at * width + at + half;
            const struct cuda_factor gram = {workspace->gram + corner, width, size, 0};
            const struct cuda_factor above = {workspace->t + at * (width + 1), width, size, 0};
            const struct cuda_factor below = {workspace->t + (at + half) * (width + 1), width, size,
                                              0};
            const struct cuda_factor product = {workspace->half, other, half * other, 0};

            TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, half, other, other, 1, gram, below,
                                             0, workspace->half, other, half * other, count));
            TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, half, other, half, -1, above,
                                             product, 0, workspace->t + corner, width, size,
                                             count));
        }
    }
out:
    return ret;
}

/* V, T and W of a group. */
static tsvd_status
make_group(struct cuda_call *call, const struct reflect_group *g,
           const struct reflect_workspace *workspace)
{
    const int64_t b = g->width, count = g->f.count * g->blocks, lines = g->parts * g->each;
    const struct cuda_factor v = {workspace->v, b, g->each * b, TSVDI_AS_STORED},
                             adjoint = {workspace->v, b, g->each * b, TSVDI_ADJOINT};
    const struct cuda_factor v_whole = {workspace->v, b, lines * b, 0},
                             t = {workspace->t, b, b * b, 0};
    tsvd_status ret = TSVD_OK;

    gather_kernel<<<dim3(blocks_for(lines, TILE), blocks_for(g->blocks * b, TILE),
                         (unsigned)g->f.count),
                    dim3(TILE, COPY_ROWS), 0, call->stream>>>(*g, workspace->v);
    CUDA_LAUNCHED(call);
    if (g->f.split) {
        TSVD_TRY(multiply_long(call, 1, b, b, g->entries, adjoint, b, v, b, workspace->parts,
                               workspace->gram, count));
    } else {
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, b, b, g->each, 1, adjoint, v, 0,
                                         g->parts > 1 ? workspace->parts : workspace->gram, b,
                                         b * b, count * g->parts));
    }
    if (g->parts > 1) {
        TSVD_TRY(sum_parts_of(call, workspace->parts, g->parts, b * b, workspace->gram, count));
    }
    triangle_kernel<<<dim3((unsigned)count, blocks_for(b, TRIANGLE)), TRIANGLE_THREADS, 0,
                      call->stream>>>(*g, workspace->gram, workspace->t);
    CUDA_LAUNCHED(call);
    TSVD_TRY(double_triangles(call, g, workspace));
    if (g->uses_w) {
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, g->entries, b, b, 1, v_whole, t, 0,
                                         workspace->w, b, g->entries * b, count));
    }
out:
    return ret;
}

/* ---- vectors ---- */

/* Applies a block of a group to vectors, from the block's first reflector on. */
static tsvd_status
apply_block(struct cuda_call *call, const struct reflect_group *g, int64_t block,
            struct dense_block x, int transposed, const struct reflect_workspace *workspace)
{
    const int64_t b = g->width, skipped = block * b, n = x.count, count = g->f.count;
    const int64_t begin = g->begin + skipped, entries = g->entries - skipped;
    const int64_t lines = g->parts * g->each;
    const struct cuda_factor v = {workspace->v + (block * lines + skipped) * b, b,
                                  g->blocks * lines * b, 0};
    const struct cuda_factor w = {workspace->w + (block * g->entries + skipped) * b, b,
                                  g->blocks * g->entries * b, 0};
    const struct cuda_factor t = {workspace->t + block * b * b, b, g->blocks * b * b,
                                  (x.rows != 0) != (transposed != 0) ? TSVDI_ADJOINT
                                                                     : TSVDI_AS_STORED};
    const struct cuda_factor made = {workspace->y, x.rows ? b : n, b * n, 0};
    scalar *const d_x = x.d_x + (x.rows ? begin : begin * x.stride);
    const struct cuda_factor to = {d_x, x.stride, x.next, 0};
    struct cuda_factor first = g->uses_w && transposed ? w : v,
                       last = g->uses_w && !transposed ? w : v;
    struct cuda_factor y = made;
    tsvd_status ret = TSVD_OK;

    first.form = x.rows ? TSVDI_AS_STORED : TSVDI_ADJOINT;
    last.form = x.rows ? TSVDI_ADJOINT : TSVDI_AS_STORED;
    if (x.rows) {
        TSVD_TRY(multiply_long(call, g->f.split, n, b, entries, to, 1, first, b, workspace->parts,
                               workspace->y, count));
    } else {
        TSVD_TRY(multiply_long(call, g->f.split, b, n, entries, first, b, to, x.stride,
                               workspace->parts, workspace->y, count));
    }
    if (!g->uses_w) {
        y.d = workspace->ty;
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, x.rows ? n : b, x.rows ? b : n, b, 1,
                                         x.rows ? made : t, x.rows ? t : made, 0, workspace->ty,
                                         y.ld, b * n, count));
    }
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, x.rows ? n : entries, x.rows ? entries : n,
                                     b, -1, x.rows ? y : last, x.rows ? last : y, 1, d_x, x.stride,
                                     x.next, count));
out:
    return ret;
}

/* Applies a group to vectors. */
static tsvd_status
apply_group(struct tsvd_context *ctx, struct reflect_group *g, struct dense_block x, int transposed,
            const struct reflect_workspace *workspace)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    g->blocks = blocks_for(g->end - g->begin, g->width);
    g->entries = g->f.rows - g->begin;
    g->parts = g->f.split ? 1 : parts_of(g->width, g->width, g->entries, g->f.count * g->blocks);
    g->each = (g->entries + g->parts - 1) / g->parts;
    g->uses_w = 2 * x.count >= g->entries;
    g->conjugated = x.rows != x.conjugated;
    TSVD_TRY(make_group(call, g, workspace));
    for (int64_t k = 0; k < g->blocks; k++) {
        TSVD_TRY(
            apply_block(call, g, transposed ? k : g->blocks - 1 - k, x, transposed, workspace));
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dense_reflect(struct tsvd_context *ctx, const struct dense_factor *f, int64_t begin,
                         int64_t end, struct dense_block x, int transposed, char *d_work)
{
    struct reflect_group g = {};
    struct reflect_size size;
    struct reflect_workspace workspace;
    int64_t reflectors, matrices;
    tsvd_status ret = TSVD_OK;

    if (begin >= end || x.count == 0) {
        goto out;
    }
    size = size_of(f->rows, end - begin, f->count, x.count);
    lay_out(&size, f->rows, x.count, d_work, &workspace);
    /* blocks of equal width, and groups of as many as there is room for */
    g.width = aligned(blocks_for(end - begin, blocks_for(end - begin, size.width)));
    matrices = least(size.matrices, size.reflectors / g.width);
    reflectors = least(size.reflectors / matrices, DENSE_GROUP) / g.width * g.width;
    for (int64_t at = 0; at < f->count; at += matrices) {
        const int64_t groups = blocks_for(end - begin, reflectors);
        struct dense_block some = x;

        g.f = *f;
        if (f->shared != NULL) {
            g.shared = *f->shared;
        }
        g.f.w += at * f->next;
        g.f.tau += at * f->tau_next;
        g.f.count = least(matrices, f->count - at);
        some.d_x += at * x.next;
        for (int64_t k = 0; k < groups; k++) {
            g.begin = begin + (transposed ? k : groups - 1 - k) * reflectors;
            g.end = least(end, g.begin + reflectors);
            TSVD_TRY(apply_group(ctx, &g, some, transposed, &workspace));
        }
    }
out:
    return ret;
}

/* ---- of a stage ---- */

int64_t
tsvdi_cuda_dense_stage_numbers(int64_t r, int64_t c, int keep)
{
    (void)keep;
    return r * c;
}

uint64_t
tsvdi_cuda_dense_stage_bytes(const struct cuda_device *device, const struct stage_run *own,
                             int64_t vectors)
{
    (void)device;
    return tsvdi_cuda_dense_reflect_bytes(own->r, own->c, own->count, vectors);
}

tsvd_status
tsvdi_cuda_dense_stage_apply(struct tsvd_context *ctx, const struct stage_run *own, int right,
                             int transposed, struct dense_block x, char *d_work)
{
    const int64_t r = own->r, c = own->c;
    const int offset = right ? own->stage->superdiagonals : 0;
    struct shared_matrix shared = {shares_of(own), {}};
    const scalar *const tau = right ? own->tau_p : own->tau_q;
    struct dense_factor f = {right ? c : r, own->count, offset, own->m, r, r * c, tau, c, 0, NULL};

    if (own->team != NULL) {
        std::copy(own->m_of, own->m_of + TEAM_MOST, shared.w);
        f.shared = &shared;
    }
    return tsvdi_cuda_dense_reflect(ctx, &f, 0, c - offset, x, transposed, d_work);
}
