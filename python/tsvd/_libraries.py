"""Libraries that are loaded when first needed: the device library, cuBLAS, SciPy's BLAS."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.machinery
import importlib.util
import mmap
import os
import resource
import sys
import threading

from . import _core

# A process that is forked during an import gets the import's locks, but not the thread that would
# open them, and waits for ever when it imports the same. So a fork waits for our import.
_import_lock = threading.RLock()
os.register_at_fork(
    before=_import_lock.acquire,
    after_in_parent=_import_lock.release,
    after_in_child=_import_lock.release,
)


# Address space that SciPy and a buffer of its OpenBLAS take, and what each thread adds that
# OpenBLAS starts: some more than was measured (SciPy 1.17).
_SCIPY_BYTES, _THREAD_BYTES = 128 << 20, 40 << 20


def _check_address_space():
    """Refuses an import in which OpenBLAS would wait for address space for ever."""
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if "scipy.linalg" in sys.modules or all(limit == resource.RLIM_INFINITY for limit in limits):
        return
    asked = (os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "OMP"))
    most = len(os.sched_getaffinity(0))
    threads = min(most, next((int(x) for x in asked if x.isdecimal() and int(x) > 0), most))
    wanted = _SCIPY_BYTES + threads * _THREAD_BYTES
    try:
        mmap.mmap(-1, wanted, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        raise MemoryError(
            f"out of address space: {wanted} bytes wanted to import SciPy, whose OpenBLAS starts "
            f"{threads} threads"
        ) from None


def _cython_blas():
    """The module scipy.linalg.cython_blas, without the rest of scipy.linalg where that works.

    Its file is loaded by itself: the package around it takes 130 ms more, and no call needs it.
    Python's list of modules must not keep what was loaded so. A later import by its name gets the
    same module, and puts it into the package then.
    """
    name = "scipy.linalg.cython_blas"
    if name not in sys.modules and "scipy.linalg" not in sys.modules:
        scipy = importlib.util.find_spec("scipy")
        for place in (scipy and scipy.submodule_search_locations) or ():
            for suffix in importlib.machinery.EXTENSION_SUFFIXES:
                file = os.path.join(place, "linalg", f"cython_blas{suffix}")
                if os.path.exists(file):
                    with contextlib.suppress(ImportError):
                        return _loaded(name, file)
    return importlib.import_module(name)


def _loaded(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name, None)
    return module


def scipy_blas() -> dict[str, object]:
    """The capsules of SciPy's BLAS by the names of functions. The core calls this."""
    with _import_lock:
        _check_address_space()
        try:
            cython_blas = _cython_blas()
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                'dense matrices, and vectors of large bidiagonal ones by "dc", need the BLAS of '
                f"SciPy on the CPU: pip install scipy ({error})",
                name=error.name,
            ) from error
    return cython_blas.__pyx_capi__


def _installed(name: str, path: str) -> list[str]:
    """Where wheels of this name put a file or a folder.

    There is one for each folder of sys.path where the wheel is installed, by pip's records. The
    name of a folder alone is not enough: it may lie in the current directory by chance, and a
    library that is opened runs code.
    """
    texts = [place for place in sys.path if isinstance(place, str) and os.path.isabs(place)]
    places = [place for place in texts if os.path.exists(os.path.join(place, path))]
    if not places:
        return []
    from importlib import metadata  # only now: it takes longer than a small matrix

    wheels = metadata.distributions(name=name, path=places)
    return list(dict.fromkeys(str(wheel.locate_file(path)) for wheel in wheels))


def directories(major: int) -> list[str]:
    """The folders in which the cuBLAS wheel for a major version of CUDA puts its library."""
    if major <= 12:
        return _installed("nvidia-cublas-cu12", "nvidia/cublas/lib")
    return _installed("nvidia-cublas", f"nvidia/cu{major}/lib")


def device_library() -> str | None:
    """The device library that pip installed; of two that of the newest CUDA the driver knows."""
    found: dict[int, str] = {}
    for major in (13, 12):
        for file in _installed(f"tsvd-cuda{major}", f"tsvd_cuda{major}/libtsvd_cuda{major}.so"):
            found.setdefault(major, file)
    if len(found) > 1:
        known = _driver_major()
        found = {major: file for major, file in found.items() if major <= known} or found
    return next(iter(found.values()), None)


def _driver_major() -> int:
    """The newest major version of CUDA that the driver knows; 0: there is no driver."""
    version = ctypes.c_int(0)
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000


@functools.cache
def prepare_cuda() -> str | None:
    """Loads the device library, unless CUDA is compiled in, and tells the core where cuBLAS is.

    It is due before the first question about CUDA, and returns the file of the library that it
    loaded. RuntimeError: the library does not fit.
    """
    file = None
    if not _core.config()["cuda_compiled"]:
        file = device_library()
        if file is None:
            return None
        _core.cuda_load(file)
    _core.cuda_library_paths(directories(_core.config()["cuda_runtime"] // 1000))
    return file
