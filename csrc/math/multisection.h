/*
 * Multisection: brackets of singular values (bracket.h), each cut at several points in a round.
 *
 * Source: Lo, Philippe & Sameh, A multiprocessor algorithm for the symmetric tridiagonal
 * eigenvalue problem, SIAM J. Sci. Stat. Comput. 8 (1987), for the cut at several points.
 *
 * Values that lie together share a bracket, and so the points that cut it: a cluster of values
 * first .. last - 1 with `each` points for each value has (last - first) each points.  The points
 * are spread evenly between the ends.  Where an end is not sure, one point lies on it.
 *
 * A value alone in its bracket is a root of the characteristic polynomial of the Golub-Kahan
 * form, which has different signs at the ends.  A guess then draws the points together.  Where a
 * bracket has several points, it comes from inverse interpolation between them.  Where it has one
 * or two, the counts for the neighbours tell more: the guess is a root of the polynomial that goes
 * through what is known around the bracket.  With one point a value, that takes three quarters of
 * the counts.  Only counts move the ends, so a bad guess costs time and nothing else.  After
 * guesses that have not halved the bracket, the next cut is even.
 *
 * Plain functions of their arguments, for host and device.
 */
#ifndef TSVDI_MULTISECTION_H
#define TSVDI_MULTISECTION_H

#include "math/bracket.h"

enum {
    /* Factor by which a bracket's reach grows while it does not hold its value. */
    REACH_GROWTH = 16,

    /* The first cut from scratch samples this many powers of two below the largest value. */
    SAMPLED_BINADES = 64,

    /* A guess may be off by its estimated error times this. */
    GUESS_SAFETY = 16,

    /* A bracket is first cut around a guess when the polynomial's values at its ends differ by no
       more than this factor: a polynomial of low degree is near it then. */
    GUESS_RATIO = 64,

    /* After this many guesses in a row that did not halve it, a bracket is cut evenly. */
    GUESS_MISSES = 2,

    /* A hint may be off by this many ulps of the largest value. */
    HINT_ULPS = 8,

    /* The first bracket around what other counts found has this many ulps on either side.  These
       counts may be off by more. */
    FOUND_SLACK = 1024,

    /* Values of the polynomial are compared if they lie within this many powers of two. */
    GUESS_BINADES = 200,

    /* A polynomial goes through this many nodes at most, the two ends of the bracket among them. */
    GUESS_NODES = 10,

    /* The most evaluations around a bracket that it is chosen from. */
    GUESS_CHOICE = 10,

    /* Two nodes on one side of a bracket are 2^-GUESS_APART of its width apart, or more. */
    GUESS_APART = 10,

    /* A node is left out if the polynomial is more than this many times as large there as at both
       ends. */
    GUESS_SWELL = 1024,

    /* The most steps of Newton's method to the polynomial's root.  Few need more than eight. */
    GUESS_STEPS = 24,

    /* A root of that polynomial may be off by its estimated error times this. */
    ROOT_SAFETY = 2
};

/* What a count tells of a shift.  The characteristic polynomial there is value 2^exponent, up to a
   factor that all shifts share. */
struct evaluation {
    int64_t above; /* singular values >= the shift */
    real_int at;   /* the shift, as bits */
    int32_t exponent;
    double value; /* NaN: not known */
};

struct bracket {
    int64_t first, last; /* the values first .. last - 1, counted from the largest, share it */
    real_int low, high;
    real_int reach;           /* if one end is not sure: how far it is put from the other */
    real_int guess;           /* the value is expected in [guess, guess + 1) */
    real_int spread;          /* how far off the guess may be; < 0: there is no guess */
    int32_t exponent[2];      /* of the polynomial at low and high, as in struct evaluation */
    double polynomial[2];     /* its values there, as in struct evaluation */
    char low_sure, high_sure; /* whether the ends are confirmed */
    char fresh;               /* not cut before: its first cut samples many powers of two */
    char guided;              /* was cut around a guess at least once */
    char misses;              /* guesses in a row that did not halve it */
};

