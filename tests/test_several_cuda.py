"""One call on two GPUs: the bits of one, arrays of the libraries, failures."""

import contextlib

import numpy as np
import pytest

import tsvd
from tsvd import _core, _several, linalg

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.two_gpus,
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.filterwarnings("default"),  # the libraries warn of what is no matter here
]

BOTH = [0, 1]
FAMILIES = ("normal", "toeplitz", "chi", "graded", "glued", "zeros", "constant")


@pytest.fixture(autouse=True)
def all_is_shared_out(monkeypatch):
    for name in ("_BATCH_LEAST", "_VECTORS_LEAST", "_VALUES_LEAST"):
        monkeypatch.setattr(_several, name, 1)


def bidiagonal(family, n, rng):
    d, e = rng.standard_normal(n), rng.standard_normal(n - 1)
    if family == "toeplitz":
        d, e = np.full(n, 2.0), np.full(n - 1, 1.0)
    elif family == "chi":
        d, e = (np.sqrt(rng.chisquare(np.arange(k, 0, -1.0))) for k in (n, n - 1))
    elif family == "graded":
        d, e = d * np.logspace(0, -12, n), e * np.logspace(0, -12, n)[:-1]
    elif family == "glued":
        d, e = np.ones(n), np.ones(n - 1)
        e[::17] = 1e-8
    elif family == "zeros":
        d[rng.random(n) < 0.1] = 0
        e[rng.random(n - 1) < 0.1] = 0
    elif family == "constant":
        d, e = np.ones(n), np.zeros(n - 1)
    return d, e


def same(result, expected):
    for x, y in zip(result, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def agree(method, result, expected):
    """The same bits; by "dc" up to the order of sums, which cuBLAS chooses by the shape."""
    np.testing.assert_array_equal(result.s, expected.s)
    if method != "dc":
        same(result, expected)
    for x, y in zip(result, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=8 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 33, 500, 1100, 2500])
def test_a_bidiagonal_matrix_has_the_bits_of_one_gpu(family, n):
    rng = np.random.default_rng(n)
    d, e = bidiagonal(family, n, rng)
    for dtype in ("float64", "float32"):
        given = d.astype(dtype), e.astype(dtype)
        for method in ("auto", "dc", "twisted"):
            expected, one = tsvd.svd(*given, method=method, device=0, full_output=True)
            result, info = tsvd.svd(*given, method=method, device=BOTH, full_output=True)
            assert info.method == one.method
            agree(info.method, result, expected)
        same([tsvd.svdvals(*given, device=BOTH)], [tsvd.svdvals(*given, device=0)])


