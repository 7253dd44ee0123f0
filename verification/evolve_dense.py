"""The evolutionary search among dense matrices: see verification/evolve.py.

Four targets: "dense" goes for the bounds of tsvd.linalg.svd, most of it in float32 or complex64,
whose errors a reference in double precision measures in no time. "stages" does the same with
larger matrices, which are reduced in two stages. "jacobi" goes for the relative errors of tiny
values by method="jacobi": columns or rows are up to the whole range of numbers apart, and some are
zero. "inverse" goes for the residuals of tsvd.linalg.inv, where pivots grow.
"""

import functools

import numpy as np

from testing import measures
from testing.measures import BOUNDS, INVERSE_BOUNDS
from testing.parts import double, ldexp, parts, sizes
from testing.reference import dense_singular_values, relative_singular_values
from tsvd import linalg
from verification import inverse_draws
from verification.real_and_complex import family_names, make, of_type
from verification.search import Search

# Orders. Pivots grow like a power of the order.
SMALLEST = {"dense": 2, "stages": 30, "jacobi": 2, "inverse": 24}
LARGEST = {"dense": 64, "stages": 200, "jacobi": 20, "inverse": 100}
SQUARE_SHARE, FAMILY_SHARE = 0.6, 0.5
PART_SHARE = 0.2  # of changes of complex matrices: of their real or their imaginary part alone
SWEEPS = 14  # of Jacobi: more than it should need
RELATIVE_LIMIT = 1e-3  # where the bound is above this part of a value it says nothing


# ---- measures ----


def _measure_svd(A, goal, method, device, **options):
    """Residual, orthogonality, values with vectors or without, and Jacobi's sweeps."""
    alone = goal.endswith("alone")
    options |= {"method": method, "device": device, "full_output": True}
    result, info = linalg.svd(A, False, compute_uv=not alone, **options)
    if goal == "sweeps":
        return info.sweeps, SWEEPS
    U, S, Vh = (None, result, None) if alone else result
    if goal == "orthogonality":
        return measures.orthogonality(U, Vh), BOUNDS["orthogonality"](max(A.shape))
    if goal == "residual":
        return measures.dense_residual(A, U, S, Vh), BOUNDS["residual"](max(A.shape))
    return _relative(A, S, device) if goal.startswith("relative") else _values(A, S)


def _values(A, S):
    if np.finfo(A.dtype).dtype == np.float32:  # LAPACK's errors in double are 2^-29 of ours
        s_ref = np.linalg.svd(double(A), compute_uv=False)
    else:
        s_ref = dense_singular_values(A)
    return measures.dense_value_error(S, s_ref, s_ref[0]), measures.dense_value_bound(*A.shape)


def _relative(A, S, device):
    ways = measures.jacobi_conditions(A, device)
    by_rows, condition = max(ways, key=lambda way: way[1])
    limit = measures.jacobi_value_bound(*A.shape, condition)
    if not limit * float(np.finfo(A.dtype).eps) < RELATIVE_LIMIT:
        return None
    return measures.value_error(S, relative_singular_values(A, by_rows)), limit


def _measure_inverse(A, goal, method, device):
    refine = goal == "residual, refined"
    X, said = inverse_draws.invert(A, refine, device)
    if said is not None:
        if not inverse_draws.is_singular(A):
            raise AssertionError(f"{said}, but the matrix is well-conditioned")
        return None
    if not np.isfinite(X).all():
        raise AssertionError("an entry is NaN or infinite")
    return measures.inverse_residual(A, X), INVERSE_BOUNDS[refine]


# ---- beginners ----


def _shape(rng, target):
    m, n = (int(x) for x in rng.integers(SMALLEST[target], LARGEST[target] + 1, 2))
    return (m, m) if target == "inverse" or rng.random() < SQUARE_SHARE else (m, n)


def _phases(rng, shape):
    """Random ones, or few different ones."""
    angles = rng.uniform(0, 2 * np.pi, shape)
    if rng.random() < 0.5:
        angles = rng.choice(rng.uniform(0, 2 * np.pi, int(rng.integers(1, 4))), shape)
    return np.exp(1j * angles)


