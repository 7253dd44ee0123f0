/*
 * tsvd._core: reduce(), and Reduction: dense matrices in bidiagonal form, A = Q B P^H.  It keeps
 * the handle that it was made by, and calls with it come one after the other.
 */
#include <string.h>
#include <unistd.h>

#include "python/dense.h"
#include "python/exchange.h"
#include "python/shapes.h"

typedef struct reduction {
    PyObject_HEAD
    tsvd_handle *handle;     /* whose stream everything is ordered in */
    tsvd_reduction *core;    /* the matrices */
    struct arrays arrays;    /* their shape, batch and dtype; core_in[0] has no data */
    int threads;             /* of calls that ask for no number; 0: the default */
    PyObject *keep;          /* what keeps the stream alive, or None */
    PyThread_type_lock busy; /* held while the handle is in use */
    atomic_ulong user;       /* the thread that uses it; 0: none */
    /* the last process in which it was free, once at least: in a forked child that is its parent,
       as long as a thread that the child does not have holds `busy` */
    atomic_int process;
} reduction;

static PyObject *
module_of(reduction *self)
{
    return PyType_GetModule(Py_TYPE((PyObject *)self));
}

/* ---- one call at a time ---- */

/* Microseconds between two looks at signals, while another thread computes. */
#define WAIT_US 50000

