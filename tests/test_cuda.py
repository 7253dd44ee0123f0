"""CUDA devices against the CPU, and errors that only a device can make."""

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from pathlib import Path

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, Findings, same_bits
from testing.families import FAMILIES, make, stack
from testing.measures import BOUNDS, max_abs_error, orthogonality, value_error
from testing.processes import run
from tsvd import _core

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

TUNING = _core.tuning()
PIPELINE_ROWS, PIPELINE_SEGMENTS = TUNING["PIPELINE_ROWS"], TUNING["PIPELINE_SEGMENTS"]
FINISH_ROWS = TUNING["FINISH_ROWS"]
VALUES_CPU_ORDER = TUNING["VALUES_CPU_ORDER"]
VALUES_SINGLE_ORDER = TUNING["VALUES_SINGLE_ORDER"]
VALUES_BATCH_ORDER = TUNING["VALUES_BATCH_ORDER"]
PINNED_ORDER = isqrt(TUNING["PINNED_BYTES"] // 8)  # of a float64 matrix that fills a pinned buffer

BOUND = BOUNDS["values bisect"]

COUNTS = ("sweeps", "iterations", "rotations", "deflated")


def givens(d, e, eps, device="cuda", **options):
    return tsvd.svd(d, e, method="givens", eps=eps, device=device, full_output=True, **options)


def magnitude(d, e):
    return float(max(np.max(abs(d)), np.max(abs(e), initial=0)))


def check_same(findings, where, s, info, cpu_s, cpu_info):
    """The rotations are those of the CPU: the counts are equal, the values agree to a few ulps.

    Now and then a rotation is rounded differently, many times where entries repeat.
    """
    for one, cpu_one in zip(np.atleast_2d(s), np.atleast_2d(cpu_s), strict=True):
        findings.bound(
            where, "ulps from the CPU's s", value_error(one, cpu_one), 4 + s.shape[-1] / 3
        )
    for count in COUNTS:
        here, there = getattr(info, count), getattr(cpu_info, count)
        findings.holds(where, f"as many {count}: {here}, on the CPU {there}", here == there)


def check_accuracy(findings, where, d, e, eps, result, lower=False):
    """max |B - L S R| <= 4 eps + the bound at full accuracy; L and R stay orthogonal."""
    n, info = d.shape[-1], np.finfo(result.s.dtype)
    unit = BOUNDS["residual"](n) * (n + 8) * float(info.eps) * np.sqrt(2 * n)
    for i in np.ndindex(d.shape[:-1]):
        L, s, R = (part[i] for part in result)
        limit = 4 * eps + unit * magnitude(d[i], e[i]) + (n + 8) * float(info.smallest_subnormal)
        error = max_abs_error(d[i], e[i], L, s, R, lower)
        findings.bound(where, "max |B - L S R|", error, limit)
        findings.bound(where, "orthogonality", orthogonality(L, R), BOUNDS["orthogonality"](n))
        findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))


def check(findings, where, d, e, eps, splits=(0, 1), lower=False, **tuning):
    """Checks accuracy, equal bits in a second call, and the values and counts of the CPU.

    splits: the values of the setting "split" to run with. Returns the values of the last run, on
    the device and on the CPU.
    """
    for split in splits:
        here = f"{where} split={split}"
        options = {"lower": lower, "tuning": {"split": split, **tuning}}
        result, info = givens(d, e, eps, **options)
        again, _ = givens(d, e, eps, **options)
        findings.holds(here, "the same bits again", same_bits(tuple(result), tuple(again)))
        cpu_s, cpu_info = givens(d, e, eps, device="cpu", compute_uv=False, **options)
        check_same(findings, here, result.s, info, cpu_s, cpu_info)
        check_accuracy(findings, here, d, e, eps, result, lower)
    return result.s, cpu_s


