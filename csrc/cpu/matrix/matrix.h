/*
 * Dense matrices on the CPU: what a job holds, and the parts of its files.
 *
 * W is the tall form of a matrix, stored by columns: A if it has at least as many rows as columns,
 * and else A^H.  It becomes Q B P^H, with B real and upper bidiagonal.  After a QR it is the
 * square triangle R that is reduced.  Reflectors are kept as LAPACK keeps them: those of Q below
 * the diagonal, those of P to the right of the superdiagonal.
 *
 *     dense/dense.c            the operations of the seam: memory, results, signs
 *     matrix/load.c            W from A, scaled
 *     matrix/reflectors.c      products with reflectors, in blocks
 *     matrix/stages.h          the stages of a reduction
 *     qr/qr.c                  W = Q R
 *     dense/other_side.c       vectors of one side from those of the other
 *     bidiagonalize/reduce.c   the reduction to bidiagonal form
 *     bidiagonalize/band.c     to a band instead, and
 *     bidiagonalize/chase.c    from there to bidiagonal form
 *     jacobi/                  one-sided Jacobi
 */
#ifndef TSVDI_CPU_MATRIX_MATRIX_H
#define TSVDI_CPU_MATRIX_MATRIX_H

#include "backend/ops.h"
#include "cpu/kernels/kernels.h"
#include "host/blas.h"

static inline int64_t
longer_of(const struct dense_matrices *a)
{
    return a->rows > a->columns ? a->rows : a->columns;
}

/* A job of any kind on dense matrices: which matrices, and who works on them. */
struct dense_run {
    struct tsvd_context *ctx;
    const struct dense_matrices *a;
    int64_t begin, count;  /* its matrices: begin .. begin + count - 1 of a */
    int64_t rows, columns; /* of W */
    int transposed;        /* 1: W is A^H, or A^T */
    int conjugate;         /* 1: A^H */
    int workers;           /* matrices that are worked on at once */
    int threads;           /* threads at work on each of these */
    int slabs;             /* 1: the workspace has room for a slab of vectors of each thread */
    scalar *work;          /* [workers][workspace], each on a cache line's boundary */
    int64_t workspace;     /* numbers of a worker's workspace */
    scalar *w;             /* [count][columns][rows] W */
    char *kind;            /* [count] out of load(): ORDINARY, ZERO or NONFINITE */
    real_int *exponent; /* [count] out of load(): 2^-exponent brings the largest entry to [1, 2) */
};

/* The workspace of a worker. */
static inline scalar *
worker_work(const struct dense_run *run, int worker)
{
    return run->work + worker * run->workspace;
}

/* A run for one of several threads that share out a matrix: it starts no others, and its products
   neither ask the caller nor take slabs. */
static inline struct dense_run
run_of_thread(const struct dense_run *run)
{
    struct dense_run own = *run;

    own.threads = 1;
    own.workers = 2; /* see dense_check() */
    own.slabs = 0;
    return own;
}

/* Asks the caller whether to go on, if this thread may call tsvdi_check(). */
static inline tsvd_status
dense_check(const struct dense_run *run, int worker, double done)
{
    return worker == 0 && run->workers == 1 ? tsvdi_check(run->ctx, done) : TSVD_OK;
}

/* dense.c: how many of `count` matrices `threads` threads work on at once; and a call of a task for
   each matrix of the job, with `arg`: in several threads, or one after another in this thread,
   where the task itself may take run->threads. */
int tsvdi_cpu_dense_workers(const struct dense_matrices *a, int64_t count, int threads);
tsvd_status tsvdi_cpu_dense_for_each(struct dense_run *run, tsvd_task task, void *arg);

/* load.c: W of matrix i of the job, with its kind and its exponent.  `scaled`: by that exponent.  A
   matrix that is not ordinary becomes zero. */
tsvd_status tsvdi_cpu_dense_load(const struct dense_run *run, int worker, int64_t i, int scaled);

/* load.c: the sizes of the rows and columns of W, of matrix i: the exponents of their largest
   entries as A has them, or INT64_MIN of zeros.  row [run->rows], column [run->columns].  Returns
   the kind of the matrix.  The size of a complex number is that of its larger part. */
int tsvdi_cpu_dense_sizes(const struct dense_run *run, int64_t i, int64_t *row, int64_t *column);

/* load.c: columns of matrix i, or of its transpose if `transposed`, to w [columns][rows]: column
   index[j] times 2^-exponent[j]. */
void tsvdi_cpu_dense_load_columns(const struct dense_run *run, int transposed, int64_t i,
                                  int64_t rows, int64_t columns, const int64_t *index,
                                  const int64_t *exponent, scalar *w);

