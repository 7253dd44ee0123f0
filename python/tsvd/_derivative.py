"""Derivatives of the SVD of bidiagonal and of dense matrices, for any library of arrays.

The tangent of B = L diag(s) R in the bases of its vectors is P = Lᵀ dB Rᵀ. docs/derivatives.md
derives the formulas. `xp` is the library, `torch` or `jax.numpy`. V is Rᵀ: column k of L and V
belongs to s_k. Leading dimensions are a batch. A dense matrix is A = U diag(s) Vᴴ, and U and V have
as many columns as there are values. They may be complex. Gradients are then those of PyTorch: a
change dA of A changes a loss by the real part of the sum of conj(gA) dA.
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


def _inverse(xp, x, zero):
    """1/x, and 0 where x counts as zero."""
    none, one = xp.zeros_like(x), xp.ones_like(x)
    # Both choices are finite, so that derivatives of these are.
    return xp.where(zero, none, one / xp.where(zero, one, x))


def _error(xp, s, of):
    """The bound on the error of a value; `of`: what it is relative to."""
    return (8 + s.shape[-1] / 8) * float(xp.finfo(s.dtype).eps) * of


def _inverses(xp, s):
    """1/(s_j - s_i) and 1/(s_j + s_i); 0 where the values are equal, or both are zero.

    Values are equal if they differ by no more than the bound on the error of one.
    """
    tiny = float(xp.finfo(s.dtype).tiny)
    a, b = s[..., :, None], s[..., None, :]
    gap, total = b - a, b + a
    equal = (abs(gap) <= _error(xp, s, xp.maximum(a, b))) | (abs(gap) < tiny)
    return _inverse(xp, gap, equal), _inverse(xp, total, total < tiny)


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


# ---- dense matrices ----


def _dense_inverses(xp, s):
    """As _inverses, and 1/s. The error of a value is relative to the largest one."""
    tiny = float(xp.finfo(s.dtype).tiny)
    error = _error(xp, s, s[..., :1])
    a, b = s[..., :, None], s[..., None, :]
    gap, total = b - a, b + a
    bound = error[..., None] + tiny
    return (
        _inverse(xp, gap, abs(gap) <= bound),
        _inverse(xp, total, total <= bound),
        _inverse(xp, s, s <= error + tiny),
    )


def _h(x):
    """The conjugate transpose."""
    return x.mT.conj()


def _is_basis(Q):
    return Q.shape[-2] == Q.shape[-1]


def _beside(Q, x):
    """The part of x that is orthogonal to the columns of Q."""
    return x - Q @ (_h(Q) @ x)


def dense_values_tangent(U, V, dA):
    """The tangent of s."""
    return (U.conj() * (dA @ V)).sum(-2).real


def dense_vectors_tangent(xp, U, s, V, dA):
    """The tangents of U and V, from all values.

    Of complex vectors those phases are kept that change U and V by the same amount.
    """
    right, left = dA @ V, _h(dA) @ U
    P = _h(U) @ right
    gap, total, inverse = _dense_inverses(xp, s)
    A, C = gap * (P + _h(P)), total * (P - _h(P))
    dU, dV = U @ (A + C) / 2, V @ (A - C) / 2
    if not _is_basis(U):
        dU = dU + _beside(U, right) * inverse[..., None, :]
    if not _is_basis(V):
        dV = dV + _beside(V, left) * inverse[..., None, :]
    return dU, dV


def dense_adjoint(xp, U, s, V, gU, gs, gV):
    """The gradient for A of one for U, s and V; each of these may be None."""
    T = 0 * U if gs is None else U * gs[..., None, :]
    if gU is None and gV is None:
        return T @ _h(V)
    M = 0 if gU is None else _h(U) @ gU
    N = 0 if gV is None else _h(V) @ gV
    gap, total, inverse = _dense_inverses(xp, s)
    A, C = M + N, M - N
    T = T + U @ (gap * (A - _h(A)) + total * (C - _h(C))) / 2
    if gU is not None and not _is_basis(U):
        T = T + _beside(U, gU) * inverse[..., None, :]
    gA = T @ _h(V)
    if gV is not None and not _is_basis(V):
        gA = gA + (U * inverse[..., None, :]) @ _h(_beside(V, gV))
    return gA
