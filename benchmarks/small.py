"""Small dense matrices: one call, and batches, beside NumPy on the CPU and PyTorch on the GPU. The
matrices are Gaussian, and on the CPU the contenders take turns. Then come other libraries there.
"""

from dataclasses import dataclass

from benchmarks import bars, dense, inverse, peers
from benchmarks.group import Part
from benchmarks.timing import interleaved
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


CPU = (
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


@dataclass(frozen=True)
class BesidePyTorch(dense.Case):
    """A decomposition on the GPU, beside PyTorch's own choice of an algorithm."""

    def timings(self, of_peer):
        return 3 if of_peer and self.batch else dense.REPEATS

    def peers(self, A):
        import torch

        if self.vectors:
            yield "torch.linalg.svd", lambda: torch.linalg.svd(A, full_matrices=False)
        else:
            yield "torch.linalg.svdvals", lambda: (torch.linalg.svdvals(A),)


def _million(n, ms=None, dtype="float64", vectors=True):
    return BesidePyTorch("batch", n, n, ms and ms / 1e3, 1_000_000, dtype, vectors)


CUDA = (
    *(
        BesidePyTorch("one", n, n, None, vectors=vectors)
        for n in (2, 3, 4, 6, 8, 12, 16, 24, 32)
        for vectors in (True, False)
    ),
    *(_million(n, ms) for n, ms in ((2, 0.3), (3, 0.5), (4, 0.8), (6, 2.5))),
    *(_million(n, vectors=False) for n in (2, 3, 4, 6)),
    *(_million(n, dtype="float32") for n in (2, 3, 4, 6)),
    *(_million(n, dtype="complex128") for n in (2, 3, 4)),
    *(
        BesidePyTorch("batch", n, n, None, count)
        for n, count in ((8, 10**5), (16, 10**5), (32, 10**4))
    ),
    *(BesidePyTorch("tall", m, n, None, 10**5) for m, n in ((8, 3), (3, 8))),
    BesidePyTorch("tall", 100, 3, None, 1000),
)
LEAST = 1 / 0.9  # PyTorch's time over ours, of one matrix


def _beside_torch(run):
    for record in run.records["cases"]:
        if record["group"] == "one":
            [peer] = record["peers"].values()
            yield bars.at_least(f"one: {record['what']}", LEAST, peer.get("ratio"))


def _bars(run):
    records = run.records["cases"]
    inverses = [record for record in records if record["group"] == "inverse"]
    decompositions = [record for record in records if record["group"] != "inverse"]
    asked = [*dense.targets(run), *dense.accuracy(decompositions)]
    if run.device == "cuda":
        return [*asked, *_beside_torch(run)]
    limit = INVERSE_BOUNDS[False]
    return [*asked, bars.largest("residual of inverses", limit, inverses, "residual")]


def _measure_others(run, case):
    """The record of a case by other libraries. They come last: their threads may stay busy."""
    ours = next(
        record["median"]
        for record in run.records["cases"]
        if (record["group"], record["what"]) == (case.group, case.what)
    )
    record = {"group": case.group, "what": case.what, "median": ours, "peers": {}}
    for name, call in peers.calls(case.make(), case.vectors):
        seconds = interleaved({name: call}, dense.FEWER)
        record["peers"][name] = dense.beside(record, seconds[name])
    return record


OTHERS = Part(
    "others",
    lambda run: [case for case in CPU if isinstance(case, dense.Case)],
    _measure_others,
    "what:<44 median:s peers:<1",
    dense.shown,
    devices=("cpu",),
)
GROUP = dense.group("small", CPU, CUDA, _bars, OTHERS, seconds={"cpu": float("inf"), "cuda": 120})
