"""linalg_polar, linalg_low_rank and linalg_nuclear_norm of `tsvd.torch`: nearest matrices, with
derivatives.

These are smooth where vectors of the SVD are not: at equal values, but for two values that a cut
parts. A first derivative comes from all vectors, by a function whose own derivatives come from an
equation that it solves (_BySums, _Truncate). So derivatives of any order go through no vectors.
"""

from __future__ import annotations

import operator

import torch

from . import _derivative, _nearest, _space, _torch_operators, linalg
from ._autograd import (
    apply,
    differentiable,
    in_front,
    may_want_derivative,
    number,
    or_zeros,
    outer_tangents,
    primals,
)


def linalg_polar(a, side="right", *, device=None, threads=None):
    """Polar decomposition of dense matrices, differentiable where the rank is full.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices; see `linalg_svd`.
    side, device, threads
        As in `tsvd.linalg.polar`.

    Returns
    -------
    U, P : torch.Tensor
        Those of `tsvd.linalg.polar`.

    Raises
    ------
    TypeError
        a is no tensor, or has a dtype that tsvd does not compute.
    ValueError, LinAlgError, MemoryError, RuntimeError
        As `tsvd.linalg.polar`.

    Notes
    -----
    Derivatives of any order, in reverse and in forward mode, with `torch.func` too. They
    have the terms ``1 / (s_i + s_j)`` and ``1 / s_i``; equal values do no harm [1]_. A sum
    of two values counts as zero if it is no larger than ``(8 + k/8) eps`` times the largest
    value, with k the smaller of m and n. Then its term is left out, and the derivative is
    a generalized one, as a singular matrix has no other. It is finite.

    Work of a derivative: some products of matrices.

    References
    ----------
    .. [1] N. J. Higham, "Functions of Matrices: Theory and Computation", SIAM (2008),
       chapter 8.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.eye(2, requires_grad=True)
    >>> U, P = tsvd.torch.linalg_polar(a)
    >>> U[0, 1].backward()
    >>> a.grad.tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    a = number("a", a)
    options = {"device": device, "threads": threads}
    if not (_torch_operators.is_traced(a) or may_want_derivative(a)):
        return linalg.polar(a.detach(), side, **options)
    return apply(_Polar, a, side, options)[:2]


def linalg_low_rank(a, rank, *, device=None, threads=None):
    """Best approximation of dense matrices by those of a rank, differentiable at a gap.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices; see `linalg_svd`.
    rank : int
        The rank k, at most; 0 or more.
    device, threads
        As in `tsvd.linalg.low_rank`.

    Returns
    -------
    torch.Tensor, shape (..., m, n)
        The approximations.

    Raises
    ------
    TypeError
        a is no tensor, or has a dtype that tsvd does not compute; rank is no integer.
    ValueError, LinAlgError, MemoryError, RuntimeError
        As `tsvd.linalg.low_rank`.

    Notes
    -----
    Derivatives of any order, in reverse and in forward mode, with `torch.func` too. They
    have the terms ``1 / (s_i - s_j)`` for i up to k and j above [1]_; other values may be
    equal. A difference counts as zero if it is no larger than ``(8 + p/8) eps`` times the
    largest value, with p the smaller of m and n. Then its term is left out.

    All vectors are computed where a derivative may be asked for.

    References
    ----------
    .. [1] F. Feppon and P. F. J. Lermusiaux, "A geometric approach to dynamical model
       order reduction", SIAM Journal on Matrix Analysis and Applications 39 (2018),
       510-538.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    >>> tsvd.torch.linalg_low_rank(a, 1).sum().backward()
    >>> [[round(x, 4) for x in row] for row in a.grad.tolist()]
    [[1.0, 2.0], [2.0, 0.0]]
    """
    a, rank = number("a", a), operator.index(rank)
    options = {"device": device, "threads": threads}
    traced = _torch_operators.is_traced(a)
    if rank < 0 or not (traced or may_want_derivative(a)):  # tsvd.linalg says what is wrong
        return linalg.low_rank(a.detach(), rank, **options)
    return apply(_LowRank, a, rank, options)[0]


def linalg_nuclear_norm(a, *, device=None, threads=None):
    """Nuclear norm of dense matrices, the sum of their singular values, differentiable.

    Parameters
    ----------
    a : torch.Tensor, shape (..., m, n)
        The matrices; see `linalg_svd`.
    device, threads
        As in `tsvd.linalg.matrix_norm`.

    Returns
    -------
    torch.Tensor, shape (...)
        The norms.

    Raises
    ------
    TypeError
        a is no tensor, or has a dtype that tsvd does not compute.
    ValueError, LinAlgError, MemoryError, RuntimeError
        As `tsvd.linalg.matrix_norm`.

    See Also
    --------
    linalg_svdvals : The values themselves.

    Notes
    -----
    The gradient is ``U @ Vh`` over the values that do not count as zero, those above
    ``(8 + k/8) eps`` times the largest one, k being the smaller of m and n. Of a
    matrix of full rank this is the polar factor, and derivatives of any order are those
    of `linalg_polar`. Else it is a subgradient, the one of least norm. A derivative
    computes the vectors.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> a = torch.tensor([[3.0, 0.0], [0.0, 0.0]], requires_grad=True)
    >>> tsvd.torch.linalg_nuclear_norm(a).backward()
    >>> a.grad.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return apply(_NuclearNorm, number("a", a), {"device": device, "threads": threads})


