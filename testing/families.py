"""The families of bidiagonal matrices that the tests and the benchmarks run on.

A family is a function (n, dtype, rng) -> (d, e) with d (n,) and e (n-1,), for every n >= 0.
`FAMILIES` maps its name to it. `make` calls it with a generator of its own, so that (family, n,
dtype, seed) always gives the same matrix.
"""

import zlib
from pathlib import Path

import numpy as np

FAMILIES = {}

REAL_FILE = Path(__file__).parent / "data" / "real_bidiagonals.npz"
HARD_FILE = REAL_FILE.with_name("hard.npz")
EVOLVED_FILE = REAL_FILE.with_name("evolved.npz")
DRIFT_FILE = REAL_FILE.with_name("givens.npz")


def make(name, n, dtype=np.float64, seed=0):
    """The matrix (d, e) of order n of the family called `name`."""
    rng = np.random.default_rng([seed, n, zlib.crc32(name.encode())])
    d, e = FAMILIES[name](n, np.dtype(dtype), rng)
    return np.ascontiguousarray(d, dtype), np.ascontiguousarray(e, dtype)


def stack(matrices):
    """d (B, n) and e (B, n-1) of matrices (d, e) of one order."""
    return tuple(np.stack(part) for part in zip(*matrices, strict=True))


def real(dtype=np.float64):
    """Bidiagonals of real matrices: name -> (d, e). data/README.md tells their origin."""
    with np.load(REAL_FILE) as file:
        names = sorted({key.split("/")[0] for key in file})
        return {
            name: (file[f"{name}/d"].astype(dtype), file[f"{name}/e"].astype(dtype))
            for name in names
        }


def hard():
    """Matrices on which LAPACK failed: name -> (d, e). data/hard.json tells what it did."""
    return _pairs(HARD_FILE)


def evolved():
    """Matrices that a search climbed to, on which the bounds were broken once: name -> (d, e)."""
    return _pairs(EVOLVED_FILE)


def _pairs(path):
    with np.load(path) as file:
        names = sorted({key.split("/")[0] for key in file})
        return {name: (file[f"{name}/d"], file[f"{name}/e"]) for name in names}


def family(function):
    FAMILIES[function.__name__] = function
    return function


def _off(n):
    """The length of the off-diagonal."""
    return max(n - 1, 0)


def _signs(size, rng):
    return rng.choice([-1.0, 1.0], size)


def _uniform(high):
    def uniform(n, dtype, rng):
        return rng.uniform(0, high, n), rng.uniform(0, high, _off(n))

    uniform.__doc__ = f"d and e uniform in [0, {high}], as in the published tables."
    return uniform


for _high in (1, 5, 10, 50, 1000):
    FAMILIES[f"uniform_{_high}"] = _uniform(_high)


@family
def normal(n, dtype, rng):
    """d and e standard normal."""
    return rng.standard_normal(n), rng.standard_normal(_off(n))


@family
def chi(n, dtype, rng):
    """The result of Householder reduction of a dense n x n Gaussian matrix.

    Golub and Kahan's reduction leaves chi variables of n, n-1, ..., 1 degrees of freedom
    on the diagonal and of n-1, ..., 1 beside it.
    """
    d = np.sqrt(rng.chisquare(np.arange(n, 0, -1)))
    e = np.sqrt(rng.chisquare(np.arange(n - 1, 0, -1)))
    return d, e


@family
def toeplitz(n, dtype, rng):
    """d = e = 1: nothing deflates, and the zero-shift iteration is very slow."""
    return np.ones(n), np.ones(_off(n))


