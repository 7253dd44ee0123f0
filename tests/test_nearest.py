"""tsvd.linalg: the nearest orthogonal matrices and those of low rank."""

import numpy as np
import pytest
import scipy.linalg

from testing.dense_families import FAMILIES, chosen, make
from testing.parts import long
from testing.ranks import TYPES, adjoint, loss, numbers, of_rank, size
from testing.reference import dense_singular_values
from tsvd import linalg

every_dtype = pytest.mark.parametrize("dtype", TYPES)
every_family = pytest.mark.parametrize("family", FAMILIES)
SHAPES = [
    *((1, 1), (3, 3), (6, 4), (4, 6), (33, 33), (60, 40), (40, 60), (300, 40), (40, 120)),
    *((70, 66), (66, 70)),
]
BATCHES = [(5, 6, 4), (2, 3, 4, 7), (2, 70, 66), (3, 66, 70)]
# What is zero in exact arithmetic is below this many max(m, n) eps.
MOST = 10


def unit(a):
    return MOST * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)


def least(a):
    """What a result may be off where its numbers are subnormal."""
    return MOST * max(a.shape[-2:]) * float(np.finfo(a.dtype).smallest_subnormal)


# ---- the polar decomposition ----


def check_polar(a, device):
    for side in ("right", "left"):
        U, P = linalg.polar(a, side, device=device)
        assert U.dtype == P.dtype == a.dtype and U.shape == a.shape
        assert P.shape == (*a.shape[:-2], *2 * (a.shape[-1 if side == "right" else -2],))
        assert np.array_equal(P, adjoint(P))
        assert (loss(U if a.shape[-2] >= a.shape[-1] else adjoint(U)) <= unit(a)).all()
        limit = unit(a) * size(a) + least(a)
        product = long(U) @ long(P) if side == "right" else long(P) @ long(U)
        assert (size(long(a) - product) <= limit).all()
        scale = np.maximum(size(P), float(np.finfo(a.dtype).tiny))[..., None, None]
        values = np.linalg.eigvalsh((long(P) / scale).astype("complex128"))
        assert (values >= -unit(a)).all()


@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, *BATCHES])
def test_polar_of_every_rank(shape, dtype, device):
    p = min(shape[-2:])
    for rank in {0, 1, p // 2, p}:
        check_polar(of_rank(rank, shape, dtype), device)


@every_family
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polar_of_every_family(family, dtype, device):
    for m, n in chosen(family, [(3, 3), (7, 5), (5, 7), (33, 20), (70, 66), (66, 72)], 3):
        check_polar(make(family, m, n, dtype), device)


def test_polar_is_that_of_scipy(device):
    for seed, shape in enumerate([(3, 3), (6, 4), (4, 6), (70, 70)]):
        a = numbers(shape, "complex128", seed)
        for side in ("right", "left"):
            ours, theirs = linalg.polar(a, side, device=device), scipy.linalg.polar(a, side)
            assert all(np.allclose(x, y) for x, y in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 2, 3), (2, 0, 3)])
def test_polar_of_nothing(shape, device):
    check_polar(np.zeros(shape, "complex64"), device)
    U, P = linalg.polar(np.zeros(shape, int), device=device)
    assert U.dtype == P.dtype == "float64" and not P.any()


# ---- the Procrustes problem ----


def check_procrustes(A, B, device):
    """R is the best one exactly if R^H A^H B is Hermitian and positive semidefinite."""
    R, scale = linalg.orthogonal_procrustes(A, B, device=device)
    A, B = np.broadcast_arrays(A, B) if A.ndim == B.ndim else (A, B)
    assert R.dtype == A.dtype and np.asarray(scale).dtype == A.real.dtype
    assert (loss(R) <= unit(R)).all()
    rest = adjoint(long(R)) @ (adjoint(long(A)) @ long(B))
    limit = unit(A) * size(A) * size(B) + least(A)
    assert (size(rest - adjoint(rest)) <= limit).all()
    trace = np.trace(rest, axis1=-2, axis2=-1).real
    known = np.isfinite(scale)  # else it is above the largest number
    assert (abs(trace - scale) <= limit)[known].all()
    assert (trace >= np.finfo(A.dtype).max * (1 - unit(A)))[~known].all()
    norm = np.maximum(size(rest), np.finfo(np.longdouble).tiny)[..., None, None]
    values = np.linalg.eigvalsh((rest / norm).astype("complex128"))
    assert (values * norm[..., 0] >= -limit[..., None]).all()


@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, *BATCHES])
def test_procrustes_of_every_rank(shape, dtype, device):
    p = min(shape[-2:])
    for rank in {0, 1, p}:
        check_procrustes(of_rank(rank, shape, dtype), numbers(shape, dtype, 5), device)


@every_family
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_procrustes_of_every_family(family, dtype, device):
    for m, n in chosen(family, [(3, 3), (7, 5), (5, 7), (33, 20), (70, 66)], 2):
        A, B = (make(family, m, n, dtype, seed) for seed in (0, 1))
        check_procrustes(A, B, device)


