/*
 * Host tests of the device's search for values: the counts of csrc/math/sturm_polynomial.h and the
 * brackets of csrc/math/multisection.h, against counts in long double; included once for each
 * precision.
 */
#ifndef TSVD_TESTS_BRACKET_H
#define TSVD_TESTS_BRACKET_H

#include "check.h"
#include "families.h"
#include "math/multisection.h"
#include "math/sturm_polynomial.h"

enum { BRACKET_ORDER = 100, BRACKET_EACH = 7, BRACKET_ROUNDS = 2 * R_BITS + 40 };

/* A matrix ready for plain counts: from the top, and its entries from the bottom. */
struct plain_matrix {
    int64_t n;
    struct matrix_size size;
    struct matrix_scale scale;
    double square[2][2 * BRACKET_ORDER];
    uint32_t event[2][2 * BRACKET_ORDER / GROUP + STRETCH];
};

static void
prepare_plain(int64_t n, const real *d, const real *e, struct plain_matrix *m)
{
    m->n = n;
    m->size.largest = m->size.bound = 0;
    for (int64_t k = 0; k < 2 * n - 1; k++) {
        matrix_size_add(&m->size, n, d, e, k);
    }
    m->scale = matrix_scale_of(m->size);
    for (int64_t k = 0; k < 2 * n; k++) {
        m->square[0][k] = plain_square(n, d, e, k, m->scale);
        m->square[1][k] = plain_square(n, d, e, k < n - 1 ? 2 * n - 2 - k : 2 * n, m->scale);
    }
    for (int side = 0; side < 2; side++) {
        for (int64_t k = 0; k < 2 * n; k += STRETCH) {
            plain_events(n, k, m->square[side] + k, m->event[side] + k / GROUP);
        }
    }
}

static struct plain
pass_plain(const struct plain_matrix *m, int side, int64_t entries, real_int at)
{
    struct plain x;

    plain_start(&x, r_from_bits(at), m->scale);
    for (int64_t k = 0; k < entries; k++) {
        const uint32_t event = m->event[side][k / GROUP] >> k % GROUP;

        plain_pass(&x, (int)k, m->square[side][k], event & RESTART, (event & RESCALE) != 0);
    }
    return x;
}

static struct evaluation
evaluate_plain(const struct plain_matrix *m, real_int at)
{
    struct evaluation found = {.at = at};
    struct plain x = pass_plain(m, 0, 2 * m->n, at);

    found.above = x.above;
    found.value = plain_polynomial(&x);
    found.exponent = (int32_t)x.exponent;
    return found;
}

/* The same from both ends. */
static struct evaluation
evaluate_halves(const struct plain_matrix *m, real_int at)
{
    struct evaluation found = {.at = at};
    struct plain x = pass_plain(m, 0, m->n - 1, at);
    const struct plain y = pass_plain(m, 1, m->n - 1, at);

    found.above = x.above + y.above;
    found.above += plain_join(&x, y, m->square[0][m->n - 1], m->n);
    found.value = plain_polynomial(&x);
    found.exponent = (int32_t)x.exponent;
    return found;
}

/* The cut of bracket v.  The first cut of all values has a point for every other one. */
static struct bracket_grid
cut_of(const struct bracket *b, int64_t each, struct bracket_range range)
{
    struct bracket_grid cut = bracket_cut(b, each, range);

    if (cut.fresh && each == 1) {
        cut.points = (cut.points + 1) / 2;
    }
    return cut;
}

/* Rounds of `each` points per value for the values first .. last - 1, until all their brackets are
   closed; returns the number of rounds.  around: guesses also use evaluations around brackets. */
