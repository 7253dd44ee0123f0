/*
 * tsvd._core: shapes (shapes.h).
 */
#include "python/shapes.h"

#include <string.h>

PyObject *
tsvdi_shapes_tuple(int ndim, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New(ndim);

    for (int i = 0; i < ndim && tuple != NULL; i++) {
        PyObject *size = PyLong_FromLongLong(shape[i]);

        if (size == NULL) {
            Py_CLEAR(tuple);
        } else {
            (void)PyTuple_SetItem(tuple, i, size);
        }
    }
    return tuple;
}

void
tsvdi_shapes_refuse_dtype(const char *name, PyObject *dtype, bool phases)
{
    PyErr_Format(PyExc_TypeError,
                 "%s has dtype %S; tsvd takes float64 and float32, for dense matrices complex128 "
                 "and complex64, and integers and bool, which become float64%s",
                 name, dtype,
                 phases ? ". A complex bidiagonal matrix becomes a real one, with the same values, "
                          "by phases of its rows and columns"
                        : "");
}

tsvd_dtype
tsvdi_shapes_dtype(const struct arrays *arrays, int which)
{
    const bool values = which == OUT_S && arrays->form->results != NULL;

    return values ? tsvd_dtype_of_values(arrays->dtype) : arrays->dtype;
}

const char *
tsvdi_shapes_dtype_name(tsvd_dtype dtype)
{
    static const char *const names[] = {[TSVD_FLOAT64] = "float64",
                                        [TSVD_FLOAT32] = "float32",
                                        [TSVD_COMPLEX128] = "complex128",
                                        [TSVD_COMPLEX64] = "complex64"};

    return names[dtype];
}

/* ---- input ---- */

static int64_t
last(const tsvd_array *array)
{
    return array->shape[array->ndim - 1];
}

static bool
is_column(const tsvd_array *array)
{
    return array->ndim == 2 && array->shape[1] == 1 && array->shape[0] > 1;
}

/* What is likely meant by d and e whose orders do not fit. */
static const char *
advice_for(const tsvd_array *d, const tsvd_array *e)
{
    if (is_column(d) || is_column(e)) {
        return ". For one matrix whose diagonals are columns give d.ravel() and e.ravel()";
    }
    return last(e) > last(d) ? ". e is longer than d: are they swapped? The diagonal comes first"
                             : "";
}

