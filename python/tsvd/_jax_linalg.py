"""`tsvd.jax.linalg`: the functions of `jax.numpy.linalg` that rest on the SVD, computed by tsvd.

    from tsvd.jax import linalg
    U, S, Vh = linalg.svd(a)

Names, arguments and defaults are those of `jax.numpy.linalg`. A matrix that holds NaN or infinity
gives NaN and is no error. All work within `jax.jit`, `jax.vmap`, loops and derivatives.
"""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp

from . import _derivative
from ._jax_dense import (
    DenseOptions,
    array,
    dense_svd,
    dense_values,
    formulas,
    matrices,
    smaller,
)
from ._types import SVDResult

__all__ = ["cond", "lstsq", "matrix_rank", "pinv", "svd", "svdvals"]

_ALL = DenseOptions(check_finite=0)
_jax_cond = jnp.linalg.cond  # now: who wants to may put ours in its place


def svd(a, full_matrices=True, compute_uv=True, hermitian=False, subset_by_index=None):
    """Singular value decomposition, as `jax.numpy.linalg.svd`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `tsvd.jax.linalg_svd` for dtypes.
    full_matrices : bool
        True: U is m x m and Vh is n x n. False: U is m x p and Vh is p x n, p the
        smaller of m and n.
    compute_uv : bool
        False: only S is computed and returned.
    hermitian : bool
        True: the matrices are taken as Hermitian, as the mean of a and its adjoint.
    subset_by_index : (start, end), optional
        The indices ``start <= i < end`` of the values that are computed; not with
        full_matrices.

    Returns
    -------
    tsvd.linalg.SVDResult or jax.Array
        ``(U, S, Vh)``, or S alone.

    Raises
    ------
    NotImplementedError
        Derivatives of vectors with full_matrices, unless m = n.
    TypeError, ValueError, JaxRuntimeError
        As of `tsvd.jax.linalg_svd`, but for NaN and infinity.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from tsvd.jax import linalg
    >>> linalg.svd(jnp.ones((3, 2))).U.shape
    (3, 3)
    """
    a = _given(a, hermitian)
    options, full = _ALL, bool(full_matrices)
    p = smaller(*a.shape[-2:])
    if subset_by_index is not None:
        start, end = map(operator.index, subset_by_index)
        if not 0 <= start <= end:
            raise ValueError(f"subset_by_index={subset_by_index!r} must be 0 <= start <= end")
        if full and compute_uv and (start, end) != (0, p):
            raise ValueError("full_matrices and subset_by_index cannot both be set")
        start, end = min(start, p), min(end, p)
        if start == end:
            return _none(a, compute_uv)
        options = _ALL._replace(first=start, count=end - start)
    if not compute_uv:
        return dense_values(a, options)
    return SVDResult(*dense_svd(a, options, full))


def _none(a, compute_uv):
    """The result for no value."""
    U, Vh = a[..., :0], a[..., :0, :]
    S = U.real.sum(-2)
    return SVDResult(U, S, Vh) if compute_uv else S


def svdvals(x, /):
    """Singular values, as `jax.numpy.linalg.svdvals`.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        The matrices.

    Returns
    -------
    jax.Array, shape (..., p)
        The values in descending order, p the smaller of m and n.

    Raises
    ------
    TypeError, ValueError, JaxRuntimeError
        As of `svd`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from tsvd.jax import linalg
    >>> linalg.svdvals(jnp.diag(jnp.array([2.0, 3.0]))).tolist()
    [3.0, 2.0]
    """
    return dense_values(matrices("x", x), _ALL)


