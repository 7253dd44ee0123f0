"""Looks for cliffs: times over sizes in steps of 1.2, each held against its neighbours.

    python -m benchmarks sweep [--device cuda] [--group GROUP]

GROUP is a group of curves or a type, such as complex128.

A curve is a call one of whose sizes grows. A model says how many operations f it has. From a size a
to the next one, b,

    step = (t_b / t_a) / max(1, f_b / f_a)        drop = t_a / t_b

A step over LIMIT is a cliff that the count does not explain. So is a drop: b has more to do, and
what makes it cheap would serve a as well. A time is the least of some calls. Where a step or drop
is over LIMIT, both sizes are timed again before it counts. Curves share the time: each ends with
its share.

Where f is a cube, the rule for every size holds too: a time is at most CUBE_LIMIT times what the
cube makes of that of half the size. benchmarks/cube.py looks at it around the largest sizes.

With one thread on the CPU times are those of the processor, which other work disturbs less. On the
GPU arrays are PyTorch's and stay on the device; times go from the call to the end of its work.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tsvd
from benchmarks import bars
from benchmarks.dense import gaussian
from benchmarks.group import Group, Part
from testing import families
from tsvd import linalg

RATIO = 1.2
LIMIT, CUBE_LIMIT = 1.4, 1.25
REAL, COMPLEX = ("float64", "float32"), ("complex128",)
FAMILIES = ("chi", "toeplitz", "uniform_1")

SAMPLE = 0.002  # seconds of a timing, in which a short call is repeated on the CPU
REPEATS, FEWER, LONG = 6, 2, 0.1  # timings; of calls over LONG seconds
LOOKS, MORE = 6, 3  # how often suspicious sizes are timed again, with how many times the timings

# Numbers that matrices are made of; a curve ends before it needs more.
NUMBERS = {"cpu": 1 << 23, "cuda": 1 << 27}
LARGEST = {
    "cpu": {"square": 2000, "bidiagonal": 4000, "long": 100_000},
    "cuda": {"square": 8192, "bidiagonal": 16_384, "long": 1_000_000},
}
NARROW = {"cpu": (32, 256), "cuda": (64, 512)}  # columns of tall matrices
TALLEST = 20
SELECTED = 10
SELECTED_OF = {"cpu": (300, 1000), "cuda": (500, 4096, 65_536)}  # bidiagonal
SELECTED_OF_DENSE = {"cpu": (300,), "cuda": (512, 2048)}
MATRICES, SMALL = 1_000_000, (1, 4, 16, 32, 64)
BATCHES, LARGEST_IN_BATCH = {"cpu": (20, 1000), "cuda": (20, 10_000)}, 1024


@dataclass(frozen=True)
class Curve:
    """prepare(size): the call; work(size): a multiple of its operations."""

    group: str
    what: str
    dtype: str
    axis: str  # what grows
    sizes: tuple
    prepare: Callable
    work: Callable
    is_cube: bool = False

    @property
    def weight(self):
        """Its share of the time, beside that of others: large sizes take long."""
        return 3 if self.is_cube or self.group == "jacobi" else 1


def _cases(run):
    """The curves, with a timer and when each is to end."""
    timer, group = Timer(run.device, run.threads), run.options.group
    curves = [curve for curve in _curves(run.device) if group in (None, curve.group, curve.dtype)]
    for i, curve in enumerate(curves):
        share = run.left() * curve.weight / sum(c.weight for c in curves[i:])
        yield curve, timer, time.monotonic() + share


# ---- the curves ----


def _steps(first, last):
    """Whole numbers from `first` to `last`, RATIO apart, or 1."""
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(min(max(sizes[-1] + 1, round(sizes[-1] * RATIO)), last))
    return tuple(sizes)


def _curves(device):
    """There are most in float64. No bidiagonal matrix is complex."""
    dense = (_square, _tall, _batches, _selections, _inverses)
    bidiagonal = (_bidiagonal_batches, _bidiagonal_selections, _bidiagonals)
    for dtype in REAL + COMPLEX:
        for make in dense if dtype in COMPLEX else dense + bidiagonal:
            yield from make(device, dtype)


def _some(of, dtype, first=0):
    return of if dtype == "float64" else of[first : first + 1]


def _square(device, dtype):
    sizes = _steps(1, LARGEST[device]["square"])
    for name, vectors in (("all vectors", True), ("values alone", False)):
        call = functools.partial(_dense, device, dtype, vectors)
        yield Curve(
            "dense", name, dtype, "n", sizes, lambda n, f=call: f((n, n)), lambda n: n**3, True
        )
    call = functools.partial(_dense, device, dtype, True, method="jacobi")
    yield Curve("jacobi", "all vectors", dtype, "n", sizes, lambda n: call((n, n)), lambda n: n**3)


def _tall(device, dtype):
    for n in _some(NARROW[device], dtype):
        rows = tuple(
            round(n * 1.1 * RATIO**i) for i in range(50) if 1.1 * RATIO**i < TALLEST * RATIO
        )
        for wide in _some((False, True), dtype):
            for vectors in _some((True, False), dtype):
                name = f"{n} {'rows' if wide else 'columns'}"
                name += ", all vectors" if vectors else ", values alone"
                call = functools.partial(_dense, device, dtype, vectors)
                yield Curve(
                    *("tall", name, dtype, "columns" if wide else "rows", rows),
                    lambda m, f=call, n=n, wide=wide: f((n, m) if wide else (m, n)),
                    lambda m: m,
                )
    sizes = _steps(1, LARGEST[device]["square"] // 2)
    call = functools.partial(_dense, device, dtype, True)
    yield Curve(
        *("tall", "4 to 1, all vectors", dtype, "columns", sizes),
        *(lambda n: call((4 * n, n)), lambda n: n**3, True),
    )


def _batches(device, dtype):
    call = functools.partial(_dense, device, dtype, True)
    for n in _some(SMALL, dtype, 2):
        yield Curve(
            *("batch", f"dense, n = {n}, all vectors", dtype, "matrices", _steps(1, MATRICES)),
            *(lambda count, n=n: call((count, n, n)), lambda count: count),
        )
    for count in _some(BATCHES[device], dtype):
        sizes = _steps(1, LARGEST_IN_BATCH)
        yield Curve(
            *("batch", f"dense, {count:,} matrices, all vectors", dtype, "n", sizes),
            *(lambda n, count=count: call((count, n, n)), lambda n: n**3),
        )


def _selections(device, dtype):
    for n in _some(SELECTED_OF_DENSE[device], dtype):
        call = functools.partial(_dense, device, dtype, True, (n, n))
        yield Curve("subset", f"dense, n = {n:,}", dtype, "k", _steps(1, n), call, lambda k: k)
    sizes = _steps(SELECTED, LARGEST[device]["square"])
    yield Curve(
        *("subset", f"dense, {SELECTED} largest", dtype, "n", sizes),
        lambda n: _dense(device, dtype, True, (n, n), SELECTED),
        *(lambda n: n**3, True),
    )


def _bidiagonal_batches(device, dtype):
    for n in _some(SMALL[2:], dtype):
        for vectors in _some((True, False), dtype):
            name = f"bidiagonal, n = {n}, {'all vectors' if vectors else 'values alone'}"
            call = functools.partial(_bidiagonal_batch, device, dtype, vectors)
            yield Curve(
                *("batch", name, dtype, "matrices", _steps(1, MATRICES)),
                *(lambda count, f=call, n=n: f(count, n), lambda count: count),
            )
    for count in _some(BATCHES[device], dtype):
        sizes = _steps(1, LARGEST_IN_BATCH)
        call = functools.partial(_bidiagonal_batch, device, dtype, True)
        yield Curve(
            *("batch", f"bidiagonal, {count:,} matrices, all vectors", dtype, "n", sizes),
            *(lambda n, f=call, count=count: f(count, n), lambda n: n**3),
        )


def _bidiagonal_selections(device, dtype):
    for n in _some(SELECTED_OF[device], dtype):
        call = functools.partial(_bidiagonal, device, dtype, "chi", True, n)
        yield Curve("subset", f"bidiagonal, n = {n:,}", dtype, "k", _steps(1, n), call, lambda k: k)
    sizes = _steps(SELECTED, LARGEST[device]["long"])
    for family in _some(FAMILIES, dtype):
        call = functools.partial(_bidiagonal, device, dtype, family, True, k=SELECTED)
        yield Curve(
            *("subset", f"bidiagonal, {SELECTED} largest, {family}", dtype, "n", sizes),
            *(call, lambda n: n),
        )


def _bidiagonals(device, dtype):
    sizes = _steps(1, LARGEST[device]["bidiagonal"])
    for name, vectors in (("all vectors", True), ("values alone", False)):
        for family in _some(FAMILIES, dtype):
            call = functools.partial(_bidiagonal, device, dtype, family, vectors)
            yield Curve("bidiagonal", f"{name}, {family}", dtype, "n", sizes, call, lambda n: n**2)


def _inverses(device, dtype):
    def call(*shape):
        A = _gaussian(shape, device, dtype)
        return lambda: linalg.inv(A, device=on(device))

    sizes = _steps(1, LARGEST[device]["square"])
    yield Curve("inverse", "one", dtype, "n", sizes, lambda n: call(n, n), lambda n: n**3, True)
    for n in _some(SMALL[1:], dtype, 2):
        yield Curve(
            *("inverse", f"batch, n = {n}", dtype, "matrices", _steps(1, MATRICES)),
            *(lambda count, n=n: call(count, n, n), lambda count: count),
        )


# ---- the calls ----


class TooLarge(Exception):
    """There are not so many numbers to make matrices of."""


@functools.cache
def _numbers(device, dtype):
    numbers = gaussian(0, NUMBERS["cpu"], dtype)
    if device == "cpu":
        return numbers
    import torch

    more = torch.from_numpy(numbers).to("cuda").repeat(NUMBERS["cuda"] // NUMBERS["cpu"])
    return more.mul_(torch.rand_like(more))  # no part repeats another


def _gaussian(shape, device, dtype):
    """A matrix, or a batch; all of one device and type begin with the same numbers."""
    count, numbers = int(np.prod(shape)), _numbers(device, dtype)
    if count > len(numbers):
        raise TooLarge
    return numbers[:count].reshape(shape)


def on(device):
    """The argument `device` for arrays that are there."""
    return "cpu" if device == "cpu" else None


def _part(k):
    return {} if k is None else {"select": "i", "select_range": (0, k - 1)}


def _dense(device, dtype, vectors, shape, k=None, **options):
    A = _gaussian(shape, device, dtype)
    options |= _part(k) | {"device": on(device)}
    return lambda: linalg.svd(A, full_matrices=False, compute_uv=vectors, **options)


def _bidiagonal(device, dtype, family, vectors, n, k=None):
    d, e = families.make(family, n, np.dtype(dtype))
    if device != "cpu":
        import torch

        d, e = (torch.from_numpy(x).to("cuda") for x in (d, e))
    options = _part(k) | {"device": on(device), "compute_uv": vectors}
    return lambda: tsvd.svd(d, e, **options)


def _bidiagonal_batch(device, dtype, vectors, count, n):
    d, e = _gaussian((count, n), device, dtype), _gaussian((count, max(n - 1, 0)), device, dtype)
    if count * n * n > NUMBERS[device]:  # numbers of the vectors
        raise TooLarge
    return lambda: tsvd.svd(d, e, device=on(device), compute_uv=vectors)


# ---- times ----


class Timer:
    """Times calls on a device."""

    def __init__(self, device, threads):
        self.device = device
        serial = device == "cpu" and threads == 1
        self._now = time.process_time if serial else time.perf_counter

    def seconds(self, call, times=1):
        """Of a call, in the mean of so many."""
        self._wait()
        start = self._now()
        for _ in range(times):
            call()
        self._wait()
        return (self._now() - start) / times

    def least(self, call, more=1):
        """The least time of a call."""
        least = min(self.seconds(call) for _ in range(2))
        times = 1 if self.device != "cpu" else int(min(max(SAMPLE / least, 1), 1000))
        for _ in range(more * (REPEATS if least < LONG else FEWER) - 1):
            least = min(least, self.seconds(call, times))
        return least

    def _wait(self):
        if self.device != "cpu":
            import torch

            torch.cuda.synchronize()


def release(device):
    """Gives PyTorch's cached memory back."""
    if device != "cpu":
        import torch

        torch.cuda.empty_cache()


