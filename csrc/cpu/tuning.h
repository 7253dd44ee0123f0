/*
 * Tuning constants of the CPU back end, folder by folder; the head of backend/tuning.h says what
 * these are and what the tags mean.  What a kernel's registers or lanes fix is beside the kernel;
 * what the bounds on errors rest on, such as the panels of qr/qr.c, is beside the algorithm.
 */
#ifndef TSVDI_CPU_TUNING_H
#define TSVDI_CPU_TUNING_H

#include <stdint.h>

/* ---- backend.c ---- */

/* [measured: a thread of a Xeon with AVX-512]  From this order on AUTO tries twisted factorisations
   for all vectors of a matrix.  It took 0.57, 0.39, 0.40 and 0.36 of the time of divide and conquer
   for the bidiagonal of a Gaussian matrix, n = 256, 320, 400 and 500.  But where divide and conquer
   deflates nearly all, the sample of pays() adds to its time.  Over all families of the tests AUTO
   took 1.09, 1.03, 0.98 and 0.96 of it in the mean. */
#ifndef CPU_TWISTED_ORDER
#define CPU_TWISTED_ORDER 400
#endif

/* ---- dense/ ---- */

/* [measured: EPYC with AVX-512]  Small matrices are decomposed in lanes up to this order.  One
   matrix takes as long as a vector of them: of order 16, 18, 20 and 24 26, 38, 48 and 71 us.  By a
   reduction it takes 27, 33, 39 and 49 us. */
#ifndef CPU_LANES_ORDER
#define CPU_LANES_ORDER 16
#endif

/* [derived: W and U of a vector of lanes stay in the L2 cache]  And up to this many entries of W
   and of U each. */
#ifndef CPU_LANES_ENTRIES
#define CPU_LANES_ENTRIES 512
#endif

/* [untuned]  Nanoseconds of such work below which no second thread is woken. */
#ifndef CPU_LANES_SERIAL
#define CPU_LANES_SERIAL 50000
#endif

/* ---- extra/ ---- */

/* [measured: two threads of an EPYC]  Vectors of up to this many entries are restored by one
   thread.  Of n = 300 it takes 0.1 ms, and to wake a second one may take longer. */
#ifndef CPU_EXTRA_SERIAL
#define CPU_EXTRA_SERIAL 262144
#endif

/* [derived: registers for the chains of eight rows]  Rows that are restored side by side, which
   hides the latency of the recurrence. */
#ifndef CPU_EXTRA_ROWS
#define CPU_EXTRA_ROWS 8
#endif

/* [derived: a row of them in double precision fills a page of memory]  Columns that are restored
   together. */
#ifndef CPU_EXTRA_COLUMNS
#define CPU_EXTRA_COLUMNS 512
#endif

/* [untuned]  Pieces of a block of rows for each of several threads. */
#ifndef CPU_EXTRA_PIECES
#define CPU_EXTRA_PIECES 4
#endif

/* ---- kernels/ ---- */

/* [derived: a strip of B of this many rows and the rows of A that it meets fit in the L1 cache]
   Terms of a product that are summed before C is touched. */
#ifndef CPU_PRODUCT_TERMS
#define CPU_PRODUCT_TERMS 128
#endif

/* [untuned]  Of the probes: columns of A between prefetch and use, where its columns lie far
   apart. */
#ifndef CPU_PROBE_AHEAD
#define CPU_PROBE_AHEAD 32
#endif

/* [untuned]  Of twisted factorisations: rows between prefetch and store of the results, of which
   only a few numbers in each row are written. */
#ifndef CPU_WRITE_AHEAD
#define CPU_WRITE_AHEAD 24
#endif

/* ---- givens/ ---- */

/* [derived: two orthogonal factors of this order stay in the L1 cache beside the segment]  Most
   rows of a segment that is finished with its rotations gathered. */
#ifndef CPU_FINISH_ROWS
#define CPU_FINISH_ROWS 48
#endif

/* [untuned]  Columns of the vectors that a factor is applied to at once.  At least CPU_FINISH_ROWS:
   `spare` also holds a copy of a factor. */
#ifndef CPU_FACTOR_COLUMNS
#define CPU_FACTOR_COLUMNS 64
#endif

