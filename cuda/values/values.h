/*
 * Singular values on the device: what the files of this folder share.
 *
 *   values/values.cu   the operation of the seam, and which search finds what
 *   values/prepare.cu  prepares a matrix for counts
 *   values/search.cu   the values of one matrix, with the whole device
 *   values/hints.cu    approximations for a batch of small matrices
 *   values/batch.cu    the values of a batch, or of a small matrix, with a thread for each value
 */
#ifndef TSVDI_CUDA_VALUES_VALUES_H
#define TSVDI_CUDA_VALUES_VALUES_H

#include "values/counts.h"

/* The forms of counts (csrc/math/sturm.h). */
enum form { PLAIN, TWOFOLD, EXTENDED };

/* What is to be found, as for tsvdi_cuda_values_on_device(). */
struct values_device {
    int64_t n, count;
    int64_t first, last;
    const real *d_d, *d_e, *d_hint;
    real eps;
    real *d_s;
};

/* Entries of one side with the padding of the last tile, for any form. */
static inline int64_t
sturm_capacity(int64_t n, bool is_bottom)
{
    const int64_t tile = plain_form::TILE, entries = is_bottom ? n : 2 * n;

    static_assert((int)plain_form::TILE % (int)extended_form::TILE == 0 &&
                      (int)plain_form::TILE % (int)twofold_form::TILE == 0 &&
                      (int)plain_form::TILE % (int)STRETCH == 0,
                  "tiles hold each other and whole stretches");
    return (entries + tile - 1) / tile * tile;
}

/* Prepares a matrix: begin() for plain counts, add() also for another form, TWOFOLD or EXTENDED,
   unless that is done.  end() is due also after a failure. */
tsvd_status tsvdi_cuda_values_sturm_begin(struct cuda_call *call, int64_t n, const real *d_d,
                                          const real *d_e, struct device_sturm *matrix);
tsvd_status tsvdi_cuda_values_sturm_add(struct cuda_call *call, enum form form, const real *d_d,
                                        const real *d_e, struct device_sturm *matrix);
void tsvdi_cuda_values_sturm_end(struct cuda_call *call, struct device_sturm *matrix);

/* Bytes on the device of a matrix of order n with all forms. */
uint64_t tsvdi_cuda_values_sturm_bytes(int64_t n);

/* Each finds the values, to v.d_s.  Neighbours may have crossed by an ulp.  The search is for one
   matrix; `done` is the share of all work that is then done.  The batch is for orders up to
   VALUES_BATCH_ORDER. */
tsvd_status tsvdi_cuda_values_search(struct tsvd_context *ctx, struct values_device v, double done,
                                     int64_t *counts);
tsvd_status tsvdi_cuda_values_batch(struct tsvd_context *ctx, struct values_device v,
                                    int64_t *counts);

/* Whether values without hints from the caller are found sooner if hints() makes some first:
   approximations, in descending order, to d_hint[count (last - first)]. */
bool tsvdi_cuda_values_hinted(const struct tsvd_context *ctx, struct values_device v);
tsvd_status tsvdi_cuda_values_hints(struct cuda_call *call, struct values_device v, real *d_hint);

/* The most bytes that search() or batch() takes on the device. */
uint64_t tsvdi_cuda_values_search_bytes(const struct svd_plan *plan);

/* Whether a matrix fits in the memory of a block, as a batch wants. */
bool tsvdi_cuda_values_fit(const struct cuda_device *device, struct values_device v);

#endif
