/*
 * One-sided Jacobi on the device: the operations of the seam.  Mirrors csrc/cpu/jacobi/jacobi.c.
 *
 *   jacobi/jacobi_run.h     what the kernels share
 *   jacobi/warp.cuh    up to 32 x 32: several threads of a warp for each matrix
 *   jacobi/pairs.cuh   17 to 32 rows, of ordinary condition: QR first, then half a warp; of
 *                      complex128 9 to 16 rows
 *   jacobi/block.cuh   up to 128 columns: a block for each matrix
 *   jacobi/place.cuh   the results of these three
 *   jacobi/large.h   larger ones, one after another
 */
#include <limits.h>

#include "jacobi/block.cuh"
#include "jacobi/large.h"
#include "jacobi/pairs.cuh"
#include "jacobi/place.cuh"

enum {
    /* so that 64 KB of shared memory hold a weight and a part for each row, and FIXED */
    ROWS_MOST = sizeof(scalar) > 8 ? 2560 : 3840,
    THREADS = 256,
    FIXED = 4096, /* bytes of static shared memory of complete_kernel, at most */
    /* Of Gram-Schmidt.  The first one leaves about 1 / sqrt(rows) of the length or more, so two
       would do. */
    PASSES = 3
};

/* What a job holds. */
struct cuda_jacobi {
    struct cuda_matrices in; /* W, not scaled, so that nothing underflows */
    struct cuda_results out; /* where the results are made */
    struct jacobi_batch batch;
    scalar *extra;  /* [count][r - c][r] vectors after those of W; NULL: not wanted */
    int64_t longer; /* how many vectors of r entries are wanted: k, r or 0 */
    bool is_large;
    struct jacobi_large large; /* only if is_large */
    char *d_arrays, *d_workspace;
    char *d_work; /* in d_workspace */
};

/* ---- vectors that W lacks ---- */

/* The place of the largest weight; on a tie the first. */
static __device__ __forceinline__ int
heaviest(const real *weight, int count, real *best, int *place)
{
    const int me = (int)threadIdx.x;

    best[me] = -1;
    place[me] = 0;
    for (int i = me; i < count; i += THREADS) {
        if (weight[i] > best[me]) {
            best[me] = weight[i];
            place[me] = i;
        }
    }
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half && (best[me + half] > best[me] ||
                          (best[me + half] == best[me] && place[me + half] < place[me]))) {
            best[me] = best[me + half];
            place[me] = place[me + half];
        }
        __syncthreads();
    }
    return place[0];
}

/* sum - |x|^2 */
static __device__ __forceinline__ real
without(scalar x, real sum)
{
    return n_real(n_fma(-x, n_conj(x), sum));
}

/* Room for the weights of r rows, after which there are scalars. */
static __host__ __device__ __forceinline__ int
weights_for(int r)
{
    return r + r % N_PARTS;
}

/* Adds vectors to those of the values that are not zero, up to `vectors` in all.  Each begins as
   the unit vector that is farthest from the vectors so far, and repeated Gram-Schmidt makes it
   orthogonal to them. */
static __global__ void
__launch_bounds__(THREADS) complete_kernel(struct jacobi_batch q, scalar *extra, int vectors)
{
    extern __shared__ char shared[] __align__(16);
    __shared__ real best[THREADS], norm;
    __shared__ int place[THREADS];
    const int64_t matrix = blockIdx.x;
    const int me = (int)threadIdx.x, lane = me % WARP, warp = me / WARP;
    real *const weight = (real *)shared;
    scalar *const part = (scalar *)(weight + weights_for(q.r));

    if (q.rank[matrix] >= vectors) {
        return;
    }
    for (int i = me; i < q.r; i += THREADS) {
        real sum = 1;

        for (int j = 0; j < q.rank[matrix]; j++) {
            sum = without(basis_vector(q, extra, matrix, j)[i], sum);
        }
        weight[i] = sum;
    }
    __syncthreads();
    for (int j = q.rank[matrix]; j < vectors; j++) {
        scalar *const x = basis_vector(q, extra, matrix, j);
        const int pick = heaviest(weight, q.r, best, place);

        for (int i = me; i < q.r; i += THREADS) {
            x[i] = REAL(i == pick);
        }
        __syncthreads();
        for (int pass = 0; pass < PASSES; pass++) {
            for (int l = warp; l < j; l += THREADS / WARP) {
                const scalar *const y = basis_vector(q, extra, matrix, l);
                scalar sum = 0;

                for (int i = lane; i < q.r; i += WARP) {
                    sum = n_fma(x[i], n_conj(y[i]), sum);
                }
                sum = warp_sum(sum);
                if (lane == 0) {
                    part[l] = sum;
                }
            }
            __syncthreads();
            for (int i = me; i < q.r; i += THREADS) {
                scalar left = x[i];

                for (int l = 0; l < j; l++) {
                    left = n_fma(-part[l], basis_vector(q, extra, matrix, l)[i], left);
                }
                x[i] = left;
            }
            __syncthreads();
        }
        if (warp == 0) {
            real square = 0;

            for (int i = lane; i < q.r; i += WARP) {
                square = n_add_abs2(x[i], square);
            }
            square = warp_sum(square);
            if (lane == 0) {
                norm = r_sqrt(square);
            }
        }
        __syncthreads();
        for (int i = me; i < q.r; i += THREADS) {
            x[i] = x[i] / norm;
            weight[i] = without(x[i], weight[i]);
        }
        __syncthreads();
    }
}

