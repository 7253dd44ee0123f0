/*
 * A panel of the reduction to bidiagonal form: the phase of the columns, visit by visit.  reduce.cu
 * says what a step computes.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_REDUCE_VISIT_H
#define TSVDI_CUDA_BIDIAGONALIZE_REDUCE_VISIT_H

#include "bidiagonalize/reduce_panel.cuh"

/* What is next in the ring: the columns from l on, in step i.  own: the cluster's first column that
   is not before i. */
struct cursor {
    int i, own, l;
};

/* Fills a part of a buffer with the next visit's columns. */
template <int COLUMNS>
static __device__ __forceinline__ void
fetch(const struct panel &p, const struct part &q, const struct ring &ring, int buffer,
      struct column_part part, struct cursor &next)
{
    unsigned kept = 0;
    int count = 0;

    if (!ring_fills()) {
        return;
    }
    if (part.begin == 0 && next.l >= p.c && next.i + 1 < p.end) {
        next.own = column_after(p, next.own, next.i);
        next.i++;
        next.l = column_after(p, next.own, next.i);
    }
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        count += next.l + k * p.clusters < p.c;
        kept |= (unsigned)(next.l + k * p.clusters) * p.spread < p.kept ? 1u << k : 0;
    }
    ring_fill<COLUMNS>(ring, buffer, part, q.w + (int64_t)next.l * p.r + p.begin + q.from,
                       (int64_t)p.clusters * p.r, count, kept, q.length);
    next.l += part.end == COLUMN_END ? COLUMNS * p.clusters : 0;
}

/* y and r of a visit: r of all columns, and both of the one that the thread has a slot of. */
template <int COLUMNS> struct visited {
    scalar r[COLUMNS], own_y, own_r;
};

/* How a warp's lanes are shared out among the columns of a visit, once the warps have summed. */
template <int COLUMNS> struct column_lanes {
    static constexpr int EACH_COLUMN = WARPS < WARP / COLUMNS ? (int)WARPS : WARP / COLUMNS;
    int column, lane; /* of this lane: its column, and which of the column's lanes it is */
};

template <int COLUMNS>
static __device__ __forceinline__ struct column_lanes<COLUMNS>
lanes_of(void) {
    constexpr int each = column_lanes<COLUMNS>::EACH_COLUMN;
    const int lane = (int)threadIdx.x % WARP;

    return {lane / each % COLUMNS, lane % each};
}

/* The sum of the numbers that the lanes of a column have, in each of them. */
template <int COLUMNS>
static __device__ __forceinline__ scalar
sum_lanes(scalar x)
{
#pragma unroll
    for (int k = column_lanes<COLUMNS>::EACH_COLUMN / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, k);
    }
    return x;
}

/* Sums over the block, for a visit.  sum: the thread's share of the sum of each column; off: its
   share of row i of V Y^H + X U^H, in the column that it has a slot of.  Row i of A is in s.first
   already.  A lane gets *y, the sum of its column, and *r, row i of A - V Y^H - X U^H.  All of row
   i are conjugates. */
template <int COLUMNS>
static __device__ __forceinline__ void
sum_block(const struct visit_sums &s, int turn, scalar (&sum)[COLUMNS], scalar off, scalar *y,
          scalar *r)
{
    constexpr int each = column_lanes<COLUMNS>::EACH_COLUMN;
    const int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP;
    const struct column_lanes<COLUMNS> own = lanes_of<COLUMNS>();
    const scalar *const part = s.column + (turn * COLUMNS + own.column) * WARPS + own.lane;
    const scalar *const first = s.first + (turn * COLUMNS + own.column) * 4;
    scalar x = warp_sums(sum);

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
    *r = first[0];
#pragma unroll
    for (int k = 0; k < SLOTS / WARP; k++) {
        *r -= first[1 + k];
    }
    x = part[0];
#pragma unroll
    for (int k = 1; k < WARPS / each; k++) {
        x += part[k * each];
    }
    *y = sum_lanes<COLUMNS>(x);
}

/* Sends a block's sums to all blocks of its cluster; by the first warp.  No message is lost: a
   block sends those of visit n + 2 when it has those of visit n + 1, which the others sent after
   all of their warps had read those of visit n. */
template <int COLUMNS>
static __device__ __forceinline__ void
send_sums(const struct panel &p, const struct part &q, struct cluster_mail<COLUMNS> *mail,
          unsigned visit, scalar y, scalar r)
{
    const struct column_lanes<COLUMNS> own = lanes_of<COLUMNS>();

    static_assert((int)MOST_RANKS <= column_lanes<COLUMNS>::EACH_COLUMN, "a lane for each block");
    if ((int)threadIdx.x < COLUMNS * column_lanes<COLUMNS>::EACH_COLUMN && own.lane < p.ranks) {
        send(at_peer(&mail->sum[visit % 2][own.column][q.rank], own.lane), y, visit);
        if (q.rank == 0) {
            send(at_peer(&mail->row[visit % 2][own.column], own.lane), r, visit);
        }
    }
}

