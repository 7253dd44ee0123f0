/*
 * Divide and conquer: the forest, the state of a run, and the rules of deflation.
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
 *
 * Forest.  A batch of matrices of one order n goes up the same tree at once.  Rows, slots and
 * columns of matrix m are numbered from m n on; in memory its rows are n numbers, which begin with
 * column m n.
 */
#ifndef TSVDI_DC_H
#define TSVDI_DC_H

#include <assert.h>

#include "math/rotation.h"

enum {
    /* Most columns of a leaf, whose SVD is made by QR.  A matrix of up to this order is a leaf.
       Static assertions give the limits where code relies on them: cpu/dc/leaves.c,
       cpu/kernels/qr_lanes.h, cuda/dc/leaf_log.h, bidiag/plan.c and below. */
    DC_LEAF_COLUMNS = 32,

    /* A left child's columns are a multiple of this, so that products start at aligned
       addresses. */
    DC_ALIGN = 8
};

static_assert((int)DC_LEAF_COLUMNS > 2 * (int)DC_ALIGN,
              "half of DC_LEAF_COLUMNS must exceed DC_ALIGN, or rounding to it empties a leaf");

struct dc_node {
    int64_t first;   /* row, column and slot */
    int64_t rows;    /* slots of values */
    int64_t columns; /* rows + 1; rows at the right end of B */
    int64_t left;    /* rows of the left child; the center is slot first + left.  -1: a leaf */
    int64_t matrix;  /* whose node it is; in the tree itself 0, */
    int64_t base;    /* and the first row, column and slot of that */
};

/* The tree of each matrix: node i has the children 2 i + 1 and 2 i + 2; level l, the root being
   level 0, has the 2^l nodes from dc_nodes_above(l) on; the leaves are level `levels`. */
struct dc_tree {
    struct dc_node *node;
    int levels;
};

/* Nodes of a tree above a level. */
TSVD_HD int64_t
dc_nodes_above(int level)
{
    return ((int64_t)1 << level) - 1;
}

/* Node `index` of a level of the forest, matrix after matrix, of order n. */
TSVD_HD struct dc_node
dc_node_at(const struct dc_node *tree, int64_t n, int level, int64_t index)
{
    const int64_t matrix = index >> level;
    struct dc_node node = tree[dc_nodes_above(level) + (index - (matrix << level))];

    node.matrix = matrix;
    node.base = matrix * n;
    node.first += node.base;
    return node;
}

/* The steps of a merge, in their order.  A back end makes them one after the other, for all nodes
   of a level or for one node. */
enum dc_step {
    /* z and what it deflates; then the lists of survivors, and of the moves that make room.  The
       vectors of what was absorbed are turned. */
    DC_DEFLATE,

    /* The roots of the secular equation. */
    DC_ROOTS,

    /* z again, from all roots. */
    DC_WEIGHTS,

    /* The factors of the products: the vectors of M, and the survivors' vectors, gathered from
       their slots. */
    DC_FACTORS,

    /* Deflated vectors move out of the new vectors' way.  Then values, ranges and order of all
       slots are those after the merge. */
    DC_SETTLE,

    /* The products, which are the new vectors. */
    DC_MULTIPLY,

    DC_STEPS
};

/* What a merge came to. */
struct dc_count {
    int64_t survivors;  /* order of the secular equation, >= 1 */
    int64_t top, dense; /* survivors whose vectors are nonzero left of the cut (up to the center's
                           column) only, and on both sides; the others right of it only */
    int64_t begin, end; /* the new vectors that are wanted: of all but a root all */
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

/* By node of the forest, the root level first. */
struct dc_merge {
    real unit;                 /* a power of two: values = unit * scaled ones */
    struct rotation null_turn; /* of X_R's center row and null row */
    struct dc_count count;
    int64_t listed;   /* entries of its list, */
    int64_t absorbed; /* those that do not survive */
    int64_t moves;
};

/* Gives each array of a forest of `slots` slots its place from `base` on, NULL to count only;
   returns the bytes. */
static inline size_t
dc_lay_out(struct dc_slots *slot, int64_t slots, void *base)
{
    enum { ALIGN = 64 };
    int64_t **const integers[] = {&slot->low,    &slot->high, &slot->order,
                                  &slot->list,   &slot->head, &slot->place,
                                  &slot->source, &slot->from, &slot->to};
    real **const reals[] = {&slot->value, &slot->z,   &slot->pole,        &slot->square,
                            &slot->base,  &slot->tau, &slot->placed_pole, &slot->placed_weight};
    const size_t length = ((size_t)slots + ALIGN - 1) / ALIGN * ALIGN;
    uintptr_t at = (uintptr_t)base;

    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        *integers[i] = (int64_t *)at;
        at += length * sizeof(int64_t);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        *reals[i] = (real *)at;
        at += length * sizeof(real);
    }
    slot->turn = (struct rotation *)at;
    at += length * sizeof(struct rotation);
    slot->deflated = (char *)at;
    at += length;
    return at - (uintptr_t)base;
}

/* Values that the merges of a forest of `batch` trees found ready. */
static inline int64_t
dc_deflated(const struct dc_tree *tree, int64_t batch, const struct dc_merge *merge)
{
    int64_t deflated = 0;

    for (int level = 0; level < tree->levels; level++) {
        for (int64_t i = 0; i < batch << level; i++, merge++) {
            deflated += dc_node_at(tree->node, 0, level, i).rows - merge->count.survivors;
        }
    }
    return deflated;
}

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

    limit.floor = REAL(DC_TOLERANCE) * (R_EPS / 2);
    limit.z = r_max(limit.floor, eps);
    limit.gap = r_max(limit.floor, 2 * eps / REAL(levels));
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

/* A step of those that turn the last of rows + 1 columns of a leaf into zero, from i = rows - 1
   with *extra = e[rows - 1] down to 0: returns the rotation of the right vectors i and `rows`,
   which becomes the null vector.  d and e [rows] become the square matrix. */
TSVD_HD struct rotation
dc_drop_step(int64_t i, real *d, real *e, real *extra)
{
    const struct rotation turn = rotation_make(d[i], *extra, &d[i]);

    if (i > 0) {
        *extra = -turn.s * e[i - 1];
        e[i - 1] *= turn.c;
    }
    return turn;
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