static int
narrow_all(const struct plain_matrix *m, struct bracket_range range, int64_t first, int64_t last,
           int64_t each, int around, struct bracket *b)
{
    static struct evaluation at[BRACKET_ORDER * BRACKET_EACH], beyond[2 * BRACKET_ORDER];
    int rounds = 0, open = 1;

    for (int64_t i = 0; i < 2 * BRACKET_ORDER; i++) {
        beyond[i].value = (double)NAN;
    }
    for (; open && rounds < BRACKET_ROUNDS; rounds++) {
        open = 0;
        for (int64_t v = first; v < last; v++) {
            struct bracket_grid cut;

            if (!bracket_is_closed(&b[v], range)) {
                cut = cut_of(&b[v], each, range);
                for (int64_t i = 0; i < each && (v - b[v].first) * each + i < cut.points; i++) {
                    at[v * each + i] =
                        evaluate_plain(m, bracket_point(&cut, (v - b[v].first) * each + i));
                }
            }
        }
        for (int64_t v = first; v < last; v++) {
            if (!bracket_is_closed(&b[v], range)) {
                const struct bracket_grid cut = cut_of(&b[v], each, range);

                bracket_narrow(&b[v], v, &cut, at + b[v].first * each, range.eps,
                               around ? beyond + 2 * v : NULL);
                open |= !bracket_is_closed(&b[v], range);
            }
        }
        for (int64_t v = first; v < last && around; v++) {
            if (!bracket_is_closed(&b[v], range)) {
                bracket_guess_around(b + first, beyond + 2 * first, v - first, last - first,
                                     range.eps);
            }
        }
    }
    return rounds;
}

/* The values first .. last - 1 lie where plain counts may have them, to the bound on their error.
 */
static void
check_brackets(const char *kind, int64_t n, const real *d, const real *e, int64_t first,
               int64_t last, int64_t each, const real *hint)
{
    static struct plain_matrix m;
    struct bracket b[BRACKET_ORDER];
    long double exact_d[BRACKET_ORDER], exact_e[BRACKET_ORDER];
    struct bracket_range range;
    int rounds;

    for (int64_t i = 0; i < n; i++) {
        exact_d[i] = fabsl((long double)d[i]);
        exact_e[i] = i < n - 1 ? fabsl((long double)e[i]) : 0;
    }
    prepare_plain(n, d, e, &m);
    range.floor = m.scale.floor;
    range.top = m.scale.top;
    range.eps = 0;
    for (int64_t v = first; v < last; v++) {
        b[v] = bracket_start(v, hint != NULL ? &hint[v] : NULL, first, last, range);
    }
    rounds = narrow_all(&m, range, first, last, each, each % 2 == 1, b);
    CHECK(rounds < BRACKET_ROUNDS, "%s, n = %lld: %d rounds", kind, (long long)n, rounds);
    for (int64_t v = first; v < last; v++) {
        const real found = bracket_value(&b[v]);
        const int infinite = !r_isfinite(found); /* infinity: the next power of two and above */
        const long double s = infinite ? ldexpl(1, R_BIAS + 1) : (long double)found;
        const long double bound = r_min(m.size.bound, R_LARGEST);
        const long double error = 0.75L * 0x1p-52L * 2 * bound + 1.01L * (long double)R_EPS * s +
                                  (long double)r_from_bits(1);

        if (!b[v].low_sure) { /* below the reach of plain counts */
            CHECK(count_above(n, exact_d, exact_e,
                              (long double)r_from_bits(m.scale.floor) + error) <= v,
                  "%s, n = %lld: value %lld is not below the floor", kind, (long long)n,
                  (long long)v);
            continue;
        }
        CHECK((s - error <= 0 || count_above(n, exact_d, exact_e, s - error) > v) &&
                  (infinite || count_above(n, exact_d, exact_e, s + error) <= v),
              "%s, n = %lld, values %lld to %lld, %lld points%s: value %lld is %La", kind,
              (long long)n, (long long)first, (long long)last, (long long)each,
              hint != NULL ? ", hints" : "", (long long)v, s);
    }
    if (hint == NULL) { /* the values found are good hints */
        real near[BRACKET_ORDER];
        const real error = R_EPS * r_min(r_from_bits(m.scale.top - 1), R_LARGEST);

        for (int64_t v = first; v < last; v++) {
            near[v] = b[v].low_sure ? bracket_value(&b[v]) : REAL(0);
            near[v] = r_min(r_max(near[v] + (real)random_int(-9, 9) * error, 0), R_LARGEST);
            near[v] = v > first ? r_min(near[v], near[v - 1]) : near[v];
        }
        check_brackets(kind, n, d, e, first, last, each, near);
    }
}

