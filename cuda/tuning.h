/*
 * Constants of the CUDA back end, with the measurements that set them.  "Not measured" says that
 * there are none.  The tables are seconds on one H200 (CUDA 13.0, float64, eps = 1e-8).  They hold
 * the work on d, e, L and R without the download, for
 *
 *     A  n = 500, [0,1]     B  n = 1000, [0,1]     C  n = 5000, [0,1]
 *     D  n = 10000, [0,1]   E  n = 10000, [0,1000]
 *
 * One constant was changed at a time, from PIPELINE_ROWS = 512, PIPELINE_SWEEPS = 512 and all other
 * constants as below.  The pair that is set now, 1024 and 1024, has no row of its own.
 *
 *                           A      B      C      D      E
 *     512 and 512           0.023  0.057  0.488  0.817  2.42
 */
#ifndef TSVDI_CUDA_TUNING_H
#define TSVDI_CUDA_TUNING_H

enum {
    /* givens.cu: rows of a block of the pipeline.  With more rows there are fewer hand-overs
       between blocks, but more rotations for one multiprocessor in a tick.
           256 rows          0.025  0.059  0.496  0.818  2.43
           1024 rows         0.023  0.055  0.477  0.785  2.35 */
    PIPELINE_ROWS = 1024,

    /* givens.cu: half sweeps of a round.  With more of them the pipeline is filled less often, but
       the matrix is split less often.
           256 half sweeps   0.027  0.058  0.532  0.902  2.63
           1024 half sweeps  0.025  0.056  0.474  0.766  2.25 */
    PIPELINE_SWEEPS = 1024,

    /* givens.cu: segments of a launch, whose blocks must all be resident at once.  Every GPU with
       32 multiprocessors or more holds that many.  Not measured. */
    PIPELINE_SEGMENTS = 256,

    /* givens.cu: the most rows of a segment that one block finishes, which gathers its rotations in
       two orthogonal factors.  The rotations of larger segments are logged and applied in waves.
           32 rows           0.024  0.058  0.493  0.816  2.44 */
    FINISH_ROWS = 64,

    /* givens.cu: threads of the block that finishes a segment.  One warp makes the steps, the other
       warps gather the rotations.  Not measured. */
    FINISH_THREADS = 128,

    /* givens.cu: half sweeps of a segment between two searches for the rows that are left.
           1024 half sweeps  0.024  0.057  0.488  0.816  2.42 */
    FINISH_SWEEPS = 256,

    /* givens.cu: columns of the vectors that a block multiplies by a factor.  Not measured. */
    FACTOR_COLUMNS = 64,

    /* vectors.cu: sweeps that pass over the vectors together.
           16 sweeps         0.025  0.061  0.531  0.895  2.65 */
    WAVE_SWEEPS = 8,

    /* vectors.cu: columns of a block.  With two warps, n = 1000 spreads over 32 multiprocessors.
       Not measured. */
    WAVE_THREADS = 64,

    /* vectors.cu: steps whose coefficients are staged at once.  Not measured. */
    WAVE_TILE = 32,

    /* dc/leaves.cu: memory of a log that leaves share.  100,000 matrices of order 32 took 12.5 ms
       in float64 and 6.9 ms in float32; with 2048 they took 12.6 and 7.5 ms. */
    LEAF_LOG_MIB = 1024,

    /* dc/leaves.cu: warps of a multiprocessor that get a leaf each before any gets a second one.  A
       warp is fastest with one leaf, but this many warps already keep the multiprocessor busy.
       With 12 the same matrices took 13.1 ms in float64. */
    LEAF_WARPS = 4,

    /* dc/leaf_log.h: rotations that are loaded together, and skipped with one test where a sweep
       has none of them.  With 4 the same took 13.1 ms, with 16 it took 12.4 ms. */
    LEAF_GROUP = 8,

    /* dc/leaves.cu: blocks that finish leaves whose log was full.  Not measured. */
    STRAGGLER_BLOCKS = 512,

    /* dc/deflate.cu: threads of the block that does a merge's index work.  Not measured. */
    MERGE_THREADS = 1024,

    /* dc/vectors.cu: blocks that move the deflated vectors of one side of a node.  Not measured. */
    MOVE_BLOCKS = 256,

    /* dc/dc.cu: larger matrices have smaller leaves. */
    SMALL_LEAVES_ORDER = 1024,

