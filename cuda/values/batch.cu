/*
 * Singular values of many matrices of one order, or of a small one, with a thread for each value.
 *
 * A block holds the entries of its matrices in shared memory and works in rounds.  In each round a
 * thread counts at one shift; threads whose values share a bracket (multisection.h) cut it
 * together.  A matrix with more values than a block has threads takes several blocks.  The forms of
 * the counts follow one another as in values/search.cu.  Single precision needs the plain form
 * only, which reaches down to the least number there.
 */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "values/values.h"

typedef cub::BlockScan<int, COUNT_THREADS, cub::BLOCK_SCAN_WARP_SCANS> block_scan;
typedef cub::BlockReduce<int, COUNT_THREADS> block_reduce;

/* Bytes of a block's shared memory that CUDA keeps. */
static const size_t SHARED_RESERVED = 1024;

/* The most entries times shifts of one launch: they take half a second or less. */
static const double BATCH_STEPS = 2e11;

/* What a launch works on. */
struct value_batch {
    struct values_device v;
    int64_t begin;   /* the first matrix */
    int matrices;    /* of a block */
    int width;       /* threads of a block that have values of one matrix */
    int groups;      /* groups of entries of a matrix */
    int entry_bytes; /* bytes of a matrix's entries, in the form that takes the most */
    unsigned long long *d_counts;
};

/* A block's matrix and the part of its memory that belongs to it. */
struct batch_matrix {
    struct matrix_scale scale;
    char *entry;
    uint32_t *event;
    struct evaluation *at; /* of its threads */
};

/* A block's shared memory. */
struct batch_memory {
    struct matrix_scale *scale; /* [matrices] */
    struct evaluation *at;      /* [COUNT_THREADS]; before the search, sizes of matrices */
    char *entry;                /* [matrices][entry_bytes] */
    uint32_t *event;            /* [matrices][groups] */
    size_t bytes;
};

static __host__ __device__ struct batch_memory
lay_out(const struct value_batch &q, char *base)
{
    struct batch_memory m;

    m.at = (struct evaluation *)base;
    m.entry = (char *)(m.at + COUNT_THREADS); /* a multiple of 16 bytes, as its parts are */
    m.scale = (struct matrix_scale *)(m.entry + (size_t)q.matrices * (size_t)q.entry_bytes);
    m.event = (uint32_t *)(m.scale + q.matrices);
    m.bytes = (size_t)((char *)(m.event + q.matrices * q.groups) - base);
    return m;
}

/* Finds the scales of the block's matrices. */
static __device__ void
measure(const struct value_batch &q, struct batch_memory memory, int64_t here, int matrix, int lane)
{
    struct matrix_size *part = (struct matrix_size *)memory.at, size = {0, 0};
    const int64_t n = q.v.n;

    if (matrix < here) {
        const int64_t offset = (q.begin + (int64_t)blockIdx.x * q.matrices + matrix) * n;

        for (int64_t k = lane; k < 2 * n - 1; k += q.width) {
            matrix_size_add(&size, n, q.v.d_d + offset, q.v.d_e + offset, k);
        }
    }
    part[threadIdx.x] = size;
    __syncthreads();
    if (matrix < here && lane == 0) {
        for (int i = 1; i < q.width; i++) {
            size.largest = r_max(size.largest, part[threadIdx.x + i].largest);
            size.bound = r_max(size.bound, part[threadIdx.x + i].bound);
        }
        memory.scale[matrix] = matrix_scale_of(size);
    }
    __syncthreads();
}

/* Makes the entries of the block's matrices for one of the forms. */
template <class Form>
static __device__ void
prepare(const struct value_batch &q, struct batch_memory memory, int64_t here)
{
    const int64_t n = q.v.n, first = q.begin + (int64_t)blockIdx.x * q.matrices;
    const int entries = (int)(2 * n);

    for (int i = (int)threadIdx.x; i < here * entries; i += COUNT_THREADS) {
        const int matrix = i / entries, k = i % entries;
        const real *d_d = q.v.d_d + (first + matrix) * n, *d_e = q.v.d_e + (first + matrix) * n;
        char *entry = memory.entry + (size_t)matrix * (size_t)q.entry_bytes;

        ((typename Form::entry *)entry)[k] = Form::entry_of(n, d_d, d_e, k, memory.scale[matrix]);
    }
    __syncthreads();
}

