"""Divide and conquer: sizes near its leaves, splits, deflation, eps, scaling, threads, memory."""

import re
import time

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, Findings, same_bits
from testing.families import FAMILIES, make, stack
from testing.measures import BOUNDS, max_abs_error, orthogonality, residual, value_error
from testing.processes import run
from testing.reference import singular_values
from tsvd import _core

# One, two, four and eight leaves (csrc/math/dc.h), and one row less or more.
SIZES = (*range(31, 35), *range(63, 67), *range(127, 131), *range(255, 259))
TUNING = _core.tuning()
SMALL_LEAVES = TUNING["SMALL_LEAVES_ORDER"]  # larger matrices have them on a GPU
BLAS_ORDER = TUNING["BLAS_ORDER"]  # larger matrices have products by BLAS on the CPU


def dc(d, e, **options):
    return tsvd.svd(d, e, method="dc", **options)


def check(findings, where, d, e, result, s_ref=None, lower=False):
    L, s, R = result
    n = s.size
    if s_ref is None:
        s_ref = tsvd.svdvals(d, e, lower=lower, method="bisect", device="cpu")
    findings.bound(where, "residual", residual(d, e, L, s, R, lower), BOUNDS["residual"](n))
    findings.bound(where, "orthogonality", orthogonality(L, R), BOUNDS["orthogonality"](n))
    findings.bound(where, "value error", value_error(s, s_ref), BOUNDS["values dc"](n))
    findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))
    largest = L[np.argmax(abs(L), axis=0), np.arange(n)]
    findings.holds(where, "positive where a column of L is largest", np.all(largest > 0))


# ---- the tree ----


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_around_the_leaves(family, device):
    with Findings() as findings:
        for n in SIZES:
            d, e = make(family, n, DTYPES[n % 2])
            check(findings, f"{family} n={n} {d.dtype}", d, e, dc(d, e, device=device))


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    "n", [k * SMALL_LEAVES // 2 + more for k in (2, 3, 4, 6) for more in (0, 1)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_around_small_leaves(n, dtype):
    with Findings() as findings:
        for family in ("uniform_1", "toeplitz", "ascending", "graded_gently", "zeros_many"):
            d, e = make(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__}"
            check(findings, where, d, e, dc(d, e, device="cuda"))


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("n", [600, 2100])
@pytest.mark.parametrize("dtype", DTYPES)
def test_merges_of_little_and_of_much(n, dtype):
    """Where little survives, other products are made: by the node, whatever else there is.

    Of order 2100 the vectors of a single matrix go to the host in blocks.
    """
    names = ("uniform_1", "toeplitz", "ascending", "chi")
    d, e = stack(make(family, n, dtype) for family in names)
    L, _, R = dc(d, e, device="cuda")
    for i, family in enumerate(names):
        one = dc(d[i], e[i], device="cuda")
        assert same_bits(L[i], one.L) and same_bits(R[i], one.R), family


@pytest.mark.parametrize("place", ["d", "e", "d and e", "d twice"])
def test_a_zero_at_every_place(place, device):
    """A zero in d or e at every place: at both ends, on both sides of a split, at its center."""
    n = 67
    with Findings() as findings:
        for i in range(n):
            d, e = make("normal", n)
            d[[i, (i + 1) % n] if place == "d twice" else i] *= place == "e"
            e[min(i, n - 2)] *= place in ("d", "d twice")
            check(findings, f"{place} {i}", d, e, dc(d, e, device=device))


@pytest.mark.parametrize("dtype", DTYPES)
def test_runs_of_zeros(dtype, device):
    """Blocks of zeros among ordinary entries, which fill part of a leaf, one leaf, or two."""
    n = 130
    with Findings() as findings:
        for first in (0, 1, 31, 32, 40, n - 33):
            for length in (2, 31, 33, 64):
                for parts in ("d", "e", "de"):
                    d, e = make("normal", n, dtype)
                    d[first : first + length] *= "d" not in parts
                    e[first : first + length] *= "e" not in parts
                    where = f"{parts} {first} + {length} {dtype.__name__}"
                    check(findings, where, d, e, dc(d, e, device=device))


# ---- deflation ----


def all_deflated(n):
    """The number of values that deflate in all merges if each merge keeps only its center.

    Leaves have up to 32 columns for these n, left children a multiple of 8.
    """

    def split(rows, columns, levels):
        if levels == 0:
            return 0
        left = (columns // 2 + 4) // 8 * 8
        below = split(left - 1, left, levels - 1)
        below += split(rows - left, columns - left, levels - 1)
        return rows - 1 + below

    levels = 0
    while 32 * 2**levels < n:
        levels += 1
    return split(n, n, levels)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 64, 66, 128, 256])