    /* dc/dc.cu: one launch makes the products of all nodes of a level if they have up to
       PRODUCT_COLUMNS columns, else of those nodes in which up to PRODUCT_SURVIVORS values survive.
       cuBLAS makes the products of other nodes, node by node.  With PRODUCT_SURVIVORS and small
       leaves uniform entries took 0.78 times as long at n = 2048 and 4096, and 0.92 times at
       n = 10^4, on an H100. */
    PRODUCT_COLUMNS = 512,
    PRODUCT_SURVIVORS = 128,

    /* dc/dc.cu: the last products of a single matrix are cut into SEND_PARTS blocks, but of no
       fewer than SEND_ROWS rows.  Each is sent to the host while the next is computed.  Not
       measured. */
    SEND_PARTS = 8,
    SEND_ROWS = 512,

    /* dc/dc.cu, dc/leaves.cu: vectors of more bytes are sent in blocks, or in chunks. */
    SEND_BLOCKS_BYTES = 32 << 20,

    /* dc/leaves.cu: most bytes of the vectors of a chunk of small matrices that are sent.  Not
       measured. */
    SEND_CHUNK_BYTES = 192 << 20,

    /* dc/vectors.cu: order of a block's tile in the launch of PRODUCT_COLUMNS.  Not measured. */
    PRODUCT_TILE = 64,

    /* values/counts.h: threads of a block that counts.  Not measured. */
    COUNT_THREADS = 128,

    /* values/search.cu: points of a round of plain counts for each multiprocessor, if there are
       fewer values than that; and PLAIN_MORE times as many if a value would else have fewer than
       FEW_POINTS of them.  With fewer than FEW_POINTS, a guess also uses what is known around a
       bracket.  64 points took 1.02 to 1.06 times as long at n = 10^4, PLAIN_MORE = 1 took 1.04 to
       1.09 times. */
    PLAIN_FILL = 128,
    PLAIN_MORE = 2,
    FEW_POINTS = 3,

    /* values/search.cu: how long a round of plain counts takes: from both ends of the matrix, or
       with 1, 2 or 4 shifts a thread.  LEAST is the least time, MORE the time for each block that a
       multiprocessor has, in units of 10 us, for n = 60,000 on an H100.  For 40,000 to 10^6 points
       the larger of LEAST and blocks times MORE is within a tenth of the measured time.  3 or 6
       shifts are never the best by more than a tenth. */
    HALVES_LEAST = 100,
    HALVES_MORE = 25,
    COUNT_1_LEAST = 140,
    COUNT_1_MORE = 45,
    COUNT_2_LEAST = 205,
    COUNT_2_MORE = 83,
    COUNT_4_LEAST = 202,
    COUNT_4_MORE = 150,

    /* values/search.cu: points with twofold counts.  128 points took 1.21, 1.00 and 0.98 times as
       long as 192 at n = 10^4 (uniform, chi, Toeplitz), 256 points 1.07, 1.09 and 1.05. */
    TWOFOLD_FILL = 192,

    /* values/search.cu: points with extended counts, which mostly share the device with twofold ones.
       The 10^6 values of uniform entries took as long with 64, and 1.07 times as long with 128. */
    EXTENDED_FILL = 32,

    /* bidiag/plan.c: up to this order the CPU finds the values of a single matrix.  On an H100 with
       a Xeon, from arrays on the device and back, it takes 0.45 ms for n = 86, 1.35 ms for n = 215;
       the device takes 0.39 ms for n = 258 (chi; sweep_cuda.json). */
    VALUES_CPU_ORDER = 88,

    /* values/values.cu: up to this order values/batch.cu finds the values of a single matrix.  With
       1024 n = 1000 took 2.5 times as long. */
    VALUES_SINGLE_ORDER = 256,

    /* values/values.cu: up to this order values/batch.cu finds the values of several matrices. With
       512, 100 matrices of n = 1024 took 18 times as long. */
    VALUES_BATCH_ORDER = 2048,

    /* values/batch.cu: from this order on the characteristic polynomial guides the search.  With
       24, 100,000 matrices of n = 32 took 1.2 times as long with hints, and 0.8 times without. */
    GUESS_ORDER = 64,

