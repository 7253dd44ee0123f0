"""The families of dense matrices that the tests and the benchmarks run on.

A family is a function (m, n, dtype, rng) -> A of shape (m, n), for all m, n >= 1. `FAMILIES` maps
its name to it. `make` calls it with a generator of its own, so that (family, m, n, dtype, seed)
always gives the same matrix. p is the smaller of m and n.
"""

import itertools
import zlib
from pathlib import Path

import numpy as np

FAMILIES = {}

PICTURES_FILE = Path(__file__).parent / "data" / "pictures.npz"


def make(name, m, n, dtype=np.float64, seed=0):
    """The m x n matrix of the family called `name`."""
    rng = np.random.default_rng([seed, m, n, zlib.crc32(name.encode())])
    return np.ascontiguousarray(FAMILIES[name](m, n, np.dtype(dtype), rng), dtype)


def pictures(dtype=np.float64):
    """Real pictures: name -> matrix. data/README.md tells their origin."""
    with np.load(PICTURES_FILE) as file:
        return {name: file[name].astype(dtype) for name in sorted(file)}


def prime_toeplitz(n):
    """The symmetric Toeplitz matrix whose first column holds the first n primes."""
    primes = []
    for k in itertools.count(2):
        if len(primes) == n:
            break
        if all(k % p for p in primes):
            primes.append(k)
    i = np.arange(n)
    return np.array(primes, np.float64)[abs(i[:, None] - i)]


def with_values(s, m, n, rng):
    """U diag(s) V^T with random orthonormal columns of U and V; s (p,)."""
    return (_orthonormal(m, s.size, rng) * s) @ _orthonormal(n, s.size, rng).T


def _orthonormal(m, p, rng):
    return np.linalg.qr(rng.standard_normal((m, p)))[0]


def family(function):
    FAMILIES[function.__name__] = function
    return function


@family
def gaussian(m, n, dtype, rng):
    """Entries standard normal."""
    return rng.standard_normal((m, n))


@family
def uniform_100(m, n, dtype, rng):
    """Entries uniform in [0, 100], as in the published table: one value is far above the others."""
    return rng.uniform(0, 100, (m, n))


@family
def integers(m, n, dtype, rng):
    """Small integers: zeros, equal rows and exact cancellation."""
    return rng.integers(-2, 3, (m, n))


@family
def sparse(m, n, dtype, rng):
    """A tenth of the entries is not zero."""
    return rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.1)


# ---- given singular values ----


def _geometric(condition):
    def geometric(m, n, dtype, rng):
        return with_values(np.geomspace(1, 1 / condition, min(m, n)), m, n, rng)

    geometric.__doc__ = f"Values in geometric progression, condition number {condition:g}."
    return geometric


for _power in (1, 4, 8, 12, 16):
    FAMILIES[f"geometric_1e{_power}"] = _geometric(10.0**_power)


@family
def clustered(m, n, dtype, rng):
    """All values within 50 eps of 1."""
    s = 1 + 50 * float(np.finfo(dtype).eps) * rng.uniform(-1, 1, min(m, n))
    return with_values(s, m, n, rng)


@family
def clusters(m, n, dtype, rng):
    """Up to four clusters, from 1 to eps, as narrow as rounding."""
    s = rng.choice([1.0, 0.5, 1e-4, float(np.finfo(dtype).eps)], min(m, n))
    return with_values(s, m, n, rng)


@family
def one_large(m, n, dtype, rng):
    """One value is 1, the others eps."""
    s = np.full(min(m, n), float(np.finfo(dtype).eps))
    s[0] = 1
    return with_values(s, m, n, rng)


@family
def one_small(m, n, dtype, rng):
    """One value is eps, the others 1."""
    s = np.ones(min(m, n))
    s[-1] = float(np.finfo(dtype).eps)
    return with_values(s, m, n, rng)


@family
def orthogonal(m, n, dtype, rng):
    """Orthonormal columns, or rows."""
    return with_values(np.ones(min(m, n)), m, n, rng)


def _rank(of):
    def rank(m, n, dtype, rng):
        r = min(of(min(m, n)), m, n)
        return rng.standard_normal((m, r)) @ rng.standard_normal((r, n))

    return rank


