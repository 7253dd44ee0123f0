/*
 * Where "auto" changes from one method to another: measured crossovers.
 */
#ifndef TSVDI_CROSSOVER_H
#define TSVDI_CROSSOVER_H

enum {
    /* CPU, values: matrices up to this order by QR, larger ones by bisection.  At n = 8 QR took
       4.1 us against 5.0, at n = 12 they took the same (Xeon with AVX-512, 2.6 GHz). */
    VALUES_QR_ORDER = 8,

    /* CPU, vectors: matrices from this order on by divide and conquer, smaller ones by QR. */
    DC_ORDER = 64
};

#endif