/* Rules that the CPU's search follows too. */
static void
test_bracket_rules(void)
{
    const real_int one = r_bits(1), infinity = R_INFINITY_BITS;
    const struct bracket_range range = {3, one, 0};
    struct bracket_ends ends;

    CHECK(bracket_is_narrow(one, one + 1, 0) && !bracket_is_narrow(one, one + 2, 0), "neighbours");
    CHECK(bracket_is_narrow(r_bits(1), r_bits(REAL(1.5)), REAL(0.5)), "at a width of eps");
    CHECK(!bracket_is_narrow(r_bits(1), r_bits(REAL(1.75)), REAL(0.5)), "wider than eps");
    CHECK(!bracket_is_narrow(infinity - 2, infinity, R_LARGEST), "infinity has no width");
    CHECK(bracket_middle(one, one + 1) == one && bracket_middle(0, 9) == 4, "the middle");
    CHECK(bracket_end_above(5, 2, 10) == 7 && bracket_end_above(5, 9, 10) == 10, "an upper end");
    CHECK(bracket_end_below(5, 2, 1) == 3 && bracket_end_below(5, 9, 1) == 1, "a lower end");
    CHECK(bracket_reach_further(3, 8) == 24 && bracket_reach_further(infinity / 2, 8) == infinity,
          "the reach");
    ends = bracket_within(-5, 20, range);
    CHECK(ends.low == 3 && ends.high == 20 && !ends.low_sure && !ends.high_sure, "at the floor");
    ends = bracket_within((int64_t)one + 7, (int64_t)one + 9, range);
    CHECK(ends.low == one - 1 && ends.high == one && !ends.low_sure && ends.high_sure, "above top");
    ends = bracket_within(-5, -4, (struct bracket_range){0, one, 0});
    CHECK(ends.low == 0 && ends.high == 1 && ends.low_sure && !ends.high_sure, "below zero");
}

static void
test_brackets(void)
{
    real d[BRACKET_ORDER], e[BRACKET_ORDER];

    test_bracket_rules();
    for (int round = 0; round < 60; round++) {
        const int64_t n = round % 5 ? random_int(1, BRACKET_ORDER) : 1 + round % 3;

        for (int k = 0; k < FAMILIES; k++) {
            const int64_t first = random_int(0, (int)n - 1);

            draw_matrix(families[k], n, d, e);
            check_brackets(families[k].name, n, d, e, 0, n, random_int(1, BRACKET_EACH), NULL);
            check_brackets(families[k].name, n, d, e, first, random_int((int)first + 1, (int)n),
                           random_int(1, BRACKET_EACH), NULL);
        }
    }
}

/* Values that are numbers are found as they are. */
static void
test_brackets_at_values(void)
{
    const real d[] = {3, 1, 2, 0, 2, 5, 1}, e[] = {0, 0, 0, 0, 0, 0};
    const real expected[] = {5, 3, 2, 2, 1, 1};
    struct plain_matrix m;
    struct bracket b[7];
    struct bracket_range range;

    prepare_plain(7, d, e, &m);
    range.floor = m.scale.floor;
    range.top = m.scale.top;
    range.eps = 0;
    for (int64_t each = 1; each <= BRACKET_EACH; each++) {
        for (int v = 0; v < 7; v++) {
            b[v] = bracket_from_scratch(0, 7, range);
        }
        (void)narrow_all(&m, range, 0, 7, each, each % 2 == 1, b);
        for (int v = 0; v < 6; v++) {
            CHECK(bracket_value(&b[v]) == expected[v], "%lld points: value %d is %a",
                  (long long)each, v, (double)bracket_value(&b[v]));
        }
        CHECK(!b[6].low_sure, "%lld points: zero is not below the floor", (long long)each);
    }
}

