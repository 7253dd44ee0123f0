/*
 * The Python extension module tsvd._core: what its files share.
 *
 *     module.c         the module itself, errors, what the build can do
 *     svd.c     svd() and select()
 *     arrays.c  NumPy arrays in and out; alone knows NumPy
 *     cuda.c    devices and libraries
 *
 * A file's functions are in a table that module.c adds to the module.
 */
#ifndef TSVDI_MODULE_H
#define TSVDI_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tsvd/tsvd.h"

extern PyMethodDef tsvdi_svd_methods[], tsvdi_cuda_methods[];

/* The one place that turns a status of the core into an exception; always NULL.
   Of INTERRUPTED the exception is set already, by options.check().  matrix: its index in
   the batch, C order, or -1. */
PyObject *tsvdi_raise_status(PyObject *module, tsvd_status status, int64_t matrix,
                             const char *text);

#endif