def _solution_of(ctx, P, C, V, s, result):
    return apply(_BySums, P, C, V, s, False) if ctx.share else result


@differentiable
class _BySums(torch.autograd.Function):
    """The solution Z of P Z + Z P = C, or P Z with `share`; P = V diag(s) Vᴴ, for any order.

    The derivatives are those for all P: V and s only say how to solve. So equal values do no harm.
    """

    @staticmethod
    def forward(P, C, V, s, share):
        return _derivative.divide_by_sums(torch, V, s, C, share)

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tensors, ctx.share = inputs
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)

    @staticmethod
    def backward(ctx, g):
        P, C, V, s, result = ctx.saved_tensors
        Zh = _solution_of(ctx, P, C, V, s, result).mH
        gC = apply(_BySums, P, g, V, s, ctx.share)
        gP = (g - gC if ctx.share else -gC) @ Zh - Zh @ gC
        return gP, gC, None, None, None

    @staticmethod
    def jvp(ctx, dP, dC, *_):
        with outer_tangents():
            P, C, V, s, result, dP, dC = primals((*ctx.saved_tensors, dP, dC))
            Z = _solution_of(ctx, P, C, V, s, result)
            dP, dC = or_zeros(dP, P), or_zeros(dC, C)
            left = dP @ Z
            changed = apply(_BySums, P, dC - left - Z @ dP, V, s, ctx.share)
            return left + changed if ctx.share else changed

    @staticmethod
    def vmap(info, in_dims, *inputs):
        tensors = (
            in_front(x, dim, info.batch_size)
            for x, dim in zip(inputs[:4], in_dims[:4], strict=True)
        )
        return apply(_BySums, *tensors, inputs[4]), 0


def _polar_parts(ctx, U, P, V, s):
    """U with no more columns than rows, and what _derivative asks for."""
    U = U.mH if ctx.turned else U
    if ctx.outer:
        P = U.mH @ P @ U

    def solve(C):
        return apply(_BySums, P, C, V, s, False)

    def share(C):
        return apply(_BySums, P, C, V, s, True)

    twice = 2 * torch.eye(P.shape[-1], dtype=P.dtype, device=P.device).expand_as(P)
    return U, solve, share, solve(twice)


@differentiable
class _Polar(torch.autograd.Function):
    """(U, P, V, s): the values, and the vectors of the shorter side. Derivatives have U and P."""

    @staticmethod
    def forward(a, side, options):
        if _torch_operators.is_traced(a):
            U, P, W, s, Vh = _torch_operators.linalg_polar(a, side=side, **options)
        else:
            U, P, (W, s, Vh) = _nearest.polar_and_svd(torch, _matrices(a), side, options)
        return U, P, W if _is_turned(a, side) else Vh.mH, s

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, side, _ = inputs
        ctx.turned = _is_turned(a, side)
        ctx.outer = ctx.turned == (side == "right")
        ctx.mark_non_differentiable(*output[2:])
        ctx.save_for_backward(*output)
        ctx.save_for_forward(*output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gU, gP, *_):
        if gU is None and gP is None:
            return None, None, None
        U, *rest = _polar_parts(ctx, *ctx.saved_tensors)
        gU = gU.mH if ctx.turned and gU is not None else gU
        ga = _derivative.polar_adjoint(U, gU, gP, *rest, ctx.outer)
        return ga.mH if ctx.turned else ga, None, None

    @staticmethod
    def jvp(ctx, da, *_):
        with outer_tangents():
            U, *rest = _polar_parts(ctx, *primals(ctx.saved_tensors))
            (da,) = primals((da,))
            dU, dP = _derivative.polar_tangent(U, da.mH if ctx.turned else da, *rest, ctx.outer)
            return dU.mH if ctx.turned else dU, dP, None, None

    @staticmethod
    def vmap(info, in_dims, a, side, options):
        return apply(_Polar, in_front(a, in_dims[0], info.batch_size), side, options), (0, 0, 0, 0)


def _is_turned(a, side):
    """Whether P of the shorter side is on the left."""
    m, n = a.shape[-2:]
    return m < n or (m == n and side == "left")


