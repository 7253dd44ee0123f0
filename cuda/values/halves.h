/*
 * Sturm counts from both ends of a matrix at once: half of the threads count down from the top, the
 * other half up from the bottom, and they meet in the middle.  A count takes half the time, unless
 * other counts keep the device busy.
 *
 * The rows 0 .. n - 1 of the Golub-Kahan form give the leading minors r_k of sigma I - T, its rows
 * n .. 2n - 1 the trailing ones t_k, the k-th from the bottom.  Between row n - 1 and row n is the
 * middle entry b.  With it
 *
 *     det = r_n t_n - b^2 r_{n-1} t_{n-1}
 *
 * is the characteristic polynomial.  Eliminate rows 0 .. n - 1 from the top and 2n - 1 .. n + 1
 * from the bottom: their pivots are the ratios r_k / r_{k-1} and t_k / t_{k-1}, k < n at the
 * bottom, and the last pivot, of row n, is det / (r_n t_{n-1}).  By Sylvester's law of inertia as
 * many eigenvalues lie above sigma as pivots are negative (Parlett & Dhillon, Linear Algebra Appl.
 * 267 (1997), call it a twisted factorization).  The rounding errors of det are a small relative
 * change of b, of up to twice the size of those of other entries.
 */
#ifndef TSVDI_CUDA_VALUES_HALVES_H
#define TSVDI_CUDA_VALUES_HALVES_H

#include "values/counts.h"

/* Points of a block, each of which takes two threads. */
enum { HALVES_POINTS = COUNT_THREADS / 2 };

/* Each join() completes a count over the middle entry, of a matrix of order n.  at->above is the
   sum of both halves' changes of sign. */

static __device__ __forceinline__ void
join(struct plain_form top, struct plain_form bottom, double square, int64_t n,
     struct evaluation *at)
{
    at->above += plain_join(&top.x, bottom.x, square, n);
    top.end(at);
}

/* x y in twice the digits. */
static __device__ __forceinline__ real
twofold_product(real x, real x_rest, real y, real y_rest, real *rest)
{
    const real product = x * y;

    *rest = r_fma(x, y, -product) + r_fma(x, y_rest, x_rest * y);
    return product;
}

/* x - y in twice the digits, by Knuth's exact sum.  Returns the larger part. */
static __device__ __forceinline__ real
twofold_difference(real x, real x_rest, real y, real y_rest)
{
    const real sum = x - y, part = sum - x;

    return sum + (((x - (sum - part)) - (y + part)) + (x_rest - y_rest));
}

static __device__ __forceinline__ void
join(struct twofold_form top, struct twofold_form bottom, struct twofold_entry b, int64_t,
     struct evaluation *at)
{
    struct sturm_twofold &x = top.y, &y = bottom.y;
    const uint32_t change = upper_of((double)y.r) ^ upper_of((double)y.before);
    real one, one_rest, other, other_rest;

    if (b.square == 0) { /* two parts end here */
        at->above += sturm_zero_counts(x.r, x.before) + sturm_zero_counts(y.r, y.before);
    } else {
        sturm_twofold_rescale(twofold_form::pair_size(), &x);
        sturm_twofold_rescale(twofold_form::pair_size(), &y);
        one = twofold_product(x.r, x.r_rest, y.r, y.r_rest, &one_rest);
        other = twofold_product(b.square, b.rest, x.before, x.before_rest, &other_rest);
        other = twofold_product(other, other_rest, y.before, y.before_rest, &other_rest);
        one = twofold_difference(one, one_rest, other, other_rest);
        at->above +=
            x.r == 0 && y.before == 0
                ? zero_pivots_count((double)x.before, (double)y.r)
                : last_pivot_counts((double)one, upper_of((double)x.r), upper_of((double)y.before));
        at->above -= (int64_t)(change >> 31); /* that of t_n / t_{n-1} */
    }
    /* brackets are so narrow here that a guess would save nothing */
    at->value = (double)NAN;
    at->exponent = 0;
}

/* (x + rest)^n, of a magnitude near [1, 2) if x is in it; its exponent is added to *exponent,
   modulo 2^32. */
