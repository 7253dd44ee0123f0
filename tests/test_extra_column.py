"""n x (n+1) bidiagonal matrices, and lower ones, (n+1) x n, as Golub-Kahan-Lanczos and LSQR make
them.
"""

import functools

import numpy as np
import pytest

import tsvd
from testing import lapack
from testing.cases import DTYPES, Findings, same_bits
from testing.families import FAMILIES, make
from testing.measures import BOUNDS, orthogonality, residual, value_error
from testing.reference import singular_values

SIZES = (1, 2, 3, 5, 17, 32, 33, 100, 200)
METHODS = ("auto", "dc", "qr", "givens", "twisted")

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_family = pytest.mark.parametrize("family", FAMILIES)
every_method = pytest.mark.parametrize("method", METHODS)
both_sides = pytest.mark.parametrize("lower", [False, True])


@functools.cache
def case(family, n, dtype):
    """The first n rows of a matrix of order n + 1, with their values."""
    d, e = make(family, n + 1, dtype)
    return d[:n], e, singular_values(d[:n], e)


def dense(d, e, lower):
    n = d.size
    B = np.zeros((n, n + 1), d.dtype)
    i = np.arange(n)
    B[i, i], B[i, i + 1] = d, e
    return B.T if lower else B


def check_vectors(findings, where, d, e, result, lower, full=False):
    L, s, R = result
    n, k = d.size, s.size
    rows, columns = n + lower, n + (not lower)
    left, right = (rows if full else k), (columns if full else k)
    findings.holds(where, "the shapes", (L.shape, R.shape) == ((rows, left), (right, columns)))
    error = residual(d, e, L[:, :k], s, R[:k], lower)
    findings.bound(where, "residual", error, BOUNDS["residual"](n))
    findings.bound(where, "orthogonality", orthogonality(L, R), BOUNDS["orthogonality"](n))
    largest = L[np.argmax(abs(L[:, :k]), axis=0), np.arange(k)]
    findings.holds(where, "positive where a column of L is largest", np.all(largest > 0))


def check_values(findings, where, s, s_ref):
    top = np.longdouble(2) ** np.finfo(s.dtype).maxexp
    huge = np.isinf(s) & (s_ref >= top * (1 - 1e-5))
    error = value_error(np.where(huge, 0, s), np.where(huge, 0, s_ref))
    findings.bound(where, "value error", error, BOUNDS["values extra"](s.size))
    findings.holds(where, "non-negative", not np.signbit(s).any())
    findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))


# ---- accuracy ----


@every_family
@every_dtype
@every_method
def test_families(family, dtype, method, device):
    with Findings() as findings:
        for n in SIZES:
            d, e, s_ref = case(family, n, dtype)
            for lower in (False, True):
                where = f"{family} n={n} {dtype.__name__} {method} {lower}"
                full = n % 2 == lower
                options = {"lower": lower, "method": method, "device": device}
                result = tsvd.svd(d, e, full_matrices=full, **options)
                check_values(findings, where, result.s, s_ref)
                if np.isfinite(result.s).all():
                    check_vectors(findings, where, d, e, result, lower, full)


@every_family
@every_dtype
def test_values(family, dtype, values_device):
    with Findings() as findings:
        for n in SIZES:
            d, e, s_ref = case(family, n, dtype)
            for method in ("auto", "bisect"):
                where = f"{family} n={n} {dtype.__name__} {method}"
                s = tsvd.svdvals(d, e, lower=n % 2 > 0, method=method, device=values_device)
                check_values(findings, where, s, s_ref)


@pytest.mark.slow
@every_family
@every_dtype
def test_beyond_every_block_size(family, dtype, device):
    with Findings() as findings:
        for n in (255, 257, 520):
            d, e, s_ref = case(family, n, dtype)
            for lower in (False, True):
                where = f"{family} n={n} {dtype.__name__} {lower}"
                result = tsvd.svd(d, e, lower=lower, device=device, full_matrices=True)
                check_values(findings, where, result.s, s_ref)
                if np.isfinite(result.s).all():
                    check_vectors(findings, where, d, e, result, lower, True)


