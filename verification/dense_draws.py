"""Random draws of dense matrices for tsvd.linalg, each checked in every measure.

    python -m verification dense DRAWS [--numbers NUMBERS]

A draw is determined by its random seed, its index and `--numbers`, as long as no family is added:
add `--index INDEX` to repeat it. Result files without "numbers" have those of `--numbers real`.
"""

from dataclasses import dataclass

import numpy as np

from testing import measures
from testing.dense_layouts import LAYOUTS
from testing.measures import check_dense
from testing.parts import double, ldexp, sizes
from testing.reference import dense_singular_values, relative_singular_values
from tsvd import linalg
from verification import attack, real_and_complex
from verification.real_and_complex import family_names, make, with_parts

LARGEST = 200
STAGED = 130, 1500  # the smallest order and the largest where the stages of the reduction are given
EXACT = 256  # up to this order the reference of double precision is in long double
# Orders around those of warps, blocks of threads and panels.
SPECIAL = (*range(1, 6), *range(31, 35), *range(63, 67), *range(127, 131))
SPECIAL_SHARE = 0.4
EQUAL_SHARE = 0.3  # of matrices as many rows as columns
SLIM_SHARE, LONGEST = 0.1, 4000  # of matrices up to so long, with at most SLIMMEST columns or rows
SLIMMEST = 12
BATCH_SHARE, LARGEST_BATCH, ENTRIES_IN_BATCH = 0.2, 40, 3000
PART_SHARE, INTERVAL_SHARE = 0.2, 0.3  # parts of the values; those given by an interval
VALUES_SHARE, FULL_SHARE = 0.2, 0.4  # without vectors; with all columns and rows
FORM_SHARE = 0.15  # in two steps: bidiagonal form, then its SVD
REPEATED_SHARE = 0.05  # computed twice, with the same bits
EPS_SHARE = 0.1  # of those of which all values are computed
SHIFTED_SHARE, EDGE_SHARE = 0.5, 0.1  # times a power of two; those next to the largest number
# Methods for the bidiagonal matrix.
METHODS = {"auto": 0.5, "dc": 0.15, "twisted": 0.1, "qr": 0.15, "givens": 0.1}
WHOLE = ("qr", "givens")  # methods that compute the vectors of all values only
DIRECT = "jacobi"  # the one that makes no bidiagonal matrix; --method asks for it
RELATIVE_ORDER, RELATIVE_LIMIT = (
    24,
    1e-3,
)  # its relative errors are measured up to this order, where
# their bound is below this part of the values


@dataclass
class Draw:
    """All that determines a matrix, or a batch, and the call.

    others: how many more matrices of the same shape make it a batch; matrix_seed determines their
    families and seeds. None: there is no batch. part: the first and the last index of the values to
    compute; None: all. by_interval: the part is given by bounds between values. eps: as a share of
    the largest entry; None: full accuracy.
    """

    method: str
    family: str
    rows: int
    columns: int
    dtype: str
    matrix_seed: int
    exponent: int  # the matrix is multiplied by 2^exponent
    layout: str
    vectors: bool
    full: bool
    others: int | None
    part: tuple[int, int] | None
    by_interval: bool
    two_steps: bool
    repeated: bool
    threads: int
    eps: float | None = None
    stages: int | None = None


def draw(seed, index, method, numbers, stages=None):
    """The draw and its matrix or matrices, A (..., m, n) in C order."""
    rng = np.random.default_rng([seed, index])
    numbers = real_and_complex.of_index(numbers, index)
    made = _drawn(rng, method, numbers, stages)
    families, seeds = [made.family], [made.matrix_seed]
    if made.others is not None:
        more = np.random.default_rng(made.matrix_seed)
        families += [str(x) for x in more.choice(family_names(numbers), made.others)]
        seeds += [int(x) for x in more.integers(2**32, size=made.others)]
    dtype = np.dtype(made.dtype)
    A = np.stack(
        [
            make(family, made.rows, made.columns, dtype, one)
            for family, one in zip(families, seeds, strict=True)
        ]
    )
    largest = float(np.max(sizes(A)))
    if largest and rng.random() < SHIFTED_SHARE:
        made.exponent = exponent_of(largest, np.finfo(dtype), rng)
        A = ldexp(A, made.exponent)
    if made.part is None and made.method != DIRECT and rng.random() < EPS_SHARE:
        made.eps = float(10.0 ** rng.uniform(-14, -1) * np.max(sizes(A))) or None
    return made, A if made.others is not None else A[0]


