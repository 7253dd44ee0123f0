"""The SVD of dense matrices by tsvd.linalg, beside NumPy on the CPU and cuSOLVER on the GPU.

The matrices are Gaussian. On the CPU the contenders take turns. On the GPU arrays are PyTorch's and
stay on the device, and times go from the call to the end of its work, after one warm call.
"""

import gc
import time
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from benchmarks import bars
from benchmarks.group import Group, Part
from benchmarks.timing import interleaved
from testing import measures
from tsvd import linalg

BOUNDS = {key: measures.BOUNDS[key](0) for key in ("residual", "orthogonality")}


class OnDevice:
    """What measure() asks a case for on the GPU."""

    def tensor(self):
        return on_device(self.make())

    def timings(self, of_peer):
        """Calls that are timed, unless they are very short or long."""
        return REPEATS


@dataclass(frozen=True)
class Case(OnDevice):
    """A call: matrices in the batch (0: one, not a batch), rows and columns, and its target.

    target: seconds on CUDA; on the CPU NumPy's time over ours. count: how many leading values are
    wanted; None: all.
    """

    group: str
    rows: int
    columns: int
    target: float
    batch: int = 0
    dtype: str = "float64"
    vectors: bool = True
    count: int | None = None

    THRICE = 2000  # from this order on calls are timed three times on the CPU

    @property
    def shape(self):
        return (*([self.batch] if self.batch else []), self.rows, self.columns)

    @property
    def what(self):
        size = f"n = {self.rows:,}" if self.rows == self.columns else None
        size = size or f"{self.rows:,} × {self.columns:,}"
        batch = f"{self.batch:,} matrices, " if self.batch else ""
        vectors = "" if self.vectors else ", values only"
        count = f", {self.count} largest" if self.count else ""
        return f"{batch}{size}{vectors}{count}, {self.dtype}"

    def ours(self, A, device=None):
        """The call: (U, S, Vh), or (S,). device: "cpu" for an array of the host."""
        options = {"device": device}
        if self.count:
            options |= {"select": "i", "select_range": (0, self.count - 1)}
        if self.vectors:
            return tuple(linalg.svd(A, full_matrices=False, **options))
        return (linalg.svdvals(A, **options),)

    def make(self):
        return gaussian(self.columns, self.shape, self.dtype)

    def peer(self, A):
        """On the CPU: its name, and a call for the same task."""
        theirs = {"full_matrices": False} if self.vectors else {"compute_uv": False}
        return "numpy.linalg.svd", lambda: np.linalg.svd(A, **theirs)

    def peers(self, A):
        """The same on the GPU, by cuSOLVER. Each is given what it may overwrite."""
        import torch

        from benchmarks import cusolver

        largest = max(self.rows, self.columns)
        square = self.rows == self.columns and not self.batch
        if self.vectors:
            for driver in ("gesvdj", "gesvd", "gesvda"):
                of_square = largest <= LARGEST_PEER.get(driver, 0)
                if of_square if square else driver != "gesvd" and not self.count:
                    yield (
                        driver,
                        lambda d=driver: torch.linalg.svd(A, full_matrices=False, driver=d),
                    )
            if square:
                yield "gesvdp", lambda: polar(cusolver.gesvdp(A.clone()))
        else:
            yield "gesvd", lambda: (torch.linalg.svdvals(A, driver="gesvd"),)

    def errors(self, A, found):
        """The worst of some matrices of a batch."""
        if not self.vectors:
            return {}
        A, *found = (x.reshape(-1, *x.shape[bool(self.batch) :]) for x in (A, *found))
        ours = {"residual": [], "orthogonality": []}
        for i in np.linspace(0, len(A) - 1, min(len(A), CHECKED)).astype(int):
            U, S, Vh = (x[i] for x in found)
            ours["residual"].append(measures.dense_residual(A[i], U, S, Vh))
            ours["orthogonality"].append(measures.orthogonality(U, Vh))
        return {key: float(np.max(values)) for key, values in ours.items()}

    def errors_there(self, A, found):
        """The same of arrays of PyTorch."""
        import torch

        if not self.vectors:
            return {}
        U, S, Vh = found
        unit = (max(self.rows, self.columns) + 8) * torch.finfo(A.dtype).eps
        if self.batch:
            A, U, S, Vh = (x[:CHECKED] for x in (A, U, S, Vh))
        A, U, S, Vh = map(doubled, (A, U, S, Vh))
        if self.count:
            off = torch.linalg.matrix_norm(A @ Vh.mH - U * S[..., None, :])
        else:
            off = torch.linalg.matrix_norm(
                torch.baddbmm(A, U * S[..., None, :], Vh, beta=-1)
                if self.batch
                else torch.addmm(A, U * S, Vh, beta=-1)
            )
        errors = {"residual": (off / torch.linalg.matrix_norm(A)).max().item() / unit}
        worst = []
        for gram in (U.mH @ U, Vh @ Vh.mH):
            gram.diagonal(dim1=-2, dim2=-1).sub_(1)
            worst.append(gram.abs().max().item())
        return errors | {"orthogonality": float(np.max(worst)) / unit}

    def peer_errors(self, A, found):
        """What is written of a peer there."""
        return self.errors_there(A, found)


