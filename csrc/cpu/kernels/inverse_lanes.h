/*
 * The inverses of small matrices side by side, one in a lane.  Included by kernels.c and
 * complex_kernels.c; struct inverse_lanes is in cpu/kernels/kernels.h.
 *
 * As cpu/inverse/ inverts one matrix: M is scaled (math/balance.h), decomposed with partial
 * pivoting, P S = L U, and S^-1 = U^-1 L^-1 P.  A matrix that is singular, or whose pivots grow, or
 * whose numbers may leave their range, is marked as hard, and what becomes of it is of no use.
 */
#ifndef TSVDI_CPU_KERNELS_INVERSE_LANES_H
#define TSVDI_CPU_KERNELS_INVERSE_LANES_H

#include "cpu/kernels/lanes.h"

/* Sizes below this are left to others: their reciprocals and squares may leave the range. */
#define LANES_SMALL r_pow2(-R_BIAS / 2 + 8)

/* Entry (i, j) of M. */
static inline real *
entry_at(const struct inverse_lanes *q, int64_t i, int64_t j)
{
    return q->m + (i * q->n + j) * SCALAR_LANES;
}

/* The larger part's magnitude, as n_size(). */
static inline num
scalars_size(struct scalars x)
{
#if TSVD_COMPLEX
    return num_max(num_abs(x.re), num_abs(x.im));
#else
    return num_abs(x.re);
#endif
}

static inline num
scalars_abs(struct scalars x)
{
#if TSVD_COMPLEX
    return simd_sqrt(scalars_add_abs2(x, simd_splat(0)));
#else
    return num_abs(x.re);
#endif
}

/* 1 / x */
static inline struct scalars
scalars_inverse(struct scalars x)
{
#if TSVD_COMPLEX
    return scalars_scale(1 / scalars_add_abs2(x, simd_splat(0)), scalars_conj(x));
#else
    return (struct scalars){1 / x.re};
#endif
}

/* The largest sum of magnitudes of a row of M. */
static num
norm_of_lanes(const struct inverse_lanes *q)
{
    num norm = simd_splat(0);

    for (int64_t i = 0; i < q->n; i++) {
        num sum = simd_splat(0);

        for (int64_t j = 0; j < q->n; j++) {
            sum += scalars_abs(scalars_load(entry_at(q, i, j)));
        }
        norm = num_max(sum, norm);
    }
    return norm;
}

/* Scales line i of M, a row or a column, by 2^-exponent, so that its largest size is in [1, 2).
   Returns the exponent, or 0 and a set mask *hard where there is no such size. */
static simd_int
balance_line(const struct inverse_lanes *q, int64_t i, int columns, num_mask *hard)
{
    const num one = simd_splat(1);
    num most = simd_splat(0), factor;
    num_mask small;
    simd_int exponent;

    for (int64_t j = 0; j < q->n; j++) {
        const num size =
            scalars_size(scalars_load(columns ? entry_at(q, j, i) : entry_at(q, i, j)));

        most = num_max(size, most);
    }
    small = num_less(most, simd_splat(LANES_SMALL));
    *hard |= small;
    most = num_select(small, one, most);
    exponent = (num_bits(most) >> R_DIGITS) - R_BIAS;
    factor = num_pow2(-exponent);
    for (int64_t j = 0; j < q->n; j++) {
        real *const at = columns ? entry_at(q, j, i) : entry_at(q, i, j);

        scalars_store(at, scalars_scale(factor, scalars_load(at)));
    }
    return exponent;
}

/* Exchanges two scalars in the lanes of the mask. */
static inline void
exchange_scalars(num_mask mask, real *x, real *y)
{
    const struct scalars a = scalars_load(x), b = scalars_load(y);

    scalars_store(x, scalars_select(mask, b, a));
    scalars_store(y, scalars_select(mask, a, b));
}

/* P S = L U.  The diagonal gets the reciprocals of that of U, *growth the largest entry of U. */
static void
factor_lanes(const struct inverse_lanes *q, num *growth, num_mask *hard)
{
    const int64_t n = q->n;

    for (int64_t k = 0; k < n; k++) {
        num best = scalars_size(scalars_load(entry_at(q, k, k)));
        num pivot = simd_splat((real)k);
        struct scalars inverse;
        num_mask small;

        for (int64_t i = k + 1; i < n; i++) {
            const num size = scalars_size(scalars_load(entry_at(q, i, k)));
            const num_mask more = num_less(best, size);

            best = num_select(more, size, best);
            pivot = num_select(more, simd_splat((real)i), pivot);
        }
        *(num *)(q->pivot + k * SIMD_LANES) = pivot;
        for (int64_t i = k + 1; i < n; i++) {
            const num_mask here = num_equal(pivot, simd_splat((real)i));

            if (num_any(here)) {
                for (int64_t j = 0; j < n; j++) {
                    exchange_scalars(here, entry_at(q, k, j), entry_at(q, i, j));
                }
            }
        }
        small = num_less(best, simd_splat(LANES_SMALL));
        *hard |= small;
        inverse = scalars_select(small, scalars_of(simd_splat(1)),
                                 scalars_inverse(scalars_load(entry_at(q, k, k))));
        for (int64_t j = k; j < n; j++) {
            *growth = num_max(scalars_size(scalars_load(entry_at(q, k, j))), *growth);
        }
        scalars_store(entry_at(q, k, k), inverse);
        for (int64_t i = k + 1; i < n; i++) {
            const struct scalars l = scalars_mul(scalars_load(entry_at(q, i, k)), inverse);
            const struct scalars minus = scalars_scale(simd_splat(-1), l);

            scalars_store(entry_at(q, i, k), l);
            for (int64_t j = k + 1; j < n; j++) {
                real *const at = entry_at(q, i, j);

                scalars_store(
                    at, scalars_fma(minus, scalars_load(entry_at(q, k, j)), scalars_load(at)));
            }
        }
    }
}

