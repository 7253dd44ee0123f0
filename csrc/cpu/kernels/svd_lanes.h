/*
 * The SVD of small dense matrices side by side, one in a lane, from the entries to the vectors.
 * Included by kernels.c and complex_kernels.c; struct svd_lanes is in cpu/kernels/kernels.h.
 *
 * W becomes Q B P^H by reflectors.  B, real and upper bidiagonal, becomes L S R by implicit QR
 * (math/qr_step.h).  Then U = Q L and V^H = R P^H.
 *
 * A sweep passes all rows from the first that is active in any lane to the last.  A lane whose
 * block is smaller makes identities beside it, and one that is finished makes no others.  So what
 * becomes of a matrix does not depend on those in the other lanes.
 *
 * All lanes sweep downwards.  A matrix B whose large entries are at its end is reflected at its
 * anti-diagonal instead, J B^T J, with J the exchange of all rows.  Its vectors are those of B,
 * with left and right exchanged, and upside down.
 */
#ifndef TSVDI_CPU_KERNELS_SVD_LANES_H
#define TSVDI_CPU_KERNELS_SVD_LANES_H

#include "cpu/kernels/dqds_lanes.h"
#include "cpu/kernels/lanes.h"
#include "math/qr_step.h"
#include "math/reflector.h"

enum {
    TOGETHER = 4, /* vectors that are reflected together */
    TERMS = 16    /* terms of a sum that are added up by themselves */
};

/* The largest value over the least that is refined. */
#define REFINED REAL(16)

/* ---- reflectors ---- */

/* The sum of the squares of up x, in parts: rounding errors of equal terms add up. */
static inline num
sum_of_squares(int64_t count, const real *x, int64_t step, num up)
{
    num sum = simd_splat(0);

    for (int64_t begin = 0; begin < count; begin += TERMS) {
        const int64_t end = count - begin < TERMS ? count : begin + TERMS;
        num part = simd_splat(0);

        for (int64_t i = begin; i < end; i++) {
            part = scalars_add_abs2(scalars_scale(up, scalars_load(x + i * step)), part);
        }
        sum += part;
    }
    return sum;
}

/*
 * reflector_make() in every lane, of alpha and the `count` scalars of x, `step` reals apart.  x
 * becomes v without its first entry, which is 1.  Returns beta, and *tau.
 */
static inline num
reflector_lanes(struct scalars alpha, int64_t count, real *x, int64_t step, struct scalars *tau)
{
    const num zero = simd_splat(0), one = simd_splat(1);
    num up = one, down = one, square = sum_of_squares(count, x, step, one);
    const num_mask small = num_less(scalars_add_abs2(alpha, square), simd_splat(REFLECTOR_SMALL));
    num above, others, norm, reciprocal, beta;
    struct scalars scale;
    num_mask none;

    if (num_any(small)) {
        up = num_select(small, simd_splat(REFLECTOR_UP), one);
        down = num_select(small, simd_splat(REFLECTOR_DOWN), one);
        square = num_select(small, sum_of_squares(count, x, step, up), square);
    }
    above = up * num_abs(alpha.re);
    others = square;
#if TSVD_COMPLEX
    const num aside = up * alpha.im;

    others = simd_fma(aside, aside, square);
#endif
    none = num_equal(others, zero);
    norm = simd_sqrt(simd_fma(above, above, others));
    reciprocal = one / num_select(none, one, norm);
    beta = num_select(none, alpha.re, num_copysign(norm * down, -alpha.re));
    tau->re = num_select(none, zero, simd_fma(above, reciprocal, one));
#if TSVD_COMPLEX
    tau->im = num_select(none, zero, aside * num_copysign(reciprocal, alpha.re));
    const num rest =
        one / num_select(none, one, simd_fma(above + norm, above + norm, aside * aside));

    scale.re = num_copysign((above + norm) * rest, alpha.re);
    scale.im = -aside * rest;
#else
    scale.re = num_copysign(one / num_select(none, one, above + norm), alpha.re);
#endif
    scale = scalars_select(none, scalars_of(zero), scale);
    for (int64_t i = 0; i < count; i++) {
        real *at = x + i * step;

        scalars_store(at, scalars_mul(scalars_scale(up, scalars_load(at)), scale));
    }
    return beta;
}