@every_dtype
def test_procrustes_finds_a_rotation(dtype, device):
    for n in (1, 3, 40):
        A, Q = numbers((n + 5, n), dtype), np.linalg.qr(numbers((n, n), dtype, 1))[0]
        for left, right in ((1, 1), (2.0**60, 2.0**-60), (2.0**120, 2.0**-120)):
            R, scale = linalg.orthogonal_procrustes(A * left, A @ Q * right, device=device)
            assert R.dtype == dtype and np.allclose(R, Q, atol=2e3 * np.finfo(dtype).eps)
            assert np.isclose(scale, size(A) ** 2, rtol=1e-5)


def test_procrustes_takes_several_types_and_batches(device):
    A, B = numbers((3, 1, 5, 2), "float32"), numbers((4, 5, 2), "complex128", 1)
    R, scale = linalg.orthogonal_procrustes(A, B, device=device)
    assert R.shape == (3, 4, 2, 2) and R.dtype == "complex128" and scale.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        one, of_one = scipy.linalg.orthogonal_procrustes(A[i, 0], B[j])
        assert np.allclose(R[i, j], one) and np.allclose(scale[i, j], of_one)
    for shape in ((0, 3), (0, 0), (3, 0), (2, 0, 3)):
        R, scale = linalg.orthogonal_procrustes(np.zeros(shape), np.zeros(shape), device=device)
        assert np.array_equal(R, np.zeros(shape[:-2])[..., None, None] + np.eye(shape[-1]))
        assert not np.any(scale)


# ---- low rank ----


def check_low_rank(a, X, rank, s):
    """X has the rank, and no matrix of it is nearer to a; s: the values of a in long double."""
    limit = unit(a) * float(s[0]) + least(a)
    assert X.dtype == a.dtype and X.shape == a.shape
    error = size(long(a) - long(X))
    assert abs(error - np.sqrt((s[rank:] ** 2).sum())) <= limit * np.sqrt(len(s))
    if rank < len(s):
        assert dense_singular_values(X)[rank] <= limit


@every_family
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_low_rank_of_every_family(family, dtype, device):
    for m, n in chosen(family, [(3, 3), (7, 5), (5, 7), (33, 20), (70, 66), (66, 72)], 3):
        a = make(family, m, n, dtype)
        s = dense_singular_values(a)
        for rank in {0, 1, len(s) // 2, len(s), len(s) + 3}:
            check_low_rank(a, linalg.low_rank(a, rank, device=device), min(rank, len(s)), s)


@every_dtype
@pytest.mark.parametrize("order", [6, 80])
def test_low_rank_by_what_stays(order, dtype, device):
    s = np.zeros(order)
    s[:4] = 4, 2, 1, 0.5
    U, V = (np.linalg.qr(numbers((order, order), dtype, i))[0] for i in range(2))

    def cut(rank):
        return (U[:, :rank] * s[:rank]) @ adjoint(V[:, :rank])

    squares = np.cumsum(s**2) / np.sum(s**2)
    close = {"rtol": 0, "atol": 2e3 * np.finfo(dtype).eps}
    a = cut(order).astype(dtype)
    cases = [({"rtol": x}, rank) for x, rank in ((0.6, 1), (0.4, 2), (0.2, 3), (0.01, 4), (1, 0))]
    cases += [({"energy": squares[k] - 1e-3}, k + 1) for k in range(4)]
    cases += [({"energy": squares[k] + 1e-3}, k + 2) for k in range(3)]
    cases += [({"energy": 0}, 0), ({"energy": 1}, order), ({"rtol": 0}, order), ({"rank": 3}, 3)]
    for given, rank in cases:
        X = linalg.low_rank(a, **given, device=device)
        assert X.dtype == dtype and np.allclose(X, cut(rank), **close), given
    both = np.stack([a, 3 * a, 0 * a])
    for given, ranks in (
        ({"rank": [2, 3, 1]}, (2, 3, 1)),
        ({"rtol": [0.6, 0.2, 0.1]}, (1, 3, 0)),
        ({"energy": [0.5, 0.97, 1]}, (1, 3, 0)),
    ):
        X = linalg.low_rank(both, **given, device=device)
        for x, rank, factor in zip(X, ranks, (1, 3, 0), strict=True):
            assert np.allclose(x, factor * cut(rank), **close)


def test_low_rank_refuses_what_says_no_rank(device):
    a = np.eye(3)
    for wrong in ({}, {"rank": 1, "rtol": 0.1}, {"rtol": 0.1, "energy": 0.9}):
        with pytest.raises(ValueError, match="exactly one"):
            linalg.low_rank(a, **wrong, device=device)
    for wrong in ({"rank": -1}, {"energy": -0.1}, {"energy": 1.1}, {"energy": np.nan}):
        with pytest.raises(ValueError, match=r"negative|from 0 to 1"):
            linalg.low_rank(a, **wrong, device=device)
    for wrong in ({"rank": 1.0}, {"rank": "1"}, {"rank": True}, {"rtol": "1"}, {"energy": "1"}):
        with pytest.raises(TypeError, match=r"integer|real number"):
            linalg.low_rank(a, **wrong, device=device)
    for wrong in ({"rank": [1, 2]}, {"rtol": [1, 2]}, {"energy": [1, 1]}):
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            linalg.low_rank(np.zeros((3, 2, 2)), **wrong, device=device)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (3, 0, 2), (0, 2, 3)])
def test_low_rank_of_nothing(shape, device):
    for given in ({"rank": 1}, {"rtol": 0.1}, {"energy": 1}):
        X = linalg.low_rank(np.zeros(shape, int), **given, device=device)
        assert X.shape == shape and X.dtype == "float64"


