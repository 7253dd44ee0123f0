/*
 * One-sided Jacobi on the device: a block for each matrix.
 *
 * X and J are in shared memory, as far as they fit, and else in place, in w and v.  A warp has a
 * pair of columns.  The rounds are those of a tournament, as on the CPU
 * (csrc/cpu/jacobi/sweeps.c), with columns in place of its blocks.
 */
#ifndef TSVDI_CUDA_JACOBI_BLOCK_H
#define TSVDI_CUDA_JACOBI_BLOCK_H

#include "jacobi/jacobi_run.h"

enum {
    JACOBI_THREADS = sizeof(scalar) > 8 ? 384 : 512,
    /* Bytes of static shared memory of the kernel. */
    JACOBI_FIXED = JACOBI_THREADS / WARP * (int)sizeof(int)
};

/* What a block works on. */
struct jacobi_block {
    scalar *x, *v;          /* columns of r, and of c, those of conj(J); v NULL: values only */
    real *norm, *most_norm; /* [c] shared, as in jacobi_column */
    int *exponent;          /* [c] shared */
    int r, c, lane;
};

/* Bytes of shared memory besides X and J.  Exponents may be read in pairs: so they are padded. */
static __host__ __device__ __forceinline__ int
jacobi_columns_bytes(int c)
{
    return c * 2 * (int)sizeof(real) + (c + c % 2) * (int)sizeof(int);
}

/* Multiplies column j by 2^-power; by one warp. */
static __device__ __forceinline__ void
scale_column(const struct jacobi_block &b, int j, real_int power)
{
    const real factor = r_pow2((int)-power);
    scalar *const x = b.x + (int64_t)j * b.r;

    for (int k = b.lane; k < b.r; k += WARP) {
        x[k] = n_scale(factor, x[k]);
    }
    __syncwarp();
    if (b.lane == 0) {
        b.exponent[j] += (int)power;
        b.most_norm[j] *= factor;
    }
    __syncwarp();
}

static __device__ __forceinline__ void
measure_column(const struct jacobi_block &b, int j)
{
    const scalar *const x = b.x + (int64_t)j * b.r;
    real square = 0, norm;

    for (int k = b.lane; k < b.r; k += WARP) {
        square = n_add_abs2(x[k], square);
    }
    norm = r_sqrt(warp_sum(square));
    if (norm > 0 && (norm < JACOBI_NORM_LEAST || norm > JACOBI_NORM_MOST)) {
        real_int power;

        norm = r_split(norm, &power);
        scale_column(b, j, power);
    }
    if (b.lane == 0) {
        b.norm[j] = norm;
    }
    __syncwarp();
}

/* The same, but a column that is no more than rounding errors becomes zero. */
static __device__ __forceinline__ void
measure_or_drop(const struct jacobi_block &b, int j)
{
    measure_column(b, j);
    if (b.norm[j] <= jacobi_noise(b.r) * b.most_norm[j]) {
        __syncwarp(); /* all have read the norm */
        for (int k = b.lane; k < b.r; k += WARP) {
            b.x[(int64_t)j * b.r + k] = 0;
        }
        if (b.lane == 0) {
            b.norm[j] = 0;
        }
    }
    __syncwarp();
}

/* The largest magnitude of column j; by one warp. */
static __device__ __forceinline__ real
largest_of_column(const struct jacobi_block &b, int j)
{
    const scalar *const x = b.x + (int64_t)j * b.r;
    real most = 0;

    for (int k = b.lane; k < b.r; k += WARP) {
        most = r_max(most, n_size(x[k]));
    }
    return largest_of_warp(most);
}

/* Whether a square matrix is to be replaced by its transpose.  more [2]: shared workspace. */
static __device__ __forceinline__ bool
goes_by_rows(const struct jacobi_block &b, int *more)
{
    const int me = (int)threadIdx.x, threads = (int)blockDim.x;
    real_int size;

    if (me < 2) {
        more[me] = 0;
    }
    __syncthreads();
    for (int i = me; i < b.r; i += threads) {
        real most = 0;

        for (int j = 0; j < b.c; j++) {
            most = r_max(most, n_size(b.x[(int64_t)j * b.r + i]));
        }
        (void)r_split(most, &size); /* 0 of zeros */
        atomicAdd(&more[0], most > 0);
        atomicAdd(&more[1], (int)size);
    }
    for (int j = me / WARP; j < b.c; j += threads / WARP) {
        const real most = largest_of_column(b, j);

        (void)r_split(most, &size);
        if (b.lane == 0) {
            atomicAdd(&more[0], -(most > 0));
            atomicAdd(&more[1], -(int)size);
        }
    }
    __syncthreads();
    return jacobi_by_rows({more[0], more[1]}) != 0;
}

