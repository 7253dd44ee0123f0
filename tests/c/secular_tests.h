/*
 * Tests of secular.h with the CPU kernels that sum its terms: roots against bisection in long
 * double, weights against the z that they replace, vectors against orthogonality; included once
 * for each precision.
 */
#ifndef TSVD_TESTS_SECULAR_H
#define TSVD_TESTS_SECULAR_H

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "math/dc.h"
#include "math/secular.h"
#include "rotation_tests.h"

/* Up to SECULAR_SMALL every root is checked, and the vectors are made, at a cost of k^3. */
enum { SECULAR_ORDER = 600, SECULAR_SMALL = 40 };

struct secular_problem {
    const char *kind;
    int64_t k;
    real pole[SECULAR_ORDER], z[SECULAR_ORDER], square[SECULAR_ORDER];
};

/* Evaluations that roots took. */
struct secular_tally {
    int64_t roots, evaluations;
    int worst;
};

static const struct cpu_kernels *secular_kernels;

/* f at base + tau, and the sum of the magnitudes of its terms. */
static long double
exact_secular(const struct secular_problem *p, long double base, long double tau, long double *size)
{
    long double f = 1;

    *size = 1;
    for (int64_t j = 0; j < p->k; j++) {
        long double d = p->pole[j], z = p->z[j];
        long double term = z * z / (((d - base) - tau) * ((d + base) + tau));

        f += term;
        *size += fabsl(term);
    }
    return f;
}

/* The root as a distance from `base` between low and high, of one sign, by halving of exponents
   and then of mantissas. */
