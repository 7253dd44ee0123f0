/*
 * tsvd._core: the arrays of a call, as Python and as the core have them.  Here are those of NumPy;
 * exchange.h has those of other libraries.
 *
 * The functions are called in the order in which they stand here; all but the last return -1 with
 * an exception set where something is wrong with an argument.
 */
#ifndef TSVDI_MODULE_ARRAYS_H
#define TSVDI_MODULE_ARRAYS_H

#include <stdbool.h>

#include "python/module.h"

enum { INPUTS_MOST = 2 };
enum { OUT_L, OUT_S, OUT_R, OUT_COUNT };

struct arrays;

/* The form in which a call takes matrices and gives results: the bidiagonal one, d and e and L, s,
   R; the dense one, a and U, S, Vh; that of inverses, a and X, which takes the place of s.  Names
   are those of Python's arguments. */
struct form {
    int inputs;                        /* arrays that the matrices are given by */
    const char *in[INPUTS_MOST];       /* [inputs] their names */
    const char *input;                 /* the same in one text */
    const char *out[OUT_COUNT];        /* the names of the results */
    const char *vectors;               /* the names of the vectors in one text */
    const char *results;               /* the names of all results in one text; NULL: there is one
                                          result alone, which is square */
    const char *order;                 /* what bounds an index of a value */
    bool takes_complex;                /* the matrices may be complex */
    int (*set_shape)(struct arrays *); /* sets rows, columns, n and the batch from core_in */
};

struct arrays {
    const struct form *form;
    PyObject *module;          /* borrowed: the call is one of its functions */
    PyObject *in[INPUTS_MOST]; /* references to the input, arrays of NumPy or Borrowed
                                  (exchange.h); NULL before it is taken */
    bool convert[INPUTS_MOST]; /* the core cannot read them as they are */
    PyObject *out[OUT_COUNT];  /* references to the results; NULL before they are taken */

    tsvd_dtype dtype;                         /* the type that the core computes in */
    int64_t rows, columns;                    /* of every matrix */
    int64_t n;                                /* the smaller of the two: values of every matrix */
    int64_t count;                            /* values that are wanted of each matrix */
    bool lower;                               /* bidiagonal: e is the sub-diagonal */
    bool full;                                /* L is rows x rows, R columns x columns */
    bool rows_apart;                          /* the caller's L need not be C-contiguous */
    int batch_ndim;                           /* leading dimensions of the batch */
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS]; /* [batch_ndim] */

    tsvd_array core_in[INPUTS_MOST]; /* the input as the core takes it */
    tsvd_array core_out[OUT_COUNT];  /* the results as the core takes them */
};

/* Imports NumPy's C interface; once, before all else. */
int tsvdi_arrays_import(void);

/* The length of d, if d and e are arrays of NumPy with one dimension; -1: they are not. */
int64_t tsvdi_arrays_order(PyObject *d, PyObject *e);

/* Makes *arrays empty: nothing is taken yet. */
void tsvdi_arrays_init(struct arrays *arrays, PyObject *module, const struct form *form);

/* Takes the input as it is, and sets dtype, shape and batch, and core_in.  core_in has the data of
   the call only after tsvdi_arrays_input(). */
int tsvdi_arrays_take(struct arrays *arrays, PyObject *const *input);

/* Refuses at once results and workspace that cannot fit: the system would grant the memory and end
   the process when it is touched. */
int tsvdi_arrays_check_memory(const struct arrays *arrays, const tsvd_plan *plan, bool vectors);

/* Gives core_in the data of the input in the dtype of the call.  The core reads them by their
   strides; they are converted only if they must be.  May let other threads run. */
int tsvdi_arrays_input(struct arrays *arrays);

/* Whether an array of the input is one that it converts. */
static inline bool
tsvdi_arrays_converts(const struct arrays *arrays)
{
    bool converts = false;

    for (int i = 0; i < arrays->form->inputs; i++) {
        converts = converts || arrays->convert[i];
    }
    return converts;
}

/* Takes the arrays for the results of the wanted range: those of the tuple `given`, or new ones if
   it is None.  Without vectors only the values are taken. */
int tsvdi_arrays_output(struct arrays *arrays, bool vectors, PyObject *given);

/* A new array, C-contiguous, and how the core takes it; NULL with an exception set on failure.
   name: for errors. */
PyObject *tsvdi_arrays_new(const char *name, tsvd_dtype dtype, int ndim, const int64_t *shape,
                           tsvd_array *core);

/* Describes an array of the caller that the core may write to, if it is one of the dtype of the
   call, C-contiguous, aligned, writeable and in native byte order. */
int tsvdi_arrays_writable(const struct arrays *arrays, const char *name, PyObject *array,
                          tsvd_array *core);

void tsvdi_arrays_release(struct arrays *arrays);

#endif
