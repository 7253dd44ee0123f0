/*
 * One-sided Jacobi on the device: the sweeps over many columns.
 *
 * The columns are cut into blocks, which meet in the rounds of a tournament, as on the CPU
 * (csrc/cpu/jacobi/sweeps.c).  A round has three steps, each for all of its pairs of blocks at
 * once:
 *
 *     gram    G = Y^H Y of the columns Y of a pair
 *     meet    rotations on G, in shared memory, until each two columns of the pair have met once;
 *             their product is a unitary factor I + M
 *     mix     Y := Y + Y M, and the same for the vectors, with conj(M)
 *
 * A pair whose columns are orthogonal already is skipped after the first step.
 *
 * G is that of kept columns, and so is M: with f_k the exponent of column k, J is multiplied by
 * I + diag(2^-f) M diag(2^f).  I + M is never formed, as rounding its diagonal would make columns
 * longer (math/jacobi.h).  Rounding errors of G only make rotations less exact: norms and cosines
 * are found anew from the columns in each round.
 */
#include <limits.h>

#include "jacobi/large.h"

enum {
    /* columns of a block, at most WARP: two matrices PAIR x PAIR fit into 64 KB of shared memory */
    BLOCK = sizeof(scalar) > 8 ? 16 : 32,
    PAIR = 2 * BLOCK,                /* columns of a pair of blocks */
    EDGE = 4,                        /* rows and columns of a thread's part of a product */
    ONCE = 16 / (int)sizeof(scalar), /* numbers of its 16-byte loads, EDGE or fewer */
    APART = PAIR / EDGE * ONCE,      /* numbers between two of these loads */
    TILES = PAIR / EDGE,
    GRAM_TILES = TILES * (TILES + 1) / 2,                 /* on and above the diagonal */
    GRAM_THREADS = (GRAM_TILES + WARP - 1) / WARP * WARP, /* whole warps */
    GRAM_ROWS = 32,                                       /* rows of a partial sum */
    GRAM_STRIDE = PAIR + ONCE,
    MEET_THREADS = 512,
    MIX_THREADS = TILES * TILES,
    MIX_ROWS = PAIR,
    THREADS = 256,
    FACTOR_BYTES = PAIR * PAIR * sizeof(scalar) /* of G, M or Y */
};

/* From this sweep on the tolerance is larger.  If the norms of two columns agree up to their
   rounding errors, the rotation is known no better than that: the cosine that it leaves can be
   above the tolerance again, sweep after sweep. */
enum { PATIENCE = 16 };
static const real PATIENCE_OVER = 4; /* times the tolerance */

/* Rounds times entries of X between two questions to the caller: about 0.1 s. */
static const double ASK_ENTRIES = 2e10;

/* A round.  All arrays are device memory. */
struct jacobi_round {
    struct jacobi_columns columns;
    int blocks, step; /* of the tournament, an even number; which of its rounds it is */
    int first;        /* 1: a sweep begins */
    int gram_parts, mix_parts;
    int64_t gram_rows, mix_rows; /* of a part */
    real tolerance, noise;
    scalar *gram;              /* [pairs][gram_parts][PAIR][PAIR] for part_of(i) <= part_of(j) */
    scalar *mix_x, *mix_v;     /* [pairs][PAIR][PAIR] */
    real *factor;              /* [pairs][PAIR] of the columns themselves: a power of two, or 0 */
    int *busy;                 /* [pairs] 1: columns change; 2: vectors do too */
    unsigned long long *turns; /* [2] of the sweep: rotations, and pairs of blocks with some due */
};

/* The numbers of a line that a thread has are one `part` of it: runs of ONCE numbers, each APART
   after the one before.  So neighbouring threads read neighbouring memory, without conflicts of
   banks. */
struct edge {
    scalar at[EDGE];
};

struct __align__(16) once
{
    scalar at[ONCE];
};

/* The place of number k of a part, and the part that has a place. */
static __device__ __forceinline__ int
place_in(int part, int k)
{
    return k / ONCE * APART + part * ONCE + k % ONCE;
}

static __device__ __forceinline__ int
part_of(int place)
{
    return place % APART / ONCE;
}

