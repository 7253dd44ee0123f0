"""tsvd.linalg: input and results, types, strides, batches, out=, select, options, and every error.

test_linalg.py measures accuracy.
"""

import gc
import sys
import threading

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, same_bits
from testing.processes import run
from tsvd import _core, linalg

NAN, INF = np.nan, np.inf
SHAPES = [(1, 1), (1, 5), (5, 1), (5, 5), (7, 4), (4, 7), (60, 3), (3, 60), (40, 33), (33, 40)]
EMPTY = [(0, 0), (3, 0), (0, 3), (2, 0, 3), (2, 3, 0), (0, 3, 2), (0, 2, 3), (0, 0, 0), (4, 0, 0)]


def matrices(*shape, dtype=np.float64):
    seed = [ord(c) for c in str(shape)]
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


A = matrices(6, 4)


def assert_decomposes(a, U, S, Vh):
    """It is a decomposition of a, up to rounding."""
    k = S.shape[-1]
    unit = 100 * max(a.shape[-2:]) * np.finfo(S.dtype).eps
    assert (S[..., 1:] <= S[..., :-1]).all() and (S >= 0).all()
    assert np.allclose((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], a, atol=unit * abs(a).max())
    for Q in (U.mT, Vh):
        assert np.allclose(Q @ Q.mT, np.eye(Q.shape[-2]), atol=unit)


# ---- results ----


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (3, 5, 4), (2, 3, 4, 5), (1, 9, 9)])
def test_the_results_are_those_of_numpy(shape, dtype, full, device):
    a = matrices(*shape, dtype=dtype)
    result, expected = linalg.svd(a, full, device=device), np.linalg.svd(a, full)
    assert isinstance(result, linalg.SVDResult) and result._fields == expected._fields
    for got, want in zip(result, expected, strict=True):
        assert got.shape == want.shape and got.dtype == dtype
        assert type(got) is np.ndarray and got.flags.c_contiguous and got.flags.writeable
    assert np.allclose(result.S, expected.S, rtol=0, atol=1e-5 * expected.S.max())
    assert_decomposes(a, *result)
    values = linalg.svdvals(a, device=device)
    assert same_bits(linalg.svd(a, compute_uv=False, device=device), values)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", EMPTY)
def test_empty_matrices_and_batches(shape, full, device):
    a = np.zeros(shape)
    result, expected = linalg.svd(a, full, device=device), np.linalg.svd(a, full)
    assert same_bits(tuple(result), tuple(expected))
    assert same_bits(linalg.svdvals(a, device=device), expected.S)


# More rows than BLAS or Jacobi's workspace could take, in empty matrices or in an empty batch.
HUGE = [(3 * 10**9, 0), (0, 2**33), (5, 3 * 10**9, 0), (0, 3 * 10**9, 4), (2**58, 2, 0)]


@pytest.mark.parametrize("shape", HUGE)
def test_empty_matrices_of_huge_shapes(shape, device):
    a = np.empty(shape)
    *batch, m, n = shape
    p = min(m, n)
    expected = [(*batch, m, p), (*batch, p), (*batch, p, n)]
    for method in ("auto", "dc", "jacobi"):
        result = linalg.svd(a, False, method=method, device=device)
        assert [x.shape for x in result] == expected
    assert linalg.svdvals(a, device=device).shape == expected[1]
    form = linalg.bidiagonalize(a, device=device)
    assert form.d.shape == expected[1] and form.e.shape == (*batch, max(p - 1, 0))
    assert [form.form_q().shape, form.form_pt().shape] == expected[::2]
    assert [x.shape for x in form.svd(False)] == expected
    assert form.apply_q(np.empty((m, 0))).shape == (*batch, m, 0)
    assert form.apply_p(np.empty((n, 0))).shape == (*batch, n, 0)


def test_bases_that_complete_nothing_may_be_too_large(device):
    for shape in ((3 * 10**9, 0), (0, 2**33)):
        a = np.empty(shape)
        for method in ("auto", "jacobi"):
            with pytest.raises(MemoryError):
                linalg.svd(a, method=method, device=device)
        form = linalg.bidiagonalize(a, device=device)
        with pytest.raises(MemoryError):
            (form.form_q if shape[0] else form.form_pt)(True)


def test_one_rule_for_the_signs(device):
    for shape in ((9, 9), (4, 30), (30, 4)):
        U = linalg.svd(matrices(*shape), False, device=device).U
        largest = np.take_along_axis(U, abs(U).argmax(0)[None], 0)
        assert (largest > 0).all()


