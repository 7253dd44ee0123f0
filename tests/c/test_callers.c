/*
 * Calls from several threads at once, each with a handle of its own: the bits are those of a single
 * thread.  Under ThreadSanitizer also that there are no data races.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "plain_blas.h"
#include "problem.h"

enum { CALLERS = 4, ROUNDS = 3 };

/* The calls that every thread makes: one matrix, and batches. */
static const struct shape {
    tsvd_method method;
    int64_t n, matrices;
    int vectors;
} shapes[] = {
    {TSVD_METHOD_DC, 170, 1, 1},     {TSVD_METHOD_DC, 40, 9, 1},     {TSVD_METHOD_QR, 60, 1, 1},
    {TSVD_METHOD_QR, 20, 9, 1},      {TSVD_METHOD_GIVENS, 40, 3, 1}, {TSVD_METHOD_AUTO, 12, 40, 0},
    {TSVD_METHOD_BISECT, 300, 1, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct work expected[DTYPES][SHAPES];
static atomic_int begun;

static tsvd_handle *
make_handle(int threads)
{
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;

    config.threads = threads;
    if (tsvd_create(&config, &handle, NULL) != TSVD_OK) {
        printf("no handle\n");
        exit(EXIT_FAILURE);
    }
    use_blas(handle, 4);
    return handle;
}

/* Other arrays for the results of the same matrices. */
static struct work
twin_of(const struct work *w)
{
    struct work twin = make_work(w->dtype, w->n, w->matrices);

    memcpy(twin.d, w->d, (size_t)(w->matrices * w->n) * size_of(w->dtype));
    memcpy(twin.e, w->e, (size_t)(w->matrices * (w->n - 1)) * size_of(w->dtype));
    twin.vectors = w->vectors;
    return twin;
}

static int
same_results(const struct work *a, const struct work *b)
{
    const size_t s = (size_t)(a->matrices * a->n) * size_of(a->dtype), side = s * (size_t)a->n;

    return memcmp(a->s, b->s, s) == 0 &&
           (!a->vectors || (memcmp(a->L, b->L, side) == 0 && memcmp(a->R, b->R, side) == 0));
}

static tsvd_status
make_call(tsvd_handle *handle, const struct work *w, tsvd_method method)
{
    tsvd_options options = default_options();
    tsvd_error error;

    options.method = method;
    options.eps = method == TSVD_METHOD_GIVENS ? 1e-2 : -1;
    return solve_on(handle, w, &options, NULL, &error);
}

/* One thread's calls; its number says how many threads each call has, and where it begins.  Returns
   how many calls went wrong. */
static void *
make_calls(void *arg)
{
    const int caller = (int)(intptr_t)arg;
    tsvd_handle *handle = make_handle(1 + caller % 3);
    intptr_t wrong = 0;

    atomic_fetch_add(&begun, 1);
    while (atomic_load(&begun) < CALLERS) { /* so that the calls overlap */
    }
    for (int i = 0; i < ROUNDS * DTYPES * SHAPES; i++) {
        const int which = (i + 3 * caller) % (DTYPES * SHAPES);
        const struct work *should = &expected[which / SHAPES][which % SHAPES];
        struct work w = twin_of(should);

        wrong += make_call(handle, &w, shapes[which % SHAPES].method) != TSVD_OK ||
                 !same_results(&w, should);
        free_work(&w);
    }
    tsvd_destroy(handle);
    return (void *)wrong;
}

int
main(void)
{
    tsvd_handle *handle = make_handle(1);
    pthread_t thread[CALLERS];

    for (int t = 0; t < DTYPES; t++) {
        for (int i = 0; i < SHAPES; i++) {
            struct work *w = &expected[t][i];

            *w = make_work(dtypes[t], shapes[i].n, shapes[i].matrices);
            w->vectors = shapes[i].vectors;
            CHECK(make_call(handle, w, shapes[i].method) == TSVD_OK, "alone");
            for (int64_t m = 0; m < w->matrices && w->vectors; m++) {
                check_result(w, m, 0,
                             4 * (double)(w->n + 8) * eps_of(dtypes[t]) +
                                 (shapes[i].method == TSVD_METHOD_GIVENS ? 4e-2 : 0));
            }
        }
    }
    for (intptr_t i = 0; i < CALLERS; i++) {
        CHECK(pthread_create(&thread[i], NULL, make_calls, (void *)i) == 0, "a thread");
    }
    for (int i = 0; i < CALLERS; i++) {
        void *wrong = NULL;

        CHECK(pthread_join(thread[i], &wrong) == 0 && wrong == NULL, "caller %d: %lld calls", i,
              (long long)(intptr_t)wrong);
    }
    for (int t = 0; t < DTYPES; t++) {
        for (int i = 0; i < SHAPES; i++) {
            free_work(&expected[t][i]);
        }
    }
    tsvd_destroy(handle);
    return report();
}
