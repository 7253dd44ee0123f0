"""The draws of the verification: they find planted defects, and can be repeated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def every_defect(common, of_complex):
    """The names of planted defects: common ones in real and in complex numbers."""
    both = [(name, numbers) for name in common for numbers in ("real", "complex")]
    return pytest.mark.parametrize(
        ("name", "numbers"), [*both, *((name, "complex") for name in of_complex)]
    )


def python(*arguments, status=0):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


# A block of random matrices, whose results are right, and one matrix of it that gets a defect.
BLOCK = """
import numpy as np
import tsvd
from verification import small
from verification.small_blocks import Block
from testing.measures import BOUNDS

n, hurt = 4, 17
for dtype in (np.float64, np.float32):
    eps, unit, top = (getattr(np.finfo(dtype), x) for x in ("eps", "smallest_subnormal", "max"))
    made = Block("dc", np.dtype(dtype).name, n, 40, True, False, None, 0)
    limit = BOUNDS["values auto"](n)
    rng = np.random.default_rng(1)
    d, e = rng.uniform(1, 2, (40, n)).astype(dtype), rng.uniform(1, 2, (40, n - 1)).astype(dtype)
    d[hurt], e[hurt] = PLACE
    L, s, R = tsvd.svd(d, e, device="cpu")
    found, wrong = small.errors(made, d, e, 0, (L, s, R))
    assert wrong == [] and found["values"][0] <= limit / 4, (found, wrong)
    DEFECT
    found, wrong = small.errors(made, d, e, 0, (L, s, R))
    print(found, wrong)
    assert {i for i, _ in wrong} == {hurt} and any(TEXT in text for _, text in wrong), wrong
"""
RANDOM = "d[hurt], e[hurt]"
DEFECTS = {
    "a value by twice its bound": (*(RANDOM, "s[hurt, 1] *= 1 + 2 * limit * eps", "values is "),),
    "a value by slightly more than its bound": (
        *(RANDOM, "s[hurt, 3] *= 1 - 1.2 * limit * eps", "values is "),
    ),
    "a wrong sign": (*(RANDOM, "L[hurt, :, 2] *= -1; R[hurt, 2] *= -1", "not positive"),),
    "a wrong sign of L alone": (*(RANDOM, "L[hurt, :, 2] *= -1", "residual is"),),
    "a wrong order": (
        RANDOM,
        "s[hurt] = s[hurt, ::-1].copy(); L[hurt] = L[hurt, :, ::-1].copy(); "
        "R[hurt] = R[hurt, ::-1].copy()",
        "not descending",
    ),
    "a value of -0": ("(1, 1, 1, 0), 0", "s[hurt, 3] = -0.0", "a negative value"),
    "a vector too long": (RANDOM, "L[hurt, :, 1] *= 1 + 2 * (n + 8) * eps", "orthogonality is"),
    "vectors exchanged": (RANDOM, "R[hurt, [0, 1]] = R[hurt, [1, 0]]", "residual is"),
    "NaN in a vector": (RANDOM, "R[hurt, 0, 0] = np.nan", "NaN"),
    "NaN for a value": (RANDOM, "s[hurt, 0] = np.nan", "NaN"),
    "infinite, though a number holds it": (
        *("(top, 1, 1, 1), 0", "s[hurt, 0] = np.inf", "the ends of the range"),
    ),
    "finite, though no number holds it": ("top, top", "s[hurt, 0] = top", "the ends of the range"),
    "another denormal": ("3 * unit, unit", "s[hurt, 2] += unit", "the ends of the range"),
    "a value that should be 0": ("unit, unit", "s[hurt, 3] = unit", "the ends of the range"),
    "the least normal number": (
        "(1, 1, 1, np.finfo(dtype).tiny - unit), 0",
        *("s[hurt, 3] += unit", "the ends of the range"),
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_small_matrices_find_a_planted_defect(name):
    place, defect, text = DEFECTS[name]
    program = BLOCK.replace("PLACE", place).replace("DEFECT", defect)
    python("-c", program.replace("TEXT", repr(text)))


def test_an_error_below_the_bound_is_measured_not_reported():
    python(
        "-c",
        BLOCK.replace("PLACE", RANDOM)
        .replace("DEFECT", "s[hurt, 1] *= dtype(1 + 0.6 * limit * eps)")
        .replace("print(found, wrong)", "assert 0.4 < found['values'][0] / limit < 0.8")
        .replace("{hurt} and any(TEXT in text for _, text in wrong)", "set()"),
    )


@pytest.mark.parametrize("kind", ["index", "interval", "eps", "shape"])
def test_small_matrices_find_a_wrong_option(kind):
    """tsvd.svd is replaced by one that reads an option wrongly."""
    program = """
