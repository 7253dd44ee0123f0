"""Small dense matrices on the CPU: one call, and batches, beside NumPy. The matrices are Gaussian,
and the contenders take turns.
"""

from dataclasses import dataclass

from benchmarks import bars, dense, inverse
from benchmarks.group import Group, Part
from testing.measures import INVERSE_BOUNDS

# Matrices of a batch; both contenders have the same.
COUNTS = {2: 100_000, 3: 100_000, 4: 100_000, 6: 50_000, 8: 20_000, 16: 5000, 32: 1000}


@dataclass(frozen=True)
class Inverse(inverse.Case):
    """An inverse; its group says that, as those of decompositions do."""

    group: str = "inverse"


def _one(n, target, dtype):
    yield dense.Case("one", n, n, target, dtype=dtype)
    yield dense.Case("one", n, n, target, dtype=dtype, vectors=False)
    if n <= 8:
        yield Inverse(n, target, dtype=dtype)


def _batch(n, dtype, svd=None, values=None, inv=None):
    yield dense.Case("batch", n, n, svd, COUNTS[n], dtype)
    yield dense.Case("batch", n, n, values, COUNTS[n], dtype, vectors=False)
    yield Inverse(n, inv, COUNTS[n], dtype)


def _tall(dtype):
    for count, m, n in ((100_000, 8, 3), (1000, 100, 3), (10_000, 3, 8)):
        yield dense.Case("tall", m, n, None, count, dtype)


CASES = (
    *(case for n in (1, 2, 3, 4, 6, 8) for case in _one(n, 1.1, "float64")),
    *(
        case
        for dtype in ("float64", "float32")
        for n in (12, 16, 20, 24, 32, 48, 64, 100, 128)
        for case in _one(n, 1.15, dtype)
    ),
    *_batch(2, "float64", 25, 15, 8),
    *_batch(3, "float64", 15, 15, 8),
    *_batch(4, "float64", 12, 15, 8),
    *_batch(6, "float64"),
    *_batch(8, "float64", 7),
    *_batch(16, "float64", 5),
    *_batch(32, "float64", 4),
    *_batch(2, "float32", 30),
    *_batch(3, "float32", 30),
    *_batch(4, "float32", 25),
    *_batch(8, "float32"),
    *(case for n in (2, 4, 8, 16) for case in _batch(n, "complex128")),
    *_tall("float64"),
)


def _bars(run):
    records = run.records["cases"]
    inverses = [record for record in records if record["group"] == "inverse"]
    decompositions = [record for record in records if record["group"] != "inverse"]
    return [
        *dense.targets(run),
        *dense.accuracy(decompositions),
        bars.largest("residual of inverses", INVERSE_BOUNDS[False], inverses, "residual"),
    ]


GROUP = Group(
    files={"cpu": "small_cpu"},
    parts=[
        Part(
            "cases",
            lambda run: CASES,
            dense.measure,
            "group:<8 what:<44 median:s residual:.3f orthogonality:.3f peers:<1",
            dense.shown,
        )
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device},
)