FAMILIES["rank_1"] = _rank(lambda p: 1)
FAMILIES["rank_3"] = _rank(lambda p: 3)
FAMILIES["rank_half"] = _rank(lambda p: (p + 1) // 2)


@family
def rank_1_exact(m, n, dtype, rng):
    """Powers of two: nothing is rounded, and what the first reflectors leave is exactly zero."""
    return np.outer(2.0 ** rng.integers(-3, 4, m), 2.0 ** rng.integers(-3, 4, n))


@family
def noise_far_below(m, n, dtype, rng):
    """Rank 1, and noise whose squares underflow."""
    noise = {8: 1e-170, 4: 1e-25}[dtype.itemsize]
    return np.ones((m, n)) * (np.arange(n) == 0) + noise * rng.standard_normal((m, n))


# ---- zeros ----


@family
def zero(m, n, dtype, rng):
    return np.zeros((m, n))


@family
def identity(m, n, dtype, rng):
    return np.eye(m, n)


@family
def permutation(m, n, dtype, rng):
    """The identity with its rows in random order and random signs."""
    return rng.permutation(np.eye(m, n)) * rng.choice([-1.0, 1.0], n)


@family
def one_entry(m, n, dtype, rng):
    """One entry is not zero."""
    A = np.zeros((m, n))
    A[rng.integers(m), rng.integers(n)] = -3
    return A


@family
def ones(m, n, dtype, rng):
    return np.ones((m, n))


@family
def zero_rows(m, n, dtype, rng):
    """A third of the rows is zero, the first of them too."""
    A = rng.standard_normal((m, n))
    A[::3] = 0
    return A


@family
def zero_columns(m, n, dtype, rng):
    """A third of the columns is zero, the first of them too."""
    return zero_rows(n, m, dtype, rng).T


@family
def zero_border(m, n, dtype, rng):
    """Only the last quarter of the rows and columns is not zero."""
    A = np.zeros((m, n))
    A[3 * m // 4 :, 3 * n // 4 :] = rng.standard_normal((m - 3 * m // 4, n - 3 * n // 4))
    return A


@family
def equal_columns(m, n, dtype, rng):
    """Two columns in turn."""
    return rng.standard_normal((m, 2))[:, np.arange(n) % 2]


@family
def bidiagonal(m, n, dtype, rng):
    """Already bidiagonal: every reflector is the identity, or a change of sign."""
    return np.eye(m, n) * rng.standard_normal(n) + np.eye(m, n, 1) * rng.standard_normal(n)


@family
def triangular(m, n, dtype, rng):
    return np.triu(rng.standard_normal((m, n)))


@family
def bidiagonal_but_noise(m, n, dtype, rng):
    """Bidiagonal, and tiny numbers elsewhere: the tails of all columns and rows nearly vanish."""
    tiny = float(np.finfo(dtype).eps) ** 2 * rng.standard_normal((m, n))
    return np.eye(m, n) + 0.5 * np.eye(m, n, 1) + tiny


# ---- classical ----


@family
def hilbert(m, n, dtype, rng):
    return 1 / (1.0 + np.arange(m)[:, None] + np.arange(n))


@family
def vandermonde(m, n, dtype, rng):
    """Powers of m points in [-1, 1]."""
    return np.linspace(-1, 1, m)[:, None] ** np.arange(n)


@family
def kahan(m, n, dtype, rng):
    """Kahan's triangular matrix for the angle 1.2."""
    sine, cosine = np.sin(1.2), np.cos(1.2)
    return sine ** np.arange(m)[:, None] * (np.eye(m, n) - cosine * np.triu(np.ones((m, n)), 1))


@family
def toeplitz(m, n, dtype, rng):
    return np.exp2(-abs(np.arange(m)[:, None] - np.arange(n) + 0.0))


@family
def cauchy(m, n, dtype, rng):
    return 1 / (np.sort(rng.uniform(0, 1, m))[:, None] + np.sort(rng.uniform(0, 1, n)) + 1e-3)


@family
def wilkinson(m, n, dtype, rng):
    """1 on the diagonal, -1 below it, 1 in the last column: elimination grows like 2^n."""
    A = np.eye(m, n) - np.tril(np.ones((m, n)), -1)
    A[:, -1] = 1
    return A


# ---- pivots that grow: elimination loses all digits, though the condition is small ----


@family
def wright(m, n, dtype, rng):
    """A boundary value problem at two points, by multiple shooting in steps of 0.3.

    S. Wright, "A collection of problems for which Gaussian elimination with partial pivoting is
    unstable", SIAM J. Sci. Comput. 14 (1993). The solution of y' = M y over a step of h is
    exp(-h/6) [[cosh h, sinh h], [sinh h, cosh h]] y.
    """
    steps, h = (max(m, n) + 1) // 2, 0.3
    step = np.exp(-h / 6) * np.array([[np.cosh(h), np.sinh(h)], [np.sinh(h), np.cosh(h)]])
    A = np.eye(2 * steps) - np.kron(np.eye(steps, k=-1), step)
    A[:2, -2:] += np.eye(2)
    return A[:m, :n]


@family
def wright_transposed(m, n, dtype, rng):
    return wright(n, m, dtype, rng).T


@family
def foster(m, n, dtype, rng):
    """An integral equation by the trapezoidal rule.

    L. Foster, "Gaussian elimination with partial pivoting can fail in practice", SIAM J. Matrix
    Anal. Appl. 15 (1994), with k h = 2/3 and C = 6.
    """
    kh, C = 2 / 3, 6
    A = (1 - kh / 2) * np.eye(m, n) - kh * np.tril(np.ones((m, n)), -1)
    A[:, 0] = -kh / 2
    A[0, 0] = 1
    A[:, -1] -= 1 / C
    return A


@family
def foster_transposed(m, n, dtype, rng):
    return foster(n, m, dtype, rng).T


@family
def wilkinson_random(m, n, dtype, rng):
    """Wilkinson's L times a random triangle, and equal numbers in the last column.

    N. & D. Higham, "Large growth factors in Gaussian elimination with pivoting", SIAM J. Matrix
    Anal. Appl. 10 (1989). L has -0.9 below the diagonal, so that rounding turns no pivot.
    """
    L = np.eye(m) - 0.9 * np.tril(np.ones((m, m)), -1)
    T = np.eye(m, n) + np.triu(rng.standard_normal((m, n)), 1) / (3 * np.sqrt(n))
    A = L @ T
    A[:, -1] = max(abs(A[:, :-1]).max(initial=1), 1)
    return A


@family
def wilkinson_random_transposed(m, n, dtype, rng):
    return wilkinson_random(n, m, dtype, rng).T


# ---- the range of numbers ----


def _span(dtype):
    """Graded matrices span 1e300, of float32 1e30."""
    return {8: 300, 4: 30}[dtype.itemsize]


def _grade(size, first, last):
    return 10.0 ** np.linspace(first, last, size)


@family
def graded_rows_down(m, n, dtype, rng):
    return _grade(m, 0, -_span(dtype))[:, None] * rng.standard_normal((m, n))


@family
def graded_rows_up(m, n, dtype, rng):
    return _grade(m, 0, _span(dtype))[:, None] * rng.standard_normal((m, n))


@family
def graded_columns_down(m, n, dtype, rng):
    return rng.standard_normal((m, n)) * _grade(n, 0, -_span(dtype))


@family
def graded_columns_up(m, n, dtype, rng):
    return rng.standard_normal((m, n)) * _grade(n, 0, _span(dtype))


@family
def graded_both(m, n, dtype, rng):
    """Rows go down by 1e-150, columns up by 1e150 (float32: 1e15)."""
    half = _span(dtype) / 2
    return _grade(m, 0, -half)[:, None] * rng.standard_normal((m, n)) * _grade(n, 0, half)


@family
def graded_scattered(m, n, dtype, rng):
    """Rows and columns from 1e-150 to 1e150 (float32: 1e15) in random order."""
    half = _span(dtype) / 2
    left, right = 10 ** rng.uniform(-half, half, m), 10 ** rng.uniform(-half, half, n)
    return left[:, None] * rng.standard_normal((m, n)) * right


@family
def graded_gently(m, n, dtype, rng):
    """Rows down to 1e-8."""
    return _grade(m, 0, -8)[:, None] * rng.standard_normal((m, n))


@family
def near_overflow(m, n, dtype, rng):
    """The norm is just below the largest number."""
    A = rng.standard_normal((m, n))
    return A / np.linalg.norm(A) * (0.99 * float(np.finfo(dtype).max))


@family
def overflow_in_squares(m, n, dtype, rng):
    """Squares of the entries overflow, their sums too."""
    return rng.standard_normal((m, n)) * float(np.finfo(dtype).max) ** 0.6


@family
def underflow_in_squares(m, n, dtype, rng):
    """Squares of the entries underflow."""
    return rng.standard_normal((m, n)) * float(np.finfo(dtype).tiny) ** 0.6


@family
def near_underflow(m, n, dtype, rng):
    """Entries around the least normal number."""
    return rng.standard_normal((m, n)) * float(np.finfo(dtype).tiny)


@family
def subnormal(m, n, dtype, rng):
    """Small multiples of the least subnormal number."""
    return rng.integers(-9, 10, (m, n)) * float(np.finfo(dtype).smallest_subnormal)


@family
def one_far_above(m, n, dtype, rng):
    """One entry is so large that the others vanish beside it."""
    A = rng.standard_normal((m, n))
    A[rng.integers(m), rng.integers(n)] = float(np.finfo(dtype).max) / 4
    return A


# ---- equal terms ----


@family
def constant(m, n, dtype, rng):
    """All rounding errors of a sum have one sign."""
    return np.full((m, n), rng.uniform(1, 2))


@family
def constant_but_signs(m, n, dtype, rng):
    """Rank 1: rows and columns of a constant matrix with random signs."""
    signs = [rng.choice([-1.0, 1.0], size) for size in (m, n)]
    return rng.uniform(1, 2) * np.outer(*signs)


@family
def constant_but_a_row(m, n, dtype, rng):
    """Rank 1: one row is a multiple of the others."""
    A = constant(m, n, dtype, rng)
    A[rng.integers(m)] *= rng.choice([-2.0, -1.0, 1.5, 3.0])
    return A


@family
def constant_but_a_cross(m, n, dtype, rng):
    """Rank 2: a row and a column have multiples, and where they cross another one."""
    A = constant_but_a_row(m, n, dtype, rng)
    A[:, rng.integers(n)] *= rng.choice([-2.0, -1.0, 1.5, 3.0])
    A[rng.integers(m)] += A[0, 0]
    return A


@family
def equal_terms(m, n, dtype, rng):
    """Rank 1, of few different factors on either side."""
    factors = rng.uniform(0.5, 2, 3)
    return np.outer(rng.choice(factors, m), rng.choice(factors, n))


@family
def equal_blocks(m, n, dtype, rng):
    """Blocks of equal entries, in two turns of rows and three of columns."""
    return rng.uniform(1, 2, (2, 3))[np.arange(m)[:, None] % 2, np.arange(n) * 3 // n]


# ---- zero lines, and more than the range of numbers between lines ----


def _lines_apart(size, dtype, rng):
    """Powers of two in random order, over three quarters of the range of exponents."""
    info = np.finfo(dtype)
    return np.exp2(rng.permutation(np.round(np.linspace(info.minexp, info.maxexp / 2, size))))


@family
def columns_apart(m, n, dtype, rng):
    """B D: the columns are so far apart that beside the largest the others vanish."""
    return rng.standard_normal((m, n)) * _lines_apart(n, dtype, rng)


@family
def rows_apart(m, n, dtype, rng):
    """D B."""
    return columns_apart(n, m, dtype, rng).T


@family
def columns_apart_and_zeros(m, n, dtype, rng):
    """B D with zero columns and rows."""
    A = columns_apart(m, n, dtype, rng)
    A[:, rng.random(n) < 0.2] = 0
    A[rng.random(m) < 0.1] = 0
    return A


@family
def rows_apart_and_zeros(m, n, dtype, rng):
    return columns_apart_and_zeros(n, m, dtype, rng).T


# ---- growth of pivots ----


@family
def shooting(m, n, dtype, rng):
    """Wright's (1993), of multiple shooting for a boundary value problem: the condition is below
    20, and elimination with partial pivoting grows exponentially.
    """
    order = max(m, n)
    k = (order + 1) // 2
    step = np.exp(-0.05) * np.array([[np.cosh(0.3), np.sinh(0.3)], [np.sinh(0.3), np.cosh(0.3)]])
    A = np.eye(2 * k) - np.kron(np.eye(k, k=-1), step)
    A[:2, -2:] += np.eye(2)
    return A[2 * k - m :, 2 * k - n :] if m != n or order % 2 else A


@family
def shooting_transposed(m, n, dtype, rng):
    return shooting(n, m, dtype, rng).T


@family
def quadrature(m, n, dtype, rng):
    """Foster's (1994), of a Volterra integral equation: partial pivoting grows like 2^n / 3."""
    A = np.eye(m, n) - np.tril(np.full((m, n), 0.9), -1)
    A[:, 0] = -0.45
    A[0, 0] = 1
    A[:, -1] = -1
    A[-1, -1] = 1 - 1 / 3 if m == n else -1
    return A


@family
def wilkinson_times_random(m, n, dtype, rng):
    """Wilkinson's growth matrix times a random upper triangle."""
    upper = np.triu(rng.uniform(-1, 1, (n, n)), 1) / np.sqrt(n) + np.eye(n)
    return wilkinson(m, n, dtype, rng) @ upper


def chosen(family, shapes, count, families=FAMILIES):
    """Some of the shapes, others for each family, so that together they have all."""
    first = list(families).index(family) * count
    return [shapes[(first + i) % len(shapes)] for i in range(count)]
