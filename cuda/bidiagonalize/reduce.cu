/*
 * Reduction to bidiagonal form on the device, which reads the trailing matrix once a column
 * (Howell, Demmel, Fulton, Hammarling & Marmol, ACM Trans. Math. Softw. 34 (2008)).
 *
 * In a panel the matrix is A - V Y^H - X U^H, where A is what the panel started with.  Step i makes
 * the reflectors v and u of column i and of row i:
 *
 *     y_l = tau (A_l^H v - Y_l V^H v - U_l X^H v)       of each column l > i
 *     r_l = conjugate of row i of column l, less y_l    what u is made of
 *     w   = sum of A_l r_l
 *     u   = (r - beta e_1) / (r_1 - beta)
 *     a   = column i + 1, but for what x changes
 *     x   = tau' (w - V Y^H r - X U^H r - beta a) / (r_1 - beta)
 *
 * so that one visit to column l serves both A^H v and A u.  What is linear in u, or in v, is summed
 * over r, or over the column itself, before the norm is known.
 *
 * A kernel makes a panel.  Cluster k, mostly a single block, has the columns l with l mod clusters
 * = k.  Each block has an equal share of the rows, its slice.  A step has two phases, and a barrier
 * after each:
 *
 *     rows     x of the step before and the next column, in the block's slice; sums of V^H a, X^H a
 *     columns  v; y, r and w of the block's columns, which come through shared memory; sums of
 *              Y^H r, U^H r
 *
 * Small matrices are bound by latency, not by bandwidth.  So a phase first issues all loads of what
 * other blocks have made, and waits once.  What its own block has made, and A, which no step
 * changes, it prefetches before the barrier.  The copies of columns never pause: after the last of
 * a step come the first of the next, and what all threads hold in registers is overwritten at once.
 *
 * Columns that are too long for one block have the blocks of a cluster, each of which holds an
 * equal share of the rows of v, of w and of the columns.  They send one another their parts of y
 * and of row i, as messages (mail.h).  The first block of a cluster makes what a column needs once.
 *
 * A product then updates the trailing matrix.  When the rest fits shared memory, resident.cu
 * reduces it.  Several groups of blocks work on several matrices.
 *
 * V X  [SLOTS][r] of each matrix: v of the panel's k-th step in slot 2 k, x in slot 2 k + 1.  The
 *      last slot has the next column until its x comes.
 * Y U  [c][SLOTS] of each matrix: the y's and the u's of a column, their conjugates, in the same
 *      order
 */
#include "bidiagonalize/bidiagonalize.h"
#include "bidiagonalize/reduce_visit.cuh"
#include "cluster.h"

/* Clears what a cluster's blocks send to one another, before one of them sends. */
template <int COLUMNS>
static __device__ __forceinline__ void
prepare_mail(struct cluster_mail<COLUMNS> *mail)
{
    unsigned long long *const word = (unsigned long long *)mail;

    for (int k = (int)threadIdx.x; k < (int)(sizeof(*mail) / sizeof(*word));
         k += DENSE_PANEL_THREADS) {
        word[k] = 0;
    }
    cluster_barrier();
}

