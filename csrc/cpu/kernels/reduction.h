/*
 * Householder's reduction of one small real matrix, which stays in the cache.  Included by
 * kernels.c; struct small_reduction is in cpu/kernels/kernels.h.
 *
 * Step k passes once over the columns after column k.  For each of them it
 *
 *     a_j -= u_j x        ends step k - 1, whose reflector of the right is u,
 *     y = tau a_j^T v     the reflector of the left is v,
 *     a_j -= y v,         whose first entry is the row's r_j,
 *     w += r_j a_j.
 *
 * Then u = (1, scale (r_1, r_2, ...)) needs no second pass: A u = (1 - scale r_0) a_0 + scale w
 * (cpu/bidiagonalize/reduce.c).
 *
 * Columns begin on the boundary of a vector register, and v and x have zeros above their first
 * entries.  So there are no rests.
 */
#ifndef TSVDI_CPU_KERNELS_REDUCTION_H
#define TSVDI_CPU_KERNELS_REDUCTION_H

#include "cpu/kernels/entries.h"
#include "cpu/kernels/kernels.h"
#include "math/reflector.h"

enum {
    REDUCTION_GROUP = 4, /* columns of a pass that are worked on together */
    /* Columns whose parts of w are summed up by themselves, and terms that a lane sums up: rounding
       errors of equal terms add up. */
    REDUCTION_PART = 32,
    REDUCTION_TERMS = 16,
    REDUCTION_REGISTERS = 4 /* registers of a column that a pass keeps, at most */
};

/* A step under way. */
struct reduction_step {
    int64_t stride, row; /* as in struct small_reduction; k */
    const real *v, *x;   /* [stride] */
    real tau;
};

/* The sum of the squares of up x_1, up x_2, ..., for the reflector of x (see reflector_up()). */
static real
reduction_square(int64_t count, const real *x, real *up)
{
    real sum;

    dots(count - 1, 1, x + 1, 0, x + 1, &sum);
    *up = reflector_up(x[0], sum);
    return *up == 1 ? sum : reflector_square_up(count - 1, x + 1);
}

/* `columns` columns from `a` on, of `blocks` registers each from `begin` on, which are kept; or of
   `count` registers if `blocks` is 0.  u: the columns' entries of it; r: out; w: added to. */
static inline __attribute__((always_inline)) void
pass_columns(const struct reduction_step *step, int columns, int blocks, int64_t count, real *a,
             int64_t begin, const real *u, real *r, real *w)
{
    const int64_t stride = step->stride, length = blocks > 0 ? blocks : count;
    simd kept[REDUCTION_GROUP][REDUCTION_REGISTERS], less[REDUCTION_GROUP];
    simd sum[REDUCTION_GROUP], before[REDUCTION_GROUP];

    for (int j = 0; j < columns; j++) {
        sum[j] = before[j] = simd_splat(0);
        less[j] = simd_splat(-u[j]);
    }
    for (int64_t b = 0; b < length; b++) {
        const int64_t at = begin + b * SIMD_LANES;
        const simd x = *(const simd *)(step->x + at), v = *(const simd *)(step->v + at);

        for (int j = 0; j < columns; j++) {
            const simd entry = simd_multiply_add(less[j], x, *(simd *)(a + j * stride + at));

            sum[j] = simd_multiply_add(entry, v, sum[j]);
            if (blocks > 0) {
                kept[j][b] = entry;
            } else {
                *(simd *)(a + j * stride + at) = entry;
            }
        }
        for (int j = 0; j < columns && blocks == 0 && (b + 1) % REDUCTION_TERMS == 0; j++) {
            before[j] += sum[j];
            sum[j] = simd_splat(0);
        }
    }
    for (int j = 0; j < columns; j++) {
        less[j] = simd_splat(-step->tau * lane_sum_by_fours(before[j] + sum[j]));
    }
    for (int64_t b = 0; b < length; b++) {
        const int64_t at = begin + b * SIMD_LANES;
        const simd v = *(const simd *)(step->v + at);

        for (int j = 0; j < columns; j++) {
            const simd entry = simd_multiply_add(
                less[j], v, blocks > 0 ? kept[j][b] : *(simd *)(a + j * stride + at));

            if (blocks > 0) {
                kept[j][b] = entry;
            }
            *(simd *)(a + j * stride + at) = entry;
        }
    }
    for (int j = 0; j < columns; j++) {
        r[j] = a[j * stride + step->row];
        less[j] = simd_splat(r[j]);
    }
    for (int64_t b = 0; b < length; b++) {
        const int64_t at = begin + b * SIMD_LANES;
        simd part = simd_splat(0);

        for (int j = 0; j < columns; j++) {
            part = simd_multiply_add(
                less[j], blocks > 0 ? kept[j][b] : *(simd *)(a + j * stride + at), part);
        }
        *(simd *)(w + at) += part;
    }
}

