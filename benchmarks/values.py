"""Singular values without vectors on the GPU: large orders, the largest few, float32.

They are compared with LAPACK and with targets. A time is that of the whole call, from d and e in
NumPy arrays to a new s.
"""

import time
from statistics import median

import numpy as np

import tsvd
from benchmarks import bars
from benchmarks.cases import CLASSES
from benchmarks.group import Group, Part
from testing import families, lapack, measures
from testing.measures import BOUNDS

DEVICE = "cuda"
DTYPES = ("float64", "float32")
FEW = 10  # how many of the largest values are computed at the largest order
SPOT = 4  # how many neighbouring values are checked at both ends and in the middle
LONGEST_PEER = 5.0  # seconds; LAPACK is left out if its time at a smaller order predicts more

# Order, number of values (None: all), families, number of timings, target in seconds in float64.
CASES = (
    (10_000, None, CLASSES, 5, 3.5e-3),
    (100_000, None, CLASSES, 3, 0.15),
    (1_000_000, FEW, ("uniform_1", "toeplitz"), 3, 0.1),
    (1_000_000, None, ("uniform_1",), 1, 4.0),
)
NUMBERS = 100  # target: device memory, in numbers of 8 bytes for each row


def _cases(run):
    """Records to fill, and how many times each is timed."""
    for n, k, names, repeats, _ in CASES:
        # float64 first: there may be no time left for float32.
        for dtype in DTYPES:
            for family in names:
                yield {"family": family, "n": n, "k": k, "dtype": dtype}, repeats


def _measure(run, given):
    case, repeats = given
    before = run.records["cases"]
    estimate = _estimate(case, before, "seconds")
    if estimate * repeats > run.left():
        return case | {"skipped": f"estimated {estimate:.0f} s"}
    d, e = families.make(case["family"], case["n"], np.dtype(case["dtype"]))
    options = {"device": DEVICE, "method": "bisect", "compute_uv": False}
    if case["k"]:
        options |= {"select": "i", "select_range": (0, case["k"] - 1)}
    tsvd.svdvals([1.0], [], device=DEVICE)  # a device in use says what is free
    free = [tsvd.devices()[1].memory_free]
    if repeats == 1:  # a long call; asking for the free memory takes no time beside it
        options["progress"] = lambda done: free.append(tsvd.devices()[1].memory_free)
    try:
        if repeats > 1:
            tsvd.svd(d, e, **options)
        runs = [_time(tsvd.svd, d, e, **options) for _ in range(repeats)]
    except (MemoryError, RuntimeError) as error:
        return case | {"skipped": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    case["runs"] = [seconds for seconds, _ in runs]
    case["seconds"] = median(case["runs"])
    case["error"] = _error(d, e, runs[0][1]) / BOUNDS["values bisect"](case["n"])
    if repeats == 1:
        case["memory"] = free[0] - min(free)
    if case["dtype"] == "float64" and not case["k"]:
        case |= _lapack(d, e, _estimate(case, before, "lapack"), run.left())
    return case


def _estimate(case, before, key):
    """Estimates seconds by n^2 from the same case at a smaller order; 0 if there is none."""
    for other in reversed(before):
        same = all(other[name] == case[name] for name in ("family", "k", "dtype"))
        if same and key in other:
            return other[key] * (case["n"] / other["n"]) ** 2
    return 0.0


def _time(function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - start, result


def _error(d, e, s):
    """The error against the CPU's values, in ulps, at both ends and in the middle."""
    k = s.size
    worst = 0.0
    for low in (0, k // 2, max(k - SPOT, 0)):
        high = min(low + SPOT, k) - 1
        here = tsvd.svdvals(d, e, device="cpu", select="i", select_range=(low, high))
        worst = max(worst, measures.value_error(s[low : high + 1], here))
    return worst


def _lapack(d, e, estimate, left):
    if estimate > min(LONGEST_PEER, left):
        return {"lapack_note": f"estimated {estimate:.0f} s"}
    return {"lapack": _time(lapack.dbdsqr_values, d, e)[0]}


def _bars(run):
    """The targets, for the slowest family. A skipped case counts as missed."""
    asked, cases = [], run.records["cases"]

    def slowest(n, k, dtype):
        own = [c for c in cases if (c["n"], c["k"], c["dtype"]) == (n, k, dtype)]
        times = [case.get("seconds") for case in own]
        return None if None in times else max(times)

    for n, k, _, repeats, most in CASES:
        double, single = (slowest(n, k, dtype) for dtype in DTYPES)
        what = f"the {k} largest of n = {n}" if k else f"svdvals, n = {n}"
        asked.append(bars.at_most(f"{what}, float64", most, double))
        if single is not None or repeats > 1:  # there may be no time for a single long call
            asked.append(bars.at_most(f"{what}, float32", double, single))
    asked.append(bars.largest("error over its bound, the largest", 1.0, cases, "error"))
    held = [case["memory"] / (8 * case["n"]) for case in cases if case.get("memory")]
    what = f"device memory, n = {CASES[-1][0]}, in numbers for each row"
    asked.append(bars.at_most(what, NUMBERS, max(held, default=None), ""))
    return asked


GROUP = Group(
    files={"cuda": "values"},
    parts=[
        Part(
            "cases",
            _cases,
            _measure,
            "family:<12 n k dtype seconds:s error:.3f lapack:s lapack/seconds:.1f",
            head="medians; k: how many values if not all; the error over its bound, 4 + n/64 ulps",
        )
    ],
    bars=_bars,
    contents=lambda run: {"seconds": run.elapsed},
    prepare=lambda run: tsvd.svdvals(*families.make("uniform_1", 2000), device=DEVICE),
    seconds=60,
)
