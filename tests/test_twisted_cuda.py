"""Twisted factorisations on a CUDA device."""

import numpy as np
import pytest

import tsvd
from test_twisted import APART, _nasty, check, check_few, check_small_last_value
from testing.cases import DTYPES, Findings, same_bits
from testing.families import FAMILIES, make
from testing.measures import orthogonality, residual, value_error
from tsvd import _core

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

# The largest orders whose probes are one kernel, and whose values a kernel of their own finds.
SMALL = [_core.tuning()[name] for name in ("PROBE_SMALL_ORDER", "VALUES_SMALL_ORDER")]


def twisted(d, e, *, fallback=1, **options):
    options = {"method": "twisted", "tuning": {"fallback": fallback}} | options
    return tsvd.svd(d, e, device="cuda", full_output=True, **options)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_families(family, dtype):
    with Findings() as findings:
        for n in (1, 2, 3, 17, 32, 33, 65, 100):
            d, e = make(family, n, dtype)
            for method in ("twisted", "auto"):
                result, info = twisted(d, e, method=method)
                where = f"{family} n={n} {dtype.__name__} {method}: {info.method}"
                check(findings, where, d, e, result)
                findings.holds(where, "why dc", info.method != "dc" or info.refused > 0)


@pytest.mark.parametrize("n", [*(n + k for n in SMALL for k in (-1, 0, 1)), 2500])
@pytest.mark.parametrize("dtype", DTYPES)
def test_orders_around_the_limits(n, dtype):
    """Of the one kernel for probes, and of the values of small matrices."""
    with Findings() as findings:
        for family in APART:
            d, e = make(family, n, dtype)
            where = f"{family} n={n} {dtype.__name__}"
            result, info = twisted(d, e, fallback=0)
            findings.bound(where, "residual", residual(d, e, *result), 1)
            findings.bound(where, "orthogonality", orthogonality(result.L, result.R), 1)
            s = tsvd.svdvals(d, e, device="cuda")
            findings.bound(where, "distance", value_error(result.s, s), 2)
            findings.holds(where, "by twisted", info.method == "twisted" and info.refused == 0)
            lower = twisted(d, e, fallback=0, lower=True)[0]
            findings.bound(where, "lower", residual(d, e, *lower, lower=True), 1)


# With 2n + 1 = 6003 many values of toeplitz have pivots that are exactly zero.
@pytest.mark.parametrize("n", [SMALL[1] + 1, 1056, 1500, 3001])
@pytest.mark.parametrize("dtype", DTYPES)
def test_chains_in_pieces(n, dtype):
    with Findings() as findings:
        for family in APART:
            d, e = make(family, n, dtype)
            for low, high in ((0, n - 1), (0, 0), (0, 99), (n // 2, n // 2 + 32), (n - 40, n - 1)):
                where = f"{family} n={n} {low}-{high} {dtype.__name__}"
                result = twisted(d, e, fallback=0, select="i", select_range=(low, high))[0]
                findings.bound(where, "residual", residual(d, e, *result), 1)
                findings.bound(where, "orthogonality", orthogonality(result.L, result.R), 1)
                s = tsvd.svdvals(d, e, device="cuda")[low : high + 1]
                findings.bound(where, "distance", value_error(result.s, s), 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_close_values_of_a_large_matrix(dtype):
    """As in test_twisted.py."""
    d, e = make("toeplitz", 100_000, dtype)
    check_few(d, e, *twisted(d, e, fallback=0, select="i", select_range=(0, 9)))


@pytest.mark.parametrize("n", [2000, 10_000, 100_000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_small_last_value(n, dtype):
    check_small_last_value(twisted, n, dtype, "cuda")


@pytest.mark.parametrize("family", ["blocks_mirrored", "runs_glued", "ladders_repeated", "jordan"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_chains_that_are_hard_to_join(family, dtype):
    with Findings() as findings:
        for n in (1100, 2000):
            d, e = make(family, n, dtype)
            result, info = twisted(d, e)
            check(findings, f"{family} n={n} {dtype.__name__}: {info.method}", d, e, result)


@pytest.mark.parametrize("name", _nasty())
@pytest.mark.parametrize("dtype", DTYPES)
def test_nasty(name, dtype):
    d, e = (x.astype(dtype) for x in _nasty()[name])
    with Findings() as findings:
        check(findings, name, d, e, twisted(d, e)[0])


@pytest.mark.parametrize("n", [50, 120, 1500])
@pytest.mark.parametrize("family", ["many_equal", "clustered", "zero_middle", "graded_both"])
def test_refused(family, n):
    d, e = make(family, n)
    result, info = twisted(d, e)
    assert info.method == "dc" and 0 < info.refused <= n
    assert same_bits(tuple(result), tuple(tsvd.svd(d, e, method="dc", device="cuda")))
    with pytest.raises(np.linalg.LinAlgError, match=rf"twisted refused .* of {n} values"):
        twisted(d, e, fallback=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranges_are_parts_of_the_whole(dtype):
    for n in (50, 150, 1100):
        d, e = make("toeplitz", n, dtype)
        L, s, R = twisted(d, e, fallback=0)[0]
        for low, high in ((0, 0), (0, 9), (n // 2, n // 2 + 20), (n - 1, n - 1), (3, n - 2)):
            part = twisted(d, e, fallback=0, select="i", select_range=(low, high))[0]
            wanted = slice(low, high + 1)
            if n <= SMALL[1]:  # else values are searched for together
                assert same_bits(part.s, s[wanted]) and same_bits(part.R, R[wanted])
                assert np.array_equal(part.L, L[:, wanted])
            assert np.allclose(part.s, s[wanted], rtol=4 * np.finfo(dtype).eps)
            assert orthogonality(part.L, part.R) <= 1


def test_scaled():
    d, e = make("chi", 77)
    plain = twisted(d, e, fallback=0)[0]
    for power in (-900, 900):
        there = twisted(np.ldexp(d, power), np.ldexp(e, power), fallback=0)[0]
        assert same_bits(there.s, np.ldexp(plain.s, power))
        assert same_bits(tuple(there[::2]), tuple(plain[::2]))


@pytest.mark.parametrize(
    ("family", "n", "method"),
    [
        ("toeplitz", 40, "twisted"),
        ("uniform_1", 500, "twisted"),
        ("chi", 4096, "twisted"),
        ("toeplitz", 4096, "twisted"),
        ("uniform_1", 4096, "dc"),
        ("identity", 4096, "dc"),
        ("jordan", 4096, "dc"),
    ],
)
def test_auto(family, n, method):
    d, e = make(family, n)
    result, info = tsvd.svd(d, e, device="cuda", full_output=True)
    assert info.method == method
    assert same_bits(tuple(result), tuple(tsvd.svd(d, e, device="cuda", method=method)))
    assert tsvd.svd(d, e, device="cuda", eps=1e-3, full_output=True)[1].method == "dc"


def test_the_same_bits_again_and_on_the_way_to_the_host():
    d, e = make("chi", 2600)
    first = tsvd.svd(d, e, device="cuda")
    out = tuple(np.ones(x.shape) for x in first)
    for _ in range(5):
        tsvd.svd(d, e, device="cuda", out=out)
        assert same_bits(out, tuple(first))
