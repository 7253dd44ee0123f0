"""linalg_inv, linalg_pinv and linalg_lstsq of `tsvd.torch`: equations, with derivatives.

Derivatives are made of A, its inverse or pseudo-inverse X and the solution alone. So equal values
do no harm, and X, which is a function with derivatives itself, makes those of any order.
"""

from __future__ import annotations

import torch

from . import _dense, _derivative, _solutions, _space, _torch_operators, linalg
from ._autograd import (
    apply,
    differentiable,
    in_front,
    number,
    or_zeros,
    outer_tangents,
    primals,
)


def linalg_inv(a, *, refine=False, check_finite=True, device=None, threads=None):
    """Inverse of dense matrices, differentiable.

    Parameters
    ----------
    a : torch.Tensor, shape (..., n, n)
        The matrices; see `linalg_svd`.
    refine, check_finite, device, threads
        As in `tsvd.linalg.inv`.

    Returns
    -------
    torch.Tensor, shape (..., n, n)
        The inverses.

    Raises
    ------
    TypeError
        a is no tensor, or has a dtype that tsvd does not compute.
    ValueError, LinAlgError, MemoryError, RuntimeError
        As `tsvd.linalg.inv`: LinAlgError if a matrix is singular, or not square.

    See Also
    --------
    linalg_pinv : The pseudo-inverse, also of singular matrices.

    Notes
    -----
    ``dX = -X dA X``, in any order and in both modes, with `torch.func` too. A matrix that
    is close to a singular one is no error, and gives no warning.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[2.0, 0.0], [0.0, 2.0]], requires_grad=True)
    >>> tsvd.torch.linalg_inv(a).trace().backward()
    >>> a.grad.tolist()
    [[-0.25, 0.0], [0.0, -0.25]]
    """
    options = {"refine": refine, "check_finite": check_finite, "device": device, "threads": threads}
    return apply(_Inverse, number("a", a), options)


def linalg_pinv(
    a,
    rcond=None,
    hermitian=False,
    *,
    rtol=None,
    atol=None,
    return_rank=False,
    check_finite=True,
    device=None,
    threads=None,
):
    """Moore-Penrose pseudo-inverse of dense matrices, differentiable where the rank is constant.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices; see `linalg_svd`.
    rcond, hermitian, rtol, atol, return_rank, check_finite, device, threads
        As in `tsvd.linalg.pinv`. The derivative takes `hermitian` matrices as general ones.

    Returns
    -------
    torch.Tensor, shape (..., n, m)
        The pseudo-inverses; with return_rank ``(X, rank)``.

    Raises
    ------
    TypeError
        a is no tensor, or has a dtype that tsvd does not compute.
    ValueError, LinAlgError, MemoryError, RuntimeError
        As `tsvd.linalg.pinv`.

    See Also
    --------
    linalg_lstsq : Solves equations without the pseudo-inverse.

    Notes
    -----
    Derivatives of any order, in reverse and in forward mode, with `torch.func` too.
    They are those along changes that keep the rank [1]_; equal values do no harm. Where
    the rank is less than m and n other changes raise it, and the pseudo-inverse jumps.

    Work of a derivative: some products of matrices. Memory: some matrices as a.

    References
    ----------
    .. [1] G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
       nonlinear least squares problems whose variables separate", SIAM Journal on
       Numerical Analysis 10 (1973), 413-432.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[2.0, 0.0], [0.0, 2.0]], requires_grad=True)
    >>> tsvd.torch.linalg_pinv(a).trace().backward()
    >>> a.grad.tolist()
    [[-0.25, 0.0], [0.0, -0.25]]
    """
    options = {
        "hermitian": hermitian,
        "check_finite": check_finite,
        "device": device,
        "threads": threads,
    }
    X, rank = apply(_Pinv, number("a", a), rcond, rtol, atol, options)
    return (X, rank) if return_rank else X


