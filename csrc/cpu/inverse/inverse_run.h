/*
 * Inverses on the CPU: what a job holds, and the parts of its files.
 *
 *     inverse.c    the operations of the seam, memory, one matrix after another
 *     balance.c    scaling, and its undoing
 *     lanes.c      small matrices side by side, in vector lanes
 *     lu.c         S = P L U, and the inverse from that
 *     triangle.c   triangular systems
 *     qr.c         S = Q R, and the inverse from that, where pivots grew
 *     extended.c   inverses beyond the range of numbers
 *     refine.c     the step of Newton's iteration
 */
#ifndef TSVDI_CPU_INVERSE_INVERSE_RUN_H
#define TSVDI_CPU_INVERSE_INVERSE_RUN_H

#include "cpu/matrix/matrix.h"
#include "cpu/tuning.h"

/* All matrices are stored by columns.  What is inverted is A^T: its inverse, stored by columns, is
   that of A, stored by rows as the results are. */
struct cpu_inverse {
    struct dense_run dense; /* w: the results; work: the workspaces of the workers */
    struct inverse_job *job;
    double *rcond;     /* [count] of each matrix, or SINGULAR or OUT_OF_RANGE of inverse.c */
    int64_t workspace; /* bytes of a worker's workspace, a multiple of a cache line's */
};

/* A worker's workspace. */
struct inverse_workspace {
    scalar_double *s;  /* [n][n] S, then the rest of refine()'s workspace; empty without refine() */
    double *sums;      /* [n], and as many again for complex numbers */
    int *row, *column; /* [n] exponents of M = diag(2^row) S diag(2^column) */
    int *pivot;        /* [n] the row that takes row i's place, in step i */
    scalar *copy;      /* [block][n] */
    scalar *tile;      /* [threads][block][block] */
};

/* Columns that are eliminated together. */
static inline int64_t
inverse_block(int64_t n)
{
    return n <= CPU_INVERSE_BLOCK      ? n
           : n < 8 * CPU_INVERSE_BLOCK ? CPU_INVERSE_BLOCK / 2
                                       : CPU_INVERSE_BLOCK;
}

/* The columns of the left half of n > CPU_INVERSE_LEAF. */
static inline int64_t
inverse_half(int64_t n)
{
    return (n / 2 + CPU_INVERSE_LEAF - 1) / CPU_INVERSE_LEAF * CPU_INVERSE_LEAF;
}

/* x /= divisor, of `count` numbers. */
static inline void
inverse_divide(int64_t count, scalar *x, scalar divisor)
{
    const struct n_divisor by = n_divisor_of(divisor);

    for (int64_t i = 0; i < count; i++) {
        x[i] = n_divide(x[i], by);
    }
}

/* The share of the work that a step does: from .. from + part. */
struct inverse_share {
    double from, part;
};

/* How many threads pay for this many multiplications. */
static inline int
inverse_threads(const struct dense_run *run, int64_t multiplications)
{
    return multiplications < 1 << 20 ? 1 : run->threads;
}

/* Asks whether to go on, if the thread may, and the matrix is not so small that asking takes as
   long as the step. */
static inline tsvd_status
inverse_check(struct dense_run *run, int worker, int64_t n, double done)
{
    return n < 2 * CPU_INVERSE_BLOCK ? TSVD_OK : dense_check(run, worker, done);
}

/* ---- balance.c: run->threads share the work; tsvdi_check() is told `done` ---- */

/* S from M, and the exponents of its rows and columns.  *norm: the largest sum of magnitudes of a
   row of 2^-exponent M. */
tsvd_status tsvdi_cpu_inverse_balance(struct dense_run *run, int64_t n, int exponent, scalar *m,
                                      const struct inverse_workspace *workspace, double done,
                                      double *norm);

/* The inverse of M from that of S.  *norm: the largest sum of magnitudes of a row of 2^exponent
   times M's inverse, infinity or NaN if that is too large.  *finite: whether all of S's inverse
   is. */
tsvd_status tsvdi_cpu_inverse_unbalance(struct dense_run *run, int64_t n, int exponent, scalar *y,
                                        const struct inverse_workspace *workspace, double done,
                                        double *norm, int *finite);

/* The largest sum; sums that are NaN are above all others. */
double tsvdi_cpu_inverse_norm(int64_t n, const double *sums);

/* ---- lanes.c ---- */

/* Whether the matrices of a call go through the lanes. */
int tsvdi_cpu_inverse_has_lanes(const struct inverse_problem *problem);

