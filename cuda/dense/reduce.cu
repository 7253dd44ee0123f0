/*
 * Reduction to bidiagonal form on the device, which reads the trailing matrix once a column
 * (Howell, Demmel, Fulton, Hammarling & Marmol, ACM Trans. Math. Softw. 34 (2008)).
 *
 * In a panel the matrix is A - V Y^T - X U^T, where A is what the panel started with.  Step i makes
 * the reflectors v and u of column i and of row i:
 *
 *     y_l = tau (A_l^T v - Y_l V^T v - U_l X^T v)       of each column l > i
 *     r_l = row i of column l, less y_l                 the row that u is made of
 *     w   = sum of A_l r_l
 *     u   = (r - beta e_1) / (r_1 - beta)
 *     a   = column i + 1, but for what x changes
 *     x   = tau' (w - V Y^T r - X U^T r - beta a) / (r_1 - beta)
 *
 * so that one visit to column l serves both A^T v and A u.  What is linear in u, or in v, is summed
 * over r, or over the column itself, before the norm is known.
 *
 * A kernel makes a panel.  Block b has the columns l with l mod blocks = b, and an equal share of
 * the rows, its slice.  A step has two phases, and a barrier behind each:
 *
 *     rows     x of the step before and the next column, in the block's slice; sums of V^T a, X^T a
 *     columns  v; y, r and w of the block's columns, which come through shared memory; sums of
 *              Y^T r, U^T r
 *
 * Small matrices wait for memory, and not for its bandwidth.  So a phase first asks for all that it
 * needs from other blocks, and waits once.  What its own block has made, and A, which no step
 * changes, it asks for before the barrier.  The copies of columns never pause: behind the last of a
 * step come the first of the next, and what all threads hold in registers makes room for more.
 *
 * A product then updates the trailing matrix.  What is left when that fits shared memory is
 * resident.cu's.  Several groups of blocks work on several matrices.
 *
 * V X  [SLOTS][r] of each matrix: v of the panel's k-th step in slot 2 k, x in slot 2 k + 1.  Until
 *      its x comes, the last slot has the next column.
 * Y U  [c][SLOTS] of each matrix: the y's and the u's of a column in the same order
 */
#include "dense/columns.h"
#include "dense/panel.h"
#include "dense/run.h"

enum {
    WARPS = (int)DENSE_PANEL_THREADS / (int)WARP,
    SLOTS = 2 * DENSE_WIDTH,
    LAST = SLOTS - 1,
    EACH = SLOTS / WARPS, /* slots of a warp, a power of two */
    MOST_SHARES = 16,     /* threads, at most, that share a row of the slice */
    IN_FLIGHT = 44,       /* parts of w that a thread asks for at once.  Three threads of a row then
                             ask for those of 132 blocks.  Not measured. */
    CHUNKS = 5,           /* parts of a slot that a thread asks for */
    MOST_BLOCKS = CHUNKS * WARP
};
static_assert(EACH * WARPS == SLOTS && SLOTS % (int)WARP == 0, "slots are shared out among warps");
static_assert(SLOTS < 4 * (int)WARP, "visit_sums.first");

/* A panel of each of `count` matrices. */
struct panel {
    int r, c;
    int64_t count;
    int begin, end;              /* its columns */
    int blocks, groups;          /* of a group; of the grid */
    int stages;                  /* how many groups of columns are on their way; 0: none */
    int slice;                   /* rows of the longest slice, if it is kept in shared memory */
    unsigned spread, kept;       /* column l stays in the L2 cache if l spread mod 2^32 < kept */
    real *w;                     /* [count][c][r] */
    real *tau_q, *tau_p, *d, *e; /* [count][c] */
    real *vx, *yu;               /* [count] as above */

    /* Of each group of blocks. */
    real *row;          /* [c] the row r */
    real *sums;         /* [blocks][r] parts of w */
    real *left, *right; /* [SLOTS][blocks] parts of V^T a, X^T a, and of Y^T r, U^T r.  The last
                           slot is that of the sum of squares behind the first entry */
    unsigned *arrived;  /* [1] zero */
};

/* What a block works on: its matrix and its slice of the rows. */
struct part {
    real *w, *tau_q, *tau_p, *d, *e, *vx, *yu, *row, *sums, *left, *right; /* as in the panel */
    int block;
    unsigned start;    /* column_at() of row `begin` of column 0 */
    int low, rows;     /* the slice */
    int lines, shares; /* rows that are made at once, and threads of each */
    real *near;        /* V X of the slice: in shared memory, or a part of vx */
    int64_t ld;        /* numbers between its slots */
};

