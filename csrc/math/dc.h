/*
 * Divide and conquer: the forest, the state of a run, and the rules of deflation.
 *
 * Source: Gu & Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM J. Matrix
 * Anal. Appl. 16 (1995).  A node stands for `rows` consecutive rows of B and the columns that they
 * reach: one more than rows, except at the right end of B.
 *
 *     B_node = ( B_1            0   )   first .. first + left - 1
 *              ( 0 alpha  beta  0   )   the center row, first + left
 *              ( 0              B_2 )
 *
 * The SVDs of B_1 and B_2 turn it into M = e_0 z^T + diag(values).  z consists of alpha times the
 * last components of B_1's right vectors, and beta times the first components of B_2's.  The
 * singular values of M are found by its secular equation (secular.h).
 *
 * Slots.  Slot j holds one value and two vectors, row j of the n x n arrays X_R and X_L.  Node
 * blocks tile the diagonal of both arrays: rows and columns first .. first + columns - 1.  The
 * slot first + rows of X_R holds the node's null vector, if it has one.  At the parent, the left
 * child's null vector is in the center's slot, and the right child's is again the null vector.
 * Row j is nonzero in columns low .. high - 1 only, and elsewhere undefined: a deflated vector is
 * neither copied nor padded with zeros while it goes up the tree.
 *
 * Forest.  A batch of matrices of one order n goes up the same tree at once.  Rows, slots and
 * columns of matrix m are numbered from m n on.  In memory each of its rows has n numbers, which
 * begin with column m n.
 */
#ifndef TSVDI_DC_H
#define TSVDI_DC_H

#include <assert.h>

#include "math/rotation.h"

enum {
    /* Most columns of a leaf, whose SVD is made by QR.  A matrix of up to this order is a leaf.  A
       back end may want smaller leaves for larger matrices (dc_ops.leaf_columns()).  Static
       assertions give the limits where code relies on them: cpu/dc/leaves.c,
       cpu/kernels/qr_lanes.h, cuda/dc/leaf_log.h, bidiag/plan.c and below. */
    DC_LEAF_COLUMNS = 32,

    /* The least that a back end may have for that. */
    DC_SMALL_LEAF_COLUMNS = 24,

    /* A left child's columns are a multiple of this, so that products start at aligned
       addresses. */
    DC_ALIGN = 8
};

static_assert(
    (int)DC_SMALL_LEAF_COLUMNS > 2 * (int)DC_ALIGN,
    "half of the columns of a leaf must exceed DC_ALIGN, or rounding to it empties a leaf");

struct dc_node {
    int64_t first;   /* its first row, column and slot */
    int64_t rows;    /* its rows, and slots of values */
    int64_t columns; /* rows + 1, or rows at the right end of B */
    int64_t left;    /* rows of the left child; the center is slot first + left.  -1: a leaf */
    int64_t matrix;  /* the matrix whose node it is; in the tree itself 0 */
    int64_t base;    /* first row, column and slot of that matrix; in the tree itself 0 */
};

/* The tree of each matrix.  Node i has the children 2 i + 1 and 2 i + 2.  The root is level 0;
   level l has the 2^l nodes from dc_nodes_above(l) on; the leaves are level `levels`. */
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

/* How often n columns are halved until they fit a leaf of `leaf` columns.  Rounding to DC_ALIGN may
   ask for one level more. */
TSVD_HD int
dc_halvings(int64_t n, int64_t leaf)
{
    int levels = 0;

    while ((leaf << levels) < n) {
        levels++;
    }
    return levels;
}

/* Node `index` of a level of the forest, which has the nodes of one matrix after another's.  n: the
   order of the matrices. */
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
       vectors of absorbed slots are rotated. */
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

/* What a merge came to.  The products are cut after the center's column. */
struct dc_count {
    int64_t survivors; /* order of the secular equation, >= 1 */
    int64_t top;       /* survivors whose vectors are nonzero left of the cut only */
    int64_t dense;     /* survivors whose vectors are nonzero on both sides of it */
    int64_t begin;     /* the new vectors begin .. end - 1 are wanted: all, except of a root */
    int64_t end;
};

