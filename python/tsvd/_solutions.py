"""What solves linear equations by the singular values: the pseudo-inverse, and least squares."""

from __future__ import annotations

import math

import numpy as np
from numpy.linalg import LinAlgError

from . import _space
from ._api import svd as bidiagonal_svd
from ._dense import bidiagonalize, svd

_UNSET = object()

# Up to this order, or as many entries, the SVD is faster than a reduction that is kept.
_SMALL = 64


def pinv(
    a,
    rcond=None,
    hermitian=False,
    *,
    rtol=_UNSET,
    return_rank=False,
    device=None,
    threads=None,
):
    """Moore-Penrose pseudo-inverse of dense matrices.

    The first three arguments and `rtol` are those of `numpy.linalg.pinv`, and
    `return_rank` is of `scipy.linalg.pinv`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    rcond, rtol : float or array_like, shape (...), optional
        Two names of one argument: singular values up to this part of the largest
        one count as zero. None: ``max(m, n) eps``, about as much as rounding moves
        a value. (NumPy's default for `rcond` is 1e-15, also for float32.)
    hermitian : bool
        The matrices are square and said to be symmetric; all entries are read.
    return_rank : bool
        True: return also how many values did not count as zero.
    device, threads
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., n, m)
        The pseudo-inverses; an array of the library of a, and of the subclass of
        ndarray that a is of. With return_rank ``(X, rank)``, rank of shape (...).

    Raises
    ------
    ValueError
        `rcond` and `rtol` are both given; as of `svd`.
    LinAlgError, TypeError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    lstsq : Solves equations without the pseudo-inverse.

    Notes
    -----
    ``X = V diag(1 / s) U^H`` over the values that do not count as zero [1]_.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition,
       Johns Hopkins University Press (2013), section 5.5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> np.round(linalg.pinv([[1.0, 2.0], [2.0, 4.0]]), 12) + 0.0
    array([[0.04, 0.08],
           [0.08, 0.16]])
    """
    if rtol is not _UNSET and rcond is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    a, space, wrap = _space.given("a", a)
    name, rcond = ("rtol", rtol) if rcond is None and rtol is not _UNSET else ("rcond", rcond)
    U, s, Vh = svd(a, full_matrices=False, hermitian=hermitian, device=device, threads=threads)
    counts = _space.counting(name, _space.least_part(a, s) if rcond is None else rcond, s)
    rank = counts.sum(-1)
    with np.errstate(over="ignore"):
        inverse = 1 / space.where(counts, s, math.inf)
        if s.ndim == 1:  # of one matrix no more vectors than the rank
            U, inverse, Vh = U[:, :rank], inverse[:rank], Vh[:rank]
        adjoint = _space.adjoint
        X = (adjoint(space, Vh) * inverse[..., None, :]) @ adjoint(space, U)
    return (wrap(X), rank) if return_rank else wrap(X)


def lstsq(a, b, rcond=None, *, device=None, threads=None):
    """Least-squares solution of linear equations, the shortest one.

    x minimises ``|b - a @ x|``, and of all that do it is the one of least norm. The
    first three arguments and the result are those of `numpy.linalg.lstsq`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    b : array_like, shape (m,), (m, k) or (..., m, k)
        The right-hand sides, in columns, of the same library and place as a.
        Leading dimensions are those of a.
    rcond : float or array_like, shape (...), optional
        Singular values up to this part of the largest one count as zero. None:
        ``max(m, n) eps``, about as much as rounding moves a value; eps is that of
        the dtype. 0 and negative numbers: eps / 2, as for LAPACK.
    device, threads
        As in `svd`.

    Returns
    -------
    x : ndarray, shape (n,), (n, k) or (..., n, k)
        The solutions; an array of the library of a.
    residuals : ndarray, shape (k,) or (..., k)
        The squares of ``|b - a @ x|``. Of one matrix, shape (0,) if its rank is below n
        or m <= n, as from NumPy.
    rank : int or ndarray of int, shape (...)
        How many values did not count as zero.
    s : ndarray, shape (..., p)
        The singular values, p the smaller of m and n.

    Raises
    ------
    LinAlgError
        The shapes of a and b do not belong together; as of `svd`.
    TypeError
        a and b are of different libraries; as of `svd`.
    ValueError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    pinv : The matrix that makes the solutions.

    Notes
    -----
    Method: A is reduced to ``Q B P^H``, and B decomposed as ``L S R``. So
    ``x = P R^H S^+ L^H Q^H b``, and U is never formed [1]_. Small matrices are
    decomposed themselves, those of NumPy in float64. Matrices whose entries are
    far from 1 are scaled by a power of two.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition,
       Johns Hopkins University Press (2013), section 5.5.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    >>> x, residuals, rank, s = linalg.lstsq(a, [-1.0, 0.2, 0.9, 2.1])
    >>> np.round(x, 12), np.round(residuals, 12), int(rank)
    (array([ 1.  , -0.95]), array([0.05]), 2)
    """
    a, space, _ = _space.given("a", a)
    b, other, wrap = _space.given("b", b)
    if space is not other:
        raise TypeError(
            f"a is an array of {space.__name__}, and b of {other.__name__}: they must be of one"
        )
    vector = b.ndim == 1
    b = b[:, None] if vector else b
    if a.ndim < 2 or b.ndim != a.ndim or a.shape[:-1] != b.shape[:-1]:
        raise LinAlgError(
            "Incompatible dimensions: a has shape "
            f"{tuple(a.shape)}, and b {tuple(b.shape[:-1] if vector else b.shape)}"
        )
    a, b = _space.in_one_type(_space.computed("a", a), _space.computed("b", b))
    options = {"device": device, "threads": threads}
    with np.errstate(all="ignore"):  # of infinite results, as LAPACK
        x, rest, rank, s = _solved(space, a, b, rcond, options)
    m, n = a.shape[-2:]
    if s.ndim == 1 and (m <= n or rank != n):
        rest = rest[:0]
    x = x[..., 0] if vector else x
    return wrap(x), wrap(rest), rank, s


