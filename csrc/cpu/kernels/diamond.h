/*
 * The product of vectors with a diamond of the chase (cpu/bidiagonalize/chase.c), included by
 * kernels.c; see `diamond` in kernels.h.
 *
 *     X := X - V T V^H X,   or with T^H
 *
 * Each step is a sum of multiples of rows of numbers.  It is made in tiles of DTILE_ROWS rows and
 * all numbers of a group, which stay in registers; the group's rows stay in the L1 cache.  V and T
 * are kept with their zeros, and tiles leave these out: they are triangles at their ends.
 */
#ifndef TSVDI_CPU_KERNELS_DIAMOND_H
#define TSVDI_CPU_KERNELS_DIAMOND_H

#include "cpu/kernels/entries.h"

#ifdef SIMD_NATIVE

enum {
    /* Rows and vectors of a tile.  With a row of numbers and a factor it fills 16 registers. */
    DTILE_ROWS = 4,
    DTILE_VECTORS = 3,
    GROUP_LANES = DTILE_VECTORS * SIMD_LANES,
    REFLECTORS = CPU_CHASE_DIAMOND
};

static_assert(REFLECTORS % DTILE_ROWS == 0 && REFLECTORS % SIMD_LANES == 0 &&
                  DIAMOND_ROWS % DTILE_ROWS == 0 && REFLECTORS <= CPU_BAND,
              "tiles and vectors fit");

/* Adds the multiples of a row x to rows first .. last of a tile. */
static inline __attribute__((always_inline)) void
add_multiples(int first, int last, const real *a, int64_t down, const real *x,
              simd sum[DTILE_ROWS][DTILE_VECTORS])
{
    simd here[DTILE_VECTORS];

#pragma GCC unroll 3
    for (int v = 0; v < DTILE_VECTORS; v++) {
        here[v] = *(const simd *)(x + v * SIMD_LANES);
    }
#pragma GCC unroll 4
    for (int r = first; r <= last; r++) {
        const simd factor = simd_splat(a[r * down]);

#pragma GCC unroll 3
        for (int v = 0; v < DTILE_VECTORS; v++) {
            sum[r][v] = simd_fma(factor, here[v], sum[r][v]);
        }
    }
}

/* Row r of the tile y becomes the sum of a[r down + t right] times row t of x, 0 <= t < terms; or,
   add, is increased by it.  begins: of term t there are rows 0 .. t.  ends: the last four terms
   have rows 0 .. 3, 1 .. 3, 2 .. 3 and 3. */
static inline __attribute__((always_inline)) void
diamond_tile(int begins, int ends, int64_t terms, const real *a, int64_t down, int64_t right,
             const real *x, int add, real *y)
{
    const int64_t whole = terms - (ends ? DTILE_ROWS - 1 : 0);
    simd sum[DTILE_ROWS][DTILE_VECTORS];
    int64_t t = 0;

#pragma GCC unroll 4
    for (int r = 0; r < DTILE_ROWS; r++) {
#pragma GCC unroll 3
        for (int v = 0; v < DTILE_VECTORS; v++) {
            sum[r][v] = add ? *(const simd *)(y + r * GROUP_LANES + v * SIMD_LANES) : simd_splat(0);
        }
    }
    if (begins) {
#pragma GCC unroll 3
        for (; t < DTILE_ROWS - 1; t++) {
            add_multiples(0, (int)t, a + t * right, down, x + t * GROUP_LANES, sum);
        }
    }
    for (; t < whole; t++) {
        add_multiples(0, DTILE_ROWS - 1, a + t * right, down, x + t * GROUP_LANES, sum);
    }
    if (ends) {
#pragma GCC unroll 3
        for (int r = 1; r < DTILE_ROWS; r++, t++) {
            add_multiples(r, DTILE_ROWS - 1, a + t * right, down, x + t * GROUP_LANES, sum);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < DTILE_ROWS; r++) {
#pragma GCC unroll 3
        for (int v = 0; v < DTILE_VECTORS; v++) {
            *(simd *)(y + r * GROUP_LANES + v * SIMD_LANES) = sum[r][v];
        }
    }
}

/* V by columns with its zeros, and -T by columns. */
static void
diamond_factor(const real *reflector, const real *tau, real *v, real *t)
{
    real gram[REFLECTORS];

    memset(v, 0, DIAMOND_ROWS * REFLECTORS * sizeof *v);
    memset(t, 0, REFLECTORS * REFLECTORS * sizeof *t);
    for (int64_t i = 0; i < REFLECTORS; i++) {
        real *column = v + i * DIAMOND_ROWS + i;

        memcpy(column, reflector + i * CPU_BAND, CPU_BAND * sizeof *v);
        dots(CPU_BAND, i, v + i, DIAMOND_ROWS, column, gram);
        for (int64_t k = 0; k < i; k++) {
            gram[k] *= -tau[i];
        }
        accumulate(REFLECTORS, i, gram, t, REFLECTORS, t + i * REFLECTORS);
        t[i * REFLECTORS + i] = -tau[i];
    }
}

static void
diamond(const real *reflector, const real *tau, int transposed, int64_t groups, int64_t apart,
        real *x)
{
    alignas(64) real v[DIAMOND_ROWS * REFLECTORS], t[REFLECTORS * REFLECTORS];
    alignas(64) real with_v[REFLECTORS * GROUP_LANES], with_t[REFLECTORS * GROUP_LANES];

    diamond_factor(reflector, tau, v, t);
    for (int64_t group = 0; group < groups; group++, x += apart) {
        for (int64_t i = 0; i < REFLECTORS; i += DTILE_ROWS) {
            diamond_tile(1, 1, CPU_BAND + DTILE_ROWS - 1, v + i * (DIAMOND_ROWS + 1), DIAMOND_ROWS,
                         1, x + i * GROUP_LANES, 0, with_v + i * GROUP_LANES);
        }
        for (int64_t i = 0; i < REFLECTORS; i += DTILE_ROWS) {
            if (transposed) {
                diamond_tile(0, 1, i + DTILE_ROWS, t + i * REFLECTORS, REFLECTORS, 1, with_v, 0,
                             with_t + i * GROUP_LANES);
            } else {
                diamond_tile(1, 0, REFLECTORS - i, t + i * (REFLECTORS + 1), 1, REFLECTORS,
                             with_v + i * GROUP_LANES, 0, with_t + i * GROUP_LANES);
            }
        }
        for (int64_t i = 0; i < DIAMOND_ROWS; i += DTILE_ROWS) {
            const int64_t first = i - CPU_BAND + 1;
            const real *from = v + i;
            real *to = x + i * GROUP_LANES;

            if (i < REFLECTORS) {
                diamond_tile(0, 1, i + DTILE_ROWS, from, 1, DIAMOND_ROWS, with_t, 1, to);
            } else if (i < CPU_BAND) {
                diamond_tile(0, 0, REFLECTORS, from, 1, DIAMOND_ROWS, with_t, 1, to);
            } else {
                diamond_tile(1, 0, REFLECTORS - first, from + first * DIAMOND_ROWS, 1, DIAMOND_ROWS,
                             with_t + first * GROUP_LANES, 1, to);
            }
        }
    }
}

#endif
#endif