/* The points that cut a bracket. */
struct bracket_grid {
    int64_t low, high;  /* between them the points lie */
    int64_t step, rest; /* of an even cut: the first `rest` distances are step + 1, then step */
    int64_t points;     /* their number */
    int64_t guess;      /* the points draw together around it, if spread >= 0 */
    int64_t spread;     /* as in struct bracket */
    int64_t below;      /* the points below the guess */
    char low_sure, high_sure; /* if an end is not sure, one point lies on it */
    char fresh;               /* the points sample many powers of two */
};

/* Whether nothing more can be learnt within the range: the bracket is narrow, or lies below the
   floor. */
TSVD_HD int
bracket_is_closed(const struct bracket *b, struct bracket_range range)
{
    if (b->high_sure && b->high <= range.floor) {
        return 1;
    }
    return b->low_sure && b->high_sure && bracket_is_narrow(b->low, b->high, range.eps);
}

/* The value of a closed bracket: its lower end. */
TSVD_HD real
bracket_value(const struct bracket *b)
{
    return r_from_bits(b->low);
}

/* ---- points ---- */

/* How many of a first cut's points lie below `top` 2^-k.  Half of all points are spread evenly over
   the numbers' values, half over their exponents. */
TSVD_HD int64_t
bracket_samples(int64_t points, int k)
{
    const double share = (r_pow2(-k) + 1 - (double)k / (double)SAMPLED_BINADES) / 2;

    return (int64_t)(share * (double)points);
}

/* Where point i of a first cut lies; point 0 is the lowest. */
TSVD_HD int64_t
bracket_sample(const struct bracket_grid *cut, int64_t i)
{
    const int64_t binade = (int64_t)1 << R_DIGITS;
    int k = 0; /* the point lies in the k-th power of two below the top */
    int64_t begin, end;

    while (k + 1 < SAMPLED_BINADES && bracket_samples(cut->points, k + 1) > i) {
        k++;
    }
    begin = k + 1 < SAMPLED_BINADES ? bracket_samples(cut->points, k + 1) : 0;
    end = bracket_samples(cut->points, k);
    return cut->high - (k + 1) * binade +
           (int64_t)((double)(i - begin) / (double)(end - begin) * (double)binade);
}

/* How an open bracket is cut at `each` points for each of its values.  Where neither end is sure,
   two points lie on the ends; a single point lies between them. */
TSVD_HD struct bracket_grid
bracket_cut(const struct bracket *b, int64_t each, struct bracket_range range)
{
    struct bracket_grid cut;
    const int64_t reach = bracket_max(b->reach, each);
    int64_t steps;

    cut.low = b->low;
    cut.high = b->high;
    if (b->low_sure && !b->high_sure) {
        cut.high = bracket_end_above(cut.low, reach, range.top);
    } else if (b->high_sure && !b->low_sure && !b->fresh) {
        cut.low = bracket_end_below(cut.high, reach, range.floor);
    }
    cut.low_sure = b->low_sure || cut.low == 0;
    cut.high_sure = b->high_sure || cut.high == range.top;
    cut.fresh = b->fresh;
    cut.points = (b->last - b->first) * each;
    cut.spread = -1;
    cut.guess = cut.below = 0;
    steps = cut.points - 1 + cut.low_sure + cut.high_sure;
    if (steps == 0) { /* one point, and neither end is sure */
        cut.low = bracket_middle(cut.low, cut.high);
        steps = 1;
    }
    cut.step = (cut.high - cut.low) / steps;
    cut.rest = (cut.high - cut.low) % steps;
    if (b->spread >= 0 && cut.high - cut.low > cut.points + 1) {
        const int64_t space_below = b->guess - cut.low, space_above = cut.high - 1 - b->guess;

        cut.guess = b->guess;
        cut.spread = b->spread;
        cut.below = (cut.points + (space_below > space_above)) / 2;
        cut.below = bracket_min(bracket_max(cut.below, cut.points - space_above), space_below);
    }
    return cut;
}

