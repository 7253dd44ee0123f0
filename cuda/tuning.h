/*
 * Tuning constants of the CUDA back end, folder by folder.  The head of csrc/backend/tuning.h says
 * what these are and what the tags mean; a date without a card is that of the commit which noted
 * the times.  What a kernel's indices or registers are built on is beside the kernel.
 *
 * Table 1 is in seconds on one H200 (CUDA 13.0, float64, eps = 1e-8).  It has the work on d, e, L
 * and R without the download, for
 *
 *     A  n = 500, [0,1]     B  n = 1000, [0,1]     C  n = 5000, [0,1]
 *     D  n = 10000, [0,1]   E  n = 10000, [0,1000]
 *
 * One constant was changed at a time, from PIPELINE_ROWS = 512, PIPELINE_SWEEPS = 512 and all other
 * constants as below, which have their rows.  The pair that is set now, 1024 and 1024, has none.
 *
 *                           A      B      C      D      E
 *     512 and 512           0.023  0.057  0.488  0.817  2.42
 */
#ifndef TSVDI_CUDA_TUNING_H
#define TSVDI_CUDA_TUNING_H

#include <stddef.h>
#include <stdint.h>

/* ---- backend.cu ---- */

/* [untuned]  Most bytes of workspace for matrices that are worked on together; also of dense/,
   jacobi/ and inverse/. */
#ifndef CUDA_CHUNK_BYTES
#define CUDA_CHUNK_BYTES ((uint64_t)8 << 30)
#endif

/* [untuned]  Host pages of results with more bytes than this are touched while the device
   computes. */
#ifndef PREFAULT_BYTES
#define PREFAULT_BYTES ((uint64_t)16 << 20)
#endif

/* [measured: H100 with a Xeon, sweep_cuda.json]  Up to this order the CPU finds the values of a
   single matrix.  From arrays on the device and back, it takes 0.45 ms for n = 86, 1.35 ms for
   n = 215; the device takes 0.39 ms for n = 258 (chi). */
#ifndef VALUES_CPU_ORDER
#define VALUES_CPU_ORDER 88
#endif

/* ---- extra/ ---- */

/* [untuned]  From this many matrices on the device makes them square, where they lie there: a
   thread has a matrix, and each step waits for the one before. */
#ifndef EXTRA_BATCH
#define EXTRA_BATCH 64
#endif

/* ---- runtime/ ---- */

/* [derived: long enough to reach the rate of the bus]  sender.cu: bytes of a pinned buffer. */
#ifndef PINNED_BYTES
#define PINNED_BYTES ((size_t)32 << 20)
#endif

/* [untuned]  sender.cu: results of up to this many bytes are downloaded by the caller: that takes
   less than starting a thread. */
#ifndef SENT_BYTES
#define SENT_BYTES ((size_t)2 << 20)
#endif

/* [untuned]  sender.cu: what one thread copies at a time, and touches at a time. */
#ifndef COPY_BYTES
#define COPY_BYTES ((size_t)1 << 20)
#endif
#ifndef TOUCH_BYTES
#define TOUCH_BYTES ((size_t)4 << 20)
#endif

/* [untuned]  transfer.cu: bytes of a pinned buffer for large input, and what one thread gathers at
   a time. */
#ifndef STAGE_BYTES
#define STAGE_BYTES ((size_t)8 << 20)
#endif
#ifndef GATHER_BYTES
#define GATHER_BYTES ((size_t)256 << 10)
#endif

/* ---- load/ ---- */

/* [derived: one thread reads this many in about 1 ms]  A chunk of this many entries or more is
   staged. */
#ifndef STAGED_ENTRIES
#define STAGED_ENTRIES ((int64_t)1 << 18)
#endif

/* ---- givens/ ---- */

/* [measured: H200, table 1]  Rows of a block of the pipeline.  With more rows there are fewer
   hand-overs between blocks, but more rotations for one multiprocessor in a tick.
       256 rows            0.025  0.059  0.496  0.818  2.43
       1024 rows           0.023  0.055  0.477  0.785  2.35 */
#ifndef PIPELINE_ROWS
#define PIPELINE_ROWS 1024
#endif