def pinv(a, rtol=None, hermitian=False, *, rcond=None):
    """Moore-Penrose pseudo-inverse, as `jax.numpy.linalg.pinv`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices.
    rtol, rcond : float or array_like, shape (...), optional
        Two names of one argument: singular values up to this part of the largest one
        count as zero. None: ``10 max(m, n) eps``. It has no derivative.
    hermitian : bool
        As in `svd`.

    Returns
    -------
    jax.Array, shape (..., n, m)
        The pseudo-inverses.

    Raises
    ------
    TypeError, ValueError, JaxRuntimeError
        As of `svd`.

    Notes
    -----
    The derivative, of any order and in both modes, is that along changes that keep
    the rank [1]_. Equal values do no harm.

    References
    ----------
    .. [1] G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
       nonlinear least squares problems whose variables separate", SIAM Journal on
       Numerical Analysis 10 (1973), 413-432.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from tsvd.jax import linalg
    >>> jax.grad(lambda a: linalg.pinv(a).trace())(2 * jnp.eye(2)).round(4).tolist()
    [[-0.25, 0.0], [0.0, -0.25]]
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    a = _given(a, hermitian)
    if rtol is None:
        rtol = 10.0 * _larger(*a.shape[-2:]) * float(jnp.finfo(a.dtype).eps)
    return _compiled_pinv(a, _part(rtol, a), False)


def matrix_rank(M, rtol=None, *, hermitian=False, tol=None):
    """Rank, as `jax.numpy.linalg.matrix_rank`.

    Parameters
    ----------
    M : array_like, shape (..., m, n)
        The matrices. An array of less than two dimensions has the rank 1 if an entry
        is not zero, else 0.
    rtol : float or array_like, shape (...), optional
        Values up to this part of the largest one count as zero. None: ``max(m, n) eps``.
    hermitian : bool
        As in `svd`.
    tol : float or array_like, shape (...), optional
        Instead of rtol: values up to tol count as zero.

    Returns
    -------
    jax.Array of int, shape (...)
        The ranks.

    Raises
    ------
    TypeError, ValueError, JaxRuntimeError
        As of `svd`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from tsvd.jax import linalg
    >>> int(linalg.matrix_rank(jnp.ones((3, 2))))
    1
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    M = array("M", M)
    if M.ndim < 2:
        return (M != 0).any().astype(jnp.int32)
    S = dense_values(_given(M, hermitian), _ALL)
    with formulas():
        if tol is None:
            if rtol is None:
                rtol = _larger(*M.shape[-2:]) * float(jnp.finfo(M.dtype).eps)
            tol = _part(rtol, M) * S[..., :1]
        else:
            tol = _part(tol, M)
        return (S > tol).sum(-1)


def cond(x, p=None):
    """Condition number, as `jax.numpy.linalg.cond`.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        The matrices.
    p : {None, 2, -2, 1, -1, inf, -inf, "fro"}
        The norm. None and 2: the largest singular value over the smallest one, -2: the
        reverse. All others are computed by `jax.numpy.linalg.cond`.

    Returns
    -------
    jax.Array, shape (...)
        The condition numbers.

    Raises
    ------
    ValueError
        x is empty, or no matrix.
    TypeError, JaxRuntimeError
        As of `svd`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from tsvd.jax import linalg
    >>> float(linalg.cond(jnp.diag(jnp.array([3.0, 2.0]))))
    1.5
    """
    x = matrices("x", x)
    if 0 in x.shape[-2:]:
        raise ValueError(f"cond is not defined for empty matrices, of shape {x.shape}")
    if p not in (None, 2, -2):
        return _jax_cond(x, p)
    S = dense_values(x, _ALL)
    if p != -2:
        return S[..., 0] / S[..., -1]
    number = S[..., -1] / S[..., 0]
    lost = jnp.isnan(x).any((-2, -1))
    return jnp.where(jnp.isnan(number) & ~lost, jnp.inf, number)


