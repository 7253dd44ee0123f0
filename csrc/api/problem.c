/*
 * The arguments of a call, checked and put together: dtypes, spaces, shapes, strides, ranges.
 */
#include "api/problem.h"

#include <math.h>

#include "api/layout.h"
#include "backend/precision.h"
#include "host/dtype.h"
#include "host/host.h"

/* Most numbers in the input, and in L.  All sums of their bytes fit in 64 bits, and no machine
   has that much memory. */
#define NUMBERS_MOST ((int64_t)1 << 56)

/* What addresses and strides are multiples of: a power of two.  Kernels of a device load and store
   a complex number as one. */
static size_t
size_of_number(tsvd_space space, tsvd_dtype dtype)
{
    return dtype_size(space == TSVD_CUDA ? dtype : dtype_of_reals(dtype));
}

tsvd_status
tsvdi_check_data(tsvd_space space, tsvd_dtype dtype, const void *data, const char *name,
                 tsvd_error *error)
{
    const size_t size = size_of_number(space, dtype);

    if (data == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the data of %s must not be NULL", name);
    }
    if (((uintptr_t)data & (size - 1)) != 0) { /* a division would cost small matrices time */
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%s lies at an address that is no multiple of the %d bytes of a number",
                          name, (int)size);
    }
    return TSVD_OK;
}

/* Refuses strides that lead to such addresses. */
static tsvd_status
check_strides(const tsvd_array *array, const char *name, tsvd_error *error)
{
    const uint64_t size = size_of_number(array->space, array->dtype);
    uint64_t all = 0;

    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 0) {
            return TSVD_OK;
        }
        all |= array->shape[i] > 1 ? (uint64_t)array->strides[i] : 0;
    }
    return (all & (size - 1)) != 0
               ? tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                            "%s has a stride that is no multiple of the %d bytes of a number", name,
                            (int)size)
               : TSVD_OK;
}

static tsvd_status
check_array(const tsvd_array *array, const char *name, const tsvd_handle *handle, tsvd_error *error)
{
    if (array->space != TSVD_HOST && array->space != TSVD_CUDA) {
        tsvdi_advise(error, "make arrays by tsvd_array_of()");
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has an unknown space %d", name,
                          (int)array->space);
    }
    if (array->dtype < TSVD_FLOAT64 || array->dtype > TSVD_COMPLEX64) {
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
    return check_strides(array, name, error);
}

/* Merges the leading dimensions of an array into the batch shape; returns 0 if they do not fit. */
static int
broadcast(struct batch *batch, const tsvd_array *array)
{
    const int ndim = array->ndim - 1;
    int64_t *shape = batch->shape + (batch->ndim - ndim);

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
set_input(const struct batch *batch, const tsvd_array *array, struct svd_input *input)
{
    input->data = NULL;
    input->stride = 0;
    for (int i = 0; i < batch->ndim; i++) {
        input->batch_strides[i] = 0;
    }
    if (array != NULL) {
        const int absent = batch->ndim - (array->ndim - 1);

        input->data = array->data;
        input->stride = (ptrdiff_t)array->strides[array->ndim - 1];
        for (int i = absent; i < batch->ndim; i++) {
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
count_matrices(struct batch *batch, int64_t numbers)
{
    int64_t total = numbers > 0 ? numbers : 1;

    batch->matrices = 1;
    batch->too_large = 0;
    for (int i = 0; i < batch->ndim; i++) {
        if (batch->shape[i] == 0) {
            batch->matrices = 0;
            return;
        }
    }
    batch->too_large = total > NUMBERS_MOST;
    for (int i = 0; i < batch->ndim && !batch->too_large; i++) {
        batch->too_large = total > NUMBERS_MOST / batch->shape[i];
        total *= batch->too_large ? 1 : batch->shape[i];
        batch->matrices *= batch->too_large ? 1 : batch->shape[i];
    }
    batch->too_large = batch->too_large && numbers > 0; /* without numbers any count fits */
}

/* Sets the order and the batch of the matrices. */
static tsvd_status
set_shape(struct svd_problem *p, const tsvd_array *d, const tsvd_array *e, tsvd_error *error)
{
    const int64_t off = e != NULL ? e->shape[e->ndim - 1] : 0;
    const int lower = p->call.options->lower;

    p->n = d->shape[d->ndim - 1];
    p->extra = p->n > 0 && off == p->n;
    p->rows = p->n + (p->extra && lower);
    p->columns = p->n + (p->extra && !lower);
    if (e == NULL && p->n > 1) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "e must not be NULL for n = %lld",
                          (long long)p->n);
    }
    if (off != entries_of_e(p)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "d (..., n) needs e (..., n-1) or (..., n): they end in %lld and %lld",
                          (long long)p->n, (long long)off);
    }
    p->batch.ndim = d->ndim - 1;
    if (e != NULL && e->ndim - 1 > p->batch.ndim) {
        p->batch.ndim = e->ndim - 1;
    }
    if (p->batch.ndim > TSVD_MAX_BATCH_DIMS) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "a batch has %d dimensions, not 0 to %d",
                          p->batch.ndim, (int)TSVD_MAX_BATCH_DIMS);
    }
    for (int i = 0; i < p->batch.ndim; i++) {
        p->batch.shape[i] = 1;
    }
    if (!broadcast(&p->batch, d) || (e != NULL && !broadcast(&p->batch, e))) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the batch dimensions of d and e do not broadcast");
    }
    count_matrices(&p->batch, p->n);
    return TSVD_OK;
}

