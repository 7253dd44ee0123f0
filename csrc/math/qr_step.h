/*
 * Implicit QR on an upper bidiagonal matrix: the recurrences of a sweep and the rules between two
 * sweeps.  They are written over the type `num` of num.h, for one matrix (qr_sweep.h) or for as
 * many as a vector has lanes (cpu/kernels/qr_lanes.h).
 *
 * Source: Demmel & Kahan, Accurate singular values of bidiagonal matrices, SIAM J. Sci. Stat.
 * Comput. 11 (1990): the zero-shift sweep (section 3), the convergence criteria (section 2, 1a to
 * 2b), the choice of shift (section 4).
 */
#ifndef TSVDI_QR_STEP_H
#define TSVDI_QR_STEP_H

#include "math/num.h"
#include "math/rotation.h"

/* An off-diagonal entry is negligible beside its neighbours when dropping it
   changes no singular value by more than this relative amount. */
#define QR_TOLERANCE (2 * R_EPS)

/* A shifted sweep changes the smallest value of a block by about u times the block's norm.  Where
   the ratio of the two, times the block's length, is not above this, the sweep has no shift. */
#define QR_ZERO_SHIFT_RATIO REAL(0.01)

/* Sweeps for each row after which a block that has not shrunk is swept in the other direction.
   There are matrices near the identity on which sweeps of one direction permute entries for ever:
   the shift is lost on its way along the block. */
enum { QR_PATIENCE = 10 };

#ifdef TSVD_VECTOR

struct num_rotation {
    num c, s;
};

/* rotation_unit() in every lane. */
TSVD_HD struct num_rotation
num_rotation_unit(struct num_rotation q)
{
    const num excess = num_fma(q.s, q.s, num_fma(q.c, q.c, NUM_SPLAT(REAL(-1))));
    const struct num_rotation unit = {num_fma(REAL(-0.5) * q.c, excess, q.c),
                                      num_fma(REAL(-0.5) * q.s, excess, q.s)};

    return unit;
}

/* rotation_make() in every lane, for entries of at most ROTATION_SAFE_MAX. */
TSVD_HD struct num_rotation
num_rotation_make(num f, num g, num *r)
{
    const num zero = NUM_SPLAT(REAL(0)), one = NUM_SPLAT(REAL(1));
    const num_mask none = num_equal(g, zero);
    struct num_rotation q;
    const num size = num_max(num_abs(f), num_abs(g));
    const num_mask tiny = num_less(size, NUM_SPLAT(ROTATION_SAFE_MIN)) & ~none;
    num f_scaled = f, g_scaled = g, up = one, square, sum, inverse;
    num_mask small;

    if (num_any(tiny)) { /* the other lanes stay as they are: a denormal g may lose a bit */
        num_int power = num_int_max(num_bits(size) & R_INFINITY_BITS,
                                    num_bits(zero) + ((real_int)1 << R_DIGITS));
        num down = num_from_bits(((real_int)(2 * R_BIAS) << R_DIGITS) - power);

        up = num_select(tiny, num_from_bits(power), one);
        down = num_select(tiny, down, one);
        f_scaled *= down;
        g_scaled *= down;
    }
    square = f_scaled * f_scaled;
    sum = num_fma(g_scaled, g_scaled, square);
    inverse = num_copysign(num_inverse_sqrt(sum), f);
    /* f times its reciprocal may miss 1, and would do so again in each sweep once f has settled */
    small = num_equal(sum, square);
    q.c = num_select(small, one, f_scaled * inverse);
    q.s = num_select(none, zero, g_scaled * inverse);
    *r = num_select(small, f, sum * inverse * up);
    return q;
}

#else
#define num_rotation rotation
#define num_rotation_make rotation_make
#endif

/* The smaller singular value of [f g; 0 h], to a few ulps. */
TSVD_HD num
triangle_smallest(num f, num g, num h)
{
    const num zero = NUM_SPLAT(REAL(0)), least = num_min(num_abs(f), num_abs(h));
    num a = num_max(num_abs(f), num_abs(h)), b = least;
    num size = num_max(a, num_abs(g));
    num sum, difference;

    a = a / size;
    g = g / size;
    b = b / size; /* may underflow; then its share in the root does so too */
    sum = num_sqrt(num_fma(a + b, a + b, g * g));
    difference = num_sqrt(num_fma(a - b, a - b, g * g));
    return num_select(num_equal(least, zero), zero, least * (a / ((sum + difference) / 2)));
}

/*
 * The shift for a sweep along a block, 0 where a shift would spoil small values.
 *
 * length             entries on its diagonal
 * start              the first of them
 * f, g, h            the triangle at its end
 * smallest, largest  its least mu (see below), and its largest entry
 */
TSVD_HD num
qr_choose_shift(num length, num start, num f, num g, num h, num smallest, num largest)
{
    const num zero = NUM_SPLAT(REAL(0));
    num shift = triangle_smallest(f, g, h);
    num ratio = shift / num_abs(start);

    shift = num_select(num_less(ratio * ratio, NUM_SPLAT(R_EPS)), zero, shift);
    return num_select(num_less_equal(length * smallest, QR_ZERO_SHIFT_RATIO * largest), zero,
                      shift);
}

/* 1 / mu of the next row, where mu_{k+1} = |d_{k+1}| mu_k / (mu_k + |e_k|) and mu_0 = |d_0|.  The
   least mu of a block is a lower bound on its smallest singular value, up to a factor of
   sqrt(length).  e_k is negligible if |e_k| / mu_k <= QR_TOLERANCE.  The recurrence for 1 / mu has
   no division in its chain.  Where it overflows, mu is as good as zero. */
TSVD_HD num
qr_next_inverse(num inverse, num e, num d)
{
    return (1 + e * inverse) * (1 / d);
}

/* What a shifted sweep carries along. */
struct qr_bulge {
    num d, e; /* the entries under work */
    num f, g; /* the pair to be rotated next */
};

/* The start of a sweep, at the diagonal entry d and the off-diagonal entry e after it. */
TSVD_HD struct qr_bulge
qr_shifted_start(num d, num e, num shift)
{
    struct qr_bulge b = {
        d, e, (num_abs(d) - shift) * (num_copysign(NUM_SPLAT(REAL(1)), d) + shift / d), e};

    return b;
}

/* One step.  d_next and e_next are the entries that follow; *e_before and *d_done are finished. */
TSVD_HD void
qr_shifted_step(struct qr_bulge *b, num d_next, num e_next, num *e_before, num *d_done,
                struct num_rotation *first, struct num_rotation *second)
{
    struct num_rotation p = num_rotation_make(b->f, b->g, e_before), q;
    num f = p.c * b->d + p.s * b->e;
    num e = p.c * b->e - p.s * b->d;
    num d = p.c * d_next;

    q = num_rotation_make(f, p.s * d_next, d_done);
    b->f = q.c * e + q.s * d;
    b->d = q.c * d - q.s * e;
    b->g = q.s * e_next;
    b->e = q.c * e_next;
    *first = p;
    *second = q;
}

/* One step without shift, on the entries d, e and d_next.  *first and *second are the rotations of
   the step before, and become those of this one. */
TSVD_HD void
qr_zero_shift_step(num d, num e, num d_next, num *e_before, num *d_done, struct num_rotation *first,
                   struct num_rotation *second)
{
    num r;

    *first = num_rotation_make(d * first->c, e, &r);
    *e_before = second->s * r;
    *second = num_rotation_make(second->c * r, d_next * first->s, d_done);
}

#endif
