/*
 * tsvd._core: svd() and select().  Python has checked the options, but for the bounds of the
 * range; arrays.c checks the arrays, and exchange.c those of a device.
 */
#include "python/module.h"

#include <time.h>

#include "python/exchange.h"

/* Nanoseconds between two looks at signals and progress.  Twenty looks a second are enough for a
   person, and cost nothing beside the computation. */
#define CHECK_INTERVAL_NS 50000000

/* ---- signals and progress ---- */

typedef struct watch {
    PyThreadState *thread; /* saved while the GIL is released */
    PyObject *progress;    /* called with the share done, or None */
    int64_t due;           /* when to look next, monotonic ns */
} watch;

static int64_t
monotonic_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int
report(PyObject *progress, double done)
{
    PyObject *answer;

    if (progress == Py_None) {
        return 0;
    }
    answer = PyObject_CallFunction(progress, "d", done);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

/* tsvd_options.check: non-zero, with an exception set, once Ctrl-C was pressed
   or progress raised. */
static int
check(void *arg, double done)
{
    watch *watching = arg;
    int64_t now = monotonic_ns();
    bool stop;

    if (now < watching->due) {
        return 0;
    }
    PyEval_RestoreThread(watching->thread);
    stop = PyErr_CheckSignals() < 0 || report(watching->progress, done) < 0;
    watching->thread = PyEval_SaveThread();
    watching->due = now + CHECK_INTERVAL_NS;
    return stop;
}

/* ---- svd ---- */

/* The arguments of svd(), in the order of `arguments` in svd() of python/tsvd/_api.py; _core.pyi
   there has their types. */
enum {
    ARG_D,
    ARG_E,
    ARG_COMPUTE_UV,
    ARG_OUT,
    ARG_FULL_OUTPUT,
    ARG_PROGRESS,
    ARG_FIRST,
    ARG_COUNT,
    ARG_LOWER,
    ARG_METHOD,
    ARG_EPS,
    ARG_MAX_SWEEPS,
    ARG_CHECK_FINITE,
    ARG_THREADS,
    ARG_BLOCKS,
    ARG_BLOCK_THREADS,
    ARG_SPLIT,
    ARG_FALLBACK,
    ARG_ON_DEVICE,
    ARG_STREAM,
    ARG_KEEP,
    ARG_WAIT,
    ARG_DEVICE,
    ARGS
};

static int
get_options(PyObject *const *args, tsvd_options *options)
{
    *options = tsvd_options_default();
    options->lower = PyObject_IsTrue(args[ARG_LOWER]);
    options->check_finite = PyObject_IsTrue(args[ARG_CHECK_FINITE]);
    if (options->lower < 0 || options->check_finite < 0) {
        return -1;
    }
    options->method = (tsvd_method)PyLong_AsLong(args[ARG_METHOD]);
    options->eps = PyFloat_AsDouble(args[ARG_EPS]);
    options->max_sweeps = PyLong_AsLongLong(args[ARG_MAX_SWEEPS]);
    options->givens_blocks = PyLong_AsLongLong(args[ARG_BLOCKS]);
    options->givens_threads = PyLong_AsLongLong(args[ARG_BLOCK_THREADS]);
    options->givens_split = (int)PyLong_AsLong(args[ARG_SPLIT]);
    options->fallback = (int)PyLong_AsLong(args[ARG_FALLBACK]);
    return PyErr_Occurred() ? -1 : 0;
}

/* Sets the wanted values: first .. first + count - 1; 0 and -1 mean all. */
static int
get_range(PyObject *const *args, struct arrays *arrays, tsvd_options *options)
{
    const int64_t n = arrays->n;
    long long first = PyLong_AsLongLong(args[ARG_FIRST]);
    long long count = PyLong_AsLongLong(args[ARG_COUNT]);

    if (PyErr_Occurred()) {
        return -1;
    }
    if (count < 0) {
        count = n;
    }
    if (first < 0 || first > n || count > n - first) {
        PyErr_Format(
            PyExc_ValueError,
            "select_range=(%lld, %lld) is out of range: max must be below the order of the "
            "matrix, %lld",
            first, first + count - 1, (long long)n);
        return -1;
    }
    options->first = first;
    options->count = arrays->count = count;
    return 0;
}

/* Makes the plan of the call.  A handle gets SciPy's BLAS before the first call that uses one.
   If it cannot be imported, "auto" does without; but the vectors of a part of the values need
   it. */
static int
make_plan(PyObject *module, tsvd_handle *handle, const struct arrays *arrays,
          const tsvd_options *options, int vectors, tsvd_plan *plan)
{
    module_state *state = PyModule_GetState(module);
    const bool loaded = tsvdi_give_scipy_blas(state, handle);
    tsvd_error error;
    tsvd_status status =
        tsvd_make_plan(handle, &arrays->core_d, &arrays->core_e, options, vectors, plan, &error);

    if (plan->needs_blas && !loaded) {
        if (tsvdi_load_scipy_blas(state, handle) < 0) {
            if (options->method == TSVD_METHOD_DC || arrays->count < arrays->n ||
                !PyErr_ExceptionMatches(PyExc_ImportError)) {
                return -1;
            }
            PyErr_Clear();
        }
        status = tsvd_make_plan(handle, &arrays->core_d, &arrays->core_e, options, vectors, plan,
                                &error);
    }
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
        return -1;
    }
    return 0;
}

