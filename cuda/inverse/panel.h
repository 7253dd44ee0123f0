/*
 * Panels: columns of a large matrix that are eliminated by one kernel.  What its two forms share.
 *
 *   inverse/panel_cluster.cuh   by a cluster of blocks, in their registers
 *   inverse/panel_grid.cuh      by all multiprocessors, in shared memory: without such clusters
 */
#ifndef TSVDI_CUDA_INVERSE_PANEL_H
#define TSVDI_CUDA_INVERSE_PANEL_H

#include "inverse/inverse_run.h"
#include "math/growth.h"

/* How a matrix is shared out. */
struct panel_sharing {
    bool clusters; /* which of the forms */
    int width;     /* most columns of a panel */
    int rows;      /* of a block; the last ones may have fewer, or none */
    int blocks;    /* for each matrix */
    int matrices;  /* worked on at once, at most */
};

/* A panel of each matrix under work: number blockIdx.y.  All arrays are device memory. */
struct inverse_panel {
    int64_t n, begin;
    int width, rows, blocks; /* columns of this one; the rest as above */
    scalar *w;               /* [][n][n] */
    int *p, *step;           /* [][n] pivots; the steps that took the rows, below 0: none yet */
    char *singular, *grown;  /* [] 1: a pivot is zero; one is large */
    struct message *mail;    /* panel_grid.cuh */
};

#endif
