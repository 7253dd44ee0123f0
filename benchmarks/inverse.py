"""Inverses by tsvd.linalg.inv, beside NumPy on the CPU and PyTorch on the GPU.

The matrices are Gaussian. On the CPU the contenders take turns. On the GPU arrays are PyTorch's and
stay on the device, and times go from the call to the end of its work, after one warm call.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks import bars, dense
from benchmarks.dense import on_device, release, timed_on_device
from benchmarks.timing import interleaved
from testing import results
from testing.measures import INVERSE_BOUNDS, inverse_residual
from tsvd import linalg


@dataclass(frozen=True)
class Case:
    """A call: matrices in the batch (0: one, not a batch), their order, and its target.

    target: seconds on CUDA, None for none; on the CPU NumPy's time over ours.
    """

    order: int
    target: float | None
    batch: int = 0
    dtype: str = "float64"
    refine: bool = False

    @property
    def shape(self):
        return (*([self.batch] if self.batch else []), self.order, self.order)

    @property
    def what(self):
        batch = f"{self.batch:,} matrices, " if self.batch else ""
        refine = ", refined" if self.refine else ""
        return f"{batch}n = {self.order:,}{refine}, {self.dtype}"


CPU = (
    *(Case(n, 0.8) for n in (500, 1000, 2000)),
    Case(32, 1.0, batch=1000),
    Case(1000, None, refine=True),
)
SQUARE = ((1024, 1.6), (2048, 3.5), (4096, 9), (8192, 32), (16384, 200))
BATCHES = (
    *((100_000, 4, 0.06), (100_000, 8, 0.15), (100_000, 16, 0.6), (100_000, 32, 2.5)),
    *((10_000, 64, 4), (1000, 128, 2.5)),
)
# float32 is to be faster than these times of float64.
CUDA = tuple(
    Case(n, ms / 1e3, batch, dtype)
    for dtype in ("float64", "float32")
    for batch, n, ms in (*((0, *case) for case in SQUARE), *BATCHES)
) + tuple(Case(n, None, refine=True) for n in (1024, 4096))

CHECKED = 20  # matrices of a batch whose residuals are measured
LARGEST_CHECKED = 1000  # on the CPU, in long double


def run(path, threads, device, repeats):
    """Writes `path`. The exit status is 0 if all targets are met."""
    load = results.load()
    cases = CPU if device == "cpu" else CUDA
    records = [_on_cpu(case, repeats) if device == "cpu" else _on_cuda(case) for case in cases]
    return bars.conclude(path, threads, load, _bars(records, device), device=device, cases=records)


def _gaussian(case):
    rng = np.random.default_rng(case.order)
    return rng.standard_normal(case.shape).astype(case.dtype)


def _on_cpu(case, repeats):
    A = _gaussian(case)
    contenders = {
        "tsvd": lambda: linalg.inv(A, refine=case.refine),
        "numpy": lambda: np.linalg.inv(A),
    }
    seconds = interleaved(contenders, repeats)
    record = _record(case, seconds["tsvd"], {"numpy.linalg.inv": seconds["numpy"]})
    if case.order <= LARGEST_CHECKED:
        matrices = A.reshape(-1, case.order, case.order)[:CHECKED]
        record["residual"] = max(
            inverse_residual(a, linalg.inv(a, refine=case.refine)) for a in matrices
        )
    return _show(record)


def _on_cuda(case):
    import torch

    A = on_device(_gaussian(case))
    ours, X = timed_on_device(lambda: linalg.inv(A, refine=case.refine))
    residual = _residual_there(A, X)
    X = None
    release()
    theirs, X = timed_on_device(lambda: torch.linalg.inv(A))
    record = _record(case, ours, {"torch.linalg.inv": theirs}) | {"residual": residual}
    A = X = None
    release()
    return _show(record)


def _residual_there(A, X):
    import torch

    n, eps = A.shape[-1], torch.finfo(A.dtype).eps
    A, X = (x.reshape(-1, n, n)[:CHECKED].double() for x in (A, X))
    worst = 0.0
    for a, x in zip(A, X, strict=True):
        sides = []
        for product in (a @ x, x @ a):
            product.diagonal().sub_(1)
            sides.append(product.norm().item())
        worst = max(worst, min(sides) / (n * eps * a.norm().item() * x.norm().item()))
    return worst


def _record(case, seconds, peers):
    record = dense.record_of(case, seconds)
    return record | {
        "peers": {name: dense.peer_of(record, theirs) for name, theirs in peers.items()}
    }


def _show(record):
    ((name, peer),) = record["peers"].items()
    print(
        f"{record['what']:<48}{record['median'] * 1e3:>11.3f} ms"
        f"{record.get('residual', np.nan):>9.3f}   {name} {peer['ratio']:.2f}×",
        flush=True,
    )
    return record


def _bars(records, device):
    asked = []
    for record in records:
        if record["target"] is None:
            continue
        if device == "cpu":
            ratio = record["peers"]["numpy.linalg.inv"]["ratio"]
            asked.append(bars.at_least(record["what"], record["target"], ratio))
        else:
            asked.append(bars.at_most(record["what"], record["target"], record["median"]))
    for refine, bound in INVERSE_BOUNDS.items():
        found = [r["residual"] for r in records if r["refine"] == refine and "residual" in r]
        name = "residual, refined" if refine else "residual"
        asked.append(bars.at_most(name, bound, bars.worst(found), ""))
    return asked
