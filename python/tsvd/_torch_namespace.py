"""`tsvd.torch.linalg`: functions with the names, arguments and results of `torch.linalg`.

    from tsvd.torch import linalg
    U, S, Vh = linalg.svd(A)

tsvd decomposes and inverts. Named tuples are those of PyTorch. Tensors that require grad have
derivatives by the functions of `tsvd.torch`, and graphs hold the same operators. Tensors without
numbers (of the device meta, and fake ones), empty ones and norms that need no singular values are
given to `torch.linalg`.

Differences: integers and bool are computed as float64. `driver` names an algorithm of another
library: its names are accepted on all devices, and only `lstsq` heeds them, for which results it
gives. NaN and infinity raise LinAlgError, as a rule also where PyTorch has NaN for a result.
"""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import torch

from . import _arrays, _space
from . import linalg as _linalg
from ._autograd import (
    apply,
    differentiable,
    in_front,
    may_want_derivative,
    number,
)
from ._torch_layout import laid_out
from ._torch_linalg import linalg_svd, linalg_svdvals
from ._torch_operators import is_traced
from ._torch_solutions import linalg_inv, linalg_lstsq, linalg_pinv

__all__ = [
    "LinAlgError",
    "cond",
    "inv",
    "inv_ex",
    "lstsq",
    "matrix_norm",
    "matrix_rank",
    "pinv",
    "svd",
    "svdvals",
]

_HALF = torch.float16, torch.bfloat16

_SVD_DRIVERS = None, "gesvd", "gesvdj", "gesvda"

# The results that a driver of lstsq gives beside the solution; the others are empty.
_LSTSQ_DRIVERS = {
    "gels": {"residuals"},
    "gelsy": {"rank"},
    "gelsd": {"residuals", "rank", "singular_values"},
    "gelss": {"residuals", "rank", "singular_values"},
}


class LinAlgError(torch.linalg.LinAlgError, np.linalg.LinAlgError):
    """The error of `torch.linalg` and that of `numpy.linalg` at once."""


def _as_torch(function):
    """A function of this module: what PyTorch computes goes there, and errors are LinAlgError."""
    theirs = getattr(torch.linalg, function.__name__)

    @functools.wraps(function)
    def call(A, *arguments, **options):
        if torch.compiler.is_compiling():
            return _in_float32(function, A, *arguments, **options)
        # make_fx with fake tensors, too, is to find tsvd
        given = A, *arguments, options.get("B")
        if not _arrays.makes_proxies() and any(map(_has_no_numbers, given)):
            return theirs(A, *arguments, **options)
        try:
            return _in_float32(function, A, *arguments, **options)
        except (torch.linalg.LinAlgError, np.linalg.LinAlgError) as error:
            if isinstance(error, LinAlgError):  # of a function that this one calls
                raise
            raise LinAlgError(f"linalg.{function.__name__}: {error}") from error
        except ValueError as error:
            if "must not hold NaN" not in str(error):
                raise
            raise LinAlgError(f"linalg.{function.__name__}: {error}") from error

    return call


def _has_no_numbers(x):
    """Whether an argument is a tensor without entries, or without their values."""
    return isinstance(x, torch.Tensor) and (
        x.is_meta or isinstance(x, torch._subclasses.FakeTensor) or x.numel() == 0
    )


def _in_float32(function, A, *arguments, **options):
    """Under autocast: as PyTorch has it, half precision becomes float32, with all that follows."""
    if not isinstance(A, torch.Tensor) or not torch.is_autocast_enabled(A.device.type):
        return function(A, *arguments, **options)
    A, *arguments = (
        x.float() if isinstance(x, torch.Tensor) and x.dtype in _HALF else x
        for x in (A, *arguments)
    )
    with torch.autocast(A.device.type, enabled=False):
        return function(A, *arguments, **options)


# ---- decompositions ----


