/*
 * Sturm counts with the value of the characteristic polynomial, which guides the device's search
 * (multisection.h): the plain form of sturm.h, in double for either precision.  The minors r_k of a
 * part are polynomials of x = sigma^2, but for a factor sigma of every other one.  Without that
 * factor,
 *
 *     p_j = r_{2j},  u_j = r_{2j+1} / sigma,
 *
 * two steps take three operations in place of four:
 *
 *     p_{j+1} = x u_j - b^2 p_j      = fma(x, u, -(b^2 p))    an even step
 *     u_{j+1} = p_{j+1} - b^2 u_j    = fma(-b^2, u, p)        an odd step
 *
 * The signs are those of r, so the counts are the same.  Each step waits for one operation. sturm.h
 * keeps sigma, rounds the product sigma r, and carries no polynomial.  Their results differ in the
 * last bits, so they are two functions.
 *
 * Even steps belong to the entries b_0, b_2, ..., so that every shift takes the same steps.  A part
 * that begins after an odd entry, or with the matrix, starts at p = u = 1.  One that begins after
 * an even entry is late: its first step is an odd one, over p = 1 in the place of u and x in the
 * place of p.  Then r_k stands for itself at even k, and sigma r_k at odd k.  In either case the
 * pair's larger number grows and shrinks as below.
 *
 * Layout: the 2n entries b_k = d1, e1, d2, e2, ..., dn, end, scaled by a power of two so that the
 * largest lies in [1, 2).  A zero ends a part: the recurrence starts again there.  The last entry
 * is not zero, but so small that it only turns the sign of an exact zero before it.  That is an
 * eigenvalue at sigma itself, which must count.  Each group of GROUP entries has its events, bits
 * for what happens at each entry.  One thread prepares a stretch of groups.
 *
 * Error.  The roundings of b^2, of the product and of the sum amount to changes of each b_k by at
 * most 3/4 2^-52.  By Weyl's theorem they change the values by at most
 *
 *     3/4 2^-52 |T|,    |T| <= the largest sum of two neighbouring entries.
 *
 * The rounding of x changes sigma by at most 1/4 2^-52 sigma.  So a value s has an error of at most
 * 3/4 |T| / s + 1/4 units of 2^-52 s, beside that of rounding it.
 * These are few units where s is not small.  A small value may be off by hundreds of units (copies
 * of a Jordan block, n = 2000: 230).  There the twofold form decides (plain_is_exact()).
 */
#ifndef TSVDI_STURM_POLYNOMIAL_H
#define TSVDI_STURM_POLYNOMIAL_H

#include "math/sturm.h"

enum {
    /* Entries of a group. */
    GROUP = 16,

    /* Entries of a stretch, at whose end the pair is brought back to PAIR_SIZE. */
    STRETCH = 8 * GROUP,

    /* Event: the entry is zero.  The bit is shifted by the entry's place in the group. */
    RESTART = 1,

    /* Event: after the entry the pair is brought back.  It is shifted in the same way. */
    RESCALE = 1 << GROUP,

    /* Up to this order plain counts are good enough for every value: the errors of the squares,
       which may all have the same sign, are at most 3/4 n + 1/2 (n - 1) + 1/4 units in a value.  At
       order 16 they were seen to reach 10. */
    PLAIN_ORDER = 3
};

/* Powers of two. */
enum {
    /* The larger of the pair (r, before) starts at 2^PAIR_SIZE.  Two entries gain it seven at
       most, and those of a stretch 426. */
    PAIR_SIZE = 590,

    /* It may lose this many powers of two until it is brought back, or more by a single entry just
       before. */
    PAIR_LOSS = 750,

    /* The least shift.  From it on, a product that underflows (at 2^-1022) lies far below the
       other one: the square of the shift times the least pair is 2^-1020. */
    PLAIN_LEAST = -430,

    /* An entry below this changes such shifts by less than 2^-60 of them, and counts as zero. */
    PLAIN_TINY = -498,

    /* The square of the last entry, far below that of the least shift. */
    PLAIN_END = -960,

    /* The product of the last entry with the pair does not vanish as long as the pair has lost no
       more than PAIR_LOSS - END_LOSS. */
    END_LOSS = 400,