def lstsq(a, b, rcond=None, *, numpy_resid=False):
    """Least-squares solution of linear equations, as `jax.numpy.linalg.lstsq`.

    Parameters
    ----------
    a : array_like, shape (m, n)
        The matrix; `jax.vmap` takes several.
    b : array_like, shape (m,) or (m, k)
        The right-hand sides, in columns.
    rcond : float, optional
        Singular values below this part of the largest one count as zero. None:
        ``max(m, n) eps``; negative numbers: eps. It has no derivative.
    numpy_resid : bool
        True: the residuals have shape (0,) if the rank is below n or m <= n, as from
        NumPy; not within `jax.jit`.

    Returns
    -------
    x : jax.Array, shape (n,) or (n, k)
        The shortest solution.
    residuals : jax.Array, shape (k,), or (1,) if b is a vector
        The squares of ``|b - a @ x|``.
    rank : jax.Array of int
        How many values do not count as zero.
    s : jax.Array, shape (p,)
        The singular values, p the smaller of m and n.

    Raises
    ------
    ValueError
        The shapes of a and b do not belong together.
    TypeError
        a or b has too many dimensions; as of `svd`.
    JaxRuntimeError
        As of `svd`.

    Notes
    -----
    x, the residuals and s have derivatives, of any order and in both modes. Those of x
    are along changes that keep the rank; see `pinv`. Equal values do no harm.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from tsvd.jax import linalg
    >>> a, b = jnp.ones((2, 1)), jnp.array([1.0, 3.0])
    >>> jax.grad(lambda b: linalg.lstsq(a, b)[0].sum())(b).round(4).tolist()  # the mean of b
    [0.5, 0.5]
    """
    a, b = array("a", a), array("b", b)
    if a.ndim != 2:
        raise TypeError(f"a must be one matrix, with two dimensions and not {a.ndim}: use jax.vmap")
    if b.ndim not in (1, 2):
        raise TypeError(f"b must have one or two dimensions, not {b.ndim}")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"a and b must have the same number of rows, not {a.shape} and {b.shape}")
    dtype = jnp.promote_types(a.dtype, b.dtype)
    a, b = a.astype(dtype), b.astype(dtype)
    eps = float(jnp.finfo(dtype).eps)
    if rcond is None:
        rcond = _larger(*a.shape) * eps
    else:
        with formulas():
            rcond = jnp.where(jnp.asarray(rcond) < 0, eps, rcond)
    x, squares, rank, s = _compiled_lstsq(a, b if b.ndim == 2 else b[:, None], _part(rcond, a))
    rank = rank.astype(int)
    if numpy_resid and (rank < a.shape[1] or a.shape[0] <= a.shape[1]):
        squares = squares[:0]
    return x if b.ndim == 2 else x[:, 0], squares, rank, s


# ---- what they share ----


def _larger(m, n):
    return n if smaller(m, n) is m else m


def _given(a, hermitian):
    a = matrices("a", a)
    if not hermitian:
        return a
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"hermitian matrices must be square, not of shape {a.shape}")
    with formulas():
        return (a + a.mT.conj()) / 2


def _part(part, a):
    """A part of the largest value, or one of each matrix, along the values of a."""
    part = jax.lax.stop_gradient(jnp.asarray(part, a.real.dtype))
    return part[..., None]


def _counting(S, part, closed):
    """The values that do not count as zero. closed: those equal to the part count too."""
    least = part * S[..., :1]
    return (S >= least) & (S > 0) if closed else ~(S <= least)  # NaN counts: the inverse is NaN


def _inverted(S, counts):
    return _derivative.inverse(jnp, S, ~counts)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _pinv(a, part, closed):
    U, S, Vh = dense_svd(a, _ALL, False)
    with formulas():
        inverse = _inverted(S, _counting(S, part, closed))
        return (Vh.mT.conj() * inverse[..., None, :]) @ U.mT.conj()


_compiled_pinv = jax.jit(_pinv, static_argnums=2)


@_pinv.defjvp
def _pinv_jvp(closed, primals, tangents):
    X = _compiled_pinv(*primals, closed)
    with formulas():
        return X, _derivative.pinv_tangent(primals[0], X, tangents[0])


@jax.custom_jvp
def _lstsq(a, b, part):
    """(x, squares of residuals, rank, s) for right-hand sides in columns."""
    U, S, Vh = dense_svd(a, _ALL, False)
    with formulas():
        counts = _counting(S, part, True)
        x = Vh.mT.conj() @ (_inverted(S, counts)[:, None] * (U.mT.conj() @ b))
        rest = b - a @ x
        # a tangent of integers has no place in shard_map
        rank = counts.sum(-1, dtype=S.dtype)
    return x, (rest.conj() * rest).real.sum(0), rank, S


_compiled_lstsq = jax.jit(_lstsq)


@_lstsq.defjvp
def _lstsq_jvp(primals, tangents):
    (a, b, part), (da, db, _) = primals, tangents
    x, squares, rank, s = _compiled_lstsq(a, b, part)
    X = _compiled_pinv(a, part, True)
    U, _, Vh = dense_svd(a, _ALL, False)
    with formulas():
        dx, d_squares = _derivative.lstsq_tangent(a, b, X, x, da, db)
        ds = _derivative.dense_values_tangent(U, Vh.mT.conj(), da)
    return (x, squares, rank, s), (dx, d_squares, jnp.zeros_like(rank), ds)
