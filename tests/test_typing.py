"""The types: checkers on a user's script, the stubs against the module, and completion."""

import ast
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tsvd
from tsvd import linalg

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tests/typing/user.py"
PACKAGE = Path(tsvd.__file__).parent


def run(*command, cwd):
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy(tmp_path):
    pytest.importorskip("mypy")
    run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, SCRIPT, cwd=tmp_path)


def test_pyright(tmp_path):
    """basedpyright is pyright with its Node.js; its own rules are off."""
    program = shutil.which("basedpyright", path=Path(sys.executable).parent)
    if program is None:
        pytest.skip("basedpyright is not installed")
    settings = {
        "include": [str(SCRIPT.parent)],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    python = ("--pythonpath", sys.executable)
    run(program, "--project", tmp_path / "settings.json", *python, cwd=tmp_path)


def test_stubs():
    """The stubs have what the modules have."""
    pytest.importorskip("mypy")
    run(
        *(sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml"),
        *("--allowlist", "tests/typing/allowed.txt", "--ignore-unused-allowlist", "tsvd"),
        cwd=ROOT,
    )


def options_of(name):
    """The names of a TypedDict of _types.pyi and of those that it is made of."""
    classes = {
        node.name: node
        for node in ast.parse((PACKAGE / "_types.pyi").read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    node = classes[name]
    names = {x.target.id for x in node.body if isinstance(x, ast.AnnAssign)}
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            names |= options_of(base.id)
    return names


@pytest.mark.parametrize(
    ("function", "options", "others"),
    [
        (tsvd.svd, "Vectors", {"compute_uv", "full_output"}),
        (tsvd.svd, "NoVectors", {"compute_uv", "full_output"}),
        (tsvd.svdvals, "Values", set()),
        (linalg.svd, "DenseVectors", {"full_output"}),
        (linalg.svd, "DenseNoVectors", {"full_output"}),
        (linalg.svdvals, "DenseValues", set()),
    ],
)
def test_options_have_types(function, options, others):
    parameters = inspect.signature(function).parameters.values()
    keywords = {p.name for p in parameters if p.kind == p.KEYWORD_ONLY}
    assert options_of(options) | others == keywords


def test_every_module_that_is_public_has_types():
    for module in ("_api", "_core", "_types", "linalg", "torch", "jax", "dask"):
        assert (PACKAGE / f"{module}.pyi").is_file()
    assert (PACKAGE / "py.typed").is_file()


def test_completion_shows_public_names_alone():
    """test_package.py has the same for tsvd.linalg."""
    names = {name for name in dir(tsvd) if not name.startswith("__")}
    assert set(tsvd.__all__) - {"__version__"} <= names
    assert not [name for name in names if name.startswith("_")]