/* Waits until no other thread uses the handle; -1 with an exception set if it cannot be had. */
static int
enter(reduction *self)
{
    const unsigned long me = PyThread_get_thread_ident();
    PyLockStatus got = PyThread_acquire_lock_timed(self->busy, 0, 0);

    if (got != PY_LOCK_ACQUIRED && atomic_load(&self->user) == me) {
        PyErr_SetString(PyExc_RuntimeError,
                        "progress must not use the Bidiagonalization that calls it");
        return -1;
    }
    if (got != PY_LOCK_ACQUIRED && atomic_load(&self->process) != getpid()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread used the Bidiagonalization when the process was forked: "
                        "give the child one of its own");
        return -1;
    }
    while (got != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS
        got = PyThread_acquire_lock_timed(self->busy, WAIT_US, 0);
        Py_END_ALLOW_THREADS
        if (got != PY_LOCK_ACQUIRED && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    atomic_store(&self->process, getpid());
    atomic_store(&self->user, me);
    return 0;
}

static void
leave(reduction *self)
{
    atomic_store(&self->user, 0);
    PyThread_release_lock(self->busy);
}

/* ---- reduce ---- */

/* What reduce() asks of the core. */
struct reducing {
    tsvd_options options;
    const tsvd_array *a;
    reduction *reduction;
};

static tsvd_status
compute_reduction(void *subject, tsvd_error *error)
{
    struct reducing *reducing = subject;

    return tsvd_dense_reduce(reducing->reduction->handle, reducing->a, &reducing->options,
                             &reducing->reduction->core, error);
}

/* Keeps the shape of the matrices. */
static void
keep_shape(reduction *self, const struct arrays *arrays)
{
    const tsvd_array *a = &arrays->core_in[0];

    self->arrays = *arrays;
    for (int i = 0; i < INPUTS_MOST; i++) {
        self->arrays.in[i] = NULL;
        self->arrays.convert[i] = false;
    }
    self->arrays.core_in[0] = tsvd_array_of(NULL, a->space, a->dtype, a->ndim, a->shape);
}

/* The bytes of all matrices, which a reduction keeps; UINT64_MAX: more than can be addressed. */
static uint64_t
kept_bytes(const struct arrays *arrays)
{
    const tsvd_array *a = &arrays->core_in[0];
    uint64_t bytes = tsvd_dtype_size(arrays->dtype);
    bool empty = false, overflow = false;

    for (int i = 0; i < a->ndim; i++) {
        empty = empty || a->shape[i] == 0;
        overflow = __builtin_mul_overflow(bytes, (uint64_t)a->shape[i], &bytes) || overflow;
    }
    return empty ? 0 : overflow ? UINT64_MAX : bytes;
}

/* Takes the matrices, and a handle of the device, and makes the plan. */
static int
take_matrices(struct call *call, tsvd_plan *plan)
{
    struct arrays *arrays = &call->arrays;
    const struct options *asked = call->asked;
    uint64_t kept;

    if (asked->on_device) {
        return tsvdi_call_take_on_device(arrays, call->input, call->device, asked->stream,
                                         asked->threads, &call->handle) < 0
                   ? -1
                   : tsvdi_call_plan(call, plan);
    }
    if (tsvdi_arrays_take(arrays, call->input) < 0) {
        return -1;
    }
    call->handle = tsvdi_call_handle(call->module, call->device, asked->stream, asked->threads);
    if (call->handle == NULL || tsvdi_call_plan(call, plan) < 0) {
        return -1;
    }
    kept = kept_bytes(arrays);
    plan->result_bytes = 0; /* there are no results yet */
    plan->host_bytes = plan->host_bytes > kept ? plan->host_bytes : kept;
    return tsvdi_arrays_check_memory(arrays, plan, false) < 0 ? -1 : tsvdi_arrays_input(arrays);
}

/* The plan of a reduction alone, without vectors. */
static tsvd_status
plan_reduction(struct call *call, tsvd_plan *plan, tsvd_error *error)
{
    tsvd_options options = call->options;

    if (options.dense_stages == 0) {
        options.dense_stages = 1; /* of small matrices too, which an SVD does not reduce */
        if (tsvd_dense_plan(call->handle, &call->arrays.core_in[0], &call->options, 0, plan,
                            error) == TSVD_OK &&
            !plan->direct) {
            return TSVD_OK;
        }
    }
    return tsvd_dense_plan(call->handle, &call->arrays.core_in[0], &options, 0, plan, error);
}

/* A new object with the handle of a call, and nothing reduced yet. */
static reduction *
new_reduction(struct call *call, PyObject *keep)
{
    module_state *state = PyModule_GetState(call->module);
    PyTypeObject *type = (PyTypeObject *)state->Reduction;
    reduction *self = (reduction *)PyType_GenericAlloc(type, 0);

    if (self == NULL) {
        return NULL;
    }
    self->handle = call->handle;
    call->handle = NULL;
    self->threads = call->asked == NULL ? 0 : call->asked->threads;
    self->keep = Py_NewRef(keep);
    keep_shape(self, &call->arrays);
    atomic_store(&self->process, getpid());
    self->busy = PyThread_allocate_lock();
    if (self->busy == NULL) {
        PyErr_SetString(PyExc_MemoryError, "no lock could be made");
        Py_CLEAR(self);
    }
    return self;
}

PyDoc_STRVAR(
    reduce_doc,
    "reduce((a,), options, device, /)\n--\n\n"
    "A Reduction of a.\n\n"
    "Of the options check_finite, progress, threads, stages, on_device, stream and keep are read.");

static PyObject *
reduce(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    static const struct call_kind kind = {"reduce", &tsvdi_dense_form, plan_reduction, NULL};
    struct call call;
    struct reducing reducing = {.a = &call.arrays.core_in[0]};
    reduction *self = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;
    tsvd_status status;

    if (tsvdi_call_begin(&call, module, &kind, args, nargs) == 0) {
        call.options = tsvdi_default_options();
        call.options.check_finite = call.asked->check_finite;
        call.options.dense_stages = call.asked->stages;
        self = take_matrices(&call, &plan) < 0 ? NULL : new_reduction(&call, call.asked->keep);
    }
    if (self != NULL) {
        reducing.options = call.options;
        reducing.reduction = self;
        /* wait: a CUDA device may read an array of the host until its stream has passed the copy */
        status = tsvdi_work(module, self->handle, &reducing.options, call.asked->progress,
                            !call.asked->on_device && call.device != TSVD_DEVICE_CPU,
                            compute_reduction, &reducing, &error);
        if (status != TSVD_OK) {
            tsvdi_raise_of(module, status, &error, plan.matrices);
        }
        if (status != TSVD_OK || tsvdi_report(call.asked->progress, 1.0) < 0) {
            Py_CLEAR(self);
        }
    }
    tsvdi_call_end(&call);
    return (PyObject *)self;
}

/* ---- the state ---- */

PyDoc_STRVAR(restore_doc, "restore(shape, dtype, state, on_device, device, /)\n--\n\n"
                          "A Reduction of the state that save() gave.\n\n"
                          "shape, dtype: of the Reduction. on_device: the matrices lay there.");

/* The shape of the matrices, as if they were taken. */
static int
set_shape(struct arrays *arrays, PyObject *shape, const char *dtype, bool on_device)
{
    const Py_ssize_t ndim = PyTuple_Size(shape);
    int64_t sizes[TSVD_MAX_DIMS];

    if (ndim < 2 || ndim > TSVD_MAX_DIMS) {
        PyErr_SetString(PyExc_ValueError, "shape has too few or too many dimensions");
        return -1;
    }
    for (Py_ssize_t i = 0; i < ndim; i++) {
        sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred() || sizes[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "shape holds what is no size");
            return -1;
        }
    }
    arrays->dtype = TSVD_FLOAT64;
    for (tsvd_dtype of = TSVD_FLOAT64; of <= TSVD_COMPLEX64; of++) {
        arrays->dtype = strcmp(dtype, tsvdi_shapes_dtype_name(of)) == 0 ? of : arrays->dtype;
    }
    arrays->core_in[0] =
        tsvd_array_of(NULL, on_device ? TSVD_CUDA : TSVD_HOST, arrays->dtype, (int)ndim, sizes);
    return arrays->form->set_shape(arrays);
}

