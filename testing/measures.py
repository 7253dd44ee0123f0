"""The measures of accuracy: residual, orthogonality, errors of B and of s. Those of dense matrices,
and what else must hold of their results.

The tests hold them to bounds, the benchmarks print them. B and s are first scaled by a power of
two, so that nothing overflows or underflows. Errors of float32 results are computed in float64.
The unit eps is that of the dtype of the results. A norm or value below the least normal number
counts as that number: no result can be better than the spacing there.
"""

import numpy as np

from testing.parts import double, ldexp, long, sizes
from tsvd import _core, linalg

# The bounds; n is the order of the matrix, of a dense one the larger of its two.
BOUNDS = {
    "residual": lambda n: 2,
    "orthogonality": lambda n: 3,
    "values bisect": lambda n: 4 + n / 64,
    "values qr": lambda n: 8 + n / 8,
    "values dc": lambda n: 8 + n / 8,
    "values twisted": lambda n: 8 + n / 8,
    "values auto": lambda n: 8 + n / 8,
    "values extra": lambda n: 8 + 3 * n / 8,  # of n x (n+1): the rotations of the extra column err
}


def residual(d, e, L, s, R, lower=False):
    """||B - L S R||_F / ((n + 8) eps ||B||_F), computed as ||B R^T - L S||_F in O(n k) work.

    The two norms are equal if R is orthogonal, which `orthogonality` measures. For a part of the
    values, k < n, only the second norm says how good they are.
    d (n,), e (n-1,), L (n, k), s (k,), R (k, n); lower: e is the sub-diagonal. With e (n,) R is
    (k, n+1), or of lower matrices L (n+1, k).
    """
    n, info = d.size, np.finfo(s.dtype)
    if s.size == 0:
        return 0.0
    d, e, s, least = _scaled(d, e, s)
    if lower:  # B^T = R^T S L^T is upper bidiagonal
        L, R = R.T, L.T
    difference = d[:, None] * R.T[:n]
    difference[: e.size] += e[:, None] * R.T[1 : e.size + 1]
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
    i, j = np.arange(n), np.arange(e.size)
    product[i, i] -= d
    product[(j + 1, j) if lower else (j, j + 1)] -= e
    return float(np.ldexp(np.max(abs(product)), exponent))


def orthogonality(L, R):
    """The larger of ||I - L^H L||_max and ||I - R R^H||_max, over (n + 8) eps.

    L (m, k), R (l, n), and n in the unit is the larger of m and n.
    """
    eps = float(np.finfo(L.dtype).eps)
    grams = [X.conj().T @ X for X in (double(L), double(R).conj().T)]
    error = np.max([np.max(abs(gram - np.eye(len(gram))), initial=0) for gram in grams])
    return float(error / ((max(L.shape[0], R.shape[1]) + 8) * eps))


def value_error(s, s_ref):
    """max |s - s_ref| / (eps s_ref); s_ref is longdouble."""
    if s.size == 0:
        return 0.0
    info = np.finfo(s.dtype)
    s_ref = np.asarray(s_ref, np.longdouble)
    unit = np.longdouble(info.eps) * np.maximum(s_ref, np.longdouble(info.tiny))
    return float(np.max(abs(s.astype(np.longdouble) - s_ref) / unit))


# ---- dense matrices ----


def dense_value_bound(m, n):
    """The bound on dense_value_error.

    For a square matrix it is that of "values auto". Of longer columns or rows the sums have more
    terms: where all terms are equal, LAPACK's QR of 1000 x 3 ones is off by 20 eps s_1.
    """
    return 8 + min(m, n) / 8 + abs(m - n) ** 0.5


def dense_residual(A, U, S, Vh):
    """||A - U S Vh||_F / ((max(m, n) + 8) eps ||A||_F).

    A (m, n), U (m, k), S (k,), Vh (k, n). For a part of the values, k < min(m, n), the larger of
    ||A V - U S||_F and ||A^H U - V S||_F, V = Vh^H, stands for the first norm.
    """
    m, n = A.shape
    if S.size == 0:
        return 0.0
    info, shift = np.finfo(S.dtype), -_exponent(A)
    A, S, least = (ldexp(double(x), shift) for x in (A, S, info.tiny))
    U, V = double(U), double(Vh).conj().T
    if S.size == min(m, n):
        error = np.linalg.norm(A - (U * S) @ V.conj().T)
    else:
        error = np.max([np.linalg.norm(A @ V - U * S), np.linalg.norm(A.conj().T @ U - V * S)])
    return float(error / ((max(m, n) + 8) * float(info.eps) * max(np.linalg.norm(A), least)))


