/*
 * Triangular matrices on the CPU: systems with them, and small inverses.
 *
 * Matrices are halved until they have CPU_INVERSE_LEAF columns, so that nearly all of the work is
 * in matrix products.  Systems are solved by substitution, and not with the inverses of blocks: so
 * the residual is small whatever the condition of a block is (Higham, "Accuracy and Stability of
 * Numerical Algorithms", 2002, sections 8.1 and 14.2).
 */
#include <string.h>

#include "cpu/inverse/inverse_run.h"
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"

void
tsvdi_cpu_inverse_subtract(const tsvd_blas *blas, int64_t m, int64_t n, int64_t k, const scalar *a,
                           int64_t lda, const scalar *b, int64_t ldb, scalar *c, int64_t ldc)
{
    const struct blas_product product = {.m = m,
                                         .n = n,
                                         .k = k,
                                         .factor = -1,
                                         .a = a,
                                         .b = b,
                                         .c = c,
                                         .lda = lda,
                                         .ldb = ldb,
                                         .ldc = ldc};

    if (m > 0 && n > 0 && k > 0) {
        dense_product(blas, &product);
    }
}

/* ---- B := L^-1 B ---- */

static void
leaf_left_lower(int64_t n, int64_t columns, const scalar *l, int64_t ldl, scalar *b, int64_t ldb)
{
    scalar below[CPU_INVERSE_LEAF][CPU_INVERSE_LEAF] = {{0}}, x[CPU_INVERSE_LEAF] = {0};

    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = k + 1; i < n; i++) {
            below[k][i] = l[k * ldl + i];
        }
    }
    for (int64_t j = 0; j < columns; j++) {
        memcpy(x, b + j * ldb, (size_t)n * sizeof *x);
        for (int k = 0; k < CPU_INVERSE_LEAF; k++) {
            const scalar factor = x[k];

            for (int i = 0; i < CPU_INVERSE_LEAF; i++) {
                x[i] -= n_mul(factor, below[k][i]);
            }
        }
        memcpy(b + j * ldb, x, (size_t)n * sizeof *x);
    }
}

void
tsvdi_cpu_inverse_left_lower(const tsvd_blas *blas, int64_t n, int64_t columns, const scalar *l,
                             int64_t ldl, scalar *b, int64_t ldb)
{
    const int64_t half = inverse_half(n);

    if (n <= CPU_INVERSE_LEAF) {
        leaf_left_lower(n, columns, l, ldl, b, ldb);
        return;
    }
    tsvdi_cpu_inverse_left_lower(blas, half, columns, l, ldl, b, ldb);
    tsvdi_cpu_inverse_subtract(blas, n - half, columns, half, l + half, ldl, b, ldb, b + half, ldb);
    tsvdi_cpu_inverse_left_lower(blas, n - half, columns, l + half * (ldl + 1), ldl, b + half, ldb);
}

/* ---- X := X U^-1 ---- */

static void
leaf_right_upper(int64_t rows, int64_t n, const scalar *u, int64_t ldu, scalar *x, int64_t ldx)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    scalar factor[CPU_INVERSE_LEAF];

    for (int64_t j = 0; j < n; j++) {
        scalar *column = x + j * ldx;
        const scalar pivot = u[j * ldu + j];

        for (int64_t k = 0; k < j; k++) {
            factor[k] = -u[j * ldu + k];
        }
        kernels->accumulate(rows, j, factor, x, ldx, column);
        inverse_divide(rows, column, pivot);
    }
}

void
tsvdi_cpu_inverse_right_upper(const tsvd_blas *blas, int64_t rows, int64_t n, const scalar *u,
                              int64_t ldu, scalar *x, int64_t ldx)
{
    const int64_t half = inverse_half(n);

    if (n <= CPU_INVERSE_LEAF) {
        leaf_right_upper(rows, n, u, ldu, x, ldx);
        return;
    }
    tsvdi_cpu_inverse_right_upper(blas, rows, half, u, ldu, x, ldx);
    tsvdi_cpu_inverse_subtract(blas, rows, n - half, half, x, ldx, u + half * ldu, ldu,
                               x + half * ldx, ldx);
    tsvdi_cpu_inverse_right_upper(blas, rows, n - half, u + half * (ldu + 1), ldu, x + half * ldx,
                                  ldx);
}

/* ---- X := X L^-1 ---- */

static void
leaf_right_lower(int64_t rows, int64_t n, const scalar *l, int64_t ldl, scalar *x, int64_t ldx)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    scalar factor[CPU_INVERSE_LEAF];

    for (int64_t j = n - 2; j >= 0; j--) {
        for (int64_t k = j + 1; k < n; k++) {
            factor[k - j - 1] = -l[j * ldl + k];
        }
        kernels->accumulate(rows, n - 1 - j, factor, x + (j + 1) * ldx, ldx, x + j * ldx);
    }
}

void
tsvdi_cpu_inverse_right_lower(const tsvd_blas *blas, int64_t rows, int64_t n, const scalar *l,
                              int64_t ldl, scalar *x, int64_t ldx)
{
    const int64_t half = inverse_half(n);

    if (n <= CPU_INVERSE_LEAF) {
        leaf_right_lower(rows, n, l, ldl, x, ldx);
        return;
    }
    tsvdi_cpu_inverse_right_lower(blas, rows, n - half, l + half * (ldl + 1), ldl, x + half * ldx,
                                  ldx);
    tsvdi_cpu_inverse_subtract(blas, rows, half, n - half, x + half * ldx, ldx, l + half, ldl, x,
                               ldx);
    tsvdi_cpu_inverse_right_lower(blas, rows, half, l, ldl, x, ldx);
}

/* ---- U := U^-1 ---- */

/* Column j of Z = U^-1 is -Z u_j / u_jj above the diagonal. */
void
tsvdi_cpu_inverse_small_upper(int64_t n, scalar *u, int64_t ldu)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    scalar factor[CPU_INVERSE_BLOCK];

    for (int64_t j = 0; j < n; j++) {
        scalar *column = u + j * ldu;
        const scalar inverse = n_divide(1, n_divisor_of(column[j]));

        for (int64_t k = 0; k < j; k++) {
            factor[k] = -column[k];
            column[k] = 0;
        }
        for (int64_t k = 0; k < j; k += CPU_INVERSE_LEAF) {
            const int64_t end = k + CPU_INVERSE_LEAF < j ? k + CPU_INVERSE_LEAF : j;

            kernels->accumulate(k, end - k, factor + k, u + k * ldu, ldu, column);
            for (int64_t l = k; l < end; l++) {
                for (int64_t i = k; i <= l; i++) {
                    column[i] += n_mul(factor[l], u[l * ldu + i]);
                }
            }
        }
        for (int64_t k = 0; k < j; k++) {
            column[k] = n_mul(column[k], inverse);
        }
        column[j] = inverse;
    }
}
