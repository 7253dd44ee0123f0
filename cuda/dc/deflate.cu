/*
 * Divide and conquer on the device: z, deflation, and the numbering of slots before and after a
 * merge.  One block works on a node.  It makes by ranks and prefix sums the lists that
 * csrc/cpu/dc/deflate.c makes in loops.
 */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "dc/dc_run.h"

typedef cub::BlockScan<uint64_t, MERGE_THREADS> block_scan;
typedef cub::BlockReduce<real, MERGE_THREADS> block_reduce;

/* Bits of a counter.  Three counters share one number, for one prefix sum. */
enum { FIELD_BITS = 21 };

/* Threads of a block that turns vectors; a thread has a column. */
enum { TURN_THREADS = 128 };

static __device__ __forceinline__ uint64_t
field_of(uint64_t packed, int field)
{
    return packed >> (field * FIELD_BITS) & ((1u << FIELD_BITS) - 1);
}

/* The sum over the block, in every thread.  CUB adds up in a fixed order, so the bits are always
   the same. */
static __device__ real
sum_of(real x, block_reduce::TempStorage *temporary, real *result)
{
    real sum = block_reduce(*temporary).Sum(x);

    if (threadIdx.x == 0) {
        *result = sum;
    }
    __syncthreads();
    sum = *result;
    __syncthreads();
    return sum;
}

