/*
 * Twisted factorisations (math/twisted.h) in the lanes of vectors, a singular value in each.  A
 * part of kernels.c.
 *
 * What a lane computes does not depend on the other lanes, so results do not depend on how wide
 * vectors are.
 */
#ifndef TSVDI_CPU_KERNELS_TWISTED_LANES_H
#define TSVDI_CPU_KERNELS_TWISTED_LANES_H

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/wide.h"
#include "math/twisted.h"

/* ---- counts ---- */

/* Vectors of shifts that are counted side by side, to hide the latency of the recurrence. */
enum { MINORS_VECTORS = 4 };

static inline __attribute__((always_inline)) void
minors_of(const struct twisted_matrix *m, int vectors, const double *shift, int64_t *above,
          double *last, int64_t *twos)
{
    const int64_t rows = 2 * m->n;
    struct twisted_minors p[MINORS_VECTORS];
    wide x[MINORS_VECTORS];
    wide_int changes[MINORS_VECTORS], power[MINORS_VECTORS];

    for (int v = 0; v < vectors; v++) {
        x[v] = *(const wide_unaligned *)(shift + v * WIDE_LANES);
        p[v] = twisted_minors_begin(x[v]);
        changes[v] = power[v] = (wide_int){0};
    }
    for (int64_t k = 0; k < rows - 1;) {
        const int64_t end = rows - 1 - k < m->stride ? rows - 1 : k + m->stride;

        for (; k < end; k++) {
            for (int v = 0; v < vectors; v++) {
                const wide_int before = wide_bits(p[v].now);

                twisted_minors_step(x[v], wide_splat(m->square[k]), &p[v]);
                changes[v] -= (wide_bits(p[v].now) ^ before) >> 63;
            }
        }
        for (int v = 0; v < vectors; v++) {
            power[v] += twisted_minors_rescale(&p[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        memcpy(above + v * WIDE_LANES, &changes[v], sizeof changes[v]);
        memcpy(last + v * WIDE_LANES, &p[v].now, sizeof p[v].now);
        memcpy(twos + v * WIDE_LANES, &power[v], sizeof power[v]);
    }
}

static void
twisted_count(const struct twisted_matrix *m, int64_t count, const double *shift, int64_t *above,
              double *last, int64_t *twos)
{
    enum { MOST = MINORS_VECTORS * WIDE_LANES };

    for (int64_t i = 0; i < count; i += MOST) {
        const int64_t here = count - i < MOST ? count - i : MOST;
        double x[MOST], p[MOST];
        int64_t changes[MOST], power[MOST];

        for (int64_t j = 0; j < MOST; j++) {
            x[j] = shift[i + (j < here ? j : 0)];
        }
        if (here <= WIDE_LANES) {
            minors_of(m, 1, x, changes, p, power);
        } else if (here <= 2 * WIDE_LANES) {
            minors_of(m, 2, x, changes, p, power);
        } else {
            minors_of(m, MINORS_VECTORS, x, changes, p, power);
        }
        memcpy(above + i, changes, (size_t)here * sizeof *above);
        memcpy(last + i, p, (size_t)here * sizeof *last);
        memcpy(twos + i, power, (size_t)here * sizeof *twos);
    }
}

/* ---- vectors of lanes, side by side ---- */

/* Vectors of lanes that are worked on together: the chains from both ends of two hide most of the
   latency of a step. */
enum { TWIST_VECTORS = 2, TWIST_LANES = TWIST_VECTORS * WIDE_LANES };

/* The values under work.  Row k of vector v is z[k * vectors + v]. */
struct twist {
    pair x[TWIST_VECTORS];
    wide_int r[TWIST_VECTORS];
    int64_t low, high; /* the r of all lanes lie in low .. high */
    wide g[TWIST_VECTORS], square_norm[TWIST_VECTORS];
    wide sum[2][TWIST_VECTORS]; /* of the squares of even and odd rows */
    wide *z;
};

/* ---- the twist ---- */

/* Finds r for each lane.  power: [chunks] workspace for each vector. */
static inline __attribute__((always_inline)) void
find_twist(const struct twisted_matrix *m, int vectors, struct twist *t, wide_int *power)
{
    const int64_t rows = 2 * m->n, chunks = (rows + m->stride - 1) / m->stride;
    struct twisted_minors p[TWIST_VECTORS];
    wide x[TWIST_VECTORS];
    wide_int twos[TWIST_VECTORS], best_key[TWIST_VECTORS];

    for (int v = 0; v < vectors; v++) {
        x[v] = pair_high(t->x[v]);
        p[v] = twisted_minors_begin(x[v]);
        twos[v] = (wide_int){0};
    }
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t begin = c * m->stride;
        const int64_t end = rows - begin < m->stride ? rows : begin + m->stride;

        for (int v = 0; v < vectors; v++) {
            power[c * vectors + v] = twos[v] += twisted_minors_rescale(&p[v]);
        }
        for (int64_t k = begin; k < end; k++) {
            const wide square = wide_splat(m->square[k < rows - 1 ? k : 0]);

            for (int v = 0; v < vectors; v++) {
                t->z[k * vectors + v] = p[v].before;
                twisted_minors_step(x[v], square, &p[v]);
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        p[v] = twisted_minors_begin(x[v]);
        twos[v] = t->r[v] = (wide_int){0};
        best_key[v] = wide_int_splat(INT64_MIN);
    }
    for (int64_t c = chunks - 1; c >= 0; c--) {
        const int64_t begin = c * m->stride;
        const int64_t end = rows - begin < m->stride ? rows : begin + m->stride;
        const double weight = twisted_weight(m->n, (begin + end) / 2);
        wide most[TWIST_VECTORS];
        wide_int at[TWIST_VECTORS];

        for (int v = 0; v < vectors; v++) {
            twos[v] += twisted_minors_rescale(&p[v]);
            most[v] = wide_splat(-1);
            at[v] = (wide_int){0};
        }
        for (int64_t k = end - 1; k >= begin; k--) {
            const wide square = wide_splat(m->square[k > 0 ? k - 1 : 0]);

            for (int v = 0; v < vectors; v++) {
                const wide product = wide_abs(t->z[k * vectors + v] * p[v].before);
                const wide_mask more = wide_less(most[v], product);

                most[v] = wide_select(more, product, most[v]);
                at[v] = wide_int_select(more, wide_int_splat(k), at[v]);
                twisted_minors_step(x[v], square, &p[v]);
            }
        }
        for (int v = 0; v < vectors; v++) {
            const wide_int key =
                twisted_key(most[v] * wide_splat(weight), twos[v] + power[c * vectors + v]);
            const wide_mask more = wide_int_less(best_key[v], key);

            best_key[v] = wide_int_select(more, key, best_key[v]);
            t->r[v] = wide_int_select(more, at[v], t->r[v]);
        }
    }
}

/* ---- the chains ---- */

static inline __attribute__((always_inline)) pair
pair_select(wide_mask mask, pair a, pair b)
{
    return (pair){wide_select(mask, a.high, b.high), wide_select(mask, a.low, b.low)};
}

static inline __attribute__((always_inline)) struct twisted_chain
chain_select(wide_mask mask, struct twisted_chain a, struct twisted_chain b)
{
    return (struct twisted_chain){pair_select(mask, a.e, b.e), wide_select(mask, a.norm, b.norm)};
}

/* The chains of all vectors across entry k; store: 1 if the ratios are wanted. */
static inline __attribute__((always_inline)) void
cross(const struct twisted_matrix *m, int vectors, int64_t k, const struct twist *t, int store,
      struct twisted_chain *chain)
{
    const wide b = wide_splat(m->b[k]), square = wide_splat(m->square[k]);
    const wide rest = wide_splat(m->rest[k]);

    for (int v = 0; v < vectors; v++) {
        const wide ratio = twisted_chain_step(t->x[v], b, square, rest, &chain[v]);

        if (store) {
            t->z[k * vectors + v] = ratio;
        }
    }
}

/* The same in the rows low .. high.  In each lane the chain from the top stores its ratios as far
   as entry r - 1, and the chain from the bottom as far as entry r.  When a chain reaches row r, it
   is copied to `met`. */
static inline __attribute__((always_inline)) void
cross_zone(const struct twisted_matrix *m, int vectors, int64_t k, int down, const struct twist *t,
           int store, struct twisted_chain *chain, struct twisted_chain *met)
{
    const wide b = wide_splat(m->b[k]), square = wide_splat(m->square[k]);
    const wide rest = wide_splat(m->rest[k]);
    const wide_int here = wide_int_splat(k), reached = wide_int_splat(down ? k + 1 : k);

    for (int v = 0; v < vectors; v++) {
        const wide ratio = twisted_chain_step(t->x[v], b, square, rest, &chain[v]);

        if (store) {
            wide *slot = &t->z[k * vectors + v];
            const wide_mask above = wide_int_less(here, t->r[v]);

            *slot = down ? wide_select(above, ratio, *slot) : wide_select(above, *slot, ratio);
        }
        met[v] = chain_select(wide_int_equal(t->r[v], reached), chain[v], met[v]);
    }
}

/* Both chains to the rows r of the lanes.  store: 1 if the ratio of each entry is to be left in its
   slot of z. */
static inline __attribute__((always_inline)) void
meet(const struct twisted_matrix *m, int vectors, int store, struct twist *t)
{
    const int64_t rows = 2 * m->n, low = t->low, high = t->high, below = rows - 1 - high;
    const int64_t together = low < below ? low : below;
    struct twisted_chain top[TWIST_VECTORS], bottom[TWIST_VECTORS];
    struct twisted_chain top_met[TWIST_VECTORS], bottom_met[TWIST_VECTORS];
    int64_t k, j;

    for (int v = 0; v < vectors; v++) {
        top[v] = bottom[v] = twisted_chain_begin(t->x[v]);
    }
    for (k = 0, j = rows - 2; k < together; k++, j--) {
        cross(m, vectors, k, t, store, top);
        cross(m, vectors, j, t, store, bottom);
    }
    for (; k < low; k++) {
        cross(m, vectors, k, t, store, top);
    }
    for (; j >= high; j--) {
        cross(m, vectors, j, t, store, bottom);
    }
    for (int v = 0; v < vectors; v++) {
        top_met[v] = top[v];
        bottom_met[v] = bottom[v];
    }
    for (k = low, j = high - 1; k < high; k++, j--) {
        cross_zone(m, vectors, k, 1, t, store, top, top_met);
        cross_zone(m, vectors, j, 0, t, store, bottom, bottom_met);
    }
    for (int v = 0; v < vectors; v++) {
        t->g[v] = twisted_meet(t->x[v], top_met[v], bottom_met[v], &t->square_norm[v]);
    }
}

/* z from the ratios, in their place, and the sums of squares. */
static inline __attribute__((always_inline)) void
unfold(int64_t rows, int vectors, struct twist *t)
{
    const wide one = wide_splat(1);
    wide x[TWIST_VECTORS], ratio[TWIST_VECTORS], sum[2][TWIST_VECTORS];
    int64_t k;

    for (int v = 0; v < vectors; v++) {
        x[v] = ratio[v] = one;
        sum[0][v] = sum[1][v] = wide_splat(0);
    }
    /* the slot of a row holds the ratio that the next row needs */
    for (k = t->low; k <= t->high; k++) {
        for (int v = 0; v < vectors; v++) {
            wide *slot = &t->z[k * vectors + v], *squares = &sum[k % 2][v];
            const wide_mask above = wide_int_less(wide_int_splat(k), t->r[v]);
            const wide next = *slot;

            x[v] = wide_select(wide_int_less(t->r[v], wide_int_splat(k)), ratio[v] * x[v], one);
            *slot = wide_select(above, next, x[v]);
            *squares = wide_select(above, *squares, wide_fma(x[v], x[v], *squares));
            ratio[v] = next;
        }
    }
    for (; k < rows; k++) {
        for (int v = 0; v < vectors; v++) {
            wide *slot = &t->z[k * vectors + v];
            const wide next = *slot;

            x[v] = ratio[v] * x[v];
            *slot = x[v];
            sum[k % 2][v] = wide_fma(x[v], x[v], sum[k % 2][v]);
            ratio[v] = next;
        }
    }
    for (int v = 0; v < vectors; v++) {
        x[v] = one;
    }
    for (k = t->high - 1; k >= t->low; k--) {
        for (int v = 0; v < vectors; v++) {
            wide *slot = &t->z[k * vectors + v], *squares = &sum[k % 2][v];
            const wide_mask above = wide_int_less(wide_int_splat(k), t->r[v]);

            x[v] = wide_select(above, *slot * x[v], one);
            *slot = wide_select(above, x[v], *slot);
            *squares = wide_select(above, wide_fma(x[v], x[v], *squares), *squares);
        }
    }
    for (; k >= 0; k--) {
        for (int v = 0; v < vectors; v++) {
            wide *slot = &t->z[k * vectors + v];

            x[v] = *slot * x[v];
            *slot = x[v];
            sum[k % 2][v] = wide_fma(x[v], x[v], sum[k % 2][v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        t->sum[0][v] = sum[0][v];
        t->sum[1][v] = sum[1][v];
    }
}

/* ---- results ---- */

/* Writes the first `count` lanes of every second row of z, from row `first` on, times `factor`, to
   columns of an array of `stride` columns. */
static inline __attribute__((always_inline)) void
write_columns(int64_t n, int vectors, const wide *z, int first, const wide *factor, int64_t count,
              real *to, int64_t stride)
{
    const int64_t ahead = CPU_WRITE_AHEAD * stride;

    z += first * vectors;
    for (int64_t i = 0; i < n; i++, to += stride, z += 2 * vectors) {
        wide_rounded x[TWIST_VECTORS];

        __builtin_prefetch((const void *)((uintptr_t)to + (uintptr_t)ahead * sizeof *to), 1);
        __builtin_prefetch(
            (const void *)((uintptr_t)(to + count - 1) + (uintptr_t)ahead * sizeof *to), 1);
        for (int v = 0; v < vectors; v++) {
            x[v] = wide_round(z[v] * factor[v]);
        }
        if (count == vectors * WIDE_LANES) {
            memcpy(to, x, (size_t)vectors * sizeof *x);
        } else {
            memcpy(to, x, (size_t)count * sizeof *to);
        }
    }
}

/* The same to rows of length n. */
static inline __attribute__((always_inline)) void
write_rows(int64_t n, int vectors, const wide *z, int first, const wide *factor, int64_t count,
           real *to)
{
    enum { TILE = 8 };

    z += first * vectors;
    for (int64_t i = 0; i < n; i += TILE) {
        const int64_t here = n - i < TILE ? n - i : TILE;

        for (int v = 0; v < vectors; v++) {
            const int64_t left = count - v * WIDE_LANES;
            wide_rounded tile[TILE];

            for (int64_t k = 0; k < here; k++) {
                tile[k] = wide_round(z[2 * (i + k) * vectors + v] * factor[v]);
            }
            for (int lane = 0; lane < (left < WIDE_LANES ? left : WIDE_LANES); lane++) {
                for (int64_t k = 0; k < here; k++) {
                    to[(v * WIDE_LANES + lane) * n + i + k] = tile[k][lane];
                }
            }
        }
    }
}

/* The signs that make the first of the largest entries of every second row positive, as they will
   be rounded. */
static inline __attribute__((always_inline)) void
find_signs(int64_t n, int vectors, const wide *z, int first, const wide *factor, wide *sign)
{
    wide most[TWIST_VECTORS], entry[TWIST_VECTORS];

    z += first * vectors;
    for (int v = 0; v < vectors; v++) {
        most[v] = entry[v] = wide_splat(0);
    }
    for (int64_t i = 0; i < n; i++, z += 2 * vectors) {
        for (int v = 0; v < vectors; v++) {
            const wide x = wide_widen(wide_round(z[v] * factor[v])), size = wide_abs(x);
            const wide_mask more = wide_less(most[v], size);

            most[v] = wide_select(more, size, most[v]);
            entry[v] = wide_select(more, x, entry[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        sign[v] = wide_select(wide_less(entry[v], wide_splat(0)), wide_splat(-1), wide_splat(1));
    }
}

/* The square of the angle by which the vector of a lane may be off. */
static inline __attribute__((always_inline)) double
angle_of(const struct twisted_lanes *job, const struct twist *t, int64_t lane)
{
    const int64_t v = lane / WIDE_LANES, own = lane % WIDE_LANES;

    return twisted_angle_square(t->g[v][own], t->square_norm[v][own], job->gap[lane]);
}

/* Finds the lanes whose vectors are accurate as they are; returns 1 if all are. */
static inline __attribute__((always_inline)) int
settle(const struct twisted_matrix *m, const struct twisted_lanes *job, const struct twist *t,
       char *settled)
{
    int all = 1;

    for (int64_t lane = 0; lane < job->count; lane++) {
        const int64_t v = lane / WIDE_LANES, own = lane % WIDE_LANES;
        const double moved = t->g[v][own] / t->square_norm[v][own];

        settled[lane] =
            (char)twisted_is_accurate(m->n, angle_of(job, t, lane), moved, pair_high(t->x[v])[own]);
        all &= settled[lane];
    }
    return all;
}

/* Corrects the shift of each lane that is not settled; returns 1 if no lane needs another
   correction. */
static inline __attribute__((always_inline)) int
correct(const struct twisted_matrix *m, int vectors, const struct twisted_lanes *job, char *settled,
        struct twist *t)
{
    const double limit = twisted_angle_limit(m->n);
    int all = 1;

    for (int v = 0; v < vectors; v++) {
        const int64_t left = job->count - v * WIDE_LANES;
        wide_int moved = {0};

        for (int lane = 0; lane < (left < WIDE_LANES ? left : WIDE_LANES); lane++) {
            char *own = &settled[v * WIDE_LANES + lane];

            if (!*own) {
                const double angle = angle_of(job, t, v * WIDE_LANES + lane);

                moved[lane] = 1;
                /* an infinite angle or NaN: corrections are of no use */
                *own = !(angle < INFINITY) || twisted_settles(angle, limit);
                all &= *own;
            }
        }
        t->x[v] = pair_select(wide_int_equal(moved, wide_int_splat(1)),
                              twisted_correct(t->x[v], t->g[v], t->square_norm[v]), t->x[v]);
    }
    return all;
}

/* Up to `vectors` vectors of lanes. */
static inline __attribute__((always_inline)) void
twist_vectors(const struct twisted_matrix *m, int vectors, const struct twisted_lanes *job)
{
    const int64_t n = m->n, count = job->count;
    const int column = job->column_rows, row = 1 - column;
    struct twist t = {.low = 2 * n, .high = 0, .z = (wide *)job->work};
    wide factor[2][TWIST_VECTORS], sign[TWIST_VECTORS];
    char settled[TWIST_LANES] = {0};
    int accurate = 0;

    /* the other lanes repeat the first one */
    for (int v = 0; v < vectors; v++) {
        wide x = wide_splat(job->shift[0]);

        for (int lane = 0; lane < WIDE_LANES && v * WIDE_LANES + lane < count; lane++) {
            x[lane] = job->shift[v * WIDE_LANES + lane];
        }
        t.x[v] = pair_of(x, wide_splat(0));
    }
    find_twist(m, vectors, &t, (wide_int *)(t.z + 2 * n * vectors));
    for (int lane = 0; lane < vectors * WIDE_LANES; lane++) {
        const int64_t r = t.r[lane / WIDE_LANES][lane % WIDE_LANES];

        t.low = r < t.low ? r : t.low;
        t.high = r > t.high ? r : t.high;
    }
    if (TWISTED_AT_ONCE) {
        meet(m, vectors, 1, &t);
        accurate = settle(m, job, &t, settled);
    }
    if (!accurate) {
        for (int i = 0; i < TWISTED_CORRECTIONS; i++) {
            meet(m, vectors, 0, &t);
            if (correct(m, vectors, job, settled, &t)) {
                break;
            }
        }
        meet(m, vectors, 1, &t);
    }
    unfold(2 * n, vectors, &t);
    for (int side = 0; side < 2; side++) {
        for (int lane = 0; lane < vectors * WIDE_LANES; lane++) {
            factor[side][lane / WIDE_LANES][lane % WIDE_LANES] =
                1 / sqrt(t.sum[side][lane / WIDE_LANES][lane % WIDE_LANES]);
        }
    }
    find_signs(n, vectors, t.z, column, factor[column], sign);
    for (int v = 0; v < vectors; v++) {
        factor[0][v] *= sign[v];
        factor[1][v] *= sign[v];
    }
    write_columns(n, vectors, t.z, column, factor[column], count, job->columns, job->stride);
    write_rows(n, vectors, t.z, row, factor[row], count, job->rows);
    for (int v = 0; v < vectors; v++) {
        const pair x = twisted_correct(t.x[v], t.g[v], t.square_norm[v]);
        const int64_t left = count - v * WIDE_LANES;

        for (int lane = 0; lane < (left < WIDE_LANES ? left : WIDE_LANES); lane++) {
            const int64_t i = v * WIDE_LANES + lane;

            job->high[i] = pair_high(x)[lane];
            job->low[i] = pair_low(x)[lane];
            job->angle_square[i] = angle_of(job, &t, i);
            job->balance[i] = t.sum[0][v][lane] / t.sum[1][v][lane];
        }
    }
}

/* Doubles of workspace. */
static int64_t
twist_workspace(const struct twisted_matrix *m)
{
    const int64_t rows = 2 * m->n;

    return (rows + (rows + m->stride - 1) / m->stride) * TWIST_LANES;
}

static void
twist(const struct twisted_matrix *m, const struct twisted_lanes *job)
{
    struct twisted_lanes part = *job;

    for (int64_t i = 0; i < job->count; i += TWIST_LANES) {
        part.count = job->count - i < TWIST_LANES ? job->count - i : TWIST_LANES;
        part.shift = job->shift + i;
        part.gap = job->gap + i;
        part.high = job->high + i;
        part.low = job->low + i;
        part.angle_square = job->angle_square + i;
        part.balance = job->balance + i;
        part.columns = job->columns + i;
        part.rows = job->rows + i * m->n;
        if (part.count > WIDE_LANES) {
            twist_vectors(m, TWIST_VECTORS, &part);
        } else {
            twist_vectors(m, 1, &part);
        }
    }
}

#endif
