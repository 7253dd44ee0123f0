/*
 * tsvd._core: d, e and out as NumPy arrays; dtypes, shapes, strides and memory are checked here.
 *
 * Other threads may run where Python code runs, or where the GIL is released: in the conversion of
 * an argument to an array, in a cast, in an import.  They may give an array of the caller's another
 * shape in place.  So address, dtype, shape and strides of such an array are read once, all of them
 * while no other thread runs, and what was read is used to the end.
 */
#include "python/arrays.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

/* Smaller results are allocated without asking the system what is free. */
#define MEMORY_CHECK_BYTES ((uint64_t)64 << 20)

static const char *const out_names[OUT_COUNT] = {"L", "s", "R"};

int
tsvdi_arrays_import(void)
{
    return PyArray_ImportNumPyAPI();
}

void
tsvdi_arrays_init(struct arrays *arrays)
{
    arrays->d = arrays->e = NULL;
    arrays->convert_d = arrays->convert_e = false;
    for (int i = 0; i < OUT_COUNT; i++) {
        arrays->out[i] = NULL;
    }
}

/* A ValueError that ends with both shapes; always -1. */
static int
raise_shapes(const char *rule, PyArrayObject *d, PyArrayObject *e)
{
    PyObject *d_shape = PyArray_IntTupleFromIntp(PyArray_NDIM(d), PyArray_DIMS(d));
    PyObject *e_shape = PyArray_IntTupleFromIntp(PyArray_NDIM(e), PyArray_DIMS(e));

    if (d_shape != NULL && e_shape != NULL) {
        PyErr_Format(PyExc_ValueError, "%s; got d of shape %R and e of shape %R", rule, d_shape,
                     e_shape);
    }
    Py_XDECREF(d_shape);
    Py_XDECREF(e_shape);
    return -1;
}

/* ---- input ---- */

/* Refuses an array whose dtype is none that tsvd takes. */
static int
check_type(PyObject *held, const char *name)
{
    PyArrayObject *array = (PyArrayObject *)held;
    const int type = PyArray_TYPE(array);

    if (type != NPY_DOUBLE && type != NPY_FLOAT && !PyTypeNum_ISINTEGER(type) &&
        !PyTypeNum_ISBOOL(type)) {
        PyErr_Format(PyExc_TypeError,
                     "%s has dtype %S; tsvd takes float64 and float32, and integers and bool, "
                     "which become float64",
                     name, PyArray_DESCR(array));
        return -1;
    }
    return 0;
}

/* The type that the core computes in. */
static int
numpy_type(const struct arrays *arrays)
{
    return arrays->dtype == TSVD_FLOAT32 ? NPY_FLOAT : NPY_DOUBLE;
}

/* Whether the core cannot read the array as it is.  Then *held becomes a view of it, which is known
   to nobody else, so that its shape stays as it is until it is converted.  Returns -1 on failure.
 */
static int
must_convert(PyObject **held, int type)
{
    PyArrayObject *array = (PyArrayObject *)*held;
    PyObject *view;

    if (PyArray_TYPE(array) == type && PyArray_ISBEHAVED_RO(array)) {
        return 0;
    }
    view = PyArray_View(array, NULL, &PyArray_Type);
    if (view == NULL) {
        return -1;
    }
    Py_SETREF(*held, view);
    return 1;
}

/* NumPy's MemoryError of an array of so many bytes becomes one with the bytes that are free. */
static void
raise_memory(const char *what, uint64_t bytes)
{
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Format(PyExc_MemoryError,
                     "%s wants %llu bytes, which the system does not give; "
                     "%llu bytes are free",
                     what, (unsigned long long)bytes,
                     (unsigned long long)tsvd_host_memory_available());
    }
}

/* Merges the leading dimensions of an array into the batch shape; returns -1 if they do not
   fit. */
static int
broadcast(struct arrays *arrays, PyArrayObject *array)
{
    int ndim = PyArray_NDIM(array) - 1;
    int64_t *shape = arrays->batch_shape + (arrays->batch_ndim - ndim);

    for (int i = 0; i < ndim; i++) {
        npy_intp size = PyArray_DIM(array, i);

        if (shape[i] == 1) {
            shape[i] = size;
        } else if (size != 1 && size != shape[i]) {
            return -1;
        }
    }
    return 0;
}

/* n and the batch shape, from d (..., n) and e (..., n-1). */
static int
set_shape(struct arrays *arrays, PyArrayObject *d, PyArrayObject *e)
{
    int d_ndim = PyArray_NDIM(d), e_ndim = PyArray_NDIM(e);
    npy_intp n;

    if (d_ndim == 0 || e_ndim == 0) {
        return raise_shapes("d (..., n) and e (..., n-1) need at least one dimension", d, e);
    }
    n = PyArray_DIM(d, d_ndim - 1);
    if (PyArray_DIM(e, e_ndim - 1) != (n > 0 ? n - 1 : 0)) {
        return raise_shapes("d (..., n) needs e (..., n-1)", d, e);
    }
    arrays->n = n;
    arrays->batch_ndim = (d_ndim > e_ndim ? d_ndim : e_ndim) - 1;
    if (arrays->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        PyErr_Format(PyExc_ValueError, "d and e may have at most %d leading dimensions, got %d",
                     TSVD_MAX_BATCH_DIMS, arrays->batch_ndim);
        return -1;
    }
    for (int i = 0; i < arrays->batch_ndim; i++) {
        arrays->batch_shape[i] = 1;
    }
    if (broadcast(arrays, d) < 0 || broadcast(arrays, e) < 0) {
        return raise_shapes("the leading dimensions of d and e do not broadcast", d, e);
    }
    return 0;
}

