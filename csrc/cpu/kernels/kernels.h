/*
 * The vector kernels of the CPU back end.
 *
 * cpu/kernels/kernels.c is compiled for each precision and each instruction set, and
 * complex_kernels.c for complex numbers of both.  Each object exports one table.  Its name is made
 * by a macro: KERNELS(TSVD_ISA) at the end of kernels.c is tsvdi_kernels_avx2 where TSVD_ISA is
 * avx2.  tsvdi_kernels() in choice.c picks the table of tsvdi_host_isa().
 */
#ifndef TSVDI_CPU_KERNELS_KERNELS_H
#define TSVDI_CPU_KERNELS_KERNELS_H

#include <stdalign.h>

#include "backend/ops.h"
#include "cpu/tuning.h"

struct blas_product;   /* host/blas.h */
struct twisted_matrix; /* math/twisted.h */

/* Sweeps that pass over a panel together.  Each row of the panel is loaded and stored once for WAVE
   rotations.  Eight rows and their operands fit in 16 registers. */
enum { WAVE = 8 };

/* Up to WAVE sweeps of one direction, as one pass over consecutive rows.  In step w sweep k rotates
   rows w - k and w - k + 1, counted from `first` in the direction of the sweep.  Where it has no
   rotation there, the coefficients are (0, 0). */
struct wave {
    int64_t first; /* the row that the pass begins with */
    int64_t steps;
    int64_t offset; /* place of its coefficients: half tangents [steps][WAVE], then the sines */
    int up;         /* the direction */
};

/* A strip of the vectors. */
struct panel {
    real *x;       /* [(WAVE + rows + WAVE) width]; the rows beyond both ends are zero */
    int64_t row0;  /* row j holds entries of vector row0 + j */
    int64_t rows;  /* vectors */
    int64_t width; /* entries of each vector; a multiple of kernels->lanes */
};

/* struct secular_sums, summed over lanes. */
struct cpu_sums {
    real psi, psi_slope, phi, phi_slope;
};

enum {
    /* Vectors of lanes in which QR works on small matrices side by side, where there are enough
       matrices: two hide the latency of the recurrence. */
    QR_VECTORS = 2,

    /* The most such matrices. */
    QR_LANES_MAX = QR_VECTORS * 64 / (int)sizeof(real),

    /* Rows of their chains: a leaf's, and two of zeros after them. */
    QR_ROWS = DC_LEAF_COLUMNS + 2,

    /* Sweeps that pass over a leaf's vectors together, as in WAVE. */
    LEAF_WAVE = 4
};

/* The unreduced block that each of `lanes` leaves has under work, as a chain (qr_sweep.h) from row
   0 on.  Lane l of row k is entry [k * lanes + l].  After its end a chain has zeros, and a sweep
   makes identities there. */
struct qr_lanes {
    alignas(64) real d[QR_ROWS * QR_LANES_MAX];
    real e[QR_ROWS * QR_LANES_MAX]; /* row k + 1: between rows k and k + 1 of d */

    /* By rows: of the block that ends with the row, the largest 1 / mu (qr_step.h) and the largest
       entry. */
    real inverse[QR_ROWS * QR_LANES_MAX], largest[QR_ROWS * QR_LANES_MAX];

    /* By lanes. */
    real_int dropped[QR_LANES_MAX]; /* bit k: the last sweep made entry k of e zero */
    real length[QR_LANES_MAX];      /* entries on the diagonal; 0: there is no block */
    real corner[3][QR_LANES_MAX];   /* f, g and h of the triangle at the end */
    real least[QR_LANES_MAX];       /* the least mu */
    real most[QR_LANES_MAX];        /* the largest entry */
    real negligible[QR_LANES_MAX];  /* as in struct qr_state */

    int64_t steps; /* rotations of the longest chain */
};

/* Numbers that the rotations of a sweep take.  Each row has the half tangents and the sines of its
   first rotations, then those of its second ones.  LEAF_WAVE rows of identities follow. */
