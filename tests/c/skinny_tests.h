/*
 * Tests of the kernel for products with CPU_BAND vectors against long double; included once for
 * each precision.
 */
#ifndef TSVD_TESTS_SKINNY_H
#define TSVD_TESTS_SKINNY_H

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "host/host.h"

enum { GUARD = 3 }; /* numbers between the lines of A, and rows after the last of y */

static real *
aligned_numbers(int64_t count)
{
    real *x = aligned_alloc(64, ((size_t)count * sizeof *x + 63) / 64 * 64);

    if (x == NULL) {
        abort();
    }
    for (int64_t i = 0; i < count; i++) {
        x[i] = (real)(2 * random_unit() - 1);
    }
    return x;
}

/* One product: every entry within the bound of a sum of `terms` terms, nothing else touched. */
static void
check_skinny(const struct cpu_kernels *kernels, int64_t rows, int64_t terms, int by_rows)
{
    const int64_t down = by_rows ? terms + GUARD : 1, right = by_rows ? 1 : rows + GUARD;
    const real untouched = 77;
    real *a = aligned_numbers(by_rows ? rows * down : terms * right);
    real *x = aligned_numbers(terms * CPU_BAND), *y = aligned_numbers((rows + GUARD) * CPU_BAND);

    for (int64_t i = 0; i < (rows + GUARD) * CPU_BAND; i++) {
        y[i] = i < rows * CPU_BAND ? REAL(NAN) : untouched;
    }
    kernels->skinny(rows, terms, a, down, right, x, y);
    for (int64_t i = 0; i < rows + GUARD; i++) {
        for (int64_t j = 0; j < CPU_BAND; j++) {
            long double sum = 0, size = 0;

            for (int64_t t = 0; t < terms && i < rows; t++) {
                const long double term = (long double)a[i * down + t * right] * x[t * CPU_BAND + j];

                sum += term;
                size += fabsl(term);
            }
            sum = i < rows ? sum : untouched;
            CHECK(fabsl(y[i * CPU_BAND + j] - sum) <= (long double)(terms + 1) * R_EPS * size,
                  "%s, %lld rows, %lld terms, by rows %d, entry (%lld, %lld): %g, not %Lg",
                  kernels->name, (long long)rows, (long long)terms, by_rows, (long long)i,
                  (long long)j, (double)y[i * CPU_BAND + j], sum);
        }
    }
    free(a);
    free(x);
    free(y);
}

/* Sizes around those of a tile, and of what is fetched ahead; terms around those of a block; with
   every kernel that the processor runs. */
static void
test_skinny(void)
{
    const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 13, 23, 24, 25, 47, 48, 49, 50, 97};
    const int64_t terms[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 128, 129, 300, 600};
    const struct cpu_kernels *kernels[] = {tsvdi_kernels(), NULL};

#if TSVD_X86_KERNELS
    if (tsvdi_host_isa() == HOST_AVX512) {
        kernels[1] = &tsvdi_kernels_avx2;
    }
#endif
    for (int k = 0; k < 2 && kernels[k] != NULL && kernels[k]->skinny != NULL; k++) {
        for (int i = 0; i < 16; i++) {
            for (int j = 0; j < 15; j++) {
                check_skinny(kernels[k], sizes[i], terms[j], 0);
                check_skinny(kernels[k], sizes[i], terms[j], 1);
            }
        }
    }
}

#endif
