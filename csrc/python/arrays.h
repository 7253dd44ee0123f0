/*
 * tsvd._core: the arrays of a call, and the problem of the core that they make.
 *
 * The functions are called in the order in which they stand here; all but the last return -1 with
 * an exception set where something is wrong with an argument.
 */
#ifndef TSVDI_MODULE_ARRAYS_H
#define TSVDI_MODULE_ARRAYS_H

#include <stdbool.h>

#include "python/module.h"

enum { OUT_L, OUT_S, OUT_R, OUT_COUNT };

/* References, NULL before they are taken; the problem points into these arrays. */
struct arrays {
    PyObject *d, *e;
    PyObject *out[OUT_COUNT];
};

/* Once, before all else. */
int tsvdi_arrays_import(void);

/* d (..., n) and e (..., n-1), as yet not converted: the dtype, order and batch of the problem,
   and all values wanted. */
int tsvdi_arrays_take(struct arrays *arrays, PyObject *d, PyObject *e, tsvd_problem *problem);

/* Refuses at once results and workspace that cannot fit: the system would grant the memory and end
   the process when it is touched. */
int tsvdi_arrays_check_memory(const tsvd_problem *problem, const tsvd_options *options,
                              bool vectors);

/* d and e in the dtype of the problem, to be read by their strides; converted only if they must. */
int tsvdi_arrays_input(struct arrays *arrays, tsvd_problem *problem);

/* The results of the range wanted: the caller's arrays, `given` (L, s, R), or new ones where it is
   None; without vectors s alone. */
int tsvdi_arrays_output(struct arrays *arrays, tsvd_problem *problem, bool vectors,
                        PyObject *given);

void tsvdi_arrays_release(struct arrays *arrays);

#endif
