/*
 * Inverses on the device: what the files of this folder share.
 *
 *   inverse/inverse.cu     the operations of the seam, and their memory
 *   inverse/balance.cu     what comes before and after elimination: scaling, what is found
 *   inverse/probe.h        whether an inverse is right
 *   inverse/wide.h         entries in the precision of double
 *   inverse/tiny.cuh       elimination in the registers of a thread
 *   inverse/small.cu       elimination in the registers of a warp or a block
 *   inverse/registers.cuh  what tiny.cuh and small.cu share
 *   inverse/large.cu       elimination by blocks of columns, halves of these, and panels
 *   inverse/panel.h        their kernels: a cluster of blocks, or all multiprocessors
 *   inverse/refine.cu      the step of Newton's iteration
 *   inverse/rescue.cu      inverses once more of matrices that elimination fails for, by QR
 *   inverse/complete.cu    or by complete pivoting
 *
 * All matrices are stored by columns.  M is the transpose of A, so that the columns of M's inverse
 * are the rows of A's.  It is scaled to S (math/balance.h), and Y is the inverse of S.  Norms are
 * those of 2^-exponent M and its inverse, with the exponent of M's largest entry.
 *
 * Elimination is that of Gauss and Jordan, in place: step k takes the row p_k, of those that no
 * step had yet, with the largest entry in column k, and subtracts multiples of it from all others.
 * Entries are compared by n_size(), or by the leading bits of that.  Rows do not move.  In the end
 * entry (p_s, j) of the array is entry (s, p_j) of the inverse.
 */
#ifndef TSVDI_CUDA_INVERSE_INVERSE_RUN_H
#define TSVDI_CUDA_INVERSE_INVERSE_RUN_H

#include <climits>

#include "math/balance.h"
#include "matrix/matrix.h"

/* What is found of a chunk, in device memory: the least of each. */
struct inverse_marks {
    unsigned long long nonfinite, singular, grown; /* a matrix; ULLONG_MAX: none */
    unsigned long long worst; /* the upper half of a reciprocal condition and the matrix, 32 bits
                                 each */
};

/* What a job holds.  All arrays are device memory. */
struct cuda_inverse {
    struct cuda_matrices in;     /* M, not scaled: r = c = n */
    scalar *x;                   /* [count][n][n] the results */
    char *grown;                 /* [count] 1: a pivot is large; later as in struct inverse_job */
    char *singular;              /* [count] 1: a pivot is zero; right after grown [count] */
    double *norms;               /* [count] largest sum of magnitudes of a row of 2^-exponent M */
    double *x_norms;             /* [count] the same of its inverse */
    double *off, *size;          /* [count] as in probe.h */
    scalar_double *z;            /* [count][n] as in probe.h */
    int *row, *column;           /* [count][n] exponents */
    struct inverse_marks *marks; /* [1] */
    char *d_arrays;              /* the allocation of what lives as long as the job */
};

static __host__ __device__ __forceinline__ struct inverse_marks
no_marks(void)
{
    return {ULLONG_MAX, ULLONG_MAX, ULLONG_MAX, ULLONG_MAX};
}

/* What matrix number `index` is found to be.  norms: that of 2^-exponent M times that of its
   inverse. */
static __device__ __forceinline__ struct inverse_marks
marks_of(int64_t index, bool finite, bool singular, bool grown, double norms)
{
    const unsigned long long number = (unsigned long long)index;
    const double rcond = norms > 0 ? 1 / norms : 0; /* 0 also for NaN */
    struct inverse_marks marks = no_marks();

    if (!finite) {
        marks.nonfinite = number;
    } else if (grown) {
        marks.grown = number;
    } else if (singular) {
        marks.singular = number;
    } else {
        unsigned long long bits;

        memcpy(&bits, &rcond, sizeof(bits));
        marks.worst = bits >> 32 << 32 | number;
    }
    return marks;
}

static __host__ __device__ __forceinline__ struct inverse_marks
least_marks(const struct inverse_marks &a, const struct inverse_marks &b)
{
    return {a.nonfinite < b.nonfinite ? a.nonfinite : b.nonfinite,
            a.singular < b.singular ? a.singular : b.singular,
            a.grown < b.grown ? a.grown : b.grown, a.worst < b.worst ? a.worst : b.worst};
}

