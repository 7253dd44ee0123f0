/*
 * Matrix products on the CPU; see blas.h.  Compiled once for both precisions.
 */
#include "host/blas.h"

#include <string.h>

#if TSVD_LINKED_BLAS
#if TSVD_BLAS_ILP64
tsvd_dgemm64 dgemm_;
tsvd_sgemm64 sgemm_;
#else
tsvd_dgemm32 dgemm_;
tsvd_sgemm32 sgemm_;
#endif
#if TSVD_LINKED_LAPACK && TSVD_BLAS_ILP64
tsvd_dgetrf64 dgetrf_;
tsvd_sgetrf64 sgetrf_;
tsvd_dgetri64 dgetri_;
tsvd_sgetri64 sgetri_;
#elif TSVD_LINKED_LAPACK
tsvd_dgetrf32 dgetrf_;
tsvd_sgetrf32 sgetrf_;
tsvd_dgetri32 dgetri_;
tsvd_sgetri32 sgetri_;
#endif
#endif

tsvd_blas
tsvdi_blas_linked(void)
{
    tsvd_blas blas;

    memset(&blas, 0, sizeof blas);
#if TSVD_LINKED_BLAS && TSVD_BLAS_ILP64
    blas.dgemm64 = dgemm_;
    blas.sgemm64 = sgemm_;
#elif TSVD_LINKED_BLAS
    blas.dgemm32 = dgemm_;
    blas.sgemm32 = sgemm_;
#endif
#if TSVD_LINKED_LAPACK && TSVD_BLAS_ILP64
    blas.dgetrf64 = dgetrf_;
    blas.sgetrf64 = sgetrf_;
    blas.dgetri64 = dgetri_;
    blas.sgetri64 = sgetri_;
#elif TSVD_LINKED_LAPACK
    blas.dgetrf32 = dgetrf_;
    blas.sgetrf32 = sgetrf_;
    blas.dgetri32 = dgetri_;
    blas.sgetri32 = sgetri_;
#endif
    return blas;
}

int
tsvd_has_blas(void)
{
    const tsvd_blas blas = tsvdi_blas_linked();

    return tsvdi_blas_ready(&blas);
}

int
tsvdi_blas_ready(const tsvd_blas *blas)
{
    return (blas->dgemm32 != NULL && blas->sgemm32 != NULL) ||
           (blas->dgemm64 != NULL && blas->sgemm64 != NULL);
}

int
tsvdi_lapack_ready(const tsvd_blas *blas)
{
    return (blas->dgetrf32 != NULL && blas->sgetrf32 != NULL && blas->dgetri32 != NULL &&
            blas->sgetri32 != NULL) ||
           (blas->dgetrf64 != NULL && blas->sgetrf64 != NULL && blas->dgetri64 != NULL &&
            blas->sgetri64 != NULL);
}

/* Orders of one product.  OpenBLAS makes products of up to 2^18 multiplications in the calling
   thread.  Larger ones it would share with threads of its own, which would take the processors from
   ours and go on spinning when they are done.  64 x 64 x 64 runs at 0.8 of the rate of large
   products (Xeon with AVX-512, 2.6 GHz). */
enum { TILE = 64 };

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
multiply(const tsvd_blas *blas, int single, const struct blas_product *p)
{
    const char *form_a = p->a_transposed ? "T" : "N", *form_b = p->b_transposed ? "T" : "N";
    const float factor = (float)p->factor, kept = p->overwrite ? 0.f : 1.f;
    const double factor_double = p->factor, kept_double = p->overwrite ? 0. : 1.;

    if (blas->dgemm32 != NULL) {
        const int32_t m = (int32_t)p->m, n = (int32_t)p->n, k = (int32_t)p->k;
        const int32_t lda = (int32_t)p->lda, ldb = (int32_t)p->ldb, ldc = (int32_t)p->ldc;

        if (single) {
            blas->sgemm32(form_a, form_b, &m, &n, &k, &factor, p->a, &lda, p->b, &ldb, &kept, p->c,
                          &ldc);
        } else {
            blas->dgemm32(form_a, form_b, &m, &n, &k, &factor_double, p->a, &lda, p->b, &ldb,
                          &kept_double, p->c, &ldc);
        }
    } else if (single) {
        blas->sgemm64(form_a, form_b, &p->m, &p->n, &p->k, &factor, p->a, &p->lda, p->b, &p->ldb,
                      &kept, p->c, &p->ldc);
    } else {
        blas->dgemm64(form_a, form_b, &p->m, &p->n, &p->k, &factor_double, p->a, &p->lda, p->b,
                      &p->ldb, &kept_double, p->c, &p->ldc);
    }
}