/* Replaces a square matrix by its transpose. */
static __device__ __forceinline__ void
transpose(const struct jacobi_block &b)
{
    for (int k = (int)threadIdx.x; k < b.r * b.r; k += (int)blockDim.x) {
        const int i = k % b.r, j = k / b.r;
        const scalar below = b.x[k], above = b.x[i * b.r + j];

        if (i > j) {
            b.x[k] = above;
            b.x[i * b.r + j] = below;
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ void
begin_column(const struct jacobi_block &b, int j)
{
    const real most = largest_of_column(b, j);
    real_int power;

    if (b.lane == 0) {
        b.exponent[j] = 0;
        b.most_norm[j] = 0;
    }
    __syncwarp();
    (void)r_split(most, &power);
    if (most > 0) { /* two steps: one power may be out of range */
        scale_column(b, j, power / 2);
        scale_column(b, j, power - power / 2);
    }
}

/* x' = c x + forward y, y' = c y - back x */
static __device__ __forceinline__ void
mix_columns(const struct jacobi_block &b, int count, scalar *x, scalar *y, real less,
            scalar forward, scalar back)
{
    for (int k = b.lane; k < count; k += WARP) {
        const scalar one = x[k], other = y[k];

        x[k] = jacobi_mixed(one, other, less, forward);
        y[k] = jacobi_mixed(other, one, less, -back);
    }
}

/* Lets two columns meet, by one warp.  Returns whether there was a rotation.  The factors of
   conj(J) are the conjugates of J's. */
static __device__ __forceinline__ bool
turn_columns(const struct jacobi_block &b, int first, int second, real tolerance)
{
    const scalar *const x = b.x + (int64_t)first * b.r, *const y = b.x + (int64_t)second * b.r;
    struct jacobi_meeting meeting;
    int longer, shorter;
    scalar dot = 0;

    for (int k = b.lane; k < b.r; k += WARP) {
        dot = n_fma(n_conj(x[k]), y[k], dot);
    }
    dot = warp_sum(dot);
    meeting = jacobi_meet(dot, b.norm[first], b.exponent[first], b.norm[second], b.exponent[second],
                          tolerance);
    if (!meeting.turns) {
        return false;
    }
    longer = meeting.b_longer ? second : first;
    shorter = meeting.b_longer ? first : second;
    mix_columns(b, b.r, b.x + (int64_t)longer * b.r, b.x + (int64_t)shorter * b.r,
                meeting.turn.less, meeting.turn.forward, meeting.turn.back);
    if (b.v != NULL) {
        mix_columns(b, b.c, b.v + (int64_t)longer * b.c, b.v + (int64_t)shorter * b.c,
                    meeting.turn.less, n_conj(meeting.turn.s), meeting.turn.s);
    }
    __syncwarp(); /* all have read the norms */
    if (b.lane == 0) {
        b.norm[longer] *= meeting.turn.x_grows;
        if (meeting.turn.y_square >= JACOBI_CANCELS) {
            b.norm[shorter] *= r_sqrt(meeting.turn.y_square);
        }
    }
    __syncwarp();
    if (meeting.turn.y_square < JACOBI_CANCELS) {
        measure_or_drop(b, shorter);
    }
    return true;
}

/* A sweep; returns the rotations of this warp. */
static __device__ __forceinline__ int
sweep_columns(const struct jacobi_block &b, real tolerance)
{
    const int warps = (int)blockDim.x / WARP, warp = (int)threadIdx.x / WARP;
    const int circle = b.c - 1 + b.c % 2, pairs = (b.c + 1) / 2;
    int rotations = 0;

    for (int j = warp; j < b.c; j += warps) {
        measure_or_drop(b, j);
        if (b.lane == 0) {
            b.most_norm[j] = r_max(b.most_norm[j], b.norm[j]);
        }
        __syncwarp();
    }
    __syncthreads();
    for (int round = 0; round < (b.c > 1 ? circle : 0); round++) {
        for (int i = warp; i < pairs; i += warps) {
            const int one = i == 0 ? 0 : 1 + (round + i) % circle;
            const int other = 1 + (round + circle - i) % circle;
            const int first = one < other ? one : other, second = one < other ? other : one;

            if (second < b.c) {
                rotations += turn_columns(b, first, second, tolerance);
            }
        }
        __syncthreads();
    }
    return rotations;
}

/* Ranks, values and counts.  b.most_norm and b.exponent become mantissas and exponents of the
   values. */
static __device__ __forceinline__ void
rank_columns(const struct jacobi_block &b, const struct jacobi_batch &q, int64_t matrix)
{
    for (int j = (int)threadIdx.x; j < b.c; j += (int)blockDim.x) {
        real_int power;

        b.most_norm[j] = r_split(b.norm[j], &power);
        b.exponent[j] = b.norm[j] > 0 ? b.exponent[j] + (int)power : INT_MIN;
    }
    __syncthreads();
    for (int j = (int)threadIdx.x; j < b.c; j += (int)blockDim.x) {
        const real mantissa = b.most_norm[j];
        const int exponent = b.exponent[j];
        int rank = 0, values = 0;

        for (int k = 0; k < b.c; k++) {
            const real other = b.most_norm[k];
            const int higher = b.exponent[k];

            rank += higher > exponent ||
                    (higher == exponent && (other > mantissa || (other == mantissa && k < j)));
            values += other > 0;
        }
        q.s[matrix * b.c + rank] = mantissa > 0 ? jacobi_value(mantissa, exponent) : REAL(0);
        q.order[matrix * b.c + rank] = j;
        if (j == 0) {
            q.rank[matrix] = values;
        }
    }
}

/* x_inside, v_inside: X, or J, lies in shared memory. */
static __global__ void
__launch_bounds__(JACOBI_THREADS)
    jacobi_block_kernel(struct jacobi_batch q, int x_inside, int v_inside)
{
    extern __shared__ char shared[] __align__(16);
    __shared__ int turns[JACOBI_THREADS / WARP];
    const int64_t matrix = blockIdx.x;
    const int threads = (int)blockDim.x, me = (int)threadIdx.x, x_size = q.r * q.c,
              v_size = q.v != NULL ? q.c * q.c : 0;
    scalar *const w = q.w + matrix * x_size;
    scalar *const to_v = q.v != NULL ? q.v + matrix * v_size : NULL;
    scalar *at = (scalar *)shared;
    struct jacobi_block b = {};
    int sweeps = 0, unfinished = 1;
    bool transposed = false;
    int64_t rotations = 0;

    b.r = q.r;
    b.c = q.c;
    b.lane = me % WARP;
    b.x = x_inside ? at : w;
    at += x_inside ? x_size : 0;
    b.v = q.v == NULL ? NULL : v_inside ? at : to_v;
    at += v_inside ? v_size : 0;
    b.norm = (real *)at;
    b.most_norm = b.norm + q.c;
    b.exponent = (int *)(b.norm + 2 * q.c);
    for (int k = me; k < x_size && x_inside; k += threads) {
        b.x[k] = w[k];
    }
    for (int k = me; k < v_size; k += threads) {
        b.v[k] = REAL(k / q.c == k % q.c);
    }
    __syncthreads();
    if (q.r == q.c) {
        transposed = goes_by_rows(b, turns);
        if (transposed) {
            transpose(b);
        }
    }
    for (int j = me / WARP; j < q.c; j += threads / WARP) {
        begin_column(b, j);
    }
    __syncthreads();
    while (unfinished && sweeps < q.max_sweeps) {
        const int made = sweep_columns(b, jacobi_tolerance(q.r));

        if (b.lane == 0) {
            turns[me / WARP] = made;
        }
        __syncthreads();
        unfinished = 0;
        for (int i = 0; i < threads / WARP; i++) {
            rotations += turns[i];
            unfinished |= turns[i] > 0;
        }
        sweeps++;
        __syncthreads();
    }
    if (me == 0) {
        q.transposed[matrix] = transposed;
        write_made(q, matrix, rotations, sweeps, unfinished != 0);
    }
    for (int k = me; k < x_size && q.v != NULL; k += threads) {
        const real norm = b.norm[k / q.r];

        w[k] = norm > 0 ? b.x[k] / norm : scalar(0);
    }
    for (int k = me; k < v_size && v_inside; k += threads) {
        to_v[k] = b.v[k];
    }
    __syncthreads();
    rank_columns(b, q, matrix);
}

#endif
