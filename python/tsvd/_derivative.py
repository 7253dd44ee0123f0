"""Derivatives of the SVD of bidiagonal and of dense matrices, and of functions of dense matrices,
for any library of arrays.

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


def inverse(xp, x, zero):
    """1/x, and 0 where x counts as zero."""
    none, one = xp.zeros_like(x), xp.ones_like(x)
    # Both choices are finite, so that derivatives of these are.
    return xp.where(zero, none, one / xp.where(zero, one, x))


def _error(xp, s, of):
    """The bound on the error of a value; `of`: what it is relative to."""
    return (8 + s.shape[-1] / 8) * float(xp.finfo(s.dtype).eps) * of


def rounding(xp, s):
    """The bound on the error of a value of a dense matrix, relative to the largest; never 0."""
    return _error(xp, s, s[..., :1]) + float(xp.finfo(s.dtype).tiny)


def _h(x):
    """The conjugate transpose."""
    return x.mT.conj()


# Quotients by s_j - s_i, s_j + s_i and s_i. Where the divisor may be zero but for rounding, the
# dividend tells what to do. If it is rounding errors itself, the quotient says nothing and is left
# out. If not, it is small because the divisor is, and their quotient belongs to the derivative.


def _norms(xp, x):
    """Of columns, also where squares of their entries leave the range of numbers."""
    size = abs(x)
    if 0 in x.shape:
        return size.sum(-2)
    largest = xp.amax(size, -2)
    scale = xp.where(largest > 0, largest, 1.0)
    return largest * ((size / scale[..., None, :]) ** 2).sum(-2) ** 0.5


def _noise(xp, s, *factors):
    """What rounding makes of a product of each column with orthonormal ones, at most.

    It was below 1 eps times the norm of the column for all orders up to 1000.
    """
    return 8 * float(xp.finfo(s.dtype).eps) * sum(_norms(xp, x) for x in factors if x is not None)


def _quotient(xp, x, by, left_out):
    return x * inverse(xp, by, (abs(by) < float(xp.finfo(by.dtype).tiny)) | left_out)


def _quotients(xp, s, A, C, noise, part_equal=True):
    """A_ij/(s_j - s_i) and C_ij/(s_j + s_i).

    noise: that of column i; None: the dividends decide nothing, and the result is linear in them.
    part_equal: False leaves A_ij out where s_i and s_j are equal, relative to the larger one.
    """
    i, j = s[..., :, None], s[..., None, :]
    gap, total = j - i, j + i
    equal = False if part_equal else abs(gap) <= _error(xp, s, xp.maximum(i, j))
    zero = False
    if noise is not None:
        bound, noise = rounding(xp, s)[..., None], noise[..., :, None] + noise[..., None, :]
        equal = equal | ((abs(gap) <= bound) & (abs(A) <= noise))
        zero = (total <= bound) & (abs(C) <= noise)
    return _quotient(xp, A, gap, equal), _quotient(xp, C, total, zero)


def _sensitivity(xp, U, s, V, gU, gs, gV):
    """T of the gradient T Vᴴ for A = U diag(s) Vᴴ, without what is orthogonal to U or to V."""
    T = 0 * U if gs is None else U * gs[..., None, :]
    if gU is None and gV is None:
        return T
    M = 0 if gU is None else _h(U) @ gU
    N = 0 if gV is None else _h(V) @ gV
    A, C = M + N, M - N
    noise = _noise(xp, s, gU, gV)
    A, C = _quotients(xp, s, (A - _h(A)) / 2, (C - _h(C)) / 2, noise)
    return T + U @ (A + C)


def _turns(xp, s, P, noise):
    """X and Y, by which the tangents of the vectors are U X and V Y, from P = Uᴴ dA V."""
    A, C = _quotients(xp, s, (P + _h(P)) / 2, (P - _h(P)) / 2, noise, part_equal=False)
    return A + C, A - C


# ---- bidiagonal matrices ----


def vectors_tangent(xp, L, s, V, dd, de, lower, linear=False):
    """The tangents of L and V, from all values. linear: exactly so in dd and de."""
    L_e, V_e = _rows(L, V, lower)
    dd, de = dd[..., None], de[..., None]
    P = L.mT @ (dd * V) + L_e.mT @ (de * V_e)
    noise = None if linear else _noise(xp, s, dd * V, de * V_e, dd * L, de * L_e)
    X, Y = _turns(xp, s, P, noise)
    return L @ X, V @ Y


def adjoint(xp, L, s, V, gL, gs, gV, lower):
    """The gradient for d and e of one for L, s and V; each of these may be None."""
    return pull(_sensitivity(xp, L, s, V, gL, gs, gV), V, lower)


# ---- dense matrices ----


def _is_basis(Q):
    return Q.shape[-2] == Q.shape[-1]


def _beside(Q, x):
    """The part of x that is orthogonal to the columns of Q."""
    return x - Q @ (_h(Q) @ x)


def _beside_quotient(xp, Q, x, s, linear=False):
    """That part with column i divided by s_i."""
    beside, left_out = _beside(Q, x), False
    if not linear:
        left_out = (s <= rounding(xp, s)) & (_norms(xp, beside) <= _noise(xp, s, x))
        left_out = left_out[..., None, :]
    return _quotient(xp, beside, s[..., None, :], left_out)


def dense_values_tangent(U, V, dA):
    """The tangent of s."""
    return (U.conj() * (dA @ V)).sum(-2).real


def dense_vectors_tangent(xp, U, s, V, dA, linear=False):
    """The tangents of U and V, from all values. linear: exactly so in dA.

    Of complex vectors those phases are kept that change U and V by the same amount.
    """
    right, left = dA @ V, _h(dA) @ U
    noise = None if linear else _noise(xp, s, right, left)
    X, Y = _turns(xp, s, _h(U) @ right, noise)
    dU, dV = U @ X, V @ Y
    if not _is_basis(U):
        dU = dU + _beside_quotient(xp, U, right, s, linear)
    if not _is_basis(V):
        dV = dV + _beside_quotient(xp, V, left, s, linear)
    return dU, dV


def dense_adjoint(xp, U, s, V, gU, gs, gV):
    """The gradient for A of one for U, s and V; each of these may be None."""
    T = _sensitivity(xp, U, s, V, gU, gs, gV)
    if gU is not None and not _is_basis(U):
        T = T + _beside_quotient(xp, U, gU, s)
    gA = T @ _h(V)
    if gV is not None and not _is_basis(V):
        gA = gA + U @ _h(_beside_quotient(xp, V, gV, s))
    return gA


# ---- the inverse X of A ----


def inverse_tangent(X, dA):
    """The tangent of X."""
    return -(X @ dA @ X)


# ---- the pseudo-inverse X of A, and least squares, where the rank is constant ----


def _product(a, b, c):
    """a b c, in the order that takes less work."""
    (p, q), (r, s) = a.shape[-2:], c.shape[-2:]
    return (a @ b) @ c if p * r * (q + s) <= q * s * (p + r) else a @ (b @ c)


def pinv_tangent(A, X, dA):
    """The tangent of X (Golub and Pereyra 1973, equation 4.12)."""
    adjoint, Xh = _h(dA), _h(X)
    left, right = adjoint - _product(adjoint, A, X), adjoint - _product(X, A, adjoint)
    return _product(X, Xh, left) + _product(right, Xh, X) - _product(X, dA, X)


def pinv_adjoint(A, X, gX):
    """The gradient for A of one for X."""
    adjoint, Xh = _h(gX), _h(X)
    left, right = adjoint - _product(A, X, adjoint), adjoint - _product(adjoint, X, A)
    return _product(left, X, Xh) + _product(Xh, X, right) - _product(Xh, gX, Xh)


def lstsq_tangent(A, b, X, x, dA, db):
    """The tangents of x = X b and of the squares of its residuals."""
    rest, change = b - A @ x, db - dA @ x
    adjoint = _h(dA)
    beside = adjoint @ (_h(X) @ x)
    dx = X @ (change + _h(X) @ (adjoint @ rest)) + beside - X @ (A @ beside)
    return dx, 2 * (rest.conj() * change).sum(-2).real


def lstsq_adjoint(A, b, X, x, gx, g_squares):
    """The gradients for A and b of one for x and for the squares; each of these may be None."""
    rest = b - A @ x
    gb = 0 if g_squares is None else 2 * rest * g_squares[..., None, :]
    if gx is None:
        return -gb @ _h(x), gb
    z = _h(X) @ gx
    gb = gb + z
    beside = gx - X @ (A @ gx)
    return rest @ _h(X @ z) + (_h(X) @ x) @ _h(beside) - gb @ _h(x), gb


# ---- the polar decomposition A = U P of a matrix with no more columns than rows ----


def divide_by_sums(xp, V, s, C, share):
    """The solution Z of P Z + Z P = C, or P Z with `share`, for P = V diag(s) Vᴴ.

    In the basis V, C is divided by s_i + s_j. Where that counts as zero Z is 0, and P Z is half of
    C, which is what P Z + Z P = C asks of a Hermitian P Z.
    """
    i, j = s[..., :, None], s[..., None, :]
    total = i + j
    zero = total <= rounding(xp, s)[..., None]
    weight = inverse(xp, total, zero)
    if share:
        weight = xp.where(zero, xp.full_like(total, 0.5), i * weight)
    return V @ (weight * (_h(V) @ C @ V)) @ _h(V)


def polar_tangent(U, dA, solve, share, inverse, outer):
    """The tangents of U and P; with `outer` of U and U P Uᴴ, for A = (U P Uᴴ) U.

    solve, share: divide_by_sums() as functions of C. inverse: that of P.
    """
    Z = _h(U) @ dA
    dU = U @ solve(Z - _h(Z)) + (dA - U @ Z) @ inverse
    half = (dA - U @ share(Z)) @ _h(U) if outer else share(Z)
    return dU, half + _h(half)


def polar_adjoint(U, gU, gP, solve, share, inverse, outer):
    """The gradient for A of one for U and P; each of these may be None. See polar_tangent()."""
    gA = 0
    if gU is not None:
        K = _h(U) @ gU
        gA = U @ solve(K - _h(K)) + (gU - U @ K) @ inverse
    if gP is not None:
        G = gP + _h(gP)
        gA = gA + (G @ U - U @ share(_h(U) @ G @ U) if outer else U @ share(G))
    return gA


# ---- the nearest matrix of rank k ----


def truncate_tangent(xp, W, s, V, k, dA):
    """The tangent of the sum of s_i w_i v_iᴴ over the k largest values of A = W diag(s) Vᴴ.

    The map is its own adjoint (Feppon and Lermusiaux 2018): it also takes a gradient to that for A.
    """
    W1, W2, V1, V2 = W[..., :k], W[..., k:], V[..., :k], V[..., k:]
    i, j = s[..., :k, None], s[..., None, k:]
    rows, columns = _h(W1) @ dA, dA @ V1
    gap = i - j
    weight = inverse(xp, gap, gap <= rounding(xp, s)[..., None])
    # i + j is zero only where the gap counts as zero
    weight = weight * j * inverse(xp, i + j, i + j == 0)
    M, N = rows @ V2, _h(_h(W2) @ columns)
    right, left = weight * (j * M + i * N), weight * (j * N + i * M)
    rows = rows + right @ _h(V2)
    columns = columns + W2 @ _h(left) - W1 @ (_h(W1) @ columns)
    return W1 @ rows + columns @ _h(V1)


def _beside_both(B, X, Z):
    """(I - B X) Z (I - X B)."""
    Z = Z - _product(Z, X, B)
    return Z - _product(B, X, Z)


# E = truncate_tangent(dA) solves E = F + Xᴴ Eᴴ R + R Eᴴ Xᴴ, with the nearest matrix B, R = A - B,
# X the pseudo-inverse of B, and F = dA - (I - B X) dA (I - X B). These are smooth functions of A,
# unlike the vectors. Their changes give that of E, by an equation of the same form.


def truncate_tangent_tangent(A, B, X, dA, E, changes, truncate):
    """The tangent of E for those of A, B, X and dA. truncate: truncate_tangent() of a change."""
    tA, tB, tX, t_dA = changes
    R, tR, Eh, Xh = A - B, tA - tB, _h(E), _h(X)
    left, right = dA - _product(B, X, dA), dA - _product(dA, X, B)
    Y = tB @ (X @ right) + B @ (tX @ right) + (left @ tX) @ B + (left @ X) @ tB
    Y = Y + _product(_h(tX), Eh, R) + _product(Xh, Eh, tR)
    Y = Y + _product(tR, Eh, Xh) + _product(R, Eh, _h(tX))
    return truncate(t_dA + Y) + _beside_both(B, X, Y)


def truncate_tangent_adjoint(A, B, X, dA, E, gE, truncate):
    """The gradients for A, B, X and dA of one for E."""
    g_dA = truncate(gE)
    Y = g_dA + _beside_both(B, X, gE)
    Yh, Eh, Bh, R = _h(Y), _h(E), _h(B), A - B
    left, right = dA - _product(B, X, dA), dA - _product(dA, X, B)
    gX = _product(Eh, R, Yh) + _product(Yh, R, Eh)
    gX = gX + _product(Bh, Y, _h(right)) + _product(_h(left), Y, Bh)
    gA = _product(E, X, Y) + _product(Y, X, E)
    gB = Y @ _h(X @ right) + _h(left @ X) @ Y - gA
    return gA, gB, gX, g_dA
