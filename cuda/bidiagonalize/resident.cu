/*
 * The reduction of reduce.cu for what fits the shared memory of all multiprocessors, or of the
 * blocks of a cluster: one kernel, which reads the matrix from memory once.  It is bound by
 * latency, and so a step has two exchanges between blocks and nothing else that waits.
 *
 * Block b of a group keeps the columns l with l mod blocks = b.  Step i has a, which is column i as
 * it is now, and v, y, x and u of the step before, and goes
 *
 *     columns   A_l -= v y_l* + x u_l*;  the products A_l^H a without the first entries, and a^H a
 *     numbers   beta, tau and s = 1 / (a_i - beta) of the column;
 *               y_l = tau (A_il* + s A_l^H a),  r_l = A_il* - y_l
 *     parts     v = s a;  the part of w = sum of A_l r_l that is the block's
 *               the block's parts of r^H r and y^H r
 *   exchange    a part of w goes to the owner of the row, and so does A_(i+1)
 *     sums      w in the block's rows
 *   exchange    w and A_(i+1) go to all blocks, and so do the parts of r^H r and y^H r
 *     numbers   beta', tau' and s' = 1 / (r_(i+1) - beta') of the row; u = s' (r - beta' e_1)
 *               y^H u = s' (y^H r - beta' y_(i+1)*)
 *     column    x = tau' (s' (w - beta' A_(i+1)) - v y^H u)
 *               a = A_(i+1) - v y_(i+1)* - x
 *
 * where * is the conjugate.  The conjugates of y and u are what is kept.
 *
 * Every block makes all of x and a.  A thread has the same rows in all phases, with a, v and x in
 * registers.  One more warp makes the numbers.  It works concurrently with the others, so that
 * the numbers of the row are there before w is.
 *
 * The exchanges are messages (mail.h).  In a cluster they go to the shared memory of the
 * block that reads them; else they are in global memory.  A block takes part in each exchange, also
 * when it has no column left.  No message is overwritten before all have read it:
 *
 *     a part    is sent again when w of the row has arrived, which was made from it
 *     w         is sent again when all have sent parts of the next step, which come from w
 *     a number  has two places, by turns.  It is sent again when w of the next step has arrived,
 *               which has parts from all blocks, and those were sent when all had the number.
 *
 * Steps count on from one matrix to the next, so that this holds there too.
 *
 * The kernel can end early.  The next one then has fewer blocks on the rest of the matrix.
 */
#include "bidiagonalize/bidiagonalize.h"
#include "bidiagonalize/resident_step.cuh"
#include "cluster.h"

/* ---- the kernel ---- */

/* Columns 0 .. end - 1.  Returns the step of the last exchange. */
template <int ROWS>
static __device__ __forceinline__ unsigned
reduce(const struct resident &q, const struct resident_shared &s, struct resident_part p)
{
    const int t = (int)threadIdx.x;
    const bool has_rows = t < ROW_THREADS;
    scalar a[ROWS], v[ROWS], x[ROWS];

#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int k = t + j * ROW_THREADS;

        a[j] = v[j] = x[j] = 0;
        if (has_rows && k < q.rows) {
            a[j] = p.w[k];
#pragma unroll 1
            for (int m = 0; m < p.places; m++) {
                copy_start(s.columns + m * q.rows + k, p.w + own_column(q, p, m) * q.r + k);
            }
        }
    }
