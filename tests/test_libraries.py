"""cuBLAS: where it is looked for, and the error if it is not found."""

import importlib.metadata
import os
import re

import pytest

import tsvd
from processes import run
from tsvd import _core

COMPILED = _core.config()["cuda_compiled"]
# There is no such CUDA version, so that no machine has it.
MAJOR = 99

compiled = pytest.mark.skipif(not COMPILED, reason="tsvd was built without CUDA")


def directories(major, *paths, before=""):
    """The directories that a new process finds with these folders on its path."""
    program = f"""
import sys
from tsvd import _libraries
{before}
sys.path[:0] = {[str(path) for path in paths]!r}
print(*_libraries.directories({major}), sep="\\n")
assert not [name for name in sys.modules if name.startswith("nvidia.")]
"""
    return run(program).split()


@pytest.mark.parametrize(("major", "folder"), [(12, "cublas"), (13, "cu13"), (14, "cu14")])
def test_wheels_in_the_order_of_the_path(major, folder, tmp_path):
    """The wheels' library folder of each major version, in every folder that has wheels."""
    for name in ("second", "first"):
        (tmp_path / name / "nvidia" / folder / "lib").mkdir(parents=True)
    found = directories(major, tmp_path / "first", tmp_path / "none", tmp_path / "second")
    expected = [str(tmp_path / name / "nvidia" / folder / "lib") for name in ("first", "second")]
    assert found[:2] == expected


def test_no_wheels(tmp_path):
    """There is no package "nvidia", or a module of this name that is no package."""
    empty = "sys.path.clear()"
    assert directories(13, tmp_path, before=empty) == []
    fake = "import types; sys.modules['nvidia'] = types.ModuleType('nvidia')"
    assert directories(13, tmp_path, before=fake) == []


def test_the_cpu_needs_none():
    program = """
import sys, tsvd
tsvd.svd([1.0, 2.0], [0.5])
tsvd.svdvals([1.0, 2.0], [0.5], device="cpu")
assert "libcublas" not in open("/proc/self/maps").read()
assert tsvd._libraries.tell_directories.cache_info().currsize == 0
"""
    run(program)


@compiled
def test_what_to_install(tmp_path):
    """The error names the extra, and every place in the order of trial, each with a reason."""
    broken = tmp_path / f"libcublas.so.{MAJOR}"
    broken.write_text("no library")
    program = f"""
from tsvd import _core
_core.cuda_library_paths(["/nowhere/first", {str(tmp_path)!r}])
try:
    _core.cuda_blas({MAJOR})
except RuntimeError as error:
    print(error)
"""
    said = run(program)
    assert f'pip install "tsvd[cu{MAJOR}]"' in said
    name = re.escape(broken.name)
    places = f"/nowhere/first/{name}: .+; {broken}: .+; {name}: .+; /usr/local/cuda/lib64/{name}: "
    assert re.search(places, said), said


@compiled
def test_the_extra_exists():
    """The error of this build would name an extra that exists."""
    major = _core.config()["cuda_runtime"] // 1000
    assert f"cu{major}" in importlib.metadata.metadata("tsvd").get_all("Provides-Extra")


@pytest.mark.skipif(COMPILED, reason="tsvd was built with CUDA")
def test_without_cuda():
    with pytest.raises(RuntimeError, match="built without CUDA"):
        _core.cuda_blas(0)


@pytest.mark.parametrize("wrong", [3, None, [3], ["a", None], ["a\0b"]])
def test_wrong_directories(wrong):
    with pytest.raises((TypeError, ValueError)):
        _core.cuda_library_paths(wrong)


def test_directories_of_any_name(tmp_path):
    """Names may hold bytes that no text encoding has."""
    _core.cuda_library_paths([os.fsdecode(b"/\xff\xfe"), tmp_path, ""])
    _core.cuda_library_paths([])


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_found_beside_a_gpu():
    facts = tsvd.show_config(mode="dicts")["CUDA"]
    assert re.search(r"libcublas\.so\.\d+$", facts["cuBLAS"]), facts["cuBLAS"]
