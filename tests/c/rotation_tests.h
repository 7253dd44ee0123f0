/*
 * Tests of rotation.h against long double; included once for each precision.
 */
#ifndef TSVD_TESTS_ROTATION_H
#define TSVD_TESTS_ROTATION_H

#include "check.h"
#include "math/qr_step.h"

#define LEAST_NORMAL ((long double)(TSVD_SINGLE ? FLT_MIN : DBL_MIN))
#define LEAST_DENORMAL (LEAST_NORMAL * (long double)R_EPS)
#define LOWEST_EXPONENT (-R_BIAS + 1 - R_DIGITS) /* of the least denormal number */

/* |x - exact| in units of eps |exact|, of the spacing of denormals at least. */
static long double
error_in_eps(real x, long double exact)
{
    return fabsl((long double)x - exact) / ((long double)R_EPS * fmaxl(fabsl(exact), LEAST_NORMAL));
}

static void
check_rotation(real f, real g)
{
    long double length = sqrtl((long double)f * f + (long double)g * g);
    long double sign = f != 0 ? copysignl(1, f) : copysignl(1, g);
    real r;
    struct rotation q = rotation_make(f, g, &r);

    CHECK(q.c >= 0, "f = %a, g = %a", (double)f, (double)g);
    if (f == 0 && g == 0) {
        CHECK(q.c == 1 && q.s == 0 && r == 0, "no rotation of nothing");
        return;
    }
    CHECK(error_in_eps(r, sign * length) <= 3, "f = %a, g = %a: r = %a", (double)f, (double)g,
          (double)r);
    CHECK(error_in_eps(q.c, fabsl(f) / length) <= 3, "f = %a, g = %a: c = %a", (double)f, (double)g,
          (double)q.c);
    CHECK(error_in_eps(q.s, sign * g / length) <= 3, "f = %a, g = %a: s = %a", (double)f, (double)g,
          (double)q.s);
}

static void
test_rotation_make(void)
{
    const real special[] = {0,
                            REAL(-0.0),
                            1,
                            -1,
                            REAL(TSVD_SINGLE ? FLT_MIN : DBL_MIN),
                            REAL(TSVD_SINGLE ? FLT_TRUE_MIN : DBL_TRUE_MIN),
                            -REAL(TSVD_SINGLE ? FLT_TRUE_MIN : DBL_TRUE_MIN),
                            REAL(TSVD_SINGLE ? FLT_MAX : DBL_MAX) / 2,
                            REAL(TSVD_SINGLE ? FLT_MAX : DBL_MAX) / -2,
                            R_EPS,
                            ROTATION_SAFE_MIN,
                            ROTATION_SAFE_MAX};
    const int count = (int)(sizeof special / sizeof special[0]);
    real r;
    struct rotation q;

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            check_rotation(special[i], special[j]);
        }
    }
    for (int i = 0; i < 200000; i++) {
        int exponent = random_int(LOWEST_EXPONENT, R_BIAS - 2);
        int distance = random_int(-R_DIGITS - 3, R_DIGITS + 3);
        int other = exponent + distance;

        other = other < LOWEST_EXPONENT ? LOWEST_EXPONENT : other > R_BIAS - 2 ? R_BIAS - 2 : other;
        check_rotation(REAL(random_scaled(exponent, exponent)), REAL(random_scaled(other, other)));
        check_rotation(REAL(random_scaled(LOWEST_EXPONENT, R_BIAS - 2)),
                       REAL(random_scaled(LOWEST_EXPONENT, R_BIAS - 2)));
        check_rotation(REAL(random_scaled(-2, 2)), REAL(random_scaled(-2, 2)));
    }
    q = rotation_make(5, 0, &r); /* nothing to make zero: the identity */
    CHECK(q.c == 1 && q.s == 0 && r == 5, "c = %g, s = %g, r = %g", (double)q.c, (double)q.s,
          (double)r);
    q = rotation_make(3, -4, &r);
    CHECK(r == 5, "r = %g", (double)r);
}

/* c^2 + s^2 - 1 is the rounding of c and s, 0.71 eps, and that of the first term of the excess,
   0.25 eps. */
static void
test_rotation_unit(void)
{
    const long double eps = (long double)R_EPS;

    for (int i = 0; i < 100000; i++) {
        const int lowest = i % 2 == 0 ? -R_DIGITS : -2;
        const real stretched = 1 + REAL(random_int(-8, 8)) * R_EPS;
        struct rotation q, unit;
        long double error;
        real r;

        q = rotation_make(REAL(random_scaled(lowest, 0)), REAL(random_scaled(lowest, 0)), &r);
        q.c *= stretched;
        q.s *= stretched;
        unit = rotation_unit(q);
        error = (long double)unit.c * unit.c + (long double)unit.s * unit.s - 1;
        CHECK(fabsl(error) <= 0.96L * eps, "c = %a, s = %a: %Lg eps", (double)unit.c,
              (double)unit.s, error / eps);
        CHECK(fabsl((long double)unit.s * q.c - (long double)unit.c * q.s) <= eps,
              "the angle of c = %a, s = %a", (double)q.c, (double)q.s);
    }
}