/* ---- the sweeps ---- */

template <int G>
static tsvd_status
launch_warps(struct cuda_call *call, const struct jacobi_batch &q)
{
    const unsigned blocks = blocks_for(q.count, JACOBI_WARP_THREADS / G);
    tsvd_status ret = TSVD_OK;

    if (q.v != NULL) {
        jacobi_warp_kernel<G, true><<<blocks, JACOBI_WARP_THREADS, 0, call->stream>>>(q);
    } else {
        jacobi_warp_kernel<G, false><<<blocks, JACOBI_WARP_THREADS, 0, call->stream>>>(q);
    }
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Whether pairs.cuh tries the matrices first. */
static bool
are_paired(int r)
{
    return r > PAIR_LANES && r <= PAIR_ORDER;
}

static tsvd_status
launch_pairs(struct cuda_call *call, const struct jacobi_batch &q, const struct jacobi_results &to)
{
    const unsigned blocks = blocks_for(q.count, (int)PAIR_THREADS / (int)PAIR_LANES);
    const auto kernel = q.v != NULL ? jacobi_pairs_kernel<true> : jacobi_pairs_kernel<false>;
    tsvd_status ret = TSVD_OK;

    /* PAIR_BLOCKS blocks take nearly all of the shared memory */
    CUDA_TRY(call, cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared));
    kernel<<<blocks, PAIR_THREADS, 0, call->stream>>>(q, to);
    CUDA_LAUNCHED(call);
    TSVD_TRY(launch_warps<PAIR_ORDER>(call, q)); /* the matrices that were refused */
out:
    return ret;
}

