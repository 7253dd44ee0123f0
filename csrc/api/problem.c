/*
 * The arguments of a call, checked and put together: dtypes, spaces, shapes, strides, ranges.
 */
#include "api/problem.h"

#include <math.h>

#include "backend/precision.h"
#include "host/host.h"

/* Most numbers in the input, and in L.  All sums of their bytes fit in 64 bits, and no machine
   has that much memory. */
#define NUMBERS_MOST ((int64_t)1 << 56)

static size_t
size_of(tsvd_dtype dtype)
{
    return dtype == TSVD_FLOAT32 ? sizeof(float) : sizeof(double);
}

static tsvd_status
check_array(const tsvd_array *array, const char *name, const tsvd_handle *handle, tsvd_error *error)
{
    if (array->space != TSVD_HOST && array->space != TSVD_CUDA) {
        tsvdi_advise(error, "make arrays by tsvd_array_of()");
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has an unknown space %d", name,
                          (int)array->space);
    }
    if (array->dtype != TSVD_FLOAT64 && array->dtype != TSVD_FLOAT32) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has an unknown dtype %d", name,
                          (int)array->dtype);
    }
    if (array->ndim < 1 || array->ndim > TSVD_MAX_DIMS) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has %d dimensions, not 1 to %d", name,
                          array->ndim, (int)TSVD_MAX_DIMS);
    }
    if (array->space == TSVD_CUDA && handle->device == TSVD_DEVICE_CPU) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%s lies on a CUDA device, and the handle computes on the CPU", name);
    }
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] < 0) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has a negative size, %lld", name,
                              (long long)array->shape[i]);
        }
    }
    return TSVD_OK;
}

/* Merges the leading dimensions of an array into the batch shape; returns 0 if they do not fit. */
static int
broadcast(struct svd_problem *p, const tsvd_array *array)
{
    const int ndim = array->ndim - 1;
    int64_t *shape = p->batch_shape + (p->batch_ndim - ndim);

    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 1) {
            shape[i] = array->shape[i];
        } else if (array->shape[i] != 1 && array->shape[i] != shape[i]) {
            return 0;
        }
    }
    return 1;
}

/* Sets *input to where d, or e, of each matrix of a batch lies; array: NULL if there is none. */
static void
set_input(struct svd_problem *p, const tsvd_array *array, struct svd_input *input)
{
    input->data = NULL;
    input->stride = 0;
    for (int i = 0; i < p->batch_ndim; i++) {
        input->batch_strides[i] = 0;
    }
    if (array != NULL) {
        const int absent = p->batch_ndim - (array->ndim - 1);

        input->data = array->data;
        input->stride = (ptrdiff_t)array->strides[array->ndim - 1];
        for (int i = absent; i < p->batch_ndim; i++) {
            input->batch_strides[i] =
                array->shape[i - absent] == 1 ? 0 : (ptrdiff_t)array->strides[i - absent];
        }
    }
}

/* rows x columns, or NUMBERS_MOST + 1 if the product is above NUMBERS_MOST. */
static int64_t
numbers_of(int64_t rows, int64_t columns)
{
    return columns > 0 && rows > NUMBERS_MOST / columns ? NUMBERS_MOST + 1 : rows * columns;
}

/* Counts the matrices of a batch, and sets too_large if `numbers` numbers for each are too many. */
static void
count_matrices(struct svd_problem *p, int64_t numbers)
{
    int64_t total = numbers > 0 ? numbers : 1;

    p->matrices = 1;
    for (int i = 0; i < p->batch_ndim; i++) {
        if (p->batch_shape[i] == 0) {
            p->matrices = 0;
            return;
        }
    }
    p->too_large = total > NUMBERS_MOST;
    for (int i = 0; i < p->batch_ndim && !p->too_large; i++) {
        p->too_large = total > NUMBERS_MOST / p->batch_shape[i];
        total *= p->too_large ? 1 : p->batch_shape[i];
        p->matrices *= p->too_large ? 1 : p->batch_shape[i];
    }
    p->too_large = p->too_large && numbers > 0; /* without numbers any count of matrices fits */
}

