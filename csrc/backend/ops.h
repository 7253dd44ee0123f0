/*
 * The seam between the algorithms and the hardware.
 *
 * The algorithms in bidiag/ and dense/ know no hardware.  They call operations, each of which
 * covers a whole phase.  A back end, cpu/ or cuda/, fills in tables of operations, one table for
 * each family of methods.  A table that is NULL means that the back end does not offer the family.
 * An operation returns a status and never prints.
 *
 * To find what a call such as ops->begin(...) runs, look at the end of the files of cpu/ and cuda/:
 * there are the tables, such as `const struct dc_ops tsvdi_cpu_dc = {...}`.
 */
#ifndef TSVDI_OPS_H
#define TSVDI_OPS_H

#include "backend/context.h"
#include "backend/rotation_log.h"
#include "backend/tuning.h"
#include "math/dc.h"
#include "math/extra_column.h"
#include "math/givens_sweep.h"
#include "math/sturm.h"

/* ---- matrices in, results out ---- */

/* What a matrix holds: finite entries that are not all zero; zeros alone; NaN or infinity. */
enum { ORDINARY, ZERO, NONFINITE };

/* Matrices that are worked on together: `count` of the batch from `begin` on.  A matrix that is not
   ordinary has zeros in d and e. */
struct chunk {
    int64_t begin, count;
    real *d, *e; /* [count n] host: not scaled; e: n - 1 entries and a zero for each matrix, or n
                    entries if there is an extra column */
    real_int *exponent; /* [count] host: 2^-exponent scales the largest entry into [1, 2) */
    char *kind;         /* [count] host: ORDINARY, ZERO or NONFINITE */
    int64_t ordinary;   /* how many matrices are ordinary */
    real *d_d, *d_e;    /* [count n] d and e on the device, if load() brings them there; d and e are
                           filled only if plan->host_entries.  Else NULL */
    real_int *d_exponent; /* [count] on the device, exactly where d_d is; else NULL */
};

/* Whether a value of matrix i of a chunk may come close to overflow.  No value is above the largest
   sum of two entries, so entries below 2^(R_BIAS - 1) are safe. */
static inline int
chunk_may_overflow(const struct chunk *chunk, int64_t i)
{
    return chunk->exponent[i] >= R_BIAS - 1;
}

/* Where the results of a chunk go: its part of the caller's arrays, in the space call->to. */
struct results {
    real *s; /* [count k] */
    real *L; /* [count rows k]; NULL: values only.  The rows of a single matrix are
                problem->left_stride numbers apart */
    real *R; /* [count k columns]; NULL exactly when L is */
};

/* Singular vectors under construction, k of each of `count` matrices. */
struct vectors {
    real *x;             /* one matrix after another; NULL: values only */
    int64_t n, k, count; /* entries of a vector, vectors of a matrix, matrices */
    int columns;         /* 1: vector j is column j of an n x k array; 0: row j of a k x n one */
};

/* ---- values ---- */

/* Values by bisection, of matrices of one order. */
struct values_job {
    int64_t n, count;          /* order and number of the matrices */
    int64_t first, last;       /* wanted of each: the values first .. last - 1, 0 the largest */
    const struct chunk *chunk; /* the matrices */
    const real *hint; /* [count (last - first)] host: approximations, descending, which only save
                         time; NULL: none */
    real eps;         /* width to which a value is found; 0: to neighbouring numbers */
    real *s;          /* [count (last - first)] out, in call->to: descending */
    int64_t counts;   /* find() adds the Sturm counts that it made */
};

struct values_ops {
    /* Finds the values. */
    tsvd_status (*find)(struct tsvd_context *ctx, struct values_job *job);

    /* above[i] = number of singular values that are given as sigma[i] > 0 or more, by the rule of
       r_shift().  It is the exact count for a shift that is off by a relative error far below the
       last place.  NULL: not offered. */
    void (*count)(const struct sturm *matrix, int64_t count, const real *sigma, int64_t *above);

