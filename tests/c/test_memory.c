/*
 * Host memory that is refused: at each request of a call, at that alone or also at all behind it.
 * The call says so, keeps nothing, and the next one is right.
 */
#include <string.h>

#include "counting.h"
#include "plain_blas.h"
#include "problem.h"

static struct counting counting;

/* From here on the request number k gets nothing; 0: all get something. */
static void
refuse_from(long long k, int others)
{
    atomic_store(&counting.calls, 0);
    atomic_store(&counting.refused, 0);
    counting.refuse = k;
    counting.others = others;
}

static tsvd_status
create(int threads, tsvd_handle **handle, tsvd_error *error)
{
    const tsvd_allocator allocator = counting_allocator(&counting);
    const tsvd_blas blas = plain_blas(4);
    tsvd_config config = tsvd_config_default();

    config.threads = threads;
    config.host_allocator = &allocator;
    config.blas = &blas;
    return tsvd_create(&config, handle, error);
}

static void
check_refusal(const char *name, tsvd_status status, const tsvd_error *error)
{
    CHECK(status == TSVD_ERR_MEMORY && error->status == status, "%s: status %d", name, (int)status);
    CHECK(error->wanted > 0 && error->matrix == -1 && error->device == TSVD_DEVICE_CPU &&
              strstr(error->text, "bytes of host memory") != NULL,
          "%s: %llu bytes: \"%s\"", name, (unsigned long long)error->wanted, error->text);
}

/* What the call gives that is not refused anything is right. */
static void
check_one(const struct work *w, const tsvd_options *options)
{
    const double tolerance = 4 * (double)(w->n + 8) * eps_of(w->dtype) + 4 * fmax(options->eps, 0);

    if (w->vectors) {
        check_result(w, w->matrices - 1, 0, tolerance);
    }
}

/* Refuses each request of a call in its turn. */
static void
check_call(tsvd_handle *handle, struct work *w, tsvd_method method, int others)
{
    const long long before = atomic_load(&counting.bytes);
    const size_t size = size_of(w->dtype), bytes[] = {
                                               (size_t)(w->matrices * w->k) * size,
                                               (size_t)(w->matrices * w->n * w->k) * size,
                                               (size_t)(w->matrices * w->n * w->k) * size,
                                           };
    const char *name = tsvd_method_name(method);
    void *result[] = {w->s, w->L, w->R}, *expected[3];
    tsvd_options options = tsvd_options_default();
    int refused = 1;
    tsvd_error error;

    options.method = method;
    options.eps = method == TSVD_METHOD_GIVENS ? 1e-2 : -1;
    if (method == TSVD_METHOD_GIVENS && w->matrices == 1) { /* so long that vectors drift */
        options.givens_split = 0;
        options.givens_blocks = 2;
    }
    CHECK(solve_on(handle, w, &options, NULL, &error) == TSVD_OK, "%s: %s", name, error.text);
    check_one(w, &options);
    for (int i = 0; i < 3; i++) {
        expected[i] = allocate(bytes[i]);
        memcpy(expected[i], result[i], bytes[i]);
    }
    for (long long k = 1; refused && k < 10000; k++) {
        tsvd_status status;

        refuse_from(k, others);
        status = solve_on(handle, w, &options, NULL, &error);
        refused = atomic_load(&counting.refused);
        refuse_from(0, 0);
        if (refused) {
            check_refusal(name, status, &error);
        }
        CHECK(atomic_load(&counting.bytes) == before, "%s, request %lld: bytes are left", name, k);
        for (int i = 0; i < 3; i++) {
            memset(result[i], 0xff, bytes[i]);
        }
        CHECK(solve_on(handle, w, &options, NULL, &error) == TSVD_OK, "%s: %s", name, error.text);
        for (int i = 0; i < (w->vectors ? 3 : 1); i++) {
            CHECK(memcmp(result[i], expected[i], bytes[i]) == 0,
                  "%s, after request %lld: result %d", name, k, i);
        }
    }
    CHECK(!refused, "%s never works", name);
    for (int i = 0; i < 3; i++) {
        free(expected[i]);
    }
}

/* Calls of each method, small and middle: leaves alone and merges, batches, parts, work for one
   thread and for several.  A path that takes memory needs no larger matrix. */