def test_the_same_bits_again(device):
    a = matrices(3, 70, 50)
    assert same_bits(tuple(linalg.svd(a, device=device)), tuple(linalg.svd(a, device=device)))


def test_positions_of_the_arguments_are_those_of_numpy():
    assert linalg.svd(A, False).U.shape == (6, 4)
    square = A.T @ A
    expected = np.linalg.svd(square, True, False, True)
    assert np.allclose(linalg.svd(square, True, False, True), expected)


def test_a_subclass_of_ndarray_gets_its_own(device):
    sub = type("Sub", (np.ndarray,), {})
    for kind in (sub, np.matrix):
        a = A.view(kind)
        result, expected = linalg.svd(a, device=device), np.linalg.svd(a)
        assert [type(x) for x in result] == [type(x) for x in expected]


def test_full_output(device):
    result, info = linalg.svd(A, device=device, full_output=True)
    assert isinstance(result, linalg.SVDResult) and isinstance(info, tsvd.SVDInfo)
    assert info.method != "auto" and info.device.startswith(device)
    assert {"reduce", "back", "total"} <= set(info.seconds)
    assert all(0 <= seconds < 60 for seconds in info.seconds.values())
    S, info = linalg.svd(A, compute_uv=False, device=device, full_output=True)
    assert np.allclose(S, result.S)


@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens", "twisted"])
def test_methods(method, device):
    a = matrices(50, 40)
    result, info = linalg.svd(a, method=method, device=device, full_output=True)
    assert_decomposes(a, *result)
    assert method == "auto" or info.method in (method, "dc")
    values = linalg.svdvals(a, method="bisect" if method == "twisted" else method)
    assert np.allclose(values, result.S)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (3, 4, 6)])
def test_out(shape, dtype, full, device):
    a = matrices(*shape, dtype=dtype)
    expected = linalg.svd(a, full, device=device)
    out = tuple(np.full_like(x, 7) for x in expected)
    result = linalg.svd(a, full, out=out, device=device)
    assert isinstance(result, linalg.SVDResult)
    assert all(given is filled for given, filled in zip(out, result, strict=True))
    assert same_bits(out, tuple(expected))


# ---- input ----


def _inside(a, view):
    """a in a larger array, through a view of it."""
    room = np.full((5, 3 * a.shape[0] + 2, 4 * a.shape[1] + 3), NAN, a.dtype)
    to = view(room)[: a.shape[0], : a.shape[1]]
    to[:] = a
    return to


INPUTS = {
    "contiguous": lambda a: a,
    "list": lambda a: a.tolist(),
    "nested tuples": lambda a: tuple(map(tuple, a.tolist())),
    "transposed": lambda a: a.T.copy().T,
    "steps": lambda a: _inside(a, lambda x: x[1, ::3, ::4]),
    "from the end": lambda a: _inside(a, lambda x: x[2, ::-1, ::-2]),
    "backward rows": lambda a: _inside(a, lambda x: x[2, ::-1]),
    "an outer axis": lambda a: np.moveaxis(np.stack([a, a + 1, a]), 0, -1)[..., 0],
    "a field": lambda a: np.rec.fromarrays([np.zeros(a.shape, np.int8), a])["f1"],
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "memoryview": lambda a: memoryview(np.ascontiguousarray(a)),
    "unaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
}


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(13, 9), (9, 13), (40, 5)])
def test_input_is_read_in_place_and_never_written(layout, dtype, shape, device):
    a = matrices(*shape, dtype=dtype)
    same = a if "list tuples".find(layout.split()[-1]) < 0 else a.astype(float)
    expected = linalg.svd(same, device=device)
    given = INPUTS[layout](a)
    if isinstance(given, np.ndarray):
        given.setflags(write=False)
    for overwrite in (False, True):
        result = linalg.svd(given, overwrite_a=overwrite, device=device)
        assert all(map(np.allclose, result, expected))
        assert np.array_equal(given, a)
    # the same numbers in another layout: the same bits
    assert same_bits(tuple(result), tuple(linalg.svd(np.array(given), device=device)))


def test_broadcast_batches(device):
    a = np.broadcast_to(A, (5, 3, 6, 4))
    U, S, Vh = linalg.svd(a, device=device)
    assert U.shape == (5, 3, 6, 6) and S.shape == (5, 3, 4) and Vh.shape == (5, 3, 4, 4)
    one = linalg.svd(A, device=device)
    assert np.allclose(U, one.U) and np.allclose(S, one.S) and np.allclose(Vh, one.Vh)
    rows = np.broadcast_to(A[0], (6, 4))  # one row for all
    assert np.allclose(linalg.svdvals(rows, device=device)[1:], 0, atol=1e-14)


