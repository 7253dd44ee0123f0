/*
 * The seam between the algorithms and the hardware.
 *
 * svd.c, qr.c, dc.c, givens.c and bisect.c know no hardware: they call the operations
 * of a struct tsvd_backend, each of which covers one whole phase.  cpu.c fills
 * the table for the host.  An operation returns a status; it never prints.
 * Workspace of the algorithms and their threads are the host's: host.h.
 */
#ifndef TSVDI_BACKEND_H
#define TSVDI_BACKEND_H

#include "bidiag/dc.h"
#include "bidiag/rotation_log.h"
#include "host/host.h"
#include "math/givens_sweep.h"
#include "math/sturm.h"
#include "tsvd/tsvd.h"

/* External names carry the precision they were compiled for. */
#define tsvdi_cpu TSVD_T(tsvdi_cpu)
#define tsvdi_cuda TSVD_T(tsvdi_cuda)
#define tsvdi_svd TSVD_T(tsvdi_svd)
#define tsvdi_gather TSVD_T(tsvdi_gather)
#define tsvdi_select TSVD_T(tsvdi_select)
#define tsvdi_qr TSVD_T(tsvdi_qr)
#define tsvdi_givens TSVD_T(tsvdi_givens)
#define tsvdi_dc TSVD_T(tsvdi_dc)
#define tsvdi_sturm_bytes TSVD_T(tsvdi_sturm_bytes)
#define tsvdi_sturm_is_plain TSVD_T(tsvdi_sturm_is_plain)
#define tsvdi_sturm_prepare TSVD_T(tsvdi_sturm_prepare)
#define tsvdi_check TSVD_T(tsvdi_check)
#define tsvdi_log_alloc TSVD_T(tsvdi_log_alloc)
#define tsvdi_log_free TSVD_T(tsvdi_log_free)

/* Singular vectors under construction: vector j of a matrix is row j of a C-ordered k x n array, or
   column j of an n x k one; x holds those of a batch of matrices, one after another. */
struct vectors {
    real *x;
    int64_t n, k, batch;
    int columns;
};

/* The matrix that the givens method works on, and its vectors (x = NULL: values only). */
struct givens_job {
    int64_t n;
    real *d, *e; /* [n], [n-1] host */
    real eps;
    int64_t threads; /* half sweeps in flight */
    int64_t blocks;  /* that a segment is cut into; 0: chosen */
    struct vectors right, left;
};

/* Matrices of one order for divide and conquer. */
struct dc_job {
    int64_t n, batch;
    int64_t first, k;         /* wanted: of each the values first .. first + k - 1, 0 the largest */
    const real *d, *e;        /* [batch n] host; e has a zero behind the n - 1 of each matrix */
    const real_int *exponent; /* [batch] host: 2^-exponent scales entries to at most 2 */
    real eps;                 /* in the units of d and e; 0: full accuracy */
    real *s; /* [batch k] host, out: descending, refined by bisection if eps is 0 */
    struct vectors right, left; /* results; with k = n room for work until dc_finish */
    struct dc_tree tree;
    int64_t failed; /* out, of NO_CONVERGENCE: the matrix */
    void *held;     /* the back end's own data of the run */
};

/* Values by bisection, of a batch of matrices of one order. */
struct values_job {
    int64_t n, batch;
    int64_t first, last; /* of each the values first .. last - 1, 0 the largest */
    const real *d, *e;   /* [batch n] host, not scaled; e has a zero behind the n - 1 of each */
    const real *hint;    /* [batch (last - first)] host: approximations, descending, which only
                            save time; NULL: none */
    real eps;            /* to neighbouring numbers (0) or to this width */
    real *s;             /* [batch (last - first)] host, out: descending */
    int64_t counts;      /* Sturm counts made are added */
};

struct tsvd_backend;

/* One call of tsvd_svd, or one worker's share of it. */
struct tsvd_context {
    const struct tsvd_backend *backend;
    const tsvd_options *options;
    tsvd_error *error;           /* never NULL */
    int threads;                 /* that an operation may use */
    int is_caller;               /* runs in the thread that called tsvd_svd */
    int64_t index, count, total; /* the first matrix under work, how many, and the batch */
    double done;                 /* share of the former, as last told to tsvdi_check */
    void *device;                /* what the back end holds for the call */
};

struct tsvd_backend {
    /* Takes and gives back what a worker needs of the device.  close() also after a failure. */
    tsvd_status (*open)(struct tsvd_context *ctx);
    void (*close)(struct tsvd_context *ctx);

    /* Matrices of order n that dc with vectors, or values, may be given at once; >= 1. */
    int64_t (*batch_most)(struct tsvd_context *ctx, int64_t n, int vectors);

    /* Where the k vectors of each of `batch` matrices are made, whose results go to L and R (both
       NULL: values only): begin() takes the room, end() copies the results there, free() is due
       after both. */
    tsvd_status (*vectors_begin)(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t batch,
                                 real *L, real *R, struct vectors *left, struct vectors *right);
    tsvd_status (*vectors_end)(struct tsvd_context *ctx, struct vectors left, struct vectors right,
                               real *L, real *R);
    void (*vectors_free)(struct tsvd_context *ctx, struct vectors *left, struct vectors *right);

    /* Vectors that start as the identity. */
    tsvd_status (*identity)(struct tsvd_context *ctx, struct vectors vectors);

    /* Applies the logged rotations to the right and the left vectors; `fresh`: they
       start as the identity and are written for the first time. */
    tsvd_status (*rotate)(struct tsvd_context *ctx, const struct rotation_log *right,
                          const struct rotation_log *left, struct vectors right_vectors,
                          struct vectors left_vectors, int fresh);