/* Bytes of shared memory before the numbers of a block: its part, and the barriers of the ring. */
enum { PART_BYTES = (sizeof(struct part) + DENSE_STAGES * sizeof(uint64_t) + 15) / 16 * 16 };

/* Sums of a visit: [2] by turns. */
struct visit_sums {
    real *column; /* [2][COLUMNS][WARPS] parts of y */
    real *first;  /* [2][COLUMNS][4] row i of the column, and parts of what is taken off it */
};

/* What a block keeps in shared memory. */
struct panel_shared {
    real *sum, *y; /* [SLOTS] sums over the blocks; row i of Y U */
    real *scratch; /* [2 threads] */
    struct visit_sums visit;
    real *stage; /* [stages][columns of a visit][rows] */
};

static inline __host__ __device__ int
panel_numbers(int columns)
{
    return 2 * SLOTS + 2 * DENSE_PANEL_THREADS + 2 * columns * (WARPS + 4);
}

static __device__ struct panel_shared
share(real *x, int columns)
{
    real *const sums = x + 2 * SLOTS + 2 * DENSE_PANEL_THREADS;
    real *const first = sums + 2 * columns * WARPS;

    return {x, x + SLOTS, x + 2 * SLOTS, {sums, first}, first + 2 * columns * 4};
}

/* The first row of a block's slice; that of the block behind the last is r. */
static __device__ __forceinline__ int
slice_begin(const struct panel &p, int block)
{
    return p.begin + (int)((int64_t)(p.r - p.begin) * block / p.blocks);
}

/* A block's part in matrix m.  near: NULL, or the slice in shared memory. */
static __device__ struct part
part_of(const struct panel &p, int64_t m, int group, int block, real *near)
{
    const int64_t columns = m * p.c, places = (int64_t)group * p.blocks;
    struct part q;

    q.w = p.w + columns * p.r;
    q.tau_q = p.tau_q + columns;
    q.tau_p = p.tau_p + columns;
    q.d = p.d + columns;
    q.e = p.e + columns;
    q.vx = p.vx + m * SLOTS * p.r;
    q.yu = p.yu + columns * SLOTS;
    q.row = p.row + (int64_t)group * p.c;
    q.sums = p.sums + places * p.r;
    q.left = p.left + places * SLOTS;
    q.right = p.right + places * SLOTS;
    q.block = block;
    q.start = column_at(q.w + p.begin);
    q.low = slice_begin(p, block);
    q.rows = slice_begin(p, block + 1) - q.low;
    q.lines = q.rows < 1 ? 1 : q.rows < DENSE_PANEL_THREADS ? q.rows : (int)DENSE_PANEL_THREADS;
    q.shares = DENSE_PANEL_THREADS / q.lines < MOST_SHARES ? DENSE_PANEL_THREADS / q.lines
                                                           : (int)MOST_SHARES;
    q.near = near != NULL ? near : q.vx + q.low;
    q.ld = near != NULL ? p.slice : p.r;
    return q;
}

/* The block's first column behind column i; own: its first that is not before i. */
static __device__ __forceinline__ int
behind(const struct panel &p, int own, int i)
{
    return own > i ? own : own + p.blocks;
}

/* Sets an entry of V X in the slice. */
static __device__ __forceinline__ void
keep(const struct panel &p, const struct part &q, int slot, int place, real x)
{
    q.near[slot * q.ld + place] = x; /* this and the next are the same if nothing is kept near */
    q.vx[(int64_t)slot * p.r + q.low + place] = x;
}

/* Asks for the parts of the first `used` slots and of the last. */
static __device__ __forceinline__ void
ask_slots(const real *part, int blocks, int used, real (&x)[EACH][CHUNKS])
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

/* Their sums over the blocks. */
static __device__ __forceinline__ void
sum_slots(const real (&x)[EACH][CHUNKS], real *to)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    real sum[EACH];

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

/* Asks for a thread's parts of w in a row of the slice, from block `first` on. */
static __device__ __forceinline__ void
ask_row(const struct panel &p, const struct part &q, int first, int place, real (&x)[IN_FLIGHT])
{
    const real *part = q.sums + (int64_t)first * p.r + q.low + place;
    const int64_t step = (int64_t)q.shares * p.r;
    const int blocks = place < q.rows ? p.blocks : 0;

#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) {
        x[k] = first + k * q.shares < blocks ? *part : REAL(0);
        part += step;
    }
}