import numpy as np
import tsvd
from verification import small, small_blocks

right = tsvd.svd
made = small_blocks.Block("dc", "float64", 5, 64, True, False, None, 3)
d = np.random.default_rng(0).uniform(1, 2, (64, 5)); e = d[:, 1:] / 3
if KIND == "index":
    made.part = 1, 2
    svd = lambda d, e, select_range, **o: right(d, e, select_range=(2, 3), **o)
elif KIND == "interval":
    made.intervals = True
    def svd(d, e, select_range, **o):
        low, high = select_range
        return right(d, e, select_range=(low / 4, high / 4), **o)
elif KIND == "eps":
    made.eps = 1e-9
    svd = lambda d, e, eps, **o: right(d, e, eps=30 * eps if eps else eps, **o)
    e = np.full((64, 4), 2e-8)
elif KIND == "shape":
    svd = lambda d, e, **o: [x[:-1] for x in right(d, e, **o)]
assert small.check(made, d, e, "cpu")[1] == []
tsvd.svd = svd
assert small.check(made, d, e, "cpu")[1] != []
"""
    python("-c", program.replace("KIND", repr(kind)))


def test_the_measures_of_a_batch_are_those_of_its_matrices():
    python(
        "-c",
        """
import numpy as np
import tsvd
from verification import extended
from testing import families, measures, reference

for dtype in (np.float32, np.float64):
    for lower in (False, True):
        d, e = families.stack([families.make(f, 9, dtype, 1) for f in ("normal", "chi", "zero",
            "graded_up", "denormal", "many_equal")])
        L, s, R = tsvd.svd(d, e, lower=lower, device="cpu")
        s = (s * (1 + np.linspace(-40, 40, 9) * np.finfo(dtype).eps)).astype(dtype)
        residuals = extended.residuals(d, e, L, s, R, lower)
        errors = extended.max_abs_errors(d, e, L, s, R, lower)
        orthogonalities = extended.orthogonalities(L, R)
        b2 = extended.squares(d, e)
        shares = extended.value_shares(b2, 0, s, extended.tolerances(s, 30.0))
        for i in range(len(d)):
            one = d[i], e[i], L[i], s[i], R[i], lower
            assert abs(residuals[i] - measures.residual(*one)) < 0.02
            error = measures.max_abs_error(*one)
            rounding = 8 * np.finfo(float).eps * max(abs(d[i]).max(), abs(e[i]).max())
            assert abs(errors[i] - error) <= 0.02 * error + rounding + np.finfo(dtype).tiny
            assert abs(orthogonalities[i] - measures.orthogonality(L[i], R[i])) < 0.05
            s_ref = reference.singular_values(d[i], e[i])
            unit = np.finfo(dtype).eps * np.maximum(s_ref, np.finfo(dtype).tiny)
            share = abs(s[i] - s_ref) / unit / 30
            assert ((shares[i] > 1) == (share > 1)).all()
            assert (shares[i] <= 2 * np.maximum(share, 0.5)).all()
            inside = share <= 1
            over = (shares[i] - np.maximum(share, extended.CLOSE))[inside]
            assert (over >= -1e-9).all() and (over <= 0.875 / 2**extended.STEPS + 1e-9).all()
        assert (shares > 1).any() and (shares < 0.5).any()
""",
    )


def test_a_batch_is_the_same_in_every_layout_and_grids_are_complete():
    python(
        "-c",
        """
import numpy as np
from verification import small_blocks as blocks

