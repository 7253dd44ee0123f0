/*
 * Results in arrays of any strides: by columns, by rows with room between, backwards.  They are
 * those of C-contiguous arrays, and what lies between is not written.  With ON_DEVICE the results lie
 * on a CUDA device, in memory that the host can read; it leaves with SKIPPED where there is no GPU.
 */
#include <complex.h>
#include <string.h>

#include "check.h"
#include "defaults.h"
#include "plain_blas.h"

#ifdef ON_DEVICE
#include <cuda_runtime_api.h>

static const tsvd_space space = TSVD_CUDA;
enum { LARGE = 150 };

static void *
take(size_t bytes)
{
    void *p = NULL;

    CHECK(cudaMallocManaged(&p, bytes, cudaMemAttachGlobal) == cudaSuccess, "%zu bytes", bytes);
    return p;
}

static void
give(void *p)
{
    (void)cudaFree(p);
}

static void
wait_for_results(void)
{
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "the device");
}

#else

static const tsvd_space space = TSVD_HOST;
enum { LARGE = 23 };

static void *
take(size_t bytes)
{
    return allocate(bytes);
}

static void
give(void *p)
{
    free(p);
}

static void
wait_for_results(void)
{
}

#endif

enum { MOST_ENTRIES = 4 * LARGE * LARGE, ROOM = 16 * MOST_ENTRIES, UNTOUCHED = 77 };

static const tsvd_dtype dtypes[] = {TSVD_FLOAT64, TSVD_FLOAT32, TSVD_COMPLEX128, TSVD_COMPLEX64};

/* How the matrices of an array lie. */
enum way { BY_ROW, BY_COLUMN, ROWS_APART, COLUMNS_APART, BACKWARDS, WAYS };

/* An array of matrices, and all memory around it. */
struct placed {
    tsvd_array array;
    char *memory;
    size_t bytes;
    int64_t rows, columns; /* that are determined: the others complete a basis */
};

static struct placed
place(tsvd_dtype dtype, enum way way, int ndim, const int64_t *shape)
{
    const int64_t size = (int64_t)tsvd_dtype_size(dtype), columns = shape[ndim - 1];
    const int64_t rows = ndim > 2 ? shape[1] : 1;
    struct placed x = {tsvd_array_of(NULL, space, dtype, ndim, shape), NULL, ROOM, rows, columns};
    int64_t *strides = x.array.strides, from = 3;

    x.memory = take(x.bytes);
    memset(x.memory, UNTOUCHED, x.bytes);
    switch (way) {
    case BY_COLUMN:
        if (ndim > 2) {
            strides[1] = size;
            strides[2] = rows * size;
        }
        break;
    case ROWS_APART:
        strides[ndim - 1] = size;
        strides[ndim - 2] = (columns + 2) * size;
        strides[0] = (columns + 2) * rows * size;
        break;
    case COLUMNS_APART:
        strides[ndim - 1] = (rows + 1) * size;
        strides[ndim - 2] = ndim > 2 ? size : (columns + 1) * 2 * size;
        strides[0] = (rows + 1) * (columns + 1) * size;
        break;
    case BACKWARDS:
        for (int i = 0; i < ndim; i++) {
            from -= shape[i] > 0 ? (shape[i] - 1) * -strides[i] / size : 0;
            strides[i] *= -1;
        }
        break;
    default:
        break;
    }
    x.array.data = x.memory + from * size;
    return x;
}

/* Entry (matrix, i, j), or (matrix, j) of values. */
static char *
entry_of(const tsvd_array *x, int64_t matrix, int64_t i, int64_t j)
{
    const int64_t *strides = x->strides;

    return (char *)x->data + matrix * strides[0] + (x->ndim > 2 ? i * strides[1] : 0) +
           j * strides[x->ndim - 1];
}

static double complex
number_at(tsvd_dtype dtype, const char *at)
{
    switch (dtype) {
    case TSVD_COMPLEX128:
        return *(const double complex *)(const void *)at;
    case TSVD_COMPLEX64:
        return *(const float complex *)(const void *)at;
    case TSVD_FLOAT32:
        return (double)*(const float *)(const void *)at;
    default:
        return *(const double *)(const void *)at;
    }
}

