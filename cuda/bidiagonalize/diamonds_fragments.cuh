/*
 * Diamonds on vectors by the tensor cores of float64: the way `fragments` of diamonds.cu.
 *
 * The window is the accumulator of mma.m16n8k8, transposed: an accumulator has 8 entries of 8 pairs
 * of numbers.  A pair is two neighbouring vectors, or real and imaginary part of one.  Lane 4 g + q
 * has of pair g
 *
 *     c[0], c[2]    the numbers of the pair, entry 2 q
 *     c[1], c[3]    entry 2 q + 1.
 *
 * The same registers are a left factor of a product over these entries, in the order
 * 0 2 4 6 1 3 5 7.  The right factors, of 8 x 8 numbers of V and of -V T, are stored in this order:
 * no number changes the lane.  Those that are zero in any diamond are left out.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_FRAGMENTS_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_FRAGMENTS_CUH

#include "bidiagonalize/diamonds_factors.cuh"

enum {
    PAIRS = 8,                          /* of numbers, that a warp has */
    STEP_VECTORS = 2 * PAIRS / N_PARTS, /* vectors of a warp */
    FRAGMENT = 8,                       /* rows and columns of a right factor */
    WINDOW = DIAMOND_ROWS / FRAGMENT,   /* accumulators of the window */
    ACROSS = CHASE_SWEEPS / FRAGMENT,   /* those of V^H X */
    REACH = BAND / FRAGMENT + 1,        /* right factors of V in a column of them */
    V_FRAGMENTS = ACROSS * REACH,       /* then come those of V T */
    FRAGMENTS = 2 * V_FRAGMENTS + ACROSS * (ACROSS - 1) / 2,
    FRAGMENT_PAIRS = FRAGMENTS * N_PARTS * WARP, /* pairs of numbers of a diamond */
    STEP_NUMBERS = 2 * FRAGMENT_PAIRS / N_PARTS
};

static_assert(SHARE == 8, "a warp makes the fragments of its columns");

/* Microseconds, on an H200, of a diamond in a block of w warps of a real type, over w + 1. */
#define FRAGMENT_TIME 0.55

/* Which fragment has the rows r and columns s, in units of FRAGMENT, and whether there is one. */
static __device__ __forceinline__ constexpr int
v_fragment(int r, int s)
{
    return s * REACH + r - s;
}

static __device__ __forceinline__ constexpr bool
in_vt(int r, int s)
{
    return r < s + REACH;
}

static __device__ __forceinline__ constexpr int
vt_fragment(int r, int s)
{
    return V_FRAGMENTS + s * REACH + s * (s - 1) / 2 + r;
}

/* A lane's numbers of a fragment: [part][lane]. */
static __device__ __forceinline__ void
write_fragment(double2 *to, int fragment, int lane, scalar a, scalar b)
{
    to += fragment * N_PARTS * WARP + lane;
#if TSVD_COMPLEX
    to[0] = make_double2(a.re, b.re);
    to[WARP] = make_double2(a.im, b.im);
#else
    to[0] = make_double2(a, b);
#endif
}

/* V and -V T of a diamond, [FRAGMENTS][N_PARTS][WARP]. */
static __global__ void
__launch_bounds__(PREPARE_THREADS) make_steps_kernel(const scalar *reflectors, scalar *steps)
{
    extern __shared__ __align__(16) char shared[];
    struct shared_diamond *const d = (struct shared_diamond *)shared;
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    double2 *fragments = (double2 *)steps;
    scalar vt[ROWS_OF_LANE][SHARE];

    make_diamond(d, reflectors + (int64_t)blockIdx.x * CHASE_SWEEPS * BAND, vt);
    fragments += (int64_t)blockIdx.x * FRAGMENT_PAIRS;
    for (int i = warp; i < V_FRAGMENTS; i += PREPARE_WARPS) {
        const int s = i / REACH, r = s + i % REACH;
        const int row = r * FRAGMENT + 2 * (lane % 4), column = s * FRAGMENT + lane / 4;

        write_fragment(fragments, v_fragment(r, s), lane, entry_of(d, row, column),
                       entry_of(d, row + 1, column));
    }
#pragma unroll
    for (int b = 0; b < ROWS_OF_LANE; b++) {
        const int row = lane + b * WARP, r = row / FRAGMENT;

        if (in_vt(r, warp)) {
#pragma unroll
            for (int q = 0; q < SHARE / 2; q++) {
                write_fragment(fragments, vt_fragment(r, warp), row % FRAGMENT * 4 + q,
                               -vt[b][2 * q], -vt[b][2 * q + 1]);
            }
        }
    }
}