# ---- of all ----

CALLS = [
    linalg.polar,
    lambda a, **k: linalg.orthogonal_procrustes(a, a, **k),
    lambda a, **k: linalg.low_rank(a, 1, **k),
    lambda a, **k: linalg.low_rank(a, energy=0.5, **k),
]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_refused(call, device):
    for order in (3, 80):
        a = np.eye(order)
        for wrong in (np.nan, np.inf):
            a[0, 1] = wrong
            with pytest.raises(ValueError, match="NaN"):
                call(a, device=device)
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional"):
        call(np.ones(3))
    for wrong in (np.eye(2).astype(object), np.eye(2, dtype="float16"), np.array([["1"]])):
        with pytest.raises(TypeError, match=r"dtype|object|strings"):
            call(wrong)
    for wrong in ({"device": "xyz"}, {"threads": 0}):
        with pytest.raises(ValueError, match=r"xyz|threads"):
            call(np.eye(2), **wrong)


def test_what_is_refused_of_one(device):
    a, wrong = np.eye(2), np.array([[1, np.nan], [0, 1]])
    with pytest.raises(ValueError, match="right"):
        linalg.polar(a, "up", device=device)
    for b in (np.ones((2, 3)), np.ones((3, 2))):
        with pytest.raises(np.linalg.LinAlgError, match="differ"):
            linalg.orthogonal_procrustes(a, b, device=device)
    with pytest.raises(ValueError, match="B must not hold NaN"):
        linalg.orthogonal_procrustes(a, wrong, device=device)
    R, scale = linalg.orthogonal_procrustes(a, wrong, check_finite=False, device=device)
    assert np.isnan(R).all() and np.isnan(scale)


def test_results_are_of_the_subclass():
    class Own(np.ndarray):
        pass

    a = numbers((4, 3), "float64")
    own = a.view(Own)
    results = *linalg.polar(own), linalg.orthogonal_procrustes(own, a)[0], linalg.low_rank(own, 2)
    assert all(type(x) is Own for x in results)
    for given in (a[::-1], np.asfortranarray(a), a.astype(">f8"), a.tolist()):
        x = np.asarray(given, float)
        assert np.allclose(linalg.low_rank(given, 3), x)
        assert np.allclose(np.matmul(*linalg.polar(given)), x)


def test_results_are_arrays_of_the_library(other):
    make_one, host = other
    for dtype in TYPES:
        close = {"rtol": 0, "atol": 2e3 * np.finfo(dtype).eps}
        for shape in ((6, 4), (4, 6), (2, 5, 6), (80, 70)):
            a, b = of_rank(4, shape, dtype), numbers(shape, dtype, 1)
            given, right = make_one(a), make_one(b)
            U, P = linalg.polar(right)
            R, scale = linalg.orthogonal_procrustes(right, right)
            low = [
                linalg.low_rank(given, **x) for x in ({"rank": 4}, {"rtol": 1e-3}, {"energy": 1})
            ]
            assert all(type(x) is type(given) for x in (U, P, R, *low))
            assert np.allclose(host(U) @ host(P), b, **close)
            assert np.allclose(host(R), np.eye(shape[-1]), atol=3e-3) or shape[-2] < shape[-1]
            assert np.allclose(host(scale), size(b) ** 2, rtol=1e-4)
            assert all(np.allclose(host(x), a, **close) for x in low)
        far = linalg.polar(right * 2.0**-100)
        assert np.allclose(host(far[0]), host(linalg.polar(right)[0]), **close)
        assert np.allclose(host(far[1]) * 2.0**100, host(linalg.polar(right)[1]), **close)
    both = make_one(numbers((2, 4, 3), "float64"))
    assert host(linalg.low_rank(both, [1, 2])).shape == (2, 4, 3)
    with pytest.raises(TypeError, match="must be of one"):
        linalg.orthogonal_procrustes(both, np.zeros((4, 3)))


@pytest.mark.parametrize("wrong", [{"rank": -1}, {"rank": "x"}, {"energy": 5}])
def test_low_rank_refuses_the_same_of_empty_matrices(wrong):
    for shape in ((0, 3), (2, 3, 0), (3, 3)):
        with pytest.raises((ValueError, TypeError)):
            linalg.low_rank(np.zeros(shape), **wrong)