static tsvd_status
launch_blocks(struct cuda_call *call, const struct jacobi_batch &q)
{
    const int x = q.r * q.c * (int)sizeof(scalar), most = call->device->shared_most - JACOBI_FIXED;
    const int v = q.v != NULL ? q.c * q.c * (int)sizeof(scalar) : 0;
    const int x_inside = x + jacobi_columns_bytes(q.c) <= most;
    const int x_bytes = x_inside ? x : 0;
    const int v_inside = v > 0 && x_bytes + v + jacobi_columns_bytes(q.c) <= most;
    const int pairs = (q.c + 1) / 2, wanted = pairs * WARP;
    const unsigned threads = wanted < JACOBI_THREADS ? (unsigned)wanted : (unsigned)JACOBI_THREADS;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaFuncSetAttribute(jacobi_block_kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    jacobi_block_kernel<<<(unsigned)q.count, threads,
                          (size_t)(x_bytes + (v_inside ? v : 0) + jacobi_columns_bytes(q.c)),
                          call->stream>>>(q, x_inside, v_inside);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
sweep(struct cuda_call *call, const struct jacobi_batch &q, const struct jacobi_results &to)
{
    if (q.r <= 4) {
        return launch_warps<4>(call, q);
    }
    if (q.r <= 8) {
        return launch_warps<8>(call, q);
    }
    if (are_paired(q.r)) {
        return launch_pairs(call, q, to);
    }
    return q.r <= 16 ? launch_warps<16>(call, q) : launch_blocks(call, q);
}

/* ---- memory ---- */

static bool
is_large(const struct dense_problem *p)
{
    return p->n > JACOBI_BLOCK_COLUMNS || p->a.rows > ROWS_MOST || p->a.columns > ROWS_MOST;
}

static int64_t
jacobi_start_order(const struct dense_problem *p)
{
    return is_large(p) && p->a.rows == p->a.columns ? p->n : 0;
}

static struct cuda_jacobi
shape_run(const struct dense_problem *p, int64_t count)
{
    struct cuda_jacobi run = {};

    run.in.transposed = p->a.rows < p->a.columns;
    run.in.r = run.in.transposed ? p->a.columns : p->a.rows;
    run.in.c = run.in.transposed ? p->a.rows : p->a.columns;
    run.in.count = run.batch.count = count;
    run.batch.r = (int)run.in.r;
    run.batch.c = (int)run.in.c;
    run.longer = !p->vectors ? 0 : p->full ? run.in.r : p->k;
    run.is_large = is_large(p);
    return run;
}

static size_t
lay_out(struct cuda_jacobi *run, const struct dense_problem *p, char *base)
{
    const int64_t r = run->in.r, c = run->in.c, count = run->in.count;
    size_t at = 0;

    if (run->is_large) {
        run->large.in = &run->in;
        run->large.out = &run->out;
        return tsvdi_cuda_jacobi_lay_out(&run->large, p->vectors, base);
    }
    run->in.w = run->batch.w = carve<scalar>(base, &at, count * r * c);
    run->batch.v = carve<scalar>(base, &at, p->vectors ? count * c * c : 0);
    run->batch.v = p->vectors ? run->batch.v : NULL;
    run->extra = carve<scalar>(base, &at, run->longer > c ? count * (r - c) * r : 0);
    run->batch.reflectors =
        carve<scalar>(base, &at, are_paired((int)r) && p->vectors ? count * c * PAIR_ORDER : 0);
    run->batch.refused = carve<bool>(base, &at, are_paired((int)r) ? count : 0);
    run->batch.s = carve<real>(base, &at, count * c);
    run->batch.order = carve<int>(base, &at, count * c);
    run->batch.rank = carve<int>(base, &at, count);
    run->batch.made = carve<struct jacobi_outcome>(base, &at, count);
    run->in.largest = carve<unsigned long long>(base, &at, count);
    run->in.exponent = carve<real_int>(base, &at, count);
    run->in.kind = carve<char>(base, &at, count);
    run->batch.kind = run->in.kind;
    run->batch.exponent = run->in.exponent;
    run->batch.transposed = carve<bool>(base, &at, count);
    return at;
}

/* Results that go to the host, and workspace. */
static size_t
lay_out_workspace(struct cuda_jacobi *run, const struct dense_problem *p, bool on_host, char *base)
{
    const struct cuda_device *device = p->call.handle->cuda;
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t count = run->in.count;
    const uint64_t staging = tsvdi_cuda_dense_needs_staging(&p->a)
                                 ? bytes_of(count * run->in.r, bytes_of(run->in.c, sizeof(scalar)))
                                 : 0;
    const uint64_t finish = tsvdi_cuda_dense_finish_bytes(count, shape);
    const uint64_t work = run->is_large      ? tsvdi_cuda_jacobi_work_bytes(device, p, run->longer)
                          : staging > finish ? staging
                                             : finish;
    const bool vectors = on_host && p->vectors;
    size_t at = 0;

    run->out.s = carve<real>(base, &at, on_host ? count * shape.k : 0);
    run->out.u = carve<scalar>(base, &at, vectors ? count * shape.u_rows * shape.u_columns : 0);
    run->out.vh = carve<scalar>(base, &at, vectors ? count * shape.v_rows * shape.v_columns : 0);
    run->d_work = carve<char>(base, &at, (int64_t)work);
    return at;
}

static void
free_workspace(struct tsvd_context *ctx, const struct dense_problem *p, struct cuda_jacobi *run)
{
    if (p->call.to == TSVD_HOST) { /* results may still be in flight */
        tsvdi_cuda_free_after_downloads(cuda_of(ctx), run->d_workspace);
    } else {
        tsvdi_cuda_free(cuda_of(ctx), run->d_workspace);
    }
    run->d_workspace = NULL;
}

static tsvd_status
jacobi_begin(struct tsvd_context *ctx, struct jacobi_job *job)
{
    struct cuda_jacobi *run = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(&job->problem->call.handle->host, sizeof(*run), ctx->error,
                              (void **)&run));
    *run = shape_run(job->problem, job->count);
    run->batch.max_sweeps = (int)(job->max_sweeps < INT_MAX ? job->max_sweeps : INT_MAX);
    job->state = run;
    TSVD_TRY(
        tsvdi_cuda_alloc(cuda_of(ctx), lay_out(run, job->problem, NULL), (void **)&run->d_arrays));
    (void)lay_out(run, job->problem, run->d_arrays);
out:
    return ret;
}

static void
jacobi_end(struct tsvd_context *ctx, struct jacobi_job *job)
{
    struct cuda_jacobi *run = (struct cuda_jacobi *)job->state;

    if (run == NULL) {
        return;
    }
    free_workspace(ctx, job->problem, run);
    tsvdi_cuda_free(cuda_of(ctx), run->d_arrays);
    tsvdi_host_free(&job->problem->call.handle->host, run);
    job->state = NULL;
}

static struct bytes
jacobi_bytes(const struct dense_problem *p, int64_t count)
{
    struct cuda_jacobi run = shape_run(p, count);
    struct bytes bytes = {sizeof(run), 0};

    bytes.device = bytes_add(lay_out(&run, p, NULL), lay_out_workspace(&run, p, true, NULL));
    return bytes;
}

/* Limited by memory, and by the blocks of a grid. */
static int64_t
jacobi_chunk_most(const struct dense_problem *p)
{
    const struct bytes one = jacobi_bytes(p, 1);
    const int64_t longer = p->a.rows > p->a.columns ? p->a.rows : p->a.columns;
    const uint64_t blocks = bytes_of(longer, (uint64_t)longer) / THREADS + 1;
    uint64_t available = 0, most;

    if (is_large(p) ||
        tsvdi_cuda_memory_for(&p->call.handle->cuda->call,
                              bytes_of(p->a.batch.matrices, one.device), &available) != TSVD_OK) {
        return 1;
    }
    available = available < CUDA_CHUNK_BYTES ? available : CUDA_CHUNK_BYTES;
    most = one.device > 0 ? available / one.device
                          : available; /* matrices without entries may need none */
    most = most < INT32_MAX / (4 * blocks) ? most : INT32_MAX / (4 * blocks);
    return most > 1 ? (int64_t)most : 1;
}

/* ---- a job ---- */

/* W becomes its vectors, as struct jacobi_batch says; but pairs.cuh places results in `to`
   itself if that is set. */
static tsvd_status
decompose(struct tsvd_context *ctx, const struct jacobi_job *job, struct cuda_jacobi *run,
          const struct jacobi_results &to)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    if (run->batch.c == 0) { /* matrices without entries */
        CUDA_TRY(call, cudaMemsetAsync(run->batch.rank, 0, (size_t)job->count * sizeof(int),
                                       call->stream));
        CUDA_TRY(call,
                 cudaMemsetAsync(run->batch.made, 0,
                                 (size_t)job->count * sizeof(struct jacobi_outcome), call->stream));
        CUDA_TRY(call, cudaMemsetAsync(run->batch.transposed, 0, (size_t)job->count * sizeof(bool),
                                       call->stream));
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_dense_load(ctx, &job->problem->a, job->begin, &run->in, 0,
                                   (scalar *)run->d_work));
    TSVD_TRY(sweep(call, run->batch, to));
out:
    return ret;
}