static __device__ __forceinline__ struct edge
read_edge(const scalar *line, int part)
{
    struct edge edge;

#pragma unroll
    for (int k = 0; k < EDGE; k += ONCE) {
        const struct once once = *(const struct once *)(line + place_in(part, k));

#pragma unroll
        for (int l = 0; l < ONCE; l++) {
            edge.at[k + l] = once.at[l];
        }
    }
    return edge;
}

/* ---- columns ---- */

/* A block has a column. */
static __global__ void
__launch_bounds__(THREADS)
    measure_kernel(int64_t rows, scalar *x, real *norms, int *exponents, int change)
{
    __shared__ real part[THREADS / WARP];
    const int me = (int)threadIdx.x, lane = me % WARP;
    real most = 0, square = 0;
    real_int power;

    x += blockIdx.x * rows;
    for (int64_t i = me; i < rows; i += THREADS) {
        most = r_max(most, n_size(x[i]));
    }
    most = largest_of_warp(most);
    if (lane == 0) {
        part[me / WARP] = most;
    }
    __syncthreads();
    for (int i = 0; i < THREADS / WARP; i++) {
        most = r_max(most, part[i]);
    }
    __syncthreads(); /* all have read the parts */
    (void)r_split(most, &power);
    power = most > 0 ? power : 0;
    for (int64_t i = me; i < rows; i += THREADS) {
        const scalar y = scaled_entry(x[i], power);

        if (change) {
            x[i] = y;
        }
        square = n_add_abs2(y, square);
    }
    square = warp_sum(square);
    if (lane == 0) {
        part[me / WARP] = square;
    }
    __syncthreads();
    if (me == 0) {
        real sum = 0;

        for (int i = 0; i < THREADS / WARP; i++) {
            sum += part[i];
        }
        norms[blockIdx.x] = r_sqrt(sum);
        exponents[blockIdx.x] = (change ? exponents[blockIdx.x] : 0) + (int)power;
    }
}

