"""tsvd keeps the bounds of measures.BOUNDS on matrices where LAPACK's divide and conquer fails.

testing/data/hard.npz holds the matrices, hard.json there says what LAPACK did. These tests do not
run LAPACK, as its results depend on the build: `python -m verification hard` shows them.
"""

import functools
import json

import numpy as np
import pytest

import tsvd
from test_accuracy import check_values, check_vectors
from testing.cases import DTYPES, Findings
from testing.families import BREAKING, HARD_FILE, evolved, hard, make
from testing.measures import BOUNDS, orthogonality, residual
from testing.reference import singular_values

METHODS = ("qr", "dc")


@functools.cache
def s_ref(name):
    return singular_values(*hard()[name])


@pytest.mark.parametrize("name", hard())
@pytest.mark.parametrize("method", METHODS)
def test_recorded(name, method, device):
    d, e = hard()[name]
    with Findings() as findings:
        result = tsvd.svd(d, e, method=method, device=device)
        check_vectors(findings, f"{name} {method}", d, e, result)
        check_values(findings, f"{name} {method}", result.s, s_ref(name), "auto")


@pytest.mark.parametrize("name", hard())
def test_values_of_recorded(name, values_device):
    with Findings() as findings:
        s = tsvd.svdvals(*hard()[name], method="bisect", device=values_device)
        check_values(findings, f"{name} bisect", s, s_ref(name), "bisect")


@pytest.mark.parametrize("family", (*BREAKING, "nearly_diagonal"))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_draws(family, dtype, method, device):
    """Not every matrix of a family is hard, so several random seeds are tried."""
    with Findings() as findings:
        for n in (26, 33, 52, 66, 118):
            for seed in range(1, 9):
                d, e = make(family, n, dtype, seed)
                where = f"{family} n={n} {dtype.__name__} seed={seed} {method}"
                L, s, R = tsvd.svd(d, e, method=method, device=device)
                findings.bound(where, "residual", residual(d, e, L, s, R), BOUNDS["residual"](n))
                limit = BOUNDS["orthogonality"](n)
                findings.bound(where, "orthogonality", orthogonality(L, R), limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_a_root_at_the_middle_of_two_poles(dtype, method, device):
    """The first evaluation of the secular equation finds zero. Halving further gave NaN."""
    n = 33
    d, e = np.ones(n, dtype), np.zeros(n - 1, dtype)
    d[16], e[11:16] = 2, 100 * np.finfo(dtype).eps
    with Findings() as findings:
        result = tsvd.svd(d, e, method=method, device=device)
        check_vectors(findings, method, d, e, result)
        check_values(findings, method, result.s, singular_values(d, e), "auto")


@pytest.mark.parametrize("method", METHODS)
def test_what_deflation_drops_is_small(method, device):
    """With a tolerance of 64 eps instead of eps / 2 the residual was 2.6."""
    d, e = np.zeros(33), np.zeros(32)
    d[16:21], e[15:18] = (1, 1 / 2, 1, 0, 16), (2**-21, 2**-21, 2**-26)
    with Findings() as findings:
        check_vectors(findings, method, d, e, tsvd.svd(d, e, method=method, device=device))


@pytest.mark.parametrize("name", evolved())
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lower", [False, True])
def test_evolved(name, method, lower, device):
    """These broke a bound: by deflation, whose errors added up, or by rotations that stretched."""
    d, e = evolved()[name]
    with Findings() as findings:
        L, s, R = tsvd.svd(d, e, lower=lower, method=method, device=device)
        limit = BOUNDS["residual"](d.size)
        findings.bound(name, "residual", residual(d, e, L, s, R, lower), limit)
        limit = BOUNDS["orthogonality"](d.size)
        findings.bound(name, "orthogonality", orthogonality(L, R), limit)


@pytest.mark.parametrize("method", METHODS)
def test_norms_do_not_drift(method):
    """The same small angles come again in each sweep, and stretched the vectors by 30 eps."""
    found = []
    for name, (d, e) in evolved().items():
        for n in {d.size, 20} if "orthogonality" in name else ():
            L, _, R = tsvd.svd(d[:n], e[: n - 1], method=method, device="cpu")
            eps = float(np.finfo(d.dtype).eps)
            norms = np.sum(np.float64(L) ** 2, axis=0), np.sum(np.float64(R) ** 2, axis=1)
            found += [np.max(abs(square - 1)) / eps for square in norms]
    assert found and max(found) <= 4


def test_the_record_is_of_these_matrices():
    matrices = json.loads(HARD_FILE.with_suffix(".json").read_text())["matrices"]
    assert set(matrices) == set(hard())
    for name, (d, e) in hard().items():
        facts = matrices[name]
        assert (facts["n"], facts["dtype"]) == (d.size, d.dtype.name) and e.size == d.size - 1
        assert e.dtype == d.dtype and np.isfinite(d).all() and np.isfinite(e).all()
        found = facts["lapack"]
        broken = found["info"] > 0 or not found.get("finite", True)
        assert broken or max(found["residual"], found["orthogonality"]) > 100