    /* Workspace of find() for a chunk. */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- a column more than rows ---- */

/* The extra column of n x (n+1) matrices, or the extra row of lower ones, (n+1) x n, while the
   square matrices without it are decomposed (math/extra_column.h). */
struct extra_column {
    struct rotation *turn; /* [count n] host: of each column with the extra one */
    int *power;            /* [count] host: the square matrix has a factor of 2^-power */
    struct results square; /* out of drop(): where the results of the square matrices go */
    real *vectors;         /* of the back end: memory for them */
    void *device;          /* of the back end: what it keeps on a device */
};

struct extra_ops {
    tsvd_space space; /* where the results of the square matrices go */

    /* Takes the workspace of a worker; end() gives it back, and is due also after a failure.
       asked: the problem of the caller. */
    tsvd_status (*begin)(struct tsvd_context *ctx, const struct svd_problem *asked,
                         struct extra_column *extra);
    void (*end)(struct tsvd_context *ctx, struct extra_column *extra);

    /* Makes the matrices of a chunk square, whose results go to `to` in the end. */
    tsvd_status (*drop)(struct tsvd_context *ctx, struct chunk *chunk,
                        const struct svd_problem *asked, struct results to,
                        struct extra_column *extra);

    /* Results of the caller's matrices from those in extra->square. */
    tsvd_status (*restore)(struct tsvd_context *ctx, const struct chunk *chunk,
                           const struct svd_problem *asked, struct extra_column *extra,
                           struct results to);

    /* Workspace of a worker. */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- vectors that rotations are applied to ---- */

struct vectors_ops {
    /* Memory for the k vectors of each of `count` matrices.  begin() takes it; x is NULL if `to`
       has no vectors.  end() copies the vectors to `to`.  free() gives the memory back, and is due
       also after a failure. */
    tsvd_status (*begin)(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t count,
                         struct results to, struct vectors *left, struct vectors *right);
    tsvd_status (*end)(struct tsvd_context *ctx, struct vectors left, struct vectors right,
                       struct results to);
    void (*free)(struct tsvd_context *ctx, struct vectors *left, struct vectors *right);

    /* Makes the vectors the identity. */
    tsvd_status (*identity)(struct tsvd_context *ctx, struct vectors vectors);

    /* Applies the logged rotations to the right and the left vectors.  fresh: 1 if they start as
       the identity and are written for the first time. */
    tsvd_status (*rotate)(struct tsvd_context *ctx, const struct rotation_log *right,
                          const struct rotation_log *left, struct vectors right_vectors,
                          struct vectors left_vectors, int fresh);

    /* Puts vector from[i] at place i on both sides, of all vectors of one matrix, and fixes the
       signs: it makes the entry of largest magnitude in each column of L positive, and changes the
       sign of R's row with it.  negative[j] is 1 if the value of vector j (before the move) is
       negative. */
    tsvd_status (*order)(struct tsvd_context *ctx, const int64_t *from, const char *negative,
                         struct vectors left_vectors, struct vectors right_vectors);

    /* One Newton-Schulz step towards the nearest orthogonal matrix, X + (I - X X^T) X / 2: it
       squares a small departure from orthogonality (Higham, Functions of Matrices, 2008,
       section 8.3). */
    tsvd_status (*orthonormalize)(struct tsvd_context *ctx, struct vectors vectors);

    /* Workspace of begin(); of order() or of rotate(), whichever is larger, for logs of `sweeps`
       sweeps and `rotations` rotations on each side; of orthonormalize(). */
    struct bytes (*begin_bytes)(const struct svd_plan *plan);
    struct bytes (*rotate_bytes)(const struct svd_plan *plan, int64_t sweeps, int64_t rotations);
    struct bytes (*orthonormalize_bytes)(const struct svd_plan *plan);
};

/* ---- divide and conquer ---- */

/* Divide and conquer on matrices of one order. */
struct dc_job {
    int64_t n, count; /* order and number of the matrices */
    int64_t first, k; /* wanted of each: the values first .. first + k - 1, 0 the largest */
    const struct chunk *chunk; /* the matrices */
    real eps;                  /* in the units of d and e; 0: full accuracy */
    real *s; /* [count k] out, in call->to: descending, refined by bisection if eps is 0 */
    struct vectors right, left; /* out: the vectors; the back end may work in their memory until
                                   finish() */
    struct results to;          /* where they go in the end */
    int delivered;              /* out: 1: the back end copies the vectors to `to` itself, so that
                                   vectors_ops.end() is not called */
    struct dc_tree tree;        /* the tree of subproblems, the same for each matrix */
    int64_t failed;             /* out, on TSVD_ERR_NO_CONVERGENCE: the first matrix that failed */
    void *state;                /* what the back end keeps from begin() to end() */
};

struct dc_ops {
    /* Most columns of a leaf for a matrix of order n: DC_SMALL_LEAF_COLUMNS to DC_LEAF_COLUMNS, and
       DC_LEAF_COLUMNS if n is not above that. */
    int64_t (*leaf_columns)(int64_t n);

