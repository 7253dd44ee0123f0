/*
 * tsvd._core: what calls that compute share (python_call.h).  Python has checked the options, but
 * for the bounds of the range; arrays.c checks the arrays, and exchange.c those of a device.
 */
#include "python/python_call.h"

#include <time.h>

#include "python/exchange.h"
#include "python/shapes.h"

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

int
tsvdi_report(PyObject *progress, double done)
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
    stop = PyErr_CheckSignals() < 0 || tsvdi_report(watching->progress, done) < 0;
    watching->thread = PyEval_SaveThread();
    watching->due = now + CHECK_INTERVAL_NS;
    return stop;
}

/* Whether other parts of a larger call wait for the numbers of this one: it cannot begin anew. */
static bool
has_sums(const tsvd_options *options)
{
    return options->part != NULL && options->part->sum != NULL;
}

tsvd_status
tsvdi_work(PyObject *module, tsvd_handle *handle, tsvd_options *options, PyObject *progress,
           bool wait, tsvd_status (*work)(void *subject, tsvd_error *error), void *subject,
           tsvd_error *error)
{
    watch watching = {NULL, progress, monotonic_ns() + CHECK_INTERVAL_NS};
    tsvd_status status;

    options->check = check;
    options->check_arg = &watching;
    watching.thread = PyEval_SaveThread();
    status = work(subject, error);
    /* other handles may hold memory of the device */
    if (status == TSVD_ERR_MEMORY && tsvd_handle_device(handle) != TSVD_DEVICE_CPU &&
        tsvdi_handles_drop(PyModule_GetState(module)) > 0 && !has_sums(options)) {
        status = work(subject, error);
    }
    if (status == TSVD_OK && wait) {
        status = tsvd_synchronize(handle, error);
    }
    PyEval_RestoreThread(watching.thread);
    return status;
}

/* ---- options ---- */

/* Nothing is taken yet. */
static void
init(struct call *call, PyObject *module, const struct call_kind *kind)
{
    call->kind = kind;
    call->module = module;
    call->handle = NULL;
    call->prepared = NULL;
    call->reduction = NULL;
    call->info.size = sizeof call->info;
    call->inverse.size = sizeof call->inverse;
    tsvdi_arrays_init(&call->arrays, module, kind->form);
}

static int
take_options(struct call *call, PyObject *options)
{
    call->asked = tsvdi_options_of(call->module, options);
    if (call->asked == NULL) {
        return -1;
    }
    call->options = tsvdi_options_core(call->asked, &call->part);
    call->arrays.lower = call->asked->lower;
    call->arrays.rows_apart = call->options.part != NULL;
    return 0;
}

int
tsvdi_call_input(const struct form *form, PyObject *arrays, PyObject **input)
{
    if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != form->inputs) {
        PyErr_Format(PyExc_TypeError, "%s must be given in a tuple", form->input);
        return -1;
    }
    for (int i = 0; i < form->inputs; i++) {
        input[i] = PyTuple_GetItem(arrays, i);
    }
    return 0;
}

int
tsvdi_call_begin(struct call *call, PyObject *module, const struct call_kind *kind,
                 PyObject *const *args, Py_ssize_t nargs)
{
    init(call, module, kind);
    if (nargs != 3) {
        PyErr_Format(PyExc_TypeError, "%s() takes 3 arguments (%zd given)", kind->name, nargs);
        return -1;
    }
    if (tsvdi_call_input(kind->form, args[0], call->input) < 0) {
        return -1;
    }
    call->device = (int)PyLong_AsLong(args[2]);
    return PyErr_Occurred() ? -1 : take_options(call, args[1]);
}

int
tsvdi_call_begin_reduced(struct call *call, PyObject *module, const struct call_kind *kind,
                         PyObject *options)
{
    init(call, module, kind);
    return take_options(call, options);
}

