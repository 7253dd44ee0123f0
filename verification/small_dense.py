"""Millions of small dense matrices, in batches of mixed kinds, each checked in every measure.

    python -m verification lanes MATRICES

A block of some thousand matrices of one shape and type is one call of `svd`, one of `svdvals` and
one of `inv`. Its random seed and its index determine it, so that it can be repeated: add `--index
INDEX`. Values are compared with LAPACK's; where the two are far apart, those in extended precision
decide. The rest of each check is made in twice the digits, or in long double.
"""

from dataclasses import dataclass

import numpy as np

from testing.measures import BOUNDS, INVERSE_BOUNDS, dense_value_bound
from testing.parts import double, ldexp, long, sizes
from testing.reference import dense_singular_values
from tsvd import linalg
from verification import attack

COUNT = 4000  # matrices of a block
DTYPES = ("float64", "float32", "complex128", "complex64")
KINDS = ("gaussian", "few", "ends", "graded", "low_rank", "close", "sparse", "equal")
SHOWN = 5  # failing matrices of a block that are written in full
DOUBTFUL = 0.5  # part of the bound beyond which LAPACK is not the reference


@dataclass(frozen=True)
class Block:
    """What determines a block."""

    seed: int
    index: int
    m: int
    n: int
    dtype: str
    full: bool
    count: int = COUNT
    method: str = "auto"


def order_on_device(dtype):
    """Up to which a thread of a CUDA device has a matrix."""
    return {"complex128": 4, "complex64": 7}.get(dtype, 8)


def block(seed, index):
    rng = np.random.default_rng([seed, index])
    n = int(rng.integers(1, 9) if rng.random() < 0.8 else rng.integers(9, 17))
    m = n if rng.random() < 0.7 else n + int(rng.integers(0, 12))
    m, n = (m, n) if rng.random() < 0.8 else (n, m)
    return Block(seed, index, m, n, DTYPES[index % len(DTYPES)], bool(rng.random() < 0.3))


# ---- matrices ----


def matrices(made):
    """The matrices (count, m, n), each of another kind than those beside it."""
    rng = np.random.default_rng([made.seed, made.index, 1])
    shape = made.count, made.m, made.n
    kind = rng.integers(0, len(KINDS), made.count)
    A = np.empty(shape, np.complex128 if made.dtype.startswith("complex") else np.float64)
    for i, name in enumerate(KINDS):
        chosen = np.flatnonzero(kind == i)
        A[chosen] = _of_kind(name, (chosen.size, *shape[1:]), made, rng)
    with np.errstate(over="ignore", under="ignore"):
        largest = float(np.finfo(made.dtype).max) / 1024  # no value is infinite
        size = np.max(np.minimum(sizes(A), 1e300), axis=(1, 2), keepdims=True)
        A = A * np.minimum(1, largest / np.maximum(size, 1e-300))
        return A.astype(made.dtype)


def _numbers(shape, made, rng):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if made.dtype.startswith("complex") else x


def _of_kind(name, shape, made, rng):
    count, m, n = shape
    info = np.finfo(made.dtype)
    if name == "few":
        return _picked([0, 1, -1], shape, made, rng)
    if name == "ends":
        huge, tiny, eps = float(info.max) / 64, float(info.smallest_subnormal), float(info.eps)
        return _picked([0, 1, -1, eps, -eps, huge, -huge, tiny, -tiny], shape, made, rng)
    x = _numbers(shape, made, rng)
    if name == "graded":
        span = rng.uniform(0, 30, (count, 1, 1))
        rows, columns = (rng.uniform(-1, 1, (count, *size)) for size in ((m, 1), (1, n)))
        x = x * 10 ** (span * rows * (rng.random((count, 1, 1)) < 0.7)) * 10 ** (span * columns)
    elif name == "low_rank":
        rank = min(m, n, int(rng.integers(1, 3)))
        x = _numbers((count, m, rank), made, rng) @ _numbers((count, rank, n), made, rng)
    elif name == "close":
        x = 1 + 10 ** rng.uniform(-17, -1, (count, 1, 1)) * x
    elif name == "sparse":
        x = x * (rng.random(shape) < 0.4)
    elif name == "equal":
        q, _ = np.linalg.qr(_numbers((count, max(m, n), min(m, n)), made, rng))
        q = q if m >= n else np.swapaxes(q, -1, -2)
        x = q + 10 ** rng.uniform(-17, -1, (count, 1, 1)) * x
    return x * 10 ** rng.uniform(-20, 20, (count, 1, 1))