/* The row that a precision has for the method that is asked for. */
static const struct method *
method_of(tsvd_dtype dtype, const tsvd_options *options)
{
    return tsvdi_precision_of(dtype)->method_of(options->method);
}

static tsvd_status
check_options(const tsvd_options *o, tsvd_error *error)
{
    if (o->method != TSVD_METHOD_AUTO && method_of(TSVD_FLOAT64, o) == NULL) {
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
    if (o->dense_stages < 0 || o->dense_stages > 2) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "dense_stages must be 0, 1 or 2");
    }
    return TSVD_OK;
}

/* Sets which of the n values of a matrix are wanted: *k of them from index *first on. */
static tsvd_status
set_range(const tsvd_options *o, int64_t n, int64_t *first, int64_t *k, tsvd_error *error)
{
    const int64_t left = o->first < 0 || o->first > n ? -1 : n - o->first;

    *first = o->first;
    *k = o->count == -1 ? left : o->count;
    if (left < 0 || *k < 0 || *k > left) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%lld values from index %lld on are not among the %lld that there are",
                          (long long)*k, (long long)o->first, (long long)n);
    }
    return TSVD_OK;
}

/* Sets the values of the larger call, *whole_k of them from index *whole_first on, of which this
   one makes those that set_range() has set; and the matrices of its batch. */
static tsvd_status
set_whole(const tsvd_options *o, int64_t n, int64_t first, int64_t k, int64_t *whole_first,
          int64_t *whole_k, struct batch *batch, tsvd_error *error)
{
    const tsvd_part *part = o->part;

    *whole_first = first;
    *whole_k = k;
    batch->all = batch->matrices;
    if (part == NULL) {
        return TSVD_OK;
    }
    if (part->matrices < batch->matrices || (part->sum != NULL && part->matrices != 1)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          part->sum != NULL ? "a batch has no options.part->sum"
                                            : "the batch has more matrices than options.part says");
    }
    if (part->first < 0 || part->count < 0 || part->count > n - part->first ||
        first < part->first || k > part->first + part->count - first) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%lld values from index %lld on are no part of %lld from index %lld on, "
                          "of %lld that there are",
                          (long long)k, (long long)first, (long long)part->count,
                          (long long)part->first, (long long)n);
    }
    if (part->sum != NULL && k == 0) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "a call with options.part->sum must have a value: the other parts wait "
                          "for it");
    }
    *whole_first = part->first;
    *whole_k = part->count;
    batch->all = part->matrices;
    return TSVD_OK;
}

/* Begins with the arguments that all calls have. */
static tsvd_status
begin(tsvd_handle *handle, const tsvd_array *array, const char *name, const tsvd_options *options,
      struct call_args *call, tsvd_error *error)
{
    if (handle == NULL || array == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "handle and %s must not be NULL", name);
    }
    call->handle = handle;
    call->options = options;
    call->outer = NULL;
    return check_options(options, error);
}

