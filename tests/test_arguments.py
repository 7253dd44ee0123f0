"""Input and results: types, strides, batches, out=, options, and every error."""

import gc
import re
import sys

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, case, same_bits
from testing.families import make, stack
from testing.measures import BOUNDS, residual
from testing.processes import run

D, E = np.array([3.0, 1.0, 4.0, 1.5]), np.array([0.5, -2.0, 0.25])


def decompose(d, e, **options):
    return tuple(tsvd.svd(d, e, **options))


# ---- results ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
def test_shapes_types_and_order_of_the_results(n, dtype, device):
    d, e, _ = case("normal", n, dtype)
    result = tsvd.svd(d, e, device=device)
    assert isinstance(result, tsvd.SVDResult) and isinstance(result, tuple)
    assert result._fields == ("U", "S", "Vh")
    assert result.L is result.U and result.s is result.S and result.R is result.Vh
    L, s, R = result
    assert L.shape == R.shape == (n, n) and s.shape == (n,)
    for array in result:
        assert array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable
        assert array.flags.owndata or array.base is not None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
def test_shape_and_type_of_values(n, dtype, values_device):
    d, e, _ = case("normal", n, dtype)
    s = tsvd.svdvals(d, e, device=values_device)
    assert s.shape == (n,) and s.dtype == dtype


@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens"])
def test_values_alone(method, values_device):
    d, e, _ = case("normal", 20, np.float64)
    s = tsvd.svd(d, e, compute_uv=False, method=method, device=values_device)
    assert isinstance(s, np.ndarray) and s.shape == (20,)
    assert same_bits(s, tsvd.svdvals(d, e, method=method, device=values_device))


def test_bisect_has_values_only(values_device):
    s = tsvd.svd(D, E, compute_uv=False, method="bisect", device=values_device)
    assert same_bits(s, tsvd.svdvals(D, E, method="bisect", device=values_device))
    with pytest.raises(ValueError, match="bisect"):
        tsvd.svd(D, E, method="bisect", device=values_device)


def test_order_one(device):
    L, s, R = tsvd.svd([-2.0], [], device=device)
    assert (L[0, 0], s[0], R[0, 0]) == (1, 2, -1)
    L, s, R = tsvd.svd([0.0], [], device=device)
    assert (L[0, 0], s[0]) == (1, 0) and abs(R[0, 0]) == 1


@pytest.mark.parametrize("method", ["qr", "givens", "auto"])
def test_full_output(method, device):
    result, info = tsvd.svd(D, E, method=method, device=device, full_output=True)
    assert isinstance(result, tsvd.SVDResult) and isinstance(info, tsvd.SVDInfo)
    assert same_bits(tuple(result), decompose(D, E, method=method, device=device))
    assert info.method == method or method == "auto"
    assert info.method in {"qr", "givens", "dc", "twisted"} and str(info.device).startswith(device)
    for count in (info.sweeps, info.iterations, info.rotations):
        assert isinstance(count, int) and count >= (info.method in {"qr", "givens"})
    assert isinstance(info.deflated, int) and info.deflated >= 0
    assert info.seconds and all(0 <= t < 60 for t in info.seconds.values())


@pytest.mark.parametrize("method", ["qr", "givens", "bisect", "auto"])
def test_full_output_of_values(method, values_device):
    s, info = tsvd.svd(
        D, E, method=method, compute_uv=False, full_output=True, device=values_device
    )
    assert s.shape == (4,) and isinstance(info, tsvd.SVDInfo)


@pytest.mark.parametrize("dtype", DTYPES)
def test_out(dtype, device):
    d, e = D.astype(dtype), E.astype(dtype)
    out = np.full((4, 4), 7, dtype), np.full(4, 7, dtype), np.full((4, 4), 7, dtype)
    result = tsvd.svd(d, e, out=out, device=device)
    assert all(given is filled for given, filled in zip(out, result, strict=True))
    assert same_bits(out, decompose(d, e, device=device))


def test_out_of_a_batch(device):
    d = np.arange(1.0, 13).reshape(3, 4)
    out = np.empty((3, 4, 4)), np.empty((3, 4)), np.empty((3, 4, 4))
    tsvd.svd(d, E, out=out, device=device)
    assert same_bits(out, decompose(d, E, device=device))


