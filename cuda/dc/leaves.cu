/*
 * Divide and conquer on the device: the leaves, by implicit QR (qr_sweep.h).
 *
 * The sweeps of a leaf are a chain of dependent rotations: one thread makes them, and logs its
 * rotations.  Applying them to the vectors is most of the work: a warp does that (leaf_log.h).
 * Leaves are cut into chunks, of as many leaves as a log holds, which alternate between two logs.
 * A leaf whose log is full, which is rare, is finished by another kernel.  That makes sweeps and
 * applies them in turn.  Where the matrices are leaves, their vectors go to the host while later
 * ones are computed.
 */
#include "dc/leaf_log.h"

enum { APPLY_WARPS = 2, APPLY_THREADS = APPLY_WARPS * (int)WARP };

/* How many turns and sweeps the log of a leaf has room for, by the leaf's columns.  The turns are a
   multiple of a warp's width.  Of 1280 matrices each of nine families, with 8, 16 and 32 columns,
   none took more than 117, 478 and 1666 turns, or more than 25, 51 and 94 sweeps.  [0,1] takes 75,
   307 and 1230 turns and 16, 34 and 72 sweeps on average. */
#define LEAF_TURNS(width) (3 * (width) * (width) / 2 + 8 * (width))
#define LEAF_SWEEPS(width) (4 * (width))

/* ---- sweeps ---- */

/* Makes sweeps into log `at`, which holds `used` turns, until the matrix is diagonal or the log is
   full.  The threads of a warp in `lanes` do so together.  Each finds the block of its next sweep
   before any of them sweeps, so that their sweeps run in parallel. */
static __device__ __forceinline__ struct leaf_end
make_sweeps(unsigned lanes, const struct dc_device &run, const struct leaf &leaf,
            const struct leaf_log &log, int64_t at, int used, struct qr_state *q, real *d, real *e)
{
    struct half_tangent_log to = {log.turn + at * log.turns + used};
    uint16_t *sweep = log.sweep + at * log.sweeps;
    struct leaf_end end = {0, 0, 0, 0};
    bool busy = true;

    do {
        struct qr_block block;

        busy = busy && end.sweeps < log.sweeps && used + leaf.rows <= log.turns;
        if (busy && !qr_next(q, d, e, &block)) {
            end.done = 1;
            busy = false;
        }
        __syncwarp(lanes);
        if (busy) {
            const struct qr_sweep s = qr_sweep_block(q, d, e, &block, to);

            sweep[end.sweeps++] = pack(s);
            used += (int)s.count;
            to.pair += s.count;
        }
    } while (__any_sync(lanes, busy));
    for (int i = 0; i < leaf.rows; i++) {
        run.slot.value[leaf.slot + i] = d[i];
        run.slot.z[leaf.slot + i] = e[i];
        end.negative |= (unsigned)(end.done && d[i] < 0) << i;
    }
    end.turns = used;
    if (end.done && q->exhausted) {
        atomicMin(run.failed, (unsigned long long)leaf.matrix);
    }
    return end;
}

/* Sweeps of `count` leaves from `first` on.  A thread makes those of a leaf; `share` threads of a
   warp have one. */
static __global__ void
__launch_bounds__(WARP) sweeps_kernel(struct dc_device run, struct leaf_log log, int64_t first,
                                      int64_t count, int share)
{
    extern __shared__ real entries[];
    const int lane = (int)threadIdx.x;
    const int64_t at = (int64_t)blockIdx.x * share + lane;
    real *d = entries + lane * (2 * log.width + 1); /* odd stride: no bank conflicts */
    real *e = d + log.width;
    struct leaf leaf;
    struct leaf_end end;
    struct qr_state q;
    const unsigned lanes = __ballot_sync(0xffffffffu, lane < share && at < count);
    int used = 0;

    if (lane >= share || at >= count) {
        return;
    }
    leaf = leaf_of(run, first + at);
    for (int i = 0; i < leaf.rows; i++) {
        d[i] = run.scaled_d[leaf.slot + i];
        e[i] = i < leaf.columns - 1 ? run.scaled_e[leaf.slot + i] : REAL(0);
    }
    if (leaf.columns > leaf.rows) {
        struct half_tangents turn = {0, 0};
        real extra = e[leaf.rows - 1];

        for (int i = leaf.rows - 1; i >= 0; i--) {
            turn.right = rotation_half_tangent(extra_column_step(i, d, e, &extra));
            log.turn[at * log.turns + i] = turn;
        }
        used = leaf.rows;
    }
    qr_start(&q, leaf.rows, run.eps[leaf.matrix], 0);
    end = make_sweeps(lanes, run, leaf, log, at, used, &q, d, e);
    if (!end.done) {
        struct straggler *straggler = &log.straggler[atomicAdd(log.stragglers, 1u)];

        straggler->leaf = first + at;
        straggler->q = q;
    }
    log.end[at] = end;
}

