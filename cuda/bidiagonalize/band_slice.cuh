/*
 * Parts of the kernel of band_panel.cuh that both of its ways share: a panel and the slices of its
 * blocks, Gram matrices over all of them, rows times the inverse of a triangle, and the results.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BAND_SLICE_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_BAND_SLICE_CUH

#include "bidiagonalize/band.h"
#include "matrix/panel.h"

enum {
    BAND_THREADS = 512,
    SQUARE = BAND * BAND,
    EVERY = SQUARE / BAND_THREADS,     /* entries of a square that a thread has, */
    ACROSS_ROWS = BAND_THREADS / BAND, /* this many rows apart */

    /* X^H X is made of tiles: the columns a + ACROSS i and b + ACROSS j, a >= b, i, j < SIDE. */
    SIDE = 4,
    ACROSS = BAND / SIDE,
    TILES = ACROSS * (ACROSS + 1) / 2,
    GROUPS = BAND_THREADS / TILES, /* which share out the rows */
    GRAM = TILES * SIDE * SIDE,    /* numbers of a Gram matrix */
    SHARES = 16,                   /* threads that add up one of them */

    PACK = 16 / (int)sizeof(scalar), /* numbers of a 16-byte load */
    LANES = 8,                       /* threads that share a row */
    EACH = BAND / LANES,             /* columns of each */
    LINES = BAND_THREADS / LANES,    /* rows that threads have at once */

    PASSES = 4, /* Cholesky factors, at most */
    SHIFTS = 4  /* that are tried for the first of them; the first is none */
};

/* A column of the triangle of E shorter than this, squared: then the squares of E are below the
   rounding of products. */
#define BAND_CLOSE (R_EPS / 256)

/* The panel.  All arrays are device memory. */
struct band_panel {
    int rows, width;
    int blocks, slice, stride; /* rows of a block, PACK divides them; numbers between columns */
    bool shared;               /* slices are in shared memory */
    bool keep;                 /* V replaces X below the diagonal */
    bool right;                /* X is the adjoint of rows of W, else columns */
    scalar *x;                 /* [width][ldx] in: X */
    int64_t ldx;
    scalar *v; /* [width][ldv] out: V, with its ones, and zeros above them */
    int64_t ldv;
    scalar *tau;  /* [width] out: the diagonal of T */
    scalar *t;    /* [BAND][BAND] out: T, row by row */
    scalar *band; /* out: where R goes, from row 0 of X's columns, or rows, on (band.h) */

    scalar *slices;    /* [blocks][BAND][stride], unless they are shared */
    scalar *parts;     /* [blocks][GRAM] of X^H X; or [2][blocks][BAND] sums */
    scalar *gram;      /* [GRAM] */
    scalar *product;   /* [BAND][BAND] R so far */
    scalar *factor;    /* [BAND][BAND] V_1 below the diagonal, U from it on */
    scalar *pivot;     /* [BAND] 1 / the diagonal of U */
    scalar *row;       /* [2][BAND] row i as it is before step i */
    unsigned *arrived; /* [1] zero */
};

/* What a block has at hand. */
struct band_block {
    struct block_group group;
    int first, rows; /* of its slice */
    scalar *slice;   /* [BAND][stride] */
    scalar *factor;  /* [BAND][BAND] shared */
    scalar *pivot;   /* [BAND] shared */
    real *diagonal;  /* [BAND] shared */
};

struct alignas(16) band_pack {
    scalar x[PACK];
};

/* Which block has a role in what is made once. */
static __device__ __forceinline__ bool
has_role(const struct band_block &b, int role)
{
    return b.group.index == (role < b.group.blocks ? role : b.group.blocks - 1);
}

/* X's rows of the block, with zeros for what there is not. */
static __device__ void
load_slice(const struct band_panel &q, const struct band_block &b)
{
    for (int j = (int)threadIdx.x / WARP; j < BAND; j += BAND_THREADS / WARP) {
        for (int i = (int)threadIdx.x % WARP; i < q.slice; i += WARP) {
            b.slice[j * q.stride + i] =
                i < b.rows && j < q.width ? q.x[j * q.ldx + b.first + i] : REAL(0);
        }
    }
    __syncthreads();
}

/* Tile t of a Gram matrix: its columns a + ACROSS i and b + ACROSS j. */
static __device__ __forceinline__ void
locate_tile(int t, int *a, int *b)
{
    *a = 0;
    *b = t;
    while (*b > *a) {
        *b -= ++*a;
    }
}

