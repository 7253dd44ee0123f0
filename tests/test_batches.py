"""Many matrices in one call: each keeps the bounds that it has to keep alone."""

import numpy as np
import pytest

import tsvd
from test_accuracy import check_values, check_vectors
from testing.cases import DTYPES, Findings, case, norm, same_bits
from testing.families import FAMILIES, hard, make, stack
from testing.measures import BOUNDS, max_abs_error, orthogonality, value_error
from tsvd import _core

every_dtype = pytest.mark.parametrize("dtype", DTYPES)

# Around the largest orders that one thread, one warp and one block take, the order of a leaf, and
# the orders at which a level of merges is added.
SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
THREAD_ORDER = _core.tuning()["BATCH_ORDER_MAX"]  # the largest that a thread of the CPU takes
LARGE_SIZES = (127, 128, 129, THREAD_ORDER - 1, THREAD_ORDER, THREAD_ORDER + 1, 300)
SOME = ("chi", "graded_both", "zero", "zeros_many", "many_equal", "blocks_mirrored", "denormal")


def all_families(n, dtype, families=FAMILIES):
    return stack(make(family, n, dtype) for family in families)


def one(result, i):
    return tuple(part[i] for part in result)


def check(findings, where, d, e, result, lower=False, references=None):
    """Checks each matrix in all measures. references: s_ref of each matrix."""
    for i in range(len(d)):
        here = f"{where} matrix {i}"
        check_vectors(findings, here, d[i], e[i], one(result, i), lower)
        s_ref = references[i] if references else tsvd.svdvals(d[i], e[i], device="cpu")
        check_values(findings, here, result[1][i], s_ref, "auto")


# ---- every matrix of a batch ----


@every_dtype
@pytest.mark.parametrize(
    "n", [*SIZES, *(pytest.param(n, marks=pytest.mark.slow) for n in LARGE_SIZES)]
)
def test_all_families_at_once(n, dtype, device):
    """One batch holds zero, graded, clustered, hard and denormal matrices."""
    d, e = all_families(n, dtype)
    with Findings() as findings:
        check(findings, f"n={n}", d, e, tsvd.svd(d, e, device=device))


@pytest.mark.parametrize("n", LARGE_SIZES)
def test_some_families_at_once(n, device):
    dtype = DTYPES[n % 2]
    d, e = all_families(n, dtype, SOME)
    with Findings() as findings:
        check(findings, f"n={n} {dtype.__name__}", d, e, tsvd.svd(d, e, device=device))


@every_dtype
@pytest.mark.parametrize("n", [2, 3, 5, 17, 32, 33, 64, 100])
def test_against_the_reference(n, dtype, device):
    """Values with and without vectors against extended precision, also graded and tiny ones."""
    cases = [case(family, n, dtype) for family in FAMILIES]
    d, e = stack((c.d, c.e) for c in cases)
    s, values = tsvd.svd(d, e, device=device).s, tsvd.svdvals(d, e, device=device)
    with Findings() as findings:
        for i, family in enumerate(FAMILIES):
            where = f"{family} n={n} {dtype.__name__} in a batch"
            check_values(findings, where, s[i], cases[i].s_ref, "auto")
            check_values(findings, f"{where}, alone", values[i], cases[i].s_ref, "bisect")


@pytest.mark.parametrize("n", [*SIZES, 128, 257])
def test_values_of_all_families(n, device):
    dtype = DTYPES[n % 2]
    d, e = all_families(n, dtype)
    s = tsvd.svdvals(d, e, device=device)
    with Findings() as findings:
        for i, family in enumerate(FAMILIES):
            s_ref = tsvd.svdvals(d[i], e[i], method="bisect", device="cpu")
            where = f"{family} n={n} {dtype.__name__}"
            check_values(findings, where, s[i], s_ref, "bisect")


@every_dtype
@pytest.mark.parametrize("n", [5, 20, 32, 40, 70])
def test_each_as_if_alone(n, dtype, device):
    """s agrees to a few ulps. Vectors differ by rounding; other tests hold them to their bounds."""
    d, e = all_families(n, dtype)
    result = tsvd.svd(d, e, device=device)
    with Findings() as findings:
        for i, family in enumerate(FAMILIES):
            alone = tsvd.svd(d[i], e[i], device=device)
            error = value_error(result.s[i], alone.s)
            findings.bound(f"{family} n={n} {dtype.__name__}", "ulps from s alone", error, 4)


@every_dtype
@pytest.mark.parametrize("n", [2, 8, 17, 32, 33, 65])
def test_lower(n, dtype, device):
    d, e = all_families(n, dtype)
    with Findings() as findings:
        result = tsvd.svd(d, e, lower=True, device=device)
        check(findings, f"n={n} lower", d, e, result, lower=True)