static inline __attribute__((always_inline)) void
pass_blocks(const struct reduction_step *step, int blocks, int64_t count, int64_t columns, real *a,
            int64_t begin, const real *u, real *r, real *w)
{
    int64_t j = 0;

    for (; j + REDUCTION_GROUP <= columns; j += REDUCTION_GROUP) {
        pass_columns(step, REDUCTION_GROUP, blocks, count, a + j * step->stride, begin, u + j,
                     r + j, w);
    }
    for (; j < columns; j++) {
        pass_columns(step, 1, blocks, count, a + j * step->stride, begin, u + j, r + j, w);
    }
}

/* The pass of a step over `columns` columns from `a` on.  w, part: [stride] out, workspace. */
static void
pass_step(const struct reduction_step *step, int64_t columns, real *a, const real *u, real *r,
          real *w, real *part)
{
    const int64_t begin = step->row / SIMD_LANES * SIMD_LANES, stride = step->stride;
    const int64_t count = (stride - begin) / SIMD_LANES;

    memset(w + begin, 0, (size_t)(stride - begin) * sizeof *w);
    for (int64_t first = 0; first < columns; first += REDUCTION_PART) {
        const int64_t left = columns - first;
        const int64_t some = left < REDUCTION_PART ? left : REDUCTION_PART;
        real *const own = a + first * stride, *const to = first == 0 ? w : part;

        if (first > 0) {
            memset(part + begin, 0, (size_t)(stride - begin) * sizeof *part);
        }
        switch (count) {
        case 1:
            pass_blocks(step, 1, 0, some, own, begin, u + first, r + first, to);
            break;
        case 2:
            pass_blocks(step, 2, 0, some, own, begin, u + first, r + first, to);
            break;
        case 3:
            pass_blocks(step, 3, 0, some, own, begin, u + first, r + first, to);
            break;
        case 4:
            pass_blocks(step, 4, 0, some, own, begin, u + first, r + first, to);
            break;
        default:
            pass_blocks(step, 0, count, some, own, begin, u + first, r + first, to);
        }
        for (int64_t i = begin; i < stride && first > 0; i += SIMD_LANES) {
            *(simd *)(w + i) += *(const simd *)(part + i);
        }
    }
}

/* The reflector of the row r, and x = tau A u of what it does to the columns from `a` on. */
static void
reduce_row_of(const struct small_reduction *q, int64_t k, real *a, real *r, real *u, real *w,
              real *x)
{
    const int64_t left = q->columns - k - 1, begin = k / SIMD_LANES * SIMD_LANES;
    real up, first;
    const real square = reduction_square(left, r, &up);
    const struct reflector h = reflector_make(r[0], square, up);
    simd by_first, by_sum;

    u[0] = 1;
    for (int64_t j = 1; j < left; j++) {
        u[j] = reflector_entry(h, r[j]);
    }
    q->e[k] = h.beta;
    q->tau_p[k] = h.tau;
    if (up != 1) { /* w's products lie below the normal numbers */
        first = 0;
        memset(w + begin, 0, (size_t)(q->stride - begin) * sizeof *w);
        accumulate(q->stride - begin, left, u, a + begin, q->stride, w + begin);
        by_sum = simd_splat(h.tau);
    } else {
        first = 1 - reflector_entry(h, r[0]);
        by_sum = simd_splat(h.tau * h.scale);
    }
    by_first = simd_splat(h.tau * first);
    for (int64_t i = begin; i < q->stride; i += SIMD_LANES) {
        *(simd *)(x + i) =
            simd_multiply_add(by_first, *(const simd *)(a + i), by_sum * *(const simd *)(w + i));
    }
    for (int64_t i = begin; i <= k; i++) {
        x[i] = 0;
    }
}

static void
reduce(const struct small_reduction *q)
{
    const int64_t rows = q->rows, columns = q->columns, stride = q->stride;
    real *const v = q->work, *const x = v + stride, *const w = x + stride;
    real *const part = w + stride, *const r = part + stride, *const u = r + stride;

    memset(q->work, 0, (size_t)(6 * stride) * sizeof *q->work);
    for (int64_t k = 0; k < columns; k++) {
        real *const column = q->a + k * stride, *const next = column + stride;
        struct reduction_step step = {stride, k, v, x, 0};
        real up;
        const real square = reduction_square(rows - k, column + k, &up);
        const struct reflector h = reflector_make(column[k], square, up);

        q->d[k] = h.beta;
        q->tau_q[k] = h.tau;
        memset(v, 0, (size_t)k * sizeof *v);
        v[k] = column[k] = 1;
        for (int64_t i = k + 1; i < rows; i++) {
            v[i] = column[i] = reflector_entry(h, column[i]);
        }
        q->e[k] = q->tau_p[k] = 0;
        if (k + 1 == columns) {
            break;
        }
        step.tau = h.tau;
        pass_step(&step, columns - k - 1, next, u + 1, r, w, part); /* u began with column k */
        reduce_row_of(q, k, next, r, u, w, x);
        for (int64_t j = 1; j < columns - k - 1; j++) { /* kept where r was */
            next[j * stride + k] = u[j];
        }
        for (int64_t i = 0; i < rows; i++) { /* column k + 1 is up to date */
            next[i] -= x[i];
        }
    }
}

#endif
