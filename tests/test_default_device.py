"""device=None: large matrices go to a usable CUDA device, all else to the CPU.

A stand-in for the extension module reports the devices and computes on the CPU.
"""

import multiprocessing
import re
from pathlib import Path

import numpy as np
import pytest

import tsvd
from cases import same_bits
from families import make
from tsvd import _api, _core, _libraries

ORDER, VALUES_ORDER = _core.CUDA_ORDER, _core.CUDA_VALUES_ORDER


class Machine:
    """Stands in for _core on a machine with CUDA devices. why: why each cannot be used, or ""."""

    def __init__(self, why=("",), cublas=True, memory=True):
        self.why, self.cublas, self.memory = why, cublas, memory
        self.asked = 0
        self.used = []

    def __getattr__(self, name):
        return getattr(_core, name)

    def cuda_device_count(self):
        self.asked += 1
        if self.why is None:
            raise RuntimeError("CUDA: initialization error")
        return len(self.why), "" if self.why else "no CUDA device"

    def cuda_device_unusable(self, index):
        return self.why[index]

    def cuda_blas(self, major):
        if not self.cublas:
            raise RuntimeError("cuBLAS was not found")
        return "libcublas.so"

    def cuda_library_paths(self, directories):
        pass

    def svd(self, *arguments):
        *others, device = arguments
        self.used.append(device)
        if device >= 0 and not self.memory:
            raise MemoryError("out of memory on CUDA device 0: 9 bytes wanted")
        return _core.svd(*others, -1)


@pytest.fixture
def machine(monkeypatch):
    """A function that replaces _core by a Machine and returns it."""

    def put(**facts):
        made = Machine(**facts)
        for module in (_api, _libraries):
            monkeypatch.setattr(module, "_core", made)
        return made

    for cached in (_api._default_cuda, _libraries.tell_directories):
        cached.cache_clear()
    yield put
    for cached in (_api._default_cuda, _libraries.tell_directories):
        cached.cache_clear()


def svd(n, **options):
    return tsvd.svd(np.ones(n), np.zeros(max(n - 1, 0)), **options)


@pytest.mark.parametrize("method", ["auto", "dc"])
def test_vectors(method, machine):
    made = machine()
    svd(ORDER - 1, method=method)
    assert made.used == [-1] and made.asked == 0  # CUDA was not asked
    svd(ORDER, method=method)
    assert made.used == [-1, 0] and made.asked == 1
    svd(ORDER + 1, method=method)
    assert made.used == [-1, 0, 0] and made.asked == 1  # not a second time


@pytest.mark.parametrize("method", ["auto", "dc", "bisect"])
def test_values(method, machine):
    made = machine(cublas=False)  # values need no products
    svd(VALUES_ORDER - 1, method=method, compute_uv=False)
    tsvd.svdvals(np.ones(VALUES_ORDER - 1), np.zeros(VALUES_ORDER - 2), method=method)
    assert made.used == [-1, -1] and made.asked == 0
    svd(VALUES_ORDER, method=method, compute_uv=False)
    tsvd.svdvals(np.ones(VALUES_ORDER), np.zeros(VALUES_ORDER - 1), method=method)
    assert made.used == [-1, -1, 0, 0]


@pytest.mark.parametrize("method", ["qr", "givens"])
@pytest.mark.parametrize("vectors", [True, False])
def test_methods_that_stay(method, vectors, machine):
    made = machine()
    svd(VALUES_ORDER if not vectors else ORDER, method=method, compute_uv=vectors)
    assert made.used == [-1] and made.asked == 0


def test_what_is_asked_for_wins(machine):
    made = machine(why=("", ""))
    svd(ORDER, device="cpu")
    svd(3, device="cuda")
    svd(3, device=1)
    assert made.used == [-1, 0, 1]


def test_info_says_where(machine):
    machine(why=("no code for it", ""))
    for n, device in ((ORDER - 1, "cpu"), (ORDER, "cuda:1")):
        _, info = svd(n, full_output=True)
        assert info.device == device


@pytest.mark.parametrize(
    "facts",
    [
        {"why": ()},
        {"why": None},
        {"why": ("no code for it", "no code for it")},
        {"cublas": False},
        {"memory": False},
    ],
    ids=["no device", "CUDA fails", "unusable devices", "no cuBLAS", "no memory"],
)
def test_else_the_cpu(facts, machine):
    made = machine(**facts)
    result, info = svd(ORDER, full_output=True)
    assert made.used[-1] == -1 and info.device == "cpu" and info.method == "dc"
    assert same_bits(tuple(result), tuple(tsvd.svd(np.ones(ORDER), np.zeros(ORDER - 1))))


