"""The measures of accuracy: residual, orthogonality, errors of B and of s.

The tests hold them to bounds, the benchmarks print them. B and s are first scaled by a power of
two, so that nothing overflows or underflows. Errors of float32 results are computed in float64.
The unit eps is that of the dtype of the results. A norm or value below the least normal number
counts as that number: no result can be better than the spacing there.
"""

import numpy as np

# The bounds; n is the order of the matrix.
BOUNDS = {
    "residual": lambda n: 2,
    "orthogonality": lambda n: 3,
    "values bisect": lambda n: 4 + n / 64,
    "values qr": lambda n: 8 + n / 8,
    "values dc": lambda n: 8 + n / 8,
    "values twisted": lambda n: 8 + n / 8,
    "values auto": lambda n: 8 + n / 8,
}


def residual(d, e, L, s, R, lower=False):
    """||B - L S R||_F / ((n + 8) eps ||B||_F), computed as ||B R^T - L S||_F in O(n k) work.

    The two norms are equal if R is orthogonal, which `orthogonality` measures. For a part of the
    values, k < n, only the second norm says how good they are.
    d (n,), e (n-1,), L (n, k), s (k,), R (k, n); lower: e is the sub-diagonal.
    """
    n, info = d.size, np.finfo(s.dtype)
    if s.size == 0:
        return 0.0
    d, e, s, least = _scaled(d, e, s)
    if lower:  # B^T = R^T S L^T is upper bidiagonal
        L, R = R.T, L.T
    difference = d[:, None] * R.T
    difference[:-1] += e[:, None] * R.T[1:]
    difference -= L * s
    norm = max(np.sqrt(np.sum(d**2) + np.sum(e**2)), least)
    return float(np.linalg.norm(difference) / ((n + 8) * float(info.eps) * norm))


def max_abs_error(d, e, L, s, R, lower=False):
    """max |B - L S R|, in the units of B."""
    n = s.size
    if n == 0:
        return 0.0
    exponent = _exponent(d, e)
    d, e, s, _ = _scaled(d, e, s)
    product = (L * s) @ R.astype(np.float64)
    i = np.arange(n)
    product[i, i] -= d
    product[(i[1:], i[:-1]) if lower else (i[:-1], i[1:])] -= e
    return float(np.ldexp(np.max(abs(product)), exponent))


def orthogonality(L, R):
    """The larger of ||I - L^T L||_max and ||I - R R^T||_max, over (n + 8) eps; L (n, k)."""
    n, k = L.shape
    if k == 0:
        return 0.0
    eps = float(np.finfo(L.dtype).eps)
    L, R = L.astype(np.float64), R.astype(np.float64)
    error = max(np.max(abs(gram - np.eye(k))) for gram in (L.T @ L, R @ R.T))
    return float(error / ((n + 8) * eps))


def value_error(s, s_ref):
    """max |s - s_ref| / (eps s_ref); s_ref is longdouble."""
    if s.size == 0:
        return 0.0
    info = np.finfo(s.dtype)
    s_ref = np.asarray(s_ref, np.longdouble)
    unit = np.longdouble(info.eps) * np.maximum(s_ref, np.longdouble(info.tiny))
    return float(np.max(abs(s.astype(np.longdouble) - s_ref) / unit))


def _exponent(d, e):
    """The k for which max(|d|, |e|) is in [2^(k-1), 2^k)."""
    return int(np.frexp(max(np.max(abs(d)), np.max(abs(e), initial=0)))[1])


def _scaled(d, e, s):
    """d, e, s and the least normal number of their type, all times 2^-k, as float64."""
    shift = -_exponent(d, e)
    least = float(np.finfo(s.dtype).tiny)
    return *(np.ldexp(np.float64(x), shift) for x in (d, e, s)), np.ldexp(least, shift)
