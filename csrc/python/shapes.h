/*
 * tsvd._core: the shapes of a call, and whether its arrays overlap; the same for arrays of NumPy
 * and of a device.
 */
#ifndef TSVDI_MODULE_SHAPES_H
#define TSVDI_MODULE_SHAPES_H

#include "python/arrays.h"

/* A new tuple of integers. */
PyObject *tsvdi_shapes_tuple(int ndim, const int64_t *shape);

/* Sets n and the batch shape, from core_d (..., n) and core_e (..., n-1).  ndim of the two may be
   beyond what their shapes have room for: that is refused, and their shapes are not read. */
int tsvdi_shapes_input(struct arrays *arrays);

/* The shape of L (..., n, k), s (..., k) or R (..., k, n); returns the number of dimensions. */
int tsvdi_shapes_output(const struct arrays *arrays, int which, int64_t *shape);

/* An array of the caller for a result. */
struct given {
    PyObject *dtype; /* to be shown */
    bool same_dtype; /* it is that of the result */
    bool ready;      /* C-contiguous, aligned, writeable and in native byte order */
    int ndim;
    const int64_t *shape; /* [ndim] */
};

/* Refuses an array that cannot take the result. */
int tsvdi_shapes_check_given(const struct arrays *arrays, int which, const struct given *given);

/* Results may share memory neither with each other nor with the input. */
int tsvdi_shapes_check_overlap(const struct arrays *arrays);

/* Refuses an `out` that is no tuple of three. */
int tsvdi_shapes_check_out(PyObject *given);

/* Bytes of a number of the call. */
uint64_t tsvdi_shapes_size(const struct arrays *arrays);

/* The names of the results. */
extern const char *const tsvdi_out_names[OUT_COUNT];

#endif
