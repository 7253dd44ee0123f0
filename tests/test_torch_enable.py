"""torch.linalg.svd and what rests on it, with tsvd.torch.enable()."""

import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402
from tsvd import _torch_enable, linalg  # noqa: E402

# PyTorch's own forward mode and compiler warn of PyTorch's own use of it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated"),
    pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="PyTorch is too old"),
]

L = torch.linalg
TYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(1, 1), (4, 4), (6, 3), (3, 6), (30, 20), (2, 5, 3), (2, 2, 3, 5), (3, 4, 4)]


@pytest.fixture(autouse=True)
def nothing_stays_enabled():
    yield
    tsvd.torch.disable()
    assert not tsvd.torch.is_enabled()


@pytest.fixture
def calls(monkeypatch):
    """The shapes of the matrices that tsvd decomposes."""
    shapes, svd = [], linalg.svd

    def counting(a, *arguments, **options):
        shapes.append(tuple(a.shape))
        return svd(a, *arguments, **options)

    monkeypatch.setattr(linalg, "svd", counting)
    return shapes


def matrices(*shape, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype).to(device)


def parts(result):
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def check(ours, theirs, **tolerance):
    for x, y in zip(parts(ours), parts(theirs), strict=True):
        assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
        torch.testing.assert_close(x, y, **tolerance)


def tolerance(a):
    """cuSOLVER's values of single precision are off by 27 eps of their size."""
    return {"rtol": 1e-5, "atol": 1e-5} if a.is_cuda and a.dtype in TYPES[::2] else {}


# ---- what runs on tsvd ----

FUNCTIONS = {
    "svd": lambda a: product(L.svd(a)),
    "svd, reduced": lambda a: product(L.svd(a, full_matrices=False)),
    "torch.svd": lambda a: product(torch.svd(a), lambda Q: Q.mH),
    "values of svd": lambda a: L.svd(a)[1],
    "svdvals": L.svdvals,
    "torch.svd without vectors": lambda a: torch.svd(a, compute_uv=False)[1],
    "pinv": L.pinv,
    "matrix_rank": L.matrix_rank,
    "1 / cond": lambda a: 1 / L.cond(a),
    "cond, -2": lambda a: L.cond(a, -2),
    "matrix_norm, 2": lambda a: L.matrix_norm(a, 2),
    "matrix_norm, -2": lambda a: L.matrix_norm(a, -2),
    "nuclear norm": lambda a: L.matrix_norm(a, "nuc", keepdim=True),
    "norm of other dimensions": lambda a: L.norm(a, "nuc", (0, 1)),
}


def product(result, adjoint=lambda Q: Q):
    """What signs and phases do not change."""
    U, S, Vh = result
    Vh, k = adjoint(Vh), S.shape[-1]
    return (U[..., :k] * S.tanh()[..., None, :]) @ Vh[..., :k, :]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name, shape, dtype, device, calls):
    function, a = FUNCTIONS[name], matrices(*shape, dtype=dtype, device=device)
    theirs = function(a)
    assert not calls
    with tsvd.torch.enabled():
        ours = function(a)
    assert calls
    check(ours, theirs, **tolerance(a))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 3), (3, 0), (0, 3, 2), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("full_matrices", [False, True])
def test_layouts(full_matrices, shape, dtype, device):
    a = matrices(*shape, dtype=dtype, device=device)
    theirs = L.svd(a, full_matrices)
    with tsvd.torch.enabled():
        ours = L.svd(a, full_matrices)
    assert type(ours) is type(theirs)
    assert [x.stride() for x in ours] == [x.stride() for x in theirs]
    check(ours.S, theirs.S, **tolerance(a))
    for Q in (ours.U, ours.Vh.mH):
        check(Q.mH @ Q, torch.eye(Q.shape[-1], dtype=dtype, device=device).expand_as(Q.mH @ Q))
    if a.numel():
        U, S, Vh = ours
        k = S.shape[-1]
        check((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], a)


