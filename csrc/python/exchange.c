/*
 * tsvd._core: the arrays of a call that come from other libraries (exchange.h).
 */
#include "python/exchange.h"

#include "python/shapes.h"

/* ---- the arrays of a call ---- */

/* Calls a function of tsvd._arrays, which knows the libraries. */
static PyObject *
ask_python(const char *function, PyObject *array, PyObject *argument)
{
    PyObject *arrays = PyImport_ImportModule("tsvd._arrays"), *answer = NULL;

    if (arrays != NULL && argument != NULL) {
        answer = PyObject_CallMethod(arrays, function, "OO", array, argument);
    }
    Py_XDECREF(arrays);
    Py_XDECREF(argument);
    return answer;
}

/* Makes the handle's stream wait for the one that the interface names, if there is one. */
static int
wait_for_stream(PyObject *module, tsvd_handle *handle, PyObject *interface)
{
    PyObject *stream = PyDict_GetItemString(interface, "stream");
    tsvd_error error;
    tsvd_status status;
    void *address;

    if (handle == NULL || stream == NULL || stream == Py_None) {
        return 0;
    }
    address = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred()) {
        return -1;
    }
    status = tsvd_wait_for(handle, address, &error);
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
        return -1;
    }
    return 0;
}

/* Drops a capsule.  Its destructor may be written in Python, which an exception under way would
   disturb. */
static void
drop(PyObject *exported)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(exported);
    PyErr_Restore(type, value, trace);
}

/* Borrows an array of a device.  Its library makes the handle's stream wait for the work that is
   under way on the array. */
static PyObject *
borrow_array(PyObject *module, const char *name, tsvd_handle *handle, int device, PyObject *array)
{
    PyObject *stream =
        handle == NULL ? PyLong_FromLong(-1) : PyLong_FromVoidPtr(tsvd_handle_stream(handle));
    PyObject *exported = ask_python("export", array, stream), *b = NULL;

    if (exported != NULL) {
        b = tsvdi_borrow(module, name, device, exported);
    }
    if (b != NULL && ((borrowed *)b)->device != device) {
        PyErr_Format(PyExc_BufferError,
                     "%s: the array's capsule is not of the device that it names", name);
        Py_CLEAR(b);
    }
    if (b != NULL && PyTuple_Check(exported) &&
        wait_for_stream(module, handle, PyTuple_GetItem(exported, 1)) < 0) {
        Py_CLEAR(b);
    }
    drop(exported);
    return b;
}

static bool
is_aligned(const borrowed *b)
{
    const int64_t size = b->dtype.bits / 8;
    bool aligned = (uintptr_t)b->core.data % (uintptr_t)size == 0, empty = false;

    for (int i = 0; i < b->core.ndim; i++) {
        empty = empty || b->core.shape[i] == 0;
        aligned = aligned && (b->core.shape[i] <= 1 || b->core.strides[i] % size == 0);
    }
    return aligned || empty;
}

/* Replaces an array that the core cannot read by a copy that its library makes, of a dtype that
   tsvd computes in; bits: 0: float64, or the largest floats that the library has. */
static int
convert(PyObject **owned, PyObject *module, const char *name, tsvd_handle *handle, int device,
        PyObject *array, struct dlpack_dtype to)
{
    const char *dtype = to.code == DLPACK_COMPLEX ? to.bits == 64 ? "complex64" : "complex128"
                        : to.bits == 32           ? "float32"
                                                  : "float64";
    PyObject *copy = ask_python("convert", array, PyUnicode_FromString(dtype)), *b = NULL;

    if (copy != NULL) {
        b = borrow_array(module, name, handle, device, copy);
        Py_DECREF(copy);
    }
    if (b != NULL && (!tsvdi_is_computed(((borrowed *)b)->dtype) || !is_aligned((borrowed *)b) ||
                      (to.bits != 0 && ((borrowed *)b)->dtype.bits != to.bits))) {
        PyErr_Format(PyExc_TypeError, "%s cannot be converted to %s by its library", name, dtype);
        Py_CLEAR(b);
    }
    if (b == NULL) {
        return -1;
    }
    tsvdi_set_reference(owned, b);
    return 0;
}

/* Borrows an array of the input. */
static int
take_input(PyObject **owned, const struct form *form, PyObject *module, const char *name,
           tsvd_handle *handle, int device, PyObject *array)
{
    const struct dlpack_dtype widest = {DLPACK_FLOAT, 0, 1};
    const borrowed *b;

    *owned = borrow_array(module, name, handle, device, array);
    b = (const borrowed *)*owned;
    if (b == NULL) {
        return -1;
    }
    if (b->dtype.code == DLPACK_COMPLEX && !form->takes_complex) {
        return tsvdi_refuse_borrowed(b, name, true);
    }
    if (!is_aligned(b)) { /* its library could not read it either */
        PyErr_Format(
            PyExc_ValueError,
            "%s has an address or a stride that is no multiple of the %d bytes of a number", name,
            b->dtype.bits / 8);
        return -1;
    }
    return tsvdi_is_computed(b->dtype)
               ? 0
               : convert(owned, module, name, handle, device, array, widest);
}

