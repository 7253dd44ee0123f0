"""tsvd.linalg: bases of the range and the null space, and angles between subspaces."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

from testing.dense_families import FAMILIES, chosen, make
from testing.parts import long
from testing.ranks import TYPES, adjoint, loss, numbers, of_rank, size
from tsvd import linalg

every_dtype = pytest.mark.parametrize("dtype", TYPES)
SHAPES = [
    *((1, 1), (3, 3), (6, 4), (4, 6), (33, 33), (60, 40), (40, 60), (300, 40), (40, 120)),
    *((70, 66), (66, 70), (80, 80), (400, 66), (66, 160)),
]
# What is zero in exact arithmetic is below this many max(m, n) eps.
MOST = 10


def unit(a):
    return MOST * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)


def check_bases(a, Q, Z, part=0):
    """Both are orthonormal, Q holds the columns of a, and a takes Z to zero.

    part: what the threshold leaves out, over the norm of a.
    """
    assert Q.dtype == Z.dtype == a.dtype and Q.shape[-1] + Z.shape[-1] == a.shape[-1]
    assert Q.shape[:-1] == a.shape[:-1] and Z.shape[-2] == a.shape[-1]
    assert (loss(Q) <= unit(a)).all() and (loss(Z) <= unit(a)).all()
    limit = (unit(a) + part) * size(a)
    b = long(a)
    assert (size(b - Q @ (adjoint(long(Q)) @ b)) <= limit).all()
    assert (size(b @ Z) <= limit).all()


@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (5, 6, 4), (2, 3, 4, 7), (2, 70, 66), (3, 66, 70)])
def test_bases_of_every_rank(shape, dtype, device):
    p = min(shape[-2:])
    for rank in {0, 1, p // 2, p}:
        a = of_rank(rank, shape, dtype)
        before = a.copy()
        Q, Z = linalg.orth(a, device=device), linalg.null_space(a, device=device)
        assert Q.shape[-1] == rank
        check_bases(a, Q, Z)
        assert np.array_equal(a, before)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bases_of_every_family(family, dtype, device):
    shapes = [(3, 3), (7, 5), (5, 7), (33, 20), (70, 66), (66, 72), (129, 40)]
    for m, n in chosen(family, shapes, 4):
        a = make(family, m, n, dtype)
        eps = float(np.finfo(dtype).eps)
        # Values that count as zero: p of them, each up to max(m, n) eps.
        part = np.sqrt(min(m, n)) * max(m, n) * eps
        check_bases(a, linalg.orth(a, device=device), linalg.null_space(a, device=device), part)


@pytest.mark.parametrize("order", [4, 70])
def test_bases_by_a_threshold(order, device):
    s = np.zeros(order)
    s[:4] = 4, 2, 1, 1e-3
    a = np.diag(s)
    for part, rank in (
        (0.6, 1),
        (0.5, 1),
        (0.4, 2),
        (1e-4, 4),
        (1, 0),
        (2, 0),
        (np.float32(0.4), 2),
    ):
        Q, Z = linalg.orth(a, part, device=device), linalg.null_space(a, part, device=device)
        assert Q.shape == (order, rank) and Z.shape == (order, order - rank)
        assert np.allclose(Q @ Q.T, np.diag(np.arange(order) < rank))
        assert np.allclose(Z @ Z.T, np.diag(np.arange(order) >= rank))
    both = np.stack([a, 3 * a])
    assert linalg.orth(both, [0.4, 0.3], device=device).shape == (2, order, 2)
    assert linalg.null_space(both, 0.4, device=device).shape == (2, order, order - 2)


@pytest.mark.parametrize("order", [5, 80])
def test_matrices_of_several_ranks_have_no_bases_of_one_shape(order, device):
    a = np.stack([of_rank(rank, (order, order), "float64") for rank in (2, 3)])
    for function in (linalg.orth, linalg.null_space):
        with pytest.raises(np.linalg.LinAlgError, match="ranks from 2 to 3"):
            function(a, device=device)
    with pytest.raises(np.linalg.LinAlgError, match="ranks from 2 to 3"):
        linalg.subspace_angles(a, a, device=device)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (3, 0, 2), (0, 5, 3), (0, 3, 5)])
@every_dtype
def test_bases_of_nothing(shape, dtype, device):
    *batch, m, n = shape
    a = np.zeros(shape, dtype)
    rank = 0 if batch != [0] else min(m, n)
    Q, Z = linalg.orth(a, device=device), linalg.null_space(a, device=device)
    assert Q.shape == (*batch, m, rank) and Z.shape == (*batch, n, n - rank)
    assert Q.dtype == Z.dtype == dtype and np.array_equal(Z, np.zeros(batch)[..., None, None] + Z)
    assert not Z.size or np.array_equal(Z, np.broadcast_to(np.eye(n), Z.shape))


@pytest.mark.parametrize("shape", [(3, 5), (80, 70), (70, 80)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bases_at_the_ends_of_the_range_of_numbers(shape, dtype, device):
    info, a = np.finfo(dtype), of_rank(2, shape, dtype)
    a = a / abs(a).max()
    right = [adjoint(x) @ x for x in (linalg.orth(a, device=device).T, linalg.null_space(a).T)]
    constant = np.full(shape, info.max)
    for scale in (info.max, info.tiny):
        given = a * np.dtype(dtype).type(scale)
        found = [f(given, device=device) for f in (linalg.orth, linalg.null_space)]
        check_bases(given, *found, part=1e-4 if scale == info.tiny else 0)
        for x, projector in zip(found, right, strict=True):
            assert np.allclose(x @ x.T, projector, atol=1e4 * info.eps)
        constant = np.full(shape, scale, dtype)
        assert np.allclose(abs(linalg.orth(constant, device=device)), shape[0] ** -0.5)
    both = np.stack([a * info.max, a * info.tiny, a]).astype(dtype)
    assert linalg.orth(both, 1e-2, device=device).shape[-1] == 2


def test_bases_are_those_of_scipy(device):
    for seed, (shape, rank) in enumerate([((6, 4), 3), ((4, 6), 4), ((90, 70), 20), ((9, 9), 9)]):
        a = of_rank(rank, shape, "complex128", seed)
        for ours, theirs in (
            (linalg.orth, scipy.linalg.orth),
            (linalg.null_space, scipy.linalg.null_space),
        ):
            x, y = ours(a, device=device), theirs(a)
            assert x.shape == y.shape and np.allclose(x @ adjoint(x), y @ adjoint(y))


@pytest.mark.parametrize("order", [3, 80])
def test_what_is_not_finite(order, device):
    a = np.eye(order)
    for wrong in (np.nan, np.inf):
        a[0, 1] = wrong
        for call in (
            lambda **k: linalg.orth(a, **k),
            lambda **k: linalg.null_space(a, **k),
            lambda **k: linalg.subspace_angles(a, np.eye(order), **k),
        ):
            with pytest.raises(ValueError, match="NaN"):
                call(device=device)
        with pytest.raises(ValueError, match="B must not hold NaN"):
            linalg.subspace_angles(np.eye(order), a, device=device)
        Z = linalg.null_space(a, check_finite=False, overwrite_a=True, device=device)
        assert Z.shape == (order, order) and np.isnan(Z).all()


def test_arguments_that_are_refused(device):
    for function in (linalg.orth, linalg.null_space, lambda a, **k: linalg.subspace_angles(a, a)):
        with pytest.raises(np.linalg.LinAlgError, match="1-dimensional"):
            function(np.ones(3))
        for wrong in (np.eye(2).astype(object), np.eye(2, dtype="float16"), np.array([["1"]])):
            with pytest.raises(TypeError, match=r"dtype|object|strings"):
                function(wrong)
        with pytest.raises(TypeError, match="masked"):
            function(np.ma.array(np.eye(2)))
    for wrong, error in (([0.1], ValueError), ("1", TypeError)):
        for function in (linalg.orth, linalg.null_space):
            with pytest.raises(error, match="rcond"):
                function(np.eye(2), wrong, device=device)
    with pytest.raises(TypeError, match="lapack_driver"):
        linalg.null_space(np.eye(2), lapack_driver="gesvd")
    with pytest.raises(np.linalg.LinAlgError, match="3 and 2"):
        linalg.subspace_angles(np.eye(3), np.eye(2), device=device)
    for wrong in ({"device": "xyz"}, {"threads": 0}):
        for function in (linalg.orth, linalg.null_space):
            with pytest.raises(ValueError, match=r"xyz|threads"):
                function(np.eye(2), **wrong)


# ---- angles ----


def spans(angles, m, dtype, seed=0, more=0):
    """Matrices whose ranges have these angles between them, and `more` columns of one of them.

    The columns are orthonormal but for their rounding.
    """
    q = len(angles)
    W = long(
        np.linalg.qr(
            numbers((m, 2 * q + more), "complex128" if "complex" in dtype else dtype, seed)
        )[0]
    )
    W = W @ (1.5 * np.eye(W.shape[1]) - 0.5 * adjoint(W) @ W)  # orthonormal to more digits
    theta = np.asarray(angles, np.longdouble)
    first, second = W[:, :q], W[:, q : 2 * q]
    B = first * np.cos(theta) + second * np.sin(theta)
    return np.hstack([first, W[:, 2 * q :]]).astype(dtype), B.astype(dtype)


@every_dtype
@pytest.mark.parametrize("m", [12, 40, 150])
def test_angles_of_every_size(m, dtype, device):
    eps = float(np.finfo(dtype).eps)
    tiny = [0, eps, eps**0.75, eps**0.5, 1e-3]
    angles = [*tiny, 0.5, np.pi / 4, 1.0, *(np.pi / 2 - x for x in tiny)]
    for seed, chosen_ones in enumerate((tiny[:5], angles[5:8], angles[8:], angles[3:9], angles)):
        if 2 * len(chosen_ones) + 1 > m:
            continue
        expected = np.sort(np.longdouble(chosen_ones))[::-1]
        for more in (0, 1):
            A, B = spans(chosen_ones, m, dtype, seed, more)
            for found in (
                linalg.subspace_angles(A, B, device=device),
                linalg.subspace_angles(B, A, device=device),
            ):
                assert found.dtype == A.real.dtype and found.shape == expected.shape
                assert abs(found - expected).max() <= MOST * m * eps
                assert (np.diff(found) <= MOST * eps).all()


def reference_angles(A, B):
    """In 60 digits, by the same formulas from bases of mpmath."""
    with mpmath.workdps(60):
        QA, QB = (mpmath.qr(mpmath.matrix(x.tolist()), mode="skinny")[0] for x in (A, B))
        sines = mpmath.svd_c(QB - QA * (QA.H * QB), compute_uv=False)
        return np.sort([float(mpmath.asin(min(x, 1))) for x in sines])[::-1]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_angles_do_not_depend_on_the_scale_of_columns(dtype, device):
    rng = np.random.default_rng(3)
    for m, n, k in ((5, 2, 1), (6, 3, 2), (7, 3, 3)):
        A, B = numbers((m, n), dtype, m), numbers((m, k), dtype, [m, 1])
        for spread in (0, 30, 900):
            A1, B1 = (x * 2.0 ** rng.integers(-spread, spread + 1, x.shape[1]) for x in (A, B))
            found = linalg.subspace_angles(A1, B1, device=device)
            assert np.allclose(found, reference_angles(A, B), rtol=0, atol=1e-13)
    near = A[:, :1] + 1e-11 * B[:, :1]
    expected = reference_angles(A[:, :1], near)
    found = linalg.subspace_angles(1e300 * A[:, :1], 1e-300 * near, device=device)
    assert expected < 1e-10 and abs(found - expected) < 1e-14


def test_angles_of_ranks_and_batches(device):
    A, B = of_rank(2, (6, 4), "float64"), of_rank(3, (6, 5), "float64", 1)
    assert linalg.subspace_angles(A, B, device=device).shape == (2,)
    assert linalg.subspace_angles(A, A @ numbers((4, 3), "float64"), device=device).max() < 1e-13
    assert linalg.subspace_angles(np.zeros((4, 2)), np.eye(4), device=device).shape == (0,)
    for shapes in (((0, 0), (0, 0)), ((2, 0), (2, 0)), ((0, 2), (0, 3)), ((3, 2), (3, 0))):
        assert linalg.subspace_angles(*map(np.zeros, shapes), device=device).shape == (0,)
    a, b = numbers((3, 1, 7, 3), "complex64"), numbers((2, 7, 4), "complex64", 1)
    found = linalg.subspace_angles(a, b, device=device)
    assert found.shape == (3, 2, 3) and found.dtype == "float32"
    for i, j in np.ndindex(3, 2):
        one = linalg.subspace_angles(a[i, 0], b[j], device=device)
        assert np.allclose(found[i, j], one, atol=1e-5)
    mixed = linalg.subspace_angles(np.eye(3, 2, dtype=int), b[0, :3, :1], device=device)
    assert mixed.shape == (1,) and mixed.dtype == "float64"


def test_angles_are_those_of_scipy(device):
    for seed, (n, k) in enumerate([(2, 3), (3, 3), (5, 1), (8, 8)]):
        A, B = numbers((9, n), "float64", seed), numbers((9, k), "float64", [seed, 1])
        found = linalg.subspace_angles(A, B, device=device)
        assert np.allclose(found, scipy.linalg.subspace_angles(A, B), atol=1e-7)


# ---- arrays of other kinds ----


def test_results_are_of_the_subclass():
    class Own(np.ndarray):
        pass

    a = of_rank(2, (4, 3), "float64").view(Own)
    assert type(linalg.orth(a)) is type(linalg.null_space(a)) is Own
    for given in (a[::-1], np.asfortranarray(a), a.astype(">f8"), a.tolist()):
        assert linalg.orth(given).shape == (4, 2) and linalg.null_space(given).shape == (3, 1)


def test_results_are_arrays_of_the_library(other):
    make_one, host = other
    for dtype in TYPES:
        for shape in ((6, 4), (4, 6), (2, 5, 6), (80, 70), (70, 80)):
            a = of_rank(3, shape, dtype)
            given = make_one(a)
            Q, Z = linalg.orth(given), linalg.null_space(given)
            assert type(Q) is type(Z) is type(given)
            check_bases(a, host(Q), host(Z))
        a, b = spans([0, 1e-3, 0.7, 1.5], 9, dtype)
        found = linalg.subspace_angles(make_one(a), make_one(b))
        assert type(found) is type(given)
        assert np.allclose(host(found), [1.5, 0.7, 1e-3, 0], atol=200 * np.finfo(dtype).eps)
        far = make_one(a) * 2.0**-100
        assert np.allclose(host(linalg.subspace_angles(far, make_one(b))), host(found), atol=1e-5)
        assert linalg.orth(far).shape == (9, 4)
