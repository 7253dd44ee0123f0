/*
 * The seam between the algorithms and the hardware.
 *
 * The algorithms in bidiag/ know no hardware.  They call operations, each of which covers a whole
 * phase.  A back end, cpu/ or cuda/, fills in tables of operations, one table a family of methods;
 * a table that is NULL says that the back end does not offer the family.  An operation returns a
 * status and never prints.
 */
#ifndef TSVDI_OPS_H
#define TSVDI_OPS_H

#include "backend/context.h"
#include "backend/rotation_log.h"
#include "math/dc.h"
#include "math/givens_sweep.h"
#include "math/sturm.h"

/* ---- matrices in, results out ---- */

/* What a matrix holds. */
enum { ORDINARY, ZERO, NONFINITE };

/* Matrices that are worked on together: `count` of the batch from `begin` on.  One that is not
   ordinary counts as zero in d and e. */
struct chunk {
    int64_t begin, count;
    real *d, *e;        /* [count n] host: not scaled; e has a zero behind the n - 1 of each */
    real_int *exponent; /* [count] host: 2^-exponent scales the largest entry into [1, 2) */
    char *kind;         /* [count] host */
    int64_t ordinary;   /* how many are */
    real *d_d, *d_e;    /* [count n] the same on the device, where the input lies there; d and e are
                           then filled for methods that read them alone; else NULL */
};

/* Where the results of a chunk go: its part of the caller's arrays, in problem->to. */
struct results {
    real *s; /* [count k] */
    real *L; /* [count n k]; NULL: values only */
    real *R; /* [count k n]; NULL exactly when L is */
};

/* Singular vectors under construction: vector j of a matrix is row j of a C-ordered k x n array, or
   column j of an n x k one; x holds those of a batch of matrices, one after another. */
struct vectors {
    real *x;
    int64_t n, k, batch;
    int columns;
};

/* ---- values ---- */

/* Values by bisection, of a batch of matrices of one order. */
struct values_job {
    int64_t n, batch;
    int64_t first, last; /* of each the values first .. last - 1, 0 the largest */
    const struct chunk *chunk;
    const real *hint; /* [batch (last - first)] host: approximations, descending, which only save
                         time; NULL: none */
    real eps;         /* to neighbouring numbers (0) or to this width */
    real *s;          /* [batch (last - first)] out, in problem->to: descending */
    int64_t counts;   /* Sturm counts made are added */
};

struct values_ops {
    /* Finds the values. */
    tsvd_status (*find)(struct tsvd_context *ctx, struct values_job *job);

    /* above[i] = number of singular values >= sigma[i] > 0, exact but for a relative error of
       sigma far below its last place.  NULL: not offered. */
    void (*count)(const struct sturm *matrix, int64_t count, const real *sigma, int64_t *above);

    /* Workspace of find() for a chunk. */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- vectors that rotations are applied to ---- */

struct vectors_ops {
    /* Where the k vectors of each of `batch` matrices are made, which go to `to`: begin() takes the
       room, end() copies the results there, free() is due after both, also after a failure.
       Without vectors in `to` x is NULL. */
    tsvd_status (*begin)(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t batch,
                         struct results to, struct vectors *left, struct vectors *right);
    tsvd_status (*end)(struct tsvd_context *ctx, struct vectors left, struct vectors right,
                       struct results to);
    void (*free)(struct tsvd_context *ctx, struct vectors *left, struct vectors *right);

    /* Vectors that start as the identity. */
    tsvd_status (*identity)(struct tsvd_context *ctx, struct vectors vectors);

    /* Applies the logged rotations to the right and the left vectors; `fresh`: they start as the
       identity and are written for the first time. */
    tsvd_status (*rotate)(struct tsvd_context *ctx, const struct rotation_log *right,
                          const struct rotation_log *left, struct vectors right_vectors,
                          struct vectors left_vectors, int fresh);

    /* Puts vector from[i] at place i on both sides, and fixes the signs: the entry of largest
       magnitude in each column of L is made positive, and R's row follows.  negative[j] says that
       the value of vector j (before the move) was negative. */
    tsvd_status (*order)(struct tsvd_context *ctx, const int64_t *from, const char *negative,
                         struct vectors left_vectors, struct vectors right_vectors);

    /* One Newton-Schulz step towards the nearest orthogonal matrix, X + (I - X X^T) X / 2: it
       squares a small departure from orthogonality (Higham, Functions of Matrices, 2008,
       section 8.3). */
    tsvd_status (*orthonormalize)(struct tsvd_context *ctx, struct vectors vectors);

