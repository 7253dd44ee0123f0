/*
 * tsvd._core: arrays of other libraries, by DLPack (dlpack.h) or the CUDA array interface
 * (https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, versions 2 and 3).
 *
 *     borrowed.c   a Borrowed object holds an array until nothing reads or writes it any more
 *     exchange.c   the arrays of a call
 *     results.c    a DeviceArray is device memory of tsvd, which other libraries borrow
 */
#ifndef TSVDI_MODULE_EXCHANGE_H
#define TSVDI_MODULE_EXCHANGE_H

#include "python/arrays.h"
#include "python/dlpack.h"

/* An array that belongs to another library. */
typedef struct borrowed {
    PyObject_HEAD
    tsvd_array core;           /* the array; core.dtype counts only if tsvd computes in `dtype` */
    int device;                /* its CUDA device, or TSVD_DEVICE_CPU */
    struct dlpack_dtype dtype; /* type of its entries */
    bool readonly;             /* it must not be written to */
    /* how the array is given back: one of the three is not NULL; all are NULL before it is taken */
    struct dlpack_managed *managed;
    struct dlpack_managed_versioned *versioned;
    PyObject *owner;
} borrowed;

/* Borrows an array.  name: of the argument, for errors.  exported: a new capsule of DLPack, or
   (array, its CUDA array interface); device: the CUDA device where the latter lies.  Returns a
   Borrowed, or NULL with an exception set; a capsule is used up in any case. */
PyObject *tsvdi_borrow(PyObject *module, const char *name, int device, PyObject *exported);

/* Whether tsvd computes in a dtype: float32 and float64, complex64 and complex128. */
bool tsvdi_is_computed(struct dlpack_dtype dtype);

/* The name of a dtype as NumPy has it. */
PyObject *tsvdi_dtype_name(struct dlpack_dtype dtype);

/* Refuses an array for its dtype, as tsvdi_shapes_refuse_dtype(); returns -1. */
int tsvdi_refuse_borrowed(const borrowed *b, const char *name, bool phases);

/* Make the types of a module, which go into its state. */
PyObject *tsvdi_borrowed_type(PyObject *module);
PyObject *tsvdi_device_array_type(PyObject *module);

/* Takes the input on a CUDA device, as tsvdi_arrays_take() and tsvdi_arrays_input() take that of
   NumPy.  The libraries of the arrays make the handle's stream wait for the work that is under way
   on them.  handle: NULL: only check the arguments. */
int tsvdi_exchange_take(struct arrays *arrays, tsvd_handle *handle, int device,
                        PyObject *const *input);

/* Takes the arrays for the results, as tsvdi_arrays_output(): those of the tuple `given`, or new
   ones of the type DeviceArray.  keep: an object that lives as long as they do. */
int tsvdi_exchange_output(struct arrays *arrays, tsvd_handle *handle, bool vectors, PyObject *given,
                          PyObject *keep);

/* Borrows an array that the core may write to, as tsvdi_arrays_writable(); NULL with an exception
   set on failure. */
PyObject *tsvdi_exchange_writable(const struct arrays *arrays, tsvd_handle *handle,
                                  const char *name, PyObject *array, tsvd_array *core);

/* A new DeviceArray of a dtype and shape; NULL with an exception set on failure.  keep: NULL or an
   object that lives as long as its memory. */
PyObject *tsvdi_device_array_new(PyObject *module, tsvd_handle *handle, tsvd_dtype dtype, int ndim,
                                 const int64_t *shape, PyObject *keep);

/* What the core writes to. */
const tsvd_array *tsvdi_device_array_core(PyObject *array);

#endif