template <int ROWS, int COLUMNS, int CLUSTER>
static __global__ void
__launch_bounds__(DENSE_PANEL_THREADS, 1) panel_kernel(const __grid_constant__ struct panel p)
{
    extern __shared__ __align__(16) unsigned char shared[]; /* bulk copies go there */
    struct part &q = *(struct part *)shared; /* in registers it would displace v and w */
    struct cluster_mail<COLUMNS> *const mail =
        (struct cluster_mail<COLUMNS> *)(shared + PART_BYTES);
    const struct panel_shared s = share((scalar *)(mail + CLUSTER), COLUMNS);
    const int index = (int)blockIdx.x / p.blocks, block = (int)blockIdx.x % p.blocks;
    const int cluster = block / p.ranks;
    const int size = COLUMNS * column_stride((p.r - p.begin + p.ranks - 1) / p.ranks);
    struct block_group group = {p.blocks, block, p.arrived + index, 0};
    struct ring ring = {s.buffer, (uint64_t *)(shared + sizeof(q)), p.buffers, size, 0, 0};
    unsigned visit = 0;

    static_assert(COLUMNS * SLOTS <= DENSE_PANEL_THREADS, "each slot of a visit has its thread");
    ring_prepare(ring);
    if (CLUSTER) {
        prepare_mail<COLUMNS>(mail);
    }
    for (int64_t m = index; m < p.count; m += p.groups) {
        /* the cluster's first column that is not before i */
        int own = p.begin + (cluster - p.begin % p.clusters + p.clusters) % p.clusters;
        struct cursor cursor = {p.begin, own, column_after(p, own, p.begin)};
        struct ahead ahead;

        if (threadIdx.x == 0) {
            q = part_of(p, m, index, block, p.slice > 0 ? s.buffer + p.buffers * size : NULL);
        }
        __syncthreads();
        for (int k = 0; k < p.buffers; k++) {
            const int buffer = ring.now + k;

            fetch<COLUMNS>(p, q, ring, buffer < p.buffers ? buffer : buffer - p.buffers,
                           {0, COLUMN_END}, cursor);
        }
        ahead = look_ahead(p, q, p.begin, own);
        for (int i = p.begin; i < p.c; i++) {
            scalar mine;

            make_column(p, q, s, i, ahead);
            if (i == p.end) {
                break;
            }
            group_arrive(&group);
            own = column_after(p, own, i);
            mine = entry_of_yu(p, q, COLUMNS, 2 * (i - p.begin), own);
            group_wait(&group);
            visit_columns<ROWS, COLUMNS, CLUSTER>(p, q, s, mail, ring, cursor, i, own, mine, visit);
            group_arrive(&group);
            ahead = look_ahead(p, q, i + 1, own);
            group_wait(&group);
        }
        copies_wait(0);
        __syncthreads(); /* before the next matrix's numbers */
    }
    if (CLUSTER) {
        cluster_barrier(); /* no block may exit while another one sends to it */
    }
}

/* ---- the panels ---- */

typedef void panel_function(struct panel);

/* A kernel, and what it takes. */
struct panel_choice {
    panel_function *kernel;
    int rows, columns; /* of a thread; of a visit */
    size_t mail;       /* bytes of shared memory for messages; 0: a cluster is a block */
};

/* Bytes of shared memory, but for buffers and the slice, and of a buffer. */
static size_t
least_bytes(struct panel_choice choice)
{
    return PART_BYTES + choice.mail + (size_t)panel_numbers(choice.columns) * sizeof(scalar);
}

static size_t
buffer_bytes(struct panel_choice choice, int rows)
{
    return choice.rows > 0 ? (size_t)(choice.columns * column_stride(rows)) * sizeof(scalar) : 0;
}

/* The first kernel of `choice` whose blocks hold `rows` rows of a column.  False: there is none, or
   its columns do not fit shared memory. */
template <int N>
static bool
choose_kernel(const struct cuda_device *device, const struct panel_choice (&choice)[N], int rows,
              struct panel_choice *chosen)
{
    for (struct panel_choice some : choice) {
        if (some.rows * DENSE_PANEL_THREADS >= rows) {
            *chosen = some;
            return least_bytes(some) + buffer_bytes(some, rows) <= (size_t)device->shared_most;
        }
    }
    return false;
}

/* Cuts up to `most` blocks into groups of whole clusters: how large they are, and how many. */
static void
share_blocks(int ranks, int64_t most, struct panel *q)
{
    const int64_t each = q->count < most ? most / q->count : 1;
    const int64_t blocks = each < MOST_BLOCKS ? each : (int64_t)MOST_BLOCKS;

    q->ranks = ranks;
    q->clusters = blocks < ranks ? 1 : (int)(blocks / ranks);
    q->blocks = q->clusters * ranks;
    q->groups = (int)(most / q->blocks < q->count ? most / q->blocks : q->count);
}

