/*
 * The type of the entries of dense matrices: real, or complex.
 *
 * scalar is the type of the entries of A, U and Vh, of W, of reflectors and of the vectors that
 * they are applied to; real is that of values, of B and of norms.  A source over scalar is compiled
 * for four types, by TSVD_SINGLE and TSVD_COMPLEX.  TSVD_S(name) gives its external names a suffix
 * for the scalar, as TSVD_T(name) does for the real type alone.  SCALAR_DTYPE, REAL_DTYPE and
 * DOUBLE_DTYPE, of scalar_double, are the dtypes of tsvd.h.
 *
 * Sums, differences, == and quotients by a real are written with the plain operators, products with
 * the functions of this file.  Those know no NaN rules, as the operator * of complex.h does.  For a
 * real scalar each is the plain operation.
 */
#ifndef TSVDI_SCALAR_H
#define TSVDI_SCALAR_H

#include "math/real.h"

#ifndef TSVD_COMPLEX
#define TSVD_COMPLEX 0
#endif

#if TSVD_COMPLEX
#ifdef __CUDACC__
#include "math/complex.h"
typedef complex_of<double> scalar_double; /* in the precision of double */
typedef complex_of<real> scalar;
#else
typedef double _Complex scalar_double;
#if TSVD_SINGLE
typedef float _Complex scalar;
#else
typedef double _Complex scalar;
#endif
#endif
enum { N_PARTS = 2 }; /* reals that a scalar is made of */
#if TSVD_SINGLE
#define TSVD_S(name) name##_c64
#define SCALAR_DTYPE TSVD_COMPLEX64
#define REAL_DTYPE TSVD_FLOAT32
#else
#define TSVD_S(name) name##_c128
#define SCALAR_DTYPE TSVD_COMPLEX128
#define REAL_DTYPE TSVD_FLOAT64
#endif
#define DOUBLE_DTYPE TSVD_COMPLEX128
#else
typedef real scalar;
typedef double scalar_double;
enum { N_PARTS = 1 };
#define TSVD_S(name) TSVD_T(name)
#define SCALAR_DTYPE (TSVD_SINGLE ? TSVD_FLOAT32 : TSVD_FLOAT64)
#define REAL_DTYPE SCALAR_DTYPE
#define DOUBLE_DTYPE TSVD_FLOAT64
#endif

#if TSVD_COMPLEX

#ifdef __CUDACC__
#define N_REAL(x) (x).re
#define N_IMAG(x) (x).im
#else
#define N_REAL(x) __real__(x)
#define N_IMAG(x) __imag__(x)
#endif

TSVD_HD real
n_real(scalar x)
{
    return N_REAL(x);
}

TSVD_HD real
n_imag(scalar x)
{
    return N_IMAG(x);
}

TSVD_HD scalar
n_make(real re, real im)
{
    scalar x;

    N_REAL(x) = re;
    N_IMAG(x) = im;
    return x;
}

TSVD_HD scalar
n_conj(scalar x)
{
    return n_make(n_real(x), -n_imag(x));
}

/* r x for a real factor. */
TSVD_HD scalar
n_scale(real r, scalar x)
{
    return n_make(r * n_real(x), r * n_imag(x));
}

/* a b + c in reals, fused where the processor can: without such an instruction r_fma() calls a
   function. */
TSVD_HD real
n_multiply_add(real a, real b, real c)
{
#if defined(__FMA__) || defined(__CUDA_ARCH__)
    return r_fma(a, b, c);
#else
    return a * b + c;
#endif
}

TSVD_HD scalar
n_fma(scalar a, scalar b, scalar c)
{
    const real re = n_multiply_add(n_real(a), n_real(b), n_real(c));
    const real im = n_multiply_add(n_real(a), n_imag(b), n_imag(c));

    return n_make(n_multiply_add(-n_imag(a), n_imag(b), re),
                  n_multiply_add(n_imag(a), n_real(b), im));
}

