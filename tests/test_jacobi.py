"""method="jacobi" of tsvd.linalg: the bounds on dense matrices of every family, and high relative
accuracy of B D, D B and their like, whatever the range of D.
"""

import functools

import mpmath
import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, Findings, hold
from testing.dense_families import FAMILIES, chosen, make, pictures
from testing.dense_layouts import LAYOUTS
from testing.measures import check_dense, dense_shapes, value_error
from testing.reference import dense_singular_values, relative_singular_values
from tsvd import _core, linalg

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_family = pytest.mark.parametrize("family", FAMILIES)

# Square and not, around the sizes of blocks and of a tournament with an odd number of them.
SHAPES = [
    *((1, 1), (2, 1), (1, 3), (2, 2), (3, 3), (4, 5), (8, 8), (9, 7), (16, 16), (17, 15)),
    *((31, 31), (32, 32), (33, 33), (20, 70), (70, 20), (64, 64), (65, 66), (97, 97), (130, 128)),
    *((1, 300), (300, 1), (200, 33), (33, 200)),
]

# A CUDA device cuts these into blocks of 32 columns.  Square ones may begin with other vectors.
LARGE = _core.tuning()["JACOBI_BLOCK_COLUMNS"] + 1
LARGE_SHAPES = [(LARGE, LARGE), (160, 160), (193, 193), (161, 130), (131, 257)]


@functools.cache
def values(family, m, n, dtype):
    return dense_singular_values(make(family, m, n, dtype))


def check(findings, family, m, n, dtype, full, device):
    A, s_ref = make(family, m, n, dtype), values(family, m, n, dtype)
    where = f"{family} {m}x{n} {dtype.__name__}"
    result = linalg.svd(A, full_matrices=full, method="jacobi", device=device)
    hold(findings, where, *check_dense(A, result, s_ref, full=full))
    alone = linalg.svdvals(A, method="jacobi", device=device)
    hold(findings, where, *check_dense(A, (alone,), s_ref))
    findings.holds(where, "the same values alone", np.array_equal(alone, result.S))


@every_family
@every_dtype
@pytest.mark.parametrize("full", [False, True])
def test_families(family, dtype, full, device):
    with Findings() as findings:
        for m, n in chosen(family, SHAPES, 6):
            check(findings, family, m, n, dtype, full, device)


@every_dtype
@pytest.mark.parametrize("n", [17, 20, 26, 32])
def test_triangles_that_hide_their_rank(n, dtype, device):
    """Kahan's, of any angle, with noise: QR with pivoting does not see how near they are to a
    singular matrix, and errors of what is made by the inverse of R grow with it."""
    rng = np.random.default_rng(n)
    angle = rng.uniform(0.5, 1.45, 40)[:, None, None]
    row = np.arange(n)[:, None]
    triangle = np.eye(n) - np.cos(angle) * np.triu(np.ones((n, n)), 1)
    noise = 10 ** -rng.uniform(2, 12, angle.shape) * rng.standard_normal((40, n, n))
    A = (np.sin(angle) ** row * triangle * (1 + noise)).astype(dtype)
    batch = linalg.svd(A, method="jacobi", device=device)
    with Findings() as findings:
        for i, matrix in enumerate(A):
            result = tuple(x[i] for x in (batch.U, batch.S, batch.Vh))
            s_ref = dense_singular_values(matrix)
            hold(findings, f"{i}, n = {n}", *check_dense(matrix, result, s_ref))


@pytest.mark.slow
@every_family
@every_dtype
def test_every_shape(family, dtype, device):
    with Findings() as findings:
        for m, n in SHAPES:
            check(findings, family, m, n, dtype, False, device)


@every_family
@every_dtype
def test_large(family, dtype, device):
    with Findings() as findings:
        for m, n in chosen(family, LARGE_SHAPES, 2):
            check(findings, family, m, n, dtype, m % 2 > 0, device)


@pytest.mark.slow
@every_family
@every_dtype
def test_large_every_shape(family, dtype, device):
    with Findings() as findings:
        for m, n in (*LARGE_SHAPES, (320, 320), (4200, 5), (5, 4200)):
            check(findings, family, m, n, dtype, False, device)