/* How far point j of `points` on one side of a guess lies from it; point 0 is the nearest.  There
   are `space` places up to the end.  The inner half of the points is spread evenly as far as the
   guess may be off.  The others form a geometric sequence up to the end. */
TSVD_HD int64_t
bracket_distance(int64_t spread, int64_t j, int64_t points, int64_t space)
{
    const int64_t inner = (points + 1) / 2;
    const int64_t far = bracket_min(bracket_max(spread, inner - 1), space - 1);

    if (space <= points) {
        return j;
    }
    if (j < inner) {
        return inner == 1 ? far : (int64_t)((double)far / (double)(inner - 1) * (double)j);
    }
    return far + (int64_t)(exp2(log2((double)(space - far)) * (double)(j - inner + 1) /
                                (double)(points - inner + 1)));
}

/* Point i of a cut, in ascending order.  It is never 0, and lies between ends that are sure. */
TSVD_HD real_int
bracket_point(const struct bracket_grid *cut, int64_t i)
{
    int64_t at;

    if (cut->spread >= 0 && i < cut->below) {
        at = cut->guess -
             bracket_distance(cut->spread, cut->below - 1 - i, cut->below, cut->guess - cut->low);
    } else if (cut->spread >= 0) {
        at = cut->guess + 1 +
             bracket_distance(cut->spread, i - cut->below, cut->points - cut->below,
                              cut->high - 1 - cut->guess);
    } else if (cut->fresh) {
        at = bracket_sample(cut, i);
    } else {
        const int64_t k = i + cut->low_sure;

        at = cut->low + k * cut->step + bracket_min(k, cut->rest);
        if (cut->low == 0 && i == 0) {
            at = 1; /* a count there tells a zero from all other values at once */
        }
    }
    at = bracket_max(at, cut->low + cut->low_sure);
    return (real_int)bracket_max(bracket_min(at, cut->high - cut->high_sure), 1);
}

/* ---- guesses ---- */

/* One of up to four nodes of the interpolation. */
struct bracket_node {
    double t; /* the place (x^2 - low^2) / high^2: the function is a polynomial of it too */
    double f; /* the polynomial's value */
};

/* x - low for the x at place t, in units of `high`.  low: the low end in the same units. */
TSVD_HD double
bracket_offset(double low, double t)
{
    const double square = fmax(low * low + t, 0.);
    const double below = low + sqrt(square);

    return below > 0 ? t / below : 0;
}

/* The node of an evaluation, its value in units of 2^exponent.  f = 0 where the value is not known,
   or out of proportion. */
TSVD_HD struct bracket_node
bracket_node_at(struct evaluation x, double low, double high, int32_t exponent)
{
    const double at = (double)r_from_bits(x.at);
    const int32_t up = (int32_t)((uint32_t)x.exponent - (uint32_t)exponent);
    struct bracket_node node = {(at - low) / high * (at / high + low / high), 0};

    if (up >= -GUESS_BINADES && up <= GUESS_BINADES && x.value == x.value &&
        x.at < R_INFINITY_BITS) {
        node.f = ldexp(x.value, up);
    }
    return node;
}

/*
 * Where the inverse of the polynomial, interpolated by divided differences at the bracket's ends
 * and up to two nodes beyond, is zero.  *error: the last correction, reduced by the ratio of the
 * last two corrections.
 */
TSVD_HD double
bracket_interpolate(const struct bracket_node *node, int nodes, double *error)
{
    double first = node[1].t / (node[1].f - node[0].f), t = -node[0].f * first;
    double last_first = first, last_second = 0;
    double before = fmin(t, node[1].t - t), product = node[0].f * node[1].f;

    *error = before;
    for (int i = 2; i < nodes; i++) {
        const double next = (node[i].t - node[i - 1].t) / (node[i].f - node[i - 1].f);
        const double second = (next - last_first) / (node[i].f - node[i - 2].f);
        const double correction =
            i == 2 ? product * second
                   : -product * (second - last_second) / (node[i].f - node[i - 3].f);

        t += correction;
        *error = fabs(correction) * fmin(fabs(correction) / before, 1.);
        before = fabs(correction);
        product *= node[i].f;
        last_first = next;
        last_second = second;
    }
    return t;
}

