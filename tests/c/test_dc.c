/*
 * Divide and conquer through the C interface, with the plain BLAS of plain_blas.h: when it needs a
 * BLAS, what it does without one, what it deflates, where it stops.
 */
#define TSVD_SINGLE 0

#include <string.h>

#include "backend/ops.h"
#include "math/dc.h"
#include "plain_blas.h"
#include "problem.h"

/* ---- tests ---- */

static tsvd_options
dc_options(void)
{
    tsvd_options options = default_options();

    options.method = TSVD_METHOD_DC;
    return options;
}

/* Whether vectors of order n would take a BLAS. */
static int
needs_blas(const tsvd_options *options, int64_t n)
{
    const int64_t off = n - 1;
    const tsvd_array d = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    const tsvd_array e = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 1, &off);
    tsvd_plan plan = TSVD_PLAN_INIT;

    (void)tsvd_make_plan(cpu(), &d, &e, options, 1, &plan, NULL);
    return plan.needs_blas;
}

/* Before any BLAS is given. */
static void
test_without_blas(void)
{
    struct work w = make_work(TSVD_FLOAT64, BLAS_ORDER + 1, 1);
    tsvd_options options = default_options();
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error error;

    if (tsvd_has_blas()) {
        free_work(&w);
        return;
    }
    CHECK(needs_blas(&options, w.n) == 1, "auto would use it");
    CHECK(solve(&w, &options, &info, &error) == TSVD_OK && info.method == TSVD_METHOD_QR,
          "auto takes qr: %s", tsvd_method_name(info.method));
    check_result(&w, 0, 0, 1e-12);
    options = dc_options();
    CHECK(needs_blas(&options, w.n) == 1, "the plan tells, though it fails");
    CHECK(solve(&w, &options, &info, &error) == TSVD_ERR_LIBRARY, "dc");
    CHECK(strstr(error.advice, "tsvd_set_blas") != NULL, "\"%s\"", error.advice);

    w.vectors = 0; /* values need no BLAS */
    CHECK(needs_blas(&options, BLAS_ORDER) == 0, "a small matrix");
    CHECK(solve(&w, &options, &info, &error) == TSVD_OK && info.method == TSVD_METHOD_BISECT,
          "values: %s", tsvd_method_name(info.method));
    free_work(&w);
}

/* Around leaves of every size, and trees of up to three levels. */
static void
test_orders(void)
{
    const int64_t orders[] = {
        1, 2, 3, 31, 32, 33, 34, 40, 41, 63, 64, 65, 66, 67, 127, 128, 129, 150, BLAS_ORDER + 9};

    for (int t = 0; t < DTYPES; t++) {
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
            for (int lower = 0; lower < 2; lower++) {
                const int64_t n = orders[i];
                struct work w = make_work(dtypes[t], n, 2);
                tsvd_options options = dc_options();
                tsvd_info info = TSVD_INFO_INIT;
                tsvd_error error;

                options.lower = lower;
                CHECK(solve(&w, &options, &info, &error) == TSVD_OK, "n = %lld: %s", (long long)n,
                      error.text);
                CHECK(info.method == TSVD_METHOD_DC, "n = %lld: %s", (long long)n,
                      tsvd_method_name(info.method));
                for (int64_t k = 0; k < w.matrices; k++) {
                    check_result(&w, k, lower, 4 * (double)(n + 8) * eps_of(dtypes[t]));
                }
                free_work(&w);
            }
        }
    }
    CHECK(products > 0, "no product was made");
}

/* Up to BLAS_ORDER no BLAS is used, so that it matters to no result whether there is one. */
static void
test_small_matrices_use_no_blas(void)
{
    const int64_t before = products;

    for (int64_t n = 33; n <= BLAS_ORDER; n = n < 100 ? n + 31 : n + 209) {
        struct work w = make_work(TSVD_FLOAT64, n, 1);
        tsvd_options options = dc_options();
        tsvd_info info = TSVD_INFO_INIT;
        tsvd_error error;

        CHECK(needs_blas(&options, n) == 0, "n = %lld", (long long)n);
        CHECK(solve(&w, &options, &info, &error) == TSVD_OK && info.method == TSVD_METHOD_DC,
              "n = %lld: %s", (long long)n, error.text);
        check_result(&w, 0, 0, 4 * (double)(n + 8) * DBL_EPSILON);
        free_work(&w);
    }
    CHECK(products == before, "%lld products", (long long)(products - before));
}

