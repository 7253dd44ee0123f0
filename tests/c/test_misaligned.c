/*
 * Arrays of the host whose address, or a stride that is used, is no multiple of the size of a real
 * number are refused.  All others are taken, those of complex numbers too where only the real ones
 * are aligned.
 */
#include <string.h>

#include "defaults.h"
#include "plain_blas.h"

static const tsvd_dtype dtypes[] = {TSVD_FLOAT64, TSVD_FLOAT32, TSVD_COMPLEX128, TSVD_COMPLEX64};

/* The arrays of the calls, each in memory of its own. */
enum { IN_A, OUT_U, OUT_S, OUT_VH, ARRAYS };
enum { ORDER = 3 };

static _Alignas(64) unsigned char memory[ARRAYS][512];

struct call {
    tsvd_array array[ARRAYS];
};

static struct call
make_call(tsvd_dtype dtype)
{
    const int64_t shape[] = {ORDER, ORDER};
    struct call c;

    memset(memory, 0, sizeof memory);
    for (int i = 0; i < ARRAYS; i++) {
        c.array[i] = tsvd_array_of(memory[i] + 64, TSVD_HOST,
                                   i == OUT_S ? tsvd_dtype_of_values(dtype) : dtype,
                                   i == OUT_S ? 1 : 2, shape);
    }
    return c;
}

/* Moves the address of an array. */
static void
move(tsvd_array *array, int bytes)
{
    array->data = (unsigned char *)array->data + bytes;
}

static tsvd_status
dense(tsvd_handle *handle, const struct call *c)
{
    return tsvd_dense_svd(handle, &c->array[IN_A], NULL, &c->array[OUT_U], &c->array[OUT_S],
                          &c->array[OUT_VH], NULL, NULL);
}

static tsvd_status
execute(tsvd_handle *handle, const struct call *c)
{
    tsvd_prepared *prepared = NULL;
    tsvd_status status =
        tsvd_dense_prepare(handle, &c->array[IN_A], NULL, 1, TSVD_HOST, NULL, &prepared, NULL);

    if (status == TSVD_OK) {
        status = tsvd_dense_execute(prepared, c->array[IN_A].data, c->array[OUT_U].data,
                                    c->array[OUT_S].data, c->array[OUT_VH].data, NULL, NULL);
    }
    tsvd_prepared_destroy(prepared);
    return status;
}

static tsvd_status
invert(tsvd_handle *handle, const struct call *c)
{
    return tsvd_dense_inverse(handle, &c->array[IN_A], NULL, 0, &c->array[OUT_U], NULL, NULL);
}

static void
test_dense(tsvd_handle *handle)
{
    for (int t = 0; t < 4; t++) {
        const int size = (int)tsvd_dtype_size(tsvd_dtype_of_values(dtypes[t]));

        for (int bytes = 0; bytes <= 2 * size; bytes++) {
            const int refused = bytes % size != 0;

            for (int i = 0; i < ARRAYS; i++) {
                struct call c = make_call(dtypes[t]);

                move(&c.array[i], bytes);
                CHECK((dense(handle, &c) == TSVD_ERR_ARGUMENT) == refused, "dtype %d, array %d",
                      (int)dtypes[t], i);
                CHECK((execute(handle, &c) == TSVD_ERR_ARGUMENT) == refused, "dtype %d, array %d",
                      (int)dtypes[t], i);
                CHECK((invert(handle, &c) == TSVD_ERR_ARGUMENT) == (refused && i <= OUT_U),
                      "dtype %d, array %d", (int)dtypes[t], i);
            }
            for (int i = 0; i < 2; i++) {
                struct call c = make_call(dtypes[t]);

                c.array[IN_A].strides[i] -= bytes;
                CHECK((dense(handle, &c) == TSVD_ERR_ARGUMENT) == refused, "stride %d", i);
                CHECK((execute(handle, &c) == TSVD_ERR_ARGUMENT) == refused, "stride %d", i);
                CHECK((invert(handle, &c) == TSVD_ERR_ARGUMENT) == refused, "stride %d", i);
            }
        }
    }
}

static void
test_bidiagonal(tsvd_handle *handle)
{
    const int64_t one = 1, n = ORDER, off = ORDER - 1, none = 0;

    for (int t = 0; t < 2; t++) {
        const int size = (int)tsvd_dtype_size(dtypes[t]);

        for (int bytes = 0; bytes <= 2 * size; bytes++) {
            const tsvd_status expected = bytes % size != 0 ? TSVD_ERR_ARGUMENT : TSVD_OK;

            for (int i = 0; i < 5; i++) {
                tsvd_array a[3] = {tsvd_array_of(memory[0], TSVD_HOST, dtypes[t], 1, &n),
                                   tsvd_array_of(memory[1], TSVD_HOST, dtypes[t], 1, &off),
                                   tsvd_array_of(memory[2], TSVD_HOST, dtypes[t], 1, &n)};
                int64_t first, count;

                memset(memory, 0, sizeof memory);
                if (i < 3) {
                    move(&a[i], bytes);
                } else {
                    a[i - 3].strides[0] += bytes;
                }
                CHECK(tsvd_svd(handle, &a[0], &a[1], NULL, NULL, &a[2], NULL, NULL, NULL) ==
                          expected,
                      "%d bytes, %d", bytes, i);
                CHECK(tsvd_select(handle, &a[0], &a[1], NULL, 0, 1, &first, &count, NULL) ==
                          (i == 2 ? TSVD_OK : expected),
                      "%d bytes, %d", bytes, i);
            }
        }
    }

    /* where there is no second entry, or no entry at all, nothing is refused */
    tsvd_array d = tsvd_array_of(memory[0], TSVD_HOST, TSVD_FLOAT64, 1, &one);
    tsvd_array s = tsvd_array_of(memory[1], TSVD_HOST, TSVD_FLOAT64, 1, &one);

    d.strides[0] = s.strides[0] = 3;
    CHECK(tsvd_svd(handle, &d, NULL, NULL, NULL, &s, NULL, NULL, NULL) == TSVD_OK, "one entry");
    d = s = tsvd_array_of(memory[0] + 1, TSVD_HOST, TSVD_FLOAT64, 1, &none);
    d.strides[0] = s.strides[0] = 3;
    CHECK(tsvd_svd(handle, &d, NULL, NULL, NULL, &s, NULL, NULL, NULL) == TSVD_OK, "no entry");
}

int
main(void)
{
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "no handle");
    use_blas(handle, 4);
    test_dense(handle);
    test_bidiagonal(handle);
    tsvd_destroy(handle);
    return report();
}
