/*
 * Parts that methods share.
 */
#ifndef TSVDI_PARTS_H
#define TSVDI_PARTS_H

#include "backend/ops.h"

/* rotations.c: what QR and the givens method have in common.  An iteration brings B to diagonal
   form by rotations:

   d, e         [n], [n-1] in: B scaled to entries of at most 2; out: d the values, of either sign,
                in no order; e zero
   eps          off-diagonal entries up to this count as zero, 0: full accuracy
   right, left  the vectors of B's rows (R) and columns (L); x = NULL: values only */
typedef tsvd_status svd_iteration(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps,
                                  struct vectors right, struct vectors left, tsvd_info *info);

/* Runs an iteration on the only matrix of a chunk.  The values are then refined by bisection,
   unless options.eps > 0 and no value can overflow. */
tsvd_status tsvdi_rotations(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                            svd_iteration *iterate, tsvd_info *info);

/* Workspace of tsvdi_rotations(), without that of the iteration and the back end. */
struct bytes tsvdi_rotations_bytes(const struct svd_plan *plan);

/* qr.c: sweeps of implicit QR until the matrix is diagonal, or q->exhausted.  q: as qr_start() left
   it; d, e: [q->n], [q->n - 1], overwritten; fresh: 1 if the vectors start as the identity, which
   is not written yet.  It adds to info what QR and the givens method count alike. */
tsvd_status tsvdi_qr_sweeps(struct tsvd_context *ctx, struct qr_state *q, real *d, real *e,
                            struct vectors right, struct vectors left, int fresh, tsvd_info *info);

/* Workspace of tsvdi_qr_sweeps(). */
struct bytes tsvdi_qr_sweeps_bytes(const struct svd_plan *plan);

/* bisect.c: the values of a chunk, by the operations plan->values, to `s` in the space call->to.
   hint: as in struct values_job; eps: in the units of B. */
tsvd_status tsvdi_find_values(struct tsvd_context *ctx, const struct chunk *chunk, const real *hint,
                              real eps, real *s, tsvd_info *info);

/* options.eps as a number of this precision, 0: full accuracy. */
static inline real
tsvdi_eps(const struct tsvd_context *ctx)
{
    const double eps = ctx->options->eps;

    return eps <= 0 ? 0 : eps >= (double)R_LARGEST ? R_LARGEST : REAL(eps);
}

#endif
