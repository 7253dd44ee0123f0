/*
 * A band on the device: N = Q B P^H, B bidiagonal, by chasing (Lang, Parallel Comput. 25 (1999)).
 *
 * Step k of sweep i works on the window [D N] of the rows c .. c + BAND - 1 and of the columns c ..
 * c + 2 BAND - 1, where c = i + 1 + BAND k:
 *
 *     D := D R       R clears the row above: row i for k = 0, the first row of step k - 1 else
 *     [D N] := L^H [D N]   L clears the first column of D
 *     N := N R'      R' clears the first row of N; it is R of step k + 1
 *
 * Step k of sweep i + 1 may follow as soon as sweep i has made its step k + 1.
 *
 * The systolic chase has a block for each k, its cell.  The window never leaves the cell's
 * registers.  From sweep to sweep it slides down the diagonal by one.  An entry keeps its slot (row
 * mod BAND, column mod 2 BAND), and with it its thread.  In a sweep a cell receives the row above
 * from the cell above, or from a last block, the source.  It receives its new last row from the
 * cell below, which has made it in the sweep before:
 *
 *     down  N's first row as it is before R'
 *     up    the first row: the beta of L, what D has after it, and the beta of R'
 *
 * What counts is the time from message to message.  So the receiver of a row makes the reflector
 * itself, beside the sums with the row as it is, and the beta of L, which the cell above needs
 * first, goes up before the rest.  Other warps than the one that waits for it fetch the rest.
 *
 * The ordinary chase is for bands that have more steps than blocks run at once, and for when a
 * message does not come in time.  A block makes a sweep, and has the window in registers for one
 * step.  A block waits only for a sweep that a running block has.
 *
 * Reflectors here are H = I - tau v v^H where v is the vector itself but for its first entry, the
 * head x_0 - beta: then tau and v need no quotient.  As kept they have v_0 = 1.
 *
 * mail  [steps + 1][2][MAIL] messages between cell k and what is above it, by turns of sweeps: BAND
 *       that go down, then BAND + 1 that go up
 * band  [n + BAND][LINE] of the ordinary chase: entry (i, j) at [i][BAND + j - i].  Rows and
 *       columns after the last ones are zero, and so are their reflectors.
 */
#include "bidiagonalize/band.h"
#include "matrix/mail.h"
#include "matrix/panel.h"
#include "matrix/stages.h"

enum {
    WINDOW = 2 * BAND, /* columns of a window */
    CHASE_THREADS = sizeof(scalar) > 8 ? 512 : 256,
    CHASE_WARPS = CHASE_THREADS / WARP,
    ROWS = BAND / CHASE_WARPS, /* of a warp; a thread has COLUMNS entries of each */
    COLUMNS = WINDOW / WARP,
    SHARE = WARP / ROWS,                     /* lanes that get the sum of a row */
    CELLS_MOST = sizeof(scalar) > 8 ? 1 : 2, /* cells of a multiprocessor */
    MAIL = 2 * BAND + 8,                     /* more than it takes, for whole sectors of 32 bytes */
    LINE = 3 * BAND,
    POLLS = 256 /* between two looks at the clock */
};

static const unsigned ALL_LANES = 0xffffffffu;

struct chase {
    int n, steps;
    const scalar *band;     /* [n][BAND + 1] as the caller has it */
    scalar *q, *p;          /* as in struct cuda_chase */
    real *d, *e;            /* as there */
    unsigned *failed;       /* [1] 1: some block has waited in vain, and all leave */
    struct message *mail;   /* of the systolic chase */
    scalar *lines;          /* `band` of the ordinary chase */
    unsigned *taken, *done; /* of that: [1] sweeps that have blocks; [n] steps made of each */
};

/* H = I - tau v v^H: H^H x = beta e_1, v = x but for its first entry. */
struct house {
    real beta;
    scalar tau, head;
};