/* x_j -= tau v v^H x_j for some vectors: v = (1, v_1, ...), v_i at v[i * v_step], and entry i of
   x_j at x[j * apart + i * step]. */
static inline __attribute__((always_inline)) void
reflect_some(int vectors, int64_t count, const real *v, int64_t v_step, struct scalars tau, real *x,
             int64_t step, int64_t apart)
{
    struct scalars sum[TOGETHER];

    for (int j = 0; j < vectors; j++) {
        sum[j] = scalars_load(x + j * apart);
    }
    for (int64_t begin = 1; begin < count; begin += TERMS) {
        const int64_t end = count - begin < TERMS ? count : begin + TERMS;
        struct scalars part[TOGETHER];

        for (int j = 0; j < vectors; j++) {
            part[j] = scalars_of(simd_splat(0));
        }
        for (int64_t i = begin; i < end; i++) {
            const struct scalars here = scalars_conj(scalars_load(v + i * v_step));

            for (int j = 0; j < vectors; j++) {
                part[j] = scalars_fma(here, scalars_load(x + j * apart + i * step), part[j]);
            }
        }
        for (int j = 0; j < vectors; j++) {
            sum[j] = scalars_add(sum[j], part[j]);
        }
    }
    for (int j = 0; j < vectors; j++) {
        sum[j] = scalars_scale(simd_splat(-1), scalars_mul(tau, sum[j]));
        scalars_store(x + j * apart, scalars_add(scalars_load(x + j * apart), sum[j]));
    }
    for (int64_t i = 1; i < count; i++) {
        const struct scalars here = scalars_load(v + i * v_step);

        for (int j = 0; j < vectors; j++) {
            real *at = x + j * apart + i * step;

            scalars_store(at, scalars_fma(here, sum[j], scalars_load(at)));
        }
    }
}

static void
reflect(int64_t vectors, int64_t count, const real *v, int64_t v_step, struct scalars tau, real *x,
        int64_t step, int64_t apart)
{
    int64_t j = 0;

    for (; j + TOGETHER <= vectors; j += TOGETHER) {
        reflect_some(TOGETHER, count, v, v_step, tau, x + j * apart, step, apart);
    }
    for (; j < vectors; j++) {
        reflect_some(1, count, v, v_step, tau, x + j * apart, step, apart);
    }
}

/* Where the reflector of column k, and that of row k, have their first entry. */
static inline real *
left_reflector(const struct svd_lanes *q, int64_t k)
{
    return q->w + (k * q->rows + k) * SCALAR_LANES;
}

static inline real *
right_reflector(const struct svd_lanes *q, int64_t k)
{
    return q->w + ((k + 1) * q->rows + k) * SCALAR_LANES;
}

/* How many reflectors there are on each side.  A real vector of one entry needs none. */
static inline int64_t
left_reflectors(const struct svd_lanes *q)
{
    return !TSVD_COMPLEX && q->rows == q->columns ? q->columns - 1 : q->columns;
}

static inline int64_t
right_reflectors(const struct svd_lanes *q)
{
    const int64_t count = q->columns - (TSVD_COMPLEX ? 1 : 2);

    return count > 0 ? count : 0;
}

/* W = Q B P^H.  The reflectors of Q stay below the diagonal, the conjugates of those of P to the
   right of the superdiagonal, and where they begin stands tau. */
