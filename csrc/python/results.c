/*
 * tsvd._core: results in device memory (exchange.h).
 *
 * A DeviceArray and the capsules made of it share their memory.  The last owner gives it back: in
 * any thread, with the GIL or without it, also when Python has ended or in a child of the process.
 *
 * When most libraries drop an array, the call's stream is ordered after all their work on it.  JAX
 * drops an array while the work that reads it may be in flight in a stream of its own.  So memory
 * that JAX has had is put aside, until python/tsvd/_arrays.py has ordered that work before later
 * work in the call's stream.
 */
#include "python/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/shapes.h"

/* ---- shared memory ---- */

struct shared {
    atomic_long owners;  /* the DeviceArray, and the tensors that libraries hold */
    tsvd_memory *memory; /* the memory */
    PyObject *keep;      /* lives as long as the memory; NULL: nothing */
    pid_t process;       /* the process where it may be touched */
    int device;          /* the CUDA device where it lies */
    atomic_bool aside;   /* it is put aside when its last owner has gone */
    struct shared *next; /* the next in put_aside */
};

/* Memory that is put aside, a stack. */
static _Atomic(struct shared *) put_aside;

/* Set when Python begins to end.  From then on its objects are not given back: the thread that
   drops an array could not get the GIL. */
static atomic_bool python_ends;

/* Whether Python objects can be given back; in a child of a fork they may belong to libraries whose
   devices are the parent's. */
static bool
has_python(const struct shared *shared)
{
    return !atomic_load(&python_ends) && Py_IsInitialized() && shared->process == getpid();
}

static void
give_back(struct shared *shared)
{
    tsvd_memory_release(shared->memory);
    if (shared->keep != NULL && has_python(shared)) {
        const PyGILState_STATE state = PyGILState_Ensure();

        Py_DECREF(shared->keep); /* not before the memory, whose stream it may be */
        PyGILState_Release(state);
    }
    free(shared);
}

static void
put(struct shared *shared)
{
    shared->next = atomic_load(&put_aside);
    while (!atomic_compare_exchange_weak(&put_aside, &shared->next, shared)) {
    }
}

static void
leave(struct shared *shared)
{
    if (shared == NULL || atomic_fetch_sub(&shared->owners, 1) > 1) {
        return;
    }
    if (atomic_load(&shared->aside) && has_python(shared)) {
        put(shared);
    } else {
        give_back(shared);
    }
}

/* Takes memory; if the device has no more, it drops handles that are not in use and tries again. */
static struct shared *
take(PyObject *module, tsvd_handle *handle, size_t bytes, PyObject *keep)
{
    struct shared *shared = calloc(1, sizeof *shared);
    tsvd_error error;
    tsvd_status status;

    if (shared == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_memory_take(handle, bytes, &shared->memory, &error);
    if (status == TSVD_ERR_MEMORY && tsvdi_handles_drop(PyModule_GetState(module)) > 0) {
        status = tsvd_memory_take(handle, bytes, &shared->memory, &error);
    }
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        free(shared);
        tsvdi_raise(module, status, &error);
        return NULL;
    }
    atomic_init(&shared->owners, 1);
    atomic_init(&shared->aside, false);
    shared->device = tsvd_handle_device(handle);
    shared->keep = Py_XNewRef(keep);
    shared->process = getpid();
    return shared;
}

/* ---- the object ---- */

typedef struct device_array {
    PyObject_HEAD
    tsvd_array core;       /* the array */
    int device;            /* the CUDA device where it lies */
    struct shared *shared; /* its memory */
} device_array;

const tsvd_array *
tsvdi_device_array_core(PyObject *array)
{
    return &((device_array *)array)->core;
}

/* Bytes of a number. */
static int
size_of(const device_array *array)
{
    return (int)tsvd_dtype_size(array->core.dtype);
}

