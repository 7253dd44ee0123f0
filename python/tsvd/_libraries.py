"""The libraries of matrix products: where pip installed cuBLAS, and SciPy's BLAS."""

from __future__ import annotations

import functools
import importlib.util
import os
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


def scipy_blas() -> dict[str, object]:
    """The capsules of SciPy's BLAS by the names of the functions. The core calls this."""
    with _import_lock:
        try:
            from scipy.linalg import cython_blas
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                'vectors of large matrices by "dc" on the CPU need the BLAS of SciPy: '
                f"pip install scipy ({error})",
                name=error.name,
            ) from error
    return cython_blas.__pyx_capi__


def directories(major: int) -> list[str]:
    """The folders in which the cuBLAS wheel for a major version of CUDA puts its library.

    There is one for each folder that holds packages of NVIDIA. It need not exist.
    """
    try:
        spec = importlib.util.find_spec("nvidia")  # a namespace package: nothing is imported
    except ValueError:  # another module of this name, without a spec
        return []
    places = (spec and spec.submodule_search_locations) or []
    folder = "cublas" if major <= 12 else f"cu{major}"
    return [os.path.join(place, folder, "lib") for place in places]


@functools.cache
def tell_directories() -> None:
    """Tells the core the folders, once."""
    _core.cuda_library_paths(directories(_core.config()["cuda_runtime"] // 1000))