/* Finds the events of the block's matrices, from the plain form's entries. */
static __device__ void
find_events(const struct value_batch &q, struct batch_memory memory, int64_t here)
{
    const int64_t n = q.v.n;
    const int stretches = (int)((2 * n + STRETCH - 1) / STRETCH);

    for (int i = (int)threadIdx.x; i < here * stretches; i += COUNT_THREADS) {
        const int matrix = i / stretches, k = i % stretches * STRETCH;
        const double *square = (double *)(memory.entry + (size_t)matrix * (size_t)q.entry_bytes);

        plain_events(n, k, square + k, memory.event + matrix * q.groups + k / GROUP);
    }
    __syncthreads();
}

/* Whether the value is at or above the numbers with these bits. */
template <class Form, int SHIFTS>
static __device__ __forceinline__ void
compare(int64_t n, const struct batch_matrix &m, int64_t value, const real_int (&bits)[SHIFTS],
        bool (&above)[SHIFTS])
{
    Form shift[SHIFTS];

#pragma unroll
    for (int s = 0; s < SHIFTS; s++) {
        shift[s].start(r_from_bits(bits[s]), m.scale);
    }
    Form::pass((const typename Form::entry *)m.entry, m.event, (int)(2 * n), shift);
#pragma unroll
    for (int s = 0; s < SHIFTS; s++) {
        above[s] = shift[s].take() > value;
    }
}

template <class Form>
static __device__ __forceinline__ bool
is_above(int64_t n, const struct batch_matrix &m, int64_t value, real_int bits)
{
    const real_int one[1] = {bits};
    bool above[1];

    compare<Form>(n, m, value, one, above);
    return above[0];
}

/*
 * Closes the bracket of a value that lies near the number with the bits `at`, mostly within a step
 * above it: in steps that double, and then by halving.  Leaves the bracket alone if the steps lead
 * out of the range.  Returns the counts made.
 *
 * It saves the work between the rounds of multisection, which costs as much as several counts.
 * refine() of csrc/cpu/values/values.c does the like, but begins with one count: on a CPU a second
 * one costs as much again, while a thread counts at two shifts in little more than the time of one.
 */
template <class Form>
static __device__ int
close_in(int64_t n, const struct batch_matrix &m, int64_t value, real_int at, real_int step,
         struct bracket_range range, struct bracket *b)
{
    const real_int floor = (real_int)bracket_max(range.floor, 1);
    real_int ends[2] = {at, (real_int)bracket_end_above(at, step, range.top)}, low, high;
    bool above[2];
    int counts = 2;

    if (at < floor || at >= range.top) {
        return 0;
    }
    compare<Form>(n, m, value, ends, above);
    low = ends[0];
    high = ends[1];
    if (!above[0]) {
        do {
            high = low;
            if (low - floor < step) {
                return counts;
            }
            low -= step;
            step *= 2;
            counts++;
        } while (!is_above<Form>(n, m, value, low));
    } else if (above[1]) {
        do {
            if (high == range.top) {
                return counts;
            }
            low = high;
            high = (real_int)bracket_end_above(high, step, range.top);
            step *= 2;
            counts++;
        } while (is_above<Form>(n, m, value, high));
    }
    for (; high - low > 1; counts++) {
        const real_int middle = (real_int)bracket_middle(low, high);

        *(is_above<Form>(n, m, value, middle) ? &low : &high) = middle;
    }
    b->low = low;
    b->high = high;
    b->low_sure = b->high_sure = 1;
    return counts;
}

/* Narrows the brackets of the whole block until all are closed.  Returns the counts made. */
template <class Form>
static __device__ int
search(int64_t n, struct batch_matrix m, struct bracket *b, int64_t value, int64_t first,
       struct bracket_range range, int open)
{
    const int lane = (int)(value - first);
    int counts = 0;

    while (__syncthreads_or(open)) {
        struct bracket_grid cut;

        if (open) {
            struct evaluation here;
            Form shift[1];

            cut = bracket_cut(b, 1, range);
            here.at = bracket_point(&cut, value - b->first);
            shift[0].start(r_from_bits(here.at), m.scale);
            Form::pass((const typename Form::entry *)m.entry, m.event, (int)(2 * n), shift);
            here.above = shift[0].take();
            shift[0].end(&here);
            if (n < GUESS_ORDER) {
                here.value = (double)NAN;
            }
            m.at[lane] = here;
            counts++;
        }
        __syncthreads();
        if (open) {
            bracket_narrow(b, value, &cut, m.at + (b->first - first), range.eps, NULL);
            open = !bracket_is_closed(b, range);
        }
    }
    return counts;
}

/* A value of the block: that of a thread while the plain form counts. */
struct batch_value {
    struct batch_matrix m;
    int64_t first; /* number of the first value of the matrix that the block has */
    int64_t value; /* its own number; the largest value is 0 */
    int64_t place; /* in d_hint and d_s */
    struct bracket_range range;
};

