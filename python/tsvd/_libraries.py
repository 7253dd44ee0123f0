"""Tells the core where pip installed cuBLAS. The core opens it for its first product."""

from __future__ import annotations

import functools
import importlib.util
import os

from . import _core


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
