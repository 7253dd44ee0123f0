"""A search for the matrices on which method="jacobi" comes nearest to its bounds.

    python -m benchmarks stress --graded CLIMBS

A climb begins with random matrices A = B D. D is diagonal and spans up to the whole range of the
type. B is random, orthogonal, of integers, of equal entries, of low rank, or has equal lines. Rows
and columns of zeros are put in between. The climb changes the best of them: lines are scaled,
copied, exchanged or made zero, and entries change. A change that brings the measure of the climb
nearer to its bound is kept. Measures are those of all dense matrices, the sweeps, and the error of
each value relative to itself, where B is conditioned well enough.

A climb is determined by its random seed and its index: add `--index INDEX` to repeat it.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks import attack
from tests.measures import check_dense
from tests.reference import LONG, dense_singular_values, relative_singular_values
from tsvd import linalg

DTYPES = ("float64", "float32")
GOALS = ("relative", "sweeps", "residual", "orthogonality", "values")
SWEEPS = 12  # that should be enough
EVALUATIONS, BEGINNERS, KEPT = 40, 12, 4  # of a climb; those that it begins with, and keeps
LARGEST, LARGER, LARGER_SHARE = 16, 60, 0.2  # orders without the zeros
MORE = 6  # rows that are more than columns, at most
HEADROOM = 12  # bits below the largest number, so that no value overflows
GRADED = 8  # bits by which rows must be smaller than columns
USEFUL = 0.05  # of a bound on relative errors: one above it says nothing


# ---- measures ----


def condition(W):
    """Of W with columns at norm 1; infinity if it has more columns than rows."""
    if W.shape[0] < W.shape[1]:
        return np.inf
    W = W.astype(LONG)
    s = np.linalg.svd(np.float64(W / np.sqrt(np.sum(W**2, axis=0))), compute_uv=False)
    return s[0] / s[-1] if s[-1] > 0 else np.inf


def _size(W):
    """The sum of the exponents of the largest entries of the columns."""
    return int(np.sum(np.frexp(np.max(abs(W), axis=0))[1]))


def relative(A, S):
    """The largest error of a value relative to itself, and its bound; None if there is none.

    The bound is that of the columns that docs/dense.md speaks of, or of the rows.
    """
    info = np.finfo(A.dtype)
    W = A[A.any(axis=1)][:, A.any(axis=0)]
    if not W.size:
        return None
    p, q = W.shape
    if p < q or (p == q and _size(W.T) + GRADED < _size(W)):
        W = W.T
    limit = (8 + min(W.shape)) * condition(W) * float(info.eps)
    if not limit <= USEFUL:
        return None
    s_ref = np.zeros(S.size, LONG)
    s_ref[: W.shape[1]] = relative_singular_values(W, by_rows=False)
    error = abs(S.astype(LONG) - s_ref) / np.maximum(s_ref, LONG(info.tiny))
    return float(np.max(error)), limit


def measure(A, device):
    """measure -> (value, limit), and a list of what else is wrong."""
    result, info = linalg.svd(A, method="jacobi", device=device, full_output=True)
    found, wrong = check_dense(A, result, dense_singular_values(A), 0, True)
    found["sweeps"] = info.sweeps, SWEEPS
    own = relative(A, result.S)
    if own is not None:
        found["relative"] = own
    return found, wrong


# ---- matrices ----


def _gaussian(rng, m, n):
    return rng.standard_normal((m, n))


def _far_from_singular(rng, m, n):
    return _gaussian(rng, m, n) + 3 * np.eye(m, n)


def _orthonormal(rng, m, n):
    return np.linalg.qr(_gaussian(rng, m, n))[0]


def _integers(rng, m, n):
    return np.float64(rng.integers(-2, 3, (m, n)))


def _constant(rng, m, n):
    """But for a row and a column."""
    B = np.full((m, n), float(rng.integers(1, 60)))
    B[rng.integers(m)] *= rng.choice([1, -1, 1.5, 2, 3])
    B[:, rng.integers(n)] *= rng.choice([1, -1, 1.5, 2, 3])
    return B


def _low_rank(rng, m, n):
    """Of rank 1 to 3, with small integers or not."""
    k = int(rng.integers(1, 4))
    if rng.random() < 0.5:
        return _gaussian(rng, m, k) @ _gaussian(rng, k, n)
    return np.float64(rng.integers(1, 4, (m, k)) @ rng.integers(1, 4, (k, n)))


def _triangle(rng, m, n):
    return np.triu(_gaussian(rng, m, n))[rng.permutation(m)][:, rng.permutation(n)]


def _equal_columns(rng, m, n):
    return _gaussian(rng, m, n)[:, rng.integers(0, n, n)]


CORES = (
    *(_gaussian, _far_from_singular, _orthonormal, _integers, _constant, _low_rank, _triangle),
    _equal_columns,
)


def _with_zeros(rng, A):
    """Rows and columns of zeros in between."""
    for axis in (0, 1):
        if rng.random() < 0.4:
            zeros = int(rng.integers(1, 2 + A.shape[axis]))
            at = rng.integers(0, A.shape[axis] + 1, zeros)
            A = np.insert(A, at, 0, axis=axis)
    return A


def _beginner(rng, dtype):
    info = np.finfo(dtype)
    n = int(rng.integers(1, (LARGER if rng.random() < LARGER_SHARE else LARGEST) + 1))
    m = n if rng.random() < 0.6 else n + int(rng.integers(MORE + 1))
    B = CORES[int(rng.integers(len(CORES)))](rng, m, n)
    least, most = info.minexp - info.nmant, info.maxexp - HEADROOM
    span = int(rng.choice([1, 10, 60, most - least]))
    top = int(rng.integers(least + span, most + 1))
    powers = rng.integers(top - span, top, n)
    if rng.random() < 0.3:
        powers = np.sort(powers)
    A = _with_zeros(rng, np.ldexp(B * 2.0 ** rng.uniform(0, 1, n), powers))
    return _tidied(A.T if rng.random() < 0.5 else A, dtype)


def _tidied(A, dtype):
    """In its type, with no value that overflows; C or Fortran order stays."""
    most = np.ldexp(1.0, np.finfo(dtype).maxexp - HEADROOM)
    return np.clip(np.nan_to_num(A), -most, most).astype(dtype)


def _line(rng, A):
    """A row or a column, as a view."""
    return A[rng.integers(A.shape[0])] if rng.random() < 0.5 else A[:, rng.integers(A.shape[1])]


def _scale(rng, A):
    line = _line(rng, A)
    line[:] = np.ldexp(line, int(rng.normal(0, 60)))


def _shift(rng, A):
    A[:] = np.ldexp(A, int(rng.normal(0, 60)))


def _zero(rng, A):
    _line(rng, A)[:] = 0


def _copy(rng, A):
    axis = int(rng.integers(2))
    i, k = rng.integers(0, A.shape[axis], 2)
    lines = np.moveaxis(A, axis, 0)
    lines[i] = lines[k]


def _exchange(rng, A):
    axis = int(rng.integers(2))
    i, k = rng.integers(0, A.shape[axis], 2)
    lines = np.moveaxis(A, axis, 0)
    lines[[i, k]] = lines[[k, i]]


def _entries(rng, A):
    at = tuple(rng.integers(0, size, 3) for size in A.shape)
    A[at] *= 1 + rng.standard_normal(3) * 10.0 ** rng.uniform(-17, 1)


def _level(rng, A):
    line = _line(rng, A)
    line[line != 0] = line[rng.integers(line.size)]


def _sign(rng, A):
    _line(rng, A)[:] *= -1


def _sum(rng, A):
    axis = int(rng.integers(2))
    i, k = rng.integers(0, A.shape[axis], 2)
    lines = np.moveaxis(A, axis, 0)
    lines[i] = lines[i] + lines[k] * rng.choice([1, -1, 0.5, 2.0**-20])


CHANGES = (_scale, _shift, _zero, _copy, _exchange, _entries, _entries, _level, _sign, _sum)


def _child(rng, kept, dtype):
    A = kept[int(rng.integers(len(kept)))][1].astype(np.float64)
    for _ in range(int(rng.integers(1, 4))):
        CHANGES[int(rng.integers(len(CHANGES)))](rng, A)
    if rng.random() < 0.1:
        A = A.T
    if rng.random() < 0.1:
        A = np.asfortranarray(A)
    return _tidied(A, dtype)


# ---- climbs ----


@dataclass
class GradedClimbs:
    """The attack by climbs."""

    seed: int
    device: str

    def describe(self, index):
        goal, dtype = GOALS[index // 2 % len(GOALS)], DTYPES[index % 2]
        return {"method": "jacobi", "dtype": dtype, "goal": goal, "count": EVALUATIONS}

    def __call__(self, index):
        rng = np.random.default_rng([self.seed, index])
        made = self.describe(index)
        worst, failures, kept = {}, [], []
        for tried in range(EVALUATIONS):
            with np.errstate(all="ignore"):  # a change may overflow
                dtype = made["dtype"]
                A = _beginner(rng, dtype) if tried < BEGINNERS else _child(rng, kept, dtype)
            try:
                found, wrong = measure(A, self.device)
            except Exception as error:  # any exception is a failure of the matrix
                found, wrong = {}, [f"{type(error).__name__}: {error}"]
            shares = {name: value / limit for name, (value, limit) in found.items()}
            wrong += [
                f"{name} is {share:.4g} of its limit"
                for name, share in shares.items()
                if not share <= 1
            ]
            where = {"matrix": A.tolist(), "n": f"{A.shape[0]}x{A.shape[1]}"}
            for name, (value, limit) in found.items():
                if name not in worst or not shares[name] <= worst[name][0] / worst[name][1]:
                    worst[name] = value, limit, where
            if wrong:
                failures.append(f"{'; '.join(wrong)}: {A.dtype} {A.tolist()}")
            kept.append((shares.get(made["goal"], -1.0), A))
            kept = sorted(kept, key=lambda entry: -entry[0])[:KEPT]
        return made, worst, failures


def again(seed, index, device):
    """Prints what a climb finds. The exit status is 1 if something is wrong."""
    return attack.show(GradedClimbs(seed, device)(index))


def run(path, workers, device, climbs, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any matrix."""
    record = attack.Record(
        path, workers, attack="graded", device=device, method="jacobi", seed=seed
    )
    work = GradedClimbs(seed, device)
    return attack.run(record, work, seed, range(climbs), climbs * EVALUATIONS, seconds)