/* How many of the ascending values[0 .. count - 1] are below x; or_equal: or equal to x. */
static __device__ int64_t
rank_of(const real *values, int64_t count, real x, bool or_equal)
{
    int64_t low = 0, high = count;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (values[middle] < x || (or_equal && values[middle] == x)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What the block's threads share of the node under work. */
struct node_shared {
    union {
        block_scan::TempStorage scan;
        block_reduce::TempStorage reduce;
    } temporary;
    real sum, alpha, beta, threshold;
    struct dc_limits limit;
};

/* Finds z, scaled by the node's unit, the limits and the threshold. */
static __device__ void
find_z(const struct dc_device &run, const struct dc_node &node, struct dc_merge *merge,
       struct node_shared &own)
{
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, center = first + node.left, end = first + node.rows;
    const real *x = columns_of(run.x, run, RIGHT, node);
    real largest = 0, dropped[DC_THRESHOLDS] = {0};

    for (int64_t j = first + threadIdx.x; j < end; j += blockDim.x) {
        largest = j != center ? r_max(largest, slot.value[j]) : largest;
    }
    largest = block_reduce(own.temporary.reduce).Reduce(largest, [](real a, real b) {
        return r_max(a, b);
    });
    if (threadIdx.x == 0) {
        real alpha = run.scaled_d[center], beta = run.scaled_e[center], down;
        int exponent = dc_exponent(r_max(largest, r_max(r_abs(alpha), r_abs(beta))));

        merge->unit = r_pow2(exponent);
        down = r_pow2(-exponent);
        own.alpha = alpha * down;
        own.beta = beta * down;
        own.limit = dc_limits_for(run.eps[node.matrix] * down, run.levels, node.rows);
        merge->null_turn = rotation_make(
            own.alpha * x[center * run.stride + center],
            node.columns > node.rows ? own.beta * x[end * run.stride + center + 1] : REAL(0),
            &slot.z[center]);
        slot.value[center] = 0;
        slot.deflated[center] = 0;
    }
    __syncthreads();
    for (int64_t j = first + threadIdx.x; j < end; j += blockDim.x) {
        real z, part;

        if (j == center) {
            continue;
        }
        if (j < center) {
            z = slot.high[j] > center ? own.alpha * x[j * run.stride + center] : REAL(0);
        } else {
            z = slot.low[j] <= center + 1 ? own.beta * x[j * run.stride + center + 1] : REAL(0);
        }
        slot.z[j] = z;
        z = r_abs(z);
        part = z / own.limit.z;
        for (int c = 0; c < DC_THRESHOLDS; c++) {
            dropped[c] += z <= dc_candidate(own.limit, c) ? part * part : REAL(0);
        }
    }
    for (int c = 0; c < DC_THRESHOLDS; c++) {
        dropped[c] = sum_of(dropped[c], &own.temporary.reduce, &own.sum);
    }
    own.threshold = dc_threshold(own.limit, dropped);
    __syncthreads();
}

/* Merges two ascending lists of slots, a with values_a and b with values_b.  At a tie those of a
   come first. */
static __device__ void
merge_orders(const real *values_a, const int64_t *a, int64_t count_a, const real *values_b,
             const int64_t *b, int64_t count_b, int64_t *merged)
{
    for (int64_t i = threadIdx.x; i < count_a + count_b; i += blockDim.x) {
        if (i < count_a) {
            merged[i + rank_of(values_b, count_b, values_a[i], false)] = a[i];
        } else {
            int64_t k = i - count_a;

            merged[k + rank_of(values_a, count_a, values_b[k], true)] = b[k];
        }
    }
    __syncthreads();
}

/* Lists the slots that z does not deflate, the center first.  slot.tau gets their scaled values. */
static __device__ void
make_list(const struct dc_device &run, const struct dc_node &node, struct dc_merge *merge,
          struct node_shared &own)
{
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, center = first + node.left;
    const int64_t before = node.left, after = node.rows - node.left - 1;
    const real down = 1 / merge->unit;
    int64_t *ascending = slot.from + first;
    uint64_t listed = 1;

    for (int64_t i = threadIdx.x; i < node.rows; i += blockDim.x) {
        slot.base[first + i] = i != node.left ? slot.value[slot.order[first + i]] : REAL(0);
    }
    __syncthreads();
    merge_orders(slot.base + first, slot.order + first, before, slot.base + center + 1,
                 slot.order + center + 1, after, ascending);
    if (threadIdx.x == 0) {
        slot.list[first] = center;
        slot.tau[first] = 0;
    }
    for (int64_t begin = 0; begin < before + after; begin += MERGE_THREADS) {
        const int64_t i = begin + threadIdx.x;
        const int64_t j = i < before + after ? ascending[i] : center;
        const bool kept = i < before + after && r_abs(slot.z[j]) > own.threshold;
        uint64_t at, total;

        block_scan(own.temporary.scan).ExclusiveSum((uint64_t)kept, at, total);
        __syncthreads();
        if (i < before + after) {
            slot.order[first + i] = j;
            slot.deflated[j] = !kept;
        }
        if (kept) {
            slot.list[first + listed + at] = j;
            slot.tau[first + listed + at] = slot.value[j] * down;
        }
        listed += total;
    }
    if (threadIdx.x == 0) {
        merge->listed = (int64_t)listed;
    }
    __syncthreads();
}

/* How many entries of the list are close to the entry before, in every thread. */
static __device__ int64_t
count_close(const real *d, int64_t listed, struct node_shared &own)
{
    uint64_t close = 0, before, total;

    for (int64_t i = threadIdx.x + 1; i < listed; i += blockDim.x) {
        close += (uint64_t)dc_close(own.limit, d[i - 1], d[i]);
    }
    block_scan(own.temporary.scan).ExclusiveSum(close, before, total);
    __syncthreads();
    return (int64_t)total;
}

/* Lets list entries absorb close ones that follow.  slot.to gets the absorbed entries.  One thread
   works on each run of close neighbours. */
static __device__ void
absorb(const struct dc_device &run, const struct dc_node &node, struct dc_merge *merge,
       struct node_shared &own)
{
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, listed = merge->listed;
    const int64_t *list = slot.list + first;
    const real *d = slot.tau + first;
    const struct dc_purse full = dc_fill_purse(own.limit, count_close(d, listed, own));
    uint64_t absorbed = 0;

    for (int64_t i = threadIdx.x; i < listed; i += blockDim.x) {
        struct dc_purse purse = full;
        int64_t last = i;

        if (i > 0 && dc_close(own.limit, d[i - 1], d[i])) {
            continue; /* not the first of its run */
        }
        slot.head[first + i] = i;
        for (int64_t k = i + 1; k < listed && dc_close(own.limit, d[k - 1], d[k]); k++) {
            if (dc_absorb(own.limit, &purse, d[last], d[k], &slot.z[list[last]], &slot.z[list[k]],
                          &slot.turn[first + k])) {
                slot.deflated[list[k]] = 1;
            } else {
                last = k;
            }
            slot.head[first + k] = last;
        }
    }
    __syncthreads();
    for (int64_t begin = 0; begin < listed; begin += MERGE_THREADS) {
        const int64_t i = begin + threadIdx.x;
        const bool gone = i < listed && slot.head[first + i] != i;
        uint64_t at, total;

        block_scan(own.temporary.scan).ExclusiveSum((uint64_t)gone, at, total);
        __syncthreads();
        if (gone) {
            slot.to[first + absorbed + at] = i;
        }
        absorbed += total;
    }
    if (threadIdx.x == 0) {
        merge->absorbed = (int64_t)absorbed;
    }
}

static __global__ void
__launch_bounds__(MERGE_THREADS) deflate_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.x);
    struct dc_merge *merge = merge_at(run, depth, blockIdx.x);
    __shared__ struct node_shared own;

    find_z(run, node, merge, own);
    make_list(run, node, merge, own);
    absorb(run, node, merge, own);
}

