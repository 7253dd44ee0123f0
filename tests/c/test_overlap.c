/*
 * Results that overlap the input or each other are refused, and nothing is written; no others are.
 * Arrays lie anywhere in a small piece of memory, with any strides, and all entries are visited to
 * find out where each begins and ends.
 */
#include <string.h>

#include "defaults.h"
#include "plain_blas.h"

enum { POOL = 4096, WINDOW = 1200, DRAWS = 4000 }; /* bytes, and draws of each entry point */
enum { MOST_ARRAYS = 5 };

static _Alignas(64) unsigned char pool[POOL], before[POOL];

/* What a draw is of. */
struct draw {
    tsvd_array array[MOST_ARRAYS];
    int inputs, count; /* the results are those from `inputs` on */
};

static tsvd_dtype
random_dtype(int with_complex)
{
    return (tsvd_dtype)random_int(TSVD_FLOAT64, with_complex ? TSVD_COMPLEX64 : TSVD_FLOAT32);
}

/* An array anywhere in the window; C-contiguous, or for input with any strides. */
static tsvd_array
random_array(tsvd_dtype dtype, int ndim, const int64_t *shape, int is_input)
{
    const int size = (int)tsvd_dtype_size(dtype);
    unsigned char *data = pool + (POOL - WINDOW) / 2 + random_int(0, WINDOW / size) * size;
    tsvd_array array = tsvd_array_of(data, TSVD_HOST, dtype, ndim, shape);

    for (int i = 0; i < ndim && is_input && random_int(0, 2) > 0; i++) {
        array.strides[i] = random_int(-9, 9) * size;
    }
    return array;
}

/* The first byte of an array and that after the last one, of all its entries; no byte if it is
   empty. */
static void
visit(const tsvd_array *array, intptr_t *low, intptr_t *high)
{
    int64_t index[TSVD_MAX_DIMS] = {0};
    int i = 0;

    *low = INTPTR_MAX;
    *high = INTPTR_MIN;
    for (int k = 0; k < array->ndim; k++) {
        if (array->shape[k] == 0) {
            return;
        }
    }
    while (i < array->ndim) {
        intptr_t at = (intptr_t)array->data;

        for (int k = 0; k < array->ndim; k++) {
            at += index[k] * array->strides[k];
        }
        *low = at < *low ? at : *low;
        at += (intptr_t)tsvd_dtype_size(array->dtype);
        *high = at > *high ? at : *high;
        for (i = 0; i < array->ndim && ++index[i] == array->shape[i]; i++) {
            index[i] = 0;
        }
    }
}