for layout in set(blocks.LAYOUTS):
    made = blocks.Block("dc", "float32", 3, blocks.MATRICES, True, False, None, 5, layout=layout)
    d, e = blocks.matrices(made)
    given = blocks.laid_out(made, d, e)
    batch = np.broadcast_shapes(given[0].shape[:-1], given[1].shape[:-1])
    for whole, x in zip((d, e), given):
        x = np.broadcast_to(x, (*batch, x.shape[-1])).reshape(whole.shape)
        assert np.array_equal(x, whole, equal_nan=True) and np.isfinite(x).all()
seen = {}
for made in blocks.ENUMERATED:
    key = made.method, made.vectors, made.dtype, made.grid
    if made.grid in ("2", "4, signs"):
        d, e = blocks.matrices(made)
        seen.setdefault(key, set()).update(map(tuple, np.hstack([d, e]).tolist()))
assert len(seen) == 2 * 2 * (len(blocks.VECTORS) + len(blocks.VALUES))
for (*_, dtype, grid), rows in seen.items():
    n, entries = blocks.GRIDS[dtype][grid]
    assert len(rows) == len(set(np.array(entries, dtype).tolist())) ** (2 * n - 1) > 2000
index = [i for i in range(3000) if blocks.block(7, i).grid is not None]
assert len(index) == len(blocks.ENUMERATED)
""",
    )


def test_a_failure_is_written_with_its_call_and_the_run_goes_on(tmp_path):
    """The pieces are computed in this process, by a function that errs for some matrices."""
    path = tmp_path / "small.json"
    printed = python(
        "-c",
        f"""
import sys
from pathlib import Path
import numpy as np
import tsvd
from verification import attack, small, small_blocks

right = tsvd.svd

def svd(d, e, **options):
    result = right(d, e, **options)
    if not options["compute_uv"] and np.ndim(result) == 2 and result.shape[-1] == 2:
        result[:, 0] *= 1.001
    return result

class Pool:
    def __init__(self, workers, attack): self.attack = attack
    def results(self, indices, until):
        for index in indices:
            yield index, self.attack(index)

tsvd.svd, attack.Pool = svd, Pool
small_blocks.ENUMERATED = [x for x in small_blocks.ENUMERATED if x.grid in ("1", "2")][:40]
status = small.run(Path({str(path)!r}), 1, "cpu", 20_000, 3, 60)
sys.exit(status)
""",
        status=1,
    )
    content = json.loads(path.read_text())
    assert content["seed"] == 3 and content["failed"] > 1000
    assert content["draws"] == sum(content["counts"].values()) >= 20_000
    assert len(content["failures"]) >= 2, "the run did not go on"
    wrong = content["failures"][0]["wrong"][0]
    assert wrong in printed and "tsvd.svd(np.array([h('" in wrong
    # The line computes what the block computed, but here svd is right.
    [line] = [line for line in wrong.splitlines() if line.startswith("h = ")]
    print_it = f"import numpy as np, tsvd\n{line.replace('tsvd.svd', 'print(tsvd.svd')})"
    assert "[" in python("-c", print_it)


@pytest.mark.parametrize("vectors", [True, False])
def test_random_draws_find_a_planted_defect(vectors):
    program = """
import numpy as np
import tsvd
from testing.measures import BOUNDS
from verification import stress

right = tsvd.svd

def svd(d, e, **options):
    result, info = right(d, e, **options)
    values = result.s if options.get("compute_uv", True) else result
    values *= 1 + 2 * limit * np.finfo(values.dtype).eps
    return result, info

found = 0
for index in range(100):
    made, d, e = stress.draw(4, index, "cpu", "any")
    if made.vectors != VECTORS or made.eps or made.by_interval:
        continue
    limit = BOUNDS["values extra" if made.extra else "values auto"](made.n)
    tsvd.svd = right
    assert stress.check(made, d, e, "cpu")[2] == []
    tsvd.svd = svd
    values = right(d, e, device="cpu", compute_uv=False)
    low, high = made.part or (0, made.n - 1)
    if (values[..., low : high + 1] > np.finfo(d.dtype).tiny).any():
        assert any("values is " in text for text in stress.check(made, d, e, "cpu")[2]), made
        found += 1
assert found > 5
"""
    python("-c", program.replace("VECTORS", repr(vectors)))


def test_draws_are_of_every_kind():
    python(
        "-c",
        """
