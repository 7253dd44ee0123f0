/*
 * Implicit QR on an upper bidiagonal matrix: one step of the iteration, by the recurrences of
 * qr_step.h.
 *
 * Source: Demmel & Kahan, Accurate singular values of bidiagonal matrices, SIAM
 * J. Sci. Stat. Comput. 11 (1990), section 4 (the choice of direction).
 *
 * A sweep runs down a block or up.  A block that is reflected at its anti-diagonal is again upper
 * bidiagonal, with d and e reversed and left and right exchanged.  So one copy of each sweep serves
 * both directions: it walks a `chain`, and its "first" rotations are right ones going down and left
 * ones going up.
 */
#ifndef TSVDI_QR_SWEEP_H
#define TSVDI_QR_SWEEP_H

#include "math/qr_step.h"

/* An unreduced block seen in the direction of the sweep.  Entry k of the diagonal is d[k * step];
   the off-diagonal entry between k and k+1 is e[k * step]. */
struct chain {
    real *d, *e;
    int64_t step;   /* 1: down, -1: up */
    int64_t length; /* entries on the diagonal, >= 2 */
};

struct qr_state {
    int64_t n;                       /* order of the matrix */
    int64_t low, high;               /* the block under work: rows low to high; high = 0: done */
    int64_t chosen_low, chosen_high; /* the block that `up` was chosen for */
    int up;                          /* the direction of its sweeps */
    int64_t idle;                    /* of these sweeps, how many have not made it smaller */
    real negligible;                 /* absolute: off-diagonal entries up to this count as zero */
    int64_t sweeps, max_sweeps;      /* made, and the bound on them */
    int64_t rotations;               /* made on each side */
    int64_t deflated;                /* off-diagonal entries dropped that were not zero */
    int exhausted;                   /* a sweep was due after the last that the bound allows */
};

/* What qr_advance() did. */
struct qr_sweep {
    int64_t first; /* least row of the block */
    int64_t count; /* rotations of each side; 0: the matrix is diagonal */
    int up;        /* 0: rotation k acts on rows first + k and first + k + 1; 1: on rows
                      first + count - k and first + count - k - 1 */
};

/*
 * Where the rotations of a sweep go: to an array for each side.  A source that wants them elsewhere
 * includes, before this header, one that defines QR_TURNS, the type of that place, and qr_put() for
 * it (cuda/dc/half_tangents.h).  Rotation k of a sweep consists of `first` and `second`, which are
 * the right and the left one, or the other way round if `up`.
 */
#ifndef QR_TURNS
#define QR_TURNS struct qr_turns

struct qr_turns {
    struct rotation *right, *left;
};

TSVD_HD void
qr_put(QR_TURNS to, int up, int64_t k, struct rotation first, struct rotation second)
{
    (up ? to.left : to.right)[k] = first;
    (up ? to.right : to.left)[k] = second;
}
#endif

/* Default bound on sweeps for each value; two to three are usual. */
enum { QR_SWEEPS_PER_VALUE = 30 };

#ifndef TSVD_VECTOR /* one matrix at a time */

/* negligible: as in struct qr_state, >= 0; max_sweeps: 0 for the default bound. */
TSVD_HD void
qr_start(struct qr_state *q, int64_t n, real negligible, int64_t max_sweeps)
{
    q->n = n;
    q->low = 0;
    q->high = n - 1;
    q->chosen_low = q->chosen_high = -1;
    q->up = 0;
    q->idle = 0;
    /* An entry that underflows may never become zero: it must not be waited for. */
    q->negligible = r_max(negligible, r_pow2(-R_BIAS + 1));
    q->sweeps = q->rotations = q->deflated = 0;
    q->exhausted = 0;
    q->max_sweeps = max_sweeps > 0 ? max_sweeps : QR_SWEEPS_PER_VALUE * n;
}