@_as_torch
def svd(A, full_matrices=True, *, driver=None, out=None):
    """Singular value decomposition, as `torch.linalg.svd`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        The matrices; see `tsvd.torch.linalg_svd`.
    full_matrices : bool
        True: U is m x m and Vh is n x n. Their further columns and rows have no
        derivative, as in PyTorch. Where a derivative may be asked for, `torch.linalg.qr`
        completes the bases.
    driver : str, optional
        "gesvd", "gesvdj" or "gesvda": accepted, and without a meaning.
    out : tuple of three tensors, optional
        Take the results.

    Returns
    -------
    torch.return_types.linalg_svd
        ``(U, S, Vh)``, with the strides of PyTorch's.

    Raises
    ------
    LinAlgError
        A has NaN or infinity, or less than two dimensions; no convergence.
    TypeError, ValueError, MemoryError, RuntimeError
        As `tsvd.torch.linalg_svd`.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> U, S, Vh = linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> U.shape, S.tolist()
    (torch.Size([3, 3]), [3.0, 2.0])
    """
    A = _matrices("A", A)
    _check_driver(driver, _SVD_DRIVERS)
    if not (may_want_derivative(A) or is_traced(A)):
        results = laid_out(lambda x: _linalg.svd(x, full_matrices), A.detach())
    elif full_matrices and A.shape[-2] != A.shape[-1]:
        results = _completed(*laid_out(linalg_svd, A))
    else:
        results = laid_out(linalg_svd, A)
    return _named("svd", out, tuple(results))


def _completed(U, S, Vh):
    """U and Vh with the columns and rows that complete the bases, in the same layout."""
    if U.shape[-2] > U.shape[-1]:
        return torch.cat([U.mT, apply(_Complement, U).mT], -2).mT, S, Vh
    further = apply(_Complement, Vh.mH).mH
    if Vh.is_cuda:
        return U, S, torch.cat([Vh, further], -2)
    return U, S, torch.cat([Vh, further], -2).mT.contiguous().mT


@differentiable
class _Complement(torch.autograd.Function):
    """Columns that complete a basis. They are not determined, and have no derivative."""

    @staticmethod
    def forward(Q):
        return torch.linalg.qr(Q, mode="complete").Q[..., Q.shape[-1] :].clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.shape = inputs[0].shape
        ctx.rows = output.shape

    @staticmethod
    def backward(ctx, g):
        return g.new_zeros(ctx.shape)

    @staticmethod
    def jvp(ctx, dQ):
        return dQ.new_zeros(ctx.rows)

    @staticmethod
    def vmap(info, in_dims, Q):
        return apply(_Complement, in_front(Q, in_dims[0], info.batch_size)), 0


@_as_torch
def svdvals(A, *, driver=None, out=None):
    """Singular values, as `torch.linalg.svdvals`.

    Parameters and errors are those of `svd`. Derivatives are those of
    `tsvd.torch.linalg_svdvals`.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([3., 2.])
    """
    A = _matrices("A", A)
    _check_driver(driver, _SVD_DRIVERS)
    return _into(out, _values(A))


def _values(A):
    """The singular values; without the time of an operation of autograd where none is wanted."""
    if may_want_derivative(A) or is_traced(A):
        return linalg_svdvals(A)
    return _linalg.svdvals(A.detach())


# ---- inverses and equations ----


@_as_torch
def inv(A, *, out=None):
    """Inverse, as `torch.linalg.inv`; see `tsvd.linalg.inv` for the method.

    Raises LinAlgError if a matrix is singular, or not square. Matrices that hold NaN or
    infinity have NaN for an inverse. Derivatives have any order, in both modes.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.inv(torch.diag(torch.tensor([2.0, 4.0]))).diagonal()
    tensor([0.5000, 0.2500])
    """
    return _into(out, _inverse(_matrices("A", A)))


