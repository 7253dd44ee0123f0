"""Twisted factorisations: accuracy, gates, the way to divide and conquer, ranges, the same bits."""

import textwrap

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, Findings, same_bits
from testing.families import FAMILIES, make
from testing.measures import BOUNDS, orthogonality, residual, value_error
from testing.processes import run
from tsvd import _core

SIZES = (1, 2, 3, 17, 100)
AUTO_ORDER = _core.tuning()["CPU_TWISTED_ORDER"]  # from it on "auto" tries them for all values
# Families whose values stand apart, at any order.
APART = ("uniform_1", "normal", "chi", "toeplitz", "alternating", "ascending", "graded_gently")


def twisted(d, e, *, fallback=1, threads=None, **options):
    """The result and its SVDInfo."""
    options |= {"threads": threads, "tuning": {"fallback": fallback}}
    return tsvd.svd(d, e, method="twisted", device="cpu", full_output=True, **options)


def check(findings, where, d, e, result, lower=False):
    """The reference is bisection, which test_accuracy.py covers."""
    L, s, R = result
    s_ref = tsvd.svdvals(d, e, method="bisect", device="cpu")
    n = d.size
    findings.bound(where, "residual", residual(d, e, L, s, R, lower), BOUNDS["residual"](n))
    findings.bound(where, "orthogonality", orthogonality(L, R), BOUNDS["orthogonality"](n))
    findings.bound(where, "value error", value_error(s, s_ref), BOUNDS["values twisted"](n))
    findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))
    largest = L[np.argmax(abs(L), axis=0), np.arange(s.size)]
    findings.holds(where, "positive where a column of L is largest", np.all(largest > 0))


def check_few(d, e, result, info):
    """Few values of a matrix that is too large for a reference; none was refused."""
    assert info.method == "twisted" and info.refused == 0
    assert residual(d, e, *result) <= 2 and orthogonality(result.L, result.R) <= 3