/* Stages of shared memory: a diamond's fragments, and the rows that enter the window after it. */
template <int WARPS> struct stages_of {
    enum {
        THREADS = WARPS * WARP,
        ROW_PAIRS = 2 * ACROSS * THREADS,
        PAIRS_OF_STAGE = FRAGMENT_PAIRS + ROW_PAIRS,
        STAGES = TSVD_COMPLEX ? 2
                 : WARPS <= 4 ? 4
                              : 3,
        BYTES = STAGES * PAIRS_OF_STAGE * 16
    };
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static __device__ __forceinline__ constexpr bool
in_v(int r, int s)
{
    return r >= s && r < s + REACH;
}

/* c += a b.  a0 and a1 are the numbers of the pair of the first entry, a2 and a3 of the second. */
static __device__ __forceinline__ void
multiply_fragment(double (&c)[4], double a0, double a1, double a2, double a3, double2 b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b.x), "d"(b.y));
}

static __device__ __forceinline__ void
copy_pair(double2 *to, const double2 *from)
{
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

/* Starts the copies of a diamond's fragments to a stage, and of the rows from x on. */
template <int WARPS>
static __device__ __forceinline__ void
fetch_stage(double2 *stage, const double2 *fragments, const double2 *x, int64_t columns,
            bool with_rows)
{
    constexpr int THREADS = stages_of<WARPS>::THREADS;
    double2 *const rows = stage + FRAGMENT_PAIRS + threadIdx.x;

    for (int i = (int)threadIdx.x; i < FRAGMENT_PAIRS; i += THREADS) {
        copy_pair(stage + i, fragments + i);
    }
    if (with_rows) {
#pragma unroll
        for (int r = 0; r < ACROSS; r++) {
            copy_pair(rows + 2 * r * THREADS, x + r * FRAGMENT * columns);
            copy_pair(rows + (2 * r + 1) * THREADS, x + (r * FRAGMENT + 1) * columns);
        }
    }
}

/* An accumulator of the window to the slab. */
static __device__ __forceinline__ void
store_rows(double2 *x, int64_t columns, const double (&c)[4])
{
    x[0] = make_double2(c[0], c[2]);
    x[columns] = make_double2(c[1], c[3]);
}

/* The window times a diamond, whose fragments are at `f` for this lane. */
static __device__ __forceinline__ void
multiply_window(double (&c)[WINDOW][4], const double2 *f)
{
    double w[ACROSS][4];

#pragma unroll
    for (int s = 0; s < ACROSS; s++) {
        w[s][0] = w[s][1] = w[s][2] = w[s][3] = 0;
    }
#pragma unroll
    for (int r = 0; r < WINDOW; r++) {
#pragma unroll
        for (int s = 0; s < ACROSS; s++) {
            if (in_v(r, s)) {
                multiply_fragment(w[s], c[r][0], c[r][2], c[r][1], c[r][3],
                                  f[v_fragment(r, s) * N_PARTS * WARP]);
            }
        }
#if TSVD_COMPLEX
        /* by -i times the imaginary part of V: the pair (re, im) of x becomes (im, -re) */
#pragma unroll
        for (int s = 0; s < ACROSS; s++) {
            if (in_v(r, s)) {
                multiply_fragment(w[s], c[r][2], -c[r][0], c[r][3], -c[r][1],
                                  f[(v_fragment(r, s) * N_PARTS + 1) * WARP]);
            }
        }
#endif
    }
#pragma unroll
    for (int s = 0; s < ACROSS; s++) {
#pragma unroll
        for (int r = 0; r < WINDOW; r++) {
            if (in_vt(r, s)) {
                multiply_fragment(c[r], w[s][0], w[s][2], w[s][1], w[s][3],
                                  f[vt_fragment(r, s) * N_PARTS * WARP]);
            }
        }
#if TSVD_COMPLEX
        /* by i times the imaginary part of V T: (re, im) becomes (-im, re) */
#pragma unroll
        for (int r = 0; r < WINDOW; r++) {
            if (in_vt(r, s)) {
                multiply_fragment(c[r], -w[s][2], w[s][0], -w[s][3], w[s][1],
                                  f[(vt_fragment(r, s) * N_PARTS + 1) * WARP]);
            }
        }
#endif
    }
}
#endif

/* The diamonds of the steps begin .. end - 1 on the vectors of a slab; `columns` are pairs, and
   `fragments` those of step `begin`.  A warp has PAIRS columns. */
template <int WARPS>
static __global__ void
__launch_bounds__(WARPS *WARP, 1)
    window_kernel(double2 *x, int64_t columns, const double2 *fragments, int64_t n, int64_t begin,
                  int64_t end)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    constexpr int THREADS = stages_of<WARPS>::THREADS, STAGES = stages_of<WARPS>::STAGES;
    constexpr int PAIRS_OF_STAGE = stages_of<WARPS>::PAIRS_OF_STAGE;
    extern __shared__ __align__(16) char shared[];
    double2 *const stages = (double2 *)shared;
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    double c[WINDOW][4];

    x += ((int64_t)blockIdx.x * WARPS + warp) * PAIRS + lane / 4 + (2 * (lane % 4) + 1) * columns;
    for (int64_t k = begin; k < end; k++) {
        const int groups = (int)chase_groups(n, k);
        /* of the window, and of the rows and fragments of the next stage */
        double2 *rows = x + (BAND * k + CHASE_SWEEPS * (int64_t)(groups - 1)) * columns;
        const double2 *next_rows = rows - CHASE_SWEEPS * columns;
        const double2 *next = fragments + (int64_t)(groups - 1) * FRAGMENT_PAIRS;
        int stage = 0;

        __syncthreads(); /* the stages are free */
#pragma unroll
        for (int t = 0; t < STAGES - 1; t++) {
            if (t < groups) {
                fetch_stage<WARPS>(stages + t * PAIRS_OF_STAGE, next, next_rows, columns,
                                   t + 1 < groups);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            next -= FRAGMENT_PAIRS;
            next_rows -= CHASE_SWEEPS * columns;
        }
#pragma unroll
        for (int r = 0; r < WINDOW; r++) {
            const double2 *const at = rows + r * FRAGMENT * columns;
            const double2 first = at[0], second = at[columns];

            c[r][0] = first.x;
            c[r][1] = second.x;
            c[r][2] = first.y;
            c[r][3] = second.y;
        }
        for (int t = 0; t < groups; t++) {
            const double2 *const here = stages + stage * PAIRS_OF_STAGE;
            const int free = stage == 0 ? STAGES - 1 : stage - 1;

            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            if (t + STAGES - 1 < groups) {
                fetch_stage<WARPS>(stages + free * PAIRS_OF_STAGE, next, next_rows, columns,
                                   t + STAGES < groups);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            next -= FRAGMENT_PAIRS;
            next_rows -= CHASE_SWEEPS * columns;
            multiply_window(c, here + lane);
#pragma unroll
            for (int r = WINDOW - ACROSS; r < WINDOW; r++) {
                store_rows(rows + r * FRAGMENT * columns, columns, c[r]);
            }
            if (t + 1 < groups) {
                const double2 *const entering = here + FRAGMENT_PAIRS + threadIdx.x;

#pragma unroll
                for (int r = WINDOW - 1; r >= ACROSS; r--) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        c[r][i] = c[r - ACROSS][i];
                    }
                }
#pragma unroll
                for (int r = 0; r < ACROSS; r++) {
                    const double2 first = entering[2 * r * THREADS];
                    const double2 second = entering[(2 * r + 1) * THREADS];

                    c[r][0] = first.x;
                    c[r][1] = second.x;
                    c[r][2] = first.y;
                    c[r][3] = second.y;
                }
            } else {
#pragma unroll
                for (int r = 0; r < WINDOW - ACROSS; r++) {
                    store_rows(rows + r * FRAGMENT * columns, columns, c[r]);
                }
            }
            rows -= CHASE_SWEEPS * columns;
            stage = stage + 1 < STAGES ? stage + 1 : 0;
        }
        fragments += (int64_t)groups * FRAGMENT_PAIRS;
    }
#else
    (void)x;
    (void)columns;
    (void)fragments;
    (void)n;
    (void)begin;
    (void)end;
#endif
}