/* Both sizes of BLAS's integers, and every number of threads, give the same bits. */
static void
test_integers_and_threads_change_no_bit(void)
{
    const int64_t orders[] = {90, 300, BLAS_ORDER + 9};

    for (int t = 0; t < DTYPES; t++) {
        for (int o = 0; o < 3; o++) {
            const int64_t n = orders[o];
            const size_t bytes = 3 * (size_t)(n * n) * size_of(dtypes[t]);
            struct work w = make_work(dtypes[t], n, 3);
            void *L = allocate(bytes), *R = allocate(bytes);

            for (int run = 0; run < 4; run++) {
                tsvd_options options = dc_options();

                CHECK(tsvd_set_threads(cpu(), run == 0 ? 1 : run, NULL) == TSVD_OK, "threads");
                use_blas(cpu(), run == 0 ? 8 : 4);
                CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "run %d", run);
                if (run == 0) {
                    memcpy(L, w.L, bytes);
                    memcpy(R, w.R, bytes);
                }
                CHECK(memcmp(L, w.L, bytes) == 0 && memcmp(R, w.R, bytes) == 0, "n = %lld, run %d",
                      (long long)n, run);
            }
            free(L);
            free(R);
            free_work(&w);
        }
    }
    use_blas(cpu(), 4);
}

/*
 * One merge of order 64 in which every step is known.  e is zero but for two entries: the last one
 * of the left child, which with d = 0.75 beside it makes a value of 1.25, and the center's own.
 * The right child has the value `right`.  M then has weights only for these two values and for the
 * center; all other values are 1.5.
 */
static int64_t
survivors(double alpha, double beta, double right, double eps)
{
    enum { N = 64, CENTER = 31 };
    struct work w = make_work(TSVD_FLOAT64, N, 1);
    tsvd_options options = dc_options();
    tsvd_info info = TSVD_INFO_INIT;
    double *d = w.d, *e = w.e;

    for (int i = 0; i < N; i++) {
        d[i] = 1.5;
        e[i < N - 1 ? i : 0] = 0;
    }
    d[CENTER - 1] = 0.75;
    e[CENTER - 1] = 1;
    d[CENTER] = alpha;
    e[CENTER] = beta;
    d[CENTER + 1] = right;
    options.eps = eps > 0 ? eps : -1;
    CHECK(solve(&w, &options, &info, NULL) == TSVD_OK, "one merge");
    check_result(&w, 0, 0, 4 * eps + 2 * N * DBL_EPSILON);
    free_work(&w);
    return N - info.deflated;
}

static void
test_deflation(void)
{
    const struct dc_limits limit = dc_limits_for(0, 1, 64);
    const double ulp = DBL_EPSILON, tolerance = limit.z;
    /* the weights are 0.8 of the left value, 1 of the right one, 0.6 of the center; a pair with a
       distance of g costs 2 (g s)^2, where s is the share of the larger value's weight */
    const double above = sqrt(limit.budget / 2 * 1.64), below = above / 0.8;
    const double zero = sqrt(limit.budget / 2 * 1.36);

    CHECK(survivors(1, 1, 1.75, 0) == 3, "center, left and right value");
    /* equal values */
    CHECK(survivors(1, 1, 1.25, 0) == 2, "the same value");
    CHECK(survivors(1, 1, 1.25 + above - 4 * ulp, 0) == 2, "just inside the budget");
    CHECK(survivors(1, 1, 1.25 - below + 4 * ulp, 0) == 2, "just inside, below");
    CHECK(survivors(1, 1, 1.25 + above + 4 * ulp, 0) == 3, "just outside the budget");
    CHECK(survivors(1, 1, 1.25 - below - 4 * ulp, 0) == 3, "just outside, below");
    /* a value that counts as zero: the center absorbs it */
    CHECK(survivors(1, 1, 0, 0) == 2, "zero");
    CHECK(survivors(1, 1, zero * 0.99, 0) == 2, "within the budget");
    CHECK(survivors(1, 1, zero * 1.01, 0) == 3, "beyond the budget");
    /* weights that count as zero */
    CHECK(survivors(1, tolerance, 1.75, 0) == 2, "a right weight at the threshold");
    CHECK(survivors(1, tolerance + ulp, 1.75, 0) == 3, "a right weight above it");
    CHECK(survivors(1, 0, 1.75, 0) == 2, "no right weight");
    CHECK(survivors(tolerance / 8, tolerance / 8, 1.75, 0) == 1, "no weight but the center's");
    CHECK(survivors(0, 1, 1.75, 0) == 2, "no weight of the center: it has the least allowed");
    CHECK(survivors(0, 0, 1.75, 0) == 1, "a row of zeros");
    CHECK(survivors(0, tolerance / 8, 1.75, 0) == 1, "a row that counts as zero");
    /* eps widens both: twice for values of a tree with one level */
    CHECK(survivors(1, 1, 1.25 + 1.9e-3, 1e-3) == 2, "values within 2 eps");
    CHECK(survivors(1, 1, 1.25 + 2.1e-3, 1e-3) == 3, "values beyond 2 eps");
    CHECK(survivors(1, 0.9e-3, 1.75, 1e-3) == 2, "a weight below eps");
    CHECK(survivors(1, 1.1e-3, 1.75, 1e-3) == 3, "a weight above eps");
    CHECK(survivors(1, 1, 1.9e-3, 1e-3) == 2, "a value that eps lets count as zero");
}

