"""Hypothesis draws entries over the whole range of exponents, also denormals and zeros."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tsvd
from testing.cases import DTYPES
from testing.measures import BOUNDS, orthogonality, residual, value_error
from testing.reference import singular_values

MAX_ORDER = 9


def entries(dtype):
    """Numbers up to 1/4 of the largest, so that s does not overflow."""
    info = np.finfo(dtype)
    top = float(info.max) / 4
    return st.one_of(
        st.floats(-top, top, width=info.bits),
        st.builds(
            lambda mantissa, exponent: float(np.ldexp(dtype(mantissa), exponent)),
            st.floats(-1, 1, width=info.bits),
            st.integers(info.minexp - info.nmant, info.maxexp - 3),
        ),
        st.sampled_from([0.0, -0.0, 1.0, -1.0, float(info.tiny), float(info.smallest_subnormal)]),
    )


def matrices(dtype):
    """Draws (d, e) of small orders."""
    entry = entries(dtype)
    sizes = st.integers(1, MAX_ORDER)
    pairs = sizes.flatmap(
        lambda n: st.tuples(
            st.lists(entry, min_size=n, max_size=n),
            st.lists(entry, min_size=n - 1, max_size=n - 1),
        )
    )
    return pairs.map(lambda pair: tuple(np.array(x, dtype) for x in pair))


def repeated(dtype):
    """Draws (d, e) with up to three levels of merges: repeated patterns with exceptions."""
    eps = float(np.finfo(dtype).eps)
    ordinary = st.one_of(
        st.sampled_from([0.0, 1.0, -1.0, 0.5, 1 + eps, 1 + 64 * eps, eps, 64 * eps, 1e-4]),
        st.floats(-1, 1, width=np.finfo(dtype).bits),
    )
    entry = st.one_of(ordinary, ordinary, ordinary, entries(dtype))
    pattern = st.lists(entry, min_size=1, max_size=5)
    exceptions = st.lists(st.tuples(st.integers(0, 2000), entry), max_size=4)

    def build(n, d_pattern, e_pattern, changes):
        d, e = np.resize(np.array(d_pattern, dtype), n), np.resize(np.array(e_pattern, dtype), n)
        for place, value in changes:
            (d if place % 2 else e)[place // 2 % n] = value
        return d, e[: n - 1]

    return st.builds(build, st.integers(33, 140), pattern, pattern, exceptions)


@pytest.mark.parametrize("dtype", DTYPES)
def test_divide_and_conquer(dtype, device):
    @settings(max_examples=300)
    @given(repeated(dtype))
    def check(matrix):
        d, e = matrix
        n = d.size
        L, s, R = tsvd.svd(d, e, method="dc", device=device)
        assert residual(d, e, L, s, R) <= BOUNDS["residual"](n)
        assert orthogonality(L, R) <= BOUNDS["orthogonality"](n)
        s_ref = tsvd.svdvals(d, e, method="bisect", device="cpu")
        assert value_error(s, s_ref) <= BOUNDS["values dc"](n)
        assert np.all(s[1:] <= s[:-1]) and not np.signbit(s).any()

    check()


@pytest.mark.parametrize("method", ["qr", "dc", "auto"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(method, dtype, device):
    @settings(max_examples=250)
    @given(matrices(dtype))
    def check(matrix):
        d, e = matrix
        n = d.size
        L, s, R = tsvd.svd(d, e, method=method, device=device)
        assert residual(d, e, L, s, R) <= BOUNDS["residual"](n)
        assert orthogonality(L, R) <= BOUNDS["orthogonality"](n)
        assert value_error(s, singular_values(d, e)) <= BOUNDS[f"values {method}"](n)
        assert np.all(s[1:] <= s[:-1]) and not np.signbit(s).any()

    check()


@pytest.mark.parametrize("method", ["bisect", "qr", "auto"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(method, dtype, values_device):
    @settings(max_examples=250)
    @given(matrices(dtype))
    def check(matrix):
        d, e = matrix
        s = tsvd.svdvals(d, e, method=method, device=values_device)
        assert value_error(s, singular_values(d, e)) <= BOUNDS[f"values {method}"](d.size)
        assert np.all(s[1:] <= s[:-1]) and not np.signbit(s).any()

    check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetries(dtype, values_device):
    """Signs change no bit of s; transposing and reversing change s by rounding only."""

    @settings(max_examples=200)
    @given(matrices(dtype), st.randoms(use_true_random=False))
    def check(matrix, random):
        d, e = matrix
        s = tsvd.svdvals(d, e, method="bisect", device=values_device)
        d_signs = np.array([random.choice([-1, 1]) for _ in d], dtype)
        e_signs = np.array([random.choice([-1, 1]) for _ in e], dtype)
        turned = tsvd.svdvals(d * d_signs, e * e_signs, method="bisect", device=values_device)
        assert np.array_equal(s, turned)
        lower = tsvd.svdvals(d, e, lower=True, method="bisect", device=values_device)
        assert value_error(s, lower) <= BOUNDS["values bisect"](d.size)
        reversed_ = tsvd.svdvals(d[::-1], e[::-1], method="bisect", device=values_device)
        assert value_error(s, reversed_) <= 2 * BOUNDS["values bisect"](d.size)

    check()
