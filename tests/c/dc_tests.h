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
    const int64_t rows[] = {33, 64, 500, 1 << 20};

    for (int levels = 1; levels < 16; levels++) {
        struct dc_limits before = dc_limits_for(0, levels, rows[levels % 4]);

        CHECK(before.z == before.floor && before.floor > 0 && before.equal == 0, "full accuracy");
        for (int i = -R_DIGITS; i <= 2; i++) {
            const real eps = r_pow2(i);
            const struct dc_limits limit = dc_limits_for(eps, levels, rows[levels % 4]);

            CHECK(limit.z >= before.z && limit.gap >= before.gap && limit.equal >= before.equal,
                  "a looser eps of %g", (double)eps);
            CHECK(limit.z <= before.floor + eps &&
                      limit.equal * REAL(levels) <= 2 * eps * (1 + R_EPS),
                  "more than eps = %g is given away", (double)eps);
            CHECK(limit.floor == before.floor && limit.budget == before.budget,
                  "what is spent at full accuracy does not depend on eps");
            before = limit;
        }
    }
}

/* The errors of all merges of a matrix together stay below half of the bound on its residual. */
static void
check_spends_half(int64_t leaf)
{
    for (int64_t n = DC_LEAF_COLUMNS + 1; n < 100000; n = n * 5 / 4) {
        const long double whole = 2 * (long double)(n + 8) * (long double)R_EPS;
        const int levels = dc_halvings(n, leaf);
        long double apart = 0, together = 0; /* sum of squares; sum over the levels */

        for (int level = 0; level < levels; level++) {
            /* nodes' widths are rounded to DC_ALIGN */
            const int64_t rows = (n >> level) + 2 * DC_ALIGN;
            const struct dc_limits limit = dc_limits_for(0, levels, level == 0 ? n : rows);

            apart += (long double)limit.z * limit.z + (long double)limit.floor * limit.floor;
            together += sqrtl((long double)limit.budget);
        }
        CHECK(sqrtl(apart) + together <= whole / 2, "n = %lld: %Lg of the residual", (long long)n,
              (sqrtl(apart) + together) / whole);
    }
}

static void
test_dc_spends_half(void)
{
    check_spends_half(DC_LEAF_COLUMNS);
    check_spends_half(DC_SMALL_LEAF_COLUMNS);
}

/* The entries of z below the threshold have a norm of limit.z at most; with the next candidate for
   the threshold they would have more. */
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
    const struct dc_limits limits[] = {dc_limits_for(0, 3, 200),
                                       dc_limits_for(REAL(1e-3), 11, 5000)};
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
        for (int c = 0; c < DC_THRESHOLDS; c++) { /* all at a candidate, as many as it allows */
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

/* The square of the Frobenius norm of what absorbing changes: diag(head, d) turned back by the
   rotation, minus diag(head, d). */
static long double
change_square(long double head, long double d, struct rotation turn)
{
    const long double c = turn.c, s = turn.s, gap = (long double)d - head;

    return 2 * (s * s * gap) * (s * s * gap) + 2 * (c * s * gap) * (c * s * gap);
}

static void
test_dc_absorb(void)
{
    const struct dc_limits limit = dc_limits_for(0, 4, 400);
    const real far = 100 * limit.gap;
    struct dc_purse rich = {1, 0}, poor = {0, 0};
    struct rotation turn = {1, 0};
    real head_z, z;

    for (int i = 0; i < 20000; i++) {
        const real head = 1 + REAL(random_int(0, 1000)) * R_EPS;
        const real before = REAL(random_scaled(-R_DIGITS, 0)),
                   other = REAL(random_scaled(-R_DIGITS, 0));
        const real d = head + REAL(random_int(0, 40)) * R_EPS;
        long double weight = sqrtl((long double)before * before + (long double)other * other);

        head_z = before;
        z = other;
        CHECK(!dc_absorb(limit, &poor, head, head + far, &head_z, &z, &turn) && head_z == before &&
                  z == other && poor.left == 0,
              "for nothing");
        CHECK(dc_absorb(limit, &poor, head, head, &head_z, &z, &turn), "equal values cost nothing");
        head_z = before;
        z = other;
        rich.left = 0;
        CHECK(dc_absorb(limit, &rich, head, d, &head_z, &z, &turn), "within the purse");
        CHECK(z == 0 && error_in_eps(r_abs(head_z), weight) <= 3, "the weight %g", (double)head_z);
        CHECK(error_in_eps(turn.c * before + turn.s * other, head_z) <= 4, "the rotation");
        CHECK((long double)(1 - rich.left) * (1 + 8 * (long double)R_EPS) + (long double)R_EPS >=
                  change_square(head, d, turn),
              "%g is paid for %Lg", (double)(1 - rich.left), change_square(head, d, turn));
    }
    head_z = 0; /* a center of weight 0 takes the weight of the value that it absorbs */
    z = REAL(-0.5);
    CHECK(dc_absorb(limit, &rich, 0, limit.gap, &head_z, &z, &turn) && r_abs(head_z) == REAL(0.5) &&
              z == 0,
          "into zero");
}

/* Runs of close values with random weights: the budget bounds the sum of what is paid, and what is
   paid is what changes. */
static void
test_dc_purse(void)
{
    enum { MOST = 300 };

    for (int round = 0; round < 1000; round++) {
        const int64_t n = random_int(2, MOST);
        const struct dc_limits limit = dc_limits_for(0, 4, n);
        const int width = random_int(0, 60);
        real d[MOST], z[MOST];
        long double paid = 0;
        int64_t close = 0, last = 0;
        struct dc_purse purse;

        for (int64_t i = 0; i < n; i++) {
            d[i] = i == 0 ? REAL(1) : d[i - 1] + REAL(random_int(0, width)) * R_EPS;
            z[i] = REAL(random_scaled(-R_DIGITS, 0));
            close += i > 0 && dc_close(limit, d[i - 1], d[i]);
        }
        purse = dc_fill_purse(limit, close);
        for (int64_t i = 1; i < n; i++) {
            struct rotation turn;

            if (!dc_close(limit, d[i - 1], d[i])) {
                purse.left = 0;
                last = i;
            } else if (dc_absorb(limit, &purse, d[last], d[i], &z[last], &z[i], &turn)) {
                paid += change_square(d[last], d[i], turn);
            } else {
                last = i;
            }
        }
        CHECK(paid <= (long double)limit.budget * (1 + 16 * (long double)R_EPS * (long double)n),
              "n = %lld: %Lg of the budget", (long long)n, paid / (long double)limit.budget);
    }
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
    test_dc_spends_half();
    test_dc_threshold();
    test_dc_absorb();
    test_dc_purse();
    test_dc_group();
}

#endif
