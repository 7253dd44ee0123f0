"""The installed package: import, configuration, command line, notebooks, examples."""

import doctest
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tsvd

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def python(*arguments, code=0, cwd=None):
    """Runs Python; returns its standard output and error."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=120, cwd=cwd
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_import_is_quick_and_light():
    """The import takes 0.15 s beyond NumPy at best of three, and does not import SciPy."""
    program = (
        "import time, sys, numpy\n"
        "start = time.perf_counter()\n"
        "import tsvd\n"
        "print(time.perf_counter() - start)\n"
        "print([m for m in ('scipy', 'matplotlib', 'tqdm', 'typing_extensions', 'asyncio')\n"
        "       if m in sys.modules])\n"
    )
    outputs = [python("-c", program)[0].splitlines() for _ in range(3)]
    assert min(float(seconds) for seconds, _ in outputs) < 0.15
    assert outputs[0][1] == "[]"


def test_the_first_call_is_quick():
    """The first call of a process with vectors takes under 20 ms, at best of three."""
    program = (
        "import time, numpy as np, tsvd\n"
        "d, e = np.ones(64), np.ones(63)\n"
        "start = time.perf_counter()\n"
        "tsvd.svd(d, e, device='cpu')\n"
        "print(time.perf_counter() - start)\n"
    )
    assert min(float(python("-c", program)[0]) for _ in range(3)) < 0.02


def test_a_call_imports_nothing_heavy():
    program = (
        "import sys, tsvd\n"
        "tsvd.svd([1.0, 2.0], [0.5]); tsvd.svdvals([1.0, 2.0], [0.5], method='bisect')\n"
        "assert 'scipy' not in sys.modules\n"
    )
    python("-c", program)


def test_version():
    assert tsvd.__version__ == importlib.metadata.version("tsvd")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", tsvd.__version__)


def test_public_names():
    for name in ("svd", "svdvals", "devices", "show_config", "trim", "SVDResult", "SVDInfo"):
        assert name in tsvd.__all__ and getattr(tsvd, name).__doc__
    for name in ("svd", "svdvals", "bidiagonalize", "SVDResult", "Bidiagonalization"):
        assert name in tsvd.linalg.__all__ and getattr(tsvd.linalg, name).__doc__


def test_only_public_names_are_completed():
    """dir() shows the public names alone, as Python's prompt completes them."""
    program = (
        "import tsvd\n"
        "for module in (tsvd, tsvd.linalg):\n"
        "    names = {*dir(module)}\n"
        "    assert {'__all__', '__doc__', '__name__', *module.__all__} <= names\n"
        "    assert all(x in module.__all__ or x.startswith('__') for x in names), names\n"
    )
    python("-c", program)


def test_typed():
    package = Path(tsvd.__file__).parent
    assert (package / "py.typed").is_file() and (package / "_core.pyi").is_file()


def test_docstring_examples():
    named = [getattr(tsvd.linalg, name) for name in tsvd.linalg.__all__]
    for function in (tsvd.svd, tsvd.svdvals, *filter(inspect.isfunction, named)):
        finder = doctest.DocTestFinder(recurse=False)
        (examples,) = finder.find(function, function.__name__, globs={})
        failed, tried = doctest.DocTestRunner().run(examples)
        assert tried > 0 and failed == 0


def test_devices(device):
    listed = [str(d).lower() for d in tsvd.devices()]
    assert any(device in name for name in listed)


@pytest.mark.parametrize("name", ["generic", "no_such_set"])
def test_kernels_from_the_environment(name):
    """TSVD_CPU_KERNELS names the instruction set; a name that does not exist is an error."""
    program = (
        "import tsvd\n"
        "try:\n"
        "    s = tsvd.svdvals([3.0, 4.0], [0.0])\n"
        "    print(s, tsvd.devices()[0])\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"TSVD_CPU_KERNELS": name},
    )
    assert done.returncode == 0, done.stderr
    if name == "generic":
        assert "[4. 3.]" in done.stdout and "generic kernels" in done.stdout
    else:
        assert "TSVD_CPU_KERNELS must be generic, avx2 or avx512" in done.stdout


def test_show_config(capsys):
    tsvd.show_config()
    text = capsys.readouterr().out
    assert tsvd.__version__ in text
    assert "CUDA" in text and np.__version__ in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    """It is committed without output, and runs from top to bottom."""
    import nbclient  # not at the top: the CUDA tests run without it
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, "run nbstripout"
    environment = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute(env=environment)
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_there_is_a_notebook():
    assert NOTEBOOKS
