"""Tests of the reference values of dense matrices (against mpmath), and of their checks: right
results pass, and planted defects are found.
"""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import tsvd
from test_reference import exact
from testing.dense_families import FAMILIES, make
from testing.measures import check_dense, jacobi_conditions
from testing.reference import bidiagonal, dense_singular_values, relative_singular_values

DIGITS = 700  # mpmath's errors are relative to the norm; entries differ by up to 10^600


@pytest.mark.parametrize("family", FAMILIES)
def test_reference_against_mpmath(family):
    with mpmath.workdps(DIGITS):
        for m, n in [(1, 1), (1, 3), (5, 4), (3, 6)]:
            A = make(family, m, n)
            wide = mpmath.matrix(A.tolist())
            theirs = sorted(mpmath.svd_r(wide, compute_uv=False), reverse=True)
            unit = max(theirs[0], exact(np.finfo(float).smallest_subnormal)) * mpmath.mpf(2) ** -58
            for one, other in zip(dense_singular_values(A), theirs, strict=True):
                assert abs(exact(one) - other) <= unit, (m, n, float(one), float(other))


def test_reference_of_larger_matrices():
    """The values of min(i, j), i, j = 1 .. n, are 1 / (4 sin^2((2k - 1) pi / (4n + 2)))."""
    n = 130
    i = np.arange(1.0, n + 1)
    angle = (2 * i - 1) * (np.arctan(np.longdouble(1)) * 4) / (4 * n + 2)
    s = dense_singular_values(np.minimum(i[:, None], i))
    assert np.max(abs(s - 1 / (4 * np.sin(angle) ** 2))) < 2.0**-57 * s[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lines", ["columns", "rows"])
@pytest.mark.parametrize("zeros", ["", "_and_zeros"])
def test_relative_reference_against_mpmath(lines, zeros, dtype):
    """Values far apart are as good as the condition of the columns, or rows, allows."""
    checked = 0
    for m, n in ((1, 3), (6, 6), (7, 4), (4, 7)):
        A = make(f"{lines}_apart{zeros}", m, n, dtype, 3)
        for by_rows, condition in jacobi_conditions(A, "cpu"):
            if condition > 1e6:
                continue
            s = relative_singular_values(A, by_rows)
            with mpmath.workdps(2 * DIGITS):
                wide = mpmath.matrix(A.astype(float).tolist())
                theirs = sorted(mpmath.svd_r(wide, compute_uv=False), reverse=True)
                for one, other in zip(s, theirs, strict=True):
                    error = abs(exact(one) - other)
                    assert error <= condition * 2.0**-60 * other or error < mpmath.mpf(10) ** -900
            checked += 1
    assert checked > 1


def test_the_bidiagonals_of_a_batch():
    A = np.stack([make(family, 6, 9) for family in FAMILIES])
    d, e = bidiagonal(A)
    for i in range(len(A)):
        one = bidiagonal(A[i])
        assert np.array_equal(d[i], one[0]) and np.array_equal(e[i], one[1])


# ---- the checks ----


def decomposed(A, full=False):
    """The SVD by NumPy's QR and tsvd's bidiagonal SVD: Householder's reduction column by column."""
    m, n = A.shape
    left, right, B = np.eye(m), np.eye(n), A.astype(np.float64)
    for j in range(n):
        q = scipy.linalg.qr(B[j:, j : j + 1])[0]
        B[j:], left[:, j:] = q.T @ B[j:], left[:, j:] @ q
        if j < n - 1:
            q = scipy.linalg.qr(B[j : j + 1, j + 1 :].T)[0]
            B[:, j + 1 :], right[:, j + 1 :] = B[:, j + 1 :] @ q, right[:, j + 1 :] @ q
    L, S, R = tsvd.svd(np.diagonal(B).copy(), np.diagonal(B, 1).copy(), device="cpu")
    U, Vh = (left if full else left[:, :n]).copy(), R @ right.T
    U[:, :n] = left[:, :n] @ L
    signs = np.sign(U[np.argmax(abs(U[:, :n]), axis=0), np.arange(n)])
    U[:, :n], Vh = U[:, :n] * signs, signs[:, None] * Vh
    return tuple(x.astype(A.dtype) for x in (U, S, Vh))


def a_vector_off(U, S, Vh, eps):
    U[0, 1] += eps**0.64


def a_right_vector_off(U, S, Vh, eps):
    Vh[1, 0] += eps**0.64


def the_last_column_off(U, S, Vh, eps):
    U[-1, -1] += eps**0.6


def a_wrong_sign(U, S, Vh, eps):
    U[:, 1] *= -1
    Vh[1] *= -1


def a_wrong_sign_on_one_side(U, S, Vh, eps):
    Vh[1] *= -1


def values_off(U, S, Vh, eps):
    S *= 1 + 20 * S.size * eps


def the_least_value_off(U, S, Vh, eps):
    S[-1] -= min(S[-1], S[0] * 20 * S.size * eps)


def vectors_not_orthogonal(U, S, Vh, eps):
    U[:, 0] += 1e3 * eps * U[:, 2]


def vectors_too_long(U, S, Vh, eps):
    U *= 1 + 200 * eps
    S /= 1 + 200 * eps


def vectors_exchanged(U, S, Vh, eps):
    Vh[:2] = Vh[1::-1].copy()


def a_wrong_order(U, S, Vh, eps):
    S[:2], U[:, :2], Vh[:2] = S[1::-1].copy(), U[:, 1::-1].copy(), Vh[1::-1].copy()


def a_negative_value(U, S, Vh, eps):
    S[-1] *= -1
    Vh[-1] *= -1


def minus_zero(U, S, Vh, eps):
    S[-1] = -0.0


def not_a_number(U, S, Vh, eps):
    U[2, 2] = np.nan


def infinity(U, S, Vh, eps):
    S[0] = np.inf


DEFECTS = {
    a_vector_off: "residual",
    a_right_vector_off: "orthogonality",
    the_last_column_off: "orthogonality",
    a_wrong_sign: "not positive",
    a_wrong_sign_on_one_side: "residual",
    values_off: "values",
    the_least_value_off: "values",
    vectors_not_orthogonal: "orthogonality",
    vectors_too_long: "orthogonality",
    vectors_exchanged: "residual",
    a_wrong_order: "not descending",
    a_negative_value: "negative",
    minus_zero: "negative",
    not_a_number: "NaN",
    infinity: "infinite",
}


def complaints(A, result, s_ref, **options):
    found, wrong = check_dense(A, result, s_ref, **options)
    return [name for name, (value, limit) in found.items() if not value <= limit] + wrong


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("m", "n", "full"), [(9, 9, False), (40, 12, False), (40, 12, True)])
def test_a_planted_defect_is_found(defect, dtype, m, n, full):
    A = make("geometric_1e1", m, n, dtype)
    s_ref, result = dense_singular_values(A), decomposed(A, full)
    assert complaints(A, result, s_ref, full=full) == []
    defect(*result, float(np.finfo(dtype).eps))
    said = complaints(A, result, s_ref, full=full)
    assert any(DEFECTS[defect] in text for text in said), said


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_part_is_held_to_its_own_values(dtype):
    A = make("geometric_1e4", 12, 12, dtype)
    s_ref, (U, S, Vh) = dense_singular_values(A), decomposed(A)
    part = U[:, 3:6].copy(), S[3:6].copy(), Vh[3:6].copy()
    assert complaints(A, part, s_ref, first=3) == []
    assert "values" in complaints(A, part, s_ref, first=2)
    part[2][0] = Vh[7]
    assert complaints(A, part, s_ref, first=3) == ["residual"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zeros_pass_for_no_family_but_zero(family, dtype):
    A = make(family, 12, 8, dtype)
    nothing = np.eye(12, 8, dtype=dtype), np.zeros(8, dtype), np.eye(8, dtype=dtype)
    said = complaints(A, nothing, dense_singular_values(A))
    assert bool(said) == bool(A.any()), said


def test_types_and_shapes():
    A = make("gaussian", 6, 4)
    s_ref, (U, S, Vh) = dense_singular_values(A), decomposed(A)
    assert "types" in complaints(A, (U, S.astype(np.float32), Vh), s_ref)[0]
    assert "shapes" in complaints(A, (U, S, Vh), s_ref, full=True)[0]
    assert "shapes" in complaints(A, (U[:, :3], S, Vh), s_ref)[0]
    assert "values" in complaints(A, (S + 1,), s_ref)
