/*
 * The secular equation of a merge in divide and conquer.
 *
 * The matrix M = e_0 z^T + diag(d), 0 = d_0 < d_1 < ... < d_{k-1}, z_j != 0, has the
 * singular values sigma that solve
 *
 *     f(sigma) = 1 + sum_j z_j^2 / (d_j^2 - sigma^2) = 0,
 *
 * root i in (d_i, d_{i+1}), the last in (d_{k-1}, sqrt(d_{k-1}^2 + |z|^2)); f increases between
 * two poles.  A root is kept as a pole next to it, its `base`, and its distance tau from there.
 * Then (d_j - base) - tau and (d_j + base) + tau are good to a few ulps for every j, as the
 * vectors that are computed from them need.  d_j^2 - sigma^2 is never formed from squares.
 *
 * Sources: Gu & Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM J.
 * Matrix Anal. Appl. 16 (1995), section 3; Li, Solving secular equations stably and
 * efficiently, LAPACK Working Note 89 (1993), section 2: the "middle way" interpolation.
 *
 * The sum over the poles below the root is psi, that over the poles above it is phi; for the last
 * root phi is the term of the last pole.  The interpolation has its poles at d_{s-1} and d_s, s
 * being the `split`.  With Delta_j = d_j^2 - sigma^2 the slopes are kept as Delta_{s-1} psi' and
 * Delta_s phi' (derivatives by sigma^2).  These are no larger than psi and phi, so they cannot
 * overflow.
 */
#ifndef TSVDI_SECULAR_H
#define TSVDI_SECULAR_H

#include "math/num.h"

struct secular_sums {
    num psi, psi_slope, phi, phi_slope;
};

struct secular_root {
    int64_t split;     /* s */
    int64_t origin;    /* base is this pole */
    int last;          /* whether it is the last root */
    real base, tau;    /* the root is base + tau */
    real below, above; /* Delta_{s-1} and Delta_s at base + tau */
    real low, high;    /* f(base + low) < 0 < f(base + high) */
    real size;         /* |f| at the evaluation before */
    int evaluations;
};

/* f counts as zero when it is below this share of the sum of its terms' magnitudes. */
#define SECULAR_TOLERANCE (4 * R_EPS)

/* A root is left where it is after this many evaluations.  Halving alone ends after R_BITS. */
enum { SECULAR_EVALUATIONS = 3 * R_BITS };

/* d_j^2 - sigma^2. */
TSVD_HD num
secular_difference(num pole, real base, real tau)
{
    return ((pole - base) - tau) * ((pole + base) + tau);
}

/* sigma^2 - d_j^2, of any root and pole. */
TSVD_HD num
secular_root_difference(real pole, num base, num tau)
{
    return ((base - pole) + tau) * ((base + pole) + tau);
}

/* Adds the term of one pole, or of a vector of poles.  `below` and `above` are Delta_{s-1} and
   Delta_s. */
TSVD_HD void
secular_add(num pole, num square, real base, real tau, real below, real above,
            struct secular_sums *sums)
{
    num inverse = 1 / secular_difference(pole, base, tau);
    num term = square * inverse, zero = NUM_SPLAT(REAL(0));
    num slope = term * (inverse * num_if_negative(inverse, NUM_SPLAT(below), NUM_SPLAT(above)));

    sums->psi += num_if_negative(inverse, term, zero);
    sums->psi_slope += num_if_negative(inverse, slope, zero);
    sums->phi += num_if_negative(inverse, zero, term);
    sums->phi_slope += num_if_negative(inverse, zero, slope);
}

/* Factor i < k - 1 of the product for pole j, in (0, 1).  The product over all i, times
   sigma_{k-1}^2 - d_j^2, is the z_j^2 for which the computed roots are exact (Gu & Eisenstat,
   equation 3.3).  The factors are paired so that no partial product is smaller than the whole. */
TSVD_HD num
secular_ratio(real pole, num other, num base, num tau)
{
    return secular_root_difference(pole, base, tau) / ((other - pole) * (other + pole));
}

#ifndef TSVD_VECTOR

/* Prepares an evaluation: sets below and above. */
TSVD_HD void
secular_split(struct secular_root *r, const real *pole)
{
    r->below = secular_difference(pole[r->split - 1], r->base, r->tau);
    r->above = secular_difference(pole[r->split], r->base, r->tau);
}

/* How many poles, from the first on, the back end sums over. */
TSVD_HD int64_t
secular_summed(const struct secular_root *r, int64_t k)
{
    return r->last ? k - 1 : k;
}

/* Adds the last pole to the sums of the last root.  It lies below that root, but is phi. */
TSVD_HD void
secular_add_last(const struct secular_root *r, const real *square, struct secular_sums *sums)
{
    if (r->last) {
        sums->phi = square[r->split] / r->above;
        sums->phi_slope = sums->phi;
    }
}

/* The tau with (base + tau)^2 = base^2 + y. */
TSVD_HD real
secular_distance(real base, real y)
{
    return y / (base + r_sqrt(r_max(r_fma(base, base, y), 0)));
}

