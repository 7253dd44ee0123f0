/*
 * A part of the values: which lie in an interval, against counts in long double and against s;
 * the values and vectors of a range of indices.
 */
#include <string.h>

#include "problem.h"

enum { MAX_ORDER = 40 };

static const int64_t orders[] = {1, 2, 3, 8, 17, 32, MAX_ORDER};
enum { ORDERS = sizeof orders / sizeof *orders };

/* A matrix whose values span many powers of two, as tsvd_select() takes it. */
static struct work
one_matrix(tsvd_dtype dtype, int64_t n)
{
    struct work w = make_work(dtype, n, 1);

    for (int64_t i = 0; i < n; i += 3) {
        set(dtype, w.d, i, 0x1p-60 * get(dtype, w.d, i));
    }
    w.batch = 0;
    return w;
}

static tsvd_status
select_values(const struct work *w, const tsvd_options *options, double low, double high,
              int64_t *first, int64_t *count, tsvd_error *error)
{
    const struct arrays a = arrays_of(w);

    return tsvd_select(cpu(), &a.d, &a.e, options, low, high, first, count, error);
}

/* The values in (low, high] are first .. first + k - 1. */
static void
check_range(const struct work *w, double low, double high, int64_t first, int64_t k)
{
    int64_t got_first = -1, got = -1;
    tsvd_error error;
    tsvd_status status = select_values(w, NULL, low, high, &got_first, &got, &error);

    CHECK(status == TSVD_OK, "(%g, %g]: %s", low, high, error.text);
    CHECK(got == k && (k == 0 || got_first == first),
          "(%g, %g], n = %lld: %lld from %lld on, not %lld from %lld", low, high, (long long)w->n,
          (long long)got, (long long)got_first, (long long)k, (long long)first);
    CHECK(got_first >= 0 && got_first + got <= w->n, "from %lld on", (long long)got_first);
}

/* Random bounds, so far from any value that their counts are certain. */
static void
test_counts(void)
{
    for (int t = 0; t < DTYPES; t++) {
        for (int o = 0; o < ORDERS; o++) {
            const int64_t n = orders[o];
            struct work w = one_matrix(dtypes[t], n);
            long double d[MAX_ORDER], e[MAX_ORDER] = {0};

            for (int64_t i = 0; i < n; i++) {
                d[i] = get(dtypes[t], w.d, i);
                e[i] = i < n - 1 ? get(dtypes[t], w.e, i) : 0;
            }
            for (int i = 0; i < 200; i++) {
                const long double slack = 1e3L * eps_of(dtypes[t]);
                double low = fabs(random_scaled(-70, 1)), high = fabs(random_scaled(-70, 1));
                double swap = low > high ? low : high;
                int64_t above_low, above_high;

                low = low > high ? high : low;
                high = swap;
                above_low = count_above(n, d, e, low);
                above_high = count_above(n, d, e, high);
                if (low == high || count_above(n, d, e, low * (1 - slack)) != above_low ||
                    count_above(n, d, e, low * (1 + slack)) != above_low ||
                    count_above(n, d, e, high * (1 - slack)) != above_high ||
                    count_above(n, d, e, high * (1 + slack)) != above_high) {
                    continue;
                }
                check_range(&w, low, high, above_high, above_low - above_high);
                check_range(&w, -1, high, above_high, n - above_high);
                check_range(&w, low, (double)INFINITY, 0, above_low);
            }
            check_range(&w, -(double)INFINITY, (double)INFINITY, 0, n);
            check_range(&w, -DBL_MAX, DBL_MAX, 0, n);
            check_range(&w, -3, -1, n, 0);
            check_range(&w, 1e30, 1e300, 0, 0);
            free_work(&w);
        }
    }
}