def test_what_deflates_wholly(n, dtype, device):
    """Without off-diagonals every merge keeps only its center, and the result is exact."""
    ones, none = np.ones(n, dtype), np.zeros(n - 1, dtype)
    ladder = np.arange(1, n + 1).astype(dtype)
    for d in (ones, ladder, ladder[::-1] * dtype(-1), np.where(ladder % 3 == 0, 0, ones)):
        (L, s, R), info = dc(d, none, device=device, full_output=True)
        assert info.method == "dc" and info.deflated == all_deflated(n)
        assert np.array_equal(s, np.sort(abs(d))[::-1])
        assert np.array_equal((L * s) @ R, np.diag(d))


def test_what_does_not_deflate(device):
    """A Toeplitz matrix keeps almost all values. With equal halves, half deflate at the root."""
    n = 256
    _, info = dc(*make("toeplitz", n), device=device, full_output=True)
    assert info.deflated <= all_deflated(n) / 4
    d, e = make("chi", n // 2)
    _, half = dc(d, e, device=device, full_output=True)
    d, e = np.concatenate([d, d]), np.concatenate([e, [0.0], e])
    _, info = dc(d, e, device=device, full_output=True)
    assert half.deflated < n // 8 and info.deflated >= n // 2 - 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_clusters_about_the_tolerance(dtype, device):
    """Spacings and e from a tenth of the deflation tolerance to ten times as much."""
    eps = np.finfo(dtype).eps
    with Findings() as findings:
        for n in (40, 130):
            rng = np.random.default_rng(n)
            for step in (4, 32, 60, 64, 68, 640):
                for link in (0, 8, 64, 500):
                    d = (1 + eps * step * np.arange(n)).astype(dtype)
                    e = (eps * link * rng.choice([-1, 1], n - 1)).astype(dtype)
                    rng.shuffle(d)
                    where = f"n={n} step={step} link={link} {dtype.__name__}"
                    check(findings, where, d, e, dc(d, e, device=device))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiny_links_at_the_splits(dtype, device):
    """alpha, beta or both are far below the tolerance to above it, so parts of z are small."""
    n, eps = 130, float(np.finfo(dtype).eps)
    centers = np.arange(31, n - 1, 32)
    with Findings() as findings:
        for family in ("toeplitz", "uniform_1", "many_equal"):
            for link in (eps**2, eps, 30 * eps, 64 * eps, 1e-3):
                for parts in ("d", "e", "de"):
                    d, e = make(family, n, dtype)
                    d[centers] *= link if "d" in parts else 1
                    e[centers] *= link if "e" in parts else 1
                    where = f"{family} {parts} {link:.1g} {dtype.__name__}"
                    check(findings, where, d, e, dc(d, e, device=device))


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_values_beside_a_large_entry(dtype, device):
    """Many values lie within the tolerance: their errors by deflation add up in the residual."""
    eps = np.finfo(dtype).eps
    with Findings() as findings:
        for n in (33, 40, 48, 64, 100):
            d, e = np.full(n, 1e-4, dtype), np.full(n - 1, 1e-4, dtype)
            e[0] = 1
            check(findings, f"n={n} {dtype.__name__}", d, e, dc(d, e, device=device))
            for size in (100, 300, 1000, 3000, 1e4):
                rng = np.random.default_rng([n, int(size)])
                d, e = ((rng.random(k) * size * eps).astype(dtype) for k in (n, n - 1))
                e *= rng.choice([0.01, 0.1, 1])
                d[rng.integers(n)] = 1
                where = f"n={n} size={size} {dtype.__name__}"
                check(findings, where, d, e, dc(d, e, device=device))


# ---- accuracy ----


@pytest.mark.parametrize(
    "family",
    ["graded_up", "graded_down", "graded_both", "companion", "kahan", "jordan", "geometric"],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tiny_values_keep_their_digits(family, dtype, device):
    """Values far below eps times the norm are compared with extended precision."""
    d, e = make(family, 400, dtype)
    s_ref = singular_values(d, e)
    assert s_ref[-1] < s_ref[0] * np.finfo(dtype).eps
    with Findings() as findings:
        check(findings, f"{family} {dtype.__name__}", d, e, dc(d, e, device=device), s_ref)


@pytest.mark.parametrize("family", ["uniform_1", "chi", "toeplitz", "zeros_many", "clustered"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_two_scale_s_alone(family, dtype, device):
    info = np.finfo(dtype)
    d, e = make(family, 150, dtype)
    for eps in (None, 2.0**-12):
        L, s, R = dc(d, e, eps=eps, device=device)
        for k in (1, -1, 7, info.maxexp - 12, info.minexp + 3 * info.nmant):
            scaled = dc(np.ldexp(d, k), np.ldexp(e, k), eps=eps and np.ldexp(eps, k), device=device)
            assert same_bits(tuple(scaled), (L, np.ldexp(s, k), R)), (eps, k)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eps(family, dtype, device):
    """The error of B is at most 4 eps and rounding, and a looser eps leaves no more work."""
    info = np.finfo(dtype)
    with Findings() as findings:
        for n in (40, 130):
            d, e = make(family, n, dtype)
            biggest = float(max(np.max(abs(d)), np.max(abs(e))))
            unit = BOUNDS["residual"](n) * (n + 8) * float(info.eps) * np.sqrt(2 * n)
            rounding = unit * biggest + (n + 8) * float(info.smallest_subnormal)
            before = -1
            for eps in (None, 1e-12, 1e-8, 1e-4, 1e-2, 1.0):
                where = f"{family} n={n} {dtype.__name__} eps={eps}"
                eps = eps and eps * biggest
                (L, s, R), done = dc(d, e, eps=eps, device=device, full_output=True)
                limit = 4 * (eps or 0) + rounding
                findings.bound(where, "max |B - L S R|", max_abs_error(d, e, L, s, R), limit)
                findings.bound(where, "orthogonality", orthogonality(L, R), 3)
                findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))
                # A value near a threshold may fall on either side.
                findings.holds(where, "as much deflated", done.deflated >= 0.99 * before - 1)
                before = done.deflated


def test_eps_saves_work(device):
    """The share of values left to secular equations: over 1/2, below 1/4, none."""
    d, e = make("uniform_1", 400)
    deflated = [
        dc(d, e, eps=eps, device=device, full_output=True)[1].deflated for eps in (None, 1e-4, 1)
    ]
    whole = all_deflated(400)
    assert deflated[0] < whole / 2 < 0.75 * whole < deflated[1] < deflated[2] == whole


# ---- in and out ----


@pytest.mark.parametrize("n", [40, 100, 300])
@pytest.mark.parametrize("lower", [False, True])
def test_what_out_held_before_does_not_matter(n, lower, device):
    """The results serve as workspace, and NaN times zero would be NaN."""
    for family in ("uniform_1", "zeros_many", "identity"):
        d, e = make(family, n)
        expected = dc(d, e, lower=lower, device=device)
        out = np.full((n, n), np.nan), np.full(n, np.nan), np.full((n, n), np.inf)
        dc(d, e, lower=lower, out=out, device=device)
        assert same_bits(out, tuple(expected)), family


@pytest.mark.parametrize("n", [40, 100, 270])
def test_a_batch_is_its_matrices(n, device):
    names = ("uniform_1", "chi", "zeros_many", "zero", "toeplitz", "graded_up", "many_equal")
    d, e = stack(make(name, n) for name in names)
    batch = dc(d, e, device=device)
    for i, name in enumerate(names):
        L, s, R = (part[i].copy() for part in batch)
        alone = dc(d[i], e[i], device=device)
        assert same_bits((L, R), (alone.L, alone.R)), name
        if device == "cpu" or n <= 256:
            assert same_bits((s,), (alone.s,)), name
        else:  # the values of a large matrix alone are found by other counts
            np.testing.assert_array_max_ulp(s, alone.s, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_unchecked_nan_and_infinity_give_nan(bad, device):
    d, e = stack(make("chi", 100) for _ in range(3))
    d[1, 40] = bad
    L, s, R = dc(d, e, check_finite=False, device=device)
    for part in (L, s, R):
        assert np.isnan(part[1]).all() and np.isfinite(part[[0, 2]]).all()


def test_values_alone_are_those_of_auto(values_device):
    for n in (5, 100):
        d, e = make("chi", n)
        s, info = dc(d, e, compute_uv=False, device=values_device, full_output=True)
        auto = tsvd.svdvals(d, e, device=values_device)
        assert same_bits(s, auto) and same_bits(s, tsvd.svdvals(d, e, method="dc"))
        assert info.method == ("qr" if n == 5 else "bisect")


def test_auto_takes_it_for_vectors():
    for n in (1, 32, 33, min(300, TUNING["CPU_TWISTED_ORDER"] - 1)):
        (L, s, R), info = tsvd.svd(*make("chi", n), device="cpu", full_output=True)
        assert info.method == "dc"
        assert L.shape == R.shape == (n, n) and s.shape == (n,)
    _, info = tsvd.svd(*make("chi", 300), compute_uv=False, device="cpu", full_output=True)
    assert info.method == "bisect"


def test_full_output(device):
    result, info = dc(*make("chi", 300), device=device, full_output=True)
    assert isinstance(result, tsvd.SVDResult) and info.method == "dc"
    assert info.device.startswith(device)
    assert (info.sweeps, info.iterations, info.rotations) == (0, 0, 0) and info.deflated > 0
    assert set(info.seconds) == {"iterate", "vectors", "values", "device", "total"}
    parts = sum(info.seconds[part] for part in ("iterate", "vectors", "values"))
    assert 0 < parts <= info.seconds["total"] * 1.001
    assert (info.seconds["device"] > 0) == (device == "cuda")


# ---- determinism ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["chi", "uniform_1", "toeplitz", "many_equal"])
def test_the_same_bits_whatever_the_threads(family, dtype):
    """Each block of a product is made by one thread, so that L and R have the same bits too."""
    for n in (100, 300, 520):
        d, e = make(family, n, dtype)
        first = tuple(dc(d, e, device="cpu", threads=1))
        for threads in (1, 2, 3):
            again = tuple(dc(d, e, device="cpu", threads=threads))
            assert same_bits(again, first), (n, threads)


# ---- long runs ----


def test_progress_rises_through_the_levels(device):
    told = []
    n = 2000 if device == "cpu" else 6000
    dc(*make("toeplitz", n), progress=told.append, device=device)
    assert told[-1] == 1 and told == sorted(told) and all(0 <= done <= 1 for done in told)
    assert device != "cpu" or len(set(told)) >= 3


def test_an_exception_of_progress_comes_out(device):
    class Enough(Exception):
        pass

    def stop(done):
        raise Enough

    d, e = make("toeplitz", 2000 if device == "cpu" else 10_000)
    with pytest.raises(Enough):
        dc(d, e, progress=stop, device=device)
    (L, s, R), info = dc(d[:100], e[:99], device=device, full_output=True)
    assert info.method == "dc" and residual(d[:100], e[:99], L, s, R) <= BOUNDS["residual"](100)


def test_ctrl_c_within_a_level():
    """Ctrl-C in the last level, which takes more than half of the time, is answered before its end.

    In a process of its own: a signal that comes late would end that of the tests. The best of three
    tries counts, as the machine may be busy.
    """
    program = """
import signal, threading, time
import numpy as np
import tsvd

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
d, e = np.ones(2500), np.ones(2499)
options = {"device": "cpu", "method": "dc"}
start = time.perf_counter()
tsvd.svd(d, e, **options)
whole = time.perf_counter() - start
answered = []
for _ in range(3):
    half, pressed = threading.Event(), []

    def press():
        half.wait()
        time.sleep(0.01)
        pressed.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    def progress(done):
        if done >= 0.5:
            half.set()

    thread = threading.Thread(target=press)
    thread.start()
    finished = False
    try:
        tsvd.svd(d, e, progress=progress, **options)
        finished = True
        thread.join()
    except KeyboardInterrupt:
        if not finished:
            answered.append(time.perf_counter() - pressed[0])
    thread.join()
assert answered and min(answered) < 0.1 + whole / 5, (answered, whole)
"""
    run(program)


# ---- memory and SciPy ----


@pytest.mark.parametrize("into", ["new arrays", "out"])
def test_workspace_that_does_not_fit(into):
    """L and R would fit, but not with four more arrays: the call fails before any work."""
    free = tsvd.devices()[0].memory_free
    n = int(np.sqrt(free / 24))
    d, e = np.broadcast_to(1.0, n), np.broadcast_to(0.5, n - 1)
    out, least = None, 48 * n * n + 8 * n
    if into == "out":
        out, least = (np.empty((n, n)), np.empty(n), np.empty((n, n))), 32 * n * n
    start = time.perf_counter()
    with pytest.raises(MemoryError, match="workspace") as error:
        dc(d, e, out=out, device="cpu")
    assert time.perf_counter() - start < 10
    *_, wanted, available = map(int, re.findall(r"\d+", str(error.value)))
    assert wanted >= least and wanted > available > free // 4


def test_scipy_waits_for_the_first_product():
    program = f"""
import sys
import numpy as np
import tsvd

def calls(n, **options):
    tsvd.svd(np.ones(n), np.ones(n - 1), device="cpu", **options)

calls({BLAS_ORDER})
calls({BLAS_ORDER + 88}, method="qr")
calls({BLAS_ORDER + 88}, compute_uv=False)
calls({BLAS_ORDER + 88}, compute_uv=False, method="dc")
assert "scipy" not in sys.modules and "cython_blas" not in open("/proc/self/maps").read()
calls({BLAS_ORDER + 1})
assert "cython_blas" in open("/proc/self/maps").read()
assert "scipy.linalg" not in sys.modules  # the package around it takes long

import scipy.linalg.cython_blas
assert scipy.linalg.cython_blas.__pyx_capi__.keys() >= {{"dgemm", "sgemm"}}
assert abs(scipy.linalg.svdvals(np.eye(3)) - 1).max() == 0
"""
    run(program)


@pytest.mark.parametrize(
    "before",
    [
        "import importlib.machinery; importlib.machinery.EXTENSION_SUFFIXES[:] = []",
        "_libraries._loaded = refuse",
        "import scipy.linalg",
        "import scipy.linalg.cython_blas",
    ],
)
def test_the_blas_is_imported_where_its_file_cannot_be_loaded(before):
    program = f"""
import sys
import numpy as np
import tsvd
from tsvd import _libraries

def refuse(name, file):
    raise ImportError(file)

import scipy
{before}
tsvd.svd(np.ones({BLAS_ORDER + 1}), np.ones({BLAS_ORDER}), device="cpu")
assert "scipy.linalg.cython_blas" in sys.modules
"""
    run(program)


def test_results_do_not_depend_on_what_is_loaded():
    program = f"""
import hashlib
import numpy as np
import tsvd

def digest(n):
    parts = tsvd.svd(np.ones(n), np.ones(n - 1), device="cpu")
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

before = [digest(n) for n in (33, 100, {BLAS_ORDER})]
import scipy.linalg
digest({BLAS_ORDER + 88})
assert [digest(n) for n in (33, 100, {BLAS_ORDER})] == before
"""
    run(program)


def test_without_scipy_auto_takes_qr():
    program = f"""
import sys
import numpy as np
import tsvd

sys.modules["scipy"] = None  # cannot be imported
n = {BLAS_ORDER}
d, e = np.ones(n + 88), np.ones(n + 87)
result, info = tsvd.svd(d, e, device="cpu", full_output=True)
assert info.method == "qr"
result, info = tsvd.svd(d[:n], e[: n - 1], method="dc", device="cpu", full_output=True)
assert info.method == "dc"
try:
    tsvd.svd(d, e, method="dc", device="cpu")
except ImportError as error:
    print(error)
"""
    assert "scipy" in run(program)