static __device__ struct batch_value
value_of(const struct value_batch &q, struct batch_memory memory, int thread)
{
    const int matrix = thread / q.width;
    const int64_t index = q.begin + (int64_t)blockIdx.x * q.matrices + matrix;
    struct batch_value x = {};

    x.m.scale = memory.scale[matrix];
    x.m.entry = memory.entry + (size_t)matrix * (size_t)q.entry_bytes;
    x.m.event = memory.event + matrix * q.groups;
    x.m.at = memory.at + matrix * q.width;
    x.first = q.v.first + (int64_t)blockIdx.y * q.width;
    x.value = x.first + thread % q.width;
    x.place = index * (q.v.last - q.v.first) + (x.value - q.v.first);
    x.range.floor = x.m.scale.floor;
    x.range.top = x.m.scale.top;
    x.range.eps = q.v.eps;
    return x;
}

/* What close_ranks() shares. */
struct ranks {
    block_scan::TempStorage scan;
    struct bracket kept[COUNT_THREADS]; /* the open brackets */
    int from[COUNT_THREADS];            /* the threads that they come from */
};

/* Bytes of a block's shared memory that are not in struct batch_memory. */
static const size_t SHARED_BESIDE =
    sizeof(struct ranks) + sizeof(block_reduce::TempStorage) + SHARED_RESERVED;

/* Moves the open brackets up to the first threads, so that few warps count for them.  Returns the
   thread that a bracket came from, -1 where there is none. */
static __device__ int
close_ranks(bool open, struct bracket *b)
{
    __shared__ struct ranks ranks;
    const int thread = (int)threadIdx.x;
    int at, all;

    block_scan(ranks.scan).ExclusiveSum((int)open, at, all);
    if (open) {
        ranks.kept[at] = *b;
        ranks.from[at] = thread;
    }
    __syncthreads();
    if (thread >= all) {
        return -1;
    }
    *b = ranks.kept[thread];
    return ranks.from[thread];
}

/* The bracket that a thread's value starts from, narrowed if there is a hint.  Returns the counts
   made. */
static __device__ __forceinline__ int
start_value(const struct value_batch &q, const struct batch_value &x, struct bracket *b)
{
    const struct values_device &v = q.v;

    *b = bracket_start(x.value, v.d_hint != NULL ? &v.d_hint[x.place] : NULL, x.first,
                       bracket_min(x.first + q.width, v.last), x.range);
    return v.d_hint != NULL && v.n < GUESS_ORDER
               ? close_in<plain_form>(v.n, x.m, x.value, b->guess, HINT_ULPS, x.range, b)
               : 0;
}

/* Finds the values that are open with the twofold form, and writes them.  Returns the counts
   made. */
static __device__ __forceinline__ int
find_twofold(const struct value_batch &q, struct batch_memory memory, int64_t here, bool open,
             struct bracket *b)
{
    const struct values_device &v = q.v;
    const int thread = close_ranks(open, b);
    struct batch_value x = {};
    int counts = 0;

    prepare<twofold_form>(q, memory, here);
    if (thread >= 0) {
        x = value_of(q, memory, thread);
        x.range.floor = twofold_floor(x.m.scale);
        /* in most cases the plain form was right */
        counts += close_in<twofold_form>(v.n, x.m, x.value, b->guess, 1, x.range, b);
    }
    open = thread >= 0 && !bracket_is_closed(b, x.range);
    counts += search<twofold_form>(v.n, x.m, b, x.value, x.first, x.range, open);
    if (thread >= 0) {
        v.d_s[x.place] = bracket_value(b);
    }
    return counts;
}

