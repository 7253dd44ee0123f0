/*
 * Constants of the CUDA back end, with the measurements that set them: seconds on one
 * H200 (CUDA 13.0, float64, eps = 1e-8, work on d, e, L and R without the download), for
 *     A  n = 500, [0,1]     B  n = 1000, [0,1]     C  n = 5000, [0,1]
 *     D  n = 10000, [0,1]   E  n = 10000, [0,1000]
 * one constant changed at a time from 512 rows, 512 half sweeps, the others as below:
 *                           A      B      C      D      E
 *     as above              0.023  0.057  0.488  0.817  2.42
 */
#ifndef TSVDI_TUNING_H
#define TSVDI_TUNING_H

enum {
    /* givens.cu: rows of a block of the pipeline.  More rows: fewer hand-overs between
       blocks, more rotations for one multiprocessor in a tick.
           256 rows          0.025  0.059  0.496  0.818  2.43
           1024 rows         0.023  0.055  0.477  0.785  2.35 */
    PIPELINE_ROWS = 1024,

    /* givens.cu: half sweeps of a round.  More: the pipeline is filled less often, and the
       matrix split less often.
           256 half sweeps   0.027  0.058  0.532  0.902  2.63
           1024 half sweeps  0.025  0.056  0.474  0.766  2.25 */
    PIPELINE_SWEEPS = 1024,

    /* givens.cu: segments of a launch, whose blocks must all be resident at once.  Not
       measured: a bound that every GPU with 32 multiprocessors or more keeps. */
    PIPELINE_SEGMENTS = 256,

    /* givens.cu: most rows of a segment that one block finishes, with its rotations gathered in
       two orthogonal factors; above, they are logged and applied in waves.
           32 rows           0.024  0.058  0.493  0.816  2.44 */
    FINISH_ROWS = 64,

    /* givens.cu: one warp makes the steps of a segment, the others gather the rotations. */
    FINISH_THREADS = 128,

    /* givens.cu: half sweeps of a segment between two looks at which rows are left.
           1024 half sweeps  0.024  0.057  0.488  0.816  2.42 */
    FINISH_SWEEPS = 256,

    /* givens.cu: columns of the vectors that a block multiplies by a factor.  Not measured. */
    FACTOR_COLUMNS = 64,

    /* vectors.cu: sweeps that pass over the vectors together.
           16 sweeps         0.025  0.061  0.531  0.895  2.65 */
    WAVE_SWEEPS = 8,

    /* vectors.cu: columns of a block, two warps, so that n = 1000 spreads over 32
       multiprocessors; and steps whose coefficients are staged at once.  Not measured. */
    WAVE_THREADS = 64,
    WAVE_TILE = 32,

    /* dc/leaves.cu: memory of a log that leaves share.  100,000 matrices of order 32 in float64
       took 12.5 ms in all, with 2048 12.6; in float32 6.9 and 7.5. */
    LEAF_LOG_MIB = 1024,

    /* dc/leaves.cu: warps of a multiprocessor that get a leaf each before a second lane of any
       does: a lane alone is the fastest, but so many warps keep the multiprocessor busy.  With 12
       the same took 13.1 ms. */
    LEAF_WARPS = 4,

    /* dc/leaves.cu: rotations between two looks at where a sweep ends.  With 4 the same took
       13.1 ms, with 16 12.4. */
    LEAF_GROUP = 8,

    /* dc/leaves.cu: blocks that finish leaves whose log was full.  Not measured. */
    STRAGGLER_BLOCKS = 512,

    /* dc/deflate.cu: threads of the block that does a merge's index work.  Not measured. */
    MERGE_THREADS = 1024,

    /* dc/vectors.cu: blocks that move the deflated vectors of a node and side.  Not measured. */
    MOVE_BLOCKS = 256,

    /* dc/dc.cu: a level whose nodes have at most so many columns multiplies in one launch.  On a
       level with a larger node cuBLAS multiplies node by node.  Not measured. */
    PRODUCT_COLUMNS = 512,

    /* dc/vectors.cu: rows and columns of the tile that a block makes in that launch.  Not
       measured. */
    PRODUCT_TILE = 64,

    /* values/search.cu, values/batch.cu: threads of a block that counts. */
    COUNT_THREADS = 128,

    /* values/search.cu: points for each multiprocessor that a round has where values are fewer; a
       thread's shifts then, and where values are more.  256 points and 2 shifts took 1.2 times as
       long for the 10 largest of n = 10^6, 0.95 times at n = 10^4; 4 shifts where values are more
       1.07 times at n = 10^5. */
    PLAIN_FILL = 128,
    FEW_SHIFTS = 1,
    PLAIN_SHIFTS = 2,

    /* values/search.cu: the same in the other forms.  In the wide one 256 and 2 took 1.05 times as
       long for Toeplitz and chi at n = 10^4, 0.92 times for [0,1]; the twofold one not measured. */
    TWOFOLD_FILL = 256,
    TWOFOLD_SHIFTS = 1,
    WIDE_FILL = 128,
    WIDE_SHIFTS = 1,

    /* backend.cu: up to this order the CPU finds the values of a single matrix, wherever its
       entries lie.  values/values.cu: up to this order the kernel for batches refines the values
       that divide and conquer found for a single matrix.  With 1024 n = 1000 took 2.5 times as
       long. */
    VALUES_CPU_ORDER = 256,

    /* values/values.cu: up to this order the kernel for batches finds the values of several
       matrices.  With 512 100 matrices of n = 1024 took 18 times as long. */
    VALUES_BATCH_ORDER = 2048,

    /* values/batch.cu: from this order on the characteristic polynomial guides the search.  From 24
       on 100,000 of n = 32 took 1.2 times as long with hints, and 0.8 times without. */
    GUESS_ORDER = 64,

    /* CUDA's bound on the blocks of a grid along its second and third dimensions. */
    GRID_MOST = 65535,

    /* vectors.cu: tiles of the transpose and of the product in orthonormalize: a warp's width. */
    TILE = 32
};

/* dc/leaves.cu: what the log of a leaf so many columns wide has room for: turns, a multiple of a
   warp's width, and sweeps.  Of 1280 matrices each of nine families, 8, 16 and 32 wide, none took
   more than 117, 478 and 1666 turns or 25, 51 and 94 sweeps; on average [0,1] takes 75, 307 and
   1230, and 16, 34 and 72. */
#define LEAF_TURNS(width) (3 * (width) * (width) / 2 + 8 * (width))
#define LEAF_SWEEPS(width) (4 * (width))

#endif