/* The lower end is outside, the upper inside; all values are numbers, one of them twice, one 0. */
static void
test_ends(void)
{
    const double values[] = {3, 2, 2, 1, 0x1p-30, 0};
    const int64_t n = sizeof values / sizeof *values;

    for (int t = 0; t < DTYPES; t++) {
        struct work w = make_work(dtypes[t], n, 1);

        w.batch = 0;
        for (int64_t i = 0; i < n; i++) {
            set(dtypes[t], w.d, (i + 2) % n, i % 2 ? values[i] : -values[i]);
        }
        memset(w.e, 0, (size_t)(n - 1) * size_of(dtypes[t]));
        check_range(&w, 1, 3, 0, 3);
        check_range(&w, 1, 2, 1, 2);
        check_range(&w, 2, 3, 0, 1);
        check_range(&w, 0, 2, 1, 4);
        check_range(&w, -0.0, 2, 1, 4);
        check_range(&w, -1, 0, 5, 1);
        check_range(&w, -1, -0.0, 5, 1);
        check_range(&w, -1, DBL_TRUE_MIN, 5, 1);
        check_range(&w, 0x1p-30, 1, 3, 1);
        check_range(&w, 3, 4, 0, 0);
        /* between numbers of float32, where neither may be taken for the other */
        check_range(&w, 1 - 0x1p-40, 1 + 0x1p-40, 3, 1);
        check_range(&w, 1, 1 + 0x1p-40, 3, 0);
        check_range(&w, 1 - 0x1p-40, 1, 3, 1);
        check_range(&w, 1 - 0x1p-40, 1 - 0x1p-41, 4, 0);
        free_work(&w);
    }
}

static void
test_extremes(void)
{
    for (int t = 0; t < DTYPES; t++) {
        const double top = dtypes[t] == TSVD_FLOAT64 ? DBL_MAX : (double)FLT_MAX;
        const double least = dtypes[t] == TSVD_FLOAT64 ? DBL_TRUE_MIN : (double)FLT_TRUE_MIN;
        struct work w = make_work(dtypes[t], 2, 1), none = make_work(dtypes[t], 0, 1);

        w.batch = none.batch = 0;
        check_range(&none, -1, 1, 0, 0);
        memset(w.d, 0, 2 * size_of(dtypes[t])); /* zero */
        memset(w.e, 0, size_of(dtypes[t]));
        check_range(&w, -1, 1, 0, 2);
        check_range(&w, -1, 0, 0, 2);
        check_range(&w, 0, 1, 0, 0);
        check_range(&w, -2, -1, 2, 0);
        set(dtypes[t], w.d, 1, least);
        check_range(&w, 0, 1, 0, 1);
        check_range(&w, 0, least, 0, 1);
        check_range(&w, -1, least / 2, 1, 1); /* for float64 least / 2 is 0 */
        set(dtypes[t], w.d, 0, top);          /* values of about 1.6 top and 0.6 top */
        set(dtypes[t], w.d, 1, top);
        set(dtypes[t], w.e, 0, top);
        check_range(&w, 0, (double)INFINITY, 0, 2);
        check_range(&w, 0, top, 1, 1);
        check_range(&w, top / 2, top, 1, 1);
        check_range(&w, top, (double)INFINITY, 0, 1);
        check_range(&w, 0, top / 2, 2, 0);
        free_work(&w);
        free_work(&none);
    }
}

