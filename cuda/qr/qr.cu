/*
 * QR of matrices with many more rows than columns, by Householder's reflectors, panel by panel.  It
 * is for what cholesky.cu cannot do, and where all of Q is needed.
 *
 * In a panel each block has an equal share of the rows, and a step has one barrier.  For column a
 * the sums g_l of conj(a_row) b_row over the rows after row i, for each later column b of the
 * panel, are made while step i - 1 changes the panel.  They give the norm, and with v = (1, s a),
 * where s = 1 / (a_i - beta), v^H b = b_i + conj(s) g_l.
 */
#include "matrix/panel.h"
#include "qr/qr.h"

/* Columns of a panel.  Threads have sums of all of them in registers. */
enum { QR_WIDTH = sizeof(scalar) > 8 ? DENSE_WIDTH / 2 : DENSE_WIDTH };

/* A panel of each of `count` matrices. */
struct qr_panel {
    int64_t r, c, count, begin, end;
    int blocks, groups; /* as in reduce.cu */
    scalar *w, *tau;    /* [count][c][r], [count][c] */

    /* Of each group of blocks; [2] by turns. */
    scalar *sums;      /* [2][blocks][QR_WIDTH] parts of g */
    scalar *row;       /* [2][QR_WIDTH] row i as it is before step i */
    unsigned *arrived; /* [1] zero */
};

/* The sums over the block's threads, for each column of the panel, to `to`. */
static __device__ __forceinline__ void
put_sums(const scalar (&sum)[QR_WIDTH], scalar *scratch, scalar *to)
{
    const int t = (int)threadIdx.x, warps = (int)blockDim.x / WARP;

#pragma unroll
    for (int l = 0; l < QR_WIDTH; l++) {
        const scalar all = warp_sum(sum[l]);

        if (t % WARP == 0) {
            scratch[l * warps + t / WARP] = all;
        }
    }
    __syncthreads();
    if (t < QR_WIDTH) {
        scalar all = 0;

        for (int i = 0; i < warps; i++) {
            all += scratch[t * warps + i];
        }
        to[t] = all;
    }
}

/* Step i of the panel in the block's rows, and the sums for step i + 1.  i = begin - 1: only the
   sums. */
static __device__ void
qr_step(const struct qr_panel &q, int block, int64_t i, const scalar *g, const scalar *row,
        scalar *y, scalar *scratch)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x, width = (int)(q.end - q.begin);
    const int64_t low = q.begin + (q.r - q.begin) * block / q.blocks;
    const int64_t high = q.begin + (q.r - q.begin) * (block + 1) / q.blocks;
    const int own = (int)(i - q.begin), turn = (own + 1) & 1;
    struct reflector h = {};
    scalar sum[QR_WIDTH];

    if (own >= 0) {
        h = reflector_of(row[own], n_real(g[own]));
    }
    if (t < QR_WIDTH) {
        y[t] = own >= 0 && t > own && t < width
                   ? n_mul(n_conj(h.tau), n_fma(n_conj(h.scale), g[t], row[t]))
                   : REAL(0);
        if (own >= 0 && t >= own && t < width && i >= low && i < high) {
            q.w[(q.begin + t) * q.r + i] = t == own ? scalar(h.beta) : row[t] - y[t];
        }
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < QR_WIDTH; l++) {
        sum[l] = 0;
    }
    if (own >= 0 && block == 0 && t == 0) {
        q.tau[i] = h.tau;
    }
    for (int64_t at = (low > i + 1 ? low : i + 1) + t; at < high; at += threads) {
        scalar *const w = q.w + q.begin * q.r + at;
        scalar v = 0, next = 0;

        if (own >= 0) {
            v = n_mul(w[own * q.r], h.scale);
            w[own * q.r] = v;
        }
#pragma unroll
        for (int l = 0; l < QR_WIDTH; l++) {
            if (l > own && l < width) {
                scalar x = w[l * q.r];

                if (own >= 0) {
                    x = n_fma(-v, y[l], x);
                    w[l * q.r] = x;
                }
                if (at == i + 1) {
                    q.row[turn * QR_WIDTH + l] = x;
                } else {
                    next = l == own + 1 ? x : next;
                    sum[l] = n_fma(n_conj(next), x, sum[l]);
                }
            }
        }
    }
    put_sums(sum, scratch, q.sums + (turn * q.blocks + block) * QR_WIDTH);
}

static __global__ void
__launch_bounds__(DENSE_THREADS) qr_kernel(const struct qr_panel all)
{
    __shared__ scalar g[QR_WIDTH];
    __shared__ scalar row[QR_WIDTH];
    __shared__ scalar y[QR_WIDTH];
    __shared__ scalar scratch[QR_WIDTH * (DENSE_THREADS / WARP) + DENSE_THREADS];
    const int index = (int)blockIdx.x / all.blocks, block = (int)blockIdx.x % all.blocks;
    struct block_group group = {all.blocks, block, all.arrived + index, 0};
    struct qr_panel q = all;

    q.sums += (int64_t)index * 2 * q.blocks * QR_WIDTH;
    q.row += (int64_t)index * 2 * QR_WIDTH;
    for (int64_t m = index; m < all.count; m += all.groups) {
        q.w = all.w + m * q.r * q.c;
        q.tau = all.tau + m * q.c;
        qr_step(q, block, q.begin - 1, g, row, y, scratch);
        for (int64_t i = q.begin; i < q.end; i++) {
            const int own = (int)(i - q.begin), turn = own & 1, t = (int)threadIdx.x;

            group_barrier(&group);
            if (t >= own && t < q.end - q.begin) { /* q.row has nothing before `own` */
                row[t] = q.row[turn * QR_WIDTH + t];
            }
            sum_parts(q.sums + turn * q.blocks * QR_WIDTH, QR_WIDTH, q.blocks, scratch, g);
            qr_step(q, block, i, g, row, y, scratch);
        }
        group_barrier(&group); /* the next matrix overwrites the same sums */
    }
}

