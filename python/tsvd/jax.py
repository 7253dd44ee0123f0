"""The SVD and the inverse for JAX: within `jax.jit`, `jax.vmap`, `jax.shard_map` and derivatives.

    import tsvd.jax
    jax.grad(lambda d: tsvd.jax.svdvals(d, e).sum())(d)
    jax.jit(tsvd.jax.linalg_svd)(a)

`svd` and `svdvals` are those of bidiagonal matrices; `linalg_svd`, `linalg_svdvals` and `inv` take
dense ones. `linalg` has the functions of `jax.numpy.linalg` that rest on the SVD, and `enable` lets
JAX's own run on tsvd.

Importing tsvd does not import this module. XLA calls the C core itself, on the device of the
arguments and, on a GPU, on XLA's stream.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _core, _derivative, _jax_call
from . import _jax_linalg as linalg
from ._jax_dense import (
    default_dtype,
    formulas,
    index_range_of,
    inv,
    linalg_svd,
    linalg_svdvals,
    part_of,
)
from ._jax_enable import disable, enable
from ._options import eps_number, method_number
from ._types import SVDResult

__all__ = ["disable", "enable", "inv", "linalg", "linalg_svd", "linalg_svdvals", "svd", "svdvals"]


class _Options(NamedTuple):
    """What a call computes, as the core takes it: all that is known before there are numbers."""

    lower: int
    method: int
    eps: float
    check_finite: int
    first: int
    count: int


def svd(
    d,
    e,
    *,
    lower=False,
    method="auto",
    eps=None,
    select="a",
    select_range=None,
    check_finite=True,
):
    """Singular value decomposition of bidiagonal matrices, for `jax.jit` and differentiable.

    Parameters
    ----------
    d : array_like, shape (..., n)
        The diagonal: float32, or with ``jax_enable_x64`` float64. Integers and
        bool are computed in JAX's default floating-point type.
    e : array_like, shape (..., n-1)
        The off-diagonal. The leading dimensions of d and e broadcast.
    lower, method, eps, check_finite
        As in `tsvd.svd`. They are not traced. NaN and infinity are an error of
        the running computation.
    select : {"a", "i"}
        "a": all values. "i": those with the indices of `select_range`.
    select_range : (min, max), optional
        Two integers, ``0 <= min <= max < n``.

    Returns
    -------
    SVDResult
        JAX arrays ``(L, s, R)`` of shapes (..., n, k), (..., k), (..., k, n).

    Raises
    ------
    TypeError
        The dtype is one that tsvd does not compute.
    ValueError
        Shapes that do not fit, or an option out of range.
    NotImplementedError
        ``select="v"``: how many values an interval holds is not known before.
    jax.errors.JaxRuntimeError
        When the computation runs: NaN or infinity, no convergence, no memory, a
        device that cannot be used.

    See Also
    --------
    svdvals : The singular values only; always with finite derivatives.

    Notes
    -----
    Derivatives of any order, in reverse and in forward mode. Those of the vectors
    couple values i and j by ``1/(s_j - s_i)`` and ``1/(s_j + s_i)``. The first term
    is left out where two values are equal, which means that they differ by no more
    than ``(8 + n/8) eps`` of the larger one, eps being that of the dtype; the
    second where both are exactly zero. What is left is exact for losses that know
    equal values only by symmetric functions of them and the spaces that their vectors
    span, and for functions of the product ``L @ R``; for others it leaves out how
    the equal values part. Derivatives of selected vectors compute all vectors.

    On a GPU tsvd takes its workspace from CUDA, not from the memory that JAX has
    reserved. Set the variable XLA_PYTHON_CLIENT_MEM_FRACTION if too little is left.
    Ctrl-C does not stop a computation.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import tsvd.jax
    >>> jax.jit(tsvd.jax.svd)(jnp.array([2.0, 1.0]), jnp.zeros(1)).s.tolist()
    [2.0, 1.0]
    """
    d, e = _operands(d, e)
    options = _options(d, lower, method, eps, check_finite, select, select_range, True)
    return SVDResult(*_compiled_svd(d, e, options))


def svdvals(
    d,
    e,
    *,
    lower=False,
    method="auto",
    eps=None,
    select="a",
    select_range=None,
    check_finite=True,
):
    """Singular values of bidiagonal matrices, for `jax.jit` and differentiable.

    Parameters
    ----------
    d : array_like, shape (..., n)
        The diagonal; see `svd`.
    e : array_like, shape (..., n-1)
        The off-diagonal.
    lower, method, eps, select, select_range, check_finite
        As in `svd`.

    Returns
    -------
    jax.Array, shape (..., k)
        The values in descending order.

    Raises
    ------
    TypeError, ValueError, NotImplementedError, JaxRuntimeError
        As `svd`.

    Notes
    -----
    ``ds[k]/dd[i] = L[i, k] R[k, i]`` and ``ds[k]/de[i] = L[i, k] R[k, i+1]``, with
    `lower` ``L[i+1, k] R[k, i]``. These are finite always. Where values are equal
    or zero s has no derivative: then they are a generalized one, that of the
    vectors that `svd` gives. Vectors are computed only for derivatives.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import tsvd.jax
    >>> jax.grad(lambda d: tsvd.jax.svdvals(d, jnp.zeros(1))[0])(jnp.array([3.0, 2.0])).tolist()
    [1.0, 0.0]
    """
    d, e = _operands(d, e)
    options = _options(d, lower, method, eps, check_finite, select, select_range, False)
    return _compiled_svdvals(d, e, options)


def _operands(d, e):
    """d and e as arrays of one dtype and one batch shape."""
    d, e = jnp.asarray(d), jnp.asarray(e)
    d, e = (x.astype(default_dtype()) if x.dtype.kind in "iub" else x for x in (d, e))
    for name, x in (("d", d), ("e", e)):
        if x.dtype not in (np.float32, np.float64):
            raise TypeError(f"{name} has dtype {x.dtype}; tsvd computes float64 and float32")
        if x.ndim < 1:
            raise ValueError(f"{name} must have at least one dimension")
    n = d.shape[-1]
    if e.shape[-1] != max(n - 1, 0):
        raise ValueError(
            f"e must have {max(n - 1, 0)} entries along its last dimension, as d has {n}, "
            f"not {e.shape[-1]}"
        )
    # To ask JAX for what is there already takes a millisecond.
    if d.dtype != e.dtype:
        dtype = jnp.promote_types(d.dtype, e.dtype)
        d, e = d.astype(dtype), e.astype(dtype)
    if d.shape[:-1] != e.shape[:-1]:
        batch = jnp.broadcast_shapes(d.shape[:-1], e.shape[:-1])
        d, e = (jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (d, e))
    return _jax_call.vary_alike(d, e)


def _options(d, lower, method, eps, check_finite, select, select_range, vectors):
    number = method_number(method, vectors)
    eps = eps_number(eps)
    first, count = index_range_of(select, select_range, d.shape[-1])
    return _Options(int(bool(lower)), number, float(eps), int(bool(check_finite)), first, count)


def _call(d, e, options, vectors):
    """(L, s, R), or (s,)."""
    n = d.shape[-1]
    k = n if options.count < 0 else options.count
    shapes = [(n, k), (k,), (k, n)] if vectors else [(k,)]
    results = [(shape, d.dtype) for shape in shapes]
    return _jax_call.call("tsvd_svd", (d, e), 1, results, **options._asdict())


# Each function with derivatives is compiled, as to trace a call takes a millisecond or more.


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _svd(d, e, options):
    return tuple(_call(d, e, options, True))


_compiled_svd = jax.jit(_svd, static_argnums=2)


@_svd.defjvp
def _svd_jvp(options, primals, tangents):
    """From all values; JAX transposes it for reverse mode."""
    everything = _compiled_svd(*primals, options._replace(first=0, count=-1))
    part = part_of(options, primals[0].shape[-1])
    return tuple(
        (L[..., part], s[..., part], R[..., part, :])
        for L, s, R in (everything, _tangents(*everything, *tangents, lower=options.lower))
    )


@functools.partial(jax.jit, static_argnames="lower")  # one computation, where nothing else is
def _tangents(L, s, R, dd, de, lower):
    with formulas():
        ds = _derivative.values_tangent(L, R.mT, dd, de, lower)
        dL, dV = _derivative.vectors_tangent(jnp, L, s, R.mT, dd, de, lower, linear=True)
        return dL, ds, dV.mT


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _svdvals(d, e, options):
    return _call(d, e, options, False)[0]


_compiled_svdvals = jax.jit(_svdvals, static_argnums=2)


@_svdvals.defjvp
def _svdvals_jvp(options, primals, tangents):
    # A method for values alone has no vectors.
    L, s, R = _compiled_svd(*primals, options._replace(method=_core.METHODS["auto"]))
    return s, _derivative.values_tangent(L, R.mT, *tangents, options.lower)
