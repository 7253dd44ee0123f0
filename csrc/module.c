/*
 * tsvd._core: the Python extension module.  NumPy arrays in, NumPy arrays out,
 * one call of the C core in between, no arithmetic.
 *
 * Here d, e and out are checked (dtype, shape, memory) and errors of the core
 * become Python exceptions.  Options arrive checked from python/tsvd/_api.py.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <stdbool.h>
#include <time.h>

#include "crossover.h"
#include "scipy_blas.h"
#include "tsvd.h"

/* Between two looks at signals and progress: 20 a second are enough for a
   person, and cost nothing beside the computation. */
#define CHECK_INTERVAL_NS 50000000

/* Smaller results are allocated without asking the system what is free. */
#define MEMORY_CHECK_BYTES ((uint64_t)64 << 20)

typedef struct module_state {
    PyObject *LinAlgError; /* numpy.linalg.LinAlgError */
} module_state;

/* ---- errors ---- */

/* The one place that turns a status of the core into an exception; always NULL.
   Of INTERRUPTED the exception is set already, by check().  matrix: its index in
   the batch, C order, or -1. */
static PyObject *
raise_status(PyObject *module, tsvd_status status, int64_t matrix, const char *text)
{
    module_state *state = PyModule_GetState(module);
    PyObject *type = PyExc_RuntimeError;

    switch (status) {
    case TSVD_ERR_INTERRUPTED:
        return NULL;
    case TSVD_ERR_ARGUMENT:
    case TSVD_ERR_NONFINITE:
        type = PyExc_ValueError;
        break;
    case TSVD_ERR_MEMORY:
        type = PyExc_MemoryError;
        break;
    case TSVD_ERR_NO_CONVERGENCE:
        type = state->LinAlgError;
        break;
    case TSVD_ERR_UNSUPPORTED:
        type = PyExc_NotImplementedError;
        break;
    default:
        break;
    }
    if (matrix < 0) {
        PyErr_SetString(type, text);
    } else {
        PyErr_Format(type, "matrix %lld of the batch: %s", (long long)matrix, text);
    }
    return NULL;
}

/* A ValueError that ends with both shapes; always -1. */
static int
raise_shapes(const char *rule, PyArrayObject *d, PyArrayObject *e)
{
    PyObject *d_shape = PyArray_IntTupleFromIntp(PyArray_NDIM(d), PyArray_DIMS(d));
    PyObject *e_shape = PyArray_IntTupleFromIntp(PyArray_NDIM(e), PyArray_DIMS(e));

    if (d_shape != NULL && e_shape != NULL) {
        PyErr_Format(PyExc_ValueError, "%s; got d of shape %R and e of shape %R", rule, d_shape,
                     e_shape);
    }
    Py_XDECREF(d_shape);
    Py_XDECREF(e_shape);
    return -1;
}

/* ---- input ---- */