/* The launch of a panel; attribute [2]: of the configuration. */
static cudaLaunchConfig_t
configuration(const struct cuda_device *device, const struct panel *q, size_t shared_bytes,
              cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};

    attribute[0].id = cudaLaunchAttributeCooperative;
    attribute[0].val.cooperative = 1;
    attribute[1] = cluster_attribute(q->ranks);
    config.gridDim = dim3((unsigned)(q->groups * q->blocks));
    config.blockDim = dim3(DENSE_PANEL_THREADS);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = device->call.stream;
    config.attrs = attribute;
    config.numAttrs = q->ranks > 1 ? 2 : 1;
    return config;
}

/* Shares columns out among the fewest blocks of clusters that hold them.  False: the device has no
   such clusters.  On an H200 the values of n = 8192 in complex128 take 1.02 s.  With clusters of
   four and two columns a visit they took 1.24 s.  When a visit ended after the next one had begun,
   so that its messages travelled meanwhile, they took 1.09 s. */
static bool
choose_clusters(const struct cuda_device *device, int rows, struct panel *q,
                struct panel_choice *chosen)
{
    static const struct panel_choice choice[] = {
#if TSVD_SINGLE && !TSVD_COMPLEX
        {panel_kernel<48, 2, 1>, 48, 2, sizeof(struct cluster_mail<2>)},
        {panel_kernel<64, 1, 1>, 64, 1, sizeof(struct cluster_mail<1>)},
        {panel_kernel<80, 1, 1>, 80, 1, sizeof(struct cluster_mail<1>)},
#elif TSVD_COMPLEX && !TSVD_SINGLE
        {panel_kernel<12, 1, 1>, 12, 1, sizeof(struct cluster_mail<1>)},
        {panel_kernel<16, 1, 1>, 16, 1, sizeof(struct cluster_mail<1>)},
        {panel_kernel<20, 1, 1>, 20, 1, sizeof(struct cluster_mail<1>)},
#else
        {panel_kernel<24, 2, 1>, 24, 2, sizeof(struct cluster_mail<2>)},
        {panel_kernel<32, 1, 1>, 32, 1, sizeof(struct cluster_mail<1>)},
        {panel_kernel<40, 1, 1>, 40, 1, sizeof(struct cluster_mail<1>)},
#endif
    };

    for (int ranks = 2; ranks <= MOST_RANKS; ranks *= 2) {
        cudaLaunchAttribute attribute[2] = {};
        cudaLaunchConfig_t config;
        int clusters;

        if (!choose_kernel(device, choice, (int)blocks_for(rows, ranks), chosen)) {
            continue;
        }
        share_blocks(ranks, device->multiprocessors, q);
        (void)cudaFuncSetAttribute(chosen->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   device->shared_most);
        config = configuration(device, q, (size_t)device->shared_most, attribute);
        clusters = clusters_running(device, chosen->kernel, config);
        if (clusters > 0) {
            share_blocks(ranks, (int64_t)clusters * ranks, q);
            return true;
        }
    }
    return false;
}

