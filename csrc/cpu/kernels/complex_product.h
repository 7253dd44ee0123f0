/*
 * Products of complex matrices, included by complex_kernels.c; see struct blas_product.
 *
 * After Goto & van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34 (2008).
 * A block of B is copied, as it is multiplied, and stays in the L2 cache; so is a strip of A, which
 * stays in the L1 cache.  A tile of C stays in registers, as two sums: of A times the real parts of
 * B, and of A times the imaginary ones.  OpenBLAS makes small products in the calling thread alone,
 * and those of complex numbers at half of the rate (Xeon with AVX-512).
 */
#ifndef TSVDI_CPU_KERNELS_COMPLEX_PRODUCT_H
#define TSVDI_CPU_KERNELS_COMPLEX_PRODUCT_H

#include "cpu/kernels/entries.h"
#include "host/blas.h"

enum {
    /* Vectors and columns of a tile.  With a vector of A and a part of B it fills the registers, of
       which AVX-512 has 32, the others 16. */
    CTILE_VECTORS = SIMD_BYTES == 64 ? 3 : 2,
    CTILE_COLUMNS = SIMD_BYTES == 64 ? 4 : 3,
    CTILE_ROWS = CTILE_VECTORS * SIMD_LANES / 2,
    /* Terms that are added up before they are added to C, at most, and where there are up to
       CTERMS^2.  That is about the root of all: rounding errors of equal terms add up. */
    CTERMS_MOST = 128,
    CTERMS = 64,
    /* Numbers of a block of B, which lies on the stack.  It has as many whole strips of columns as
       fit: 24 columns or more. */
    CBLOCK = 48 * CTERMS
};

static_assert((int)CBLOCK >= (int)CTERMS_MOST * CTILE_COLUMNS, "a block of B holds a strip");

static int64_t
lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A number, which moves as one. */
typedef real pair __attribute__((vector_size(2 * sizeof(real)), may_alias));
typedef real pair_unaligned
    __attribute__((vector_size(2 * sizeof(real)), may_alias, aligned(sizeof(real))));

/* Copies a strip of `width` lines, of which there are `lines`, term by term; the others are zero.
   Number t of line i is x[i * line + t * term], or its conjugate. */
static inline __attribute__((always_inline)) void
copy_strip(int width, int64_t lines, int64_t line, int64_t terms, int64_t term, int conjugated,
           const scalar *x, scalar *to)
{
    const pair sign = {1, conjugated ? -1 : 1};

    for (int i = 0; i < width; i++) {
        const scalar *from = x + (i < lines ? i : 0) * line;

        for (int64_t t = 0; t < terms && i < lines; t++) {
            *(pair *)(to + t * width + i) = *(const pair_unaligned *)(from + t * term) * sign;
        }
        for (int64_t t = 0; t < terms && i >= lines; t++) {
            to[t * width + i] = 0;
        }
    }
}

/* A strip of A, CTILE_ROWS rows of which there are `rows`. */
static void
copy_rows(const struct blas_product *p, int64_t i, int64_t rows, int64_t k, int64_t terms,
          scalar *to)
{
    const scalar *a = p->a;

    if (p->a_transposed) {
        copy_strip(CTILE_ROWS, rows, p->lda, terms, 1, 1, a + i * p->lda + k, to);
    } else if (rows < CTILE_ROWS) {
        copy_strip(CTILE_ROWS, rows, 1, terms, p->lda, 0, a + k * p->lda + i, to);
    } else {
        for (int64_t t = 0; t < terms; t++, to += CTILE_ROWS) {
            memcpy(to, a + (k + t) * p->lda + i, CTILE_ROWS * sizeof *to);
        }
    }
}

/* A strip of B, CTILE_COLUMNS columns of which there are `columns`. */
static void
copy_columns(const struct blas_product *p, int64_t j, int64_t columns, int64_t k, int64_t terms,
             scalar *to)
{
    const scalar *b = p->b;

    if (p->b_transposed) {
        copy_strip(CTILE_COLUMNS, columns, 1, terms, p->ldb, 1, b + k * p->ldb + j, to);
    } else {
        copy_strip(CTILE_COLUMNS, columns, p->ldb, terms, 1, 0, b + j * p->ldb + k, to);
    }
}

