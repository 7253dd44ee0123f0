/*
 * Singular vectors from twisted factorisations of the Golub-Kahan form, one value by itself.
 *
 * T is symmetric tridiagonal of order m = 2n with zero diagonal and the off-diagonals
 *
 *     b_0 .. b_{m-2} = d_1, e_1, d_2, e_2, ..., d_n.
 *
 * It has the eigenpairs (+-s, z) with z = (v_1, u_1, v_2, u_2, ..., v_n, u_n), v a row of R and u a
 * column of L, of equal norms.  For a shift x the matrix x I - T has the factors
 *
 *     from the top     E+_0 = x,      E+_{k+1} = x - b_k^2 / E+_k,
 *     from the bottom  E-_{m-1} = x,  E-_k = x - b_k^2 / E-_{k+1},
 *
 * and for each row r, the twist, g_r = E+_r + E-_r - x = 1 / ((x I - T)^-1)_rr.  With z_r = 1 and
 *
 *     z_k = (b_k / E+_k) z_{k+1} for k < r,  z_{k+1} = (b_k / E-_{k+1}) z_k for k >= r
 *
 * (T - x I) z is zero but for -g_r in row r.  So x - g_r / |z|^2 is z's Rayleigh quotient, and z is
 * off by an angle of at most |g_r| / (|z| gap), where gap is the distance to the next eigenvalue
 * (Parlett & Dhillon, Linear Algebra Appl. 267 (1997) and 309 (2000)).  That u and v belong
 * together is due to T: B^T B and B B^T would give them apart (Willems & Lang, ETNA 39 (2012)).
 *
 * Rounding.  What a step of E+ or E- rounds is the same as small relative changes of the b_k: the
 * error of E_{k+1} becomes one of b_{k+1}, since the diagonal is zero and x itself stays as it is.
 * The changes move z by as much over relgap = gap / s.  That is too much in the digits of the
 * result, and far below them in twice the digits (Petschow, Quintana-Orti & Bientinesi, SIAM J.
 * Sci. Comput. 36 (2014), take twice the digits to the same end).  A pivot that is exactly 0
 * becomes the share PAIR_TINY of x, which is again such a change: b_{k-1}^2 is close to x E_{k-1}
 * then.  No other number would do.  Next to one that is tiny only beside 1, the E that follows
 * might overflow, or lose x.
 *
 * The work for a value, in passes over b:
 *   the twist     r with the largest |z_r|, from the leading and the trailing minors of x I - T:
 *                 z_r^2 is proportional to p_r q_r, where p_0 = 1, p_1 = x and
 *                 p_{k+1} = x p_k - b_{k-1}^2 p_{k-1}, and q likewise from the other end.  There is
 *                 no division, and wide numbers will do.  Near the middle is preferred, since the
 *                 chains from both ends are then equally long and run side by side.
 *   corrections   E+ down to r and E- up to r in pairs; x becomes x - g_r / |z|^2.  |z|^2 comes
 *                 from both chains too: N_{k+1} = (1 + N_k) (b_k / E_k)^2.  So nothing is stored.
 *   the vector    the same once more with the ratios b_k / E_k stored.  g_r tells how good it is.
 *                 z follows from r outwards, and its Rayleigh quotient is the value.
 *
 * All numbers are scaled by a power of two, so that the largest b_k is in [1, 2).
 */
#ifndef TSVDI_TWISTED_H
#define TSVDI_TWISTED_H

#include "math/pair.h"

enum {
    /* A matrix is taken if no b_k is below 2^-TWISTED_RANGE of the largest: so no square, nor what
       rounding leaves of it, comes near the least number, and none of the quotients near the
       largest one. */
    TWISTED_RANGE = 120,

    /* Minors are brought back to size one at the latest after this many entries ... */
    TWISTED_STRIDE = 32,

    /* ... or before they can lose this many powers of two.  The product of two minors that lost
       them is still a normal number. */
    TWISTED_BUDGET = 500,

    /* How much larger |z_r| at an end of the matrix must be than one in the middle to be the
       twist. */
    TWISTED_LEAN = 7,

    /* The most corrections of a value. */
    TWISTED_CORRECTIONS = 4,

    /* Whether a vector is made before any correction.  In float32 it is nearly always accurate, as
       values are known to more digits. */
    TWISTED_AT_ONCE = TSVD_SINGLE
};

/* The matrix, prepared. */
struct twisted_matrix {
    int64_t n;            /* order of B */
    const double *b;      /* [2n-1] |d_1|, |e_1|, |d_2|, ..., scaled */
    const double *square; /* [2n-1] their squares */
    const double *rest;   /* [2n-1] what the rounding of `square` left; 0 in float32 */
    int64_t stride;       /* minors are rescaled after this many entries */
};

