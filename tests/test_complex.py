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


def check_all(findings, family, m, n, dtype, **options):
    A, s_ref = matrix(family, m, n, dtype), values(family, m, n, dtype)
    where = f"{family} {m}x{n} {dtype.__name__} {options or ''}"
    check_with_and_without_vectors(findings, where, A, s_ref, "cpu", **options)


@every_family
@every_dtype
def test_svd(family, dtype):
    with Findings() as findings:
        for m, n in chosen(family, TINY, 3, FAMILIES) + chosen(family, SHAPES, 1, FAMILIES):
            check_all(findings, family, m, n, dtype)


@pytest.mark.slow
@every_family
@every_dtype
def test_every_shape(family, dtype):
    with Findings() as findings:
        for m, n in [*TINY, *SHAPES, (129, 128), (200, 70), (70, 200), (700, 20)]:
            check_all(findings, family, m, n, dtype)


@pytest.mark.parametrize("family", OWN)
@every_dtype
def test_blocks(family, dtype):
    with Findings() as findings:
        check_all(
            findings,
            family,
            *chosen(family, [(129, 96), (97, 130), (300, 33)], 1, FAMILIES)[0],
            dtype,
        )


@pytest.mark.parametrize("method", ["dc", "qr", "givens", "twisted"])
@every_dtype
def test_methods(method, dtype):
    with Findings() as findings:
        for family in SOME:
            check_all(findings, family, 40, 33, dtype, method=method)


@pytest.mark.parametrize("family", SOME)
@every_dtype
def test_full_matrices(family, dtype):
    with Findings() as findings:
        for m, n in ((5, 3), (3, 5), (1, 4), (60, 33), (33, 60)):
            A = matrix(family, m, n, dtype)
            result = linalg.svd(A, device="cpu")
            hold(
                findings,
                f"{m}x{n}",
                *check_dense(A, result, values(family, m, n, dtype), full=True),
            )


@pytest.mark.parametrize(
    "family", ["complex_gaussian", "geometric_1e8", "columns_apart", "parts_graded"]
)
@every_dtype
def test_jacobi(family, dtype):
    """Each value to its own size, whatever the sizes of the columns are."""
    with Findings() as findings:
        for m, n in ((5, 5), (12, 8), (8, 12), (33, 33)):
            A = matrix(family, m, n, dtype)
            S = linalg.svd(A, full_matrices=False, method="jacobi", device="cpu").S
            way, condition = min(jacobi_conditions(A, "cpu"), key=lambda x: x[1])
            if condition < 1e6:
                error = value_error(S, relative_singular_values(A, way))
                findings.bound(f"{m}x{n}", "values", error, 3 * jacobi_value_bound(m, n, condition))
    with Findings() as findings:
        for m, n in ((40, 40), (70, 31), (31, 70), (131, 131)):
            A = matrix(family, m, n, dtype)
            result = linalg.svd(A, full_matrices=False, method="jacobi", device="cpu")
            hold(findings, f"{m}x{n}", *check_dense(A, result, values(family, m, n, dtype)))


@pytest.mark.parametrize("family", OWN)
@every_dtype
def test_inv(family, dtype):
    with Findings() as findings:
        for n, refine in itertools.product((1, 3, 17, 40, 100), (False, True)):
            A = matrix(family, n, n, dtype)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", LinAlgWarning)
                    X = linalg.inv(A, refine=refine, device="cpu")
            except linalg.LinAlgError:
                assert family in ("least_parts", "skew")
                continue
            if np.isfinite(X).all() and np.any(A):
                residual = inverse_residual(A, X)
                findings.bound(f"n = {n}", "residual", residual, INVERSE_BOUNDS[refine])


@pytest.mark.parametrize("n", [40, 150])
@every_dtype
def test_inv_where_pivots_grow(n, dtype):
    """By QR instead of elimination, and in long double."""
    A = make("wilkinson", n, n, dtype)
    X = linalg.inv(A, device="cpu")
    assert inverse_residual(A, X) < INVERSE_BOUNDS[False]
    B = np.triu(np.ones((n, n), dtype)) * 1e-30j
    assert inverse_residual(B, linalg.inv(B, device="cpu")) < INVERSE_BOUNDS[False]


@pytest.mark.parametrize("family", SOME)
@every_dtype
def test_bidiagonalize(family, dtype):
    eps = np.finfo(dtype).eps
    for m, n in ((1, 1), (5, 5), (6, 3), (3, 6), (40, 40), (70, 33), (33, 300)):
        A = matrix(family, m, n, dtype)
        form = linalg.bidiagonalize(A, device="cpu")
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
        for one, other in zip(form.svd(), linalg.svd(A, device="cpu"), strict=True):
            assert np.array_equal(one, other)


def test_products_take_what_becomes_complex():
    form = linalg.bidiagonalize(matrix("complex_gaussian", 5, 3, np.complex64), device="cpu")
    assert form.apply_q(np.arange(5.0)).dtype == np.complex64
    real = linalg.bidiagonalize(np.eye(3), device="cpu")
    with pytest.raises(TypeError, match="complex128"):
        real.apply_q(np.ones(3) * 1j)