tsvd_status
tsvdi_cuda_jacobi_measure(struct cuda_call *call, int64_t rows, int64_t columns, scalar *d_x,
                          real *d_norm, int *d_exponent, bool change)
{
    tsvd_status ret = TSVD_OK;

    measure_kernel<<<(unsigned)columns, THREADS, 0, call->stream>>>(rows, d_x, d_norm, d_exponent,
                                                                    change);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static __global__ void
__launch_bounds__(THREADS) rank_kernel(int n, int base, const real *norm, const int *exponent,
                                       int *order, real *s, int *rank)
{
    const int j = (int)(blockIdx.x * THREADS + threadIdx.x);
    int place = 0, values = 0, own;
    real mantissa;
    real_int power;

    if (j >= n) {
        return;
    }
    mantissa = r_split(norm[j], &power);
    own = exponent[j] + (int)power;
    for (int k = 0; k < n; k++) {
        const real other = r_split(norm[k], &power);
        const int size = exponent[k] + (int)power;
        const bool larger = size > own || (size == own && other > mantissa);
        const bool equal = size == own && other == mantissa;

        values += other > 0;
        if (mantissa == 0 || other == 0) { /* the exponent of zero has no meaning */
            place += other > 0 || (mantissa == 0 && k < j);
        } else {
            place += larger || (equal && k < j);
        }
    }
    order[place] = j;
    if (s != NULL) {
        s[place] = mantissa > 0 ? jacobi_value(mantissa, base + own) : REAL(0);
    }
    if (j == 0) {
        *rank = values;
    }
}

tsvd_status
tsvdi_cuda_jacobi_rank(struct cuda_call *call, const struct jacobi_columns *q, int *d_order,
                       real *d_s, int *d_rank)
{
    tsvd_status ret = TSVD_OK;

    rank_kernel<<<blocks_for(q->n, THREADS), THREADS, 0, call->stream>>>(
        (int)q->n, q->base, q->norm, q->exponent, d_order, d_s, d_rank);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- a round ---- */

/* The blocks that pair i of a round has, the first one first: block 0 stays, the others go round.
 */
static __device__ __forceinline__ void
find_blocks(const struct jacobi_round &q, int i, int *low, int *high)
{
    const int circle = q.blocks - 1;
    const int a = i == 0 ? 0 : 1 + (q.step + i) % circle;
    const int b = 1 + (q.step + circle - i) % circle;

    *low = a < b ? a : b;
    *high = a < b ? b : a;
}

/* The column of X that is column k of a pair; if it is n or more, the pair lacks it. */
static __device__ __forceinline__ int64_t
column_of(int low, int high, int k)
{
    return k < BLOCK ? (int64_t)low * BLOCK + k : (int64_t)high * BLOCK + k - BLOCK;
}

/* The tile of a thread, row by column, on or above the diagonal. */
static __device__ __forceinline__ void
find_tile(int place, int *row, int *column)
{
    int j = 0;

    while (place > j) {
        place -= ++j;
    }
    *row = place;
    *column = j;
}

static __global__ void
__launch_bounds__(GRAM_THREADS) gram_kernel(const __grid_constant__ struct jacobi_round q)
{
    __shared__ __align__(16) scalar y[GRAM_ROWS][GRAM_STRIDE];
    const int64_t n = q.columns.n;
    const int pair = (int)blockIdx.x / q.gram_parts, part = (int)blockIdx.x % q.gram_parts;
    const int64_t begin = part * q.gram_rows;
    const int64_t end = begin + q.gram_rows < n ? begin + q.gram_rows : n;
    const int me = (int)threadIdx.x;
    scalar *const to = q.gram + (int64_t)blockIdx.x * PAIR * PAIR;
    scalar all[EDGE][EDGE] = {};
    int low, high, row, column;

    find_blocks(q, pair, &low, &high);
    find_tile(me, &row, &column);
    for (int64_t at = begin; at < end; at += GRAM_ROWS) {
        scalar sum[EDGE][EDGE] = {};

        __syncthreads(); /* all have read y */
        for (int k = me; k < GRAM_ROWS * PAIR; k += GRAM_THREADS) {
            const int i = k % GRAM_ROWS, l = k / GRAM_ROWS;
            const int64_t j = column_of(low, high, l);

            y[i][l] = at + i < end && j < n ? q.columns.x[j * n + at + i] : scalar(0);
        }
        __syncthreads();
        for (int i = 0; i < GRAM_ROWS && me < GRAM_TILES; i++) {
            const struct edge a = read_edge(y[i], row), b = read_edge(y[i], column);

#pragma unroll
            for (int k = 0; k < EDGE; k++) {
#pragma unroll
                for (int l = 0; l < EDGE; l++) {
                    sum[k][l] = n_fma(n_conj(a.at[k]), b.at[l], sum[k][l]);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < EDGE; k++) {
#pragma unroll
            for (int l = 0; l < EDGE; l++) {
                all[k][l] += sum[k][l];
            }
        }
    }
    for (int k = 0; k < EDGE && me < GRAM_TILES; k++) {
        for (int l = 0; l < EDGE; l++) {
            to[place_in(row, k) * PAIR + place_in(column, l)] = all[k][l];
        }
    }
}

/* The rotations of disjoint columns. */
struct meeting_step {
    int longer[BLOCK], shorter[BLOCK]; /* the columns */
    struct jacobi_turn turn[BLOCK];
    int turns; /* how many of them there are */
};

/* What a block of threads knows of its pair while columns meet.  All of it is shared memory, but M
   where that is too small. */
struct meeting_pair {
    scalar *g, *m;                 /* [PAIR][PAIR] */
    real norm[PAIR], factor[PAIR]; /* norm 0: the column counts as zero */
    int exponent[PAIR];
    struct meeting_step step[2]; /* by turns */
};

/* Bytes of shared memory of struct meeting_pair, at most: the compiler rounds them up. */
enum { MEET_FIXED = (sizeof(struct meeting_pair) + 255) / 256 * 256 };

/* Finds norm, factor and exponent of column k of a pair, column j of X, from the diagonal of G.  If
   it is no more than rounding errors its factor is 0, also where their squares have underflowed.
   Returns whether it changes. */
static __device__ __forceinline__ bool
receive_column(const struct jacobi_round &q, struct meeting_pair *p, int64_t j, int k)
{
    const bool there = j < q.columns.n;
    real norm = there ? r_sqrt(n_real(p->g[k * PAIR + k])) : REAL(0);
    real most = there ? q.columns.most[j] : REAL(0), factor = 1;
    int exponent = there ? q.columns.exponent[j] : 0;

    if (most > 0 && norm <= q.noise * most) {
        factor = norm = most = 0; /* with most = 0 it does not change again */
    } else if (norm > 0 && (norm < JACOBI_NORM_LEAST || norm > JACOBI_NORM_MOST)) {
        real_int power;

        norm = r_split(norm, &power);
        factor = r_pow2((int)-power);
        exponent += (int)power;
        most *= factor;
    }
    p->norm[k] = norm;
    p->factor[k] = factor;
    p->exponent[k] = exponent;
    if (there) {
        q.columns.exponent[j] = exponent;
        q.columns.most[j] = q.first ? r_max(most, norm) : most;
    }
    return factor != 1;
}

/* x, or what is as long as `most` if x is longer. */
static __device__ __forceinline__ scalar
no_longer(scalar x, real most)
{
#if TSVD_COMPLEX
    const real size = n_abs(x);

    return size > most ? n_scale(most / size, x) : x;
#else
    return r_max(-most, r_min(x, most));
#endif
}

/* The rotations of step `number`, by a warp. */
static __device__ __forceinline__ void
find_turns(const struct jacobi_round &q, const struct meeting_pair *p, int number,
           struct meeting_step *step)
{
    const int circle = PAIR - 1, i = (int)threadIdx.x;
    const int a = i == 0 ? 0 : 1 + (number + i) % circle, b = 1 + (number + circle - i) % circle;
    const real norm_a = r_sqrt(r_max(n_real(p->g[a * PAIR + a]), 0));
    const real norm_b = r_sqrt(r_max(n_real(p->g[b * PAIR + b]), 0)), most = norm_a * norm_b;
    const scalar dot = no_longer(p->g[a * PAIR + b], most);
    const struct jacobi_meeting meeting = jacobi_meet(dot, norm_a, p->exponent[a], norm_b,
                                                      p->exponent[b], JACOBI_WORTH * q.tolerance);

    const unsigned found = __ballot_sync(0xffffffffu, meeting.turns);

    if (BLOCK == WARP || i < BLOCK) { /* there are no more pairs */
        step->longer[i] = meeting.b_longer ? b : a;
        step->shorter[i] = meeting.b_longer ? a : b;
        step->turn[i] = meeting.turn;
    }
    if (i == 0) {
        step->turns = __popc(found & 0xffffffffu >> (WARP - BLOCK));
    }
}

/* Replaces the numbers of two columns, of which the first is the longer one. */
static __device__ __forceinline__ void
mix_two(const struct jacobi_turn &turn, scalar *x, scalar *y)
{
    const scalar one = *x, other = *y;

    *x = jacobi_mixed(one, other, turn.less, turn.forward);
    *y = jacobi_mixed(other, one, turn.less, -turn.back);
}

/* Replaces those of two rows of G, which are the conjugates of its columns. */
static __device__ __forceinline__ void
mix_rows(const struct jacobi_turn &turn, scalar *x, scalar *y)
{
    scalar one = n_conj(*x), other = n_conj(*y);

    mix_two(turn, &one, &other);
    *x = n_conj(one);
    *y = n_conj(other);
}

/* G := T^H G T, for a step's rotations T, by 2 x 2 blocks. */
static __device__ __forceinline__ void
turn_gram(struct meeting_pair *p, const struct meeting_step &step)
{
    for (int k = (int)threadIdx.x; k < BLOCK * BLOCK; k += MEET_THREADS) {
        const int i = k / BLOCK, j = k % BLOCK;
        const int above = step.longer[i] * PAIR, below = step.shorter[i] * PAIR;
        const int left = step.longer[j], right = step.shorter[j];
        const struct jacobi_turn down = step.turn[i], across = step.turn[j];
        scalar *const g = p->g;

        if (i == j) {
            if (down.x_grows > 0) { /* there is a rotation */
                g[above + left] = n_scale(down.x_grows * down.x_grows, g[above + left]);
                g[below + right] = n_scale(r_max(down.y_square, 0), g[below + right]);
                g[above + right] = g[below + left] = 0;
            }
            continue;
        }
        mix_two(across, &g[above + left], &g[above + right]);
        mix_two(across, &g[below + left], &g[below + right]);
        mix_rows(down, &g[above + left], &g[below + left]);
        mix_rows(down, &g[above + right], &g[below + right]);
    }
}

/* M := (I + M) T - I, by all warps but the first. */
static __device__ __forceinline__ void
turn_mix(struct meeting_pair *p, const struct meeting_step &step)
{
    for (int k = (int)threadIdx.x - WARP; k < PAIR * BLOCK; k += MEET_THREADS - WARP) {
        const int row = k / BLOCK, j = k % BLOCK, x = step.longer[j], y = step.shorter[j];
        const struct jacobi_turn turn = step.turn[j];
        scalar *const m = p->m + row * PAIR;
        const scalar one = m[x] + REAL(row == x), other = m[y] + REAL(row == y);

        m[x] += n_fma(turn.forward, other, -n_scale(turn.less, one));
        m[y] += n_fma(-turn.back, one, -n_scale(turn.less, other));
    }
}

/* A block of threads has a pair.  m_inside: M lies in shared memory. */
static __global__ void
__launch_bounds__(MEET_THREADS)
    meet_kernel(const __grid_constant__ struct jacobi_round q, int m_inside)
{
    extern __shared__ char shared[] __align__(16);
    __shared__ struct meeting_pair p;
    const int me = (int)threadIdx.x, pair = (int)blockIdx.x;
    const scalar *const from = q.gram + (int64_t)pair * q.gram_parts * PAIR * PAIR;
    scalar *const mix_x = q.mix_x + (int64_t)pair * PAIR * PAIR;
    scalar *const mix_v = q.mix_v + (int64_t)pair * PAIR * PAIR;
    unsigned long long turns = 0;
    int low, high, changed = 0, due = 0;

    find_blocks(q, pair, &low, &high);
    if (me == 0) {
        p.g = (scalar *)shared;
        p.m = m_inside ? p.g + PAIR * PAIR : mix_x;
    }
    __syncthreads();
    for (int k = me; k < PAIR * PAIR; k += MEET_THREADS) {
        const int i = k / PAIR, j = k % PAIR;
        const bool mirrored = part_of(i) > part_of(j);
        const int at = mirrored ? j * PAIR + i : k;
        scalar sum = 0;

        for (int part = 0; part < q.gram_parts; part++) {
            sum += from[(int64_t)part * PAIR * PAIR + at];
        }
        p.g[k] = mirrored ? n_conj(sum) : sum;
        p.m[k] = 0;
    }
    __syncthreads();
    if (me < PAIR) {
        changed = receive_column(q, &p, column_of(low, high, me), me);
    }
    changed = __syncthreads_or(changed);
    for (int k = me; k < PAIR * PAIR; k += MEET_THREADS) {
        const int i = k / PAIR, j = k % PAIR;
        const scalar old = p.g[k], half = n_scale(p.factor[i], old);
        const scalar g = n_scale(p.factor[j], half);

        p.g[k] = g;
        due += i < j && entry_size(g) > bound_of_size(q.tolerance * p.norm[i] * p.norm[j]);
    }
    due = __syncthreads_or(due);
    if (!due && !changed) {
        if (me == 0) {
            q.busy[pair] = 0;
        }
        return;
    }
    if (due && me < WARP) {
        find_turns(q, &p, 0, p.step);
    }
    __syncthreads();
    for (int i = 0; due && i < PAIR - 1; i++) {
        const struct meeting_step &step = p.step[i % 2];

        if (step.turns > 0) {
            turn_gram(&p, step);
        }
        __syncthreads();
        if (me < WARP && i + 1 < PAIR - 1) { /* warp 0 prepares the next step meanwhile */
            find_turns(q, &p, i + 1, &p.step[(i + 1) % 2]);
        } else if (me >= WARP && step.turns > 0) {
            turn_mix(&p, step);
        }
        turns += (unsigned long long)step.turns;
        __syncthreads();
    }
    for (int k = me; k < PAIR * PAIR; k += MEET_THREADS) {
        const int i = k / PAIR, j = k % PAIR;
        const scalar m = p.m[k];

        mix_v[k] = n_conj(jacobi_shifted_entry(m, p.exponent[j] - p.exponent[i]));
        mix_x[k] = n_scale(p.factor[i], m);
    }
    if (me < PAIR) {
        q.factor[pair * PAIR + me] = p.factor[me];
    }
    if (me == 0) {
        q.busy[pair] = due ? 2 : 1;
        atomicAdd(&q.turns[0], turns);
        atomicAdd(&q.turns[1], due ? 1ull : 0ull);
    }
}

/* Y := Y diag(factor) + Y M in a part of the rows; blockIdx.y = 1: the vectors, whose factors
   are 1. */
static __global__ void
__launch_bounds__(MIX_THREADS) mix_kernel(const __grid_constant__ struct jacobi_round q)
{
    extern __shared__ char shared[] __align__(16);
    const int64_t n = q.columns.n;
    const int pair = (int)blockIdx.x / q.mix_parts, part = (int)blockIdx.x % q.mix_parts;
    const bool vectors = blockIdx.y > 0;
    const int64_t begin = part * q.mix_rows;
    const int64_t end = begin + q.mix_rows < n ? begin + q.mix_rows : n;
    const int me = (int)threadIdx.x, row = me % TILES, column = me / TILES;
    const scalar *const mix = (vectors ? q.mix_v : q.mix_x) + (int64_t)pair * PAIR * PAIR;
    scalar *const x = vectors ? q.columns.v : q.columns.x;
    scalar *const m = (scalar *)shared, *const y = m + PAIR * PAIR;
    int low, high;

    if (q.busy[pair] <= (vectors ? 1 : 0)) {
        return;
    }
    find_blocks(q, pair, &low, &high);
    for (int k = me; k < PAIR * PAIR; k += MIX_THREADS) {
        m[k] = mix[k];
    }
    for (int64_t at = begin; at < end; at += MIX_ROWS) {
        scalar sum[EDGE][EDGE] = {};

        __syncthreads(); /* all have read y */
        for (int k = me; k < MIX_ROWS * PAIR; k += MIX_THREADS) {
            const int i = k % MIX_ROWS;
            const int64_t j = column_of(low, high, k / MIX_ROWS);

            y[k] = at + i < end && j < n ? x[j * n + at + i] : scalar(0);
        }
        __syncthreads();
#pragma unroll 4
        for (int l = 0; l < PAIR; l++) {
            const struct edge a = read_edge(y + l * MIX_ROWS, row);
            const struct edge b = read_edge(m + l * PAIR, column);

#pragma unroll
            for (int i = 0; i < EDGE; i++) {
#pragma unroll
                for (int j = 0; j < EDGE; j++) {
                    sum[i][j] = n_fma(a.at[i], b.at[j], sum[i][j]);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < EDGE; k++) {
            const int own = place_in(column, k);
            const int64_t j = column_of(low, high, own);
            const real factor = vectors ? REAL(1) : q.factor[pair * PAIR + own];

#pragma unroll
            for (int i = 0; i < EDGE; i++) {
                const int line = place_in(row, i);

                if (at + line < end && j < n) {
                    x[j * n + at + line] = n_fma_real(factor, y[own * MIX_ROWS + line], sum[i][k]);
                }
            }
        }
    }
}

/* ---- the sweeps ---- */

/* Rows of a part, a multiple of `unit`, if each of `pairs` pairs is cut into parts so that every
   multiprocessor has `fill` blocks of threads; the number of parts to *parts. */
static int64_t
share_rows(const struct cuda_device *device, int64_t n, int64_t pairs, int fill, int64_t unit,
           int *parts)
{
    const int64_t wanted = (device->multiprocessors * (int64_t)fill + pairs - 1) / pairs;
    const int64_t rows = ((n + wanted - 1) / wanted + unit - 1) / unit * unit;

    *parts = (int)((n + rows - 1) / rows);
    return rows;
}

static size_t
lay_out(const struct cuda_device *device, int64_t n, struct jacobi_round *q, char *base)
{
    const int64_t blocks = (n + BLOCK - 1) / BLOCK, pairs = (blocks + 1) / 2;
    size_t at = 0;

    q->blocks = (int)(2 * pairs);
    q->gram_rows = share_rows(device, n, pairs, JACOBI_GRAM_FILL, GRAM_ROWS, &q->gram_parts);
    q->mix_rows = share_rows(device, n, pairs, JACOBI_MIX_FILL, MIX_ROWS, &q->mix_parts);
    q->gram = carve<scalar>(base, &at, pairs * q->gram_parts * PAIR * PAIR);
    q->mix_x = carve<scalar>(base, &at, pairs * PAIR * PAIR);
    q->mix_v = carve<scalar>(base, &at, pairs * PAIR * PAIR);
    q->factor = carve<real>(base, &at, pairs * PAIR);
    q->busy = carve<int>(base, &at, pairs);
    q->turns = carve<unsigned long long>(base, &at, 2);
    return at;
}

uint64_t
tsvdi_cuda_jacobi_sweep_bytes(const struct cuda_device *device, int64_t n)
{
    struct jacobi_round q = {};

    return lay_out(device, n, &q, NULL);
}

static tsvd_status
run_round(struct cuda_call *call, const struct jacobi_round &q)
{
    const unsigned pairs = (unsigned)q.blocks / 2;
    const int m_inside = 2 * FACTOR_BYTES + MEET_FIXED <= call->device->shared_most;
    const dim3 mix_blocks(pairs * (unsigned)q.mix_parts, q.columns.v != NULL ? 2 : 1);
    tsvd_status ret = TSVD_OK;

    gram_kernel<<<(unsigned)q.gram_parts * pairs, GRAM_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
    meet_kernel<<<pairs, MEET_THREADS, (m_inside ? 2 : 1) * FACTOR_BYTES, call->stream>>>(q,
                                                                                          m_inside);
    CUDA_LAUNCHED(call);
    mix_kernel<<<mix_blocks, MIX_THREADS, 2 * FACTOR_BYTES, call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The share of run() that is done within sweep number `sweep`: each takes half of what is left. */
static double
share_done(int64_t sweep, double within)
{
    const double left = 1 - JACOBI_STARTED;

    return 1 - left * ldexp(1 - within / 2, -(int)(sweep < 60 ? sweep : 60));
}

tsvd_status
tsvdi_cuda_jacobi_sweep(struct tsvd_context *ctx, const struct jacobi_columns *columns,
                        int64_t max_sweeps, struct jacobi_outcome *made, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    const double entries = (double)columns->n * (double)columns->n;
    const int between =
        entries * INT_MAX < ASK_ENTRIES ? INT_MAX : (int)(ASK_ENTRIES / entries) + 1;
    unsigned long long turns[2] = {0, 1};
    struct jacobi_round q = {};
    int64_t sweeps = 0;
    tsvd_status ret = TSVD_OK;

    q.columns = *columns;
    (void)lay_out(call->device, columns->n, &q, d_work);
    q.noise = jacobi_noise(columns->n);
    CUDA_TRY(call, cudaFuncSetAttribute(meet_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        call->device->shared_most - MEET_FIXED));
    CUDA_TRY(call, cudaFuncSetAttribute(mix_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        2 * FACTOR_BYTES));
    CUDA_TRY(call, cudaMemsetAsync(q.columns.most, 0, (size_t)columns->n * sizeof(*q.columns.most),
                                   call->stream));
    for (; turns[1] > 0 && sweeps < max_sweeps; sweeps++) {
        q.tolerance = (sweeps < PATIENCE ? 1 : PATIENCE_OVER) * jacobi_tolerance(columns->n);
        CUDA_TRY(call, cudaMemsetAsync(q.turns, 0, sizeof(turns), call->stream));
        for (q.step = 0; q.step < q.blocks - 1; q.step++) {
            q.first = q.step == 0;
            TSVD_TRY(run_round(call, q));
            if (q.step % between == between - 1) {
                CUDA_TRY(call, cudaStreamSynchronize(call->stream));
                TSVD_TRY(tsvdi_check(ctx, share_done(sweeps, (double)q.step / q.blocks)));
            }
        }
        TSVD_TRY(tsvdi_cuda_download(call, turns, q.turns, sizeof(turns)));
        made->rotations += (int64_t)turns[0];
        TSVD_TRY(tsvdi_check(ctx, share_done(sweeps, 1)));
    }
    made->sweeps = (int32_t)(sweeps < INT32_MAX ? sweeps : INT32_MAX);
    made->unfinished = (int8_t)(turns[1] > 0);
    TSVD_TRY(tsvdi_cuda_jacobi_measure(call, columns->n, columns->n, columns->x, columns->norm,
                                       columns->exponent, true));
out:
    return ret;
}