import numpy as np
from verification import stress

drawn = [stress.draw(0, i, "cpu", "any") for i in range(1500)]
made = [x for x, _, _ in drawn]
methods = {"auto", "dc", "twisted", "givens", "bisect"}
assert {x.method for x in made} == methods | {"qr"}
assert {stress.draw(0, i, "cuda", "any")[0].method for i in range(100)} == methods
assert {x.fallback for x in made if x.method == "twisted"} == {True, False}
for key in ("vectors", "lower", "by_interval", "dtype", "threads"):
    assert len({getattr(x, key) for x in made}) > 1, key
for key in ("eps", "max_sweeps", "others", "part"):
    assert {getattr(x, key) is None for x in made} == {True, False}, key
largest = [float(np.max(abs(d)) / np.finfo(d.dtype).max) for _, d, _ in drawn]
least = [float(np.max(abs(d)) / np.finfo(d.dtype).tiny) for _, d, _ in drawn]
assert sum(x > 0.5 for x in largest) > 10 and sum(0 < x < 1 for x in least) > 10
assert vars(stress.draw(0, 7, "cpu", "any")[0]) == vars(made[7])
""",
    )


def test_climbs_are_of_every_kind():
    python(
        "-c",
        """
import numpy as np
from verification import evolve

every = len(evolve.GOALS) * len(evolve.DTYPES) * len(evolve.METHODS)
assert len({evolve.kind(i, "any") for i in range(every)}) == every
for target in evolve.TARGETS:
    search = evolve.search_of(target)
    twins = {t: np.result_type(t, np.complex64).name for t in search.dtypes}
    types = {"real": set(twins)}
    if target != "bidiagonal":
        types["complex"] = set(twins.values())
        types["any"] = types["real"] | types["complex"]
    for numbers, dtypes in types.items():
        kinds = {(g, t, m) for g in search.goals for t in dtypes for m in search.methods}
        made = {evolve.kind(i, "any", target, numbers) for i in range(200)}
        assert made == kinds, (target, numbers)
for method in evolve.METHODS:
    made = {evolve.kind(i, method) for i in range(every)}
    assert len(made) == every // len(evolve.METHODS) and {how for *_, how in made} == {method}
""",
    )


def test_there_are_no_complex_bidiagonal_matrices():
    arguments = ["-m", "verification", "evolve", "1", "--numbers", "complex"]
    assert python(*arguments, status=1) == ""


def test_what_twisted_refuses_is_counted_and_checked():
    python(
        "-c",
        """
import numpy as np
import tsvd
from verification import attack, stress

right, seen, tally = tsvd.svd, [], attack.Tally(1)

def svd(d, e, **options):
    if not options["tuning"]["fallback"]:
        seen.append(options)
        raise np.linalg.LinAlgError(text)
    return right(d, e, **options)

text = "twisted refused 1 of 1 values"
for index in range(80):
    made, d, e = stress.draw(1, index, "cpu", "twisted")
    ran, found, wrong = stress.check(made, d, e, "cpu")
    assert found and not wrong
    tally.add(index, vars(made) | {"ran": ran}, {}, wrong)
    if not made.fallback and ran == "dc":  # refused in fact: the same again
        tsvd.svd = svd
        assert stress.check(made, d, e, "cpu") == (ran, found, wrong) and seen
        tsvd.svd, refused = right, (made, d, e)
for key in ("twisted, float64", "twisted by dc, float64", "twisted by bisect, float64"):
    assert tally.counts[key] > 0, tally.counts

# Any other error is one.
tsvd.svd, text = svd, "no convergence"
try:
    stress.check(*refused, "cpu")
except np.linalg.LinAlgError:
    pass
else:
    raise AssertionError("it passed")
