"""Complex matrices: the SVD and the inverse by tsvd.linalg, beside real ones and beside the peers.

On the CPU the ratio to NumPy is asked to be that of real matrices. On the GPU times are asked for;
those of batches are at most MOST times as long as the times of real ones.
"""

from statistics import median

import numpy as np

from benchmarks import bars, dense, inverse
from benchmarks.group import Part
from testing.measures import INVERSE_BOUNDS, frobenius
from tsvd import linalg

MOST = 4.0
ORDERS = (100, 200, 400, 800, 1600, 2000)
BATCHES = ((100_000, 8), (10_000, 64), (1000, 128))
TYPES = ("complex128", "float64")

CPU = tuple(
    dense.Case(group, n, n, None, dtype=dtype, vectors=vectors)
    for group, vectors in (("all vectors", True), ("values only", False))
    for n in ORDERS
    for dtype in TYPES
) + tuple(inverse.Case(n, None, dtype=dtype) for n in (500, 1000) for dtype in TYPES)
CUDA = (
    *(
        dense.Case("all vectors", n, n, ms / 1e3, dtype="complex128")
        for n, ms in ((400, 6), (1024, 16), (2048, 45), (4096, 180), (8192, 1100))
    ),
    *(
        dense.Case("values only", n, n, ms / 1e3, dtype="complex128", vectors=False)
        for n, ms in ((400, 5), (1024, 13), (2048, 38), (4096, 160))
    ),
    dense.Case("tall", 100_000, 100, 0.01, dtype="complex128"),
    *(
        inverse.Case(n, ms / 1e3, dtype="complex128")
        for n, ms in ((1024, 2.8), (2048, 7), (4096, 24), (8192, 110))
    ),
    dense.Case("batch", 21, 21, 0.09, batch=10**6, dtype="complex64"),
    *(
        dense.Case("batch", n, n, None, batch=count, dtype=dtype)
        for count, n in BATCHES
        for dtype in TYPES
    ),
)


# ---- truncation ----

ORDER, KEPT, TIMES = 512, 128, 100
SMALLEST = 1e-16  # the values go down to it from 1, geometrically
WITHIN = 200.0  # the error of a truncated product in eps: values next to KEPT are 7 % apart


def _truncated():
    """A matrix with known vectors, and the product of the largest KEPT values with theirs: both in
    long double. The vectors are those of the Fourier matrix, reflected.
    """
    rng = np.random.default_rng(0)
    i = np.arange(ORDER)
    pi = 4 * np.arctan(np.longdouble(1))
    fourier = np.exp(2j * pi * (np.outer(i, i) % ORDER) / ORDER) / np.sqrt(np.longdouble(ORDER))
    sides = []
    for _ in range(2):
        v = dense.gaussian(rng, ORDER, np.clongdouble)
        v /= frobenius(v)
        sides.append(fourier - 2 * np.outer(v, v.conj() @ fourier))
    values = np.longdouble(SMALLEST) ** (i / np.longdouble(ORDER - 1))
    U, V = sides
    return (
        (U * values) @ V.conj().T,
        (U[:, :KEPT] * values[:KEPT]) @ V[:, :KEPT].conj().T,
    )


def _kept(found):
    U, S, Vh = found
    return U[:, :KEPT], S[:KEPT], Vh[:KEPT]


def _truncations(run, case):
    """TIMES truncations, as in a sweep over a tensor network, beside PyTorch's and CuPy's."""
    import torch

    A, exact = _truncated()
    given = dense.on_device(A.astype(np.complex128))

    def ours():
        return linalg.svd(given, select="i", select_range=(0, KEPT - 1))

    seconds, (U, S, Vh) = dense.timed_on_device(lambda: [ours() for _ in range(TIMES)][-1])
    U, S, Vh = (x.cpu().numpy().astype(np.clongdouble) for x in (U, S, Vh))
    off = frobenius((U * S.real) @ Vh - exact)
    record = {
        "what": f"{TIMES} truncations of n = {ORDER} to {KEPT} values, complex128",
        "median": median(seconds),
        "seconds": seconds,
        "error": float(off / np.finfo(np.float64).eps),
        "peers": {},
    }
    peers = {"torch": lambda: _kept(torch.linalg.svd(given, full_matrices=False))}
    try:
        import cupy
    except ImportError:
        pass
    else:
        there = cupy.from_dlpack(given)
        peers["cupy"] = lambda: _kept(cupy.linalg.svd(there, full_matrices=False))
    for name, call in peers.items():
        seconds, _ = dense.timed_on_device(lambda call=call: [call() for _ in range(10)][-1])
        seconds = [one * TIMES / 10 for one in seconds]
        record["peers"][name] = dense.beside(record, seconds)
    return record


TRUNCATIONS = Part(
    "truncations",
    lambda run: [None],
    _truncations,
    "what:<44 median:s error:.3g peers:<1",
    dense.shown,
    devices=("cuda",),
)

# ---- targets ----


def _pairs(run):
    """Each record of complex matrices, and that of real ones of the same shape."""
    records = {record["what"]: record for record in run.records["cases"]}
    for what, record in records.items():
        real = records.get(what.replace("complex128", "float64"))
        if real is not None and real is not record:
            yield what, record, real


def _bars(run):
    asked = [*dense.targets(run)]
    for what, record, real in _pairs(run):
        if run.device == "cpu":
            ratios = [next(iter(x["peers"].values()))["ratio"] for x in (real, record)]
            asked.append(bars.at_least(f"{what}, over the peer", *ratios))
        else:
            ratio = record["median"] / real["median"]
            asked.append(bars.at_most(f"{what}, over float64", MOST, ratio, "×"))
    records = run.records["cases"]
    of_svd = [record for record in records if "group" in record]
    of_inverse = [record for record in records if "group" not in record]
    asked += dense.accuracy(of_svd)
    asked.append(
        bars.largest("residual of inverses", INVERSE_BOUNDS[False], of_inverse, "residual")
    )
    for record in run.records.get("truncations", ()):
        what = "error of truncated products, in eps"
        asked.append(bars.at_most(what, WITHIN, record["error"], ""))
    return asked


GROUP = dense.group("complex", CPU, CUDA, _bars, TRUNCATIONS, seconds=200)