static PyObject *
restore(PyObject *module, PyObject *args)
{
    static const struct call_kind kind = {"restore", &tsvdi_dense_form, plan_reduction, NULL};
    struct call call = {.kind = &kind, .module = module, .options = tsvdi_default_options()};
    PyObject *shape;
    const char *dtype;
    Py_buffer state = {.buf = NULL};
    reduction *self = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error error;
    tsvd_status status;
    int on_device, device;

    tsvdi_arrays_init(&call.arrays, module, &tsvdi_dense_form);
    if (!PyArg_ParseTuple(args, "O!sy*pi:restore", &PyTuple_Type, &shape, &dtype, &state,
                          &on_device, &device)) {
        goto out;
    }
    if (set_shape(&call.arrays, shape, dtype, on_device) < 0) {
        goto out;
    }
    call.handle = tsvdi_call_handle(module, device, NULL, 0);
    if (call.handle == NULL || tsvdi_call_plan(&call, &plan) < 0) {
        goto out;
    }
    self = new_reduction(&call, Py_None);
    if (self == NULL) {
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_reduction_restore(self->handle, &self->arrays.core_in[0], state.buf,
                                    (uint64_t)state.len, &self->core, &error);
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
        Py_CLEAR(self);
    }
out:
    PyBuffer_Release(&state);
    tsvdi_call_end(&call);
    return (PyObject *)self;
}

PyDoc_STRVAR(save_doc, "save($self, state, /)\n--\n\n"
                       "Fills a buffer of state_bytes bytes with what restore() takes.");

