/*
 * A panel of the reduction to bidiagonal form: its arrays, what a block works on, and the phase of
 * the rows.  reduce.cu says what a step computes.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_REDUCE_PANEL_H
#define TSVDI_CUDA_BIDIAGONALIZE_REDUCE_PANEL_H

#include "bidiagonalize/columns.h"
#include "matrix/mail.h"
#include "matrix/panel.h"

enum {
    PANEL_WIDTH = DENSE_WIDTH, /* columns of a panel */
    WARPS = (int)DENSE_PANEL_THREADS / (int)WARP,
    SLOTS = 2 * PANEL_WIDTH,
    LAST = SLOTS - 1,
    EACH = SLOTS / WARPS,                     /* slots of a warp, a power of two */
    MOST_SHARES = 16,                         /* threads, at most, that share a row of the slice */
    IN_FLIGHT = sizeof(scalar) > 8 ? 22 : 44, /* loads of parts of w that a thread has in flight:
                             three, or six, threads of a row then have those of 132 blocks.  Not
                             measured. */
    CHUNKS = 5,                               /* parts of a slot that a thread loads */
    MOST_BLOCKS = CHUNKS * WARP,
    MOST_RANKS = 8 /* blocks of a cluster that every device with clusters can run */
};
static_assert(EACH * WARPS == SLOTS && SLOTS % (int)WARP == 0, "slots are shared out among warps");
static_assert(SLOTS < 4 * (int)WARP, "visit_sums.first");

/* A panel of each of `count` matrices. */
struct panel {
    int r, c;
    int64_t count;
    int begin, end;        /* its columns */
    int blocks, groups;    /* of a group; of the grid */
    int ranks, clusters;   /* blocks of a cluster; clusters of a group */
    int buffers;           /* of the ring of copies; 0: there is none */
    int slice;             /* rows of the longest slice, if it is kept in shared memory */
    unsigned spread, kept; /* column l stays in the L2 cache if l spread mod 2^32 < kept */
    scalar *w;             /* [count][c][r] */
    scalar *tau_q, *tau_p; /* [count][c] */
    real *d, *e;           /* [count][c] */
    scalar *vx, *yu;       /* [count] as in reduce.cu */

    /* Of each group of blocks. */
    scalar *row;          /* [c] the row r */
    scalar *sums;         /* [clusters][r] parts of w */
    scalar *left, *right; /* [SLOTS][blocks] parts of V^H a, X^H a, and [SLOTS][clusters] of Y^H r,
                           U^H r.  The last slot is that of the sum of squares after the first
                           entry */
    unsigned *arrived;    /* [1] zero */
};

/* What a block works on: its matrix and its slice of the rows. */
struct part {
    scalar *w, *tau_q, *tau_p; /* these and the next ones as in the panel */
    real *d, *e;
    scalar *vx, *yu, *row, *sums, *left, *right;
    int block;
    int rank;          /* of the block in its cluster */
    int from, length;  /* its share of a column: rows from begin + from on */
    unsigned start;    /* column_at() of row begin + from of column 0 */
    int low, rows;     /* the slice */
    int lines, shares; /* rows of the slice in a pass; threads that share a row */
    scalar *near;      /* V X of the slice: in shared memory, or a part of vx */
    int64_t ld;        /* numbers between its slots */
};

/* Bytes of shared memory before the numbers of a block: its part, and the barriers of the ring. */
enum { PART_BYTES = (sizeof(struct part) + DENSE_BUFFERS * sizeof(uint64_t) + 15) / 16 * 16 };

/* What the blocks of a cluster send one another in a visit, in shared memory; [2] by turns. */
template <int COLUMNS> struct cluster_mail {
    struct message sum[2][COLUMNS][MOST_RANKS]; /* each block's part of y */
    struct message row[2][COLUMNS];             /* row i of A - V Y^H - X U^H, conjugated */
};

/* Sums of a visit: [2] by turns. */
struct visit_sums {
    scalar *column; /* [2][COLUMNS][WARPS] parts of y */
    scalar *first; /* [2][COLUMNS][4] row i of A, and parts of row i of V Y^H + X U^H: conjugates */
};

/* What a block keeps in shared memory. */
struct panel_shared {
    scalar *sum, *y; /* [SLOTS] sums over the blocks; row i of Y U, conjugated */
    scalar *scratch; /* [2 threads] */
    struct visit_sums visit;
    scalar *buffer; /* [buffers][columns of a visit][rows] */
};

static inline __host__ __device__ int
panel_numbers(int columns)
{
    return 2 * SLOTS + 2 * DENSE_PANEL_THREADS + 2 * columns * (WARPS + 4);
}

static __device__ struct panel_shared
share(scalar *x, int columns)
{
    scalar *const sums = x + 2 * SLOTS + 2 * DENSE_PANEL_THREADS;
    scalar *const first = sums + 2 * columns * WARPS;

    return {x, x + SLOTS, x + 2 * SLOTS, {sums, first}, first + 2 * columns * 4};
}