/* Arrays of n entries for each matrix. */
struct dc_slots {
    /* Indexed by slot. */
    real *value;
    int64_t *low, *high; /* the columns low .. high - 1 in which its vectors are nonzero */
    real *z;        /* of the merge, in the node's unit, as are pole, square, base, tau, placed_pole
                       and placed_weight */
    char *deflated; /* whether the merge under way deflates it */

    /* Indexed by a node's `first` plus a rank i. */
    int64_t *order;        /* the node's slots, values ascending */
    int64_t *list;         /* slots: the center, then those with |z| above the threshold, values
                              ascending */
    int64_t *head;         /* the list entry that absorbed list entry i; i itself if i survives */
    struct rotation *turn; /* the rotation by which list entry i was absorbed */
    real *pole;            /* d_i of survivor i, ascending */
    real *square;          /* z_i^2 of survivor i */
    int64_t *place;        /* column of survivor i in the products: top, then dense, then bottom */
    real *base, *tau;      /* root i, see secular.h */

    /* Indexed by a node's `first` plus a place p in the products. */
    int64_t *source;     /* the survivor's slot */
    real *placed_pole;   /* its pole */
    real *placed_weight; /* its z; later the z for which the computed roots are exact */

    /* Indexed by a node's `first` plus the number of a move.  Deflated vectors move out of the new
       vectors' way. */
    int64_t *from, *to; /* slots */
};

/* The merge of a node; the nodes of the forest follow one another, the root level first. */
struct dc_merge {
    real unit;                 /* a power of two: values = unit * scaled values */
    struct rotation null_turn; /* turns X_R's center row and null row */
    struct dc_count count;
    int64_t listed;   /* entries of its list */
    int64_t absorbed; /* list entries that do not survive */
    int64_t moves;    /* deflated vectors that move */
};

/* Gives each array of a forest of `slots` slots its place from `base` on.  Returns the bytes.
   base = NULL: only counts them. */
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

/* How many values the merges of a forest of `batch` trees deflated. */
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

/* The most that one deflation may perturb the scaled M by at full accuracy, in units of u = eps /
   2; for z, all that is dropped together.  LAPACK has the
   same since 3.11; it had 8 before. */
enum { DC_TOLERANCE = 64 };

/* A merge of r rows spends at most r eps / DC_THRIFT of the scaled M's norm, in the Frobenius norm,
   for each of three things: what is dropped from z, what is added to z_0, and values that are taken
   to be equal. */
enum { DC_THRIFT = 4 };

/* Number of candidates t, t / 2, ... for the threshold on |z|.  The last, t / 1024, is at most
   t / sqrt(n) up to n = 2^20. */
enum { DC_THRESHOLDS = 11 };

/* How much a merge may perturb its scaled M. */
struct dc_limits {
    real z;      /* bound on the norm of what is dropped from z */
    real floor;  /* the least |z_0| */
    real gap;    /* a list entry this close to the one before may be absorbed */
    real equal;  /* values no further apart than this are taken to be equal at no charge */
    real budget; /* bound on the sum of the squares of all other absorptions' errors */
};

/* What the entries of a list may spend on being absorbed.  The budget is shared out evenly among
   those that are close to the entry before.  In a run of such entries, one may spend what those
   before it have left. */
struct dc_purse {
    real share; /* of an entry */
    real left;  /* what the run has left */
};

/* The exponent of a node's unit, which brings its largest entry into [1, 2).  B's largest entry
   lies there.  A node whose entries are so tiny beside B's that they may as well be zero gets the
   least unit. */
TSVD_HD int
dc_exponent(real largest)
{
    real_int exponent;

    (void)r_split(largest, &exponent);
    return (int)(largest == 0 || exponent < -R_BIAS / 2 ? -R_BIAS / 2 : exponent);
}

