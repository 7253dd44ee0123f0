/*
 * Divide and conquer on the device: the leaves, by implicit QR (qr_sweep.h).
 *
 * The sweeps of a leaf are a chain of dependent rotations: one thread makes them, and logs its
 * rotations.  Applying them to the vectors is where the work is: one warp holds the vectors of a
 * leaf in registers, a lane has a column, and plays the log.  Leaves take turns in the memory of
 * two logs, as many at a time as one holds.  A log ends when it is full; what is left of such
 * leaves, which are rare, a last kernel does in turns of sweeps and vectors.
 *
 * A log's turns are the rotations of all its sweeps one after another, those of a sweep in the
 * order in which they were made.  Where a leaf has a column more than rows, the right side's begin
 * with the `rows` rotations that dropped it (dc_drop_last_column), the left side's with so many
 * unused ones.
 */
#include <cuda_pipeline_primitives.h>

#include "dc.h"

extern "C" {
#include "qr_sweep.h"
}

enum { WARP = 32, APPLY_WARPS = 2, SHORT_BITS = 5 };

static_assert((int)DC_LEAF_COLUMNS <= (int)WARP,
              "a warp holds one column of a leaf's vectors in a lane, a logged sweep its length");

struct leaf {
    int64_t slot;   /* first slot, first entry of d and e, number of the first column */
    int64_t column; /* place of that column in rows of vectors */
    int64_t matrix;
    int rows, columns;
};

/* A leaf that has sweeps left when its log is full; d and e are in slot.value and slot.z. */
struct straggler {
    int64_t leaf; /* of the level */
    struct qr_state q;
};

/* What is in the log of a leaf. */
struct leaf_end {
    int sweeps;
    int done;          /* the leaf's values are in slot.value, with signs */
    unsigned negative; /* then: bit i is set where value i is negative; else 0 */
};

struct leaf_log {
    int width;             /* columns of the widest leaf */
    int turns, sweeps;     /* room of each leaf */
    struct rotation *turn; /* [leaves][SIDES][turns] */
    uint16_t *sweep;       /* [leaves][sweeps]: first, count, up; packed */
    struct leaf_end *end;  /* [leaves] */
    struct straggler *straggler;
    unsigned *stragglers;
};

static __device__ __forceinline__ struct leaf
leaf_of(const struct dc_device &run, int64_t i)
{
    const struct dc_node node = node_at(run, run.levels, i);
    const struct leaf leaf = {node.first, node.first - node.base, node.matrix, (int)node.rows,
                              (int)node.columns};

    return leaf;
}

/* A logged sweep, see struct qr_sweep. */
struct short_sweep {
    int first, count, up;
};

static __device__ __forceinline__ uint16_t
pack(struct qr_sweep s)
{
    return (uint16_t)((unsigned)s.first | (unsigned)s.count << SHORT_BITS |
                      (unsigned)s.up << 2 * SHORT_BITS);
}

static __device__ __forceinline__ struct short_sweep
unpack(unsigned packed)
{
    const unsigned mask = (1u << SHORT_BITS) - 1;
    const struct short_sweep s = {(int)(packed & mask), (int)(packed >> SHORT_BITS & mask),
                                  (int)(packed >> 2 * SHORT_BITS)};

    return s;
}

/* Log `at` of one side. */
static __device__ __forceinline__ struct rotation *
turns_of(const struct leaf_log &log, int64_t at, int side)
{
    return log.turn + (at * SIDES + side) * log.turns;
}

/* ---- sweeps ---- */

/* Makes sweeps into log `at`, which holds `used` turns of each side, until the matrix is diagonal
   or the log full.  The threads of a warp in `lanes` do so together: each finds the block of its
   next sweep before any sweeps, so that their sweeps run side by side. */
static __device__ __forceinline__ struct leaf_end
make_sweeps(unsigned lanes, const struct dc_device &run, const struct leaf &leaf,
            const struct leaf_log &log, int64_t at, int used, struct qr_state *q, real *d, real *e)
{
    struct rotation *right = turns_of(log, at, RIGHT) + used;
    struct rotation *left = turns_of(log, at, LEFT) + used;
    uint16_t *sweep = log.sweep + at * log.sweeps;
    struct leaf_end end = {0, 0, 0};
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
            const struct qr_sweep s = qr_sweep_block(q, d, e, &block, right, left);

            sweep[end.sweeps++] = pack(s);
            used += (int)s.count;
            right += s.count;
            left += s.count;
        }
    } while (__any_sync(lanes, busy));
    for (int i = 0; i < leaf.rows; i++) {
        run.slot.value[leaf.slot + i] = d[i];
        run.slot.z[leaf.slot + i] = e[i];
        end.negative |= (unsigned)(end.done && d[i] < 0) << i;
    }
    if (end.done && q->exhausted) {
        atomicMin(run.failed, (unsigned long long)leaf.matrix);
    }
    return end;
}

