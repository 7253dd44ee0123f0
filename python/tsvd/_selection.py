"""The range of select="i"."""

from __future__ import annotations

import operator


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
