"""Threads, processes, signals, progress and memory."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tsvd
from testing.cases import case, same_bits
from testing.processes import run


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
    first, *others = (tuple(tsvd.svd(d, e, threads=k, **options)) for k in (1, 2, 3))
    assert all(same_bits(other, first) for other in others)


def test_the_number_of_threads_changes_no_bit_of_values(values_device):
    d, e, _ = case("chi", 200, np.float64)
    options = {"method": "bisect", "compute_uv": False, "device": values_device}
    first, *others = (tsvd.svd(d, e, threads=k, **options) for k in (1, 2, 3))
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


def test_memory_is_given_back_beside_calls(device):
    """trim() while other threads compute: their results stay as they are."""
    d, e, _ = case("chi", 100, np.float64)
    expected = tuple(tsvd.svd(d, e, device=device))
    done = threading.Event()

    def trim():
        while not done.is_set():
            assert tsvd.trim() is None

    with ThreadPoolExecutor(3) as pool:
        trimming = pool.submit(trim)
        calls = [pool.submit(tsvd.svd, d, e, device=device) for _ in range(40)]
        try:
            results = [tuple(call.result()) for call in calls]
        finally:
            done.set()
        trimming.result()
    assert all(same_bits(result, expected) for result in results)


def test_fork_after_threads():
    """A forked child has none of its parent's threads: it computes the same, with its own."""
    program = """
import multiprocessing, os, warnings
import numpy as np
import tsvd

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of fork with threads
rng = np.random.default_rng(1)
d, e = rng.random(900), rng.random(899)

def call():
    return [x.tobytes() for x in tsvd.svd(d, e, device="cpu", threads=2)]

def work(queue):
    computed = call()
    threads = len(os.listdir("/proc/self/task"))
    queue.put((computed + [tsvd.svdvals(d, e).tobytes()], threads))

expected = call() + [tsvd.svdvals(d, e).tobytes()]
context = multiprocessing.get_context("fork")
for _ in range(3):
    queue = context.SimpleQueue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    computed, threads = queue.get()
    assert computed == expected
    assert threads == 2, threads
    child.join(20)
    assert child.exitcode == 0
assert call() + [tsvd.svdvals(d, e).tobytes()] == expected
"""
    run(program, under=("env", "OPENBLAS_NUM_THREADS=1"))


def test_fork_while_another_thread_imports_scipy():
    """The child does not wait for the import that a thread of its parent had begun."""
    program = """
import os, signal, sys, threading, time, warnings
import numpy as np
import tsvd

warnings.simplefilter("ignore", DeprecationWarning)
d, e = np.ones(700), np.ones(699)

def call():
    return tsvd.svd(d, e, device="cpu", method="dc").s.tobytes()

sys.setswitchinterval(1e-4)
results = []
thread = threading.Thread(target=lambda: results.append(call()))
thread.start()
while "cython_blas" not in open("/proc/self/maps").read() and thread.is_alive():
    time.sleep(1e-4)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if len(call()) == 700 * 8 else 1)
thread.join()
_, status = os.waitpid(child, 0)
assert status == 0, status
assert results == [call()]
"""
    run(program)


@pytest.mark.parametrize("n", [300, 2500])
def test_fork_in_progress(n):
    """The parent goes on. In the child the call ends with an error, and the next one works."""
    program = f"""
import os, signal, warnings
import numpy as np
import tsvd

warnings.simplefilter("ignore", DeprecationWarning)
signal.alarm(50)
d, e = np.ones({n}), np.ones({n - 1})
options = {{"device": "cpu", "threads": 2}}
method = {{"method": "givens", "eps": 1e-6, "max_sweeps": 10**6}} if {n} < 512 else {{}}
expected = tsvd.svd(d, e, **options)
children = []

def progress(done):
    if len(children) < 5 and done < 1:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
        children.append(child)

try:
    result = tsvd.svd(d, e, progress=progress, **method, **options)
except RuntimeError as error:
    assert 0 in children and "fork" in str(error), error
    again = tsvd.svd(d, e, **options)
    os._exit(0 if again.R.tobytes() == expected.R.tobytes() else 1)
assert children and 0 not in children
assert np.allclose(result.s, expected.s, atol=1e-4)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""
    run(program)


def test_fork_beside_every_call():
    """Children that are forked while other threads compute: they and these have the same bits."""
    program = """
import os, pickle, random, signal, threading, warnings
import numpy as np
import tsvd
from tsvd import linalg