/* A thread makes the sweeps of a leaf, `share` threads of a warp have one: the leaves from `first`
   on, `count` of them. */
static __global__ void
__launch_bounds__(WARP) sweeps_kernel(struct dc_device run, struct leaf_log log, int64_t first,
                                      int64_t count, int share)
{
    extern __shared__ real entries[];
    const int lane = (int)threadIdx.x;
    const int64_t at = (int64_t)blockIdx.x * share + lane;
    real *d = entries + lane * (2 * log.width + 1); /* odd: lanes at one entry do not collide */
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
        e[i] = i < leaf.columns - 1 ? run.scaled_e[leaf.slot + i] : R(0);
    }
    if (leaf.columns > leaf.rows) {
        dc_drop_last_column(leaf.rows, d, e, turns_of(log, at, RIGHT));
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

/* Sweeps of the log on their way to a warp: turn t of a side belongs to rows t and t + 1 in
   either direction, and is the identity where the sweep does not reach.  For widths below a warp's
   the sides lie side by side. */
struct ring {
    struct rotation turn[LEAF_STAGES][WARP];
    unsigned flips; /* see find_flips */
};

static __device__ __forceinline__ void
rotate(struct rotation q, real *a, real *b)
{
    const real in_a = q.s * *b, in_b = q.c * *b;

    *b = r_fma(-q.s, *a, in_b);
    *a = r_fma(q.c, *a, in_a);
}

/* Starts to bring a sweep from the log to the warp: the lane's turn is that of row `column`. */
static __device__ __forceinline__ void
fetch(struct short_sweep s, const struct rotation *turn, int column, struct rotation *to)
{
    const int k = s.up ? s.first + s.count - 1 - column : column - s.first;

    if (k >= 0 && k < s.count) {
        __pipeline_memcpy_async(to, turn + k, sizeof(*to));
    } else {
        to->c = 1;
        to->s = 0;
    }
}

/* The turns of a sweep, on a column of the vectors. */
template <int WIDTH>
static __device__ __forceinline__ void
apply(struct short_sweep s, const struct rotation *turn, real *x)
{
    const int end = s.first + s.count;

    if (s.up) {
#pragma unroll
        for (int i = WIDTH - LEAF_GROUP; i >= 0; i -= LEAF_GROUP) {
            if (i < end && i + LEAF_GROUP > s.first) {
#pragma unroll
                for (int k = i + LEAF_GROUP - 1; k >= i; k--) {
                    if (k < WIDTH - 1) {
                        rotate(turn[k], &x[k + 1], &x[k]);
                    }
                }
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; i += LEAF_GROUP) {
            if (i < end && i + LEAF_GROUP > s.first) {
#pragma unroll
                for (int k = i; k < i + LEAF_GROUP; k++) {
                    if (k < WIDTH - 1) {
                        rotate(turn[k], &x[k], &x[k + 1]);
                    }
                }
            }
        }
    }
}

/* Values, ranges and order of a leaf's slots, by a warp. */
static __device__ __forceinline__ void
settle(const struct dc_device &run, const struct leaf &leaf)
{
    const int lane = (int)threadIdx.x % WARP;
    const int64_t j = leaf.slot + lane;
    const real value = lane < leaf.rows ? r_abs(run.slot.value[j]) : R(0);
    int rank = 0;

    for (int i = 0; i < leaf.rows; i++) {
        const real other = __shfl_sync(0xffffffffu, value, i);

        rank += other < value || (other == value && i < lane);
    }
    if (lane < leaf.rows) {
        run.slot.value[j] = value;
        run.slot.low[j] = leaf.slot;
        run.slot.high[j] = leaf.slot + leaf.columns;
        run.slot.order[leaf.slot + rank] = j;
    }
}

/* Of the vectors of a warp's lanes `group`, WIDTH of them, those whose entry of largest magnitude,
   of equals the first, is negative: bit i for vector i. */
template <int WIDTH>
static __device__ __forceinline__ unsigned
find_flips(const real *x, int rows, bool present, unsigned group)
{
    unsigned flips = 0;

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < rows) {
            const real size = present ? r_abs(x[i]) : R(-1);
            real most = size;
            unsigned first;

#pragma unroll
            for (int lanes = WIDTH / 2; lanes > 0; lanes /= 2) {
                most = r_max(most, __shfl_xor_sync(0xffffffffu, most, lanes));
            }
            first = __ballot_sync(0xffffffffu, present && size == most) & group;
            first &= 0u - first;
            flips |= (unsigned)((__ballot_sync(0xffffffffu, x[i] < 0) & first) != 0) << i;
        }
    }
    return flips;
}