/* What entry k of the matrix is. */
TSVD_HD double
twisted_entry(double b, double *square, double *rest)
{
    *square = b * b;
    *rest = fma(b, b, -*square);
    return b;
}

/* How many entries may follow one another before minors are rescaled.  least: the least entry, in
   [2^-TWISTED_RANGE, 2).  Of two minors in a row the larger one may shrink by b^2 / 8 in a step,
   but where b p_{k-1} is not small beside p_k it does so in every second one at most: k steps cost
   the factor (b / 8)^k (b / 8)^2.  They gain eightfold at most. */
TSVD_HD int64_t
twisted_stride(double least)
{
    int64_t field, stride;

    memcpy(&field, &least, sizeof field);
    field = WIDE_BIAS - (field >> WIDE_DIGITS); /* least >= 2^-field */
    field = (field > 0 ? field : 0) + 3;
    stride = (TWISTED_BUDGET - 2 * field) / field;
    return stride < TWISTED_STRIDE ? stride : (int64_t)TWISTED_STRIDE;
}

/* ---- minors ---- */

/* A minor and the one before it; what they are to be multiplied by is kept apart. */
struct twisted_minors {
    wide now, before;
};

TSVD_HD struct twisted_minors
twisted_minors_begin(wide shift)
{
    struct twisted_minors p;

    p.now = shift;
    p.before = WIDE_SPLAT(1.0);
    return p;
}

TSVD_HD void
twisted_minors_step(wide shift, wide square, struct twisted_minors *p)
{
    /* what rounding does to the product is a small relative change of b */
    const wide next = wide_fma(shift, p->now, -(square * p->before));

    p->before = p->now;
    p->now = next;
}

/* Brings the larger of the two into [1, 2); returns the power of two that was taken out. */
TSVD_HD wide_int
twisted_minors_rescale(struct twisted_minors *p)
{
    const wide_int now = wide_bits(p->now) & WIDE_EXPONENT_MASK;
    const wide_int before = wide_bits(p->before) & WIDE_EXPONENT_MASK;
    const wide_int field = wide_int_select(wide_int_less(now, before), before, now);
    const wide down = wide_from_bits(((int64_t)(2 * WIDE_BIAS) << WIDE_DIGITS) - field);

    p->now *= down;
    p->before *= down;
    return (field >> WIDE_DIGITS) - WIDE_BIAS;
}

/* Orders the numbers x 2^twos, x >= 0, of any size: |twos| up to 2^26. */
TSVD_HD wide_int
twisted_key(wide x, wide_int twos)
{
    return (wide_bits(x) >> 16) + twos * ((int64_t)1 << (WIDE_DIGITS - 16));
}

/* What p_r q_r counts for a twist near row r of m = 2n rows. */
TSVD_HD double
twisted_weight(int64_t n, int64_t r)
{
    const int64_t off = r > n ? r - n : n - r;
    const double weight = (double)n / (double)(n + TWISTED_LEAN * off);

    return weight * weight;
}

/* ---- the chains from both ends ---- */

/* A chain that has reached row k: E_k, and N_k, the sum of the squares of z in the rows that it has
   passed, over z_k^2. */
struct twisted_chain {
    pair e;
    wide norm;
};

TSVD_HD struct twisted_chain
twisted_chain_begin(pair shift)
{
    struct twisted_chain chain;

    chain.e = shift;
    chain.norm = WIDE_SPLAT(0.0);
    return chain;
}

/* From row k to the next across the entry b; returns b / E_k, that is z_k / z_next. */
TSVD_HD wide
twisted_chain_step(pair shift, wide b, wide square, wide rest, struct twisted_chain *chain)
{
    const wide inverse = wide_inverse(pair_high(chain->e));
    const wide ratio = b * inverse, ratio_square = ratio * ratio;
    const pair next = pair_minus_quotient(shift, square, rest, chain->e, inverse);
    const wide_mask zero = wide_equal(pair_high(next), WIDE_SPLAT(0.0));
    const wide tiny = pair_high(shift) * WIDE_SPLAT(PAIR_TINY);

    chain->norm = wide_fma(chain->norm, ratio_square, ratio_square);
    chain->e.high = wide_select(zero, tiny, next.high);
    chain->e.low = next.low;
    return ratio;
}

/* g_r, and *square_norm = |z|^2 for z_r = 1, of the two chains that meet in row r. */
TSVD_HD wide
twisted_meet(pair shift, struct twisted_chain top, struct twisted_chain bottom, wide *square_norm)
{
    *square_norm = (top.norm + bottom.norm) + 1;
    return pair_excess(top.e, bottom.e, shift);
}