/* The lifting steps in exact arithmetic are the rotation. */
static void
check_lifting(struct rotation q)
{
    const struct lifting lift = rotation_lift(rotation_half_tangent(q));
    const long double t = lift.t, s = lift.s, eps = (long double)R_EPS;

    CHECK(error_in_eps(lift.s, (long double)q.s) <= 3, "c = %a, s = %a: s = %a", (double)q.c,
          (double)q.s, (double)lift.s);
    CHECK(fabsl(1 - s * t - (long double)q.c) <= 3 * eps, "c = %a, s = %a: t = %a", (double)q.c,
          (double)q.s, (double)lift.t);
    CHECK(fabsl(2 * t - s * t * t - (long double)q.s) <= 3 * eps, "c = %a, s = %a: t = %a",
          (double)q.c, (double)q.s, (double)lift.t);
}

static void
test_rotation_lift(void)
{
    const struct rotation special[] = {{1, 0}, {0, 1}, {0, -1}, {REAL(0.6), REAL(-0.8)}};
    real r;

    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        check_lifting(special[i]);
    }
    for (int i = 0; i < 100000; i++) {
        const int lowest = i % 4 == 0 ? LOWEST_EXPONENT : i % 4 == 1 ? -R_DIGITS : -2;

        check_lifting(
            rotation_make(REAL(random_scaled(lowest, 0)), REAL(random_scaled(lowest, 0)), &r));
    }
}

/* The singular values of [f g; 0 h] in long double. */
static void
exact_triangle(real f, real g, real h, long double *large, long double *small)
{
    long double a = fabsl((long double)f), b = fabsl((long double)h), c = fabsl((long double)g);
    long double sum = sqrtl((a + b) * (a + b) + c * c);
    long double difference = sqrtl((a - b) * (a - b) + c * c);

    *large = (sum + difference) / 2;
    *small = *large > 0 ? a * b / *large : 0;
}

static void
check_triangle(real f, real g, real h)
{
    long double large_exact, small_exact, unit;
    long double m[2][2], t;
    struct rotation right, left;
    real large, small;

    exact_triangle(f, g, h, &large_exact, &small_exact);
    triangle_svd(f, g, h, &right, &left, &large, &small);
    CHECK(error_in_eps(large, large_exact) <= 8, "[%a %a; 0 %a]: %a", (double)f, (double)g,
          (double)h, (double)large);
    CHECK(error_in_eps(r_abs(small), small_exact) <= 8, "[%a %a; 0 %a]: %a", (double)f, (double)g,
          (double)h, (double)small);
    CHECK(error_in_eps(triangle_smallest(f, g, h), small_exact) <= 8, "[%a %a; 0 %a]: %a",
          (double)f, (double)g, (double)h, (double)triangle_smallest(f, g, h));
    CHECK(large >= r_abs(small), "[%a %a; 0 %a]", (double)f, (double)g, (double)h);
    CHECK(small == 0 || (small < 0) == ((f < 0) != (h < 0)), "[%a %a; 0 %a]: %a has the wrong sign",
          (double)f, (double)g, (double)h, (double)small);

    /* m = left [f g; 0 h] right must be diag(large, small). */
    t = (long double)left.c * f;
    m[0][0] = t * right.c + ((long double)left.c * g + (long double)left.s * h) * right.s;
    m[0][1] = -t * right.s + ((long double)left.c * g + (long double)left.s * h) * right.c;
    t = -(long double)left.s * f;
    m[1][0] = t * right.c + ((long double)left.c * h - (long double)left.s * g) * right.s;
    m[1][1] = -t * right.s + ((long double)left.c * h - (long double)left.s * g) * right.c;
    unit = (long double)R_EPS * fmaxl(large_exact, LEAST_NORMAL);
    CHECK(fabsl(m[0][0] - large) <= 8 * unit && fabsl(m[0][1]) <= 8 * unit &&
              fabsl(m[1][0]) <= 8 * unit && fabsl(m[1][1] - small) <= 8 * unit,
          "[%a %a; 0 %a] becomes [%Lg %Lg; %Lg %Lg]", (double)f, (double)g, (double)h, m[0][0],
          m[0][1], m[1][0], m[1][1]);
    for (int side = 0; side < 2; side++) {
        const struct rotation q = side ? left : right;

        t = (long double)q.c * q.c + (long double)q.s * q.s;
        CHECK(fabsl(t - 1) <= 8 * (long double)R_EPS, "[%a %a; 0 %a]: c^2 + s^2 = 1 + %Lg",
              (double)f, (double)g, (double)h, t - 1);
    }
}

static void
test_triangle(void)
{
    const real special[] = {0, REAL(-0.0), 1, -1, 2, R_EPS, -R_EPS, 1 + R_EPS, R_EPS / 8};
    const int count = (int)(sizeof special / sizeof special[0]);

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            for (int k = 0; k < count; k++) {
                check_triangle(special[i], special[j], special[k]);
            }
        }
    }
    for (int i = 0; i < 100000; i++) {
        /* Blocks come scaled to at most 2; their ratios may be anything moderate. */
        check_triangle(REAL(random_scaled(-R_BIAS / 3, 0)), REAL(random_scaled(-R_BIAS / 3, 0)),
                       REAL(random_scaled(-R_BIAS / 3, 0)));
        check_triangle(REAL(random_scaled(-3, 0)), REAL(random_scaled(-3, 0)),
                       REAL(random_scaled(-3, 0)));
        check_triangle(REAL(random_scaled(-R_DIGITS, 0)), REAL(random_scaled(-2 * R_DIGITS, 0)),
                       REAL(random_scaled(-R_DIGITS, 0)));
    }
}

#endif