def _beginner(target, rng, dtype):
    m, n = _shape(rng, target)
    field = of_type(dtype)
    if rng.random() < FAMILY_SHARE:
        name, seed = str(rng.choice(family_names(field))), int(rng.integers(2**32))
        A = double(make(name, m, n, dtype, seed))
    elif target == "jacobi":
        A = rng.standard_normal((m, n)) + rng.choice([0, 1, 3]) * np.eye(m, n)
    else:  # few different numbers, so that errors of sums add up
        numbers = rng.uniform(0.5, 2, int(rng.integers(1, 4))) * rng.choice([-1.0, 1.0])
        A = np.outer(rng.choice(numbers, m), rng.choice(numbers, n))
        A *= 1 + rng.choice([0, 1e-7, 1e-4, 1e-2]) * rng.standard_normal((m, n))
    if of_type(A.dtype) != field:
        A = A * _phases(rng, (m, 1)) * _phases(rng, n)
    if target == "jacobi":
        _spread(rng, A, dtype)
        if rng.random() < 0.5:
            _zero_line(rng, A, dtype)
    return _tidied(target, A, dtype)


def _tidied(target, A, dtype):
    """In its type. All lie far below the largest number; but those of "jacobi" keep their scale."""
    info = np.finfo(dtype)
    A = np.nan_to_num(A, posinf=0, neginf=0)
    largest = float(np.max(sizes(A)))
    power = int(np.frexp(largest)[1])
    if target != "jacobi" or power > info.maxexp - 8:
        A = ldexp(A, (info.maxexp - 8 if target == "jacobi" else 0) - power)
    return np.ascontiguousarray(A, dtype)


# ---- changes, of A in double precision, in place ----


def _line(rng, A):
    """A row or a column."""
    return A[int(rng.integers(len(A)))] if rng.random() < 0.5 else A[:, rng.integers(A.shape[1])]


def _nudge_entries(rng, A, dtype):
    for _ in range(int(rng.integers(1, 4))):
        i, k = (int(rng.integers(size)) for size in A.shape)
        A[i, k] *= 1 + rng.standard_normal() * 10.0 ** rng.uniform(-9, 1)


def _nudge_all(rng, A, dtype):
    A *= 1 + rng.standard_normal(A.shape) * 10.0 ** rng.uniform(-9, -1)


def _nudge_lines(rng, A, dtype):
    """Rows, or columns, keep their directions."""
    A *= 1 + rng.standard_normal((len(A), 1)) * 10.0 ** rng.uniform(-9, 0)
    A *= 1 + rng.standard_normal(A.shape[1]) * 10.0 ** rng.uniform(-9, 0)


def _scale_line(rng, A, dtype):
    line = _line(rng, A)
    line *= 10.0 ** rng.uniform(-8, 8) if rng.random() < 0.3 else rng.choice([-2, -1, 0.5, 1.5, 3])


def _copy_line(rng, A, dtype):
    B = A if rng.random() < 0.5 else A.T
    i, k = rng.integers(len(B), size=2)
    B[i] = B[k]


def _exchange_lines(rng, A, dtype):
    B = A if rng.random() < 0.5 else A.T
    i, k = rng.integers(len(B), size=2)
    B[[i, k]] = B[[k, i]]


def _zero_line(rng, A, dtype):
    _line(rng, A)[:] = 0


def _level_block(rng, A, dtype):
    """A block of equal entries."""
    (a, b), (c, d) = (sorted(int(x) for x in rng.integers(0, size + 1, 2)) for size in A.shape)
    if a < b and c < d:
        A[a:b, c:d] = A[a, c]


def _shorten(rng, A, dtype):
    """Numbers with few digits."""
    bits = int(rng.integers(1, 24))
    for part in parts(A):
        mantissa, exponent = np.frexp(part)
        part[:] = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)


def _add_rank_one(rng, A, dtype):
    left, right = (rng.standard_normal(size) for size in A.shape)
    if np.iscomplexobj(A):
        left, right = (x * _phases(rng, x.size) for x in (left, right))
    A += np.outer(left, right) * np.max(abs(A)) * 10.0 ** rng.uniform(-9, 0)


