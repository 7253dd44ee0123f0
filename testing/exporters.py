"""Exporters of arrays: DLPack by hand, which counts, and device memory without a library."""

import ctypes
import math
import sys
import types

import numpy as np

from testing import capi

CPU, CUDA, CUDA_HOST, ROCM, MANAGED = 1, 2, 3, 10, 13

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_new = capi.function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR
)
_valid = capi.function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer = capi.function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)

made, deleted, live = 0, 0, {}


def _delete(address):
    global deleted
    deleted += 1
    del live[address]  # a KeyError, which ctypes prints, if it was deleted before


def _drop(capsule):
    for name in (b"dltensor", b"dltensor_versioned"):
        if _valid(capsule, name):
            _delete(_pointer(capsule, name))


_deleter, _destructor = DELETER(_delete), DESTRUCTOR(_drop)


def capsule(array, device, version=None, readonly=False, dtype=None, address=None, strides=True):
    """A new capsule of a NumPy array. version: (major, minor), or None for the old kind.

    dtype: (code, bits, lanes) in place of the array's; address: in place of the array's.
    """
    global made
    made += 1
    managed = Managed() if version is None else Versioned()
    tensor = managed.tensor
    tensor.data = array.ctypes.data if address is None else address
    tensor.device = Device(*device)
    tensor.ndim = array.ndim
    code = dtype or (CODES[array.dtype.kind], 8 * array.dtype.itemsize, 1)
    tensor.dtype = DType(*code)
    kept = [array, (ctypes.c_int64 * array.ndim)(*array.shape)]
    tensor.shape = kept[1]
    if strides:
        steps = [s // array.dtype.itemsize for s in array.strides]
        kept.append((ctypes.c_int64 * array.ndim)(*steps))
        tensor.strides = kept[2]
    managed.deleter = _deleter
    if version is not None:
        managed.major, managed.minor = version
        managed.flags = int(readonly)
    address = ctypes.addressof(managed)
    live[address] = (managed, kept)
    return _new(address, b"dltensor" if version is None else b"dltensor_versioned", _destructor)


# The library of Array. tsvd asks the package that a class comes from, without its modules.
LIBRARY = types.ModuleType("library_of_exporters")
sys.modules[LIBRARY.__name__] = LIBRARY


class Array:
    """An array of a library, which hands out capsules as told."""

    __module__ = LIBRARY.__name__

    def __init__(self, array, device=(CPU, 0), **options):
        self.array, self.device, self.options = np.asarray(array), device, options
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return capsule(self.array, self.device, **self.options)

    def astype(self, dtype):
        return Array(self.array.astype(dtype), self.device, **self.options)


class Old(Array):
    """Before version 1.0."""

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__(stream=stream)


class Broken(Array):
    def __dlpack__(self, **options):
        raise ZeroDivisionError("on purpose")


LIBRARY.from_dlpack = lambda x: Array(np.from_dlpack(x))


# The same, of a library that has no from_dlpack.
Homeless = type(
    "Homeless",
    (),
    {name: value for name, value in vars(Array).items() if not name.startswith("__")}
    | {name: vars(Array)[name] for name in ("__init__", "__dlpack__", "__dlpack_device__")}
    | {"__module__": "nowhere"},
)


class Interface:
    """An exporter with a CUDA array interface alone, whatever its contents, of no library."""

    __module__ = "nowhere"

    def __init__(self, **interface):
        self.__cuda_array_interface__ = interface


# ---- device memory, by the CUDA driver alone ----


def driver(name, *arguments):
    """Calls a function of the driver, in the first device's context."""
    library = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    for code in (
        library.cuInit(0),
        library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        library.cuCtxSetCurrent(context),
        getattr(library, name)(*arguments),
    ):
        assert code == 0, (name, code)


ATTACH_GLOBAL = 1  # managed memory that any stream may use


class Raw(Interface):
    """A copy of an array on the first device, with any strides, as Numba's arrays show it.

    managed: in managed memory, which the host reads and writes by on_host().
    """

    __module__ = "nowhere"

    def __init__(self, array, readonly=False, stream=None, managed=False):
        base = array
        while base.base is not None:
            base = base.base
        base = np.ascontiguousarray(base)
        self.memory = ctypes.c_uint64()
        wanted = ctypes.byref(self.memory), ctypes.c_size_t(base.nbytes or 1)
        if managed:
            driver("cuMemAllocManaged", *wanted, ctypes.c_uint(ATTACH_GLOBAL))
        else:
            driver("cuMemAlloc_v2", *wanted)
        if base.nbytes:
            driver(
                "cuMemcpyHtoD_v2", self.memory, ctypes.c_void_p(base.ctypes.data),
                ctypes.c_size_t(base.nbytes),
            )  # fmt: skip
            driver("cuStreamSynchronize", None)  # the copy may still be on its way
        offset = array.ctypes.data - base.ctypes.data
        super().__init__(
            shape=array.shape,
            typestr=array.dtype.str,
            data=(self.memory.value + offset if array.size else 0, readonly),
            strides=array.strides,
            version=3,
            stream=stream,
        )

    def on_host(self):
        """Contiguous managed memory as a NumPy array; all work on the device must be done."""
        shape, dtype, (address, _) = (
            self.__cuda_array_interface__[key] for key in ("shape", "typestr", "data")
        )
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)

    def __del__(self):
        driver("cuMemFree_v2", self.memory)


def download(x):
    """A NumPy copy of an array with a CUDA array interface, after all work on the device."""
    interface = x.__cuda_array_interface__
    array = np.empty(interface["shape"], interface["typestr"])
    driver("cuCtxSynchronize")
    if array.size:
        driver(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data),
            ctypes.c_uint64(interface["data"][0]), ctypes.c_size_t(array.nbytes),
        )  # fmt: skip
    return array