/* The polynomial of a matrix with zeros at a shift, in long double: the product over its parts,
   times sigma for each of odd order. */
static long double
exact_polynomial(const struct plain_matrix *m, long double sigma)
{
    long double product = 1, r = sigma, before = 1;
    int odd = 1;

    for (int64_t k = 0; k < 2 * m->n; k++, odd = !odd) {
        const long double next = sigma * r - (long double)m->square[0][k] * before;

        if (m->square[0][k] == 0 || k == 2 * m->n - 1) {
            product *= odd ? sigma * r : r;
            before = 1;
            r = sigma;
            odd = 0; /* of one row, after the loop's step */
        } else {
            before = r;
            r = next;
        }
    }
    return product;
}

/* The polynomial that guides guesses does not depend on where parts begin. */
static void
test_plain_polynomial(void)
{
    enum { N = 12 };
    real d[N], e[N];
    struct plain_matrix m;

    for (int round = 0; round < 500; round++) {
        const int64_t n = random_int(1, N);
        long double ratio = 0;

        for (int64_t i = 0; i < n; i++) {
            d[i] = random_int(0, 3) ? (real)random_unit() : 0;
            e[i] = random_int(0, 3) ? (real)random_unit() : 0;
        }
        d[random_int(0, (int)n - 1)] = 1;
        prepare_plain(n, d, e, &m);
        for (int i = 0; i < 4; i++) {
            const real at = REAL(0.3) + REAL(0.57) * (real)i;
            const struct evaluation found = evaluate_plain(&m, r_bits(at));
            const long double sigma = (long double)at * m.scale.down[0] * m.scale.down[1];
            const long double here = ldexpl((long double)found.value, found.exponent);
            const long double exact = exact_polynomial(&m, sigma);
            const struct evaluation halves = evaluate_halves(&m, r_bits(at));
            const long double other = ldexpl((long double)halves.value, halves.exponent);
            const long double error = fabsl(here - ratio * exact);

            if (i == 0) {
                ratio = here / exact;
            }
            CHECK(i == 0 || error <= 1e-9L * fabsl(ratio) * powl(4, (long double)n),
                  "n = %lld, shift %a: %Lg, not %Lg", (long long)n, (double)at, here,
                  ratio * exact);
            CHECK(halves.above == found.above && fabsl(other - here) <= 1e-9L * fabsl(here),
                  "n = %lld, shift %a: from both ends %lld and %Lg, not %lld and %Lg", (long long)n,
                  (double)at, (long long)halves.above, other, (long long)found.above, here);
        }
    }
}

