/*
 * tsvd._core: an array that is borrowed from another library (exchange.h).
 */
#include "python/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "python/shapes.h"

/* ---- what is borrowed ---- */

static void
give_back(borrowed *b)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace); /* a deleter may run Python code: no error pending */
    if (b->managed != NULL && b->managed->deleter != NULL) {
        b->managed->deleter(b->managed);
    }
    if (b->versioned != NULL && b->versioned->deleter != NULL) {
        b->versioned->deleter(b->versioned);
    }
    b->managed = NULL;
    b->versioned = NULL;
    Py_CLEAR(b->owner);
    PyErr_Restore(type, value, trace);
}

static void
borrowed_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    give_back((borrowed *)self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The name of a dtype as NumPy would have it. */
PyObject *
tsvdi_dtype_name(struct dlpack_dtype dtype)
{
    static const char *const names[] = {"int", "uint", "float", "opaque", "bfloat", "complex"};

    if (dtype.lanes != 1) {
        return PyUnicode_FromFormat("of %d lanes", (int)dtype.lanes);
    }
    if (dtype.code == DLPACK_BOOL) {
        return PyUnicode_FromString("bool");
    }
    if (dtype.code < sizeof names / sizeof *names) {
        return PyUnicode_FromFormat("%s%d", names[dtype.code], (int)dtype.bits);
    }
    return PyUnicode_FromFormat("number %d of DLPack, of %d bits", (int)dtype.code,
                                (int)dtype.bits);
}

/* Bits of a part of a number. */
static int
bits_of(struct dlpack_dtype dtype)
{
    return dtype.code == DLPACK_COMPLEX ? dtype.bits / 2 : dtype.bits;
}

bool
tsvdi_is_computed(struct dlpack_dtype dtype)
{
    return dtype.lanes == 1 && (dtype.code == DLPACK_FLOAT || dtype.code == DLPACK_COMPLEX) &&
           (bits_of(dtype) == 32 || bits_of(dtype) == 64);
}

static bool
is_integer(struct dlpack_dtype dtype)
{
    return dtype.lanes == 1 && dtype.bits >= 8 && dtype.bits <= 64 &&
           (dtype.bits & (dtype.bits - 1)) == 0 &&
           (dtype.code == DLPACK_INT || dtype.code == DLPACK_UINT || dtype.code == DLPACK_BOOL);
}

int
tsvdi_refuse_borrowed(const borrowed *b, const char *name, bool phases)
{
    PyObject *shown = tsvdi_dtype_name(b->dtype);

    if (shown != NULL) {
        tsvdi_shapes_refuse_dtype(name, shown, phases);
        Py_DECREF(shown);
    }
    return -1;
}

/* Refuses what tsvd does not take, and sets the dtype for the core. */
static int
check_dtype(borrowed *b, const char *name)
{
    const bool single = bits_of(b->dtype) == 32;

    if (!tsvdi_is_computed(b->dtype) && !is_integer(b->dtype)) {
        return tsvdi_refuse_borrowed(b, name, false);
    }
    if (b->dtype.code == DLPACK_COMPLEX) {
        b->core.dtype = single ? TSVD_COMPLEX64 : TSVD_COMPLEX128;
    } else {
        b->core.dtype = single ? TSVD_FLOAT32 : TSVD_FLOAT64;
    }
    return 0;
}

/* Sets the shape and the strides.  strides: in units of `unit` bytes; NULL: the array is
   C-contiguous, and an entry has `unit` bytes. */
static int
set_shape(borrowed *b, const char *name, int ndim, const int64_t *shape, const int64_t *strides,
          int64_t unit)
{
    int64_t stride = unit;

    if (ndim < 0 || ndim > TSVD_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%s has %d dimensions; tsvd takes at most %d leading ones",
                     name, ndim, TSVD_MAX_BATCH_DIMS);
        return -1;
    }
    b->core.ndim = ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] < 0 ||
            (strides != NULL && __builtin_mul_overflow(strides[i], unit, &stride))) {
            PyErr_Format(PyExc_ValueError, "%s has a shape or strides that no array has", name);
            return -1;
        }
        b->core.shape[i] = shape[i];
        b->core.strides[i] = stride;
        if (strides == NULL && __builtin_mul_overflow(stride, shape[i], &stride)) {
            stride = 0; /* an array without entries, or one that the core refuses */
        }
    }
    return 0;
}

/* ---- DLPack ---- */

