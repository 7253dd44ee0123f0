/*
 * The systolic chase of a band: a block for each step k, its cell.
 *
 * The window never leaves the cell's registers.  From sweep to sweep it slides down the diagonal by
 * one.  An entry keeps its slot (row mod BAND, column mod 2 BAND), and with it its thread.  In a
 * sweep a cell receives the row above from the cell above, or from a last block, the source.  It
 * receives its new last row from the cell below, which has made it in the sweep before:
 *
 *     down  N's first row as it is before R'
 *     up    the first row: the beta of L, what D has after it, and the beta of R'
 *
 * What counts is the time from message to message.  So the receiver of a row makes the reflector
 * itself, beside the sums with the row as it is, and the beta of L, which the cell above needs
 * first, goes up before the rest.  Other warps than the one that waits for it fetch the rest.
 *
 * mail  [steps + 1][2][MAIL] messages between cell k and what is above it, by turns of sweeps: BAND
 *       that go down, then BAND + 1 that go up
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_CHASE_SYSTOLIC_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_CHASE_SYSTOLIC_CUH

#include "bidiagonalize/chase_step.cuh"

/* ---- messages ---- */

/* The beta of L is real, and so is its message, in the first words of that of a scalar. */
struct real_message {
    unsigned long long word[PART_WORDS];
};

static __device__ __forceinline__ struct real_message
look(const struct real_message *from)
{
    struct real_message m;

#if TSVD_SINGLE
    asm volatile("ld.relaxed.gpu.b64 %0, [%1];" : "=l"(m.word[0]) : "l"(from->word));
#else
    asm volatile("ld.relaxed.gpu.v2.b64 {%0, %1}, [%2];"
                 : "=l"(m.word[0]), "=l"(m.word[1])
                 : "l"(from->word));
#endif
    return m;
}

static __device__ __forceinline__ bool
is_of(struct real_message m, unsigned step)
{
    bool all = true;

    for (int i = 0; i < PART_WORDS; i++) {
        all = all && (unsigned)(m.word[i] >> 32) == step;
    }
    return all;
}

static __device__ __forceinline__ real
number_in(struct real_message m)
{
    return part_in(m.word);
}

/* The number that arrives at `from` in this step; m: what was seen there last.  Each lane of the
   warp has its own, and all leave the loop together: when they left it one by one the warp stayed
   split, and other warps waited for ever.  *vain: waits have been in vain. */
template <typename Message>
static __device__ __forceinline__ auto
await_number(Message m, const Message *from, unsigned step, unsigned *failed, bool *vain)
{
    unsigned long long since = 0;
    unsigned polls = 0;

    while (!*vain && __any_sync(ALL_LANES, !is_of(m, step))) {
        if (++polls % POLLS == 0 &&
            __any_sync(ALL_LANES, waits_in_vain(&since, CHASE_WAIT_SECONDS, failed))) {
            *vain = true;
            *(volatile unsigned *)failed = 1;
        }
        if (!is_of(m, step)) {
            m = look(from);
        }
    }
    __syncwarp();
    return number_in(m);
}

/* ---- the cells and the source ---- */

/* The source: hands out the rows that B is made of.  It is one warp. */
static __device__ void
run_source(const struct chase &run)
{
    const int lane = (int)threadIdx.x;
    bool vain = false;

    for (int i = 0; i < run.n; i++) {
        const struct message *const from = run.mail + (i + 1) % 2 * MAIL + BAND;
        struct message *const to = run.mail + i % 2 * MAIL;
        scalar x[BAND / WARP];
        real squares = 0, diagonal;
        struct house h;

        if (i == 0) {
            diagonal = n_real(run.band[0]);
#pragma unroll
            for (int t = 0; t < BAND / WARP; t++) {
                x[t] = run.band[1 + lane + WARP * t];
            }
        } else {
            struct message m[BAND / WARP];
            const struct real_message *const above = (const struct real_message *)from;
            const struct real_message first = look(above);

#pragma unroll
            for (int t = 0; t < BAND / WARP; t++) {
                m[t] = look(from + 1 + lane + WARP * t);
            }
#pragma unroll
            for (int t = 0; t < BAND / WARP; t++) {
                x[t] =
                    await_number(m[t], from + 1 + lane + WARP * t, (unsigned)i, run.failed, &vain);
            }
            diagonal = await_number(first, above, (unsigned)i, run.failed, &vain);
            if (vain) {
                return;
            }
        }
        if (i < run.n - 1) {
#pragma unroll
            for (int t = 0; t < BAND / WARP; t++) {
                send(to + lane + WARP * t, x[t], (unsigned)i + 1);
            }
        }
#pragma unroll
        for (int t = 0; t < BAND / WARP; t++) {
            squares = lane + t == 0 ? squares : n_add_abs2(x[t], squares);
        }
        h = house_of(n_conj(x[0]), warp_sum(squares)); /* of lane 0 */
        if (lane == 0) {
            run.d[i] = diagonal;
            run.e[i] = i < run.n - 1 ? h.beta : 0;
        }
    }
}

