"""Singular values in extended precision: the reference of the accuracy tests.

Dense matrices are first brought to bidiagonal form by Householder's reduction in long double. It
changes no value by more than a small multiple of p 2^-64 s_1, p the smaller order: 2^11 times less
than what the tests allow. Then the counts stop at 2^-60 s_1.

Sturm counts on the Golub-Kahan form: the symmetric tridiagonal matrix T with zero
diagonal and off-diagonal b = d1, e1, d2, e2, ..., dn has the eigenvalues +-s.  The
pivots of T - x,

    q_1 = -x,    q_k = -x - b_{k-1}^2 / q_{k-1},

are negative as often as T has eigenvalues below x.  Rounding acts like small relative
changes of the b_k, so every s, however small, is found to high relative accuracy (Demmel
and Kahan 1990, section 4).

The arithmetic is numpy.longdouble. It has 64 bits or more. Its exponents are so wide that
squares of doubles, denormal ones too, neither overflow nor underflow.
"""

import numpy as np

from testing.parts import long

LONG = np.longdouble
WIDTH = LONG(2) ** -62  # relative width of a final bracket
SWEEPS = 60
FLOOR = LONG(2) ** -1100  # far below the least denormal double; smaller values are returned as 0

if np.finfo(LONG).nmant < 63 or np.finfo(LONG).maxexp < 16384:
    raise RuntimeError("the reference needs a long double of 64 bits and a range of 2**16384")


def singular_values(d, e, enough=0):
    """All singular values of diag(d) + diag(e, 1), descending, as longdouble.

    d (n,), e (n-1,), or (n,) of an n x (n+1) matrix: finite float32, float64 or longdouble.
    Relative error: 2^-62 and a small multiple of n 2^-64; an absolute error of `enough` times the
    largest entry, if given, does as well.
    """
    d, e = np.asarray(d, LONG), np.asarray(e, LONG)
    n = d.size
    b = np.zeros(2 * n, LONG)
    b[::2], b[1 : 2 * e.size : 2] = abs(d), abs(e)
    b2 = b[: n + e.size] ** 2
    s = np.zeros(n, LONG)
    lo = np.full(n, FLOOR)
    hi = np.full(n, np.max(b + np.roll(b, 1), initial=0) * (1 + WIDTH))  # Gershgorin

    rank = np.flatnonzero(~below(b2, np.arange(n), lo))
    for x in _hints(d, e):
        _split(b2, rank, x, lo, hi)
    wide, near = rank, enough * np.max(b, initial=0)
    while wide.size:
        x = np.where(hi > 2 * lo, np.sqrt(lo) * np.sqrt(hi), (lo + hi) / 2)
        _split(b2, wide, x, lo, hi)
        wide = wide[hi[wide] - lo[wide] > np.maximum(WIDTH * lo[wide], near)]
    s[rank] = (lo[rank] + hi[rank]) / 2
    return s


def below(b2, rank, x):
    """For each rank (0 is the largest): is the singular value of that rank below its x > 0?

    b2 (..., 2n-1), or (..., 2n) of n x (n+1) matrices, rank (k,), x (..., k): the leading
    dimensions are a batch.
    """
    zero = b2 == 0  # a new block starts behind it
    cut = zero.any(axis=tuple(range(zero.ndim - 1)))
    minus = -x
    q = minus.copy()
    negative = np.ones(x.shape, np.int32)
    with np.errstate(divide="ignore"):  # q = +0 gives the next pivot -inf: counted once
        for k in range(b2.shape[-1]):
            if cut[k]:
                q[np.broadcast_to(zero[..., k, None], q.shape)] = -np.inf
            np.divide(b2[..., k, None], q, out=q)
            np.subtract(minus, q, out=q)  # a difference of equal numbers is +0
            negative += q < 0
    return negative > b2.shape[-1] - rank


def _split(b2, rank, x, lo, hi):
    """Cuts the brackets of these ranks at x, if x lies inside."""
    rank = rank[(lo[rank] < x[rank]) & (x[rank] < hi[rank])]
    above = ~below(b2, rank, x[rank])
    lo[rank[above]] = x[rank[above]]
    hi[rank[~above]] = x[rank[~above]]


def _hints(d, e):
    """The points of the first cuts: LAPACK's values, minus and plus their possible error.

    Good points save counts. Bad points do no harm, as only counts decide.
    """
    biggest = np.max(abs(d), initial=np.max(abs(e), initial=0))
    if biggest == 0:
        return []
    scale = LONG(2) ** np.frexp(biggest)[1]
    i, j = np.arange(d.size), np.arange(e.size)
    dense = np.zeros((d.size, e.size + 1))
    dense[i, i], dense[j, j + 1] = d / scale, e / scale
    values = np.linalg.svd(dense, compute_uv=False).astype(LONG) * scale
    error = 8 * np.finfo(float).eps * biggest
    return [values - error, values + error]


