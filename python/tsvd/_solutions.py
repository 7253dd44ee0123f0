"""What solves linear equations by the singular values: pseudo-inverses, and least squares."""

from __future__ import annotations

import math

import numpy as np
from numpy.linalg import LinAlgError

from . import _arrays, _lazy, _space
from ._api import svd as bidiagonal_svd
from ._dense import bidiagonalize, svd
from ._precision import in_own_precision

_UNSET = object()


@in_own_precision
def pinv(
    a,
    rcond=None,
    hermitian=False,
    *,
    rtol=_UNSET,
    atol=None,
    return_rank=False,
    check_finite=True,
    device=None,
    threads=None,
):
    """Moore-Penrose pseudo-inverse of dense matrices.

    The first three arguments and `rtol` are those of `numpy.linalg.pinv`; `atol`,
    `return_rank` and `check_finite` are those of `scipy.linalg.pinv`.

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
    atol : float or array_like, shape (...), optional
        What is added to the threshold, in the units of a, not negative. None: 0.
    return_rank : bool
        True: return also how many values did not count as zero.
    check_finite : bool
        False: a matrix that holds NaN or infinity is no error, and gets NaN.
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
        `rcond` and `rtol` are both given; `atol` is negative; as of `svd`.
    LinAlgError, TypeError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    pinvh : Of Hermitian matrices, from one triangle.
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
    _refuse_negative("atol", atol)
    if _lazy.is_lazy(a):
        lazy = _lazy.functions(hermitian=hermitian, atol=atol, return_rank=return_rank)
        rcond = rtol if rcond is None and rtol is not _UNSET else rcond
        return lazy.linalg_pinv(a, rcond, check_finite=check_finite, device=device, threads=threads)
    a, space, wrap = _space.given("a", a, device)
    a = _space.matrices("a", a)
    name, rcond = ("rtol", rtol) if rcond is None and rtol is not _UNSET else ("rcond", rcond)
    options = {"check_finite": check_finite, "device": device, "threads": threads}
    X, rank = _inverted(space, a, name, rcond, atol, options | {"hermitian": hermitian})
    return (wrap(X), rank) if return_rank else wrap(X)


@in_own_precision
def pinvh(
    a,
    atol=None,
    rtol=None,
    lower=True,
    return_rank=False,
    check_finite=True,
    *,
    device=None,
    threads=None,
):
    """Moore-Penrose pseudo-inverse of dense Hermitian, or real symmetric, matrices.

    The first six arguments and the result are those of `scipy.linalg.pinvh`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        The matrices, of which one triangle is read; see `svd` for dtypes, batches and
        arrays of other libraries. The diagonal counts as real.
    atol, rtol : float or array_like, shape (...), optional
        Eigenvalues whose magnitude is up to ``atol + rtol * s1`` count as zero, s1
        being the largest magnitude. None: 0 and ``n eps``. They are not negative.
    lower : bool
        The triangle that is read: True the lower one, False the upper one.
    return_rank : bool
        True: return also how many values did not count as zero.
    check_finite : bool
        False: a matrix that holds NaN or infinity is no error, and gets NaN.
    device, threads
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., n, n)
        The pseudo-inverses, exactly Hermitian; an array of the library of a, and of
        the subclass of ndarray that a is of. With return_rank ``(X, rank)``, rank of
        shape (...).

    Raises
    ------
    LinAlgError
        The matrices are not square; as of `svd`.
    ValueError
        `atol` or `rtol` is negative; as of `svd`.
    TypeError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    pinv : Of all matrices.

    Notes
    -----
    The singular values of a Hermitian matrix are the magnitudes of its eigenvalues.
    So the threshold is that of SciPy, and ``V diag(1 / s) U^H`` is what SciPy makes
    of the eigenvalues [1]_.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition,
       Johns Hopkins University Press (2013), section 5.5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> np.round(linalg.pinvh([[1.0, 9.0], [2.0, 4.0]]), 12) + 0.0
    array([[0.04, 0.08],
           [0.08, 0.16]])
    """
    _refuse_negative("atol", atol)
    _refuse_negative("rtol", rtol)
    a, space, wrap = _space.given("a", a, device)
    a = _space.matrices("a", a)
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    a = _of_triangle(space, a, lower)
    options = {"check_finite": check_finite, "device": device, "threads": threads}
    X, rank = _inverted(space, a, "rtol", rtol, atol, options)
    X = wrap(_space.hermitian_part(space, X))
    return (X, rank) if return_rank else X


def _inverted(space, a, name, part, atol, options):
    """The pseudo-inverses, and the ranks. name: what the caller calls the part of s1."""
    part = _space.least_part(a, a) if part is None else part
    a, powers = _space.scaled(space, a)
    U, s, Vh = svd(a, full_matrices=False, **options)
    with np.errstate(all="ignore"):  # of infinite entries of the inverse
        least = s[..., :1] * _space.along(name, part, s)
        if atol is not None:
            least = least + _space.along("atol", _in_units(atol, powers), s)
        counts = ~(s <= least)  # NaN counts, so that the inverse is NaN
        rank = counts.sum(-1)
        inverse = 1 / space.where(counts, s, math.inf)
        if s.ndim == 1:  # of one matrix no more vectors than the rank
            U, inverse, Vh = U[:, :rank], inverse[:rank], Vh[:rank]
        adjoint = _space.adjoint
        X = (adjoint(space, Vh) * inverse[..., None, :]) @ adjoint(space, U)
        return _space.by_power(X, -powers), rank


def _in_units(atol, powers):
    """atol for the scaled matrices."""
    return np.ldexp(_space.on_host(atol), -powers) if np.any(powers) else atol


def _refuse_negative(name, x):
    if x is not None and (_space.on_host(x) < 0).any():
        raise ValueError(f"{name} must not be negative")


def _of_triangle(space, a, lower):
    """The Hermitian matrices that have this triangle. Nothing else is read."""
    strict = np.tri(a.shape[-1], k=-1, dtype=bool)
    other = _arrays.from_host(strict.T if lower else strict, a)
    whole = space.where(other, _space.adjoint(space, a), a)
    if not _space.is_complex(a):
        return whole
    diagonal = _arrays.from_host(np.eye(a.shape[-1], dtype=bool), a)
    return space.where(diagonal, _space.in_type_of(a, a.real), whole)


@in_own_precision
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
    ``x = P R^H S^+ L^H Q^H b``, and U is never formed [1]_. One right-hand side of
    more rows than columns is a column of the matrix that is reduced, ``[b A]``: its
    form has the first column ``Q^H b``, a multiple of e_1, and lower bidiagonal B in
    the others [2]_. Small matrices are decomposed themselves, those of NumPy in
    float64, and so are those on a CUDA device, where that is faster. Matrices whose
    entries are far from 1 are scaled by powers of two.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition,
       Johns Hopkins University Press (2013), section 5.5.
    .. [2] C. C. Paige and Z. Strakos, "Core problems in linear algebraic systems",
       SIAM J. Matrix Anal. Appl. 27 (2006), 861-875.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    >>> x, residuals, rank, s = linalg.lstsq(a, [-1.0, 0.2, 0.9, 2.1])
    >>> np.round(x, 12), np.round(residuals, 12), int(rank)
    (array([ 1.  , -0.95]), array([0.05]), 2)
    """
    if _lazy.is_lazy(a):
        return _lazy.functions().linalg_lstsq(a, b, rcond, device=device, threads=threads)
    (a, space, _), (b, _, wrap) = _space.given_both("a", a, "b", b, device)
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
    if _arrays.library_of(a) != "torch":  # the type of LAPACK's rank, as NumPy, CuPy and JAX say it
        rank = rank.astype("int32")
    return wrap(x), wrap(rest), rank, s