@pytest.mark.parametrize("layout", LAYOUTS)
@every_dtype
def test_layouts(layout, dtype):
    for m, n in ((7, 4), (4, 7), (40, 40)):
        A = np.stack([make("complex_gaussian", m, n, dtype, seed) for seed in range(3)])
        right = linalg.svd(A, device="cpu")
        for one, other in zip(linalg.svd(LAYOUTS[layout](A), device="cpu"), right, strict=True):
            assert np.array_equal(one, other)
        if m == n:
            inverse = linalg.inv(LAYOUTS[layout](A), device="cpu")
            assert np.array_equal(inverse, linalg.inv(A, device="cpu"))


@every_dtype
def test_batches_are_their_matrices(dtype):
    for shape in ((3, 8, 8), (2, 3, 5, 2), (4, 2, 6), (0, 3, 3), (2, 0, 3), (3, 60, 50)):
        A = make("complex_gaussian", 1, max(math.prod(shape), 1), dtype)[0]
        A = A[: math.prod(shape)].reshape(shape)
        U, S, Vh = linalg.svd(A, device="cpu")
        assert U.dtype == Vh.dtype == dtype and S.dtype == A.real.dtype
        for i in np.ndindex(shape[:-2]):
            for one, other in zip((U[i], S[i], Vh[i]), linalg.svd(A[i], device="cpu"), strict=True):
                assert np.array_equal(one, other)


@every_dtype
def test_real_matrices_given_as_complex(dtype):
    """The results are those of the real matrix, within the bounds, and real."""
    A = np.random.default_rng(5).standard_normal((30, 20)).astype(np.zeros(0, dtype).real.dtype)
    of_real = linalg.svd(A, full_matrices=False, device="cpu")
    result = linalg.svd(A.astype(dtype), full_matrices=False, device="cpu")
    eps = np.finfo(dtype).eps
    assert np.allclose(result.S, of_real.S, rtol=20 * eps)
    for one, other in zip(result, of_real, strict=True):
        assert not np.any(one.imag) and np.allclose(one.real, other, atol=1e3 * eps)


def test_select():
    A = matrix("complex_gaussian", 30, 20, np.complex128)
    U, S, Vh = linalg.svd(A, full_matrices=False, device="cpu")
    part = linalg.svd(A, select="i", select_range=(2, 5), device="cpu")
    assert np.allclose(part.S, S[2:6]) and np.allclose(part.U, U[:, 2:6])
    assert np.allclose(part.Vh, Vh[2:6])
    within = linalg.svd(A, select="v", select_range=(S[6], S[3]), device="cpu")
    assert np.allclose(within.S, S[3:6])


def test_hermitian():
    A = matrix("hermitian_indefinite", 12, 12, np.complex128)
    U, S, Vh = linalg.svd(A, hermitian=True, device="cpu")
    assert np.allclose(np.sort(abs(np.linalg.eigvalsh(A)))[::-1], S) and np.allclose(U * S @ Vh, A)


@every_dtype
def test_out(dtype):
    A, real = matrix("complex_gaussian", 6, 4, dtype), np.zeros(0, dtype).real.dtype
    out = (np.empty((6, 4), dtype), np.empty(4, real), np.empty((4, 4), dtype))
    result = linalg.svd(A, full_matrices=False, out=out, device="cpu")
    assert result.U is out[0] and result.S is out[1]
    assert np.allclose(out[0] * out[1] @ out[2], A, atol=1e-5)
    with pytest.raises(TypeError, match="out: S has dtype complex"):
        linalg.svd(A, full_matrices=False, out=(out[0], np.empty(4, dtype), out[2]), device="cpu")
    with pytest.raises(TypeError, match="out: U has dtype float"):
        linalg.svd(A, full_matrices=False, out=(np.empty((6, 4), real), *out[1:]), device="cpu")


@pytest.mark.parametrize("bad", [np.nan, 1j * np.nan, np.inf, complex(1, -np.inf)])
@every_dtype
def test_not_finite(bad, dtype):
    A = np.array(make("complex_gaussian", 4, 3, dtype))
    A[2, 1] = bad
    for function in (linalg.svd, linalg.svdvals, linalg.bidiagonalize):
        with pytest.raises(ValueError, match="NaN or infinity"):
            function(A, device="cpu")
    with pytest.raises(ValueError, match="NaN or infinity"):
        linalg.inv(A[1:], device="cpu")
    result = linalg.svd(np.stack([A, np.ones_like(A)]), check_finite=False, device="cpu")
    assert all(np.isnan(x[0]).all() and np.isfinite(x[1]).all() for x in result)


def test_wrong_types():
    for wrong in (np.clongdouble, np.longdouble):
        with pytest.raises(TypeError, match="for dense matrices complex128 and complex64"):
            linalg.svd(np.ones((2, 2), wrong), device="cpu")
    with pytest.raises(TypeError, match="phases"):
        tsvd.svd(np.ones(3) * 1j, np.ones(2), device="cpu")


@pytest.mark.parametrize("method", ["auto", "jacobi"])
def test_the_number_of_threads_changes_no_bit(method):
    for m, n in ((300, 300), (2000, 40)):
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


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_refused_on_a_device():
    A = make("complex_gaussian", 4, 4)
    with pytest.raises(NotImplementedError, match="complex matrices are not offered on CUDA"):
        linalg.svd(A, device="cuda")
    assert linalg.svd(make("complex_gaussian", 900, 900), full_output=True)[1].device == "cpu"