struct chase_shared {
    scalar above[2][WINDOW]; /* the row above in the columns of D, zeros in N; by turns of sweeps */
    scalar part[CHASE_WARPS][WINDOW]; /* each warp's part of the sums of columns */
    scalar first_row[WINDOW];         /* the first row before L */
    scalar next_row[WINDOW];          /* N's first row after L; zeros in the columns of D */
    scalar new_row[WINDOW];           /* N's last row, from below */
    scalar sum[WINDOW];               /* conj(tau) v^H [D N] of L */
    scalar first_column[BAND];        /* D's first column before R */
    scalar column[BAND];              /* after R, a zero in place of its first entry */
    scalar y[CHASE_WARPS][ROWS];      /* tau D v of R, later tau N v of R' */
    scalar top;                       /* the first entry of the column after R */
    struct house right, left;         /* R, L */
    real squares[CHASE_WARPS];        /* of each warp's part of `column` */
    real next_squares[COLUMNS];       /* of N's first row, but for its first entry */
    scalar *kept[2];                  /* where a cell keeps L and R of sweep 0 */
    int sweep, failed;
};

/* ---- reflectors ---- */

/* The reflector of a vector, from its first entry and the sum of the squares of the others, as
   reflector_of() has it.  There are no branches, and the reciprocal is begun before the norm is
   exact: |v|^2 / 2 = norm^2 + |first| norm for real entries. */
static __device__ __forceinline__ struct house
house_of(scalar first, real squares)
{
    const real size = r_abs(n_real(first));
#if TSVD_COMPLEX
    const real others = r_fma(n_imag(first), n_imag(first), squares);
#else
    const real others = squares;
#endif
    const real all = r_fma(size, size, others);
    struct house h;
    real y = reflector_rough_rsqrt(all), inverse, norm, rest;
    bool nothing;

#if TSVD_COMPLEX
    const real fixed = all + n_abs2(first); /* |v|^2 of the head and of that with the norm */

    inverse = reflector_rough_reciprocal(r_fma(2 * size, all * y, fixed));
#else
    inverse = reflector_rough_reciprocal(r_fma(size, all * y, all));
#endif
    rest = r_fma(-all, y * y, 1);
    y = r_fma(r_fma(rest, REAL(0.375), REAL(0.5)), y * rest, y);
    norm = all * y;
#if TSVD_COMPLEX
    rest = r_fma(-r_fma(2 * size, norm, fixed), inverse, 1);
#else
    rest = r_fma(-r_fma(size, norm, all), inverse, 1);
#endif
    inverse = r_fma(inverse, r_fma(rest, rest, rest), inverse);
    nothing = others < DENSE_NOTHING;
    h.beta = nothing ? n_real(first) : -r_copysign(norm, n_real(first));
    h.head = first - scalar(h.beta);
#if TSVD_COMPLEX
    /* -1 / (beta conj(head)), by parts in the range of numbers */
    h.tau = n_make(nothing ? 0 : (size + norm) * y * inverse,
                   nothing ? 0 : n_imag(first) * r_copysign(y, n_real(first)) * inverse);
#else
    h.tau = nothing ? 0 : inverse;
#endif
    return h;
}

/* What is kept of a reflector: tau in the place of v's 1, and the others of v. */
static __device__ __forceinline__ scalar
kept_entry(struct house h, int j, scalar x)
{
    const scalar scale = n_scale(-h.beta, n_conj(h.tau)); /* 1 / head */

    return j == 0 ? n_scale(n_abs2(h.head), h.tau) : n_mul(x, scale);
}

/* ---- the window ---- */

/* The slots of a thread's entries. */
static __device__ __forceinline__ int
own_row(int r)
{
    return (int)threadIdx.x / WARP * ROWS + r;
}

static __device__ __forceinline__ int
own_column(int c)
{
    return c * WARP + (int)threadIdx.x % WARP;
}

/* visit(slot), for a slot < COUNT that becomes a constant: an array in registers has no others. */
template <int COUNT, typename Visit>
static __device__ __forceinline__ void
visit_slot(int slot, Visit visit)
{
    static_assert(COUNT == 4 || COUNT == 8, "");
    switch (slot) {
    case 0:
        visit(0);
        break;
    case 1:
        visit(1);
        break;
    case 2:
        visit(2);
        break;
    case 3:
        visit(3);
        break;
    case 4:
        visit(4 % COUNT);
        break;
    case 5:
        visit(5 % COUNT);
        break;
    case 6:
        visit(6 % COUNT);
        break;
    default:
        visit(7 % COUNT);
    }
}