def _spread(rng, A, dtype):
    """Lines up to the whole range of numbers apart."""
    span = rng.uniform(0, {64: 1900, 32: 240}[np.finfo(dtype).bits])
    B = A if rng.random() < 0.5 else A.T
    B *= np.exp2(-np.round(rng.uniform(0, span, len(B))))[:, None]


def _move_line(rng, A, dtype):
    """A line gets another size."""
    span = {64: 900, 32: 110}[np.finfo(dtype).bits]
    _line(rng, A)[:] *= np.exp2(np.round(rng.uniform(-1, 1) ** 3 * span))


def _turn_entries(rng, A, dtype):
    A *= np.exp(1j * rng.standard_normal(A.shape) * 10.0 ** rng.uniform(-9, 1))


def _turn_lines(rng, A, dtype):
    B = A if rng.random() < 0.5 else A.T
    B *= _phases(rng, (len(B), 1))


def _turn_line(rng, A, dtype):
    _line(rng, A)[:] *= rng.choice([1j, -1j, _phases(rng, None)])


CHANGES = {
    "dense": (
        *(_nudge_entries, _nudge_all, _nudge_lines, _nudge_lines, _scale_line, _copy_line),
        *(_exchange_lines, _zero_line, _level_block, _shorten, _add_rank_one),
    ),
    "jacobi": (
        *(_nudge_entries, _nudge_all, _nudge_lines, _move_line, _move_line, _move_line),
        *(_exchange_lines, _zero_line, _shorten, _add_rank_one, _spread),
    ),
}
CHANGES["stages"] = CHANGES["inverse"] = CHANGES["dense"]
TURNS = (_turn_entries, _turn_lines, _turn_line)  # further ones, of complex matrices


def _resized(target, rng, A):
    """A line more or less; of both kinds where the matrix must be square."""
    more = rng.random() < 0.5
    for axis in (0, 1) if target == "inverse" else (int(rng.integers(2)),):
        at = int(rng.integers(A.shape[axis]))
        if more and A.shape[axis] < LARGEST[target]:
            A = np.insert(A, at, A.take(at, axis), axis)
        elif not more and A.shape[axis] > SMALLEST[target]:
            A = np.delete(A, at, axis)
    return np.ascontiguousarray(A)


def _child(target, rng, kept, dtype):
    parents = [double(kept[int(rng.integers(len(kept)))][1]) for _ in range(2)]
    A = parents[0]
    if rng.random() < 0.15 and parents[1].shape == A.shape:
        i, k = (int(rng.integers(size)) for size in A.shape)
        A[i:, k:] = parents[1][i:, k:]
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.1:
            A = _resized(target, rng, A)
        changed, changes = A, CHANGES[target]
        if np.iscomplexobj(A):
            if rng.random() < PART_SHARE:
                changed = parts(A)[int(rng.integers(2))]
            else:
                changes = *changes, *TURNS
        changes[int(rng.integers(len(changes)))](rng, changed, dtype)
    if rng.random() < 0.05:
        A = np.ascontiguousarray(A.T)
    return _tidied(target, A, dtype)


def _record(A):
    return {
        "rows": A.shape[0],
        "columns": A.shape[1],
        "dtype": A.dtype.name,
    } | {name: part.tolist() for name, part in zip(("A", "imaginary"), parts(A), strict=False)}


def _search(target, goals, dtypes, methods, measure):
    made = (functools.partial(function, target) for function in (_beginner, _child))
    return Search(goals, dtypes, methods, measure, *made, _record)


# The types of the parts. Twice as many climbs in single precision.
DENSE = (
    ("residual", "orthogonality", "values", "values alone"),
    ("float32", "float32", "float64"),
    ("auto", "dc", "qr", "twisted", "givens"),
)
SEARCHES = {
    "dense": _search("dense", *DENSE, _measure_svd),
    "stages": _search("stages", *DENSE, functools.partial(_measure_svd, tuning={"stages": 2})),
    "jacobi": _search(
        "jacobi",
        ("relative values", "relative values alone", "sweeps", "residual", "orthogonality"),
        ("float64", "float32"),
        ("jacobi",),
        _measure_svd,
    ),
    "inverse": _search(
        "inverse",
        ("residual", "residual, refined"),
        ("float32", "float64"),
        ("inverse",),
        _measure_inverse,
    ),
}
