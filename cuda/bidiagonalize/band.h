/*
 * The reduction to bidiagonal form on the device in two stages, through an upper band N of BAND
 * superdiagonals (Grosser & Lang, Parallel Comput. 25 (1999)):
 *
 *     W = Q N P^H,   N = Q B P^H
 *
 *   bidiagonalize/band.cu      W to N
 *   bidiagonalize/chase.cu     N to B
 *   bidiagonalize/diamonds.cu  the reflectors of chase.cu on vectors
 *
 * Sweep i of the chase makes row i of B.  Its step k has a reflector of each side, which acts on
 * the BAND entries from i + 1 + BAND k on, or as many as there are.  Step k has those of the sweeps
 * 0 <= i < n - 1 - BAND k.  CHASE_SWEEPS sweeps are a group, and the reflectors of a group and of
 * one k a diamond: the columns of a parallelogram, each a row below the one before.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BAND_H
#define TSVDI_CUDA_BIDIAGONALIZE_BAND_H

#include "kernels.h"
#include "matrix/matrix.h"

enum { BAND = 64, CHASE_SWEEPS = 32 };

/* The progress when the band is there: four fifths of that of the reduction. */
#define BAND_PROGRESS (0.8 * DENSE_REDUCED)

/* Numbers of the band of order n. */
static __host__ __device__ __forceinline__ int64_t
band_numbers(int64_t n)
{
    return n * (BAND + 1);
}

/* Steps of the chase of order n, and groups of its step k. */
static __host__ __device__ __forceinline__ int64_t
chase_steps(int64_t n)
{
    return (n - 1 + BAND - 1) / BAND;
}

static __host__ __device__ __forceinline__ int64_t
chase_groups(int64_t n, int64_t k)
{
    return (n - 1 - BAND * k + CHASE_SWEEPS - 1) / CHASE_SWEEPS;
}

/* Diamonds of the steps before k: the sum of chase_groups(n, j) = chase_groups(n, 0) - 2 j. */
static __host__ __device__ __forceinline__ int64_t
diamonds_before(int64_t n, int64_t k)
{
    return k * chase_groups(n, 0) - k * (k - 1);
}

/* Numbers of the reflectors of one side: [diamond][CHASE_SWEEPS][BAND], of one step after the
   other.  The first number of a reflector is tau, in the place of v's 1.  Entries of v that there
   are not, and reflectors that there are not, are zero. */
static __host__ __device__ __forceinline__ int64_t
chase_numbers(int64_t n)
{
    return n > 1 ? diamonds_before(n, chase_steps(n)) * CHASE_SWEEPS * BAND : 0;
}

/* band.cu: whether the device has as much shared memory as a panel takes at least. */
bool tsvdi_cuda_dense_band_fits(const struct cuda_device *device);

/* chase.cu: N to B. */

/* A band that is reduced.  All arrays are device memory. */
struct cuda_chase {
    int64_t n;

    /* [n][BAND + 1] N: entry (i, i + j) at [i][j], zero beyond column n - 1.  Its largest entry is
       about 1, in [2^-10, 2^20], or all are zero.  Entry (0, 0) is real. */
    const scalar *band;

    scalar *q, *p; /* [chase_numbers(n)] out: the reflectors of each side; both NULL: not wanted */
    real *d, *e;   /* [n] out: B; e[n - 1] = 0 */
};

/* Bytes of d_work. */
uint64_t tsvdi_cuda_dense_chase_bytes(const struct cuda_device *device, int64_t n);

/* N = Q B P^H.  Q is the product of the reflectors H = I - tau v v^H of the sweeps in ascending
   order, and so is P.  Returns when B is made. */
tsvd_status tsvdi_cuda_dense_chase(struct tsvd_context *ctx, const struct cuda_chase *to,
                                   char *d_work);

/* diamonds.cu: the reflectors on vectors. */

/* Workspace in bytes for `vectors` vectors of order n, or fewer. */
uint64_t tsvdi_cuda_dense_diamonds_bytes(const struct cuda_device *device, int64_t n,
                                         int64_t vectors);

/* Replaces vectors x of order n by Q x, or by Q^H x (adjoint).  reflectors: [chase_numbers(n)] of
   one side.  The x.count vectors are those of one matrix: x.next is not looked at. */
tsvd_status tsvdi_cuda_dense_diamonds_apply(struct tsvd_context *ctx, int64_t n,
                                            const scalar *reflectors, int adjoint,
                                            struct dense_block x, char *d_work);

#endif
