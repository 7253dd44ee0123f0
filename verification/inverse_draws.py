"""Random draws of square matrices for tsvd.linalg.inv, each checked.

    python -m verification inverse DRAWS [--numbers NUMBERS]

Each inverse keeps the bound on its residual, or an error or a warning says why it does not: a true
one, of a matrix that is singular to its digits. No entry is NaN, and an infinite one is beyond the
range. A draw is determined as in verification/dense_draws.py.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgWarning

from testing.dense_layouts import LAYOUTS
from testing.measures import INVERSE_BOUNDS, frobenius, inverse_residual
from testing.parts import double, ldexp, long, parts, sizes
from testing.reference import dense_singular_values
from tsvd import linalg
from verification import attack, real_and_complex
from verification.dense_draws import SPECIAL, SPECIAL_SHARE, exponent_of
from verification.real_and_complex import family_names, make, with_parts

LARGEST = 200
BATCH_SHARE, LARGEST_BATCH, ENTRIES_IN_BATCH = 0.3, 40, 3000
SHIFTED_SHARE, REPEATED_SHARE = 0.3, 0.1
# Families of which nearly all are drawn as often as all others: elimination is hard for them.
GROWING = ("shooting", "shooting_transposed", "quadrature", "wilkinson", "wilkinson_times_random")
GROWING_SHARE = 0.3
BALANCING = 8  # passes over rows and columns
NEWTON = 8  # steps, at most
TRUE = 0.05  # an estimate of the condition may be above the true one by a few roundings


@dataclass
class Draw:
    """All that determines a matrix, or a batch, and the call; see verification/dense_draws.py."""

    family: str
    n: int
    dtype: str
    matrix_seed: int
    exponent: int
    layout: str
    others: int | None
    refine: bool
    repeated: bool
    method: str = "inverse"


def draw(seed, index, numbers):
    """The draw and its matrix or matrices, A (..., n, n) in C order."""
    numbers = real_and_complex.of_index(numbers, index)
    rng = np.random.default_rng([seed, index])
    n = int(np.exp(rng.uniform(0, np.log(LARGEST + 1))))
    if rng.random() < SPECIAL_SHARE:
        n = int(rng.choice(SPECIAL))
    most, others = min(LARGEST_BATCH, ENTRIES_IN_BATCH // n**2), None
    if most and rng.random() < BATCH_SHARE:
        others = int(np.exp(rng.uniform(0, np.log(most))))
    family = str(rng.choice(family_names(numbers)))
    if rng.random() < GROWING_SHARE:
        family = str(rng.choice(GROWING))
    made = Draw(
        family=family,
        n=n,
        dtype=with_parts(rng.choice(["float64", "float32"]), numbers),
        matrix_seed=int(rng.integers(2**32)),
        exponent=0,
        layout=str(rng.choice([*LAYOUTS])),
        others=others,
        refine=bool(rng.random() < 0.4),
        repeated=bool(rng.random() < REPEATED_SHARE),
    )
    dtype = np.dtype(made.dtype)
    matrices = [make(family, n, n, dtype, made.matrix_seed)]
    more = np.random.default_rng(made.matrix_seed)
    for _ in range(others or 0):
        name = str(more.choice(family_names(numbers)))
        matrices.append(make(name, n, n, dtype, int(more.integers(2**32))))
    A = np.stack(matrices)
    largest = float(np.max(sizes(A)))
    if largest and rng.random() < SHIFTED_SHARE:
        made.exponent = exponent_of(largest, np.finfo(dtype), rng)
        A = ldexp(A, made.exponent)
    return made, A if others is not None else A[0]


def check(made, A, device):
    """measure -> (value, limit) of the worst matrix, and a list of other failures."""
    given = LAYOUTS[made.layout](A)
    found, wrong = {}, []
    limit = INVERSE_BOUNDS[made.refine]
    alone = []  # a singular matrix ends the whole call: each by itself
    for i, one in enumerate(A.reshape(-1, made.n, made.n)):
        X, said = invert(one, made.refine, device)
        alone.append(X)
        if said is not None and not is_singular(one):
            wrong.append(f"matrix {i}: {said}, but it is well-conditioned")
        if X is None or np.isnan(X).any():
            wrong += [f"matrix {i}: NaN"] if X is not None else []
            continue
        if not np.isfinite(X).all():
            wrong += [f"matrix {i}: {text}" for text in _infinite(one, X)]
        elif said is None:
            both = inverse_residual(one, X), limit + _of_the_least(X)
            if "residual" not in found or not _share(both) <= _share(found["residual"]):
                found["residual"] = both
    wrong += _whole(made, given, alone, device)
    if not np.array_equal(given, A):
        wrong.append("the matrix was changed")
    for measure, (value, bound) in found.items():
        if not value <= bound:
            wrong.append(f"{measure} is {value:.4g}, over {bound:.4g}")
    return found, wrong


def _share(both):
    return both[0] / both[1]


def _of_the_least(X):
    """What the rounding of subnormal entries adds to the residual."""
    info, norm = np.finfo(X.dtype), frobenius(long(X))
    if norm >= len(X) * info.tiny:
        return 0.0
    return float(len(parts(X)) ** 0.5 * np.longdouble(info.tiny) / (2 * norm))


def invert(A, refine, device):
    """The inverse, None for an error; and what is said: None, a warning or an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LinAlgWarning)
        try:
            X = linalg.inv(A, refine=refine, device=device)
        except np.linalg.LinAlgError as error:
            return None, f"LinAlgError: {error}"
    return X, str(caught[0].message) if caught else None