/* The fields of SVDInfo, without the device. */
static PyObject *
info_dict(const tsvd_info *info)
{
    /* clang-format off */
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:{s:d,s:d,s:d,s:d,s:d}}",
                         "method", tsvd_method_name(info->method),
                         "sweeps", (long long)info->sweeps,
                         "iterations", (long long)info->iterations,
                         "iterations_saved", (long long)info->iterations_saved,
                         "rotations", (long long)info->rotations,
                         "deflated", (long long)info->deflated,
                         "refused", (long long)info->refused,
                         "seconds",
                         "iterate", info->seconds_iterate,
                         "vectors", info->seconds_vectors,
                         "values", info->seconds_values,
                         "device", info->seconds_device,
                         "total", info->seconds_total);
    /* clang-format on */
}

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

/* The call itself, without the GIL. */
static tsvd_status
compute(PyObject *module, tsvd_handle *handle, const struct arrays *arrays, tsvd_options *options,
        int vectors, bool wait, PyObject *progress, tsvd_info *info, tsvd_error *error)
{
    const tsvd_array *L = vectors ? &arrays->core_out[OUT_L] : NULL;
    const tsvd_array *R = vectors ? &arrays->core_out[OUT_R] : NULL;
    watch watching = {NULL, progress, monotonic_ns() + CHECK_INTERVAL_NS};
    tsvd_status status;

    options->check = check;
    options->check_arg = &watching;
    watching.thread = PyEval_SaveThread();
    status = tsvd_svd(handle, &arrays->core_d, &arrays->core_e, options, L,
                      &arrays->core_out[OUT_S], R, info, error);
    /* other handles may hold memory of the device */
    if (status == TSVD_ERR_MEMORY && tsvd_handle_device(handle) != TSVD_DEVICE_CPU &&
        tsvdi_handles_drop(PyModule_GetState(module)) > 0) {
        status = tsvd_svd(handle, &arrays->core_d, &arrays->core_e, options, L,
                          &arrays->core_out[OUT_S], R, info, error);
    }
    if (status == TSVD_OK && wait) {
        status = tsvd_synchronize(handle, error);
    }
    PyEval_RestoreThread(watching.thread);
    return status;
}

/* (L, s, R) or s; with full_output a pair of that and a dict. */
static PyObject *
result_of(const struct arrays *arrays, int vectors, const tsvd_info *info)
{
    PyObject *result = vectors ? PyTuple_Pack(OUT_COUNT, arrays->out[OUT_L], arrays->out[OUT_S],
                                              arrays->out[OUT_R])
                               : Py_NewRef(arrays->out[OUT_S]);

    return info == NULL || result == NULL ? result : Py_BuildValue("NN", result, info_dict(info));
}

/* Takes a handle of a device and sets its stream; NULL with an exception set on failure. */
static tsvd_handle *
take_handle(PyObject *module, int device, PyObject *stream)
{
    void *address = PyLong_AsVoidPtr(stream);
    tsvd_handle *handle = PyErr_Occurred() ? NULL : tsvdi_handle_take(module, device);

    if (handle != NULL && address != NULL) {
        (void)tsvd_set_stream(handle, address, NULL);
    }
    return handle;
}

/* Takes a handle of a device, and arrays there.  The arrays come in the order of the handle's
   stream, so that it is taken first; but what is wrong with them is said first. */
