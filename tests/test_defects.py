"""Inputs on which earlier versions were wrong, each with the right result."""

import subprocess
import sys

import numpy as np
import pytest

import tsvd
from testing.cases import same_bits
from testing.families import make
from testing.measures import BOUNDS, max_abs_error, orthogonality, value_error
from testing.reference import singular_values


@pytest.mark.parametrize("n", [60, 300])
def test_equally_rounded_entries(n):
    """Equal squares have errors of one sign, which must not add up."""
    d, e = np.full(n, 0.5), np.full(n - 1, 1.7)
    s_ref = singular_values(d, e)
    assert value_error(tsvd.svdvals(d, e), s_ref) <= BOUNDS["values bisect"](n)
    assert value_error(tsvd.svd(d, e).s, s_ref) <= BOUNDS["values bisect"](n)


def test_powers_of_two():
    rng = np.random.default_rng(7)
    for _ in range(100):
        n = int(rng.integers(2, 60))
        b = 2.0 ** rng.integers(-20, 20, 2 * n - 1)
        s = tsvd.svdvals(b[::2], b[1::2], method="bisect")
        assert value_error(s, singular_values(b[::2], b[1::2])) <= BOUNDS["values bisect"](n)


@pytest.mark.parametrize("family", ["zero_first", "uniform_1", "graded_down", "chi"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_change_no_value(family, dtype):
    d, e = make(family, 300, dtype)
    for vectors in (False, True):
        one, two, three = (tsvd.svd(d, e, compute_uv=vectors, threads=k) for k in (1, 2, 3))
        assert same_bits(one, two) and same_bits(one, three)


@pytest.mark.parametrize("threads", [2**30, 2**31 - 1])
def test_any_number_of_threads(threads):
    d, e = make("chi", 300)
    s = tsvd.svd(d, e, compute_uv=False, threads=threads)
    assert same_bits(s, tsvd.svdvals(d, e))


def test_one_row_in_blocks():
    assert tsvd.svd([1.0], [], method="givens", tuning={"blocks": 1, "split": 0}).s == [1.0]


def test_an_exception_of_progress_wins():
    """The exception comes out even if another matrix of the batch fails at the same time."""

    class Stop(Exception):
        pass

    def progress(done):
        raise Stop

    d, e = np.ones((3, 200)), np.ones((3, 199))
    e[0] = 0
    for _ in range(5):
        with pytest.raises(Stop):
            tsvd.svd(
                d,
                e,
                method="givens",
                eps=1e-12,
                max_sweeps=100_000,
                progress=progress,
                threads=2,
            )


@pytest.mark.parametrize("method", ["auto", "bisect", "qr", "givens", "dc"])
def test_an_eps_beyond_float32(method):
    d, e = np.float32([2e38, 1e38, 1e38] * 4), np.float32([2e37, 1.0] * 5 + [1.0])
    s = tsvd.svd(d, e, compute_uv=False, method=method, eps=1e300)
    assert np.all(np.isfinite(s))
    if method in ("auto", "dc"):
        L, s, R = tsvd.svd(np.tile(d, 9), np.tile(e, 10)[:107], method=method, eps=1e300)
        assert np.all(np.isfinite(s)) and orthogonality(L, R) <= BOUNDS["orthogonality"](108)


def test_as_many_sweeps_as_it_takes():
    for n in (2, 5, 33):
        d, e = make("chi", n)
        result, info = tsvd.svd(d, e, method="qr", full_output=True)
        again = tsvd.svd(d, e, method="qr", max_sweeps=info.sweeps)
        assert same_bits(tuple(result), tuple(again))
        if info.sweeps > 1:
            with pytest.raises(np.linalg.LinAlgError, match=str(info.sweeps - 1)):
                tsvd.svd(d, e, method="qr", max_sweeps=info.sweeps - 1)


def test_millions_of_sweeps_keep_orthogonality():
    d, e, eps = np.ones(2), np.array([1e-5]), 1e-10
    result, info = tsvd.svd(d, e, method="givens", eps=eps, full_output=True)
    assert info.sweeps > 2**19
    assert orthogonality(result.L, result.R) <= BOUNDS["orthogonality"](2)
    assert max_abs_error(d, e, *result) <= 4 * eps


def test_the_command_line_keeps_to_files(tmp_path):
    """Links are followed; a path that is not a file is refused before any work."""
    np.save(tmp_path / "d.npy", np.ones(3))
    np.save(tmp_path / "e.npy", np.ones(2))
    (tmp_path / "damaged.npy").write_bytes(b"PK\x03\x04 and nothing more")
    (tmp_path / "link.npz").symlink_to(tmp_path / "target.npz")

    def run(d, out):
        command = [sys.executable, "-m", "tsvd", "svd", d, "e.npy", "-o", out]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert run("d.npy", "link.npz").returncode == 0
    assert (tmp_path / "link.npz").is_symlink() and np.load(tmp_path / "target.npz")["s"].size == 3
    for refused in (
        run("d.npy", "/dev/null"),
        run("d.npy", "x" * 300),
        run("damaged.npy", "o.npz"),
    ):
        assert refused.returncode == 2
        assert len(refused.stderr.splitlines()) == 1
