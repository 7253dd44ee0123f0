/*
 * Where dense matrices of the caller's lie.
 */
#ifndef TSVDI_CUDA_MATRIX_SOURCE_H
#define TSVDI_CUDA_MATRIX_SOURCE_H

#include "matrix/matrix.h"

/* What W is read from: A, or its transpose. */
struct dense_source {
    const char *a;
    int64_t row, column; /* bytes between rows, and between columns, of W */
    int64_t begin;       /* the first matrix, as one of the batch */
    int batch_ndim;
    int64_t batch_shape[TSVD_MAX_BATCH_DIMS], batch_strides[TSVD_MAX_BATCH_DIMS];
};

static __host__ __device__ __forceinline__ const char *
source_matrix(const struct dense_source &from, int64_t index)
{
    return locate_matrix(from.a, from.batch_ndim, from.batch_shape, from.batch_strides, index);
}

/* Whether neighbours in a row of W are closer in memory than neighbours in a column. */
static inline bool
lies_by_row(const struct dense_source *from)
{
    return (from->column < 0 ? -from->column : from->column) <
           (from->row < 0 ? -from->row : from->row);
}

static inline struct dense_source
source_of(const struct dense_matrices *a, int64_t begin, bool transposed)
{
    struct dense_source from = {};

    from.a = (const char *)a->data;
    from.row = transposed ? a->column_stride : a->row_stride;
    from.column = transposed ? a->row_stride : a->column_stride;
    from.begin = begin;
    from.batch_ndim = a->batch.ndim;
    for (int i = 0; i < a->batch.ndim; i++) {
        from.batch_shape[i] = a->batch.shape[i];
        from.batch_strides[i] = a->batch_strides[i];
    }
    return from;
}

/* load.cu: uploads `count` matrices, r x c, in the order in which they lie, row by row or column by
   column.  Then *from is the copy on the device. */
tsvd_status tsvdi_cuda_dense_upload(struct cuda_call *call, int64_t r, int64_t c, int64_t count,
                                    scalar *d_to, struct dense_source *from);

#endif
