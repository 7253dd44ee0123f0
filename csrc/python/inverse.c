/*
 * tsvd._core: inv(), inverses of dense matrices.
 */
#include "python/python_call.h"
#include "python/shapes.h"

static tsvd_status
plan(struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    return tsvd_inverse_prepare(call->handle, &call->arrays.core_in[0], &call->options,
                                call->asked->refine, tsvdi_call_space(call), plan, &call->prepared,
                                error);
}

static tsvd_status
compute(struct call *call, tsvd_error *error)
{
    return tsvd_inverse_execute(call->prepared, call->arrays.core_in[0].data,
                                call->arrays.core_out[OUT_S].data, &call->inverse, error);
}

PyDoc_STRVAR(inv_doc,
             "inv((a,), options, device, /)\n--\n\n"
             "(X, the smallest reciprocal condition, the matrix that has it or -1).\n\n"
             "out: None or a tuple of one array. What is about values is of no meaning, and\n"
             "compute_uv and full_output must be False.");

static PyObject *
inv(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    static const struct call_kind kind = {"inv", &tsvdi_inverse_form, plan, compute};
    struct call call;
    PyObject *result = NULL;

    if (tsvdi_call_begin(&call, module, &kind, args, nargs) == 0 && tsvdi_call_take(&call) == 0) {
        result = tsvdi_call_run(&call);
    }
    tsvdi_call_end(&call);
    return result == NULL
               ? NULL
               : Py_BuildValue("NdL", result, call.inverse.rcond, (long long)call.inverse.matrix);
}

PyMethodDef tsvdi_inverse_methods[] = {
    {"inv", (PyCFunction)(void (*)(void))inv, METH_FASTCALL, inv_doc},
    {NULL, NULL, 0, NULL},
};
