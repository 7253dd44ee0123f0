"""tsvd.linalg keeps the bounds on dense matrices of every family, shape, type and layout."""

import functools
import itertools

import numpy as np
import pytest

from testing.cases import DTYPES, Findings, check_with_and_without_vectors, hold
from testing.dense_families import FAMILIES, chosen, make, pictures
from testing.dense_layouts import LAYOUTS
from testing.measures import (
    BOUNDS,
    check_dense,
    dense_value_bound,
    dense_value_error,
    orthogonality,
)
from testing.reference import dense_singular_values
from tsvd import linalg

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_family = pytest.mark.parametrize("family", FAMILIES)

TINY = [(m, n) for m in range(1, 6) for n in range(1, 6)]
# Around the sizes of warps, blocks and panels, square and not.
BLOCKS = [
    *((31, 31), (32, 33), (33, 32), (33, 64), (40, 31), (63, 64), (64, 64), (65, 63), (31, 65)),
    *((64, 129), (127, 65), (96, 54), (100, 56), (54, 97), (128, 33), (129, 127), (127, 128)),
]
# From where on QR comes first, and far beyond.
SLIM = [
    *((1000, 1), (1, 1000), (1200, 2), (3, 1000), (500, 5), (8, 300), (257, 16), (17, 256)),
    *((400, 31), (32, 300), (300, 33), (33, 600)),
]
LARGER = [(255, 255), (256, 257), (257, 256), (300, 170), (170, 300), (513, 512), (640, 129)]
# On the GPU these go through Cholesky factors where the columns allow it, and else through
# reflectors: more than 64 columns, or too many rows for the shared memory of a block.
TALL = [
    *((117, 65), (131, 65), (230, 127), (231, 128), (256, 128), (65, 256), (233, 129), (258, 129)),
    *((360, 200), (401, 200), (200, 400), (700, 96), (97, 1000)),
]
VERY_TALL = [
    *((8193, 1), (9000, 2), (8193, 31), (8193, 32), (33, 8193), (8193, 63), (8193, 64), (65, 8193)),
    *((4095, 33), (4096, 32), (4097, 64), (100000, 5), (20000, 32)),
]
TALL_FAMILIES = (
    *("gaussian", "uniform_100", "geometric_1e1", "geometric_1e4", "geometric_1e8"),
    *("geometric_1e16", "clusters", "one_small", "rank_half", "noise_far_below", "ones"),
    *("identity", "zero_columns", "equal_columns", "graded_scattered", "hilbert", "kahan"),
)
SOME = ("gaussian", "geometric_1e16", "rank_3", "zero_columns", "graded_scattered", "clustered")


def matrix(family, m, n, dtype):
    A = make(family, m, n, dtype)
    A.setflags(write=False)
    return A


@functools.cache
def values(family, m, n, dtype):
    """The reference values; all tests share them."""
    return dense_singular_values(matrix(family, m, n, dtype))


def check_all(findings, family, m, n, dtype, device, **options):
    """The values with vectors in the economy size, and those alone."""
    A, s_ref = matrix(family, m, n, dtype), values(family, m, n, dtype)
    where = f"{family} {m}x{n} {dtype.__name__} {options or ''}"
    check_with_and_without_vectors(findings, where, A, s_ref, device, **options)


# ---- all values ----


@every_family
@every_dtype
def test_svd(family, dtype, device):
    with Findings() as findings:
        for m, n in chosen(family, TINY, 11) + chosen(family, BLOCKS, 2) + chosen(family, SLIM, 2):
            check_all(findings, family, m, n, dtype, device)


@pytest.mark.slow
@every_family
@every_dtype
def test_every_shape(family, dtype, device):
    with Findings() as findings:
        for m, n in TINY + BLOCKS + SLIM:
            check_all(findings, family, m, n, dtype, device)


@pytest.mark.slow
@every_family
@every_dtype
def test_beyond_every_block_size(family, dtype, device):
    with Findings() as findings:
        for m, n in LARGER:
            check_all(findings, family, m, n, dtype, device)


@pytest.mark.parametrize("family", TALL_FAMILIES)
@every_dtype
def test_tall(family, dtype, device):
    i = 2 * TALL_FAMILIES.index(family) + DTYPES.index(dtype)
    with Findings() as findings:
        check_all(findings, family, *TALL[i % len(TALL)], dtype, device)


