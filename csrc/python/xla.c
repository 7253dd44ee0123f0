/*
 * tsvd._core: the SVD as a custom call of XLA, which python/tsvd/jax.py registers.
 *
 * XLA calls a handler from threads of its own, without the GIL.  So nothing here but xla_handlers()
 * calls Python.  The interface is that of jaxlib's header xla/ffi/api/c_api.h:
 *
 *     arguments    d (batch..., n), e (batch..., n-1)
 *     results      L, s, R, or s alone, as of tsvd_svd()
 *     attributes   those of struct request
 */
#include "python/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xla/ffi/api/c_api.h>

/* What the handlers share.  It stays to the end of the process, as XLA keeps the handlers. */
struct shared {
    module_state *state;
    tsvd_config config; /* of new handles, but for the device */
};

static _Atomic(struct shared *) shared;

/* The attributes of a call, all int64 but eps. */
struct request {
    int64_t lower, method, first, count, check_finite;
    double eps;
};

/* ---- errors ---- */

static XLA_FFI_Error *
fail(const XLA_FFI_Api *api, XLA_FFI_Error_Code code, const char *text)
{
    XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, text, code};

    return api->XLA_FFI_Error_Create(&args);
}

static XLA_FFI_Error *
fail_as(const XLA_FFI_Api *api, tsvd_status status, const tsvd_error *error)
{
    XLA_FFI_Error_Code code = XLA_FFI_Error_Code_INTERNAL;
    char text[sizeof error->text + 64];

    switch (status) {
    case TSVD_ERR_ARGUMENT:
    case TSVD_ERR_NONFINITE:
        code = XLA_FFI_Error_Code_INVALID_ARGUMENT;
        break;
    case TSVD_ERR_MEMORY:
        code = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED;
        break;
    case TSVD_ERR_UNSUPPORTED:
        code = XLA_FFI_Error_Code_UNIMPLEMENTED;
        break;
    case TSVD_ERR_NO_DEVICE:
    case TSVD_ERR_LIBRARY:
        code = XLA_FFI_Error_Code_FAILED_PRECONDITION;
        break;
    default:
        break;
    }
    if (error->matrix < 0) {
        (void)snprintf(text, sizeof text, "tsvd: %s", error->text);
    } else {
        (void)snprintf(text, sizeof text, "tsvd: matrix %" PRId64 " of the batch: %s",
                       error->matrix, error->text);
    }
    return fail(api, code, text);
}

/* ---- what XLA gives ---- */

/* Copies an attribute to *value, of `size` bytes; returns whether it is there. */
static bool
get_attribute(const XLA_FFI_Attrs *attributes, const char *name, XLA_FFI_DataType dtype,
              void *value, size_t size)
{
    for (int64_t i = 0; i < attributes->size; i++) {
        const XLA_FFI_ByteSpan *span = attributes->names[i];
        const XLA_FFI_Scalar *scalar = attributes->attrs[i];

        if (span->len == strlen(name) && memcmp(span->ptr, name, span->len) == 0) {
            if (attributes->types[i] != XLA_FFI_AttrType_SCALAR || scalar->dtype != dtype) {
                return false;
            }
            memcpy(value, scalar->value, size);
            return true;
        }
    }
    return false;
}

static bool
get_request(const XLA_FFI_Attrs *attributes, struct request *request)
{
    const struct {
        const char *name;
        int64_t *value;
    } integers[] = {
        {"lower", &request->lower},
        {"method", &request->method},
        {"first", &request->first},
        {"count", &request->count},
        {"check_finite", &request->check_finite},
    };

    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        if (!get_attribute(attributes, integers[i].name, XLA_FFI_DataType_S64, integers[i].value,
                           sizeof *integers[i].value)) {
            return false;
        }
    }
    return get_attribute(attributes, "eps", XLA_FFI_DataType_F64, &request->eps,
                         sizeof request->eps);
}

/* Describes a dense buffer; returns whether tsvd computes with such arrays. */
static bool
get_array(const XLA_FFI_Buffer *buffer, tsvd_space space, tsvd_array *array)
{
    const bool single = buffer->dtype == XLA_FFI_DataType_F32;

    if ((!single && buffer->dtype != XLA_FFI_DataType_F64) || buffer->rank < 1 ||
        buffer->rank > TSVD_MAX_DIMS) {
        return false;
    }
    *array = tsvd_array_of(buffer->data, space, single ? TSVD_FLOAT32 : TSVD_FLOAT64,
                           (int)buffer->rank, buffer->dims);
    return true;
}

/* The arrays of a call. */
struct operands {
    tsvd_array d, e, L, s, R;
    bool vectors; /* without them L and R are not set */
};

static bool
get_operands(const XLA_FFI_CallFrame *frame, tsvd_space space, struct operands *operands)
{
    void *const *args = frame->args.args, *const *rets = frame->rets.rets;

    operands->vectors = frame->rets.size == 3;
    if (frame->args.size != 2 || (frame->rets.size != 1 && frame->rets.size != 3)) {
        return false;
    }
    return get_array(args[0], space, &operands->d) && get_array(args[1], space, &operands->e) &&
           get_array(rets[operands->vectors ? 1 : 0], space, &operands->s) &&
           (!operands->vectors ||
            (get_array(rets[0], space, &operands->L) && get_array(rets[2], space, &operands->R)));
}

/* ---- the call ---- */

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

static tsvd_status
compute(tsvd_handle *handle, const struct operands *with, const tsvd_options *options,
        tsvd_error *error)
{
    return tsvd_svd(handle, &with->d, &with->e, options, with->vectors ? &with->L : NULL, &with->s,
                    with->vectors ? &with->R : NULL, NULL, error);
}