def _picked(entries, shape, made, rng):
    x = rng.choice(entries, shape)
    return x * rng.choice([1, 1j], shape) if made.dtype.startswith("complex") else x


# ---- checks ----


class Checks:
    """Collects the worst of each measure, and the matrices that fail."""

    def __init__(self, A):
        self.A, self.found, self.wrong = A, {}, []

    def rule(self, text, wrong):
        self.wrong += [(int(i), text) for i in np.flatnonzero(wrong)]

    def bound(self, measure, errors, limit):
        worst = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
        self.found[measure] = float(errors[worst]), float(limit), {"matrix": worst}
        for i in np.flatnonzero(~(errors <= limit)):
            self.wrong.append((int(i), f"{measure} is {errors[i]:.4g}, over {limit:.4g}"))


def _norm(x):
    return np.sqrt(np.sum(abs(x) ** 2, axis=(-2, -1)))


def check(made, A, device):
    """The worst (value, limit, where) of each measure; (matrix, text) of each failure."""
    checks, info = Checks(A), np.finfo(made.dtype)
    U, S, Vh = linalg.svd(A, made.full, device=device)
    alone = linalg.svdvals(A, device=device)
    k, longer, eps = min(made.m, made.n), max(made.m, made.n), float(info.eps)
    parts = U, S, Vh, alone
    checks.rule(
        "NaN or infinity", ~np.all([np.isfinite(x).reshape(len(A), -1).all(1) for x in parts], 0)
    )
    if checks.wrong:
        return checks.found, checks.wrong
    for s in (S, alone):
        checks.rule("not descending, or negative", np.any((np.diff(s) > 0) | (s[:, 1:] < 0), 1))
    # to one scale and twice the digits
    more = double if made.dtype in ("float32", "complex64") else long
    exponent = np.frexp(np.max(sizes(A), axis=(1, 2)))[1]
    shift = -exponent[:, None, None]
    B, s = ldexp(more(A), shift), ldexp(more(S), shift[:, 0])
    least = np.ldexp(np.longdouble(info.tiny), shift[:, 0, 0])
    u, v = more(U), more(Vh)
    for name, gram in (
        ("U", np.swapaxes(u.conj(), 1, 2) @ u),
        ("V", v @ np.swapaxes(v.conj(), 1, 2)),
    ):
        off = np.max(abs(gram - np.eye(gram.shape[-1])), axis=(1, 2))
        checks.bound(f"orthogonality of {name}", off / ((longer + 8) * eps), 3)
    residual = _norm(B - (u[..., :k] * s[:, None]) @ v[:, :k])
    unit = (longer + 8) * eps * np.maximum(_norm(B), least)
    checks.bound("residual", residual / unit, BOUNDS["residual"](longer))
    largest = np.take_along_axis(u[..., :k], np.argmax(abs(u[..., :k]), 1)[:, None], 1)[:, 0]
    near = abs(u[..., :k]) >= abs(largest)[:, None] * (1 - 4 * eps)
    right = np.any(near & (u.real[..., :k] > 0) & (u.imag[..., :k] == 0), axis=1)
    checks.rule("not positive where a column of U is largest", ~np.all(right, axis=1))
    _check_values(checks, B, ldexp(more(alone), shift[:, 0]), "values alone", least, eps)
    _check_values(checks, B, s, "values", least, eps)
    _check_bits(checks, made, (U, S, Vh, alone), device)
    return checks.found, checks.wrong


def _check_values(checks, B, s, measure, least, eps):
    limit = dense_value_bound(*B.shape[1:])
    with np.errstate(under="ignore"):
        s_ref = np.linalg.svd(double(B), compute_uv=False).astype(np.longdouble)
    unit = eps * np.maximum(s_ref[:, 0], least)
    errors = np.max(abs(s - s_ref), axis=1) / unit
    for i in np.flatnonzero(errors > DOUBTFUL * limit):
        exact = dense_singular_values(B[i])
        errors[i] = np.max(abs(s[i] - exact)) / (eps * max(exact[0], least[i]))
    checks.bound(measure, errors.astype(float), limit)


