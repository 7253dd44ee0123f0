"""An evolutionary search for the matrices on which a method comes nearest to its bounds.

    python -m verification evolve EVALUATIONS [--target TARGET] [--numbers NUMBERS]

This file has the climbs, and the search among bidiagonal matrices. verification/evolve_dense.py has
those among dense ones, real and complex: of tsvd.linalg.svd, of its method "jacobi", and of the
inverse.

A climb goes for one measure in one type. It begins with matrices of the families and with random
ones. It changes the best of them: entries, signs, scales, duplicates, splits, the order, eps. A
change that brings the measure nearer to its bound is kept. Climbs that get stuck begin again.

The random seed, the index of a climb and `--numbers` determine it, and it has a fixed number of
evaluations. So climbs can be shared out to processes, and each can be repeated: add `--index
INDEX`. Result files without "numbers" have those of `--numbers real`.
"""

import multiprocessing
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

import tsvd
from testing import families, measures, reference
from testing.measures import BOUNDS
from verification import attack, evolve_dense, extended, real_and_complex, stress
from verification.search import Search

GOALS = ("residual", "orthogonality", "values", "max error, eps", "orthogonality, eps")
DTYPES = ("float64", "float32")
SMALLEST, LARGEST = (
    2,
    70,
)  # orders; divide and conquer has one leaf up to 32, and three merges at 70

EVALUATIONS = 2000  # of a climb
BEGINNERS, KEPT = 12, 8  # matrices that a climb begins with, and that it keeps
PATIENCE = 150  # evaluations without success after which it begins again
METHODS = ("dc", "twisted", "qr", "givens")
TARGETS = ("bidiagonal", "dense", "jacobi", "inverse")


@dataclass(frozen=True)
class Matrix:
    """A matrix, and the options that change with it."""

    d: np.ndarray
    e: np.ndarray
    lower: bool
    relative_eps: float  # eps as a share of the largest entry; for the goals with eps

    @property
    def eps(self):
        return self.relative_eps * float(max(np.max(abs(self.d)), np.max(abs(self.e), initial=0)))


# ---- measures ----


def measure(matrix, goal, method, device):
    """(value, limit) of the measure `goal`; None if "givens" does not converge."""
    d, e, n, lower = matrix.d, matrix.e, matrix.d.size, matrix.lower
    eps = matrix.eps if goal.endswith("eps") else 0.0
    options = {"lower": lower, "method": method, "device": device, "eps": eps or None}
    if method == "givens":
        options["max_sweeps"] = stress.SWEEPS
    try:
        L, s, R = tsvd.svd(d, e, **options)
    except np.linalg.LinAlgError:
        if method == "givens":
            return None
        raise
    if goal.startswith("orthogonality"):
        return measures.orthogonality(L, R), BOUNDS["orthogonality"](n)
    if goal == "residual":
        return measures.residual(d, e, L, s, R, lower), BOUNDS["residual"](n)
    if goal == "values":
        return measures.value_error(s, reference.singular_values(d, e)), BOUNDS["values auto"](n)
    return measures.max_abs_error(d, e, L, s, R, lower), float(extended.limit_with_eps(d, e, eps))


# ---- matrices ----


def _beginner(rng, dtype):
    """A matrix of a family, or one of random size and structure."""
    n = int(rng.integers(SMALLEST, LARGEST + 1))
    if rng.random() < 0.6:
        name, seed = str(rng.choice(sorted(families.FAMILIES))), int(rng.integers(2**32))
        d, e = families.make(name, n, np.dtype(dtype), seed)
    else:
        widths = rng.choice([0, 1e-12, 1e-9, 1e-6, 1e-3, 1, 8], 4)
        d = np.exp(widths[0] * rng.standard_normal(n)) * (1 + widths[1] * rng.standard_normal(n))
        e = widths[2] * rng.standard_normal(n - 1) * np.exp(widths[3] * rng.standard_normal(n - 1))
    return _tidied(Matrix(d, e, bool(rng.random() < 0.2), 10.0 ** rng.uniform(-9, -1)), dtype)


def _tidied(matrix, dtype):
    """In its type, with a largest entry in [1/2, 1)."""
    largest = float(max(np.max(abs(matrix.d)), np.max(abs(matrix.e), initial=0)))
    shift = -int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
    parts = (np.ldexp(np.nan_to_num(x.astype(np.float64)), shift) for x in (matrix.d, matrix.e))
    d, e = (np.ascontiguousarray(x, dtype) for x in parts)
    return replace(matrix, d=d, e=e)