/* [measured: H200, table 1]  Half sweeps of a round.  With more of them the pipeline is filled less
   often, but the matrix is split less often.
       256 half sweeps     0.027  0.058  0.532  0.902  2.63
       1024 half sweeps    0.025  0.056  0.474  0.766  2.25 */
#ifndef PIPELINE_SWEEPS
#define PIPELINE_SWEEPS 1024
#endif

/* [untuned]  Segments of a launch, whose blocks must all be resident at once.  Every GPU with 32
   multiprocessors or more holds that many. */
#ifndef PIPELINE_SEGMENTS
#define PIPELINE_SEGMENTS 256
#endif

/* [measured: H200, table 1]  The most rows of a segment that one block finishes, which gathers its
   rotations in two orthogonal factors.  The rotations of larger segments are logged and applied in
   waves.
       32 rows             0.024  0.058  0.493  0.816  2.44 */
#ifndef FINISH_ROWS
#define FINISH_ROWS 64
#endif

/* [untuned]  Threads of the block that finishes a segment.  One warp makes the steps, the other
   warps gather the rotations. */
#ifndef FINISH_THREADS
#define FINISH_THREADS 128
#endif

/* [measured: H200, table 1]  Half sweeps of a segment between two searches for the rows that are
   left.
       1024 half sweeps    0.024  0.057  0.488  0.816  2.42 */
#ifndef FINISH_SWEEPS
#define FINISH_SWEEPS 256
#endif

/* [untuned]  Columns of the vectors that a block multiplies by a factor. */
#ifndef FACTOR_COLUMNS
#define FACTOR_COLUMNS 64
#endif

/* ---- rotations/ ---- */

/* [measured: H200, table 1]  Sweeps that pass over the vectors together.
       16 sweeps           0.025  0.061  0.531  0.895  2.65 */
#ifndef WAVE_SWEEPS
#define WAVE_SWEEPS 8
#endif

/* [untuned]  Columns of a block.  With two warps, n = 1000 spreads over 32 multiprocessors. */
#ifndef WAVE_THREADS
#define WAVE_THREADS 64
#endif

/* [untuned]  Steps whose coefficients are staged at once. */
#ifndef WAVE_TILE
#define WAVE_TILE 32
#endif

/* ---- dc/ ---- */

/* [measured: 2026-11-21]  leaves.cu: memory of a log that leaves share.  100,000 matrices of order
   32 took 12.5 ms in float64 and 6.9 ms in float32; with 2048 they took 12.6 and 7.5 ms. */
#ifndef LEAF_LOG_MIB
#define LEAF_LOG_MIB 1024
#endif

/* [measured: 2026-11-21]  leaves.cu: warps of a multiprocessor that get a leaf each before any gets
   a second one.  A warp is fastest with one leaf, but this many warps already keep the
   multiprocessor busy.  With 12 the same matrices took 13.1 ms in float64. */
#ifndef LEAF_WARPS
#define LEAF_WARPS 4
#endif

/* [measured: 2026-11-22]  leaf_log.h: rotations that are loaded together, and skipped with one test
   where a sweep has none of them.  With 4 the same took 13.1 ms, with 16 it took 12.4 ms. */
#ifndef LEAF_GROUP
#define LEAF_GROUP 8
#endif

/* [untuned]  leaves.cu: blocks that finish leaves whose log was full. */
#ifndef STRAGGLER_BLOCKS
#define STRAGGLER_BLOCKS 512
#endif

/* [untuned]  deflate.cu: threads of the block that does a merge's index work. */
#ifndef MERGE_THREADS
#define MERGE_THREADS 1024
#endif

/* [untuned]  vectors.cu: blocks that move the deflated vectors of one side of a node. */
#ifndef MOVE_BLOCKS
#define MOVE_BLOCKS 256
#endif

/* [measured: H100]  dc.cu: larger matrices have smaller leaves.  And one launch makes the products
   of the nodes of a level in which up to PRODUCT_SURVIVORS values survive; cuBLAS makes those of
   other nodes, node by node.  With both, uniform entries took 0.78 times as long at n = 2048 and
   4096, and 0.92 times at n = 10^4. */
#ifndef SMALL_LEAVES_ORDER
#define SMALL_LEAVES_ORDER 1024
#endif
#ifndef PRODUCT_SURVIVORS
#define PRODUCT_SURVIVORS 128
#endif

