/*
 * The kernel of band.cu: the QR of a panel X of up to BAND columns, X = H R with
 * H = I - V T V^H, where V is unit lower trapezoidal and T upper triangular.
 *
 * Cholesky factors make an orthonormal basis of X (CholeskyQR, as in qr/cholesky.cu):
 *
 *     X^H X = R_1^H R_1,   X_1 = X R_1^-1,   X_1^H X_1 = R_2^H R_2,   X_2 = X_1 R_2^-1, ...
 *
 * They may be shifted where X^H X is singular to working precision (Fukaya, Kannan, Nakatsukasa,
 * Yamamoto & Yanagisawa, SIAM J. Sci. Comput. 42 (2020)).  X_p^H X_p = I + E alone tells when it is
 * enough.  The last factor is I + E's first-order one, I + (the upper triangle of E with half its
 * diagonal).  Nothing is assumed of the factors: rows are solved for, so that X_p R_p = X_(p-1).
 *
 * The reflectors are reconstructed from the basis Q (Ballard, Demmel, Grigori, Jacquelin, Nguyen &
 * Solomonik, IPDPS 2014).  With signs S on the diagonal that make pivots of magnitude 1 or more,
 *
 *     Q - (S, 0)^T = V U,   T = -U S V_1^-H,   X = H (S R, 0)^T,   R = ... R_2 R_1,
 *
 * where V_1 is V's square top.  S and the diagonal of R are real, and so is that of the band.
 *
 * If neither gives a basis, X is reduced column by column, with a barrier each, by reflectors of
 * their own.  All blocks have the same numbers and so decide alike; the host does not know.
 *
 * A block has an equal share of the rows, its slice, in shared memory where that holds it.  What is
 * small is made by all blocks alike, or by one of them while others do something else.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BAND_PANEL_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_BAND_PANEL_CUH

#include "bidiagonalize/band_basis.cuh"
#include "bidiagonalize/band_columns.cuh"

/* Bytes of shared memory beside a slice: those that a launch asks for, and those of
   reduce_columns(). */
enum {
    BAND_SHARED = ((int)SQUARE + (int)BAND) * (int)sizeof(scalar) + (int)BAND * (int)sizeof(double),
    BAND_STATIC = 3 * (int)BAND * (int)sizeof(scalar)
};

static __global__ void
__launch_bounds__(BAND_THREADS, 1) band_kernel(const __grid_constant__ struct band_panel q)
{
    extern __shared__ __align__(16) unsigned char shared[];
    struct band_block b;

    b.group = {q.blocks, (int)blockIdx.x, q.arrived, 0};
    b.first = (int)blockIdx.x * q.slice;
    b.rows = q.rows - b.first < q.slice ? q.rows - b.first : q.slice;
    b.factor = (scalar *)shared;
    b.pivot = b.factor + SQUARE;
    b.diagonal = (real *)(b.pivot + BAND);
    b.slice = q.shared ? (scalar *)(shared + BAND_SHARED)
                       : q.slices + (int64_t)blockIdx.x * BAND * q.stride;
    load_slice(q, b);
    switch (make_basis(q, b)) {
    case BASIS_MADE:
        reconstruct(q, b);
        break;
    case BASIS_NOTHING:
        put_nothing(q, b);
        break;
    default:
        reduce_columns(q, b);
    }
}

#endif