/* first .. first + count - 1; 0 and -1 mean all. */
int
tsvdi_call_range(struct call *call)
{
    const int64_t n = call->arrays.n;
    const long long first = call->asked->first;
    long long count = call->asked->count;

    if (count < 0) {
        count = n;
    }
    if (first < 0 || first > n || count > n - first) {
        PyErr_Format(PyExc_ValueError,
                     "select_range=(%lld, %lld) is out of range: max must be below %s, %lld", first,
                     first + count - 1, call->arrays.form->order, (long long)n);
        return -1;
    }
    call->options.first = first;
    call->options.count = call->arrays.count = count;
    call->arrays.full = call->asked->full && count == n;
    return 0;
}

/* ---- the plan ---- */

/* Makes the plan, in place of one that was made before. */
static tsvd_status
make_plan(struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    tsvd_prepared_destroy(call->prepared);
    call->prepared = NULL;
    return call->kind->plan(call, plan, error);
}

int
tsvdi_call_plan(struct call *call, tsvd_plan *plan)
{
    module_state *state = PyModule_GetState(call->module);
    const bool loaded = tsvdi_give_scipy_blas(state, call->handle);
    PyObject *type = NULL, *value = NULL, *trace = NULL; /* the exception of a failed import */
    tsvd_error error;
    tsvd_status status = make_plan(call, plan, &error);

    if (plan->needs_blas && !loaded) {
        if (tsvdi_load_scipy_blas(state, call->handle) < 0) {
            if (!PyErr_ExceptionMatches(PyExc_ImportError)) {
                return -1;
            }
            PyErr_Fetch(&type, &value, &trace);
        }
        status = make_plan(call, plan, &error);
    }
    if (status == TSVD_ERR_LIBRARY && type != NULL) {
        PyErr_Restore(type, value, trace);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (status != TSVD_OK) {
        tsvdi_raise(call->module, status, &error);
        return -1;
    }
    return 0;
}

/* ---- what a call takes ---- */

tsvd_handle *
tsvdi_call_handle(PyObject *module, int device, void *stream, int threads)
{
    tsvd_handle *handle = tsvdi_handle_take(module, device);

    if (handle != NULL && stream != NULL) {
        (void)tsvd_set_stream(handle, stream, NULL);
    }
    if (handle != NULL) {
        (void)tsvd_set_threads(handle, threads, NULL);
    }
    return handle;
}

int
tsvdi_call_take_on_device(struct arrays *arrays, PyObject *const *input, int device, void *stream,
                          int threads, tsvd_handle **handle)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    int ret;

    *handle = tsvdi_call_handle(arrays->module, device, stream, threads);
    if (*handle == NULL) {
        PyErr_Fetch(&type, &value, &trace);
    }
    ret = tsvdi_exchange_take(arrays, *handle, device, input);
    if (ret == 0 && *handle == NULL) {
        PyErr_Restore(type, value, trace);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return ret;
}

int
tsvdi_call_take(struct call *call)
{
    const struct options *asked = call->asked;

    if (asked->on_device) {
        return tsvdi_call_take_on_device(&call->arrays, call->input, call->device, asked->stream,
                                         asked->threads, &call->handle) < 0
                   ? -1
                   : tsvdi_call_range(call);
    }
    if (tsvdi_arrays_take(&call->arrays, call->input) < 0 || tsvdi_call_range(call) < 0) {
        return -1;
    }
    call->handle = tsvdi_call_handle(call->module, call->device, asked->stream, asked->threads);
    return call->handle == NULL ? -1 : 0;
}

/* Takes the arrays for the results, and for NumPy the data of the input.  A converted array has
   other strides than the plan was made for. */
static int
take_output(struct call *call, tsvd_plan *plan)
{
    const struct options *asked = call->asked;

    if (asked->on_device) {
        return tsvdi_exchange_output(&call->arrays, call->handle, asked->compute_uv, asked->out,
                                     asked->keep == Py_None ? NULL : asked->keep);
    }
    if (asked->out == Py_None &&
        tsvdi_arrays_check_memory(&call->arrays, plan, asked->compute_uv) < 0) {
        return -1;
    }
    if (tsvdi_arrays_input(&call->arrays) < 0) {
        return -1;
    }
    if (tsvdi_arrays_converts(&call->arrays) && tsvdi_call_plan(call, plan) < 0) {
        return -1;
    }
    return tsvdi_arrays_output(&call->arrays, asked->compute_uv, asked->out);
}

/* ---- the results ---- */

/* The fields of SVDInfo, without the device. */
static PyObject *
info_dict(const struct call *call)
{
    const tsvd_info *info = &call->info;
    const bool dense = call->arrays.form == &tsvdi_dense_form;
    PyObject *seconds;

    /* clang-format off */
    seconds = dense ? Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d}",
                                    "reduce", info->seconds_reduce,
                                    "band", info->seconds_band,
                                    "chase", info->seconds_chase,
                                    "iterate", info->seconds_iterate,
                                    "vectors", info->seconds_vectors,
                                    "values", info->seconds_values,
                                    "back", info->seconds_back,
                                    "device", info->seconds_device,
                                    "total", info->seconds_total)
                    : Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}",
                                    "iterate", info->seconds_iterate,
                                    "vectors", info->seconds_vectors,
                                    "values", info->seconds_values,
                                    "device", info->seconds_device,
                                    "total", info->seconds_total);
    return seconds == NULL ? NULL :
           Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:N}",
                         "method", tsvd_method_name(info->method),
                         "sweeps", (long long)info->sweeps,
                         "iterations", (long long)info->iterations,
                         "iterations_saved", (long long)info->iterations_saved,
                         "rotations", (long long)info->rotations,
                         "deflated", (long long)info->deflated,
                         "refused", (long long)info->refused,
                         "seconds", seconds);
    /* clang-format on */
}

