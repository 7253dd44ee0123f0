"""Inverses by tsvd.linalg.inv, beside NumPy on the CPU and PyTorch on the GPU.

The matrices are Gaussian. On the CPU the contenders take turns. On the GPU arrays are PyTorch's and
stay on the device, and times go from the call to the end of its work, after one warm call.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks import bars, dense
from testing.measures import INVERSE_BOUNDS, inverse_residual
from tsvd import linalg


@dataclass(frozen=True)
class Case(dense.OnDevice):
    """A call: matrices in the batch (0: one, not a batch), their order, and its target.

    target: seconds on CUDA, None for none; on the CPU NumPy's time over ours.
    """

    order: int
    target: float | None
    batch: int = 0
    dtype: str = "float64"
    refine: bool = False

    THRICE = np.inf

    @property
    def shape(self):
        return (*([self.batch] if self.batch else []), self.order, self.order)

    @property
    def what(self):
        batch = f"{self.batch:,} matrices, " if self.batch else ""
        refine = ", refined" if self.refine else ""
        return f"{batch}n = {self.order:,}{refine}, {self.dtype}"

    def make(self):
        return dense.gaussian(self.order, self.shape, self.dtype)

    def ours(self, A, device=None):
        return linalg.inv(A, refine=self.refine, device=device)

    def peer(self, A):
        return "numpy.linalg.inv", lambda: np.linalg.inv(A)

    def peers(self, A):
        import torch

        yield "torch.linalg.inv", lambda: torch.linalg.inv(A)

    def errors(self, A, X):
        if self.order > LARGEST_CHECKED:
            return {}
        A, X = (x.reshape(-1, self.order, self.order)[:CHECKED] for x in (A, X))
        return {"residual": max(map(inverse_residual, A, X))}

    def errors_there(self, A, X):
        """The same of arrays of PyTorch."""
        import torch

        n, eps = self.order, torch.finfo(A.dtype).eps
        A, X = (dense.doubled(x.reshape(-1, n, n)[:CHECKED]) for x in (A, X))
        worst = 0.0
        for a, x in zip(A, X, strict=True):
            sides = []
            for product in (a @ x, x @ a):
                product.diagonal().sub_(1)
                sides.append(product.norm().item())
            worst = max(worst, min(sides) / (n * eps * a.norm().item() * x.norm().item()))
        return {"residual": worst}

    def peer_errors(self, A, X):
        return {}


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


def _bars(run):
    asked = [*dense.targets(run)]
    for refine, bound in INVERSE_BOUNDS.items():
        records = [record for record in run.records["cases"] if record["refine"] == refine]
        name = "residual, refined" if refine else "residual"
        asked.append(bars.largest(name, bound, records, "residual"))
    return asked


GROUP = dense.group("inverse", CPU, CUDA, _bars)
