/*
 * The inverse of a matrix that elimination failed for: the pivots of S grew, or numbers overflowed.
 * Mirrors csrc/cpu/inverse.
 *
 * Large matrices have S = Q R, by Householder's reflectors, and Y = R^-1 Q^H.  R is inverted in
 * place, from diagonal blocks on, two of which make one of twice the order:
 *
 *     ( A  B )^-1   ( A^-1  -A^-1 B D^-1 )
 *     (    D )    = (               D^-1 ).
 *
 * Smaller ones, and those whose Y fails its probe even so, are eliminated with complete pivoting;
 * if that fails too, with numbers of any range.
 *
 * The workspace is allocated when it is needed: the plan of a call does not count it.
 */
#include <algorithm>

#include "inverse/inverse_run.h"
#include "qr/qr.h"

enum { TRIANGLE_ORDER = 32 }; /* of a diagonal block */

/* Y of QR is taken if |Y| |z| times eps is up to this.  Else S is singular but for rounding errors,
   and those of QR replace what elimination may find exactly. */
#define SIZE_MOST 0.0625

/* ---- QR ---- */

/* The inverses of the diagonal blocks of R, in their places; a warp has one, and a lane a column of
   the inverse. */
static __global__ void
__launch_bounds__(TRIANGLE_ORDER) invert_blocks_kernel(int64_t n, scalar *r)
{
    __shared__ scalar a[TRIANGLE_ORDER][TRIANGLE_ORDER + 1];
    __shared__ scalar x[TRIANGLE_ORDER][TRIANGLE_ORDER + 1];
    const int64_t begin = (int64_t)blockIdx.x * TRIANGLE_ORDER;
    const int size = (int)(n - begin < TRIANGLE_ORDER ? n - begin : (int64_t)TRIANGLE_ORDER);
    const int j = (int)threadIdx.x;

    r += begin * (n + 1);
    for (int k = 0; k < size && j < size; k++) {
        a[j][k] = r[k * n + j];
    }
    __syncwarp();
    for (int i = size - 1; i >= 0; i--) {
        scalar sum = i == j ? REAL(1) : REAL(0);

        for (int k = i + 1; k <= j; k++) {
            sum = n_fma(-a[i][k], x[k][j], sum);
        }
        x[i][j] = i <= j ? n_divide(sum, n_divisor_of(a[i][i])) : REAL(0);
    }
    __syncwarp();
    for (int k = 0; k < size && j < size; k++) {
        r[k * n + j] = x[j][k];
    }
}

/* Workspace of the inverse of R. */
static uint64_t
triangle_bytes(int64_t n)
{
    return bytes_of(n / 2, bytes_of((n + 1) / 2, sizeof(scalar)));
}

/* R^-1 in place of R. */
static tsvd_status
invert_triangle(struct tsvd_context *ctx, int64_t n, scalar *d_r, scalar *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    invert_blocks_kernel<<<blocks_for(n, TRIANGLE_ORDER), TRIANGLE_ORDER, 0, call->stream>>>(n,
                                                                                             d_r);
    CUDA_LAUNCHED(call);
    /* tsvdi_cuda_multiply_add() takes matrices as row-major, so it sees the transposes */
    for (int64_t half = TRIANGLE_ORDER; half < n; half *= 2) {
        for (int64_t at = 0; at + half < n; at += 2 * half) {
            const int64_t other = std::min(half, n - at - half);
            scalar *const corner = d_r + (at + half) * n + at;
            const struct cuda_factor a = {d_r + at * (n + 1), n, 0, TSVDI_AS_STORED};
            const struct cuda_factor b = {corner, n, 0, TSVDI_AS_STORED};
            const struct cuda_factor d = {d_r + (at + half) * (n + 1), n, 0, TSVDI_AS_STORED};
            const struct cuda_factor product = {d_work, half, 0, TSVDI_AS_STORED};

            TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, other, half, half, 1, b, a, 0,
                                             d_work, half, 0, 1));
            TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, other, half, other, -1, d, product,
                                             0, corner, n, 0, 1));
        }
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}

