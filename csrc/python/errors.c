/*
 * tsvd._core: failures of the core as exceptions.
 */
#include "python/module.h"

#include <string.h>

/* What helps, in the words of tsvd.svd(); NULL: the core's own advice stays as it is. */
static const char *
advice_for(tsvd_status status, const tsvd_error *error)
{
    if (status == TSVD_ERR_NO_CONVERGENCE) {
        if (strncmp(error->text, "givens", 6) == 0) {
            return "use method=\"auto\", a larger eps, or a larger max_sweeps";
        }
        if (strncmp(error->text, "twisted", 7) == 0) {
            return "leave tuning[\"fallback\"] at 1, or use method=\"dc\"";
        }
        if (strncmp(error->text, "jacobi", 6) == 0) {
            return "raise max_sweeps";
        }
        return strncmp(error->text, "dc", 2) == 0 ? "use method=\"qr\" with a larger max_sweeps"
                                                  : "raise max_sweeps or eps";
    }
    if (status == TSVD_ERR_ARGUMENT && strstr(error->advice, "TSVD_METHOD_DC") != NULL) {
        return "use \"dc\" or \"auto\" for those of a part";
    }
    if (status == TSVD_ERR_ARGUMENT && strstr(error->advice, "givens_blocks") != NULL) {
        return "ask for fewer with tuning={\"blocks\": ...}";
    }
    return NULL;
}

/* Raises an exception; its attribute `device` is the number of the CUDA device that failed, if one
   did: by that _api.py knows that the CPU may do what the device cannot. */
static void
raise_text(PyObject *type, PyObject *text, int device)
{
    PyObject *exception = PyObject_CallFunctionObjArgs(type, text, NULL);
    PyObject *number = exception == NULL ? NULL : PyLong_FromLong(device);

    if (number != NULL &&
        (device == TSVD_DEVICE_CPU || PyObject_SetAttrString(exception, "device", number) == 0)) {
        PyErr_SetObject(type, exception);
    }
    Py_XDECREF(number);
    Py_XDECREF(exception);
}

int
tsvdi_refuse_type(const char *name, const char *wanted, PyObject *argument)
{
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(argument), "__name__");

    if (type != NULL) {
        PyErr_Format(PyExc_TypeError, "%s must be %s, not %S", name, wanted, type);
        Py_DECREF(type);
    }
    return -1;
}

PyObject *
tsvdi_raise_of(PyObject *module, tsvd_status status, const tsvd_error *error, int64_t matrices)
{
    module_state *state = PyModule_GetState(module);
    const char *advice = advice_for(status, error);
    PyObject *type = PyExc_RuntimeError, *matrix = NULL, *text = NULL;

    switch (status) {
    case TSVD_ERR_INTERRUPTED:
        if (!PyErr_Occurred() && strstr(error->text, "another part of the call has") != NULL) {
            PyErr_SetString(state->Stopped, error->text);
        } else if (!PyErr_Occurred()) {
            PyErr_SetString(type, "progress has forked the process: the child cannot finish the "
                                  "call, only start another");
        }
        return NULL;
    case TSVD_ERR_ARGUMENT:
        /* a stream under capture is a wrong state, not a wrong argument */
        type = strstr(error->text, "captured into a graph") != NULL ? PyExc_RuntimeError
                                                                    : PyExc_ValueError;
        break;
    case TSVD_ERR_NONFINITE:
        type = PyExc_ValueError;
        break;
    case TSVD_ERR_MEMORY:
        type = PyExc_MemoryError;
        break;
    case TSVD_ERR_NO_CONVERGENCE:
    case TSVD_ERR_SINGULAR:
        type = state->LinAlgError;
        break;
    case TSVD_ERR_UNSUPPORTED:
        type = PyExc_NotImplementedError;
        break;
    default:
        break;
    }
    matrix = error->matrix < 0 || matrices == 1
                 ? PyUnicode_FromString("")
                 : PyUnicode_FromFormat("matrix %lld of the batch: ", (long long)error->matrix);
    if (matrix != NULL) {
        text = PyUnicode_FromFormat("%U%s%s%s", matrix, error->text, advice == NULL ? "" : "; ",
                                    advice == NULL ? "" : advice);
    }
    if (text != NULL) {
        raise_text(type, text, error->device);
    }
    Py_XDECREF(matrix);
    Py_XDECREF(text);
    return NULL;
}

PyObject *
tsvdi_raise(PyObject *module, tsvd_status status, const tsvd_error *error)
{
    return tsvdi_raise_of(module, status, error, 1);
}