@pytest.mark.parametrize("eps", [1e-2, 1e-5, 1e-10])
@pytest.mark.parametrize("n", [3, 20, 33, 65])
def test_eps(n, eps, device):
    """max |B - L S R| <= 4 eps + the bound at full accuracy, for each matrix."""
    some = ("uniform_1", "normal", "zero", "chi", "graded_gently", "zeros_off", "many_equal")
    with Findings() as findings:
        for dtype in DTYPES:
            d, e = all_families(n, dtype, some)
            result = tsvd.svd(d, e, eps=eps, device=device)
            s = tsvd.svdvals(d, e, eps=eps, device=device)
            for i, family in enumerate(some):
                where = f"{family} n={n} {dtype.__name__} eps={eps}"
                unit = (n + 8) * float(np.finfo(dtype).eps)
                limit = 4 * eps + BOUNDS["residual"](n) * unit * norm(d[i], e[i])
                error = max_abs_error(d[i], e[i], *one(result, i))
                findings.bound(where, "max |B - L S R|", error, limit)
                lost = orthogonality(result.L[i], result.R[i])
                findings.bound(where, "orthogonality", lost, BOUNDS["orthogonality"](n))
                exact = tsvd.svdvals(d[i], e[i], device="cpu")
                findings.bound(where, "max |s - s_ref|", np.max(abs(s[i] - exact)), limit)


def test_hard_matrices(device):
    """All hard matrices of one order and dtype, twice in one batch, among easy ones."""
    groups = {}
    for name, (d, e) in hard().items():
        groups.setdefault((d.size, d.dtype), []).append((name, d, e))
    with Findings() as findings:
        for (n, dtype), members in groups.items():
            matrices = [(d, e) for _, d, e in members]
            d, e = stack([*matrices, make("normal", n, dtype), *matrices, make("zero", n, dtype)])
            result = tsvd.svd(d, e, device=device)
            check(findings, members[0][0], d, e, result)
            again = len(members) + 1
            for i, (name, *_) in enumerate(members):
                same = same_bits(one(result, i), one(result, i + again))
                findings.holds(name, "the same twice in one batch", same)


# ---- numbers of matrices ----


@every_dtype
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 31, 33, 300])
def test_every_number_of_matrices(count, dtype, device):
    """Counts around the lanes of a vector, and more than there are threads or multiprocessors."""
    rng = np.random.default_rng(count)
    with Findings() as findings:
        for n in (1, 6, 16, 32, 33):
            d = rng.standard_normal((count, n)).astype(dtype)
            e = rng.standard_normal((count, n - 1)).astype(dtype)
            where = f"{count} of n={n} {dtype.__name__}"
            check(findings, where, d, e, tsvd.svd(d, e, device=device))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "n", "dtype"),
    [
        (100_000, 8, np.float64),
        (20_000, 32, np.float32),
        (3000, 100, np.float64),
        (700, 257, float),
    ],
)
def test_more_than_is_worked_on_at_once(count, n, dtype, device):
    """Checks all values, and the vectors of some matrices, also of the first and the last."""
    rng = np.random.default_rng(n)
    d = rng.standard_normal((count, n)).astype(dtype)
    e = rng.standard_normal((count, n - 1)).astype(dtype)
    d[::17], e[::17] = 0, 0
    result = tsvd.svd(d, e, device=device)
    values = tsvd.svdvals(d, e, device="cpu")
    with Findings() as findings:
        limit = BOUNDS["values auto"](n)
        findings.bound(f"n={n}", "value error", value_error(result.s, values), limit)
        for i in (0, 17, count - 1, *rng.integers(0, count, 50)):
            check_vectors(findings, f"{i} of n={n}", d[i], e[i], one(result, i))


@pytest.mark.parametrize("n", [8, 32, 40])
def test_broadcast(n, device):
    """One d for many e, one e for many d, and batches of two dimensions."""
    rng = np.random.default_rng(n)
    for d_shape, e_shape in (((), (9,)), ((9,), ()), ((4, 1), (1, 5)), ((3, 1, 2), (4, 1))):
        d, e = rng.random((*d_shape, n)), rng.random((*e_shape, n - 1))
        batch = np.broadcast_shapes(d_shape, e_shape)
        d_all, e_all = np.broadcast_to(d, (*batch, n)), np.broadcast_to(e, (*batch, n - 1))
        result = tuple(tsvd.svd(d, e, device=device))
        assert same_bits(result, tuple(tsvd.svd(d_all.copy(), e_all.copy(), device=device)))
        flat = (d_all.reshape(-1, n), e_all.reshape(-1, n - 1))
        with Findings() as findings:
            parts = tuple(x.reshape(-1, *x.shape[len(batch) :]) for x in result)
            check(findings, f"{d_shape} {e_shape}", *flat, parts)


@pytest.mark.parametrize("n", [0, 1, 8, 33])
def test_no_matrix(n, device):
    d, e = np.zeros((0, n)), np.zeros((0, max(n - 1, 0)))
    L, s, R = tsvd.svd(d, e, device=device)
    assert L.shape == R.shape == (0, n, n) and s.shape == (0, n)
    assert tsvd.svdvals(d, e, device=device).shape == (0, n)