@_as_torch
def inv_ex(A, *, check_errors=False, out=None):
    """Inverse, and which matrices are singular, as `torch.linalg.inv_ex`.

    A batch that holds a singular matrix is computed by `torch.linalg.inv_ex`, which names
    the pivot that is zero, and so is what a graph holds. check_errors: such a batch raises
    LinAlgError.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.inv_ex(torch.zeros(2, 2)).info.item()
    1
    """
    A = _matrices("A", A)
    if is_traced(A):  # a graph cannot catch the error
        return _named("inv_ex", out, tuple(torch.linalg.inv_ex(A, check_errors=check_errors)))
    try:
        X = _inverse(A)
    except np.linalg.LinAlgError:
        if check_errors or A.shape[-2] != A.shape[-1]:
            raise
        results = tuple(torch.linalg.inv_ex(A))
    else:
        results = X, torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)
    return _named("inv_ex", out, results)


def _inverse(A):
    """The inverse, column-major as PyTorch's: the transpose of that of the transpose."""
    return linalg_inv(A.mT, check_finite=False).mT


@_as_torch
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Moore-Penrose pseudo-inverse, as `torch.linalg.pinv`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        The matrices.
    rcond, rtol : float or torch.Tensor, optional
        Values up to this part of the largest one count as zero. None: ``max(m, n) eps``,
        or 0 where `atol` is positive.
    hermitian : bool
        The matrices are Hermitian, of which the lower triangle is read. Derivatives are
        those of ``(A + A.mH) / 2``.
    atol : float or torch.Tensor, optional
        Values up to this count as zero too.
    out : torch.Tensor, optional
        Takes the result.

    Notes
    -----
    Derivatives are those of `tsvd.torch.linalg_pinv`.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if rcond is not None and rtol is not None:
        raise ValueError("rcond and rtol are two names of one argument: give one of them")
    A = _matrices("A", A)
    A = _hermitian(A) if hermitian else A
    rtol = rcond if rtol is None else rtol
    if atol is None and rtol is None:
        return _into(out, linalg_pinv(A))
    A = _repeated(A, atol, rtol)
    atol, rtol = _thresholds(A, atol, rtol)
    if _is_positive(atol):  # the larger one of the two counts, and linalg_pinv takes a sum
        with torch.no_grad():
            largest = _values(A)[..., 0]
        part = torch.where(largest > 0, atol / largest, 0.0)
        rtol = torch.maximum(part, torch.as_tensor(rtol, dtype=part.dtype, device=part.device))
    return _into(out, linalg_pinv(A, rtol=rtol))


@_as_torch
def lstsq(A, B, rcond=None, *, driver=None):
    """Least-squares solution of linear equations, as `torch.linalg.lstsq`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        The matrices.
    B : torch.Tensor, shape (..., m, k) or (..., m)
        The right-hand sides: vectors, if its shape is that of A without the last
        dimension. Leading dimensions broadcast.
    rcond : float, optional
        Values up to this part of the largest one count as zero. None: ``max(m, n) eps``.
    driver : {"gels", "gelsy", "gelsd", "gelss"}, optional
        Which results there are; None is "gelsy" on the CPU and "gels" on CUDA. "gels" has
        residuals, "gelsy" the rank, the others all. tsvd computes all alike, by the SVD:
        the solution is the shortest one, also for "gels".

    Returns
    -------
    torch.return_types.linalg_lstsq
        ``(solution, residuals, rank, singular_values)``. Residuals are empty where m <= n or
        a matrix has a lower rank than n. The first two have derivatives.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> A, b = torch.tensor([[1.0], [1.0]]), torch.tensor([1.0, 3.0])
    >>> linalg.lstsq(A, b).solution.round(decimals=5)
    tensor([2.])
    """
    A, B = _matrices("A", A), number("B", B)
    _check_driver(driver, (None, *_LSTSQ_DRIVERS))
    driver = driver or ("gels" if A.is_cuda else "gelsy")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape)
    B = B[..., None] if vector else B
    if B.ndim > 1 and A.shape[:-2] != B.shape[:-2]:
        batch = torch.broadcast_shapes(A.shape[:-2], B.shape[:-2])
        A, B = A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])
    x, residuals, rank, s = _solved(A, B, rcond)
    given = _LSTSQ_DRIVERS[driver]
    m, n = A.shape[-2:]
    if "residuals" not in given or m <= n or _is_any_below(rank, n):
        residuals = s.new_empty(0)
    rank = rank.to(torch.int64)
    return torch.return_types.linalg_lstsq(
        (
            x[..., 0] if vector else x,
            residuals,
            rank if "rank" in given else rank.new_empty(0),
            s if "singular_values" in given else s.new_empty(0),
        )
    )


