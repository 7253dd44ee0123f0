"""linalg_svd and linalg_svdvals of `tsvd.torch`: dense matrices, with derivatives."""

from __future__ import annotations

import torch

from . import _arrays, _derivative, _torch_operators, linalg
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


def linalg_svd(
    a,
    *,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    device=None,
    check_finite=True,
):
    """Singular value decomposition of dense matrices, differentiable.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices: float64, float32, complex128 or complex64, integers and bool
        as float64. Any strides, also views of conjugates.
    method, eps, max_sweeps, select, select_range, device, check_finite
        As in `tsvd.linalg.svd`.

    Returns
    -------
    tsvd.linalg.SVDResult
        Tensors ``(U, S, Vh)`` of shapes (..., m, k), (..., k), (..., k, n), where
        k is the smaller of m and n, or the number of selected values. The columns
        that would complete the bases are not determined by a, so that they have no
        derivative, and are not computed.

    Raises
    ------
    TypeError
        a is no tensor, or has a dtype that tsvd does not compute.
    NotImplementedError
        ``select="v"`` within a transformation of `torch.func`.
    ValueError, LinAlgError, MemoryError, RuntimeError, ModuleNotFoundError
        As `tsvd.linalg.svd`.

    See Also
    --------
    linalg_svdvals : The singular values only; always with finite derivatives.

    Notes
    -----
    What `svd` says of derivatives holds here too. Derivatives of complex matrices
    are those of PyTorch's convention. Complex vectors are determined up to a phase
    of each pair, as those of `torch.linalg.svd`: a loss that depends on the phases
    has no gradient, and raises a RuntimeError. If m and n differ, the derivatives of
    vectors also have the terms ``1/S[k]``, for which the same holds as for the others.

    References
    ----------
    J. Townsend, "Differentiating the singular value decomposition" (2016).

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]], requires_grad=True)
    >>> U, S, Vh = tsvd.torch.linalg_svd(a)
    >>> (U * S @ Vh).sum().backward()
    >>> a.grad.round(decimals=5).abs().tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    a = number("a", a)
    options = {
        "method": method,
        "eps": eps,
        "max_sweeps": max_sweeps,
        "device": device,
        "check_finite": check_finite,
    }
    method_number(method, True, dense=True)  # a count takes methods for values alone
    select, select_range = indices(
        (a,),
        _orders(a),
        lambda **part: _compute_dense(a, {**options, **part}, False),
        select,
        select_range,
    )
    if select_range == NONE:
        return linalg.SVDResult(a[..., :0], a[..., :0].sum(-2), a[..., :0, :])
    selected = {"select": select, "select_range": select_range}
    if select != "i" or select_range is None or not may_want_derivative(a):
        return linalg.SVDResult(*apply(_DenseSVD, a, {**options, **selected}))
    U, S, Vh = apply(_DenseSVD, a, options)
    part = slice(select_range[0], select_range[1] + 1)
    return linalg.SVDResult(U[..., part], S[..., part], Vh[..., part, :])


def linalg_svdvals(
    a,
    *,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    device=None,
    check_finite=True,
):
    """Singular values of dense matrices, differentiable.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices; see `linalg_svd`.
    method, eps, max_sweeps, select, select_range, device, check_finite
        As in `tsvd.linalg.svd`.

    Returns
    -------
    torch.Tensor, shape (..., k)
        The values in descending order.

    Raises
    ------
    TypeError, ValueError, LinAlgError, MemoryError, RuntimeError, NotImplementedError
        As `linalg_svd`.

    Notes
    -----
    ``dS[k]/da[i, j] = U[i, k] Vh[k, j]``, which is finite always. Where values are
    equal or zero S has no derivative: then it is a generalized one, that of the
    vectors that `linalg_svd` gives. Derivatives of higher order go through those of
    the vectors. The derivative computes the vectors of the selected values.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[3.0, 0.0], [0.0, 2.0]], requires_grad=True)
    >>> tsvd.torch.linalg_svdvals(a)[0].backward()
    >>> a.grad.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    a = number("a", a)
    options = {
        "method": method,
        "eps": eps,
        "max_sweeps": max_sweeps,
        "device": device,
        "check_finite": check_finite,
    }
    select, select_range = indices(
        (a,),
        _orders(a),
        lambda **part: _compute_dense(a, {**options, **part}, False),
        select,
        select_range,
    )
    if select_range == NONE:
        return a[..., :0].sum(-2)
    return apply(_DenseValues, a, {**options, "select": select, "select_range": select_range})


