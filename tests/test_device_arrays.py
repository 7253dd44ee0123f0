"""Arrays of other libraries in and out: by DLPack and by the CUDA array interface, with streams.

No GPU is needed: exporters.py makes capsules of host memory, and capsules that claim to lie on a
device that no machine has. Nobody may look into those. test_device_arrays_cuda.py uses a GPU.
"""

import numpy as np
import pytest

import tsvd
from testing import exporters
from testing.cases import DTYPES, same_bits
from testing.exporters import (
    CPU,
    CUDA,
    CUDA_HOST,
    MANAGED,
    ROCM,
    Array,
    Broken,
    Homeless,
    Interface,
    Old,
)
from testing.families import make
from testing.processes import run

D, E = np.arange(1.0, 6.0), np.ones(4)
FAR = 77  # a device that no machine has
ADDRESS = 4096  # of nothing


def far(array, **options):
    """Claims to lie on a device."""
    options = {"address": ADDRESS} | options
    return Array(array, (CUDA, FAR), **options)


@pytest.fixture(autouse=True)
def counts():
    """Every capsule is given back, once."""
    before = exporters.made - exporters.deleted
    yield
    assert exporters.made - exporters.deleted == before and not exporters.live


# ---- on the host ----


VERSIONS = [None, (1, 0), (1, 9)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_host_arrays_come_back_as_what_they_were(dtype, version):
    d, e = make("uniform_1", 20, dtype)
    expected = tsvd.svd(d, e)
    result = tsvd.svd(Array(d, version=version), Array(e, version=version))
    assert all(type(x) is Array for x in result)
    assert same_bits(tuple(x.array for x in result), tuple(expected))
    assert same_bits(tsvd.svdvals(Array(d, version=version), e).array, tsvd.svdvals(d, e))


@pytest.mark.parametrize("d", [Array(D), Old(D), Array(D, (CUDA_HOST, 0)), Array(D, strides=False)])
@pytest.mark.parametrize("e", [E, list(E), tuple(E), memoryview(E), Array(E)])
def test_the_library_of_one_is_enough(d, e):
    expected = tsvd.svdvals(D, E)
    assert same_bits(tsvd.svdvals(d, e).array, expected)
    assert same_bits(tsvd.svdvals(Array(D), E).array, expected)
    assert d.streams[-1] is None


def test_without_a_library_results_are_of_numpy():
    s = tsvd.svdvals(Homeless(D), Homeless(E))
    assert type(s) is np.ndarray and same_bits(s, tsvd.svdvals(D, E))
    for d in (memoryview(D), np.float32(3).reshape(1)):
        assert type(tsvd.svdvals(d, E if len(d) == 5 else [])) is np.ndarray


def test_strides_batches_and_readonly():
    rng = np.random.default_rng(1)
    d, e = rng.random((2, 3, 12))[:, ::-1, ::2], rng.random((3, 7))[:, 6:1:-1]
    d.setflags(write=False)
    expected = tsvd.svd(d, e)
    result = tsvd.svd(Array(d, version=(1, 0), readonly=True), Array(e))
    assert same_bits(tuple(x.array for x in result), tuple(expected))
    wide = np.broadcast_to(D, (4, 5))
    assert same_bits(tsvd.svdvals(Array(wide), E).array, tsvd.svdvals(wide, E))
    empty = tsvd.svd(Array(np.zeros(0)), Array(np.zeros(0)))
    assert [x.array.shape for x in empty] == [(0, 0), (0,), (0, 0)]


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "u8", "i8", "f4"])
def test_dtypes_become_what_numpy_makes_of_them(dtype):
    d = np.array([1, 0, 1, 1, 1], dtype)
    s = tsvd.svdvals(Array(d), Array(E)).array
    assert same_bits(s, tsvd.svdvals(d, E))
    assert s.dtype == np.float64


@pytest.mark.parametrize("device", [(CPU, 0), (CUDA, FAR)])
@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ((5, 64, 1), "complex64"),
        ((2, 16, 1), "float16"),
        ((4, 16, 1), "bfloat16"),
        ((2, 128, 1), "float128"),
        ((2, 64, 2), "of 2 lanes"),
        ((0, 4, 1), "int4"),
        ((9, 8, 1), "number 9 of DLPack"),
    ],
)
def test_dtypes_that_are_refused(device, dtype, name):
    message = f"d has dtype {name}.*; tsvd takes float64 and float32, for dense matrices"
    with pytest.raises(TypeError, match=message):
        tsvd.svd(Array(D, device, dtype=dtype), Array(E, device))
    with pytest.raises(TypeError, match=message.replace("d has", "e has")):
        tsvd.svd(Array(D, device), Array(E, device, dtype=dtype))