warnings.simplefilter("ignore", DeprecationWarning)
rng = np.random.default_rng(0)
a, batch = rng.standard_normal((250, 250)), rng.standard_normal((40, 30, 30))
d, e = rng.random(700), rng.random(699)
calls = [
    lambda: linalg.svd(a).U,
    lambda: linalg.svd(batch).U,
    lambda: linalg.svd(np.vstack([a[:, :30]] * 4), False).U,
    lambda: linalg.svd(a[:90, :90], method="jacobi").U,
    lambda: linalg.svdvals(a),
    lambda: pickle.loads(pickle.dumps(linalg.bidiagonalize(a))).form_q(),
    lambda: tsvd.svd(d, e, method="dc").L,
    lambda: tsvd.svd(d, e, method="twisted").L,
    lambda: tsvd.svd(d[:200], e[:199], method="qr").L,
    lambda: tsvd.svd(d[:90], e[:89], method="givens").L,
    lambda: tsvd.svdvals(d, e),
]
expected = [call() for call in calls]
done, wrong = threading.Event(), []

def right(i):
    return np.array_equal(calls[i](), expected[i])

def work(seed):
    order = random.Random(seed)
    while not done.is_set():
        i = order.randrange(len(calls))
        if not right(i):
            wrong.append(i)

threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
for i in [*range(len(calls))] * 2:
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(not right(i))
    assert os.waitpid(child, 0)[1] == 0, i
done.set()
for thread in threads:
    thread.join()
assert not wrong
"""
    run(program)


def test_fork_beside_a_thread_that_uses_a_form():
    """The child is told that the form was in use. It does not wait for a thread it lacks."""
    program = """
import os, signal, threading, warnings
import numpy as np
from tsvd import linalg

warnings.simplefilter("ignore", DeprecationWarning)
form = linalg.bidiagonalize(np.random.default_rng(0).standard_normal((900, 900)))
begun = threading.Event()
thread = threading.Thread(target=lambda: form.svd(progress=lambda done: begun.set()))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        form.d
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 2)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
assert form.d.shape == (900,)
"""
    run(program)


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
def test_a_form_goes_to_other_processes(start, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(f"""
import multiprocessing, warnings
import numpy as np
from tsvd import linalg

def values(form):
    return form.svdvals().tobytes()

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    form = linalg.bidiagonalize(np.random.default_rng(0).standard_normal((200, 150)))
    with multiprocessing.get_context({start!r}).Pool(2) as pool:
        assert pool.map(values, [form] * 4) == [values(form)] * 4
""")
    run(f"import subprocess, sys; subprocess.run([sys.executable, {str(file)!r}], check=True)")


def test_first_calls_of_many_threads_at_once():
    """Threads that all find SciPy's BLAS not loaded yet: each has the right result."""
    program = """
import threading
import numpy as np
import tsvd

rng = np.random.default_rng(4)
d, e = rng.random(530), rng.random(529)
barrier, results = threading.Barrier(16), [None] * 16

def work(i):
    barrier.wait()
    results[i] = [x.tobytes() for x in tsvd.svd(d, e, device="cpu", method="dc")]

threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
expected = [x.tobytes() for x in tsvd.svd(d, e, device="cpu", method="dc")]
assert all(result == expected for result in results)
"""
    for _ in range(3):
        run(program)


@pytest.mark.parametrize("options", [{}, {"method": "qr"}, {"method": "givens", "eps": 1e-3}])
def test_threads_with_small_stacks(options):
    """Python allows stacks of 32 KiB."""
    program = f"""
import threading
import numpy as np
import tsvd

d, e = np.ones(200), np.ones(199)
done = []

def work():
    tsvd.svd([1] * 3, [1] * 2, **{options!r})
    tsvd.svd(d, e, device="cpu", **{options!r})
    tsvd.svd(np.ones((20, 30)), np.ones((20, 29)), device="cpu", **{options!r})
    tsvd.svdvals(d, e, device="cpu")
    done.append(1)

threading.stack_size(32768)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""
    run(program)


def test_dense_matrices_in_threads_with_small_stacks():
    """OpenBLAS's products for AVX2 take 24 KiB by themselves: 32 KiB are too few for them."""
    program = """
import threading
import numpy as np
import scipy.linalg  # whose import takes more
from tsvd import linalg

rng = np.random.default_rng(0)
a, batch = rng.standard_normal((300, 300)), rng.standard_normal((20, 40, 30))
large = rng.standard_normal((450, 450))
done = []

def work():
    for x in (a, a[:, :40], a[:40], a.astype(np.float32), batch):
        for method in ("auto", "dc", "twisted", "qr"):
            linalg.svd(x, method=method)
        linalg.svd(x[..., :50, :50], method="givens")
        linalg.svd(x[..., :90, :90], method="jacobi")
        linalg.svdvals(x)
        form = linalg.bidiagonalize(x)
        form.form_q(), form.svd()
    linalg.svd(a, select="v", select_range=(1, 5))
    for x in (large, large.astype(np.float32)):
        linalg.svd(x, method="jacobi")  # begins with vectors of "auto"
    done.append(1)

threading.stack_size(65536)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""
    run(program)


@pytest.mark.parametrize(("variable", "threads"), [("100000", None), ("2", 100_000)])
def test_too_many_threads(variable, threads):
    """No more are taken than the processors and the matrix have use for."""
    program = f"""
