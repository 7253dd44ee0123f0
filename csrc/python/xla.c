/*
 * tsvd._core: the SVD and the inverse as custom calls of XLA, which python/tsvd/jax.py registers.
 *
 * XLA calls a handler from threads of its own, without the GIL.  So nothing here but the functions
 * for Python at the end calls Python.  The interface is that of python/xla_ffi.h.
 *
 *     target           arguments                           results
 *     tsvd_svd         d (batch..., n), e (batch..., n-1)  L, s, R, or s alone, as of tsvd_svd()
 *     tsvd_dense_svd   a (batch..., m, n)                  U, S, Vh, or S alone
 *     tsvd_inverse     a (batch..., n, n)                  X
 *
 * The attributes of a target are those that its `struct target` names.
 */
#include "python/module.h"
#include "python/xla_ffi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the handlers share.  It stays to the end of the process, as XLA keeps the handlers. */
struct shared {
    module_state *state;
    tsvd_config config; /* of new handles, but for the device */
};

static _Atomic(struct shared *) shared;

/* The attributes of a call, of all targets. */
struct request {
    int64_t lower, method, first, count, check_finite, max_sweeps, refine;
    double eps;
};

enum { MOST_ARRAYS = 3 };

/* A call: what it computes with. */
struct operands {
    tsvd_array in[MOST_ARRAYS], out[MOST_ARRAYS];
    bool vectors; /* without them out[1] is the only result */
};

struct target {
    const char *name;
    const char *attributes[8]; /* the names of all of them; NULL at the end */
    int inputs;
    bool vectors; /* whether there may be vectors on both sides of the result */
    tsvd_status (*compute)(tsvd_handle *handle, const struct operands *with,
                           const tsvd_options *options, int refine, tsvd_error *error);
};

/* ---- errors ---- */

static struct xla_error *
fail(const struct xla_api *api, enum xla_code code, const char *text)
{
    struct xla_error_args args = {XLA_SIZE(struct xla_error_args, code), NULL, text, code};

    return api->make_error(&args);
}

/* The failure of a call on so many matrices. */
static struct xla_error *
fail_as(const struct xla_api *api, tsvd_status status, const tsvd_error *error, int64_t matrices)
{
    enum xla_code code = XLA_INTERNAL;
    char text[sizeof error->text + 64];

    switch (status) {
    case TSVD_ERR_ARGUMENT:
    case TSVD_ERR_NONFINITE:
    case TSVD_ERR_SINGULAR:
        code = XLA_INVALID_ARGUMENT;
        break;
    case TSVD_ERR_MEMORY:
        code = XLA_RESOURCE_EXHAUSTED;
        break;
    case TSVD_ERR_UNSUPPORTED:
        code = XLA_UNIMPLEMENTED;
        break;
    case TSVD_ERR_NO_DEVICE:
    case TSVD_ERR_LIBRARY:
        code = XLA_FAILED_PRECONDITION;
        break;
    default:
        break;
    }
    if (error->matrix < 0 || matrices == 1) {
        (void)snprintf(text, sizeof text, "tsvd: %s", error->text);
    } else {
        (void)snprintf(text, sizeof text, "tsvd: matrix %" PRId64 " of the batch: %s",
                       error->matrix, error->text);
    }
    return fail(api, code, text);
}

/* ---- what XLA gives ---- */

/* Where a request has the attribute, an int64 unless it is eps; NULL: there is no such one. */
static void *
place_of(struct request *request, const char *name)
{
    const struct {
        const char *name;
        void *place;
    } all[] = {
        {"lower", &request->lower},
        {"method", &request->method},
        {"first", &request->first},
        {"count", &request->count},
        {"check_finite", &request->check_finite},
        {"max_sweeps", &request->max_sweeps},
        {"refine", &request->refine},
        {"eps", &request->eps},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].place;
        }
    }
    return NULL;
}

/* Copies an attribute to the request; returns whether it is there, and of its type. */
static bool
get_attribute(const struct xla_attributes *attributes, const char *name, struct request *request)
{
    void *place = place_of(request, name);
    const enum xla_dtype dtype = place == &request->eps ? XLA_F64 : XLA_S64;

    for (int64_t i = 0; i < attributes->count; i++) {
        const struct xla_string *given = attributes->names[i];
        const struct xla_scalar *scalar = attributes->values[i];

        if (given->length == strlen(name) && memcmp(given->text, name, given->length) == 0) {
            if (attributes->kinds[i] != XLA_SCALAR || scalar->dtype != dtype) {
                return false;
            }
            memcpy(place, scalar->value, sizeof(int64_t));
            return true;
        }
    }
    return false;
}