static int
take_on_device(PyObject *module, int device, PyObject *stream, PyObject *d, PyObject *e,
               struct arrays *arrays, tsvd_handle **handle)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    int ret;

    *handle = take_handle(module, device, stream);
    if (*handle == NULL) {
        PyErr_Fetch(&type, &value, &trace);
    }
    ret = tsvdi_exchange_take(arrays, module, *handle, device, d, e);
    if (ret == 0 && *handle == NULL) {
        PyErr_Restore(type, value, trace);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return ret;
}

/* Takes what a call computes with, and checks it. */
static int
begin(PyObject *module, PyObject *const *args, struct arrays *arrays, tsvd_options *options,
      tsvd_handle **handle)
{
    const int device = (int)PyLong_AsLong(args[ARG_DEVICE]);
    const int threads = (int)PyLong_AsLong(args[ARG_THREADS]);

    if (PyErr_Occurred()) {
        return -1;
    }
    if (args[ARG_ON_DEVICE] == Py_True) {
        if (take_on_device(module, device, args[ARG_STREAM], args[ARG_D], args[ARG_E], arrays,
                           handle) < 0 ||
            get_range(args, arrays, options) < 0) {
            return -1;
        }
    } else {
        if (tsvdi_arrays_take(arrays, args[ARG_D], args[ARG_E]) < 0 ||
            get_range(args, arrays, options) < 0) {
            return -1;
        }
        *handle = take_handle(module, device, args[ARG_STREAM]);
        if (*handle == NULL) {
            return -1;
        }
    }
    (void)tsvd_set_threads(*handle, threads, NULL);
    return 0;
}

/* Takes the arrays for the results, and what is left of the input. */
static int
take_output(PyObject *module, PyObject *const *args, tsvd_handle *handle, const tsvd_plan *plan,
            int vectors, struct arrays *arrays)
{
    if (args[ARG_ON_DEVICE] == Py_True) {
        return tsvdi_exchange_output(arrays, module, handle, vectors, args[ARG_OUT],
                                     args[ARG_KEEP] == Py_None ? NULL : args[ARG_KEEP]);
    }
    if (args[ARG_OUT] == Py_None && tsvdi_arrays_check_memory(arrays, plan, vectors) < 0) {
        return -1;
    }
    return tsvdi_arrays_input(arrays) < 0 ? -1
                                          : tsvdi_arrays_output(arrays, vectors, args[ARG_OUT]);
}

static PyObject *
svd(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct arrays arrays;
    tsvd_handle *handle = NULL;
    tsvd_options options;
    tsvd_plan plan;
    tsvd_info info;
    tsvd_error error;
    tsvd_status status;
    PyObject *result = NULL;
    int vectors, full_output;

    if (nargs != ARGS) {
        PyErr_Format(PyExc_TypeError, "svd() takes %d arguments (%zd given)", ARGS, nargs);
        return NULL;
    }
    vectors = PyObject_IsTrue(args[ARG_COMPUTE_UV]);
    full_output = PyObject_IsTrue(args[ARG_FULL_OUTPUT]);
    if (vectors < 0 || full_output < 0 || get_options(args, &options) < 0) {
        return NULL;
    }

    tsvdi_arrays_init(&arrays);
    if (begin(module, args, &arrays, &options, &handle) < 0 ||
        make_plan(module, handle, &arrays, &options, vectors, &plan) < 0 ||
        take_output(module, args, handle, &plan, vectors, &arrays) < 0) {
        goto out;
    }
    status = compute(module, handle, &arrays, &options, vectors, args[ARG_WAIT] == Py_True,
                     args[ARG_PROGRESS], &info, &error);
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
        goto out;
    }
    if (report(args[ARG_PROGRESS], 1.0) < 0) {
        goto out;
    }
    result = result_of(&arrays, vectors, full_output ? &info : NULL);
out:
    tsvdi_handle_give(module, handle);
    tsvdi_arrays_release(&arrays);
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
    PyObject *d, *e, *stream, *result = NULL;
    tsvd_error error;
    tsvd_status status;
    int64_t first, count;
    double low, high;
    int device;

    if (!PyArg_ParseTuple(args, "OOpddiO:select", &d, &e, &options.check_finite, &low, &high,
                          &device, &stream)) {
        return NULL;
    }
    tsvdi_arrays_init(&arrays);
    if ((device == TSVD_DEVICE_CPU
             ? tsvdi_arrays_take(&arrays, d, e)
             : take_on_device(module, device, stream, d, e, &arrays, &handle)) < 0) {
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
    status = tsvd_select(handle, &arrays.core_d, &arrays.core_e, &options, low, high, &first,
                         &count, &error);
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
