"""What stands for CuPy where there is no GPU: arrays that mix with none of NumPy's, as its do.

`module` takes the place of the package, and is to be put into `sys.modules` as "cupy". Its arrays
lie on the host, so that tsvd computes them there.
"""

import contextlib
import functools
import types

import numpy as np


def _inner(x):
    """As NumPy's, with lists and tuples of arrays."""
    if isinstance(x, Array):
        return x.array
    if isinstance(x, (list, tuple)):
        return type(x)(map(_inner, x))
    if isinstance(x, np.ndarray) and x.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return x


def _outer(x):
    """As arrays of this module, also where NumPy has a number."""
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(_outer, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(_outer, x))
    return Array(x) if isinstance(x, (np.ndarray, np.generic)) else x


def _call(function, *args, **kwargs):
    args = [_inner(x) for x in args]
    return _outer(function(*args, **{key: _inner(x) for key, x in kwargs.items()}))


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """An array, of which NumPy's functions make others; `get()` is the way to the host."""

    __module__ = "cupy"
    __array_priority__ = 100
    device = contextlib.nullcontext()

    def __init__(self, array):
        self.array = np.asarray(array)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return _call(getattr(ufunc, method), *inputs, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return _call(function, *args, **kwargs)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.array, name)
        if callable(found) and name != "tolist":
            return functools.partial(_call, found)
        return _outer(found)

    def __getitem__(self, key):
        return _outer(self.array[_inner(key)])

    def __setitem__(self, key, value):
        self.array[_inner(key)] = _inner(value)

    def __len__(self):
        return len(self.array)

    def __bool__(self):
        return bool(self.array)

    def __int__(self):
        return int(self.array)

    def __index__(self):
        return self.array.__index__()

    def __float__(self):
        return float(self.array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def get(self):
        return self.array


class _Module(types.ModuleType):
    ndarray = Array

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name)
        return functools.partial(_call, found) if callable(found) else found

    @staticmethod
    def asarray(x, *args, **kwargs):
        return x if isinstance(x, Array) else Array(np.asarray(x, *args, **kwargs))

    @staticmethod
    def asnumpy(x):
        return x.get()

    @staticmethod
    def from_dlpack(x):
        return Array(np.from_dlpack(x))


module = _Module("cupy")