TSVD_HD struct chain
qr_chain(real *d, real *e, int64_t low, int64_t high, int up)
{
    struct chain c;

    c.d = up ? d + high : d + low;
    c.e = up ? e + high - 1 : e + low;
    c.step = up ? -1 : 1;
    c.length = high - low + 1;
    return c;
}

/*
 * Drops what is negligible by the criteria of Demmel & Kahan in the direction of the chain. Returns
 * how many entries became zero.  *smallest: the least mu of its rows (see qr_next_inverse());
 * *largest: its largest entry.
 */
TSVD_HD int64_t
qr_drop_negligible(struct chain c, real *smallest, real *largest)
{
    int64_t last = (c.length - 1) * c.step;
    int64_t dropped = 0;
    real inverse = 1 / r_abs(c.d[0]), most = inverse;

    *smallest = *largest = r_abs(c.d[0]);
    if (r_abs(c.e[last - c.step]) <= QR_TOLERANCE * r_abs(c.d[last])) {
        c.e[last - c.step] = 0;
        return 1;
    }
    for (int64_t k = 0; k != last; k += c.step) {
        real d = r_abs(c.d[k + c.step]), e = r_abs(c.e[k]);

        if (e * inverse <= QR_TOLERANCE) {
            c.e[k] = 0;
            dropped++;
        }
        inverse = qr_next_inverse(inverse, e, d);
        most = r_max(most, inverse);
        *largest = r_max(*largest, r_max(d, e));
    }
    *smallest = 1 / most;
    return dropped;
}

/* The shift for a sweep along the chain, 0 where a shift would spoil small values. */
TSVD_HD real
qr_shift(struct chain c, real smallest, real largest)
{
    const int64_t last = (c.length - 1) * c.step;

    return qr_choose_shift(REAL(c.length), c.d[0], c.d[last - c.step], c.e[last - c.step],
                           c.d[last], smallest, largest);
}

/* One sweep without shift. */
TSVD_HD void
qr_sweep_zero_shift(struct chain c, QR_TURNS to)
{
    struct rotation p = {1, 0}, q = {1, 0};
    int64_t count = c.length - 1;
    real e_before, r;

    for (int64_t k = 0; k < count; k++) {
        int64_t i = k * c.step;

        qr_zero_shift_step(c.d[i], c.e[i], c.d[i + c.step], &e_before, &c.d[i], &p, &q);
        if (k > 0) {
            c.e[i - c.step] = e_before;
        }
        qr_put(to, c.step < 0, k, p, q);
    }
    r = c.d[count * c.step] * p.c;
    c.d[count * c.step] = r * q.c;
    c.e[(count - 1) * c.step] = r * q.s;
}

/* One sweep with a shift. */
TSVD_HD void
qr_sweep_shifted(struct chain c, real shift, QR_TURNS to)
{
    struct qr_bulge bulge = qr_shifted_start(c.d[0], c.e[0], shift);
    int64_t count = c.length - 1;
    struct rotation p, q;
    real e_before;

    for (int64_t k = 0; k < count; k++) {
        int64_t i = k * c.step;

        qr_shifted_step(&bulge, c.d[i + c.step], k + 1 < count ? c.e[i + c.step] : REAL(0),
                        &e_before, &c.d[i], &p, &q);
        qr_put(to, c.step < 0, k, p, q);
        if (k > 0) {
            c.e[i - c.step] = e_before;
        }
    }
    c.d[count * c.step] = bulge.d;
    c.e[(count - 1) * c.step] = bulge.f;
}

/* Finds the next unreduced block from the bottom: sets low and high.  high = 0: there is none. */
TSVD_HD void
qr_find_block(struct qr_state *q, real *e)
{
    while (q->high > 0 && r_abs(e[q->high - 1]) <= q->negligible) {
        q->deflated += e[q->high - 1] != 0;
        e[q->high - 1] = 0;
        q->high--;
    }
    q->low = q->high;
    while (q->low > 0 && r_abs(e[q->low - 1]) > q->negligible) {
        q->low--;
    }
    if (q->low > 0) {
        q->deflated += e[q->low - 1] != 0;
        e[q->low - 1] = 0;
    }
}

