/*
 * tsvd._core: the shapes of a call, and whether its arrays overlap; the same for arrays of NumPy
 * and of a device.
 */
#ifndef TSVDI_MODULE_SHAPES_H
#define TSVDI_MODULE_SHAPES_H

#include "python/arrays.h"

/* A new tuple of integers. */
PyObject *tsvdi_shapes_tuple(int ndim, const int64_t *shape);

/* d (..., n) and e (..., n-1), which broadcast; a (..., m, n); and a (..., n, n).  ndim of core_in
   may be above TSVD_MAX_DIMS: such an array is refused, and its shape is not read. */
extern const struct form tsvdi_bidiagonal_form, tsvdi_dense_form, tsvdi_inverse_form;

/* The shape of result `which`: L (..., rows, k), s (..., k) or R (..., k, columns), or the full L
   or R; returns the number of dimensions. */
int tsvdi_shapes_output(const struct arrays *arrays, int which, int64_t *shape);

/* An array of the caller for a result. */
struct given {
    PyObject *dtype; /* for error texts */
    bool same_dtype; /* dtype is that of the result */
    bool ready;      /* C-contiguous, aligned, writeable and in native byte order */
    int ndim;
    const int64_t *shape; /* [ndim] */
};

/* Refuses an array whose dtype is not that of the matrices, or that is not ready. */
int tsvdi_shapes_check_writable(const struct arrays *arrays, const char *name,
                                const struct given *given);

/* Refuses an array that cannot take the result. */
int tsvdi_shapes_check_given(const struct arrays *arrays, int which, const struct given *given);

/* Results may share memory neither with each other nor with the input. */
int tsvdi_shapes_check_overlap(const struct arrays *arrays);

/* Refuses an `out` that is not a tuple of three, or of one if there is one result. */
int tsvdi_shapes_check_out(const struct arrays *arrays, bool vectors, PyObject *given);

/* The item of `out` for a result. */
PyObject *tsvdi_shapes_item(PyObject *given, int which);

/* Raises a TypeError that names the dtype that tsvd does not take.  phases: d or e is complex. */
void tsvdi_shapes_refuse_dtype(const char *name, PyObject *dtype, bool phases);

/* The dtype of result `which`: values are real. */
tsvd_dtype tsvdi_shapes_dtype(const struct arrays *arrays, int which);

static inline bool
tsvdi_is_complex(tsvd_dtype dtype)
{
    return tsvd_dtype_of_values(dtype) != dtype;
}

/* The name of a dtype, as NumPy has it. */
const char *tsvdi_shapes_dtype_name(tsvd_dtype dtype);

#endif