/* Q^H Q of the whole panel, to q.gram, which all blocks see then.  Takes b.factor. */
static __device__ void
make_gram(const struct band_panel &q, struct band_block &b)
{
    const int t = (int)threadIdx.x, tile = t % TILES, group = t / TILES;
    const int first = GRAM * b.group.index / b.group.blocks;
    const int last = GRAM * (b.group.index + 1) / b.group.blocks;
    scalar *const part = q.parts + b.group.index * GRAM;
    scalar sum[SIDE][SIDE] = {};
    int left, right;

    locate_tile(tile, &left, &right);
    for (int step = group; group < GROUPS && step < q.slice / PACK; step += GROUPS) {
        const scalar *const at = b.slice + step * PACK;
        struct band_pack x[SIDE], y[SIDE];

#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            x[i] = *(const struct band_pack *)&at[(left + ACROSS * i) * q.stride];
            y[i] = *(const struct band_pack *)&at[(right + ACROSS * i) * q.stride];
        }
#pragma unroll
        for (int k = 0; k < SIDE * SIDE * PACK; k++) {
            const int i = k / PACK / SIDE, j = k / PACK % SIDE;

            sum[i][j] = n_fma(n_conj(x[i].x[k % PACK]), y[j].x[k % PACK], sum[i][j]);
        }
    }
    __syncthreads();
    for (int turn = GROUPS - 1; turn >= 0; turn--) {
#pragma unroll
        for (int k = 0; k < SIDE * SIDE; k++) {
            scalar *const to = &b.factor[k * TILES + tile];

            if (group == turn) {
                *to = turn == GROUPS - 1 ? sum[k / SIDE][k % SIDE] : *to + sum[k / SIDE][k % SIDE];
            }
        }
        __syncthreads();
    }
    for (int k = t; k < GRAM; k += BAND_THREADS) {
        part[k] = b.factor[k];
    }
    group_barrier(&b.group);
    for (int at = first + t / SHARES; at - t / SHARES < last; at += BAND_THREADS / SHARES) {
        scalar all = 0;

        for (int p = t % SHARES; p < b.group.blocks && at < last; p += SHARES) {
            all += q.parts[p * GRAM + at];
        }
        for (int lanes = SHARES / 2; lanes > 0; lanes /= 2) {
            all += __shfl_xor_sync(0xffffffffu, all, lanes);
        }
        if (t % SHARES == 0 && at < last) {
            q.gram[at] = all;
        }
    }
    group_barrier(&b.group);
}

/* The upper triangle of q.gram, row by row, to b.factor; with ones beyond the panel's width. */
static __device__ void
load_gram(const struct band_panel &q, const struct band_block &b)
{
    for (int at = (int)threadIdx.x; at < GRAM; at += BAND_THREADS) {
        const int k = at / TILES;
        int left, right, i, j;

        locate_tile(at % TILES, &left, &right);
        i = left + ACROSS * (k / SIDE);
        j = right + ACROSS * (k % SIDE);
        if (left == right && i > j) {
            continue; /* this tile has both halves, whose rounding may differ */
        }
        if (i >= q.width || j >= q.width) {
            b.factor[i * BAND + j] = b.factor[j * BAND + i] = REAL(i == j);
        } else if (i <= j) {
            b.factor[i * BAND + j] = q.gram[at];
        } else {
            b.factor[j * BAND + i] = n_conj(q.gram[at]);
        }
    }
    __syncthreads();
}

/* x := x F^-1 of COUNT rows.  b.pivot has 1 / F's diagonal, and b.factor what is right of it, each
   column times its pivot: the chain from column to column then is a shuffle and a product.  Lane l
   of LANES has the columns l, l + LANES, ...; all lanes of a warp take part. */
template <int COUNT>
static __device__ __forceinline__ void
solve_rows(const struct band_block &b, scalar (&x)[COUNT][EACH])
{
    const int lane = (int)threadIdx.x % LANES;

#pragma unroll
    for (int m = 0; m < EACH; m++) {
        const scalar pivot = b.pivot[lane + LANES * m];

#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            x[r][m] = n_mul(x[r][m], pivot);
        }
    }
#pragma unroll
    for (int k = 0; k < BAND; k++) {
        scalar done[COUNT];

#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            done[r] = -__shfl_sync(0xffffffffu, x[r][k / LANES], k % LANES, LANES);
        }
