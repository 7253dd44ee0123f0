/*
 * Calls that fail on purpose, in one precision: a leaf or QR that does not converge, a secular
 * equation that is never solved, an interruption.  Each says what failed, keeps no memory, and
 * leaves the handle fit for the next call.  Memory that is refused: test_memory.c.
 *
 * The library's own code runs but for the vector kernels: the linker turns tsvdi_kernels() into the
 * function below (--wrap in CMakeLists.txt), which returns a table that the tests change.
 */
#include <stdatomic.h>
#include <string.h>

#include "calls.h"
#include "counting.h"
#include "cpu/kernels/kernels.h"
#include "math/secular.h"
#include "plain_blas.h"

#define DTYPE (TSVD_SINGLE ? TSVD_FLOAT32 : TSVD_FLOAT64)

/* ---- faulty kernels ---- */

#define real_kernels TSVD_T(__real_tsvdi_kernels)
#define wrap_kernels TSVD_T(__wrap_tsvdi_kernels)

const struct cpu_kernels *real_kernels(void);
const struct cpu_kernels *wrap_kernels(void);

static const struct cpu_kernels *right; /* the library's own table */
static struct cpu_kernels kernels;      /* what the library is given */

const struct cpu_kernels *
wrap_kernels(void)
{
    return &kernels;
}

static void
mend_kernels(void)
{
    right = real_kernels();
    kernels = *right;
}

/* A leaf that holds this number as d[n - 1] of a matrix never converges. */
static const real mark = REAL(1.234375);

/* A sweep that leaves the lanes with a marked entry as they are. */
static void
stuck_sweep(struct qr_lanes *q, int vectors, real *rotation)
{
    const int64_t lanes = vectors * right->lanes;
    const struct qr_lanes before = *q;

    right->qr_lanes(q, vectors, rotation);
    for (int64_t i = 0; i < QR_ROWS * lanes; i++) {
        const int64_t lane = i % lanes;

        for (int64_t k = lane; k < QR_ROWS * lanes && before.d[i] == mark; k += lanes) {
            q->d[k] = before.d[k];
            q->e[k] = before.e[k];
            q->dropped[lane] = 0;
        }
    }
}

static atomic_llong evaluations; /* of the secular function */
static real secular_value;       /* its value everywhere; 0: its sign alternates */

static struct cpu_sums
stuck_secular(int64_t count, const real *pole, const real *square, real base, real tau, real below,
              real above)
{
    const long long made = atomic_fetch_add(&evaluations, 1);
    const real f = secular_value != 0 ? secular_value : made % 2 == 0 ? REAL(-3) : REAL(3);
    const struct cpu_sums sums = {f - 1, 0, 0, 0};

    (void)count, (void)pole, (void)square, (void)base, (void)tau, (void)below, (void)above;
    return sums;
}

/* ---- calls ---- */

static struct counting counting;

static tsvd_handle *
faulty_handle(int threads)
{
    tsvd_handle *handle = counting_handle(&counting, threads);

    use_blas(handle, 4);
    return handle;
}

static void
end_handle(tsvd_handle *handle)
{
    tsvd_destroy(handle);
    CHECK(atomic_load(&counting.bytes) == 0, "%lld bytes are left", atomic_load(&counting.bytes));
}

/* One call that is made to fail. */
struct trial {
    struct work w;
    tsvd_options options;
    char *results; /* s, L and R of the first call */
};

static size_t
values_bytes(const struct work *w)
{
    return (size_t)(w->matrices * w->k) * sizeof(real);
}

/* Compares the results with those of trial_begin(), or keeps them. */
static void
match_results(struct trial *t, const char *what)
{
    const size_t s = values_bytes(&t->w), sides = t->w.vectors ? s * (size_t)t->w.n : 0;
    char *to = t->results;

    if (to == NULL) {
        to = t->results = allocate(s + 2 * sides);
        memcpy(to, t->w.s, s);
        memcpy(to + s, t->w.L, sides);
        memcpy(to + s + sides, t->w.R, sides);
    }
    CHECK(memcmp(to, t->w.s, s) == 0 && memcmp(to + s, t->w.L, sides) == 0 &&
              memcmp(to + s + sides, t->w.R, sides) == 0,
          "%s, n = %lld: other results", what, (long long)t->w.n);
}

/* The call must work, with the bits that it had the first time. */
static void
works(tsvd_handle *handle, struct trial *t, const char *what)
{
    tsvd_error error = {.text = ""};

    CHECK(solve_on(handle, &t->w, &t->options, NULL, &error) == TSVD_OK, "%s, n = %lld: %s", what,
          (long long)t->w.n, error.text);
    match_results(t, what);
}

