/*
 * tsvd._core: CUDA devices, what is kept of them, the device library, and where cuBLAS is.
 */
#include "python/python_call.h"
#include "python/shapes.h"

#include <limits.h>

PyDoc_STRVAR(cuda_device_count_doc, "cuda_device_count()\n--\n\n"
                                    "The number of CUDA devices, and why there is none, or ''.");

/* The text of a status: "" for TSVD_OK, the reason for TSVD_ERR_NO_DEVICE; else NULL with an
   exception set. */
static const char *
why_not(PyObject *module, tsvd_status status, const tsvd_error *error)
{
    if (status != TSVD_OK && status != TSVD_ERR_NO_DEVICE) {
        tsvdi_raise(module, status, error);
        return NULL;
    }
    return status == TSVD_OK ? "" : error->text;
}

static PyObject *
cuda_device_count(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    tsvd_error error;
    tsvd_status status;
    const char *why;
    int count = 0;

    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_device_count(&count, &error);
    Py_END_ALLOW_THREADS
    why = why_not(module, status, &error);
    return why == NULL ? NULL : Py_BuildValue("is", count, why);
}

/* An argument of type int; -1 with an exception set. */
static int
get_int(PyObject *argument)
{
    const long number = PyLong_AsLong(argument);

    if (number > INT_MAX || number < INT_MIN) {
        PyErr_SetString(PyExc_OverflowError, "the number is too large");
        return -1;
    }
    return (int)number;
}

PyDoc_STRVAR(cuda_device_unusable_doc,
             "cuda_device_unusable(index, /)\n--\n\n"
             "Why this build cannot compute on the CUDA device 0 <= index < count; '' if it can.");

static PyObject *
cuda_device_unusable(PyObject *module, PyObject *argument)
{
    const int index = get_int(argument);
    tsvd_error error;
    tsvd_status status;
    const char *why;

    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_device_usable(index, &error);
    Py_END_ALLOW_THREADS
    why = why_not(module, status, &error);
    return why == NULL ? NULL : PyUnicode_FromString(why);
}

PyDoc_STRVAR(cuda_device_doc, "cuda_device(index, /)\n--\n\n"
                              "Facts about the CUDA device 0 <= index < count, as a dict.");

static PyObject *
cuda_device(PyObject *module, PyObject *argument)
{
    const int index = get_int(argument);
    tsvd_cuda_device device;
    tsvd_error error;
    tsvd_status status;

    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_device_facts(index, &device, &error);
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        return tsvdi_raise(module, status, &error);
    }
    /* clang-format off */
    return Py_BuildValue("{s:s,s:K,s:K,s:(ii),s:i,s:i,s:i}",
                         "name", device.name,
                         "memory_total", (unsigned long long)device.memory_total,
                         "memory_free", (unsigned long long)device.memory_free,
                         "compute_capability", device.major, device.minor,
                         "multiprocessors", device.multiprocessors,
                         "clock_khz", device.clock_khz,
                         "single_to_double", device.single_to_double);
    /* clang-format on */
}

PyDoc_STRVAR(cuda_device_of_doc,
             "cuda_device_of(address, /)\n--\n\n"
             "The CUDA device whose memory holds an address; -1 if CUDA cannot be asked.");

static PyObject *
cuda_device_of(PyObject *module, PyObject *argument)
{
    void *address = PyLong_AsVoidPtr(argument);
    tsvd_error error;
    tsvd_status status;
    int device = TSVD_DEVICE_CPU;

    if (PyErr_Occurred()) {
        return NULL;
    }
    status = tsvd_cuda_device_of(address, &device, &error);
    if (why_not(module, status, &error) == NULL) {
        return NULL;
    }
    return PyLong_FromLong(status == TSVD_OK ? device : TSVD_DEVICE_CPU);
}