/* The sum of a thread's parts, of which it has asked for the first. */
static __device__ __forceinline__ real
sum_row(const struct panel &p, const struct part &q, int share, int place, real (&x)[IN_FLIGHT])
{
    real sum[4] = {};

    for (int block = share;;) {
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            sum[k % 4] += x[k];
        }
        block += IN_FLIGHT * q.shares;
        if (block >= p.blocks) {
            return (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
        ask_row(p, q, block, place, x);
    }
}

/* What a thread does before it waits for the phase of the rows. */
struct ahead {
    int share, line; /* which of the threads of a row, and of the rows, it is */
    real before;     /* its row of column i of A */
    real row;        /* r of its first column */
};

static __device__ __forceinline__ struct ahead
look_ahead(const struct panel &p, const struct part &q, int i, int own)
{
    const int t = (int)threadIdx.x, l = own + t * p.blocks;

    return {t / q.lines, t % q.lines,
            i < p.c && t < q.rows ? q.w[(int64_t)i * p.r + q.low + t] : REAL(0),
            i > p.begin && l < p.c ? q.row[l] : REAL(0)};
}

/* The parts of V^T a, X^T a and of the sum of squares in the block's slice. */
static __device__ __forceinline__ void
sum_slice(const struct panel &p, const struct part &q, int i)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int used = 2 * (i - p.begin);
    const real *const a = q.near + LAST * q.ld;
    const real *with[EACH];
    real sum[EACH];

#pragma unroll
    for (int n = 0; n < EACH; n++) { /* nobody reads the sums of other slots */
        with[n] = warp + n * WARPS < used ? q.near + (warp + n * WARPS) * q.ld : a;
        sum[n] = 0;
    }
#pragma unroll 2
    for (int place = lane; place < q.rows; place += WARP) {
        const real x = a[place], behind = q.low + place > i ? x : REAL(0);

#pragma unroll
        for (int n = 0; n < EACH; n++) {
            sum[n] = r_fma(with[n][place], warp + n * WARPS == LAST ? behind : x, sum[n]);
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
            int own, struct ahead ahead)
{
    const int t = (int)threadIdx.x, threads = DENSE_PANEL_THREADS, share = ahead.share;
    const int done = i - p.begin, terms = done > 0 ? 2 * done - 1 : 0;
    struct reflector h = {};
    real w[IN_FLIGHT] = {};

    if (done > 0) {
        const real first = q.row[i];
        real y = 0, slots[EACH][CHUNKS];

        ask_slots(q.right, p.blocks, terms, slots);
        ask_row(p, q, share, ahead.line, w);
        if (t < terms) {
            y = q.yu[(int64_t)i * SLOTS + t];
        }
        sum_slots(slots, s.sum);
        if (t < SLOTS) {
            s.y[t] = y;
        }
        __syncthreads();
        h = reflector_of(first, s.sum[LAST]);
        for (int l = own + t * p.blocks; l < p.c;) {
            const real u = l == i ? REAL(1) : ahead.row * h.scale;

            q.yu[(int64_t)l * SLOTS + terms] = u;
            if (l > i) {
                q.w[(int64_t)l * p.r + i - 1] = u;
            }
            l += threads * p.blocks;
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
            real x = done > 0 ? sum_row(p, q, share, place, w) : REAL(0), a = 0;

#pragma unroll 8
            for (int k = share; k < terms; k += q.shares) {
                const real value = q.near[k * q.ld + place];

                x = r_fma(-value, s.sum[k], x);
                a = r_fma(-value, s.y[k], a);
            }
            s.scratch[t] = x;
            s.scratch[threads + t] = a;
        }
        __syncthreads();
        if (t < q.lines && place < q.rows) {
            const bool gone = q.low + place < i;
            real x = 0, a = ahead.before;

#pragma unroll 8
            for (int k = 0; k < q.shares; k++) {
                x += s.scratch[k * q.lines + t];
                a += s.scratch[threads + k * q.lines + t];
            }
            if (done > 0) {
                x = h.tau * (r_fma(-h.beta, a, x) * h.scale);
                keep(p, q, terms, place, gone ? REAL(0) : x);
            }
            if (i < p.end) {
                keep(p, q, LAST, place, gone ? REAL(0) : a - x);
            }
        }
        __syncthreads();
    }
    if (i < p.end) {
        sum_slice(p, q, i);
    }
}

/* What is next in the ring: the columns from l on, in step i.  own: the block's first column that
   is not before i. */
struct cursor {
    int i, own, l;
};

/* Fills a part of a stage with the next visit's columns. */
template <int COLUMNS>
static __device__ __forceinline__ void
fetch(const struct panel &p, const struct part &q, const struct ring &ring, int stage,
      struct room_part part, struct cursor &next)
{
    unsigned kept = 0;
    int count = 0;

    if (!ring_fills()) {
        return;
    }
    if (part.begin == 0 && next.l >= p.c && next.i + 1 < p.end) {
        next.own = behind(p, next.own, next.i);
        next.i++;
        next.l = behind(p, next.own, next.i);
    }
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        count += next.l + k * p.blocks < p.c;
        kept |= (unsigned)(next.l + k * p.blocks) * p.spread < p.kept ? 1u << k : 0;
    }
    ring_fill<COLUMNS>(ring, stage, part, q.w + (int64_t)next.l * p.r + p.begin,
                       (int64_t)p.blocks * p.r, count, kept, p.r - p.begin);
    next.l += part.end == ALL_ROOM ? COLUMNS * p.blocks : 0;
}

/* y and r of a visit: r of all columns, and both of the one that the thread has a slot of. */
template <int COLUMNS> struct visited {
    real r[COLUMNS], own_y, own_r;
};

/* Sums over the block, for a visit: a thread's shares of the sums of the columns, and of what is
   taken off row i of the column that it has a slot of.  Row i itself is there already. */
template <int COLUMNS>
static __device__ __forceinline__ struct visited<COLUMNS>
sum_visit(const struct visit_sums &s, int turn, real tau, real (&sum)[COLUMNS], real off) {
    const int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP;
    const int lanes = WARPS < WARP / COLUMNS ? (int)WARPS : WARP / COLUMNS; /* of a column */
    const int column = lane / lanes % COLUMNS;
    const real *const part = s.column + (turn * COLUMNS + column) * WARPS + lane % lanes;
    const real *const first = s.first + (turn * COLUMNS + column) * 4;
    struct visited<COLUMNS> all;
    real x = warp_sums(sum), r;

    if (lane % (WARP / COLUMNS) == 0) {
        s.column[(turn * COLUMNS + lane / (WARP / COLUMNS)) * WARPS + warp] = x;
    }
    if (t < COLUMNS * SLOTS) {
        off = warp_sum(off);
        if (lane == 0) {
            s.first[(turn * COLUMNS + t / SLOTS) * 4 + 1 + t % SLOTS / WARP] = off;
        }
    }
    __syncthreads();
    r = first[0];
#pragma unroll
    for (int k = 0; k < SLOTS / WARP; k++) {
        r -= first[1 + k];
    }
    x = part[0];
#pragma unroll
    for (int k = 1; k < WARPS / lanes; k++) {
        x += part[k * lanes];
    }
#pragma unroll
    for (int k = lanes / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, k);
    }
    x *= tau;
    r -= x;
    if constexpr (COLUMNS == 1) { /* all lanes have them */
        all = {{r}, x, r};
    } else {
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            all.r[k] = __shfl_sync(0xffffffffu, r, k * lanes);
        }
        all.own_y = __shfl_sync(0xffffffffu, x, t / SLOTS % COLUMNS * lanes);
        all.own_r = __shfl_sync(0xffffffffu, r, t / SLOTS % COLUMNS * lanes);
    }
    return all;
}