PyObject *
tsvdi_device_array_new(PyObject *module, tsvd_handle *handle, tsvd_dtype dtype, int ndim,
                       const int64_t *shape, PyObject *keep)
{
    module_state *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->DeviceArray;
    device_array *array = (device_array *)PyType_GenericAlloc(type, 0);
    size_t bytes;

    if (array == NULL) {
        return NULL;
    }
    array->core = tsvd_array_of(NULL, TSVD_CUDA, dtype, ndim, shape);
    array->device = tsvd_handle_device(handle);
    bytes = (size_t)size_of(array);
    for (int i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(bytes, (size_t)shape[i], &bytes)) {
            PyErr_SetString(PyExc_MemoryError, "the results have more bytes than can be addressed");
            Py_DECREF(array);
            return NULL;
        }
    }
    array->shared = take(module, handle, bytes, keep);
    if (array->shared == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    array->core.data = tsvd_memory_data(array->shared->memory);
    return (PyObject *)array;
}

static void
device_array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    leave(((device_array *)self)->shared);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- DLPack ---- */

/* What a capsule holds. */
struct exported {
    struct dlpack_managed plain;
    struct dlpack_managed_versioned versioned; /* of the two, the one that was asked for */
    struct shared *shared;
    int64_t shape[TSVD_MAX_DIMS], strides[TSVD_MAX_DIMS];
};

static void
delete_exported(struct exported *exported)
{
    leave(exported->shared);
    free(exported);
}

static void
delete_plain(struct dlpack_managed *managed)
{
    delete_exported(managed->context);
}

static void
delete_versioned(struct dlpack_managed_versioned *managed)
{
    delete_exported(managed->context);
}

/* A capsule that nobody has taken gives its array back. */
static void
drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DLPACK_NAME)) {
        delete_plain(PyCapsule_GetPointer(capsule, DLPACK_NAME));
    } else if (PyCapsule_IsValid(capsule, DLPACK_VERSIONED)) {
        delete_versioned(PyCapsule_GetPointer(capsule, DLPACK_VERSIONED));
    }
}

static PyObject *
new_capsule(device_array *array, bool versioned)
{
    struct exported *exported = calloc(1, sizeof *exported);
    struct dlpack_tensor tensor;
    PyObject *capsule;

    if (exported == NULL) {
        return PyErr_NoMemory();
    }
    exported->shared = array->shared;
    (void)atomic_fetch_add(&array->shared->owners, 1);
    for (int i = 0; i < array->core.ndim; i++) {
        exported->shape[i] = array->core.shape[i];
        exported->strides[i] = array->core.strides[i] / size_of(array);
    }
    memset(&tensor, 0, sizeof tensor);
    tensor.data = array->core.data;
    tensor.device = (struct dlpack_device){DLPACK_CUDA, array->device};
    tensor.ndim = array->core.ndim;
    tensor.dtype =
        (struct dlpack_dtype){tsvdi_is_complex(array->core.dtype) ? DLPACK_COMPLEX : DLPACK_FLOAT,
                              (uint8_t)(8 * size_of(array)), 1};
    tensor.shape = exported->shape;
    tensor.strides = exported->strides;
    exported->plain = (struct dlpack_managed){tensor, exported, delete_plain};
    exported->versioned = (struct dlpack_managed_versioned){
        {DLPACK_MAJOR, DLPACK_MINOR}, exported, delete_versioned, 0, tensor};
    capsule = versioned ? PyCapsule_New(&exported->versioned, DLPACK_VERSIONED, drop_capsule)
                        : PyCapsule_New(&exported->plain, DLPACK_NAME, drop_capsule);
    if (capsule == NULL) {
        delete_exported(exported);
    }
    return capsule;
}