static bool
get_request(const struct target *target, const struct xla_attributes *attributes,
            struct request *request)
{
    int64_t count = 0;

    memset(request, 0, sizeof *request);
    request->count = -1;
    request->eps = -1;
    for (; target->attributes[count] != NULL; count++) {
        if (!get_attribute(attributes, target->attributes[count], request)) {
            return false;
        }
    }
    return attributes->count == count;
}

static tsvd_dtype
dtype_of(enum xla_dtype dtype)
{
    switch (dtype) {
    case XLA_F64:
        return TSVD_FLOAT64;
    case XLA_F32:
        return TSVD_FLOAT32;
    case XLA_C128:
        return TSVD_COMPLEX128;
    case XLA_C64:
        return TSVD_COMPLEX64;
    default:
        return (tsvd_dtype)0;
    }
}

/* Describes a dense buffer; returns whether tsvd computes with such arrays. */
static bool
get_array(const struct xla_arrays *arrays, int64_t index, tsvd_space space, tsvd_array *array)
{
    const struct xla_buffer *buffer = arrays->arrays[index];

    if (arrays->kinds[index] != XLA_BUFFER || dtype_of(buffer->dtype) == 0 || buffer->rank < 1 ||
        buffer->rank > TSVD_MAX_DIMS) {
        return false;
    }
    *array = tsvd_array_of(buffer->data, space, dtype_of(buffer->dtype), (int)buffer->rank,
                           buffer->dims);
    return true;
}

static bool
get_operands(const struct target *target, const struct xla_frame *frame, tsvd_space space,
             struct operands *operands)
{
    const int64_t results = frame->results.count;

    operands->vectors = target->vectors && results == MOST_ARRAYS;
    if (frame->arguments.count != target->inputs || (!operands->vectors && results != 1)) {
        return false;
    }
    for (int64_t i = 0; i < target->inputs; i++) {
        if (!get_array(&frame->arguments, i, space, &operands->in[i])) {
            return false;
        }
    }
    for (int64_t i = 0; i < results; i++) {
        if (!get_array(&frame->results, i, space, &operands->out[operands->vectors ? i : 1])) {
            return false;
        }
    }
    return true;
}

/* ---- the calls ---- */

static tsvd_status
compute_svd(tsvd_handle *handle, const struct operands *with, const tsvd_options *options,
            int refine, tsvd_error *error)
{
    const tsvd_array *out = with->out;

    (void)refine;
    return tsvd_svd(handle, &with->in[0], &with->in[1], options, with->vectors ? &out[0] : NULL,
                    &out[1], with->vectors ? &out[2] : NULL, NULL, error);
}

static tsvd_status
compute_dense_svd(tsvd_handle *handle, const struct operands *with, const tsvd_options *options,
                  int refine, tsvd_error *error)
{
    const tsvd_array *out = with->out;

    (void)refine;
    return tsvd_dense_svd(handle, &with->in[0], options, with->vectors ? &out[0] : NULL, &out[1],
                          with->vectors ? &out[2] : NULL, NULL, error);
}

static tsvd_status
compute_inverse(tsvd_handle *handle, const struct operands *with, const tsvd_options *options,
                int refine, tsvd_error *error)
{
    return tsvd_dense_inverse(handle, &with->in[0], options, refine, &with->out[1], NULL, error);
}

static const struct target svd_target = {
    "tsvd_svd",  {"lower", "method", "first", "count", "check_finite", "eps", NULL}, 2, true,
    compute_svd,
};
static const struct target dense_svd_target = {
    "tsvd_dense_svd",
    {"method", "first", "count", "check_finite", "max_sweeps", "eps", NULL},
    1,
    true,
    compute_dense_svd,
};
static const struct target inverse_target = {
    "tsvd_inverse", {"check_finite", "refine", NULL}, 1, false, compute_inverse,
};

/* The number of matrices, without an overflow where there are arrays for them. */
static int64_t
matrices_of(const struct target *target, const struct operands *operands)
{
    const tsvd_array *result = &operands->out[1];
    const int batch = result->ndim - (target == &inverse_target ? 2 : 1);
    int64_t matrices = 1;

    for (int i = 0; i < batch; i++) {
        matrices *= result->shape[i];
    }
    return matrices;
}

/* Takes a handle of the device; returns NULL, with *error filled, on failure. */
static tsvd_handle *
take_handle(const struct shared *with, int device, tsvd_error *error)
{
    tsvd_handle *handle = tsvdi_handle_idle(with->state, device);
    tsvd_config config = with->config;

    if (handle == NULL) {
        config.device = device;
        (void)tsvd_create(&config, &handle, error);
    }
    return handle;
}

