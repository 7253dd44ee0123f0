"""What a call takes beside the device's own work: the way of arrays to and from the device.

Results in NumPy arrays whose pages exist ("touched"), new ones ("fresh") and pinned ones; and
arrays of PyTorch that are on the device and stay there. The results of one input must be the same
bits wherever they go.
"""

import functools
import importlib.util
from statistics import median

import numpy as np

import tsvd
from benchmarks import bars, timing
from benchmarks.group import Group, Part
from testing import families

DEVICE = "cuda"
REPEATS = 7

# Calls on device arrays take less than a processor's naps: of many the median is steady.
BRIEF_REPEATS = 50
LARGE = 10_000
BATCH = (100_000, 32)

# Family, order, where the results go, and the target in seconds.
SINGLE = (
    ("chi", LARGE, "touched", 62e-3),
    ("chi", LARGE, "fresh", 72e-3),
    ("chi", LARGE, "pinned", 60e-3),
    ("toeplitz", LARGE, "touched", 76e-3),
    ("uniform_1", LARGE, "touched", None),
    ("chi", 4096, "touched", None),
    ("chi", 2048, "touched", None),
)
BATCH_TARGET, BATCH_VALUES_TARGET = 45e-3, 12e-3

# Orders of device arrays, and the targets: seconds beside the device's work, and of a small call.
ON_DEVICE = (256, 1024, LARGE)
BESIDE_TARGET = 0.3e-3
SMALL, SMALL_TARGET = 32, 0.25e-3


def _cases(run):
    """Functions that measure a case."""
    if importlib.util.find_spec("torch"):
        for n in (SMALL, *ON_DEVICE):
            yield functools.partial(_on_device, n)
    for case in SINGLE:
        yield functools.partial(_single, *case)
    yield _batch
    yield _batch_values


def _shapes(n, batch=()):
    return (*batch, n, n), (*batch, n), (*batch, n, n)


def _pinned(n):
    import torch

    return tuple(
        torch.empty(shape, dtype=torch.float64, pin_memory=True).numpy() for shape in _shapes(n)
    )


def _single(family, n, where, target):
    d, e = families.make(family, n)
    expected = solve_arrays(d, e, tuple(np.ones(shape) for shape in _shapes(n)))
    out = {"fresh": lambda n: None, "touched": timing.touched, "pinned": _pinned}[where](n)
    runs = [timing.solve(d, e, device=DEVICE, out=out) for _ in range(REPEATS + 1)][1:]
    found = solve_arrays(d, e, out)
    return _case(
        f"{family}, n = {n}, {where}",
        target,
        [run["end_to_end"] for run in runs],
        [run["device"] for run in runs],
        _same(expected, found),
    )


def solve_arrays(d, e, out):
    return tuple(tsvd.svd(d, e, device=DEVICE, out=out))


def _same(expected, found):
    return all(np.array_equal(x, y) for x, y in zip(expected, found, strict=True))


def _random(count, n):
    rng = np.random.default_rng(n)
    return rng.random((count, n)), rng.random((count, n - 1))


def _batch():
    count, n = BATCH
    d, e = _random(count, n)
    out = tuple(np.ones(shape) for shape in _shapes(n, (count,)))
    runs = [timing.solve(d, e, device=DEVICE, out=out) for _ in range(REPEATS + 1)][1:]
    few = 50
    alone = solve_arrays(d[:few], e[:few], None)
    return _case(
        f"{count:,} of n = {n}, touched",
        BATCH_TARGET,
        [run["end_to_end"] for run in runs],
        [run["device"] for run in runs],
        _same(alone, [x[:few] for x in out]),
    )


def _batch_values():
    count, n = BATCH
    d, e = _random(count, n)
    runs = [timing.solve(d, e, device=DEVICE, compute_uv=False) for _ in range(REPEATS + 1)][1:]
    found = tsvd.svdvals(d, e, device=DEVICE)[:50]
    return _case(
        f"{count:,} of n = {n}, values alone, NumPy in and out",
        BATCH_VALUES_TARGET,
        [run["end_to_end"] for run in runs],
        [0.0],
        np.array_equal(found, tsvd.svdvals(d[:50], e[:50], device=DEVICE)),
    )


def _on_device(n):
    """Arrays of PyTorch, from the call to the end of all its work on the device."""
    import torch

    d, e = families.make("chi", n)
    given = [torch.from_numpy(x).to(DEVICE) for x in (d, e)]
    repeats = REPEATS if n == LARGE else BRIEF_REPEATS
    found, _, device, seconds = timing.calls_on_device(*given, repeats, repeats)
    expected = solve_arrays(d, e, None)
    same = _same(expected, [x.cpu().numpy() for x in found])
    target = SMALL_TARGET if n == SMALL else None
    return _case(f"chi, n = {n}, on the device", target, seconds, device, same)


def _case(what, target, seconds, device, same):
    return {
        "what": what,
        "target": target,
        "end_to_end": median(seconds),
        "end_to_end_seconds": seconds,
        "device": median(device),
        "same_bits": same,
    }


def _bars(run):
    cases = run.records["cases"]
    asked = [
        bars.at_most(case["what"], case["target"], case["end_to_end"])
        for case in cases
        if case["target"] is not None
    ]
    beside = {f"chi, n = {n}, on the device" for n in ON_DEVICE}
    for case in cases:
        if case["what"] in beside:
            seconds = case["end_to_end"] - case["device"]
            asked.append(bars.at_most(f"{case['what']}: beside its work", BESIDE_TARGET, seconds))
    wrong = sum(not case["same_bits"] for case in cases)
    return [*asked, bars.at_most("results that are not the same bits", 0, wrong, "")]


GROUP = Group(
    files={"cuda": "transfers"},
    parts=[
        Part(
            "cases",
            _cases,
            lambda run, case: case(),
            "what:<44 end_to_end:s device:s same_bits",
            head="medians; device: the work on the device, where it is measured",
        )
    ],
    bars=_bars,
    contents=lambda run: {"repeats": REPEATS},
)
