"""tsvd.linalg keeps the bounds on complex matrices of every family."""

import functools
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.io
from scipy.linalg import LinAlgWarning

import tsvd
from testing.cases import Findings, check_with_and_without_vectors, hold
from testing.complex_families import FAMILIES, make
from testing.dense_families import chosen
from testing.dense_layouts import LAYOUTS
from testing.measures import (
    BOUNDS,
    INVERSE_BOUNDS,
    check_dense,
    inverse_residual,
    jacobi_conditions,
    jacobi_value_bound,
    orthogonality,
    value_error,
)
from testing.reference import dense_singular_values, relative_singular_values
from tsvd import _cli, linalg

COMPLEX = (np.complex128, np.complex64)
every_dtype = pytest.mark.parametrize("dtype", COMPLEX)
every_family = pytest.mark.parametrize("family", FAMILIES)

TINY = [(m, n) for m in range(1, 6) for n in range(1, 6)]
SHAPES = [
    (8, 8),
    (9, 7),
    (7, 9),
    (16, 17),
    (33, 32),
    (31, 40),
    (64, 33),
    (65, 64),
    (100, 3),
    (4, 90),
]
# Of its own, beside those of real matrices with phases.
OWN = list(FAMILIES)[list(FAMILIES).index("complex_gaussian") :]
SOME = ("complex_gaussian", "geometric_1e16", "rank_3", "zero_columns", "fourier", "parts_graded")


@functools.cache
def matrix(family, m, n, dtype):
    A = make(family, m, n, dtype)
    A.setflags(write=False)
    return A


@functools.cache
def values(family, m, n, dtype):
    return dense_singular_values(matrix(family, m, n, dtype))


def check_all(findings, family, m, n, dtype, device, **options):
    A, s_ref = matrix(family, m, n, dtype), values(family, m, n, dtype)
    where = f"{family} {m}x{n} {dtype.__name__} {device} {options or ''}"
    check_with_and_without_vectors(findings, where, A, s_ref, device, **options)


def same(one, other, device):
    """A device may take another road, by how many matrices there are and what is asked for."""
    if device == "cpu":
        assert np.array_equal(one, other)
    else:
        assert np.allclose(one, other, atol=1e4 * np.finfo(one.dtype).eps)


@every_family
@every_dtype
def test_svd(family, dtype, device):
    with Findings() as findings:
        for m, n in chosen(family, TINY, 3, FAMILIES) + chosen(family, SHAPES, 1, FAMILIES):
            check_all(findings, family, m, n, dtype, device)


@pytest.mark.slow
@every_family
@every_dtype
def test_every_shape(family, dtype, device):
    with Findings() as findings:
        for m, n in [*TINY, *SHAPES, (129, 128), (200, 70), (70, 200), (700, 20)]:
            check_all(findings, family, m, n, dtype, device)


@pytest.mark.parametrize("family", OWN)
@every_dtype
def test_blocks(family, dtype, device):
    with Findings() as findings:
        check_all(
            findings,
            family,
            *chosen(family, [(129, 96), (97, 130), (300, 33)], 1, FAMILIES)[0],
            dtype,
            device,
        )


@pytest.mark.parametrize("method", ["dc", "qr", "givens", "twisted"])
@every_dtype
def test_methods(method, dtype, device):
    with Findings() as findings:
        for family in SOME:
            check_all(findings, family, 40, 33, dtype, device, method=method)


@pytest.mark.parametrize("family", SOME)
@every_dtype
def test_full_matrices(family, dtype, device):
    with Findings() as findings:
        for m, n in ((5, 3), (3, 5), (1, 4), (60, 33), (33, 60)):
            A = matrix(family, m, n, dtype)
            result = linalg.svd(A, device=device)
            hold(
                findings,
                f"{m}x{n}",
                *check_dense(A, result, values(family, m, n, dtype), full=True),
            )


@pytest.mark.parametrize(
    "family", ["complex_gaussian", "geometric_1e8", "columns_apart", "parts_graded"]
)
@every_dtype
def test_jacobi(family, dtype, device):
    """Each value to its own size, whatever the sizes of the columns are."""
    with Findings() as findings:
        for m, n in ((5, 5), (12, 8), (8, 12), (33, 33)):
            A = matrix(family, m, n, dtype)
            S = linalg.svd(A, full_matrices=False, method="jacobi", device=device).S
            way, condition = min(jacobi_conditions(A, device), key=lambda x: x[1])
            if condition < 1e6:
                error = value_error(S, relative_singular_values(A, way))
                findings.bound(f"{m}x{n}", "values", error, 3 * jacobi_value_bound(m, n, condition))
    with Findings() as findings:
        for m, n in ((40, 40), (70, 31), (31, 70), (131, 131)):
            A = matrix(family, m, n, dtype)
            result = linalg.svd(A, full_matrices=False, method="jacobi", device=device)
            hold(findings, f"{m}x{n}", *check_dense(A, result, values(family, m, n, dtype)))