/* The first row of a block's slice; that of the block after the last is r. */
static __device__ __forceinline__ int
slice_begin(const struct panel &p, int block)
{
    return p.begin + (int)((int64_t)(p.r - p.begin) * block / p.blocks);
}

/* The first row of a rank's share of a column, after row `begin`; that after the last rank's is the
   number of all rows. */
static __device__ __forceinline__ int
share_begin(const struct panel &p, int rank)
{
    return (int)((int64_t)(p.r - p.begin) * rank / p.ranks);
}

/* A block's part in matrix m.  near: NULL, or the slice in shared memory. */
static __device__ struct part
part_of(const struct panel &p, int64_t m, int group, int block, scalar *near)
{
    const int64_t columns = m * p.c, places = (int64_t)group * p.blocks;
    const int64_t clusters = (int64_t)group * p.clusters;
    struct part q;

    q.w = p.w + columns * p.r;
    q.tau_q = p.tau_q + columns;
    q.tau_p = p.tau_p + columns;
    q.d = p.d + columns;
    q.e = p.e + columns;
    q.vx = p.vx + m * SLOTS * p.r;
    q.yu = p.yu + columns * SLOTS;
    q.row = p.row + (int64_t)group * p.c;
    q.sums = p.sums + clusters * p.r;
    q.left = p.left + places * SLOTS;
    q.right = p.right + clusters * SLOTS;
    q.block = block;
    q.rank = block % p.ranks;
    q.from = share_begin(p, q.rank);
    q.length = share_begin(p, q.rank + 1) - q.from;
    q.start = column_at(q.w + p.begin + q.from);
    q.low = slice_begin(p, block);
    q.rows = slice_begin(p, block + 1) - q.low;
    q.lines = q.rows < 1 ? 1 : q.rows < DENSE_PANEL_THREADS ? q.rows : (int)DENSE_PANEL_THREADS;
    q.shares = DENSE_PANEL_THREADS / q.lines < MOST_SHARES ? DENSE_PANEL_THREADS / q.lines
                                                           : (int)MOST_SHARES;
    q.near = near != NULL ? near : q.vx + q.low;
    q.ld = near != NULL ? p.slice : p.r;
    return q;
}

/* The cluster's first column after column i; own: its first that is not before i. */
static __device__ __forceinline__ int
column_after(const struct panel &p, int own, int i)
{
    return own > i ? own : own + p.clusters;
}

/* Sets an entry of V X in the slice.  Without a copy in shared memory q.near is an alias of q.vx,
   and both stores are the same. */
static __device__ __forceinline__ void
store_vx(const struct panel &p, const struct part &q, int slot, int place, scalar x)
{
    q.near[slot * q.ld + place] = x;
    q.vx[(int64_t)slot * p.r + q.low + place] = x;
}

/* Issues the loads of the first `used` slots and of the last, each of `blocks` parts. */
static __device__ __forceinline__ void
ask_slots(const scalar *part, int blocks, int used, scalar (&x)[EACH][CHUNKS])
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;

#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int slot = warp + n * WARPS, parts = slot < used || slot == LAST ? blocks : 0;

#pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int block = lane + k * WARP;

            x[n][k] = block < parts ? part[slot * blocks + block] : REAL(0);
        }
    }
}

/* The sums of these parts over the blocks, to `to`. */
static __device__ __forceinline__ void
sum_slots(const scalar (&x)[EACH][CHUNKS], scalar *to)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    scalar sum[EACH];

#pragma unroll
    for (int n = 0; n < EACH; n++) {
        sum[n] = x[n][0];
#pragma unroll
        for (int k = 1; k < CHUNKS; k++) {
            sum[n] += x[n][k];
        }
    }
    sum[0] = warp_sums(sum);
    if (lane % (WARP / EACH) == 0) {
        to[warp + lane / (WARP / EACH) * WARPS] = sum[0];
    }
}

/* Issues the loads of a thread's parts of w in a row of the slice, from cluster `first` on. */
static __device__ __forceinline__ void
ask_row(const struct panel &p, const struct part &q, int first, int place, scalar (&x)[IN_FLIGHT])
{
    const scalar *part = q.sums + (int64_t)first * p.r + q.low + place;
    const int64_t step = (int64_t)q.shares * p.r;
    const int clusters = place < q.rows ? p.clusters : 0;

#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) {
        x[k] = first + k * q.shares < clusters ? *part : REAL(0);
        part += step;
    }
}

