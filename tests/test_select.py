"""A part of the values with their vectors, by index and by interval, against the whole."""

import numpy as np
import pytest

import tsvd
from test_accuracy import check_vectors
from testing.cases import DTYPES, Findings, case, same_bits
from testing.families import FAMILIES, make, stack
from testing.measures import BOUNDS, value_error

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_family = pytest.mark.parametrize("family", FAMILIES)

# One, two and four leaves of divide and conquer, and one row less or more.
SIZES = (1, 2, 3, 8, 32, 33, 34, 65, 66, 130)


def index_ranges(n):
    """Ranges of one value, few, all but one and all: at both ends and in the middle."""
    few = min(5, n)
    ranges = [(0, 0), (n - 1, n - 1), (n // 2, n // 2), (0, few - 1), (n - few, n - 1)]
    ranges += [(n // 3, n // 3 + n // 4), (0, n - 2), (1, n - 1), (0, n - 1)]
    return [(low, high) for low, high in dict.fromkeys(ranges) if low <= high]


def by_index(low, high, **options):
    return {"select": "i", "select_range": (low, high), **options}


def by_interval(low, high, **options):
    return {"select": "v", "select_range": (low, high), **options}


def check_part(findings, where, d, e, result, expected, lower=False):
    """expected: the same part of the values of the whole."""
    L, s, R = result
    n, k = d.size, expected.size
    shapes = L.shape == (n, k) and s.shape == (k,) and R.shape == (k, n)
    findings.holds(where, f"of shapes for {k} values: {s.shape}", shapes)
    if shapes:
        check_vectors(findings, where, d, e, result, lower)
        check_values(findings, where, n, s, expected)


def check_values(findings, where, n, s, expected):
    findings.holds(where, f"{expected.size} values: {s.size}", s.shape == expected.shape)
    if s.shape == expected.shape:
        limit = BOUNDS["values auto"](n)
        findings.bound(where, "error against the whole", value_error(s, expected), limit)
        findings.holds(where, "non-negative", not np.signbit(s).any())
        findings.holds(where, "descending", np.all(s[1:] <= s[:-1]))


# ---- by index ----


@every_family
def test_indices(family, device):
    with Findings() as findings:
        for turn, n in enumerate(SIZES):
            d, e = make(family, n, DTYPES[turn % 2])
            whole = tsvd.svd(d, e, device=device).s
            ranges = index_ranges(n)
            # Each large matrix takes some of the ranges; together they take all.
            for low, high in ranges if n < 40 else ranges[turn % 4 :: 4]:
                options = by_index(low, high, device=device)
                where = f"{family} n={n} {d.dtype} {low}..{high}"
                check_part(findings, where, d, e, tsvd.svd(d, e, **options), whole[low : high + 1])


@every_family
def test_values_of_indices(family, device):
    with Findings() as findings:
        for turn, n in enumerate((*SIZES, 257)):
            d, e = make(family, n, DTYPES[turn % 2])
            whole = tsvd.svdvals(d, e, device=device)
            for low, high in index_ranges(n):
                where = f"{family} n={n} {d.dtype} {low}..{high}"
                s = tsvd.svdvals(d, e, **by_index(low, high, device=device))
                check_values(findings, where, n, s, whole[low : high + 1])


@every_dtype
@pytest.mark.parametrize("method", ["qr", "bisect", "dc", "auto", "givens"])
def test_values_by_every_method(method, dtype, values_device):
    with Findings() as findings:
        for family in ("chi", "zeros_many", "graded_down", "clustered"):
            for n in (3, 8, 9, 40, 130):
                d, e = make(family, n, dtype)
                options = {"method": method, "eps": 1e-3 if method == "givens" else None}
                options |= {"compute_uv": False, "device": values_device}
                whole = tsvd.svd(d, e, **options)
                for low, high in index_ranges(n):
                    where = f"{family} n={n} {dtype.__name__} {method} {low}..{high}"
                    s = tsvd.svd(d, e, **by_index(low, high, **options))
                    check_values(findings, where, n, s, whole[low : high + 1])


@every_family
@every_dtype
def test_against_the_reference(family, dtype, device):
    """Each value of a part keeps its digits, also if the matrix is graded."""
    with Findings() as findings:
        for n in (33, 100):
            d, e, s_ref = case(family, n, dtype)
            for low, high in ((0, 9), (n // 2 - 4, n // 2 + 4), (n - 10, n - 1)):
                options = by_index(low, high, device=device)
                where = f"{family} n={n} {dtype.__name__} {low}..{high}"
                part = s_ref[low : high + 1]
                for name, s in (
                    ("bisect", tsvd.svdvals(d, e, **options)),
                    ("auto", tsvd.svd(d, e, **options).s),
                ):
                    limit = BOUNDS[f"values {name}"](n)
                    findings.bound(where, f"error of {name}", value_error(s, part), limit)


@pytest.mark.slow
@every_family
@every_dtype
def test_every_range(family, dtype, device):
    with Findings() as findings:
        for n in (6, 40):
            d, e = make(family, n, dtype)
            whole = tsvd.svd(d, e, device=device).s
            for low in range(n):
                for high in range(low, n):
                    result = tsvd.svd(d, e, **by_index(low, high, device=device))
                    where = f"{family} n={n} {dtype.__name__} {low}..{high}"
                    check_part(findings, where, d, e, result, whole[low : high + 1])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["uniform_1", "chi", "toeplitz", "many_equal", "zeros_many"])
@every_dtype
def test_indices_of_large_matrices(family, dtype, device):
    with Findings() as findings:
        for n in (257, 500, 1025):
            d, e = make(family, n, dtype)
            whole = tsvd.svd(d, e, device=device).s
            for low, high in ((0, 0), (0, 99), (n // 2, n // 2 + 9), (n - 100, n - 1), (1, n - 1)):
                result = tsvd.svd(d, e, **by_index(low, high, device=device))
                where = f"{family} n={n} {dtype.__name__} {low}..{high}"
                check_part(findings, where, d, e, result, whole[low : high + 1])


@every_dtype
def test_all_indices_are_the_whole(dtype, device):
    for n in (1, 20, 70):
        d, e = make("normal", n, dtype)
        part = tsvd.svd(d, e, **by_index(0, n - 1, device=device))
        assert same_bits(tuple(part), tuple(tsvd.svd(d, e, device=device)))


@every_dtype
@pytest.mark.parametrize("n", [5, 33, 100])
def test_lower(n, dtype, device):
    with Findings() as findings:
        for family in ("normal", "graded_both", "zeros_everywhere", "many_equal"):
            d, e = make(family, n, dtype)
            whole = tsvd.svd(d, e, lower=True, device=device).s
            for low, high in index_ranges(n):
                result = tsvd.svd(d, e, lower=True, **by_index(low, high, device=device))
                where = f"{family} n={n} {low}..{high} lower"
                check_part(findings, where, d, e, result, whole[low : high + 1], lower=True)


@pytest.mark.parametrize("method", ["dc", "auto"])
def test_the_method_of_a_part(method, device):
    """It is not QR, also where auto takes QR for the whole."""
    allowed = {"dc"} if method == "dc" else {"dc", "twisted"}
    for n in (1, 2, 8, 20, 33, 60):
        d, e = make("normal", n)
        options = by_index(0, 0, method=method, device=device, full_output=True)
        _, info = tsvd.svd(d, e, **options)
        assert info.method in allowed or n == 1


@pytest.mark.parametrize("eps", [1e-2, 1e-6])
def test_eps(eps, device):
    """The columns of B R^T - L S = (B - L S R) R^T, as entries of B - L S R are below 4 eps."""
    with Findings() as findings:
        for family in ("uniform_1", "chi", "toeplitz", "zeros_off"):
            for n in (20, 65):
                d, e = make(family, n)
                B = np.diag(d) + np.diag(e, 1)
                L, s, R = tsvd.svd(d, e, eps=eps, **by_index(2, 9, device=device))
                limit = 4 * eps * np.sqrt(n) + 2 * (n + 8) * np.finfo(float).eps * n
                error = np.max(np.linalg.norm(B @ R.T - L * s, axis=0))
                findings.bound(f"{family} n={n} eps={eps}", "a column of B R^T - L S", error, limit)
                assert s.shape == (8,)


def test_out(device):
    d, e = make("normal", 40)
    options = by_index(3, 8, device=device)
    out = np.full((40, 6), 7.0), np.full(6, 7.0), np.full((6, 40), 7.0)
    result = tsvd.svd(d, e, out=out, **options)
    assert all(given is filled for given, filled in zip(out, result, strict=True))
    assert same_bits(out, tuple(tsvd.svd(d, e, **options)))
    for wrong in (np.empty((40, 40)), np.empty((6, 40)), np.empty((40, 6), order="F")):
        with pytest.raises(ValueError, match="out: L"):
            tsvd.svd(d, e, out=(wrong, *out[1:]), **options)
    out = np.empty((40, 0)), np.empty(0), np.empty((0, 40))
    result = tsvd.svd(d, e, out=out, **by_interval(1e9, 2e9, device=device))
    assert all(given is filled for given, filled in zip(out, result, strict=True))


@every_dtype
@pytest.mark.parametrize("n", [1, 5, 33, 70])
def test_batches(n, dtype, device):
    families = ("normal", "zero", "graded_up", "chi", "many_equal", "near_underflow")
    d, e = stack(make(family, n, dtype) for family in families)
    with Findings() as findings:
        for low, high in index_ranges(n):
            options = by_index(low, high, device=device)
            result = tsvd.svd(d, e, **options)
            values = tsvd.svdvals(d, e, **options)
            for i, family in enumerate(families):
                where = f"{family} n={n} {dtype.__name__} {low}..{high} in a batch"
                part = tuple(x[i] for x in result)
                alone = tsvd.svd(d[i], e[i], device=device).s[low : high + 1]
                check_part(findings, where, d[i], e[i], part, alone)
                check_values(findings, f"{where}, values", n, values[i], alone)


def test_shapes_of_batches(device):
    for shape in ((0, 5), (2, 3, 5), (2, 0, 5)):
        d, e = np.ones(shape), np.ones(4)
        batch = shape[:-1]
        L, s, R = tsvd.svd(d, e, **by_index(1, 3, device=device))
        assert (L.shape, s.shape, R.shape) == ((*batch, 5, 3), (*batch, 3), (*batch, 3, 5))
        assert tsvd.svdvals(d, e, **by_index(1, 3, device=device)).shape == (*batch, 3)


# ---- by interval ----


def gaps(s, n):
    """place i -> a bound between s[i-1] and s[i], where these are so far apart that rounding of
    either does not reach it.
    """
    far = 100 * (n + 8) * float(np.finfo(s.dtype).eps)
    least = float(np.finfo(s.dtype).tiny)
    s = s.astype(np.float64)
    return {i: (s[i - 1] + s[i]) / 2 for i in range(1, n) if s[i - 1] * (1 - far) > s[i] + least}


@every_family
def test_intervals(family, device):
    with Findings() as findings:
        for n, dtype in ((3, np.float32), (9, np.float64), (40, np.float64), (70, np.float32)):
            d, e = make(family, n, dtype)
            whole = tsvd.svd(d, e, device=device).s
            bounds = gaps(whole, n)
            places = [0, *sorted(bounds)[:: max(1, len(bounds) // 4)], n]
            at = bounds | {0: np.inf, n: -1.0}
            for first in places:
                for last in (place for place in places if place > first):
                    options = by_interval(at[last], at[first], device=device)
                    where = f"{family} n={n} {dtype.__name__} {options['select_range']}"
                    expected = whole[first:last]
                    check_part(findings, where, d, e, tsvd.svd(d, e, **options), expected)
                    s = tsvd.svdvals(d, e, **options)
                    check_values(findings, f"{where}, values", n, s, expected)


@every_dtype
def test_ends_that_are_values(dtype, device):
    """The lower end is outside, the upper inside. Some values are equal, one is 0."""
    values = np.array([3, 2, 2, 1, 0.5, 2.0**-40, 0], dtype)
    d = values[[3, 0, 6, 2, 5, 1, 4]] * dtype([1, -1, 1, -1, 1, 1, -1])
    e = np.zeros(6, dtype)
    for low in (-1.0, *values):
        for high in (*values, 4.0, np.inf):
            if low < high:
                expected = values[(low < values) & (values <= high)]
                options = by_interval(low, high, device=device)
                assert np.array_equal(tsvd.svdvals(d, e, **options), expected), (low, high)
                assert np.array_equal(tsvd.svd(d, e, **options).s, expected), (low, high)


@pytest.mark.parametrize("n", [4, 40, 301])
def test_ends_at_a_value_of_a_coupled_matrix(n, device):
    """d = e = 1 has the value 2 cos(pi / 3) = 1 if 3 divides 2 n + 1."""
    d, e = np.ones(n), np.ones(n - 1)
    above = int(np.sum(2 * np.cos(np.arange(1, n + 1) * np.pi / (2 * n + 1)) > 1 + 1e-9))
    assert (2 * n + 1) % 3 == 0 and tsvd.svdvals(d, e, **by_interval(1, 9, device=device)).size == (
        above
    )
    s = tsvd.svdvals(d, e, **by_interval(0, 1, device=device))
    assert s.size == n - above and abs(s[0] - 1) <= 1e-15


@every_dtype
@pytest.mark.parametrize("n", [17, 40, 90])
def test_ends_that_were_computed(n, dtype):
    """Ends that are computed values: s[i] is in (s[j], s[i]], and s[j] is not."""
    for family in ("normal", "chi", "toeplitz", "graded_both", "zeros_many"):
        d, e = make(family, n, dtype)
        s = tsvd.svdvals(d, e, device="cpu")
        for i in range(0, n, 7):
            for j in range(i + 1, n, 9):
                if s[i] > s[j]:
                    expected = s[(s > s[j]) & (s <= s[i])]
                    part = tsvd.svdvals(d, e, **by_interval(s[j], s[i], device="cpu"))
                    assert same_bits(part, expected), (family, i, j)


def test_bounds_between_numbers_of_float32(device):
    """The bounds are no float32 numbers. Rounded to float32 they would equal a value."""
    d, e = np.float32([2, 1, 0.5]), np.zeros(2, np.float32)
    for low, high, size in (
        (1 - 1e-12, 1 + 1e-12, 1),
        (1, 1 + 1e-12, 0),
        (1 - 1e-12, 1, 1),
        (1 - 1e-12, 1 - 1e-13, 0),
        (1 + 1e-13, 1 + 1e-12, 0),
        (-1e-300, 1e-300, 0),
        (1e300, 1e301, 0),
        (0.7, 1e301, 2),
    ):
        s = tsvd.svdvals(d, e, **by_interval(low, high, device=device))
        assert s.size == size and s.dtype == np.float32, (low, high)


@every_dtype
@pytest.mark.parametrize("n", [0, 1, 2, 33, 70])
def test_intervals_that_hold_nothing_or_all(n, dtype, device):
    d, e = make("normal", n, dtype)
    for low, high in ((1e30, 1e31), (-2, -1), (1e30, np.inf), (-np.inf, -1e-300)):
        options = by_interval(low, high, device=device)
        (L, s, R), info = tsvd.svd(d, e, full_output=True, **options)
        assert (L.shape, s.shape, R.shape) == ((n, 0), (0,), (0, n))
        assert L.dtype == s.dtype == R.dtype == dtype
        assert info.method in {"dc", "qr", "twisted"}
        assert tsvd.svdvals(d, e, **options).shape == (0,)
    whole = tuple(tsvd.svd(d, e, device=device))
    for low, high in ((-np.inf, np.inf), (-1, 1e30), (-1e-300, 1e30)):
        part = tsvd.svd(d, e, **by_interval(low, high, device=device))
        assert same_bits(tuple(part), whole)


@every_dtype
def test_zero_matrices(dtype, device):
    d, e = np.zeros(5, dtype), np.zeros(4, dtype)
    for low, high, size in ((-1, 0, 5), (-1, 1, 5), (0, 1, 0), (-0.0, 1, 0), (-1, -0.0, 5)):
        result = tsvd.svd(d, e, **by_interval(low, high, device=device))
        assert result.s.shape == (size,) and not result.s.any()
    with Findings() as findings:
        for n in (5, 40):
            d, e = np.zeros(n, dtype), np.zeros(n - 1, dtype)
            part = tsvd.svd(d, e, **by_index(1, 3, device=device))
            check_part(findings, f"zero n={n}", d, e, part, np.zeros(3, dtype))


@every_dtype
def test_values_above_the_largest_number(dtype, device):
    """Such values count as infinity, above every number."""
    top = np.finfo(dtype).max
    d, e = np.full(2, top), np.full(1, top)
    assert tsvd.svdvals(d, e, **by_interval(0, top, device=device)).size == 1
    assert np.isposinf(tsvd.svdvals(d, e, **by_interval(top, np.inf, device=device))).all()
    assert tsvd.svdvals(d, e, **by_interval(0, np.inf, device=device)).size == 2


def test_intervals_of_every_kind_of_input(device):
    d, e = make("normal", 9)
    expected = tsvd.svdvals(d, e, **by_interval(0.5, 1.5, device=device))
    assert 0 < expected.size < 9
    for d_in, e_in in (
        (d.tolist(), e.tolist()),
        (d[::-1][::-1], np.repeat(e, 3)[1::3]),
        (d.astype(d.dtype.newbyteorder()), e),
        (memoryview(d), e),
    ):
        assert same_bits(tsvd.svdvals(d_in, e_in, **by_interval(0.5, 1.5, device=device)), expected)
    s = tsvd.svdvals([3, 1, 2], [0, 0], **by_interval(1, 3, device=device))
    assert np.array_equal(s, [3, 2])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_intervals_of_what_is_not_finite(bad, device):
    for n, place in ((1, 0), (5, 2), (40, 39)):
        d, e = make("normal", n)
        d[place] = bad
        options = by_interval(0, 1, device=device)
        for function in (tsvd.svd, tsvd.svdvals):
            with pytest.raises(ValueError, match=r"(?i)nan|inf|finite"):
                function(d, e, **options)
        assert tsvd.svdvals(d, e, check_finite=False, **options).shape == (0,)
        part = tsvd.svd(d, e, check_finite=False, **by_index(0, 0, device=device))
        assert part.L.shape == (n, 1) and all(np.isnan(x).all() for x in part)


# ---- both functions ----


@pytest.mark.parametrize("n", [1, 7, 40, 300])
@pytest.mark.parametrize(
    "selected",
    [{}, {"select": "i"}, by_interval(0.1, 1.0), by_interval(50, 60)],
    ids=["a", "i", "v", "none"],
)
def test_svd_without_vectors_is_svdvals(n, selected, device):
    if selected == {"select": "i"}:
        selected = by_index(n // 4, n // 2)
    d, e = make("normal", n)
    methods = ("auto", "bisect", "dc", "qr", "givens") if device == "cpu" else ("auto", "dc")
    for method in methods:
        for lower in (False, True):
            for eps in (None, 1e-3):
                options = {"method": method, "lower": lower, "eps": eps, "device": device}
                options |= selected
                if method == "givens" and eps is None:
                    continue
                s = tsvd.svd(d, e, compute_uv=False, check_finite=False, **options)
                assert same_bits(s, tsvd.svdvals(d, e, check_finite=False, **options)), options
                assert same_bits(s, tsvd.svdvals(d, e, **options)), options


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["auto", "twisted", "dc"])
def test_what_an_interval_gives_lies_in_it(method, dtype, device):
    """Also beside bounds an ulp from a value, where method and count may differ."""
    d, e = np.linspace(1, 2, 33).astype(dtype), np.full(32, 1e-20, dtype)
    dense = np.diag(d) + np.diag(e, 1)
    for value in tsvd.svdvals(d, e, device=device)[::4]:
        for bound in (np.nextafter(value, dtype(0)), value, np.nextafter(value, dtype(3))):
            for low, high in ((0.5, float(bound)), (float(bound), 2.5)):
                options = {"select": "v", "select_range": (low, high), "device": device}
                values = tsvd.svdvals(d, e, **options)
                for s in (values, tsvd.svd(d, e, method=method, **options).s):
                    assert np.all((s > low) & (s <= high)) and len(s) == len(values)
                s = tsvd.linalg.svd(dense, method=method, **options).S
                assert np.all((s > low) & (s <= high))


def test_no_number_of_the_dtype_in_an_interval():
    d, e = np.float32([0.3, 0.7]), np.float32([0.2])
    value = float(tsvd.svdvals(d, e)[0])
    for low, high in ((value - 1e-9, value + 1e-9), (-1e300, 1e300), (-np.inf, np.inf)):
        s = tsvd.svdvals(d, e, select="v", select_range=(low, high))
        assert len(s) <= 2 and np.all(abs(s - tsvd.svdvals(d, e)[: len(s)]) < 1e-6)
