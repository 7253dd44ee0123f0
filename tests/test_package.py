"""The installed package: import, configuration, command line, notebooks, examples."""

import doctest
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tsvd
from testing.families import real
from testing.measures import residual

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
    dense = (tsvd.linalg.svd, tsvd.linalg.svdvals, tsvd.linalg.bidiagonalize)
    for function in (tsvd.svd, tsvd.svdvals, *dense):
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


def test_cli_info():
    output, _ = python("-m", "tsvd", "info")
    assert tsvd.__version__ in output


def test_cli_demo():
    """It prints a line for each real matrix. All are in their bounds, or the code is not 0."""
    output, _ = python("-m", "tsvd", "demo")
    for name, (d, _) in real().items():
        assert re.search(rf"^{name}\s+{d.size}\s", output, re.MULTILINE), output


def test_cli_svd(tmp_path):
    d, e = real()["topobathy"]
    np.save(tmp_path / "d.npy", d)
    np.save(tmp_path / "e.npy", e)
    command = ("-m", "tsvd", "svd", "d.npy", "e.npy", "-o", "out.npz")
    for options, method in ((), "dc"), (("--method", "qr", "--force"), "qr"):
        said, _ = python(*command, "--device", "cpu", *options, cwd=tmp_path)
        assert f"{method} on cpu" in said
        with np.load(tmp_path / "out.npz") as file:
            assert set(file) == {"L", "s", "R"}
            assert residual(d, e, file["L"], file["s"], file["R"]) <= 2


@pytest.fixture
def files(tmp_path):
    """A folder with the inputs d.npy and e.npy of order 3."""
    np.save(tmp_path / "d.npy", np.ones(3))
    np.save(tmp_path / "e.npy", np.ones(2))
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("output", ["d.npy", "./e.npy", "link", "hard"])
def test_cli_svd_keeps_its_input(files, output, force):
    (files / "link").symlink_to("d.npy")
    (files / "hard").hardlink_to(files / "e.npy")
    before = contents(files)
    command = ("-m", "tsvd", "svd", "d.npy", "e.npy", "-o", output, *force)
    _, error = python(*command, code=2, cwd=files)
    assert "input" in error and "Traceback" not in error
    assert contents(files) == before


def test_cli_svd_replaces_a_file_only_by_force(files):
    (files / "out.npz").write_text("something else")
    before = contents(files)
    command = ("-m", "tsvd", "svd", "d.npy", "e.npy", "-o", "out.npz")
    _, error = python(*command, code=2, cwd=files)
    assert "--force" in error and "Traceback" not in error
    assert contents(files) == before
    python(*command, "--force", cwd=files)
    assert set(np.load(files / "out.npz")) == {"L", "s", "R"}
    assert set(contents(files)) == set(before)


def test_cli_svd_keeps_a_file_that_comes_late(files, monkeypatch):
    """A file that another program writes while this one computes is not lost."""
    from tsvd import _cli

    solve = _cli._solve

    def slow(*arguments, **options):
        Path("out.npz").write_text("something else")
        return solve(*arguments, **options)

    monkeypatch.chdir(files)
    monkeypatch.setattr(_cli, "_solve", slow)
    assert _cli.main("svd d.npy e.npy -o out.npz".split()) == 1
    assert Path("out.npz").read_text() == "something else"
    assert set(contents(files)) == {"d.npy", "e.npy", "out.npz"}


def test_cli_svd_leaves_files_of_others(files, monkeypatch, capsys):
    """Whatever the folder holds stays there; the new file has the usual permissions."""
    from tsvd import _cli

    for process in (os.getpid(), os.getppid()):
        (files / f".{process}.part").write_text("something else")
    before = contents(files)
    monkeypatch.chdir(files)
    assert _cli.main("svd d.npy e.npy -o out.npz".split()) == 0, capsys.readouterr().err
    after = contents(files)
    del after["out.npz"]
    assert after == before
    Path("usual").touch()
    assert Path("out.npz").stat().st_mode == Path("usual").stat().st_mode


@pytest.mark.parametrize(("device", "code"), [("gpu", 2), ("cuda:x", 2), ("cuda:9999", 1)])
def test_cli_svd_on_no_such_device(device, code, tmp_path):
    np.save(tmp_path / "d.npy", np.ones(3))
    np.save(tmp_path / "e.npy", np.ones(2))
    command = ("-m", "tsvd", "svd", "d.npy", "e.npy", "-o", "out.npz", "--device", device)
    _, error = python(*command, code=code, cwd=tmp_path)
    assert device in error and "Traceback" not in error
    assert not (tmp_path / "out.npz").exists()


def test_cli_moves_a_bar(tmp_path, monkeypatch):
    """The bar of a run by divide and conquer moves with its levels, and reaches the end."""
    import tqdm

    from tsvd import _cli

    shown = []

    class Bar:
        n, disable = 0, False

        def __init__(self, **options):
            assert options["total"] == 100 and options["disable"] is False

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, by):
            self.n += by
            shown.append(self.n)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    monkeypatch.chdir(tmp_path)
    np.save("d.npy", np.ones(3000))
    np.save("e.npy", np.ones(2999))
    assert _cli.main("svd d.npy e.npy -o out.npz --device cpu --method dc --progress".split()) == 0
    assert len(shown) > 2 and shown == sorted(shown) and shown[-1] == pytest.approx(100)


@pytest.mark.parametrize(
    ("d", "e", "named"),
    [
        (np.ones(3), np.ones(3), "e"),
        (np.ones(3), np.ones(2, complex), "complex"),
        (np.array([1, np.nan, 1]), np.ones(2), "(?i)nan|inf|finite"),
        (np.ones(3), None, "e.npy"),
    ],
)
def test_cli_svd_refuses(d, e, named, tmp_path):
    """It prints one line that says what is wrong, no traceback, and writes no file."""
    np.save(tmp_path / "d.npy", d)
    if e is not None:
        np.save(tmp_path / "e.npy", e)
    _, error = python("-m", "tsvd", "svd", "d.npy", "e.npy", "-o", "out.npz", code=2, cwd=tmp_path)
    assert re.search(named, error) and "Traceback" not in error
    assert not (tmp_path / "out.npz").exists()


def test_cli_without_a_command():
    _, error = python("-m", "tsvd", code=2)
    assert "usage" in error and "Traceback" not in error


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
