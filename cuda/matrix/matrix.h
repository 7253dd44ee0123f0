/*
 * Dense matrices on the device: what QR, the reduction, Jacobi and inverses share.
 *
 *   matrix/load.cu        matrices from where the caller has them (source.h)
 *   matrix/reflectors.cu  reflectors on vectors
 *   matrix/results.cu     signs and scale, and where the results go
 *   matrix/stages.h       the stages of a reduction
 *   matrix/shares.h       W shared out over several devices
 *   matrix/panel.h        groups of blocks that work on a matrix together
 *   matrix/split_sums.h   products over many terms
 *
 * All of them work on W, r x c with r >= c and column-major, with contiguous columns: A, or its
 * transpose (not its conjugate) if A has more columns than rows, times a power of two.
 *
 *     A = W    = Q B P^H          U = Q L,        Vh = R P^H
 *     A = W^T  = conj(P) B^T Q^T  U = conj(P) L,  Vh = R Q^T
 */
#ifndef TSVDI_CUDA_MATRIX_MATRIX_H
#define TSVDI_CUDA_MATRIX_MATRIX_H

#include "kernels.h"
#include "matrix/shares.h"
#include "runtime/blas.h"

/* W of the matrices of a chunk.  All arrays are device memory. */
struct cuda_matrices {
    int64_t r, c, count;         /* of a W; how many W there are */
    int transposed;              /* 1: W is A's transpose */
    scalar *w;                   /* [count][c][r] */
    unsigned long long *largest; /* [count] bits of the largest magnitudes */
    real_int *exponent;          /* [count] of the largest magnitudes */
    char *kind;                  /* [count] */
};

/* An entry of a matrix of the caller's, whose address need not be a multiple of its size. */
static __device__ __forceinline__ scalar
read_entry(const char *at)
{
#if TSVD_COMPLEX
    return {((const real *)at)[0], ((const real *)at)[1]};
#else
    return *(const scalar *)at;
#endif
}

/* x 2^-exponent. */
static __device__ __forceinline__ scalar
scaled_entry(scalar x, real_int exponent)
{
    const real_int one = exponent / 2, other = exponent - one;
    const real factor = r_pow2((int)-one), rest = r_pow2((int)-other);

    return n_scale(rest, n_scale(factor, x));
}

/* What entries are compared by: |x|, or, as here it cannot overflow, |x|^2.  It is the same where
   real and imaginary part are exchanged. */
static __device__ __forceinline__ real
entry_size(scalar x)
{
#if TSVD_COMPLEX
    return x.re * x.re + x.im * x.im;
#else
    return r_abs(x);
#endif
}

/* Where results are made.  All arrays are device memory. */
struct cuda_results {
    real *s;
    scalar *u, *vh; /* u and vh NULL: values only */
};

/* Takes device memory, if any is needed. */
static inline tsvd_status
cuda_take(struct cuda_call *call, size_t bytes, char **d_memory)
{
    return bytes > 0 ? tsvdi_cuda_alloc(call, bytes, (void **)d_memory) : TSVD_OK;
}

/* load.cu: reads matrices of `a`, from number `begin` on, to `to`; scaled: by their exponents.
   d_staging: workspace as large as w; needed only if tsvdi_cuda_dense_needs_staging() says so. */
bool tsvdi_cuda_dense_needs_staging(const struct dense_matrices *a);
tsvd_status tsvdi_cuda_dense_load(struct tsvd_context *ctx, const struct dense_matrices *a,
                                  int64_t begin, const struct cuda_matrices *to, int scaled,
                                  scalar *d_staging);

/* The same of a single matrix that is shared out, in two steps.  load_share() reads the own columns
   to to->w, not scaled yet, and sets to->largest [1] to that of the own columns.  scale_share()
   does the rest, when `largest` [members] has that of each.  d_staging: workspace for
   SHARED_BYTES(r). */
#define SHARED_BYTES(r) bytes_of(2 * (int64_t)SHARED_COLUMNS, bytes_of(r, sizeof(scalar)))
tsvd_status tsvdi_cuda_dense_load_share(struct tsvd_context *ctx, const struct dense_matrices *a,
                                        const struct cuda_matrices *to,
                                        const struct column_shares *shares, scalar *d_staging);
tsvd_status tsvdi_cuda_dense_scale_share(struct tsvd_context *ctx, const struct cuda_matrices *to,
                                         const struct column_shares *shares,
                                         unsigned long long *const *largest);

/* A matrix whose columns several devices have. */
struct shared_matrix {
    struct column_shares shares;
    const scalar *w[TEAM_MOST]; /* [own columns][r] of each member */
};

/* Reflectors H_0, H_1, ... of each of `count` matrices, as the reduction leaves them. */
struct dense_factor {
    int64_t rows, count; /* entries of a vector that they act on; matrices */
    int right;           /* 0: v_i is in column i, its 1 on the diagonal.  Else u_i is in row i, its
                            1 as many columns right of the diagonal */
    const scalar *w;     /* column-major */
    int64_t ld, next;    /* numbers between columns, and between matrices */
    const scalar *tau;
    int64_t tau_next; /* numbers between those of a matrix and the next */
    int split;        /* 1: sums of many terms are made of partial sums (split_sums.h) */
    const struct shared_matrix *shared; /* where the columns are in the place of w, of a single
                                           matrix; NULL: they are in w */
};

