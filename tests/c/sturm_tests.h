/*
 * Tests of sturm.h: all forms of the recurrence one shift at a time, and the CPU
 * kernels, against counts in long double; included once for each precision.
 */
#ifndef TSVD_TESTS_STURM_H
#define TSVD_TESTS_STURM_H

#include "backend/ops.h"
#include "check.h"
#include "cpu/kernels/kernels.h"
#include "families.h"
#include "math/sturm.h"

enum { STURM_ORDER = 40, STURM_SHIFTS = 150 };

enum sturm_form { STURM_PLAIN, STURM_TWOFOLD, STURM_WIDE };

static int64_t
scalar_count(const struct sturm *m, real sigma, enum sturm_form form)
{
    const real shift = sturm_scaled_shift(sigma, m->scale_down);
    real r = shift, before = 1;
    real_int twos;
    num_small above = 0;
    struct sturm_twofold t = sturm_twofold_start(shift, 1);
    struct sturm_extended y = {.mantissa = 1};
    int64_t k = 0;

    y.sigma_square = sturm_extended_shift(sigma, &y.sigma_rest, &twos);
    y.sigma_twos = (num_small)twos;
    for (int64_t i = 0; i < m->chunks; i++) {
        const int restart = m->chunk[i].restart;

        for (; k < m->chunk[i].end; k++) {
            if (form == STURM_WIDE) {
                sturm_extended_step(m->extended_square[k], m->extended_rest[k],
                                    m->extended_inverse[k], m->extended_twos[k], &y, &above);
            } else if (form == STURM_TWOFOLD) {
                sturm_twofold_step(shift, m->square[k], m->square_rest[k], &t, &above);
            } else {
                sturm_plain_step(shift, m->square[k], &r, &before, &above);
            }
        }
        if (form == STURM_WIDE && restart) {
            sturm_extended_restart(&y, &above);
        } else if (form == STURM_TWOFOLD && restart) {
            sturm_twofold_restart(shift, 1, &t, &above);
        } else if (form == STURM_TWOFOLD) {
            sturm_twofold_rescale(1, &t);
        } else if (form == STURM_PLAIN && restart) {
            sturm_plain_restart(shift, &r, &before, &above);
        } else if (form == STURM_PLAIN) {
            sturm_plain_rescale(&r, &before);
        }
    }
    return above;
}

/* The shift at which a count decides whether a value is given as x or more. */
static long double
exact_shift(real x)
{
    int twice;
    const long double shift = r_shift(x, &twice);

    return ldexpl(shift, twice);
}

/* A plain count is right if it is exact for a shift changed by a few eps an entry, the other forms
   for a shift changed by a small part of its last place (which is all that long double resolves
   besides its own rounding). */
static void
check_count(const char *form, const char *kind, int64_t n, const long double *d,
            const long double *e, real sigma, int64_t above, int exact)
{
    long double slack =
        exact ? 0.05L * (long double)R_EPS : (4 + 0.5L * (long double)n) * (long double)R_EPS;
    const long double shift = exact_shift(sigma);
    int64_t most = count_above(n, d, e, shift * (1 - slack));
    int64_t least = count_above(n, d, e, shift * (1 + slack));

    CHECK(least <= above && above <= most, "%s, %s, n = %lld: %lld above %a, must be %lld to %lld",
          form, kind, (long long)n, (long long)above, (double)sigma, (long long)least,
          (long long)most);
}