/* [untuned]  dc.cu: that launch makes the products of all nodes of a level if they have up to this
   many columns; vectors.cu: order of a block's tile there. */
#ifndef PRODUCT_COLUMNS
#define PRODUCT_COLUMNS 512
#endif
#ifndef PRODUCT_TILE
#define PRODUCT_TILE 64
#endif

/* [untuned]  dc.cu: the last products of a single matrix are cut into SEND_PARTS blocks, but of no
   fewer than SEND_ROWS rows.  Each is sent to the host while the next is computed. */
#ifndef SEND_PARTS
#define SEND_PARTS 8
#endif
#ifndef SEND_ROWS
#define SEND_ROWS 512
#endif

/* [untuned]  dc.cu, leaves.cu: vectors of more bytes are sent in blocks, or in chunks; and most
   bytes of the vectors of a chunk of small matrices that are sent. */
#ifndef SEND_BLOCKS_BYTES
#define SEND_BLOCKS_BYTES (32 << 20)
#endif
#ifndef SEND_CHUNK_BYTES
#define SEND_CHUNK_BYTES (192 << 20)
#endif

/* ---- values/ ---- */

/* [untuned]  counts.h: threads of a block that counts. */
#ifndef COUNT_THREADS
#define COUNT_THREADS 128
#endif

/* [untuned]  counts.h: entries of a tile in shared memory, for each form of counts. */
#ifndef PLAIN_TILE
#define PLAIN_TILE 1024
#endif
#ifndef TWOFOLD_TILE
#define TWOFOLD_TILE 512
#endif
#ifndef EXTENDED_TILE
#define EXTENDED_TILE 256
#endif

/* [measured: H200, 2026-11-23]  search.cu: points of a round of plain counts for each
   multiprocessor, if there are fewer values than that; and PLAIN_MORE times as many if a value
   would else have fewer than FEW_POINTS of them.  With fewer than FEW_POINTS, a guess also uses
   what is known around a bracket.  64 points took 1.02 to 1.06 times as long at n = 10^4,
   PLAIN_MORE = 1 took 1.04 to 1.09 times. */
#ifndef PLAIN_FILL
#define PLAIN_FILL 128
#endif
#ifndef PLAIN_MORE
#define PLAIN_MORE 2
#endif
#ifndef FEW_POINTS
#define FEW_POINTS 3
#endif

/* [measured: H100]  search.cu: how long a round of plain counts takes: from both ends of the
   matrix, or with 1, 2 or 4 shifts a thread.  LEAST is the least time, MORE the time for each block
   that a multiprocessor has, in units of 10 us, for n = 60,000.  For 40,000 to 10^6 points the
   larger of LEAST and blocks times MORE is within a tenth of the measured time.  3 or 6 shifts are
   never the best by more than a tenth. */
#ifndef HALVES_LEAST
#define HALVES_LEAST 100
#endif
#ifndef HALVES_MORE
#define HALVES_MORE 25
#endif
#ifndef COUNT_1_LEAST
#define COUNT_1_LEAST 140
#endif
#ifndef COUNT_1_MORE
#define COUNT_1_MORE 45
#endif
#ifndef COUNT_2_LEAST
#define COUNT_2_LEAST 205
#endif
#ifndef COUNT_2_MORE
#define COUNT_2_MORE 83
#endif
#ifndef COUNT_4_LEAST
#define COUNT_4_LEAST 202
#endif
#ifndef COUNT_4_MORE
#define COUNT_4_MORE 150
#endif

/* [measured: H200, 2026-11-23]  search.cu: points with twofold counts.  128 points took 1.21, 1.00
   and 0.98 times as long as 192 at n = 10^4 (uniform, chi, Toeplitz), 256 points 1.07, 1.09 and
   1.05. */
#ifndef TWOFOLD_FILL
#define TWOFOLD_FILL 192
#endif

/* [measured: 2026-11-25]  search.cu: points with extended counts, which mostly share the device
   with twofold ones.  The 10^6 values of uniform entries took as long with 64, and 1.07 times as
   long with 128. */
#ifndef EXTENDED_FILL
#define EXTENDED_FILL 32
#endif