/* On a CUDA device the call works on XLA's stream. */
static tsvd_status
compute_on(const struct target *target, const struct shared *with, int device, void *stream,
           const struct operands *operands, const tsvd_options *options, int refine,
           tsvd_error *error)
{
    tsvd_handle *handle = take_handle(with, device, error);
    tsvd_status ret;

    if (handle == NULL) {
        return error->status;
    }
    (void)tsvd_set_threads(handle, 0, NULL);
    if (device == TSVD_DEVICE_CPU) {
        (void)tsvdi_give_scipy_blas(with->state, handle);
        ret = target->compute(handle, operands, options, refine, error);
    } else {
        (void)tsvd_set_stream(handle, stream, NULL);
        ret = target->compute(handle, operands, options, refine, error);
        /* other handles may hold memory of the device */
        if (ret == TSVD_ERR_MEMORY && tsvdi_handles_drop(with->state) > 0) {
            ret = target->compute(handle, operands, options, refine, error);
        }
    }
    tsvdi_handle_keep(with->state, handle);
    return ret;
}

/* ---- handlers ---- */

/* XLA asks for this once, and refuses versions that are newer than its own, or too old.  All of
   the same major number are the same to what is used here. */
static struct xla_error *
tell_metadata(const struct xla_frame *frame)
{
    struct xla_metadata_extension *extension =
        (struct xla_metadata_extension *)(void *)frame->extensions;
    struct xla_version *version = &extension->metadata->version;

    version->size = XLA_SIZE(struct xla_version, minor_version);
    version->extensions = NULL;
    version->major_version = XLA_MAJOR;
    version->minor_version = XLA_OLDEST_MINOR;
    if (frame->api != NULL && frame->api->version.major_version == XLA_MAJOR) {
        version->minor_version = frame->api->version.minor_version;
    }
    extension->metadata->traits = 0; /* the host takes part in each call */
    return NULL;
}

/* The device where the first array with an entry lies; 0 if there is none. */
static tsvd_status
find_device(const struct target *target, const struct operands *operands, int *device,
            tsvd_error *error)
{
    *device = 0;
    for (int i = 0; i < target->inputs + MOST_ARRAYS; i++) {
        const tsvd_array *array =
            i < target->inputs ? &operands->in[i] : &operands->out[i - target->inputs];

        if (array->data != NULL) {
            return tsvd_cuda_device_of(array->data, device, error);
        }
    }
    return TSVD_OK;
}

static struct xla_error *
get_device(const struct target *target, const struct xla_frame *frame,
           const struct operands *operands, int *device, void **stream)
{
    const struct xla_api *api = frame->api;
    struct xla_stream_args of_stream = {XLA_SIZE(struct xla_stream_args, stream), NULL,
                                        frame->context, NULL};
    struct xla_device_args of_device = {XLA_SIZE(struct xla_device_args, device), NULL,
                                        frame->context, 0};
    struct xla_error *error = api->get_stream(&of_stream);
    tsvd_error text;

    *stream = of_stream.stream;
    if (error != NULL) {
        return error;
    }
    if (api->size < XLA_SIZE(struct xla_api, get_device)) {
        const tsvd_status status = find_device(target, operands, device, &text);

        return status == TSVD_OK ? NULL : fail_as(api, status, &text, 1);
    }
    error = api->get_device(&of_device);
    *device = of_device.device;
    return error;
}

static struct xla_error *
execute(const struct target *target, struct xla_frame *frame, tsvd_space space)
{
    const struct xla_api *api = frame->api;
    tsvd_options options = tsvdi_default_options();
    struct operands operands;
    struct request request;
    struct xla_error *error = NULL;
    tsvd_error text;
    tsvd_status status;
    void *stream = NULL;
    int device = TSVD_DEVICE_CPU;

    if (frame->extensions != NULL && frame->extensions->type == XLA_EXTENSION_METADATA) {
        return tell_metadata(frame);
    }
    memset(&operands, 0, sizeof operands);
    if (frame->stage != XLA_EXECUTE || !get_operands(target, frame, space, &operands) ||
        !get_request(target, &frame->attributes, &request)) {
        return fail(api, XLA_INVALID_ARGUMENT,
                    "tsvd: the call is not one of tsvd.jax of this version");
    }
    if (space == TSVD_CUDA) {
        error = get_device(target, frame, &operands, &device, &stream);
        if (error != NULL) {
            return error;
        }
    }
    options.lower = request.lower != 0;
    options.method = (tsvd_method)request.method;
    options.first = request.first;
    options.count = request.count;
    options.check_finite = request.check_finite != 0;
    options.max_sweeps = request.max_sweeps;
    options.eps = request.eps;
    status = compute_on(target, atomic_load(&shared), device, stream, &operands, &options,
                        request.refine != 0, &text);
    return status == TSVD_OK ? NULL : fail_as(api, status, &text, matrices_of(target, &operands));
}