/* Y to run->x, from S in run->in.w, which becomes the reflectors. */
static tsvd_status
invert_orthogonal(struct tsvd_context *ctx, const struct cuda_inverse *run)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = run->in.c;
    /* to reflect() the columns of Y are the rows of an array, and the rows of Y its columns: those
       of Y Q^H are conj(Q) times them */
    const struct dense_block rows = {run->x, n * n, n, n, 0, 1};
    const size_t work = std::max({tsvdi_cuda_dense_qr_bytes(call->device, n, n, 1),
                                  tsvdi_cuda_dense_reflect_bytes(n, n, 1, n), triangle_bytes(n)});
    struct cuda_qr qr = {n, n, 1, run->in.w, NULL, run->x};
    struct dense_factor f = {n, 1, 0, run->in.w, n, n * n, NULL, n, 1, NULL};
    char *d_work = NULL;
    size_t at = 0;
    tsvd_status ret = TSVD_OK;

    (void)carve<scalar>(NULL, &at, n);
    TSVD_TRY(tsvdi_cuda_alloc(call, at + work, (void **)&d_work));
    qr.tau = (scalar *)d_work;
    f.tau = qr.tau;
    TSVD_TRY(tsvdi_cuda_dense_qr(ctx, &qr, d_work + at));
    TSVD_TRY(invert_triangle(ctx, n, run->x, (scalar *)(d_work + at)));
    TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &f, 0, n, rows, 0, d_work + at));
out:
    tsvdi_cuda_free(call, d_work);
    return ret;
}

/* ---- both ---- */

/* The state for one matrix. */
struct rescue {
    struct inverse_job job; /* of this matrix alone */
    struct cuda_inverse run;
    scalar *s;       /* [n][n] a copy of S, for refine() */
    char *d_staging; /* [n][n] numbers, staging memory if load() needs it */
    char *d_scale, *d_refine;
};

static size_t
lay_out(struct rescue *q, char *base)
{
    const struct inverse_problem *p = q->job.problem;
    const int64_t n = p->a.rows, numbers = n * n;
    struct cuda_inverse *run = &q->run;
    size_t at = 0;

    run->in.w = carve<scalar>(base, &at, numbers);
    run->in.largest = carve<unsigned long long>(base, &at, 1);
    run->in.exponent = carve<real_int>(base, &at, 1);
    run->in.kind = carve<char>(base, &at, 1);
    run->grown = carve<char>(base, &at, 2);
    run->singular = run->grown + 1;
    run->norms = carve<double>(base, &at, 4);
    run->x_norms = run->norms + 1;
    run->off = run->norms + 2;
    run->size = run->norms + 3;
    run->z = carve<scalar_double>(base, &at, n);
    run->row = carve<int>(base, &at, 2 * n);
    run->column = run->row + n;
    run->marks = carve<struct inverse_marks>(base, &at, 1);
    q->s = carve<scalar>(base, &at, q->job.problem->refine ? numbers : 0);
    q->d_staging = carve<char>(
        base, &at, p->a.space == TSVD_HOST ? numbers * (int64_t)sizeof(scalar) : (int64_t)0);
    q->d_scale = carve<char>(base, &at, (int64_t)tsvdi_cuda_inverse_scale_bytes(n, 1));
    q->d_refine = carve<char>(
        base, &at,
        q->job.problem->refine ? (int64_t)tsvdi_cuda_inverse_refine_bytes(n, 1) : (int64_t)0);
    return at;
}

/* S in place of M, from the caller's array. */
static tsvd_status
prepare(struct tsvd_context *ctx, const struct rescue *q)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct cuda_inverse *run = &q->run;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_dense_load(ctx, &q->job.problem->a, q->job.begin, &run->in, 0,
                                   (scalar *)q->d_staging));
    TSVD_TRY(tsvdi_cuda_inverse_balance(call, run, q->d_scale));
    CUDA_TRY(call, cudaMemsetAsync(run->singular, 0, 1, call->stream));
    CUDA_TRY(call, cudaMemsetAsync(run->grown, 1, 1, call->stream)); /* trust no zero pivot yet */
    if (q->job.problem->refine) {
        CUDA_TRY(call,
                 cudaMemcpyAsync(q->s, run->in.w, (size_t)(run->in.c * run->in.c) * sizeof(scalar),
                                 cudaMemcpyDeviceToDevice, call->stream));
    }
out:
    return ret;
}

