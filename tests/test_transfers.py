"""Large arrays on their way to a CUDA device and back, while it computes."""

from math import isqrt

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, same_bits
from testing.families import FAMILIES, make
from tsvd import _core

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

TUNING = _core.tuning()
BLOCKS_ORDER = isqrt(TUNING["SEND_BLOCKS_BYTES"] // 16) + 52  # its vectors are sent in blocks
# Matrices of order 32 that are staged, that have hints, and whose vectors are sent in chunks.
LARGE_BATCH = max(TUNING["STAGED_ENTRIES"] // 32, TUNING["HINTS_BATCH"]) + 808


def batch(count, n, dtype="float64"):
    rng = np.random.default_rng(count + n)
    return rng.random((count, n)).astype(dtype), rng.random((count, n - 1)).astype(dtype)


def solve(d, e, **options):
    return tuple(tsvd.svd(d, e, device="cuda", **options))


def on_device(torch, d, e, **options):
    """The results of arrays that are on the device and stay there: nothing is sent."""
    found = tsvd.svd(torch.from_numpy(d).cuda(), torch.from_numpy(e).cuda(), **options)
    return tuple(x.cpu().numpy() for x in found)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("family", ["chi", "toeplitz", "uniform_1", "zeros_many", "identity"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_have_the_bits_of_the_whole(torch, family, dtype):
    for n in (BLOCKS_ORDER, 2 * BLOCKS_ORDER + 1):
        d, e = make(family, n, dtype)
        for options in ({}, {"lower": True}, {"select": "i", "select_range": (n // 9, n - 99)}):
            assert same_bits(solve(d, e, **options), on_device(torch, d, e, **options))


@pytest.mark.parametrize("pinned", [(0,), (1,), (2,), (0, 1, 2)])
def test_pinned_results(torch, pinned):
    n = 2 * BLOCKS_ORDER
    d, e = make("chi", n)
    shapes = (n, n), (n,), (n, n)
    out = tuple(
        torch.empty(shape, dtype=torch.float64, pin_memory=i in pinned).numpy()
        for i, shape in enumerate(shapes)
    )
    solve(d, e, out=out)
    assert same_bits(out, solve(d, e))


def test_pinned_results_of_a_batch(torch):
    d, e = batch(LARGE_BATCH, 32)
    shapes = (*d.shape, 32), d.shape, (*d.shape, 32)
    out = tuple(torch.empty(x, dtype=torch.float64, pin_memory=True).numpy() for x in shapes)
    solve(d, e, out=out)
    assert same_bits(out, solve(d, e))


@pytest.mark.parametrize("n", [1, 2, 8, 9, 17, 32, 33, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_large_batch_is_its_parts(n, dtype):
    count = LARGE_BATCH * 32 // n + 1
    d, e = batch(count, n, dtype)
    result = solve(d, e)
    values = tsvd.svdvals(d, e, device="cuda")
    for begin in (0, count // 2, count - 50):
        few = slice(begin, begin + 50)
        assert same_bits(tuple(x[few] for x in result), solve(d[few], e[few]))
        # without hints other counts find them, which are not quite monotone
        np.testing.assert_array_max_ulp(values[few], tsvd.svdvals(d[few], e[few], device="cuda"), 2)


def test_layouts_of_a_large_batch():
    count, n = LARGE_BATCH, 32
    d, e = batch(count, n)
    room = np.full((2 * count, 3 * n), np.nan)
    d_in = room[::-2, 1 : 1 + 2 * n : 2]
    d_in[:] = d
    room.setflags(write=False)
    assert same_bits(solve(d_in, e), solve(d, e))
    assert same_bits(solve(d_in, e[7]), solve(d, np.broadcast_to(e[7], e.shape).copy()))
    assert same_bits(
        tsvd.svdvals(d_in, e[7], device="cuda"),
        tsvd.svdvals(d, np.broadcast_to(e[7], e.shape).copy(), device="cuda"),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_of_a_large_batch_that_are_not_ordinary(dtype):
    d, e = batch(LARGE_BATCH, 32, dtype)
    tiny = np.finfo(dtype).smallest_subnormal
    d[5], e[5] = 0, 0
    d[6, 3] = np.nan
    e[-1, 0] = np.inf
    d[8], e[8] = tiny, tiny
    d[9], e[9] = np.finfo(dtype).max, 0
    with pytest.raises(ValueError, match="matrix 6 "):
        solve(d, e)
    result = solve(d, e, check_finite=False)
    for few in (slice(0, 12), slice(-3, None)):
        assert same_bits(tuple(x[few] for x in result), solve(d[few], e[few], check_finite=False))
    values = tsvd.svdvals(d, e, device="cuda", check_finite=False)
    assert same_bits(values[:12], tsvd.svdvals(d[:12], e[:12], device="cuda", check_finite=False))
    assert not values[5].any() and np.isnan(values[6]).all() and np.isnan(values[-1]).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_hints_change_no_value(family):
    d, e = make(family, 32)
    alone = tsvd.svdvals(d[None].repeat(3, 0), e[None].repeat(3, 0), device="cuda")
    d, e = (np.broadcast_to(x, (LARGE_BATCH, len(x))) for x in (d, e))
    assert same_bits(tsvd.svdvals(d, e, device="cuda"), alone[:1].repeat(LARGE_BATCH, 0))


class Stop(Exception):
    pass


@pytest.mark.parametrize("at", [1, 3, 6])
def test_a_call_that_is_stopped_while_results_are_sent(at):
    n, calls = 2 * BLOCKS_ORDER, 0
    d, e = make("chi", n)
    expected = solve(d, e)
    out = tuple(np.empty_like(x) for x in expected)

    def progress(done):
        nonlocal calls
        calls += 1
        if calls == at:
            raise Stop

    with pytest.raises(Stop):
        for _ in range(20):  # looks are twenty a second
            solve(d, e, out=out, progress=progress)
    after = tuple(x.copy() for x in out)
    assert same_bits(solve(d, e), expected)
    assert same_bits(out, after)  # nothing arrives after the call


def test_results_in_a_file(tmp_path):
    n = BLOCKS_ORDER
    d, e = make("chi", n)
    shapes = (n, n), (n,), (n, n)
    out = tuple(
        np.memmap(tmp_path / str(i), np.float64, "w+", shape=shape)
        for i, shape in enumerate(shapes)
    )
    solve(d, e, out=out)
    assert same_bits(tuple(np.asarray(x) for x in out), solve(d, e))
