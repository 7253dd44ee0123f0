"""The same dense matrices in other places of memory: orders, strides of any sign, gaps."""

import numpy as np


def _gaps(A):
    """Every second row and every third column of an array of NaN."""
    wide = np.full((*A.shape[:-2], 2 * A.shape[-2], 3 * A.shape[-1]), np.nan, A.dtype)
    wide[..., ::2, 1::3] = A
    return wide[..., ::2, 1::3]


def _columns(A):
    """Each matrix column by column."""
    return np.ascontiguousarray(A.swapaxes(-1, -2)).swapaxes(-1, -2)


def _unaligned(A):
    bytes_before = np.zeros(A.nbytes + 1, np.uint8)
    moved = bytes_before[1:].view(A.dtype).reshape(A.shape)
    moved[...] = A
    return moved


# Name -> function that gives an array equal to A (..., m, n).
LAYOUTS = {
    "rows": np.array,
    "columns": _columns,
    "batch last": np.asfortranarray,
    "negative": lambda A: np.array(A[..., ::-1, ::-1])[..., ::-1, ::-1],
    "negative columns": lambda A: _columns(A[..., ::-1, :])[..., ::-1, :],
    "gaps": _gaps,
    "unaligned": _unaligned,
}