/* Matrices that leave nothing to solve: in each merge only the center survives. */
static void
test_everything_deflates(void)
{
    const int64_t orders[] = {64, 128}, deflated[] = {63, 127 + 62 + 63};

    for (int t = 0; t < DTYPES; t++) {
        for (int o = 0; o < 2; o++) {
            for (int kind = 0; kind < 3; kind++) {
                struct work w = make_work(dtypes[t], orders[o], 1);
                tsvd_options options = dc_options();
                tsvd_info info = TSVD_INFO_INIT;

                for (int64_t i = 0; i < orders[o]; i++) {
                    if (kind < 2) {
                        set(dtypes[t], w.d, i, kind == 0 ? 1 : (double)(1 + i * 7 % 64));
                    }
                    if (i < orders[o] - 1) {
                        set(dtypes[t], w.e, i, 0);
                    }
                }
                CHECK(solve(&w, &options, &info, NULL) == TSVD_OK, "kind %d", kind);
                CHECK(info.deflated == deflated[o], "kind %d: %lld deflated", kind,
                      (long long)info.deflated);
                check_result(&w, 0, 0, 0);
                free_work(&w);
            }
        }
    }
}

struct asked {
    int calls, stop_at, rising;
    double last;
};

static int
ask(void *arg, double done)
{
    struct asked *asked = arg;

    asked->rising &= done >= asked->last && done >= 0 && done <= 1;
    asked->last = done;
    return ++asked->calls == asked->stop_at;
}

/* Stopped at every call of options.check, of which there is at least one per level. */
static void
test_interruption(void)
{
    const int64_t n = 300; /* four levels of merges */
    struct work w = make_work(TSVD_FLOAT64, n, 1);
    struct asked asked = {.rising = 1};
    tsvd_options options = dc_options();
    int questions;

    CHECK(tsvd_set_threads(cpu(), 1, NULL) == TSVD_OK,
          "threads"); /* the caller alone is asked, and another thread may be quicker */
    options.check = ask;
    options.check_arg = &asked;
    CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "never stopped");
    CHECK(asked.calls >= 4 && asked.rising, "%d questions", asked.calls);
    questions = asked.calls;
    for (int stop_at = 1; stop_at <= questions; stop_at++) {
        asked = (struct asked){.rising = 1, .stop_at = stop_at};
        CHECK(solve(&w, &options, NULL, NULL) == TSVD_ERR_INTERRUPTED, "stop at %d", stop_at);
        CHECK(asked.calls == stop_at, "%d questions", asked.calls);
    }
    options.check = NULL;
    CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "the next call");
    check_result(&w, 0, 0, 4 * (double)(n + 8) * DBL_EPSILON);
    free_work(&w);
}

int
main(void)
{
    test_without_blas();
    use_blas(cpu(), 4);
    test_orders();
    test_small_matrices_use_no_blas();
    test_integers_and_threads_change_no_bit();
    test_deflation();
    test_everything_deflates();
    test_interruption();
    return report();
}
