/*
 * Divide and conquer on the device: what its kernels share.  Mirrors csrc/cpu_dc.c; the layout of
 * the arrays is that of csrc/dc.h.  dc.cu holds the operations of the seam, dc_leaves.cu the
 * leaves, dc_deflate.cu the merges' index work, one block a node, dc_vectors.cu roots and vectors.
 */
#ifndef TSVDI_CUDA_DC_H
#define TSVDI_CUDA_DC_H

#include "kernels.h"

#define tsvdi_launch_leaves TSVD_T(tsvdi_launch_leaves)
#define tsvdi_launch_deflate TSVD_T(tsvdi_launch_deflate)
#define tsvdi_launch_roots TSVD_T(tsvdi_launch_roots)
#define tsvdi_launch_factors TSVD_T(tsvdi_launch_factors)
#define tsvdi_launch_products TSVD_T(tsvdi_launch_products)
#define tsvdi_launch_settle TSVD_T(tsvdi_launch_settle)

enum { RIGHT, LEFT, SIDES };

/* What kernels know of a run; all pointers are to the device. */
struct dc_device {
    int64_t n;
    int64_t stride; /* between rows of x, q and g, and stride n between the sides */
    real *x;        /* [SIDES] vectors, by slots */
    real *q;        /* [SIDES] of a merge's M: row first + i, column first + place */
    real *g;        /* [SIDES] gathered vectors, by places */
    const real *d, *e;
    real eps;
    int levels;
    struct dc_slots slot;
    const struct dc_node *node; /* of the whole tree */
    struct dc_merge *merge;     /* beside each */
    int *exhausted;             /* set where QR of a leaf did not converge */
};

/* The nodes of a level, and the columns of the widest. */
struct dc_level {
    int64_t begin, nodes, columns;
};

static __device__ __forceinline__ real *
side_of(real *array, const struct dc_device &run, int side)
{
    return array + (int64_t)side * run.n * run.stride;
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

/* Each launches the kernels of one step of a level on the call's stream. */
tsvd_status tsvdi_launch_leaves(struct cuda_call *call, const struct dc_device *run,
                                struct dc_level level);
tsvd_status tsvdi_launch_deflate(struct cuda_call *call, const struct dc_device *run,
                                 struct dc_level level);
tsvd_status tsvdi_launch_roots(struct cuda_call *call, const struct dc_device *run,
                               struct dc_level level);
tsvd_status tsvdi_launch_factors(struct cuda_call *call, const struct dc_device *run,
                                 struct dc_level level);
tsvd_status tsvdi_launch_products(struct cuda_call *call, const struct dc_device *run,
                                  struct dc_level level);
tsvd_status tsvdi_launch_settle(struct cuda_call *call, const struct dc_device *run,
                                struct dc_level level);

#endif
