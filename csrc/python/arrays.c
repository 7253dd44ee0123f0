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
    arrays->lower = arrays->full = arrays->rows_apart = false;
    for (int i = 0; i < INPUTS_MOST; i++) {
        arrays->in[i] = NULL;
        arrays->convert[i] = false;
    }
    for (int i = 0; i < OUT_COUNT; i++) {
        arrays->out[i] = NULL;
        arrays->core_out[i].data = NULL; /* of a result that is not wanted */
    }
}

/* ---- input ---- */

/* Refuses an array whose dtype tsvd does not take. */
static int
check_type(const struct form *form, PyObject *owned, const char *name)
{
    PyArrayObject *array = (PyArrayObject *)owned;
    const int type = PyArray_TYPE(array);

    if (type != NPY_DOUBLE && type != NPY_FLOAT && !PyTypeNum_ISINTEGER(type) &&
        !PyTypeNum_ISBOOL(type) &&
        !(form->takes_complex && (type == NPY_CDOUBLE || type == NPY_CFLOAT))) {
        tsvdi_shapes_refuse_dtype(name, (PyObject *)PyArray_DESCR(array),
                                  !form->takes_complex && PyTypeNum_ISCOMPLEX(type));
        return -1;
    }
    return 0;
}

/* NumPy's number of a dtype. */
static int
numpy_type(tsvd_dtype dtype)
{
    static const int types[] = {[TSVD_FLOAT64] = NPY_DOUBLE,
                                [TSVD_FLOAT32] = NPY_FLOAT,
                                [TSVD_COMPLEX128] = NPY_CDOUBLE,
                                [TSVD_COMPLEX64] = NPY_CFLOAT};

    return types[dtype];
}

/* The dtype that matrices are computed in of which such arrays are given. */
static tsvd_dtype
computed_in(const struct arrays *arrays)
{
    const int first = PyArray_TYPE((PyArrayObject *)arrays->in[0]);
    bool single = true;

    if (PyTypeNum_ISCOMPLEX(first)) {
        return first == NPY_CFLOAT ? TSVD_COMPLEX64 : TSVD_COMPLEX128;
    }
    for (int i = 0; i < arrays->form->inputs; i++) {
        single = single && PyArray_TYPE((PyArrayObject *)arrays->in[i]) == NPY_FLOAT;
    }
    return single ? TSVD_FLOAT32 : TSVD_FLOAT64;
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
describe(PyArrayObject *array, tsvd_dtype dtype, tsvd_array *core)
{
    core->data = PyArray_DATA(array);
    core->space = TSVD_HOST;
    core->dtype = dtype;
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

    for (int i = 0; i < inputs; i++) {
        if (check_type(arrays->form, arrays->in[i], arrays->form->in[i]) < 0) {
            return -1;
        }
    }
    arrays->dtype = computed_in(arrays);
    for (int i = 0; i < inputs; i++) {
        const int converts = must_convert(&arrays->in[i], numpy_type(arrays->dtype));

        if (converts < 0) {
            return -1;
        }
        arrays->convert[i] = converts;
    }
    for (int i = 0; i < inputs; i++) {
        tsvd_array *core = &arrays->core_in[i];

        describe((PyArrayObject *)arrays->in[i], arrays->dtype, core);
        if (arrays->convert[i] && core->ndim <= TSVD_MAX_DIMS) { /* its strides will be others */
            *core = tsvd_array_of(NULL, TSVD_HOST, arrays->dtype, core->ndim, core->shape);
        }
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
        PyArray_FromArray((PyArrayObject *)*owned, PyArray_DescrFromType(numpy_type(arrays->dtype)),
                          NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY);

    if (converted == NULL) {
        raise_memory("a converted copy of the input",
                     (uint64_t)PyArray_SIZE((PyArrayObject *)*owned) *
                         tsvd_dtype_size(arrays->dtype));
        return -1;
    }
    tsvdi_set_reference(owned, converted);
    describe((PyArrayObject *)converted, arrays->dtype, core);
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
tsvdi_arrays_new(const char *name, tsvd_dtype dtype, int ndim, const int64_t *shape,
                 tsvd_array *core)
{
    PyObject *array = PyArray_SimpleNew(ndim, (npy_intp *)shape, numpy_type(dtype));

    if (array == NULL) {
        raise_memory(name, (uint64_t)PyArray_MultiplyList((npy_intp *)shape, ndim) *
                               tsvd_dtype_size(dtype));
        return NULL;
    }
    describe((PyArrayObject *)array, dtype, core);
    return array;
}

static PyObject *
new_output(struct arrays *arrays, int which)
{
    int64_t shape[TSVD_MAX_DIMS];
    const int ndim = tsvdi_shapes_output(arrays, which, shape);

    return tsvdi_arrays_new(arrays->form->out[which], tsvdi_shapes_dtype(arrays, which), ndim,
                            shape, &arrays->core_out[which]);
}

/* Reads the facts about an array of the caller that takes a result of a dtype.  rows_apart: it need
   not be C-contiguous. */
static int
read_given(tsvd_dtype dtype, const char *name, PyObject *argument, bool rows_apart,
           struct given *given)
{
    PyArrayObject *array = (PyArrayObject *)argument;

    if (!PyArray_Check(argument)) {
        return tsvdi_refuse_type(name, "a NumPy array", argument);
    }
    given->dtype = (PyObject *)PyArray_DESCR(array);
    given->same_dtype = PyArray_TYPE(array) == numpy_type(dtype);
    given->ready = rows_apart ? PyArray_ISBEHAVED(array) : PyArray_ISCARRAY(array);
    given->ndim = PyArray_NDIM(array);
    given->shape = (const int64_t *)PyArray_DIMS(array);
    return 0;
}

int
tsvdi_arrays_writable(const struct arrays *arrays, const char *name, PyObject *array,
                      tsvd_array *core)
{
    struct given given;

    if (read_given(arrays->dtype, name, array, false, &given) < 0 ||
        tsvdi_shapes_check_writable(arrays, name, &given) < 0) {
        return -1;
    }
    describe((PyArrayObject *)array, arrays->dtype, core);
    return 0;
}

/* The caller's array for a result, a new reference, if the core may write to it. */
static PyObject *
given_output(struct arrays *arrays, int which, PyObject *argument)
{
    const tsvd_dtype dtype = tsvdi_shapes_dtype(arrays, which);
    char name[16];
    struct given given;

    (void)PyOS_snprintf(name, sizeof name, "out: %s", arrays->form->out[which]);
    if (read_given(dtype, name, argument, arrays->rows_apart, &given) < 0 ||
        tsvdi_shapes_check_given(arrays, which, &given) < 0) {
        return NULL;
    }
    describe((PyArrayObject *)argument, dtype, &arrays->core_out[which]);
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
