"""The families of complex dense matrices that the tests run on.

A family is a function (m, n, dtype, rng) -> A of shape (m, n), for all m, n >= 1, as in
`testing.dense_families`; dtype is that of the parts. Those of real matrices are here too, under
their names: with random phases of rows and columns, which change no value.
"""

import zlib

import numpy as np

from testing import dense_families

FAMILIES = {}


def make(name, m, n, dtype=np.complex128, seed=0):
    """The m x n matrix of the family called `name`."""
    rng = np.random.default_rng([seed, m, n, zlib.crc32(name.encode()), 1])
    part = np.zeros(0, dtype).real.dtype
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(FAMILIES[name](m, n, part, rng), dtype)


def _phases(count, rng):
    return np.exp(2j * np.pi * rng.uniform(size=count))


def _phased(real):
    def phased(m, n, dtype, rng):
        A = np.asarray(real(m, n, dtype, rng))
        turn = _phases(m, rng)[:, None] * _phases(n, rng)
        return A * turn.real + 1j * (A * turn.imag)

    return phased


FAMILIES |= {name: _phased(real) for name, real in dense_families.FAMILIES.items()}


def family(function):
    FAMILIES[function.__name__] = function
    return function


def _gaussian(m, n, rng):
    return rng.standard_normal((m, n)) + 1j * rng.standard_normal((m, n))


@family
def complex_gaussian(m, n, dtype, rng):
    """Both parts standard normal."""
    return _gaussian(m, n, rng)


@family
def real_alone(m, n, dtype, rng):
    """Imaginary parts exactly zero."""
    return rng.standard_normal((m, n))


@family
def imaginary_alone(m, n, dtype, rng):
    """Real parts exactly zero."""
    return 1j * rng.standard_normal((m, n))


@family
def unitary(m, n, dtype, rng):
    """Orthonormal columns, or rows."""
    Q = np.linalg.qr(_gaussian(max(m, n), min(m, n), rng))[0]
    return Q if m >= n else Q.T


@family
def fourier(m, n, dtype, rng):
    """A part of the discrete Fourier transform: for m = n all values are equal."""
    return np.exp(-2j * np.pi * (np.outer(np.arange(m), np.arange(n)) % max(m, n)) / max(m, n))


@family
def hermitian_indefinite(m, n, dtype, rng):
    """Where it is square."""
    A = _gaussian(max(m, n), max(m, n), rng)
    return (A + A.conj().T)[:m, :n]


@family
def skew(m, n, dtype, rng):
    """A^H = -A where it is square."""
    A = _gaussian(max(m, n), max(m, n), rng)
    return (A - A.conj().T)[:m, :n]


@family
def circulant(m, n, dtype, rng):
    """Values are magnitudes of a Fourier transform."""
    order = max(m, n)
    first = _gaussian(1, order, rng)[0]
    return first[(np.arange(m)[:, None] - np.arange(n)) % order]


@family
def vandermonde_on_the_circle(m, n, dtype, rng):
    """Powers of numbers of magnitude 1."""
    return np.exp(1j * np.outer(rng.uniform(0, 2 * np.pi, m), np.arange(n)))


@family
def channel(m, n, dtype, rng):
    """Rayleigh fading between antennas that are correlated, as in radio."""

    def root(order):
        i = np.arange(order)
        decay = np.exp(-abs(i[:, None] - i) / 3) * np.exp(0.7j * (i[:, None] - i))
        return np.linalg.cholesky(decay + 1e-12 * np.eye(order))

    return root(m) @ _gaussian(m, n, rng) @ root(n).conj().T


@family
def geometric(m, n, dtype, rng):
    """Values that fall off to 1e-12 of the largest, as of tensor networks."""
    p = min(m, n)
    Q, P = (np.linalg.qr(_gaussian(order, p, rng))[0] for order in (m, n))
    return (Q * np.geomspace(1, 1e-12, p)) @ P.conj().T


@family
def parts_apart(m, n, dtype, rng):
    """Imaginary parts far below the real ones."""
    return rng.standard_normal((m, n)) + 1j * np.finfo(dtype).eps ** 1.5 * rng.standard_normal(
        (m, n)
    )


@family
def parts_graded(m, n, dtype, rng):
    """Columns of many sizes, and either part the larger one."""
    most = 150 if dtype == np.float64 else 15
    columns = 10.0 ** rng.uniform(-most, most, n)
    ratio = 10.0 ** rng.uniform(-20, 20, (m, n))
    return columns * (rng.standard_normal((m, n)) * np.minimum(ratio, 1)) + 1j * columns * (
        rng.standard_normal((m, n)) * np.minimum(1 / ratio, 1)
    )


@family
def magnitudes_overflow(m, n, dtype, rng):
    """Parts that are numbers, of magnitudes that are none."""
    most = np.finfo(dtype).max
    sign = rng.choice([-1.0, 1.0], (2, m, n))
    spread = rng.uniform(0.9, 1, (m, n)) * float(most)
    return sign[0] * spread + 1j * (sign[1] * spread)


@family
def least_parts(m, n, dtype, rng):
    """Subnormal parts."""
    unit = float(np.finfo(dtype).smallest_subnormal)
    real, imaginary = rng.integers(-9, 10, (2, m, n))
    return real * unit + 1j * (imaginary * unit)
