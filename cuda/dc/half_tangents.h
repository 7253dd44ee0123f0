/*
 * Where a leaf's sweeps put their rotations (QR_TURNS of math/qr_sweep.h): the half tangents of
 * both sides in one place.  Memory limits the log, and a half tangent (math/rotation.h) is a
 * rotation in one number.  Must be included before anything that includes math/qr_sweep.h.
 */
#ifndef TSVDI_CUDA_DC_HALF_TANGENTS_H
#define TSVDI_CUDA_DC_HALF_TANGENTS_H

#ifdef TSVDI_QR_SWEEP_H
#error "include dc/half_tangents.h before math/qr_sweep.h"
#endif

#include "math/rotation.h"

struct half_tangents {
    alignas(2 * sizeof(real)) real right;
    real left;
};

struct half_tangent_log {
    struct half_tangents *pair;
};

#define QR_TURNS struct half_tangent_log

TSVD_HD void
qr_put(QR_TURNS to, int up, int64_t k, struct rotation first, struct rotation second)
{
    const real one = rotation_half_tangent(first), other = rotation_half_tangent(second);
    const struct half_tangents pair = {up ? other : one, up ? one : other};

    to.pair[k] = pair;
}

#endif