/* R from the upper triangle of W. */
static __global__ void
__launch_bounds__(DENSE_THREADS)
    triangle_kernel(int64_t r, int64_t c, int64_t parts, const scalar *w, scalar *top)
{
    const int64_t matrix = blockIdx.x / parts;
    const int64_t at = (int64_t)(blockIdx.x % parts) * DENSE_THREADS + threadIdx.x;

    if (at < c * c) {
        const int64_t i = at % c, j = at / c;

        top[matrix * c * c + at] = i <= j ? w[(matrix * c + j) * r + i] : REAL(0);
    }
}

/* ---- the panels ---- */

static size_t
lay_out(const struct cuda_device *device, struct qr_panel *q, char *base)
{
    const int64_t most =
        q->count < device->multiprocessors ? device->multiprocessors / q->count : 1;
    const int64_t busy = blocks_for(q->r, DENSE_THREADS), blocks = busy < most ? busy : most;
    const int64_t groups = device->multiprocessors / blocks, panels = blocks_for(q->c, QR_WIDTH);
    size_t at = 0;

    q->blocks = (int)blocks;
    q->groups = (int)(q->count < groups ? q->count : groups);
    q->sums = carve<scalar>(base, &at, (int64_t)q->groups * 2 * blocks * QR_WIDTH);
    q->row = carve<scalar>(base, &at, (int64_t)q->groups * 2 * QR_WIDTH);
    q->arrived = carve<unsigned>(base, &at, panels * q->groups);
    return at;
}

uint64_t
tsvdi_cuda_dense_qr_bytes(const struct cuda_device *device, int64_t r, int64_t c, int64_t count)
{
    struct qr_panel q = {};

    q.r = r;
    q.c = c;
    q.count = count;
    return lay_out(device, &q, NULL) + tsvdi_cuda_dense_reflect_bytes(r, QR_WIDTH, count, c);
}

tsvd_status
tsvdi_cuda_dense_qr(struct tsvd_context *ctx, const struct cuda_qr *qr, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t r = qr->r, c = qr->c, parts = blocks_for(c * c, DENSE_THREADS);
    const struct dense_factor f = {r, qr->count, 0, qr->w, r, r * c, qr->tau, c, 1, NULL};
    struct qr_panel q = {};
    char *d_reflect;
    tsvd_status ret = TSVD_OK;

    q.r = r;
    q.c = c;
    q.count = qr->count;
    d_reflect = d_work + lay_out(call->device, &q, NULL);
    (void)lay_out(call->device, &q, d_work);
    q.w = qr->w;
    q.tau = qr->tau;
    CUDA_TRY(call, cudaMemsetAsync(q.arrived, 0,
                                   (size_t)blocks_for(c, QR_WIDTH) * (size_t)q.groups *
                                       sizeof(*q.arrived),
                                   call->stream));
    for (q.begin = 0; q.begin < c; q.begin = q.end, q.arrived += q.groups) {
        const int64_t end = q.begin + QR_WIDTH < c ? q.begin + QR_WIDTH : c;
        const struct dense_block rest = {qr->w + end * r, r * c, c - end, r, 1, 0};
        void *args[] = {&q};

        q.end = end;
        CUDA_TRY(call, cudaLaunchCooperativeKernel((void *)qr_kernel,
                                                   dim3((unsigned)(q.groups * q.blocks)),
                                                   dim3(DENSE_THREADS), args, 0, call->stream));
        TSVD_TRY(tsvdi_cuda_dense_reflect(ctx, &f, q.begin, end, rest, 1, d_reflect));
    }
    triangle_kernel<<<(unsigned)(parts * qr->count), DENSE_THREADS, 0, call->stream>>>(
        r, c, parts, qr->w, qr->r_factor);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- as a stage ---- */

static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    const struct cuda_qr qr = {own->r, own->c, own->count, own->m, own->tau_q, own[1].m};

    (void)run;
    *outcome = STAGE_MADE;
    return tsvdi_cuda_dense_qr(ctx, &qr, d_work);
}

static uint64_t
factor_bytes(const struct cuda_device *device, const struct stage_run *own)
{
    return tsvdi_cuda_dense_qr_bytes(device, own->r, own->c, own->count);
}

const struct stage tsvdi_cuda_dense_qr_stage = {
    .number = 1,
    .right = false,
    .superdiagonals = 0,
    .otherwise = NULL,
    .numbers = tsvdi_cuda_dense_stage_numbers,
    .factor_bytes = factor_bytes,
    .apply_bytes = tsvdi_cuda_dense_stage_bytes,
    .factor = factor_stage,
    .apply = tsvdi_cuda_dense_stage_apply,
    .expand = NULL,
};
