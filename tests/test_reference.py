"""Tests of the reference (against mpmath) and of the measures (against known errors)."""

import mpmath
import numpy as np
import pytest

from testing import measures
from testing.families import FAMILIES, make
from testing.reference import FLOOR, singular_values

DIGITS = 700  # mpmath's errors are relative to the norm; entries differ by up to 10^632


def exact(x):
    """The longdouble x as an mpmath number, without rounding."""
    mantissa, exponent = np.frexp(np.longdouble(x))
    high = float(mantissa)
    low = float(mantissa - np.longdouble(high))
    return mpmath.ldexp(mpmath.mpf(high) + mpmath.mpf(low), int(exponent))


def with_mpmath(d, e):
    B = mpmath.matrix(d.size)
    for i in range(d.size):
        B[i, i] = mpmath.mpf(float(d[i]))
    for i in range(e.size):
        B[i, i + 1] = mpmath.mpf(float(e[i]))
    return sorted(mpmath.svd_r(B, compute_uv=False), reverse=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_reference_against_mpmath(family):
    with mpmath.workdps(DIGITS):
        for n in (1, 2, 6):
            d, e = make(family, n)
            for ours, theirs in zip(singular_values(d, e), with_mpmath(d, e), strict=True):
                unit = max(theirs, exact(FLOOR)) * mpmath.mpf(2) ** -58
                assert abs(exact(ours) - theirs) <= unit, (n, float(ours))


def test_reference_of_long_matrices():
    """The values of d = e = 1 are 2 cos(k pi / (2n + 1))."""
    n = 200
    angle = np.arange(1, n + 1) * (np.arctan(np.longdouble(1)) * 4) / (2 * n + 1)
    error = singular_values(np.ones(n), np.ones(n - 1)) / (2 * np.cos(angle)) - 1
    assert np.max(abs(error)) < 2.0**-54


def test_reference_takes_float32_as_it_is():
    d, e = make("uniform_1", 40, np.float32)
    assert np.array_equal(singular_values(d, e), singular_values(d.astype(float), e.astype(float)))


def test_reference_without_good_hints(monkeypatch):
    d, e = make("chi", 60)
    hinted = singular_values(d, e)
    monkeypatch.setattr(np.linalg, "svd", lambda B, compute_uv: np.full(len(B), 3.0))
    assert np.max(abs(singular_values(d, e) / hinted - 1)) < 2.0**-57


def test_reference_of_nothing():
    assert singular_values(np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.0**1000, 2.0**-1000])
def test_measures_see_an_error(lower, scale):
    """Puts a known error into an exact decomposition; the measures show it."""
    n, eps = 30, np.finfo(float).eps
    rng = np.random.default_rng(5)
    d, e = rng.uniform(1, 2, n) * scale, rng.uniform(1, 2, n - 1) * scale
    B = (np.diag(d) + np.diag(e, -1 if lower else 1)) / scale
    L, s, R = np.linalg.svd(B)
    s *= scale
    norm = np.linalg.norm(B)

    assert measures.residual(d, e, L, s, R, lower) < 1
    assert measures.orthogonality(L, R) < 1
    assert measures.max_abs_error(d, e, L, s, R, lower) < 1e-13 * scale

    wrong = s.copy()
    wrong[3] += 1e-6 * scale
    expected = 1e-6 / ((n + 8) * eps * norm)
    assert measures.residual(d, e, L, wrong, R, lower) == pytest.approx(expected, rel=1e-3)
    expected = 1e-6 * scale * np.max(abs(np.outer(L[:, 3], R[3])))
    assert measures.max_abs_error(d, e, L, wrong, R, lower) == pytest.approx(expected, rel=1e-3)
    wrong = L.copy()
    wrong[:, 2] *= 1 + 1e-7
    expected = 2e-7 / ((n + 8) * eps)
    assert measures.orthogonality(wrong, R) == pytest.approx(expected, rel=1e-3)
    assert measures.orthogonality(L.T, wrong.T) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_error_counts_ulps(dtype):
    s_ref = np.array([4, 1, 0, 0], dtype)
    s = s_ref.copy()
    assert measures.value_error(s, s_ref) == 0
    s[1] += 3 * np.finfo(dtype).eps
    assert measures.value_error(s, s_ref) == 3
    s[2] = 5 * np.finfo(dtype).smallest_subnormal
    assert measures.value_error(s, s_ref) == 5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_work_for_every_size(family, dtype):
    for n in (0, 1, 2, 3, 22, 33):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            d, e = make(family, n, dtype)
        assert d.shape == (n,) and e.shape == (max(n - 1, 0),)
        assert d.dtype == e.dtype == dtype
        assert np.isfinite(d).all() and np.isfinite(e).all()
        again = make(family, n, dtype)
        assert np.array_equal(d, again[0]) and np.array_equal(e, again[1])