def polar(result):
    """gesvdp decomposes the transpose, column by column: its V, in rows and conjugated, are the
    left vectors.
    """
    U, S, V = result
    return V.mH, S, U


def gaussian(seed, shape, dtype):
    """Entries of variance 1; the parts of a complex one have it each."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        A = A + 1j * rng.standard_normal(shape)
    return A.astype(dtype)


def doubled(x):
    """A tensor in the precision of float64."""
    import torch

    return x.to(torch.complex128 if x.is_complex() else torch.float64)


CPU = (
    Case("all vectors", 500, 500, 1.0),
    Case("all vectors", 1000, 1000, 1.15),
    Case("all vectors", 2000, 2000, 1.8),
    Case("all vectors", 4000, 4000, 2.0),
    Case("values only", 500, 500, 1.0, vectors=False),
    Case("values only", 1000, 1000, 1.0, vectors=False),
    Case("values only", 2000, 2000, 2.5, vectors=False),
    Case("values only", 4000, 4000, 4.0, vectors=False),
    Case("range", 2000, 2000, 3.0, count=10),
    Case("tall", 4000, 500, 1.0),
    Case("batch", 32, 32, 1.0, batch=1000),
)
CUDA = (
    *(
        Case("all vectors", n, n, ms / 1e3)
        for n, ms in (
            *((256, 2.5), (512, 5), (1024, 11), (2048, 28), (4096, 110)),
            *((8192, 580), (10_000, 960)),
        )
    ),
    *(
        Case("values only", n, n, ms / 1e3, vectors=False)
        for n, ms in ((1024, 8), (2048, 22), (4096, 85), (10_000, 860))
    ),
    *(
        Case("float32", n, n, ms / 1e3, dtype="float32")
        for n, ms in ((1024, 9), (4096, 75), (8192, 380))
    ),
    *(
        Case("tall", m, n, ms / 1e3)
        for m, n, ms in ((100_000, 100, 4), (20_000, 1000, 25), (8192, 2048, 45), (10**6, 32, 5))
    ),
    *(
        Case("batch", n, n, ms / 1e3, batch=count)
        for count, n, ms in (
            *((100_000, 8, 2), (10_000, 32, 4), (1000, 64, 5)),
            *((200, 128, 6), (100, 256, 12), (20, 512, 16)),
        )
    ),
    Case("range", 10_000, 10_000, 0.8, count=100),
)

REPEATS = 7  # timings
FEWER, LONG = 3, 0.5  # of calls over LONG seconds
MORE, SHORT = 41, 0.001  # of calls below SHORT seconds, the first of which find a cold processor
LARGEST_PEER = {"gesvdj": 4096, "gesvd": 4096}  # they take up to half a minute beyond
CHECKED = 200  # matrices of a batch whose errors are measured


def measure(run, case):
    """The record of a case, and of its peers. On the GPU none begins when the time is up."""
    return _on_cpu(run, case) if run.device == "cpu" else _on_cuda(run, case)


def _on_cpu(run, case):
    A = case.make()
    name, peer = case.peer(A)
    repeats = min(run.repeats, 3) if case.shape[-2] >= case.THRICE else run.repeats
    seconds = interleaved({"tsvd": lambda: case.ours(A, "cpu"), name: peer}, repeats)
    record = record_of(case, seconds["tsvd"])
    record["peers"][name] = beside(record, seconds[name])
    return record | case.errors(A, case.ours(A, "cpu"))


def _on_cuda(run, case):
    A = case.tensor()
    seconds, found = timed_on_device(lambda: case.ours(A), case.timings(False))
    record = record_of(case, seconds) | case.errors_there(A, found)
    found = None
    for name, call in case.peers(A):
        release()
        if run.left() < 0:
            record["peers"][name] = {"note": "the time is up"}
            continue
        try:
            seconds, theirs = timed_on_device(call, case.timings(True))
            record["peers"][name] = beside(record, seconds) | case.peer_errors(A, theirs)
        except Exception as error:  # another library may raise anything
            record["peers"][name] = {"note": f"failed: {error}".splitlines()[0][:200]}
        theirs = None
    A = call = None
    release()
    return record


def warm(run):
    """Loads the kernels and libraries of the GPU."""
    if run.device == "cpu":
        return
    import torch

    A = torch.randn(64, 64, dtype=torch.float64, device="cuda")
    for driver in ("gesvdj", "gesvd"):
        torch.linalg.svd(A, driver=driver)
    linalg.svd(A)


def on_device(A):
    import torch

    return torch.from_numpy(A).to("cuda")


def timed_on_device(call, count=REPEATS):
    """Seconds of each call but the first, of `count` or another number, and the last results."""
    import torch

    seconds = []
    while len(seconds) <= count:
        found = None
        torch.cuda.synchronize()
        start = time.perf_counter()
        found = call()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > LONG:
            count = min(count, FEWER)
        elif min(seconds) < SHORT:
            count = MORE
    return seconds[1:], found


def release():
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def record_of(case, seconds):
    """What is written of a case: its fields, and seconds of each call."""
    return asdict(case) | {
        "what": case.what,
        "median": median(seconds),
        "seconds": seconds,
        "peers": {},
    }


def beside(record, seconds):
    ratio = median(seconds) / record["median"]
    return {"median": median(seconds), "seconds": seconds, "ratio": ratio}


def shown(record):
    """The peers' times over ours, or why there are none."""
    said = "   ".join(
        f"{name} {peer['note'] if 'note' in peer else format(peer['ratio'], '.2f') + '×'}"
        for name, peer in record["peers"].items()
    )
    return record | {"peers": said}


def targets(run):
    """Of the times: a peer's over ours on the CPU, ours on the GPU."""
    for record in run.records["cases"]:
        what, target = record["what"], record["target"]
        if "group" in record:
            what = f"{record['group']}: {what}"
        if run.device == "cpu":
            [peer] = record["peers"].values()
            bar = bars.at_least(what, target, peer["ratio"])
        else:
            bar = bars.at_most(what, target, record["median"])
        if target is not None:
            yield bar


def accuracy(records):
    for key, bound in BOUNDS.items():
        yield bars.largest(key, bound, records, key)


def group(name, cpu, cuda, bars, *parts, **more):
    """The benchmark of such cases on each device, and of more parts."""
    cases = Part(
        "cases",
        lambda run: cpu if run.device == "cpu" else cuda,
        measure,
        "what:<44 median:s residual:.3f orthogonality:.3f peers:<1",
        shown,
    )
    return Group(
        files={"cpu": f"{name}_cpu", "cuda": name},
        parts=[cases, *parts],
        bars=bars,
        contents=lambda run: {"device": run.device},
        prepare=warm,
        **more,
    )


def _bars(run):
    return [*targets(run), *accuracy(run.records["cases"])]


GROUP = group("dense", CPU, CUDA, _bars, seconds=240)