static struct trial
trial_begin(tsvd_handle *handle, tsvd_method method, int64_t n, int64_t matrices, int vectors)
{
    struct trial t = {make_work(DTYPE, n, matrices), default_options(), NULL};

    t.w.vectors = vectors;
    t.options.method = method;
    t.options.eps = method == TSVD_METHOD_GIVENS ? 1e-2 : -1;
    if (method == TSVD_METHOD_GIVENS && matrices == 1) { /* enough sweeps for vectors to drift */
        t.options.givens_split = 0;
        t.options.givens_blocks = 2;
    }
    works(handle, &t, "the first call");
    for (int64_t m = 0; m < matrices && vectors; m++) {
        check_result(&t.w, m, 0, 4 * (double)(n + 8) * eps_of(DTYPE) + 4 * fmax(t.options.eps, 0));
    }
    return t;
}

static void
trial_end(struct trial *t)
{
    free(t->results);
    free_work(&t->w);
}

/* The call must fail with this status, name this matrix and keep no memory. */
static void
fails(tsvd_handle *handle, const struct trial *t, tsvd_status status, int64_t matrix,
      tsvd_error *error)
{
    const long long before = atomic_load(&counting.bytes);
    const tsvd_status got = solve_on(handle, &t->w, &t->options, NULL, error);

    CHECK(got == status && error->status == status, "%s, n = %lld: status %d, not %d",
          tsvd_method_name(t->options.method), (long long)t->w.n, (int)got, (int)status);
    CHECK(error->matrix == matrix, "%s, n = %lld: matrix %lld, not %lld",
          tsvd_method_name(t->options.method), (long long)t->w.n, (long long)error->matrix,
          (long long)matrix);
    CHECK(strlen(error->text) > 10, "\"%s\"", error->text);
    CHECK(atomic_load(&counting.bytes) == before, "%lld bytes are left",
          atomic_load(&counting.bytes) - before);
}

/* ---- no convergence ---- */

/* Marks a matrix; returns what d[n - 1] was. */
static real
mark_matrix(const struct work *w, int64_t matrix)
{
    real *last = (real *)w->d + matrix * w->n + w->n - 1;
    const real was = *last;

    *last = mark;
    return was;
}

static void
unmark_matrix(const struct work *w, int64_t matrix, real was)
{
    ((real *)w->d)[matrix * w->n + w->n - 1] = was;
}

/* The leaves of the matrices first, first + step, ... fail: the first of them is named, also where
   several threads find failures at the same time. */
static void
check_stuck_leaves(tsvd_handle *handle, struct trial *t, int64_t first, int64_t step)
{
    const int times = t->w.matrices == 3 ? 10 : 1;
    real was[64];
    tsvd_error error;

    for (int64_t m = first; m < t->w.matrices; m += step) {
        was[m] = mark_matrix(&t->w, m);
    }
    kernels.qr_lanes = stuck_sweep;
    for (int i = 0; i < times; i++) {
        fails(handle, t, TSVD_ERR_NO_CONVERGENCE, first, &error);
    }
    CHECK(strstr(error.text, "leaf") != NULL && strstr(error.advice, "QR") != NULL, "\"%s\" \"%s\"",
          error.text, error.advice);
    mend_kernels();
    for (int64_t m = first; m < t->w.matrices; m += step) {
        unmark_matrix(&t->w, m, was[m]);
    }
}

/* Batches whose matrices are shared out over the threads, and matrices whose leaves are. */
static void
test_stuck_leaves(void)
{
    const int64_t sizes[][2] = {{20, 1}, {20, 50}, {40, 1}, {40, 13}, {130, 3}};

    for (int threads = 1; threads <= 3; threads++) {
        tsvd_handle *handle = faulty_handle(threads);

        for (int i = 0; i < 5; i++) {
            const int64_t matrices = sizes[i][1];
            struct trial t = trial_begin(handle, TSVD_METHOD_DC, sizes[i][0], matrices, 1);

            check_stuck_leaves(handle, &t, 0, 1);
            check_stuck_leaves(handle, &t, matrices / 3, 2);
            check_stuck_leaves(handle, &t, matrices - 1, 1);
            works(handle, &t, "after leaves that failed");
            trial_end(&t);
        }
        end_handle(handle);
    }
}

/* The leaves' QR only gives hints to the bisection of small matrices: without it the values are the
   same. */
static void
test_stuck_hints(void)
{
    tsvd_handle *handle = faulty_handle(1);
    struct trial t = {make_work(DTYPE, 20, 40), default_options(), NULL};

    t.w.vectors = 0;
    t.options.method = TSVD_METHOD_BISECT;
    for (int64_t m = 0; m < t.w.matrices; m += 2) {
        (void)mark_matrix(&t.w, m);
    }
    works(handle, &t, "with hints");
    kernels.qr_lanes = stuck_sweep;
    works(handle, &t, "without hints");
    mend_kernels();
    trial_end(&t);
    end_handle(handle);
}