def dense_value_error(S, s_ref, largest):
    """max |S - s_ref| / (eps largest); largest: the largest value of the matrix."""
    if S.size == 0:
        return 0.0
    info = np.finfo(S.dtype)
    unit = np.longdouble(info.eps) * np.maximum(np.longdouble(largest), np.longdouble(info.tiny))
    return float(np.max(abs(S.astype(np.longdouble) - s_ref) / unit))


def jacobi_conditions(A, device):
    """How method="jacobi" may see A (m, n): (by_rows, condition) for each way.

    A = B D, and the condition of B with columns of norm 1; by_rows: A = D B, and rows. Rows are
    those of a wide matrix, and of a square one where their sizes have the smaller product, if that
    is clear: else both ways are possible. Lines of zeros do not count: if there are more of the
    rows, the columns of the rest are scaled. CUDA devices take the columns of small square
    matrices.
    """
    m, n = A.shape
    # up to that order there is no QR before the sweeps
    if m != n or (device != "cpu" and n <= _core.tuning()["JACOBI_BLOCK_COLUMNS"]):
        ways = [m < n]
    else:
        rows, columns = (np.flatnonzero(np.any(A, axis=axis)) for axis in (1, 0))
        by_rows, by_columns = (
            int(np.sum(np.frexp(np.max(sizes(A), axis=axis))[1][kept], dtype=np.int64))
            for axis, kept in ((1, rows), (0, columns))
        )
        if rows.size != columns.size:
            ways = [rows.size < columns.size]
        else:
            ways = [by_rows < by_columns] if abs(by_rows - by_columns) > 16 else [False, True]
    return [(way, _condition(A.T if way else A)) for way in ways]