def _check_bits(checks, made, whole, device):
    """Some matrices alone, and some in a batch of another size and with other strides."""
    if device != "cpu" and max(made.m, made.n) > order_on_device(made.dtype):
        return
    rng = np.random.default_rng([made.seed, made.index, 2])
    A = checks.A
    for i in rng.integers(0, len(A), 10):
        first = int(rng.integers(max(0, i - 20), i + 1))
        for part in (slice(i, i + 1), slice(first, i + 1)):
            given = np.asfortranarray(A[part]) if rng.random() < 0.5 else A[part]
            again = (*linalg.svd(given, made.full, device=device, threads=1),)
            again = (*again, linalg.svdvals(given[-1], device=device)[None])
            same = all(x[-1].tobytes() == y[i].tobytes() for x, y in zip(again, whole, strict=True))
            if not same:
                checks.wrong.append((int(i), f"other bits in a batch of {given.shape[0]}"))


def check_inverses(made, A, device):
    """The same of the inverses of those that are not singular, in blocks of square matrices."""
    checks = Checks(A)
    good = np.flatnonzero(np.linalg.matrix_rank(double(A), tol=0) == made.n) if made.n else []
    checks.A = A = A[good]
    if len(A) == 0:
        return checks.found, checks.wrong
    with np.errstate(all="ignore"):
        X = _inverses(A, device)
    done = np.isfinite(X).reshape(len(X), -1).all(axis=1)
    exponent = -np.frexp(np.max(sizes(A), axis=(1, 2)))[1][:, None, None]
    B, Y = ldexp(long(A), exponent), ldexp(long(X), -exponent)
    eye, eps = np.eye(made.n), float(np.finfo(made.dtype).eps)
    with np.errstate(all="ignore"):
        off = np.minimum(_norm(B @ Y - eye), _norm(Y @ B - eye))
        error = (off / (made.n * eps * _norm(B) * _norm(Y))).astype(float)
    # results beyond the range, or among the denormal numbers, have no such bound
    least = np.min(np.where(sizes(X) > 0, sizes(X), np.inf), axis=(1, 2))
    fair = done & (least > np.finfo(made.dtype).tiny)
    checks.bound("inverse", np.where(fair, error, 0), INVERSE_BOUNDS[False])
    return checks.found, checks.wrong


def _inverses(A, device):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return linalg.inv(A, device=device)
        except linalg.LinAlgError:  # one of them is singular: all are asked
            X = np.full_like(A, np.nan)
            for i, a in enumerate(A):
                try:
                    X[i] = linalg.inv(a, device=device)
                except linalg.LinAlgError:
                    continue
            return X


# ---- blocks ----


@dataclass
class SmallDense:
    """The attack by small dense matrices."""

    seed: int
    device: str

    def describe(self, index):
        return vars(block(self.seed, index))

    def __call__(self, index):
        made = block(self.seed, index)
        A = matrices(made)
        found, wrong = check(made, A, self.device)
        if made.m == made.n:
            more, also = check_inverses(made, A, self.device)
            found, wrong = found | more, wrong + also
        again = f"python -m verification lanes --seed {self.seed} --index {index}"
        texts = [f"matrix {i}: {text}" for i, text in wrong]
        for k, (i, _) in enumerate(wrong[:SHOWN]):
            texts[k] += f"\nA = {A[i].tolist()!r}\nin its block: {again}"
        return vars(made), found, texts


def again(seed, index, device):
    """Prints a block and its measures. The exit status is 1 if something is wrong."""
    return attack.show(SmallDense(seed, device)(index))


def run(path, workers, device, asked, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any matrix."""
    record = attack.Record(path, workers, attack="lanes", device=device, method="auto", seed=seed)
    number = -(-asked // COUNT)
    return attack.run(
        record, SmallDense(seed, device), seed, range(number), number * COUNT, seconds
    )