    /* Takes the workspace; end() gives it back, and is due also after a failure of begin(). */
    tsvd_status (*begin)(struct tsvd_context *ctx, struct dc_job *job);
    void (*end)(struct tsvd_context *ctx, struct dc_job *job);

    /* The SVDs of all leaves. */
    tsvd_status (*leaves)(struct tsvd_context *ctx, struct dc_job *job);

    /* The merges of one level: z and deflation; the secular equations; the products that make the
       node's vectors of those of M. */
    tsvd_status (*merge)(struct tsvd_context *ctx, struct dc_job *job, int level, tsvd_info *info);

    /* The wanted values to job->s, and their vectors to job->left and job->right, with the signs
       that vectors_ops.order() gives. */
    tsvd_status (*finish)(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info);

    /* Workspace between begin() and end(), without that of values_ops.find(). */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- twisted factorisations ---- */

/* Vectors by twisted factorisations (math/twisted.h), of one matrix.  Every value is worked on by
   itself, and passes gates.  `refused` counts the values that failed one.  An operation may return
   early as soon as it is above 0; end() is then called next. */
struct twisted_job {
    int64_t n;                 /* order of the matrix */
    int64_t first, k;          /* wanted: the values first .. first + k - 1, 0 the largest */
    const struct chunk *chunk; /* the matrix */
    int lower;                 /* 1: e is the sub-diagonal, and L and R change roles */
    struct results to;         /* where values and vectors go */
    int64_t refused;           /* out: how many values failed a gate; k if the matrix did */
    double seconds_device;     /* out: time of the work on a device, where it is measured */
    void *state;               /* what the back end keeps from begin() to end() */
};

struct twisted_ops {
    /* Takes the workspace and prepares the matrix.  It refuses one that falls into parts, or whose
       entries have too wide a range.  end() is due also after a failure. */
    tsvd_status (*begin)(struct tsvd_context *ctx, struct twisted_job *job);
    void (*end)(struct tsvd_context *ctx, struct twisted_job *job);

    /* For AUTO: *answer is 1 if the method is likely to succeed, and to be faster than divide and
       conquer.  It takes a small part of the time of either method, and may write to job->to. */
    tsvd_status (*pays)(struct tsvd_context *ctx, struct twisted_job *job, int *answer);

    /* Finds the wanted values, and their neighbours, well enough for the corrections to converge.
       It refuses values that are too close to another one, or too small. */
    tsvd_status (*values)(struct tsvd_context *ctx, struct twisted_job *job);

    /* Values and vectors to job->to, with the signs that vectors_ops.order() gives. */
    tsvd_status (*vectors)(struct tsvd_context *ctx, struct twisted_job *job);

    /* Checks the vectors in job->to with probes (math/probe.h), and refuses those that are not
       orthogonal, or not vectors of the matrix. */
    tsvd_status (*probe)(struct tsvd_context *ctx, struct twisted_job *job);

    /* Workspace between begin() and end(). */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- the givens method ---- */

/* The matrix that the method works on. */
struct givens_job {
    int64_t n;                  /* order */
    real *d, *e;                /* [n], [n-1] host: in and out */
    real eps;                   /* off-diagonal entries up to this are dropped */
    int64_t in_flight;          /* half sweeps at once in the pipeline */
    int64_t blocks;             /* blocks that a segment is cut into; 0: the back end chooses */
    struct vectors right, left; /* x = NULL: values only */
};

struct givens_ops {
    /* Most rows of a segment that finish() takes. */
    int64_t small_rows;