#pragma unroll 1
    for (int m = t; m < p.places; m += THREADS) {
        s.yu[m] = {0, 0};
    }
    copies_commit();
    copies_wait(0);
    __syncthreads();
    for (int i = 0; i < q.end; i++) {
        const bool own = p.place < p.places && own_column(q, p, p.place) == i;
        const bool last = i + 1 == q.columns;

        p.place += own;
        p.step += !last;
        if (has_rows) {
            visit_columns<ROWS>(q, s, p, i, a, v, x);
        }
        __syncthreads();
        if (!has_rows) {
            make_row(q, s, p, i);
        }
        __syncthreads();
        if (has_rows) {
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                v[j] = n_mul(a[j], s.numbers->inverse);
            }
        }
        if (!last) {
            scalar column[2 * ROWS];

            if (has_rows) {
                send_parts<ROWS>(q, s, p, i);
                send_sums(q, p, i);
                receive_column<ROWS>(q, p, i, column);
            } else {
                send_numbers(q, s, p, i);
                make_right(q, s, p, i);
            }
            __syncthreads();
            if (has_rows) {
                const struct numbers now = *s.numbers;

#pragma unroll
                for (int j = 0; j < ROWS; j++) {
                    const scalar w = column[2 * j], before = column[2 * j + 1];
                    const scalar au = n_mul(n_fma_real(-now.h.beta, before, w), now.h.scale);

                    x[j] = n_mul(now.h.tau, n_fma(-v[j], now.along, au));
                    a[j] = n_fma(-v[j], now.y, before) - x[j];
                }
            }
        }
        if (own && has_rows) { /* after the exchange, before which others may read column 0 */
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                const int k = t + j * ROW_THREADS;

                if (k > i && k < q.rows) {
                    p.w[i * q.r + k] = v[j];
                }
            }
        }
    }
    if (has_rows && q.end < q.columns) {
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            const int k = t + j * ROW_THREADS;

#pragma unroll 1
            for (int m = p.place; k >= q.end && k < q.rows && m < p.places; m++) {
                const scalar z = n_fma(-v[j], s.yu[m].y, s.columns[m * q.rows + k]);

                p.w[own_column(q, p, m) * q.r + k] = n_fma(-x[j], s.yu[m].u, z);
            }
        }
    }
    __syncthreads();
    return p.step;
}

template <int ROWS>
static __global__ void
__launch_bounds__(THREADS, 1) resident_kernel(const struct resident q)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const struct resident_shared s = share(q, shared);
    const int group = (int)blockIdx.x / q.blocks;
    struct resident_part p;

    p.block = (int)blockIdx.x % q.blocks;
    p.places = (q.columns - p.block + q.blocks - 1) / q.blocks;
    p.place = 0;
    p.step = 0;
    p.mail = mail_of(q, q.cluster ? s.mail : q.mail + group * mail_size(q));
    if (q.cluster) {
#pragma unroll 1
        for (int k = (int)threadIdx.x; k < (int)mail_size(q); k += THREADS) {
            s.mail[k] = {};
        }
        cluster_barrier();
    }
    for (int64_t m = group; m < q.count; m += q.groups) {
        const int64_t at = m * q.c + q.begin;

        p.w = q.w + at * q.r + q.begin;
        p.tau_q = q.tau_q + at;
        p.tau_p = q.tau_p + at;
        p.d = q.d + at;
        p.e = q.e + at;
        p.step = reduce<ROWS>(q, s, p);
    }
    if (q.cluster) {
        cluster_barrier(); /* no block may exit while another one sends to it */
    }
}

/* ---- the launch ---- */

typedef void (*resident_function)(struct resident);

/* The kernel for `rows` rows; NULL: there is none. */
static resident_function
choose_kernel(int64_t rows)
{
    static const struct {
        int rows;
        resident_function kernel;
    } choice[] = {
        {1, resident_kernel<1>},
        {2, resident_kernel<2>},
        {4, resident_kernel<4>},
#if !TSVD_COMPLEX || TSVD_SINGLE
        {8, resident_kernel<8>},
#endif
        {RESIDENT_ROWS, resident_kernel<RESIDENT_ROWS>}
    };

    for (const auto &some : choice) {
        if (some.rows * (int64_t)ROW_THREADS >= rows) {
            return some.kernel;
        }
    }
    return NULL;
}

/* The launch with `blocks` blocks for each matrix.  False: it does not fit. */
static bool
set_blocks(const struct cuda_device *device, struct resident *q, int cluster, int64_t blocks)
{
    q->cluster = cluster;
    q->blocks = (int)blocks;
    q->places = (int)blocks_for(q->columns, blocks);
    for (q->bits = 1; blocks << q->bits < q->rows;) {
        q->bits++;
    }
    q->groups = (int)(device->multiprocessors / blocks);
    if (cluster || q->count < q->groups) { /* clusters need not all be resident */
        q->groups = (int)q->count;
    }
    return shared_bytes(*q) <= (size_t)device->shared_most;
}

/* attribute: of the configuration. */
static cudaLaunchConfig_t
configuration(const struct cuda_device *device, const struct resident *q,
              cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};

    if (q->cluster) {
        *attribute = cluster_attribute(q->blocks);
    } else {
        attribute->id = cudaLaunchAttributeCooperative;
        attribute->val.cooperative = 1;
    }
    config.gridDim = dim3((unsigned)(q->groups * q->blocks));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = shared_bytes(*q);
    config.stream = device->call.stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