/* Each entry is near that of the other array, and the rest of the memory as it was. */
static void
compare(struct placed *x, const struct placed *right, double tolerance, const char *what)
{
    const tsvd_array *array = &x->array;
    const int64_t rows = array->ndim > 2 ? array->shape[1] : 1;
    const size_t size = tsvd_dtype_size(array->dtype);
    double worst = 0;
    size_t touched = 0;

    wait_for_results();
    for (int64_t k = 0; k < array->shape[0]; k++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < array->shape[array->ndim - 1]; j++) {
                char *at = entry_of(array, k, i, j);
                const double off = cabs(number_at(array->dtype, at) -
                                        number_at(array->dtype, entry_of(&right->array, k, i, j)));

                worst = off <= worst || i >= x->rows || j >= x->columns ? worst : off;
                memset(at, UNTOUCHED, size);
            }
        }
    }
    for (size_t i = 0; i < x->bytes; i++) {
        touched += x->memory[i] != UNTOUCHED;
    }
    CHECK(worst <= tolerance, "%s: off by %g", what, worst);
    CHECK(touched == 0, "%s: %zu bytes beside it were written", what, touched);
}

/* Of a method that computes the transposes all values and vectors may differ in the last bits. */
static double
tolerance_of(tsvd_dtype dtype)
{
    return dtype == TSVD_FLOAT32 || dtype == TSVD_COMPLEX64 ? 2e-3 : 1e-11;
}

static void
fill(void *x, tsvd_dtype dtype, int64_t count)
{
    const int single = dtype == TSVD_FLOAT32 || dtype == TSVD_COMPLEX64;

    count *= dtype == TSVD_COMPLEX128 || dtype == TSVD_COMPLEX64 ? 2 : 1;
    for (int64_t i = 0; i < count; i++) {
        const double number = random_scaled(-1, 0);

        if (single) {
            ((float *)x)[i] = (float)number;
        } else {
            ((double *)x)[i] = number;
        }
    }
}

/* The arrays of the results of a call. */
struct results {
    struct placed left, values, right;
};

static void
free_results(struct results *x)
{
    give(x->left.memory);
    give(x->values.memory);
    give(x->right.memory);
}

static void
compare_results(struct results *x, const struct results *right, tsvd_dtype dtype, const char *what)
{
    compare(&x->left, &right->left, tolerance_of(dtype), what);
    compare(&x->values, &right->values, tolerance_of(dtype), what);
    compare(&x->right, &right->right, tolerance_of(dtype), what);
}

/* m x n matrices; k of their values, or all vectors if k < 0. */
static struct results
place_results(tsvd_dtype dtype, enum way left, enum way right, int64_t matrices, int64_t m,
              int64_t n, int64_t k)
{
    const int64_t p = m < n ? m : n, full = k < 0, count = full ? p : k;
    const int64_t u[] = {matrices, m, full ? m : k}, s[] = {matrices, count};
    const int64_t vh[] = {matrices, full ? n : k, n};

    struct results x = {place(dtype, left, 3, u),
                        place(tsvd_dtype_of_values(dtype), left == BY_COLUMN ? BY_ROW : left, 2, s),
                        place(dtype, right, 3, vh)};

    x.left.columns = x.right.rows = count;
    return x;
}

