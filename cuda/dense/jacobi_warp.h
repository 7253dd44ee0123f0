/*
 * One-sided Jacobi on the device: matrices of up to 32 x 32.
 *
 * A thread has a column of X and one of J in its registers; G threads of a warp have a matrix.  In
 * round m of a sweep thread l meets thread l ^ m: so each pair meets once in the rounds 1 .. G - 1.
 * Both compute the same rotation, from the same numbers.
 */
#ifndef TSVDI_CUDA_DENSE_JACOBI_WARP_H
#define TSVDI_CUDA_DENSE_JACOBI_WARP_H

#include "dense/jacobi_run.h"

enum { JACOBI_WARP_THREADS = 64 };

/* A thread's column. */
template <int G> struct jacobi_column {
    real x[G], v[G];
    real norm, most_norm; /* now, and the largest at the beginning of a sweep */
    int exponent;         /* X's column is x times 2^exponent */
};

template <int G>
static __device__ __forceinline__ void
scale_column(struct jacobi_column<G> *own, real_int power)
{
    const real factor = r_pow2((int)-power);

#pragma unroll
    for (int k = 0; k < G; k++) {
        own->x[k] *= factor;
    }
    own->exponent += (int)power;
    own->most_norm *= factor;
}

/* Finds the norm of a column, and brings it close to 1. */
template <int G>
static __device__ __forceinline__ void
measure_column(struct jacobi_column<G> *own)
{
    real square = 0;

#pragma unroll
    for (int k = 0; k < G; k++) {
        square = r_fma(own->x[k], own->x[k], square);
    }
    own->norm = r_sqrt(square);
    if (own->norm > 0 && (own->norm < JACOBI_NORM_LEAST || own->norm > JACOBI_NORM_MOST)) {
        real_int power;

        own->norm = r_split(own->norm, &power);
        scale_column<G>(own, power);
    }
}

/* The same, but a column that is no more than rounding errors becomes zero. */
template <int G>
static __device__ __forceinline__ void
measure_or_drop(struct jacobi_column<G> *own, int r)
{
    measure_column<G>(own);
    if (own->norm <= jacobi_noise(r) * own->most_norm) {
        own->norm = 0;
#pragma unroll
        for (int k = 0; k < G; k++) {
            own->x[k] = 0;
        }
    }
}

/* Brings a column to where its squares neither overflow nor underflow. */
template <int G>
static __device__ __forceinline__ void
begin_column(struct jacobi_column<G> *own)
{
    real most = 0;
    real_int power;

    own->exponent = 0;
    own->most_norm = 0;
#pragma unroll
    for (int k = 0; k < G; k++) {
        most = r_max(most, r_abs(own->x[k]));
    }
    (void)r_split(most, &power);
    if (most > 0) { /* two steps: one power may be out of range */
        scale_column<G>(own, power / 2);
        scale_column<G>(own, power - power / 2);
    }
}

/* The rotation of this thread's column and that of thread lane ^ m; whether there was one. */
template <int G, bool VECTORS>
static __device__ __forceinline__ bool
turn_columns(struct jacobi_column<G> *own, int lane, int m, int r, real tolerance)
{
    const bool before = lane < (lane ^ m);
    const real norm = __shfl_xor_sync(0xffffffffu, own->norm, m);
    const int exponent = __shfl_xor_sync(0xffffffffu, own->exponent, m);
    struct jacobi_meeting meeting;
    real y[G], dot = 0;
    bool longer;

#pragma unroll
    for (int k = 0; k < G; k++) {
        y[k] = __shfl_xor_sync(0xffffffffu, own->x[k], m);
        dot = r_fma(own->x[k], y[k], dot);
    }
    meeting = jacobi_meet(dot, before ? own->norm : norm, before ? own->exponent : exponent,
                          before ? norm : own->norm, before ? exponent : own->exponent, tolerance);
    if (!__any_sync(0xffffffffu, meeting.turns)) {
        return false;
    }
    longer = before != meeting.b_longer;
    if (VECTORS) {
        const real factor = longer ? meeting.turn.s : -meeting.turn.s;

#pragma unroll
        for (int k = 0; k < G; k++) {
            const real other = __shfl_xor_sync(0xffffffffu, own->v[k], m);

            own->v[k] = meeting.turns ? jacobi_mixed(own->v[k], other, meeting.turn.less, factor)
                                      : own->v[k];
        }
    }
    if (meeting.turns) {
        const real factor = longer ? meeting.turn.forward : -meeting.turn.back;

#pragma unroll
        for (int k = 0; k < G; k++) {
            own->x[k] = jacobi_mixed(own->x[k], y[k], meeting.turn.less, factor);
        }
        if (longer) {
            own->norm *= meeting.turn.x_grows;
        } else if (meeting.turn.y_square >= JACOBI_CANCELS) {
            own->norm *= r_sqrt(meeting.turn.y_square);
        } else {
            measure_or_drop<G>(own, r);
        }
    }
    return meeting.turns;
}

