"""Divide and conquer with several eps: time, deflation and error."""

from statistics import median

import numpy as np

from benchmarks import bars
from benchmarks.cases import CLASSES
from benchmarks.errors import errors
from benchmarks.group import Group, Part
from benchmarks.timing import solve, touched
from testing import families
from testing.measures import BOUNDS

METHOD = "dc"
SIZES = {"cuda": (4096, 10000), "cpu": (500, 1000)}
EPS = (None, 1e-12, 1e-8, 1e-4, 1e-2)
REPEATS = 5
NOISE = 1.1  # a looser eps may take this many times as long, as timings vary


def _measure(run, case):
    """One row for each eps, timed in turns. The first call of each is checked and not timed.

    On CUDA the times are those on the device, by events; on the CPU those of the whole call.
    """
    n, family = case
    d, e = families.make(family, n)
    rows = []
    for eps in EPS:
        deflated = _solve(d, e, eps, run.device)["deflated"]
        measured = errors(run.device, d, e, *touched(n))
        norm = float(np.hypot(*map(np.linalg.norm, (d, e))))
        full = BOUNDS["residual"](n) * (n + 8) * np.finfo(float).eps * norm
        row = {"family": family, "n": n, "eps": eps, "deflated": deflated} | measured
        row["max_error_in_eps"] = measured["max_error"] / eps if eps else None
        row["bound"] = 4 * (eps or 0) + full
        rows.append(row)
    timed = "device" if run.device == "cuda" else "end_to_end"
    runs = [[_solve(d, e, eps, run.device)[timed] for eps in EPS] for _ in range(REPEATS)]
    for row, seconds in zip(rows, zip(*runs, strict=True), strict=True):
        row |= {"seconds": median(seconds), "runs": seconds}
    return rows


def _solve(d, e, eps, device):
    return solve(d, e, method=METHOD, eps=eps, device=device, out=touched(len(d)))


def _bars(run):
    """No looser eps is slower, and all errors are in bounds."""
    asked, rows = [], run.records["rows"]
    for i in range(0, len(rows), len(EPS)):
        asked += _bars_of(rows[i : i + len(EPS)])
    return asked


def _bars_of(rows):
    """The targets for one matrix; rows go from the tightest eps to the loosest."""
    where = f"{rows[0]['family']}, n = {rows[0]['n']}"
    slower = max(
        looser["seconds"] / tighter["seconds"]
        for i, looser in enumerate(rows)
        for tighter in rows[:i]
    )
    error = bars.worst(row["max_error"] / row["bound"] for row in rows)
    bound = BOUNDS["orthogonality"](rows[0]["n"])
    return [
        bars.at_most(f"{where}, time of a looser eps over a tighter's", NOISE, slower, "×"),
        bars.at_most(f"{where}, max |B - L S R| / (4 eps + full accuracy)", 1.0, error, ""),
        bars.largest(f"{where}, orthogonality", bound, rows, "orthogonality"),
    ]


GROUP = Group(
    files={"cpu": "eps_cpu", "cuda": "eps_cuda"},
    parts=[
        Part(
            "rows",
            lambda run: ((n, family) for n in SIZES[run.device] for family in CLASSES),
            _measure,
            "family:<12 n eps:g seconds:s deflated deflated/n:.2f max_error:.2e "
            "max_error_in_eps:.2g orthogonality:.2f",
            lambda row: row | {"eps": row["eps"] or "None"},
            head=f'method="{METHOD}", median of {REPEATS}',
        )
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device, "repeats": REPEATS},
)
