/*
 * Dense matrices on the device: what the files of this folder share.
 *
 *   dense/dense.cu       the operations of the seam, and their memory
 *   dense/load.cu        matrices from where the caller has them
 *   dense/reduce.cu      the reduction to bidiagonal form, panel by panel
 *   dense/reduce_panel.h, dense/reduce_visit.h   its kernel: the phases of the rows, of the columns
 *   dense/resident.cu    the same for what fits the shared memory of all multiprocessors
 *   dense/tall.cu        QR of matrices with many more rows than columns
 *   dense/cholesky.cu    the same, far faster, of those that it can do
 *   dense/reflectors.cu  reflectors on vectors
 *   dense/pieces.h       products over many terms
 *   dense/results.cu     signs and scale, and where the results go
 *   dense/small.cu       batches of small matrices
 *   dense/jacobi.cu      one-sided Jacobi, with jacobi_large.h for what is not small
 *
 * All of them work on W, r x c with r >= c and column-major, with contiguous columns: A, or its
 * transpose if A has more columns than rows, times a power of two.  W = Q B P^T, and what A's U is
 * made of is Q, or P if W is the transpose.
 */
#ifndef TSVDI_CUDA_DENSE_RUN_H
#define TSVDI_CUDA_DENSE_RUN_H

#include "dense/small.h"
#include "kernels.h"
#include "runtime/blas.h"

/* What a job holds.  All arrays are device memory. */
struct cuda_dense {
    int64_t r, c, count;         /* of a W; how many W there are */
    int wide, tall, small;       /* 1: W is A's transpose; QR comes first; small.h reduces */
    int plain;                   /* 1: load() does not scale, and the values have the scale of A;
                                    exponents are found all the same */
    int cholesky;                /* 1: cholesky.cu may do the QR, as Q is applied to vectors of B
                                    only */
    int orthonormal;             /* 1: that succeeded: w has W1, and Q of QR is W1 times mend */
    real *w;                     /* [count][c][r] the matrices, then the reflectors */
    real *top;                   /* [count][c][c] what is reduced: the triangle of QR; else w */
    real *mend;                  /* [count][c][c] I - T, column-major; only if `cholesky` */
    real *tau, *tau_q, *tau_p;   /* [count][c] of QR, and of the reduction */
    real *d, *e;                 /* [count][c] B */
    unsigned long long *largest; /* [count] bits of the largest magnitudes */
    real_int *exponent;          /* [count] */
    char *kind;                  /* [count] */
    char *d_arrays;              /* the allocation that holds the arrays above */
    char *d_room;                /* what room() took; NULL: nothing */
    real *s, *u, *vh;            /* where the results are made; u and vh NULL: values only */
};

/* load.cu: reads the matrices to run->w.  d_stage: workspace as large as w; needed only if
   tsvdi_cuda_dense_stages() says so. */
bool tsvdi_cuda_dense_stages(const struct dense_problem *problem);
tsvd_status tsvdi_cuda_dense_load(struct tsvd_context *ctx, const struct dense_job *job,
                                  const struct cuda_dense *run, real *d_stage);

/* Matrices that are reduced to bidiagonal form.  All arrays are device memory. */
struct dense_reduction {
    int64_t r, c, count;
    real *w;             /* [count][c][r] in: the matrices; out: the reflectors, as in small.h */
    real *tau_q, *tau_p; /* [count][c] out */
    real *d, *e;         /* [count][c] out; e has a zero after the c - 1 of each matrix */
};

/* reduce.cu: the reduction; workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_dense_reduce_bytes(const struct cuda_call *call, int64_t r, int64_t c,
                                       int64_t count);
tsvd_status tsvdi_cuda_dense_reduce(struct tsvd_context *ctx, const struct dense_reduction *to,
                                    char *d_work);

/* resident.cu: the reduction from column `begin` on, if that part fits the shared memory of all
   multiprocessors; workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_dense_resident_bytes(const struct cuda_call *call, int64_t r, int64_t count);
bool tsvdi_cuda_dense_resident_fits(const struct cuda_call *call, const struct dense_reduction *to,
                                    int64_t begin);
tsvd_status tsvdi_cuda_dense_resident(struct cuda_call *call, const struct dense_reduction *to,
                                      int64_t begin, char *d_work);

/* Reflectors H_0, H_1, ... of each of `count` matrices, as the reduction leaves them. */
struct dense_factor {
    int64_t rows, count; /* entries of a vector that they act on; matrices */
    int right;           /* 0: v_i is in column i, its 1 on the diagonal.  1: u_i is in row i, its 1
                            right of the diagonal */
    const real *w;       /* column-major */
    int64_t ld, next;    /* numbers between columns, and between matrices */
    const real *tau;
    int64_t tau_next; /* numbers between those of a matrix and the next */
    int pieces;       /* 1: products over many terms are made piece by piece (pieces.h) */
};