@pytest.mark.parametrize("name", pictures())
@every_dtype
def test_pictures(name, dtype):
    A = pictures(dtype)[name]
    with Findings() as findings:
        for given in (A, A.T):
            result = linalg.svd(given, full_matrices=False, method="jacobi", device="cpu")
            hold(findings, name, *check_dense(given, result, dense_singular_values(given)))


# ---- high relative accuracy ----


def exact_values(A, digits):
    """The values from mpmath, in so many digits, as Python's mpf."""
    with mpmath.workdps(digits):
        B = mpmath.matrix(A.astype(float).tolist())
        return sorted(mpmath.svd_r(B, compute_uv=False), reverse=True)


def relative_error(S, exact):
    """max |S - exact| / (eps exact)."""
    eps = float(np.finfo(S.dtype).eps)
    return max(abs(mpmath.mpf(float(s)) - e) / (eps * e) for s, e in zip(S, exact, strict=True))


def spans(dtype):
    return (200, 30) if dtype == np.float64 else (30, 10)


def scrambled(size, span, rng):
    return 10.0 ** (-span * rng.permutation(size) / max(size - 1, 1))


GRADINGS = {
    "columns down": lambda B, span, rng: B * 10.0 ** -np.linspace(0, span, B.shape[1]),
    "columns up": lambda B, span, rng: B * 10.0 ** -np.linspace(span, 0, B.shape[1]),
    "columns scrambled": lambda B, span, rng: B * scrambled(B.shape[1], span, rng),
    "rows scrambled": lambda B, span, rng: B * scrambled(B.shape[0], span, rng)[:, None],
}


def well_conditioned(m, n, dtype, rng):
    """With its condition once the columns have norm 1, and the rows of a wide one."""
    B = rng.standard_normal((m, n)) + 3 * np.eye(m, n)
    return B.astype(dtype).astype(np.float64)


def condition(B, by_rows):
    """Of B with columns, or rows, of norm 1."""
    B = np.longdouble(B.T if by_rows else B)
    s = np.linalg.svd(np.float64(B / np.sqrt(np.sum(B**2, axis=0))), compute_uv=False)
    return s[0] / s[-1]


@pytest.mark.parametrize("grading", GRADINGS)
@every_dtype
def test_every_value_of_a_graded_matrix(grading, dtype, device):
    with Findings() as findings:
        for seed, (m, n) in enumerate([(2, 2), (5, 5), (12, 12), (20, 20), (30, 9), (9, 30)]):
            if m != n and grading.startswith("rows") != (m < n):
                continue  # of the longer side: B D with D on the shorter one
            for span in spans(dtype):
                rng = np.random.default_rng(seed)
                B = well_conditioned(m, n, dtype, rng)
                A = GRADINGS[grading](B, span, rng).astype(dtype)
                exact = exact_values(A, 2 * span + 60)
                limit = (8 + min(m, n)) * condition(B, grading.startswith("rows"))
                where = f"{grading} {m}x{n} {dtype.__name__} 1e-{span}"
                result = linalg.svd(A, full_matrices=False, method="jacobi", device=device)
                findings.bound(where, "values", relative_error(result.S, exact), limit)
                found, wrong = check_dense(A, result, dense_singular_values(A))
                hold(findings, where, found, wrong)
                stacked = linalg.svdvals(np.stack([A, A]), method="jacobi", device=device)
                same = np.array_equal(stacked, [result.S, result.S])
                findings.holds(where, "the same values in a batch", same)


@every_dtype
def test_vectors_of_tiny_values(dtype, device):
    """Row i of Vh points along D's column i: its small entries are as good as the values are."""
    rng = np.random.default_rng(7)
    span = spans(dtype)[0]
    B = well_conditioned(15, 8, dtype, rng)
    A = (B * 10.0 ** -np.linspace(0, span, 8)).astype(dtype)
    U, _, Vh = linalg.svd(A, full_matrices=False, method="jacobi", device=device)
    left = np.linalg.qr(B)[0]
    eps = np.finfo(dtype).eps
    assert np.all(abs(abs(np.sum(left * U, axis=0)) - 1) <= 100 * eps)
    assert np.all(abs(abs(np.diag(Vh)) - 1) <= 8 * eps)