/* QR and givens, on large and small segments, with a bound that only diagonal matrices keep; some
   threads work on, some fail. */
static void
test_bounded_sweeps(void)
{
    const tsvd_method methods[] = {TSVD_METHOD_QR, TSVD_METHOD_GIVENS, TSVD_METHOD_GIVENS};
    const int64_t orders[] = {50, 50, 8};

    for (int threads = 1; threads <= 3; threads += 2) {
        tsvd_handle *handle = faulty_handle(threads);

        for (int m = 0; m < 3; m++) {
            for (int64_t first = 0; first < 11; first += 5) {
                struct trial t = {make_work(DTYPE, orders[m], 12), default_options(), NULL};
                tsvd_error error;

                for (int64_t i = 0; i < first * (t.w.n - 1); i++) {
                    ((real *)t.w.e)[i] = 0;
                }
                t.options.method = methods[m];
                t.options.eps = 1e-6;
                works(handle, &t, "without a bound");
                t.options.max_sweeps = 2;
                fails(handle, &t, TSVD_ERR_NO_CONVERGENCE, first, &error);
                CHECK(error.sweeps == 2, "%lld sweeps", (long long)error.sweeps);
                t.options.max_sweeps = 0;
                works(handle, &t, "after the bound");
                trial_end(&t);
            }
        }
        end_handle(handle);
    }
}

/* ---- the secular equation ---- */

/* Whatever the sums are, the search for a root ends after a bounded number of evaluations, and
   bisection still finds the values. */
static void
test_stuck_secular(void)
{
    const real value[] = {-3, 3, 0, REAL(NAN)};
    tsvd_handle *handle = faulty_handle(1);
    const int64_t n = 100, levels = 2;
    struct trial t = trial_begin(handle, TSVD_METHOD_DC, n, 1, 1);

    for (int i = 0; i < 4; i++) {
        atomic_store(&evaluations, 0);
        secular_value = value[i];
        kernels.secular = stuck_secular;
        CHECK(solve_on(handle, &t.w, &t.options, NULL, NULL) == TSVD_OK, "value %d", i);
        CHECK(memcmp(t.results, t.w.s, values_bytes(&t.w)) == 0, "value %d: other values", i);
        CHECK(atomic_load(&evaluations) > 0 &&
                  atomic_load(&evaluations) <= levels * n * (SECULAR_EVALUATIONS + 1),
              "value %d: %lld evaluations", i, atomic_load(&evaluations));
        mend_kernels();
        works(handle, &t, "after a secular equation without an end");
    }
    trial_end(&t);
    end_handle(handle);
}

/* ---- every point at which a call can end early ---- */

