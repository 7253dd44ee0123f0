/*
 * Tests of the kernels' matrix product against long double; included once for each precision.
 */
#ifndef TSVD_TESTS_PRODUCT_H
#define TSVD_TESTS_PRODUCT_H

#include <string.h>

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "host/host.h"

enum { GUARD = 3 }; /* padding between rows, which must stay as it is */

static void
fill(int64_t count, real *x)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = (real)(2 * random_unit() - 1);
    }
}

/* One product: every entry within the bound of a sum of `terms` terms, nothing else touched. */
static void
check_product(const struct cpu_kernels *kernels, int64_t rows, int64_t columns, int64_t terms,
              real *panel)
{
    const int64_t lda = terms + GUARD, ldb = columns + GUARD, ldc = columns + GUARD;
    const real untouched = 77;
    real *a = allocate((size_t)(rows * lda) * sizeof *a);
    real *b = allocate((size_t)((terms + 1) * ldb) * sizeof *b);
    real *c = allocate((size_t)(rows * ldc) * sizeof *c);
    const struct product product = {rows, columns, terms, a, b, c, lda, ldb, ldc};

    fill(rows * lda, a);
    fill(terms * ldb, b);
    for (int64_t i = 0; i < rows * ldc; i++) {
        c[i] = i % ldc < columns ? REAL(NAN) : untouched;
    }
    kernels->multiply(&product, panel);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < ldc; j++) {
            long double sum = 0, size = 0;

            for (int64_t k = 0; k < terms && j < columns; k++) {
                sum += (long double)a[i * lda + k] * b[k * ldb + j];
                size += fabsl((long double)a[i * lda + k] * b[k * ldb + j]);
            }
            sum = j < columns ? sum : untouched;
            CHECK(fabsl(c[i * ldc + j] - sum) <= (long double)(terms + 1) * R_EPS * size,
                  "%s, %lld x %lld, %lld terms, entry (%lld, %lld): %g, not %Lg", kernels->name,
                  (long long)rows, (long long)columns, (long long)terms, (long long)i, (long long)j,
                  (double)c[i * ldc + j], sum);
        }
    }
    free(a);
    free(b);
    free(c);
}

/* Sizes around those of a tile and of a strip, with every kernel that the processor runs. */
static void
test_products(void)
{
    const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 9, 15, 17, 24, 25, 33, 49, 130};
    const int64_t terms[] = {
        0, 1, 2, 7, CPU_PRODUCT_TERMS - 1, CPU_PRODUCT_TERMS, CPU_PRODUCT_TERMS + 1, 300};
    const int count = (int)(sizeof sizes / sizeof *sizes);
    const struct cpu_kernels *kernels[] = {&tsvdi_kernels_generic, tsvdi_kernels(), NULL};
    real *panel = aligned_alloc(64, CPU_PRODUCT_TERMS * PRODUCT_WIDTH * sizeof *panel);

#if TSVD_X86_KERNELS
    if (tsvdi_host_isa() == HOST_AVX512) {
        kernels[2] = &tsvdi_kernels_avx2;
    }
#endif
    for (int k = 0; k < 3 && kernels[k] != NULL && panel != NULL; k++) {
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < count; j++) {
                check_product(kernels[k], sizes[i], sizes[j], terms[(i + j) % 8], panel);
                check_product(kernels[k], sizes[i], sizes[j], terms[(i + 3 * j + 2) % 8], panel);
            }
        }
    }
    CHECK(panel != NULL, "memory");
    free(panel);
}

#endif