def _solved(A, B, rcond):
    """The results of linalg_lstsq. The shapes that they have in a graph are those of a batch."""
    if A.ndim > 2 or not is_traced(A):
        return linalg_lstsq(A, B, rcond)
    return tuple(x[0] for x in linalg_lstsq(A[None], B[None], rcond))


def _is_any_below(rank, n):
    """Within vmap and in a graph a rank is no number: all residuals are given."""
    return not (is_traced(rank) or _arrays.is_transformed(rank)) and bool((rank < n).any())


# ---- what the values tell ----


@_as_torch
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Rank, as `torch.linalg.matrix_rank`.

    Parameters are those of `pinv`; `tol` is another name of `atol`.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.matrix_rank(torch.ones(3, 3)).item()
    1
    """
    if tol is not None and atol is not None:
        raise ValueError("tol and atol are two names of one argument: give one of them")
    A = _matrices("A", A)
    with torch.no_grad():
        A = _hermitian(A) if hermitian else A
        S = _values(A)
        atol, rtol = _thresholds(A, atol if tol is None else tol, rtol)
        least = _along(rtol, S) * S[..., :1]
        if _is_positive(atol):
            atol = torch.as_tensor(_along(atol, S), dtype=least.dtype, device=least.device)
            least = torch.maximum(least, atol)
        return _into(out, (least < S).sum(-1))


@_as_torch
def cond(A, p=None, *, out=None):
    """Condition number, as `torch.linalg.cond`.

    p is None, 2, -2, "nuc", "fro", 1, -1, inf or -inf. The first three need the values
    alone, the others the inverse. Singular matrices have infinity by the others.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.cond(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).item()
    1.5
    """
    A = _matrices("A", A)
    if p is None or p in (2, -2):
        S = _values(A)
        first, last = S[..., 0], S[..., -1]
        return _into(out, last / first if p == -2 else first / last)
    inverse, info = inv_ex(A)
    inverse = inverse.masked_fill((info > 0)[..., None, None], math.inf)
    if p == "nuc":  # has no values of infinity
        safe = torch.where(inverse.isfinite(), inverse, 0.0)
        of_inverse = matrix_norm(safe, p).masked_fill(~inverse.isfinite().all(-1).all(-1), math.inf)
    else:
        of_inverse = matrix_norm(inverse, p)
    number = matrix_norm(A, p) * of_inverse
    return _into(out, number.masked_fill(info > 0, math.inf))  # of zero it would be NaN


@_as_torch
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """Norm of matrices, as `torch.linalg.matrix_norm`.

    2 is the largest singular value, -2 the smallest one, "nuc" the sum of all. The others
    are those of `torch.linalg.matrix_norm` itself.

    Examples
    --------
    >>> import torch
    >>> from tsvd.torch import linalg
    >>> linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 2.0]]), "nuc").item()
    5.0
    """
    if ord not in (2, -2, "nuc"):
        return torch.linalg.matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    A = _matrices("A", A)
    if dtype is not None:
        if torch.promote_types(A.dtype, dtype) != dtype:
            raise RuntimeError(f"linalg.matrix_norm: {A.dtype} would be narrowed to {dtype}")
        A = A.to(dtype)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {tuple(dim)}")
    first, second = dim
    if first % A.ndim == second % A.ndim:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {tuple(dim)}")
    S = _values(A.movedim((first, second), (-2, -1)))
    norm = S.sum(-1) if ord == "nuc" else S[..., 0 if ord == 2 else -1]
    if keepdim:
        for k in sorted((first % A.ndim, second % A.ndim)):
            norm = norm.unsqueeze(k)
    return _into(out, norm)


# ---- arguments and results ----


def _matrices(name, x):
    """A tensor of matrices as it is computed."""
    x = number(name, x)
    if x.ndim < 2:
        raise np.linalg.LinAlgError(f"{name} must have at least 2 dimensions, and has {x.ndim}")
    return x


def _named(name, out, results):
    """The named tuple that PyTorch's function has, of the results or of the tensors of `out`."""
    kind = f"linalg_{name}" if out is None else f"linalg_{name}_out"
    return getattr(torch.return_types, kind)(_into(out, results))


