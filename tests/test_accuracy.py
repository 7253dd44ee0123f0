"""Every family, size, dtype, method and device keeps the bounds of measures.BOUNDS."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import tsvd
from testing.cases import DTYPES, SIZES, Findings, case, norm, real_cases
from testing.families import FAMILIES, make
from testing.measures import BOUNDS, max_abs_error, orthogonality, residual, value_error
from testing.reference import singular_values

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_family = pytest.mark.parametrize("family", FAMILIES)


def check_vectors(findings, where, d, e, result, lower=False):
    L, s, R = result
    n = s.size
    findings.bound(where, "residual", residual(d, e, L, s, R, lower), BOUNDS["residual"](n))
    findings.bound(where, "orthogonality", orthogonality(L, R), BOUNDS["orthogonality"](n))
    largest = L[np.argmax(abs(L), axis=0), np.arange(n)] if n else L[0:0]
    findings.holds(where, "positive where a column of L is largest", np.all(largest > 0))


def check_values(findings, where, s, s_ref, bound):
    limit = BOUNDS[f"values {bound}"](s.size)
    findings.bound(where, f"value error of {bound}", value_error(s, s_ref), limit)
    findings.holds(where, "non-negative", not np.signbit(s).any())
    findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))


@every_family
@every_dtype
@pytest.mark.parametrize("method", ["qr", "dc", "auto"])
def test_svd(family, dtype, method, device):
    with Findings() as findings:
        for n in SIZES:
            d, e, s_ref = case(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__} {method}"
            result = tsvd.svd(d, e, method=method, device=device)
            check_vectors(findings, where, d, e, result)
            check_values(findings, where, result.s, s_ref, method)


@every_family
@every_dtype
@pytest.mark.parametrize("method", ["bisect", "qr", "auto"])
def test_svdvals(family, dtype, method, values_device):
    with Findings() as findings:
        for n in SIZES:
            d, e, s_ref = case(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__} {method}"
            s = tsvd.svdvals(d, e, method=method, device=values_device)
            findings.holds(where, f"an s of shape ({n},) and {dtype}", s.shape == (n,))
            findings.holds(where, f"of {dtype}", s.dtype == dtype)
            check_values(findings, where, s, s_ref, method)


@every_family
@every_dtype
def test_svd_and_svdvals_agree(family, dtype, values_device):
    with Findings() as findings:
        for n in SIZES:
            d, e, _ = case(family, n, dtype)
            for method in ("qr", "dc", "auto"):
                where = f"{family} n={n} {dtype.__name__} {method}"
                s = tsvd.svd(d, e, method=method, device=values_device).s
                alone = tsvd.svdvals(d, e, method=method, device=values_device)
                findings.bound(where, "difference", value_error(s, alone), BOUNDS["values qr"](n))


@every_family
@every_dtype
@pytest.mark.parametrize("method", ["dc", "auto"])
def test_lower(family, dtype, method, device):
    with Findings() as findings:
        for n in (0, 1, 2, 3, 17, 64):
            d, e, s_ref = case(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__} {method} lower"
            result = tsvd.svd(d, e, lower=True, method=method, device=device)
            check_vectors(findings, where, d, e, result, lower=True)
            check_values(findings, where, result.s, s_ref, method)


@every_family
@every_dtype
def test_svdvals_of_lower(family, dtype, values_device):
    with Findings() as findings:
        for n in (0, 1, 2, 3, 17, 64):
            d, e, s_ref = case(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__} lower"
            s = tsvd.svdvals(d, e, lower=True, method="bisect", device=values_device)
            check_values(findings, where, s, s_ref, "bisect")


# Around the orders at which work is cut into tasks, panels and windows.
LARGE_SIZES = (255, 256, 257, 520)


@pytest.mark.slow
@every_family
@every_dtype
def test_beyond_every_block_size(family, dtype, device):
    """The reference is bisection, which the next test covers."""
    with Findings() as findings:
        for n in LARGE_SIZES:
            d, e = make(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__}"
            result = tsvd.svd(d, e, device=device)
            check_vectors(findings, where, d, e, result)
            check_values(findings, where, result.s, tsvd.svdvals(d, e, method="bisect"), "auto")


@pytest.mark.slow
@every_family
@every_dtype
def test_svdvals_beyond_every_block_size(family, dtype, values_device):
    with Findings() as findings:
        for n in LARGE_SIZES:
            d, e, s_ref = case(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__}"
            s = tsvd.svdvals(d, e, method="bisect", device=values_device)
            check_values(findings, where, s, s_ref, "bisect")


@pytest.mark.parametrize(("n", "dtype"), [(520, np.float64), (700, np.float64), (1024, np.float32)])
@pytest.mark.parametrize("method", ["qr", "bisect", "auto"])
def test_pairs_of_values_stay_in_order(n, dtype, method, values_device):
    """Values that differ by rounding, each found by itself, could come out in the wrong order."""
    d, e = make("wilkinson", n, dtype)
    s = tsvd.svdvals(d, e, method=method, device=values_device)
    assert np.all(s[1:] <= s[:-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["qr", "dc", "auto"])
def test_values_above_the_largest_number_become_infinity(dtype, method, device):
    """d = e = the largest number: the values are 1.6 and 0.6 of it."""
    top = np.finfo(dtype).max
    d, e = np.full(2, top), np.full(1, top)
    L, s, R = tsvd.svd(d, e, method=method, device=device)
    assert np.isposinf(s[0]) and value_error(s[1:], singular_values(d, e)[1:]) <= 8
    assert orthogonality(L, R) <= BOUNDS["orthogonality"](2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_svdvals_above_the_largest_number_become_infinity(dtype, values_device):
    top = np.finfo(dtype).max
    d, e = np.full(2, top), np.full(1, top)
    s = tsvd.svdvals(d, e, method="bisect", device=values_device)
    assert np.isposinf(s[0]) and value_error(s[1:], singular_values(d, e)[1:]) <= 4


@pytest.mark.parametrize("name", real_cases())
@every_dtype
def test_real_matrices(name, dtype, device):
    d, e, s_ref = real_cases()[name]
    if dtype != d.dtype:
        d, e = d.astype(dtype), e.astype(dtype)
        s_ref = None
    with Findings() as findings:
        for method in ("qr", "dc", "auto"):
            result = tsvd.svd(d, e, method=method, device=device)
            check_vectors(findings, f"{name} {method}", d, e, result)
            if s_ref is not None:
                check_values(findings, f"{name} {method}", result.s, s_ref, method)


@pytest.mark.parametrize("name", real_cases())
def test_svdvals_of_real_matrices(name, values_device):
    d, e, s_ref = real_cases()[name]
    with Findings() as findings:
        s = tsvd.svdvals(d, e, method="bisect", device=values_device)
        check_values(findings, f"{name} bisect", s, s_ref, "bisect")


SEPARATED = ("uniform_1", "uniform_1000", "normal", "chi", "ascending", "graded_gently")


@pytest.mark.parametrize("family", (*SEPARATED, "toeplitz", "zeros_many", "wilkinson_glued"))
def test_lapack_agrees(family, device):
    """A second opinion where LAPACK is good: matrices of ordinary size."""
    n, eps = 100, np.finfo(float).eps
    d, e, _ = case(family, n, np.float64)
    B = np.diag(d) + np.diag(e, 1)
    L, s, R = tsvd.svd(d, e, device=device)
    for driver in ("gesdd", "gesvd"):
        U, sigma, Vh = scipy.linalg.svd(B, lapack_driver=driver)
        assert np.max(abs(s - sigma)) <= 4 * n * eps * s[0], driver
        if family in SEPARATED:
            gap = np.min(abs(np.diff(s)), initial=s[-1])
            turned = abs(abs(np.sum(L * U, axis=0)) - 1), abs(abs(np.sum(R * Vh, axis=1)) - 1)
            assert np.max(turned) <= 4 * n * eps * s[0] / gap, driver


@every_dtype
@pytest.mark.parametrize("method", ["qr", "dc", "twisted", "auto"])
def test_blocks_on_which_sweeps_of_one_direction_do_not_converge(method, dtype, device):
    """The shift equals the first entry: each sweep permutes the entries."""
    digits = np.finfo(dtype).nmant
    found = [([1, 1, 1 + 2.0**-29, 1], [-28, -48, -44])] if digits > 29 else []
    for p in range(7, digits - 2, 5):
        for i, j, k in itertools.product((p - 2, p), range(p, digits, 4), range(p, digits, 3)):
            found.append(([1, 1, 1 + 2.0**-p, 1], [-i, -j, -k]))
    with Findings() as findings:
        for d, powers in found:
            d, e = np.array(d, dtype), (2.0 ** np.array(powers)).astype(dtype)
            result = tsvd.svd(d, e, method=method, device=device)
            check_vectors(findings, f"{d} {powers}", d, e, result)


@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
@every_dtype
@pytest.mark.parametrize("method", ["qr", "givens", "dc", "auto"])
def test_eps_bounds_the_error_of_b(eps, dtype, method, device):
    """max |B - L S R| <= 4 eps + the bound at full accuracy; L and R stay orthogonal."""
    some = ("uniform_1", "normal", "chi", "graded_gently", "zeros_off", "many_equal", "diagonal")
    with Findings() as findings:
        for family in some:
            for n in (1, 2, 3, 5, 33):
                d, e, _ = case(family, n, dtype)
                where = f"{family} n={n} {dtype.__name__} {method} eps={eps}"
                unit = (n + 8) * float(np.finfo(dtype).eps)
                L, s, R = tsvd.svd(d, e, method=method, eps=eps, device=device)
                limit = 4 * eps + BOUNDS["residual"](n) * unit * norm(d, e)
                findings.bound(where, "max |B - L S R|", max_abs_error(d, e, L, s, R), limit)
                findings.bound(where, "orthogonality", orthogonality(L, R), 3)
                findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))
                findings.holds(where, "non-negative", not np.signbit(s).any())


@every_dtype
@pytest.mark.parametrize("method", ["qr", "bisect", "auto", "givens"])
def test_eps_bounds_the_error_of_values(method, dtype, values_device):
    """Where eps is small the rounding errors of many rotations do not show."""
    some = ("uniform_1", "normal", "chi", "graded_gently", "diagonal")
    with Findings() as findings:
        for family, n in (*itertools.product(some, (33,)), ("chi", 300)):
            d, e, s_ref = case(family, n, dtype)
            for eps in (1e-2, 1e-5, 1e-10):
                s = tsvd.svdvals(d, e, method=method, eps=eps, device=values_device)
                limit = 4 * eps + BOUNDS["values qr"](n) * np.finfo(dtype).eps * s[0]
                where = f"{family} n={n} {dtype.__name__} {method} eps={eps}"
                findings.bound(where, "max |s - s_ref|", float(np.max(abs(s - s_ref))), limit)


def test_entries_below_eps_count_as_zero(device):
    """A large eps makes every method take the diagonal as it is."""
    d, e = np.array([3.0, -1.0, 2.0]), np.array([1e-3, -1e-3])
    for method in ("qr", "givens", "dc", "auto"):
        s = tsvd.svd(d, e, method=method, eps=1e-2, device=device).s
        assert np.array_equal(s, [3, 2, 1]), method
        s = tsvd.svd(d, e, method=method, eps=1e-5, device=device).s
        assert not np.array_equal(s, [3, 2, 1]), method