@pytest.mark.parametrize("kind", ["i1", "u2", "i8", "?", ">i4"])
def test_integers_and_bool_become_float64(kind, device):
    a = (abs(A) * 3).astype(kind)
    result = linalg.svd(a, device=device)
    assert same_bits(tuple(result), tuple(linalg.svd(a.astype(float), device=device)))


@pytest.mark.parametrize("shape", [(2, 3), (7,), (3, 1, 2)])
@pytest.mark.parametrize("order", [(5, 5), (8, 3), (3, 8)])
def test_a_batch_is_a_loop(shape, order, device):
    a = matrices(*shape, *order)
    a = np.swapaxes(np.swapaxes(a, 0, -1).copy(), 0, -1)  # odd strides
    batch = linalg.svd(a, False, device=device)
    for i in np.ndindex(*shape):
        one = linalg.svd(a[i], False, device=device)
        assert_decomposes(a[i], *(x[i] for x in batch))
        assert np.allclose(one.S, batch.S[i], rtol=1e-13)


# ---- a part of the values ----


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(9, 7), (7, 9), (2, 9, 7), (80, 7)])
def test_select_by_index(shape, full, device):
    a = matrices(*shape)
    whole = linalg.svd(a, False, device=device)
    for low, high in ((0, 0), (0, 2), (3, 5), (6, 6), (0, 6)):
        part = linalg.svd(a, full, select="i", select_range=(low, high), device=device)
        where = slice(low, high + 1)
        assert part.U.shape == (*shape[:-1], high - low + 1)
        assert np.allclose(part.U, whole.U[..., where]) and np.allclose(part.S, whole.S[..., where])
        assert np.allclose(part.Vh, whole.Vh[..., where, :])
        values = linalg.svdvals(a, select="i", select_range=(low, high), device=device)
        assert np.allclose(values, part.S)


@pytest.mark.parametrize("shape", [(9, 7), (7, 9), (80, 7)])
def test_select_by_interval(shape, device):
    a = matrices(*shape)
    whole = linalg.svd(a, False, device=device)
    s = whole.S
    for low, high in ((s[3] + s[4], s[1] + s[2]), (0, INF), (-INF, s[5] * 2.001), (50, 60)):
        low, high = low / 2, high / 2
        inside = (s > low) & (s <= high)
        part = linalg.svd(a, select="v", select_range=(low, high), device=device)
        assert part.U.shape == (shape[0], inside.sum()) and part.Vh.shape[1] == shape[1]
        assert np.allclose(part.S, s[inside]) and np.allclose(part.Vh, whole.Vh[inside])
        values = linalg.svdvals(a, select="v", select_range=(low, high), device=device)
        assert np.allclose(values, s[inside])


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"select": "x"}, ValueError, "select"),
        ({"select": "i"}, ValueError, "select_range"),
        ({"select_range": (0, 1)}, ValueError, "select="),
        ({"select": "i", "select_range": (0, 4)}, ValueError, "number of values, 4"),
        ({"select": "i", "select_range": (-1, 2)}, ValueError, "select_range"),
        ({"select": "i", "select_range": (2, 1)}, ValueError, "select_range"),
        ({"select": "i", "select_range": (0, 1.5)}, TypeError, "integers"),
        ({"select": "v", "select_range": (2, 1)}, ValueError, "min < max"),
        ({"select": "v", "select_range": ("1", 2)}, TypeError, "number"),
        ({"select": "v", "select_range": 3}, TypeError, "pair"),
        ({"method": "jacoby"}, ValueError, "unknown method 'jacoby'"),
        ({"method": "bisect"}, ValueError, "values only"),
        ({"eps": -1.0}, ValueError, "eps"),
        ({"eps": "1"}, TypeError, "eps"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps"),
        ({"device": "gpu"}, ValueError, "gpu"),
        ({"device": -2}, ValueError, "device"),
        ({"device": 1.5}, TypeError, "device"),
        ({"progress": 3}, TypeError, "progress"),
        ({"threads": 0}, ValueError, "threads"),
        ({"threads": "two"}, TypeError, "threads"),
        ({"tuning": {"nothing": 1}}, ValueError, "nothing"),
        ({"tuning": 3}, TypeError, "tuning"),
        ({"stream": 1}, ValueError, "a lies on the host"),
        ({"out": ()}, TypeError, r"three arrays \(U, S, Vh\)"),
        ({"out": 1}, TypeError, "out"),
        ({"out": (1, 2, 3), "compute_uv": False}, TypeError, "out: S must be a NumPy array"),
    ],
)
def test_wrong_options(options, error, match):
    with pytest.raises(error, match=match):
        linalg.svd(A, **options)


