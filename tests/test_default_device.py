"""device=None: large matrices go to a usable CUDA device, all else to the CPU.

A stand-in for the extension module reports the devices and computes on the CPU.
"""

import multiprocessing
import re
from pathlib import Path

import numpy as np
import pytest

import tsvd
from testing.cases import same_bits
from testing.families import make
from tsvd import _api, _core, _dense, _devices, _libraries, linalg

ORDER, VALUES_ORDER = _core.CUDA_ORDER, _core.CUDA_VALUES_ORDER

# What the speed of a device depends on: compute capability, multiprocessors, clock in kHz, and
# operations in float32 for one in float64.
H200 = (9, 0, 132, 1_980_000, 2)
A100 = (8, 0, 108, 1_410_000, 2)
V100 = (7, 0, 80, 1_530_000, 2)
P100 = (6, 0, 56, 1_480_500, 2)
RTX_5090 = (12, 0, 170, 2_407_000, 64)
RTX_4090 = (8, 9, 128, 2_520_000, 64)
T4 = (7, 5, 40, 1_590_000, 32)
UNKNOWN = (9, 0, 0, 0, 0)


class Machine:
    """Stands in for _core on a machine with CUDA devices.

    why: why each cannot be used, or "". opens: why the first use of a device fails, or "". memory:
    True, or the exception of a computation on a device. dense: whether it takes dense matrices.
    """

    def __init__(self, why=("",), cublas=True, memory=True, opens="", rates=H200, dense=True):
        self.why, self.cublas, self.memory, self.opens = why, cublas, memory, opens
        self.rates, self.dense = rates, dense
        self.asked = 0
        self.used, self.opened = [], []

    def __getattr__(self, name):
        return getattr(_core, name)

    def cuda_device_count(self):
        self.asked += 1
        if self.why is None:
            raise RuntimeError("CUDA: initialization error")
        return len(self.why), "" if self.why else "no CUDA device"

    def cuda_device_unusable(self, index):
        return self.why[index]

    def cuda_device(self, index):
        major, minor, multiprocessors, clock_khz, single_to_double = self.rates
        return {
            "compute_capability": (major, minor),
            "multiprocessors": multiprocessors,
            "clock_khz": clock_khz,
            "single_to_double": single_to_double,
        }

    def cuda_open(self, index):
        self.opened.append(index)
        if self.opens:
            raise self.opens

    def cuda_blas(self, major):
        if not self.cublas:
            raise RuntimeError("cuBLAS was not found")
        return "libcublas.so"

    def cuda_library_paths(self, directories):
        pass

    def dense_offered(self, device):
        return self.dense

    def dense_direct(self, inputs, options, device):
        return _core.dense_direct(inputs, options, -1)

    def _call(self, function, *arguments):
        *others, device = arguments
        self.used.append(device)
        if device >= 0 and self.memory is not True:
            raise self.memory
        return function(*others, -1)

    def svd(self, *arguments):
        return self._call(_core.svd, *arguments)

    def dense_svd(self, *arguments):
        return self._call(_core.dense_svd, *arguments)

    def reduce(self, *arguments):
        return self._call(_core.reduce, *arguments)

    def inv(self, *arguments):
        return self._call(_core.inv, *arguments)


@pytest.fixture
def machine(monkeypatch):
    """A function that replaces _core by a Machine and returns it."""

    def put(**facts):
        made = Machine(**facts)
        for module in (_api, _dense, _devices, _libraries):
            monkeypatch.setattr(module, "_core", made)
        return made

    caches = (
        _devices.first_cuda,
        _devices.opens,
        _devices.opens_dense,
        _libraries.prepare_cuda,
    )
    for cached in caches:
        cached.cache_clear()
    yield put
    for cached in caches:
        cached.cache_clear()


def exhausted(text="9 bytes wanted", device=0):
    """What _core raises if the memory of a CUDA device (None: of the host) is exhausted."""
    error = MemoryError(text)
    if device is not None:
        error.device = device
    return error


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
        {"memory": exhausted()},
        {"opens": RuntimeError("all CUDA-capable devices are busy")},
        {"opens": exhausted()},
        {"rates": RTX_4090},
        {"rates": UNKNOWN},
    ],
    ids=[
        "no device",
        "CUDA fails",
        "unusable devices",
        "no cuBLAS",
        "no memory",
        "busy",
        "no memory for a context",
        "too slow",
        "of unknown speed",
    ],
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


def test_the_text_of_an_error_decides_nothing(machine):
    """Whose memory is exhausted is told by a number, not by words."""
    made = machine(memory=exhausted("the words CUDA device", device=None))
    with pytest.raises(MemoryError, match="the words"):
        svd(ORDER)
    assert made.used == [0]
    made.memory = exhausted("no words")
    svd(ORDER)
    assert made.used == [0, 0, -1]


