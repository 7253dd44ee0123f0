/*
 * The published pipeline of Givens rotations (Semylitko & Malaschonok 2021): zero-shift half
 * sweeps.
 *
 * A half sweep of right rotations turns the upper bidiagonal into a lower one.  The next half
 * sweep, of left rotations, turns it back.  The off-diagonals shrink until all are below eps.
 * Half sweep k starts two steps after half sweep k-1, so n/2 of them walk down the diagonal at
 * once.
 *
 * An entry that is dropped stays zero, so the matrix falls into segments that are not coupled.
 * A segment has the packed layout
 *     p[3i] = d_i,  p[3i+1] = B(i+1, i) (lower),  p[3i+2] = B(i, i+1) (upper).
 * It is cut into blocks that share one diagonal entry: block b holds rows start(b) ..
 * start(b+1), both included.  Each block keeps its own copy of the shared entry, and hands it on
 * after each rotation that changes it.
 */
#ifndef TSVDI_GIVENS_SWEEP_H
#define TSVDI_GIVENS_SWEEP_H

#include "math/rotation.h"

/* The rows first .. first + rows - 1; rows >= 2. */
struct givens_segment {
    int64_t first, rows;
};

/* What half sweeps did in all. */
struct givens_counts {
    int64_t steps;     /* loop steps made, empty ones included */
    int64_t rotations; /* made */
    int64_t deflated;  /* entries dropped that were not zero */
    double seconds_vectors;
};

/*
 * Where values are close, half sweeps repeat nearly the same rotations, whose rounding errors add
 * up: on 1,500 matrices of nearly equal entries the vectors departed from orthogonality by u / 2 a
 * half sweep at most, u = R_EPS / 2.
 *
 * After more half sweeps than DRIFT_SWEEPS_PER_ROW for each row, the vectors or a segment's
 * orthogonal factors are brought back to orthogonality: what fewer leave is below u a row.  One
 * Newton-Schulz step squares the departure.  It is made at the latest after DRIFT_SWEEPS_MAX half
 * sweeps, when the departure is the root of u / 8, and its square u / 8.
 */
enum { DRIFT_SWEEPS_PER_ROW = 2, DRIFT_SWEEPS_MAX = 1 << (R_DIGITS / 2 + 1) };

/* First row of block b when `steps` = rows - 1 are cut into `blocks` parts of about one
   length. */
TSVD_HD int64_t
givens_block_start(int64_t steps, int64_t blocks, int64_t b)
{
    int64_t longer = steps % blocks;

    return steps / blocks * b + (b < longer ? b : longer);
}

/*
 * Step i of one half sweep on a packed block: p points at row i.  Annihilates the upper (odd:
 * lower) entry by rotating columns (odd: rows) i and i+1, which fills the opposite entry.  An entry
 * that is not above eps is dropped instead, and then stays zero.  Returns 1 if a rotation was made;
 * *dropped is 1 if an entry was dropped.
 */
TSVD_HD int
givens_step(real *p, int odd, real eps, struct rotation *q, int *dropped)
{
    real *entry = odd ? p + 1 : p + 2;
    real *opposite = odd ? p + 2 : p + 1;

    *dropped = 0;
    if (!(r_abs(*entry) > eps)) {
        *dropped = *entry != 0;
        *entry = 0;
        q->c = 1;
        q->s = 0;
        return 0;
    }
    *q = rotation_make(p[0], *entry, &p[0]);
    *entry = 0;
    *opposite = q->s * p[3];
    p[3] = q->c * p[3];
    return 1;
}

#endif