def _solved(space, a, b, rcond, options):
    eps = _space.eps_of(a)
    if rcond is None:
        rcond = _space.least_part(a, a)
    small = _space.is_small(a)
    single = small and space is np and _space.is_single(a)
    like = a
    if single:  # as NumPy does it: of small matrices it costs little
        a, b = _space.wide(a), _space.wide(b)
    (a, up), (b, of_b) = _space.scaled(space, a), _space.scaled(space, b, by_column=True)
    if small or _space.is_on_cuda(a, options["device"]):
        solve = _by_svd
    else:
        one_of_tall = b.shape[-1] == 1 and a.shape[-2] > a.shape[-1]
        solve = _by_joint_reduction if one_of_tall else _by_reduction
    x, rest, rank, s = solve(space, a, b, rcond, eps, options)
    of_rest = of_b[..., 0, :] if np.ndim(of_b) else of_b
    of_x = of_b - (up[..., None, None] if np.ndim(up) else up)
    x, rest, s = (
        _space.by_power(part, power) for part, power in ((x, of_x), (rest, 2 * of_rest), (s, up))
    )
    if single:
        x = _space.in_type_of(like, x)
        rest, s = rest.astype("float32"), s.astype("float32")
    return x, rest, rank, s


def counted_part(space, s, rcond, eps):
    """rcond, to be compared with s; 0 and negative numbers are eps / 2, as for LAPACK."""
    part = _space.along("rcond", rcond, s)
    if isinstance(part, (int, float)):
        return eps / 2 if part <= 0 else part
    return space.where(part <= 0, eps / 2, part)