/* a b + c for a real factor a. */
TSVD_HD scalar
n_fma_real(real a, scalar b, scalar c)
{
    return n_make(n_multiply_add(a, n_real(b), n_real(c)), n_multiply_add(a, n_imag(b), n_imag(c)));
}

TSVD_HD scalar
n_mul(scalar a, scalar b)
{
    return n_make(n_multiply_add(-n_imag(a), n_imag(b), n_real(a) * n_real(b)),
                  n_multiply_add(n_imag(a), n_real(b), n_real(a) * n_imag(b)));
}

/* |x|^2, which may overflow or underflow. */
TSVD_HD real
n_abs2(scalar x)
{
    return n_multiply_add(n_real(x), n_real(x), n_imag(x) * n_imag(x));
}

/* |x|^2 + sum. */
TSVD_HD real
n_add_abs2(scalar x, real sum)
{
    return n_multiply_add(n_real(x), n_real(x), n_multiply_add(n_imag(x), n_imag(x), sum));
}

/* The larger part's magnitude: |x|, or less by a factor of sqrt(2) at most. */
TSVD_HD real
n_size(scalar x)
{
    return r_max(r_abs(n_real(x)), r_abs(n_imag(x)));
}

/* |x|, in the range of numbers wherever it is. */
TSVD_HD real
n_abs(scalar x)
{
    const real size = n_size(x), other = r_min(r_abs(n_real(x)), r_abs(n_imag(x))) / size;

    return size == 0 || !r_isfinite(size) ? size : size * r_sqrt(n_multiply_add(other, other, 1));
}

/* What a quotient by b != 0 is made with: a / b = (a up) up2 times inverse. */
struct n_divisor {
    real up, up2; /* powers of two that bring b near 1 */
    scalar inverse;
};

TSVD_HD struct n_divisor
n_divisor_of(scalar b)
{
    struct n_divisor by;
    real_int exponent;
    scalar near;

    (void)r_split(n_size(b), &exponent);
    by.up = r_pow2((int)-(exponent / 2));
    by.up2 = r_pow2((int)-(exponent - exponent / 2));
    near = n_scale(by.up2, n_scale(by.up, b));
    by.inverse = n_conj(near) / n_abs2(near);
    return by;
}

TSVD_HD scalar
n_divide(scalar a, struct n_divisor by)
{
    return n_mul(n_scale(by.up2, n_scale(by.up, a)), by.inverse);
}

#else

TSVD_HD real
n_real(scalar x)
{
    return x;
}

TSVD_HD scalar
n_conj(scalar x)
{
    return x;
}

TSVD_HD scalar
n_scale(real r, scalar x)
{
    return r * x;
}

TSVD_HD scalar
n_fma(scalar a, scalar b, scalar c)
{
    return r_fma(a, b, c);
}

TSVD_HD scalar
n_fma_real(real a, scalar b, scalar c)
{
    return r_fma(a, b, c);
}

TSVD_HD scalar
n_mul(scalar a, scalar b)
{
    return a * b;
}

TSVD_HD real
n_abs2(scalar x)
{
    return x * x;
}

TSVD_HD real
n_add_abs2(scalar x, real sum)
{
    return r_fma(x, x, sum);
}

TSVD_HD real
n_size(scalar x)
{
    return r_abs(x);
}

TSVD_HD real
n_abs(scalar x)
{
    return r_abs(x);
}

struct n_divisor {
    real value;
};

TSVD_HD struct n_divisor
n_divisor_of(scalar b)
{
    const struct n_divisor by = {b};

    return by;
}

TSVD_HD scalar
n_divide(scalar a, struct n_divisor by)
{
    return a / by.value;
}

#endif

/* The bits of n_size(x), which are ordered as sizes are; those of infinity and NaN are above the
   others. */
TSVD_HD real_int
n_size_bits(scalar x)
{
    const real_int re = r_bits(n_real(x)) & ~(real_int)R_SIGN_BIT;
#if TSVD_COMPLEX
    const real_int im = r_bits(n_imag(x)) & ~(real_int)R_SIGN_BIT;

    return re > im ? re : im;
#else
    return re;
#endif
}

#endif