static PyObject *
save(PyObject *object, PyObject *argument)
{
    reduction *self = (reduction *)object;
    Py_buffer state;
    tsvd_error error;
    tsvd_status status;
    PyObject *result = NULL;

    if (PyObject_GetBuffer(argument, &state, PyBUF_WRITABLE) < 0) {
        return NULL;
    }
    if ((uint64_t)state.len != tsvd_reduction_state_bytes(self->core)) {
        PyErr_SetString(PyExc_ValueError, "the buffer must have state_bytes bytes");
        goto out;
    }
    if (enter(self) < 0) {
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_reduction_save(self->core, state.buf, &error);
    Py_END_ALLOW_THREADS
    leave(self);
    result = status == TSVD_OK ? Py_NewRef(Py_None) : tsvdi_raise(module_of(self), status, &error);
out:
    PyBuffer_Release(&state);
    return result;
}

static PyObject *
get_state_bytes(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(tsvd_reduction_state_bytes(((reduction *)object)->core));
}

/* ---- the end ---- */

static void
reduction_dealloc(PyObject *object)
{
    reduction *self = (reduction *)object;
    PyTypeObject *type = Py_TYPE(object);

    tsvd_reduction_destroy(self->core);
    tsvdi_handle_give(module_of(self), self->handle);
    if (self->busy != NULL) {
        PyThread_free_lock(self->busy);
    }
    Py_XDECREF(self->keep); /* last: it keeps the stream alive that destroy() above uses */
    PyObject_Free(object);
    Py_DECREF(type);
}

/* ---- d and e ---- */

/* A new array for d or e, which have `count` numbers for each matrix. */
static PyObject *
new_entries(reduction *self, const char *name, int64_t count, bool on_device, tsvd_array *core)
{
    const struct arrays *arrays = &self->arrays;
    const tsvd_dtype dtype = tsvd_dtype_of_values(arrays->dtype);
    int64_t shape[TSVD_MAX_DIMS];
    PyObject *array;

    for (int i = 0; i < arrays->batch_ndim; i++) {
        shape[i] = arrays->batch_shape[i];
    }
    shape[arrays->batch_ndim] = count;
    if (!on_device) {
        return tsvdi_arrays_new(name, dtype, arrays->batch_ndim + 1, shape, core);
    }
    array = tsvdi_device_array_new(module_of(self), self->handle, dtype, arrays->batch_ndim + 1,
                                   shape, self->keep == Py_None ? NULL : self->keep);
    if (array != NULL) {
        *core = *tsvdi_device_array_core(array);
    }
    return array;
}

PyDoc_STRVAR(entries_doc, "entries($self, on_device, /)\n--\n\n"
                          "d and e, as NumPy arrays or as DeviceArrays.");

static PyObject *
entries(PyObject *object, PyObject *argument)
{
    reduction *self = (reduction *)object;
    const int64_t n = self->arrays.n;
    const int on_device = PyObject_IsTrue(argument);
    PyObject *d = NULL, *e = NULL, *result = NULL;
    tsvd_array core_d, core_e;
    tsvd_error error;
    tsvd_status status;

    if (on_device < 0 || enter(self) < 0) {
        return NULL;
    }
    d = new_entries(self, "d", n, on_device, &core_d);
    e = d == NULL ? NULL : new_entries(self, "e", n > 0 ? n - 1 : 0, on_device, &core_e);
    if (e == NULL) {
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_reduction_entries(self->core, &core_d, &core_e, &error);
    Py_END_ALLOW_THREADS
    if (status != TSVD_OK) {
        tsvdi_raise(module_of(self), status, &error);
        goto out;
    }
    result = PyTuple_Pack(2, d, e);
out:
    leave(self);
    Py_XDECREF(d);
    Py_XDECREF(e);
    return result;
}

PyDoc_STRVAR(
    reduction_select_doc,
    "select($self, low, high, /)\n--\n\n"
    "The values of the one matrix in (low, high], low < high, as first and count of svd().");

static PyObject *
reduction_select(PyObject *object, PyObject *args)
{
    reduction *self = (reduction *)object;
    double low, high;
    int64_t first, count;
    tsvd_error error;
    tsvd_status status;

    if (!PyArg_ParseTuple(args, "dd:select", &low, &high) || enter(self) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_reduction_select(self->core, low, high, &first, &count, &error);
    Py_END_ALLOW_THREADS
    leave(self);
    return status != TSVD_OK ? tsvdi_raise(module_of(self), status, &error)
                             : Py_BuildValue("LL", (long long)first, (long long)count);
}

/* ---- Q and P ---- */

/* Refuses x unless it is (..., m, c), or (..., n, c) for P. */
static int
check_vectors(const reduction *self, bool right, const tsvd_array *x)
{
    const struct arrays *arrays = &self->arrays;
    const int batch = arrays->batch_ndim;
    const int64_t rows = right ? arrays->columns : arrays->rows;
    bool fits = x->ndim == batch + 2 && x->shape[batch] == rows;
    PyObject *shape;

    for (int i = 0; i < batch && fits; i++) {
        fits = x->shape[i] == arrays->batch_shape[i];
    }
    if (fits) {
        return 0;
    }
    shape = x->ndim > TSVD_MAX_DIMS ? NULL : tsvdi_shapes_tuple(x->ndim, x->shape);
    if (shape != NULL || !PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "x must have the shape (..., %lld, c), got %R",
                     (long long)rows, shape == NULL ? Py_None : shape);
    }
    Py_XDECREF(shape);
    return -1;
}

/* What apply() asks of the core. */
struct applying {
    reduction *reduction;
    tsvd_side side;
    int transposed, on_device;
    tsvd_array x;
    tsvd_options options;
};

static tsvd_status
compute_product(void *subject, tsvd_error *error)
{
    struct applying *applying = subject;

    return tsvd_reduction_apply(applying->reduction->core, applying->side, applying->transposed,
                                &applying->x, &applying->options, error);
}

PyDoc_STRVAR(apply_doc,
             "apply($self, x, right, transposed, on_device, /)\n--\n\n"
             "Replaces x (..., m, c) by Q x, or, with `right`, x (..., n, c) by P x, or the same\n"
             "with the conjugate transpose. on_device: x is an array of the device.");

static PyObject *
apply(PyObject *object, PyObject *args)
{
    reduction *self = (reduction *)object;
    struct applying applying = {.reduction = self, .options = tsvdi_default_options()};
    PyObject *x, *owned = NULL, *result = NULL;
    tsvd_error error;
    tsvd_status status;
    int right;

    if (!PyArg_ParseTuple(args, "Oppp:apply", &x, &right, &applying.transposed,
                          &applying.on_device) ||
        enter(self) < 0) {
        return NULL;
    }
    if (applying.on_device) {
        owned = tsvdi_exchange_writable(&self->arrays, self->handle, "x", x, &applying.x);
    } else if (tsvdi_arrays_writable(&self->arrays, "x", x, &applying.x) == 0) {
        owned = Py_NewRef(x);
    }
    if (owned == NULL || check_vectors(self, right, &applying.x) < 0) {
        goto out;
    }
    applying.side = right ? TSVD_RIGHT : TSVD_LEFT;
    /* wait on a device: x may then be read in any stream */
    status = tsvdi_work(module_of(self), self->handle, &applying.options, Py_None,
                        applying.on_device, compute_product, &applying, &error);
    if (status != TSVD_OK) {
        tsvdi_raise(module_of(self), status, &error);
        goto out;
    }
    result = Py_NewRef(Py_None);
out:
    leave(self);
    Py_XDECREF(owned);
    return result;
}

/* ---- svd ---- */

static tsvd_status
compute_svd(struct call *call, tsvd_error *error)
{
    const struct arrays *arrays = &call->arrays;
    const tsvd_array *U = call->asked->compute_uv ? &arrays->core_out[OUT_L] : NULL;
    const tsvd_array *Vh = call->asked->compute_uv ? &arrays->core_out[OUT_R] : NULL;

    return tsvd_reduction_svd(call->reduction, &call->options, U, &arrays->core_out[OUT_S], Vh,
                              &call->info, error);
}

PyDoc_STRVAR(reduction_svd_doc, "svd($self, options, /)\n--\n\n"
                                "As dense_svd(); stream is not read.");

static PyObject *
reduction_svd(PyObject *object, PyObject *options)
{
    static const struct call_kind kind = {"svd", &tsvdi_dense_form, tsvdi_dense_call_plan,
                                          compute_svd};
    reduction *self = (reduction *)object;
    struct call call;
    PyObject *result = NULL;

    if (tsvdi_call_begin_reduced(&call, module_of(self), &kind, options) < 0 || enter(self) < 0) {
        return NULL;
    }
    call.arrays = self->arrays;
    call.handle = self->handle;
    call.reduction = self->core;
    if (call.asked->threads > 0) {
        (void)tsvd_set_threads(call.handle, call.asked->threads, NULL);
    }
    if (tsvdi_call_range(&call) == 0) {
        result = tsvdi_call_run(&call);
    }
    (void)tsvd_set_threads(call.handle, self->threads, NULL);
    leave(self);
    tsvdi_call_end(&call);
    return result;
}

/* ---- the type ---- */

static PyObject *
get_shape(PyObject *object, void *Py_UNUSED(closure))
{
    const tsvd_array *a = &((reduction *)object)->arrays.core_in[0];

    return tsvdi_shapes_tuple(a->ndim, a->shape);
}

static PyObject *
get_dtype(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(tsvdi_shapes_dtype_name(((reduction *)object)->arrays.dtype));
}

static PyObject *
get_device(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(tsvd_handle_device(((reduction *)object)->handle));
}

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "of the matrices", NULL},
    {"dtype", get_dtype, NULL, "of the matrices: float64, float32, complex128 or complex64", NULL},
    {"device", get_device, NULL, "the CUDA device; -1: the CPU", NULL},
    {"state_bytes", get_state_bytes, NULL, "what save() fills", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef reduction_methods[] = {
    {"entries", entries, METH_O, entries_doc},
    {"select", reduction_select, METH_VARARGS, reduction_select_doc},
    {"save", save, METH_O, save_doc},
    {"apply", apply, METH_VARARGS, apply_doc},
    {"svd", reduction_svd, METH_O, reduction_svd_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)reduction_dealloc},
    {Py_tp_getset, attributes},
    {Py_tp_methods, reduction_methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tsvd._core.Reduction",
    .basicsize = sizeof(reduction),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyObject *
tsvdi_reduction_type(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyMethodDef tsvdi_reduction_methods[] = {
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL, reduce_doc},
    {"restore", restore, METH_VARARGS, restore_doc},
    {NULL, NULL, 0, NULL},
};
