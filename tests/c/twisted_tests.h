/*
 * Tests of pair.h, twisted.h and probe.h: pairs against arithmetic of more digits; vectors that are
 * made one value at a time, as a thread of a GPU does, against T in that arithmetic, and bit for
 * bit against the CPU kernels; included once for each precision.
 */
#ifndef TSVD_TESTS_TWISTED_H
#define TSVD_TESTS_TWISTED_H

#include "check.h"
#include "cpu/kernels/kernels.h"
#include "math/probe.h"
#include "math/twisted.h"

#ifdef __SIZEOF_FLOAT128__
typedef __float128 exact;
#else
typedef long double exact; /* of 113 bits on the other machines */
#endif

static exact
exact_of(pair x)
{
    return (exact)pair_high(x) + (exact)pair_low(x);
}

static exact
magnitude(exact x)
{
    return x < 0 ? -x : x;
}

static pair
random_pair(void)
{
    const double high = random_scaled(-3, 3);

    return pair_of(high, high * random_scaled(-60, -54));
}

static void
test_pairs(void)
{
    const exact share = 0x1p-100;

    for (int i = 0; i < 20000; i++) {
        const pair x = random_pair(), y = random_pair(), z = random_pair();
        const double a = random_scaled(-3, 3);
        double square, rest, sum_rest;
        const double b = twisted_entry((double)REAL(a), &square, &rest);
        const double sum = wide_two_sum(pair_high(x), a, &sum_rest);
        const exact quotient = ((exact)square + rest) / exact_of(y);
        const pair difference = pair_minus_quotient(x, square, rest, y, wide_inverse(pair_high(y)));
        const exact size = magnitude(exact_of(x)) + magnitude(quotient);
        const exact excess = exact_of(x) + exact_of(y) - exact_of(z);

        CHECK((exact)sum + sum_rest == (exact)pair_high(x) + a, "%a + %a", pair_high(x), a);
        CHECK((exact)square + rest == (exact)b * b, "the square of %a", b);
        CHECK(magnitude(exact_of(pair_add(x, a)) - (exact_of(x) + a)) <=
                  share * (magnitude(exact_of(x)) + magnitude((exact)a)),
              "%a + %a", pair_high(x), a);
        CHECK(magnitude(exact_of(difference) - (exact_of(x) - quotient)) <= share * size,
              "%a - %a / %a", pair_high(x), square, pair_high(y));
        CHECK(magnitude((exact)pair_excess(x, y, z) - excess) <=
                  0x1p-52 * magnitude(excess) +
                      share * (magnitude(exact_of(x)) + magnitude(exact_of(y)) +
                               magnitude(exact_of(z))),
              "%a + %a - %a", pair_high(x), pair_high(y), pair_high(z));
    }
}

static void
test_twisted_rules(void)
{
    struct twisted_minors p = {0x1p-300, 0x1.8p-310};

    CHECK(twisted_minors_rescale(&p) == -300 && p.now == 1 && p.before == 0x1.8p-10, "%a", p.now);
    CHECK(twisted_stride(1) == TWISTED_STRIDE, "%lld", (long long)twisted_stride(1));
    for (int power = 1; power <= TWISTED_RANGE; power++) {
        const int64_t stride = twisted_stride(ldexp(1, -power));

        CHECK(stride >= 1 && stride * (power + 3) + 2 * (power + 3) <= TWISTED_BUDGET,
              "2^-%d: %lld", power, (long long)stride);
    }
    CHECK(twisted_key(1.5, 10) > twisted_key(1.25, 10) &&
              twisted_key(1, 11) > twisted_key(1.9, 10) &&
              twisted_key(1, -4000000) < twisted_key(0x1p-600, 0),
          "the order of keys");
    CHECK(twisted_weight(10, 10) == 1 && twisted_weight(10, 0) == twisted_weight(10, 20) &&
              twisted_weight(10, 5) < 1,
          "weights");
    for (int scale = -100; scale <= 100; scale += 50) {
        const real there = REAL(ldexp(1, scale)), before = r_from_bits(r_bits(there) - 1);

        CHECK(twisted_value(1, 0, scale) == there && twisted_value(1, -0x1p-100, scale) == there &&
                  twisted_value(1, 0x1p-60, scale) == there,
              "the value at 2^%d", scale);
        CHECK(twisted_value(1 - 0x1p-30, 0, scale) ==
                      (TSVD_SINGLE ? before : there * REAL(1 - 0x1p-30)) &&
                  twisted_value(1, -0x1p-54, scale) == (TSVD_SINGLE ? there : before),
              "the value below 2^%d", scale);
    }
    CHECK(twisted_value(0x1.8p-100, 0, TSVD_SINGLE ? -47 : -972) == r_from_bits(6) &&
              twisted_value(0x1.7p-100, 0, TSVD_SINGLE ? -49 : -974) == r_from_bits(1),
          "the values below the least normal number");
    CHECK(twisted_value(2 - 0x1p-52, 0, R_BIAS) == R_LARGEST, "the value below infinity");
    CHECK(twisted_accepts(10, 0, 1, 1, 1.2, 1) && !twisted_accepts(10, 0, 1, 1, 1.3, 1) &&
              !twisted_accepts(10, NAN, 1, 1, 1, 1) && !twisted_accepts(10, 0, NAN, 1, 1, 1) &&
              !twisted_accepts(10, 0, 1.1, 1, 1, 1) &&
              !twisted_accepts(10, (double)R_EPS, 1, 1, 1, 1) &&
              twisted_is_accurate(10, 0, -0x1p-33, 0x1p-10) &&
              !twisted_is_accurate(10, 0, -0x1p-32, 0x1p-10) &&
              !twisted_is_accurate(10, (double)R_EPS, 0, 1) &&
              !twisted_is_accurate(10, NAN, 0, 1) && !twisted_is_accurate(10, 0, NAN, 1),
          "what is accepted");
}

