"""The pipeline of Givens rotations on the GPU against time limits; the rate of the download."""

import re
import time
from statistics import median

import numpy as np

import tsvd
from benchmarks import cuda
from benchmarks.published_data import MAX_SWEEPS, published_and_remade
from benchmarks.timing import touched
from testing import families, results

EPS = 1e-8
REPEATS = 3

# Time limits in seconds on one H200 for d and e uniform in [0,1]. For each range the factor by
# which its limits are longer.
ASKED = {500: 0.1, 1000: 0.3, 5000: 5.0, 10000: 20.0}
RANGES = {"[0,1]": 1, "[0,1000]": 4}


def run(path, threads, tests):
    """Writes `path`. The exit status is 0 if every time is within its limit.

    tests: a file that ends with pytest's closing line, or None.
    """
    load = results.load()
    published, remade = published_and_remade()
    _solve(*families.make("uniform_1", 600))  # loads the kernels
    print(
        f'method="givens", eps={EPS:g}, seconds from d and e to arrays touched before, '
        f"median of {REPEATS}\n\n"
        f"{'n':>6}{'range':>10}{'seconds':>10}{'limit':>8}{'':>6}{'iterate':>10}"
        f"{'same card':>11}{'published':>11}{'error/eps':>11}{'orthog.':>9}"
    )
    cases = []
    for n, asked in ASKED.items():
        for row in published["by_size_and_range"][str(n)]["rows"]:
            if row["range"] in RANGES:
                asked_here = asked * RANGES[row["range"]]
                same_card = remade.get((n, row["range"]), {})
                cases.append(_case(n, row["range"], asked_here, row, same_card))
    print(f"\n{'n':>6}{'bytes of L, R':>15}{'seconds':>10}{'GB/s':>7}{'pinned':>8}{'ratio':>7}")
    downloads = [_download(n) for n in ASKED]
    results.write(
        path,
        threads,
        load,
        eps=EPS,
        repeats=REPEATS,
        tests=_counts(tests) if tests else None,
        cases=cases,
        downloads=downloads,
    )
    return 0 if all(case["within"] for case in cases) else 1


def _case(n, interval, asked, published, remade):
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
    _show(case)
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


def _show(case):
    print(f"{case['n']:>6}{case['range']:>10}", end="")
    if "failed" in case:
        print(f"  {case['failed']}")
        return
    same_card = case["same_card_note"] or ""
    if case["same_card"]:
        same_card = f"{case['same_card']:.1f}"
    print(
        f"{case['seconds']:>10.4f}{case['asked']:>8g}{'' if case['within'] else 'OVER':>6}"
        f"{case['iterate']:>10.4f}{same_card:>11}{case['published']:>11.1f}"
        f"{case['max_error_in_eps']:>11.2f}{case['orthogonality']:>9.2f}",
        flush=True,
    )


def _download(n):
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
    print(
        f"{n:>6}{size:>15,}{download['seconds']:>10.4f}{download['rate'] / 1e9:>7.1f}"
        f"{download['pinned_rate'] / 1e9:>8.1f}{download['ratio']:>7.2f}"
    )
    return download


def _counts(path):
    """The counts in pytest's closing line, such as {"passed": 12}; {} if there is none."""
    closing = [line for line in path.read_text().splitlines() if re.search(r" in [\d.]+s", line)]
    words = "passed|failed|skipped|deselected|xfailed|xpassed|errors?|warnings?"
    counts = re.findall(rf"(\d+) ({words})", closing[-1]) if closing else []
    return {word: int(number) for number, word in counts}
