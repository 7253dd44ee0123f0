/*
 * The part of XLA's foreign function interface that xla.c uses.
 *
 * XLA declares it in xla/ffi/api/c_api.h, which comes with jaxlib.  It is an interface of C whose
 * versions 0.x keep the size and the offset of every member, and add members at the end.  So what
 * is declared here holds for all of them, and no header of XLA is needed to build.
 * tests/test_xla.py compares each declaration with the header of the jaxlib that is installed.
 *
 * Every structure begins with its size, which says what of it is there, and with a list of
 * extensions.
 */
#ifndef TSVDI_PYTHON_XLA_FFI_H
#define TSVDI_PYTHON_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

/* The oldest version of the interface.  Handlers name it where XLA does not tell its own. */
enum { XLA_MAJOR = 0, XLA_OLDEST_MINOR = 1 };

/* Opaque. */
struct xla_context;
struct xla_error;

enum xla_extension_type { XLA_EXTENSION_METADATA = 1 };

struct xla_extension {
    size_t size;
    enum xla_extension_type type;
    struct xla_extension *next;
};

struct xla_version {
    size_t size;
    struct xla_extension *extensions;
    int major_version;
    int minor_version;
};

/* What a handler tells when it is registered.  Newer versions have more, which XLA fills in. */
struct xla_metadata {
    size_t size;
    struct xla_version version;
    uint32_t traits; /* bits; 0: the call is not recorded into a CUDA graph */
};

struct xla_metadata_extension {
    struct xla_extension base;
    struct xla_metadata *metadata;
};

/* Some of the codes of absl::Status. */
enum xla_code {
    XLA_INVALID_ARGUMENT = 3,
    XLA_RESOURCE_EXHAUSTED = 8,
    XLA_FAILED_PRECONDITION = 9,
    XLA_UNIMPLEMENTED = 12,
    XLA_INTERNAL = 13
};

enum xla_dtype { XLA_S64 = 5, XLA_F32 = 11, XLA_F64 = 12, XLA_C64 = 15, XLA_C128 = 18 };

struct xla_buffer {
    size_t size;
    struct xla_extension *extensions;
    enum xla_dtype dtype;
    void *data;
    int64_t rank;
    int64_t *dims; /* [rank] */
};

struct xla_string {
    const char *text;
    size_t length;
};

struct xla_scalar {
    enum xla_dtype dtype;
    void *value;
};

enum xla_kind { XLA_BUFFER = 1, XLA_SCALAR = 3 };

/* Arguments, and likewise results. */
struct xla_arrays {
    size_t size;
    struct xla_extension *extensions;
    int64_t count;
    enum xla_kind *kinds; /* [count] */
    void **arrays;        /* [count], of struct xla_buffer if the kind is XLA_BUFFER */
};

struct xla_attributes {
    size_t size;
    struct xla_extension *extensions;
    int64_t count;
    enum xla_kind *kinds;      /* [count] */
    struct xla_string **names; /* [count] */
    void **values;             /* [count], of struct xla_scalar if the kind is XLA_SCALAR */
};

enum xla_stage { XLA_EXECUTE = 3 };

/* A call of a handler. */
struct xla_frame {
    size_t size;
    struct xla_extension *extensions;
    const struct xla_api *api;
    struct xla_context *context;
    enum xla_stage stage;
    struct xla_arrays arguments;
    struct xla_arrays results;
    struct xla_attributes attributes;
};

typedef struct xla_error *xla_handler(struct xla_frame *frame);

struct xla_error_args {
    size_t size;
    struct xla_extension *extensions;
    const char *text;
    enum xla_code code;
};

struct xla_stream_args {
    size_t size;
    struct xla_extension *extensions;
    struct xla_context *context;
    void *stream; /* out */
};

struct xla_device_args {
    size_t size;
    struct xla_extension *extensions;
    struct xla_context *context;
    int32_t device; /* out */
};

/* The functions of XLA.  Those between the ones that are used have no types here. */
struct xla_api {
    size_t size;
    struct xla_extension *extensions;
    struct xla_version version;
    const void *internal;
    struct xla_error *(*make_error)(struct xla_error_args *args);
    void (*before_stream[3])(void);
    struct xla_error *(*get_stream)(struct xla_stream_args *args);
    void (*before_device[12])(void);
    struct xla_error *(*get_device)(struct xla_device_args *args); /* not in the oldest versions */
};

/* The bytes of a structure up to the end of a member. */
#define XLA_SIZE(structure, member)                                                                \
    (offsetof(structure, member) + sizeof(((structure *)NULL)->member))

#endif