/* A thread's place of Y U in the visit that begins with column l: thread t has slot t mod SLOTS of
   the column t / SLOTS.  Zero beyond the first `used` slots. */
static __device__ __forceinline__ real
beside(const struct panel &p, const struct part &q, int columns, int used, int l)
{
    const int t = (int)threadIdx.x, slot = t % SLOTS, column = l + t / SLOTS * p.blocks;

    return t < columns * SLOTS && slot < used && column < p.c ? q.yu[(int64_t)column * SLOTS + slot]
                                                              : REAL(0);
}

/* Whether the j-th of ROWS rows of a thread may lie beyond the last row. */
static __device__ constexpr bool
may_miss(int rows, int j)
{
    return j >= rows - (rows <= 16 ? 4 : rows <= 40 ? 8 : 16);
}

/* How many of its rows of the columns of a visit a thread holds in registers. */
static __device__ constexpr int
rows_held(int rows, int columns)
{
    const int room = (int)DENSE_PANEL_REGISTERS * 4 / (int)sizeof(real) - 2 * rows;

    return room < rows * columns ? room / columns : rows;
}

/* The phase of the columns: v; y, r and w.  ROWS: rows that a thread has, in registers; 0: there
   are too many, and v and w are in memory.  COLUMNS: of a visit.  mine: beside() of the first. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void
visit_columns(const struct panel &p, const struct part &q, const struct panel_shared &s,
              struct ring &ring, struct cursor &cursor, int i, int begin, real mine)
{
    constexpr int HELD = rows_held(ROWS, COLUMNS);
    /* what is filled again as soon as all threads hold it */
    constexpr int early = !COLUMNS_BULK ? 0 : HELD < ROWS ? HELD * DENSE_PANEL_THREADS : ALL_ROOM;
    const int t = (int)threadIdx.x, threads = DENSE_PANEL_THREADS, slot = t % SLOTS;
    const int done = i - p.begin, used = 2 * done, rows = p.r - p.begin;
    const int step = COLUMNS * p.blocks;
    const bool placed = t < COLUMNS * SLOTS;
    const real *const all = q.vx + (int64_t)LAST * p.r; /* rows of the column */
    real *const sums = q.sums + (int64_t)q.block * p.r;
    real slots[EACH][CHUNKS], v[ROWS > 0 ? ROWS : 1], w[ROWS > 0 ? ROWS : 1], z = 0;
    real first, across, along; /* the factors of this thread's place of Y U in row i, and in y */
    struct reflector h;
    int turn = 0;

    first = all[i];
    across = placed && slot < used ? q.vx[(int64_t)slot * p.r + i] : REAL(0);
    ask_slots(q.left, p.blocks, used, slots);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int row = t + j * threads;

        v[j] = row >= done && row < rows ? all[p.begin + row] : REAL(0);
        w[j] = 0;
    }
    sum_slots(slots, s.sum);
    __syncthreads();
    h = reflector_of(first, s.sum[LAST]);
    along = placed && slot < used ? r_fma(-h.beta, across, s.sum[slot]) * h.scale : REAL(0);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        v[j] = j == 0 && t == done ? REAL(1) : v[j] * h.scale;
    }
    for (int place = t; place < q.rows; place += threads) {
        const int row = q.low + place;

        if (row >= i) {
            const real value = row == i ? REAL(1) : q.near[LAST * q.ld + place] * h.scale;

            keep(p, q, used, place, value);
            if (row > i) {
                q.w[(int64_t)i * p.r + row] = value;
            }
        } else {
            keep(p, q, used, place, 0);
        }
    }
    if (q.block == 0 && t == 0) {
        q.d[i] = h.beta;
        q.tau_q[i] = h.tau;
        if (i + 1 == p.c) {
            q.e[i] = q.tau_p[i] = 0;
        }
    }
    for (int row = t; ROWS == 0 && row < rows; row += threads) {
        sums[p.begin + row] = 0;
    }
    for (int l = begin; l < p.c; l += step, turn = 1 - turn) {
        const real next = beside(p, q, COLUMNS, used, l + step);
        const int own = l + t / SLOTS * p.blocks; /* the column that the thread has a slot of */
        const real *stage[COLUMNS];
        struct visited<COLUMNS> now;
        real sum[COLUMNS], held[COLUMNS][HELD > 0 ? HELD : 1];

        if (ROWS > 0) {
            ring_wait(ring);
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int column = l + k * p.blocks;

            sum[k] = t / SLOTS == k ? -mine * along : REAL(0);
            if (ROWS == 0) {
                stage[k] = q.w + (int64_t)column * p.r + p.begin + t;
            } else if (column < p.c) {
                stage[k] = ring.stage + ring.now * ring.size + k * (ring.size / COLUMNS) + t +
                           column_shift(q.start + (unsigned)column * (unsigned)p.r);
            } else {
                stage[k] = stage[0]; /* what a visit lacks is the first column, times zero */
            }
            if (t == done) {
                s.visit.first[(turn * COLUMNS + k) * 4] = stage[k][0];
            }
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                const bool in = !may_miss(ROWS, j) || t + j * threads < rows;
                const real x = in ? stage[k][j * threads] : REAL(0);

                if (j < HELD) {
                    held[k][j] = x;
                }
                sum[k] = r_fma(x, v[j], sum[k]);
            }
        }
        if (ROWS == 0) {
#pragma unroll 8
            for (int row = t < done ? t + threads : t; row < rows; row += threads) {
                const real value = row == done ? REAL(1) : all[p.begin + row] * h.scale;

                sum[0] = r_fma(stage[0][row - t], value, sum[0]);
            }
        }
        now = sum_visit<COLUMNS>(s.visit, turn, h.tau, sum, mine * across);
        if (ROWS > 0 && early > 0) {
            fetch<COLUMNS>(p, q, ring, ring.now, {0, early}, cursor);
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const real r = l + k * p.blocks < p.c ? now.r[k] : REAL(0);

#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                if (j < HELD) {
                    w[j] = r_fma(held[k][j], r, w[j]);
                } else {
                    const bool in = !may_miss(ROWS, j) || t + j * threads < rows;

                    w[j] = r_fma(in ? stage[k][j * threads] : REAL(0), r, w[j]);
                }
            }
        }
        if (ROWS == 0) {
#pragma unroll 8
            for (int row = t; row < rows; row += threads) {
                sums[p.begin + row] = r_fma(stage[0][row - t], now.r[0], sums[p.begin + row]);
            }
        }
        if (placed && own < p.c) {
            if (slot == used) {
                mine = now.own_y;
                q.yu[(int64_t)own * SLOTS + used] = mine;
            } else if (slot == LAST) {
                mine = own > i + 1 ? now.own_r : REAL(0);
                q.row[own] = now.own_r;
            }
            z = r_fma(mine, now.own_r, z);
        }
        mine = next;
        if (ROWS > 0) {
            if (early < ALL_ROOM) {
                ring_release();
                fetch<COLUMNS>(p, q, ring, ring.now, {early, ALL_ROOM}, cursor);
            }
            ring_turn(ring);
        }
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        if (t + j * threads < rows) {
            sums[p.begin + t + j * threads] = w[j];
        }
    }
    if (COLUMNS > 1) {
        if (placed) {
            s.scratch[t] = z;
        }
        __syncthreads();
        z = 0;
        for (int k = 0; k < COLUMNS && t < SLOTS; k++) {
            z += s.scratch[k * SLOTS + t];
        }
    }
    if (t < SLOTS) {
        q.right[t * p.blocks + q.block] = z;
    }
}