def test_as_lapack_does_it(device):
    """dlasdq, which divide and conquer of LAPACK calls for the same matrices."""
    for n in (1, 2, 7, 25, 60):
        d, e = np.random.default_rng(n).standard_normal((2, n))
        U, s, Vh = lapack.dlasdq(d, e)
        unit = (n + 8) * np.finfo(float).eps
        for lower in (False, True):
            ours = tsvd.svd(d, e, lower=lower, full_matrices=True, device=device)
            left, right = (Vh.T, U.T) if lower else (U, Vh)
            assert np.allclose(ours.s, s, rtol=0, atol=unit * s[0])
            gap = min(np.min(-np.diff(s), initial=1), s[-1]) / s[0]
            tolerance = {"rtol": 0, "atol": 20 * unit / gap}
            assert np.allclose(abs(ours.L), abs(left), **tolerance)
            assert np.allclose(abs(ours.R), abs(right), **tolerance)


# ---- null vectors ----


@both_sides
@every_method
@pytest.mark.parametrize("n", [12, 40, 130])
def test_zeros_of_its_own(n, method, lower, device):
    """B has null vectors on either side, and none of them is taken for that of the last column."""
    rng = np.random.default_rng(n)
    d, e = rng.standard_normal((2, n))
    d[[5, 8, 10]] = e[10] = e[2] = d[n - 1] = 0
    with Findings() as findings:
        for where, dd, ee in (
            ("zeros", d, e),
            ("the last entry", d, np.r_[e[:-1], 0]),
            ("all of e", d, 0 * e),
            ("all of d", 0 * d, e),
            ("all", 0 * d, 0 * e),
        ):
            options = {"lower": lower, "method": method, "device": device}
            result = tsvd.svd(dd, ee, full_matrices=True, **options)
            check_vectors(findings, where, dd, ee, result, lower, True)
            check_values(findings, where, result.s, singular_values(dd, ee))
            B, unit = dense(dd, ee, lower), 4 * (n + 8) * np.finfo(float).eps * 3
            null = B.T @ result.L[:, n] if lower else B @ result.R[n]
            findings.bound(where, "the null vector", np.linalg.norm(null), unit)


@both_sides
def test_the_null_vector_of_golub_kahan(lower):
    """Its entries are the products of -e[i] / d[i]."""
    d, e = np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 2.0])
    L, _, R = tsvd.svd(d, e, lower=lower, full_matrices=True)
    null = L[:, 3] if lower else R[3]
    exact = np.array([1 / 3, -1, 2, -1])
    assert np.allclose(null / null[0], exact / exact[0], rtol=1e-14)


# ---- options ----


@both_sides
@pytest.mark.parametrize("shape", [(5, 1), (5, 7), (2, 3, 40), (300, 20)])
@every_dtype
def test_a_batch_gives_what_its_matrices_give(shape, dtype, lower, device):
    rng = np.random.default_rng(0)
    d, e = rng.standard_normal((2, *shape)).astype(dtype)
    d[0] *= np.finfo(dtype).smallest_subnormal * 10
    e[-1] = 0
    options = {"lower": lower, "device": device, "full_matrices": True}
    together = tsvd.svd(d, e, **options)
    alone = tsvd.svdvals(d, e, lower=lower, device=device)
    with Findings() as findings:
        for at in np.ndindex(shape[:-1]):
            own = tuple(x[at] for x in together)
            check_vectors(findings, f"{at}", d[at], e[at], own, lower, True)
            check_values(findings, f"{at}", own[1], singular_values(d[at], e[at]))
            check_values(findings, f"{at} alone", alone[at], singular_values(d[at], e[at]))
            if device == "cpu":
                findings.holds(f"{at}", "the same bits", same_bits(own, tuple(
                    tsvd.svd(d[at], e[at], **options)
                )))  # fmt: skip