/* A block that a sweep is due for. */
struct qr_block {
    struct chain chain;
    real smallest, largest; /* see qr_drop_negligible(); only of a chain longer than two */
};

/*
 * Drops what is negligible, and finds the next unreduced block from the bottom.  Returns 0 when the
 * matrix is diagonal, or when q->exhausted.
 */
TSVD_HD int
qr_next(struct qr_state *q, real *d, real *e, struct qr_block *block)
{
    int64_t dropped;

    block->smallest = block->largest = 0;
    do {
        qr_find_block(q, e);
        if (q->high <= 0) {
            return 0;
        }
        dropped = 0;
        block->chain = qr_chain(d, e, q->low, q->high, 0);
        if (block->chain.length > 2) {
            const int is_same = q->low == q->chosen_low && q->high == q->chosen_high;

            /* A block keeps its direction while it shrinks: from its larger end to its
               smaller one. */
            q->idle = is_same ? q->idle + 1 : 0;
            if (q->low > q->chosen_high || q->high < q->chosen_low) {
                q->up = r_abs(d[q->low]) < r_abs(d[q->high]);
            } else if (q->idle > QR_PATIENCE * (q->high - q->low + 1)) {
                q->up = !q->up;
                q->idle = 0;
            }
            q->chosen_low = q->low;
            q->chosen_high = q->high;
            block->chain = qr_chain(d, e, q->low, q->high, q->up);
            dropped = qr_drop_negligible(block->chain, &block->smallest, &block->largest);
            q->deflated += dropped;
        }
    } while (dropped > 0);
    q->exhausted = q->sweeps >= q->max_sweeps;
    return !q->exhausted;
}

/* Finishes a block of order two, rows `low` and low + 1, by rotations with c >= 0. */
TSVD_HD void
qr_finish_pair(real *d, real *e, int64_t low, struct rotation *right, struct rotation *left)
{
    real large, small;

    triangle_svd(d[low], e[low], d[low + 1], right, left, &large, &small);
    if ((right->c < 0) != (left->c < 0)) {
        large = -large;
        small = -small;
    }
    if (right->c < 0) {
        right->c = -right->c;
        right->s = -right->s;
    }
    if (left->c < 0) {
        left->c = -left->c;
        left->s = -left->s;
    }
    d[low] = large;
    d[low + 1] = small;
    e[low] = 0;
}

/* Makes a sweep over the block that qr_next() found.  A block of order two is finished at once.
   `to` has room for n - 1 rotations of each side. */
TSVD_HD struct qr_sweep
qr_sweep_block(struct qr_state *q, real *d, real *e, const struct qr_block *block, QR_TURNS to)
{
    struct qr_sweep sweep = {q->low, q->high - q->low, 0};

    if (sweep.count == 1) {
        struct rotation right, left;

        qr_finish_pair(d, e, q->low, &right, &left);
        qr_put(to, 0, 0, right, left);
    } else {
        real shift = qr_shift(block->chain, block->smallest, block->largest);

        sweep.up = q->up;
        if (shift == 0) {
            qr_sweep_zero_shift(block->chain, to);
        } else {
            qr_sweep_shifted(block->chain, shift, to);
        }
    }
    q->rotations += sweep.count;
    q->sweeps++;
    return sweep;
}

/*
 * One step of the iteration.
 *
 * d, e  [n], [n-1] the matrix, overwritten
 * to    receives the rotations of the sweep that is returned, n - 1 of each side at most
 *
 * Returns a sweep of no rotations when the matrix is diagonal, or when q->exhausted.
 */
TSVD_HD struct qr_sweep
qr_advance(struct qr_state *q, real *d, real *e, QR_TURNS to)
{
    const struct qr_sweep none = {0, 0, 0};
    struct qr_block block;

    return qr_next(q, d, e, &block) ? qr_sweep_block(q, d, e, &block, to) : none;
}

#endif /* TSVD_VECTOR */

#endif
