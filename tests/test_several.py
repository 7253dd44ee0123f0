"""One call on several devices: the values of a matrix, or the matrices of a batch, are shared out.

What needs no GPU has the CPU in the place of each device.
"""

import _thread
import os
import threading
import time

import numpy as np
import pytest

import tsvd
from tsvd import _call, _core, _devices, _several, _team, linalg

METHODS = ("auto", "dc", "twisted")
SHARES = (1, 2, 3, 4)


@pytest.fixture
def several(monkeypatch):
    """several(k): `device` of k devices, each of which is the CPU; all work is shared out."""
    number_of = _devices.number_of

    def or_cpu(device):
        return -1 if isinstance(device, int) and device == -1 else number_of(device)

    for module in (_devices, _call):
        monkeypatch.setattr(module, "number_of", or_cpu)
    monkeypatch.setattr(_several, "_devices_of", lambda device, stream: list(device))
    monkeypatch.setattr(_several, "_are_alike", lambda devices: True)
    for name in ("_BATCH_LEAST", "_VECTORS_LEAST", "_VALUES_LEAST"):
        monkeypatch.setattr(_several, name, 1)
    return lambda count: [-1] * count


def bidiagonal(n, *batch, extra=0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((*batch, n)), rng.standard_normal((*batch, n - 1 + extra))


def dense(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def same(result, expected):
    assert len(result) == len(expected)
    for x, y in zip(result, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def close(result, expected):
    """Up to rounding: a BLAS of the host may add up in another order for fewer columns."""
    for x, y in zip(result, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=300 * np.finfo(x.dtype).eps * abs(y).max())


# ---- one matrix ----


@pytest.mark.parametrize("n", [1, 2, 31, 33, 64, 200])
@pytest.mark.parametrize("method", METHODS)
def test_values_of_a_matrix_are_shared_out(several, n, method):
    d, e = bidiagonal(n)
    for options in ({}, {"lower": True}, {"select": "i", "select_range": (n // 3, n - 1)}):
        expected = tsvd.svd(d, e, method=method, **options)
        for shares in SHARES:
            result = tsvd.svd(d, e, method=method, device=several(shares), **options)
            assert isinstance(result, tsvd.SVDResult)
            same(result, expected)
            assert all(x.flags.c_contiguous for x in result)
    same([tsvd.svdvals(d, e, device=several(3))], [tsvd.svdvals(d, e)])


def test_an_interval_is_shared_out(several):
    d, e = bidiagonal(300)
    options = {"select": "v", "select_range": (0.5, 1.5)}
    same(tsvd.svd(d, e, device=several(3), **options), tsvd.svd(d, e, **options))
    d, e = bidiagonal(60, seed=7)
    for low in np.linspace(0.1, 2, 40):  # with eps a value may be off by as much
        given = options | {"select_range": (low, low + 0.3), "eps": 1e-3}
        s = tsvd.svd(d, e, device=several(2), **given).s
        assert np.all((s > low) & (s <= low + 0.3))
    options["select_range"] = (1e9, 2e9)
    same(tsvd.svd(d, e, device=several(3), **options), tsvd.svd(d, e, **options))


@pytest.mark.parametrize("options", [{}, {"lower": True}, {"full_matrices": True}])
def test_an_extra_column(several, options):
    d, e = bidiagonal(150, extra=1)
    same(tsvd.svd(d, e, device=several(3), **options), tsvd.svd(d, e, **options))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_dense_matrix(several, dtype):
    A = dense(150, 90).astype(dtype)
    for options in ({"full_matrices": False}, {"select": "i", "select_range": (10, 70)}):
        close(linalg.svd(A, device=several(3), **options), linalg.svd(A, **options))
    same(linalg.svd(A, device=several(2)), linalg.svd(A))
    interval = {"select": "v", "select_range": (5.0, 12.0)}
    same(linalg.svd(A, device=several(2), **interval), linalg.svd(A, **interval))


def test_parts_decide_together(several):
    """Close values in one part: all parts go the way that the whole matrix goes."""
    n = 256
    d, e = bidiagonal(n)
    d[n // 2 :], e[n // 2 - 1 :] = 2.0**-20, 2.0**-60
    expected, info = tsvd.svd(d, e, method="twisted", full_output=True)
    assert info.method == "dc"
    for shares in SHARES[1:]:
        result, told = tsvd.svd(d, e, method="twisted", device=several(shares), full_output=True)
        assert told.method == "dc"
        assert told.refused > 0
        same(result, expected)


def test_dense_parts_decide_together_on_the_other_side(several):
    """Large enough for vectors of one side from those of the other; most values are large."""
    n = 560
    A = dense(n, n) + 20 * np.eye(n)
    U, S, Vh = linalg.svd(A, device=several(3))
    np.testing.assert_array_equal(S, linalg.svdvals(A))
    assert abs(U * S @ Vh - A).max() < 1e-12 * S[0]
    assert abs(U.T @ U - np.eye(n)).max() < 1e-12


def test_devices_of_other_models_have_no_part_of_a_matrix(several, monkeypatch):
    """They round in another way, and their vectors of close values would not fit."""
    monkeypatch.setattr(_several, "_are_alike", lambda devices: len(set(devices)) == 1)
    d, e = bidiagonal(200)
    job = _several.Job(tsvd._arrays.BIDIAGONAL, None, (d, e), _core.options(compute_uv=True), None)
    split = _several._split(job, [3, 5, 3, 3])
    assert split.devices == [3, 3, 3]
    assert split.bounds[-1] == 200
    assert _several._split(job, [3, 5]) is None


@pytest.mark.parametrize("method", ["qr", "givens"])
def test_methods_without_parts_stay_on_one_device(several, method):
    d, e = bidiagonal(40)
    result, info = tsvd.svd(d, e, method=method, device=several(3), full_output=True)
    assert info.device == "cpu"
    same(result, tsvd.svd(d, e, method=method))


# ---- batches ----


@pytest.mark.parametrize("shares", SHARES)
def test_batches(several, shares):
    d, e = np.random.default_rng(0).standard_normal((3, 1, 9)), bidiagonal(9, 5)[1]
    devices = several(shares)
    same(tsvd.svd(d, e, device=devices), tsvd.svd(d, e))
    same([tsvd.svdvals(d, e, device=devices)], [tsvd.svdvals(d, e)])
    A = dense(7, 20, 13)
    for full in (True, False):
        same(linalg.svd(A, full, device=devices), linalg.svd(A, full))
    same([linalg.svdvals(A, device=devices)], [linalg.svdvals(A)])
    A = dense(2, 3, 8, 8)
    same([linalg.inv(A, device=devices)], [linalg.inv(A)])
    same(linalg.svd(A[:0], device=devices), linalg.svd(A[:0]))
    d, e = np.ones((1, 5)), np.ones((0, 4))
    same(tsvd.svd(d, e, device=devices), tsvd.svd(d, e))


def test_results_in_given_arrays(several):
    d, e = bidiagonal(20, 6)
    expected = tsvd.svd(d, e)
    out = tuple(np.empty_like(x) for x in expected)
    result = tsvd.svd(d, e, device=several(4), out=out)
    assert all(x is y for x, y in zip(result, out, strict=True))
    same(out, expected)
    d, e = bidiagonal(200)
    expected = tsvd.svd(d, e)
    out = tuple(np.empty_like(x) for x in expected)
    tsvd.svd(d, e, device=several(4), out=out)
    same(out, expected)
    values = np.empty(200)
    assert tsvd.svdvals(d, e, device=several(2), out=values) is values
    A = dense(5, 6, 6)
    X = np.empty_like(A)
    assert linalg.inv(A, device=several(2), out=X) is X
    same([X], [linalg.inv(A)])


@pytest.mark.parametrize("which", range(3))
def test_given_arrays_that_do_not_fit(several, which):
    d, e = bidiagonal(20, 6)
    out = [np.empty_like(x) for x in tsvd.svd(d, e)]
    for wrong in (out[which][:-1], out[which].astype(np.float32), out[which][::-1]):
        bad = (*out[:which], wrong, *out[which + 1 :])
        with pytest.raises((TypeError, ValueError), match="out"):
            tsvd.svd(d, e, device=several(2), out=bad)
    for wrong in (list(out), tuple(out[:2])):
        with pytest.raises(TypeError, match="out must be a tuple of three arrays"):
            tsvd.svd(d, e, device=several(2), out=wrong)
    with pytest.raises(ValueError, match="overlap"):
        tsvd.svd(d, e, device=several(2), out=(out[0], out[1], out[0]))
    with pytest.raises(ValueError, match="overlaps the memory of d"):
        tsvd.svd(out[1], e, device=several(2), out=tuple(out))


def test_tensors_of_the_host(several):
    torch = pytest.importorskip("torch")
    A = torch.from_numpy(dense(6, 5, 5))
    result = linalg.svd(A, device=several(2))
    assert all(isinstance(x, torch.Tensor) for x in result)
    same([x.numpy() for x in result], linalg.svd(A.numpy()))
    assert isinstance(linalg.inv(A, device=several(2)), torch.Tensor)


def test_shares_by_speed(several, monkeypatch):
    """Devices of different models: by their rates, then as their work has shown."""
    monkeypatch.setattr(_several, "_are_alike", lambda devices: False)
    monkeypatch.setattr(_several, "_rate", lambda device: 100.0 * (1 + device))
    monkeypatch.setattr(_several, "_corrections", {})
    assert _several._cut(60, [0, 1, 2]) == (0, 10, 30, 60)
    assert _several._cut(3, [0, 1, 2]) == (0, 1, 2, 3)
    assert _several._cut(2, [0, 1, 2]) == (0, 1, 2)
    for _ in range(30):  # the last one is in fact no faster than the first
        bounds = _several._cut(10_000, [0, 1, 2])
        split = _several.Split([0, 1, 2], bounds, False, (10_000,), 2, 0, 3)
        work = np.diff(bounds)
        _several._learn(split, list(work / (1.0, 2.0, 1.0)))
    np.testing.assert_allclose(np.diff(bounds), [2500, 5000, 2500], atol=1)
    before = dict(_several._corrections)
    _several._learn(split, [1e-3] * 3)  # too short to tell
    assert before == _several._corrections


def test_what_is_told(several):
    A = dense(40, 30, 30)
    _, one = linalg.svd(A, method="jacobi", full_output=True)
    _, info = linalg.svd(A, method="jacobi", device=several(3), full_output=True)
    assert isinstance(info, tsvd.SVDInfo)
    assert info.device == "cuda:-1,cuda:-1,cuda:-1"
    assert (info.method, info.rotations) == (one.method, one.rotations)
    assert info.seconds.keys() == one.seconds.keys()


# ---- errors, progress, Ctrl-C ----


def test_errors_name_the_matrix_of_the_batch(several):
    A = dense(9, 4, 4)
    A[7, 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"^matrix 7 of the batch: .*NaN"):
        linalg.svd(A, device=several(4))
    A[2, 1, 2] = np.nan
    for shares in SHARES:
        with pytest.raises(ValueError, match=r"^matrix 2 of the batch: .*NaN"):
            linalg.svd(A, device=several(shares))
    A = dense(9, 4, 4)
    A[8] = 0
    with pytest.raises(np.linalg.LinAlgError, match=r"^matrix 8 of the batch: Singular"):
        linalg.inv(A, device=several(9))


def test_the_worst_condition_is_told(several):
    A = np.tile(np.eye(3), (6, 1, 1))
    A[4, 2, 2] = 1e-17
    with pytest.warns(RuntimeWarning, match=r"^matrix 4 of the batch: Ill-conditioned"):
        linalg.inv(A, device=several(3))


def test_errors_of_arguments(several):
    d, e = bidiagonal(50)
    with pytest.raises(ValueError, match="needs e"):
        tsvd.svd(d, e[:-2], device=several(2))
    with pytest.raises(TypeError, match="complex"):
        tsvd.svd(d + 1j, e, device=several(2))
    with pytest.raises(ValueError, match="out of range"):
        tsvd.svd(d, e, select="i", select_range=(3, 50), device=several(2))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        linalg.inv(dense(2, 3, 4), device=several(2))


def test_names_of_devices():
    d, e = bidiagonal(3)
    for device, error in (
        ([], ValueError),
        ((), ValueError),
        (["cpu", "cpu"], ValueError),
        ([0, "gpu"], ValueError),
        ([0, 1.5], TypeError),
    ):
        with pytest.raises((error, RuntimeError), match="device"):
            tsvd.svd(d, e, device=device)
    with pytest.raises(ValueError, match="stream belongs to one device"):
        tsvd.svd(d, e, device=[0], stream=0)
    with pytest.raises(TypeError, match="takes one device"):
        linalg.bidiagonalize(dense(3, 3), device=[0, 1])


def test_the_error_of_a_share_that_ends_last():
    """Another has stopped before, as the core tells it of the failure."""
    team = _team.Team(3, None, None)
    stopped = threading.Event()

    def work(i):
        if i == 0:
            team.sum(0)(bytearray(8))
        if i == 1:
            stopped.set()
            raise _core.Stopped("another part of the call has failed")
        stopped.wait()
        time.sleep(0.1)
        raise MemoryError("of share 2")

    with pytest.raises(MemoryError, match="of share 2"):
        team.run(work)


class OnGPU:
    """An array that says that it lies on a GPU, and has no entries."""

    shape, ndim, dtype = (3, 3), 2, np.dtype(float)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise AssertionError("read")


@pytest.mark.parametrize(
    "function",
    [
        linalg.pinv,
        linalg.pinvh,
        linalg.polar,
        linalg.orth,
        linalg.null_space,
        linalg.matrix_rank,
        linalg.cond,
        lambda a, **options: linalg.low_rank(a, rank=1, **options),
        lambda a, **options: linalg.lstsq(a, a, **options),
        lambda a, **options: linalg.orthogonal_procrustes(a, a, **options),
        lambda a, **options: linalg.subspace_angles(a, a, **options),
        lambda a, **options: linalg.matrix_norm(a, ord=2, **options),
    ],
)
def test_functions_that_take_several_devices_for_the_host_alone(function):
    with pytest.raises(TypeError, match="several devices for arrays of the host"):
        function(OnGPU(), device=[0, 1])


def test_progress(several):
    told = []
    linalg.svd(dense(3000, 40, 40), device=several(3), progress=told.append)
    assert told[-1] == 1.0
    assert told == sorted(told)
    assert all(0 <= x <= 1 for x in told)


@pytest.mark.parametrize("shape", [(20000, 40, 40), (900, 900)])
def test_progress_that_raises_stops_all(several, shape):
    threads = threading.active_count()

    class Enough(Exception):
        pass

    def progress(done):
        if done > 0.05:
            raise Enough

    with pytest.raises(Enough):
        linalg.svd(dense(*shape), device=several(3), progress=progress)
    assert threading.active_count() == threads
    A = dense(4, 3, 3)
    same(linalg.svd(A, device=several(3)), linalg.svd(A))


@pytest.mark.parametrize("shape", [(3000, 40, 40), (600, 600)])
def test_ctrl_c_stops_all(several, shape):
    threads = threading.active_count()
    A = dense(*shape)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            linalg.svd(A, device=several(3))
    timer.join()
    assert threading.active_count() == threads
    A = dense(4, 3, 3)
    same(linalg.svd(A, device=several(3)), linalg.svd(A))


@pytest.mark.parametrize("failing", range(3))
def test_a_device_that_fails_stops_the_others(several, monkeypatch, failing):
    """The others may be at work, or wait for its numbers."""
    compute = _core.svd
    turns = iter(range(1000))
    lock = threading.Lock()

    def svd(inputs, options, device):
        if options.progress is not None:
            with lock:
                turn = next(turns)
            if turn == failing:
                time.sleep(0.05)
                raise RuntimeError("the device has failed")
        return compute(inputs, options, device)

    d, e = bidiagonal(400)
    with monkeypatch.context() as patch:
        patch.setattr(_core, "svd", svd)
        with pytest.raises(RuntimeError, match="the device has failed"):
            tsvd.svd(d, e, method="twisted", device=several(3))
    same(tsvd.svd(d, e, device=several(3)), tsvd.svd(d, e))


def test_parts_that_do_not_go_together():
    """One ends while another waits, or they add up arrays of different sizes."""

    def unlike(i):
        team.sum(i)(bytearray(8 * (1 + i)))

    def ends(i):
        if i == 0:
            team.sum(i)(bytearray(8))

    for work, text in ((unlike, "do not go together"), (ends, "has ended while others waited")):
        team = _team.Team(3, None, None)
        with pytest.raises(RuntimeError, match=text):
            team.run(work)


def test_a_progress_that_fails_is_not_called_again(several):
    calls = []

    def progress(done):
        calls.append(done)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        linalg.svd(dense(3000, 40, 40), device=several(3), progress=progress)
    assert len(calls) == 1


def test_a_fork_in_progress(several):
    """The child lacks the threads of the other devices, and learns so."""
    A, child = dense(3000, 40, 40), []

    def progress(done):
        if not child:
            child.append(os.fork())

    try:
        result = linalg.svd(A, device=several(3), progress=progress)
    except RuntimeError as error:
        os._exit(0 if child == [0] and "forked" in str(error) else 1)
    if child == [0]:
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0
    same(result, linalg.svd(A))


def test_results_that_do_not_fit_are_refused_beforehand(several, monkeypatch):
    monkeypatch.setattr(_several, "_MUCH", 1)
    monkeypatch.setattr(_core, "config", lambda: {"memory_free": 1000})
    d, e = bidiagonal(100)
    with pytest.raises(MemoryError, match=r"L and s and R .* want 160800 bytes; 1000 bytes"):
        tsvd.svd(d, e, device=several(2))
