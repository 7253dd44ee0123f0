/*
 * The methods, a row each: what a method offers, what it needs, how it runs.
 *
 * To write a new method:
 *     tsvd.h               its number in enum tsvd_method, below JACOBI: the table ends there
 *     bidiag/NAME.c        the algorithm: run() and bytes() of the row, declared below
 *     methods.c            its row
 *     plan.c               where AUTO chooses it, if it does
 *     CMakeLists.txt       the new files
 *     backend/precision.h  the new names
 *
 * If it needs operations that no family offers:
 *     backend/ops.h        a table of them, and its place in struct backend
 *     methods.h, plan.c    a bit NEEDS_NAME below, and the question for it in check_method()
 *     cpu/, cuda/          the operations, in a file of their own
 *
 * Python and the command line then accept its name.  Three places name methods one by one:
 * is_measured() in api/crossover.c, those for which device=None may mean a CUDA device; the help
 * texts; the tests.
 */
#ifndef TSVDI_METHODS_H
#define TSVDI_METHODS_H

#include "backend/ops.h"

/* Tables of operations that a back end must have for a method. */
enum { NEEDS_VALUES = 1, NEEDS_VECTORS = 2, NEEDS_DC = 4, NEEDS_GIVENS = 8 };

struct svd_method {
    const char *name;    /* as Python, the command line and error texts have it */
    int with_vectors;    /* 1: computes vectors */
    int without_vectors; /* 1: computes values alone by itself; 0: AUTO does, instead of it */
    int part_vectors;    /* 1: computes the vectors of a part of the values */
    int batches;         /* 1: works on a chunk of many matrices at once; 0: on one */
    int host_entries;    /* 1: reads d and e on the host */
    unsigned needs, needs_for_vectors; /* NEEDS_ bits of all calls; further ones with vectors */

    /* Computes the results of a chunk in which at least one matrix is ordinary.  The results of
       the other matrices may hold anything. */
    tsvd_status (*run)(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                       tsvd_info *info);

    /* Workspace of run(), at most. */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* The row of a method; NULL for AUTO, for JACOBI, which is for dense matrices (dense/jacobi.c), and
   for a number that is no method. */
const struct svd_method *tsvdi_method_of(tsvd_method method);

/* ---- rows ---- */

/* run() and bytes() of each method, in the file of its name. */
tsvd_status tsvdi_dc(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                     tsvd_info *info);
struct bytes tsvdi_dc_bytes(const struct svd_plan *plan);

tsvd_status tsvdi_twisted(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                          tsvd_info *info);
struct bytes tsvdi_twisted_bytes(const struct svd_plan *plan);

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
