"""Arrays on the second GPU while the first is the current device."""

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tsvd
from tsvd import linalg

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.two_gpus,
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.filterwarnings("default"),  # the libraries warn of what is no matter here
]

HERE, THERE = 0, 1


class Torch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if self.torch.cuda.device_count() < 2:
            pytest.skip("PyTorch sees no two GPUs")
        self.torch.cuda.set_device(HERE)

    def put(self, array):
        return self.torch.from_numpy(array).to(f"cuda:{THERE}")

    def get(self, x):
        assert x.device == self.torch.device(f"cuda:{THERE}")
        return x.cpu().numpy()

    def current(self):
        return self.torch.cuda.current_device()


class CuPy:
    def __init__(self):
        self.cupy = pytest.importorskip("cupy")
        self.cupy.cuda.Device(HERE).use()

    def put(self, array):
        with self.cupy.cuda.Device(THERE):
            return self.cupy.asarray(array)

    def get(self, x):
        assert x.device.id == THERE
        return self.cupy.asnumpy(x)

    def current(self):
        return self.cupy.cuda.runtime.getDevice()


class JAX:
    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax = pytest.importorskip("jax")
        try:
            self.device = self.jax.devices("gpu")[THERE]
        except (RuntimeError, IndexError) as error:
            pytest.skip(f"JAX sees no two GPUs: {error}")
        self.jax.config.update("jax_enable_x64", True)

    def put(self, array):
        return self.jax.device_put(array, self.device)

    def get(self, x):
        assert x.devices() == {self.device}
        return np.asarray(x)

    def current(self):
        return HERE  # it has none


class Plain:
    """A CUDA array interface and nothing else."""

    def __init__(self, x):
        self.keep, self.__cuda_array_interface__ = x, x.__cuda_array_interface__


class NoLibrary(Torch):
    def put(self, array):
        return Plain(super().put(array))

    def get(self, x):
        assert x.__dlpack_device__() == (2, THERE)
        return super().get(self.torch.from_dlpack(x))


LIBRARIES = {"torch": Torch, "cupy": CuPy, "jax": JAX, "raw": NoLibrary}


@pytest.fixture(params=LIBRARIES)
def library(request):
    gc.collect()  # arrays of JAX that go later would change the current device
    return LIBRARIES[request.param]()


@pytest.fixture
def torch():
    return Torch().torch


def bidiagonal(n):
    rng = np.random.default_rng(n)
    return rng.random(n) + 0.5, rng.random(n - 1)


def dense(*shape):
    return np.random.default_rng(7).standard_normal(shape)


def near(got, want):
    assert np.allclose(got, want, rtol=1e-9, atol=1e-9)


CALLS = {
    "svd": (lambda d, e: tuple(tsvd.svd(d, e)), bidiagonal(300)),
    "select": (lambda d, e: tuple(tsvd.svd(d, e, select="v", select_range=(1, 9))), bidiagonal(90)),
    "svdvals": (lambda d, e: (tsvd.svdvals(d, e),), bidiagonal(300)),
    "linalg.svd": (lambda a: tuple(linalg.svd(a, False)), (dense(90, 70),)),
    "linalg.svdvals": (lambda a: (linalg.svdvals(a),), (dense(3, 40, 60),)),
    "linalg.inv": (lambda a: (linalg.inv(a),), (dense(3, 50, 50),)),
}


@pytest.mark.parametrize("call", CALLS)
def test_results_lie_where_the_arrays_do(library, call):
    function, arrays = CALLS[call]
    results = [library.get(x) for x in function(*map(library.put, arrays))]
    assert library.current() == HERE
    for got, want in zip(results, function(*arrays), strict=True):
        near(abs(got), abs(want))


def test_dtypes_and_strides(library):
    a = np.arange(35).reshape(5, 7) % 11
    integers = [] if isinstance(library, NoLibrary) else [a]  # nothing converts its arrays
    for x in (*integers, a.astype(np.float32), a.astype(float).T):
        got = library.get(linalg.svdvals(library.put(np.ascontiguousarray(x))))
        assert np.allclose(got, linalg.svdvals(a), rtol=1e-9 if x.dtype == float else 1e-5)
    assert library.current() == HERE


def test_a_bidiagonal_form(library):
    a = dense(30, 20)
    form = linalg.bidiagonalize(library.put(a))
    near(library.get(form.d), linalg.bidiagonalize(a).d)
    near(library.get(form.svdvals()), linalg.svdvals(a))
    if not isinstance(library, NoLibrary):
        near(library.get(form.form_q()), linalg.bidiagonalize(a).form_q())
    assert library.current() == HERE


def test_copies_of_a_bidiagonal_form(torch):
    a = torch.from_numpy(dense(30, 20)).to(f"cuda:{THERE}")
    form = linalg.bidiagonalize(a)
    for other in (copy.deepcopy(form), pickle.loads(pickle.dumps(form))):
        assert torch.equal(other.svd().U, form.svd().U) and other.d.device == a.device
    assert torch.cuda.current_device() == HERE


def test_out(torch):
    there = torch.device(f"cuda:{THERE}")
    d, e = (torch.from_numpy(x).to(there) for x in bidiagonal(60))
    out = tuple(torch.empty(s, dtype=d.dtype, device=there) for s in ((60, 60), (60,), (60, 60)))
    tsvd.svd(d, e, out=out)
    assert torch.equal(out[1], tsvd.svd(d, e).s) and torch.cuda.current_device() == HERE


