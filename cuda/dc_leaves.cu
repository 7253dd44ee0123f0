/*
 * Divide and conquer on the device: the leaves, by implicit QR (qr_sweep.h).
 *
 * The sweeps of a leaf are a chain of dependent rotations: one thread makes them, and logs its
 * rotations.  Applying them to the vectors is where the work is: one warp holds the vectors of a
 * leaf in registers, a lane a column or two, and plays the log.  Leaves take turns in the memory of
 * two logs, as many at a time as one holds.  A log ends when it is full; what is left of such
 * leaves, which are rare, a last kernel does in turns of sweeps and vectors.
 *
 * A log's turns are the half tangents of the rotations (rotation.h) of all its sweeps one after
 * another, those of a sweep in the order in which they were made.  Where a leaf has a column more
 * than rows, they begin with the `rows` right ones that dropped it (dc_drop_step).
 */
#include "dc.h"

extern "C" {
#include "qr_sweep.h"
}

enum { WARP = 32, APPLY_WARPS = 2, SHORT_BITS = 5 };

static_assert((int)DC_LEAF_COLUMNS <= (int)WARP,
              "a lane settles a slot of a leaf, and a logged sweep holds its length");

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
    int width;                  /* columns of the widest leaf */
    int turns, sweeps;          /* room of each leaf */
    struct half_tangents *turn; /* [leaves][turns] */
    uint16_t *sweep;            /* [leaves][sweeps]: first, count, up; packed */
    struct leaf_end *end;       /* [leaves] */
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

/* ---- sweeps ---- */

/* Makes sweeps into log `at`, which holds `used` turns, until the matrix is diagonal or the log
   full.  The threads of a warp in `lanes` do so together: each finds the block of its next sweep
   before any sweeps, so that their sweeps run side by side. */