# ---- inputs ----


def spread(x, step):
    """Puts x into every step-th entry of a larger array; a negative step starts at its end."""
    room = np.full(abs(step) * x.size + 1, np.nan, x.dtype)
    view = room[::step][: x.size]
    view[:] = x
    return view


INPUTS = {
    "contiguous": lambda x: x,
    "list": lambda x: x.tolist(),
    "every second": lambda x: spread(x, 2),
    "every seventh": lambda x: spread(x, 7),
    "from the end": lambda x: spread(x, -1),
    "every third from the end": lambda x: spread(x, -3),
    "a column": lambda x: np.stack([x, x + 1], axis=1)[:, 0],
    "a diagonal": lambda x: np.diagonal(np.diag(x)),
    "an upper diagonal": lambda x: np.diagonal(np.diag(x, 1), 1),
    "a field": lambda x: np.rec.fromarrays([np.zeros(x.size, np.int8), x])["f1"],
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "memoryview": lambda x: memoryview(np.ascontiguousarray(x)),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1),
    "an array subclass": lambda x: x.view(type("Sub", (np.ndarray,), {})),
}


every_layout = pytest.mark.parametrize("layout", INPUTS)


def check_layout(layout, dtype, call):
    """call(d, e), a tuple of results, does not depend on the layout of d and e."""
    d, e, _ = case("normal", 33, dtype)
    expected = call(d, e)
    if layout == "list":  # a list of Python floats is float64
        expected = call(d.astype(float), e.astype(float))
    d_in, e_in = INPUTS[layout](d), INPUTS[layout](e)
    for array in (d_in, e_in):
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    assert same_bits(call(d_in, e_in), expected)
    assert np.array_equal(d_in, d) and np.array_equal(e_in, e)


@every_layout
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["auto", "dc", "givens"])
def test_inputs_are_read_in_place_and_never_written(layout, dtype, method, device):
    options = {"method": method, "eps": 1e-5, "device": device}
    check_layout(layout, dtype, lambda d, e: decompose(d, e, **options))


@every_layout
@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_of_svdvals_are_read_in_place_and_never_written(layout, dtype, values_device):
    options = {"method": "bisect", "device": values_device}
    check_layout(layout, dtype, lambda d, e: (tsvd.svdvals(d, e, **options),))


def test_one_number_for_all(device):
    """The stride is 0."""
    d, e = np.broadcast_to(2.0, 9), np.broadcast_to(1.0, 8)
    assert same_bits(decompose(d, e, device=device), decompose(d.copy(), e.copy(), device=device))


@pytest.mark.parametrize("kind", [*"bBhHiIlLqQ?"])
def test_integers_and_bool_become_float64(kind, device):
    d, e = np.array([3, 1, 4, 1]).astype(kind), np.array([1, 0, 1]).astype(kind)
    result = decompose(d, e, device=device)
    assert same_bits(result, decompose(d.astype(float), e.astype(float), device=device))


@pytest.mark.parametrize("wide", [np.float64, np.int64, np.bool_])
def test_mixed_types_go_to_the_wider(wide, device):
    """float32 with an integer type: the integers become float64, and so does the result."""
    d, e = np.array([3, 1, 1], np.float32), np.array([1, 0]).astype(wide)
    expected = decompose(d.astype(float), e.astype(float), device=device)
    assert same_bits(decompose(d, e, device=device), expected)
    d, e = np.array([1, 0, 1]).astype(wide), np.array([3, 1], np.float32)
    expected = decompose(d.astype(float), e.astype(float), device=device)
    assert same_bits(decompose(d, e, device=device), expected)


# ---- batches ----


every_batch = pytest.mark.parametrize(
    ("d_shape", "e_shape"),
    [
        ((6, 5), (6, 4)),
        ((2, 3, 5), (2, 3, 4)),
        ((3, 1, 5), (2, 4)),
        ((5,), (4, 4)),
        ((4, 5), (4,)),
        ((1, 5), (3, 4)),
        ((2, 1, 3, 5), (4, 1, 4)),
        ((7, 1), (7, 0)),
        ((7, 2), (7, 1)),
    ],
)