/* [measured: 2026-11-25]  search.cu: short rounds that are enqueued before the host asks how many
   values are open.  That round trip takes as long as a tenth of a round at n = 10,000, and a
   quarter at 4096.  A search takes about ten rounds; rounds past its end find no open bracket and
   return at once. */
#ifndef ROUNDS_AHEAD
#define ROUNDS_AHEAD 3
#endif

/* [measured: 2026-11-21]  values.cu: up to this order batch.cu finds the values of a single matrix.
   With 1024 n = 1000 took 2.5 times as long. */
#ifndef VALUES_SINGLE_ORDER
#define VALUES_SINGLE_ORDER 256
#endif

/* [measured: 2026-11-22]  values.cu: up to this order batch.cu finds the values of several
   matrices.  With 512, 100 matrices of n = 1024 took 18 times as long. */
#ifndef VALUES_BATCH_ORDER
#define VALUES_BATCH_ORDER 2048
#endif

/* [measured: 2026-11-21]  batch.cu: from this order on the characteristic polynomial guides the
   search.  With 24, 100,000 matrices of n = 32 took 1.2 times as long with hints, and 0.8 times
   without. */
#ifndef GUESS_ORDER
#define GUESS_ORDER 64
#endif

/* [measured: H100, sweep_cuda.json]  hints.cu: the values of HINTS_BATCH matrices or more, of order
   HINTS_ORDER or less, are found from hints.  These take 1.3 ms for any 1100 to 7000 matrices of
   n = 32, and without them 924 matrices take 0.26 ms; 100,000 take three times as long. */
#ifndef HINTS_ORDER
#define HINTS_ORDER 32
#endif
#ifndef HINTS_BATCH
#define HINTS_BATCH 8192
#endif

/* ---- twisted/ ---- */

/* [untuned]  twisted.cu: most bytes of the entries of vectors that are worked on together. */
#ifndef TWISTED_BLOCK_BYTES
#define TWISTED_BLOCK_BYTES ((uint64_t)8 << 30)
#endif

/* [measured: 2026-11-22]  twisted.cu: twisted factorisations pay if at least TWISTED_SURVIVORS of
   the values would survive the last merge.  At n = 10000 divide and conquer takes 8 ms for [0,1],
   of which 1 % survive, and 56 ms for chi, of which 83 % do; twisted factorisations take 12 and
   13 ms.  They take longer where an entry is TWISTED_GENTLE or less and the largest is in [1, 2):
   there the share must be TWISTED_SURVIVORS_GRADED. */
#ifndef TWISTED_SURVIVORS
#define TWISTED_SURVIVORS 0.3
#endif
#ifndef TWISTED_SURVIVORS_GRADED
#define TWISTED_SURVIVORS_GRADED 0.8
#endif
#ifndef TWISTED_GENTLE
#define TWISTED_GENTLE 0x1p-22
#endif

/* [untuned]  twisted.cu: brackets of values end at TWISTED_WIDTH, for a largest entry in [1, 2).
   If a gap then turns out to be less than TWISTED_MARGIN times as wide, all values are found again,
   to neighbouring doubles. */
#ifndef TWISTED_WIDTH
#define TWISTED_WIDTH 0x1p-50
#endif
#ifndef TWISTED_MARGIN
#define TWISTED_MARGIN 0x1p10
#endif

/* [untuned]  twisted.cu: the rows of T are cut into segments for at most SEGMENT_WARPS warps in
   all.  Chains stay whole where that gives fewer than SEGMENTS_LEAST. */
#ifndef SEGMENT_WARPS
#define SEGMENT_WARPS 4096
#endif
#ifndef SEGMENTS_LEAST
#define SEGMENTS_LEAST 4
#endif

/* [untuned]  twisted.cu: the time of a step through a segment, relative to one that joins segments.
   Where few values are wanted, T's rows are cut into sqrt(SEGMENT_STEPS rows) segments. */
#ifndef SEGMENT_STEPS
#define SEGMENT_STEPS 1.0
#endif

/* [untuned]  segments.h: segments that are prefetched before they are joined: a load takes longer
   than a join. */
#ifndef SEGMENTS_AHEAD
#define SEGMENTS_AHEAD 4
#endif

