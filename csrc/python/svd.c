/*
 * tsvd._core: svd() and select(), for bidiagonal matrices.
 */
#include "python/python_call.h"
#include "python/shapes.h"

/* ---- svd ---- */

PyDoc_STRVAR(svd_doc,
             "svd((d, e), options, device, /)\n--\n\n"
             "(L, s, R), or s without vectors; with full_output a pair of that and a dict.\n\n"
             "d and e may be anything; the options must be checked already.  device: the CUDA\n"
             "device that computes; -1: the CPU.");

static tsvd_status
plan(struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    const struct arrays *arrays = &call->arrays;

    return tsvd_prepare(call->handle, &arrays->core_in[0], &arrays->core_in[1], &call->options,
                        tsvdi_call_vectors(call), tsvdi_call_space(call), plan, &call->prepared,
                        error);
}

static tsvd_status
compute(struct call *call, tsvd_error *error)
{
    const tsvd_array *in = call->arrays.core_in, *out = call->arrays.core_out;

    if (call->options.part != NULL) { /* its rows of L may be apart */
        return tsvd_svd(call->handle, &in[0], &in[1], &call->options,
                        tsvdi_call_vectors(call) ? &out[OUT_L] : NULL, &out[OUT_S],
                        tsvdi_call_vectors(call) ? &out[OUT_R] : NULL, &call->info, error);
    }
    return tsvd_execute(call->prepared, in[0].data, in[1].data, out[OUT_L].data, out[OUT_S].data,
                        out[OUT_R].data, &call->info, error);
}

static PyObject *
svd(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    static const struct call_kind kind = {"svd", &tsvdi_bidiagonal_form, plan, compute};
    struct call call;
    PyObject *result = NULL;

    if (tsvdi_call_begin(&call, module, &kind, args, nargs) == 0 && tsvdi_call_take(&call) == 0) {
        result = tsvdi_call_run(&call);
    }
    tsvdi_call_end(&call);
    return result;
}

/* ---- select ---- */

PyDoc_STRVAR(
    select_doc,
    "select((d, e), options, low, high, device, /)\n--\n\n"
    "The values of one matrix in (low, high], low < high, as first and count of Options.\n\n"
    "Of the options check_finite and stream are read.  device: the CUDA device where d\n"
    "and e lie; -1: the host.");

static PyObject *
select_values(PyObject *module, PyObject *args)
{
    struct arrays arrays;
    const struct options *asked;
    tsvd_options options = tsvdi_default_options();
    tsvd_handle *handle = NULL;
    PyObject *in, *given, *result = NULL;
    PyObject *input[INPUTS_MOST];
    tsvd_error error;
    tsvd_status status;
    int64_t first, count;
    double low, high;
    int device;

    if (!PyArg_ParseTuple(args, "OOddi:select", &in, &given, &low, &high, &device)) {
        return NULL;
    }
    if (tsvdi_call_input(&tsvdi_bidiagonal_form, in, input) < 0) {
        return NULL;
    }
    asked = tsvdi_options_of(module, given);
    if (asked == NULL) {
        return NULL;
    }
    options.check_finite = asked->check_finite;
    tsvdi_arrays_init(&arrays, module, &tsvdi_bidiagonal_form);
    if ((device == TSVD_DEVICE_CPU
             ? tsvdi_arrays_take(&arrays, input)
             : tsvdi_call_take_on_device(&arrays, input, device, asked->stream, 0, &handle)) < 0) {
        goto out;
    }
    if (arrays.batch_ndim > 0) {
        PyErr_SetString(
            PyExc_ValueError,
            "select=\"v\" takes one matrix, d (n,) and e (n-1,) or (n,): of each matrix of a "
            "batch another number of values may lie in select_range; use select=\"i\"");
        goto out;
    }
    if (tsvdi_arrays_input(&arrays) < 0) {
        goto out;
    }
    if (handle == NULL) {
        handle = tsvdi_handle_take(module, TSVD_DEVICE_CPU);
    }
    if (handle == NULL) {
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_select(handle, &arrays.core_in[0], &arrays.core_in[1], &options, low, high,
                         &first, &count, &error);
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
        goto out;
    }
    result = Py_BuildValue("LL", (long long)first, (long long)count);
out:
    tsvdi_handle_give(module, handle);
    tsvdi_arrays_release(&arrays);
    return result;
}

PyMethodDef tsvdi_svd_methods[] = {
    {"svd", (PyCFunction)(void (*)(void))svd, METH_FASTCALL, svd_doc},
    {"select", select_values, METH_VARARGS, select_doc},
    {NULL, NULL, 0, NULL},
};
