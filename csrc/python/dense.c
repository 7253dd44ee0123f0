/*
 * tsvd._core: dense_svd(), for dense matrices.
 */
#include "python/dense.h"

#include "python/shapes.h"

tsvd_status
tsvdi_dense_call_plan(struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    return tsvd_dense_plan(call->handle, &call->arrays.core_in[0], &call->options,
                           tsvdi_call_vectors(call), plan, error);
}

static tsvd_status
prepare(struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    return tsvd_dense_prepare(call->handle, &call->arrays.core_in[0], &call->options,
                              tsvdi_call_vectors(call), tsvdi_call_space(call), plan,
                              &call->prepared, error);
}

static tsvd_status
compute(struct call *call, tsvd_error *error)
{
    const tsvd_array *out = call->arrays.core_out;

    if (call->options.part != NULL) { /* its rows of U may be apart */
        return tsvd_dense_svd(call->handle, &call->arrays.core_in[0], &call->options,
                              tsvdi_call_vectors(call) ? &out[OUT_L] : NULL, &out[OUT_S],
                              tsvdi_call_vectors(call) ? &out[OUT_R] : NULL, &call->info, error);
    }
    return tsvd_dense_execute(call->prepared, call->arrays.core_in[0].data, out[OUT_L].data,
                              out[OUT_S].data, out[OUT_R].data, &call->info, error);
}

PyDoc_STRVAR(dense_svd_doc,
             "dense_svd((a,), options, device, /)\n--\n\n"
             "(U, S, Vh), or S without vectors; with full_output a pair of that and a dict.");

static PyObject *
dense_svd(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    static const struct call_kind kind = {"dense_svd", &tsvdi_dense_form, prepare, compute};
    struct call call;
    PyObject *result = NULL;

    if (tsvdi_call_begin(&call, module, &kind, args, nargs) == 0 && tsvdi_call_take(&call) == 0) {
        result = tsvdi_call_run(&call);
    }
    tsvdi_call_end(&call);
    return result;
}

PyDoc_STRVAR(dense_direct_doc, "dense_direct((a,), options, device, /)\n--\n\n"
                               "Whether dense_svd() decomposes a without reducing it.");

static PyObject *
dense_direct(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    static const struct call_kind kind = {"dense_direct", &tsvdi_dense_form, prepare, compute};
    struct call call;
    tsvd_plan plan = TSVD_PLAN_INIT;
    PyObject *result = NULL;

    if (tsvdi_call_begin(&call, module, &kind, args, nargs) == 0 && tsvdi_call_take(&call) == 0 &&
        tsvdi_call_plan(&call, &plan) == 0) {
        result = PyBool_FromLong(plan.direct);
    }
    tsvdi_call_end(&call);
    return result;
}

PyDoc_STRVAR(
    dense_offered_doc,
    "dense_offered(device, /)\n--\n\n"
    "Whether a device can decompose dense matrices; -1: the CPU. What a call needs of the\n"
    "device is kept for calls.");

static PyObject *
dense_offered(PyObject *module, PyObject *argument)
{
    const int64_t shape[] = {1, 1};
    const tsvd_array one = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 2, shape);
    const long device = PyLong_AsLong(argument);
    tsvd_handle *handle = PyErr_Occurred() ? NULL : tsvdi_handle_take(module, (int)device);
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;
    tsvd_status status;

    if (handle == NULL) {
        return NULL;
    }
    status = tsvd_dense_plan(handle, &one, NULL, 1, &plan, &error);
    tsvdi_handle_give(module, handle);
    if (status != TSVD_OK && status != TSVD_ERR_UNSUPPORTED && status != TSVD_ERR_LIBRARY) {
        return tsvdi_raise(module, status, &error);
    }
    return PyBool_FromLong(status != TSVD_ERR_UNSUPPORTED);
}

PyMethodDef tsvdi_dense_methods[] = {
    {"dense_svd", (PyCFunction)(void (*)(void))dense_svd, METH_FASTCALL, dense_svd_doc},
    {"dense_direct", (PyCFunction)(void (*)(void))dense_direct, METH_FASTCALL, dense_direct_doc},
    {"dense_offered", dense_offered, METH_O, dense_offered_doc},
    {NULL, NULL, 0, NULL},
};