static void
bidiagonalize_lanes(const struct svd_lanes *q)
{
    const int64_t columns = q->columns, down = SCALAR_LANES, right = q->rows * SCALAR_LANES;

    for (int64_t k = 0; k < columns; k++) {
        real *const corner = left_reflector(q, k), *const next = right_reflector(q, k);
        const int64_t rows = q->rows - k, rest = columns - k - 1;
        struct scalars tau;

        if (k < left_reflectors(q)) {
            *(num *)(q->d + k * SIMD_LANES) =
                reflector_lanes(scalars_load(corner), rows - 1, corner + down, down, &tau);
            scalars_store(corner, tau);
            reflect(rest, rows, corner, down, scalars_conj(tau), corner + right, down, right);
        } else {
            *(num *)(q->d + k * SIMD_LANES) = scalars_load(corner).re;
        }
        if (rest == 0) {
            break;
        }
        if (k < right_reflectors(q)) {
            const struct scalars alpha = scalars_conj(scalars_load(next));

            for (int64_t j = 1; TSVD_COMPLEX && j < rest; j++) {
                scalars_store(next + j * right, scalars_conj(scalars_load(next + j * right)));
            }
            *(num *)(q->e + k * SIMD_LANES) =
                reflector_lanes(alpha, rest - 1, next + right, right, &tau);
            for (int64_t j = 1; TSVD_COMPLEX && j < rest; j++) {
                scalars_store(next + j * right, scalars_conj(scalars_load(next + j * right)));
            }
            scalars_store(next, tau);
            reflect(rows - 1, rest, next, right, tau, next + down, right, down);
        } else {
            *(num *)(q->e + k * SIMD_LANES) = scalars_load(next).re;
        }
    }
}

/* ---- implicit QR ---- */

/* What the sweeps of all lanes are about. */
struct lanes_block {
    num_mask active;  /* lanes that have a block */
    num low, high;    /* its first and its last row */
    num start;        /* its first d */
    num f, g, h;      /* the triangle at its end */
    num least, most;  /* its least mu (qr_step.h), and its largest entry */
    int64_t from, to; /* the rows of all blocks */
};

/* Drops what is negligible, as qr_drop_negligible(), and finds the last block of each lane.  last:
   the last row of the block before. */
static struct lanes_block
find_blocks(const struct svd_lanes *q, num last)
{
    const num zero = simd_splat(0), negligible = simd_splat(r_pow2(-R_BIAS + 1));
    struct lanes_block b = {.active = num_less(zero, zero), .low = zero, .high = zero};
    num d = num_abs(*(const num *)q->d), inverse = 1 / d, largest_inverse = inverse, largest = d;
    num low = zero, start = *(const num *)q->d, most_inverse = zero;

    b.start = b.f = b.g = b.h = b.most = zero;
    for (int64_t k = 0; k + 1 < q->columns; k++) {
        const num e = *(const num *)(q->e + k * SIMD_LANES), size = num_abs(e);
        const num next = *(const num *)(q->d + (k + 1) * SIMD_LANES), next_size = num_abs(next);
        const num index = simd_splat((real)(k + 1)), own = 1 / next_size;
        const num_mask is_last = num_equal(index, last);
        num_mask drop = num_less_equal(size * inverse, simd_splat(QR_TOLERANCE)) |
                        num_less_equal(size, negligible) |
                        (is_last & num_less_equal(size, QR_TOLERANCE * next_size));

        *(num *)(q->e + k * SIMD_LANES) = num_select(drop, zero, e);
        inverse = num_select(drop, own, qr_next_inverse(inverse, size, next_size));
        largest_inverse = num_select(drop, own, num_max(largest_inverse, inverse));
        largest = num_select(drop, next_size, num_max(largest, num_max(size, next_size)));
        /* a block ends here, unless it goes on in the next row */
        b.low = num_select(drop, b.low, low);
        b.high = num_select(drop, b.high, index);
        b.start = num_select(drop, b.start, start);
        b.f = num_select(drop, b.f, *(const num *)(q->d + k * SIMD_LANES));
        b.g = num_select(drop, b.g, e);
        b.h = num_select(drop, b.h, next);
        most_inverse = num_select(drop, most_inverse, largest_inverse);
        b.most = num_select(drop, b.most, largest);
        low = num_select(drop, index, low);
        start = num_select(drop, next, start);
    }
    b.least = 1 / most_inverse;
    b.active = num_less(zero, b.high);
    b.from = -num_most(num_select(b.active, -b.low, simd_splat((real)-q->columns)));
    b.to = num_most(b.high);
    return b;
}