def check_small_last_value(twisted, n, dtype, device):
    """The search knows it to 2^-50 of the largest value, few digits of its own."""
    d, e = np.ones(n, dtype), np.full(n - 1, 0.5, dtype)
    last = {"select": "i", "select_range": (n - 2, n - 1)}
    for power in range(-40, -20, 3):
        for factor in (1, 1.37, 1.9):
            d[n // 2] = factor * 2.0**power
            result, info = twisted(d, e, fallback=0, **last)
            check_few(d, e, result, info)
            assert value_error(result.s, tsvd.svdvals(d, e, device=device, **last)) <= 2


# ---- accuracy ----


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_families(family, dtype):
    with Findings() as findings:
        for n in SIZES:
            d, e = make(family, n, dtype)
            result, info = twisted(d, e)
            where = f"{family} n={n} {dtype.__name__} {info.method}"
            check(findings, where, d, e, result)
            findings.holds(
                where, "told why the method changed", (info.refused > 0) == (info.method == "dc")
            )


@pytest.mark.parametrize("n", [2000, 20_000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_small_last_value(n, dtype):
    check_small_last_value(twisted, n, dtype, "cpu")


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_stand_apart_are_not_refused(dtype):
    """The values are those of bisection, but for an ulp."""
    with Findings() as findings:
        for family in APART:
            for n in (1, 2, 3, 16, 17, 100, 203):  # 3 divides 2n + 1 for 1, 16, 100
                d, e = make(family, n, dtype)
                where = f"{family} n={n} {dtype.__name__}"
                result, info = twisted(d, e, fallback=0)
                check(findings, where, d, e, result)
                findings.bound(where, "orthogonality", orthogonality(*result[::2]), 0.4)
                bisected = tsvd.svdvals(d, e, method="bisect", device="cpu")
                findings.bound(where, "distance", value_error(result.s, bisected), 1)
                findings.holds(where, "by twisted", info.method == "twisted" and not info.refused)


def _powers_of_two(low, rng, n=150):
    def entries(size):
        return np.ldexp(rng.choice([-1.0, 1.0], size), rng.integers(low, 1, size))

    return entries(n), entries(n - 1)


def _nasty():
    """Matrices on both sides of the gates: name -> (d, e)."""
    rng = np.random.default_rng(14)
    ones = np.ones(99)
    found = {f"powers of two from 2^{low}": _powers_of_two(low, rng) for low in (-3, -100, -1070)}
    for glue in (1e-3, 1e-8, 1e-13, 1e-16, 1e-40, 0.0):
        e = np.ones(98)
        e[[32, 65]] = glue
        found[f"Toeplitz glued by {glue}"] = (ones, e)
    for tiny in (1e-12, 1e-30, 1e-80, 1e-200, 0.0):
        d = rng.uniform(0.5, 1, 99)
        d[50] = tiny
        found[f"a value of about {tiny}"] = (d, rng.uniform(0.5, 1, 98))
    found["all equal"] = (ones, 0 * ones[1:])
    found["nearly equal"] = (ones, np.full(98, 1e-12))
    found["Jordan"] = (np.full(99, 0.3), np.ones(98))
    return found


@pytest.mark.parametrize("name", _nasty())
@pytest.mark.parametrize("dtype", DTYPES)
def test_nasty(name, dtype):
    d, e = (x.astype(dtype) for x in _nasty()[name])
    with Findings() as findings:
        check(findings, name, d, e, twisted(d, e)[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lower_and_scaled(dtype):
    """The transpose, and matrices far from 1, where values stay as they are but for the scale."""
    d, e = make("chi", 77, dtype)
    with Findings() as findings:
        plain = twisted(d, e, fallback=0)[0]
        lower = twisted(d, e, fallback=0, lower=True)[0]
        check(findings, "lower", d, e, lower, lower=True)
        for power in (-100, 110):
            there = twisted(np.ldexp(d, power), np.ldexp(e, power), fallback=0)[0]
            findings.holds(f"2^{power}", "scaled", same_bits(there.s, np.ldexp(plain.s, power)))
            findings.holds(f"2^{power}", "the same", same_bits(there[::2], plain[::2]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_null_vectors(dtype):
    """One value far below the others, even below the least number: its vectors are those of 0."""
    with Findings() as findings:
        for n in (120, 300, 700):
            for d, e in (
                make("jordan", n, dtype),
                (np.full(n, 2, dtype), np.full(n - 1, -9, dtype)),
            ):
                result = twisted(d, e, fallback=0)[0]
                check(findings, f"n={n}", d, e, result)
            last = twisted(d, e, fallback=0, select="i", select_range=(n - 2, n - 1))[0]
            findings.holds(f"n={n}", "the last two", same_bits(last.R, result.R[-2:]))
            lower = twisted(d, e, fallback=0, lower=True)[0]
            check(findings, f"n={n} lower", d, e, lower, lower=True)


# ---- refusal ----


REFUSED = [(f, t) for f in ("wilkinson_glued", "zero_middle", "graded_both") for t in DTYPES]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_null_vectors_that_would_grow_again(dtype, lower):
    """B x = 0 without its last row has an x that falls to 1e-77, and then grows to `end`."""
    n = 48
    with Findings() as findings:
        for seed in range(6):
            rng = np.random.default_rng(seed)
            m, fall = int(rng.integers(18, 30)), rng.uniform(75, 80)
            for end in (1e-30, 2.02e-5, 1.0, 1e4):
                d = rng.uniform(1, 10, n) * rng.choice([-1, 1], n)
                e = d[1:] * rng.choice([-1, 1], n - 1)
                d[:m] *= 10.0 ** (-fall / m)
                e[m:] *= (10.0**-fall / end) ** (1 / (n - 1 - m))
                for turned in (False, True):
                    a, b = (d[::-1], e[::-1]) if turned else (d, e)
                    a, b = a.astype(dtype), b.astype(dtype)
                    (L, s, R), info = twisted(a, b, lower=lower)
                    where = f"{seed} {end} {turned}"
                    findings.holds(where, "nothing is refused", info.refused == 0)
                    check(findings, where, a, b, (L, s, R), lower)
                    # the sign: u^T B v = s > 0, of the entries where neither vanishes
                    B = np.diag(a.astype(float)) + np.diag(b.astype(float), -1 if lower else 1)
                    u, v = L[:, -1].astype(float), R[-1].astype(float)
                    terms = np.outer(u, v) * np.linalg.inv(B).T
                    place = np.unravel_index(np.argmax(abs(terms)), terms.shape)
                    findings.holds(where, "u and v have matching signs", terms[place] > 0)


@pytest.mark.parametrize(("family", "dtype"), [*REFUSED, ("clustered", np.float64)])
def test_refused(family, dtype):
    d, e = make(family, 120, dtype)
    result, info = twisted(d, e)
    assert info.method == "dc" and 0 < info.refused <= 120
    assert same_bits(tuple(result), tuple(tsvd.svd(d, e, method="dc", device="cpu")))
    with pytest.raises(
        np.linalg.LinAlgError, match=r"twisted refused .* of 120 values; .*fallback"
    ):
        twisted(d, e, fallback=0)


def test_a_cluster_of_float32_stands_apart_in_doubles():
    d, e = make("clustered", 120, np.float32)
    result, info = twisted(d, e, fallback=0)
    assert info.method == "twisted" and info.refused == 0
    assert residual(d, e, *result) <= 2 and orthogonality(result.L, result.R) <= 3


def test_progress_never_goes_back():
    d, e = make("wilkinson_glued", 1500)
    told = []
    assert twisted(d, e, progress=told.append)[1].method == "dc"
    assert told == sorted(told) and told[-1] == 1


def test_values_alone_as_auto():
    d, e = make("chi", 50)
    assert same_bits(tsvd.svdvals(d, e, method="twisted", device="cpu"), tsvd.svdvals(d, e))


def test_batches():
    d, e = (np.stack(part) for part in zip(make("chi", 20), make("zero_first", 20), strict=True))
    result, info = twisted(d, e)
    assert info.method == "dc" and info.refused == 20  # the first by number of the methods that ran
    for i in range(2):
        assert same_bits(tuple(x[i] for x in result), tuple(twisted(d[i], e[i])[0]))


# ---- ranges ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranges_are_parts_of_the_whole(dtype):
    d, e = make("chi", 150, dtype)
    L, s, R = twisted(d, e, fallback=0)[0]
    for low, high in ((0, 0), (0, 9), (70, 100), (149, 149), (3, 148)):
        part = twisted(d, e, fallback=0, select="i", select_range=(low, high))[0]
        wanted = slice(low, high + 1)
        assert same_bits(part.s, s[wanted]) and same_bits(part.R, R[wanted])
        assert np.array_equal(part.L, L[:, wanted])


def test_a_few_of_many():
    """Time and memory in proportion to n k: divide and conquer would need 40 n^2 bytes."""
    n = 50000
    d, e = make("uniform_1", n)
    e = e / 2
    check_few(d, e, *twisted(d, e, fallback=0, select="i", select_range=(0, 4)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_close_values_of_a_large_matrix(dtype):
    """The least relative gap is 4e-10."""
    d, e = make("toeplitz", 100_000, dtype)
    check_few(d, e, *twisted(d, e, fallback=0, select="i", select_range=(0, 9)))


# ---- the choice of "auto" ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_auto(dtype):
    for family, n, method in (
        ("toeplitz", 1000, "twisted"),
        ("chi", 1000, "twisted"),
        ("uniform_1", 1000, "dc"),
        ("wilkinson_glued", 1000, "dc"),
        ("zeros_off", 1000, "dc"),
        ("toeplitz", AUTO_ORDER, "twisted"),
        ("chi", AUTO_ORDER, "twisted"),
        ("uniform_1", AUTO_ORDER, "dc"),
        ("toeplitz", AUTO_ORDER - 1, "dc"),
    ):
        d, e = make(family, n, dtype)
        result, info = tsvd.svd(d, e, device="cpu", full_output=True)
        assert info.method == method, family
        assert same_bits(tuple(result), tuple(tsvd.svd(d, e, device="cpu", method=method)))
    d, e = make("toeplitz", 1000, dtype)
    assert tsvd.svd(d, e, eps=1e-3, device="cpu", full_output=True)[1].method == "dc"


@pytest.mark.parametrize("dtype", DTYPES)
def test_auto_of_few_values(dtype):
    """At no order from 33 on do few vectors cost what all do."""
    with Findings() as findings:
        for n in (33, 40, 64, 150, AUTO_ORDER - 1, AUTO_ORDER, 500, 1000):
            for family in ("chi", "toeplitz", "uniform_1"):
                d, e = make(family, n, dtype)
                for first, last in ((0, 0), (0, n // 4 - 1), (n - n // 4, n - 1)):
                    part = {"select": "i", "select_range": (first, last), "device": "cpu"}
                    result, info = tsvd.svd(d, e, full_output=True, **part)
                    where = f"{family}, n = {n}, {first} to {last}"
                    findings.holds(where, "twisted", info.method == "twisted" or info.refused > 0)
                    values = tsvd.svdvals(d, e, method="bisect", device="cpu")[first : last + 1]
                    error = value_error(result.s, values)
                    findings.bound(where, "value error", error, BOUNDS["values twisted"](n))
                    found = residual(d, e, *result)
                    findings.bound(where, "residual", found, BOUNDS["residual"](n))
                    found = orthogonality(result.L, result.R)
                    findings.bound(where, "orthogonality", found, BOUNDS["orthogonality"](n))
        d, e = make("wilkinson_glued", 300, dtype)
        part = {"select": "i", "select_range": (0, 20), "device": "cpu"}
        info = tsvd.svd(d, e, full_output=True, **part)[1]
        findings.holds("wilkinson_glued", "left to dc", info.method == "dc" and info.refused > 0)


# ---- the same bits ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_change_nothing(dtype):
    d, e = make("chi", 260, dtype)
    one = twisted(d, e, fallback=0, threads=1)[0]
    assert all(
        same_bits(tuple(one), tuple(twisted(d, e, fallback=0, threads=threads)[0]))
        for threads in (2, 3)
    )


def test_kernels_change_nothing():
    program = """
        import hashlib
        import numpy as np
        import tsvd
        try:
            tsvd.svdvals([1.0], [])
        except ValueError:
            print("lacking")
            raise SystemExit from None
        total = hashlib.sha256()
        rng = np.random.default_rng(3)
        for dtype in (np.float64, np.float32):
            for n in (1, 5, 16, 33, 130):
                d, e = (rng.uniform(0.1, 1, size).astype(dtype) for size in (n, n - 1))
                for part in tsvd.svd(d, e, method="twisted", tuning={"fallback": 0}, device="cpu"):
                    total.update(part.tobytes())
        print(total.hexdigest())
    """
    said = set()
    for name in ("generic", "avx2", "avx512"):
        environment = f"import os; os.environ['TSVD_CPU_KERNELS'] = '{name}'\n"
        said.add(run(environment + textwrap.dedent(program)))
    assert len(said - {"lacking\n"}) == 1