template <int WARPS>
static tsvd_status
launch_fragments(struct cuda_call *call, unsigned blocks, scalar *d_slab, int64_t columns,
                 const scalar *d_steps, int64_t n, int64_t begin, int64_t end)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call,
             cudaFuncSetAttribute(window_kernel<WARPS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  stages_of<WARPS>::BYTES));
    window_kernel<WARPS><<<blocks, WARPS * WARP, stages_of<WARPS>::BYTES, call->stream>>>(
        (double2 *)d_slab, columns * N_PARTS / 2, (const double2 *)d_steps, n, begin, end);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- what diamonds.cu calls ---- */

/* The most warps of a block that the device can run; 0: none. */
static int
step_warps(const struct cuda_device *device)
{
    return capability_for(device, (const void *)window_kernel<WARPS_MOST>, 90) == 9 &&
                   stages_of<WARPS_MOST>::BYTES <= device->shared_most
               ? WARPS_MOST
               : 0;
}

/* Microseconds of a diamond in a block of so many warps. */
static double
step_time(int warps)
{
    return FRAGMENT_TIME * ((warps + 1) * (int)N_PARTS);
}

static tsvd_status
launch_steps(struct cuda_call *call, int warps, unsigned blocks, scalar *d_slab, int64_t columns,
             const scalar *d_steps, int64_t n, int64_t begin, int64_t end)
{
    switch (warps) {
    case 1:
        return launch_fragments<1>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    case 2:
        return launch_fragments<2>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    case 3:
        return launch_fragments<3>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    case 4:
        return launch_fragments<4>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    case 5:
        return launch_fragments<5>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    case 6:
        return launch_fragments<6>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    case 7:
        return launch_fragments<7>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    default:
        return launch_fragments<8>(call, blocks, d_slab, columns, d_steps, n, begin, end);
    }
}

#endif