/* *least := the lesser of x and *least; called by many threads. */
static __device__ __forceinline__ void
mark_least(unsigned long long *least, unsigned long long x)
{
    if (x != ULLONG_MAX && x < *(volatile unsigned long long *)least) {
        atomicMin(least, x); /* few get here */
    }
}

static __device__ __forceinline__ void
add_marks(struct inverse_marks *to, const struct inverse_marks &found)
{
    mark_least(&to->nonfinite, found.nonfinite);
    mark_least(&to->singular, found.singular);
    mark_least(&to->grown, found.grown);
    mark_least(&to->worst, found.worst);
}

/* What a matrix that is not finite has in place of its inverse: NaN, in both parts. */
static __device__ __forceinline__ scalar
no_inverse(void)
{
    const real none = r_from_bits(R_INFINITY_BITS | 1);

#if TSVD_COMPLEX
    return {none, none};
#else
    return none;
#endif
}

/* |x|, in float64. */
static __device__ __forceinline__ double
modulus(scalar x)
{
#if TSVD_COMPLEX
    return hypot(x.re, x.im);
#else
    return fabs((double)x);
#endif
}

/* The exponent of n_size(x). */
static __device__ __forceinline__ int
entry_exponent(scalar x)
{
#if TSVD_COMPLEX
    return balance_exponent(n_size(x));
#else
    return balance_exponent(x);
#endif
}

/* What a lane, row or block has found, and where. */
struct inverse_best {
    real size; /* below 0: nothing */
    int at;
};

/* How good an entry is as a pivot.  NaN, of what overflows, is no better than zero. */
static __device__ __forceinline__ real
pivot_size(scalar x)
{
    return x == x ? n_size(x) : REAL(0);
}

/* Digits in the upper 32 bits of a number. */
enum { UPPER_DIGITS = R_DIGITS - (R_BITS - 32) };

/* The upper 32 bits of n_size(x). */
static __device__ __forceinline__ int
upper_half(scalar x)
{
    const int upper = (int)(((real_uint)r_bits(n_real(x)) & ~R_SIGN_BIT) >> (R_BITS - 32));
#if TSVD_COMPLEX
    const int other = (int)(((real_uint)r_bits(n_imag(x)) & ~R_SIGN_BIT) >> (R_BITS - 32));

    return upper > other ? upper : other;
#else
    return upper;
#endif
}

/* x / pivot, the multiple of the pivot's row that a row loses.  It is 1 if they are equal, so that
   a row that is equal to the pivot's becomes zero.  If the pivot is zero the matrix is singular,
   and any number will do.  A division would be a call, and comparisons of numbers take longer than
   those of their bits. */
#if TSVD_COMPLEX
/* x conj(pivot) / |pivot|^2, with the pivot brought near 1.  No operation is fused: of equal
   numbers x conj(pivot) and |pivot|^2 are the same bits. */
static __device__ __forceinline__ scalar
pivot_factor(scalar x, scalar pivot)
{
    const bool is_zero = n_size_bits(pivot) == 0;
    const int exponent = (upper_half(pivot) >> UPPER_DIGITS) - R_BIAS;
    const real lift = r_pow2(exponent < R_BIAS ? -exponent : 1 - R_BIAS);
    const scalar a = n_scale(lift, x), b = is_zero ? scalar(1) : n_scale(lift, pivot);
    const real square = b.re * b.re + b.im * b.im;

    return {r_quotient(a.re * b.re + a.im * b.im, square),
            r_quotient(a.im * b.re - a.re * b.im, square)};
}
#else
static __device__ __forceinline__ scalar
pivot_factor(scalar x, scalar pivot)
{
    enum {
        FAIR_POWER = 3 * R_BIAS / 4,
        LIFT_POWER = R_BIAS / 2,
        LEAST = (R_BIAS - FAIR_POWER) << UPPER_DIGITS,
        MOST = (R_BIAS + FAIR_POWER) << UPPER_DIGITS
    };
    const bool is_zero = ((real_uint)r_bits(pivot) & ~R_SIGN_BIT) == 0;
    const int size = upper_half(pivot);
    const real lift = size < LEAST ? r_pow2(LIFT_POWER)
                      : size > MOST ? r_pow2(-LIFT_POWER)
                                    : REAL(1);

    return r_quotient(x * lift, is_zero ? REAL(1) : pivot * lift);
}
#endif

/* The larger of two; on a tie the one with the lower `at`. */
static __device__ __forceinline__ struct inverse_best
better(struct inverse_best a, struct inverse_best b)
{
    return b.size > a.size || (b.size == a.size && b.at < a.at) ? b : a;
}

