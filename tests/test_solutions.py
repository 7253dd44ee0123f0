"""tsvd.linalg: pseudo-inverse, least squares, rank, condition and norms."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.linalg

from testing.dense_families import FAMILIES, make
from testing.measures import dense_value_bound
from testing.ranks import TYPES, adjoint, numbers, of_rank, size
from tsvd import linalg

every_dtype = pytest.mark.parametrize("dtype", TYPES)
SHAPES = [(1, 1), (3, 3), (6, 4), (4, 6), (33, 33), (60, 40), (40, 60), (300, 40), (40, 300)]


# ---- the pseudo-inverse ----


def check_pinv(a, X, conditioned):
    """The four rules of Penrose, of matrices whose values that count are `conditioned` apart."""
    unit = 20 * max(a.shape[-2:]) * np.finfo(a.dtype).eps * conditioned
    wide = np.clongdouble if np.iscomplexobj(a) else np.longdouble
    b, Y = a.astype(wide), X.astype(wide)
    assert X.dtype == a.dtype and X.shape == a.swapaxes(-1, -2).shape
    assert (size(b @ Y @ b - b) <= unit * size(b)).all()
    assert (size(Y @ b @ Y - Y) <= unit * size(Y)).all()
    for product in (b @ Y, Y @ b):
        assert (size(product - adjoint(product)) <= unit * max(1, conditioned)).all()


@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (5, 6, 4), (2, 3, 4, 7), (2, 50, 40)])
def test_pinv_of_every_rank(shape, dtype, device):
    p = min(shape[-2:])
    for rank in {0, 1, p // 2, p}:
        a = of_rank(rank, shape, dtype)
        X, found = linalg.pinv(a, return_rank=True, device=device)
        assert (np.asarray(found) == rank).all()
        check_pinv(a, X, 2)
        assert np.array_equal(X, linalg.pinv(a, device=device))


def test_pinv_takes_its_threshold_by_either_name(device):
    a = np.diag([4.0, 2.0, 1.0, 1e-3])
    for part, rank in ((0.6, 1), (0.5, 1), (0.4, 2), (1e-4, 4), (0, 4), (2, 0)):
        expected = np.diag(np.where(np.arange(4) < rank, 1 / np.diag(a), 0))
        for given in ({"rcond": part}, {"rtol": part}, {"rtol": np.float32(part)}):
            X, found = linalg.pinv(a, **given, return_rank=True, device=device)
            assert found == rank and np.allclose(X, expected, rtol=1e-14, atol=1e-15)
    for nothing in ({}, {"rcond": None}, {"rtol": None}):
        assert np.allclose(linalg.pinv(a, **nothing, device=device) @ a, np.eye(4))
    parts = [0.6, 1e-4]
    X = linalg.pinv(np.stack([a, a]), parts, device=device)
    assert np.allclose(X[0], np.diag([0.25, 0, 0, 0])) and np.allclose(X[1] @ a, np.eye(4))
    with pytest.raises(ValueError, match="both"):
        linalg.pinv(a, 0.1, rtol=0.1)


def test_pinv_counts_rounding_errors_as_zero(device):
    """NumPy's default, 1e-15, takes them for values."""
    a = of_rank(30, (100, 50), "float64")
    X, rank = linalg.pinv(a, return_rank=True, device=device)
    assert rank == 30 and size(X) < 30


def test_pinv_of_tiny_and_huge_matrices(device):
    a = of_rank(3, (6, 4), "float64")
    for power in (-1000, -500, 500, 1000):
        X = linalg.pinv(a * 2.0**power, device=device)
        assert np.allclose(X * 2.0**power, linalg.pinv(a, device=device), rtol=1e-12)
    assert not linalg.pinv(np.zeros((3, 2)), device=device).any()


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (3, 0, 2), (0, 2, 3)])
def test_pinv_of_nothing(shape, device):
    X, rank = linalg.pinv(np.zeros(shape, "float32"), return_rank=True, device=device)
    assert X.dtype == "float32" and X.shape == (*shape[:-2], shape[-1], shape[-2])
    assert np.array_equal(rank, np.zeros(shape[:-2], int))


