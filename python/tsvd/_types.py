"""The results of an SVD, and what tells how they were computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class SVDResult(NamedTuple):
    """U, S, Vh with A = U @ diag(S) @ Vh, as of `numpy.linalg.svd`, or a part of them.

    `tsvd.svd` calls them L, s, R. Each has both names, whatever the matrix was. They are arrays of
    NumPy, or of the library that the input is from. p is the smaller of m and n; a bidiagonal
    matrix has m = n = p.

    Attributes
    ----------
    U, L : ndarray, shape (..., m, m) or (..., m, k)
        Its orthonormal columns are the left singular vectors.
    S, s : ndarray, shape (..., k)
        The singular values, all k = p or the selected ones, in descending order
        and not negative.
    Vh, R : ndarray, shape (..., n, n) or (..., k, n)
        Its orthonormal rows are the right singular vectors.
    """

    U: np.ndarray
    S: np.ndarray
    Vh: np.ndarray

    @property
    def L(self) -> np.ndarray:
        """U: its orthonormal columns are the left singular vectors."""
        return self.U

    @property
    def s(self) -> np.ndarray:
        """S: the singular values."""
        return self.S

    @property
    def R(self) -> np.ndarray:
        """Vh: its orthonormal rows are the right singular vectors."""
        return self.Vh


class SVDInfo(NamedTuple):
    """How a result was computed. Counts are sums over the batch, seconds the most of a device.

    Attributes
    ----------
    method : str
        The method that ran, never "auto".
    device : str
        The device that it ran on, as the argument ``device`` of `tsvd.svd`; of several
        "cuda:0,cuda:1".
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
        also "reduce": from A to bidiagonal form, of which "band" is from A to a
        band and "chase" from there, 0 for a reduction in one stage and, on the
        CPU, for several matrices at once; and "back": from the vectors of the
        bidiagonal form to those of A.
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


class PartialSVDInfo(NamedTuple):
    """How a result of `tsvd.linalg.svds` was computed.

    Attributes
    ----------
    method : str
        "krylov", or "full" for the SVD with all values.
    reads : int
        How often A was read: by a step, or by a product with a vector or a block. For
        objects without products of blocks each column counts.
    steps : int
        Steps of all Lanczos processes, with those of the check.
    restarts : int
        Restarts of all processes.
    residuals : ndarray, shape (k,), or None
        The larger of ``|A v - s u|`` and ``|A^H u - s v|`` for each triplet, computed,
        in the units of A. None: by "full" they are not computed.
    check : str
        The check that was made: "probabilistic", "cholesky" or "none". By "full" it is
        "all values": nothing can be missed.
    eta : float or None
        No value above ``(1 + eta) * s_k`` was missed; None without a check.
    failure : float or None
        The largest probability that there is one all the same.
    repaired : int
        How many values the check found and took in.
    """

    method: str
    reads: int
    steps: int
    restarts: int
    residuals: np.ndarray | None
    check: str
    eta: float | None
    failure: float | None
    repaired: int