def _drawn(rng, method, numbers, stages):
    m, n = _shape(rng) if stages is None else _large_shape(rng)
    if method == "any":
        method = str(rng.choice([*METHODS], p=[*METHODS.values()]))
    vectors = bool(rng.random() >= VALUES_SHARE)
    if not vectors and method == "dc":  # it has no way of its own to values alone
        method = "bisect"
    part, by_interval = None, False
    if rng.random() < PART_SHARE and not (vectors and method in WHOLE):
        low, high = sorted(int(i) for i in rng.integers(0, min(m, n), 2))
        part = low, min(high, low + int(rng.choice([0, 3, n])))
        by_interval = bool(rng.random() < INTERVAL_SHARE) and method != DIRECT
    others = None
    most = min(LARGEST_BATCH, ENTRIES_IN_BATCH // (m * n))
    if most and not by_interval and rng.random() < BATCH_SHARE:
        others = int(np.exp(rng.uniform(0, np.log(most))))
    return Draw(
        method=method,
        family=str(rng.choice(family_names(numbers))),
        rows=m,
        columns=n,
        dtype=with_parts(rng.choice(["float64", "float32"]), numbers),
        matrix_seed=int(rng.integers(2**32)),
        exponent=0,
        layout=str(rng.choice([*LAYOUTS])),
        vectors=vectors,
        full=bool(vectors and part is None and rng.random() < FULL_SHARE),
        others=others,
        part=part,
        by_interval=by_interval,
        two_steps=bool(rng.random() < FORM_SHARE) and method != DIRECT,
        repeated=bool(rng.random() < REPEATED_SHARE),
        threads=int(rng.choice([1, 1, 2, 3])),
        stages=stages,
    )


def _shape(rng):
    m, n = (
        int(rng.choice(SPECIAL))
        if rng.random() < SPECIAL_SHARE
        else int(np.exp(rng.uniform(0, np.log(LARGEST + 1))))
        for _ in range(2)
    )
    if rng.random() < EQUAL_SHARE:
        n = m
    if rng.random() < SLIM_SHARE:
        m, n = int(np.exp(rng.uniform(0, np.log(LONGEST)))), 1 + n % SLIMMEST
        m, n = (m, n) if rng.random() < 0.5 else (n, m)
    return m, n


def _large_shape(rng):
    m, n = (int(np.exp(x)) for x in rng.uniform(*np.log(STAGED), 2))
    return (n, n) if rng.random() < 2 * EQUAL_SHARE else (m, n)


def exponent_of(largest, info, rng):
    """A random k for which 2^k largest is next to the largest number, or from the denormals up to
    2^-12 of it, where no value is infinite.
    """
    now = int(np.frexp(largest)[1])
    if rng.random() < EDGE_SHARE:
        return info.maxexp - now
    low, high = info.minexp - info.nmant + 3 - now, info.maxexp - 12 - now
    if rng.random() < 0.5:
        return int(np.clip(rng.integers(-40, 41), min(low, high), max(low, high)))
    return int(rng.integers(min(low, high), max(low, high) + 1))


def check(made, A, device):
    """measure -> (value, limit) of the worst matrix of a call, and a list of other failures."""
    given = LAYOUTS[made.layout](A)
    matrices = A.reshape(-1, made.rows, made.columns)
    references = [_reference(one) for one in matrices]
    options, first, count = _options(made, references[0])
    result = _call(made, given, options, device)
    if any(x.shape[: A.ndim - 2] != A.shape[:-2] for x in result):
        return {}, [f"shapes {[x.shape for x in result]} of a batch {A.shape[:-2]}"]
    wrong = []
    if not np.array_equal(given, A):
        wrong.append("the matrix was changed")
    if made.repeated:
        again = _call(made, given, options, device)
        if any(x.tobytes() != y.tobytes() for x, y in zip(result, again, strict=True)):
            wrong.append("other bits at the second time")
    found = {}
    parts = [x.reshape(len(matrices), *x.shape[A.ndim - 2 :]) for x in result]
    for i, (one, s_ref) in enumerate(zip(matrices, references, strict=True)):
        own = tuple(x[i] for x in parts)
        if own[len(own) // 2].size != count:
            return {}, [f"{own[len(own) // 2].size} values, not {count}"]
        measured, said = check_dense(one, own, s_ref, first, made.full)
        if min(one.shape) > EXACT and any(not value <= limit for value, limit in measured.values()):
            s_ref = dense_singular_values(one)
            measured, said = check_dense(one, own, s_ref, first, made.full)
        if made.eps:
            measured = _with_eps(made, one, own, s_ref, measured)
        elif made.method == DIRECT:
            measured |= _relative(one, own[len(own) // 2], first, device)
        wrong += [f"matrix {i}: {what}" for what in said]
        for measure, (value, limit) in measured.items():
            if measure not in found or not value / limit <= found[measure][0] / found[measure][1]:
                found[measure] = value, limit
    for measure, (value, limit) in found.items():
        if not value <= limit:
            wrong.append(f"{measure} is {value:.4g}, over {limit:.4g}")
    return found, wrong


def _reference(A):
    """The values of one matrix. LAPACK's in double precision are mostly right to two or three units
    of the last place of the largest, where the bounds of large matrices are far above. Of equal
    entries they may be off by hundreds: what is over a bound is measured again.
    """
    if min(A.shape) <= EXACT:
        return dense_singular_values(A)
    A, exponent = double(A), int(np.frexp(float(np.max(sizes(A))))[1])
    values = np.linalg.svd(ldexp(A, -exponent), compute_uv=False)
    return np.ldexp(np.longdouble(values), exponent)


def _with_eps(made, A, result, s_ref, measured):
    """B is perturbed in entries by 4 eps at most: A, and so its values, in the norm by 4 p eps."""
    info, p = np.finfo(made.dtype), min(A.shape)
    largest = max(s_ref[0], np.longdouble(info.tiny))  # a double may not hold it
    changed = float(4 * p * made.eps / (np.longdouble(info.eps) * largest))
    found = {key: measured[key] for key in ("orthogonality",) if key in measured}
    if "values" in measured:
        value, limit = measured["values"]
        found["values, eps"] = value, limit + changed
    if "residual" in measured and largest < info.max:
        value, limit = measured["residual"]
        norm = float(max(np.sqrt(np.sum((s_ref / largest) ** 2)), 1))
        found["residual, eps"] = value, limit + changed / ((max(A.shape) + 8) * norm)
    return found


def _relative(A, S, first, device):
    """Of tiny values too, where the bound says something."""
    m, n = A.shape
    if min(m, n) > RELATIVE_ORDER:
        return {}
    ways = measures.jacobi_conditions(A, device)
    by_rows, condition = max(ways, key=lambda way: way[1])
    limit = measures.jacobi_value_bound(m, n, condition)
    if not limit * float(np.finfo(A.dtype).eps) < RELATIVE_LIMIT:
        return {}
    s_ref = relative_singular_values(A, by_rows)[first : first + S.size]
    finite = np.isfinite(S)
    return {"values, relative": (measures.value_error(S[finite], s_ref[finite]), limit)}


def _options(made, s_ref):
    """The options of the call, the rank of the first value, and how many there are."""
    p = min(made.rows, made.columns)
    if made.part is None:
        return {}, 0, p
    first, last = made.part
    if not made.by_interval:
        return {"select": "i", "select_range": made.part}, first, last - first + 1
    # Bounds in the middle between values that are far enough apart; else they are moved out.
    info = np.finfo(made.dtype)
    middles = np.r_[np.inf, (s_ref[:-1] + s_ref[1:]) / 2, -1]
    far = s_ref[:-1] - s_ref[1:] > 1e-3 * max(s_ref[0], info.tiny / info.eps)
    usable = np.r_[True, far & (middles[1:-1] < info.max), True]
    first = max(i for i in range(first + 1) if usable[i])
    last = min(i for i in range(last + 1, p + 1) if usable[i])
    bounds = float(middles[last]), float(middles[first])
    return {"select": "v", "select_range": bounds}, first, last - first


def _call(made, given, options, device):
    """(U, S, Vh) or (S,)."""
    options = options | {"method": made.method, "eps": made.eps, "threads": made.threads}
    tuning = None if made.stages is None else {"stages": made.stages}
    if made.two_steps:
        form = linalg.bidiagonalize(given, device=device, tuning=tuning)
        result = form.svd(made.full, compute_uv=made.vectors, **options)
    else:
        result = linalg.svd(
            given,
            made.full,
            compute_uv=made.vectors,
            device=device,
            tuning=tuning,
            **options,
        )
    return tuple(result) if made.vectors else (result,)


@dataclass
class DenseDraws:
    """The attack by random draws of dense matrices."""

    seed: int
    device: str
    method: str
    numbers: str
    stages: int | None = None

    def describe(self, index):
        made, _ = draw(self.seed, index, self.method, self.numbers, self.stages)
        return vars(made)

    def __call__(self, index):
        made, A = draw(self.seed, index, self.method, self.numbers, self.stages)
        found, wrong = check(made, A, self.device)
        found = {measure: (*both, {}) for measure, both in found.items()}
        return vars(made), found, ["; ".join(wrong)] if wrong else []


def again(seed, index, device, method, numbers, stages):
    """Prints a draw and its measures. The exit status is 1 if something is wrong."""
    return attack.show(DenseDraws(seed, device, method, numbers, stages)(index))


def run(path, workers, device, method, numbers, stages, draws, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any draw."""
    how = {"device": device, "method": method, "numbers": numbers, "seed": seed}
    how |= {} if stages is None else {"stages": stages}
    record = attack.Record(path, workers, attack="dense", **how)
    work = DenseDraws(**how)
    return attack.run(record, work, seed, range(draws), draws, seconds)