def test_one_side_of_a_batch(device):
    d, e = np.random.default_rng(1).standard_normal((2, 4, 6))
    d = d[:1]
    s = tsvd.svd(d, e, device=device).s
    expected = [singular_values(d[0], one) for one in e]
    assert np.allclose(s, np.float64(expected), rtol=1e-14)


@both_sides
@pytest.mark.parametrize("method", ["auto", "dc", "twisted"])
@pytest.mark.parametrize("n", [20, 150, 600])
def test_a_part_of_the_values(n, method, lower, device):
    d, e = np.random.default_rng(n).standard_normal((2, n))
    s_ref = singular_values(d, e)
    options = {"lower": lower, "method": method, "device": device}
    with Findings() as findings:
        for low, high in ((0, 0), (0, n - 1), (3, 8), (n - 5, n - 1)):
            wanted = {"select": "i", "select_range": (low, high)}
            result = tsvd.svd(d, e, full_matrices=True, **wanted, **options)
            check_vectors(findings, f"{low}", d, e, result, lower)
            check_values(findings, f"{low}", result.s, s_ref[low : high + 1])
        bounds = float(s_ref[9] + s_ref[10]) / 2, float(s_ref[2] + s_ref[3]) / 2
        result = tsvd.svd(d, e, select="v", select_range=bounds, **options)
        findings.holds("interval", "of seven values", result.s.size == 7)
        check_vectors(findings, "interval", d, e, result, lower)
        none = tsvd.svd(d, e, select="v", select_range=(1e9, 2e9), **options)
        findings.holds("no values", "empty", none.L.shape[1] == none.s.size == 0)


@pytest.mark.parametrize("power", [-1060, -1000, 1020])
def test_intervals_at_the_ends_of_the_range(power):
    d, e = np.ldexp(np.array([[1.0, 1.5, 1.25], [1.0, 0.5, 0.75]]), power)
    s = tsvd.svdvals(d, e)
    for k in range(3):
        bounds = s[k] / 1.01, s[k] * 1.01
        found = tsvd.svdvals(d, e, select="v", select_range=bounds)
        assert found.size == 1 and found[0] == s[k]


@pytest.mark.parametrize(("dtype", "digits"), [("float32", 23), ("float64", 52)])
def test_intervals_of_values_that_lie_in_the_middle_between_two_numbers(dtype, digits):
    """They are computed with more digits than denormal numbers have, and given as the even one."""
    rng, below = np.random.default_rng(0), np.finfo(dtype).smallest_subnormal
    for _ in range(300):
        n = int(rng.integers(1, 6))
        d, e = (rng.integers(0, 2**digits, (2, n)) * below).astype(dtype)
        s = tsvd.svdvals(d, e)
        for x in s:
            just_below = float(np.nextafter(x, dtype_of(dtype, -1)))
            at = tsvd.svdvals(d, e, select="v", select_range=(just_below, float(x)))
            above = tsvd.svdvals(d, e, select="v", select_range=(float(x), np.inf))
            assert np.array_equal(at, s[s == x]) and np.array_equal(above, s[s > x])


def dtype_of(dtype, x):
    return np.dtype(dtype).type(x)


@both_sides
@pytest.mark.parametrize("n", [8, 100, 400])
def test_eps(n, lower, device):
    d, e = np.random.default_rng(n).standard_normal((2, n))
    B = dense(d, e, lower)
    for method in METHODS:
        options = {"lower": lower, "method": method, "device": device}
        L, s, R = tsvd.svd(d, e, eps=1e-5, **options)
        assert abs(B - L * s @ R).max() <= 4e-5
        assert orthogonality(L, R) <= BOUNDS["orthogonality"](n)