/* Turns two vectors, by lifting steps as wave_turn() does. */
static inline void
turn_lanes(int64_t n, struct num_rotation turn, num_mask mask, real *x, real *y)
{
    const struct num_rotation unit = num_rotation_unit(turn);
    const num t = simd_quotient(unit.s, 1 + unit.c), s = unit.s;

    /* the other lanes keep their numbers as they are: x + 0 y has another sign than x = -0 */
    for (int64_t i = 0; i < n * SIMD_LANES; i += SIMD_LANES) {
        const num row = *(const num *)(x + i), below = *(const num *)(y + i);
        const num first = simd_fma(t, below, row), second = simd_fma(-s, first, below);

        *(num *)(y + i) = num_select(mask, second, below);
        *(num *)(x + i) = num_select(mask, simd_fma(t, second, first), row);
    }
}

/* One sweep in the lanes of the mask, with a shift if `shifted`. */
static inline __attribute__((always_inline)) void
sweep_blocks(const struct svd_lanes *q, const struct lanes_block *b, int shifted, num_mask mask,
             num shift)
{
    const num zero = simd_splat(0), one = simd_splat(1);
    const int64_t n = q->columns, vector = n * SIMD_LANES;
    struct num_rotation first = {one, zero}, second = {one, zero};
    struct qr_bulge bulge = {zero, zero, zero, zero};

    for (int64_t k = b->from; k <= b->to; k++) {
        real *const d_at = q->d + k * SIMD_LANES, *const e_at = q->e + k * SIMD_LANES;
        const num index = simd_splat((real)k), d = *(const num *)d_at, e = *(const num *)e_at;
        const num_mask starts = num_equal(index, b->low) & mask;
        const num_mask ends = num_equal(index, b->high) & mask;
        const num_mask within =
            num_less_equal(b->low, index) & num_less_equal(index, b->high) & mask;
        const num_mask turns = within & num_less(index, b->high);
        num d_done, e_before;

        if (shifted) {
            const num next_d = *(const num *)(d_at + SIMD_LANES);
            const num next_e = *(const num *)(e_at + SIMD_LANES);
            const num finished_d = bulge.d, finished_e = bulge.f;

            if (num_any(starts)) {
                const struct qr_bulge fresh = qr_shifted_start(d, e, shift);

                bulge.d = num_select(starts, fresh.d, bulge.d);
                bulge.e = num_select(starts, fresh.e, bulge.e);
                bulge.f = num_select(starts, fresh.f, bulge.f);
                bulge.g = num_select(starts, fresh.g, bulge.g);
            }
            qr_shifted_step(&bulge, next_d, next_e, &e_before, &d_done, &first, &second);
            d_done = num_select(ends, finished_d, d_done);
            e_before = num_select(ends, finished_e, e_before);
        } else {
            const num left = d * first.c;

            first.c = num_select(starts, one, first.c);
            second.c = num_select(starts, one, second.c);
            second.s = num_select(starts, zero, second.s);
            e_before = second.s * left;
            d_done = second.c * left;
            if (k < b->to) {
                const num finished_d = d_done, finished_e = e_before;

                qr_zero_shift_step(d, e, *(const num *)(d_at + SIMD_LANES), &e_before, &d_done,
                                   &first, &second);
                d_done = num_select(ends, finished_d, d_done);
                e_before = num_select(ends, finished_e, e_before);
            }
        }
        *(num *)d_at = num_select(within, d_done, d);
        if (k > b->from) {
            num *const before = (num *)(e_at - SIMD_LANES);

            *before = num_select(within & ~starts, e_before, *before);
        }
        if (k < b->to) {
            real *const right = q->x[1] + k * vector, *const left = q->x[0] + k * vector;

            turn_lanes(n, first, turns, right, right + vector);
            turn_lanes(n, second, turns, left, left + vector);
        }
    }
}