/* Whether the polynomial grows on from an end of the bracket to a node beyond it. */
TSVD_HD int
bracket_goes_on(struct bracket_node end, struct bracket_node beyond)
{
    return end.f < 0 ? beyond.f < end.f : beyond.f > end.f;
}

/* Puts the guess of a bracket at place t, which may be off by `error`.  high_t: the place of the
   high end. */
TSVD_HD void
bracket_put_guess(struct bracket *b, double t, double error, double high_t, real eps)
{
    const double low = (double)r_from_bits(b->low), high = (double)r_from_bits(b->high);
    const double off = high * bracket_offset(low / high, t);
    double at = low + off, rest = off - (at - low);
    const real there = (real)at;

    rest += at - (double)there;
    b->guess = (real_int)bracket_min(bracket_max((int64_t)r_bits(there) - (rest < 0), b->low),
                                     b->high - 1);
    at = low + high * bracket_offset(low / high, fmin(t + error, high_t));
    at = fmin(fmax(at, (double)r_from_bits(b->guess) + (double)eps / 4), high);
    b->spread = (real_int)bracket_max((int64_t)r_bits((real)at) - b->guess - 1, 0);
    at = low + high * bracket_offset(low / high, fmax(t - error, 0.));
    b->spread = (real_int)bracket_max(b->guess - (int64_t)r_bits((real)at), b->spread);
    if (b->spread >= (b->high - b->low) / 4) {
        b->spread = -1;
    }
}

/* Whether a root between the ends of a bracket can be guessed: the polynomial has different signs
   there, of magnitudes that are not too different. */
TSVD_HD int
bracket_has_root(const struct bracket *b, struct bracket_node low, struct bracket_node high)
{
    const double one = fabs(low.f), other = fabs(high.f);

    return (low.f < 0 ? high.f > 0 : low.f > 0 && high.f < 0) && b->high < R_INFINITY_BITS &&
           (b->guided || fmax(one, other) <= (double)GUESS_RATIO * fmin(one, other));
}

/* The guess of a bracket with sure ends.  below[0] and above[0] are the evaluations at its ends,
   below[1] and above[1] those next to them outside. */
TSVD_HD void
bracket_make_guess(struct bracket *b, const struct evaluation below[2],
                   const struct evaluation above[2], real eps)
{
    const double low = (double)r_from_bits(b->low), high = (double)r_from_bits(b->high);
    const int32_t exponent = (int32_t)above[0].exponent;
    struct bracket_node node[4] = {bracket_node_at(below[0], low, high, exponent),
                                   bracket_node_at(above[0], low, high, exponent)};
    struct bracket_node more[2] = {bracket_node_at(below[1], low, high, exponent),
                                   bracket_node_at(above[1], low, high, exponent)};
    const int near = -more[0].t < more[1].t - node[1].t; /* is the lower of `more` nearer? */
    double error, t;
    int nodes = 2;

    b->spread = -1;
    if (!bracket_has_root(b, node[0], node[1])) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        const int side = i == 0 ? !near : near;

        if (bracket_goes_on(node[side], more[side])) {
            node[nodes++] = more[side];
        }
    }
    t = bracket_interpolate(node, nodes, &error);
    if (t > 0 && t < node[1].t) {
        bracket_put_guess(b, t, error * (double)GUESS_SAFETY, node[1].t, eps);
    }
}

/* Whether a value alone in its bracket may be guessed. */
TSVD_HD int
bracket_may_guess(const struct bracket *b)
{
    return b->polynomial[0] == b->polynomial[0] && b->polynomial[1] == b->polynomial[1] &&
           b->last - b->first == 1 && b->misses < GUESS_MISSES;
}