/* Chooses the kernel, and shares matrices and columns out among blocks. */
static struct panel_choice
choose_launch(const struct cuda_device *device, struct panel *q)
{
    /* may_miss() relies on the differences between their rows */
    static const struct panel_choice choice[] = {
#if TSVD_SINGLE && !TSVD_COMPLEX
        {panel_kernel<4, 4, 0>, 4, 4, 0},
        {panel_kernel<8, 4, 0>, 8, 4, 0},
        {panel_kernel<12, 4, 0>, 12, 4, 0},
        {panel_kernel<16, 4, 0>, 16, 4, 0},
        {panel_kernel<24, 2, 0>, 24, 2, 0},
        {panel_kernel<32, 2, 0>, 32, 2, 0},
        {panel_kernel<48, 1, 0>, 48, 1, 0},
        {panel_kernel<64, 1, 0>, 64, 1, 0},
        {panel_kernel<80, 1, 0>, 80, 1, 0},
#elif TSVD_COMPLEX && !TSVD_SINGLE
        {panel_kernel<4, 2, 0>, 4, 2, 0},
        {panel_kernel<8, 2, 0>, 8, 2, 0},
        {panel_kernel<12, 1, 0>, 12, 1, 0},
        {panel_kernel<16, 1, 0>, 16, 1, 0},
        {panel_kernel<20, 1, 0>, 20, 1, 0},
#else
        {panel_kernel<4, 4, 0>, 4, 4, 0},
        {panel_kernel<8, 4, 0>, 8, 4, 0},
        {panel_kernel<12, 2, 0>, 12, 2, 0},
        {panel_kernel<16, 2, 0>, 16, 2, 0},
        {panel_kernel<24, 1, 0>, 24, 1, 0},
        {panel_kernel<32, 1, 0>, 32, 1, 0},
        {panel_kernel<40, 1, 0>, 40, 1, 0},
#endif
    };
    const struct panel_choice any = {panel_kernel<0, 1, 0>, 0, 1, 0};
    const int rows = q->r - q->begin;
    struct panel_choice chosen;

    if (!choose_kernel(device, choice, rows, &chosen)) {
        if (choose_clusters(device, rows, q, &chosen)) {
            return chosen;
        }
        chosen = any;
    }
    share_blocks(1, device->multiprocessors, q);
    return chosen;
}

/* How many buffers fit shared memory next to `bytes` other bytes. */
static int
buffers_beside(const struct cuda_device *device, size_t bytes, size_t buffer)
{
    int buffers = 0;

    while (buffer > 0 && buffers < DENSE_BUFFERS &&
           bytes + (size_t)(buffers + 1) * buffer <= (size_t)device->shared_most) {
        buffers++;
    }
    return buffers;
}

/* Arrays for as many blocks and groups as any panel has. */
static size_t
lay_out(const struct cuda_device *device, struct panel *q, char *base)
{
    const int64_t parts = device->multiprocessors, r = q->r, c = q->c;
    size_t at = 0;

    share_blocks(1, device->multiprocessors, q);

    q->vx = carve<scalar>(base, &at, q->count * SLOTS * r);
    q->yu = carve<scalar>(base, &at, q->count * SLOTS * c);
    q->row = carve<scalar>(base, &at, q->groups * c);
    q->sums = carve<scalar>(base, &at, parts * r);
    q->left = carve<scalar>(base, &at, parts * SLOTS);
    q->right = carve<scalar>(base, &at, parts * SLOTS);
    q->arrived = carve<unsigned>(base, &at, (int64_t)blocks_for(c, PANEL_WIDTH) * q->groups);
    return at;
}

static uint64_t
factor_bytes(const struct cuda_device *device, const struct stage_run *own)
{
    struct panel q = {};

    q.r = (int)own->r;
    q.c = (int)own->c;
    q.count = own->count;
    return lay_out(device, &q, NULL) + tsvdi_cuda_dense_resident_bytes(device, own->r, own->count);
}

/* Chooses the columns that stay in `bytes` bytes of cache.  They are an equal share of each block's
   columns, evenly spread over a step, so that the cache and the memory are read at the same time.
   On a circle of 2^32, column l is `kept` after the column before it of its block, and about a
   golden section of the circle after column l - 1. */
static void
keep_columns(struct panel *q, int64_t bytes)
{
    const int64_t columns = q->c - q->begin;
    const int64_t column = (int64_t)(q->r - q->begin) * q->groups * (int64_t)sizeof(scalar);
    const int64_t turn = (int64_t)1 << 32, fit = bytes / column;
    const int64_t kept = fit < columns ? fit * turn / columns : turn - 1;

    q->kept = (unsigned)kept;
    q->spread = (unsigned)((q->clusters * 5 / 8 * turn + kept) / q->clusters);
}