/* [untuned]  twisted.cu: blocks that find the signs of vectors, and the least rows of a block. */
#ifndef SIGN_BLOCKS
#define SIGN_BLOCKS 264
#endif
#ifndef SIGN_ROWS
#define SIGN_ROWS 256
#endif

/* [untuned]  Up to this order values.cu finds the values, and up to PROBE_SMALL_ORDER the probes
   are one kernel: then a call is so short that every launch and every round trip counts. */
#ifndef VALUES_SMALL_ORDER
#define VALUES_SMALL_ORDER 1024
#endif
#ifndef PROBE_SMALL_ORDER
#define PROBE_SMALL_ORDER 64
#endif

/* [untuned]  probe.cu: parts that a sum over rows is cut into: PROBE_SLICES at most, or for few
   sums as many as make PROBE_BLOCKS blocks of PROBE_SUMS sums.  A part has PROBE_PART_ROWS rows or
   more. */
#ifndef PROBE_SLICES
#define PROBE_SLICES 32
#endif
#ifndef PROBE_BLOCKS
#define PROBE_BLOCKS 528
#endif
#ifndef PROBE_SUMS
#define PROBE_SUMS 256
#endif
#ifndef PROBE_PART_ROWS
#define PROBE_PART_ROWS 64
#endif

/* [untuned]  probe.cu: rows of the residual that a block sums, while that takes no more blocks than
   a block has threads. */
#ifndef RESIDUAL_ROWS
#define RESIDUAL_ROWS 2048
#endif

/* ---- matrix/ ---- */

/* [untuned]  reflectors.cu: reflectors that are applied together: the DENSE_BLOCK_SHARE-th part of
   the number of vectors, as a multiple of DENSE_BLOCK, up to DENSE_BLOCK_MOST.  One thread block
   finds T of DENSE_BLOCK reflectors, a power of 2 from 16 to 64, or for complex128 of half of
   them. */
#ifndef DENSE_BLOCK
#define DENSE_BLOCK 64
#endif
#ifndef DENSE_BLOCK_MOST
#define DENSE_BLOCK_MOST 256
#endif
#ifndef DENSE_BLOCK_SHARE
#define DENSE_BLOCK_SHARE 16
#endif

/* [measured: H100]  reflectors.cu: up to rows / DENSE_FEW_SHARE vectors of a single matrix are few.
   For them DENSE_BLOCK_MOST reflectors are applied together, if there are that many.  The 100
   largest values of n = 10^4 and their vectors took 1.02 times as long without. */
#ifndef DENSE_FEW_SHARE
#define DENSE_FEW_SHARE 32
#endif

/* [untuned]  reflectors.cu: the most reflectors of a matrix that are prepared together; it must be
   at least DENSE_BLOCK_MOST.  DENSE_GROUP_LEAST and DENSE_GROUP_MOST bound the numbers that the
   prepared reflectors of all matrices take, about twice as many as their vectors.  A single block
   of reflectors may take more. */
#ifndef DENSE_GROUP
#define DENSE_GROUP 1024
#endif
#ifndef DENSE_GROUP_LEAST
#define DENSE_GROUP_LEAST (1 << 22)
#endif
#ifndef DENSE_GROUP_MOST
#define DENSE_GROUP_MOST (1 << 26)
#endif

/* [untuned]  reflectors.cu: a product over this many times as many terms as it has rows and columns
   is cut into parts. */
#ifndef DENSE_LONG
#define DENSE_LONG 8
#endif

/* [measured: H200, 2026-11-22]  reflectors.cu: it is cut until there are DENSE_TILES tiles of order
   64, or a part has only DENSE_PART_TERMS terms.  Parts of 512 terms took as long for n = 256 ..
   4096.  Rounding errors of long sums of equal terms add up, about eps / 4 a term. */
#ifndef DENSE_TILES
#define DENSE_TILES 128
#endif
#ifndef DENSE_PART_TERMS
#define DENSE_PART_TERMS 64
#endif

/* [untuned]  results.cu: rows of U that a block looks for the largest entries in. */
#ifndef DENSE_SIGN_ROWS
#define DENSE_SIGN_ROWS 512
#endif

/* ---- qr/ ---- */