/* Entry `column` of row j of one side's vectors; zero outside of the slot's range. */
static __device__ __forceinline__ real
entry_of(const struct dc_device &run, const real *x, int64_t j, int64_t column)
{
    return column >= run.slot.low[j] && column < run.slot.high[j] ? x[j * run.stride + column]
                                                                  : REAL(0);
}

/* Turns the null vectors, and each head with what it absorbs.  A thread owns a column. */
static __global__ void
turn_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.y);
    const struct dc_merge *merge = merge_at(run, depth, blockIdx.y);
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, center = first + node.left, null = first + node.rows;
    const int64_t column = first + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int side = (int)blockIdx.z;
    real *x = columns_of(run.x, run, side, node), head = 0;
    int64_t last = -1, low = 0, high = 0;

    if (column >= first + node.columns) {
        return;
    }
    if (side == RIGHT && null < first + node.columns) {
        const struct rotation q = merge->null_turn;
        const real a = column <= center ? x[center * run.stride + column] : REAL(0);
        const real b = column > center ? x[null * run.stride + column] : REAL(0);

        x[center * run.stride + column] = r_fma(q.c, a, q.s * b);
        x[null * run.stride + column] = r_fma(q.c, b, -(q.s * a));
    }
    for (int64_t i = 0; i < merge->absorbed; i++) {
        const int64_t at = slot.to[first + i], h = slot.head[first + at];
        const int64_t a = slot.list[first + h], b = slot.list[first + at];
        struct rotation q = {1, 0}; /* for the center: it has no left vector */
        real member;

        if (side == RIGHT || a != center) {
            q = slot.turn[first + at];
        }

        if (h != last) {
            if (last >= 0 && column >= low && column < high) {
                x[slot.list[first + last] * run.stride + column] = head;
            }
            last = h;
            low = a == center ? first : slot.low[a];
            high = a != center ? slot.high[a] : null < first + node.columns ? null + 1 : center + 1;
            if (a == center) {
                head = side == RIGHT && column < high ? x[a * run.stride + column] : REAL(0);
            } else {
                head = entry_of(run, x, a, column);
            }
        }
        low = slot.low[b] < low ? slot.low[b] : low;
        high = slot.high[b] > high ? slot.high[b] : high;
        member = entry_of(run, x, b, column);
        if (column >= low && column < high) {
            x[b * run.stride + column] = r_fma(q.c, member, -(q.s * head));
        }
        head = r_fma(q.c, head, q.s * member);
    }
    if (last >= 0 && column >= low && column < high) {
        x[slot.list[first + last] * run.stride + column] = head;
    }
}

/* Widens the ranges of what turn_kernel turned. */
static __device__ void
widen(const struct dc_device &run, const struct dc_node &node, const struct dc_merge *merge)
{
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, center = first + node.left;

    if (threadIdx.x == 0) {
        slot.low[center] = first;
        slot.high[center] = node.columns > node.rows ? first + node.columns : center + 1;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < merge->absorbed; i += blockDim.x) {
        const int64_t h = slot.head[first + slot.to[first + i]], a = slot.list[first + h];

        if (i > 0 && slot.head[first + slot.to[first + i - 1]] == h) {
            continue; /* not the first of its group */
        }
        for (int64_t k = i; k < merge->absorbed && slot.head[first + slot.to[first + k]] == h;
             k++) {
            const int64_t b = slot.list[first + slot.to[first + k]];

            slot.low[a] = slot.low[b] = slot.low[b] < slot.low[a] ? slot.low[b] : slot.low[a];
            slot.high[a] = slot.high[b] = slot.high[b] > slot.high[a] ? slot.high[b] : slot.high[a];
        }
    }
    __syncthreads();
}