template <int ROWS, int COLUMNS>
static __global__ void
__launch_bounds__(DENSE_PANEL_THREADS, 1) panel_kernel(const __grid_constant__ struct panel p)
{
    extern __shared__ __align__(16) unsigned char shared[]; /* bulk copies go there */
    struct part &q = *(struct part *)shared; /* it would take the registers of v and w */
    const struct panel_shared s = share((real *)(shared + PART_BYTES), COLUMNS);
    const int index = (int)blockIdx.x / p.blocks, block = (int)blockIdx.x % p.blocks;
    const int size = COLUMNS * column_room(p.r - p.begin);
    struct block_group group = {p.blocks, block, p.arrived + index, 0};
    struct ring ring = {s.stage, (uint64_t *)(shared + sizeof(q)), p.stages, size, 0, 0};

    static_assert(COLUMNS * SLOTS <= DENSE_PANEL_THREADS, "each slot of a visit has its thread");
    ring_prepare(ring);
    for (int64_t m = index; m < p.count; m += p.groups) {
        /* the block's first column that is not before i */
        int own = p.begin + (block - p.begin % p.blocks + p.blocks) % p.blocks;
        struct cursor cursor = {p.begin, own, behind(p, own, p.begin)};
        struct ahead ahead;

        if (threadIdx.x == 0) {
            q = part_of(p, m, index, block, p.slice > 0 ? s.stage + p.stages * size : NULL);
        }
        __syncthreads();
        for (int k = 0; k < p.stages; k++) {
            const int stage = ring.now + k;

            fetch<COLUMNS>(p, q, ring, stage < p.stages ? stage : stage - p.stages, {0, ALL_ROOM},
                           cursor);
        }
        ahead = look_ahead(p, q, p.begin, own);
        for (int i = p.begin; i < p.c; i++) {
            real mine;

            make_column(p, q, s, i, own, ahead);
            if (i == p.end) {
                break;
            }
            group_arrive(&group);
            own = behind(p, own, i);
            mine = beside(p, q, COLUMNS, 2 * (i - p.begin), own);
            group_wait(&group);
            visit_columns<ROWS, COLUMNS>(p, q, s, ring, cursor, i, own, mine);
            group_arrive(&group);
            ahead = look_ahead(p, q, i + 1, own);
            group_wait(&group);
        }
        copies_wait(0);
        __syncthreads(); /* before the next matrix's numbers */
    }
}

