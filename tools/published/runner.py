"""Repeats the published tables of the pipeline of Givens rotations, by method="givens".

These are tables 3.1 to 3.13 of Semylitko's thesis (benchmarks/data/README.md). The GPU repeats all
of them, the CPU those of small matrices. The published matrices are lost: ours are drawn from the
same ranges, so the figures agree in order of magnitude, not in digits. The table of dense matrices
follows, see dense.py, and those of Jacobi and of inverses, see neighbours.py.
"""

import csv
import time
from dataclasses import dataclass
from statistics import mean

import numpy as np

import tsvd
from benchmarks.errors import errors
from benchmarks.published_data import MAX_SWEEPS, published_and_remade
from benchmarks.timing import touched
from testing import families, results
from tools.published import dense, neighbours

LONGEST = 20  # seconds that one matrix may take
DENSE_SECONDS = 60  # for dense matrices, beyond those of the run
NEIGHBOUR_SECONDS = 120  # for the tables of others, beyond these

# Orders of the three kinds of tables: by range, by eps, by number of threads.
ORDERS = {
    "cpu": ((20, 50, 100, 200), (200,), ()),
    "cuda": ((20, 50, 100, 200, 500, 1000, 5000, 10000), (200, 500, 1000), (500, 1000)),
}

COLUMNS = (  # title, key, width, format
    ("n", "n", 5, "d"),
    ("range", "range", 9, "s"),
    ("eps", "eps", 7, "g"),
    ("threads", "threads", 8, "d"),
    ("it. publ.", "published_iterations", 14, ",d"),
    ("it. rebuilt", "remade_iterations", 12, ",d"),
    ("it. tsvd", "iterations", 14, ",.0f"),
    ("ms publ.", "published_milliseconds", 11, ",d"),
    ("rebuilt", "remade_milliseconds", 10, ",.1f"),
    ("device", "device_milliseconds", 9, ",.1f"),
    ("in all", "milliseconds", 9, ",.1f"),
    ("error/eps", "max_error_in_eps", 11, ".2f"),
    ("orthog.", "orthogonality", 9, ".2f"),
)


@dataclass
class Setting:
    device: str
    matrices: int  # how many of an order up to 1000; fewer of larger ones
    until: float  # time.monotonic() at which the run ends


def run(path, threads, device, matrices, seconds):
    """Writes `path`, and beside it a CSV file for each kind of table."""
    load = results.load()
    published, remade = published_and_remade()
    setting = Setting(device, matrices, time.monotonic() + seconds)
    by_size, by_eps, by_threads = ORDERS[device]
    _solve(setting, *families.make("uniform_1", 600), 1e-8, {})  # loads the kernels
    print(
        "it.: iterations, means; publ.: published; rebuilt: the published kernel on one H200;\n"
        "device: work and download; in all: from d and e to arrays touched before\n\n"
        + "".join(f"{title:>{width}}" for title, _, width, _ in COLUMNS)
    )
    tables = {
        "by_size": [
            _row(setting, n, row["range"], 1e-8, row, remade.get((n, row["range"]), {}))
            for n in by_size
            for row in published["by_size_and_range"][str(n)]["rows"]
        ],
        # The range was not published for the next two kinds.
        "by_eps": [
            _row(setting, n, "[0,1]", row["eps"], row)
            for n in by_eps
            for row in published["by_eps"][str(n)]
        ],
        "by_threads": [
            _row(setting, n, "[0,1]", 1e-8, row, threads=row["threads"])
            for n in by_threads
            for row in published["by_threads"][str(n)]
        ],
        "dense": dense.rows(device, setting.until + DENSE_SECONDS),
    }
    until = setting.until + DENSE_SECONDS + NEIGHBOUR_SECONDS
    for name, study in neighbours.STUDIES.items():
        tables[name] = neighbours.rows(study, device, until)
    results.write(path, threads, load, device=device, published_by=published["source"], **tables)
    for name, rows in tables.items():
        if rows:
            _write_csv(path.with_name(f"{path.stem}_{name}.csv"), rows)


def _row(setting, n, interval, eps, published, remade=None, threads=None):
    """The means and the largest errors over the matrices that were finished.

    remade: figures of the published kernel on one H200. threads: threads of the pipeline; if
    given, the matrix is kept whole, as in the published method.
    """
    remade = remade or {}
    high = interval.strip("[]").split(",")[1]
    tuning = {} if threads is None else {"block_threads": threads, "split": 0}
    runs = []
    for k in range(setting.matrices if n <= 1000 else max(1, setting.matrices * 2000 // n)):
        if time.monotonic() < setting.until:
            d, e = families.make(f"uniform_{high}", n, seed=k)
            runs.append(_solve(setting, d, e, eps, tuning))
    done = [run for run in runs if isinstance(run, dict)]
    failed = [run for run in runs if isinstance(run, str)]
    row = {"n": n, "range": interval, "eps": eps, "threads": threads, "matrices": len(runs)}
    for key in ("iterations", "iterations_saved", "sweeps", "milliseconds", "device_milliseconds"):
        row[key] = mean(run[key] for run in done) if done else None
    for key in ("max_error", "orthogonality"):
        row[key] = max((run[key] for run in done), default=None)
    row |= {
        "max_error_in_eps": row["max_error"] / eps if done else None,
        "published_iterations": published.get("iterations"),
        "published_milliseconds": published["milliseconds"],
        "published_error": published.get("max_error"),
        "remade_iterations": remade.get("iterations"),
        "remade_milliseconds": remade.get("milliseconds"),
        "remade_note": remade.get("note"),
        "failed": "; ".join(f"{failed.count(why)} {why}" for why in sorted(set(failed))),
    }
    cells = (
        f"{'' if row[key] is None else format(row[key], spec):>{width}}"
        for _, key, width, spec in COLUMNS
    )
    print("".join(cells), row["failed"] if runs else "not run, the time is up", flush=True)
    return row


def _solve(setting, d, e, eps, tuning):
    """The time, counts and errors of one matrix, or the reason why it was not finished."""
    start = time.monotonic()
    end = min(start + LONGEST, setting.until)

    def stop(done):
        if time.monotonic() > end:
            raise TimeoutError

    try:
        (L, s, R), info = tsvd.svd(
            d,
            e,
            method="givens",
            eps=eps,
            device=setting.device,
            max_sweeps=MAX_SWEEPS,
            out=touched(len(d)),
            progress=stop,
            tuning=tuning,
            full_output=True,
        )
    except np.linalg.LinAlgError:
        return f"not converged in {MAX_SWEEPS:,} half sweeps"
    except TimeoutError:
        return f"stopped after {end - start:.0f} s"
    seconds = time.monotonic() - start
    measured = errors(setting.device, d, e, L, s, R)
    return {
        "milliseconds": seconds * 1e3,
        "device_milliseconds": (info.seconds["iterate"] + info.seconds["vectors"]) * 1e3,
        "iterations": info.iterations,
        "iterations_saved": info.iterations_saved,
        "sweeps": info.sweeps,
        "max_error": measured["max_error"],
        "orthogonality": measured["orthogonality"],
    }


def _write_csv(path, rows):
    rows = [_flat(row) for row in rows]
    columns = dict.fromkeys(key for row in rows for key in row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"written: {path}")


def _flat(row, prefix=""):
    """A row with columns in the place of nested dictionaries, such as seconds.cpu."""
    flat = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
