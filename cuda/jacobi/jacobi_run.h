/*
 * One-sided Jacobi on the device: what its kernels share.
 *
 * They rotate the columns of W, r x c, themselves; the CPU does the same after a QR decomposition
 * (csrc/cpu/jacobi/jacobi_run.h), and so does pairs.cuh.  W is the tall form of A as it is, without
 * a scale; of a square A each matrix of a batch is replaced by its transpose, if jacobi_by_rows()
 * says so.  In the end X = W J has orthogonal columns s_j u_j, and J has the other vectors: the
 * product of the rotations, if it is W that they rotate.  Columns may be in any order: `order`
 * tells their ranks.
 *
 * Transposes are not conjugated, so that with W = Y S J^H
 *
 *     A = W    U = Y,        Vh = conj(J)^T
 *     A = W^T  U = conj(J),  Vh = Y^T.
 *
 * What is asked of J is its conjugate either way, and that is what the kernels leave.
 */
#ifndef TSVDI_CUDA_JACOBI_JACOBI_RUN_H
#define TSVDI_CUDA_JACOBI_JACOBI_RUN_H

#include "math/jacobi.h"
#include "matrix/matrix.h"

enum {
    PAIR_LANES = sizeof(scalar) > 8 ? 8 : 16, /* threads that pairs.cuh gives a matrix */
    PAIR_ORDER = 2 * PAIR_LANES               /* rows and columns of its matrices, at most */
};

/* Matrices that are decomposed.  All arrays are device memory.  Where pairs.cuh places the
   results itself, W and s stay as they are, and v is workspace. */
struct jacobi_batch {
    int r, c;
    int64_t count;
    int max_sweeps;
    const real_int *exponent; /* [count] of the largest entry of W */
    bool *transposed;         /* [count] out: W was replaced by its transpose */
    scalar *w;                /* [count][c][r] in: W; out: the columns of X at norm 1, or zeros */
    scalar *v;                /* [count][c][c] out: the columns of conj(J); NULL: values only */
    real *s;                  /* [count][c] out: the values, descending */
    int *order;               /* [count][c] out: the columns in the order of their values */
    int *rank;                /* [count] out: how many values are not zero */
    scalar *reflectors;       /* [count][c][PAIR_ORDER] workspace of pairs.cuh */
    bool *refused;            /* [count] out of pairs.cuh: left to warp.cuh */
    const char *kind;         /* [count] */
    struct jacobi_outcome *made; /* [count] out */
};

/* Where the results that the caller wants are made.  All arrays are device memory.  pairs.cuh
   places results itself if all vectors belong to values; else it gets u NULL. */
struct jacobi_results {
    int transposed; /* 1: W is A's transpose */
    int first, k;   /* the ranks first .. first + k - 1 */
    real *s;        /* [count][k] */
    scalar *u, *vh; /* [count][u_rows][u_columns], [count][v_rows][v_columns] of dense_shape */
};

/* Where the norm of a column leaves these bounds, the column is scaled by a power of two. */
#define JACOBI_NORM_LEAST r_pow2(-10)
#define JACOBI_NORM_MOST r_pow2(10)

/* The largest number of a warp, in every lane. */
static __device__ __forceinline__ real
largest_of_warp(real x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x = r_max(x, __shfl_xor_sync(0xffffffffu, x, lanes));
    }
    return x;
}

/* mantissa 2^exponent, rounded once; infinity if it is too large. */
static __device__ __forceinline__ real
jacobi_value(real mantissa, int exponent)
{
    return jacobi_shifted(jacobi_shifted(mantissa, exponent / 2), exponent - exponent / 2);
}

/* 2^shift x, of which zero and infinity may become. */
static __device__ __forceinline__ scalar
jacobi_shifted_entry(scalar x, int64_t shift)
{
    return n_scale(jacobi_shifted(1, shift), x);
}

/* |x| is compared to `bound` as entry_size(x) is to this.  Squares must not underflow near the
   bound. */
static __device__ __forceinline__ real
bound_of_size(real bound)
{
    return TSVD_COMPLEX ? bound * bound : bound;
}

/* What became of a matrix. */
static __device__ __forceinline__ void
write_made(const struct jacobi_batch &q, int64_t matrix, int64_t rotations, int sweeps,
           bool unfinished)
{
    q.made[matrix] = {rotations, sweeps, (int8_t)q.kind[matrix], (int8_t)unfinished, 0};
}

/* What two columns, a before b, do to each other. */
struct jacobi_meeting {
    bool turns;    /* they are not orthogonal */
    bool b_longer; /* the column of b is the longer one */
    struct jacobi_turn turn;
};

/* dot: a^H b */
static __device__ __forceinline__ struct jacobi_meeting
jacobi_meet(scalar dot, real norm_a, int exponent_a, real norm_b, int exponent_b, real tolerance)
{
    const bool there = norm_a > 0 && norm_b > 0;
    const scalar cosine = there ? dot / (norm_a * norm_b) : scalar(0);
    const int shift = exponent_b - exponent_a;
    struct jacobi_meeting meeting = {};

    meeting.turns = entry_size(cosine) > bound_of_size(tolerance);
    meeting.b_longer = meeting.turns && jacobi_is_less(norm_a, norm_b, shift);
    if (meeting.turns) {
        meeting.turn = meeting.b_longer ? jacobi_turn_of(n_conj(cosine), norm_b, norm_a, -shift)
                                        : jacobi_turn_of(cosine, norm_a, norm_b, shift);
    }
    return meeting;
}

#endif
