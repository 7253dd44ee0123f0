/*
 * The Python extension module tsvd._core: what its files share.
 *
 *     module.c      the module itself, what the build can do
 *     errors.c      failures as exceptions
 *     options.c     options(): what is asked of a call
 *     python_call.c what calls that compute share
 *     svd.c         svd() and select()
 *     dense.c       dense_svd()
 *     inverse.c     inv()
 *     reduction.c   reduce(), and matrices that are in bidiagonal form
 *     arrays.c      NumPy arrays in and out; alone knows NumPy
 *     shapes.c      their shapes, and those of other libraries
 *     exchange.c    arrays of other libraries in and out, with borrowed.c and results.c
 *     handles.c     handles of the core, kept for later calls
 *     cuda.c        devices and libraries
 *     scipy_blas.c  SciPy's BLAS
 *     xla.c         custom calls of XLA
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

/* Puts a new reference in the place of an old one, which may be NULL.  What the old object's end
   runs finds the new one. */
static inline void
tsvdi_set_reference(PyObject **place, PyObject *reference)
{
    PyObject *before = *place;

    *place = reference;
    Py_XDECREF(before);
}

/* Most handles that are kept while they are not in use: of one device, of all CUDA devices, and in
   all.  A handle of a CUDA device may keep an eighth of its memory. */
enum { DEVICE_HANDLES = 4, CUDA_HANDLES = 8, HANDLES_KEPT = DEVICE_HANDLES + CUDA_HANDLES };

typedef struct module_state {
    PyObject *LinAlgError; /* numpy.linalg.LinAlgError */
    PyObject *Stopped;     /* what a part of a call raises when another part has failed */
    PyObject *Borrowed;    /* the types of exchange.h */
    PyObject *DeviceArray;
    PyObject *Reduction;    /* the type of reduction.c */
    PyObject *Options;      /* the type of options.c */
    PyObject *option_names; /* tuple of the names of its fields */
    PyObject *directories;  /* tuple of bytes: where cuBLAS is looked for; NULL: not told yet.  Only
                              handles.c uses it, as another thread may replace it */
    _Atomic(tsvd_handle *) idle[HANDLES_KEPT]; /* handles not in use; NULL: free.  First those of
                                                  the CPU, see handles.c */
    _Atomic(tsvd_blas *) blas; /* SciPy's; set once, never changed; NULL: not imported */
} module_state;

/* Options with the default of every field. */
static inline tsvd_options
tsvdi_default_options(void)
{
    tsvd_options options;

    tsvd_options_init(&options, sizeof options);
    return options;
}

/* The tuning constants of the build, ends with a name of NULL; made by cmake/tuning.cmake. */
struct tuning_constant {
    const char *name;
    double value;
};
extern const struct tuning_constant tsvdi_tuning_constants[];

extern PyMethodDef tsvdi_options_methods[], tsvdi_svd_methods[], tsvdi_dense_methods[],
    tsvdi_inverse_methods[], tsvdi_reduction_methods[], tsvdi_cuda_methods[],
    tsvdi_exchange_methods[], tsvdi_results_methods[], tsvdi_xla_methods[];

/* errors.c: turns a failure of the core into an exception; no other function does.  Returns NULL.
   On TSVD_ERR_INTERRUPTED options.check() has set the exception already, unless it has forked the
   process and this is the child, or another part of the call has failed. */
PyObject *tsvdi_raise(PyObject *module, tsvd_status status, const tsvd_error *error);

/* The same for a call on so many matrices: the exception names the one that failed, unless it is
   the only one. */
PyObject *tsvdi_raise_of(PyObject *module, tsvd_status status, const tsvd_error *error,
                         int64_t matrices);

/* errors.c: raises a TypeError, "NAME must be WANTED, not" the argument's type.  Returns -1. */
int tsvdi_refuse_type(const char *name, const char *wanted, PyObject *argument);

/* handles.c: take() returns a handle of a device (-1: the CPU) for one call, or NULL with an
   exception set; give() takes it back, and does nothing with NULL. */
tsvd_handle *tsvdi_handle_take(PyObject *module, int device);
void tsvdi_handle_give(PyObject *module, tsvd_handle *handle);

/* The parts of take() and give() that need no GIL: idle() returns NULL if no handle of the device
   is kept. */
tsvd_handle *tsvdi_handle_idle(module_state *state, int device);
void tsvdi_handle_keep(module_state *state, tsvd_handle *handle);

/* Ends the handles that are not in use; returns how many were of a CUDA device. */
int tsvdi_handles_drop(module_state *state);

/* Replaces the directories; takes the reference to the new tuple. */
void tsvdi_handle_directories(PyObject *module, PyObject *directories);

/* Sets the configuration of new handles.  Its lists live as long as *keep, a new reference.
   Returns -1, with an exception set, on failure. */
int tsvdi_handle_config(PyObject *module, tsvd_config *config, PyObject **keep);

/* scipy_blas.c: load() imports SciPy's BLAS and gives it to a handle; it returns -1 with an
   exception set on failure.  give() does so only if the BLAS was imported before, and returns
   whether it was. */
int tsvdi_load_scipy_blas(module_state *state, tsvd_handle *handle);
bool tsvdi_give_scipy_blas(module_state *state, tsvd_handle *handle);

/* New types, which are in the module's state then, and the names of the fields of Options. */
PyObject *tsvdi_reduction_type(PyObject *module);
PyObject *tsvdi_options_type(PyObject *module);
PyObject *tsvdi_options_names(void);

#endif