/* Whether pairs.cuh places results itself. */
static bool
places_pairs(const struct dense_problem *p, const struct dense_shape &shape, int64_t r)
{
    return p->vectors && are_paired((int)r) && shape.k > 0 && shape.u_columns == shape.k &&
           shape.v_rows == shape.k;
}

/* Writes the results to their places.  Signs and scale are left to tsvdi_cuda_dense_finish(). */
static tsvd_status
make_results(struct cuda_call *call, const struct dense_problem *p, const struct cuda_jacobi *run)
{
    const struct jacobi_batch q = run->batch;
    const int transposed = run->in.transposed;
    tsvd_status ret = TSVD_OK;

    if (p->k > 0) {
        place_values_kernel<<<blocks_for(q.count * p->k, PLACE_THREADS), PLACE_THREADS, 0,
                              call->stream>>>(q, p->first, p->k, run->out.s);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(place_vectors(call, q, run->extra, 0, p->first, run->longer, transposed,
                           transposed ? run->out.vh : run->out.u));
    TSVD_TRY(place_vectors(call, q, run->extra, 1, p->first, run->longer > 0 ? p->k : 0,
                           !transposed, transposed ? run->out.u : run->out.vh));
out:
    return ret;
}

static tsvd_status
complete(struct cuda_call *call, const struct cuda_jacobi *run)
{
    const struct jacobi_batch q = run->batch;
    const int vectors = (int)(run->longer > q.c ? run->longer : q.c);
    const size_t shared =
        (size_t)weights_for(q.r) * sizeof(real) + (size_t)vectors * sizeof(scalar);
    tsvd_status ret = TSVD_OK;

    if (run->longer == 0) {
        goto out;
    }
    CUDA_TRY(call,
             cudaFuncSetAttribute(complete_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  call->device->shared_most - FIXED));
    complete_kernel<<<(unsigned)q.count, THREADS, shared, call->stream>>>(q, run->extra, vectors);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Room for results, and workspace. */
static tsvd_status
take_workspace(struct tsvd_context *ctx, const struct jacobi_job *job, struct cuda_jacobi *run)
{
    const struct dense_problem *p = job->problem;
    const struct dense_shape shape = dense_shape_of(p);
    const bool on_host = p->call.to == TSVD_HOST;
    tsvd_status ret = TSVD_OK;

    free_workspace(ctx, p, run); /* of the chunk before this one */
    tsvdi_cuda_wait_releases(cuda_of(ctx));
    run->in.count = run->batch.count = job->count; /* the last chunk may be a shorter one */
    TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), lay_out_workspace(run, p, on_host, NULL),
                              (void **)&run->d_workspace));
    (void)lay_out_workspace(run, p, on_host, run->d_workspace);
    if (!on_host) {
        run->out.s = (real *)p->S + job->begin * shape.k;
        run->out.u = (scalar *)p->U + job->begin * shape.u_rows * shape.u_columns;
        run->out.vh = (scalar *)p->Vh + job->begin * shape.v_rows * shape.v_columns;
    }
    if (!p->vectors) {
        run->out.u = run->out.vh = NULL;
    }
