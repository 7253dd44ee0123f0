/*
 * Batches of small dense matrices: their reduction with a warp or a block for each, as a stage.
 * All work is on the call's stream, and nothing waits for it.
 *
 *   bidiagonalize/small_run.h    the reduction in short, and what its kernels share
 *   bidiagonalize/small_warp.cuh   up to 32 columns: several threads of a warp for each matrix
 *   bidiagonalize/small_block.cuh  larger ones: a block for each matrix
 */
#include "bidiagonalize/small_block.cuh"
#include "bidiagonalize/small_warp.cuh"

/* Bytes of shared memory that a block gets without a function attribute. */
static const int SHARED_PLAIN = 48 << 10;

enum { BLOCK_ROWS = 1 << 16 }; /* so that positions in a matrix are ints */

/* ---- choices ---- */

/* Threads of a warp that get a matrix with `columns` columns, or vectors. */
static int
group_of(int64_t columns)
{
    return columns <= 4 ? 4 : columns <= 8 ? 8 : columns <= 16 ? 16 : 32;
}

/* Whether a part of a warp reduces a matrix. */
static bool
is_for_warps(int64_t r, int64_t c)
{
    return c <= WARP && r <= DENSE_WARP_ROWS * group_of(c) && r * c <= DENSE_WARP_ENTRIES;
}

/* Threads of a block in which each group has a matrix: no more than `most`, fewer if their matrices
   do not fit, or if there would not be two blocks for each multiprocessor. */
static int
warps_threads(const struct cuda_device *device, int most, int group, int64_t numbers, int64_t count)
{
    int threads = most;

    while (threads > WARP && (threads / group * numbers * (int64_t)sizeof(scalar) > SHARED_PLAIN ||
                              count * group < 2 * (int64_t)device->multiprocessors * threads)) {
        threads /= 2;
    }
    return threads;
}

static int64_t
inside_bytes(int64_t r, int64_t c, int64_t inside)
{
    const int64_t matrix = (c - inside) * block_stride((int)(r - inside));

    return (block_vectors((int)r, (int)c) + matrix) * (int64_t)sizeof(scalar);
}

/* The step from which on a block has the matrix in its shared memory. */
static int
first_inside(const struct cuda_device *device, int64_t r, int64_t c)
{
    int64_t inside = 0;

    while (inside < c && inside_bytes(r, c, inside) > device->shared_most) {
        inside++;
    }
    return (int)inside;
}

static int64_t
slab_bytes(int64_t n, int width)
{
    return panel_numbers((int)n, width) * (int64_t)sizeof(scalar);
}

/* Vectors of a block: enough for `count`, if they fit. */
static int
slab_width(const struct cuda_device *device, int64_t n, int64_t count)
{
    int width = count <= DENSE_SLAB_LEAST ? (int)DENSE_SLAB_LEAST : group_of(count);

    while (width > DENSE_SLAB_LEAST && slab_bytes(n, width) > device->shared_most) {
        width /= 2;
    }
    return width;
}

bool
tsvdi_cuda_dense_small_fits(const struct cuda_device *device, int64_t r, int64_t c)
{
    if (c < 1 || r < c || c > DENSE_BLOCK_COLUMNS || r > BLOCK_ROWS) {
        return false;
    }
    return is_for_warps(r, c) || (inside_bytes(r, c, c) <= device->shared_most &&
                                  slab_bytes(r, DENSE_SLAB_LEAST) <= device->shared_most);
}

/* ---- reduction ---- */