static void
test_refusals(void)
{
    struct work w = make_work(TSVD_FLOAT64, 3, 1), single = make_work(TSVD_FLOAT64, 1, 1);
    tsvd_options options = default_options();
    struct arrays a;
    tsvd_error error;
    int64_t first, k;

#define REFUSED(change, low, high, expected)                                                       \
    do {                                                                                           \
        w.batch = 0;                                                                               \
        a = arrays_of(&w);                                                                         \
        change;                                                                                    \
        CHECK(tsvd_select(cpu(), &a.d, &a.e, NULL, low, high, &first, &k, &error) == expected,     \
              #change);                                                                            \
        CHECK(strlen(error.text) > 10, "\"%s\"", error.text);                                      \
        CHECK(tsvd_select(cpu(), &a.d, &a.e, NULL, low, high, &first, &k, NULL) == expected,       \
              #change);                                                                            \
    } while (0)

    REFUSED((void)0, 1, 1, TSVD_ERR_ARGUMENT);
    REFUSED((void)0, 2, 1, TSVD_ERR_ARGUMENT);
    REFUSED((void)0, (double)NAN, 1, TSVD_ERR_ARGUMENT);
    REFUSED((void)0, 1, (double)NAN, TSVD_ERR_ARGUMENT);
    REFUSED((void)0, (double)INFINITY, (double)INFINITY, TSVD_ERR_ARGUMENT);
    REFUSED((w.batch = 1, a = arrays_of(&w)), 0, 1, TSVD_ERR_ARGUMENT);
    REFUSED(a.d.shape[0] = -1, 0, 1, TSVD_ERR_ARGUMENT);
    REFUSED(a.d.data = NULL, 0, 1, TSVD_ERR_ARGUMENT);
    REFUSED(a.e.data = NULL, 0, 1, TSVD_ERR_ARGUMENT);
    REFUSED(a.d.dtype = (tsvd_dtype)7, 0, 1, TSVD_ERR_ARGUMENT);
    ((double *)w.d)[1] = (double)NAN;
    REFUSED((void)0, 0, 1, TSVD_ERR_NONFINITE);
#undef REFUSED
    options.check_finite = 0;
    CHECK(select_values(&w, &options, 0, 1, &first, &k, &error) == TSVD_OK && k == 0, "%lld values",
          (long long)k);
    memset(&options, 0, sizeof options);
    CHECK(select_values(&w, &options, 0, 1, &first, &k, &error) == TSVD_ERR_ARGUMENT, "zero");
    CHECK(tsvd_select(cpu(), &a.d, &a.e, NULL, 0, 1, NULL, &k, &error) == TSVD_ERR_ARGUMENT,
          "no place for first");
    CHECK(tsvd_select(NULL, &a.d, &a.e, NULL, 0, 1, &first, &k, &error) == TSVD_ERR_ARGUMENT,
          "no handle");
    single.batch = 0;
    a = arrays_of(&single);
    CHECK(tsvd_select(cpu(), &a.d, NULL, NULL, 0, 1e9, &first, &k, &error) == TSVD_OK && k == 1,
          "n = 1 without e");
    free_work(&w);
    free_work(&single);
}

/* Every range of indices: the values of the whole, bit by bit, and vectors that fit. */
static void
test_ranges_of_indices(void)
{
    const int64_t n = 12, matrices = 3;

    for (int t = 0; t < DTYPES; t++) {
        for (int vectors = 0; vectors < 2; vectors++) {
            struct work w = make_work(dtypes[t], n, matrices);
            double whole[36];

            if (!vectors) {
                w.vectors = 0;
            }
            CHECK(solve(&w, NULL, NULL, NULL) == TSVD_OK, "all");
            for (int64_t i = 0; i < matrices * n; i++) {
                whole[i] = get(dtypes[t], w.s, i);
            }
            for (int64_t first = 0; first <= n; first++) {
                for (int64_t k = 0; k <= n - first; k++) {
                    tsvd_error error;

                    w.first = first;
                    w.k = k;
                    CHECK(solve(&w, NULL, NULL, &error) == TSVD_OK, "%lld from %lld on: %s",
                          (long long)k, (long long)first, error.text);
                    for (int64_t i = 0; i < matrices * k; i++) {
                        double s = get(dtypes[t], w.s, i), same = whole[i / k * n + first + i % k];

                        CHECK(fabs(s - same) <= 8 * eps_of(dtypes[t]) * same, "%.17g, not %.17g", s,
                              same);
                    }
                    for (int64_t i = 0; i < matrices && vectors; i++) {
                        check_result(&w, i, 0, 4 * (double)(n + 8) * eps_of(dtypes[t]));
                    }
                }
            }
            free_work(&w);
        }
    }
}

int
main(void)
{
    test_counts();
    test_ends();
    test_extremes();
    test_refusals();
    test_ranges_of_indices();
    return report();
}