def _orders(a):
    """What bounds an index of a value; nothing where tsvd will refuse a."""
    return a.shape[-2:] if a.ndim > 1 else ()


def _compute_dense(a, options, vectors):
    """tsvd.linalg.svd, which has no derivatives."""
    if _torch_operators.is_traced(a):
        operator = _torch_operators.linalg_svd if vectors else _torch_operators.linalg_svdvals
        return operator(a, **options)
    result = linalg.svd(a.detach(), full_matrices=False, compute_uv=vectors, **options)
    return tuple(result) if vectors else result


def _check_phases(U, V, gU, gV):
    """Refuses gradients for U and V of a loss that depends on the phases of a pair of vectors."""
    turn_U, turn_V = (
        U.new_zeros(()).real if gQ is None else (Q.conj() * gQ).sum(-2).imag
        for Q, gQ in ((U, gU), (V, gV))
    )
    if not torch.allclose(*torch.broadcast_tensors(turn_U, -turn_V), rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            "singular vectors of complex matrices are determined up to a phase of each pair, and "
            "this loss depends on the phases: it has no gradient"
        )


@differentiable
class _DenseSVD(torch.autograd.Function):
    """(U, S, Vh). Derivatives need all values."""

    @staticmethod
    def forward(a, options):
        return _compute_dense(a, options, True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*output)
        ctx.save_for_forward(*output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gU, gS, gVh):
        U, S, Vh = ctx.saved_tensors
        if gU is None and gS is None and gVh is None:
            return None, None
        V, gV = Vh.mH, None if gVh is None else gVh.mH
        hidden = _torch_operators.is_traced(U) or any(map(_arrays.is_transformed, (U, S, Vh)))
        if U.is_complex() and not hidden:
            _check_phases(U, V, gU, gV)
        return _derivative.dense_adjoint(torch, U, S, V, gU, gS, gV), None

    @staticmethod
    def jvp(ctx, da, _):
        with outer_tangents():
            U, S, Vh = primals(ctx.saved_tensors)
            (da,) = primals((da,))
            dS = _derivative.dense_values_tangent(U, Vh.mH, da)
            dU, dV = _derivative.dense_vectors_tangent(torch, U, S, Vh.mH, da)
            return dU, dS, dV.mH

    @staticmethod
    def vmap(info, in_dims, a, options):
        return apply(_DenseSVD, in_front(a, in_dims[0], info.batch_size), options), (0, 0, 0)


@differentiable
class _DenseValues(torch.autograd.Function):
    """S, as _Values has s."""

    @staticmethod
    def forward(a, options):
        return _compute_dense(a, options, False)

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, options = inputs
        ctx.options = {**options, "method": "auto", "max_sweeps": None}
        ctx.save_for_backward(a)
        ctx.save_for_forward(a)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gS):
        if gS is None:
            return None, None
        (a,) = ctx.saved_tensors
        U, _, Vh = linalg_svd(a, **ctx.options)
        return (U * gS[..., None, :]) @ Vh, None

    @staticmethod
    def jvp(ctx, da, _):
        with outer_tangents():
            a, da = primals((*ctx.saved_tensors, da))
            U, _, Vh = linalg_svd(a, **ctx.options)
            return _derivative.dense_values_tangent(U, Vh.mH, da)

    @staticmethod
    def vmap(info, in_dims, a, options):
        return apply(_DenseValues, in_front(a, in_dims[0], info.batch_size), options), 0