# ---- dense matrices ----


def bidiagonal(A):
    """The upper bidiagonal matrix d (..., p), e (..., p-1) with the values of A, as longdouble.

    A (..., m, n): finite, real or complex; p is the smaller of m and n.
    """
    A = long(A)
    if A.shape[-2] < A.shape[-1]:
        A = np.ascontiguousarray(A.swapaxes(-1, -2))
    p = A.shape[-1]
    d, e = np.zeros((*A.shape[:-2], p), LONG), np.zeros((*A.shape[:-2], max(p - 1, 0)), LONG)
    for j in range(p):
        d[..., j] = _eliminate(A[..., j:, j:])
        if j < p - 1:
            e[..., j] = _eliminate(A[..., j:, j + 1 :].swapaxes(-1, -2))
    return d, e


def dense_singular_values(A):
    """All singular values of one matrix A (m, n), descending, as longdouble."""
    return singular_values(*bidiagonal(A), enough=LONG(2) ** -60)


def relative_singular_values(A, by_rows):
    """All singular values of one small matrix A (m, n), descending, as longdouble.

    One-sided Jacobi (Demmel and Veselić 1992): of A = B D, where B has columns of norm 1, the
    relative error of each value is a small multiple of n cond(B) 2^-64. by_rows: of A = D B, by
    rows.
    """
    m, n = A.shape
    A = long(A.T if by_rows else A)
    A = A[:, np.argsort(-np.sum(abs(A) ** 2, axis=0), kind="stable")]
    if A.shape[1] % 2:
        A = np.hstack([A, np.zeros((len(A), 1), A.dtype)])
    columns = A.shape[1]
    order = np.arange(columns)
    enough = len(A) * LONG(2) ** -63
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(SWEEPS):
            off = LONG(0)
            for _ in range(columns - 1):  # a round: all columns are in pairs
                i, j = order[: columns // 2], order[: columns // 2 - 1 : -1]
                off = max(off, _rotate(A, i, j))
                order = np.concatenate([order[:1], order[-1:], order[1:-1]])
            if off <= enough:
                break
        else:
            raise RuntimeError("the reference does not converge")
    norms = np.sort(np.sqrt(np.sum(abs(A) ** 2, axis=0)))[::-1]
    return np.concatenate([norms, np.zeros(max(min(m, n) - columns, 0), LONG)])[: min(m, n)]


def _rotate(A, i, j):
    """Makes columns i and j of A orthogonal in pairs. Returns the largest cosine there was."""
    x, y = A[:, i], A[:, j]
    product = np.sum(x.conj() * y, axis=0)
    if np.iscomplexobj(A):  # with this phase of y the product is real
        y = y * np.where(product == 0, 1, product.conj() / abs(product))
        product = abs(product)
    a, b, c = np.sum(abs(x) ** 2, axis=0), np.sum(abs(y) ** 2, axis=0), product
    cosine = np.where(c == 0, 0, abs(c) / (np.sqrt(a) * np.sqrt(b)))
    half = (b - a) / (2 * c)
    t = np.where(half < 0, -1, 1) / (abs(half) + np.hypot(1, half))
    t = np.where(c == 0, 0, t)
    scale = 1 / np.hypot(1, t)
    A[:, i], A[:, j] = scale * (x - t * y), scale * (t * x + y)
    return np.max(cosine, initial=0)


def _eliminate(A):
    """Makes the first column of A a multiple of the first unit vector, by a reflector.

    A (..., m, n) is overwritten but for its first column. Returns the multiple, of complex A its
    magnitude: that phase changes no value.
    """
    norm = np.sqrt(np.sum(abs(A[..., 0]) ** 2, axis=-1))
    x = np.divide(
        A[..., 0], norm[..., None], where=norm[..., None] > 0, out=np.zeros_like(A[..., 0])
    )
    if np.iscomplexobj(A):
        size = abs(x[..., 0])
        x[..., 0] += np.divide(x[..., 0], size, where=size > 0, out=np.ones_like(x[..., 0])) * (
            norm > 0
        )
        sign = 1
    else:
        sign = np.where(x[..., 0] > 0, -1, 1)
        x[..., 0] -= sign * (norm > 0)
    square = np.sum(abs(x) ** 2, axis=-1)
    scale = np.divide(2, square, out=np.zeros_like(square), where=square > 0)
    rest = A[..., 1:]
    rest -= x[..., :, None] * (scale[..., None, None] * (x.conj()[..., None, :] @ rest))
    return sign * norm