# ---- the pipeline ----


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_families(family, dtype):
    """Sizes that fill one block of each kind, and sizes with one row more."""
    sizes = (2, 3, 33, FINISH_ROWS, FINISH_ROWS + 1, PIPELINE_ROWS + 1, PIPELINE_ROWS + 2)
    with Findings() as findings:
        for n in sizes:
            d, e = make(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__}"
            check(findings, where, d, e, magnitude(d, e) * 2.0**-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("blocks", [2, 3, 7])
def test_several_blocks(blocks, dtype):
    """Sizes that fill the blocks, and sizes with one row more."""
    splits = (0, 1) if blocks < 7 else (1,)  # measuring large matrices is slow
    with Findings() as findings:
        for family in ("uniform_1", "zeros_many"):
            for n in (blocks * PIPELINE_ROWS + 1, blocks * PIPELINE_ROWS + 2):
                d, e = make(family, n, dtype)
                where = f"{family} n={n} {dtype.__name__}"
                check(findings, where, d, e, magnitude(d, e) * 2.0**-6, splits)


@pytest.mark.parametrize("blocks", [2, 10, 100_000])
def test_order_5000(blocks):
    """Two blocks need more than the usual shared memory; 100,000 are more than a device holds."""
    d, e = make("uniform_1", 5000)
    with Findings() as findings:
        check(findings, f"blocks={blocks}", d, e, 2.0**-6, (1,), blocks=blocks)


@pytest.mark.parametrize("n", [2047, 2048, 2049, 2050, 20_000, 100_000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_matrices_without_vectors(n, dtype):
    """Sizes around the 2048 rows that 1024 threads hold at once, and far beyond."""
    d, e = make("uniform_1", n, dtype)
    with Findings() as findings:
        for tuning in ({}, {"split": 0}, {"blocks": 1 + n // 4000}):
            options = {"compute_uv": False, "tuning": tuning}
            here, there = (givens(d, e, 2.0**-5, device, **options) for device in ("cuda", "cpu"))
            check_same(findings, f"n={n} {dtype.__name__} {tuning}", *here, *there)


@pytest.mark.parametrize("blocks", [1, 3])
def test_more_segments_than_a_launch_takes(blocks):
    rows = FINISH_ROWS + 6
    d, e = make("uniform_1", rows * (PIPELINE_SEGMENTS + 1))
    e[rows - 1 :: rows] = 0
    options = {"compute_uv": False, "tuning": {"blocks": blocks}}
    here, there = (givens(d, e, 2.0**-7, device, **options) for device in ("cuda", "cpu"))
    with Findings() as findings:
        check_same(findings, f"blocks={blocks}", *here, *there)


@pytest.mark.parametrize("block_threads", [2, 6, 10, 64, 250])
@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 7, 13])
def test_odd_blocks_and_threads(blocks, block_threads):
    tuning = {"blocks": blocks, "block_threads": block_threads}
    with Findings() as findings:
        for family in ("uniform_1", "zeros_many", "graded_gently", "toeplitz"):
            for n in (3, 33, FINISH_ROWS + 2, 257):
                d, e = make(family, n)
                where = f"{family} n={n} {tuning}"
                s, cpu_s = check(findings, where, d, e, magnitude(d, e) * 2.0**-7, **tuning)
                findings.holds(where, "the CPU's bits of s", same_bits(s, cpu_s))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 7, 16, 26, 33, 58, 63, 64, 65, 90, 129])
def test_many_draws(n, dtype):
    """Some sizes are near the numbers of columns and steps in which rotations are applied."""
    rng = np.random.default_rng(n)
    d, e = rng.uniform(0, 1, (40, n)).astype(dtype), rng.uniform(0, 1, (40, n - 1)).astype(dtype)
    with Findings() as findings:
        check(findings, f"n={n} {dtype.__name__}", d, e, 2.0**-9)


@pytest.mark.parametrize("n", [20, FINISH_ROWS + 1, 200])
def test_every_eps(n):
    d, e = make("uniform_1", n)
    with Findings() as findings:
        for eps in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
            check(findings, f"n={n} eps={eps}", d, e, eps, splits=(1,))


@pytest.mark.parametrize("dtype", DTYPES)
def test_lower(dtype):
    with Findings() as findings:
        for n in (2, 33, FINISH_ROWS + 1, PIPELINE_ROWS + 2):
            d, e = make("normal", n, dtype)
            where = f"n={n} {dtype.__name__} lower"
            check(findings, where, d, e, magnitude(d, e) * 2.0**-7, lower=True)


def test_the_bound_on_sweeps_cuts_a_round_short():
    """The bound falls at every place of a round and of a wave."""
    d, e = make("uniform_1", FINISH_ROWS + 3)
    with Findings() as findings:
        for eps in (0.5, 0.3, 0.1, 0.03):
            result, info = givens(d, e, eps, tuning={"split": 0})
            bounded, _ = givens(d, e, eps, max_sweeps=info.sweeps, tuning={"split": 0})
            findings.holds(f"eps={eps}", "the same s", same_bits(result.s, bounded.s))
            check_accuracy(findings, f"eps={eps} max_sweeps={info.sweeps}", d, e, eps, bounded)
            if info.sweeps > 1:
                with pytest.raises(np.linalg.LinAlgError):
                    givens(d, e, eps, max_sweeps=info.sweeps - 1, tuning={"split": 0})


def test_splitting_saves_empty_steps():
    d, e = make("uniform_1", 300)
    _, info = givens(d, e, 1e-6)
    assert 0 < info.iterations_saved < info.iterations


# ---- in and out ----


@pytest.mark.parametrize("n", [PINNED_ORDER - 1, PINNED_ORDER, PINNED_ORDER + 1, 3000])
def test_results_longer_than_a_buffer(n):
    """Results go to arrays of the caller, written to before, and to new arrays."""
    d, e = make("uniform_1", n)
    result, _ = givens(d, e, 2.0**-4)
    out = np.full((n, n), 7.0), np.full(n, 7.0), np.full((n, n), 7.0)
    filled, _ = givens(d, e, 2.0**-4, out=out)
    assert all(given is returned for given, returned in zip(out, filled, strict=True))
    assert same_bits(out, tuple(result))
    with Findings() as findings:
        check_accuracy(findings, f"n={n}", d, e, 2.0**-4, result)


@pytest.mark.parametrize("step", [-1, 3, -7])
def test_strided_inputs(step):
    d, e = make("uniform_1", 1000)
    room = np.full((2, abs(step) * 1000), np.nan)
    d_in, e_in = room[0, ::step], room[1, ::step][:999]
    d_in[:], e_in[:] = d, e
    room.setflags(write=False)
    expected, _ = givens(d, e, 1e-2)
    assert same_bits(tuple(givens(d_in, e_in, 1e-2)[0]), tuple(expected))


def test_a_batch_is_its_matrices():
    d, e = stack(make(family, 70) for family in FAMILIES)
    eps = 1e-3
    chosen = np.array([magnitude(*pair) < 100 for pair in zip(d, e, strict=True)])
    d, e = d[chosen], e[chosen]
    batch, _ = givens(d, e, eps)
    for i in range(len(d)):
        alone, _ = givens(d[i], e[i], eps)
        assert same_bits(tuple(part[i].copy() for part in batch), tuple(alone)), i


# ---- devices ----


def test_facts_about_devices():
    _, *devices = tsvd.devices()
    assert devices
    assert devices[0].memory_free is not None  # it is in use
    for i, device in enumerate(devices):
        assert device.device == f"cuda:{i}" and device.name
        assert device.memory_free is None or 0 < device.memory_free <= device.memory_total
        assert device.compute_capability >= (3, 5) and device.multiprocessors > 0


CONTEXTS = """
import ctypes
import numpy as np
import tsvd

def contexts():
    "The devices on which the process has a context, by the driver."
    driver = ctypes.CDLL("libcuda.so.1")
    flags, active, found = ctypes.c_uint(), ctypes.c_int(), []
    for device in range(len(tsvd.devices()) - 1):
        assert driver.cuDevicePrimaryCtxGetState(
            device, ctypes.byref(flags), ctypes.byref(active)
        ) == 0
        found += [device] if active.value else []
    return found

"""


def test_questions_use_no_device():
    """Nor does work that stays on the CPU; a call uses the device that it names, no other."""
    program = """
tsvd.show_config(mode="dicts")
tsvd.svd(np.ones(20), np.ones(19))
gpus = tsvd.devices()[1:]
assert contexts() == [] and all(gpu.memory_free is None for gpu in gpus)
last = len(gpus) - 1
for _ in range(2):
    tsvd.svd(np.ones(200), np.ones(199), device=last)
    assert contexts() == [last]
    tsvd.trim()
gpus = tsvd.devices()[1:]
assert [gpu.memory_free is not None for gpu in gpus] == [False] * last + [True]
assert 0 < gpus[last].memory_free <= gpus[last].memory_total
"""
    run(CONTEXTS + program)


def test_large_work_uses_one_device():
    program = """
_, info = tsvd.svd(np.ones(3000), np.ones(2999), full_output=True)
assert contexts() == ([] if info.device == "cpu" else [int(info.device[5:])]), info
"""
    run(CONTEXTS + program)


def test_few_handles_are_kept():
    """However many calls were under way at once."""
    threads = 12
    together = threading.Barrier(threads)
    d, e = make("chi", 300)

    def call(_):
        together.wait()
        return tsvd.svd(d, e, device="cuda").s

    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(call, range(threads)))
    assert all(same_bits(s, results[0]) for s in results)
    assert 1 <= _core.trim() <= 4 and _core.trim() == 0
    assert same_bits(tsvd.svd(d, e, device="cuda").s, results[0])
    assert tsvd.trim() is None and _core.trim() == 0


