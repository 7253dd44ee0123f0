/*
 * Tests of the rules of deflation in dc.h; included once for each precision.
 */
#ifndef TSVD_TESTS_DC_H
#define TSVD_TESTS_DC_H

#include "check.h"
#include "math/dc.h"
#include "rotation_tests.h"

static void
test_dc_exponent(void)
{
    for (int i = 0; i < 2000; i++) {
        real x = REAL(fabs(random_scaled(-R_BIAS / 2, R_BIAS / 2)));
        real scaled = x * r_pow2(-dc_exponent(x));

        CHECK(scaled >= 1 && scaled < 2, "%g becomes %g", (double)x, (double)scaled);
        x = REAL(fabs(random_scaled(LOWEST_EXPONENT, -R_BIAS / 2 - 1)));
        CHECK(x * r_pow2(-dc_exponent(x)) < 1, "%g", (double)x);
    }
    CHECK(r_isfinite(r_pow2(-dc_exponent(0))), "of a zero block");
}

static void
test_dc_limits(void)
{
    for (int levels = 1; levels < 16; levels++) {
        struct dc_limits before = dc_limits_for(0, levels);

        CHECK(before.z == before.gap && before.z == before.floor && before.floor > 0,
              "full accuracy");
        for (int i = -R_DIGITS; i <= 2; i++) {
            const real eps = r_pow2(i);
            const struct dc_limits limit = dc_limits_for(eps, levels);

            CHECK(limit.z >= before.z && limit.gap >= before.gap, "a looser eps of %g",
                  (double)eps);
            CHECK(limit.z <= before.floor + eps &&
                      limit.gap * REAL(levels) <= before.floor * REAL(levels) + 2 * eps,
                  "more than eps = %g is given away", (double)eps);
            CHECK(limit.floor == before.floor, "the floor of z_0 does not depend on eps");
            before = limit;
        }
    }
}

/* What is below the threshold has a norm of limit.z at most, and the next candidate has not. */
static void
check_threshold(int64_t n, const real *z, struct dc_limits limit)
{
    real dropped[DC_THRESHOLDS] = {0}, threshold;
    long double exact[DC_THRESHOLDS] = {0};
    int chosen = 0;

    for (int64_t j = 0; j < n; j++) {
        const real part = r_abs(z[j]) / limit.z;

        for (int c = 0; c < DC_THRESHOLDS && r_abs(z[j]) <= dc_candidate(limit, c); c++) {
            dropped[c] += part * part;
            exact[c] += (long double)z[j] * z[j];
        }
    }
    threshold = dc_threshold(limit, dropped);
    while (chosen < DC_THRESHOLDS && dc_candidate(limit, chosen) != threshold) {
        chosen++;
    }
    CHECK(chosen < DC_THRESHOLDS, "%g is no candidate", (double)threshold);
    if (chosen < DC_THRESHOLDS) {
        const long double slack = 1 + 4 * (long double)R_EPS * (long double)n;

        CHECK(sqrtl(exact[chosen]) <= limit.z * slack, "n = %lld: %Lg of z are dropped",
              (long long)n, sqrtl(exact[chosen]) / limit.z);
        CHECK(chosen == 0 || sqrtl(exact[chosen - 1]) * slack > limit.z,
              "n = %lld: a larger threshold would do", (long long)n);
    }
}

static void
test_dc_threshold(void)
{
    enum { MOST = 1 << (2 * (DC_THRESHOLDS - 1)) }; /* rows that the candidates are made for */
    const struct dc_limits limits[] = {dc_limits_for(0, 3), dc_limits_for(REAL(1e-3), 11)};
    real *z = allocate(MOST * sizeof *z);

    for (int l = 0; l < 2; l++) {
        for (int round = 0; round < 500; round++) {
            const int64_t n = round < 2 ? MOST : random_int(1, 100);
            const int low = random_int(-DC_THRESHOLDS - 3, 3);

            for (int64_t j = 0; j < n; j++) {
                z[j] = limits[l].z * REAL(random_scaled(low, low + round % 7));
            }
            check_threshold(n, z, limits[l]);
        }
        for (int c = 0; c < DC_THRESHOLDS; c++) { /* all at a candidate, as many as are allowed */
            const int64_t n = (int64_t)1 << (2 * c);

            for (int64_t j = 0; j < n && n <= MOST; j++) {
                z[j] = dc_candidate(limits[l], c);
            }
            check_threshold(n, z, limits[l]);
        }
        z[0] = limits[l].z * (1 + R_EPS);
        check_threshold(1, z, limits[l]);
    }
    free(z);
}

static void
test_dc_absorb(void)
{
    const struct dc_limits limit = dc_limits_for(0, 4);
    struct rotation turn = {1, 0};
    real head_z, z;

    for (int i = 0; i < 20000; i++) {
        const real head = 1 + REAL(random_int(0, 1000)) * R_EPS;
        const real before = REAL(random_scaled(-R_DIGITS, 0)),
                   other = REAL(random_scaled(-R_DIGITS, 0));
        long double weight = sqrtl((long double)before * before + (long double)other * other);

        head_z = before;
        z = other;
        CHECK(!dc_absorb(limit, head, head + limit.gap + 2 * R_EPS, &head_z, &z, &turn) &&
                  head_z == before && z == other,
              "outside the tolerance");
        CHECK(dc_absorb(limit, head, head + limit.gap, &head_z, &z, &turn), "at the tolerance");
        CHECK(z == 0 && error_in_eps(r_abs(head_z), weight) <= 3, "the weight %g", (double)head_z);
        CHECK(error_in_eps(turn.c * before + turn.s * other, head_z) <= 4, "the rotation");
    }
    head_z = 0; /* a center without a weight takes that of what it absorbs */
    z = REAL(-0.5);
    CHECK(dc_absorb(limit, 0, limit.gap, &head_z, &z, &turn) && r_abs(head_z) == REAL(0.5) &&
              z == 0,
          "into zero");
}

static void
test_dc_group(void)
{
    CHECK(dc_group(0, 4, 7, 2) == 0 && dc_group(0, 8, 7, 2) == 0, "top");
    CHECK(dc_group(0, 9, 7, 2) == 1 && dc_group(3, 20, 7, 2) == 1, "dense");
    CHECK(dc_group(8, 20, 7, 10) == 2 && dc_group(7, 20, 7, 10) == 1, "bottom");
    CHECK(dc_group(0, 8, 7, 7) == 1 && dc_group(0, 20, 7, 7) == 1, "the center");
}

static void
test_dc_rules(void)
{
    test_dc_exponent();
    test_dc_limits();
    test_dc_threshold();
    test_dc_absorb();
    test_dc_group();
}

#endif