@pytest.mark.parametrize("n", [1, 8, 33, 70])
def test_zero_matrices_alone(n, device):
    d, e = np.zeros((20, n)), np.zeros((20, n - 1))
    L, s, R = tsvd.svd(d, e, device=device)
    assert not s.any() and not tsvd.svdvals(d, e, device=device).any()
    for i in range(20):
        assert orthogonality(L[i], R[i]) == 0


# ---- a bad matrix ----


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 8, 32, 40, 130])
@pytest.mark.parametrize("place", [0, 11, 39])
def test_one_bad_matrix(n, bad, place, device):
    """The error has its index. If it is not checked, only its results are NaN."""
    d, e = stack(make("chi", n, seed=k) for k in range(40))
    good = tsvd.svd(d, e, device=device)
    values = tsvd.svdvals(d, e, device=device)
    d[place, n // 2] = bad
    for function in (tsvd.svd, tsvd.svdvals):
        with pytest.raises(ValueError, match=rf"matrix {place} of the batch.*NaN"):
            function(d, e, device=device)
    others = np.arange(40) != place
    spoiled = tsvd.svd(d, e, check_finite=False, device=device)
    for part, same in zip(spoiled, good, strict=True):
        assert np.isnan(part[place]).all() and same_bits(part[others], same[others])
    s = tsvd.svdvals(d, e, check_finite=False, device=device)
    assert np.isnan(s[place]).all() and same_bits(s[others], values[others])


def test_the_first_of_several_bad_matrices_is_named(device):
    d, e = np.ones((4, 50, 9)), np.ones((4, 50, 8))
    e[1, 7, 3], d[2, 0, 0], e[3, 49, 7] = np.nan, np.inf, -np.inf
    with pytest.raises(ValueError, match="matrix 57 of the batch"):
        tsvd.svd(d, e, device=device)


def test_no_convergence_names_the_matrix(device):
    d, e = np.zeros((5, 100)), np.zeros((5, 99))
    d[3], e[3] = 1, 1
    with pytest.raises(np.linalg.LinAlgError, match=r"matrix 3 of the batch.*sweeps"):
        tsvd.svd(d, e, method="qr", max_sweeps=1, device=device)


# ---- the same every time ----


@every_dtype
@pytest.mark.parametrize("n", [8, 32, 40, 130])
def test_the_same_bits_again(n, dtype, device):
    d, e = all_families(n, dtype)
    first = tuple(tsvd.svd(d, e, device=device))
    assert same_bits(first, tuple(tsvd.svd(d, e, device=device)))
    assert same_bits(tsvd.svdvals(d, e, device=device), tsvd.svdvals(d, e, device=device))


@every_dtype
@pytest.mark.parametrize("n", [5, 32, 40, 130])
def test_threads_change_no_bit(n, dtype):
    d, e = all_families(n, dtype)
    for vectors in (False, True):
        options = {"compute_uv": vectors, "device": "cpu"}
        one_, two, three = (tsvd.svd(d, e, threads=k, **options) for k in (1, 2, 3))
        assert same_bits(one_, two) and same_bits(one_, three)


@pytest.mark.parametrize("n", [8, 33])
def test_out_of_a_batch(n, device):
    d, e = all_families(n, np.float64)
    shapes = ((len(d), n, n), (len(d), n), (len(d), n, n))
    out = tuple(np.full(shape, 7.0) for shape in shapes)
    result = tsvd.svd(d, e, out=out, device=device)
    assert all(given is filled for given, filled in zip(out, result, strict=True))
    assert same_bits(out, tuple(tsvd.svd(d, e, device=device)))


@pytest.mark.parametrize("n", [8, 40])
def test_svd_without_vectors_is_svdvals(n, device):
    d, e = all_families(n, np.float64)
    for lower in (False, True):
        for eps in (None, 1e-3):
            options = {"lower": lower, "eps": eps, "device": device}
            for selected in ({}, {"select": "i", "select_range": (1, 4)}):
                s = tsvd.svd(d, e, compute_uv=False, **options, **selected)
                assert same_bits(s, tsvd.svdvals(d, e, **options, **selected))


@pytest.mark.parametrize(("count", "n"), [(20_000, 8), (3000, 40)])
@pytest.mark.parametrize("vectors", [True, False])
def test_progress(count, n, vectors, device):
    rng = np.random.default_rng(1)
    d, e, shares = rng.random((count, n)), rng.random((count, n - 1)), []
    tsvd.svd(d, e, compute_uv=vectors, progress=shares.append, device=device)
    assert shares == sorted(shares) and shares[-1] == 1 and shares[0] >= 0

    class Stop(Exception):
        pass

    def stop(done):
        raise Stop

    with pytest.raises(Stop):
        tsvd.svd(d, e, compute_uv=vectors, progress=stop, device=device)
