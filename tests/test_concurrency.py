"""Threads, processes, signals, progress and memory."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tsvd
from cases import case, same_bits
from processes import run


def check_repeatable(call):
    """call(d, e), a tuple of results, has the same bits every time."""
    for n in (33, 200):
        d, e, _ = case("uniform_1", n, np.float64)
        first = call(d, e)
        for _ in range(5):
            assert same_bits(call(d.copy(), e.copy()), first)


@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens"])
def test_the_same_bits_from_run_to_run(method, device):
    options = {"method": method, "eps": 1e-3, "device": device}
    check_repeatable(lambda d, e: tuple(tsvd.svd(d, e, **options)))


def test_the_same_bits_of_values_from_run_to_run(values_device):
    options = {"method": "bisect", "device": values_device}
    check_repeatable(lambda d, e: (tsvd.svdvals(d, e, **options),))


@pytest.mark.parametrize("method", ["auto", "dc", "qr"])
def test_the_number_of_threads_changes_no_bit(method, device):
    d, e, _ = case("chi", 200, np.float64)
    options = {"method": method, "device": device}
    first, *others = (tuple(tsvd.svd(d, e, tuning={"threads": k}, **options)) for k in (1, 2, 3))
    assert all(same_bits(other, first) for other in others)


def test_the_number_of_threads_changes_no_bit_of_values(values_device):
    d, e, _ = case("chi", 200, np.float64)
    options = {"method": "bisect", "compute_uv": False, "device": values_device}
    first, *others = (tsvd.svd(d, e, tuning={"threads": k}, **options) for k in (1, 2, 3))
    assert all(same_bits(other, first) for other in others)


def test_the_same_bits_in_another_process():
    program = (
        "import numpy as np, tsvd, hashlib\n"
        "rng = np.random.default_rng(8)\n"
        "parts = tsvd.svd(rng.random(150), rng.random(149))\n"
        "print(hashlib.sha256(b''.join(p.tobytes() for p in parts)).hexdigest())\n"
    )
    assert run(program) == run(program)


def check_in_threads(call):
    """call(d, e), a tuple of results, has the same bits in many threads at once."""
    names = ("uniform_1", "chi", "graded_up", "zeros_many", "clustered", "toeplitz")
    matrices = [case(name, n, np.float64)[:2] for name in names for n in (5, 33, 100, 200)]
    alone = [call(*matrix) for matrix in matrices]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda matrix: call(*matrix), matrices * 4))
    for i, result in enumerate(together):
        assert same_bits(result, alone[i % len(alone)]), i


def test_many_threads_at_once(device):
    check_in_threads(lambda d, e: tuple(tsvd.svd(d, e, device=device)))


def test_values_in_many_threads_at_once(values_device):
    options = {"method": "bisect", "device": values_device}
    check_in_threads(lambda d, e: (tsvd.svdvals(d, e, **options),))


def test_errors_in_threads_stay_there(device):
    d, e = np.ones(40), np.ones(39)
    bad = d.copy()
    bad[7] = np.nan
    expected = tuple(tsvd.svd(d, e, device=device))

    def call(i):
        if i % 2:
            with pytest.raises(ValueError, match=r"(?i)nan|inf|finite"):
                tsvd.svd(bad, e, device=device)
        else:
            assert same_bits(tuple(tsvd.svd(d, e, device=device)), expected)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(400)))


def test_the_gil_is_released(device):
    """Another thread runs while a long call does."""
    d, e = np.ones(700), np.ones(699)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.002):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    tsvd.svd(d, e, method="givens", device=device)
    end = time.perf_counter()
    stop.set()
    thread.join()
    inside = sum(start < tick < end for tick in ticks)
    assert inside >= min(10, (end - start) / 0.02)


def test_fork_after_threads():
    """A forked child has none of OpenMP's threads, but must work."""
    program = """
import multiprocessing, warnings
import numpy as np
import tsvd

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of fork with threads
rng = np.random.default_rng(1)
d, e = rng.random(300), rng.random(299)

def work(queue):
    queue.put([x.tobytes() for x in tsvd.svd(d, e)] + [tsvd.svdvals(d, e).tobytes()])

expected = [x.tobytes() for x in tsvd.svd(d, e)] + [tsvd.svdvals(d, e).tobytes()]
context = multiprocessing.get_context("fork")
for _ in range(3):
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == expected
    child.join(20)
    assert child.exitcode == 0
assert [x.tobytes() for x in tsvd.svd(d, e)] + [tsvd.svdvals(d, e).tobytes()] == expected
"""
    run(program)


