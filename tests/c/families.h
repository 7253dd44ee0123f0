/*
 * Random matrices of the kinds that counts find hard; included once for each precision.
 */
#ifndef TSVD_TESTS_FAMILIES_H
#define TSVD_TESTS_FAMILIES_H

#include "check.h"
#include "rotation_tests.h"

/* Entries from 2^low to 2^(high + 1), or 1 and 2 if low = high.  zeros: 1: a third are zero. */
static const struct family {
    const char *name;
    int low, high, zeros;
} families[] = {
    {"uniform", -2, 0, 0},
    {"equal", 0, 0, 0},
    {"with zeros", -2, 0, 1},
    {"moderately graded", -R_DIGITS, 0, 0},
    {"every exponent", LOWEST_EXPONENT, R_BIAS - 3, 0},
    {"every exponent with zeros", LOWEST_EXPONENT, R_BIAS - 3, 1},
    {"large", R_BIAS - 5, R_BIAS - 3, 0},
    {"the largest", R_BIAS - 1, R_BIAS, 0},
    {"denormal", LOWEST_EXPONENT, LOWEST_EXPONENT + 8, 1},
};

enum { FAMILIES = sizeof families / sizeof families[0] };

static real
draw_entry(struct family family)
{
    if (family.low == family.high) {
        return REAL(random_int(1, 2));
    }
    return family.zeros && random_unit() < 0.3 ? REAL(0)
                                               : REAL(random_scaled(family.low, family.high));
}

/* d, e: [n] */
static void
draw_matrix(struct family family, int64_t n, real *d, real *e)
{
    for (int64_t i = 0; i < n; i++) {
        d[i] = draw_entry(family);
        e[i] = draw_entry(family);
    }
}

#endif