def random_batch(d_shape, e_shape, dtype):
    """Returns d and e of these shapes, the shape of the batch, and both broadcast to it."""
    rng = np.random.default_rng(3)
    d, e = rng.random(d_shape).astype(dtype), rng.random(e_shape).astype(dtype)
    batch, n = np.broadcast_shapes(d_shape[:-1], e_shape[:-1]), d_shape[-1]
    return d, e, batch, np.broadcast_to(d, (*batch, n)), np.broadcast_to(e, (*batch, n - 1))


@every_batch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["auto", "dc", "givens"])
def test_batch_equals_loop(d_shape, e_shape, dtype, method, device):
    d, e, batch, d_all, e_all = random_batch(d_shape, e_shape, dtype)
    options = {"method": method, "device": device, "eps": 1e-4}
    L, s, R = tsvd.svd(d, e, **options)
    n = d_shape[-1]
    assert L.shape == R.shape == (*batch, n, n) and s.shape == (*batch, n)
    for i in np.ndindex(batch):
        alone = decompose(d_all[i], e_all[i], **options)
        assert same_bits((L[i].copy(), s[i].copy(), R[i].copy()), alone), i


@every_batch
@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_of_values_equals_loop(d_shape, e_shape, dtype, values_device):
    d, e, batch, d_all, e_all = random_batch(d_shape, e_shape, dtype)
    options = {"method": "bisect", "device": values_device}
    s = tsvd.svdvals(d, e, **options)
    assert s.shape == (*batch, d_shape[-1])
    for i in np.ndindex(batch):
        assert same_bits(s[i].copy(), tsvd.svdvals(d_all[i], e_all[i], **options)), i


@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens"])
def test_large_batch_of_small_matrices(method, device):
    rng = np.random.default_rng(4)
    d, e = rng.standard_normal((500, 8)), rng.standard_normal((500, 7))
    options = {"method": method, "eps": 1e-6, "device": device}
    loop = [decompose(*pair, **options) for pair in zip(d, e, strict=True)]
    expected = tuple(np.stack(part) for part in zip(*loop, strict=True))
    assert same_bits(decompose(d, e, **options), expected)


def test_large_batch_of_values(values_device):
    rng = np.random.default_rng(4)
    d, e = rng.standard_normal((500, 8)), rng.standard_normal((500, 7))
    options = {"method": "bisect", "device": values_device}
    loop = [tsvd.svdvals(*pair, **options) for pair in zip(d, e, strict=True)]
    assert same_bits(tsvd.svdvals(d, e, **options), np.stack(loop))


EMPTY = [(0, 5), (3, 0), (2, 0, 5), (0, 0)]


@pytest.mark.parametrize("shape", EMPTY)
def test_empty_batches(shape, device):
    d, e = np.zeros(shape), np.zeros((*shape[:-1], max(shape[-1] - 1, 0)))
    L, s, R = tsvd.svd(d, e, device=device)
    assert L.shape == R.shape == (*shape, shape[-1]) and s.shape == shape


@pytest.mark.parametrize("shape", EMPTY)
def test_empty_batches_of_values(shape, values_device):
    d, e = np.zeros(shape), np.zeros((*shape[:-1], max(shape[-1] - 1, 0)))
    assert tsvd.svdvals(d, e, device=values_device).shape == shape


@pytest.mark.parametrize("shape", [(2**40, 0), (2**59, 0), (0, 2**33, 5)])
def test_empty_batches_of_huge_shapes(shape, device):
    d, e = np.empty(shape), np.empty((*shape[:-1], max(shape[-1] - 1, 0)))
    for method in ("auto", "dc", "qr", "givens", "twisted"):
        L, s, R = tsvd.svd(d, e, method=method, device=device)
        assert L.shape == R.shape == (*shape, shape[-1]) and s.shape == shape
    for method in ("auto", "bisect", "qr"):
        assert tsvd.svdvals(d, e, method=method, device=device).shape == shape


def test_transposed_batch(device):
    """The batch runs along the last axis in memory."""
    rng = np.random.default_rng(6)
    d, e = rng.random((5, 9)).T, rng.random((4, 9)).T
    assert same_bits(decompose(d, e, device=device), decompose(d.copy(), e.copy(), device=device))