/* The shift corrected by what a pass has found: the Rayleigh quotient of its vector. */
TSVD_HD pair
twisted_correct(pair shift, wide g, wide square_norm)
{
    return pair_add(shift, -g / square_norm);
}

/* ---- the null vectors ---- */

/* A product of entries and quotients, x 2^twos with 1 <= |x| < 2. */
struct twisted_product {
    double x;
    int64_t twos;
};

/* Multiplies it; returns about its log2 times 2^24, less by a tenth of 2^24 at most. */
TSVD_HD int64_t
twisted_times(double factor, struct twisted_product *p)
{
    int64_t field;

    p->x *= factor;
    memcpy(&field, &p->x, sizeof field);
    field = ((field & WIDE_EXPONENT_MASK) >> WIDE_DIGITS) - WIDE_BIAS;
    p->x *= wide_power(-(int)field);
    p->twos += field;
    return p->twos * ((int64_t)1 << 24) + (int64_t)((fabs(p->x) - 1) * 0x1p24);
}

/* x_0 .. x_{first - 1} = 0, then x_first .. x_last by  b_{2i} x_i + b_{2i+1} x_{i+1} = 0  from
   x_start = `sign` outwards, then zeros to x_{n-1}; brought to norm 1.  x_start is the largest. */
TSVD_HD void
twisted_null_side(int64_t n, const double *b, int64_t first, int64_t start, int64_t last,
                  double sign, double *x)
{
    double sum = 0, scale;

    for (int64_t i = 0; i < n; i++) {
        x[i] = 0;
    }
    x[start] = sign;
    for (int64_t i = start; i < last; i++) {
        x[i + 1] = -(b[2 * i] / b[2 * i + 1]) * x[i];
    }
    for (int64_t i = start; i > first; i--) {
        x[i - 1] = -(b[2 * i - 1] / b[2 * i - 2]) * x[i];
    }
    for (int64_t i = first; i <= last; i++) {
        sum = fma(x[i], x[i], sum);
    }
    scale = 1 / sqrt(sum);
    for (int64_t i = first; i <= last; i++) {
        x[i] *= scale;
    }
}

/*
 * The last value s may be below TWISTED_LEAST, and far below all others.  B^-1 is v u^T / s then,
 * but for its share s / s_{n-1}: so v is proportional to any column of B^-1 that is not small, and
 * u to such a row.  B is upper bidiagonal, and
 *
 *     (B^-1)_ij = x_i y_j / c for i <= j,  0 for i > j,
 *     d_i x_i + e_i x_{i+1} = 0,  e_i y_i + d_{i+1} y_{i+1} = 0.
 *
 * Let (q, p) be the place of the largest entry.  v is x from the first row to row p, and 0 below;
 * u is y from row q to the last, and 0 above.  The recurrence for x alone, over all rows, would
 * leave out the last row of B v = s u: x may fall, and grow again where v stays 0.  x_q is the
 * largest of its part of x, and y_p of y, so both go from there, and nothing overflows.  u_p > 0,
 * and v_q has the sign of (B^-1)_qp.
 *
 * v, u [n] out, of norm 1.
 */
TSVD_HD void
twisted_null(const struct twisted_matrix *m, double *v, double *u)
{
    const int64_t n = m->n;
    const double *b = m->b;
    struct twisted_product x = {1, 0}, y = {1, 0};
    int64_t most_x = 0, row = 0, most = 0, q = 0, p = 0; /* x_row is the largest so far */
    double sign;

    for (int64_t j = 1; j < n; j++) {
        const int64_t size_x = twisted_times(b[2 * j - 2] / b[2 * j - 1], &x);
        const int64_t size_y = twisted_times(b[2 * j - 1] / b[2 * j], &y);

        if (size_x > most_x) {
            most_x = size_x;
            row = j;
        }
        if (most_x + size_y > most) {
            most = most_x + size_y;
            q = row;
            p = j;
        }
    }
    sign = b[2 * p] < 0 ? -1 : 1;
    for (int64_t i = q; i < p; i++) {
        sign = (b[2 * i] < 0) == (b[2 * i + 1] < 0) ? -sign : sign;
    }
    twisted_null_side(n, b, 0, q, p, sign, v);
    twisted_null_side(n, b + 1, q, p, n - 1, 1, u);
}

/* ---- gates, one value at a time ---- */

/* Values closer than this, relative to themselves, are refused: their gap is not known well, and
   what rounding in pairs does to the vector is no longer negligible.  Over the families of the
   tests nothing went wrong from 1e-14 on. */