static const struct shape {
    tsvd_method method;
    int64_t n, matrices;
    int vectors;
    int64_t first, count; /* of the values; -1: all */
} shapes[] = {
    {TSVD_METHOD_DC, 20, 1, 1, 0, -1},      {TSVD_METHOD_DC, 40, 5, 1, 0, -1},
    {TSVD_METHOD_DC, 70, 1, 1, 0, -1},      {TSVD_METHOD_DC, 70, 1, 1, 20, 10},
    {TSVD_METHOD_AUTO, 8, 40, 1, 0, -1},    {TSVD_METHOD_QR, 20, 5, 1, 0, -1},
    {TSVD_METHOD_QR, 50, 1, 1, 0, -1},      {TSVD_METHOD_QR, 20, 5, 0, 0, -1},
    {TSVD_METHOD_GIVENS, 20, 5, 1, 0, -1},  {TSVD_METHOD_GIVENS, 40, 1, 1, 0, -1},
    {TSVD_METHOD_GIVENS, 20, 5, 0, 0, -1},  {TSVD_METHOD_BISECT, 40, 5, 0, 0, -1},
    {TSVD_METHOD_BISECT, 260, 1, 0, 0, -1}, {TSVD_METHOD_BISECT, 10, 40, 0, 0, -1},
    {TSVD_METHOD_BISECT, 60, 2, 0, 10, 20}, {TSVD_METHOD_AUTO, 50, 6, 0, 0, -1},
    {TSVD_METHOD_TWISTED, 70, 1, 1, 0, -1}, {TSVD_METHOD_TWISTED, 30, 2, 1, 5, 10},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* With two threads both kinds of refusal in both precisions.  With one, and with six, since more
   than four workers take memory, all requests from the k-th on in one precision. */
static void
test_calls(void)
{
    const int threads[] = {1, 2, 6};
    tsvd_error error;

    for (int t = 0; t < 3; t++) {
        tsvd_handle *handle = NULL;

        CHECK(create(threads[t], &handle, &error) == TSVD_OK, "%s", error.text);
        for (int i = 0; i < SHAPES; i++) {
            for (int kind = 0; kind < 4; kind++) {
                struct work w;

                if (threads[t] != 2 && (kind != i % 2 || shapes[i].n > 100)) {
                    continue;
                }
                w = make_work(dtypes[kind & 1], shapes[i].n, shapes[i].matrices);
                w.vectors = shapes[i].vectors;
                w.first = shapes[i].first;
                w.k = shapes[i].count < 0 ? w.n : shapes[i].count;
                check_call(handle, &w, shapes[i].method, kind >> 1);
                free_work(&w);
            }
        }
        tsvd_destroy(handle);
        CHECK(atomic_load(&counting.bytes) == 0, "the handle leaves bytes");
    }
}

/* The functions beside tsvd_svd(). */
static void
test_others(void)
{
    struct work w = make_work(TSVD_FLOAT32, 100, 1);
    struct arrays a;
    tsvd_handle *handle = NULL;
    int64_t first, count;
    int refused = 1;
    tsvd_error error;

    w.batch = 0;
    a = arrays_of(&w);
    refuse_from(1, 1);
    check_refusal("create", create(2, &handle, &error), &error);
    CHECK(handle == NULL, "a handle without memory");
    refuse_from(0, 0);
    CHECK(create(2, &handle, &error) == TSVD_OK, "%s", error.text);
    for (long long k = 1; refused && k < 100; k++) {
        const long long before = atomic_load(&counting.bytes);
        tsvd_status status;

        refuse_from(k, 0);
        status = tsvd_select(handle, &a.d, &a.e, NULL, 0.5, 1, &first, &count, &error);
        refused = atomic_load(&counting.refused);
        refuse_from(0, 0);
        if (refused) {
            check_refusal("select", status, &error);
        } else {
            CHECK(status == TSVD_OK && count > 0, "%s", error.text);
        }
        CHECK(atomic_load(&counting.bytes) == before, "select, request %lld: bytes are left", k);
    }
    tsvd_destroy(handle);
    CHECK(atomic_load(&counting.bytes) == 0, "the handle leaves bytes");
    free_work(&w);
}

int
main(void)
{
    test_calls();
    test_others();
    return report();
}