def test_out_on_the_host():
    expected = tsvd.svd(D, E)
    out = tuple(Array(np.zeros(shape)) for shape in ((5, 5), 5, (5, 5)))
    result = tsvd.svd(D, E, out=out)
    assert all(given is returned for given, returned in zip(out, result, strict=True))
    assert same_bits(tuple(x.array for x in out), tuple(expected))
    for i, name in enumerate("LsR"):
        wrong = list(out)
        wrong[i] = Array(out[i].array, version=(1, 0), readonly=True)
        with pytest.raises(ValueError, match=f"out: {name} .*writeable"):
            tsvd.svd(D, E, out=tuple(wrong))
    with pytest.raises(ValueError, match="out: s overlaps the memory of d or e"):
        tsvd.svd(Array(D), E, out=(out[0], Array(D), out[2]))


def test_masked_arrays_are_refused():
    with pytest.raises(TypeError, match="e is a masked array"):
        tsvd.svd(D, np.ma.array(E, mask=[0, 1, 0, 0]))


# ---- what is wrong with arrays of a device ----


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [CUDA, MANAGED])
def test_a_device_that_cannot_be_used(kind, version):
    """The arguments are right, and given back."""
    arrays = [Array(x, (kind, FAR), address=ADDRESS, version=version) for x in (D, E)]
    for call in (
        lambda: tsvd.svd(*arrays),
        lambda: tsvd.svdvals(*arrays),
        lambda: tsvd.svdvals(*arrays, select="v", select_range=(0, 1)),
        lambda: tsvd.svdvals(*arrays, select="i", select_range=(0, 1), device=f"cuda:{FAR}"),
    ):
        with pytest.raises(RuntimeError, match="CUDA"):
            call()
    assert all(x.streams for x in arrays)


def test_arrays_in_several_places():
    with pytest.raises(ValueError, match="d on cuda:77, e on the host"):
        tsvd.svd(far(D), E)
    with pytest.raises(ValueError, match="d on the host, e on cuda:77"):
        tsvd.svd(Array(D), far(E))
    with pytest.raises(ValueError, match="d on cuda:77, e on cuda:78"):
        tsvd.svd(far(D), Array(E, (CUDA, 78)))
    out = tuple(Array(np.zeros(shape)) for shape in ((5, 5), 5, (5, 5)))
    with pytest.raises(ValueError, match="e on cuda:77, out: L on the host"):
        tsvd.svd(far(D), far(E), out=out)
    with pytest.raises(ValueError, match="e on the host, out: L on the host, out: s on cuda:77"):
        tsvd.svd(D, E, out=(out[0], far(np.zeros(5)), out[2]))


def test_device_is_that_of_the_arrays():
    for device in ("cpu", "cuda", 3, "cuda:78"):
        with pytest.raises(ValueError, match="d lies on cuda:77, and device asks for"):
            tsvd.svd(far(D), far(E), device=device)
    with pytest.raises(ValueError, match="unknown device"):
        tsvd.svd(far(D), far(E), device="gpu")


def test_other_devices():
    with pytest.raises(ValueError, match="e lies on a device of type 10 of DLPack"):
        tsvd.svd(D, Array(E, (ROCM, 0)))


def test_shapes():
    with pytest.raises(ValueError, match=r"needs e .* d of shape \(5,\) and e of shape \(3,\)"):
        tsvd.svd(far(D), far(D[:3]))
    with pytest.raises(ValueError, match="at least one dimension"):
        tsvd.svd(far(np.float64(1)), far(E))
    with pytest.raises(ValueError, match="do not broadcast"):
        tsvd.svd(far(np.ones((2, 5))), far(np.ones((3, 4))))
    deep = np.ones((1,) * 33 + (5,))
    with pytest.raises(ValueError, match="at most 32 leading dimensions, got 33"):
        tsvd.svd(far(deep), far(E))
    with pytest.raises(ValueError, match="d has 35 dimensions; tsvd takes at most 32"):
        tsvd.svd(far(deep[None]), far(E))


def test_capsules_that_are_none():
    class Wrong(Array):
        answer = 3

        def __dlpack__(self, **options):
            return self.answer

    with pytest.raises(TypeError, match=r"d: __dlpack__.* must return a new capsule"):
        tsvd.svd(Wrong(D), E)
    with pytest.raises(TypeError, match=r"d: __dlpack__.* must return a new capsule"):
        tsvd.svd(Wrong(D, (CUDA, FAR)), far(E))
    Wrong.answer = Array(D).__dlpack__()
    assert same_bits(tsvd.svdvals(Wrong(D), E).array, tsvd.svdvals(D, E))
    with pytest.raises(TypeError, match=r"must return a new capsule .*used_dltensor"):
        tsvd.svd(Wrong(D), E)
    del Wrong.answer  # at the end of Python its destructor would be called too late


