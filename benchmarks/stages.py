"""Large dense matrices on the GPU, which are reduced through a band: times beside cuSOLVER, and the
seconds of each stage beside what the card could do.

The matrices are Gaussian, made by PyTorch, and stay on the device. The largest ones are timed once,
and without a peer, which would take minutes.
"""

from dataclasses import dataclass
from statistics import median

from benchmarks import dense
from benchmarks.dense import timed_on_device
from benchmarks.group import Group, Part
from tsvd import linalg

LARGE = 16_000  # from this order on a call is timed once, and there is no peer
PEER_LARGE = 8000  # from this order on a peer is timed once
STAGED = (4096, 8192, 16_384)
PRODUCT = 8192  # the order of the product that measures the rate


@dataclass(frozen=True)
class Case(dense.Case):
    def tensor(self):
        import torch

        torch.manual_seed(self.rows)
        return torch.randn(self.rows, self.columns, dtype=getattr(torch, self.dtype), device="cuda")

    def timings(self, of_peer):
        if self.rows >= (PEER_LARGE if of_peer else LARGE):
            return 1
        return 3 if of_peer else 5

    def peers(self, A):
        import torch

        from benchmarks import cusolver

        if self.rows >= LARGE or self.count or self.dtype != "float64":
            return
        if self.vectors:
            yield "gesvdp", lambda: dense.polar(cusolver.gesvdp(A.clone()))
        else:
            yield "gesvd", lambda: (torch.linalg.svdvals(A, driver="gesvd"),)


CASES = (
    *(
        Case("all vectors", n, n, ms / 1e3)
        for n, ms in ((4096, 60), (8192, 240), (10_000, 380), (16_384, 1400), (32_768, 10_500))
    ),
    *(
        Case("values only", n, n, ms / 1e3, vectors=False)
        for n, ms in ((4096, 40), (8192, 110), (10_000, 160), (16_384, 450), (32_768, 2800))
    ),
    Case("range", 10_000, 10_000, 0.175, count=100),
    *(Case("float32", n, n, ms / 1e3, dtype="float32") for n, ms in ((8192, 210), (16_384, 1350))),
    *(
        Case("complex128", n, n, ms / 1e3, dtype="complex128")
        for n, ms in ((8192, 700), (16_384, 5000))
    ),
)


# ---- the stages ----


def _product_rate():
    """Floating-point operations in a second of a product in float64."""
    import torch

    A, B = (torch.randn(PRODUCT, PRODUCT, dtype=torch.float64, device="cuda") for _ in range(2))
    seconds, _ = timed_on_device(lambda: A @ B)
    return 2 * PRODUCT**3 / min(seconds)


def measure_stages(run, n):
    """The stages of all vectors in float64. Floors: of those that are products the operations at
    the rate of a product, with as many vectors by U = A V S^-1 as a Gaussian matrix has, 92 in 100.
    """
    A = Case("", n, n, None).tensor()
    records = []
    for _ in range(3):
        [seconds], (_, info) = timed_on_device(
            lambda: linalg.svd(A, full_matrices=False, full_output=True), 1
        )
        found = dict(info.seconds)
        found["vectors of B"] = found["vectors"] + found["values"]
        found["the way back"] = seconds - found["reduce"] - found["vectors of B"]
        records.append(found)
    rate = _product_rate()
    A = None
    dense.release()
    floors = {
        "band": 8 / 3 * n**3 / rate,
        "chase": None,
        "vectors of B": None,
        "the way back": (4 * 1.08 + 2 * 0.92) * n**3 / rate,
    }
    return [
        {
            "n": n,
            "stage": stage,
            "median": median(found[stage] for found in records),
            "floor": floor,
            "rate": rate,
        }
        for stage, floor in floors.items()
    ]


def _bars(run):
    return [*dense.targets(run), *dense.accuracy(run.records["cases"])]


GROUP = Group(
    files={"cuda": "stages"},
    parts=[
        Part(
            "cases",
            lambda run: CASES,
            dense.measure,
            "what:<44 median:s residual:.3f orthogonality:.3f peers:<1",
            dense.shown,
        ),
        Part(
            "stages",
            lambda run: STAGED,
            measure_stages,
            "n stage:<14 median:s floor:s median/floor:.2f",
            head="the stages of all vectors, float64",
        ),
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device},
    prepare=dense.warm,
    seconds=150,
)
