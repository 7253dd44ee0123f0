/*
 * Vector kernels of the CPU back end; see cpu/kernels/kernels.h.
 *
 * The rotations are applied in waves, after Van Zee, van de Geijn &
 * Quintana-Orti, Restructuring the tridiagonal and bidiagonal QR algorithms for
 * performance, ACM TOMS 40 (2014).
 */
#define TSVD_VECTOR
#include "cpu/kernels/simd.h"

#include "cpu/kernels/diamond.h"
#include "cpu/kernels/entries.h"
#include "cpu/kernels/inverse_lanes.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/product.h"
#include "cpu/kernels/qr_lanes.h"
#include "cpu/kernels/reduction.h"
#include "cpu/kernels/skinny.h"
#include "cpu/kernels/svd_lanes.h"
#include "cpu/kernels/twisted_lanes.h"
#include "math/probe.h"
#include "math/secular.h"

/* One wave over one strip as wide as a vector; row points at row `first`. */
static inline __attribute__((always_inline)) void
wave_strip(real *row, ptrdiff_t step, int64_t steps, const real *coefficients)
{
    simd a[WAVE];

    for (int k = 0; k < WAVE; k++) {
        a[k] = *(simd *)(row - k * step);
    }
    for (int64_t w = 0; w < steps; w++) {
        simd top = *(simd *)(row + step);

        for (int k = 0; k < WAVE; k++) {
            wave_turn(coefficients[k], coefficients[steps * WAVE + k], &a[k], &top);
        }
        *(simd *)(row + (1 - WAVE) * step) = top;
        row += step;
        coefficients += WAVE;
    }
    for (int k = 0; k < WAVE; k++) {
        *(simd *)(row - k * step) = a[k];
    }
}

static void
lift(int64_t count, const struct rotation *rotation, real *half_tangent, real *sine)
{
    enum { BLOCK = 32 };

    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        const int64_t size = count - begin < BLOCK ? count - begin : BLOCK;
        real t[BLOCK], s[BLOCK];

        /* a loop without strided stores, so that the compiler vectorizes it */
        for (int64_t i = 0; i < size; i++) {
            const struct rotation q = rotation_unit(rotation[begin + i]);

            t[i] = rotation_half_tangent(q);
            s[i] = q.s;
        }
        for (int64_t i = 0; i < size; i++) {
            half_tangent[(begin + i) * WAVE] = t[i];
            sine[(begin + i) * WAVE] = s[i];
        }
    }
}

static void
rotate(struct panel panel, const struct wave *wave, int64_t waves, const real *coefficients)
{
    for (int64_t i = 0; i < waves; i++) {
        real *row = panel.x + (WAVE + wave[i].first - panel.row0) * panel.width;
        ptrdiff_t step = wave[i].up ? -panel.width : panel.width;

        for (int64_t strip = 0; strip < panel.width; strip += SIMD_LANES) {
            wave_strip(row + strip, step, wave[i].steps, coefficients + wave[i].offset);
        }
    }
}

/* ---- divide and conquer ---- */

static real
sign_of_largest(int64_t count, const real *x)
{
    simd most = simd_splat(0);
    real all = 0;
    int64_t i = 0;

    for (; i + SIMD_LANES <= count; i += SIMD_LANES) {
        most = num_max(num_abs(*(const simd_unaligned *)(x + i)), most);
    }
    for (; i < count; i++) {
        all = r_max(all, r_abs(x[i]));
    }
    for (int lane = 0; lane < SIMD_LANES; lane++) {
        all = r_max(all, most[lane]);
    }
    for (i = 0; i + SIMD_LANES <= count; i += SIMD_LANES) {
        if (num_any(num_equal(num_abs(*(const simd_unaligned *)(x + i)), simd_splat(all)))) {
            break;
        }
    }
    while (i < count && r_abs(x[i]) != all) {
        i++;
    }
    return i < count && x[i] < 0 ? REAL(-1) : REAL(1);
}

static void
turn(int64_t count, struct rotation q, real *x, real *y)
{
    for (int64_t i = 0; i < count; i++) {
        real a = x[i], b = y[i];

        x[i] = r_fma(q.c, a, q.s * b);
        y[i] = r_fma(q.c, b, -(q.s * a));
    }
}

/* The first `count` < SIMD_LANES entries of x, and `rest` in the other lanes. */
static inline __attribute__((always_inline)) simd
load_part(const real *x, int64_t count, real rest)
{
    simd y = simd_splat(rest);

    memcpy(&y, x, (size_t)count * sizeof *x);
    return y;
}

static inline __attribute__((always_inline)) real
lane_sum(simd x)
{
    real sum = 0;

    for (int lane = 0; lane < SIMD_LANES; lane++) {
        sum += x[lane];
    }
    return sum;
}

