"""The functions of tsvd for tensors of PyTorch, with derivatives.

    import tsvd.torch
    s = tsvd.torch.svdvals(d, e)
    s.sum().backward()

`svd` and `svdvals` are those of `tsvd`, for bidiagonal matrices. Those named `linalg_` are for
dense ones, as `tsvd.linalg` has them: `linalg_svd` and `linalg_svdvals` in _torch_linalg.py, and
functions that are smooth where these are not in _torch_solutions.py and _torch_nearest.py.
Importing tsvd does not import this module. Results are on the device of the input.
"""

from __future__ import annotations

import sys

import torch

from . import _api, _derivative, _torch_operators
from . import _torch_namespace as linalg
from ._autograd import (
    NONE,
    apply,
    differentiable,
    in_front,
    indices,
    may_want_derivative,
    number,
    outer_tangents,
    primals,
)
from ._options import method_number
from ._torch_enable import disable, enable, enabled, is_enabled
from ._torch_linalg import linalg_svd, linalg_svdvals
from ._torch_nearest import linalg_low_rank, linalg_nuclear_norm, linalg_polar
from ._torch_solutions import linalg_inv, linalg_lstsq, linalg_pinv
from ._types import SVDResult

__all__ = [
    "disable",
    "enable",
    "enabled",
    "is_enabled",
    "linalg",
    "linalg_inv",
    "linalg_low_rank",
    "linalg_lstsq",
    "linalg_nuclear_norm",
    "linalg_pinv",
    "linalg_polar",
    "linalg_svd",
    "linalg_svdvals",
    "svd",
    "svdvals",
]

sys.modules[f"{__name__}.linalg"] = linalg  # for `import tsvd.torch.linalg`


def svd(
    d,
    e,
    *,
    lower=False,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    device=None,
    check_finite=True,
):
    """Singular value decomposition of bidiagonal matrices, differentiable.

    Parameters
    ----------
    d : torch.Tensor, shape (..., n)
        The diagonal: float64 or float32, integers and bool as float64. Any
        strides; e has the same device.
    e : torch.Tensor, shape (..., n-1)
        The off-diagonal. The leading dimensions of d and e broadcast.
    lower, method, eps, max_sweeps, select, select_range, device, check_finite
        As in `tsvd.svd`.

    Returns
    -------
    SVDResult
        Tensors ``(L, s, R)`` of shapes (..., n, k), (..., k), (..., k, n).

    Raises
    ------
    TypeError
        d or e is no tensor, or has a dtype that tsvd does not compute.
    NotImplementedError
        ``select="v"`` within a transformation of `torch.func`.
    ValueError, LinAlgError, MemoryError, RuntimeError, ModuleNotFoundError
        As `tsvd.svd`.

    See Also
    --------
    svdvals : The singular values only; always with finite derivatives.

    Notes
    -----
    Derivatives of any order, in reverse and in forward mode, with `torch.func`
    too. They couple values i and j by ``1/(s_j - s_i)`` and ``1/(s_j + s_i)``.
    Where such a divisor may be zero but for rounding, no larger than ``(8 + n/8) eps``
    of the largest value, its term is left out if the gradients of the vectors have
    nothing but rounding errors for it. What is left is exact for losses that know equal
    values only by symmetric functions of them and the spaces that their vectors
    span, and for functions of B or of the product ``L @ R``. Losses that tell close
    values apart have large derivatives; how values part that are exactly equal, or
    exactly zero, is left out. In forward mode the term is also left out where two
    values differ by no more than ``(8 + n/8) eps`` of the larger one: it cannot be
    known what becomes of the tangents. Signs are fixed as by `tsvd.svd`, which is
    locally constant and has no derivative.

    The derivative of some vectors needs those of all values. So with `select` all
    are computed where a derivative may be asked for: where d or e requires one, or
    within a transformation of `torch.func`.

    Work of a derivative: some products of n x n matrices. Memory: some n x n
    matrices. Graphs of `torch.compile`, `torch.export` and `make_fx` hold it as an
    operator of PyTorch, with derivatives in reverse mode of first order. Others leave
    the graph of `torch.compile`.

    References
    ----------
    J. Townsend, "Differentiating the singular value decomposition" (2016).

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> d = torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True)
    >>> L, s, R = tsvd.torch.svd(d, d.new_zeros(1))
    >>> (L[0, 0] ** 2 + s[1]).backward()
    >>> d.grad
    tensor([0., 1.], dtype=torch.float64)
    """
    d, e = _operands(d, e)
    options = {
        "method": method,
        "eps": eps,
        "max_sweeps": max_sweeps,
        "device": device,
        "check_finite": check_finite,
    }
    method_number(method, True)  # a count takes methods for values alone
    select, select_range = indices(
        (d, e),
        d.shape[-1:],
        lambda **part: _compute(d, e, lower, {**options, **part}, False),
        select,
        select_range,
    )
    if select_range == NONE:
        return SVDResult(d[..., None][..., :0], d[..., :0], d[..., None, :][..., :0, :])
    selected = {"select": select, "select_range": select_range}
    wanted = may_want_derivative(d) or may_want_derivative(e)
    if select != "i" or select_range is None or not wanted:
        return SVDResult(*apply(_SVD, d, e, lower, {**options, **selected}))
    L, s, R = apply(_SVD, d, e, lower, options)
    part = slice(select_range[0], select_range[1] + 1)
    return SVDResult(L[..., part], s[..., part], R[..., part, :])


