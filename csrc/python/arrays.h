/*
 * tsvd._core: the arrays of a call, as Python and as the core have them.
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
    /* references, NULL before they are taken */
    PyObject *d, *e;
    PyObject *out[OUT_COUNT];

    tsvd_dtype dtype; /* that the core computes in */
    int64_t n;        /* order of every matrix */
    int64_t count;    /* values that are wanted of each */
    int batch_ndim;
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS];

    /* as the core takes them */
    tsvd_array core_d, core_e;
    tsvd_array core_out[OUT_COUNT];
};

/* Once, before all else. */
int tsvdi_arrays_import(void);

/* Nothing is taken yet. */
void tsvdi_arrays_init(struct arrays *arrays);

/* d (..., n) and e (..., n-1), as yet not converted: dtype, order and batch.  core_d and core_e get
   their shapes, and no data. */
int tsvdi_arrays_take(struct arrays *arrays, PyObject *d, PyObject *e);

/* Refuses at once results and workspace that cannot fit: the system would grant the memory and end
   the process when it is touched. */
int tsvdi_arrays_check_memory(const struct arrays *arrays, const tsvd_plan *plan, bool vectors);

/* d and e in the dtype of the call, to be read by their strides; converted only if they must. */
int tsvdi_arrays_input(struct arrays *arrays);

/* The results of the range wanted: the caller's arrays, `given` (L, s, R), or new ones where it is
   None; without vectors s alone. */
int tsvdi_arrays_output(struct arrays *arrays, bool vectors, PyObject *given);

void tsvdi_arrays_release(struct arrays *arrays);

#endif
