"""Tall matrices of Dask by tsvd.dask, beside dask.array.linalg.svd and svd_compressed.

All compute the same chunks in the threads of Dask. To be run with `--threads 1`: tasks run side by
side, and threads of a BLAS in each of them would take the processors from one another.
"""

from dataclasses import dataclass
from statistics import median

import dask
import dask.array as da
import numpy as np

import tsvd.dask
from benchmarks import bars
from benchmarks.group import Group, Part
from benchmarks.timing import interleaved
from testing.command import CORES
from testing.measures import BOUNDS, orthogonality, value_error
from testing.reference import relative_singular_values

CHUNKS = 8
FEW = 10  # values of svd_compressed
GRADED = "columns from 1 to 1e-12, shuffled"


@dataclass(frozen=True)
class Case:
    what: str
    rows: int
    columns: int

    def make(self):
        rng = np.random.default_rng(0)
        A = rng.standard_normal((self.rows, self.columns))
        return A * rng.permutation(np.logspace(0, -12, self.columns)) if self.what == GRADED else A


CASES = (
    Case("Gaussian", 200_000, 50),
    Case("Gaussian", 50_000, 200),
    Case(GRADED, 200_000, 50),
)

TSVD, JACOBI, TSVD_FEW = "tsvd", "tsvd, Jacobi", f"tsvd, {FEW} values"
DASK, DASK_FEW = "svd", f"svd_compressed, {FEW} values"
CONTENDERS = {
    TSVD: lambda a: tsvd.dask.linalg_svd(a, full_matrices=False),
    JACOBI: lambda a: tsvd.dask.linalg_svd(a, full_matrices=False, method="jacobi"),
    DASK: da.linalg.svd,
    TSVD_FEW: lambda a: tsvd.dask.linalg_svd(a, select="i", select_range=(0, FEW - 1)),
    DASK_FEW: lambda a: da.linalg.svd_compressed(a, FEW, seed=0),
}


def reference(A):
    """The singular values of a tall matrix with columns of any norms, as longdouble.

    They are those of the Cholesky factor of its Gram matrix, whose columns are scaled to norm 1
    meanwhile: where these are far from dependent, the values have nearly all digits of longdouble.
    """
    A = A.astype(np.longdouble)
    norms = np.sqrt(np.sum(A**2, axis=0))
    A /= norms
    G = A.T @ A
    for j in range(len(G)):  # the Cholesky factor takes the place of the lower triangle
        G[j:, j] /= np.sqrt(G[j, j])
        G[j + 1 :, j + 1 :] -= np.outer(G[j + 1 :, j], G[j + 1 :, j])
    return relative_singular_values(np.tril(G).T * norms, by_rows=False)


def _measure(run, case):
    A = case.make()
    a = da.from_array(A, chunks=(case.rows // CHUNKS, -1))
    calls = {name: lambda call=call: dask.compute(*call(a)) for name, call in CONTENDERS.items()}
    values = reference(A)
    with dask.config.set(scheduler="threads", num_workers=CORES):
        seconds = interleaved(calls, run.repeats)
        found = {
            name: {"median": median(seconds[name]), "seconds": seconds[name]}
            | _accuracy(A, values, *call())
            for name, call in calls.items()
        }
    return {"what": case.what, "rows": case.rows, "columns": case.columns, "contenders": found}


def _accuracy(A, values, U, S, Vh):
    """The residual is that of A V = U S, so that a part of the values has one."""
    unit = (len(A) + 8) * float(np.finfo(A.dtype).eps) * np.linalg.norm(A)
    return {
        "residual": float(np.linalg.norm(A @ Vh.T - U * S) / unit),
        "orthogonality": orthogonality(U, Vh),
        "values": value_error(S, values[: len(S)]),
    }


def _shown(record):
    first = {key: record[key] for key in ("what", "rows", "columns")}
    return [
        (first if i == 0 else {"what": ""}) | {"name": name} | found
        for i, (name, found) in enumerate(record["contenders"].items())
    ]


def _bars(run):
    cases = [case["contenders"] for case in run.records["cases"]]
    ours = [case[name] for case in cases for name in (TSVD, JACOBI, TSVD_FEW)]
    graded = [case["contenders"][JACOBI] for case in run.records["cases"] if case["what"] == GRADED]
    seconds = {name: sum(case[name]["median"] for case in cases) for name in (TSVD, DASK)}
    return [
        bars.at_most(
            "seconds of all cases, beside dask's svd", 1.25 * seconds[DASK], seconds[TSVD]
        ),
        bars.largest("residual", BOUNDS["residual"](0), ours, "residual"),
        bars.largest("orthogonality", BOUNDS["orthogonality"](0), ours, "orthogonality"),
        bars.largest("errors of values by Jacobi, graded, in eps", 50, graded, "values"),
    ]


GROUP = Group(
    files={"cpu": "dask_cpu"},
    parts=[
        Part(
            "cases",
            lambda run: CASES,
            _measure,
            "what:<34 rows:d columns:d name:<26 median:s residual:.3g orthogonality:.3g values:.3g",
            _shown,
            head="residual and orthogonality over (m + 8) eps; values: relative errors over eps",
        ),
    ],
    bars=_bars,
    contents=lambda run: {"device": "cpu", "repeats": run.repeats, "workers": CORES},
)