/* The sum of a thread's parts of w.  ask_row() has loaded the first of them to x. */
static __device__ __forceinline__ scalar
sum_row(const struct panel &p, const struct part &q, int share, int place, scalar (&x)[IN_FLIGHT])
{
    scalar sum[4] = {};

    for (int cluster = share;;) {
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            sum[k % 4] += x[k];
        }
        cluster += IN_FLIGHT * q.shares;
        if (cluster >= p.clusters) {
            return (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
        ask_row(p, q, cluster, place, x);
    }
}

/* What a thread prefetches before the barrier that comes before the phase of the rows. */
struct ahead {
    int share, line; /* which of the threads of a row, and of the rows, it is */
    int column;      /* its first column: only a cluster's first block has any, as it has made r
                        and reads Y U before the barrier */
    scalar before;   /* its row of column i of A */
    scalar row;      /* r of its first column */
};

static __device__ __forceinline__ struct ahead
look_ahead(const struct panel &p, const struct part &q, int i, int own)
{
    const int t = (int)threadIdx.x, l = q.rank == 0 ? own + t * p.clusters : p.c;

    return {t / q.lines, t % q.lines, l,
            i < p.c && t < q.rows ? q.w[(int64_t)i * p.r + q.low + t] : REAL(0),
            i > p.begin && l < p.c ? q.row[l] : REAL(0)};
}

/* The parts of V^H a, X^H a and of the sum of squares in the block's slice. */
static __device__ __forceinline__ void
sum_slice(const struct panel &p, const struct part &q, int i)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int used = 2 * (i - p.begin);
    const scalar *const a = q.near + LAST * q.ld;
    const scalar *with[EACH];
    scalar sum[EACH];

#pragma unroll
    for (int n = 0; n < EACH; n++) { /* nobody reads the sums of other slots */
        with[n] = warp + n * WARPS < used ? q.near + (warp + n * WARPS) * q.ld : a;
        sum[n] = 0;
    }
#pragma unroll 2
    for (int place = lane; place < q.rows; place += WARP) {
        const scalar x = a[place], later = q.low + place > i ? x : REAL(0);

#pragma unroll
        for (int n = 0; n < EACH; n++) {
            sum[n] = n_fma(n_conj(with[n][place]), warp + n * WARPS == LAST ? later : x, sum[n]);
        }
    }
    sum[0] = warp_sums(sum);
    if (lane % (WARP / EACH) == 0) {
        q.left[(warp + lane / (WARP / EACH) * WARPS) * p.blocks + q.block] = sum[0];
    }
}

/* The phase of the rows: column i as it is now, from what steps begin .. i - 1 have left.  i = end:
   only x of the last step. */
static __device__ __forceinline__ void
make_column(const struct panel &p, const struct part &q, const struct panel_shared &s, int i,
            struct ahead ahead)
{
    const int t = (int)threadIdx.x, threads = DENSE_PANEL_THREADS, share = ahead.share;
    const int done = i - p.begin, terms = done > 0 ? 2 * done - 1 : 0;
    struct reflector h = {};
    scalar w[IN_FLIGHT] = {};

    if (done > 0) {
        const scalar first = q.row[i];
        scalar y = 0, slots[EACH][CHUNKS];

        ask_slots(q.right, p.clusters, terms, slots);
        ask_row(p, q, share, ahead.line, w);
        if (t < terms) {
            y = q.yu[(int64_t)i * SLOTS + t];
        }
        sum_slots(slots, s.sum);
        if (t < SLOTS) {
            s.y[t] = y;
        }
        __syncthreads();
        h = reflector_of(first, n_real(s.sum[LAST]));
        for (int l = ahead.column; l < p.c;) {
            const scalar u = l == i ? scalar(1) : n_mul(ahead.row, h.scale);

            q.yu[(int64_t)l * SLOTS + terms] = n_conj(u);
            if (l > i) {
                q.w[(int64_t)l * p.r + i - 1] = u;
            }
            l += threads * p.clusters;
            ahead.row = l < p.c ? q.row[l] : REAL(0);
        }
        if (q.block == 0 && t == 0) {
            q.e[i - 1] = h.beta;
            q.tau_p[i - 1] = h.tau;
        }
    }
    for (int at = 0; at < q.rows; at += q.lines) {
        const int place = at + ahead.line;

        if (at > 0 && place < q.rows) {
            ahead.before = q.w[(int64_t)i * p.r + q.low + place];
            if (done > 0) {
                ask_row(p, q, share, place, w);
            }
        }
        if (share < q.shares && place < q.rows) {
            scalar x = done > 0 ? sum_row(p, q, share, place, w) : REAL(0), a = 0;

#pragma unroll 8
            for (int k = share; k < terms; k += q.shares) {
                const scalar value = q.near[k * q.ld + place];

                x = n_fma(-value, s.sum[k], x);
                a = n_fma(-value, s.y[k], a);
            }
            s.scratch[t] = x;
            s.scratch[threads + t] = a;
        }
        __syncthreads();
        if (t < q.lines && place < q.rows) {
            const bool gone = q.low + place < i;
            scalar x = 0, a = ahead.before;

#pragma unroll 8
            for (int k = 0; k < q.shares; k++) {
                x += s.scratch[k * q.lines + t];
                a += s.scratch[threads + k * q.lines + t];
            }
            if (done > 0) {
                x = n_mul(h.tau, n_mul(n_fma_real(-h.beta, a, x), h.scale));
                store_vx(p, q, terms, place, gone ? REAL(0) : x);
            }
            if (i < p.end) {
                store_vx(p, q, LAST, place, gone ? REAL(0) : a - x);
            }
        }
        __syncthreads();
    }
    if (i < p.end) {
        sum_slice(p, q, i);
    }
}

#endif
