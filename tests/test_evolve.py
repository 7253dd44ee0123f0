"""The evolutionary search: it climbs, repeats itself, tells failures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python(program):
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_climb_climbs_and_can_be_repeated(device):
    program = """
from verification import evolve

for index in (0, 3, 6):  # residual, orthogonality, the error of B with eps
    first = evolve.climb(1, index, "dc", DEVICE, 20)
    found = evolve.climb(1, index, "dc", DEVICE, 100)
    assert 0 < first["share"] <= found["share"] <= 1, found
    assert found["measure"] == evolve.GOALS[index // 2]
    assert found["dtype"] == evolve.DTYPES[index % 2]
    assert evolve.SMALLEST <= found["n"] == len(found["d"]) <= evolve.LARGEST
    assert evolve.climb(1, index, "dc", DEVICE, 100) == found
"""
    python(program.replace("DEVICE", repr(device)))


@pytest.mark.parametrize("target", ["dense", "jacobi", "inverse"])
def test_a_climb_among_dense_matrices(target, device):
    program = """
from verification import evolve

search = evolve.search_of(TARGET)
for index in range(0, 2 * len(search.goals), 2):
    first = evolve.climb(1, index, "any", DEVICE, 14, TARGET)
    found = evolve.climb(1, index, "any", DEVICE, 25, TARGET)
    assert 0 <= first["share"] <= found["share"], found
    assert found["dtype"] in search.dtypes and found["measure"] in search.goals
    assert len(found["A"]) == found["rows"] and len(found["A"][0]) == found["columns"]
    assert evolve.climb(1, index, "any", DEVICE, 25, TARGET) == found
    evolve.text(found)
"""
    python(program.replace("TARGET", repr(target)).replace("DEVICE", repr(device)))


DEFECTS = {  # what is off, and by which climb it is found
    "values": ("dense", "svd", "result[1][0] *= 1 + 1e-3", 6),
    "values alone": ("dense", "svd", "result[0] *= 1 + 1e-3", 9),
    "orthogonality": ("dense", "svd", "result[0][:, 0] *= 1 + 1e-3", 3),
    "residual": ("dense", "svd", "result[2][0] *= -1", 0),
    "tiny values": ("jacobi", "svd", "result[1][-1] *= 1 + 1e-3", 0),
    "inverses": ("inverse", "inv", "result[0, 0] *= 1 + 1e-1", 0),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_climb_among_dense_matrices_finds_a_planted_defect(name):
    target, function, defect, index = DEFECTS[name]
    program = """
from verification import evolve
from tsvd import linalg

right = linalg.FUNCTION

def wrong(*arguments, **options):
    result = right(*arguments, **options)
    DEFECT
    return result

linalg.FUNCTION = wrong
found = evolve.climb(3, INDEX, "any", "cpu", 20, TARGET)
assert found["share"] > 1, found
"""
    for old, new in (("FUNCTION", function), ("DEFECT", defect), ("INDEX", str(index))):
        program = program.replace(old, new)
    python(program.replace("TARGET", repr(target)))


@pytest.mark.parametrize("way", ["inaccurate", "raises"])
def test_what_breaks_a_bound_is_recorded(way, tmp_path):
    """The function under test is replaced by one that errs for some matrices."""
    path = tmp_path / "evolve.json"
    program = """
import tsvd
from verification import evolve
from pathlib import Path

right = tsvd.svd

def wrong(d, e, **options):
    result = right(d, e, **options)
    if d.size % 2 == 0:
        if WAY == "raises":
            raise RuntimeError("an even order")
        result.s[:] *= 1.001
    return result

tsvd.svd = wrong
found = evolve.climb(0, 0, "dc", "cpu", 40)
assert found["share"] > 1 and found["n"] % 2 == 0, found
assert (found.get("wrong") == "RuntimeError: an even order") == (WAY == "raises")
evolve.climb = lambda *arguments: found

class Pool:
    def __init__(self, *arguments): pass
    def __enter__(self): return self
    def __exit__(self, *arguments): pass
    def submit(self, function, *arguments):
        from concurrent.futures import Future
        future = Future()
        future.set_result(function(*arguments))
        return future

evolve.ProcessPoolExecutor = Pool
assert evolve.run(Path(PLACE), 1, "cpu", "dc", 10, 0, 60) == 1
"""
    python(program.replace("WAY", repr(way)).replace("PLACE", repr(str(path))))
    content = json.loads(path.read_text())
    [broken] = content["failures"]
    assert len(broken["d"]) == broken["n"] and len(broken["e"]) == broken["n"] - 1
    assert content["worst"]["residual, float64"]["share"] > 1
