/*
 * Complex numbers of CUDA sources, which cannot use those of C: nvcc knows no _Complex.  They lie
 * in memory as those of C do.
 *
 * As those, they have sums, differences, == and quotients by a real.  They have no operator *: what
 * multiplies them spells whether it takes conjugates, with the functions of math/scalar.h.
 */
#ifndef TSVDI_COMPLEX_H
#define TSVDI_COMPLEX_H

#ifndef __CUDACC__
#error "math/complex.h is for CUDA sources"
#endif

#define COMPLEX_HD __forceinline__ __host__ __device__

template <typename part> struct alignas(2 * sizeof(part)) complex_of {
    part re, im;

    complex_of() = default;

    COMPLEX_HD constexpr complex_of(part real_part, part imaginary_part = 0)
        : re(real_part), im(imaginary_part)
    {
    }

    COMPLEX_HD complex_of &operator+=(complex_of x)
    {
        re += x.re;
        im += x.im;
        return *this;
    }

    COMPLEX_HD complex_of &operator-=(complex_of x)
    {
        re -= x.re;
        im -= x.im;
        return *this;
    }

    friend COMPLEX_HD complex_of operator+(complex_of a, complex_of b)
    {
        return {a.re + b.re, a.im + b.im};
    }

    friend COMPLEX_HD complex_of operator-(complex_of a, complex_of b)
    {
        return {a.re - b.re, a.im - b.im};
    }

    friend COMPLEX_HD complex_of operator-(complex_of a)
    {
        return {-a.re, -a.im};
    }

    friend COMPLEX_HD complex_of operator/(complex_of a, part b)
    {
        return {a.re / b, a.im / b};
    }

    friend COMPLEX_HD bool operator==(complex_of a, complex_of b)
    {
        return a.re == b.re && a.im == b.im;
    }
};

#endif