/* ---- vectors ---- */

/* Plays the logs of `count` leaves; log i is that of leaf first + i. */
template <int WIDTH>
static __global__ void
__launch_bounds__(APPLY_THREADS)
    apply_kernel(struct dc_device run, struct leaf_log log, int64_t first, int64_t count)
{
    const int warp = (int)threadIdx.x / WARP;
    const int64_t at = (int64_t)blockIdx.x * APPLY_WARPS + warp;
    __shared__ struct ring ring[APPLY_WARPS];

    if (at < count) {
        play<WIDTH>(run, leaf_of(run, first + at), log, at, true, &ring[warp]);
    }
}

/* Finishes the leaves of a chunk whose log was full.  Block b reuses log b of the chunk. */
template <int WIDTH>
static __global__ void
__launch_bounds__(WARP) stragglers_kernel(struct dc_device run, struct leaf_log log)
{
    const int64_t at = blockIdx.x;
    __shared__ struct ring ring;
    __shared__ real d[WIDTH], e[WIDTH];

    for (unsigned i = blockIdx.x; i < *log.stragglers; i += gridDim.x) {
        const struct leaf leaf = leaf_of(run, log.straggler[i].leaf);
        struct qr_state q = log.straggler[i].q;

        if ((int)threadIdx.x < leaf.rows) {
            d[threadIdx.x] = run.slot.value[leaf.slot + threadIdx.x];
            e[threadIdx.x] = run.slot.z[leaf.slot + threadIdx.x];
        }
        do {
            __syncwarp();
            if (threadIdx.x == 0) {
                log.end[at] = make_sweeps(1, run, leaf, log, at, 0, &q, d, e);
            }
            __syncwarp();
            play<WIDTH>(run, leaf, log, at, false, &ring);
        } while (!log.end[at].done);
    }
}

/* ---- launches ---- */

/* Lays out the logs of `leaves` leaves.  Returns their bytes. */
static size_t
lay_out(struct leaf_log *log, int64_t leaves, char *base)
{
    size_t at = 0;

    log->turn = carve<struct half_tangents>(base, &at, leaves * log->turns);
    log->sweep = carve<uint16_t>(base, &at, leaves * log->sweeps);
    log->end = carve<struct leaf_end>(base, &at, leaves);
    return at;
}

/* Double-buffered logs: the sweeps of one chunk of leaves are bound by latency.  They run at the
   same time as the work on the vectors of the chunk before, which is not. */
enum { LOGS = 2 };

/* The leaves of a level, cut into chunks of about equal size. */
struct leaf_chunks {
    int64_t leaves;
    int64_t count; /* of chunks */
    int64_t each;  /* leaves of a chunk; the last one may have fewer */
    int64_t share; /* threads of a warp that get a leaf each */
    struct leaf_log log[LOGS];
    char *memory; /* of the logs */
};

/* Cuts a level into chunks of as many leaves as a log of LEAF_LOG_MIB holds, with `turns` turns and
   `sweeps` sweeps for each leaf, but of no more than `bound` leaves. */
static struct leaf_chunks
cut_leaves(const struct cuda_device *device, struct dc_level level, int turns, int sweeps,
           int64_t bound)
{
    const size_t most_bytes = (size_t)LEAF_LOG_MIB << 20;
    const int64_t warps = (int64_t)device->multiprocessors * LEAF_WARPS;
    struct leaf_chunks chunks = {};
    int64_t most, share;

    chunks.log[0] = {(int)level.columns, turns, sweeps, NULL, NULL, NULL, NULL, NULL};
    most = (int64_t)(most_bytes / lay_out(&chunks.log[0], 1, NULL));
    most = most < bound ? most : bound;
    chunks.leaves = level.nodes;
    chunks.count = (level.nodes + most - 1) / most;
    chunks.each = (level.nodes + chunks.count - 1) / chunks.count;
    share = (chunks.each + warps - 1) / warps;
    chunks.share = share < WARP ? share : (int64_t)WARP;
    return chunks;
}