enum { LANE_SWEEP = (QR_ROWS + LEAF_WAVE) * 4 * QR_LANES_MAX };

/* 1 to LEAF_WAVE sweeps over a chain of vectors. */
struct leaf_wave {
    real *row;      /* the vector that the chain begins with */
    ptrdiff_t step; /* from there to the next */
    int64_t width;  /* numbers of a vector; a multiple of kernels->lanes */
    int64_t count;  /* rotations of the first sweep, >= sweeps; the other sweeps have no more */
    int sweeps;
    int64_t lanes; /* of the chain, as in struct qr_lanes */

    /* For each sweep the half tangent of its rotation 0.  The sine is `lanes` numbers after it, and
       the half tangent of the next rotation 4 `lanes` numbers after it. */
    const real *turn[LEAF_WAVE];
};

/* The most numbers in a row of a strip of B: three of the widest vectors. */
enum { PRODUCT_WIDTH = 3 * 64 / (int)sizeof(real) };

/* C = A B, row by row: A is rows x terms with lda numbers between rows, B terms x columns, C rows x
   columns.  terms = 0 gives C = 0.  For blocks that fit in the L2 cache. */
struct product {
    int64_t rows, columns, terms;
    const real *a, *b;
    real *c;
    int64_t lda, ldb, ldc;
};

/* Rows that the reflectors of a diamond of the chase have entries in, and one more. */
enum { DIAMOND_ROWS = CPU_BAND + CPU_CHASE_DIAMOND };

/* Values whose vectors twisted factorisations make, and where these go. */
struct twisted_lanes {
    int64_t count;
    const double *shift;  /* [count] the values, approximately */
    const double *gap;    /* [count] the distance of each to the nearest other eigenvalue of T */
    double *high, *low;   /* [count] out: their sums are the values, scaled */
    double *angle_square; /* [count] out: the square of the angle by which z may be off */
    double *balance;      /* [count] out: |v|^2 / |u|^2, which is 1 for a vector of T */
    int column_rows;      /* 1: the odd rows of z, u, are columns; 0: the even ones, v */
    real *columns;        /* out: column i of an array with rows of `stride` numbers */
    int64_t stride;
    real *rows;   /* out: row i, n numbers each */
    double *work; /* [twist_workspace()] on a cache line's boundary */
};

/* The SVD of small matrices W side by side, one in each of the kernels' `lanes` lanes.  A number
   has an entry for each lane, one after another; a scalar has first those of its real parts, then
   those of its imaginary ones.  All arrays begin on the boundary of a vector register. */
struct svd_lanes {
    int64_t rows, columns; /* of W, rows >= columns >= 1 */
    int64_t left_columns;  /* columns, or rows: columns of U */
    int vectors;           /* 0: values alone are wanted */
    int orient_right;      /* 1: the vectors of V^H get the sign that tsvd.h fixes for U */
    int64_t max_sweeps;
    real *w;      /* [columns][rows] scalars, in: W as it is; overwritten */
    real *d, *e;  /* [columns + 1] workspace */
    real *b[2];   /* [columns] workspace: d and e before the sweeps */
    real *x[2];   /* [columns][columns] workspace: left and right vectors of B */
    real *qd;     /* [6 columns] workspace of values alone */
    real *values; /* [columns] out: of W times 2^-exponent, descending */
    real *left;   /* [left_columns][rows] scalars, out: columns of U, those of B in no order */
    real *right;  /* [columns][columns] scalars, out: rows of V^H in the order of U */

    /* Integers, out. */
    real_int *order;      /* [columns] the index of a value's vectors in `left` and `right` */
    real_int *exponent;   /* 2^-exponent scales the largest part of an entry into [1, 2) */
    real_int *kind;       /* ORDINARY, ZERO or NONFINITE; of these the results are those of zero */
    real_int *sweeps;     /* sweeps made */
    real_int *unfinished; /* 1: max_sweeps sweeps were not enough */
};

