"""linalg_svd, linalg_svdvals and inv of `tsvd.jax`: dense matrices, with derivatives."""

from __future__ import annotations

import contextlib
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _core, _derivative, _jax_call
from ._options import INT64_MAX, eps_number, integer, method_number
from ._selection import index_range
from ._types import SVDResult


@contextlib.contextmanager
def formulas():
    """For formulas in jax.numpy: they may mix real and complex arrays, and their dimensions.

    Products are computed in the precision of the dtype, also where a GPU has a faster one.
    """
    with (
        jax.default_matmul_precision("highest"),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


class DenseOptions(NamedTuple):
    """What a call computes: all that is known before there are numbers."""

    method: int = _core.METHODS["auto"]
    eps: float = -1.0
    max_sweeps: int = 0
    check_finite: int = 1
    first: int = 0
    count: int = -1  # type: ignore[assignment]  # not that of tuple


def linalg_svd(
    a,
    *,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    check_finite=True,
):
    """Singular value decomposition of dense matrices, for `jax.jit` and differentiable.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices: float32 and complex64, or with ``jax_enable_x64`` float64 and
        complex128. Integers and bool are computed in JAX's default floating-point
        type.
    method, eps, max_sweeps, check_finite
        As in `tsvd.linalg.svd`. They are not traced. NaN and infinity are an error
        of the running computation.
    select : {"a", "i"}
        "a": all values. "i": those with the indices of `select_range`.
    select_range : (min, max), optional
        Two integers, ``0 <= min <= max < min(m, n)``.

    Returns
    -------
    tsvd.linalg.SVDResult
        JAX arrays ``(U, S, Vh)`` of shapes (..., m, k), (..., k), (..., k, n), where
        k is the smaller of m and n, or the number of selected values. The columns
        that would complete the bases are not determined by a, so that they have no
        derivative: `tsvd.jax.linalg.svd` gives them.

    Raises
    ------
    TypeError
        The dtype is one that tsvd does not compute.
    ValueError
        a is no matrix, or an option is out of range.
    NotImplementedError
        ``select="v"``: how many values an interval holds is not known before.
    jax.errors.JaxRuntimeError
        When the computation runs: NaN or infinity, no convergence, no memory, a
        device that cannot be used.

    See Also
    --------
    linalg_svdvals : The singular values only; always with finite derivatives.
    tsvd.jax.linalg.svd : The same with the arguments of `jax.numpy.linalg.svd`.

    Notes
    -----
    Derivatives of any order, in reverse and in forward mode. Complex gradients are
    those of JAX, the conjugates of PyTorch's. Complex vectors are determined up to a
    phase of each pair: the derivative of a loss that depends on the phases is of no
    meaning, as that of `jax.numpy.linalg.svd`. Which terms are left out where values are
    equal or zero is said at `svd`. If m and n differ, derivatives of vectors also have
    the terms ``1/S[k]``, which are left out where a value is exactly zero.

    What `svd` says of memory on a GPU and of Ctrl-C holds here too.

    References
    ----------
    J. Townsend, "Differentiating the singular value decomposition" (2016).

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import tsvd.jax
    >>> a = jnp.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> U, S, Vh = jax.jit(tsvd.jax.linalg_svd)(a)
    >>> bool(jnp.allclose(U * S @ Vh, a))
    True
    >>> jax.grad(lambda a: tsvd.jax.linalg_svd(a).S[0])(a).tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    a = matrices("a", a)
    options = _options(a, method, eps, max_sweeps, check_finite, select, select_range, True)
    return SVDResult(*dense_svd(a, options, False))


def linalg_svdvals(
    a,
    *,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    check_finite=True,
):
    """Singular values of dense matrices, for `jax.jit` and differentiable.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `linalg_svd`.
    method, eps, max_sweeps, select, select_range, check_finite
        As in `linalg_svd`.

    Returns
    -------
    jax.Array, shape (..., k)
        The values in descending order.

    Raises
    ------
    TypeError, ValueError, NotImplementedError, JaxRuntimeError
        As `linalg_svd`.

    Notes
    -----
    ``dS[k]/da[i, j] = U[i, k] Vh[k, j]``, of complex matrices its conjugate or not as
    JAX defines gradients. These are finite always. Where values are equal or zero S
    has no derivative: then they are a generalized one, that of the vectors that
    `linalg_svd` gives. Vectors are computed only for derivatives.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import tsvd.jax
    >>> jax.grad(lambda a: tsvd.jax.linalg_svdvals(a).sum())(jnp.diag(jnp.array([3.0, 2]))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a = matrices("a", a)
    options = _options(a, method, eps, max_sweeps, check_finite, select, select_range, False)
    return dense_values(a, options)


def inv(a, *, refine=False, check_finite=True):
    """Inverse of dense matrices, for `jax.jit` and differentiable.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        The matrices; see `linalg_svd` for dtypes.
    refine, check_finite : bool
        As in `tsvd.linalg.inv`. They are not traced.

    Returns
    -------
    jax.Array, shape (..., n, n)
        The inverses.

    Raises
    ------
    TypeError
        The dtype is one that tsvd does not compute.
    ValueError
        The matrices are not square.
    jax.errors.JaxRuntimeError
        When the computation runs: a matrix is singular, NaN or infinity, no memory, a
        device that cannot be used.

    Notes
    -----
    ``dX = -X dA X``, in any order and in both modes. A matrix that is close to a
    singular one is no error, and gives no warning.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import tsvd.jax
    >>> jax.grad(lambda a: tsvd.jax.inv(a).trace())(2 * jnp.eye(2)).tolist()
    [[-0.25, 0.0], [0.0, -0.25]]
    """
    a = matrices("a", a)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"a must be square matrices, not of shape {a.shape}")
    return _compiled_inverse(a, bool(refine), bool(check_finite))


# ---- arguments ----


def default_dtype():
    """That of numbers without one: float64 with ``jax_enable_x64``."""
    return jnp.zeros(0).dtype


def array(name, x):
    """x as an array of a dtype that tsvd computes."""
    x = jnp.asarray(x)
    if x.dtype.kind in "iub":
        x = x.astype(default_dtype())
    if x.dtype.char not in "fdFD":
        raise TypeError(
            f"{name} has dtype {x.dtype}; tsvd computes float64, float32, complex128 and complex64"
        )
    return x


def matrices(name, x):
    """x as arrays of two dimensions or more."""
    x = array(name, x)
    if x.ndim < 2:
        raise ValueError(f"{name} must have at least two dimensions, not {x.ndim}")
    return x


def _options(a, method, eps, max_sweeps, check_finite, select, select_range, vectors):
    number = method_number(method, vectors, dense=True)
    if method == "jacobi" and eps is not None:
        raise ValueError('method="jacobi" takes no eps')
    if max_sweeps is not None:
        max_sweeps = integer("max_sweeps", max_sweeps, 1, INT64_MAX)
    first, count = index_range_of(select, select_range, smaller(*a.shape[-2:]))
    return DenseOptions(
        number, float(eps_number(eps)), max_sweeps or 0, int(bool(check_finite)), first, count
    )


def index_range_of(select, select_range, order):
    """The index of the first selected value and the number of values, -1 for all."""
    if select == "v":
        raise NotImplementedError(
            'select="v": how many values an interval holds is not known before they are computed; '
            'use select="i"'
        )
    if select not in ("a", "i"):
        raise ValueError(f'select must be "a" or "i", not {select!r}')
    if (select == "i") != (select_range is not None):
        raise ValueError('select_range and select="i" belong together')
    if select == "a":
        return 0, -1
    first, last = index_range(select_range, order)
    return first, last - first + 1


def part_of(options, order):
    """The indices of the selected values, of `order` values in all."""
    return slice(options.first, order if options.count < 0 else options.first + options.count)


def smaller(m, n):
    """The smaller of two sizes. Of symbolic ones, one order may be known and the other not."""
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    try:
        return n if m >= n else m
    except Exception:  # JAX has no public name for what it raises
        return m if n >= m else n


# ---- calls ----


def _real(dtype):
    return np.zeros(0, dtype).real.dtype


def _of_nothing(batch, shape, dtype):
    """A result of empty matrices. What completes a basis is the identity."""
    alone = jnp.eye(*shape, dtype=dtype) if len(shape) == 2 else jnp.zeros(shape, dtype)
    return jnp.broadcast_to(alone, (*batch, *shape))


def _call(a, options, vectors, full):
    """(U, S, Vh), or (S,)."""
    m, n = a.shape[-2:]
    k = smaller(m, n) if options.count < 0 else options.count
    results = [((k,), _real(a.dtype))]
    if vectors:
        left, right = ((m, m), (n, n)) if full else ((m, k), (k, n))
        results = [(left, a.dtype), *results, (right, a.dtype)]
    if any(isinstance(size, int) and size == 0 for size in a.shape):
        # On a GPU XLA does not call where it finds an empty argument and an empty first result.
        return [_of_nothing(a.shape[:-2], *result) for result in results]
    return _jax_call.call("tsvd_dense_svd", (a,), 2, results, **options._asdict())


# Each function with derivatives is compiled, as to trace a call takes a millisecond or more.


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _dense_svd(a, options, full):
    """(U, S, Vh) as a function of matrices. full: with the columns that complete the bases."""
    return tuple(_call(a, options, True, full))


dense_svd = jax.jit(_dense_svd, static_argnums=(1, 2))


@_dense_svd.defjvp
def _dense_svd_jvp(options, full, primals, tangents):
    """From all values; JAX transposes it for reverse mode."""
    (a,), (da,) = primals, tangents
    if full and a.shape[-2] != a.shape[-1]:
        raise NotImplementedError(
            "the vectors that complete the bases are not determined by the matrix and have no "
            "derivative: use full_matrices=False"
        )
    everything = dense_svd(a, options._replace(first=0, count=-1), False)
    part = part_of(options, smaller(*a.shape[-2:]))
    return tuple(
        (U[..., part], S[..., part], Vh[..., part, :])
        for U, S, Vh in (everything, _tangents(*everything, da))
    )


@jax.jit  # one computation, where nothing else is
def _tangents(U, S, Vh, da):
    with formulas():
        dS = _derivative.dense_values_tangent(U, Vh.mT.conj(), da)
        dU, dV = _derivative.dense_vectors_tangent(jnp, U, S, Vh.mT.conj(), da, linear=True)
        return dU, dS, dV.mT.conj()


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _dense_values(a, options):
    """The values as a function of matrices."""
    return _call(a, options, False, False)[0]


dense_values = jax.jit(_dense_values, static_argnums=1)


@_dense_values.defjvp
def _dense_values_jvp(options, primals, tangents):
    (a,), (da,) = primals, tangents
    # A method for values alone has no vectors, and max_sweeps is for one method.
    options = options._replace(method=_core.METHODS["auto"], max_sweeps=0)
    U, S, Vh = dense_svd(a, options, False)
    with formulas():
        return S, _derivative.dense_values_tangent(U, Vh.mT.conj(), da)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _inverse(a, refine, check_finite):
    attributes = {"refine": int(refine), "check_finite": int(check_finite)}
    results = [(a.shape[-2:], a.dtype)]
    return _jax_call.call("tsvd_inverse", (a,), 2, results, **attributes)[0]


_compiled_inverse = jax.jit(_inverse, static_argnums=(1, 2))


@_inverse.defjvp
def _inverse_jvp(refine, check_finite, primals, tangents):
    X = _compiled_inverse(*primals, refine, check_finite)
    with formulas():
        return X, _derivative.inverse_tangent(X, *tangents)