/* Exchanges the entries of reversed order in the lanes of the mask. */
static void
reverse_lanes(int64_t count, num_mask mask, real *x)
{
    for (int64_t i = 0, k = count - 1; i < k; i++, k--) {
        num *const one = (num *)(x + i * SIMD_LANES), *const other = (num *)(x + k * SIMD_LANES);
        const num low = *one, high = *other;

        *one = num_select(mask, high, low);
        *other = num_select(mask, low, high);
    }
}

/* Turns B, and B before the sweeps, into J B^T J in the lanes of the mask, with the vectors. */
static void
reverse_matrices(const struct svd_lanes *q, num_mask mask)
{
    const int64_t n = q->columns;

    reverse_lanes(n, mask, q->d);
    reverse_lanes(n - 1, mask, q->e);
    reverse_lanes(n, mask, q->b[0]);
    reverse_lanes(n - 1, mask, q->b[1]);
    for (int64_t i = 0; i < n * n; i++) {
        num *const left = (num *)(q->x[0] + i * SIMD_LANES);
        num *const right = (num *)(q->x[1] + (n * n - 1 - i) * SIMD_LANES);
        const num one = *left, other = *right;

        *left = num_select(mask, other, one);
        *right = num_select(mask, one, other);
    }
}

/*
 * Makes B diagonal.  Lanes that are not done within the bound on sweeps are marked.
 *
 * *reversed: the lanes that have J B^T J.  A lane whose block does not shrink changes sides
 * (QR_PATIENCE).
 */
static void
diagonalize_lanes(const struct svd_lanes *q, num_mask *reversed)
{
    const num zero = simd_splat(0);
    struct lanes_block b = find_blocks(q, simd_splat((real)(q->columns - 1)));
    simd_int made = {0};
    num idle = zero; /* sweeps since the block shrank */

    for (int64_t sweep = 0; num_any(b.active) && sweep < q->max_sweeps; sweep++) {
        const num shift =
            qr_choose_shift(b.high - b.low + 1, b.start, b.f, b.g, b.h, b.least, b.most);
        const num_mask with = num_less(zero, shift) & b.active;
        const num_mask without = ~num_less(zero, shift) & b.active;
        const num low = b.low, high = b.high;
        num_mask stuck;

        if (num_any(with)) {
            sweep_blocks(q, &b, 1, with, shift);
        }
        if (num_any(without)) {
            sweep_blocks(q, &b, 0, without, shift);
        }
        made += num_flags(b.active, 1);
        b = find_blocks(q, high);
        idle = num_select(num_equal(b.low, low) & num_equal(b.high, high), idle + 1, zero);
        stuck = num_less(QR_PATIENCE * (b.high - b.low + 1), idle) & b.active;
        if (num_any(stuck)) {
            reverse_matrices(q, stuck);
            *reversed ^= stuck;
            /* the other lanes must find the same again */
            b = find_blocks(q, num_select(stuck, simd_splat((real)(q->columns - 1)), high));
            idle = num_select(stuck, zero, idle);
        }
    }
    *(simd_int *)q->sweeps = made;
    *(simd_int *)q->unfinished = num_flags(b.active, 1);
}

/* ---- results ---- */

/* Sorts the values, and says which vector belongs to each. */
static void
sort_lanes(const struct svd_lanes *q)
{
    for (int64_t i = 0; i < q->columns; i++) {
        num value = num_abs(*(const num *)(q->d + i * SIMD_LANES));
        simd_int index = {0};
        int64_t j = i;

        index += (real_int)i;
        for (; j > 0; j--) {
            num *const at = (num *)(q->values + (j - 1) * SIMD_LANES);
            simd_int *const from = (simd_int *)(q->order + (j - 1) * SIMD_LANES);
            const num above = *at;
            const simd_int above_index = *from;
            const num_mask larger = num_less(above, value);

            *(at + 1) = num_select(larger, above, value);
            *(from + 1) = (simd_int)num_select(larger, (num)above_index, (num)index);
            value = num_select(larger, value, above);
            index = (simd_int)num_select(larger, (num)index, (num)above_index);
            *at = value;
            *from = index;
        }
        if (i == 0) {
            *(num *)q->values = value;
            *(simd_int *)q->order = index;
        }
    }
}