tsvd_status
tsvdi_problem_input(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
                    const tsvd_options *options, int data, struct svd_problem *p, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    /* field by field: the arrays of a problem are long, and calls may be short */
    p->vectors = p->full = 0;
    p->s = p->L = p->R = NULL;
    TSVD_TRY(begin(handle, d, "d", options, &p->call, error));
    TSVD_TRY(check_array(d, "d", handle, error));
    if (dtype_is_complex(d->dtype)) {
        tsvdi_advise(error, "scale rows and columns by phases first: then d and e are real");
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "d and e must be real");
    }
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
    p->dtype = d->dtype;
    p->method = method_of(p->dtype, options);
    p->from = p->call.to = d->space;
    TSVD_TRY(set_shape(p, d, e, error));
    TSVD_TRY(set_range(options, p->n, &p->first, &p->k, error));
    TSVD_TRY(
        set_whole(options, p->n, p->first, p->k, &p->whole_first, &p->whole_k, &p->batch, error));
    if (data && p->batch.too_large) {
        return tsvdi_host_too_large(error, "the arrays", p->n);
    }
    if (data && p->n > 0 && p->batch.matrices > 0) {
        if (d->data == NULL || (entries_of_e(p) > 0 && e->data == NULL)) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "the data of d and e must not be NULL");
        }
        TSVD_TRY(tsvdi_check_data(d->space, p->dtype, d->data, "d", error));
        TSVD_TRY(entries_of_e(p) > 0 ? tsvdi_check_data(e->space, p->dtype, e->data, "e", error)
                                     : TSVD_OK);
    }
    set_input(&p->batch, d, &p->d);
    set_input(&p->batch, entries_of_e(p) > 0 ? e : NULL, &p->e);
out:
    return ret;
}

/* What the results of a call have in common. */
struct result_form {
    const tsvd_handle *handle;
    const struct batch *batch;
    tsvd_dtype dtype;
};

/* Refuses a result that has not the shape (batch..., rows, columns); columns < 0: (batch...,
   rows). */
static tsvd_status
check_result(struct result_form form, const tsvd_array *array, const char *name, int64_t rows,
             int64_t columns, tsvd_error *error)
{
    const struct batch *batch = form.batch;
    const int own = columns < 0 ? 1 : 2;
    int same, empty = batch->matrices == 0 || rows == 0 || columns == 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_array(array, name, form.handle, error));
    same = array->ndim == batch->ndim + own && array->shape[batch->ndim] == rows &&
           (columns < 0 || array->shape[batch->ndim + 1] == columns);
    for (int i = 0; i < batch->ndim && same; i++) {
        same = array->shape[i] == batch->shape[i];
    }
    if (!same) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%s has not the shape of the result: %d batch dimensions, then %lld%s",
                          name, batch->ndim, (long long)rows, columns < 0 ? "" : " x ...");
    }
    if (array->dtype != form.dtype) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s has not the dtype that the input gives",
                          name);
    }
    if (!empty) {
        TSVD_TRY(tsvdi_check_data(array->space, form.dtype, array->data, name, error));
    }
out:
    return ret;
}

/* The names of a call's results, and the shapes of those of a matrix with n values: left vectors
   (rows, left), k values, right vectors (right, columns). */
struct wanted {
    const char *left_name, *values_name, *right_name;
    int64_t n, k, rows, left, right, columns;
};

/* Counts the matrices of a batch anew, by the numbers that the vectors of each take. */
static void
count_vectors(const struct wanted *w, struct batch *batch)
{
    const int64_t left = numbers_of(w->rows, w->left), right = numbers_of(w->right, w->columns);

    count_matrices(batch, left > right ? left : right);
}

/* Checks results, of which L and R may be missing.  Sets *to, the space where they lie. */
static tsvd_status
check_results(const struct wanted *w, const tsvd_handle *handle, struct batch *batch,
              tsvd_dtype dtype, const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
              tsvd_space *to, tsvd_error *error)
{
    const struct result_form form = {handle, batch, dtype};
    const struct result_form of_values = {handle, batch, dtype_of_reals(dtype)};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_result(of_values, s, w->values_name, w->k, -1, error));
    *to = s->space;
    if (L != NULL) {
        count_vectors(w, batch);
        if (batch->too_large) {
            return tsvdi_host_too_large(error, "the arrays", w->n);
        }
        TSVD_TRY(check_result(form, L, w->left_name, w->rows, w->left, error));
        TSVD_TRY(check_result(form, R, w->right_name, w->right, w->columns, error));
        if (L->space != s->space || R->space != s->space) {
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                              "%s, %s and %s must lie in one space: %s is on the %s, %s on the %s",
                              w->left_name, w->values_name, w->right_name, w->values_name,
                              s->space == TSVD_CUDA ? "device" : "host",
                              L->space != s->space ? w->left_name : w->right_name,
                              s->space == TSVD_CUDA ? "host" : "device");
        }
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