def _check_driver(driver, names):
    if driver not in names:
        known = ", ".join(repr(name) for name in names)
        raise ValueError(f"driver must be one of {known}, not {driver!r}")


def _hermitian(A):
    """The matrices that have this lower triangle, with the derivatives of (A + Aᴴ) / 2."""
    if A.shape[-2] != A.shape[-1]:
        raise np.linalg.LinAlgError("hermitian=True needs square matrices")
    return apply(_Hermitian, A)


@differentiable
class _Hermitian(torch.autograd.Function):
    """What _hermitian returns."""

    @staticmethod
    def forward(A):
        lower = torch.tril(A, -1)
        diagonal = torch.diagonal(A, dim1=-2, dim2=-1).real
        return lower + lower.mH + torch.diag_embed(diagonal).to(A.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 0.5 * g + 0.5 * g.mH

    @staticmethod
    def jvp(ctx, dA):
        return 0.5 * dA + 0.5 * dA.mH

    @staticmethod
    def vmap(info, in_dims, A):
        return apply(_Hermitian, in_front(A, in_dims[0], info.batch_size)), 0


def _thresholds(A, atol, rtol):
    """atol and rtol with PyTorch's defaults: that of rtol is 0 where atol is positive."""
    atol = 0.0 if atol is None else atol
    if rtol is None:
        rtol = _space.least_part(A, A)
        if isinstance(atol, torch.Tensor):
            rtol = torch.where(atol > 0, 0.0, rtol).to(A.device)
        elif atol > 0:
            rtol = 0.0
    return atol, rtol


def _repeated(A, *parts):
    """The matrices, repeated if there are more thresholds than matrices."""
    shapes = [part.shape for part in parts if isinstance(part, torch.Tensor)]
    batch = torch.broadcast_shapes(A.shape[:-2], *shapes)
    return A.expand(*batch, *A.shape[-2:])


def _is_positive(atol):
    """Whether an absolute threshold may matter."""
    return isinstance(atol, torch.Tensor) or atol > 0


def _along(x, S):
    """A number, or a tensor of one for each matrix, beside their values."""
    return x[..., None].to(S.device) if isinstance(x, torch.Tensor) else x


def _into(out, result):
    """The result; or out, which takes it."""
    if out is None:
        return result
    if isinstance(result, tuple):
        if len(out) != len(result):
            raise ValueError(f"out must have {len(result)} tensors, not {len(out)}")
        return tuple(map(_into, out, result))
    if torch.is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError("functions with out=... do not support derivatives")
    if out.device != result.device or not torch.can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"out must be a tensor on {result.device} that takes {result.dtype}, and is one on "
            f"{out.device} of {out.dtype}"
        )
    if out.shape != result.shape:
        if out.numel() > 0:
            warnings.warn(
                f"out was resized from {tuple(out.shape)} to {tuple(result.shape)}: it had entries",
                UserWarning,
                stacklevel=4,
            )
        out.resize_(result.shape).as_strided_(result.shape, result.stride())
    return out.copy_(result)