/* Cell k is block k, and the source is the last block. */
template <bool KEEP, int CELLS>
static __global__ void
__launch_bounds__(CHASE_THREADS, CELLS) systolic_kernel(const __grid_constant__ struct chase run)
{
    __shared__ struct chase_shared s;
    const int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP, k = (int)blockIdx.x;
    const bool has_below = k + 1 < run.steps;
    struct message *const mail = run.mail + k * 2 * MAIL; /* the mail with below follows */
    scalar w[ROWS][COLUMNS];
    bool vain = false;

    if (k == run.steps) {
        if (warp == 0) {
            run_source(run);
        }
        return;
    }
    if (t == 0) {
        s.failed = 0;
        s.kept[0] = run.q + first_kept(run, k);
        s.kept[1] = run.p + first_kept(run, k);
    }
    /* Row 1 + BAND k is in slot 0 of sweep 0, and so is its diagonal column. */
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int row = 1 + k * BAND + own_row(r), right = own_column(c) - own_row(r);

            w[r][c] = row < run.n && right >= 0 && right <= BAND
                          ? run.band[(int64_t)row * (BAND + 1) + right]
                          : scalar(0);
        }
    }
    __syncthreads();
    for (unsigned i = 0; i + 1 < (unsigned)run.n; i++) {
        const int r0 = i % BAND, c0 = i % WINDOW, last = (i + BAND - 1) % BAND, turn = i & 1;
        const int corner = (c0 + BAND - 1) % WINDOW; /* D's last column, of the new row's beta */
        const bool fed = i > 0 && has_below;         /* there is a new row */
        const bool newest = fed && warp == last / ROWS;
        const bool sender = t == ((r0 / ROWS + CHASE_WARPS / 2) & (CHASE_WARPS - 1)) * WARP;
        const int asked = ((warp - last / ROWS - 2) & (CHASE_WARPS - 1)) * WARP + lane;
        const bool asks = fed && asked < BAND;
        const struct message *const before = mail + (2 + (turn ^ 1)) * MAIL + BAND;
        struct message *const up = mail + turn * MAIL + BAND;
        const struct real_message *const first = (const struct real_message *)before;
        struct real_message early = {};
        struct message rest = {};
        struct house right, next;
        scalar sum;
        real beta = 0, left;

        /* the row above; meanwhile the beta of the new row is asked for */
        share_first_column(s, w, c0);
        if (newest) {
            early = look(first);
        }
        if (warp < BAND / WARP) {
            const struct message *const from = mail + turn * MAIL + t;

            s.above[turn][(c0 + t) % WINDOW] =
                await_number(look(from), from, i + 1, run.failed, &vain);
            s.above[turn][(c0 + BAND + t) % WINDOW] = 0;
        }
        if (vain) {
            s.failed = 1;
        }
        __syncthreads();
        if (s.failed) {
            return;
        }

        /* R: of the new row only its beta, at D's last column, is there */
        if (newest && !is_of(early, i)) {
            early = look(first);
        }
        right = begin_right(s.above[turn], w, c0, &sum);
        if (newest) {
            beta = await_number(early, first, i, run.failed, &vain);
            if (lane / SHARE == last % ROWS) {
                sum = n_scale(beta, n_conj(s.above[turn][corner]));
            }
        }
        finish_right(s, right, sum, r0);
        __syncthreads();

        /* L: its beta goes up, and the rest of the new row is fetched */
        if (asks) {
            rest = look(before + 1 + asked);
        }
        if (newest) {
            visit_slot<ROWS>(last % ROWS, [&](int r) {
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    w[r][c] = own_column(c) == corner ? scalar(beta) : w[r][c];
                }
            });
        }
        left = begin_left(s, s.above[turn], c0, w);
        if (sender) {
            send_part(up->word, left, i + 1);
        }
        share_columns(s, w, r0);
        if (asks) {
            s.new_row[(c0 + BAND + asked) % WINDOW] =
                await_number(rest, before + 1 + asked, i, run.failed, &vain);
        }
        __syncthreads();

        /* the first row leaves: N's part goes down, D's part up */
        if (t < WINDOW) {
            const int j = (t - c0) & (WINDOW - 1);
            const scalar late =
                fed && j >= BAND ? n_mul(n_conj(s.column[last]), s.new_row[t]) : scalar(0);
            const scalar entry = finish_column(s, c0, late);

            if (j >= BAND) {
                if (has_below) {
                    send(mail + (2 + turn) * MAIL + j - BAND, entry, i + 1);
                }
            } else if (j > 0) {
                send(up + j, entry, i + 1);
            }
        } else if (KEEP && t < 2 * WINDOW && (int)i + 1 + k * BAND < run.n) {
            s.kept[t / BAND % 2][(int64_t)i * BAND + t % BAND] =
                entry_to_keep(s, s.above[turn], r0, c0);
        }
        if (newest) {
            visit_slot<ROWS>(last % ROWS, [&](int r) {
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const int column = own_column(c);

                    w[r][c] = ((column - c0) & (WINDOW - 1)) >= BAND ? s.new_row[column] : w[r][c];
                }
            });
        }
        __syncthreads();

        /* the rest of L and R' */
        next = next_right(s, c0);
        if (sender) {
            send(up + BAND, next.beta, i + 1);
        }
        finish_window(s, next, r0, c0, w);
    }
}

#endif
