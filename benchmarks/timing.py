"""Interleaved timing, so that a slow minute of the machine hits every contender alike; single calls
of ours; arrays to fill."""

import functools
import math
import time
import timeit
from statistics import median

import numpy as np

import tsvd

SAMPLE = 0.02  # seconds that one timing lasts at least; fast calls are repeated within it

# OpenMP's and OpenBLAS's threads spin for some 25 ms after their work; without a pause
# they would take the next contender's cores.  After it a short call is made once without being
# timed: a virtual machine takes milliseconds to wake a processor that slept.
PAUSE = 0.05
WOKEN_BELOW = 0.2


def interleaved(contenders, repeats):
    """Seconds per call: name -> `repeats` timings, for functions without arguments."""
    timers, calls, once = {}, {}, {}
    for name, function in contenders.items():
        timers[name] = timeit.Timer(function)
        timers[name].timeit(1)  # first calls load libraries and touch memory
        once[name] = timers[name].timeit(1)
        calls[name] = max(1, math.ceil(SAMPLE / max(once[name], 1e-7)))
    seconds = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, timer in timers.items():
            time.sleep(PAUSE)
            if once[name] < WOKEN_BELOW:
                timer.timeit(1)
            seconds[name].append(timer.timeit(calls[name]) / calls[name])
    return seconds


def solve(d, e, **options):
    """One call of tsvd.svd: its seconds end to end, on the device and by phases; what deflated."""
    start = time.perf_counter()
    _, info = tsvd.svd(d, e, full_output=True, **options)
    return {
        "end_to_end": time.perf_counter() - start,
        "device": info.seconds["device"],
        "phases": dict(info.seconds),
        "deflated": info.deflated,
    }


def both_times(runs, prefix=""):
    """Of calls of solve() the seconds on the device and end to end, all and medians, for a case."""
    case = {}
    for key in ("device", "end_to_end"):
        case[f"{prefix}{key}_seconds"] = [run[key] for run in runs]
        case[f"{prefix}{key}"] = median(case[f"{prefix}{key}_seconds"])
    return case


@functools.lru_cache(maxsize=1)
def touched(n):
    """L, s, R to be filled, with pages that exist already; kept until another n is asked for."""
    return np.ones((n, n)), np.ones(n), np.ones((n, n))