static void
check_counts(const char *kind, int64_t n, const real *d, const real *e)
{
    long double exact_d[STURM_ORDER], exact_e[STURM_ORDER];
    real sigma[STURM_SHIFTS];
    int64_t above[STURM_SHIFTS];
    void *work = allocate(tsvdi_sturm_bytes(n));
    const struct cpu_kernels *kernels[] = {&tsvdi_kernels_generic, tsvdi_kernels()};
    struct sturm matrix;

    for (int64_t i = 0; i < n; i++) {
        exact_d[i] = d[i];
        exact_e[i] = i < n - 1 ? e[i] : 0;
    }
    tsvdi_sturm_prepare(n, d, e, work, &matrix);
    for (int i = 0; i < STURM_SHIFTS; i++) {
        /* Entries themselves, their neighbours, and anything else. */
        real near =
            r_abs(i % 2 || n == 1 ? d[random_int(0, (int)n - 1)] : e[random_int(0, (int)n - 2)]);

        sigma[i] = i % 3 == 0 ? near : i % 3 == 1 ? near * REAL(0.5 + random_unit()) : REAL(0);
        if (!(sigma[i] > 0)) {
            sigma[i] = REAL(fabs(random_scaled(LOWEST_EXPONENT, R_BIAS - 1)));
        }
        if (r_bits(sigma[i]) >= matrix.top) { /* all values are below: no count is asked there */
            sigma[i] = r_from_bits(matrix.top - 1);
        }
    }
    for (int k = 0; k < 2; k++) {
        for (int exact = 0; exact < 2; exact++) {
            kernels[k]->count(&matrix, exact, STURM_SHIFTS, sigma, above);
            for (int i = 0; i < STURM_SHIFTS; i++) {
                check_count(kernels[k]->name, kind, n, exact_d, exact_e, sigma[i], above[i], exact);
            }
        }
    }
    for (int i = 0; i < STURM_SHIFTS; i++) {
        check_count("wide", kind, n, exact_d, exact_e, sigma[i],
                    scalar_count(&matrix, sigma[i], STURM_WIDE), 1);
        if (sigma[i] >= matrix.plain_from) {
            check_count("plain", kind, n, exact_d, exact_e, sigma[i],
                        scalar_count(&matrix, sigma[i], STURM_PLAIN), 0);
            check_count("twofold", kind, n, exact_d, exact_e, sigma[i],
                        scalar_count(&matrix, sigma[i], STURM_TWOFOLD), 1);
        }
    }
    CHECK(matrix.top > R_INFINITY_BITS ||
              count_above(n, exact_d, exact_e, exact_shift(r_from_bits(matrix.top))) == 0,
          "%s, n = %lld: top is too low", kind, (long long)n);
    free(work);
}

/* A value equal to sigma counts as >= sigma: diagonal matrices, where no rounding is. */
static void
test_sturm_at_values(void)
{
    const real d[] = {3, 1, 2, 0, 2, 5, 1}, e[] = {0, 0, 0, 0, 0, 0};
    const real sigma[] = {1, REAL(1.5), 2, REAL(2.5), 3, 4, 5};
    const int64_t expected[] = {6, 4, 4, 2, 2, 1, 1};
    const int64_t n = 7;
    int64_t above[7];
    void *work = allocate(tsvdi_sturm_bytes(n));
    struct sturm matrix;

    tsvdi_sturm_prepare(n, d, e, work, &matrix);
    tsvdi_kernels()->count(&matrix, 1, n, sigma, above);
    for (int i = 0; i < 7; i++) {
        CHECK(above[i] == expected[i], "kernels: %lld above %g", (long long)above[i],
              (double)sigma[i]);
        for (int form = STURM_PLAIN; form <= STURM_WIDE; form++) {
            CHECK(scalar_count(&matrix, sigma[i], (enum sturm_form)form) == expected[i],
                  "form %d, at %g", form, (double)sigma[i]);
        }
    }
    free(work);
}

/* The shift from which on a value counts as a number. */
static void
test_shifts(void)
{
    const real least = r_from_bits(1), normal = r_from_bits(R_NORMAL_BITS);
    const real infinity = r_from_bits(R_INFINITY_BITS);

    CHECK(exact_shift(least) == (long double)least / 2, "half of the smallest number");
    CHECK(exact_shift(r_from_bits(7)) == 6.5L * (long double)least, "half a step below");
    CHECK(exact_shift(normal) == (long double)normal - (long double)least / 2, "as below");
    CHECK(exact_shift(r_from_bits(R_NORMAL_BITS + 1)) == (long double)normal + (long double)least,
          "a normal number itself");
    CHECK(exact_shift(R_LARGEST) == (long double)R_LARGEST, "the largest number itself");
    CHECK(exact_shift(infinity) == ldexpl(1, R_BIAS + 1), "the next power of two");
}

static void
test_sturm(void)
{
    real d[STURM_ORDER], e[STURM_ORDER];

    test_shifts();
    for (int round = 0; round < 150; round++) {
        int64_t n = round % 5 ? random_int(1, STURM_ORDER) : 1 + round % 3;

        for (int k = 0; k < FAMILIES; k++) {
            const int i = random_int(0, (int)n - 1);

            draw_matrix(families[k], n, d, e);
            d[i] = d[i] != 0 ? d[i] : REAL(random_scaled(families[k].low, families[k].high));
            check_counts(families[k].name, n, d, e);
        }
        for (int64_t i = 0; i < n; i++) { /* eigenvalues that are numbers: exact zeros occur */
            d[i] = REAL(random_int(0, 2));
            e[i] = REAL(random_int(0, 1));
        }
        d[0] = 1;
        check_counts("small integers", n, d, e);
    }
}

#endif