/* A reduction to bidiagonal form.  Columns are on the boundary of a vector register. */
struct small_reduction {
    int64_t rows, columns; /* rows >= columns >= 1 */
    int64_t stride;        /* numbers between columns: a multiple of the lanes, rows or more */
    real *
        a; /* [columns][stride] in: the matrix, with zeros after its rows; out: v, from the diagonal
                on, and u, from the second entry right of it on */
    real *d, *e, *tau_q, *tau_p; /* [columns] out */
    real *work;                  /* [6 stride] */
};

/* The inverses of small matrices M side by side, as struct svd_lanes has them. */
struct inverse_lanes {
    int64_t n;
    real *m;                  /* [n][n] scalars, in: M by rows; out: its inverse */
    real *column;             /* [n] scalars, workspace */
    real *pivot;              /* [n] workspace */
    real_int *rows, *columns; /* [n] workspace: exponents of math/balance.h */
    real_int *exponent;       /* workspace */
    real_int *kind;           /* out: ORDINARY, ZERO or NONFINITE */
    real_int *hard; /* out: 1: another way is needed, and the other results are of no use */
    real *norm, *inverse_norm; /* out: the largest sums of magnitudes of a row of M and of its
                                  inverse; their product has no unit */
};

struct cpu_kernels {
    const char *name;
    int lanes; /* reals of a vector */

    /* ---- of entries of dense matrices, and of real vectors ---- */

    /* y[i] += sum over j of a[j] x[j * stride + i], 0 <= i < count. */
    void (*accumulate)(int64_t count, int64_t terms, const scalar *a, const scalar *x,
                       int64_t stride, scalar *y);

    /* y[r * stride + i] += a[r] x[i], 0 <= r < rows, 0 <= i < columns. */
    void (*outer)(int64_t rows, int64_t columns, const scalar *a, const scalar *x, int64_t stride,
                  scalar *y);

    /* The dot product x^H y. */
    scalar (*dot)(int64_t count, const scalar *x, const scalar *y);

    /* sum[j] = a_j^H x, with a_j at a[j * stride ...], 0 <= j < vectors. */
    void (*dots)(int64_t count, int64_t vectors, const scalar *a, int64_t stride, const scalar *x,
                 scalar *sum);

    /* Finds the sign of each column's entry of largest magnitude (of equals the first), 1 or -1,
       and multiplies the column by it.  Complex: finds the direction of that entry, of magnitude 1,
       and divides by it.  A column has n entries, `stride` apart. */
    void (*orient)(int64_t columns, int64_t n, scalar *x, int64_t stride, scalar *sign);

    /* (x, y) becomes (c x + forward y, c y - back x), entry by entry, with c = 1 - less. */
    void (*mix)(int64_t count, real less, scalar forward, scalar back, scalar *x, scalar *y);

    /* Groups of vectors, `apart` numbers from one another, times a diamond of the chase or its
       transpose.  A group has DIAMOND_ROWS rows of group_lanes entries, one of each vector, aligned
       to a vector register.  Reflector i, of [CPU_CHASE_DIAMOND][CPU_BAND], begins in row i; those
       that are missing are zero, and so is their tau.  NULL: products of matrices are faster. */
    void (*diamond)(const scalar *reflector, const scalar *tau, int transposed, int64_t groups,
                    int64_t apart, scalar *x);
    int64_t group_lanes;

    /* y = A x, of vectors x [terms][CPU_BAND] and y [rows][CPU_BAND], on cache lines' boundaries:
       A is rows x terms with entry (i, j) at a[i * down + j * right], and terms > 0.  One of the
       two steps is 1.  NULL: products of matrices are faster. */
    void (*skinny)(int64_t rows, int64_t terms, const scalar *a, int64_t down, int64_t right,
                   const scalar *x, scalar *y);

    /* Reduces a small matrix.  NULL: not a complex one. */
    void (*reduce)(const struct small_reduction *matrix);