def test_streams_of_the_other_device(torch):
    """The work comes after what is under way in the stream of the tensor's device."""
    there = torch.device(f"cuda:{THERE}")
    d, e = (torch.from_numpy(x).to(there) for x in bidiagonal(300))
    want = tsvd.svdvals(d, e)
    stream = torch.cuda.Stream(there)
    stream.wait_stream(torch.cuda.current_stream(there))
    with torch.cuda.stream(stream):
        late = torch.zeros_like(d)
        torch.cuda._sleep(20_000_000)
        late.copy_(d)
        inside = tsvd.svdvals(late, e)
    with torch.cuda.device(HERE):
        named = tsvd.svdvals(late, e, stream=stream)
    torch.cuda.synchronize(there)
    near(inside.cpu(), want.cpu())
    near(named.cpu(), want.cpu())
    assert torch.cuda.current_device() == HERE


@pytest.mark.parametrize("name", ["svd", "svdvals", "linalg_svd", "linalg_svdvals"])
def test_derivatives(torch, name):
    tsvd_torch = pytest.importorskip("tsvd.torch")
    function = getattr(tsvd_torch, name)
    arrays = (dense(12, 9),) if "linalg" in name else bidiagonal(20)
    gradients = []
    for place in ("cpu", f"cuda:{THERE}"):
        tensors = [torch.tensor(x, device=place, requires_grad=True) for x in arrays]
        result = function(*tensors)
        s = result[1] if isinstance(result, tuple) else result
        (s**3).sum().backward()
        assert all(x.grad.device == x.device for x in tensors)
        gradients.append([x.grad.cpu().numpy() for x in tensors])
    for got, want in zip(*gradients, strict=True):
        near(got, want)
    assert torch.cuda.current_device() == HERE


def test_threads_on_both_devices(torch):
    d, e = (torch.from_numpy(x) for x in bidiagonal(200))
    want = tsvd.svdvals(d, e)

    def work(i):
        place = f"cuda:{i % 2}"
        got = tsvd.svdvals(d.to(place), e.to(place))
        assert str(got.device) == place and torch.cuda.current_device() == HERE
        near(got.cpu(), want)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))


def test_arrays_on_both_devices_are_refused(torch):
    d, e = (torch.from_numpy(x) for x in bidiagonal(20))
    with pytest.raises(ValueError, match="one place"):
        tsvd.svd(d.to(f"cuda:{HERE}"), e.to(f"cuda:{THERE}"))


def test_the_functions_of_torch_linalg(torch):
    """By tsvd.torch.enable(), by tsvd.torch.linalg, and in graphs."""
    tsvd_torch = pytest.importorskip("tsvd.torch")
    host = torch.from_numpy(dense(3, 12, 9)).requires_grad_()
    there = host.detach().to(f"cuda:{THERE}").requires_grad_()

    def loss(linalg, a):
        return linalg.pinv(a).sum() + linalg.svd(a, full_matrices=False).S.sum()

    [want] = torch.autograd.grad(loss(torch.linalg, host), host)
    torch.compiler.reset()
    compiled = torch.compile(loss, backend="aot_eager")
    for namespace, function in (
        (torch.linalg, loss),
        (torch.linalg, compiled),
        (tsvd_torch.linalg, loss),
        (tsvd_torch.linalg, compiled),
    ):
        with tsvd_torch.enabled():
            [got] = torch.autograd.grad(function(namespace, there), there)
        assert got.device == there.device and torch.cuda.current_device() == HERE
        near(got.cpu(), want)


def test_enabled_and_streams_of_the_other_device(torch):
    tsvd_torch = pytest.importorskip("tsvd.torch")
    there = torch.device(f"cuda:{THERE}")
    a = torch.from_numpy(dense(40, 30)).to(there)
    stream = torch.cuda.Stream(there)
    stream.wait_stream(torch.cuda.current_stream(there))
    with tsvd_torch.enabled(), torch.cuda.stream(stream):
        late = torch.zeros_like(a)
        torch.cuda._sleep(20_000_000)
        late.copy_(a)
        values = torch.linalg.svdvals(late)
    torch.cuda.synchronize(there)
    near(values.cpu(), torch.linalg.svdvals(a).cpu())
    assert torch.cuda.current_device() == HERE


def test_each_gpu_computes_its_part_of_a_batch_of_jax():
    jax = JAX().jax
    tsvd_jax = pytest.importorskip("tsvd.jax")
    mesh = jax.sharding.Mesh(np.array(jax.devices("gpu")[:2]), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    a = dense(6, 20, 20)
    parts = jax.device_put(a, sharding)
    for function in (
        lambda a: tsvd_jax.linalg_svd(a).S,
        tsvd_jax.linalg_svdvals,
        tsvd_jax.inv,
        tsvd_jax.linalg.pinv,
        jax.grad(lambda a: (tsvd_jax.linalg_svdvals(a) ** 3).sum()),
    ):
        compiled = jax.jit(function).lower(parts).compile()
        assert "all-gather" not in compiled.as_text()
        got = compiled(parts)
        assert {len(part.data) for part in got.addressable_shards} == {3}
        near(got, function(jax.device_put(a, jax.devices("cpu")[0])))
