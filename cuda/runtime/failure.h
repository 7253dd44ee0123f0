/*
 * Failed calls of the CUDA runtime; usable.cu has the functions.
 */
#ifndef TSVDI_CUDA_RUNTIME_FAILURE_H
#define TSVDI_CUDA_RUNTIME_FAILURE_H

#include <cuda_runtime.h>

#include "tsvd/tsvd.h"

/* The runtime keeps the code of a failed call until it is read; the check after some later launch
   must not find it. */
void tsvdi_cuda_forget(void);

/* Writes call, code, text and place into the error, and forgets the failure; returns the status. */
tsvd_status tsvdi_cuda_failed(cudaError_t code, const char *call, const char *file, int line,
                              tsvd_error *error);

#endif
