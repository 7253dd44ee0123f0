"""One call on all GPUs of the host beside the same call on one of them.

Arrays on a device are PyTorch's. One GPU has the same call, "one", and one with `out`, "one_given",
which takes no memory for results.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks import bars, dense
from benchmarks.group import Group, Part
from benchmarks.timing import alternated

# The time of one device over that of two, and of four.
BIDIAGONAL = {2: 1.8, 4: 3.2}
ON_HOST = {2: 1.6, 4: 2.5}
BATCH = {2: 1.9, 4: 3.5}
DENSE = {16384: {2: 1.3, 4: 1.8}, 32768: {2: 1.6, 4: 2.6}}
SECONDS = 2  # of the calls of a case
GIVEN_MOST = 1 << 31  # numbers of one side, and a quarter of it where a call takes seconds


@dataclass(frozen=True)
class Case:
    """Matrices of order n; bidiagonal ones have squares of chi-squared variables."""

    n: int
    least: dict
    matrices: int = 0
    dense: bool = False
    on_host: bool = False
    vectors: bool = True

    @property
    def shape(self):
        return (*((self.matrices,) if self.matrices else ()), self.n, self.n)

    @property
    def what(self):
        what = f"n = {self.n:,}"
        if self.matrices:
            what = f"{self.matrices:,} matrices, {what}"
        return (
            f"{what}{', dense' * self.dense}, {'into host arrays' if self.on_host else 'on device'}"
            f"{', values' * (not self.vectors)}"
        )


CASES = (
    Case(16384, BIDIAGONAL),
    Case(32768, BIDIAGONAL),
    Case(65536, BIDIAGONAL),
    Case(16384, ON_HOST, on_host=True),
    Case(32768, ON_HOST, on_host=True),
    Case(65536, ON_HOST, on_host=True),
    Case(16, BATCH, 1_000_000),
    Case(32, BATCH, 100_000),
    Case(64, BATCH, 10_000),
    Case(32, BATCH, 100_000, dense=True),
    Case(8192, DENSE[16384], dense=True),
    Case(16384, DENSE[16384], dense=True),
    Case(32768, DENSE[32768], dense=True),
    Case(16384, DENSE[16384], dense=True, vectors=False),
    Case(32768, DENSE[32768], dense=True, vectors=False),
)
LARGER = (Case(73728, {}, dense=True, on_host=True),)  # than the memory of one GPU
SLAB = 1024  # rows of a large matrix that are made at once


def _devices():
    import tsvd

    return [x.device for x in tsvd.devices() if x.device != "cpu"]


def _input(case):
    rng = np.random.default_rng(case.n)
    if case.dense:
        return (dense.gaussian(case.n, case.shape, "float64"),)
    *batch, _, n = case.shape
    degrees = np.arange(2 * n, 0, -1)
    d = np.sqrt(rng.chisquare(degrees[::2], (*batch, n)))
    return d, np.sqrt(rng.chisquare(degrees[1:-1:2], (*batch, n - 1)))


def _measure(run, case):
    import torch

    import tsvd
    from tsvd import linalg

    torch.cuda.empty_cache()
    tsvd.trim()
    space = linalg if case.dense else tsvd
    svd = space.svd if case.vectors else space.svdvals
    arrays = _input(case)
    shapes = (case.shape, case.shape[:-1], case.shape)
    if case.on_host:
        out = tuple(map(np.zeros, shapes))
        calls = {"one": lambda: svd(*arrays, device=0, out=out)}
        calls["all"] = lambda: svd(*arrays, device="cuda:*", out=out)
    else:
        tensors = [torch.from_numpy(x).cuda() for x in arrays]
        out = tuple(torch.empty(x, dtype=tensors[0].dtype, device="cuda") for x in shapes)

        def one(**options):
            svd(*tensors, **options)
            torch.cuda.synchronize()

        calls = {"one": one, "one_given": lambda: one(out=out)}
        if not case.vectors or math.prod(case.shape) > GIVEN_MOST // (4 if case.dense else 1):
            del calls["one_given"], out
        calls["all"] = lambda: svd(*tensors, device="cuda:*")
    times = alternated(calls, SECONDS, least=2 if case.dense and case.n > 10_000 else 5)
    return record(case, times)


def _uniform(n):
    """A matrix with entries in [-1/2, 1/2)."""
    A = np.empty((n, n))

    def fill(first):
        rows = A[first : first + SLAB]
        np.random.Generator(np.random.SFC64(first)).random(out=rows)
        np.subtract(rows, 0.5, out=rows)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n, SLAB)))
    return A


def _measure_larger(run, case):
    """The time of one call, and the largest residual of some triplets over the largest value."""
    import torch

    import tsvd
    from tsvd import linalg

    torch.cuda.empty_cache()
    tsvd.trim()
    A = _uniform(case.n)
    record = {"what": case.what}
    try:
        linalg.svd(A, device=0)
    except MemoryError as error:
        record["one_error"] = str(error)
    begin = time.perf_counter()
    U, S, Vh = linalg.svd(A, device="cuda:*")
    record["all"] = time.perf_counter() - begin
    some = np.linspace(0, case.n - 1, 8).astype(int)
    residual = A @ Vh[some].T - U[:, some] * S[some]
    record["residual"] = float(np.linalg.norm(residual, axis=0).max() / S[0])
    return record


def _bars(run):
    least = {case.what: case.least for case in CASES}
    devices = len(_devices()) or 2  # where there are none the records are those of two
    return [
        bars.at_least(f"{x['what']}: one / all", least[x["what"]][devices], x["one"] / x["all"])
        for x in run.records["cases"]
        if devices in least[x["what"]]
    ]


# ---- also for other ways to take several devices ----


def record(case, times):
    """Medians, and all timings, of one device and of all."""
    medians = {name: median(seconds) for name, seconds in times.items()}
    return {"what": case.what} | medians | {f"{name}_seconds": x for name, x in times.items()}


def group(file, cases, measure, bars, devices, others=()):
    """devices(): those that share a call. others: parts after the cases."""
    columns = "what:<44 one:s all:s one/all:.2f"
    return Group(
        files={"cuda": file},
        parts=[Part("cases", lambda run: cases, measure, columns, head="medians"), *others],
        bars=bars,
        contents=lambda run: {"device": run.device, "devices": len(devices())},
    )


_LARGER = Part(
    "larger", lambda run: LARGER, _measure_larger, "what:<44 all:s residual:.1e", head="one call"
)
GROUP = group("several", CASES, _measure, _bars, _devices, [_LARGER])