/* Bytes of its workspace, which begins on a cache line's boundary. */
uint64_t tsvdi_cpu_inverse_lanes_bytes(const struct inverse_problem *problem);

/* Inverts the matrices begin .. begin + count - 1 of the job, no more than there are lanes.  hard
   [count] out: 1: the matrix is left to others. */
void tsvdi_cpu_inverse_lanes(const struct cpu_inverse *run, int64_t begin, int count, void *work,
                             char *hard);

/* ---- lu.c ---- */

enum inverse_outcome {
    INVERSE_FOUND,
    INVERSE_SINGULAR,    /* a pivot is zero */
    INVERSE_UNDERFLOWED, /* a pivot is zero, perhaps from underflow */
    INVERSE_GREW         /* the pivots grew */
};

/* The inverse of S [n][n] in its place.  If *outcome is not INVERSE_FOUND, S is destroyed. */
tsvd_status tsvdi_cpu_inverse_lu(struct dense_run *run, int64_t n, scalar *s,
                                 const struct inverse_workspace *workspace,
                                 struct inverse_share share, int *outcome);

/* U := U^-1 of the upper triangle of u [n][n]; nothing below it is read or written. */
tsvd_status tsvdi_cpu_inverse_upper(struct dense_run *run, int64_t n, scalar *u,
                                    const struct inverse_workspace *workspace,
                                    struct inverse_share share);

/* ---- triangle.c: in the calling thread; L has ones on its diagonal, which are not read ---- */

/* C -= A B, C of m x n and k terms. */
void tsvdi_cpu_inverse_subtract(const tsvd_blas *blas, int64_t m, int64_t n, int64_t k,
                                const scalar *a, int64_t lda, const scalar *b, int64_t ldb,
                                scalar *c, int64_t ldc);

/* B := L^-1 B, B of n x columns. */
void tsvdi_cpu_inverse_left_lower(const tsvd_blas *blas, int64_t n, int64_t columns,
                                  const scalar *l, int64_t ldl, scalar *b, int64_t ldb);

/* X := X U^-1, X of rows x n. */
void tsvdi_cpu_inverse_right_upper(const tsvd_blas *blas, int64_t rows, int64_t n, const scalar *u,
                                   int64_t ldu, scalar *x, int64_t ldx);

/* X := X L^-1, X of rows x n. */
void tsvdi_cpu_inverse_right_lower(const tsvd_blas *blas, int64_t rows, int64_t n, const scalar *l,
                                   int64_t ldl, scalar *x, int64_t ldx);

/* U := U^-1, n <= CPU_INVERSE_BLOCK. */
void tsvdi_cpu_inverse_small_upper(int64_t n, scalar *u, int64_t ldu);

/* ---- qr.c ---- */

/* As tsvdi_cpu_inverse_lu(), but nothing grows.  run->work has tsvdi_cpu_inverse_qr_bytes(n)
   bytes. */
uint64_t tsvdi_cpu_inverse_qr_bytes(int64_t n);
tsvd_status tsvdi_cpu_inverse_qr(struct dense_run *run, int64_t n, scalar *s,
                                 const struct inverse_workspace *workspace,
                                 struct inverse_share share, int *outcome);

/* ---- extended.c ---- */

/* The inverse of M from S, in its place, also beyond the range of numbers; `done` and *norm as of
   unbalance().  memory: tsvdi_cpu_inverse_extended_bytes(n, run->threads) bytes. */
uint64_t tsvdi_cpu_inverse_extended_bytes(int64_t n, int threads);
tsvd_status tsvdi_cpu_inverse_extended(struct dense_run *run, int64_t n, int exponent, scalar *s,
                                       const struct inverse_workspace *workspace, void *memory,
                                       double done, double *norm, int *outcome);

/* ---- refine.c ---- */

/* A step on Y [n][n], the inverse of S [n][n] as it was found.  It leaves Y as it is where the step
   does not pay (math/newton.h); exponent, norm: as of balance().  S is at workspace->s, where it
   and the workspace have tsvdi_cpu_inverse_refine_bytes(n) bytes. */
uint64_t tsvdi_cpu_inverse_refine_bytes(int64_t n);
tsvd_status tsvdi_cpu_inverse_refine(struct dense_run *run, int64_t n,
                                     const struct inverse_workspace *workspace, scalar *y,
                                     int exponent, double norm, struct inverse_share share);

#endif
