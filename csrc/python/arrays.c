/*
 * tsvd._core: d, e and out as NumPy arrays; dtypes, shapes, strides and memory are checked here.
 *
 * Other threads may run where Python code runs, or where the GIL is released: in the conversion of
 * an argument to an array, in a cast, in an import.  They may give an array of the caller's another
 * shape in place.  So address, dtype, shape and strides of such an array are read once, all of them
 * while no other thread runs, and what was read is used to the end.
 */
#include "python/shapes.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

/* Smaller results are allocated without asking the system what is free. */
#define MEMORY_CHECK_BYTES ((uint64_t)64 << 20)

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

/* An array for the core. */
static void
describe(const struct arrays *arrays, PyArrayObject *array, tsvd_array *core)
{
    core->data = PyArray_DATA(array);
    core->space = TSVD_HOST;
    core->dtype = arrays->dtype;
    core->ndim = PyArray_NDIM(array);
    for (int i = 0; i < core->ndim && core->ndim <= TSVD_MAX_DIMS; i++) {
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
    if (convert_e < 0) {
        return -1;
    }
    arrays->convert_d = convert_d;
    arrays->convert_e = convert_e;
    describe(arrays, (PyArrayObject *)arrays->d, &arrays->core_d);
    describe(arrays, (PyArrayObject *)arrays->e, &arrays->core_e);
    return tsvdi_shapes_input(arrays);
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
                     (uint64_t)PyArray_SIZE((PyArrayObject *)*held) * tsvdi_shapes_size(arrays));
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

int
tsvdi_arrays_check_memory(const struct arrays *arrays, const tsvd_plan *plan, bool vectors)
{
    int64_t shape[TSVD_MAX_DIMS];
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
    ndim = tsvdi_shapes_output(arrays, vectors ? OUT_L : OUT_S, shape);
    shown = tsvdi_shapes_tuple(ndim, shape);
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
    int64_t shape[TSVD_MAX_DIMS];
    int ndim = tsvdi_shapes_output(arrays, which, shape);
    PyArrayObject *array = (PyArrayObject *)PyArray_SimpleNew(ndim, (npy_intp *)shape, type);

    if (array == NULL) {
        raise_memory(tsvdi_out_names[which],
                     (uint64_t)PyArray_MultiplyList((npy_intp *)shape, ndim) *
                         tsvdi_shapes_size(arrays));
    }
    return array;
}

/* The caller's array for a result, a new reference, if the core may write to it. */
static PyArrayObject *
given_output(const struct arrays *arrays, int which, int type, PyObject *argument)
{
    PyArrayObject *array = (PyArrayObject *)argument;
    struct given given;

    if (!PyArray_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "out: %s must be a NumPy array, not %.200s",
                     tsvdi_out_names[which], Py_TYPE(argument)->tp_name);
        return NULL;
    }
    given.dtype = (PyObject *)PyArray_DESCR(array);
    given.same_dtype = PyArray_TYPE(array) == type;
    given.ready = PyArray_ISCARRAY(array);
    given.ndim = PyArray_NDIM(array);
    given.shape = (const int64_t *)PyArray_DIMS(array);
    if (tsvdi_shapes_check_given(arrays, which, &given) < 0) {
        return NULL;
    }
    Py_INCREF(array);
    return array;
}

int
tsvdi_arrays_output(struct arrays *arrays, bool vectors, PyObject *given)
{
    const int type = numpy_type(arrays);
    PyArrayObject *out;

    if (tsvdi_shapes_check_out(given) < 0) {
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
    return given == Py_None ? 0 : tsvdi_shapes_check_overlap(arrays);
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
