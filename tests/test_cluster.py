"""The examples for Ray and MPI, in two processes."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from testing.families import make

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*command):
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def need(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}")


@pytest.fixture(scope="module")
def mpiexec():
    """The command that begins two processes, if mpi4py finds its library."""
    need("mpi4py")
    command = shutil.which("mpiexec")
    if command is None:
        pytest.skip("there is no mpiexec")
    probe = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
    found = run(command, "-n", "2", sys.executable, "-c", probe)
    if found.stdout.split() != ["2", "2"]:
        pytest.skip(f"mpiexec and mpi4py do not fit together: {found.stdout}{found.stderr}")
    return command, "-n", "2", sys.executable, "-m", "mpi4py"


@pytest.mark.parametrize(
    ("family", "method"),
    [
        (None, "twisted"),
        # one of the slabs alone would be taken by "twisted"
        ("ladders_repeated", "dc"),
    ],
)
def test_slabs_by_mpi(mpiexec, family, method, tmp_path):
    arguments = []
    if family:
        d, e = make(family, 600)
        arguments = [tmp_path / "B.npz"]
        np.savez(*arguments, d=d, e=e)
    found = run(*mpiexec, EXAMPLES / "mpi_slabs.py", *arguments)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"by '{method}' on cpu, cpu" in found.stdout or "cuda" in found.stdout
    assert "residual" in found.stdout


def test_a_process_that_fails_ends_all(mpiexec, tmp_path):
    np.savez(tmp_path / "B.npz", d=np.full(9, np.nan), e=np.ones(8))
    found = run(*mpiexec, EXAMPLES / "mpi_slabs.py", tmp_path / "B.npz")
    assert found.returncode != 0 and "NaN" in found.stdout + found.stderr


def test_a_batch_by_ray():
    need("ray")
    found = run(sys.executable, EXAMPLES / "ray_batch.py", "2")
    assert found.returncode == 0, found.stdout + found.stderr
    lines = found.stdout.splitlines()
    assert sum(line.startswith("matrices ") for line in lines) == 8
    assert sum(line.startswith("residual ") for line in lines) == 1