    /* The best number of half sweeps for one round(); it is even. */
    int64_t (*round_sweeps)(const struct givens_job *job, const struct givens_segment *segment,
                            int64_t segments);

    /* Makes the next half sweeps of each segment, in the pipeline of givens_sweep.h; the number
       of the first is even.  It changes d, e and the vectors.  *active = number of half sweeps up
       to the last that made a rotation. */
    tsvd_status (*round)(struct tsvd_context *ctx, const struct givens_job *job,
                         const struct givens_segment *segment, int64_t segments,
                         int64_t half_sweeps, int64_t *active, struct givens_counts *counts);

    /* Makes half sweeps of each segment until one makes no rotation; the number of the first is
       even.  half_sweeps[i] in: the most to make; out: how many there are up to the last that
       made a rotation, -1 if the bound was reached before. */
    tsvd_status (*finish)(struct tsvd_context *ctx, const struct givens_job *job,
                          const struct givens_segment *segment, int64_t segments,
                          int64_t *half_sweeps, struct givens_counts *counts);

    /* Workspace of a round or of finish(). */
    struct bytes (*bytes)(const struct svd_plan *plan);
};

/* ---- dense matrices ---- */

/* The reduction of matrices begin .. begin + count - 1 of a batch, A = Q B P^H, each scaled by a
   power of two.  B of order p = problem->n is upper bidiagonal if there are at least as many rows
   as columns, and else lower. */
struct dense_job {
    const struct dense_problem *problem;
    int64_t begin, count;
    int keep;    /* what reduce() keeps of Q and P, see below */
    real *d, *e; /* [count p] out of begin(), in dense_ops.space: where reduce() puts B; e: p - 1
                    entries and a zero for each matrix */
    char *kind;  /* [count] host, out of reduce(): ORDINARY, ZERO or NONFINITE.  B of a matrix that
                    is not ordinary is zero */
    real_int *exponent; /* [count] host, out of reduce() if dense_tells_exponents(), else for the
                           back end's own use: B is 2^-exponent Q^T A P */
    double band, chase; /* out of reduce(), in seconds: its two stages; 0 if it has one, or if
                           several matrices are reduced side by side, as on the CPU */
    struct results b;   /* out of reserve(): where the SVD of B goes, in dense_ops.space */
    void *state;        /* what the back end keeps from begin() to end() */
};

/* dense_job.keep */
enum {
    KEEP_VALUES,  /* nothing: only values are wanted */
    KEEP_VECTORS, /* what back() needs for the results that the problem asks for */
    KEEP_ALL      /* what apply() needs too, and back() for any results */
};

/* Whether reduce() must give the exponents: eps and intervals are in the units of A. */
static inline int
dense_tells_exponents(const struct dense_job *job)
{
    return job->keep == KEEP_ALL || job->problem->call.options->eps > 0;
}

/* The bit of a state's layout of matrices that went through a band.  CUDA numbers its stages below
   8, so that it stays free there. */
enum { LAYOUT_BAND = 128 };

/* Progress of a chunk when B is there, and when the SVD of B is: reduce() reports to tsvdi_check()
   up to DENSE_REDUCED, and back() from DENSE_SOLVED on. */
#define DENSE_REDUCED 0.5
#define DENSE_SOLVED 0.6

struct dense_ops {
    tsvd_space space; /* where B and its SVD lie */

    /* Refuses matrices, also those to invert, that it cannot serve with this handle.  *needs_blas
       is filled also then.  NULL: it serves all, without a BLAS. */
    tsvd_status (*accepts)(const tsvd_handle *handle, const struct dense_matrices *a,
                           int *needs_blas, tsvd_error *error);

    /* The most matrices of a chunk, >= 1, with `keep` as a job has it. */
    int64_t (*chunk_most)(const struct dense_problem *problem, int keep);

    /* Takes the workspace of reduce(); end() gives back all that the job has, and is due also after
       a failure. */
    tsvd_status (*begin)(struct tsvd_context *ctx, struct dense_job *job);
    void (*end)(struct tsvd_context *ctx, struct dense_job *job);

    /* Reads the matrices from where the caller has them, and reduces them. */
    tsvd_status (*reduce)(struct tsvd_context *ctx, struct dense_job *job);

