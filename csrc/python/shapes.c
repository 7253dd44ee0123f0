/*
 * tsvd._core: shapes (shapes.h).
 */
#include "python/shapes.h"

#include <string.h>

const char *const tsvdi_out_names[OUT_COUNT] = {"L", "s", "R"};

PyObject *
tsvdi_shapes_tuple(int ndim, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New(ndim);

    for (int i = 0; i < ndim && tuple != NULL; i++) {
        PyObject *size = PyLong_FromLongLong(shape[i]);

        if (size == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, size);
        }
    }
    return tuple;
}

uint64_t
tsvdi_shapes_size(const struct arrays *arrays)
{
    return arrays->dtype == TSVD_FLOAT32 ? sizeof(float) : sizeof(double);
}

/* ---- input ---- */

/* A ValueError that ends with both shapes; always -1. */
static int
raise_shapes(const char *rule, const tsvd_array *d, const tsvd_array *e)
{
    PyObject *d_shape = tsvdi_shapes_tuple(d->ndim, d->shape);
    PyObject *e_shape = tsvdi_shapes_tuple(e->ndim, e->shape);

    if (d_shape != NULL && e_shape != NULL) {
        PyErr_Format(PyExc_ValueError, "%s; got d of shape %R and e of shape %R", rule, d_shape,
                     e_shape);
    }
    Py_XDECREF(d_shape);
    Py_XDECREF(e_shape);
    return -1;
}

/* Merges the leading dimensions of an array into the batch shape; returns -1 if they do not
   fit. */
static int
broadcast(struct arrays *arrays, const tsvd_array *array)
{
    int ndim = array->ndim - 1;
    int64_t *shape = arrays->batch_shape + (arrays->batch_ndim - ndim);

    for (int i = 0; i < ndim; i++) {
        int64_t size = array->shape[i];

        if (shape[i] == 1) {
            shape[i] = size;
        } else if (size != 1 && size != shape[i]) {
            return -1;
        }
    }
    return 0;
}

int
tsvdi_shapes_input(struct arrays *arrays)
{
    const tsvd_array *d = &arrays->core_d, *e = &arrays->core_e;
    int64_t n;

    arrays->batch_ndim = (d->ndim > e->ndim ? d->ndim : e->ndim) - 1;
    if (arrays->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        PyErr_Format(PyExc_ValueError, "d and e may have at most %d leading dimensions, got %d",
                     TSVD_MAX_BATCH_DIMS, arrays->batch_ndim);
        return -1;
    }
    if (d->ndim == 0 || e->ndim == 0) {
        return raise_shapes("d (..., n) and e (..., n-1) need at least one dimension", d, e);
    }
    n = d->shape[d->ndim - 1];
    if (e->shape[e->ndim - 1] != (n > 0 ? n - 1 : 0)) {
        return raise_shapes("d (..., n) needs e (..., n-1)", d, e);
    }
    arrays->n = arrays->count = n;
    for (int i = 0; i < arrays->batch_ndim; i++) {
        arrays->batch_shape[i] = 1;
    }
    if (broadcast(arrays, d) < 0 || broadcast(arrays, e) < 0) {
        return raise_shapes("the leading dimensions of d and e do not broadcast", d, e);
    }
    return 0;
}

/* ---- output ---- */

int
tsvdi_shapes_output(const struct arrays *arrays, int which, int64_t *shape)
{
    int ndim = arrays->batch_ndim;

    for (int i = 0; i < ndim; i++) {
        shape[i] = arrays->batch_shape[i];
    }
    if (which == OUT_L) {
        shape[ndim++] = arrays->n;
    }
    shape[ndim++] = arrays->count;
    if (which == OUT_R) {
        shape[ndim++] = arrays->n;
    }
    return ndim;
}

int
tsvdi_shapes_check_out(PyObject *given)
{
    if (given != Py_None && (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != OUT_COUNT)) {
        PyErr_SetString(PyExc_TypeError, "out must be a tuple of three arrays (L, s, R)");
        return -1;
    }
    return 0;
}

int
tsvdi_shapes_check_given(const struct arrays *arrays, int which, const struct given *given)
{
    int64_t shape[TSVD_MAX_DIMS];
    int ndim = tsvdi_shapes_output(arrays, which, shape);
    const char *name = tsvdi_out_names[which];

    if (!given->same_dtype) {
        PyErr_Format(PyExc_TypeError, "out: %s has dtype %S, the result has dtype %s", name,
                     given->dtype, arrays->dtype == TSVD_FLOAT64 ? "float64" : "float32");
        return -1;
    }
    if (given->ndim != ndim || memcmp(given->shape, shape, (size_t)ndim * sizeof *shape) != 0) {
        PyObject *got = tsvdi_shapes_tuple(given->ndim, given->shape);
        PyObject *wanted = tsvdi_shapes_tuple(ndim, shape);

        if (got != NULL && wanted != NULL) {
            PyErr_Format(PyExc_ValueError, "out: %s has shape %R, the result has shape %R", name,
                         got, wanted);
        }
        Py_XDECREF(got);
        Py_XDECREF(wanted);
        return -1;
    }
    if (!given->ready) {
        PyErr_Format(PyExc_ValueError,
                     "out: %s must be C-contiguous, aligned, writeable and in native byte order",
                     name);
        return -1;
    }
    return 0;
}

/* The addresses [*low, *high) between which all entries of an array lie. */
static void
extent(const tsvd_array *array, uintptr_t *low, uintptr_t *high)
{
    *low = *high = (uintptr_t)array->data;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 0) {
            return;
        }
    }
    for (int i = 0; i < array->ndim; i++) {
        const int64_t reach = array->strides[i] * (array->shape[i] - 1);

        if (reach < 0) {
            *low -= (uintptr_t)-reach;
        } else {
            *high += (uintptr_t)reach;
        }
    }
    *high += array->dtype == TSVD_FLOAT32 ? sizeof(float) : sizeof(double);
}

static bool
overlap(const tsvd_array *a, const tsvd_array *b)
{
    uintptr_t a_low, a_high, b_low, b_high;

    extent(a, &a_low, &a_high);
    extent(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

int
tsvdi_shapes_check_overlap(const struct arrays *arrays)
{
    const tsvd_array *out = arrays->core_out;

    for (int i = 0; i < OUT_COUNT; i++) {
        if (overlap(&out[i], &arrays->core_d) || overlap(&out[i], &arrays->core_e)) {
            PyErr_Format(PyExc_ValueError, "out: %s overlaps the memory of d or e",
                         tsvdi_out_names[i]);
            return -1;
        }
        for (int j = i + 1; j < OUT_COUNT; j++) {
            if (overlap(&out[i], &out[j])) {
                PyErr_Format(PyExc_ValueError, "out: %s and %s overlap in memory",
                             tsvdi_out_names[i], tsvdi_out_names[j]);
                return -1;
            }
        }
    }
    return 0;
}