static __device__ __forceinline__ double
power_of(double x, double rest, int64_t n, int32_t *exponent)
{
    double power = 1, power_rest = 0;
    uint32_t twos = 0; /* exponent of the square that x has become */

    for (; n > 0; n /= 2) {
        double product = power * x, square = x * x;

        if (n % 2 != 0) {
            power_rest = fma(power, x, -product) + fma(power, rest, power_rest * x);
            power = product;
            *exponent = (int32_t)((uint32_t)*exponent + twos + (power >= 2));
            power_rest *= power >= 2 ? 0.5 : 1;
            power *= power >= 2 ? 0.5 : 1;
        }
        rest = fma(x, x, -square) + 2 * x * rest;
        twos = 2 * twos + (square >= 2);
        rest *= square >= 2 ? 0.5 : 1;
        x = square >= 2 ? square / 2 : square;
    }
    return power + power_rest;
}

/* y of this form is r_k / (sigma r_{k-1}).  So the last pivot has the sign of y_top y_bottom -
   (b / sigma)^2, divided by y_top.  The polynomial is sigma^2n times the product of all y, the last
   one changed accordingly. */
static __device__ __forceinline__ void
join(struct extended_form top, struct extended_form bottom, struct extended_entry b, int64_t n,
     struct evaluation *at)
{
    struct sturm_extended &x = top.y, &y = bottom.y;
    const double square = (double)x.sigma_square; /* in [1, 4), with the rest */
    const double half = square >= 2 ? 0.5 : 1;
    int32_t exponent = 0;

    if (b.square == 0) { /* two parts end here */
        sturm_extended_restart(&x, &top.above);
        sturm_extended_restart(&y, &bottom.above);
        at->above += top.above + bottom.above;
    } else {
        const num_small power = NUM_SMALL(b.twos) - x.sigma_twos - x.exponent - y.exponent;
        const num scale = num_pow2(num_small_clamp(power, -STURM_CLAMP, STURM_CLAMP));
        real rest, last;
        real product = twofold_product(x.mantissa, x.rest, y.mantissa, y.rest, &rest);

        product = twofold_product(product, rest, x.sigma_square, x.sigma_rest, &rest);
        last = twofold_difference(product, rest, b.square * scale, b.rest * scale);
        at->above += last_pivot_counts((double)last, upper_of((double)x.mantissa), 0);
        at->above -= num_sign_bit(num_bits(y.mantissa)); /* that of t_n / t_{n-1} */
        top.multiply((double)(last / product), num_small_max(power - STURM_CLAMP, 0));
    }
    at->value = top.product * bottom.product *
                power_of(square * half, (double)x.sigma_rest * half, n, &exponent);
    /* modulo 2^32, as evaluations are compared */
    at->exponent =
        (int32_t)((uint32_t)exponent + (uint32_t)top.exponent + (uint32_t)bottom.exponent +
                  (uint32_t)n * ((uint32_t)x.sigma_twos + (half < 1)));
}

/* Half of a count. */
template <class Form> struct half_count {
    Form shift;
    int64_t above;
};

/* Shared memory of a block. */
template <class Form> struct halves_memory {
    struct tile<Form> tiles[2][2];
    struct half_count<Form> bottom[HALVES_POINTS];
};

/* Counts at the shift at[0].at, which a thread of the first half of the block shares with its
   fellow in the second half.  The whole block calls this.  Returns whether the thread has the
   result. */
template <class Form>
static __device__ __forceinline__ bool
evaluate_halves(const struct device_sturm &m, struct halves_memory<Form> &memory,
                struct evaluation (&at)[1])
{
    const struct device_entries *const sides[2] = {&m.top, &m.bottom};
    const int side = (int)threadIdx.x / HALVES_POINTS, fellow = (int)threadIdx.x % HALVES_POINTS;
    Form shift[1];

    shift[0].start(r_from_bits(at[0].at), matrix_scale_of(*m.d_size));
    at[0].above = 0;
    pass_tiles(sides, side, m.n - 1, memory.tiles, shift, at);
    if (side != 0) {
        memory.bottom[fellow].shift = shift[0];
        memory.bottom[fellow].above = at[0].above;
    }
    __syncthreads();
    if (side == 0) {
        at[0].above += memory.bottom[fellow].above;
        join(shift[0], memory.bottom[fellow].shift, Form::entries(m.top)[m.n - 1], m.n, &at[0]);
    }
    return side == 0;
}

#endif