    /* Sets job->b, where the SVD of B goes: in the results themselves, where possible.  L and R are
       NULL without vectors. */
    tsvd_status (*reserve)(struct tsvd_context *ctx, struct dense_job *job);

    /* Makes the results from job->b: U = Q L and Vh = R P^H with the signs that tsvd.h fixes, S in
       the units of A, and NaN for matrices that are not finite. */
    tsvd_status (*back)(struct tsvd_context *ctx, struct dense_job *job);

    /* Copies B to `space`: d [count p] and e [count p - 1], in the units of A, or as reduce()
       scaled it if `scaled`. */
    tsvd_status (*entries)(struct tsvd_context *ctx, struct dense_job *job, int scaled,
                           tsvd_space space, real *d, real *e);

    /* Replaces vectors by Q or P times them. */
    tsvd_status (*apply)(struct tsvd_context *ctx, struct dense_job *job,
                         const struct dense_vectors *vectors);

    /* What reduce() left with KEEP_ALL, without kind and exponent: its bytes, and in *layout a
       number of up to 8 bits that names the layout, LAYOUT_BAND among them.  save() copies it to
       host memory; restore() brings it back, instead of reduce(). */
    uint64_t (*state_bytes)(const struct dense_job *job, unsigned *layout);
    tsvd_status (*save)(struct tsvd_context *ctx, const struct dense_job *job, void *to);
    tsvd_status (*restore)(struct tsvd_context *ctx, struct dense_job *job, const void *from);

    /* Workspace of all operations of a job of `count` matrices. */
    struct bytes (*bytes)(const struct dense_problem *problem, int64_t count, int keep);
};

/* ---- dense matrices by one-sided Jacobi ---- */

/* What became of a matrix. */
struct jacobi_outcome {
    int64_t rotations;
    int32_t sweeps;    /* sweeps made */
    int8_t kind;       /* ORDINARY, ZERO or NONFINITE */
    int8_t unfinished; /* 1: the bound on sweeps came before the end */
    int16_t unused;    /* 0, so that all bytes are written */
};

/* A square matrix whose SVD Jacobi wants before it begins, in jacobi_ops.space. */
struct jacobi_start {
    int64_t n;       /* its order; 0: it wants none */
    const scalar *w; /* [n][n], by columns */
    real *S;         /* [n] where the SVD goes, as that of tsvd_dense_svd() */
    scalar *U, *Vh;  /* [n][n] */
};

/* The SVD of matrices begin .. begin + count - 1 of a batch by math/jacobi.h. */
struct jacobi_job {
    const struct dense_problem *problem;
    int64_t begin, count;
    int64_t max_sweeps;          /* bound on the sweeps of each matrix */
    struct jacobi_start start;   /* out of prepare(): what the caller must do before run() */
    struct jacobi_outcome *made; /* [count] host, out of run() */
    void *state;                 /* what the back end keeps from begin() to end() */
};

/* Progress of a chunk when the SVD of jacobi_job.start is there. */
#define JACOBI_STARTED 0.5

struct jacobi_ops {
    tsvd_space space; /* where jacobi_job.start lies */

    /* Whether it is faster than a reduction, so that AUTO takes it; NULL: it is not. */
    int (*pays)(const struct dense_problem *problem);

    /* The most matrices of a chunk, >= 1. */
    int64_t (*chunk_most)(const struct dense_problem *problem);

    /* Order of the square matrix whose SVD prepare() may want; 0: it wants none. */
    int64_t (*start_order)(const struct dense_problem *problem);

    /* Takes the workspace; end() gives it back, and is due also after a failure. */
    tsvd_status (*begin)(struct tsvd_context *ctx, struct jacobi_job *job);
    void (*end)(struct tsvd_context *ctx, struct jacobi_job *job);

    /* Reads the matrices.  Jacobi may begin with the vectors of another method, which leave few
       rotations to make: then job->start says of which matrix, and where they
       go. */
    tsvd_status (*prepare)(struct tsvd_context *ctx, struct jacobi_job *job);

    /* Writes the results: NaN for matrices that are not finite. */
    tsvd_status (*run)(struct tsvd_context *ctx, struct jacobi_job *job);

