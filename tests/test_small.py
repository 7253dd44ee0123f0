"""Small dense matrices: on the CPU in vector lanes, on a CUDA device one in a thread."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from testing.cases import same_bits
from testing.processes import run
from testing.ranks import numbers
from tsvd import _core, linalg
from verification import small_dense

DTYPES = small_dense.DTYPES
ORDER = _core.tuning()["CPU_LANES_ORDER"]
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def order_of(device, dtype):
    """The largest order that the device has a way of its own for."""
    return ORDER if device == "cpu" else small_dense.order_on_device(dtype)


def hold(A, device, full=False):
    """All measures and rules of small_dense for a batch A (count, m, n)."""
    count, m, n = A.shape
    made = small_dense.Block(0, 0, m, n, A.dtype.name, full, count)
    _, wrong = small_dense.check(made, A, device)
    assert not wrong, wrong[:3]
    if m == n:
        _, wrong = small_dense.check_inverses(made, A, device)
        assert not wrong, wrong[:3]


@pytest.mark.parametrize("index", range(16))
def test_blocks_of_mixed_kinds(index, device):
    made = replace(small_dense.block(20, index), count=800)
    hold(small_dense.matrices(made), device, made.full)


@every_dtype
@pytest.mark.parametrize("full", [False, True])
def test_every_shape(full, dtype, device):
    for m, n in itertools.product([*range(1, 9), 11, ORDER, ORDER + 1, 40], repeat=2):
        hold(numbers((3, m, n), dtype, [m, n]), device, full)


@every_dtype
def test_all_matrices_of_order_2_with_entries_at_the_ends(dtype, device):
    info = np.finfo(dtype)
    tiny, huge = float(info.smallest_subnormal), float(info.max) / 64
    entries = [0, 1, -1, info.eps, -info.eps, huge, -huge, tiny, -tiny]
    hold(np.array(list(itertools.product(entries, repeat=4)), dtype).reshape(-1, 2, 2), device)


@every_dtype
def test_matrices_of_order_3_and_4_with_entries_at_the_ends(dtype, device):
    for n in (3, 4):
        made = small_dense.Block(5, n, n, n, dtype, False)
        rng = np.random.default_rng([5, n])
        hold(small_dense._of_kind("ends", (6000, n, n), made, rng).astype(dtype), device)


@every_dtype
@pytest.mark.parametrize("n", [2, 3, 5, 8, 12, 16])
def test_values_that_are_nearly_equal(n, dtype, device):
    """Their shifts fail many times, and the matrix falls apart at no place."""
    wide = "complex128" if "complex" in dtype else "float64"
    Q, _ = np.linalg.qr(numbers((400, n, n), wide, n))
    noise = 10.0 ** np.linspace(-17, -1, 400)[:, None, None]
    hold((Q + noise * numbers((400, n, n), dtype, n + 1)).astype(dtype), device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_on_which_sweeps_of_one_direction_do_not_converge(dtype, device):
    """The shift equals the first entry: each sweep permutes the entries."""
    digits = np.finfo(dtype).nmant
    found = []
    for p in range(6, digits - 2, 1 if digits < 30 else 6):
        for i, j, k in itertools.product((p - 2, p - 1, p), range(p, digits, 2), range(p, digits)):
            e = 2.0 ** -np.array([i, j, k])
            found.append(np.diag([1, 1, 1 + 2.0**-p, 1]) + np.diag(e, 1))
    B = np.array(found, dtype)
    hold(B, device)
    hold(B + 2.0 ** -(digits + 8) * numbers(B.shape, dtype), device)
    hold(np.ascontiguousarray(B.swapaxes(1, 2)), device)


@every_dtype
def test_the_place_in_a_batch_changes_no_bit(dtype, device):
    on = {"device": device}
    n = min(5, order_of(device, dtype))
    A = numbers((50, n, n), dtype)
    A[::7] *= 10.0**-30  # neighbours of other kinds
    A[3::7] = 0
    A[5::7, :, 1] = A[5::7, :, 0]
    whole = (*linalg.svd(A, **on), linalg.svdvals(A, **on))
    for i, count in itertools.product(range(0, 50, 3), (1, 2, 9)):
        part = slice(i, min(i + count, 50))
        got = (*linalg.svd(A[part], **on), linalg.svdvals(A[part], **on))
        assert same_bits(got, tuple(x[part] for x in whole)), (i, count)
    layouts = A[::-1][::-1], np.asfortranarray(A), A.swapaxes(0, 1).copy().swapaxes(0, 1)
    layouts += (A.reshape(5, 10, n, n), np.broadcast_to(A, (2, 50, n, n))[1])
    for same in layouts:
        got = (*linalg.svd(same, threads=1, **on), linalg.svdvals(same, **on))
        assert all(x.tobytes() == y.tobytes() for x, y in zip(got, whole, strict=True))
    B = A[1::7]
    X = linalg.inv(B, **on)
    assert all(same_bits(linalg.inv(b, **on), x) for b, x in zip(B, X, strict=True))


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_larger_matrices_on_a_device_have_the_same_bits_alone(dtype, cuda):
    for m, n in ((9, 9), (10, 9), (9, 12), (16, 16), (17, 17), (24, 30), (32, 32), (32, 17)):
        if dtype == "complex128":
            m, n = (m + 1) // 2, (n + 1) // 2
        A = numbers((40, m, n), dtype, [m, n])
        A[5::7, :, 1] = A[5::7, :, 0]
        A[3::7] *= 10.0 ** -np.linspace(0, 30, n)
        whole = linalg.svd(A, device="cuda")
        for i, count in itertools.product(range(0, 40, 4), (1, 3)):
            got = linalg.svd(A[i : i + count], device="cuda")
            assert same_bits(got, tuple(x[i : i + count] for x in whole)), (m, n, i, count)
            one = linalg.svd(A[i], device="cuda")
            assert same_bits(one, tuple(x[i] for x in whole)), (m, n, i)


@pytest.mark.parametrize("index", range(12))
def test_neighbours_of_all_kinds_change_no_bit(index, device):
    made = replace(small_dense.block(30, index), count=500)
    most = order_of(device, made.dtype)
    made = replace(made, m=min(made.m, most), n=min(made.n, most))
    A = small_dense.matrices(made)
    whole = (*linalg.svd(A, made.full, device=device), linalg.svdvals(A, device=device))
    for i, a in enumerate(A):
        alone = (*linalg.svd(a, made.full, device=device), linalg.svdvals(a, device=device))
        assert all(x.tobytes() == y[i].tobytes() for x, y in zip(alone, whole, strict=True)), i


@every_dtype
def test_parts_of_the_values(dtype, device):
    for m, n in ((4, 4), (6, 6), (9, 4), (3, 8)):
        A = numbers((4, m, n), dtype)
        whole, k = linalg.svd(A, False, device=device), min(m, n)
        for first, last in ((0, 0), (1, k - 1), (k - 1, k - 1)):
            part = {"select": "i", "select_range": (first, last), "device": device}
            wanted = slice(first, last + 1)
            U, S, Vh = linalg.svd(A, **part)
            expected = whole.U[..., wanted], whole.S[:, wanted], whole.Vh[:, wanted]
            if max(m, n) <= order_of(device, dtype):
                assert same_bits((U, S, Vh), tuple(map(np.ascontiguousarray, expected)))
            else:
                assert np.allclose(S, expected[1], rtol=1e-4)
        if max(m, n) > order_of(device, dtype):
            continue
        for values in (linalg.svdvals, lambda *a, **options: linalg.svd(*a, **options).S):
            s = values(A[0], device=device)
            for low, high in itertools.combinations([-1.0, 0.0, *map(float, s), np.inf], 2):
                if low < high:
                    got = values(A[0], select="v", select_range=(low, high), device=device)
                    assert same_bits(got, s[(s.astype(float) > low) & (s.astype(float) <= high)])


def test_what_is_not_finite_is_named(device):
    A = numbers((30, 3, 3), "float64")
    A[17, 1, 2] = np.nan
    A[20, 0, 0] = np.inf
    for function in (linalg.svd, linalg.svdvals, linalg.inv):
        with pytest.raises(ValueError, match="matrix 17 of the batch"):
            function(A, device=device)
    with pytest.raises(ValueError, match=r"a\[0, 1\] is \(1\+nanj\)"):
        linalg.svd(np.array([[1, complex(1, np.nan)], [0, 1]]), device=device)
    good = np.r_[:17, 18:20, 21:30]
    whole, part = (
        linalg.svd(A, check_finite=False, device=device),
        linalg.svd(A[good], device=device),
    )
    assert same_bits(tuple(x[good] for x in whole), tuple(part))
    assert all(np.isnan(x[[17, 20]]).all() for x in whole)
    assert np.isnan(linalg.inv(A, check_finite=False, device=device)[[17, 20]]).all()


@pytest.mark.filterwarnings("ignore:.*Ill-conditioned")
def test_inverses_that_the_lanes_leave_to_others():
    A = numbers((20, 4, 4), "float64")
    A[3] = np.diag([1e200, 1e-200, 1, 1e-300])
    inverse = linalg.inv(A[4])
    A[4, :, 2] *= 2.0**1000
    A[5] = np.diag([5e-324, 1, 1, 1])
    X = linalg.inv(A[:5])
    assert np.allclose(X[3] * np.diag([1e200, 1e-200, 1, 1e-300]), np.eye(4), rtol=1e-3)
    assert np.allclose(X[4] * np.array([[1], [1], [2.0**1000], [1]]), inverse, rtol=1e-12)
    assert np.isinf(linalg.inv(A[5])[0, 0])
    A[9] = 1
    with pytest.raises(linalg.LinAlgError, match="matrix 3 of the batch: Singular"):
        linalg.inv(A[6:])
    with pytest.raises(linalg.LinAlgError, match="Singular"):
        linalg.inv(np.zeros((2, 2)))


def test_a_call_can_be_stopped():
    class Stop(Exception):
        pass

    def stop(done):
        raise Stop

    A = np.ones((1_000_000, 6, 6)) + np.eye(6)
    for function in (linalg.svd, linalg.svdvals, linalg.inv):
        with pytest.raises(Stop):
            function(A, progress=stop)


def test_a_small_matrix_needs_no_scipy_and_its_reduction_does():
    run("""
import sys
import numpy as np
from tsvd import linalg

A = np.arange(12.0).reshape(3, 4)
linalg.svd(A), linalg.svdvals(A)
assert "scipy" not in sys.modules
form = linalg.bidiagonalize(A)
assert "scipy" in sys.modules and np.allclose(form.svdvals(), linalg.svdvals(A))
""")


def test_a_planted_defect_is_found(monkeypatch):
    made = replace(small_dense.block(0, 0), count=300)
    A = small_dense.matrices(made)
    svd, svdvals = linalg.svd, linalg.svdvals

    def signs(*args, **options):
        result = svd(*args, **options)
        return result if type(result) is np.ndarray else (-result[0], result[1], -result[2])

    def lengths(*args, **options):
        result = svd(*args, **options)
        return result if type(result) is np.ndarray else (result[0] * (1 + 1e-13), *result[1:])

    def values(*args, **options):
        return svdvals(*args, **options) * (1 + 1e-14)

    for name, defect in (("svd", signs), ("svd", lengths), ("svdvals", values)):
        with monkeypatch.context() as patch:
            patch.setattr(linalg, name, defect)
            _, wrong = small_dense.check(made, A, "cpu")
            assert wrong, defect
