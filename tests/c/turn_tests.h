/*
 * Tests of the vector kernels that prepare rotations for vectors, and that end with them.
 */
#ifndef TSVDI_TURN_TESTS_H
#define TSVDI_TURN_TESTS_H

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "math/rotation.h"

enum { TURNS_MOST = 70 };

/* Half tangents t and sines s of rotations that are stretched by a few eps are those of the same
   angle.  The error of s is 0.75 eps (rotation_unit()); t adds as much for 1 + c, and the rounding
   of the quotient. */
static void
check_lift(const struct cpu_kernels *kernels, int64_t count)
{
    struct rotation q[TURNS_MOST] = {{0, 0}};
    real t[TURNS_MOST * WAVE], s[TURNS_MOST * WAVE], r;

    for (int64_t i = 0; i < count; i++) {
        const int lowest = i % 2 == 0 ? -R_DIGITS : -2;
        const real stretched = 1 + REAL(random_int(-8, 8)) * R_EPS;

        q[i] = rotation_make(REAL(random_scaled(lowest, 0)), REAL(random_scaled(lowest, 0)), &r);
        q[i].c *= stretched;
        q[i].s *= stretched;
    }
    for (int i = 0; i < TURNS_MOST * WAVE; i++) {
        t[i] = s[i] = 7;
    }
    kernels->lift(count, q, t, s);
    for (int64_t i = 0; i < TURNS_MOST * WAVE; i++) {
        if (i % WAVE != 0 || i / WAVE >= count) {
            CHECK(t[i] == 7 && s[i] == 7, "%s: %lld is written", kernels->name, (long long)i);
        } else {
            const long double c = q[i / WAVE].c, sine = q[i / WAVE].s;
            const long double norm = sqrtl(c * c + sine * sine);

            CHECK(error_in_eps(s[i], sine / norm) <= 1, "%s: c = %La, s = %La: s = %a",
                  kernels->name, c, sine, (double)s[i]);
            CHECK(error_in_eps(t[i], sine / (norm + c)) <= 2.5, "%s: c = %La, s = %La: t = %a",
                  kernels->name, c, sine, (double)t[i]);
        }
    }
}

/* normalize() writes a vector of norm 1 up to rounding, with the sign, and nothing beyond it. */
static void
check_normalize(const struct cpu_kernels *kernels, int64_t count, real sign)
{
    real x[TURNS_MOST + 1], to[TURNS_MOST + 1];
    long double square = 0, norm = 0;

    for (int64_t i = 0; i < count; i++) {
        x[i] = REAL(random_scaled(-2, 0));
        square += (long double)x[i] * x[i];
    }
    for (int64_t i = 0; i < count; i++) {
        x[i] = REAL(x[i] / sqrtl(square) * (1 + 20 * (long double)R_EPS));
    }
    x[count] = to[count] = 7;
    kernels->normalize(count, sign, x, to);
    for (int64_t i = 0; i < count; i++) {
        norm += (long double)to[i] * to[i];
        CHECK(error_in_eps(to[i], sign * (long double)x[i]) <= 22, "%s: %lld of %lld",
              kernels->name, (long long)i, (long long)count);
    }
    /* each entry is rounded by half an eps at most, and so is each addition of squares */
    CHECK(fabsl(norm - 1) <= (2 + 0.5L * (long double)count) * (long double)R_EPS,
          "%s: order %lld, %Lg eps", kernels->name, (long long)count,
          (norm - 1) / (long double)R_EPS);
    CHECK(to[count] == 7, "%s: order %lld, written behind", kernels->name, (long long)count);
    kernels->normalize(count, sign, x, x);
    for (int64_t i = 0; i <= count; i++) {
        CHECK(x[i] == to[i], "%s: order %lld in place", kernels->name, (long long)count);
    }
}

static void
test_turns(void)
{
    const struct cpu_kernels *const kernels[] = {&tsvdi_kernels_generic, tsvdi_kernels()};

    for (int k = 0; k < 2; k++) {
        for (int64_t count = 1; count <= TURNS_MOST; count++) {
            for (int i = 0; i < 20; i++) {
                check_lift(kernels[k], count);
                check_normalize(kernels[k], count, i % 2 == 0 ? REAL(1) : REAL(-1));
            }
        }
        check_lift(kernels[k], 0);
    }
}

#endif
