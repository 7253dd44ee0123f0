"""Derivatives of the SVD of bidiagonal matrices, for any library of arrays.

The tangent of B = L diag(s) R in the bases of its vectors is P = Lᵀ dB Rᵀ. docs/derivatives.md
derives the formulas. `xp` is the library, `torch` or `jax.numpy`. V is Rᵀ: column k of L and V
belongs to s_k. Leading dimensions are a batch.
"""

from __future__ import annotations


def _rows(L, V, lower):
    """The rows of L and V that the off-diagonal couples: B[i, i+1], or B[i+1, i], is e[i]."""
    return (L[..., 1:, :], V[..., :-1, :]) if lower else (L[..., :-1, :], V[..., 1:, :])


def pull(T, V, lower):
    """What d and e get from the matrix T Vᵀ of the sensitivities to each entry of B."""
    T_e, V_e = _rows(T, V, lower)
    return (T * V).sum(-1), (T_e * V_e).sum(-1)


def values_tangent(L, V, dd, de, lower):
    """The diagonal of P: the tangent of s."""
    L_e, V_e = _rows(L, V, lower)
    return (L * dd[..., None] * V).sum(-2) + (L_e * de[..., None] * V_e).sum(-2)


def _inverses(xp, s):
    """1/(s_j - s_i) and 1/(s_j + s_i); 0 where the values are equal, or both are zero.

    Values are equal if they differ by no more than the bound on the error of one.
    """
    numbers = xp.finfo(s.dtype)
    a, b = s[..., :, None], s[..., None, :]
    gap, total = b - a, b + a
    error = (8 + s.shape[-1] / 8) * float(numbers.eps) * xp.maximum(a, b)
    equal = (abs(gap) <= error) | (abs(gap) < float(numbers.tiny))
    zero = total < float(numbers.tiny)
    none, one = xp.zeros_like(gap), xp.ones_like(gap)
    # Both choices are finite, so that derivatives of these are.
    return (
        xp.where(equal, none, one / xp.where(equal, one, gap)),
        xp.where(zero, none, one / xp.where(zero, one, total)),
    )


def vectors_tangent(xp, L, s, V, dd, de, lower):
    """The tangents of L and V, from all values."""
    L_e, V_e = _rows(L, V, lower)
    P = L.mT @ (dd[..., None] * V) + L_e.mT @ (de[..., None] * V_e)
    gap, total = _inverses(xp, s)
    A, C = gap * (P + P.mT), total * (P - P.mT)
    return L @ (A + C) / 2, V @ (A - C) / 2


def adjoint(xp, L, s, V, gL, gs, gV, lower):
    """The gradient for d and e of one for L, s and V; each of these may be None."""
    T = 0 * L if gs is None else L * gs[..., None, :]
    if gL is not None or gV is not None:
        M = 0 if gL is None else L.mT @ gL
        N = 0 if gV is None else V.mT @ gV
        gap, total = _inverses(xp, s)
        A, C = M + N, M - N
        T = T + L @ (gap * (A - A.mT) + total * (C - C.mT)) / 2
    return pull(T, V, lower)