/* The facts of a device that its speed depends on, from a tuple; *given is NULL for None. */
static int
get_rates(PyObject *rates, tsvd_cuda_device *device, const tsvd_cuda_device **given)
{
    *device = (tsvd_cuda_device){.major = 0};
    *given = rates == Py_None ? NULL : device;
    return rates == Py_None || PyArg_ParseTuple(rates, "iiiii", &device->major, &device->minor,
                                                &device->multiprocessors, &device->clock_khz,
                                                &device->single_to_double)
               ? 0
               : -1;
}

PyDoc_STRVAR(cuda_pays_doc,
             "cuda_pays(rates, single, method, n, matrices, vectors, /)\n--\n\n"
             "Whether a CUDA device is the faster place for arrays in host memory.\n\n"
             "rates: of cuda_device() the compute capability (two numbers), the multiprocessors,\n"
             "clock_khz and single_to_double; None: whether any device may be. method: a value of\n"
             "METHODS.");

static PyObject *
cuda_pays(PyObject *Py_UNUSED(module), PyObject *args)
{
    tsvd_cuda_device device;
    const tsvd_cuda_device *given;
    PyObject *rates;
    long long n, matrices;
    int single, method, vectors;

    if (!PyArg_ParseTuple(args, "OpiLLp:cuda_pays", &rates, &single, &method, &n, &matrices,
                          &vectors) ||
        get_rates(rates, &device, &given) < 0) {
        return NULL;
    }
    return PyBool_FromLong(tsvd_cuda_pays(given, single ? TSVD_FLOAT32 : TSVD_FLOAT64,
                                          (tsvd_method)method, n, matrices, vectors));
}

PyDoc_STRVAR(
    cuda_may_pay_doc,
    "cuda_may_pay((d, e), method, vectors, /)\n--\n\n"
    "False where d and e are NumPy's, of one matrix, and no device would be the faster place.");

/* A small call spends less time here than on the arguments of cuda_pays(). */
static PyObject *
cuda_may_pay(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *input[INPUTS_MOST];
    int64_t n;
    int vectors;
    tsvd_method method;

    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "cuda_may_pay() takes 3 arguments");
        return NULL;
    }
    if (tsvdi_call_input(&tsvdi_bidiagonal_form, args[0], input) < 0) {
        return NULL;
    }
    n = tsvdi_arrays_order(input[0], input[1]);
    method = (tsvd_method)PyLong_AsLong(args[1]);
    vectors = PyObject_IsTrue(args[2]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    return PyBool_FromLong(n < 0 || tsvd_cuda_pays(NULL, TSVD_FLOAT64, method, n, 1, vectors));
}

PyDoc_STRVAR(cuda_pays_dense_doc,
             "cuda_pays_dense(rates, single, method, rows, columns, matrices, vectors, /)\n--\n\n"
             "The same for dense matrices.");

static PyObject *
cuda_pays_dense(PyObject *Py_UNUSED(module), PyObject *args)
{
    tsvd_cuda_device device;
    const tsvd_cuda_device *given;
    PyObject *rates;
    long long rows, columns, matrices;
    int single, method, vectors;

    if (!PyArg_ParseTuple(args, "OpiLLLp:cuda_pays_dense", &rates, &single, &method, &rows,
                          &columns, &matrices, &vectors) ||
        get_rates(rates, &device, &given) < 0) {
        return NULL;
    }
    return PyBool_FromLong(tsvd_cuda_pays_dense(given, single ? TSVD_FLOAT32 : TSVD_FLOAT64,
                                                (tsvd_method)method, rows, columns, matrices,
                                                vectors));
}

PyDoc_STRVAR(cuda_load_doc, "cuda_load(file, /)\n--\n\n"
                            "Load a device library, if the module holds no CUDA code and has not "
                            "loaded one yet.");