@pytest.mark.parametrize("family", OWN)
@every_dtype
def test_inv(family, dtype, device):
    with Findings() as findings:
        for n, refine in itertools.product((1, 3, 17, 40, 100), (False, True)):
            A = matrix(family, n, n, dtype)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", LinAlgWarning)
                    X = linalg.inv(A, refine=refine, device=device)
            except linalg.LinAlgError:
                assert family in ("least_parts", "skew")
                continue
            if np.isfinite(X).all() and np.any(A):
                residual = inverse_residual(A, X)
                findings.bound(f"n = {n}", "residual", residual, INVERSE_BOUNDS[refine])


@pytest.mark.parametrize("n", [1, 3])
@every_dtype
def test_inv_where_magnitudes_overflow(n, dtype, device):
    """The parts are numbers; no warning says that the matrix is near singular."""
    largest = np.finfo(dtype).max
    A = (np.eye(n) * (largest / 1.1) * (1 + 1j)).astype(dtype)
    for refine in (False, True):
        X = linalg.inv(A, refine=refine, device=device)
        assert np.allclose(X * (largest / 4), np.eye(n) / (4 * (1 + 1j) / 1.1), rtol=1e-5)


@pytest.mark.parametrize("n", [40, 150])
@every_dtype
def test_inv_where_pivots_grow(n, dtype, device):
    """By QR instead of elimination, and in long double."""
    A = make("wilkinson", n, n, dtype)
    X = linalg.inv(A, device=device)
    assert inverse_residual(A, X) < INVERSE_BOUNDS[False]
    B = np.triu(np.ones((n, n), dtype)) * 1e-30j
    assert inverse_residual(B, linalg.inv(B, device=device)) < INVERSE_BOUNDS[False]


@pytest.mark.parametrize("family", SOME)
@every_dtype
def test_bidiagonalize(family, dtype, device):
    eps = np.finfo(dtype).eps
    for m, n in ((1, 1), (5, 5), (6, 3), (3, 6), (40, 40), (70, 33), (33, 300)):
        A = matrix(family, m, n, dtype)
        form = linalg.bidiagonalize(A, device=device)
        assert form.dtype == dtype and form.d.dtype == form.e.dtype == A.real.dtype
        B = np.diag(form.d) + np.diag(form.e, -1 if form.lower else 1)
        Q, Ph = form.form_q(), form.form_pt()
        norm = max(np.linalg.norm(A), np.finfo(dtype).tiny)
        assert np.linalg.norm(Q @ B @ Ph - A) <= 10 * (max(m, n) + 8) * eps * norm
        assert orthogonality(Q, Ph) <= BOUNDS["orthogonality"](max(m, n))
        x = matrix("complex_gaussian", m, 2, dtype)
        full = form.form_q(full=True)
        assert np.allclose(form.apply_q(x), full @ x, atol=1e3 * eps)
        assert np.allclose(form.apply_q(x, transposed=True), full.conj().T @ x, atol=1e3 * eps)
        y = matrix("complex_gaussian", n, 2, dtype)
        full = form.form_pt(full=True)
        assert np.allclose(form.apply_p(y, transposed=True), full @ y, atol=1e3 * eps)
        assert np.allclose(form.apply_p(y), full.conj().T @ y, atol=1e3 * eps)
        copy = pickle.loads(pickle.dumps(form))
        for one, other in zip(form.svd(), copy.svd(), strict=True):
            assert np.array_equal(one, other)
        reduced = linalg.svd(A, device=device, tuning={"stages": 1})
        for one, other in zip(form.svd(), reduced, strict=True):
            same(one, other, device)


def test_products_take_what_becomes_complex(device):
    form = linalg.bidiagonalize(matrix("complex_gaussian", 5, 3, np.complex64), device=device)
    assert form.apply_q(np.arange(5.0)).dtype == np.complex64
    real = linalg.bidiagonalize(np.eye(3), device=device)
    with pytest.raises(TypeError, match="complex128"):
        real.apply_q(np.ones(3) * 1j)


@pytest.mark.parametrize("layout", LAYOUTS)
@every_dtype
def test_layouts(layout, dtype, device):
    for m, n in ((7, 4), (4, 7), (40, 40)):
        A = np.stack([make("complex_gaussian", m, n, dtype, seed) for seed in range(3)])
        right = linalg.svd(A, device=device)
        for one, other in zip(linalg.svd(LAYOUTS[layout](A), device=device), right, strict=True):
            assert np.array_equal(one, other)
        if m == n:
            inverse = linalg.inv(LAYOUTS[layout](A), device=device)
            assert np.array_equal(inverse, linalg.inv(A, device=device))


