/*
 * Dense matrices on the device: vectors of one side from those of the other.
 *
 *     U = A V S^-1,   V^H = S^-1 U^H A
 *
 * That is one product, where reflectors take three or four.  A column is off by its residual over
 * its value.  So only the vectors of large values are made like this (backend/other_side.h).
 * Mirrors csrc/cpu/dense/other_side.c.
 */
#include <algorithm>

#include "dense/other_side.h"

enum { DIVIDE_THREADS = 256 };

uint64_t
tsvdi_cuda_dense_side_bytes(const struct cuda_dense *run, const struct dense_problem *p)
{
    const uint64_t bytes = bytes_of(run->in.r, bytes_of(run->in.c, sizeof(scalar)));
    const bool two_stages = run->stage[run->stages - 1].listed == &tsvdi_cuda_dense_chase_stage;

    /* after one stage the reflectors are as fast; with eps the SVD of B is so far from exact; of a
       tall matrix A is large beside U or V; and what the host has would be uploaded again */
    return two_stages && run->keep == KEEP_VECTORS && p->a.batch.all == 1 && p->vectors &&
                   p->n >= DENSE_OTHER_SIDE_FROM && !(p->call.options->eps > 0) &&
                   p->a.space == TSVD_CUDA &&
                   (double)run->in.r < DENSE_QR_RATIO * (double)run->in.c &&
                   bytes <= DENSE_OTHER_SIDE_BYTES
               ? bytes
               : 0;
}

/* Divides the first `columns` columns of x by s[column], or its rows by s[row]. */
static __global__ void
__launch_bounds__(DIVIDE_THREADS)
    divide_kernel(int64_t columns, int64_t stride, const real *s, int by_row, scalar *x)
{
    const int64_t row = blockIdx.x;

    x += row * stride;
    for (int64_t j = (int64_t)blockIdx.y * DIVIDE_THREADS + threadIdx.x; j < columns;
         j += (int64_t)gridDim.y * DIVIDE_THREADS) {
        x[j] = x[j] / s[by_row ? row : j];
    }
}

tsvd_status
tsvdi_cuda_dense_make_side(struct tsvd_context *ctx, const struct dense_job *job,
                           const struct cuda_dense *run, int64_t count, bool right, char *d_work)
{
    enum { PARTS_MOST = 16 };
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_shape shape = dense_shape_of(job->problem);
    const int64_t m = shape.u_rows, n = shape.v_columns;
    const int64_t rows = right ? count : m, columns = right ? n : count;
    const int64_t stride = right ? n : shape.u_columns;
    scalar *const to = right ? run->out.vh : run->out.u;
    struct cuda_matrices in = run->in;
    struct cuda_factor a, u, vh;
    tsvd_status ret = TSVD_OK;

    in.w = (scalar *)d_work;
    TSVD_TRY(tsvdi_cuda_dense_load(ctx, &job->problem->a, job->begin, &in, 1, NULL));
    a = {in.w, in.r, 0, in.transposed ? TSVDI_AS_STORED : TSVDI_TRANSPOSED};
    u = {run->out.u, shape.u_columns, 0, TSVDI_ADJOINT};
    vh = {run->out.vh, n, 0, TSVDI_ADJOINT};
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, rows, columns, right ? m : n, 1,
                                     right ? u : a, right ? a : vh, 0, to, stride, 0, 1));
    divide_kernel<<<dim3((unsigned)rows,
                         std::min(blocks_for(columns, DIVIDE_THREADS), (unsigned)PARTS_MOST)),
                    DIVIDE_THREADS, 0, call->stream>>>(columns, stride, job->b.s, right, to);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