static __global__ void
__launch_bounds__(COUNT_THREADS) batch_kernel(struct value_batch q)
{
    extern __shared__ char shared[] __align__(16);
    __shared__ block_reduce::TempStorage temporary;
    const struct batch_memory memory = lay_out(q, shared);
    const struct values_device &v = q.v;
    const int matrix = (int)threadIdx.x / q.width, lane = (int)threadIdx.x % q.width;
    const int64_t here =
        bracket_min(v.count - q.begin - (int64_t)blockIdx.x * q.matrices, q.matrices);
    const bool active = matrix < here && v.first + (int64_t)blockIdx.y * q.width + lane < v.last;
    struct batch_value x = {};
    struct bracket b;
    bool open = false;
    int counts = 0;

    measure(q, memory, here, matrix, lane);
    prepare<plain_form>(q, memory, here);
    find_events(q, memory, here);
    if (active) {
        x = value_of(q, memory, (int)threadIdx.x);
        counts += start_value(q, x, &b);
        open = !bracket_is_closed(&b, x.range);
    }
    counts += search<plain_form>(v.n, x.m, &b, x.value, x.first, x.range, open);
    open = false;
    if (active && !b.low_sure) {
        x.range.floor = 0;
        bracket_widen(&b, x.range);
        open = !bracket_is_closed(&b, x.range);
    }
    if (!TSVD_SINGLE && __syncthreads_or(open)) {
        prepare<extended_form>(q, memory, here);
        counts += search<extended_form>(v.n, x.m, &b, x.value, x.first, x.range, open);
    }
    open = false;
    if (active) {
        x.range.floor = twofold_floor(x.m.scale);
        bracket_refine(&b, x.value, v.n, x.m.scale, x.range);
        open = !bracket_is_closed(&b, x.range);
        if (!open) {
            v.d_s[x.place] = bracket_value(&b);
        }
    }
    if (!TSVD_SINGLE && __syncthreads_or(open)) {
        counts += find_twofold(q, memory, here, open, &b);
    }
    counts = block_reduce(temporary).Sum(counts);
    if (threadIdx.x == 0) {
        atomicAdd(q.d_counts, (unsigned long long)counts);
    }
}

/* Chooses how a block is filled: by as many matrices as have values for its threads and fit. */
static void
fill_block(struct value_batch *q, int shared_most)
{
    const int64_t n = q->v.n, values = q->v.last - q->v.first;
    const int64_t extended = TSVD_SINGLE ? 0 : 2 * n * (int64_t)sizeof(struct extended_entry);
    int64_t plain;

    q->groups = (int)((2 * n + GROUP - 1) / GROUP);
    plain = (q->groups * GROUP + 2) * (int64_t)sizeof(double); /* 2: begin in other banks */
    q->entry_bytes = (int)bracket_max(extended, plain);
    q->width = (int)bracket_min(values, COUNT_THREADS);
    q->matrices = COUNT_THREADS / q->width;
    while (q->matrices > 1 && lay_out(*q, NULL).bytes > (size_t)shared_most / 4) {
        q->matrices--;
    }
}

bool
tsvdi_cuda_values_fit(const struct cuda_device *device, struct values_device v)
{
    struct value_batch q;

    memset(&q, 0, sizeof(q));
    q.v = v;
    fill_block(&q, device->shared_most);
    return lay_out(q, NULL).bytes + SHARED_BESIDE <= (size_t)device->shared_most;
}

tsvd_status
tsvdi_cuda_values_batch(struct tsvd_context *ctx, struct values_device v, int64_t *counts)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t values = v.last - v.first;
    const double begin = ctx->done, matrix_steps = 2 * (double)v.n * (double)values;
    const int64_t most = bracket_max((int64_t)(BATCH_STEPS / matrix_steps), COUNT_THREADS);
    unsigned long long made = 0;
    struct value_batch q;
    size_t bytes;
    tsvd_status ret = TSVD_OK;

    memset(&q, 0, sizeof(q));
    q.v = v;
    fill_block(&q, call->device->shared_most);
    bytes = lay_out(q, NULL).bytes;
    /* the attribute is of the kernel, which other threads launch too: all set the same */
    CUDA_TRY(call, cudaFuncSetAttribute(batch_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        call->device->shared_most - (int)SHARED_BESIDE));
    TSVD_TRY(tsvdi_cuda_alloc(call, sizeof(*q.d_counts), (void **)&q.d_counts));
    CUDA_TRY(call, cudaMemsetAsync(q.d_counts, 0, sizeof(*q.d_counts), call->stream));
    for (; q.begin < v.count; q.begin += most) {
        const int64_t here = bracket_min(v.count - q.begin, most);
        const dim3 blocks(blocks_for(here, q.matrices), blocks_for(values, q.width));

        q.v.count = q.begin + here;
        batch_kernel<<<blocks, COUNT_THREADS, bytes, call->stream>>>(q);
        CUDA_LAUNCHED(call);
        if (v.count > most) {
            CUDA_TRY(call, cudaStreamSynchronize(call->stream));
            TSVD_TRY(
                tsvdi_check(ctx, begin + (1 - begin) * (double)(q.begin + here) / (double)v.count));
        }
    }
    TSVD_TRY(tsvdi_cuda_download(call, &made, q.d_counts, sizeof(made)));
    *counts += (int64_t)made;
out:
    tsvdi_cuda_free(call, q.d_counts);
    return ret;
}