def _counted(space, s, rcond, eps):
    """The rank, and s with infinity in place of the values that count as zero.

    Results are multiplied by its reciprocal, as CuPy divides complex numbers by infinity to NaN.
    """
    part = counted_part(space, s, rcond, eps)
    counts = s > s[..., :1] * part
    return counts.sum(-1), space.where(counts, s, math.inf)


def _left_out(space, large, t):
    """The components of a right-hand side along the vectors of values that count as zero."""
    return space.where((large < math.inf)[..., None], 0, t)


def _square_sum(x):
    return (x.real**2 + x.imag**2 if _space.is_complex(x) else x * x).sum(-2)


def _by_svd(space, a, b, rcond, eps, options):
    U, s, Vh = svd(a, full_matrices=False, **options)
    rank, large = _counted(space, s, rcond, eps)
    y = (_space.adjoint(space, U) @ b) * (1 / large[..., None])
    x = _space.adjoint(space, Vh) @ y
    return x, _square_sum(b - a @ x), rank, s


def _by_joint_reduction(space, a, b, rcond, eps, options):
    """The bidiagonal form of [b A], of which the first column is a multiple of e_1.

    The other columns are the form of A, lower bidiagonal with a row more than columns, and Q^H b
    is that multiple: of Q nothing else is needed. For one right-hand side, of more rows than
    columns. A and b are not far from 1, so that neither is lost beside the other.
    """
    form = bidiagonalize(space.concatenate([b, a], -1), **options)
    L, s, R = bidiagonal_svd(form.e, form.d[..., 1:], lower=True, full_matrices=True, **options)
    rank, large = _counted(space, s, rcond, eps)
    t = _space.adjoint(space, L[..., :1, :] * form.d[..., :1, None])  # the null vector's last
    of_values, of_null = t[..., :-1, :], t[..., -1:, :]
    y = _space.adjoint(space, R) @ (of_values * (1 / large[..., None]))
    y = _space.in_type_of(b, y)
    x = form.apply_p(space.concatenate([space.zeros_like(y[..., :1, :]), y], -2))[..., 1:, :]
    return x, _square_sum(_left_out(space, large, of_values)) + _square_sum(of_null), rank, s


def _by_reduction(space, a, b, rcond, eps, options):
    form = bidiagonalize(a, **options)
    p = min(a.shape[-2:])
    c = form.apply_q(b, transposed=True)
    L, s, R = bidiagonal_svd(form.d, form.e, lower=form.lower, **options)
    L, R = (_space.in_type_of(c, x) for x in (L, R))
    rank, large = _counted(space, s, rcond, eps)
    t = _space.adjoint(space, L) @ c[..., :p, :]
    y = _space.adjoint(space, R) @ (t * (1 / large[..., None]))
    rest = _square_sum(c[..., p:, :]) + _square_sum(_left_out(space, large, t))
    rows = a.shape[-1] - p
    if rows > 0:
        zeros = space.zeros_like(b[..., :1, :])
        y = space.concatenate(
            [y, space.broadcast_to(zeros, (*b.shape[:-2], rows, b.shape[-1]))], -2
        )
    return form.apply_p(y), rest, rank, s