/* Calls of each kind: one matrix and batches, small and large. */
static const struct call_shape shapes[] = {
    BIDIAGONAL(DC, 20, 1, 1),
    BIDIAGONAL(DC, 70, 1, 1),
    BIDIAGONAL(DC, 130, 1, 1),
    BIDIAGONAL(DC, 40, 20, 1),
    BIDIAGONAL(QR, 70, 1, 1),
    BIDIAGONAL(QR, 30, 6, 1),
    BIDIAGONAL(QR, 30, 6, 0),
    BIDIAGONAL(GIVENS, 40, 1, 1),
    BIDIAGONAL(GIVENS, 20, 6, 0),
    BIDIAGONAL(BISECT, 260, 1, 0),
    BIDIAGONAL(BISECT, 20, 40, 0),
    BIDIAGONAL(AUTO, 50, 6, 0),
    BIDIAGONAL(TWISTED, 70, 1, 1),
    BIDIAGONAL(TWISTED, 30, 3, 1),
    DENSE(AUTO, 12, 8, 30, 1),
    DENSE(AUTO, 8, 30, 30, 0),
    DENSE(AUTO, 131, 130, 1, 1),
    DENSE(JACOBI, 12, 8, 30, 1),
    DENSE(JACOBI, 8, 30, 30, 0),
    DENSE(JACOBI, 60, 50, 1, 1),
    DENSE(JACOBI, 132, 132, 1, 0),
    INVERSE(7, 30, 0),
    INVERSE(5, 30, 1),
    INVERSE(70, 1, 0),
    INVERSE(75, 1, 1),
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Stops a call at the first question, the second, ...; other threads work on meanwhile. */
static void
check_interruptions(tsvd_handle *handle, struct call *c)
{
    const long long before = atomic_load(&counting.bytes);
    int stopped = 1;

    begin_call(handle, c, 4 * (double)(c->shape.n + 8));
    for (int stop_at = 1; stopped && stop_at < 10000; stop_at++) {
        stopped = stop_call(handle, c, stop_at);
        CHECK(atomic_load(&counting.bytes) == before, "%lld bytes are left",
              atomic_load(&counting.bytes) - before);
    }
    CHECK(!stopped, "%s: always stopped", c->name);
    check_again(handle, c, "interruptions");
}

/* With one and two threads, and the small matrices with six: more than four workers take memory. */
static void
test_interruptions(void)
{
    const int threads[] = {1, 2, 6};

    for (int i = 0; i < 3; i++) {
        tsvd_handle *handle = faulty_handle(threads[i]);

        for (int j = 0; j < SHAPES; j++) {
            struct call c;

            if (threads[i] > 2 && shapes[j].n >= 70) {
                continue;
            }
            c = make_call(DTYPE, shapes[j]);
            check_interruptions(handle, &c);
            free_call(&c);
        }
        end_handle(handle);
    }
}

/* ---- vectors that are not what they should be ---- */

enum defect { OVERLAP_RIGHT, OVERLAP_LEFT, SIGN, DEFECTS };

static enum defect defect; /* what happens to a vector of the first call of twist() */
static int64_t defect_n;   /* order of the matrix */
static atomic_int planted;

/* Makes vectors, and spoils one by ten times what is allowed before the probes see it. */
static void
defective_twist(const struct twisted_matrix *matrix, const struct twisted_lanes *job)
{
    const int64_t n = defect_n;
    const real overlap = REAL(10 * 3 * eps_of(DTYPE) * (double)(n + 8));
    int64_t j = random_int(0, (int)job->count - 1), other;

    right->twist(matrix, job);
    if (atomic_exchange(&planted, 1) != 0 || job->count < 2) {
        return;
    }
    while (defect == SIGN && job->high[j] < job->high[0] / 16) {
        j /= 2; /* the sign of a vector does not matter for a tiny value */
    }
    other = (j + 1) % job->count;
    for (int64_t i = 0; i < n; i++) {
        if (defect == OVERLAP_RIGHT) {
            job->rows[j * n + i] += overlap * job->rows[other * n + i];
        } else if (defect == OVERLAP_LEFT) {
            job->columns[i * job->stride + j] += overlap * job->columns[i * job->stride + other];
        } else {
            job->rows[j * n + i] = -job->rows[j * n + i];
        }
    }
}

/* A spoilt vector is found each time, and divide and conquer takes the matrix. */
static void
test_defects(void)
{
    enum { TIMES = DEFECTS_PLANTED };
    const int64_t orders[] = {20, 45, 100};
    tsvd_handle *handle = faulty_handle(1);

    for (int i = 0; i < 3; i++) {
        struct trial t = trial_begin(handle, TSVD_METHOD_TWISTED, orders[i], 1, 1);
        struct trial dc = trial_begin(handle, TSVD_METHOD_DC, orders[i], 1, 1);
        int64_t found = 0;
        tsvd_info info = TSVD_INFO_INIT;
        tsvd_error error;

        CHECK(solve_on(handle, &t.w, &t.options, &info, &error) == TSVD_OK && info.refused == 0 &&
                  info.method == TSVD_METHOD_TWISTED,
              "n = %lld: %lld refused", (long long)orders[i], (long long)info.refused);
        memcpy(dc.w.d, t.w.d, (size_t)orders[i] * sizeof(real));
        memcpy(dc.w.e, t.w.e, (size_t)(orders[i] - 1) * sizeof(real));
        free(dc.results);
        dc.results = NULL;
        works(handle, &dc, "divide and conquer");
        dc.options.method = TSVD_METHOD_TWISTED;
        kernels.twist = defective_twist;
        defect_n = orders[i];
        for (int time = 0; time < TIMES / (1 << 2 * i); time++) {
            defect = (enum defect)(time % DEFECTS);
            atomic_store(&planted, 0);
            CHECK(solve_on(handle, &dc.w, &dc.options, &info, &error) == TSVD_OK, "%s", error.text);
            found += info.refused > 0 && info.method == TSVD_METHOD_DC;
        }
        CHECK(found == TIMES / (1 << 2 * i), "n = %lld: %lld of %d are found", (long long)orders[i],
              (long long)found, TIMES / (1 << 2 * i));
        match_results(&dc, "after a defect");
        dc.options.fallback = 0;
        atomic_store(&planted, 0);
        fails(handle, &dc, TSVD_ERR_NO_CONVERGENCE, 0, &error);
        mend_kernels();
        works(handle, &t, "after defects");
        trial_end(&t);
        trial_end(&dc);
    }
    end_handle(handle);
}

static int
test_faults(void)
{
    mend_kernels();
    test_stuck_leaves();
    test_stuck_hints();
    test_bounded_sweeps();
    test_stuck_secular();
    test_defects();
    test_interruptions();
    return report();
}
