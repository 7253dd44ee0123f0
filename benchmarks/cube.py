"""The values of large dense matrices, beside the cube of the time of half their size.

    python -m benchmarks sweep [--device cuda] --group cube

The rule for every size: a time is at most CUBE_LIMIT times what the cube makes of that of half the
size. On the GPU cuSOLVER's gesvdp is beside it, which makes all vectors. What does not fit, or
would end too late, is noted.
"""

import time

import numpy as np

from benchmarks import bars
from benchmarks.sweep import CUBE_LIMIT, DTYPES, Timer, on, release
from testing import results
from tsvd import linalg

CUBES = {
    "cpu": dict.fromkeys(DTYPES, (256, 500, 512, 513, 724, 1000, 1024, 1025, 1448, 2000)),
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


def run(path, threads, device, seconds):
    """Writes `path`. The exit status is 0 if the rule holds, and gesvdp takes longer."""
    load = results.load()
    timer, until = Timer(device, threads), time.monotonic() + seconds
    print(f"{'values alone':<24}{'seconds':>10}{'half':>10}{'/ cube':>8}")
    cases, peers = [], []
    for dtype in DTYPES:
        _values_seconds(timer, dtype, WARM_ORDER)
        known = {}
        for n in CUBES[device][dtype]:
            cases.append(_show(_case(timer, dtype, n, known, until)))
        if device != "cpu" and dtype == "float64":
            peers.append(_beside_gesvdp(timer, known.get(PEER_ORDER), until))
    return bars.conclude(
        path, threads, load, _bars(cases, peers), device=device, cases=cases, peers=peers
    )


def _case(timer, dtype, n, known, until):
    """known: order -> seconds, which is added to."""
    case = {"n": n, "half": n // 2, "dtype": dtype, "note": None}
    expected = max((seconds * (n / m) ** 3 for m, seconds in known.items()), default=0)
    if time.monotonic() + 1.2 * expected > until:
        return case | {"note": "the time is up"}
    try:
        for order in (n // 2, n):
            if order not in known:
                known[order] = _values_seconds(timer, dtype, order)
        if _over_cube(n, known) > CUBE_LIMIT and time.monotonic() + 1.2 * known[n] < until:
            for order in (n // 2, n):
                known[order] = min(known[order], _values_seconds(timer, dtype, order))
    except (MemoryError, RuntimeError) as error:  # of PyTorch too
        release(timer.device)
        return case | {"note": f"{error}".splitlines()[0][:200]}
    return case | {
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


def _beside_gesvdp(timer, values, until):
    """values: our seconds for values alone; None if they were not measured."""
    from benchmarks import cusolver

    peer = {"n": PEER_ORDER, "dtype": "float64", "values": values, "note": None}
    if time.monotonic() + 5 * (values or 0) > until:
        return peer | {"note": "the time is up"}
    try:
        cusolver.gesvdp(_matrix(timer.device, "float64", WARM_ORDER))
        A = _matrix(timer.device, "float64", PEER_ORDER)
        peer["vectors"] = _least(timer, lambda: linalg.svd(A))
        release(timer.device)
        peer["gesvdp"] = _least(timer, lambda: cusolver.gesvdp(A.clone()))
    except Exception as error:  # another library may raise anything
        peer["note"] = f"{error}".splitlines()[0][:200]
    ours, theirs = (peer.get(key, float("nan")) for key in ("vectors", "gesvdp"))
    said = f"all vectors {ours:.3f} s, gesvdp {theirs:.3f} s {peer['note'] or ''}"
    print(f"n = {PEER_ORDER:,}: {said}", flush=True)
    return peer


def _show(case):
    where = f"n = {case['n']:,}, {case['dtype']}"
    said = f"  {case['note']}"
    if not case["note"]:
        said = f"{case['seconds']:>10.4f}{case['half_seconds']:>10.4f}{case['over_cube']:>8.2f}"
    print(f"{where:<24}{said}", flush=True)
    return case


def _bars(cases, peers):
    asked = []
    for case in cases:
        where = f"n = {case['n']:,}, {case['dtype']}, beside the cube of half"
        asked.append(bars.at_most(where, CUBE_LIMIT, case.get("over_cube"), "×"))
    for peer in peers:
        for key, what in (("values", "values alone"), ("vectors", "all vectors")):
            ours, theirs = peer.get(key), peer.get("gesvdp")
            ratio = theirs / ours if ours and theirs else None
            asked.append(bars.at_least(f"n = {peer['n']:,}, gesvdp over {what}", 1.0, ratio))
    return asked