@every_dtype
def test_batches_are_their_matrices(dtype, device):
    for shape in ((3, 8, 8), (2, 3, 5, 2), (4, 2, 6), (0, 3, 3), (2, 0, 3), (3, 60, 50)):
        A = make("complex_gaussian", 1, max(math.prod(shape), 1), dtype)[0]
        A = A[: math.prod(shape)].reshape(shape)
        U, S, Vh = linalg.svd(A, device=device)
        assert U.dtype == Vh.dtype == dtype and S.dtype == A.real.dtype
        for i in np.ndindex(shape[:-2]):
            for one, other in zip(
                (U[i], S[i], Vh[i]), linalg.svd(A[i], device=device), strict=True
            ):
                same(one, other, device)


@every_dtype
def test_real_matrices_given_as_complex(dtype, device):
    """The results are those of the real matrix, within the bounds, and real."""
    A = np.random.default_rng(5).standard_normal((30, 20)).astype(np.zeros(0, dtype).real.dtype)
    of_real = linalg.svd(A, full_matrices=False, device=device)
    result = linalg.svd(A.astype(dtype), full_matrices=False, device=device)
    eps = np.finfo(dtype).eps
    assert np.allclose(result.S, of_real.S, rtol=20 * eps)
    for one, other in zip(result, of_real, strict=True):
        assert not np.any(one.imag) and np.allclose(one.real, other, atol=1e3 * eps)


def test_select(device):
    A = matrix("complex_gaussian", 30, 20, np.complex128)
    U, S, Vh = linalg.svd(A, full_matrices=False, device=device)
    part = linalg.svd(A, select="i", select_range=(2, 5), device=device)
    assert np.allclose(part.S, S[2:6]) and np.allclose(part.U, U[:, 2:6])
    assert np.allclose(part.Vh, Vh[2:6])
    within = linalg.svd(A, select="v", select_range=(S[6], S[3]), device=device)
    assert np.allclose(within.S, S[3:6])


def test_hermitian(device):
    A = matrix("hermitian_indefinite", 12, 12, np.complex128)
    U, S, Vh = linalg.svd(A, hermitian=True, device=device)
    assert np.allclose(np.sort(abs(np.linalg.eigvalsh(A)))[::-1], S) and np.allclose(U * S @ Vh, A)


@every_dtype
def test_out(dtype, device):
    A, real = matrix("complex_gaussian", 6, 4, dtype), np.zeros(0, dtype).real.dtype
    out = (np.empty((6, 4), dtype), np.empty(4, real), np.empty((4, 4), dtype))
    result = linalg.svd(A, full_matrices=False, out=out, device=device)
    assert result.U is out[0] and result.S is out[1]
    assert np.allclose(out[0] * out[1] @ out[2], A, atol=1e-5)
    with pytest.raises(TypeError, match="out: S has dtype complex"):
        linalg.svd(A, full_matrices=False, out=(out[0], np.empty(4, dtype), out[2]), device=device)
    with pytest.raises(TypeError, match="out: U has dtype float"):
        linalg.svd(A, full_matrices=False, out=(np.empty((6, 4), real), *out[1:]), device=device)


@pytest.mark.parametrize("bad", [np.nan, 1j * np.nan, np.inf, complex(1, -np.inf)])
@every_dtype
def test_not_finite(bad, dtype, device):
    A = np.array(make("complex_gaussian", 4, 3, dtype))
    A[2, 1] = bad
    for function in (linalg.svd, linalg.svdvals, linalg.bidiagonalize):
        with pytest.raises(ValueError, match="NaN or infinity"):
            function(A, device=device)
    with pytest.raises(ValueError, match="NaN or infinity"):
        linalg.inv(A[1:], device=device)
    result = linalg.svd(np.stack([A, np.ones_like(A)]), check_finite=False, device=device)
    assert all(np.isnan(x[0]).all() and np.isfinite(x[1]).all() for x in result)


def test_wrong_types(device):
    for wrong in (np.clongdouble, np.longdouble):
        with pytest.raises(TypeError, match="for dense matrices complex128 and complex64"):
            linalg.svd(np.ones((2, 2), wrong), device=device)
    with pytest.raises(TypeError, match="phases"):
        tsvd.svd(np.ones(3) * 1j, np.ones(2), device=device)