static int
two_overlap(const tsvd_array *a, const tsvd_array *b)
{
    intptr_t a_low, a_high, b_low, b_high;

    visit(a, &a_low, &a_high);
    visit(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

static int
must_refuse(const struct draw *draw)
{
    int refuse = 0;

    for (int i = draw->inputs; i < draw->count; i++) {
        for (int j = 0; j < i; j++) {
            refuse |= two_overlap(&draw->array[i], &draw->array[j]);
        }
    }
    return refuse;
}

/* Numbers that all types can have: none is NaN. */
static void
fill_pool(void)
{
    for (int i = 0; i < POOL; i++) {
        pool[i] = i % 4 == 3 ? 0x3f : (unsigned char)random_int(1, 100);
    }
    memcpy(before, pool, sizeof pool);
}

/* The status is that of a draw. */
static void
check_status(const struct draw *draw, tsvd_status status, const tsvd_error *error, int64_t *refused,
             const char *what)
{
    if (must_refuse(draw)) {
        ++*refused;
        CHECK(status == TSVD_ERR_ARGUMENT && strstr(error->text, "overlap") != NULL,
              "%s: status %d, %s", what, (int)status, status == TSVD_OK ? "" : error->text);
        CHECK(memcmp(pool, before, sizeof pool) == 0, "%s has written", what);
    } else {
        CHECK(status != TSVD_ERR_ARGUMENT, "%s: %s", what, error->text);
    }
    memcpy(pool, before, sizeof pool);
}

/* Both happened often enough. */
static void
check_draws(int64_t refused, const char *what)
{
    CHECK(refused > DRAWS / 20 && refused < DRAWS - DRAWS / 20, "%s: %lld of %d refused", what,
          (long long)refused, DRAWS);
}

/* ---- bidiagonal matrices ---- */

static void
test_bidiagonal(tsvd_handle *handle)
{
    int64_t refused[2] = {0, 0};

    for (int i = 0; i < DRAWS; i++) {
        const tsvd_dtype dtype = random_dtype(0);
        const int64_t n = random_int(0, 3), batch = random_int(0, 2), vectors = random_int(0, 1);
        const int64_t d[] = {batch, n}, e[] = {batch, n > 0 ? n - 1 : 0}, L[] = {batch, n, n};
        const int shared = random_int(0, 1); /* e of one matrix for all */
        struct draw draw = {.inputs = 2, .count = vectors ? 5 : 3};
        const tsvd_array *a = draw.array;
        tsvd_prepared *prepared = NULL;
        tsvd_error error;
        tsvd_status status;

        draw.array[0] = random_array(dtype, 2, d, 1);
        draw.array[1] = random_array(dtype, 2 - shared, e + shared, 1);
        draw.array[2] = random_array(dtype, 2, d, 0);
        draw.array[3] = random_array(dtype, 3, L, 0);
        draw.array[4] = random_array(dtype, 3, L, 0);
        fill_pool();
        status = tsvd_svd(handle, &a[0], &a[1], NULL, vectors ? &a[3] : NULL, &a[2],
                          vectors ? &a[4] : NULL, NULL, &error);
        if (batch == 0 && shared) {
            draw.array[1].shape[0] = 0; /* e of no matrix is not read */
        }
        check_status(&draw, status, &error, &refused[0], "svd");
        status = tsvd_prepare(handle, &a[0], &a[1], NULL, (int)vectors, TSVD_HOST, NULL, &prepared,
                              &error);
        if (batch == 0 && shared) {
            tsvd_prepared_destroy(prepared); /* the shape of e above was the check's */
            continue;
        }
        CHECK(status == TSVD_OK, "%s", error.text);
        status = tsvd_execute(prepared, a[0].data, a[1].data, a[3].data, a[2].data, a[4].data, NULL,
                              &error);
        check_status(&draw, status, &error, &refused[1], "execute");
        tsvd_prepared_destroy(prepared);
    }
    check_draws(refused[0], "svd");
    check_draws(refused[1], "execute");
}

/* ---- dense matrices ---- */

/* The second half of the SVD of matrices that lay elsewhere, and B. */
static void
check_reduced(tsvd_handle *handle, const struct draw *dense, int64_t *refused)
{
    const tsvd_array *a = dense->array;
    const int vectors = dense->count > 2;
    const int64_t p = a[1].shape[1], shape[] = {a[1].shape[0], p > 0 ? p - 1 : 0};
    struct draw results = *dense, entries = {.inputs = 0, .count = 2};
    tsvd_reduction *reduction = NULL;
    tsvd_error error;
    tsvd_status status = tsvd_dense_reduce(handle, &a[0], NULL, &reduction, &error);

    if (status == TSVD_ERR_LIBRARY) { /* complex matrices need zgemm */
        return;
    }
    fill_pool();
    CHECK(status == TSVD_OK, "%s", error.text);
    results.array[0].shape[0] = 0; /* it is not read again */
    status = tsvd_reduction_svd(reduction, NULL, vectors ? &a[2] : NULL, &a[1],
                                vectors ? &a[3] : NULL, NULL, &error);
    check_status(&results, status, &error, &refused[0], "reduction_svd");
    entries.array[0] = random_array(a[1].dtype, 2, a[1].shape, 0);
    entries.array[1] = tsvd_array_of((char *)entries.array[0].data + 8 * random_int(-9, 9),
                                     TSVD_HOST, a[1].dtype, 2, shape);
    status = tsvd_reduction_entries(reduction, &entries.array[0], &entries.array[1], &error);
    check_status(&entries, status, &error, &refused[1], "reduction_entries");
    tsvd_reduction_destroy(reduction);
}

static void
test_dense(tsvd_handle *handle)
{
    int64_t refused[4] = {0, 0, 0, 0};

    for (int i = 0; i < DRAWS; i++) {
        const tsvd_dtype dtype = random_dtype(1), real = tsvd_dtype_of_values(dtype);
        const int64_t m = random_int(0, 3), n = random_int(0, 3), batch = random_int(0, 2);
        const int vectors = random_int(0, 2), full = vectors == 2;
        const int64_t p = m < n ? m : n;
        const int64_t A[] = {batch, m, n}, S[] = {batch, p};
        const int64_t U[] = {batch, m, full ? m : p}, Vh[] = {batch, full ? n : p, n};
        struct draw draw = {.inputs = 1, .count = vectors ? 4 : 2};
        const tsvd_array *a = draw.array;
        tsvd_prepared *prepared = NULL;
        tsvd_error error;
        tsvd_status status;

        draw.array[0] = random_array(dtype, 3, A, 1);
        draw.array[1] = random_array(real, 2, S, 0);
        draw.array[2] = random_array(dtype, 3, U, 0);
        draw.array[3] = random_array(dtype, 3, Vh, 0);
        fill_pool();
        status = tsvd_dense_svd(handle, &a[0], NULL, vectors ? &a[2] : NULL, &a[1],
                                vectors ? &a[3] : NULL, NULL, &error);
        check_status(&draw, status, &error, &refused[0], "dense_svd");
        status =
            tsvd_dense_prepare(handle, &a[0], NULL, vectors, TSVD_HOST, NULL, &prepared, &error);
        if (status == TSVD_OK) {
            status = tsvd_dense_execute(prepared, a[0].data, a[2].data, a[1].data, a[3].data, NULL,
                                        &error);
            check_status(&draw, status, &error, &refused[1], "dense_execute");
        }
        CHECK(status != TSVD_ERR_LIBRARY || dtype != real, "%s", error.text);
        tsvd_prepared_destroy(prepared);
        check_reduced(handle, &draw, refused + 2);
    }
    check_draws(refused[0], "dense_svd");
    check_draws(2 * refused[1], "dense_execute"); /* the half that is real */
    check_draws(4 * refused[2], "reduction_svd"); /* and few have the vectors to overlap */
    check_draws(4 * refused[3], "reduction_entries");
}

static void
test_inverse(tsvd_handle *handle)
{
    int64_t refused[2] = {0, 0};

    for (int i = 0; i < DRAWS; i++) {
        const tsvd_dtype dtype = random_dtype(1);
        const int64_t n = random_int(0, 4), shape[] = {random_int(0, 3), n, n};
        struct draw draw = {.inputs = 1, .count = 2};
        const tsvd_array *a = draw.array;
        tsvd_prepared *prepared = NULL;
        tsvd_error error;
        tsvd_status status;

        draw.array[0] = random_array(dtype, 3, shape, 1);
        draw.array[1] = random_array(dtype, 3, shape, 0);
        fill_pool();
        status = tsvd_dense_inverse(handle, &a[0], NULL, 0, &a[1], NULL, &error);
        check_status(&draw, status, &error, &refused[0], "dense_inverse");
        status = tsvd_inverse_prepare(handle, &a[0], NULL, 0, TSVD_HOST, NULL, &prepared, &error);
        if (status == TSVD_OK) {
            status = tsvd_inverse_execute(prepared, a[0].data, a[1].data, NULL, &error);
            check_status(&draw, status, &error, &refused[1], "inverse_execute");
        }
        tsvd_prepared_destroy(prepared);
    }
    check_draws(refused[0], "dense_inverse");
    check_draws(2 * refused[1], "inverse_execute");
}

/* ---- two arrays ---- */

static void
test_two_arrays(void)
{
    int64_t overlaps = 0;

    for (int i = 0; i < DRAWS; i++) {
        const int64_t shape[] = {random_int(0, 3), random_int(1, 3), random_int(1, 3)};
        const tsvd_array a = random_array(random_dtype(1), random_int(1, 3), shape, 1);
        const tsvd_array b = random_array(random_dtype(1), random_int(1, 3), shape, 1);

        CHECK(tsvd_arrays_overlap(&a, &b) == two_overlap(&a, &b), "draw %d", i);
        overlaps += two_overlap(&a, &b);
    }
    check_draws(overlaps, "two arrays");
}

/* Strides beyond all addresses: the array counts as all memory. */
static void
test_beyond_all_addresses(void)
{
    const int64_t shape[] = {1, 3};
    tsvd_array a = tsvd_array_of(pool, TSVD_HOST, TSVD_FLOAT64, 2, shape);
    const tsvd_array b = tsvd_array_of(pool + 1024, TSVD_HOST, TSVD_FLOAT64, 2, shape);

    CHECK(!tsvd_arrays_overlap(&a, &b), "apart");
    a.strides[0] = INT64_MIN; /* of one row alone: of no meaning */
    CHECK(!tsvd_arrays_overlap(&a, &b), "apart");
    a.strides[1] = INT64_MAX;
    CHECK(tsvd_arrays_overlap(&a, &b), "more than 2^63 bytes up");
    a.strides[1] = INT64_MAX / 2;
    CHECK(tsvd_arrays_overlap(&a, &b), "nearly 2^63 bytes up");
    a.strides[1] = INT64_MIN;
    CHECK(tsvd_arrays_overlap(&b, &a), "more than 2^63 bytes down");
    a.strides[1] = INT64_MIN / 2;
    CHECK(!tsvd_arrays_overlap(&b, &a), "2^63 bytes down, which reaches no byte above");
}

int
main(void)
{
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "no handle");
    use_blas(handle, 4);
    test_bidiagonal(handle);
    test_dense(handle);
    test_inverse(handle);
    test_two_arrays();
    test_beyond_all_addresses();
    tsvd_destroy(handle);
    return report();
}