/* Vectors that reflectors are applied to, of each matrix. */
struct dense_block {
    scalar *d_x; /* those of the first matrix; those of the next are `next` numbers further on */
    int64_t next;
    int64_t count;  /* vectors of a matrix */
    int64_t stride; /* numbers between the rows of the array that holds a matrix's vectors */
    int rows;       /* 0: vector j is column j of that array, X := Q X; 1: it is row j,
                       X := X Q^T.  Either way every vector x becomes Q x */
    int conjugated; /* 1: the array holds the conjugates of the vectors: X := conj(Q) X, or X Q^H */
};

/* reflectors.cu: replaces vectors x by H_begin ... H_(end-1) x, or by the adjoint times x.
   d_work: the bytes for end - begin reflectors, or for more. */
uint64_t tsvdi_cuda_dense_reflect_bytes(int64_t rows, int64_t reflectors, int64_t count,
                                        int64_t vectors);
tsvd_status tsvdi_cuda_dense_reflect(struct tsvd_context *ctx, const struct dense_factor *f,
                                     int64_t begin, int64_t end, struct dense_block x,
                                     int transposed, char *d_work);

/* results.cu: L or R, [rows][columns], becomes the corner of an array; beyond it there are zeros,
   and ones on the diagonal that begins at its lower right.  Of each of `count` matrices. */
tsvd_status tsvdi_cuda_dense_place(struct cuda_call *call, int64_t count, const real *d_from,
                                   int64_t rows, int64_t columns, scalar *d_to, int64_t to_rows,
                                   int64_t to_columns);

/* results.cu: signs, scale by d_exponent [count] (NULL: none), and NaN for what is not finite.  U
   is u_rows x u_columns and Vh v_rows x v_columns; the first k columns and rows belong to values.
   */
struct dense_shape {
    int64_t k, u_rows, u_columns, v_rows, v_columns;
};
static inline struct dense_shape
dense_shape_of(const struct dense_problem *p)
{
    const int64_t k = p->k;

    return {k, p->a.rows, p->full ? p->a.rows : k, p->full ? p->a.columns : k, p->a.columns};
}

/* A left vector is turned so that its largest entry is real and positive; on a tie, the first one.
   This finds that entry: `most` begins with 0, and the entries come in order. */
static __device__ __forceinline__ scalar
larger_entry(scalar most, scalar entry)
{
    return entry_size(entry) > entry_size(most) ? entry : most;
}

/* Whether a vector with this largest entry has to be turned. */
static __device__ __forceinline__ bool
turns(scalar most)
{
#if TSVD_COMPLEX
    return most.im != 0 || most.re < 0;
#else
    return most < 0;
#endif
}

/* An entry of a left vector once `most`, the vector's largest entry, is made real and positive, and
   one of the row of Vh that belongs to it.  Only if turns(most). */
static __device__ __forceinline__ scalar
turned_left(scalar x, scalar most)
{
#if TSVD_COMPLEX
    const real size = r_sqrt(n_abs2(most));

    return x == most ? scalar(size) : n_mul(x, n_conj(most / size));
#else
    (void)most;
    return -x;
#endif
}

static __device__ __forceinline__ scalar
turned_right(scalar x, scalar most)
{
#if TSVD_COMPLEX
    return n_mul(x, most / r_sqrt(n_abs2(most)));
#else
    (void)most;
    return -x;
#endif
}

/* What belongs to a matrix that is not finite. */
static __device__ __forceinline__ scalar
lost_entry(void)
{
#if TSVD_COMPLEX
    return {REAL(NAN), REAL(NAN)};
#else
    return REAL(NAN);
#endif
}

/* A value with the scale of A. */
static __device__ __forceinline__ real
scaled_value(real value, real_int exponent, bool lost)
{
    return lost ? REAL(NAN) : REAL(ldexp(value, (int)exponent));
}

uint64_t tsvdi_cuda_dense_finish_bytes(int64_t count, struct dense_shape shape);
tsvd_status tsvdi_cuda_dense_finish(struct cuda_call *call, const struct cuda_matrices *in,
                                    const real_int *d_exponent, const struct cuda_results *out,
                                    struct dense_shape shape, char *d_work);

/* results.cu, see struct backend. */
tsvd_status tsvdi_cuda_dense_orient_by_column(const struct column_results *results);

/* Delivers the results of `count` matrices, from number `begin` of the problem on, to the host. */
static inline tsvd_status
cuda_dense_deliver(struct tsvd_context *ctx, const struct dense_problem *p,
                   const struct cuda_results *out, int64_t begin, int64_t count)
{
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t u_size = shape.u_rows * shape.u_columns, v_size = shape.v_rows * shape.v_columns;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(cuda_deliver(ctx, (real *)p->S + begin * shape.k, out->s,
                          (size_t)(count * shape.k) * sizeof(real)));
    if (p->vectors) {
        TSVD_TRY(cuda_deliver_left(ctx, (scalar *)p->U + begin * u_size, p->left_stride, out->u,
                                   count * shape.u_rows, shape.u_columns, sizeof(scalar)));
        TSVD_TRY(cuda_deliver(ctx, (scalar *)p->Vh + begin * v_size, out->vh,
                              (size_t)(count * v_size) * sizeof(scalar)));
    }
out:
    return ret;
}

#endif