/* [untuned]  Rotations of one side that a round may log. */
#ifndef CPU_ROUND_ROTATIONS
#define CPU_ROUND_ROTATIONS (1 << 18)
#endif

/* [untuned]  A run of at most this many identities between two rotations is applied with them: that
   is cheaper than a wave of its own for the second rotation. */
#ifndef CPU_LOG_GAP
#define CPU_LOG_GAP 16
#endif

/* ---- rotations/ ---- */

/* [derived: a quarter of the L2 cache of current server cores, 2 MiB]  Bytes of a panel; and the
   most numbers in a row of it. */
#ifndef CPU_PANEL_BYTES
#define CPU_PANEL_BYTES (1 << 19)
#endif
#ifndef CPU_PANEL_WIDTH_MAX
#define CPU_PANEL_WIDTH_MAX 64
#endif

/* [derived: it takes about a millisecond]  Work below this many rotated pairs of numbers is not
   worth a second thread: where other libraries' threads are awake too, waking one can cost as
   much. */
#ifndef CPU_SERIAL_PAIRS
#define CPU_SERIAL_PAIRS (1 << 23)
#endif

/* [untuned]  Rows or columns that one thread orders or corrects at a time. */
#ifndef CPU_ORDER_COLUMNS
#define CPU_ORDER_COLUMNS 64
#endif

/* ---- values/ ---- */

/* [untuned]  The most and the least values that one task finds together.  The values of a task
   share the intervals near the root. */
#ifndef CPU_VALUES_PER_TASK
#define CPU_VALUES_PER_TASK 256
#endif
#ifndef CPU_VALUES_PER_TASK_MIN
#define CPU_VALUES_PER_TASK_MIN 32
#endif

/* [untuned]  How far, in ulps, a first bracket reaches on both sides of an approximation: where
   plain counts start from the approximations of another method, and where exact counts start from
   what the first pass found.  And the factor by which the reach grows while the bracket does not
   hold its value. */
#ifndef CPU_PLAIN_REACH
#define CPU_PLAIN_REACH 8
#endif
#ifndef CPU_EXACT_REACH
#define CPU_EXACT_REACH 0
#endif
#ifndef CPU_BRACKET_GROWTH
#define CPU_BRACKET_GROWTH 8
#endif

/* [derived: it takes 1.3 ms]  Work below this many entries times values is not worth a second
   thread: where other processes keep the processors busy, a thread may wait several ms for one. */
#ifndef CPU_VALUES_SERIAL_STEPS
#define CPU_VALUES_SERIAL_STEPS (1 << 17)
#endif

/* ---- dc/ ---- */

/* [untuned]  A task has the roots, weights or rows of the factors of this many survivors. */
#ifndef CPU_DC_TASK_ROWS
#define CPU_DC_TASK_ROWS 16
#endif

/* [untuned]  A node of up to this order is merged by one thread. */
#ifndef CPU_DC_SMALL_NODE
#define CPU_DC_SMALL_NODE 128
#endif

/* [untuned]  On a level that has a node for every thread, one thread merges a node of up to this
   order.  The threads share larger nodes: each step is then a parallel region, which waits for the
   slowest thread. */
#ifndef CPU_DC_OWN_NODE
#define CPU_DC_OWN_NODE 512
#endif

/* [measured: 2026-11-22]  Matrices below this order are not worth a second thread.  At n = 200 two
   threads gain a third of 1.4 ms on quiet processors.  On processors that other processes keep
   busy, they took 1.6 times as long as one on average, and 3.4 times in the median; from this order
   on about the same. */
#ifndef CPU_DC_SERIAL_ORDER
#define CPU_DC_SERIAL_ORDER 256
#endif

/* [untuned]  Columns of a tile: CPU_STORE_COLUMNS entries of each of CPU_STORE_RANKS vectors are
   read vector by vector, and written column by column. */
#ifndef CPU_STORE_COLUMNS
#define CPU_STORE_COLUMNS 32
#endif
#ifndef CPU_STORE_RANKS
#define CPU_STORE_RANKS 16
#endif

/* ---- twisted/ ---- */

/* [untuned]  Values of a task. */
#ifndef CPU_TWISTED_TASK_VALUES
#define CPU_TWISTED_TASK_VALUES 64
#endif