def test_an_error_names_the_matrix_of_the_batch(device):
    d = np.ones((3, 2, 4))
    d[2, 1, 3] = np.nan
    with pytest.raises(ValueError, match="5"):
        tsvd.svd(d, E, device=device)


# ---- errors ----

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("function", [tsvd.svd, tsvd.svdvals])
@pytest.mark.parametrize(
    ("d", "e"),
    [
        (np.ones(4), np.ones(5)),
        (np.ones(4), np.ones(2)),
        (np.ones(1), np.ones(2)),
        (np.ones(0), np.ones(1)),
        (np.float64(1), np.ones(0)),
        (np.ones(1), np.float64(1)),
        (np.ones((2, 4)), np.ones((3, 3))),
        (np.ones((2, 2, 4)), np.ones((3, 1, 3))),
        (np.ones((0, 4)), np.ones((2, 3))),
        ([[1.0, 2.0], [3.0]], [1.0]),
    ],
)
def test_wrong_shapes(function, d, e, device):
    with pytest.raises(ValueError):
        function(d, e, device=device)


@pytest.mark.parametrize("function", [tsvd.svd, tsvd.svdvals])
@pytest.mark.parametrize(
    "kind", [np.complex128, np.complex64, np.float16, np.longdouble, object, "S3", "U3", "M8[s]"]
)
def test_wrong_types(function, kind, device):
    wrong_d, wrong_e = np.array([1, 0, 1, 1]).astype(kind), np.array([1, 0, 1]).astype(kind)
    with pytest.raises(TypeError):
        function(wrong_d, E, device=device)
    with pytest.raises(TypeError):
        function(D, wrong_e, device=device)


@pytest.mark.parametrize("d", [None, "abc", {}, object()])
def test_what_is_no_array(d, device):
    with pytest.raises((TypeError, ValueError)):
        tsvd.svd(d, [], device=device)


every_bad = pytest.mark.parametrize("bad", [NAN, INF, -INF])


