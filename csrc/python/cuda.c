/*
 * tsvd._core: CUDA devices, and where cuBLAS is.
 */
#include "python/module.h"

PyDoc_STRVAR(cuda_device_count_doc, "cuda_device_count()\n--\n\n"
                                    "The number of CUDA devices, and why there is none, or ''.");

static PyObject *
cuda_device_count(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    char why[sizeof((tsvd_error *)0)->text] = "";
    tsvd_status status;
    int count = 0;

    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_device_count(&count, why, sizeof(why));
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK && status != TSVD_ERR_NO_DEVICE) {
        return tsvdi_raise_status(module, status, -1, why);
    }
    return Py_BuildValue("is", count, why);
}

PyDoc_STRVAR(cuda_device_unusable_doc,
             "cuda_device_unusable(index, /)\n--\n\n"
             "Why this build cannot compute on the CUDA device 0 <= index < count; '' if it can.");

static PyObject *
cuda_device_unusable(PyObject *module, PyObject *argument)
{
    char why[sizeof((tsvd_error *)0)->text] = "";
    tsvd_status status;
    int index = (int)PyLong_AsLong(argument);

    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_device_usable(index, why, sizeof(why));
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK && status != TSVD_ERR_NO_DEVICE) {
        return tsvdi_raise_status(module, status, -1, why);
    }
    return PyUnicode_FromString(why);
}

PyDoc_STRVAR(cuda_device_doc, "cuda_device(index, /)\n--\n\n"
                              "Facts about the CUDA device 0 <= index < count, as a dict.");

static PyObject *
cuda_device(PyObject *module, PyObject *argument)
{
    char why[sizeof((tsvd_error *)0)->text] = "";
    tsvd_device device;
    tsvd_status status;
    int index = (int)PyLong_AsLong(argument);

    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_device(index, &device, why, sizeof(why));
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        return tsvdi_raise_status(module, status, -1, why);
    }
    /* clang-format off */
    return Py_BuildValue("{s:s,s:K,s:K,s:(ii),s:i}",
                         "name", device.name,
                         "memory_total", (unsigned long long)device.memory_total,
                         "memory_free", (unsigned long long)device.memory_free,
                         "compute_capability", device.major, device.minor,
                         "multiprocessors", device.multiprocessors);
    /* clang-format on */
}

PyDoc_STRVAR(cuda_library_paths_doc,
             "cuda_library_paths(directories, /)\n--\n\n"
             "The list of directories where cuBLAS is looked for before the system's.");

static PyObject *
cuda_library_paths(PyObject *module, PyObject *argument)
{
    PyObject *list = PySequence_List(argument), *result = NULL;
    Py_ssize_t count = list == NULL ? 0 : PyList_GET_SIZE(list);
    const char **directory = NULL;
    tsvd_status status;

    if (list == NULL) {
        goto out;
    }
    directory = PyMem_Calloc((size_t)count + 1, sizeof *directory);
    if (directory == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *encoded = NULL;

        if (!PyUnicode_FSConverter(PyList_GET_ITEM(list, i), &encoded)) {
            goto out;
        }
        (void)PyList_SetItem(list, i, encoded); /* the list holds it while it is read */
        directory[i] = PyBytes_AS_STRING(encoded);
    }
    status = tsvd_cuda_library_paths(directory, count);
    if (status != TSVD_OK) {
        tsvdi_raise_status(module, status, -1, tsvd_strstatus(status));
        goto out;
    }
    result = Py_NewRef(Py_None);
out:
    PyMem_Free(directory);
    Py_XDECREF(list);
    return result;
}

PyDoc_STRVAR(cuda_blas_doc, "cuda_blas(major, /)\n--\n\n"
                            "Open cuBLAS of a major version of CUDA, 0: the one compiled with; "
                            "its file.");

static PyObject *
cuda_blas(PyObject *module, PyObject *argument)
{
    char text[sizeof((tsvd_error *)0)->text] = "";
    tsvd_status status;
    int major = (int)PyLong_AsLong(argument);

    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_cuda_blas(major, text, sizeof(text));
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        return tsvdi_raise_status(module, status, -1, text);
    }
    return PyUnicode_DecodeFSDefault(text);
}

PyMethodDef tsvdi_cuda_methods[] = {
    {"cuda_device_count", cuda_device_count, METH_NOARGS, cuda_device_count_doc},
    {"cuda_device_unusable", cuda_device_unusable, METH_O, cuda_device_unusable_doc},
    {"cuda_device", cuda_device, METH_O, cuda_device_doc},
    {"cuda_library_paths", cuda_library_paths, METH_O, cuda_library_paths_doc},
    {"cuda_blas", cuda_blas, METH_O, cuda_blas_doc},
    {NULL, NULL, 0, NULL},
};