def linalg_lstsq(a, b, rcond=None, *, device=None, threads=None):
    """Least-squares solution of linear equations, differentiable where the rank is constant.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices; see `linalg_svd`.
    b : torch.Tensor, shape (m,), (m, k) or (..., m, k)
        The right-hand sides, in columns, on the device of a. Leading dimensions are
        those of a.
    rcond, device, threads
        As in `tsvd.linalg.lstsq`.

    Returns
    -------
    x, residuals, rank, s : torch.Tensor
        Those of `tsvd.linalg.lstsq`. The first two have derivatives. s has none here;
        `linalg_svdvals` gives values that have.

    Raises
    ------
    TypeError
        a or b is no tensor, or has a dtype that tsvd does not compute.
    ValueError, LinAlgError, MemoryError, RuntimeError
        As `tsvd.linalg.lstsq`.

    See Also
    --------
    linalg_pinv : The matrix that makes the solutions.

    Notes
    -----
    What `linalg_pinv` says of derivatives holds here too. A derivative computes the
    pseudo-inverse. Within `torch.func.vmap` residuals of all matrices are given, as
    those of a batch.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[1.0], [1.0]], dtype=torch.float64)
    >>> b = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    >>> x, residuals, rank, s = tsvd.torch.linalg_lstsq(a, b)
    >>> x.sum().backward()  # the mean of b
    >>> b.grad
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    a, b = number("a", a), number("b", b)
    if a.dtype != b.dtype:
        dtype = torch.promote_types(a.dtype, b.dtype)
        a, b = a.to(dtype), b.to(dtype)
    vector = b.ndim == 1
    x, squares, rank, s = apply(
        _Lstsq, a, b[:, None] if vector else b, rcond, {"device": device, "threads": threads}
    )
    return x[..., 0] if vector else x, squares, rank, s


@differentiable
class _Inverse(torch.autograd.Function):
    """X. As X is saved, its derivative has derivatives."""

    @staticmethod
    def forward(a, options):
        if _torch_operators.is_traced(a):
            return _torch_operators.linalg_inv(a, **options)
        return _dense.inverse(a.detach(), **options)[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, gX):
        (X,) = ctx.saved_tensors
        return _derivative.inverse_tangent(X.mH, gX), None

    @staticmethod
    def jvp(ctx, da, _):
        with outer_tangents():
            X, da = primals((*ctx.saved_tensors, da))
            return _derivative.inverse_tangent(X, da)

    @staticmethod
    def vmap(info, in_dims, a, options):
        return apply(_Inverse, in_front(a, in_dims[0], info.batch_size), options), 0


def _as_tensor(part, a):
    """A threshold, or one for each matrix, as the operator takes it."""
    if part is None or isinstance(part, torch.Tensor):
        return part
    if isinstance(part, (float, int, torch.SymFloat, torch.SymInt)):  # it may depend on sizes
        return torch.full((), part, dtype=a.real.dtype, device=a.device)
    return torch.as_tensor(part, dtype=a.real.dtype, device=a.device)


def _in_front(part, dim, size, a):
    """A threshold beside the matrices a, to whose batch vmap has added a dimension in front."""
    if not isinstance(part, torch.Tensor) or dim is None:
        return part
    part = in_front(part, dim, size)
    return part.reshape(size, *(1,) * (a.ndim - 2 - part.ndim), *part.shape[1:])


@differentiable
class _Pinv(torch.autograd.Function):
    """(X, rank)."""

    @staticmethod
    def forward(a, rcond, rtol, atol, options):
        if _torch_operators.is_traced(a):
            parts = (_as_tensor(part, a) for part in (rcond, rtol, atol))
            parts = dict(zip(("rcond", "rtol", "atol"), parts, strict=True))
            return _torch_operators.linalg_pinv(a, **parts, **options)
        part = {} if rtol is None else {"rtol": rtol}
        return linalg.pinv(a.detach(), rcond, atol=atol, return_rank=True, **part, **options)

    @staticmethod
    def setup_context(ctx, inputs, output):
        X, rank = output
        ctx.mark_non_differentiable(rank)
        ctx.save_for_backward(inputs[0], X)
        ctx.save_for_forward(inputs[0], X)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gX, _):
        gA = None if gX is None else _derivative.pinv_adjoint(*ctx.saved_tensors, gX)
        return gA, None, None, None, None

    @staticmethod
    def jvp(ctx, da, *_):
        with outer_tangents():
            a, X, da = primals((*ctx.saved_tensors, da))
            return _derivative.pinv_tangent(a, X, da), None

    @staticmethod
    def vmap(info, in_dims, a, rcond, rtol, atol, options):
        size = info.batch_size
        a = in_front(a, in_dims[0], size)
        parts = (
            _in_front(part, dim, size, a)
            for part, dim in zip((rcond, rtol, atol), in_dims[1:4], strict=True)
        )
        return apply(_Pinv, a, *parts, options), (0, 0)


def _inverse_of(ctx, a, s, rcond):
    """The pseudo-inverse for which the values count that counted for x."""
    part = ctx.rcond if rcond is None else rcond
    if part is not None:
        part = _solutions.counted_part(torch, s, part, _space.eps_of(a))
        part = part[..., 0] if hasattr(part, "shape") else part
    return linalg_pinv(a, part, **ctx.options)


@differentiable
class _Lstsq(torch.autograd.Function):
    """(x, squares of residuals, rank, s) for right-hand sides in columns."""

    @staticmethod
    def forward(a, b, rcond, options):
        if _torch_operators.is_traced(a) or _torch_operators.is_traced(b):
            return _torch_operators.linalg_lstsq(a, b, rcond=_as_tensor(rcond, a), **options)
        return linalg.lstsq(a.detach(), b.detach(), rcond, **options)

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, rcond, ctx.options = inputs
        x, squares, rank, s = output
        part = rcond if isinstance(rcond, torch.Tensor) else None
        ctx.rcond = None if part is not None else rcond
        ctx.has_squares = squares.shape[-1:] == b.shape[-1:]
        ctx.mark_non_differentiable(rank, s)
        ctx.save_for_backward(a, b, x, s, part)
        ctx.save_for_forward(a, b, x, s, part)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gx, g_squares, *_):
        a, b, x, s, rcond = ctx.saved_tensors
        g_squares = g_squares if ctx.has_squares else None
        if gx is None and g_squares is None:
            return None, None, None, None
        X = _inverse_of(ctx, a, s, rcond)
        return (*_derivative.lstsq_adjoint(a, b, X, x, gx, g_squares), None, None)

    @staticmethod
    def jvp(ctx, da, db, *_):
        with outer_tangents():
            a, b, x, s, rcond, da, db = primals((*ctx.saved_tensors, da, db))
            X = _inverse_of(ctx, a, s, rcond)
            da, db = or_zeros(da, a), or_zeros(db, b)
            dx, squares = _derivative.lstsq_tangent(a, b, X, x, da, db)
            return dx, squares if ctx.has_squares else squares[..., :0], None, None

    @staticmethod
    def vmap(info, in_dims, a, b, rcond, options):
        a, b = (
            in_front(x, dim, info.batch_size) for x, dim in zip((a, b), in_dims[:2], strict=True)
        )
        rcond = _in_front(rcond, in_dims[2], info.batch_size, a)
        return apply(_Lstsq, a, b, rcond, options), (0, 0, 0, 0)