def spoiled(bad, n, dtype):
    """Matrices of order n with one bad entry."""
    for i in range(2 * n - 1):
        if i in {0, n // 2, n - 1, n, n + (n - 1) // 2, 2 * n - 2}:
            entries = np.ones(2 * n - 1, dtype)
            entries[i] = bad
            yield entries[:n], entries[n:]


@every_bad
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_nan_and_infinity_are_refused(bad, dtype, n, device):
    for d, e in spoiled(bad, n, dtype):
        for method in ("auto", "dc", "qr", "givens"):
            with pytest.raises(ValueError, match=r"(?i)nan|inf|finite"):
                tsvd.svd(d, e, method=method, device=device)


@every_bad
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_svdvals_refuses_nan_and_infinity(bad, dtype, n, values_device):
    for d, e in spoiled(bad, n, dtype):
        for method in ("auto", "bisect"):
            with pytest.raises(ValueError, match=r"(?i)nan|inf|finite"):
                tsvd.svdvals(d, e, method=method, device=values_device)


def batch_with_one_bad(bad, n):
    d, e = np.ones((3, n)), np.ones((3, n - 1))
    d[1, n // 2] = bad
    return d, e


@every_bad
@pytest.mark.parametrize("n", [1, 2, 40])
def test_unchecked_nan_and_infinity_give_nan(bad, n, device):
    """With check_finite=False a bad matrix gives NaN, without a hang. The others are right."""
    d, e = batch_with_one_bad(bad, n)
    for method in ("auto", "dc", "qr", "givens"):
        L, s, R = tsvd.svd(d, e, method=method, eps=1e-2, check_finite=False, device=device)
        assert np.isnan(L[1]).all() and np.isnan(s[1]).all() and np.isnan(R[1]).all()
        assert np.isfinite(s[[0, 2]]).all() and np.isfinite(L[[0, 2]]).all()


@every_bad
@pytest.mark.parametrize("n", [1, 2, 40])
def test_unchecked_nan_and_infinity_give_values_nan(bad, n, values_device):
    d, e = batch_with_one_bad(bad, n)
    for method in ("auto", "qr", "bisect"):
        s = tsvd.svdvals(d, e, method=method, check_finite=False, device=values_device)
        assert np.isnan(s[1]).all() and np.isfinite(s[[0, 2]]).all()


def test_check_finite_changes_nothing_else(device):
    d, e, _ = case("normal", 33, np.float64)
    unchecked = decompose(d, e, check_finite=False, device=device)
    assert same_bits(unchecked, decompose(d, e, device=device))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "jacobi"}, ValueError, "jacobi"),
        ({"method": "QR"}, ValueError, "QR"),
        ({"method": ""}, ValueError, "method"),
        ({"method": None}, (TypeError, ValueError), "method"),
        ({"method": 2}, (TypeError, ValueError), "method"),
        ({"eps": -1e-8}, ValueError, "eps"),
        ({"eps": NAN}, ValueError, "eps"),
        ({"eps": INF}, ValueError, "eps"),
        ({"eps": "small"}, TypeError, "eps"),
        ({"eps": 1j}, TypeError, "eps"),
        ({"eps": [1.0]}, TypeError, "eps"),
        ({"eps": 10**400}, ValueError, "eps"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps"),
        ({"max_sweeps": -3}, ValueError, "max_sweeps"),
        ({"max_sweeps": 2.5}, TypeError, None),
        ({"device": "gpu"}, ValueError, "gpu"),
        ({"device": "cpu:1"}, ValueError, "cpu:1"),
        ({"device": "cuda:x"}, ValueError, "cuda:x"),
        ({"device": -1}, ValueError, "device"),
        ({"device": 1.5}, (TypeError, ValueError), "device"),
        ({"threads": 0}, ValueError, "threads"),
        ({"threads": -1}, ValueError, "threads"),
        ({"threads": 1.5}, TypeError, "threads"),
        ({"threads": 2**31}, ValueError, "threads"),
        ({"tuning": {"bloks": 3}}, ValueError, "bloks"),
        ({"tuning": {"blocks": 0}}, ValueError, "blocks"),
        ({"tuning": {"blocks": -1}}, ValueError, "blocks"),
        ({"tuning": {"blocks": "3"}}, (TypeError, ValueError), "blocks"),
        ({"tuning": 3}, TypeError, "tuning"),
        ({"progress": 3}, TypeError, "progress"),
        ({"out": 3}, TypeError, "out"),
        ({"out": (np.zeros((4, 4)), np.zeros(4))}, TypeError, "out"),
        ({"out": (None, None, None)}, TypeError, "L"),
        ({"unknown": 1}, TypeError, "unknown"),
    ],
)
def test_wrong_options(options, error, match):
    with pytest.raises(error, match=match):
        tsvd.svd(D, E, **options)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_stream_needs_a_cuda_device(device):
    with pytest.raises(ValueError, match="stream needs a CUDA device"):
        tsvd.svd(D, E, device=device, stream=7)


RANGE = "select_range"


@pytest.mark.parametrize(
    ("select", "select_range", "error", "match"),
    [
        ("x", (0, 1), ValueError, "select .*'x'"),
        (None, (0, 1), ValueError, "select .*None"),
        (["i"], (0, 1), ValueError, "select .*'i'"),
        ("a", (0, 1), ValueError, RANGE),
        ("i", None, ValueError, RANGE),
        ("v", None, ValueError, RANGE),
        ("i", 3, TypeError, RANGE),
        ("v", 3, TypeError, RANGE),
        ("i", (1,), TypeError, RANGE),
        ("v", (0, 1, 2), TypeError, RANGE),
        ("i", (1.0, 2), TypeError, rf"integers.*{RANGE}|{RANGE}.*integers"),
        ("i", (0, "1"), TypeError, RANGE),
        ("i", (0, None), TypeError, RANGE),
        ("i", (-1, 2), ValueError, RANGE),
        ("i", (-2, -1), ValueError, RANGE),
        ("i", (2, 1), ValueError, RANGE),
        ("i", (0, 4), ValueError, rf"{RANGE}=\(0, 4\).* 4"),
        ("i", (4, 4), ValueError, RANGE),
        ("i", (0, 2**63 - 2), ValueError, RANGE),
        ("i", (2**63 - 2, 2**63 - 2), ValueError, RANGE),
        ("i", (0, 10**30), ValueError, RANGE),
        ("v", (1, 1), ValueError, RANGE),
        ("v", (2, 1), ValueError, RANGE),
        ("v", (NAN, 1), ValueError, RANGE),
        ("v", (0, NAN), ValueError, RANGE),
        ("v", (INF, INF), ValueError, RANGE),
        ("v", ("0", 1), TypeError, f"min of {RANGE}"),
        ("v", (0, 1j), TypeError, f"max of {RANGE}"),
        ("v", (0, None), TypeError, f"max of {RANGE}"),
        ("v", (0, [1, 2]), TypeError, f"max of {RANGE}"),
    ],
)
def test_wrong_select(select, select_range, error, match, device):
    for function in (tsvd.svd, tsvd.svdvals):
        with pytest.raises(error, match=match):
            function(D, E, select=select, select_range=select_range, device=device)


