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

enum { OUT_L, OUT_S, OUT_R, OUT_COUNT };

struct arrays {
    PyObject *d, *e;           /* references to the input, arrays of NumPy or Borrowed (exchange.h);
                                  NULL before it is taken */
    bool convert_d, convert_e; /* the core cannot read them as they are */
    PyObject *out[OUT_COUNT];  /* references to the results; NULL before they are taken */

    tsvd_dtype dtype;                         /* the type that the core computes in */
    int64_t n;                                /* order of every matrix */
    int64_t count;                            /* values that are wanted of each matrix */
    int batch_ndim;                           /* leading dimensions of the batch */
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS]; /* [batch_ndim] */

    tsvd_array core_d, core_e;      /* d and e as the core takes them */
    tsvd_array core_out[OUT_COUNT]; /* the results as the core takes them */
};

/* Imports NumPy's C interface; once, before all else. */
int tsvdi_arrays_import(void);

/* Makes *arrays empty: nothing is taken yet. */
void tsvdi_arrays_init(struct arrays *arrays);

/* Takes d (..., n) and e (..., n-1) as they are, and sets dtype, order and batch, core_d and
   core_e. Their data are those of the call only after tsvdi_arrays_input(). */
int tsvdi_arrays_take(struct arrays *arrays, PyObject *d, PyObject *e);

/* Refuses at once results and workspace that cannot fit: the system would grant the memory and end
   the process when it is touched. */
int tsvdi_arrays_check_memory(const struct arrays *arrays, const tsvd_plan *plan, bool vectors);

/* Gives core_d and core_e the data of d and e in the dtype of the call.  The core reads them by
   their strides; they are converted only if they must be.  May let other threads run. */
int tsvdi_arrays_input(struct arrays *arrays);

/* Takes the arrays for the results of the wanted range: those of the tuple `given` (L, s, R), or
   new ones if it is None.  Without vectors only s is taken. */
int tsvdi_arrays_output(struct arrays *arrays, bool vectors, PyObject *given);

void tsvdi_arrays_release(struct arrays *arrays);

#endif