def test_an_interval_is_for_one_matrix():
    with pytest.raises(ValueError, match="one matrix"):
        linalg.svd(matrices(2, 3, 3), select="v", select_range=(0, 1))
    with pytest.raises(ValueError, match="one matrix"):
        linalg.bidiagonalize(matrices(2, 3, 3)).svdvals(select="v", select_range=(0, 1))


# ---- what is refused ----


FUNCTIONS = [linalg.svd, linalg.svdvals, linalg.bidiagonalize]
each_function = pytest.mark.parametrize("function", FUNCTIONS)


@each_function
@pytest.mark.parametrize("a", [3.0, [], [1.0, 2.0], np.zeros(3)])
def test_too_few_dimensions(function, a, device):
    with pytest.raises(np.linalg.LinAlgError, match=f"{np.ndim(a)}-dimensional array given"):
        function(a, device=device)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.svd(a)


@each_function
def test_too_many_dimensions(function):
    with pytest.raises(ValueError, match="at most 32 leading dimensions"):
        function(np.zeros((1,) * 35))
    assert linalg.svdvals(np.zeros((1,) * 34)).ndim == 33


@each_function
@pytest.mark.parametrize("kind", ["G", "e", "g", "O", "U3", "M8[s]"])
def test_wrong_types(function, kind, device):
    with pytest.raises(TypeError, match="a has dtype"):
        function(np.zeros((3, 3)).astype(kind), device=device)


@each_function
def test_what_is_no_array(function):
    for a in (None, object(), "abc", {}, {1: 2}):
        with pytest.raises((TypeError, np.linalg.LinAlgError)):
            function(a)
    with pytest.raises(ValueError, match=r"(?i)inhomogeneous"):
        function([[1.0, 2.0], [3.0]])
    with pytest.raises(TypeError, match="masked"):
        function(np.ma.masked_array(A))


@each_function
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("shape", [(1, 1), (6, 4), (4, 6), (90, 4)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinity_are_refused(function, bad, shape, dtype, device):
    a = matrices(*shape, dtype=dtype)
    a[-1, shape[1] // 2] = bad
    with pytest.raises(ValueError, match="a must not hold NaN or infinity"):
        function(a, device=device)


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (90, 4)])
def test_unchecked_nan_and_infinity_give_nan(bad, shape, device):
    a = matrices(3, *shape)
    expected = linalg.svd(a, device=device)
    a[1, 2, 3] = bad
    for full in (True, False):
        result = linalg.svd(a, full, check_finite=False, device=device)
        for x in result:
            assert np.isnan(x[1]).all() and not np.isnan(x[[0, 2]]).any()
    assert np.allclose(result.S[[0, 2]], expected.S[[0, 2]])
    S = linalg.svdvals(a, check_finite=False, device=device)
    assert np.isnan(S[1]).all() and not np.isnan(S[[0, 2]]).any()
    with pytest.raises(ValueError, match="matrix 1 of the batch: a must not"):
        linalg.svd(a, device=device)
    one = linalg.svd(a[1], select="v", select_range=(0, 9), check_finite=False, device=device)
    assert one.S.shape == (0,)


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("shape", [(1, 1), (6, 1), (1, 6), (6, 4), (4, 6), (90, 4), (70, 70)])
def test_reductions_of_nan_and_infinity_are_nan(bad, shape, device):
    a = matrices(3, *shape)
    a[1, -1, 0] = bad
    form = linalg.bidiagonalize(a, check_finite=False, device=device)
    x, y = np.ones((shape[0], 2)), np.ones((shape[1], 2))
    parts = [form.d, form.e, form.form_q(), form.form_q(full=True), form.form_pt()]
    products = [f(z, t) for f, z in ((form.apply_q, x), (form.apply_p, y)) for t in (False, True)]
    for part in (*parts, *products):
        assert np.isnan(part[1]).all() and np.isfinite(part[[0, 2]]).all()
    assert np.isnan(form.svdvals()[1]).all()


def test_hermitian(device):
    a = A.T @ A - 2 * np.eye(4)
    result, expected = (f(a, hermitian=True) for f in (linalg.svd, np.linalg.svd))
    assert np.allclose(result.S, expected.S)
    assert_decomposes(a, *result)
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        linalg.svd(A, hermitian=True, device=device)


@pytest.mark.parametrize(
    ("position", "spoil", "error"),
    [
        (0, lambda x: x[:-1], ValueError),
        (1, lambda x: x[None], ValueError),
        (2, lambda x: x.astype(np.float32), TypeError),
        (0, lambda x: np.asfortranarray(x), ValueError),
        (1, lambda x: np.zeros(2 * x.size)[::2], ValueError),
        (2, lambda x: x.astype(">f8"), ValueError),
        (0, lambda x: x.tolist(), TypeError),
    ],
)
def test_wrong_out(position, spoil, error):
    name = ("U", "S", "Vh")[position]
    out = [np.zeros((6, 6)), np.zeros(4), np.zeros((4, 4))]
    out[position] = spoil(out[position])
    with pytest.raises(error, match=rf"out: {name} "):
        linalg.svd(A, out=tuple(out))


def test_out_may_not_overlap():
    room = np.zeros((8, 8))
    a, U, S, Vh = matrices(4, 4), np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4))
    with pytest.raises(ValueError, match="out: U overlaps the memory of a"):
        linalg.svd(a, out=(a, S, Vh))
    with pytest.raises(ValueError, match="out: U and Vh overlap"):
        linalg.svd(a, out=(U, S, U))
    with pytest.raises(ValueError, match="overlap"):
        linalg.svd(room[:, :2].T, out=(np.zeros((2, 2)), np.zeros(2), room))