int
tsvdi_exchange_take(struct arrays *arrays, tsvd_handle *handle, int device, PyObject *const *input)
{
    const struct form *form = arrays->form;
    PyObject *module = arrays->module;
    struct dlpack_dtype widest = {DLPACK_FLOAT, 0, 1};

    for (int i = 0; i < form->inputs; i++) {
        const borrowed *b;

        if (take_input(&arrays->in[i], form, module, form->in[i], handle, device, input[i]) < 0) {
            return -1;
        }
        b = (const borrowed *)arrays->in[i];
        widest = b->dtype.bits > widest.bits ? b->dtype : widest;
    }
    for (int i = 0; i < form->inputs; i++) {
        if (((const borrowed *)arrays->in[i])->dtype.bits < widest.bits &&
            convert(&arrays->in[i], module, form->in[i], handle, device, input[i], widest) < 0) {
            return -1;
        }
        arrays->core_in[i] = ((const borrowed *)arrays->in[i])->core;
    }
    arrays->dtype = arrays->core_in[0].dtype;
    return form->set_shape(arrays);
}

/* ---- the results of a call ---- */

static bool
is_contiguous(const tsvd_array *array)
{
    const tsvd_array whole =
        tsvd_array_of(array->data, array->space, array->dtype, array->ndim, array->shape);
    bool empty = false, contiguous = true;

    for (int i = 0; i < array->ndim; i++) {
        empty = empty || array->shape[i] == 0;
        contiguous = contiguous && (array->shape[i] == 1 || array->strides[i] == whole.strides[i]);
    }
    return empty || contiguous;
}

/* Borrows an array of the caller that is written to, and reads the facts about it; given->dtype is
   a new reference. */
static PyObject *
borrow_given(PyObject *module, const char *name, tsvd_handle *handle, tsvd_dtype dtype,
             PyObject *array, struct given *given)
{
    PyObject *b = borrow_array(module, name, handle, tsvd_handle_device(handle), array);
    const borrowed *out = (const borrowed *)b;

    if (b != NULL && out->readonly) {
        PyErr_Format(PyExc_ValueError, "%s is read-only", name);
        Py_CLEAR(b);
    }
    if (b == NULL) {
        return NULL;
    }
    given->dtype = tsvdi_dtype_name(out->dtype);
    given->same_dtype = tsvdi_is_computed(out->dtype) && out->core.dtype == dtype;
    given->ready = is_contiguous(&out->core) && is_aligned(out);
    given->ndim = out->core.ndim;
    given->shape = out->core.shape;
    if (given->dtype == NULL) {
        Py_CLEAR(b);
    }
    return b;
}

/* Borrows the caller's array for a result. */
static PyObject *
given_output(const struct arrays *arrays, tsvd_handle *handle, int which, PyObject *array)
{
    char name[16];
    struct given given;
    PyObject *b;

    (void)PyOS_snprintf(name, sizeof name, "out: %s", arrays->form->out[which]);
    b = borrow_given(arrays->module, name, handle, tsvdi_shapes_dtype(arrays, which), array,
                     &given);
    if (b == NULL) {
        return NULL;
    }
    if (tsvdi_shapes_check_given(arrays, which, &given) < 0) {
        Py_CLEAR(b);
    }
    Py_DECREF(given.dtype);
    return b;
}

PyObject *
tsvdi_exchange_writable(const struct arrays *arrays, tsvd_handle *handle, const char *name,
                        PyObject *array, tsvd_array *core)
{
    struct given given;
    PyObject *b = borrow_given(arrays->module, name, handle, arrays->dtype, array, &given);

    if (b == NULL) {
        return NULL;
    }
    *core = ((const borrowed *)b)->core;
    if (tsvdi_shapes_check_writable(arrays, name, &given) < 0) {
        Py_CLEAR(b);
    }
    Py_DECREF(given.dtype);
    return b;
}

int
tsvdi_exchange_output(struct arrays *arrays, tsvd_handle *handle, bool vectors, PyObject *given,
                      PyObject *keep)
{
    int64_t shape[TSVD_MAX_DIMS];

    if (tsvdi_shapes_check_out(arrays, vectors, given) < 0) {
        return -1;
    }
    for (int i = 0; i < OUT_COUNT; i++) {
        if (!vectors && i != OUT_S) {
            continue;
        }
        if (given != Py_None) {
            arrays->out[i] = given_output(arrays, handle, i, tsvdi_shapes_item(given, i));
        } else {
            const int ndim = tsvdi_shapes_output(arrays, i, shape);

            arrays->out[i] = tsvdi_device_array_new(
                arrays->module, handle, tsvdi_shapes_dtype(arrays, i), ndim, shape, keep);
        }
        if (arrays->out[i] == NULL) {
            return -1;
        }
        arrays->core_out[i] = given != Py_None ? ((const borrowed *)arrays->out[i])->core
                                               : *tsvdi_device_array_core(arrays->out[i]);
    }
    return given == Py_None ? 0 : tsvdi_shapes_check_overlap(arrays);
}
