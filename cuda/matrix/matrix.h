/*
 * Dense matrices on the device: what QR, the reduction, Jacobi and inverses share.
 *
 *   matrix/load.cu        matrices from where the caller has them
 *   matrix/reflectors.cu  reflectors on vectors
 *   matrix/results.cu     signs and scale, and where the results go
 *   matrix/panel.h        groups of blocks that work on a matrix together
 *   matrix/pieces.h       products over many terms
 *
 * All of them work on W, r x c with r >= c and column-major, with contiguous columns: A, or its
 * transpose if A has more columns than rows, times a power of two.  W = Q B P^T, and what A's U is
 * made of is Q, or P if W is the transpose.
 */
#ifndef TSVDI_CUDA_MATRIX_MATRIX_H
#define TSVDI_CUDA_MATRIX_MATRIX_H

#include "kernels.h"
#include "runtime/blas.h"

/* What a job holds.  All arrays are device memory. */
struct cuda_dense {
    int64_t r, c, count;             /* of a W; how many W there are */
    int transposed, qr_first, small; /* 1: W is A's transpose; QR comes first; small.cu reduces */
    int unscaled;              /* 1: load() does not scale, and the values have the scale of A;
                                    exponents are found all the same */
    int cholesky;              /* 1: cholesky.cu may do the QR, as Q is applied to vectors of B
                                    only */
    int orthonormal;           /* 1: that succeeded: w has W1, and Q of QR is W1 times correction */
    real *w;                   /* [count][c][r] the matrices, then the reflectors */
    real *r_factor;            /* [count][c][c] what is reduced: the triangle of QR; else w */
    real *correction;          /* [count][c][c] I - T, column-major; only if `cholesky` */
    real *tau, *tau_q, *tau_p; /* [count][c] of QR, and of the reduction */
    real *d, *e;               /* [count][c] B */
    unsigned long long *largest; /* [count] bits of the largest magnitudes */
    real_int *exponent;          /* [count] */
    char *kind;                  /* [count] */
    char *d_arrays;              /* the allocation that holds the arrays above */
    char *d_workspace;           /* what reserve() took; NULL: nothing */
    real *s, *u, *vh;            /* where the results are made; u and vh NULL: values only */
};

/* load.cu: reads the matrices to run->w.  d_stage: workspace as large as w; needed only if
   tsvdi_cuda_dense_stages() says so. */
bool tsvdi_cuda_dense_stages(const struct dense_problem *problem);
tsvd_status tsvdi_cuda_dense_load(struct tsvd_context *ctx, const struct dense_job *job,
                                  const struct cuda_dense *run, real *d_stage);

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

/* Vectors that reflectors are applied to, of each matrix. */
struct dense_block {
    real *d_x; /* those of the first matrix; those of the next are `next` numbers further on */
    int64_t next;
    int64_t count;  /* vectors of a matrix */
    int64_t stride; /* numbers between the rows of the array that holds a matrix's vectors */
    int rows;       /* 0: vector j is column j of that array, X := Q X; 1: it is row j,
                       X := X Q^T.  Either way every vector x becomes Q x */
};

/* reflectors.cu: replaces vectors x by H_begin ... H_(end-1) x, or by the transpose times x.
   d_work: the bytes for end - begin reflectors, or for more. */
uint64_t tsvdi_cuda_dense_reflect_bytes(int64_t rows, int64_t reflectors, int64_t count,
                                        int64_t vectors);
tsvd_status tsvdi_cuda_dense_reflect(struct tsvd_context *ctx, const struct dense_factor *f,
                                     int64_t begin, int64_t end, struct dense_block x,
                                     int transposed, char *d_work);

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