def test_draws_have_the_bits_of_one_gpu():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 900))
        d, e = bidiagonal(rng.choice(FAMILIES), n, rng)
        options = {"lower": bool(rng.integers(2)), "method": str(rng.choice(["auto", "twisted"]))}
        if rng.integers(2):
            first = int(rng.integers(n))
            options |= {"select": "i", "select_range": (first, int(rng.integers(first, n)))}
        expected, one = tsvd.svd(d, e, device=0, full_output=True, **options)
        agree(one.method, tsvd.svd(d, e, device=BOTH, **options), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("stages", [1, 2])
def test_a_dense_matrix(dtype, stages):
    """Up to the order of sums in products of other shapes."""
    A = np.random.default_rng(0).standard_normal((1500, 1300)).astype(dtype)
    options = {"full_matrices": False, "tuning": {"stages": stages}}
    U, S, Vh = linalg.svd(A, device=BOTH, **options)
    np.testing.assert_array_equal(S, linalg.svd(A, device=0, **options).S)
    eps = np.finfo(S.dtype).eps
    assert abs(U * S @ Vh - A).max() < 100 * eps * S[0]
    for x in (U.conj().T @ U, Vh @ Vh.conj().T):
        assert abs(x - np.eye(1300)).max() < 100 * eps


@pytest.mark.parametrize(("matrices", "n"), [(3001, 16), (501, 32), (101, 100), (5, 700)])
def test_batches_have_the_bits_of_one_gpu(matrices, n):
    rng = np.random.default_rng(n)
    d, e = rng.standard_normal((matrices, n)), rng.standard_normal((matrices, n - 1))
    same(tsvd.svd(d, e, device="cuda:*"), tsvd.svd(d, e, device=0))
    same([tsvd.svdvals(d, e, device=BOTH)], [tsvd.svdvals(d, e, device=0)])
    A = rng.standard_normal((matrices, n, n))
    same([linalg.inv(A, device=BOTH)], [linalg.inv(A, device=0)])
    if n <= 100:
        same(linalg.svd(A, device=BOTH), linalg.svd(A, device=0))
        same([linalg.svdvals(A, device=BOTH)], [linalg.svdvals(A, device=0)])


def test_large_results_go_to_columns_of_one_array():
    """Large enough for the sender and for pages that are touched beforehand."""
    d, e = bidiagonal("chi", 6000, np.random.default_rng(0))
    for method in ("twisted", "dc"):
        expected = tsvd.svd(d, e, method=method, device=0)
        agree(method, tsvd.svd(d, e, method=method, device=BOTH), expected)
    A = np.random.default_rng(1).standard_normal((2500, 2500))
    U, S, Vh = linalg.svd(A, device=BOTH)
    assert abs(U * S @ Vh - A).max() < 1e-11 * S[0]


# ---- arrays of the devices ----


class Torch:
    def __init__(self):
        self.space = pytest.importorskip("torch")

    def put(self, x):
        return self.space.from_numpy(x).cuda(1)

    def get(self, x, device):
        assert x.get_device() == device
        return x.cpu().numpy()


class CuPy:
    def __init__(self):
        self.space = pytest.importorskip("cupy")

    def put(self, x):
        with self.space.cuda.Device(1):
            return self.space.asarray(x)

    def get(self, x, device):
        assert x.device.id == device
        return self.space.asnumpy(x)


@pytest.fixture(params=[Torch, CuPy], ids=["torch", "cupy"])
def library(request):
    return request.param()


def test_results_lie_on_their_devices(library):
    rng = np.random.default_rng(0)
    d, e = bidiagonal("chi", 700, rng)
    expected = tsvd.svd(d, e, device=0)
    L, s, R = tsvd.svd(library.put(d), library.put(e), device=BOTH)
    same([np.hstack([library.get(x, i) for i, x in enumerate(L)])], [expected.L])
    same([np.vstack([library.get(x, i) for i, x in enumerate(R)])], [expected.R])
    for i, x in enumerate(s):
        same([library.get(x, i)], [expected.s])
    for i, x in enumerate(tsvd.svdvals(library.put(d), library.put(e), device=BOTH)):
        same([library.get(x, i)], [tsvd.svdvals(d, e, device=0)])
    A = rng.standard_normal((301, 20, 20))
    given = library.put(A)
    for x, y in zip(linalg.svd(given, device=BOTH), linalg.svd(A, device=0), strict=True):
        same([np.concatenate([library.get(part, i) for i, part in enumerate(x)])], [y])
    X = linalg.inv(given, device=BOTH)
    same([np.concatenate([library.get(x, i) for i, x in enumerate(X)])], [linalg.inv(A, device=0)])
    with pytest.raises(ValueError, match="out takes the results of one device"):
        linalg.inv(given, device=BOTH, out=given)


def test_small_work_stays_where_the_arrays_lie(library, monkeypatch):
    for name in ("_BATCH_LEAST", "_VECTORS_LEAST", "_VALUES_LEAST"):
        monkeypatch.setattr(_several, name, 1 << 60)
    d, e = bidiagonal("chi", 50, np.random.default_rng(0))
    for device in ([0, 1], [0]):
        result = tsvd.svd(library.put(d), library.put(e), device=device)
        assert all(isinstance(x, list) for x in result)
        same([library.get(x[0], 1) for x in result], tsvd.svd(d, e, device=1))
        [values] = tsvd.svdvals(library.put(d), library.put(e), device=device)
        same([library.get(values, 1)], [tsvd.svdvals(d, e, device=1)])
    A = np.eye(3)
    [X] = linalg.inv(library.put(A), device=BOTH)
    same([library.get(X, 1)], [A])


def test_leading_ones_stay(library):
    d, e = bidiagonal("chi", 500, np.random.default_rng(0))
    L, s, R = tsvd.svd(library.put(d[None, None]), library.put(e), device=BOTH)
    assert [x.shape[:-1] for x in L] == [(1, 1, 500)] * 2
    assert [tuple(x.shape) for x in s] == [(1, 1, 500)] * 2
    same(
        [np.concatenate([library.get(x, i) for i, x in enumerate(R)], 2)[0, 0]],
        [tsvd.svd(d, e, device=0).R],
    )


def test_results_are_sharded_arrays_of_jax():
    jax = pytest.importorskip("jax")
    devices = jax.devices("cuda")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else contextlib.nullcontext():
        rng = np.random.default_rng(0)
        d, e = (x.astype("float32") for x in bidiagonal("chi", 640, rng))
        given = [jax.device_put(x, devices[0]) for x in (d, e)]
        L, s, R = tsvd.svd(*given, device=BOTH)
        same([np.asarray(x) for x in (L, s, R)], tsvd.svd(d, e, device=0))
        assert all(len(x.devices()) == 2 for x in (L, s, R))
        A = rng.standard_normal((300, 8, 8)).astype("float32")
        result = linalg.svd(jax.device_put(A, devices[0]), device=BOTH)
        same([np.asarray(x) for x in result], linalg.svd(A, device=0))
        shares = linalg.inv(jax.device_put(A[:299], devices[0]), device=BOTH)
        assert isinstance(shares, list)
        same([np.concatenate([np.asarray(x) for x in shares])], [linalg.inv(A[:299], device=0)])


# ---- failures ----


@pytest.mark.parametrize("failing", BOTH)
def test_a_device_that_fails_leaves_the_others_usable(monkeypatch, failing):
    compute = _core.svd
    d, e = bidiagonal("chi", 3000, np.random.default_rng(0))

    def svd(inputs, options, device):
        if device == failing and options.progress is not None:
            raise RuntimeError(f"CUDA device {device} has failed")
        return compute(inputs, options, device)

    with monkeypatch.context() as patch:
        patch.setattr(_core, "svd", svd)
        with pytest.raises(RuntimeError, match=f"CUDA device {failing} has failed"):
            tsvd.svd(d, e, method="twisted", device=BOTH)
    expected = tsvd.svd(d, e, device=0)
    same(tsvd.svd(d, e, device=1), expected)
    same(tsvd.svd(d, e, device=BOTH), expected)


def test_too_little_memory_names_the_device():
    n = 400_000
    with pytest.raises(MemoryError, match=r"device|bytes are free"):
        tsvd.svd(np.ones(n), np.ones(n - 1), device=BOTH)
    d, e = bidiagonal("chi", 1000, np.random.default_rng(0))
    same(tsvd.svd(d, e, device=BOTH), tsvd.svd(d, e, device=0))


def test_a_device_that_does_not_exist():
    with pytest.raises(RuntimeError, match="does not exist"):
        tsvd.svd([1.0, 2.0], [1.0], device=[0, 99])
    with pytest.raises(ValueError, match="twice"):
        tsvd.svd([1.0, 2.0], [1.0], device=[0, "cuda:0"])
