/*
 * Measured crossovers: orders from which on another method, another search, or a CUDA device is
 * faster.
 */
#ifndef TSVDI_CROSSOVER_H
#define TSVDI_CROSSOVER_H

enum {
    /* CPU, values: matrices up to this order by QR, larger ones by bisection.  At n = 8 QR took
       4.1 us and bisection 5.0; at n = 12 they took the same (Xeon with AVX-512, 2.6 GHz). */
    VALUES_QR_ORDER = 8,

    /* CPU, values: matrices of a batch up to this order are bisected many at once, one to a lane.
       The leaves' QR finds approximations for them, so the order is DC_LEAF_COLUMNS (dc.h) at
       most. */
    VALUES_SIDE_BY_SIDE_ORDER = 32,

    /* Matrices in host memory go to a CUDA device as fast as an H200 from these orders on, where
       no device is asked for: with vectors (divide and conquer), and for values alone (bisection).
       api/crossover.c has the orders for other devices.  One H200 against 16 cores, end to end, in
       the three classes of the benchmarks: with vectors it was 0.8 to 0.98 times as fast at n =
       256, faster from 384 on, and 2.2 to 3.7 times as fast at 768; for values alone 1.4 times at
       512 and 1.8 times at 1024.  The orders are above the crossover, since the first use of a
       device in a process costs some tenths of a second. */
    CUDA_ORDER = 768,
    CUDA_VALUES_ORDER = 1024,

    /* Batches of smaller matrices go to the device from this many values on, summed over the batch.
       For orders 8 to 256 and 8192, 32768 and 131072 values the device was with vectors 0.6 to 1.3,
       1.5 to 2.0 and 2.0 to 2.8 times as fast; for values alone 1.4 to 6.6, 2.6 to 15 and 3.1 to 29
       times.  Above the crossover for the same reason. */
    CUDA_BATCH_VALUES = 1 << 17
};

#endif
