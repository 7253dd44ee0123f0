"""One call on two GPUs: the bits of one, arrays of the libraries, failures."""

import _thread
import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest

import tsvd
from testing.ranks import TYPES, numbers
from tsvd import _core, _several, linalg

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.two_gpus,
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.filterwarnings("default"),  # the libraries warn of what is no matter here
]

BOTH = [0, 1]
SHARED = {"device": BOTH, "tuning": {"stages": 2}}  # of a dense matrix, however small
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


def eps_of(A):
    return np.finfo(A.dtype).eps


def check_dense(A, result):
    """The residual and the orthogonality; values beside those of one GPU."""
    U, S, Vh = result
    eps, n = eps_of(A), max(A.shape)
    wanted = A.astype(np.result_type(A, np.float64))
    scale = abs(wanted).max() or 1
    bound = 2 * (n + 64) * eps
    assert np.linalg.norm(U * (S / scale) @ Vh - wanted / scale) <= bound * (S[0] / scale)
    for x in (U.conj().T @ U, Vh @ Vh.conj().T):
        assert np.linalg.norm(x - np.eye(len(S))) <= bound
    one = linalg.svd(A, device=0, full_matrices=False, tuning={"stages": 2})
    np.testing.assert_allclose(S / scale, one.S / scale, rtol=0, atol=bound * S[0] / scale)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stages", [1, 2])
def test_a_dense_matrix(dtype, stages):
    A = numbers((1500, 1300), dtype)
    check_dense(A, linalg.svd(A, device=BOTH, full_matrices=False, tuning={"stages": stages}))


# Two stages share the columns out in turns of 256, of which the last is up to 511.
@pytest.mark.parametrize(
    "n", [1, 2, 64, 65, 129, 255, 256, 257, 511, 512, 513, 575, 640, 767, 1023]
)
def test_turns_of_columns(n):
    A = numbers((n, n), "float64", n)
    check_dense(A, linalg.svd(A, **SHARED))


