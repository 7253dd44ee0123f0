/*
 * The caller's floating-point environment: it changes no bit of a result, traps nothing inside the
 * library, and comes back with its exception flags.
 */
#define _GNU_SOURCE /* feenableexcept() */
#include <fenv.h>
#include <string.h>

#include "problem.h"
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

static const tsvd_method methods[] = {TSVD_METHOD_AUTO, TSVD_METHOD_QR, TSVD_METHOD_GIVENS,
                                      TSVD_METHOD_BISECT, TSVD_METHOD_TWISTED};

enum { METHODS = 5, MOST = 70 };

static void
flush(void)
{
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

static void
trap(void)
{
#ifdef __GLIBC__ /* elsewhere C has no function for it */
    (void)feenableexcept(FE_ALL_EXCEPT);
#elif defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() & ~0x1f80u);
#endif
}

static void
upward(void)
{
    (void)fesetround(FE_UPWARD);
}

static void
raise_some(void)
{
    (void)feraiseexcept(FE_DIVBYZERO);
}

static void (*const changes[])(void) = {flush, trap, upward, raise_some};
static const char *const names[] = {"flush to zero", "traps", "upward", "a flag"};

enum { CHANGES = 4 };

/* The bits of the environment that a call must leave as they were. */
struct state {
    int round, traps, flags;
    unsigned control;
};

static struct state
state_now(void)
{
    struct state now = {fegetround(), 0, fetestexcept(FE_ALL_EXCEPT), 0};

#ifdef __GLIBC__
    now.traps = fegetexcept();
#endif
#ifdef __x86_64__
    now.control = _mm_getcsr();
#endif
    return now;
}

/* A matrix with some tiny entries, and a zero value. */
static struct work
draw(tsvd_dtype dtype, int64_t n)
{
    struct work w = make_work(dtype, n, 2);

    for (int64_t i = 0; i < n; i += 3) {
        set(dtype, w.d, i, (dtype == TSVD_FLOAT64 ? 0x1p-1073 : 0x1p-148) * (double)(i + 1));
    }
    return w;
}

static void
copy_results(const struct work *w, char *to)
{
    const size_t size = size_of(w->dtype), numbers = (size_t)(w->matrices * w->n);

    memcpy(to, w->s, numbers * size);
    memcpy(to + numbers * size, w->L, numbers * (size_t)w->n * size);
    memcpy(to + numbers * (1 + (size_t)w->n) * size, w->R, numbers * (size_t)w->n * size);
}

static void
test_calls(void)
{
    fenv_t outer;

    for (int t = 0; t < DTYPES; t++) {
        for (int m = 0; m < METHODS; m++) {
            for (int64_t n = 1; n <= MOST; n = 4 * n + 1) {
                struct work w = draw(dtypes[t], n);
                const size_t bytes = (size_t)(w.matrices * n * (2 * n + 1)) * size_of(w.dtype);
                char *expected = allocate(bytes), *found = allocate(bytes);
                tsvd_options options = default_options();

                options.method = methods[m];
                w.vectors = methods[m] != TSVD_METHOD_BISECT;
                CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "n = %lld", (long long)n);
                copy_results(&w, expected);
                for (int c = 0; c < CHANGES; c++) {
                    struct state before, after;
                    tsvd_status status;

                    memset(w.s, 0, (size_t)(w.matrices * n) * size_of(w.dtype));
                    (void)fegetenv(&outer);
                    changes[c]();
                    before = state_now();
                    status = solve(&w, &options, NULL, NULL);
                    after = state_now();
                    (void)fesetenv(&outer);
                    copy_results(&w, found);
                    CHECK(status == TSVD_OK, "%s, n = %lld", names[c], (long long)n);
                    CHECK(memcmp(expected, found, bytes) == 0, "%s, %s, n = %lld: other bits",
                          names[c], tsvd_method_name(methods[m]), (long long)n);
                    CHECK(memcmp(&before, &after, sizeof before) == 0,
                          "%s, %s, n = %lld: the environment is another", names[c],
                          tsvd_method_name(methods[m]), (long long)n);
                }
                free(expected);
                free(found);
                free_work(&w);
            }
        }
    }
}