/* Makes the reader's stream wait for the results.  stream: by the rules of DLPack. */
static int
order_before(PyObject *module, const device_array *array, PyObject *stream)
{
    long long number = 1; /* None: the legacy default stream */
    tsvd_error error;
    tsvd_status status;

    if (stream != Py_None) {
        number = PyLong_AsLongLong(stream);
        if (number == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    if (number == -1) {
        return 0; /* the reader sees to the order itself */
    }
    if (number < 1) {
        PyErr_Format(PyExc_ValueError,
                     "stream must be None, -1, or a stream of CUDA as DLPack has it, not %lld",
                     number);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_memory_wait(array->shared->memory, (void *)(intptr_t)number, &error);
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
        return -1;
    }
    return 0;
}

PyDoc_STRVAR(
    dlpack_doc,
    "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "A capsule of DLPack. The reader's stream waits for the results on the device.");

/* Two numbers from a tuple; None leaves them as they are. */
static int
read_pair(const char *name, PyObject *pair, int *first, int *second)
{
    if (pair == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(pair)) {
        return tsvdi_refuse_type(name, "a tuple of two integers", pair);
    }
    return PyArg_ParseTuple(pair, "ii", first, second) ? 0 : -1;
}

static PyObject *
device_array_dlpack(PyObject *self, PyObject *args, PyObject *options)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    device_array *array = (device_array *)self;
    PyObject *stream = Py_None, *version = Py_None, *wanted = Py_None, *copy = Py_None;
    int major = 0, minor = 0, type = DLPACK_CUDA, id = array->device;
    int copies;

    if (!PyArg_ParseTupleAndKeywords(args, options, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &wanted, &copy) ||
        read_pair("max_version", version, &major, &minor) < 0 ||
        read_pair("dl_device", wanted, &type, &id) < 0) {
        return NULL;
    }
    copies = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (copies < 0) {
        return NULL;
    }
    if (copies || type != DLPACK_CUDA || id != array->device) {
        PyErr_SetString(PyExc_BufferError, "tsvd makes no copy of an array for another library");
        return NULL;
    }
    if (order_before(PyType_GetModule(Py_TYPE(self)), array, stream) < 0) {
        return NULL;
    }
    return new_capsule(array, major >= DLPACK_MAJOR);
}

PyDoc_STRVAR(dlpack_device_doc,
             "__dlpack_device__($self, /)\n--\n\nWhere the array lies, for DLPack.");

static PyObject *
device_array_dlpack_device(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("ii", DLPACK_CUDA, ((device_array *)self)->device);
}

/* ---- the CUDA array interface, and attributes ---- */

static PyObject *
get_shape(PyObject *self, void *Py_UNUSED(closure))
{
    const device_array *array = (const device_array *)self;

    return tsvdi_shapes_tuple(array->core.ndim, array->core.shape);
}

static PyObject *
get_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(tsvdi_shapes_dtype_name(((device_array *)self)->core.dtype));
}

static PyObject *
get_interface(PyObject *self, void *Py_UNUSED(closure))
{
    const device_array *array = (const device_array *)self;
    const char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    bool empty = false;

    for (int i = 0; i < array->core.ndim; i++) {
        empty = empty || array->core.shape[i] == 0;
    }
    return Py_BuildValue("{s:i,s:N,s:O,s:N,s:(NO),s:N}", "version", 3, "shape",
                         get_shape(self, NULL), "strides", Py_None, "typestr",
                         PyUnicode_FromFormat("%c%c%d", order,
                                              tsvdi_is_complex(array->core.dtype) ? 'c' : 'f',
                                              size_of(array)),
                         "data", PyLong_FromVoidPtr(empty ? NULL : array->core.data), Py_False,
                         "stream", PyLong_FromVoidPtr(tsvd_memory_stream(array->shared->memory)));
}

static PyObject *
device_array_repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL);
    PyObject *text =
        shape == NULL
            ? NULL
            : PyUnicode_FromFormat("<tsvd array of shape %R and dtype %s on cuda:%d>", shape,
                                   tsvdi_shapes_dtype_name(((device_array *)self)->core.dtype),
                                   ((device_array *)self)->device);

    Py_XDECREF(shape);
    return text;
}

/* ---- what is put aside ---- */

PyDoc_STRVAR(for_jax_doc, "for_jax($self, /)\n--\n\n"
                          "Have the memory put aside, see aside(), when its last user drops it.");

