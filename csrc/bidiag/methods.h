/*
 * The methods, a row each: what a method offers, what it needs, how it runs.
 *
 * To write a new method:
 *     tsvd.h           its number in enum tsvd_method
 *     bidiag/NAME.c    the algorithm: run() and bytes() of the row, declared below
 *     methods.c        its row
 *     backend/ops.h    a table of operations for it, if it needs what no family offers; the tables
 *                      of cpu/ and cuda/ then gain it, each in a file of its own
 *     plan.c           where AUTO chooses it, if it does
 *     CMakeLists.txt   the new files; backend/precision.h: the new names
 * Python, the command line and the tests of all methods find it by its row's name.
 */
#ifndef TSVDI_METHODS_H
#define TSVDI_METHODS_H

#include "backend/ops.h"

/* Tables of operations that a back end must have for a method. */
enum { NEEDS_VALUES = 1, NEEDS_VECTORS = 2, NEEDS_DC = 4, NEEDS_GIVENS = 8 };

struct svd_method {
    const char *name;
    int with_vectors;    /* 1: computes vectors */
    int without_vectors; /* 1: computes values alone by itself; 0: AUTO does so in its place */
    int part_vectors;    /* 1: computes the vectors of a part of the values */
    int batches;         /* 1: works on a chunk of many matrices at once; 0: on one */
    int host_entries;    /* 1: reads d and e on the host */
    unsigned needs, needs_for_vectors;

    /* Computes the results of a chunk, in which at least one matrix is ordinary; those of others
       may hold anything. */
    tsvd_status (*run)(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                       tsvd_info *info);

    /* Workspace of run(), at most. */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* NULL for AUTO and for a number that is no method. */
const struct svd_method *tsvdi_method_of(tsvd_method method);

/* plan.c: what a call does.  On TSVD_ERR_LIBRARY told.needs_blas is filled all the same. */
tsvd_status tsvdi_plan_call(const struct svd_problem *problem, struct svd_plan *plan,
                            tsvd_error *error);

/* svd.c and select.c, see struct precision. */
tsvd_status tsvdi_svd(const struct svd_problem *problem, tsvd_info *info, tsvd_error *error);
tsvd_status tsvdi_select(const struct svd_problem *problem, double low, double high, int64_t *first,
                         int64_t *count, tsvd_error *error);

/* ---- rows ---- */

/* dc.c: vectors in the order of the values, their signs fixed. */
tsvd_status tsvdi_dc(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                     tsvd_info *info);
struct bytes tsvdi_dc_bytes(const struct svd_plan *plan);

tsvd_status tsvdi_qr(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                     tsvd_info *info);
struct bytes tsvdi_qr_bytes(const struct svd_plan *plan);

tsvd_status tsvdi_givens(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                         tsvd_info *info);
struct bytes tsvdi_givens_bytes(const struct svd_plan *plan);

tsvd_status tsvdi_bisect(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                         tsvd_info *info);
struct bytes tsvdi_bisect_bytes(const struct svd_plan *plan);

/* ---- parts that methods share ---- */

/* rotations.c: what QR and the givens method have in common.  An iteration brings B to diagonal
   form by rotations:

   d, e         [n], [n-1] in: B scaled to entries of at most 2; out: d the values, of either sign,
                in no order; e zero
   eps          off-diagonal entries up to this count as zero, 0: full accuracy
   right, left  the vectors of B's rows (R) and columns (L); x = NULL: values only */
typedef tsvd_status svd_iteration(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps,
                                  struct vectors right, struct vectors left, tsvd_info *info);

/* Runs an iteration on the only matrix of a chunk.  refine: the values are refined by bisection
   unless eps was all that was asked. */
tsvd_status tsvdi_rotations(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                            svd_iteration *iterate, int refine, tsvd_info *info);

/* Workspace of tsvdi_rotations() beside that of the iteration and the back end. */
struct bytes tsvdi_rotations_bytes(const struct svd_plan *plan);

/* bisect.c: the values of a chunk from where the plan says, to `s` in problem->to.  hint: as in
   struct values_job; eps: in the units of B. */
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