/* The range of an interval, from bounds that are not exact in the dtype. */
static void
test_select_range(void)
{
    const float d[] = {1, 0x1p-149F, 3}, e[] = {0x1p-149F, 2};
    const int64_t n = 3, off = 2;
    tsvd_array d_array = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT32, 1, &n);
    tsvd_array e_array = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT32, 1, &off);
    fenv_t outer;

    for (int c = 0; c < CHANGES; c++) {
        struct state before, after;
        int64_t first = -1, count = -1;
        tsvd_status status;

        (void)fegetenv(&outer);
        changes[c]();
        before = state_now();
        status = tsvd_select(cpu(), &d_array, &e_array, NULL, 0x1p-160, 1.1, &first, &count, NULL);
        after = state_now();
        (void)fesetenv(&outer);
        CHECK(status == TSVD_OK && first == 1 && count == 2, "%s: %lld, %lld", names[c],
              (long long)first, (long long)count);
        CHECK(memcmp(&before, &after, sizeof before) == 0, "%s: the environment is another",
              names[c]);
    }
}

/* The crossover orders of devices: computing them rounds. */
static void
test_crossover(void)
{
    fenv_t outer;

    for (int i = 0; i < 200; i++) {
        const tsvd_cuda_device device = {.major = 8,
                                         .multiprocessors = 40 + i,
                                         .clock_khz = 1400000 + 1237 * i,
                                         .single_to_double = 2};
        const tsvd_dtype dtype = dtypes[i % DTYPES];
        const tsvd_cuda_crossover expected = tsvd_cuda_crossover_of(&device, dtype, i % 3 > 0);

        for (int c = 0; c < CHANGES; c++) {
            struct state before, after;
            tsvd_cuda_crossover found;

            (void)fegetenv(&outer);
            changes[c]();
            before = state_now();
            found = tsvd_cuda_crossover_of(&device, dtype, i % 3 > 0);
            after = state_now();
            (void)fesetenv(&outer);
            CHECK(found.order == expected.order && found.batch_values == expected.batch_values,
                  "%s, device %d: %lld, %lld", names[c], i, (long long)found.order,
                  (long long)found.batch_values);
            CHECK(memcmp(&before, &after, sizeof before) == 0,
                  "%s, device %d: the environment is another", names[c], i);
        }
    }
}

/* What check() saw, and how often it was called. */
static int seen, calls;

static int
look(void *arg, double done)
{
    (void)arg, (void)done;
    seen = calls++ == 0 ? fegetround() : seen;
    (void)feclearexcept(FE_ALL_EXCEPT);
    (void)fesetround(FE_TOWARDZERO);
    return 0;
}

/* check() runs in the caller's environment, and what it sets is there afterwards. */
static void
test_check(void)
{
    struct work w = draw(TSVD_FLOAT64, MOST);
    tsvd_options options = default_options();
    struct state after;
    fenv_t outer;

    /* only the caller is asked, and another thread may take all matrices */
    CHECK(tsvd_set_threads(cpu(), 1, NULL) == TSVD_OK, "threads");
    options.check = look;
    (void)fegetenv(&outer);
    (void)fesetround(FE_UPWARD);
    CHECK(solve(&w, &options, NULL, NULL) == TSVD_OK, "with check()");
    after = state_now();
    (void)fesetenv(&outer);
    CHECK(calls > 0 && seen == FE_UPWARD, "check() saw %x", (unsigned)seen);
    CHECK(after.round == FE_TOWARDZERO && after.flags == 0, "what check() left is there");
    free_work(&w);
}

int
main(void)
{
    test_calls();
    test_select_range();
    test_crossover();
    test_check();
    return report();
}
