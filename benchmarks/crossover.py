"""From which order on one method or device is faster than another.

The constants that choose between them are set by these measurements.
"""

import functools
from statistics import median

import tsvd
from benchmarks.cases import CLASSES
from benchmarks.group import Group, Part
from benchmarks.timing import interleaved
from testing import families

METHODS = ("qr", "dc")
CPU_SIZES = (16, 24, 32, 40, 48, 64, 80, 100, 128, 160, 200, 256, 320, 400)
CUDA_SIZES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)
BRIEF_SIZE = 1024  # larger orders are timed three times at most
# The tables, and the two that are timed in each.
CONTENDERS = {
    "methods": {f"cpu, {method}": {"method": method, "device": "cpu"} for method in METHODS},
    "devices": {
        "cpu, auto": {"device": "cpu"},
        "cuda, dc": {"method": METHODS[1], "device": "cuda"},
    },
}


def _measure(name, run, case):
    """Times from d and e to new arrays."""
    family, n = case
    d, e = families.make(family, n)
    functions = {
        contender: functools.partial(tsvd.svd, d, e, **options)
        for contender, options in CONTENDERS[name].items()
    }
    runs = interleaved(functions, run.repeats if n <= BRIEF_SIZE else min(run.repeats, 3))
    first, second = (median(seconds) for seconds in runs.values())
    return {"family": family, "n": n, "seconds": [first, second], "ratio": first / second}


def _overtaken(family, rows):
    """The least order from which on all ratios are over 1; None if there is none."""
    least = None
    for row in reversed([row for row in rows if row["family"] == family]):
        if row["ratio"] <= 1:
            break
        least = row["n"]
    return least


def _contents(run):
    contents = {"repeats": run.repeats}
    for name, rows in run.records.items():
        overtaken = {family: _overtaken(family, rows) for family in CLASSES}
        first, second = CONTENDERS[name]
        contents[name] = {"contenders": [first, second], "rows": rows, "overtaken": overtaken}
        for family, n in overtaken.items():
            says = "never" if n is None else f"from n = {n}"
            print(f"{family}: {second} is faster than {first} {says}", flush=True)
    return contents


def _part(name, sizes, **where):
    return Part(
        name,
        lambda run: ((family, n) for family in CLASSES for n in sizes),
        functools.partial(_measure, name),
        "family:<12 n first:s second:s ratio:.2f",
        lambda row: row | dict(zip(("first", "second"), row["seconds"], strict=True)),
        "first: {}; second: {}".format(*CONTENDERS[name]),
        **where,
    )


GROUP = Group(
    files={"cpu": "crossover_cpu", "cuda": "crossover_cuda"},
    parts=[_part("methods", CPU_SIZES), _part("devices", CUDA_SIZES, devices=("cuda",))],
    contents=_contents,
)