/* Memory of the logs, and of a list of stragglers for each. */
static tsvd_status
alloc_logs(struct cuda_call *call, struct leaf_chunks *chunks)
{
    struct leaf_log *log = chunks->log;
    const size_t bytes = lay_out(&log[0], chunks->each, NULL);
    const int logs = chunks->count == 1 ? 1 : (int)LOGS;
    size_t lists = 0, at = 0;
    tsvd_status ret = TSVD_OK;

    (void)carve<struct straggler>(NULL, &lists, logs * chunks->each);
    (void)carve<unsigned>(NULL, &lists, logs);
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)logs * bytes + lists, (void **)&chunks->memory));
    log[0].straggler = carve<struct straggler>(chunks->memory, &at, logs * chunks->each);
    log[0].stragglers = carve<unsigned>(chunks->memory, &at, logs);
    log[1] = log[0];
    if (logs > 1) {
        log[1].straggler += chunks->each;
        log[1].stragglers++;
    }
    for (int i = 0; i < logs; i++) {
        (void)lay_out(&log[i], chunks->each, chunks->memory + lists + (size_t)i * bytes);
    }
out:
    return ret;
}

struct leaf_streams {
    cudaStream_t sweeps;      /* of high priority; the vectors are on the call's stream */
    cudaEvent_t begun;        /* what the call enqueued before the leaves is done */
    cudaEvent_t swept[LOGS];  /* a log's sweeps are made */
    cudaEvent_t played[LOGS]; /* a log's sweeps are applied to the vectors */
};

static tsvd_status
open_streams(struct cuda_call *call, struct leaf_streams *s)
{
    static_assert((int)MARKS == 1 + 2 * (int)LOGS, "an event for each");
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_make_urgent(call));
    *s = {call->device->urgent,
          call->device->mark[0],
          {call->device->mark[1], call->device->mark[2]},
          {call->device->mark[3], call->device->mark[4]}};
    CUDA_TRY(call, cudaEventRecord(s->begun, call->stream));
    CUDA_TRY(call, cudaStreamWaitEvent(s->sweeps, s->begun, 0));
out:
    return ret;
}

/* Kernels run on a multiprocessor at the same time only if they split its memory alike into L1
   cache and shared memory. */
template <int WIDTH>
static tsvd_status
split_memory_alike(struct cuda_call *call)
{
    const cudaFuncAttribute split = cudaFuncAttributePreferredSharedMemoryCarveout;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call,
             cudaFuncSetAttribute(apply_kernel<WIDTH>, split, cudaSharedmemCarveoutMaxShared));
    CUDA_TRY(call, cudaFuncSetAttribute(sweeps_kernel, split, cudaSharedmemCarveoutMaxShared));
out:
    return ret;
}

/* Sweeps and vectors of chunk i, stragglers included. */
template <int WIDTH>
static tsvd_status
launch_chunk(struct cuda_call *call, const struct dc_device *run, const struct leaf_chunks *chunks,
             const struct leaf_streams *streams, int64_t i)
{
    const int64_t first = i * chunks->each, left = chunks->leaves - first;
    const int64_t count = left < chunks->each ? left : chunks->each;
    const int turn = (int)(i % LOGS);
    const struct leaf_log log = chunks->log[turn];
    const size_t entries = (size_t)chunks->share * (size_t)(2 * log.width + 1);
    const int64_t blocks = count < STRAGGLER_BLOCKS ? count : (int64_t)STRAGGLER_BLOCKS;
    tsvd_status ret = TSVD_OK;

    if (i >= LOGS) {
        CUDA_TRY(call, cudaStreamWaitEvent(streams->sweeps, streams->played[turn], 0));
    }
    CUDA_TRY(call, cudaMemsetAsync(log.stragglers, 0, sizeof(*log.stragglers), streams->sweeps));
    sweeps_kernel<<<blocks_for(count, chunks->share), WARP, entries * sizeof(real),
                    streams->sweeps>>>(*run, log, first, count, (int)chunks->share);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call, cudaEventRecord(streams->swept[turn], streams->sweeps));
    CUDA_TRY(call, cudaStreamWaitEvent(call->stream, streams->swept[turn], 0));
    apply_kernel<WIDTH><<<blocks_for(count, APPLY_WARPS), APPLY_THREADS, 0, call->stream>>>(
        *run, log, first, count);
    CUDA_LAUNCHED(call);
    stragglers_kernel<WIDTH><<<(unsigned)blocks, WARP, 0, call->stream>>>(*run, log);
    CUDA_LAUNCHED(call);
    CUDA_TRY(call, cudaEventRecord(streams->played[turn], call->stream));