def svdvals(
    d,
    e,
    *,
    lower=False,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    device=None,
    check_finite=True,
):
    """Singular values of bidiagonal matrices, differentiable.

    Parameters
    ----------
    d : torch.Tensor, shape (..., n)
        The diagonal; see `svd`.
    e : torch.Tensor, shape (..., n-1)
        The off-diagonal.
    lower, method, eps, max_sweeps, select, select_range, device, check_finite
        As in `tsvd.svd`.

    Returns
    -------
    torch.Tensor, shape (..., k)
        The values in descending order.

    Raises
    ------
    TypeError, ValueError, LinAlgError, MemoryError, RuntimeError, NotImplementedError
        As `svd`.

    Notes
    -----
    ``ds[k]/dd[i] = L[i, k] R[k, i]`` and ``ds[k]/de[i] = L[i, k] R[k, i+1]``, with
    `lower` ``L[i+1, k] R[k, i]``. These are finite always. Where values are equal
    or zero s has no derivative: then they are a generalized one, that of the
    vectors that `svd` gives. Derivatives of higher order go through those of the
    vectors, see `svd`.

    Only values are computed, and nothing of size n x n is kept. The derivative
    computes the vectors of the selected values.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> d = torch.tensor([3.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> tsvd.torch.svdvals(d, d.new_zeros(1))[0].backward()
    >>> d.grad
    tensor([1., 0.], dtype=torch.float64)
    """
    d, e = _operands(d, e)
    options = {
        "method": method,
        "eps": eps,
        "max_sweeps": max_sweeps,
        "device": device,
        "check_finite": check_finite,
    }
    select, select_range = indices(
        (d, e),
        d.shape[-1:],
        lambda **part: _compute(d, e, lower, {**options, **part}, False),
        select,
        select_range,
    )
    if select_range == NONE:
        return d[..., :0]
    selected = {"select": select, "select_range": select_range}
    return apply(_Values, d, e, lower, {**options, **selected})


def _operands(d, e):
    """d and e with one dtype and one batch shape. By that autograd sums over what is broadcast."""
    d, e = number("d", d), number("e", e)
    if d.dtype != e.dtype:
        dtype = torch.promote_types(d.dtype, e.dtype)
        d, e = d.to(dtype), e.to(dtype)
    if d.ndim and e.ndim and d.shape[-1] == e.shape[-1] > 0:
        raise ValueError(
            "e must have one entry less than d: n x (n+1) and (n+1) x n matrices, which tsvd.svd "
            "takes, have no derivatives here"
        )
    if d.ndim and e.ndim and d.shape[:-1] != e.shape[:-1]:
        try:
            batch = torch.broadcast_shapes(d.shape[:-1], e.shape[:-1])
        except RuntimeError:
            return d, e  # tsvd says what does not fit
        d, e = d.expand(*batch, d.shape[-1]), e.expand(*batch, e.shape[-1])
    return d, e


