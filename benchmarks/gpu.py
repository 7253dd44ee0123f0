"""The pipeline of Givens rotations on the GPU against time limits; the rate of the download."""

import re
import time
from statistics import median

import numpy as np

import tsvd
from benchmarks import cuda
from benchmarks.group import Group, Part
from benchmarks.published_data import MAX_SWEEPS, published_and_remade
from benchmarks.timing import touched
from testing import families

EPS = 1e-8
REPEATS = 3

# Time limits in seconds on one H200 for d and e uniform in [0,1]. For each range the factor by
# which its limits are longer.
ASKED = {500: 0.1, 1000: 0.3, 5000: 5.0, 10000: 20.0}
RANGES = {"[0,1]": 1, "[0,1000]": 4}


def _cases(run):
    """Order, limit, published row, and that of the published kernel on the same card."""
    published, remade = published_and_remade()
    for n, asked in ASKED.items():
        for row in published["by_size_and_range"][str(n)]["rows"]:
            if row["range"] in RANGES:
                same_card = remade.get((n, row["range"]), {})
                yield n, asked * RANGES[row["range"]], row, same_card


def _measure(run, case):
    n, asked, published, remade = case
    interval = published["range"]
    d, e = families.make(f"uniform_{interval.strip('[]').split(',')[1]}", n)
    case = {
        "n": n,
        "range": interval,
        "asked": asked,
        "published": published["milliseconds"] / 1e3,
        "same_card": remade["milliseconds"] / 1e3 if remade.get("milliseconds") else None,
        "same_card_note": remade.get("note"),
    }
    try:
        runs = sorted((_solve(d, e) for _ in range(REPEATS)), key=lambda run: run["seconds"])
        case |= runs[REPEATS // 2]
        measured = cuda.errors(d, e, *touched(n))
        case["orthogonality"] = measured["orthogonality"]
        case["max_error_in_eps"] = measured["max_error"] / EPS
        case["within"] = case["seconds"] <= asked
    except np.linalg.LinAlgError as error:
        case |= {"failed": str(error), "within": False}
    return case


def _solve(d, e):
    start = time.perf_counter()
    _, info = tsvd.svd(
        d,
        e,
        method="givens",
        eps=EPS,
        device="cuda",
        max_sweeps=MAX_SWEEPS,
        out=touched(len(d)),
        full_output=True,
    )
    return {
        "seconds": time.perf_counter() - start,
        "iterate": info.seconds["iterate"],
        "vectors": info.seconds["vectors"],
        "sweeps": info.sweeps,
        "iterations": info.iterations,
        "iterations_saved": info.iterations_saved,
        "rotations": info.rotations,
    }


def _download(run, n):
    """The rate at which L and R come to the host. A zero matrix leaves nothing else to do."""
    d, e, out = np.zeros(n), np.zeros(n - 1), touched(n)
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        tsvd.svd(d, e, method="givens", device="cuda", out=out)
        seconds.append(time.perf_counter() - start)
    size = out[0].nbytes + out[2].nbytes
    download = {
        "n": n,
        "bytes": size,
        "seconds": median(seconds),
        "rate": size / median(seconds),
        "pinned_rate": size / cuda.pinned_seconds(size, REPEATS),
    }
    download["ratio"] = download["rate"] / download["pinned_rate"]
    return download


def _counts(path):
    """The counts in pytest's closing line, such as {"passed": 12}; {} if there is none.

    path: a file that ends with that line, or None.
    """
    if not path:
        return None
    closing = [line for line in path.read_text().splitlines() if re.search(r" in [\d.]+s", line)]
    words = "passed|failed|skipped|deselected|xfailed|xpassed|errors?|warnings?"
    counts = re.findall(rf"(\d+) ({words})", closing[-1]) if closing else []
    return {word: int(number) for number, word in counts}


GROUP = Group(
    files={"cuda": "gpu"},
    parts=[
        Part(
            "cases",
            _cases,
            _measure,
            "n range seconds:s asked:s within iterate:s same_card:s published:s "
            "max_error_in_eps:.2f orthogonality:.2f",
            head=f'method="givens", eps={EPS:g}, to touched arrays, median of {REPEATS}',
        ),
        Part(
            "downloads",
            lambda run: ASKED,
            _download,
            "n bytes:, seconds:s rate:.3g pinned_rate:.3g ratio:.2f",
        ),
    ],
    contents=lambda run: {"eps": EPS, "repeats": REPEATS, "tests": _counts(run.options.tests)},
    prepare=lambda run: _solve(*families.make("uniform_1", 600)),
)
