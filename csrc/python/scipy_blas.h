/*
 * SciPy's BLAS for the core.
 */
#ifndef TSVDI_SCIPY_BLAS_H
#define TSVDI_SCIPY_BLAS_H

/* Imports it at the first call; -1 with a Python exception set on failure.  Needs the GIL. */
int tsvdi_load_scipy_blas(void);

#endif