out:
    return ret;
}

static tsvd_status
jacobi_prepare(struct tsvd_context *ctx, struct jacobi_job *job)
{
    struct cuda_jacobi *run = (struct cuda_jacobi *)job->state;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(take_workspace(ctx, job, run));
    if (run->is_large && run->in.c > 0) {
        TSVD_TRY(tsvdi_cuda_jacobi_prepare(ctx, &run->large, job, run->d_work));
    }
out:
    return ret;
}

static tsvd_status
jacobi_run(struct tsvd_context *ctx, struct jacobi_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct dense_shape shape = dense_shape_of(p);
    struct cuda_jacobi *run = (struct cuda_jacobi *)job->state;
    const bool is_small = run->longer > 0 && p->k > 0 && p->a.rows <= WARP && p->a.columns <= WARP;
    const struct cuda_piece piece[] = {
        {job->made, run->batch.made, (size_t)job->count * sizeof(*job->made)}};
    const bool placed = places_pairs(p, shape, run->in.r);
    const struct jacobi_results to = {run->in.transposed, (int)p->first, (int)shape.k,
                                      run->out.s,         run->out.u,    run->out.vh};
    const struct jacobi_results nowhere = {};
    tsvd_status ret = TSVD_OK;

    if (run->is_large) {
        TSVD_TRY(tsvdi_cuda_jacobi_solve(ctx, &run->large, job, run->longer, run->d_work));
    } else {
        TSVD_TRY(decompose(ctx, job, run, placed ? to : nowhere));
        TSVD_TRY(complete(call, run));
        TSVD_TRY(is_small ? place_small(call, run->batch, run->extra, shape, to, placed)
                          : make_results(call, p, run));
    }
    if (shape.k > 0 && !is_small) {
        TSVD_TRY(tsvdi_cuda_dense_finish(call, &run->in, NULL, &run->out, shape, run->d_work));
    }
    if (p->call.to == TSVD_HOST) {
        TSVD_TRY(cuda_dense_deliver(ctx, p, &run->out, job->begin, run->in.count));
    }
    if (!run->is_large) {
        TSVD_TRY(tsvdi_cuda_download_all(call, piece, 1));
    }
out:
    return ret;
}

static int
jacobi_pays(const struct dense_problem *p)
{
    const int64_t longer = std::max(p->a.rows, p->a.columns);
    const int64_t most = JACOBI_ORDER / (TSVD_COMPLEX ? TSVD_SINGLE ? 4 : 2 : 1);
    int64_t group = 1; /* threads of a matrix, and the columns that they turn */

    while (group < longer) {
        group *= 2;
    }
    return p->vectors && group <= most && 2 * p->n > group;
}

const struct jacobi_ops tsvdi_cuda_jacobi = {
    .space = TSVD_CUDA,
    .pays = jacobi_pays,
    .chunk_most = jacobi_chunk_most,
    .start_order = jacobi_start_order,
    .begin = jacobi_begin,
    .end = jacobi_end,
    .prepare = jacobi_prepare,
    .run = jacobi_run,
    .bytes = jacobi_bytes,
};