/* The argument as an array of a dtype that tsvd takes, as yet not converted. */
static PyArrayObject *
input_array(PyObject *argument, const char *name)
{
    PyArrayObject *array = (PyArrayObject *)PyArray_FROM_O(argument);
    int type;

    if (array == NULL) {
        return NULL;
    }
    type = PyArray_TYPE(array);
    if (type != NPY_DOUBLE && type != NPY_FLOAT && !PyTypeNum_ISINTEGER(type) &&
        !PyTypeNum_ISBOOL(type)) {
        PyErr_Format(PyExc_TypeError,
                     "%s has dtype %S; tsvd takes float64 and float32, and integers and bool, "
                     "which become float64",
                     name, PyArray_DESCR(array));
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

/* Replace *array by an aligned array of the type in native byte order.  It is
   the same array, whatever its strides, wherever that is possible. */
static int
convert(PyArrayObject **array, int type)
{
    PyArrayObject *converted;

    if (PyArray_TYPE(*array) == type && PyArray_ISBEHAVED_RO(*array)) {
        return 0;
    }
    converted = (PyArrayObject *)PyArray_FromArray(*array, PyArray_DescrFromType(type),
                                                   NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED |
                                                       NPY_ARRAY_ENSUREARRAY);
    if (converted == NULL) {
        return -1;
    }
    Py_SETREF(*array, converted);
    return 0;
}

/* Merge the leading dimensions of an array into the batch shape of a problem. */
static int
broadcast(tsvd_problem *problem, PyArrayObject *array)
{
    int ndim = PyArray_NDIM(array) - 1;
    int64_t *shape = problem->batch_shape + (problem->batch_ndim - ndim);

    for (int i = 0; i < ndim; i++) {
        npy_intp size = PyArray_DIM(array, i);

        if (shape[i] == 1) {
            shape[i] = size;
        } else if (size != 1 && size != shape[i]) {
            return -1;
        }
    }
    return 0;
}

/* n and the batch shape, from d (..., n) and e (..., n-1). */
static int
set_shape(tsvd_problem *problem, PyArrayObject *d, PyArrayObject *e)
{
    int d_ndim = PyArray_NDIM(d), e_ndim = PyArray_NDIM(e);
    npy_intp n;

    if (d_ndim == 0 || e_ndim == 0) {
        return raise_shapes("d (..., n) and e (..., n-1) need at least one dimension", d, e);
    }
    n = PyArray_DIM(d, d_ndim - 1);
    if (PyArray_DIM(e, e_ndim - 1) != (n > 0 ? n - 1 : 0)) {
        return raise_shapes("d (..., n) needs e (..., n-1)", d, e);
    }
    problem->n = problem->k = n;
    problem->first = 0;
    problem->batch_ndim = (d_ndim > e_ndim ? d_ndim : e_ndim) - 1;
    if (problem->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        PyErr_Format(PyExc_ValueError, "d and e may have at most %d leading dimensions, got %d",
                     TSVD_MAX_BATCH_DIMS, problem->batch_ndim);
        return -1;
    }
    for (int i = 0; i < problem->batch_ndim; i++) {
        problem->batch_shape[i] = 1;
    }
    if (broadcast(problem, d) < 0 || broadcast(problem, e) < 0) {
        return raise_shapes("the leading dimensions of d and e do not broadcast", d, e);
    }
    return 0;
}

static void
set_batch_strides(const tsvd_problem *problem, PyArrayObject *array, ptrdiff_t *strides)
{
    int absent = problem->batch_ndim - (PyArray_NDIM(array) - 1);

    for (int i = 0; i < problem->batch_ndim; i++) {
        int axis = i - absent;

        strides[i] = axis < 0 || PyArray_DIM(array, axis) == 1 ? 0 : PyArray_STRIDE(array, axis);
    }
}

/* Where the core reads d and e: in place, by their strides. */
static void
set_input(tsvd_problem *problem, PyArrayObject *d, PyArrayObject *e)
{
    problem->d = PyArray_DATA(d);
    problem->e = PyArray_DATA(e);
    problem->d_stride = PyArray_STRIDE(d, PyArray_NDIM(d) - 1);
    problem->e_stride = PyArray_STRIDE(e, PyArray_NDIM(e) - 1);
    set_batch_strides(problem, d, problem->d_batch_strides);
    set_batch_strides(problem, e, problem->e_batch_strides);
}

/* ---- output ---- */

enum { OUT_L, OUT_S, OUT_R, OUT_COUNT };

static const char *const out_names[OUT_COUNT] = {"L", "s", "R"};

/* The shape of L, s or R; returns the number of dimensions. */
static int
out_shape(const tsvd_problem *problem, int which, npy_intp *shape)
{
    int ndim = problem->batch_ndim;

    for (int i = 0; i < ndim; i++) {
        shape[i] = (npy_intp)problem->batch_shape[i];
    }
    shape[ndim++] = (npy_intp)problem->n;
    if (which != OUT_S) {
        shape[ndim++] = (npy_intp)problem->n;
    }
    return ndim;
}

/* a b, or UINT64_MAX where that is too large. */
static uint64_t
multiply(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Refuse at once what cannot fit: the system would grant the memory and end
   the process when it is touched. */
static int
check_memory(const tsvd_problem *problem, const tsvd_options *options, bool vectors)
{
    uint64_t n = (uint64_t)problem->n, size, wanted, work = 0, available;
    npy_intp shape[TSVD_MAX_BATCH_DIMS + 2];
    PyObject *shown;
    int ndim;

    size = problem->dtype == TSVD_FLOAT64 ? sizeof(double) : sizeof(float);
    wanted = multiply(size, n);
    if (vectors) {
        wanted = multiply(wanted, 2 * n + 1);
    }
    for (int i = 0; i < problem->batch_ndim; i++) {
        wanted = multiply(wanted, (uint64_t)problem->batch_shape[i]);
    }
    if (wanted > 0 && vectors && tsvd_uses_blas(options, problem->n)) { /* four n x n arrays */
        work = multiply(multiply(size, n), 4 * n);
        wanted = wanted > UINT64_MAX - work ? UINT64_MAX : wanted + work;
    }
    if (wanted < MEMORY_CHECK_BYTES) {
        return 0;
    }
    available = tsvd_host_memory_available();
    if (available == 0) {
        available = PY_SSIZE_T_MAX; /* unknown: then only the address space is a bound */
    }
    if (wanted <= available) {
        return 0;
    }
    ndim = out_shape(problem, vectors ? OUT_L : OUT_S, shape);
    shown = PyArray_IntTupleFromIntp(ndim, shape);
    if (shown != NULL) {
        PyErr_Format(PyExc_MemoryError,
                     "the results, %s of shape %R, %swant %s%llu bytes; %llu bytes are free",
                     vectors ? "L and R" : "s", shown, work > 0 ? "and the workspace " : "",
                     wanted == UINT64_MAX ? "more than " : "", (unsigned long long)wanted,
                     (unsigned long long)available);
        Py_DECREF(shown);
    }
    return -1;
}

/* Where the core writes the result `which`. */
static void
set_output(tsvd_problem *problem, int which, PyArrayObject *array)
{
    void *data = PyArray_DATA(array);

    if (which == OUT_L) {
        problem->L = data;
    } else if (which == OUT_S) {
        problem->s = data;
    } else {
        problem->R = data;
    }
}

static PyArrayObject *
new_output(const tsvd_problem *problem, int which, int type)
{
    npy_intp shape[TSVD_MAX_BATCH_DIMS + 2];
    int ndim = out_shape(problem, which, shape);

    return (PyArrayObject *)PyArray_SimpleNew(ndim, shape, type);
}

/* The caller's array for a result, a new reference, if the core may write to it. */
static PyArrayObject *
given_output(const tsvd_problem *problem, int which, int type, PyObject *argument)
{
    npy_intp shape[TSVD_MAX_BATCH_DIMS + 2];
    int ndim = out_shape(problem, which, shape);
    const char *name = out_names[which];
    PyArrayObject *array;

    if (!PyArray_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "out: %s must be a NumPy array, not %.200s", name,
                     Py_TYPE(argument)->tp_name);
        return NULL;
    }
    array = (PyArrayObject *)argument;
    if (PyArray_TYPE(array) != type) {
        PyErr_Format(PyExc_TypeError, "out: %s has dtype %S, the result has dtype %s", name,
                     PyArray_DESCR(array), type == NPY_DOUBLE ? "float64" : "float32");
        return NULL;
    }
    if (PyArray_NDIM(array) != ndim || !PyArray_CompareLists(PyArray_DIMS(array), shape, ndim)) {
        PyObject *got = PyArray_IntTupleFromIntp(PyArray_NDIM(array), PyArray_DIMS(array));
        PyObject *wanted = PyArray_IntTupleFromIntp(ndim, shape);

        if (got != NULL && wanted != NULL) {
            PyErr_Format(PyExc_ValueError, "out: %s has shape %R, the result has shape %R", name,
                         got, wanted);
        }
        Py_XDECREF(got);
        Py_XDECREF(wanted);
        return NULL;
    }
    if (!PyArray_ISCARRAY(array)) {
        PyErr_Format(PyExc_ValueError,
                     "out: %s must be C-contiguous, aligned, writeable and in native byte order",
                     name);
        return NULL;
    }
    Py_INCREF(array);
    return array;
}

/* The addresses [*low, *high) between which all entries of an array lie. */
static void
extent(PyArrayObject *array, uintptr_t *low, uintptr_t *high)
{
    *low = *high = (uintptr_t)PyArray_DATA(array);
    if (PyArray_SIZE(array) == 0) {
        return;
    }
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp reach = PyArray_STRIDE(array, i) * (PyArray_DIM(array, i) - 1);

        if (reach < 0) {
            *low -= (uintptr_t)-reach;
        } else {
            *high += (uintptr_t)reach;
        }
    }
    *high += (uintptr_t)PyArray_ITEMSIZE(array);
}

static bool
overlap(PyArrayObject *a, PyArrayObject *b)
{
    uintptr_t a_low, a_high, b_low, b_high;

    extent(a, &a_low, &a_high);
    extent(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

/* Results may share memory neither with each other nor with the input. */
static int
check_overlap(PyArrayObject *const out[OUT_COUNT], PyArrayObject *d, PyArrayObject *e)
{
    for (int i = 0; i < OUT_COUNT; i++) {
        if (overlap(out[i], d) || overlap(out[i], e)) {
            PyErr_Format(PyExc_ValueError, "out: %s overlaps the memory of d or e", out_names[i]);
            return -1;
        }
        for (int j = i + 1; j < OUT_COUNT; j++) {
            if (overlap(out[i], out[j])) {
                PyErr_Format(PyExc_ValueError, "out: %s and %s overlap in memory", out_names[i],
                             out_names[j]);
                return -1;
            }
        }
    }
    return 0;
}

/* Fill out[] with the caller's arrays or with new ones, and the problem with
   their addresses. */
static int
set_outputs(tsvd_problem *problem, bool vectors, PyObject *given, PyArrayObject *d,
            PyArrayObject *e, PyArrayObject *out[OUT_COUNT])
{
    int type = PyArray_TYPE(d);

    problem->L = problem->R = NULL;
    if (given != Py_None && (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != OUT_COUNT)) {
        PyErr_SetString(PyExc_TypeError, "out must be a tuple of three arrays (L, s, R)");
        return -1;
    }
    for (int i = 0; i < OUT_COUNT; i++) {
        if (!vectors && i != OUT_S) {
            continue;
        }
        out[i] = given == Py_None ? new_output(problem, i, type)
                                  : given_output(problem, i, type, PyTuple_GET_ITEM(given, i));
        if (out[i] == NULL) {
            return -1;
        }
        set_output(problem, i, out[i]);
    }
    return given == Py_None ? 0 : check_overlap(out, d, e);
}

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

/* ---- the functions of the module ---- */

/* The arguments of svd(), in order; tsvd/_core.pyi has their Python types. */
enum {
    ARG_D,
    ARG_E,
    ARG_COMPUTE_UV,
    ARG_OUT,
    ARG_FULL_OUTPUT,
    ARG_PROGRESS,
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
    ARG_COUNT
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

/* SciPy's BLAS for divide and conquer; "auto" does without it where it cannot be imported. */
static int
load_blas(const tsvd_options *options)
{
    if (tsvdi_load_scipy_blas() == 0) {
        return 0;
    }
    if (options->method == TSVD_METHOD_DC || !PyErr_ExceptionMatches(PyExc_ImportError)) {
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
             "svd(d, e, compute_uv, out, full_output, progress, lower, method, eps, max_sweeps,\n"
             "    check_finite, threads, blocks, block_threads, split, device, /)\n"
             "--\n\n"
             "(L, s, R), or s without vectors; with full_output a pair of that and a dict.\n\n"
             "d, e and out may be anything; the options must be checked already:\n"
             "method a value of METHODS, eps < 0 and 0 elsewhere for the defaults.");

static PyObject *
svd(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    tsvd_problem problem;
    tsvd_options options;
    tsvd_info info;
    tsvd_error error;
    tsvd_status status;
    watch watching;
    PyArrayObject *d = NULL, *e = NULL, *out[OUT_COUNT] = {NULL, NULL, NULL};
    PyObject *result = NULL;
    int vectors, full_output, type;

    if (nargs != ARG_COUNT) {
        PyErr_Format(PyExc_TypeError, "svd() takes %d arguments (%zd given)", ARG_COUNT, nargs);
        return NULL;
    }
    vectors = PyObject_IsTrue(args[ARG_COMPUTE_UV]);
    full_output = PyObject_IsTrue(args[ARG_FULL_OUTPUT]);
    if (vectors < 0 || full_output < 0 || get_options(args, &options) < 0) {
        return NULL;
    }

    d = input_array(args[ARG_D], "d");
    e = d == NULL ? NULL : input_array(args[ARG_E], "e");
    if (e == NULL || set_shape(&problem, d, e) < 0) {
        goto out;
    }
    type = PyArray_TYPE(d) == NPY_FLOAT && PyArray_TYPE(e) == NPY_FLOAT ? NPY_FLOAT : NPY_DOUBLE;
    problem.dtype = type == NPY_FLOAT ? TSVD_FLOAT32 : TSVD_FLOAT64;
    if (args[ARG_OUT] == Py_None && check_memory(&problem, &options, vectors) < 0) {
        goto out;
    }
    if (convert(&d, type) < 0 || convert(&e, type) < 0) {
        goto out;
    }
    set_input(&problem, d, e);
    if (set_outputs(&problem, vectors, args[ARG_OUT], d, e, out) < 0 ||
        (vectors && tsvd_uses_blas(&options, problem.n) && load_blas(&options) < 0)) {
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
        raise_status(module, status, error.matrix, error.text);
        goto out;
    }
    if (report(watching.progress, 1.0) < 0) {
        goto out;
    }

    result = vectors ? PyTuple_Pack(OUT_COUNT, out[OUT_L], out[OUT_S], out[OUT_R])
                     : Py_NewRef(out[OUT_S]);
    if (full_output && result != NULL) {
        result = Py_BuildValue("NN", result, info_dict(&info));
    }
out:
    for (int i = 0; i < OUT_COUNT; i++) {
        Py_XDECREF(out[i]);
    }
    Py_XDECREF(d);
    Py_XDECREF(e);
    return result;
}

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
        return raise_status(module, status, -1, why);
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
        return raise_status(module, status, -1, why);
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
        return raise_status(module, status, -1, why);
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
        raise_status(module, status, -1, tsvd_strstatus(status));
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
        return raise_status(module, status, -1, text);
    }
    return PyUnicode_DecodeFSDefault(text);
}

PyDoc_STRVAR(config_doc, "config()\n--\n\nWhat this build can do, as a dict.");

static PyObject *
config(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int runtime = 0, driver = 0;

    tsvd_cuda_versions(&runtime, &driver);
    /* clang-format off */
    return Py_BuildValue("{s:s,s:i,s:K,s:O,s:i,s:i}",
                         "cpu_kernels", tsvd_cpu_kernels(),
                         "threads", tsvd_host_threads(),
                         "memory_free", (unsigned long long)tsvd_host_memory_available(),
                         "cuda_compiled", tsvd_cuda_compiled() ? Py_True : Py_False,
                         "cuda_runtime", runtime,
                         "cuda_driver", driver);
    /* clang-format on */
}

static PyMethodDef methods[] = {
    {"svd", (PyCFunction)(void (*)(void))svd, METH_FASTCALL, svd_doc},
    {"cuda_device_count", cuda_device_count, METH_NOARGS, cuda_device_count_doc},
    {"cuda_device_unusable", cuda_device_unusable, METH_O, cuda_device_unusable_doc},
    {"cuda_device", cuda_device, METH_O, cuda_device_doc},
    {"cuda_library_paths", cuda_library_paths, METH_O, cuda_library_paths_doc},
    {"cuda_blas", cuda_blas, METH_O, cuda_blas_doc},
    {"config", config, METH_NOARGS, config_doc},
    {NULL, NULL, 0, NULL},
};

/* METHODS: the names of the methods and the numbers that svd() takes for them. */
static int
add_methods(PyObject *module)
{
    PyObject *dict = PyDict_New();
    int ret = dict == NULL ? -1 : 0;

    for (int i = 0; i < TSVD_METHOD_COUNT && ret == 0; i++) {
        PyObject *number = PyLong_FromLong(i);

        ret = number == NULL ? -1
                             : PyDict_SetItemString(dict, tsvd_method_name((tsvd_method)i), number);
        Py_XDECREF(number);
    }
    if (ret == 0) {
        ret = PyModule_AddObjectRef(module, "METHODS", dict);
    }
    Py_XDECREF(dict);
    return ret;
}

static int
module_exec(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    PyObject *linalg;

    if (PyArray_ImportNumPyAPI() < 0) {
        return -1;
    }
    linalg = PyImport_ImportModule("numpy.linalg");
    if (linalg == NULL) {
        return -1;
    }
    state->LinAlgError = PyObject_GetAttrString(linalg, "LinAlgError");
    Py_DECREF(linalg);
    if (state->LinAlgError == NULL ||
        PyModule_AddStringConstant(module, "__version__", TSVD_VERSION) < 0 ||
        PyModule_AddIntConstant(module, "CUDA_ORDER", CUDA_ORDER) < 0 ||
        PyModule_AddIntConstant(module, "CUDA_VALUES_ORDER", CUDA_VALUES_ORDER) < 0) {
        return -1;
    }
    return add_methods(module);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);

    Py_VISIT(state->LinAlgError);
    return 0;
}

static int
module_clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);

    Py_CLEAR(state->LinAlgError);
    return 0;
}

static void
module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}, /* as NumPy */
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tsvd._core",
    .m_doc = "The C core of tsvd; use the functions of the package tsvd.",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