def _condition(A):
    """Of the columns that are not zero, with norm 1."""
    A = A[:, np.any(A, axis=0)]
    if A.size == 0 or A.shape[1] > A.shape[0]:
        return np.inf
    A = ldexp(double(A), -np.frexp(np.max(sizes(A), axis=0))[1])
    A = A / np.linalg.norm(A, axis=0)
    s = np.linalg.svd(A, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0 else np.inf


def jacobi_value_bound(m, n, condition):
    """On value_error by method="jacobi", relative to each value."""
    return (8 + min(m, n)) * condition


def dense_shapes(m, n, k, full=False):
    """Of U, S and Vh for k values of an m x n matrix. full: U and Vh are square."""
    return (m, m if full else k), (k,), (n if full else k, n)


def check_dense(A, result, s_ref, first=0, full=False):
    """All that must hold of a result (U, S, Vh), or of values alone (S,), of the matrix A (m, n).

    s_ref: all values, in longdouble. S has those of the ranks first, first + 1, ... Returns
    measure -> (value, bound), and a text for each rule that is broken.
    """
    (m, n), S = A.shape, result[len(result) // 2]
    k = S.size
    right = dense_shapes(m, n, k, full)
    if any(x.dtype != (S.dtype if x is S else A.dtype) for x in result) or (
        S.dtype != A.real.dtype
    ):
        return {}, [f"the types {[x.dtype.name for x in result]} for {A.dtype}"]
    if [x.shape for x in result] != list(right if len(result) == 3 else right[1:2]):
        return {}, [f"the shapes {[x.shape for x in result]} for {k} of the values of {m} x {n}"]
    if any(np.isnan(x).any() for x in result):
        return {}, ["NaN"]
    wrong = []
    if not np.all(S[1:] <= S[:-1]):
        wrong.append("not descending")
    if np.signbit(S).any():
        wrong.append("a negative value")
    here, finite, limit = s_ref[first : first + k], np.isfinite(S), dense_value_bound(m, n)
    if np.any(_wrongly_infinite(S, here, s_ref[:1], limit)):
        wrong.append("infinite or not, in spite of the rule for the end of the range")
    error = dense_value_error(S[finite], here[finite], np.max(s_ref, initial=0))
    found = {"values": (error, limit)}
    if len(result) == 3:
        found |= _dense_vectors(A, *result, finite)
        wrong += _wrong_signs(result[0][:, :k])
    return found, wrong


def _wrongly_infinite(S, s_ref, largest, limit):
    """Values are infinite from the next power of two above the largest number on. An error within
    the bound may carry a value across.
    """
    info = np.finfo(S.dtype)
    top, error = np.longdouble(2) ** info.maxexp, limit * np.longdouble(info.eps) * largest
    return np.where(np.isinf(S), s_ref + error < top, s_ref - error >= top)


def _dense_vectors(A, U, S, Vh, finite):
    found = {"orthogonality": (orthogonality(U, Vh), BOUNDS["orthogonality"](max(A.shape)))}
    # Of all columns and rows the first have values; what has an infinite one is not a product.
    ours = np.flatnonzero(finite)
    residual = dense_residual(A, U[:, ours], S[ours], Vh[ours])
    return found | {"residual": (residual, BOUNDS["residual"](max(A.shape)))}


def _wrong_signs(U):
    largest = U[np.argmax(abs(U), axis=0), np.arange(U.shape[1])]
    if np.all(largest.real > 0) and np.all(largest.imag == 0):
        return []
    size = abs(U)
    largest = np.max(size, axis=0)
    # of complex entries of equal magnitude rounding decides which one is the first
    near = size >= largest * (1 - 4 * np.finfo(size.dtype).eps)
    if np.iscomplexobj(U) and np.all(np.any(near & (U.real > 0) & (U.imag == 0), axis=0)):
        return []
    return ["a column of U that is not positive where it is largest"]


# ---- scaling ----


def _exponent(*arrays):
    """The k for which the largest of `sizes` is in [2^(k-1), 2^k)."""
    return int(np.frexp(max(np.max(sizes(x), initial=0) for x in arrays))[1])


def _scaled(d, e, s):
    """d, e, s and the least normal number of their type, all times 2^-k, as float64."""
    shift = -_exponent(d, e)
    least = float(np.finfo(s.dtype).tiny)
    return *(np.ldexp(np.float64(x), shift) for x in (d, e, s)), np.ldexp(least, shift)


# ---- inverses ----

# Bounds of `inverse_residual`, without a step of refinement and with it.
INVERSE_BOUNDS = {False: 10, True: 2}


def inverse_residual(A, X):
    """The smaller of ||A X - I||_F and ||X A - I||_F, over n eps ||A||_F ||X||_F; A, X (n, n).

    It is computed in long double, whose range holds all products of doubles.
    """
    n, eps = len(A), float(np.finfo(X.dtype).eps)
    if n == 0:
        return 0.0
    A, X = long(A), long(X)
    off = min(frobenius(A @ X - np.eye(n)), frobenius(X @ A - np.eye(n)))
    return float(off / (n * eps * frobenius(A) * frobenius(X)))


def frobenius(x):
    """The norm, in the type of the parts."""
    return np.sqrt(np.sum(x.real**2 + x.imag**2))


# Of svds: residuals, the loss of orthogonality and errors of values, in units of eps.
PARTIAL_BOUND = 50


def partial_errors(A, U, s, Vh):
    """The errors of the largest triplets of a dense A, in units of eps: of the residuals and of the
    values over s_1, and the norm of what U^H U and Vh Vh^H differ from the unit matrix.

    The values are compared with those of svdvals in double precision: LAPACK's are off by up to
    40 eps.
    """
    eps, k = float(np.finfo(U.dtype).eps), len(s)
    s_ref = linalg.svdvals(double(A), device="cpu")
    unit = eps * max(float(s_ref[0]), float(np.finfo(U.dtype).tiny))
    A, U, s, V = long(A), long(U), s.astype(np.longdouble), long(Vh).conj().T
    sides = (A @ V - U * s, A.conj().T @ U - V * s)
    residuals = [np.sqrt((abs(side) ** 2).sum(0)).max() for side in sides]
    grams = [double(X.conj().T @ X - np.eye(k)) for X in (U, V)]
    return {
        "residual": float(max(residuals)) / unit,
        "orthogonality": max(float(np.linalg.norm(gram, 2)) for gram in grams) / eps,
        "values": float(abs(s - s_ref[:k]).max()) / unit,
    }
