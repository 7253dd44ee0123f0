/*
 * One-sided Jacobi on the device, of matrices with many rows or columns: what its files share.
 *
 *   jacobi/large.cu   what comes before the sweeps, and after them
 *   jacobi/sweeps.cu   the sweeps
 *
 * As on the CPU (csrc/cpu/jacobi/jacobi_run.h), W P = Q R, and Jacobi works on R, on the columns of
 * X = R^T here.  With X J = Y S,
 *
 *     A = W    U = Q conj(J),  Vh = (P Y)^T
 *     A = W^T  U = P Y,        Vh = (Q conj(J))^T.
 *
 * What is kept of J is its conjugate.  There are two ways to X:
 *
 *   - The columns of W, at norm 1, are sorted by the norms that they had, and QR follows, without
 *     pivoting.  With W = B D, D descending, and Q and R_B those of B, R = D (D^-1 R_B D): what is
 *     in brackets has no larger entries than R_B, and its inverse none than that of R_B.  So the
 *     rows of R, at norm 1, are conditioned no worse than B is, up to a factor of n (van der Sluis
 *     1969).  The errors of Jacobi are small beside each of these rows.
 *   - A square matrix whose columns have nearly the same size begins with the right vectors V that
 *     the fast method finds.  X is W V then, J begins as V, and it is the transpose of W that is
 *     factored, with Q = P = I.
 */
#ifndef TSVDI_CUDA_JACOBI_LARGE_H
#define TSVDI_CUDA_JACOBI_LARGE_H

#include "jacobi/jacobi_run.h"

/* Columns X of n entries, n of them, and what is rotated with them.  All arrays are device memory,
   and matrices lie column by column. */
struct jacobi_columns {
    int64_t n;
    int base;
    scalar *x;         /* [n][n] X has x[j] 2^(base + exponent[j]) */
    scalar *v;         /* [n][n] conj(J); NULL: values only */
    real *norm, *most; /* [n] norms of what is in x, now and at most */
    int *exponent;     /* [n] */
};

/* sweeps.cu: finds the norms of columns of `rows` entries, each multiplied by a power of two
   that brings its largest entry to [1, 2).  change: x is scaled in place, and what it loses is
   added to the exponents; else x stays, and the exponents are set to that. */
tsvd_status tsvdi_cuda_jacobi_measure(struct cuda_call *call, int64_t rows, int64_t columns,
                                      scalar *d_x, real *d_norm, int *d_exponent, bool change);

/* sweeps.cu: the columns in the order of their norms to d_order [n], the norms to d_s [n], if
   it is not NULL, and how many are not zero to d_rank [1]. */
tsvd_status tsvdi_cuda_jacobi_rank(struct cuda_call *call, const struct jacobi_columns *q,
                                   int *d_order, real *d_s, int *d_rank);

/* sweeps.cu: rotates the columns, and J with them, until they are orthogonal, and finds their
   norms.  the outcome is filled but for `kind`.  Workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_jacobi_sweep_bytes(const struct cuda_device *device, int64_t n);
tsvd_status tsvdi_cuda_jacobi_sweep(struct tsvd_context *ctx, const struct jacobi_columns *q,
                                    int64_t max_sweeps, struct jacobi_outcome *made, char *d_work);

/* What is found of W.  By it prepare() chooses between W and its transpose, and the way to X. */
struct jacobi_view {
    struct jacobi_lines more; /* zeros if W is not square */
    int low, high;            /* sizes of columns */
};

/* The state of a job, which has one matrix. */
struct jacobi_large {
    struct cuda_matrices *in; /* W */
    struct cuda_results *out; /* where the results are made */
    struct jacobi_columns columns;
    scalar *sorted;           /* [c][r] W's columns in order, then the reflectors of Q */
    scalar *other;            /* [c][c] X is in w or here; the other one is scratch */
    scalar *tau;              /* [c] */
    real *s;                  /* [c] */
    int *row, *order;         /* [c] sizes of rows; columns in order */
    int *column;              /* [c] column i of what is factored is column[i] of W */
    int *rank;                /* [1] how many values are not zero */
    struct jacobi_view *view; /* [1] */
    bool started;             /* conj(V) comes from the fast method, in columns.v, and Q is I */
};

/* large.cu: lays out its arrays, with those of `in`, and returns their bytes; the bytes
   of workspace, for `vectors` vectors of the longer side. */
size_t tsvdi_cuda_jacobi_lay_out(struct jacobi_large *large, bool vectors, char *base);
uint64_t tsvdi_cuda_jacobi_work_bytes(const struct cuda_device *device,
                                      const struct dense_problem *p, int64_t vectors);

/* large.cu: prepare() and run() of the seam.  Results are made in `out`, but for signs and
   scale. */
tsvd_status tsvdi_cuda_jacobi_prepare(struct tsvd_context *ctx, struct jacobi_large *large,
                                      struct jacobi_job *job, char *d_work);
tsvd_status tsvdi_cuda_jacobi_solve(struct tsvd_context *ctx, struct jacobi_large *large,
                                    const struct jacobi_job *job, int64_t vectors, char *d_work);

#endif
