/*
 * Divide and conquer: the tree, the state of a run, and the rules of deflation.
 *
 * Source: Gu & Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM J. Matrix
 * Anal. Appl. 16 (1995).  A node stands for `rows` consecutive rows of B and the columns that they
 * reach, one more than rows but at the right end of B:
 *
 *     B_node = ( B_1            0   )   first .. first + left - 1
 *              ( 0 alpha  beta  0   )   the center row, first + left
 *              ( 0              B_2 )
 *
 * The SVDs of B_1 and B_2 turn it into M = e_0 z^T + diag(values), z being alpha times the last
 * components of B_1's right vectors and beta times the first of B_2's; the singular values of M
 * are found by its secular equation (secular.h).
 *
 * Slots.  Slot j holds one value and two vectors, row j of the n x n arrays X_R and X_L.  Node
 * blocks tile the diagonal of both arrays: rows and columns first .. first + columns - 1.  The
 * slot first + rows of X_R holds the node's null vector, if it has one: at the parent that is the
 * center (of the left child) or again the null vector (of the right one).  Row j is nonzero in
 * columns low .. high - 1 only, and elsewhere undefined: a deflated vector is neither copied nor
 * padded with zeros while it goes up the tree.
 */
#ifndef TSVDI_DC_H
#define TSVDI_DC_H

#include "crossover.h"
#include "rotation.h"

/* Left children have a multiple of so many columns, so that products start at aligned
   addresses. */
enum { DC_ALIGN = 8 };

struct dc_node {
    int64_t first;   /* row, column and slot */
    int64_t rows;    /* slots of values */
    int64_t columns; /* rows + 1; rows at the right end of B */
    int64_t left;    /* rows of the left child; the center is slot first + left.  -1: a leaf */
};

/* The tree: node i has the children 2 i + 1 and 2 i + 2; level l, the root being level 0, has
   the 2^l nodes from 2^l - 1 on; the leaves are level `levels`. */
struct dc_tree {
    struct dc_node *node;
    int levels;
};

/* What a merge came to. */
struct dc_count {
    int64_t survivors;  /* order of the secular equation, >= 1 */
    int64_t top, dense; /* survivors whose vectors are nonzero left of the cut (up to the center's
                           column) only, and on both sides; the others right of it only */
};

/* Arrays of n entries.  The first group is indexed by slots, the others by a node's `first` plus
   a rank.  An entry of order, list, source, from and to is a slot. */
struct dc_slots {
    real *value;
    int64_t *low, *high;
    real *z;        /* scaled by the node's unit, as are pole, square, base, tau and placed_* */
    char *deflated; /* by the merge under way */
    int64_t *order; /* a node's slots, values ascending */

    int64_t *list;         /* center, then slots with z above the threshold, values ascending */
    int64_t *head;         /* of list entry i: the entry that absorbed it; i itself: survives */
    struct rotation *turn; /* by which it was absorbed */

    real *pole, *square; /* of survivor i, ascending: d_i and z_i^2 */
    int64_t *place;      /* its column in the products: top, then dense, then bottom ones */
    real *base, *tau;    /* root i, see secular.h */

    int64_t *source;     /* of the survivor at place p, */
    real *placed_pole;   /* its pole, */
    real *placed_weight; /* and the z for which the computed roots are exact */

    int64_t *from, *to; /* moves of deflated vectors out of the new vectors' way */
};

/* By node of the tree. */
struct dc_merge {
    real unit;                 /* a power of two: values = unit * scaled ones */
    struct rotation null_turn; /* of X_R's center row and null row */
    struct dc_count count;
    int64_t listed;   /* entries of its list, */
    int64_t absorbed; /* those that do not survive */
    int64_t moves;
};

/* Deflation tolerance in units of eps / 2 = u (LAPACK's since 3.11; 8 before). */
enum { DC_TOLERANCE = 64 };

/* Candidates t, t / 2, ... for the threshold on |z|: the last, t / 1024, is at most t / sqrt(n) up
   to n = 2^20. */
enum { DC_THRESHOLDS = 11 };

/* How much a merge may perturb its scaled M. */
struct dc_limits {
    real z;     /* norm of what is dropped from z */
    real gap;   /* spread of values that are taken to be equal */
    real floor; /* least |z_0| */
};

/* The exponent of a node's unit: its largest entry comes to lie in [1, 2), unless it is so tiny
   beside B, whose largest is there, that it may as well be zero. */
TSVD_HD int
dc_exponent(real largest)
{
    real_int exponent;

    (void)r_split(largest, &exponent);
    return (int)(largest == 0 || exponent < -R_BIAS / 2 ? -R_BIAS / 2 : exponent);
}

/*
 * eps      what the caller allows B to be perturbed, scaled; 0: full accuracy
 * levels   of the tree
 *
 * Each row of B is the center of one merge at most, so what is dropped from z changes any entry
 * of B by z at most once.  Equal values change it by `gap` on each level.
 */
TSVD_HD struct dc_limits
dc_limits_for(real eps, int levels)
{
    struct dc_limits limit;

    limit.floor = R(DC_TOLERANCE) * (R_EPS / 2);
    limit.z = r_max(limit.floor, eps);
    limit.gap = r_max(limit.floor, 2 * eps / R(levels));
    return limit;
}

/* Candidate c for the threshold. */
TSVD_HD real
dc_candidate(struct dc_limits limit, int c)
{
    return limit.z * r_pow2(-c);
}

/* The largest candidate t such that the entries |z_j| <= t have a norm of limit.z at most;
   dropped[c] is the sum of the squares of those below candidate c, in units of limit.z. */
TSVD_HD real
dc_threshold(struct dc_limits limit, const real *dropped)
{
    int c = 0;

    while (c < DC_THRESHOLDS - 1 && !(dropped[c] <= 1)) {
        c++;
    }
    return dc_candidate(limit, c);
}

/* Turns the last of rows + 1 columns of a leaf into zero, from the bottom up: turn[i] of the right
   vectors i and `rows`, which becomes the null vector, to be applied in descending order of i.
   d and e [rows] become the square matrix. */
TSVD_HD void
dc_drop_last_column(int64_t rows, real *d, real *e, struct rotation *turn)
{
    real extra = e[rows - 1];

    for (int64_t i = rows - 1; i >= 0; i--) {
        turn[i] = rotation_make(d[i], extra, &d[i]);
        if (i > 0) {
            extra = -turn[i].s * e[i - 1];
            e[i - 1] *= turn[i].c;
        }
    }
}

/* Lets `head` absorb an entry of value d if the two are taken to be equal: the rotation of their
   vectors, head first, leaves all of their weight with it. */
TSVD_HD int
dc_absorb(struct dc_limits limit, real head, real d, real *z_head, real *z, struct rotation *turn)
{
    if (!(d - head <= limit.gap)) {
        return 0;
    }
    *turn = rotation_make(*z_head, *z, z_head);
    *z = 0;
    return 1;
}

/* Where the vectors of slot j, of columns low .. high - 1, belong in products that are cut behind
   the center's column: 0 top, 1 dense, 2 bottom.  The center itself is dense. */
TSVD_HD int
dc_group(int64_t low, int64_t high, int64_t center, int64_t j)
{
    return j == center ? 1 : low > center ? 2 : high <= center + 1 ? 0 : 1;
}

/* The share of all work that is done before a level: that of a level is to that of all below it as
   3 to 1, and the values come at the end. */
TSVD_HD double
dc_done(int level)
{
    return 0.9 / (double)((int64_t)1 << 2 * (level + 1));
}

#endif
