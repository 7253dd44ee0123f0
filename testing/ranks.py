"""Matrices of every type and rank for the tests of what rests on singular values, and their norms
in extended precision.
"""

import numpy as np

from testing.parts import long

TYPES = ("float32", "float64", "complex64", "complex128")


def numbers(shape, dtype="float64", seed=0):
    """Entries standard normal."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def of_rank(rank, shape, dtype, seed=0):
    """A matrix whose values are 1 to 2, and zeros."""
    (*batch, m, n), wide = shape, "complex128" if "complex" in dtype else "float64"
    U = np.linalg.qr(numbers((*batch, m, rank), wide, [seed, 1]))[0]
    V = np.linalg.qr(numbers((*batch, n, rank), wide, [seed, 2]))[0]
    return (U * np.linspace(2, 1, rank) @ adjoint(V)).astype(dtype)


def adjoint(x):
    return x.swapaxes(-1, -2).conj()


def size(x):
    """The Frobenius norms of matrices, in long double."""
    x = long(x)
    return np.sqrt((x.real**2 + x.imag**2).sum((-2, -1)))


def loss(x):
    """How far the columns of matrices are from orthonormal."""
    x = long(x)
    return size(adjoint(x) @ x - np.eye(x.shape[-1]))
