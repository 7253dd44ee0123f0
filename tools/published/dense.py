"""Repeats the published table of dense matrices: bidiagonalisation and diagonalisation apart.

Published were Householder's reduction and the zero-shift Givens sweeps on the bidiagonal matrix
(benchmarks/data/README.md); that is method="givens". "auto" is what a user gets. The published
matrices are lost: ours are drawn from the same range.
"""

import time
from statistics import median

from benchmarks.published_data import published_and_remade
from testing import dense_families, measures
from tsvd import linalg

METHODS = ("givens", "auto")
FAMILY = "uniform_100"
REPEATS = 3
PARTS = {  # of a call, by the names of its phases
    "bidiagonalisation": ("reduce",),
    "diagonalisation": ("iterate", "vectors", "values"),
    "back": ("back",),
}


def rows(device, until):
    """A row for each published size and each method. until: time.monotonic() at the end."""
    print(
        f"\ndense matrices, seconds; publ.: published\n\n{'n':>6} {'method':<8}"
        f"{'bidiag.':>9}{'publ.':>9}{'diag.':>9}{'publ.':>9}{'back':>9}{'in all':>9}{'publ.':>9}"
        f"{'residual':>10}{'orthog.':>9}"
    )
    theirs, _ = published_and_remade()
    linalg.svd(dense_families.make(FAMILY, 70, 60), device=device)  # loads the kernels
    return [
        _row(device, row, method, until) for row in theirs["dense"]["rows"] for method in METHODS
    ]


def _row(device, theirs, method, until):
    n = theirs["n"]
    row = {"n": n, "method": method, "device": device}
    row |= {f"published_{key}": theirs[key] for key in ("bidiagonalisation", "diagonalisation")}
    row["published_total"] = theirs["total"]
    runs = []
    for seed in range(REPEATS):
        if time.monotonic() < until:
            A = dense_families.make(FAMILY, n, n, seed=seed)
            start = time.perf_counter()
            result, info = linalg.svd(A, method=method, device=device, full_output=True)
            runs.append({"total": time.perf_counter() - start})
            for part, phases in PARTS.items():
                runs[-1][part] = sum(info.seconds[phase] for phase in phases)
    if runs:
        row |= {key: median(run[key] for run in runs) for key in runs[0]}
        row["residual"] = measures.dense_residual(A, *result)
        row["orthogonality"] = measures.orthogonality(result.U, result.Vh)
    _show(row)
    return row


def _show(row):
    print(f"{row['n']:>6} {row['method']:<8}", end="")
    if "total" not in row:
        print("  not run, the time is up", flush=True)
        return
    for part in ("bidiagonalisation", "diagonalisation"):
        print(f"{row[part]:>9.4f}{row[f'published_{part}']:>9.3f}", end="")
    print(
        f"{row['back']:>9.4f}{row['total']:>9.4f}{row['published_total']:>9.3f}"
        f"{row['residual']:>10.3f}{row['orthogonality']:>9.3f}",
        flush=True,
    )