@pytest.mark.parametrize("device", [(CPU, 0), (CUDA, FAR)])
def test_versions_that_are_not_known(device):
    with pytest.raises(BufferError, match=r"e comes by DLPack 2\.3, and tsvd reads versions 1\.x"):
        tsvd.svd(Array(D, device), Array(E, device, version=(2, 3)))


def test_a_capsule_of_another_device():
    class Liar(Array):
        def __dlpack_device__(self):
            return CUDA, FAR

    with pytest.raises(BufferError, match="d: the array's capsule is not of the device"):
        tsvd.svd(Liar(D), far(E))
    with pytest.raises(BufferError, match="not of the device"):
        tsvd.svd(Liar(D, (CUDA, 78)), far(E))


def test_exceptions_of_libraries_come_through():
    for d, e in ((Broken(D), E), (Array(D), Broken(E)), (far(D), Broken(E, (CUDA, FAR)))):
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            tsvd.svd(d, e)


def test_conversions_by_the_library():
    """They are made before the device is found unusable."""

    class Stubborn(Array):
        def astype(self, dtype):
            return self

    class Bare(Homeless):
        astype = property()

    integers = np.ones(5, np.int32)
    for d, e in ((far(integers), far(E)), (far(D), far(E.astype(np.float32)))):
        with pytest.raises(RuntimeError, match="CUDA"):
            tsvd.svd(d, e)
    with pytest.raises(TypeError, match="d cannot be converted to float64"):
        tsvd.svd(Stubborn(integers, (CUDA, FAR)), far(E))
    with pytest.raises(TypeError, match="e cannot be converted to float64"):
        tsvd.svd(far(D), Stubborn(E.astype(np.float32), (CUDA, FAR)))
    with pytest.raises(TypeError, match="must be converted to float64 first"):
        tsvd.svd(Bare(integers, (CUDA, FAR)), far(E))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_numbers_between_the_multiples_of_their_size(dtype):
    """No library could convert them: its kernels would fail too."""
    size = np.dtype(dtype).itemsize
    expected = f"^d has an address or a stride that is no multiple of the {size} bytes"
    with pytest.raises(ValueError, match=expected):
        tsvd.svd(Array(D.astype(dtype), (CUDA, FAR), address=ADDRESS + size // 2), far(E))


def test_streams_that_are_none():
    class Stream:
        def __init__(self, version, address):
            self.pair = version, address

        def __cuda_stream__(self):
            return self.pair

    arrays = far(D), far(E)
    for stream in (3.0, "legacy", True):
        with pytest.raises(TypeError, match="stream must be an integer or an object with"):
            tsvd.svd(*arrays, stream=stream)
    for stream in (-1, 2**64):
        with pytest.raises(ValueError, match="stream must be the address"):
            tsvd.svdvals(*arrays, stream=stream)
    with pytest.raises(ValueError, match="version 9 of __cuda_stream__"):
        tsvd.svd(*arrays, stream=Stream(9, 0))
    for stream in (0, 1, 2, 2**40, np.int64(7), Stream(0, 0), Stream(0, 2**40)):
        with pytest.raises(RuntimeError, match="CUDA"):
            tsvd.svd(*arrays, stream=stream)


INTERFACE = {"shape": (5,), "typestr": "<f8", "data": (0, False), "version": 3}


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"typestr": "<c8"}, TypeError, "dtype complex64"),
        ({"typestr": ">f8"}, TypeError, "dtype >f8"),
        ({"typestr": "V8"}, TypeError, "dtype V8"),
        ({"typestr": "<i4"}, TypeError, "must be converted to float64 first"),
        ({"typestr": 8}, TypeError, "argument|str"),
        ({"shape": [5]}, ValueError, "must be tuples of at most 34 integers"),
        ({"shape": (-5,)}, ValueError, "no array has"),
        ({"shape": ("a",)}, TypeError, "integer"),
        ({"shape": (1,) * 35}, ValueError, "must be tuples of at most 34 integers"),
        ({"shape": (6,)}, ValueError, "needs e"),
        ({"strides": (8, 8)}, ValueError, "2 strides for 1 dimensions"),
        ({"strides": (4,)}, ValueError, "stride that is no multiple of the 8 bytes"),
        ({"mask": 3}, ValueError, "no mask"),
        ({"strides": (-16,), "mask": None, "stream": None}, RuntimeError, "CUDA"),
    ],
)
def test_cuda_array_interfaces(change, error, match, monkeypatch):
    """e is empty, so that d alone says where it lies: nowhere, and device 77 is asked for."""
    monkeypatch.setattr(tsvd._arrays._core, "cuda_device_of", lambda address: FAR, raising=True)
    e = Interface(**(INTERFACE | {"shape": (4,), "data": (ADDRESS, False)}))
    with pytest.raises(error, match=match):
        tsvd.svd(Interface(**(INTERFACE | {"data": (ADDRESS, True)} | change)), e)


