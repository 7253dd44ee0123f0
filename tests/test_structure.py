"""The structure: which folder may use which, read from includes and imports; and which functions
there are for both precisions, read from the objects."""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("csrc", "cuda")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".c", ".h", ".cu", ".cuh", ".hpp"}
]
# What a folder includes beside its own files. tsvd is the public interface, csrc/include/tsvd.
ALLOWED = {
    "tsvd": set(),
    "host": {"tsvd"},
    "math": set(),
    "backend": {"host", "math", "tsvd"},
    "bidiag": {"backend", "host", "math", "tsvd"},
    "dense": {"backend", "bidiag", "host", "math", "tsvd"},
    "api": {"backend", "host", "tsvd"},
    "cpu": {"backend", "host", "math", "tsvd"},
    "cuda": {"backend", "host", "math", "tsvd"},
    "python": {"tsvd"},
}

# The rooms of a back end, each beside what it uses of the others.
ROOMS = {
    "load": set(),
    "extra": set(),
    "givens": set(),
    "rotations": set(),
    "dc": set(),
    "values": {"dc"},
    "twisted": set(),
    "matrix": set(),
    "qr": {"matrix"},
    "bidiagonalize": {"matrix"},
    "jacobi": {"matrix", "qr"},
    "inverse": {"matrix", "qr"},
    "dense": {"bidiagonalize", "matrix", "qr"},
}

# What the Python outside the package imports beside its own files; nothing imports tests.
IMPORTS = {
    "testing": set(),
    "benchmarks": {"testing"},
    "verification": {"testing"},
    "tools": {"benchmarks", "testing"},
    "tests": {"testing"},
}
# Tests of these folders also import what they test.
TESTED = {
    "test_small.py": {"verification"},
    "test_benchmarks.py": {"benchmarks"},
    "test_evolve.py": {"verification"},
    "test_krylov_draws.py": {"verification"},
    "test_published.py": {"benchmarks", "tools"},
    "test_stress.py": {"verification"},
    "test_sweep.py": {"benchmarks"},
}

pytestmark = pytest.mark.skipif(not SOURCES, reason="not in a source tree")


def _name(path):
    """The path as an include spells it."""
    path = path.relative_to(ROOT)
    for folder in ("csrc/include", "csrc"):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.as_posix()


def _includes(path):
    """The names of the files that a source includes in quotes."""
    found = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)
    headers = {"version.h": "tsvd/version.h"}  # made by CMake
    for name in (headers.get(name, name) for name in found):
        if name == "tsvd/version.h":
            continue
        places = [path.parent / name, ROOT / "csrc" / name, ROOT / "csrc/include" / name]
        places += [ROOT / "cuda" / name]
        [place] = {place.resolve() for place in places if place.exists()}
        yield _name(place)


GRAPH = {_name(path): set(_includes(path)) for path in SOURCES}


@pytest.mark.parametrize("folder", sorted({name.split("/")[0] for name in GRAPH}))
def test_includes_go_one_way(folder):
    wrong = [
        f"{name} includes {other}"
        for name, others in GRAPH.items()
        for other in others
        if name.startswith(folder + "/") and other.split("/")[0] not in ALLOWED[folder] | {folder}
    ]
    assert not wrong


@pytest.mark.parametrize("back_end", ["cpu", "cuda"])
def test_rooms_of_a_back_end(back_end):
    """What is below all rooms, such as the kernels of the CPU and cuda/runtime, all may use."""
    for name, others in GRAPH.items():
        room = name.removeprefix(back_end + "/").split("/")[0]
        if not name.startswith(back_end + "/") or room not in ROOMS:
            continue
        for other in others:
            used = other.removeprefix(back_end + "/").split("/")[0]
            if other.startswith(back_end + "/") and used in ROOMS:
                assert used in ROOMS[room] | {room}, f"{name} includes {other}"


def test_lines_are_no_longer_than_100_columns():
    """The formatter leaves comments as they are."""
    for path in SOURCES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= 100, f"{_name(path)}:{number}"


