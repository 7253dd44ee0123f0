"""Programs in which `from tsvd import linalg` takes the place of `from numpy import linalg`.

Each script is a published example, and is run with both. Then functions of NumPy and SciPy
themselves run with tsvd's in place of those that they call.
"""

import numpy as np
import pytest
import scipy.optimize
import scipy.signal
import scipy.spatial

import tsvd.linalg

NAMES = ("svd", "svdvals", "inv", "pinv", "lstsq", "matrix_rank", "cond")


class Counted:
    """The functions of a module, and how often they were called."""

    def __init__(self, module):
        self._module = module
        self.calls = 0

    def __getattr__(self, name):
        function = getattr(self._module, name)

        def counted(*arguments, **options):
            self.calls += 1
            return function(*arguments, **options)

        return counted


# ---- scikit-learn ----


def ridge_path(linalg):
    """Of "Plot Ridge coefficients as a function of the L2 regularization": Hilbert's matrix, by the
    solver "svd".
    """
    X = 1.0 / (np.arange(1, 11) + np.arange(0, 10)[:, np.newaxis])
    y = np.ones(10)
    U, s, Vh = linalg.svd(X, full_matrices=False)
    coefficients = []
    for alpha in np.logspace(-5, -2, 50):
        d = s / (s**2 + alpha)
        coefficients.append(Vh.T @ (d * (U.T @ y)))
    return np.array(coefficients), linalg.norm(coefficients, 2, axis=(0, 1))


def polynomial_interpolation(linalg):
    """Of "Polynomial and Spline interpolation": 6 points of x sin x, and degrees 3 to 5."""
    x = np.linspace(0, 10, 100)
    rng = np.random.RandomState(0)
    x_train = np.sort(rng.choice(x, size=6, replace=False))
    y_train = x_train * np.sin(x_train)
    curves = []
    for degree in (3, 4, 5):
        X = np.vander(x_train, degree + 1, increasing=True)
        w, _, rank, _ = linalg.lstsq(X, y_train, rcond=None)
        assert rank == degree + 1 == linalg.matrix_rank(X)
        curves.append(np.vander(x, degree + 1, increasing=True) @ w)
    return (np.array(curves),)