def _run(rng, size):
    """A run of indices below `size`."""
    first, last = sorted(int(i) for i in rng.integers(0, size, 2))
    return slice(first, last + 1)


def _nudge_entries(rng, x):
    """A few entries change by a factor: by some ulps, or by up to a power of ten."""
    at = rng.integers(0, x.size, int(rng.integers(1, 4)))
    x[at] *= 1 + rng.standard_normal(at.size) * 10.0 ** rng.uniform(-17, 1)


def _nudge_all(rng, x):
    x *= 1 + rng.standard_normal(x.size) * 10.0 ** rng.uniform(-17, -1)


def _scale_run(rng, x):
    x[_run(rng, x.size)] *= 10.0 ** rng.uniform(-8, 8) if rng.random() < 0.5 else 2.0


def _grade(rng, x):
    x *= 10.0 ** np.linspace(0, rng.uniform(-12, 12), x.size)


def _ladder(rng, x):
    run = _run(rng, x.size)
    x[run] = x[run.start] * (1 + 10.0 ** rng.uniform(-17, 0) * np.arange(run.stop - run.start))


def _level(rng, x):
    run = _run(rng, x.size)
    x[run] = x[run.start]


def _duplicate(rng, x):
    """A run of entries is copied to another place."""
    run = _run(rng, x.size)
    length = run.stop - run.start
    to = int(rng.integers(0, x.size - length + 1))
    x[to : to + length] = x[run].copy()


def _exchange(rng, x):
    i, k = rng.integers(0, x.size, 2)
    x[i], x[k] = x[k], x[i]


def _signs(rng, x):
    x[_run(rng, x.size)] *= -1


def _zero(rng, x):
    """Splits, or makes singular."""
    x[int(rng.integers(0, x.size))] = 0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-17, -4)


CHANGES = (
    *(_nudge_entries, _nudge_entries, _nudge_all, _scale_run, _grade, _ladder, _level),
    *(_duplicate, _exchange, _signs, _zero),
)


def _resized(rng, d, e):
    """A row and a column more or less; or a copy of some."""
    n, at = d.size, int(rng.integers(0, d.size))
    if rng.random() < 0.5 and n > SMALLEST:
        return np.delete(d, at), np.delete(e, min(at, n - 2))
    if n < LARGEST:
        return np.insert(d, at, d[at]), np.insert(e, min(at, n - 2), e[min(at, n - 2)])
    return d, e


def _crossed(rng, one, other):
    """The head of one matrix and the tail of another."""
    at = int(rng.integers(1, min(one.d.size, other.d.size)))
    d = np.concatenate([one.d[:at], other.d[at:]])
    return d, np.concatenate([one.e[: at - 1], other.e[at - 1 :]])


def _child(rng, kept, dtype):
    _, parent = kept[int(rng.integers(len(kept)))]
    d, e = parent.d.astype(np.float64), parent.e.astype(np.float64)
    if rng.random() < 0.15:
        d, e = _crossed(rng, parent, kept[int(rng.integers(len(kept)))][1])
        d, e = d.astype(np.float64), e.astype(np.float64)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.1:
            d, e = _resized(rng, d, e)
        CHANGES[int(rng.integers(len(CHANGES)))](rng, d if rng.random() < 0.5 else e)
    lower = parent.lower != (rng.random() < 0.05)
    change = 10.0 ** rng.normal(0, 1) if rng.random() < 0.3 else 1.0
    child = Matrix(d, e, lower, float(np.clip(parent.relative_eps * change, 1e-17, 1)))
    return _tidied(child, dtype)


def _record(matrix):
    """All that is needed to make a matrix again, for a JSON file."""
    return {
        "n": matrix.d.size,
        "dtype": matrix.d.dtype.name,
        "lower": matrix.lower,
        "eps": matrix.eps,
        "d": matrix.d.tolist(),
        "e": matrix.e.tolist(),
    }


BIDIAGONAL = Search(GOALS, DTYPES, METHODS, measure, _beginner, _child, _record)


# ---- climbs ----


def search_of(target):
    return BIDIAGONAL if target == "bidiagonal" else evolve_dense.SEARCHES[target]


