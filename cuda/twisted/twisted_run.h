/*
 * Twisted factorisations on the device: what the files of this folder share.
 *
 *   twisted/twisted.cu  the operations of the seam; the matrix, the values and their gates
 *   twisted/pays.cu   whether divide and conquer would be faster
 *   twisted/values.cu   the values of small matrices
 *   twisted/vectors.cu  twists, corrections and vectors, with
 *       blocks.h          what the walks over rows share
 *       twist.h         the row of the twist
 *       chains.h        corrections and vectors by whole chains
 *       segments.h      the same with the chains in segments, for matrices of many rows
 *   twisted/probe.cu    probes of the vectors
 *
 * The mathematics is in csrc/math/twisted.h and csrc/math/probe.h.
 */
#ifndef TSVDI_CUDA_TWISTED_TWISTED_RUN_H
#define TSVDI_CUDA_TWISTED_TWISTED_RUN_H

#include "kernels.h"
#include "math/probe.h"
#include "math/twisted.h"

/* What kernels find out about a run; it starts as zeros. */
struct twisted_facts {
    unsigned long long smallness; /* the complement of the bits of the least |b_k| */
    unsigned long long refused;   /* how many values failed a gate */
    unsigned long long coarse;    /* how many have too large an error for their gap */
};

/* A run as kernels see it.  All arrays are in device memory. */
struct twisted_device {
    int64_t n, first, k;          /* order; the wanted values are first .. first + k - 1 */
    int64_t whole_first, whole_k; /* the same of the call that this one is a part of: its decisions
                                     are made here too */
    int lower;                    /* 1: L has the even rows of z, R the odd ones */
    const real *d, *e;            /* [n] the matrix as it was given; e ends with a zero */
    real_int exponent;            /* 2^-exponent scales it */
    double *b, *square, *rest;    /* [2n] as in struct twisted_matrix */
    double *double_d, *double_e;  /* [n] d and e, scaled */
    double *found;               /* [found_numbers()] the values, scaled, as bisection found them */
    double *value;               /* [k] each value as it was corrected, scaled */
    struct twisted_facts *facts; /* [1] */
    real *s, *columns, *rows;    /* results: [k], [n k], [k n] */

    /* For probes: [k PROBE_COLUMNS]; [n PROBE_COLUMNS] and [n PROBES]; [k PROBES] each. */
    double *probe, *sums[2], *seen[2];
    double *parts; /* for probes: [parts of a sum][n or k][up to PROBE_COLUMNS] */
};

enum { TOP, BOTTOM, ENDS };

/* What two chains found where they meet. */
struct met {
    wide g, square_norm;
};

/* The progress of a value whose chains are in segments. */
enum twisted_progress { OPEN, SETTLED, JOINED };

/* A value whose chains are in segments. */
struct twisted_value {
    pair x;       /* as it was corrected */
    double moved; /* the last correction */
    struct met met;
    enum twisted_progress progress;
};

/* The numbers of a chain in a segment: how it enters and how it leaves. */
enum chain_part {
    ENTER_HIGH, /* E, a pair */
    ENTER_LOW,
    SLOPE, /* its derivative by x */
    LEAVE_HIGH,
    LEAVE_LOW,
    PRODUCT, /* of the ratios b / E */
    CURVE,   /* see twisted/segments.h */
    NORM,    /* N without the part of the segments before */
    CHAIN_PARTS
};

/* The numbers of the rows of z in a segment: struct summary of twisted/blocks.h. */
enum summary_part { SUM_EVEN, SUM_ODD, LARGEST, LEAST, SUMMARY_PARTS };

/* The segments of the rows of T, and the chains that cross them. */
struct twisted_segments {
    int count;                   /* of them; 1: chains are whole */
    int rows;                    /* of each but the last, a multiple of WARP */
    double *chain;               /* [ENDS][count][CHAIN_PARTS][width] */
    double *summary;             /* [count][SUMMARY_PARTS][width] of the rows of z */
    struct twisted_value *state; /* [width] */
};

/* The largest entry of a vector in a slice of its rows, as it will be rounded, and the first row
   that has it. */
struct twisted_largest {
    real entry;
    int64_t row;
};