def test_an_error_names_its_device():
    count, _ = _core.cuda_device_count()
    with pytest.raises(RuntimeError) as caught:
        _core.cuda_open(count)
    assert caught.value.device == count
    with pytest.raises(ValueError, match="NaN") as caught:
        tsvd.svdvals([np.nan], [])
    assert not hasattr(caught.value, "device")


def test_a_device_without_memory_is_tried_again(machine):
    """But one that cannot be used at all is not."""
    made = machine(opens=exhausted())
    svd(ORDER)
    made.opens = ""
    svd(ORDER)
    assert made.used == [-1, 0] and made.opened == [0, 0]
    svd(ORDER)
    assert made.opened == [0, 0]


def test_a_device_that_cannot_be_opened_is_not_tried_again(machine):
    made = machine(opens=RuntimeError("busy"))
    svd(ORDER)
    svd(ORDER)
    assert made.used == [-1, -1] and made.opened == [0]


def test_only_the_device_that_is_taken_is_used(machine):
    """To open a device takes some of its memory."""
    made = machine(why=("no code for it", "", ""))
    svd(ORDER - 1)
    assert made.opened == []
    svd(ORDER)
    assert made.opened == [1] and made.used == [-1, 1]
    made = machine(rates=RTX_4090)
    _devices.first_cuda.cache_clear()
    svd(ORDER)
    assert made.opened == [] and made.used == [-1]


def test_asked_for_it_says_how_much_memory(machine):
    made = machine(memory=exhausted())
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


@pytest.mark.parametrize("vectors", [False, True])
def test_a_batch_of_both_counts_in_full(vectors, machine):
    """d (a, 1, n) and e (1, b, n-1) are a b matrices."""
    made = machine()
    n, side = 8, 128
    assert side * side * n == _core.CUDA_BATCH_VALUES
    d, e = np.ones((side, 1, n)), np.zeros((1, side, n - 1))
    for shapes in ((d, e), (d[1:], e), (d[0], e[0]), (d, e[0]), (d[:0], e)):
        tsvd.svd(*shapes, compute_uv=vectors)
    assert made.used == [0, -1, -1, 0, -1]


NEVER = 2**40


def least_order(rates, single, vectors):
    """The least order of a single matrix that goes to a device; None if none does."""
    method = _core.METHODS["auto"]

    def pays(n):
        return _core.cuda_pays(rates, single, method, n, 1, vectors)

    low, high = 1, NEVER
    if not pays(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle + 1, high)
    return low


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_where_other_devices_are_faster(single, vectors):
    """The measured orders hold for an H200; slower devices need larger matrices, if any will do."""
    measured = ORDER if vectors else VALUES_ORDER

    def order(rates):
        return least_order(rates, single, vectors)

    assert order(None) == order(H200) == measured
    assert order((*H200[:2], 2 * H200[2], *H200[3:])) == measured  # launches are no faster
    assert measured <= order(A100) <= order(V100) <= order(P100) < 2 * measured
    assert order(V100) > measured
    assert order(T4) is None and order(UNKNOWN) is None
    for rates in (RTX_4090, RTX_5090):  # float64 is slow there, and values are counted in it
        if single and vectors:
            assert measured < order(rates) < 2 * measured
        else:
            assert order(rates) is None


@pytest.mark.parametrize("rates", [None, H200, A100, RTX_4090, UNKNOWN])
def test_what_never_goes_to_a_device(rates):
    for method, vectors in (("qr", True), ("qr", False), ("givens", True), ("bisect", True)):
        assert not _core.cuda_pays(rates, False, _core.METHODS[method], NEVER, 1, vectors)
    for n, matrices in ((0, NEVER), (NEVER, 0), (1, 1)):
        assert not _core.cuda_pays(rates, True, _core.METHODS["auto"], n, matrices, True)