static __device__ __forceinline__ struct leaf_end
make_sweeps(unsigned lanes, const struct dc_device &run, const struct leaf &leaf,
            const struct leaf_log &log, int64_t at, int used, struct qr_state *q, real *d, real *e)
{
    struct qr_turns to = {log.turn + at * log.turns + used};
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
        struct half_tangents turn = {0, 0};
        real extra = e[leaf.rows - 1];

        for (int i = leaf.rows - 1; i >= 0; i--) {
            turn.right = rotation_half_tangent(dc_drop_step(i, d, e, &extra));
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

/* A warp has the vectors of a leaf: LANES of its lanes those of a side, each of them COLUMNS
   columns, LANES apart. */
template <int WIDTH> struct part {
    static constexpr int MOST = (int)WARP / (int)SIDES;
    static constexpr int LANES = WIDTH < MOST ? WIDTH : MOST;
    static constexpr int COLUMNS = WIDTH / LANES;
};

/* Turns of the log as a warp takes them, which come WARP at a time: turn t is in place
   t % (2 WARP), and if that is below WARP in the one 2 WARP further on too, so that those of a
   sweep follow one another; places before and behind are read, but not used. */
struct ring {
    struct lifting turn[SIDES][(int)LEAF_GROUP + 3 * (int)WARP + (int)LEAF_GROUP];
};

/* How far a warp has come with the turns of a log. */
struct reader {
    const struct half_tangents *turn;
    int turns;                 /* room of the log */
    int ready;                 /* so many are in the ring */
    struct half_tangents next; /* the lane's of those that follow */
};

/* What a lane has of a leaf. */
template <int WIDTH> struct vectors_part {
    int side, column; /* of the first of its columns */
    bool present[part<WIDTH>::COLUMNS];
    real x[part<WIDTH>::COLUMNS][WIDTH];
};

static __device__ __forceinline__ void
rotate(struct lifting q, real *x, real *y)
{
    *x = r_fma(q.t, *y, *x);
    *y = r_fma(-q.s, *x, *y);
    *x = r_fma(q.t, *y, *x);
}

/* Starts to read the turns that follow. */
static __device__ __forceinline__ void
read_ahead(struct reader *r)
{
    if (r->ready < r->turns) {
        r->next = r->turn[r->ready + (int)threadIdx.x % WARP];
    }
}

/* Puts what was read into the ring. */
static __device__ __forceinline__ void
take_turns(struct reader *r, struct ring *ring)
{
    const struct lifting turn[SIDES] = {rotation_lift(r->next.right), rotation_lift(r->next.left)};
    const int at = r->ready % (2 * WARP), place = LEAF_GROUP + at + (int)threadIdx.x % WARP;

    __syncwarp(); /* all are through with what was there */
#pragma unroll
    for (int side = 0; side < SIDES; side++) {
        ring->turn[side][place] = turn[side];
        if (at == 0) {
            ring->turn[side][place + 2 * WARP] = turn[side];
        }
    }
    __syncwarp();
    r->ready += WARP;
    read_ahead(r);
}

/* The turns of a sweep, on columns of the vectors. */
template <int WIDTH, int COLUMNS>
static __device__ __forceinline__ void
apply(struct short_sweep s, const struct lifting *turn, real (&x)[COLUMNS][WIDTH])
{
    const unsigned group = (1u << LEAF_GROUP) - 1, rows = ((1u << s.count) - 1) << s.first;

    if (s.up) {
#pragma unroll
        for (int i = WIDTH - LEAF_GROUP; i >= 0; i -= LEAF_GROUP) {
            if ((rows & group << i) != 0) {
                struct lifting q[LEAF_GROUP];

#pragma unroll
                for (int k = 0; k < LEAF_GROUP; k++) {
                    q[k] = turn[s.first + s.count - 1 - (i + k)];
                }
#pragma unroll
                for (int k = i + LEAF_GROUP - 1; k >= i; k--) {
                    if (k < WIDTH - 1 && (rows & 1u << k) != 0) {
#pragma unroll
                        for (int c = 0; c < COLUMNS; c++) {
                            rotate(q[k - i], &x[c][k + 1], &x[c][k]);
                        }
                    }
                }
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; i += LEAF_GROUP) {
            if ((rows & group << i) != 0) {
                struct lifting q[LEAF_GROUP];

#pragma unroll
                for (int k = 0; k < LEAF_GROUP; k++) {
                    q[k] = turn[i + k - s.first];
                }
#pragma unroll
                for (int k = i; k < i + LEAF_GROUP; k++) {
                    if (k < WIDTH - 1 && (rows & 1u << k) != 0) {
#pragma unroll
                        for (int c = 0; c < COLUMNS; c++) {
                            rotate(q[k - i], &x[c][k], &x[c][k + 1]);
                        }
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

/* Of the vectors of side `side` those whose entry of largest magnitude, of equals the first, is
   negative: bit i for vector i. */
template <int WIDTH>
static __device__ __forceinline__ unsigned
find_flips(const struct vectors_part<WIDTH> &v, int rows, int side)
{
    constexpr int LANES = part<WIDTH>::LANES, COLUMNS = part<WIDTH>::COLUMNS;
    const unsigned group = ((1u << LANES) - 1) << (side * LANES);
    unsigned flips = 0;

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < rows) {
            real most = R(-1);
            bool flip = false;

#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                most = v.present[c] ? r_max(most, r_abs(v.x[c][i])) : most;
            }
#pragma unroll
            for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
                most = r_max(most, __shfl_xor_sync(0xffffffffu, most, lanes));
            }
#pragma unroll
            for (int c = COLUMNS - 1; c >= 0; c--) {
                unsigned first =
                    __ballot_sync(0xffffffffu, v.present[c] && r_abs(v.x[c][i]) == most) & group;
                const unsigned negative = __ballot_sync(0xffffffffu, v.x[c][i] < 0);

                first &= 0u - first;
                flip = first != 0 ? (negative & first) != 0 : flip;
            }
            flips |= (unsigned)flip << i;
        }
    }
    return flips;
}

/* Vectors of a matrix that is a leaf alone to the results, in the order of the values, signs
   fixed. */
template <int WIDTH>
static __device__ __forceinline__ void
store(const struct dc_device &run, const struct leaf &leaf, const struct vectors_part<WIDTH> &v)
{
    const int lane = (int)threadIdx.x % WARP, by_columns = run.lower ? RIGHT : LEFT;
    const real value = lane < leaf.rows ? r_abs(run.slot.value[leaf.slot + lane]) : R(0);
    const unsigned flips = find_flips<WIDTH>(v, leaf.rows, by_columns);
    real *to = (v.side == LEFT ? run.left : run.right) + leaf.matrix * run.n * run.k;
    int rank = 0; /* of vector `lane`, the largest value first; from `first` on */

    for (int i = 0; i < leaf.rows; i++) {
        const real other = __shfl_sync(0xffffffffu, value, i);

        rank += other > value || (other == value && i > lane);
    }
    rank -= (int)run.first;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        if (i < leaf.rows) {
            const int64_t r = __shfl_sync(0xffffffffu, rank, i);

#pragma unroll
            for (int c = 0; c < part<WIDTH>::COLUMNS; c++) {
                const int64_t column = v.column + c * part<WIDTH>::LANES;

                if (v.present[c] && r >= 0 && r < run.k) {
                    to[v.side == by_columns ? column * run.k + r : r * run.n + column] =
                        flips >> i & 1 ? -v.x[c][i] : v.x[c][i];
                }
            }
        }
    }
}

/*
 * Plays log `at` to the vectors of a leaf: to the identity if `fresh`, else to what lies in run.x,
 * where they go, or to the results if the leaf is all of its matrix.
 */
template <int WIDTH>
static __device__ __forceinline__ void
play(const struct dc_device &run, const struct leaf &leaf, const struct leaf_log &log, int64_t at,
     bool fresh, struct ring *ring)
{
    constexpr int LANES = part<WIDTH>::LANES, COLUMNS = part<WIDTH>::COLUMNS;
    const int lane = (int)threadIdx.x % WARP, sides_lane = lane / LANES;
    const struct leaf_end end = log.end[at];
    const uint16_t *sweep = log.sweep + at * log.sweeps;
    struct vectors_part<WIDTH> v;
    struct reader reader = {log.turn + at * log.turns, log.turns, 0, {0, 0}};
    int begin = 0, packed = 0; /* the first turn of a sweep; of WARP sweeps the lane's */
    real *to, null[COLUMNS];
    bool has_null;

    read_ahead(&reader);

    v.side = sides_lane == LEFT ? LEFT : RIGHT;
    v.column = lane % LANES;
    has_null = v.side == RIGHT && leaf.columns > leaf.rows;
    to = side_of(run.x, run, v.side) + leaf.slot * run.stride + leaf.column + v.column;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        const int column = v.column + c * LANES;

        v.present[c] = sides_lane < SIDES && column < leaf.columns;
        null[c] = column == leaf.rows ? R(1) : R(0);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            v.x[c][i] = i == column ? R(1) : R(0);
            if (!fresh && v.present[c] && i < leaf.rows) {
                v.x[c][i] = to[i * run.stride + c * LANES];
            }
        }
        if (!fresh && v.present[c] && has_null) {
            null[c] = to[leaf.rows * run.stride + c * LANES];
        }
    }
    if (fresh && leaf.columns > leaf.rows) {
        take_turns(&reader, ring);
#pragma unroll
        for (int i = WIDTH - 1; i >= 0; i--) {
            if (i < leaf.rows) {
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    rotate(ring->turn[v.side][LEAF_GROUP + i], &v.x[c][i], &null[c]);
                }
            }
        }
        begin = leaf.rows;
    }
    for (int i = 0; i < end.sweeps; i++) {
        struct short_sweep s;

        if (i % WARP == 0) {
            packed = i + lane < end.sweeps ? sweep[i + lane] : 0;
        }
        s = unpack((unsigned)__shfl_sync(0xffffffffu, packed, i % WARP));
        if (begin + s.count > reader.ready) {
            take_turns(&reader, ring);
        }
        apply<WIDTH>(s, &ring->turn[v.side][LEAF_GROUP + begin % (2 * WARP)], v.x);
        begin += s.count;
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            v.x[c][i] = v.side == LEFT && (end.negative >> i & 1) ? -v.x[c][i] : v.x[c][i];
        }
    }
    if (end.done && run.levels == 0) {
        store<WIDTH>(run, leaf, v);
    } else {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                if (v.present[c] && i < leaf.rows) {
                    to[i * run.stride + c * LANES] = v.x[c][i];
                }
            }
            if (v.present[c] && has_null) {
                to[leaf.rows * run.stride + c * LANES] = null[c];
            }
        }
    }
    if (end.done) {
        settle(run, leaf);
    }
}