@every_dtype
def test_both_sides_graded(dtype):
    """D1 B D2, for which QR with pivoting of rows and columns is accurate as well."""
    span = spans(dtype)[1]
    with Findings() as findings:
        for seed in range(6):
            rng = np.random.default_rng(seed)
            B = well_conditioned(10, 10, dtype, rng)
            A = (scrambled(10, span, rng)[:, None] * B * scrambled(10, span, rng)).astype(dtype)
            exact = exact_values(A, 4 * span + 60)
            S = linalg.svdvals(A, method="jacobi", device="cpu")
            findings.bound(f"seed {seed}", "values", relative_error(S, exact), 1e3)


# On a CUDA device: the kernels of warps, of pairs that come before them, of blocks, and large ones.
ORDERS = [(3, 3), (7, 5), (12, 12), (20, 20), (31, 24), (40, 40), (131, 131)]


def hold_every_value(findings, where, A, W, s_ref, device):
    """A has the values of W = B D, s_ref, and zeros."""
    result = linalg.svd(A, full_matrices=False, method="jacobi", device=device)
    limit = (8 + min(W.shape)) * condition(W, False)
    zeros = np.zeros(result.S.size - s_ref.size, np.longdouble)
    findings.bound(where, "values", value_error(result.S, np.r_[s_ref, zeros]), limit)
    hold(findings, where, *check_dense(A, result, dense_singular_values(A)))
    alone = linalg.svdvals(A, method="jacobi", device=device)
    findings.holds(where, "the same values alone", np.array_equal(alone, result.S))


def graded_columns(m, n, dtype, low, high):
    """B D with the powers 2^low to 2^high in D, scrambled."""
    rng = np.random.default_rng(n)
    powers = rng.permutation(np.linspace(low, high, n).astype(int))
    return np.ldexp(well_conditioned(m, n, dtype, rng), powers).astype(dtype)


@every_dtype
def test_lines_of_zeros(dtype, device):
    """Neither zeros among the columns, nor among the rows, turn one into the other."""
    span = 300 if dtype == np.float64 else 50
    with Findings() as findings:
        for m, n in ORDERS:
            rng = np.random.default_rng(m)
            W = graded_columns(m, n, dtype, -span, span)
            s_ref = relative_singular_values(W, by_rows=False)
            shapes = [(m, m), (m + 2, n), (m + 2, m + 2)]
            if device == "cpu":  # a CUDA device looks for zeros in square matrices alone
                shapes += [(m, m + 2), (m + 1, m + 3)]
            for shape in shapes:
                A = np.zeros(shape, dtype)
                rows, columns = (
                    np.sort(rng.permutation(size)[:used])
                    for size, used in zip(shape, W.shape, strict=True)
                )
                A[np.ix_(rows, columns)] = W
                for given in (A, A.T):
                    where = f"{dtype.__name__}, {m}x{n} in {given.shape}"
                    hold_every_value(findings, where, given, W, s_ref, device)


@every_dtype
def test_rows_farther_apart_than_numbers(dtype, device):
    """Small rows underflow beside large ones, if one scale is for both."""
    info = np.finfo(dtype)
    with Findings() as findings:
        for n in (3, 8, 16, 20, 32, 40, 131):
            W = graded_columns(n, n, dtype, info.minexp + 20, info.maxexp - 20)
            s_ref = relative_singular_values(W, by_rows=False)
            for given, name in ((W, "columns"), (W.T, "rows")):
                where = f"{dtype.__name__}, {n} {name}"
                hold_every_value(findings, where, given, W, s_ref, device)


@every_dtype
def test_a_batch_whose_matrices_are_graded_by_rows_or_columns(dtype, device):
    span = 200 if dtype == np.float64 else 40
    for n in (2, 6, 13, 24, 32, 50, 130):
        W = graded_columns(n, n, dtype, -span, span)
        A = np.stack([W, W.T, W[::-1], W.T[:, ::-1], np.eye(n)]).astype(dtype)
        together = linalg.svd(A, method="jacobi", device=device)
        for i, one in enumerate(A):
            alone = linalg.svd(one, method="jacobi", device=device)
            assert all(np.array_equal(x[i], y) for x, y in zip(together, alone, strict=True))
        assert np.array_equal(together.S[0], together.S[1])