def test_batches_on_other_devices():
    auto, values = _core.METHODS["auto"], _core.CUDA_BATCH_VALUES

    def pays(rates, matrices, single=False):
        return _core.cuda_pays(rates, single, auto, 8, matrices, True)

    assert pays(H200, values // 8) and not pays(H200, values // 8 - 1)
    assert not pays(V100, values // 8) and pays(V100, values // 4)
    assert not pays(RTX_4090, 2**60) and pays(RTX_4090, 2**60, single=True)


def test_the_precision_decides(machine):
    """A device with weak float64 computes vectors in float32 alone."""
    made = machine(rates=RTX_4090)
    d, e = np.ones(2 * ORDER), np.zeros(2 * ORDER - 1)
    single = d.astype(np.float32), e.astype(np.float32)
    for pair in ((d, e), single, (d, single[1]), (single[0], e), (d.tolist(), e.tolist())):
        tsvd.svd(*pair)
    tsvd.svdvals(*single)
    tsvd.svd(*(x.astype(">f4") for x in single))
    assert made.used == [-1, 0, -1, -1, -1, -1, 0]


@pytest.mark.parametrize("d", [None, 3.0, [], "abc", {}, object(), [[1.0, 2.0], [3.0]]])
def test_what_has_no_order_is_refused_as_ever(d, machine):
    made = machine()
    try:
        tsvd.svd(d, [])
    except (TypeError, ValueError):
        pass
    assert made.used == [-1] and made.asked == 0


def _ask_in_child(queue):
    queue.put(_devices.first_cuda.cache_info().currsize + _devices.opens.cache_info().currsize)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of fork with threads
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # as JAX does, where it is loaded
def test_a_forked_child_asks_again(machine):
    """A forked child cannot use a device that its parent uses."""
    machine()
    svd(ORDER)
    assert _devices.first_cuda.cache_info().currsize == _devices.opens.cache_info().currsize == 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_ask_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == 0
    child.join(20)
    assert _devices.first_cuda.cache_info().currsize == _devices.opens.cache_info().currsize == 1


def test_the_documented_orders():
    page = (Path(__file__).parent.parent / "docs/devices.md").read_text()
    doc, page = (re.sub(r"\s+", " ", text) for text in (tsvd.svd.__doc__, page))
    assert f"from n = {ORDER} on for vectors" in doc
    assert f"from n = {VALUES_ORDER} on for values" in doc
    assert f"n ≥ {ORDER} and vectors" in page and f"n ≥ {VALUES_ORDER} and values" in page
    assert f"batches that have {_core.CUDA_BATCH_VALUES} values" in doc
    assert f"batches of {_core.CUDA_BATCH_VALUES} values" in page


# ---- dense matrices ----


LARGE, SMALL = np.broadcast_to(1.0, (300, 260)), np.broadcast_to(1.0, (250, 250))


def test_dense_matrices(machine):
    made = machine()
    for a in (SMALL, np.ones((3, 100, 100)), np.ones((1000, 100)), [[1.0, 2.0]], np.zeros((9, 0))):
        linalg.svdvals(a)
    assert set(made.used) == {-1} and made.asked == 0
    made.used.clear()
    for a in (LARGE, LARGE.T, np.ones((2**18, 8, 8)), np.broadcast_to(1.0, (200_000, 26))):
        linalg.svdvals(a)
    assert made.used == [0, 0, 0, 0] and made.asked == 1
    made.used.clear()
    linalg.bidiagonalize(LARGE)
    linalg.svdvals(LARGE, select="v", select_range=(0, 1))
    linalg.svdvals(LARGE, method="qr")  # not measured
    linalg.svdvals(LARGE, method="jacobi")
    linalg.svdvals(LARGE, device="cpu")
    linalg.svdvals(SMALL, device="cuda")
    assert made.used == [0, 0, -1, -1, -1, 0]


def test_inverses_of_arrays_on_the_host(machine):
    made = machine()
    linalg.inv(np.eye(600))  # not measured either
    linalg.inv(np.eye(3), device="cuda")
    assert made.used == [-1, 0]


@pytest.mark.parametrize(
    "facts",
    [
        {"dense": False},
        {"why": ()},
        {"cublas": False},
        {"memory": exhausted()},
        {"opens": RuntimeError("all CUDA-capable devices are busy")},
        {"rates": RTX_4090},
    ],
    ids=["no dense matrices", "no device", "no cuBLAS", "no memory", "busy", "too slow"],
)
def test_else_dense_matrices_go_to_the_cpu(facts, machine):
    made = machine(**facts)
    S, info = linalg.svd(LARGE, compute_uv=False, full_output=True)
    assert made.used[-1] == -1 and info.device == "cpu" and S.shape == (260,)
    assert linalg.bidiagonalize(LARGE).d.shape == (260,) and made.used[-1] == -1


def test_the_documented_dense_work():
    assert "of 256**3 or more" in re.sub(r"\s+", " ", linalg.svd.__doc__)
    rates, method = None, _core.METHODS["auto"]
    pays = [_core.cuda_pays_dense(rates, False, method, n, n, 1, True) for n in (255, 256)]
    assert pays == [False, True]


@pytest.mark.parametrize(
    "a", [None, 3.0, [], "abc", {}, object(), [[1.0, 2.0], [3.0]], np.ones(9**6)]
)
def test_what_is_no_matrix_is_refused_as_ever(a, machine):
    made = machine()
    with pytest.raises((TypeError, ValueError)):
        linalg.svd(a)
    assert made.used == [-1] and made.asked == 0


# ---- on a device ----


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_on_a_device():
    index, rates = _devices.first_cuda()
    if least_order(rates, False, True) != ORDER:
        pytest.skip("not as fast as the device of the measurements")
    for n, device in ((ORDER - 1, "cpu"), (ORDER, f"cuda:{index}")):
        d, e = make("chi", n)
        result, info = tsvd.svd(d, e, full_output=True)
        assert info.device == device and info.method in ("dc", "twisted")
        assert same_bits(tuple(result), tuple(tsvd.svd(d, e, device=device)))
    d, e = make("chi", VALUES_ORDER)
    _, info = tsvd.svd(d, e, compute_uv=False, full_output=True)
    assert info.device == f"cuda:{index}"