def test_every_name_of_every_device():
    d, e = make("uniform_1", 100)
    expected, _ = givens(d, e, 1e-3)
    for i in range(len(tsvd.devices()) - 1):
        for name in (f"cuda:{i}", i):
            result, info = givens(d, e, 1e-3, device=name)
            assert info.device == f"cuda:{i}"
            assert np.allclose(result.s, expected.s, rtol=1e-14)
    assert givens(d, e, 1e-3)[1].device == "cuda:0"


@pytest.mark.parametrize("device", ["cuda:99", 99])
def test_a_device_that_does_not_exist(device):
    with pytest.raises(RuntimeError, match=r"99.*does not exist.*0 to"):
        tsvd.svd([1.0, 2.0], [0.5], device=device)


# ---- values ----

# Entries of a tile of the plain form. A matrix of order n has 2 n entries, of which a count from
# both ends passes over about n from either one. A tile of the twofold form has half as many, and
# one of the extended form a quarter.
TILE_ENTRIES = TUNING["PLAIN_TILE"]


def check_near(findings, where, s, expected):
    """The values agree with the exact ones of the CPU to half of the bound on their error."""
    n = s.shape[-1]
    for one, exact in zip(np.atleast_2d(s), np.atleast_2d(expected), strict=True):
        findings.bound(where, "ulps from the CPU's s", value_error(one, exact), BOUND(n) / 2)
    findings.holds(where, "descending", np.all(np.diff(s) <= 0))