/* Sets the order and the batch of the matrices. */
static tsvd_status
set_shape(struct svd_problem *p, const tsvd_array *d, const tsvd_array *e, tsvd_error *error)
{
    const int64_t off = e != NULL ? e->shape[e->ndim - 1] : 0;

    p->n = d->shape[d->ndim - 1];
    if (e == NULL && p->n > 1) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "e must not be NULL for n = %lld",
                          (long long)p->n);
    }
    if (off != (p->n > 0 ? p->n - 1 : 0)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "d (..., n) needs e (..., n-1): they end in %lld and %lld",
                          (long long)p->n, (long long)off);
    }
    p->batch_ndim = d->ndim - 1;
    if (e != NULL && e->ndim - 1 > p->batch_ndim) {
        p->batch_ndim = e->ndim - 1;
    }
    if (p->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "a batch has %d dimensions, not 0 to %d",
                          p->batch_ndim, (int)TSVD_MAX_BATCH_DIMS);
    }
    for (int i = 0; i < p->batch_ndim; i++) {
        p->batch_shape[i] = 1;
    }
    if (!broadcast(p, d) || (e != NULL && !broadcast(p, e))) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the batch dimensions of d and e do not broadcast");
    }
    count_matrices(p, p->n);
    return TSVD_OK;
}

static tsvd_status
check_options(const tsvd_options *o, tsvd_error *error)
{
    if (o->size != sizeof *o) {
        tsvdi_advise(error, "start from tsvd_options_default()");
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "options.size is %zu and must be %zu: the options are not initialised, "
                          "or belong to another version of tsvd.h",
                          o->size, sizeof *o);
    }
    if (tsvd_method_name(o->method) == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "unknown method %d", (int)o->method);
    }
    if (isnan(o->eps) || isinf(o->eps)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "eps must be finite");
    }
    if (o->max_sweeps < 0 || o->givens_blocks < 0 || o->givens_threads < 0 ||
        o->givens_blocks > INT32_MAX || o->givens_threads > INT32_MAX) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "max_sweeps, givens_blocks and givens_threads must not be negative, and "
                          "the last two below 2^31");
    }
    return TSVD_OK;
}

/* Sets the dtype, and the row that its precision has for the method. */
static void
set_dtype(struct svd_problem *p, tsvd_dtype dtype)
{
    p->dtype = dtype;
    p->method = tsvdi_precision_of(dtype)->method_of(p->options->method);
}

/* Sets which values are wanted. */
static tsvd_status
set_range(struct svd_problem *p, const tsvd_options *o, tsvd_error *error)
{
    const int64_t left = o->first < 0 || o->first > p->n ? -1 : p->n - o->first;

    p->first = o->first;
    p->k = o->count == -1 ? left : o->count;
    if (left < 0 || p->k < 0 || p->k > left) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%lld values from index %lld on are not among the %lld that there are",
                          (long long)p->k, (long long)o->first, (long long)p->n);
    }
    return TSVD_OK;
}

/* Begins with an empty problem. */
static tsvd_status
begin(tsvd_handle *handle, const tsvd_array *array, const char *name, const tsvd_options *options,
      struct svd_problem *p, tsvd_error *error)
{
    /* field by field: the arrays of a problem are long, and calls may be short */
    p->n = p->first = p->k = p->matrices = 0;
    p->vectors = p->batch_ndim = p->too_large = 0;
    p->s = p->L = p->R = NULL;
    if (handle == NULL || array == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "handle and %s must not be NULL", name);
    }
    p->handle = handle;
    p->options = options;
    return check_options(options, error);
}

