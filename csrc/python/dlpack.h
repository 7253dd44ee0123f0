/*
 * The binary interface of DLPack, by which libraries hand arrays to each other in a capsule.
 *
 * Source: the specification of DLPack, https://dmlc.github.io/dlpack/latest/c_api.html and
 * python_spec.html there; versions 0.8 and 1.x.  The layouts are facts of it; the names are ours.
 */
#ifndef TSVDI_MODULE_DLPACK_H
#define TSVDI_MODULE_DLPACK_H

#include <stdint.h>

/* Names of capsules: those that hold an array, and those whose array has been taken. */
#define DLPACK_NAME "dltensor"
#define DLPACK_USED "used_dltensor"
#define DLPACK_VERSIONED "dltensor_versioned"
#define DLPACK_VERSIONED_USED "used_dltensor_versioned"

/* A reader of a major version reads all its minor versions.  1.0 is what we write. */
enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };

/* Kinds of devices, those that we know. */
enum {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3, /* pinned memory of the host */
    DLPACK_CUDA_MANAGED = 13
};

/* Kinds of numbers. */
enum {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_OPAQUE = 3,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6
};

/* Flags of a versioned array. */
#define DLPACK_READ_ONLY UINT64_C(1)

struct dlpack_device {
    int32_t type; /* DLPACK_CPU, ... */
    int32_t id;   /* its number among those of the type */
};

struct dlpack_dtype {
    uint8_t code;   /* DLPACK_INT, ... */
    uint8_t bits;   /* of a number */
    uint16_t lanes; /* numbers in an entry, 1 but for vectors */
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t ndim;
    struct dlpack_dtype dtype;
    int64_t *shape;       /* [ndim] */
    int64_t *strides;     /* [ndim] entries, not bytes; NULL: C-contiguous */
    uint64_t byte_offset; /* from data to the first entry */
};

/* What a capsule "dltensor" points to. */
struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;                             /* the exporter's */
    void (*deleter)(struct dlpack_managed *m); /* gives it back; NULL: nothing to do */
};

/* What a capsule "dltensor_versioned" points to.  Up to the deleter all versions are alike. */
struct dlpack_managed_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dlpack_managed_versioned *m);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

#endif