    /* Workspace of a job of `count` matrices. */
    struct bytes (*bytes)(const struct dense_problem *problem, int64_t count);
};

/* ---- small dense matrices ---- */

/* The SVD of all matrices of a batch, by a back end that makes it at once. */
struct small_dense_job {
    const struct dense_problem *problem;

    /* Out of solve(). */
    int64_t nonfinite;  /* the first matrix that holds NaN or infinity, */
    int64_t unfinished; /* and the first that did not converge; of none, the number of matrices */
    int64_t sweeps;     /* made, of all matrices */
};

struct small_dense_ops {
    tsvd_method method; /* that it stands for */

    /* Whether it serves matrices of this shape, and what is wanted of them. */
    int (*serves)(const struct dense_problem *problem);

    /* Writes the results: NaN for matrices that are not finite. */
    tsvd_status (*solve)(struct tsvd_context *ctx, struct small_dense_job *job);

    /* Workspace of solve(). */
    struct bytes (*bytes)(const struct dense_problem *problem);
};

/* ---- the inverse ---- */

/* What is found of the matrices of a job. */
struct inverse_findings {
    int64_t nonfinite, singular; /* index in the batch of the first matrix with NaN or infinity, and
                                    of the first with a pivot of zero; INT64_MAX: none */
    double rcond;                /* the smallest reciprocal condition of the finite matrices that
                                    are not singular, to six digits; infinity: there is none */
    int64_t matrix;              /* the matrix that has it; -1: none */
};

/* The inverses of matrices begin .. begin + count - 1 of a batch. */
struct inverse_job {
    const struct inverse_problem *problem;
    int64_t begin, count;
    struct inverse_findings *found; /* in and out: findings of the whole batch so far */
    char *grown;         /* [count] host, out of invert(): 1: elimination failed, since pivots grew
                            (growth_is_large()) or numbers left their range: rescue() is needed */
    int64_t first_grown; /* out of invert(): the first matrix marked so; count: none, and `grown` is
                            not filled */
    void *state;         /* what the back end keeps from begin() to end() */
};

struct inverse_ops {
    /* The most matrices of a chunk, >= 1. */
    int64_t (*chunk_most)(const struct inverse_problem *problem);

    /* Takes the workspace; end() gives it back, and is due also after a failure. */
    tsvd_status (*begin)(struct tsvd_context *ctx, struct inverse_job *job);
    void (*end)(struct tsvd_context *ctx, struct inverse_job *job);

    /* Reads the matrices from where the caller has them, and inverts them.  One that is not finite
       gives NaN; the inverse of a singular one is undefined.  A matrix marked in `grown` adds
       nothing to the findings. */
    tsvd_status (*invert)(struct tsvd_context *ctx, struct inverse_job *job);

    /* The inverse of matrix i of the job once more, by slower methods: Householder QR, which has no
       pivot growth, or numbers of a wider range.  Writes the result and adds to the findings. */
    tsvd_status (*rescue)(struct tsvd_context *ctx, struct inverse_job *job, int64_t i);

    /* Workspace of a job of `count` matrices. */
    struct bytes (*bytes)(const struct inverse_problem *problem, int64_t count);
};

/* ---- a back end ---- */

/* Whether k of n values are few, for AUTO and twisted factorisations. */
static inline int
few_wanted(int64_t n, int64_t k)
{
    return k <= n / TWISTED_FEW;
}

struct backend {
    /* ---- required ---- */

    const char *name; /* for error texts: "CPU", "CUDA device" */
    unsigned number;  /* in saved states; up to 7 bits */

    /* Begin and end of a worker.  close() gives back what open() and load() took, and is due also
       after a failure. */
    tsvd_status (*open)(struct tsvd_context *ctx);
    void (*close)(struct tsvd_context *ctx, struct chunk *chunk);

    /* The most matrices of a chunk, >= 1, for a method that works on many at once. */
    int64_t (*chunk_most)(const struct svd_problem *problem);

    /* Reads the chunk's matrices from where the caller has them.  It gathers their entries, finds
       their kinds and their exponents, and scales nothing. */
    tsvd_status (*load)(struct tsvd_context *ctx, struct chunk *chunk);

    /* Copies `count` values from the host to the results. */
    tsvd_status (*put_values)(struct tsvd_context *ctx, const real *s, int64_t count, real *to);