def test_no_convergence():
    with pytest.raises(np.linalg.LinAlgError, match="sweep"):
        linalg.svd(matrices(60, 60), method="givens", max_sweeps=2, eps=1e-12)


def test_cuda_where_there_is_none():
    if any("cuda" in device.device for device in tsvd.devices()):
        pytest.skip("a CUDA device is usable")
    for function in FUNCTIONS:
        with pytest.raises(RuntimeError, match="device='cuda' cannot be used"):
            function(A, device="cuda")


# ---- memory ----


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((10**6, 10**6), {}),
        ((10**7, 2), {}),  # U is square
        ((10**6, 10**6), {"compute_uv": False}),
        ((2**40, 100, 100), {}),
        ((2**30, 2**30), {"select": "i", "select_range": (0, 1)}),
        ((2**30, 2**30), {"select": "v", "select_range": (0, 1)}),
    ],
)
def test_too_large_for_memory(shape, options):
    """The error comes before any work, and has the number of bytes."""
    a = np.broadcast_to(np.float32(1), shape)
    with pytest.raises(MemoryError, match=r"\d+ bytes.*\d+ bytes are free"):
        linalg.svd(a, device="cpu", **options)


@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**30, 2**30), (10**12, 5, 5)])
def test_too_large_a_form_for_memory(shape):
    a = np.broadcast_to(np.float32(1), shape)
    with pytest.raises(MemoryError, match=r"^the workspace wants .*\d+ bytes; \d+ bytes are free"):
        linalg.bidiagonalize(a, device="cpu")


def test_a_tall_matrix_needs_no_square():
    a = np.ones((300_000, 2))
    assert linalg.svd(a, False).U.shape == (300_000, 2)
    with pytest.raises(MemoryError, match="U and Vh"):
        linalg.svd(a)


def test_reference_counts():
    """No call keeps or loses a reference, also if it fails."""
    a, out = A.copy(), (np.zeros((6, 6)), np.zeros(4), np.zeros((4, 4)))
    bad, x = np.full((3, 3), NAN), np.ones((6, 2))

    def progress(done):
        pass

    watched = (a, bad, x, out, *out, progress, np.dtype(float))
    gc.collect()
    before = [sys.getrefcount(y) for y in watched]
    for _ in range(300):
        linalg.svd(a, out=out, progress=progress)
        linalg.svd(a, full_output=True, select="v", select_range=(0, 9), progress=progress)
        form = linalg.bidiagonalize(a, progress=progress)
        form.apply_q(x), form.form_pt(), form.svd(progress=progress), form.d
        for wrong in (bad, bad[0], bad.astype(np.clongdouble)):
            for function in FUNCTIONS:
                with pytest.raises((ValueError, TypeError)):
                    function(wrong)
        with pytest.raises(ValueError, match="shape"):
            form.apply_p(x)
    del form
    gc.collect()
    after = [sys.getrefcount(y) for y in watched]
    assert all(abs(b - a) < 10 for a, b in zip(before, after, strict=True)), (before, after)


# ---- the bidiagonal form ----