/* M's inverse from Y in run->x, and what is found. */
static tsvd_status
finish(struct cuda_call *call, const struct rescue *q, struct inverse_marks *marks)
{
    const struct cuda_inverse *run = &q->run;
    tsvd_status ret = TSVD_OK;

    if (q->job.problem->refine) {
        TSVD_TRY(tsvdi_cuda_inverse_refine(call, run, q->s, q->d_refine));
    }
    CUDA_TRY(call, cudaMemsetAsync(run->marks, 0xff, sizeof(*run->marks), call->stream));
    TSVD_TRY(tsvdi_cuda_inverse_finish(call, run, NULL, run->x, q->d_scale));
    TSVD_TRY(tsvdi_cuda_download(call, marks, run->marks, sizeof(*marks)));
out:
    return ret;
}

/* The same by complete pivoting, where nothing is left to try. */
static tsvd_status
invert_extended(struct tsvd_context *ctx, const struct rescue *q, struct inverse_marks *marks)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct cuda_inverse *run = &q->run;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_inverse_complete_extended(ctx, run));
    CUDA_TRY(call, cudaMemsetAsync(run->marks, 0xff, sizeof(*run->marks), call->stream));
    TSVD_TRY(tsvdi_cuda_inverse_mark(call, run, true));
    TSVD_TRY(tsvdi_cuda_download(call, marks, run->marks, sizeof(*marks)));
out:
    return ret;
}

/* Whether the call fails anyway, for an earlier matrix or another one. */
static bool
is_lost(const struct tsvd_context *ctx, const struct inverse_findings *found, int64_t matrix)
{
    return found->singular < matrix || (found->nonfinite < INT64_MAX && ctx->options->check_finite);
}

tsvd_status
tsvdi_cuda_inverse_rescue(struct tsvd_context *ctx, struct inverse_job *job, int64_t i)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct inverse_problem *p = job->problem;
    const int64_t n = p->a.rows, numbers = n * n;
    const size_t bytes = (size_t)numbers * sizeof(scalar);
    scalar *const to = (scalar *)p->X + (job->begin + i) * numbers;
    struct rescue q = {};
    struct inverse_marks marks = no_marks();
    char *d_arrays = NULL, *d_workspace = NULL;
    bool made = false;
    double size;
    tsvd_status ret = TSVD_OK;

    if (is_lost(ctx, job->found, job->begin + i)) {
        return ret;
    }
    TSVD_TRY(tsvdi_check(ctx, 0));
    q.job = *job;
    q.job.begin += i;
    q.job.count = 1;
    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(&q, NULL), (void **)&d_arrays));
    (void)lay_out(&q, d_arrays);
    q.run.in.r = q.run.in.c = n;
    q.run.in.count = q.run.in.transposed = 1;
    TSVD_TRY(cuda_take(call, p->call.to == TSVD_HOST ? bytes : 0, &d_workspace));
    q.run.x = p->call.to == TSVD_HOST ? (scalar *)d_workspace : to;
    if (n > INVERSE_COMPLETE_ORDER) {
        TSVD_TRY(prepare(ctx, &q));
        TSVD_TRY(invert_orthogonal(ctx, &q.run));
        TSVD_TRY(finish(call, &q, &marks));
        TSVD_TRY(tsvdi_cuda_download(call, &size, q.run.size, sizeof(size)));
        made = marks.grown == ULLONG_MAX && size * (double)R_EPS <= SIZE_MOST;
    }
    if (!made) {
        TSVD_TRY(prepare(ctx, &q));
        TSVD_TRY(tsvdi_cuda_inverse_complete(ctx, &q.run));
        TSVD_TRY(finish(call, &q, &marks));
    }
    if (!made && marks.grown != ULLONG_MAX) {
        TSVD_TRY(prepare(ctx, &q));
        TSVD_TRY(invert_extended(ctx, &q, &marks));
    }
    if (p->call.to == TSVD_HOST) {
        TSVD_TRY(tsvdi_cuda_finish_downloads(
            call)); /* the result of elimination may be in flight to `to` */
        TSVD_TRY(cuda_deliver(ctx, to, q.run.x, bytes));
    }
    tsvdi_cuda_inverse_note(&marks, job->begin + i, job->found);
out:
    tsvdi_cuda_free(call, d_arrays);
    tsvdi_cuda_free_after_downloads(call, d_workspace);
    return ret;
}