/* [untuned]  Work below this many entries times values is not worth a second thread. */
#ifndef CPU_TWISTED_SERIAL_STEPS
#define CPU_TWISTED_SERIAL_STEPS (1 << 14)
#endif

/* [untuned]  probe.c: rows of V^T X, or of V (V^T X), of a task; and rows of L that stay in the
   cache. */
#ifndef CPU_PROBE_TASK_ROWS
#define CPU_PROBE_TASK_ROWS 64
#endif
#ifndef CPU_PROBE_CACHED_ROWS
#define CPU_PROBE_CACHED_ROWS 16
#endif

/* [untuned]  pays.c: matrices below this order have one task of the sample, as it is a larger part
   of their time; and levels of the tree that are looked at. */
#ifndef CPU_SAMPLE_ORDER
#define CPU_SAMPLE_ORDER 800
#endif
#ifndef CPU_SAMPLE_LEVELS
#define CPU_SAMPLE_LEVELS 3
#endif

/* [measured: Xeon with AVX-512, n = 256 to 2000]  pays.c: times in units of what twisted
   factorisations of all values take where vectors are not local.  Divide and conquer takes
   CPU_DC_BESIDE, CPU_DC_LEAVES / n, and CPU_DC_MERGES n times the share that predict_merges()
   gives.  Where vectors are local, the twists of values side by side lie far apart, so
   factorisations take up to CPU_LOCAL_VECTORS. */
#ifndef CPU_DC_BESIDE
#define CPU_DC_BESIDE 0.5
#endif
#ifndef CPU_DC_LEAVES
#define CPU_DC_LEAVES 300
#endif
#ifndef CPU_DC_MERGES
#define CPU_DC_MERGES 2.6e-3
#endif
#ifndef CPU_LOCAL_VECTORS
#define CPU_LOCAL_VECTORS 1.9
#endif
#ifndef CPU_LOCAL_MERGES
#define CPU_LOCAL_MERGES 0.7
#endif

/* [untuned]  pays.c: how many times as fast as divide and conquer twisted factorisations must be by
   this estimate. */
#ifndef CPU_TWISTED_MARGIN
#define CPU_TWISTED_MARGIN 1.4
#endif

/* ---- matrix/ ---- */

/* [untuned]  The most bytes of the matrices of a chunk, which has one at least; also of inverse/
   and dense/. */
#ifndef CPU_CHUNK_BYTES
#define CPU_CHUNK_BYTES ((int64_t)32 << 20)
#endif

/* [untuned]  Matrices of up to this many entries are shared out over the threads; larger ones
   follow one another, with all threads at work on each. */
#ifndef CPU_SHARED_ENTRIES
#define CPU_SHARED_ENTRIES (128 * 128)
#endif

/* [untuned]  load.c: rows and columns of a square that is copied at once, whichever of the two lie
   together. */
#ifndef CPU_LOAD_TILE
#define CPU_LOAD_TILE 32
#endif

/* [measured: EPYC, 2 cores, 2026-11-28]  reflectors.c: reflectors that are applied together: BLOCK
   of those with LONG entries or more, and FEW of shorter ones, whose T then takes fewer operations.
   With FEW = 32 and not 64 the products with Q and P of n = 100, 200, 400 and 800 took 0.75, 0.80,
   0.89 and 0.96 times as long in complex128, and 0.75, 0.80, 0.94 and 0.96 in float64.  With 32 for
   n = 1600, too, they took 1.3 times as long in float64.  LONG lies in between. */
#ifndef CPU_REFLECTORS_BLOCK
#define CPU_REFLECTORS_BLOCK 64
#endif
#ifndef CPU_REFLECTORS_FEW
#define CPU_REFLECTORS_FEW 32
#endif
#ifndef CPU_REFLECTORS_LONG
#define CPU_REFLECTORS_LONG 1024
#endif

/* [untuned]  reflectors.c: vectors that are multiplied at once: their products with a block stay in
   the cache. */
#ifndef CPU_REFLECTORS_VECTORS
#define CPU_REFLECTORS_VECTORS 1024
#endif

/* [untuned]  reflectors.c: FROM vectors or more, of TO entries at most, are shared out in slabs of
   SLAB vectors. */