def check_values(findings, where, d, e, method="bisect", **options):
    """The values are good, and a second call gives the same bits."""
    expected = tsvd.svdvals(d, e, method="bisect", **options)
    before = None
    for again in ("", " again"):
        s = tsvd.svdvals(d, e, method=method, device="cuda", **options)
        findings.holds(where, "dtype and shape", s.dtype == expected.dtype)
        check_near(findings, f"{where}{again}", s, expected)
        findings.holds(where, "the same bits twice", before is None or same_bits(s, before))
        before = s


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_families(family, dtype):
    """Sizes around the largest that the CPU takes, and sizes of one tile and of two."""
    sizes = (0, 1, 2, TILE_ENTRIES // 2 + 1)
    sizes += tuple(n + more for n in (VALUES_CPU_ORDER, VALUES_SINGLE_ORDER) for more in (0, 1))
    with Findings() as findings:
        for n in sizes:
            d, e = make(family, n, dtype)
            check_values(findings, f"{family} n={n} {dtype.__name__}", d, e)


HALVES = (2, 3, 4, 6, 8, 16)  # tiles, times four
AROUND_TILES = {quarters * TILE_ENTRIES // 4 + more for quarters in HALVES for more in range(3)}
AROUND_TILES |= {tiles * TILE_ENTRIES // 2 - 1 for tiles in (1, 2, 4)}


@pytest.mark.parametrize("n", sorted({480, 640, 2000} | AROUND_TILES))
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_around_every_tile(n, dtype):
    with Findings() as findings:
        for family in ("uniform_1", "zeros_everywhere", "many_equal", "diagonal", "graded_peak"):
            d, e = make(family, n, dtype)
            check_values(findings, f"{family} n={n} {dtype.__name__}", d, e)


@pytest.mark.parametrize("family", ["uniform_1", "toeplitz", "chi", "wilkinson", "graded_gently"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_long_matrices(family, dtype):
    with Findings() as findings:
        # Up to this many values 132 multiprocessors do several rounds before the host asks.
        several = 132 * TUNING["PLAIN_FILL"] // TUNING["FEW_POINTS"]
        for n in (4500, several, several + 1, 14_000):
            d, e = make(family, n, dtype)
            check_values(findings, f"{family} n={n} {dtype.__name__}", d, e)


@pytest.mark.slow
@pytest.mark.parametrize("n", [40_000, 90_000])
def test_values_of_more_than_fill_a_device(n):
    """One point for every value makes more points than a GPU works on at once."""
    d, e = make("uniform_1", n)
    with Findings() as findings:
        check_values(findings, f"n={n}", d, e)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(20))
def test_values_of_many_draws(seed, dtype):
    rng = np.random.default_rng(seed)
    with Findings() as findings:
        for n in rng.integers(VALUES_CPU_ORDER + 1, 900, 3):
            spread = rng.choice([0, 1, 10, 100])
            most = np.log2(np.finfo(dtype).max) - 2
            d, e = (spread * rng.standard_normal(k) for k in (n, n - 1))
            d, e = (np.exp2(np.minimum(x, most)).astype(dtype) for x in (d, e))
            check_values(findings, f"n={n} seed={seed} spread={spread} {dtype.__name__}", d, e)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_numbers(dtype):
    """Values that are exactly numbers of the type: the count at that number decides."""
    with Findings() as findings:
        for c in (1.0, 3.0, 0.7):
            for n in (301, 302, 604):
                d, e = np.full(n, c, dtype), np.full(n - 1, c, dtype)
                check_values(findings, f"d = e = {c}, n={n} {dtype.__name__}", d, e)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_above_the_largest_number(dtype):
    # At this order no value is equal to the largest number.
    d, e = (np.full(k, np.finfo(dtype).max) for k in (402, 401))
    s, expected = tsvd.svdvals(d, e, device="cuda"), tsvd.svdvals(d, e)
    finite = np.isfinite(expected)
    assert np.isposinf(s[0]) and np.array_equal(np.isfinite(s), finite)
    with Findings() as findings:
        check_near(findings, dtype.__name__, s[finite], expected[finite])


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_what_auto_takes(dtype):
    with Findings() as findings:
        for n in (3, 8, 9, 300):
            for family in ("normal", "exponents"):
                d, e = make(family, n, dtype)
                where = f"{family} n={n} {dtype.__name__}"
                check_values(findings, where, d, e, method="auto")
                check_values(findings, f"{where} lower", d, e, method="auto", lower=True)
    d, e = make("normal", 300, dtype)
    s, info = tsvd.svd(d, e, compute_uv=False, device="cuda", full_output=True)
    assert value_error(s, tsvd.svdvals(d, e)) <= BOUND(300)
    assert info.method == "bisect" and info.device == "cuda:0" and info.iterations > 300


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "family", ["uniform_1", "toeplitz", "zeros_many", "clustered", "exponents"]
)
def test_values_do_not_depend_on_hints(family, dtype):
    """With vectors, the values of QR are hints; the hints for tiny values may be far off."""
    d, e = make(family, 400, dtype)
    s = tsvd.svd(d, e, method="qr", device="cuda").s
    assert value_error(s, tsvd.svdvals(d, e, method="bisect")) <= BOUND(400) / 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_to_eps(dtype):
    with Findings() as findings:
        for family in ("uniform_1", "normal", "zeros_many", "graded_gently", "graded_both"):
            d, e = make(family, 700, dtype)
            exact = tsvd.svdvals(d, e, method="bisect").astype(np.float64)
            for relative in (1e-1, 1e-3, 1e-6, 1e-30):
                eps = relative * exact[0]
                s = tsvd.svdvals(d, e, method="bisect", eps=eps, device="cuda")
                where = f"{family} eps={eps} {dtype.__name__}"
                limit = eps + (4 + 700 / 64) * float(np.finfo(dtype).eps) * exact
                findings.holds(where, "within eps", np.all(abs(s - exact) <= limit))
                findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 16, 31, 32, 33, 64, 65, 127, 128, 129, 300, 1000])
def test_values_of_a_batch(n, dtype):
    """Several matrices in a block, one in a block, and one in several blocks."""
    names = ("uniform_1", "zero", "toeplitz", "graded_both", "zeros_everywhere", "exponents")
    d, e = stack(make(family, n, dtype) for family in names * 3)
    with Findings() as findings:
        check_values(findings, f"n={n} {dtype.__name__}", d, e)


def test_values_of_a_batch_of_long_matrices():
    for n in (VALUES_BATCH_ORDER, VALUES_BATCH_ORDER + 1):
        d, e = stack((make("chi", n), make("normal", n)))
        with Findings() as findings:
            check_values(findings, f"n={n}", d, e)


@pytest.mark.parametrize("n", [100, 300, 1025, 3000])
def test_values_of_a_range_are_those_of_all(n):
    """They agree up to the bound on the error: a search for fewer values uses other points."""
    for family in ("uniform_1", "toeplitz", "graded_gently", "zeros_many"):
        d, e = make(family, n)
        exact = tsvd.svdvals(d, e, method="bisect")
        for low, high in ((0, 0), (0, 9), (n - 3, n - 1), (n // 2, n // 2 + 40)):
            s = tsvd.svdvals(d, e, select="i", select_range=(low, high), device="cuda")
            assert value_error(s, exact[low : high + 1]) <= BOUND(n) / 2, (family, low, high)


def test_values_can_be_stopped():
    d, e = make("uniform_1", 100_000)
    shares = []

    def stop(done):
        shares.append(done)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tsvd.svd(d, e, compute_uv=False, device="cuda", progress=stop)
    assert len(shares) == 1 and 0 <= shares[0] < 1
    d, e = d[:300], e[:299]
    assert value_error(tsvd.svdvals(d, e, device="cuda"), tsvd.svdvals(d, e)) <= BOUND(300)


def test_values_in_two_threads():
    matrices = [make("normal", n) for n in (300, 700, 1500, 3000)]

    def call(matrix):
        return tsvd.svdvals(*matrix, device="cuda")

    alone = [call(matrix) for matrix in matrices]

    def repeat(order):
        return [same_bits(call(matrices[i]), alone[i]) for i in order for _ in range(5)]

    with ThreadPoolExecutor(2) as pool:
        for same in pool.map(repeat, ((0, 1, 2, 3), (3, 2, 1, 0))):
            assert all(same)


def test_values_of_qr():
    """Also without vectors. The CPU finds the values of a small matrix, as for "auto"."""
    for family in ("uniform_1", "chi", "graded_down", "zero_first"):
        for n in (1, 2, 31, VALUES_CPU_ORDER, VALUES_CPU_ORDER + 1, 1000):
            d, e = make(family, n)
            s = tsvd.svdvals(d, e, method="qr", device="cuda")
            result, info = tsvd.svd(
                d, e, compute_uv=False, method="qr", device="cuda", full_output=True
            )
            assert same_bits(s, result) and info.method == "qr"
            assert np.allclose(s, tsvd.svdvals(d, e, method="qr", device="cpu"), rtol=1e-15 * n)
            if n <= VALUES_CPU_ORDER:
                assert same_bits(s, tsvd.svdvals(d, e, method="qr", device="cpu"))


def test_values_of_givens_have_the_same_bits():
    for n in (1, 2, FINISH_ROWS, FINISH_ROWS + 1, 600):
        d, e = make("normal", n)
        s, _ = givens(d, e, 1e-3, compute_uv=False)
        assert same_bits(s, givens(d, e, 1e-3)[0].s), n
        assert same_bits(s, tsvd.svdvals(d, e, method="givens", eps=1e-3, device="cuda")), n


# ---- several threads, memory, errors ----


def test_two_threads_on_one_device():
    """Their launches need different amounts of shared memory; the bits do not change."""
    matrices = [make("uniform_1", n) for n in (5, 70, 300, 600, 1200, 1900)]

    def call(matrix):
        return tuple(givens(*matrix, 2.0**-6, tuning={"blocks": 1})[0])

    alone = [call(matrix) for matrix in matrices]

    def repeat(order):
        return [same_bits(call(matrices[i]), alone[i]) for i in order for _ in range(10)]

    with ThreadPoolExecutor(2) as pool:
        for same in pool.map(repeat, ((0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0))):
            assert all(same)


@pytest.mark.alone
def test_calls_keep_no_memory():
    """Calls keep no memory: those that succeed, fail or are stopped."""
    d, e = make("uniform_1", 400)

    def stop(done):
        raise ZeroDivisionError

    def calls(count):
        for _ in range(count):
            givens(d, e, 1e-2)
            tsvd.svd(d[:50], e[:49], device="cuda")
            tsvd.svdvals(d, e, device="cuda")
            with pytest.raises(ZeroDivisionError):
                tsvd.svd(d, e, compute_uv=False, device="cuda", progress=stop)
            with pytest.raises(np.linalg.LinAlgError):
                givens(d, e, 1e-2, max_sweeps=3)
            with pytest.raises(ZeroDivisionError):
                givens(d, e, 1e-2, progress=stop)
            with pytest.raises(ValueError, match="NaN"):
                givens(d * np.nan, e, 1e-2)

    calls(5)
    before = tsvd.devices()[1].memory_free
    calls(60)  # each matrix of vectors takes 1.3 MB
    assert tsvd.devices()[1].memory_free >= before - 2**25


class Driver:
    """Takes device memory through the CUDA driver, which all libraries of the process share."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        assert getattr(self.library, name)(*arguments) == 0, name

    def take_all_but(self, least):
        """Allocates until not even `least` bytes are left. Returns the allocations."""
        pieces, size = [], 2**40
        while size >= least:
            piece = ctypes.c_uint64()
            if self.library.cuMemAlloc_v2(ctypes.byref(piece), ctypes.c_size_t(size)) == 0:
                pieces.append(piece)
            else:
                size //= 2
        return pieces

    def give_back(self, pieces):
        for piece in pieces:
            self.call("cuMemFree_v2", piece)


def exhaust_memory():
    """Needs a process of its own, so that the pool is empty."""
    d, e = make("uniform_1", 5000)
    tsvd.svd(d[:50], e[:49], method="givens", eps=1e-2, device="cuda")
    driver = Driver()
    pieces = driver.take_all_but(2**27)
    for _ in range(2):
        with pytest.raises(MemoryError, match=r"400640000 bytes wanted, \d+ bytes free") as caught:
            tsvd.svd(d, e, method="givens", eps=2.0**-6, device="cuda")
        assert caught.value.device == 0
    driver.give_back(pieces)
    with Findings() as findings:
        check(findings, "after the error", d, e, 2.0**-6, splits=(1,))


@pytest.mark.alone
def test_exhausted_memory():
    """The exception says how much was wanted, and the next call works."""
    program = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parents[i]) for i in (0, 1)]!r}
import test_cuda
test_cuda.exhaust_memory()
"""
    run(program, seconds=120)