""",
    )


# What is wrong with the results of tsvd.linalg.svd, and what the draws say of it.
DENSE_DEFECTS = {
    "a vector": ("U[..., 0, 0] += eps**0.5", "orthogonality is|residual is"),
    "a right vector": ("Vh[..., 0, 0] += eps**0.5", "orthogonality is|residual is"),
    "a sign": ("U[..., 0] *= -1; Vh[..., 0, :] *= -1", "not positive"),
    "a sign on one side": ("Vh[..., 0, :] *= -1", "residual is"),
    "the values": ("S *= 1 + 40 * (p + 8) * eps", "values is"),
    "the least value": ("S[..., -1] += 40 * (p + 8) * eps * S[..., 0]", "values is|descending"),
    "the last vector": ("U[..., :, -1] *= 1 + eps**0.6", "orthogonality is"),
    "the shape": ("S = S[..., :-1]", "values, not"),
    "the batch": ("U, S, Vh = U[..., None], S[..., None], Vh[..., None]", "shapes|types"),
    "the matrix": ("a[...] = 0", "was changed"),
    "the bits": ("S[..., -1] *= rng.choice([1, 1 + eps])", "other bits"),
}
COMPLEX_DEFECTS = {
    "a phase": ("U[..., 0] *= 1j; Vh[..., 0, :] *= -1j", "not positive"),
    "a slight phase": ("U[..., 0] *= 1 + 1e-3j; Vh[..., 0, :] *= 1 - 1e-3j", "not positive"),
    "a phase on one side": ("Vh[..., 0, :] *= np.exp(1e-2j)", "residual is"),
    "a conjugate": ("Vh[...] = Vh.conj()", "residual is"),
    "an imaginary part": ("U.imag[..., 0, 0] += eps**0.5", "orthogonality is|residual is"),
    "an imaginary NaN": ("U.imag[..., -1, -1] = np.nan", "NaN"),
    "complex values": ("S = S.astype(U.dtype)", "types"),
}


@every_defect(DENSE_DEFECTS, COMPLEX_DEFECTS)
def test_dense_draws_find_a_planted_defect(name, numbers):
    defect, text = (DENSE_DEFECTS | COMPLEX_DEFECTS)[name]
    program = """
import re
import numpy as np
from verification import dense_draws
from tsvd import linalg

right, rng = linalg.svd, np.random.default_rng(0)

def svd(a, *arguments, **options):
    U, S, Vh = right(a, *arguments, **options)
    eps, p = np.finfo(S.dtype).eps, min(a.shape[-2:])
    DEFECT
    return U, S, Vh

found = index = 0
while found < 5 and index < 150:
    made, A = dense_draws.draw(2, index, "any", NUMBERS)
    index += 1
    made.two_steps, made.repeated = False, "bits" in TEXT
    if not made.vectors or made.part or A.size > 4000:
        continue
    if min(made.rows, made.columns) < 2 or not 1e-20 < abs(A).max() < 1e20:
        continue
    linalg.svd = right
    assert dense_draws.check(made, A, "cpu")[1] == []
    linalg.svd = svd
    said = "; ".join(dense_draws.check(made, A, "cpu")[1])
    found += bool(re.search(TEXT, said))
    assert found or SELDOM, (made, said)
assert found == 5, found
"""
    seldom = "bits" in text or "conj" in defect  # of real numbers a conjugate is right
    program = program.replace("DEFECT", defect).replace("NUMBERS", repr(numbers))
    python("-c", program.replace("TEXT", repr(text)).replace("SELDOM", repr(seldom)))


@pytest.mark.parametrize("numbers", ["real", "complex"])
@pytest.mark.parametrize("kind", ["index", "interval"])
def test_dense_draws_find_another_part(kind, numbers):
    program = """
import numpy as np
from verification import dense_draws
from tsvd import linalg

right = linalg.svd

def svd(a, *arguments, select="a", select_range=None, **options):
    if select == "i":
        select_range = tuple(i + 1 for i in select_range)
    elif select == "v":
        select_range = select_range[0] / 4, select_range[1] / 4
    return right(a, *arguments, select=select, select_range=select_range, **options)

found = index = 0
while found < 5 and index < 800:
    made, A = dense_draws.draw(5, index, "any", NUMBERS)
    index += 1
    made.two_steps = False
    if made.part is None or made.by_interval != (KIND == "interval") or A.size > 4000:
        continue
    linalg.svd = right
    assert dense_draws.check(made, A, "cpu")[1] == []
    linalg.svd = svd
    if made.part[1] + 1 < min(made.rows, made.columns):
        found += dense_draws.check(made, A, "cpu")[1] != []
