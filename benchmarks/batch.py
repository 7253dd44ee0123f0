"""Many small matrices in one call on the GPU, against the batched SVD of dense copies.

Two times are measured: on the device, of arrays there, and end to end, of arrays on the host, whose
results are on their way while others are computed. The dense copies of the peer are on the device
before the timing, so the peer is compared with our time on the device.
"""

from statistics import median

import numpy as np

import tsvd
from benchmarks import bars, cuda
from benchmarks.group import Group, Part
from benchmarks.timing import both_times, solve
from testing import measures
from testing.measures import BOUNDS

DEVICE = "cuda"
DTYPES = ("float64", "float32")
REPEATS = 5
CHECKED = 20  # matrices of a case whose errors are measured
SHARE = 0.7  # share of the run's seconds that tsvd may use
BRIEF = 1.0  # seconds; a shorter call of a peer is timed three times

# Number of matrices, their order, the target in seconds on the device in float64, and the number of
# matrices that the peer is timed with.
CASES = (
    (100_000, 8, 3e-3, 100_000),
    (100_000, 16, 6e-3, 100_000),
    (100_000, 32, 15e-3, 100_000),
    (10_000, 64, 30e-3, 500),
    (1000, 128, 15e-3, 200),
    (1000, 256, 60e-3, 100),
)
FAMILIES = {
    "uniform": lambda rng, size: rng.random(size),
    "chi": lambda rng, size: np.sqrt(rng.chisquare(np.arange(size[1], 0, -1), size)),
}
PEER_FAMILY = "uniform"


def _cases(run):
    """Records to fill, and how many matrices the peer is timed with."""
    for count, n, _, of_peer in CASES:
        for family in FAMILIES:
            for dtype in DTYPES:
                yield {"count": count, "n": n, "family": family, "dtype": dtype}, of_peer


def _measure(run, given):
    case, of_peer = given
    case |= _ours(case) if run.left(SHARE) >= 0 else {"skipped": "the time is up"}
    if case["family"] == PEER_FAMILY and run.left() > 0:
        case["peer"] = _peer(case, of_peer)
    return case


def _matrices(family, count, n, dtype):
    rng = np.random.default_rng(n)
    make = FAMILIES[family]
    d = make(rng, (count, n))
    return d.astype(dtype), make(rng, (count, n - 1)).astype(dtype)


def _ours(case):
    """Times all calls but the first, whose results are checked."""
    count, n, dtype = (case[key] for key in ("count", "n", "dtype"))
    d, e = _matrices(case["family"], count, n, dtype)
    out = tuple(np.ones(shape, dtype) for shape in ((count, n, n), (count, n), (count, n, n)))
    try:
        solve(d, e, device=DEVICE, out=out)
        found = _errors(d, e, *out)
        runs = [solve(d, e, device=DEVICE, out=out) for _ in range(REPEATS)]
        given = [cuda.library().array(x) for x in (d, e)]
        alone = [solve(*given) for _ in range(REPEATS + 1)][1:]
        values = [solve(d, e, device=DEVICE, compute_uv=False) for _ in range(REPEATS)]
    except (MemoryError, RuntimeError, np.linalg.LinAlgError) as error:
        return {"skipped": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    found |= both_times(
        [run | {"device": on_device["device"]} for run, on_device in zip(runs, alone, strict=True)]
    )
    found["phases"] = alone[0]["phases"]
    return found | {"values_end_to_end": median(run["end_to_end"] for run in values)}


def _errors(d, e, L, s, R):
    """The worst errors of some matrices, spread over the batch."""
    worst = {"residual": 0.0, "orthogonality": 0.0, "values": 0.0}
    for i in np.linspace(0, len(d) - 1, CHECKED).astype(int):
        s_ref = tsvd.svdvals(d[i], e[i], device="cpu")
        found = {
            "residual": measures.residual(d[i], e[i], L[i], s[i], R[i]),
            "orthogonality": measures.orthogonality(L[i], R[i]),
            "values": measures.value_error(s[i], s_ref),
        }
        worst = {key: float(np.max([worst[key], value])) for key, value in found.items()}
    return worst


def _peer(case, count):
    """The peer's time for all matrices, extrapolated from `count` of them."""
    gpu = cuda.library()
    d, e = _matrices(case["family"], count, case["n"], case["dtype"])
    try:
        B = cuda.dense_batch(d, e)

        def call():
            return gpu.seconds(lambda: gpu.svd_batch(B))

        call()
        runs = [call()]
        runs += [call() for _ in range(2 if runs[0] < BRIEF else 0)]
    except Exception as error:  # another library may raise anything
        return {"note": f"failed: {error}".splitlines()[0][:200]}
    finally:
        B = None
        gpu.free()
    peer = {"seconds": median(runs) * case["count"] / count, "count": count, "runs": runs}
    if "device" in case:
        peer["ratio"] = peer["seconds"] / case["device"]
    return peer


def _shown(case):
    """With the peer's time and ratio, or why there are none."""
    peer = case.get("peer", {})
    of = f" by {peer['count']}" if peer.get("count", case["count"]) < case["count"] else ""
    said = f"{peer['seconds']:.4f} s{of}" if "seconds" in peer else peer.get("note")
    return case | {"peer": said, "ratio": peer.get("ratio")}


def _bars(run):
    """The targets, for the slower family. A skipped case counts as missed."""
    asked, cases = [], run.records["cases"]
    for count, n, most, _ in CASES:
        times = {
            dtype: [c.get("device") for c in cases if (c["n"], c["dtype"]) == (n, dtype)]
            for dtype in DTYPES
        }
        slowest = {d: None if None in own else max(own) for d, own in times.items()}
        what = f"{count:,} of n = {n}, on the device"
        asked.append(bars.at_most(f"{what}, float64", most, slowest["float64"]))
        asked.append(bars.at_most(f"{what}, float32", slowest["float64"], slowest["float32"]))
    for key in ("residual", "orthogonality", "values"):
        worst = bars.worst(
            case[key] / BOUNDS[_bound(key)](case["n"]) for case in cases if key in case
        )
        asked.append(bars.at_most(f"{key} over its bound, the largest", 1.0, worst, ""))
    return asked


def _bound(key):
    return "values auto" if key == "values" else key


GROUP = Group(
    files={"cuda": "batch"},
    parts=[
        Part(
            "cases",
            _cases,
            _measure,
            "count n family dtype device:s end_to_end:s values_end_to_end:s residual:.3f "
            "orthogonality:.3f values:.2f ratio:.1f peer",
            _shown,
            head="medians; values: error of s; peer: batched SVD of dense copies",
        )
    ],
    bars=_bars,
    contents=lambda run: {
        "seconds": run.elapsed,
        "library": cuda.library().name,
        "repeats": REPEATS,
    },
    prepare=lambda run: solve(*_matrices("uniform", 100, 8, "float64"), device=DEVICE),
    seconds=40,
)
