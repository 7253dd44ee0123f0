"""Where pip installs cuBLAS, which only Python knows; the core opens it when it multiplies."""

from __future__ import annotations

import functools
import importlib.util
import os

from . import _core


def directories(major: int) -> list[str]:
    """Where the wheel of cuBLAS for a major version of CUDA puts its files, in each place that
    holds packages of NVIDIA; they need not exist.
    """
    try:
        spec = importlib.util.find_spec("nvidia")  # a namespace package: nothing is imported
    except ValueError:  # some other module of this name, without a spec
        return []
    places = (spec and spec.submodule_search_locations) or []
    folder = "cublas" if major <= 12 else f"cu{major}"
    return [os.path.join(place, folder, "lib") for place in places]


@functools.cache
def tell_directories() -> None:
    """Tell the core, once."""
    _core.cuda_library_paths(directories(_core.config()["cuda_runtime"] // 1000))