/* ---- vectors ---- */

enum { TWISTED_ORDER = 60 };

struct twisted_problem {
    struct twisted_matrix m;
    double b[2 * TWISTED_ORDER], square[2 * TWISTED_ORDER], rest[2 * TWISTED_ORDER];
};

static void
twisted_prepare(int64_t n, const double *b, struct twisted_problem *p)
{
    double least = 2;

    for (int64_t k = 0; k < 2 * n - 1; k++) {
        p->b[k] = twisted_entry(b[k], &p->square[k], &p->rest[k]);
        least = fmin(least, fabs(b[k]));
    }
    p->m = (struct twisted_matrix){n, p->b, p->square, p->rest, twisted_stride(least)};
}

/* How many values are above a shift. */
static int64_t
twisted_above(const struct twisted_problem *p, double x)
{
    struct twisted_minors q = twisted_minors_begin(x);
    int64_t above = 0;

    for (int64_t k = 0; k < 2 * p->m.n - 1; k++) {
        const int before = signbit(q.now) != 0;

        twisted_minors_step(x, p->square[k], &q);
        above += (signbit(q.now) != 0) != before;
        if (k % p->m.stride == 0) {
            (void)twisted_minors_rescale(&q);
        }
    }
    return above;
}

/* Value j, by halving. */
static double
twisted_find(const struct twisted_problem *p, int64_t j)
{
    double low = TWISTED_LEAST, high = 4;

    for (int i = 0; i < 400; i++) {
        const double middle = high > 4 * low ? sqrt(low) * sqrt(high) : (low + high) / 2;

        if (twisted_above(p, middle) > j) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The row with the largest minors; compares as the kernels do. */
static int64_t
twisted_row(const struct twisted_problem *p, double x)
{
    const int64_t rows = 2 * p->m.n, stride = p->m.stride, chunks = (rows + stride - 1) / stride;
    struct twisted_minors q = twisted_minors_begin(x);
    double minor[2 * TWISTED_ORDER];
    int64_t power[2 * TWISTED_ORDER], twos = 0, best_key = INT64_MIN, best = 0;

    for (int64_t k = 0; k < rows; k++) {
        if (k % stride == 0) {
            power[k / stride] = twos += twisted_minors_rescale(&q);
        }
        minor[k] = q.before;
        twisted_minors_step(x, p->square[k < rows - 1 ? k : 0], &q);
    }
    q = twisted_minors_begin(x);
    twos = 0;
    for (int64_t c = chunks - 1; c >= 0; c--) {
        const int64_t begin = c * stride, end = rows - begin < stride ? rows : begin + stride;
        double most = -1;
        int64_t at = 0, key;

        twos += twisted_minors_rescale(&q);
        for (int64_t k = end - 1; k >= begin; k--) {
            const double product = fabs(minor[k] * q.before);

            at = most < product ? k : at;
            most = most < product ? product : most;
            twisted_minors_step(x, p->square[k > 0 ? k - 1 : 0], &q);
        }
        key = twisted_key(most * twisted_weight(p->m.n, (begin + end) / 2), twos + power[c]);
        best = best_key < key ? at : best;
        best_key = best_key < key ? key : best_key;
    }
    return best;
}

/* One pass over the matrix; ratio [2n-1]. */
static double
twisted_pass(const struct twisted_problem *p, pair x, int64_t r, double *ratio, double *square_norm)
{
    struct twisted_chain top = twisted_chain_begin(x), bottom = top;

    for (int64_t k = 0; k < r; k++) {
        ratio[k] = twisted_chain_step(x, p->b[k], p->square[k], p->rest[k], &top);
    }
    for (int64_t k = 2 * p->m.n - 2; k >= r; k--) {
        ratio[k] = twisted_chain_step(x, p->b[k], p->square[k], p->rest[k], &bottom);
    }
    return twisted_meet(x, top, bottom, square_norm);
}

/* z [2n] of the value near `shift`; returns the angle that it may be off by, squared. */
static double
twisted_vector(const struct twisted_problem *p, double shift, double gap, pair *x, double *z)
{
    const int64_t n = p->m.n, r = twisted_row(p, shift);
    double ratio[2 * TWISTED_ORDER], g, square_norm, angle;
    int settled = 0;

    *x = pair_of(shift, 0);
    for (int i = 0; i < TWISTED_CORRECTIONS && !settled; i++) {
        g = twisted_pass(p, *x, r, ratio, &square_norm);
        angle = twisted_angle_square(g, square_norm, gap);
        if (TWISTED_AT_ONCE && i == 0 &&
            twisted_is_accurate(n, angle, g / square_norm, pair_high(*x))) {
            break;
        }
        *x = twisted_correct(*x, g, square_norm);
        settled = !(angle < INFINITY) || twisted_settles(angle, twisted_angle_limit(n));
    }
    g = twisted_pass(p, *x, r, ratio, &square_norm);
    *x = twisted_correct(*x, g, square_norm);
    z[r] = 1;
    for (int64_t k = r - 1; k >= 0; k--) {
        z[k] = ratio[k] * z[k + 1];
    }
    for (int64_t k = r + 1; k < 2 * n; k++) {
        z[k] = ratio[k - 1] * z[k - 1];
    }
    return twisted_angle_square(g, square_norm, gap);
}

/* |(T - x I) z| / |z|, in more digits. */
static double
twisted_residual(const struct twisted_problem *p, pair x, const double *z)
{
    const int64_t rows = 2 * p->m.n;
    exact sum = 0, norm = 0;

    for (int64_t k = 0; k < rows; k++) {
        exact y = -exact_of(x) * z[k];

        y += k > 0 ? (exact)p->b[k - 1] * z[k - 1] : 0;
        y += k < rows - 1 ? (exact)p->b[k] * z[k + 1] : 0;
        sum += y * y;
        norm += (exact)z[k] * z[k];
    }
    return sqrt((double)(sum / norm));
}

/* All vectors of a matrix: they are accepted, solve T z = x z, and agree with the kernels' bit for
   bit. */
static void
check_twisted(const char *name, int64_t n, const double *b)
{
    struct twisted_problem p;
    double shift[TWISTED_ORDER], gap[TWISTED_ORDER], angle[TWISTED_ORDER], balance[TWISTED_ORDER];
    double high[TWISTED_ORDER], low[TWISTED_ORDER], *work;
    real *columns, *rows;
    struct twisted_lanes job;

    twisted_prepare(n, b, &p);
    columns = allocate((size_t)(n * n) * sizeof *columns);
    rows = allocate((size_t)(n * n) * sizeof *rows);
    work = aligned_alloc(64, (size_t)(tsvdi_kernels()->twist_workspace(&p.m) + 7) / 8 * 64);
    if (work == NULL) {
        exit(EXIT_FAILURE);
    }
    for (int64_t j = 0; j < n; j++) {
        shift[j] = twisted_find(&p, j);
    }
    for (int64_t j = 0; j < n; j++) {
        gap[j] = j < n - 1 ? shift[j] - shift[j + 1] : 2 * shift[j];
        gap[j] = j > 0 ? fmin(gap[j], shift[j - 1] - shift[j]) : gap[j];
    }
    job =
        (struct twisted_lanes){n, shift, gap, high, low, angle, balance, 1, columns, n, rows, work};
    tsvdi_kernels()->twist(&p.m, &job);
    for (int64_t j = 0; j < n; j++) {
        double z[2 * TWISTED_ORDER], u = 0, v = 0, sign = 0;
        pair x;
        const double off = twisted_vector(&p, shift[j], gap[j], &x, z);

        CHECK(off <= twisted_angle_limit(n) && off == angle[j], "%s, value %lld: off by %g, %g",
              name, (long long)j, sqrt(off), sqrt(angle[j]));
        CHECK(twisted_residual(&p, x, z) <= 8 * DBL_EPSILON, "%s, value %lld: residual %g", name,
              (long long)j, twisted_residual(&p, x, z));
        CHECK(fabs(balance[j] - 1) <= TWISTED_BALANCE, "%s, value %lld: balance 1 + %g", name,
              (long long)j, balance[j] - 1);
        CHECK(high[j] == pair_high(x) && low[j] == pair_low(x), "%s, value %lld", name,
              (long long)j);
        for (int64_t i = 0; i < n; i++) {
            v += z[2 * i] * z[2 * i];
            u += z[2 * i + 1] * z[2 * i + 1];
        }
        for (int64_t i = 0; i < n; i++) { /* the kernels add up in another order */
            const real y = REAL(z[2 * i] / sqrt(v)), w = REAL(z[2 * i + 1] / sqrt(u));
            const real tolerance = REAL(4) * R_EPS;

            sign = sign == 0 && r_abs(w) > REAL(0.01)
                       ? (w > 0 ? 1 : -1) * (columns[i * n + j] > 0 ? 1 : -1)
                       : sign;
            CHECK(r_abs(r_abs(rows[j * n + i]) - r_abs(y)) <= tolerance &&
                      r_abs(r_abs(columns[i * n + j]) - r_abs(w)) <= tolerance,
                  "%s, value %lld, row %lld", name, (long long)j, (long long)i);
        }
        CHECK(sign != 0, "%s, value %lld is zero", name, (long long)j);
    }
    free(work);
    free(rows);
    free(columns);
}

static void
test_twisted_vectors(void)
{
    const int64_t orders[] = {1, 2, 3, 4, 7, 8, 17, 33, 58, 60};
    double b[2 * TWISTED_ORDER];

    for (int i = 0; i < 10; i++) {
        const int64_t n = orders[i];

        for (int64_t k = 0; k < 2 * n; k++) {
            b[k] = 1;
        }
        check_twisted("Toeplitz", n, b);
        for (int64_t k = 0; k < 2 * n; k++) {
            b[k] = (double)REAL(random_scaled(-2, 0));
        }
        check_twisted("random", n, b);
        for (int64_t k = 0; k < 2 * n; k++) {
            b[k] = ldexp(1, (int)-random_int(0, 2)) * (random_int(0, 1) ? 1 : -1);
        }
        for (int64_t k = 0; k < 2 * n; k++) {
            b[k] = (double)REAL(ldexp(b[k], (int)(-k / 4)) * random_scaled(-1, 0));
        }
        check_twisted("graded", n, b);
    }
}

/* The Toeplitz matrix of order n has the value 1 if 3 divides 2n + 1.  There every third pivot is
   exactly 0, and the vector's entries are 0, 1 and -1. */
static void
test_zero_pivots(void)
{
    for (int64_t n = 1; n <= TWISTED_ORDER; n += 3) {
        struct twisted_problem p;
        double b[2 * TWISTED_ORDER], z[2 * TWISTED_ORDER];
        pair x;

        for (int64_t k = 0; k < 2 * n; k++) {
            b[k] = 1;
        }
        twisted_prepare(n, b, &p);
        CHECK(twisted_vector(&p, 1, 1.0 / (double)(n * n), &x, z) <= twisted_angle_limit(n),
              "n = %lld", (long long)n);
        CHECK(magnitude(exact_of(x) - 1) <= 0x1p-98, "n = %lld: %g", (long long)n,
              (double)(exact_of(x) - 1));
        for (int64_t k = 0; k < 2 * n; k++) {
            const double size = fabs(z[k]);

            CHECK(size <= 0x1p-48 || fabs(size - 1) <= 0x1p-48, "n = %lld: z_%lld = %g",
                  (long long)n, (long long)k, z[k]);
        }
    }
}

static void
test_probes(void)
{
    enum { ROWS = 20000 };
    double sum = 0, squares = 0, fourth = 0;

    test_zero_pivots();
    for (int64_t j = 0; j < ROWS; j++) {
        for (int column = 0; column < PROBES; column++) {
            const double x = probe_entry(j, column);

            sum += x;
            squares += x * x;
            fourth += x * x * x * x;
        }
    }
    sum /= ROWS * PROBES;
    squares /= ROWS * PROBES;
    fourth /= ROWS * PROBES;
    /* four uniform numbers: the fourth moment is 3 - 6 / 5 / 4 */
    CHECK(fabs(sum) < 0.01 && fabs(squares - 1) < 0.01 && fabs(fourth - 2.7) < 0.05,
          "moments %g %g %g", sum, squares, fourth);
}

#endif