static PyObject *
cuda_load(PyObject *module, PyObject *argument)
{
    PyObject *file;
    tsvd_error error;
    tsvd_status status;

    if (!PyUnicode_FSConverter(argument, &file)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_load(PyBytes_AsString(file), &error);
    Py_END_ALLOW_THREADS
    Py_DECREF(file);
    if (status != TSVD_OK) {
        return tsvdi_raise(module, status, &error);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(cuda_open_doc, "cuda_open(index, /)\n--\n\n"
                            "Make what a call needs of a CUDA device, and keep it for calls.");

static PyObject *
cuda_open(PyObject *module, PyObject *argument)
{
    const int index = get_int(argument);
    tsvd_handle *handle = PyErr_Occurred() ? NULL : tsvdi_handle_take(module, index);

    if (handle == NULL) {
        return NULL;
    }
    tsvdi_handle_give(module, handle);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(trim_doc, "trim()\n--\n\n"
                       "End the handles that are not in use; how many were of a CUDA device.");

static PyObject *
trim(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    int dropped;

    Py_BEGIN_ALLOW_THREADS
    dropped = tsvdi_handles_drop(PyModule_GetState(module));
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(dropped);
}

PyDoc_STRVAR(cuda_library_paths_doc,
             "cuda_library_paths(directories, /)\n--\n\n"
             "The list of directories where cuBLAS is looked for before the system's.");

static PyObject *
cuda_library_paths(PyObject *module, PyObject *argument)
{
    module_state *state = PyModule_GetState(module);
    PyObject *list = PySequence_List(argument), *result = NULL, *directories;

    if (list == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *encoded = NULL;

        if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &encoded)) {
            goto out;
        }
        (void)PyList_SetItem(list, i, encoded);
    }
    directories = PyList_AsTuple(list);
    if (directories == NULL) {
        goto out;
    }
    tsvdi_handle_directories(module, directories);
    (void)tsvdi_handles_drop(state); /* only new handles know the directories */
    result = Py_NewRef(Py_None);
out:
    Py_DECREF(list);
    return result;
}

PyDoc_STRVAR(cuda_blas_doc, "cuda_blas(major, /)\n--\n\n"
                            "Open cuBLAS of a major version of CUDA, 0: the one compiled with; "
                            "its file.");

static PyObject *
cuda_blas(PyObject *module, PyObject *argument)
{
    const int major = get_int(argument);
    char file[4096] = "";
    PyObject *keep;
    tsvd_config config;
    tsvd_error error;
    tsvd_status status;

    if (PyErr_Occurred() || tsvdi_handle_config(module, &config, &keep) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_blas(&config, major, file, sizeof(file), &error);
    Py_END_ALLOW_THREADS
    Py_DECREF(keep);
    if (status != TSVD_OK) {
        return tsvdi_raise(module, status, &error);
    }
    return PyUnicode_DecodeFSDefault(file);
}

PyMethodDef tsvdi_cuda_methods[] = {
    {"cuda_device_count", cuda_device_count, METH_NOARGS, cuda_device_count_doc},
    {"cuda_device_unusable", cuda_device_unusable, METH_O, cuda_device_unusable_doc},
    {"cuda_device", cuda_device, METH_O, cuda_device_doc},
    {"cuda_device_of", cuda_device_of, METH_O, cuda_device_of_doc},
    {"cuda_may_pay", (PyCFunction)(void (*)(void))cuda_may_pay, METH_FASTCALL, cuda_may_pay_doc},
    {"cuda_pays", cuda_pays, METH_VARARGS, cuda_pays_doc},
    {"cuda_pays_dense", cuda_pays_dense, METH_VARARGS, cuda_pays_dense_doc},
    {"cuda_load", cuda_load, METH_O, cuda_load_doc},
    {"cuda_open", cuda_open, METH_O, cuda_open_doc},
    {"trim", trim, METH_NOARGS, trim_doc},
    {"cuda_library_paths", cuda_library_paths, METH_O, cuda_library_paths_doc},
    {"cuda_blas", cuda_blas, METH_O, cuda_blas_doc},
    {NULL, NULL, 0, NULL},
};