/* The products of the rows with conj(x).  A lane gets that of row own_row(lane / SHARE). */
static __device__ __forceinline__ scalar
row_sums(const scalar (&w)[ROWS][COLUMNS], const scalar (&x)[COLUMNS])
{
    scalar y[ROWS];

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        y[r] = 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            y[r] = n_fma(w[r][c], n_conj(x[c]), y[r]);
        }
    }
    return warp_sums(y);
}

/* w -= y x. */
static __device__ __forceinline__ void
subtract(scalar (&w)[ROWS][COLUMNS], const scalar *y, const scalar (&x)[COLUMNS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const scalar factor = -y[r];

#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            w[r][c] = n_fma(factor, x[c], w[r][c]);
        }
    }
}

/* D's first column, in slot c0, to shared memory. */
static __device__ __forceinline__ void
share_first_column(struct chase_shared &s, const scalar (&w)[ROWS][COLUMNS], int c0)
{
    if ((int)threadIdx.x % WARP == c0 % WARP) {
        visit_slot<COLUMNS>(c0 / WARP, [&](int c) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                s.first_column[own_row(r)] = w[r][c];
            }
        });
    }
}

/* R: its scalars, and the sums of rows with the row above as it is. */
static __device__ __forceinline__ struct house
begin_right(const scalar *above, const scalar (&w)[ROWS][COLUMNS], int c0, scalar *sum)
{
    scalar x[COLUMNS];
    real squares = 0;

#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        x[c] = above[own_column(c)];
        squares = own_column(c) == c0 ? squares : n_add_abs2(x[c], squares);
    }
    *sum = row_sums(w, x);
    return house_of(n_conj(above[c0]), warp_sum(squares));
}

/* y of R, the first column after R and its squares. */
static __device__ __forceinline__ void
finish_right(struct chase_shared &s, struct house right, scalar sum, int r0)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int row = own_row(lane / SHARE);
    const bool first = row == r0;
    const scalar before = s.first_column[row], head = n_conj(right.head);
    const scalar y = n_mul(right.tau, n_fma_real(-right.beta, before, sum));
    const scalar after = n_fma(-y, head, before);
    real squares = first ? REAL(0) : n_abs2(after);

    if (lane % SHARE == 0) {
        s.y[warp][lane / SHARE] = y;
        s.column[row] = first ? scalar(0) : after;
        if (first) {
            s.top = after;
        }
    }
#pragma unroll
    for (int lanes = SHARE; lanes < WARP; lanes *= 2) {
        squares += __shfl_xor_sync(ALL_LANES, squares, lanes);
    }
    if (lane == 0) {
        s.squares[warp] = squares;
    }
    if (threadIdx.x == 0) {
        s.right = right;
    }
}

/* D := D R, and the beta of L. */
static __device__ __forceinline__ real
begin_left(struct chase_shared &s, const scalar *above, int c0, scalar (&w)[ROWS][COLUMNS])
{
    scalar x[COLUMNS];
    real part[4];
    struct house left;

#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        x[c] = own_column(c) == c0 ? n_conj(s.right.head) : above[own_column(c)];
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        part[k] = s.squares[k];
#pragma unroll
        for (int warp = 4 + k; warp < CHASE_WARPS; warp += 4) {
            part[k] += s.squares[warp];
        }
    }
    subtract(w, s.y[threadIdx.x / WARP], x);
    left = house_of(s.top, (part[0] + part[1]) + (part[2] + part[3]));
    if (threadIdx.x == 0) {
        s.left = left;
    }
    return left.beta;
}

/* The warp's part of the sums of columns, and the first row, if it has that. */
static __device__ __forceinline__ void
share_columns(struct chase_shared &s, const scalar (&w)[ROWS][COLUMNS], int r0)
{
    const int warp = (int)threadIdx.x / WARP;
    scalar sum[COLUMNS];

#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        sum[c] = 0;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const scalar factor = n_conj(s.column[own_row(r)]);

#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            sum[c] = n_fma(factor, w[r][c], sum[c]);
        }
    }
    if (warp == r0 / ROWS) {
        visit_slot<ROWS>(r0 % ROWS, [&](int r) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                s.first_row[own_column(c)] = w[r][c];
            }
        });
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        s.part[warp][own_column(c)] = sum[c];
    }
}