static long double
exact_root(const struct secular_problem *p, long double base, long double low, long double high)
{
    const long double least = fmaxl(fabsl(low), fabsl(high)) * 0x1p-2000L;

    low = low == 0 ? copysignl(least, high) : low;
    high = high == 0 ? copysignl(least, low) : high;
    for (int i = 0; i < 200; i++) {
        long double ratio = high / low, size;
        long double middle =
            ratio > 2 || ratio < 0.5L ? copysignl(sqrtl(low * high), low) : (low + high) / 2;

        if (middle == low || middle == high) {
            break;
        }
        *(exact_secular(p, base, middle, &size) < 0 ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

/* Solves for a root as the back ends do. */
static struct secular_root
solve_root(const struct secular_problem *p, int64_t i, real norm)
{
    struct secular_root r = secular_start(p->k, i, p->pole, norm);
    int placed = 0, done = 0;

    while (!done) {
        struct cpu_sums lanes;
        struct secular_sums sums;

        secular_split(&r, p->pole);
        lanes = secular_kernels->secular(secular_summed(&r, p->k), p->pole, p->square, r.base,
                                         r.tau, r.below, r.above);
        sums = (struct secular_sums){lanes.psi, lanes.psi_slope, lanes.phi, lanes.phi_slope};
        secular_add_last(&r, p->square, &sums);
        if (placed) {
            done = secular_step(&r, p->pole, sums);
        } else {
            secular_place(&r, p->pole, p->square, sums);
            placed = 1;
        }
    }
    return r;
}

/* One root: its bracket, and its error against what rounding of f allows. */
static void
check_root(const struct secular_problem *p, int64_t i, const struct secular_root *r,
           long double norm)
{
    const long double eps = (long double)R_EPS, tau = r->tau, base = r->base;
    const long double gap =
        i + 1 < p->k ? (long double)p->pole[i + 1] - p->pole[i] : sqrtl(norm) * (1 + 16 * eps);
    const int upper = r->origin == i + 1;
    long double exact, size, slope, error, allowed;

    CHECK(r->origin == i || (upper && i + 1 < p->k), "%s: the origin of root %lld", p->kind,
          (long long)i);
    CHECK(r->base == p->pole[r->origin], "%s: the base of root %lld", p->kind, (long long)i);
    CHECK(upper ? tau < 0 && -tau < gap : tau > 0 && tau < gap,
          "%s, k = %lld: root %lld at %Lg leaves its interval of %Lg", p->kind, (long long)p->k,
          (long long)i, tau, gap);
    exact = exact_root(p, base, upper ? -gap : 0, upper ? 0 : gap);
    slope = exact_secular(p, base, exact * (1 + 0x1p-20L), &size) -
            exact_secular(p, base, exact * (1 - 0x1p-20L), &size);
    slope /= exact * 0x1p-19L;
    (void)exact_secular(p, base, exact, &size);
    error = fabsl(tau - exact);
    allowed = 2 * eps * fabsl(exact) + 12 * eps * size / slope;
    CHECK(error <= allowed, "%s, k = %lld, %s: root %lld at %La is off by %.3Lg, allowed %.3Lg",
          p->kind, (long long)p->k, secular_kernels->name, (long long)i, tau, error, allowed);
    CHECK(error <= 8 * eps * (base + exact), "%s, k = %lld: root %lld is off by %.3Lg eps", p->kind,
          (long long)p->k, (long long)i, error / (eps * (base + exact)));
}

/* max |X X^T - I|, rows of x [k x k]. */
static long double
loss(int64_t k, const real *x)
{
    long double worst = 0;

    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j <= i; j++) {
            long double sum = i == j ? -1 : 0;

            for (int64_t l = 0; l < k; l++) {
                sum += (long double)x[i * k + l] * x[j * k + l];
            }
            worst = fmaxl(worst, fabsl(sum));
        }
    }
    return worst;
}

/* Vectors of the new weights: orthogonal, and M = U diag(sigma) V^T for the old ones. */
static void
check_vectors(const struct secular_problem *p, const struct secular_root *root, const real *weight,
              long double norm)
{
    const int64_t k = p->k;
    const long double unit = (long double)R_EPS * (8 + (long double)k) / 2;
    real *right = allocate((size_t)(k * k) * sizeof(real));
    real *left = allocate((size_t)(k * k) * sizeof(real));
    long double worst = 0, biggest = p->pole[k - 1] + sqrtl(norm);

    for (int64_t i = 0; i < k; i++) {
        secular_kernels->coefficients(k, 0, p->pole, weight, root[i].base, root[i].tau,
                                      right + i * k, left + i * k);
    }
    CHECK(loss(k, right) <= unit && loss(k, left) <= unit,
          "%s, k = %lld, %s: orthogonality %.3Lg and %.3Lg units", p->kind, (long long)k,
          secular_kernels->name, loss(k, right) / unit, loss(k, left) / unit);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < k; j++) {
            long double sum = i == 0   ? -(long double)p->z[j]
                              : i == j ? -(long double)p->pole[j]
                                       : 0;

            for (int64_t l = 0; l < k; l++) {
                sum += (long double)left[l * k + i] * ((long double)root[l].base + root[l].tau) *
                       right[l * k + j];
            }
            worst = fmaxl(worst, fabsl(sum));
        }
    }
    CHECK(worst <= unit * biggest, "%s, k = %lld, %s: M is off by %.3Lg units", p->kind,
          (long long)k, secular_kernels->name, worst / (unit * biggest));
    free(right);
    free(left);
}

/* The z for which the roots are exact, and how far that is from z. */
static void
check_weights(const struct secular_problem *p, const struct secular_root *root, long double norm)
{
    const int64_t k = p->k;
    const long double eps = (long double)R_EPS;
    real base[SECULAR_ORDER], tau[SECULAR_ORDER], weight[SECULAR_ORDER];
    long double change = 0;

    for (int64_t i = 0; i < k; i++) {
        base[i] = root[i].base;
        tau[i] = root[i].tau;
    }
    for (int64_t j = 0; j < k; j++) {
        real square =
            ((base[k - 1] - p->pole[j]) + tau[k - 1]) * ((base[k - 1] + p->pole[j]) + tau[k - 1]);
        long double d = p->pole[j], difference;
        long double exact = ((base[k - 1] - d) + tau[k - 1]) * ((base[k - 1] + d) + tau[k - 1]);

        square *= secular_kernels->ratios(j, p->pole[j], p->pole, base, tau);
        square *=
            secular_kernels->ratios(k - 1 - j, p->pole[j], p->pole + j + 1, base + j, tau + j);
        for (int64_t i = 0; i < k - 1; i++) {
            long double other = p->pole[i < j ? i : i + 1];

            exact *=
                ((base[i] - d) + tau[i]) * ((base[i] + d) + tau[i]) / ((other - d) * (other + d));
        }
        CHECK(fabsl(square - exact) <= (16 + (long double)k / 4) * eps * exact,
              "%s, k = %lld, %s: weight %lld", p->kind, (long long)k, secular_kernels->name,
              (long long)j);
        weight[j] = r_copysign(r_sqrt(square), p->z[j]);
        difference = (long double)weight[j] - p->z[j];
        change += difference * difference;
    }
    CHECK(sqrtl(change) <= (8 + (long double)k / 16) * eps * sqrtl(norm),
          "%s, k = %lld, %s: z changes by %.3Lg eps", p->kind, (long long)k, secular_kernels->name,
          sqrtl(change / norm) / eps);
    if (k <= SECULAR_SMALL) {
        check_vectors(p, root, weight, norm);
    }
}