/* The evaluation at an end of a bracket: 0 the low one, 1 the high one. */
TSVD_HD struct evaluation
bracket_end(const struct bracket *b, int end)
{
    struct evaluation x;

    x.above = 0; /* not known any more */
    x.at = end ? b->high : b->low;
    x.exponent = b->exponent[end];
    x.value = b->polynomial[end];
    return x;
}

/* Chooses from evaluations around a bracket those that lie nearest, and not too near to one
   another. node[0] and node[1] are its ends.  Returns the number of nodes, GUESS_NODES at most. */
TSVD_HD int
bracket_choose_nodes(double low, double high, int32_t exponent, const struct evaluation *around,
                     int count, struct bracket_node *node)
{
    const double apart = node[1].t * (1. / (double)(1 << GUESS_APART));
    const double most = (double)GUESS_SWELL * fmax(fabs(node[0].f), fabs(node[1].f));
    struct bracket_node next[GUESS_CHOICE];
    double far[GUESS_CHOICE], last[2] = {0, 0};
    int choice = 0, nodes = 2;

    for (int i = 0; i < count; i++) { /* by their distance */
        const struct bracket_node x = bracket_node_at(around[i], low, high, exponent);
        const double distance = x.t < 0 ? -x.t : x.t - node[1].t;
        int k = choice;

        if (x.f == 0 || fabs(x.f) > most || !(distance > 0)) { /* not known, or not outside */
            continue;
        }
        for (; k > 0 && far[k - 1] > distance; k--) {
            far[k] = far[k - 1];
            next[k] = next[k - 1];
        }
        far[k] = distance;
        next[k] = x;
        choice++;
    }
    for (int i = 0; i < choice && nodes < GUESS_NODES; i++) {
        double *nearest = &last[next[i].t > 0];

        if (far[i] - *nearest >= apart) {
            *nearest = far[i];
            node[nodes++] = next[i];
        }
    }
    return nodes;
}

/*
 * The guess of a bracket with sure ends from the `count` evaluations around it: the root between
 * the ends of the polynomial in x^2 through the ends and the nodes outside.  It has Newton's
 * divided differences, and Newton's method finds the root, which halves where it leads out.  The
 * last term over the slope estimates the error.  Where nothing is known around, the guess stays as
 * it is.
 */
TSVD_HD void
bracket_guess_through(struct bracket *b, const struct evaluation *around, int count, real eps)
{
    const double low = (double)r_from_bits(b->low), high = (double)r_from_bits(b->high);
    const int32_t exponent = b->exponent[1];
    struct bracket_node node[GUESS_NODES];
    double difference[GUESS_NODES], begin = 0, end, t, value, slope = 0, term = 1;
    int nodes;

    node[0] = bracket_node_at(bracket_end(b, 0), low, high, exponent);
    node[1] = bracket_node_at(bracket_end(b, 1), low, high, exponent);
    if (!bracket_has_root(b, node[0], node[1])) {
        return;
    }
    nodes = bracket_choose_nodes(low, high, exponent, around, count, node);
    if (nodes == 2) {
        return;
    }
    for (int i = 0; i < nodes; i++) {
        difference[i] = node[i].f;
    }
    for (int k = 1; k < nodes; k++) {
        for (int i = nodes - 1; i >= k; i--) {
            difference[i] = (difference[i] - difference[i - 1]) / (node[i].t - node[i - k].t);
        }
    }
    end = node[1].t;
    t = end * (node[0].f / (node[0].f - node[1].f));
    for (int step = 0; step < GUESS_STEPS; step++) {
        const double here = t;

        value = difference[nodes - 1];
        slope = 0;
        for (int i = nodes - 2; i >= 0; i--) {
            slope = slope * (here - node[i].t) + value;
            value = value * (here - node[i].t) + difference[i];
        }
        if ((value < 0) == (node[0].f < 0)) {
            begin = here;
        } else {
            end = here;
        }
        t = here - value / slope;
        if (!(t > begin && t < end)) {
            t = (begin + end) / 2;
        }
        if (fabs(t - here) <= node[1].t * 0x1p-52) {
            break;
        }
    }
    for (int i = nodes - 2; i >= 0; i--) {
        term *= t - node[i].t;
    }
    bracket_put_guess(b, t, fabs(difference[nodes - 1] * term / slope) * (double)ROOT_SAFETY,
                      node[1].t, eps);
}