/* The sums over the cluster, in the same order in all of its blocks. */
template <int COLUMNS>
static __device__ __forceinline__ void
receive_sums(const struct panel &p, const struct cluster_mail<COLUMNS> *mail, unsigned visit,
             scalar *y, scalar *r)
{
    const struct column_lanes<COLUMNS> own = lanes_of<COLUMNS>();
    const struct message *const sum =
        own.lane < p.ranks ? &mail->sum[visit % 2][own.column][own.lane] : NULL;
    const struct message *const row = &mail->row[visit % 2][own.column];
    scalar x[2];

    receive(x, visit, [&](int k) { return k == 0 ? sum : row; });
    *y = sum_lanes<COLUMNS>(x[0]);
    *r = x[1];
}

/* y and r from the sums that a lane has of its column. */
template <int COLUMNS>
static __device__ __forceinline__ struct visited<COLUMNS>
finish_visit(scalar tau, scalar y, scalar r) {
    constexpr int each = column_lanes<COLUMNS>::EACH_COLUMN;
    struct visited<COLUMNS> all;

    y = n_mul(tau, y);
    r -= y;
    if constexpr (COLUMNS == 1) { /* all lanes have them */
        all = {{r}, y, r};
    } else {
        const int own = (int)threadIdx.x / SLOTS % COLUMNS * each;

#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            all.r[k] = __shfl_sync(0xffffffffu, r, k * each);
        }
        all.own_y = __shfl_sync(0xffffffffu, y, own);
        all.own_r = __shfl_sync(0xffffffffu, r, own);
    }
    return all;
}

/* A thread's place of Y U, not conjugated, in the visit that begins with column l: thread t of a
   cluster's first block has slot t mod SLOTS of the column t / SLOTS.  Zero beyond the first `used`
   slots. */
static __device__ __forceinline__ scalar
entry_of_yu(const struct panel &p, const struct part &q, int columns, int used, int l)
{
    const int t = (int)threadIdx.x, slot = t % SLOTS, column = l + t / SLOTS * p.clusters;
    const bool placed = q.rank == 0 && t < columns * SLOTS && slot < used && column < p.c;

    return placed ? n_conj(q.yu[(int64_t)column * SLOTS + slot]) : REAL(0);
}

/* Whether the j-th of ROWS rows of a thread may lie beyond the last row. */
static __device__ constexpr bool
may_miss(int rows, int j)
{
    return j >= rows - (rows <= 16 ? 4 : rows <= 40 ? 8 : 16);
}

/* How many of its rows of the columns of a visit a thread holds in registers. */
static __device__ constexpr int
rows_in_registers(int rows, int columns)
{
    const int registers = (int)DENSE_PANEL_REGISTERS * 4 / (int)sizeof(scalar) - 2 * rows;

    return registers < rows * columns ? registers / columns : rows;
}

/* The phase of the columns.  It writes v to vx, y to yu, the row r to row, this block's part of w
   to sums, and Y^H r to right.  ROWS: rows that a thread has, in registers; 0: there are too many,
   and v and w are in memory.  COLUMNS: of a visit.  CLUSTER: 1: a cluster has several blocks.
   mine: entry_of_yu() of the first visit.  visit: the number of visits so far. */
