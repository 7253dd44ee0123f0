/*
 * The seed's method: pipelined zero-shift half sweeps.
 *
 * Source: Semylitko & Malaschonok 2021.  A half sweep of right rotations turns the
 * upper bidiagonal into a lower one, the next, of left rotations, turns it back;
 * the off-diagonals shrink until all are below eps.  Half sweep k starts two steps
 * after half sweep k-1, so n/2 of them walk down the diagonal at once.
 *
 * Packed layout of a band of order n: for i = 0 .. n-1
 *     p[3i] = d_i,  p[3i+1] = B(i+1, i) (lower),  p[3i+2] = B(i, i+1) (upper).
 * It may be cut into blocks that share one diagonal entry: block b holds rows
 * start[b] .. start[b+1], both included.  Each keeps its own copy of the shared
 * entry, and hands it on after each rotation that changes it.
 */
#ifndef TSVDI_GIVENS_SWEEP_H
#define TSVDI_GIVENS_SWEEP_H

#include "rotation.h"

struct givens_band {
    int64_t n;
    int64_t blocks;
    const int64_t *start; /* [blocks + 1], start[0] = 0, start[blocks] = n - 1 */
    real *packed;         /* [3 (n + blocks - 1)] the blocks one after another */
    real eps;
    int64_t next; /* number of the next half sweep; even: right rotations, odd: left */
    int64_t deflated;
};

/*
 * Step i of one half sweep on a packed block: p points at row i.  Annihilates the
 * upper (odd: lower) entry by rotating columns (odd: rows) i and i+1, which fills
 * the opposite entry.  One that is not above eps is dropped instead, and then
 * stays zero: the band splits there.  Returns 1 if a rotation was made.
 */
TSVD_HD int
givens_step(real *p, int odd, real eps, struct rotation *q, int64_t *deflated)
{
    real *entry = odd ? p + 1 : p + 2;
    real *opposite = odd ? p + 2 : p + 1;

    if (!(r_abs(*entry) > eps)) {
        *deflated += *entry != 0;
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
