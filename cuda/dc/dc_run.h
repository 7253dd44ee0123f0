/*
 * Divide and conquer on the device: what its kernels share.  Mirrors csrc/cpu/dc/dc_run.h.  The
 * layout of the arrays is that of csrc/math/dc.h.
 *
 *   dc/dc.cu       the operations of the seam
 *   dc/leaves.cu   the leaves; dc/leaf_log.h and dc/half_tangents.h belong to it
 *   dc/deflate.cu  the merges' index work, with a block for each node
 *   dc/vectors.cu  the merges' roots and vectors
 */
#ifndef TSVDI_CUDA_DC_DC_RUN_H
#define TSVDI_CUDA_DC_DC_RUN_H

#include "kernels.h"

enum { RIGHT, LEFT, SIDES };

/* A run as kernels see it.  All pointers are to device memory. */
struct dc_device {
    int64_t n, batch;
    int64_t slots;             /* n batch */
    int64_t first, k;          /* of each matrix the values first .. first + k - 1 are wanted */
    int64_t stride;            /* numbers between rows of x, q and g */
    real *x;                   /* [SIDES][slots stride] vectors: row j is that of slot j */
    real *q;                   /* the same of a merge's M: row first + i, column first + place */
    real *g;                   /* the same of survivors, gathered: row first + place */
    real *right, *left;        /* results of each matrix: k rows of n, or k columns */
    int lower;                 /* whether the right ones are the columns; 0: the left ones are */
    const real *d, *e;         /* [slots] as they are given */
    real *scaled_d, *scaled_e; /* [slots] scaled */
    real *eps;                 /* [batch] the job's eps, scaled as each matrix is */
    real_int *exponent;        /* [batch] 2^-exponent scales a matrix */
    int levels;                /* of the tree */
    struct dc_slots slot;
    struct dc_node *tree;       /* of each matrix */
    struct dc_merge *merge;     /* of the whole forest */
    unsigned long long *failed; /* the first matrix with a leaf for which QR did not converge */
};

/* A level of the forest. */
struct dc_level {
    int depth;       /* 0: the roots */
    int64_t nodes;   /* of all matrices */
    int64_t columns; /* of the widest node */
};

static __host__ __device__ __forceinline__ real *
side_of(real *array, const struct dc_device &run, int side)
{
    return array + (int64_t)side * run.slots * run.stride;
}

/* One side of x, q or g, for rows of the node's matrix.  Entry [j * stride + c] is column c of row
   j, where columns are numbered as slots are. */
static __device__ __forceinline__ real *
columns_of(real *array, const struct dc_device &run, int side, const struct dc_node &node)
{
    return side_of(array, run, side) - node.base;
}

static __device__ __forceinline__ struct dc_node
node_at(const struct dc_device &run, int depth, int64_t index)
{
    return dc_node_at(run.tree, run.n, depth, index);
}

static __device__ __forceinline__ struct dc_merge *
merge_at(const struct dc_device &run, int depth, int64_t index)
{
    return run.merge + run.batch * dc_nodes_above(depth) + index;
}

/* Bytes that the leaves of a level take on the device, at most. */
uint64_t tsvdi_cuda_dc_leaf_bytes(int64_t leaves);

/* Each launches the kernels of the leaves, or of one step of a level's merges (enum dc_step), on
   the call's stream.  The products are those of nodes with up to `most` survivors, and of up to
   `rows` rows. */
tsvd_status tsvdi_cuda_dc_leaves(struct tsvd_context *ctx, struct dc_job *job,
                                 const struct dc_device *run, struct dc_level level);
tsvd_status tsvdi_cuda_dc_deflate(struct cuda_call *call, const struct dc_device *run,
                                  struct dc_level level);
tsvd_status tsvdi_cuda_dc_roots(struct cuda_call *call, const struct dc_device *run,
                                struct dc_level level);
tsvd_status tsvdi_cuda_dc_weights(struct cuda_call *call, const struct dc_device *run,
                                  struct dc_level level);
tsvd_status tsvdi_cuda_dc_factors(struct cuda_call *call, const struct dc_device *run,
                                  struct dc_level level);
tsvd_status tsvdi_cuda_dc_products(struct cuda_call *call, const struct dc_device *run,
                                   struct dc_level level, int64_t most, int64_t rows);
tsvd_status tsvdi_cuda_dc_settle(struct cuda_call *call, const struct dc_device *run,
                                 struct dc_level level);

/* The part of settling that works on vectors: the deflated ones move. */
tsvd_status tsvdi_cuda_dc_moves(struct cuda_call *call, const struct dc_device *run,
                                struct dc_level level);

#endif