def of_low_rank(n, count, rng):
    """Constant matrices but for a row and a column, and sums of few products of small integers."""
    A = np.empty((count, n, n))
    for i in range(0, count, 2):
        A[i] = rng.integers(1, 60)
        A[i, rng.integers(n)] *= rng.choice([1, -2, 1.5, 2, 3])
        A[i, :, rng.integers(n)] *= rng.choice([1, -1, 1.5, 2, 3])
        k = rng.integers(1, 4)
        A[i + 1] = rng.integers(-3, 4, (n, k)) @ rng.integers(-3, 4, (k, n))
    return A


@every_dtype
def test_low_rank_converges(dtype, device):
    """Small columns that are rounding errors are not rotated without end."""
    options = {"method": "jacobi", "device": device}
    if device == "cpu":
        options["max_sweeps"] = 12
    rng = np.random.default_rng(5)
    with Findings() as findings:
        for n in (10, 16, 23, 31, 37, 42, 44, 48, 50):
            A = of_low_rank(n, 200, rng).astype(dtype)
            S = linalg.svd(A, compute_uv=False, **options)
            s_ref = np.linalg.svd(A.astype(float), compute_uv=False)
            unit = np.finfo(dtype).eps * np.maximum(s_ref[:, 0], 1)
            error = np.max(abs(S - s_ref), axis=1) / unit
            findings.bound(f"{n} {dtype.__name__}", "values", float(np.max(error)), 8 + n / 8)
            result = linalg.svd(A[:20], **options)
            for i in range(20):
                where = f"{n} {dtype.__name__} {i}"
                own = tuple(x[i] for x in result)
                hold(findings, where, *check_dense(A[i], own, dense_singular_values(A[i])))


@every_family
@every_dtype
def test_few_sweeps(family, dtype):
    for m, n in [(50, 50), (80, 60)]:
        A = make(family, m, n, dtype)
        _, info = linalg.svd(A, method="jacobi", device="cpu", full_output=True)
        assert info.sweeps <= 10


@every_dtype
def test_columns_farther_apart_than_numbers(dtype, device):
    """From the least subnormal number to the largest, which no single scale brings together."""
    info = np.finfo(dtype)
    S = np.array([info.max / 2, 1, info.tiny * 4, info.smallest_subnormal * 3], dtype)
    turned = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    A = np.diag(S)
    for given, s in ((A, S), (A[::-1, [2, 0, 3, 1]], S), (A[:, :0], S[:0])):
        assert np.array_equal(linalg.svdvals(given, method="jacobi", device=device), s)
    A = (turned * S).astype(dtype)
    found = linalg.svdvals(A, method="jacobi", device=device)
    s_ref = np.linalg.norm(A.astype(np.longdouble), axis=0)
    assert value_error(found[:3], s_ref[:3]) <= 100


@every_dtype
def test_overflow(dtype, device):
    top = np.finfo(dtype).max
    A = np.full((2, 2), top, dtype)
    U, S, Vh = linalg.svd(A, method="jacobi", device=device)
    assert np.isinf(S[0]) and S[1] <= 8 * np.finfo(dtype).eps * top
    assert np.allclose(abs(U), 0.5**0.5) and np.allclose(abs(Vh), 0.5**0.5)
    one = np.array([[top]])
    assert linalg.svdvals(one, method="jacobi", device=device)[0] == top


@every_dtype
@pytest.mark.parametrize(
    "shape", [(0, 0), (0, 3), (3, 0), (3, 3), (4, 2), (2, 4), (140, 140), (150, 135)]
)
def test_zeros(shape, dtype, device):
    A = np.zeros(shape, dtype)
    for full in (False, True):
        U, S, Vh = linalg.svd(A, full_matrices=full, method="jacobi", device=device)
        assert [x.shape for x in (U, S, Vh)] == list(dense_shapes(*shape, min(shape), full))
        assert not S.any()
        assert np.array_equal(abs(U).T @ abs(U), np.eye(U.shape[1]))
        assert np.array_equal(abs(Vh) @ abs(Vh).T, np.eye(Vh.shape[0]))


# ---- batches, layouts, parts ----


