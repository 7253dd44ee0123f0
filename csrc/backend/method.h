/*
 * A method: what it offers, what it needs, how it runs.
 *
 * To write a new method:
 *     tsvd.h               its number in enum tsvd_method, the last one before COUNT
 *     bidiag/NAME.c        the algorithm, and its row, tsvdi_method_NAME; for a method of dense
 *                          matrices dense/NAME.c
 *     method.h             the row, among those declared below
 *     dense/methods.c      the row in the table
 *     CMakeLists.txt       the new file
 *     backend/precision.h  the new names
 *     bidiag/plan.c        where AUTO chooses it, if it does
 *
 * If it needs operations that no family offers:
 *     backend/ops.h        a table of them, and its place in struct backend
 *     method.h, plan.c     a bit NEEDS_NAME below, and the question for it in check_method()
 *     cpu/, cuda/          the operations, in a file of their own
 *
 * C, Python and the command line then accept its name.  What names the methods one by one, for
 * people: the docstrings of python/tsvd/_api.py and linalg.py, the help of _cli.py, tables of
 * docs/, CHANGELOG; and lists of methods in the tests.
 *
 * run() writes the results of all matrices of the chunk to `to`, which lies in the space call->to.
 * Signs are those that tsvd.h promises.  d and e are on the host only with host_entries; on a CUDA
 * device chunk->d_d and d_e have them.  It may return before copies to the host are done.  There is
 * no way to offer a method on the CPU alone but a table of operations that CUDA lacks.
 */
#ifndef TSVDI_METHOD_H
#define TSVDI_METHOD_H

#include "backend/precision.h"

struct bytes; /* host/bytes.h */
struct chunk; /* backend/ops.h */
struct results;
struct tsvd_context;

/* Tables of operations that a back end must have for a method. */
enum { NEEDS_VALUES = 1, NEEDS_VECTORS = 2, NEEDS_DC = 4, NEEDS_GIVENS = 8 };

/* What a CUDA device was measured to be faster with than the CPU. */
enum { FASTER_VALUES = 1, FASTER_VECTORS = 2 };

struct method {
    tsvd_method number;
    const char *name;          /* as Python, the command line and error texts have it */
    unsigned faster_on_device; /* FASTER_ bits: device=None may mean a CUDA device */

    /* ---- bidiagonal matrices, and through them dense ones; run == NULL: it has none ---- */

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

    /* ---- dense matrices, without a reduction; NULL: A is reduced, and run() decomposes B ---- */

    tsvd_status (*dense_plan)(const struct dense_problem *problem, tsvd_plan *reported,
                              tsvd_error *error);
    tsvd_status (*dense_svd)(const struct dense_problem *problem, const tsvd_plan *reported,
                             tsvd_info *info, tsvd_error *error);
};

/* Of two methods that decomposed matrices of a batch, the one that the info names: that with the
   least number, no matter in which order threads ran.  AUTO: none so far. */
static inline tsvd_method
method_of_both(tsvd_method a, tsvd_method b)
{
    return a == TSVD_METHOD_AUTO || (b != TSVD_METHOD_AUTO && b < a) ? b : a;
}

#ifdef TSVD_SINGLE

/* ---- rows, each in the file of its method; AUTO has none ---- */

extern const struct method tsvdi_method_dc;
extern const struct method tsvdi_method_qr;
extern const struct method tsvdi_method_givens;
extern const struct method tsvdi_method_bisect;
extern const struct method tsvdi_method_twisted;
extern const struct method tsvdi_method_jacobi;

/* Of small dense matrices (dense/small.c), where AUTO takes it.  Its number is the back end's. */
extern const struct method tsvdi_method_small;

#endif

#endif