/* Where a tensor lies, in the words of DLPack; -1 with an exception set if tsvd cannot read it. */
static int
set_device(borrowed *b, const char *name, struct dlpack_device device)
{
    switch (device.type) {
    case DLPACK_CPU:
    case DLPACK_CUDA_HOST:
        b->core.space = TSVD_HOST;
        b->device = TSVD_DEVICE_CPU;
        return 0;
    case DLPACK_CUDA:
    case DLPACK_CUDA_MANAGED:
        b->core.space = TSVD_CUDA;
        b->device = device.id;
        return 0;
    default:
        PyErr_Format(PyExc_ValueError,
                     "%s lies on a device of type %d of DLPack; tsvd takes arrays of the host and "
                     "of CUDA devices",
                     name, (int)device.type);
        return -1;
    }
}

static int
take_tensor(borrowed *b, const char *name, const struct dlpack_tensor *tensor)
{
    b->dtype = tensor->dtype;
    b->core.data = tensor->data == NULL ? NULL : (char *)tensor->data + tensor->byte_offset;
    if (set_device(b, name, tensor->device) < 0 || check_dtype(b, name) < 0) {
        return -1;
    }
    return set_shape(b, name, tensor->ndim, tensor->shape, tensor->strides, b->dtype.bits / 8);
}

/* Takes the tensor out of a capsule, and marks the capsule as used. */
static int
take_capsule(borrowed *b, const char *name, PyObject *capsule)
{
    const struct dlpack_tensor *tensor;

    if (PyCapsule_IsValid(capsule, DLPACK_VERSIONED)) {
        b->versioned = PyCapsule_GetPointer(capsule, DLPACK_VERSIONED);
        (void)PyCapsule_SetName(capsule, DLPACK_VERSIONED_USED);
        if (b->versioned->version.major != DLPACK_MAJOR) {
            PyErr_Format(PyExc_BufferError,
                         "%s comes by DLPack %u.%u, and tsvd reads versions %d.x and before", name,
                         (unsigned)b->versioned->version.major,
                         (unsigned)b->versioned->version.minor, DLPACK_MAJOR);
            return -1;
        }
        b->readonly = (b->versioned->flags & DLPACK_READ_ONLY) != 0;
        tensor = &b->versioned->tensor;
    } else if (PyCapsule_IsValid(capsule, DLPACK_NAME)) {
        b->managed = PyCapsule_GetPointer(capsule, DLPACK_NAME);
        (void)PyCapsule_SetName(capsule, DLPACK_USED);
        tensor = &b->managed->tensor;
    } else {
        PyErr_Format(PyExc_TypeError,
                     "%s: __dlpack__() must return a new capsule of DLPack, not %.200R", name,
                     capsule);
        return -1;
    }
    return take_tensor(b, name, tensor);
}

/* ---- the CUDA array interface ---- */