static void
check_secular(struct secular_problem *p, struct secular_tally *tally)
{
    struct secular_root root[SECULAR_ORDER];
    long double norm = 0;
    real sum = 0;

    for (int64_t j = 0; j < p->k; j++) {
        p->square[j] = p->z[j] * p->z[j];
        sum += p->square[j];
        norm += (long double)p->z[j] * p->z[j];
    }
    for (int64_t i = 0; i < p->k; i++) {
        root[i] = solve_root(p, i, sum);
        if (p->k <= SECULAR_SMALL || i % 16 == 0 || i + 2 >= p->k) {
            check_root(p, i, &root[i], norm);
        }
        tally->roots++;
        tally->evaluations += root[i].evaluations;
        tally->worst = root[i].evaluations > tally->worst ? root[i].evaluations : tally->worst;
    }
    check_weights(p, root, norm);
}

/* Pole j > 0 and weight j of each kind; poles are put in order afterwards. */
static void
fill_secular(struct secular_problem *p, int kind)
{
    static const char *const name[] = {"ordinary",
                                       "poles of neighbouring numbers",
                                       "weights of all sizes",
                                       "poles of all sizes",
                                       "both of all sizes",
                                       "evenly spaced",
                                       "at the limits of deflation",
                                       "unequal pairs",
                                       "one large weight",
                                       "a least value far below"};
    const real floor = (real)DC_TOLERANCE * (R_EPS / 2);
    real last = 1;

    p->kind = name[kind];
    p->pole[0] = 0;
    for (int64_t j = 0; j < p->k; j++) {
        real pole = REAL(random_unit()) + floor, z = REAL(random_scaled(-3, 0));

        switch (kind) {
        case 1:
            pole = last += REAL(random_int(1, 4)) * R_EPS;
            break;
        case 3:
        case 4:
            pole = REAL(fabs(random_scaled(7 - R_DIGITS, 0)));
            break;
        case 5:
            pole = REAL(j) / REAL(p->k);
            z = 1 / r_sqrt(REAL(p->k));
            break;
        case 6:
            pole = last += floor * REAL(1 + (random_int(0, 3) == 0 ? 1000 : 0) * random_unit());
            z = floor * REAL(random_scaled(-DC_THRESHOLDS, random_int(0, 1) ? 1 : R_DIGITS - 7));
            break;
        case 7:
            pole = j % 2 ? last += REAL(1) / REAL(p->k) : last + 2 * R_EPS;
            z *= random_int(0, 1) ? REAL(1) : floor;
            break;
        case 8:
            z *= j == p->k / 2 ? REAL(1) : REAL(2) * floor;
            break;
        case 9:
            pole = j == 1 ? floor * (1 + pole) : pole;
            z = j == 0 ? floor : z;
            break;
        default:
            break;
        }
        if (kind == 2 || kind == 4) {
            z = REAL(random_scaled(-R_BIAS / 10, 0)); /* z^2 over 60 orders of magnitude, or 7 */
        }
        if (j > 0) {
            p->pole[j] = pole;
        }
        p->z[j] = z;
    }
    for (int64_t j = 1; j < p->k; j++) { /* insertion; equal ones are moved apart */
        real pole = p->pole[j];
        int64_t i = j;

        for (; i > 1 && p->pole[i - 1] > pole; i--) {
            p->pole[i] = p->pole[i - 1];
        }
        p->pole[i] = pole;
    }
    for (int64_t j = 1; j < p->k; j++) {
        p->pole[j] = r_max(p->pole[j], p->pole[j - 1] * (1 + R_EPS));
    }
}

