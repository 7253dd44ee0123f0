"""The few operations that functions beside the SVD need of arrays, by the arrays' own library."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NamedTuple

import numpy as np

from . import _arrays

_EPS = {name: float(np.finfo(name).eps) for name in ("float32", "float64")}
_EPS |= {"complex64": _EPS["float32"], "complex128": _EPS["float64"]}


class Given(NamedTuple):
    """An array of the caller."""

    array: Any  # as a plain array of its library
    space: Any  # the functions of its library
    wrap: Any  # makes a result of the caller's own kind


def given(name, x):
    """Also refuses what must not be taken for an array of numbers."""
    _arrays.place_of(_arrays.DENSE, name, x)
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


@functools.lru_cache(maxsize=64)
def _name(dtype):
    return str(dtype).rpartition(".")[2]


def type_name(x):
    """The name of an array's dtype, as NumPy has it."""
    return _name(x.dtype)


def is_complex(x):
    return _name(x.dtype).startswith("complex")


def eps_of(x):
    return _EPS[type_name(x)]


def adjoint(space, x):
    return space.swapaxes(space.conj(x) if is_complex(x) else x, -1, -2)


def along(x, like):
    """A number or an array of one for each matrix, to be compared with the values of matrices."""
    if isinstance(x, (int, float)):
        return x
    if isinstance(x, np.generic) or type(x) in _arrays.PLAIN:
        x = np.asarray(x)
        x = x.item() if x.ndim == 0 else _arrays.from_host(x, like)
    return x if isinstance(x, (int, float)) else x[..., None]


def inverted(space, s, cutoff):
    """1 / s where s is above the cutoff, and else 0."""
    with np.errstate(over="ignore"):
        return 1 / space.where(s > cutoff, s, math.inf)


def in_one_type(a, b):
    """Both arrays in the type that both have room in; integers in float64."""
    if type_name(a) == type_name(b) and type_name(a) in _EPS:
        return a, b
    kinds = [np.dtype(type_name(x)) if type_name(x) in _EPS else np.dtype(float) for x in (a, b)]
    dtype = np.result_type(*kinds).name
    return tuple(_converted(x, dtype) for x in (a, b))


def in_type_of(like, x):
    """PyTorch multiplies no real matrix by a complex one."""
    return _converted(x, type_name(like))


def _converted(x, name):
    return x if type_name(x) == name else _arrays.convert(x, name)


def check_hermitian(x, hermitian):
    if hermitian and x.shape[-1] != x.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