/* reflectors.cu: replaces vectors x by H_begin ... H_(end-1) x, or by the transpose times x.
   d_work: the bytes for end - begin reflectors, or for more. */
uint64_t tsvdi_cuda_dense_reflect_bytes(int64_t rows, int64_t reflectors, int64_t count,
                                        int64_t vectors);
tsvd_status tsvdi_cuda_dense_reflect(struct tsvd_context *ctx, const struct dense_factor *f,
                                     int64_t begin, int64_t end, struct dense_small_vectors x,
                                     int transposed, char *d_work);

/* tall.cu: QR of w, r x c: R to `top`, c x c, the reflectors to w and tau. */
uint64_t tsvdi_cuda_dense_qr_bytes(const struct cuda_call *call, int64_t r, int64_t c,
                                   int64_t count);
tsvd_status tsvdi_cuda_dense_qr(struct tsvd_context *ctx, const struct cuda_dense *run,
                                char *d_work);

/* cholesky.cu: the same, with W1 to w and I - T to `mend`, if all of the matrices are conditioned
   well enough.  Returns when that is known. */
enum cholesky_outcome {
    CHOLESKY_MADE,
    CHOLESKY_REFUSED, /* w is as it was */
    CHOLESKY_SPOILED  /* not made either, but w has changed */
};
uint64_t tsvdi_cuda_dense_cholesky_bytes(const struct cuda_call *call, int64_t r, int64_t c,
                                         int64_t count);
tsvd_status tsvdi_cuda_dense_cholesky(struct tsvd_context *ctx, const struct cuda_dense *run,
                                      char *d_work, enum cholesky_outcome *outcome);

/* cholesky.cu: Q X of each matrix, which is `orthonormal`; k vectors are the columns of X, [c][k],
   and of the result, [r][k]; or the rows, [k][c] and [k][r].  d_work: count c k numbers. */
tsvd_status tsvdi_cuda_dense_expand(struct cuda_call *call, const struct cuda_dense *run, int64_t k,
                                    int rows, const real *d_x, real *d_to, char *d_work);

/* results.cu: L or R, [rows][columns], becomes the corner of an array; beyond it there are zeros,
   and ones on the diagonal that begins at its lower right.  Of each of `count` matrices. */
tsvd_status tsvdi_cuda_dense_place(struct cuda_call *call, int64_t count, const real *d_from,
                                   int64_t rows, int64_t columns, real *d_to, int64_t to_rows,
                                   int64_t to_columns);

/* results.cu: signs, scale, and NaN for what is not finite.  U is u_rows x u_columns and Vh
   v_rows x v_columns; the first k columns and rows belong to values. */
struct dense_shape {
    int64_t k, u_rows, u_columns, v_rows, v_columns;
};
static inline struct dense_shape
dense_shape_of(const struct dense_problem *p)
{
    const int64_t k = p->b.k;

    return {k, p->rows, p->full ? p->rows : k, p->full ? p->columns : k, p->columns};
}

/* A left vector has the sign that makes its largest entry positive; on a tie, the first one.  This
   finds that entry: `most` begins with 0, and the entries come in order. */
static __device__ __forceinline__ real
larger_entry(real most, real entry)
{
    return r_abs(entry) > r_abs(most) ? entry : most;
}

/* A value with the scale of A. */
static __device__ __forceinline__ real
scaled_value(real value, real_int exponent, bool lost)
{
    return lost ? REAL(NAN) : REAL(ldexp(value, (int)exponent));
}

uint64_t tsvdi_cuda_dense_finish_bytes(int64_t count, struct dense_shape shape);
tsvd_status tsvdi_cuda_dense_finish(struct cuda_call *call, const struct cuda_dense *run,
                                    struct dense_shape shape, char *d_work);

/* Has the results of run->count matrices, from number `begin` of the problem on, brought to the
   host. */
static inline tsvd_status
cuda_dense_deliver(struct tsvd_context *ctx, const struct dense_problem *p,
                   const struct cuda_dense *run, int64_t begin)
{
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t u_size = shape.u_rows * shape.u_columns, v_size = shape.v_rows * shape.v_columns;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(cuda_deliver(ctx, (real *)p->b.s + begin * shape.k, run->s,
                          (size_t)(run->count * shape.k) * sizeof(real)));
    if (p->b.vectors) {
        TSVD_TRY(cuda_deliver(ctx, (real *)p->b.L + begin * u_size, run->u,
                              (size_t)(run->count * u_size) * sizeof(real)));
        TSVD_TRY(cuda_deliver(ctx, (real *)p->b.R + begin * v_size, run->vh,
                              (size_t)(run->count * v_size) * sizeof(real)));
    }
out:
    return ret;
}

#endif
