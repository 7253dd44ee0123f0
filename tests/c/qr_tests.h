/*
 * Tests of qr_sweep.h: the iteration to its end, each value against Sturm counts in
 * long double, and the rotations against B; included once for each precision.
 */
#ifndef TSVD_TESTS_QR_H
#define TSVD_TESTS_QR_H

#include "check.h"
#include "math/qr_sweep.h"
#include "rotation_tests.h"

enum { QR_ORDER = 24 };

/* Rows i and j of the n x n matrix x become c x_i + s x_j and c x_j - s x_i. */
static void
rotate_rows(long double *x, int64_t n, int64_t i, int64_t j, struct rotation q)
{
    for (int64_t k = 0; k < n; k++) {
        long double a = x[i * n + k], b = x[j * n + k];

        x[i * n + k] = q.c * a + q.s * b;
        x[j * n + k] = q.c * b - q.s * a;
    }
}

/* max |B - L^T (diag(d) + diag(e, offset)) R|, all in long double; rows of `left` are the
   columns of L. */
static long double
error_of_product(int64_t n, const long double *b_d, const long double *b_e, const long double *left,
                 const real *d, const real *e, int offset, const long double *right)
{
    long double worst = 0;

    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            long double sum = i == j ? -b_d[i] : j == i + 1 ? -b_e[i] : 0;

            for (int64_t k = 0; k < n; k++) {
                sum += left[k * n + i] * d[k] * right[k * n + j];
                if (k < n - 1) {
                    int64_t row = offset > 0 ? k : k + 1, column = offset > 0 ? k + 1 : k;

                    sum += left[row * n + i] * e[k] * right[column * n + j];
                }
            }
            worst = fmaxl(worst, fabsl(sum));
        }
    }
    return worst;
}

static void
identity(int64_t n, long double *x)
{
    for (int64_t i = 0; i < n * n; i++) {
        x[i] = i % (n + 1) == 0;
    }
}

static int
descending(const void *a, const void *b)
{
    real x = *(const real *)a, y = *(const real *)b;

    return (x < y) - (x > y);
}

static void
check_qr(const char *kind, int64_t n, const real *d_in, const real *e_in)
{
    real d[QR_ORDER], e[QR_ORDER];
    long double exact_d[QR_ORDER], exact_e[QR_ORDER];
    long double left_rows[QR_ORDER * QR_ORDER], right_rows[QR_ORDER * QR_ORDER];
    long double rounding = 4 * (long double)(n + 2) * (long double)R_EPS, biggest = 0;
    /* A shift may change a value of a hundredth of the block's norm by eps times that norm. */
    long double slack = 100 * (long double)(n + 2) * (long double)R_EPS;
    struct rotation right[QR_ORDER], left[QR_ORDER];
    const struct qr_turns turns = {right, left};
    struct qr_state state;
    struct qr_sweep sweep;

    for (int64_t i = 0; i < n; i++) {
        exact_d[i] = d[i] = d_in[i];
        exact_e[i] = e[i] = i < n - 1 ? e_in[i] : REAL(0);
        biggest = fmaxl(biggest, fmaxl(fabsl(exact_d[i]), fabsl(exact_e[i])));
    }
    identity(n, left_rows);
    identity(n, right_rows);
    qr_start(&state, n, 0, 0);
    while ((sweep = qr_advance(&state, d, e, turns)).count > 0) {
        CHECK(sweep.first >= 0 && sweep.first + sweep.count < n, "%s: rows %lld + %lld of %lld",
              kind, (long long)sweep.first, (long long)sweep.count, (long long)n);
        for (int64_t k = 0; k < sweep.count; k++) {
            int64_t i = sweep.up ? sweep.first + sweep.count - k : sweep.first + k;
            int64_t j = sweep.up ? i - 1 : i + 1;

            CHECK(right[k].c >= 0 && left[k].c >= 0, "%s, n = %lld: c = %a, %a", kind, (long long)n,
                  (double)right[k].c, (double)left[k].c);
            rotate_rows(right_rows, n, i, j, right[k]);
            rotate_rows(left_rows, n, i, j, left[k]);
        }
    }
    CHECK(sweep.count == 0, "%s, n = %lld: no convergence", kind, (long long)n);
    for (int64_t i = 0; i + 1 < n; i++) {
        CHECK(e[i] == 0, "%s, n = %lld: e[%lld] is left", kind, (long long)n, (long long)i);
    }
    CHECK(error_of_product(n, exact_d, exact_e, left_rows, d, e, 1, right_rows) <=
              rounding * biggest,
          "%s, n = %lld: the rotations do not give B back", kind, (long long)n);

    for (int64_t i = 0; i < n; i++) {
        d[i] = r_abs(d[i]);
    }
    qsort(d, (size_t)n, sizeof d[0], descending);
    for (int64_t i = 0; i < n; i++) {
        long double s = d[i];

        if (s > LEAST_NORMAL / (long double)R_EPS) {
            CHECK(count_above(n, exact_d, exact_e, s * (1 - slack)) > i &&
                      count_above(n, exact_d, exact_e, s * (1 + slack)) <= i,
                  "%s, n = %lld: value %lld is %Lg", kind, (long long)n, (long long)i, s);
        } else { /* dropped entries are as small as this */
            CHECK(count_above(n, exact_d, exact_e, 2 * LEAST_NORMAL / (long double)R_EPS) <= i,
                  "%s, n = %lld: value %lld is %Lg", kind, (long long)n, (long long)i, s);
        }
    }
}