@pytest.mark.parametrize("facts", [{"why": ()}, {"why": None}])
def test_asked_for_it_says_why(facts, machine):
    machine(**facts)
    with pytest.raises(RuntimeError, match="CUDA"):
        svd(ORDER, device="cuda")


def test_no_memory_of_the_host_is_the_end(machine):
    """If the memory of the host is exhausted, the CPU is not tried."""
    made = machine()
    n = 10**7
    with pytest.raises(MemoryError, match="L and R"):
        tsvd.svd(np.broadcast_to(1.0, n), np.broadcast_to(1.0, n - 1))
    assert made.used == [0]


def test_asked_for_it_says_how_much_memory(machine):
    made = machine(memory=False)
    with pytest.raises(MemoryError, match="9 bytes"):
        svd(ORDER, device="cuda")
    assert made.used == [0]


@pytest.mark.parametrize(
    "kind",
    [
        lambda d: d.tolist(),
        lambda d: tuple(d.tolist()),
        lambda d: [d.tolist()] * 2,
        lambda d: np.stack([d, d]),
        lambda d: np.broadcast_to(d, (2, 1, d.size)),
        memoryview,
        lambda d: d.astype(np.float32),
    ],
    ids=["list", "tuple", "nested list", "batch", "broadcast", "memoryview", "float32"],
)
def test_every_kind_of_input_has_an_order(kind, machine):
    made = machine()
    for n in (ORDER - 1, ORDER):
        tsvd.svd(kind(np.ones(n)), np.zeros(n - 1))
    assert made.used == [-1, 0]


@pytest.mark.parametrize("vectors", [False, True])
def test_a_large_batch_goes_to_the_device(vectors, machine):
    made = machine()
    n, batch = 8, _core.CUDA_BATCH_VALUES // 8
    for d, e in (
        (np.ones((batch - 1, n)), np.zeros(n - 1)),
        (np.ones((batch, n)), np.zeros(n - 1)),
        (np.ones(n), np.zeros((2, batch // 2, n - 1))),
    ):
        tsvd.svd(d, e, compute_uv=vectors)
        tsvd.svd(d, e, compute_uv=vectors, method="givens", eps=1e-3)
    assert made.used == [-1, -1, 0, -1, 0, -1]


@pytest.mark.parametrize("d", [None, 3.0, [], "abc", {}, object(), [[1.0, 2.0], [3.0]]])
def test_what_has_no_order_is_refused_as_ever(d, machine):
    made = machine()
    try:
        tsvd.svd(d, [])
    except (TypeError, ValueError):
        pass
    assert made.used == [-1] and made.asked == 0


def _ask_in_child(queue):
    queue.put(_api._default_cuda.cache_info().currsize)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of fork with threads
def test_a_forked_child_asks_again(machine):
    """A forked child cannot use a device that its parent uses."""
    machine()
    svd(ORDER)
    assert _api._default_cuda.cache_info().currsize == 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_ask_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == 0
    child.join(20)
    assert _api._default_cuda.cache_info().currsize == 1


def test_the_documented_orders():
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    doc, readme = (re.sub(r"\s+", " ", text) for text in (tsvd.svd.__doc__, readme))
    assert f"from n = {ORDER} on for vectors" in doc
    assert f"from n = {VALUES_ORDER} on for values" in doc
    assert f"n ≥ {ORDER} and vectors" in readme and f"n ≥ {VALUES_ORDER} and values" in readme
    assert f"batches that have {_core.CUDA_BATCH_VALUES} values" in doc
    assert f"batches of {_core.CUDA_BATCH_VALUES} values" in readme


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_on_a_device():
    for n, device in ((ORDER - 1, "cpu"), (ORDER, "cuda:0")):
        d, e = make("chi", n)
        result, info = tsvd.svd(d, e, full_output=True)
        assert info.device == device and info.method == "dc"
        assert same_bits(tuple(result), tuple(tsvd.svd(d, e, device=device)))
    d, e = make("chi", VALUES_ORDER)
    _, info = tsvd.svd(d, e, compute_uv=False, full_output=True)
    assert info.device == "cuda:0"
