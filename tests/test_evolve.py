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


@pytest.mark.parametrize("numbers", ["real", "complex"])
@pytest.mark.parametrize("target", ["dense", "jacobi", "inverse"])
def test_a_climb_among_dense_matrices(target, numbers, device):
    program = """
import json
import numpy as np
from verification import evolve

search = evolve.search_of(TARGET)
for index in range(0, 2 * len(search.goals), 2):
    first = evolve.climb(1, index, "any", DEVICE, 14, TARGET, NUMBERS)
    found = evolve.climb(1, index, "any", DEVICE, 25, TARGET, NUMBERS)
    assert 0 <= first["share"] <= found["share"], found
    assert np.zeros(0, found["dtype"]).real.dtype in search.dtypes
    assert found["measure"] in search.goals
    assert ("imaginary" in found) == (NUMBERS == "complex") == ("complex" in found["dtype"])
    for part in {"A", "imaginary"} & {*found}:
        assert np.shape(found[part]) == (found["rows"], found["columns"])
    assert evolve.climb(1, index, "any", DEVICE, 25, TARGET, NUMBERS) == found
    evolve.text(found), json.dumps(found)
"""
    program = program.replace("TARGET", repr(target)).replace("NUMBERS", repr(numbers))
    python(program.replace("DEVICE", repr(device)))


def test_changes_of_complex_matrices():
    """Some are of one part alone, and all keep the types and the bounds on the orders."""
    python(
        """
import numpy as np
from verification import evolve_dense

rng = np.random.default_rng(0)
for target, search in evolve_dense.SEARCHES.items():
    for dtype in ("complex128", "complex64"):
        kept = [(0, search.beginner(rng, dtype)) for _ in range(60)]
        children = [search.child(rng, kept, dtype) for _ in range(300)]
        for A in [A for _, A in kept] + children:
            assert A.dtype == dtype and A.flags.c_contiguous and np.isfinite(A).all()
            assert max(A.shape) <= evolve_dense.LARGEST[target]
        assert sum(np.iscomplex(A).any() for A in children) > 200
        one = [search.child(rng, kept[:1], dtype) for _ in range(100)]
        same = [A for A in one if A.shape == kept[0][1].shape]
        parts = [[np.array_equal(getattr(A, x), getattr(kept[0][1], x)) for x in ("real", "imag")]
                 for A in same]
        assert [True, False] in parts and [False, True] in parts and [False, False] in parts
"""
    )


DEFECTS = {  # what is off, and by which climb it is found
    "values": ("dense", "svd", "result[1][0] *= 1 + 1e-3", 6),
    "values alone": ("dense", "svd", "result[0] *= 1 + 1e-3", 9),
    "orthogonality": ("dense", "svd", "result[0][:, 0] *= 1 + 1e-3", 3),
    "residual": ("dense", "svd", "result[2][0] *= -1", 0),
    "tiny values": ("jacobi", "svd", "result[1][-1] *= 1 + 1e-3", 0),
    "inverses": ("inverse", "inv", "result[0, 0] *= 1 + 1e-1", 0),
}
COMPLEX_DEFECTS = {
    "a phase": ("dense", "svd", "result[2][0] *= np.exp(1e-3j)", 0),
    "a conjugate": ("dense", "svd", "result[2][...] = result[2].conj()", 0),
    "an imaginary part": ("jacobi", "svd", "result[0].imag[0, 0] += 1e-3", 8),
    "a phase of inverses": ("inverse", "inv", "result[0] *= np.exp(1e-1j)", 0),
}
EVERY_DEFECT = [
    *((name, numbers) for name in DEFECTS for numbers in ("real", "complex")),
    *((name, "complex") for name in COMPLEX_DEFECTS),
]


@pytest.mark.parametrize(("name", "numbers"), EVERY_DEFECT)
def test_a_climb_among_dense_matrices_finds_a_planted_defect(name, numbers):
    target, function, defect, index = (DEFECTS | COMPLEX_DEFECTS)[name]
    program = """
import numpy as np
from verification import evolve
from tsvd import linalg

right = linalg.FUNCTION

def wrong(*arguments, **options):
    result = right(*arguments, **options)
    DEFECT
    return result

linalg.FUNCTION = wrong
found = evolve.climb(3, INDEX, "any", "cpu", 20, TARGET, NUMBERS)
assert found["share"] > 1, found
"""
    for old, new in (("FUNCTION", function), ("DEFECT", defect), ("INDEX", str(index))):
        program = program.replace(old, new)
    python(program.replace("TARGET", repr(target)).replace("NUMBERS", repr(numbers)))


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