/* Bytes of a number of the call. */
static uint64_t
size_of(const struct arrays *arrays)
{
    return arrays->dtype == TSVD_FLOAT32 ? sizeof(float) : sizeof(double);
}

/* An array for the core. */
static void
describe(const struct arrays *arrays, PyArrayObject *array, tsvd_array *core)
{
    core->data = PyArray_DATA(array);
    core->space = TSVD_HOST;
    core->dtype = arrays->dtype;
    core->ndim = PyArray_NDIM(array);
    for (int i = 0; i < core->ndim; i++) {
        core->shape[i] = PyArray_DIM(array, i);
        core->strides[i] = PyArray_STRIDE(array, i);
    }
}

/* Reads all facts about d and e. */
static int
read_facts(struct arrays *arrays)
{
    const bool single = PyArray_TYPE((PyArrayObject *)arrays->d) == NPY_FLOAT &&
                        PyArray_TYPE((PyArrayObject *)arrays->e) == NPY_FLOAT;
    int convert_d, convert_e;

    if (check_type(arrays->d, "d") < 0 || check_type(arrays->e, "e") < 0) {
        return -1;
    }
    arrays->dtype = single ? TSVD_FLOAT32 : TSVD_FLOAT64;
    convert_d = must_convert(&arrays->d, numpy_type(arrays));
    convert_e = convert_d < 0 ? -1 : must_convert(&arrays->e, numpy_type(arrays));
    if (convert_e < 0 ||
        set_shape(arrays, (PyArrayObject *)arrays->d, (PyArrayObject *)arrays->e) < 0) {
        return -1;
    }
    arrays->convert_d = convert_d;
    arrays->convert_e = convert_e;
    arrays->count = arrays->n;
    describe(arrays, (PyArrayObject *)arrays->d, &arrays->core_d);
    describe(arrays, (PyArrayObject *)arrays->e, &arrays->core_e);
    return 0;
}

int
tsvdi_arrays_take(struct arrays *arrays, PyObject *d, PyObject *e)
{
    arrays->d = PyArray_FROM_O(d);
    arrays->e = arrays->d == NULL ? NULL : PyArray_FROM_O(e); /* may run Python code */
    return arrays->e == NULL ? -1 : read_facts(arrays);
}

/* Replaces a view by an aligned array of the dtype of the call in native byte order. */
static int
convert(const struct arrays *arrays, PyObject **held, tsvd_array *core)
{
    PyObject *converted =
        PyArray_FromArray((PyArrayObject *)*held, PyArray_DescrFromType(numpy_type(arrays)),
                          NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY);

    if (converted == NULL) {
        raise_memory("a converted copy of d or e",
                     (uint64_t)PyArray_SIZE((PyArrayObject *)*held) * size_of(arrays));
        return -1;
    }
    Py_SETREF(*held, converted);
    describe(arrays, (PyArrayObject *)converted, core);
    return 0;
}

int
tsvdi_arrays_input(struct arrays *arrays)
{
    if (arrays->convert_d && convert(arrays, &arrays->d, &arrays->core_d) < 0) {
        return -1;
    }
    return arrays->convert_e ? convert(arrays, &arrays->e, &arrays->core_e) : 0;
}

/* ---- output ---- */

/* The shape of L (..., n, k), s (..., k) or R (..., k, n); returns the number of dimensions. */
static int
out_shape(const struct arrays *arrays, int which, npy_intp *shape)
{
    int ndim = arrays->batch_ndim;

    for (int i = 0; i < ndim; i++) {
        shape[i] = (npy_intp)arrays->batch_shape[i];
    }
    if (which == OUT_L) {
        shape[ndim++] = (npy_intp)arrays->n;
    }
    shape[ndim++] = (npy_intp)arrays->count;
    if (which == OUT_R) {
        shape[ndim++] = (npy_intp)arrays->n;
    }
    return ndim;
}

