"""The tuning constants: their headers, the table of a build, and TSVD_TUNING of CMake."""

import json
import re
import shutil
import subprocess

import pytest

from test_structure import ROOT, SOURCES
from tsvd import _core

HEADERS = [ROOT / name for name in ("csrc/backend/tuning.h", "csrc/cpu/tuning.h", "cuda/tuning.h")]
# A comment with its tag, and the constants under it.
BLOCK = re.compile(
    r"/\* \[(measured: [^]]+|derived: [^]]+|untuned)\]\s+(?:(?!\*/).)+\*/\n"
    r"((?:#ifndef ([A-Z0-9_]+)\n#define \3 [^\n]+\n#endif\n)+)",
    re.DOTALL,
)

pytestmark = pytest.mark.skipif(not SOURCES, reason="not in a source tree")


def _names(text):
    """The names that a source defines as macros or lists in an enum."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    yield from re.findall(r"#\s*define\s+(\w+)", text)
    yield from re.findall(r"\b(?:const|constexpr)\s+\w+\s+([A-Z][A-Z0-9_]*)\b", text)
    for listed in re.findall(r"\benum\b[^{};()]*\{([^}]*)\}", text):
        yield from re.findall(r"(?:^|,)\s*([A-Z][A-Z0-9_]*)", listed)


def _constants(header):
    """The names with a value; the include guard has none."""
    return re.findall(r"^#define ([A-Z0-9_]+) ", header.read_text(), re.MULTILINE)


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.parent.name)
def test_every_constant_says_where_it_comes_from(header):
    text, tagged = header.read_text(), []
    for block in BLOCK.finditer(text):
        tagged += re.findall(r"^#define (\w+)", block.group(), re.MULTILINE)
    assert tagged and tagged == _constants(header)
    assert BLOCK.sub("", text).count("#define") == 1  # the include guard


def test_the_folders_of_headings_exist():
    for header in HEADERS[1:]:
        headings = re.findall(r"^/\* ---- ([^ ]+) ---- \*/$", header.read_text(), re.MULTILINE)
        assert headings
        for name in headings:
            assert (header.parent / name).exists(), f"{header}: {name}"


def test_the_files_of_comments_exist():
    """A comment names a file by its path, or by its name in the folder of the heading."""
    for header in HEADERS[1:]:
        folder = header.parent
        for line in re.findall(r"^[^#\n].*", header.read_text(), re.MULTILINE):
            heading = re.match(r"/\* ---- ([^ ]+)/ ---- \*/", line)
            folder = header.parent / heading.group(1) if heading else folder
            for name in re.findall(r"\b[\w/]+\.(?:cuh|cu|c|h)\b", line):
                places = (folder, header.parent, ROOT, ROOT / "csrc")
                assert any((place / name).exists() for place in places), f"{header}: {name}"


def test_names_are_defined_once():
    """CMake defines a name that TSVD_TUNING sets for every source."""
    own = [name for header in HEADERS for name in _constants(header)]
    assert len(own) == len(set(own))
    for path in [*SOURCES, *(ROOT / "tests/c").rglob("*.*")]:
        if path not in HEADERS:
            assert not set(_names(path.read_text())) & set(own), path


def test_names_are_found():
    text = "#define A 1\nenum { B = 2, C, /* D */ E = B * 3 };\nstatic const double F = G;"
    assert sorted(_names(text)) == ["A", "B", "C", "E", "F"]


def test_the_table_has_every_constant():
    table = _core.tuning()
    assert list(table) == [name for header in HEADERS for name in _constants(header)]
    assert all(value >= 0 for value in table.values())


def test_the_table_has_the_values():
    """Of a constant that the module also tells by itself."""
    assert _core.tuning()["CUDA_ORDER"] == _core.CUDA_ORDER


@pytest.fixture
def configure(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")

    def configure(tuning):
        command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), "-DTSVD_CUDA=OFF"]
        command += ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DTSVD_TUNING={tuning}"]
        return subprocess.run(command, capture_output=True, text=True)

    return configure


def test_other_values(configure, tmp_path):
    assert configure("BLAS_ORDER=40;CPU_QR_RATIO=2.5").returncode == 0
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    assert commands
    for command in commands:
        assert {"-DBLAS_ORDER=40", "-DCPU_QR_RATIO=2.5"} <= set(command["command"].split())


@pytest.mark.parametrize(
    ("tuning", "problem"),
    [
        ("BLAS_ORDER=40;NO_SUCH_ORDER=40", "no NO_SUCH_ORDER in"),
        ("TSVDI_CUDA_TUNING_H=1", "no TSVDI_CUDA_TUNING_H in"),
        ("BLAS_ORDER", "it must be NAME=value"),
    ],
)
def test_what_cmake_refuses(configure, tuning, problem):
    done = configure(tuning)
    assert done.returncode != 0 and problem in re.sub(r"\s+", " ", done.stderr)
