/*
 * A small matrix product, included by kernels.c; see struct product in kernels.h.
 *
 * After Goto & van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34 (2008),
 * as far as blocks that fit in the L2 cache need it.  A strip of B, as wide as a tile of C, is
 * copied to the panel, which stays in the L1 cache.  All tiles below one another use it.  A tile
 * stays in registers.
 */
#ifndef TSVDI_CPU_KERNELS_PRODUCT_H
#define TSVDI_CPU_KERNELS_PRODUCT_H

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/simd.h"

enum {
    /* Rows and vectors of a tile.  With a row of B and an entry of A it fills the registers, of
       which AVX-512 has 32, the others 16. */
    TILE_ROWS = SIMD_BYTES == 64 ? 8 : 4,
    TILE_VECTORS = SIMD_BYTES == 16 ? 2 : 3,
    TILE_WIDTH = TILE_VECTORS * SIMD_LANES
};

static_assert((int)TILE_WIDTH <= (int)PRODUCT_WIDTH, "the panel holds a strip of B");

/* A tile of C: the first `rows` of the `most` rows that are computed, in `vectors` vectors, the
   last of which has `last` entries.  The panel holds `terms` rows of B. */
static inline __attribute__((always_inline)) void
tile_product(int most, int vectors, const struct product *p, int64_t rows, int64_t last,
             int64_t terms, int add, const real *a, const real *panel, real *c)
{
    simd sum[TILE_ROWS][TILE_VECTORS];
    const real *row[TILE_ROWS];

#pragma GCC unroll 8
    for (int i = 0; i < most; i++) {
        row[i] = a + (i < rows ? i : 0) * p->lda; /* rows beyond the last are not stored */
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = simd_splat(0);
        }
    }
    for (int64_t k = 0; k < terms; k++) {
        simd b[TILE_VECTORS];

#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            b[v] = *(const simd *)(panel + k * TILE_WIDTH + v * SIMD_LANES);
        }
#pragma GCC unroll 8
        for (int i = 0; i < most; i++) {
            const simd factor = simd_splat(row[i][k]);

#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) {
                sum[i][v] = simd_multiply_add(factor, b[v], sum[i][v]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < most; i++) {
        real *to = c + (i < rows ? i : 0) * p->ldc; /* no address beyond C is formed */

        for (int v = 0; v < vectors && i < rows; v++, to += SIMD_LANES) {
            const int64_t count = v < vectors - 1 ? SIMD_LANES : last;

            if (add) {
                sum[i][v] += simd_load_part(to, count);
            }
            simd_store_part(to, count, sum[i][v]);
        }
    }
}

/* The tiles of one strip, from the top down. */
static inline __attribute__((always_inline)) void
strip_product(int vectors, const struct product *p, int64_t last, int64_t terms, int add,
              const real *a, const real *panel, real *c)
{
    int64_t i = 0;

    while (i < p->rows) {
        const int64_t rows = p->rows - i;

        if (rows > TILE_ROWS / 2) {
            tile_product(TILE_ROWS, vectors, p, rows, last, terms, add, a + i * p->lda, panel,
                         c + i * p->ldc);
            i += TILE_ROWS;
        } else {
            tile_product(TILE_ROWS / 2, vectors, p, rows, last, terms, add, a + i * p->lda, panel,
                         c + i * p->ldc);
            i += TILE_ROWS / 2;
        }
    }
}

/* Copies `terms` rows of a strip of B. */
static void
copy_strip(int vectors, int64_t last, int64_t terms, const real *b, int64_t ldb, real *panel)
{
    for (int64_t k = 0; k < terms; k++) {
        const real *from = b + k * ldb;
        real *to = panel + k * TILE_WIDTH;

        for (int v = 0; v < vectors - 1; v++, from += SIMD_LANES, to += SIMD_LANES) {
            *(simd *)to = *(const simd_unaligned *)from;
        }
        *(simd *)to = simd_load_part(from, last);
    }
}

static void
multiply(const struct product *p, real *panel)
{
    int64_t k = 0;

    do { /* the first terms overwrite C, the others are added to it */
        const int64_t left = p->terms - k,
                      terms = left < CPU_PRODUCT_TERMS ? left : CPU_PRODUCT_TERMS;

        for (int64_t j = 0; j < p->columns; j += TILE_WIDTH) {
            const int64_t ahead = p->columns - j, width = ahead < TILE_WIDTH ? ahead : TILE_WIDTH;
            const int vectors = (int)((width + SIMD_LANES - 1) / SIMD_LANES);
            const int64_t last = width - (vectors - 1) * SIMD_LANES;
            const real *a = p->a + k;
            real *c = p->c + j;

            copy_strip(vectors, last, terms, p->b + k * p->ldb + j, p->ldb, panel);
            if (vectors == TILE_VECTORS) {
                strip_product(TILE_VECTORS, p, last, terms, k > 0, a, panel, c);
            } else if (vectors == 2) {
                strip_product(2, p, last, terms, k > 0, a, panel, c);
            } else {
                strip_product(1, p, last, terms, k > 0, a, panel, c);
            }
        }
        k += terms;
    } while (k < p->terms);
}

#endif