/* The sum of column slot t = threadIdx.x < WINDOW, and the first row after L there, which is the
   result.  late: conj(v) times the entry of the last row, where that has come after the sums. */
static __device__ __forceinline__ scalar
finish_column(struct chase_shared &s, int c0, scalar late)
{
    const int t = (int)threadIdx.x, j = (t - c0) & (WINDOW - 1);
    const scalar first = s.first_row[t];
    scalar part[4], sum, x;
    real squares;

#pragma unroll
    for (int k = 0; k < 4; k++) {
        part[k] = s.part[k][t];
#pragma unroll
        for (int warp = 4 + k; warp < CHASE_WARPS; warp += 4) {
            part[k] += s.part[warp][t];
        }
    }
    sum = n_fma(n_conj(s.left.head), first, (part[0] + part[1]) + (part[2] + part[3])) + late;
    sum = n_mul(n_conj(s.left.tau), sum);
    x = n_fma(-s.left.head, sum, first);
    s.sum[t] = sum;
    s.next_row[t] = j >= BAND ? x : scalar(0);
    squares = warp_sum(j > BAND ? n_abs2(x) : REAL(0));
    if (t % WARP == 0) {
        s.next_squares[t / WARP] = squares;
    }
    return x;
}

/* R', from N's first row. */
static __device__ __forceinline__ struct house
next_right(const struct chase_shared &s, int c0)
{
    const real squares =
        (s.next_squares[0] + s.next_squares[1]) + (s.next_squares[2] + s.next_squares[3]);

    return house_of(n_conj(s.next_row[(c0 + BAND) % WINDOW]), squares);
}

/* [D N] := L^H [D N] and N := N R' but for the first row, which becomes zero. */
static __device__ __forceinline__ void
finish_window(struct chase_shared &s, struct house next, int r0, int c0, scalar (&w)[ROWS][COLUMNS])
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    scalar x[COLUMNS], y;

    if (warp == r0 / ROWS) {
        visit_slot<ROWS>(r0 % ROWS, [&](int r) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                w[r][c] = 0;
            }
        });
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        x[c] = s.sum[own_column(c)];
    }
    subtract(w, s.column + warp * ROWS, x);
    if (lane == c0 % WARP) {
        visit_slot<COLUMNS>(c0 / WARP, [&](int c) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                w[r][c] = 0;
            }
        });
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        const int column = own_column(c);

        x[c] = column == (c0 + BAND) % WINDOW ? n_conj(next.head) : s.next_row[column];
    }
    y = n_mul(next.tau, row_sums(w, x));
    if (lane % SHARE == 0) {
        s.y[warp][lane / SHARE] = y;
    }
    __syncwarp();
    subtract(w, s.y[warp], x);
}

/* Where the reflectors of step k begin. */
static __device__ __forceinline__ int64_t
first_kept(const struct chase &run, int k)
{
    return diamonds_before(run.n, k) * CHASE_SWEEPS * BAND;
}

/* What thread WINDOW <= threadIdx.x < 2 WINDOW keeps: an entry of L, or of R. */
static __device__ __forceinline__ scalar
entry_to_keep(const struct chase_shared &s, const scalar *above, int r0, int c0)
{
    const int t = (int)threadIdx.x - WINDOW, j = t % BAND;

    return t < BAND ? kept_entry(s.left, j, s.column[(r0 + j) % BAND])
                    : kept_entry(s.right, j, n_conj(above[(c0 + j) % WINDOW]));
}

/* ---- waiting ---- */

