/*
 * The ordinary chase of a band: where it has more steps than blocks run at once, and where a
 * message of the systolic chase has not come in time.
 *
 * A block makes a sweep, and has the window in registers for one step.  A block waits only for a
 * sweep that a running block has.
 *
 * lines  [n + BAND][LINE]: entry (i, j) at [i][BAND + j - i].  Rows and columns after the last ones
 *        are zero, and so are their reflectors.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_CHASE_ORDINARY_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_CHASE_ORDINARY_CUH

#include "bidiagonalize/chase_step.cuh"

static __device__ __forceinline__ void
store_release(unsigned *p, unsigned x)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

/* Steps of sweep i. */
static __device__ __forceinline__ int
steps_of(int n, int i)
{
    return (n - 1 - i + BAND - 1) / BAND;
}

static __global__ void
__launch_bounds__(LINE) lines_kernel(const __grid_constant__ struct chase run)
{
    const int64_t row = blockIdx.x;
    const int right = (int)threadIdx.x - BAND;

    run.lines[row * LINE + threadIdx.x] =
        row < run.n && right >= 0 && right <= BAND ? run.band[row * (BAND + 1) + right] : scalar(0);
}

/* Where the window of step k begins.  The sweep is in shared memory, and so it takes no register
   from the window. */
static __device__ __forceinline__ scalar *
window_of(const struct chase &run, const struct chase_shared &s, int k)
{
    return run.lines + (int64_t)(s.sweep + 1 + k * BAND) * LINE + BAND;
}

/* Step k of a sweep, from the row above in s.above[k % 2]; the next one's goes to the other. */
template <bool KEEP>
static __device__ __forceinline__ void
ordinary_step(const struct chase &run, struct chase_shared &s, int k)
{
    const int t = (int)threadIdx.x, turn = k % 2;
    scalar *first = window_of(run, s, k);
    scalar w[ROWS][COLUMNS], sum;
    struct house right, next;

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            w[r][c] = first[own_row(r) * (LINE - 1) + own_column(c)];
        }
    }
    share_first_column(s, w, 0);
    __syncthreads();
    right = begin_right(s.above[turn], w, 0, &sum);
    finish_right(s, right, sum, 0);
    __syncthreads();
    (void)begin_left(s, s.above[turn], 0, w);
    share_columns(s, w, 0);
    __syncthreads();
    if (t < WINDOW) {
        const scalar entry = finish_column(s, 0, 0);

        if (t < BAND) {
            window_of(run, s, k)[t] = t == 0 ? scalar(s.left.beta) : entry;
        }
        s.above[turn ^ 1][(t + BAND) % WINDOW] = t < BAND ? scalar(0) : entry;
    } else if (KEEP && t < 2 * WINDOW) {
        scalar *const to = (t / BAND % 2 == 0 ? run.q : run.p) + first_kept(run, k);

        to[(int64_t)s.sweep * BAND + t % BAND] = entry_to_keep(s, s.above[turn], 0, 0);
    }
    if (t == 0 && k == 0) {
        run.e[s.sweep] = s.right.beta;
        run.d[s.sweep + 1] = s.left.beta;
    }
    __syncthreads();
    next = next_right(s, 0);
    finish_window(s, next, 0, 0, w);
    first = window_of(run, s, k);
    if (t < BAND) {
        first[BAND + t] = t == 0 ? scalar(next.beta) : scalar(0);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            if (own_row(r) > 0) {
                first[own_row(r) * (LINE - 1) + own_column(c)] = w[r][c];
            }
        }
    }
}

/* Waits until the sweep before has made what step k needs.  False: in vain. */
static __device__ __forceinline__ bool
await_sweep(const struct chase &run, struct chase_shared &s, int k)
{
    if (threadIdx.x == 0 && s.sweep > 0) {
        const int all = steps_of(run.n, s.sweep - 1);
        const unsigned needed = (unsigned)(k + 2 < all ? k + 2 : all);
        unsigned long long since = 0;
        unsigned polls = 0;

        while (load_acquire(run.done + s.sweep - 1) < needed) {
            if (++polls % POLLS == 0 && waits_in_vain(&since, CHASE_LAST_SECONDS, run.failed)) {
                s.failed = 1;
                *(volatile unsigned *)run.failed = 1;
                break;
            }
        }
    }
    __syncthreads();
    return !s.failed;
}

template <bool KEEP>
static __global__ void
__launch_bounds__(CHASE_THREADS, CELLS_MOST)
    ordinary_kernel(const __grid_constant__ struct chase run)
{
    __shared__ struct chase_shared s;
    const int t = (int)threadIdx.x;

    if (t == 0) {
        s.failed = 0;
    }
    for (;;) {
        if (t == 0) {
            s.sweep = (int)atomicAdd(run.taken, 1u);
        }
        __syncthreads();
        if (s.sweep >= run.n - 1) {
            return;
        }
        for (int k = 0; k < steps_of(run.n, s.sweep); k++) {
            if (!await_sweep(run, s, k)) {
                return;
            }
            if (k == 0 && t < WINDOW) {
                s.above[0][t] = t < BAND ? window_of(run, s, 0)[t - LINE + 1] : scalar(0);
            }
            ordinary_step<KEEP>(run, s, k);
            __syncthreads();
            if (t == 0) {
                store_release(run.done + s.sweep, (unsigned)k + 1);
            }
        }
        __syncthreads();
    }
}

#endif
