"""Random draws for tsvd.linalg.svds, with copies and clusters of values, each checked.

    python -m verification krylov DRAWS

A draw has planted copies, which a Krylov process from one start cannot see but by rounding errors,
or clusters, of which it sees one value first. All k values must be right, so none may be missed.
Each draw is determined by the random seed and its index: add `--index INDEX` to repeat it.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

from testing.measures import PARTIAL_BOUND, partial_errors
from tsvd import linalg
from verification import attack

LARGEST = 240  # of the longer side, about
DTYPES = ("float64", "float32", "complex128", "complex64")
SPECTRA = ("flat", "linear", "geometric", "harmonic", "gaussian", "low rank")
COPIES = ("blocks", "diagonal", "dense")
KINDS = ("sparse", "operator", "steps", "transposed")


@dataclass
class Draw:
    """All that determines a matrix and the call."""

    family: str  # the spectrum, and how copies are made
    rows: int
    columns: int
    k: int
    dtype: str
    kind: str
    copies: int
    matrix_seed: int
    start_seed: int
    method: str = "krylov"


class Steps:
    """An object with a step of its own, and products."""

    def __init__(self, A):
        self.A, self.shape, self.dtype, self.u = A, A.shape, A.dtype, None

    def matvec(self, v):
        return self.A @ v

    def rmatvec(self, u):
        return self.A.conj().T @ u

    def step(self, v, gamma):
        self.u = self.A @ v - (gamma * self.u if gamma else 0)
        return np.vdot(self.u, self.u).real, self.A.conj().T @ self.u


def draw(seed, index):
    """The draw, and its matrix as an array."""
    rng = np.random.default_rng([seed, index])
    copies = int(rng.integers(1, 7))
    spectrum, how = str(rng.choice(SPECTRA)), str(rng.choice(COPIES))
    columns = int(rng.integers(40, LARGEST - 40)) // copies * copies
    rows = columns + copies * int(rng.integers(0, 20))
    made = Draw(
        family=f"{spectrum}, {how}",
        rows=rows,
        columns=columns,
        k=int(rng.integers(1, 21)),
        dtype=str(rng.choice(DTYPES)),
        kind=str(rng.choice(KINDS)),
        copies=copies,
        matrix_seed=int(rng.integers(2**32)),
        start_seed=int(rng.integers(2**32)),
    )
    return made, _matrix(made, spectrum, how)


def _matrix(made, spectrum, how):
    rng = np.random.default_rng(made.matrix_seed)
    wide = "complex128" if made.dtype.startswith("complex") else "float64"
    m, n = made.rows // made.copies, made.columns // made.copies
    s = _values(spectrum, n, rng)
    if how == "blocks":  # equal blocks on the diagonal: copies to the last bit
        G = _with_values(rng, m, n, s, wide)
        A = np.kron(np.eye(made.copies), G)
    elif how == "diagonal":
        A = np.zeros((made.rows, made.columns), wide)
        A[range(made.columns), range(made.columns)] = np.repeat(s, made.copies)
    else:
        A = _with_values(rng, made.rows, made.columns, np.repeat(s, made.copies), wide)
    A = A[rng.permutation(made.rows)][:, rng.permutation(made.columns)]
    return A.astype(made.dtype)


def _values(spectrum, n, rng):
    """Descending, with a cluster of some of them in half of the draws."""
    i = np.arange(n)
    s = {
        "flat": 1 - 0.5 * i / n,
        "linear": 1 - i / n,
        "geometric": rng.uniform(0.5, 0.99) ** i,
        "harmonic": 1 / (i + 1),
        "gaussian": np.sort(abs(rng.standard_normal(n)))[::-1] + 1e-3,
        "low rank": np.where(i < rng.integers(1, 12), 1 - i / n, 0),
    }[spectrum].astype(float)
    if rng.random() < 0.5 and n > 4:
        first, count = int(rng.integers(0, min(n, 15) - 2)), int(rng.integers(2, 5))
        gap = 10.0 ** rng.uniform(-13, -2)
        near = s[first] * (1 - gap * np.arange(len(s[first : first + count])))
        s[first : first + count] = near
        s = np.sort(s)[::-1]
    return s


def _with_values(rng, m, n, s, dtype):
    return _orthonormal(rng, m, n, dtype) * s @ _orthonormal(rng, n, n, dtype).conj().T


def _orthonormal(rng, m, n, dtype):
    X = rng.standard_normal((m, n))
    return np.linalg.qr(X + 1j * rng.standard_normal((m, n)) if "complex" in dtype else X)[0]


def check(made, A):
    """measure -> (value, limit), and a list of other failures."""
    given = A.T if made.kind == "transposed" else A
    k = min(made.k, min(A.shape))
    if made.kind in ("sparse", "transposed"):
        called = scipy.sparse.csr_array(given)
    else:
        called = Steps(given)
        if made.kind == "operator":
            called = aslinearoperator(given)
    U, s, Vh = linalg.svds(called, k, rng=made.start_seed)
    found = partial_errors(given, U, s, Vh)
    wrong = [
        f"{measure} is {value:.4g}, over {PARTIAL_BOUND}"
        for measure, value in found.items()
        if not value <= PARTIAL_BOUND
    ]
    if not (np.diff(s) <= 0).all() or not (s >= 0).all():
        wrong.append("values are not descending, or negative")
    if U.dtype != A.dtype or s.dtype != A.real.dtype:
        wrong.append(f"dtypes {U.dtype} and {s.dtype}")
    return {measure: (value, PARTIAL_BOUND) for measure, value in found.items()}, wrong


@dataclass
class KrylovDraws:
    """The attack by random draws."""

    seed: int
    device: str

    def describe(self, index):
        return vars(draw(self.seed, index)[0])

    def __call__(self, index):
        made, A = draw(self.seed, index)
        found, wrong = check(made, A)
        found = {measure: (*both, {}) for measure, both in found.items()}
        return vars(made), found, ["; ".join(wrong)] if wrong else []


def again(seed, index, device):
    """Prints a draw and its measures. The exit status is 1 if something is wrong."""
    return attack.show(KrylovDraws(seed, device)(index))


def run(path, workers, device, draws, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any draw."""
    record = attack.Record(
        path, workers, attack="krylov", method="krylov", device=device, seed=seed
    )
    return attack.run(record, KrylovDraws(seed, device), seed, range(draws), draws, seconds)
