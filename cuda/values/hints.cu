/*
 * Approximations of the values of many small matrices: by implicit QR without vectors, with a
 * thread for each matrix.  They save most of the search by counts: 100,000 matrices of order 32
 * take a third of the time.
 */

/* Where the sweeps put their rotations (QR_TURNS of math/qr_sweep.h): nowhere. */
#include "math/rotation.h"

struct no_turns {
};

#define QR_TURNS struct no_turns

TSVD_HD void
qr_put(QR_TURNS, int, int64_t, struct rotation, struct rotation)
{
}

#include "math/qr_sweep.h"
#include "values/values.h"

/* Stride between the matrices of neighbouring threads in shared memory: odd, so that threads at one
   entry have no bank conflicts. */
static __host__ __device__ int64_t
matrix_stride(int64_t n)
{
    return 2 * n + 1;
}

/* Scales a matrix so that its largest entry is in [1, 2).  Returns the exponent. */
static __device__ real_int
scale_matrix(int64_t n, real *d, real *e)
{
    real most = 0;
    real_int exponent = 0;

    for (int64_t i = 0; i < n; i++) {
        most = r_max(most, r_max(r_abs(d[i]), r_abs(e[i])));
    }
    if (most > 0) {
        (void)r_split(most, &exponent);
        r_scale(d, n, exponent, d);
        r_scale(e, n, exponent, e);
    }
    return exponent;
}

/* Makes the matrices of a warp diagonal.  Each thread finds the block of its next sweep before any
   of them sweeps, so that their sweeps run in parallel. */
static __device__ void
diagonalize(int64_t n, bool busy, real *d, real *e)
{
    struct qr_state q;

    qr_start(&q, n, 0, 0);
    do {
        struct qr_block block;

        busy = busy && qr_next(&q, d, e, &block);
        __syncwarp();
        if (busy) {
            (void)qr_sweep_block(&q, d, e, &block, no_turns());
        }
    } while (__any_sync(0xffffffffu, busy));
}

/* Sorts magnitudes, the largest first. */
static __device__ void
sort_sizes(int64_t n, real *d)
{
    for (int64_t i = 0; i < n; i++) {
        const real size = r_abs(d[i]);
        int64_t at = i;

        for (; at > 0 && d[at - 1] < size; at--) {
            d[at] = d[at - 1];
        }
        d[at] = size;
    }
}

static __global__ void
__launch_bounds__(WARP) hints_kernel(struct values_device v, real *d_hint)
{
    extern __shared__ real entries[];
    const int64_t n = v.n, values = v.last - v.first, first = (int64_t)blockIdx.x * WARP;
    const int here = (int)bracket_min(v.count - first, WARP);
    const bool active = (int)threadIdx.x < here;
    real *d = entries + threadIdx.x * matrix_stride(n), *e = d + n;

    for (int64_t i = threadIdx.x; i < here * n; i += WARP) {
        real *to = entries + i / n * matrix_stride(n) + i % n;

        to[0] = v.d_d[first * n + i];
        to[n] = v.d_e[first * n + i];
    }
    __syncwarp();
    const real_int exponent = active ? scale_matrix(n, d, e) : 0;

    diagonalize(n, active, d, e);
    if (active) {
        sort_sizes(n, d);
        r_scale(d, n, -exponent, d);
    }
    __syncwarp();
    for (int64_t i = threadIdx.x; i < here * values; i += WARP) {
        d_hint[first * values + i] = entries[i / values * matrix_stride(n) + v.first + i % values];
    }
}

bool
tsvdi_cuda_values_hinted(const struct tsvd_context *ctx, struct values_device v)
{
    return v.eps == 0 && v.n > 1 && v.n <= HINTS_ORDER && ctx->total >= HINTS_BATCH &&
           2 * (v.last - v.first) >= v.n;
}

tsvd_status
tsvdi_cuda_values_hints(struct cuda_call *call, struct values_device v, real *d_hint)
{
    const size_t bytes = (size_t)(WARP * matrix_stride(v.n)) * sizeof(real);
    tsvd_status ret = TSVD_OK;

    hints_kernel<<<blocks_for(v.count, WARP), WARP, bytes, call->stream>>>(v, d_hint);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
