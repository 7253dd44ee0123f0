/*
 * tsvd._core: svd() and select(), for bidiagonal matrices.
 */
#include "python/python_call.h"
#include "python/shapes.h"

/* ---- svd ---- */

PyDoc_STRVAR(svd_doc,
             "svd(d, e, compute_uv, out, full_output, progress, first, count, lower, method, eps,\n"
             "    max_sweeps, check_finite, threads, blocks, block_threads, split, fallback,\n"
             "    on_device, stream, keep, wait, device, /)\n"
             "--\n\n"
             "(L, s, R), or s without vectors; with full_output a pair of that and a dict.\n\n"
             "d, e and out may be anything; the options must be checked already:\n"
             "method a value of METHODS, eps < 0 and 0 elsewhere for the defaults; of the values\n"
             "those of index first to first + count - 1, all with first = 0 and count = -1.\n\n"
             "on_device: d, e and out are arrays of the device, and the results are given as\n"
             "DeviceArrays. stream: the cudaStream_t to work on; 0: the handle's own. keep: what\n"
             "the results keep alive, or None. wait: whether to wait until the results are there.");

static tsvd_status
plan(const struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    const struct arrays *arrays = &call->arrays;

    return tsvd_make_plan(call->handle, &arrays->core_in[0], &arrays->core_in[1], &call->options,
                          call->vectors, plan, error);
}

static tsvd_status
compute(struct call *call, tsvd_error *error)
{
    const struct arrays *arrays = &call->arrays;
    const tsvd_array *L = call->vectors ? &arrays->core_out[OUT_L] : NULL;
    const tsvd_array *R = call->vectors ? &arrays->core_out[OUT_R] : NULL;

    return tsvd_svd(call->handle, &arrays->core_in[0], &arrays->core_in[1], &call->options, L,
                    &arrays->core_out[OUT_S], R, &call->info, error);
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

PyDoc_STRVAR(select_doc,
             "select(d, e, check_finite, low, high, device, stream, /)\n--\n\n"
             "The values of one matrix in (low, high], low < high, as first and count of svd().\n\n"
             "device: the CUDA device where d and e lie, with stream as for svd(); -1: the host.");

static PyObject *
select_values(PyObject *module, PyObject *args)
{
    struct arrays arrays;
    tsvd_options options = tsvd_options_default();
    tsvd_handle *handle = NULL;
    PyObject *input[2], *stream, *result = NULL;
    tsvd_error error;
    tsvd_status status;
    int64_t first, count;
    double low, high;
    int device;

    if (!PyArg_ParseTuple(args, "OOpddiO:select", &input[0], &input[1], &options.check_finite, &low,
                          &high, &device, &stream)) {
        return NULL;
    }
    tsvdi_arrays_init(&arrays, module, &tsvdi_bidiagonal_form);
    if ((device == TSVD_DEVICE_CPU
             ? tsvdi_arrays_take(&arrays, input)
             : tsvdi_call_take_on_device(&arrays, input, device, stream, 0, &handle)) < 0) {
        goto out;
    }
    if (arrays.batch_ndim > 0) {
        PyErr_SetString(PyExc_ValueError,
                        "select=\"v\" takes one matrix, d (n,) and e (n-1,): of each matrix of a "
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
