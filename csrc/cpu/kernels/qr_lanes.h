/*
 * Implicit QR on small upper bidiagonal matrices side by side, one in a lane: a sweep over the
 * block that each has under work, and a wave of sweeps applied to the vectors of one matrix.
 * cpu/dc/leaves.c chooses the blocks.  struct qr_lanes is in cpu/kernels/kernels.h.
 */
#ifndef TSVDI_CPU_KERNELS_QR_LANES_H
#define TSVDI_CPU_KERNELS_QR_LANES_H

#include "cpu/kernels/kernels.h"

static_assert((int)DC_LEAF_COLUMNS <= (int)R_BITS,
              "struct lane_tests has a bit of a real_int for each rotation of a leaf's sweep: "
              "DC_LEAF_COLUMNS must be at most the bits of a real");

/* What a sweep knows of the entries that it has finished. */
struct lane_tests {
    num inverse;     /* 1 / mu (qr_step.h) */
    num most;        /* the largest 1 / mu since the last negligible e */
    num largest;     /* the largest entry since then */
    num_int dropped; /* bit k: entry k of e was negligible */
};

/* Takes e and d, the last entries of the chain's first k + 1 rows.  Returns e, or zero where it is
   negligible: then a new block begins.  least: e up to this is negligible. */
TSVD_HD num
test_lanes(struct lane_tests *t, int64_t k, num least, num e, num d)
{
    const num size = num_abs(e), own = 1 / num_abs(d);
    num_mask negligible;

    d = num_abs(d);
    if (k == 0) {
        t->inverse = t->most = own;
        t->largest = d;
        return e;
    }
    negligible =
        num_less_equal(size * t->inverse, NUM_SPLAT(QR_TOLERANCE)) | num_less_equal(size, least);
    t->inverse = num_select(negligible, own, qr_next_inverse(t->inverse, size, d));
    t->most = num_select(negligible, own, num_max(t->most, t->inverse));
    t->largest = num_select(negligible, d, num_max(t->largest, num_max(size, d)));
    t->dropped |= num_flags(negligible, (real_int)1 << (k - 1));
    return num_select(negligible, NUM_SPLAT(REAL(0)), e);
}

TSVD_HD void
store_lanes(real *to, num_mask mask, num x)
{
    *(num *)to = num_select(mask, x, *(const num *)to);
}

/* rotation_half_tangent() in every lane. */
TSVD_HD num
num_half_tangent(struct num_rotation q)
{
    return simd_quotient(q.s, 1 + q.c);
}

/* Stores a rotation, brought to norm 1: its half tangents, and `row` numbers after them its
   sines.  In the lanes of the mask if `keep`, else in all. */
TSVD_HD void
store_turn(real *rotation, int keep, num_mask mask, int64_t row, struct num_rotation q)
{
    q = num_rotation_unit(q);
    if (keep) {
        store_lanes(rotation, mask, num_half_tangent(q));
        store_lanes(rotation + row, mask, q.s);
    } else {
        *(num *)rotation = num_half_tangent(q);
        *(num *)(rotation + row) = q.s;
    }
}

/* One sweep in the lanes of the masks, with a shift if `shifted`.  keep: other lanes have rotations
   that stay; else nothing has been stored yet, and those of other lanes are not used. */