out:
    return ret;
}

/* Whether the vectors of a chunk are sent to the host when it is finished: they are, where the
   matrices are leaves, and the transfer of all vectors takes long. */
static bool
sends_chunks(const struct tsvd_context *ctx, const struct dc_device *run)
{
    const uint64_t bytes = bytes_of(2 * run->slots, bytes_of(run->k, sizeof(real)));

    return ctx->call->to == TSVD_HOST && run->levels == 0 && bytes > SEND_BLOCKS_BYTES;
}

/* Sends the vectors of the matrices in chunk i. */
static tsvd_status
send_chunk(struct tsvd_context *ctx, struct dc_job *job, const struct dc_device *run,
           const struct leaf_chunks *chunks, int64_t i)
{
    const int64_t first = i * chunks->each, left = chunks->leaves - first;
    const int64_t matrix = run->n * run->k, count = left < chunks->each ? left : chunks->each;
    const real *const x[] = {run->lower ? run->right : run->left,
                             run->lower ? run->left : run->right};
    real *const to[] = {job->to.L, job->to.R};
    tsvd_status ret = TSVD_OK;

    for (int side = 0; side < SIDES; side++) {
        TSVD_TRY(cuda_deliver(ctx, to[side] + first * matrix, x[side] + first * matrix,
                              (size_t)(count * matrix) * sizeof(real)));
    }
out:
    return ret;
}

template <int WIDTH>
static tsvd_status
launch(struct tsvd_context *ctx, struct dc_job *job, const struct dc_device *run,
       struct dc_level level)
{
    static_assert(LEAF_TURNS(WIDTH) % WARP == 0, "a warp reads a whole log");
    static_assert(LEAF_TURNS(WIDTH) >= 2 * WIDTH, "a column is dropped, and a sweep made");
    struct cuda_call *call = cuda_of(ctx);
    const int64_t matrix_bytes = 2 * run->n * run->k * (int64_t)sizeof(real);
    const int64_t bound = sends_chunks(ctx, run) ? SEND_CHUNK_BYTES / matrix_bytes : INT64_MAX;
    struct leaf_chunks chunks =
        cut_leaves(call->device, level, LEAF_TURNS(WIDTH), LEAF_SWEEPS(WIDTH), bound);
    struct leaf_streams streams = {};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(alloc_logs(call, &chunks));
    TSVD_TRY(split_memory_alike<WIDTH>(call));
    TSVD_TRY(open_streams(call, &streams));
    for (int64_t i = 0; i < chunks.count; i++) {
        TSVD_TRY(launch_chunk<WIDTH>(call, run, &chunks, &streams, i));
        if (sends_chunks(ctx, run)) {
            TSVD_TRY(send_chunk(ctx, job, run, &chunks, i));
            job->delivered = 1;
        }
    }
out:
    if (ret != TSVD_OK && streams.sweeps != NULL) {
        (void)cudaStreamSynchronize(streams.sweeps); /* kernels there may still use the logs */
    }
    tsvdi_cuda_free(call, chunks.memory);
    return ret;
}

tsvd_status
tsvdi_cuda_dc_leaves(struct tsvd_context *ctx, struct dc_job *job, const struct dc_device *run,
                     struct dc_level level)
{
    static_assert((int)DC_LEAF_COLUMNS <= (int)WARP,
                  "the widest kernels are for leaves of WARP columns: DC_LEAF_COLUMNS must be at "
                  "most 32");
    return level.columns <= 8    ? launch<8>(ctx, job, run, level)
           : level.columns <= 16 ? launch<16>(ctx, job, run, level)
                                 : launch<WARP>(ctx, job, run, level);
}

uint64_t
tsvdi_cuda_dc_leaf_bytes(int64_t leaves)
{
    const uint64_t most_bytes = (uint64_t)LEAF_LOG_MIB << 20;
    struct leaf_log log = {(int)WARP, LEAF_TURNS(WARP), LEAF_SWEEPS(WARP), NULL, NULL, NULL, NULL,
                           NULL};
    uint64_t logs = bytes_of(leaves, lay_out(&log, 1, NULL));

    logs = (logs < most_bytes ? logs : most_bytes) + 3 * 256; /* alignment of three arrays */
    return bytes_add(LOGS * logs, bytes_of(leaves + LOGS, sizeof(struct straggler)) + 2 * 256);
}