/* The sum over the threads of a matrix. */
template <int G>
static __device__ __forceinline__ int
group_count(int x)
{
#pragma unroll
    for (int half = G / 2; half > 0; half /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, half);
    }
    return x;
}

/* The rank of this thread's column, and its value. */
template <int G>
static __device__ __forceinline__ int
rank_column(const struct jacobi_column<G> &own, int lane, real *value)
{
    real_int power;
    const real mantissa = r_split(own.norm, &power);
    const int exponent = own.norm > 0 ? own.exponent + (int)power : INT_MIN;
    int rank = 0;

    for (int k = 0; k < G; k++) {
        const real other = __shfl_sync(0xffffffffu, mantissa, k, G);
        const int higher = __shfl_sync(0xffffffffu, exponent, k, G);
        const bool more = higher > exponent || (higher == exponent && other > mantissa);
        const bool equal = higher == exponent && other == mantissa;

        rank += more || (equal && k < lane);
    }
    *value = own.norm > 0 ? jacobi_value(mantissa, exponent) : REAL(0);
    return rank;
}

template <int G, bool VECTORS>
static __global__ void
__launch_bounds__(JACOBI_WARP_THREADS) jacobi_warp_kernel(struct jacobi_batch q)
{
    const int lane = (int)threadIdx.x % G, slot = (int)threadIdx.x / G;
    const int64_t matrix = (int64_t)blockIdx.x * (JACOBI_WARP_THREADS / G) + slot;
    const bool present = matrix < q.count, mine = present && lane < q.c;
    const real tolerance = jacobi_tolerance(q.r);
    real *const w = q.w + ((present ? matrix : 0) * q.c + (mine ? lane : 0)) * q.r;
    struct jacobi_column<G> own;
    int sweeps = 0, rotations = 0, rank, values;
    bool turned = present, more = true;
    real value;

#pragma unroll
    for (int k = 0; k < G; k++) {
        own.x[k] = mine && k < q.r ? w[k] : REAL(0);
        own.v[k] = REAL(k == lane);
    }
    begin_column<G>(&own);
    while (more) {
        const bool active = turned && sweeps < q.most_sweeps;
        int made = 0;

        if (active) {
            measure_or_drop<G>(&own, q.r);
            own.most_norm = r_max(own.most_norm, own.norm);
        }
        for (int m = 1; m < G; m++) {
            made += turn_columns<G, VECTORS>(&own, lane, m, q.r, active ? tolerance : REAL(2));
        }
        made = group_count<G>(made) / 2;
        turned = active ? made > 0 : turned;
        rotations += made;
        sweeps += active;
        more = __any_sync(0xffffffffu, turned && sweeps < q.most_sweeps);
    }
    rank = rank_column<G>(own, lane, &value);
    values = group_count<G>(own.norm > 0);
    if (!mine) {
        return;
    }
    q.s[matrix * q.c + rank] = value;
    q.order[matrix * q.c + rank] = lane;
    if (lane == 0) {
        q.rank[matrix] = values;
        q.made[matrix].rotations = rotations;
        q.made[matrix].sweeps = sweeps;
        q.made[matrix].kind = q.kind[matrix];
        q.made[matrix].unfinished = turned;
    }
    if (VECTORS) {
        real *const v = q.v + (matrix * q.c + lane) * q.c;

#pragma unroll
        for (int k = 0; k < G; k++) {
            if (k < q.r) {
                w[k] = own.norm > 0 ? own.x[k] / own.norm : REAL(0);
            }
            if (k < q.c) {
                v[k] = own.v[k];
            }
        }
    }
}

#endif
