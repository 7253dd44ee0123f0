/*
 * Tests of the kernels for complex numbers against long double: products of matrices, dot products
 * and sums of multiples of vectors; included once for each precision.
 */
#ifndef TSVD_TESTS_COMPLEX_KERNELS_H
#define TSVD_TESTS_COMPLEX_KERNELS_H

#include <complex.h>
#include <string.h>

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "host/blas.h"
#include "host/host.h"

enum { GUARD = 3 }; /* numbers after each column, which must stay as they are */

typedef long double _Complex exact;

static scalar *
some_numbers(int64_t count)
{
    scalar *x = allocate((size_t)(count + 1) * sizeof *x);

    for (int64_t i = 0; i < count; i++) {
        x[i] = n_make((real)(2 * random_unit() - 1), (real)(2 * random_unit() - 1));
    }
    return x;
}

static exact
exactly(scalar x)
{
    return (long double)n_real(x) + (long double)n_imag(x) * (exact)I;
}

static int
is_near(scalar x, exact sum, int64_t terms)
{
    return cabsl(exactly(x) - sum) <= 4 * (long double)(terms + 2) * R_EPS;
}

/* One product: each entry within the bound of its sum, and nothing else touched. */
static void
check_product(const struct cpu_kernels *kernels, int64_t m, int64_t n, int64_t k, int form)
{
    const int turn_a = form & 1, turn_b = form >> 1 & 1, overwrite = form >> 2 & 1;
    const int64_t lda = (turn_a ? k : m) + GUARD, ldb = (turn_b ? n : k) + GUARD, ldc = m + GUARD;
    scalar *a = some_numbers(lda * (turn_a ? m : k)), *b = some_numbers(ldb * (turn_b ? k : n));
    scalar *c = some_numbers(ldc * n), *before = some_numbers(ldc * n);
    const struct blas_product product = {m,  n, k, turn_a, turn_b, overwrite, 0,
                                         -1, a, b, c,      lda,    ldb,       ldc};

    for (int64_t i = 0; i < ldc * n && overwrite; i++) {
        c[i] = i % ldc < m ? n_make(REAL(NAN), REAL(NAN)) : c[i];
    }
    memcpy(before, c, (size_t)(ldc * n) * sizeof *c);
    kernels->product(&product);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) {
            exact sum = overwrite ? 0 : exactly(before[j * ldc + i]);

            for (int64_t t = 0; t < k; t++) {
                const exact left =
                    turn_a ? conjl(exactly(a[i * lda + t])) : exactly(a[t * lda + i]);

                sum -= left * (turn_b ? conjl(exactly(b[t * ldb + j])) : exactly(b[j * ldb + t]));
            }
            CHECK(is_near(c[j * ldc + i], sum, k),
                  "%s, %lld x %lld, %lld terms, form %d, entry (%lld, %lld)", kernels->name,
                  (long long)m, (long long)n, (long long)k, form, (long long)i, (long long)j);
        }
        CHECK(memcmp(c + j * ldc + m, before + j * ldc + m, GUARD * sizeof *c) == 0,
              "%s, %lld x %lld: after column %lld", kernels->name, (long long)m, (long long)n,
              (long long)j);
    }
    free(a);
    free(b);
    free(c);
    free(before);
}

/* Sizes around those of a tile, and terms around those that are summed at once. */
static void
test_products(const struct cpu_kernels *kernels)
{
    const int64_t sizes[] = {1, 2, 3, 4, 5, 11, 12, 13, 24, 25, 49, 97};
    const int64_t terms[] = {1, 2, 31, 63, 64, 65, 127, 129, 300};

    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 12; j++) {
            for (int form = 0; form < 8; form++) {
                check_product(kernels, sizes[i], sizes[j], terms[(i + 5 * j + form) % 9], form);
            }
        }
    }
    check_product(kernels, 13, 30, 5000, 0); /* more terms are summed at once */
    check_product(kernels, 13, 3100, 1, 4);  /* more columns than a block has */
}

/* Dot products, and a sum of multiples of vectors, whose equal rows must have equal bits. */
static void
check_sums(const struct cpu_kernels *kernels, int64_t count, int64_t terms)
{
    const int64_t stride = count + GUARD;
    scalar *x = some_numbers(stride * terms), *factor = some_numbers(terms);
    scalar *y = some_numbers(count), *sum = some_numbers(terms), *made = some_numbers(count);
    scalar *equal = some_numbers(count);

    kernels->dots(count, terms, x, stride, y, sum);
    for (int64_t j = 0; j < terms; j++) {
        exact expected = 0;

        for (int64_t i = 0; i < count; i++) {
            expected += conjl(exactly(x[j * stride + i])) * exactly(y[i]);
        }
        CHECK(is_near(sum[j], expected, count), "%s, dot product %lld of %lld, %lld entries",
              kernels->name, (long long)j, (long long)terms, (long long)count);
    }
    memcpy(made, y, (size_t)count * sizeof *y);
    kernels->accumulate(count, terms, factor, x, stride, made);
    for (int64_t i = 0; i < count; i++) {
        exact expected = exactly(y[i]);

        for (int64_t j = 0; j < terms; j++) {
            expected += exactly(factor[j]) * exactly(x[j * stride + i]);
        }
        CHECK(is_near(made[i], expected, terms), "%s, sum of %lld, entry %lld of %lld",
              kernels->name, (long long)terms, (long long)i, (long long)count);
    }
    for (int64_t i = 0; i < count; i++) {
        equal[i] = y[0];
        for (int64_t j = 0; j < terms; j++) {
            x[j * stride + i] = x[j * stride];
        }
    }
    kernels->accumulate(count, terms, factor, x, stride, equal);
    for (int64_t i = 1; i < count; i++) {
        CHECK(memcmp(equal + i, equal, sizeof *equal) == 0, "%s, equal rows 0 and %lld of %lld",
              kernels->name, (long long)i, (long long)count);
    }
    free(x);
    free(factor);
    free(y);
    free(sum);
    free(made);
    free(equal);
}

/* With every kernel that the processor runs. */
static void
test_kernels(void)
{
    const struct cpu_kernels *kernels[] = {&tsvdi_kernels_generic, tsvdi_kernels(), NULL};

#if TSVD_X86_KERNELS
    if (tsvdi_host_isa() == HOST_AVX512) {
        kernels[2] = &tsvdi_kernels_avx2;
    }
#endif
    for (int k = 0; k < 3 && kernels[k] != NULL; k++) {
        if (kernels[k]->product != NULL) {
            test_products(kernels[k]);
        }
        for (int64_t count = 1; count < 300; count += count < 70 ? 1 : 37) {
            for (int64_t terms = 1; terms < 10; terms++) {
                check_sums(kernels[k], count, terms);
            }
        }
    }
}

#endif