/* [untuned]  qr.cu: threads of a block. */
#ifndef DENSE_THREADS
#define DENSE_THREADS 512
#endif

/* [untuned]  cholesky.cu: blocks, or tiles of a product, for each multiprocessor; and the least
   terms of a part, or piece, of a product. */
#ifndef CHOLESKY_FILL
#define CHOLESKY_FILL 4
#endif
#ifndef CHOLESKY_PART_TERMS
#define CHOLESKY_PART_TERMS 256
#endif

/* ---- bidiagonalize/ ---- */

/* [derived: with 512 the compiler has a single register left for loads from columns of 10,000
   numbers in float64, and only one load is in flight]  reduce.cu: threads of a block. */
#ifndef DENSE_PANEL_THREADS
#define DENSE_PANEL_THREADS 256
#endif

/* [untuned]  reduce.cu: registers of a thread for its rows of v, of w, and of as many columns of a
   visit as fit.  All columns fit if a block has up to 8192 rows in float64, 16,384 in float32.
   Clusters of blocks share columns of more than 10,240 and 20,480 rows; half as many of complex
   numbers. */
#ifndef DENSE_PANEL_REGISTERS
#define DENSE_PANEL_REGISTERS 192
#endif

/* [measured: H200, 2026-11-28]  reduce.cu: columns of a panel; also of qr/qr.cu, but half as many
   there of complex128.  In complex128 the values of n = 4096 took 156 and 149 ms with 16 and 32,
   those of n = 8192 1.05 and 1.02 s. */
#ifndef DENSE_WIDTH
#define DENSE_WIDTH 32
#endif

/* [measured: 2026-11-24]  reduce.cu: buffers in shared memory, each with the columns of a visit;
   fewer if that many do not fit.  copies_wait() of matrix/panel.h allows 6.  With 4, n = 8192 took
   as long.  With 4 and a prefetch of one more column of each block to the L2 cache between two
   steps, n = 4096 took 1.03 times as long as with 4 alone, n = 10^4 took 1.00 times. */
#ifndef DENSE_BUFFERS
#define DENSE_BUFFERS 6
#endif

/* [measured: H200, 2026-11-23]  reduce.cu: percent of the L2 cache for columns that stay there from
   step to step.  The values of n = 10^4 took 785, 782, 787, 797, 829 and 854 ms with 0, 10, 20, 30,
   50 and 95.  Those of n = 4096 took 78.7, 77.3, 76.4, 76.1 and 78.1 ms with 0, 10, 20, 30 and 50.
   15 is between the best of both, 10 and 30; it has no time in this series. */
#ifndef DENSE_CACHE_PERCENT
#define DENSE_CACHE_PERCENT 15
#endif

/* [untuned]  resident.cu: threads of a block that have rows, and the most rows of each of them. */
#ifndef DENSE_RESIDENT_THREADS
#define DENSE_RESIDENT_THREADS 256
#endif
#ifndef DENSE_RESIDENT_ROWS
#define DENSE_RESIDENT_ROWS 12
#endif

/* [measured: H200, 2026-11-22]  resident.cu: columns of a block, if they fit and there are enough
   multiprocessors.  With fewer columns there are more blocks, each of which reads what all others
   send.  8 took as long. */
#ifndef DENSE_RESIDENT_COLUMNS
#define DENSE_RESIDENT_COLUMNS 12
#endif

/* [untuned]  resident.cu: a cluster whose blocks have this many columns or fewer gets no more
   blocks. */
#ifndef DENSE_CLUSTER_COLUMNS
#define DENSE_CLUSTER_COLUMNS 8
#endif

/* [untuned]  resident.cu: from this many columns on, half of them are reduced before the number of
   blocks is chosen anew. */
#ifndef DENSE_RESIDENT_HALVED
#define DENSE_RESIDENT_HALVED 256
#endif

/* [untuned]  small.cu: a group of threads of a warp reduces a matrix if it has no more columns than
   the group has threads, no more than DENSE_WARP_ROWS rows for each thread, and no more than
   DENSE_WARP_ENTRIES entries.  Up to that many entries matrix/load.cu and matrix/results.cu, too,
   have a group for each matrix. */