@differentiable
class _LowRank(torch.autograd.Function):
    """(B, X, W, s, V): the nearest matrix, its pseudo-inverse, and all of the SVD.

    Derivatives have B and X.
    """

    @staticmethod
    def forward(a, k, options):
        if _torch_operators.is_traced(a):
            W, s, Vh = _torch_operators.linalg_svd(a, **options)
        else:
            W, s, Vh = linalg.svd(_matrices(a), full_matrices=False, **options)
        W1, s1, V1h = W[..., :k], s[..., :k], Vh[..., :k, :]
        inverse = _derivative.inverse(torch, s1, s1 <= _derivative.rounding(torch, s))
        X = (V1h.mH * inverse[..., None, :]) @ W1.mH
        return (W1 * s1[..., None, :]) @ V1h, X, W, s, Vh.mH

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, ctx.k, _ = inputs
        ctx.mark_non_differentiable(*output[2:])
        ctx.save_for_backward(a, *output)
        ctx.save_for_forward(a, *output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gB, gX, *_):
        a, B, X, W, s, V = ctx.saved_tensors
        if gX is not None:
            gB = or_zeros(gB, B) + _derivative.pinv_adjoint(B, X, gX)
        return None if gB is None else apply(_Truncate, a, B, X, gB, W, s, V, ctx.k), None, None

    @staticmethod
    def jvp(ctx, da, *_):
        with outer_tangents():
            a, B, X, W, s, V, da = primals((*ctx.saved_tensors, da))
            dB = apply(_Truncate, a, B, X, da, W, s, V, ctx.k)
            return dB, _derivative.pinv_tangent(B, X, dB), None, None, None

    @staticmethod
    def vmap(info, in_dims, a, k, options):
        return apply(_LowRank, in_front(a, in_dims[0], info.batch_size), k, options), (0,) * 5


def _truncated_parts(ctx, a, B, X, da, W, s, V, E):
    """What _derivative asks for."""

    def truncate(change):
        return apply(_Truncate, a, B, X, change, W, s, V, ctx.k)

    return (a, B, X, da, E), truncate


@differentiable
class _Truncate(torch.autograd.Function):
    """The tangent of the nearest matrix, as a function that has derivatives of any order.

    They are those for all A, B and X: W, s and V only say how to solve, as in _BySums.
    """

    @staticmethod
    def forward(a, B, X, da, W, s, V, k):
        return _derivative.truncate_tangent(torch, W, s, V, k, da)

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tensors, ctx.k = inputs
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)

    @staticmethod
    def backward(ctx, g):
        point, truncate = _truncated_parts(ctx, *ctx.saved_tensors)
        gradients = _derivative.truncate_tangent_adjoint(*point, g, truncate)
        return (*gradients, None, None, None, None)

    @staticmethod
    def jvp(ctx, *changes):
        with outer_tangents():
            point, truncate = _truncated_parts(ctx, *primals(ctx.saved_tensors))
            changes = primals(changes[:4])
            changes = [or_zeros(x, like) for x, like in zip(changes, point[:4], strict=True)]
            return _derivative.truncate_tangent_tangent(*point, changes, truncate)

    @staticmethod
    def vmap(info, in_dims, *inputs):
        tensors = (
            in_front(x, dim, info.batch_size)
            for x, dim in zip(inputs[:7], in_dims[:7], strict=True)
        )
        return apply(_Truncate, *tensors, inputs[7]), 0


def _gradient_of(ctx, a):
    """U Vh over the values that do not count as zero."""
    if a.shape[-2] < a.shape[-1]:
        return _gradient_of(ctx, a.mH).mH
    U, _, V, s = apply(_Polar, a, "right", ctx.options)
    counts = s > _derivative.rounding(torch, s)
    return U @ ((V * counts[..., None, :]) @ V.mH)


@differentiable
class _NuclearNorm(torch.autograd.Function):
    """The derivative computes the polar factor anew, by a function that has derivatives itself."""

    @staticmethod
    def forward(a, options):
        if _torch_operators.is_traced(a):
            return _torch_operators.linalg_svdvals(a, **options).sum(-1)
        return linalg.matrix_norm(_matrices(a), ord="nuc", **options)

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, ctx.options = inputs
        ctx.save_for_backward(a)
        ctx.save_for_forward(a)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g):
        if g is None:
            return None, None
        (a,) = ctx.saved_tensors
        return g[..., None, None] * _gradient_of(ctx, a), None

    @staticmethod
    def jvp(ctx, da, _):
        with outer_tangents():
            a, da = primals((*ctx.saved_tensors, da))
            return (_gradient_of(ctx, a).conj() * da).sum((-2, -1)).real

    @staticmethod
    def vmap(info, in_dims, a, options):
        return apply(_NuclearNorm, in_front(a, in_dims[0], info.batch_size), options), 0


def _matrices(a):
    return _space.matrices("a", a.detach())
