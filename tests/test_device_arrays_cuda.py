"""Arrays on a GPU in and out, in the order of streams: of PyTorch, CuPy, JAX, and of no library."""

import gc
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, same_bits
from testing.exporters import Interface, Raw, download
from testing.families import make
from testing.measures import BOUNDS, orthogonality, residual, value_error
from testing.processes import run
from tsvd import linalg

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("cuda"),
    pytest.mark.filterwarnings("default"),  # the libraries warn of what is no matter here
]


# ---- the libraries ----


class Torch:
    name = "torch"

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("PyTorch sees no GPU")

    def put(self, array):
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def get(self, x):
        assert type(x) is self.torch.Tensor and x.device == self.torch.device("cuda:0")
        return x.cpu().numpy()


class CuPy:
    name = "cupy"

    def __init__(self):
        self.cupy = pytest.importorskip("cupy")

    def put(self, array):
        return self.cupy.asarray(array)

    def get(self, x):
        assert type(x) is self.cupy.ndarray and x.device.id == 0
        return self.cupy.asnumpy(x)


class JAX:
    name = "jax"

    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax = pytest.importorskip("jax")
        try:
            self.device = self.jax.devices("gpu")[0]
        except RuntimeError as error:
            pytest.skip(f"JAX sees no GPU: {error}")
        self.jax.config.update("jax_enable_x64", True)

    def put(self, array):
        return self.jax.device_put(np.ascontiguousarray(array), self.device)

    def get(self, x):
        assert isinstance(x, self.jax.Array) and x.devices() == {self.device}
        return np.asarray(x)


class NoLibrary:
    """A CUDA array interface and nothing else."""

    name = "raw"

    def put(self, array):
        return Raw(np.ascontiguousarray(array))

    def get(self, x):
        assert type(x) is tsvd._core.DeviceArray and x.__dlpack_device__() == (2, 0)
        return download(x)


LIBRARIES = {"torch": Torch, "cupy": CuPy, "jax": JAX, "raw": NoLibrary}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]()


@pytest.fixture
def torch():
    return Torch().torch


@pytest.fixture
def cupy():
    return CuPy().cupy


def check_values(s, d, e, lower=False):
    n = d.shape[-1]
    exact = tsvd.svdvals(d, e, method="bisect", device="cpu", lower=lower)
    for i in np.ndindex(exact.shape[:-1]):
        assert value_error(s[i], exact[i]) <= BOUNDS["values auto"](n)


def check_vectors(result, d, e, lower=False):
    n = d.shape[-1]
    for i in np.ndindex(d.shape[:-1]):
        L, s, R = (x[i] for x in result)
        assert residual(d[i], e[i], L, s, R, lower) <= BOUNDS["residual"](n)
        assert orthogonality(L, R) <= BOUNDS["orthogonality"](n)


# ---- values, types, places ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens"])
def test_vectors(library, method, dtype):
    for n in (0, 1, 2, 33, 300, 700):
        d, e = make("uniform_1", n, dtype)
        for lower in (False, True):
            options = {"method": method, "lower": lower}
            result, info = tsvd.svd(library.put(d), library.put(e), full_output=True, **options)
            assert info.device == "cuda:0"
            result = tuple(map(library.get, result))
            assert all(x.dtype == dtype for x in result)
            assert [x.shape for x in result] == [(n, n), (n,), (n, n)]
            check_vectors(result, d, e, lower)
            check_values(result[1], d, e, lower)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["auto", "dc", "qr", "givens", "bisect"])
def test_values(library, method, dtype):
    for n in (1, 2, 256, 257, 1500):
        d, e = make("normal", n, dtype)
        s = library.get(tsvd.svdvals(library.put(d), library.put(e), method=method))
        assert s.dtype == dtype and s.shape == (n,)
        check_values(s, d, e)


def test_the_same_bits_as_from_the_host(library):
    for n in (50, 900):
        d, e = make("chi", n)
        result = tsvd.svd(library.put(d), library.put(e), device="cuda")
        assert same_bits(tuple(map(library.get, result)), tuple(tsvd.svd(d, e, device="cuda")))


