/*
 * Divide and conquer on the CPU: what its files share.  Mirrors cuda/dc/dc_run.h.
 *
 *   cpu/dc/dc.c       the operations of the seam, and the tasks for threads
 *   cpu/dc/leaves.c   the leaves
 *   cpu/dc/deflate.c  a merge's index work
 *   cpu/dc/vectors.c  a merge's roots and vectors
 *   cpu/dc/results.c  the finished vectors
 */
#ifndef TSVDI_CPU_DC_DC_RUN_H
#define TSVDI_CPU_DC_DC_RUN_H

#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"
#include "host/host.h"

enum { RIGHT, LEFT, SIDES };

/* Numbers of a thread's workspace for products. */
enum { PANEL = CPU_PRODUCT_TERMS * PRODUCT_WIDTH };

/* What a run holds. */
struct cpu_dc {
    struct tsvd_context *ctx;
    struct dc_job *job;
    real *d, *e;           /* [slots] the matrices, scaled */
    real *eps;             /* [batch] the job's eps, scaled as each matrix is */
    int64_t stride;        /* numbers between rows of x and q */
    real *x[SIDES];        /* vectors: row j is that of slot j */
    real *q[SIDES];        /* vectors of a merge's M: row first + i, column first + place */
    real *gathered[SIDES]; /* survivors' vectors: row first + place, n numbers a row */
    void *memory;          /* memory of x, q and gathered */
    void *arrays;          /* memory of d, e, eps and slot */
    struct dc_slots slot;
    struct dc_merge *merges; /* of the whole forest */
    int64_t group_leaves;    /* leaves that a thread solves together */
    int level;               /* the level under work */
    int64_t nodes;           /* nodes of that level */
    struct dc_merge *merge;  /* [nodes] their merges */
    enum dc_step step;       /* the step under work, where the threads share it */
    int64_t *tasks;          /* [nodes + 1] the first task of each node in that step */
    real *panels;            /* [threads PANEL] workspace of products for each thread */
};

/* The most leaves that are solved together. */
int64_t tsvdi_cpu_dc_leaf_group_size(void);

/* Takes workspace for the leaves of each thread of a context, once.  The context keeps it until it
   is closed. */
tsvd_status tsvdi_cpu_dc_leaves_begin(struct tsvd_context *ctx);

/* Bytes of that workspace for one thread. */
size_t tsvdi_cpu_dc_leaf_bytes(void);

/* The SVDs of the leaves begin .. begin + count - 1: values, vectors, ranges and order of their
   slots. */
tsvd_status tsvdi_cpu_dc_solve_leaves(const struct cpu_dc *run, int worker, int64_t begin,
                                      int64_t count);

/* Writes to s approximations of the values of `count` matrices of order n, those of each matrix in
   descending order.  The matrices follow one another as in struct chunk; n is at most a leaf's. */
void tsvdi_cpu_dc_leaf_values(struct tsvd_context *ctx, int64_t n, int64_t count, const real *d,
                              const real *e, real *s);

/* A part of a step of a node's merge. */
struct part {
    struct dc_node node;
    struct dc_merge *merge;
    int64_t begin, end; /* the survivors begin .. end - 1, or blocks of the products */
};

/* Node `index` of the level under work. */
static inline struct dc_node
node_at(const struct cpu_dc *run, int64_t index)
{
    return dc_node_at(run->job->tree.node, run->job->n, run->level, index);
}

/* The vector of slot j, to be indexed with a column number of the forest.  node: any node of the
   matrix. */
static inline real *
row_of(const struct cpu_dc *run, int side, const struct dc_node *node, int64_t j)
{
    return run->x[side] + (j * run->stride - node->base);
}

/* The slot of rank `rank` among the wanted values of a matrix, the largest first. */
static inline int64_t
slot_of(const struct cpu_dc *run, int64_t matrix, int64_t rank)
{
    const struct dc_job *job = run->job;

    return run->slot.order[(matrix + 1) * job->n - 1 - job->first - rank];
}

/* DC_DEFLATE of a node. */
void tsvdi_cpu_dc_deflate(const struct cpu_dc *run, const struct dc_node *node,
                          struct dc_merge *merge);

/* DC_SETTLE of a node. */
void tsvdi_cpu_dc_settle(const struct cpu_dc *run, const struct dc_node *node,
                         struct dc_merge *merge);

/* DC_ROOTS, DC_WEIGHTS and DC_FACTORS for some survivors.  The products are x = q gathered. */
void tsvdi_cpu_dc_solve_roots(const struct cpu_dc *run, struct part part);
void tsvdi_cpu_dc_find_weights(const struct cpu_dc *run, struct part part);
void tsvdi_cpu_dc_fill_factors(const struct cpu_dc *run, struct part part);

/* How many blocks a node's products have; and DC_MULTIPLY for one block, with a thread's workspace
   panel[PANEL]. */
int64_t tsvdi_cpu_dc_count_blocks(const struct dc_node *node, struct dc_count count);
void tsvdi_cpu_dc_multiply_block(const struct cpu_dc *run, const struct dc_node *node,
                                 struct dc_count count, int64_t index, real *panel);

/* Writes the wanted vectors of ranks begin .. end - 1 of a matrix, CPU_STORE_RANKS at most, to its
   results, with the signs that order() gives. */
void tsvdi_cpu_dc_store(const struct cpu_dc *run, int64_t matrix, int64_t begin, int64_t end);

#endif