def bidiagonal(form):
    """B, dense."""
    p = form.d.shape[-1]
    B, i = np.zeros((*form.d.shape[:-1], p, p), form.dtype), np.arange(p)
    B[..., i, i] = form.d
    B[(..., i[1:], i[:-1]) if form.lower else (..., i[:-1], i[1:])] = form.e
    return B


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (3, 5, 4), (2, 3, 4, 5), *EMPTY])
def test_bidiagonalize(shape, dtype, device):
    a = matrices(*shape, dtype=dtype)
    form = linalg.bidiagonalize(a, device=device)
    m, n = shape[-2:]
    p, unit = min(m, n), 100 * (max(m, n) + 1) * np.finfo(dtype).eps
    assert form.shape == shape and form.dtype == dtype and form.lower == (m < n)
    assert form.d.shape == (*shape[:-2], p) and form.e.shape == (*shape[:-2], max(p - 1, 0))
    assert form.d.dtype == form.e.dtype == dtype
    Q, Pt = form.form_q(), form.form_pt()
    assert Q.shape == (*shape[:-1], p) and Pt.shape == (*shape[:-2], p, n)
    assert np.allclose(Q @ bidiagonal(form) @ Pt, a, atol=unit)
    for whole, part in ((form.form_q(full=True), Q), (form.form_pt(full=True).mT, Pt.mT)):
        order = whole.shape[-2]
        assert whole.shape == (*shape[:-2], order, order) and whole.dtype == dtype
        assert np.allclose(whole.mT @ whole, np.eye(order), atol=unit)
        assert np.allclose(whole[..., :p], part, atol=unit)
    U, S, Vh = form.svd(False)
    reduced = linalg.svd(a, False, device=device, tuning={"stages": 1})
    assert same_bits((U, S, Vh), tuple(reduced))
    assert np.allclose(form.svdvals(), S, atol=unit * 10)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (50, 4), (3, 6, 4)])
