"""The largest values with their vectors on the GPU, against all values and vectors.

Two times are measured, as in vectors.py: on the device, and end to end.
"""

import numpy as np

from benchmarks import bars
from benchmarks.cases import CLASSES
from benchmarks.group import Group, Part
from benchmarks.timing import both_times, solve, touched
from testing import families, measures
from testing.measures import BOUNDS

DEVICE = "cuda"
N, K = 10_000, 100
REPEATS = 5
MOST = 0.6  # target: time of the part over that of the whole, for a matrix that does not deflate
ASKED = "toeplitz"


def _measure(run, case):
    """Part and whole are timed in turns. The first calls are not timed, but checked."""
    dtype, family = case
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
    record = {
        "family": family,
        "dtype": dtype,
        "residual": measures.residual(d, e, *part),
        "orthogonality": measures.orthogonality(part[0], part[2]),
        "values": measures.value_error(part[1], whole[1][:K]),
    }
    runs = [
        {name: solve(d, e, **options) for name, options in contenders.items()}
        for _ in range(REPEATS)
    ]
    for name in contenders:
        record |= both_times([run[name] for run in runs], f"{name}_")
    return record


def _bars(run):
    asked, records = [], run.records["cases"]
    for case in records:
        if case["family"] == ASKED and case["dtype"] == "float64":
            for key, where in (("device", "on the device"), ("end_to_end", "end to end")):
                what = f"{ASKED}, n = {N}, the {K} largest over all, {where}"
                over = case[f"part_{key}"] / case[f"whole_{key}"]
                asked.append(bars.at_most(what, MOST, over, "×"))
    for key in ("residual", "orthogonality", "values"):
        bound = BOUNDS["values auto" if key == "values" else key](N)
        asked.append(bars.largest(f"{key}, the largest", bound, records, key))
    return asked


GROUP = Group(
    files={"cuda": "select"},
    parts=[
        Part(
            "cases",
            lambda run: ((dtype, f) for dtype in ("float64", "float32") for f in CLASSES),
            _measure,
            "family:<12 dtype part_device:s whole_device:s part_device/whole_device:.2f "
            "part_end_to_end:s whole_end_to_end:s part_end_to_end/whole_end_to_end:.2f "
            "residual:.3f orthogonality:.3f",
            head=f"the {K} largest of n = {N} with vectors, medians of {REPEATS}",
        )
    ],
    bars=_bars,
    contents=lambda run: {"n": N, "k": K, "repeats": REPEATS},
)