/* Log i is that of leaf first + i. */
template <int WIDTH>
static __global__ void
__launch_bounds__(APPLY_WARPS *WARP)
    apply_kernel(struct dc_device run, struct leaf_log log, int64_t first, int64_t count)
{
    const int warp = (int)threadIdx.x / WARP;
    const int64_t at = (int64_t)blockIdx.x * APPLY_WARPS + warp;
    __shared__ struct ring ring[APPLY_WARPS];

    if (at < count) {
        play<WIDTH>(run, leaf_of(run, first + at), log, at, true, &ring[warp]);
    }
}

/* Finishes the leaves whose log was full, block b in log b. */
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

/* Lays out the logs of `leaves` leaves; returns their bytes. */
static size_t
lay_out(struct leaf_log *log, int64_t leaves, char *base)
{
    size_t at = 0;

    log->turn = cut<struct half_tangents>(base, &at, leaves * log->turns);
    log->sweep = cut<uint16_t>(base, &at, leaves * log->sweeps);
    log->end = cut<struct leaf_end>(base, &at, leaves);
    return at;
}

/* Two logs that chunks of leaves use in turn, so that the sweeps of one, which wait for one
   another, run beside the vectors of the chunk before, which do not. */
enum { LOGS = 2 };

struct leaf_streams {
    cudaStream_t sweeps; /* before all else; the vectors are on the call's stream */
    cudaEvent_t begun, swept[LOGS], played[LOGS];
};

