"""LAPACK's input for its tests of the SVD, svd.in, with the matrices and the ratios of its drivers.

Source: TESTING/EIG of LAPACK, sdrvbd.f, ddrvbd.f, cdrvbd.f and zdrvbd.f, and what these call:
zbdt01.f, zbdt05.f, zunt01.f and zunt03.f. Ratios are errors in units of rounding, and stay below
the threshold of svd.in. Here they are computed in double precision for every type.
"""

import itertools

import numpy as np
import pytest

from testing.cases import Findings
from tsvd import linalg

every_dtype = pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.complex128, np.complex64]
)
M = (0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 10, 10, 16, 16, 30, 30, 40, 40)
N = (0, 1, 3, 0, 1, 2, 0, 1, 0, 1, 3, 10, 16, 10, 16, 30, 40, 30, 40)
THRESHOLD = 50
KINDS = ("zero", "identity", "even", "near_underflow", "near_overflow")


def unitary(order, columns, dtype, rng):
    a = rng.standard_normal((order, columns)).astype(dtype)
    if np.iscomplexobj(a):
        a += 1j * rng.standard_normal((order, columns))
    return np.linalg.qr(a)[0]


def matrix(kind, m, n, dtype):
    """One of the five types. Values of the last three go in equal steps from 1 to 1/p, and then are
    scaled. ZDRVBD says that they go to ulp, but hands ZLATMS the condition number p.
    """
    p, info = min(m, n), np.finfo(dtype)
    if kind == "zero" or p == 0:
        return np.zeros((m, n), dtype)
    if kind == "identity":
        return np.eye(m, n, dtype=dtype)
    ulp = info.eps / 2
    scale = {"even": 1.0, "near_underflow": info.tiny / ulp, "near_overflow": ulp / info.tiny}
    rng = np.random.default_rng([m, n, KINDS.index(kind)])
    double = np.result_type(dtype, np.float64)
    left, right = (unitary(order, p, double, rng) for order in (m, n))
    s = np.linspace(1, 1 / p, p) * np.float64(scale[kind])
    return ((left * s) @ right.conj().T).astype(dtype)


# ---- the ratios ----


def columns(x):
    """The largest sum over a column, of |re| + |im|."""
    return (abs(x.real) + abs(x.imag)).sum(0).max(initial=0)


def over(error, norm, n, eps):
    """error / (n norm eps); the zero matrix allows no error."""
    if norm == 0:
        return 0 if error == 0 else 1 / eps
    return error / norm / (n * eps)


def residual(A, U, S, Vh, eps):
    """|A - U diag(S) Vh| / (n |A| eps)"""
    p = S.size
    error = columns(A - (U[:, :p] * S) @ Vh[:p])
    return over(error, abs(A).sum(0).max(initial=0), A.shape[1], eps)


def part_residual(A, U, S, Vh, eps):
    """|diag(S) - U^H A V| / (n max|A| eps)"""
    error = columns(np.diag(S) - U.conj().T @ A @ Vh.conj().T)
    return over(error, abs(A).max(initial=0), A.shape[1], eps)


def orthogonality(Q, eps):
    """|I - Q^H Q| / (m eps) for orthonormal columns."""
    error = abs(np.eye(Q.shape[1]) - Q.conj().T @ Q).sum(0).max(initial=0)
    return over(error, 1, max(len(Q), 1), eps)


def apart(Q, part, eps):
    """The largest |q - t q'| / (m eps) over the columns that both have, |t| = 1."""
    if part.size == 0:
        return 0
    Q = Q[:, : part.shape[1]]
    top, at = abs(Q).argmax(0), np.arange(Q.shape[1])
    turn = Q[top, at] * part[top, at].conj()
    turn = np.where(turn == 0, 1, turn) / np.where(turn == 0, 1, abs(turn))
    return over(abs(Q - part * turn).max(), 1, len(Q), eps)


