/*
 * The product of a matrix with CPU_BAND vectors, included by kernels.c; see `skinny` in kernels.h.
 *
 * Entries of the matrix are read once, where they are: nothing is copied.  A tile of the result
 * stays in registers, and a block of terms of x in the L1 cache.  Tiles below one another use it.
 * The processor does not foresee which entries come next, so they are fetched ahead.
 */
#ifndef TSVDI_CPU_KERNELS_SKINNY_H
#define TSVDI_CPU_KERNELS_SKINNY_H

#include "cpu/kernels/entries.h"

#ifdef SIMD_NATIVE

enum {
    /* Rows and vectors of a tile.  With a factor of each row and a vector of x it fills the
       registers, of which AVX-512 has 32, the others 16. */
    STILE_ROWS = SIMD_BYTES == 64 ? 6 : 3,
    STILE_VECTORS = CPU_BAND < 4 * SIMD_LANES ? CPU_BAND / SIMD_LANES : 4,
    STILE_WIDTH = STILE_VECTORS * SIMD_LANES,

    /* Numbers of a cache line. */
    LINE = 64 / (int)sizeof(real),

    /* Terms of a block.  With 12 and 16 lines the entries that are fetched did not all stay in the
       L1 cache: products of float64 took up to 1.6 times as long (EPYC, n = 2000). */
    SKINNY_TERMS = 4 * LINE,

    /* Terms of a block where a row has fewer than 8 SKINNY_TERMS in all: rounding errors of equal
       terms add up, and of small matrices the bound on the values' error is small. */
    SKINNY_FEW = 8,

    /* Entries are fetched so many rows before they are used. */
    AHEAD = 24
};

static_assert(CPU_BAND % STILE_WIDTH == 0, "tiles fit");

static inline __attribute__((always_inline)) void
skinny_tile(int64_t rows, int64_t terms, const real *a, int64_t down, int64_t right, const real *x,
            int add, real *y)
{
    simd sum[STILE_ROWS][STILE_VECTORS];
    const real *row[STILE_ROWS];

#pragma GCC unroll 6
    for (int r = 0; r < STILE_ROWS; r++) {
        row[r] = a + (r < rows ? r : 0) * down; /* rows beyond the last are not stored */
#pragma GCC unroll 4
        for (int v = 0; v < STILE_VECTORS; v++) {
            sum[r][v] = simd_splat(0);
        }
    }
#pragma GCC unroll 2
    for (int64_t t = 0; t < terms; t++) {
        simd factor[STILE_ROWS];

#pragma GCC unroll 6
        for (int r = 0; r < STILE_ROWS; r++) {
            factor[r] = simd_splat(row[r][t * right]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < STILE_VECTORS; v++) {
            const simd here = *(const simd *)(x + t * CPU_BAND + v * SIMD_LANES);

#pragma GCC unroll 6
            for (int r = 0; r < STILE_ROWS; r++) {
                sum[r][v] = simd_fma(factor[r], here, sum[r][v]);
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < STILE_ROWS; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < STILE_VECTORS; v++) {
            simd *to = (simd *)(y + (r < rows ? r : 0) * CPU_BAND + v * SIMD_LANES);

            if (add && r < rows) {
                sum[r][v] += *to;
            }
            if (r < rows) {
                *to = sum[r][v];
            }
        }
    }
}

/* Fetches the entries of a tile.  If those of a column lie together, a line holds those of several
   tiles, and is fetched as often. */
static void
fetch_tile(int64_t rows, int64_t terms, const real *a, int64_t down, int64_t right)
{
    for (int64_t r = 0; r < (down == 1 ? 1 : rows) && r < STILE_ROWS; r++) {
        for (int64_t t = 0; t < terms; t += right == 1 ? LINE : 1) {
            __builtin_prefetch(a + r * down + t * right);
        }
    }
}

static inline __attribute__((always_inline)) void
skinny_rows(int64_t rows, int64_t terms, const real *a, int64_t down, int64_t right, const real *x,
            real *y)
{
    const int64_t block = terms < 8 * SKINNY_TERMS ? SKINNY_FEW : SKINNY_TERMS;

    for (int64_t t = 0; t < terms; t += block) {
        const int64_t some = terms - t < block ? terms - t : block;
        const int64_t left = terms - t - some, more = left < block ? left : block;
        const real *from = a + t * right;

        for (int64_t i = 0; i < rows; i += STILE_ROWS) {
            const int64_t ahead = i + AHEAD, over = ahead - rows;

            if (over < 0) {
                fetch_tile(-over, some, from + ahead * down, down, right);
            } else if (over < rows) {
                fetch_tile(rows - over, more, from + over * down + some * right, down, right);
            }
            for (int64_t j = 0; j < CPU_BAND; j += STILE_WIDTH) {
                skinny_tile(rows - i, some, from + i * down, down, right, x + t * CPU_BAND + j,
                            t > 0, y + i * CPU_BAND + j);
            }
        }
    }
}

static void
skinny(int64_t rows, int64_t terms, const real *a, int64_t down, int64_t right, const real *x,
       real *y)
{
    if (right == 1) {
        skinny_rows(rows, terms, a, down, 1, x, y);
    } else {
        skinny_rows(rows, terms, a, down, right, x, y);
    }
}

#endif
#endif