int
tsvdi_arrays_check_memory(const struct arrays *arrays, const tsvd_plan *plan, bool vectors)
{
    npy_intp shape[TSVD_MAX_BATCH_DIMS + 2];
    const uint64_t work = plan->host_bytes;
    uint64_t wanted = plan->result_bytes, available;
    PyObject *shown;
    int ndim;

    wanted = wanted > UINT64_MAX - work ? UINT64_MAX : wanted + work;
    if (wanted < MEMORY_CHECK_BYTES) {
        return 0;
    }
    available = tsvd_host_memory_available();
    if (available == 0) {
        available = PY_SSIZE_T_MAX; /* unknown: then only the address space is a bound */
    }
    if (wanted <= available) {
        return 0;
    }
    ndim = out_shape(arrays, vectors ? OUT_L : OUT_S, shape);
    shown = PyArray_IntTupleFromIntp(ndim, shape);
    if (shown != NULL) {
        PyErr_Format(PyExc_MemoryError,
                     "the results, %s of shape %R, %swant %s%llu bytes; %llu bytes are free",
                     vectors ? "L and R" : "s", shown, work > 0 ? "and the workspace " : "",
                     wanted == UINT64_MAX ? "more than " : "", (unsigned long long)wanted,
                     (unsigned long long)available);
        Py_DECREF(shown);
    }
    return -1;
}

static PyArrayObject *
new_output(const struct arrays *arrays, int which, int type)
{
    npy_intp shape[TSVD_MAX_BATCH_DIMS + 2];
    int ndim = out_shape(arrays, which, shape);
    PyArrayObject *array = (PyArrayObject *)PyArray_SimpleNew(ndim, shape, type);

    if (array == NULL) {
        raise_memory(out_names[which],
                     (uint64_t)PyArray_MultiplyList(shape, ndim) * size_of(arrays));
    }
    return array;
}

/* The caller's array for a result, a new reference, if the core may write to it. */
static PyArrayObject *
given_output(const struct arrays *arrays, int which, int type, PyObject *argument)
{
    npy_intp shape[TSVD_MAX_BATCH_DIMS + 2];
    int ndim = out_shape(arrays, which, shape);
    const char *name = out_names[which];
    PyArrayObject *array;

    if (!PyArray_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "out: %s must be a NumPy array, not %.200s", name,
                     Py_TYPE(argument)->tp_name);
        return NULL;
    }
    array = (PyArrayObject *)argument;
    if (PyArray_TYPE(array) != type) {
        PyErr_Format(PyExc_TypeError, "out: %s has dtype %S, the result has dtype %s", name,
                     PyArray_DESCR(array), type == NPY_DOUBLE ? "float64" : "float32");
        return NULL;
    }
    if (PyArray_NDIM(array) != ndim || !PyArray_CompareLists(PyArray_DIMS(array), shape, ndim)) {
        PyObject *got = PyArray_IntTupleFromIntp(PyArray_NDIM(array), PyArray_DIMS(array));
        PyObject *wanted = PyArray_IntTupleFromIntp(ndim, shape);

        if (got != NULL && wanted != NULL) {
            PyErr_Format(PyExc_ValueError, "out: %s has shape %R, the result has shape %R", name,
                         got, wanted);
        }
        Py_XDECREF(got);
        Py_XDECREF(wanted);
        return NULL;
    }
    if (!PyArray_ISCARRAY(array)) {
        PyErr_Format(PyExc_ValueError,
                     "out: %s must be C-contiguous, aligned, writeable and in native byte order",
                     name);
        return NULL;
    }
    Py_INCREF(array);
    return array;
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

/* Results may share memory neither with each other nor with the input. */
static int
check_overlap(const struct arrays *arrays)
{
    const tsvd_array *out = arrays->core_out;

    for (int i = 0; i < OUT_COUNT; i++) {
        if (overlap(&out[i], &arrays->core_d) || overlap(&out[i], &arrays->core_e)) {
            PyErr_Format(PyExc_ValueError, "out: %s overlaps the memory of d or e", out_names[i]);
            return -1;
        }
        for (int j = i + 1; j < OUT_COUNT; j++) {
            if (overlap(&out[i], &out[j])) {
                PyErr_Format(PyExc_ValueError, "out: %s and %s overlap in memory", out_names[i],
                             out_names[j]);
                return -1;
            }
        }
    }
    return 0;
}

int
tsvdi_arrays_output(struct arrays *arrays, bool vectors, PyObject *given)
{
    const int type = numpy_type(arrays);
    PyArrayObject *out;

    if (given != Py_None && (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != OUT_COUNT)) {
        PyErr_SetString(PyExc_TypeError, "out must be a tuple of three arrays (L, s, R)");
        return -1;
    }
    for (int i = 0; i < OUT_COUNT; i++) {
        if (!vectors && i != OUT_S) {
            continue;
        }
        out = given == Py_None ? new_output(arrays, i, type)
                               : given_output(arrays, i, type, PyTuple_GET_ITEM(given, i));
        arrays->out[i] = (PyObject *)out;
        if (out == NULL) {
            return -1;
        }
        describe(arrays, out, &arrays->core_out[i]);
    }
    return given == Py_None ? 0 : check_overlap(arrays);
}

void
tsvdi_arrays_release(struct arrays *arrays)
{
    for (int i = 0; i < OUT_COUNT; i++) {
        Py_CLEAR(arrays->out[i]);
    }
    Py_CLEAR(arrays->d);
    Py_CLEAR(arrays->e);
}