#ifndef DENSE_WARP_ROWS
#define DENSE_WARP_ROWS 8
#endif
#ifndef DENSE_WARP_ENTRIES
#define DENSE_WARP_ENTRIES 1024
#endif

/* [untuned]  small.cu: a block reduces a matrix with up to this many columns. */
#ifndef DENSE_BLOCK_COLUMNS
#define DENSE_BLOCK_COLUMNS 512
#endif

/* [untuned]  small.cu: a block has 128 threads if the matrix has fewer than DENSE_SMALL_ENTRIES
   entries, 256 if it has fewer than DENSE_MEDIUM_ENTRIES, else 512. */
#ifndef DENSE_SMALL_ENTRIES
#define DENSE_SMALL_ENTRIES (40 * 40)
#endif
#ifndef DENSE_MEDIUM_ENTRIES
#define DENSE_MEDIUM_ENTRIES (96 * 96)
#endif

/* [measured: H200, 2026-11-28]  band.cu: columns of L and R before they are subtracted. */
#ifndef BAND_RANK
#define BAND_RANK 512
#endif

/* [derived: a sweep takes microseconds]  chase_systolic.cuh, chase_ordinary.cuh: longest wait for
   another block, where another chase can follow, and where none can. */
#ifndef CHASE_WAIT_SECONDS
#define CHASE_WAIT_SECONDS 4
#endif
#ifndef CHASE_LAST_SECONDS
#define CHASE_LAST_SECONDS 60
#endif

/* [untuned]  small.cu: vectors of a block that applies reflectors, at least. */
#ifndef DENSE_SLAB_LEAST
#define DENSE_SLAB_LEAST 8
#endif

/* ---- dense/ ---- */

/* [untuned]  QR pays from this many times as many rows as columns on. */
#ifndef DENSE_QR_RATIO
#define DENSE_QR_RATIO 1.8
#endif

/* [measured: H200, 2026-11-29]  A band comes between W and B from this order on: for values, for
   few of the vectors and for all.  float64 took, in one stage and in two, values of n = 2048 18.5
   and 14.8 ms, all vectors of 2048 21.1 and 22.6, of 2458 30.3 and 31.5, of 2950 44.2 and 40.7. */
#ifndef DENSE_BAND_VALUES_FROM
#define DENSE_BAND_VALUES_FROM 1700
#endif
#ifndef DENSE_BAND_FEW_FROM
#define DENSE_BAND_FEW_FROM 1900
#endif
#ifndef DENSE_BAND_ALL_FROM
#define DENSE_BAND_ALL_FROM 2700
#endif

/* [derived: H200, 2026-11-30]  The devices of the parts of a call share a matrix out from this
   order on.  Two took 86 ms for the reduction of order 8192, and one 98; 0.2 ms of each panel of 64
   columns are for what the devices tell each other. */
#ifndef DENSE_TEAM_FROM
#define DENSE_TEAM_FROM 6144
#endif

/* [untuned]  Vectors of one side come from those of the other from this order on, and if A has no
   more bytes than this. */
#ifndef DENSE_OTHER_SIDE_FROM
#define DENSE_OTHER_SIDE_FROM 1024
#endif
#ifndef DENSE_OTHER_SIDE_BYTES
#define DENSE_OTHER_SIDE_BYTES ((uint64_t)16 << 30)
#endif

/* [untuned]  bidiagonalize/small.cu reduces matrices of up to DENSE_SMALL_ORDER columns, and larger
   ones that fit if there is one for every DENSE_SMALL_SHARE multiprocessors or more. */
#ifndef DENSE_SMALL_ORDER
#define DENSE_SMALL_ORDER 64
#endif
#ifndef DENSE_SMALL_SHARE
#define DENSE_SMALL_SHARE 2
#endif

/* ---- jacobi/ ---- */

/* [measured: H200, 2026-11-29]  jacobi.cu: AUTO takes Jacobi for vectors of matrices of up to
   JACOBI_ORDER rows, of complex128 half of that, of complex64 a quarter, with more columns than
   half of the threads of a matrix.  Here are times of Jacobi, and in brackets of a reduction.
   100,000 matrices of order 9 took 3.4 ms (2.7), of order 12 3.7 (3.9), of order 16 4.1 (5.1), and
   of 16 x 8 3.2 (2.2); 10,000 of order 32 1.5 (3.0).  A single matrix of order 9 took 141 us (205),
   of order 16 144 (220), 24 291 (260), 32 314 (301).  100,000 of order 16 took 4.8 ms (6.9) in
   complex128, 4.5 (4.1) in complex64. */