/* U := U^-1, column by column from the last, since the columns before it are still needed. */
static void
invert_upper_lanes(const struct inverse_lanes *q)
{
    for (int64_t j = q->n - 1; j > 0; j--) {
        for (int64_t i = j - 1; i >= 0; i--) {
            struct scalars sum = scalars_of(simd_splat(0));

            for (int64_t k = i + 1; k <= j; k++) {
                sum = scalars_fma(scalars_load(entry_at(q, i, k)), scalars_load(entry_at(q, k, j)),
                                  sum);
            }
            sum = scalars_mul(sum, scalars_load(entry_at(q, i, i)));
            scalars_store(entry_at(q, i, j), scalars_scale(simd_splat(-1), sum));
        }
    }
}

/* Y = U^-1 L^-1 P. */
static void
divide_by_lower_lanes(const struct inverse_lanes *q)
{
    const int64_t n = q->n;

    for (int64_t j = n - 2; j >= 0; j--) {
        for (int64_t k = j + 1; k < n; k++) {
            real *const at = entry_at(q, k, j);

            scalars_store(q->column + k * SCALAR_LANES,
                          scalars_scale(simd_splat(-1), scalars_load(at)));
            scalars_store(at, scalars_of(simd_splat(0)));
        }
        for (int64_t i = 0; i < n; i++) {
            struct scalars sum = scalars_load(entry_at(q, i, j));

            for (int64_t k = j + 1; k < n; k++) {
                sum = scalars_fma(scalars_load(entry_at(q, i, k)),
                                  scalars_load(q->column + k * SCALAR_LANES), sum);
            }
            scalars_store(entry_at(q, i, j), sum);
        }
    }
    for (int64_t j = n - 2; j >= 0; j--) {
        const num pivot = *(const num *)(q->pivot + j * SIMD_LANES);

        for (int64_t k = j + 1; k < n; k++) {
            const num_mask here = num_equal(pivot, simd_splat((real)k));

            if (num_any(here)) {
                for (int64_t i = 0; i < n; i++) {
                    exchange_scalars(here, entry_at(q, i, j), entry_at(q, i, k));
                }
            }
        }
    }
}

/* Multiplies entry (i, j) by 2^-(columns_i + rows_j).  Returns the mask of lanes where powers or
   results come close to the end of their range. */
static num_mask
unbalance_lanes(const struct inverse_lanes *q)
{
    const simd_int one = num_bits(simd_splat(1));
    simd_int beyond = {0};
    num largest = simd_splat(0);

    for (int64_t i = 0; i < q->n; i++) {
        for (int64_t j = 0; j < q->n; j++) {
            const simd_int wanted = -*(const simd_int *)(q->columns + i * SIMD_LANES) -
                                    *(const simd_int *)(q->rows + j * SIMD_LANES);
            const simd_int power = num_int_clamp(wanted, -R_BIAS / 2, R_BIAS / 2);
            real *const at = entry_at(q, i, j);
            const struct scalars x = scalars_scale(num_pow2(power), scalars_load(at));

            scalars_store(at, x);
            beyond |= (simd_int)(wanted != power);
            largest = num_max(scalars_size(x), largest);
        }
    }
    return (num_mask)(num_less(simd_splat(0), num_from_bits(beyond & one)) |
                      ~num_less(largest, simd_splat(r_pow2(R_BIAS - 1))));
}

static void
inverse_lanes(const struct inverse_lanes *q)
{
    const int64_t n = q->n;
    num_mask hard = num_less(simd_splat(0), simd_splat(0));
    num growth = simd_splat(0), most = simd_splat(0);

    scale_lanes(n * n, q->m, q->exponent, q->kind);
    *(num *)q->norm = norm_of_lanes(q);
    for (int64_t i = 0; i < n; i++) {
        *(simd_int *)(q->rows + i * SIMD_LANES) = balance_line(q, i, 0, &hard);
    }
    for (int64_t i = 0; i < n; i++) {
        *(simd_int *)(q->columns + i * SIMD_LANES) = balance_line(q, i, 1, &hard);
    }
    for (int64_t i = 0; i < n * n; i++) {
        most = num_max(scalars_size(scalars_load(q->m + i * SCALAR_LANES)), most);
    }
    factor_lanes(q, &growth, &hard);
    hard |= ~num_less_equal(growth, (4 * (real)n) * most); /* see growth_is_large() */
    invert_upper_lanes(q);
    divide_by_lower_lanes(q);
    hard |= unbalance_lanes(q);
    *(num *)q->inverse_norm = norm_of_lanes(q);
    /* what remains is the power that the whole of M was scaled by */
    for (int64_t i = 0; i < n; i++) {
        *(simd_int *)(q->rows + i * SIMD_LANES) = *(const simd_int *)q->exponent;
        *(simd_int *)(q->columns + i * SIMD_LANES) = (simd_int){0};
    }
    hard |= unbalance_lanes(q);
    *(simd_int *)q->hard = num_flags(hard, 1);
}

#endif