/* ---- the panels ---- */

typedef void panel_function(struct panel);

/* A kernel, and what it takes. */
struct panel_choice {
    panel_function *kernel;
    int rows, columns; /* of a thread; of a visit */
};

/* Bytes of shared memory, but for stages and the slice, and of a stage. */
static size_t
least_bytes(struct panel_choice choice)
{
    return PART_BYTES + (size_t)panel_numbers(choice.columns) * sizeof(real);
}

static size_t
stage_bytes(struct panel_choice choice, int rows)
{
    return choice.rows > 0 ? (size_t)(choice.columns * column_room(rows)) * sizeof(real) : 0;
}

/* The kernel for so many rows. */
static struct panel_choice
choose_kernel(const struct cuda_call *call, int rows)
{
    /* may_miss() counts on the steps between them */
    static const struct panel_choice choice[] = {
#if TSVD_SINGLE
        {panel_kernel<4, 4>, 4, 4},
        {panel_kernel<8, 4>, 8, 4},
        {panel_kernel<12, 4>, 12, 4},
        {panel_kernel<16, 4>, 16, 4},
        {panel_kernel<24, 2>, 24, 2},
        {panel_kernel<32, 2>, 32, 2},
        {panel_kernel<48, 1>, 48, 1},
        {panel_kernel<64, 1>, 64, 1},
        {panel_kernel<80, 1>, 80, 1},
#else
        {panel_kernel<4, 4>, 4, 4},
        {panel_kernel<8, 4>, 8, 4},
        {panel_kernel<12, 2>, 12, 2},
        {panel_kernel<16, 2>, 16, 2},
        {panel_kernel<24, 1>, 24, 1},
        {panel_kernel<32, 1>, 32, 1},
        {panel_kernel<40, 1>, 40, 1},
#endif
    };
    const struct panel_choice any = {panel_kernel<0, 1>, 0, 1};

    for (struct panel_choice some : choice) {
        if (some.rows * DENSE_PANEL_THREADS >= rows) {
            const size_t bytes = least_bytes(some) + stage_bytes(some, rows);

            return bytes <= (size_t)call->shared_most ? some : any;
        }
    }
    return any;
}

