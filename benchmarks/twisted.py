"""Vectors by twisted factorisations on the GPU, beside divide and conquer, against targets.

Times are those of the device's work unless they are called end to end; those of values alone are of
whole calls. Arrays are PyTorch's, on the device, so that large results need no room on the host.
"""

import functools
from statistics import median

import numpy as np

from benchmarks import bars
from benchmarks.cases import CLASSES
from benchmarks.dense import release
from benchmarks.group import Group, Part
from benchmarks.timing import calls_on_device, solve, touched
from testing import families

DEVICE = "cuda"
BOTH = ("toeplitz", "chi")

# Order, and target in seconds.
SINGLE = (
    *((1024, 1.5e-3), (2048, 2.4e-3), (4096, 5e-3), (10_000, 15e-3)),
    *((16_384, 28e-3), (32_768, 80e-3), (65_536, 320e-3)),
)
LARGEST_DC = 16_384  # divide and conquer is measured up to this order
LARGEST_IN_GRAM = 16_384  # all products of vectors are checked up to this order
PROBES = 4

FAMILIES_ORDER, FAMILIES_TARGET, FAMILIES_RUNS = 4096, 1.1, 12
HOST_ORDER, HOST_TARGETS = 10_000, {"touched": 45e-3, "fresh": 60e-3}
RANGES, RANGE = ((10_000, 2e-3), (1_000_000, 150e-3)), 100
VALUES = ((10_000, 3.5e-3), (100_000, 150e-3), (1_000_000, 4.0))
PARTS = {"single": "", "range": f", {RANGE} largest", "values": ", values alone"}
OPTIONS = {
    "single": {},
    "range": {"select": "i", "select_range": (0, RANGE - 1)},
    "values": {"compute_uv": False},
}


def _cases(run):
    """Functions that measure a case."""
    for n, target in SINGLE:
        for family in BOTH:
            yield functools.partial(_double, "single", family, n, target, 9 if n < 5000 else 3)
    for n, target in RANGES:
        for family in BOTH:
            yield functools.partial(_double, "range", family, n, target, 3)
    for n, target in VALUES:
        for family in CLASSES:
            yield functools.partial(_double, "values", family, n, target, 9 if n < 50_000 else 1)
    for double in list(run.records["cases"]):
        yield functools.partial(_single, double)
    for family in BOTH:
        for where in HOST_TARGETS:
            yield functools.partial(_host, family, where)
    for family in sorted(families.FAMILIES):
        if any(x.any() for x in families.make(family, FAMILIES_ORDER)):
            yield functools.partial(_family, family)


def _given(family, n, dtype=np.float64):
    import torch

    return [torch.from_numpy(x).to(DEVICE) for x in families.make(family, n, dtype)]


def _double(group, family, n, target, count):
    d, e = _given(family, n)
    found, info, device, total = calls_on_device(d, e, count, **OPTIONS[group])
    if group == "values":
        return _case(group, family, n, target, total, info)
    case = _case(group, family, n, target, device, info)
    case |= {"end_to_end": median(total), "orthogonality": _orthogonality(found)}
    found = None
    release()
    if group == "single" and n <= LARGEST_DC:
        case["dc"] = median(calls_on_device(d, e, 3, method="dc")[2])
        release()
    return case


def _single(double):
    """The same as a case in float64, whose time is the target, in float32."""
    group, family, n = double["group"], double["family"], double["n"]
    given, target, count = _given(family, n, np.float32), double["device"], len(double["seconds"])
    try:
        _, info, device, total = calls_on_device(*given, count, **OPTIONS[group])
        seconds = total if group == "values" else device
        return _case(f"{group}, float32", family, n, target, seconds, info)
    except MemoryError as error:  # divide and conquer has no room for what twisted refuses
        failed = {"failed": str(error).splitlines()[0]}
        return _case(f"{group}, float32", family, n, target, []) | failed
    finally:
        release()


def _orthogonality(found):
    """From all products of vectors, or of large matrices from a few probes, row by row."""
    import torch

    n, k = found.L.shape
    worst = 0.0
    for vectors in (found.L.T, found.R):
        if n <= LARGEST_IN_GRAM:
            gram = vectors @ vectors.T
            gram.diagonal().sub_(1)
            worst = max(worst, gram.abs().max().item())
            del gram
        else:
            x = torch.randn(k, PROBES, dtype=vectors.dtype, device=DEVICE)
            off = vectors @ (vectors.T @ x) - x
            worst = max(worst, (off.norm(dim=1) / PROBES**0.5).max().item())
    return worst / ((n + 8) * 2.0**-52)


def _host(family, where):
    d, e = families.make(family, HOST_ORDER)
    out = touched(HOST_ORDER) if where == "touched" else None
    runs = [solve(d, e, device=DEVICE, out=out) for _ in range(6)][1:]
    case = _case(where, family, HOST_ORDER, HOST_TARGETS[where], [x["device"] for x in runs])
    return case | {"end_to_end": median(x["end_to_end"] for x in runs)}


def _family(family):
    """A family of the tests by "auto", and by both methods."""
    d, e = _given(family, FAMILIES_ORDER)
    _, info, device, _ = calls_on_device(d, e, FAMILIES_RUNS)
    case = _case("family", family, FAMILIES_ORDER, None, device, info)
    for method in ("dc", "twisted"):
        _, info, device, _ = calls_on_device(d, e, FAMILIES_RUNS, method=method)
        case[method] = min(device) if info.method == method else None
    return case | {"auto": min(case["seconds"])}


def _case(group, family, n, target, device, info=None):
    return {
        "group": group,
        "family": family,
        "n": n,
        "target": target,
        "device": median(device) if device else None,
        "seconds": device,
        "method": info.method if info is not None else None,
    }


def _bars(run):
    asked, cases = [], run.records["cases"]
    for case in cases:
        where = f"{case['family']}, n = {case['n']:,}"
        group, _, single = case["group"].partition(", ")
        if group in PARTS:
            what = where + PARTS[group] + (single and f", {single}")
            asked.append(bars.at_most(what, case["target"], case["device"]))
        elif case["group"] in HOST_TARGETS:
            where = f"{where}, end to end, {case['group']}"
            asked.append(bars.at_most(where, case["target"], case["end_to_end"]))
        else:
            best = min(case[key] for key in ("dc", "twisted") if case[key] is not None)
            asked.append(
                bars.at_most(f"{where}: auto / best", FAMILIES_TARGET, case["auto"] / best, "×")
            )
    return [*asked, bars.largest("orthogonality", 3, cases, "orthogonality")]


GROUP = Group(
    files={"cuda": "twisted"},
    parts=[
        Part(
            "cases",
            _cases,
            lambda run, case: case(),
            "group:<16 family:<24 n device:s method dc:s end_to_end:s orthogonality:.4f",
            head="medians; orthogonality in units of (n + 8) eps, bound 3",
        )
    ],
    bars=_bars,
)
