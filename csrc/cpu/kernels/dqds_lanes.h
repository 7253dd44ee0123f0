/*
 * Singular values of small bidiagonal matrices side by side, one in a lane, without vectors: the
 * differential quotient-difference algorithm with shifts, dqds.
 *
 * q_k = d_k^2 and e_k^2 stand for B, and a transformation with the shift s for the B' of
 *
 *     B'^T B' = B B^T - s,   t_0 = q_0 - s,   q'_k = t_k + e_k,   r = q_{k+1} / q'_k,
 *     e'_k = e_k r,   t_{k+1} = t_k r - s.
 *
 * All t_k are positive exactly if s is below the least eigenvalue of B B^T.  Then there are no
 * subtractions but those of s, and every eigenvalue but s itself keeps its relative accuracy.  As a
 * function of s, t_k falls and is concave until it is negative, with a slope of -1 or steeper.  So
 * if t_k is the first that is negative, s + t_k is a lower bound of the least eigenvalue of the
 * first k + 1 rows, and often a close one.
 *
 * Sources: Fernando & Parlett, Accurate singular values and differential qd algorithms, Numerische
 * Mathematik 67 (1994); Parlett & Marques, An implementation of the dqds algorithm (positive case),
 * Linear Algebra Appl. 309 (2000), for the failures, and for gaps in the choice of a shift.
 */
#ifndef TSVDI_CPU_KERNELS_DQDS_LANES_H
#define TSVDI_CPU_KERNELS_DQDS_LANES_H

#include "cpu/kernels/lanes.h"

/* The last e of a block is dropped if it is up to this part of the last q.  Any e_k is, if both e_k
   and the root of q_k e_k are up to the root of this part of the sum of shifts: they are all that
   changes in B^T B.  A singular value changes by a quarter of an ulp at most. */
#define DQDS_TOLERANCE (R_EPS * R_EPS / 16)

/* e up to this is dropped: quotients by it would leave the range. */
#define DQDS_NEGLIGIBLE r_pow2(-R_BIAS + 30)

/* The most shifts that may fail one after another, before none is made. */
#define DQDS_TRIES 12

/* Below a cluster t falls so steeply that the bound s + t_k is of no use.  Then a quarter of the
   shift is tried, up to so many times for a value.  After that the shift goes back by a small part
   of it, and by so many times more in each further try. */
#define DQDS_QUARTERS 2
#define DQDS_BACK (4 * R_EPS)
#define DQDS_BACK_MORE r_pow2(R_DIGITS / 6 + 1)

/* Arrays of n numbers each. */
struct dqds {
    int64_t n;
    num *q, *e;           /* e has a zero at its end */
    num *next_q, *next_e; /* what a transformation makes of them */
    num *t;               /* of the last one */
    num *shift;           /* the sum of shifts of each row */
};

/* The last unreduced block of each lane. */
struct dqds_block {
    num_mask active;    /* lanes that have one */
    num low, high;      /* its rows */
    num e2, q1, e1, q0; /* its last entries; e2: zero if there are two rows */
    num least;          /* the least t of its rows but the last two */
    int64_t to;         /* no lane has one beyond this row; 0: none has any */
};

/* Drops what is negligible, and finds the blocks.  last: the last rows of the blocks before. */
static inline struct dqds_block
find_dqds_blocks(const struct dqds *a, num last)
{
    const num zero = simd_splat(0), none = num_from_bits((simd_int){0} + (real_int)R_INFINITY_BITS);
    struct dqds_block b = {.low = zero, .high = zero};
    num low = zero, least = none, before = zero, index = zero;

    b.e2 = b.q1 = b.e1 = b.q0 = b.least = zero;
    for (int64_t k = 0; k + 1 < a->n; k++) {
        const num e = a->e[k], next = a->q[k + 1];
        const num share = REAL(0.25) * R_EPS * a->shift[k];
        num_mask drop = num_less_equal(e, simd_splat(DQDS_NEGLIGIBLE)) |
                        (num_less_equal(e, share) & num_less_equal(e * a->q[k], share * share));

        index += 1;
        drop |= num_equal(index, last) & num_less_equal(e, DQDS_TOLERANCE * next);
        a->e[k] = num_select(drop, zero, e);
        b.low = num_select(drop, b.low, low);
        b.high = num_select(drop, b.high, index);
        b.e2 = num_select(drop, b.e2, before);
        b.q1 = num_select(drop, b.q1, a->q[k]);
        b.e1 = num_select(drop, b.e1, e);
        b.q0 = num_select(drop, b.q0, next);
        b.least = num_select(drop, b.least, least);
        low = num_select(drop, index, low);
        least = num_select(drop, none, num_min(least, a->t[k]));
        before = a->e[k];
    }
    b.active = num_less(zero, b.high);
    b.to = num_most(b.high);
    return b;
}

/* The eigenvalues that belong to the triangle of q1, e1 and q0: the larger one, and *small, both to
   a few ulps. */
static inline num
dqds_pair(num q1, num e1, num q0, num *small)
{
    const num difference = q1 - q0, sum = q1 + q0;
    const num root = simd_sqrt(simd_fma(difference, difference, e1 * (e1 + 2 * sum)));
    const num large = REAL(0.5) * (sum + e1 + root);

    *small = q1 * (q0 / large);
    return large;
}

/* Finishes blocks of two rows in the lanes of the mask. */
static inline void
finish_dqds_pairs(const struct dqds *a, const struct dqds_block *b, num_mask pairs)
{
    num small;
    const num large = dqds_pair(b->q1, b->e1, b->q0, &small);

    for (int64_t k = 0; k <= b->to; k++) {
        const num index = simd_splat((real)k);
        const num_mask first = pairs & num_equal(index, b->low);
        const num_mask second = pairs & num_equal(index, b->high);

        a->q[k] = num_select(first, large, num_select(second, small, a->q[k]));
        a->e[k] = num_select(first, simd_splat(0), a->e[k]);
    }
}