/* A tile of C: the first `rows` of its rows and `columns` of its columns are stored. */
static inline __attribute__((always_inline)) void
complex_tile(int64_t terms, const real *a, const real *b, real factor, int64_t rows,
             int64_t columns, int overwrite, scalar *c, int64_t ldc)
{
    const simd times = simd_splat(factor);
    simd re[CTILE_COLUMNS][CTILE_VECTORS], im[CTILE_COLUMNS][CTILE_VECTORS];

#pragma GCC unroll 4
    for (int j = 0; j < CTILE_COLUMNS; j++) {
#pragma GCC unroll 3
        for (int v = 0; v < CTILE_VECTORS; v++) {
            re[j][v] = im[j][v] = simd_splat(0);
        }
    }
    for (int64_t t = 0; t < terms; t++) {
        simd x[CTILE_VECTORS];

#pragma GCC unroll 3
        for (int v = 0; v < CTILE_VECTORS; v++) {
            x[v] = *(const simd *)(a + (t * CTILE_VECTORS + v) * SIMD_LANES);
        }
#pragma GCC unroll 4
        for (int j = 0; j < CTILE_COLUMNS; j++) {
            const simd real_part = simd_splat(b[2 * (t * CTILE_COLUMNS + j)]);
            const simd imaginary = simd_splat(b[2 * (t * CTILE_COLUMNS + j) + 1]);

#pragma GCC unroll 3
            for (int v = 0; v < CTILE_VECTORS; v++) {
                re[j][v] = simd_multiply_add(x[v], real_part, re[j][v]);
                im[j][v] = simd_multiply_add(x[v], imaginary, im[j][v]);
            }
        }
    }
#pragma GCC unroll 4
    for (int j = 0; j < CTILE_COLUMNS; j++) {
        real *column = (real *)(c + (j < columns ? j : 0) * ldc);

#pragma GCC unroll 3
        for (int v = 0; v < CTILE_VECTORS; v++) {
            const int64_t left = j < columns ? 2 * rows - v * SIMD_LANES : 0;
            simd sum = times * (re[j][v] + turned(exchanged(im[j][v])));

            if (left > 0) {
                const int whole = left >= SIMD_LANES;
                real *to = column + v * SIMD_LANES;

                if (!overwrite) {
                    sum += whole ? load(to) : simd_load_part(to, left);
                }
                if (whole) {
                    *(simd_unaligned *)to = sum;
                } else {
                    simd_store_part(to, left, sum);
                }
            }
        }
    }
}

static void
product(const struct blas_product *p)
{
    const int64_t most = p->k > CTERMS * CTERMS ? CTERMS_MOST : CTERMS;
    const int64_t longest = lesser(p->k > 0 ? p->k : 1, most);
    const int64_t block = CBLOCK / longest / CTILE_COLUMNS * CTILE_COLUMNS; /* columns of B */
    const real factor = REAL(p->factor);
    alignas(64) scalar a[CTERMS_MOST * CTILE_ROWS], b[CBLOCK];
    int64_t k = 0;

    do { /* the first terms overwrite C, if all are to, and the others are added to it */
        const int64_t terms = lesser(p->k - k, most);
        const int overwrite = p->overwrite && k == 0;

        for (int64_t j = 0; j < p->n; j += block) {
            const int64_t columns = lesser(p->n - j, block);

            for (int64_t c = 0; c < columns; c += CTILE_COLUMNS) {
                copy_columns(p, j + c, lesser(columns - c, CTILE_COLUMNS), k, terms, b + c * terms);
            }
            for (int64_t i = 0; i < p->m; i += CTILE_ROWS) {
                const int64_t rows = lesser(p->m - i, CTILE_ROWS);
                scalar *to = (scalar *)p->c + j * p->ldc + i;

                copy_rows(p, i, rows, k, terms, a);
                for (int64_t c = 0; c < columns; c += CTILE_COLUMNS) {
                    complex_tile(terms, (const real *)a, (const real *)(b + c * terms), factor,
                                 rows, lesser(columns - c, CTILE_COLUMNS), overwrite,
                                 to + c * p->ldc, p->ldc);
                }
            }
        }
        k += terms;
    } while (k < p->k);
}

#endif
