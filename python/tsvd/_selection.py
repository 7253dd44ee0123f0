"""The range of select="i", and the values of select="v"."""

from __future__ import annotations

import operator

import numpy as np


def indices(select_range):
    """The first index and the last, both included."""
    try:
        low, high = map(operator.index, select_range)
    except (TypeError, ValueError):
        raise TypeError(
            f'select="i" needs a select_range of two integers, not {select_range!r}'
        ) from None
    if not 0 <= low <= high:
        raise ValueError(f"select_range must have 0 <= min <= max, not {select_range!r}")
    return low, high


def index_range(select_range, n):
    """The same, for callers that know the order of the matrix."""
    low, high = indices(select_range)
    if high >= n:
        raise ValueError(
            f"select_range=({low}, {high}) is out of range: max must be below the order of the "
            f"matrix, {n}"
        )
    return low, high


def keep_within(s, low, high):
    """Moves values that were counted in (low, high] into it, where rounding left it by an ulp."""
    with np.errstate(over="ignore"):  # bounds beyond the range of float32
        least, most = s.dtype.type(low), s.dtype.type(high)
        if float(least) <= low:  # NumPy would round the bound to the dtype
            least = np.nextafter(least, s.dtype.type(np.inf))
        if float(most) > high:
            most = np.nextafter(most, s.dtype.type(-np.inf))
    if least <= most:  # else no number of the dtype lies there
        np.clip(s, least, most, out=s)
