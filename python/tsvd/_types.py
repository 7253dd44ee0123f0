"""The results of tsvd.svd, and what tells how they were computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class SVDResult(NamedTuple):
    """L, s, R with B = L @ diag(s) @ R, as ``U, S, Vh`` of `numpy.linalg.svd`, or a part of them.

    They are arrays of NumPy, or of the library that d and e are from.

    Attributes
    ----------
    L : ndarray, shape (..., n, k)
        Its orthonormal columns are the left singular vectors.
    s : ndarray, shape (..., k)
        The singular values, all k = n or the selected ones, in descending order
        and not negative.
    R : ndarray, shape (..., k, n)
        Its orthonormal rows are the right singular vectors.
    """

    L: np.ndarray
    s: np.ndarray
    R: np.ndarray


class SVDInfo(NamedTuple):
    """How a result was computed. Counts are sums over the batch.

    Attributes
    ----------
    method : str
        The method that ran, never "auto".
    device : str
        The device that it ran on, as the argument ``device`` of `tsvd.svd`.
    sweeps : int
        Passes over the matrix or a part of it; "givens": half sweeps,
        with two for each sweep of QR that takes the rest; "jacobi": sweeps over
        all pairs of columns, the last of which confirms, unless what the one
        before left is known to be small.
    iterations : int
        "givens": loop steps of all threads of the pipeline, including empty
        ones, and rotations of QR; "qr": rotation steps of all sweeps; "bisect":
        Sturm counts; "dc": 0.
    iterations_saved : int
        "givens": the empty steps among these that splitting left out.
    rotations : int
        Number of Givens rotations, right and left together.
    deflated : int
        Off-diagonal entries that were negligible and set to zero; "dc": values
        that deflated, summed over all merges.
    refused : int
        "twisted": values that did not pass, so that "dc" took their matrix; the
        method is "dc" then.
    seconds : dict of str to float
        "iterate": work on d and e; for "dc" leaves, deflation and secular
        equations. "vectors": rotations or products applied to L and R. "values":
        bisection of s. "device": on CUDA from d and e on the device to the
        results there, 0 on the CPU. "total": the whole call. `tsvd.linalg.svd` has
        also "reduce": from A to bidiagonal form, and "back": from the vectors of
        that form to those of A.
    """

    method: str
    device: str
    sweeps: int
    iterations: int
    iterations_saved: int
    rotations: int
    deflated: int
    refused: int
    seconds: dict[str, float]