def test_no_index_is_in_range_of_nothing(device):
    with pytest.raises(ValueError, match=RANGE):
        tsvd.svd([], [], select="i", select_range=(0, 0), device=device)


@pytest.mark.parametrize("method", ["qr", "givens"])
def test_vectors_of_a_part_need_dc(method, device):
    options = {"select": "i", "method": method, "device": device}
    with pytest.raises(ValueError, match=f'{method}.*"dc" or "auto"'):
        tsvd.svd(D, E, select_range=(0, 1), **options)
    L, s, R = tsvd.svd(D, E, select_range=(0, 3), **options)
    assert L.shape == R.shape == (4, 4) and s.shape == (4,)


@pytest.mark.parametrize("shape", [(1, 4), (3, 4), (0, 4), (2, 2, 4)])
def test_an_interval_is_for_one_matrix(shape, device):
    """A batch of one matrix is refused too: the next call may have more."""
    for function in (tsvd.svd, tsvd.svdvals):
        for d, e in ((np.ones(shape), E), (D, np.ones((*shape[:-1], 3)))):
            with pytest.raises(ValueError, match=r'select="v".*each matrix of a batch'):
                function(d, e, select="v", select_range=(0, 1), device=device)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.longdouble, np.bool_])
def test_numpy_numbers_as_bounds(kind):
    s = tsvd.svdvals(D, E, select="v", select_range=(kind(0), kind(1)))
    assert same_bits(s, tsvd.svdvals(D, E, select="v", select_range=(0.0, 1.0)))
    if np.issubdtype(kind, np.integer):
        s = tsvd.svdvals(D, E, select="i", select_range=(kind(0), kind(1)))
        assert same_bits(s, tsvd.svdvals(D, E)[:2])


@pytest.mark.parametrize("method", ["qr", "givens"])
def test_no_convergence_says_after_how_many_sweeps(method, device):
    with pytest.raises(np.linalg.LinAlgError, match=r"\d+ .*sweeps.*max_sweeps"):
        tsvd.svd(np.ones(100), np.ones(99), method=method, max_sweeps=1, device=device)


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda x: x.astype(np.float32), TypeError),
        (lambda x: x.astype(complex), TypeError),
        (lambda x: x.tolist(), TypeError),
        (lambda x: x[..., :-1], ValueError),
        (lambda x: x[None], ValueError),
        (lambda x: np.repeat(x, 2, axis=-1)[..., ::2], ValueError),
        (lambda x: x[..., ::-1], ValueError),
        (lambda x: x.astype(x.dtype.newbyteorder()), (TypeError, ValueError)),
        (lambda x: np.broadcast_to(x, x.shape), ValueError),
    ],
    ids=[
        "float32", "complex", "list", "short", "one more dimension", "strided", "reversed",
        "byte-swapped", "read-only",
    ],
)  # fmt: skip
def test_wrong_out(position, spoil, error):
    out = [np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4))]
    out[position] = spoil(out[position])
    with pytest.raises(error, match="out"):
        tsvd.svd(D, E, out=tuple(out))


def test_out_may_not_overlap():
    L, s, R = np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4))
    d = D.copy()
    for out in ((L, s, L), (L, L[0], R), (L, d, R)):
        with pytest.raises(ValueError, match="overlap"):
            tsvd.svd(d, E, out=out)
    assert np.array_equal(d, D)