tsvd_status
tsvdi_problem_input(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                    const tsvd_options *options, int data, struct svd_problem *p, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(begin(handle, d, "d", options, p, error));
    TSVD_TRY(check_array(d, "d", handle, error));
    if (e != NULL) {
        TSVD_TRY(check_array(e, "e", handle, error));
        if (d->dtype != e->dtype) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "d and e have different dtypes");
        }
        if (d->space != e->space) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s lies on the device, %s on the host",
                              d->space == TSVD_CUDA ? "d" : "e", d->space == TSVD_CUDA ? "e" : "d");
        }
    }
    set_dtype(p, d->dtype);
    p->from = p->to = d->space;
    TSVD_TRY(set_shape(p, d, e, error));
    TSVD_TRY(set_range(p, options, error));
    if (data && p->too_large) {
        return tsvdi_host_too_large(error, "the arrays", p->n);
    }
    if (data && p->n > 0 && p->matrices > 0 && (d->data == NULL || (p->n > 1 && e->data == NULL))) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the data of d and e must not be NULL");
    }
    set_input(p, d, &p->d);
    set_input(p, p->n > 1 ? e : NULL, &p->e);
out:
    return ret;
}

/* Refuses a result that is not C-contiguous or has not the shape (batch..., rows, columns);
   columns < 0: (batch..., rows). */
static tsvd_status
check_result(const struct svd_problem *p, const tsvd_array *array, const char *name, int64_t rows,
             int64_t columns, tsvd_error *error)
{
    const int own = columns < 0 ? 1 : 2;
    int64_t stride = (int64_t)size_of(p->dtype);
    int same, empty = p->matrices == 0 || rows == 0 || columns == 0, contiguous = 1;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_array(array, name, p->handle, error));
    same = array->ndim == p->batch_ndim + own && array->shape[p->batch_ndim] == rows &&
           (columns < 0 || array->shape[p->batch_ndim + 1] == columns);
    for (int i = 0; i < p->batch_ndim && same; i++) {
        same = array->shape[i] == p->batch_shape[i];
    }
    if (!same) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%s has not the shape of the result: %d batch dimensions, then %lld%s",
                          name, p->batch_ndim, (long long)rows, columns < 0 ? "" : " x ...");
    }
    if (array->dtype != p->dtype) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has not the dtype of the input", name);
    }
    for (int i = array->ndim - 1; i >= 0 && !empty; i--) {
        contiguous &= array->shape[i] == 1 || array->strides[i] == stride;
        stride *= array->shape[i];
    }
    if (!contiguous) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s is not C-contiguous", name);
    }
    if (!empty && array->data == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the data of %s must not be NULL", name);
    }
out:
    return ret;
}

/* The names of a call's results, and the shapes of one matrix: left vectors (rows, left), values
   (k), right vectors (right, columns). */
struct wanted {
    const char *left_name, *values_name, *right_name;
    int64_t rows, left, right, columns;
};

/* Sets where the results go. */
static tsvd_status
set_output(const struct wanted *w, const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
           struct svd_problem *p, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_result(p, s, w->values_name, p->k, -1, error));
    p->s = s->data;
    p->to = s->space;
    p->vectors = L != NULL;
    if (L != NULL) {
        const int64_t numbers[] = {numbers_of(w->rows, w->left), numbers_of(w->right, w->columns)};

        count_matrices(p, numbers[0] > numbers[1] ? numbers[0] : numbers[1]);
        if (p->too_large) {
            return tsvdi_host_too_large(error, "the arrays", p->n);
        }
        TSVD_TRY(check_result(p, L, w->left_name, w->rows, w->left, error));
        TSVD_TRY(check_result(p, R, w->right_name, w->right, w->columns, error));
        if (L->space != s->space || R->space != s->space) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                              "%s, %s and %s must lie in one space: %s is on the %s, %s on the %s",
                              w->left_name, w->values_name, w->right_name, w->values_name,
                              s->space == TSVD_CUDA ? "device" : "host",
                              L->space != s->space ? w->left_name : w->right_name,
                              s->space == TSVD_CUDA ? "host" : "device");
        }
        p->L = L->data;
        p->R = R->data;
    }
out:
    return ret;
}

/* Refuses results that are missing. */
static tsvd_status
check_given(const struct wanted *w, const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
            tsvd_error *error)
{
    if (s == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s must not be NULL", w->values_name);
    }
    if ((L == NULL) != (R == NULL)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s and %s are wanted both or neither",
                          w->left_name, w->right_name);
    }
    return TSVD_OK;
}

