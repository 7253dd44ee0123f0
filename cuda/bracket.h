/*
 * Brackets of singular values, cut at several points at once.
 *
 * A bracket [low, high) holds one value, given as bits of reals: those are ordered as the
 * numbers are, so a bracket over many powers of two is cut in exponent first.  An end is
 * sure once a count, or the range of all values, has confirmed it.
 *
 * Values that lie together share a bracket, and so the points that cut it: a cluster of values
 * first .. last - 1 that have `each` points each has (last - first) each.  They are spread
 * evenly between the ends, and where an end is not sure one lies on it.
 *
 * Plain functions of their arguments, for host and device.
 */
#ifndef TSVDI_BRACKET_H
#define TSVDI_BRACKET_H

#include "real.h"

/* Factor by which a bracket's reach grows while it does not hold its value. */
enum { REACH_GROWTH = 16 };

struct bracket {
    int64_t first, last; /* values that share it, counted from the largest */
    real_int low, high;
    real_int reach; /* how far the only end that is not sure is put from the other */
    int low_sure, high_sure;
};

/* Where values may be looked for, as bits: counts are right from `floor` on, and every value is
   below `top`.  A bracket is narrow when its ends are neighbouring numbers or at most eps
   apart. */
struct bracket_range {
    real_int floor, top;
    real eps;
};

/* The points that cut a bracket. */
struct bracket_grid {
    int64_t low, high;
    int64_t step, rest; /* the distance of points is step + 1 for the first `rest`, then step */
    int64_t points;
    int low_sure, high_sure;
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

TSVD_HD int
bracket_is_narrow(const struct bracket *b, struct bracket_range range)
{
    if (!b->low_sure || !b->high_sure) {
        return 0;
    }
    return b->high - b->low <= 1 || (range.eps > 0 && b->high < R_INFINITY_BITS &&
                                     r_from_bits(b->high) - r_from_bits(b->low) <= range.eps);
}

/* What is left to find of each member's value: the binary digits of the bracket's width. */
TSVD_HD int
bracket_digits(const struct bracket *b)
{
    uint64_t width =
        (uint64_t)(b->low_sure == b->high_sure ? (int64_t)b->high - b->low : b->reach) /
        (uint64_t)(b->last - b->first);
    int digits = 0;

    for (int step = 32; step > 0; step /= 2) {
        if (width >> step != 0) {
            width >>= step;
            digits += step;
        }
    }
    return digits + (width != 0);
}

/* Nothing more can be learnt within the range: narrow, or all below the floor. */
TSVD_HD int
bracket_is_closed(const struct bracket *b, struct bracket_range range)
{
    return bracket_is_narrow(b, range) || (b->high_sure && b->high <= range.floor);
}

/* The number that stands for a narrow bracket: its lower end, but for one that only
   infinity ends. */
TSVD_HD real
bracket_value(const struct bracket *b)
{
    return r_from_bits(b->high == R_INFINITY_BITS && b->high - b->low <= 1 ? b->high : b->low);
}

/* For a bracket that is not closed; if neither end is sure, each >= 2. */
TSVD_HD struct bracket_grid
bracket_cut(const struct bracket *b, int64_t each, struct bracket_range range)
{
    struct bracket_grid cut;
    const int64_t reach = bracket_max(b->reach, each);
    int64_t steps;

    cut.low = b->low;
    cut.high = b->high;
    if (b->low_sure && !b->high_sure) {
        cut.high = range.top - cut.low > reach ? cut.low + reach : range.top;
    } else if (b->high_sure && !b->low_sure) {
        cut.low = bracket_max(cut.high - reach, range.floor);
    }
    cut.low_sure = b->low_sure || cut.low == 0;
    cut.high_sure = b->high_sure || cut.high == range.top;
    cut.points = (b->last - b->first) * each;
    steps = bracket_max(cut.points - 1 + cut.low_sure + cut.high_sure, 1);
    cut.step = (cut.high - cut.low) / steps;
    cut.rest = (cut.high - cut.low) % steps;
    return cut;
}

/* Point i of a cut, ascending: never 0, and below a sure upper end. */
TSVD_HD real_int
bracket_point(const struct bracket_grid *cut, int64_t i)
{
    const int64_t k = i + cut->low_sure;
    int64_t at = cut->low + k * cut->step + bracket_min(k, cut->rest);

    if (cut->low == 0 && i == 0) {
        at = 1; /* tells a zero from all other values at once */
    }
    return (real_int)bracket_min(at, cut->high - cut->high_sure);
}

/*
 * The bracket of value v after the values at or above each point of the cut were counted.
 * Members of a cluster that take the same way through this search are the members of the new
 * cluster, even where rounding keeps counts from descending.
 */
TSVD_HD void
bracket_narrow(struct bracket *b, int64_t v, const struct bracket_grid *cut, const int64_t *above)
{
    int64_t begin = 0, end = cut->points;

    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2, count = above[middle];

        if (count > v) {
            begin = middle + 1;
            b->last = bracket_min(b->last, count);
        } else {
            end = middle;
            b->first = bracket_max(b->first, count);
        }
    }
    b->low = begin > 0 ? bracket_point(cut, begin - 1) : (real_int)cut->low;
    b->high = begin < cut->points ? bracket_point(cut, begin) : (real_int)cut->high;
    b->low_sure = begin > 0 || cut->low_sure;
    b->high_sure = begin < cut->points || cut->high_sure;
    if (cut->low_sure != cut->high_sure) {
        b->reach =
            b->reach > R_INFINITY_BITS / REACH_GROWTH ? R_INFINITY_BITS : b->reach * REACH_GROWTH;
    }
}