static tsvd_status
open_streams(struct cuda_call *call, struct leaf_streams *s)
{
    int least, greatest;
    tsvd_status ret = TSVD_OK;

    TSVD_CUDA(call, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    TSVD_CUDA(call, cudaStreamCreateWithPriority(&s->sweeps, cudaStreamNonBlocking, greatest));
    TSVD_CUDA(call, cudaEventCreateWithFlags(&s->begun, cudaEventDisableTiming));
    for (int i = 0; i < LOGS; i++) {
        TSVD_CUDA(call, cudaEventCreateWithFlags(&s->swept[i], cudaEventDisableTiming));
        TSVD_CUDA(call, cudaEventCreateWithFlags(&s->played[i], cudaEventDisableTiming));
    }
    TSVD_CUDA(call, cudaEventRecord(s->begun, call->stream));
    TSVD_CUDA(call, cudaStreamWaitEvent(s->sweeps, s->begun, 0));
out:
    return ret;
}

/* What is enqueued goes on. */
static void
close_streams(struct leaf_streams *s)
{
    const cudaEvent_t events[] = {s->begun, s->swept[0], s->swept[1], s->played[0], s->played[1]};

    for (cudaEvent_t event : events) {
        if (event != NULL) {
            (void)cudaEventDestroy(event);
        }
    }
    if (s->sweeps != NULL) {
        (void)cudaStreamDestroy(s->sweeps);
    }
}

template <int WIDTH>
static tsvd_status
launch(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    static_assert(LEAF_TURNS(WIDTH) % WARP == 0, "a warp reads a whole log");
    const size_t room = (size_t)LEAF_LOG_MIB << 20;
    struct leaf_log log[LOGS];
    struct leaf_streams streams = {};
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
    /* kernels share a multiprocessor where they split its memory alike */
    TSVD_CUDA(call, cudaFuncSetAttribute(apply_kernel<WIDTH>,
                                         cudaFuncAttributePreferredSharedMemoryCarveout,
                                         cudaSharedmemCarveoutMaxShared));
    TSVD_CUDA(call,
              cudaFuncSetAttribute(sweeps_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutMaxShared));
    TSVD_TRY(open_streams(call, &streams));
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t first = i * chunk, left = level.nodes - first;
        const int64_t count = left < chunk ? left : chunk;
        const int turn = (int)(i % LOGS);

        if (i >= LOGS) {
            TSVD_CUDA(call, cudaStreamWaitEvent(streams.sweeps, streams.played[turn], 0));
        }
        sweeps_kernel<<<(unsigned)((count + share - 1) / share), WARP,
                        (size_t)share *(size_t)(2 * level.columns + 1) * sizeof(real),
                        streams.sweeps>>>(*run, log[turn], first, count, (int)share);
        TSVD_LAUNCHED(call);
        TSVD_CUDA(call, cudaEventRecord(streams.swept[turn], streams.sweeps));
        TSVD_CUDA(call, cudaStreamWaitEvent(call->stream, streams.swept[turn], 0));
        apply_kernel<WIDTH><<<(unsigned)((count + APPLY_WARPS - 1) / APPLY_WARPS),
                              APPLY_WARPS * WARP, 0, call->stream>>>(*run, log[turn], first, count);
        TSVD_LAUNCHED(call);
        TSVD_CUDA(call, cudaEventRecord(streams.played[turn], call->stream));
    }
    stragglers_kernel<WIDTH>
        <<<(unsigned)(chunk < STRAGGLER_BLOCKS ? chunk : (int64_t)STRAGGLER_BLOCKS), WARP, 0,
           call->stream>>>(*run, log[0]);
    TSVD_LAUNCHED(call);
out:
    if (ret != TSVD_OK && streams.sweeps != NULL) {
        (void)cudaStreamSynchronize(streams.sweeps); /* it may be at work in the memory */
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
