"""Arrays of other libraries: where they lie, who takes results, and whose stream is used.

Nothing is computed here, and no library is imported: an array of it comes with it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import operator
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _core, _libraries

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Types that _core takes as they are.
PLAIN = frozenset((np.ndarray, list, tuple))

# Device types of DLPack, and the numbers that stand for default streams.
_HOST_TYPES = (1, 3)
_CUDA_TYPES = (2, 13)
_LEGACY, _PER_THREAD = 1, 2

# What stands for the exporter's own stream: nothing has to wait.
_SAME = -1

_HOST = -1

# An array that a thread drops later would wait for a GIL that it cannot get.
atexit.register(_core.python_ends)


class Form(NamedTuple):
    """The names of a call's arrays, and what of tsvd has derivatives."""

    inputs: tuple[str, ...]
    results: tuple[str, ...]
    tensors: str  # what takes tensors that require grad, and what to do here
    traced: str  # what JAX may trace


BIDIAGONAL = Form(
    ("d", "e"),
    ("L", "s", "R"),
    "tsvd.torch.svd and tsvd.torch.svdvals have derivatives, tsvd.svd takes the tensor without "
    "them by detach()",
    "tsvd.jax.svd and tsvd.jax.svdvals work within jit, vmap and grad",
)
DENSE = Form(
    ("a",),
    ("U", "S", "Vh"),
    "tsvd.torch.linalg_svd and the other functions of tsvd.torch that are named linalg_ have "
    "derivatives, tsvd.linalg takes the tensor without them by detach()",
    "tsvd.linalg does not work within its transformations",
)
INVERSE = Form(
    ("a",),
    ("X",),
    "tsvd.linalg.inv has no derivatives, it takes the tensor without them by detach()",
    "tsvd.linalg does not work within its transformations",
)


class Place(NamedTuple):
    """Where the arrays of a call lie, and who takes its results."""

    out: Any  # as _core takes it
    device: int  # the CUDA device where all of them lie; -1: the host
    stream: int  # to work on; 0: the handle's own
    keep: Any  # what keeps the stream alive, or None
    wait: bool  # until the results are there: who reads them may not wait for the stream
    given: tuple | None  # the caller's own `out`
    wrap: Callable[[Any], Any] | None  # makes an array of the caller's library of a result


HOST = Place(None, _HOST, 0, None, False, None, None)  # of arrays of NumPy


def arrange(form, inputs, out, device, stream, lasts=False) -> tuple[tuple, Place]:
    """The input as _core takes it, and the place of the arrays.

    device is a number, -1 for the CPU; None: the caller asks for none.
    lasts: results may come later than the call, when the streams are other ones.
    """
    named = dict(zip(form.inputs, inputs, strict=True))
    if isinstance(out, tuple) and len(out) == len(form.results):
        named.update(zip(_out_names(form), out, strict=True))
    places = {name: place_of(form, name, x) for name, x in named.items()}
    known = {place for place in places.values() if place is not None}
    if len(known) > 1:
        where = ", ".join(f"{name} on {called(p)}" for name, p in places.items() if p is not None)
        raise ValueError(f"the arrays must lie in one place: {where}")
    place = known.pop() if known else 0
    if place == _HOST:
        return _on_host(form, inputs, out, device, stream)
    if device is not None and device != place:
        raise ValueError(
            f"{form.inputs[0]} lies on {called(place)}, and device asks for {called(device)}"
        )
    given = list(named.items())[len(inputs) :]
    for name, x in given:
        _check_writable(name, x)
    first = inputs[0]
    number, keep = _current_stream(first, place) if stream is None else _given_stream(stream)
    wrap = next(filter(None, map(_from_dlpack, inputs)), None)
    if stream is None and not lasts and library_of(first) == "torch":
        wrap = functools.partial(_from_capsule, wrap, number)
    settle()
    wait = stream is None and any(
        number == 0 or _current_stream(x, place)[0] != number for _, x in given
    )
    return inputs, Place(out, place, number, keep, wait, out, wrap)


def _out_names(form):
    return [f"out: {name}" for name in form.results]


