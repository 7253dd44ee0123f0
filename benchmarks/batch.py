"""Many small matrices in one call on the GPU, against the batched SVD of dense copies.

Two times are measured: on the device, of arrays there, and end to end, of arrays on the host, whose
results are on their way while others are computed. The dense copies of the peer are on the device
before the timing, so the peer is compared with our time on the device.
"""

import time
from statistics import median

import numpy as np

import tsvd
from benchmarks import bars, cuda
from benchmarks.timing import both_times, solve
from testing import measures, results
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


def run(path, threads, seconds):
    """Writes `path`, in about `seconds`. The exit status is 0 if all targets are met."""
    start, load = time.monotonic(), results.load()
    print(
        f"seconds, medians; values: s alone, end to end; peer: {cuda.library().name}'s batched SVD "
        "of the dense copies\n\n"
        f"{'matrices':>9}{'n':>5} {'family':<9}{'dtype':<9}{'device':>9}{'end to end':>12}"
        f"{'values':>9}{'residual':>10}{'orthog.':>9}{'s':>7}{'peer':>10}{'ratio':>8}"
    )
    solve(*_matrices("uniform", 100, 8, "float64"), device=DEVICE)  # loads the kernels
    cases = []
    for count, n, _, of_peer in CASES:
        for family in FAMILIES:
            for dtype in DTYPES:
                case = {"count": count, "n": n, "family": family, "dtype": dtype}
                if time.monotonic() > start + SHARE * seconds:
                    case["skipped"] = "the time is up"
                else:
                    _measure(case)
                if family == PEER_FAMILY and time.monotonic() < start + seconds:
                    case["peer"] = _peer(case, of_peer)
                cases.append(case)
                _show(case)
    return bars.conclude(
        path,
        threads,
        load,
        _bars(cases),
        seconds=time.monotonic() - start,
        library=cuda.library().name,
        repeats=REPEATS,
        cases=cases,
    )


def _matrices(family, count, n, dtype):
    rng = np.random.default_rng(n)
    make = FAMILIES[family]
    d = make(rng, (count, n))
    return d.astype(dtype), make(rng, (count, n - 1)).astype(dtype)


def _measure(case):
    """Times all calls but the first, whose results are checked."""
    count, n, dtype = (case[key] for key in ("count", "n", "dtype"))
    d, e = _matrices(case["family"], count, n, dtype)
    out = tuple(np.ones(shape, dtype) for shape in ((count, n, n), (count, n), (count, n, n)))
    try:
        solve(d, e, device=DEVICE, out=out)
        case |= _errors(d, e, *out)
        runs = [solve(d, e, device=DEVICE, out=out) for _ in range(REPEATS)]
        given = [cuda.library().array(x) for x in (d, e)]
        alone = [solve(*given) for _ in range(REPEATS + 1)][1:]
        values = [solve(d, e, device=DEVICE, compute_uv=False) for _ in range(REPEATS)]
    except (MemoryError, RuntimeError, np.linalg.LinAlgError) as error:
        case["skipped"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return
    case |= both_times(
        [run | {"device": on_device["device"]} for run, on_device in zip(runs, alone, strict=True)]
    )
    case["phases"] = alone[0]["phases"]
    case["values_end_to_end"] = median(run["end_to_end"] for run in values)


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


def _show(case):
    print(f"{case['count']:>9}{case['n']:>5} {case['family']:<9}{case['dtype']:<9}", end="")
    if "skipped" in case:
        print(f"  skipped: {case['skipped']}", flush=True)
        return
    peer, end = case.get("peer", {}), ""
    if "seconds" in peer:
        of = "" if peer["count"] == case["count"] else f"  (by {peer['count']} of them)"
        end = f"{peer['seconds']:>10.4f}{peer['ratio']:>8.1f}{of}"
    print(
        f"{case['device']:>9.5f}{case['end_to_end']:>12.4f}{case['values_end_to_end']:>9.4f}"
        f"{case['residual']:>10.3f}{case['orthogonality']:>9.3f}{case['values']:>7.2f}"
        f"{end or '  ' + peer.get('note', '')}",
        flush=True,
    )


def _bars(cases):
    """The targets, for the slower family. A skipped case counts as missed."""
    asked = []
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