enum { SECULAR_KINDS = 10 };

static void
test_secular(void)
{
    const struct cpu_kernels *const kernels[] = {&tsvdi_kernels_generic, tsvdi_kernels()};
    struct secular_problem *p = allocate(sizeof *p);

    for (int kind = 0; kind < SECULAR_KINDS; kind++) {
        struct secular_tally tally = {0, 0, 0};

        for (int round = 0; round < 64; round++) {
            secular_kernels = kernels[round % 2];
            p->k = round < 20 ? 2 + round / 2 % 2 : random_int(4, SECULAR_SMALL);
            p->k = round >= 62 ? SECULAR_ORDER - 1 - random_int(0, 16) : p->k;
            fill_secular(p, kind);
            check_secular(p, &tally);
        }
        CHECK(tally.evaluations <= 6 * tally.roots, "%s: %.2f evaluations for a root", p->kind,
              (double)tally.evaluations / (double)tally.roots);
        CHECK(tally.worst <= 32, "%s: a root took %d evaluations", p->kind, tally.worst);
    }
    free(p);
}

/* Where the first evaluation, at the middle between two poles, already finds the root. */
static void
test_secular_middle(void)
{
    const struct cpu_kernels *const kernels[] = {&tsvdi_kernels_generic, tsvdi_kernels()};
    struct secular_tally tally = {0, 0, 0};
    struct secular_problem *p = allocate(sizeof *p);

    for (int i = 0; i < 2; i++) {
        secular_kernels = kernels[i];
        p->kind = "the middle";
        p->k = 2;
        p->pole[0] = 0;
        p->pole[1] = 1;
        p->z[0] = 1;
        p->z[1] = REAL(1.5);
        check_secular(p, &tally);
        CHECK(solve_root(p, 0, REAL(3.25)).tau == REAL(0.5), "%g",
              (double)solve_root(p, 0, REAL(3.25)).tau);
    }
    free(p);
}

/* Where the square of tau underflows f is infinite, and that is no root. */
static void
test_secular_infinite(void)
{
    const real pole[] = {0, 1}, square[] = {REAL(0.25), REAL(0.25)};
    const struct secular_sums sums = {-REAL(INFINITY), -REAL(INFINITY), REAL(0.25), REAL(0.25)};
    struct secular_root r = secular_start(2, 0, pole, REAL(0.5));

    secular_place(&r, pole, square,
                  (struct secular_sums){REAL(-1) / 3, REAL(-1) / 3, REAL(1) / 3, REAL(1) / 3});
    r.tau = r_pow2(-R_BIAS / 2 - R_DIGITS - 1);
    CHECK(!secular_step(&r, pole, sums), "taken for a root");
    CHECK(r.low > 0 && r.tau > r.low, "the bracket moves to %g", (double)r.tau);
}

/* The search ends also if a pole or a weight is NaN or infinite. */
static void
test_secular_ends(void)
{
    const real bad[] = {REAL(NAN), REAL(INFINITY), -REAL(INFINITY)};
    struct secular_problem *p = allocate(sizeof *p);

    secular_kernels = tsvdi_kernels();
    for (int b = 0; b < 3; b++) {
        for (int64_t at = 0; at < 2 * 9; at++) {
            p->k = 9;
            fill_secular(p, 0);
            *(at < 9 ? &p->pole[at] : &p->z[at - 9]) = bad[b];
            for (int64_t j = 0; j < p->k; j++) {
                p->square[j] = p->z[j] * p->z[j];
            }
            for (int64_t i = 0; i < p->k; i++) {
                CHECK(solve_root(p, i, bad[b]).evaluations <= SECULAR_EVALUATIONS,
                      "%g at %lld: root %lld", (double)bad[b], (long long)at, (long long)i);
            }
        }
    }
    free(p);
}

#endif