#ifndef CPU_REFLECTORS_SLABS_FROM
#define CPU_REFLECTORS_SLABS_FROM 512
#endif
#ifndef CPU_REFLECTORS_SLABS_TO
#define CPU_REFLECTORS_SLABS_TO 32768
#endif
#ifndef CPU_REFLECTORS_SLAB
#define CPU_REFLECTORS_SLAB 128
#endif

/* [untuned]  reflectors.c, inverse/refine.c: columns or rows of a product, along its longer side,
   that a thread makes at a time. */
#ifndef CPU_PRODUCT_SHARE
#define CPU_PRODUCT_SHARE 128
#endif

/* [derived: a multiple of the tiles of kernels/complex_product.h]  reflectors.c: by the kernel for
   complex numbers a thread makes fewer at a time, multiples of this, where else some would have
   none. */
#ifndef CPU_PRODUCT_TILE
#define CPU_PRODUCT_TILE 12
#endif

/* [untuned]  reflectors.c: this many multiplications are worth more than one thread. */
#ifndef CPU_PRODUCT_SHARED
#define CPU_PRODUCT_SHARED (1 << 20)
#endif

/* ---- bidiagonalize/ ---- */

/* [untuned]  Columns of a panel, while there are CPU_REDUCE_PANELS_FROM columns left; and after
   that. */
#ifndef CPU_REDUCE_PANEL
#define CPU_REDUCE_PANEL 32
#endif
#ifndef CPU_REDUCE_PANELS_FROM
#define CPU_REDUCE_PANELS_FROM 128
#endif
#ifndef CPU_REDUCE_SMALL_PANEL
#define CPU_REDUCE_SMALL_PANEL 8
#endif

/* [measured: EPYC with AVX-512]  Real matrices of up to so many numbers are reduced by a kernel of
   their own.  Values of n = 128 took 318 us, those of n = 129 without it 538. */
#ifndef CPU_REDUCE_SMALL_NUMBERS
#define CPU_REDUCE_SMALL_NUMBERS (1 << 17)
#endif

/* [untuned]  This many numbers are worth more than one thread. */
#ifndef CPU_REDUCE_SHARED_NUMBERS
#define CPU_REDUCE_SHARED_NUMBERS (1 << 15)
#endif

/* [untuned]  band.c: superdiagonals of the band between a dense matrix and its bidiagonal form. */
#ifndef CPU_BAND
#define CPU_BAND 32
#endif

/* [untuned]  band.c: the rank of the products that bring the matrix up to date. */
#ifndef CPU_BAND_RANK
#define CPU_BAND_RANK 128
#endif

/* [measured: EPYC, 2 cores]  band.c: rows of a product with CPU_BAND vectors that a thread makes at
   a time.  With 96 it took 1.3 times as long at n = 2000 in float64, with 384 the same. */
#ifndef CPU_SKINNY_ROWS
#define CPU_SKINNY_ROWS 192
#endif

/* [untuned]  chase.c: sweeps that a thread makes together, so that the band's entries stay in the
   cache; and sweeps whose reflectors are applied together. */
#ifndef CPU_CHASE_SWEEPS
#define CPU_CHASE_SWEEPS 2
#endif
#ifndef CPU_CHASE_DIAMOND
#define CPU_CHASE_DIAMOND 16
#endif

/* [untuned]  chase.c: vectors that a thread multiplies together, at most. */
#ifndef CPU_CHASE_VECTORS
#define CPU_CHASE_VECTORS 256
#endif

/* [measured: EPYC, 2 cores, 2026-11-28]  dense/dense.c: the order from which on a matrix goes
   through a band: for values, for few of the vectors, and for all.  One stage took 1.08, 1.09 and
   1.24 times as long for values of n = 600, 720 and 860, 1.05 and 1.35 for ten vectors of 860 and
   1250, and 0.88 and 1.06 for all of 1500 and 1700.  In single precision it pays from half as much
   more on, and for complex numbers from 0.4 times as much more on. */
#ifndef CPU_BAND_VALUES_FROM
#define CPU_BAND_VALUES_FROM 640
#endif
#ifndef CPU_BAND_FEW_FROM
#define CPU_BAND_FEW_FROM 1000
#endif
#ifndef CPU_BAND_ALL_FROM
#define CPU_BAND_ALL_FROM 1700
#endif