/* The bracket of all n values, from the number of bits `lowest` on, which is not sure. */
TSVD_HD struct bracket
bracket_of_all(int64_t n, real_int lowest, struct bracket_range range)
{
    struct bracket b;

    b.first = 0;
    b.last = n;
    b.low = (real_int)bracket_max(lowest, range.floor);
    b.high = range.top;
    b.reach = b.high - b.low;
    b.low_sure = b.low == 0;
    b.high_sure = 1;
    return b;
}

/* The bracket of value v from low to high, neither of which is sure unless at the range's
   end. */
TSVD_HD struct bracket
bracket_of_one(int64_t v, int64_t low, int64_t high, struct bracket_range range)
{
    struct bracket b;

    low = bracket_min(bracket_max(low, range.floor), (int64_t)range.top - 1);
    high = bracket_min(bracket_max(high, low + 1), range.top);
    b.first = v;
    b.last = v + 1;
    b.low = (real_int)low;
    b.high = (real_int)high;
    b.reach = (real_int)(high - low);
    b.low_sure = b.low == 0;
    b.high_sure = b.high == range.top;
    return b;
}

/* Around an approximation that is off by `error` or so, in the units of the matrix, and by no
   less than `ulps`. */
TSVD_HD struct bracket
bracket_around_hint(int64_t v, real hint, real error, int64_t ulps, struct bracket_range range)
{
    const int64_t at = r_bits(hint);

    return bracket_of_one(v, bracket_min(r_bits(hint - error), at - ulps),
                          bracket_max(r_bits(hint + error), at + ulps), range);
}

/* How far a value may lie from where other counts found it, by its size: below the largest
   value by fewer than BRACKET_SMALL, BRACKET_TINY powers of two, or more. */
enum { BRACKET_SMALL = 4, BRACKET_TINY = 12 };

struct bracket_errors {
    int64_t ulps[3];
    int64_t reach; /* where it lies farther */
};

/* After a search with other counts whose floor was higher: around what it found, unless eps was
   all that was asked; down to zero below that floor. */
TSVD_HD struct bracket
bracket_around_found(int64_t v, const struct bracket *found, struct bracket_errors errors,
                     struct bracket_range range)
{
    const int64_t below = ((int64_t)range.top - found->low) >> R_DIGITS;
    const int64_t ulps = errors.ulps[(below >= BRACKET_SMALL) + (below >= BRACKET_TINY)];
    struct bracket b = *found;

    if (!found->low_sure) {
        b.low = 0;
        b.low_sure = 1;
    } else if (range.eps == 0) {
        b = bracket_of_one(v, found->low - ulps, found->low + ulps + 1, range);
        b.reach = (real_int)errors.reach;
    }
    return b;
}

#endif