    /* The twofold form keeps sigma.  Its pair starts at 2^TWOFOLD_SIZE. */
    TWOFOLD_SIZE = 500,

    /* It reaches down this many units further than the plain form, which may have erred by about
       1.25 n units.  This is far less than a power of two. */
    TWOFOLD_FURTHER = 1 << 28,

    /* The pairs are brought down by this many powers of two where two counts meet, so that their
       product is no more than 2^1008. */
    JOIN_DOWN = 90
};

/* What the scaling of a matrix needs.  Both are maxima, which many threads gather. */
struct matrix_size {
    real largest; /* the largest magnitude of an entry */
    real bound;   /* the largest sum of two neighbouring magnitudes: Gershgorin's bound of all
                     values */
};

/* Takes entry k and its sum with the one before into account. */
TSVD_HD void
matrix_size_add(struct matrix_size *size, int64_t n, const real *d, const real *e, int64_t k)
{
    const real b = sturm_entry(n, d, e, k), before = k > 0 ? sturm_entry(n, d, e, k - 1) : REAL(0);

    size->largest = r_max(size->largest, b);
    size->bound = r_max(size->bound, b + before);
}

/* The scaling of a matrix. */
struct matrix_scale {
    real_int top;   /* bits above those of every value */
    real_int floor; /* bits of the least shift that the plain form is for */
    double down[2]; /* the scaled entries are the entries times down[0] times down[1] */
};

/* 2^k, -1023 < k < 1024. */
TSVD_HD double
double_pow2(int k)
{
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* The upper half of the bits of x. */
TSVD_HD uint32_t
upper_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (uint32_t)(bits >> 32);
}

TSVD_HD struct matrix_scale
matrix_scale_of(struct matrix_size size)
{
    struct matrix_scale m;
    real_int exponent, at;

    (void)r_split(size.largest, &exponent);
    m.top = size.largest == 0 ? 1 : sturm_top(size.bound);
    at = r_bits(REAL(ldexp(1., (int)exponent + PLAIN_LEAST)));
    m.floor = at > 1 ? at : 1;
    m.down[0] = double_pow2((int)(-exponent / 2));
    m.down[1] = double_pow2((int)(-(exponent - exponent / 2)));
    return m;
}

/* Bits of the least shift that the twofold form is for.  Single precision does without it. */
TSVD_HD real_int
twofold_floor(struct matrix_scale m)
{
    return TSVD_SINGLE || m.floor <= TWOFOLD_FURTHER ? m.floor : m.floor - TWOFOLD_FURTHER;
}

/* Whether the plain form gives the value with these bits within the bound on its error, 4 + n / 64
   units.  For numbers of single precision it always does, since it is in double.  It does not
   decide how a value below the smallest normal number is rounded, nor which value is infinity. */
TSVD_HD int
plain_is_exact(int64_t n, real_int bits, struct matrix_scale m)
{
    const double top = (double)r_from_bits(m.top < R_INFINITY_BITS ? m.top : R_INFINITY_BITS - 1);

    return TSVD_SINGLE || (bits > R_NORMAL_BITS && bits < R_INFINITY_BITS &&
                           (n <= PLAIN_ORDER ||
                            (double)r_from_bits(bits) * (3.75 + (double)n / 64) >= 0.75 * top));
}

/* The square of the scaled entry k of 2n; 0 where the entry counts as zero. */
TSVD_HD double
plain_square(int64_t n, const real *d, const real *e, int64_t k, struct matrix_scale m)
{
    const double b = (double)sturm_entry(n, d, e, k) * m.down[0] * m.down[1];

    if (k >= 2 * n - 1) {
        return k == 2 * n - 1 ? double_pow2(PLAIN_END) : 0;
    }

    return b < double_pow2(PLAIN_TINY) ? 0 : b * b;
}

/* How many powers of two the pair loses by entry k of 2n, at most: it shrinks by b^2 / 17 in an
   even step, since x is below 16, and by b^2 / 2 in an odd one. */
TSVD_HD int
plain_loss(int64_t n, int64_t k, double square)
{
    return k == 2 * n - 1 ? (int)END_LOSS
                          : 1023 - (int)(upper_of(square) >> 20) + (k % 2 == 0 ? 5 : 1);
}