    /* values/hints.cu: the values of HINTS_BATCH matrices or more, of order HINTS_ORDER or less,
       are found from hints.  These take 1.3 ms for any 1100 to 7000 matrices of n = 32, and without
       them 924 matrices take 0.26 ms (H100, sweep_cuda.json); 100,000 take three times as long. */
    HINTS_ORDER = 32,
    HINTS_BATCH = 8192,

    /* twisted/twisted.cu: the rows of T are cut into segments for at most SEGMENT_WARPS warps in
       all.  Chains stay whole where that gives fewer than SEGMENTS_LEAST.  Not measured. */
    SEGMENT_WARPS = 4096,
    SEGMENTS_LEAST = 4,

    /* twisted/twisted.cu: blocks that find the signs of vectors, and the least rows of a block.
       Not measured. */
    SIGN_BLOCKS = 264,
    SIGN_ROWS = 256,

    /* qr/qr.cu: threads of a block.  A constant of dense/ is not measured unless its comment
       says so. */
    DENSE_THREADS = 512,

    /* bidiagonalize/reduce.cu: threads of a block.  With 512 the compiler has a single register left for
       loads from columns of 10,000 numbers in float64: only one load is in flight. */
    DENSE_PANEL_THREADS = 256,

    /* bidiagonalize/reduce.cu: registers of a thread for its rows of v, of w, and of as many columns of a
       visit as fit.  All columns fit if a block has up to 8192 rows in float64, 16,384 in float32.
       Clusters of blocks share columns of more than 10,240 and 20,480 rows. */
    DENSE_PANEL_REGISTERS = 192,

    /* bidiagonalize/reduce.cu: columns of a panel. */
    DENSE_WIDTH = 32,

    /* bidiagonalize/reduce.cu: stages in shared memory, each with the columns of a visit; fewer if that
       many do not fit.  copies_wait() of matrix/panel.h allows 6.  With 4, n = 8192 took as long.
       With 4 and a prefetch of one more column of each block to the L2 cache between two steps,
       n = 4096 took 1.03 times as long as with 4 alone, n = 10^4 took 1.00 times. */
    DENSE_STAGES = 6,

    /* bidiagonalize/reduce.cu: percent of the L2 cache for columns that stay there from step to step.  The
       values of n = 10^4 took 785, 782, 787, 797, 829 and 854 ms with 0, 10, 20, 30, 50 and 95.
       Those of n = 4096 took 78.7, 77.3, 76.4, 76.1 and 78.1 ms with 0, 10, 20, 30 and 50.  15 is
       between the best of both, 10 and 30; it has no time in this series. */
    DENSE_CACHE_PERCENT = 15,

    /* bidiagonalize/resident.cu: threads of a block that have rows, and the most rows of each of them. */
    DENSE_RESIDENT_THREADS = 256,
    DENSE_RESIDENT_ROWS = 12,

    /* bidiagonalize/resident.cu: columns of a block, if they fit and there are enough multiprocessors.
       With fewer columns there are more blocks, each of which reads what all others send.  8 took
       as long. */
    DENSE_RESIDENT_COLUMNS = 12,

    /* bidiagonalize/resident.cu: a cluster whose blocks have this many columns or fewer gets no more
       blocks. */
    DENSE_CLUSTER_COLUMNS = 8,

    /* bidiagonalize/resident.cu: from this many columns on, half of them are reduced before the number of
       blocks is chosen anew. */
    DENSE_RESIDENT_HALVED = 256,

    /* matrix/reflectors.cu: reflectors that are applied together: the DENSE_BLOCK_SHARE-th part of
       the number of vectors, as a multiple of DENSE_BLOCK, up to DENSE_BLOCK_MOST.  One thread
       block finds T of DENSE_BLOCK reflectors, a power of 2 from 8 to 64. */
    DENSE_BLOCK = 64,
    DENSE_BLOCK_MOST = 256,
    DENSE_BLOCK_SHARE = 16,

    /* matrix/reflectors.cu: up to rows / DENSE_FEW_SHARE vectors of a single matrix are few.  For
       them DENSE_BLOCK_MOST reflectors are applied together, if there are that many.  The 100
       largest values of n = 10^4 and their vectors took 1.02 times as long without, on an H100. */
    DENSE_FEW_SHARE = 32,

