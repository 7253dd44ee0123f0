"""What tsvd.svd returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class SVDResult(NamedTuple):
    """B = L @ diag(s) @ R, as ``U, S, Vh`` of `numpy.linalg.svd`; or the part of it selected.

    Attributes
    ----------
    L : ndarray, shape (..., n, k)
        Its orthonormal columns are the left singular vectors.
    s : ndarray, shape (..., k)
        The singular values, all k = n or those selected, descending, none
        negative.
    R : ndarray, shape (..., k, n)
        Its orthonormal rows are the right singular vectors.
    """

    L: np.ndarray
    s: np.ndarray
    R: np.ndarray


class SVDInfo(NamedTuple):
    """How a result was computed; counts are sums over the batch.

    Attributes
    ----------
    method : str
        The method that ran, never "auto".
    device : str
        Where it ran, as `tsvd.svd` takes it.
    sweeps : int
        Passes over the matrix or over a part of it; "givens": half sweeps.
    iterations : int
        "givens": loop steps of all threads of the pipeline, empty ones
        included; "qr": rotation steps of all sweeps; "bisect": Sturm counts;
        "dc": 0.
    iterations_saved : int
        "givens": how many of them, empty ones, splitting left out.
    rotations : int
        Givens rotations made, right and left together.
    deflated : int
        Off-diagonal entries set to zero because they were negligible; "dc":
        values that merges found ready, summed over all merges.
    seconds : dict of str to float
        "iterate" (work on d and e; "dc": leaves, deflation, secular equations),
        "vectors" (rotations or products applied to L and R), "values" (bisection
        of s), "device" (CUDA: from d and e on the device to the results there,
        0 on the CPU) and "total".
    """

    method: str
    device: str
    sweeps: int
    iterations: int
    iterations_saved: int
    rotations: int
    deflated: int
    seconds: dict[str, float]