/* The guess of bracket v of `values` from what is known around it, and around its neighbours:
   beyond[2 w] and beyond[2 w + 1] are what bracket_narrow() knows beyond bracket w.  Writes the
   guess of bracket v alone, and reads no guess of another bracket, so that all may be guessed at
   once. */
TSVD_HD void
bracket_guess_around(struct bracket *brackets, const struct evaluation *beyond, int64_t v,
                     int64_t values, real eps)
{
    struct evaluation around[GUESS_CHOICE];
    int count = 0;

    if (!bracket_may_guess(&brackets[v])) {
        return;
    }
    for (int64_t w = bracket_max(v - 1, 0); w <= bracket_min(v + 1, values - 1); w++) {
        around[count++] = beyond[2 * w];
        around[count++] = beyond[2 * w + 1];
        if (w != v) {
            around[count++] = bracket_end(&brackets[w], 0);
            around[count++] = bracket_end(&brackets[w], 1);
        }
    }
    bracket_guess_through(&brackets[v], around, count, eps);
}

/*
 * The bracket of value v after its cut was evaluated.  The values that go the same way through this
 * binary search form the new cluster.  That holds even where rounding keeps counts from descending.
 * beyond: NULL, or the last known evaluations below and above the bracket; they follow it.
 */
TSVD_HD void
bracket_narrow(struct bracket *b, int64_t v, const struct bracket_grid *cut,
               const struct evaluation *at, real eps, struct evaluation *beyond)
{
    const int64_t width = cut->high - cut->low;
    struct evaluation below[2], above[2];
    int64_t begin = 0, end = cut->points;

    for (int i = 0; i < 2; i++) {            /* what was known before the cut */
        below[i].above = above[i].above = 0; /* as in bracket_end() */
        below[i].at = b->low;
        above[i].at = b->high;
        below[i].value = i == 0 ? b->polynomial[0] : REAL(NAN);
        above[i].value = i == 0 ? b->polynomial[1] : REAL(NAN);
        below[i].exponent = b->exponent[0];
        above[i].exponent = b->exponent[1];
    }
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2, count = at[middle].above;

        if (count > v) {
            begin = middle + 1;
            b->last = bracket_min(b->last, count);
        } else {
            end = middle;
            b->first = bracket_max(b->first, count);
        }
    }
    if (begin > 0) {
        below[1] = begin > 1 ? at[begin - 2] : below[0];
        below[0] = at[begin - 1];
        if (beyond != NULL) {
            beyond[0] = below[1];
        }
    }
    if (begin < cut->points) {
        above[1] = begin + 1 < cut->points ? at[begin + 1] : above[0];
        above[0] = at[begin];
        if (beyond != NULL) {
            beyond[1] = above[1];
        }
    }
    b->low = begin > 0 ? below[0].at : (real_int)cut->low;
    b->high = begin < cut->points ? above[0].at : (real_int)cut->high;
    b->low_sure = begin > 0 || cut->low_sure;
    b->high_sure = begin < cut->points || cut->high_sure;
    if (b->low_sure && b->high <= b->low) { /* points in the wrong order, by rounding */
        b->high = b->low + 1;
    }
    b->polynomial[0] = b->low_sure ? below[0].value : REAL(NAN);
    b->polynomial[1] = b->high_sure ? above[0].value : REAL(NAN);
    b->exponent[0] = below[0].exponent;
    b->exponent[1] = above[0].exponent;
    b->fresh = 0;
    b->spread = -1;
    if (cut->spread >= 0 && cut->low_sure && cut->high_sure) {
        b->guided = 1;
        b->misses = (char)(b->high - b->low > width / 2 ? b->misses + 1 : 0);
    } else {
        b->misses = 0;
    }
    if (cut->low_sure != cut->high_sure) {
        b->reach = bracket_reach_further(b->reach, REACH_GROWTH);
    }
    if (bracket_may_guess(b)) {
        bracket_make_guess(b, below, above, eps);
    }
}