def _follow(curve, timer, until):
    """The record of a curve: no size begins that would probably end later than `until`."""
    sizes, seconds, work, note = [], [], [], None
    for size in curve.sizes:
        now = time.monotonic()
        work.append(curve.work(size))
        if seconds:
            expected = seconds[-1] * max(work[-1] / work[-2], 1)
            if now + (1 + (REPEATS if expected < LONG else FEWER)) * expected > until:
                break
        try:
            seconds.append(timer.least(curve.prepare(size)))
        except TooLarge:
            break
        except (MemoryError, RuntimeError) as error:  # of PyTorch too
            note = f"{curve.axis} = {size}: {error}".splitlines()[0][:200]
            break
        sizes.append(size)
    work = work[: len(sizes)]
    for _ in range(LOOKS):
        suspects = {i for step in _over(sizes, seconds, work, curve.is_cube) for i in step["at"]}
        for i in sorted(suspects):
            seconds[i] = min(seconds[i], timer.least(curve.prepare(sizes[i]), MORE))
    release(timer.device)
    steps = _neighbours(sizes, seconds, work)
    return {
        "group": curve.group,
        "what": curve.what,
        "dtype": curve.dtype,
        "axis": curve.axis,
        "sizes": sizes,
        "seconds": seconds,
        "work": work,
        "note": note,
        "worst": max(steps, key=lambda step: step["times"], default=None),
        "cube": max(
            _octaves(sizes, seconds, work) if curve.is_cube else [],
            key=lambda step: step["times"],
            default=None,
        ),
        "over": _over(sizes, seconds, work, curve.is_cube),
    }


