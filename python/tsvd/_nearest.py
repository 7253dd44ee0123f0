"""The nearest matrices of a kind: with orthonormal columns (polar decomposition), the orthogonal
ones that take one matrix to another (Procrustes), and those of low rank.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from . import _arrays, _space
from ._dense import bidiagonalize, svd
from ._precision import in_own_precision


@in_own_precision
def polar(a, side="right", *, device=None, threads=None):
    """Polar decomposition of dense matrices, ``a = U @ P`` or ``a = P @ U``.

    U has orthonormal columns, or rows if m < n, and is the nearest such matrix to a. P
    is Hermitian and positive semidefinite. The first two arguments and the results are
    those of `scipy.linalg.polar`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    side : {"right", "left"}
        Where P stands: "right" ``a = U @ P``, "left" ``a = P @ U``.
    device, threads
        As in `svd`.

    Returns
    -------
    U : ndarray, shape (..., m, n)
        An array of the library of a, and of the subclass of ndarray that a is of.
    P : ndarray, shape (..., n, n) or (..., m, m)
        The latter for "left". It is exactly Hermitian.

    Raises
    ------
    ValueError
        side is none of the two; as of `svd`.
    LinAlgError, TypeError, MemoryError, RuntimeError
        As of `svd`.

    Notes
    -----
    With the SVD ``a = W diag(s) Vh``, U is ``W @ Vh``, and P is ``V diag(s) Vh`` or
    ``W diag(s) W^H`` [1]_. U is orthonormal to a small multiple of ``max(m, n) eps``
    also where a is singular. Then it is one of several.

    References
    ----------
    .. [1] N. J. Higham, "Functions of Matrices: Theory and Computation", SIAM (2008),
       chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> U, P = linalg.polar([[0.0, -2.0], [3.0, 0.0]])
    >>> np.round(U, 12) + 0.0, np.round(P, 12) + 0.0
    (array([[ 0., -1.],
           [ 1.,  0.]]), array([[3., 0.],
           [0., 2.]]))
    """
    a, space, wrap = _space.given("a", a, device)
    options = {"device": device, "threads": threads}
    U, P, _ = polar_and_svd(space, _space.matrices("a", a), side, options)
    return wrap(U), wrap(P)


def polar_and_svd(space, a, side, options):
    """U and P, and the SVD of a that they are made of."""
    if side not in ("right", "left"):
        raise ValueError(f'`side` must be either "right" or "left", not {side!r}')
    a, powers = _space.scaled(space, a)
    W, s, Vh = svd(a, full_matrices=False, **options)
    basis = _space.adjoint(space, Vh) if side == "right" else W
    P = (basis * s[..., None, :]) @ _space.adjoint(space, basis)
    with np.errstate(over="ignore"):
        P = _space.by_power(_space.hermitian_part(space, P), powers)
        return W @ Vh, P, (W, _space.by_power(s, powers), Vh)


@in_own_precision
def orthogonal_procrustes(A, B, check_finite=True, *, device=None, threads=None):
    """Orthogonal, or unitary, matrices that take A nearest to B.

    R minimises the Frobenius norm of ``A @ R - B``. The first three arguments and the
    results are those of `scipy.linalg.orthogonal_procrustes`.

    Parameters
    ----------
    A : array_like, shape (..., m, n)
        The matrices to be mapped; see `svd` for dtypes, batches and arrays of other
        libraries.
    B : array_like, shape (..., m, n)
        The targets, of the same library and place. Leading dimensions broadcast to
        those of A.
    check_finite : bool
        False: matrices that hold NaN or infinity are no error, and get NaN.
    device, threads
        As in `svd`.

    Returns
    -------
    R : ndarray, shape (..., n, n)
        An array of the library of A, and of the subclass of ndarray that A is of.
    scale : float or ndarray, shape (...)
        The sum of the singular values of ``A.conj().T @ B``.

    Raises
    ------
    LinAlgError
        The matrices of A and B have different shapes; as of `svd`.
    TypeError
        A and B are of different libraries; as of `svd`.
    ValueError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    polar : The nearest orthogonal matrix itself.

    Notes
    -----
    R is the orthogonal polar factor of ``A^H B`` [1]_. It is orthonormal to a small
    multiple of ``n eps`` always, and where ``A^H B`` is singular it is one of several.

    References
    ----------
    .. [1] P. H. Schönemann, "A generalized solution of the orthogonal Procrustes
       problem", Psychometrika 31 (1966), 1-10.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> R, scale = linalg.orthogonal_procrustes(a, a[:, ::-1])
    >>> np.round(R, 12) + 0.0
    array([[0., 1.],
           [1., 0.]])
    >>> bool(np.isclose(scale, 7))
    True
    """
    (A, space, wrap), (B, _, _) = _space.given_both("A", A, "B", B, device)
    A, B = _space.matrices("A", A), _space.matrices("B", B)
    if A.shape[-2:] != B.shape[-2:]:
        raise LinAlgError(
            f"the shapes of A and B differ: {tuple(A.shape[-2:])} and {tuple(B.shape[-2:])}"
        )
    if check_finite:
        for name, x in (("A", A), ("B", B)):
            _space.refuse_not_finite(space, name, x)
    A, B = _space.in_one_type(A, B)
    (A, of_a), (B, of_b) = _space.scaled(space, A), _space.scaled(space, B)
    with np.errstate(all="ignore"):
        product = _space.adjoint(space, A) @ B
        U, s, Vh = svd(product, check_finite=check_finite, device=device, threads=threads)
        scale = _space.by_power(s.sum(-1), of_a + of_b)
    return wrap(U @ Vh), scale


@in_own_precision
def low_rank(a, rank=None, *, rtol=None, energy=None, device=None, threads=None):
    """Best approximation of dense matrices by matrices of low rank.

    It is the best one in the Frobenius and in the spectral norm. Exactly one of `rank`,
    `rtol` and `energy` says of which rank.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    rank : int or array_like of int, shape (...), optional
        The rank, at most; 0 or more.
    rtol : float or array_like, shape (...), optional
        Singular values up to this part of the largest one are left out.
    energy : float or array_like, shape (...), optional
        The rank is the least for which the squares of the values that stay hold at
        least this part, from 0 to 1, of the sum of all squares.
    device, threads
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., m, n)
        The approximations; an array of the library of a, and of the subclass of
        ndarray that a is of.

    Raises
    ------
    ValueError
        Not exactly one of the three is given; `rank` is negative, or `energy` not
        from 0 to 1; as of `svd`.
    LinAlgError, TypeError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    svd : The factors of the approximation, with `select`.

    Notes
    -----
    The sum of ``s_i u_i v_i^H`` over the largest values [1]_. Vectors of these values
    alone are computed. Where the last value that stays is a multiple one, the best
    approximation is one of several.

    References
    ----------
    .. [1] C. Eckart and G. Young, "The approximation of one matrix by another of lower
       rank", Psychometrika 1 (1936), 211-218.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> np.round(linalg.low_rank(a, 2), 12) + 0.0
    array([[3., 0., 0.],
           [0., 2., 0.],
           [0., 0., 0.]])
    >>> np.allclose(linalg.low_rank(a, energy=0.9), linalg.low_rank(a, rtol=0.4))
    True
    """
    if (rank is None) + (rtol is None) + (energy is None) != 2:
        raise ValueError("give exactly one of rank, rtol and energy")
    a, space, wrap = _space.given("a", a, device)
    a, powers = _space.scaled(space, _space.matrices("a", a))
    counts = None if rank is None else _ranks(rank, a)
    if 0 in a.shape:
        if rank is None:  # refuses what is refused of other matrices
            _counts(rtol, energy, np.zeros((*a.shape[:-2], 1)))
        return wrap(space.zeros_like(a))
    options = {"device": device, "threads": threads}
    if rank is not None:
        U, s, Vh = svd(a, **_largest(counts), **options)
    elif _space.is_small(a):
        U, s, Vh = svd(a, full_matrices=False, **options)
        counts = _counts(rtol, energy, s)
    else:
        form = bidiagonalize(a, **options)
        counts = _counts(rtol, energy, form.svdvals(threads=threads))
        U, s, Vh = form.svd(**_largest(counts), threads=threads)
    stays = np.arange(s.shape[-1]) < counts[..., None]
    s = space.where(_arrays.from_host(stays, s), s, 0)
    with np.errstate(over="ignore"):
        return wrap(_space.by_power((U * s[..., None, :]) @ Vh, powers))


def _ranks(rank, a):
    """One for each matrix."""
    ranks = _space.on_host(rank)
    if ranks.dtype.kind not in "iu":
        raise TypeError(f"rank must be an integer, or an array of them, not {rank!r}")
    if (ranks < 0).any():
        raise ValueError(f"rank must not be negative, not {rank!r}")
    batch = tuple(a.shape[:-2])
    try:
        ranks = np.broadcast_to(ranks, batch)
    except ValueError:
        raise ValueError(f"rank has shape {ranks.shape}, and there are matrices {batch}") from None
    return np.minimum(ranks, min(a.shape[-2:]))


def _largest(counts):
    """The options for the largest values, as many as the matrix that has most; at least one."""
    return {"select": "i", "select_range": (0, max(1, int(counts.max())) - 1)}


def _counts(rtol, energy, s):
    """How many values stay, by the argument that is given."""
    if rtol is not None:
        return _space.on_host(_space.counting("rtol", rtol, s).sum(-1))
    s = _space.on_host(s)
    part = _space.along("energy", _space.on_host(energy), s)
    if not np.all((part >= 0) & (part <= 1)):
        raise ValueError(f"energy must be from 0 to 1, not {energy!r}")
    largest = s[..., :1]
    squares = (s / np.where(largest > 0, largest, 1)) ** 2
    sums = np.cumsum(squares, -1)
    before = np.concatenate([np.zeros_like(largest), sums[..., :-1]], -1)
    return np.sum(before < part * sums[..., -1:], -1)