static void
normalize(int64_t count, real sign, const real *x, real *to)
{
    simd sum = simd_splat(0), change, turn = simd_splat(sign);

    for (int64_t i = 0; i < count; i += SIMD_LANES) {
        const int64_t rest = count - i < SIMD_LANES ? count - i : SIMD_LANES;
        const simd here = simd_load_part(x + i, rest);

        sum = simd_fma(here, here, sum);
    }
    change = simd_splat(unit_change(lane_sum_by_fours(sum)));
    for (int64_t i = 0; i < count; i += SIMD_LANES) {
        const int64_t rest = count - i < SIMD_LANES ? count - i : SIMD_LANES;
        const simd here = simd_load_part(x + i, rest);

        simd_store_part(to + i, rest, turn * simd_fma(change, here, here));
    }
}

static struct cpu_sums
secular(int64_t count, const real *pole, const real *square, real base, real tau, real below,
        real above)
{
    struct secular_sums sums = {{0}, {0}, {0}, {0}};
    int64_t j = 0;

    for (; j + SIMD_LANES <= count; j += SIMD_LANES) {
        secular_add(*(const simd_unaligned *)(pole + j), *(const simd_unaligned *)(square + j),
                    base, tau, below, above, &sums);
    }
    if (j < count) {
        /* the other lanes have a pole beyond any root, of weight 0 */
        secular_add(load_part(pole + j, count - j, REAL(16)), load_part(square + j, count - j, 0),
                    base, tau, below, above, &sums);
    }
    return (struct cpu_sums){lane_sum(sums.psi), lane_sum(sums.psi_slope), lane_sum(sums.phi),
                             lane_sum(sums.phi_slope)};
}

static real
ratios(int64_t count, real pole, const real *other, const real *base, const real *tau)
{
    simd product = simd_splat(1);
    real whole = 1;
    int64_t i = 0;

    for (; i + SIMD_LANES <= count; i += SIMD_LANES) {
        product *=
            secular_ratio(pole, *(const simd_unaligned *)(other + i),
                          *(const simd_unaligned *)(base + i), *(const simd_unaligned *)(tau + i));
    }
    if (i < count) { /* the other lanes repeat entry i, and are left out of the product */
        simd part = secular_ratio(pole, load_part(other + i, count - i, other[i]),
                                  load_part(base + i, count - i, base[i]),
                                  load_part(tau + i, count - i, tau[i]));

        for (int lane = 0; lane < count - i; lane++) {
            whole *= part[lane];
        }
    }
    for (int lane = 0; lane < SIMD_LANES; lane++) {
        whole *= product[lane];
    }
    return whole;
}

static void
coefficients(int64_t count, int64_t center, const real *pole, const real *weight, real base,
             real tau, real *right, real *left)
{
    simd right_sum = simd_splat(0), left_sum = simd_splat(0);
    real right_square, left_square;
    int64_t j = 0;

    for (; j < count; j += SIMD_LANES) {
        const int64_t here = count - j < SIMD_LANES ? count - j : SIMD_LANES;
        /* the other lanes are as in secular() */
        simd d = here == SIMD_LANES ? *(const simd_unaligned *)(pole + j)
                                    : load_part(pole + j, here, REAL(16));
        simd z = here == SIMD_LANES ? *(const simd_unaligned *)(weight + j)
                                    : load_part(weight + j, here, 0);
        simd v = z / secular_difference(d, base, tau), u = d * v;

        right_sum = simd_fma(v, v, right_sum);
        left_sum = simd_fma(u, u, left_sum);
        memcpy(right + j, &v, (size_t)here * sizeof *right);
        memcpy(left + j, &u, (size_t)here * sizeof *left);
    }
    left[center] = -1;
    right_square = 1 / r_sqrt(lane_sum(right_sum));
    left_square = 1 / r_sqrt(lane_sum(left_sum) + 1);
    for (j = 0; j < count; j++) {
        right[j] *= right_square;
        left[j] *= left_square;
    }
}

/* ---- probes ---- */

typedef double probes __attribute__((vector_size(PROBES * sizeof(double)), may_alias));

/* Rows of A that are worked on together: their sums stay in registers. */
enum { PROBE_ROWS = SIMD_BYTES == 64 ? 16 : 4 };