/* How many stages fit beside so many bytes. */
static int
stages_beside(const struct cuda_call *call, size_t bytes, size_t stage)
{
    int stages = 0;

    while (stage > 0 && stages < DENSE_STAGES &&
           bytes + (size_t)(stages + 1) * stage <= (size_t)call->shared_most) {
        stages++;
    }
    return stages;
}

/* How blocks are shared out among matrices; no group has more than MOST_BLOCKS. */
static void
share_blocks(const struct cuda_call *call, int64_t count, struct panel *q)
{
    const int64_t each = count < call->multiprocessors ? call->multiprocessors / count : 1;
    const int64_t blocks = each < MOST_BLOCKS ? each : (int64_t)MOST_BLOCKS;
    const int64_t groups = call->multiprocessors / blocks;

    q->blocks = (int)blocks;
    q->groups = (int)(count < groups ? count : groups);
}

static size_t
lay_out(struct panel *q, char *base)
{
    const int64_t parts = (int64_t)q->groups * q->blocks, r = q->r, c = q->c;
    size_t at = 0;

    q->vx = cut<real>(base, &at, q->count * SLOTS * r);
    q->yu = cut<real>(base, &at, q->count * SLOTS * c);
    q->row = cut<real>(base, &at, q->groups * c);
    q->sums = cut<real>(base, &at, parts * r);
    q->left = cut<real>(base, &at, parts * SLOTS);
    q->right = cut<real>(base, &at, parts * SLOTS);
    q->arrived = cut<unsigned>(base, &at, (int64_t)blocks_for(c, DENSE_WIDTH) * q->groups);
    return at;
}

uint64_t
tsvdi_cuda_dense_reduce_bytes(const struct cuda_call *call, int64_t r, int64_t c, int64_t count)
{
    struct panel q = {};

    q.r = (int)r;
    q.c = (int)c;
    q.count = count;
    share_blocks(call, count, &q);
    return lay_out(&q, NULL) + tsvdi_cuda_dense_resident_bytes(call, r, count);
}