#pragma unroll
        for (int m = k / LANES; m < EACH; m++) {
            const int j = lane + LANES * m;
            const scalar entry = j > k ? b.factor[k * BAND + j] : scalar(REAL(0));

#pragma unroll
            for (int r = 0; r < COUNT; r++) {
                x[r][m] = n_fma(done[r], entry, x[r][m]);
            }
        }
    }
}

/* The block's rows i and, if COUNT = 2, i + LINES, times F^-1, for each i from `first` on that a
   thread has. */
template <int COUNT>
static __device__ __forceinline__ void
solve_lines(const struct band_panel &q, const struct band_block &b, int first)
{
    const int lane = (int)threadIdx.x % LANES, i = first + (int)threadIdx.x / LANES;
    scalar x[COUNT][EACH];

    if (i / (WARP / LANES) * (WARP / LANES) >= q.slice) { /* nothing for the whole warp */
        return;
    }
#pragma unroll
    for (int k = 0; k < COUNT * EACH; k++) {
        const int row = i + k / EACH * LINES, column = lane + LANES * (k % EACH);

        x[k / EACH][k % EACH] = row < q.slice ? b.slice[column * q.stride + row] : scalar(REAL(0));
    }
    solve_rows(b, x);
#pragma unroll
    for (int k = 0; k < COUNT * EACH; k++) {
        const int row = i + k / EACH * LINES, column = lane + LANES * (k % EACH);

        if (row < q.slice) {
            b.slice[column * q.stride + row] = x[k / EACH][k % EACH];
        }
    }
}

/* The block's rows from row `from` on, times F^-1. */
static __device__ void
solve_slice(const struct band_panel &q, const struct band_block &b, int from)
{
    int first = from;

    for (; first + LINES < q.slice; first += 2 * LINES) {
        solve_lines<2>(q, b, first);
    }
    if (first < q.slice) {
        solve_lines<1>(q, b, first);
    }
    __syncthreads();
}

/* What solve_rows() takes of F, whose rows are in b.factor and whose pivots are in b.pivot. */
static __device__ void
scale_columns(const struct band_block &b)
{
    const int j = (int)threadIdx.x % BAND;
    const scalar pivot = b.pivot[j];

#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        scalar *const at = &b.factor[((int)threadIdx.x / BAND + m * ACROSS_ROWS) * BAND + j];

        *at = n_mul(*at, pivot);
    }
    __syncthreads();
}

/* T = X F^-1, where row i of X is given by row(i, j); and its diagonal to tau. */
template <typename Row>
static __device__ __forceinline__ void
make_triangle(const struct band_panel &q, const struct band_block &b, Row row)
{
    const int lane = (int)threadIdx.x % LANES, i = (int)threadIdx.x / LANES;
    scalar x[1][EACH];

    static_assert((int)LINES == (int)BAND, "a row for all LANES threads");
#pragma unroll
    for (int m = 0; m < EACH; m++) {
        x[0][m] = row(i, lane + LANES * m);
    }
    solve_rows(b, x);
#pragma unroll
    for (int m = 0; m < EACH; m++) {
        const int j = lane + LANES * m;

        q.t[i * BAND + j] = x[0][m];
        if (i == j && i < q.width) {
            q.tau[i] = x[0][m];
        }
    }
    __syncthreads();
}

/* Puts R, given by entry(i, j), into the band. */
template <typename Entry>
static __device__ __forceinline__ void
put_band(const struct band_panel &q, Entry entry)
{
    for (int k = (int)threadIdx.x; k < SQUARE; k += BAND_THREADS) {
        const int i = k / BAND, j = k % BAND;

        if (i <= j && j < q.width) {
            /* N(i, j), or N(j, BAND + i), counted from X's own corner */
            q.band[q.right ? j * (BAND + 1) + BAND + i - j : i * (BAND + 1) + j - i] =
                q.right ? n_conj(entry(i, j)) : entry(i, j);
        }
    }
}

/* V of the block's rows, from its slice. */
static __device__ void
store_slice(const struct band_panel &q, const struct band_block &b)
{
    for (int j = (int)threadIdx.x / WARP; j < q.width; j += BAND_THREADS / WARP) {
        for (int i = (int)threadIdx.x % WARP; i < b.rows; i += WARP) {
            const scalar entry = b.slice[j * q.stride + i];

            q.v[j * q.ldv + b.first + i] = entry;
            if (q.keep && b.first + i > j) {
                q.x[j * q.ldx + b.first + i] = entry;
            }
        }
    }
}

#endif