static PyObject *
device_array_for_jax(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    atomic_store(&((device_array *)self)->shared->aside, true);
    Py_RETURN_NONE;
}

#define ASIDE "tsvd memory put aside"

/* The capsule was dropped without give_back(): its memory is put aside again. */
static void
drop_aside(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, ASIDE)) {
        put(PyCapsule_GetPointer(capsule, ASIDE));
    }
}

/* Adds memory to a list; what cannot be added is put aside again. */
static int
append_aside(PyObject *list, struct shared *shared)
{
    void *stream = tsvd_memory_stream(shared->memory);
    const int device = shared->device;
    PyObject *capsule = PyCapsule_New(shared, ASIDE, drop_aside), *item;
    int ret = -1;

    if (capsule == NULL) {
        put(shared);
        return -1;
    }
    item = Py_BuildValue("iNN", device, PyLong_FromVoidPtr(stream), capsule);
    if (item != NULL) {
        ret = PyList_Append(list, item);
        Py_DECREF(item);
    }
    return ret;
}

PyDoc_STRVAR(aside_doc,
             "aside()\n--\n\n"
             "The memory that is put aside, a list of (device, stream, memory). give_back() takes\n"
             "memory back when all work that uses it is ordered before later work in the stream.");

static PyObject *
aside(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    struct shared *shared = atomic_exchange(&put_aside, NULL);
    PyObject *list = PyList_New(0);

    while (shared != NULL) {
        struct shared *next = shared->next;

        if (shared->process != getpid()) {
            give_back(shared); /* from before a fork: frees only the child's copy */
        } else if (list == NULL) {
            put(shared);
        } else if (append_aside(list, shared) < 0) {
            Py_CLEAR(list);
        }
        shared = next;
    }
    return list;
}

PyDoc_STRVAR(give_back_doc, "give_back(memory, /)\n--\n\nGive back memory of aside(), once.");

static PyObject *
give_back_aside(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    struct shared *shared = PyCapsule_GetPointer(capsule, ASIDE);

    if (shared == NULL || PyCapsule_SetName(capsule, "used") < 0) {
        return NULL;
    }
    give_back(shared);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(python_ends_doc, "python_ends()\n--\n\n"
                              "Python begins to end: no Python object is given back from now on.");

static PyObject *
note_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    atomic_store(&python_ends, true);
    Py_RETURN_NONE;
}

PyMethodDef tsvdi_results_methods[] = {
    {"python_ends", note_end, METH_NOARGS, python_ends_doc},
    {"aside", aside, METH_NOARGS, aside_doc},
    {"give_back", give_back_aside, METH_O, give_back_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- the type ---- */

static PyMethodDef device_array_methods[] = {
    {"for_jax", device_array_for_jax, METH_NOARGS, for_jax_doc},
    {"__dlpack__", (PyCFunction)(void (*)(void))device_array_dlpack, METH_VARARGS | METH_KEYWORDS,
     dlpack_doc},
    {"__dlpack_device__", device_array_dlpack_device, METH_NOARGS, dlpack_device_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef device_array_attributes[] = {
    {"__cuda_array_interface__", get_interface, NULL, NULL, NULL},
    {"shape", get_shape, NULL, "Its dimensions.", NULL},
    {"dtype", get_dtype, NULL, "The name of its dtype.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(device_array_doc, "A result in the memory of a CUDA device, C-contiguous.\n\n"
                               "Libraries take it by DLPack or by the CUDA array interface.");

static PyType_Slot device_array_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)device_array_doc}, {Py_tp_dealloc, (void *)device_array_dealloc},
    {Py_tp_repr, (void *)device_array_repr},          {Py_tp_methods, device_array_methods},
    {Py_tp_getset, device_array_attributes},          {0, NULL},
};

static PyType_Spec device_array_spec = {
    .name = "tsvd._core.DeviceArray",
    .basicsize = sizeof(device_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = device_array_slots,
};

PyObject *
tsvdi_device_array_type(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &device_array_spec, NULL);
}
