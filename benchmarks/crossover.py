"""From which order on one method or device is faster than another.

The constants that choose between them are set by these measurements.
"""

import functools
from statistics import median

import tsvd
from benchmarks.cases import CLASSES
from benchmarks.timing import interleaved
from testing import families, results

METHODS = ("qr", "dc")
CPU_SIZES = (16, 24, 32, 40, 48, 64, 80, 100, 128, 160, 200, 256, 320, 400)
CUDA_SIZES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)
BRIEF_SIZE = 1024  # larger orders are timed three times at most


def run(path, threads, device, repeats):
    """Writes `path`: methods against each other on the CPU; with CUDA also the two devices."""
    load = results.load()
    tables = {
        "methods": _table(
            {f"cpu, {method}": {"method": method, "device": "cpu"} for method in METHODS},
            CPU_SIZES,
            repeats,
        )
    }
    if device == "cuda":
        contenders = {
            "cpu, auto": {"device": "cpu"},
            "cuda, dc": {"method": METHODS[1], "device": "cuda"},
        }
        tables["devices"] = _table(contenders, CUDA_SIZES, repeats)
    results.write(path, threads, load, repeats=repeats, **tables)


def _table(contenders, sizes, repeats):
    """Times from d and e to new arrays, and the order from which on the second is faster."""
    first, second = contenders
    print(f"\n{'matrix':<12}{'n':>6}{f'{first}, ms':>16}{f'{second}, ms':>16}{'ratio':>8}")
    rows, overtaken = [], {}
    for family in CLASSES:
        own = [_row(family, n, contenders, repeats) for n in sizes]
        overtaken[family] = _overtaken([row["ratio"] for row in own], sizes)
        says = "never" if overtaken[family] is None else f"from n = {overtaken[family]}"
        print(f"{family}: {second} is faster than {first} {says}", flush=True)
        rows += own
    return {"contenders": list(contenders), "rows": rows, "overtaken": overtaken}


def _row(family, n, contenders, repeats):
    d, e = families.make(family, n)
    functions = {
        name: functools.partial(tsvd.svd, d, e, **options) for name, options in contenders.items()
    }
    runs = interleaved(functions, repeats if n <= BRIEF_SIZE else min(repeats, 3))
    first, second = (median(seconds) for seconds in runs.values())
    print(f"{family:<12}{n:>6}{first * 1e3:>16.3f}{second * 1e3:>16.3f}{first / second:>8.2f}")
    return {"family": family, "n": n, "seconds": [first, second], "ratio": first / second}


def _overtaken(ratios, sizes):
    """The least order from which on all ratios are over 1; None if there is none."""
    least = None
    for ratio, n in zip(reversed(ratios), reversed(sizes), strict=True):
        if ratio <= 1:
            break
        least = n
    return least
