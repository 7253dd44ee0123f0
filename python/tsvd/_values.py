"""What the singular values alone tell of a matrix: its rank, its condition, its norms."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.linalg import LinAlgError

from . import _arrays, _space
from ._dense import check_options, inverse, svd, svdvals


def matrix_rank(A, tol=None, hermitian=False, *, rtol=None, device=None, threads=None):
    """Rank of dense matrices: how many singular values are above a threshold.

    The first three arguments, `rtol` and the result are those of
    `numpy.linalg.matrix_rank`.

    Parameters
    ----------
    A : array_like, shape (..., m, n) or (n,)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
        The rank of a vector is 1, or 0 if it is zero.
    tol : float or array_like, shape (...), optional
        The threshold, in the units of A.
    hermitian : bool
        The matrices are square and said to be symmetric; all entries are read.
    rtol : float or array_like, shape (...), optional
        The threshold over the largest value. None, without `tol`: ``max(m, n) eps``,
        about as much as rounding moves a value.
    device, threads
        As in `svd`.

    Returns
    -------
    int or ndarray of int, shape (...)
        The ranks; an array of the library of A.

    Raises
    ------
    ValueError
        `tol` and `rtol` are both given; as of `svd`.
    LinAlgError, TypeError, MemoryError, RuntimeError
        As of `svd`.

    Notes
    -----
    Work: that of `svdvals`.

    Examples
    --------
    >>> from tsvd import linalg
    >>> int(linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    1
    """
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A, space, _ = _space.given("A", A, device)
    if A.ndim < 2:
        check_options(device, threads)
        rank = (A != 0).any().sum()
        return int(rank) if space is np else rank
    s = svd(A, compute_uv=False, hermitian=hermitian, device=device, threads=threads)
    if tol is not None:
        return (s > _space.along("tol", tol, s)).sum(-1)
    return _space.counting("rtol", _space.least_part(A, s) if rtol is None else rtol, s).sum(-1)


def cond(x, p=None, *, device=None, threads=None):
    """Condition number of dense matrices.

    The first two arguments and the result are those of `numpy.linalg.cond`.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    p : {None, 2, -2, 1, -1, inf, -inf, "fro", "nuc"}
        The norm; see `norm`. None and 2: the largest singular value over the
        smallest one, -2: the reverse. By other norms the matrices are square, and
        the number is that of the matrix times that of its inverse.
    device, threads
        As in `svd`.

    Returns
    -------
    float or ndarray, shape (...)
        The numbers: infinity or a large number for singular matrices, and NaN for
        those that hold NaN; an array of the library of x.

    Raises
    ------
    LinAlgError
        x is empty or has less than two dimensions; matrices are not square, and p
        is none of the first three.
    TypeError, ValueError, MemoryError, RuntimeError
        As of `svd`.

    Notes
    -----
    Work: that of `svdvals`, or of `inv`.

    Examples
    --------
    >>> from tsvd import linalg
    >>> print(linalg.cond([[3.0, 0.0], [0.0, 2.0]]))
    1.5
    """
    x, space, _ = _space.given("x", x, device)
    if math.prod(x.shape[-2:]) == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    with np.errstate(all="ignore"):
        if p is None or p in (2, -2):
            s = svdvals(x, check_finite=False, device=device, threads=threads)
            largest, least = s[..., 0], s[..., -1]
            number = least / largest if p == -2 else largest / least
        else:
            number = _by_inverse(x, space, p, device, threads)
        lost = (x != x).any(-1).any(-1)
        number = space.where((number != number) & ~lost, math.inf * space.ones_like(number), number)
    return number[()] if space is np else number


def _by_inverse(x, space, p, device, threads):
    """The norm of x times that of its inverse. Those of NumPy are found in float64, as by NumPy."""
    x = _space.computed("x", x)
    wide = _space.wide(x) if space is np else x
    inverses = _inverses(wide, space, device, threads)
    number = norm(wide, p, (-2, -1)) * norm(inverses, p, (-2, -1))
    return number.astype("float32") if space is np and _space.is_single(x) else number


def _inverses(x, space, device, threads):
    """NaN in place of those of singular matrices."""
    try:
        return inverse(x, device=device, check_finite=False, threads=threads)[0]
    except LinAlgError:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise
        if x.ndim == 2:
            return (x + 0.0) * math.nan
    ones = [_inverses(one, space, device, threads) for one in x.reshape(-1, *x.shape[-2:])]
    return space.stack(ones).reshape(x.shape)


def norm(x, ord=None, axis=None, keepdims=False, *, device=None, threads=None):
    """Norm of matrices or vectors.

    The first four arguments and the result are those of `numpy.linalg.norm`.

    Parameters
    ----------
    x : array_like
        See `svd` for dtypes and arrays of other libraries.
    ord : {None, "fro", "nuc", inf, -inf, number}
        Of matrices 2 is the largest singular value, -2 the smallest one, "nuc" the
        sum of all. For all other norms the function of the array's own library is
        called: `numpy.linalg.norm`, `torch.linalg.norm` and so on.
    axis : int or pair of ints, optional
        Where the vectors or the matrices are. None: x is one of them.
    keepdims : bool
        True: the axes stay, with length 1.
    device, threads
        As in `svd`, for the norms that need singular values.

    Returns
    -------
    float or ndarray
        The norms; an array of the library of x.

    Raises
    ------
    LinAlgError, TypeError, ValueError, MemoryError, RuntimeError
        As of `svd`, or of the other function.

    Examples
    --------
    >>> from tsvd import linalg
    >>> print(linalg.norm([[3.0, 0.0], [0.0, 2.0]], "nuc"))
    5.0
    """
    x, space, _ = _space.given("x", x, device)
    axes = axis if axis is not None else (-2, -1) if x.ndim == 2 else ()
    of_values = isinstance(axes, tuple) and len(axes) == 2 and _is_of_values(ord)
    if not of_values or 0 in x.shape:
        check_options(device, threads)
        return _library_norm(x, space, ord, axis, keepdims)
    first, second = (_index(k, x.ndim) for k in axes)
    if first == second:
        raise ValueError("Duplicate axes given.")
    matrices = space.moveaxis(x, (first, second), (-2, -1))
    s = svdvals(matrices, check_finite=False, device=device, threads=threads)
    with np.errstate(over="ignore"):
        found = s.sum(-1) if ord == "nuc" else s[..., 0 if ord == 2 else -1]
    if space is np:
        found = found.copy() if found.ndim > 0 else found[()]  # without all values behind it
    if not keepdims:
        return found
    return found.reshape([1 if k in (first, second) else size for k, size in enumerate(x.shape)])


def _is_of_values(ord):
    return ord == "nuc" if isinstance(ord, str) else ord in (2, -2)


def _index(axis, ndim):
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _library_norm(x, space, ord, axis, keepdims):
    if _arrays.library_of(x) == "torch":
        return sys.modules["torch"].linalg.norm(x, ord, axis, keepdims)
    return space.linalg.norm(x, ord, axis, keepdims)


def matrix_norm(x, /, *, keepdims=False, ord="fro", device=None, threads=None):
    """Norm of matrices in the last two dimensions, as `numpy.linalg.matrix_norm`.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        See `svd` for dtypes and arrays of other libraries.
    keepdims, ord, device, threads
        As in `norm`.

    Returns
    -------
    float or ndarray, shape (...)
        The norms; an array of the library of x.

    Raises
    ------
    LinAlgError, TypeError, ValueError, MemoryError, RuntimeError
        As of `norm`.

    Examples
    --------
    >>> from tsvd import linalg
    >>> print(linalg.matrix_norm([[3.0, 0.0], [0.0, 2.0]], ord=2))
    3.0
    """
    return norm(x, ord, (-2, -1), keepdims, device=device, threads=threads)
