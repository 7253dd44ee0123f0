"""The few operations that functions beside the SVD need of arrays, by the arrays' own library."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from . import _arrays
from ._devices import is_several, number_of

EPS = {name: float(np.finfo(name).eps) for name in ("float32", "float64")}
EPS |= {"complex64": EPS["float32"], "complex128": EPS["float64"]}

# A matrix is scaled if its largest entry is outside 2^-FAR to 2^FAR, so that sums of products
# neither overflow nor underflow, nor do squares where a matrix of small entries lies beside one of
# large ones.
_FAR = {EPS["float32"]: 24, EPS["float64"]: 200}

# Up to this order, or as many entries, the SVD is faster than a reduction that is kept.
_SMALL = 64


class Given(NamedTuple):
    """An array of the caller."""

    array: Any  # as a plain array of its library
    space: Any  # the functions of its library
    wrap: Any  # makes a result of the caller's own kind


def given(name, x, device=None):
    """Also refuses what must not be taken for numbers, and several devices for one on a GPU."""
    place = _arrays.place_of(_arrays.DENSE, name, x)
    if place is not None and place >= 0 and device is not None and is_several(device):
        raise TypeError(
            f"{name} lies on a GPU, and this function takes several devices for arrays of the host "
            "only; svd, svdvals and inv of tsvd.linalg take both"
        )
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        return Given(np.asarray(x), np, x.__array_wrap__)
    library = _arrays.library_of(x)
    if library == "jax":
        return Given(x, sys.modules["jax"].numpy, _same)
    if library is not None:
        return Given(x, sys.modules[library], _same)
    if not isinstance(x, np.ndarray) and hasattr(x, "__array_namespace__"):
        return Given(x, x.__array_namespace__(), _same)
    return Given(np.asarray(x), np, _same)


def _same(x):
    return x


def given_both(a_name, a, b_name, b, device):
    """Two arrays of one library."""
    a, b = given(a_name, a, device), given(b_name, b, device)
    if a.space is not b.space:
        raise TypeError(
            f"{a_name} is an array of {a.space.__name__}, and {b_name} of {b.space.__name__}: "
            "they must be of one"
        )
    return a, b


def matrices(name, x):
    """x in the type that it is computed in; refuses vectors and numbers."""
    if x.ndim < 2:
        raise LinAlgError(
            f"{name}: {x.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    return computed(name, x)


def refuse_not_finite(space, name, x):
    if not bool(space.isfinite(x).all()):
        raise ValueError(f"{name} must not hold NaN or infinity")


def is_on_cuda(x, device):
    """Whether x lies on a CUDA device, or the caller names one."""
    if device is not None:
        return number_of(device) >= 0
    place = _arrays.place_of(_arrays.DENSE, "x", x)
    return place is not None and place >= 0


def is_small(x):
    m, n = x.shape[-2:]
    return max(m, n) <= _SMALL or m * n <= _SMALL**2


# ---- types ----


@functools.lru_cache(maxsize=64)
def _name(dtype):
    dtype = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype
    return str(dtype).rpartition(".")[2]


def name_of(x):
    """The name of its dtype: "float64", whatever library it is of."""
    return _name(x.dtype)


def is_complex(x):
    return _name(x.dtype).startswith("complex")


def is_single(x):
    return eps_of(x) == EPS["float32"]


def eps_of(x):
    return EPS[_name(x.dtype)]


def computed(name, x):
    """An array in the type that it is computed in: integers and bool in float64."""
    own = _name(x.dtype)
    if own in EPS:
        return x if not isinstance(x, np.ndarray) or x.dtype.isnative else x.astype(own)
    if own.startswith(("int", "uint", "bool")):
        return _arrays.convert(x, "float64")
    raise TypeError(
        f"{name} has dtype {own}; tsvd computes float64, float32, complex128 and complex64"
    )


def in_type(name, x):
    return x if _name(x.dtype) == name else _arrays.convert(x, name)


def in_one_type(a, b):
    """Both arrays in the type that holds the numbers of both."""
    name = np.result_type(_name(a.dtype), _name(b.dtype)).name
    return in_type(name, a), in_type(name, b)


def in_type_of(like, x):
    """PyTorch multiplies no real matrix by a complex one."""
    return in_type(_name(like.dtype), x)


def wide(x):
    """In double precision."""
    return in_type("complex128" if is_complex(x) else "float64", x)


# ---- operations ----


def adjoint(space, x):
    return space.swapaxes(space.conj(x) if is_complex(x) else x, -1, -2)


def hermitian_part(space, x):
    """The nearest Hermitian matrix. Its entries mirror each other to the last bit."""
    return 0.5 * x + 0.5 * adjoint(space, x)


def on_host(x):
    """A few numbers as an array of NumPy."""
    if not hasattr(x, "tolist"):
        return np.asarray(x)
    return np.reshape(x.tolist(), tuple(x.shape))


def along(name, x, like):
    """A number, or an array of one for each matrix, to be compared with their values, `like`."""
    if isinstance(x, (int, float)):
        return x
    if not hasattr(x, "dtype") or isinstance(x, (np.generic, np.ndarray)):
        x = np.asarray(x)
        if x.dtype.kind not in "biuf":
            raise TypeError(f"{name} must be a real number, or an array of them")
        if x.ndim == 0:
            return x.item()
    batch = tuple(like.shape[:-1])
    if len(x.shape) > len(batch) or any(
        size not in (1, whole) for size, whole in zip(x.shape[::-1], batch[::-1], strict=False)
    ):
        raise ValueError(f"{name} has shape {tuple(x.shape)}, and there are matrices {batch}")
    return (_arrays.from_host(x, like) if isinstance(x, np.ndarray) else x)[..., None]


def least_part(a, of_type):
    """Values of a up to this part of the largest one may be rounding errors."""
    return max(a.shape[-2:]) * eps_of(of_type)


def counting(name, part, s):
    """Which values are above this part of the largest one."""
    return s > s[..., :1] * along(name, part, s)


def _exponents(space, x, axes):
    """The power of two that brings the largest entry along the axes into [1/2, 1).

    0 where that is zero or not finite.
    """
    size = space.maximum(abs(x.real), abs(x.imag)) if is_complex(x) else abs(x)
    largest = space.amax(size, axes)
    return space.where((largest > 0) & (largest < math.inf), space.frexp(largest)[1], 0)


def scaled(space, x, by_column=False):
    """x 2^-k and k, with a power for each matrix: 0 if its entries are not far from 1.

    by_column: with a power for each column, k of shape (..., 1, columns).
    """
    if 0 in x.shape:
        return x, 0
    exponent = _exponents(space, x, -2 if by_column else (-2, -1))
    far = is_far(exponent, x)
    if not bool(far.any()):
        return x, 0
    powers = on_host(space.where(far, exponent, 0))
    powers = powers[..., None, :] if by_column else powers
    return by_power(x, -powers), powers


def scaled_columns(space, x):
    """x with each column times a power of two, so that its largest entry is near 1."""
    if 0 in x.shape:
        return x
    return by_power(x, -on_host(_exponents(space, x, -2))[..., None, :])


def is_far(exponent, x):
    """Whether sums of products of entries as large as 2^exponent need scaling, in the type of x."""
    return abs(exponent) > _FAR[eps_of(x)]


def by_power(x, powers):
    """x 2^k with k for each matrix, also where 2^k is no number of its type."""
    if np.ndim(powers) == 0 and powers == 0:
        return x
    powers = np.reshape(powers, np.shape(powers) + (1,) * (x.ndim - np.ndim(powers)))
    for part in (powers // 2, powers - powers // 2):
        factor = np.asarray(np.ldexp(1.0, part), "float32" if is_single(x) else "float64")
        x = x * _arrays.from_host(factor, x)
    return x