def test_cuda_where_there_is_none():
    """device="cuda" says why it cannot be used."""
    if any("cuda" in str(device).lower() for device in tsvd.devices()):
        pytest.skip("a CUDA device is usable")
    for name in ("cuda", "cuda:0", 0):
        with pytest.raises(RuntimeError, match=r"(?i)cuda"):
            tsvd.svd(D, E, device=name)


@pytest.mark.parametrize(
    ("method", "arrays", "k", "what"),
    [
        ("qr", 0, 10**7, "L and R"),
        ("dc", 4, 10**7, "and the workspace"),
        ("dc", 6, 3, "and the workspace"),
        (None, 0, 2**55, "results, s"),
    ],
)
def test_too_large_for_memory(method, arrays, k, what):
    """The error comes before any work, and has the number of bytes: n x n arrays and O(n) work."""
    n = 10**7 if method else 2**55
    d, e = np.broadcast_to(1.0, n), np.broadcast_to(0.5, n - 1)
    options = {"method": method} if method else {"compute_uv": False}
    if k < n:
        options |= {"select": "i", "select_range": (1, k)}
    wanted = 8 * (arrays * n * n + (2 * n * k if method else 0) + k)
    with pytest.raises(MemoryError, match=rf"{what}.* \d+ bytes.*\d+ bytes") as caught:
        tsvd.svd(d, e, device="cpu", **options)
    told = int(re.search(r"(\d+) bytes;", str(caught.value))[1])
    assert wanted < told <= wanted + 20_000 * n


@pytest.mark.parametrize("dtype", DTYPES)
def test_too_large_a_batch_for_memory(dtype):
    d = np.broadcast_to(dtype(1), (2**40, 100))
    with pytest.raises(MemoryError, match=r"\d+ bytes"):
        tsvd.svd(d, np.ones(99, dtype))


RESHAPE = """
import sys
import numpy as np
import tsvd

n = 601
rng = np.random.default_rng(5)
D, E = rng.integers(1, 9, n), rng.random(n - 1)
expected = tsvd.svd(D, E, device="cpu", method="qr").s
d, e = D.copy(), E.copy()
out = [np.empty((n, n)), np.empty(n), np.empty((n, n))]
"""


def test_another_shape_within_the_call():
    """Code that runs within the call, as another thread's may, gives d, e and out other shapes in
    place: the call goes on with those that it has read."""
    program = (
        RESHAPE
        + """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("scipy"):
            d.shape = (n,) + (1,) * 63
            e.shape = (1,) * 63 + (n - 1,)
            d.dtype = np.float64

sys.meta_path.insert(0, Finder())
result = tsvd.svd(d, e, out=tuple(out), device="cpu", method="dc")
assert d.ndim == e.ndim == 64, "no import"
assert np.allclose(result.s, expected, rtol=1e-12)
"""
    )
    run(program)


def test_another_shape_by_the_conversion_of_the_other_argument():
    program = (
        RESHAPE
        + """
class Other:
    def __array__(self, *args, **kwargs):
        d.shape = (1, n)
        d.dtype = np.float64
        return e

result = tsvd.svd(d, Other(), device="cpu", method="qr")
assert result.s.shape == (1, n)
"""
    )
    run(program)


def test_memory_that_the_system_does_not_give():
    """Also where more is free, the error has the number of bytes."""
    program = """
import resource
import numpy as np
import tsvd

n = 3000
for d, least in ((np.ones(n), 8 * n * n), (np.broadcast_to(np.int32(1), (n, n)), 8 * n * n)):
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + least // 2, resource.RLIM_INFINITY))
    try:
        tsvd.svd(d, np.ones(n - 1), device="cpu", compute_uv=d.ndim == 1, method="qr")
    except MemoryError as error:
        print(error)
    else:
        raise AssertionError(least)
"""
    for line in run(program, under=("env", "OPENBLAS_NUM_THREADS=1")).splitlines():
        assert re.search(r"72000000 bytes.*\d+ bytes are free", line), line


