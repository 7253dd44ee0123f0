"""The sweep over sizes finds planted cliffs, and no others; its result files make tables."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A clock that calls move on, and curves whose calls take what a function says.
PROGRAM = """
import time
from benchmarks import sweep

now, calls = [0.0], []

class Timer(sweep.Timer):
    def __init__(self):
        super().__init__("cpu", 1)
        self._now = lambda: now[0]

def follow(seconds, work=lambda n: n**3, is_cube=False, sizes=sweep._steps(1, 400)):
    def prepare(n):
        def call():
            calls.append(n)
            now[0] += seconds(n)
        return call
    curve = sweep.Curve("group", "what", "float64", "n", sizes, prepare, work, is_cube)
    return sweep._follow(curve, Timer(), time.monotonic() + 1000)

def cube(n):
    return 1e-5 + 1e-9 * n**3
"""


def run(*arguments, status=0):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (status, 0), done.stdout + done.stderr
    return done.stdout


def python(program):
    run("-c", PROGRAM + program)


def test_sizes():
    python("""
sizes = sweep._steps(1, 1_000_000)
assert sizes[:7] == (1, 2, 3, 4, 5, 6, 7) and sizes[-1] == 1_000_000
assert all(1 < b / a <= 1.26 or b - a == 1 for a, b in zip(sizes, sizes[1:]))
""")


def test_no_cliff():
    python("""
case = follow(cube, is_cube=True)
assert case["over"] == [] and case["sizes"][-1] == 400 and case["worst"]["times"] <= 1.01
assert case["cube"]["times"] < 1 and len(case["seconds"]) == len(case["work"])
""")


@pytest.mark.parametrize("factor, found", [(1.3, False), (1.6, True), (0.4, True), (0.65, False)])
def test_a_planted_step(factor, found):
    """A drop counts where a larger size takes less time, not where it takes little more."""
    python(
        """
case = follow(lambda n: cube(n) * (FACTOR if n > 200 else 1))
assert [bool(case["over"])] == [FOUND], case["over"]
if FOUND:
    [step] = case["over"]
    assert step["from"] <= 200 < step["to"]
    assert case["worst"] == step
""".replace("FACTOR", str(factor)).replace("FOUND", str(found))
    )


def test_what_the_count_does_not_explain():
    python("""
assert follow(lambda n: 1e-5 * n, work=lambda n: 1)["over"] != []
assert follow(lambda n: 1e-5 * n**0.9, work=lambda n: n)["over"] == []
assert follow(lambda n: 1e-9 * n**3.5, is_cube=True)["over"] != []
""")


def test_a_slow_moment_is_looked_at_again():
    python("""
def noisy(n):
    return cube(n) * (5 if n > 200 and calls.count(n) < 9 else 1)

assert follow(noisy)["over"] == []
""")


def test_what_ends_a_curve():
    python("""
def short_of_memory(n):
    if n > 100:
        raise MemoryError("no more")
    return cube(n)

case = follow(short_of_memory)
assert case["sizes"][-1] <= 100 and "no more" in case["note"]

def long(n):
    return n**3

case = follow(long)
assert case["sizes"][-1] == 6  # three calls of the next one would take more than is left
""")


def test_the_result_files(tmp_path):
    """Too little time for most: what is left out does not stop the rest."""
    path = tmp_path / "sweep_cpu.json"
    arguments = "-m", "benchmarks", "sweep", "--threads", "1"
    run(*arguments, "--group", "inverse", "--seconds", "4", "-o", str(path), status=1)
    content = json.loads(path.read_text())
    assert len(content["cases"]) == 9 and {"machine", "sources", "load", "bars"} <= set(content)
    assert all(len(case["sizes"]) == len(case["seconds"]) > 0 for case in content["cases"])
    cube = tmp_path / "cube_cuda.json"
    run(*arguments, "--group", "cube", "--seconds", "1", "-o", str(cube), status=1)
    content = json.loads(cube.read_text())
    assert content["cases"][0]["over_cube"] > 0 and content["peers"] == []
    assert content["cases"][-1]["note"] == "the time is up"
    page = tmp_path / "page.md"
    page.write_text(
        "".join(
            f"<!-- table: {name} -->\n<!-- end of table -->\n"
            for name in ("sweep_cpu", "cube_cuda")
        )
    )
    run(
        "-c",
        "import sys; from pathlib import Path; from benchmarks import tables; "
        f"tables.write([Path({str(page)!r})], Path({str(tmp_path)!r}))",
    )
    written = page.read_text()
    assert "| inverse: one | float64 | n = 1 to " in written and "the time is up" in written