def values_apart(S, part, dtype):
    """|S - S'| / (p ulp |S|)"""
    info = np.finfo(dtype)
    return abs(S - part).max(initial=0) / max(S.size * info.eps / 2 * S.max(initial=0), info.tiny)


def interval(S, A, first, last, dtype):
    """The bounds of ZDRVBD around the values of ranks first to last; for one value 0 and 1."""
    info = np.finfo(dtype)
    least = max(info.eps / 2 * abs(A).sum(0).max(), 2 * np.sqrt(float(info.tiny)))
    if last == first:
        return 0.0, 1.0
    above = S[first - 1] - S[first] if first else S[0] - S[-1]
    below = S[last] - S[last + 1] if last + 1 < S.size else S[0] - S[-1]
    return max(S[last] - max(below / 2, least), 0.0), S[first] + max(above / 2, least)


# ---- the drivers ----


def wide(result):
    """The arrays in double precision."""
    return [x.astype(np.result_type(x, np.float64)) for x in result]


def cases(dtype):
    """The name of each matrix, and the matrix."""
    for kind, (m, n) in itertools.product(KINDS, zip(M, N, strict=True)):
        yield f"{kind} {m}x{n}", matrix(kind, m, n, dtype)


@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens", "twisted", "jacobi"])
@every_dtype
def test_all_values(dtype, method, device):
    eps, options = float(np.finfo(dtype).eps), {"method": method, "device": device}
    with Findings() as findings:
        for where, A in cases(dtype):
            U, S, Vh = wide(linalg.svd(A, **options))
            small_U, small_S, small_Vh = wide(linalg.svd(A, full_matrices=False, **options))
            findings.holds(where, "the shapes", len(U) == len(A) and len(Vh) == A.shape[1])
            findings.holds(where, "descending", np.all(S[1:] <= S[:-1]) and np.all(S >= 0))
            ratios = {
                "residual": residual(*wide([A]), U, S, Vh, eps),
                "orthogonality of U": orthogonality(U, eps),
                "orthogonality of V": orthogonality(Vh.T, eps),
                "U of the economy size": apart(U, small_U, eps),
                "V of the economy size": apart(Vh.T, small_Vh.T, eps),
                "S of the economy size": values_apart(S, small_S, dtype),
            }
            for other in {method, "bisect"} - {"jacobi"}:
                alone = linalg.svdvals(A, method=other, device=device)
                ratios[f"S alone by {other}"] = values_apart(S, *wide([alone]), dtype)
            for measure, ratio in ratios.items():
                findings.bound(where, measure, ratio, THRESHOLD)


@pytest.mark.parametrize("method", ["auto", "dc", "twisted", "jacobi"])
@every_dtype
def test_parts(dtype, method, device):
    eps, options = float(np.finfo(dtype).eps), {"method": method, "device": device}
    with Findings() as findings:
        for where, A in cases(dtype):
            if A.size == 0:
                continue
            S, rng = linalg.svdvals(A, device=device), np.random.default_rng(A.shape)
            first, last = sorted(rng.integers(S.size, size=2).tolist())
            chosen = {"i": (first, last), "v": interval(*wide([S, A]), first, last, dtype)}
            if method == "jacobi":  # it has no bidiagonal matrix to count in
                del chosen["v"]
            for select, ends in chosen.items():
                U, S, Vh = wide(linalg.svd(A, select=select, select_range=ends, **options))
                ratios = {
                    "residual": part_residual(*wide([A]), U, S, Vh, eps),
                    "orthogonality of U": orthogonality(U, eps),
                    "orthogonality of V": orthogonality(Vh.T, eps),
                }
                some = S.size > last - first or (select == "v" and (first == last or not A.any()))
                findings.holds(f"{where} {select} {ends}", "as many values", some)
                for measure, ratio in ratios.items():
                    findings.bound(f"{where} {select} {ends}", measure, ratio, THRESHOLD)
