/*
 * What an array's dtype says of its entries.
 */
#ifndef TSVDI_DTYPE_H
#define TSVDI_DTYPE_H

#include <stddef.h>

#include "tsvd/tsvd.h"

static inline int
dtype_is_complex(tsvd_dtype dtype)
{
    return dtype == TSVD_COMPLEX128 || dtype == TSVD_COMPLEX64;
}

/* The dtype of an entry's parts, and of values and norms. */
static inline tsvd_dtype
dtype_of_reals(tsvd_dtype dtype)
{
    return dtype == TSVD_FLOAT32 || dtype == TSVD_COMPLEX64 ? TSVD_FLOAT32 : TSVD_FLOAT64;
}

/* Bytes of an entry. */
static inline size_t
dtype_size(tsvd_dtype dtype)
{
    const size_t part = dtype_of_reals(dtype) == TSVD_FLOAT32 ? sizeof(float) : sizeof(double);

    return dtype_is_complex(dtype) ? 2 * part : part;
}

#endif
