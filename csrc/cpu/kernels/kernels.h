/*
 * The vector kernels of the CPU back end.
 *
 * cpu/kernels/kernels.c is compiled for each precision and each instruction set; every
 * object exports one table, and choice.c picks the best that the processor runs.
 */
#ifndef TSVDI_CPU_KERNELS_H
#define TSVDI_CPU_KERNELS_H

#include <stdalign.h>

#include "backend/ops.h"

/* Sweeps that pass over a panel together: each row of the panel is loaded and stored
   once for so many rotations.  Eight rows and their operands fit in 16 registers. */
enum { WAVE = 8 };

/* Up to WAVE sweeps of one direction, as one pass over consecutive rows.  In step w
   sweep k rotates rows w - k and w - k + 1, counted from `first` in the direction of
   the sweep; where it has no rotation there, the coefficients are (1, 0). */
struct wave {
    int64_t first;
    int64_t steps;
    int64_t offset; /* of its coefficients: c, s for [steps][WAVE] */
    int up;
};

/* A strip of the vectors: row j holds `width` entries of vector `row0` + j. */
struct panel {
    real *x; /* [(WAVE + rows + WAVE) width]; the rows beyond both ends are zero */
    int64_t row0, rows;
    int64_t width; /* a multiple of kernels->lanes */
};

/* struct secular_sums, summed over lanes. */
struct cpu_sums {
    real psi, psi_slope, phi, phi_slope;
};

/* Small matrices that QR works on side by side: a vector of lanes, or so many to hide the latency
   of the recurrence. */
enum { QR_VECTORS = 2, QR_LANES_MAX = QR_VECTORS * 64 / (int)sizeof(real) };

/* Their rows: a leaf's, and zeros behind. */
enum { QR_ROWS = DC_LEAF_COLUMNS + 2 };

/* Sweeps that pass over a leaf's vectors together, as in WAVE. */
enum { LEAF_WAVE = 4 };

/* The unreduced block that each of `lanes` leaves has under work, as a chain (qr_sweep.h) from row
   0 on; lane l of row k is entry [k * lanes + l].  Behind its end a chain has zeros, and a sweep
   makes identities there. */
struct qr_lanes {
    alignas(64) real d[QR_ROWS * QR_LANES_MAX];
    real e[QR_ROWS * QR_LANES_MAX]; /* row k + 1: between rows k and k + 1 of d */
    /* of the block that ends with a row: the most 1 / mu (qr_step.h) and the largest entry */
    real inverse[QR_ROWS * QR_LANES_MAX], largest[QR_ROWS * QR_LANES_MAX];
    real_int dropped[QR_LANES_MAX]; /* bit k: the sweep made entry k of e zero */

    /* for the next sweep, by lanes: entries on the diagonal, 0: none; the triangle at the end;
       the least mu and the largest entry */
    real length[QR_LANES_MAX], corner[3][QR_LANES_MAX];
    real least[QR_LANES_MAX], most[QR_LANES_MAX];
    real negligible[QR_LANES_MAX]; /* as in struct qr_state */
    int64_t steps;                 /* most rotations of a chain */
};

/* Entries that the rotations of a sweep take: for each row the cosines and the sines of the first,
   then of the second rotations; LEAF_WAVE rows of identities behind. */
enum { LANE_SWEEP = (QR_ROWS + LEAF_WAVE) * 4 * QR_LANES_MAX };

/* 1 to LEAF_WAVE sweeps over a chain of the vectors in rows of `width` numbers. */
struct leaf_wave {
    real *row;      /* that the chain begins with */
    ptrdiff_t step; /* to the next */
    int64_t width;  /* a multiple of kernels->lanes */
    int64_t count; /* rotations of the first sweep, no fewer than sweeps; the others' are no more */
    int sweeps;
    int64_t lanes;
    const real *turn[LEAF_WAVE]; /* the cosine of its rotation 0; 4 lanes further on the next, the
                                    sines are `lanes` behind */
};

struct cpu_kernels {
    const char *name;
    int lanes;

    /* Runs all waves over the panel. */
    void (*rotate)(struct panel panel, const struct wave *wave, int64_t waves,
                   const real *coefficients);

    /* y[i] += sum over j of a[j] x[j * stride + i], 0 <= i < count. */
    void (*accumulate)(int64_t count, int64_t terms, const real *a, const real *x, int64_t stride,
                       real *y);

    /* The dot product of x and y. */
    real (*dot)(int64_t count, const real *x, const real *y);

    /* One sweep over the chains of all lanes, 1 or QR_VECTORS vectors of them; its rotations to
       rotation[], row 0 and on. */
    void (*qr_lanes)(struct qr_lanes *q, int vectors, real *rotation);

    /* Applies a wave of such sweeps to one lane's vectors. */
    void (*leaf_wave)(const struct leaf_wave *wave);

    /* +-1, as x's entry of largest magnitude has it, of equals the first. */
    real (*sign_of_largest)(int64_t count, const real *x);

    /* Multiplies columns of n entries, `stride` apart, by their signs, which are found so. */
    void (*orient)(int64_t columns, int64_t n, real *x, int64_t stride, real *sign);

    /* (x, y) becomes (c x + s y, c y - s x), entry by entry. */
    void (*turn)(int64_t count, struct rotation turn, real *x, real *y);

    /* The sums over `count` poles at base + tau; see secular.h. */
    struct cpu_sums (*secular)(int64_t count, const real *pole, const real *square, real base,
                               real tau, real below, real above);

    /* The product of secular_ratio() over `count` roots. */
    real (*ratios)(int64_t count, real pole, const real *other, const real *base, const real *tau);

    /* The singular vectors of M that belong to the root base + tau, of norm 1: right, left; entry
       `center` is that of pole 0. */
    void (*coefficients)(int64_t count, int64_t center, const real *pole, const real *weight,
                         real base, real tau, real *right, real *left);

    /* above[i] = number of singular values >= sigma[i] > 0; exact: but for a relative
       error of sigma far below its last place, else by the plain form where it serves. */
    void (*count)(const struct sturm *matrix, int exact, int64_t count, const real *sigma,
                  int64_t *above);
};

extern const struct cpu_kernels tsvdi_kernels_generic, tsvdi_kernels_avx2, tsvdi_kernels_avx512;

/* The table for this processor. */
const struct cpu_kernels *tsvdi_kernels(void);

#endif