def results(place: Place, result):
    """Results of _core as arrays of the caller's library."""
    if place.given is not None:
        return place.given
    if place.wrap is None:
        return result
    if isinstance(result, tuple):
        return tuple(_wrapped(place.wrap, x) for x in result)
    return _wrapped(place.wrap, result)


def _wrapped(wrap, x):
    if isinstance(x, _core.DeviceArray) and (getattr(wrap, "__module__", None) or "").startswith(
        "jax"
    ):
        x.for_jax()
    return wrap(x)


def _from_capsule(make, stream, x):
    """An array of PyTorch, read in the stream that made it, without asking which stream that is."""
    return make(x.__dlpack__(stream=stream))


def settle() -> None:
    """Gives back the memory of results that JAX has dropped.

    JAX drops an array when the work that reads it is on its way. A later computation on the same
    device comes after that work, and JAX lets the stream of the memory wait for it.
    """
    aside = _core.aside()
    if not aside:
        return
    jax = sys.modules["jax"]
    devices = {device.local_hardware_id: device for device in jax.local_devices(backend="gpu")}
    if len(devices) == 1:
        _wait_for_jax(jax, devices, aside)
    else:  # JAX leaves its thread with another current device
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            thread.submit(_wait_for_jax, jax, devices, aside).result()
    for _, _, memory in aside:
        _core.give_back(memory)


def _wait_for_jax(jax, devices, aside):
    """Has the streams of memory wait for a computation that JAX begins now."""
    with jax.ensure_compile_time_eval():
        later = {
            number: jax.device_put(0.0, devices[number]) + 1 for number in {x[0] for x in aside}
        }
    for number, stream in {x[:2] for x in aside}:
        later[number].__dlpack__(stream=stream)


def called(place):
    return "the host" if place == _HOST else f"cuda:{place}"


def _on_host(form, inputs, out, device, stream):
    number, keep = 0, None
    if stream is not None:
        if device is None or device == _HOST:
            lies = " and ".join(form.inputs) + (" lies" if len(inputs) == 1 else " lie")
            raise ValueError(
                f"stream needs a CUDA device: {lies} on the host, so name it by device="
            )
        number, keep = _given_stream(stream)
    wrap = next(filter(None, map(maker_on_host, inputs)), None)
    given = out
    if isinstance(out, tuple) and len(out) == len(form.results):
        out = tuple(_writable(name, x) for name, x in zip(_out_names(form), out, strict=True))
    inputs = tuple(map(as_numpy, form.inputs, inputs))
    return inputs, Place(out, _HOST, number, keep, False, given, wrap)


# ---- one array ----


@functools.lru_cache(maxsize=64)
def _packages_of(cls):
    """The packages that a class and those it is made of come from."""
    return tuple(base.__module__.partition(".")[0] for base in cls.__mro__)


@functools.lru_cache(maxsize=64)
def _library_of(cls):
    names = {"torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax"}
    return next((names[package] for package in _packages_of(cls) if package in names), None)


def library_of(x):
    """Which of the libraries that need something of their own the array belongs to."""
    return _library_of(type(x))


def place_of(form, name, x):
    """The CUDA device where an array lies, -1 for the host; None: it is empty and may be anywhere.

    Also refuses what must not be taken for an array of numbers.
    """
    if type(x) in PLAIN:
        return _HOST
    if isinstance(x, np.ndarray):
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(x, masked.MaskedArray):
            raise TypeError(f"{name} is a masked array; fill its gaps with numpy.ma.filled")
        return _HOST
    if not hasattr(x, "__dlpack__") and not hasattr(x, "__cuda_array_interface__"):
        from . import _diagnosis

        _diagnosis.refuse_kind(name, x)
    if library_of(x) == "torch":
        if x.requires_grad or has_tangent(x):
            raise ValueError(f"{name} is a tensor that requires grad: {form.tensors}")
        if _is_recorded():
            raise TypeError(
                f"{name} is a tensor of a call that is traced, and its result would become a "
                "constant of the trace: use the functions of tsvd.torch"
            )
        if x.is_cpu or x.is_cuda:
            return x.get_device()  # -1: the host; DLPack takes ten times as long to say it
    if library_of(x) == "jax" and isinstance(x, sys.modules["jax"].core.Tracer):
        raise TypeError(f"{name} is traced by JAX: {form.traced}")
    if hasattr(x, "__dlpack_device__") and hasattr(x, "__dlpack__"):
        kind, index = x.__dlpack_device__()
        if kind in _HOST_TYPES:
            return _HOST
        if kind in _CUDA_TYPES:
            return int(index)
        raise ValueError(
            f"{name} lies on a device of type {int(kind)} of DLPack; tsvd takes arrays of the "
            "host and of CUDA devices"
        )
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        return _HOST
    address = interface["data"][0]
    # Where CUDA cannot be asked, the call says why there is no device.
    if address:
        _libraries.prepare_cuda()
    return max(_core.cuda_device_of(address), 0) if address else None