@pytest.mark.parametrize("shape", [(700, 1100), (1100, 700), (900, 900)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_shapes_and_orders(shape, order, dtype):
    torch = pytest.importorskip("torch")
    A = np.asarray(numbers(shape, dtype), order=order)
    options = SHARED | {"full_matrices": False}
    result = linalg.svd(A, **options)
    check_dense(A, result)
    same(linalg.svd(A, **options), result)  # the same bits each time
    values = linalg.svdvals(A, **SHARED)
    np.testing.assert_allclose(values, result.S, rtol=0, atol=len(A) * eps_of(A) * result.S[0])
    U, S, Vh = linalg.svd(torch.from_numpy(A).to("cuda:1"), **options)
    for i in BOTH:
        assert all(x[i].device.index == i for x in (U, S, Vh))
    U, Vh = (np.concatenate([np.asarray(x.cpu()) for x in y], -a) for y, a in ((U, 1), (Vh, 2)))
    check_dense(A, (U, np.asarray(S[0].cpu()), Vh))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("family", ["zero", "rank one", "graded", "huge", "tiny", "clusters"])
def test_hard_dense_matrices(family, dtype):
    n = 800
    A = numbers((n, n), dtype)
    real = np.finfo(A.real.dtype)
    if family == "zero":
        A[:] = 0
    elif family == "rank one":
        A = np.outer(A[0], A[1]).astype(dtype)
    elif family == "graded":
        A = (A * np.logspace(0, -30, n)).astype(dtype)
    elif family == "huge":
        A = (A * (real.max / 500 / abs(A).max())).astype(dtype)
    elif family == "tiny":
        A = (A * (real.tiny * 64)).astype(dtype)
    else:
        Q = np.linalg.qr(A)[0]
        A = (Q * np.repeat([1, 1e-6], n // 2) @ Q.conj().T).astype(dtype)
    result = linalg.svd(A, **SHARED)
    if family == "zero":
        assert not result.S.any()
    else:
        check_dense(A, result)


@pytest.mark.parametrize("place", [(0, 0), (700, 300), (899, 899)])
def test_nan_is_found_by_all(place):
    A = numbers((900, 900))
    A[place] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        linalg.svd(A, **SHARED)
    assert np.isnan(linalg.svdvals(A, check_finite=False, **SHARED)).all()


def test_some_values_of_a_dense_matrix():
    A = numbers((1000, 1000))
    whole = linalg.svd(A, **SHARED)
    part = linalg.svd(A, select="i", select_range=(100, 349), **SHARED)
    assert part.U.shape == (1000, 250)
    np.testing.assert_allclose(part.S, whole.S[100:350], rtol=1e-13)
    assert np.linalg.norm(A @ part.Vh.T - part.U * part.S) <= 1000 * 2.3e-16 * whole.S[0]


def test_many_calls():
    """Teams come and go."""
    A = numbers((70, 70))
    expected = linalg.svd(A, **SHARED)
    for _ in range(300):
        same(linalg.svd(A, **SHARED), expected)


def test_values_of_unequal_sides_are_shared_out():
    A = numbers((700, 600))
    options = SHARED | {"full_output": True}
    S, info = linalg.svd(A, compute_uv=False, **options)
    assert info.device == "cuda:0,cuda:1"
    one = linalg.svdvals(A, device=0, tuning={"stages": 2})
    np.testing.assert_allclose(S, one, rtol=0, atol=700 * eps_of(A) * one[0])


def test_draws_of_dense_matrices():
    rng = np.random.default_rng(1)
    for _ in range(60):
        shape = tuple(rng.integers(1, 1400, 2))
        dtype = str(rng.choice(TYPES))
        A = numbers(shape, dtype, int(rng.integers(1 << 30)))
        if rng.integers(2):
            A = A[::-1, ::-1]
        if rng.integers(2):
            A = np.asfortranarray(A)
        devices = [int(x) for x in rng.permutation(2)]
        check_dense(A, linalg.svd(A, device=devices, full_matrices=False, tuning={"stages": 2}))


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


@pytest.mark.parametrize("at", [0.05, 0.3, 0.6, 0.9])
def test_a_dense_matrix_is_given_up(at):
    """By one of the threads: the other must not wait for it."""
    A = numbers((3000, 3000))

    def stop(done):
        if done > at:
            raise KeyError(at)

    with pytest.raises(KeyError):
        linalg.svd(A, progress=stop, **SHARED)
    check_dense(A, linalg.svd(A, **SHARED))


def test_ctrl_c_in_a_dense_matrix():
    """At many times of the call, also while a thread waits for the other."""
    A = numbers((2500, 2500))
    expected = linalg.svd(A, **SHARED)
    begin = time.monotonic()
    linalg.svd(A, **SHARED)
    seconds = time.monotonic() - begin
    interrupted = 0
    for i in range(60):
        timer = threading.Timer(seconds * (i + 0.5) / 50, _thread.interrupt_main)
        timer.start()
        try:
            result = linalg.svd(A, **SHARED)
            timer.join()  # it may come now
        except KeyboardInterrupt:
            interrupted += 1
        else:
            same(result, expected)
        timer.join()
    assert interrupted > 30
    same(linalg.svd(A, **SHARED), expected)


def test_a_fork_in_a_dense_matrix():
    """The child of progress ends its call, and the parent finishes."""
    A = numbers((2500, 2500))
    expected = linalg.svd(A, **SHARED)
    for at in (0.1, 0.6, 0.9):
        children = []

        def fork(done, at=at, children=children):
            if done > at and not children:
                children.append(os.fork())

        try:
            result = linalg.svd(A, progress=fork, **SHARED)
        except BaseException as error:
            if children == [0]:
                os._exit(0 if isinstance(error, RuntimeError) else 1)
            raise
        if children == [0]:  # when all was done
            os._exit(0 if all(map(np.array_equal, result, expected)) else 2)
        same(result, expected)
        for _ in range(200):
            child, status = os.waitpid(children[0], os.WNOHANG)
            if child:
                break
            time.sleep(0.05)
        else:
            os.kill(children[0], signal.SIGKILL)
            pytest.fail("the child does not end")
        assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("failing", BOTH)
def test_a_device_without_memory_for_its_share(failing):
    torch = pytest.importorskip("torch")
    A = numbers((9000, 9000))
    with torch.cuda.device(failing):
        linalg.svd(A[:99, :99], device=failing)  # its context takes memory too
        tsvd.trim()
        free, _ = torch.cuda.mem_get_info()
        for left in (300 << 20, 900 << 20):  # too little for its columns; for its vectors
            taken = torch.empty(free - left, dtype=torch.uint8, device=f"cuda:{failing}")
            with pytest.raises(MemoryError, match=f"cuda:{failing}|device {failing}|bytes"):
                linalg.svd(A, device=BOTH)
            del taken
            torch.cuda.empty_cache()
    check_dense(A[:999, :999], linalg.svd(A[:999, :999], **SHARED))


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
