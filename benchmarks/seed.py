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
MAX_SWEEPS = 10_000_000  # some matrices of these ranges need over a million


def run(path, threads):
    published, load = json.loads(PUBLISHED.read_text()), results.load()
    remade = {
        (row["n"], row["range"]): row["iterations"]
        for row in published["same_kernel_on_one_h200"]["rows"]
        if "iterations" in row
    }
    print(
        f"{'':<28}{'iterations':>13}{'':>37}{'max|B - L S R|':>16}\n"
        f"{'n':>5}{'range':>11}{'eps':>12}{'published':>13}{'remade':>13}{'tsvd':>13}{'sweeps':>11}"
        f"{'published':>12}{'tsvd':>10}"
    )
    by_size = [
        _row(n, row["range"], 1e-8, row, remade.get((n, row["range"])))
        for n in SIZES
        for row in published["by_size_and_range"][str(n)]["rows"]
    ]
    print()
    # The range of this table was not published.
    by_eps = [_row(200, "[0,1]", row["eps"], row) for row in published["by_eps"]["200"]]
    results.write(
        path, threads, load, published_by=published["source"], by_size=by_size, by_eps=by_eps
    )


def _row(n, interval, eps, published, remade=None):
    """Means over MATRICES, and the largest error; remade: iterations of the seed's kernel again."""
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
        "published_iterations": published["iterations"],
        "published_error": published.get("max_error"),
        "remade_iterations": remade,
    }
    error = row["published_error"]
    print(
        f"{n:>5}{interval:>11}{eps:>12g}{row['published_iterations']:>13,}"
        f"{'' if remade is None else f'{remade:,}':>13}{row['iterations']:>13,.0f}"
        f"{row['sweeps']:>11,.0f}{'' if error is None else f'{error:.0e}':>12}"
        f"{row['max_error']:>10.1e}"
    )
    return row


def _solve(d, e, eps):
    start = time.perf_counter()
    (L, s, R), info = tsvd.svd(
        d, e, method="givens", eps=eps, device="cpu", max_sweeps=MAX_SWEEPS, full_output=True
    )
    return {
        "milliseconds": (time.perf_counter() - start) * 1e3,
        "iterations": info.iterations,
        "sweeps": info.sweeps,
        "max_error": measures.max_abs_error(d, e, L, s, R),
    }