/* (L, s, R), of the type that is asked for: Python would need longer to make it of a tuple. */
static PyObject *
vectors_of(const struct call *call)
{
    PyTypeObject *type = (PyTypeObject *)call->asked->result;
    PyObject *result;

    if (!PyType_Check((PyObject *)type) || !PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS)) {
        PyErr_SetString(PyExc_TypeError, "result must be a subclass of tuple");
        return NULL;
    }
    result = PyType_GenericAlloc(type, OUT_COUNT);
    for (int i = 0; i < OUT_COUNT && result != NULL; i++) {
        (void)PyTuple_SetItem(result, i, Py_NewRef(call->arrays.out[i]));
    }
    return result;
}

static PyObject *
result_of(const struct call *call)
{
    PyObject *result =
        call->asked->compute_uv ? vectors_of(call) : Py_NewRef(call->arrays.out[OUT_S]);

    return !call->asked->full_output || result == NULL
               ? result
               : Py_BuildValue("NN", result, info_dict(call));
}

static tsvd_status
compute(void *subject, tsvd_error *error)
{
    struct call *call = subject;

    if (call->prepared != NULL) {
        tsvd_prepared_set_check(call->prepared, call->options.check, call->options.check_arg);
    }
    return call->kind->compute(call, error);
}

PyObject *
tsvdi_call_run(struct call *call)
{
    PyObject *progress = call->asked->progress;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;
    tsvd_status status;

    if (tsvdi_call_plan(call, &plan) < 0 || take_output(call, &plan) < 0) {
        return NULL;
    }
    status = tsvdi_work(call->module, call->handle, &call->options, progress, call->asked->wait,
                        compute, call, &error);
    if (status != TSVD_OK) {
        /* of a batch that is shared out a share may hold one matrix */
        const int64_t all = call->asked->whole_matrices;

        return tsvdi_raise_of(call->module, status, &error,
                              plan.matrices > all ? plan.matrices : all);
    }
    return tsvdi_report(progress, 1.0) < 0 ? NULL : result_of(call);
}

void
tsvdi_call_end(struct call *call)
{
    tsvd_prepared_destroy(call->prepared);
    if (call->reduction == NULL) {
        tsvdi_handle_give(call->module, call->handle);
    }
    tsvdi_arrays_release(&call->arrays);
}