def is_singular(A):
    """To its digits: as it is, or with rows and columns that are scaled to like sizes."""
    n, eps = len(A), float(np.finfo(A.dtype).eps)
    scaled = long(A)
    for matrix in (scaled, _balanced(scaled)):
        if matrix is None:
            return True
        s = dense_singular_values(matrix)
        if not s[-1] > 0 or n * s[0] / s[-1] >= TRUE / eps:
            return True
    return False


def _balanced(A):
    """Powers of two bring the largest entry of each row and column near 1; None: one is zero."""
    for _ in range(BALANCING):
        for axis in (1, 0):
            largest = np.max(sizes(A), axis=axis, keepdims=True)
            if not largest.all():
                return None
            A = ldexp(A, -np.frexp(largest)[1])
    return A


def _exact_inverse(A):
    """The inverse of a matrix in single precision, by Newton steps: pivots of doubles grow as well.

    None: the steps do not converge.
    """
    A = long(A)
    X = long(np.linalg.inv(double(A)))
    for _ in range(NEWTON):
        left = np.eye(len(A)) - A @ X
        if np.max(abs(left)) < 1e-9:
            return X
        X = X + X @ left
    return None


def _infinite(A, X):
    """What is wrong with infinite entries, as far as the inverse in more digits tells.

    An entry far below the largest of X is known no better than the bound on the residual says.
    """
    info = np.finfo(A.dtype)
    if info.dtype == np.float64:
        return
    condition = float(np.linalg.cond(double(_balanced(long(A)))))
    exact = _exact_inverse(A) if condition <= 1e6 else None
    if exact is None:
        return
    error = INVERSE_BOUNDS[False] * len(A) * float(info.eps) * condition * np.max(sizes(exact))
    if np.any(np.isinf(X) & (sizes(exact) + error < float(info.max))):
        yield "infinite, though a number holds it"


def _whole(made, given, alone, device):
    """A batch is its matrices; the same call has the same bits."""
    if any(X is None for X in alone) or not (made.repeated or made.others is not None):
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        X = linalg.inv(given, refine=made.refine, device=device)
    X = X.reshape(np.shape(alone))
    if X.tobytes() == np.stack(alone).tobytes():
        return []
    if device == "cuda" and np.iscomplexobj(X) and made.others is not None:
        # cuBLAS multiplies a batch of complex matrices in another way than a single one.
        pairs = zip(given.reshape(X.shape), X, strict=True)
        worst = max((inverse_residual(A, x) for A, x in pairs if np.isfinite(x).all()), default=0)
        if worst <= INVERSE_BOUNDS[made.refine]:
            return []
    return ["a batch has other bits than its matrices, or a layout than another one"]


@dataclass
class InverseDraws:
    """The attack by random draws of matrices to invert."""

    seed: int
    device: str
    numbers: str

    def describe(self, index):
        return vars(draw(self.seed, index, self.numbers)[0])

    def __call__(self, index):
        made, A = draw(self.seed, index, self.numbers)
        found, wrong = check(made, A, self.device)
        found = {measure: (*both, {}) for measure, both in found.items()}
        return vars(made), found, ["; ".join(wrong)] if wrong else []


def again(seed, index, device, numbers):
    """Prints a draw and its measures. The exit status is 1 if something is wrong."""
    return attack.show(InverseDraws(seed, device, numbers)(index))


def run(path, workers, device, numbers, draws, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any draw."""
    how = {"device": device, "numbers": numbers, "seed": seed}
    record = attack.Record(path, workers, attack="inverse", method="inverse", **how)
    return attack.run(record, InverseDraws(**how), seed, range(draws), draws, seconds)