@pytest.mark.slow
@pytest.mark.parametrize("family", TALL_FAMILIES)
@every_dtype
def test_every_tall_shape(family, dtype, device):
    with Findings() as findings:
        for m, n in TALL + VERY_TALL:
            check_all(findings, family, m, n, dtype, device)


@every_dtype
@pytest.mark.parametrize("gap", [-1, -2, -3, -4, -6, -7, -8, -12])
def test_tall_with_columns_nearly_equal(gap, dtype, device):
    """The nearer they are, the worse the condition, past where Cholesky factors serve."""
    rng = np.random.default_rng(-gap)
    A = rng.standard_normal((300, 70))
    A[:, 40] = A[:, 3] + 10.0**gap * rng.standard_normal(300)
    A = (A * 2.0 ** rng.integers(-20, 20, 70)).astype(dtype)
    with Findings() as findings:
        for given in (A, A.T):
            s_ref = dense_singular_values(given)
            result = linalg.svd(given, full_matrices=False, device=device)
            hold(findings, "with vectors", *check_dense(given, result, s_ref))
            few = linalg.svd(given, select="i", select_range=(3, 60), device=device)
            hold(findings, "a part", *check_dense(given, few, s_ref, first=3))
            alone = linalg.svdvals(given, device=device)
            hold(findings, "alone", *check_dense(given, (alone,), s_ref))


@every_dtype
@pytest.mark.parametrize("full", [False, True])
def test_a_batch_of_tall_matrices(full, dtype, device):
    """Of which one needs reflectors; and of which none does."""
    names = "gaussian", "zero_columns", "uniform_100", "gaussian"
    A = np.stack([matrix(name, 140, 70, dtype) for name in names])
    with Findings() as findings:
        for given in (A, A[2:], A.swapaxes(1, 2)):
            result = linalg.svd(given, full_matrices=full, device=device)
            for i, name in enumerate(names[-len(given) :]):
                s_ref = values(name, 140, 70, dtype)
                one = tuple(x[i] for x in result)
                hold(findings, f"{name} {i}", *check_dense(given[i], one, s_ref, full=full))


@every_dtype
def test_a_batch_with_a_column_of_equal_terms(dtype, device):
    """The rounding errors of a long sum of them have the same sign."""
    rng = np.random.default_rng(5)
    A = (1e-3 * rng.standard_normal((2, 2000, 66))).astype(dtype)
    A[..., 0] = 1
    result = linalg.svd(A, full_matrices=False, device=device)
    with Findings() as findings:
        for i in range(len(A)):
            one = tuple(x[i] for x in result)
            hold(findings, str(i), *check_dense(A[i], one, dense_singular_values(A[i])))


@every_family
@every_dtype
def test_full_matrices(family, dtype, device):
    with Findings() as findings:
        for m, n in [(1, 1), (1, 4), (4, 1), (5, 3), (3, 5), (33, 20), (20, 33), (40, 1), (1, 130)]:
            A = matrix(family, m, n, dtype)
            result = linalg.svd(A, device=device)
            where = f"{family} {m}x{n} {dtype.__name__}"
            hold(findings, where, *check_dense(A, result, values(family, m, n, dtype), full=True))


@pytest.mark.parametrize("family", SOME)
@every_dtype
@pytest.mark.parametrize("method", ["dc", "qr", "givens", "twisted", "bisect"])
def test_methods(family, dtype, method, device):
    """The methods for the bidiagonal matrix."""
    with Findings() as findings:
        for m, n in [(2, 2), (7, 5), (33, 40), (90, 40)]:
            A, s_ref = matrix(family, m, n, dtype), values(family, m, n, dtype)
            where = f"{family} {m}x{n} {dtype.__name__} {method}"
            if method != "bisect":
                result = linalg.svd(A, full_matrices=False, method=method, device=device)
                hold(findings, where, *check_dense(A, result, s_ref))
            s = linalg.svdvals(A, method=method, device=device)
            hold(findings, f"{where} alone", *check_dense(A, (s,), s_ref))


@pytest.mark.parametrize("name", pictures())
@every_dtype
def test_pictures(name, dtype, device):
    A = pictures(dtype)[name]
    with Findings() as findings:
        for given in (A, A.T):
            s_ref = dense_singular_values(given)
            result = linalg.svd(given, full_matrices=False, device=device)
            hold(findings, name, *check_dense(given, result, s_ref))