def test_batches_broadcast(library):
    rng = np.random.default_rng(3)
    d, e = rng.random((3, 1, 40)), rng.random((2, 39))
    result = tuple(map(library.get, tsvd.svd(library.put(d), library.put(e))))
    assert [x.shape for x in result] == [(3, 2, 40, 40), (3, 2, 40), (3, 2, 40, 40)]
    check_vectors(result, np.broadcast_to(d, (3, 2, 40)), np.broadcast_to(e, (3, 2, 39)))
    assert tsvd.svdvals(library.put(np.ones((0, 5))), library.put(np.ones(4))).shape == (0, 5)


def test_ranges_of_values(library):
    d, e = make("uniform_1", 600)
    s = tsvd.svdvals(d, e, device="cpu")
    result = tsvd.svd(library.put(d), library.put(e), select="i", select_range=(3, 9))
    L, part, R = map(library.get, result)
    assert (L.shape, part.shape, R.shape) == ((600, 7), (7,), (7, 600))
    assert np.allclose(part, s[3:10], rtol=1e-13)
    assert residual(d, e, L, part, R) <= BOUNDS["residual"](600)
    middle = float(s[300] + s[301]) / 2
    part = tsvd.svdvals(library.put(d), library.put(e), select="v", select_range=(middle, np.inf))
    assert np.allclose(library.get(part), s[:301], rtol=1e-12)
    with pytest.raises(ValueError, match="takes one matrix"):
        batch = library.put(np.stack([d, d])), library.put(e)
        tsvd.svdvals(*batch, select="v", select_range=(0, 1))
    with pytest.raises(ValueError, match="select_range"):
        tsvd.svdvals(library.put(d), library.put(e), select="i", select_range=(0, 600))


