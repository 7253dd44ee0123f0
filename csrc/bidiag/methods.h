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

#endif