static tsvd_status
launch_panel(struct cuda_call *call, struct panel q)
{
    const struct panel_choice choice = choose_launch(call->device, &q);
    const int rows = q.r - q.begin, longest = (int)blocks_for(rows, q.blocks);
    const size_t least = least_bytes(choice);
    const size_t buffer = buffer_bytes(choice, (int)blocks_for(rows, q.ranks));
    const size_t slice = (size_t)SLOTS * (size_t)longest * sizeof(scalar);
    const int most = buffers_beside(call->device, least, buffer);
    const int beside = buffers_beside(call->device, least + slice, buffer);
    cudaLaunchAttribute attribute[2] = {};
    cudaLaunchConfig_t config;
    int cache = 0;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, call->device->number));
    keep_columns(&q, (int64_t)cache * DENSE_CACHE_PERCENT / 100);
    /* Three buffers of copies take precedence over the slice, more buffers do not.  [untuned] */
    q.slice = least + slice <= (size_t)call->device->shared_most && (beside == most || beside >= 3)
                  ? longest
                  : 0;
    q.buffers = q.slice > 0 ? beside : most;
    CUDA_TRY(call, cudaFuncSetAttribute(choice.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        call->device->shared_most));
    config =
        configuration(call->device, &q,
                      least + (q.slice > 0 ? slice : 0) + (size_t)q.buffers * buffer, attribute);
    CUDA_TRY(call, cudaLaunchKernelEx(&config, choice.kernel, q));
out:
    return ret;
}

/* A -= V Y^H + X U^H in the trailing matrix. */
static tsvd_status
update(struct cuda_call *call, const struct panel *q)
{
    const int64_t r = q->r, c = q->c, at = q->end;
    const struct cuda_factor yu = {q->yu + at * SLOTS, SLOTS, c * SLOTS, 0};
    const struct cuda_factor vx = {q->vx + at, r, r * SLOTS, 0};

    return tsvdi_cuda_multiply_add(call, SCALAR_KIND, c - at, r - at, SLOTS, -1, yu, vx, 1,
                                   q->w + at * r + at, r, r * c, q->count);
}

static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_reduction to = dense_reduction_of(run, own);
    struct panel q = {};
    char *d_resident;
    int turn = 0;
    tsvd_status ret = TSVD_OK;

    *outcome = STAGE_MADE;
    q.r = (int)to.r;
    q.c = (int)to.c;
    q.count = to.count;
    q.w = to.w;
    q.tau_q = to.tau_q;
    q.tau_p = to.tau_p;
    q.d = to.d;
    q.e = to.e;
    d_resident = d_work + lay_out(call->device, &q, d_work);
    CUDA_TRY(call,
             cudaMemsetAsync(q.arrived, 0,
                             blocks_for(q.c, PANEL_WIDTH) * (size_t)q.groups * sizeof(*q.arrived),
                             call->stream));
    TSVD_TRY(tsvdi_cuda_make_marks(call));
    for (q.begin = 0; q.begin < q.c; q.begin = q.end, q.arrived += q.groups, turn = 1 - turn) {
        if (tsvdi_cuda_dense_resident_fits(call->device, &to, q.begin)) {
            TSVD_TRY(tsvdi_cuda_dense_resident(call, &to, q.begin, d_resident));
            break;
        }
        q.end = q.begin + PANEL_WIDTH < q.c ? q.begin + PANEL_WIDTH : q.c;
        TSVD_TRY(launch_panel(call, q));
        if (q.end < q.c) {
            TSVD_TRY(update(call, &q));
        }
        /* at most two panels are queued: else check() would run long before them */
        CUDA_TRY(call, cudaEventSynchronize(call->device->mark[turn]));
        CUDA_TRY(call, cudaEventRecord(call->device->mark[turn], call->stream));
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}

const struct stage tsvdi_cuda_dense_bidiagonalize_stage = {
    .number = 2,
    .right = true,
    .superdiagonals = 1,
    .otherwise = NULL,
    .numbers = tsvdi_cuda_dense_stage_numbers,
    .factor_bytes = factor_bytes,
    .apply_bytes = tsvdi_cuda_dense_stage_bytes,
    .factor = factor_stage,
    .apply = tsvdi_cuda_dense_stage_apply,
    .expand = NULL,
};
