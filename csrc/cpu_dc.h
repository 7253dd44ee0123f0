/*
 * Divide and conquer on the CPU: what its files share.  cpu_dc.c holds the operations of the seam
 * and the tasks for threads, cpu_leaves.c the leaves, cpu_dc_deflate.c a merge's index work,
 * cpu_dc_vectors.c its roots and vectors.  Mirrors cuda/dc.h.
 */
#ifndef TSVDI_CPU_DC_H
#define TSVDI_CPU_DC_H

#include "cpu_kernels.h"
#include "host.h"

#define tsvdi_cpu_leaf_group_bytes TSVD_T(tsvdi_cpu_leaf_group_bytes)
#define tsvdi_cpu_leaf_group_size TSVD_T(tsvdi_cpu_leaf_group_size)
#define tsvdi_cpu_solve_leaves TSVD_T(tsvdi_cpu_solve_leaves)
#define tsvdi_cpu_store TSVD_T(tsvdi_cpu_store)
#define tsvdi_cpu_deflate TSVD_T(tsvdi_cpu_deflate)
#define tsvdi_cpu_settle TSVD_T(tsvdi_cpu_settle)
#define tsvdi_cpu_solve_roots TSVD_T(tsvdi_cpu_solve_roots)
#define tsvdi_cpu_find_weights TSVD_T(tsvdi_cpu_find_weights)
#define tsvdi_cpu_fill_factors TSVD_T(tsvdi_cpu_fill_factors)
#define tsvdi_cpu_count_blocks TSVD_T(tsvdi_cpu_count_blocks)
#define tsvdi_cpu_multiply_block TSVD_T(tsvdi_cpu_multiply_block)

enum { RIGHT, LEFT, SIDES };

/* What a run holds. */
struct dc_run {
    struct tsvd_context *ctx;
    struct dc_job *job;
    int64_t stride;             /* between rows of x and q */
    real *x[SIDES];             /* vectors, by slots */
    real *q[SIDES];             /* of a merge's M: row first + i, column first + place */
    real *gathered[SIDES];      /* by places, n numbers a row */
    struct dc_slots slot;       /* one piece of memory, from slot.low on */
    char *groups;               /* of leaves: workspace for each thread, */
    int64_t group_leaves;       /* and how many one solves together */
    int level;                  /* under work: */
    const struct dc_node *node; /* its nodes, */
    int64_t nodes;
    struct dc_merge *merge; /* [nodes] their merges, */
    int64_t *tasks;         /* [nodes + 1] and where their tasks begin */
};

/* A leaf: its first slot (and row of d and e), its first column. */
struct cpu_leaf {
    int64_t slot, column;
    int64_t rows, columns;
};

/* Workspace for the leaves that are solved together, and how many those are at most. */
struct leaf_group;
size_t tsvdi_cpu_leaf_group_bytes(void);
int64_t tsvdi_cpu_leaf_group_size(void);

/* The SVDs of a group's leaves: values, vectors, ranges and order of their slots. */
tsvd_status tsvdi_cpu_solve_leaves(const struct dc_run *run, struct leaf_group *group,
                                   int64_t count, const struct cpu_leaf *leaf);

/* Some survivors of a node: begin .. end - 1. */
struct part {
    const struct dc_node *node;
    const struct dc_merge *merge;
    int64_t begin, end;
};

/* z, deflation, and all index lists of a node's merge; turns the vectors of what is absorbed. */
void tsvdi_cpu_deflate(const struct dc_run *run, const struct dc_node *node,
                       struct dc_merge *merge);

/* Moves deflated vectors, whose rows must have been gathered where survivors were; then values,
   ranges and order of the node's slots. */
void tsvdi_cpu_settle(const struct dc_run *run, const struct dc_node *node,
                      const struct dc_merge *merge);

/* The roots of the secular equation; z again, from all roots; rows of the factors of x = q g. */
void tsvdi_cpu_solve_roots(const struct dc_run *run, struct part part);
void tsvdi_cpu_find_weights(const struct dc_run *run, struct part part);
void tsvdi_cpu_fill_factors(const struct dc_run *run, struct part part);

/* Blocks of a node's products x = q g, and one of them. */
int64_t tsvdi_cpu_count_blocks(const struct dc_node *node, struct dc_count count);
void tsvdi_cpu_multiply_block(const struct dc_run *run, const struct dc_node *node,
                              struct dc_count count, int64_t index);

/* Vectors that one call stores at most. */
enum { CPU_STORE_RANKS = 16 };

/* The vectors of a matrix of ranks begin .. end - 1, the largest value being rank 0, with the signs
   that order() gives, to its results; order: its slots, values ascending. */
void tsvdi_cpu_store(const struct dc_run *run, struct vectors right, struct vectors left,
                     const int64_t *order, int64_t begin, int64_t end);

#endif
