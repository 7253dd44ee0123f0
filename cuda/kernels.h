/*
 * The numerical part of the CUDA back end: the seam's header seen from C++, and the
 * operations that have files of their own.  Compiled for each precision.
 *
 * On the device both sides of singular vectors are kept as rows: vector j is row j of a
 * C-ordered n x n array, so that a rotation of two vectors reads and writes them
 * coalesced.  Only the last step, order, transposes the left ones into columns.
 */
#ifndef TSVDI_KERNELS_H
#define TSVDI_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/device.h"
#include "tuning.h"

extern "C" {
#include "backend/ops.h"
}

/* Up to WAVE_SWEEPS consecutive sweeps of one direction that pass over the vectors together:
   in step w sweep k rotates rows w - k and w - k + 1, counted from `first` in that direction. */
struct device_wave {
    int64_t first;
    int64_t steps; /* positions spanned + WAVE_SWEEPS - 1 */
    int up;
    int sweeps;
    int64_t begin[WAVE_SWEEPS];  /* position at which sweep k starts, from `first` */
    int64_t count[WAVE_SWEEPS];  /* its rotations */
    int64_t offset[WAVE_SWEEPS]; /* of its first one in the log */
};

/* Vectors as rows of device memory, those of a matrix of order n after another's.  Row j is nonzero
   only in the columns that have the numbers low[j] .. high[j] - 1 (device memory), those of matrix
   m having the numbers from m n on, and elsewhere undefined; NULL: everywhere. */
struct device_rows {
    const real *x;
    int64_t n, stride;
    const int64_t *low, *high;
};

/* Blocks of `size` threads (or entries, rows, ...) that `count` of them take. */
static inline unsigned
blocks_for(int64_t count, int64_t size)
{
    return (unsigned)((count + size - 1) / size);
}

/* Numbers between the rows of an array of order n that has aligned rows. */
static inline int64_t
device_stride(int64_t n)
{
    return (n + 15) / 16 * 16;
}

static inline struct cuda_call *
cuda_of(struct tsvd_context *ctx)
{
    return ctx->cuda;
}

/* waves[side] consecutive waves (device memory) for right and left vectors; group g of a side is
   begin[g] .. begin[g + 1] - 1 of them (device memory), groups do not share vectors. */
tsvd_status tsvdi_cuda_rotate_on_device(struct tsvd_context *ctx,
                                        const struct device_wave *const d_wave[2],
                                        const struct rotation *const d_log[2],
                                        const int64_t *const d_begin[2], int64_t groups,
                                        const struct vectors vectors[2]);
/* Of each of `batch` matrices k vectors: to_columns (n x k) column i = columns' row from[i],
   to_rows (k x n) row i = rows' row from[i], from holding k numbers of rows for each matrix; the
   entry of largest magnitude in each column is made positive, of equals the first.  negative[j]
   (NULL: 0): of vector j the two sides have different signs.  flip [batch k] is for work; all of
   this is device memory. */
tsvd_status tsvdi_cuda_order_rows(struct cuda_call *call, struct device_rows columns,
                                  struct device_rows rows, int64_t k, int64_t batch,
                                  const int64_t *d_from, const char *d_negative, char *d_flip,
                                  real *to_columns, real *to_rows);

/* Of each of `batch` matrices the values first .. last - 1, 0 the largest, by bisection to
   neighbouring numbers or to a width of eps; all arrays are device memory.
   d_d, d_e  [batch n] not scaled, e with a zero behind the n - 1 of each matrix; zero matrices may
             occur, NaN and infinity do not
   d_hint    [batch (last - first)] approximations in descending order, which only save time, or
             NULL
   d_s       [batch (last - first)] the values, descending */
tsvd_status tsvdi_cuda_values_on_device(struct tsvd_context *ctx, int64_t n, int64_t batch,
                                        const real *d_d, const real *d_e, int64_t first,
                                        int64_t last, const real *d_hint, real eps, real *d_s,
                                        int64_t *counts);

/* The tables of operations. */
extern const struct values_ops tsvdi_cuda_values;
extern const struct vectors_ops tsvdi_cuda_vectors;
extern const struct dc_ops tsvdi_cuda_dc;
extern const struct givens_ops tsvdi_cuda_givens;

/* arrays.cu: backend.load() and fill() for arrays of the device. */
tsvd_status tsvdi_cuda_device_load(struct tsvd_context *ctx, int host_entries, struct chunk *chunk);
tsvd_status tsvdi_cuda_device_fill(struct tsvd_context *ctx, int64_t i, int kind,
                                   struct results to);

/* Results from device memory to where the caller wants them; host results have then arrived. */
static inline tsvd_status
cuda_deliver(struct tsvd_context *ctx, void *to, const void *d_from, size_t bytes)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    if (ctx->problem->to == TSVD_HOST) {
        return tsvdi_cuda_download(call, ctx->threads, to, d_from, bytes);
    }
    CUDA_TRY(call, cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToDevice, call->stream));
out:
    return ret;
}

#endif