/* Chooses the columns that stay in a cache of so many bytes.  They are an equal share of each
   block's columns, evenly spread over a step, so that the cache and the memory are read at the same
   time.  The next column of a block adds kept / 2^32 turns of a circle, and that of the next block
   about a golden section of one. */
static void
keep_columns(struct panel *q, int64_t bytes)
{
    const int64_t columns = q->c - q->begin;
    const int64_t column = (int64_t)(q->r - q->begin) * q->groups * (int64_t)sizeof(real);
    const int64_t turn = (int64_t)1 << 32, fit = bytes / column;
    const int64_t kept = fit < columns ? fit * turn / columns : turn - 1;

    q->kept = (unsigned)kept;
    q->spread = (unsigned)((q->blocks * 5 / 8 * turn + kept) / q->blocks);
}

static tsvd_status
launch_panel(struct cuda_call *call, struct panel q)
{
    const int rows = q.r - q.begin, longest = (int)blocks_for(rows, q.blocks);
    const struct panel_choice choice = choose_kernel(call, rows);
    const size_t least = least_bytes(choice), stage = stage_bytes(choice, rows);
    const size_t slice = (size_t)SLOTS * (size_t)longest * sizeof(real);
    const int most = stages_beside(call, least, stage);
    const int beside = stages_beside(call, least + slice, stage);
    void *args[] = {&q};
    int cache = 0;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, call->device));
    keep_columns(&q, (int64_t)cache * DENSE_CACHE_PERCENT / 100);
    /* Three stages come before the slice, and others behind it.  Not measured. */
    q.slice =
        least + slice <= (size_t)call->shared_most && (beside == most || beside >= 3) ? longest : 0;
    q.stages = q.slice > 0 ? beside : most;
    CUDA_TRY(call, cudaFuncSetAttribute(choice.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        call->shared_most));
    CUDA_TRY(call,
             cudaLaunchCooperativeKernel(
                 choice.kernel, dim3((unsigned)(q.groups * q.blocks)), dim3(DENSE_PANEL_THREADS),
                 args, least + (q.slice > 0 ? slice : 0) + (size_t)q.stages * stage, call->stream));
out:
    return ret;
}

/* A -= V Y^T + X U^T behind the panel. */
static tsvd_status
update(struct cuda_call *call, const struct panel *q)
{
    const int64_t r = q->r, c = q->c, at = q->end;
    const struct cuda_factor yu = {q->yu + at * SLOTS, SLOTS, c * SLOTS, 0};
    const struct cuda_factor vx = {q->vx + at, r, r * SLOTS, 0};

    return tsvdi_cuda_multiply_add(call, TSVD_SINGLE, c - at, r - at, SLOTS, -1, yu, vx, 1,
                                   q->w + at * r + at, r, r * c, q->count);
}

tsvd_status
tsvdi_cuda_dense_reduce(struct tsvd_context *ctx, const struct dense_reduction *to, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct panel q = {};
    char *d_resident;
    int turn = 0;
    tsvd_status ret = TSVD_OK;

    q.r = (int)to->r;
    q.c = (int)to->c;
    q.count = to->count;
    q.w = to->w;
    q.tau_q = to->tau_q;
    q.tau_p = to->tau_p;
    q.d = to->d;
    q.e = to->e;
    share_blocks(call, q.count, &q);
    d_resident = d_work + lay_out(&q, d_work);
    CUDA_TRY(call,
             cudaMemsetAsync(q.arrived, 0,
                             blocks_for(q.c, DENSE_WIDTH) * (size_t)q.groups * sizeof(*q.arrived),
                             call->stream));
    TSVD_TRY(tsvdi_cuda_make_marks(call));
    for (q.begin = 0; q.begin < q.c; q.begin = q.end, q.arrived += q.groups, turn = 1 - turn) {
        if (tsvdi_cuda_dense_resident_fits(call, to, q.begin)) {
            TSVD_TRY(tsvdi_cuda_dense_resident(call, to, q.begin, d_resident));
            break;
        }
        q.end = q.begin + DENSE_WIDTH < q.c ? q.begin + DENSE_WIDTH : q.c;
        TSVD_TRY(launch_panel(call, q));
        if (q.end < q.c) {
            TSVD_TRY(update(call, &q));
        }
        /* no more than two panels are queued, or check() would be asked too early */
        CUDA_TRY(call, cudaEventSynchronize(call->mark[turn]));
        CUDA_TRY(call, cudaEventRecord(call->mark[turn], call->stream));
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}