static void
check_dense(tsvd_handle *handle, tsvd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    const int64_t matrices = 3, shape[] = {matrices, m, n}, p = m < n ? m : n;
    void *a = allocate(MOST_ENTRIES * sizeof(double complex));
    tsvd_array A = tsvd_array_of(a, TSVD_HOST, dtype, 3, shape);
    struct results right = place_results(dtype, BY_ROW, BY_ROW, matrices, m, n, k);
    tsvd_options options = default_options();
    tsvd_reduction *reduction = NULL;
    tsvd_error error;

    fill(a, dtype, matrices * m * n);
    options.count = k < 0 ? p : k;
    CHECK(tsvd_dense_svd(handle, &A, &options, &right.left.array, &right.values.array,
                         &right.right.array, NULL, &error) == TSVD_OK,
          "%s", error.text);
    for (int way = 0; way < WAYS * WAYS; way++) {
        struct results x =
            place_results(dtype, (enum way)(way / WAYS), (enum way)(way % WAYS), matrices, m, n, k);
        char what[80];

        snprintf(what, sizeof what, "dense %d, %lld x %lld, %lld, ways %d and %d", (int)dtype,
                 (long long)m, (long long)n, (long long)k, way / WAYS, way % WAYS);
        CHECK(tsvd_dense_svd(handle, &A, &options, &x.left.array, &x.values.array, &x.right.array,
                             NULL, &error) == TSVD_OK,
              "%s: %s", what, error.text);
        compare_results(&x, &right, dtype, what);
        free_results(&x);
    }
    if (dtype == TSVD_FLOAT64) {
        struct results x = place_results(dtype, BY_COLUMN, BY_COLUMN, matrices, m, n, k);

        CHECK(tsvd_dense_reduce(handle, &A, NULL, &reduction, &error) == TSVD_OK, "%s", error.text);
        CHECK(tsvd_reduction_svd(reduction, &options, &x.left.array, &x.values.array,
                                 &x.right.array, NULL, &error) == TSVD_OK,
              "%s", error.text);
        compare_results(&x, &right, dtype, "reduction");
        tsvd_reduction_destroy(reduction);
        free_results(&x);
    }
    free_results(&right);
    free(a);
}

/* extra: 1: with an entry of e more, and the null vector. */
static void
check_bidiagonal(tsvd_handle *handle, tsvd_dtype dtype, tsvd_method method, int64_t n, int lower,
                 int extra, int64_t k)
{
    const int64_t matrices = 2, d_shape[] = {matrices, n}, e_shape[] = {matrices, n - 1 + extra};
    const int64_t rows = n + (extra && lower), columns = n + (extra && !lower);
    void *d = allocate(MOST_ENTRIES * sizeof(double)), *e = allocate(MOST_ENTRIES * sizeof(double));
    tsvd_array D = tsvd_array_of(d, TSVD_HOST, dtype, 2, d_shape);
    tsvd_array E = tsvd_array_of(e, TSVD_HOST, dtype, 2, e_shape);
    struct results right = place_results(dtype, BY_ROW, BY_ROW, matrices, rows, columns, k);
    tsvd_options options = default_options();
    tsvd_error error;

    fill(d, dtype, matrices * n);
    fill(e, dtype, matrices * (n - 1 + extra));
    options.lower = lower;
    options.method = method;
    options.count = k < 0 ? n : k;
    CHECK(tsvd_svd(handle, &D, &E, &options, &right.left.array, &right.values.array,
                   &right.right.array, NULL, &error) == TSVD_OK,
          "%s", error.text);
    for (int way = 0; way < WAYS * WAYS; way++) {
        struct results x = place_results(dtype, (enum way)(way / WAYS), (enum way)(way % WAYS),
                                         matrices, rows, columns, k);
        char what[80];

        snprintf(what, sizeof what, "bidiagonal %d, n = %lld, %lld, ways %d and %d", (int)dtype,
                 (long long)n, (long long)k, way / WAYS, way % WAYS);
        CHECK(tsvd_svd(handle, &D, &E, &options, &x.left.array, &x.values.array, &x.right.array,
                       NULL, &error) == TSVD_OK,
              "%s: %s", what, error.text);
        compare_results(&x, &right, dtype, what);
        free_results(&x);
    }
    free_results(&right);
    free(d);
    free(e);
}

static void
check_inverse(tsvd_handle *handle, tsvd_dtype dtype, int64_t n)
{
    const int64_t shape[] = {3, n, n};
    void *a = allocate(MOST_ENTRIES * sizeof(double complex));
    tsvd_array A = tsvd_array_of(a, TSVD_HOST, dtype, 3, shape);
    struct placed right = place(dtype, BY_ROW, 3, shape);
    tsvd_error error;

    fill(a, dtype, 3 * n * n);
    CHECK(tsvd_dense_inverse(handle, &A, NULL, 0, &right.array, NULL, &error) == TSVD_OK, "%s",
          error.text);
    for (int way = 0; way < WAYS; way++) {
        struct placed x = place(dtype, (enum way)way, 3, shape);

        CHECK(tsvd_dense_inverse(handle, &A, NULL, 0, &x.array, NULL, &error) == TSVD_OK, "%s",
              error.text);
        compare(&x, &right, 100 * tolerance_of(dtype), "inverse");
        give(x.memory);
    }
    give(right.memory);
    free(a);
}