/* The events of the stretch that begins at entry `begin` of 2n.  The pair is brought back at the
   end of groups where that is often enough, as counts pass over such groups faster. */
TSVD_HD void
plain_events(int64_t n, int64_t begin, const double *square, uint32_t *event)
{
    const int entries = 2 * n - begin < STRETCH ? (int)(2 * n - begin) : (int)STRETCH;
    int loss = 0;

    for (int g = 0; g * GROUP < entries; g++) {
        const int first = g * GROUP;
        uint32_t events = 0;
        int next[GROUP], all = 0;

        for (int k = 0; k < GROUP; k++) {
            next[k] = first + k < entries ? plain_loss(n, begin + first + k, square[first + k]) : 0;
            all += next[k];
        }
        if (loss > 0 && loss + all > PAIR_LOSS && all <= PAIR_LOSS) {
            event[g - 1] |= (uint32_t)RESCALE << (GROUP - 1);
            loss = 0;
        }
        if (loss + all <= PAIR_LOSS) { /* nothing happens within the group */
            loss += all;
            event[g] = 0;
            continue;
        }
        for (int k = 0; k < GROUP && first + k < entries; k++) {
            if (square[first + k] == 0) {
                events |= (uint32_t)RESTART << k;
                loss = 0;
                continue;
            }
            if (loss > 0 && loss + next[k] > PAIR_LOSS) { /* before the entry */
                *(k > 0 ? &events : &event[g - 1]) |= (uint32_t)RESCALE
                                                      << (k > 0 ? k - 1 : GROUP - 1);
                loss = 0;
            }
            loss += next[k];
            if (loss > PAIR_LOSS) { /* by this entry alone */
                events |= (uint32_t)RESCALE << k;
                loss = 0;
            }
        }
        event[g] = events;
    }
    if (begin + STRETCH < 2 * n) {
        event[STRETCH / GROUP - 1] |= (uint32_t)RESCALE << (GROUP - 1);
    }
}

/* One count under way. */
struct plain {
    double x;          /* the square of the shift */
    double r, before;  /* p and u, the latest one first */
    double product;    /* product 2^exponent is the product of the finished parts' polynomials */
    uint32_t exponent; /* modulo 2^32; |product| is in [1, 2), or product is 0 */
    int above;
    int late; /* whether the part is late */
};

/* Begins a count at the shift that counts as `shift` (r_shift()). */
TSVD_HD void
plain_start(struct plain *x, real shift, struct matrix_scale m)
{
    int twice;
    const double sigma = (double)r_shift(shift, &twice) * m.down[0] * m.down[1];

    x->x = sigma * double_pow2(twice) * (sigma * double_pow2(twice));
    x->exponent = 0;
    x->above = x->late = 0;
    x->r = x->before = double_pow2(PAIR_SIZE);
    x->product = 1;
}

/* A step over entry k, whose square is given. */
TSVD_HD void
plain_step(struct plain *x, int k, double square)
{
    const double next =
        k % 2 == 0 ? fma(x->x, x->r, -(square * x->before)) : fma(-square, x->before, x->r);

    x->before = x->r;
    x->r = next;
}

/* The mantissa of x, of a magnitude in [1, 2); its exponent is added to *exponent, modulo 2^32. */
TSVD_HD double
plain_mantissa(double x, uint32_t *exponent)
{
    const uint32_t field = upper_of(x) >> 20 & 0x7ff;

    if (field == 0) { /* x is zero, or as good as zero */
        return 0;
    }
    *exponent += field - 1023;
    return x * double_pow2(1023 - (int)field);
}

/* Multiplies the product by y. */
TSVD_HD void
plain_multiply(struct plain *x, double y)
{
    x->product = plain_mantissa(x->product * plain_mantissa(y, &x->exponent), &x->exponent);
}

/* Starts a new part, at entry k, which is zero.  An exact zero counts as sturm_zero_counts() says.
   The polynomial of the part that ends is r, or sigma r if its order is odd. */
TSVD_HD void
plain_restart(struct plain *x, int k)
{
    x->above += x->r == 0 && (upper_of(x->r) ^ upper_of(x->before)) >> 31 == 0;
    plain_multiply(x, x->r);
    if (k % 2 == 0 && !x->late) { /* r is u */
        plain_multiply(x, x->x);
    }
    x->late = k % 2 == 0;
    x->before = double_pow2(PAIR_SIZE);
    x->r = x->late ? x->x * x->before : x->before;
}

