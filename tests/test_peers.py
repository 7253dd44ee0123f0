"""The tests that other projects have for what tsvd.linalg has, with its functions in place:
peers/run.py.

NumPy and SciPy bring their tests along, and PyTorch its samples. Those of array-api-tests, CuPy and
JAX run if an environment variable names the folder with a checkout, or with the unpacked sdist.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "peers" / "run.py"


def run(*arguments, program=None):
    """The exit status, and what was printed."""
    command = [RUN, *arguments] if program is None else ["-c", program, RUN, *arguments]
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=900
    )
    return done.returncode, done.stdout + done.stderr


def test_numpy():
    pytest.importorskip("numpy.linalg.tests.test_linalg", reason="NumPy without its tests")
    status, printed = run("numpy")
    assert status == 0, printed
    assert int(re.search(r"(\d+) passed", printed)[1]) >= 15, printed
    assert "skipped" not in printed, printed


@pytest.mark.parametrize(
    "defect", ["s * 1.001", "s[..., ::-1].copy()", "np.float32(s)"], ids=["off", "order", "type"]
)
def test_a_planted_defect_is_found(defect):
    pytest.importorskip("numpy.linalg.tests.test_linalg", reason="NumPy without its tests")
    program = f"""
import runpy, sys
import numpy as np
from tsvd import linalg

right = linalg.svd

def svd(a, *arguments, **options):
    result = right(a, *arguments, **options)
    if not isinstance(result, tuple):
        return result
    s = result.S
    return result._replace(S={defect})

linalg.svd = svd
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    status, printed = run("numpy", "-k", "TestSVD or TestInv", program=program)
    assert status == 1 and "failed" in printed, printed


with_scipy_tests = pytest.mark.skipif(
    importlib.util.find_spec("scipy.linalg.tests") is None, reason="SciPy without its tests"
)


@with_scipy_tests
def test_scipy():
    status, printed = run("scipy")
    assert status == 0, printed
    assert int(re.search(r"(\d+) passed", printed)[1]) >= 200, printed
    assert "skipped" not in printed, printed


@with_scipy_tests
def test_each_test_of_scipy_calls_a_function_of_tsvd():
    """Where these fail, every test does."""
    program = """
import functools, runpy, sys
from tsvd import linalg

def failing(function):
    @functools.wraps(function)
    def fails(*arguments, **options):
        raise RuntimeError
    return fails

for name in linalg.__all__:
    if callable(getattr(linalg, name)):
        setattr(linalg, name, failing(getattr(linalg, name)))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    status, printed = run("scipy", "--tb=no", program=program)
    assert status == 1 and "failed" in printed and "passed" not in printed, printed


@pytest.mark.slow
def test_torch():
    pytest.importorskip("torch")
    pytest.importorskip("expecttest", reason="PyTorch's samples need expecttest")
    status, printed = run("torch")
    assert status == 0 and "passed" in printed, printed
    assert "skipped" not in printed, printed


@pytest.mark.parametrize(
    ("peer", "variable"),
    [
        ("array_api", "TSVD_ARRAY_API_TESTS"),
        pytest.param("cupy", "TSVD_CUPY_SDIST", marks=pytest.mark.cuda),
        ("jax", "TSVD_JAX"),
        ("jax_linalg", "TSVD_JAX"),
    ],
)
def test_in_a_folder(peer, variable):
    if variable not in os.environ:
        pytest.skip(f"{variable} names no folder")
    status, printed = run(peer, os.environ[variable])
    assert status == 0 and "passed" in printed, printed
    assert "skipped" not in printed or peer.startswith("jax"), printed


def test_a_planted_defect_of_the_inverse_is_found():
    pytest.importorskip("numpy.linalg.tests.test_linalg", reason="NumPy without its tests")
    program = """
import runpy, sys
from tsvd import linalg

right = linalg.inv
linalg.inv = lambda a, **options: right(a, **options) * 1.001
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    status, printed = run("numpy", "-k", "TestSVD or TestInv", program=program)
    assert status == 1 and "TestInv" in printed, printed