/* Finds blocks until none has two rows. */
static inline struct dqds_block
next_dqds_blocks(const struct dqds *a, num last)
{
    for (;;) {
        const struct dqds_block b = find_dqds_blocks(a, last);
        const num_mask pairs = b.active & num_equal(b.high, b.low + 1);

        if (!num_any(pairs)) {
            return b;
        }
        finish_dqds_pairs(a, &b, pairs);
        last = num_select(pairs, b.high, last); /* the other lanes must find the same again */
    }
}

/* The least eigenvalue of the last two rows, where q1 is less by what e2 does to it. */
static inline num
choose_dqds_shift(const struct dqds_block *b)
{
    const num top = b->q1 + b->e1;
    const num gap = num_max(num_abs(b->least - top), REAL(0.125) * top);
    const num f = b->q1 - num_min(b->q1 * b->e2 / gap, REAL(0.875) * b->q1);
    num shift;

    (void)dqds_pair(f, b->e1, b->q0, &shift);
    return num_min(shift, b->least) * (1 - 2 * R_EPS);
}

/* One transformation.  Returns the lanes that it was made in.  *negative: in the others the first t
   that is. */
static inline num_mask
transform_dqds(const struct dqds *a, const struct dqds_block *b, num shift, num *negative)
{
    const num zero = simd_splat(0);
    num_mask failed = num_less(zero, zero), made;
    num t = zero, index = zero;

    *negative = zero;
    for (int64_t k = 0; k <= b->to; k++, index += 1) {
        const num q = a->q[k], e = a->e[k];
        const num_mask within =
            num_less_equal(b->low, index) & num_less_equal(index, b->high) & b->active;
        const num_mask ends = num_equal(index, b->high) & b->active;
        num_mask fails;

        t = num_select(num_equal(index, b->low), q - shift, t);
        fails = within & ~failed & ~num_less_equal(zero, t);
        *negative = num_select(fails, t, *negative);
        failed |= fails;
        a->t[k] = num_select(within, t, a->t[k]);
        a->next_q[k] = num_select(ends, t, q);
        a->next_e[k] = e;
        if (k < b->to) {
            const num_mask goes_on = within & ~ends;
            const num sum = t + e, ratio = a->q[k + 1] / sum;

            a->next_q[k] = num_select(goes_on, sum, a->next_q[k]);
            a->next_e[k] = num_select(goes_on, e * ratio, e);
            t = simd_fma(t, ratio, -shift);
        }
    }
    made = b->active & ~failed;
    index = zero;
    for (int64_t k = 0; k <= b->to; k++, index += 1) {
        const num_mask here = made & num_less_equal(b->low, index) & num_less_equal(index, b->high);

        a->q[k] = num_select(here, a->next_q[k], a->q[k]);
        a->e[k] = num_select(here, a->next_e[k], a->e[k]);
        a->shift[k] += num_select(here, shift, zero);
    }
    return made;
}

/* The singular values of B, d [n] and e [n - 1], to d, in no order.  Returns the lanes that are not
   done after max_steps steps.  work: [6 n] numbers. */
static num_mask
dqds_lanes(int64_t n, real *d, const real *e, int64_t max_steps, real *work)
{
    const num zero = simd_splat(0), minus = simd_splat(-1);
    num *const base = (num *)work;
    const struct dqds a = {n,           base, base + n, base + 2 * n, base + 3 * n, base + 4 * n,
                           base + 5 * n};
    num again = minus; /* the shift for another try, or -1 */
    const num first_back = simd_splat(DQDS_BACK);
    num failures = zero, quarters = zero, back = first_back;
    struct dqds_block b;

    for (int64_t k = 0; k < n; k++) {
        const num x = *(const num *)(d + k * SIMD_LANES);
        const num y = k + 1 < n ? *(const num *)(e + k * SIMD_LANES) : zero;

        a.q[k] = x * x;
        a.e[k] = y * y;
        a.shift[k] = zero;
        a.t[k] = num_from_bits((simd_int){0} + (real_int)R_INFINITY_BITS);
    }
    b = next_dqds_blocks(&a, simd_splat((real)(n - 1)));
    for (int64_t step = 0; b.to > 0 && step < max_steps; step++) {
        const num shift = num_select(num_less(again, zero), choose_dqds_shift(&b), again);
        num negative, lower;
        const num_mask made = transform_dqds(&a, &b, shift, &negative);
        const num high = b.high;
        num_mask useful, is_cluster;

        failures = num_select(made, zero, failures + 1);
        lower = (shift + negative) * (1 - 4 * R_EPS);
        useful = num_less(REAL(0.5) * shift, lower);
        is_cluster = num_less(simd_splat(DQDS_QUARTERS), quarters);
        back =
            num_select(made, first_back,
                       num_select((num_mask)(useful | ~is_cluster), back, back * DQDS_BACK_MORE));
        again = num_select(is_cluster, num_max(shift - back * shift, zero), REAL(0.25) * shift);
        again = num_select(useful, lower, again);
        again = num_select(num_less(failures, simd_splat(DQDS_TRIES)), again, zero);
        again = num_select((num_mask)(made | ~b.active), minus, again);
        quarters = num_select(made | useful, quarters, quarters + 1);
        b = next_dqds_blocks(&a, high);
        quarters = num_select(num_less(b.high, high), zero, quarters);
    }
    for (int64_t k = 0; k < n; k++) {
        *(num *)(d + k * SIMD_LANES) = simd_sqrt(a.q[k] + a.shift[k]);
    }
    return b.active;
}

#endif