/* ---- dense/ ---- */

/* [untuned]  The order from which on vectors of large values are made from those of the other side.
   Their orthogonality is worse by an amount that does not grow with the order, as the bound does:
   it reached 1.06 of 3 at n = 400. */
#ifndef CPU_OTHER_SIDE_FROM
#define CPU_OTHER_SIDE_FROM 512
#endif

/* [untuned]  QR pays from this many times as many rows as columns on. */
#ifndef CPU_QR_RATIO
#define CPU_QR_RATIO 1.7
#endif

/* [untuned]  Columns whose signs are fixed together. */
#ifndef CPU_SIGNS_TOGETHER
#define CPU_SIGNS_TOGETHER 64
#endif

/* [untuned]  All steps work on a matrix of fewer numbers in one thread. */
#ifndef CPU_DENSE_SHARED_NUMBERS
#define CPU_DENSE_SHARED_NUMBERS (1 << 12)
#endif

/* ---- jacobi/ ---- */

/* [untuned]  The most matrices of a chunk. */
#ifndef CPU_JACOBI_CHUNK
#define CPU_JACOBI_CHUNK 4096
#endif

/* [untuned]  From this order on a square matrix may begin with the vectors of the fast method. */
#ifndef CPU_JACOBI_START_ORDER
#define CPU_JACOBI_START_ORDER 129
#endif

/* [untuned]  pivot.c: columns that a thread takes at a time; and how many numbers to be updated are
   worth more than one thread. */
#ifndef CPU_PIVOT_SHARE
#define CPU_PIVOT_SHARE 16
#endif
#ifndef CPU_PIVOT_SHARED_NUMBERS
#define CPU_PIVOT_SHARED_NUMBERS (1 << 17)
#endif

/* [derived: they stay in the L2 cache]  sweeps.c: bytes of two blocks, of X and of the vectors; and
   bounds on the columns of a block. */
#ifndef CPU_JACOBI_BLOCKS_BYTES
#define CPU_JACOBI_BLOCKS_BYTES (256 << 10)
#endif
#ifndef CPU_JACOBI_BLOCK_LEAST
#define CPU_JACOBI_BLOCK_LEAST 4
#endif
#ifndef CPU_JACOBI_BLOCK_MOST
#define CPU_JACOBI_BLOCK_MOST 32
#endif

/* [untuned]  sweeps.c: columns are looked at in groups where few rotations are left: less than one
   in this many pairs needed one in the sweep before. */
#ifndef CPU_JACOBI_FEW
#define CPU_JACOBI_FEW 8
#endif

/* [untuned]  sweeps.c: this many numbers of X are worth more than one thread. */
#ifndef CPU_JACOBI_SHARED_NUMBERS
#define CPU_JACOBI_SHARED_NUMBERS (1 << 14)
#endif

/* ---- inverse/ ---- */

/* [measured: EPYC with AVX-512]  Matrices up to this order are inverted in lanes, where one takes
   as long as a vector of them: of order 6, 8, 12 and 16 0.8, 1.4, 3.3 and 6.1 us more than of
   order 1.  One by one they take 0.7, 1.9 and 3.0 us more, of order 8, 12 and 16, and in a batch
   four times as long as in lanes. */
#ifndef CPU_INVERSE_LANES_ORDER
#define CPU_INVERSE_LANES_ORDER 8
#endif

/* [derived: the tiles of products have as many terms (host/blas.c)]  The most columns that are
   eliminated together. */
#ifndef CPU_INVERSE_BLOCK
#define CPU_INVERSE_BLOCK 64
#endif

/* [untuned]  This many columns are not halved any more. */
#ifndef CPU_INVERSE_LEAF
#define CPU_INVERSE_LEAF 8
#endif

/* [untuned]  balance.c: rows or columns of a task. */
#ifndef CPU_BALANCE_STRIP
#define CPU_BALANCE_STRIP 128
#endif

/* [untuned]  refine.c: columns of a task. */
#ifndef CPU_REFINE_STRIP
#define CPU_REFINE_STRIP 16
#endif

#endif