static inline __attribute__((always_inline)) void
sweep_lanes(struct qr_lanes *q, int vectors, int shifted, const num_mask *mask, const num *shift,
            int keep, real *rotation)
{
    const int64_t row = vectors * SIMD_LANES;
    struct num_rotation first[QR_VECTORS], second[QR_VECTORS];
    struct lane_tests tests[QR_VECTORS];
    struct qr_bulge bulge[QR_VECTORS];

    for (int v = 0; v < vectors; v++) {
        const int64_t i = v * SIMD_LANES;

        first[v] = second[v] = (struct num_rotation){NUM_SPLAT(REAL(1)), NUM_SPLAT(REAL(0))};
        bulge[v] = qr_shifted_start(*(num *)(q->d + i), *(num *)(q->e + row + i), shift[v]);
        tests[v] = (struct lane_tests){{0}, {0}, {0}, {0}};
    }
    for (int64_t k = 0; k <= q->steps; k++) {
        for (int v = 0; v < vectors; v++) {
            const int64_t i = k * row + v * SIMD_LANES;
            real *d = q->d + i, *e = q->e + i;
            num e_before, d_done;

            if (shifted) {
                qr_shifted_step(&bulge[v], *(num *)(d + row), *(num *)(e + 2 * row), &e_before,
                                &d_done, &first[v], &second[v]);
            } else {
                qr_zero_shift_step(*(num *)d, *(num *)(e + row), *(num *)(d + row), &e_before,
                                   &d_done, &first[v], &second[v]);
            }
            e_before = test_lanes(&tests[v], k, *(num *)(q->negligible + v * SIMD_LANES), e_before,
                                  d_done);
            store_lanes(d, mask[v], d_done);
            store_lanes(e, mask[v], e_before);
            store_lanes(q->inverse + i, mask[v], tests[v].most);
            store_lanes(q->largest + i, mask[v], tests[v].largest);
            if (rotation != NULL) {
                real *turn = rotation + 4 * k * row + v * SIMD_LANES;

                store_turn(turn, keep, mask[v], row, first[v]);
                store_turn(turn + 2 * row, keep, mask[v], row, second[v]);
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        store_lanes((real *)(q->dropped + v * SIMD_LANES), mask[v],
                    num_from_bits(tests[v].dropped));
    }
}

static inline __attribute__((always_inline)) void
advance_lanes(struct qr_lanes *q, int vectors, real *rotation)
{
    const num zero = NUM_SPLAT(REAL(0));
    const int64_t row = vectors * SIMD_LANES;
    num_mask with[QR_VECTORS], without[QR_VECTORS];
    num shift[QR_VECTORS];
    int any_with = 0, any_without = 0;

    for (int v = 0; v < vectors; v++) {
        const int64_t i = v * SIMD_LANES;
        const num length = *(num *)(q->length + i);

        shift[v] = qr_choose_shift(length, *(num *)(q->d + i), *(num *)(q->corner[0] + i),
                                   *(num *)(q->corner[1] + i), *(num *)(q->corner[2] + i),
                                   *(num *)(q->least + i), *(num *)(q->most + i));
        with[v] = num_less(zero, shift[v]);
        without[v] = num_equal(shift[v], zero) & num_less(zero, length);
        any_with |= num_any(with[v]);
        any_without |= num_any(without[v]);
    }
    if (any_with) {
        sweep_lanes(q, vectors, 1, with, shift, 0, rotation);
    }
    if (any_without) {
        sweep_lanes(q, vectors, 0, without, shift, any_with, rotation);
    }
    for (int64_t i = 4 * row * (q->steps + 1);
         rotation != NULL && i < 4 * row * (q->steps + LEAF_WAVE); i += SIMD_LANES) {
        *(num *)(rotation + i) = zero;
    }
}

static void
qr_lanes(struct qr_lanes *q, int vectors, real *rotation)
{
    if (vectors == 1) {
        advance_lanes(q, 1, rotation);
    } else {
        advance_lanes(q, QR_VECTORS, rotation);
    }
}

/* ---- their vectors ---- */

/* The strips of a leaf's rows that one pass works on.  Rows and operands then fit in the
   registers. */
enum { STRIPS = SIMD_BYTES == 64 ? 4 : 2 };

/*
 * One rotation of a wave, by the tangent of half its angle and its sine: three lifting steps
 * (struct lifting).  Where many sweeps make the same rotation by a small angle, a cosine would
 * stretch the vectors each time by its own rounding.  The steps have the determinant 1 whatever
 * the rounding of t and s.
 */
static inline __attribute__((always_inline)) void
wave_turn(real half_tangent, real sine, simd *row, simd *below)
{
    const simd t = simd_splat(half_tangent), s = simd_splat(sine);
    const simd x = simd_fma(t, *below, *row), y = simd_fma(-s, x, *below);

    *row = y;
    *below = simd_fma(t, y, x);
}

/* The rotations that the sweeps begin .. end - 1 of a wave make in one step, on some strips side by
   side. */
static inline __attribute__((always_inline)) void
leaf_step(const struct leaf_wave *wave, int64_t step, int begin, int end, int strips,
          simd (*a)[STRIPS], simd *top)
{
#pragma GCC unroll 4
    for (int k = begin; k < end; k++) {
        const real *turn = wave->turn[k] + (step - k) * 4 * wave->lanes;

        for (int i = 0; i < strips; i++) {
            wave_turn(turn[0], turn[wave->lanes], &a[k][i], &top[i]);
        }
    }
}

/* All sweeps of a wave on some strips.  Sweep k follows sweep k - 1 at a distance of one row.  a[k]
   is the row that sweep k has under work.  `top` is its next row, then the row that it leaves to
   sweep k + 1. */
static inline __attribute__((always_inline)) void
leaf_strips(const struct leaf_wave *wave, int sweeps, int64_t first, int strips)
{
    simd a[LEAF_WAVE][STRIPS], top[STRIPS];
    real *from = wave->row + first, *to = from;
    int64_t step = 0;

    for (int i = 0; i < strips; i++) {
        a[0][i] = *(simd *)(from + i * SIMD_LANES);
    }
#pragma GCC unroll 4
    for (; step < sweeps - 1; step++) {
        from += wave->step;
        for (int i = 0; i < strips; i++) {
            top[i] = *(simd *)(from + i * SIMD_LANES);
        }
        leaf_step(wave, step, 0, (int)step + 1, strips, a, top);
        for (int i = 0; i < strips; i++) {
            a[step + 1][i] = top[i];
        }
    }
    for (; step < wave->count; step++) {
        from += wave->step;
        for (int i = 0; i < strips; i++) {
            top[i] = *(simd *)(from + i * SIMD_LANES);
        }
        leaf_step(wave, step, 0, sweeps, strips, a, top);
        for (int i = 0; i < strips; i++) {
            *(simd *)(to + i * SIMD_LANES) = top[i];
        }
        to += wave->step;
    }
#pragma GCC unroll 4
    for (int done = 1; done <= sweeps; done++, step++) {
        for (int i = 0; i < strips; i++) {
            top[i] = a[done - 1][i];
        }
        leaf_step(wave, step, done, sweeps, strips, a, top);
        for (int i = 0; i < strips; i++) {
            *(simd *)(to + i * SIMD_LANES) = top[i];
        }
        to += wave->step;
    }
}

static inline __attribute__((always_inline)) void
leaf_sweeps(const struct leaf_wave *wave, int sweeps)
{
    int64_t i = 0;

    for (; i + STRIPS * SIMD_LANES <= wave->width; i += STRIPS * SIMD_LANES) {
        leaf_strips(wave, sweeps, i, STRIPS);
    }
    for (; STRIPS > 2 && i + 2 * SIMD_LANES <= wave->width; i += 2 * SIMD_LANES) {
        leaf_strips(wave, sweeps, i, 2);
    }
    for (; i < wave->width; i += SIMD_LANES) {
        leaf_strips(wave, sweeps, i, 1);
    }
}

static void
leaf_wave(const struct leaf_wave *wave)
{
    if (wave->sweeps == LEAF_WAVE) {
        leaf_sweeps(wave, LEAF_WAVE);
    } else if (wave->sweeps == 3) {
        leaf_sweeps(wave, 3);
    } else if (wave->sweeps == 2) {
        leaf_sweeps(wave, 2);
    } else {
        leaf_sweeps(wave, 1);
    }
}

#endif