def test_pinv_adds_an_absolute_threshold(device):
    a = np.diag([4.0, 2.0, 1.0, 1e-3])
    for atol, rtol, rank in ((0, 0, 4), (1.5, 0, 2), (1, 0.3, 1), (0.5, 0.3, 2), (5, 0, 0)):
        for function in (linalg.pinv, linalg.pinvh):
            given = {"atol": atol, "rtol": rtol, "return_rank": True, "device": device}
            assert function(a, **given)[1] == rank
            far = {**given, "atol": atol * 2.0**-500}
            assert function(a * 2.0**-500, **far)[1] == rank
            both = {**given, "atol": [atol, 0.0]}
            assert np.array_equal(function(np.stack([a, a]), **both)[1][:1], [rank])
    for function in (linalg.pinv, linalg.pinvh):
        with pytest.raises(ValueError, match="atol must not be negative"):
            function(a, atol=-1.0)
    with pytest.raises(ValueError, match="rtol must not be negative"):
        linalg.pinvh(a, rtol=[-1.0])


# ---- the pseudo-inverse of Hermitian matrices ----


def hermitian(rank, shape, dtype, seed=0):
    """Eigenvalues 1 to 2 and -2 to -1, in turn, and zeros."""
    *batch, n = shape
    Q = np.linalg.qr(numbers((*batch, n, rank), dtype, seed))[0]
    a = (Q * (np.linspace(2, 1, rank) * (-1) ** np.arange(rank))) @ adjoint(Q)
    return ((a + adjoint(a)) / 2).astype(dtype)