static inline __attribute__((always_inline)) void
probe_rows(int rows, int64_t terms, const real *a, int64_t down, int64_t right, const probes *x,
           probes *y)
{
    probes sum[PROBE_ROWS];

    for (int i = 0; i < rows; i++) {
        sum[i] = (probes){0};
    }
    for (int64_t j = 0; j < terms; j++) {
        const probes here = x[j];

        if (down == 1) {
            __builtin_prefetch(
                (const void *)((uintptr_t)a +
                               (uintptr_t)((j + CPU_PROBE_AHEAD) * right) * sizeof *a));
            __builtin_prefetch(
                (const void *)((uintptr_t)(a + rows - 1) +
                               (uintptr_t)((j + CPU_PROBE_AHEAD) * right) * sizeof *a));
        }
        for (int i = 0; i < rows; i++) {
            sum[i] += (double)a[i * down + j * right] * here;
        }
    }
    for (int i = 0; i < rows; i++) {
        y[i] = sum[i];
    }
}

static void
probe(int64_t rows, int64_t terms, const real *a, int64_t down, int64_t right, const double *x,
      double *y)
{
    int64_t i = 0;

    for (; i + PROBE_ROWS <= rows; i += PROBE_ROWS) {
        if (down == 1) {
            probe_rows(PROBE_ROWS, terms, a + i, 1, right, (const probes *)x,
                       (probes *)(y + i * PROBES));
        } else {
            probe_rows(PROBE_ROWS, terms, a + i * down, down, 1, (const probes *)x,
                       (probes *)(y + i * PROBES));
        }
    }
    for (; i < rows; i++) {
        probe_rows(1, terms, a + i * down, down, right, (const probes *)x,
                   (probes *)(y + i * PROBES));
    }
}

/* ---- Sturm counts ---- */

/* Vectors of shifts that are counted side by side, to hide the latency of the recurrence. */
enum {
    COUNT_VECTORS = 4, /* in the plain form */
    EXACT_VECTORS =
        SIMD_BYTES == 64 ? 4 : 2, /* in the twofold and extended forms, as the registers allow */
    COUNT_MAX = COUNT_VECTORS * SIMD_LANES /* the most shifts */
};

static inline __attribute__((always_inline)) void
count_plain(const struct sturm *m, int vectors, const real *sigma, real_int *above)
{
    simd shift[COUNT_VECTORS], r[COUNT_VECTORS], before[COUNT_VECTORS];
    simd_int changes[COUNT_VECTORS];
    int64_t k = 0;

    for (int v = 0; v < vectors; v++) {
        shift[v] = *(const simd_unaligned *)(sigma + v * SIMD_LANES);
        r[v] = shift[v];
        before[v] = simd_splat(1);
        changes[v] = (simd_int){0};
    }
    for (int64_t i = 0; i < m->chunks; i++) {
        for (; k < m->chunk[i].end; k++) {
            for (int v = 0; v < vectors; v++) {
                sturm_plain_step(shift[v], m->square[k], &r[v], &before[v], &changes[v]);
            }
        }
        for (int v = 0; v < vectors; v++) {
            if (m->chunk[i].restart) {
                sturm_plain_restart(shift[v], &r[v], &before[v], &changes[v]);
            } else {
                sturm_plain_rescale(&r[v], &before[v]);
            }
        }
    }
    memcpy(above, changes, (size_t)vectors * sizeof *changes);
}

static inline __attribute__((always_inline)) void
count_twofold(const struct sturm *m, int vectors, const real *sigma, real_int *above)
{
    struct sturm_twofold y[COUNT_VECTORS];
    simd shift[COUNT_VECTORS];
    simd_int changes[COUNT_VECTORS];
    int64_t k = 0;

    for (int v = 0; v < vectors; v++) {
        shift[v] = *(const simd_unaligned *)(sigma + v * SIMD_LANES);
        y[v] = sturm_twofold_start(shift[v], 1);
        changes[v] = (simd_int){0};
    }
    for (int64_t i = 0; i < m->chunks; i++) {
        for (; k < m->chunk[i].end; k++) {
            for (int v = 0; v < vectors; v++) {
                sturm_twofold_step(shift[v], m->square[k], m->square_rest[k], &y[v], &changes[v]);
            }
        }
        for (int v = 0; v < vectors; v++) {
            if (m->chunk[i].restart) {
                sturm_twofold_restart(shift[v], 1, &y[v], &changes[v]);
            } else {
                sturm_twofold_rescale(1, &y[v]);
            }
        }
    }
    memcpy(above, changes, (size_t)vectors * sizeof *changes);
}

