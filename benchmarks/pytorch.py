"""torch.linalg.svd with tsvd.torch.enable() and without, alone and in steps of training.

Tensors are on the device that is measured, and stay there. tsvd.linalg.svd of the same tensor shows
what the way through PyTorch costs. PyTorch's own kernel comes last: its threads may stay busy.
"""

import functools
import timeit
from dataclasses import dataclass
from statistics import median

from benchmarks import bars, dense
from benchmarks.group import Group, Part
from benchmarks.timing import alternated, interleaved

WITHIN = 1 / 0.97  # our time through PyTorch over that of tsvd.linalg

LONG = 1.0  # seconds from which on PyTorch is timed once, and that the timings take on a GPU


@dataclass(frozen=True)
class Case:
    """A decomposition of a Gaussian matrix, or of a batch."""

    shape: tuple
    dtype: str = "float64"
    vectors: bool = True

    @property
    def what(self):
        *batch, rows, columns = self.shape
        count = batch[0] if batch else 0
        return dense.Case("", rows, columns, None, count, self.dtype, self.vectors).what

    def make(self, device):
        import torch

        return torch.from_numpy(dense.gaussian(self.shape[-1], self.shape, self.dtype)).to(device)

    def calls(self, A):
        """PyTorch's function, and tsvd's own."""
        import torch

        from tsvd import linalg

        if self.vectors:
            return (
                lambda: torch.linalg.svd(A, full_matrices=False),
                lambda: linalg.svd(A, full_matrices=False),
            )
        return lambda: torch.linalg.svdvals(A), lambda: linalg.svdvals(A)


CPU = (
    *(Case((n, n)) for n in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)),
    *(Case((n, n), vectors=False) for n in (8, 32, 256, 1000)),
    Case((256, 256), "float32"),
    Case((256, 256), "complex128"),
    Case((4000, 200)),
    Case((200, 4000)),
    Case((10_000, 8, 8)),
    Case((1000, 32, 32)),
)
CUDA = (
    *(Case((n, n)) for n in (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)),
    *(Case((n, n), vectors=False) for n in (32, 256, 1024, 4096)),
    *(Case((n, n), "float32") for n in (1024, 4096)),
    *(Case((n, n), "complex128") for n in (256, 1024)),
    Case((100_000, 100)),
    Case((100, 100_000)),
    Case((8192, 2048)),
    Case((2048, 8192)),
    Case((100_000, 8, 8)),
    Case((10_000, 32, 32)),
    Case((200, 128, 128)),
)


def _on(device, call):
    """The call to the end of its work."""
    if device == "cpu":
        return call
    import torch

    return lambda: (call(), torch.cuda.synchronize())


def _record(run, what, theirs, **ours):
    """Times of PyTorch's call with tsvd in its place, and of other calls in turns; then without."""
    import tsvd.torch

    def timings(contenders):
        if run.device == "cpu":
            return interleaved(contenders, run.repeats)
        return alternated(contenders, LONG)

    with tsvd.torch.enabled():
        times = timings({"enabled": theirs, **ours})
    first = timeit.timeit(theirs, number=1)
    times["torch"] = [first] if first > LONG else timings({"": theirs})[""]
    record = {"what": what} | {name: median(seconds) for name, seconds in times.items()}
    return record | {f"{name}_seconds": seconds for name, seconds in times.items()}


def _measure(run, case):
    theirs, ours = (_on(run.device, call) for call in case.calls(case.make(run.device)))
    return _record(run, case.what, theirs, tsvd=ours)


# ---- steps of training ----


def _nuclear_norm(x, W):
    import torch

    return ((x @ W).tanh() ** 2).mean() + 1e-3 * torch.linalg.matrix_norm(W, "nuc")


def _spectral_norm(x, W):
    import torch

    return ((x @ (W / torch.linalg.matrix_norm(W, 2))).tanh() ** 2).mean()


def _plain(x, W):
    return ((x @ W).tanh() ** 2).mean()


def _gradient(loss, x, W):
    import torch

    return W - 0.1 * torch.autograd.grad(loss(x, W), W)[0]


def _polar_step(loss, x, W):
    """As Muon has it: the step is the orthogonal factor of the gradient."""
    import torch

    U, _, Vh = torch.linalg.svd(torch.autograd.grad(loss(x, W), W)[0], full_matrices=False)
    return W - 0.1 * (U @ Vh)


STEPS = {
    "nuclear norm": functools.partial(_gradient, _nuclear_norm),
    "spectral norm": functools.partial(_gradient, _spectral_norm),
    "polar factor": functools.partial(_polar_step, _plain),
}
SIZES = {"cpu": (64, 256), "cuda": (256, 1024)}


@dataclass(frozen=True)
class Step:
    """A step of a layer of n x n weights in float32, from inputs to new weights."""

    name: str
    n: int
    compiled: bool

    @property
    def what(self):
        return f"{self.name}, n = {self.n:,}, {'compiled' if self.compiled else 'eager'}"


def _steps(run):
    for name in STEPS:
        for n in SIZES[run.device]:
            for compiled in (False, True):
                yield Step(name, n, compiled)


def _measure_step(run, step):
    import torch

    generator = torch.Generator().manual_seed(step.n)
    x, W = (
        torch.randn(shape, generator=generator).to(run.device)
        for shape in ((2 * step.n, step.n), (step.n, step.n))
    )
    W.requires_grad_()
    function = STEPS[step.name]
    if step.compiled:
        torch.compiler.reset()
        function = torch.compile(function)
    return _record(run, step.what, _on(run.device, lambda: function(x, W)))


def _bars(run):
    if run.device == "cpu":  # PyTorch calls LAPACK from C++; to enter Python takes some time
        return []
    return [
        bars.at_most(f"{case['what']}: enabled / tsvd", WITHIN, case["enabled"] / case["tsvd"], "×")
        for case in run.records["cases"]
    ]


def _version():
    import torch

    return torch.__version__


def _warm(run):
    import torch

    dense.warm(run)
    if run.device == "cpu":
        torch.set_num_threads(run.threads)


GROUP = Group(
    files={"cpu": "pytorch_cpu", "cuda": "pytorch"},
    parts=[
        Part(
            "cases",
            lambda run: CPU if run.device == "cpu" else CUDA,
            _measure,
            "what:<44 torch:s enabled:s tsvd:s torch/enabled:.2f enabled/tsvd:.3f",
            head="medians",
        ),
        Part(
            "steps",
            _steps,
            _measure_step,
            "what:<44 torch:s enabled:s torch/enabled:.2f",
            head="steps of training",
        ),
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device, "library": f"PyTorch {_version()}"},
    prepare=_warm,
)
