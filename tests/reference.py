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

LONG = np.longdouble
WIDTH = LONG(2) ** -62  # relative width of a final bracket
FLOOR = LONG(2) ** -1100  # far below the least denormal double; smaller values are returned as 0

if np.finfo(LONG).nmant < 63 or np.finfo(LONG).maxexp < 16384:
    raise RuntimeError("the reference needs a long double of 64 bits and a range of 2**16384")


def singular_values(d, e, enough=0):
    """All singular values of diag(d) + diag(e, 1), descending, as longdouble.

    d (n,), e (n-1,): finite float32, float64 or longdouble.
    Relative error: 2^-62 and a small multiple of n 2^-64; an absolute error of `enough` times the
    largest entry, if given, does as well.
    """
    d, e = np.asarray(d, LONG), np.asarray(e, LONG)
    n = d.size
    b = np.zeros(2 * n, LONG)
    b[::2], b[1:-1:2] = abs(d), abs(e)
    b2 = b[:-1] ** 2
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

    b2 (..., 2n-1), rank (k,), x (..., k): the leading dimensions are a batch.
    """
    n = (b2.shape[-1] + 1) // 2
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
    return negative >= 2 * n - rank


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
    dense = np.diag((d / scale).astype(float)) + np.diag((e / scale).astype(float), 1)
    values = np.linalg.svd(dense, compute_uv=False).astype(LONG) * scale
    error = 8 * np.finfo(float).eps * biggest
    return [values - error, values + error]


# ---- dense matrices ----


def bidiagonal(A):
    """The upper bidiagonal matrix d (..., p), e (..., p-1) with the values of A, as longdouble.

    A (..., m, n): finite float32 or float64; p is the smaller of m and n.
    """
    A = np.array(A, LONG)
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


def graded_singular_values(W):
    """All singular values of W = B D (m, n), m >= n, descending, as longdouble.

    One-sided Jacobi, each column against each other: the relative error is a small multiple of
    n 2^-64 times the condition of B, whatever D is.
    """
    X = np.asarray(W, LONG)
    X = np.hstack([X, np.zeros((len(X), X.shape[1] % 2), LONG)])
    n = X.shape[1]
    order = np.arange(n)
    worst = np.inf
    while worst > LONG(2) ** -60:
        worst = 0
        for _ in range(n - 1):  # the rounds of a tournament
            a, b = order[: n // 2], order[n // 2 :][::-1]
            order[1:] = np.roll(order[1:], 1)
            size = np.sqrt(np.sum(X**2, axis=0))
            a, b = np.where(size[a] < size[b], (b, a), (a, b))
            a, b = a[size[b] > 0], b[size[b] > 0]
            x, y, r = X[:, a], X[:, b], size[b] / size[a]
            h = np.sum(x / size[a] * (y / size[b]), axis=0)
            with np.errstate(invalid="ignore"):
                t = 2 * r * h / ((1 - r) * (1 + r) + np.hypot((1 - r) * (1 + r), 2 * r * h))
            t = np.where(h == 0, 0, t)
            c = 1 / np.sqrt(1 + t**2)
            X[:, a], X[:, b] = c * (x + t * y), c * (y - t * x)
            worst = max(worst, np.max(abs(h), initial=0))
    return np.sort(np.sqrt(np.sum(X**2, axis=0)))[::-1][: np.shape(W)[1]]


def _eliminate(A):
    """Makes the first column of A a multiple of the first unit vector, by a reflector.

    A (..., m, n) is overwritten but for its first column. Returns the multiple.
    """
    norm = np.sqrt(np.sum(A[..., 0] ** 2, axis=-1))
    x = np.divide(
        A[..., 0], norm[..., None], where=norm[..., None] > 0, out=np.zeros_like(A[..., 0])
    )
    sign = np.where(x[..., 0] > 0, -1, 1)
    x[..., 0] -= sign * (norm > 0)
    square = np.sum(x**2, axis=-1)
    scale = np.divide(2, square, out=np.zeros_like(square), where=square > 0)
    rest = A[..., 1:]
    rest -= x[..., :, None] * (scale[..., None, None] * (x[..., None, :] @ rest))
    return sign * norm
