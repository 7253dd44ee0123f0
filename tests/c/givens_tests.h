/*
 * Tests of givens_sweep.h: half sweeps one after another; included once for each
 * precision.
 */
#ifndef TSVD_TESTS_GIVENS_H
#define TSVD_TESTS_GIVENS_H

#include "check.h"
#include "math/givens_sweep.h"
#include "qr_tests.h"

enum { GIVENS_ORDER = 12 };

/* One whole half sweep on a band of one block; returns the rotations made. */
static int64_t
half_sweep(real *packed, int64_t n, int odd, real eps, int64_t *deflated, long double *left,
           long double *right)
{
    int64_t made = 0;

    for (int64_t i = 0; i + 1 < n; i++) {
        struct rotation q;
        int dropped;

        made += givens_step(packed + 3 * i, odd, eps, &q, &dropped);
        *deflated += dropped;
        rotate_rows(odd ? left : right, n, i, i + 1, q);
    }
    return made;
}

static void
unpack(const real *packed, int64_t n, int lower, real *d, real *e)
{
    for (int64_t i = 0; i < n; i++) {
        d[i] = packed[3 * i];
        e[i] = i + 1 < n ? packed[3 * i + (lower ? 1 : 2)] : REAL(0);
    }
}

static void
check_givens(int64_t n, real eps)
{
    real packed[3 * GIVENS_ORDER] = {0}, d[GIVENS_ORDER], e[GIVENS_ORDER];
    long double exact_d[GIVENS_ORDER], exact_e[GIVENS_ORDER];
    long double left[GIVENS_ORDER * GIVENS_ORDER], right[GIVENS_ORDER * GIVENS_ORDER];
    long double rounding = 8 * (long double)n * (long double)R_EPS;
    int64_t deflated = 0, quiet = 0, sweeps = 0;

    for (int64_t i = 0; i < n; i++) {
        exact_d[i] = packed[3 * i] = REAL(0.1 + random_unit());
        exact_e[i] = 0;
        if (i + 1 < n) {
            exact_e[i] = packed[3 * i + 2] = REAL(random_unit());
        }
    }
    identity(n, left);
    identity(n, right);
    while (quiet < 2 && sweeps < 100000) {
        int odd = (int)(sweeps++ & 1);
        int64_t made = half_sweep(packed, n, odd, eps, &deflated, left, right);

        quiet = made == 0 ? quiet + 1 : 0;
        for (int64_t i = 0; i + 1 < n; i++) { /* upper became lower, or lower upper */
            CHECK(packed[3 * i + (odd ? 1 : 2)] == 0, "sweep %lld leaves an entry",
                  (long long)sweeps);
        }
        if (sweeps <= 4) {
            long double dropped = 2 * (long double)deflated * eps;

            unpack(packed, n, !odd, d, e);
            CHECK(error_of_product(n, exact_d, exact_e, left, d, e, odd ? 1 : -1, right) <=
                      rounding + dropped,
                  "n = %lld, after half sweep %lld", (long long)n, (long long)sweeps);
        }
    }
    CHECK(quiet == 2, "n = %lld, eps = %g: no end", (long long)n, (double)eps);
    unpack(packed, n, 0, d, e);
    for (int64_t i = 0; i + 1 < n; i++) {
        CHECK(packed[3 * i + 1] == 0 && packed[3 * i + 2] == 0, "an entry is left");
    }
    CHECK(error_of_product(n, exact_d, exact_e, left, d, e, 1, right) <=
              4 * eps + rounding * sqrtl((long double)sweeps),
          "n = %lld, eps = %g: the rotations do not give B back", (long long)n, (double)eps);
}

static void
test_givens(void)
{
    real at_eps[] = {2, 0, REAL(0.25), 3, 0, 0};
    struct rotation q;
    int dropped;

    for (int round = 0; round < 30; round++) {
        for (int64_t n = 1; n <= GIVENS_ORDER; n++) {
            check_givens(n, REAL(1e-2));
            check_givens(n, REAL(1e-4));
        }
    }
    /* An entry of eps counts as zero, one above does not. */
    CHECK(givens_step(at_eps, 0, REAL(0.25), &q, &dropped) == 0 && dropped == 1, "at eps");
    CHECK(q.c == 1 && q.s == 0 && at_eps[0] == 2 && at_eps[2] == 0 && at_eps[3] == 3, "at eps");
    CHECK(givens_step(at_eps, 0, REAL(0.25), &q, &dropped) == 0 && dropped == 0, "an old zero");
    at_eps[2] = REAL(0.2500001);
    CHECK(givens_step(at_eps, 0, REAL(0.25), &q, &dropped) == 1 && dropped == 0, "above eps");
    CHECK(at_eps[1] > 0 && at_eps[2] == 0, "the opposite entry is filled");
}

#endif
