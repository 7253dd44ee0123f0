"""The measures of measures.py for the matrices of a batch, in extended precision.

Values are not compared with reference values, which take many Sturm counts. Two counts for each
value prove that the right value of the same rank is within a tolerance of it; only values that are
not close get more. Errors of vectors are computed in numpy.longdouble, in which neither squares of
doubles overflow nor those of denormal doubles underflow, so that nothing is scaled.

Shapes: d (m, n), e (m, n-1), which for values may also be (m, n), L (m, n, k), s (m, k),
R (m, k, n). The values of s have the ranks first to first + k - 1, where 0 is the largest.
"""

import numpy as np

from testing.measures import BOUNDS
from testing.reference import FLOOR, LONG, below

CLOSE = 1 / 8  # share of a tolerance that counts as close
STEPS = 6  # bisections of the share of a value that is not close
DOUBLINGS = 100  # of the share of a value that is not within its tolerance
COUNTED = LONG(2) ** -59  # a count may be wrong at a point that is relatively nearer to a value


def squares(d, e):
    """The squares of d1, e1, d2, ..., dn, as `reference.below` takes them."""
    m, n = d.shape
    b = np.empty((m, n + e.shape[1]), LONG)
    b[:, ::2], b[:, 1::2] = d, e
    return b**2


def below_or_not(b2, first, x):
    """As `reference.below` for the ranks from `first` on; x may be negative, or infinite."""
    rank = first + np.arange(x.shape[-1])
    return below(b2, rank, np.maximum(x, FLOOR)) & (x > 0)


def norms(d, e):
    """||B||_F, at least the least normal number, (m,)."""
    square = np.sum(d.astype(LONG) ** 2, axis=-1) + np.sum(e.astype(LONG) ** 2, axis=-1)
    return np.maximum(np.sqrt(square), np.finfo(d.dtype).tiny)


def limit_with_eps(d, e, eps):
    """The bound on max |B - L S R| where eps is given, for one matrix or for those of a batch."""
    n, unit = d.shape[-1], np.finfo(d.dtype).eps
    return 4 * LONG(eps) + BOUNDS["residual"](n) * (n + 8) * unit * norms(d, e)


# ---- values ----


def value_shares(b2, first, s, tolerance):
    """The error of each value as a share of its tolerance. Not exact: at least CLOSE, and up to
    (1 - CLOSE) 2^-STEPS more than it is; above 1 up to twice as much.

    tolerance (m, k) or (m, 1), absolute. Infinite values have the share 0: see `wrong_at_the_ends`.
    """
    finite = np.isfinite(s)
    s = np.where(finite, s, 0).astype(LONG)
    tolerance = np.broadcast_to(tolerance, s.shape)

    def within(rows, share):
        x, width = s[rows], share * tolerance[rows]
        less = below_or_not(b2[rows], first, (x - width) * (1 - COUNTED))
        return ~less & below_or_not(b2[rows], first, (x + width) * (1 + COUNTED))

    shares = np.full(s.shape, CLOSE)
    far = ~within(slice(None), CLOSE) & finite
    rows = np.flatnonzero(far.any(axis=1))
    if rows.size:
        low, high = np.full(s[rows].shape, CLOSE), np.ones(s[rows].shape)
        for _ in range(DOUBLINGS):
            beyond = ~within(rows, high)
            if not (beyond & far[rows]).any():
                break
            high = np.where(beyond, 2 * high, high)
        below_one = high == 1
        for _ in range(STEPS):
            middle = (low + high) / 2
            inside = within(rows, middle)
            low = np.where(inside, low, middle)
            high = np.where(inside & below_one, middle, high)
        shares[rows] = np.where(far[rows], high, CLOSE)
    return np.where(finite, shares, 0)


def tolerances(s, ulps):
    """`ulps` units in the last place of each value, or of the least normal number."""
    info = np.finfo(s.dtype)
    finite = np.where(np.isfinite(s), s, 0).astype(LONG)
    return ulps * LONG(info.eps) * np.maximum(finite, info.tiny)


def slack(n, device, dtype):
    """How far, relatively, a value may be from the middle between two numbers below the least
    normal one and still be rounded to the other.
    """
    single = device != "cpu" and dtype == np.float32  # computed in float64
    return n * LONG(2) ** -51 if single else COUNTED