def test_products_with_the_factors(shape, device):
    form = linalg.bidiagonalize(matrices(*shape), device=device)
    Q, P = form.form_q(full=True), form.form_pt(full=True).mT
    for whole, apply in ((Q, form.apply_q), (P, form.apply_p)):
        order = whole.shape[-1]
        for x in (matrices(order, 3), matrices(order, 0), matrices(*shape[:-2], order, 2)):
            before = x.copy()
            assert np.allclose(apply(x), whole @ x)
            assert np.allclose(apply(x, transposed=True), whole.mT @ x)
            assert np.array_equal(x, before)
        vector = matrices(order)
        assert np.allclose(apply(vector), whole @ vector)
        assert apply(vector).shape == (*shape[:-2], order)
        assert np.allclose(apply(np.asfortranarray(matrices(order, 5))), whole @ matrices(order, 5))
        assert np.allclose(apply([1] * order), whole.sum(-1))
        assert apply(vector.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize(
    ("x", "error", "match"),
    [
        (np.ones(5), ValueError, r"x has shape \(5,\)"),
        (np.ones((4, 2)), ValueError, r"needs \(6,\) or \(..., 6, c\)"),
        (np.ones((2, 6, 2)), ValueError, "x has shape"),
        (3.0, ValueError, "x has shape"),
        (np.ones(6) * 1j, TypeError, "complex"),
        (["a"] * 6, TypeError, "dtype"),
        (np.ma.masked_array(np.ones(6)), TypeError, "masked"),
    ],
)
def test_wrong_vectors(x, error, match, device):
    form = linalg.bidiagonalize(A, device=device)
    with pytest.raises(error, match=match):
        form.apply_q(x)


def test_a_form_is_asked_several_times(device):
    a = matrices(30, 20)
    form = linalg.bidiagonalize(a, device=device)
    whole = form.svd(full_output=True)[0]
    assert_decomposes(a, *whole)
    for _ in range(2):
        part = form.svd(select="i", select_range=(2, 4))
        assert np.allclose(part.S, whole.S[2:5]) and np.allclose(part.U, whole.U[:, 2:5])
        low, high = (whole.S[5] + whole.S[4]) / 2, (whole.S[2] + whole.S[1]) / 2
        part = form.svd(select="v", select_range=(low, high))
        assert np.allclose(part.S, whole.S[2:5]) and np.allclose(part.Vh, whole.Vh[2:5])
        assert np.allclose(form.svdvals(method="bisect"), whole.S)
    assert "(30, 20)" in repr(form)


def test_threads_take_turns_with_a_form():
    a = matrices(200, 150)
    form = linalg.bidiagonalize(a, device="cpu")
    expected, x = form.svd(), matrices(200, 3)
    product, failed = form.apply_q(x), []

    def work(i):
        for _ in range(5):
            same = same_bits(tuple(form.svd()), tuple(expected)) if i % 2 else True
            if not same or not same_bits(form.apply_q(x), product):
                failed.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_progress_may_not_use_its_own_form():
    form = linalg.bidiagonalize(matrices(300, 300), device="cpu")
    with pytest.raises(RuntimeError, match="progress must not use the Bidiagonalization"):
        form.svd(progress=lambda done: form.svdvals())
    assert form.svdvals().shape == (300,)  # it goes on


def test_a_form_outlives_a_call_that_was_stopped():
    a = matrices(400, 300)
    form = linalg.bidiagonalize(a, device="cpu")

    def stop(done):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            form.svd(progress=stop)
        Q = form.form_q()
        assert np.allclose(Q.T @ Q, np.eye(300))
    assert_decomposes(a, *form.svd())


def test_the_core_refuses_what_python_does_not_give():
    reduction = linalg.bidiagonalize(A)._reduction
    with pytest.raises(TypeError, match="must be Options"):
        reduction.svd(None)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        _core.dense_svd((A,), _core.options())
    with pytest.raises(TypeError, match="tuple"):
        _core.dense_svd(A, _core.options(), -1)
    with pytest.raises(TypeError, match="no option is called 'thread'"):
        _core.options(thread=1)
    with pytest.raises(TypeError, match="by their names"):
        _core.options(True)
    with pytest.raises(ValueError, match="shape"):
        reduction.apply(np.ones((4, 6)), False, False, False)
    with pytest.raises(ValueError, match="C-contiguous"):
        reduction.apply(np.ones((4, 4)).T[::-1], True, False, False)
    with pytest.raises(TypeError, match="dtype"):
        reduction.apply(np.ones((4, 4), np.float32), True, False, False)
    with pytest.raises(TypeError, match="NumPy array"):
        reduction.apply([1.0], True, False, False)
    with pytest.raises(TypeError):
        type(reduction)()


# ---- progress, signals, processes ----


@pytest.mark.parametrize("select", [{}, {"select": "v", "select_range": (1, 20)}])
def test_progress(select, device):
    told = []
    linalg.svd(matrices(700, 600), progress=told.append, device=device, **select)
    assert told == sorted(told) and told[0] >= 0 and told[-1] == 1
    told.clear()
    linalg.bidiagonalize(matrices(700, 600), progress=told.append, device=device)
    assert told == sorted(told) and told[-1] == 1


@pytest.mark.parametrize("function", [linalg.svd, linalg.bidiagonalize])
def test_an_exception_of_progress_stops_the_call(function, device):
    def progress(done):
        raise ZeroDivisionError(str(done))

    with pytest.raises(ZeroDivisionError):
        function(matrices(700, 600), progress=progress, device=device)


@pytest.mark.parametrize("function", ["svd", "bidiagonalize", "inv"])
def test_ctrl_c(function):
    """Ctrl-C stops a running call promptly, and the next call works."""
    program = f"""
import os, signal, threading, time
import numpy as np
from tsvd import linalg

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
a = np.random.default_rng(1).standard_normal((3000, 3000))
pressed = []

def press():
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

linalg.svd(a[:9, :9], device="cpu")  # imports SciPy
timer = threading.Timer(0.2, press)
timer.start()
try:
    linalg.{function}(a, device="cpu")
except KeyboardInterrupt:
    print(time.perf_counter() - pressed[0])
assert list(linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])) == [4, 3]
"""
    assert float(run(program)) < 2.0


def test_a_forked_child_computes():
    program = """
import os, signal, warnings
import numpy as np
from tsvd import linalg

warnings.simplefilter("ignore", DeprecationWarning)
a = np.random.default_rng(1).standard_normal((300, 200))
form = linalg.bidiagonalize(a, device="cpu")
expected = linalg.svd(a, device="cpu").U.tobytes()
child = os.fork()
if child == 0:
    signal.alarm(30)
    again = form.svd().U.tobytes()
    os._exit(0 if again == linalg.svd(a, device="cpu").U.tobytes() == expected else 1)
assert os.waitpid(child, 0)[1] == 0
assert form.svd().U.tobytes() == expected
"""
    run(program, under=("env", "OPENBLAS_NUM_THREADS=1"))


def test_forks_beside_a_bidiagonalization_in_use():
    """The child cannot have what another thread of its parent used: it says so, and never waits."""
    program = """
import os, signal, threading, warnings
import numpy as np
from tsvd import linalg

warnings.simplefilter("ignore", DeprecationWarning)
form = linalg.bidiagonalize(np.random.default_rng(0).standard_normal((60, 50)), device="cpu")
x, stop = np.ones((60, 3)), False

def work():
    while not stop:
        form.apply_q(x)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
refused = 0
for _ in range(300):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            form.apply_q(x)
        except RuntimeError as error:
            os._exit(3 if "when the process was forked" in str(error) else 1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 3), status
    refused += status == 3
stop = True
for thread in threads:
    thread.join()
assert refused
form.apply_q(x)
"""
    run(program, under=("env", "OPENBLAS_NUM_THREADS=1"))


def test_without_scipy():
    program = """
import sys
import numpy as np
import tsvd
from tsvd import linalg

assert "scipy" not in sys.modules
assert tsvd.linalg is linalg
sys.modules["scipy"] = None
assert np.isclose(linalg.svd(np.ones((3, 3)), device="cpu").S[0], 3)  # small ones need none
for function in (linalg.svd, linalg.svdvals, linalg.bidiagonalize):
    try:
        function(np.ones((33, 33)), device="cpu")
    except ModuleNotFoundError as error:
        assert "need the BLAS of SciPy on the CPU: pip install scipy" in str(error), error
    else:
        raise AssertionError(function)
"""
    run(program)


# ---- arrays of other libraries, on the host ----


def test_dlpack_on_the_host():
    from testing.exporters import Array

    a = matrices(7, 5)
    expected = linalg.svd(a)
    result = linalg.svd(Array(a))
    assert all(type(x) is Array for x in result)
    assert same_bits(tuple(x.array for x in result), tuple(expected))
    assert type(linalg.svdvals(Array(a, readonly=True, version=(1, 0)))) is Array
    form = linalg.bidiagonalize(Array(a))
    assert type(form.d) is type(form.form_q()) is type(form.svd().U) is Array
    assert type(form.apply_q(Array(np.ones((7, 2))))) is Array
    assert type(form.apply_q(np.ones((7, 2)))) is np.ndarray
    assert linalg.svd(Array(a.astype("F"))).U.array.dtype == np.complex64
    with pytest.raises(TypeError, match="a has dtype"):
        linalg.svd(Array(a.astype("e")))


def test_torch_on_the_host():
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(matrices(7, 5))
    result, expected = linalg.svd(a), linalg.svd(a.numpy())
    assert all(type(x) is torch.Tensor for x in result)
    assert same_bits(tuple(x.numpy() for x in result), tuple(expected))
    out = tuple(torch.empty_like(x) for x in result)
    filled = linalg.svd(a, out=out)
    assert filled.U is out[0] and all(map(torch.equal, filled, result))
    s = torch.from_numpy(linalg.svdvals(a.numpy()))
    assert torch.equal(linalg.svdvals(a.mT.contiguous().mT), s)
    with pytest.raises(ValueError, match=r"a is a tensor that requires grad: tsvd\.torch\.linalg"):
        linalg.svd(a.clone().requires_grad_())
    assert linalg.svd(a + 0j).U.dtype == torch.complex128


def test_an_interval_that_begins_just_below_zero_has_the_zeros():
    low = -np.finfo(np.float64).smallest_subnormal
    S = linalg.svdvals(np.diag([4.0, 0.0]), select="v", select_range=(low, 10), device="cpu")
    assert S.tolist() == [4.0, 0.0]


@pytest.mark.parametrize("n", [30, 100, 150])
def test_bits_depend_neither_on_threads_nor_on_the_batch(n):
    a = np.random.default_rng(n).standard_normal((2, n, n))
    first, second = (linalg.svd(a, device="cpu", threads=t) for t in (1, 2))
    alone = linalg.svd(a[1], device="cpu")
    for x, y, z in zip(first, second, alone, strict=True):
        assert np.array_equal(x, y) and np.array_equal(x[1], z)


def test_threads_of_a_form():
    """A form works with the threads that it was made with, whatever a call before asked for."""
    program = """
import os
import numpy as np
from tsvd import linalg

a = np.random.default_rng(0).standard_normal((700, 600))
form = linalg.bidiagonalize(a, device="cpu", threads=1)
before = len(os.listdir("/proc/self/task"))
first = form.svd(), form.svdvals(), form.form_q()
assert len(os.listdir("/proc/self/task")) == before
again = form.svd(threads=2), form.svdvals(threads=2), form.form_q()
for one, other in zip(first[0], again[0]):
    assert np.array_equal(one, other)
assert np.array_equal(first[1], again[1]) and np.array_equal(first[2], again[2])
"""
    run(program)