tsvd_status
tsvdi_problem_output(const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
                     struct svd_problem *p, tsvd_error *error)
{
    const struct wanted wanted = {"L", "s", "R", p->n, p->k, p->k, p->n};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_given(&wanted, L, s, R, error));
    TSVD_TRY(set_output(&wanted, L, s, R, p, error));
out:
    return ret;
}

tsvd_status
tsvdi_check_interval(const struct svd_problem *p, double low, double high, tsvd_error *error)
{
    if (p->batch_ndim > 0) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "a batch has no range of indices for an interval: of each matrix other "
                          "values lie in it");
    }
    if (!(low < high)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the interval (%g, %g] is empty: its lower end must be below the upper",
                          low, high);
    }
    return TSVD_OK;
}

/* ---- dense matrices ---- */

tsvd_status
tsvdi_dense_options(const tsvd_options *options, struct dense_problem *p, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_options(options, error));
    if (options->lower) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "lower is of no meaning for dense matrices");
    }
    p->b.options = options;
    TSVD_TRY(set_range(&p->b, options, error));
out:
    return ret;
}

tsvd_status
tsvdi_dense_input(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int data,
                  struct dense_problem *p, tsvd_error *error)
{
    struct svd_problem *b = &p->b;
    tsvd_status ret = TSVD_OK;

    p->rows = p->columns = 0;
    p->full = 0;
    TSVD_TRY(begin(handle, a, "a", options, b, error));
    TSVD_TRY(check_array(a, "a", handle, error));
    if (a->ndim < 2) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "a has %d dimensions, not at least two",
                          a->ndim);
    }
    p->rows = a->shape[a->ndim - 2];
    p->columns = a->shape[a->ndim - 1];
    p->a = a->data;
    p->row_stride = (ptrdiff_t)a->strides[a->ndim - 2];
    p->column_stride = (ptrdiff_t)a->strides[a->ndim - 1];
    b->n = p->rows < p->columns ? p->rows : p->columns;
    set_dtype(b, a->dtype);
    b->from = b->to = a->space;
    b->batch_ndim = a->ndim - 2;
    for (int i = 0; i < b->batch_ndim; i++) {
        b->batch_shape[i] = a->shape[i];
        p->batch_strides[i] = a->shape[i] == 1 ? 0 : (ptrdiff_t)a->strides[i];
    }
    count_matrices(b, numbers_of(p->rows, p->columns));
    TSVD_TRY(tsvdi_dense_options(options, p, error));
    if (data && b->too_large) {
        return tsvdi_host_too_large(error, "the arrays", b->n);
    }
    if (data && b->n > 0 && b->matrices > 0 && a->data == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the data of a must not be NULL");
    }
out:
    return ret;
}

tsvd_status
tsvdi_dense_output(const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh,
                   struct dense_problem *p, tsvd_error *error)
{
    struct wanted wanted = {"U", "S", "Vh", p->rows, p->b.k, p->b.k, p->columns};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_given(&wanted, U, S, Vh, error));
    p->full = U != NULL && U->ndim == p->b.batch_ndim + 2 && Vh->ndim == U->ndim &&
              p->b.k == p->b.n && p->rows != p->columns && U->shape[U->ndim - 1] == p->rows &&
              Vh->shape[Vh->ndim - 2] == p->columns;
    if (p->full) {
        wanted.left = p->rows;
        wanted.right = p->columns;
    }
    TSVD_TRY(set_output(&wanted, U, S, Vh, &p->b, error));
    tsvdi_dense_leave_empty(p);
out:
    return ret;
}

void
tsvdi_dense_leave_empty(struct dense_problem *p)
{
    if (p->b.n == 0 && !p->full) {
        p->b.matrices = 0;
    }
}

tsvd_status
tsvdi_dense_array(const struct dense_problem *p, const tsvd_array *x, const char *name,
                  int64_t rows, int64_t columns, tsvd_error *error)
{
    return check_result(&p->b, x, name, rows, columns, error);
}