@pytest.mark.parametrize(
    "shape", [(1, 1), (4, 3), (8, 8), (2, 9), (32, 32), (33, 33), (16, 70), (129, 129), (131, 140)]
)
@every_dtype
def test_a_batch_gives_what_its_matrices_give(shape, dtype, device):
    A = np.stack([make(name, *shape, dtype) for name in FAMILIES])
    together, info = linalg.svd(
        A[::-1][None], method="jacobi", device=device, full_output=True, threads=3
    )
    assert info.method == "jacobi" and info.sweeps >= len(A)
    for i, one in enumerate(A[::-1]):
        alone = linalg.svd(one, method="jacobi", device=device, threads=1)
        for x, y in zip(together, alone, strict=True):
            assert np.array_equal(x[0, i], y)


def test_the_threads_do_not_matter():
    options = {"method": "jacobi", "device": "cpu", "full_matrices": False}
    for m, n in [(301, 300), (300, 300)]:
        A = np.random.default_rng(2).standard_normal((m, n))
        first = linalg.svd(A, **options, threads=1)
        for threads in (1, 2, 5):
            again = linalg.svd(A, **options, threads=threads)
            assert all(np.array_equal(x, y) for x, y in zip(first, again, strict=True))


def large_squares(dtype):
    """Those that begin with other vectors, or cannot, or whose vectors turn out to be no good."""
    rng = np.random.default_rng(9)
    n = 131
    A = rng.standard_normal((n, n))
    low = A.copy()
    low[:, 5] = low[:, 7]
    missing = A.copy()
    missing[3, 4] = np.inf
    tiny = A * (np.finfo(dtype).tiny / abs(A).max())  # with subnormal entries
    span = spans(dtype)[1]
    graded = A * scrambled(n, span, rng), A * scrambled(n, span, rng)[:, None]
    zero = np.zeros((n, n))
    return np.stack([A, graded[0], missing, low, graded[1], tiny, zero, A]).astype(dtype)


@every_dtype
def test_a_batch_of_large_squares(dtype):
    A = large_squares(dtype)
    options = {"method": "jacobi", "device": "cpu", "check_finite": False}
    together = linalg.svd(A, **options)
    assert np.array_equal(linalg.svdvals(A, **options), together.S, equal_nan=True)
    part = linalg.svdvals(A, **options, select="i", select_range=(100, 130))
    assert np.array_equal(part, together.S[:, 100:], equal_nan=True)
    assert all(np.isnan(x[2]).all() for x in together)
    for i, one in enumerate(A):
        alone = linalg.svd(one, **options, threads=1)
        for x, y in zip(together, alone, strict=True):
            assert np.array_equal(x[i], y, equal_nan=True)
    with pytest.raises(ValueError, match="matrix 2 of the batch: a must not hold NaN"):
        linalg.svd(A, method="jacobi", device="cpu")
    with pytest.raises(np.linalg.LinAlgError, match="matrix 1 of the batch: jacobi did not conv"):
        linalg.svd(A[[0, 3]], **options, max_sweeps=3)


@pytest.mark.parametrize("layout", LAYOUTS)
@every_dtype
def test_layouts(layout, dtype, device):
    for m, n in [(5, 5), (20, 33), (70, 20), (140, 140)]:
        A = make("gaussian", m, n, dtype)
        given = LAYOUTS[layout](A)
        result = linalg.svd(given, method="jacobi", device=device)
        plain = linalg.svd(A, method="jacobi", device=device)
        assert all(np.array_equal(x, y) for x, y in zip(result, plain, strict=True))
        assert np.array_equal(given, A)