#define TWISTED_RELGAP 1e-13

/* Counts are right, and chains stay within the range of doubles, for shifts from this on. */
#define TWISTED_LEAST 0x1p-240

/* The last value counts as 0 if it is not above 2 TWISTED_LEAST, and this far from the next one:
   then its vectors are those of 0 to more than the digits of either precision. */
#define TWISTED_NULL_GAP 0x1p-160

/* u and v have equal norms but for rounding: |v|^2 / |u|^2 may differ from 1 by this much. */
#define TWISTED_BALANCE (TSVD_SINGLE ? 1e-5 : 1e-11)

/* The square of the angle by which z may be off. */
TSVD_HD double
twisted_angle_square(double g, double square_norm, double gap)
{
    const double share = g / gap;

    return share * share / square_norm;
}

/* The largest correction that an accurate vector leaves, relative to its value. */
#define TWISTED_MOVED 0x1p-23

/* The largest angle, squared, that is accepted: 0.02 eps n, where two vectors may miss
   orthogonality by 3 eps (n + 8).  */
TSVD_HD double
twisted_angle_limit(int64_t n)
{
    const double limit = 0.02 * (double)R_EPS * (double)(n + 8);

    return limit * limit;
}

/* Whether a vector is accurate as it is.  Beside its angle its part from the mirror image of the
   value must be small: about moved / 2x, where `moved` is the correction that the shift x would
   get.  The balance feels that part, and the Rayleigh quotient its square.  Where x is small beside
   the largest value, the distance to its mirror image is small, and the angle alone would allow
   more. */
TSVD_HD int
twisted_is_accurate(int64_t n, double angle_square, double moved, double x)
{
    return angle_square <= twisted_angle_limit(n) && fabs(moved) <= TWISTED_MOVED * x;
}

/* Whether a correction leaves an angle within the limit: it squares the relative angle. */
TSVD_HD int
twisted_settles(double angle_square, double limit_square)
{
    return angle_square * angle_square <= limit_square / 64;
}

/* Whether a vector is accepted.  A shift that went less than a quarter of the way to any neighbour
   belongs to the same value as before: counts have found that one alone there.  It must be a count
   of the same matrix.  Values of B beside vectors of a B whose negligible entries are cut away are
   another matter: two shifts may then find one value, and both pass the gates but this one. */
TSVD_HD int
twisted_accepts(int64_t n, double angle_square, double balance, double from, double shift,
                double gap)
{
    return angle_square <= twisted_angle_limit(n) && fabs(balance - 1) <= TWISTED_BALANCE &&
           fabs(shift - from) <= gap / 4;
}

/* The real nearest to high + low in the units of B, where x is nearest to high: halfway between two
   reals `low` decides.  2^-(one + other) was the scale. */
TSVD_HD real
twisted_nearest(real x, double high, double low, int one, int other)
{
    const double there = (double)x * wide_power(-one) * wide_power(-other);
    const double half = (double)r_from_bits(1) * wide_power(-one) * wide_power(-other) / 2;

    return high - there == half && low > 0    ? r_from_bits(r_bits(x) + 1)
           : high - there == -half && low < 0 ? r_from_bits(r_bits(x) - 1)
                                              : x;
}

/* The share by which the value of an accepted vector may be off: in float64 it was corrected, and
   in float32 TWISTED_MOVED limits it. */
#define TWISTED_NOISE (TSVD_SINGLE ? 0x1p-44 : PAIR_NOISE)

/* The value of a shift high + low, in the units of B, as bisection gives it: the largest real that
   is not above it, or infinity above all of them; less than the share TWISTED_NOISE below a real
   counts as that real.  Below the smallest normal number it is the nearest real.  2^-exponent was
   the scale. */
TSVD_HD real
twisted_value(double high, double low, real_int exponent)
{
    const int one = (int)exponent / 2, other = (int)exponent - one;
    const double up = wide_power(one), rest = wide_power(other);
    const double there = high * up * rest;
    const real x = (real)there;
    double below;

    if (there < (double)r_from_bits(R_NORMAL_BITS)) {
        return twisted_nearest(x, high, low, one, other);
    }
    /* a float64 above all others is infinity as a double already */
    if (!(there < (TSVD_SINGLE ? 0x1p128 : (double)INFINITY))) {
        return x;
    }
    /* what x is above the shift, for float64 in the scaled units, where nothing overflows */
    below = TSVD_SINGLE ? ((double)x - there) / (up * rest) - low : -low;
    return below > TWISTED_NOISE * high ? r_from_bits(r_bits(x) - 1) : x;
}

#endif
