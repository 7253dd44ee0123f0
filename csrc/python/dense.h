/*
 * tsvd._core: what calls for dense matrices share, in dense.c and reduction.c.
 */
#ifndef TSVDI_MODULE_DENSE_H
#define TSVDI_MODULE_DENSE_H

#include "python/python_call.h"

/* The plan of a call for dense matrices. */
tsvd_status tsvdi_dense_call_plan(struct call *call, tsvd_plan *plan, tsvd_error *error);

#endif