def test_nothing_leaks():
    """10,000 calls that end in all the ways that there are without a device."""

    class Wrong(Array):
        def __dlpack__(self, **options):
            self.unused = super().__dlpack__()  # dropped with the exporter
            raise ZeroDivisionError

    calls = [
        (lambda: tsvd.svdvals(Array([1.0, 2.0]), Array([1.0], version=(1, 0))), None),
        (lambda: tsvd.svdvals(Array([1.0, np.nan]), Array([1.0])), ValueError),
        (lambda: tsvd.svdvals(far(D), far(E)), RuntimeError),
        (lambda: tsvd.svdvals(far(D), far(D[:3])), ValueError),
        (lambda: tsvd.svdvals(far(D), far(E, dtype=(5, 64, 1))), TypeError),
        (lambda: tsvd.svdvals(far(np.ones(5, int)), far(E)), RuntimeError),
        (lambda: tsvd.svdvals(far(D), far(E, version=(3, 0))), BufferError),
        (lambda: tsvd.svdvals(far(D), Wrong(E, (CUDA, FAR))), ZeroDivisionError),
        (lambda: tsvd.svd(far(D), far(E), out=(far(D),) * 3), RuntimeError),
        (lambda: Array(D).__dlpack__(), None),
    ]
    before = exporters.made
    for call, error in calls * 1000:
        try:
            call()
            assert error is None
        except (ArithmeticError, BufferError, RuntimeError, TypeError, ValueError) as raised:
            assert type(raised) is error
    assert exporters.made - before >= 15_000
    assert exporters.made == exporters.deleted and not exporters.live


def test_no_library_is_imported():
    run("""
import sys
import numpy as np
import tsvd
tsvd.svd(np.ones(5), np.ones(4))
tsvd.svd(np.ones(5), memoryview(np.ones(4)))
assert not {"torch", "cupy", "jax", "numba"} & set(sys.modules)
""")


# ---- the libraries, on the host ----


def test_torch_on_the_host():
    torch = pytest.importorskip("torch")
    expected = tsvd.svd(D, E)
    d, e = torch.from_numpy(D.copy()), torch.from_numpy(E.copy())
    result, info = tsvd.svd(d, e, full_output=True, device="cpu")
    assert all(type(x) is torch.Tensor for x in result) and info.device == "cpu"
    assert same_bits(tuple(x.numpy() for x in result), tuple(expected))
    out = tuple(torch.empty_like(x) for x in result)
    filled = tsvd.svd(d, e, out=out)
    assert filled.L is out[0] and all(map(torch.equal, filled, result))
    assert tsvd.svdvals(d.expand(3, 5), e.float()).dtype == torch.float64
    assert tsvd.svdvals(d.float(), e.float()).dtype == torch.float32
    assert torch.equal(tsvd.svdvals(d.int(), e), result.s)
    for dtype in (torch.bfloat16, torch.float16, torch.complex64):
        with pytest.raises(TypeError, match="d has dtype"):
            tsvd.svd(d.to(dtype), e)
    # the sign is a flag, which DLPack does not have
    negative = torch.complex(e, d[:4]).conj().imag
    assert negative.is_neg()
    values = tsvd.svdvals(d, torch.tensor([-1.0, -2.0, -3.0, -4.0], dtype=torch.float64))
    assert torch.equal(tsvd.svdvals(negative.resolve_neg(), e[:3]), tsvd.svdvals(negative, e[:3]))
    assert torch.equal(tsvd.svdvals(d, negative), values)
    with pytest.raises(ValueError, match=r"e is a tensor that requires grad: tsvd\.torch\.svd and"):
        tsvd.svd(d, e.clone().requires_grad_())


def test_jax_on_the_host():
    jnp = pytest.importorskip("jax").numpy
    d, e = jnp.asarray(D, jnp.float32), jnp.asarray(E, jnp.float32)
    expected = tsvd.svd(D.astype(np.float32), E.astype(np.float32))
    result = tsvd.svd(d, e)
    assert all(type(x) is type(d) for x in result)
    assert same_bits(tuple(map(np.asarray, result)), tuple(expected))
    assert type(tsvd.svdvals(jnp.arange(5), e)) is type(d)
    with pytest.raises(ValueError, match="out: L is read-only"):
        tsvd.svd(d, e, out=tuple(result))