def kind(index, method, target="bidiagonal", numbers="real"):
    """Goal, dtype and method of a climb.

    Each round of climbs has all pairs of a goal and a dtype. From round to round all methods of
    "any" take their turn at each pair. Of "any" numbers even rounds are real, odd ones complex.
    """
    search = search_of(target)
    dtypes, methods = search.dtypes, search.methods
    turn, pair = divmod(index, len(search.goals) * len(dtypes))
    if method == "any":
        method = methods[(turn + pair) % len(methods)]
    dtype = real_and_complex.with_parts(
        dtypes[pair % len(dtypes)], real_and_complex.of_index(numbers, turn)
    )
    return search.goals[pair // len(dtypes)], dtype, method


def climb(
    seed, index, method, device, evaluations=EVALUATIONS, target="bidiagonal", numbers="real"
):
    """The worst of a climb: a record with the matrix, and with what went wrong if it broke."""
    rng = np.random.default_rng([seed, index])
    search, (goal, dtype, method) = search_of(target), kind(index, method, target, numbers)
    found = {"measure": goal, "method": method, "seed": seed, "index": index}
    found |= {"evaluations": evaluations, "share": -1.0}
    kept, tried, best = [], 0, 0  # kept: (share, matrix), the worst first; tried and best: since
    for _ in range(evaluations):  # the climb began (again), evaluations and the last success
        if tried > BEGINNERS and tried - best > PATIENCE:
            kept, tried, best = [], 0, 0
        with np.errstate(all="ignore"):  # a change may overflow
            matrix = (
                search.beginner(rng, dtype) if tried < BEGINNERS else search.child(rng, kept, dtype)
            )
        tried += 1
        try:
            value, limit = search.measure(matrix, goal, method, device) or (0.0, 1.0)
        except Exception as error:  # any exception is a failure of the search
            wrong = f"{type(error).__name__}: {error}"
            return found | search.record(matrix) | {"share": float("inf"), "wrong": wrong}
        share = value / limit if value == value else float("inf")
        if not kept or share > kept[0][0]:
            best = tried
        kept = sorted([*kept, (share, matrix)], key=lambda entry: -entry[0])[:KEPT]
        if share > found["share"]:
            found |= {"value": value, "limit": limit, "share": share} | search.record(matrix)
    return found


def again(seed, index, method, device, target, numbers):
    """Repeats a climb, and prints its worst.  The exit status is 1 if a bound is broken."""
    found = climb(seed, index, method, device, target=target, numbers=numbers)
    print(text(found))
    for name in ("lower", "eps", "d", "e", "A", "imaginary"):
        if name in found:
            print(f"{name} = {found[name]!r}")
    return 1 if found["share"] > 1 else 0


def text(found):
    order = f"n = {found['n']}" if "n" in found else f"{found['rows']} x {found['columns']}"
    where = f"index {found['index']}: {found['method']}, {order}, {found['dtype']}"
    if "wrong" in found:
        return f"{found['measure']:<20}{found['wrong']}   ({where})"
    size = f"{found['value']:>12.4g}, at most {found['limit']:.4g}"
    return f"{found['measure']:<20}{size}   {found['share']:6.3g} of it   ({where})"


def run(
    path,
    workers,
    device,
    method,
    evaluations,
    seed,
    seconds,
    target="bidiagonal",
    numbers="real",
):
    """Writes `path`. The exit status is 0 if no climb broke a bound.

    evaluations: in all; rounded up to whole climbs. seconds: no climb begins later; the result file
    says how many evaluations were made.
    """
    record = attack.Record(
        path,
        workers,
        attack="evolution",
        target=target,
        device=device,
        method=method,
        numbers=numbers,
        seed=seed,
    )
    climbs = -(-evaluations // EVALUATIONS)
    worst, broken, counts, made = {}, [], {}, 0
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(workers, context) as pool:
        waiting = iter(range(climbs))
        busy = set()
        while True:
            while len(busy) < workers and record.seconds < seconds:
                index = next(waiting, None)
                if index is None:
                    break
                work = seed, index, method, device, EVALUATIONS, target, numbers
                busy.add(pool.submit(climb, *work))
            if not busy:
                break
            done, busy = wait(busy, return_when=FIRST_COMPLETED)
            for found in (future.result() for future in done):
                made += 1
                kind = f"{found['method']}, {found['dtype']}"
                counts[kind] = counts.get(kind, 0) + found["evaluations"]
                key = f"{found['measure']}, {found['dtype']}"
                if found["share"] > 1:
                    broken.append(found)
                if found["share"] > worst.get(key, {"share": -1})["share"]:
                    worst[key] = found
                    print(text(found), flush=True)
    print(f"\n{made} climbs of {climbs} in {record.seconds:.0f} s, {len(broken)} broke a bound")
    for _, found in sorted(worst.items()):
        print(text(found))
    record.write(
        climbs=made,
        asked=evaluations,
        draws=made * EVALUATIONS,
        failed=len(broken),
        counts=counts,
        failures=broken,
        worst=worst,
    )
    return 1 if broken or not made else 0