/* Vector j of B on one side, brought to norm 1: see unit_change(). */
static void
normalize_lanes(int64_t n, real *x)
{
    num sum = simd_splat(0), change;

    for (int64_t i = 0; i < n * SIMD_LANES; i += SIMD_LANES) {
        sum = simd_fma(*(const num *)(x + i), *(const num *)(x + i), sum);
    }
    change = (1 - sum) / 2;
    for (int64_t i = 0; i < n * SIMD_LANES; i += SIMD_LANES) {
        *(num *)(x + i) = simd_fma(change, *(const num *)(x + i), *(const num *)(x + i));
    }
}

/*
 * The Rayleigh quotients l_j^T B r_j of the large values take the place of d_j.  Each sweep rounds
 * all of d, and those of large values are in all sweeps: at order 16 they gather 4 eps in the mean
 * and 12 at worst, the quotients 1 and 3.
 */
static void
refine_lanes(const struct svd_lanes *q)
{
    const int64_t n = q->columns;
    num largest = simd_splat(0);

    for (int64_t j = 0; j < n; j++) {
        largest = num_max(largest, num_abs(*(const num *)(q->d + j * SIMD_LANES)));
    }
    for (int64_t j = 0; j < n; j++) {
        const real *const l = q->x[0] + j * n * SIMD_LANES, *const r = q->x[1] + j * n * SIMD_LANES;
        num *const value = (num *)(q->d + j * SIMD_LANES);
        num sum = simd_splat(0);

        for (int64_t i = 0; i < n; i++) {
            const int64_t at = i * SIMD_LANES;
            num row = *(const num *)(q->b[0] + at) * *(const num *)(r + at);

            if (i + 1 < n) {
                row = simd_fma(*(const num *)(q->b[1] + at), *(const num *)(r + at + SIMD_LANES),
                               row);
            }
            sum = simd_fma(*(const num *)(l + at), row, sum);
        }
        *value = num_select(num_less(largest, REFINED * num_abs(*value)), sum, *value);
    }
}

/* The vectors of B, where `reversed` of the reflected matrix, become the first entries of those of
   W, and unit vectors follow. */
static void
place_vectors(const struct svd_lanes *q, num_mask reversed, int side, int64_t length, int64_t count,
              real *to)
{
    const int64_t n = q->columns;

    for (int64_t j = 0; j < count; j++, to += length * SCALAR_LANES) {
        memset(to, 0, (size_t)(length * SCALAR_LANES) * sizeof *to);
        if (j >= n) {
            *(num *)(to + j * SCALAR_LANES) = simd_splat(1);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            const num own = *(const num *)(q->x[side] + (j * n + i) * SIMD_LANES);
            const num other = *(const num *)(q->x[!side] + (j * n + n - 1 - i) * SIMD_LANES);
            num value = num_select(reversed, other, own);

            if (side == 0) { /* d may be negative, the value is not */
                const num d = *(const num *)(q->d + j * SIMD_LANES);

                value = num_select(num_less(d, simd_splat(0)), -value, value);
            }
            *(num *)(to + i * SCALAR_LANES) = value;
        }
    }
}