/*
 * The limits of a merge.
 *
 * eps      how far the caller allows B to be perturbed, scaled; 0: full accuracy
 * levels   of the tree
 * rows     of the node
 *
 * Full accuracy.  The errors of a level's nodes are in separate blocks of B, and a node's unit is
 * at most the norm of its block.  So a level with nodes of r rows changes B by at most r eps /
 * DC_THRIFT of ||B||_F for each of the three things.  r halves from level to level, and n + n / 2 +
 * n / 4 + ... < 2 n.  Values taken to be equal add up to 2 n eps / DC_THRIFT at most.  Each row of
 * B is the center of one merge at most, so what changes z stands in separate rows, and adds up in
 * squares to sqrt(4 / 3) n eps / DC_THRIFT at most.  What is dropped from z and what is added to
 * z_0 stand in separate columns: together sqrt(8 / 3) n eps / DC_THRIFT.  All in all that is less
 * than n eps ||B||_F, half of what the residual may be.  In large nodes DC_TOLERANCE bounds each
 * deflation below that.  These bounds are absolute; tiny values keep their digits as bisection
 * refines all values in the end.
 *
 * eps.  Dropping from z changes any entry of B at most once, by limit.z.  Taking values to be equal
 * at no charge changes it by limit.equal on each level.
 */
TSVD_HD struct dc_limits
dc_limits_for(real eps, int levels, int64_t rows)
{
    const real most = REAL(DC_TOLERANCE) * (R_EPS / 2),
               spent = REAL(rows) / REAL(DC_THRIFT) * R_EPS;
    struct dc_limits limit;

    limit.floor = r_min(spent, most);
    limit.z = r_max(limit.floor, eps);
    limit.equal = 2 * eps / REAL(levels);
    limit.gap = r_max(most, limit.equal);
    limit.budget = spent * spent;
    return limit;
}

/* Candidate c for the threshold. */
TSVD_HD real
dc_candidate(struct dc_limits limit, int c)
{
    return limit.z * r_pow2(-c);
}

/* The largest candidate t such that the entries |z_j| <= t have a norm of limit.z at most.
   dropped[c]: the sum of the squares of the entries up to candidate c, in units of limit.z. */
TSVD_HD real
dc_threshold(struct dc_limits limit, const real *dropped)
{
    int c = 0;

    while (c < DC_THRESHOLDS - 1 && !(dropped[c] <= 1)) {
        c++;
    }
    return dc_candidate(limit, c);
}

/* Whether a list entry of value d may be absorbed, by the value of the entry before. */
TSVD_HD int
dc_close(struct dc_limits limit, real before, real d)
{
    return d - before <= limit.gap;
}

/* The purse of a list in which `close` entries are close to the entry before. */
TSVD_HD struct dc_purse
dc_fill_purse(struct dc_limits limit, int64_t close)
{
    const struct dc_purse purse = {limit.budget / r_max(REAL(close), 1), 0};

    return purse;
}

/*
 * Lets the entry of value `head` absorb one of value d, which is close to the entry before it, if
 * the two may be taken to be equal.  *turn: the rotation of their vectors, head's first; it leaves
 * all of their weight with head.  Returns whether it did.
 *
 * The rotation turns the diagonal (head, d) into another matrix, which is taken to be the same.
 * With g = d - head the difference is g s (s c; c -s), whose square is 2 (g s)^2.  It is no more
 * where head is the center, whose left vector does not turn.  The errors of a run's absorptions add
 * up to no more than the sum of their squares: the inner product of two, that of entry j and a
 * later one k, is -g_j g_k (s_j c .. c s_k)^2 <= 0.
 */
TSVD_HD int
dc_absorb(struct dc_limits limit, struct dc_purse *purse, real head, real d, real *z_head, real *z,
          struct rotation *turn)
{
    const real gap = d - head;
    real norm;
    const struct rotation q = rotation_make(*z_head, *z, &norm);

    purse->left += purse->share;
    if (!(gap <= limit.equal)) {
        const real square = 2 * (gap * q.s) * (gap * q.s);

        if (!(square <= purse->left)) {
            return 0;
        }
        purse->left -= square;
    }
    *turn = rotation_unit(q);
    *z_head = norm;
    *z = 0;
    return 1;
}

/* The group in the products of slot j, whose vectors are nonzero in columns low .. high - 1: 0 top,
   1 dense, 2 bottom (see struct dc_count).  The center itself is dense. */
TSVD_HD int
dc_group(int64_t low, int64_t high, int64_t center, int64_t j)
{
    return j == center ? 1 : low > center ? 2 : high <= center + 1 ? 0 : 1;
}

/* The share of all work that is done before a level.  A level's work is to that of all levels below
   it as 3 to 1; a tenth of all work is left for the values at the end. */
TSVD_HD double
dc_done(int level)
{
    return 0.9 / (double)((int64_t)1 << 2 * (level + 1));
}

#endif