@both_sides
def test_out_threads_and_strides(lower, device):
    d, e = np.random.default_rng(3).standard_normal((2, 90))
    expected = tsvd.svd(d, e, lower=lower, full_matrices=True, device=device)
    out = tuple(np.empty_like(x) for x in expected)
    twice = np.repeat(d, 2)[::2], e[::-1].copy()[::-1]
    for threads in (1, 3):
        options = {"lower": lower, "full_matrices": True, "device": device, "threads": threads}
        result = tsvd.svd(*twice, out=out, **options)
        assert all(x is y for x, y in zip(result, out, strict=True))
        assert same_bits(tuple(result), tuple(expected))
    with pytest.raises(ValueError, match="shape"):
        tsvd.svd(d, e, lower=not lower, out=out)


@both_sides
def test_nan_and_infinity(lower, device):
    d, e = np.ones((3, 5)), np.ones((3, 5))
    e[1, 4] = np.nan
    options = {"lower": lower, "full_matrices": True, "device": device}
    with pytest.raises(ValueError, match=r"e\[1, 4\] is nan"):
        tsvd.svd(d, e, **options)
    L, s, R = tsvd.svd(d, e, check_finite=False, **options)
    for x in (L, s, R):
        assert np.isnan(x[1]).all() and np.isfinite(x[[0, 2]]).all()
    alone = tsvd.svdvals(d, e, lower=lower, check_finite=False, device=device)
    assert np.array_equal(alone, s, equal_nan=True)


def test_order_zero_is_square():
    L, s, R = tsvd.svd([], [], full_matrices=True)
    assert L.shape == R.shape == (0, 0) and s.shape == (0,)


def test_full_matrices_of_square_ones_are_the_same():
    d, e = np.random.default_rng(0).standard_normal((2, 9))
    plain = tsvd.svd(d, e[:-1])
    assert same_bits(tuple(tsvd.svd(d, e[:-1], full_matrices=True)), tuple(plain))


def test_progress_and_info():
    d, e = np.random.default_rng(0).standard_normal((2, 500))
    done = []
    (_, s, _), info = tsvd.svd(d, e, progress=done.append, full_output=True)
    assert done[-1] == 1 and done == sorted(done)
    assert info.method in ("dc", "twisted") and s.shape == (500,)


def test_derivatives_are_refused():
    torch = pytest.importorskip("torch")
    import tsvd.torch

    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    for function in (tsvd.torch.svd, tsvd.torch.svdvals):
        with pytest.raises(ValueError, match="no derivatives"):
            function(x, x)


# ---- arrays on a device ----


@pytest.mark.cuda
@both_sides
@pytest.mark.parametrize("shape", [(1,), (60,), (700,), (500, 20), (3, 200)])
@every_dtype
def test_arrays_on_a_device(shape, dtype, lower, cuda):
    torch = pytest.importorskip("torch")
    d, e = np.random.default_rng(0).standard_normal((2, *shape)).astype(dtype)
    given = torch.from_numpy(d).cuda(), torch.from_numpy(e).cuda()
    for full in (False, True):
        options = {"lower": lower, "full_matrices": full}
        there = tsvd.svd(*given, **options)
        here = tsvd.svd(d, e, device="cuda", **options)
        assert all(type(x) is torch.Tensor and x.is_cuda for x in there)
        own = tuple(x.cpu().numpy() for x in there)
        assert same_bits(own[1], here.s)
        with Findings() as findings:
            for at in np.ndindex(shape[:-1]):
                one = tuple(x[at] for x in own)
                check_vectors(findings, f"{at} {full}", d[at], e[at], one, lower, full)
                check_values(findings, f"{at}", one[1], singular_values(d[at], e[at]))
    values = tsvd.svdvals(*given, lower=lower).cpu().numpy()
    assert np.allclose(values, own[1], rtol=1e-4 if dtype == np.float32 else 1e-12)