    /* Puts vector from[i] at place i on both sides, and fixes the signs: the entry of largest
       magnitude in each column of L is made positive, and R's row follows; negative[j]
       says that the value of vector j (before the move) was negative. */
    tsvd_status (*order)(struct tsvd_context *ctx, const int64_t *from, const char *negative,
                         struct vectors left_vectors, struct vectors right_vectors);

    /* One Newton-Schulz step towards the nearest orthogonal matrix, X + (I - X X^T) X / 2: it
       squares a small departure from orthogonality (Higham, Functions of Matrices, 2008,
       section 8.3). */
    tsvd_status (*orthonormalize)(struct tsvd_context *ctx, struct vectors vectors);

    tsvd_status (*values)(struct tsvd_context *ctx, struct values_job *job);

    /* Divide and conquer (dc.h).  Between begin and end, which is due also after a failure of
       begin, the back end holds for each matrix of more than a leaf four more n x n arrays beside
       the two of the vectors, and two for these as well if k < n. */
    tsvd_status (*dc_begin)(struct tsvd_context *ctx, struct dc_job *job);
    void (*dc_end)(struct tsvd_context *ctx, struct dc_job *job);

    /* The SVDs of all leaves. */
    tsvd_status (*dc_leaves)(struct tsvd_context *ctx, struct dc_job *job);

    /* The merges of one level: z and deflation; the secular equations; the products that turn
       M's vectors into the node's. */
    tsvd_status (*dc_merge)(struct tsvd_context *ctx, struct dc_job *job, int level,
                            tsvd_info *info);

    /* The wanted values to job->s, and their vectors to job->left and job->right, with the signs
       that order() gives. */
    tsvd_status (*dc_finish)(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info);

    /* Most rows of a segment that givens_finish takes. */
    int64_t givens_small_rows;

    /* Half sweeps, an even number, that one givens_round makes best. */
    int64_t (*givens_round_sweeps)(const struct givens_job *job,
                                   const struct givens_segment *segment, int64_t segments);

    /* The next half sweeps, from an even number on, of each segment, in the pipeline of
       givens_sweep.h; d, e and the vectors follow.  *active = number of half sweeps up to
       the last that made a rotation. */
    tsvd_status (*givens_round)(struct tsvd_context *ctx, const struct givens_job *job,
                                const struct givens_segment *segment, int64_t segments,
                                int64_t half_sweeps, int64_t *active, struct givens_counts *counts);

    /* Half sweeps of each segment, from an even number on, until one makes no rotation.
       half_sweeps[i] in: their bound; out: up to the last that made a rotation, -1 if the
       bound was reached before. */
    tsvd_status (*givens_finish)(struct tsvd_context *ctx, const struct givens_job *job,
                                 const struct givens_segment *segment, int64_t segments,
                                 int64_t *half_sweeps, struct givens_counts *counts);
};

extern const struct tsvd_backend tsvdi_cpu;

/* NULL in a build without CUDA. */
const struct tsvd_backend *tsvdi_cuda(void);

/* Tells the caller that the share `done` of the matrix under work is done; TSVD_ERR_INTERRUPTED if
   it asks to stop.  Every loop that may run for long calls this now and then. */
tsvd_status tsvdi_check(struct tsvd_context *ctx, double done);

/* Room for `sweeps` sweeps with up to `rotations` rotations in all. */
tsvd_status tsvdi_log_alloc(struct tsvd_context *ctx, int64_t sweeps, int64_t rotations,
                            struct rotation_log *log);
void tsvdi_log_free(struct rotation_log *log);

/*
 * qr.c: B to diagonal form.
 *
 * d, e     [n], [n-1] in: B scaled to entries of at most 2; out: d the values, of either
 *          sign, in no order; e zero
 * eps      off-diagonal entries up to this count as zero, 0: full accuracy
 * right, left  the vectors of B's rows (R) and columns (L); x = NULL: values only
 * ctx->error gets the text of NO_CONVERGENCE.
 */
tsvd_status tsvdi_qr(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps,
                     struct vectors right, struct vectors left, tsvd_info *info);

/* givens.c: the same by the seed's zero-shift sweeps; eps > 0. */
tsvd_status tsvdi_givens(struct tsvd_context *ctx, int64_t n, real *d, real *e, real eps,
                         struct vectors right, struct vectors left, tsvd_info *info);

/* dc.c: the decomposition by divide and conquer; vectors in the order of the values, their signs
   fixed. */
tsvd_status tsvdi_dc(struct tsvd_context *ctx, struct dc_job *job, tsvd_info *info);

/*
 * bisect.c: prepares B for Sturm counts.  work holds tsvdi_sturm_bytes(n) bytes and
 * outlives the matrix; d [n] and e [n-1] are not scaled, not all zero, and finite.
 */
size_t tsvdi_sturm_bytes(int64_t n);

/* Whether the plain form of the counts serves for it. */
int tsvdi_sturm_is_plain(int64_t n, const real *d, const real *e);
void tsvdi_sturm_prepare(int64_t n, const real *d, const real *e, void *work, struct sturm *matrix);

/* svd.c: tsvd_svd for one precision. */
tsvd_status tsvdi_svd(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
                      tsvd_error *error);

/* tsvd.c: whether "auto" computes vectors of order n by divide and conquer. */
int tsvdi_prefers_dc(const tsvd_options *options, int64_t n);

/* svd.c: gathers a vector with `stride` bytes between its entries; returns its largest magnitude,
   infinity where it holds NaN or infinity. */
real tsvdi_gather(const void *from, ptrdiff_t stride, int64_t count, real *x);

/* select.c: tsvd_select for one precision. */
tsvd_status tsvdi_select(const tsvd_problem *problem, const tsvd_options *options, double low,
                         double high, int64_t *first, int64_t *k, tsvd_error *error);

#endif