def views():
    a = matrices(2, 6, 4, dtype=torch.complex128)
    real = matrices(9, 8)
    return {
        "transposed": a.mT,
        "conjugate": a.conj(),
        "adjoint": a.mH,
        "real part": a.real,
        "imaginary part of a conjugate": a.conj().imag,
        "steps": real[::3, ::2],
        "reversed": real.flip(0),
        "expanded": real[0:3].expand(4, 3, 8),
        "read only": torch.from_numpy(real.numpy().copy()),
    }


@pytest.mark.parametrize("name", views())
def test_views(name, calls):
    a = views()[name]
    theirs = L.svdvals(a), product(L.svd(a, full_matrices=False))
    with tsvd.torch.enabled():
        ours = L.svdvals(a), product(L.svd(a, full_matrices=False))
    assert len(calls) == 2
    check(ours, theirs)


@pytest.mark.parametrize("function", [torch.svd_lowrank, torch.pca_lowrank])
def test_low_rank(function, calls):
    a = matrices(20, 3) @ matrices(3, 12)
    with tsvd.torch.enabled():
        U, S, V = function(a, 3, niter=4)
    assert calls
    if function is torch.svd_lowrank:
        check(U * S @ V.mT, a)


def test_results_go_into_given_tensors(device, calls):
    a = matrices(5, 3, device=device)
    theirs = L.svd(a, False)
    empty = tuple(a.new_empty(0) for _ in range(3))
    whole = tuple(torch.full_like(x, 9) for x in theirs)
    rows = tuple(torch.full_like(x.contiguous(), 9) for x in theirs)
    with tsvd.torch.enabled():
        for out in (empty, whole, rows):
            result = L.svd(a, False, out=out)
            assert all(x is y for x, y in zip(result, out, strict=True))
            check(product(out), product(theirs))
        assert [x.stride() for x in empty] == [x.stride() for x in theirs]
        assert len(calls) == 3
        s = L.svdvals(a, out=a.new_empty(3))
        check(s, theirs.S)
        with pytest.warns(UserWarning, match="resized"):
            L.svdvals(a, out=a.new_empty(4))
        with pytest.raises(RuntimeError, match="dtype"):
            L.svdvals(a, out=a.new_empty(3, dtype=torch.int64))


# ---- what stays PyTorch's ----


def raised(function):
    """The kind and the first line of an error, or the result."""
    try:
        return function()
    except Exception as error:
        return type(error), str(error).partition("\n")[0].partition(" is only available for")[0]