def principal_components(linalg):
    """Of "PCA example with Iris Data-set", with other data: what PCA(whiten=True) computes, with
    the signs of svd_flip.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4)) @ rng.standard_normal((4, 12)) + rng.standard_normal(12)
    X += 0.01 * rng.standard_normal(X.shape)
    centred = X - X.mean(axis=0)
    U, s, Vh = linalg.svd(centred, full_matrices=False)
    signs = np.sign(U[np.argmax(abs(U), axis=0), np.arange(U.shape[1])])
    variance = s**2 / (len(X) - 1)
    return U * signs * np.sqrt(len(X) - 1), Vh * signs[:, None], variance / variance.sum()


# ---- statsmodels ----

# Employment, GNP deflator, GNP, unemployed, armed forces, population, year: Longley (1967).
LONGLEY = """
60323 83 234289 2356 1590 107608 1947    61122 88.5 259426 2325 1456 108632 1948
60171 88.2 258054 3682 1616 109773 1949  61187 89.5 284599 3351 1650 110929 1950
63221 96.2 328975 2099 3099 112075 1951  63639 98.1 346999 1932 3594 113270 1952
64989 99 365385 1870 3547 115094 1953    63761 100 363112 3578 3350 116219 1954
66019 101.2 397469 2904 3048 117388 1955 67857 104.6 419180 2822 2857 118734 1956
68169 108.4 442769 2936 2798 120445 1957 66513 110.8 444546 4681 2637 121950 1958
68655 112.6 482704 3813 2552 123366 1959 69564 114.2 502601 3931 2514 125368 1960
69331 115.7 518173 4806 2572 127852 1961 70551 116.9 554894 4007 2827 130081 1962
"""
# Of NIST's Statistical Reference Datasets.
CERTIFIED = [
    *(-3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683),
    *(-1.03322686717359, -0.511041056535807e-01, 1829.15146461355),
]


def ordinary_least_squares(linalg):
    """Of "Ordinary Least Squares", multicollinearity: OLS.fit(method="pinv") of Longley's data,
    whose columns nearly depend on each other.
    """
    data = np.array(LONGLEY.split(), float).reshape(16, 7)
    y, X = data[:, 0], np.column_stack([np.ones(16), data[:, 1:]])
    inverse = linalg.pinv(X, rcond=1e-15)
    beta = inverse @ y
    residuals = y - X @ beta
    scale = residuals @ residuals / (len(y) - linalg.matrix_rank(X))
    errors = np.sqrt(scale * np.diag(inverse @ inverse.T))
    r_squared = 1 - residuals @ residuals / np.sum((y - y.mean()) ** 2)
    return beta, errors, r_squared, linalg.cond(X / linalg.norm(X, axis=0))


# ---- SciPy's cookbook ----


def savitzky_golay(linalg):
    """Of "Savitzky Golay Filtering": the coefficients are a row of a pseudo-inverse."""
    t = np.linspace(-4, 4, 500)
    y = np.exp(-(t**2)) + np.random.default_rng(0).normal(0, 0.05, t.shape)
    half, order, smooth = 15, 4, []
    b = np.array([[k**i for i in range(order + 1)] for k in range(-half, half + 1)], float)
    first = y[0] - abs(y[1 : half + 1][::-1] - y[0])
    last = y[-1] + abs(y[-half - 1 : -1][::-1] - y[-1])
    padded = np.concatenate((first, y, last))
    for derivative in (0, 1):
        m = linalg.pinv(b)[derivative]
        smooth.append(np.convolve(m[::-1], padded, mode="valid"))
    return (np.array(smooth),)


def rank_and_null_space(linalg):
    """Of "Rank and nullspace of a matrix": the null space by its projector."""
    a = np.arange(24.0).reshape(6, 4)
    _, s, vh = linalg.svd(a)
    kept = (s >= max(1e-13, 1e-12 * s[0])).sum()
    ns = vh[kept:].conj().T
    return kept, ns @ ns.T, a @ ns + 1, linalg.svdvals(a)[:kept]


SCRIPTS = [
    *(ridge_path, polynomial_interpolation, principal_components),
    *(ordinary_least_squares, savitzky_golay, rank_and_null_space),
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_gives_the_same(script):
    ours = Counted(tsvd.linalg)
    found, expected = script(ours), script(np.linalg)
    assert ours.calls > 0
    for x, y in zip(found, expected, strict=True):
        assert isinstance(x, np.ndarray) == isinstance(y, np.ndarray)
        assert np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype
        assert np.allclose(x, y, rtol=1e-7, atol=1e-10 * np.max(abs(y)))


def test_least_squares_of_longley_have_the_certified_digits():
    assert np.allclose(ordinary_least_squares(tsvd.linalg)[0], CERTIFIED, rtol=1e-7)


# ---- functions of NumPy and SciPy ----


def fitted_polynomial():
    x = np.linspace(-3, 5, 60)
    return np.polynomial.Polynomial.fit(x, np.sin(x), 9).convert().coef


def bounded_least_squares():
    rng = np.random.default_rng(0)
    result = scipy.optimize.lsq_linear(rng.random((40, 6)), rng.random(40), (-1, 1))
    return np.append(result.x, result.cost)


def placed_poles():
    """Example 1 of scipy.signal.place_poles."""
    A = np.array(
        [
            [1.380, -0.2077, 6.715, -5.676],
            [-0.5814, -4.290, 0, 0.6750],
            [1.067, 4.273, -6.654, 5.893],
            [0.0480, 4.273, 1.343, -2.104],
        ]
    )
    B = np.array([[0, 5.679], [1.136, 1.136], [0, 0], [-3.146, 0]])
    poles = [-0.2, -0.5, -5.0566, -8.6659]
    gain = scipy.signal.place_poles(A, B, poles, method="KNV0").gain_matrix
    return np.sort(np.linalg.eigvals(A - B @ gain).real)


@pytest.mark.parametrize("call", [fitted_polynomial, bounded_least_squares, placed_poles])
def test_functions_of_others_call_ours(call, monkeypatch):
    expected, ours = call(), Counted(tsvd.linalg)
    for name in NAMES:
        monkeypatch.setattr(np.linalg, name, getattr(ours, name))
    assert np.allclose(call(), expected, rtol=1e-8)
    assert ours.calls > 0


def test_procrustes_of_scipy_calls_ours(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.random((9, 3)), rng.random((9, 3))
    expected, ours = scipy.spatial.procrustes(a, b), Counted(tsvd.linalg)
    monkeypatch.setattr(
        scipy.spatial._procrustes, "orthogonal_procrustes", ours.orthogonal_procrustes
    )
    found = scipy.spatial.procrustes(a, b)
    assert ours.calls == 1
    assert all(np.allclose(x, y) for x, y in zip(found, expected, strict=True))