/* Entries of a result that share memory. */
static void
test_overlap(tsvd_handle *handle)
{
    double d[] = {3, 2, 1}, e[] = {1, 1}, L[32], s[3], R[32];
    const int64_t three = 3, two = 2, shape[] = {3, 3};
    tsvd_array D = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT64, 1, &three);
    tsvd_array E = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT64, 1, &two);
    tsvd_array S = tsvd_array_of(s, TSVD_HOST, TSVD_FLOAT64, 1, &three);
    tsvd_array left = tsvd_array_of(L, TSVD_HOST, TSVD_FLOAT64, 2, shape);
    tsvd_array right = tsvd_array_of(R, TSVD_HOST, TSVD_FLOAT64, 2, shape);
    const int64_t steps[][2] = {{0, 8},   {8, 0},   {8, 8},         {16, 8},
                                {-16, 8}, {16, 24}, {INT64_MIN, 8}, {8, INT64_MAX - 7}};
    tsvd_error error;

    for (int i = 0; i < 8; i++) {
        left.strides[0] = steps[i][0];
        left.strides[1] = steps[i][1];
        left.data = L + 8;
        CHECK(tsvd_svd(handle, &D, &E, NULL, &left, &S, &right, NULL, &error) == TSVD_ERR_ARGUMENT,
              "strides %d", i);
        /* the last two are refused earlier: no memory is so large */
        CHECK(i >= 6 || strstr(error.text, "entries of L may overlap") != NULL, "strides %d: %s", i,
              error.text);
    }
    S.strides[0] = 0;
    CHECK(tsvd_svd(handle, &D, &E, NULL, NULL, &S, NULL, NULL, &error) == TSVD_ERR_ARGUMENT,
          "values in one place");
}

/* A handle of where the results lie; NULL: there is no such device. */
static tsvd_handle *
make_handle(void)
{
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;
    int count = 1;

    if (space == TSVD_CUDA) {
        config.device = 0;
        count = tsvd_cuda_device_count(&count, &error) == TSVD_OK ? count : 0;
    }
    if (count > 0) {
        CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    }
    return handle;
}

int
main(void)
{
    enum { SKIPPED = 77 };
    tsvd_handle *handle = make_handle();

    if (handle == NULL) {
        printf("there is no CUDA device\n");
        return SKIPPED;
    }
    if (space == TSVD_HOST) {
        use_blas(handle, 4);
        test_overlap(handle);
    }
    for (int i = 0; i < 4; i++) {
        const tsvd_dtype dtype = dtypes[i];

        check_dense(handle, dtype, 5, 5, 5);
        check_dense(handle, dtype, 6, 4, 4);
        check_dense(handle, dtype, 4, 7, -1);
        check_dense(handle, dtype, 7, 3, -1);
        check_dense(handle, dtype, 1, 3, 1);
        check_dense(handle, dtype, 4, 1, 1);
        if (i < 2 || space == TSVD_CUDA) { /* what needs a BLAS */
            check_inverse(handle, dtype, 1);
            check_inverse(handle, dtype, 6);
            check_dense(handle, dtype, LARGE, LARGE - 3, LARGE - 3);
            check_dense(handle, dtype, LARGE - 3, LARGE, 7);
            check_inverse(handle, dtype, LARGE);
        }
        if (i < 2) { /* bidiagonal matrices are real */
            check_bidiagonal(handle, dtype, TSVD_METHOD_AUTO, 1, 0, 0, 1);
            for (int lower = 0; lower < 2; lower++) {
                check_bidiagonal(handle, dtype, TSVD_METHOD_QR, 20, lower, 0, 20);
                check_bidiagonal(handle, dtype, TSVD_METHOD_DC, 20, lower, 0, 9);
                check_bidiagonal(handle, dtype, TSVD_METHOD_DC, LARGE - 3, lower, 0, LARGE - 3);
                check_bidiagonal(handle, dtype, TSVD_METHOD_AUTO, 12, lower, 1, -1);
                check_bidiagonal(handle, dtype, TSVD_METHOD_AUTO, 12, lower, 1, 12);
            }
        }
    }
    tsvd_destroy(handle);
    return report();
}
