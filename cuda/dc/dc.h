/*
 * Divide and conquer on the device: what its kernels share.  Mirrors csrc/cpu/dc/dc.h; the layout
 * of the arrays is that of csrc/math/dc.h.
 *
 *   dc/dc.cu       the operations of the seam
 *   dc/leaves.cu   the leaves
 *   dc/deflate.cu  the index work of the merges, one block for each node
 *   dc/vectors.cu  roots and vectors
 */
#ifndef TSVDI_CUDA_DC_H
#define TSVDI_CUDA_DC_H

#include "kernels.h"

enum { RIGHT, LEFT, SIDES };

/* What kernels know of a run; all pointers are to the device. */
struct dc_device {
    int64_t n, batch;
    int64_t slots;    /* n batch */
    int64_t first, k; /* wanted */
    int64_t stride;   /* between rows of x, q and g, and stride slots between the sides */
    real *x;          /* [SIDES] vectors, by slots */
    real *q;          /* [SIDES] of a merge's M: row first + i, column first + place */
    real *g;          /* [SIDES] gathered vectors, by places */
    real *right,
        *left; /* results: of one side k columns of n for each matrix, of the other k rows */
    int lower; /* 1: the columns are the right ones; 0: the left ones */
    const real *d, *e;         /* [slots] the matrices as given */
    real *scaled_d, *scaled_e; /* [slots] the matrices, scaled */
    real *eps;                 /* [batch] eps, scaled as the matrix */
    real_int *exponent;        /* [batch] a matrix is scaled by 2^-exponent */
    int levels;                /* of the tree */
    struct dc_slots slot;
    struct dc_node *tree;
    struct dc_merge *merge;     /* of the whole forest */
    unsigned long long *failed; /* the first matrix of which QR of a leaf did not converge */
};

/* A level of the forest; `columns` are the widest node's. */
struct dc_level {
    int depth;
    int64_t nodes, columns;
};

static __device__ __forceinline__ real *
side_of(real *array, const struct dc_device &run, int side)
{
    return array + (int64_t)side * run.slots * run.stride;
}

/* One side of x, q or g, of which column c of row j is [j * stride + c], with columns numbered as
   slots are; for rows of the node's matrix. */
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

/* Cuts the next array off a piece of memory; with base NULL only counts. */
template <typename T>
static T *
cut(char *base, size_t *at, int64_t count)
{
    T *array = (T *)(base + *at);

    *at += ((size_t)count * sizeof(T) + 255) / 256 * 256;
    return array;
}

/* Bytes that the leaves of a level take on the device, at most. */
uint64_t tsvdi_cuda_leaf_bytes(int64_t leaves);

/* Each launches the kernels of the leaves, or of one step of a level's merges (enum dc_step), on
   the call's stream.  The products are those of small nodes. */
tsvd_status tsvdi_launch_leaves(struct cuda_call *call, const struct dc_device *run,
                                struct dc_level level);
tsvd_status tsvdi_launch_deflate(struct cuda_call *call, const struct dc_device *run,
                                 struct dc_level level);
tsvd_status tsvdi_launch_roots(struct cuda_call *call, const struct dc_device *run,
                               struct dc_level level);
tsvd_status tsvdi_launch_weights(struct cuda_call *call, const struct dc_device *run,
                                 struct dc_level level);
tsvd_status tsvdi_launch_factors(struct cuda_call *call, const struct dc_device *run,
                                 struct dc_level level);
tsvd_status tsvdi_launch_products(struct cuda_call *call, const struct dc_device *run,
                                  struct dc_level level);
tsvd_status tsvdi_launch_settle(struct cuda_call *call, const struct dc_device *run,
                                struct dc_level level);

/* The part of settling that works on vectors: the deflated ones move. */
tsvd_status tsvdi_launch_moves(struct cuda_call *call, const struct dc_device *run,
                               struct dc_level level);

#endif