def test_ones_after_a_panel():
    """QR of tall matrices on the CPU goes by panels of 32 columns. Sums of equal terms make the
    columns after the first panel differ a little from those within it, all by the same amount.
    """
    with Findings() as findings:
        shapes = [(130, 48), (130, 58), (58, 130), (230, 58), (257, 58), (1000, 58), (1100, 64)]
        for m, n in [*shapes, (300, 130), (8193, 64), (20_000, 58)]:
            A, s_ref = np.ones((m, n)), np.zeros(min(m, n), np.longdouble)
            s_ref[0] = np.sqrt(np.longdouble(m * n))
            result = linalg.svd(A, full_matrices=False, device="cpu")
            hold(findings, f"{m} x {n}", *check_dense(A, result, s_ref))
            alone = (linalg.svdvals(A, device="cpu"),)
            hold(findings, f"{m} x {n}, values alone", *check_dense(A, alone, s_ref))


# ---- a part of the values ----


@pytest.mark.parametrize("family", [*SOME, "ones", "identity", "near_overflow", "subnormal"])
@every_dtype
def test_a_range_of_indices(family, dtype, device):
    with Findings() as findings:
        for m, n in [(1, 1), (4, 6), (33, 20), (20, 33), (65, 64), (150, 30), (9, 100)]:
            A, s_ref, p = matrix(family, m, n, dtype), values(family, m, n, dtype), min(m, n)
            for low, high in {(0, 0), (0, p - 1), (p // 3, p // 2), (p - 1, p - 1)}:
                where = f"{family} {m}x{n} {dtype.__name__} {low}:{high}"
                options = {"select": "i", "select_range": (low, high), "device": device}
                result = linalg.svd(A, **options)
                findings.holds(where, f"{high - low + 1} values", result.S.size == high - low + 1)
                hold(findings, where, *check_dense(A, result, s_ref, first=low))
                s = linalg.svdvals(A, **options)
                findings.holds(where, f"{high - low + 1} values", s.size == high - low + 1)
                hold(findings, f"{where} alone", *check_dense(A, (s,), s_ref, first=low))


@pytest.mark.parametrize("family", ["gaussian", "geometric_1e8", "hilbert", "rank_3"])
@every_dtype
def test_an_interval(family, dtype, device):
    """(low, high]: bounds in the middle between values that are far enough apart."""
    with Findings() as findings:
        for m, n in [(4, 6), (33, 20), (20, 70)]:
            A, s_ref, p = matrix(family, m, n, dtype), values(family, m, n, dtype), min(m, n)
            apart = s_ref[:-1] - s_ref[1:] > 1e-3 * s_ref[0]
            for first in np.flatnonzero(apart)[:2]:
                bounds = -1.0, float(s_ref[first] + s_ref[first + 1]) / 2
                result = linalg.svd(A, select="v", select_range=bounds, device=device)
                where = f"{family} {m}x{n} {dtype.__name__} {bounds}"
                findings.holds(where, f"{p - first - 1} values", result.S.size == p - first - 1)
                hold(findings, where, *check_dense(A, result, s_ref, first=first + 1))
                bounds = bounds[1], np.inf
                s = linalg.svdvals(A, select="v", select_range=bounds, device=device)
                findings.holds(where, f"{first + 1} values", s.size == first + 1)
                hold(findings, where, *check_dense(A, (s,), s_ref))
            none = linalg.svd(A, select="v", select_range=(2 * float(s_ref[0]), np.inf))
            findings.holds(where, "nothing", [x.shape for x in none] == [(m, 0), (0,), (0, n)])


@every_dtype
@pytest.mark.parametrize("entries", [[[1, 2], [2, 3]], [[3, 1], [1, 4]], [[1, 4], [0, 1]]])
def test_an_interval_of_subnormal_values(entries, dtype, device):
    """Just those of all values, as they are given, that lie in (low, high]."""
    tiny = float(np.finfo(dtype).smallest_subnormal)
    for A in (np.array(entries, dtype), np.pad(np.array(entries, dtype), ((0, 3), (0, 1)))):
        A = A * dtype(tiny)
        for method in ("auto", "qr"):
            s = linalg.svdvals(A, method=method, device=device)
            ends = sorted({-np.inf, -tiny, -0.0, *map(float, s), tiny / 2, 1.5 * tiny, np.inf})
            for low, high in itertools.combinations(ends, 2):
                part = {"select": "v", "select_range": (low, high), "device": device}
                right = s[(s.astype(float) > low) & (s.astype(float) <= high)]
                got = linalg.svdvals(A, method=method, **part)
                assert np.array_equal(got, right), (low / tiny, high / tiny, got / tiny)
                if method == "auto":
                    got = linalg.svd(A, hermitian=A.shape == (2, 2), **part).S
                    assert np.array_equal(got, right), (low / tiny, high / tiny, got / tiny)


@every_dtype
@pytest.mark.parametrize("power", [-1.0, -0.9, 0.9, 1.0])
def test_an_interval_of_values_at_the_ends_of_the_range(power, dtype, device):
    """Values that are given as zero, as subnormal numbers and as infinity."""
    info = np.finfo(dtype)
    size = info.smallest_subnormal if power < 0 else info.max
    A = np.random.default_rng(3).standard_normal((9, 6)).astype(dtype)
    A = A / abs(A).max() * dtype(float(size) ** abs(power))
    s = linalg.svdvals(A, device=device)
    ends = sorted({0.0, *map(float, s), np.inf})
    for low, high in itertools.combinations(ends, 2):
        got = linalg.svdvals(A, select="v", select_range=(low, high), device=device)
        # an infinite bound bounds nothing
        assert np.array_equal(got, s[(s > low) & (s <= high)]), (low, high, got)


# ---- equal terms ----


def _of_equal_terms(m, n, c, dtype):
    """Matrices of rank 1 and 2 with few different entries, and their two values above rounding."""
    rng = np.random.default_rng([m, n])
    signs = np.outer(rng.choice([-1, 1], m), rng.choice([-1, 1], n)).astype(dtype)
    for row, column in [(0, 0), (0.3, 0), (0, 0.3), (0.3, 0.3)]:
        A = np.full((m, n), c, dtype)
        i, j = (0, 0) if row != column else (m // 2, n // 2)
        A[i] *= dtype(row or 1)
        A[:, j] *= dtype(column or 1)
        # the other rows are equal, and so are the other columns
        other, beside = (0 if i else 1), (0 if j else 1)
        core = A[[i, i, other, other], [j, beside, j, beside]].astype(np.longdouble)
        core *= np.sqrt(np.array([1, n - 1, m - 1, (m - 1) * (n - 1)], np.longdouble))
        square, area = (core * core).sum(), abs(core[0] * core[3] - core[1] * core[2])
        first = np.sqrt((square + np.sqrt(square * square - 4 * area * area)) / 2)
        s_ref = np.zeros(min(m, n), np.longdouble)
        s_ref[:2] = first, (area / first if row or column else 0)
        yield A, s_ref
        yield A * signs, s_ref


@every_dtype
@pytest.mark.parametrize(
    ("m", "n"),
    [
        *((2, 2), (9, 9), (12, 22), (22, 22), (41, 41), (61, 47), (70, 70)),
        *((20, 400), (640, 32), (47, 300), (427, 70), (246, 107), (144, 331)),
    ],
)
def test_equal_terms(m, n, dtype, device):
    """The rounding errors of sums of equal terms have one sign: they must not add up."""
    limit = 0.7 * (8 + min(m, n) / 8) if device == "cpu" else dense_value_bound(m, n)
    with Findings() as findings:
        for c in (0.7, 1.1, 1.7):
            for A, s_ref in _of_equal_terms(m, n, dtype(c), dtype):
                for order in "CF":
                    s = linalg.svdvals(np.array(A, order=order), device=device)
                    error = dense_value_error(s, s_ref, s_ref[0])
                    findings.bound(f"{c} {A[0, :2]} {order}", "values", error, limit)


@every_dtype
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("m, n", [(127, 49), (167, 49), (255, 64), (300, 160), (1000, 49)])
def test_equal_terms_beside_large_ones(m, n, stages, dtype, device):
    """Columns so near to each other that their QR takes reflectors, which are nearly equal."""
    A = np.full((m, n), np.sqrt(np.finfo(dtype).eps) / 8, dtype)
    A[m // 2, : n // 5] = A[m // 2, n * 3 // 5 :] = 0.375
    A[m // 12] *= 3
    s_ref = dense_singular_values(A)
    with Findings() as findings:
        for name, given in {"one": A, "wide": A.T, "two": np.stack([A, A[::-1]])}.items():
            s = linalg.svdvals(given, device=device, tuning={"stages": stages})
            for i, one in enumerate(s.reshape(-1, n)):
                hold(findings, f"{name} {i}", *check_dense(A, (one,), s_ref))


# ---- layouts and batches ----


@pytest.mark.parametrize("family", SOME)
@every_dtype
def test_layouts(family, dtype, device):
    with Findings() as findings:
        for m, n in [(1, 3), (3, 2), (33, 32), (20, 65), (150, 20)]:
            A, s_ref = matrix(family, m, n, dtype), values(family, m, n, dtype)
            for name, laid_out in LAYOUTS.items():
                given = laid_out(A)
                result = linalg.svd(given, full_matrices=False, device=device)
                hold(findings, f"{family} {m}x{n} {name}", *check_dense(A, result, s_ref))
                findings.holds(name, "left as it was", np.array_equal(given, A))
                s = linalg.svdvals(given, device=device)
                hold(findings, f"{family} {m}x{n} {name} alone", *check_dense(A, (s,), s_ref))


@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (8, 8), (2, 9), (32, 32), (33, 33), (16, 70)])
@every_dtype
@pytest.mark.parametrize("full", [False, True])
def test_batches(shape, dtype, full, device):
    """A matrix of each family, in three dimensions of the batch, some of them with odd strides."""
    m, n = shape
    names = sorted(FAMILIES)[: len(FAMILIES) // 6 * 6]
    A = np.stack([matrix(name, m, n, dtype) for name in names])
    given = A.reshape(3, 2, -1, m, n).swapaxes(0, 2)[:, ::-1]
    turned = A.reshape(3, 2, -1, m, n).swapaxes(0, 2)[:, ::-1]
    result = linalg.svd(given, full_matrices=full, device=device)
    alone = linalg.svdvals(np.asfortranarray(given), device=device)
    order = np.arange(len(names)).reshape(3, 2, -1).swapaxes(0, 2)[:, ::-1]
    with Findings() as findings:
        for i in np.ndindex(turned.shape[:3]):
            s_ref = values(names[order[i]], m, n, dtype)
            where = f"{names[order[i]]} {m}x{n} {dtype.__name__} in a batch"
            hold(
                findings,
                where,
                *check_dense(turned[i], tuple(x[i] for x in result), s_ref, full=full),
            )
            hold(findings, where, *check_dense(turned[i], (alone[i],), s_ref))


def test_one_matrix_many_times(device):
    """Strides of zero: a batch that is broadcast, and rows that are all the same."""
    A = matrix("gaussian", 12, 9, np.float64)
    result = linalg.svd(np.broadcast_to(A, (5, 12, 9)), full_matrices=False, device=device)
    rows = np.broadcast_to(A[0], (6, 9))
    with Findings() as findings:
        for i in range(5):
            one = tuple(x[i] for x in result)
            hold(findings, str(i), *check_dense(A, one, values("gaussian", 12, 9, np.float64)))
        result = linalg.svd(rows, full_matrices=False, device=device)
        hold(findings, "rows", *check_dense(rows, result, dense_singular_values(rows)))


def test_integers_and_bool(device):
    with Findings() as findings:
        for dtype in (np.int8, np.uint16, np.int64, bool):
            A = np.random.default_rng(1).integers(0, 2, (9, 7)).astype(dtype)
            result = linalg.svd(A, full_matrices=False, device=device)
            wide = A.astype(float)
            hold(findings, dtype.__name__, *check_dense(wide, result, dense_singular_values(wide)))


# ---- the ends of the range of numbers ----


@every_dtype
def test_what_a_number_holds_is_not_infinite(dtype, device):
    top = np.finfo(dtype).max
    for m, n in [(1, 1), (3, 1), (1, 4), (3, 3), (40, 33)]:
        A = np.zeros((m, n), dtype)
        A[m - 1, n // 2] = -top
        U, S, Vh = linalg.svd(A, device=device)
        off = 8 * np.finfo(dtype).eps * top
        assert top - off <= S[0] <= top and np.all(S[1:] <= off)
        assert np.all(abs(linalg.svdvals(A, device=device) - S) <= off)
        assert orthogonality(U, Vh) <= BOUNDS["orthogonality"](max(m, n))


@every_dtype
def test_values_above_the_largest_number_become_infinity(dtype, device):
    """Vectors are as good as always."""
    top = np.finfo(dtype).max
    for m, n in [(2, 1), (2, 2), (5, 3), (33, 65)]:
        A = np.full((m, n), top, dtype)
        A[0, 0] = -top
        U, S, _ = result = linalg.svd(A, full_matrices=False, device=device)
        found, wrong = check_dense(A, result, dense_singular_values(A))
        assert np.isposinf(S[0]) and wrong == [] and all(x <= y for x, y in found.values()), found
        assert np.isposinf(linalg.svdvals(A, device=device)[0])
        small = linalg.svd(A / 1024, full_matrices=False, device=device)
        assert np.max(abs(small.U[:, 0] - U[:, 0])) <= 100 * max(m, n) * np.finfo(dtype).eps


@every_dtype
def test_the_least_numbers(dtype, device):
    """Below the smallest normal number values are the nearest numbers, where that is exact."""
    least = np.finfo(dtype).smallest_subnormal
    A = np.diag(np.array([7, 1, 0, 3, 5], dtype) * least)
    assert np.array_equal(
        linalg.svdvals(A, device=device), np.array([7, 5, 3, 1, 0], dtype) * least
    )
    result = linalg.svd(A, device=device)
    found, wrong = check_dense(A, result, dense_singular_values(A), full=True)
    assert wrong == [] and all(x <= y for x, y in found.values()), found


@every_dtype
@pytest.mark.parametrize("n", [3, 30, 200])
def test_a_row_of_the_least_numbers_beside_large_ones(dtype, n, device):
    """The row's reflector is of length 1, and changes all the rest."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n)).astype(dtype)
    A[1:, 0] = 0  # the first column leaves the row as it is
    A[0, 1:] = np.finfo(dtype).smallest_subnormal * rng.integers(1, 40, n - 1)
    for B in (A, A.T):
        result = linalg.svd(B, full_matrices=False, device=device)
        found, wrong = check_dense(B, result, dense_singular_values(B))
        assert wrong == [] and all(x <= y for x, y in found.values()), found


# ---- exactly known decompositions ----


@every_dtype
def test_diagonal_matrices_are_exact(dtype, device):
    rng = np.random.default_rng(3)
    for m, n in [(1, 1), (4, 4), (3, 7), (40, 33), (100, 5)]:
        d = (rng.permutation(min(m, n)) + 1.0).astype(dtype)
        A = np.zeros((m, n), dtype)
        np.fill_diagonal(A, d * rng.choice([-1, 1], d.size).astype(dtype))
        assert np.array_equal(linalg.svdvals(A, device=device), np.sort(d)[::-1])
        U, S, Vh = linalg.svd(A, full_matrices=False, device=device)
        assert np.array_equal(S, np.sort(d)[::-1])
        assert np.array_equal((U * S) @ Vh, A)


def test_zero_matrices(device):
    for dtype in DTYPES:
        for m, n in [(1, 1), (3, 5), (70, 33)]:
            U, S, Vh = linalg.svd(np.zeros((m, n), dtype), device=device)
            assert not S.any() and orthogonality(U, Vh) <= 3
            assert U.shape == (m, m) and Vh.shape == (n, n)


# ---- bidiagonal form ----


def bidiagonal_matrix(d, e, shape, lower):
    """B of the shape of A, in longdouble."""
    m, n = shape
    B, i = np.zeros((m, n), np.longdouble), np.arange(d.size)
    B[i, i] = d
    B[(i[1:], i[:-1]) if lower else (i[:-1], i[1:])] = e
    return B


def relative(difference, A):
    """||difference||_F / ((max(m, n) + 8) eps ||A||_F), in extended precision."""
    unit = np.longdouble(np.finfo(A.dtype).eps) * (max(A.shape) + 8)
    norm = np.sqrt(np.sum(A.astype(np.longdouble) ** 2))
    return float(np.sqrt(np.sum(difference**2)) / (unit * np.maximum(norm, np.finfo(A.dtype).tiny)))


# Their norms are far enough from the largest number that no entry of B overflows.
@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "near_overflow"])
@every_dtype
def test_bidiagonalize(family, dtype, device):
    with Findings() as findings:
        for m, n in [(1, 1), (1, 5), (5, 1), (4, 3), (3, 4), *chosen(family, BLOCKS[:10], 1)]:
            A, where = matrix(family, m, n, dtype), f"{family} {m}x{n} {dtype.__name__}"
            form = linalg.bidiagonalize(A, device=device)
            p = min(m, n)
            findings.holds(where, "lower where m < n", form.lower == (m < n))
            findings.holds(where, "p entries", form.d.shape == (p,) and form.e.shape == (p - 1,))
            findings.holds(where, "of the type of A", form.d.dtype == form.e.dtype == dtype)
            B = bidiagonal_matrix(form.d, form.e, A.shape, form.lower)
            Q, Pt = form.form_q(full=True), form.form_pt(full=True)
            findings.bound(where, "orthogonality", orthogonality(Q, Pt), 3)
            residual = relative(A - Q.astype(np.longdouble) @ B @ Pt, A)
            findings.bound(where, "A - Q B P^T", residual, 2)
            s, s_ref = dense_singular_values(B), values(family, m, n, dtype)
            apart = dense_value_error(s.astype(np.float64), s_ref, s_ref[0]) * np.finfo(float).eps
            limit = dense_value_bound(m, n) * np.finfo(dtype).eps
            if s_ref[0] > np.finfo(dtype).tiny:
                findings.bound(where, "values of B", apart, limit)


@pytest.mark.parametrize("family", SOME)
@every_dtype
def test_products_with_the_factors(family, dtype, device):
    with Findings() as findings:
        for m, n in [(5, 3), (3, 5), (40, 33), (20, 90), (150, 9)]:
            A, p = matrix(family, m, n, dtype), min(m, n)
            form = linalg.bidiagonalize(A, device=device)
            Q, Pt = form.form_q(full=True), form.form_pt(full=True)
            where, limit = f"{family} {m}x{n}", 10 * (max(m, n) + 8) * np.finfo(dtype).eps
            few = form.form_q(), form.form_pt()
            findings.holds(where, "the first columns", few[0].shape == (m, p))
            findings.holds(where, "the first rows", few[1].shape == (p, n))
            findings.bound(where, "Q in part", np.max(abs(few[0] - Q[:, :p])), limit)
            findings.bound(where, "P in part", np.max(abs(few[1] - Pt[:p])), limit)
            rng = np.random.default_rng(0)
            for c in (1, 4, 40):
                x, y = (rng.standard_normal((size, c)).astype(dtype) for size in (m, n))
                kept = x.copy(), y.copy()
                for got, right in (
                    (form.apply_q(x), Q @ x),
                    (form.apply_q(x, transposed=True), Q.T @ x),
                    (form.apply_p(y), Pt.T @ y),
                    (form.apply_p(y, transposed=True), Pt @ y),
                ):
                    findings.bound(where, "a product", np.max(abs(got - right)), 10 * limit)
                unchanged = np.array_equal(x, kept[0]) and np.array_equal(y, kept[1])
                findings.holds(where, "vectors left as they were", unchanged)
            one = form.apply_q(x[:, 0])
            findings.holds(where, "a vector", one.shape == (m,))
            findings.bound(where, "a vector", np.max(abs(one - form.apply_q(x)[:, 0])), 10 * limit)


@every_dtype
def test_the_rest_from_the_bidiagonal_form(dtype, device):
    """svd() and svdvals() of the form, several times and with other options."""
    with Findings() as findings:
        for m, n in [(1, 1), (9, 9), (33, 20), (20, 33), (200, 17)]:
            A, s_ref = matrix("gaussian", m, n, dtype), values("gaussian", m, n, dtype)
            form, p = linalg.bidiagonalize(A, device=device), min(m, n)
            for full in (True, False, True):
                result = form.svd(full_matrices=full)
                hold(findings, f"{m}x{n} {full}", *check_dense(A, result, s_ref, full=full))
            result = form.svd(select="i", select_range=(p // 2, p - 1))
            hold(findings, f"{m}x{n} part", *check_dense(A, result, s_ref, first=p // 2))
            hold(findings, f"{m}x{n} alone", *check_dense(A, (form.svdvals(),), s_ref))


def test_bidiagonal_forms_of_a_batch(device):
    A = np.stack([matrix(family, 12, 9, np.float64) for family in SOME]).reshape(2, 3, 12, 9)
    form = linalg.bidiagonalize(A, device=device)
    assert form.d.shape == (2, 3, 9) and form.e.shape == (2, 3, 8)
    Q, Pt = form.form_q(), form.form_pt()
    result = form.svd(full_matrices=False)
    with Findings() as findings:
        for i in np.ndindex(2, 3):
            B = bidiagonal_matrix(form.d[i], form.e[i], (9, 9), False)
            residual = relative(A[i] - Q[i].astype(np.longdouble) @ B @ Pt[i], A[i])
            findings.bound(str(i), "A - Q B P^T", residual, 2)
            one = tuple(x[i] for x in result)
            hold(findings, str(i), *check_dense(A[i], one, dense_singular_values(A[i])))


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("m", "n", "dtype"),
    [
        (10_240, 5_700, np.float64),
        (10_241, 5_700, np.float64),
        (20_481, 11_400, np.float32),
        pytest.param(20_500, 11_400, np.float64, marks=pytest.mark.slow),
        pytest.param(41_000, 22_800, np.float32, marks=pytest.mark.slow),
    ],
)
def test_columns_longer_than_a_block_of_the_device_holds(m, n, dtype, cuda):
    """Clusters of 2 and 4 blocks share the rows. Diagonal matrix between two reflectors: its values
    are known, and a product with it takes O(m n)."""
    rng = np.random.default_rng(m)
    known = np.sort(rng.uniform(0.5, 1, n))[::-1]
    A = np.zeros((m, n))
    A[np.arange(n), np.arange(n)] = known
    u, v = rng.standard_normal(m), rng.standard_normal(n)
    A -= np.outer(A @ v, v * (2 / (v @ v)))
    A -= np.outer(u * (2 / (u @ u)), u @ A)
    A = A.astype(dtype)
    eps = np.finfo(dtype).eps

    U, S, Vh = linalg.svd(A, full_matrices=False, device="cuda")
    assert np.max(np.abs(S - known)) <= (8 + n / 8) * eps * known[0]
    again = [linalg.svdvals(A, device="cuda") for _ in range(2)]
    assert np.max(np.abs(again[0] - known)) <= (8 + n / 8) * eps * known[0]
    np.testing.assert_array_equal(*again)
    x = rng.standard_normal((n, 3)).astype(dtype)
    allowed = (m + 8) * eps * np.linalg.norm(x)
    assert np.linalg.norm(U @ (S[:, None] * (Vh @ x)) - A @ x) <= 2 * allowed
    assert np.linalg.norm(U.T @ (U @ x) - x) <= 3 * allowed
    assert np.linalg.norm(Vh @ (Vh.T @ x) - x) <= 3 * allowed


@every_dtype
@pytest.mark.parametrize("method", ["auto", "qr", "givens"])
@pytest.mark.parametrize("relative", [1e-1, 1e-3, 1e-6])
def test_eps_is_in_the_units_of_a(relative, method, dtype, device):
    """However large A is: an entry of B may change by 4 eps, of each matrix of a batch."""
    rng = np.random.default_rng(5)
    powers = (-60, -20, 0, 1, 20, 60) if dtype == np.float32 else (-600, -20, 0, 1, 20, 600)
    with Findings() as findings:
        for m, n in ((1, 1), (7, 4), (20, 20), (9, 50)):
            for A in np.ldexp(rng.standard_normal((m, n)), np.array(powers)[:, None, None]):
                A, p = A.astype(dtype), min(m, n)
                eps = relative * float(np.max(abs(A)))
                batch = np.stack([A, A / 1024])
                options = {"eps": eps, "method": method, "device": device}
                limit = 4 * p * relative + 2 * (max(m, n) + 8) * np.finfo(dtype).eps * p
                U, S, Vh = linalg.svd(batch, full_matrices=False, **options)
                form = linalg.bidiagonalize(batch, device=device)
                last = {"eps": eps, "method": method}
                alone = (linalg.svdvals(batch, **options), form.svdvals(**last), form.svd(**last).S)
                with np.errstate(over="ignore"):
                    for i, one in enumerate(batch):
                        where, top = f"{m}x{n}, {top_of(A)}, {i}", np.max(abs(A)).astype(float)
                        error = np.max(abs((U[i] * S[i]).astype(float) @ Vh[i] - one)) / top
                        findings.bound(f"{where}, matrix", "error", error, limit)
                        s_ref = dense_singular_values(one)
                        for found in (S, *alone):
                            error = float(np.max(abs(found[i] - s_ref)) / top)
                            findings.bound(f"{where}, values", "error", error, limit)


def top_of(A):
    return f"{float(np.max(abs(A))):.2g}"