    /* The SVD of the matrices of all lanes. */
    void (*svd_lanes)(const struct svd_lanes *matrices);

    /* Their inverses. */
    void (*inverse_lanes)(const struct inverse_lanes *matrices);

#if TSVD_COMPLEX

    /* A product, in the calling thread; NULL: that of the BLAS is faster. */
    void (*product)(const struct blas_product *product);

#else /* ---- of bidiagonal matrices ---- */

    /* The half tangents and sines of the rotations, brought to norm 1.  They are stored WAVE
       numbers apart. */
    void (*lift)(int64_t count, const struct rotation *rotation, real *half_tangent, real *sine);

    /* Runs all waves over the panel. */
    void (*rotate)(struct panel panel, const struct wave *wave, int64_t waves,
                   const real *coefficients);

    /* One sweep over the chains of all lanes, which fill `vectors` vectors, 1 or QR_VECTORS.  Its
       rotations go to rotation[], from row 0 on; NULL: they are not wanted. */
    void (*qr_lanes)(struct qr_lanes *q, int vectors, real *rotation);

    /* Applies a wave of such sweeps to one lane's vectors. */
    void (*leaf_wave)(const struct leaf_wave *wave);

    /* to = sign x, brought to norm 1.  The norm of x is 1 but for rounding; `to` may be x. */
    void (*normalize)(int64_t count, real sign, const real *x, real *to);

    /* The sign of x's entry of largest magnitude (of equals the first): 1 or -1. */
    real (*sign_of_largest)(int64_t count, const real *x);

    /* (x, y) becomes (c x + s y, c y - s x), entry by entry. */
    void (*turn)(int64_t count, struct rotation turn, real *x, real *y);

    /* Makes a product.  panel: workspace, [CPU_PRODUCT_TERMS PRODUCT_WIDTH], on a cache line's
       boundary. */
    void (*multiply)(const struct product *product, real *panel);

    /* The sums over `count` poles at base + tau (secular.h). */
    struct cpu_sums (*secular)(int64_t count, const real *pole, const real *square, real base,
                               real tau, real below, real above);

    /* The product of secular_ratio() over `count` roots. */
    real (*ratios)(int64_t count, real pole, const real *other, const real *base, const real *tau);

    /* The right and the left singular vector of M for the root base + tau, of norm 1.  Entry
       `center` belongs to pole 0. */
    void (*coefficients)(int64_t count, int64_t center, const real *pole, const real *weight,
                         real base, real tau, real *right, real *left);

    /* above[i] = number of singular values >= sigma[i] > 0.  exact: right but for a relative error
       of sigma far below its last place.  Otherwise the plain form counts where it serves. */
    void (*count)(const struct sturm *matrix, int exact, int64_t count, const real *sigma,
                  int64_t *above);

    /* The minor of order 2n of shift I - T, last[i] 2^twos[i], and above[i] = number of singular
       values above shift[i] > 0, in doubles. */
    void (*twisted_count)(const struct twisted_matrix *matrix, int64_t count, const double *shift,
                          int64_t *above, double *last, int64_t *twos);

    /* Vectors by twisted factorisations, and the numbers that work[] must hold. */
    void (*twist)(const struct twisted_matrix *matrix, const struct twisted_lanes *job);
    int64_t (*twist_workspace)(const struct twisted_matrix *matrix);

    /* y = A x for probes: A is rows x terms with entry (i, j) at a[i * down + j * right]; x is
       [terms PROBES] and y [rows PROBES], on a cache line's boundary. */
    void (*probe)(int64_t rows, int64_t terms, const real *a, int64_t down, int64_t right,
                  const double *x, double *y);

#endif
};

extern const struct cpu_kernels tsvdi_kernels_generic, tsvdi_kernels_avx2, tsvdi_kernels_avx512;

/* The table of tsvdi_host_isa(). */
const struct cpu_kernels *tsvdi_kernels(void);

#endif
