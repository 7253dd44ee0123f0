/*
 * Tests of reflector.h against long double; included once for each precision.
 */
#ifndef TSVD_TESTS_REFLECTOR_H
#define TSVD_TESTS_REFLECTOR_H

#include "cpu/matrix/matrix.h"
#include "math/reflector.h"
#include "rotation_tests.h"

enum { REFLECTOR_MOST = 40 };

/* The reflector of alpha and x[0] .. x[count - 1], and the rest of v. */
static struct reflector
reflector_of(real alpha, const real *x, int count, real *v)
{
    struct reflector h;
    real square = 0, up;

    for (int i = 0; i < count; i++) {
        square = r_fma(x[i], x[i], square);
    }
    up = reflector_up(alpha, square);
    if (up != 1) {
        square = 0;
        for (int i = 0; i < count; i++) {
            square = r_fma(up * x[i], up * x[i], square);
        }
    }
    h = reflector_make(alpha, square, up);
    for (int i = 0; i < count; i++) {
        v[i] = reflector_entry(h, x[i]);
    }
    return h;
}

static void
check_reflector(real alpha, const real *x, int count)
{
    const long double eps = (long double)R_EPS, bound = (count + 8) * eps;
    const int places = R_DIGITS + 8;
    long double rest = 0, norm, exact, square = 1;
    real v[REFLECTOR_MOST];
    struct reflector h = reflector_of(alpha, x, count, v);

    for (int i = 0; i < count; i++) {
        rest += (long double)x[i] * x[i];
    }
    norm = sqrtl((long double)alpha * alpha + rest);
    if (h.tau == 0) {
        CHECK(h.beta == alpha, "beta = %a", (double)h.beta);
        CHECK(sqrtl(rest) <= ldexpl(fabsl((long double)alpha), -places),
              "alpha = %a beside %Lg is left alone", (double)alpha, sqrtl(rest));
        return;
    }
    CHECK(rest > 0, "a reflector of nothing, alpha = %a", (double)alpha);
    exact = -copysignl(norm, (long double)alpha);
    CHECK(error_in_eps(h.beta, exact) <= count + 4, "beta = %a", (double)h.beta);
    CHECK(fabsl((long double)h.tau - (exact - (long double)alpha) / exact) <= bound, "tau = %a",
          (double)h.tau);
    CHECK(h.tau >= 1 && h.tau <= 2, "tau = %a", (double)h.tau);
    for (int i = 0; i < count; i++) {
        square += (long double)v[i] * v[i];
        CHECK(error_in_eps(v[i], (long double)x[i] / ((long double)alpha - exact)) <= count + 6,
              "alpha = %a, x = %a: v = %a", (double)alpha, (double)x[i], (double)v[i]);
    }
    CHECK(fabsl((long double)h.tau * square - 2) <= 4 * bound, "not orthogonal by %Lg eps",
          ((long double)h.tau * square - 2) / eps);
}

static void
test_reflector(void)
{
    const int high = R_BIAS / 2 - 4; /* squares do not overflow */
    const real least = REAL(TSVD_SINGLE ? FLT_TRUE_MIN : DBL_TRUE_MIN);
    const real special[] = {0,     REAL(-0.0),          1,           -1, least, -least,
                            R_EPS, r_pow2(-R_BIAS / 4), r_pow2(high)};
    const int count = (int)(sizeof special / sizeof special[0]);
    real x[REFLECTOR_MOST], v[REFLECTOR_MOST];
    struct reflector h;

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            x[0] = special[j];
            check_reflector(special[i], x, 1);
            for (int k = 0; k < count; k++) {
                x[1] = special[k];
                check_reflector(special[i], x, 2);
            }
        }
    }
    for (int round = 0; round < 100000; round++) {
        const int rows = random_int(1, REFLECTOR_MOST);
        const int top = round % 3 == 0 ? random_int(LOWEST_EXPONENT, high) : random_int(-90, 2);
        const int spread = round % 2 == 0 ? 2 : random_int(2, 2 * R_DIGITS);
        const int bottom = top - spread < LOWEST_EXPONENT ? LOWEST_EXPONENT : top - spread;
        real alpha = REAL(random_scaled(bottom, top));

        if (round % 5 == 0) {
            alpha = REAL(random_scaled(LOWEST_EXPONENT, high));
        }
        for (int i = 0; i < rows; i++) {
            x[i] = round % 7 == 0 && i % 2 == 0 ? REAL(0) : REAL(random_scaled(bottom, top));
        }
        check_reflector(alpha, x, rows);
    }
    x[0] = 4;
    h = reflector_of(3, x, 1, v);
    CHECK(h.beta == -5 && h.tau == REAL(1.6) && v[0] == REAL(0.5), "beta = %g, tau = %g, v = %g",
          (double)h.beta, (double)h.tau, (double)v[0]);
    x[0] = 0;
    h = reflector_of(3, x, 1, v);
    CHECK(h.beta == 3 && h.tau == 0 && v[0] == 0, "beta = %g, tau = %g", (double)h.beta,
          (double)h.tau);
}

/* One large entry and many equal ones, the squares of which are about an eps of its square: the
   errors of a sum as they come would have one sign.  All are so small that squares underflow, or
   they are not. */
static void
test_reflector_of_a_long_vector(void)
{
    enum { LONG = 3000 };
    static real x[LONG];

    for (int k = 0; k < 3; k++) {
        const real scale = k == 0 ? 1 : k == 1 ? r_pow2(-R_BIAS / 2) : r_pow2(-R_BIAS + 40);

        for (int count = 2; count <= LONG; count = 3 * count / 2) {
            const int large = count / 3;
            long double square = 1;
            scalar tau;
            real beta;

            for (int i = 0; i < count; i++) {
                x[i] = scale * (i == large ? 1 : REAL(0.77) * r_sqrt(R_EPS));
            }
            tau = tsvdi_cpu_dense_reflector(count, x, &beta);
            for (int i = 1; i < count; i++) {
                square += (long double)x[i] * x[i];
            }
            CHECK(fabsl((long double)tau * square - 2) <= 16 * (long double)R_EPS,
                  "%d entries times %g: not orthogonal by %Lg eps", count, (double)scale,
                  ((long double)tau * square - 2) / (long double)R_EPS);
        }
    }
}

#endif
