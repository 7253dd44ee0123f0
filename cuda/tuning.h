/*
 * Constants of the CUDA back end.
 */
#ifndef TSVDI_TUNING_H
#define TSVDI_TUNING_H

enum {
    /* vectors.cu: sweeps that pass over the vectors together, columns of a block, and steps
       whose coefficients are staged in shared memory at once */
    WAVE_SWEEPS = 8,
    WAVE_THREADS = 64,
    WAVE_TILE = 32,

    /* givens.cu: rows of a block of the pipeline, half sweeps of a round, and segments of a
       launch, whose blocks must all be resident at once */
    PIPELINE_ROWS = 512,
    PIPELINE_SWEEPS = 512,
    PIPELINE_SEGMENTS = 256,

    /* givens.cu: most rows of a segment that one block finishes (two orthogonal factors and a
       spare one in shared memory), its threads, and half sweeps between two looks at which
       rows are left */
    FINISH_ROWS = 64,
    FINISH_THREADS = 128,
    FINISH_SWEEPS = 256,

    /* columns of the vectors that a block multiplies by a small factor */
    FACTOR_COLUMNS = 64,

    /* tiles of the transpose and of the product in orthonormalize */
    TILE = 32
};

#endif