    /* Workspace: of begin(); of rotate() for logs of so many sweeps and rotations on each side, and
       order(); and of orthonormalize(). */
    struct bytes (*begin_bytes)(const struct svd_plan *plan);
    struct bytes (*rotate_bytes)(const struct svd_plan *plan, int64_t sweeps, int64_t rotations);
    struct bytes (*orthonormalize_bytes)(const struct svd_plan *plan);
};

/* ---- divide and conquer ---- */

/* Matrices of one order. */
struct dc_job {
    int64_t n, batch;
    int64_t first, k; /* wanted: of each the values first .. first + k - 1, 0 the largest */
    const struct chunk *chunk;
    real eps; /* in the units of d and e; 0: full accuracy */
    real *s;  /* [batch k] out, in problem->to: descending, refined by bisection if eps is 0 */
    struct vectors right, left; /* results; with k = n room for work until finish() */
    struct dc_tree tree;
    int64_t failed; /* out, of NO_CONVERGENCE: the matrix */
    void *held;     /* the back end's own data of the run */
};

struct dc_ops {
    /* Takes the workspace; end() gives it back, and is due also after a failure of begin(). */
    tsvd_status (*begin)(struct tsvd_context *ctx, struct dc_job *job);
    void (*end)(struct tsvd_context *ctx, struct dc_job *job);

    /* The SVDs of all leaves. */
    tsvd_status (*leaves)(struct tsvd_context *ctx, struct dc_job *job);

    /* The merges of one level: z and deflation; the secular equations; the products that turn M's
       vectors into the node's. */
    tsvd_status (*merge)(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info);

    /* The wanted values to job->s, and their vectors to job->left and job->right, with the signs
       that vectors_ops.order() gives. */
    tsvd_status (*finish)(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info);

    /* Workspace between begin() and end(), that of values_ops.find() apart. */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- the givens method ---- */

/* The matrix that the method works on, and its vectors (x = NULL: values only). */
struct givens_job {
    int64_t n;
    real *d, *e; /* [n], [n-1] host */
    real eps;
    int64_t threads; /* half sweeps in flight */
    int64_t blocks;  /* that a segment is cut into; 0: chosen */
    struct vectors right, left;
};

struct givens_ops {
    /* Most rows of a segment that finish() takes. */
    int64_t small_rows;

    /* Half sweeps, an even number, that one round() makes best. */
    int64_t (*round_sweeps)(const struct givens_job *job, const struct givens_segment *segment,
                            int64_t segments);

    /* The next half sweeps, from an even number on, of each segment, in the pipeline of
       givens_sweep.h; d, e and the vectors follow.  *active = number of half sweeps up to the last
       that made a rotation. */
    tsvd_status (*round)(struct tsvd_context *ctx, const struct givens_job *job,
                         const struct givens_segment *segment, int64_t segments,
                         int64_t half_sweeps, int64_t *active, struct givens_counts *counts);

    /* Half sweeps of each segment, from an even number on, until one makes no rotation.
       half_sweeps[i] in: their bound; out: up to the last that made a rotation, -1 if the bound was
       reached before. */
    tsvd_status (*finish)(struct tsvd_context *ctx, const struct givens_job *job,
                          const struct givens_segment *segment, int64_t segments,
                          int64_t *half_sweeps, struct givens_counts *counts);

    /* Workspace of a round or of finish(). */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- a back end ---- */

struct backend {
    const char *name; /* for error texts: "CPU" */

    int workers;      /* 1: several may compute on matrices of their own at once, a thread each */
    int takes_blas;   /* 1: divide and conquer multiplies by the handle's BLAS */
    int values_by_qr; /* 1: QR finds the values of a very small or graded matrix faster */
    int64_t values_cpu_order; /* of a single matrix up to this order the CPU finds the values */

    /* A worker begins and ends; close(), due also after a failure, gives back what the worker and
       load() took. */
    tsvd_status (*open)(struct tsvd_context *ctx);
    void (*close)(struct tsvd_context *ctx, struct chunk *chunk);

    /* Matrices that dc with vectors, or values, may be given at once; >= 1. */
    int64_t (*chunk_most)(const struct svd_problem *problem);

    /* Reads the chunk's matrices from where the caller has them: gathers, classifies, scales.
       host_entries: d and e are needed on the host. */
    tsvd_status (*load)(struct tsvd_context *ctx, int host_entries, struct chunk *chunk);

    /* Makes values found on the host results. */
    tsvd_status (*put_values)(struct tsvd_context *ctx, const real *s, int64_t count, real *to);

    /* The results of matrix i of a chunk if it is not ordinary: NaN, or those of zero. */
    tsvd_status (*fill)(struct tsvd_context *ctx, int64_t i, int kind, struct results to);

    /* Workspace of load() for a chunk. */
    struct bytes (*load_bytes)(const struct svd_plan *plan);

    const struct values_ops *values;
    const struct vectors_ops *vectors;
    const struct dc_ops *dc;
    const struct givens_ops *givens;
};

extern const struct backend tsvdi_cpu;
extern const struct values_ops tsvdi_cpu_values;
extern const struct vectors_ops tsvdi_cpu_vectors;
extern const struct dc_ops tsvdi_cpu_dc;
extern const struct givens_ops tsvdi_cpu_givens;

/* cuda/backend.cu, in a build with CUDA. */
const struct backend *tsvdi_cuda(void);

/* backend.c: the back end of a handle's device.  No other place asks which one it is. */
const struct backend *tsvdi_backend_of(const tsvd_handle *handle);

/* host_arrays.c: load() and fill() for arrays in host memory, for every back end. */
void tsvdi_host_load(const struct svd_problem *problem, struct chunk *chunk);
void tsvdi_host_fill(const struct svd_problem *problem, int64_t i, int kind, struct results to);

#endif
