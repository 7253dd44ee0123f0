/*
 * Twisted factorisations on the device: the values of small matrices, by Sturm counts.
 *
 * A warp has a value.  Each lane counts at a point of its own, so that a round cuts the bracket
 * into WARP + 1 parts.  Brackets are cut by the bits of their ends: in exponent and mantissa alike.
 */
#include "twisted/twisted_run.h"

enum { WARPS = 8, THREADS = WARPS * (int)WARP };

/* The minors over `count` entries, with their sign changes. */
template <int COUNT>
static __device__ __forceinline__ int
count_changes(const double *square, double x, struct twisted_minors *p)
{
    int changes = 0;

#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const long long before = wide_bits(p->now);

        twisted_minors_step(x, square[k], p);
        changes += (int)((unsigned long long)(wide_bits(p->now) ^ before) >> 63);
    }
    return changes;
}

/* How many values are above x: the sign changes of the minors. */
template <int STRIDE>
static __device__ __forceinline__ int
count_above(int entries, const double *square, double x)
{
    struct twisted_minors p = twisted_minors_begin(x);
    int above = 0, k = 0;

    for (; k + STRIDE <= entries; k += STRIDE) {
        above += count_changes<STRIDE>(square + k, x, &p);
        (void)twisted_minors_rescale(&p);
    }
    for (; k < entries; k++) {
        above += count_changes<1>(square + k, x, &p);
    }
    return above;
}

/* Narrows the bracket of value v until its ends are neighbours; all lanes of a warp. */
template <int STRIDE>
static __device__ __forceinline__ double
find_value(int entries, const double *square, int64_t v, double top)
{
    const int lane = (int)threadIdx.x % WARP;
    long long low = __double_as_longlong(TWISTED_LEAST), high = __double_as_longlong(top);

    while (high - low > 1) {
        const long long width = high - low;
        const long long part = width / (WARP + 1) > 0 ? width / (WARP + 1) : 1;
        const long long x = low + part * (lane + 1) < high ? low + part * (lane + 1) : high;
        const bool is_above = count_above<STRIDE>(entries, square, __longlong_as_double(x)) > v;
        const int lanes = __popc(__ballot_sync(0xffffffffu, is_above && x < high));
        const long long begin = low + part * lanes, end = begin + part;

        high = lanes < (int)WARP && end < high ? end : high;
        low = begin;
    }
    return __longlong_as_double(low);
}

/* Makes the entries in shared memory.  The first block writes them for the kernels that follow. */
static __global__ void
__launch_bounds__(THREADS) value_kernel(struct twisted_device run)
{
    extern __shared__ double square[];
    __shared__ double least_part[WARPS], top_part[WARPS];
    const int thread = (int)threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const int64_t rows = 2 * run.n, from = run.whole_first > 0 ? run.whole_first - 1 : 0;
    const int64_t last = run.whole_first + run.whole_k, to = last < run.n ? last + 1 : run.n;
    const int64_t v = from + (int64_t)blockIdx.x * WARPS + warp;
    double least = (double)INFINITY, top = 0, found;

    for (int64_t k = thread; k < rows; k += THREADS) {
        const real entry = k % 2 != 0 ? run.e[k / 2] : run.d[k / 2];
        const double x = ldexp((double)entry, (int)-run.exponent);
        double rest;

        (void)twisted_entry(x, &square[k], &rest);
        least = k < rows - 1 ? fmin(least, fabs(x)) : least;
        top = fmax(top, fabs(x));
        if (blockIdx.x == 0) {
            run.b[k] = x;
            run.square[k] = square[k];
            run.rest[k] = rest;
        }
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        least = fmin(least, __shfl_xor_sync(0xffffffffu, least, lanes));
        top = fmax(top, __shfl_xor_sync(0xffffffffu, top, lanes));
    }
    if (lane == 0) {
        least_part[warp] = least;
        top_part[warp] = top;
    }
    __syncthreads();
    for (int i = 0; i < WARPS; i++) {
        least = fmin(least, least_part[i]);
        top = fmax(top, top_part[i]);
    }
    if (blockIdx.x == 0 && thread == 0) {
        run.facts->smallness = ~(unsigned long long)__double_as_longlong(least);
        run.facts->refused = run.facts->coarse = 0;
    }
    if (v < to && least >= ldexp(1.0, -TWISTED_RANGE)) {
        /* no value is above the largest sum of two entries */
        const int entries = (int)rows - 1;
        const int64_t stride = twisted_stride(least);

        top *= 2.5;
        found = stride >= WARP          ? find_value<WARP>(entries, square, v, top)
                : stride >= SOME_STRIDE ? find_value<SOME_STRIDE>(entries, square, v, top)
                                        : find_value<LEAST_STRIDE>(entries, square, v, top);
        if (lane == 0) {
            run.found[v - run.whole_first + found_place(0)] = found; /* all together */
        }
    }
}

tsvd_status
tsvdi_cuda_twisted_values(struct cuda_call *call, const struct twisted_device *run)
{
    const size_t bytes = (size_t)(2 * run->n) * sizeof(double);
    tsvd_status ret = TSVD_OK;

    value_kernel<<<blocks_for(run->whole_k + 2, WARPS), THREADS, bytes, call->stream>>>(*run);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
