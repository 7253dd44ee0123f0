/*
 * One-sided Jacobi on the CPU: what a matrix's work holds, and the parts of its files.
 *
 * W is the tall form of A, as in matrix.h, or that form's W^H if jacobi_by_rows() says so, without
 * the columns of zeros.  W^H has no more columns than rows then, either.  The vectors of
 * lines of zeros are unit vectors.  Each of W's columns is kept with a power of two of its own, W =
 * K diag(2^exponent), so that columns of any lengths keep all their digits.  Rows are sorted by
 * size. QR with column pivoting gives P_r W P_c = Q R, a second QR, without pivoting, R^H = Q2 L^H,
 * and Jacobi works on the columns of X = L:
 *
 *     X J = Y S,   W = P_r^T Q Y S (P_c Q2 J)^H,
 *
 * with J the product of all rotations.  So the left vectors of W come from the columns of X J at
 * norm 1, and the right ones from J.
 *
 * A large square matrix whose columns have nearly the same size begins with the right vectors V
 * that the fast method finds.  X is W V, made from the entries, and J begins as V.  The columns of
 * X are nearly orthogonal: one sweep follows, or two.  In the notation above Q and Q2 are I.
 * Errors that are small beside the matrix are small beside each of its columns, so that nothing is
 * lost.
 *
 * The errors of QR are small in each column, and after the sort in each row, beside that column or
 * row (Cox & Higham 1998); those of the second one are small in each row of R.  The rows of R fall
 * off as W's columns and rows do: R = D C, with D descending and C well conditioned.  With C^H = Q2
 * E^H, E lower triangular, L is D E = (D E D^-1) D, and what is in brackets is conditioned about as
 * E is.  Where D falls off, L is nearly diagonal, which R^H is not.  So few sweeps follow (Drmac &
 * Veselic 2008, I).  Of clusters of values from 1 to eps, n = 300, there were 26 sweeps of R^H.
 *
 * Numbers below the smallest normal one are flushed to zero while columns are worked on: beside a
 * column near norm 1 they are nothing.
 *
 *     jacobi.c    the operations of the seam: memory and results
 *     pivot.c     both QR
 *     sweeps.c    the sweeps over all pairs of columns
 */
#ifndef TSVDI_CPU_JACOBI_JACOBI_RUN_H
#define TSVDI_CPU_JACOBI_JACOBI_RUN_H

#include "cpu/matrix/matrix.h"
#include "math/jacobi.h"

/* The key that rows and columns are sorted by: the largest mantissa 2^exponent first, and on a tie
   the least index. */
struct jacobi_key {
    int64_t exponent, index;
    real mantissa;
};

/* What a part of a sweep did. */
struct jacobi_swept {
    int64_t due;       /* rotations of cosines above the tolerance */
    real cosine, turn; /* of all rotations: the largest |h|, and the sum of |g| */
};

/* The work on one matrix.  Its arrays are as long as for the tall form of A. */
struct jacobi_matrix {
    struct dense_run *run;
    int worker;
    int threads;           /* threads that may share the work */
    int transposed;        /* 1: W is made of A^H */
    int started;           /* 1: right vectors of W stand in v, and its values in norm */
    int64_t rows, columns; /* of W */
    int64_t lines;         /* lines of A that are columns of W, those of zeros included */
    scalar *w; /* [columns][rows] kept columns of W, then the reflectors of Q by columns below the
                diagonal, and those of Q2 by rows above it */
    scalar *x; /* [columns][columns] kept columns of X */
    scalar *v; /* [columns][columns] the columns of J; NULL: values only */
    scalar *tau, *tau_right; /* [columns] of Q and Q2 */
    real *norm;              /* [columns] */
    real *most_norm;   /* [columns] of pivot.c: norms when they were last found from the entries; of
                        sweeps.c: the largest at the beginning of a sweep */
    scalar *spare;     /* [rows or lines] */
    scalar *workspace; /* workspace of products with reflectors */
    struct jacobi_key *key;     /* [rows] */
    int64_t *exponent;          /* [columns] of the kept columns, of W or of X */
    int64_t *own;               /* [columns] scratch: sizes of columns, then exponents of X */
    struct jacobi_swept *swept; /* [columns] of sweeps.c */
    int64_t *column; /* [lines] column j of what is factored is line column[j] of A.  Lines
                        of zeros come last */
    int64_t *row;    /* [rows] row i of what is factored is row[i] of W */
    int64_t rank;    /* out of pivot.c: the rows of R that are not zero; 0 if there is no R */
};

/* pivot.c: the norm of x [count], whose entries are below 2^(bias / 2) / count. */
real tsvdi_cpu_jacobi_norm(int64_t count, const scalar *x);

void tsvdi_cpu_jacobi_sort(struct jacobi_key *key, int64_t count);

/* pivot.c: sorts the rows, makes Q, R, Q2 and L, and sets x, exponent, column, row and rank. */
tsvd_status tsvdi_cpu_jacobi_pivot(struct jacobi_matrix *m);

/* sweeps.c: rotates the columns of x until they are orthogonal, sorts them by their norms, and
   rotates and sorts those of v with them.  norm and exponent are those of X in the end. */
tsvd_status tsvdi_cpu_jacobi_sweeps(struct jacobi_matrix *m, int64_t max_sweeps,
                                    struct jacobi_outcome *made);

#endif