import os, resource
import numpy as np
import tsvd

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
d, e = np.ones(500), np.ones(499)
result = tsvd.svd(d, e, device="cpu", threads={threads})
assert len(os.listdir("/proc/self/task")) <= 4 * os.cpu_count()
"""
    run(program, under=("env", f"OMP_NUM_THREADS={variable}", "OPENBLAS_NUM_THREADS=1"))


LITTLE_SPACE = {
    "dense": "linalg.svd(A)",
    "dense batch": "linalg.svd(A.reshape(-1, 40, 40))",
    "dc": 'tsvd.svd(A[0], A[1, 1:], method="dc")',
    "form": "linalg.bidiagonalize(A).form_q()",
}


@pytest.mark.parametrize("limit", ["AS", "DATA"])
@pytest.mark.parametrize("warm", ["", "import scipy.linalg", "linalg.svd(A[:9, :9])"])
@pytest.mark.parametrize("call", LITTLE_SPACE.values(), ids=LITTLE_SPACE)
def test_little_address_space(call, warm, limit):
    """OpenBLAS retries for ever where it gets no buffer: the call ends before, or does without.

    A small product may have needed none, which says nothing of the next one.
    """
    program = f"""
import os, resource, signal
import numpy as np
import tsvd
from tsvd import linalg

A = np.random.default_rng(0).standard_normal((600, 600))
{warm}
with open("/proc/self/status") as file:
    sizes = dict(line.split(":") for line in file)
used = int(sizes["VmSize" if "{limit}" == "AS" else "VmData"].split()[0]) << 10
for mib in (1, 10, 24, 70, 400):
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_{limit}, (used + (mib << 20),) * 2)
        signal.alarm(20)
        try:
            {call}
        except MemoryError:
            os._exit(3)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 3), (mib, status)
assert status == 0
"""
    run(program, seconds=150)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 600])
def test_beside_busy_processors(n):
    """Where other processes keep all processors busy, two threads take at most twice the time of
    one, on average over alternating calls."""
    program = f"""
import os, subprocess, sys, time
import numpy as np
import tsvd

d, e = np.ones({n}), np.ones({n - 1})
seconds = {{1: 0.0, 2: 0.0}}
tsvd.svd(d, e, device="cpu")
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * len(os.sched_getaffinity(0)))]
try:
    time.sleep(0.5)
    for _ in range(100):
        for threads in seconds:
            start = time.perf_counter()
            tsvd.svd(d, e, device="cpu", threads=threads)
            seconds[threads] += time.perf_counter() - start
finally:
    for process in busy:
        process.kill()
print(seconds[2] / seconds[1])
"""
    assert float(run(program, seconds=200)) <= 2


@pytest.mark.parametrize(
    "call",
    [
        'svd(np.ones(3000), np.ones(2999), method="givens", eps=0, max_sweeps=10**9)',
        'svd(np.ones((20_000, 100)), np.ones((20_000, 99)), method="qr")',
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

svd(rng.random(600), rng.random(599))  # imports SciPy
timer = threading.Timer(0.2, press)
timer.start()
try:
    while True:  # a fast machine may end a call before the key is pressed
        {call}
except KeyboardInterrupt:
    print(time.perf_counter() - pressed[0])
L, s, R = svd([3.0, 4.0], [0.0])
assert list(s) == [4, 3]
"""
    assert float(run(program)) < 2.0


LATENCY = {
    "svd": "linalg.svd(square)",
    "values": "linalg.svdvals(square)",
    "full": "linalg.svd(tall)",
    "long": "linalg.svd(long, False)",
    "jacobi": 'linalg.svd(square[:700, :700], method="jacobi")',
    "form": "form.form_q(full=True)",
    "apply": "form.apply_p(square, True)",
    "givens": 'tsvd.svd(np.ones(1500), np.ones(1499), method="givens", eps=1e-6)',
}


@pytest.mark.slow
@pytest.mark.parametrize("call", LATENCY.values(), ids=LATENCY)
def test_signals_are_looked_at_throughout(call):
    """A timer asks for a handler again and again: none waits for as long as a second."""
    program = f"""
import signal, time
import numpy as np
import tsvd
from tsvd import linalg

rng = np.random.default_rng(1)
square, tall = rng.standard_normal((1500, 1500)), rng.standard_normal((4000, 300))
long = rng.standard_normal((400_000, 20))
form = linalg.bidiagonalize(square)
times = []
signal.signal(signal.SIGALRM, lambda *_: times.append(time.perf_counter()))
times.append(time.perf_counter())
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
{call}
signal.setitimer(signal.ITIMER_REAL, 0)
times.append(time.perf_counter())
print(np.diff(times).max())
"""
    assert min(float(run(program)) for _ in range(2)) < 0.8


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