template <int ROWS, int COLUMNS, int CLUSTER>
static __device__ __forceinline__ void
visit_columns(const struct panel &p, const struct part &q, const struct panel_shared &s,
              struct cluster_mail<COLUMNS> *mail, struct ring &ring, struct cursor &cursor, int i,
              int begin, scalar mine, unsigned &visit)
{
    constexpr int IN_REGISTERS = rows_in_registers(ROWS, COLUMNS);
    /* the part of a buffer that is filled again as soon as all threads hold it in registers */
    constexpr int early = !COLUMNS_BULK         ? 0
                          : IN_REGISTERS < ROWS ? IN_REGISTERS * DENSE_PANEL_THREADS
                                                : COLUMN_END;
    const int t = (int)threadIdx.x, threads = DENSE_PANEL_THREADS, slot = t % SLOTS;
    const int done = i - p.begin, used = 2 * done, rows = CLUSTER ? q.length : p.r - p.begin;
    const int step = COLUMNS * p.clusters;
    const bool has_row = !CLUSTER || q.rank == 0; /* row i is in this block's share */
    const bool placed = has_row && t < COLUMNS * SLOTS;
    const scalar *const all =
        q.vx + (int64_t)LAST * p.r + p.begin + q.from; /* the column's share */
    scalar *const sums = q.sums + (int64_t)(q.block / p.ranks) * p.r + p.begin + q.from;
    scalar slots[EACH][CHUNKS], v[ROWS > 0 ? ROWS : 1], w[ROWS > 0 ? ROWS : 1], z = 0;
    scalar first, across, along; /* the factors of this thread's place of Y U in row i, and in y */
    struct reflector h;
    int turn = 0;

    first = q.vx[(int64_t)LAST * p.r + i];
    across = placed && slot < used ? n_conj(q.vx[(int64_t)slot * p.r + i]) : REAL(0);
    ask_slots(q.left, p.blocks, used, slots);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int row = t + j * threads;

        v[j] = q.from + row >= done && row < rows ? all[row] : REAL(0);
        w[j] = 0;
    }
    sum_slots(slots, s.sum);
    __syncthreads();
    h = reflector_of(first, n_real(s.sum[LAST]));
    along =
        placed && slot < used ? n_mul(n_fma_real(-h.beta, across, s.sum[slot]), h.scale) : REAL(0);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        v[j] = j == 0 && t == done && has_row ? scalar(1) : n_mul(v[j], h.scale);
    }
    for (int place = t; place < q.rows; place += threads) {
        const int row = q.low + place;

        if (row >= i) {
            const scalar value = row == i ? scalar(1) : n_mul(q.near[LAST * q.ld + place], h.scale);

            store_vx(p, q, used, place, value);
            if (row > i) {
                q.w[(int64_t)i * p.r + row] = value;
            }
        } else {
            store_vx(p, q, used, place, 0);
        }
    }
    if (q.block == 0 && t == 0) {
        q.d[i] = h.beta;
        q.tau_q[i] = h.tau;
        if (i + 1 == p.c) {
            q.e[i] = 0;
            q.tau_p[i] = 0;
        }
    }
    for (int row = t; ROWS == 0 && row < rows; row += threads) {
        sums[row] = 0;
    }
    for (int l = begin; l < p.c; l += step, turn = 1 - turn) {
        const scalar next = entry_of_yu(p, q, COLUMNS, used, l + step);
        const int own = l + t / SLOTS * p.clusters; /* the column that the thread has a slot of */
        const scalar *source[COLUMNS];
        struct visited<COLUMNS> now;
        scalar sum[COLUMNS], in_registers[COLUMNS][IN_REGISTERS > 0 ? IN_REGISTERS : 1], y, row;

        if (ROWS > 0) {
            ring_wait(ring);
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int column = l + k * p.clusters;

            sum[k] = t / SLOTS == k ? n_mul(-mine, along) : REAL(0);
            if (ROWS == 0) {
                source[k] = q.w + (int64_t)column * p.r + p.begin + t; /* CLUSTER is 0 */
            } else if (column < p.c) {
                source[k] = ring.buffer + ring.now * ring.size + k * (ring.size / COLUMNS) + t +
                            column_shift(q.start + (unsigned)column * (unsigned)p.r);
            } else {
                source[k] = source[0]; /* not in the visit: the first column, with r = 0 */
            }
            if (t == done) {
                s.visit.first[(turn * COLUMNS + k) * 4] = n_conj(source[k][0]);
            }
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                const bool in = !may_miss(ROWS, j) || t + j * threads < rows;
                const scalar x = in ? source[k][j * threads] : REAL(0);

                if (j < IN_REGISTERS) {
                    in_registers[k][j] = x;
                }
                sum[k] = n_fma(n_conj(x), v[j], sum[k]);
            }
        }
        if (ROWS == 0) {
#pragma unroll 8
            for (int row = t < done ? t + threads : t; row < rows; row += threads) {
                const scalar value = row == done ? scalar(1) : n_mul(all[row], h.scale);

                sum[0] = n_fma(n_conj(source[0][row - t]), value, sum[0]);
            }
        }
        sum_block<COLUMNS>(s.visit, turn, sum, n_mul(mine, across), &y, &row);
        if (CLUSTER) {
            send_sums<COLUMNS>(p, q, mail, ++visit, y, row);
        }
        if (ROWS > 0 && early > 0) {
            fetch<COLUMNS>(p, q, ring, ring.now, {0, early}, cursor);
        }
        if (CLUSTER) {
            receive_sums<COLUMNS>(p, mail, visit, &y, &row);
        }
        now = finish_visit<COLUMNS>(h.tau, y, row);
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const scalar r = l + k * p.clusters < p.c ? now.r[k] : REAL(0);

#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                if (j < IN_REGISTERS) {
                    w[j] = n_fma(in_registers[k][j], r, w[j]);
                } else {
                    const bool in = !may_miss(ROWS, j) || t + j * threads < rows;

                    w[j] = n_fma(in ? source[k][j * threads] : REAL(0), r, w[j]);
                }
            }
        }
        if (ROWS == 0) {
#pragma unroll 8
            for (int row = t; row < rows; row += threads) {
                sums[row] = n_fma(source[0][row - t], now.r[0], sums[row]);
            }
        }
        if (placed && own < p.c) {
            if (slot == used) {
                mine = now.own_y;
                q.yu[(int64_t)own * SLOTS + used] = n_conj(mine);
            } else if (slot == LAST) {
                mine = own > i + 1 ? now.own_r : REAL(0);
                q.row[own] = now.own_r;
            }
            z = n_fma(n_conj(mine), now.own_r, z);
        }
        mine = next;
        if (ROWS > 0) {
            if (early < COLUMN_END) {
                ring_release();
                fetch<COLUMNS>(p, q, ring, ring.now, {early, COLUMN_END}, cursor);
            }
            ring_turn(ring);
        }
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        if (t + j * threads < rows) {
            sums[t + j * threads] = w[j];
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
    if (has_row && t < SLOTS) {
        q.right[t * p.clusters + q.block / p.ranks] = z;
    }
}

#endif