def wrong_at_the_ends(b2, first, s, changed=0, slack=COUNTED):
    """Which values break the rules for the ends of the range of numbers, (m, k).

    Below the least normal number a value is the nearest number to the right one, which the count
    may miss by `slack`. It is infinite from the next power of two above the largest number on, and
    only there. changed: how much more the right value may be off, (m, 1); 0 for full accuracy.
    """
    info = np.finfo(s.dtype)
    unit, top = LONG(info.smallest_subnormal), LONG(2) ** info.maxexp
    wrong = np.zeros(s.shape, bool)
    changed = np.broadcast_to(changed, (s.shape[0], 1))

    rows = np.flatnonzero((s <= info.tiny).any(axis=1) & (changed[:, 0] == 0))
    if rows.size:
        x = s[rows].astype(LONG)
        less = below_or_not(b2[rows], first, (x - unit / 2) * (1 - slack))
        more = ~below_or_not(b2[rows], first, (x + unit / 2) * (1 + slack))
        # The least normal number itself only tells that the right value is not less.
        wrong[rows] = (less & (x <= info.tiny)) | (more & (x < info.tiny))
    rows = np.flatnonzero((s > info.max / 2).any(axis=1))
    if rows.size:
        ends = [
            np.broadcast_to(top * (1 + sign * LONG(2) ** -55) + sign * changed[rows], s[rows].shape)
            for sign in (-1, 1)
        ]
        less, more = below_or_not(b2[rows], first, ends[0]), ~below_or_not(b2[rows], first, ends[1])
        infinite = np.isinf(s[rows])
        wrong[rows] |= (infinite & less) | (~infinite & more)
    return wrong


# ---- vectors ----


def residuals(d, e, L, s, R, lower):
    """||B R^T - L S||_F / ((n + 8) eps ||B||_F), (m,). Infinite values are left out."""
    n, unit = d.shape[1], np.finfo(s.dtype).eps
    if lower:  # B^T = R^T S L^T is upper bidiagonal
        L, R = R.swapaxes(1, 2), L.swapaxes(1, 2)
    finite = np.isfinite(s)[:, None, :]
    R = R.swapaxes(1, 2).astype(LONG)
    difference = d[:, :, None] * R
    difference[:, :-1] += e[:, :, None] * R[:, 1:]
    difference -= L * np.where(finite, s[:, None, :], 0).astype(LONG)
    square = np.sum(np.where(finite, difference, 0) ** 2, axis=(1, 2))
    return np.sqrt(square) / ((n + 8) * unit * norms(d, e))


def max_abs_errors(d, e, L, s, R, lower):
    """max |B - L S R|, (m,), in the units of B; all values must be given."""
    n = s.shape[1]
    product = (L * s[:, None, :].astype(LONG)) @ R.astype(LONG)
    i = np.arange(n)
    product[:, i, i] -= d
    product[(slice(None), *((i[1:], i[:-1]) if lower else (i[:-1], i[1:])))] -= e
    return np.max(abs(product), axis=(1, 2))


def orthogonalities(L, R):
    """The larger of ||I - L^T L||_max and ||I - R R^T||_max, over (n + 8) eps, (m,)."""
    _, n, k = L.shape
    unit = np.finfo(L.dtype).eps
    L, R = L.astype(LONG), R.astype(LONG)
    grams = L.swapaxes(1, 2) @ L, R @ R.swapaxes(1, 2)
    errors = [np.max(abs(gram - np.eye(k)), axis=(1, 2)) for gram in grams]
    return np.maximum(*errors) / ((n + 8) * unit)


def wrong_signs(L):
    """Whether a column of L is not positive where it is largest, at the first such entry, (m,)."""
    first = np.argmax(abs(L), axis=1)[:, None, :]
    return ~(np.take_along_axis(L, first, axis=1) > 0).all(axis=(1, 2))


def wrong_order(s):
    """Whether the values are not descending, or one has a minus sign, (m,)."""
    return ~(s[:, 1:] <= s[:, :-1]).all(axis=1) | np.signbit(s).any(axis=1)