/* Counts from both ends over the whole range of the plain form, with zeros, against long double. */
static void
test_halves(void)
{
    real d[BRACKET_ORDER], e[BRACKET_ORDER];
    long double exact_d[BRACKET_ORDER], exact_e[BRACKET_ORDER];
    static struct plain_matrix m;

    for (int round = 0; round < 4000; round++) {
        const int64_t n = random_int(1, round % 4 ? 12 : BRACKET_ORDER);
        const int deep = TSVD_SINGLE ? -100 : -425;
        const double scale = ldexp(1, random_int(deep, 0));
        real at;

        for (int64_t i = 0; i < n; i++) {
            d[i] = random_int(0, 4) ? (real)random_scaled(deep, 0) : 0;
            e[i] = random_int(0, 4) ? (real)random_scaled(deep, 0) : 0;
        }
        d[random_int(0, (int)n - 1)] = 1;
        for (int64_t i = 0; i < n; i++) {
            exact_d[i] = fabsl((long double)d[i]);
            exact_e[i] = i < n - 1 ? fabsl((long double)e[i]) : 0;
        }
        prepare_plain(n, d, e, &m);
        at = (real)(scale * (1 + random_unit()));
        if (r_bits(at) >= m.scale.floor && r_bits(at) < m.scale.top) {
            const long double error = 1e-13L * (long double)at;
            const int64_t most = count_above(n, exact_d, exact_e, (long double)at - error);
            const int64_t least = count_above(n, exact_d, exact_e, (long double)at + error);
            const int64_t whole = evaluate_plain(&m, r_bits(at)).above;
            const int64_t halves = evaluate_halves(&m, r_bits(at)).above;

            CHECK(whole >= least && whole <= most && halves >= least && halves <= most,
                  "n = %lld, shift %a: %lld, from both ends %lld, must be %lld to %lld",
                  (long long)n, (double)at, (long long)whole, (long long)halves, (long long)least,
                  (long long)most);
        }
    }
}

/* Brackets that plain counts left below their floor: the value may lie a little above the floor.
   Below the least number there is only zero, and nothing to search for. */
static void
test_open_down(void)
{
    const struct bracket_range range = {0, r_bits(REAL(4.)), 0};
    const struct bracket_range loose = {0, range.top, REAL(1e-3)};
    const real_int floors[] = {1, r_bits(REAL(0x1p-100))};

    for (int i = 0; i < 2; i++) {
        const struct bracket_range plain = {floors[i], range.top, 0};
        struct bracket b = bracket_from_scratch(0, 1, plain);

        b.high = floors[i];
        b.high_sure = 1;
        b.low_sure = 0;
        CHECK(bracket_is_closed(&b, plain), "floor %d: below it there is nothing to learn", i);
        bracket_open_down(&b, range);
        CHECK(b.low == 0 && b.low_sure, "floor %d: it holds zero", i);
        CHECK(bracket_is_closed(&b, range) == (i == 0), "floor %d: open or closed", i);
        CHECK(i == 0 ? b.high == 1 : b.high > floors[i] && !b.high_sure, "floor %d: its end", i);
        b = bracket_from_scratch(0, 1, loose);
        b.high = floors[i];
        b.high_sure = 1;
        bracket_open_down(&b, loose);
        CHECK(b.high == floors[i] && bracket_is_closed(&b, loose), "floor %d: within eps", i);
    }
}

/* The floor of twofold counts lies below that of plain counts by more than plain counts may err,
   but in the same power of two or the next. */
static void
test_twofold_floor(void)
{
    const real_int floors[] = {1, 5, r_bits(REAL(0x1p-100)), r_bits(REAL(0x1p-10))};

    for (int i = 0; i < 4; i++) {
        const struct matrix_scale m = {r_bits(REAL(4.)), floors[i], {1, 1}};
        const real_int floor = twofold_floor(m);

        CHECK(TSVD_SINGLE || i < 2 ? floor == floors[i]
                                   : floor < floors[i] - 1000000 * (real_int)2 &&
                                         r_from_bits(floor) > r_from_bits(floors[i]) / 2,
              "floor %d", i);
    }
}

/* Equal entries whose squares round opposite ways: plain counts may be off by more than the bound
   on values, and must say so. */
static void
test_plain_is_exact(void)
{
#if !TSVD_SINGLE
    real d[16], e[16];
    struct plain_matrix m;

    for (int i = 0; i < 16; i++) {
        d[i] = 0x1.0077c1b165fd1p-2;
        e[i] = 0x1.007d00e2d25d4p+0;
    }
    prepare_plain(16, d, e, &m);
    CHECK(!plain_is_exact(16, r_bits(2.18e-10), m.scale), "2.18e-10 is not sure");
    CHECK(plain_is_exact(16, r_bits(REAL(0.9)), m.scale), "0.9 is sure");
#endif
}

#endif