static void
test_qr(void)
{
    real d[QR_ORDER], e[QR_ORDER];

    for (int round = 0; round < 200; round++) {
        int64_t n = round < 20 ? 1 + round % 4 : random_int(1, QR_ORDER);
        int range = R_BIAS / 3;

        for (int64_t i = 0; i < n; i++) {
            d[i] = REAL(random_unit());
            e[i] = REAL(random_unit());
        }
        check_qr("uniform", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            int exponent = -(int)(range * i / n);

            d[i] = REAL(random_scaled(exponent, exponent));
            e[i] = REAL(random_scaled(exponent, exponent));
        }
        check_qr("graded down", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            int exponent = -(int)(range * (n - 1 - i) / n);

            d[i] = REAL(random_scaled(exponent, exponent));
            e[i] = REAL(random_scaled(exponent, exponent));
        }
        check_qr("graded up", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            d[i] = REAL(random_scaled(-range, 0));
            e[i] = REAL(random_scaled(-range, 0));
        }
        check_qr("wild", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            d[i] = random_unit() < 0.3 ? REAL(0) : REAL(random_scaled(-2, 0));
            e[i] = random_unit() < 0.2 ? REAL(0) : REAL(random_scaled(-2, 0));
        }
        check_qr("with zeros", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            d[i] = e[i] = 1;
        }
        check_qr("Toeplitz", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            d[i] = 1 + R_EPS * REAL(random_int(0, 9));
            e[i] = R_EPS * REAL(random_int(-9, 9));
        }
        check_qr("cluster", n, d, e);
        for (int64_t i = 0; i < n; i++) {
            d[i] = e[i] = 0;
        }
        check_qr("zero", n, d, e);
    }
}

/* An entry up to `negligible` is dropped without a rotation. */
static void
test_qr_negligible(void)
{
    real d[] = {1, 2, REAL(1.5)}, e[] = {REAL(0.01), REAL(-0.01)};
    struct rotation right[3], left[3];
    const struct qr_turns turns = {right, left};
    struct qr_state state;
    struct qr_sweep sweep;

    qr_start(&state, 3, REAL(0.01), 0);
    sweep = qr_advance(&state, d, e, turns);
    CHECK(sweep.count == 0 && state.rotations == 0 && state.deflated == 2,
          "%lld rotations, %lld gone", (long long)sweep.count, (long long)state.deflated);
    CHECK(d[0] == 1 && d[1] == 2 && d[2] == REAL(1.5) && e[0] == 0 && e[1] == 0, "d was changed");
}

#endif