@pytest.mark.parametrize("family", ["gaussian", "rank_3", "zero_columns", "clustered", "subnormal"])
@every_dtype
def test_a_range_of_indices(family, dtype, device):
    with Findings() as findings:
        for m, n in [(1, 1), (4, 6), (33, 20), (20, 33), (140, 140), (150, 131)]:
            A, s_ref, p = make(family, m, n, dtype), values(family, m, n, dtype), min(m, n)
            for low, high in {(0, 0), (0, p - 1), (p // 3, p // 2), (p - 1, p - 1)}:
                options = {"select": "i", "select_range": (low, high), "method": "jacobi"}
                result = linalg.svd(A, **options, device=device)
                where = f"{family} {m}x{n} {dtype.__name__} {low}:{high}"
                hold(findings, where, *check_dense(A, result, s_ref, first=low))
                alone = linalg.svdvals(A, **options, device=device)
                findings.holds(where, "the same values alone", np.array_equal(alone, result.S))


# ---- errors ----


def test_no_convergence(device):
    A = np.random.default_rng(0).standard_normal((3, 20, 20))
    A[:2] = np.eye(20)
    with pytest.raises(np.linalg.LinAlgError, match="matrix 2 of the batch: jacobi did not conv"):
        linalg.svd(A, method="jacobi", max_sweeps=1, device=device)
    with pytest.raises(np.linalg.LinAlgError, match="within 2 sweeps; raise max_sweeps"):
        linalg.svd(A[2], method="jacobi", max_sweeps=2, device=device)
    S = linalg.svd(A[0], method="jacobi", max_sweeps=1, device=device).S
    assert np.array_equal(S, np.ones(20))


def test_nan_and_infinity(device):
    A = np.random.default_rng(0).standard_normal((3, 5, 4))
    A[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match="matrix 1 of the batch: a must not hold NaN"):
        linalg.svd(A, method="jacobi", device=device)
    result = linalg.svd(A, method="jacobi", check_finite=False, device=device)
    assert all(np.isnan(x[1]).all() and np.isfinite(x[[0, 2]]).all() for x in result)


def test_what_it_does_not_offer():
    A = np.eye(3)
    with pytest.raises(ValueError, match='use select="i"'):
        linalg.svd(A, method="jacobi", select="v", select_range=(0, 1))
    with pytest.raises(ValueError, match="eps belongs to bidiagonal matrices"):
        linalg.svd(A, method="jacobi", eps=1e-3, device="cpu")
    with pytest.raises(ValueError, match=r"jacobi.* use tsvd\.linalg\.svd"):
        tsvd.svd(np.ones(3), np.ones(2), method="jacobi")
    with pytest.raises(ValueError, match=r"jacobi.* takes dense matrices"):
        linalg.bidiagonalize(A, device="cpu").svd(method="jacobi")


def test_progress():
    told = []
    A = np.random.default_rng(0).standard_normal((300, 300))
    linalg.svd(A, method="jacobi", device="cpu", progress=told.append)
    assert told == sorted(told) and told[-1] == 1 and 0 <= told[0]

    def stop(done):
        raise KeyError(done)

    with pytest.raises(KeyError):
        linalg.svd(A, method="jacobi", device="cpu", progress=stop)


PATTERNS = {
    "columns": lambda B, scale: B * scale,
    "rows": lambda B, scale: B * scale[:, None],
}


@pytest.mark.parametrize("pattern", PATTERNS)
@every_dtype
def test_every_value_of_a_large_graded_matrix(pattern, dtype, device):
    """Twelve small matrices on the diagonal, whose rows and columns are scrambled together."""
    order = 12
    for seed, span in enumerate((*spans(dtype), 0)):
        rng = np.random.default_rng(seed)
        A = np.zeros((order * order, order * order), dtype=dtype)
        worst, exact = 1, []
        for i in range(order):
            own = slice(order * i, order * (i + 1))
            B = well_conditioned(order, order, dtype, rng)
            A[own, own] = PATTERNS[pattern](B, scrambled(order, span, rng))
            exact += exact_values(A[own, own], 2 * span + 60)
            worst = max(worst, condition(B, pattern == "rows"))
        A = A[rng.permutation(len(A))][:, rng.permutation(len(A))]
        result = linalg.svd(A, full_matrices=False, method="jacobi", device=device)
        with Findings() as findings:
            limit = (8 + len(A)) * worst
            error = relative_error(result.S, sorted(exact, reverse=True))
            findings.bound(f"1e-{span}", "values", error, limit)
            hold(findings, f"1e-{span}", *check_dense(A, result, dense_singular_values(A)))


def test_columns_are_not_taken_for_rows():
    """The last row is tiny, but the others are parallel as the columns are graded."""
    A = np.array(
        [
            [-0.00015680727585479047, -1.0065959399287967e-32, -1.8940547747937257e-34],
            [0.0002600730359240692, -6.326655849990286e-33, -1.5441360065449663e-33],
            [0, 0, 5.985789539826358e-36],
        ]
    )
    exact = exact_values(A, 120)
    S = linalg.svdvals(A, method="jacobi", device="cpu")
    assert relative_error(S, exact) <= 11 * 520  # the condition of the columns at norm 1
