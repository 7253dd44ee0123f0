"""cuBLAS: where it is looked for, and the error if it is not found."""

import importlib.metadata
import os
import re

import pytest

import tsvd
from testing.processes import run
from tsvd import _core

COMPILED = _core.config()["cuda_compiled"]
# There is no such CUDA version, so that no machine has it.
MAJOR = 99

compiled = pytest.mark.skipif(not COMPILED, reason="tsvd was built without CUDA")


def directories(major, *paths, before="", cwd=None):
    """The directories that a new process finds with these folders on its path."""
    program = f"""
import os
import sys
from tsvd import _libraries
{before}
sys.path[:0] = {[str(path) for path in paths]!r}
if {cwd is not None}:
    os.chdir({str(cwd)!r})
print(*_libraries.directories({major}), sep="\\n")
assert not [name for name in sys.modules if name.startswith("nvidia")]
"""
    return run(program).split()


def install(place, folder, name, version):
    """What pip leaves of a cuBLAS wheel."""
    (place / "nvidia" / folder / "lib").mkdir(parents=True)
    record = place / f"{name.replace('-', '_')}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize(
    ("major", "folder", "name"),
    [
        (12, "cublas", "nvidia-cublas-cu12"),
        (13, "cu13", "nvidia-cublas"),
        (14, "cu14", "nvidia-cublas"),
    ],
)
def test_wheels_in_the_order_of_the_path(major, folder, name, tmp_path):
    """The wheels' library folder of each major version, in every folder that has wheels."""
    for place in ("second", "first"):
        install(tmp_path / place, folder, name, f"{major}.0.1")
    paths = [tmp_path / place for place in ("first", "none", "second", "first")]
    found = directories(major, *paths)
    expected = [str(tmp_path / place / "nvidia" / folder / "lib") for place in ("first", "second")]
    assert found[:2] == expected and len(set(found)) == len(found)


def test_no_wheels(tmp_path):
    """An empty path, and one with entries that are no text."""
    for path in ("[]", "[b'/', None]"):
        odd = f"import importlib.metadata\nsys.path[:] = {path}"
        assert directories(13, tmp_path, before=odd) == []


@pytest.mark.parametrize("major", [12, 13])
def test_the_current_directory_has_no_wheels(major, tmp_path):
    """Not by "" or "." on the path, where even pip's records count for nothing; nor by its own
    name, as "python -m" has it, unless pip installed there."""
    folder = "cublas" if major <= 12 else "cu13"
    (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True)
    (tmp_path / "nvidia" / folder / "lib" / f"libcublas.so.{major}").write_text("a trap")
    for path in ("", ".", tmp_path):
        found = directories(major, path, cwd=tmp_path)
        assert not [place for place in found if place.startswith(str(tmp_path))], found
        assert all(os.path.isabs(place) for place in found)
    name = "nvidia-cublas-cu12" if major <= 12 else "nvidia-cublas"
    install(tmp_path / "else", folder, name, f"{major}.0.1")
    for path in ("", "."):
        found = directories(major, path, cwd=tmp_path / "else")
        assert not [place for place in found if place.startswith(str(tmp_path))], found


def test_the_cpu_needs_none():
    program = """
import sys, tsvd
tsvd.svd([1.0, 2.0], [0.5])
tsvd.svdvals([1.0, 2.0], [0.5], device="cpu")
assert "libcublas" not in open("/proc/self/maps").read()
assert tsvd._libraries.prepare_cuda.cache_info().currsize == 0
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