@pytest.mark.parametrize("method", ["auto", "jacobi"])
def test_the_number_of_threads_changes_no_bit(method):
    for m, n in ((300, 300), (2000, 40), (1023, 70), (1024, 70), (60, 1030)):
        A = make("complex_gaussian", m, n)
        one, two = (
            linalg.svd(A, full_matrices=False, method=method, threads=t, device="cpu")
            for t in (1, 2)
        )
        assert all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))
    A = make("complex_gaussian", 300, 300)
    one, two = (linalg.inv(A, threads=t, device="cpu") for t in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("kind", ["csv", "txt", "npy", "npz", "mtx"])
def test_files(kind, tmp_path, monkeypatch):
    """The program reads and writes complex matrices."""
    monkeypatch.chdir(tmp_path)
    A = matrix("complex_gaussian", 4, 4, np.complex128)
    name = f"a.{kind}"
    if kind == "npz":
        np.savez(name, a=A)
    elif kind == "npy":
        np.save(name, A)
    elif kind == "mtx":
        scipy.io.mmwrite(name, A)
    else:
        np.savetxt(name, A, delimiter="," if kind == "csv" else " ")
    assert _cli.main(["linalg", name, "-o", "out.npz", "--device", "cpu"]) == 0
    with np.load("out.npz") as out:
        assert np.allclose(out["U"] * out["S"] @ out["Vh"], A)
    if kind in ("csv", "txt"):
        assert _cli.main(["inv", name, "-o", f"x.{kind}"]) == 0
        assert _cli.main(["inv", f"x.{kind}", "-o", "back.npy"]) == 0
        assert np.allclose(np.load("back.npy"), A)


def known(m, n, dtype, seed=0):
    """A matrix with known singular values: between reflections of the left and of the right."""
    rng = np.random.default_rng(seed)
    S = np.sort(rng.uniform(0.001, 1, min(m, n)))[::-1]
    A = np.zeros((m, n), complex)
    np.fill_diagonal(A, S * np.exp(2j * np.pi * rng.uniform(size=len(S))))
    for _ in range(3):
        u, v = (rng.standard_normal(k) + 1j * rng.standard_normal(k) for k in (m, n))
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        A -= np.outer(2 * u, u.conj() @ A)
        A -= np.outer(A @ v, 2 * v.conj())
    return A.astype(dtype), S


LARGE = [(200, 200), (513, 500), (700, 1300), (1400, 1400), (1700, 1500), (3000, 700), (90, 4000)]


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("shape", [*LARGE, (2600, 2500), (5400, 3200), (3100, 5600)])
@every_dtype
def test_large(shape, dtype):
    """By each way that a device reduces matrices."""
    A, S = known(*shape, dtype)
    eps, n = np.finfo(dtype).eps, max(shape)
    result = linalg.svd(A, full_matrices=False, device="cuda")
    with Findings() as findings:
        hold(findings, f"{shape}", *check_dense(A, result, S))
    assert abs(linalg.svdvals(A, device="cuda") - S).max() <= 10 * n * eps
    form = linalg.bidiagonalize(A, device="cuda")
    x = make("complex_gaussian", shape[0], 3, dtype)
    back = form.apply_q(form.apply_q(x), transposed=True)
    assert np.allclose(back, x, atol=100 * n * eps)
    part = linalg.svd(A, select="i", select_range=(0, 4), device="cuda")
    assert np.allclose(abs(part.S - S[:5]).max(), 0, atol=10 * n * eps)
    assert np.allclose(A @ part.Vh.conj().T, part.U * part.S, atol=100 * n * eps)


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("n", [64, 65, 130, 300, 513, 1030, 2050])
@pytest.mark.parametrize("refine", [False, True])
@every_dtype
def test_inv_of_large(n, refine, dtype):
    A, _ = known(n, n, dtype)
    X = linalg.inv(A, refine=refine, device="cuda")
    if n < 600:
        assert inverse_residual(A, X) <= INVERSE_BOUNDS[refine]
    else:  # in double precision, whose rounding is a part of the bound
        product = A.astype(complex) @ X.astype(complex) - np.eye(n)
        unit = n * np.finfo(dtype).eps * np.linalg.norm(A) * np.linalg.norm(X)
        assert np.linalg.norm(product) <= 10 * unit


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_arrays_of_a_device():
    torch = pytest.importorskip("torch")
    A = known(40, 30, np.complex128)[0]
    for dtype in (torch.complex128, torch.complex64):
        a = torch.tensor(A, device="cuda").to(dtype)
        for x in (a, a.mT, a[::2, 1:], a.real.to(dtype), torch.stack([a, 2 * a])):
            U, S, Vh = linalg.svd(x, full_matrices=False)
            assert U.dtype == dtype and U.is_cuda
            tolerance = 1e-12 if dtype is torch.complex128 else 1e-4
            assert torch.allclose((U * S[..., None, :]) @ Vh, x, atol=tolerance)
            assert torch.allclose(linalg.svd(x.conj(), full_matrices=False)[0], U.conj())