/* Whether the device can run a cluster of q's blocks. */
static bool
has_clusters(const struct cuda_device *device, const struct resident *q)
{
    const resident_function kernel = choose_kernel(q->rows);
    cudaLaunchAttribute attribute = {};
    const cudaLaunchConfig_t config = configuration(device, q, &attribute);

    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               device->shared_most);
    return cluster_runs(device, kernel, config);
}

/* How many blocks a matrix takes, and how many matrices are worked on at once.  False: it does not
   fit. */
static bool
share_blocks(const struct cuda_device *device, struct resident *q)
{
    const int64_t most = device->multiprocessors, each = most / q->count;
    struct resident best = *q;
    int64_t blocks = blocks_for(q->columns, DENSE_RESIDENT_COLUMNS);

    if (choose_kernel(q->rows) == NULL) {
        return false;
    }
    best.blocks = 0;
    for (int64_t size = 1; size <= CLUSTER_MOST; size *= 2) {
        if (best.blocks > 0 && (size > each || best.places <= DENSE_CLUSTER_COLUMNS)) {
            break;
        }
        if (set_blocks(device, q, 1, size) && has_clusters(device, q)) {
            best = *q;
        }
    }
    if (best.blocks > 0) {
        *q = best;
        return true;
    }
    blocks = blocks < each ? blocks : each;
    blocks = blocks > 1 ? blocks : 1;
    while (blocks <= most && !set_blocks(device, q, 0, blocks)) {
        blocks++;
    }
    return blocks <= most;
}

/* Room for the messages of any launch. */
uint64_t
tsvdi_cuda_dense_resident_bytes(const struct cuda_device *device, int64_t r, int64_t count)
{
    const int64_t most = (int64_t)RESIDENT_ROWS * ROW_THREADS, rows = r < most ? r : most;
    int64_t messages = 0;

    for (int64_t blocks = 1; blocks <= device->multiprocessors; blocks++) {
        struct resident q = {};

        q.count = count;
        q.rows = (int)rows;
        (void)set_blocks(device, &q, 0, blocks);
        /* with fewer rows each block may own fewer, and so there may be more owners */
        const int64_t size = mail_size(q) + ((int64_t)(q.blocks + 1) << q.bits);

        messages = q.groups * size > messages ? q.groups * size : messages;
    }
    return (uint64_t)messages * sizeof(struct message);
}

static struct resident
resident_of(const struct dense_reduction *to, int64_t begin)
{
    struct resident q = {};
    const int64_t rows = to->r - begin, most = (int64_t)RESIDENT_ROWS * ROW_THREADS;

    q.r = to->r;
    q.c = to->c;
    q.count = to->count;
    q.begin = begin;
    q.rows = (int)(rows < most ? rows : most + 1); /* more are refused; the int must not overflow */
    q.columns = (int)(to->c - begin);
    q.w = to->w;
    q.tau_q = to->tau_q;
    q.tau_p = to->tau_p;
    q.d = to->d;
    q.e = to->e;
    return q;
}

bool
tsvdi_cuda_dense_resident_fits(const struct cuda_device *device, const struct dense_reduction *to,
                               int64_t begin)
{
    struct resident q = resident_of(to, begin);

    return share_blocks(device, &q);
}

tsvd_status
tsvdi_cuda_dense_resident(struct cuda_call *call, const struct dense_reduction *to, int64_t begin,
                          char *d_work)
{
    tsvd_status ret = TSVD_OK;

    while (begin < to->c) {
        struct resident q = resident_of(to, begin);
        cudaLaunchAttribute attribute = {};
        cudaLaunchConfig_t config;
        resident_function kernel;

        (void)share_blocks(call->device, &q);
        /* half of the columns fit fewer blocks, or a cluster */
        q.end = q.cluster || q.columns < DENSE_RESIDENT_HALVED ? q.columns : q.columns / 2;
        q.mail = (struct message *)d_work;
        config = configuration(call->device, &q, &attribute);
        kernel = choose_kernel(q.rows);
        if (!q.cluster) {
            const size_t bytes = (size_t)(q.groups * mail_size(q)) * sizeof(struct message);

            CUDA_TRY(call, cudaMemsetAsync(q.mail, 0, bytes, call->stream));
        }
        CUDA_TRY(call, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            call->device->shared_most));
        CUDA_TRY(call, cudaLaunchKernelEx(&config, kernel, q));
        begin += q.end;
    }
out:
    return ret;
}