def _from_dlpack(x):
    """The function that makes an array of the library of x from an exporter; None: it has none."""
    if type(x) in PLAIN or isinstance(x, (np.ndarray, np.generic)):
        return None
    if hasattr(x, "__array_namespace__"):
        space = x.__array_namespace__()
        if hasattr(space, "from_dlpack"):
            return space.from_dlpack
    # its library first, also for a subclass in a module that has another from_dlpack
    for package in (library_of(x), *_packages_of(type(x))):
        space = sys.modules.get(package)
        if hasattr(space, "from_dlpack"):
            return space.from_dlpack
    return None


def maker_on_host(x):
    """As _from_dlpack, for an array of the host; None: results are NumPy's."""
    if library_of(x) == "torch":
        return sys.modules["torch"].from_numpy
    make = _from_dlpack(x) if hasattr(x, "__dlpack_device__") else None
    if make is not None and library_of(x) == "jax":
        return functools.partial(_beside, make, x.devices())
    return make


def _beside(make, devices, result):
    """An array of JAX on the device of the input: JAX may have several on the host."""
    made = make(result)
    return made if made.devices() == devices else sys.modules["jax"].device_put(made, *devices)


def as_numpy(name, x):
    """An array of the host as _core takes it."""
    if maker_on_host(x) is None and (
        hasattr(x, "__array__") or not hasattr(x, "__dlpack_device__")
    ):
        return x
    # much faster than by DLPack, which says what is wrong with other types and layouts
    if library_of(x) == "torch":
        with contextlib.suppress(TypeError):
            return x.resolve_neg().resolve_conj().numpy()
    elif library_of(x) == "jax" and x.dtype.char in "fdFD":
        return np.asarray(x)
    capsule = export(x, None)
    return np.asarray(_core.borrow(capsule, name))


def is_transformed(x):
    """Whether a tensor belongs to vmap, grad or another transformation of torch.func."""
    return sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(x)


def _is_recorded():
    """Whether torch.jit.trace or make_fx record what is called."""
    return sys.modules["torch"]._C._get_tracing_state() is not None or makes_proxies()


def makes_proxies():
    """Whether make_fx records what is called."""
    tracer = sys.modules.get("torch.fx.experimental.proxy_tensor")
    return (
        sys.modules["torch"]._C._len_torch_dispatch_stack() > 0
        and tracer is not None
        and tracer.get_proxy_mode() is not None
    )


def has_tangent(x):
    """Whether a tensor carries a derivative of forward mode, or belongs to a transformation."""
    torch = sys.modules["torch"]
    if torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradFunctionality):
        return False  # within an operator, whose caller sees to derivatives
    return is_transformed(x) or torch.autograd.forward_ad.unpack_dual(x).tangent is not None


def _check_writable(name, x):
    """Refuses what results cannot be written to, in the words of its library."""
    if library_of(x) == "jax":
        raise ValueError(f"{name} is read-only, as all arrays of JAX are")
    if library_of(x) == "torch":  # only a copy of such a view could be written to
        if x.is_neg():
            raise ValueError(f"{name} is a view whose signs are changed: give its resolve_neg()")
        if x.is_conj():
            raise ValueError(f"{name} is a view of conjugates: give its resolve_conj()")


def _writable(name, x):
    _check_writable(name, x)
    return as_numpy(name, x)


# ---- what _core asks for ----