template <int GROUP>
static tsvd_status
launch_reduce_warps(struct cuda_call *call, struct small_batch q)
{
    const int numbers = warp_numbers(q.r, q.c, GROUP);
    const int threads = warps_threads(call->device, WARPS_THREADS, GROUP, numbers, q.count);
    const int matrices = threads / GROUP;
    tsvd_status ret = TSVD_OK;

    reduce_warps_kernel<GROUP><<<blocks_for(q.count, matrices), (unsigned)threads,
                                 (size_t)(matrices * numbers) * sizeof(scalar), call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
launch_reduce_blocks(struct cuda_call *call, struct small_batch q)
{
    const int inside = first_inside(call->device, q.r, q.c), entries = q.r * q.c;
    const unsigned threads = entries < DENSE_SMALL_ENTRIES    ? BLOCK_THREADS / 4
                             : entries < DENSE_MEDIUM_ENTRIES ? BLOCK_THREADS / 2
                                                              : BLOCK_THREADS;
    tsvd_status ret = TSVD_OK;

    /* the attribute belongs to the kernel, which other host threads launch too: all set the same */
    CUDA_TRY(call,
             cudaFuncSetAttribute(reduce_blocks_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  call->device->shared_most));
    reduce_blocks_kernel<<<(unsigned)q.count, threads, (size_t)inside_bytes(q.r, q.c, inside),
                           call->stream>>>(q, inside);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    const struct dense_reduction to = dense_reduction_of(run, own);
    const struct small_batch q = {(int)to.r, (int)to.c, to.count, to.w,
                                  to.tau_q,  to.tau_p,  to.d,     to.e};
    struct cuda_call *call = cuda_of(ctx);

    (void)d_work;
    *outcome = STAGE_MADE;
    if (q.count == 0) {
        return TSVD_OK;
    }
    if (!is_for_warps(q.r, q.c)) {
        return launch_reduce_blocks(call, q);
    }
    switch (group_of(q.c)) {
    case 4:
        return launch_reduce_warps<4>(call, q);
    case 8:
        return launch_reduce_warps<8>(call, q);
    case 16:
        return launch_reduce_warps<16>(call, q);
    default:
        return launch_reduce_warps<32>(call, q);
    }
}

/* ---- reflectors on vectors ---- */

template <int R>
static tsvd_status
launch_apply_warps(struct cuda_call *call, struct small_job job)
{
    constexpr int LEAST = R <= 16 ? R / 4 : 8;
    const int wanted = group_of(job.x.count);
    int group = wanted > LEAST ? wanted : LEAST, numbers, threads, matrices;
    tsvd_status ret = TSVD_OK;

    while (WARP / group * apply_numbers(R, group, job.x.rows) * (int)sizeof(scalar) >
           SHARED_PLAIN) {
        group *= 2;
    }
    numbers = apply_numbers(R, group, job.x.rows);
    threads = warps_threads(call->device, APPLY_THREADS, group, numbers, job.count);
    matrices = threads / group;

    apply_warps_kernel<R>
        <<<blocks_for(job.count, matrices), (unsigned)threads,
           (size_t)(matrices * numbers) * sizeof(scalar), call->stream>>>(job, group);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
launch_apply_blocks(struct cuda_call *call, struct small_job job)
{
    const int width = slab_width(call->device, job.n, job.x.count);
    const unsigned slabs = blocks_for(job.x.count, width);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call,
             cudaFuncSetAttribute(apply_blocks_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  call->device->shared_most));
    apply_blocks_kernel<<<(unsigned)job.count * slabs, PANEL_THREADS,
                          (size_t)slab_bytes(job.n, width), call->stream>>>(job, width, (int)slabs);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
apply(struct tsvd_context *ctx, const struct stage_run *own, int right, int transposed,
      struct dense_block vectors, char *d_work)
{
    const int r = (int)own->r, c = (int)own->c, n = right ? c : r;
    const int shortest = N_PARTS == 1 ? 2 : 1; /* a real reflector of one entry is the identity */
    const int64_t count = own->count;
    struct small_job job = {r,     c,          count, own->m, right ? own->tau_p : own->tau_q,
                            right, transposed, n,     c,      vectors};
    struct cuda_call *call = cuda_of(ctx);

    job.reflectors = c < n - right - shortest + 1 ? c : n - right - shortest + 1;
    (void)d_work;
    if (count == 0 || vectors.count == 0 || job.reflectors <= 0) {
        return TSVD_OK;
    }
    if (n > WARP) {
        return launch_apply_blocks(call, job);
    }
    switch (group_of(n)) {
    case 4:
        return launch_apply_warps<4>(call, job);
    case 8:
        return launch_apply_warps<8>(call, job);
    case 16:
        return launch_apply_warps<16>(call, job);
    default:
        return n <= 24 ? launch_apply_warps<24>(call, job) : launch_apply_warps<32>(call, job);
    }
}

static uint64_t
no_factor_bytes(const struct cuda_device *device, const struct stage_run *own)
{
    (void)device, (void)own;
    return 0;
}

static uint64_t
no_apply_bytes(const struct cuda_device *device, const struct stage_run *own, int64_t vectors)
{
    (void)device, (void)own, (void)vectors;
    return 0;
}

const struct stage tsvdi_cuda_dense_small_stage = {
    .number = 3,
    .right = true,
    .superdiagonals = 1,
    .otherwise = NULL,
    .numbers = tsvdi_cuda_dense_stage_numbers,
    .factor_bytes = no_factor_bytes,
    .apply_bytes = no_apply_bytes,
    .factor = factor_stage,
    .apply = apply,
    .expand = NULL,
};