def _neighbours(sizes, seconds, work):
    """A record for each size and the next one: the larger of step and drop."""
    steps = []
    for i in range(len(sizes) - 1):
        grown = seconds[i + 1] / seconds[i]
        times = max(grown / max(work[i + 1] / work[i], 1), 1 / grown)
        steps.append(
            {"from": sizes[i], "to": sizes[i + 1], "at": [i, i + 1], "grown": grown, "times": times}
        )
    return steps


def _octaves(sizes, seconds, work):
    """The same for each size and the one next to its half, beside the model."""
    steps = []
    for j, size in enumerate(sizes):
        i = min(range(j + 1), key=lambda i: abs(sizes[i] - size / 2))
        if 1.8 < size / sizes[i] < 2.2:
            grown = seconds[j] / seconds[i]
            times = grown / (work[j] / work[i])
            steps.append({"from": sizes[i], "to": size, "at": [i, j], "times": times})
    return steps


def _over(sizes, seconds, work, is_cube):
    found = [step for step in _neighbours(sizes, seconds, work) if step["times"] > LIMIT]
    if is_cube:
        octaves = _octaves(sizes, seconds, work)
        found += [step for step in octaves if step["times"] > CUBE_LIMIT]
    return found


def _name(case):
    return f"{case['group']}: {case['what']}, {case['dtype']}, by {case['axis']}"