def export(x, stream):
    """What _core borrows an array by: a capsule of DLPack, or else (x, its CUDA array interface).

    What is under way on x comes before later work in the stream, but for the interface, whose own
    stream _core waits for.
    """
    if not hasattr(x, "__dlpack__"):
        return x, x.__cuda_array_interface__
    if library_of(x) == "torch":
        x = x.resolve_neg().resolve_conj()  # DLPack cannot say that signs are to be changed
    if stream is not None and library_of(x) == "torch":
        if stream == _current_stream(x, x.get_device())[0]:
            stream = _SAME
        elif stream == _PER_THREAD:
            stream = _LEGACY  # PyTorch refuses the other, which waits for this one
    with _current_device(x):
        return _capsule(x, stream)


def _capsule(x, stream):
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # before DLPack 1.0
        return x.__dlpack__(stream=stream)


def convert(x, dtype):
    """A copy of an array in another dtype, C-contiguous, made by its own library."""
    library = library_of(x)
    with _current_device(x):
        if library == "torch":
            return x.to(getattr(sys.modules["torch"], dtype), copy=True)
        if library == "jax" and dtype == "float64":  # float32 unless 64 bits are enabled
            return x.astype(x.__array_namespace__().result_type(float))
        if hasattr(x, "astype"):
            return x.astype(dtype)
        if hasattr(x, "__array_namespace__"):
            space = x.__array_namespace__()
            return space.astype(x, getattr(space, dtype))
    raise TypeError(f"an array of type {type(x).__name__} must be converted to {dtype} first")


def fresh(x, dtype):
    """A C-contiguous copy, which may be written to. None: its library makes none."""
    library = library_of(x)
    with _current_device(x):
        if library == "torch":
            return x.to(getattr(sys.modules["torch"], dtype), copy=True).contiguous()
        if library == "cupy":
            return sys.modules["cupy"].array(x, dtype, order="C")
    return None


def from_host(x, like):
    """A NumPy array as one of the library of `like`, where that lies."""
    library = library_of(like)
    with _current_device(like):
        if library == "torch":
            return sys.modules["torch"].from_numpy(x).to(like.device)
        if library == "cupy":
            return sys.modules["cupy"].asarray(x)
        if library == "jax":
            return sys.modules["jax"].device_put(x, like.device)
    return x


def to_host(x):
    """An array of CuPy as one of NumPy; others as they are."""
    return x.get() if library_of(x) == "cupy" else x


_ANY_DEVICE = contextlib.nullcontext()


def _current_device(x):
    """Makes the device of an array the current one of its library, where that matters.

    PyTorch exports no tensor of another device, and takes the streams of DLPack for those of the
    current one.
    """
    library = library_of(x)
    if library == "torch" and x.is_cuda:
        torch = sys.modules["torch"]
        index = x.get_device()
        # to enter a device takes some microseconds
        return _ANY_DEVICE if torch._C._cuda_getDevice() == index else torch.cuda.device(index)
    if library == "cupy":
        return x.device
    return _ANY_DEVICE


# ---- streams ----


def _current_stream(x, device):
    """The stream that x is made on, and what keeps it alive; 0: none, or not known."""
    library = library_of(x)
    if library == "torch":  # whose streams are never destroyed
        # torch.cuda.current_stream() takes some microseconds
        return sys.modules["torch"]._C._cuda_getCurrentRawStream(device) or _LEGACY, None
    if library == "cupy":
        stream = sys.modules["cupy"].cuda.get_current_stream(device)
        return stream.ptr or _LEGACY, stream
    if library == "jax" or isinstance(x, _core.DeviceArray):
        return 0, None
    interface = getattr(x, "__cuda_array_interface__", None) or {}
    return interface.get("stream") or 0, None


def _given_stream(stream):
    """The number of a stream that the caller names, and what keeps it alive."""
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, number = protocol() if callable(protocol) else protocol
        if version != 0:
            raise ValueError(f"stream has version {version} of __cuda_stream__; tsvd knows 0")
        return int(number) or _LEGACY, stream
    if isinstance(stream, bool) or not hasattr(stream, "__index__"):
        raise TypeError(
            "stream must be an integer or an object with __cuda_stream__(), "
            f"not {type(stream).__name__}"
        )
    number = operator.index(stream)
    if not 0 <= number < 2**64:
        raise ValueError(f"stream must be the address of a stream, not {number}")
    return number or _LEGACY, None