def _compute(d, e, lower, options, vectors):
    """tsvd.svd, which has no derivatives."""
    if _torch_operators.is_traced(d) or _torch_operators.is_traced(e):
        operator = _torch_operators.svd if vectors else _torch_operators.svdvals
        return operator(d, e, lower=lower, **options)
    result = _api.svd(d.detach(), e.detach(), lower=lower, compute_uv=vectors, **options)
    return tuple(result) if vectors else result


def _zero_tangents(s, dd, de):
    """The tangents of d and e, in full where they are None."""
    n = s.shape[-1]
    dd = s.new_zeros(s.shape) if dd is None else dd
    return dd, s.new_zeros((*s.shape[:-1], max(n - 1, 0))) if de is None else de


@differentiable
class _SVD(torch.autograd.Function):
    """(L, s, R). Derivatives need all values."""

    @staticmethod
    def forward(d, e, lower, options):
        return _compute(d, e, lower, options, True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.lower = inputs[2]
        ctx.save_for_backward(*output)
        ctx.save_for_forward(*output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gL, gs, gR):
        L, s, R = ctx.saved_tensors
        gV = None if gR is None else gR.mT
        return (*_derivative.adjoint(torch, L, s, R.mT, gL, gs, gV, ctx.lower), None, None)

    @staticmethod
    def jvp(ctx, dd, de, *_):
        with outer_tangents():
            L, s, R = primals(ctx.saved_tensors)
            dd, de = _zero_tangents(s, *primals((dd, de)))
            ds = _derivative.values_tangent(L, R.mT, dd, de, ctx.lower)
            dL, dV = _derivative.vectors_tangent(torch, L, s, R.mT, dd, de, ctx.lower)
            return dL, ds, dV.mT

    @staticmethod
    def vmap(info, in_dims, d, e, lower, options):
        d, e = (
            in_front(x, dim, info.batch_size) for x, dim in zip((d, e), in_dims[:2], strict=True)
        )
        return apply(_SVD, d, e, lower, options), (0, 0, 0)


def _vectors_of(ctx, d, e):
    L, _, R = svd(d, e, lower=ctx.lower, **ctx.options)
    return L, R.mT


@differentiable
class _Values(torch.autograd.Function):
    """s. The derivative computes the vectors anew, by a function that has derivatives itself."""

    @staticmethod
    def forward(d, e, lower, options):
        return _compute(d, e, lower, options, False)

    @staticmethod
    def setup_context(ctx, inputs, output):
        d, e, ctx.lower, options = inputs
        # A method for values alone has no vectors.
        ctx.options = {**options, "method": "auto", "max_sweeps": None}
        ctx.save_for_backward(d, e)
        ctx.save_for_forward(d, e)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gs):
        if gs is None:
            return None, None, None, None
        L, V = _vectors_of(ctx, *ctx.saved_tensors)
        return (*_derivative.pull(L * gs[..., None, :], V, ctx.lower), None, None)

    @staticmethod
    def jvp(ctx, dd, de, *_):
        with outer_tangents():
            d, e = primals(ctx.saved_tensors)
            L, V = _vectors_of(ctx, d, e)
            dd, de = _zero_tangents(d, *primals((dd, de)))
            return _derivative.values_tangent(L, V, dd, de, ctx.lower)

    @staticmethod
    def vmap(info, in_dims, d, e, lower, options):
        d, e = (
            in_front(x, dim, info.batch_size) for x, dim in zip((d, e), in_dims[:2], strict=True)
        )
        return apply(_Values, d, e, lower, options), 0