def _solved(space, a, b, rcond, options):
    eps = _space.eps_of(a)
    if rcond is None:
        rcond = _space.least_part(a, a)
    m, n = a.shape[-2:]
    small = max(m, n) <= _SMALL or m * n <= _SMALL**2
    single = small and space is np and _space.is_single(a)
    like = a
    if single:  # as NumPy does it: of small matrices it costs little
        a, b = _space.wide(a), _space.wide(b)
    (a, up), (b, of_b) = _space.scaled(space, a), _space.scaled(space, b)
    solve = _by_svd if small else _by_reduction
    x, rest, rank, s = solve(space, a, b, rcond, eps, options)
    x, rest, s = (
        _space.by_power(part, power) for part, power in ((x, of_b - up), (rest, 2 * of_b), (s, up))
    )
    if single:
        x = _space.in_type_of(like, x)
        rest, s = rest.astype("float32"), s.astype("float32")
    return x, rest, rank, s


def _counted(space, s, rcond, eps):
    """The rank, and s with infinity in place of the values that count as zero.

    Results are multiplied by its reciprocal, as CuPy divides complex numbers by infinity to NaN.
    """
    part = _space.along("rcond", rcond, s)
    if isinstance(part, (int, float)):
        part = eps / 2 if part <= 0 else part
    else:
        part = space.where(part <= 0, eps / 2, part)
    counts = s > s[..., :1] * part
    return counts.sum(-1), space.where(counts, s, math.inf)


def _square_sum(x):
    return (x.real**2 + x.imag**2 if _space.is_complex(x) else x * x).sum(-2)


def _by_svd(space, a, b, rcond, eps, options):
    U, s, Vh = svd(a, full_matrices=False, **options)
    rank, large = _counted(space, s, rcond, eps)
    y = (_space.adjoint(space, U) @ b) * (1 / large[..., None])
    x = _space.adjoint(space, Vh) @ y
    return x, _square_sum(b - a @ x), rank, s


def _by_reduction(space, a, b, rcond, eps, options):
    form = bidiagonalize(a, **options)
    p = min(a.shape[-2:])
    c = form.apply_q(b, transposed=True)
    L, s, R = bidiagonal_svd(form.d, form.e, lower=form.lower, **options)
    L, R = (_space.in_type_of(c, x) for x in (L, R))
    rank, large = _counted(space, s, rcond, eps)
    t = _space.adjoint(space, L) @ c[..., :p, :]
    y = _space.adjoint(space, R) @ (t * (1 / large[..., None]))
    rest = _square_sum(c[..., p:, :]) + _square_sum(
        space.where((large < math.inf)[..., None], 0, t)
    )
    rows = a.shape[-1] - p
    if rows > 0:
        zeros = space.zeros_like(b[..., :1, :])
        y = space.concatenate(
            [y, space.broadcast_to(zeros, (*b.shape[:-2], rows, b.shape[-1]))], -2
        )
    return form.apply_p(y), rest, rank, s
