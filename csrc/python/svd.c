/*
 * tsvd._core: svd() and select(), which find their arrays and options checked or check them here.
 */
#include "python/module.h"

#include <time.h>

#include "python/arrays.h"
#include "python/scipy_blas.h"

/* Between two looks at signals and progress: 20 a second are enough for a
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

/* The arguments of svd(), in order; tsvd/_core.pyi has their Python types. */
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
    options->threads = (int)PyLong_AsLong(args[ARG_THREADS]);
    options->blocks = (int)PyLong_AsLong(args[ARG_BLOCKS]);
    options->block_threads = (int)PyLong_AsLong(args[ARG_BLOCK_THREADS]);
    options->device = (int)PyLong_AsLong(args[ARG_DEVICE]);
    options->split = (int)PyLong_AsLong(args[ARG_SPLIT]);
    return PyErr_Occurred() ? -1 : 0;
}

/* The values first .. first + count - 1; all: 0 and -1. */
static int
get_range(PyObject *first_argument, PyObject *count_argument, tsvd_problem *problem)
{
    const int64_t n = problem->n;
    long long first = PyLong_AsLongLong(first_argument), count = PyLong_AsLongLong(count_argument);

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
    problem->first = first;
    problem->k = count;
    return 0;
}

/* SciPy's BLAS for divide and conquer; "auto" does without it where it cannot be imported, but for
   the vectors of a part of the values. */
static int
load_blas(const tsvd_problem *problem, const tsvd_options *options)
{
    if (tsvdi_load_scipy_blas() == 0) {
        return 0;
    }
    if (options->method == TSVD_METHOD_DC || problem->k < problem->n ||
        !PyErr_ExceptionMatches(PyExc_ImportError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

/* As SVDInfo has them, without the device. */
static PyObject *
info_dict(const tsvd_info *info)
{
    /* clang-format off */
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:{s:d,s:d,s:d,s:d,s:d}}",
                         "method", tsvd_method_name(info->method),
                         "sweeps", (long long)info->sweeps,
                         "iterations", (long long)info->iterations,
                         "iterations_saved", (long long)info->iterations_saved,
                         "rotations", (long long)info->rotations,
                         "deflated", (long long)info->deflated,
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
             "    max_sweeps, check_finite, threads, blocks, block_threads, split, device, /)\n"
             "--\n\n"
             "(L, s, R), or s without vectors; with full_output a pair of that and a dict.\n\n"
             "d, e and out may be anything; the options must be checked already:\n"
             "method a value of METHODS, eps < 0 and 0 elsewhere for the defaults; of the values\n"
             "those of index first to first + count - 1, all with first = 0 and count = -1.");

static PyObject *
svd(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct arrays arrays = {NULL, NULL, {NULL, NULL, NULL}};
    tsvd_problem problem;
    tsvd_options options;
    tsvd_info info;
    tsvd_error error;
    tsvd_status status;
    watch watching;
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

    if (tsvdi_arrays_take(&arrays, args[ARG_D], args[ARG_E], &problem) < 0 ||
        get_range(args[ARG_FIRST], args[ARG_COUNT], &problem) < 0) {
        goto out;
    }
    if (args[ARG_OUT] == Py_None && tsvdi_arrays_check_memory(&problem, &options, vectors) < 0) {
        goto out;
    }
    if (tsvdi_arrays_input(&arrays, &problem) < 0 ||
        tsvdi_arrays_output(&arrays, &problem, vectors, args[ARG_OUT]) < 0) {
        goto out;
    }
    if (vectors && tsvd_uses_blas(&options, problem.n) && load_blas(&problem, &options) < 0) {
        goto out;
    }

    watching.progress = args[ARG_PROGRESS];
    watching.due = monotonic_ns() + CHECK_INTERVAL_NS;
    options.check = check;
    options.check_arg = &watching;
    watching.thread = PyEval_SaveThread();
    status = tsvd_svd(&problem, &options, &info, &error);
    PyEval_RestoreThread(watching.thread);
    if (status != TSVD_OK) {
        tsvdi_raise_status(module, status, error.matrix, error.text);
        goto out;
    }
    if (report(watching.progress, 1.0) < 0) {
        goto out;
    }

    result = vectors
                 ? PyTuple_Pack(OUT_COUNT, arrays.out[OUT_L], arrays.out[OUT_S], arrays.out[OUT_R])
                 : Py_NewRef(arrays.out[OUT_S]);
    if (full_output && result != NULL) {
        result = Py_BuildValue("NN", result, info_dict(&info));
    }
out:
    tsvdi_arrays_release(&arrays);
    return result;
}

/* ---- select ---- */

PyDoc_STRVAR(select_doc, "select(d, e, check_finite, low, high, /)\n--\n\n"
                         "The values of one matrix in (low, high], low < high, as first and count "
                         "of svd().");

static PyObject *
select_values(PyObject *module, PyObject *args)
{
    struct arrays arrays = {NULL, NULL, {NULL, NULL, NULL}};
    tsvd_options options = tsvd_options_default();
    PyObject *d, *e, *result = NULL;
    tsvd_problem problem;
    tsvd_error error;
    tsvd_status status;
    int64_t first, count;
    double low, high;

    if (!PyArg_ParseTuple(args, "OOpdd:select", &d, &e, &options.check_finite, &low, &high)) {
        return NULL;
    }
    if (tsvdi_arrays_take(&arrays, d, e, &problem) < 0) {
        goto out;
    }
    if (problem.batch_ndim > 0) {
        PyErr_SetString(PyExc_ValueError,
                        "select=\"v\" takes one matrix, d (n,) and e (n-1,): of each matrix of a "
                        "batch another number of values may lie in select_range; use select=\"i\"");
        goto out;
    }
    if (tsvdi_arrays_input(&arrays, &problem) < 0) {
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_select(&problem, &options, low, high, &first, &count, &error);
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        tsvdi_raise_status(module, status, error.matrix, error.text);
        goto out;
    }
    result = Py_BuildValue("LL", (long long)first, (long long)count);
out:
    tsvdi_arrays_release(&arrays);
    return result;
}

PyMethodDef tsvdi_svd_methods[] = {
    {"svd", (PyCFunction)(void (*)(void))svd, METH_FASTCALL, svd_doc},
    {"select", select_values, METH_VARARGS, select_doc},
    {NULL, NULL, 0, NULL},
};