/* Entry (i, j) of a matrix, or of the transpose of what is given. */
static const void *
entry(const void *x, int transposed, int64_t ld, int64_t i, int64_t j, int64_t size)
{
    return (const char *)x + (transposed ? i * ld + j : j * ld + i) * size;
}

void
tsvdi_blas_product(const tsvd_blas *blas, int single, const struct blas_product *p)
{
    const int64_t size = single ? sizeof(float) : sizeof(double);
    struct blas_product tile = *p;
    int64_t k = 0, terms = TILE, columns;

    /* about the root of all: rounding errors of equal terms add up, in a tile and over the tiles */
    while (terms * terms < p->k && terms < 4 * TILE) {
        terms *= 2;
    }
    columns = TILE * TILE / terms;

    do { /* the products behind the first are added to it */
        tile.k = least(p->k - k, terms);
        for (int64_t j = 0; j < p->n; j += columns) {
            tile.n = least(p->n - j, columns);
            tile.b = entry(p->b, p->b_transposed, p->ldb, k, j, size);
            for (int64_t i = 0; i < p->m; i += TILE) {
                tile.m = least(p->m - i, TILE);
                tile.a = entry(p->a, p->a_transposed, p->lda, i, k, size);
                tile.c = (char *)p->c + (j * p->ldc + i) * size;
                multiply(blas, single, &tile);
            }
        }
        tile.overwrite = 0;
        k += terms;
    } while (k < p->k);
}

/* BLAS sees matrices by columns: to it the arrays are the transposes, C^T = B^T A^T. */
void
tsvdi_blas_multiply(const tsvd_blas *blas, int single, int64_t rows, int64_t columns, int64_t terms,
                    const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    const struct blas_product product = {
        .m = columns,
        .n = rows,
        .k = terms,
        .overwrite = 1,
        .factor = 1,
        .a = b,
        .b = a,
        .c = c,
        .lda = ldb,
        .ldb = lda,
        .ldc = ldc,
    };

    tsvdi_blas_product(blas, single, &product);
}

/* ---- LAPACK ---- */

/* Numbers of getri()'s workspace for each row: the blocks that LAPACK likes best, or more. */
enum { INVERT_BLOCK = 64 };

int64_t
tsvdi_lapack_room(int64_t n)
{
    const int64_t pivots = (n * (int64_t)sizeof(int64_t) + 63) / 64 * 64; /* of either size */

    return pivots + INVERT_BLOCK * n * (int64_t)sizeof(double);
}

int
tsvdi_lapack_factor(const tsvd_blas *blas, int single, int64_t n, void *a, void *room)
{
    const int32_t order = (int32_t)n;
    int64_t wide_info = 0;
    int32_t info = 0;

    if (blas->dgetrf32 != NULL && single) {
        blas->sgetrf32(&order, &order, a, &order, room, &info);
    } else if (blas->dgetrf32 != NULL) {
        blas->dgetrf32(&order, &order, a, &order, room, &info);
    } else if (single) {
        blas->sgetrf64(&n, &n, a, &n, room, &wide_info);
    } else {
        blas->dgetrf64(&n, &n, a, &n, room, &wide_info);
    }
    return info == 0 && wide_info == 0;
}

int
tsvdi_lapack_invert(const tsvd_blas *blas, int single, int64_t n, void *a, void *room)
{
    const int64_t wide_size = INVERT_BLOCK * n;
    const int32_t order = (int32_t)n;
    const int32_t size = wide_size < INT32_MAX ? (int32_t)wide_size : INT32_MAX;
    void *work = (char *)room + (n * (int64_t)sizeof(int64_t) + 63) / 64 * 64;
    int64_t wide_info = 0;
    int32_t info = 0;

    if (blas->dgetri32 != NULL && single) {
        blas->sgetri32(&order, a, &order, room, work, &size, &info);
    } else if (blas->dgetri32 != NULL) {
        blas->dgetri32(&order, a, &order, room, work, &size, &info);
    } else if (single) {
        blas->sgetri64(&n, a, &n, room, work, &wide_size, &wide_info);
    } else {
        blas->dgetri64(&n, a, &n, room, work, &wide_size, &wide_info);
    }
    return info == 0 && wide_info == 0;
}