    /* matrix/reflectors.cu: the most reflectors of a matrix that are prepared together; it must be
       at least DENSE_BLOCK_MOST.  DENSE_GROUP_LEAST and DENSE_GROUP_MOST bound the numbers that the
       prepared reflectors of all matrices take, about twice as many as their vectors.  A single
       block of reflectors may take more. */
    DENSE_GROUP = 1024,
    DENSE_GROUP_LEAST = 1 << 22,
    DENSE_GROUP_MOST = 1 << 26,

    /* matrix/reflectors.cu: a product over many more terms than it has rows and columns is cut into
       parts, until there are DENSE_TILES tiles of order 64, or a part has only DENSE_PART_TERMS
       terms.  Parts of 512 terms took as long for n = 256 .. 4096.  Rounding errors of long sums of
       equal terms add up, about eps / 4 a term. */
    DENSE_TILES = 128,
    DENSE_PART_TERMS = 64,

    /* matrix/results.cu: rows of U that a block looks for the largest entries in. */
    DENSE_SIGN_ROWS = 512,

    /* dense/dense.cu: small.cu reduces matrices of up to DENSE_SMALL_ORDER columns, and larger ones
       that fit if there is one for every DENSE_SMALL_SHARE multiprocessors or more. */
    DENSE_SMALL_ORDER = 64,
    DENSE_SMALL_SHARE = 2,

    /* CUDA's bound on the blocks of a grid along its second and third dimensions. */
    GRID_MOST = 65535,

    /* bidiagonalize/small.cu: a group of threads of a warp reduces a matrix if it has no more columns than
       the group has threads, no more than DENSE_WARP_ROWS rows for each thread, and no more than
       DENSE_WARP_ENTRIES entries.  Up to that many entries matrix/load.cu and matrix/results.cu, too,
       have a group for each matrix.  Not measured. */
    DENSE_WARP_ROWS = 8,
    DENSE_WARP_ENTRIES = 1024,

    /* bidiagonalize/small.cu: a block reduces a matrix with up to this many columns.  Not measured. */
    DENSE_BLOCK_COLUMNS = 512,

    /* bidiagonalize/small.cu: a block has 128 threads if the matrix has fewer than DENSE_SMALL_ENTRIES
       entries, 256 if it has fewer than DENSE_MEDIUM_ENTRIES, else 512.  Not measured. */
    DENSE_SMALL_ENTRIES = 40 * 40,
    DENSE_MEDIUM_ENTRIES = 96 * 96,

    /* vectors.cu: order of a tile of the transpose, and of the product in orthonormalize().  It is
       the width of a warp. */
    TILE = 32
};

/* dc/leaves.cu: how many turns and sweeps the log of a leaf has room for, by the leaf's columns.
   The turns are a multiple of a warp's width.  Of 1280 matrices each of nine families, with 8, 16
   and 32 columns, none took more than 117, 478 and 1666 turns, or more than 25, 51 and 94 sweeps.
   [0,1] takes 75, 307 and 1230 turns and 16, 34 and 72 sweeps on average. */
#define LEAF_TURNS(width) (3 * (width) * (width) / 2 + 8 * (width))
#define LEAF_SWEEPS(width) (4 * (width))

/* twisted/twisted.cu: twisted factorisations pay if at least TWISTED_SURVIVORS of the values would
   survive the last merge.  At n = 10000 divide and conquer takes 8 ms for [0,1], of which 1 %
   survive, and 56 ms for chi, of which 83 % do; twisted factorisations take 12 and 13 ms.  They
   take longer where an entry is TWISTED_GENTLE or less and the largest is in [1, 2): there the
   share must be TWISTED_SURVIVORS_GRADED. */
#define TWISTED_SURVIVORS 0.3
#define TWISTED_SURVIVORS_GRADED 0.8
#define TWISTED_GENTLE 0x1p-22

/* twisted/segments.h: the time of a step through a segment, relative to one that joins segments.
   Where few values are wanted, T's rows are cut into sqrt(SEGMENT_STEPS rows) segments.  Not
   measured. */
#define SEGMENT_STEPS 1.0

/* twisted/twisted.cu: brackets of values end at TWISTED_WIDTH, for a largest entry in [1, 2).  If a
   gap then turns out to be less than TWISTED_MARGIN times as wide, all values are found again, to
   neighbouring doubles. */
#define TWISTED_WIDTH 0x1p-50
#define TWISTED_MARGIN 0x1p10

#endif