/* Integers of a tuple; returns how many, -1 with an exception set. */
static int
get_integers(const char *name, PyObject *tuple, int64_t *to)
{
    const Py_ssize_t count = tuple != NULL && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;

    if (count < 0 || count > TSVD_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError,
                     "%s: shape and strides of __cuda_array_interface__ must be tuples of at most "
                     "%d integers",
                     name, TSVD_MAX_DIMS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        to[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (to[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return (int)count;
}

/* The dtype of a typestr such as "<f8"; with bits = 0 if tsvd does not know it. */
static struct dlpack_dtype
dtype_of(const char *typestr)
{
    const struct dlpack_dtype none = {DLPACK_OPAQUE, 0, 1};
    static const char kinds[] = "iuf?cb";
    static const uint8_t codes[] = {DLPACK_INT,    DLPACK_UINT,    DLPACK_FLOAT,
                                    DLPACK_OPAQUE, DLPACK_COMPLEX, DLPACK_BOOL};
    const char *kind = typestr[0] == '\0' ? NULL : strchr(kinds, typestr[1]);
    const long bytes = kind == NULL || *kind == '\0' ? 0 : strtol(typestr + 2, NULL, 10);
    struct dlpack_dtype dtype = none;

    if (bytes < 1 || bytes > 31 || (typestr[0] == '>' && bytes > 1)) {
        return none;
    }
    dtype.code = codes[kind - kinds];
    dtype.bits = (uint8_t)(8 * bytes);
    return dtype;
}

/* The facts of an interface but for the shape. */
static int
take_facts(borrowed *b, const char *name, PyObject *interface)
{
    PyObject *typestr = PyDict_GetItemString(interface, "typestr");
    PyObject *data = PyDict_GetItemString(interface, "data");
    PyObject *mask = PyDict_GetItemString(interface, "mask");
    const char *text = typestr == NULL ? NULL : PyUnicode_AsUTF8AndSize(typestr, NULL);

    if (text == NULL || data == NULL || !PyTuple_Check(data) || PyTuple_Size(data) != 2 ||
        (mask != NULL && mask != Py_None)) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError,
                         "%s: __cuda_array_interface__ must have a typestr and data, and no mask",
                         name);
        }
        return -1;
    }
    b->dtype = dtype_of(text);
    if (b->dtype.bits == 0) {
        tsvdi_shapes_refuse_dtype(name, typestr, false);
        return -1;
    }
    b->core.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    b->readonly = PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0;
    return PyErr_Occurred() ? -1 : check_dtype(b, name);
}

/* Takes (array, its interface). */
static int
take_interface(borrowed *b, const char *name, int device, PyObject *owner, PyObject *interface)
{
    int64_t shape[TSVD_MAX_DIMS], strides[TSVD_MAX_DIMS];
    PyObject *sizes = PyDict_GetItemString(interface, "shape");
    PyObject *steps = PyDict_GetItemString(interface, "strides");
    int ndim, steps_given = 0;

    b->core.space = TSVD_CUDA;
    b->device = device;
    b->owner = Py_NewRef(owner);
    if (take_facts(b, name, interface) < 0) {
        return -1;
    }
    ndim = get_integers(name, sizes, shape);
    if (ndim >= 0 && steps != NULL && steps != Py_None) {
        steps_given = get_integers(name, steps, strides);
    }
    if (ndim < 0 || steps_given < 0) {
        return -1;
    }
    if (steps_given > 0 && steps_given != ndim) {
        PyErr_Format(PyExc_ValueError,
                     "%s: __cuda_array_interface__ has %d strides for %d dimensions", name,
                     steps_given, ndim);
        return -1;
    }
    return steps_given > 0 ? set_shape(b, name, ndim, shape, strides, 1)
                           : set_shape(b, name, ndim, shape, NULL, b->dtype.bits / 8);
}

/* ---- a Borrowed object ---- */

PyObject *
tsvdi_borrow(PyObject *module, const char *name, int device, PyObject *exported)
{
    module_state *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->Borrowed;
    borrowed *b = (borrowed *)PyType_GenericAlloc(type, 0);
    PyObject *owner, *interface;
    int ret;

    if (b == NULL) {
        return NULL;
    }
    if (PyTuple_Check(exported)) {
        ret = PyArg_ParseTuple(exported, "OO!", &owner, &PyDict_Type, &interface)
                  ? take_interface(b, name, device, owner, interface)
                  : -1;
    } else {
        ret = take_capsule(b, name, exported);
    }
    if (ret < 0) {
        Py_DECREF(b);
        return NULL;
    }
    return (PyObject *)b;
}

PyDoc_STRVAR(borrow_doc, "borrow(capsule, name, /)\n--\n\n"
                         "An array of the host from a capsule of DLPack; NumPy reads it in place.");

static PyObject *
borrow(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    const char *name;

    if (!PyArg_ParseTuple(args, "Os:borrow", &capsule, &name)) {
        return NULL;
    }
    return tsvdi_borrow(module, name, TSVD_DEVICE_CPU, capsule);
}

PyMethodDef tsvdi_exchange_methods[] = {
    {"borrow", borrow, METH_VARARGS, borrow_doc},
    {NULL, NULL, 0, NULL},
};

/* The array interface of NumPy, https://numpy.org/doc/stable/reference/arrays.interface.html. */
static PyObject *
borrowed_interface(PyObject *self, void *Py_UNUSED(closure))
{
    const borrowed *b = (const borrowed *)self;
    const char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    const char *kinds = "iuf??cb";
    PyObject *shape, *strides;

    if (b->core.space != TSVD_HOST) {
        PyErr_SetString(PyExc_AttributeError, "the array is not in host memory");
        return NULL;
    }
    shape = tsvdi_shapes_tuple(b->core.ndim, b->core.shape);
    strides = tsvdi_shapes_tuple(b->core.ndim, b->core.strides);
    return Py_BuildValue(
        "{s:i,s:N,s:N,s:N,s:(NO)}", "version", 3, "shape", shape, "strides", strides, "typestr",
        PyUnicode_FromFormat("%c%c%d", order, kinds[b->dtype.code], (int)b->dtype.bits / 8), "data",
        PyLong_FromVoidPtr(b->core.data), b->readonly ? Py_True : Py_False);
}

static PyGetSetDef borrowed_attributes[] = {
    {"__array_interface__", borrowed_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot borrowed_slots[] = {
    {Py_tp_dealloc, (void *)borrowed_dealloc},
    {Py_tp_getset, borrowed_attributes},
    {0, NULL},
};

static PyType_Spec borrowed_spec = {
    .name = "tsvd._core.Borrowed",
    .basicsize = sizeof(borrowed),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = borrowed_slots,
};

PyObject *
tsvdi_borrowed_type(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &borrowed_spec, NULL);
}
