"""Tells the core where pip installed cuBLAS. The core opens it for its first product."""

from __future__ import annotations

import functools
import os
import sys

from . import _core


def directories(major: int) -> list[str]:
    """The folders in which the cuBLAS wheel for a major version of CUDA puts its library.

    There is one for each folder of the path where the wheel is installed, by pip's records. A
    folder named "nvidia" alone is not enough: it may lie in the current directory by chance, and
    a library that is opened runs code.
    """
    from importlib import metadata  # only now: it takes longer than a small matrix

    places = [place for place in sys.path if isinstance(place, str) and os.path.isabs(place)]
    name, folder = "nvidia-cublas", f"cu{major}"
    if major <= 12:
        name, folder = "nvidia-cublas-cu12", "cublas"
    wheels = metadata.distributions(name=name, path=places)
    found = [os.fspath(wheel.locate_file(f"nvidia/{folder}/lib")) for wheel in wheels]
    return list(dict.fromkeys(found))


@functools.cache
def tell_directories() -> None:
    """Tells the core the folders, once."""
    _core.cuda_library_paths(directories(_core.config()["cuda_runtime"] // 1000))