/* A list entry; each thread of the block has one. */
struct surveyed {
    int64_t slot;    /* its slot if it survives, else -1 */
    int group;       /* dc_group() of that slot */
    uint64_t before; /* survivors of each group in the threads before, as fields */
    uint64_t total;  /* survivors of each group in all threads, as fields */
};

/* Surveys the list entries from `begin` on. */
static __device__ struct surveyed
survey(const struct dc_slots &slot, const struct dc_node &node, int64_t listed, int64_t begin,
       struct node_shared &own)
{
    const int64_t first = node.first, i = begin + threadIdx.x;
    struct surveyed found = {-1, 0, 0, 0};

    if (i < listed && slot.head[first + i] == i) {
        const int64_t j = found.slot = slot.list[first + i];

        found.group = dc_group(slot.low[j], slot.high[j], first + node.left, j);
    }
    block_scan(own.temporary.scan)
        .ExclusiveSum((uint64_t)(found.slot >= 0) << (found.group * FIELD_BITS), found.before,
                      found.total);
    __syncthreads();
    return found;
}

/* Numbers survivors by value and by place. */
static __device__ void
number_survivors(const struct dc_device &run, const struct dc_node &node, struct dc_merge *merge,
                 struct node_shared &own)
{
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, listed = merge->listed;
    uint64_t before = 0;
    int64_t start[3], survivors;

    for (int64_t begin = 0; begin < listed; begin += MERGE_THREADS) {
        before += survey(slot, node, listed, begin, own).total;
    }
    start[0] = 0;
    start[1] = (int64_t)field_of(before, 0);
    start[2] = start[1] + (int64_t)field_of(before, 1);
    survivors = start[2] + (int64_t)field_of(before, 2);
    if (threadIdx.x == 0) {
        real *z = &slot.z[first + node.left];

        merge->count.survivors = survivors;
        merge->count.top = start[1];
        merge->count.dense = start[2] - start[1];
        merge->count.begin = 0;
        merge->count.end = survivors;
        if (survivors > 1 && r_abs(*z) < own.limit.floor) {
            *z = r_copysign(own.limit.floor, *z);
        }
    }
    __syncthreads();
    before = 0;
    for (int64_t begin = 0; begin < listed; begin += MERGE_THREADS) {
        const struct surveyed found = survey(slot, node, listed, begin, own);
        const uint64_t at = before + found.before;

        before += found.total;
        if (found.slot >= 0) {
            const int64_t rank =
                first + (int64_t)(field_of(at, 0) + field_of(at, 1) + field_of(at, 2));
            const int64_t place = start[found.group] + (int64_t)field_of(at, found.group);
            const real z = slot.z[found.slot], pole = slot.value[found.slot] / merge->unit;

            slot.pole[rank] = pole;
            slot.square[rank] = z * z;
            slot.place[rank] = place;
            slot.source[first + place] = found.slot;
            slot.placed_pole[first + place] = pole;
            slot.placed_weight[first + place] = z;
        }
    }
}

/* Finds the moves: the new vectors take the node's first slots, and deflated vectors move from
   there to the later slots of survivors. */
static __device__ void
find_moves(const struct dc_device &run, const struct dc_node &node, struct dc_merge *merge,
           struct node_shared &own)
{
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, boundary = first + merge->count.survivors;
    uint64_t before = 0;

    for (int64_t begin = 0; begin < node.rows; begin += MERGE_THREADS) {
        const int64_t j = first + begin + threadIdx.x;
        const bool inside = j < first + node.rows, gone = inside && slot.deflated[j];
        const bool from = gone && j < boundary, to = inside && !gone && j >= boundary;
        uint64_t at, total;

        block_scan(own.temporary.scan)
            .ExclusiveSum((uint64_t)from + ((uint64_t)to << FIELD_BITS), at, total);
        __syncthreads();
        at += before;
        before += total;
        if (from) {
            slot.from[first + field_of(at, 0)] = j;
        }
        if (to) {
            slot.to[first + field_of(at, 1)] = j;
        }
    }
    if (threadIdx.x == 0) {
        merge->moves = (int64_t)field_of(before, 0);
    }
}