def test_cmake_lists_every_source():
    listed = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*")])
    for path in SOURCES:
        if path.suffix in (".c", ".cu"):
            assert path.relative_to(ROOT).as_posix() in listed, path


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md"])
def test_pages_name_what_exists(page):
    """Functions, as `name()`, and files, as `folder/name.c`, with or without the folders."""
    text = (ROOT / page).read_text()
    folders = "benchmarks csrc cuda examples python testing tests tools verification".split()
    paths = [path for folder in folders for path in ROOT.glob(f"{folder}/**/*.*")]
    files = [path.relative_to(ROOT).as_posix() for path in paths]
    for name in re.findall(r"`([\w/.-]+\.(?:c|h|cu|cuh|py|hpp))`", text):
        assert any(f"/{path}".endswith(f"/{name}") for path in files), name
    code = "\n".join(path.read_text() for path in [*SOURCES, *ROOT.glob("python/tsvd/*.py")])
    for name in re.findall(r"`(\w+)\(\)`", text):
        assert re.search(rf"(\b|_){name}\b", code), name


def test_names_of_a_back_end_begin_with_its_room():
    """The functions and tables of both precisions; runtime/ has none."""
    rooms = {*ROOMS, "dense"} - {"matrix", "qr", "bidiagonalize"}
    for name in re.findall(
        r"define tsvdi_(?:cpu|cuda)_(\w+) ", (ROOT / "csrc/backend/precision.h").read_text()
    ):
        assert name.split("_")[0] in rooms | {"vectors"}, name  # vectors: the table of vectors_ops


# Functions of others that comments name.
OTHERS = {"__drcp_rn", "longjmp"}


def test_comments_name_functions_that_exist():
    """Of a name in a comment, `name()`, the code has the name, or one that ends with it."""
    code, named = set(), {}
    for path in [*SOURCES, *(ROOT / "tests/c").glob("*.[ch]*")]:
        text = path.read_text()
        code |= set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
        if path in SOURCES:
            for comment in re.findall(r"/\*.*?\*/", text, flags=re.S):
                for name in re.findall(r"\b(\w+)\(\)", comment):
                    named.setdefault(name, _name(path))
    code |= {"_".join(name.split("_")[i:]) for name in code for i in range(1, 5)}
    missing = {name: path for name, path in named.items() if name not in code | OTHERS}
    assert not missing, missing


def test_no_circle_of_includes():
    done, path = set(), []

    def walk(name):
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            path.append(name)
            for other in GRAPH[name]:
                walk(other)
            done.add(path.pop())

    for name in GRAPH:
        walk(name)


def test_the_installed_headers_stand_alone():
    for name, others in GRAPH.items():
        if name.startswith("tsvd/"):
            assert all(other.startswith("tsvd/") for other in others), name


def test_algorithms_know_no_hardware():
    """Neither CUDA nor OpenMP, and no question about the device but in the one place."""
    for path in SOURCES:
        name, text = _name(path), path.read_text()
        if name.split("/")[0] in {"api", "backend", "bidiag", "dense", "math"}:
            assert "#pragma omp" not in text and "omp.h" not in text, name
            assert "cuda_runtime" not in text, name
        if name.startswith(("bidiag/", "dense/")):
            assert not re.search(r"device\s*(<|>=|!=|==)\s*(0|-1|TSVD_DEVICE_CPU)", text), name
            assert not re.search(r"\btsvdi_(cpu|cuda)(_\w+)?\b", text), name
            assert "TSVD_CUDA" not in text, name


def test_functions_of_both_precisions_are_listed_once():
    """A name that gets a suffix for the precision is in backend/precision.h, or in math/ beside its
    declaration; so no file renames what another one calls."""
    for path in SOURCES:
        if _name(path) != "backend/precision.h" and not _name(path).startswith("math/"):
            assert not re.search(r"#define (tsvdi_\w+) TSVD_T\(\1\)", path.read_text()), path


# Of C++ and CUDA, in the objects that nvcc makes: the same for both types.
OF_LIBRARIES = re.compile(
    r"(?:^|[ *&])(?:DW\.ref\.__|(?:__gnu_cxx|cub|cuda(?:[A-Z]\w*)?|dim3|std|thrust)::)"
)


@pytest.fixture(scope="module")
def functions():
    """Part of the core -> type -> the external names that its objects define.

    The parts are those of CMakeLists.txt: "" for tsvd_f64 and tsvd_f32, else "cuda", "avx2" and so
    on. The objects are in the folder that the installed tsvd was built in: SKBUILD_BUILD_DIR names
    it, as `make test` does, and then they must be there; else it is build/python, if that exists.
    """
    folder = ROOT / os.environ.get("SKBUILD_BUILD_DIR", "build/python")
    problem = None
    if not (folder / "objects.txt").exists():
        problem = f"{folder} has no list of objects: no tsvd was built there"
    elif shutil.which("nm") is None:
        problem = "nm, of binutils, is missing"
    if problem and "SKBUILD_BUILD_DIR" in os.environ:
        pytest.fail(problem)
    if problem:
        pytest.skip(problem)

    names = {}
    for line in (folder / "objects.txt").read_text().splitlines():
        target = re.search(r"/tsvd_(f64|f32)_?(\w*)\.dir/", line)
        if target:
            suffix, part = target.groups()
            found = names.setdefault(part, {}).setdefault(suffix, set())
            found.update(_external(folder / line))
    return names