/* A ValueError that ends with both shapes, and advice; always -1. */
static int
raise_shapes(const char *rule, const tsvd_array *d, const tsvd_array *e, const char *advice)
{
    PyObject *d_shape = tsvdi_shapes_tuple(d->ndim, d->shape);
    PyObject *e_shape = tsvdi_shapes_tuple(e->ndim, e->shape);

    if (d_shape != NULL && e_shape != NULL) {
        PyErr_Format(PyExc_ValueError, "%s; got d of shape %R and e of shape %R%s", rule, d_shape,
                     e_shape, advice);
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

static int
set_bidiagonal(struct arrays *arrays)
{
    const tsvd_array *d = &arrays->core_in[0], *e = &arrays->core_in[1];
    int64_t n;
    int extra;

    arrays->batch_ndim = (d->ndim > e->ndim ? d->ndim : e->ndim) - 1;
    if (arrays->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        PyErr_Format(PyExc_ValueError, "d and e may have at most %d leading dimensions, got %d",
                     TSVD_MAX_BATCH_DIMS, arrays->batch_ndim);
        return -1;
    }
    if (d->ndim == 0 || e->ndim == 0) {
        return raise_shapes("d (..., n) and e (..., n-1) or (..., n) need at least one dimension",
                            d, e, d->ndim > 1 ? ". For dense matrices use tsvd.linalg.svd" : "");
    }
    n = last(d);
    extra = n > 0 && last(e) == n;
    if (last(e) != (n > 0 ? n - 1 + extra : 0)) {
        return raise_shapes("d (..., n) needs e (..., n-1) or (..., n)", d, e, advice_for(d, e));
    }
    arrays->rows = n + (extra && arrays->lower);
    arrays->columns = n + (extra && !arrays->lower);
    arrays->n = arrays->count = n;
    for (int i = 0; i < arrays->batch_ndim; i++) {
        arrays->batch_shape[i] = 1;
    }
    if (broadcast(arrays, d) < 0 || broadcast(arrays, e) < 0) {
        return raise_shapes("the leading dimensions of d and e do not broadcast", d, e,
                            is_column(d) || is_column(e) ? advice_for(d, e) : "");
    }
    return 0;
}

static int
set_dense(struct arrays *arrays)
{
    const module_state *state = PyModule_GetState(arrays->module);
    const tsvd_array *a = &arrays->core_in[0];

    if (a->ndim < 2) { /* in NumPy's words */
        PyErr_Format(state->LinAlgError,
                     "%d-dimensional array given. Array must be at least two-dimensional", a->ndim);
        return -1;
    }
    arrays->batch_ndim = a->ndim - 2;
    if (arrays->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        PyErr_Format(PyExc_ValueError, "a may have at most %d leading dimensions, got %d",
                     TSVD_MAX_BATCH_DIMS, arrays->batch_ndim);
        return -1;
    }
    for (int i = 0; i < arrays->batch_ndim; i++) {
        arrays->batch_shape[i] = a->shape[i];
    }
    arrays->rows = a->shape[a->ndim - 2];
    arrays->columns = a->shape[a->ndim - 1];
    arrays->n = arrays->rows < arrays->columns ? arrays->rows : arrays->columns;
    arrays->count = arrays->n;
    return 0;
}

static int
set_inverse(struct arrays *arrays)
{
    const module_state *state = PyModule_GetState(arrays->module);

    if (set_dense(arrays) < 0) {
        return -1;
    }
    if (arrays->rows != arrays->columns) { /* in NumPy's words */
        PyErr_SetString(state->LinAlgError, "Last 2 dimensions of the array must be square");
        return -1;
    }
    return 0;
}

const struct form tsvdi_bidiagonal_form = {
    .inputs = 2,
    .in = {"d", "e"},
    .input = "d or e",
    .out = {"L", "s", "R"},
    .vectors = "L and R",
    .results = "(L, s, R)",
    .order = "the order of the matrix",
    .set_shape = set_bidiagonal,
};

const struct form tsvdi_dense_form = {
    .inputs = 1,
    .in = {"a"},
    .input = "a",
    .out = {"U", "S", "Vh"},
    .vectors = "U and Vh",
    .results = "(U, S, Vh)",
    .order = "the number of values",
    .takes_complex = true,
    .set_shape = set_dense,
};

const struct form tsvdi_inverse_form = {
    .inputs = 1,
    .in = {"a"},
    .input = "a",
    .out = {[OUT_S] = "X"},
    .order = "the order of the matrix",
    .takes_complex = true,
    .set_shape = set_inverse,
};

/* ---- output ---- */

int
tsvdi_shapes_output(const struct arrays *arrays, int which, int64_t *shape)
{
    int ndim = arrays->batch_ndim;

    for (int i = 0; i < ndim; i++) {
        shape[i] = arrays->batch_shape[i];
    }
    if (which == OUT_L) {
        shape[ndim++] = arrays->rows;
        shape[ndim++] = arrays->full ? arrays->rows : arrays->count;
    } else if (which == OUT_R) {
        shape[ndim++] = arrays->full ? arrays->columns : arrays->count;
        shape[ndim++] = arrays->columns;
    } else {
        shape[ndim++] = arrays->count;
        if (arrays->form->results == NULL) {
            shape[ndim++] = arrays->count;
        }
    }
    return ndim;
}

int
tsvdi_shapes_check_out(const struct arrays *arrays, bool vectors, PyObject *given)
{
    const int results = arrays->form->results == NULL || !vectors ? 1 : OUT_COUNT;

    if (given != Py_None && (!PyTuple_Check(given) || PyTuple_Size(given) != results)) {
        PyErr_Format(PyExc_TypeError, "out must be %s%s",
                     results == 1 ? "an array" : "a tuple of three arrays ",
                     results == 1 ? "" : arrays->form->results);
        return -1;
    }
    return 0;
}

PyObject *
tsvdi_shapes_item(PyObject *given, int which)
{
    return PyTuple_GetItem(given, PyTuple_Size(given) == 1 ? 0 : which);
}

/* Refuses an array of another dtype. */
static int
check_given_dtype(tsvd_dtype dtype, const char *name, const struct given *given)
{
    if (!given->same_dtype) {
        PyErr_Format(PyExc_TypeError, "%s has dtype %S, the result has dtype %s", name,
                     given->dtype, tsvdi_shapes_dtype_name(dtype));
        return -1;
    }
    return 0;
}

static int
check_ready(const char *name, const struct given *given)
{
    if (!given->ready) {
        PyErr_Format(PyExc_ValueError,
                     "%s must be C-contiguous, aligned, writeable and in native byte order", name);
        return -1;
    }
    return 0;
}

int
tsvdi_shapes_check_writable(const struct arrays *arrays, const char *name,
                            const struct given *given)
{
    return check_given_dtype(arrays->dtype, name, given) < 0 ? -1 : check_ready(name, given);
}

int
tsvdi_shapes_check_given(const struct arrays *arrays, int which, const struct given *given)
{
    char name[16];
    int64_t shape[TSVD_MAX_DIMS];
    int ndim = tsvdi_shapes_output(arrays, which, shape);

    (void)PyOS_snprintf(name, sizeof name, "out: %s", arrays->form->out[which]);
    if (check_given_dtype(tsvdi_shapes_dtype(arrays, which), name, given) < 0) {
        return -1;
    }
    if (given->ndim != ndim || memcmp(given->shape, shape, (size_t)ndim * sizeof *shape) != 0) {
        PyObject *got = tsvdi_shapes_tuple(given->ndim, given->shape);
        PyObject *wanted = tsvdi_shapes_tuple(ndim, shape);

        if (got != NULL && wanted != NULL) {
            PyErr_Format(PyExc_ValueError, "%s has shape %R, the result has shape %R", name, got,
                         wanted);
        }
        Py_XDECREF(got);
        Py_XDECREF(wanted);
        return -1;
    }
    return check_ready(name, given);
}

int
tsvdi_shapes_check_overlap(const struct arrays *arrays)
{
    const struct form *form = arrays->form;
    const tsvd_array *out = arrays->core_out;

    for (int i = 0; i < OUT_COUNT; i++) {
        if (arrays->out[i] == NULL) {
            continue;
        }
        for (int j = 0; j < form->inputs; j++) {
            if (tsvd_arrays_overlap(&out[i], &arrays->core_in[j])) {
                PyErr_Format(PyExc_ValueError, "out: %s overlaps the memory of %s", form->out[i],
                             form->input);
                return -1;
            }
        }
        for (int j = i + 1; j < OUT_COUNT; j++) {
            if (arrays->out[j] != NULL && tsvd_arrays_overlap(&out[i], &out[j])) {
                PyErr_Format(PyExc_ValueError, "out: %s and %s overlap in memory", form->out[i],
                             form->out[j]);
                return -1;
            }
        }
    }
    return 0;
}