REFUSED = {
    "a vector": lambda: L.svd(torch.ones(3)),
    "half": lambda: L.svd(torch.ones(2, 2, dtype=torch.float16)),
    "bfloat16": lambda: L.svdvals(torch.ones(2, 2, dtype=torch.bfloat16)),
    "integers": lambda: L.svd(torch.ones(2, 2, dtype=torch.int64)),
    "a driver": lambda: L.svd(torch.ones(2, 2), driver="gesvd"),
    "NaN": lambda: L.svd(torch.full((2, 2), torch.nan)),
    "NaN in a batch": lambda: L.svdvals(torch.tensor([[[1.0]], [[torch.nan]]])),
    "sparse": lambda: L.svd(torch.ones(2, 2).to_sparse()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_those_of_pytorch(name):
    theirs = raised(REFUSED[name])
    assert issubclass(theirs[0], Exception)
    with tsvd.torch.enabled():
        assert raised(REFUSED[name]) == theirs


def test_infinite_numbers_give_what_pytorch_gives():
    a = torch.tensor([[1.0, torch.inf], [2.0, 3.0]])
    theirs = raised(lambda: L.svdvals(a))
    with tsvd.torch.enabled():
        ours = raised(lambda: L.svdvals(a))
    assert str(ours) == str(theirs)


@pytest.mark.parametrize(
    "error", [MemoryError, NotImplementedError, ModuleNotFoundError, linalg.LinAlgError]
)
def test_what_tsvd_refuses_is_computed_by_pytorch(error, monkeypatch):
    def refusing(*_, **__):
        raise error("no")

    monkeypatch.setattr(linalg, "svd", refusing)
    a = matrices(4, 3)
    with tsvd.torch.enabled():
        ours = L.svd(a, False), L.svd(a, False, out=tuple(a.new_empty(0) for _ in range(3)))
    for result in ours:
        check(product(result), product(L.svd(a, False)))


def test_other_errors_come_through(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(linalg, "svd", broken)
    with tsvd.torch.enabled(), pytest.raises(RuntimeError, match="the device is lost"):
        L.svd(matrices(4, 3))


def test_meta_and_fake_tensors_are_not_computed(calls):
    from torch._subclasses import FakeTensorMode

    with tsvd.torch.enabled():
        U, S, Vh = L.svd(torch.empty(5, 3, device="meta"), False)
        assert (U.shape, S.shape, Vh.shape) == ((5, 3), (3,), (3, 3))
        with FakeTensorMode() as mode:
            assert L.svdvals(mode.from_tensor(matrices(5, 3))).shape == (3,)
    assert not calls


def test_values_with_hermitian_are_those_of_eigh(calls):
    with tsvd.torch.enabled():
        L.pinv(torch.eye(3), hermitian=True), L.matrix_rank(torch.eye(3), hermitian=True)
    assert not calls


def test_an_older_pytorch_is_refused(monkeypatch):
    monkeypatch.delattr(torch.library, "get_kernel")
    with pytest.raises(RuntimeError, match=r"needs PyTorch 2\.9"):
        tsvd.torch.enable()
    with pytest.raises(RuntimeError, match=r"needs PyTorch 2\.9"), tsvd.torch.enabled():
        pass
    assert not tsvd.torch.is_enabled()


# ---- derivatives and transformations ----


def smooth(a):
    """Depends on values and vectors of all kinds of calls, and not on signs and phases."""
    U, S, Vh = L.svd(a, full_matrices=False)
    largest = (U[..., :1] * S[..., None, :1]) @ Vh[..., :1, :]
    return largest.abs().square().sum() + L.svdvals(a).exp().sum() + L.pinv(a).abs().sum()


def ones_like_values(a):
    return a.new_ones(*a.shape[:-2], min(a.shape[-2:]))


func = torch.func
ONE = {
    "backward": lambda a: torch.autograd.grad(smooth(a.requires_grad_()), a)[0],
    "grad": func.grad(smooth),
    "second backward": lambda a: torch.autograd.functional.hvp(smooth, a, a)[1],
    "jvp": lambda a: func.jvp(smooth, (a,), (a.cos(),)),
    "vjp": lambda a: func.vjp(L.svdvals, a)[1](ones_like_values(a))[0],
    "jacrev": lambda a: func.jacrev(L.svdvals)(a),
    "jacfwd": lambda a: func.jacfwd(L.pinv)(a),
    "hessian": lambda a: func.hessian(smooth)(a),
    "vmap": lambda a: func.vmap(smooth)(torch.stack([a, a.cos()])),
    "vmap of grad": lambda a: func.vmap(func.grad(smooth), in_dims=1)(torch.stack([a] * 2, 1)),
    "grad of vmap": lambda a: func.grad(lambda a: func.vmap(smooth)(a).sum())(
        a.expand(2, *a.shape)
    ),
    "vmap of svdvals, chunked": lambda a: func.vmap(L.svdvals, chunk_size=1)(torch.stack([a, a])),
    "inference mode": torch.inference_mode()(smooth),
    "no_grad": torch.no_grad()(smooth),
    "checkpoint": lambda a: torch.autograd.grad(
        torch.utils.checkpoint.checkpoint(smooth, a.requires_grad_(), use_reentrant=False), a
    )[0],
}


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("name", ONE)
def test_transformations(name, shape, calls):
    theirs = ONE[name](matrices(*shape))
    assert not calls
    with tsvd.torch.enabled():
        ours = ONE[name](matrices(*shape))
    assert calls
    check(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_derivatives_against_differences(shape, dtype):
    a = matrices(*shape, dtype=dtype).requires_grad_()
    with tsvd.torch.enabled():
        torch.autograd.gradcheck(smooth, a, check_forward_ad=True)
        torch.autograd.gradgradcheck(smooth, a)


def test_derivatives_of_full_matrices_are_those_of_pytorch():
    def function(a):
        U, S, Vh = L.svd(a)
        return (U[..., :3] @ Vh).sum() + S.prod()

    theirs = func.grad(function)(matrices(5, 3))
    with tsvd.torch.enabled():
        check(func.grad(function)(matrices(5, 3)), theirs)


@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4)], ids=str)
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_compiled(shape, backend, calls):
    """One graph, whose backward relies on the promised strides; compiled before and after."""
    torch.compiler.reset()
    compiled = torch.compile(smooth, backend=backend, fullgraph=True)
    a = matrices(*shape).requires_grad_()
    theirs = torch.autograd.grad(smooth(a), a)[0]
    for before in (True, False):
        if before:
            check(torch.autograd.grad(compiled(a), a)[0], theirs, rtol=1e-9, atol=1e-9)
            assert not calls
        with tsvd.torch.enabled():
            check(torch.autograd.grad(compiled(a), a)[0], theirs, rtol=1e-9, atol=1e-9)
        assert calls
        calls.clear()
        torch.compiler.reset()
    check(torch.autograd.grad(compiled(a), a)[0], theirs, rtol=1e-9, atol=1e-9)
    assert not calls


def test_a_traced_graph_has_the_operator():
    from torch.fx.experimental.proxy_tensor import make_fx

    a = matrices(4, 3)
    with tsvd.torch.enabled():
        graph = make_fx(L.svdvals)(a)
        assert "_linalg_svd" in graph.code
        check(graph(a + 1), L.svdvals(a + 1))


def test_autocast(calls):
    a, b = matrices(8, 8).float(), matrices(8, 8).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs = raised(lambda: L.svdvals(a @ b))
        with tsvd.torch.enabled():
            ours = raised(lambda: L.svdvals(a @ b))
            s = L.svdvals(a)
    assert str(ours) == str(theirs)
    check(s, L.svdvals(a))


def test_a_default_device_changes_nothing():
    a = matrices(4, 3)
    with tsvd.torch.enabled(), torch.device("meta"):
        assert [x.device.type for x in L.svd(a)] == ["cpu"] * 3


def test_subclasses_and_modes_see_what_they_see_without():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    def calls():
        seen.clear()
        kinds = {type(x) for x in L.svd(matrices(4, 3).as_subclass(Tensor))}
        a = matrices(4, 3)
        with Functions():
            L.svd(a)
        with Operators():
            L.svd(a)
        L.svdvals(torch.nn.Parameter(a))
        return kinds, list(seen)

    theirs = calls()
    with tsvd.torch.enabled():
        assert calls() == theirs


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forked_workers():
    """As those of a DataLoader."""
    multiprocessing = pytest.importorskip("torch.multiprocessing")
    L.svdvals(matrices(40, 30))
    with tsvd.torch.enabled():
        theirs = L.svdvals(matrices(40, 30))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.map(_values_of, [theirs.shape[0] + 10] * 4, chunksize=1)
    assert all(r == theirs.tolist() for r in results)


def _values_of(rows):
    return L.svdvals(matrices(rows, 30)).tolist()


def test_threads_are_those_of_pytorch(monkeypatch):
    seen, svd = [], linalg.svd

    def watching(a, *arguments, threads, device, **options):
        seen.append((threads, device))
        return svd(a, *arguments, threads=threads, device=device, **options)

    monkeypatch.setattr(linalg, "svd", watching)
    before = torch.get_num_threads()
    with tsvd.torch.enabled():
        for count in (1, 2):
            torch.set_num_threads(count)
            L.svdvals(matrices(4, 3))
    torch.set_num_threads(before)
    assert seen == [(1, "cpu"), (2, "cpu")]


# ---- on and off ----


def test_twice_is_as_once(calls):
    a = matrices(4, 3)
    tsvd.torch.disable()
    tsvd.torch.enable()
    tsvd.torch.enable()
    L.svdvals(a)
    assert len(calls) == 1 and tsvd.torch.is_enabled()
    tsvd.torch.disable()
    L.svdvals(a)
    tsvd.torch.disable()
    assert len(calls) == 1 and not tsvd.torch.is_enabled()


def test_blocks_are_nested(calls):
    with tsvd.torch.enabled():
        with tsvd.torch.enabled():
            pass
        assert tsvd.torch.is_enabled()
        tsvd.torch.disable()
        assert tsvd.torch.is_enabled()
        tsvd.torch.enable()
    assert tsvd.torch.is_enabled()
    tsvd.torch.disable()
    with pytest.raises(KeyError), tsvd.torch.enabled():
        raise KeyError
    assert not tsvd.torch.is_enabled()


def test_a_decorator(calls):
    @tsvd.torch.enabled()
    def function(a):
        return L.svdvals(a)

    for _ in range(2):
        function(matrices(4, 3))
    assert len(calls) == 2 and not tsvd.torch.is_enabled()


def test_nothing_is_printed():
    """Nor warned of, in a process of its own, where PyTorch has not warned before."""
    program = (
        "import torch, tsvd.torch\n"
        "tsvd.torch.enable(); torch.linalg.svd(torch.ones(3, 3)); tsvd.torch.disable()\n"
        "tsvd.torch.enable(); print(torch.linalg.matrix_rank(torch.ones(3, 3)).item())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_threads_may_compute_while_it_is_switched():
    a = matrices(5, 3)
    expected, failures, stop = func.grad(smooth)(a), [], threading.Event()

    def work(switching):
        try:
            for _ in range(100):
                if switching:
                    with tsvd.torch.enabled():
                        pass
                    tsvd.torch.enable()
                    tsvd.torch.disable()
                else:
                    x = a.clone().requires_grad_()
                    smooth(x).backward()
                    check(x.grad, expected, rtol=1e-9, atol=1e-9)
        except BaseException as error:
            failures.append(error)
        finally:
            stop.set()

    threads = [threading.Thread(target=work, args=(i < 2,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and not tsvd.torch.is_enabled()


# ---- CUDA ----


@pytest.mark.cuda
def test_drivers_are_accepted_on_cuda(cuda, calls):
    a = matrices(5, 3, device="cuda")
    with tsvd.torch.enabled():
        for driver in ("gesvd", "gesvdj", "gesvda"):
            check(L.svdvals(a, driver=driver), L.svdvals(a))
        assert len(calls) == 6
        with pytest.raises(RuntimeError, match="driver"):
            L.svd(a, driver="gesdd")


@pytest.mark.cuda
def test_streams(cuda):
    stream = torch.cuda.Stream()
    a = matrices(64, 64, device="cuda")
    theirs = L.svdvals(a @ a)
    with tsvd.torch.enabled(), torch.cuda.stream(stream):
        ours = L.svdvals(a @ a)
    stream.synchronize()
    check(ours, theirs)


@pytest.mark.cuda
@pytest.mark.parametrize("shape", [(5, 3), (3, 5)], ids=str)
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_compiled_on_cuda(shape, cuda):
    torch.compiler.reset()
    compiled = torch.compile(smooth, fullgraph=True)
    a = matrices(*shape, device="cuda").requires_grad_()
    theirs = torch.autograd.grad(smooth(a), a)[0]
    with tsvd.torch.enabled():
        check(torch.autograd.grad(compiled(a), a)[0], theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.cuda
def test_what_a_graph_captures_is_left_to_pytorch(cuda, calls):
    """PyTorch's own kernel waits for the device, and says that a graph cannot have that."""
    a, graph = matrices(8, 8, device="cuda"), torch.cuda.CUDAGraph()
    L.svdvals(a)
    with tsvd.torch.enabled(), pytest.raises(RuntimeError), torch.cuda.graph(graph):
        L.svdvals(a)
    torch.cuda.synchronize()
    assert not calls


@pytest.mark.cuda
def test_not_finite_numbers_on_cuda(cuda):
    a = torch.full((2, 2), torch.nan, device="cuda")
    theirs = raised(lambda: L.svdvals(a))
    with tsvd.torch.enabled():
        assert str(raised(lambda: L.svdvals(a))) == str(theirs)


def test_a_device_that_tsvd_cannot_use_is_named_once(monkeypatch):
    monkeypatch.setattr(_torch_enable, "opens_dense", lambda index: False)
    _torch_enable._is_offered.cache_clear()
    with pytest.warns(RuntimeWarning, match="tsvd cannot use cuda:7"):
        assert not _torch_enable._is_offered(7)
    assert not _torch_enable._is_offered(7)
    _torch_enable._is_offered.cache_clear()