@pytest.mark.parametrize("order", [2**k // part for k in (40, 50, 57, 60) for part in (1, 57)])
@pytest.mark.parametrize("method", ["auto", "qr", "givens", "bisect"])
def test_sizes_do_not_wrap(order, method):
    """Arrays of zero strides take no memory, whatever their order."""
    one = np.float32(1)  # NumPy has no larger arrays of it
    d, e = np.broadcast_to(one, order), np.broadcast_to(one, order - 1)
    told = r"\d+ bytes.*\d+ bytes"
    for options in ({}, {"select": "v", "select_range": (0, 1)}):
        if method in ("auto", "bisect") or not options:
            with pytest.raises(MemoryError, match=told):
                tsvd.svdvals(d, e, method=method, device="cpu", **options)
    if method != "bisect":
        with pytest.raises(MemoryError, match=told):
            tsvd.svd(d, e, method=method, device="cpu")


# ---- references and memory ----


def test_reference_counts():
    """No call keeps or loses a reference, also if it fails."""
    d, e, out = D.copy(), E.copy(), (np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4)))
    bad = np.array([1.0, NAN, 1.0, 1.0])

    def progress(done):
        pass

    watched = (d, e, bad, out, *out, progress, np.dtype(float), np.dtype(np.float32))
    gc.collect()  # what earlier tests left counts for dtypes
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(1000):
        tsvd.svd(d, e, out=out, progress=progress)
        tsvd.svd(d, e, full_output=True)
        tsvd.svdvals(d, e)
        for wrong in ((bad, e), (d, d), (d, e.astype(complex))):
            with pytest.raises((ValueError, TypeError)):
                tsvd.svd(*wrong, out=out)
    gc.collect()
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(b - a) < 10 for a, b in zip(before, after, strict=True)), (before, after)


def test_results_do_not_share_memory(device):
    first, second = tsvd.svd(D, E, device=device), tsvd.svd(D, E, device=device)
    arrays = (*first, *second)
    for i, a in enumerate(arrays):
        for b in arrays[i + 1 :]:
            assert not np.shares_memory(a, b)


def test_a_batch_of_different_matrices_is_right(device):
    d, e = stack(make(family, 33) for family in ("graded_up", "chi", "zero", "denormal"))
    for one in zip(d, e, *tsvd.svd(d, e, device=device), strict=True):
        assert residual(*one) <= BOUNDS["residual"](33)


# ---- what is likely meant ----


@pytest.mark.parametrize(
    ("d", "e", "advice"),
    [
        (np.ones(5), np.ones(6), "swapped"),
        (np.ones((2, 5)), np.ones((2, 9)), "swapped"),
        (np.ones((5, 1)), np.ones((4, 1)), "ravel"),
        (np.ones((5, 1)), np.ones(4), "ravel"),
        (np.ones(5), np.ones((4, 1)), "ravel"),
    ],
)
def test_advice_on_shapes(d, e, advice):
    for function in (tsvd.svd, tsvd.svdvals):
        with pytest.raises(ValueError, match=advice):
            function(d, e)


# ---- values into an array of the caller ----


@pytest.mark.parametrize("shape", [(7,), (3, 7)])
def test_values_into_out(shape, values_device):
    rng = np.random.default_rng(0)
    d, e = rng.random(shape), rng.random((*shape[:-1], shape[-1] - 1))
    expected = tsvd.svdvals(d, e, device=values_device)
    out = np.empty(shape)
    done = []
    options = {"device": values_device, "progress": done.append, "threads": 2, "tuning": {}}
    assert tsvd.svdvals(d, e, out=out, **options) is out and done[-1] == 1
    assert np.array_equal(out, expected)
    out[:] = 0
    assert tsvd.svd(d, e, compute_uv=False, out=out, device=values_device) is out
    assert np.array_equal(out, expected)
    with pytest.raises(ValueError, match="overlap"):
        tsvd.svdvals(d, e, out=d, device=values_device)
    for wrong in (np.empty(shape, np.float32), np.empty((*shape, 1)), np.empty(3 * shape[0])[::3]):
        with pytest.raises((TypeError, ValueError), match="out"):
            tsvd.svdvals(d, e, out=wrong, device=values_device)
    with pytest.raises(TypeError, match="s must be a NumPy array"):
        tsvd.svdvals(d, e, out=(out, out, out), device=values_device)
