"""Real and complex numbers in one form: their parts, and types of more digits."""

import numpy as np


def parts(x):
    """Views of the real and the imaginary parts; of real numbers one view."""
    return (x.real, x.imag) if np.iscomplexobj(x) else (x,)


def sizes(x):
    """The magnitudes, of complex numbers those of the larger part. None overflows."""
    return np.maximum(abs(x.real), abs(x.imag))


def double(x):
    """x as float64 or complex128."""
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def long(x):
    """A copy as longdouble or clongdouble."""
    return np.array(x, np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def ldexp(x, k):
    """x times 2^k, in the type of x; where np.ldexp takes no complex numbers, part by part."""
    if not np.iscomplexobj(x):
        return np.ldexp(x, k)
    result = np.empty(np.broadcast_shapes(np.shape(x), np.shape(k)), x.dtype)
    result.real, result.imag = np.ldexp(x.real, k), np.ldexp(x.imag, k)
    return result
