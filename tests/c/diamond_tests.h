/*
 * Tests of the kernel for diamonds of the chase against long double: vectors are multiplied by one
 * reflector after another; included once for each precision.
 */
#ifndef TSVD_TESTS_DIAMOND_H
#define TSVD_TESTS_DIAMOND_H

#include <string.h>

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "host/host.h"

enum { GUARD = 16 }; /* numbers after each group, which must stay as they are */

/* A diamond of `present` reflectors.  shorter: they end in one row, as at the end of a band. */
static void
make_diamond(int present, int shorter, real *v, real *tau)
{
    memset(v, 0, CPU_CHASE_DIAMOND * CPU_BAND * sizeof *v);
    memset(tau, 0, CPU_CHASE_DIAMOND * sizeof *tau);
    for (int i = 0; i < present; i++) {
        const int length = CPU_BAND - (shorter ? i : 0);
        long double square = 1;

        v[i * CPU_BAND] = 1;
        for (int r = 1; r < length; r++) {
            v[i * CPU_BAND + r] = (real)(2 * random_unit() - 1);
            square += (long double)v[i * CPU_BAND + r] * v[i * CPU_BAND + r];
        }
        tau[i] = (real)(2 / square);
    }
}

/* A vector x [DIAMOND_ROWS] times the reflectors. */
static void
multiply_exactly(const real *v, const real *tau, int transposed, long double *x)
{
    for (int step = 0; step < CPU_CHASE_DIAMOND; step++) {
        const int i = transposed ? step : CPU_CHASE_DIAMOND - 1 - step;
        long double sum = 0;

        for (int r = 0; r < CPU_BAND; r++) {
            sum += v[i * CPU_BAND + r] * x[i + r];
        }
        for (int r = 0; r < CPU_BAND; r++) {
            x[i + r] -= tau[i] * sum * v[i * CPU_BAND + r];
        }
    }
}

static void
check_diamond(const struct cpu_kernels *kernels, int64_t groups, int transposed, const real *v,
              const real *tau)
{
    const int64_t lanes = kernels->group_lanes, apart = DIAMOND_ROWS * lanes + GUARD;
    const size_t bytes = (size_t)(groups * apart) * sizeof(real);
    real *x = aligned_alloc(64, (bytes + 63) / 64 * 64), *before = allocate(bytes);

    if (x == NULL) {
        abort();
    }
    for (int64_t i = 0; i < groups * apart; i++) {
        x[i] = before[i] = (real)(2 * random_unit() - 1);
    }
    kernels->diamond(v, tau, transposed, groups, apart, x);
    for (int64_t i = 0; i < groups * lanes; i++) {
        const int64_t at = i / lanes * apart + i % lanes;
        long double expected[DIAMOND_ROWS];

        for (int r = 0; r < DIAMOND_ROWS; r++) {
            expected[r] = before[at + r * lanes];
        }
        multiply_exactly(v, tau, transposed, expected);
        for (int r = 0; r < DIAMOND_ROWS; r++) {
            CHECK(fabsl(x[at + r * lanes] - expected[r]) <= 100 * R_EPS,
                  "%s, transposed %d, vector %lld of %lld groups, row %d: %g, not %Lg",
                  kernels->name, transposed, (long long)i, (long long)groups, r,
                  (double)x[at + r * lanes], expected[r]);
        }
    }
    for (int64_t i = 0; i < groups; i++) {
        const int64_t after = i * apart + DIAMOND_ROWS * lanes;

        CHECK(memcmp(x + after, before + after, GUARD * sizeof *x) == 0, "%s: after group %lld",
              kernels->name, (long long)i);
    }
    free(x);
    free(before);
}

/* With every kernel that the processor runs. */
static void
test_diamonds(void)
{
    const struct cpu_kernels *kernels[] = {tsvdi_kernels(), NULL};
    real v[CPU_CHASE_DIAMOND * CPU_BAND], tau[CPU_CHASE_DIAMOND];

#if TSVD_X86_KERNELS
    if (tsvdi_host_isa() == HOST_AVX512) {
        kernels[1] = &tsvdi_kernels_avx2;
    }
#endif
    for (int k = 0; k < 2 && kernels[k] != NULL && kernels[k]->diamond != NULL; k++) {
        for (int present = 0; present <= CPU_CHASE_DIAMOND; present++) {
            for (int form = 0; form < 4; form++) {
                make_diamond(present, form & 1, v, tau);
                check_diamond(kernels[k], 1 + present % 3, form >> 1, v, tau);
            }
        }
    }
}

#endif