/* Root i of k >= 2 where it is first evaluated, in the middle of its interval. */
TSVD_HD struct secular_root
secular_start(int64_t k, int64_t i, const real *pole, real norm_square)
{
    struct secular_root r;

    r.last = i == k - 1;
    r.split = r.last ? i : i + 1;
    r.origin = i;
    r.base = pole[i];
    r.low = 0;
    /* the bound on the last root is itself subject to rounding */
    r.high =
        r.last ? secular_distance(r.base, norm_square) * (1 + 8 * R_EPS) : pole[i + 1] - pole[i];
    r.tau = r.high / 2;
    r.size = r_from_bits(R_INFINITY_BITS);
    r.below = r.above = 0;
    r.evaluations = 0;
    return r;
}

/* The zero y in (0, gap) of c - near / y + far / (gap - y); near, far > 0. */
TSVD_HD real
secular_between(real c, real near, real far, real gap)
{
    real t = c * gap - near + far, a = c * gap + near + far;
    real root = r_sqrt(t * t + 4 * (near * far));

    return a > 0 ? 2 * (near * gap) / (a + root) : (a - root) / (2 * c);
}

/* The zero y > 0 of c - far / (gap + y) - near / y; c, near, far > 0. */
TSVD_HD real
secular_beyond(real c, real near, real far, real gap)
{
    real a = far + near - c * gap;
    real root = r_sqrt(a * a + 4 * (c * gap) * near);

    return a > 0 ? (a + root) / (2 * c) : 2 * (near * gap) / (root - a);
}

/* The tau at which the interpolation c + below / (d_{s-1}^2 - x) + above / (d_s^2 - x) is zero. */
TSVD_HD real
secular_interpolate(const struct secular_root *r, const real *pole, real c, real below, real above)
{
    real low = pole[r->split - 1], high = pole[r->split], gap = (high - low) * (high + low), y;

    if (r->last) {
        y = secular_beyond(c, above, below, gap);
    } else if (r->origin < r->split) {
        y = secular_between(c, below, above, gap);
    } else {
        y = -secular_between(-c, above, below, gap);
    }
    return secular_distance(r->base, y);
}

/* Halfway between two numbers of one sign (or zero), in the order of their bits.  It halves
   exponent and mantissa alike, so repeated halving ends after at most R_BITS steps. */
TSVD_HD real
secular_halve(real low, real high)
{
    real_int a = r_bits(r_abs(low)), b = r_bits(r_abs(high));

    return r_copysign(r_from_bits(a + (b - a) / 2), low < 0 ? REAL(-1) : REAL(1));
}

/* Takes the first evaluation into account: the nearer pole becomes the origin. */
TSVD_HD void
secular_place(struct secular_root *r, const real *pole, const real *square,
              struct secular_sums sums)
{
    const real below = square[r->split - 1], above = square[r->split];
    const real f = 1 + sums.psi + sums.phi;
    const real rest = f - below / r->below - above / r->above;
    real next;

    r->evaluations++;
    if (f >= 0) {
        r->high = r->tau;
    } else if (r->last) {
        r->low = r->tau;
    } else {
        r->origin = r->split;
        r->base = pole[r->origin];
        r->low = -r->tau;
        r->high = 0;
    }
    next = secular_interpolate(r, pole, rest, below, above);
    /* if it is on an end or beyond, the root is where f was evaluated, but for rounding */
    r->tau = next > r->low && next < r->high ? next : f >= 0 ? r->high : r->low;
}

/* Takes a further evaluation into account: returns 1 if r->tau is the root, else moves it. */
TSVD_HD int
secular_step(struct secular_root *r, const real *pole, struct secular_sums sums)
{
    const real f = 1 + sums.psi + sums.phi, size = r_abs(f);
    const int slow = !(size <= r->size / 2);
    real next;

    r->evaluations++;
    r->size = size;
    /* < and not <=: f is infinite where the square of tau underflows, and that is no root */
    if (size < SECULAR_TOLERANCE * (1 + r_abs(sums.psi) + r_abs(sums.phi)) ||
        r->evaluations >= SECULAR_EVALUATIONS) {
        return 1;
    }
    if (f < 0) {
        r->low = r->tau;
    } else {
        r->high = r->tau;
    }
    next = secular_interpolate(r, pole, f - sums.psi_slope - sums.phi_slope,
                               r->below * sums.psi_slope, r->above * sums.phi_slope);
    if (slow || !(next > r->low && next < r->high)) {
        next = secular_halve(r->low, r->high);
        if (next == r->low || next == r->high) { /* neighbouring numbers */
            r->tau = next != 0 ? next : r->low + r->high;
            return 1;
        }
    }
    if (r_abs(next - r->tau) <= R_EPS * r_abs(next)) {
        r->tau = next;
        return 1;
    }
    r->tau = next;
    return 0;
}

#endif
#endif
