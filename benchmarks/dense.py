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
from benchmarks.timing import interleaved
from testing import measures, results
from tsvd import linalg

BOUNDS = {key: measures.BOUNDS[key](0) for key in ("residual", "orthogonality")}


@dataclass(frozen=True)
class Case:
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

    def ours(self, A):
        """The call: (U, S, Vh), or (S,)."""
        part = {"select": "i", "select_range": (0, self.count - 1)} if self.count else {}
        if self.vectors:
            return tuple(linalg.svd(A, full_matrices=False, **part))
        return (linalg.svdvals(A, **part),)


CPU = (
    Case("all vectors", 500, 500, 1.0),
    Case("all vectors", 1000, 1000, 1.15),
    Case("all vectors", 2000, 2000, 1.15),
    Case("values only", 500, 500, 1.0, vectors=False),
    Case("values only", 1000, 1000, 1.0, vectors=False),
    Case("values only", 2000, 2000, 1.0, vectors=False),
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


def run(path, threads, device, repeats, seconds):
    """Writes `path`. The exit status is 0 if all targets are met. seconds: no peer begins later."""
    load = results.load()
    if device == "cpu":
        cases = [_on_cpu(case, repeats) for case in CPU]
    else:
        until = time.monotonic() + seconds
        warm()
        cases = [on_cuda(case, gaussian(case), _peers, until) for case in CUDA]
    return bars.conclude(path, threads, load, _bars(cases, device), device=device, cases=cases)


def gaussian(case):
    """The matrices of a case."""
    rng = np.random.default_rng(case.columns)
    return rng.standard_normal(case.shape).astype(case.dtype)


# ---- the CPU ----


def _on_cpu(case, repeats):
    theirs = {"full_matrices": False} if case.vectors else {"compute_uv": False}
    repeats = min(repeats, 3) if case.rows >= 2000 else repeats
    return on_cpu(
        case, gaussian(case), "numpy.linalg.svd", lambda A: np.linalg.svd(A, **theirs), repeats
    )


def on_cpu(case, A, name, peer, repeats):
    """The record of a case and its matrices, with those of a peer, called so."""
    seconds = interleaved({"tsvd": lambda: case.ours(A), name: lambda: peer(A)}, repeats)
    record = record_of(case, seconds["tsvd"])
    record["peers"] = {name: peer_of(record, seconds[name])}
    return _show(record | _errors(case, A, case.ours(A)))


def _errors(case, A, found):
    """The worst of some matrices of a batch."""
    if not case.vectors:
        return {}
    A, *found = (x.reshape(-1, *x.shape[bool(case.batch) :]) for x in (A, *found))
    ours = {"residual": [], "orthogonality": []}
    for i in np.linspace(0, len(A) - 1, min(len(A), CHECKED)).astype(int):
        U, S, Vh = (x[i] for x in found)
        ours["residual"].append(measures.dense_residual(A[i], U, S, Vh))
        ours["orthogonality"].append(measures.orthogonality(U, Vh))
    return {key: float(np.max(values)) for key, values in ours.items()}


# ---- the GPU ----


def warm():
    """Loads the kernels and libraries."""
    import torch

    A = torch.randn(64, 64, dtype=torch.float64, device="cuda")
    for driver in ("gesvdj", "gesvd"):
        torch.linalg.svd(A, driver=driver)
    linalg.svd(A)


def on_device(A):
    import torch

    return torch.from_numpy(A).to("cuda")


def on_cuda(case, A, peers, until):
    """The same on the GPU. peers(case, A): names and calls; none begins after `until`."""
    A = on_device(A)
    seconds, found = timed_on_device(lambda: case.ours(A))
    record = record_of(case, seconds) | _errors_on_cuda(case, A, found)
    found = None
    for name, call in peers(case, A):
        release()
        if time.monotonic() > until:
            record["peers"][name] = {"note": "the time is up"}
            continue
        try:
            seconds, theirs = timed_on_device(call)
            record["peers"][name] = peer_of(record, seconds)
            record["peers"][name] |= _errors_on_cuda(case, A, theirs)
        except Exception as error:  # another library may raise anything
            record["peers"][name] = {"note": f"failed: {error}".splitlines()[0][:200]}
        theirs = None
    A = None
    release()
    return _show(record)


def timed_on_device(call):
    """Seconds of each call but the first, and the last results."""
    import torch

    seconds, count = [], REPEATS
    while len(seconds) <= count:
        found = None
        torch.cuda.synchronize()
        start = time.perf_counter()
        found = call()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > LONG:
            count = FEWER
        elif min(seconds) < SHORT:
            count = MORE
    return seconds[1:], found


def _peers(case, A):
    """Name -> call of cuSOLVER for the same task. Each is given what it may overwrite."""
    import torch

    from benchmarks import cusolver

    largest = max(case.rows, case.columns)
    square = case.rows == case.columns and not case.batch
    if case.vectors:
        for driver in ("gesvdj", "gesvd", "gesvda"):
            of_square = largest <= LARGEST_PEER.get(driver, 0)
            if of_square if square else driver != "gesvd" and not case.count:
                yield driver, lambda d=driver: torch.linalg.svd(A, full_matrices=False, driver=d)
        if square:
            yield "gesvdp", lambda: _polar(cusolver.gesvdp(A.clone()))
    else:
        yield "gesvd", lambda: (torch.linalg.svdvals(A, driver="gesvd"),)


def _polar(result):
    """gesvdp decomposes the transpose, column by column: its V, in rows, are the left vectors."""
    U, S, V = result
    return V.mT, S, U


def _errors_on_cuda(case, A, found):
    """The same of arrays of PyTorch."""
    import torch

    if not case.vectors:
        return {}
    U, S, Vh = found
    m, n = case.rows, case.columns
    unit = (max(m, n) + 8) * torch.finfo(A.dtype).eps
    if case.batch:
        A, U, S, Vh = (x[:CHECKED] for x in (A, U, S, Vh))
    A, U, S, Vh = (x.double() for x in (A, U, S, Vh))
    if case.count:
        off = torch.linalg.matrix_norm(A @ Vh.mT - U * S[..., None, :])
    else:
        off = torch.linalg.matrix_norm(
            torch.baddbmm(A, U * S[..., None, :], Vh, beta=-1)
            if case.batch
            else torch.addmm(A, U * S, Vh, beta=-1)
        )
    errors = {"residual": (off / torch.linalg.matrix_norm(A)).max().item() / unit}
    worst = []
    for gram in (U.mT @ U, Vh @ Vh.mT):
        gram.diagonal(dim1=-2, dim2=-1).sub_(1)
        worst.append(gram.abs().max().item())
    return errors | {"orthogonality": float(np.max(worst)) / unit}


def release():
    import torch

    gc.collect()
    torch.cuda.empty_cache()


# ---- what is written ----


def record_of(case, seconds):
    """What is written of a case: its fields, and seconds of each call."""
    return asdict(case) | {
        "what": case.what,
        "median": median(seconds),
        "seconds": seconds,
        "peers": {},
    }


def peer_of(record, seconds):
    ratio = median(seconds) / record["median"]
    return {"median": median(seconds), "seconds": seconds, "ratio": ratio}


def _show(record):
    errors = (f"{record[key]:8.3f}" if key in record else f"{'':8}" for key in BOUNDS)
    print(f"{record['what']:<48}{record['median'] * 1e3:>11.3f} ms{''.join(errors)}", end="")
    for name, peer in record["peers"].items():
        said = f"{peer['ratio']:.2f}×" if "ratio" in peer else peer["note"]
        print(f"   {name} {said}", end="")
    print(flush=True)
    return record


def _bars(cases, device):
    asked = []
    for case in cases:
        where = f"{case['group']}: {case['what']}"
        if device == "cpu":
            ratio = case["peers"]["numpy.linalg.svd"]["ratio"]
            asked.append(bars.at_least(where, case["target"], ratio))
        else:
            asked.append(bars.at_most(where, case["target"], case["median"]))
    for key, bound in BOUNDS.items():
        worst = bars.worst(case[key] for case in cases if key in case)
        asked.append(bars.at_most(key, bound, worst, ""))
    return asked