/* Makes the largest entry of `vectors` vectors real and positive, and turns the other side. */
static void
orient_lanes(int64_t vectors, int64_t length, real *x, int64_t other_length, real *other)
{
    const num zero = simd_splat(0);

    for (int64_t j = 0; j < vectors; j++) {
        real *const own = x + j * length * SCALAR_LANES;
        real *const back = other + j * other_length * SCALAR_LANES;
        struct scalars entry = scalars_of(zero), turn;
        num most = zero;

        for (int64_t i = 0; i < length; i++) {
            const struct scalars here = scalars_load(own + i * SCALAR_LANES);
            const num size = TSVD_COMPLEX ? scalars_add_abs2(here, zero) : num_abs(here.re);
            const num_mask more = num_less(most, size);

            most = num_select(more, size, most);
            entry = scalars_select(more, here, entry);
        }
#if TSVD_COMPLEX
        const num size = num_select(num_less(zero, most), simd_sqrt(most), simd_splat(1));

        turn.re = num_select(num_less(zero, most), entry.re / size, simd_splat(1));
        turn.im = entry.im / size;
#else
        turn.re = num_select(num_less(entry.re, zero), simd_splat(-1), simd_splat(1));
#endif
        for (int64_t i = 0; i < length; i++) {
            real *const at = own + i * SCALAR_LANES;
            struct scalars here = scalars_load(at);

#if TSVD_COMPLEX
            const num_mask is_entry = num_equal(here.re, entry.re) & num_equal(here.im, entry.im);

            here =
                scalars_select(is_entry, scalars_of(size), scalars_mul(scalars_conj(turn), here));
#else
            here.re *= turn.re;
#endif
            scalars_store(at, here);
        }
        for (int64_t i = 0; i < other_length; i++) {
            real *const at = back + i * SCALAR_LANES;

            scalars_store(at, scalars_mul(turn, scalars_load(at)));
        }
    }
}

static void
svd_lanes(const struct svd_lanes *q)
{
    const int64_t n = q->columns, down = SCALAR_LANES, right = q->rows * SCALAR_LANES;
    num_mask reversed;

    scale_lanes(q->rows * q->columns, q->w, q->exponent, q->kind);
    bidiagonalize_lanes(q);
    memset(q->e + (n - 1) * SIMD_LANES, 0, 2 * SIMD_LANES * sizeof *q->e);
    memset(q->d + n * SIMD_LANES, 0, SIMD_LANES * sizeof *q->d);
    reversed =
        num_less(num_abs(*(const num *)q->d), num_abs(*(const num *)(q->d + (n - 1) * SIMD_LANES)));
    reverse_lanes(n, reversed, q->d);
    reverse_lanes(n - 1, reversed, q->e);
    if (!q->vectors) {
        const num_mask active = dqds_lanes(n, q->d, q->e, q->max_sweeps, q->qd);

        *(simd_int *)q->unfinished = num_flags(active, 1);
        *(simd_int *)q->sweeps = (simd_int){0};
        sort_lanes(q);
        return;
    }
    memcpy(q->b[0], q->d, (size_t)(n * SIMD_LANES) * sizeof *q->d);
    memcpy(q->b[1], q->e, (size_t)(n * SIMD_LANES) * sizeof *q->e);
    for (int side = 0; side < 2; side++) {
        memset(q->x[side], 0, (size_t)(n * n * SIMD_LANES) * sizeof(real));
        for (int64_t i = 0; i < n; i++) {
            *(num *)(q->x[side] + (i * n + i) * SIMD_LANES) = simd_splat(1);
        }
    }
    diagonalize_lanes(q, &reversed);
    for (int64_t j = 0; j < n; j++) {
        normalize_lanes(n, q->x[0] + j * n * SIMD_LANES);
        normalize_lanes(n, q->x[1] + j * n * SIMD_LANES);
    }
    refine_lanes(q);
    sort_lanes(q);
    place_vectors(q, reversed, 0, q->rows, q->left_columns, q->left);
    place_vectors(q, reversed, 1, n, n, q->right);
    for (int64_t k = left_reflectors(q) - 1; k >= 0; k--) {
        const real *v = left_reflector(q, k);

        reflect(q->left_columns, q->rows - k, v, down, scalars_load(v), q->left + k * down, down,
                right);
    }
    for (int64_t k = right_reflectors(q) - 1; k >= 0; k--) {
        const real *v = right_reflector(q, k);

        reflect(n, n - k - 1, v, right, scalars_conj(scalars_load(v)), q->right + (k + 1) * down,
                down, n * down);
    }
    if (q->orient_right) {
        orient_lanes(n, n, q->right, q->rows, q->left);
    } else {
        orient_lanes(n, q->rows, q->left, n, q->right);
    }
}

#endif
