/*
 * Host memory that is refused at each request of a call: at that request alone, or also at all
 * later ones.  The call says so, keeps no memory, and the next call is right.
 */
#include <string.h>

#include "calls.h"
#include "counting.h"
#include "plain_blas.h"

static struct counting counting;

/* From here on request number k gets no memory (others = 0: nor does any later one); k = 0: all
   requests get memory. */
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
    tsvd_config config = default_config();

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

/* Refuses each request of a call in its turn. */
static void
check_call(tsvd_handle *handle, struct call *c, int others)
{
    const long long before = atomic_load(&counting.bytes);
    int refused = 1;
    tsvd_error error;

    begin_call(handle, c, 4 * (double)(c->shape.n + 8));
    for (long long k = 1; refused && k < 10000; k++) {
        tsvd_status status;

        refuse_from(k, others);
        status = run_call(handle, c, &error);
        refused = atomic_load(&counting.refused);
        refuse_from(0, 0);
        if (refused) {
            check_refusal(c->name, status, &error);
        }
        CHECK(atomic_load(&counting.bytes) == before, "%s, request %lld: bytes are left", c->name,
              k);
        check_again(handle, c, "a refusal");
    }
    CHECK(!refused, "%s never works", c->name);
}

/* Calls of each kind, small and of middle size: leaves alone and merges, batches, parts, work for
   one thread and for several.  No path that takes memory needs a larger matrix. */
static const struct call_shape shapes[] = {
    BIDIAGONAL(DC, 20, 1, 1),
    BIDIAGONAL(DC, 40, 5, 1),
    BIDIAGONAL(DC, 70, 1, 1),
    BIDIAGONAL_PART(DC, 70, 1, 1, 20, 10),
    BIDIAGONAL(AUTO, 8, 40, 1),
    BIDIAGONAL(QR, 20, 5, 1),
    BIDIAGONAL(QR, 50, 1, 1),
    BIDIAGONAL(QR, 20, 5, 0),
    BIDIAGONAL(GIVENS, 20, 5, 1),
    BIDIAGONAL(GIVENS, 40, 1, 1),
    BIDIAGONAL(GIVENS, 20, 5, 0),
    BIDIAGONAL(BISECT, 40, 5, 0),
    BIDIAGONAL(BISECT, 260, 1, 0),
    BIDIAGONAL(BISECT, 10, 40, 0),
    BIDIAGONAL_PART(BISECT, 60, 2, 0, 10, 20),
    BIDIAGONAL(AUTO, 50, 6, 0),
    BIDIAGONAL(TWISTED, 70, 1, 1),
    BIDIAGONAL_PART(TWISTED, 30, 2, 1, 5, 10),
    DENSE(AUTO, 9, 9, 1, 1),
    DENSE(AUTO, 30, 7, 20, 1),
    DENSE(AUTO, 7, 11, 6, 0),
    DENSE(AUTO, 131, 130, 1, 1),
    DENSE_TWO_STAGES(9, 9, 1, 1),
    DENSE_TWO_STAGES(70, 60, 3, 0),
    DENSE_TWO_STAGES(131, 130, 1, 1),
    DENSE(JACOBI, 9, 9, 1, 1),
    DENSE(JACOBI, 30, 7, 20, 1),
    DENSE(JACOBI, 7, 11, 6, 0),
    DENSE(JACOBI, 60, 50, 1, 1),
    DENSE(JACOBI, 132, 132, 1, 1),
    INVERSE(5, 20, 0),
    INVERSE(9, 1, 1),
    INVERSE(6, 20, 1),
    INVERSE(70, 1, 1),
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* With two threads: both kinds of refusal in both precisions, for large matrices each in one
   precision.  With one thread, and with six, since more than four workers take memory: all requests
   from the k-th on are refused, in one precision. */
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
                struct call c;

                if (shapes[i].n > 100 ? threads[t] != 2 || kind % 3 != 0
                                      : threads[t] != 2 && kind != i % 2) {
                    continue;
                }
                c = make_call(dtypes[kind & 1], shapes[i]);
                check_call(handle, &c, kind >> 1);
                free_call(&c);
            }
        }
        tsvd_destroy(handle);
        CHECK(atomic_load(&counting.bytes) == 0, "the handle leaves bytes");
    }
}

/* The other functions that take memory. */
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