assert found == 5, found
"""
    python("-c", program.replace("KIND", repr(kind)).replace("NUMBERS", repr(numbers)))


@pytest.mark.parametrize("numbers", ["real", "complex"])
def test_dense_draws_are_of_every_kind(numbers):
    program = """
import numpy as np
from verification import dense_draws
from testing.FAMILIES import FAMILIES
from testing.dense_layouts import LAYOUTS
from testing.parts import sizes

drawn = [dense_draws.draw(0, i, "any", NUMBERS) for i in range(1000)]
made = [x for x, _ in drawn]
assert {x.method for x in made} == {"auto", "dc", "twisted", "qr", "givens", "bisect"}
assert {x.family for x in made} == set(FAMILIES) and {x.layout for x in made} == set(LAYOUTS)
for key in ("vectors", "full", "two_steps", "repeated", "by_interval", "dtype", "threads"):
    assert len({getattr(x, key) for x in made}) > 1, key
for key in ("others", "part", "eps"):
    assert {getattr(x, key) is None for x in made} == {True, False}, key
ratios = [x.rows / x.columns for x in made]
assert min(ratios) < 2e-3 and max(ratios) > 500 and ratios.count(1) > 150
assert all(np.isfinite(A).all() for _, A in drawn)
largest = [float(np.max(sizes(A)) / np.finfo(A.dtype).max) for _, A in drawn]
least = [float(np.max(sizes(A)) / np.finfo(A.dtype).tiny) for _, A in drawn]
assert sum(x > 0.5 for x in largest) > 10 and sum(0 < x < 1 for x in least) > 10
with np.errstate(over="ignore"):
    beyond = sum(np.isinf(abs(A)).any() for _, A in drawn)  # magnitudes of parts that are finite
assert beyond > 10 if NUMBERS == "complex" else not beyond
again = dense_draws.draw(0, 7, "any", NUMBERS)
assert vars(again[0]) == vars(made[7]) and np.array_equal(again[1], drawn[7][1])
"""
    families = "dense_families" if numbers == "real" else "complex_families"
    program = program.replace("testing.FAMILIES", f"testing.{families}")
    python("-c", program.replace("NUMBERS", repr(numbers)))


@pytest.mark.parametrize("module", ["dense_draws", "inverse_draws"])
def test_draws_of_any_numbers_are_real_and_complex_in_turn(module):
    program = """
import numpy as np
from verification import MODULE

how = ("any",) if "MODULE" == "dense_draws" else ()
for index in range(40):
    made, A = MODULE.draw(3, index, *how, "any")
    numbers = ("real", "complex")[index % 2]
    alone, B = MODULE.draw(3, index, *how, numbers)
    assert vars(made) == vars(alone) and A.tobytes() == B.tobytes()
    assert made.dtype == A.dtype.name and np.iscomplexobj(A) == (numbers == "complex")
"""
    python("-c", program.replace("MODULE", module))


DEFECTS_OF_INVERSES = {
    "an entry": ("X[..., 0, 0] *= 1 + 1e4 * eps * A.shape[-1]", "residual"),
    "NaN": ("X[..., -1, 0] = np.nan", "NaN"),
    "infinite": ("X[..., 0, -1] = np.inf", "infinite"),
    "a warning": ("warnings.warn('ill', LinAlgWarning)", "well-conditioned"),
    "an error": ("raise np.linalg.LinAlgError('Singular matrix')", "well-conditioned"),
}
DEFECTS_OF_COMPLEX_INVERSES = {
    "a phase": ("X[..., 0, :] *= 1 + 1e4j * eps * A.shape[-1]", "residual"),
    "a conjugate": ("X[...] = X.conj()", "residual"),
    "an imaginary NaN": ("X.imag[..., -1, 0] = np.nan", "NaN"),
    "an infinite imaginary part": ("X.imag[..., 0, -1] = np.inf", "infinite"),
}


@every_defect(DEFECTS_OF_INVERSES, DEFECTS_OF_COMPLEX_INVERSES)
def test_inverse_draws_find_a_planted_defect(name, numbers):
    defect, text = (DEFECTS_OF_INVERSES | DEFECTS_OF_COMPLEX_INVERSES)[name]
    program = """