def _shown(case):
    sizes, worst = case["sizes"], case["worst"]
    steps = (f"{s['from']:,} to {s['to']:,} {s['times']:.2f}" for s in case["over"])
    return {
        "curve": _name(case),
        "sizes": f"{sizes[0]:,} to {sizes[-1]:,}" if sizes else "none",
        "worst": worst and worst["times"],
        "where": "; ".join(steps),
        "note": case["note"],
    }


def _bars(run):
    asked = []
    for case in run.records["cases"]:
        worst = case["worst"]
        asked.append(bars.at_most(_name(case), LIMIT, worst and worst["times"], "×"))
        if case["cube"]:
            times = case["cube"]["times"]
            asked.append(bars.at_most(f"{_name(case)}, the cube", CUBE_LIMIT, times, "×"))
    return asked


GROUP = Group(
    files={"cpu": "sweep_cpu", "cuda": "sweep_cuda"},
    parts=[
        Part(
            "cases",
            _cases,
            lambda run, case: _follow(*case),
            "curve:<66 sizes:<20 worst:.2f where:<1",
            _shown,
        )
    ],
    bars=_bars,
    contents=lambda run: {"device": run.device, "ratio": RATIO, "limit": LIMIT},
    seconds={"cpu": 420, "cuda": 270},
)
