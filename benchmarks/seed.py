"""The seed's tables again, by method="givens" on the CPU.

The published matrices are not kept: ours are drawn from the same ranges, so the
figures agree in order of magnitude, not in digits.
"""

import json
import time
from pathlib import Path
from statistics import mean

import tsvd
from benchmarks import results
from tests import families, measures

PUBLISHED = Path(__file__).parent / "data" / "seed_tables.json"
SIZES = (20, 50, 100, 200)
MATRICES = 5


def run(path, threads):
    published = json.loads(PUBLISHED.read_text())
    print(f"{'':<28}{'iterations':>25}{'':>10}{'max|B - L S R|':>22}")
    print(
        f"{'n':>5}{'range':>11}{'eps':>12}{'published':>13}{'ours':>12}{'sweeps':>10}"
        f"{'published':>12}{'ours':>10}"
    )
    by_size = [
        _row(n, row["range"], 1e-8, row)
        for n in SIZES
        for row in published["by_size_and_range"][str(n)]["rows"]
    ]
    print()
    # The range of this table was not published.
    by_eps = [_row(200, "[0,1]", row["eps"], row) for row in published["by_eps"]["200"]]
    results.write(path, threads, source=published["source"], by_size=by_size, by_eps=by_eps)


def _row(n, interval, eps, published):
    high = interval.strip("[]").split(",")[1]
    runs = [_solve(*families.make(f"uniform_{high}", n, seed=k), eps) for k in range(MATRICES)]
    row = {
        "n": n,
        "range": interval,
        "eps": eps,
        "iterations": mean(run["iterations"] for run in runs),
        "sweeps": mean(run["sweeps"] for run in runs),
        "max_error": max(run["max_error"] for run in runs),
        "milliseconds": mean(run["milliseconds"] for run in runs),
        "published": {
            key: published[key]
            for key in ("iterations", "max_error", "milliseconds")
            if key in published
        },
    }
    error = row["published"].get("max_error")
    print(
        f"{n:>5}{interval:>11}{eps:>12g}{row['published']['iterations']:>13,}"
        f"{row['iterations']:>12,.0f}{row['sweeps']:>10,.0f}"
        f"{'' if error is None else f'{error:.0e}':>12}{row['max_error']:>10.1e}"
    )
    return row


def _solve(d, e, eps):
    start = time.perf_counter()
    (L, s, R), info = tsvd.svd(d, e, method="givens", eps=eps, device="cpu", full_output=True)
    return {
        "milliseconds": (time.perf_counter() - start) * 1e3,
        "iterations": info.iterations,
        "sweeps": info.sweeps,
        "max_error": measures.max_abs_error(d, e, L, s, R),
    }
