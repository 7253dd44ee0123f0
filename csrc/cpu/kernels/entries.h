/*
 * Kernels on vectors of scalars: sums, dot products and rotations of columns, included by kernels.c
 * and complex_kernels.c.
 *
 * A vector register holds SIMD_LANES reals, so complex numbers lie in it as in memory, each in two
 * lanes.  With x' the register with the lanes of each number exchanged, a product a x by a complex
 * number is
 *
 *     (re a, re a) x + (-im a, im a) x',
 *
 * and conj(a) x has the real part of the sum of the lanes of a x, and the imaginary part of their
 * difference, even less odd, of a x'.
 */
#ifndef TSVDI_CPU_KERNELS_ENTRIES_H
#define TSVDI_CPU_KERNELS_ENTRIES_H

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/simd.h"
#include "math/scalar.h"

#define JOIN(a, b) a##b
#define KERNELS(isa) JOIN(tsvdi_kernels_, isa)
#define TEXT(x) #x
#define NAME(isa) TEXT(isa)

static inline simd
load(const real *x)
{
    return *(const simd_unaligned *)x;
}

/* A factor for all numbers of a register. */
struct factor {
    simd re;
#if TSVD_COMPLEX
    simd im; /* with the sign of each lane */
#endif
};

#if TSVD_COMPLEX

/* Exchanges the two lanes of each number. */
TSVD_HD simd
exchanged(simd x)
{
#if defined(SIMD_NATIVE) && TSVD_SINGLE
    return (simd)SIMD_NATIVE(permute)((simd_native)x, 0xB1);
#elif defined(SIMD_NATIVE)
    return (simd)SIMD_NATIVE(permute)((simd_native)x, 0x55 & ((1 << SIMD_LANES) - 1));
#else
    simd y;

    for (int i = 0; i < SIMD_LANES; i++) {
        y[i] = x[i ^ 1];
    }
    return y;
#endif
}

/* x with the sign of the even lanes changed. */
TSVD_HD simd
turned(simd x)
{
    simd_int even;

    for (int i = 0; i < SIMD_LANES; i++) {
        even[i] = i % 2 == 0 ? (real_int)R_SIGN_BIT : 0;
    }
    return num_from_bits(num_bits(x) ^ even);
}

TSVD_HD struct factor
factor_of(scalar a)
{
    return (struct factor){simd_splat(n_real(a)), turned(simd_splat(n_imag(a)))};
}

TSVD_HD simd
times(struct factor a, simd x)
{
    return simd_multiply_add(a.im, exchanged(x), a.re * x);
}

TSVD_HD simd
times_add(struct factor a, simd x, simd sum)
{
    return simd_multiply_add(a.im, exchanged(x), simd_multiply_add(a.re, x, sum));
}

/* The sum of four products a[j] x_j: the lanes of each number are exchanged once for all four. */
TSVD_HD simd
times_four(const scalar *a, const real *x, int64_t stride)
{
    simd re = simd_splat(n_real(a[0])) * load(x), im = simd_splat(n_imag(a[0])) * load(x);

    for (int j = 1; j < 4; j++) {
        const simd next = load(x + j * stride);

        re = simd_multiply_add(simd_splat(n_real(a[j])), next, re);
        im = simd_multiply_add(simd_splat(n_imag(a[j])), next, im);
    }
    return re + turned(exchanged(im));
}

/* The same of four numbers, with the same rounding errors. */
TSVD_HD scalar
times_four_numbers(const scalar *a, const scalar *x, int64_t stride)
{
    scalar re = n_scale(n_real(a[0]), x[0]), im = n_scale(n_imag(a[0]), x[0]);

    for (int j = 1; j < 4; j++) {
        re = n_fma_real(n_real(a[j]), x[j * stride], re);
        im = n_fma_real(n_imag(a[j]), x[j * stride], im);
    }
    return n_make(n_real(re) - n_imag(im), n_imag(re) + n_real(im));
}

#else

TSVD_HD struct factor
factor_of(scalar a)
{
    return (struct factor){simd_splat(a)};
}

TSVD_HD simd
times_add(struct factor a, simd x, simd sum)
{
    return simd_fma(a.re, x, sum);
}

