/*
 * Where "auto" changes from one method to another: measured crossovers.
 */
#ifndef TSVDI_CROSSOVER_H
#define TSVDI_CROSSOVER_H

enum {
    /* CPU, values: matrices up to this order by QR, larger ones by bisection.  At n = 8 QR took
       4.1 us against 5.0, at n = 12 they took the same (Xeon with AVX-512, 2.6 GHz). */
    VALUES_QR_ORDER = 8,

    /* CPU, vectors: matrices from this order on, where the tree has more than a leaf, by divide and
       conquer, smaller ones by QR.  At n = 36 QR took 99 to 116 us against 87, at 64 0.28 to
       0.34 ms against 0.23; up to 32 they took the same, and without a BLAS to import. */
    DC_ORDER = 33,

    /* Matrices in host memory from this order on go to a CUDA device where none is asked for: with
       vectors by divide and conquer, and values alone by bisection.  Not measured yet. */
    CUDA_ORDER = 512,
    CUDA_VALUES_ORDER = 2048
};

#endif