    /* Writes the results of matrix i of a chunk that is not ordinary: NaN, or the SVD of zero. */
    tsvd_status (*fill)(struct tsvd_context *ctx, int64_t i, int kind, struct results to);

    /* Writes NaN to x [count], which lies in `space`. */
    tsvd_status (*fill_nan)(struct tsvd_context *ctx, tsvd_space space, int64_t count, real *x);

    /* Workspace of load() for a chunk. */
    struct bytes (*load_bytes)(const struct svd_plan *plan);

    const struct extra_ops *extra;

    /* ---- optional, 0: it does not ---- */

    int has_memory; /* 1: it has memory of its own, which device_bytes of a plan tell of */
    int workers;    /* 1: several workers may run at once, each a thread with its own matrices */
    int64_t blas_order; /* divide and conquer multiplies by the handle's BLAS above this order */
    int values_by_qr;   /* 1: QR finds the values of a very small or graded matrix faster */
    int64_t host_values_order; /* the CPU finds values of a single matrix up to this order, for
                                  which a device would take longer to start */
    int64_t twisted_order;     /* AUTO tries twisted factorisations from this order on, */
    int64_t twisted_few_order; /* and of few values (few_wanted()) from this one on */

    /* Waits until all results on the host are there: operations may return before their copies to
       the host are done.  NULL: no operation does so. */
    tsvd_status (*finish_downloads)(struct tsvd_context *ctx);

    /* Gives results in the back end's own memory that lie by columns, and are those of the
       transposes, the signs that tsvd.h fixes.  NULL: it has no memory of its own. */
    tsvd_status (*orient_by_column)(const struct column_results *results);

    /* ---- optional, NULL: the family is not offered ---- */

    const struct values_ops *values;
    const struct vectors_ops *vectors;
    const struct dc_ops *dc;
    const struct twisted_ops *twisted;
    const struct givens_ops *givens;
    const struct dense_ops *dense;
    const struct jacobi_ops *jacobi;
    const struct small_dense_ops *small;
    const struct inverse_ops *inverse;
};

extern const struct backend tsvdi_cpu;
extern const struct extra_ops tsvdi_cpu_extra;
extern const struct values_ops tsvdi_cpu_values;
extern const struct vectors_ops tsvdi_cpu_vectors;
extern const struct dc_ops tsvdi_cpu_dc;
extern const struct twisted_ops tsvdi_cpu_twisted;
extern const struct givens_ops tsvdi_cpu_givens;
extern const struct dense_ops tsvdi_cpu_dense;
extern const struct jacobi_ops tsvdi_cpu_jacobi;
extern const struct small_dense_ops tsvdi_cpu_dense_lanes;
extern const struct inverse_ops tsvdi_cpu_inverse;

/* cuda/backend.cu, or that of the device library (cuda_library.h).  Only where a handle of a CUDA
   device exists. */
const struct backend *tsvdi_cuda(void);

/* backend.c: the back end of a handle's device.  Algorithms go by its tables and flags, and never
   ask which one it is. */
const struct backend *tsvdi_backend_of(const tsvd_handle *handle);

/* backend.c: finds values on the host, whatever the device. */
const struct values_ops *tsvdi_host_values(void);

/* host_arrays.c: load(), fill() and fill_nan() for arrays in host memory, for every back end. */
void tsvdi_host_load(const struct svd_problem *problem, struct chunk *chunk);
void tsvdi_host_fill(const struct svd_problem *problem, int64_t i, int kind, struct results to);
void tsvdi_host_fill_nan(int64_t count, real *x);

/* extra_column.c: makes the matrices of order n of a chunk square whose entries are on the host.
   eps: of the options. */
void tsvdi_host_drop_extra(int64_t n, double eps, struct chunk *chunk, struct extra_column *extra);

/* host_arrays.c: copies d, or e, of `count` matrices from matrix `begin` on to to[count][n]:
   `filled` entries of each, then zeros up to n.  Several threads may call it at once. */
void tsvdi_host_gather(const struct svd_problem *problem, const struct svd_input *input,
                       int64_t begin, int64_t count, int64_t filled, real *to);

#endif