@pytest.mark.parametrize("n", [1, 3, 8, 20, 70])
def test_values_of_dense_matrices_in_an_interval(library, n):
    A = np.random.default_rng(n).standard_normal((n + 2, n))
    s = np.linalg.svd(A, compute_uv=False)
    low = float(s[n // 2]) * (1 - 1e-6)
    interval = {"select": "v", "select_range": (low, np.inf)}
    assert np.allclose(library.get(linalg.svdvals(library.put(A), **interval)), s[: n // 2 + 1])
    U, S, Vh = map(library.get, linalg.svd(library.put(A), **interval))
    assert U.shape == (n + 2, n // 2 + 1) and np.allclose(U * S, A @ Vh.T)


def test_dtypes(library):
    d, e = np.arange(1, 8, dtype=np.int32), np.ones(6)
    expected = tsvd.svdvals(d, e, device="cpu")
    if library.name == "raw":  # no library to convert with
        with pytest.raises(TypeError, match="must be converted to float64 first"):
            tsvd.svdvals(library.put(d), library.put(e))
        return
    for kind in (np.int32, np.uint8, np.int64, np.float32):
        s = library.get(tsvd.svdvals(library.put(d.astype(kind)), library.put(e)))
        assert s.dtype == np.float64 and np.allclose(s, expected, rtol=1e-14)
    s = library.get(tsvd.svdvals(library.put(d > 3), library.put(np.zeros(6, bool))))
    assert s.dtype == np.float64 and np.array_equal(s, [1, 1, 1, 1, 0, 0, 0])
    with pytest.raises(TypeError, match="d has dtype complex64"):
        tsvd.svdvals(library.put(d.astype(np.complex64)), library.put(e))


def test_nan_and_infinity(library):
    d, e = np.array([1.0, np.nan, 2.0]), np.ones(2)
    with pytest.raises(ValueError, match="NaN"):
        tsvd.svd(library.put(d), library.put(e))
    result = tsvd.svd(library.put(d), library.put(e), check_finite=False)
    assert all(np.isnan(library.get(x)).all() for x in result)


def test_a_host_array_beside(library):
    d, e = make("uniform_1", 20)
    with pytest.raises(ValueError, match="d on cuda:0, e on the host"):
        tsvd.svd(library.put(d), e)
    with pytest.raises(ValueError, match="d lies on cuda:0, and device asks for the host"):
        tsvd.svd(library.put(d), library.put(e), device="cpu")


def test_strides():
    rng = np.random.default_rng(5)
    room, more = rng.random((7, 300)), rng.random((4, 300))
    cases = [
        (room[2, ::-1], more[1, 298::-1]),
        (room[::2, ::3], more[:, 1:297:3]),
        (room.T[:7], more.T[:6, :1].T),
    ]
    for d, e in cases:
        s = download(tsvd.svdvals(Raw(d, readonly=True), Raw(e)))
        assert same_bits(s, tsvd.svdvals(d.copy(), e.copy(), device="cuda"))
    with pytest.raises(ValueError, match="no multiple of the 8 bytes of a number"):
        base = np.zeros(8 * 6, np.uint8)
        skewed = Raw(base)
        skewed.__cuda_array_interface__ |= {"shape": (5,), "typestr": "<f8", "strides": None}
        address = skewed.__cuda_array_interface__["data"][0]
        skewed.__cuda_array_interface__["data"] = (address + 4, False)
        tsvd.svdvals(skewed, Raw(np.ones(4)))


def test_strides_of_libraries(torch):
    d, e = (torch.rand(3, 50, dtype=torch.float64, device="cuda") for _ in range(2))
    cases = (d[:, ::2], e[:, :24]), (d.T[:3], e.T[:3, :2]), (d[0].expand(2, 50), e[1, :49])
    for d_in, e_in in cases:
        s = tsvd.svdvals(d_in, e_in).cpu().numpy()
        expected = np.broadcast_arrays(d_in.cpu().numpy()[..., 0], e_in.cpu().numpy()[..., 0])[0]
        assert s.shape == (*expected.shape, d_in.shape[-1])
        assert same_bits(s, tsvd.svdvals(d_in.cpu().numpy(), e_in.cpu().numpy(), device="cuda"))


# ---- out ----


def test_out(library):
    if library.name == "jax":
        d = library.put(np.ones(3))
        with pytest.raises(ValueError, match="out: L is read-only"):
            tsvd.svd(d, library.put(np.ones(2)), out=(d, d, d))
        return
    get = download if library.name == "raw" else library.get
    d, e = make("uniform_1", 300)
    expected = tsvd.svd(d, e, device="cuda")
    shapes = ((300, 300), (300,), (300, 300))
    out = tuple(library.put(np.full(shape, 7.0)) for shape in shapes)
    d_in, e_in = library.put(d), library.put(e)
    result = tsvd.svd(d_in, e_in, out=out)
    assert all(given is returned for given, returned in zip(out, result, strict=True))
    assert same_bits(tuple(map(get, out)), tuple(expected))
    wrong = (
        (np.zeros((300, 299)), ValueError, "out: L has shape"),
        (np.zeros((300, 300), np.float32), TypeError, "out: L has dtype float32"),
    )
    for array, error, match in wrong:
        with pytest.raises(error, match=match):
            tsvd.svd(d_in, e_in, out=(library.put(array), *out[1:]))
    with pytest.raises(ValueError, match="out: L and R overlap"):
        tsvd.svd(d_in, e_in, out=(out[0], out[1], out[0]))
    with pytest.raises(ValueError, match="out: s overlaps the memory of d or e"):
        tsvd.svd(d_in, e_in, out=(out[0], d_in, out[2]))
    with pytest.raises(ValueError, match="e on cuda:0, out: L on the host"):
        tsvd.svd(d_in, e_in, out=tuple(np.zeros(shape) for shape in shapes))


def test_out_that_cannot_be_written():
    out = [Raw(np.zeros(shape)) for shape in ((5, 5), (5,), (5, 5))]
    d, e = Raw(np.ones(5)), Raw(np.ones(4))
    with pytest.raises(ValueError, match="out: s is read-only"):
        tsvd.svd(d, e, out=(out[0], Raw(np.zeros(5), readonly=True), out[2]))
    with pytest.raises(ValueError, match="out: R must be C-contiguous"):
        tsvd.svd(d, e, out=(*out[:2], Raw(np.zeros((5, 5)).T)))
    tsvd.svd(d, e, out=tuple(out))


def test_managed_memory():
    """Arrays in managed memory are arrays of the device, which the host reads afterwards."""
    d, e = make("uniform_1", 300)
    out = tuple(Raw(np.zeros(shape), managed=True) for shape in ((300, 300), (300,), (300, 300)))
    there = [Raw(np.zeros_like(x), managed=True) for x in (d, e)]
    for x, array in zip(there, (d, e), strict=True):
        x.on_host()[...] = array
    _, info = tsvd.svd(*there, out=out, full_output=True)
    assert info.device == "cuda:0"
    results = tuple(x.on_host() for x in out)
    check_vectors(results, d, e)
    assert same_bits(results, tuple(tsvd.svd(d, e, device="cuda")))


def test_out_is_there_for_readers_on_other_streams(torch):
    """d and e name no stream, so that the call works on one that PyTorch knows nothing of."""
    d, e = make("toeplitz", 2500)
    expected = tsvd.svd(d, e, device="cuda")
    shapes = ((2500, 2500), (2500,), (2500, 2500))
    for _ in range(3):
        out = tuple(torch.zeros(shape, dtype=torch.float64, device="cuda") for shape in shapes)
        torch.cuda.synchronize()
        tsvd.svd(Raw(d), Raw(e), out=out)
        assert same_bits(tuple(x.cpu().numpy() for x in out), tuple(expected))


# ---- streams ----


def slow_diagonal(torch, d, steps=60):
    """d, at the end of a chain of products that takes tens of milliseconds."""
    n = 4096
    a = torch.full((n, n), 1.0 / n, device="cuda", dtype=torch.float32)
    x = a
    for _ in range(steps):
        x = x @ a
    return torch.where(x[0, 0] > 0, d, torch.nan)


def test_the_current_stream_of_torch(torch):
    """Work before the call, and after it, on a stream that waits for nothing else."""
    d, e = make("uniform_1", 900)
    expected = tsvd.svd(d, e, device="cuda")
    d_in, e_in = torch.from_numpy(d).cuda(), torch.from_numpy(e).cuda()
    torch.cuda.synchronize()
    for _ in range(3):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            late = slow_diagonal(torch, d_in)
            result = tsvd.svd(late, e_in)
            after = [x * 2 for x in result]
            late.zero_()
        stream.synchronize()
        assert same_bits(tuple(x.cpu().numpy() / 2 for x in after), tuple(expected))


def test_a_stream_that_the_caller_names(torch):
    """d is made on it, and not on the current one, which waits for the results."""
    d, e = make("uniform_1", 900)
    expected = tsvd.svd(d, e, device="cuda")
    d_in, e_in = torch.from_numpy(d).cuda(), torch.from_numpy(e).cuda()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for named in (stream.cuda_stream, stream):
        with torch.cuda.stream(stream):
            late = slow_diagonal(torch, d_in)
        result = tsvd.svd(late, e_in, stream=named)
        assert same_bits(tuple(x.cpu().numpy() for x in result), tuple(expected))
        assert same_bits(tuple(tsvd.svd(d, e, device="cuda", stream=named)), tuple(expected))
    for named in (0, 1):
        result = tsvd.svd(d_in, e_in, stream=named)
        assert same_bits(tuple(x.cpu().numpy() for x in result), tuple(expected))


def test_the_current_stream_of_cupy(cupy):
    d, e = make("uniform_1", 900)
    expected = tsvd.svd(d, e, device="cuda")
    d_in, e_in = cupy.asarray(d), cupy.asarray(e)
    slow = cupy.full((4096, 4096), 1 / 4096, dtype=np.float32)
    cupy.cuda.Device().synchronize()
    for _ in range(2):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            x = slow
            for _ in range(60):
                x = x @ slow
            late = cupy.where(x[0, 0] > 0, d_in, cupy.nan)
            result = tsvd.svd(late, e_in)
            after = [x * 2 for x in result]
        stream.synchronize()
        assert same_bits(tuple(cupy.asnumpy(x) / 2 for x in after), tuple(expected))
        named = tsvd.svd(d_in, e_in, stream=stream)
        assert same_bits(tuple(cupy.asnumpy(x) for x in named), tuple(expected))


@pytest.mark.parametrize("dtype", [*DTYPES, np.complex128, np.complex64])
def test_numbers_between_the_multiples_of_their_size(cupy, dtype):
    size, half = np.dtype(dtype).itemsize, np.finfo(dtype).dtype.itemsize // 2
    bytes_of = cupy.zeros(200 * size, np.uint8)
    pointer = bytes_of.data + (half if np.dtype(dtype).kind == "f" else 2 * half)
    odd = cupy.ndarray((5, 5), dtype, pointer)
    for call in (linalg.svd, linalg.svdvals, linalg.inv, linalg.bidiagonalize):
        with pytest.raises(ValueError, match=f"no multiple of the {size} bytes of a number"):
            call(odd)
    with pytest.raises(ValueError, match="out: X must be C-contiguous, aligned"):
        linalg.inv(cupy.eye(5, dtype=dtype), out=odd)
    if np.dtype(dtype).kind == "f":
        with pytest.raises(ValueError, match="no multiple"):
            tsvd.svd(odd[0], odd[1, 1:])
    assert float(linalg.svdvals(cupy.ndarray((0, 5), dtype, pointer)).size) == 0
    assert linalg.svdvals(2 * cupy.eye(5, dtype=dtype)).tolist() == [2] * 5  # the device goes on


def test_results_keep_cupy_streams_alive(cupy):
    """And give them back with their memory."""
    d, e = cupy.ones(300), cupy.ones(299)
    stream = cupy.cuda.Stream(non_blocking=True)
    before = sys.getrefcount(stream)
    result = tsvd.svd(d, e, stream=stream)
    assert sys.getrefcount(stream) == before + 3
    s = result.s
    del result
    gc.collect()
    assert sys.getrefcount(stream) == before + 1
    del s
    gc.collect()
    assert sys.getrefcount(stream) == before


@pytest.mark.parametrize("stream", [1, 2])
def test_default_streams(stream):
    """Their results are given back by another thread, whose default stream is another one."""
    d, e = make("normal", 400)
    expected = tsvd.svd(d, e, device="cuda")
    kept = []

    def call():
        for _ in range(5):
            kept.append(tsvd.svd(Raw(d), Raw(e), stream=stream))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    while kept:
        result = kept.pop()
        assert result.L.__cuda_array_interface__["stream"] == stream
        assert same_bits(tuple(map(download, result)), tuple(expected))


def test_the_stream_of_an_interface(torch):
    """d and e name different streams, on which they are still to be written."""
    d, e = make("uniform_1", 700)
    expected = tsvd.svdvals(d, e, device="cuda")
    d_in, e_in = torch.from_numpy(d).cuda(), torch.from_numpy(e).cuda()
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    late = []
    for x, stream in zip((d_in, e_in), streams, strict=True):
        with torch.cuda.stream(stream):
            late.append(slow_diagonal(torch, x))
    arrays = [
        Interface(**(x.__cuda_array_interface__ | {"version": 3, "stream": stream.cuda_stream}))
        for x, stream in zip(late, streams, strict=True)
    ]
    s = tsvd.svdvals(*arrays)
    assert s.__cuda_array_interface__["stream"] == streams[0].cuda_stream
    assert same_bits(download(s), expected)


def test_two_threads_on_two_streams(torch):
    matrices = [make("uniform_1", n) for n in (300, 700, 1100)]
    expected = [tuple(tsvd.svd(*pair, device="cuda")) for pair in matrices]

    def calls(order):
        stream = torch.cuda.Stream()
        found = []
        with torch.cuda.stream(stream):
            for i in order * 6:
                d, e = (torch.from_numpy(x).cuda() for x in matrices[i])
                found.append((i, [x * 2 for x in tsvd.svd(d, e)]))
        stream.synchronize()
        return [same_bits(tuple(x.cpu().numpy() / 2 for x in r), expected[i]) for i, r in found]

    with ThreadPoolExecutor(2) as pool:
        for same in pool.map(calls, ([0, 1, 2], [2, 0, 1])):
            assert all(same)


def test_capture_into_a_graph_is_refused(torch):
    d, e = (torch.ones(n, dtype=torch.float64, device="cuda") for n in (300, 299))
    tsvd.svd(d, e)
    x = torch.zeros(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
        with pytest.raises(RuntimeError, match="the stream is being captured into a graph"):
            tsvd.svd(d, e)
        x += 1
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [2, 2, 2]


# ---- nothing through the host ----


def copies(torch, call, path):
    """Bytes of the largest copy between host and device, and of all, during a call."""
    kinds = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds) as profile:
        call()
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert any(event.get("cat") == "kernel" for event in events), "the profiler saw the call"
    found = [
        event["args"]["bytes"]
        for event in events
        if event.get("cat") == "gpu_memcpy"
        and any(way in event["name"] for way in ("HtoD", "DtoH"))
    ]
    return max(found, default=0), sum(found)


@pytest.mark.parametrize("method", ["auto", "bisect"])
def test_no_matrix_passes_through_the_host(torch, method, tmp_path):
    n = 3000
    d, e = (torch.from_numpy(x).cuda() for x in make("uniform_1", n))
    options = {"compute_uv": method == "auto", "method": method}
    tsvd.svd(d, e, **options)
    largest, _ = copies(torch, lambda: tsvd.svd(d, e, **options), tmp_path / "trace.json")
    assert largest < 8 * n
    largest, _ = copies(torch, lambda: tsvd.svd(d.cpu(), e.cpu()), tmp_path / "trace.json")
    if tsvd.svd(d.cpu(), e.cpu(), full_output=True)[1].device != "cpu":
        assert largest >= 8 * n, "the measure sees what goes through the host"


# ---- lifetimes ----


def test_memory_is_reused_in_order(torch):
    """Results are dropped while work that reads them is still to run; later calls take their
    memory."""
    matrices = [tuple(torch.from_numpy(x).cuda() for x in make("chi", n)) for n in (500, 501, 502)]
    slow = torch.full((4096, 4096), 1 / 4096, device="cuda")
    expected = [tsvd.svd(*pair) for pair in matrices]
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        found = []
        for i in range(12):
            x = slow
            for _ in range(5):
                x = x @ slow
            result = tsvd.svd(*matrices[i % 3])
            factor = torch.where(x[0, 0] > 0, 1.0, torch.nan).double()
            found.append([factor * part for part in result])
            del result
        torch.cuda.current_stream().synchronize()
    for i, parts in enumerate(found):
        for part, wanted in zip(parts, expected[i % 3], strict=True):
            assert torch.equal(part, wanted)


def test_memory_that_jax_drops_is_reused_in_order():
    """JAX gives an array back while the work that reads it waits; later calls take its memory."""
    library = JAX()
    jax = library.jax
    jnp = jax.numpy
    matrices = [make("chi", n) for n in (2000, 2001, 2002)]
    expected = [tsvd.svdvals(*pair, device="cuda") for pair in matrices]
    pairs = [tuple(map(library.put, pair)) for pair in matrices]
    slow = jax.device_put(jnp.full((4096, 4096), 1 / 4096, jnp.float32), library.device)

    @jax.jit
    def late(s, x):
        for _ in range(20):
            x = x @ slow
        return jnp.where(x[0, 0] > 0, 1.0, jnp.nan) * s

    for n in range(3):
        late(tsvd.svdvals(*pairs[n]), slow).block_until_ready()
    found = [late(tsvd.svdvals(*pairs[i % 3]), slow) for i in range(12)]
    for i, s in enumerate(found):
        assert same_bits(library.get(s), expected[i % 3])
    del found, s
    gc.collect()
    tsvd.trim()
    assert tsvd._core.aside() == []


def test_memory_is_put_aside_for_jax():
    """Its owners are given back in the order of JAX's work, each once; twice is refused."""
    JAX()
    d, e = Raw(np.ones(400)), Raw(np.ones(399))
    tsvd.trim()
    s = tsvd.svdvals(d, e)
    s.for_jax()
    stream = s.__cuda_array_interface__["stream"]
    capsule = s.__dlpack__(stream=-1)
    del s
    assert tsvd._core.aside() == []
    del capsule
    aside = tsvd._core.aside()
    assert [x[:2] for x in aside] == [(0, stream)] and tsvd._core.aside() == []
    del aside  # put aside again
    [(_, _, memory)] = tsvd._core.aside()
    tsvd._core.give_back(memory)
    with pytest.raises(ValueError):
        tsvd._core.give_back(memory)
    assert tsvd._core.aside() == []


def test_results_outlive_handles(library):
    d, e = make("uniform_1", 500)
    expected = tuple(tsvd.svd(d, e, device="cuda"))
    result = tsvd.svd(library.put(d), library.put(e))
    tsvd.trim()
    again = tsvd.svd(library.put(d), library.put(e))
    tsvd.trim()
    assert same_bits(tuple(map(library.get, result)), expected)
    assert same_bits(tuple(map(library.get, again)), expected)


@pytest.mark.alone
def test_capsules_are_given_back_once():
    """Whether they are taken, dropped, or the array is gone before; no memory is left behind."""
    d, e = Raw(np.ones(500)), Raw(np.ones(499))

    def calls(count):
        for i in range(count):
            L, s, _ = tsvd.svd(d, e)
            capsules = [L.__dlpack__(stream=-1), L.__dlpack__(max_version=(1, 0)), s.__dlpack__()]
            if i % 2:
                del L, s
            borrowed = tsvd._core.borrow(capsules[i % 3], "x")
            del capsules
            assert not hasattr(borrowed, "__array_interface__")
            del borrowed

    calls(10)
    tsvd.trim()
    before = tsvd.devices()[1].memory_free
    calls(300)  # 4 MB each
    tsvd.trim()
    assert tsvd.devices()[1].memory_free >= before - 2**25
    s = tsvd.svdvals(d, e)
    for _ in range(10_000):
        s.__dlpack__(stream=-1)
    assert np.isfinite(download(s)).all()


def test_what_a_result_says_of_itself():
    s = tsvd.svdvals(Raw(np.ones(5, np.float32)), Raw(np.ones(4, np.float32)))
    assert (s.shape, s.dtype) == ((5,), "float32")
    assert repr(s) == "<tsvd array of shape (5,) and dtype float32 on cuda:0>"
    interface = s.__cuda_array_interface__
    assert interface["typestr"] == "<f4" and interface["version"] == 3 and interface["stream"] > 2
    for options, error in (
        ({"copy": True}, BufferError),
        ({"dl_device": (1, 0)}, BufferError),
        ({"stream": 0}, ValueError),
        ({"stream": -2}, ValueError),
        ({"stream": "x"}, TypeError),
        ({"max_version": 1}, TypeError),
    ):
        with pytest.raises(error):
            s.__dlpack__(**options)
    again = tsvd.svdvals(s, Raw(np.zeros(4, np.float32)))
    assert same_bits(download(again), download(s))
    with pytest.raises(TypeError):
        tsvd._core.DeviceArray()


@pytest.mark.alone
def test_a_pool_gives_back_what_results_took():
    """Large results that are dropped while no call comes: others can have their memory."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import numpy as np, tsvd
from testing.exporters import Raw, driver
d, e = Raw(np.ones(12000)), Raw(np.ones(11999))
tsvd.svdvals(d, e)
driver("cuCtxSynchronize")
total = tsvd.devices()[1].memory_total
before = tsvd.devices()[1].memory_free
kept = [tsvd.svd(d, e) for _ in range(2 + total // (8 * 2 * 8 * 12000**2))]
taken = before - tsvd.devices()[1].memory_free
assert taken > total // 8, (taken, total)
del kept
driver("cuCtxSynchronize")
assert before - tsvd.devices()[1].memory_free <= total // 8 + 2**26
"""
    run(program, seconds=200)


@pytest.mark.parametrize("way", ["child", "end", "thread"])
def test_results_at_odd_times(way):
    """They are dropped in a forked child, at the end of Python, or by a thread that outlives it."""
    program = f"""
import os, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import numpy as np, tsvd
from testing.exporters import Raw, download
result = tsvd.svd(Raw(np.ones(300)), Raw(np.ones(299)))
capsule = result.L.__dlpack__(stream=-1)
way = {way!r}
if way == "child":
    child = os.fork()
    if child == 0:
        try:
            result.L.__dlpack__()
        except RuntimeError as error:
            assert "forked child" in str(error)
        del result, capsule
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert np.isfinite(download(result.L)).all()
    assert tsvd.svd(Raw(np.ones(300)), Raw(np.ones(299))).s.shape == (300,)
elif way == "thread":
    def hold(result, capsule):
        time.sleep(0.2)
        del result, capsule
    threading.Thread(target=hold, args=(result, capsule), daemon=True).start()
    del result, capsule
"""
    run(program)