static __device__ __forceinline__ unsigned long long
nanoseconds(void)
{
    unsigned long long now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

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

/* Whether a wait is over: it has lasted so many seconds, or another one has.  *since: 0 at
   first. */
static __device__ __forceinline__ bool
waits_in_vain(unsigned long long *since, unsigned seconds, unsigned *failed)
{
    const unsigned long long now = nanoseconds();

    *since = *since == 0 ? now : *since;
    return now - *since > seconds * 1000000000ull || *(volatile unsigned *)failed != 0;
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

/* ---- the systolic chase ---- */

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

/* ---- the ordinary chase ---- */

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

/* ---- both ---- */

/* Clears the places of reflectors that there are not, at the end of each step's last group, and
   writes what no sweep does.  A block a step. */
static __global__ void
__launch_bounds__(BAND) rest_kernel(const __grid_constant__ struct chase run)
{
    const int64_t k = blockIdx.x, first = diamonds_before(run.n, k) * CHASE_SWEEPS;

    if (k == 0 && threadIdx.x == 0) {
        run.d[0] = n_real(run.band[0]);
        run.e[run.n - 1] = 0;
    }
    if (run.q != NULL && k < run.steps) {
        for (int64_t i = run.n - 1 - BAND * k; i < chase_groups(run.n, k) * CHASE_SWEEPS; i++) {
            run.q[(first + i) * BAND + threadIdx.x] = 0;
            run.p[(first + i) * BAND + threadIdx.x] = 0;
        }
    }
}

/* Arrays of both chases.  The first `cleared` bytes must be zero when one begins. */
static size_t
lay_out(int64_t n, char *base, struct chase *run, size_t *cleared)
{
    const int64_t steps = chase_steps(n);
    size_t at = 0;

    run->failed = carve<unsigned>(base, &at, 1);
    run->taken = carve<unsigned>(base, &at, 1);
    run->done = carve<unsigned>(base, &at, n);
    run->mail = carve<struct message>(base, &at, (steps + 1) * 2 * MAIL);
    *cleared = at;
    run->lines = carve<scalar>(base, &at, (n + BAND) * LINE);
    return at;
}

/* What a chase has is written, and its workspace cleared. */
static tsvd_status
prepare(struct cuda_call *call, const struct cuda_chase *to, char *d_work, struct chase *run)
{
    const unsigned blocks = to->n > 1 ? (unsigned)chase_steps(to->n) : 1;
    size_t cleared;
    tsvd_status ret = TSVD_OK;

    run->n = (int)to->n;
    run->steps = (int)chase_steps(to->n);
    run->band = to->band;
    run->q = to->q;
    run->p = to->p;
    run->d = to->d;
    run->e = to->e;
    (void)lay_out(to->n, d_work, run, &cleared);
    CUDA_TRY(call, cudaMemsetAsync(d_work, 0, cleared, call->stream));
    rest_kernel<<<blocks, BAND, 0, call->stream>>>(*run);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

typedef void chase_function(struct chase);

/* The systolic kernel whose cells and source run at once; NULL: there are too many. */
static chase_function *
systolic_for(const struct cuda_device *device, const struct chase *run)
{
    chase_function *kernel = run->q != NULL ? systolic_kernel<true, 1> : systolic_kernel<false, 1>;
    int blocks = 0;

#if !TSVD_COMPLEX || TSVD_SINGLE
    if (run->steps >= device->multiprocessors) {
        kernel = run->q != NULL ? systolic_kernel<true, 2> : systolic_kernel<false, 2>;
    }
#endif
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, CHASE_THREADS, 0) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return (int64_t)blocks * device->multiprocessors > run->steps ? kernel : NULL;
}

/* *done: 0 if the chase has not been made, since it does not fit the device, or since a message has
   not come in time. */
static tsvd_status
chase_systolic(struct cuda_call *call, const struct cuda_chase *to, char *d_work, int *done)
{
    struct chase run;
    chase_function *kernel;
    void *args[] = {&run};
    unsigned failed = 0;
    cudaError_t code;
    tsvd_status ret = TSVD_OK;

    *done = 0;
    TSVD_TRY(prepare(call, to, d_work, &run));
    kernel = systolic_for(call->device, &run);
    if (kernel == NULL) {
        goto out;
    }
    code = cudaLaunchCooperativeKernel((void *)kernel, dim3((unsigned)run.steps + 1),
                                       dim3(CHASE_THREADS), args, 0, call->stream);
    if (code == cudaErrorCooperativeLaunchTooLarge) { /* a part of the device is all that it has */
        (void)cudaGetLastError();
        goto out;
    }
    CUDA_TRY_AS(call, code, "the launch of the systolic chase");
    TSVD_TRY(tsvdi_cuda_download(call, &failed, run.failed, sizeof failed));
    *done = failed == 0;
out:
    return ret;
}

static tsvd_status
chase_ordinary(struct cuda_call *call, const struct cuda_chase *to, char *d_work)
{
    const int64_t most = (int64_t)CELLS_MOST * call->device->multiprocessors;
    struct chase run;
    int64_t blocks;
    unsigned failed = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(prepare(call, to, d_work, &run));
    /* a sweep follows another at two steps */
    blocks = run.steps / 2 + 1 < most ? run.steps / 2 + 1 : most;
    lines_kernel<<<(unsigned)(to->n + BAND), LINE, 0, call->stream>>>(run);
    CUDA_LAUNCHED(call);
    if (run.q != NULL) {
        ordinary_kernel<true><<<(unsigned)blocks, CHASE_THREADS, 0, call->stream>>>(run);
    } else {
        ordinary_kernel<false><<<(unsigned)blocks, CHASE_THREADS, 0, call->stream>>>(run);
    }
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_download(call, &failed, run.failed, sizeof failed));
    if (failed != 0) {
        ret = tsvdi_cuda_fail(call, cudaErrorLaunchTimeout, "the chase of a band", __FILE__,
                              __LINE__);
    }
out:
    return ret;
}

uint64_t
tsvdi_cuda_dense_chase_bytes(const struct cuda_device *device, int64_t n)
{
    struct chase run;
    size_t cleared;

    (void)device;
    return lay_out(n, NULL, &run, &cleared);
}

tsvd_status
tsvdi_cuda_dense_chase(struct tsvd_context *ctx, const struct cuda_chase *to, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct chase run;
    int done = 0;
    tsvd_status ret = TSVD_OK;

    if (to->n == 1) {
        TSVD_TRY(prepare(call, to, d_work, &run));
        goto out;
    }
    TSVD_TRY(chase_systolic(call, to, d_work, &done));
    if (!done) {
        TSVD_TRY(chase_ordinary(call, to, d_work));
    }
out:
    return ret;
}

/* ---- as a stage ---- */

/* The band, and the reflectors of both sides. */
static int64_t
numbers(int64_t r, int64_t c, int keep)
{
    (void)r;
    return band_numbers(c) + (keep == KEEP_VALUES ? 0 : 2 * chase_numbers(c));
}

static uint64_t
factor_bytes(const struct cuda_device *device, int64_t r, int64_t c, int64_t count)
{
    (void)r, (void)count; /* one matrix after another */
    return tsvdi_cuda_dense_chase_bytes(device, c);
}

/* Reflectors of one side of matrix i. */
static scalar *
side_of(const struct stage_run *own, int64_t i, int right)
{
    return own->m + i * own->numbers + band_numbers(own->c) + (right ? chase_numbers(own->c) : 0);
}

static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    tsvd_status ret = TSVD_OK;

    *outcome = STAGE_MADE;
    for (int64_t i = 0; i < own->count; i++) {
        struct cuda_chase chase = {};

        chase.n = own->c;
        chase.band = own->m + i * own->numbers;
        chase.d = run->d + i * own->c;
        chase.e = run->e + i * own->c;
        if (run->keep != KEEP_VALUES) {
            chase.q = side_of(own, i, 0);
            chase.p = side_of(own, i, 1);
        }
        TSVD_TRY(tsvdi_check(ctx, BAND_PROGRESS));
        TSVD_TRY(tsvdi_cuda_dense_chase(ctx, &chase, d_work));
    }
out:
    return ret;
}

static uint64_t
apply_bytes(const struct cuda_device *device, const struct stage_run *own, int64_t vectors)
{
    return tsvdi_cuda_dense_diamonds_bytes(device, own->c, vectors);
}

static tsvd_status
apply(struct tsvd_context *ctx, const struct stage_run *own, int right, int transposed,
      struct dense_block x, char *d_work)
{
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < own->count; i++) {
        struct dense_block one = x;

        one.d_x += i * x.next;
        TSVD_TRY(tsvdi_cuda_dense_diamonds_apply(ctx, own->c, side_of(own, i, right), transposed,
                                                 one, d_work));
    }
out:
    return ret;
}

const struct stage tsvdi_cuda_dense_chase_stage = {
    .number = 0,
    .right = true,
    .superdiagonals = 0,
    .otherwise = NULL,
    .numbers = numbers,
    .factor_bytes = factor_bytes,
    .apply_bytes = apply_bytes,
    .factor = factor_stage,
    .apply = apply,
    .expand = NULL,
};