static __global__ void
__launch_bounds__(MERGE_THREADS) number_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.x);
    struct dc_merge *merge = merge_at(run, depth, blockIdx.x);
    __shared__ struct node_shared own;

    if (threadIdx.x == 0) {
        own.limit = dc_limits_for(run.eps[node.matrix] / merge->unit, run.levels, node.rows);
    }
    widen(run, node, merge);
    number_survivors(run, node, merge, own);
    __syncthreads();
    find_moves(run, node, merge, own);
}

/* Finds which of the new vectors of a root are wanted. */
static __device__ void
choose_wanted(const struct dc_device &run, const struct dc_node &node, struct dc_count *count,
              struct node_shared &own)
{
    const int64_t end = node.rows - run.first, begin = end - run.k;
    uint64_t before = 0, through = 0, at, total;

    for (int64_t i = threadIdx.x; i < end; i += blockDim.x) {
        const bool fresh = run.slot.order[node.first + i] < node.first + count->survivors;

        before += fresh && i < begin;
        through += fresh;
    }
    block_scan(own.temporary.scan).ExclusiveSum(before + (through << FIELD_BITS), at, total);
    if (threadIdx.x == 0) {
        count->begin = (int64_t)field_of(total, 0);
        count->end = (int64_t)field_of(total, 1);
    }
}

/* Writes values, ranges and order of the node's slots after its merge. */
static __global__ void
__launch_bounds__(MERGE_THREADS) settle_kernel(struct dc_device run, int depth)
{
    const struct dc_node node = node_at(run, depth, blockIdx.x);
    struct dc_merge *kept = merge_at(run, depth, blockIdx.x);
    const struct dc_merge merge = *kept;
    const struct dc_slots &slot = run.slot;
    const int64_t first = node.first, survivors = merge.count.survivors;
    int64_t *ascending = slot.list + first, *fresh = slot.source + first;
    real *values = slot.square + first, *roots = slot.pole + first;
    uint64_t others = 0;
    __shared__ struct node_shared own;

    for (int64_t i = threadIdx.x; i < merge.moves; i += blockDim.x) {
        const int64_t from = slot.from[first + i], to = slot.to[first + i];

        slot.value[to] = slot.value[from];
        slot.low[to] = slot.low[from];
        slot.high[to] = slot.high[from];
        slot.place[from] = to;
    }
    __syncthreads();
    for (int64_t from = 0; from < node.rows - 1; from += MERGE_THREADS) {
        const int64_t i = from + threadIdx.x;
        int64_t j = i < node.rows - 1 ? slot.order[first + i] : first;
        const bool gone = i < node.rows - 1 && slot.deflated[j];
        uint64_t at, total;

        block_scan(own.temporary.scan).ExclusiveSum((uint64_t)gone, at, total);
        __syncthreads();
        if (gone) {
            j = j < first + survivors ? slot.place[j] : j;
            ascending[others + at] = j;
            values[others + at] = slot.value[j];
        }
        others += total;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < survivors; i += blockDim.x) {
        const int64_t j = first + i;

        fresh[i] = j;
        slot.value[j] = roots[i] = (slot.base[j] + slot.tau[j]) * merge.unit;
        slot.low[j] = first;
        slot.high[j] = first + node.columns;
    }
    __syncthreads();
    merge_orders(roots, fresh, survivors, values, ascending, (int64_t)others, slot.order + first);
    if (depth == 0) {
        choose_wanted(run, node, &kept->count, own);
    }
}

tsvd_status
tsvdi_cuda_dc_deflate(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    const unsigned nodes = (unsigned)level.nodes;
    const dim3 columns(blocks_for(level.columns, TURN_THREADS), nodes, SIDES);
    tsvd_status ret = TSVD_OK;

    deflate_kernel<<<nodes, MERGE_THREADS, 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
    turn_kernel<<<columns, TURN_THREADS, 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
    number_kernel<<<nodes, MERGE_THREADS, 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dc_settle(struct cuda_call *call, const struct dc_device *run, struct dc_level level)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_dc_moves(call, run, level));
    settle_kernel<<<(unsigned)level.nodes, MERGE_THREADS, 0, call->stream>>>(*run, level.depth);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
