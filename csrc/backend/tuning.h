/*
 * Tuning constants of the algorithms: numbers that were chosen for speed, and could be others
 * without results becoming wrong.  Those of the CPU are in cpu/tuning.h, those of CUDA devices in
 * cuda/tuning.h.
 *
 * A comment begins with where the values under it come from:
 *
 *     [measured: ...]  times of this value and of others; on what, where that was noted
 *     [derived: ...]   the limit or the formula that it follows from
 *     [untuned]        a guess that has served: no other value was measured
 *
 * TSVD_TUNING of CMake sets other values (CONTRIBUTING.md), and tsvd._core.tuning() tells those of
 * a build.  So the names are unique in all sources.
 */
#ifndef TSVDI_BACKEND_TUNING_H
#define TSVDI_BACKEND_TUNING_H

/* ---- which method, and which device ---- */

/* [measured: Xeon with AVX-512, 2.6 GHz]  CPU, values: matrices up to this order by QR, larger
   ones by bisection.  At n = 8 QR took 4.1 us and bisection 5.0; at n = 12 they took the same. */
#ifndef VALUES_QR_ORDER
#define VALUES_QR_ORDER 8
#endif

/* [derived: at most DC_LEAF_COLUMNS of math/dc.h, since the leaves' QR finds approximations]  CPU,
   values: matrices of a batch up to this order are bisected many at once, one to a lane. */
#ifndef VALUES_SIDE_BY_SIDE_ORDER
#define VALUES_SIDE_BY_SIDE_ORDER 32
#endif

/* [measured: one H200 against 16 cores, end to end]  Matrices in host memory go to a CUDA device
   as fast as an H200 from these orders on, where no device is asked for: with vectors (divide and
   conquer), and for values alone (bisection).  api/crossover.c has the orders for other devices.
   In the three classes of the benchmarks it was with vectors 0.8 to 0.98 times as fast at n = 256,
   faster from 384 on, and 2.2 to 3.7 times as fast at 768; for values alone 1.4 times at 512 and
   1.8 times at 1024.  The orders are above the crossover, since the first use of a device in a
   process costs some tenths of a second. */
#ifndef CUDA_ORDER
#define CUDA_ORDER 768
#endif
#ifndef CUDA_VALUES_ORDER
#define CUDA_VALUES_ORDER 1024
#endif

/* [measured: one H200 against 16 cores, end to end]  Batches of smaller matrices go to the device
   from this many values on, summed over the batch.  For orders 8 to 256 and 8192, 32768 and 131072
   values the device was with vectors 0.6 to 1.3, 1.5 to 2.0 and 2.0 to 2.8 times as fast; for
   values alone 1.4 to 6.6, 2.6 to 15 and 3.1 to 29 times.  Above the crossover for the same
   reason. */
#ifndef CUDA_BATCH_VALUES
#define CUDA_BATCH_VALUES (1 << 17)
#endif

/* [measured: one H200 against 16 cores]  Dense matrices go to a device as fast as an H200 from this
   work on, summed over the batch: (rows) x (columns) x (the smaller of the two) for each.  For one
   square matrix that is order 256.  With vectors the H200 takes 0.4 of the time of 16 cores there,
   0.6 at order 192, and as long at order 128; without vectors 0.5, 1 and 1.8 times the time.  Other
   shapes, and batches, have their crossover between half and twice this work. */
#ifndef CUDA_DENSE_WORK
#define CUDA_DENSE_WORK (256.0 * 256 * 256)
#endif

/* [measured: a processor with AVX-512]  The CPU's divide and conquer makes the products of merges
   up to this order by its own kernels, and those of larger merges by BLAS.  A BLAS is faster on a
   processor that it has kernels for and we do not.  With AVX-512 ours reach 0.9 to 1.05 times the
   rate of OpenBLAS from order 40 on.  A high order spares small calls the import of SciPy, which
   takes 0.3 s. */
#ifndef BLAS_ORDER
#define BLAS_ORDER 512
#endif

/* [measured: Xeon with AVX-512]  Values are few if they are at most 1 / TWISTED_FEW of all.  For
   few values AUTO tries twisted factorisations without a look at the matrix, as they cost little
   compared with divide and conquer: 0.02 of its time for one value of n = 500, and 0.14 to 0.45 for
   a quarter of the values of n = 300 to 1000. */
#ifndef TWISTED_FEW
#define TWISTED_FEW 4
#endif

/* ---- how work is shared out ---- */

/* [untuned]  Matrices up to this order are shared out over the threads, one thread each; larger
   ones follow one another with all threads at work on each. */
#ifndef BATCH_ORDER_MAX
#define BATCH_ORDER_MAX 256
#endif

/* [untuned]  Rows of one matrix that are worth a thread. */
#ifndef ROWS_PER_THREAD
#define ROWS_PER_THREAD 16
#endif

/* [untuned]  Rotations of one side in a window of QR: enough that loading and storing the vectors
   once a window is cheap compared with the rotations, few enough to stay in cache.  And the least
   sweeps of a window. */
#ifndef WINDOW_ROTATIONS
#define WINDOW_ROTATIONS (1 << 18)
#endif
#ifndef WINDOW_SWEEPS_MIN
#define WINDOW_SWEEPS_MIN 32
#endif

#endif