/* Brings the larger of the pair back to 2^PAIR_SIZE. */
TSVD_HD void
plain_rescale(struct plain *x)
{
    const uint32_t one = upper_of(x->r) >> 20 & 0x7ff, other = upper_of(x->before) >> 20 & 0x7ff;
    const int up = 1023 + PAIR_SIZE - (int)(one > other ? one : other);
    const double factor = double_pow2(up);

    x->r *= factor;
    x->before *= factor;
    x->exponent -= (uint32_t)up;
}

/* Entry k and its events.  The events are those of the matrix, so all threads of a warp take the
   same branches. */
TSVD_HD void
plain_pass(struct plain *x, int k, double square, int restart, int rescale)
{
    if (restart) {
        plain_restart(x, k);
    } else {
        plain_step(x, k, square);
        x->above += (int)((upper_of(x->r) ^ upper_of(x->before)) >> 31);
    }
    if (rescale) {
        plain_rescale(x);
    }
}

/* ---- counts from both ends ---- */

/* 1 where the last pivot is negative, or zero: an eigenvalue at sigma itself counts.  The arguments
   have the signs of det, of r_n and of t_{n-1}, as in plain_join(). */
TSVD_HD int
last_pivot_counts(double det, uint32_t r, uint32_t t_before)
{
    return det == 0 ? 1 : (int)((upper_of(det) ^ r ^ t_before) >> 31);
}

/* What counts in place of the last pivot where r_n = t_{n-1} = 0.  Just below sigma both
   r_n / r_{n-1} and t_{n-1} / t_{n-2} are negative and the last pivot is not, so both quotients
   must count.  Each has counted already if the number before its zero was negative. */
TSVD_HD int
zero_pivots_count(double r_before, double t)
{
    return (r_before > 0) + (t < 0);
}

/*
 * Joins a count x from the top and a count y from the bottom, each over n - 1 entries, over the
 * middle entry, whose square is given (cuda/values/halves.h).  Returns what counts beside the
 * changes of sign of both, and has x's polynomial be that of the whole matrix.
 *
 * The pairs lack factors sigma: at an even entry r has one less than before, or else before has one
 * less than r.
 */
TSVD_HD int
plain_join(struct plain *x, struct plain y, double square, int64_t n)
{
    const int middle = (int)((n - 1) % 2);
    const double down = double_pow2(-JOIN_DOWN);
    uint32_t change, twos = 0;
    double det;
    int counts;

    x->above = y.above = 0;
    if (square == 0) { /* two parts end here */
        plain_restart(x, middle);
        plain_restart(&y, middle);
        counts = x->above + y.above;
        det = 1;
    } else {
        change = upper_of(y.r) ^ upper_of(y.before);
        plain_rescale(x);
        plain_rescale(&y);
        x->r *= down;
        x->before *= down;
        y.r *= down;
        y.before *= down;
        /* the products in this order: none underflows but where it is negligible */
        det = middle == 0 ? fma(x->x * x->r, y.r, -(square * x->before * y.before))
                          : fma(x->r, y.r, -(square * x->before * y.before * x->x));
        counts = x->r == 0 && y.before == 0
                     ? zero_pivots_count(x->before, y.r)
                     : last_pivot_counts(det, upper_of(x->r), upper_of(y.before));
        counts -= (int)(change >> 31);                        /* that of t_n / t_{n-1} */
        x->exponent -= (uint32_t)(PAIR_SIZE - 2 * JOIN_DOWN); /* one part started twice */
        if (x->late && y.late) {                              /* det has a factor x too much */
            det = plain_mantissa(det, &x->exponent) / plain_mantissa(x->x, &twos);
            x->exponent -= twos;
        }
    }
    x->r = det;
    x->exponent += y.exponent;
    plain_multiply(x, y.product);
    return counts;
}

/* The polynomial after the last entry is the result times 2^x->exponent. */
TSVD_HD double
plain_polynomial(struct plain *x)
{
    return x->product * plain_mantissa(x->r, &x->exponent);
}

#endif