static inline __attribute__((always_inline)) void
count_extended(const struct sturm *m, int vectors, const real *sigma, real_int *above)
{
    struct sturm_extended y[COUNT_VECTORS];
    simd_int negative[COUNT_VECTORS];
    int64_t k = 0;

    for (int v = 0; v < vectors; v++) {
        simd square = {0}, rest = {0};
        simd_int twos = {0};

        for (int lane = 0; lane < SIMD_LANES; lane++) {
            real sigma_rest;
            real_int sigma_twos;

            square[lane] =
                sturm_extended_shift(sigma[v * SIMD_LANES + lane], &sigma_rest, &sigma_twos);
            rest[lane] = sigma_rest;
            twos[lane] = sigma_twos;
        }
        y[v].sigma_square = square;
        y[v].sigma_rest = rest;
        y[v].sigma_twos = twos;
        y[v].mantissa = simd_splat(1);
        y[v].rest = simd_splat(0);
        y[v].exponent = negative[v] = (simd_int){0};
    }
    for (int64_t i = 0; i < m->chunks; i++) {
        for (; k < m->chunk[i].end; k++) {
            for (int v = 0; v < vectors; v++) {
                sturm_extended_step(m->extended_square[k], m->extended_rest[k],
                                    m->extended_inverse[k], m->extended_twos[k], &y[v],
                                    &negative[v]);
            }
        }
        for (int v = 0; v < vectors && m->chunk[i].restart; v++) {
            sturm_extended_restart(&y[v], &negative[v]);
        }
    }
    memcpy(above, negative, (size_t)vectors * sizeof *negative);
}

/* Forms of the counts. */
enum form { PLAIN, TWOFOLD, EXTENDED };

static inline __attribute__((always_inline)) void
count_vectors(const struct sturm *m, enum form form, int vectors, const real *sigma,
              real_int *above)
{
    if (form == PLAIN) {
        count_plain(m, vectors, sigma, above);
    } else if (form == TWOFOLD) {
        count_twofold(m, vectors, sigma, above);
    } else {
        count_extended(m, vectors, sigma, above);
    }
}

/* Counts for up to COUNT_MAX shifts in one form.  Fewer shifts take fewer vectors. */
static void
count_group(const struct sturm *m, enum form form, int64_t count, const real *sigma,
            real_int *above)
{
    const int vectors = count > 2 * SIMD_LANES ? COUNT_VECTORS : count > SIMD_LANES ? 2 : 1;
    const int most = form == PLAIN ? COUNT_VECTORS : EXACT_VECTORS;
    const int together = vectors < most ? vectors : most;

    for (int64_t i = 0; i < vectors * SIMD_LANES; i += together * SIMD_LANES) {
        if (together == 1) {
            count_vectors(m, form, 1, sigma + i, above + i);
        } else if (together == 2) {
            count_vectors(m, form, 2, sigma + i, above + i);
        } else {
            count_vectors(m, form, COUNT_VECTORS, sigma + i, above + i);
        }
    }
}

/* The form for a shift.  It must not depend on the shifts beside it: forms may differ where a shift
   is an eigenvalue. */
static enum form
form_for(const struct sturm *m, int exact, real sigma)
{
    return sigma < m->plain_from || !r_isfinite(m->plain_from) ? EXTENDED : exact ? TWOFOLD : PLAIN;
}

static void
count(const struct sturm *m, int exact, int64_t how_many, const real *sigma, int64_t *above)
{
    int64_t here;

    for (int64_t i = 0; i < how_many; i += here) {
        const enum form form = form_for(m, exact, sigma[i]);
        real shift[COUNT_MAX];
        real_int found[COUNT_MAX];

        for (here = 1; here < COUNT_MAX && i + here < how_many; here++) {
            if (form_for(m, exact, sigma[i + here]) != form) {
                break;
            }
        }
        for (int64_t j = 0; j < here; j++) {
            shift[j] =
                form == EXTENDED ? sigma[i + j] : sturm_scaled_shift(sigma[i + j], m->scale_down);
        }
        for (int64_t j = here; j < COUNT_MAX; j++) {
            shift[j] = shift[here - 1];
        }
        count_group(m, form, here, shift, found);
        for (int64_t j = 0; j < here; j++) {
            above[i + j] = found[j];
        }
    }
}

const struct cpu_kernels KERNELS(TSVD_ISA) = {
    .name = NAME(TSVD_ISA),
    .lanes = SIMD_LANES,
    .lift = lift,
    .rotate = rotate,
    .accumulate = accumulate,
    .outer = outer,
    .dot = dot,
    .dots = dots,
    .qr_lanes = qr_lanes,
    .leaf_wave = leaf_wave,
    .normalize = normalize,
    .sign_of_largest = sign_of_largest,
    .orient = orient,
    .turn = turn,
    .mix = mix,
    .reduce = reduce,
    .svd_lanes = svd_lanes,
    .inverse_lanes = inverse_lanes,
#ifdef SIMD_NATIVE
    .diamond = diamond,
    .group_lanes = GROUP_LANES,
    .skinny = skinny,
#endif
    .multiply = multiply,
    .secular = secular,
    .ratios = ratios,
    .coefficients = coefficients,
    .count = count,
    .twisted_count = twisted_count,
    .twist = twist,
    .twist_workspace = twist_workspace,
    .probe = probe,
};
