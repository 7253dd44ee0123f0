/*
 * Scalars of matrices side by side, one in each lane, for svd_lanes.h and inverse_lanes.h.
 */
#ifndef TSVDI_CPU_KERNELS_LANES_H
#define TSVDI_CPU_KERNELS_LANES_H

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/simd.h"
#include "math/scalar.h"

/* The largest of the lanes' whole numbers. */
static inline int64_t
num_most(num x)
{
    real most = x[0];

    for (int lane = 1; lane < SIMD_LANES; lane++) {
        most = r_max(x[lane], most);
    }
    return (int64_t)most;
}

/* ---- a scalar in each lane: its parts lie one after the other, in a register each ---- */

enum { SCALAR_LANES = N_PARTS * SIMD_LANES }; /* reals of a scalar in all lanes */

#if TSVD_COMPLEX

struct scalars {
    num re, im;
};

TSVD_HD struct scalars
scalars_of(num re)
{
    return (struct scalars){re, simd_splat(0)};
}

TSVD_HD struct scalars
scalars_load(const real *x)
{
    return (struct scalars){*(const num *)x, *(const num *)(x + SIMD_LANES)};
}

TSVD_HD void
scalars_store(real *to, struct scalars x)
{
    *(num *)to = x.re;
    *(num *)(to + SIMD_LANES) = x.im;
}

TSVD_HD struct scalars
scalars_add(struct scalars a, struct scalars b)
{
    return (struct scalars){a.re + b.re, a.im + b.im};
}

TSVD_HD struct scalars
scalars_scale(num factor, struct scalars x)
{
    return (struct scalars){factor * x.re, factor * x.im};
}

TSVD_HD struct scalars
scalars_conj(struct scalars x)
{
    return (struct scalars){x.re, -x.im};
}

/* a b + c */
TSVD_HD struct scalars
scalars_fma(struct scalars a, struct scalars b, struct scalars c)
{
    const num re = simd_multiply_add(a.re, b.re, c.re), im = simd_multiply_add(a.re, b.im, c.im);

    return (struct scalars){simd_multiply_add(-a.im, b.im, re), simd_multiply_add(a.im, b.re, im)};
}

/* |x|^2 + sum */
TSVD_HD num
scalars_add_abs2(struct scalars x, num sum)
{
    return simd_multiply_add(x.re, x.re, simd_multiply_add(x.im, x.im, sum));
}

/* a where the mask is set, else b. */
TSVD_HD struct scalars
scalars_select(num_mask mask, struct scalars a, struct scalars b)
{
    return (struct scalars){num_select(mask, a.re, b.re), num_select(mask, a.im, b.im)};
}

#else

struct scalars {
    num re;
};

TSVD_HD struct scalars
scalars_of(num re)
{
    return (struct scalars){re};
}

TSVD_HD struct scalars
scalars_load(const real *x)
{
    return (struct scalars){*(const num *)x};
}

TSVD_HD void
scalars_store(real *to, struct scalars x)
{
    *(num *)to = x.re;
}

TSVD_HD struct scalars
scalars_add(struct scalars a, struct scalars b)
{
    return (struct scalars){a.re + b.re};
}

TSVD_HD struct scalars
scalars_scale(num factor, struct scalars x)
{
    return (struct scalars){factor * x.re};
}

TSVD_HD struct scalars
scalars_conj(struct scalars x)
{
    return x;
}

TSVD_HD struct scalars
scalars_fma(struct scalars a, struct scalars b, struct scalars c)
{
    return (struct scalars){simd_multiply_add(a.re, b.re, c.re)};
}

TSVD_HD num
scalars_add_abs2(struct scalars x, num sum)
{
    return simd_multiply_add(x.re, x.re, sum);
}

TSVD_HD struct scalars
scalars_select(num_mask mask, struct scalars a, struct scalars b)
{
    return (struct scalars){num_select(mask, a.re, b.re)};
}

#endif

TSVD_HD struct scalars
scalars_mul(struct scalars a, struct scalars b)
{
    return scalars_fma(a, b, scalars_of(simd_splat(0)));
}

/* ---- entries ---- */

/* Scales `entries` scalars of w by 2^-exponent: the largest part of one comes into [1, 2).  Makes
   those of the lanes zero that hold NaN or infinity.  kind: ORDINARY, ZERO or NONFINITE. */
static void
scale_lanes(int64_t entries, real *w, real_int *exponents, real_int *kind)
{
    const num zero = simd_splat(0);
    const int64_t numbers = entries * SCALAR_LANES;
    const simd_int none = {0};
    simd_int bits = none, exponent, half;
    num largest, low, high;
    num_mask finite;

    for (int64_t i = 0; i < numbers; i += SIMD_LANES) {
        bits = num_int_max(num_bits(*(const num *)(w + i)) & ~(real_int)R_SIGN_BIT, bits);
    }
    largest = num_from_bits(bits);
    finite = num_less(largest, num_from_bits(none + (real_int)R_INFINITY_BITS));
    *(simd_int *)kind = NONFINITE - num_flags(finite, NONFINITE - ORDINARY) +
                        num_flags(num_equal(largest, zero), ZERO - ORDINARY);
    largest = num_select(finite & num_less(zero, largest), largest, simd_splat(1));
    /* the exponent of a denormal number is found from a normal multiple of it */
    high = num_select(num_less(largest, simd_splat(r_pow2(1 - R_BIAS))),
                      simd_splat(r_pow2(R_DIGITS + 1)), simd_splat(1));
    exponent = (num_bits(largest * high) >> R_DIGITS) - (num_bits(high) >> R_DIGITS);
    half = exponent >> 1; /* one power may be out of range */
    low = num_pow2(-half);
    high = num_pow2(half - exponent);
    *(simd_int *)exponents = exponent;
    for (int64_t i = 0; i < numbers; i += SIMD_LANES) {
        num *const at = (num *)(w + i);

        *at = num_select(finite, *at * low * high, zero);
    }
}

#endif
