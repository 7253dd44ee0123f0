"""The largest values with their vectors on the GPU, against all values and vectors.

Two times are measured, as in vectors.py: on the device, and end to end.
"""

import numpy as np

from benchmarks import bars
from benchmarks.cases import CLASSES
from benchmarks.timing import both_times, solve, touched
from testing import families, measures, results
from testing.measures import BOUNDS

DEVICE = "cuda"
N, K = 10_000, 100
REPEATS = 5
MOST = 0.6  # target: time of the part over that of the whole, for a matrix that does not deflate
ASKED = "toeplitz"


def run(path, threads):
    """Writes `path`. The exit status is 0 if all targets are met."""
    load = results.load()
    print(
        f"the {K} largest of n = {N} with vectors, seconds, medians of {REPEATS}\n\n"
        f"{'matrix':<12}{'dtype':>9}{'part':>10}{'whole':>10}{'ratio':>8}"
        f"{'end to end':>12}{'whole':>10}{'ratio':>8}{'residual':>10}{'orthog.':>9}"
    )
    cases = []
    for dtype in ("float64", "float32"):
        for family in CLASSES:
            cases.append(_case(family, dtype))
            _show(cases[-1])
    return bars.conclude(path, threads, load, _bars(cases), n=N, k=K, repeats=REPEATS, cases=cases)


def _case(family, dtype):
    """Part and whole are timed in turns. The first calls are not timed, but checked."""
    d, e = families.make(family, N, np.dtype(dtype))
    whole = touched(N) if dtype == "float64" else tuple(x.astype(dtype) for x in touched(N))
    part = np.ones((N, K), dtype), np.ones(K, dtype), np.ones((K, N), dtype)
    shared = {"method": "dc", "device": DEVICE}
    contenders = {
        "part": shared | {"out": part, "select": "i", "select_range": (0, K - 1)},
        "whole": shared | {"out": whole},
    }
    for options in contenders.values():
        solve(d, e, **options)
    case = {"family": family, "dtype": dtype}
    case["residual"] = measures.residual(d, e, *part)
    case["orthogonality"] = measures.orthogonality(part[0], part[2])
    case["values"] = measures.value_error(part[1], whole[1][:K])
    runs = [
        {name: solve(d, e, **options) for name, options in contenders.items()}
        for _ in range(REPEATS)
    ]
    for name in contenders:
        case |= both_times([run[name] for run in runs], f"{name}_")
    return case


def _show(case):
    device, end_to_end = (
        (case[f"part_{key}"], case[f"whole_{key}"]) for key in ("device", "end_to_end")
    )
    print(
        f"{case['family']:<12}{case['dtype']:>9}"
        f"{device[0]:>10.4f}{device[1]:>10.4f}{device[0] / device[1]:>8.2f}"
        f"{end_to_end[0]:>12.4f}{end_to_end[1]:>10.4f}{end_to_end[0] / end_to_end[1]:>8.2f}"
        f"{case['residual']:>10.3f}{case['orthogonality']:>9.3f}",
        flush=True,
    )


def _bars(cases):
    asked = []
    for case in cases:
        if case["family"] == ASKED and case["dtype"] == "float64":
            for key, where in (("device", "on the device"), ("end_to_end", "end to end")):
                ratio = case[f"part_{key}"] / case[f"whole_{key}"]
                what = f"{ASKED}, n = {N}, the {K} largest over all, {where}"
                asked.append(bars.at_most(what, MOST, ratio, "×"))
    for key, limit in (
        ("residual", BOUNDS["residual"](N)),
        ("orthogonality", BOUNDS["orthogonality"](N)),
        ("values", BOUNDS["values auto"](N)),
    ):
        worst = bars.worst(case[key] for case in cases)
        asked.append(bars.at_most(f"{key}, the largest", limit, worst, ""))
    return asked