@every_dtype
@pytest.mark.parametrize("shape", [(1,), (3,), (16,), (33,), (90,), (5, 4), (2, 70)])
def test_pinvh_of_every_rank(shape, dtype, device):
    n = shape[-1]
    for rank in {0, 1, n // 2, n}:
        a = hermitian(rank, shape, dtype)
        for lower in (True, False):
            other = np.tri(n, k=-1, dtype=bool)
            spoilt = np.where(other.T if lower else other, math.nan, a)
            if "complex" in dtype:
                spoilt = spoilt + 3j * np.eye(n)  # of the diagonal the real part counts
            X, found = linalg.pinvh(
                spoilt.astype(dtype), lower=lower, return_rank=True, device=device
            )
            assert (np.asarray(found) == rank).all() and np.array_equal(X, adjoint(X))
            check_pinv(a, X, 2)
            assert np.array_equal(
                X, linalg.pinvh(spoilt.astype(dtype), None, None, lower, device=device)
            )


def test_pinvh_is_that_of_scipy(device):
    for seed, (n, rank) in enumerate([(1, 1), (5, 3), (40, 40), (70, 10)]):
        a = hermitian(rank, (n,), "complex128", seed)
        ours = linalg.pinvh(a, return_rank=True, device=device)
        theirs = scipy.linalg.pinvh(a, return_rank=True)
        assert ours[1] == theirs[1] and np.allclose(ours[0], theirs[0])


@every_dtype
def test_pseudo_inverses_at_the_ends_of_the_range_of_numbers(dtype, device):
    info = np.finfo(dtype)
    a = hermitian(4, (4,), dtype)
    a, at = a / abs(a).max(), 2.0 ** np.array([info.maxexp - 1, info.minexp + 3])
    for scale, function in itertools.product(at, (linalg.pinv, linalg.pinvh)):
        X = function((a * scale).astype(dtype), device=device) * scale
        assert np.allclose(X, function(a, device=device), rtol=1e-2)
    both = np.stack([a * at[0], a * at[1], 0 * a]).astype(dtype)
    _, rank = linalg.pinvh(both, return_rank=True, device=device)
    assert np.array_equal(rank, [4, 4, 0])
    constant = np.full((4, 4), info.max, dtype)  # the largest value is above all numbers
    for function in (linalg.pinv, linalg.pinvh):
        assert np.allclose(function(constant, device=device) * info.max, 1 / 16, rtol=1e-2)


def test_pinvh_refuses_what_is_not_square(device):
    for wrong in (np.ones((2, 3)), np.ones((2, 2, 1))):
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            linalg.pinvh(wrong, device=device)
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional"):
        linalg.pinvh(np.ones(3))
    lost = [[1.0, 0.0], [math.inf, 1.0]]
    for function in (linalg.pinv, linalg.pinvh):
        with pytest.raises(ValueError, match="NaN"):
            function(lost, device=device)
        assert np.isnan(function(lost, check_finite=False, device=device)).all()
    for shape in ((0, 0), (3, 0, 0)):
        assert linalg.pinvh(np.zeros(shape, "complex64"), device=device).shape == shape


# ---- least squares ----


def reference_lstsq(a, b, rank):
    U, s, Vh = np.linalg.svd(a.astype("complex128" if np.iscomplexobj(a) else "float64"))
    return adjoint(Vh[:rank]) @ ((adjoint(U[:, :rank]) @ b) / s[:rank, None])


@every_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_lstsq_of_every_rank(shape, dtype, device):
    (m, n), p = shape, min(shape)
    for rank, k in itertools.product({1, (p + 1) // 2, p}, (1, 3)):
        a, b = of_rank(rank, shape, dtype), numbers((m, k), dtype, 5)
        x, residuals, found, s = linalg.lstsq(a, b, device=device)
        unit = 50 * max(shape) * np.finfo(dtype).eps
        expected = reference_lstsq(a, b, rank)
        assert found == rank and x.shape == (n, k) and x.dtype == dtype
        assert size(x - expected) <= unit * size(b)
        assert s.shape == (p,) and s.dtype == np.zeros(0, dtype).real.dtype
        assert abs(s[0] - 2) <= unit * 2
        if rank == n and m > n:
            apart = (abs(b - a @ expected) ** 2).sum(0)
            assert residuals.shape == (k,) and np.allclose(residuals, apart, rtol=100 * unit)
        else:
            assert residuals.shape == (0,)
        one, *_ = linalg.lstsq(a, b[:, 0], device=device)
        assert one.shape == (n,) and size((one - expected[:, 0])[None]) <= unit * size(b)


@every_dtype
@pytest.mark.parametrize("shape", [(4, 6, 4), (2, 2, 4, 6), (3, 50, 40), (2, 40, 50)])
def test_lstsq_of_batches(shape, dtype, device):
    *batch, m, n = shape
    a, b = numbers(shape, dtype), numbers((*batch, m, 2), dtype, 1)
    a[(0,) * len(batch)] = of_rank(2, (m, n), dtype)
    x, residuals, rank, s = linalg.lstsq(a, b, device=device)
    assert x.shape == (*batch, n, 2) and residuals.shape == (*batch, 2)
    assert rank.shape == tuple(batch) and s.shape == (*batch, min(m, n))
    for i in np.ndindex(*batch):
        one = linalg.lstsq(a[i], b[i], device=device)
        assert one[2] == rank[i] == (2 if not any(i) else min(m, n))
        scale = abs(one[0]).max()
        assert np.allclose(one[0], x[i], rtol=0, atol=2e4 * np.finfo(dtype).eps * scale)


def test_lstsq_agrees_with_numpy(device):
    for seed, (m, n) in enumerate([(3, 3), (50, 7), (7, 50), (400, 90), (90, 90)]):
        a, b = numbers((m, n), "float64", seed), numbers((m, 2), "float64", [seed, 1])
        ours, theirs = linalg.lstsq(a, b, device=device), np.linalg.lstsq(a, b, rcond=None)
        for x, y in zip(ours, theirs, strict=True):
            assert np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-9)
            assert np.asarray(x).dtype.kind == np.asarray(y).dtype.kind


def test_lstsq_takes_numbers_of_several_types(device):
    a, b = numbers((9, 4), "float32"), numbers((9,), "complex128", 1)
    x, residuals, rank, s = linalg.lstsq(a, b, device=device)
    assert x.dtype == "complex128" and residuals.dtype == s.dtype == "float64" and rank == 4
    assert np.allclose(x, np.linalg.lstsq(a, b, rcond=None)[0])
    assert rank.dtype == np.linalg.lstsq(a, b, rcond=None)[2].dtype
    whole = linalg.lstsq([[1, 0], [0, 2], [1, 1]], [1, 2, 3], device=device)
    assert all(np.asarray(x).dtype == "float64" for x in (whole[0], whole[1], whole[3]))
    single = linalg.lstsq(a, b.real.astype("float32"), device=device)
    assert single[0].dtype == single[3].dtype == "float32"


@pytest.mark.parametrize("rcond", [None, -1, -0.5])
def test_lstsq_has_a_threshold_for_rounding_errors(rcond, device):
    # with half an eps the errors of a reduction in float32 may count as values
    for shape in ((12, 9), (120, 90)) if rcond is None else ((12, 9),):
        a = of_rank(5, shape, "float32")
        assert linalg.lstsq(a, a[:, 0], rcond, device=device)[2] == 5
    assert linalg.lstsq(np.diag([4.0, 2.0, 1.0]), np.ones(3), 0.3, device=device)[2] == 2


@every_dtype
@pytest.mark.parametrize("shape", [(6, 4), (66, 66), (80, 70), (70, 80), (200, 30)])
def test_residuals_of_a_batch_of_any_rank(shape, dtype, device):
    m = shape[0]
    a = np.stack([of_rank(rank, shape, dtype) for rank in (2, min(shape))])
    b = numbers((2, m, 3), dtype, 4)
    _, residuals, rank, _ = linalg.lstsq(a, b, device=device)
    assert np.array_equal(rank, [2, min(shape)])
    for i in range(2):
        right = b[i] - a[i] @ reference_lstsq(a[i], b[i], rank[i])
        unit = 100 * m * np.finfo(dtype).eps
        assert np.allclose(residuals[i], (abs(right) ** 2).sum(0), rtol=unit, atol=unit)


SHAPES = [(3, 2), (2, 3), (2, 2), (70, 3), (3, 70), (70, 66), (100, 66)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2])
def test_lstsq_at_the_ends_of_the_range_of_numbers(shape, dtype, columns, device):
    info = np.finfo(dtype)
    a, b = numbers(shape, dtype), numbers((shape[0], columns), dtype, 1)
    a, b = a / abs(a).max(), b / abs(b).max()
    right, _, rank, _ = linalg.lstsq(a, b, device=device)
    close = {"rtol": 1e-2, "atol": 1e-3 * abs(right).max()}
    for scale in (info.max / 2, info.tiny, info.tiny * 2.0**-11):
        scale = dtype_of(scale, dtype)
        x, _, found, s = linalg.lstsq(a * scale, b * scale, device=device)
        assert found == rank and np.allclose(x, right, **close) and not np.isnan(s).any()
    both = np.stack([a * info.max / 2, a * info.tiny * 8, a]).astype(dtype)
    sides = np.stack([b * info.max / 2, b * info.tiny * 8, b]).astype(dtype)
    assert all(np.allclose(x, right, **close) for x in linalg.lstsq(both, sides, device=device)[0])
    constant = np.full(shape, info.max, dtype)
    x, _, found, _ = linalg.lstsq(constant, constant[:, 0], device=device)
    assert found == 1 and np.allclose(x, 1 / shape[1], rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@every_dtype
@pytest.mark.parametrize("powers", [(-38, 38), (38, -38), (-100, 20), (50, -60)])
def test_lstsq_of_sides_far_larger_or_smaller_than_the_matrix(shape, dtype, powers, device):
    """One side is a column of the matrix that is reduced: neither may be lost beside the other."""
    a, b = numbers(shape, dtype), numbers((shape[0], 1), dtype, 1)
    of_a, of_b = (np.finfo(dtype).dtype.type(2.0**power) for power in powers)
    x, *_ = linalg.lstsq(a * of_a, b * of_b, device=device)
    expected = reference_lstsq(a, b, min(shape))
    unit = 100 * max(shape) * np.finfo(dtype).eps
    off = x * 2.0 ** (powers[0] - powers[1]) - expected
    assert np.linalg.norm(off) <= unit * np.linalg.cond(a) * np.linalg.norm(expected)


def dtype_of(x, dtype):
    return np.dtype(dtype).type(x)


def test_types_that_are_not_computed_are_refused(device):
    a, b = np.eye(2), np.ones(2)
    for wrong in (b.astype("float16"), np.array(["1", "2"]), b.astype(object), np.longdouble(b)):
        with pytest.raises(TypeError, match=r"dtype|object|strings"):
            linalg.lstsq(a, wrong, device=device)
        with pytest.raises(TypeError, match=r"dtype|object|strings"):
            linalg.lstsq(np.stack([wrong, wrong]), b, device=device)
    swapped = np.array([1 + 2j, 3 + 4j])
    x = linalg.lstsq(a.astype(">f4"), swapped.astype(">c8"), device=device)[0]
    assert x.dtype == "complex64" and np.allclose(x, swapped)
    assert linalg.lstsq(a.astype(">f4"), b.astype("f4"), device=device)[0].dtype == "float32"


def test_thresholds_of_every_kind(device):
    a = [[1, 2], [2, 4.0], [3, 6]]
    for rcond in (-1, 0, np.int64(-1), np.float32(-1), np.array(-1.0)):
        assert linalg.lstsq(a, [1.0, 2, 4], rcond, device=device)[2] == 1
    both = np.stack([np.diag([4.0, 1.0])] * 2)
    assert np.array_equal(
        linalg.lstsq(both, np.ones((2, 2, 1)), [0.5, -1], device=device)[2], [1, 2]
    )
    for wrong, error in (([0.1], ValueError), ([0.1, 0.2], ValueError), ("1", TypeError)):
        for function in (linalg.pinv, lambda a, x, **k: linalg.lstsq(a, np.ones(2), x, **k)):
            with pytest.raises(error, match="rcond"):
                function(np.eye(2), wrong, device=device)
        with pytest.raises(error, match="tol"):
            linalg.matrix_rank(np.eye(2), wrong, device=device)


def test_norms_are_numbers_and_warnings_stay():
    a = numbers((4, 4), "float32")
    for order in (2, -2, "nuc", "fro"):
        assert type(linalg.norm(a, order)) is np.float32
    assert linalg.norm(numbers((3, 4, 4), "float64"), 2, (1, 2)).base is None
    before = list(warnings.filters)
    linalg.cond(np.ones((3, 3)), 1)
    assert before == warnings.filters
    hilbert = (1 / (np.arange(9)[:, None] + np.arange(9) + 1)).astype("float32")
    assert np.isclose(linalg.cond(hilbert, 1), np.linalg.cond(hilbert, 1), rtol=1e-5)
    for wrong in ({"device": "xyz"}, {"threads": 0}):
        for call in (lambda **k: linalg.norm(a, **k), lambda **k: linalg.matrix_rank(a[0], **k)):
            with pytest.raises(ValueError, match=r"xyz|threads"):
                call(**wrong)


def test_arrays_of_two_libraries_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="torch"):
        linalg.lstsq(torch.eye(2), np.ones(2))
    whole = torch.tensor([[2, 1], [1, 1]])
    assert float(linalg.cond(whole, 1)) == pytest.approx(9)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_lstsq_of_nothing(shape, device):
    a, b = np.zeros(shape), np.ones((shape[0], 2))
    x, _, rank, s = linalg.lstsq(a, b, device=device)
    assert x.shape == (shape[1], 2) and not x.any() and rank == 0 and s.shape == (0,)
    assert linalg.lstsq(np.ones((3, 2)), np.ones((3, 0)), device=device)[0].shape == (2, 0)


def test_lstsq_refuses_what_does_not_fit(device):
    for a, b in (
        (np.ones((3, 2)), np.ones(4)),
        (np.ones((3, 2)), np.ones((2, 3, 1))),
        (np.ones(3), np.ones(3)),
        (np.ones((2, 3, 2)), np.ones((3, 1))),
    ):
        with pytest.raises(np.linalg.LinAlgError, match=r"shape \("):
            linalg.lstsq(a, b, device=device)
    with pytest.raises(ValueError, match="NaN"):
        linalg.lstsq([[1.0, math.nan], [0.0, 1.0]], [1.0, 1.0], device=device)


@pytest.mark.parametrize("shape", [(3, 2), (200, 100), (100, 200)])
@pytest.mark.parametrize(("dtype", "far"), [("float64", 1e200), ("float32", 1e25)])
def test_right_hand_sides_far_apart(shape, dtype, far, device):
    """Each is solved as it is alone."""
    a = numbers(shape, dtype)
    b = numbers((shape[0], 3), dtype, 1) * np.array([far, 1, 1 / far], dtype)
    for batch in (1, 2):
        x = linalg.lstsq(np.stack([a] * batch), np.stack([b] * batch), device=device)[0]
        for i in range(3):
            alone = linalg.lstsq(a, b[:, i], device=device)[0]
            largest = abs(alone).max()
            tolerance = largest * (1e-3 if dtype == "float32" else 1e-10)
            assert largest > 0 and abs(x[-1][:, i] - alone).max() <= tolerance


# ---- rank, condition, norms ----


@pytest.mark.parametrize("family", FAMILIES)
def test_rank_condition_and_norms_are_those_of_the_values(family, device):
    for m, n in ((4, 4), (7, 5), (33, 20)):
        a = make(family, m, n, np.float64)
        s = linalg.svdvals(a, device=device)
        eps = np.finfo(a.dtype).eps
        assert linalg.matrix_rank(a, device=device) == (s > s[0] * (max(m, n) * eps)).sum()
        assert linalg.norm(a, 2, device=device) == s[0]
        assert linalg.matrix_norm(a, ord=2, device=device) == s[0]
        assert linalg.norm(a, -2, device=device) == s[-1]
        with np.errstate(all="ignore"):
            total, ratio = s.sum(), s[0] / s[-1]
        assert np.isclose(linalg.norm(a, "nuc", device=device), total, rtol=1e-14)
        found = linalg.cond(a, device=device)
        assert found == (math.inf if np.isnan(ratio) else ratio)
        theirs = np.linalg.svd(a, compute_uv=False)
        if np.isfinite(theirs).all():
            limit = 2 * dense_value_bound(m, n) * eps
            assert abs(linalg.norm(a, 2, device=device) - theirs[0]) <= limit * theirs[0]


def test_rank_by_a_threshold(device):
    a = np.diag([4.0, 2.0, 1.0, 0.0])
    for tol, rank in ((0, 3), (1, 2), (1.5, 2), (4, 0)):
        assert linalg.matrix_rank(a, tol, device=device) == rank
        assert linalg.matrix_rank(a, rtol=tol / 4, device=device) == rank
    both = np.stack([a, a])
    assert np.array_equal(linalg.matrix_rank(both, [1.5, 0], device=device), [2, 3])
    assert np.array_equal(linalg.matrix_rank(both, rtol=[0.3, 0], device=device), [2, 3])
    assert linalg.matrix_rank([0.0, 1.0]) == 1 and linalg.matrix_rank(np.zeros(3)) == 0
    with pytest.raises(ValueError, match="both"):
        linalg.matrix_rank(a, 1, rtol=1)
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        linalg.matrix_rank(np.ones((2, 3)), hermitian=True)


def test_condition_by_every_norm(device):
    a = numbers((3, 4, 4), "float64")
    a[1, 0] = a[1, 1]
    for p in (None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc"):
        ours, theirs = linalg.cond(a, p, device=device), np.linalg.cond(a, p)
        assert np.allclose(ours[[0, 2]], theirs[[0, 2]], rtol=1e-10)
        assert ours[1] > 1e15 or p in (-2, -1, -math.inf)
        assert np.allclose(linalg.cond(a[0], p, device=device), theirs[0], rtol=1e-10)
    zero = np.zeros((2, 2))
    assert linalg.cond(zero, device=device) == linalg.cond(zero, 1, device=device) == math.inf
    a[2, 1, 1] = math.nan
    for p in (None, 1):
        assert np.array_equal(np.isnan(linalg.cond(a, p, device=device)), [False, False, True])
    with pytest.raises(np.linalg.LinAlgError, match="empty"):
        linalg.cond(np.ones((0, 3)))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        linalg.cond(np.ones((2, 3)), 1)


def test_norms_along_axes(device):
    a = numbers((3, 4, 5, 2), "complex128")
    for axes in itertools.permutations(range(-1, 3), 2):
        for order, keep in itertools.product((2, -2, "nuc", "fro", 1), (False, True)):
            if axes in ((-1, 3), (3, -1)):
                continue
            ours = linalg.norm(a, order, axes, keep, device=device)
            theirs = np.linalg.norm(a, order, axes, keep)
            assert ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-13)
    assert np.allclose(linalg.matrix_norm(a, ord="nuc"), np.linalg.norm(a, "nuc", (-2, -1)))
    assert linalg.norm([3.0, 4.0]) == linalg.norm([3.0, 4.0], 2) == 5
    for wrong in ({"axis": (1, 1)}, {"axis": (0, 9)}, {"ord": "x", "axis": (0, 1)}):
        with pytest.raises(ValueError, match=r"axes|axis|order"):
            linalg.norm(a, **({"ord": 2} | wrong), device=device)


# ---- arrays of other libraries ----


def test_results_are_arrays_of_the_library(other):
    make_one, host = other
    for dtype, (m, n) in itertools.product(TYPES, ((6, 4), (4, 6), (50, 40), (40, 50))):
        a, b = of_rank(4, (m, n), dtype), numbers((m, 2), dtype, 1)
        given, right = make_one(a), make_one(b)
        tolerance = {"rtol": 0, "atol": 2e4 * np.finfo(dtype).eps}
        whole = hermitian(4, (m,), dtype)
        found = linalg.pinv(given), linalg.pinvh(make_one(whole)), *linalg.lstsq(given, right)
        assert all(type(x) is type(given) for x in found)
        expected = linalg.pinv(a), linalg.pinvh(whole), *linalg.lstsq(a, b)
        for x, y in zip(found, expected, strict=True):
            assert np.allclose(host(x), y, **tolerance) and np.shape(host(x)) == np.shape(y)
        far = linalg.lstsq(given * 2.0**-100, right * 2.0**-110)[0]
        assert np.allclose(host(far) * 2.0**10, expected[2], **tolerance)
        for rank, x in ((4, given), (1, right[0]), (0, 0 * right[0])):
            found = linalg.matrix_rank(x)
            assert type(found) is type(given) and int(found) == rank
        for order in (2, -2, "nuc", "fro"):
            assert np.allclose(
                host(linalg.norm(given, order)), np.linalg.norm(a, order), **tolerance
            )
        square = make_one(a @ a.T.conj() + np.eye(m, dtype=dtype))
        for p in (None, 1):
            assert np.isclose(host(linalg.cond(square, p)), np.linalg.cond(host(square), p), 1e-3)