/* The best of a group of lanes of a warp, in each of them. */
static __device__ __forceinline__ struct inverse_best
best_of_lanes(struct inverse_best own, int group)
{
    for (int lanes = group / 2; lanes > 0; lanes /= 2) {
        struct inverse_best other;

        other.size = __shfl_xor_sync(0xffffffffu, own.size, lanes);
        other.at = __shfl_xor_sync(0xffffffffu, own.at, lanes);
        own = better(own, other);
    }
    return own;
}

/* The largest number of a group of lanes of a warp, in each of them. */
static __device__ __forceinline__ int
largest_of_lanes(int x, int group)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (group == WARP) {
        return __reduce_max_sync(0xffffffffu, x);
    }
#endif
    for (int lanes = group / 2; lanes > 0; lanes /= 2) {
        const int other = __shfl_xor_sync(0xffffffffu, x, lanes);

        x = other > x ? other : x;
    }
    return x;
}

/* inverse.cu: adds what was found of matrices to what was found before; the first of them has the
   number `begin`. */
void tsvdi_cuda_inverse_note(const struct inverse_marks *marks, int64_t begin,
                             struct inverse_findings *found);

/* balance.cu: S in place of M, with its exponents, norms and z.  d_work: of that many bytes, here
   and below. */
uint64_t tsvdi_cuda_inverse_scale_bytes(int64_t n, int64_t count);
tsvd_status tsvdi_cuda_inverse_balance(struct cuda_call *call, const struct cuda_inverse *run,
                                       char *d_work);

/* balance.cu: M's inverses, to run->x, from Y, as elimination leaves it with its pivots d_p, or in
   order if these are NULL.  run->grown and run->marks tell what was found. */
tsvd_status tsvdi_cuda_inverse_finish(struct cuda_call *call, const struct cuda_inverse *run,
                                      const int *d_p, const scalar *d_from, char *d_work);

/* balance.cu: the last step of finish(), which marks the matrices by what was found.  last: none is
   marked as grown, as nothing is computed once more. */
tsvd_status tsvdi_cuda_inverse_mark(struct cuda_call *call, const struct cuda_inverse *run,
                                    bool last);

/* balance.cu: Y in order, to run->x, from run->in.w. */
tsvd_status tsvdi_cuda_inverse_arrange(struct cuda_call *call, const struct cuda_inverse *run,
                                       const int *d_p);

/* rescue.cu: as in struct inverse_ops. */
tsvd_status tsvdi_cuda_inverse_rescue(struct tsvd_context *ctx, struct inverse_job *job, int64_t i);

/* complete.cu: Y of a single matrix, in order, to run->x, from S in run->in.w.  run->singular: a
   pivot is zero, which may have been too small for a number. */
tsvd_status tsvdi_cuda_inverse_complete(struct tsvd_context *ctx, const struct cuda_inverse *run);

/* complete.cu: M's inverse instead, and its norm, whatever the range of Y and of pivots is. */
tsvd_status tsvdi_cuda_inverse_complete_extended(struct tsvd_context *ctx,
                                                 const struct cuda_inverse *run);

/* small.cu: whether it takes matrices of this order. */
bool tsvdi_cuda_inverse_small_fits(int64_t n);

/* small.cu: the inverses of M, in run->in.w, to run->x, with run->marks; the two may be one array.
   run->in.kind is NULL if M was not loaded.  only: S comes in place of M, and Y is made of it, with
   run->singular. */
tsvd_status tsvdi_cuda_inverse_small(struct cuda_call *call, const struct cuda_inverse *run,
                                     bool only);

/* large.cu: eliminates S in run->in.w, which is another array than run->x.  p [count][n] gets the
   pivots.  Workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_inverse_large_bytes(struct cuda_call *call, int64_t n, int64_t count);
tsvd_status tsvdi_cuda_inverse_large(struct tsvd_context *ctx, const struct cuda_inverse *run,
                                     int *d_p, char *d_work);

/* refine.cu: a step on Y, in run->x, which is the inverse of S, in d_s.  A matrix for which the
   step does not pay stays as it is.  Workspace in bytes, d_work of that size. */
uint64_t tsvdi_cuda_inverse_refine_bytes(int64_t n, int64_t count);
tsvd_status tsvdi_cuda_inverse_refine(struct cuda_call *call, const struct cuda_inverse *run,
                                      scalar *d_s, char *d_work);

#endif