#ifndef JACOBI_ORDER
#define JACOBI_ORDER 32
#endif

/* [untuned]  tiny.cuh: blocks, at most; each writes its findings to the host. */
#ifndef JACOBI_TINY_BLOCKS
#define JACOBI_TINY_BLOCKS 4096
#endif

/* [untuned]  jacobi.cu: a block has a matrix of up to this many columns in shared memory, if its
   rows fit; sweeps.cu takes larger ones. */
#ifndef JACOBI_BLOCK_COLUMNS
#define JACOBI_BLOCK_COLUMNS 128
#endif

/* [untuned]  large.cu: blocks that share the columns of the same rows. */
#ifndef JACOBI_ROW_GROUPS
#define JACOBI_ROW_GROUPS 32
#endif

/* [untuned]  sweeps.cu: blocks of threads for each multiprocessor that make Gram matrices, and that
   mix columns. */
#ifndef JACOBI_GRAM_FILL
#define JACOBI_GRAM_FILL 8
#endif
#ifndef JACOBI_MIX_FILL
#define JACOBI_MIX_FILL 4
#endif

/* ---- inverse/ ---- */

/* [untuned]  rescue.cu begins with complete pivoting for matrices up to this order, and with QR for
   larger ones.  A pivot that is zero may be an underflow: a matrix with one is rescued too, up to
   this order.  Above it that takes too long: it counts as singular, unless other pivots are
   large. */
#ifndef INVERSE_COMPLETE_ORDER
#define INVERSE_COMPLETE_ORDER 1024
#endif

/* [untuned]  tiny.cuh: blocks, at most; each writes its findings to the host. */
#ifndef INVERSE_TINY_BLOCKS
#define INVERSE_TINY_BLOCKS 4096
#endif

/* [untuned]  large.cu: columns of a block that gathers. */
#ifndef INVERSE_GATHER_COLUMNS
#define INVERSE_GATHER_COLUMNS 8
#endif

/* [measured: H200, 2026-11-23]  large.cu: terms of products of cut numbers, at least.  With 128
   n = 4096, 8192 and 16384 took 1.05, 1.04 and 1.02 times as long. */
#ifndef INVERSE_CUT_WIDTH
#define INVERSE_CUT_WIDTH 256
#endif

/* [derived: smaller matrices have no products of INVERSE_CUT_WIDTH terms]  large.cu: order of
   matrices whose numbers are cut, at least. */
#ifndef INVERSE_CUT_ORDER
#define INVERSE_CUT_ORDER 4096
#endif

/* [measured: 2026-11-23]  panel_cluster.cuh: rows of a block at most, if a cluster can have more
   blocks: of n = 1024, 8 blocks take a tenth less time than 16 or 4. */
#ifndef INVERSE_CLUSTER_ROWS
#define INVERSE_CLUSTER_ROWS 128
#endif

/* [derived: about as many clusters are resident]  panel_cluster.cuh: matrices that are eliminated
   together. */
#ifndef INVERSE_CLUSTER_MATRICES
#define INVERSE_CLUSTER_MATRICES 8
#endif

/* [untuned]  panel_grid.cuh: most columns of a panel; rows of a block, at least. */
#ifndef INVERSE_GRID_WIDTH
#define INVERSE_GRID_WIDTH 128
#endif
#ifndef INVERSE_GRID_ROWS
#define INVERSE_GRID_ROWS 32
#endif

/* [untuned]  balance.cu: columns of a block. */
#ifndef INVERSE_SCALE_COLUMNS
#define INVERSE_SCALE_COLUMNS 64
#endif

/* [untuned]  refine.cu: numbers that a block works on. */
#ifndef INVERSE_STEP_SHARE
#define INVERSE_STEP_SHARE 4096
#endif

/* [untuned]  complete.cu: columns whose blocks are launched at once. */
#ifndef INVERSE_SOLVE_COLUMNS
#define INVERSE_SOLVE_COLUMNS 1024
#endif

#endif
