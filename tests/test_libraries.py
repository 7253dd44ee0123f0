"""cuBLAS and the device library: where they are looked for, and the errors where none is."""

import importlib.metadata
import os
import re
import shutil
import subprocess

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
import shutil
import subprocess
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
    """The error names the package, and every place in the order of trial, each with a reason."""
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
    assert f"pip install nvidia-cublas=={MAJOR}.*" in said
    name = re.escape(broken.name)
    places = f"/nowhere/first/{name}: .+; {broken}: .+; {name}: .+; /usr/local/cuda/lib64/{name}: "
    assert re.search(places, said), said


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
    assert ("device library" in facts) == (facts["compiled in"] == "no")
    assert tsvd.show_config(mode="dicts")["CUDA"] == facts
    assert re.search(r"libcublas\.so\.\d+$", facts["cuBLAS"]), facts["cuBLAS"]


# ---- the device library ----

without = pytest.mark.skipif(COMPILED, reason="tsvd holds CUDA's code, or has loaded it")
MAKE = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc makes the library")


def install_device_library(place, major, version=None):
    """What pip leaves of a wheel tsvd-cudaNN; of this version, or a file that is no library."""
    folder = place / f"tsvd_cuda{major}"
    folder.mkdir(parents=True)
    record = place / f"tsvd_cuda{major}-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: tsvd-cuda{major}\nVersion: 1.0\n"
    )
    library = folder / f"libtsvd_cuda{major}.so"
    if version is None:
        library.write_text("no library")
        return library
    source = place / "library.c"
    source.write_text(
        f'static const char *const table[1] = {{"{version}"}};\n'
        "const void *tsvd_cuda_library(const void *core) { return core ? table : 0; }\n"
    )
    command = ["gcc", "-shared", "-fPIC", "-o", library, source]
    subprocess.run(command, check=True, timeout=60)
    return library


def ask(*paths, program):
    """What a new process prints with these folders on its path."""
    return run(f"import sys\nsys.path[:0] = {[str(path) for path in paths]!r}\n{program}")


def test_the_newest_device_library_is_found(tmp_path):
    program = "from tsvd import _libraries\nprint(_libraries.device_library())"
    assert ask(tmp_path, program=program).strip() == "None"
    twelve = install_device_library(tmp_path / "b", 12)
    assert ask(tmp_path / "b", program=program).strip() == str(twelve)
    thirteen = install_device_library(tmp_path / "a", 13)
    for driver, library in ((12, twelve), (13, thirteen), (14, thirteen), (11, thirteen)):
        by_driver = program.replace("\n", f"\n_libraries._driver_major = lambda: {driver}\n", 1)
        assert ask(tmp_path / "b", tmp_path / "a", program=by_driver).strip() == str(library)


def test_no_device_library_without_a_record(tmp_path):
    """A file of that name in the current directory is not opened."""
    folder = tmp_path / "tsvd_cuda13"
    folder.mkdir()
    (folder / "libtsvd_cuda13.so").write_text("a trap")
    program = f"""
import os
import shutil
import subprocess
from tsvd import _libraries
os.chdir({str(tmp_path)!r})
sys.path[:0] = ["", ".", {str(tmp_path)!r}]
print(_libraries.device_library())
"""
    assert ask(program=program).strip() == "None"


REFUSED = """
import tsvd
print(tsvd.svdvals([1.0, 2.0], [0.5]).shape, len(tsvd.devices()))
for function in (lambda: tsvd.svd([1.0], [], device="cuda"), lambda: tsvd._core.cuda_open(0)):
    try:
        function()
    except RuntimeError as error:
        print(error)
print(tsvd.show_config(mode="dicts")["CUDA"]["device library"])
"""


@without
@MAKE
@pytest.mark.parametrize("version", ["9.9.0", "0.0.1", "nonsense"])
def test_a_device_library_of_another_version(version, tmp_path):
    """The CPU computes; what asks for CUDA says both versions, and what to install."""
    library = install_device_library(tmp_path, 13, version)
    said = ask(tmp_path, program=REFUSED).splitlines()
    assert said[0] == "(2,) 1"
    for line in (said[1], said[3]):
        assert (
            f"{library} is of tsvd {version}" in line and f"this is tsvd {tsvd.__version__}" in line
        )
        assert 'pip install --upgrade "tsvd[cu13]"' in line
    assert "not installed" in said[2]


@without
def test_a_file_that_is_no_device_library(tmp_path):
    library = install_device_library(tmp_path, 12)
    said = ask(tmp_path, program=REFUSED).splitlines()
    assert "the device library cannot be opened" in said[1] and str(library) in said[1]
    for wrong in (3, None, "a\0b"):
        with pytest.raises((TypeError, ValueError)):
            _core.cuda_load(wrong)


def test_versions_agree():
    """The extras ask for the device library of this minor version."""
    major, minor, _ = tsvd.__version__.split(".")[:3]
    required = importlib.metadata.requires("tsvd")
    for cuda in (12, 13):
        [line] = [line for line in required if line.startswith(f"tsvd-cuda{cuda}")]
        assert f"~={major}.{minor}.0" in line and f"cu{cuda}" in line