/* Vectors of a matrix that is a leaf alone to the results, in the order of the values, signs fixed;
   arguments as in play(). */
template <int WIDTH>
static __device__ __forceinline__ void
store(const struct dc_device &run, const struct leaf &leaf, const real *x, int side, int column,
      bool present, struct ring *rings)
{
    const int lane = (int)threadIdx.x % WARP, by_columns = run.lower ? RIGHT : LEFT;
    const real value = lane < leaf.rows ? r_abs(run.slot.value[leaf.slot + lane]) : R(0);
    real *to = (side == LEFT ? run.left : run.right) + leaf.matrix * run.n * run.k;
    unsigned flips, group = 0xffffffffu;
    int rank = 0; /* of vector `lane`, the largest value first; from `first` on */

    for (int i = 0; i < leaf.rows; i++) {
        const real other = __shfl_sync(0xffffffffu, value, i);

        rank += other > value || (other == value && i > lane);
    }
    rank -= (int)run.first;
    if (WIDTH < WARP) {
        group = ((1u << WIDTH % WARP) - 1) << (by_columns * WIDTH % WARP);
    }
    flips = find_flips<WIDTH>(x, leaf.rows, present, group);
    if (WIDTH == WARP) { /* the other side is another warp's */
        if (side == by_columns && lane == 0) {
            rings[0].flips = flips;
        }
        __syncthreads();
        flips = rings[0].flips;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < leaf.rows) {
            const int64_t r = __shfl_sync(0xffffffffu, rank, i);
            const real entry = flips >> i & 1 ? -x[i] : x[i];

            if (present && r >= 0 && r < run.k) {
                to[side == by_columns ? column * run.k + r : r * run.n + column] = entry;
            }
        }
    }
}

/*
 * Plays log `at` to the vectors of a leaf: to the identity if `fresh`, else to what lies in run.x,
 * where they go, or to the results if the leaf is all of its matrix.  A lane has a column of one
 * side; at a width below a warp's the warp has both sides, else the one given, and another warp of
 * the block, with the ring beside, the other one.  The warp of the right side settles the slots.
 */
template <int WIDTH>
static __device__ __forceinline__ void
play(const struct dc_device &run, const struct leaf &leaf, const struct leaf_log &log, int64_t at,
     int given, bool fresh, struct ring *rings)
{
    const int lane = (int)threadIdx.x % WARP, column = lane % WIDTH;
    const int lanes_side = WIDTH == WARP ? given : lane / WIDTH;
    const int side = lanes_side == LEFT ? LEFT : RIGHT; /* a lane of neither only looks on */
    const bool present = lanes_side < SIDES && column < leaf.columns;
    const bool has_null = side == RIGHT && leaf.columns > leaf.rows;
    const struct leaf_end end = log.end[at];
    const uint16_t *sweep = log.sweep + at * log.sweeps;
    const struct rotation *turn = turns_of(log, at, side);
    struct ring *ring = &rings[(int)threadIdx.x / WARP];
    real *to = side_of(run.x, run, side) + leaf.slot * run.stride + leaf.column + column;
    real x[WIDTH], null = column == leaf.rows ? R(1) : R(0);

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        x[i] = i == column ? R(1) : R(0);
        if (!fresh && present && i < leaf.rows) {
            x[i] = to[i * run.stride];
        }
    }
    if (!fresh && present && has_null) {
        null = to[leaf.rows * run.stride];
    }
    if (fresh && leaf.columns > leaf.rows) {
        const struct short_sweep all = {0, has_null ? leaf.rows : 0, 0};

        fetch(all, turn, column, &ring->turn[0][lane]);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
#pragma unroll
        for (int i = WIDTH - 1; i >= 0; i--) {
            if (i < leaf.rows) {
                rotate(ring->turn[0][lane - column + i], &x[i], &null);
            }
        }
        __syncwarp();
        turn += leaf.rows;
    }
    for (int i = 1 - LEAF_STAGES; i < end.sweeps; i++) {
        const int ahead = i + LEAF_STAGES - 1;

        __pipeline_wait_prior(LEAF_STAGES - 2); /* sweep i has come, */
        __syncwarp();                           /* and every lane is through with i - 1 */
        if (ahead < end.sweeps) {
            const struct short_sweep s = unpack(sweep[ahead]);

            fetch(s, turn, column, &ring->turn[ahead % LEAF_STAGES][lane]);
            turn += s.count;
        }
        __pipeline_commit();
        if (i >= 0) {
            apply<WIDTH>(unpack(sweep[i]), &ring->turn[i % LEAF_STAGES][lane - column], x);
        }
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        x[i] = side == LEFT && (end.negative >> i & 1) ? -x[i] : x[i];
    }
    if (end.done && run.levels == 0) {
        store<WIDTH>(run, leaf, x, side, column, present, rings);
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            if (present && i < leaf.rows) {
                to[i * run.stride] = x[i];
            }
        }
        if (present && has_null) {
            to[leaf.rows * run.stride] = null;
        }
    }
    if (end.done && (WIDTH < WARP || given == RIGHT)) {
        settle(run, leaf);
    }
}

