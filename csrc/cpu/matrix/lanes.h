/*
 * Small dense matrices in the lanes of the vector kernels (struct svd_lanes, struct inverse_lanes):
 * the kernels' arrays, and copies of the matrices.
 */
#ifndef TSVDI_CPU_MATRIX_LANES_H
#define TSVDI_CPU_MATRIX_LANES_H

#include "cpu/matrix/matrix.h"

enum { LANES_MAX = 64 / (int)sizeof(real) }; /* of the widest vectors */

/* An array of a kernel. */
struct lanes_array {
    real **at;
    int64_t numbers; /* reals of a lane */
};

/* Lays out arrays one after the other from `work` on, or NULL for none of them.  Returns the reals
   that they take. */
static inline int64_t
lanes_place(const struct lanes_array *arrays, size_t count, int64_t lanes, real *work)
{
    int64_t numbers = 0;

    for (size_t i = 0; i < count; i++) {
        *arrays[i].at = work == NULL ? NULL : work + numbers;
        numbers += arrays[i].numbers * lanes;
    }
    return numbers;
}

/* Matrices begin .. begin + count - 1 of a batch in lanes, or their transposes. */
struct lanes_source {
    const struct dense_matrices *a;
    int64_t begin;
    int count;
    int transposed;
    int conjugated; /* 1: the conjugates of the entries */
};

/* Where matrix i of the batch begins. */
static inline const char *
lanes_matrix(const struct dense_matrices *a, int64_t i)
{
    const ptrdiff_t offset = a->batch.ndim == 1 ? (ptrdiff_t)i * a->batch_strides[0]
                                                : batch_offset(&a->batch, a->batch_strides, i);

    return (const char *)a->data + offset;
}

/* Copies matrices of rows x columns to w [columns][rows] scalars.  The lanes after the last matrix
   become zero. */
static inline void
lanes_load(struct lanes_source from, int64_t lanes, int64_t rows, int64_t columns, real *w)
{
    const struct dense_matrices *a = from.a;
    const ptrdiff_t down = from.transposed ? a->column_stride : a->row_stride;
    const ptrdiff_t right = from.transposed ? a->row_stride : a->column_stride;
    const char *matrix[LANES_MAX];

    for (int lane = 0; lane < from.count; lane++) {
        matrix[lane] = lanes_matrix(a, from.begin + lane);
    }
    if (from.count < lanes) {
        memset(w, 0, (size_t)(N_PARTS * rows * columns * lanes) * sizeof *w);
    }
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++, w += N_PARTS * lanes) {
            const ptrdiff_t at = j * right + i * down;

            for (int lane = 0; lane < from.count; lane++) {
                const scalar x = *(const scalar *)(const void *)(matrix[lane] + at);

                w[lane] = n_real(x);
#if TSVD_COMPLEX
                w[lanes + lane] = from.conjugated ? -n_imag(x) : n_imag(x);
#endif
            }
        }
    }
}

#endif