/* An array of results: one matrix of rows x columns after another. */
struct dense_array {
    scalar *x;
    int64_t rows, columns;
};

/* dense.c: makes the entry of largest magnitude in each of the first k columns of U real and
   positive, and turns Vh's row back by as much. */
void tsvdi_cpu_dense_fix_signs(int64_t k, struct dense_array left, struct dense_array right);

/* ---- factors ---- */

/* A matrix of rows x columns numbers, rows >= columns, stored by columns, `stride` numbers from one
   column to the next. */
struct dense_matrix {
    scalar *a;
    int64_t rows, columns, stride;
};

/* qr.c: R to the upper triangle, tau [columns].  tsvdi_check() is told `done` at the beginning, and
   `share` more at the end. */
tsvd_status tsvdi_cpu_dense_qr(struct dense_run *run, int worker, struct dense_matrix m,
                               scalar *tau, double done, double share);

/* reflectors.c: the sum of the squares of up x_1, up x_2, ..., for the reflector of x [count] (see
   reflector_up()). */
real tsvdi_cpu_dense_square(int64_t count, const scalar *x, real *up);

/* reflectors.c: the reflector of the vector x [count], which becomes v, with v_0 = 1.  *beta: what
   the vector is reflected to.  Returns tau. */
scalar tsvdi_cpu_dense_reflector(int64_t count, scalar *x, real *beta);

/* ---- products ---- */

/* Whether products are made by a kernel of ours. */
static inline int
kernel_multiplies(void)
{
#if TSVD_COMPLEX
    return tsvdi_kernels()->product != NULL;
#else
    return 0;
#endif
}

/* Makes a product of scalars in the calling thread. */
static inline void
dense_product(const tsvd_blas *blas, const struct blas_product *product)
{
#if TSVD_COMPLEX
    if (kernel_multiplies()) {
        tsvdi_kernels()->product(product);
        return;
    }
#endif
    tsvdi_blas_product(blas, SCALAR_DTYPE, product);
}

/* `count` vectors of `length` entries: the rows of an array, or its columns if `rows` is 0.  The
   rows of the array are `stride` numbers apart. */
struct dense_block {
    scalar *x;
    int64_t length, count, stride;
    int rows;
    int conjugated; /* 1: the array holds the conjugates of the vectors */
};

/* Reflectors in the columns of a matrix, or in its rows: `count` of them, on the entries from
   `from` to from + length - 1 of a vector. */
struct dense_reflectors {
    const scalar *a; /* where the 1 of the first stands */
    const scalar *tau;
    int64_t stride; /* numbers between columns */
    int64_t count, length, from;
    int in_rows;
    int64_t terms; /* 0, or the terms of a partial sum in products with V^H */
    int64_t reach; /* 0, or the entries of each, from its 1 on, if the others are zero */
};

/* Up to CPU_REFLECTORS_BLOCK reflectors as one factor, I - V T V^H.  Arrays of the caller. */
struct dense_factor {
    scalar *v;    /* V by columns, `stride` numbers apart, with its ones and zeros */
    scalar *t;    /* T by columns, CPU_REFLECTORS_BLOCK numbers apart */
    scalar *gram; /* [CPU_REFLECTORS_BLOCK][CPU_REFLECTORS_BLOCK] V^H V */
    scalar *sums; /* the same, for partial sums of V^H V */
    int64_t stride;
};

/* reflectors.c: makes it.  tsvdi_check() is told `done`. */
tsvd_status tsvdi_cpu_dense_factor(const struct dense_run *run, int worker,
                                   const struct dense_reflectors *r, struct dense_factor *to,
                                   double done);

/* reflectors.c: a product, shared out over the run's threads.  The results do not depend on their
   number. */
void tsvdi_cpu_dense_product(const struct dense_run *run, const struct blas_product *product);

/* reflectors.c: the same, with calls of tsvdi_check() in between, which is told `done`. */
tsvd_status tsvdi_cpu_dense_long_product(const struct dense_run *run, int worker,
                                         const struct blas_product *product, double done);

/* reflectors.c: vectors := Q vectors, Q = H_0 H_1 ..., or Q^H vectors.  tsvdi_check() is told
   `done` at the beginning, and `share` more at the end. */
tsvd_status tsvdi_cpu_dense_multiply(struct dense_run *run, int worker,
                                     const struct dense_reflectors *r, int transposed,
                                     struct dense_block block, double done, double share);

/* reflectors.c: the numbers that it takes from a worker's workspace for reflectors of up to
   `length` entries.  threads: 0, or those of the run if run->slabs is set. */
int64_t tsvdi_cpu_dense_multiply_workspace(int64_t length, int threads);

#endif
