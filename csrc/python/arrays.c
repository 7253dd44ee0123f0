/*
 * tsvd._core: input and results as NumPy arrays; dtypes, shapes, strides and memory are checked
 * here.
 *
 * Other threads may run where Python code runs, or where the GIL is released: in the conversion of
 * an argument to an array, in a cast, in an import.  They may change the shape of an array of the
 * caller's in place.  So address, dtype, shape and strides of such an array are read once, all of
 * them while no other thread runs, and only the copies are used from then on.
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
tsvdi_arrays_init(struct arrays *arrays, PyObject *module, const struct form *form)
{
    arrays->form = form;
    arrays->module = module;
    arrays->full = false;
    for (int i = 0; i < INPUTS_MOST; i++) {
        arrays->in[i] = NULL;
        arrays->convert[i] = false;
    }
    for (int i = 0; i < OUT_COUNT; i++) {
        arrays->out[i] = NULL;
    }
}

/* ---- input ---- */

/* Refuses an array whose dtype tsvd does not take. */
static int
check_type(PyObject *owned, const char *name)
{
    PyArrayObject *array = (PyArrayObject *)owned;
    const int type = PyArray_TYPE(array);

    if (type != NPY_DOUBLE && type != NPY_FLOAT && !PyTypeNum_ISINTEGER(type) &&
        !PyTypeNum_ISBOOL(type)) {
        tsvdi_shapes_refuse_dtype(name, (PyObject *)PyArray_DESCR(array),
                                  PyTypeNum_ISCOMPLEX(type));
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

/* Whether the core cannot read the array as it is.  Then *owned becomes a view of it that only this
   call holds, so that no other thread changes its shape before it is converted.  Returns -1 on
   failure. */
static int
must_convert(PyObject **owned, int type)
{
    PyArrayObject *array = (PyArrayObject *)*owned;
    PyObject *view;

    if (PyArray_TYPE(array) == type && PyArray_ISBEHAVED_RO(array)) {
        return 0;
    }
    view = PyArray_View(array, NULL, &PyArray_Type);
    if (view == NULL) {
        return -1;
    }
    tsvdi_set_reference(owned, view);
    return 1;
}

/* Replaces NumPy's MemoryError for an array of `bytes` bytes by one that also says how many are
   free. */
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

/* Reads all facts about the input. */
static int
read_facts(struct arrays *arrays)
{
    const int inputs = arrays->form->inputs;
    bool single = true;

    for (int i = 0; i < inputs; i++) {
        if (check_type(arrays->in[i], arrays->form->in[i]) < 0) {
            return -1;
        }
        single = single && PyArray_TYPE((PyArrayObject *)arrays->in[i]) == NPY_FLOAT;
    }
    arrays->dtype = single ? TSVD_FLOAT32 : TSVD_FLOAT64;
    for (int i = 0; i < inputs; i++) {
        const int converts = must_convert(&arrays->in[i], numpy_type(arrays));

        if (converts < 0) {
            return -1;
        }
        arrays->convert[i] = converts;
    }
    for (int i = 0; i < inputs; i++) {
        describe(arrays, (PyArrayObject *)arrays->in[i], &arrays->core_in[i]);
    }
    return arrays->form->set_shape(arrays);
}

int
tsvdi_arrays_take(struct arrays *arrays, PyObject *const *input)
{
    for (int i = 0; i < arrays->form->inputs; i++) {
        arrays->in[i] = PyArray_FROM_O(input[i]); /* may run Python code */
        if (arrays->in[i] == NULL) {
            return -1;
        }
    }
    return read_facts(arrays);
}

/* Replaces a view by an aligned array of the dtype of the call in native byte order. */
static int
convert(const struct arrays *arrays, PyObject **owned, tsvd_array *core)
{
    PyObject *converted =
        PyArray_FromArray((PyArrayObject *)*owned, PyArray_DescrFromType(numpy_type(arrays)),
                          NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY);

    if (converted == NULL) {
        raise_memory("a converted copy of the input",
                     (uint64_t)PyArray_SIZE((PyArrayObject *)*owned) * tsvdi_shapes_size(arrays));
        return -1;
    }
    tsvdi_set_reference(owned, converted);
    describe(arrays, (PyArrayObject *)converted, core);
    return 0;
}

int
tsvdi_arrays_input(struct arrays *arrays)
{
    for (int i = 0; i < arrays->form->inputs; i++) {
        if (arrays->convert[i] && convert(arrays, &arrays->in[i], &arrays->core_in[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- output ---- */

int64_t
tsvdi_arrays_order(PyObject *d, PyObject *e)
{
    const bool single = PyArray_CheckExact(d) && PyArray_CheckExact(e) &&
                        PyArray_NDIM((PyArrayObject *)d) == 1 &&
                        PyArray_NDIM((PyArrayObject *)e) == 1;

    return single ? PyArray_DIM((PyArrayObject *)d, 0) : -1;
}

int
tsvdi_arrays_check_memory(const struct arrays *arrays, const tsvd_plan *plan, bool vectors)
{
    int64_t shape[TSVD_MAX_DIMS];
    const int which = !vectors ? OUT_S : arrays->columns > arrays->rows ? OUT_R : OUT_L;
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
        available = PY_SSIZE_T_MAX; /* unknown: only the address space is a bound */
    }
    if (wanted <= available) {
        return 0;
    }
    ndim = tsvdi_shapes_output(arrays, which, shape);
    if (plan->result_bytes == 0) {
        PyErr_Format(PyExc_MemoryError, "the workspace wants %s%llu bytes; %llu bytes are free",
                     wanted == UINT64_MAX ? "more than " : "", (unsigned long long)wanted,
                     (unsigned long long)available);
        return -1;
    }
    shown = tsvdi_shapes_tuple(ndim, shape);
    if (shown != NULL) {
        PyErr_Format(PyExc_MemoryError,
                     "the results, %s of shape %R, %swant %s%llu bytes; %llu bytes are free",
                     vectors ? arrays->form->vectors : arrays->form->out[OUT_S], shown,
                     work > 0 ? "and the workspace " : "", wanted == UINT64_MAX ? "more than " : "",
                     (unsigned long long)wanted, (unsigned long long)available);
        Py_DECREF(shown);
    }
    return -1;
}

PyObject *
tsvdi_arrays_new(const struct arrays *arrays, const char *name, int ndim, const int64_t *shape,
                 tsvd_array *core)
{
    PyObject *array = PyArray_SimpleNew(ndim, (npy_intp *)shape, numpy_type(arrays));

    if (array == NULL) {
        raise_memory(name, (uint64_t)PyArray_MultiplyList((npy_intp *)shape, ndim) *
                               tsvdi_shapes_size(arrays));
        return NULL;
    }
    describe(arrays, (PyArrayObject *)array, core);
    return array;
}

static PyObject *
new_output(struct arrays *arrays, int which)
{
    int64_t shape[TSVD_MAX_DIMS];
    const int ndim = tsvdi_shapes_output(arrays, which, shape);

    return tsvdi_arrays_new(arrays, arrays->form->out[which], ndim, shape,
                            &arrays->core_out[which]);
}

/* Reads the facts about an array of the caller that takes a result. */
static int
read_given(const struct arrays *arrays, const char *name, PyObject *argument, struct given *given)
{
    PyArrayObject *array = (PyArrayObject *)argument;

    if (!PyArray_Check(argument)) {
        return tsvdi_refuse_type(name, "a NumPy array", argument);
    }
    given->dtype = (PyObject *)PyArray_DESCR(array);
    given->same_dtype = PyArray_TYPE(array) == numpy_type(arrays);
    given->ready = PyArray_ISCARRAY(array);
    given->ndim = PyArray_NDIM(array);
    given->shape = (const int64_t *)PyArray_DIMS(array);
    return 0;
}

int
tsvdi_arrays_writable(const struct arrays *arrays, const char *name, PyObject *array,
                      tsvd_array *core)
{
    struct given given;

    if (read_given(arrays, name, array, &given) < 0 ||
        tsvdi_shapes_check_writable(arrays, name, &given) < 0) {
        return -1;
    }
    describe(arrays, (PyArrayObject *)array, core);
    return 0;
}

/* The caller's array for a result, a new reference, if the core may write to it. */
static PyObject *
given_output(struct arrays *arrays, int which, PyObject *argument)
{
    char name[16];
    struct given given;

    (void)PyOS_snprintf(name, sizeof name, "out: %s", arrays->form->out[which]);
    if (read_given(arrays, name, argument, &given) < 0 ||
        tsvdi_shapes_check_given(arrays, which, &given) < 0) {
        return NULL;
    }
    describe(arrays, (PyArrayObject *)argument, &arrays->core_out[which]);
    return Py_NewRef(argument);
}

int
tsvdi_arrays_output(struct arrays *arrays, bool vectors, PyObject *given)
{
    if (tsvdi_shapes_check_out(arrays, vectors, given) < 0) {
        return -1;
    }
    for (int i = 0; i < OUT_COUNT; i++) {
        if (!vectors && i != OUT_S) {
            continue;
        }
        arrays->out[i] = given == Py_None ? new_output(arrays, i)
                                          : given_output(arrays, i, tsvdi_shapes_item(given, i));
        if (arrays->out[i] == NULL) {
            return -1;
        }
    }
    return given == Py_None ? 0 : tsvdi_shapes_check_overlap(arrays);
}

void
tsvdi_arrays_release(struct arrays *arrays)
{
    for (int i = 0; i < OUT_COUNT; i++) {
        Py_CLEAR(arrays->out[i]);
    }
    for (int i = 0; i < INPUTS_MOST; i++) {
        Py_CLEAR(arrays->in[i]);
    }
}
