"""Divide and conquer with several eps: time, deflation and error."""

from statistics import median

import numpy as np

from benchmarks import bars
from benchmarks.cases import CLASSES
from benchmarks.errors import errors
from benchmarks.timing import solve, touched
from testing import families, results
from testing.measures import BOUNDS

METHOD = "dc"
SIZES = {"cuda": (4096, 10000), "cpu": (500, 1000)}
EPS = (None, 1e-12, 1e-8, 1e-4, 1e-2)
REPEATS = 5
NOISE = 1.1  # a looser eps may take this many times as long, as timings vary


def run(path, threads, device):
    """Writes `path`. The exit status is 0 if no looser eps is slower and all errors are in bounds.

    On CUDA the times are those on the device, by events; on the CPU those of the whole call.
    """
    load = results.load()
    print(
        f'method="{METHOD}", device="{device}", median of {REPEATS}\n\n'
        f"{'matrix':<12}{'n':>6}{'eps':>8}{'seconds':>10}{'deflated':>10}{'/ n':>7}"
        f"{'max error':>11}{'/ eps':>8}{'orthog.':>9}"
    )
    rows, asked = [], []
    for n in SIZES[device]:
        for family in CLASSES:
            own = _rows(family, n, device)
            rows += own
            asked += _bars(own)
    return bars.conclude(path, threads, load, asked, device=device, repeats=REPEATS, rows=rows)


def _rows(family, n, device):
    """One row for each eps, timed in turns. The first call of each is checked and not timed."""
    d, e = families.make(family, n)
    rows = []
    for eps in EPS:
        deflated = _solve(d, e, eps, device)["deflated"]
        measured = errors(device, d, e, *touched(n))
        norm = float(np.hypot(*map(np.linalg.norm, (d, e))))
        full = BOUNDS["residual"](n) * (n + 8) * np.finfo(float).eps * norm
        row = {"family": family, "n": n, "eps": eps, "deflated": deflated} | measured
        row["max_error_in_eps"] = measured["max_error"] / eps if eps else None
        row["bound"] = 4 * (eps or 0) + full
        rows.append(row)
    timed = "device" if device == "cuda" else "end_to_end"
    runs = [[_solve(d, e, eps, device)[timed] for eps in EPS] for _ in range(REPEATS)]
    for row, seconds in zip(rows, zip(*runs, strict=True), strict=True):
        row |= {"seconds": median(seconds), "runs": seconds}
        _show(row)
    return rows


def _solve(d, e, eps, device):
    return solve(d, e, method=METHOD, eps=eps, device=device, out=touched(len(d)))


def _show(row):
    eps = row["eps"]
    in_eps = "" if eps is None else f"{row['max_error_in_eps']:.2g}"
    print(
        f"{row['family']:<12}{row['n']:>6}{'None' if eps is None else f'{eps:g}':>8}"
        f"{row['seconds']:>10.4f}{row['deflated']:>10}{row['deflated'] / row['n']:>7.2f}"
        f"{row['max_error']:>11.2e}{in_eps:>8}{row['orthogonality']:>9.2f}",
        flush=True,
    )


def _bars(rows):
    """The targets for one matrix; rows go from the tightest eps to the loosest."""
    where = f"{rows[0]['family']}, n = {rows[0]['n']}"
    slower = max(
        looser["seconds"] / tighter["seconds"]
        for i, looser in enumerate(rows)
        for tighter in rows[:i]
    )
    error = bars.worst(row["max_error"] / row["bound"] for row in rows)
    lost = bars.worst(row["orthogonality"] for row in rows)
    return [
        bars.at_most(f"{where}, time of a looser eps over a tighter's", NOISE, slower, "×"),
        bars.at_most(f"{where}, max |B - L S R| / (4 eps + full accuracy)", 1.0, error, ""),
        bars.at_most(f"{where}, orthogonality", BOUNDS["orthogonality"](rows[0]["n"]), lost, ""),
    ]