/* Log i is that of leaf first + i. */
template <int WIDTH>
static __global__ void
__launch_bounds__(APPLY_WARPS *WARP)
    apply_kernel(struct dc_device run, struct leaf_log log, int64_t first, int64_t count)
{
    const int warp = (int)threadIdx.x / WARP, sides = WIDTH == WARP ? (int)SIDES : 1;
    const int64_t task = (int64_t)blockIdx.x * APPLY_WARPS + warp, at = task / sides;
    __shared__ struct ring ring[APPLY_WARPS];

    if (at < count) {
        play<WIDTH>(run, leaf_of(run, first + at), log, at, (int)(task % sides), true, ring);
    }
}

/* Finishes the leaves whose log was full, block b in log b. */
template <int WIDTH>
static __global__ void
__launch_bounds__(APPLY_WARPS *WARP) stragglers_kernel(struct dc_device run, struct leaf_log log)
{
    const int warp = (int)threadIdx.x / WARP, sides = WIDTH == WARP ? (int)SIDES : 1;
    const int64_t at = blockIdx.x;
    __shared__ struct ring ring[APPLY_WARPS];
    __shared__ real d[WIDTH], e[WIDTH];
    __shared__ int done;

    for (unsigned i = blockIdx.x; i < *log.stragglers; i += gridDim.x) {
        const struct leaf leaf = leaf_of(run, log.straggler[i].leaf);
        struct qr_state q = log.straggler[i].q;

        if ((int)threadIdx.x < leaf.rows) {
            d[threadIdx.x] = run.slot.value[leaf.slot + threadIdx.x];
            e[threadIdx.x] = run.slot.z[leaf.slot + threadIdx.x];
        }
        do {
            __syncthreads();
            if (threadIdx.x == 0) {
                log.end[at] = make_sweeps(1, run, leaf, log, at, 0, &q, d, e);
                done = log.end[at].done;
            }
            __syncthreads();
            if (warp < sides) {
                play<WIDTH>(run, leaf, log, at, warp, false, ring);
            }
        } while (!done);
        __syncthreads();
    }
}

/* ---- launches ---- */

/* Lays out the logs of `leaves` leaves; returns their bytes. */
static size_t
lay_out(struct leaf_log *log, int64_t leaves, char *base)
{
    size_t at = 0;

    log->turn = cut<struct rotation>(base, &at, leaves * SIDES * log->turns);
    log->sweep = cut<uint16_t>(base, &at, leaves * log->sweeps);
    log->end = cut<struct leaf_end>(base, &at, leaves);
    return at;
}

/* Two logs that chunks of leaves use in turn, so that the sweeps of one, which wait for one
   another, run beside the vectors of the chunk before, which do not. */
enum { LOGS = 2 };

struct leaf_streams {
    cudaStream_t vectors; /* the sweeps are made on the call's stream */
    cudaEvent_t swept[LOGS], played[LOGS];
};

static tsvd_status
open_streams(struct cuda_call *call, struct leaf_streams *s)
{
    tsvd_status ret = TSVD_OK;

    TSVD_CUDA(call, cudaStreamCreateWithFlags(&s->vectors, cudaStreamNonBlocking));
    for (int i = 0; i < LOGS; i++) {
        TSVD_CUDA(call, cudaEventCreateWithFlags(&s->swept[i], cudaEventDisableTiming));
        TSVD_CUDA(call, cudaEventCreateWithFlags(&s->played[i], cudaEventDisableTiming));
    }
out:
    return ret;
}