/* Whether L and R, or U and Vh, have room for all vectors of matrices of this size, which are more
   than the values. */
static int
are_full(const tsvd_array *left, const tsvd_array *right, int64_t rows, int64_t columns)
{
    return rows != columns && left != NULL && left->ndim >= 2 && left->ndim <= TSVD_MAX_DIMS &&
           right->ndim == left->ndim && left->shape[left->ndim - 1] == rows &&
           right->shape[right->ndim - 2] == columns;
}

/* The results of bidiagonal matrices, for what p->full says. */
static struct wanted
bidiagonal_results(const struct svd_problem *p)
{
    const int64_t left = left_vectors(p), right = right_vectors(p);

    return (struct wanted){"L", "s", "R", p->n, p->k, p->rows, left, right, p->columns};
}

void
tsvdi_problem_wants(struct svd_problem *p, int vectors)
{
    struct wanted wanted;

    p->vectors = vectors != 0;
    p->full = vectors == 2 && p->extra && p->k == p->n;
    p->left_stride = left_vectors(p);
    wanted = bidiagonal_results(p);
    if (p->vectors && !p->batch.too_large) {
        count_vectors(&wanted, &p->batch);
    }
}

tsvd_status
tsvdi_problem_output(const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
                     struct svd_problem *p, tsvd_error *error)
{
    struct wanted wanted = bidiagonal_results(p);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_given(&wanted, L, s, R, error));
    p->full = p->k == p->n && are_full(L, R, p->rows, p->columns);
    wanted = bidiagonal_results(p);
    TSVD_TRY(
        check_results(&wanted, p->call.handle, &p->batch, p->dtype, L, s, R, &p->call.to, error));
    p->vectors = L != NULL;
    p->left_stride = left_vectors(p);
    p->s = s->data;
    p->L = L != NULL ? L->data : NULL;
    p->R = L != NULL ? R->data : NULL;
out:
    return ret;
}

tsvd_status
tsvdi_check_interval(const struct batch *batch, double low, double high, tsvd_error *error)
{
    if (batch->ndim > 0) {
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

/* Sets the matrices, whose smaller order is *n. */
static tsvd_status
set_matrices(const tsvd_handle *handle, const tsvd_array *a, struct dense_matrices *m, int64_t *n,
             tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_array(a, "a", handle, error));
    if (a->ndim < 2) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "a has %d dimensions, not at least two",
                          a->ndim);
    }
    m->dtype = a->dtype;
    m->space = a->space;
    m->rows = a->shape[a->ndim - 2];
    m->columns = a->shape[a->ndim - 1];
    m->data = a->data;
    m->row_stride = (ptrdiff_t)a->strides[a->ndim - 2];
    m->column_stride = (ptrdiff_t)a->strides[a->ndim - 1];
    m->batch.ndim = a->ndim - 2;
    for (int i = 0; i < m->batch.ndim; i++) {
        m->batch.shape[i] = a->shape[i];
        m->batch_strides[i] = a->shape[i] == 1 ? 0 : (ptrdiff_t)a->strides[i];
    }
    count_matrices(&m->batch, numbers_of(m->rows, m->columns));
    *n = m->rows < m->columns ? m->rows : m->columns;
out:
    return ret;
}

/* Refuses options that dense matrices do not have. */
static tsvd_status
check_dense_options(const tsvd_options *options, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_options(options, error));
    if (options->lower) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "lower is of no meaning for dense matrices");
    }
out:
    return ret;
}

/* Refuses matrices that cannot be read, of order n. */
static tsvd_status
check_readable(const struct dense_matrices *m, int64_t n, tsvd_error *error)
{
    if (m->batch.too_large) {
        return tsvdi_host_too_large(error, "the arrays", n);
    }
    return n == 0 || m->batch.matrices == 0
               ? TSVD_OK
               : tsvdi_check_data(m->space, m->dtype, m->data, "a", error);
}

tsvd_status
tsvdi_dense_options(const tsvd_options *options, struct dense_problem *p, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_dense_options(options, error));
    p->call.options = options;
    p->method = method_of(p->a.dtype, options);
    TSVD_TRY(set_range(options, p->n, &p->first, &p->k, error));
    TSVD_TRY(
        set_whole(options, p->n, p->first, p->k, &p->whole_first, &p->whole_k, &p->a.batch, error));
out:
    return ret;
}

