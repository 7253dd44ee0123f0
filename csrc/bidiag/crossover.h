/*
 * Measured crossovers: orders from which on another method, another search, or a CUDA device is
 * faster.
 */
#ifndef TSVDI_CROSSOVER_H
#define TSVDI_CROSSOVER_H

enum {
    /* CPU, values: matrices up to this order by QR, larger ones by bisection.  At n = 8 QR took
       4.1 us against 5.0, at n = 12 they took the same (Xeon with AVX-512, 2.6 GHz). */
    VALUES_QR_ORDER = 8,

    /* CPU, values: matrices of a batch up to this order are bisected many at once, one to a lane.
       The leaves' QR finds approximations for them, so it is DC_LEAF_COLUMNS (dc.h) at most. */
    VALUES_SIDE_BY_SIDE_ORDER = 32,

    /* Matrices in host memory from these orders on go to a CUDA device as fast as an H200 where
       none is asked for; api/crossover.c has the orders for other devices.  They are computed
       with vectors by divide and conquer, and values alone by bisection.  On one H200 against 16
       cores, end to end, the device was faster with vectors from n = 384 on in the three classes of
       the benchmarks (at 256: 0.8 to 0.98 times as fast), at 768 2.2 to 3.7 times; values alone at
       n = 512 1.4 times, at 1024 1.8 times.  Somewhat higher, since its first use in a process
       costs some tenths of a second. */
    CUDA_ORDER = 768,
    CUDA_VALUES_ORDER = 1024,

    /* Batches of smaller matrices go there if they have so many values in all.  Of orders 8 to 256
       the device was 0.6 to 1.3 times as fast with vectors at 8192 values, at 32768 1.5 to 2.0, at
       so many 2.0 to 2.8 times; values alone 1.4 to 6.6, 2.6 to 15 and 3.1 to 29 times.  Higher for
       the same reason. */
    CUDA_BATCH_VALUES = 1 << 17
};

#endif