/* What is enqueued goes on. */
static void
close_streams(struct leaf_streams *s)
{
    for (int i = 0; i < LOGS; i++) {
        if (s->swept[i] != NULL) {
            (void)cudaEventDestroy(s->swept[i]);
        }
        if (s->played[i] != NULL) {
            (void)cudaEventDestroy(s->played[i]);
        }
    }
    if (s->vectors != NULL) {
        (void)cudaStreamDestroy(s->vectors);
    }
}

template <int WIDTH>
static tsvd_status
launch(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    const int64_t sides = WIDTH == WARP ? (int)SIDES : 1;
    const size_t room = (size_t)LEAF_LOG_MIB << 20;
    struct leaf_log log[LOGS];
    struct leaf_streams streams = {NULL, {NULL}, {NULL}};
    int64_t most, chunks, chunk, share;
    size_t bytes, at = 0;
    char *memory = NULL;
    tsvd_status ret = TSVD_OK;

    log[0] = {
        (int)level.columns, LEAF_TURNS(WIDTH), LEAF_SWEEPS(WIDTH), NULL, NULL, NULL, NULL, NULL};
    most = (int64_t)(room / lay_out(&log[0], 1, NULL));
    chunks = (level.nodes + most - 1) / most; /* of about equal size */
    chunk = (level.nodes + chunks - 1) / chunks;
    share = (int64_t)call->multiprocessors * LEAF_WARPS;
    share = (chunk + share - 1) / share;
    share = share < WARP ? share : (int64_t)WARP;
    bytes = lay_out(&log[0], chunk, NULL);
    (void)cut<struct straggler>(NULL, &at, level.nodes);
    (void)cut<unsigned>(NULL, &at, 1);
    TSVD_TRY(tsvdi_cuda_alloc(call, (chunks > 1 ? LOGS : 1) * bytes + at, (void **)&memory));
    at = 0;
    log[0].straggler = cut<struct straggler>(memory, &at, level.nodes);
    log[0].stragglers = cut<unsigned>(memory, &at, 1);
    log[1] = log[0];
    (void)lay_out(&log[0], chunk, memory + at);
    (void)lay_out(&log[1], chunk, memory + at + (chunks > 1 ? bytes : 0));
    TSVD_CUDA(call,
              cudaMemsetAsync(log[0].stragglers, 0, sizeof(*log[0].stragglers), call->stream));
    TSVD_TRY(open_streams(call, &streams));
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t first = i * chunk, left = level.nodes - first;
        const int64_t count = left < chunk ? left : chunk, tasks = count * sides;
        const int turn = (int)(i % LOGS);

        if (i >= LOGS) {
            TSVD_CUDA(call, cudaStreamWaitEvent(call->stream, streams.played[turn], 0));
        }
        sweeps_kernel<<<(unsigned)((count + share - 1) / share), WARP,
                        (size_t)share *(size_t)(2 * level.columns + 1) * sizeof(real),
                        call->stream>>>(*run, log[turn], first, count, (int)share);
        TSVD_LAUNCHED(call);
        TSVD_CUDA(call, cudaEventRecord(streams.swept[turn], call->stream));
        TSVD_CUDA(call, cudaStreamWaitEvent(streams.vectors, streams.swept[turn], 0));
        apply_kernel<WIDTH>
            <<<(unsigned)((tasks + APPLY_WARPS - 1) / APPLY_WARPS), APPLY_WARPS * WARP, 0,
               streams.vectors>>>(*run, log[turn], first, count);
        TSVD_LAUNCHED(call);
        TSVD_CUDA(call, cudaEventRecord(streams.played[turn], streams.vectors));
    }
    for (int i = 0; i < LOGS && i < chunks; i++) {
        TSVD_CUDA(call, cudaStreamWaitEvent(call->stream, streams.played[i], 0));
    }
    stragglers_kernel<WIDTH>
        <<<(unsigned)(chunk < STRAGGLER_BLOCKS ? chunk : (int64_t)STRAGGLER_BLOCKS),
           APPLY_WARPS * WARP, 0, call->stream>>>(*run, log[0]);
    TSVD_LAUNCHED(call);
out:
    if (ret != TSVD_OK && streams.vectors != NULL) {
        (void)cudaStreamSynchronize(streams.vectors); /* it may be at work in the memory */
    }
    close_streams(&streams);
    tsvdi_cuda_free(call, memory);
    return ret;
}

tsvd_status
tsvdi_launch_leaves(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    return level.columns <= 8    ? launch<8>(call, run, level)
           : level.columns <= 16 ? launch<16>(call, run, level)
                                 : launch<WARP>(call, run, level);
}