/* A handler has no argument of its own: there is one for each target and space. */

static struct xla_error *
svd_on_cpu(struct xla_frame *frame)
{
    return execute(&svd_target, frame, TSVD_HOST);
}

static struct xla_error *
svd_on_cuda(struct xla_frame *frame)
{
    return execute(&svd_target, frame, TSVD_CUDA);
}

static struct xla_error *
dense_svd_on_cpu(struct xla_frame *frame)
{
    return execute(&dense_svd_target, frame, TSVD_HOST);
}

static struct xla_error *
dense_svd_on_cuda(struct xla_frame *frame)
{
    return execute(&dense_svd_target, frame, TSVD_CUDA);
}

static struct xla_error *
inverse_on_cpu(struct xla_frame *frame)
{
    return execute(&inverse_target, frame, TSVD_HOST);
}

static struct xla_error *
inverse_on_cuda(struct xla_frame *frame)
{
    return execute(&inverse_target, frame, TSVD_CUDA);
}

/* ---- Python ---- */

/* Sets `shared`, unless it is set. */
static int
share(PyObject *module)
{
    struct shared *none = NULL, *made = NULL;
    PyObject *keep = NULL;

    if (atomic_load(&shared) != NULL) {
        return 0;
    }
    made = calloc(1, sizeof *made);
    if (made == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    made->state = PyModule_GetState(module);
    if (tsvdi_handle_config(module, &made->config, &keep) < 0) {
        free(made);
        return -1;
    }
    if (atomic_compare_exchange_strong(&shared, &none, made)) {
        Py_INCREF(module); /* never released, nor is `keep` */
    } else {
        free(made);
        Py_DECREF(keep);
    }
    return 0;
}

/* Adds a handler, as a capsule, to the dict of a target. */
static int
add_handler(PyObject *of_target, const char *platform, xla_handler *handler)
{
    PyObject *capsule = PyCapsule_New((void *)handler, "xla._CUSTOM_CALL_TARGET", NULL);
    const int ret = capsule == NULL ? -1 : PyDict_SetItemString(of_target, platform, capsule);

    Py_XDECREF(capsule);
    return ret;
}

PyDoc_STRVAR(xla_handlers_doc,
             "xla_handlers()\n--\n\n"
             "For each target of custom calls a dict: the handlers, capsules by the platforms of\n"
             "XLA.  New handles of CUDA devices look for cuBLAS where cuda_library_paths() was\n"
             "told before.");

static PyObject *
xla_handlers(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    const struct {
        const struct target *target;
        xla_handler *on_cpu, *on_cuda;
    } all[] = {
        {&svd_target, svd_on_cpu, svd_on_cuda},
        {&dense_svd_target, dense_svd_on_cpu, dense_svd_on_cuda},
        {&inverse_target, inverse_on_cpu, inverse_on_cuda},
    };
    PyObject *handlers = share(module) < 0 ? NULL : PyDict_New();
    int ret = handlers == NULL ? -1 : 0;

    for (size_t i = 0; i < sizeof all / sizeof *all && ret == 0; i++) {
        PyObject *of_target = PyDict_New();

        ret = of_target == NULL ? -1 : add_handler(of_target, "cpu", all[i].on_cpu);
        if (ret == 0 && tsvd_cuda_compiled()) {
            ret = add_handler(of_target, "CUDA", all[i].on_cuda);
        }
        if (ret == 0) {
            ret = PyDict_SetItemString(handlers, all[i].target->name, of_target);
        }
        Py_XDECREF(of_target);
    }
    if (ret < 0) {
        Py_CLEAR(handlers);
    }
    return handlers;
}

PyDoc_STRVAR(load_blas_doc, "load_blas()\n--\n\n"
                            "Imports SciPy's BLAS for handlers, which cannot.");

static PyObject *
load_blas(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    tsvd_handle *handle = tsvdi_handle_take(module, TSVD_DEVICE_CPU);
    int ret = handle == NULL ? -1 : tsvdi_load_scipy_blas(PyModule_GetState(module), handle);

    tsvdi_handle_give(module, handle);
    return ret < 0 ? NULL : Py_NewRef(Py_None);
}

PyMethodDef tsvdi_xla_methods[] = {
    {"xla_handlers", xla_handlers, METH_NOARGS, xla_handlers_doc},
    {"load_blas", load_blas, METH_NOARGS, load_blas_doc},
    {NULL, NULL, 0, NULL},
};
