"""Pseudo-inverses, least squares, ranks and condition numbers, beside the values and the peers.

The peer is NumPy on the CPU, and PyTorch on the GPU, whose arrays stay on the device. The values
are those of the same matrix by tsvd.linalg.svdvals, which take turns with the solutions. The peer
comes after them: the call after it would wait for the system to clear the pages that it gave back.
"""

from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks import bars
from benchmarks.group import Group, Part
from benchmarks.timing import interleaved
from tsvd import linalg


@dataclass(frozen=True)
class Case:
    """A call of the function of tsvd.linalg named `task`, and its targets.

    shape: of a Gaussian matrix, or of a batch of them; with a rank, of the product of two, whose
    pseudo-inverse is the product of those of its factors. over_values: our time over that of the
    values. ahead: the peer's time over ours.
    """

    task: str
    shape: tuple
    rank: int | None = None
    dtype: str = "float64"
    over_values: float | None = None
    ahead: float | None = None

    @property
    def what(self):
        *batch, rows, columns = self.shape
        size = f"n = {rows:,}" if rows == columns else f"{rows:,} × {columns:,}"
        many = f"{batch[0]:,} matrices, " if batch else ""
        rank = f" of rank {self.rank}" if self.rank else ""
        return f"{self.task}, {many}{size}{rank}, {self.dtype}"

    def make(self):
        """A, b, and the solution of least squares, which of deficient rank is the shortest."""
        *batch, rows, columns = self.shape
        rng = np.random.default_rng(columns)
        b = rng.standard_normal((*batch, rows, 1))
        if not self.rank:
            return *(x.astype(self.dtype) for x in (rng.standard_normal(self.shape), b)), None
        left = rng.standard_normal((*batch, rows, self.rank))
        right = rng.standard_normal((*batch, self.rank, columns))
        x = np.linalg.pinv(right) @ (np.linalg.pinv(left) @ b)
        return *(x.astype(self.dtype) for x in (left @ right, b)), x

    def call(self, library, A, b):
        """A call of the same task, by tsvd.linalg, numpy.linalg or torch.linalg."""
        function = getattr(library, self.task)
        return (lambda: function(A, b)[0]) if self.task == "lstsq" else lambda: function(A)

    def has_peer(self, device):
        """NumPy's lstsq takes one matrix. Rank and condition number are theirs as our values."""
        alone = device == "cuda" or len(self.shape) == 2
        return self.task == "pinv" or (self.task == "lstsq" and alone)

    def errors(self, x, found):
        """Of deficient rank: the worst distance of a solution, in units of n ε |x|."""
        if x is None:
            return {}
        found = np.asarray(found, dtype=np.float64)
        off = np.linalg.norm(found - x, axis=-2) / np.linalg.norm(x, axis=-2)
        return {"error": float(off.max() / (self.shape[-1] * np.finfo(self.dtype).eps))}


DEFICIENT = tuple(
    Case("lstsq", (*batch, 1000, 500), 300, dtype)
    for batch in ((), (8,))
    for dtype in ("float64", "float32")
)
CASES = {
    "cpu": (
        Case("pinv", (300, 300), ahead=1),
        Case("pinv", (1000, 1000), ahead=1),
        Case("matrix_rank", (1000, 1000), over_values=1.05),
        Case("cond", (1000, 1000), over_values=1.05),
        Case("lstsq", (100_000, 100), over_values=1.3),
        *DEFICIENT,
    ),
    "cuda": (
        Case("pinv", (1024, 1024), ahead=5),
        Case("pinv", (4096, 4096), ahead=5),
        Case("matrix_rank", (4096, 4096), over_values=1.05),
        Case("cond", (4096, 4096), over_values=1.05),
        Case("lstsq", (100_000, 100), over_values=1.3),
        *DEFICIENT,
    ),
}


def _measure(run, case):
    A, b, x = case.make()
    if run.device == "cuda":
        import torch
        from torch import linalg as peer

        A, b = torch.from_numpy(A).cuda(), torch.from_numpy(b).cuda()
        finish, fetch = torch.cuda.synchronize, lambda found: found.cpu().numpy()
    else:
        from numpy import linalg as peer

        finish, fetch = (lambda: None), (lambda found: found)
    calls = {"tsvd": case.call(linalg, A, b), "values": lambda: linalg.svdvals(A)}
    if case.has_peer(run.device):
        calls["peer"] = case.call(peer, A, b)
    contenders = {name: _to_the_end(call, finish) for name, call in calls.items()}
    peers = {name: contenders.pop(name) for name in ("peer",) if name in contenders}
    times = interleaved(contenders, run.repeats) | interleaved(peers, run.repeats)
    record = {"what": case.what, "over_values": case.over_values, "ahead": case.ahead}
    record |= {f"{name}_seconds": seconds for name, seconds in times.items()}
    record |= {name: median(seconds) for name, seconds in times.items()}
    for name in ("tsvd", "peer"):
        if name in calls:
            errors = case.errors(x, fetch(calls[name]()))
            record |= {f"{name}_{key}": error for key, error in errors.items()}
    return record


def _to_the_end(call, finish):
    def timed():
        call()
        finish()

    return timed


def _bars(run):
    asked = []
    for case in run.records["cases"]:
        if case["over_values"]:
            ratio = case["tsvd"] / case["values"]
            asked.append(bars.at_most(f"{case['what']} / values", case["over_values"], ratio, "×"))
        if case["ahead"]:
            ratio = case["peer"] / case["tsvd"]
            asked.append(bars.at_least(f"{case['what']}: peer / tsvd", case["ahead"], ratio))
        if "tsvd_error" in case:
            asked.append(bars.at_most(f"{case['what']}: error", 1, case["tsvd_error"], ""))
    return asked


GROUP = Group(
    files={"cpu": "solutions_cpu", "cuda": "solutions"},
    parts=[
        Part(
            "cases",
            lambda run: CASES[run.device],
            _measure,
            "what:<58 tsvd:s tsvd/values:.2f peer:s peer/tsvd:.3g tsvd_error:.2g peer_error:.2g",
            head="medians",
        )
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device},
)
