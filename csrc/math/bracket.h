/*
 * Brackets of singular values: the rules that every search for them keeps.
 *
 * A bracket [low, high) holds one value or more.  Its ends are the bits of reals; where values may
 * be infinity, the highest end is one above infinity's bits.  Bits are ordered
 * as the numbers are, so a bracket over many powers of two is cut in exponent first.  r_shift()
 * says from which shift on a value counts as a number.  An end is sure once a count, or the range
 * of all values, has confirmed it.
 *
 * The two searches that use these rules differ, since the hardware does.  A CPU counts at a few
 * shifts at once: cpu/values/values.c halves brackets, each at one shift.  A GPU counts at
 * thousands of shifts in the time of one, more than there are brackets: multisection.h cuts each at
 * several points in a round, and guesses where the value lies.
 *
 * Plain functions of their arguments, for host and device.
 */
#ifndef TSVDI_BRACKET_H
#define TSVDI_BRACKET_H

#include "math/real.h"

/* Where values may be looked for. */
struct bracket_range {
    real_int floor; /* bits of the least shift that counts are right for */
    real_int top;   /* bits above those of every value */
    real eps;       /* a bracket of at most this width need not be cut */
};

/* The ends of a bracket, and which of them are sure. */
struct bracket_ends {
    real_int low, high;
    char low_sure, high_sure;
};

TSVD_HD int64_t
bracket_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

TSVD_HD int64_t
bracket_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether the ends are neighbouring numbers, or at most eps apart. */
TSVD_HD int
bracket_is_narrow(real_int low, real_int high, real eps)
{
    return high - low <= 1 ||
           (eps > 0 && high < R_INFINITY_BITS && r_from_bits(high) - r_from_bits(low) <= eps);
}

/* Halfway between two ends. */
TSVD_HD int64_t
bracket_middle(int64_t low, int64_t high)
{
    return low + (high - low) / 2;
}

/* An end `reach` above another, at `top` at most. */
TSVD_HD int64_t
bracket_end_above(int64_t low, int64_t reach, int64_t top)
{
    return top - low > reach ? low + reach : top;
}

/* An end `reach` below another, at `floor` at least. */
TSVD_HD int64_t
bracket_end_below(int64_t high, int64_t reach, int64_t floor)
{
    return bracket_max(high - reach, floor);
}

/* The reach of the next try, where one did not reach the value. */
TSVD_HD real_int
bracket_reach_further(real_int reach, int factor)
{
    return reach > R_INFINITY_BITS / factor ? R_INFINITY_BITS : reach * factor;
}

/* Ends to start from: [low, high) as far as it lies within the range, at least one number. */
TSVD_HD struct bracket_ends
bracket_within(int64_t low, int64_t high, struct bracket_range range)
{
    struct bracket_ends b;

    b.low = (real_int)bracket_min(bracket_max(low, range.floor), range.top - 1);
    b.high = (real_int)bracket_min(bracket_max(high, b.low + 1), range.top);
    b.low_sure = b.low == 0;
    b.high_sure = b.high == range.top;
    return b;
}

#endif