tsvd_status
tsvdi_dense_input(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int data,
                  struct dense_problem *p, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    p->vectors = p->full = 0;
    p->U = p->S = p->Vh = NULL;
    TSVD_TRY(begin(handle, a, "a", options, &p->call, error));
    TSVD_TRY(set_matrices(handle, a, &p->a, &p->n, error));
    p->call.to = a->space;
    TSVD_TRY(tsvdi_dense_options(options, p, error));
    TSVD_TRY(data ? check_readable(&p->a, p->n, error) : TSVD_OK);
out:
    return ret;
}

/* Sets the number of matrices to 0 if the results have no numbers for any of them. */
static void
leave_empty(struct dense_problem *p)
{
    if (p->n == 0 && !p->full) {
        p->a.batch.matrices = 0;
    }
}

/* The results of dense matrices, for what p->full says. */
static struct wanted
dense_results(const struct dense_problem *p)
{
    const int64_t rows = p->a.rows, columns = p->a.columns;

    return (struct wanted){
        "U", "S", "Vh", p->n, p->k, rows, p->full ? rows : p->k, p->full ? columns : p->k, columns};
}

void
tsvdi_dense_wants(struct dense_problem *p, int vectors)
{
    struct wanted wanted;

    p->vectors = vectors != 0;
    p->full = vectors == 2 && p->k == p->n && p->a.rows != p->a.columns;
    wanted = dense_results(p);
    p->left_stride = wanted.left;
    if (p->vectors && !p->a.batch.too_large) {
        count_vectors(&wanted, &p->a.batch);
    }
    leave_empty(p);
}

tsvd_status
tsvdi_dense_output(const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh,
                   struct dense_problem *p, tsvd_error *error)
{
    struct wanted wanted = dense_results(p);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_given(&wanted, U, S, Vh, error));
    p->full = p->k == p->n && are_full(U, Vh, p->a.rows, p->a.columns);
    wanted = dense_results(p);
    TSVD_TRY(check_results(&wanted, p->call.handle, &p->a.batch, p->a.dtype, U, S, Vh, &p->call.to,
                           error));
    p->vectors = U != NULL;
    p->left_stride = wanted.left;
    p->S = S->data;
    p->U = U != NULL ? U->data : NULL;
    p->Vh = U != NULL ? Vh->data : NULL;
    leave_empty(p);
out:
    return ret;
}

tsvd_status
tsvdi_dense_array(const struct dense_problem *p, const tsvd_array *x, const char *name,
                  int64_t rows, int64_t columns, tsvd_error *error)
{
    const tsvd_dtype dtype = columns < 0 ? dtype_of_reals(p->a.dtype) : p->a.dtype;
    const struct result_form form = {p->call.handle, &p->a.batch, dtype};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_result(form, x, name, rows, columns, error));
    if (!tsvdi_layout_is_contiguous(x)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s is not C-contiguous", name);
    }
out:
    return ret;
}

/* ---- inverses ---- */

tsvd_status
tsvdi_inverse_input(tsvd_handle *handle, const tsvd_array *a, const tsvd_options *options, int data,
                    int refine, struct inverse_problem *p, tsvd_error *error)
{
    int64_t n = 0, first, k;
    tsvd_status ret = TSVD_OK;

    p->refine = refine != 0;
    p->X = NULL;
    TSVD_TRY(begin(handle, a, "a", options, &p->call, error));
    TSVD_TRY(set_matrices(handle, a, &p->a, &n, error));
    p->call.to = a->space;
    TSVD_TRY(check_dense_options(options, error));
    TSVD_TRY(set_range(options, n, &first, &k, error));
    p->a.batch.all = p->a.batch.matrices;
    TSVD_TRY(data ? check_readable(&p->a, n, error) : TSVD_OK);
    if (p->a.rows != p->a.columns) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "a is %lld x %lld and must be square",
                          (long long)p->a.rows, (long long)p->a.columns);
    }
    if (k != n) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "an inverse has no part of the values");
    }
out:
    return ret;
}

tsvd_status
tsvdi_inverse_output(const tsvd_array *X, struct inverse_problem *p, tsvd_error *error)
{
    const struct result_form form = {p->call.handle, &p->a.batch, p->a.dtype};
    tsvd_status ret = TSVD_OK;

    if (X == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "X must not be NULL");
    }
    TSVD_TRY(check_result(form, X, "X", p->a.rows, p->a.columns, error));
    p->X = X->data;
    p->call.to = X->space;
out:
    return ret;
}