@family
def alternating(n, dtype, rng):
    """d and e of magnitude 1 with alternating signs."""
    return (-1.0) ** np.arange(n), (-1.0) ** (np.arange(_off(n)) // 2)


@family
def ascending(n, dtype, rng):
    """d = 1..n, e = 1."""
    return np.arange(1.0, n + 1), np.ones(_off(n))


@family
def descending(n, dtype, rng):
    """d = n..1, e = 1."""
    return np.arange(n, 0.0, -1), np.ones(_off(n))


def _graded(n, dtype, rng, first, last):
    """Entries along the diagonal go from 2^first to 2^last, with random mantissas."""
    b = np.exp2(np.linspace(first, last, 2 * n)) * rng.uniform(1, 2, 2 * n)
    return b[0::2], b[1:-1:2]


def _span(dtype):
    """An exponent of 2: 1e150 for float64, 1e19 for float32."""
    return {8: 498, 4: 63}[dtype.itemsize]


@family
def graded_up(n, dtype, rng):
    """From 1 at the top to 1e150 (float32: 1e19) at the bottom."""
    return _graded(n, dtype, rng, 0, _span(dtype))


@family
def graded_down(n, dtype, rng):
    """From 1 at the top to 1e-150 (float32: 1e-19) at the bottom."""
    return _graded(n, dtype, rng, 0, -_span(dtype))


@family
def graded_both(n, dtype, rng):
    """From 1e-150 to 1e150 (float32: 1e-19 to 1e19)."""
    return _graded(n, dtype, rng, -_span(dtype), _span(dtype))


@family
def graded_gently(n, dtype, rng):
    """Down to 1e-8 only: neighbours have the same magnitude."""
    return _graded(n, dtype, rng, 0, -26)


@family
def graded_peak(n, dtype, rng):
    """Small at both ends, 1 in the middle: no direction of sweep suits the whole matrix."""
    b = np.exp2(-abs(np.linspace(-1, 1, 2 * n)) * _span(dtype) / 2) * rng.uniform(1, 2, 2 * n)
    return b[0::2], b[1:-1:2]


@family
def graded_valley(n, dtype, rng):
    """1 at both ends, small in the middle."""
    b = np.exp2((abs(np.linspace(-1, 1, 2 * n)) - 1) * _span(dtype) / 2)
    b *= rng.uniform(1, 2, 2 * n)
    return b[0::2], b[1:-1:2]


@family
def clustered(n, dtype, rng):
    """d = 1 within 50 eps, e within 50 eps: all values in one cluster."""
    eps = np.finfo(dtype).eps
    return 1 + eps * rng.integers(0, 50, n), eps * rng.uniform(-50, 50, _off(n))


@family
def clustered_loosely(n, dtype, rng):
    """d = 1 and e within sqrt(eps)."""
    root = np.sqrt(np.finfo(dtype).eps)
    return 1 + root * rng.standard_normal(n), root * rng.standard_normal(_off(n))


@family
def many_equal(n, dtype, rng):
    """d = 1, and every fourth e = 1/2: blocks with the same values."""
    return np.ones(n), np.where(np.arange(_off(n)) % 4 == 0, 0.5, 0.0)


@family
def two_clusters(n, dtype, rng):
    """Half of d is 1 and half is eps, shuffled; e is within eps."""
    eps = np.finfo(dtype).eps
    d = np.where(rng.permutation(n) % 2, eps, 1.0)
    return d, eps * rng.uniform(-1, 1, _off(n))


@family
def wilkinson_glued(n, dtype, rng):
    """Copies of Wilkinson's W21+, glued by sqrt(eps): pairs of values agree to many digits.

    The bidiagonal is the Cholesky factor of the glued matrix, shifted so that it is positive.
    """
    glue = np.sqrt(np.finfo(dtype).eps)
    diagonal = abs(np.arange(n) % 21 - 10.0) + 2
    beside = np.where(np.arange(1, n) % 21 == 0, glue, 1.0)
    d, e = np.zeros(n), np.zeros(_off(n))
    carried = 0.0
    for i in range(n):
        d[i] = np.sqrt(diagonal[i] - carried**2)
        if i < n - 1:
            e[i] = carried = beside[i] / d[i]
    return d, e


@family
def wilkinson(n, dtype, rng):
    """d = |i - m|, e = 1: Wilkinson's diagonal, with a zero in the middle."""
    return abs(np.arange(n) - n // 2) * 1.0, np.ones(_off(n))


@family
def zero_first(n, dtype, rng):
    """The first entry of d is 0."""
    d, e = normal(n, dtype, rng)
    d[:1] = 0
    return d, e


@family
def zero_last(n, dtype, rng):
    """The last entry of d is 0."""
    d, e = normal(n, dtype, rng)
    d[-1:] = 0
    return d, e


@family
def zero_middle(n, dtype, rng):
    """The middle entry of d is 0."""
    d, e = normal(n, dtype, rng)
    d[n // 2 : n // 2 + 1] = 0
    return d, e


@family
def zeros_many(n, dtype, rng):
    """A third of d is 0, partly in runs. Some of the zeros are -0."""
    d, e = normal(n, dtype, rng)
    d[rng.random(n) < 1 / 3] *= 0.0
    return d, e


@family
def zeros_off(n, dtype, rng):
    """A third of e is 0."""
    d, e = normal(n, dtype, rng)
    e[rng.random(_off(n)) < 1 / 3] = 0
    return d, e


@family
def zeros_everywhere(n, dtype, rng):
    """Half of d and half of e are 0."""
    d, e = normal(n, dtype, rng)
    d[rng.random(n) < 1 / 2] = 0
    e[rng.random(_off(n)) < 1 / 2] = 0
    return d, e


@family
def zero_diagonal(n, dtype, rng):
    """d = 0: one value is 0, the others are |e|."""
    return np.zeros(n), rng.standard_normal(_off(n))


@family
def zero(n, dtype, rng):
    """B = 0."""
    return np.zeros(n), np.zeros(_off(n))


@family
def identity(n, dtype, rng):
    """B = I."""
    return np.ones(n), np.zeros(_off(n))


@family
def diagonal(n, dtype, rng):
    """e = 0, d normal: only sorting and signs are left to do."""
    return rng.standard_normal(n), np.zeros(_off(n))


@family
def near_overflow(n, dtype, rng):
    """Entries up to 1/4 of the largest number: squares overflow, the values do not."""
    top = float(np.finfo(dtype).max) / 4
    return top * rng.uniform(-1, 1, n), top * rng.uniform(-1, 1, _off(n))


@family
def near_underflow(n, dtype, rng):
    """Entries of a few times the least normal number: their squares vanish."""
    tiny = float(np.finfo(dtype).tiny)
    return 16 * tiny * rng.uniform(-1, 1, n), 16 * tiny * rng.uniform(-1, 1, _off(n))


@family
def denormal(n, dtype, rng):
    """Entries of at most 1000 times the least denormal number."""
    least = float(np.finfo(dtype).smallest_subnormal)
    return least * rng.integers(-1000, 1001, n), least * rng.integers(-1000, 1001, _off(n))


@family
def exponents(n, dtype, rng):
    """Random signs, mantissas and exponents, also denormals, up to 1/4 of the largest number."""
    info = np.finfo(dtype)
    low, high = info.minexp - info.nmant, info.maxexp - 3

    def entries(size):
        mantissa = _signs(size, rng) * rng.uniform(1, 2, size)
        return np.ldexp(mantissa, rng.integers(low, high, size))

    return entries(n), entries(_off(n))


@family
def tiny_off(n, dtype, rng):
    """d uniform, e of 1e-300 (float32: 1e-37)."""
    tiny = {8: 1e-300, 4: 1e-37}[dtype.itemsize]
    return rng.uniform(0, 1, n), tiny * rng.standard_normal(_off(n))


@family
def tiny_diagonal(n, dtype, rng):
    """e uniform, d of 1e-300 (float32: 1e-37)."""
    tiny = {8: 1e-300, 4: 1e-37}[dtype.itemsize]
    return tiny * rng.standard_normal(n), rng.uniform(0, 1, _off(n))


@family
def one_huge(n, dtype, rng):
    """Uniform, and one entry of d of 1e300 (float32: 1e37)."""
    d, e = rng.uniform(0, 1, n), rng.uniform(0, 1, _off(n))
    d[n // 3 : n // 3 + 1] = {8: 1e300, 4: 1e37}[dtype.itemsize]
    return d, e


@family
def one_huge_off(n, dtype, rng):
    """Uniform, and one entry of e of 1e300 (float32: 1e37)."""
    d, e = rng.uniform(0, 1, n), rng.uniform(0, 1, _off(n))
    e[n // 3 : n // 3 + 1] = {8: 1e300, 4: 1e37}[dtype.itemsize]
    return d, e


@family
def kahan(n, dtype, rng):
    """The bidiagonal part of Kahan's matrix: d = s^i, e = -c s^i, with s = 0.9."""
    s = 0.9
    powers = s ** np.arange(n)
    return powers, -np.sqrt(1 - s * s) * powers[: _off(n)]


@family
def companion(n, dtype, rng):
    """The bidiagonal part of a companion matrix: a shift closed by one coefficient."""
    d = np.zeros(n)
    d[-1:] = rng.standard_normal(d[-1:].size)
    return d, np.ones(_off(n))


@family
def jordan(n, dtype, rng):
    """A Jordan block with the eigenvalue 1/2: the least value is about 2^-n."""
    return np.full(n, 0.5), np.ones(_off(n))


@family
def geometric(n, dtype, rng):
    """d is a geometric sequence from 1 to eps, e has the same sizes: the condition is 1/eps."""
    d = np.finfo(dtype).eps ** (np.arange(n) / max(n - 1, 1))
    return d, d[: _off(n)] * _signs(_off(n), rng)


# On the families below LAPACK's divide and conquer (dbdsdc, sbdsdc) fails, at any order above 25,
# the order of its leaves. It does not converge, or it reports success and its vectors are far from
# orthogonal. Most matrices are copies of one block with a value between eps and sqrt(eps), glued by
# links of that size. So there are clusters of values whose distances and weights lie on both sides
# of every tolerance for deflation. data/hard.json has single matrices and what LAPACK did.


def _power(dtype, low, high, rng):
    """A number between eps^low and eps^high; its logarithm is uniform."""
    return float(np.finfo(dtype).eps) ** rng.uniform(low, high)


def _copies(n, a, b):
    """Copies of one block: its diagonal is a (p,), its off-diagonal b[:p-1], the link b[p-1]."""
    return np.resize(a, n), np.resize(b, _off(n))


def _wobble(x, k, dtype, rng):
    """x with every entry changed by at most k eps."""
    return x * (1 + float(np.finfo(dtype).eps) * rng.integers(-k, k + 1, x.size))


@family
def blocks_nearly_singular(n, dtype, rng):
    """Copies of a block of order 2 to 7 with one tiny entry on d, and tiny links.

    If one of the two is near eps^0.6 and the other near eps^0.85, LAPACK loses orthogonality in
    float64 in every second draw. Near eps and eps^0.8 it does not converge in float32.
    """
    p = rng.integers(2, 8)
    a, b = (np.ones(p) if rng.random() < 1 / 2 else rng.uniform(0.3, 1, p) for _ in "ab")
    tiny, link = _power(dtype, 0.5, 0.65, rng), _power(dtype, 0.78, 0.92, rng)
    if rng.random() < 1 / 2:
        tiny, link = link, tiny
    if dtype.itemsize == 4 and rng.random() < 1 / 2:
        tiny, link = _power(dtype, 0.95, 1.05, rng), _power(dtype, 0.74, 0.86, rng)
    a[rng.integers(p)], b[-1] = tiny, link
    return _copies(n, a, b)


@family
def blocks_one_tiny(n, dtype, rng):
    """d = 1 except for a tiny entry in every 2nd to 6th place, e between sqrt(eps) and 1."""
    p = rng.integers(2, 7)
    a = np.where(np.arange(p) == p // 2, _power(dtype, 0.5, 0.95, rng), 1.0)
    return _copies(n, a, np.full(p, _power(dtype, 0.1, 0.55, rng)))


@family
def blocks_with_zeros(n, dtype, rng):
    """Copies of a block of multiples of 1/4 with a 0 on d, and links of about eps^0.85."""
    p = rng.integers(2, 6)
    a, b = rng.integers(0, 5, p) / 4, rng.integers(1, 5, p) / 4
    a[rng.integers(p)], b[-1] = 0, _power(dtype, 0.74, 0.95, rng)
    return _copies(n, a, b)


@family
def blocks_mirrored(n, dtype, rng):
    """A block and its mirror image in turn, with a tiny entry on d and tiny links."""
    p = rng.integers(1, 8)
    a, b = rng.uniform(0, 1, p), rng.uniform(0, 1, p)
    a[rng.integers(p)], b[-1] = _power(dtype, 0.5, 1.05, rng), _power(dtype, 0.5, 0.95, rng)
    return _copies(n, np.r_[a, a[::-1]], np.r_[b, b[-2::-1], b[-1]])


@family
def blocks_jordan(n, dtype, rng):
    """Copies of a Jordan block whose least value is between eps and sqrt(eps), and tiny links."""
    p = rng.integers(2, 31)
    a = np.full(p, _power(dtype, 0.5, 0.95, rng) ** (1 / p))
    return _copies(n, a, np.r_[np.ones(p - 1), _power(dtype, 0.5, 0.95, rng)])


@family
def runs_glued(n, dtype, rng):
    """Runs equal up to the last digits, and tiny links. Half the draws have tiny entries on d."""
    p, k = rng.integers(2, 90), int(10 ** rng.uniform(0, 4))
    d, e = np.ones(n), np.full(_off(n), rng.choice([0.5, 1.0, 3.0, 4.0]))
    d, e = (rng.choice([0.5, 0.75, 1.0, 3.0]) * _wobble(x, k, dtype, rng) for x in (d, e))
    e[p - 1 :: p] = _power(dtype, 0.5, 0.95, rng)
    if rng.random() < 1 / 2:
        d[p // 2 :: p] = _power(dtype, 0.5, 1.05, rng)
    return d, e


@family
def ladders_repeated(n, dtype, rng):
    """d repeats a geometric ladder from 1 to eps^0.7 or less: up, down or both.

    e is tiny or proportional to d. If it is proportional, LAPACK does not converge in float32 near
    eps^0.8.
    """
    p = rng.integers(2, 8)
    ladder = _power(dtype, 0.7, 1.2, rng) ** (np.arange(p) / (p - 1) * rng.choice([1, 2]))
    ladder = [ladder, ladder[::-1], np.r_[ladder, ladder[::-1]]][rng.integers(3)]
    d = np.resize(ladder, n)
    if rng.random() < 1 / 3:
        return d, np.full(_off(n), _power(dtype, 0.1, 0.6, rng))
    return d, d[: _off(n)] * 2.0 ** rng.integers(-2, 8)


@family
def walk_of_exponents(n, dtype, rng):
    """The logarithms of d and e are random walks. Half the draws have powers of two only."""
    step, cut = rng.uniform(0.05, 3), _power(dtype, 0.5, 2.5, rng)
    d, e = (np.cumsum(step * rng.standard_normal(size)) for size in (n, _off(n)))
    if rng.random() < 1 / 2:
        d, e = np.round(d), np.round(e)
    return np.clip(np.exp2(d), cut, 1 / cut), np.clip(np.exp2(e), cut, 1 / cut)


@family
def deflation_straddled(n, dtype, rng):
    """|d| - 1 and e are near k eps, 16 <= k <= 256, where tolerances for deflation are.

    Reduction of a dense matrix gives this if all its values are 1 up to rounding.
    """
    k, spread = float(np.finfo(dtype).eps) * 2.0 ** rng.uniform(4, 8), rng.uniform(0, 0.5)
    d, e = (1 + spread * rng.uniform(-1, 1, size) for size in (n, _off(n)))
    return _signs(n, rng) * (1 + k * d), _signs(_off(n), rng) * k * e


@family
def nearly_diagonal(n, dtype, rng):
    """d of 1/2, 1 and 2, e from eps to 2^14 eps: the secular equations have roots on poles."""
    e = np.exp2(rng.uniform(0, rng.uniform(1, 14), _off(n)))
    return rng.choice([0.5, 1.0, 2.0], n), float(np.finfo(dtype).eps) * e


BREAKING = (
    "blocks_nearly_singular",
    "blocks_one_tiny",
    "blocks_with_zeros",
    "blocks_mirrored",
    "blocks_jordan",
    "runs_glued",
    "ladders_repeated",
    "walk_of_exponents",
    "deflation_straddled",
)