def _external(path):
    """The names that an object defines for others, without the arguments that C++ adds to them."""
    command = ["nm", "--extern-only", "--defined-only", "--demangle", "--format=posix", str(path)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name = line.split("(")[0]
        name = re.sub(r" [A-Za-z]( [0-9a-f]+)*$", "", name)  # the kind, address and size
        if not OF_LIBRARIES.search(name):
            yield name


def test_functions_of_both_precisions_have_the_suffix_of_theirs(functions):
    """A name without it is in the library twice. The linker refuses that in C; in C++ only where
    the arguments are alike."""
    assert functions
    for part, of_type in functions.items():
        assert of_type.keys() == {"f64", "f32"}, part
        bases = {}
        for suffix, names in of_type.items():
            wrong = sorted(name for name in names if not name.endswith("_" + suffix))
            assert not wrong, f"of tsvd_{suffix} {part}: list them in backend/precision.h"
            bases[suffix] = {name.removesuffix("_" + suffix) for name in names}
        assert bases["f64"] and bases["f64"] == bases["f32"], part


def test_every_function_of_both_precisions_exists(functions):
    """What backend/precision.h and math/ list is defined. Of CUDA and of an instruction set this
    holds where the build has them."""
    defined = {
        name.removesuffix("_f64") for of_type in functions.values() for name in of_type["f64"]
    }
    parts = {"cuda": "cuda", "launch": "cuda", "avx2": "avx2", "avx512": "avx512"}
    missing = []
    for path in SOURCES:
        for name in re.findall(r"#define (tsvdi_\w+) TSVD_T\(\1\)", path.read_text()):
            needs = {parts[word] for word in name.split("_") if word in parts}
            if needs <= functions.keys() and name not in defined:
                missing.append(f"{_name(path)}: {name}")
    assert not missing


# Old word -> that of docs/glossary.md.
WORDS = {
    "told": "reported (a plan), progress",
    "room": "workspace, capacity, reserve()",
    "held": "state, owned",
    "flipped": "transposed",
    "mend": "correction",
    "land": "download",
    "landing": "pinned_results",
    "parcel": "transfer",
    "cut<": "carve<",
}


def test_one_word_for_one_thing():
    """Of the code alone: in comments these may be plain English."""
    no_code = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    for path in SOURCES:
        code = re.sub(no_code, " ", path.read_text(), flags=re.DOTALL)
        for old, word in WORDS.items():
            end = "" if old.endswith("<") else r"\b"
            found = re.search(rf"\b(?:\w+_)?{old}{end}", code, re.IGNORECASE)
            assert not found, f"{path}: {found.group()}: use {word} (docs/glossary.md)"


def test_headers_are_named_by_what_they_hold():
    names = {path.name for path in SOURCES}
    assert not names & {"run.h", "call.h"}  # there were eight and four of them


def _imports(program):
    """What a program imports, and what the programs in its strings do: (line, name)."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module if node.level == 0 else "." * node.level
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for name in re.findall(r"(?:^|;)\s*(?:from|import) (\w+)", node.value, re.MULTILINE):
                yield node.lineno, name


@pytest.mark.parametrize("folder", IMPORTS)
def test_imports_go_one_way(folder):
    paths, allowed = sorted((ROOT / folder).rglob("*.py")), IMPORTS[folder] | {folder}
    assert paths
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in paths
        for line, name in _imports(path.read_text())
        if name.split(".")[0] in set(IMPORTS) - allowed - TESTED.get(path.name, set())
    ]
    assert not wrong


@pytest.mark.parametrize(
    "program",
    [
        "import {}.sweep",
        "import os, {}",
        "def lazy():\n    from {} import stress",
        "'import time\\nfrom {} import families'",
        "f'import sys; from {} import {{name}}'",
    ],
)
def test_imports_are_found(program):
    assert "tools" in {name.split(".")[0] for _, name in _imports(program.format("tools"))}


def test_the_package_imports_none_of_them():
    for path in (ROOT / "python").rglob("*.py"):
        assert not {name.split(".")[0] for _, name in _imports(path.read_text())} & set(IMPORTS), (
            path
        )
