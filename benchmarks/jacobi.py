"""One-sided Jacobi, tsvd.linalg.svd(method="jacobi"), beside LAPACK's gejsv and cuSOLVER's gesvdj.

The matrices are Gaussian, with columns as they are or graded. Times are taken as in
benchmarks.dense. Errors of values are relative to each value, over (8 + n) cond(B) eps, where B
has the columns at norm 1. They are measured on matrices whose values are known: small ones on the
diagonal, whose values come from mpmath, times powers of two, with columns scrambled and rows mixed
by reflectors.
"""

from dataclasses import dataclass

import mpmath
import numpy as np

from benchmarks import bars, dense
from benchmarks.dense import on_device
from benchmarks.group import Part
from tsvd import linalg

SPAN = {"float64": 200, "float32": 30}  # decades of graded columns
SMALL = 8  # order of a matrix on the diagonal


@dataclass(frozen=True)
class Case(dense.Case):
    graded: bool = False

    THRICE = 1000

    @property
    def what(self):
        return super().what + (", graded" if self.graded else "")

    def ours(self, A, device=None):
        return tuple(linalg.svd(A, full_matrices=False, method="jacobi", device=device))

    def make(self):
        A = super().make()
        if self.graded:
            A = A * _scale(self.columns, self.dtype, np.random.default_rng(self.columns))
        return A

    def peer(self, A):
        return "gejsv", lambda: _gejsv(A)

    def peers(self, A):
        import torch

        if self.rows <= LARGEST_PEER:
            yield "gesvdj", lambda: torch.linalg.svd(A, full_matrices=False, driver="gesvdj")


def _scale(n, dtype, rng):
    """Powers of two over the decades of a dtype, scrambled."""
    powers = np.linspace(-SPAN[dtype] * np.log2(10), 0, n).astype(int)
    return np.ldexp(np.ones(n, dtype), rng.permutation(powers))


def _gejsv(A):
    """LAPACK's, which is given what is A = B D: U, S, Vh."""
    from scipy.linalg import get_lapack_funcs

    (gejsv,) = get_lapack_funcs(("gejsv",), (A,))
    s, U, V, work, _, info = gejsv(A, joba=0)
    if info != 0:
        raise ArithmeticError(f"gejsv returned info = {info}")
    return U, s * (work[0] / work[1]), V.T


# On the CPU a target is LAPACK's time over ours.
CPU = tuple(
    Case("all vectors", n, n, 1.0, dtype=dtype, graded=graded)
    for dtype in ("float64", "float32")
    for graded in (False, True)
    for n in (200, 500, 1000)
)
MILLISECONDS = ((512, 10), (1024, 25), (2048, 70), (4096, 260), (10_000, 2500))
GRADED_FACTOR = 1.5
BATCHES = ((100_000, 8, 2), (100_000, 16, 5), (100_000, 32, 15))
# float32 is to be faster than these times of float64.
CUDA = tuple(
    case
    for dtype in ("float64", "float32")
    for case in (
        *(Case("all vectors", n, n, ms / 1e3, dtype=dtype) for n, ms in MILLISECONDS),
        *(
            Case("graded", n, n, GRADED_FACTOR * ms / 1e3, dtype=dtype, graded=True)
            for n, ms in MILLISECONDS
        ),
        *(Case("batch", n, n, ms / 1e3, batch=count, dtype=dtype) for count, n, ms in BATCHES),
    )
)
KNOWN = (136, 512, 2048)  # orders of the matrices whose values are known
LARGEST_PEER = 4096  # gesvdj takes half a minute beyond


def known(n, dtype, rng):
    """A matrix of order n with graded columns, its values as mpf, and cond(B)."""
    span = SPAN[dtype]
    B = (rng.standard_normal((SMALL, SMALL)) + 3 * np.eye(SMALL)).astype(dtype)
    with mpmath.workdps(40):
        own = mpmath.svd_r(mpmath.matrix(B.astype(float).tolist()), compute_uv=False)
        powers = np.linspace(-(span - 2) * np.log2(10), 0, n // SMALL).astype(int)
        values = sorted((mpmath.ldexp(s, int(p)) for p in powers for s in own), reverse=True)
    A = np.zeros((n, n), dtype)
    for i, power in enumerate(powers):
        here = slice(SMALL * i, SMALL * (i + 1))
        A[here, here] = np.ldexp(B, power)
    A = A[:, rng.permutation(n)]
    for _ in range(2):
        v = rng.standard_normal(n).astype(dtype)
        v /= np.linalg.norm(v)
        A -= 2 * np.outer(v, v @ A)
    unit = B.astype(float) / np.linalg.norm(B.astype(float), axis=0)
    return A, values, float(np.linalg.cond(unit))


def _gesvdj(A):
    """The values by cuSOLVER's, unless it gives up."""
    import torch

    try:
        return {"gesvdj": torch.linalg.svdvals(A, driver="gesvdj").cpu().numpy()}
    except torch.linalg.LinAlgError as error:
        print(f"gesvdj: {error}".splitlines()[0][:100], flush=True)
        return {}


def _measure_known(run, case):
    n, dtype = case
    A, values, condition = known(n, dtype, np.random.default_rng(n))
    unit = (8 + n) * condition * float(np.finfo(dtype).eps)
    if run.device == "cpu":
        found = {"tsvd": linalg.svdvals(A, method="jacobi", device="cpu"), "gejsv": _gejsv(A)[1]}
    else:
        there = on_device(A)
        found = {"tsvd": linalg.svdvals(there, method="jacobi").cpu().numpy()} | _gesvdj(there)
    errors = {
        name: float(max(abs(mpmath.mpf(float(a)) - b) / b for a, b in zip(s, values, strict=True)))
        / unit
        for name, s in found.items()
    }
    return {"order": n, "dtype": dtype, "condition": condition, "errors": errors}


def _bars(run):
    ours = [record["errors"] for record in run.records["known"]]
    known = bars.largest("relative errors of values that are known", 1.0, ours, "tsvd")
    return [*dense.targets(run), *dense.accuracy(run.records["cases"]), known]


KNOWN_CASES = Part(
    "known",
    lambda run: ((n, dtype) for dtype in SPAN for n in KNOWN),
    _measure_known,
    "order dtype condition:.3g errors",
    head="errors of values that are known",
)
GROUP = dense.group("jacobi", CPU, CUDA, _bars, KNOWN_CASES, seconds=60)
