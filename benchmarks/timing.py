"""Timing of contenders in turns, of single calls of tsvd, and arrays to fill.

Contenders take turns so that a slow minute of the machine affects all of them equally.
"""

import functools
import math
import time
import timeit
from statistics import median

import numpy as np

import tsvd

SAMPLE = 0.02  # seconds that one timing takes at least; it repeats fast calls

# The threads of OpenMP and OpenBLAS spin for some 25 ms after their work. Without a pause they
# would take cores from the next contender. After the pause a short call is first made without being
# timed: a virtual machine takes milliseconds to wake a processor.
PAUSE = 0.05
WOKEN_BELOW = 0.2


def interleaved(contenders, repeats):
    """Seconds per call: name -> `repeats` timings, for functions without arguments."""
    timers, calls, once = {}, {}, {}
    for name, function in contenders.items():
        timers[name] = timeit.Timer(function)
        timers[name].timeit(1)  # the first call loads libraries and touches memory
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


def alternated(contenders, seconds, least=5):
    """As interleaved(), but call by call and without pauses: for work on a GPU, whose clock falls.

    seconds: that all calls take together, about. least: calls of each contender, at least.
    """
    once = 0
    for function in contenders.values():
        function()
        once += timeit.timeit(function, number=1)
    rounds = max(least, min(101, math.ceil(seconds / once)))
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, function in contenders.items():
            times[name].append(timeit.timeit(function, number=1))
    return times


def solve(d, e, **options):
    """Times one call of tsvd.svd: end to end, on the device, by phases; and what deflated."""
    start = time.perf_counter()
    _, info = tsvd.svd(d, e, full_output=True, **options)
    return {
        "end_to_end": time.perf_counter() - start,
        "device": info.seconds["device"],
        "phases": dict(info.seconds),
        "deflated": info.deflated,
    }


def calls_on_device(d, e, count, before=1, **options):
    """Calls of tsvd.svd with PyTorch's arrays on the device, to the end of all their work there.

    Returns results and facts of the last call; of `count` calls, after some more, the seconds of
    the work on the device and of the whole call.
    """
    import torch

    device, total = [], []
    for _ in range(before + count):
        found = None
        torch.cuda.synchronize()
        start = time.perf_counter()
        found, info = tsvd.svd(d, e, full_output=True, **options)
        torch.cuda.synchronize()
        total.append(time.perf_counter() - start)
        device.append(info.seconds["device"])
    return found, info, device[before:], total[before:]


def both_times(runs, prefix=""):
    """The times on the device and end to end of several solve() calls, and their medians."""
    case = {}
    for key in ("device", "end_to_end"):
        case[f"{prefix}{key}_seconds"] = [run[key] for run in runs]
        case[f"{prefix}{key}"] = median(case[f"{prefix}{key}_seconds"])
    return case


@functools.lru_cache(maxsize=1)
def touched(n):
    """L, s, R to fill, written to so that their pages exist; kept until n changes."""
    return np.ones((n, n)), np.ones(n), np.ones((n, n))
