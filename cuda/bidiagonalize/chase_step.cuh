/*
 * What both chases of a band are made of: the reflectors of a step, its window in a block's
 * registers, and the end of a wait.  chase_systolic.cuh and chase_ordinary.cuh include it.
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
 * Reflectors here are H = I - tau v v^H where v is the vector itself but for its first entry, the
 * head x_0 - beta: then tau and v need no quotient.  As kept they have v_0 = 1.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_CHASE_STEP_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_CHASE_STEP_CUH

#include "bidiagonalize/band.h"
#include "matrix/mail.h"
#include "matrix/panel.h"

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
    struct message *mail;   /* as in chase_systolic.cuh */
    scalar *lines;          /* as in chase_ordinary.cuh */
    unsigned *taken, *done; /* of the ordinary chase: [1] sweeps that have blocks; [n] steps of
                               each that are made */
};

/* H = I - tau v v^H: H^H x = beta e_1, v = x but for its first entry. */
struct house {
    real beta;
    scalar tau, head;
};

struct chase_shared {
    scalar above[2][WINDOW];          /* the row above in the columns of D, zeros in N; by turns of
                                         sweeps, or of steps */
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
    real y = r_rough_rsqrt(all), inverse, norm, rest;
    bool nothing;

#if TSVD_COMPLEX
    const real fixed = all + n_abs2(first); /* |v|^2 of the head and of that with the norm */

    inverse = r_rough_reciprocal(r_fma(2 * size, all * y, fixed));
#else
    inverse = r_rough_reciprocal(r_fma(size, all * y, all));
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

/* Whether a wait is over: it has lasted so many seconds, or another one has.  *since: 0 at
   first. */
static __device__ __forceinline__ bool
waits_in_vain(unsigned long long *since, unsigned seconds, unsigned *failed)
{
    const unsigned long long now = nanoseconds();

    *since = *since == 0 ? now : *since;
    return now - *since > seconds * 1000000000ull || *(volatile unsigned *)failed != 0;
}

#endif