/* ---- brackets to start from ---- */

/* The values first .. last - 1 between two ends. */
TSVD_HD struct bracket
bracket_between(int64_t first, int64_t last, struct bracket_ends ends)
{
    struct bracket b;

    b.first = first;
    b.last = last;
    b.low = ends.low;
    b.high = ends.high;
    b.reach = b.high - b.low;
    b.low_sure = ends.low_sure;
    b.high_sure = ends.high_sure;
    b.fresh = 1;
    b.guided = b.misses = 0;
    b.guess = b.spread = -1;
    b.exponent[0] = b.exponent[1] = 0;
    b.polynomial[0] = b.polynomial[1] = REAL(NAN);
    return b;
}

/* The values first .. last - 1, from scratch: from the lowest sampled number on, which is not
   sure. */
TSVD_HD struct bracket
bracket_from_scratch(int64_t first, int64_t last, struct bracket_range range)
{
    const int64_t lowest = bracket_max(range.top - ((int64_t)SAMPLED_BINADES << R_DIGITS), 0);

    return bracket_between(first, last, bracket_within(lowest, range.top, range));
}

/* The bracket of value v alone.  It probably lies near `guess`, and within [low, high). */
TSVD_HD struct bracket
bracket_of_one(int64_t v, int64_t low, int64_t high, int64_t guess, int64_t spread,
               struct bracket_range range)
{
    struct bracket b = bracket_between(v, v + 1, bracket_within(low, high, range));

    b.guess = (real_int)bracket_min(bracket_max(guess, b.low), b.high - 1);
    b.spread = (real_int)bracket_min(spread, R_INFINITY_BITS / 4);
    b.reach = 2 * b.spread + 1; /* from one side of the guess to the other */
    b.fresh = 0;
    return b;
}

/* Around an approximation that is good to about an ulp of the largest value, and hardly ever off by
   more than HINT_ULPS such ulps. */
TSVD_HD struct bracket
bracket_around_hint(int64_t v, real hint, struct bracket_range range)
{
    const real top = r_from_bits(range.top < R_INFINITY_BITS ? range.top : R_INFINITY_BITS - 1);
    const real error = R_EPS * top, far = REAL(HINT_ULPS) * error;
    const int64_t at = r_bits(hint), spread = (int64_t)r_bits(hint + error) - at;

    return bracket_of_one(v, r_bits(r_max(hint - far, 0)), r_bits(hint + far), at, spread, range);
}

/* Around the bits that other counts found. */
TSVD_HD struct bracket
bracket_around_found(int64_t v, int64_t found, struct bracket_range range)
{
    return bracket_of_one(v, found - FOUND_SLACK, found + FOUND_SLACK, found, 0, range);
}

/* The bracket that value v starts from.
   hint         an approximation of it, or NULL
   first, last  without a hint it shares a bracket with the values first .. last - 1 */
TSVD_HD struct bracket
bracket_start(int64_t v, const real *hint, int64_t first, int64_t last, struct bracket_range range)
{
    return hint != NULL ? bracket_around_hint(v, *hint, range)
                        : bracket_from_scratch(first, last, range);
}

/* Opens a bracket below the floor, which was left for other counts: it now reaches down to zero.
   The counts before may have erred at its high end, so that it reaches up a little as well.  But
   if that is all the accuracy that is asked for, or if below there is only zero, it is closed. */
TSVD_HD void
bracket_open_down(struct bracket *b, struct bracket_range range)
{
    b->low = 0;
    b->low_sure = 1;
    if (!bracket_is_narrow(0, b->high, range.eps)) {
        b->high = (real_int)bracket_end_above(b->high, FOUND_SLACK, range.top);
        b->high_sure = b->high == range.top;
        b->reach = b->high;
    }
    b->spread = -1;
    b->fresh = 0;
}

#endif
