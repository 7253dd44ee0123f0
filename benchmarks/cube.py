"""The values of large dense matrices, beside the cube of the time of half their size.

    python -m benchmarks sweep [--device cuda] --group cube

The rule for every size: a time is at most CUBE_LIMIT times what the cube makes of that of half the
size. On the GPU cuSOLVER's gesvdp is beside it, which makes all vectors. What does not fit, or
would end too late, is noted.
"""

import numpy as np

from benchmarks import bars
from benchmarks.group import Group, Part
from benchmarks.sweep import CUBE_LIMIT, REAL, Timer, on, release
from tsvd import linalg

CUBES = {
    "cpu": dict.fromkeys(REAL, (256, 500, 512, 513, 724, 1000, 1024, 1025, 1448, 2000)),
    "cuda": {
        "float64": (8192, 10_000, 10_240, 10_241, 12_288, 14_000, 16_384, 20_480, 24_576),
        "float32": (
            *(8192, 10_000, 10_240, 10_241, 12_288, 14_000, 16_384),
            *(20_480, 20_481, 24_576, 28_000, 32_768, 40_960),
        ),
    },
}
PEER_ORDER = 16_384  # of gesvdp
WARM_ORDER = 300  # the first call loads kernels and libraries
OFTEN, TWICE = 0.5, 2.0  # seconds; calls that take longer are made twice, or once


def _cases(dtype):
    """Timer, type, order, and the seconds so far by order."""

    def cases(run):
        timer, known = Timer(run.device, run.threads), {}
        _values_seconds(timer, dtype, WARM_ORDER)
        for n in CUBES[run.device][dtype]:
            yield timer, dtype, n, known

    return cases


def _measure(run, case):
    timer, dtype, n, known = case
    record = {"n": n, "half": n // 2, "dtype": dtype, "note": None}
    expected = max((seconds * (n / m) ** 3 for m, seconds in known.items()), default=0)
    if 1.2 * expected > run.left():
        return record | {"note": "the time is up"}
    try:
        for order in (n // 2, n):
            if order not in known:
                known[order] = _values_seconds(timer, dtype, order)
        if _over_cube(n, known) > CUBE_LIMIT and 1.2 * known[n] < run.left():
            for order in (n // 2, n):
                known[order] = min(known[order], _values_seconds(timer, dtype, order))
    except (MemoryError, RuntimeError) as error:  # of PyTorch too
        release(timer.device)
        return record | {"note": f"{error}".splitlines()[0][:200]}
    return record | {
        "seconds": known[n],
        "half_seconds": known[n // 2],
        "over_cube": _over_cube(n, known),
    }


def _over_cube(n, known):
    return known[n] / (known[n // 2] * (n / (n // 2)) ** 3)


def _matrix(device, dtype, n):
    if device == "cpu":
        return np.random.default_rng(n).standard_normal((n, n), dtype)
    import torch

    release(device)
    return torch.randn(n, n, dtype=getattr(torch, dtype), device="cuda")


def _values_seconds(timer, dtype, n):
    A = _matrix(timer.device, dtype, n)
    return _least(timer, lambda: linalg.svdvals(A, device=on(timer.device)))


def _least(timer, call):
    """The least time of a few calls."""
    least = timer.seconds(call)
    for _ in range(3 if least < OFTEN else 1 if least < TWICE else 0):
        least = min(least, timer.seconds(call))
    return least


def _peers(run):
    return () if run.device == "cpu" else (PEER_ORDER,)


def _beside_gesvdp(run, n):
    """values: our seconds for values alone; None if they were not measured."""
    from benchmarks import cusolver

    timer = Timer(run.device, run.threads)
    values = next((case.get("seconds") for case in run.records["cases"] if case["n"] == n), None)
    peer = {"n": n, "dtype": "float64", "values": values, "note": None}
    if 5 * (values or 0) > run.left():
        return peer | {"note": "the time is up"}
    try:
        cusolver.gesvdp(_matrix(timer.device, "float64", WARM_ORDER))
        A = _matrix(timer.device, "float64", n)
        peer["vectors"] = _least(timer, lambda: linalg.svd(A))
        release(timer.device)
        peer["gesvdp"] = _least(timer, lambda: cusolver.gesvdp(A.clone()))
    except Exception as error:  # another library may raise anything
        peer["note"] = f"{error}".splitlines()[0][:200]
    return peer


def _bars(run):
    asked = []
    for case in run.records["cases"]:
        where = f"n = {case['n']:,}, {case['dtype']}, beside the cube of half"
        asked.append(bars.at_most(where, CUBE_LIMIT, case.get("over_cube"), "×"))
    for peer in run.records["peers"]:
        for key, what in (("values", "values alone"), ("vectors", "all vectors")):
            ours, theirs = peer.get(key), peer.get("gesvdp")
            ratio = theirs / ours if ours and theirs else None
            asked.append(bars.at_least(f"n = {peer['n']:,}, gesvdp over {what}", 1.0, ratio))
    return asked


COLUMNS = "n:, dtype seconds:s half_seconds:s over_cube:.2f"
GROUP = Group(
    files={"cpu": "cube_cpu", "cuda": "cube_cuda"},
    parts=[
        Part("cases", _cases("float64"), _measure, COLUMNS),
        Part("peers", _peers, _beside_gesvdp, "n vectors:s gesvdp:s"),
        Part("cases", _cases("float32"), _measure, COLUMNS),
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device},
    seconds=330,
)
