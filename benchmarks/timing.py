"""Interleaved timing: a slow minute of the machine hits every contender alike; arrays to fill."""

import functools
import math
import time
import timeit

import numpy as np

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


@functools.lru_cache(maxsize=1)
def touched(n):
    """L, s, R to be filled, with pages that exist already; kept until another n is asked for."""
    return np.ones((n, n)), np.ones(n), np.ones((n, n))