/* On a CUDA device the call works on XLA's stream. */
static tsvd_status
compute_on(const struct shared *with, int device, void *stream, const struct operands *operands,
           const tsvd_options *options, tsvd_error *error)
{
    tsvd_handle *handle = take_handle(with, device, error);
    tsvd_status ret;

    if (handle == NULL) {
        return error->status;
    }
    (void)tsvd_set_threads(handle, 0, NULL);
    if (device == TSVD_DEVICE_CPU) {
        (void)tsvdi_give_scipy_blas(with->state, handle);
        ret = compute(handle, operands, options, error);
    } else {
        (void)tsvd_set_stream(handle, stream, NULL);
        ret = compute(handle, operands, options, error);
        /* other handles may hold memory of the device */
        if (ret == TSVD_ERR_MEMORY && tsvdi_handles_drop(with->state) > 0) {
            ret = compute(handle, operands, options, error);
        }
    }
    tsvdi_handle_keep(with->state, handle);
    return ret;
}

/* ---- handlers ---- */

/* XLA asks for this once.  Without traits no call is recorded into a CUDA graph: the host takes
   part in each. */
static XLA_FFI_Error *
tell_metadata(const XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Metadata_Extension *extension =
        (XLA_FFI_Metadata_Extension *)(void *)frame->extension_start;
    XLA_FFI_Metadata *metadata = extension->metadata;

    metadata->api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
    metadata->api_version.extension_start = NULL;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    metadata->traits = 0;
    metadata->state_type_id.type_id = 0; /* no state */
    return NULL;
}

static XLA_FFI_Error *
get_device(const XLA_FFI_CallFrame *frame, int *device, void **stream)
{
    const XLA_FFI_Api *api = frame->api;
    XLA_FFI_Stream_Get_Args of_stream = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, NULL, frame->ctx,
                                         NULL};
    XLA_FFI_DeviceOrdinal_Get_Args of_device = {XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, NULL,
                                                frame->ctx, 0};
    XLA_FFI_Error *error = NULL;

    if (api->struct_size < XLA_FFI_Api_STRUCT_SIZE) {
        return fail(api, XLA_FFI_Error_Code_FAILED_PRECONDITION,
                    "tsvd was built with a newer jaxlib: build it again");
    }
    error = api->XLA_FFI_Stream_Get(&of_stream);
    if (error == NULL) {
        error = api->XLA_FFI_DeviceOrdinal_Get(&of_device);
    }
    *stream = of_stream.stream;
    *device = of_device.device_ordinal;
    return error;
}

static XLA_FFI_Error *
execute(XLA_FFI_CallFrame *frame, tsvd_space space)
{
    const XLA_FFI_Api *api = frame->api;
    tsvd_options options = tsvd_options_default();
    struct operands operands;
    struct request request;
    XLA_FFI_Error *error = NULL;
    tsvd_error text;
    tsvd_status status;
    void *stream = NULL;
    int device = TSVD_DEVICE_CPU;

    if (frame->extension_start != NULL &&
        frame->extension_start->type == XLA_FFI_Extension_Metadata) {
        return tell_metadata(frame);
    }
    if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE || !get_operands(frame, space, &operands) ||
        !get_request(&frame->attrs, &request)) {
        return fail(api, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "tsvd: the call is not one of tsvd.jax of this version");
    }
    if (space == TSVD_CUDA) {
        error = get_device(frame, &device, &stream);
        if (error != NULL) {
            return error;
        }
    }
    options.lower = request.lower != 0;
    options.method = (tsvd_method)request.method;
    options.first = request.first;
    options.count = request.count;
    options.check_finite = request.check_finite != 0;
    options.eps = request.eps;
    status = compute_on(atomic_load(&shared), device, stream, &operands, &options, &text);
    return status == TSVD_OK ? NULL : fail_as(api, status, &text);
}

static XLA_FFI_Error *
execute_on_cpu(XLA_FFI_CallFrame *frame)
{
    return execute(frame, TSVD_HOST);
}

static XLA_FFI_Error *
execute_on_cuda(XLA_FFI_CallFrame *frame)
{
    return execute(frame, TSVD_CUDA);
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

PyDoc_STRVAR(xla_handlers_doc,
             "xla_handlers()\n--\n\n"
             "The handlers of the custom call, capsules by the platforms of XLA.  New handles of\n"
             "CUDA devices look for cuBLAS where cuda_library_paths() was told before.");

static PyObject *
xla_handlers(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    const struct {
        const char *platform;
        XLA_FFI_Handler *handler;
    } all[] = {{"cpu", execute_on_cpu}, {"CUDA", execute_on_cuda}};
    PyObject *handlers = share(module) < 0 ? NULL : PyDict_New();
    int ret = handlers == NULL ? -1 : 0;

    for (size_t i = 0; i < (tsvd_cuda_compiled() ? 2 : 1) && ret == 0; i++) {
        PyObject *capsule = PyCapsule_New((void *)all[i].handler, "xla._CUSTOM_CALL_TARGET", NULL);

        ret = capsule == NULL ? -1 : PyDict_SetItemString(handlers, all[i].platform, capsule);
        Py_XDECREF(capsule);
    }
    if (ret < 0) {
        Py_CLEAR(handlers);
    }
    return handlers;
}

PyDoc_STRVAR(xla_version_doc, "xla_version()\n--\n\n"
                              "The version (major, minor) of the interface that handlers name.");

static PyObject *
xla_version(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("(ii)", XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
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
    {"xla_version", xla_version, METH_NOARGS, xla_version_doc},
    {"load_blas", load_blas, METH_NOARGS, load_blas_doc},
    {NULL, NULL, 0, NULL},
};