/* The sum of four products a[j] x_j. */
TSVD_HD simd
times_four(const scalar *a, const real *x, int64_t stride)
{
    simd sum = simd_splat(a[0]) * load(x);

    for (int j = 1; j < 4; j++) {
        sum = simd_fma(simd_splat(a[j]), load(x + j * stride), sum);
    }
    return sum;
}

/* The same of four numbers. */
TSVD_HD scalar
times_four_numbers(const scalar *a, const scalar *x, int64_t stride)
{
    scalar sum = n_mul(a[0], x[0]);

    for (int j = 1; j < 4; j++) {
        sum = n_fma(a[j], x[j * stride], sum);
    }
    return sum;
}

#endif

/* The rounding errors of equal terms have one sign, and add up along a sum.  So each four terms are
   summed first, which makes a sum a quarter as long. */
static inline __attribute__((always_inline)) void
accumulate_vectors(int vectors, int64_t terms, const scalar *a, const real *x, int64_t stride,
                   real *y)
{
    simd sum[4];
    int64_t j = 0;

    for (int v = 0; v < vectors; v++) {
        sum[v] = *(simd_unaligned *)(y + v * SIMD_LANES);
    }
    for (; j + 4 <= terms; j += 4) {
        for (int v = 0; v < vectors; v++) {
            sum[v] += times_four(a + j, x + j * stride + v * SIMD_LANES, stride);
        }
    }
    for (; j < terms; j++) {
        for (int v = 0; v < vectors; v++) {
            sum[v] = times_add(factor_of(a[j]), load(x + j * stride + v * SIMD_LANES), sum[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        *(simd_unaligned *)(y + v * SIMD_LANES) = sum[v];
    }
}

static void
accumulate(int64_t count, int64_t terms, const scalar *a, const scalar *x, int64_t stride,
           scalar *y)
{
    const int64_t lanes = SIMD_LANES / N_PARTS;
    int64_t i = 0;

    for (; i + 4 * lanes <= count; i += 4 * lanes) { /* four sums hide an FMA's latency */
        accumulate_vectors(4, terms, a, (const real *)(x + i), N_PARTS * stride, (real *)(y + i));
    }
    for (; i + lanes <= count; i += lanes) {
        accumulate_vectors(1, terms, a, (const real *)(x + i), N_PARTS * stride, (real *)(y + i));
    }
    for (; i < count; i++) {
        int64_t j = 0;

        for (; j + 4 <= terms; j += 4) {
            y[i] += times_four_numbers(a + j, x + j * stride + i, stride);
        }
        for (; j < terms; j++) {
            y[i] = n_fma(a[j], x[j * stride + i], y[i]);
        }
    }
}

/* Up to `vectors` vectors of the entries of each row, the last of which has `last` reals. */
static inline __attribute__((always_inline)) void
outer_vectors(int vectors, int64_t last, int64_t rows, const scalar *a, const real *x,
              int64_t stride, real *y)
{
    simd here[4];

    for (int v = 0; v < vectors; v++) {
        here[v] =
            v < vectors - 1 ? load(x + v * SIMD_LANES) : simd_load_part(x + v * SIMD_LANES, last);
    }
    for (int64_t r = 0; r < rows; r++) {
        const struct factor factor = factor_of(a[r]);
        real *to = y + r * stride;

        for (int v = 0; v + 1 < vectors; v++) {
            simd_unaligned *at = (simd_unaligned *)(to + v * SIMD_LANES);

            *at = times_add(factor, here[v], *at);
        }
        to += (vectors - 1) * SIMD_LANES;
        simd_store_part(to, last, times_add(factor, here[vectors - 1], simd_load_part(to, last)));
    }
}

static void
outer(int64_t rows, int64_t columns, const scalar *a, const scalar *x, int64_t stride, scalar *y)
{
    const int64_t reals = N_PARTS * columns, apart = N_PARTS * stride;
    const real *from = (const real *)x;
    real *to = (real *)y;

    for (int64_t i = 0; i < reals; i += 4 * SIMD_LANES) {
        const int64_t left = reals - i < 4 * SIMD_LANES ? reals - i : 4 * SIMD_LANES;
        const int vectors = (int)((left + SIMD_LANES - 1) / SIMD_LANES);
        const int64_t last = left - (vectors - 1) * SIMD_LANES;

        if (left == 4 * SIMD_LANES) {
            outer_vectors(4, SIMD_LANES, rows, a, from + i, apart, to + i);
        } else if (vectors == 4) {
            outer_vectors(4, last, rows, a, from + i, apart, to + i);
        } else if (vectors == 3) {
            outer_vectors(3, last, rows, a, from + i, apart, to + i);
        } else if (vectors == 2) {
            outer_vectors(2, last, rows, a, from + i, apart, to + i);
        } else {
            outer_vectors(1, last, rows, a, from + i, apart, to + i);
        }
    }
}

/* The sum of the lanes: four short chains, which the compiler makes of parts of the vector. */
static inline __attribute__((always_inline)) real
lane_sum_by_fours(simd x)
{
    enum { CHAINS = SIMD_LANES < 4 ? SIMD_LANES : 4 };
    real part[4] = {0};

    for (int lane = 0; lane < SIMD_LANES; lane++) {
        part[lane % CHAINS] += x[lane];
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

enum {
    /* Entries of a block of a dot product. */
    DOT_BLOCK = 16 * SIMD_LANES,
    /* Sums of 2^DOT_TOP blocks are added one after another: an array of sums for more levels might
       be too large for the stack of a small thread. */
    DOT_TOP = 15
};

#if TSVD_COMPLEX

/* What up to DOT_BLOCK reals add to the dot products of x and `vectors` vectors of a: of the
   products with x, and of those with x exchanged. */
static inline __attribute__((always_inline)) void
dot_block(int vectors, int64_t count, const real *a, int64_t stride, const real *x, simd *sum)
{
    simd with_x[4] = {{0}}, with_other[4] = {{0}}; /* in registers, as no address is taken */
    int64_t i = 0;

    for (; i + SIMD_LANES <= count; i += SIMD_LANES) {
        const simd here = load(x + i), other = exchanged(here);

        for (int v = 0; v < vectors; v++) {
            const simd entry = load(a + v * stride + i);

            with_x[v] = simd_multiply_add(entry, here, with_x[v]);
            with_other[v] = simd_multiply_add(entry, other, with_other[v]);
        }
    }
    if (i < count) {
        const simd here = simd_load_part(x + i, count - i), other = exchanged(here);

        for (int v = 0; v < vectors; v++) {
            const simd entry = simd_load_part(a + v * stride + i, count - i);

            with_x[v] = simd_multiply_add(entry, here, with_x[v]);
            with_other[v] = simd_multiply_add(entry, other, with_other[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        sum[2 * v] = with_x[v];
        sum[2 * v + 1] = with_other[v];
    }
}

static inline __attribute__((always_inline)) scalar
dot_of(const simd *sum)
{
    return n_make(lane_sum_by_fours(sum[0]), -lane_sum_by_fours(turned(sum[1])));
}

#else

/* What up to DOT_BLOCK entries add to the dot products of x and `vectors` vectors of a. */
static inline __attribute__((always_inline)) void
dot_block(int vectors, int64_t count, const real *a, int64_t stride, const real *x, simd *sum)
{
    simd other[4] = {{0}};
    int64_t i = 0;

    for (int v = 0; v < vectors; v++) {
        sum[v] = simd_splat(0);
    }
    for (; i + 2 * SIMD_LANES <= count; i += 2 * SIMD_LANES) {
        const simd low = *(const simd_unaligned *)(x + i);
        const simd high = *(const simd_unaligned *)(x + i + SIMD_LANES);

        for (int v = 0; v < vectors; v++) {
            const real *at = a + v * stride + i;

            sum[v] = simd_fma(*(const simd_unaligned *)at, low, sum[v]);
            other[v] = simd_fma(*(const simd_unaligned *)(at + SIMD_LANES), high, other[v]);
        }
    }
    for (; i < count; i += SIMD_LANES) {
        const int64_t part = count - i < SIMD_LANES ? count - i : SIMD_LANES;
        const simd here = simd_load_part(x + i, part);

        for (int v = 0; v < vectors; v++) {
            sum[v] = simd_fma(simd_load_part(a + v * stride + i, part), here, sum[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        sum[v] += other[v];
    }
}

static inline __attribute__((always_inline)) scalar
dot_of(const simd *sum)
{
    return lane_sum_by_fours(sum[0]);
}

#endif

/* The dot products of x and `vectors` vectors of a, 1 or 4.  The rounding errors of equal terms
   have one sign, and add up along a sum.  So blocks are summed up two by two, and lanes by fours:
   level k of kept[] holds the sum of 2^k blocks where bit k of their number is 1, and level DOT_TOP
   that of all larger groups. */
static inline __attribute__((always_inline)) void
dot_group(int vectors, int64_t count, const real *a, int64_t stride, const real *x, scalar *sum)
{
    const int sums = N_PARTS * vectors;
    const int64_t blocks = count / DOT_BLOCK, whole = blocks * DOT_BLOCK;
    simd kept[DOT_TOP + 1][4 * N_PARTS], part[4 * N_PARTS];

    for (int64_t block = 0; block < blocks; block++) {
        int level = 0;

        dot_block(vectors, DOT_BLOCK, a + block * DOT_BLOCK, stride, x + block * DOT_BLOCK, part);
        for (; level < DOT_TOP && block >> level & 1; level++) {
            for (int v = 0; v < sums; v++) {
                part[v] += kept[level][v];
            }
        }
        for (int v = 0; v < sums && level == DOT_TOP && block >> level > 0; v++) {
            part[v] += kept[level][v];
        }
        memcpy(kept[level], part, (size_t)sums * sizeof *part);
    }
    dot_block(vectors, count - whole, a + whole, stride, x + whole, part);
    for (int level = 0; level <= DOT_TOP && blocks >> level > 0; level++) {
        for (int v = 0; v < sums && (level == DOT_TOP || blocks >> level & 1); v++) {
            part[v] += kept[level][v];
        }
    }
    for (int v = 0; v < vectors; v++) {
        sum[v] = dot_of(part + N_PARTS * v);
    }
}

static void
dots(int64_t count, int64_t vectors, const scalar *a, int64_t stride, const scalar *x, scalar *sum)
{
    const int64_t reals = N_PARTS * count, apart = N_PARTS * stride;
    int64_t j = 0;

    for (; j + 4 <= vectors; j += 4) {
        dot_group(4, reals, (const real *)(a + j * stride), apart, (const real *)x, sum + j);
    }
    for (; j < vectors; j++) {
        dot_group(1, reals, (const real *)(a + j * stride), apart, (const real *)x, sum + j);
    }
}

#if TSVD_COMPLEX

static scalar
dot(int64_t count, const scalar *x, const scalar *y)
{
    scalar sum;

    dots(count, 1, x, 0, y, &sum);
    return sum;
}

static void
mix(int64_t count, real less, scalar forward, scalar back, scalar *x, scalar *y)
{
    const struct factor to_x = factor_of(forward), from_y = factor_of(-back);
    const int64_t lanes = SIMD_LANES / N_PARTS;
    const simd lost = simd_splat(-less);
    int64_t i = 0;

    for (; i + lanes <= count; i += lanes) {
        const simd a = load((const real *)(x + i)), b = load((const real *)(y + i));

        *(simd_unaligned *)(x + i) = a + times_add(to_x, b, lost * a);
        *(simd_unaligned *)(y + i) = b + times_add(from_y, a, lost * b);
    }
    for (; i < count; i++) {
        const scalar a = x[i], b = y[i];

        x[i] = a + n_fma(forward, b, n_scale(-less, a));
        y[i] = b + n_fma(-back, a, n_scale(-less, b));
    }
}

/* The direction of a number, |result| = 1, and *size its magnitude. */
static scalar
direction_of(scalar entry, real *size)
{
    *size = r_sqrt(n_abs2(entry));
    return *size > 0 ? n_make(n_real(entry) / *size, n_imag(entry) / *size) : n_make(1, 0);
}

/* Up to SIMD_LANES / 2 columns, in a register. */
static void
orient_group(int64_t columns, int64_t n, scalar *x, int64_t stride, scalar *sign)
{
    const int64_t part = N_PARTS * columns;
    simd most = simd_splat(0), entry = most, length = most;
    struct factor back = {most, most};

    for (int64_t k = 0; k < n; k++) {
        const simd here = simd_load_part((const real *)(x + k * stride), part);
        const simd other = exchanged(here);
        const simd size = here * here + other * other; /* the same in both lanes of a number */
        const num_mask more = num_less(most, size);

        most = num_select(more, size, most);
        entry = num_select(more, here, entry);
    }
    for (int j = 0; j < columns; j++) {
        real size;

        sign[j] = direction_of(n_make(entry[2 * j], entry[2 * j + 1]), &size);
        back.re[2 * j] = back.re[2 * j + 1] = n_real(sign[j]);
        back.im[2 * j] = n_imag(sign[j]);
        back.im[2 * j + 1] = -n_imag(sign[j]);
        length[2 * j] = size;
    }
    for (int64_t k = 0; k < n; k++) {
        const simd here = simd_load_part((const real *)(x + k * stride), part);
        const simd off = num_abs(here - entry);
        const num_mask is_entry = num_equal(off + exchanged(off), simd_splat(0));

        simd_store_part((real *)(x + k * stride), part,
                        num_select(is_entry, length, times(back, here)));
    }
}

static void
orient(int64_t columns, int64_t n, scalar *x, int64_t stride, scalar *sign)
{
    const int64_t lanes = SIMD_LANES / N_PARTS;

    for (int64_t i = 0; i < columns; i += lanes) {
        orient_group(columns - i < lanes ? columns - i : lanes, n, x + i, stride, sign + i);
    }
}

#else

static real
dot(int64_t count, const real *x, const real *y)
{
    simd sum[4] = {{0}, {0}, {0}, {0}};
    real total = 0;
    int64_t i = 0;

    for (; i + 4 * SIMD_LANES <= count; i += 4 * SIMD_LANES) {
        for (int v = 0; v < 4; v++) {
            int64_t k = i + v * SIMD_LANES;

            sum[v] = simd_fma(*(const simd_unaligned *)(x + k), *(const simd_unaligned *)(y + k),
                              sum[v]);
        }
    }
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (; i < count; i++) {
        total = r_fma(x[i], y[i], total);
    }
    for (int lane = 0; lane < SIMD_LANES; lane++) {
        total += sum[0][lane];
    }
    return total;
}

static void
orient(int64_t columns, int64_t n, real *x, int64_t stride, real *sign)
{
    const simd zero = simd_splat(0), one = simd_splat(1);
    int64_t i = 0;

    for (; i + SIMD_LANES <= columns; i += SIMD_LANES) {
        simd most = zero, entry = zero, turn;

        for (int64_t k = 0; k < n; k++) {
            const simd here = *(const simd_unaligned *)(x + k * stride + i), size = num_abs(here);
            const num_mask more = num_less(most, size);

            most = num_select(more, size, most);
            entry = num_select(more, here, entry);
        }
        turn = num_select(num_less(entry, zero), -one, one);
        for (int64_t k = 0; k < n; k++) {
            *(simd_unaligned *)(x + k * stride + i) *= turn;
        }
        *(simd_unaligned *)(sign + i) = turn;
    }
    for (; i < columns; i++) {
        real entry = 0;

        for (int64_t k = 0; k < n; k++) {
            const real here = x[k * stride + i];

            entry = r_abs(entry) < r_abs(here) ? here : entry;
        }
        sign[i] = entry < 0 ? REAL(-1) : REAL(1);
        for (int64_t k = 0; k < n; k++) {
            x[k * stride + i] *= sign[i];
        }
    }
}

static void
mix(int64_t count, real less, real forward, real back, real *x, real *y)
{
    const simd lost = simd_splat(-less), to_x = simd_splat(forward), from_y = simd_splat(-back);
    int64_t i = 0;

    for (; i + SIMD_LANES <= count; i += SIMD_LANES) {
        const simd a = *(const simd_unaligned *)(x + i), b = *(const simd_unaligned *)(y + i);

        *(simd_unaligned *)(x + i) = a + simd_multiply_add(to_x, b, lost * a);
        *(simd_unaligned *)(y + i) = b + simd_multiply_add(from_y, a, lost * b);
    }
    for (; i < count; i++) {
        const real a = x[i], b = y[i];

        x[i] = a + (forward * b - less * a);
        y[i] = b - (back * a + less * b);
    }
}

#endif

#endif
