/*
 * The Python extension module tsvd._core: what its files share.
 *
 *     module.c      the module itself, what the build can do
 *     errors.c      failures as exceptions
 *     svd.c         svd() and select()
 *     arrays.c      NumPy arrays in and out; alone knows NumPy
 *     handles.c     handles of the core, kept for later calls
 *     cuda.c        devices and libraries
 *     scipy_blas.c  SciPy's BLAS
 *
 * A file's functions are in a table that module.c adds to the module.
 */
#ifndef TSVDI_MODULE_H
#define TSVDI_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "tsvd/tsvd.h"

/* Handles that are not in use. */
enum { HANDLES_KEPT = 8 };

typedef struct module_state {
    PyObject *LinAlgError; /* numpy.linalg.LinAlgError */
    PyObject *directories; /* tuple of bytes: where cuBLAS is looked for; NULL: not told yet */
    _Atomic(tsvd_handle *) idle[HANDLES_KEPT];
    tsvd_blas blas;      /* SciPy's, */
    atomic_int has_blas; /* once this is BLAS_READY */
} module_state;

enum { BLAS_NONE, BLAS_UNDER_WAY, BLAS_READY };

extern PyMethodDef tsvdi_svd_methods[], tsvdi_cuda_methods[];

/* errors.c: the one place that turns a failure of the core into an exception; always NULL.  Of
   INTERRUPTED the exception is set already, by options.check(). */
PyObject *tsvdi_raise(PyObject *module, tsvd_status status, const tsvd_error *error);

/* handles.c: a handle of a device (-1: the CPU) for one call, and its way back; NULL with an
   exception set. */
tsvd_handle *tsvdi_handle_take(PyObject *module, int device);
void tsvdi_handle_give(PyObject *module, tsvd_handle *handle);

/* Ends the handles that are not in use; returns how many were of a CUDA device. */
int tsvdi_handles_drop(module_state *state);

/* The configuration of new handles, whose lists live as long as `keep`, a new reference; -1 with
   an exception set. */
int tsvdi_handle_config(PyObject *module, tsvd_config *config, PyObject **keep);

/* scipy_blas.c: gives a handle SciPy's BLAS, which is imported; -1 with an exception set.  And the
   same only if it is imported already. */
int tsvdi_load_scipy_blas(module_state *state, tsvd_handle *handle);
bool tsvdi_give_scipy_blas(module_state *state, tsvd_handle *handle);

#endif