import warnings
import numpy as np
from scipy.linalg import LinAlgWarning
from verification import inverse_draws
from tsvd import linalg

right = linalg.inv

def inv(A, **options):
    X, eps = right(A, **options), np.finfo(A.dtype).eps
    DEFECT
    return X

found = index = 0
while found < 3 and index < 300:
    made, A = inverse_draws.draw(2, index, NUMBERS)
    index += 1
    if made.family not in ("gaussian", "orthogonal", "shooting") or made.others or made.exponent:
        continue
    if A.real.dtype != np.float32 or not 3 < made.n < 70:
        continue
    linalg.inv = right
    assert inverse_draws.check(made, A, "cpu")[1] == []
    linalg.inv = inv
    assert any(TEXT in said for said in inverse_draws.check(made, A, "cpu")[1]), made
    found += 1
assert found == 3
"""
    program = program.replace("DEFECT", defect).replace("NUMBERS", repr(numbers))
    python("-c", program.replace("TEXT", repr(text)))


@pytest.mark.parametrize("numbers", ["real", "complex"])
def test_inverse_draws_are_of_every_kind(numbers):
    program = """
import numpy as np
from verification import inverse_draws
from testing.FAMILIES import FAMILIES
from testing.dense_layouts import LAYOUTS

drawn = [inverse_draws.draw(0, i, NUMBERS) for i in range(1000)]
made = [x for x, _ in drawn]
assert {x.family for x in made} == set(FAMILIES) and {x.layout for x in made} == set(LAYOUTS)
for key in ("refine", "repeated", "dtype"):
    assert len({getattr(x, key) for x in made}) > 1, key
assert {x.others is None for x in made} == {True, False}
assert sum(x.family in inverse_draws.GROWING for x in made) > 250
again = inverse_draws.draw(0, 7, NUMBERS)
assert vars(again[0]) == vars(made[7]) and np.array_equal(again[1], drawn[7][1])
one = 1j if NUMBERS == "complex" else 1.0
zero = 0 * one * np.ones((3, 3))
assert inverse_draws.is_singular(zero) and inverse_draws.is_singular(one * np.ones((4, 4)))
assert inverse_draws.is_singular(one * np.diag([1, 1e-17]))
assert not inverse_draws.is_singular(one * np.diag([1, 2, 3]))
"""
    families = "dense_families" if numbers == "real" else "complex_families"
    program = program.replace("testing.FAMILIES", f"testing.{families}")
    python("-c", program.replace("NUMBERS", repr(numbers)))


@pytest.mark.parametrize("mode", ["draws", "small", "dense", "inverse", "evolve"])
def test_a_result_file(mode, tmp_path):
    """Every attack writes who, where, how many, and the worst with the seed that made it."""
    path = tmp_path / "result.json"
    asked = {"draws": 25, "small": 6000, "dense": 40, "inverse": 15, "evolve": 1}[mode]
    arguments = ["-m", "verification", mode, str(asked), "--seed", "5"]
    python(*arguments, "--threads", "2", "-o", str(path))
    content = json.loads(path.read_text())
    assert {"machine", "versions", "sources", "date", "seconds", "load"} <= set(content)
    assert (content["seed"], content["failed"], content["failures"]) == (5, 0, [])
    assert content["draws"] == sum(content["counts"].values()) >= asked
    assert (
        content["method"] == ("inverse" if mode == "inverse" else "any")
        and content["device"] == "cpu"
    )
    if mode in ("dense", "inverse"):
        assert content["numbers"] == "any"
        assert {kind.rpartition(", ")[2][:5] for kind in content["counts"]} == {"float", "compl"}
    for worst in content["worst"].values():
        assert worst["seed"] == 5 and 0 <= worst["share"] <= 1 and worst["limit"] > 0
        order = "rows" if mode == "dense" else "n"
        assert {"index", "method", "dtype", order} <= set(worst)
    index = next(iter(content["worst"].values()))["index"]
    if mode != "evolve":  # which repeats all of its evaluations
        printed = python(*arguments, "--index", str(index))
        assert "nothing is wrong" in printed