/* Values that are worked on together. */
struct twisted_block {
    int64_t begin, count; /* of the k wanted values */
    int64_t width;        /* columns of the arrays: a multiple of WARP */
    double *z;            /* [2n / 2][width][2]: two rows of a value are contiguous.  At first it
                             holds the minors of twisted/twist.h, [2n][width] */
    int *power;           /* [2n / stride][width] powers of two of the minors */
    int *value;           /* [width] the value of a column, counted from `begin`, see twist.h */
    int64_t *twist;       /* [width] row r */
    double *factor[2];    /* [width] of even rows and of odd rows, with the sign */
    struct twisted_segments segments;
    char *tied; /* [width] whether the largest entries of L's column tie, with both signs */
    int slices; /* of rows, to find the signs of tied columns */
    struct twisted_largest *largest; /* [slices][width] */
};

/* Columns of what the rows of L are multiplied by: X, and S X. */
enum { PROBE_COLUMNS = 2 * (int)PROBES };

/* Rows of a part of `sums` sums over `rows`. */
static inline int64_t
probe_slice(int64_t rows, int64_t sums)
{
    const int64_t few = PROBE_BLOCKS / (int64_t)blocks_for(sums, PROBE_SUMS);
    const int64_t slices = few > PROBE_SLICES ? few : (int64_t)PROBE_SLICES;
    const int64_t share = (rows + slices - 1) / slices;

    return share > PROBE_PART_ROWS ? share : (int64_t)PROBE_PART_ROWS;
}

static __device__ __forceinline__ double
least_of(const struct twisted_device &run)
{
    return __longlong_as_double((long long)~run.facts->smallness);
}

/* Whether the matrix does not fall into parts, and its entries are not too far apart. */
static __device__ __forceinline__ bool
twisted_takes(const struct twisted_device &run)
{
    return least_of(run) >= ldexp(1.0, -TWISTED_RANGE);
}

/* The matrix, as math/twisted.h sees it, if it is taken. */
static __device__ __forceinline__ struct twisted_matrix
matrix_of(const struct twisted_device &run)
{
    return {run.n, run.b, run.square, run.rest, twisted_stride(least_of(run))};
}

/* Values of the whole call that are found together, with their neighbours on either side: `found`
   depends on what is looked for at once, and a part of the call finds its own values alone. */
enum { FOUND_TOGETHER = 1 << 14 };

/* Place in `found` of value i of the whole call.  There is room for two neighbours of all that are
   found together. */
static __host__ __device__ __forceinline__ int64_t
found_place(int64_t i)
{
    return i + 2 * (i / FOUND_TOGETHER) + 1;
}

/* Numbers of `found`, for the k values of the whole call. */
static inline int64_t
found_numbers(int64_t k)
{
    return k + 2 * ((k + FOUND_TOGETHER - 1) / FOUND_TOGETHER);
}

/* The value, counted from the first wanted one, as it was found. */
static __device__ __forceinline__ double
found_at(const struct twisted_device &run, int64_t value)
{
    return run.found[found_place(run.first - run.whole_first + value)];
}

/* From it to the next one on either side. */
static __device__ __forceinline__ double
gap_of(const struct twisted_device &run, int64_t value)
{
    const int64_t index = run.first + value, j = found_place(index - run.whole_first);
    const double x = run.found[j];
    /* the last value's mirror image is one of T's eigenvalues too */
    const double below = index + 1 < run.n ? x - run.found[j + 1] : 2 * x;

    return index > 0 ? fmin(below, run.found[j - 1] - x) : below;
}

/* Whether a value is far enough from others, and from zero. */
static __device__ __forceinline__ bool
twisted_parts(double x, double gap)
{
    return gap >= TWISTED_RELGAP * x && x > 2 * TWISTED_LEAST;
}

/* Rows between two rescalings of minors: one of these, or WARP; at most matrix_of().stride. */
enum { SOME_STRIDE = 8, LEAST_STRIDE = 2 };

/* Each launches kernels on the call's stream.  values() makes the entries of T, and finds the
   values of small matrices. */
tsvd_status tsvdi_cuda_twisted_values(struct cuda_call *call, const struct twisted_device *run);

/* pays.cu: the share of the values that would survive the last merge of divide and conquer, 0 if
   the matrix is not taken; and the least |b_k|.  d_workspace: workspace, as large as block.z. */
tsvd_status tsvdi_cuda_twisted_share(struct cuda_call *call, const struct twisted_device *run,
                                     char *d_workspace, double *share, double *least);

tsvd_status tsvdi_cuda_twisted_make(struct cuda_call *call, const struct twisted_device *run,
                                    const struct twisted_block *block);
tsvd_status tsvdi_cuda_twisted_probe(const struct tsvd_context *ctx,
                                     const struct twisted_device *run);

#endif