@pytest.mark.parametrize(
    "call",
    [
        'svd(np.ones(3000), np.ones(2999), method="givens", eps=0, max_sweeps=10**9)',
        'svd(np.ones((400, 100)), np.ones((400, 99)), method="givens", eps=0)',
        "svd(np.ones(n), np.ones(n - 1))",
    ],
    ids=["givens", "batch", "auto"],
)
def test_ctrl_c(call, device):
    """Ctrl-C stops a running call promptly, and the next call works."""
    program = f"""
import functools, os, signal, threading, time
import numpy as np
import tsvd

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
svd = functools.partial(tsvd.svd, device={device!r})
rng = np.random.default_rng(2)
n = {4000 if device == "cpu" else 20_000}
pressed = []

def press():
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

svd(rng.random(100), rng.random(99))
timer = threading.Timer(0.2, press)
timer.start()
try:
    {call}
except KeyboardInterrupt:
    print(time.perf_counter() - pressed[0])
L, s, R = svd([3.0, 4.0], [0.0])
assert list(s) == [4, 3]
"""
    assert float(run(program)) < 2.0


class Enough(Exception):
    pass


def test_progress_is_told_the_share_done(device):
    told = []

    def progress(done):
        told.append(done)
        if done > 0 and len(told) > 4:
            raise Enough

    with pytest.raises(Enough):
        tsvd.svd(np.ones(3000), np.ones(2999), method="givens", progress=progress, device=device)
    assert all(isinstance(done, float) and 0 <= done <= 1 for done in told)
    assert told == sorted(told)


def test_progress_ends_with_one(device):
    for method in ("auto", "givens"):
        told = []
        tsvd.svd([1.0, 2.0], [0.5], method=method, eps=1e-3, progress=told.append, device=device)
        assert told[-1] == 1.0


def test_an_exception_of_progress_stops_the_call(device):
    def progress(done):
        raise Enough

    start = time.perf_counter()
    with pytest.raises(Enough):
        tsvd.svd(
            np.ones(3000),
            np.ones(2999),
            method="givens",
            eps=1e-300,
            max_sweeps=10**9,
            progress=progress,
            device=device,
        )
    assert time.perf_counter() - start < 10
    assert list(tsvd.svd([3.0, 4.0], [0.0], device=device).s) == [4, 3]


def test_progress_may_call_svd(device):
    """The library holds no lock while it calls progress."""
    inner = []

    def progress(done):
        inner.append(tsvd.svd([3.0, 4.0], [0.0], device=device).s[0])

    tsvd.svd(np.ones(50), np.ones(49), progress=progress, device=device)
    assert inner and set(inner) == {4.0}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
def test_memory_over_ten_thousand_calls():
    """Results, workspaces and exceptions do not leak."""
    program = """
import resource
import numpy as np
import tsvd

rng = np.random.default_rng(3)
d, e = rng.random(16), rng.random(15)
small, bad = np.ones((3, 8)), np.full(16, np.nan)
out = np.empty((16, 16)), np.empty(16), np.empty((16, 16))

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def calls(count):
    for i in range(count):
        kind = i % 8
        if kind == 0:
            tsvd.svd(d, e)
        elif kind == 1:
            tsvd.svd(d, e, out=out)
        elif kind == 2:
            tsvd.svdvals(d, e)
        elif kind == 3:
            tsvd.svd(small, np.ones(7), full_output=True, progress=lambda done: None)
        elif kind == 4:
            tsvd.svd(d, e, method="givens", eps=1e-1)
        elif kind == 5:
            tsvd.svdvals(d.astype(np.float32), e[::-1].astype(">f4"), method="bisect")
        else:
            try:
                if kind == 6:
                    tsvd.svd(bad, e)
                else:
                    tsvd.svd(np.ones(16), np.ones(15), method="givens", eps=1e-300, max_sweeps=5)
            except (ValueError, np.linalg.LinAlgError):
                pass

calls(2000)
before = resident()
calls(10000)
print(resident() - before)
"""
    assert int(run(program, seconds=120)) < 2**20
